/* text.h - a lesson in the terminal: its text, and the tape line by line, forward and backward. */
#ifndef TAPEHEAD_EXAMPLES_TEXT_H
#define TAPEHEAD_EXAMPLES_TEXT_H

#include "json.h"

/* Prints a lesson, whose tape check_tape has checked, on standard output: in colours where the
 * terminal has them. On a terminal it waits for Enter after each step. False after q. */
bool text_show(const Json *lesson);

#endif
