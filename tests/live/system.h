/* system.h - the functions that the suites call and wasi-libc does not declare; included before
 * each suite. */
#ifndef TESTS_LIVE_SYSTEM_H
#define TESTS_LIVE_SYSTEM_H

#include <stdio.h>

unsigned alarm(unsigned seconds);
FILE *popen(const char *command, const char *mode);
int pclose(FILE *file);
int mkstemp(char *path);

#endif
