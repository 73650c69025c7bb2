/* kernels.c - measures single ops, through the public functions: products for each shape and
 * layout, other ops per element, and the time that the tape adds to an op on a tiny tensor.
 *
 * "forward" runs after tape_begin_no_grad; "both" records and also runs backward. */
#include "common.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4096, COLUMNS = 256 };

static Tensor *randn(DType dtype, Shape shape) {
    tensor_set_default_dtype(dtype);
    Tensor *x = tensor_randn(shape);
    tensor_set_default_dtype(F32);
    return x;
}

/* ---- products -------------------------------------------------------------------------------- */

/* c (m, n) = a (m, k) b (k, n), or a batch of them. In layout "NT" b is stored as (n, k), in "TN" a
 * is stored as (k, m): the transposed factor is a view. */
typedef struct {
    int64_t batch, m, k, n;
    const char *layouts;
    DType dtype;
    const char *demanded; /* the share of the peak that we want with AVX-512 */
} Product;
typedef struct {
    Tensor *a, *b;
    bool a_transposed, b_transposed;
} Factors;

#define ALL "NN NT TN"
static const Product products[] = {
    {1, 32, 32, 32, ALL, F32, ""},          {1, 64, 64, 64, ALL, F32, "88%"},
    {1, 100, 100, 100, ALL, F32, "88%"},    {1, 128, 128, 128, ALL, F32, "88%"},
    {1, 256, 256, 256, ALL, F32, "88%"},    {1, 512, 512, 512, ALL, F32, "92%"},
    {1, 1024, 1024, 1024, ALL, F32, "92%"}, {1, 2048, 2048, 2048, ALL, F32, "92%"},
    {1, 2048, 768, 768, ALL, F32, "92%"},   {1, 2048, 768, 3072, ALL, F32, "92%"},
    {1, 1024, 512, 512, "NN NT", F32, ""},  {1, 640, 100, 100, "NT", F32, ""},
    {64, 64, 64, 64, ALL, F32, "80%"},      {80, 10, 20, 10, ALL, F32, "40 GFLOP/s"},
    {10, 4, 20, 6, "NT", F32, ""},          {320, 10, 20, 10, "NT", F32, ""},
    {64, 256, 64, 256, "NT", F32, ""},      {64, 256, 256, 64, "NN", F32, ""},
    {12, 2048, 64, 2048, "NT", F32, ""},    {50, 1, 49, 1, "NN", F32, ""},
    {1, 1024, 1024, 1024, ALL, F64, "88%"},
};

static void multiply(void *factors) {
    Factors *f = factors;
    tape_begin_no_grad();
    ag_matmul(f->a_transposed ? ag_transpose(f->a, -1, -2) : f->a,
              f->b_transposed ? ag_transpose(f->b, -1, -2) : f->b);
    tape_end();
}

/* A tensor (batch, rows, columns); if transposed is true, it is stored with the last two dimensions
 * swapped */
static Tensor *factor(const Product *p, int64_t rows, int64_t columns, bool transposed) {
    int64_t r = transposed ? columns : rows, c = transposed ? rows : columns;
    return randn(p->dtype, p->batch > 1 ? SHAPE(p->batch, r, c) : SHAPE(r, c));
}

