/* text.h - a lesson in the terminal: its steps, forward and backward, as on the page. */
#ifndef TAPEHEAD_EXAMPLES_TEXT_H
#define TAPEHEAD_EXAMPLES_TEXT_H

#include "../page/json.h"

/* Prints a lesson, whose tape check_tape has checked, on standard output: in colours where the
 * terminal has them. False with an error. */
bool text_show(const Json *lesson);

#endif
