/* test_golden.c - every public name exists, and every function computes PyTorch's numbers.
 *
 * The rows of ops.def are the ops, and golden/contract.def lists all other names and says where the
 * numbers of each are tested. The numbers of the ops and of most functions of tensor.h are tested
 * here, with golden/functions/NAME.safetensors. golden/generate.py writes these files, and the
 * comment at its top describes the format.
 *
 * An op may have no such file yet, because a machine may have no PyTorch: then one line of the
 * output names it. With CI=true in the environment, as in .ci/run, that is a failure.
 *
 * The relative error may be 1e-12 in float64 and 2e-6 in float32. In addition an absolute error of
 * 1e-14 or 1e-6 is allowed, a few roundings of numbers of about 10, because sums may cancel.
 * Integers, bools, infinities and NaN are exact; so are tensor_to, tensor_arange and tensor_mul_.
 *
 * Run from the root of the repository, where the golden files are found. */
#include "../common.h"

#include "../../../nn/nn.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the contract -------------------------------------------------------------------------- */

typedef void Function(void);

typedef struct {
    const char *name;
    Function *function;
    const char *suite, *file; /* NULL: this suite and its files */
} Row;

#define ROW(name)                  {#name, (Function *)name, NULL, NULL},
#define GOLDEN(name)               ROW(name)
#define GOLDEN_MACRO(name)         {#name, NULL, NULL, NULL},
#define NUMBERS(name, suite, file) {#name, (Function *)name, #suite, file},
#define BEHAVIOUR(name, suite)     {#name, (Function *)name, #suite, NULL},
#define LATER(name, issue)
#define TYPE(name)
#define FIELD(type, name)
#define CONSTANT(name)
static const Row contract[] = {
#include "../../golden/contract.def"

#define ELEMENTWISE(name, ...) ROW(ag_##name)
#define OP(name, ...)          ROW(ag_##name)
#define COMPOSITE(name, ...)   ROW(ag_##name)
#include "ops.def"
};

#define GOLDEN(name)
#define GOLDEN_MACRO(name)
#define NUMBERS(name, suite, file)
#define BEHAVIOUR(name, suite)
#define LATER(name, issue)
#define TYPE(name)        _Static_assert(sizeof(name) > 0, #name);
#define FIELD(type, name) _Static_assert(offsetof(type, name) < sizeof(type), #name);
#define CONSTANT(name)    _Static_assert((name) == (name), #name);
#include "../../golden/contract.def"

#define GOLDEN(name)
#define GOLDEN_MACRO(name)
#define NUMBERS(name, suite, file)
#define BEHAVIOUR(name, suite)
#define LATER(name, issue) #name,
#define TYPE(name)
#define FIELD(type, name)
#define CONSTANT(name)
static const char *const later[] = {
#include "../../golden/contract.def"
    NULL};

/* ---- calling a function of tensor.h by its name -------------------------------------------- */

static const DType dtypes[] = {F32, F64, I64, BOOL};

static Tensor *number(double value, DType dtype) {
    Tensor *y = tensor_make(SCALAR, dtype);
    return y && tensor_fill(y, value) ? y : NULL;
}

/* Makes a new tensor of x's elements with a tensor_from_ function. */
#define FROM(from, type) from(x[0]->shape, (const type *)x[0]->data)

static Tensor *as_doubles(const Tensor *x) {
    Tensor *y = tensor_make(x->shape, F64);
    return y && tensor_to_doubles(x, y->data) ? y : NULL;
}

/* All bytes of the storage of x, which a function has just written. */
static Tensor *bytes_of(Tensor *x, bool written) {
    int64_t n = x->storage->size / (int64_t)dtype_size(x->dtype);
    return written ? tensor_as_strided(x, SHAPE(n), (int64_t[]){1}, 0) : NULL;
}

#define SEEDED(draw) (tensor_manual_seed((uint64_t)a[0]), draw)

