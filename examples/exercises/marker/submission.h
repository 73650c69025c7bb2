/* submission.h - reads a student's file: is there a file, and has it a backward? */
#ifndef TAPEHEAD_EXERCISES_SUBMISSION_H
#define TAPEHEAD_EXERCISES_SUBMISSION_H

#include <stdbool.h>
#include <stddef.h>

enum { SUBMISSION_MOST = 1 << 20 }; /* bytes of a file */

/* The file of this name in a folder is not one to be read: a pipe, a link out of the folder. A file
 * that is missing is not refused. */
bool submission_refusal(const char *folder, const char *name, char *sentence, size_t size);

/* Is there such a folder? A link to one is none: it may be somebody else's. */
bool submission_is_folder(const char *path);

/* Is there such a file, and has somebody written in the body of this function? */
bool submission_is_written(const char *path, const char *function);

/* Does a text include a file of no folder of these and of the system, or is there assembler in it,
 * which could? `rule` is what cc -M says of it in the folder `here`. For systems that cannot
 * confine the compiler (filter_confine): assembler that a macro makes is not seen. */
bool submission_reaches_out(const char *path, const char *rule, const char *here,
                            const char *const *folders, char *sentence, size_t size);

/* Does a file's name seem to mean "04_softmax" or "attention": "04_softmax (1).c", "4.c",
 * "Attention (2).c", "ada_04_softmax.c"? */
bool submission_means(const char *file, const char *right);
/* How long is the part of "ada_04_softmax.c" before the name of this file? 0 if there is none. */
size_t submission_prefix(const char *file, const char *right);
/* "04_softmax (1).c is there; 04_softmax.c is not", and true, if a file seems to be meant, also of
 * a folder in this folder; else "04_softmax.c is missing". `name` is not there, and right is
 * "04_softmax". */
bool submission_other_name(const char *folder, const char *name, const char *right, char *sentence,
                           size_t size);

/* Does every body of this function in a C text only declare, loop and SHOW, as the form does? False
 * if there is no body. */
bool submission_is_empty(const char *text, const char *function);

/* Where a function is defined: from the beginning of the line with its name, the bracket of its
 * body, and just after the last bracket; whole: there is one. The first definition from `at` on;
 * false if there is none. */
typedef struct {
    size_t begin, open, end;
    bool whole;
} Definition;
bool submission_definition(const char *text, size_t at, const char *function, Definition *found);

/* The first line of a compiler's or linker's messages that says what is wrong, or the first
 * warning, inside of the function if there is one: without the folder of the file, and without
 * characters that a terminal would obey. "" if there is none. `function` names what a linker did
 * not find. */
void submission_error(const char *messages, const char *function, char *line, size_t size);
void submission_warning(const char *messages, const char *function, char *line, size_t size);

/* Characters that a terminal would obey become ?. The text is UTF-8. */
void submission_make_plain(char *text);

/* A whole file as a text, at most so many bytes; NULL if it cannot be read. The caller frees it. */
char *submission_read(const char *path, size_t most);

#endif
