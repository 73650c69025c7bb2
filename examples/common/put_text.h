/* put_text.h - a text that is put together. */
#ifndef TAPEHEAD_EXAMPLES_PUT_TEXT_H
#define TAPEHEAD_EXAMPLES_PUT_TEXT_H

#include "../../tensor/tensor.h"

/* Appends to a text that has room for `size` bytes; what has no room is left out. */
TENSOR_PRINTF(3, 4) void put_text(char *text, size_t size, const char *format, ...);

#endif
