/* test_ops.c - every op of the table: is its gradient the slope, are its results the same in any
 * memory layout, and does every mistake set an error message? (test_golden.c compares the values
 * with PyTorch's.)
 *
 * The tests walk over the rows of ops.def. They fail if an op of the library has no row, or a row
 * no sample, no wrong shape or no line in autograd/README.md.
 *
 * Run from the root of the repository, where the sources and the README are found. */
#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"

/* c[i] = (7 i mod 11 - 5) / 4: a cotangent with different numbers. */
static Tensor *cotangent(Shape shape, DType dtype) {
    Tensor *c = tensor_make(shape, dtype);
    ck_assert_ptr_nonnull(c);
    for (int64_t i = 0; i < tensor_numel(c); i++) {
        double value = (double)(i * 7 % 11 - 5) / 4;
        if (dtype == F32) ((float *)c->data)[i] = (float)value;
        else ((double *)c->data)[i] = value;
    }
    return c;
}

enum { ELEMENTS_MAX = 256 };

/* ---- every op has what it needs to be tested ----------------------------------------------- */

static const Sample *sample_of(const char *op) {
    const Sample *s = samples();
    while (s->op && strcmp(s->op, op)) s++;
    return s->op ? s : NULL;
}

static bool file_has(const char *path, const char *text) {
    char line[1024];
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "run me from the root of the repository");
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) found = strstr(line, text) != NULL;
    fclose(file);
    return found;
}

static void expect_documented(const char *op) {
    char text[64];
    snprintf(text, sizeof text, "`ag_%s(", op);
    ck_assert_msg(file_has("autograd/README.md", text), "no %s in autograd/README.md", text);
    snprintf(text, sizeof text, "ag_%s(Tensor ", op); /* as ag_split and all others are declared */
    ck_assert_msg(file_has("autograd/autograd.h", text), "no %s in autograd/autograd.h", text);
}

CASE("table")
LOOP_TEST(every_op_has_a_sample_and_a_line_in_the_readme, number_of_ops()) {
    const Op *op = all_ops[_i];
    expect_documented(op->name);
    ck_assert_msg(sample_of(op->name) != NULL, "%s has no SAMPLES in tests/suites/library/ops.def",
                  op->name);
    ck_assert_msg(!op->backward == !op->grad_fn, "%s: backward and grad_fn", op->name);
}

/* The i-th function of other ops; it has no Op. */
static const OpRow *composite(int i) {
    const OpRow *row = op_rows;
    while (row->op || i-- > 0) row++;
    return row;
}

static int composite_count(void) {
    int n = 0;
    for (const OpRow *row = op_rows; row->name; row++) n += !row->op;
    return n;
}

LOOP_TEST(every_composite_has_a_line_in_the_readme, composite_count()) {
    expect_documented(composite(_i)->name);
}

TEST(names_are_unique) {
    for (const OpRow *row = op_rows; row->name; row++) {
        ck_assert_ptr_eq(op_row(row->name), row);
        ck_assert_msg(!row->op || !strcmp(row->op->name, row->name), "%s is called %s", row->name,
                      row->op->name);
        ck_assert_msg(row->torch, "%s has no TORCH in tests/suites/library/ops.def", row->name);
    }
}

static void expect_row(const char *source, const char *op) {
    ck_assert_msg(op_row(op) != NULL, "%s: %s has no row in tests/suites/library/ops.def", source,
                  op);
}

/* The sections of a file, which begin with OP_TEXT(name) or DEFINE_OP(name. */
static int expect_rows_of_file(const char *path) {
    char line[1024], name[64];
    int found = 0;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "OP_TEXT(%63[a-z0-9_]", name) != 1 &&
            sscanf(line, "DEFINE_OP(%63[a-z0-9_]", name) != 1)
            continue;
        expect_row(path, name);
        found++;
    }
    fclose(file);
    return found;
}

TEST(every_op_of_the_library_has_a_row) {
    static const char *const folders[] = {"autograd/ops", "autograd/more"};
    static const char *const elementwise[] = {
#define EACH(name) #name,
#include "../../../tensor/kernels/elementwise.def"
#undef EACH
    };
    int found = COUNT(elementwise), rows = 0;
    for (int i = 0; i < COUNT(elementwise); i++)
        expect_row("tensor/kernels/elementwise.def", elementwise[i]);
    for (int i = 0; i < COUNT(folders); i++) {
        DIR *folder = opendir(folders[i]);
        ck_assert_msg(folder != NULL, "run me from the root of the repository");
        for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
            const char *dot = strrchr(entry->d_name, '.');
            if (dot && !strcmp(dot, ".c"))
                found += expect_rows_of_file(format("%s/%s", folders[i], entry->d_name));
        }
        closedir(folder);
    }
    for (const OpRow *row = op_rows; row->name; row++) rows++;
    ck_assert_int_ge(found, rows);
}

/* ---- the walk: inputs of a sample in any layout -------------------------------------------- */

typedef enum { DENSE, PERMUTED, SLICED, FLIPPED, EXPANDED, LAYOUTS } Layout;

/* x's elements at these strides of a larger buffer. Takes over x. */
static Tensor *laid_out(Tensor *x, Shape buffer, const int64_t *stride, int64_t offset) {
    Tensor *bytes = tensor_make(buffer, x->dtype);
    Tensor *view = tensor_as_strided(bytes, x->shape, stride, offset);
    ck_assert_msg(view != NULL, "%s", tensor_error());
    ck_assert(tensor_fill(bytes, 1e3) && tensor_copy_from(view, x));
    RELEASE(bytes, x);
    return view;
}

/* Every second element of a larger tensor, from the second one on. */
static Tensor *sliced(Tensor *x) {
    Shape buffer = x->shape;
    int64_t stride[TENSOR_MAX_DIMS], offset = 0;
    for (int d = 0; d < x->shape.ndim; d++) buffer.dim[d] = 2 * x->shape.dim[d] + 1;
    tensor_shape_strides(buffer, stride);
    for (int d = 0; d < x->shape.ndim; d++) {
        offset += stride[d];
        stride[d] *= 2;
    }
    return laid_out(x, buffer, stride, tensor_numel(x) ? offset : 0);
}

/* All dimensions backwards. */
static Tensor *flipped(Tensor *x) {
    int64_t stride[TENSOR_MAX_DIMS], offset = 0;
    tensor_shape_strides(x->shape, stride);
    for (int d = 0; d < x->shape.ndim; d++) {
        if (x->shape.dim[d] > 0) offset += (x->shape.dim[d] - 1) * stride[d];
        stride[d] = -stride[d];
    }
    return laid_out(x, x->shape, stride, tensor_numel(x) ? offset : 0);
}

/* x[0:1], the first row. The op gets it expanded to x's shape. */
static Tensor *first_row(Tensor *x) {
    if (x->shape.ndim == 0 || x->shape.dim[0] == 0) return x;
    Tensor *view = tensor_view_narrow(x, 0, 0, 1);
    Tensor *row = tensor_clone(view);
    RELEASE(view, x);
    return row;
}

static Tensor *in_layout(Tensor *x, Layout layout) {
    switch (layout) {
    case PERMUTED: return permuted(x);
    case SLICED: return sliced(x);
    case FLIPPED: return flipped(x);
    case EXPANDED: return first_row(x);
    default: return x;
    }
}

/* The inputs of a sample; bit i of grads says whether the i-th one requires a gradient. */
static void make_inputs(const Sample *s, Layout layout, unsigned grads, Tensor **in) {
    tensor_manual_seed(3);
    for (int i = 0; i < s->n; i++) {
        in[i] = in_layout(sample_input(s, i, F64), layout);
        ck_assert_msg(in[i] != NULL, "%s: %s", s->op, tensor_error());
        if (s->in[i].kind == 'r' && grads & 1u << i) ag_requires_grad(in[i]);
    }
}

static Tensor *applied[SAMPLE_INPUTS]; /* the inputs of the op in the last apply_sample */

/* Applies the sample's op. Inputs of one row are expanded first. */
static Tensor *apply_sample(Tensor **in, void *ctx) {
    const Sample *s = ctx;
    Tensor **x = applied;
    for (int i = 0; i < s->n; i++) {
        x[i] = in[i];
        if (in[i] && !shape_equal(in[i]->shape, s->in[i].shape))
            x[i] = ag_expand(in[i], s->in[i].shape);
    }
    return call_op(s->op, x, s->n, s->number);
}

/* A conversion to float32 and back is linear up to rounding, so a longer step is used. */
static void check_sample(const Sample *s, Tensor **in, const char *how) {
    const GradcheckOptions usual = {0}, rounded = {.eps = 1, .rtol = 1e-5};
    bool right = ag_gradcheck(apply_sample, in, s->n, (void *)(uintptr_t)s,
                              strcmp(s->op, "to") ? usual : rounded);
    ck_assert_msg(right, "%s %s, %s: %s", s->op, tensor_shape_text(s->in[0].shape), how,
                  tensor_error());
}

static bool has_gradient(const Sample *s) { return find_op(s->op)->backward != NULL; }

static unsigned real_inputs(const Sample *s) {
    unsigned bits = 0;
    for (int i = 0; i < s->n; i++)
        if (s->in[i].kind == 'r') bits |= 1u << i;
    return bits;
}

