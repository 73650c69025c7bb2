/* submission.h - reads a student's file: is there a file, and has it a backward? */
#ifndef TAPEHEAD_EXERCISES_SUBMISSION_H
#define TAPEHEAD_EXERCISES_SUBMISSION_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { SUBMISSION_WRITTEN, SUBMISSION_EMPTY, SUBMISSION_MISSING } SubmissionState;

/* A file that cannot be read as a text counts as written: the compiler says what is wrong. */
SubmissionState submission_look(const char *path, const char *function);

/* Is every body of this function in a C text empty, but for comments, semicolons and (void)x? False
 * if there is no body. */
bool submission_is_empty(const char *text, const char *function);

/* The first line of a compiler's or linker's messages that says what is wrong, or the first
 * warning: without the folder of the file, and without characters that a terminal would obey. "" if
 * there is none. `function` names what a linker did not find. */
void submission_error(const char *messages, const char *function, char *line, size_t size);
void submission_warning(const char *messages, char *line, size_t size);

/* A whole file as a text, at most so many bytes; NULL if it cannot be read. The caller frees it. */
char *submission_read(const char *path, size_t most);

#endif