/* name(...) of the inputs x and the numbers a. */
#define TENSOR_CALLS(CALL)                                                                         \
    CALL(tensor_zeros, tensor_zeros(shape_at(a)))                                                  \
    CALL(tensor_ones, tensor_ones(shape_at(a)))                                                    \
    CALL(tensor_full, tensor_full(shape_at(a + 1), a[0]))                                          \
    CALL(tensor_arange, tensor_arange(a[0], a[1], a[2]))                                           \
    CALL(tensor_eye, tensor_eye((int64_t)a[0]))                                                    \
    CALL(tensor_from_doubles, FROM(tensor_from_doubles, double))                                   \
    CALL(tensor_from_floats, FROM(tensor_from_floats, float))                                      \
    CALL(tensor_from_int64s, FROM(tensor_from_int64s, int64_t))                                    \
    CALL(tensor_from_bools, FROM(tensor_from_bools, bool))                                         \
    CALL(tensor_manual_seed, SEEDED(tensor_rand(SHAPE(3))))                                        \
    CALL(tensor_rand, SEEDED(tensor_rand(shape_at(a + 1))))                                        \
    CALL(tensor_randn, SEEDED(tensor_randn(shape_at(a + 1))))                                      \
    CALL(tensor_normal, SEEDED(tensor_normal(a[1], a[2], shape_at(a + 3))))                        \
    CALL(tensor_uniform, SEEDED(tensor_uniform(a[1], a[2], shape_at(a + 3))))                      \
    CALL(tensor_bernoulli, SEEDED(tensor_bernoulli(a[1], shape_at(a + 2))))                        \
    CALL(tensor_randint, SEEDED(tensor_randint((int64_t)a[1], (int64_t)a[2], shape_at(a + 3))))    \
    CALL(tensor_randperm, SEEDED(tensor_randperm((int64_t)a[1])))                                  \
    CALL(tensor_clone, tensor_clone(x[0]))                                                         \
    CALL(tensor_to, tensor_to(x[0], dtypes[(int)a[0]]))                                            \
    CALL(tensor_sort, tensor_sort(x[0], second))                                                   \
    CALL(tensor_numel, number((double)tensor_numel(x[0]), I64))                                    \
    CALL(tensor_item, number(tensor_item(x[0]), F64))                                              \
    CALL(tensor_get, number(tensor_get(x[0], (int64_t)a[0], (int64_t)a[1]), F64))                  \
    CALL(tensor_set, bytes_of(x[0], tensor_set(x[0], a[0], (int64_t)a[1], (int64_t)a[2])))         \
    CALL(tensor_to_doubles, as_doubles(x[0]))                                                      \
    CALL(tensor_allclose, number(tensor_allclose(x[0], x[1], a[0], a[1]), BOOL))                   \
    CALL(tensor_copy_from, bytes_of(x[0], tensor_copy_from(x[0], x[1])))                           \
    CALL(tensor_uniform_, SEEDED(bytes_of(x[0], tensor_uniform_(x[0], a[1], a[2]))))               \
    CALL(tensor_normal_, SEEDED(bytes_of(x[0], tensor_normal_(x[0], a[1], a[2]))))                 \
    CALL(tensor_fill, bytes_of(x[0], tensor_fill(x[0], a[0])))                                     \
    CALL(tensor_add_, bytes_of(x[0], tensor_add_(x[0], x[1], a[0])))                               \
    CALL(tensor_mul_, bytes_of(x[0], tensor_mul_(x[0], a[0])))

#define DEFINE(name, expression)                                                                   \
    static Tensor *call_##name(Tensor **x, const double *a, Tensor **second) {                     \
        (void)x, (void)a, (void)second;                                                            \
        return expression;                                                                         \
    }
#define ENTRY(name, expression) {#name, call_##name},
TENSOR_CALLS(DEFINE)

static const struct {
    const char *name;
    Tensor *(*call)(Tensor **x, const double *a, Tensor **second);
} tensor_calls[] = {TENSOR_CALLS(ENTRY)};

/* ---- reading a case -------------------------------------------------------------------------- */

enum { IN_MAX = 6, NUMBERS_MAX = 24 };