/* Defines a test for every op; the body that follows runs for each sample of the op. */
#define WALK(name)                                                                                 \
    static void name##_of(const Sample *s);                                                        \
    LOOP_TEST(name, number_of_ops()) { each_sample(_i, name##_of); }                               \
    static void name##_of(const Sample *s)

CASE("walk")
WALK(gradients_are_slopes_in_any_layout) {
    static const char *const how[] = {"dense", "permuted", "sliced", "flipped", "expanded"};
    if (!has_gradient(s)) return;
    for (Layout layout = DENSE; layout < LAYOUTS; layout++) {
        /* view refuses an expanded row, and the maxima of equal rows would tie. */
        bool skips_expanded = !strcmp(s->op, "view") || !strcmp(s->op, "max_dim") ||
                              !strcmp(s->op, "min_dim") || !strcmp(s->op, "max");
        if (layout == EXPANDED && skips_expanded) continue;
        Tensor *in[SAMPLE_INPUTS];
        make_inputs(s, layout, real_inputs(s), in);
        check_sample(s, in, how[layout]);
        release_all(in, s->n);
    }
}

WALK(some_inputs_may_do_without_a_gradient) {
    unsigned all = real_inputs(s);
    Tensor *in[SAMPLE_INPUTS];
    for (unsigned grads = 0; grads <= all; grads++) {
        if ((grads & all) != grads) continue;
        make_inputs(s, DENSE, grads, in);
        ck_assert(tape_begin());
        Tensor *y = apply_sample(in, (void *)(uintptr_t)s);
        ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
        ck_assert(y->requires_grad == (has_gradient(s) && grads != 0));
        tape_end();
        if (grads && has_gradient(s)) check_sample(s, in, "some inputs without gradients");
        for (int i = 0; i < s->n; i++) ck_assert_ptr_null(in[i]->grad);
        release_all(in, s->n);
    }
}

/* Replaces all float inputs of the shape of the first one by the first one. */
static void make_same(const Sample *s, Tensor **in) {
    Tensor *first = NULL;
    for (int i = 0; i < s->n; i++) {
        if (s->in[i].kind != 'r') continue;
        if (!first) first = in[i];
        if (in[i] == first || !shape_equal(in[i]->shape, first->shape)) continue;
        tensor_release(in[i]);
        in[i] = tensor_retain(first);
    }
}

/* a op a: both contributions are added to one leaf. */
WALK(the_same_tensor_may_come_twice) {
    unsigned all = real_inputs(s);
    Tensor *in[SAMPLE_INPUTS];
    if (!has_gradient(s) || !(all & (all - 1))) return; /* fewer than two */
    make_inputs(s, DENSE, all, in);
    make_same(s, in);
    check_sample(s, in, "the same tensor twice");
    release_all(in, s->n);
}

/* ---- functions of other ops ------------------------------------------------------------------ */

LOOP_TEST(gradients_of_composites_are_slopes, composite_count()) {
    const OpRow *row = composite(_i);
    int found = row->no_gradient;
    for (const Sample *s = samples_of_composites(); s->op; s++) {
        if (strcmp(s->op, row->name)) continue;
        for (Layout layout = DENSE; layout < EXPANDED; layout++) {
            Tensor *in[SAMPLE_INPUTS];
            make_inputs(s, layout, real_inputs(s), in);
            check_sample(s, in, "a composite");
            make_same(s, in);
            check_sample(s, in, "a composite of the same tensor");
            release_all(in, s->n);
        }
        found++;
    }
    ck_assert_msg(found > 0, "%s has no sample", row->name);
}

/* ---- the walk: values ---------------------------------------------------------------------- */

static void expect_alike(const Sample *s, const char *what, const Tensor *x, const Tensor *y,
                         double tolerance) {
    double a[ELEMENTS_MAX], b[ELEMENTS_MAX];
    ck_assert_msg(x && y, "%s: %s: %s", s->op, what, tensor_error());
    ck_assert(shape_equal(x->shape, y->shape));
    ck_assert(tensor_to_doubles(x, a) && tensor_to_doubles(y, b));
    for (int64_t i = 0; i < tensor_numel(x); i++)
        ck_assert_msg(same_number(a[i], b[i], tolerance),
                      "%s %s: %s: element %" PRId64 " is %.17g and should be %.17g", s->op,
                      tensor_shape_text(s->in[0].shape), what, i, a[i], b[i]);
}

/* Applies the op to the inputs on a new tape. You own the result. */
static Tensor *value_of(const Sample *s, Tensor **in) {
    tensor_manual_seed(1);
    ck_assert(tape_begin_no_grad());
    Tensor *y = tape_end_keeping(apply_sample(in, (void *)(uintptr_t)s));
    ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
    ck_assert(!y->requires_grad && !y->grad_fn);
    return y;
}

/* The result for a view must equal the result for a contiguous copy of the view. (Dropout draws in
 * the order of memory; golden/functions/ag_dropout.safetensors tests it with a transposed x.) */
WALK(values_do_not_depend_on_the_layout) {
    for (Layout layout = PERMUTED; layout < LAYOUTS; layout++) {
        Tensor *in[SAMPLE_INPUTS];
        Tensor *dense[SAMPLE_INPUTS];
        if (layout == PERMUTED && !strcmp(s->op, "dropout")) continue;
        if (layout == EXPANDED && !strcmp(s->op, "view")) continue;
        make_inputs(s, layout, 0, in);
        for (int i = 0; i < s->n; i++) {
            Tensor *wide = tensor_view_expand(in[i], s->in[i].shape);
            dense[i] = tensor_clone(wide);
            tensor_release(wide);
        }
        Tensor *y = value_of(s, in);
        Tensor *expected = value_of(s, dense);
        expect_alike(s, "value", y, expected, 1e-13);
        RELEASE(y, expected);
        release_all(in, s->n);
        release_all(dense, s->n);
    }
}

/* Forward and backward, in the type of the inputs; the result is yours, gradients are in x->grad.
 */
static Tensor *run(const Sample *s, Tensor **in, Tensor *dy) {
    tensor_manual_seed(1);
    ck_assert(tape_begin());
    Tensor *y = apply_sample(in, (void *)(uintptr_t)s);
    ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
    Tensor *c = dy || !y->requires_grad ? tensor_retain(dy) : cotangent(y->shape, y->dtype);
    if (c) ck_assert_msg(ag_backward_from(y, c), "%s: %s", s->op, tensor_error());
    tensor_release(c);
    return tape_end_keeping(y);
}

WALK(float32_agrees_with_float64) {
    Tensor *small[SAMPLE_INPUTS];
    Tensor *large[SAMPLE_INPUTS];
    for (int i = 0; i < s->n; i++) {
        small[i] = sample_input(s, i, F32);
        bool real = s->in[i].kind == 'r';
        large[i] = small[i]->dtype == F32 ? tensor_to(small[i], F64) : tensor_retain(small[i]);
        if (real) {
            ag_requires_grad(small[i]);
            ag_requires_grad(large[i]);
        }
    }
    Tensor *y32 = run(s, small, NULL);
    Tensor *y64 = run(s, large, NULL);
    expect_alike(s, "float32 value", y32, y64, 2e-6);
    ck_assert_int_eq(y32->dtype, y64->dtype == F64 ? F32 : y64->dtype);
    for (int i = 0; i < s->n && y64->requires_grad; i++) {
        if (s->in[i].kind != 'r') continue;
        ck_assert_int_eq(small[i]->grad->dtype, F32);
        expect_alike(s, "float32 gradient", small[i]->grad, large[i]->grad, 1e-5);
    }
    RELEASE(y32, y64);
    release_all(small, s->n);
    release_all(large, s->n);
}

/* The dy of an op may have any strides, 0 among them. */
WALK(the_incoming_gradient_may_have_any_layout) {
    if (!has_gradient(s)) return;
    for (Layout layout = PERMUTED; layout < LAYOUTS; layout++) {
        Tensor *in[SAMPLE_INPUTS];
        Tensor *same[SAMPLE_INPUTS];
        make_inputs(s, DENSE, real_inputs(s), in);
        make_inputs(s, DENSE, real_inputs(s), same);
        Tensor *y = value_of(s, in);
        Tensor *dy = in_layout(cotangent(y->shape, F64), layout);
        Tensor *wide = tensor_view_expand(dy, y->shape);
        Tensor *dense = tensor_clone(wide);
        RELEASE(run(s, in, wide), run(s, same, dense));
        for (int i = 0; i < s->n; i++)
            if (s->in[i].kind == 'r')
                expect_alike(s, "gradient", in[i]->grad, same[i]->grad, 1e-13);
        RELEASE(y, dy, wide, dense);
        release_all(in, s->n);
        release_all(same, s->n);
    }
}

/* Neither forward nor backward writes to an input. The sample must record the op that it names. */
WALK(inputs_are_only_read) {
    Tensor *in[SAMPLE_INPUTS];
    Tensor *copy[SAMPLE_INPUTS];
    make_inputs(s, DENSE, real_inputs(s), in);
    uint32_t version[SAMPLE_INPUTS];
    for (int i = 0; i < s->n; i++) {
        copy[i] = tensor_clone(in[i]);
        version[i] = in[i]->storage->version;
    }
    char *printed = NULL;
    size_t size;
    FILE *file = open_memstream(&printed, &size);
    ck_assert(tape_begin());
    ck_assert_ptr_nonnull(apply_sample(in, (void *)(uintptr_t)s));
    ck_assert(tape_print(file));
    tape_end();
    fclose(file);
    ck_assert_msg(strstr(printed, format(" = %s(", s->op)) != NULL, "a sample of %s does %s", s->op,
                  printed);
    free(printed);
    tensor_release(run(s, in, NULL));
    for (int i = 0; i < s->n; i++) {
        ck_assert_msg(tensor_allclose(in[i], copy[i], 0, 0), "%s wrote to its input", s->op);
        ck_assert_uint_eq(in[i]->storage->version, version[i]);
    }
    release_all(in, s->n);
    release_all(copy, s->n);
}

/* ---- the walk: integers and bools ------------------------------------------------------------ */

/* Does the op take the type for everything that may be a float? */
static bool takes(const Sample *s, DType dtype) {
    const Op *op = find_op(s->op);
    bool all = true;
    for (int i = 0; i < s->n; i++) {
        const InputType type = input_of(op, i)->type & SAME;
        all = all && (s->in[i].kind != 'r' || type == SAME || (type == NUMBER && dtype == I64));
    }
    return all;
}

/* What PyTorch makes of integers and bools. */
static DType result_type(const Op *op, DType dtype) {
    if (op_row(op->name)->counts) return I64;
    return (op->forward == ag_elementwise_forward && !op->backward) || op == find_op("logical_not")
               ? BOOL
               : dtype;
}

static void make_whole_inputs(const Sample *s, Layout layout, DType dtype, Tensor **in) {
    tensor_manual_seed(3);
    for (int i = 0; i < s->n; i++) {
        Tensor *x = sample_input(s, i, F64);
        Tensor *whole = NULL;
        if (s->in[i].kind == 'r') {
            ck_assert(tensor_mul_(x, 3)); /* from -6 to 6, mostly */
            whole = tensor_to(x, dtype);
        } else whole = tensor_retain(x);
        tensor_release(x);
        in[i] = in_layout(whole, layout);
    }
}

/* For small integers, the result in I64 or BOOL equals the result in doubles. */
WALK(integers_and_bools_compute_as_doubles_do) {
    const Op *op = find_op(s->op);
    Sample plain = *s;
    if (!strcmp(s->op, "masked_fill")) plain.number[0] = 1; /* a value that every type has */
    if (op->forward == ag_elementwise_forward && s->n == 1) plain.number[0] = -3; /* whole */
    for (int t = 0; t < 2 * LAYOUTS; t++) {
        const DType dtype = t % 2 ? BOOL : I64;
        const Layout layout = (Layout)(t / 2);
        Tensor *in[SAMPLE_INPUTS];
        Tensor *real[SAMPLE_INPUTS];
        if (!takes(s, dtype) || (layout == EXPANDED && !strcmp(s->op, "view"))) continue;
        make_whole_inputs(s, layout, dtype, in);
        for (int i = 0; i < s->n; i++)
            real[i] = s->in[i].kind == 'r' ? tensor_to(in[i], F64) : tensor_retain(in[i]);
        Tensor *y = value_of(&plain, in);
        Tensor *doubles = value_of(&plain, real);
        ck_assert_msg(y->dtype == result_type(op, dtype), "%s of %s is %s", s->op,
                      tensor_dtype_name(dtype), tensor_dtype_name(y->dtype));
        Tensor *expected = tensor_to(doubles, y->dtype); /* as a bool, 1 + 1 is 1 */
        expect_alike(s, tensor_dtype_name(dtype), y, expected, 0);
        RELEASE(y, doubles, expected);
        release_all(in, s->n);
        release_all(real, s->n);
    }
}

CASE("integers")
/* Integers have no gradient, not even on a recording tape beside a tensor that requires one. */
TEST(integers_have_no_gradient) {
    Tensor *x = LEAF(SHAPE(2), 1.5, -2);
    Tensor *i = tensor_from_int64s(SHAPE(2), (int64_t[]){3, 4});
    ck_assert(tape_begin());
    Tensor *y = ag_sum(ag_mul(ag_add(i, i), ag_neg(i)));
    ck_assert(!y->requires_grad && !y->grad_fn && y->dtype == I64);
    FAILS(ag_backward(y), "backward: y does not require a gradient");
    Tensor *where_positive = ag_sum(ag_gt(x, ag_scale(x, 0)));
    ck_assert(!where_positive->requires_grad && where_positive->dtype == I64);
    EXPECT_ELEMENTS(where_positive, 1);
    Tensor *whole = ag_to(x, I64);
    Tensor *truth = ag_to(ag_to(x, F32), BOOL);
    ck_assert(!whole->requires_grad && !whole->grad_fn && !truth->requires_grad);
    EXPECT_ELEMENTS(whole, 1, -2);
    ck_assert(ag_to(x, F32)->requires_grad);
    tape_end();
    RELEASE(x, i);
}

/* torch: m = torch.tensor([-2**63, 2**63 - 1]); abs(m), -m, m * m, m + m, m - 1, m @ m, m.sum() */
TEST(integers_wrap_around) {
    const int64_t low = INT64_MIN, high = INT64_MAX;
    Tensor *m = tensor_from_int64s(SHAPE(2), (int64_t[]){low, high});
    Tensor *one = tensor_from_int64s(SCALAR, (int64_t[]){1});
    ck_assert(tape_begin());
    const struct {
        Tensor *y;
        int64_t element[2];
    } cases[] = {
        {ag_abs(m), {low, high}},
        {ag_neg(m), {low, -high}},
        {ag_mul(m, m), {0, 1}},
        {ag_square(m), {0, 1}},
        {ag_add(m, m), {0, -2}},
        {ag_sub(m, one), {high, high - 1}},
        {ag_scale(m, -3), {low, -high + 2}},
        {ag_add_scalar(m, 1), {low + 1, low}},
        {ag_maximum(m, one), {1, high}},
        {ag_minimum(m, one), {low, 1}},
        {ag_relu(m), {0, high}},
        {ag_unsqueeze(ag_matmul(m, m), 0), {1}},
        {ag_sum_dims(m, AXES(0), true), {-1}},
        {ag_max_dim(m, 0, true), {high}},
        {ag_min_dim(m, 0, true), {low}},
        {ag_cumsum(m, 0), {low, -1}},
    };
    for (int c = 0; c < COUNT(cases); c++) {
        ck_assert_msg(cases[c].y != NULL, "%d: %s", c, tensor_error());
        for (int64_t i = 0; i < tensor_numel(cases[c].y); i++)
            ck_assert_msg(((int64_t *)cases[c].y->data)[i] == cases[c].element[i],
                          "case %d, element %d is %" PRId64, c, (int)i,
                          ((int64_t *)cases[c].y->data)[i]);
    }
    tape_end();
    RELEASE(m, one);
}

/* Each comparison, for each type of x. A float32 is compared with the number rounded to float32, as
 * in torch. Of all comparisons with NaN only != is true. */
TEST(numbers_are_compared_in_the_type_of_x) {
    static const char *const name[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    typedef Tensor *WithNumber(Tensor *, double);
    static WithNumber *const compare[] = {ag_eq_scalar, ag_ne_scalar, ag_lt_scalar,
                                          ag_le_scalar, ag_gt_scalar, ag_ge_scalar};
    const double expected[][4] = {{0, 1, 0, 0}, {1, 0, 1, 1}, {1, 0, 0, 0},
                                  {1, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 1, 0}};
    Tensor *doubles = LEAF(SHAPE(4), -3, 0.1, 2, (double)NAN);
    Tensor *floats = tensor_to(doubles, F32);
    Tensor *whole = tensor_from_int64s(SHAPE(3), (int64_t[]){-3, 1, 2});
    Tensor *bools = tensor_to(whole, BOOL);
    ck_assert(tape_begin());
    for (int i = 0; i < COUNT(compare); i++) {
        Tensor *y = compare[i](doubles, 0.1);
        ck_assert(y->dtype == BOOL && !y->requires_grad);
        expect_elements(name[i], y, expected[i], 0);
        expect_elements(name[i], compare[i](floats, 0.1), expected[i], 0);
        expect_elements(name[i], compare[i](whole, 1), expected[i], 0);
        FAILS(compare[i](whole, 0.5),
              format("%s_scalar: x is int64 and the number is 0.5: it must be whole; "
                     "convert x with tensor_to",
                     name[i]));
        FAILS(compare[i](bools, 1),
              format("%s_scalar: x is bool: it must be float32, float64 or int64; "
                     "convert it with ag_to",
                     name[i]));
        FAILS(compare[i](NULL, 1), format("%s_scalar: the tensor is NULL", name[i]));
    }
    FAILS(ag_lt_scalar(floats, 1e300), "lt_scalar: float32 cannot hold 1e+300");
    tape_end();
    FAILS(ag_eq_scalar(doubles, 1),
          "eq_scalar: no tape is open: call tape_begin or tape_begin_no_grad first");
    RELEASE(doubles, floats, whole, bools);
}

TEST(numbers_for_integers_are_whole) {
    Tensor *x = tensor_from_int64s(SHAPE(2), (int64_t[]){3, 4});
    ck_assert(tape_begin());
    FAILS(ag_scale(x, 2.5),
          "scale: x is int64 and the number is 2.5: it must be whole; convert x with tensor_to");
    FAILS(
        ag_add_scalar(x, -0.25),
        "add_scalar: x is int64 and the number is -0.25: it must be whole; convert x with tensor_to");
    FAILS(ag_scale(x, 0x1p63), "scale: int64 cannot hold 9.22337e+18");
    FAILS(ag_scale(x, (double)NAN), "scale: int64 cannot hold nan");
    FAILS(ag_mse_loss(x, x, REDUCE_SUM),
          "mse_loss: y is int64: it must be float32 or float64; convert it with ag_to");
    tape_end();
    tensor_release(x);
}

/* ---- the walk: writes in place -------------------------------------------------------------- */

/* A write to an input or to the result of an op must not change the gradients, or backward must
 * fail. Backward may fail only if the write would change the gradients. To see this, the test sets
 * the version back, so that backward does not notice the write. */

static const char *const writers[] = {"copy_from", "fill", "add_", "mul_", "uniform_", "normal_"};
enum { WRITERS = COUNT(writers), OUTPUT = SAMPLE_INPUTS };

/* Writes other values that are still valid: an index stays an index. */
static bool write_by(int writer, const Sample *s, int target, Tensor *x) {
    const bool real = dtype_is_float(x->dtype);
    switch (writer) {
    case 0: {
        Tensor *other = target == OUTPUT ? tensor_full(SCALAR, 0.75) : sample_input(s, target, F64);
        Tensor *value = tensor_to(other, x->dtype);
        const bool written = tensor_copy_from(x, value);
        RELEASE(other, value);
        return written;
    }
    case 1: return tensor_fill(x, real ? (double)NAN : 0);
    case 2: return tensor_add_(x, x, real);
    case 3: return tensor_mul_(x, real ? -3 : 1);
    case 4: return tensor_uniform_(x, 1, 2);
    default: return tensor_normal_(x, 0, 1);
    }
}

/* Copies all gradients of the inputs, one after the other. */
static void collect_gradients(Tensor *const *in, int n, double *gradients) {
    for (int i = 0; i < n; i++) {
        if (!in[i]->grad) continue;
        ck_assert(tensor_to_doubles(in[i]->grad, gradients));
        gradients += tensor_numel(in[i]->grad);
    }
}

/* Computes the gradients after a write (no write if writer < 0), all in one buffer. False if
 * backward fails. */
static bool gradients_after(const Sample *s, unsigned grads, int target, int writer, bool unnoticed,
                            double *gradients) {
    Tensor *in[SAMPLE_INPUTS];
    make_inputs(s, DENSE, grads, in);
    tensor_manual_seed(1);
    ck_assert(tape_begin());
    Tensor *y = apply_sample(in, (void *)(uintptr_t)s);
    ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
    Tensor *c = cotangent(y->shape, F64);
    Tensor *written = target == OUTPUT ? y : in[target];
    const uint32_t version = written->storage->version;
    if (writer >= 0) ck_assert(write_by(writer, s, target, written));
    if (unnoticed) written->storage->version = version;
    const bool done = ag_backward_from(y, c);
    if (done) collect_gradients(in, s->n, gradients);
    tape_end();
    tensor_release(c);
    release_all(in, s->n);
    return done;
}

/* "backward: exp needs its result (2, 3) as it was, but fill has written over it since". The shape
 * is taken from the error itself, because a vector of matmul is recorded as a row. */
static bool says_overwritten(const char *op, const char *role, int writer) {
    char shape[64] = "";
    const char *at = tensor_error() ? strrchr(tensor_error(), '(') : NULL;
    if (at) sscanf(at, "%63[(0123456789, )]", shape);
    if (strrchr(shape, ')')) strrchr(shape, ')')[1] = '\0';
    return tensor_error() &&
           !strcmp(
               tensor_error(),
               format("backward: %s needs its %s %s as it was, but %s has written over it since",
                      op, role, shape, writers[writer]));
}

static void expect_overwritten(const Op *op, int target, int writer) {
    bool said = target == OUTPUT && says_overwritten(op->name, "result", writer);
    for (int i = 0; i < inputs_of(op) && target != OUTPUT; i++) {
        const char *role = format("input %s", op->in[i].name);
        const int optional = op->in[i].type & op->in[target].type & OPTIONAL;
        if (i == target || optional) /* some samples leave optional inputs out */
            said = said || says_overwritten(op->name, role, writer);
    }
    ck_assert_msg(said, "%s: operand %d: %s", op->name, target, tensor_error());
    tensor_clear_error();
}

/* Can this writer write to this tensor? Its elements must not share memory, and the writer must
 * take its type. */
static bool can_be_written(const Sample *s, int target, int writer) {
    Tensor *in[SAMPLE_INPUTS];
    make_inputs(s, DENSE, 0, in);
    Tensor *y = value_of(s, in);
    Tensor *x = target == OUTPUT ? y : in[target];
    const int writers_of[] = {WRITERS, WRITERS, 4, 2}; /* how many writers take each type */
    const bool can = x && !tensor_has_repeats(x) && writer < writers_of[x->dtype];
    tensor_release(y);
    release_all(in, s->n);
    return can;
}

/* The backward of attention reads its result only in float32, and it reads copies of strided
 * inputs. */
static bool is_attention(const char *op) { return !strcmp(op, "attention"); }

static void check_write(const Sample *s, unsigned grads, int target, int writer, bool *refused,
                        bool *changed) {
    static double untouched[ELEMENTS_MAX * SAMPLE_INPUTS], after[ELEMENTS_MAX * SAMPLE_INPUTS],
        unnoticed[ELEMENTS_MAX * SAMPLE_INPUTS];
    memset(unnoticed, 0, sizeof unnoticed);
    memset(untouched, 0, sizeof untouched);
    memset(after, 0, sizeof after);
    ck_assert(gradients_after(s, grads, OUTPUT, -1, false, untouched));
    /* Another mask selects another number of elements, and the gradient has the old one. */
    const bool other_size = !strcmp(s->op, "masked_select") && target == 1;
    if (!other_size) ck_assert(gradients_after(s, grads, target, writer, true, unnoticed));
    const bool done = gradients_after(s, grads, target, writer, false, after);
    const bool reads_it = target == OUTPUT && is_attention(s->op); /* backward of attention needs
                                                                    * the result only in float32 */
    const bool same = !reads_it && !other_size && !memcmp(untouched, unnoticed, sizeof untouched);
    *refused = *refused || !done;
    *changed = *changed || !same;
    if (!done) expect_overwritten(find_op(s->op), target, writer);
    else
        ck_assert_msg(same && !memcmp(untouched, after, sizeof after),
                      "%s %s: %s over operand %d changes gradients and is not noticed", s->op,
                      tensor_shape_text(s->in[0].shape), writers[writer], target);
}

/* Do all float inputs require a gradient, or exactly one? */
static bool is_of_interest(unsigned grads, unsigned all) {
    return grads && (grads & all) == grads && (grads == all || !(grads & (grads - 1)));
}

CASE("walk")
LOOP_TEST(writes_in_place_are_harmless_or_refused, number_of_ops()) {
    bool refused[OUTPUT + 1] = {false}, changed[OUTPUT + 1] = {false};
    for (const Sample *s = samples(); s->op; s++) {
        if (strcmp(s->op, all_ops[_i]->name) || !has_gradient(s)) continue;
        for (int target = 0; target <= OUTPUT; target++)
            for (int writer = 0; writer < WRITERS; writer++) {
                if (target >= s->n && target != OUTPUT) continue;
                if (!can_be_written(s, target, writer)) continue;
                const unsigned all = real_inputs(s);
                for (unsigned grads = 1; grads <= all; grads++)
                    if (is_of_interest(grads, all))
                        check_write(s, grads, target, writer, &refused[target], &changed[target]);
            }
    }
    for (int target = 0; target <= OUTPUT; target++)
        ck_assert_msg(refused[target] == changed[target],
                      "%s: writes over operand %d are refused, though no gradient depends on it",
                      all_ops[_i]->name, target);
}

/* ---- the walk: letting go -------------------------------------------------------------------- */

/* Lets go of n tensors; some may be NULL. Returns how many of them have lost their bytes. If lost
 * bytes lie in one block with their Storage, the block still exists: then they are overwritten. */
static int let_go_of(Tensor *const *x, int n) {
    int count = 0;
    char *bytes[2 * SAMPLE_INPUTS + 1];
    for (int i = 0; i < n; i++) bytes[i] = x[i] ? x[i]->storage->bytes : NULL;
    for (int i = 0; i < n; i++)
        if (x[i]) ag_let_go(x[i]);
    for (int i = 0; i < n; i++) {
        if (!x[i] || x[i]->storage->bytes) continue;
        if (bytes[i] == (char *)x[i]->storage + 64)
            memset(bytes[i], 0xff, (size_t)x[i]->storage->size);
        count++;
    }
    return count;
}

/* Computes the gradients, all in one buffer, after letting go of the tensors whose bits are set in
 * `which`: inputs, each with the row from which it was expanded, and OUTPUT. Returns how many have
 * lost their bytes. */
static int gradients_without(const Sample *s, Layout layout, unsigned grads, unsigned which,
                             double *gradients) {
    Tensor *in[SAMPLE_INPUTS];
    Tensor *x[2 * SAMPLE_INPUTS + 1] = {NULL};
    memset(gradients, 0, ELEMENTS_MAX * SAMPLE_INPUTS * sizeof *gradients);
    make_inputs(s, layout, grads, in);
    tensor_manual_seed(1);
    ck_assert(tape_begin());
    Tensor *y = apply_sample(in, (void *)(uintptr_t)s);
    ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
    Tensor *c = cotangent(y->shape, F64);
    for (int i = 0; i < s->n; i++)
        if (which >> i & 1) {
            x[2 * i] = in[i];
            x[2 * i + 1] = applied[i];
        }
    if (which >> OUTPUT & 1) x[2 * SAMPLE_INPUTS] = y;
    const int gone = let_go_of(x, 2 * SAMPLE_INPUTS + 1);
    ck_assert_msg(ag_backward_from(y, c), "%s %s, layout %d, without %x: %s", s->op,
                  tensor_shape_text(s->in[0].shape), layout, which, tensor_error());
    collect_gradients(in, s->n, gradients);
    tape_end();
    tensor_release(c);
    release_all(in, s->n);
    return gone;
}

/* Lets go of each tensor alone, and then of all. Returns how many have lost their bytes in all. */
static int check_letting_go(const Sample *s, Layout layout, unsigned grads) {
    static double before[ELEMENTS_MAX * SAMPLE_INPUTS], after[ELEMENTS_MAX * SAMPLE_INPUTS];
    const unsigned all = ~0U;
    int gone = 0;
    gradients_without(s, layout, grads, 0, before);
    for (int target = 0; target <= OUTPUT + 1; target++) {
        if (target >= s->n && target < OUTPUT) continue;
        const unsigned which = target > OUTPUT ? all : 1U << target;
        gone += gradients_without(s, layout, grads, which, after);
        ck_assert_msg(!memcmp(before, after, sizeof before), "%s %s, layout %d, changes without %x",
                      s->op, tensor_shape_text(s->in[0].shape), layout, which);
    }
    return gone;
}

/* Letting go changes no gradient, in any memory layout: backward can still read the tensors in
 * .reads, and it reads no others. */
LOOP_TEST(letting_go_changes_no_gradient, number_of_ops()) {
    const Op *op = all_ops[_i];
    const unsigned all_read = READS_OUT | ((1u << inputs_of(op)) - 1);
    int gone = 0;
    for (const Sample *s = samples(); s->op; s++) {
        if (strcmp(s->op, op->name) || !has_gradient(s)) continue;
        const unsigned all = real_inputs(s);
        for (Layout layout = DENSE; layout < LAYOUTS; layout++)
            for (unsigned grads = 1; grads <= all; grads++)
                if (is_of_interest(grads, all) && !(layout == EXPANDED && !strcmp(s->op, "view")))
                    gone += check_letting_go(s, layout, grads);
    }
    const bool reads_all = (op->reads & all_read) == all_read;
    if (op->backward && !is_attention(op->name)) ck_assert_int_eq(gone > 0, !reads_all);
}

/* ---- mistakes: shapes and numbers ---------------------------------------------------------- */

/* The i-th mistake of the table, as a sample. */
static Sample mistake(int i, const char **sentence) {
    const OpRow *row = op_rows;
    for (; i >= row->wrong.n; row++) i -= row->wrong.n;
    const Mistake *m = &row->wrong.list[i];
    Sample s = {.op = row->name};
    memcpy(s.in, m->in, sizeof s.in);
    memcpy(s.number, m->number, sizeof s.number);
    while (s.n < SAMPLE_INPUTS && s.in[s.n].kind) s.n++;
    *sentence = m->sentence;
    return s;
}

static int mistake_count(void) {
    int n = 0;
    for (const OpRow *row = op_rows; row->name; row++) n += row->wrong.n;
    return n;
}

CASE("mistakes")
LOOP_TEST(a_wrong_shape_is_one_sentence, mistake_count()) {
    const char *sentence;
    const Sample s = mistake(_i, &sentence);
    Tensor *in[SAMPLE_INPUTS];
    make_inputs(&s, DENSE, real_inputs(&s), in);
    int64_t before = tensor_live();
    ck_assert(tape_begin());
    ck_assert_msg(call_op(s.op, in, s.n, s.number) == NULL, "expected: %s", sentence);
    expect_error(sentence);
    tape_end();
    ck_assert_int_eq(tensor_live(), before);
    release_all(in, s.n);
}

/* All elementwise ops of two inputs have the same error message. */
static void expect_no_broadcast(const Op *op) {
    const Sample s = {op->name, 2, {{'r', {2, {2, 3}}}, {'r', {1, {2}}}}, {0}};
    Tensor *in[SAMPLE_INPUTS];
    make_inputs(&s, DENSE, 0, in);
    ck_assert(tape_begin());
    FAILS(call_op(s.op, in, 2, s.number),
          format("%s: a is (2, 3) and b is (2,): sizes, aligned at the right, must be equal or 1",
                 op->name));
    tape_end();
    release_all(in, 2);
}

LOOP_TEST(every_op_has_a_wrong_shape_or_takes_any, number_of_ops()) {
    const Op *op = all_ops[_i];
    const OpRow *row = op_row(op->name);
    if (is_elementwise(row) && inputs_of(op) == 2) expect_no_broadcast(op);
    ck_assert_msg(is_elementwise(row) || row->any_shape == (row->wrong.n == 0),
                  "%s has no WRONG call in tests/suites/library/ops.def", op->name);
}

/* ---- mistakes: types, NULL, a pending error, no tape --------------------------------------- */

/* The first sample of op all_ops[i], with its inputs. */
static const Sample *start_mistake(int i, Tensor **in) {
    const Sample *s = sample_of(all_ops[i]->name);
    ck_assert_ptr_nonnull(s);
    make_inputs(s, DENSE, real_inputs(s), in);
    return s;
}

/* The op must return NULL and set this error message. */
static void expect_refusal(const Sample *s, Tensor **in, const char *beginning, const char *part) {
    int64_t before = tensor_live();
    Tensor *y = call_op(s->op, in, s->n, s->number);
    ck_assert_msg(y == NULL, "%s should have said: %s ... %s", s->op, beginning, part);
    expect_error_like(beginning, part);
    ck_assert_int_eq(tensor_live(), before);
}

/* If input i has another type, the error must name this input. */
static void expect_type_refused(const Op *op, const Sample *s, Tensor **in, int i, DType dtype,
                                const char *must_be) {
    Tensor *right = in[i];
    in[i] = tensor_to(right, dtype);
    FAILS(call_op(s->op, in, s->n, s->number),
          format("%s: %s is %s: it must be %s; convert it with ag_to", op->name,
                 input_of(op, i)->name, tensor_dtype_name(dtype), must_be));
    tensor_release(in[i]);
    in[i] = right;
}

/* Input i has float32 and input j has float64. */
static void expect_mixture_refused(const Op *op, const Sample *s, Tensor **in, int j, int i) {
    Tensor *right = in[i];
    in[i] = tensor_to(right, F32);
    FAILS(
        call_op(s->op, in, s->n, s->number),
        format(
            "%s: %s is float64 and %s is float32: the types must be equal; convert one with ag_to",
            op->name, input_of(op, j)->name, input_of(op, i)->name));
    tensor_release(in[i]);
    in[i] = right;
}

LOOP_TEST(wrong_types_are_refused, number_of_ops()) {
    const Op *op = all_ops[_i];
    Tensor *in[SAMPLE_INPUTS];
    const Sample *s = start_mistake(_i, in);
    int first_real = -1;
    ck_assert(tape_begin());
    for (int i = 0; i < s->n; i++) {
        switch (input_of(op, i)->type & SAME) {
        case FLOAT:
            expect_type_refused(op, s, in, i, I64, "float32 or float64");
            expect_type_refused(op, s, in, i, BOOL, "float32 or float64");
            break;
        case NUMBER: expect_type_refused(op, s, in, i, BOOL, "float32, float64 or int64"); break;
        case BOOLEAN: expect_type_refused(op, s, in, i, F64, "bool"); continue;
        case INT64: expect_type_refused(op, s, in, i, F64, "int64"); continue;
        case SAME: break;
        }
        if (first_real >= 0) expect_mixture_refused(op, s, in, first_real, i);
        if (first_real < 0) first_real = i;
    }
    tape_end();
    release_all(in, s->n);
}

/* Some functions check an input before ag_apply does, with another message. */
static void expect_null_refused(const char *op, const char *input) {
    if (strstr(tensor_error(), ": the tensor ")) input = "the tensor";
    expect_error(format("%s: %s is NULL", op, input));
}

LOOP_TEST(null_is_refused, number_of_ops()) {
    const Op *op = all_ops[_i];
    Tensor *in[SAMPLE_INPUTS];
    const Sample *s = start_mistake(_i, in);
    const char *name = strcmp(op->name, "contiguous") ? op->name : "transpose"; /* call_op
                                                                                 * transposes x
                                                                                 * first */
    ck_assert(tape_begin());
    for (int i = 0; i < s->n; i++) {
        if (input_of(op, i)->type & OPTIONAL) continue; /* an optional input may be NULL */
        Tensor *right = in[i];
        in[i] = NULL;
        ck_assert_ptr_null(call_op(s->op, in, s->n, s->number));
        expect_null_refused(name, input_of(op, i)->name);
        in[i] = right;
    }
    tape_end();
    release_all(in, s->n);
}

LOOP_TEST(a_pending_error_stays, number_of_ops()) {
    Tensor *in[SAMPLE_INPUTS];
    const Sample *s = start_mistake(_i, in);
    ck_assert(tape_begin());
    tensor_fail("the first mistake");
    expect_refusal(s, in, "the first mistake", "");
    tensor_fail("the first mistake"); /* it explains the NULL */
    Tensor *right = in[0];
    in[0] = NULL;
    expect_refusal(s, in, "the first mistake", "");
    in[0] = right;
    tape_end();
    release_all(in, s->n);
}

/* An input was let go: the error names the function that the program called, also where it is a
 * function of other ops. `op`: the op that it applies, if that is one op of another name. */
/* Of several tensors the error says which. */
static void expect_named(const Sample *s) {
    const char *error = tensor_error();
    if (s->n > 1) ck_assert_msg(!error || !strstr(error, "the tensor "), "%s: %s", s->op, error);
}

static void expect_let_go_refused(const Sample *s, const char *op) {
    for (int i = 0; i < s->n; i++) {
        Tensor *in[SAMPLE_INPUTS];
        make_inputs(s, DENSE, real_inputs(s), in);
        ck_assert(tape_begin());
        ag_let_go(in[i]);
        const char *beginning = format("%s: ", op);
        Tensor *y = call_op(s->op, in, s->n, s->number);
        expect_named(s);
        if (!y) expect_error_like(beginning, " was let go, and its elements with it");
        else ck_assert_msg(y == in[i], "%s reads what was let go", s->op);
        tape_end();
        release_all(in, s->n);
    }
}

TEST(what_was_let_go_is_refused_by_its_name) {
    for (const Sample *s = samples(); s->op; s++)
        if (strcmp(s->op, "contiguous") != 0)
            expect_let_go_refused(s, s->op); /* transposes first */
    for (const Sample *s = samples_of_composites(); s->op; s++) {
        const char *applies = op_row(s->op)->applies;
        expect_let_go_refused(s, applies ? applies : s->op);
    }
}

/* A NULL is absent, or an error with the name of the input. */
TEST(what_is_null_is_named) {
    const Sample *both[] = {samples(), samples_of_composites()};
    for (int list = 0; list < 2; list++)
        for (const Sample *s = both[list]; s->op; s++)
            for (int i = 0; i < s->n; i++) {
                Tensor *in[SAMPLE_INPUTS];
                make_inputs(s, DENSE, real_inputs(s), in);
                Tensor *there = in[i];
                in[i] = NULL;
                ck_assert(tape_begin());
                Tensor *y = call_op(s->op, in, s->n, s->number);
                expect_named(s);
                if (!y) expect_error_like("", " is NULL");
                tape_end();
                in[i] = there;
                release_all(in, s->n);
            }
}

/* The types of a list, and what is NULL or let go in it. */
TEST(a_wrong_tensor_of_a_list_is_named) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *n = tensor_zeros_of(SHAPE(2), I64);
    ck_assert(tape_begin());
    FAILS(ag_stack((Tensor *[]){x, x, n}, 3, 0),
          "stack: tensor 0 is float64 and tensor 2 is int64: the types must be equal; "
          "convert one with ag_to");
    FAILS(ag_stack((Tensor *[]){x, NULL}, 2, 0), "stack: a tensor of the list is NULL");
    FAILS(ag_pad_sequence((Tensor *[]){x, x, n}, 3, 0),
          "pad_sequence: sequence 0 is float64 and sequence 2 is int64: the types must be "
          "equal; convert one with ag_to");
    FAILS(ag_pad_sequence((Tensor *[]){x, NULL}, 2, 0), "pad_sequence: sequence 1 is NULL");
    ag_let_go(n);
    FAILS(ag_stack((Tensor *[]){n}, 1, 0),
          "stack: a tensor of the list was let go, and its elements with it");
    tape_end();
    RELEASE(x, n);
}

/* No tape is open: the error names the function that the program called, whatever layout its inputs
 * have. An op that has nothing to do returns its input. */
static void expect_closed_refused(const Sample *s, const char *op) {
    for (Layout layout = DENSE; layout < EXPANDED; layout++) {
        Tensor *in[SAMPLE_INPUTS];
        make_inputs(s, layout, real_inputs(s), in);
        const char *beginning = format("%s: ", op);
        Tensor *y = call_op(s->op, in, s->n, s->number);
        if (!y)
            expect_error_like(beginning,
                              "no tape is open: call tape_begin or tape_begin_no_grad first");
        else ck_assert_msg(y == in[0], "%s works without a tape", s->op);
        release_all(in, s->n);
    }
}

TEST(without_a_tape_there_is_no_op) {
    for (const Sample *s = samples(); s->op; s++)
        if (strcmp(s->op, "contiguous") != 0)
            expect_closed_refused(s, s->op); /* transposes first */
    for (const Sample *s = samples_of_composites(); s->op; s++) {
        const char *applies = op_row(s->op)->applies;
        expect_closed_refused(s, applies ? applies : s->op);
    }
}

/* ---- what single ops promise --------------------------------------------------------------- */

CASE("promises")
TEST(views_share_bytes_and_copies_do_not) {
    static const char *const views[] = {"detach",    "reshape", "view",   "permute", "transpose",
                                        "unsqueeze", "squeeze", "expand", "slice"};
    static const char *const copies[] = {"contiguous", "cat",  "repeat", "repeat_interleave",
                                         "tril",       "triu", "neg",    "flip"};
    Tensor *in[SAMPLE_INPUTS];
    for (int i = 0; i < COUNT(views) + COUNT(copies); i++) {
        bool view = i < COUNT(views);
        const Sample *s = sample_of(view ? views[i] : copies[i - COUNT(views)]);
        make_inputs(s, DENSE, 0, in);
        Tensor *y = value_of(s, in);
        ck_assert_msg((y->storage == in[0]->storage) == view, "%s", s->op);
        tensor_release(y);
        release_all(in, s->n);
    }
}

/* torch's x.repeat never returns a view, not even when it repeats nothing. */
TEST(repeat_always_copies) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Shape shapes[] = {SHAPE(1), SHAPE(1, 1), SHAPE(2, 1)};
    for (int i = 0; i < COUNT(shapes); i++)
        ck_assert_ptr_ne(ag_repeat(x, shapes[i])->storage, x->storage);
    tape_end();
    tensor_release(x);
}

/* A sum over a dimension of size 1 is a copy. */
TEST(a_sum_of_nothing_but_itself_is_a_copy) {
    Tensor *x = LEAF(SCALAR, 3);
    ck_assert(tape_begin());
    ck_assert_ptr_ne(ag_sum(x)->storage, x->storage);
    ck_assert_ptr_ne(ag_mean(x)->storage, x->storage);
    tape_end();
    tensor_release(x);
}

/* 2^40 empty rows take no time; a loop over them would take an hour. */
TEST(empty_rows_take_no_time) {
    Tensor *x = ag_requires_grad(tensor_zeros(SHAPE(0, INT64_C(1) << 40)));
    Tensor *x_turned = tensor_zeros(SHAPE(INT64_C(1) << 40, 0));
    Tensor *sorted = tensor_sort(x_turned, NULL);
    ck_assert(tape_begin());
    Tensor *y = ag_log_softmax(ag_softmax(x, 0), 0);
    ck_assert(y && ag_backward_from(y, y) && sorted);
    ck_assert_int_eq(ag_argmax(x, 1)->shape.dim[0], 0);
    ck_assert(ag_flip(x, AXES(0, 1)) && ag_topk(x, 3, 1, NULL));
    tape_end();
    RELEASE(x, x_turned, sorted);
}

/* A factor of one element gives the same bits as the same element repeated. */
LOOP_TEST(one_element_multiplies_as_many_do, 3) {
    static const double numbers[] = {-0.5, 1e-38, -0., 3e38, (double)INFINITY, (double)NAN, 3};
    const Shape shapes[] = {SCALAR, SHAPE(1), SHAPE(1, 1, 1)};
    const DType dtype = (const DType[]){F32, F64, I64}[_i];
    static const double of_x[] = {
        -0., 1e-40, (double)NAN, (double)INFINITY, 1, -2, 1e38, 3e-39, 0.1, 7, 8, 9};
    Tensor *doubles = tensor_from_doubles(SHAPE(3, 4), of_x);
    Tensor *x = tensor_to(doubles, dtype);
    tensor_release(doubles);
    for (int i = dtype == I64 ? 6 : 0; i < 7; i++)
        for (int s = 0; s < 3; s++) {
            Tensor *full = tensor_full(shapes[s], numbers[i]);
            Tensor *b = tensor_to(full, dtype);
            ck_assert(tape_begin());
            Tensor *xt = ag_transpose(x, 0, 1);
            Tensor *y = ag_mul(xt, b);
            Tensor *many = ag_contiguous(ag_expand(b, y->shape));
            Tensor *want = ag_mul(xt, many);
            ck_assert(y->shape.ndim == (s == 2 ? 3 : 2));
            ck_assert_mem_eq(y->data, want->data, sizeof of_x / 8 * (size_t)dtype_size(dtype));
            tape_end();
            RELEASE(b, full);
        }
    tensor_release(x);
}

TEST(what_changes_nothing_hands_x_back) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    const Generator before = *tensor_generator_current();
    ck_assert(tape_begin());
    ck_assert_ptr_eq(ag_contiguous(x), x);
    ck_assert_ptr_eq(ag_to(x, F64), x);
    ck_assert_ptr_eq(ag_flatten(x, 1, -1), x);
    FAILS(ag_to(x, (DType)4), "to: 4 is not a type");
    ck_assert_ptr_eq(ag_dropout(x, 0), x);
    ck_assert_mem_eq(tensor_generator_current(), &before, sizeof before);
    ck_assert_ptr_ne(ag_contiguous(ag_transpose(x, 0, 1)), x);
    tape_end();
    tensor_release(x);
}

