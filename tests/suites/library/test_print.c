/* test_print.c - tensor_print against PyTorch's own text.
 *
 * tests/golden/print.txt holds tensors of every type, shape, range and stride, and the text that
 * PyTorch 2.15 printed for each; tests/golden/generate_print.py made the file and describes its
 * format. This suite makes each tensor from its bits, as a view of its storage, and compares the
 * texts byte for byte. An argument of this program names another file of cases, for fuzzing.
 */
#include "../../../tensor/tensor.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../common.h"

/* The text that tensor_print writes for x; free it. */
static char *printed(const Tensor *x) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    bool ok = tensor_print(x, file);
    fclose(file);
    ck_assert_msg(ok, "%s", tensor_error());
    return text;
}

/* Checks the text of x and releases x. */
static void expect(Tensor *x, const char *want) {
    ck_assert_msg(x != NULL, "%s", tensor_error());
    char *text = printed(x);
    ck_assert_str_eq(text, want);
    free(text);
    tensor_release(x);
}

/* ---- the golden file ------------------------------------------------------------------------- */

typedef struct {
    char dtype[16], default_dtype[16], grad_fn[128];
    int requires_grad, is_parameter;
    Shape shape;
    int64_t stride[TENSOR_MAX_DIMS], offset, count;
    Tensor *x;
    size_t size;
    char *text; /* size bytes and a final 0 */
} Case;

static int64_t read_int(FILE *file) {
    int64_t value = 0;
    ck_assert_int_eq(fscanf(file, "%" SCNd64, &value), 1);
    return value;
}

static DType dtype_of(const char *name) {
    for (int dtype = F32; dtype <= BOOL; dtype++)
        if (strcmp(name, tensor_dtype_name((DType)dtype)) == 0) return (DType)dtype;
    ck_abort_msg("no such type: %s", name);
    return F32;
}

static bool read_header(FILE *file, Case *c) {
    int fields = fscanf(file, "%15s %15s %d %d %127s %d", c->dtype, c->default_dtype,
                        &c->requires_grad, &c->is_parameter, c->grad_fn, &c->shape.ndim);
    if (fields == EOF) return false;
    ck_assert_int_eq(fields, 6);
    ck_assert_int_le(c->shape.ndim, TENSOR_MAX_DIMS);
    for (int d = 0; d < c->shape.ndim; d++) c->shape.dim[d] = read_int(file);
    for (int d = 0; d < c->shape.ndim; d++) c->stride[d] = read_int(file);
    c->offset = read_int(file);
    c->count = read_int(file);
    c->size = (size_t)read_int(file);
    return true;
}

/* The storage: one dimension, c->count elements, each from its bit pattern. */
static Tensor *read_storage(FILE *file, const Case *c) {
    Shape shape = SHAPE(c->count);
    DType dtype = dtype_of(c->dtype);
    const size_t size = (const size_t[]){4, 8, 8, sizeof(bool)}[dtype];
    char *elements = malloc((size_t)c->count * size + 1);
    for (int64_t i = 0; i < c->count; i++) {
        uint64_t bits;
        ck_assert_int_eq(fscanf(file, "%" SCNx64, &bits), 1);
        uint32_t low = (uint32_t)bits;
        bool set = bits != 0;
        const void *const from[] = {&low, &bits, &bits, &set};
        memcpy(elements + (size_t)i * size, from[dtype], size);
    }
    tensor_set_default_dtype(dtype == F64 ? F64 : F32);
    void *e = elements;
    Tensor *x = NULL;
    switch (dtype) {
    case F32: x = tensor_from_floats(shape, e); break;
    case F64: x = tensor_from_doubles(shape, e); break;
    case I64: x = tensor_from_int64s(shape, e); break;
    case BOOL: x = tensor_from_bools(shape, e); break;
    }
    free(elements);
    return x;
}

