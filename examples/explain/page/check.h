/* check.h - is this tree of JSON a tape that tape_write_json wrote? */
#ifndef TAPEHEAD_EXAMPLES_CHECK_H
#define TAPEHEAD_EXAMPLES_CHECK_H

#include "json.h"

/* Checks all that a reader of the tape needs: there are lines and tensors, a number of a tensor
 * names a tensor, lists are as long as the shapes say. False and an error that names the line
 * or the tensor. */
bool check_tape(const Json *tape);

/* The number of elements of a tensor; -1 if its shape is not a list of sizes. */
int64_t size_of_tensor(const Json *tensor);

#endif