typedef struct {
    const TensorDict *file;
    int i;            /* the number of the case */
    const char *text; /* "float32 transposed; numbers 1; in0 2 3 4 1 3 0;" */
    char name[128];   /* for messages */
    bool exact;       /* rounding is all that it computes, once */
    double number[NUMBERS_MAX];
    int n;
    Tensor *in[IN_MAX]; /* NULL where the input is absent */
} Case;

/* The tensor "7.in0" of the file; NULL, without an error, if there is none. */
static Tensor *stored(const Case *c, const char *kind, int i) {
    char name[32];
    snprintf(name, sizeof name, "%d.%s%d", c->i, kind, i);
    for (int k = 0; k < c->file->n; k++)
        if (!strcmp(c->file->entry[k].name, name)) return c->file->entry[k].tensor;
    return NULL;
}

/* Reads the numbers of a field of the text, "numbers 1 2;". Returns how many there are. */
static int field(const char *text, const char *name, double *to, int capacity) {
    int n = 0;
    const char *at = strstr(text, name);
    if (!at) return 0;
    at += strlen(name);
    for (char *end; n < capacity; n++, at = end) {
        to[n] = strtod(at, &end);
        if (end == at) break;
    }
    ck_assert_msg(*at == ';', "%s in %s", name, text);
    return n;
}

/* Input i: the tensor in the file, or the view of it that the text describes. You own it; NULL if
 * absent. */
static Tensor *input(const Case *c, int i) {
    double number[2 + 2 * TENSOR_MAX_DIMS];
    int64_t stride[TENSOR_MAX_DIMS];
    Tensor *x = stored(c, "in", i);
    const char *name = format(" in%d ", i);
    if (!x || !field(c->text, name, number, COUNT(number))) return x ? tensor_clone(x) : NULL;
    Shape shape = shape_at(number);
    for (int d = 0; d < shape.ndim; d++) stride[d] = (int64_t)number[1 + shape.ndim + d];
    Tensor *bytes = tensor_clone(x);
    Tensor *view = tensor_as_strided(bytes, shape, stride, (int64_t)number[1 + 2 * shape.ndim]);
    ck_assert_msg(view != NULL, "%s: %s", c->name, tensor_error());
    tensor_release(bytes);
    return view;
}

/* Reads case i of the golden file of a function, and sets the default type to the type of the case.
 */
static Case read_case(const TensorDict *file, const char *function, int i) {
    Case c = {.file = file, .i = i};
    c.text = tensor_dict_metadata(file, format("%d", i));
    ck_assert_msg(c.text != NULL, "%s: no case %d", function, i);
    snprintf(c.name, sizeof c.name, "%s, case %d: %s", function, i, c.text);
    c.exact = strstr("tensor_to tensor_arange tensor_mul_", function) != NULL;
    tensor_set_default_dtype(strncmp(c.text, "float32", 7) ? F64 : F32);
    field(c.text, " numbers", c.number, NUMBERS_MAX);
    for (int k = 0; k < IN_MAX; k++) {
        c.in[k] = input(&c, k);
        if (c.in[k]) c.n = k + 1;
        if (stored(&c, "grad", k)) ck_assert_ptr_nonnull(ag_requires_grad(c.in[k]));
    }
    return c;
}

static void golden_path(const char *function, char *path, size_t size) {
    snprintf(path, size, "tests/golden/functions/%s.safetensors", function);
}

/* Is it an op without a golden file? */
static bool has_no_numbers(const char *function) {
    char path[128];
    golden_path(function, path, sizeof path);
    return !strncmp(function, "ag_", 3) && op_row(function + 3) && access(path, F_OK) != 0;
}

static TensorDict *open_golden(const char *function) {
    char path[128];
    golden_path(function, path, sizeof path);
    TensorDict *file = tensor_load_safetensors(path);
    ck_assert_msg(file != NULL, "%s (run me from the root of the repository)", tensor_error());
    return file;
}

