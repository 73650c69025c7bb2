/* test_kernels.c - do the kernels compute what they say, on every instruction set to the bit, and
 * do the loops bring every element of any strides to them?
 *
 * A table of kernels is a struct of function pointers, so the tests can walk it: every kernel of
 * every table that this CPU runs gets the same buffers, and must return the same bytes (which NaN a
 * NaN is does not count). What the bytes should be is written again here, in double, one element
 * after another, without the care for speed. The loops are compared with code that computes the
 * place of each element from its index. All draws are from a generator of our own with a fixed
 * seed. */
#include <assert.h>
#include <check.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../tensor/internal.h"
#include "common.h"

#define INF          ((double)INFINITY)
#define NOT          ((double)NAN)
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Check notes every assertion that it passes, with a system call; these are for the millions. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                               \
    } while (0)
#define CHECK(condition) EXPECT(condition, "%s", #condition)

/* ---- draws: Knuth's 64-bit linear congruence, its upper bits --------------------------------- */

static uint64_t draw_state;

static uint32_t draw(uint32_t range) {
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(draw_state >> 33) % range;
}

static double draw_in(double low, double high) {
    return low + (high - low) * draw(1 << 24) * 0x1p-24;
}

/* ---- every test begins with the same draws and ends with the tensors that it began with ------ */

static int64_t live_before;

static void setup(void) {
    live_before = tensor_live();
    tensor_set_default_dtype(F32);
    draw_state = 1;
}

static void teardown(void) {
    ck_assert_ptr_null(tensor_error());
    ck_assert_int_eq(tensor_live(), live_before);
}

/* ---- elements -------------------------------------------------------------------------------- */

static double load(DType dtype, const void *data, int64_t i) {
    switch (dtype) {
    case F32: return (double)((const float *)data)[i];
    case F64: return ((const double *)data)[i];
    case I64: return (double)((const int64_t *)data)[i];
    default: return ((const unsigned char *)data)[i];
    }
}

static void store(DType dtype, void *data, int64_t i, double value) {
    switch (dtype) {
    case F32: ((float *)data)[i] = (float)value; return;
    case F64: ((double *)data)[i] = value; return;
    case I64: ((int64_t *)data)[i] = (int64_t)value; return;
    default: ((bool *)data)[i] = value != 0; return;
    }
}

/* The same bytes, or NaN and NaN: the sign of a NaN depends on the order of commuting operands. */
static bool same_bits(DType dtype, const void *a, int64_t i, const void *b, int64_t j) {
    const size_t size = dtype_size(dtype);
    if (memcmp((const char *)a + (size_t)i * size, (const char *)b + (size_t)j * size, size) == 0)
        return true;
    return dtype_is_float(dtype) && isnan(load(dtype, a, i)) && isnan(load(dtype, b, j));
}

/* ---- the tables that this CPU can run -------------------------------------------------------- */

static const Kernels *tables[3];
static int table_count;

static void find_tables(void) {
    kernels(); /* completes them */
    tables[table_count++] = &kernels_baseline;
#ifdef __x86_64__
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2) tables[table_count++] = &kernels_avx2;
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        tables[table_count++] = &kernels_avx512;
#endif
}

/* ---- a list of every loop kernel ------------------------------------------------------------- */

enum { ELEMENTS, ROWS, REDUCES }; /* what a kernel sees, and whether one element comes out */

typedef struct {
    const char *name;
    size_t slot;                /* where in the table, in bytes */
    int form, operands, length; /* the operand that is the row's length, or -1 */
    DType type[LOOP_OPERANDS];
} Kernel;

static Kernel list[400];
static int list_count, placed_count; /* those that write elsewhere stand behind */

static LoopKernel kernel_of(const Kernels *table, size_t slot) {
    LoopKernel kernel;
    memcpy(&kernel, (const char *)table + slot, sizeof kernel);
    return kernel;
}

/* types: a letter per operand, f for the type at hand, d for F64, i for I64, b for BOOL, and l for
 * an I64 that is the length of the row. */
static void list_kernel(const char *name, const LoopKernel *slot, int form, const char *types,
                        DType dtype) {
    if (!*slot) return;
    assert(list_count < COUNT(list));
    Kernel *kernel = &list[list_count++];
    size_t at = (size_t)((const char *)slot - (const char *)&kernels_baseline);
    const char *length = strchr(types, 'l');
    *kernel =
        (Kernel){name, at, form, (int)strlen(types), length ? (int)(length - types) : -1, {F32}};
    static const DType letters[] = {['d'] = F64, ['i'] = I64, ['l'] = I64, ['b'] = BOOL};
    for (int i = 0; types[i]; i++)
        kernel->type[i] = types[i] == 'f' ? dtype : letters[(int)types[i]];
}

typedef struct {
    const char *name;
    int op, inputs;
    bool compares;
} Row;
static const Row ROWS_OF_DEF[] = {
#define UNARY(name, ...)        {#name, ELEMENTWISE_##name, 1, false},
#define UNARY_SCALAR(name, ...) UNARY(name, )
#define BINARY(name, ...)       {#name, ELEMENTWISE_##name, 2, false},
#define COMPARE(name, ...)      {#name, ELEMENTWISE_##name, 2, true},
#include "../tensor/kernels/elementwise.def"
};

static void list_elementwise(void) {
    const Kernels *k = &kernels_baseline;
    for (int i = 0; i < COUNT(ROWS_OF_DEF); i++) {
        const Row *row = &ROWS_OF_DEF[i];
        const char *value = row->compares ? "bff" : row->inputs == 1 ? "ff" : "fff";
        for (int t = F32; t <= BOOL; t++)
            list_kernel(row->name, &k->value[row->op][t], ELEMENTS, value, (DType)t);
        for (int t = F32; t <= F64; t++)
            for (int input = 0; input < 2; input++)
                list_kernel(row->name, &k->vjp[row->op][input][t], ELEMENTS,
                            row->inputs == 1 ? "ffff" : "fffff", (DType)t);
    }
}

static void list_the_rest(void) {
    const Kernels *k = &kernels_baseline;
    for (int t = F32; t <= BOOL; t++) {
        list_kernel("logical_not", &k->logical_not[t], ELEMENTS, "bf", (DType)t);
        list_kernel("where", &k->where[t], ELEMENTS, "fbff", (DType)t);
        if (t < BOOL) list_kernel("add_scaled", &k->add_scaled[t], ELEMENTS, "fff", (DType)t);
        list_kernel("masked_fill", &k->masked_fill[t], ELEMENTS, "ffb", (DType)t);
        list_kernel("cut", &k->cut[t], ROWS, "ffl", (DType)t);
        list_kernel("arange", &k->arange[t], ROWS, "fd", (DType)t);
        list_kernel("sum", &k->sum[t], REDUCES, t <= F64 ? "ff" : "if", (DType)t);
        list_kernel("cumsum", &k->cumsum[t], ROWS, t <= F64 ? "ff" : "if", (DType)t);
        list_kernel("argmax", &k->argmax[t], REDUCES, "if", (DType)t);
        list_kernel("argmin", &k->argmin[t], REDUCES, "if", (DType)t);
        for (int from = F32; from <= BOOL; from++) {
            list_kernel("convert", &k->convert[t][from], ELEMENTS, "ff", F32);
            list[list_count - 1].type[0] = (DType)t;
            list[list_count - 1].type[1] = (DType)from;
        }
    }
    for (int i = F32; i <= F64; i++) {
        DType t = (DType)i;
        list_kernel("dropout", &k->dropout[t], ELEMENTS, "ffb", t);
        list_kernel("squares", &k->squares[t], REDUCES, "df", t);
        list_kernel("variance", &k->variance[t], REDUCES, "ff", t);
        list_kernel("logsumexp", &k->logsumexp[t], REDUCES, "ff", t);
        list_kernel("softmax", &k->softmax[t], ROWS, "ff", t);
        list_kernel("softmax_dx", &k->softmax_dx[t], ROWS, "fff", t);
        list_kernel("log_softmax", &k->log_softmax[t], ROWS, "ff", t);
        list_kernel("log_softmax_dx", &k->log_softmax_dx[t], ROWS, "fff", t);
        list_kernel("masked_softmax", &k->masked_softmax[t], ROWS, "fflbf", t);
        list_kernel("masked_softmax_dx", &k->masked_softmax_dx[t], ROWS, "fff", t);
    }
}

/* Kernels that write where an index says, or to several operands. */
static void list_placed(void) {
    const Kernels *k = &kernels_baseline;
    const int before = list_count;
    for (int t = F32; t <= BOOL; t++) list_kernel("pick", &k->pick[t], ELEMENTS, "ffi", (DType)t);
    for (int t = F32; t <= F64; t++) list_kernel("put", &k->put[t], ELEMENTS, "ffi", (DType)t);
    for (int t = F32; t <= F64; t++) {
        list_kernel("sgd", &k->sgd[t], ELEMENTS, "fffd", (DType)t);
        list_kernel("adamw", &k->adamw[t], ELEMENTS, "ffffd", (DType)t);
        list_kernel("cross_entropy", &k->cross_entropy[t], ROWS, "ffif", (DType)t);
        list_kernel("cross_entropy_dx", &k->cross_entropy_dx[t], ROWS, "ffiff", (DType)t);
        list_kernel("layer_norm", &k->layer_norm[t], ROWS, "fffff", (DType)t);
        list_kernel("layer_norm_dx", &k->layer_norm_dx[t], ROWS, "fffff", (DType)t);
    }
    placed_count = list_count - before;
    list_count = before;
}

/* A kernel that somebody adds before those of attention must be listed above, or this says so. */
START_TEST(the_list_is_complete_and_the_tables_agree_on_it) {
    const size_t first = offsetof(Kernels, value), last = offsetof(Kernels, tile_cut);
    int filled = 0;
    for (size_t slot = first; slot < last; slot += sizeof(LoopKernel)) {
        bool has = kernel_of(&kernels_baseline, slot) != NULL;
        filled += has;
        for (int t = 1; t < table_count; t++)
            ck_assert_int_eq(kernel_of(tables[t], slot) != NULL, has);
    }
    ck_assert_int_eq(list_count + placed_count, filled);
    ck_assert_uint_eq(offsetof(Kernels, copy_rows),
                      offsetof(Kernels, count_far) + 4 * sizeof(LoopKernel));
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    for (int t = 0; t < table_count; t++) ck_assert_str_eq(tables[t]->name, names[t]);
}
END_TEST

/* ---- a trial: one kernel, one size, one pattern of strides ----------------------------------- */

enum { GAP = 0x5a }; /* what lies where nothing may be written */

typedef struct {
    const Kernel *kernel;
    int64_t n, stride[LOOP_OPERANDS];
    size_t bytes[LOOP_OPERANDS];
    void *buffer[LOOP_OPERANDS];
} Trial;

/* Where element i of operand o lies in its buffer: with a negative stride it starts at the end. */
static int64_t at(const Trial *trial, int o, int64_t i) {
    int64_t s = trial->stride[o];
    return s < 0 && trial->n > 0 ? (i - (trial->n - 1)) * s : i * s;
}

static const double SPECIAL[] = {0.,     -0.,  1,     -1,     INF,   -INF, NOT,    1e-40,
                                 -1e-40, 1e38, -3e38, 1e-300, 1e300, 88.7, -103.9, 5e-324};

static void fill(Trial *trial, int o, bool special) {
    const DType type = trial->kernel->type[o];
    for (int64_t i = 0; i * (int64_t)dtype_size(type) < (int64_t)trial->bytes[o]; i++) {
        double x = draw_in(-3, 3);
        if (special && draw(3) == 0) x = SPECIAL[draw(COUNT(SPECIAL))];
        if (type == BOOL) x = draw(2);
        if (type == I64) x = (double)draw(7) - 3;
        store(type, trial->buffer[o], i, x);
    }
}

/* A masked row's length is one non-negative number; 0 and more than there are elements are allowed.
 */
static void fill_length(Trial *trial) {
    int o = trial->kernel->length;
    if (o < 0) return;
    trial->stride[o] = 0;
    *(int64_t *)trial->buffer[o] = (int64_t)draw((uint32_t)trial->n + 3);
}

static Trial trial_new(const Kernel *kernel, int64_t n, const int64_t *stride, bool special) {
    Trial trial = {.kernel = kernel, .n = n};
    for (int o = 0; o < kernel->operands; o++) {
        trial.stride[o] = o == 0 && kernel->form == REDUCES ? 0 : stride[o];
        int64_t elements = n > 0 ? (n - 1) * llabs(trial.stride[o]) + 1 : 1;
        trial.bytes[o] = (size_t)elements * dtype_size(kernel->type[o]);
        trial.buffer[o] = malloc(trial.bytes[o]);
        ck_assert_ptr_nonnull(trial.buffer[o]);
        fill(&trial, o, special);
    }
    fill_length(&trial);
    return trial;
}

static void trial_free(Trial *trial) {
    for (int o = 0; o < trial->kernel->operands; o++) free(trial->buffer[o]);
}

static void trial_run(const Trial *trial, const Kernels *table) {
    void *data[LOOP_OPERANDS];
    for (int o = 0; o < trial->kernel->operands; o++)
        data[o] = (char *)trial->buffer[o] +
                  at(trial, o, 0) * (int64_t)dtype_size(trial->kernel->type[o]);
    memset(trial->buffer[0], GAP, trial->bytes[0]);
    kernel_of(table, trial->kernel->slot)(trial->n, data, trial->stride, 1.7);
}

/* The same elements, one after another. */
static Trial trial_dense(const Trial *trial) {
    static const int64_t ones[LOOP_OPERANDS] = {1, 1, 1, 1, 1};
    Trial dense = trial_new(trial->kernel, trial->n, ones, false);
    for (int o = 1; o < trial->kernel->operands; o++) {
        const size_t size = dtype_size(trial->kernel->type[o]);
        const bool length = o == trial->kernel->length;
        if (length) *(int64_t *)dense.buffer[o] = *(int64_t *)trial->buffer[o];
        for (int64_t i = 0; i < trial->n && !length; i++)
            memcpy((char *)dense.buffer[o] + (size_t)i * size,
                   (char *)trial->buffer[o] + at(trial, o, i) * (int64_t)size, size);
    }
    return dense;
}

static void expect_same(const Trial *a, const Trial *b, const char *what) {
    const DType type = a->kernel->type[0];
    const int64_t results = a->kernel->form == REDUCES ? 1 : a->n;
    for (int64_t i = 0; i < results; i++)
        EXPECT(same_bits(type, a->buffer[0], at(a, 0, i), b->buffer[0], at(b, 0, i)),
               "%s of %s: %s: element %lld of %lld is %.17g or %.17g", a->kernel->name,
               tensor_dtype_name(type), what, (long long)i, (long long)a->n,
               load(type, a->buffer[0], at(a, 0, i)), load(type, b->buffer[0], at(b, 0, i)));
}

/* The baseline does not fuse products and sums, so functions of floats are a few last bits apart.
 */
static bool is_close(DType type, const void *a, int64_t i, const void *b, int64_t j) {
    if (type != F32 || same_bits(type, a, i, b, j)) return same_bits(type, a, i, b, j);
    const double x = load(type, a, i), y = load(type, b, j);
    return fabs(x - y) <= 2e-6 * (1 + fabs(y));
}

static void expect_close(const Trial *a, const Trial *b, const char *what) {
    const DType type = a->kernel->type[0];
    const int64_t results = a->kernel->form == REDUCES ? 1 : a->n;
    for (int64_t i = 0; i < results; i++)
        EXPECT(is_close(type, a->buffer[0], i, b->buffer[0], i),
               "%s of %s: %s: element %lld of %lld is %.9g or %.9g", a->kernel->name,
               tensor_dtype_name(type), what, (long long)i, (long long)a->n,
               load(type, a->buffer[0], i), load(type, b->buffer[0], i));
}

static void expect_gaps(const Trial *trial) {
    const size_t size = dtype_size(trial->kernel->type[0]);
    const int64_t step = llabs(trial->stride[0]);
    const unsigned char *bytes = trial->buffer[0];
    for (size_t b = 0; b < trial->bytes[0]; b++)
        if (step > 1 && b / size % (size_t)step != 0) CHECK(bytes[b] == GAP);
}

/* Runs on every table: on elements with strides and on the same without, to the same bits; those of
 * AVX2 and AVX-512 are the same, too. */
