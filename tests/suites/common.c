/* common.c - the frame around a test, and every op of the table with inputs that suit it. */
#include "common.h"

#include "../../nn/nn.h"
#include "../../tensor/parts.h"

#include <assert.h>
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the frame ----------------------------------------------------------------------------- */

/* Check stops a test after 4 seconds, but on a busy machine a right test can take longer: the limit
 * is for one that hangs. Each case reads its limit when it is made, so this runs before main. */
__attribute__((constructor)) static void set_limit(void) { setenv("CK_DEFAULT_TIMEOUT", "300", 0); }

static bool left_cases; /* sampled() left some out */

/* Tests and cases, by their lines: constructors may run in any order. */
static ListedTest entries[512];
static int num_entries;
void enter_test(const ListedTest *entry) {
    assert(num_entries < COUNT(entries));
    int at = num_entries++;
    for (; at > 0 && entries[at - 1].line > entry->line; at--) entries[at] = entries[at - 1];
    entries[at] = *entry;
}

static TCase *begin_case(Suite *suite, const ListedTest *e) {
    TCase *tcase;
    if (e->setup) tcase = add_case(suite, e->title, e->setup, e->teardown);
    else if (e->make) tcase = e->make(suite, e->title);
    else tcase = add_framed_case(suite, e->title);
    if (e->inner_setup) tcase_add_checked_fixture(tcase, e->inner_setup, e->inner_teardown);
    if (e->seconds > 0) tcase_set_timeout(tcase, e->seconds);
    return e->is_long ? mark_long(tcase) : tcase;
}

/* The case with this title, which may have begun before. */
static TCase *case_of(Suite *suite, int i, TCase **made) {
    int first = 0;
    while (entries[first].test || strcmp(entries[first].title, entries[i].title) != 0) first++;
    if (first == i) made[i] = begin_case(suite, &entries[i]);
    return made[first];
}

int run_tests(const char *name) {
    static TCase *made[COUNT(entries)];
    Suite *suite = suite_create(name);
    TCase *tcase = NULL;
    for (int i = 0; i < num_entries; i++) {
        const ListedTest *e = &entries[i];
        if (!e->test) tcase = case_of(suite, i, made);
        else tcase_add_loop_test(tcase, e->test, e->first(), e->end());
    }
    return run_suite(suite);
}

