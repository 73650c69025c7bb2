/* common.h - what several suites share: the frame around a test, small tensors, checks of error
 * messages, and the ops of the table with inputs that suit them.
 *
 * Ops are called by name, with their attributes as a list of numbers, so that the rows of ops.def,
 * the golden files and the programs of differential/ are all data. */
#ifndef TESTS_COMMON_H
#define TESTS_COMMON_H

#include "../../autograd/op.h"

#include <check.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- the frame: no tensor may stay alive, no error pending, no tape open --------------------- */

int run_suite(Suite *suite); /* what main returns: 0 if all tests passed */

/* CASE("title") begins a case, whose tests run in the frame; the tests below it add themselves to
 * it, TEST(name) { ... }, until the next one. The test of LOOP_TEST(name, times) runs with _i from
 * 0 to times - 1. A case that is there already goes on.
 *
 *     CASE("disk", .setup = setup, .teardown = teardown, .seconds = 120)
 *     TEST(a_full_disk_leaves_the_old_file) { ... }
 *     int main(void) { return run_tests("files"); }
 *
 * A case of programs is PROGRAM_CASE, in common_program.h. */
int run_tests(const char *suite); /* what main returns */
#define CASE(...)              CASE_ON(__LINE__, __VA_ARGS__)
#define CASE_ON(n, ...)        CASE_AT(n, __VA_ARGS__)
#define TEST(name)             LOOP_TEST(name, 1)
#define LOOP_TEST(name, times) RANGE_TEST(name, 0, times)
/* The numbers are asked for when the suite runs. */
#define RANGE_TEST(name, from, to)                                                                 \
    static void name##_body(int _i __attribute__((unused)));                                       \
    static int first_##name(void) { return from; }                                                 \
    static int end_##name(void) { return to; }                                                     \
    __attribute__((constructor)) static void enter_##name(void) {                                  \
        static const TTest test = {"" #name, name##_body, __FILE__, __LINE__};                     \
        enter_test(&(ListedTest){                                                                  \
            .line = __LINE__, .test = &test, .first = first_##name, .end = end_##name});           \
    }                                                                                              \
    static void name##_body(int _i __attribute__((unused)))
#define CASE_AT(n, ...)                                                                            \
    __attribute__((constructor)) static void begin_case_##n(void) {                                \
        enter_test(&(ListedTest){.line = n, .title = __VA_ARGS__});                                \
    }
/* LOOP_TEST(name, WITH_THREADS) is no test where there is one thread, as in a core that tcc
 * compiles; WITH_CACHE: none in a core alone, whose memory is malloc's. */
#ifdef ONE_THREAD
enum { WITH_THREADS = 0 };
#else
enum { WITH_THREADS = 1 };
#endif
#ifdef CORE_ONLY
enum { WITH_CACHE = 0 };
#else
enum { WITH_CACHE = 1 };
#endif
typedef struct {
    int line;
    const TTest *test;
    int (*first)(void), (*end)(void);
    const char *title;                                  /* of a case, which has no test */
    void (*setup)(void), (*teardown)(void);             /* in place of the frame's */
    void (*inner_setup)(void), (*inner_teardown)(void); /* inside of these */
    TCase *(*make)(Suite *suite, const char *title);
    double seconds; /* before a test is stopped; 0: Check's limit */
    bool is_long;   /* make valgrind leaves it out */
} ListedTest;
void enter_test(const ListedTest *entry);

void frame_setup(void);       /* float64, seed 0 */
void frame_setup_float(void); /* float32, seed 0 */
void frame_teardown(void);    /* fails if the test left memory, an error or an open tape */
/* Adds a case whose tests run between setup and teardown; framed: in the frame. */
TCase *add_case(Suite *suite, const char *name, void (*setup)(void), void (*teardown)(void));
TCase *add_framed_case(Suite *suite, const char *name);
/* How many of n: all with ALL=1, else every step-th, from the first. */
int sampled(int n, int step);
/* The step of a loop inside a test: 1 with ALL=1. main asks, since a test is a process of its own.
 */
int sample_step(int step);
/* Says what this machine cannot test; the last lines of make test repeat it. */
void left_out(const char *what);
/* Whether an emulator ($EMULATOR) runs the programs here; then this test is left out. */
bool left_out_under_emulator(const char *test);
/* Marks a case whose tests make valgrind leaves out, because they would take it minutes. */
TCase *mark_long(TCase *tcase);

/* The pending error must be this message; it is cleared. */
void expect_error(const char *sentence);
/* The pending error must begin with `beginning` and contain `part`; it is cleared. */
void expect_error_like(const char *beginning, const char *part);
/* The call must hand back NULL or false, with this message. */
#define FAILS(call, sentence)                                                                      \
    do {                                                                                           \
        ck_assert_msg(!(call), "%s did not fail", #call);                                          \
        expect_error(sentence);                                                                    \
    } while (0)

/* ---- texts --------------------------------------------------------------------------------- */

/* The text that printf would print; valid for seven more calls. */
TENSOR_PRINTF(1, 2) const char *format(const char *text, ...);

int occurrences(const char *text, const char *part); /* how often the part stands in the text */

/* ---- small tensors ------------------------------------------------------------------------- */

Tensor *leaf(Shape shape, const double *elements); /* float64, requires a gradient, yours */
#define LEAF(shape, ...) leaf(shape, (double[]){__VA_ARGS__})

/* x's elements, row-major, must equal `expected` to within the tolerance; NaN equals NaN. */
void expect_elements(const char *what, const Tensor *x, const double *expected, double tolerance);
#define EXPECT_ELEMENTS(x, ...) expect_elements(#x, x, (double[]){__VA_ARGS__}, 1e-12)
#define EXPECT_GRAD(x, ...)     expect_elements(#x "->grad", (x)->grad, (double[]){__VA_ARGS__}, 1e-12)
bool same_number(double a, double b, double tolerance);

/* a and b must be equal to within the tolerance, relative and absolute. */
void expect_close(const char *what, const Tensor *a, const Tensor *b, double tolerance);

/* x->grad becomes this gradient, which it takes over. */
void set_gradient(Tensor *x, Tensor *gradient);

/* A view of x's storage, torch.as_strided: element (i, j, ...) is element
 * offset + i stride[0] + j stride[1] + ... of the storage. An error if an element lies outside. */
Tensor *tensor_as_strided(const Tensor *x, Shape shape, const int64_t *stride, int64_t offset);

void release_all(Tensor **list, int n);
/* Releases each tensor: RELEASE(x, w). */
#define RELEASE(...) release_all((Tensor *[]){__VA_ARGS__}, COUNT(((Tensor *[]){__VA_ARGS__})))

/* A copy of x in which the first index varies fastest in memory. Takes over x. */
Tensor *permuted(Tensor *x);

/* The tensor with this name in a file of tests/golden/ that has a line per tensor (generate_nn.py
 * describes the format). You own it. */
Tensor *golden_tensor(const char *name_of_file, const char *name);

/* Every function that makes a tensor of numbers, with small ones; after the last, name is NULL. */
typedef struct {
    const char *name;
    Tensor *(*make)(void);
} Maker;
extern const Maker makers[];
int number_of_makers(void);

/* ---- the table of ops, ops.def ------------------------------------------------------------- */

enum { SAMPLE_INPUTS = 7, SAMPLE_NUMBERS = 10 };

typedef struct {
    /* 'r' a float that gets a gradient, 'c' one without, 'm' mask, 'l' lengths, 'i' indices; 0
     * after the last input */
    char kind;
    Shape shape;
} SampleInput;

/* R(2, 3): floats of shape (2, 3); R0: a scalar */
/* clang-format off */
#define IN(kind, ...) {kind, {sizeof((int64_t[]){__VA_ARGS__}) / 8, {__VA_ARGS__}}}
#define R(...) IN('r', __VA_ARGS__)
#define C(...) IN('c', __VA_ARGS__)
#define M(...) IN('m', __VA_ARGS__)
#define L(...) IN('l', __VA_ARGS__)
#define I(...) IN('i', __VA_ARGS__)
#define R0 {'r', {0, {0}}}
#define M0 {'m', {0, {0}}}
#define I0 {'i', {0, {0}}}
#define NO_INPUT {0}
/* clang-format on */

typedef struct {
    SampleInput in[SAMPLE_INPUTS];
    double number[SAMPLE_NUMBERS]; /* the attributes */
} Example;

typedef struct {
    SampleInput in[SAMPLE_INPUTS];
    double number[SAMPLE_NUMBERS];
    const char *sentence; /* the error message */
} Mistake;

typedef struct {
    const Example *list;
    int n;
} Examples;

typedef struct {
    const Mistake *list;
    int n;
} Mistakes;

/* A row of ops.def, which describes the fields. */
typedef struct {
    const char *name;
    const Op *op; /* NULL for a composite */
    Tensor *(*call)(Tensor **in, int n, const double *number);
    Examples samples, empty;
    Mistakes wrong;
    const char *applies;
    bool torch, any_shape, needs_elements, no_gradient, counts;
} OpRow;

extern const OpRow op_rows[];     /* after the last one, name is NULL */
extern const Op *const all_ops[]; /* of the rows that are no composites; NULL at the end */

int number_of_rows(void);
int number_of_ops(void); /* of all_ops */

const OpRow *op_row(const char *name); /* NULL if there is none */
const Op *find_op(const char *name);   /* NULL for a composite */
bool is_elementwise(const OpRow *row); /* is it a row of elementwise.def? */
int inputs_of(const Op *op);           /* how many inputs the op names */

/* ag_<name>(in..., number...). A shape among the numbers is its ndim and then its sizes. */
Tensor *call_op(const char *name, Tensor **in, int n, const double *number);
Shape shape_at(const double *number); /* a shape among the numbers */

typedef struct {
    const char *op; /* the name of its row */
    int n;
    SampleInput in[SAMPLE_INPUTS];
    double number[SAMPLE_NUMBERS];
} Sample;

/* The samples of all ops, of all composites, and the samples without elements of both; after the
 * last one, op is NULL. */
const Sample *samples(void);
const Sample *samples_of_composites(void);
const Sample *samples_without_elements(void);
/* Calls check for each sample of this op of all_ops. (A test for each sample would need a process
 * for each, which is slow under sanitizers.) */
void each_sample(int op, void (*check)(const Sample *));
/* Inputs so large that the kernels need several blocks; op is NULL at the end. */
const Sample *large_samples(void);

/* Input i of a sample: random numbers where the op can be differentiated. You own it. */
Tensor *sample_input(const Sample *sample, int i, DType dtype);

/* ---- parameters of a model ------------------------------------------------------------------- */

/* The fields that hold a module's parameters, in state_dict order. Writes at most capacity of them,
 * returns how many there are. */
int parameter_slots(void *module, Tensor ***slots, int capacity);

/* nn_print must print this text. */
void expect_printed_module(void *module, const char *text);

#endif