/* ag_split gives all slices or none. They are views, as in torch. */
TEST(split_fills_the_list) {
    Tensor *x = LEAF(SHAPE(5), 1, 2, 3, 4, 5);
    Tensor *list[3] = {x, x, x};
    FAILS(ag_split(x, 2, 0, list, 3),
          "split: no tape is open: call tape_begin or tape_begin_no_grad first");
    for (int i = 0; i < 3; i++) ck_assert_ptr_null(list[i]);
    ck_assert(tape_begin());
    FAILS(ag_split(x, 2, 0, NULL, 3), "split: the list is NULL");
    ck_assert(ag_split(x, 2, -1, list, 3));
    EXPECT_ELEMENTS(list[0], 1, 2);
    EXPECT_ELEMENTS(list[1], 3, 4);
    EXPECT_ELEMENTS(list[2], 5);
    ck_assert(list[2]->storage == x->storage && list[2]->requires_grad);
    ck_assert(ag_split(x, INT64_MAX, 0, list, 1)); /* one slice: all of x */
    EXPECT_ELEMENTS(list[0], 1, 2, 3, 4, 5);
    tape_end();
    tensor_release(x);
}

/* PyTorch's topk says nothing about equal elements; here the first is chosen first. */
TEST(topk_takes_the_first_of_equals) {
    const double n = (double)NAN;
    Tensor *x = LEAF(SHAPE(2, 4), 5, 7, 5, 7, n, 1, n, 2);
    Tensor *indices = x;
    FAILS(ag_topk(x, 3, 1, &indices),
          "topk: no tape is open: call tape_begin or tape_begin_no_grad first");
    ck_assert_ptr_null(indices);
    ck_assert(tape_begin());
    Tensor *y = ag_topk(x, 3, 1, &indices);
    EXPECT_ELEMENTS(y, 7, 7, 5, n, n, 2);
    EXPECT_ELEMENTS(indices, 1, 3, 0, 0, 2, 3);
    ck_assert(ag_backward(ag_sum(ag_scale(ag_select(y, 1, 0), 3))));
    EXPECT_GRAD(x, 0, 3, 0, 0, 3, 0, 0, 0);
    EXPECT_ELEMENTS(ag_topk(ag_transpose(x, 0, 1), 1, 0, NULL), 7, n);
    indices = x;
    FAILS(ag_topk(x, 5, 1, &indices),
          "topk: x is (2, 4): k is 5 and must be from 0 to 4, the size of dimension 1");
    ck_assert_ptr_null(indices);
    tape_end();
    tensor_release(x);
}

