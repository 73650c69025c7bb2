/* common.c - the frame around a test, and every op of the table with inputs that suit it. */
#include "common.h"

#include "../../nn/nn.h"
#include "../../tensor/parts.h"

#include <assert.h>
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- the frame ----------------------------------------------------------------------------- */

/* IN_PARTS=1: threads share all work that can be cut, however small it is. */
int run_suite(Suite *suite) {
    if (getenv("IN_PARTS")) {
        worth_a_thread = 16;
        threads_take_turns = true;
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

static int64_t live_before;

void frame_setup(void) {
    live_before = tensor_live();
    tensor_set_default_dtype(F64);
    tensor_manual_seed(0);
}

void frame_teardown(void) {
    ck_assert_msg(!tensor_error(), "an error is pending: %s", tensor_error());
    Tensor *x = tensor_ones(SCALAR);
    ck_assert_msg(!ag_neg(x), "a tape is still open");
    tensor_release(x);
    tensor_clear_error();
    ck_assert_int_eq(tensor_live(), live_before);
}

TCase *add_framed_case(Suite *suite, const char *name) {
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, frame_setup, frame_teardown);
    suite_add_tcase(suite, tcase);
    return tcase;
}

TCase *mark_long(TCase *tcase) {
    tcase_set_tags(tcase, "long");
    return tcase;
}

/* The linker replaces tensor_fail by this function in all calls of the library. It keeps the format
 * of the error, so that tests/checks/errors can find formats that no test expects. The linker of
 * macOS cannot do that. */
static _Thread_local const char *last_format = "";

#ifndef __APPLE__
void *__wrap_tensor_fail(const char *format, ...);

void *__wrap_tensor_fail(const char *format, ...) {
    if (!tensor_error()) last_format = format;
    va_list arguments;
    va_start(arguments, format);
    tensor_vfail(format, arguments);
    va_end(arguments);
    return NULL;
}
#endif

static void write_down(const char *sentence) {
    FILE *file = getenv("SENTENCES") ? fopen(getenv("SENTENCES"), "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\t%s\n", last_format, sentence);
    fclose(file);
}

void expect_error(const char *sentence) {
    ck_assert_msg(tensor_error() != NULL, "no error is pending; expected: %s", sentence);
    ck_assert_str_eq(tensor_error(), sentence);
    write_down(sentence);
    tensor_clear_error();
    ck_assert_ptr_null(tensor_error());
}

void expect_error_like(const char *beginning, const char *part) {
    const char *error = tensor_error();
    ck_assert_msg(error != NULL, "no error is pending; expected: %s ... %s", beginning, part);
    ck_assert_msg(!strncmp(error, beginning, strlen(beginning)) && strstr(error, part) != NULL,
                  "the error is: %s; expected: %s ... %s", error, beginning, part);
    tensor_clear_error();
}

/* ---- small tensors ------------------------------------------------------------------------- */

Tensor *leaf(Shape shape, const double *elements) {
    const DType before = tensor_default_dtype();
    tensor_set_default_dtype(F64);
    Tensor *x = ag_requires_grad(tensor_from_doubles(shape, elements));
    tensor_set_default_dtype(before);
    ck_assert_msg(x != NULL, "%s", tensor_error());
    return x;
}

bool same_number(double a, double b, double tolerance) {
    if (isnan(b)) return isnan(a);
    return a == b || fabs(a - b) <= tolerance * (1 + fabs(b));
}

void expect_elements(const char *what, const Tensor *x, const double *expected, double tolerance) {
    double element[256];
    ck_assert_msg(x != NULL, "%s is NULL: %s", what, tensor_error());
    ck_assert_int_le(tensor_numel(x), 256);
    ck_assert(tensor_to_doubles(x, element));
    for (int64_t i = 0; i < tensor_numel(x); i++)
        ck_assert_msg(same_number(element[i], expected[i], tolerance),
                      "%s: element %lld is %.17g and should be %.17g", what, (long long)i,
                      element[i], expected[i]);
}

Tensor *permuted(Tensor *x) {
    int64_t stride[TENSOR_MAX_DIMS], step = 1;
    for (int d = 0; d < x->shape.ndim; d++, step *= x->shape.dim[d - 1]) stride[d] = step;
    Tensor *bytes = tensor_make(SHAPE(tensor_numel(x)), x->dtype);
    Tensor *view = bytes ? tensor_as_strided(bytes, x->shape, stride, 0) : NULL;
    ck_assert_msg(view && tensor_copy_from(view, x), "%s", tensor_error());
    tensor_release(bytes);
    tensor_release(x);
    return view;
}

/* ---- golden tensors ---------------------------------------------------------------------- */

static Tensor *read_golden(FILE *file, const char *type, bool wanted) {
    Shape shape = {0};
    int64_t count = 1;
    ck_assert_int_eq(fscanf(file, "%d", &shape.ndim), 1);
    for (int d = 0; d < shape.ndim; d++) {
        ck_assert_int_eq(fscanf(file, "%" SCNd64, &shape.dim[d]), 1);
        count *= shape.dim[d];
    }
    double *elements = malloc((size_t)(count + 1) * sizeof *elements);
    int64_t *integers = malloc((size_t)(count + 1) * sizeof *integers);
    for (int64_t i = 0; i < count; i++) {
        ck_assert_int_eq(fscanf(file, "%lf", &elements[i]), 1);
        integers[i] = (int64_t)elements[i];
    }
    Tensor *x = NULL;
    DType before = tensor_default_dtype();
    tensor_set_default_dtype(!strcmp(type, "float64") ? F64 : F32);
    if (wanted)
        x = !strcmp(type, "int64") ? tensor_from_int64s(shape, integers)
                                   : tensor_from_doubles(shape, elements);
    tensor_set_default_dtype(before);
    free(elements);
    free(integers);
    return x;
}

Tensor *golden_tensor(const char *name_of_file, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "tests/golden/%s", name_of_file);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "run me from the root of the repository");
    char found[64], type[16];
    Tensor *x = NULL;
    while (!x && fscanf(file, "%63s %15s", found, type) == 2)
        x = read_golden(file, type, !strcmp(found, name));
    fclose(file);
    ck_assert_msg(x != NULL, "no golden tensor %s in %s: %s", name, path, tensor_error());
    return x;
}