static bool read_case(FILE *file, Case *c) {
    *c = (Case){0};
    if (!read_header(file, c)) return false;
    Tensor *storage = read_storage(file, c);
    c->x = tensor_as_strided(storage, c->shape, c->stride, c->offset);
    tensor_release(storage);
    ck_assert_msg(c->x != NULL, "%s", tensor_error());
    c->x->requires_grad = c->requires_grad;
    c->x->is_parameter = c->is_parameter;
    c->x->grad_fn = strcmp(c->grad_fn, "-") == 0 ? NULL : c->grad_fn;

    while (fgetc(file) != '\n') {
    } /* the line of elements ends here; it is blank if there are none */
    if (c->count == 0) ck_assert_int_eq(fgetc(file), '\n');
    c->text = calloc(c->size + 1, 1);
    ck_assert_uint_eq(fread(c->text, 1, c->size, file), c->size);
    tensor_set_default_dtype(dtype_of(c->default_dtype));
    return true;
}

/* Properties that some cases must have; check_cases counts them. */
typedef enum {
    NANS = BOOL + 1, /* the types come first */
    INFINITIES,
    DENORMALS,
    EMPTY,
    SCALARS,
    SUMMARISED,
    SCIENTIFIC,
    EIGHT_DIMENSIONS,
    VIEWS,
    LEAVES,
    PARAMETERS,
    RESULTS,
    OTHER_DEFAULT_TYPE,
    KINDS
} Kind;

static bool has_denormal(const Tensor *x) {
    const double smallest = x->dtype == F32 ? 1.1754943508222875e-38 : 2.2250738585072014e-308;
    int64_t n = tensor_numel(x);
    double *element = malloc((size_t)(n + 1) * sizeof *element);
    bool found = false;
    ck_assert(tensor_to_doubles(x, element));
    for (int64_t i = 0; i < n && x->dtype <= F64; i++)
        found = found || (element[i] != 0 && fabs(element[i]) < smallest);
    free(element);
    return found;
}

static void count_kinds(const Case *c, int *seen) {
    const Tensor *x = c->x;
    seen[x->dtype]++;
    seen[NANS] += strstr(c->text, "nan") != NULL;
    seen[INFINITIES] += strstr(c->text, "inf") != NULL;
    seen[DENORMALS] += has_denormal(x);
    seen[EMPTY] += tensor_numel(x) == 0;
    seen[SCALARS] += x->shape.ndim == 0;
    seen[SUMMARISED] += tensor_numel(x) > 1000;
    seen[SCIENTIFIC] += strstr(c->text, "e-") != NULL && strstr(c->text, "e+") != NULL;
    seen[EIGHT_DIMENSIONS] += x->shape.ndim == 8;
    seen[VIEWS] += !tensor_is_contiguous(x);
    seen[LEAVES] += x->requires_grad && !x->grad_fn && !x->is_parameter;
    seen[PARAMETERS] += x->is_parameter;
    seen[RESULTS] += x->grad_fn != NULL;
    seen[OTHER_DEFAULT_TYPE] += x->dtype <= F64 && x->dtype != tensor_default_dtype();
}

/* Prints every case of the file and compares; returns how many there were. */
static int check_cases(const char *path, int *seen) {
    int cases = 0;
    Case c;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s: run the tests from the repository's root", path);
    for (; read_case(file, &c); cases++) {
        char *text = printed(c.x);
        ck_assert_msg(strcmp(text, c.text) == 0, "case %d: wanted\n%.1500s\ngot\n%.1500s", cases,
                      c.text, text);
        count_kinds(&c, seen);
        free(text);
        free(c.text);
        tensor_release(c.x);
    }
    fclose(file);
    return cases;
}

static const char *golden = "tests/golden/print.txt";

CASE("print", .setup = frame_setup_float, .teardown = frame_teardown)
TEST(test_golden) {
    int seen[KINDS] = {0};
    ck_assert_int_ge(check_cases(golden, seen), 300);
    for (int kind = 0; kind < KINDS; kind++)
        ck_assert_msg(seen[kind] >= 5, "only %d cases of kind %d", seen[kind], kind);
}

/* ---- what PyTorch cannot print --------------------------------------------------------------- */

TEST(test_result_without_gradient_shows_none) {
    Tensor *x = tensor_ones(SHAPE(1));
    x->grad_fn = "AddBackward0";
    expect(x, "tensor([1.])\n");
}