CASE("mistakes")
TEST(a_view_that_cannot_be_is_an_error) {
    Tensor *x = LEAF(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    ck_assert(tape_begin());
    Tensor *turned = ag_transpose(x, 0, 1);
    FAILS(ag_view(turned, SHAPE(6)),
          "view: x is (3, 2) with strides (1, 3): (6,) cannot be a view of the same bytes; "
          "use ag_reshape");
    EXPECT_ELEMENTS(ag_reshape(turned, SHAPE(6)), 1, 4, 2, 5, 3, 6);
    tape_end();
    tensor_release(x);
}

TEST(a_negative_length_is_an_error) {
    Tensor *x = LEAF(SHAPE(2, 1, 2), 1, 2, 3, 4);
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){1, -1});
    Tensor *each = tensor_from_int64s(SHAPE(2, 1), (int64_t[]){INT64_MIN, 1});
    ck_assert(tape_begin());
    FAILS(ag_masked_softmax(x, lens),
          "masked_softmax: valid_lens has -1: a length must not be negative");
    FAILS(ag_masked_softmax(x, each),
          "masked_softmax: valid_lens has -9223372036854775808: a length must not be negative");
    FAILS(ag_additive_scores(x, x, ag_select(x, 0, 0), lens),
          "additive_scores: valid_lens has -1: a length must not be negative");
    tape_end();
    RELEASE(x, lens, each);
}