/* ---- calling an op by its name ------------------------------------------------------------- */

/* in: the inputs, n of them; a: the attributes */
typedef Tensor *Call(Tensor **in, int n, const double *a);

Shape shape_at(const double *a) {
    Shape shape = {(int)a[0], {0}};
    for (int d = 0; d < shape.ndim; d++) shape.dim[d] = (int64_t)a[1 + d];
    return shape;
}

static Axes axes_at(const double *a) {
    Axes axes = {(int)a[0], {0}};
    for (int d = 0; d < axes.n; d++) axes.axis[d] = (int)a[1 + d];
    return axes;
}

#define CALL(name, ...)                                                                            \
    static Tensor *call_##name(Tensor **in, int n, const double *a) {                              \
        (void)n, (void)a;                                                                          \
        return ag_##name(__VA_ARGS__);                                                             \
    }
#define UNARY(name, ...)        CALL(name, in[0])
#define UNARY_SCALAR(name, ...) CALL(name, in[0], a[0])
#define BINARY(name, ...)       CALL(name, in[0], in[1])
#define COMPARE(name, ...)      CALL(name, in[0], in[1])
#include "../../tensor/kernels/elementwise.def"

CALL(clamp, in[0], a[0], a[1])
CALL(eq_scalar, in[0], a[0])
CALL(ne_scalar, in[0], a[0])
CALL(lt_scalar, in[0], a[0])
CALL(le_scalar, in[0], a[0])
CALL(gt_scalar, in[0], a[0])
CALL(ge_scalar, in[0], a[0])
CALL(logical_not, in[0])
CALL(where, in[0], in[1], in[2])
CALL(masked_fill, in[0], in[1], a[0])
CALL(detach, in[0])
CALL(reshape, in[0], shape_at(a))
CALL(view, in[0], shape_at(a))
CALL(permute, in[0], axes_at(a))
CALL(transpose, in[0], (int)a[0], (int)a[1])
CALL(unsqueeze, in[0], (int)a[0])
CALL(squeeze, in[0], (int)a[0])
CALL(expand, in[0], shape_at(a))
CALL(slice, in[0], (int)a[0], (int64_t)a[1], (int64_t)a[2])
CALL(select, in[0], (int)a[0], (int64_t)a[1])
CALL(flatten, in[0], (int)a[0], (int)a[1])
CALL(cat, in, n, (int)a[0])
CALL(stack, in, n, (int)a[0])
CALL(repeat, in[0], shape_at(a))
CALL(repeat_interleave, in[0], (int64_t)a[0], (int)a[1])
CALL(masked_select, in[0], in[1])
CALL(index_select, in[0], (int)a[0], in[1])
CALL(gather, in[0], (int)a[0], in[1])
CALL(embedding, in[0], in[1])
CALL(tril, in[0], (int)a[0])
CALL(triu, in[0], (int)a[0])
CALL(sum, in[0])
CALL(mean, in[0])
CALL(sum_dims, in[0], axes_at(a + 1), a[0] != 0)
CALL(mean_dims, in[0], axes_at(a + 1), a[0] != 0)
CALL(var_dim, in[0], (int)a[0], a[1] != 0)
CALL(std_dim, in[0], (int)a[0], a[1] != 0)
CALL(cumsum, in[0], (int)a[0])
CALL(max, in[0])
CALL(max_dim, in[0], (int)a[0], a[1] != 0)
CALL(min_dim, in[0], (int)a[0], a[1] != 0)
CALL(logsumexp_dim, in[0], (int)a[0], a[1] != 0)
CALL(argmax_dim, in[0], (int)a[0], a[1] != 0)
CALL(argmax_all, in[0])
CALL(logsumexp, in[0], (int)a[0])
CALL(argmax, in[0], (int)a[0])
CALL(matmul, in[0], in[1])
CALL(bmm, in[0], in[1])
CALL(linear, in[0], in[1], n == 3 ? in[2] : NULL)
CALL(additive_scores, in[0], in[1], in[2], n == 4 ? in[3] : NULL)
CALL(softmax, in[0], (int)a[0])
CALL(log_softmax, in[0], (int)a[0])
CALL(dropout, in[0], a[0])
CALL(cross_entropy, in[0], in[1], (int64_t)a[0], (Reduction)(int)a[1])
CALL(mse_loss, in[0], in[1], (Reduction)(int)a[0])

