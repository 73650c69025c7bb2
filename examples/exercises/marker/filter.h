/* filter.h - what a student's program may ask of the system. */
#ifndef TAPEHEAD_EXERCISES_FILTER_H
#define TAPEHEAD_EXERCISES_FILTER_H

#include <stdbool.h>

/* From now on this process may compute, use memory and threads, and write to files that are open.
 * It cannot write another file, start a process, send a signal to another one, read another one's
 * memory, or use a network: also after exec. It may open files to read them, as the linker of a
 * shared library does, unless it is closed: linked statically. On Linux alone, on x86-64, AArch64
 * and RISC-V; elsewhere nothing happens. */
void filter_install(bool closed);

/* From now on this process and its children may open what the compiler needs of the system, and
 * files in these folders (NULL after the last one), of which the first can be written, and no other
 * file. On Linux from 5.13, with Landlock; elsewhere false, and nothing happens. */
bool filter_confine(const char *const *folders);

#endif