TEST(an_index_out_of_range_is_an_error) {
    Tensor *x = LEAF(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    Tensor *scalar = LEAF(SCALAR, 1);
    Tensor *row = tensor_from_int64s(SHAPE(2), (int64_t[]){0, 7});
    Tensor *minus = tensor_from_int64s(SHAPE(1, 1), (int64_t[]){-1});
    ck_assert(tape_begin());
    FAILS(ag_index_select(x, 1, row),
          "index_select: index 7 is out of range for dimension 1 of x (2, 3)");
    FAILS(ag_index_select(scalar, 0, ag_slice(row, 0, 1, 2)),
          "index_select: index 7 is out of range for dimension 0 of x ()");
    FAILS(ag_gather(x, -2, minus), "gather: index -1 is out of range for dimension 0 of x (2, 3)");
    FAILS(ag_embedding(x, row), "embedding: index 7 is out of range for dimension 0 of w (2, 3)");
    tape_end();
    RELEASE(x, scalar, row, minus);
}

TEST(a_target_that_is_no_class_is_an_error) {
    Tensor *x = LEAF(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    Tensor *beyond = tensor_from_int64s(SHAPE(2), (int64_t[]){-100, 3});
    Tensor *minus = tensor_from_int64s(SHAPE(2), (int64_t[]){-100, -1});
    ck_assert(tape_begin());
    FAILS(ag_cross_entropy(x, beyond, -100, REDUCE_MEAN),
          "cross_entropy: target 3 is neither a class of logits (2, 3) in dimension 1 nor "
          "ignore_index -100");
    FAILS(ag_cross_entropy(x, minus, -100, REDUCE_NONE),
          "cross_entropy: target -1 is neither a class of logits (2, 3) in dimension 1 nor "
          "ignore_index -100");
    FAILS(ag_cross_entropy(x, beyond, AG_IGNORE_NONE, REDUCE_SUM),
          "cross_entropy: target -100 is no class of logits (2, 3) in dimension 1");
    Tensor *smallest = tensor_full_of(SHAPE(2), -0x1p63, I64); /* AG_IGNORE_NONE itself is not
                                                                * ignored, either */
    FAILS(ag_cross_entropy(x, smallest, AG_IGNORE_NONE, REDUCE_SUM),
          "cross_entropy: target -9223372036854775808 is no class of logits (2, 3) in dimension 1");
    tensor_release(smallest);
    FAILS(ag_cross_entropy(x, beyond, 3, REDUCE_SUM),
          "cross_entropy: target -100 is neither a class of logits (2, 3) in dimension 1 nor "
          "ignore_index 3");
    tape_end();
    RELEASE(x, beyond, minus);
}

CASE("promises")
/* Any class can be ignored, also class 0; then no other class is ignored. */
TEST(any_class_may_be_ignored_and_none) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 1, 3, 3);
    Tensor *targets = tensor_from_int64s(SHAPE(2), (int64_t[]){0, 1});
    ck_assert(tape_begin());
    EXPECT_ELEMENTS(ag_cross_entropy(x, targets, 0, REDUCE_NONE), 0, log(2));
    EXPECT_ELEMENTS(ag_cross_entropy(x, targets, 1, REDUCE_NONE), log(2), 0);
    EXPECT_ELEMENTS(ag_cross_entropy(x, targets, AG_IGNORE_NONE, REDUCE_NONE), log(2), log(2));
    EXPECT_ELEMENTS(ag_cross_entropy(x, targets, AG_IGNORE_NONE, REDUCE_MEAN), log(2));
    tape_end();
    RELEASE(x, targets);
}