/* The mask whose parts are in[0] to in[n - 1]. parts says which ones these are, a bit for each: 1
 * valid_lens, 2 keep, 4 window. If parts is 0, the first n parts are there. */
static AttentionMask mask_at(Tensor **in, int n, int parts, bool causal) {
    Tensor *part[3] = {NULL};
    for (int p = 0, i = 0; p < 3 && i < n; p++)
        if (!parts || parts & 1 << p) part[p] = in[i++];
    return (AttentionMask){part[0], part[1], part[2], causal};
}

/* a: scale, causal, heads, parts of the mask; or nothing */
static Tensor *call_masked_softmax(Tensor **in, int n, const double *a) {
    if (a[0] == 0) return ag_masked_softmax(in[0], n == 2 ? in[1] : NULL);
    return ag_attention_weights(in[0], a[0], mask_at(in + 1, n - 1, (int)a[3], a[1] != 0),
                                (int64_t)a[2]);
}

static Tensor *call_attention_weights(Tensor **in, int n, const double *a) {
    return call_masked_softmax(in, n, a);
}

/* a: dropout, causal, parts of the mask */
static Tensor *call_attention(Tensor **in, int n, const double *a) {
    return ag_attention(in[0], in[1], in[2], mask_at(in + 3, n - 3, (int)a[2], a[1] != 0), a[0]);
}

/* The same, and the scale. */
static Tensor *call_attention_scaled(Tensor **in, int n, const double *a) {
    const AttentionMask mask = mask_at(in + 3, n - 3, (int)a[2], a[1] != 0);
    return ag_attention_scaled(in[0], in[1], in[2], mask, a[0], a[3]);
}

/* ag_contiguous returns a contiguous x itself. So x is transposed first. */
static Tensor *call_contiguous(Tensor **in, int n, const double *a) {
    (void)n;
    (void)a;
    return ag_contiguous(ag_transpose(in[0], 0, 1));
}

/* a: eps, and whether the second input is b, without w */
static Tensor *call_layer_norm(Tensor **in, int n, const double *a) {
    Tensor *second = n > 1 ? in[1] : NULL;
    Tensor *third = n > 2 ? in[2] : NULL;
    return a[1] != 0 ? ag_layer_norm(in[0], NULL, second, a[0])
                     : ag_layer_norm(in[0], second, third, a[0]);
}

/* a: size, dim, which slice, how many there are */
static Tensor *call_split(Tensor **in, int n, const double *a) {
    (void)n;
    Tensor *list[8] = {NULL};
    return ag_split(in[0], (int64_t)a[0], (int)a[1], list, (int)a[3]) ? list[(int)a[2]] : NULL;
}

/* a: the type, and whether to convert the result back to the type of x */
static Tensor *call_to(Tensor **in, int n, const double *a) {
    (void)n;
    Tensor *y = ag_to(in[0], (DType)(int)a[0]);
    return y && a[1] != 0 ? ag_to(y, in[0]->dtype) : y;
}

static const struct {
    const char *name;
    Call *call;
} calls[] = {
#define EACH(name)      {#name, call_##name},
#define OP(name)        EACH(name)
#define COMPOSITE(name) EACH(name)
#include "../../tensor/kernels/elementwise.def"
#include "../../autograd/ops.def"
};

Tensor *call_op(const char *name, Tensor **in, int n, const double *number) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name)) return calls[i].call(in, n, number);
    ck_abort_msg("no op is called ag_%s", name);
    return NULL;
}

const Op *find_op(const char *name) {
    for (int i = 0; ag_ops[i]; i++)
        if (!strcmp(ag_ops[i]->name, name)) return ag_ops[i];
    return NULL;
}

int inputs_of(const Op *op) {
    int n = 0;
    while (n < OP_INPUTS && op->in[n].name) n++;
    return n;
}

bool needs_elements(const char *op) { return !strcmp(op, "max") || !strcmp(op, "argmax_all"); }

/* ---- samples ------------------------------------------------------------------------------- */

/* One input of a sample: what it holds, and its sizes. */
#define REAL(...)                                                                                  \
    {                                                                                              \
        'r', {                                                                                     \
            sizeof((int[]){__VA_ARGS__}) / sizeof(int), { __VA_ARGS__ }                            \
        }                                                                                          \
    }
#define MASK(...)                                                                                  \
    {                                                                                              \
        'm', {                                                                                     \
            sizeof((int[]){__VA_ARGS__}) / sizeof(int), { __VA_ARGS__ }                            \
        }                                                                                          \
    }