static void run_product(const Options *o, const Product *p, const char *layout) {
    Factors f = {.a_transposed = layout[0] == 'T', .b_transposed = layout[1] == 'T'};
    f.a = factor(p, p->m, p->k, f.a_transposed);
    f.b = factor(p, p->k, p->n, f.b_transposed);
    Timing t = measure(o, p->dtype, multiply, &f);
    const double flop = 2 * (double)(p->batch * p->m) * (double)(p->k * p->n);
    char shape[80], mode[3] = {layout[0], layout[1], '\0'};
    snprintf(shape, sizeof shape, "%" PRId64 " x (%" PRId64 ", %" PRId64 ", %" PRId64 ")", p->batch,
             p->m, p->k, p->n);
    print_text(o, "op", 9, "product");
    print_text(o, "type", 8, tensor_dtype_name(p->dtype));
    print_text(o, "layout", 6, mode);
    print_text(o, "shape_mkn", 24, shape);
    print_text(o, "isa", 8, isa());
    print_number(o, "threads", 7, 0, o->threads);
    print_number(o, "median_us", 11, 2, t.median);
    print_number(o, "gflop_s", 8, 1, flop / t.median / 1e3);
    print_number(o, "peak_pct", 8, 1, 100 * flop / (t.possible * o->threads));
    print_text(o, "demanded", 10, p->demanded);
    print_end(o);
    tensor_release(f.a);
    tensor_release(f.b);
}

/* ---- the other ops --------------------------------------------------------------------------- */

/* x: (ROWS, COLUMNS) twice, (COLUMNS) twice, and a target for each row */
typedef struct {
    const char *name;
    Tensor *(*call)(Tensor **x);
    int forward, backward; /* bytes per element that must be read or written */
} Kernel;
typedef struct {
    const Kernel *kernel;
    Leaves *leaves; /* x[0] to x[3] */
    Tensor *x[5], *dy;
} Call;

static Tensor *call_add(Tensor **x) { return ag_add(x[0], x[1]); }
static Tensor *call_exp(Tensor **x) { return ag_exp(x[0]); }
static Tensor *call_log(Tensor **x) { return ag_log(x[0]); }
static Tensor *call_tanh(Tensor **x) { return ag_tanh(x[0]); }
static Tensor *call_sigmoid(Tensor **x) { return ag_sigmoid(x[0]); }
static Tensor *call_gelu(Tensor **x) { return ag_gelu(x[0]); }
static Tensor *call_sum(Tensor **x) { return ag_sum(x[0]); }
static Tensor *call_transposed(Tensor **x) { return ag_contiguous(ag_transpose(x[0], 0, 1)); }
static Tensor *call_softmax(Tensor **x) { return ag_softmax(x[0], -1); }
static Tensor *call_layer_norm(Tensor **x) { return ag_layer_norm(x[0], x[2], x[3], 1e-5); }
static Tensor *call_dropout(Tensor **x) { return ag_dropout(x[0], 0.1); }
static Tensor *call_cross_entropy(Tensor **x) {
    return ag_cross_entropy(x[0], x[4], -100, REDUCE_MEAN);
}
static const Kernel kernels_timed[] = {
    {"add", call_add, 12, 12},        {"exp", call_exp, 8, 12},
    {"log", call_log, 8, 12},         {"tanh", call_tanh, 8, 12},
    {"sigmoid", call_sigmoid, 8, 12}, {"gelu", call_gelu, 8, 12},
    {"sum", call_sum, 4, 4},          {"transposed", call_transposed, 8, 8},
    {"softmax", call_softmax, 8, 12}, {"layer_norm", call_layer_norm, 8, 12},
    {"dropout", call_dropout, 8, 8},  {"cross_entropy", call_cross_entropy, 4, 8},
};

static void forward(void *call) {
    Call *c = call;
    tape_begin_no_grad();
    c->kernel->call(c->x);
    tape_end();
}

static void both(void *call) {
    Call *c = call;
    tape_begin();
    ag_backward_from(c->kernel->call(c->x), c->dy);
    tape_end();
    nn_zero_grad(c->leaves);
}

static void draw(void *unused) {
    (void)unused;
    tensor_release(tensor_randn(SHAPE(ROWS, COLUMNS)));
}

