/* common.h - what several suites share: the frame around a test, small tensors, checks of error
 * messages, and the ops of the table with inputs that suit them.
 *
 * Ops are called by name, with their attributes as a list of numbers, so that the samples below,
 * the golden file and the wrong cases of test_ops.c are all data. */
#ifndef TESTS_COMMON_H
#define TESTS_COMMON_H

#include "../../autograd/op.h"

#include <check.h>

/* ---- the frame: no tensor may stay alive, no error pending, no tape open --------------------- */

int run_suite(Suite *suite); /* what main returns: 0 if all tests passed */

void frame_setup(void);    /* float64, seed 0 */
void frame_teardown(void); /* fails if the test left a tensor, an error or an open tape */
TCase *add_framed_case(Suite *suite, const char *name); /* adds a case whose tests run in the
                                                         * frame */
/* Marks a case whose tests make valgrind leaves out, because they would take it minutes. */
TCase *mark_long(TCase *tcase);

/* The pending error must be this message; it is cleared. */
void expect_error(const char *sentence);
/* The pending error must begin with `beginning` and contain `part`; it is cleared. */
void expect_error_like(const char *beginning, const char *part);

/* ---- small tensors ------------------------------------------------------------------------- */

Tensor *leaf(Shape shape, const double *elements); /* float64, requires a gradient, yours */
#define LEAF(shape, ...) leaf(shape, (double[]){__VA_ARGS__})

/* x's elements, row-major, must equal `expected` to within the tolerance; NaN equals NaN. */
void expect_elements(const char *what, const Tensor *x, const double *expected, double tolerance);
#define EXPECT_ELEMENTS(x, ...) expect_elements(#x, x, (double[]){__VA_ARGS__}, 1e-12)
bool same_number(double a, double b, double tolerance);

/* A view of x's storage, torch.as_strided: element (i, j, ...) is element
 * offset + i stride[0] + j stride[1] + ... of the storage. An error if an element lies outside. */
Tensor *tensor_as_strided(const Tensor *x, Shape shape, const int64_t *stride, int64_t offset);

/* A copy of x in which the first index varies fastest in memory. Takes over x. */
Tensor *permuted(Tensor *x);

/* The tensor with this name in a file of tests/golden/ that has a line per tensor (generate_nn.py
 * describes the format). You own it. */
Tensor *golden_tensor(const char *name_of_file, const char *name);

/* ---- calling an op by its name ------------------------------------------------------------- */

enum { SAMPLE_INPUTS = 7, SAMPLE_NUMBERS = 10 };

typedef struct {
    const char *op; /* its name in ag_ops */
    int n;
    struct {
        /* 'r' a float that gets a gradient, 'c' one without, 'm' mask, 'l' lengths, 'i' indices */
        char kind;
        Shape shape;
    } in[SAMPLE_INPUTS];
    double number[SAMPLE_NUMBERS]; /* the attributes */
} Sample;

/* ag_<name>(in..., number...). A shape among the numbers is its ndim and then its sizes. */
Tensor *call_op(const char *name, Tensor **in, int n, const double *number);
Shape shape_at(const double *number); /* a shape among the numbers */

/* Samples of every op of the table; after the last one, op is NULL. Some samples have scalars, some
 * broadcast, some have no elements. */
const Sample *samples(void);
const Op *find_op(const char *name);
int inputs_of(const Op *op);         /* how many inputs the op names */
bool needs_elements(const char *op); /* does the op refuse every tensor without elements? */

/* Input i of a sample: random numbers where the op can be differentiated. You own it. */
Tensor *sample_input(const Sample *sample, int i, DType dtype);

/* ---- parameters of a model ------------------------------------------------------------------- */

/* The fields that hold a module's parameters, in state_dict order. Writes at most capacity of them,
 * returns how many there are. */
int parameter_slots(void *module, Tensor ***slots, int capacity);

#endif