static void try_kernel(const Kernel *kernel, int64_t n, const int64_t *stride, bool special) {
    Trial trial = trial_new(kernel, n, stride, special), dense[3];
    const bool results = n > 0 || kernel->form == REDUCES;
    for (int t = 0; t < table_count; t++) {
        dense[t] = trial_dense(&trial);
        trial_run(&dense[t], tables[t]);
        trial_run(&trial, tables[t]);
        if (results) expect_same(&trial, &dense[t], tables[t]->name);
        if (results && t == 2) expect_same(&dense[2], &dense[1], tables[t]->name);
        if (results && t > 0) expect_close(&dense[t], &dense[0], tables[t]->name);
        expect_gaps(&trial);
    }
    trial_free(&trial);
    for (int t = 0; t < table_count; t++) trial_free(&dense[t]);
}

static const int64_t PATTERNS[][LOOP_OPERANDS] = {
    {1, 1, 1, 1, 1},   {1, 0, 1, 1, 1}, {1, 1, 0, 1, 1}, {1, 1, 1, 0, 1},     {1, 1, 1, 1, 0},
    {2, 2, 2, 2, 2},   {1, 2, 1, 3, 1}, {2, 1, 1, 1, 1}, {1, -1, -1, -1, -1}, {1, 0, 0, 0, 0},
    {-1, 1, 2, 0, -2}, {1, 0, 2, 1, 1}, {1, 2, 0, 1, 1}};

START_TEST(every_elementwise_kernel_gives_the_same_bits) {
    static const int64_t sizes[] = {0, 1, 3, 16, 37};
    for (int k = _i; k < list_count; k += 8)
        for (int p = 0; p < COUNT(PATTERNS) && list[k].form == ELEMENTS; p++)
            for (int i = 0; i < COUNT(sizes); i++)
                try_kernel(&list[k], sizes[i], PATTERNS[p], (p + i) % 2);
}
END_TEST

START_TEST(every_row_kernel_gives_the_same_bits) {
    static const int64_t sizes[] = {0, 1, 2, 31, 32, 33, 100, 1023, 1024, 1025, 4095, 4096, 4097};
    for (int k = _i; k < list_count; k += 8)
        for (int p = 0; p < COUNT(PATTERNS) && list[k].form != ELEMENTS; p++)
            for (int i = 0; i < COUNT(sizes); i++) {
                if (sizes[i] > 100 && p % 5) continue; /* dense, stride 2, and an odd one */
                try_kernel(&list[k], sizes[i], PATTERNS[p], (p + i) % 3 == 1);
            }
}
END_TEST

START_TEST(long_rows_give_the_same_bits) {
    for (int k = 0; k < list_count; k++)
        if (list[k].form != ELEMENTS)
            for (int p = 0; p < 6; p += 5) try_kernel(&list[k], 100000, PATTERNS[p], false);
}
END_TEST

/* data[0] may be the very buffer of an input: that is how x *= s and softmax in place are made. */
START_TEST(an_output_may_be_an_input) {
    static const int64_t dense[] = {1, 1, 1, 1, 1}, wide[] = {2, 2, 2, 2, 2};
    for (int k = 0; k < list_count; k++) {
        const Kernel *kernel = &list[k];
        for (int o = 1; o < kernel->operands && kernel->form != REDUCES; o++) {
            if (kernel->type[o] != kernel->type[0] || o == kernel->length) continue;
            if (!strcmp(kernel->name, "masked_softmax") && o > 1) continue; /* the window may not */
            Trial trial = trial_new(kernel, 37, o % 2 ? dense : wide, false);
            void *data[LOOP_OPERANDS];
            memcpy(data, trial.buffer, sizeof data);
            data[0] = data[o];
            for (int t = table_count - 1; t >= 0; t--) {
                trial_run(&trial, tables[t]);
                void *original = malloc(trial.bytes[o]);
                memcpy(original, trial.buffer[o], trial.bytes[o]);
                kernel_of(tables[t], kernel->slot)(37, data, trial.stride, 1.7);
                for (int64_t i = 0; i < 37; i++)
                    EXPECT(same_bits(kernel->type[0], data[0], at(&trial, o, i), trial.buffer[0],
                                     at(&trial, 0, i)),
                           "%s on %s", kernel->name, tables[t]->name);
                memcpy(trial.buffer[o], original, trial.bytes[o]);
                free(original);
            }
            trial_free(&trial);
        }
    }
}
END_TEST

/* The same buffers on every table, all of them compared afterwards. (What they should hold is the
 * business of test_ops.c.) */
static void try_placed(const Kernel *kernel, int64_t n, const int64_t *stride) {
    enum { ROOM = 512 }; /* an integer is 0 to 2, a class or a number of steps */
    const bool adamw =
        !strcmp(kernel->name, "adamw"); /* of other numbers it would divide by nearly 0 */
    const double low = adamw ? 0.1 : -3;
    void *data[3][LOOP_OPERANDS];
    for (int t = 0; t < table_count; t++)
        for (int o = 0; o < kernel->operands; o++) {
            const DType type = kernel->type[o];
            const double high = adamw && o == 4 ? 0.9 : 3;
            data[t][o] = malloc(ROOM * dtype_size(type));
            for (int64_t i = 0; i < ROOM && t == 0; i++)
                store(type, data[0][o], i, type == I64 ? draw(3) : draw_in(low, high));
            if (t > 0) memcpy(data[t][o], data[0][o], ROOM * dtype_size(type));
        }
    for (int t = table_count - 1; t >= 0; t--)
        kernel_of(tables[t], kernel->slot)(n, data[t], stride, 1.7);
    for (int t = 0; t < table_count; t++)
        for (int o = 0; o < kernel->operands; o++) {
            const DType type = kernel->type[o];
            for (int64_t i = 0; i < ROOM; i++) {
                EXPECT(is_close(type, data[0][o], i, data[t][o], i), "%s on %s", kernel->name,
                       tables[t]->name);
                EXPECT(t < 2 || same_bits(type, data[1][o], i, data[t][o], i), "%s on %s",
                       kernel->name, tables[t]->name);
            }
        }
    for (int t = 0; t < table_count; t++)
        for (int o = 0; o < kernel->operands; o++) free(data[t][o]);
}

START_TEST(kernels_that_write_elsewhere_give_the_same_bits) {
    static const int64_t sizes[] = {0, 3, 16, 37, 100};
    for (int k = list_count; k < list_count + placed_count; k++)
        for (int p = 0; p < COUNT(PATTERNS) - 5; p++) /* those without negative strides */
            for (int i = 0; i < COUNT(sizes); i++) try_placed(&list[k], sizes[i], PATTERNS[p]);
}
END_TEST

/* ---- elementwise kernels against double ------------------------------------------------------ */

/* Value and partial derivatives, as a textbook has them. */
typedef double (*Formula)(double a, double b);
#define FORMULA(name, value)                                                                       \
    static double name(double a, double b) {                                                       \
        (void)a, (void)b;                                                                          \
        return value;                                                                              \
    }
static const double S = 1.7; /* the number that trials hand to a kernel */
FORMULA(zero, 0)
FORMULA(one, 1)
FORMULA(minus_one, -1)
FORMULA(add, a + b)
FORMULA(sub, a - b)
FORMULA(mul, a *b)
FORMULA(mul_da, b)
FORMULA(mul_db, a)
FORMULA(quotient, a / b)
FORMULA(quotient_da, 1 / b)
FORMULA(quotient_db, -a / (b * b))
FORMULA(power, exp(b *log(a)))
FORMULA(power_da, b *exp((b - 1) * log(a)))
FORMULA(power_db, exp(b *log(a)) * log(a))
FORMULA(larger, a > b ? a : b)
FORMULA(smaller, a < b ? a : b)
FORMULA(a_is_larger, a > b)
FORMULA(a_is_smaller, a < b)
FORMULA(negative, -a)
FORMULA(magnitude, a < 0 ? -a : a)
FORMULA(sign, a < 0 ? -1 : 1)
FORMULA(squared, a *a)
FORMULA(squared_da, 2 * a)
FORMULA(root, sqrt(a))
FORMULA(root_da, 0.5 / sqrt(a))
FORMULA(exponential, exp(a))
FORMULA(logarithm, log(a))
FORMULA(logarithm_da, 1 / a)
FORMULA(sine, sin(a))
FORMULA(cosine, cos(a))
FORMULA(cosine_da, -sin(a))
FORMULA(hyperbolic, (exp(a) - exp(-a)) / (exp(a) + exp(-a)))
FORMULA(hyperbolic_da, 4 / ((exp(a) + exp(-a)) * (exp(a) + exp(-a))))
FORMULA(logistic, exp(a) / (exp(a) + 1))
FORMULA(logistic_da, exp(a) / ((exp(a) + 1) * (exp(a) + 1)))
FORMULA(positive_part, a > 0 ? a : 0)
FORMULA(positive, a > 0)
FORMULA(normal_cdf, 0.5 * erfc(-a / sqrt(2)))
FORMULA(gelu, a *normal_cdf(a, 0))
FORMULA(gelu_da, normal_cdf(a, 0) + a * exp(-a * a / 2) / sqrt(8 * atan(1)))
FORMULA(tanh_form_u, sqrt(2 / M_PI) * (a + 0.044715 * a * a * a))
FORMULA(tanh_form_u_da, sqrt(2 / M_PI) * (1 + 3 * 0.044715 * a * a))
FORMULA(gelu_tanh, a / 2 * (1 + tanh(tanh_form_u(a, 0))))
FORMULA(gelu_tanh_da, (1 + tanh(tanh_form_u(a, 0))) / 2 +
                          a / 2 * (1 - pow(tanh(tanh_form_u(a, 0)), 2)) * tanh_form_u_da(a, 0))
FORMULA(silu, a / (1 + exp(-a)))
FORMULA(silu_da, logistic(a, 0) + a * logistic_da(a, 0))
FORMULA(scaled, a *S)
FORMULA(scaled_da, S)
FORMULA(shifted, a + S)
FORMULA(at_least, a > S ? a : S)
FORMULA(at_least_da, a > S)
FORMULA(at_most, a < S ? a : S)
FORMULA(at_most_da, a < S)
FORMULA(raised, exp(S *log(a)))
FORMULA(raised_da, S *exp((S - 1) * log(a)))

static const struct {
    int op;
    Formula value, da, db;
    bool positive; /* only for a > 0 */
} FORMULAS[] = {
    {ELEMENTWISE_add, add, one, one, false},
    {ELEMENTWISE_sub, sub, one, minus_one, false},
    {ELEMENTWISE_mul, mul, mul_da, mul_db, false},
    {ELEMENTWISE_div, quotient, quotient_da, quotient_db, true},
    {ELEMENTWISE_pow, power, power_da, power_db, true},
    {ELEMENTWISE_maximum, larger, a_is_larger, a_is_smaller, false},
    {ELEMENTWISE_minimum, smaller, a_is_smaller, a_is_larger, false},
    {ELEMENTWISE_neg, negative, minus_one, zero, false},
    {ELEMENTWISE_abs, magnitude, sign, zero, false},
    {ELEMENTWISE_square, squared, squared_da, zero, false},
    {ELEMENTWISE_sqrt, root, root_da, zero, true},
    {ELEMENTWISE_exp, exponential, exponential, zero, false},
    {ELEMENTWISE_log, logarithm, logarithm_da, zero, true},
    {ELEMENTWISE_sin, sine, cosine, zero, false},
    {ELEMENTWISE_cos, cosine, cosine_da, zero, false},
    {ELEMENTWISE_tanh, hyperbolic, hyperbolic_da, zero, false},
    {ELEMENTWISE_sigmoid, logistic, logistic_da, zero, false},
    {ELEMENTWISE_relu, positive_part, positive, zero, false},
    {ELEMENTWISE_gelu, gelu, gelu_da, zero, false},
    {ELEMENTWISE_gelu_tanh, gelu_tanh, gelu_tanh_da, zero, false},
    {ELEMENTWISE_silu, silu, silu_da, zero, false},
    {ELEMENTWISE_scale, scaled, scaled_da, zero, false},
    {ELEMENTWISE_add_scalar, shifted, one, zero, false},
    {ELEMENTWISE_clamp_min, at_least, at_least_da, zero, false},
    {ELEMENTWISE_clamp_max, at_most, at_most_da, zero, false},
    {ELEMENTWISE_pow_scalar, raised, raised_da, zero, true},
};

enum { FORMULA_N = 101 };

/* Operands a, b, dy, and room for y and a gradient, all dense. */
typedef struct {
    double room[5][FORMULA_N];
} Operands;
enum { A, B, DY, Y, DX };

static void operands_draw(Operands *x, DType dtype, bool is_positive) {
    double low = is_positive ? 0.25 : -3;
    for (int i = 0; i < FORMULA_N; i++) {
        store(dtype, x->room[A], i, draw_in(low, 3));
        store(dtype, x->room[B], i, draw_in(low, 3));
        store(dtype, x->room[DY], i, draw_in(-2, 2));
    }
}

static void expect_near(DType dtype, double got, double want, const char *what) {
    double tolerance = (dtype == F32 ? 1e-6 : 1e-14) * (1 + fabs(want));
    EXPECT(fabs(got - want) <= tolerance, "%s of %s: %.17g, not %.17g", what,
           tensor_dtype_name(dtype), got, want);
}

static void check_formula(int f, DType dtype, const Row *row) {
    static const int64_t ones[] = {1, 1, 1, 1, 1};
    const Kernels *k = tables[table_count - 1];
    Operands x;
    operands_draw(&x, dtype, FORMULAS[f].positive);
    const bool two = row->inputs == 2;
    k->value[row->op][dtype](FORMULA_N, (void *[]){x.room[Y], x.room[A], x.room[B]}, ones, S);
    for (int input = 0; input < row->inputs; input++) {
        void *unary[] = {x.room[DX], x.room[A], x.room[Y], x.room[DY]};
        void *binary[] = {x.room[DX], x.room[A], x.room[B], x.room[Y], x.room[DY]};
        k->vjp[row->op][input][dtype](FORMULA_N, two ? binary : unary, ones, S);
        for (int i = 0; i < FORMULA_N; i++) {
            double a = load(dtype, x.room[A], i), b = load(dtype, x.room[B], i);
            double slope = (input ? FORMULAS[f].db : FORMULAS[f].da)(a, b);
            expect_near(dtype, load(dtype, x.room[Y], i), FORMULAS[f].value(a, b), row->name);
            expect_near(dtype, load(dtype, x.room[DX], i), slope * load(dtype, x.room[DY], i),
                        row->name);
        }
    }
}

START_TEST(elementwise_kernels_follow_the_textbook) {
    for (int r = 0; r < COUNT(ROWS_OF_DEF); r++) {
        bool checked = ROWS_OF_DEF[r].compares; /* elsewhere */
        for (int f = 0; f < COUNT(FORMULAS); f++) {
            if (FORMULAS[f].op != ROWS_OF_DEF[r].op) continue;
            check_formula(f, F32, &ROWS_OF_DEF[r]);
            check_formula(f, F64, &ROWS_OF_DEF[r]);
            checked = true;
        }
        ck_assert_msg(checked, "%s has no formula in tests/test_kernels.c", ROWS_OF_DEF[r].name);
    }
}
END_TEST

/* a < b, a == b, a > b, or none of them, decides every comparison. */
static bool compares(int op, bool less, bool equal, bool greater) {
    switch (op) {
    case ELEMENTWISE_eq: return equal;
    case ELEMENTWISE_ne: return !equal;
    case ELEMENTWISE_lt: return less;
    case ELEMENTWISE_le: return less || equal;
    case ELEMENTWISE_gt: return greater;
    default: ck_assert_int_eq(op, ELEMENTWISE_ge); return greater || equal;
    }
}

START_TEST(comparisons_tell_all_numbers_apart) {
    static const double x[] = {NOT, -INF, -1, -0., 0., 5e-324, 1, INF};
    static const int64_t order[] = {-9, -3, -1, 0, 0, 1, 2, 3}; /* -9: unordered */
    static const int64_t ints[] = {
        0, INT64_MIN, -1, 7, 7, INT64_C(1) << 53, (INT64_C(1) << 53) + 1, INT64_MAX};
    static const int64_t ints_order[] = {0, -2, -1, 1, 1, 3, 4, 5};
    static const int64_t ones[] = {1, 0, 0};
    const Kernels *k = tables[table_count - 1];
    for (int op = ELEMENTWISE_eq; op <= ELEMENTWISE_ge; op++)
        for (int i = 0; i < 64; i++) {
            int a = i / 8, b = i % 8;
            bool doubles, integers, none = order[a] == -9 || order[b] == -9;
            k->value[op][F64](1, (void *[]){&doubles, (void *)(x + a), (void *)(x + b)}, ones, 0);
            k->value[op][I64](1, (void *[]){&integers, (void *)(ints + a), (void *)(ints + b)},
                              ones, 0);
            ck_assert_int_eq(doubles,
                             compares(op, !none && order[a] < order[b],
                                      !none && order[a] == order[b], !none && order[a] > order[b]));
            ck_assert_int_eq(
                integers,
                compares(op,
                         ints_order[a]<ints_order[b], ints_order[a] == ints_order[b], ints_order[a]>
                             ints_order[b]));
        }
}
END_TEST