/* A million times a million elements: only the elements that are shown are read. */
TEST(test_huge_expanded) {
    Tensor *one = tensor_ones(SCALAR);
    expect(tensor_as_strided(one, SHAPE(1000000, 1000000), (int64_t[]){0, 0}, 0),
           "tensor([[1., 1., 1.,  ..., 1., 1., 1.],\n"
           "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
           "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
           "        ...,\n"
           "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
           "        [1., 1., 1.,  ..., 1., 1., 1.],\n"
           "        [1., 1., 1.,  ..., 1., 1., 1.]])\n");
    tensor_release(one);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void expect_refusal(const Tensor *x, FILE *file, const char *sentence) {
    FAILS(tensor_print(x, file), sentence);
}

TEST(test_null) {
    Tensor *x = tensor_ones(SHAPE(2));
    expect_refusal(NULL, stdout, "print: the tensor is NULL");
    expect_refusal(x, NULL, "print: the file is NULL");
    tensor_release(x);
}

TEST(test_pending_error_prints_nothing) {
    Tensor *x = tensor_ones(SHAPE(2));
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    tensor_fail("something went wrong before");
    expect_refusal(x, file, "something went wrong before");
    fclose(file);
    ck_assert_uint_eq(size, 0);
    free(text);
    tensor_release(x);
}

/* A file to which every write fails, and a file on a full disk, where only the flush fails. */
TEST(test_write_errors) {
    const char *sentence = "print: the file could not be written";
    Tensor *x = tensor_ones(SHAPE(2));
    FILE *file = fopen("/dev/null", "r");
    ck_assert_ptr_nonnull(file);
    expect_refusal(x, file, sentence);
    fclose(file);
    file = fopen("/dev/full", "w");
    if (file) expect_refusal(x, file, sentence);
    if (file) fclose(file);
    tensor_release(x);
}

/* Do n significant digits read back as x? */
static bool reads_back(double x, DType dtype, int n) {
    char text[32];
    snprintf(text, sizeof text, "%.*e", n - 1, x);
    return dtype == F32 ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x;
}

static void expect_fewest_digits(double x, DType dtype) {
    const int n = tensor_fewest_digits(x, dtype);
    ck_assert_msg(reads_back(x, dtype, n), "%a: %d digits", x, n);
    for (int fewer = 1; fewer < n; fewer++)
        ck_assert_msg(!reads_back(x, dtype, fewer), "%a: %d digits", x, fewer);
}

/* All powers of two: the numbers below one are closer to it than the numbers above. */
TEST(test_fewest_digits) {
    ck_assert_int_eq(tensor_fewest_digits(0, F64), 1);
    ck_assert_int_eq(tensor_fewest_digits(-0.125, F32), 3);
    ck_assert_int_eq(tensor_fewest_digits(0.1, F64), 1);
    ck_assert_int_eq(tensor_fewest_digits(0.1 + 0.2, F64), 17);
    ck_assert_int_eq(tensor_fewest_digits((double)0.1f, F32), 1);
    ck_assert_int_eq(tensor_fewest_digits((double)16777217.0f / 3, F32), 8);
    ck_assert_int_eq(tensor_fewest_digits(1.7976931348623157e308, F64), 17);
    for (int e = -1074; e < 1024; e++) expect_fewest_digits(ldexp(1, e), F64);
    for (int e = -149; e < 128; e++) expect_fewest_digits(ldexp(1, e), F32);
    Tensor *x = tensor_randn(SHAPE(2000));
    for (int i = 0; i < 2000; i++) expect_fewest_digits(tensor_get(x, i), F32);
    for (int i = 0; i < 2000; i++) expect_fewest_digits(exp(10 * tensor_get(x, i)), F64);
    for (int i = 0; i < 2000; i++) expect_fewest_digits(rint(1e6 * tensor_get(x, i)) / 1e3, F64);
    tensor_release(x);
}

int main(int argc, char **argv) {
    if (argc > 1) golden = argv[1];
    return run_tests("print");
}