/* An ignored row gets exactly 0, whatever the logits and dy are. (In PyTorch NaN in ignored logits
 * reaches the gradient.) */
TEST(what_is_ignored_gets_exactly_zero) {
    const double n = (double)NAN;
    Tensor *x = LEAF(SHAPE(2, 2), n, 1, 0, 0);
    Tensor *dy = LEAF(SHAPE(2), n, 2);
    Tensor *targets = tensor_from_int64s(SHAPE(2), (int64_t[]){7, 1});
    ck_assert(tape_begin());
    Tensor *y = ag_cross_entropy(x, targets, 7, REDUCE_NONE);
    EXPECT_ELEMENTS(y, 0, log(2));
    ck_assert(ag_backward_from(y, dy));
    EXPECT_GRAD(x, 0, 0, 1, -1);
    for (int i = 0; i < 2; i++) ck_assert(((double *)x->grad->data)[i] == 0);
    y = ag_cross_entropy_smoothed(x, targets, 7, REDUCE_NONE, 0.5);
    EXPECT_ELEMENTS(y, 0, log(2));
    ck_assert(ag_backward_from(y, dy)); /* the targets are 1/4 and 3/4 */
    EXPECT_GRAD(x, 0, 0, 1.5, -1.5);
    for (int i = 0; i < 2; i++) ck_assert(((double *)x->grad->data)[i] == 0);
    EXPECT_ELEMENTS(ag_cross_entropy_smoothed(x, targets, 7, REDUCE_MEAN, 0.5), log(2));
    tape_end();
    RELEASE(x, dy, targets);
}