/* Runs an elementwise kernel on single numbers, in float64. */
static double once(LoopKernel kernel, double a, double b, double s) {
    double y;
    static const int64_t strides[] = {1, 1, 1};
    kernel(1, (void *[]){&y, &a, &b}, strides, s);
    return y;
}

/* torch.maximum and minimum hand on a NaN from either side; relu(nan) is nan; masked_fill, where
 * and dropout choose, and never multiply what is not chosen. */
START_TEST(nan_is_handed_on_or_not_touched) {
    const Kernels *k = tables[table_count - 1];
    const double nan_ = NOT;
    for (int op = ELEMENTWISE_maximum; op <= ELEMENTWISE_minimum; op++) {
        ck_assert_double_nan(once(k->value[op][F64], nan_, 1, 0));
        ck_assert_double_nan(once(k->value[op][F64], 1, nan_, 0));
    }
    ck_assert_double_nan(once(k->value[ELEMENTWISE_relu][F64], nan_, 0, 0));
    ck_assert_double_nan(once(k->value[ELEMENTWISE_abs][F64], nan_, 0, 0));
    ck_assert(!signbit(once(k->value[ELEMENTWISE_abs][F64], -0., 0, 0)));
    double x[] = {NOT, 2, NOT, 4}, y[4], other[] = {5, NOT, 7, NOT};
    bool chosen[] = {true, false, true, false};
    static const int64_t ones[] = {1, 1, 1, 1};
    k->masked_fill[F64](4, (void *[]){y, x, chosen}, ones, -1e6);
    for (int i = 0; i < 4; i++) ck_assert_double_eq(y[i], chosen[i] ? -1e6 : x[i]);
    k->where[F64](4, (void *[]){y, chosen, other, x}, ones, 0);
    for (int i = 0; i < 4; i++) ck_assert_double_eq(y[i], chosen[i] ? other[i] : x[i]);
    bool kept[] = {false, true, false, true};
    k->dropout[F64](4, (void *[]){y, x, kept}, ones, 0.5);
    for (int i = 0; i < 4; i++) ck_assert_double_eq(y[i], kept[i] ? 2 * x[i] : 0);
    k->add_scaled[F64](4, (void *[]){y, x + 1, other + 2}, (const int64_t[]){1, 0, 0}, -3);
    for (int i = 0; i < 4; i++) ck_assert_double_eq(y[i], 2 - 21);
    bool turned[4];
    k->logical_not[BOOL](4, (void *[]){turned, kept}, ones, 0);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(turned[i], !kept[i]);
}
END_TEST

/* ---- functions of float32 ----------------------------------------------------------------------
 */

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The C library's in double. */
static double logistic_of(double x) { return 1 / (1 + exp(-x)); }
static double silu_of(double x) { return x / (1 + exp(-x)); }
static double gelu_of(double x) { return x * 0.5 * erfc(-x / sqrt(2)); }

static const struct {
    const char *name;
    int op;
    double (*truth)(double);
    double fused; /* how many ulps at most, where products and sums are fused */
    double plain; /* and where they are not */
} FUNCTIONS[] = {
    {"exp", ELEMENTWISE_exp, exp, 1, 1},       {"log", ELEMENTWISE_log, log, 1, 1},
    {"tanh", ELEMENTWISE_tanh, tanh, 1, 1},    {"sigmoid", ELEMENTWISE_sigmoid, logistic_of, 1, 1},
    {"silu", ELEMENTWISE_silu, silu_of, 2, 2}, {"gelu", ELEMENTWISE_gelu, gelu_of, 2, 3},
};
enum { FUNCTION_N = 1 << 10 };

/* How far y is from the truth, which it should be rounded from, in the last digit of a float there:
 * an ulp. Beyond the largest float comes 2^128, infinity. NaN, a sign and a zero are right or
 * wrong. */
static double ulps(float y, double truth) {
    const bool is_right = isnan(truth) ? isnan(y) : !isnan(y) && !signbit(y) == !signbit(truth);
    if (!is_right) return INF;
    if (isnan(truth) || (double)y == truth) return 0;
    if (truth == 0 || fabs(truth) >= 0x1p128) return isinf(y) && truth != 0 ? 0 : INF;
    const double beyond = isinf(y) ? copysign(0x1p128, truth) : (double)y;
    const int exponent = fabs(truth) < (double)FLT_MIN ? -126 : ilogb(truth);
    return fabs(beyond - truth) / ldexp(1, exponent - 23);
}

static void check_function(int f, const float *x, int n) {
    static const int64_t ones[] = {1, 1};
    float y[FUNCTION_N];
    double truth[FUNCTION_N];
    for (int i = 0; i < n; i++) truth[i] = FUNCTIONS[f].truth((double)x[i]);
    for (int t = 0; t < table_count; t++) {
        const double most = t ? FUNCTIONS[f].fused : FUNCTIONS[f].plain;
        Loop *const kernel = tables[t]->value[FUNCTIONS[f].op][F32];
        kernel(n, (void *[]){y, (void *)(uintptr_t)x}, ones, 0);
        for (int i = 0; i < n; i++)
            EXPECT(ulps(y[i], truth[i]) <= most, "%s: %s(%.9g) is %.9g, %.3f ulps from %.9g",
                   tables[t]->name, FUNCTIONS[f].name, (double)x[i], (double)y[i],
                   ulps(y[i], truth[i]), truth[i]);
    }
}

/* Every sign and exponent, denormals, infinities and NaNs included: the mantissas at both ends, and
 * one of each 8,192 between them. */
START_TEST(functions_are_good_to_an_ulp_or_two_on_every_exponent) {
    enum { EVERY = (1 << 23) / FUNCTION_N };
    float x[FUNCTION_N];
    for (uint32_t top = 0; top < 512; top++) {
        for (uint32_t i = 0; i < FUNCTION_N; i++) {
            const uint32_t between = i * EVERY + draw(EVERY);
            const uint32_t mantissa = i < 4 ? i : i < FUNCTION_N - 4 ? between : i - FUNCTION_N;
            x[i] = float_of(top << 23 | (mantissa & 0x7fffff));
        }
        check_function(_i, x, FUNCTION_N);
    }
}
END_TEST

/* Where most results are neither 0, 1 nor inf, evenly. */
START_TEST(functions_are_good_to_an_ulp_or_two_in_between) {
    static const double end[] = {104.5, 10, 1.5};
    float x[FUNCTION_N];
    for (int round = 0; round < 600; round++) {
        for (int i = 0; i < FUNCTION_N; i++) x[i] = (float)draw_in(-end[round % 3], end[round % 3]);
        check_function(_i, x, FUNCTION_N);
    }
}
END_TEST

static float exp_of(const Kernels *table, float x) {
    float y[8], row[8];
    static const int64_t ones[] = {1, 1};
    for (int i = 0; i < 8; i++) row[i] = x;
    table->value[ELEMENTWISE_exp][F32](8, (void *[]){y, row}, ones, 0);
    for (int i = 1; i < 8; i++) ck_assert_mem_eq(y, y + i, sizeof *y);
    return y[0];
}

/* ln(FLT_MAX) = 88.7228391117..., which rounds to the float 0x1.62e43p+6; e^-103.97 is half the
 * smallest denormal. */
START_TEST(exp_at_its_ends) {
    for (int t = 0; t < table_count; t++) {
        const Kernels *k = tables[t];
        ck_assert(exp_of(k, 0.0f) == 1.0f && exp_of(k, -0.0f) == 1.0f);
        ck_assert(exp_of(k, FLT_TRUE_MIN) == 1.0f);
        ck_assert(exp_of(k, INFINITY) == INFINITY && exp_of(k, FLT_MAX) == INFINITY);
        ck_assert(exp_of(k, -INFINITY) == 0 && !signbit(exp_of(k, -INFINITY)));
        ck_assert(exp_of(k, -FLT_MAX) == 0 && exp_of(k, -200) == 0);
        CHECK(isnan(exp_of(k, NAN)) && isnan(exp_of(k, -NAN)));
        ck_assert(exp_of(k, 88.72f) < INFINITY && exp_of(k, 0x1.62e42ep+6f) < INFINITY);
        ck_assert(exp_of(k, 88.73f) == INFINITY && exp_of(k, 0x1.62e430p+6f) == INFINITY);
        ck_assert(exp_of(k, -87.5f) < FLT_MIN && exp_of(k, -87.5f) > 0);
        ck_assert(exp_of(k, -103.9f) == FLT_TRUE_MIN);
        ck_assert(exp_of(k, -104.0f) == 0);
    }
}
END_TEST

static float weight_of(const Kernels *table, float x) {
    float tile[16], max[16] = {0}, scale[16];
    for (int i = 0; i < 16; i++) tile[i] = x, scale[i] = 1;
    table->tile_weights[F32](1, (void *[]){tile, max, scale}, (int64_t[]){16}, 0);
    for (int i = 1; i < 16; i++) ck_assert_mem_eq(tile, tile + i, sizeof *tile);
    return tile[0];
}

/* A weight of attention is exp within a float, or one and a half where there is no FMA; below
 * 2^-100 it is 0. */
START_TEST(a_weight_is_never_denormal) {
    for (int t = 0; t < table_count; t++) {
        const Kernels *k = tables[t];
        for (float x = 0; x > -69.3147f; x -= 0.00073f) {
            const double want = exp((double)x), y = (double)weight_of(k, x);
            CHECK(fabs(y - want) <= (t ? 1 : 1.5) * ldexp(1, ilogb(want) - 23));
        }
        ck_assert(weight_of(k, -FLT_TRUE_MIN) == 1.0f && weight_of(k, -0.0f) == 1.0f);
        ck_assert(weight_of(k, -69.3147f) >= 0x1p-100f && weight_of(k, -69.3148f) == 0);
        ck_assert(weight_of(k, -100) == 0 && weight_of(k, -1e9f) == 0);
        ck_assert(weight_of(k, -FLT_MAX) == 0);
        ck_assert(weight_of(k, -INFINITY) == 0 && !signbit(weight_of(k, -INFINITY)));
        CHECK(isnan(weight_of(k, NAN)) && isnan(weight_of(k, -NAN)));
        CHECK(isnan(weight_of(k, nanf("1"))) && isnan(weight_of(k, nanf("511"))));
    }
}
END_TEST

/* ---- rows against double --------------------------------------------------------------------- */

enum { ROW_N = 5000 };
static double row_x[ROW_N], row_dy[ROW_N], row_y[ROW_N]; /* as float32 or float64 */

static void row_draw(DType dtype, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        store(dtype, row_x, i, draw_in(-4, 9));
        store(dtype, row_dy, i, draw_in(-1, 1));
    }
}

static double row_sum(DType dtype, int64_t n, double *largest, double *exps) {
    double sum = 0;
    *largest = -INF, *exps = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += load(dtype, row_x, i);
        if (load(dtype, row_x, i) > *largest) *largest = load(dtype, row_x, i);
    }
    for (int64_t i = 0; i < n; i++) *exps += exp(load(dtype, row_x, i) - *largest);
    return sum;
}

static const int64_t ROW_SIZES[] = {1, 2, 31, 32, 33, 100, 1023, 1024, 1025, 4095, 4096, 4097};
static const int64_t REDUCE[] = {0, 1}, MAP[] = {1, 1, 1, 0};

static void check_reductions(const Kernels *k, DType dtype, int64_t n) {
    double result, largest, exps, sum = row_sum(dtype, n, &largest, &exps), squares = 0;
    const double tiny = dtype == F32 ? 2e-6 : 1e-14;
    k->sum[dtype](n, (void *[]){&result, row_x}, REDUCE, 0);
    CHECK(fabs(load(dtype, &result, 0) - sum) <= tiny * (double)n * 4);
    for (int64_t i = 0; i < n; i++) {
        double d = load(dtype, row_x, i) - sum / (double)n;
        squares += d * d;
    }
    k->variance[dtype](n, (void *[]){&result, row_x}, REDUCE, 0);
    if (n == 1) ck_assert_double_nan(load(dtype, &result, 0)); /* torch.tensor([1.]).var() */
    else CHECK(fabs(load(dtype, &result, 0) - squares / (double)(n - 1)) <= tiny * 50);
    k->logsumexp[dtype](n, (void *[]){&result, row_x}, REDUCE, 0);
    expect_near(dtype, load(dtype, &result, 0), largest + log(exps), "logsumexp");
    int64_t best;
    k->argmax[dtype](n, (void *[]){&best, row_x}, REDUCE, 0);
    CHECK(load(dtype, row_x, best) == largest);
    for (int64_t i = 0; i < best; i++) CHECK(load(dtype, row_x, i) < largest);
    k->argmin[dtype](n, (void *[]){&best, row_x}, REDUCE, 0);
    const double smallest = load(dtype, row_x, best);
    for (int64_t i = 0; i < n; i++) CHECK(load(dtype, row_x, i) >= smallest);
    for (int64_t i = 0; i < best; i++) CHECK(load(dtype, row_x, i) > smallest);
}

/* Each sum is rounded once from doubles. */
static void check_cumsum(const Kernels *k, DType dtype, int64_t n) {
    double sum = 0;
    k->cumsum[dtype](n, (void *[]){row_y, row_x}, MAP, 0);
    for (int64_t i = 0; i < n; i++) {
        sum += load(dtype, row_x, i);
        CHECK(load(dtype, row_y, i) == (dtype == F32 ? (double)(float)sum : sum));
    }
}

static const int64_t ROW[] = {1, 1, 0, 0, 0}; /* masked_softmax: length, keep, window repeat */

static void check_softmax(const Kernels *k, DType dtype, int64_t n, int64_t length) {
    bool keep = true;
    double window = 0;
    int64_t valid = length < n ? length : n;
    double largest, exps, dot = 0;
    row_sum(dtype, valid, &largest, &exps);
    double *dx = malloc(ROW_N * sizeof *dx);
    if (length == n) k->softmax[dtype](n, (void *[]){row_y, row_x}, MAP, 0);
    else k->masked_softmax[dtype](n, (void *[]){row_y, row_x, &length, &keep, &window}, ROW, 1);
    for (int64_t i = 0; i < n; i++) {
        double want = i < valid ? exp(load(dtype, row_x, i) - largest) / exps : 0;
        expect_near(dtype, load(dtype, row_y, i), want, "softmax");
        if (i >= valid) CHECK(load(dtype, row_y, i) == 0);
        dot += want * load(dtype, row_dy, i);
    }
    if (length == n) k->softmax_dx[dtype](n, (void *[]){dx, row_y, row_dy}, MAP, 0);
    else k->masked_softmax_dx[dtype](n, (void *[]){dx, row_y, row_dy}, MAP, 1);
    for (int64_t i = 0; i < n; i++) {
        double want = i < valid ? exp(load(dtype, row_x, i) - largest) / exps : 0;
        expect_near(dtype, load(dtype, dx, i), want * (load(dtype, row_dy, i) - dot), "softmax_dx");
    }
    free(dx);
}

static void check_log_softmax(const Kernels *k, DType dtype, int64_t n) {
    double largest, exps, sum = 0;
    row_sum(dtype, n, &largest, &exps);
    double *dx = malloc(ROW_N * sizeof *dx);
    k->log_softmax[dtype](n, (void *[]){row_y, row_x}, MAP, 0);
    k->log_softmax_dx[dtype](n, (void *[]){dx, row_y, row_dy}, MAP, 0);
    for (int64_t i = 0; i < n; i++) sum += load(dtype, row_dy, i);
    for (int64_t i = 0; i < n; i++) {
        double p = exp(load(dtype, row_x, i) - largest) / exps;
        expect_near(dtype, load(dtype, row_y, i), log(p), "log_softmax");
        CHECK(fabs(load(dtype, dx, i) - (load(dtype, row_dy, i) - p * sum)) <=
              (dtype == F32 ? 4e-6 : 1e-13) * (1 + fabs(sum)));
    }
    free(dx);
}

START_TEST(row_kernels_follow_the_textbook) {
    const Kernels *k = tables[table_count - 1];
    for (int t = F32; t <= F64; t++)
        for (int i = 0; i < COUNT(ROW_SIZES); i++) {
            const int64_t n = ROW_SIZES[i];
            row_draw((DType)t, n);
            check_reductions(k, (DType)t, n);
            check_cumsum(k, (DType)t, n);
            check_softmax(k, (DType)t, n, n);
            check_softmax(k, (DType)t, n, 0);
            check_softmax(k, (DType)t, n, n / 2);
            check_softmax(k, (DType)t, n, n + 5);
            check_log_softmax(k, (DType)t, n);
        }
}
END_TEST

/* ---- rows whose operands differ in size -------------------------------------------------------
 */

