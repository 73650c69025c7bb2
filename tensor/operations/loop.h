/* loop.h - runs kernels over whole tensors of any strides. */
#ifndef TAPEHEAD_TENSOR_LOOP_H
#define TAPEHEAD_TENSOR_LOOP_H

#include "../internal.h"
#include "../kernels/kernels.h"

enum { LOOP_OPERANDS = 8 };

static inline void swap(int64_t *x, int64_t *y) {
    const int64_t moved = *x;
    *x = *y;
    *y = moved;
}

/* Runs the kernel over x[0] .. x[n-1]. x[0] is the result; the others broadcast to its shape. */
void tensor_loop_elements(Kernel *kernel, int n, const Tensor *const *x, double s);
/* to = from, both of one type; `from` broadcasts to the shape of `to`. */
void tensor_loop_copy(const Tensor *to, const Tensor *from);
/* Calls the kernel for each row along dim, with a pointer for each operand: to a row or, if its
 * size along dim is 1, to one number. (If all have size 1, all are rows of one element.) NULL stays
 * NULL. x[0] is the result; any other operand that the kernel writes is a number or contiguous.
 * Sets an error if there is no memory to gather rows that are not contiguous. */
void tensor_loop_rows(Kernel *kernel, int dim, int n, const Tensor *const *x, double s);
/* The same for a kernel that takes `operations` operations for each element. */
void tensor_loop_costly_rows(Kernel *kernel, int dim, int n, const Tensor *const *x, double s,
                             double operations);
/* For a kernel that takes strides. */
void tensor_loop_strided(StridedKernel *kernel, int n, const Tensor *const *x, int64_t step);

/* ---- the walk itself, for products ----------------------------------------------------------- */

typedef struct Walk Walk;
struct Walk {
    int n;    /* operands */
    int ndim; /* dimensions that are left */
    int64_t size[TENSOR_MAX_DIMS];
    int64_t stride[TENSOR_MAX_DIMS][LOOP_OPERANDS]; /* in elements */
    void *data[LOOP_OPERANDS];                      /* NULL for an operand that is absent */
    int64_t element[LOOP_OPERANDS];                 /* bytes of an element */

    /* Handles one row: the operands begin at data[0] .. data[n - 1]. NULL if all rows are
     * contiguous: the kernel is called with data itself. */
    void (*call)(const Walk *walk, void *const *data);
    Kernel *kernel;
    StridedKernel *strided;
    double s;
    int64_t step;
    bool is_row[LOOP_OPERANDS]; /* else a number for the row */
    char *workspace;            /* of the worker, for rows that are not contiguous */
    int64_t workspace_bytes;
    int cut; /* the dimension that threads share */
};

/* Starts a walk over operands that broadcast to one shape, but not over their last `inner`
 * dimensions. */
void tensor_walk_start(Walk *walk, int n, const Tensor *const *x, int inner);
/* Moves the data pointers by this many steps along dimension d. */
void tensor_walk_along(Walk *walk, int d, int64_t steps);
/* Moves to the next position in dimensions 0 to ndim - 1; false after the last position. */
bool tensor_walk_next(Walk *walk, int ndim, int64_t *index);

#endif