/* dy of a masked element has no effect, whatever it is. */
TEST(gradients_behind_the_mask_are_exactly_zero) {
    Tensor *x = LEAF(SHAPE(1, 2, 3), 1, 2, 3, 4, 5, 6);
    Tensor *lens = tensor_from_int64s(SHAPE(1, 2), (int64_t[]){2, 0});
    Tensor *dy = LEAF(SHAPE(1, 2, 3), 1, 2, (double)NAN, (double)INFINITY, (double)NAN, 1);
    ck_assert(tape_begin());
    Tensor *y = ag_masked_softmax(x, lens);
    ck_assert(ag_backward_from(y, dy));
    tape_end();
    double p = 1 / (1 + exp(1)), slope = p * (1 - p);
    EXPECT_GRAD(x, -slope, slope, 0, 0, 0, 0);
    for (int i = 2; i < 6; i++) ck_assert(((double *)x->grad->data)[i] == 0);
    RELEASE(x, lens, dy);
}

/* The same for the other ops that select: 0 times NaN would be NaN. */
TEST(what_is_not_chosen_gets_exactly_zero) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    Tensor *z = LEAF(SHAPE(2, 2), 5, 6, 7, 8);
    Tensor *m = tensor_from_bools(SHAPE(2, 2), (bool[]){true, false, false, true});
    const double n = (double)NAN;
    Tensor *dy = LEAF(SHAPE(2, 2), n, 1, 2, n);
    ck_assert(tape_begin());
    ck_assert(ag_backward_from(ag_masked_fill(x, m, 0), dy));
    EXPECT_GRAD(x, 0, 1, 2, 0);
    ck_assert(ag_backward_from(ag_where(m, z, x), dy));
    EXPECT_GRAD(x, 0, 2, 4, 0);
    EXPECT_GRAD(z, n, 0, 0, n);
    ck_assert(tensor_fill(x->grad, 0));
    ck_assert(ag_backward_from(ag_tril(x, -1), dy));
    EXPECT_GRAD(x, 0, 0, 2, 0);
    EXPECT_ELEMENTS(ag_dropout(dy, 1), 0, 0, 0, 0);
    ck_assert(tensor_fill(x->grad, 0));
    ck_assert(ag_backward_from(ag_dropout(x, 1), dy));
    EXPECT_GRAD(x, 0, 0, 0, 0);
    tape_end();
    RELEASE(x, z, m, dy);
}

TEST(dropout_keeps_what_it_says) {
    double ones[1000], y[1000];
    for (int i = 0; i < 1000; i++) ones[i] = 1;
    Tensor *x = leaf(SHAPE(1000), ones);
    ck_assert(tape_begin());
    Tensor *dropped = ag_dropout(x, 0.2);
    ck_assert(tensor_to_doubles(dropped, y) && ag_backward(ag_sum(dropped)));
    tape_end();
    int kept = 0;
    for (int i = 0; i < 1000; i++) {
        ck_assert(y[i] == 0 || y[i] == 1.25);
        ck_assert_double_eq(((double *)x->grad->data)[i], y[i]);
        kept += y[i] != 0;
    }
    ck_assert(kept > 750 && kept < 850); /* four standard deviations */
    tensor_release(x);
}

/* ---- fused ops and their composed twins ---------------------------------------------------- */

typedef Tensor *Twin(Tensor **in);

static Tensor *linear_fused(Tensor **in) { return ag_linear(in[0], in[1], in[2]); }
static Tensor *linear_composed(Tensor **in) {
    return ag_add(ag_matmul(in[0], ag_transpose(in[1], 0, 1)), in[2]);
}

static Tensor *masked_fused(Tensor **in) { return ag_masked_softmax(in[0], in[1]); }
static Tensor *masked_composed(Tensor **in) {
    Tensor *keys = tensor_from_int64s(SHAPE(5), (int64_t[]){0, 1, 2, 3, 4});
    Tensor *behind = ag_ge(keys, ag_unsqueeze(in[1], -1));
    tensor_release(keys);
    return ag_softmax(ag_masked_fill(in[0], behind, -1e300), -1);
}

static Tensor *mse_fused(Tensor **in) { return ag_mse_loss(in[0], in[1], REDUCE_MEAN); }
static Tensor *mse_composed(Tensor **in) {
    Tensor *gap = ag_sub(in[0], in[1]);
    return ag_scale(ag_sum(ag_mul(gap, gap)), 1.0 / (double)tensor_numel(gap));
}

static Tensor *log_fused(Tensor **in) { return ag_log_softmax(in[0], 1); }
static Tensor *log_composed(Tensor **in) {
    return ag_sub(in[0], ag_unsqueeze(ag_logsumexp(in[0], 1), 1));
}

static Tensor *var_fused(Tensor **in) { return ag_var_dim(in[0], 1, false); }
static Tensor *var_composed(Tensor **in) {
    Tensor *gap = ag_sub(in[0], ag_mean_dims(in[0], AXES(1), true));
    return ag_scale(ag_sum_dims(ag_square(gap), AXES(1), false), 1.0 / 4);
}

static Tensor *entropy_fused(Tensor **in) { return ag_cross_entropy(in[0], in[1], 2, REDUCE_MEAN); }
static Tensor *entropy_composed(Tensor **in) {
    Tensor *two = tensor_full(SCALAR, 2);
    Tensor *ignore = tensor_to(two, I64);
    Tensor *log_p = ag_gather(ag_log_softmax(in[0], 1), 1, ag_unsqueeze(in[1], 1));
    Tensor *loss = ag_masked_select(ag_squeeze(log_p, 1), ag_ne(in[1], ignore));
    RELEASE(two, ignore);
    return ag_neg(ag_mean(loss));
}

static Tensor *norm_fused(Tensor **in) { return ag_layer_norm(in[0], in[1], in[2], 0.01); }
static Tensor *norm_composed(Tensor **in) {
    Axes last = AXES(-1);
    Tensor *x = ag_reshape(in[0], SHAPE(3, 10));
    Tensor *gap = ag_sub(x, ag_mean_dims(x, last, true));
    Tensor *variance = ag_mean_dims(ag_square(gap), last, true);
    Tensor *z = ag_div(gap, ag_sqrt(ag_add_scalar(variance, 0.01)));
    return ag_add(ag_mul(ag_reshape(z, SHAPE(3, 2, 5)), in[1]), in[2]);
}

static Tensor *additive_fused(Tensor **in) {
    return ag_additive_scores(in[0], in[1], in[2], in[3]);
}
/* in[3]: lengths (B, Q) */
static Tensor *additive_composed(Tensor **in) {
    Tensor *q = ag_unsqueeze(in[0], 2);
    Tensor *k = ag_unsqueeze(in[1], 1);
    Tensor *scores = ag_squeeze(ag_linear(ag_tanh(ag_add(q, k)), in[2], NULL), -1);
    Tensor *numbers = tensor_arange(0, (double)in[1]->shape.dim[1], 1);
    Tensor *place = tensor_to(numbers, I64);
    Tensor *y = ag_masked_fill(scores, ag_ge(place, ag_unsqueeze(in[3], 2)), 0);
    RELEASE(numbers, place);
    return y;
}