enum { SORT_N = 100, SORT_STEP = 3 };

static bool comes_before(DType dtype, const void *x, int64_t i, int64_t j) {
    if (dtype == I64) return ((const int64_t *)x)[i] < ((const int64_t *)x)[j];
    const double a = load(dtype, x, i), b = load(dtype, x, j);
    return isnan(b) ? !isnan(a) : a < b;
}

/* Of few values, so that many are equal; integers that a double would not tell apart. */
static void draw_few(DType dtype, void *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (dtype == I64) ((int64_t *)x)[i] = INT64_MAX - draw(5);
        else store(dtype, x, i, dtype == BOOL ? draw(2) : SPECIAL[draw(COUNT(SPECIAL))]);
    }
}

/* Insertion sort is stable too. */
static void check_sort(const Kernels *k, DType dtype, int64_t n) {
    double x[SORT_N * SORT_STEP], y[SORT_N * SORT_STEP]; /* room for any type */
    int64_t order[SORT_N], scratch[SORT_N], want[SORT_N];
    draw_few(dtype, x, SORT_N * SORT_STEP);
    k->sort[dtype](n, (void *[]){y, order, x, scratch}, (int64_t[]){2, 1, SORT_STEP, 1}, 0);
    for (int64_t i = 0, j; i < n; i++) {
        for (j = i; j > 0 && comes_before(dtype, x, i * SORT_STEP, want[j - 1] * SORT_STEP); j--)
            want[j] = want[j - 1];
        want[j] = i;
    }
    for (int64_t i = 0; i < n; i++) {
        EXPECT(order[i] == want[i], "%s: order[%d]", tensor_dtype_name(dtype), (int)i);
        CHECK(same_bits(dtype, y, 2 * i, x, want[i] * SORT_STEP));
    }
}

START_TEST(rows_are_sorted_and_equals_keep_their_order) {
    static const int64_t sizes[] = {0, 1, 2, 3, 31, SORT_N};
    for (int t = 0; t < table_count; t++)
        for (int type = F32; type <= BOOL; type++)
            for (int i = 0; i < COUNT(sizes); i++) check_sort(tables[t], (DType)type, sizes[i]);
}
END_TEST

START_TEST(what_a_mask_takes_it_puts_back) {
    double x[40], packed[40] = {0}, back[40];
    bool mask[40];
    for (int t = 0; t < 4 * table_count; t++) {
        const DType dtype = (DType)(t % 4);
        const Kernels *k = tables[t / 4];
        draw_few(dtype, x, 40);
        for (int i = 0; i < 40; i++) mask[i] = draw(2);
        k->compress[dtype](20, (void *[]){packed, x, mask}, (int64_t[]){1, 2, 2}, 0);
        k->decompress[dtype](20, (void *[]){back, packed, mask}, (int64_t[]){2, 1, 2}, 0);
        for (int i = 0, taken = 0; i < 40; i += 2) {
            if (mask[i]) CHECK(same_bits(dtype, packed, taken++, x, i));
            if (mask[i]) CHECK(same_bits(dtype, back, i, x, i));
            else CHECK(load(dtype, back, i) == 0);
        }
    }
}
END_TEST

/* (~torch.isclose(a, b, rtol=0.5, atol=1)).sum(), and integers that a double would not tell apart.
 */
START_TEST(far_pairs_are_counted) {
    const double a[] = {1, 0, 4, -4, INF, INF, INF, NOT, 1},
                 b[] = {2, 4, 1, 4, INF, -INF, 1, NOT, INF};
    const double same[] = {0, 0}, loose[] = {0.5, 1};
    const int64_t i[] = {INT64_MAX, INT64_MAX, INT64_MIN},
                  j[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX};
    for (int t = 0; t < table_count; t++) {
        int64_t far = 0, exact = 0, near = 0;
        const int64_t strides[] = {0, 1, 1, 0};
        tables[t]->count_far[F64](
            9,
            (void *[]){&far, (void *)(uintptr_t)a, (void *)(uintptr_t)b, (void *)(uintptr_t)loose},
            strides, 0);
        ck_assert_int_eq(far, 7); /* all but 1 and 2, inf and inf */
        tables[t]->count_far[I64](
            3,
            (void *[]){&exact, (void *)(uintptr_t)i, (void *)(uintptr_t)j, (void *)(uintptr_t)same},
            strides, 0);
        ck_assert_int_eq(exact, 2);
        tables[t]->count_far[I64](
            3,
            (void *[]){&near, (void *)(uintptr_t)i, (void *)(uintptr_t)j, (void *)(uintptr_t)loose},
            strides, 0);
        ck_assert_int_eq(near, 1);
    }
}
END_TEST

/* torch.softmax, logsumexp, log_softmax and argmax of rows with infinities and NaN. */
START_TEST(rows_with_nan_and_infinity) {
    const float inf = INFINITY, nan_ = NAN;
    const struct {
        float x[3], softmax[3], log_softmax[3], logsumexp;
        int64_t argmax;
    } cases[] = {
        {{1, nan_, 2}, {nan_, nan_, nan_}, {nan_, nan_, nan_}, nan_, 1},
        {{nan_, nan_, nan_}, {nan_, nan_, nan_}, {nan_, nan_, nan_}, nan_, 0},
        {{1, inf, nan_}, {nan_, nan_, nan_}, {nan_, nan_, nan_}, nan_, 2},
        {{-inf, -inf, -inf}, {nan_, nan_, nan_}, {nan_, nan_, nan_}, -inf, 0},
        {{-inf, 3, -inf}, {0, 1, 0}, {-inf, 0, -inf}, 3, 1},
        {{1, inf, 2}, {nan_, nan_, nan_}, {nan_, nan_, nan_}, inf, 1},
        {{1e30f, 1e30f, -1e30f}, {.5f, .5f, 0}, {-0.693147182f, -0.693147182f, -2e30f}, 1e30f, 0},
    };
    for (int c = 0; c < COUNT(cases); c++)
        for (int t = 0; t < table_count; t++) {
            float y[3], log_y[3], sum;
            int64_t best;
            void *x = (void *)(uintptr_t)cases[c].x;
            tables[t]->softmax[F32](3, (void *[]){y, x}, MAP, 0);
            tables[t]->log_softmax[F32](3, (void *[]){log_y, x}, MAP, 0);
            tables[t]->logsumexp[F32](3, (void *[]){&sum, x}, REDUCE, 0);
            tables[t]->argmax[F32](3, (void *[]){&best, x}, REDUCE, 0);
            for (int i = 0; i < 3; i++) {
                EXPECT(same_bits(F32, y, i, cases[c].softmax, i), "softmax %d", c);
                EXPECT(same_bits(F32, log_y, i, cases[c].log_softmax, i), "log %d", c);
            }
            EXPECT(same_bits(F32, &sum, 0, &cases[c].logsumexp, 0), "logsumexp %d", c);
            ck_assert_int_eq(best, cases[c].argmax);
        }
}
END_TEST

/* What lies behind a row's length or is not kept changes nothing: NaN, infinity. */
START_TEST(masked_elements_are_not_read) {
    float x[] = {1, NAN, 2, NAN, INFINITY}, y[5], dx[5], dy[] = {3, INFINITY, 1, NAN, NAN};
    bool keep[] = {true, false, true, true, true};
    float window[] = {1, NAN, 0.5, NAN, 1};
    int64_t length = 3, steps[] = {1, 1, 0, 1, 1};
    for (int t = 0; t < table_count; t++) {
        tables[t]->masked_softmax[F32](5, (void *[]){y, x, &length, keep, window}, steps, 3);
        tables[t]->masked_softmax_dx[F32](5, (void *[]){dx, y, dy}, MAP, 3);
        expect_near(F32, (double)y[2], 1 / (1 + exp(-2.5)), "masked_softmax");
        expect_near(F32, (double)dx[0], 3 * (double)y[0] * 2 * (double)y[2], "masked_softmax_dx");
        for (int i = 0; i < 5; i++) CHECK(i == 0 || i == 2 || (y[i] == 0 && dx[i] == 0));
    }
}
END_TEST

/* Every element ignored, by its place, by keep or by a window of -inf: zeros. A kept NaN is no such
 * thing, and neither are scores of -inf: PyTorch says NaN. */
START_TEST(a_row_with_nothing_to_attend_to_is_zero) {
    const float none = -INFINITY;
    float x[][3] = {{1, 2, NAN}, {NAN, 4, 2}, {NAN, 1, 2}, {none, none, 3}}, y[3];
    float window[][3] = {{0, none, 0}, {none, 1, 0}, {0, 0, 0}, {0, 0, 0}};
    bool keep[][3] = {{false, true, false}, {true, true, false}, {1, 1, 0}, {1, 1, 1}};
    float want[][3] = {{0, 0, 0}, {0, 1, 0}, {NAN, NAN, 0}, {NAN, NAN, 0}};
    int64_t length[] = {3, 3, 3, 2}, steps[] = {1, 1, 0, 1, 1};
    for (int c = 0; c < 4 * table_count; c++) {
        int i = c % 4;
        void *data[] = {y, x[i], &length[i], keep[i], window[i]};
        tables[c / 4]->masked_softmax[F32](3, data, steps, 1);
        for (int e = 0; e < 3; e++)
            EXPECT(isnan(want[i][e]) ? isnan(y[e]) : y[e] == want[i][e], "row %d, element %d", i,
                   e);
    }
}
END_TEST

/* Rows of about base, with deviations of about an ulp of base: 1e4 and 1e-3 of float32. Differences
 * to base are exact. The mean lies between two numbers of the type. */
typedef struct {
    DType dtype;
    int64_t n;
    double base, mean, squares; /* the mean of x - base, the sum of squared deviations from it */
} LargeMean;

static LargeMean large_mean_draw(DType dtype, int64_t n) {
    LargeMean row = {.dtype = dtype, .n = n, .base = dtype == F32 ? 1e4 : 1e13};
    for (int64_t i = 0; i < n; i++) store(dtype, row_x, i, row.base + draw_in(-3, 3) * 1e-3);
    for (int64_t i = 0; i < n; i++) row.mean += (load(dtype, row_x, i) - row.base) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = load(dtype, row_x, i) - row.base - row.mean;
        row.squares += d * d;
    }
    return row;
}

static void check_variance(const Kernels *k, const LargeMean *row) {
    double var;
    k->variance[row->dtype](row->n, (void *[]){&var, row_x}, REDUCE, 0);
    const double got = load(row->dtype, &var, 0), want = row->squares / (double)(row->n - 1);
    EXPECT(fabs(got - want) <= (row->dtype == F32 ? 1e-6 : 1e-13) * want,
           "%s: the variance of %d numbers is %.17g, not %.17g", k->name, (int)row->n, got, want);
}

/* The sums of doubles here are not better than those that they check. */
static void expect_norm(const LargeMean *row, double got, double want, const char *what) {
    EXPECT(fabs(got - want) <= (row->dtype == F32 ? 1e-6 : 1e-13) * (1 + fabs(want)),
           "%s of %s: %.17g, not %.17g", what, tensor_dtype_name(row->dtype), got, want);
}

/* y = z + 3 and, with w = 1, dx = (dy - mean(dy) - z mean(dy z)) scale. */
static void check_norm(const Kernels *k, const LargeMean *row) {
    static const int64_t steps[] = {1, 1, 0, 0, 1}, backward[] = {1, 1, 0, 1, 1};
    const DType dtype = row->dtype;
    const double n = (double)row->n, eps = 1e-12, scale = 1 / sqrt(row->squares / n + eps);
    double w, b, stats[3], mean_dy = 0, mean_dy_z = 0;
    double *dx = malloc(ROW_N * sizeof *dx), *z = malloc(ROW_N * sizeof *z);
    store(dtype, &w, 0, 1), store(dtype, &b, 0, 3);
    k->layer_norm[dtype](row->n, (void *[]){row_y, row_x, &w, &b, stats}, steps, eps);
    k->layer_norm_dx[dtype](row->n, (void *[]){dx, row_x, &w, row_dy, stats}, backward, 0);
    for (int64_t i = 0; i < row->n; i++) {
        z[i] = (load(dtype, row_x, i) - row->base - row->mean) * scale;
        expect_norm(row, load(dtype, row_y, i), z[i] + 3, "layer_norm");
        mean_dy += load(dtype, row_dy, i) / n;
        mean_dy_z += load(dtype, row_dy, i) * z[i] / n;
    }
    for (int64_t i = 0; i < row->n; i++) {
        const double want = load(dtype, row_dy, i) - mean_dy - z[i] * mean_dy_z;
        expect_norm(row, load(dtype, dx, i) / scale, want, "layer_norm_dx");
    }
    free(dx), free(z);
}

START_TEST(a_large_mean_costs_no_digits) {
    for (int t = 0; t < 2 * table_count; t++)
        for (int i = 0; i < COUNT(ROW_SIZES); i++) {
            const DType dtype = t % 2 ? F64 : F32;
            row_draw(dtype, ROW_SIZES[i]); /* dy */
            const LargeMean row = large_mean_draw(dtype, ROW_SIZES[i]);
            if (row.n > 1) check_variance(tables[t / 2], &row);
            check_norm(tables[t / 2], &row);
        }
}
END_TEST

/* Of equal numbers the mean is that number, so y is exactly b. */
START_TEST(a_constant_row_is_normalised_to_zero) {
    static const double values[] = {1234.567, -0.1, 1e30, 3e-39, 0};
    static const int64_t steps[] = {1, 1, 0, 0, 1};
    for (int t = 0; t < 2 * table_count; t++)
        for (int i = 0; i < COUNT(values) * COUNT(ROW_SIZES); i++) {
            const Kernels *k = tables[t / 2];
            const DType dtype = t % 2 ? F64 : F32;
            const int64_t n = i < COUNT(values) ? ROW_N : ROW_SIZES[i % COUNT(ROW_SIZES)];
            double w, b, stats[3], var;
            store(dtype, &w, 0, 2), store(dtype, &b, 0, 0);
            for (int64_t e = 0; e < n; e++) store(dtype, row_x, e, values[i % COUNT(values)]);
            k->layer_norm[dtype](n, (void *[]){row_y, row_x, &w, &b, stats}, steps, 1e-5);
            k->variance[dtype](n, (void *[]){&var, row_x}, REDUCE, 0);
            CHECK(n == 1 || load(dtype, &var, 0) == 0);
            for (int64_t e = 0; e < n; e++) CHECK(load(dtype, row_y, e) == 0);
        }
}
END_TEST

/* The differences from the mean, -1e38, overflow: their square is infinite, as PyTorch says. */
START_TEST(a_variance_that_overflows_is_infinite) {
    float x[] = {3e38f, -3e38f, -3e38f}, var;
    for (int t = 0; t < table_count; t++) {
        tables[t]->variance[F32](3, (void *[]){&var, x}, REDUCE, 0);
        CHECK(isinf(var));
    }
}
END_TEST

enum { COLUMNS = 130 };

/* A sum down a column is the sum of a row that lies so, to the bit: rows of all counts about the
 * lanes and the blocks, columns about the strips. dw of layer norm sums dy z. */
static void check_columns(const Kernels *k, DType dtype, int64_t rows, int64_t n) {
    const size_t size = dtype_size(dtype), bytes = (size_t)(rows * n) * size;
    char *x = malloc(bytes), *dy = malloc(bytes), *term = malloc(bytes);
    char *stats = malloc((size_t)rows * 3 * size), sums[3][COLUMNS * sizeof(double)];
    for (int64_t i = 0; i < rows * n; i++) store(dtype, x, i, draw_in(-3, 3));
    for (int64_t i = 0; i < rows * n; i++) store(dtype, dy, i, draw_in(-3, 3));
    for (int64_t r = 0; r < rows * 3; r++) store(dtype, stats, r, draw_in(0.5, 2));
    for (int64_t i = 0; i < rows * n; i++) {
        const int64_t r = i / n;
        if (dtype == F32) {
            const float *xf = (float *)x, *sf = (float *)stats + 3 * r;
            ((float *)term)[i] = ((float *)dy)[i] * ((xf[i] - sf[0] - sf[1]) * sf[2]);
        } else {
            const double *xd = (double *)x, *sd = (double *)stats + 3 * r;
            ((double *)term)[i] = ((double *)dy)[i] * ((xd[i] - sd[0] - sd[1]) * sd[2]);
        }
    }
    int64_t numbers[] = {rows, n};
    static const int64_t steps[LOOP_OPERANDS] = {1, 1, 1, 1};
    k->sum_columns[dtype](n, (void *[]){sums[0], x, numbers}, steps, 0);
    k->layer_norm_dw[dtype](n, (void *[]){sums[1], sums[2], x, dy, stats, numbers}, steps, 0);
    char *const of[] = {x, term, dy};
    for (int s = 0; s < 3; s++)
        for (int64_t i = 0; i < n; i++) {
            double sum;
            k->sum[dtype](rows, (void *[]){&sum, of[s] + (size_t)i * size}, (int64_t[]){0, n}, 0);
            EXPECT(same_bits(dtype, sums[s], i, &sum, 0), "%s: column %d of %d by %d, %d", k->name,
                   (int)i, (int)rows, (int)n, s);
        }
    free(x), free(dy), free(term), free(stats);
}