#define LENGTHS(...)                                                                               \
    {                                                                                              \
        'l', {                                                                                     \
            sizeof((int[]){__VA_ARGS__}) / sizeof(int), { __VA_ARGS__ }                            \
        }                                                                                          \
    }
#define INDEX(...)                                                                                 \
    {                                                                                              \
        'i', {                                                                                     \
            sizeof((int[]){__VA_ARGS__}) / sizeof(int), { __VA_ARGS__ }                            \
        }                                                                                          \
    }
#define CONSTANT(...)                                                                              \
    {                                                                                              \
        'c', {                                                                                     \
            sizeof((int[]){__VA_ARGS__}) / sizeof(int), { __VA_ARGS__ }                            \
        }                                                                                          \
    }
#define REAL_SCALAR                                                                                \
    {                                                                                              \
        'r', {                                                                                     \
            0, { 0 }                                                                               \
        }                                                                                          \
    }
#define INDEX_SCALAR                                                                               \
    {                                                                                              \
        'i', {                                                                                     \
            0, { 0 }                                                                               \
        }                                                                                          \
    }
#define MASK_SCALAR                                                                                \
    {                                                                                              \
        'm', {                                                                                     \
            0, { 0 }                                                                               \
        }                                                                                          \
    }

/* The samples of all ops that are not rows of elementwise.def; these rows follow below. */
static const Sample structured[] = {
    {"logical_not", 1, {REAL(2, 3)}, {0}},
    {"logical_not", 1, {REAL_SCALAR}, {0}},
    {"logical_not", 1, {REAL(2, 0)}, {0}},
    {"to", 1, {REAL(2, 3)}, {F32, 1}},
    {"to", 1, {REAL_SCALAR}, {F32, 1}},
    {"to", 1, {REAL(2, 0)}, {F32, 1}},
    {"where", 3, {MASK(2, 3), REAL(2, 3), REAL(2, 3)}, {0}},
    {"where", 3, {MASK(3), REAL(2, 1), REAL_SCALAR}, {0}},
    {"where", 3, {MASK(0, 3), REAL(1, 3), REAL(0, 1)}, {0}},
    {"masked_fill", 2, {REAL(2, 3), MASK(2, 3)}, {-3}},
    {"masked_fill", 2, {REAL(3), MASK(2, 1)}, {0.5}},
    {"masked_fill", 2, {REAL_SCALAR, MASK_SCALAR}, {2}},
    {"detach", 1, {REAL(2, 3)}, {0}},
    {"reshape", 1, {REAL(2, 6)}, {3, 3, 2, 2}},
    {"reshape", 1, {REAL(2, 6)}, {2, -1, 4}},
    {"reshape", 1, {REAL_SCALAR}, {2, 1, 1}},
    {"reshape", 1, {REAL(0, 3)}, {2, 2, 0}},
    {"view", 1, {REAL(2, 6)}, {3, 2, 3, 2}},
    {"view", 1, {REAL(1)}, {0}},
    {"contiguous", 1, {REAL(2, 3)}, {0}},
    {"permute", 1, {REAL(2, 3, 2)}, {3, 2, 0, 1}},
    {"permute", 1, {REAL_SCALAR}, {0}},
    {"transpose", 1, {REAL(2, 3)}, {0, 1}},
    {"transpose", 1, {REAL(2, 0, 3)}, {-1, 0}},
    {"transpose", 1, {REAL_SCALAR}, {0, -1}},
    {"unsqueeze", 1, {REAL(2, 3)}, {1}},
    {"unsqueeze", 1, {REAL_SCALAR}, {-1}},
    {"squeeze", 1, {REAL(2, 1, 3)}, {1}},
    {"squeeze", 1, {REAL(2, 3)}, {0}},
    {"squeeze", 1, {REAL_SCALAR}, {-1}},
    {"expand", 1, {REAL(2, 1)}, {3, 2, 2, 3}},
    {"expand", 1, {REAL(2, 1)}, {2, 2, 5}},
    {"expand", 1, {REAL(3)}, {2, 0, -1}},
    {"expand", 1, {REAL_SCALAR}, {1, 4}},
    {"slice", 1, {REAL(3, 4)}, {1, 1, 3}},
    {"slice", 1, {REAL(3, 4)}, {0, -2, 100}},
    {"slice", 1, {REAL(3, 4)}, {0, 2, 1}},
    {"cat", 2, {REAL(2, 3), REAL(2, 3)}, {0}},
    {"cat", 4, {REAL(2, 1), REAL(2, 2), REAL(2, 0), REAL(2, 3)}, {-1}},
    {"cat", 1, {REAL(3)}, {0}},
    {"cat", 3, {REAL(0), REAL(2, 3), REAL(0)}, {1}},
    {"cat", 7, {REAL(1), REAL(1), REAL(1), REAL(2), REAL(1), REAL(1), REAL(1)}, {0}},
    {"repeat", 1, {REAL(2, 3)}, {2, 2, 1}},
    {"repeat", 1, {REAL(2)}, {3, 2, 1, 3}},
    {"repeat", 1, {REAL_SCALAR}, {1, 3}},
    {"repeat", 1, {REAL(3)}, {1, 0}},
    {"repeat_interleave", 1, {REAL(2, 3)}, {2, 0}},
    {"repeat_interleave", 1, {REAL(2, 3)}, {3, -1}},
    {"repeat_interleave", 1, {REAL(2, 3)}, {0, 1}},
    {"masked_select", 2, {REAL(2, 3), MASK(2, 3)}, {0}},
    {"masked_select", 2, {REAL(2, 1), MASK(3)}, {0}},
    {"masked_select", 2, {REAL_SCALAR, MASK_SCALAR}, {0}},
    {"masked_select", 2, {REAL(0, 3), MASK(1, 3)}, {0}},
    {"index_select", 2, {REAL(3, 4), INDEX(5)}, {0}},
    {"index_select", 2, {REAL(2, 3, 2), INDEX(2)}, {-2}},
    {"index_select", 2, {REAL(2, 3), INDEX_SCALAR}, {1}},
    {"index_select", 2, {REAL_SCALAR, INDEX(1)}, {-1}},
    {"index_select", 2, {REAL(2, 0), INDEX(0)}, {1}},
    {"index_select", 2, {REAL(0, 3), INDEX(2)}, {1}},
    {"gather", 2, {REAL(3, 4), INDEX(5, 2)}, {0}},
    {"gather", 2, {REAL(2, 3, 2), INDEX(1, 4, 2)}, {1}},
    {"gather", 2, {REAL(2, 2, 3), INDEX(2, 1, 4)}, {-1}},
    {"gather", 2, {REAL_SCALAR, INDEX(2)}, {0}},
    {"gather", 2, {REAL(3), INDEX_SCALAR}, {0}},
    {"gather", 2, {REAL(2, 3), INDEX(0, 3)}, {0}},
    {"embedding", 2, {REAL(4, 3), INDEX(6)}, {0}},
    {"embedding", 2, {REAL(3, 2), INDEX(2, 3)}, {0}},
    {"embedding", 2, {REAL(3, 2), INDEX_SCALAR}, {0}},
    {"embedding", 2, {REAL(3, 0), INDEX(2)}, {0}},
    {"embedding", 2, {REAL(0, 2), INDEX(3, 0)}, {0}},
    {"tril", 1, {REAL(3, 4)}, {0}},
    {"tril", 1, {REAL(2, 3, 2)}, {-1}},
    {"tril", 1, {REAL(0, 2)}, {0}},
    {"triu", 1, {REAL(3, 4)}, {1}},
    {"triu", 1, {REAL(2, 2, 3)}, {-1}},
    {"sum", 1, {REAL(2, 3)}, {0}},
    {"sum", 1, {REAL_SCALAR}, {0}},
    {"sum", 1, {REAL(2, 0)}, {0}},
    {"mean", 1, {REAL(2, 3)}, {0}},
    {"mean", 1, {REAL_SCALAR}, {0}},
    {"sum_dims", 1, {REAL_SCALAR}, {1, 1, -1}},
    {"sum_dims", 1, {REAL(2, 3, 2)}, {0, 2, 0, 2}},
    {"sum_dims", 1, {REAL(2, 3)}, {1, 1, -1}},
    {"sum_dims", 1, {REAL(2, 0)}, {0, 1, 1}},
    {"mean_dims", 1, {REAL_SCALAR}, {0, 1, -1}},
    {"mean_dims", 1, {REAL(2, 3, 2)}, {0, 2, 0, 2}},
    {"mean_dims", 1, {REAL(2, 3)}, {1, 1, 1}},
    {"mean_dims", 1, {REAL(0, 3)}, {0, 1, 1}},
    {"var_dim", 1, {REAL(3, 4)}, {1, 0}},
    {"var_dim", 1, {REAL(3, 2, 2)}, {0, 1}},
    {"var_dim", 1, {REAL(3, 0)}, {0, 0}},
    {"std_dim", 1, {REAL(3, 4)}, {1, 0}},
    {"std_dim", 1, {REAL(3, 2, 2)}, {0, 1}},
    {"std_dim", 1, {REAL(3, 0)}, {0, 0}},
    {"cumsum", 1, {REAL(3, 4)}, {1}},
    {"cumsum", 1, {REAL(3, 2, 2)}, {0}},
    {"cumsum", 1, {REAL_SCALAR}, {-1}},
    {"cumsum", 1, {REAL(2, 0)}, {0}},
    {"max", 1, {REAL(3, 4)}, {0}},
    {"max", 1, {REAL_SCALAR}, {0}},
    {"min_dim", 1, {REAL(2, 4)}, {-1, 0}},
    {"min_dim", 1, {REAL(3, 2, 2)}, {0, 1}},
    {"min_dim", 1, {REAL_SCALAR}, {0, 0}},
    {"min_dim", 1, {REAL(0, 3)}, {1, 0}},
    {"max_dim", 1, {REAL(2, 4)}, {-1, 0}},
    {"max_dim", 1, {REAL(3, 2, 2)}, {0, 1}},
    {"max_dim", 1, {REAL_SCALAR}, {0, 0}},
    {"max_dim", 1, {REAL(0, 3)}, {1, 0}},
    {"logsumexp", 1, {REAL(2, 4)}, {1}},
    {"logsumexp", 1, {REAL(3, 2, 2)}, {0}},
    {"logsumexp", 1, {REAL_SCALAR}, {-1}},
    {"argmax", 1, {REAL(2, 4)}, {-1}},
    {"argmax", 1, {REAL_SCALAR}, {0}},
    {"matmul", 2, {REAL(2, 3), REAL(3, 2)}, {0}},
    {"matmul", 2, {REAL(3, 3), REAL(3, 3)}, {0}},
    {"matmul", 2, {REAL(3), REAL(3)}, {0}},
    {"matmul", 2, {REAL(3), REAL(2, 3, 2)}, {0}},
    {"matmul", 2, {REAL(2, 2, 3), REAL(3)}, {0}},
    {"matmul", 2, {REAL(2, 1, 2, 3), REAL(2, 3, 1)}, {0}},
    {"matmul", 2, {REAL(2, 0), REAL(0, 3)}, {0}},
    {"matmul", 2, {REAL(0, 2, 3), REAL(3, 2)}, {0}},
    {"bmm", 2, {REAL(2, 2, 3), REAL(2, 3, 2)}, {0}},
    {"bmm", 2, {REAL(2, 2, 2), REAL(2, 2, 2)}, {0}},
    {"bmm", 2, {REAL(1, 1, 1), REAL(1, 1, 4)}, {0}},
    {"bmm", 2, {REAL(2, 3, 0), REAL(2, 0, 2)}, {0}},
    {"linear", 3, {REAL(4, 3), REAL(2, 3), REAL(2)}, {0}},
    {"linear", 3, {REAL(2, 2, 3), REAL(4, 3), REAL(4)}, {0}},
    {"linear", 2, {REAL(3, 3), REAL(3, 3)}, {0}},
    {"linear", 3, {REAL(3), REAL(2, 3), REAL(2)}, {0}},
    {"linear", 3, {REAL(0, 3), REAL(2, 3), REAL(2)}, {0}},
    {"linear", 3, {REAL(2, 0), REAL(3, 0), REAL(3)}, {0}},
    {"softmax", 1, {REAL(2, 4)}, {-1}},
    {"softmax", 1, {REAL(2, 3, 2)}, {1}},
    {"softmax", 1, {REAL_SCALAR}, {0}},
    {"softmax", 1, {REAL(2, 0)}, {1}},
    {"log_softmax", 1, {REAL(2, 4)}, {-1}},
    {"log_softmax", 1, {REAL(3, 2)}, {0}},
    {"log_softmax", 1, {REAL_SCALAR}, {-1}},
    {"masked_softmax",
     4,
     {REAL(4, 3, 4), LENGTHS(2), MASK(2, 1, 3, 4), CONSTANT(2, 3, 4)},
     {0.5, 1, 2}},
    {"masked_softmax", 2, {REAL(3, 2, 4), LENGTHS(3)}, {0}},
    {"masked_softmax", 2, {REAL(2, 3, 4), LENGTHS(2, 3)}, {0}},
    {"masked_softmax", 1, {REAL(2, 2, 3)}, {0}},
    {"masked_softmax", 2, {REAL(2, 2, 0), LENGTHS(2)}, {0}},
    {"masked_softmax", 2, {REAL(0, 2, 3), LENGTHS(0)}, {0}},
    {"cross_entropy", 2, {REAL(3, 4), INDEX(3)}, {-100, 2}},
    {"cross_entropy", 2, {REAL(6, 3), INDEX(6)}, {1, 2}},
    {"cross_entropy", 2, {REAL(3, 4), INDEX(3)}, {-100, 1}},
    {"cross_entropy", 2, {REAL(4), INDEX_SCALAR}, {-1, 0}},
    {"cross_entropy", 2, {REAL(4, 2, 3), INDEX(4, 3)}, {0, 0}},
    {"cross_entropy", 2, {REAL(2, 3, 2, 2), INDEX(2, 2, 2)}, {0, 2}},
    {"cross_entropy", 2, {REAL(0, 3), INDEX(0)}, {0, 1}},
    {"cross_entropy", 2, {REAL(2, 3, 0), INDEX(2, 0)}, {0, 0}},
    {"layer_norm", 3, {REAL(3, 4), REAL(4), REAL(4)}, {1e-5}},
    {"layer_norm", 3, {REAL(2, 2, 3), REAL(2, 3), REAL(2, 3)}, {0.1}},
    {"layer_norm", 2, {REAL(2, 2, 3), REAL(3)}, {1e-5}},
    {"layer_norm", 1, {REAL(2, 2, 3)}, {1e-5}},
    {"layer_norm", 2, {REAL(2, 3), REAL(3)}, {1e-5, 1}},
    {"layer_norm", 2, {REAL(2, 2, 3), REAL(2, 3)}, {1e-5, 1}},
    {"layer_norm", 3, {REAL(5), REAL(5), REAL(5)}, {0.01}},
    {"layer_norm", 3, {REAL(3, 1), REAL(1), REAL(1)}, {0.5}},
    {"layer_norm", 3, {REAL(0, 3), REAL(3), REAL(3)}, {1e-5}},
    {"layer_norm", 3, {REAL(2, 0), REAL(0), REAL(0)}, {1e-5}},
    {"masked_softmax", 2, {REAL(2, 2, 3, 4), MASK(4)}, {1, 0, 1, 2}},
    {"masked_softmax", 2, {REAL(4, 2, 3, 3), CONSTANT(2, 3, 3)}, {-2, 1, 1, 4}},
    {"masked_softmax", 2, {REAL(6, 2, 3), MASK(2, 1, 2, 1)}, {0.5, 0, 3, 2}},
    {"masked_softmax", 1, {REAL(2, 3, 2)}, {3, 1, 1}},
    {"masked_softmax", 2, {REAL(2, 2, 0), MASK(2, 0)}, {1, 1, 1, 2}},
    {"additive_scores", 3, {REAL(2, 3, 4), REAL(2, 5, 4), REAL(1, 4)}, {0}},
    {"additive_scores", 3, {REAL(1, 2, 3), REAL(1, 2, 3), REAL(1, 3)}, {0}},
    {"additive_scores", 3, {REAL(2, 1, 1), REAL(2, 2, 1), REAL(1, 1)}, {0}},
    {"additive_scores", 3, {REAL(2, 0, 3), REAL(2, 2, 3), REAL(1, 3)}, {0}},
    {"additive_scores", 3, {REAL(2, 2, 3), REAL(2, 0, 3), REAL(1, 3)}, {0}},
    {"additive_scores", 3, {REAL(0, 2, 3), REAL(0, 2, 3), REAL(1, 3)}, {0}},
    {"additive_scores", 3, {REAL(2, 2, 0), REAL(2, 2, 0), REAL(1, 0)}, {0}},
    {"additive_scores", 4, {REAL(2, 3, 4), REAL(2, 5, 4), REAL(1, 4), LENGTHS(2)}, {0}},
    {"additive_scores", 4, {REAL(2, 3, 4), REAL(2, 5, 4), REAL(1, 4), LENGTHS(2, 3)}, {0}},
    {"additive_scores", 4, {REAL(2, 2, 3), REAL(2, 0, 3), REAL(1, 3), LENGTHS(2)}, {0}},
    {"attention",
     6,
     {REAL(2, 2, 3, 2), REAL(2, 2, 4, 2), REAL(2, 2, 4, 3), LENGTHS(2), MASK(2, 1, 3, 4),
      CONSTANT(2, 3, 4)},
     {0.4, 1}},
    {"attention", 3, {REAL(2, 3, 2), REAL(2, 3, 2), REAL(2, 3, 2)}, {0, 1}},
    {"attention", 4, {REAL(2, 3, 2), REAL(2, 5, 2), REAL(2, 5, 1), LENGTHS(2, 3)}, {0, 0, 1}},
    {"attention",
     4,
     {REAL(1, 2, 1, 2), REAL(1, 2, 3, 2), REAL(1, 2, 3, 2), MASK(2, 1, 3)},
     {0.5, 0, 2}},
    {"attention", 4, {REAL(4, 2, 3), REAL(4, 2, 3), REAL(4, 2, 3), CONSTANT(2, 2, 2)}, {1, 0, 4}},
    {"attention", 4, {REAL(4, 2, 3), REAL(4, 2, 3), REAL(4, 2, 1), CONSTANT(2, 2, 2)}, {0, 0, 4}},
    {"attention", 3, {REAL(2, 2, 3), REAL(2, 0, 3), REAL(2, 0, 2)}, {0.5}},
    {"attention", 3, {REAL(0, 2, 3), REAL(0, 4, 3), REAL(0, 4, 2)}, {0.5}},
    {"dropout", 1, {REAL(4, 5)}, {0.4}},
    {"dropout", 1, {REAL(4, 5)}, {1}},
    {"dropout", 1, {REAL_SCALAR}, {0.5}},
    {"dropout", 1, {REAL(0)}, {0.5}},
};