static int count_cases(const TensorDict *file) {
    const char *cases = tensor_dict_metadata(file, "cases");
    return cases ? atoi(cases) : 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* strict: the sign of a 0 counts. exact: every bit does. */
static bool is_close(double x, double expected, DType dtype, bool strict, bool exact) {
    const double relative = dtype == F32 ? 2e-6 : 1e-12, absolute = dtype == F32 ? 1e-6 : 1e-14;
    if (strict && x == 0 && expected == 0) return !signbit(x) == !signbit(expected);
    if (isnan(expected)) return isnan(x);
    if (exact || isinf(expected)) return x == expected;
    return fabs(x - expected) <= relative * fabs(expected) + absolute;
}

/* The index of the first wrong element, or -1. Integers are compared as int64, other types as
 * double. */
static int64_t first_wrong(const Tensor *x, const Tensor *expected, bool strict, bool exact) {
    const bool real = dtype_is_float(x->dtype);
    Tensor *a = tensor_to(x, real ? F64 : I64);
    Tensor *b = tensor_to(expected, real ? F64 : I64);
    ck_assert_msg(a && b, "%s", tensor_error());
    int64_t i = 0, n = tensor_numel(a);
    while (i < n &&
           (real ? is_close(((double *)a->data)[i], ((double *)b->data)[i], x->dtype, strict, exact)
                 : ((int64_t *)a->data)[i] == ((int64_t *)b->data)[i]))
        i++;
    RELEASE(a, b);
    return i < n ? i : -1;
}

static double element(const Tensor *x, int64_t i) {
    double elements[1024];
    ck_assert(tensor_numel(x) <= COUNT(elements) && tensor_to_doubles(x, elements));
    return elements[i];
}

static void expect(const Case *c, const char *what, const Tensor *x, const Tensor *expected) {
    ck_assert_msg(x != NULL, "%s %s is NULL: %s", c->name, what, tensor_error());
    ck_assert_msg(x->dtype == expected->dtype && shape_equal(x->shape, expected->shape),
                  "%s %s is %s %s and should be %s %s", c->name, what, tensor_dtype_name(x->dtype),
                  tensor_shape_text(x->shape), tensor_dtype_name(expected->dtype),
                  tensor_shape_text(expected->shape));
    const int64_t i = first_wrong(x, expected, *what == 'o', c->exact);
    if (i >= 0)
        ck_abort_msg("%s %s: element %" PRId64 " is %.17g and should be %.17g", c->name, what, i,
                     element(x, i), element(expected, i));
}

/* dy for y: as many of the file's random numbers as y has elements. You own it. */
static Tensor *cotangent(const Case *c, const Tensor *y) {
    int64_t stride[TENSOR_MAX_DIMS];
    tensor_shape_strides(y->shape, stride);
    Tensor *numbers = tensor_to(tensor_dict_get(c->file, "dy"), y->dtype);
    Tensor *dy = tensor_as_strided(numbers, y->shape, stride, 0);
    ck_assert_msg(dy != NULL, "%s: %s", c->name, tensor_error());
    tensor_release(numbers);
    return dy;
}

/* Backpropagates dy and compares every gradient with the file, also that an input has none.
 * Compares the grad_fn of y. */
static void expect_gradients(const Case *c, Tensor *y) {
    char what[64];
    Tensor *dy = y->requires_grad ? cotangent(c, y) : NULL;
    snprintf(what, sizeof what, "grad_fn %s;", y->grad_fn ? y->grad_fn : "");
    ck_assert_msg(!strstr(c->text, "grad_fn") || strstr(c->text, what), "%s is: %s", c->name, what);
    ck_assert_msg(!dy || ag_backward_from(y, dy), "%s: %s", c->name, tensor_error());
    for (int k = 0; k < c->n; k++) {
        const Tensor *expected = stored(c, "grad", k);
        snprintf(what, sizeof what, "grad%d", k);
        if (expected) expect(c, what, c->in[k]->grad, expected);
        else ck_assert(!c->in[k] || !c->in[k]->grad);
    }
    tensor_release(dy);
}

static void call_tensor_function(const Case *c, const char *function) {
    Tensor *second = NULL;
    int i = 0;
    while (i < COUNT(tensor_calls) && strcmp(tensor_calls[i].name, function)) i++;
    ck_assert_msg(i < COUNT(tensor_calls), "nobody knows how to call %s: add a CALL", function);
    Tensor *y = tensor_calls[i].call((Tensor **)c->in, c->number, &second);
    expect(c, "out0", y, stored(c, "out", 0));
    if (stored(c, "out", 1)) expect(c, "out1", second, stored(c, "out", 1));
    RELEASE(second, y);
}

static void call_differentiable(const Case *c, const char *function) {
    ck_assert(tape_begin());
    tensor_manual_seed(0);
    Tensor *y = strcmp(function, "ag_contiguous") /* call_op would transpose x first */
                    ? call_op(function + strlen("ag_"), (Tensor **)c->in, c->n, c->number)
                    : ag_contiguous(c->in[0]);
    expect(c, "out0", y, stored(c, "out", 0));
    expect_gradients(c, y);
    tape_end();
}

static void check_case(const TensorDict *file, const char *function, int i) {
    Case c = read_case(file, function, i);
    if (!strncmp(function, "ag_", 3)) call_differentiable(&c, function);
    else call_tensor_function(&c, function);
    for (int k = 0; k < c.n; k++) tensor_release(c.in[k]);
}

CASE("numbers")
LOOP_TEST(what_torch_computes, COUNT(contract)) {
    const Row *row = &contract[_i];
    if (row->suite || has_no_numbers(row->name)) return;
    TensorDict *file = open_golden(row->name);
    ck_assert_int_gt(count_cases(file), 0);
    for (int i = 0; i < count_cases(file); i++) check_case(file, row->name, i);
    tensor_dict_free(file);
}

/* ---- do the goldens cover what they should? -------------------------------------------------- */

CASE("cover")
/* Every differentiable function must have golden values and gradients in both types, for views and
 * for empty inputs. */
LOOP_TEST(every_gradient_has_views_and_empty_inputs_in_both_types, COUNT(contract)) {
    const char *function = contract[_i].name;
    const Op *op = contract[_i].suite || strncmp(function, "ag_", 3) ? NULL : find_op(function + 3);
    if (!op || !op->backward || has_no_numbers(function)) return;
    bool gradient[2] = {0}, view[2] = {0}, empty[2] = {0};
    TensorDict *file = open_golden(function);
    for (int i = 0; i < count_cases(file); i++) {
        Case c = read_case(file, function, i);
        DType type = tensor_default_dtype();
        const Tensor *grad = stored(&c, "grad", 0) ? stored(&c, "grad", 0) : stored(&c, "grad", 1);
        gradient[type] |= grad && tensor_numel(grad) > 1;
        empty[type] |= grad && tensor_numel(grad) == 0;
        view[type] |= grad && strstr(c.text, "; in") != NULL;
        for (int k = 0; k < c.n; k++) tensor_release(c.in[k]);
    }
    tensor_dict_free(file);
    for (DType type = F32; type <= F64; type++)
        ck_assert_msg(gradient[type] && view[type] &&
                          (empty[type] || op_row(op->name)->needs_elements),
                      "%s in %s: %s", function, tensor_dtype_name(type),
                      "no golden of a gradient, a view or no elements");
}

static const char *const headers[] = {"tensor/tensor.h", "autograd/autograd.h", "nn/nn.h"};

static const Row *row_of(const char *name) {
    for (int i = 0; i < COUNT(contract); i++)
        if (!strcmp(contract[i].name, name)) return &contract[i];
    return NULL;
}

static bool in_ci(void) { return getenv("CI") && *getenv("CI"); }

LOOP_TEST(every_op_has_a_golden, number_of_rows()) {
    const char *name = format("ag_%s", op_rows[_i].name);
    ck_assert_msg(!in_ci() || !has_no_numbers(name),
                  "%s has no golden numbers: run tests/golden/generate.py %s", name, name);
}

TEST(ops_without_a_golden_are_named) {
    char names[2000] = "";
    for (const OpRow *row = op_rows; row->name; row++) {
        char name[64];
        snprintf(name, sizeof name, " ag_%s", row->name);
        if (has_no_numbers(name + 1)) strncat(names, name, sizeof names - strlen(names) - 1);
    }
    if (!*names) return;
    left_out(format("no golden numbers yet, tests/golden/generate.py makes them:%s", names));
}

TEST(every_golden_is_used_and_no_name_comes_twice) {
    DIR *folder = opendir("tests/golden/functions");
    ck_assert_msg(folder != NULL, "run me from the root of the repository");
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        const char *name = format("%.*s", (int)strcspn(entry->d_name, "."), entry->d_name);
        const Row *row = row_of(name);
        ck_assert_msg(row && !row->suite, "%s is a file of no function", name);
    }
    closedir(folder);
    for (int i = 0; i < COUNT(contract); i++)
        ck_assert_msg(row_of(contract[i].name) == &contract[i], "%s twice", contract[i].name);
}

