/* repository.h - where a program finds the files of Tapehead, such as its dictionary. */
#ifndef TAPEHEAD_EXAMPLES_REPOSITORY_H
#define TAPEHEAD_EXAMPLES_REPOSITORY_H

/* flags_parse says here by which path the program was started, argv[0]. */
void repository_program(const char *path);

/* The folder that has this file, which may be a folder: "" for the current one, else one of the
 * four folders above the program, with its slash: "/home/me/tapehead/". NULL and an error that
 * names both places if the file is at neither; the error ends with the advice. The text is valid
 * until the next call, and so is the path of the file, which repository_find returns. */
const char *repository_folder(const char *file, const char *advice);
const char *repository_find(const char *file, const char *advice);

#endif