/* IN_PARTS=1: threads share all work that can be cut, however small it is. */
int run_suite(Suite *suite) {
    if (getenv("IN_PARTS")) {
        worth_a_thread = 16;
        threads_take_turns = true;
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    if (left_cases) puts("sampled"); /* tools/run-suites reads it */
    srunner_free(runner);
    return failed != 0;
}

/* The bytes of tensor_cache_alloc that are in use, those of tensors and all others: the linker
 * replaces both functions. The linker of macOS cannot do that, nor can any with -flto. */
static atomic_long used;

#if !defined __APPLE__ && !defined NOTHING_COUNTED
void *__real_tensor_cache_alloc(int64_t size);
void *__wrap_tensor_cache_alloc(int64_t size);
void __real_tensor_cache_free(void *block, int64_t size);
void __wrap_tensor_cache_free(void *block, int64_t size);

void *__wrap_tensor_cache_alloc(int64_t size) {
    void *block = __real_tensor_cache_alloc(size);
    if (block) used += (long)size;
    return block;
}

void __wrap_tensor_cache_free(void *block, int64_t size) {
    if (block) used -= (long)size;
    __real_tensor_cache_free(block, size);
}
#endif

/* wasm-ld replaces the calls inside of allocator.c, too, so structs that wait there are counted. */
static long bytes_in_use(void) {
#ifdef __wasm__
    tensor_empty_cache();
#endif
    return used;
}

static int64_t live_before;
static long used_before;

void frame_setup(void) {
    live_before = tensor_live();
    used_before = bytes_in_use();
    tensor_set_default_dtype(F64);
    tensor_manual_seed(0);
}

void frame_setup_float(void) {
    frame_setup();
    tensor_set_default_dtype(F32);
}

void frame_teardown(void) {
    ck_assert_msg(!tensor_error(), "an error is pending: %s", tensor_error());
    Tensor *x = tensor_ones(SCALAR);
    ck_assert_msg(!ag_neg(x), "a tape is still open");
    tensor_release(x);
    tensor_clear_error();
    ck_assert_int_eq(tensor_live(), live_before);
    ck_assert_int_eq(bytes_in_use(), used_before);
}

TCase *add_case(Suite *suite, const char *name, void (*setup)(void), void (*teardown)(void)) {
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    return tcase;
}

TCase *add_framed_case(Suite *suite, const char *name) {
    return add_case(suite, name, frame_setup, frame_teardown);
}

int sampled(int n, int step) {
    const char *all = getenv("ALL");
    if (all && *all) return n;
    left_cases |= n > 1 && step > 1;
    return (n + step - 1) / step;
}

int sample_step(int step) { return sampled(step, step) == step ? 1 : step; }

void left_out(const char *what) {
    printf("left out: %s\n", what);
    fflush(stdout);
}

bool left_out_under_emulator(const char *test) {
    const char *emulator = getenv("EMULATOR");
    if (!emulator || !*emulator) return false;
    left_out(format("%s: it needs the machine itself, not %s", test, emulator));
    return true;
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

/* ---- texts --------------------------------------------------------------------------------- */

const char *format(const char *text, ...) {
    static char filled[8][2048];
    static unsigned calls;
    char *result = filled[calls++ % 8];
    va_list arguments;
    va_start(arguments, text);
    ck_assert_int_lt(vsnprintf(result, sizeof *filled, text, arguments), (int)sizeof *filled);
    va_end(arguments);
    return result;
}

int occurrences(const char *text, const char *part) {
    int n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
    return n;
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

void expect_close(const char *what, const Tensor *a, const Tensor *b, double tolerance) {
    ck_assert_msg(a && b, "%s: %s", what, tensor_error() ? tensor_error() : "is missing");
    ck_assert_msg(tensor_allclose(a, b, tolerance, tolerance), "%s differs", what);
}

void set_gradient(Tensor *x, Tensor *gradient) {
    tensor_release(x->grad);
    x->grad = gradient;
}

void release_all(Tensor **list, int n) {
    for (int i = 0; i < n; i++) tensor_release(list[i]);
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

/* ---- functions that make a tensor ------------------------------------------------------------ */

static const Shape six = {2, {2, 3}};

static Tensor *filled_empty(void) {
    Tensor *x = tensor_empty(six);
    if (x) tensor_fill(x, 3);
    return x;
}

/* A name and a call. */
#define MAKERS(MAKER)                                                                              \
    MAKER(from_floats, tensor_from_floats(six, (float[]){1, 2, 3, 4, 5, 6}))                       \
    MAKER(from_int64s, tensor_from_int64s(six, (int64_t[]){1, 2, 3, 4, 5, 6}))                     \
    MAKER(from_bools, tensor_from_bools(SHAPE(2), (bool[]){true, false}))                          \
    MAKER(from_doubles, tensor_from_doubles(six, (double[]){1, 2, 3, 4, 5, 6}))                    \
    MAKER(zeros, tensor_zeros(six))                                                                \
    MAKER(ones, tensor_ones(six))                                                                  \
    MAKER(full, tensor_full(six, 7))                                                               \
    MAKER(empty_without_elements, tensor_empty(SHAPE(0)))                                          \
    MAKER(arange_without_elements, tensor_arange(0, 0, 1))                                         \
    MAKER(empty, filled_empty())                                                                   \
    MAKER(arange, tensor_arange(0, 5, 1))                                                          \
    MAKER(full_of, tensor_full_of(six, 7, I64))                                                    \
    MAKER(arange_of, tensor_arange_of(0, 5, 1, I64))                                               \
    MAKER(eye, tensor_eye(3))                                                                      \
    MAKER(rand, tensor_rand(six))                                                                  \
    MAKER(uniform, tensor_uniform(2, 3, six))                                                      \
    MAKER(randn, tensor_randn(six))                                                                \
    MAKER(normal, tensor_normal(1, 2, SHAPE(5, 7)))                                                \
    MAKER(bernoulli, tensor_bernoulli(0.5, six))                                                   \
    MAKER(randint, tensor_randint(0, 9, six))                                                      \
    MAKER(randperm, tensor_randperm(9))                                                            \
    MAKER(rope_linear, tensor_rope_linear(6, 10, 2))                                               \
    MAKER(rope_llama3, tensor_rope_llama3(6, 10, 2, 1, 4, 64))                                     \
    MAKER(multinomial, multinomial(false))                                                         \
    MAKER(multinomial_again, multinomial(true))

static Tensor *multinomial(bool replacement) {
    Tensor *w = tensor_full(SHAPE(2, 3), 0.5);
    Tensor *index = w ? tensor_multinomial(w, 2, replacement) : NULL;
    tensor_release(w);
    return index;
}

#define MAKE_FUNCTION(name, call)                                                                  \
    static Tensor *make_##name(void) { return call; }
MAKERS(MAKE_FUNCTION)
#define MAKER_ROW(name, call) {#name, make_##name},
const Maker makers[] = {MAKERS(MAKER_ROW)};

int number_of_makers(void) { return COUNT(makers); }

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

/* The mask whose parts are in[0], in[1] ... parts says which ones these are, a bit for each: 1
 * valid_lens, 2 keep, 4 window, 8 bias; 0: the first three. */
static AttentionMask mask_at(Tensor *const *in, double parts, double causal) {
    Tensor *part[4] = {NULL};
    const int which = parts == 0 ? 7 : (int)parts;
    for (int p = 0, i = 0; p < 4; p++)
        if (which & 1 << p) part[p] = in[i++];
    return (AttentionMask){part[0], part[1], part[2], part[3], causal != 0};
}

/* a: scale, causal, heads, parts of the mask */
static Tensor *weights_at(Tensor *const *in, const double *a) {
    return ag_attention_weights(in[0], a[0], mask_at(in + 1, a[3], a[1]), (int64_t)a[2]);
}

/* a: size, dim, which slice, how many there are */
static Tensor *slice_of_split(Tensor *x, const double *a) {
    Tensor *list[16] = {NULL};
    const int which = (int)a[2], n = (int)a[3];
    if (!ag_split(x, (int64_t)a[0], (int)a[1], list, n)) return NULL;
    return list[which >= 0 && which < n ? which : 0];
}

/* a: k, dim, which of the two results */
static Tensor *values_or_indices(Tensor *x, const double *a) {
    Tensor *indices;
    Tensor *values = ag_topk(x, (int64_t)a[0], (int)a[1], &indices);
    return a[2] != 0 ? indices : values;
}

static Tensor *there_and_back(Tensor *x, DType dtype, bool back) {
    Tensor *y = ag_to(x, dtype);
    return y && back ? ag_to(y, x->dtype) : y;
}

typedef Tensor *Call(Tensor **in, int n, const double *a);

#define CALL(name, expression)                                                                     \
    static Tensor *call_##name(Tensor **in, int n, const double *a) {                              \
        (void)in, (void)n, (void)a;                                                                \
        return expression;                                                                         \
    }
#define UNARY(name, ...)           CALL(name, ag_##name(in[0]))
#define UNARY_SCALAR(name, ...)    CALL(name, ag_##name(in[0], a[0]))
#define BINARY(name, ...)          CALL(name, ag_##name(in[0], in[1]))
#define COMPARE(name, ...)         CALL(name, ag_##name(in[0], in[1]))
#define OP(name, call, ...)        CALL(name, call)
#define COMPOSITE(name, call, ...) CALL(name, call)
#include "../../tensor/kernels/elementwise.def"
#include "library/ops.def"

/* ---- the table ----------------------------------------------------------------------------- */

#define ELEMENTWISE(name, ...) extern const Op ag_op_##name;
#define OP(name, ...)          extern const Op ag_op_##name;
#include "library/ops.def"

const Op *const all_ops[] = {
#define ELEMENTWISE(name, ...) &ag_op_##name,
#define OP(name, ...)          &ag_op_##name,
#include "library/ops.def"
    NULL};

/* clang-format off */
#define N (INT64_C(1) << 40)
#define LIST(type, ...) {(const type[]){__VA_ARGS__}, sizeof((type[]){__VA_ARGS__}) / sizeof(type)}
#define SAMPLES(...) .samples = LIST(Example, __VA_ARGS__)
#define EMPTY(...)   .empty = LIST(Example, __VA_ARGS__)
#define WRONG(...)   .wrong = LIST(Mistake, __VA_ARGS__)
#define TORCH(...)   .torch = true

#define ELEMENTWISE(op_name, ...)        {.name = #op_name, .op = &ag_op_##op_name, .call = call_##op_name, __VA_ARGS__},
#define OP(op_name, function, ...)        {.name = #op_name, .op = &ag_op_##op_name, .call = call_##op_name, __VA_ARGS__},
#define COMPOSITE(op_name, function, ...) {.name = #op_name, .call = call_##op_name, __VA_ARGS__},
const OpRow op_rows[] = {
#include "library/ops.def"
    {0}};

/* The samples of every row of elementwise.def, and those without elements. */
static const Examples one_input = LIST(Example, {{R(3, 4)}, {3}}, {{R0}, {-0.5}}, {{R(2, 0, 3)}, {2}});
static const Examples two_inputs = LIST(Example,
    {{R(2, 3), R(2, 3)}, {0}},    {{R(2, 3), R(3)}, {0}}, {{R(2, 1), R(1, 3)}, {0}}, {{R0, R(2, 2)}, {0}},
    {{R(3, 1, 2), R(2, 1)}, {0}}, {{R0, R0}, {0}},        {{R(0, 3), R(1, 3)}, {0}}, {{R(2, 1), R(2, 0)}, {0}});
static const Examples one_empty = LIST(Example, {{R(0, N)}, {1}}, {{R(N, 0)}, {1}});
static const Examples two_empty = LIST(Example,
    {{R(0, N), R(0, N)}, {0}}, {{R(N, 0), R(N, 0)}, {0}}, {{R(N, 0), R(1, 0)}, {0}}, {{R(0), R(N, 0)}, {0}});
#undef N
/* clang-format on */

int number_of_rows(void) {
    int n = 0;
    while (op_rows[n].name) n++;
    return n;
}

int number_of_ops(void) {
    int n = 0;
    while (all_ops[n]) n++;
    return n;
}

const OpRow *op_row(const char *name) {
    const OpRow *row = op_rows;
    while (row->name && strcmp(row->name, name)) row++;
    return row->name ? row : NULL;
}

const Op *find_op(const char *name) {
    const OpRow *row = op_row(name);
    return row ? row->op : NULL;
}

int inputs_of(const Op *op) {
    int n = 0;
    while (n < OP_INPUTS && op->in[n].name) n++;
    return n;
}

bool is_elementwise(const OpRow *row) {
    return row->op && row->op->forward == ag_elementwise_forward;
}

Tensor *call_op(const char *name, Tensor **in, int n, const double *number) {
    Tensor *all[16] = {NULL}; /* an input that is absent is NULL */
    const double none[SAMPLE_NUMBERS] = {0};
    const OpRow *row = op_row(name);
    if (!row) ck_abort_msg("no op is called ag_%s", name); /* ck_assert would allocate */
    for (int i = 0; i < n; i++) all[i] = in[i];
    return row->call(all, n, number ? number : none);
}

/* ---- samples ------------------------------------------------------------------------------- */

enum { SAMPLES_MAX = 512 };

typedef struct {
    Sample sample[SAMPLES_MAX];
    int n;
} SampleList;

/* The lists are made before the first test, where the asserts of Check do not work. */
static void append(SampleList *list, const OpRow *row, Examples examples) {
    for (int i = 0; i < examples.n; i++) {
        assert(list->n < SAMPLES_MAX - 1); /* the last one is the end */
        Sample *s = &list->sample[list->n++];
        s->op = row->name;
        memcpy(s->in, examples.list[i].in, sizeof s->in);
        memcpy(s->number, examples.list[i].number, sizeof s->number);
        while (s->n < SAMPLE_INPUTS && s->in[s->n].kind) s->n++;
    }
}

static void append_elementwise(SampleList *list, const OpRow *row, Examples one, Examples two) {
    if (is_elementwise(row)) append(list, row, inputs_of(row->op) == 1 ? one : two);
}

static void append_of_op(SampleList *list, const OpRow *row) {
    append_elementwise(list, row, one_input, two_inputs);
    if (row->op) append(list, row, row->samples);
}

static void append_of_composite(SampleList *list, const OpRow *row) {
    if (!row->op) append(list, row, row->samples);
}

static void append_empty(SampleList *list, const OpRow *row) {
    append_elementwise(list, row, one_empty, two_empty);
    append(list, row, row->empty);
}

static const Sample *listed(SampleList *list, void (*append_row)(SampleList *, const OpRow *)) {
    if (list->n > 0) return list->sample;
    for (const OpRow *row = op_rows; row->name; row++) append_row(list, row);
    return list->sample;
}

const Sample *samples(void) {
    static SampleList list;
    return listed(&list, append_of_op);
}

void each_sample(int op, void (*check)(const Sample *)) {
    for (const Sample *s = samples(); s->op; s++)
        if (!strcmp(s->op, all_ops[op]->name)) check(s);
}

const Sample *samples_of_composites(void) {
    static SampleList list;
    return listed(&list, append_of_composite);
}

const Sample *samples_without_elements(void) {
    static SampleList list;
    return listed(&list, append_empty);
}

/* clang-format off */
const Sample *large_samples(void) {
    static const Sample list[] = {
        {"softmax", 1, {R(9, 9000)}, {1}},
        {"softmax", 1, {R(9000, 9)}, {0}},
        {"log_softmax", 1, {R(9, 9000)}, {1}},
        {"masked_softmax", 2, {R(3, 3, 9000), L(3, 3)}, {0}},
        {"masked_softmax", 3, {R(1, 1, 3, 9000), M(9000), C(1, 3, 9000)}, {1, 1, 1, 6}},
        {"cross_entropy", 2, {R(9, 9000), I(9)}, {-100, REDUCE_MEAN}},
        {"layer_norm", 3, {R(9, 9000), R(9000), R(9000)}, {1e-5}},
        {"layer_norm", 3, {R(9000, 90), R(90), R(90)}, {1e-5}},
        {"sum_dims", 1, {R(90, 900)}, {0, 1, 0}},
        {"sum_dims", 1, {R(90, 900)}, {0, 1, 1}},
        {"var_dim", 1, {R(9, 9000)}, {1, 0}},
        {"logsumexp", 1, {R(9, 9000)}, {1}},
        {"max_dim", 1, {R(9, 9000)}, {1, 0}},
        {"mul", 2, {R(90, 900), R(900)}, {0}},
        {"gelu", 1, {R(90, 900)}, {0}},
        {"bmm", 2, {R(2, 100, 90), R(2, 90, 100)}, {0}},
        {"matmul", 2, {R(9000), R(9000, 9)}, {0}},
        {"linear", 3, {R(100, 90), R(110, 90), R(110)}, {0}},
        {"attention", 3, {R(1, 2, 70, 20), R(1, 2, 300, 20), R(1, 2, 300, 30)}, {0.5, 1}},
        {"additive_scores", 3, {R(2, 30, 70), R(2, 40, 70), R(1, 70)}, {0}},
        {"embedding", 2, {R(300, 90), I(30, 30)}, {0}},
        {"dropout", 1, {R(90, 900)}, {0.5}},
        {NULL, 0, {NO_INPUT}, {0}},
    };
    return list;
}
/* clang-format on */

/* Lengths from 0 to K + 1; the K keys are columns of the scores or rows of k. */
static Tensor *draw_lengths(const Sample *sample, Shape shape) {
    const bool rows = !strcmp(sample->op, "attention");
    const Shape keys = sample->in[rows].shape;
    return tensor_randint(0, keys.dim[keys.ndim - 1 - rows] + 2, shape);
}

/* Indices into the dimension from which the op gathers. */
static Tensor *draw_index(const Sample *sample, Shape shape) {
    const Shape x = sample->in[0].shape;
    int dim = fabs(sample->number[0]) < 9 ? (int)sample->number[0] : 0;
    if (!strcmp(sample->op, "embedding")) dim = 0;
    if (strstr(sample->op, "cross_entropy")) dim = x.ndim > 1;
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

void expect_printed_module(void *module, const char *text) {
    char printed[256] = {0};
    FILE *file = tmpfile();
    ck_assert(nn_print(module, file));
    rewind(file);
    ck_assert_uint_lt(fread(printed, 1, sizeof printed - 1, file), sizeof printed - 1);
    ck_assert_str_eq(printed, text);
    fclose(file);
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
    for (int d = 0; fits && d < shape.ndim; d++) fits = shape.dim[d] >= 0;
    for (int d = 0; fits && d < shape.ndim; d++) {
        int64_t reach = 0;
        steps[d] = stride[d];
        fits = stride_fits(shape, d, stride[d]) &&
               !__builtin_mul_overflow(shape.dim[d] - 1, stride[d], &reach) &&
               !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    if (fits && tensor_shape_numel(shape) == 0) fits = offset <= elements;
    else fits = fits && low >= 0 && high < elements;
    if (!fits) return tensor_fail("as_strided: outside of the storage");
    return tensor_view_make(x, shape, steps,
                            (char *)x->storage->bytes + offset * dtype_size(x->dtype));
}