/* Does the line contain the text as a whole name? Lines of comments do not count. */
static bool line_has(const char *line, const char *text) {
    const char *first = line + strspn(line, " ");
    if (*first == '*' || !strncmp(first, "/*", 2)) return false;
    for (const char *at = strstr(first, text); at; at = strstr(at + 1, text))
        if (at == line || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) return true;
    return false;
}

static bool file_has(const char *path, const char *text) {
    char line[1024];
    bool found = false;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "no %s (run me from the root of the repository)", path);
    while (!found && fgets(line, sizeof line, file)) found = line_has(line, text);
    fclose(file);
    return found;
}

LOOP_TEST(what_is_tested_elsewhere_is_called_there, COUNT(contract)) {
    const Row *row = &contract[_i];
    char suite[128], text[128];
    if (!row->suite) return;
    snprintf(suite, sizeof suite, "tests/suites/library/%s.c", row->suite);
    snprintf(text, sizeof text, "%s(", row->name);
    ck_assert_msg(file_has(suite, text), "%s never calls %s", suite, row->name);
    if (!row->file) return;
    ck_assert_msg(file_has(suite, row->file), "%s does not read %s", suite, row->file);
    snprintf(text, sizeof text, "tests/golden/%s", row->file);
    ck_assert_msg(access(text, R_OK) == 0, "no %s", text);
}

