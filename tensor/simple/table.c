/* table.c - the core by itself: the plain kernels. With tensor/fast/: fast/dispatch.c. */
#include "../kernels/kernels.h"

const Kernels *tensor_kernels(void) { return &tensor_kernels_plain; }