START_TEST(columns_are_summed_as_rows_are) {
    static const int64_t counts[] = {0, 1, 2, 31, 32, 33, 100, 4095, 4096, 4097, 9000};
    static const int64_t widths[] = {1, 10, 63, 64, 65, COLUMNS};
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < COUNT(counts); i++)
            for (int j = 0; j < COUNT(widths); j++)
                check_columns(tables[t], (i + j) % 3 ? F32 : F64, counts[i], widths[j]);
}
END_TEST

/* Every lane of a block adds 128 of these, and each addition rounds the same way: 1.0007e-6 in all.
 * A single running sum of floats would be off by 1e-2. */
START_TEST(long_sums_are_accurate) {
    enum { N = 1000000 };
    float *x = malloc(N * sizeof *x), sum;
    for (int i = 0; i < N; i++) x[i] = 0.1f;
    for (int t = 0; t < table_count; t++) {
        tables[t]->sum[F32](N, (void *[]){&sum, x}, REDUCE, 0);
        CHECK(fabs((double)sum / (N * (double)0.1f) - 1) <= 1.1e-6);
    }
    free(x);
}
END_TEST

/* ---- matrix products ------------------------------------------------------------------------- */

typedef struct {
    DType dtype;
    int64_t rows, columns, stride[2];
    size_t bytes;
    void *data;
} Matrix;

/* What cache_alloc leaves behind a block, and a product may read behind b. */
enum { SLACK = 128 };

/* layout bit 0: transposed; bit 1: every second element. */
static Matrix matrix_new(DType dtype, int64_t rows, int64_t columns, int layout) {
    int64_t step = layout & 2 ? 2 : 1;
    Matrix x = {dtype, rows, columns, {columns * step, step}, 0, NULL};
    if (layout & 1) x.stride[0] = step, x.stride[1] = rows * step;
    x.bytes = (size_t)(rows * columns * step + 1) * dtype_size(dtype);
    x.data = malloc(x.bytes + SLACK);
    ck_assert_ptr_nonnull(x.data);
    memset(x.data, GAP, x.bytes + SLACK);
    return x;
}

static int64_t matrix_at(const Matrix *x, int64_t i, int64_t j) {
    return i * x->stride[0] + j * x->stride[1];
}

static void matrix_draw(Matrix *x) {
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++)
            store(x->dtype, x->data, matrix_at(x, i, j), draw_in(-2, 2));
}

/* What the products of a matrix begin with: nothing, a matrix, one row for all, or c itself. */
enum { AT_ZERO, AT_MATRIX, AT_ROW, AT_ITSELF, STARTS };

static void multiply(const Kernels *table, const Matrix *a, const Matrix *b, const Matrix *start,
                     Matrix *c) {
    MatmulShape shape = {.m = a->rows, .n = b->columns, .k = a->columns};
    memcpy(shape.a_stride, a->stride, sizeof a->stride);
    memcpy(shape.b_stride, b->stride, sizeof b->stride);
    memcpy(shape.c_stride, c->stride, sizeof c->stride);
    if (start) {
        shape.start = start->data;
        memcpy(shape.start_stride, start->stride, sizeof start->stride);
    }
    const int64_t room = table->matmul_workspace(&shape, dtype_size(a->dtype));
    char *workspace = malloc((size_t)room + 8);
    ck_assert_ptr_nonnull(workspace);
    memset(workspace + room, GAP, 8);
    shape.workspace = workspace;
    table->matmul[a->dtype](&shape, a->data, b->data, c->data);
    for (int i = 0; i < 8; i++) CHECK((unsigned char)workspace[room + i] == GAP);
    free(workspace);
}

/* Is a b + c rounded once? Compilers see to that only where they optimize. */
static bool fuses(const Kernels *table, DType dtype) {
    const double eps = dtype == F32 ? 0x1p-20 : 0x1p-45;
    Matrix a = matrix_new(dtype, 1, 1, 0), b = matrix_new(dtype, 1, 1, 0);
    Matrix c = matrix_new(dtype, 1, 1, 0), start = matrix_new(dtype, 1, 1, 0);
    store(dtype, a.data, 0, 1 + eps);
    store(dtype, b.data, 0, 1 - eps);
    store(dtype, start.data, 0, -1);
    multiply(table, &a, &b, &start, &c);
    const bool once = load(dtype, c.data, 0) != 0; /* -eps^2 */
    free(a.data), free(b.data), free(c.data), free(start.data);
    return once;
}

/* The twin of the fast products: each element is one chain over p, fused or not. */
static double product_at(const Matrix *a, const Matrix *b, double start, int64_t i, int64_t j,
                         bool fused) {
    float sum_f32 = (float)start;
    double sum = start;
    for (int64_t p = 0; p < a->columns; p++) {
        const int64_t at_a = matrix_at(a, i, p), at_b = matrix_at(b, p, j);
        if (a->dtype == F32) {
            const float x = ((float *)a->data)[at_a], y = ((float *)b->data)[at_b];
            sum_f32 = fused ? fmaf(x, y, sum_f32) : x * y + sum_f32;
        } else {
            const double x = ((double *)a->data)[at_a], y = ((double *)b->data)[at_b];
            sum = fused ? fma(x, y, sum) : x * y + sum;
        }
    }
    return a->dtype == F32 ? (double)sum_f32 : sum;
}

/* Rows times a column, or a row times columns, all dense, are dot products: rounding k of them, in
 * any order, errs by at most about k eps sum |a b|. All others have the twin's bits. */
static void expect_product(const Matrix *a, const Matrix *b, const Matrix *start, const Matrix *c,
                           bool fused) {
    const double eps = c->dtype == F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    const bool dots = (c->rows == 1 || c->columns == 1) && a->columns != 1 && a->stride[1] == 1 &&
                      b->stride[0] == 1;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const double first = start ? load(c->dtype, start->data, matrix_at(start, i, j)) : 0;
            const double want = product_at(a, b, first, i, j, fused);
            const double got = load(c->dtype, c->data, matrix_at(c, i, j));
            const double bound = 6 * eps * (double)(a->columns * a->columns + 1);
            EXPECT(got == want || (isnan(got) && isnan(want)) ||
                       (dots && fabs(got - want) <= bound),
                   "(%lld, %lld) (%lld, %lld): c[%lld, %lld] is %.17g, not %.17g",
                   (long long)c->rows, (long long)a->columns, (long long)a->columns,
                   (long long)c->columns, (long long)i, (long long)j, got, want);
        }
}

/* Nothing else than c's elements was written. */
static void expect_matrix_gaps(const Matrix *c) {
    const size_t size = dtype_size(c->dtype);
    const int64_t step = c->stride[0] < c->stride[1] ? c->stride[0] : c->stride[1];
    for (size_t b = 0; b < c->bytes; b++) {
        int64_t e = (int64_t)(b / size);
        if (e >= c->rows * c->columns * step || e % step)
            CHECK(((unsigned char *)c->data)[b] == GAP);
    }
}

/* layouts: two bits for each of a, b, c and start. */
static void try_product(DType dtype, int64_t m, int64_t n, int64_t k, int layouts, int begins) {
    Matrix a = matrix_new(dtype, m, k, layouts & 3), b = matrix_new(dtype, k, n, layouts >> 2 & 3);
    Matrix start = matrix_new(dtype, m, n, layouts >> 6 & 3), row = start, first = start;
    row.stride[0] = 0;
    const Matrix *from = begins == AT_ZERO ? NULL : begins == AT_ROW ? &row : &start;
    matrix_draw(&a);
    matrix_draw(&b);
    matrix_draw(&start);
    for (int t = 0; t < table_count; t++) {
        Matrix c = matrix_new(dtype, m, n, layouts >> 4 & 3);
        for (int64_t i = 0; i < m && begins == AT_ITSELF; i++)
            for (int64_t j = 0; j < n; j++)
                store(dtype, c.data, matrix_at(&c, i, j),
                      load(dtype, start.data, matrix_at(&start, i, j)));
        multiply(tables[t], &a, &b, begins == AT_ITSELF ? &c : from, &c);
        if (t < 2) expect_product(&a, &b, from, &c, fuses(tables[t], dtype));
        expect_matrix_gaps(&c);
        EXPECT(t < 2 || memcmp(c.data, first.data, c.bytes) == 0, "%s: (%d, %d) (%d, %d)",
               tables[t]->name, (int)m, (int)k, (int)k, (int)n);
        if (t > 0) free(first.data);
        first = c;
    }
    free(a.data), free(b.data), free(start.data), free(first.data);
}

START_TEST(products_of_every_shape_and_stride) {
    static const int64_t sizes[][3] = {
        {0, 3, 4},  {3, 0, 4},    {3, 4, 0},   {0, 0, 0},   {1, 1, 1},   {1, 5, 1},   {5, 1, 1},
        {1, 1, 9},  {1, 7, 3},    {7, 1, 3},   {2, 3, 4},   {5, 7, 3},   {8, 8, 8},   {17, 9, 33},
        {4, 16, 5}, {31, 33, 32}, {13, 65, 7}, {3, 70, 40}, {1, 40, 50}, {50, 1, 40}, {20, 200, 0}};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int layouts = 0; layouts < 256; layouts += layouts < 15 ? 1 : 7)
            try_product(_i ? F64 : F32, sizes[i][0], sizes[i][1], sizes[i][2], layouts,
                        layouts % STARTS);
}
END_TEST

/* Every size up to a few tiles, in each dimension. */
START_TEST(products_of_every_size) {
    for (int64_t size = 1; size <= 70; size++)
        for (int i = 0; i < 8; i++) {
            const int64_t a = 1 + draw(40), b = 1 + draw(40);
            const int layouts = (int)draw(256), begins = (int)draw(STARTS);
            try_product(_i ? F64 : F32, size, a, b, layouts, begins);
            try_product(_i ? F64 : F32, a, size, b, layouts, begins);
            try_product(_i ? F64 : F32, a, b, size, layouts, begins);
        }
}
END_TEST

/* Whole vectors may be stored over what comes next only where that is the next row of c. */
START_TEST(products_leave_what_lies_between_rows) {
    const DType dtype = _i ? F64 : F32;
    for (int64_t columns = 1; columns <= 40; columns++)
        for (int64_t rows = 1; rows <= 26; rows += 5) {
            const int64_t wide = columns + 1 + draw(9);
            Matrix a = matrix_new(dtype, rows, 3, 0), b = matrix_new(dtype, 3, columns, 0);
            matrix_draw(&a);
            matrix_draw(&b);
            for (int t = 0; t < table_count; t++) {
                Matrix whole = matrix_new(dtype, rows, wide, 0), c = whole;
                c.columns = columns;
                multiply(tables[t], &a, &b, NULL, &c);
                expect_product(&a, &b, NULL, &c, fuses(tables[t], dtype));
                const int64_t size = dtype_size(dtype);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t x = (i * wide + columns) * size; x < (i + 1) * wide * size; x++)
                        CHECK(((unsigned char *)c.data)[x] == GAP);
                free(whole.data);
            }
            free(a.data), free(b.data);
        }
}
END_TEST

/* Larger than what is packed at once, in each dimension: odd sizes on purpose. */
START_TEST(larger_products) {
    static const int64_t sizes[][3] = {{67, 131, 259}, {5, 3, 5003},   {3, 1031, 5},
                                       {1031, 3, 5},   {19, 40, 1030}, {5, 1070, 1100},
                                       {270, 70, 520}, {40, 2100, 30}, {800, 70, 700}};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int layouts = 0; layouts < 16; layouts += 5 - layouts / 5 % 2) /* 0, 5, 9, 14 */
            try_product(_i ? F64 : F32, sizes[i][0], sizes[i][1], sizes[i][2], layouts, i % STARTS);
}
END_TEST

/* A few rows of a wide transposed a, whose steps lie so far apart that blocks of it are packed: for
 * one part of b, or for several. */
START_TEST(products_of_what_lies_far_apart) {
    const DType dtype = _i & 1 ? F64 : F32;
    const int64_t m = 100, k = 700, n = _i & 2 ? 200 : 30;
    Matrix a = matrix_new(dtype, 701, k, 1), b = matrix_new(dtype, k, n, 0), first = b;
    matrix_draw(&a);
    matrix_draw(&b);
    a.rows = m;
    for (int t = 0; t < table_count; t++) {
        Matrix c = matrix_new(dtype, m, n, 0);
        multiply(tables[t], &a, &b, NULL, &c);
        if (t < 2) expect_product(&a, &b, NULL, &c, fuses(tables[t], dtype));
        CHECK(t < 2 || memcmp(c.data, first.data, c.bytes) == 0);
        if (t > 0) free(first.data);
        first = c;
    }
    free(a.data), free(b.data), free(first.data);
}
END_TEST

/* More rows of such an a than stay packed at once: the first ones and the last have the bits that
 * they have alone. */
START_TEST(products_of_more_than_a_panel) {
    const DType dtype = _i & 1 ? F64 : F32;
    const int64_t m = 3100, k = 700, n = 300, few = 100, from = _i & 2 ? m - few : 0;
    const size_t size = dtype_size(dtype);
    Matrix a = matrix_new(dtype, m, k, 1), b = matrix_new(dtype, k, n, 0), part = a;
    matrix_draw(&a);
    matrix_draw(&b);
    part.rows = few, part.data = (char *)a.data + (size_t)from * size;
    for (int t = 0; t < table_count; t++) {
        Matrix c = matrix_new(dtype, m, n, 0), alone = matrix_new(dtype, few, n, 0);
        multiply(tables[t], &a, &b, NULL, &c);
        multiply(tables[t], &part, &b, NULL, &alone);
        const char *rows = (char *)c.data + (size_t)(from * n) * size;
        CHECK(memcmp(rows, alone.data, (size_t)(few * n) * size) == 0);
        free(c.data), free(alone.data);
    }
    free(a.data), free(b.data);
}
END_TEST

/* Threads multiply slices of a product, which begin at multiples of 64, with room for the whole. */
START_TEST(a_slice_needs_no_more_room) {
    static const int64_t depths[] = {0, 1, 20, 300, 333, 700, 1000, 1024, 1500};
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < COUNT(depths) * 8; i++)
            for (int64_t size = 1; size <= 1100; size += 33) {
                const int64_t k = depths[i / 8], element = i & 4 ? 8 : 4, other = 1200;
                MatmulShape whole = {.m = other, .n = size, .k = k};
                whole.a_stride[i & 1 ? 0 : 1] = whole.b_stride[i & 2 ? 0 : 1] = 1;
                whole.a_stride[i & 1 ? 1 : 0] = i & 1 ? other : k;
                whole.b_stride[i & 2 ? 1 : 0] = i & 2 ? k : size;
                const int64_t room = tables[t]->matmul_workspace(&whole, (size_t)element);
                for (int64_t from = 0; from < size; from += 64)
                    for (int64_t to = from + 64; to < size + 64; to += 64) {
                        MatmulShape slice = whole;
                        slice.n = (to < size ? to : size) - from;
                        EXPECT(tables[t]->matmul_workspace(&slice, (size_t)element) <= room,
                               "(%d, %d) (%d, %d): columns %d to %d", (int)other, (int)k, (int)k,
                               (int)size, (int)from, (int)to);
                        slice.n = size, slice.m = to - from;
                        EXPECT(tables[t]->matmul_workspace(&slice, (size_t)element) <= room,
                               "(%d, %d) (%d, %d): rows %d to %d", (int)other, (int)k, (int)k,
                               (int)size, (int)from, (int)to);
                    }
            }
}
END_TEST

/* A product of nothing is 0, and a zero does not silence a NaN or an infinity. */
START_TEST(products_skip_no_zero) {
    float a[] = {0, 1}, b[4 + SLACK] = {INFINITY, NAN, 1, 1}, c[2] = {7, 7}, room[512];
    MatmulShape shape = {.m = 1,
                         .n = 2,
                         .k = 2,
                         .a_stride = {2, 1},
                         .b_stride = {2, 1},
                         .c_stride = {2, 1},
                         .workspace = room};
    MatmulShape none = shape;
    none.k = 0;
    for (int t = 0; t < table_count; t++) {
        tables[t]->matmul[F32](&shape, a, b, c);
        CHECK(isnan(c[0]) && isnan(c[1]));
        tables[t]->matmul[F32](&none, a, b, c);
        ck_assert(c[0] == 0 && c[1] == 0);
    }
}
END_TEST