/* The next public function that the text declares or defines: "tensor_zeros(". */
static const char *next_function(const char **at, char *name, size_t size) {
    static const char *const prefixes[] = {"tensor_", "ag_", "tape_", "nn_"};
    for (const char *text = *at; *text; text++) {
        size_t length = 0;
        if (text[0] == '/' && text[1] == '*') text = strstr(text, "*/");
        while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
        if (length == 0) continue;
        for (int i = 0; i < COUNT(prefixes) && text[length] == '('; i++) {
            if (strncmp(text, prefixes[i], strlen(prefixes[i]))) continue;
            snprintf(name, size, "%.*s", (int)length, text);
            *at = text + length;
            return name;
        }
        text += length - 1;
    }
    return NULL;
}

LOOP_TEST(every_public_function_is_listed, COUNT(headers)) {
    static char text[1 << 16], name[64];
    FILE *file = fopen(headers[_i], "r");
    ck_assert_msg(file != NULL, "run me from the root of the repository");
    size_t length = fread(text, 1, sizeof text - 1, file), found = 0;
    ck_assert_uint_lt(length, sizeof text - 1);
    text[length] = '\0';
    fclose(file);
    for (const char *at = text; next_function(&at, name, sizeof name); found++)
        ck_assert_msg(
            row_of(name) != NULL,
            "%s of %s is neither in tests/suites/library/ops.def nor in tests/golden/contract.def",
            name, headers[_i]);
    ck_assert_uint_gt(found, 20);
}

TEST(what_is_to_come_has_not_come_yet) {
    for (int i = 0; later[i]; i++)
        for (int k = 0; k < COUNT(headers); k++)
            ck_assert_msg(!file_has(headers[k], later[i]), "%s has come: test it", later[i]);
}

/* Also by hand, where no script gives it one; Check's own limit is 4 seconds. */
TEST(every_suite_has_a_limit_of_time) { ck_assert_ptr_nonnull(getenv("CK_DEFAULT_TIMEOUT")); }

int main(void) { return run_tests("golden"); }
