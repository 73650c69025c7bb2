/* find.h - the other direction: a backward is wrong, and the student finds an input that shows it.
 */
#ifndef TAPEHEAD_EXERCISES_FIND_H
#define TAPEHEAD_EXERCISES_FIND_H

/* Asks the three questions on standard input and output; the exit status: 0 if all were answered
 * right. */
int find_inputs(void);

#endif