/* c = a b in two steps, the second of which adds: sums go on where they stopped, so it is the
 * product at once, bit for bit. In place, b's rows are as long as whole vectors. */
START_TEST(products_are_added) {
    const DType dtype = _i ? F64 : F32;
    Matrix a = matrix_new(dtype, 21, 37, 0), wide = matrix_new(dtype, 37, 48, 0), b = wide;
    Matrix c = matrix_new(dtype, 21, 43, 0), added = matrix_new(dtype, 21, 43, 1);
    matrix_draw(&a);
    matrix_draw(&wide);
    b.columns = 43;
    for (int t = 0; t < table_count; t++)
        for (int in_place = 0; in_place < 2; in_place++) {
            const size_t half = (size_t)(17 * dtype_size(dtype));
            MatmulShape shape = {.m = 21, .n = 43, .k = 17, .a_stride = {37, 1}};
            shape.b_stride[0] = 48, shape.b_stride[1] = 1;
            memcpy(shape.c_stride, added.stride, sizeof added.stride);
            shape.in_place = in_place;
            shape.workspace = malloc((size_t)tables[t]->matmul_workspace(&shape, half / 17) + 1);
            multiply(tables[t], &a, &b, NULL, &c);
            memset(added.data, GAP, added.bytes);
            tables[t]->matmul[dtype](&shape, a.data, b.data, added.data);
            shape.k = 20, shape.start = added.data;
            memcpy(shape.start_stride, added.stride, sizeof added.stride);
            free(shape.workspace);
            shape.workspace = malloc((size_t)tables[t]->matmul_workspace(&shape, half / 17) + 1);
            tables[t]->matmul[dtype](&shape, (char *)a.data + half, (char *)b.data + half * 48,
                                     added.data);
            for (int64_t i = 0; i < 21 * 43; i++)
                ck_assert(load(dtype, c.data, matrix_at(&c, i / 43, i % 43)) ==
                          load(dtype, added.data, matrix_at(&added, i / 43, i % 43)));
            expect_matrix_gaps(&added);
            free(shape.workspace);
        }
    free(a.data), free(wide.data), free(c.data), free(added.data);
}
END_TEST

/* Every row of a product has the bits that it would have alone: no digit depends on the other rows,
 * so none can depend on how rows are shared among threads. */
START_TEST(rows_of_a_product_stand_alone) {
    Matrix a = matrix_new(F32, 13, 37, 0), b = matrix_new(F32, 37, 29, 0);
    Matrix all = matrix_new(F32, 13, 29, 0), row = matrix_new(F32, 1, 29, 0);
    matrix_draw(&a);
    matrix_draw(&b);
    multiply(kernels(), &a, &b, NULL, &all);
    for (int64_t i = 0; i < 13; i++) {
        Matrix one = a;
        one.rows = 1;
        one.data = (float *)a.data + i * 37;
        multiply(kernels(), &one, &b, NULL, &row);
        ck_assert_mem_eq(row.data, (float *)all.data + i * 29, 29 * sizeof(float));
    }
    free(a.data), free(b.data), free(all.data), free(row.data);
}
END_TEST

/* A number times a row is that row of the whole product, 0 for -0 included, however the row lies.
 */
START_TEST(a_number_times_a_row_is_a_row_of_the_product) {
    double factors[13], numbers[29], spaced[58] = {0};
    for (int i = 0; i < 13; i++) factors[i] = i % 4 ? draw_in(-2, 2) : 0;
    for (int j = 0; j < 29; j++) spaced[2 * j] = numbers[j] = j % 3 ? draw_in(-2, 2) : 0;
    for (int t = F32; t <= F64; t++) {
        ck_assert(tensor_set_default_dtype((DType)t));
        Tensor *column = tensor_from_doubles(SHAPE(13, 1), factors);
        Tensor *batch = tensor_from_doubles(SHAPE(13, 1, 1), factors);
        Tensor *row = tensor_from_doubles(SHAPE(1, 29), numbers);
        Tensor *wide = tensor_from_doubles(SHAPE(29, 2), spaced);
        Tensor *apart = tensor_as_strided(wide, SHAPE(1, 29), (int64_t[]){58, 2}, 0);
        Tensor *all = tensor_matmul(column, row), *rows = tensor_matmul(batch, row);
        Tensor *others = tensor_matmul(batch, apart);
        const size_t bytes = 13 * 29 * (size_t)dtype_size((DType)t);
        ck_assert_mem_eq(rows->data, all->data, bytes);
        ck_assert_mem_eq(others->data, all->data, bytes);
        Tensor *const made[] = {column, batch, row, wide, apart, all, rows, others};
        for (int i = 0; i < COUNT(made); i++) tensor_release(made[i]);
    }
    ck_assert(tensor_set_default_dtype(F32));
}
END_TEST

/* ---- tiles of attention ------------------------------------------------------------------------
 */

enum { TILE_KEYS = 37, TILE_WIDTH = 32, TILE = TILE_KEYS * TILE_WIDTH };

typedef struct {
    double x[TILE], p[TILE], dp[TILE]; /* of either type: scores that become exp, weights, dP */
    double max[TILE_WIDTH], sum[TILE_WIDTH], factor[TILE_WIDTH], scale[TILE_WIDTH], dot[TILE_WIDTH];
    int64_t length[TILE_WIDTH];
} Tile;

/* The keys in two tiles, as the passes of attention take them; in to, the weights of the second. */
static void run_tiles(const Kernels *table, DType dtype, Tile *to, const Tile *from) {
    const size_t size = dtype_size(dtype), half = 20 * TILE_WIDTH * size;
    const int64_t w[] = {TILE_WIDTH};
    *to = *from;
    memcpy(to->p, to->x, sizeof to->x);
    for (int i = 0; i < 2; i++) {
        const int64_t n = i ? TILE_KEYS - 20 : 20;
        char *x = (char *)to->x + (i ? half : 0);
        table->tile_cut[dtype](n, (void *[]){x, to->length}, w, i ? 20 : 0);
        table->tile_softmax[dtype](n, (void *[]){x, to->max, to->sum, to->factor}, w, 0);
    }
    table->invert[dtype](TILE_WIDTH, (void *[]){to->scale, to->sum}, (int64_t[]){1, 1}, 0);
    table->tile_cut[dtype](TILE_KEYS, (void *[]){to->p, to->length}, w, 0);
    table->tile_weights[dtype](TILE_KEYS, (void *[]){to->p, to->max, to->scale}, w, 0);
    for (int i = 0; i < TILE; i++) {
        const double dot = load(dtype, to->dot, i % TILE_WIDTH);
        const double p = load(dtype, to->p, i), dp = load(dtype, to->dp, i);
        store(dtype, to->dot, i % TILE_WIDTH, dot + p * dp);
    }
    table->tile_dx[dtype](TILE_KEYS, (void *[]){to->dp, to->p, to->dot}, w, 0.5);
}

/* Query c of the tiles is the softmax of its scores, and so is what goes back. */
static void expect_query(DType dtype, const Tile *t, const Tile *from, int c) {
    double max = -(double)INFINITY, sum = 0, dot = 0, p[TILE_KEYS];
    const double eps = 200 * (dtype == F32 ? (double)FLT_EPSILON : DBL_EPSILON);
    const int n = (int)from->length[c] < TILE_KEYS ? (int)from->length[c] : TILE_KEYS;
    for (int j = 0; j < n; j++) max = fmax(max, load(dtype, from->x, j * TILE_WIDTH + c));
    for (int j = 0; j < n; j++) sum += p[j] = exp(load(dtype, from->x, j * TILE_WIDTH + c) - max);
    for (int j = 0; j < n; j++) dot += p[j] / sum * load(dtype, from->dp, j * TILE_WIDTH + c);
    ck_assert(load(dtype, t->max, c) == max);
    CHECK(fabs(load(dtype, t->sum, c) - sum) <= eps * sum);
    for (int j = 0; j < TILE_KEYS; j++) {
        const int i = j * TILE_WIDTH + c;
        const double want = j < n ? p[j] / sum : 0, dp = load(dtype, from->dp, i);
        CHECK(fabs(load(dtype, t->p, i) - want) <= eps * want);
        if (j >= n) CHECK(load(dtype, t->dp, i) == 0);
        else CHECK(fabs(load(dtype, t->dp, i) - 0.5 * want * (dp - dot)) <= eps);
    }
}

START_TEST(tiles_are_softmax) {
    const DType dtype = _i ? F64 : F32;
    static Tile from, first, t;
    for (int i = 0; i < TILE; i++) store(dtype, from.x, i, draw_in(-20, 20));
    for (int i = 0; i < TILE; i++) store(dtype, from.dp, i, draw_in(-2, 2));
    for (int c = 0; c < TILE_WIDTH; c++) {
        from.length[c] = c % 7 == 0 ? 1000 : c % 7 == 5 ? 0 : c + 2 * (c % 3);
        store(dtype, from.max, c, -(double)INFINITY);
    }
    for (int i = 0; i < table_count; i++) {
        run_tiles(tables[i], dtype, &t, &from);
        for (int c = 0; c < TILE_WIDTH; c++) expect_query(dtype, &t, &from, c);
        if (i == 1) first = t; /* the baseline may round differently */
        ck_assert(i < 2 || memcmp(&first, &t, sizeof t) == 0);
    }
}
END_TEST

/* Rows of attention, of any lengths: copied, turned, dropped where a query attends to nothing, and
 * multiplied. Only what belongs to the result is written. */
static void check_rows(const Kernels *table, DType dtype, int64_t rows, int64_t columns) {
    const int64_t wide = columns + 3, across = (rows + 15) / 16 * 16;
    const int64_t size = (int64_t)dtype_size(dtype);
    Matrix x = matrix_new(dtype, rows, wide, 0), y = matrix_new(dtype, rows, wide, 0);
    Matrix turned = matrix_new(dtype, columns, across, 0), scale = matrix_new(dtype, 1, rows, 0);
    Matrix sum = matrix_new(dtype, 1, rows, 0);
    const int64_t t[] = {wide, wide, 1}, dots[] = {1, wide, wide};
    matrix_draw(&x);
    for (int64_t r = 0; r < rows; r++) store(dtype, scale.data, r, r % 3 == 1 ? 0 : 2);
    table->copy_rows[dtype](rows, (void *[]){y.data, x.data}, t, (double)columns);
    for (int64_t r = 0; r < rows; r++)
        ck_assert_mem_eq((char *)y.data + r * wide * size, (char *)x.data + r * wide * size,
                         (size_t)(columns * size));
    table->attended_rows[dtype](rows, (void *[]){y.data, x.data, scale.data}, t, (double)columns);
    table->turn_rows[dtype](rows, (void *[]){turned.data, x.data}, (int64_t[]){across, wide},
                            (double)columns);
    table->row_dots[dtype](rows, (void *[]){sum.data, x.data, y.data}, dots, (double)columns);
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t i = 0; i < columns; i++) {
            const double value = load(dtype, x.data, r * wide + i);
            ck_assert(load(dtype, y.data, r * wide + i) == (r % 3 == 1 ? 0 : value));
            ck_assert(load(dtype, turned.data, i * across + r) == value);
            squares += r % 3 == 1 ? 0 : value * value;
        }
        CHECK(fabs(load(dtype, sum.data, r) - squares) <= 1e-6 * squares);
        const unsigned char *gap = (unsigned char *)y.data + (r * wide + columns) * size;
        for (int64_t b = 0; b < 3 * size; b++) CHECK(gap[b] == GAP);
    }
    for (int64_t i = 0; i < columns; i++)
        for (int64_t r = rows; r < across; r++)
            ck_assert(load(dtype, turned.data, i * across + r) == 0);
    expect_matrix_gaps(&turned), expect_matrix_gaps(&sum);
    free(x.data), free(y.data), free(turned.data), free(scale.data), free(sum.data);
}

START_TEST(rows_of_attention) {
    const int64_t sizes[] = {1, 4, 15, 16, 17, 20, 37, 64};
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < COUNT(sizes); i++)
            for (int j = 0; j < COUNT(sizes); j++)
                check_rows(tables[t], _i ? F64 : F32, sizes[i], sizes[j]);
}
END_TEST

/* The kernels of short rows do what those of one row do, bit for bit, also where weights are
 * denormal, in place, and with any distance from row to row. */
static void check_short_rows(const Kernels *k, DType dtype, int64_t rows, int64_t n) {
    const int64_t wide = n + rows % 3, t[] = {wide, n, wide}, size = (int64_t)dtype_size(dtype);
    const double depth = dtype == F32 ? 100 : 740; /* exp(-depth) is denormal */
    Matrix x = matrix_new(dtype, rows, n, 0), y = matrix_new(dtype, rows, wide, 0);
    Matrix dy = matrix_new(dtype, rows, wide, 0), product = matrix_new(dtype, rows, wide, 0);
    double row[SHORT], *want = row;
    matrix_draw(&dy);
    for (int64_t i = 0; i < rows * n; i++) store(dtype, x.data, i, draw_in(-depth, 3));
    k->softmax_short[dtype](rows, (void *[]){y.data, x.data}, t, (double)n);
    k->scale_rows[dtype](rows, (void *[]){product.data, y.data, dy.data},
                         (int64_t[]){wide, wide, wide}, (double)n);
    for (int64_t r = 0; r < rows; r++) {
        k->softmax[dtype](n, (void *[]){want, (char *)x.data + r * n * size}, MAP, 0);
        for (int64_t i = 0; i < n; i++) CHECK(same_bits(dtype, y.data, r * wide + i, want, i));
        const double factor = n ? load(dtype, dy.data, r * wide) : 0;
        k->value[ELEMENTWISE_scale][dtype](n, (void *[]){want, want}, MAP, factor);
        for (int64_t i = 0; i < n; i++) store(dtype, want, i, load(dtype, want, i) + 0); /* no -0 */
        for (int64_t i = 0; i < n; i++)
            CHECK(same_bits(dtype, product.data, r * wide + i, want, i));
    }
    memcpy(product.data, dy.data, (size_t)(rows * wide * size));
    k->softmax_short_dx[dtype](rows, (void *[]){dy.data, y.data, dy.data},
                               (int64_t[]){wide, wide, wide}, (double)n);
    for (int64_t r = 0; r < rows; r++) {
        void *of_row[] = {want, (char *)y.data + r * wide * size,
                          (char *)product.data + r * wide * size};
        k->softmax_dx[dtype](n, of_row, MAP, 0);
        for (int64_t i = 0; i < n; i++) CHECK(same_bits(dtype, dy.data, r * wide + i, want, i));
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t b = (r * wide + n) * size; b < (r + 1) * wide * size; b++)
            CHECK(((unsigned char *)y.data)[b] == GAP);
    free(x.data), free(y.data), free(dy.data), free(product.data);
}

START_TEST(short_rows_are_rows) {
    static const int64_t sizes[] = {0, 1, 3, 15, 16, 31, 32, 33, 49, SHORT};
    static const int64_t rows[] = {0, 1, 6, 9, 12, 15, 16, 17, 50};
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < COUNT(sizes); i++)
            for (int j = 0; j < COUNT(rows); j++)
                check_short_rows(tables[t], _i ? F64 : F32, rows[j], sizes[i]);
}
END_TEST

/* ---- additive attention ---------------------------------------------------------------------- */

enum { QUERIES = 3, KEYS = 5, WIDEST = 100 };

/* As doubles: the operands, the scores, and the three gradients, to which the kernel adds. */
typedef struct {
    double q[QUERIES * WIDEST], k[KEYS * WIDEST], w[WIDEST], dy[QUERIES * KEYS], y[QUERIES * KEYS];
    double dq[QUERIES * WIDEST], dk[KEYS * WIDEST], dw[WIDEST];
} Additive;

/* Whether query i's score of key j is asked for. */
static bool is_scored(int i, int j) { return (3 * i + j) % 4 != 1; }

/* The gradients twice: the second time adds. The columns in two parts, as two threads take them. */
static void run_additive(const Kernels *table, DType dtype, int64_t hidden, Additive *x) {
    const size_t size = dtype_size(dtype);
    for (int i = 0; i < QUERIES * KEYS; i++) store(dtype, x->y, i, is_scored(i / KEYS, i % KEYS));
    const int64_t sizes[] = {QUERIES, KEYS, hidden}, t[] = {1, 0, hidden, 0};
    for (int64_t i = 0; i < QUERIES; i++)
        table->additive[dtype](KEYS,
                               (void *[]){(char *)x->y + (size_t)(i * KEYS) * size,
                                          (char *)x->q + (size_t)(i * hidden) * size, x->k, x->w},
                               t, (double)hidden);
    for (int part = 0; part < 4; part++) {
        const int64_t from = part % 2 ? hidden / 2 : 0, n = part % 2 ? hidden - from : hidden / 2;
        void *data[] = {x->dk, x->dq, x->dw, x->q, x->k, x->w, x->dy, (void *)(uintptr_t)sizes};
        for (int i = 0; i < 6; i++) data[i] = (char *)data[i] + (size_t)from * size;
        table->additive_dx[dtype](n, data, (int64_t[]){1, 1, 1, 1, 1, 1, 0, 0}, 0);
    }
}