/* The samples of every row of elementwise.def. */
static const Sample one_input[] = {
    {NULL, 1, {REAL(3, 4)}, {3}},
    {NULL, 1, {REAL_SCALAR}, {-0.5}},
    {NULL, 1, {REAL(2, 0, 3)}, {2}},
};
static const Sample two_inputs[] = {
    {NULL, 2, {REAL(2, 3), REAL(2, 3)}, {0}},    {NULL, 2, {REAL(2, 3), REAL(3)}, {0}},
    {NULL, 2, {REAL(2, 1), REAL(1, 3)}, {0}},    {NULL, 2, {REAL_SCALAR, REAL(2, 2)}, {0}},
    {NULL, 2, {REAL(3, 1, 2), REAL(2, 1)}, {0}}, {NULL, 2, {REAL_SCALAR, REAL_SCALAR}, {0}},
    {NULL, 2, {REAL(0, 3), REAL(1, 3)}, {0}},    {NULL, 2, {REAL(2, 1), REAL(2, 0)}, {0}},
};

enum { SAMPLES_MAX = 512 };

/* Appends n samples like these for op. */
static int append(Sample *to, int count, const Sample *like, int n, const Op *op) {
    for (int i = 0; i < n; i++, count++) {
        assert(count < SAMPLES_MAX - 1);
        to[count] = like[i];
        to[count].op = op->name;
        for (int k = 0; k < like[i].n; k++)
            if (op->in[k].type == BOOLEAN) to[count].in[k].kind = 'm';
    }
    return count;
}

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* This runs before the first test, where the asserts of Check do not work. */
const Sample *samples(void) {
    static Sample all[SAMPLES_MAX];
    int count = 0;
    if (all[0].op) return all;
    for (int i = 0; ag_ops[i]; i++) {
        const Op *op = ag_ops[i];
        if (op->forward != ag_elementwise_forward) continue;
        count = inputs_of(op) == 1 ? append(all, count, one_input, COUNT(one_input), op)
                                   : append(all, count, two_inputs, COUNT(two_inputs), op);
    }
    assert(count + COUNT(structured) < SAMPLES_MAX); /* the last one is the end */
    for (int i = 0; i < COUNT(structured); i++) all[count++] = structured[i];
    return all;
}