static void print_kernel(const Options *o, const char *name, const char *pass, int bytes,
                         Timing t) {
    const double elements = ROWS * COLUMNS;
    print_text(o, "op", 14, name);
    print_text(o, "pass", 8, pass);
    print_number(o, "elements", 9, 0, elements);
    print_number(o, "threads", 7, 0, o->threads);
    print_number(o, "median_us", 11, 2, t.median);
    print_number(o, "ns_element", 10, 3, 1e3 * t.median / elements);
    print_number(o, "gb_s", 7, 1, bytes * elements / t.median / 1e3);
    print_end(o);
}

static void run_kernel(const Options *o, const Kernel *kernel, bool backward) {
    Call c = {.kernel = kernel};
    c.x[0] = tensor_uniform(0.1, 2, SHAPE(ROWS, COLUMNS)); /* log needs positive numbers */
    c.x[1] = tensor_randn(SHAPE(ROWS, COLUMNS));
    c.x[2] = tensor_randn(SHAPE(COLUMNS));
    c.x[3] = tensor_randn(SHAPE(COLUMNS));
    c.x[4] = tensor_randint(0, COLUMNS, SHAPE(ROWS));
    c.leaves = leaves_new(4, c.x);
    tape_begin_no_grad();
    Tensor *y = kernel->call(c.x);
    c.dy = y ? tensor_randn(y->shape) : NULL;
    tape_end();
    Timing t = measure(o, F32, backward ? both : forward, &c);
    const int bytes = kernel->forward + (backward ? kernel->backward : 0);
    print_kernel(o, kernel->name, backward ? "both" : "forward", bytes, t);
    nn_free(c.leaves);
    tensor_release(c.x[4]);
    tensor_release(c.dy);
}

/* ---- the tape -------------------------------------------------------------------------------- */

enum { OPS = 100 };
typedef struct {
    Leaves *x; /* one */
    Tensor *y;
    bool backward;
} Chain;

/* x + y + y + ..., of four elements */
static void add_chain(void *chain) {
    Chain *c = chain;
    tape_begin();
    Tensor *sum = c->x->x[0];
    for (int i = 0; i < OPS; i++) sum = ag_add(sum, c->y);
    if (c->backward) ag_backward_from(sum, c->y);
    tape_end();
    nn_zero_grad(c->x);
}

static void run_tape(const Options *o, bool backward) {
    Tensor *x = tensor_randn(SHAPE(4));
    Chain c = {leaves_new(1, &x), tensor_randn(SHAPE(4)), backward};
    Timing t = measure(o, F32, add_chain, &c);
    print_text(o, "op", 14, "tape");
    print_text(o, "pass", 8, backward ? "both" : "forward");
    print_number(o, "threads", 7, 0, o->threads);
    print_number(o, "ns_op", 9, 1, 1e3 * t.median / OPS);
    print_number(o, "allocations", 11, 0, (double)t.allocations);
    print_end(o);
    nn_free(c.x);
    tensor_release(c.y);
}

int main(int argc, char **argv) {
    Options o = options_read(argc, argv,
                             "kernels [--json] [--cpu-time] [--threads N] [--seconds S]\n"
                             "        [product|add|exp|...|randn|tape ...]");
    for (size_t i = 0; chosen(&o, "product") && i < sizeof products / sizeof *products; i++)
        for (const char *layout = products[i].layouts; layout; layout = strchr(layout, ' ')) {
            layout += *layout == ' ';
            run_product(&o, &products[i], layout);
        }
    print_header(true);
    for (size_t i = 0; i < sizeof kernels_timed / sizeof *kernels_timed; i++)
        for (int pass = 0; chosen(&o, kernels_timed[i].name) && pass < 2; pass++)
            run_kernel(&o, &kernels_timed[i], pass == 1);
    if (chosen(&o, "randn")) print_kernel(&o, "randn", "forward", 4, measure(&o, F32, draw, NULL));
    print_header(true);
    for (int pass = 0; chosen(&o, "tape") && pass < 2; pass++) run_tape(&o, pass == 1);
    if (tensor_error()) fprintf(stderr, "kernels: %s\n", tensor_error());
    return tensor_error() != NULL;
}