static const struct {
    Twin *fused, *composed;
    Sample inputs;
} twins[] = {
    {linear_fused, linear_composed, {"linear", 3, {R(2, 3, 5), R(4, 5), R(4)}, {0}}},
    {mse_fused, mse_composed, {"sub", 2, {R(3, 5), R(3, 5)}, {0}}},
    {log_fused, log_composed, {"log_softmax", 1, {R(3, 5, 2)}, {0}}},
    {var_fused, var_composed, {"var_dim", 1, {R(3, 5)}, {0}}},
    {entropy_fused, entropy_composed, {"cross_entropy", 2, {R(5, 4, 3), I(5, 3)}, {0}}},
    {norm_fused, norm_composed, {"layer_norm", 3, {R(3, 2, 5), R(2, 5), R(2, 5)}, {0}}},
    {additive_fused,
     additive_composed,
     {"additive_scores", 4, {R(2, 3, 7), R(2, 7, 7), R(1, 7), L(2, 3)}, {0}}},
    {masked_fused, masked_composed, {"softmax", 2, {R(3, 4, 5), L(3, 4)}, {0}}},
};

static Tensor *twin_input(const Sample *s, int i) {
    if (s->in[i].kind == 'l') return tensor_randint(1, 7, s->in[i].shape); /* never 0 */
    if (s->in[i].kind == 'i') return sample_input(s, i, F64);
    return ag_requires_grad(sample_input(s, i, F64));
}

LOOP_TEST(fused_ops_agree_with_their_composed_twins, COUNT(twins)) {
    const Sample *s = &twins[_i].inputs;
    Tensor *in[2][SAMPLE_INPUTS];
    Tensor *y[2];
    for (int which = 0; which < 2; which++) {
        tensor_manual_seed(5);
        for (int i = 0; i < s->n; i++) in[which][i] = twin_input(s, i);
        ck_assert(tape_begin());
        y[which] = (which ? twins[_i].composed : twins[_i].fused)(in[which]);
        ck_assert_msg(y[which] != NULL, "%s: %s", s->op, tensor_error());
        Tensor *c = cotangent(y[which]->shape, F64);
        ck_assert(ag_backward_from(y[which], c));
        tensor_release(c);
        y[which] = tape_end_keeping(y[which]);
    }
    expect_alike(s, "value", y[0], y[1], 1e-13);
    for (int i = 0; i < s->n; i++)
        if (s->in[i].kind == 'r')
            expect_alike(s, "gradient", in[0][i]->grad, in[1][i]->grad, 1e-12);
    for (int which = 0; which < 2; which++) {
        release_all(in[which], s->n);
        tensor_release(y[which]);
    }
}

/* ---- shapes that do not fit the types' bounds ---------------------------------------------- */

CASE("mistakes")
/* Nine dimensions, or a negative number of dimensions, is an error. */
TEST(too_many_dimensions_are_an_error) {
    Tensor *x = LEAF(SHAPE(1), 1);
    Shape nine = SHAPE(1), minus = SHAPE(1);
    Axes axes = AXES(0);
    nine.ndim = 9;
    axes.n = 9;
    minus.ndim = -1;
    ck_assert(tape_begin());
    typedef Tensor *WithShape(Tensor *, Shape);
    static WithShape *const ops[] = {ag_reshape, ag_view, ag_expand, ag_repeat};
    static const char *const names[] = {"reshape: ", "view: ", "expand: ", "repeat: "};
    for (int i = 0; i < COUNT(ops); i++) {
        ck_assert_ptr_null(ops[i](x, nine));
        expect_error(
            format("%sx is (1,) and 9 dimensions are asked for: there may be 0 to 8", names[i]));
        ck_assert_ptr_null(ops[i](x, minus));
        expect_error(
            format("%sx is (1,) and -1 dimensions are asked for: there may be 0 to 8", names[i]));
    }
    FAILS(ag_permute(x, axes),
          "permute: x is (1,) and the axes are (0, 0, 0, 0, 0, 0, 0, 0, ...): each of its "
          "dimensions must be named once");
    axes.axis[1] = 1;
    FAILS(ag_sum_dims(x, axes, false), "sum_dims: 9 dimensions are named: there may be 0 to 8");
    axes.n = -1;
    ck_assert_ptr_null(ag_permute(x, axes));
    expect_error_like("permute: ", "x is (1,)");
    tape_end();
    tensor_release(x);
}

/* ---- gradients that are sums of many terms --------------------------------------------------- */

/* Is x's gradient the sum that its uses ask for, bit for bit? use[i]: the element of x that element
 * i of dy is added to. Few indices are added in float32, one after the other, as PyTorch adds them;
 * many in double. */
static void expect_sum_of_uses(const Tensor *x, const Tensor *dy, const int64_t *use, bool few) {
    const int64_t n = tensor_numel(x);
    float *chain = calloc((size_t)n, sizeof *chain);
    double *sum = calloc((size_t)n, sizeof *sum);
    for (int64_t i = 0; i < tensor_numel(dy); i++) {
        chain[use[i]] += ((float *)dy->data)[i];
        sum[use[i]] += (double)((float *)dy->data)[i];
    }
    for (int64_t e = 0; e < n; e++) {
        const float got = ((float *)x->grad->data)[e];
        const float want = few ? chain[e] : (float)sum[e];
        ck_assert_msg(!memcmp(&got, &want, sizeof got), "element %d: %.9g, not %.9g", (int)e,
                      (double)got, (double)want);
    }
    free(chain);
    free(sum);
}

CASE("sums")
/* x (40, 3), with index (N / 4, 4): embedding; x (2, 40, 3), with index (N): index_select along dim
 * 1; x (40, 3), with index (N, 2): gather along dim 0. N is 128, whose sums have PyTorch's bits, or
 * more.
 */
LOOP_TEST(many_uses_of_an_element_are_summed_exactly, 12) {
    const bool few = _i % 2 == 0;
    const int64_t N = few ? 128 : 132 + 1000 * (_i % 4);
    const char *const ops[] = {"embedding", "index_select", "gather"};
    const Shape of_x[] = {SHAPE(40, 3), SHAPE(2, 40, 3), SHAPE(40, 3)};
    const Shape of_index[] = {SHAPE(N / 4, 4), SHAPE(N), SHAPE(N, 2)};
    const int op = _i % 3;
    tensor_set_default_dtype(F32);
    tensor_set_num_threads(_i < 6 ? 1 : 3);
    Tensor *x = ag_requires_grad(tensor_randn(of_x[op]));
    Tensor *index = tensor_randint(0, 40, of_index[op]);
    ck_assert(tape_begin());
    Tensor *y = call_op(ops[op], (Tensor *[]){x, index}, 2, (double[SAMPLE_NUMBERS]){op == 1});
    Tensor *dy = tensor_uniform(0.5, 1, y->shape);
    ck_assert(ag_backward_from(y, dy));
    int64_t *use = malloc((size_t)tensor_numel(y) * sizeof *use);
    for (int64_t i = 0; i < tensor_numel(y); i++) {
        const int64_t *at = index->data;
        const int64_t row = i / 3, column = i % 3;
        if (op == 0) use[i] = at[row] * 3 + column;
        else if (op == 1) use[i] = (row / N * 40 + at[row % N]) * 3 + column;
        else use[i] = at[i] * 3 + i % 2;
    }
    expect_sum_of_uses(x, dy, use, few);
    free(use);
    tape_end();
    tensor_set_num_threads(1);
    RELEASE(dy, index, x);
}

/* One number is added half a million times: one after the other 0.3 % of the sum would be wrong. */
TEST(half_a_million_uses_lose_no_digits) {
    enum { N = 500000 };
    tensor_set_default_dtype(F32);
    Tensor *w = ag_requires_grad(tensor_ones(SHAPE(2, 1)));
    Tensor *index = tensor_ones_of(SHAPE(N), I64);
    Tensor *dy = tensor_full(SHAPE(N, 1), 0.1);
    ck_assert(tape_begin());
    ck_assert(ag_backward_from(ag_embedding(w, index), dy));
    const double want = (double)0.1f * N, got = tensor_get(w->grad, 1, 0);
    ck_assert_msg(fabs(got / want - 1) < 1e-6, "%.9g, not %.9g", got, want);
    ck_assert(tensor_get(w->grad, 0, 0) == 0);
    tape_end();
    RELEASE(dy, index, w);
}

/* Equal queries and equal keys, so each gradient is a number times a count: dw one of Q K terms. */
LOOP_TEST(additive_scores_of_many_pairs_lose_no_digits, 2) {
    const int64_t Q = _i ? 300 : 7, K = _i ? 200 : 50;
    tensor_set_default_dtype(F32);
    Tensor *q = ag_requires_grad(tensor_full(SHAPE(2, Q, 5), 0.3));
    Tensor *k = ag_requires_grad(tensor_full(SHAPE(2, K, 5), 0.4));
    Tensor *w = ag_requires_grad(tensor_full(SHAPE(1, 5), 0.7));
    Tensor *dy = tensor_full(SHAPE(2, Q, K), 0.1);
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){K - 3, K});
    const double f = tanh((double)0.3f + (double)0.4f), by = (double)0.1f;
    const double g = by * (double)0.7f * (1 - f * f), n = (double)(Q * (2 * K - 3));
    ck_assert(tape_begin());
    ck_assert(ag_backward_from(ag_additive_scores(q, k, w, lens), dy));
    for (int64_t h = 0; h < 5; h++) {
        const double errors[] = {
            tensor_get(w->grad, 0, h) / (by * f * n) - 1,
            tensor_get(q->grad, 0, Q - 1, h) / (g * (double)(K - 3)) - 1,
            tensor_get(q->grad, 1, 0, h) / (g * (double)K) - 1,
            tensor_get(k->grad, 1, K - 1, h) / (g * (double)Q) - 1,
            tensor_get(k->grad, 0, K - 1, h),
        };
        for (int i = 0; i < COUNT(errors); i++)
            ck_assert_msg(fabs(errors[i]) < 3e-6, "%d: the error is %.3g", i, errors[i]);
    }
    tape_end();
    Tensor *all[] = {q, k, w, dy, lens};
    release_all(all, COUNT(all));
}

/* ---- the suite ----------------------------------------------------------------------------- */

int main(void) { return run_tests("ops"); }
