/* check.h - is this tree of JSON a tape that tape_write_json wrote? */
#ifndef TAPEHEAD_EXAMPLES_CHECK_H
#define TAPEHEAD_EXAMPLES_CHECK_H

#include "json.h"

/* Checks all that a reader of the tape counts on: that lines and tensors are there, that numbers of
 * tensors exist, that lists are as long as the shapes say. False and an error that names the line
 * or the tensor. */
bool check_tape(const Json *tape);

/* The product of a tensor's shape; -1 if that is not a list of sizes. */
int64_t size_of_tensor(const Json *tensor);

#endif