/* Lengths from 0 to K + 1; the K keys are columns of the scores or rows of k. */
static Tensor *draw_lengths(const Sample *sample, Shape shape) {
    const bool rows = !strcmp(sample->op, "attention");
    const Shape keys = sample->in[rows].shape;
    return tensor_randint(0, keys.dim[keys.ndim - 1 - rows] + 2, shape);
}

/* Indices into the dimension from which the op gathers. */
static Tensor *draw_index(const Sample *sample, Shape shape) {
    const Shape x = sample->in[0].shape;
    int dim = (int)sample->number[0];
    if (!strcmp(sample->op, "embedding")) dim = 0;
    if (!strcmp(sample->op, "cross_entropy")) dim = x.ndim > 1;
    if (dim < 0) dim += x.ndim;
    const int64_t size = dim >= 0 && dim < x.ndim ? x.dim[dim] : 1; /* some samples are wrong on
                                                                     * purpose */
    return tensor_randint(0, size ? size : 1, shape);
}

Tensor *sample_input(const Sample *sample, int i, DType dtype) {
    const Op *op = find_op(sample->op);
    const bool ranged = op && op->low < op->high;
    const Shape shape = sample->in[i].shape;
    const DType before = tensor_default_dtype();
    Tensor *x = NULL;
    tensor_set_default_dtype(F64);
    if (sample->in[i].kind == 'm') x = tensor_bernoulli(0.5, shape);
    else if (sample->in[i].kind == 'l') x = draw_lengths(sample, shape);
    else if (sample->in[i].kind == 'i') x = draw_index(sample, shape);
    else x = tensor_uniform(ranged ? op->low : -2, ranged ? op->high : 2, shape);
    tensor_set_default_dtype(before);
    if (!x || x->dtype != F64 || dtype == F64) return x;
    Tensor *converted = tensor_to(x, dtype);
    tensor_release(x);
    return converted;
}