static bool as_wanted(double got, double want, double eps) {
    return got == want || fabs(got - want) <= eps || (isnan(got) && isnan(want));
}

static void expect_additive(DType dtype, int64_t hidden, const Additive *x) {
    const double eps = 1e3 * (dtype == F32 ? (double)FLT_EPSILON : DBL_EPSILON);
    double dq[QUERIES * WIDEST] = {0}, dk[KEYS * WIDEST] = {0}, dw[WIDEST] = {0};
    for (int i = 0; i < QUERIES; i++)
        for (int j = 0; j < KEYS; j++) {
            double y = 0, dy = load(dtype, x->dy, i * KEYS + j);
            for (int64_t h = 0; h < hidden; h++) {
                const double w = load(dtype, x->w, h);
                const double f =
                    tanh(load(dtype, x->q, i * hidden + h) + load(dtype, x->k, j * hidden + h));
                y += w * f;
                dq[i * hidden + h] += 2 * dy * w * (1 - f * f);
                dk[j * hidden + h] += 2 * dy * w * (1 - f * f);
                dw[h] += 2 * dy * f;
            }
            CHECK(as_wanted(load(dtype, x->y, i * KEYS + j), is_scored(i, j) ? y : 0, eps));
        }
    for (int64_t h = 0; h < hidden; h++) CHECK(as_wanted(load(dtype, x->dw, h), dw[h], eps));
    for (int64_t i = 0; i < QUERIES * hidden; i++)
        CHECK(as_wanted(load(dtype, x->dq, i), dq[i], eps));
    for (int64_t i = 0; i < KEYS * hidden; i++) CHECK(as_wanted(load(dtype, x->dk, i), dk[i], eps));
}

/* Against its simple twin; AVX2 and AVX-512 give the same bits, and nothing else is written. */
START_TEST(additive_scores_and_their_gradients) {
    static const int64_t hidden[] = {0, 1, 7, 16, 33, 64, WIDEST};
    const DType dtype = _i ? F64 : F32;
    for (int h = 0; h < COUNT(hidden); h++) {
        static Additive from, first, x;
        memset(&from, 0, sizeof from);
        for (int64_t i = 0; i < QUERIES * hidden[h]; i++) store(dtype, from.q, i, draw_in(-2, 2));
        for (int64_t i = 0; i < KEYS * hidden[h]; i++) store(dtype, from.k, i, draw_in(-2, 2));
        for (int64_t i = 0; i < hidden[h]; i++) store(dtype, from.w, i, draw_in(-1, 1));
        for (int i = 0; i < QUERIES * KEYS; i++) store(dtype, from.dy, i, draw_in(-1, 1));
        for (int i = 0; i < table_count; i++) {
            x = from;
            run_additive(tables[i], dtype, hidden[h], &x);
            expect_additive(dtype, hidden[h], &x);
            ck_assert(hidden[h] == WIDEST || load(dtype, x.dw, hidden[h]) == 0);
            if (i == 1) first = x; /* the baseline may round differently */
            ck_assert(i < 2 || memcmp(&first, &x, sizeof x) == 0);
        }
    }
}
END_TEST

/* As PyTorch's: a dy of 0, which a mask leaves of key 3, hides no NaN, nor an infinity that becomes
 * one, be it in q, k or w, or against another one in q and k. */
START_TEST(additive_gradients_hide_no_nan) {
    const DType dtype = _i % 2 ? F64 : F32;
    const double odd[] = {0, (double)NAN, (double)INFINITY};
    static Additive from, x;
    for (int i = 0; i < table_count * COUNT(odd); i++) {
        memset(&from, 0, sizeof from);
        for (int j = 0; j < QUERIES * WIDEST; j++) store(dtype, from.q, j, draw_in(-2, 2));
        for (int j = 0; j < KEYS * WIDEST; j++) store(dtype, from.k, j, draw_in(-2, 2));
        for (int j = 0; j < WIDEST; j++) store(dtype, from.w, j, draw_in(-1, 1));
        for (int j = 0; j < QUERIES * KEYS; j++)
            store(dtype, from.dy, j, j % KEYS == 3 ? 0 : draw_in(-1, 1));
        void *const where[] = {(char *)from.k + 3 * WIDEST * dtype_size(dtype), from.q, from.w};
        for (int64_t j = 0; j < WIDEST; j += 7) {
            store(dtype, where[_i / 2], j, odd[i % COUNT(odd)]);
            if (_i / 2 == 0 && j % 2) store(dtype, from.q, j, -odd[i % COUNT(odd)]);
        }
        x = from;
        run_additive(tables[i / COUNT(odd)], dtype, WIDEST, &x);
        expect_additive(dtype, WIDEST, &x);
    }
}
END_TEST

/* ---- Box and Muller -------------------------------------------------------------------------- */

START_TEST(box_muller_turns_uniforms_into_normals) {
    enum { N = 160 };
    for (int t = F32; t <= F64; t++) {
        const DType dtype = (DType)t;
        double u[N] = {0}, first[N] = {0}, x[N] = {0};
        for (int i = 0; i < N; i++) store(dtype, u, i, draw_in(0, 1));
        for (int k = 0; k < table_count; k++) {
            memcpy(x, u, sizeof x);
            tables[k]->box_muller[dtype](N, (void *[]){x, &(double){3}}, NULL, 0.5);
            if (k == 0) memcpy(first, x, sizeof x);
            ck_assert_mem_eq(first, x, N * dtype_size(dtype));
        }
        for (int i = 0; i < N; i++) {
            int pair = i / 16 * 16 + i % 8;
            double r = sqrt(-2 * log1p(-load(dtype, u, pair)));
            double theta = 8 * atan(1) * load(dtype, u, pair + 8);
            double want = 3 + 0.5 * r * (i % 16 < 8 ? cos(theta) : sin(theta));
            CHECK(fabs(load(dtype, x, i) - want) <= (dtype == F32 ? 4e-6 : 1e-14));
        }
    }
}
END_TEST

/* ---- loops: tensors of any strides ----------------------------------------------------------- */

static Shape draw_shape(int most_dims) {
    Shape shape = {(int)draw((uint32_t)most_dims + 1), {0}};
    for (int d = 0; d < shape.ndim; d++) shape.dim[d] = draw(12) == 0 ? 0 : 1 + draw(5);
    return shape;
}

/* A view of that shape into a larger storage: axes in any order in memory, steps over other
 * elements, some backwards, and, where repeats may be, some of stride 0 or overlapping. */
static Tensor *draw_view(Shape shape, DType dtype, bool repeats) {
    int order[TENSOR_MAX_DIMS];
    int64_t stride[TENSOR_MAX_DIMS] = {0}, step = 1 + draw(4) / 3, low = 0, high = 0;
    for (int d = 0; d < shape.ndim; d++) order[d] = d;
    for (int d = shape.ndim - 1; d > 0 && draw(3); d--) {
        int other = (int)draw((uint32_t)d + 1), kept = order[d];
        order[d] = order[other], order[other] = kept;
    }
    for (int i = shape.ndim - 1; i >= 0; i--) {
        const int d = order[i];
        stride[d] = repeats && draw(6) == 0 ? (int64_t)draw(2) : draw(6) == 0 ? -step : step;
        step *= (shape.dim[d] > 1 ? shape.dim[d] : 1) + (draw(5) == 0);
        if (shape.dim[d] == 0) continue;
        int64_t reach = (shape.dim[d] - 1) * stride[d];
        *(reach < 0 ? &low : &high) += reach;
    }
    Tensor *whole = tensor_make(SHAPE(high - low + 1 + draw(3)), dtype);
    for (int64_t i = 0; i < tensor_numel(whole); i++)
        store(dtype, whole->data, i, dtype == I64 ? draw(100) : draw_in(-2, 2));
    Tensor *view = tensor_as_strided(whole, shape, stride, -low);
    EXPECT(view != NULL, "%s", tensor_error());
    tensor_release(whole);
    return view;
}

/* A shape that broadcasts to this one: fewer dimensions, or some of size 1. */
static Shape draw_narrower(Shape shape) {
    int drop = shape.ndim && draw(3) == 0 ? (int)draw((uint32_t)shape.ndim + 1) : 0;
    Shape narrower = {shape.ndim - drop, {0}};
    for (int d = 0; d < narrower.ndim; d++)
        narrower.dim[d] = draw(3) == 0 ? 1 : shape.dim[d + drop];
    return narrower;
}

/* The index of the i-th element in row-major order. */
static void index_of(Shape shape, int64_t i, int64_t *index) {
    for (int d = shape.ndim - 1; d >= 0; d--) {
        index[d] = i % shape.dim[d];
        i /= shape.dim[d];
    }
}

/* x at an index of a shape that x is broadcast to: aligned at the right, sizes of 1 repeat. */
static int64_t broadcast_at(const Tensor *x, int ndim, const int64_t *index) {
    int64_t offset = 0;
    for (int d = 0; d < x->shape.ndim; d++)
        if (x->shape.dim[d] != 1) offset += index[d + ndim - x->shape.ndim] * x->stride[d];
    return offset;
}

static double value_at(const Tensor *x, Shape shape, int64_t i) {
    int64_t index[TENSOR_MAX_DIMS];
    index_of(shape, i, index);
    return load(x->dtype, x->data, broadcast_at(x, shape.ndim, index));
}

static double value_of(const Tensor *x, int64_t i) { return value_at(x, x->shape, i); }

/* Every loop test draws this many cases. */
enum { CASES = 300 };

/* y = a + 2 b, y a view without repeats: the whole storage must look as if written one by one. */
START_TEST(elements_find_their_partners) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        Shape shape = draw_shape(6);
        Tensor *y = draw_view(shape, dtype, false);
        Tensor *a = draw_view(draw_narrower(shape), dtype, true);
        Tensor *b = draw_view(draw_narrower(shape), dtype, true);
        const size_t size = (size_t)y->storage->size;
        char *want = malloc(size + 1);
        memcpy(want, y->storage->bytes, size);
        const int64_t start =
            ((char *)y->data - (char *)y->storage->bytes) / (int64_t)dtype_size(dtype);
        for (int64_t i = 0; i < tensor_numel(y); i++) {
            int64_t index[TENSOR_MAX_DIMS];
            index_of(shape, i, index);
            int64_t place = start + broadcast_at(y, shape.ndim, index);
            double sum = value_at(a, shape, i) + 2 * value_at(b, shape, i);
            store(dtype, want, place, dtype == F32 ? (double)(float)sum : sum);
        }
        loop_elements(kernels()->add_scaled[dtype], 3, (const Tensor *[]){y, a, b}, 2);
        EXPECT(memcmp(want, y->storage->bytes, size) == 0, "case %d: %s", c,
               tensor_shape_text(shape));
        free(want);
        tensor_release(y);
        tensor_release(a);
        tensor_release(b);
    }
}
END_TEST

/* Two shapes that broadcast to a third: one of every pair of sizes may be 1. */
START_TEST(map_elements_broadcasts) {
    for (int c = 0; c < CASES; c++) {
        Shape shape = draw_shape(6);
        Tensor *a = draw_view(draw_narrower(shape), F64, true);
        Tensor *b = draw_view(draw_narrower(shape), F64, true);
        Shape both;
        ck_assert(shape_broadcast(a->shape, b->shape, &both));
        Tensor *y = map_elements(kernels()->value[ELEMENTWISE_sub][F64], both, F64, 2,
                                 (const Tensor *[]){a, b}, 0);
        ck_assert(y && shape_equal(y->shape, both) && tensor_is_contiguous(y));
        for (int64_t i = 0; i < tensor_numel(y); i++)
            CHECK(value_of(y, i) == value_at(a, both, i) - value_at(b, both, i));
        Tensor *minus = map_elements(kernels()->value[ELEMENTWISE_neg][F64], a->shape, F64, 1,
                                     (const Tensor *[]){a}, 0);
        for (int64_t i = 0; i < tensor_numel(a); i++) CHECK(value_of(minus, i) == -value_of(a, i));
        tensor_release(minus);
        tensor_release(y);
        tensor_release(a);
        tensor_release(b);
    }
}
END_TEST

START_TEST(broadcasting_is_numpys) {
    static const struct {
        Shape a, b;
        bool fits;
        Shape both;
    } cases[] = {
        {{0, {0}}, {0, {0}}, true, {0, {0}}},
        {{0, {0}}, {2, {2, 3}}, true, {2, {2, 3}}},
        {{1, {3}}, {2, {2, 3}}, true, {2, {2, 3}}},
        {{2, {2, 1}}, {1, {3}}, true, {2, {2, 3}}},
        {{3, {4, 1, 3}}, {2, {5, 1}}, true, {3, {4, 5, 3}}},
        {{1, {1}}, {1, {0}}, true, {1, {0}}},
        {{2, {0, 1}}, {2, {1, 3}}, true, {2, {0, 3}}},
        {{1, {2}}, {1, {3}}, false, {0, {0}}},
        {{1, {2}}, {2, {2, 3}}, false, {0, {0}}},
        {{1, {0}}, {1, {3}}, false, {0, {0}}},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Shape both;
        ck_assert_int_eq(shape_broadcast(cases[i].a, cases[i].b, &both), cases[i].fits);
        if (cases[i].fits) CHECK(shape_equal(both, cases[i].both));
        ck_assert_int_eq(shape_broadcast(cases[i].b, cases[i].a, &both), cases[i].fits);
        if (cases[i].fits) CHECK(shape_equal(both, cases[i].both));
    }
}
END_TEST

/* A row kernel sees rows of the last dimension, and gives a strided row the bits of a dense one. */
START_TEST(rows_are_whole) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        Shape shape = draw_shape(5);
        Tensor *x = draw_view(shape, dtype, true), *y = draw_view(shape, dtype, false);
        Tensor *dense = tensor_clone(x), *want = tensor_clone(x);
        loop_rows(kernels()->softmax[dtype], 2, (const Tensor *[]){y, x}, 0);
        loop_rows(kernels()->softmax[dtype], 2, (const Tensor *[]){want, dense}, 0);
        const int64_t n = shape.ndim ? shape.dim[shape.ndim - 1] : 1;
        for (int64_t i = 0; i < tensor_numel(y); i++) {
            double sum = 0;
            for (int64_t j = i / n * n; j < i / n * n + n; j++) sum += exp(value_of(x, j));
            expect_near(dtype, value_of(y, i), exp(value_of(x, i)) / sum, "a row's softmax");
            CHECK(value_of(y, i) == value_of(want, i));
        }
        Tensor *all[] = {x, y, dense, want};
        for (int i = 0; i < COUNT(all); i++) tensor_release(all[i]);
    }
}
END_TEST

/* Sums along drawn dimensions of a drawn view, and the same bits from a contiguous copy. */
static void expect_sums(const Tensor *x, const bool *dims) {
    Tensor *dense = tensor_clone(x), *y = tensor_sum_dims(x, dims);
    Tensor *again = tensor_sum_dims(dense, dims);
    ck_assert(y && again && y->shape.ndim == x->shape.ndim);
    double *sums = calloc((size_t)tensor_numel(y) + 1, sizeof *sums);
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        int64_t index[TENSOR_MAX_DIMS], to = 0;
        index_of(x->shape, i, index);
        for (int d = 0; d < x->shape.ndim; d++)
            to = to * y->shape.dim[d] + (dims[d] ? 0 : index[d]);
        sums[to] += value_of(x, i);
    }
    for (int d = 0; d < x->shape.ndim; d++)
        ck_assert_int_eq(y->shape.dim[d], dims[d] ? 1 : x->shape.dim[d]);
    for (int64_t i = 0; i < tensor_numel(y); i++) {
        CHECK(fabs(value_of(y, i) - sums[i]) <= (x->dtype == F32 ? 1e-3 : 1e-12));
        CHECK(value_of(y, i) == value_of(again, i));
    }
    free(sums);
    tensor_release(dense);
    tensor_release(y);
    tensor_release(again);
}

/* The columns that stay together are neighbours, but not the last ones: a step back lies between.
 */