/* ---- parameters of a model ------------------------------------------------------------------- */

int parameter_slots(void *module, Tensor ***slots, int capacity) {
    int n = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(module, "", &p); n++)
        if (n < capacity) slots[n] = p->slot;
    return n;
}

/* ---- views with any strides ------------------------------------------------------------------ */

/* No element is reached through the stride of a dimension of size 1, or of a tensor without
 * elements: it may have any value, but not a huge one, because kernels add it to pointers. */
static bool stride_fits(Shape shape, int d, int64_t stride) {
    const int64_t most = INT64_C(1) << 32;
    const bool followed = shape.dim[d] > 1 && tensor_shape_numel(shape) > 0;
    return followed || (stride <= most && stride >= -most);
}

Tensor *tensor_as_strided(const Tensor *x, Shape shape, const int64_t *stride, int64_t offset) {
    if (!tensor_check_readable("as_strided", x)) return NULL;
    const int64_t elements = x->storage->size / dtype_size(x->dtype);
    int64_t steps[TENSOR_MAX_DIMS] = {0}, low = offset, high = offset;
    bool fits = offset >= 0 && shape.ndim >= 0 && shape.ndim <= TENSOR_MAX_DIMS;
    for (int d = 0; fits && d < shape.ndim; d++) {
        int64_t reach = 0;
        steps[d] = stride[d];
        fits = shape.dim[d] >= 0 && stride_fits(shape, d, stride[d]) &&
               !__builtin_mul_overflow(shape.dim[d] - 1, stride[d], &reach) &&
               !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    if (fits && tensor_shape_numel(shape) == 0) fits = offset <= elements;
    else fits = fits && low >= 0 && high < elements;
    if (!fits) return tensor_fail("as_strided: outside of the storage");
    return tensor_view_make(x, shape, steps,
                            (char *)x->storage->bytes + offset * dtype_size(x->dtype));
}