START_TEST(sums_of_columns_that_run_backwards) {
    Tensor *x = tensor_arange(0, 60, 1);
    const int64_t stride[TENSOR_MAX_DIMS] = {1, -6, 2};
    Tensor *view = view_make(x, SHAPE(3, 5, 3), stride, (float *)x->data + 24);
    expect_sums(view, (const bool[TENSOR_MAX_DIMS]){false, false, true});
    expect_sums(view, (const bool[TENSOR_MAX_DIMS]){false, true, false});
    expect_sums(view, (const bool[TENSOR_MAX_DIMS]){true, false, false});
    tensor_release(x);
    tensor_release(view);
}
END_TEST

START_TEST(sums_along_any_dimensions) {
    for (int c = 0; c < CASES; c++) {
        Tensor *x = draw_view(draw_shape(6), draw(2) ? F32 : F64, true);
        bool dims[TENSOR_MAX_DIMS];
        for (int d = 0; d < TENSOR_MAX_DIMS; d++) dims[d] = draw(2);
        expect_sums(x, dims);
        tensor_release(x);
    }
}
END_TEST

START_TEST(sums_undo_broadcasting) {
    for (int c = 0; c < CASES; c++) {
        Tensor *x = draw_view(draw_shape(6), F64, true);
        Shape shape = draw_narrower(x->shape);
        Tensor *y = tensor_sum_to(x, shape);
        ck_assert(y && shape_equal(y->shape, shape) && tensor_is_contiguous(y));
        double *sums = calloc((size_t)tensor_numel(y) + 1, sizeof *sums);
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            int64_t index[TENSOR_MAX_DIMS];
            index_of(x->shape, i, index);
            sums[broadcast_at(y, x->shape.ndim, index)] += value_of(x, i);
        }
        for (int64_t i = 0; i < tensor_numel(y); i++)
            CHECK(fabs(value_of(y, i) - sums[i]) <= 1e-11);
        free(sums);
        tensor_release(y);
        tensor_release(x);
    }
}
END_TEST

START_TEST(reductions_along_one_dimension) {
    for (int c = 0; c < CASES; c++) {
        Shape shape = draw_shape(5);
        if (shape.ndim == 0) continue;
        Tensor *x = draw_view(shape, F64, true);
        int dim = (int)draw((uint32_t)shape.ndim);
        if (shape.dim[dim] == 0) shape.dim[dim] = 1; /* what a maximum of nothing is, ag_ decides */
        Tensor *y = x->shape.dim[dim] ? tensor_reduce(x, kernels()->argmax[F64], dim, I64) : NULL;
        for (int64_t i = 0; y && i < tensor_numel(y); i++) {
            int64_t index[TENSOR_MAX_DIMS], best = ((int64_t *)y->data)[i];
            index_of(y->shape, i, index);
            index[dim] = best;
            double largest = load(F64, x->data, broadcast_at(x, shape.ndim, index));
            for (index[dim] = 0; index[dim] < shape.dim[dim]; index[dim]++) {
                double other = load(F64, x->data, broadcast_at(x, shape.ndim, index));
                CHECK(index[dim] < best ? other < largest : other <= largest);
            }
        }
        tensor_release(y);
        tensor_release(x);
    }
}
END_TEST

/* c = (..., M, K) (..., K, N): batches broadcast; matrices of any strides. */
static void expect_matmul(const Tensor *c, const Tensor *start, const Tensor *a, const Tensor *b) {
    ck_assert_ptr_nonnull(c);
    const int na = a->shape.ndim, nb = b->shape.ndim, nc = c->shape.ndim;
    const int64_t k = a->shape.dim[na - 1];
    for (int64_t i = 0; i < tensor_numel(c); i++) {
        int64_t index[TENSOR_MAX_DIMS];
        index_of(c->shape, i, index);
        const int64_t row = index[nc - 2], column = index[nc - 1];
        Tensor batch_a = *a, batch_b = *b;
        batch_a.shape.ndim = na - 2;
        batch_b.shape.ndim = nb - 2;
        int64_t at_a = broadcast_at(&batch_a, nc - 2, index) + row * a->stride[na - 2];
        int64_t at_b = broadcast_at(&batch_b, nc - 2, index) + column * b->stride[nb - 1];
        double sum = start ? load(a->dtype, start->data, broadcast_at(start, nc, index)) : 0;
        for (int64_t p = 0; p < k; p++)
            sum += load(a->dtype, a->data, at_a + p * a->stride[na - 1]) *
                   load(b->dtype, b->data, at_b + p * b->stride[nb - 2]);
        expect_near(a->dtype, value_of(c, i), sum, "matmul");
    }
}

START_TEST(matmul_of_batches) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        Shape batch = draw_shape(3), sa = draw_narrower(batch), sb = draw_narrower(batch);
        const int64_t m = draw(6), n = draw(6), k = draw(6);
        sa.dim[sa.ndim++] = m, sa.dim[sa.ndim++] = k;
        sb.dim[sb.ndim++] = k, sb.dim[sb.ndim++] = n;
        Tensor *a = draw_view(sa, dtype, true), *b = draw_view(sb, dtype, true);
        Tensor *c0 = tensor_matmul(a, b);
        expect_matmul(c0, NULL, a, b);
        tensor_release(c0), tensor_release(a), tensor_release(b);
    }
}
END_TEST

/* One matrix each, with a start of any strides, in a result of another shape. */
START_TEST(products_of_matrices) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        const int64_t m = draw(6), n = draw(6), k = draw(6);
        Tensor *a = draw_view(SHAPE(m, k), dtype, true), *b = draw_view(SHAPE(k, n), dtype, true);
        Tensor *start = draw(2) ? draw_view(SHAPE(m, n), dtype, true) : NULL;
        MatmulShape s = {.m = m, .n = n, .k = k, .start = start ? start->data : NULL};
        memcpy(s.a_stride, a->stride, sizeof s.a_stride);
        memcpy(s.b_stride, b->stride, sizeof s.b_stride);
        if (start) memcpy(s.start_stride, start->stride, sizeof s.start_stride);
        Tensor *c0 = multiply_matrices(SHAPE(1, m * n), dtype, &s, a->data, b->data);
        ck_assert_ptr_nonnull(c0);
        ck_assert(c0->shape.ndim == 2 && c0->shape.dim[1] == m * n);
        Tensor *matrix = view_reshape(c0, SHAPE(m, n));
        expect_matmul(matrix, start, a, b);
        tensor_release(c0), tensor_release(matrix), tensor_release(start);
        tensor_release(a), tensor_release(b);
    }
}
END_TEST

/* ---- views ----------------------------------------------------------------------------------- */

/* The same number of elements, cut anew: the primes of the sizes are dealt to new dimensions. */
static Shape draw_cut(int64_t numel) {
    Shape shape = {1 + (int)draw(5), {1, 1, 1, 1, 1}};
    for (int64_t prime = 2; numel > 1; prime++)
        for (; numel % prime == 0; numel /= prime) shape.dim[draw((uint32_t)shape.ndim)] *= prime;
    if (numel == 0) shape.dim[draw((uint32_t)shape.ndim)] = 0;
    return shape;
}

/* Does any choice of strides show x's elements in that shape? The first step along each dimension
 * determines it. */
static bool view_exists(const Tensor *x, Shape shape) {
    int64_t offset[4096], stride[TENSOR_MAX_DIMS] = {0}, step = 1;
    const int64_t n = tensor_numel(x);
    ck_assert_int_le(n, 4096);
    for (int64_t i = 0; i < n; i++) {
        int64_t index[TENSOR_MAX_DIMS];
        index_of(x->shape, i, index);
        offset[i] = broadcast_at(x, x->shape.ndim, index);
    }
    for (int d = shape.ndim - 1; d >= 0; step *= shape.dim[d--])
        if (shape.dim[d] > 1) stride[d] = offset[step];
    for (int64_t i = 0; i < n; i++) {
        int64_t index[TENSOR_MAX_DIMS], there = 0;
        index_of(shape, i, index);
        for (int d = 0; d < shape.ndim; d++) there += index[d] * stride[d];
        if (there != offset[i]) return false;
    }
    return true;
}

/* A view where there is one, with the same elements at the same places; NULL where there is none.
 */
START_TEST(reshape_views_wherever_it_can) {
    int views = 0, copies = 0;
    for (int c = 0; c < 4 * CASES; c++) {
        Tensor *x = draw_view(draw_shape(5), I64, true);
        Shape shape = draw_cut(tensor_numel(x));
        Tensor *view = view_reshape(x, shape), *y = tensor_reshape(x, shape);
        ck_assert_ptr_null(tensor_error());
        EXPECT((view != NULL) == view_exists(x, shape), "%s with strides %s to %s",
               tensor_shape_text(x->shape), stride_text(x), tensor_shape_text(shape));
        views += view != NULL, copies += view == NULL;
        CHECK(shape_equal(y->shape, shape));
        ck_assert_int_eq(y->storage == x->storage, view != NULL);
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            CHECK(value_of(y, i) == value_of(x, i));
            if (view) CHECK(value_of(view, i) == value_of(x, i));
        }
        tensor_release(view);
        tensor_release(y);
        tensor_release(x);
    }
    ck_assert_int_gt(views, CASES / 4); /* both happened often */
    ck_assert_int_gt(copies, CASES / 4);
}
END_TEST

/* permute, transpose, narrow and expand against the index arithmetic that they stand for. */
START_TEST(views_are_index_arithmetic) {
    for (int c = 0; c < CASES; c++) {
        Shape shape = draw_shape(4), wide = shape;
        shape.dim[shape.ndim++] = 1 + draw(4);
        wide = shape;
        Tensor *x = draw_view(shape, I64, true);
        const int n = shape.ndim, d0 = (int)draw((uint32_t)n), d1 = (int)draw((uint32_t)n);
        const int64_t size = shape.dim[d0], start = draw((uint32_t)size + 1);
        const int64_t length = draw((uint32_t)(size - start) + 1);
        Tensor *turned = view_transpose(x, d0, d1), *part = view_narrow(x, d0, start, length);
        wide.dim[wide.ndim++] = 3;
        Shape column = shape;
        column.dim[column.ndim++] = 1;
        Tensor *upright = view_reshape(x, column), *whole = NULL;
        if (upright) whole = view_expand(upright, wide);
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            int64_t index[TENSOR_MAX_DIMS];
            index_of(shape, i, index);
            double want = value_of(x, i);
            if (index[d0] >= start && index[d0] < start + length) {
                index[d0] -= start;
                CHECK(load(I64, part->data, broadcast_at(part, n, index)) == want);
                index[d0] += start;
            }
            for (int64_t j = 0; whole && j < 3; j++) CHECK(value_of(whole, 3 * i + j) == want);
            int64_t kept = index[d0];
            index[d0] = index[d1], index[d1] = kept;
            CHECK(load(I64, turned->data, broadcast_at(turned, n, index)) == want);
        }
        Tensor *all[] = {x, turned, part, upright, whole};
        for (int i = 0; i < COUNT(all); i++) tensor_release(all[i]);
    }
}
END_TEST

/* ---- which table a program gets -------------------------------------------------------------- */

static const char *program;

/* What a run of this program with TAPEHEAD_ISA=wanted says: the table that it chose, and its best.
 * EMULATOR runs programs of another machine. */
static void ask(const char *wanted, char *chosen, char *best) {
    char command[1000];
    snprintf(command, sizeof command, "TAPEHEAD_ISA=%s $EMULATOR '%s' --which-kernels", wanted,
             program);
    FILE *answer = popen(command, "r");
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(fscanf(answer, "%19s %19s", chosen, best), 2);
    ck_assert_int_eq(pclose(answer), 0);
}

/* One that the CPU cannot run is replaced by the best that it can; so is a name that means nothing.
 */
START_TEST(the_environment_chooses_the_table) {
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    char chosen[20], best[20];
    ask("", chosen, best);
    ck_assert_str_eq(chosen, best);
    ask("nonsense", chosen, best);
    ck_assert_str_eq(chosen, best);
    int most = 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(best, names[i]) == 0) most = i;
    for (int i = 0; i < 3; i++) {
        ask(names[i], chosen, best);
        ck_assert_str_eq(chosen, names[i < most ? i : most]);
    }
}
END_TEST

/* ---- the suite ------------------------------------------------------------------------------- */

static TCase *add_case(Suite *suite, const char *name) {
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    return tcase;
}

static Suite *kernels_suite(void) {
    Suite *suite = suite_create("kernels");
    TCase *bits = add_case(suite, "bits");
    tcase_add_test(bits, the_list_is_complete_and_the_tables_agree_on_it);
    tcase_add_loop_test(bits, every_elementwise_kernel_gives_the_same_bits, 0, 8);
    tcase_add_loop_test(bits, every_row_kernel_gives_the_same_bits, 0, 8);
    tcase_add_test(bits, long_rows_give_the_same_bits);
    tcase_add_test(bits, an_output_may_be_an_input);
    tcase_add_test(bits, kernels_that_write_elsewhere_give_the_same_bits);
    tcase_add_test(bits, the_environment_chooses_the_table);
    TCase *values = add_case(suite, "values");
    tcase_add_test(values, elementwise_kernels_follow_the_textbook);
    tcase_add_test(values, comparisons_tell_all_numbers_apart);
    tcase_add_test(values, nan_is_handed_on_or_not_touched);
    tcase_add_loop_test(values, functions_are_good_to_an_ulp_or_two_on_every_exponent, 0,
                        COUNT(FUNCTIONS));
    tcase_add_loop_test(values, functions_are_good_to_an_ulp_or_two_in_between, 0,
                        COUNT(FUNCTIONS));
    tcase_add_test(values, exp_at_its_ends);
    tcase_add_test(values, a_weight_is_never_denormal);
    tcase_add_test(values, row_kernels_follow_the_textbook);
    tcase_add_test(values, rows_with_nan_and_infinity);
    tcase_add_test(values, masked_elements_are_not_read);
    tcase_add_test(values, a_row_with_nothing_to_attend_to_is_zero);
    tcase_add_test(values, a_large_mean_costs_no_digits);
    tcase_add_test(values, a_constant_row_is_normalised_to_zero);
    tcase_add_test(values, a_variance_that_overflows_is_infinite);
    tcase_add_test(values, columns_are_summed_as_rows_are);
    tcase_add_test(values, long_sums_are_accurate);
    tcase_add_test(values, box_muller_turns_uniforms_into_normals);
    tcase_add_test(values, rows_are_sorted_and_equals_keep_their_order);
    tcase_add_test(values, what_a_mask_takes_it_puts_back);
    tcase_add_test(values, far_pairs_are_counted);
    TCase *products = add_case(suite, "products");
    tcase_add_loop_test(products, products_of_every_shape_and_stride, 0, 2);
    tcase_add_loop_test(products, products_of_every_size, 0, 2);
    tcase_add_loop_test(products, products_leave_what_lies_between_rows, 0, 2);
    tcase_add_loop_test(products, larger_products, 0, 2);
    tcase_add_loop_test(products, products_of_what_lies_far_apart, 0, 4);
    tcase_add_loop_test(products, products_of_more_than_a_panel, 0, 4);
    tcase_add_test(products, a_slice_needs_no_more_room);
    tcase_add_loop_test(products, products_are_added, 0, 2);
    tcase_add_loop_test(products, tiles_are_softmax, 0, 2);
    tcase_add_loop_test(products, rows_of_attention, 0, 2);
    tcase_add_loop_test(products, short_rows_are_rows, 0, 2);
    tcase_add_loop_test(products, additive_scores_and_their_gradients, 0, 2);
    tcase_add_loop_test(products, additive_gradients_hide_no_nan, 0, 6);
    tcase_add_test(products, products_skip_no_zero);
    tcase_add_test(products, rows_of_a_product_stand_alone);
    tcase_add_test(products, a_number_times_a_row_is_a_row_of_the_product);
    TCase *loops = add_case(suite, "loops");
    tcase_add_test(loops, elements_find_their_partners);
    tcase_add_test(loops, map_elements_broadcasts);
    tcase_add_test(loops, broadcasting_is_numpys);
    tcase_add_test(loops, rows_are_whole);
    tcase_add_test(loops, sums_along_any_dimensions);
    tcase_add_test(loops, sums_of_columns_that_run_backwards);
    tcase_add_test(loops, sums_undo_broadcasting);
    tcase_add_test(loops, reductions_along_one_dimension);
    tcase_add_test(loops, matmul_of_batches);
    tcase_add_test(loops, products_of_matrices);
    tcase_add_test(loops, reshape_views_wherever_it_can);
    tcase_add_test(loops, views_are_index_arithmetic);
    return suite;
}

int main(int argc, char **argv) {
    find_tables();
    if (argc > 1) { /* the question of ask() */
        printf("%s %s\n", kernels()->name, tables[table_count - 1]->name);
        return EXIT_SUCCESS;
    }
    program = argv[0];
    list_elementwise();
    list_the_rest();
    list_placed();
    return run_suite(kernels_suite());
}
