/* test_kernels.c - does every fast kernel compute the same as the plain kernel?
 *
 * The plain kernels are the formulas; tests/suites/library/test_golden.c compares them with
 * PyTorch. Here each fast kernel and its plain kernel get the same random operands: of many sizes,
 * with special values, also in place. The results must agree up to rounding. Instruction sets that
 * fuse a product and a sum must give the same bits. test_products.c tests the products. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "common_kernels.h"
#include "../../../tensor/more/attention_heads.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static void setup(void) {
    tensor_set_default_dtype(F32);
    draws_begin();
}

/* ---- the table of kernels -------------------------------------------------------------------- */

/* operands: a letter for each. f, b: a row of floats or bools; F, D: a float or a double for the
 * row; L: a length, from 0 to more than n; T: a position or -1; n: a row of floats, or NULL; m: a
 * row of bools, or NULL. The first `written` operands are results. */
typedef struct {
    const char *name;
    size_t field;
    const char *operands;
    int written;
    double s, low, high; /* the scalar operand, and the bounds of the random operands */
} Entry;

static const Entry entries[] = {
#define UNARY(name, formula, gradient, source, types, torch, y, dx, reads, low, high)              \
    {#name, CORE_FIELD(value[ELEMENTWISE_##name]), "ff", 1, 1.7, low, high},                       \
        {#name " vjp", CORE_FIELD(vjp[ELEMENTWISE_##name][0]), "ffff", 1, 1.7, low, high},
#define BINARY(name, formula, gradient, source, types, torch, y, da, db, reads, low, high)         \
    {#name, CORE_FIELD(value[ELEMENTWISE_##name]), "fff", 1, 0, low, high},                        \
        {#name " da", CORE_FIELD(vjp[ELEMENTWISE_##name][0]), "fffff", 1, 0, low, high},           \
        {#name " db", CORE_FIELD(vjp[ELEMENTWISE_##name][1]), "fffff", 1, 0, low, high},
#define COMPARE(name, ...)
#include "../../../tensor/kernels/elementwise.def"
    {"where", CORE_FIELD(where), "fbff", 1, 0, -3, 3},
    {"dropout", CORE_FIELD(dropout), "ffb", 1, 0.7, -3, 3},
    {"add_scaled", CORE_FIELD(add_scaled), "fff", 1, 1.7, -3, 3},
    {"sum", CORE_FIELD(sum), "Ff", 1, 0, -3, 3},
    {"softmax", CORE_FIELD(softmax), "ff", 1, 0, -3, 3},
    {"softmax_dx", CORE_FIELD(softmax_dx), "fff", 1, 0, -1, 1},
    {"logsumexp", MORE_FIELD(logsumexp), "Ff", 1, 0, -3, 3},
    {"log_softmax", MORE_FIELD(log_softmax), "ff", 1, 0, -3, 3},
    {"log_softmax_dx", MORE_FIELD(log_softmax_dx), "fff", 1, 0, -3, 0},
    {"masked_softmax", CORE_FIELD(masked_softmax), "ffLmnn", 1, 0.7, -3, 3},
    {"masked_softmax_dx", CORE_FIELD(masked_softmax_dx), "fff", 1, 0.7, -1, 1},
    {"cross_entropy", CORE_FIELD(cross_entropy), "FfTDD", 1, 0, -3, 3},
    {"cross_entropy_dx", CORE_FIELD(cross_entropy_dx), "ffTDDF", 1, 3, -2, 2},
    {"layer_norm", CORE_FIELD(layer_norm), "ffnnDD", 1, 1e-5, -3, 3},
    {"layer_norm_dx", CORE_FIELD(layer_norm_dx), "ffnfDD", 1, 0, -2, 2},
    {"rms_norm", MORE_FIELD(rms_norm), "ffnD", 1, 1e-5, -3, 3},
    {"rms_norm_dx", MORE_FIELD(rms_norm_dx), "ffnfD", 1, 0, -2, 2},
};

static Kernel *kernel_of(int table, const Entry *entry) {
    return kernel_at(table, entry->field, F32);
}

/* The tables that can exist, from narrow to wide vectors. */
#ifdef __aarch64__
static const char *const NAMES[] = {"plain", "neon"};
#else
static const char *const NAMES[] = {"plain", "baseline", "avx2", "avx512"};
#endif

CASE("walk", .setup = setup)
/* Fails if an instruction set has a kernel that is not listed above. (Attention, additive scores,
 * AdamW and sums of rows are tested below, products in test_products.c.) */
TEST(the_list_is_complete) {
    const size_t core = CORE_FIELD(gather), more = MORE_FIELD(attention);
    for (int t = 1; t < table_count; t++) {
        int filled = 0, listed = 0;
        for (size_t field = CORE_FIELD(value); field < core; field += sizeof(Kernel *))
            filled += kernel_at(t, field, F32) != NULL;
        for (size_t field = sizeof(Kernels); field < more; field += sizeof(Kernel *))
            filled += kernel_at(t, field, F32) != NULL;
        for (int e = 0; e < COUNT(entries); e++) listed += kernel_of(t, &entries[e]) != NULL;
        ck_assert_int_eq(listed + 2, filled); /* additive and adamw */
        for (int e = 0; e < COUNT(entries); e++)
            EXPECT(kernel_of(0, &entries[e]) != NULL, "%s", entries[e].name);
    }
    for (int t = 0; t < table_count; t++) ck_assert_str_eq(tables[t]->name, NAMES[t]);
}

/* ---- a trial: one kernel, one size, the same operands for every table ------------------------ */

enum { SLACK = 32, MOST = 10000, OPERANDS = 6 };
static const double SPECIAL[] = {0., -0., 1, -1, INF, -INF, NOT};

static bool is_row(char letter) {
    return letter == 'f' || letter == 'b' || letter == 'n' || letter == 'm';
}

static DType type_of(char letter) {
    switch (letter) {
    case 'b':
    case 'm': return BOOL;
    case 'D': return F64;
    case 'L':
    case 'T': return I64;
    default: return F32;
    }
}

typedef struct {
    const Entry *entry;
    int64_t n;
    bool absent[OPERANDS];
    double operand[OPERANDS]
                  [MOST + SLACK]; /* as its type; the results last, behind what must stay */
} Trial;

static void trial_draw(Trial *trial, bool special) {
    for (int o = 0; trial->entry->operands[o]; o++) {
        const char letter = trial->entry->operands[o];
        const int64_t count = is_row(letter) ? trial->n : 1;
        trial->absent[o] = (letter == 'n' || letter == 'm') && draw(2);
        memset(trial->operand[o], 0x5a, sizeof trial->operand[o]);
        for (int64_t i = 0; i < count; i++) {
            double x = draw_in(trial->entry->low, trial->entry->high);
            if (special && draw(4) == 0) x = SPECIAL[draw(COUNT(SPECIAL))];
            if (type_of(letter) == BOOL) x = draw(3) > 0;
            if (letter == 'D') x = draw_in(0.5, 2);
            if (letter == 'L') x = draw((uint32_t)trial->n + 3);
            if (letter == 'T') x = trial->n > 0 ? (double)draw((uint32_t)trial->n + 1) - 1 : -1;
            element_store(type_of(letter), trial->operand[o], i, x);
        }
    }
}

static void trial_run(Trial *trial, int table) {
    void *data[OPERANDS];
    for (int o = 0; trial->entry->operands[o]; o++)
        data[o] = trial->absent[o] ? NULL : trial->operand[o];
    kernel_of(table, trial->entry)(trial->n, data, trial->entry->s);
}

/* Are the numbers equal up to rounding? NaN must match NaN, and infinity the same infinity. */
static bool agrees(double got, double want, double tolerance) {
    if (isnan(want) || isinf(want) || isinf(got)) return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= tolerance * (1 + fabs(want));
}

/* Compares the results of `fast` with the results of `plain`. Nothing after them may be written. */
static void expect_agreement(const Trial *fast, const Trial *plain, const char *table,
                             double tolerance) {
    for (int o = 0; fast->entry->operands[o]; o++) {
        const char letter = fast->entry->operands[o];
        const DType type = type_of(letter);
        const int64_t count = is_row(letter) ? fast->n : 1;
        const char *bytes = (const char *)fast->operand[o];
        for (int64_t i = 0; i < count; i++) {
            const double got = element_load(type, fast->operand[o], i);
            const double want = element_load(type, plain->operand[o], i);
            EXPECT(agrees(got, want, tolerance), "%s on %s: operand %d, %lld of %lld: %.9g or %.9g",
                   fast->entry->name, table, o, (long long)i, (long long)fast->n, got, want);
        }
        for (int64_t b = count * dtype_size(type); b < (count + 8) * dtype_size(type); b++)
            EXPECT(bytes[b] == 0x5a, "%s on %s writes behind its row", fast->entry->name, table);
    }
}

static void expect_same(const Trial *a, const Trial *b) {
    for (int o = 0; a->entry->operands[o]; o++) {
        const DType type = type_of(a->entry->operands[o]);
        for (int64_t i = 0; i < (is_row(a->entry->operands[o]) ? a->n : 1); i++)
            EXPECT(same_bits(type, a->operand[o], i, b->operand[o], i), "%s: %lld of %lld",
                   a->entry->name, (long long)i, (long long)a->n);
    }
}

/* in_place: the result is the first row among the operands. */
static void try_entry(const Entry *entry, int64_t n, bool special, bool in_place) {
    static Trial drawn, result[TABLES];
    drawn.entry = entry;
    drawn.n = n;
    trial_draw(&drawn, special);
    for (int t = 0; t < table_count; t++) {
        if (!kernel_of(t, entry)) continue;
        result[t] = drawn;
        trial_run(&result[t], t);
        if (t > 0)
            expect_agreement(&result[t], &result[0], tables[t]->name, 2e-6 * (n > 100 ? 20 : 1));
        if (t > 2) expect_same(&result[t], &result[2]);
        if (!in_place) continue;
        Trial *place = &result[t];
        static Trial again;
        again = drawn;
        void *data[OPERANDS];
        for (int o = 0; entry->operands[o]; o++)
            data[o] = again.absent[o] ? NULL : again.operand[o];
        data[0] = data[1];
        kernel_of(t, entry)(n, data, entry->s);
        for (int64_t i = 0; i < n; i++)
            EXPECT(same_bits(F32, again.operand[1], i, place->operand[0], i), "%s on %s in place",
                   entry->name, tables[t]->name);
    }
}

LOOP_TEST(fast_kernels_agree_with_the_plain_ones, COUNT(entries)) {
    static const int64_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 37, 64, 100};
    const Entry *entry = &entries[_i];
    for (int i = 0; i < COUNT(sizes); i++)
        for (int round = 0; round < 4; round++) {
            const bool rows = entry->operands[0] == 'f' && entry->operands[1] == 'f' &&
                              !strstr(entry->name, "norm_dx"); /* dx may not be the buffer of x */
            if (sizes[i] == 0 && !strncmp(entry->name, "cross", 5))
                continue; /* without classes
                           * there is no
                           * target */
            try_entry(entry, sizes[i], round % 2, rows && round > 1);
        }
}

LOOP_TEST(long_rows_agree, COUNT(entries)) {
    static const int64_t sizes[] = {1023, 1024, 1025, 4095, 4096, 4097, MOST};
    for (int i = 0; i < COUNT(sizes); i++) try_entry(&entries[_i], sizes[i], false, false);
}

/* ---- kernels of other forms ------------------------------------------------------------------ */

/* Compares with the results of the plain table up to rounding, and with the first table that fuses
 * bit for bit.
 */
static void expect_floats(int table, const char *what, const float *const got[TABLES], int64_t n,
                          double tolerance) {
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)got[table][i], want = (double)got[0][i];
        EXPECT(agrees(x, want, tolerance), "%s on %s: %lld of %lld: %.9g or %.9g", what,
               tables[table]->name, (long long)i, (long long)n, x, want);
        EXPECT(table < 3 || same_bits(F32, got[table], i, got[2], i), "%s: %lld of %lld", what,
               (long long)i, (long long)n);
    }
}

static float *floats_drawn(int64_t n, double low, double high) {
    float *x = malloc(((size_t)n + SLACK) * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)draw_in(low, high);
    return x;
}

CASE("others", .setup = setup)
LOOP_TEST(columns_are_summed, 10) {
    static const int64_t counts[] = {0, 1, 2, 31, 32, 33, 100, 4095, 4096, 4097};
    static const int64_t widths[] = {1, 10, 63, 64, 65, 130};
    const int64_t rows = counts[_i], most = rows * 130;
    float *x = floats_drawn(most, -3, 3);
    float *dy = floats_drawn(most, -1, 1);
    double *mean = malloc(((size_t)rows + 1) * sizeof *mean);
    double *scale = malloc(((size_t)rows + 1) * sizeof *scale);
    for (int64_t r = 0; r < rows; r++) {
        mean[r] = draw_in(-1, 1);
        scale[r] = draw_in(0.5, 2);
    }
    for (int w = 0; w < COUNT(widths); w++) {
        float sums[TABLES][130], dw[TABLES][130];
        const float *got[2][TABLES];
        for (int t = 0; t < table_count; t++) {
            got[0][t] = sums[t];
            got[1][t] = dw[t];
            tables[t]->sum_rows[F32](rows, widths[w], widths[w], x, sums[t]);
            tables[t]->layer_norm_dw[F32](rows, widths[w], widths[w],
                                          (void *[]){dw[t], x, dy, mean, scale});
            expect_floats(t, "sum_rows", got[0], widths[w], 1e-6 * (double)(rows + 10));
            expect_floats(t, "layer_norm_dw", got[1], widths[w], 1e-6 * (double)(rows + 10));
        }
    }
    free(x);
    free(dy);
    free(mean);
    free(scale);
}

TEST(adamw_steps) {
    enum { N = 37 };
    const AdamWStep numbers = {0.9, 0.99, 1e-8, 0.999, 0.01, 1.2};
    for (int t = 1; t < table_count; t++) {
        float x[2][N + SLACK], m[2][N + SLACK], v[2][N + SLACK], g[N + SLACK];
        for (int i = 0; i < N; i++) {
            x[1][i] = (float)draw_in(-1, 1);
            x[0][i] = x[1][i];
            g[i] = (float)draw_in(-1, 1);
            m[1][i] = (float)draw_in(-1, 1);
            m[0][i] = m[1][i];
            v[1][i] = (float)draw_in(0, 1);
            v[0][i] = v[1][i];
        }
        for (int f = 0; f < 2; f++)
            more_tables[f ? t : 0]->adamw[F32](
                N, (void *[]){x[f], m[f], v[f], g, (void *)(uintptr_t)&numbers}, 0);
        for (int i = 0; i < N; i++)
            CHECK(agrees((double)x[1][i], (double)x[0][i], 1e-6) &&
                  agrees((double)m[1][i], (double)m[0][i], 1e-6) &&
                  agrees((double)v[1][i], (double)v[0][i], 1e-6));
    }
}

/* Many numbers of queries, keys and hidden units. A dy of 0 must not hide a NaN or an infinity in
 * q, k or w. */
TEST(additive_scores_and_their_gradients) {
    enum { Q = 3, K = 9 };
    static const int64_t sizes[] = {1, 7, 31, 32, 33, 100};
    for (int round = 0; round < COUNT(sizes) * 4; round++) {
        const int64_t H = sizes[round % COUNT(sizes)], length[Q] = {K, 0, 4};
        float *q = floats_drawn(Q * H, -2, 2);
        float *k = floats_drawn(K * H, -2, 2);
        float *w = floats_drawn(H, -1, 1);
        float *dy = floats_drawn(Q * K, -1, 1);
        float *const odd[] = {q, q, k, w};
        if (round % 4) odd[round % 4][0] = (float)(round % 2 ? NOT : INF);
        for (int i = 0; i < Q * K; i += 4) dy[i] = 0;
        float y[TABLES][K + SLACK], *dx[TABLES][3];
        const float *got[4][TABLES];
        for (int t = 0; t < table_count; t++) {
            const int64_t counts[] = {Q * H, K * H, H};
            for (int i = 0; i < 3; i++) {
                dx[t][i] = calloc((size_t)counts[i] + SLACK, sizeof(float));
                got[i][t] = dx[t][i];
            }
            got[3][t] = y[t];
            AdditiveBatch batch = {Q, K, H, q, k, w, length, dy, dx[t][0], dx[t][1], dx[t][2]};
            more_tables[t]->additive_dx[F32](&batch);
            for (int i = 0; i < 3; i++) expect_floats(t, "additive_dx", got[i], counts[i], 1e-5);
        }
        for (int i = 0; i < Q; i++)
            for (int t = 0; t < table_count; t++) {
                void *data[] = {y[t], q + i * H, k, w, (void *)(uintptr_t)&length[i]};
                more_tables[t]->additive[F32](K, data, (double)H);
                expect_floats(t, "additive", got[3], K, 1e-5);
            }
        for (int t = 0; t < table_count; t++)
            for (int i = 0; i < 3; i++) free(dx[t][i]);
        free(q);
        free(k);
        free(w);
        free(dy);
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

static const struct {
    int64_t Q, K, D, Dv;
} heads[] = {{1, 1, 1, 1},      {3, 5, 2, 4},    {16, 16, 8, 8},     {17, 33, 5, 3},
             {64, 256, 16, 16}, {65, 257, 7, 9}, {130, 300, 20, 33}, {300, 40, 16, 16}};
enum { KEEP = 1, BIAS = 2, LENGTHS = 4, DROPOUT = 8, ODD = 16, WINDOW = 32, PARTS = 64 };

typedef struct {
    float *y, *dq, *dk, *dv, *dbias;
    double *max, *inverse;
} HeadResults;

/* Do both generators draw the same numbers from now on? */
static bool same_generator(const Generator *a, const Generator *b) {
    int64_t of_a[GENERATOR_NUMBERS];
    int64_t of_b[GENERATOR_NUMBERS];
    tensor_generator_to_numbers(a, of_a);
    tensor_generator_to_numbers(b, of_b);
    return memcmp(of_a, of_b, sizeof of_a) == 0;
}

/* Does a kernel compute the same if it gets the draws of dropout in an array, as if it draws them
 * itself? */
static void check_drawn(const MoreKernels *table, AttentionHead head, const Generator *before,
                        void *workspace) {
    const int64_t sizes[] = {head.Q * head.Dv, head.Q * head.D, head.K * head.D, head.K * head.Dv};
    const void *const from_generator[] = {head.y, head.dq, head.dk, head.dv};
    void *from_array[4];
    bool *drawn = malloc((size_t)(head.Q * head.K) + 1);
    Generator generator = *before;
    tensor_draw_bools(&generator, head.Q * head.K, drawn, 1 - head.dropout);
    for (int i = 0; i < 4; i++) from_array[i] = calloc((size_t)sizes[i] + SLACK, sizeof(float));
    head.drawn = drawn;
    head.generator = NULL;
    head.y = from_array[0];
    head.dq = from_array[1];
    head.dk = from_array[2];
    head.dv = from_array[3];
    table->attention[F32](&head, workspace);
    table->attention_dx[F32](&head, workspace);
    for (int i = 0; i < 4; i++) {
        CHECK(!memcmp(from_array[i], from_generator[i], (size_t)sizes[i] * sizeof(float)));
        free(from_array[i]);
    }
    free(drawn);
}

/* before: the generator at the head's first draw */
static void run_head(const MoreKernels *table, AttentionHead head, const Generator *before,
                     HeadResults *r) {
    const size_t bytes = (size_t)table->attention_workspace[F32](&head);
    const size_t doubles = (size_t)(head.K * (2 + head.D + head.Dv)); /* plus a bool for each key */
    if (table == more_tables[0]) CHECK(bytes < 8 * doubles + (size_t)head.K + 64);
    void *workspace = malloc(bytes + 64);
    memset(workspace, 0x5a, bytes + 64);
    r->y = calloc((size_t)(head.Q * head.Dv) + SLACK, sizeof(float));
    head.y = r->y;
    r->dq = calloc((size_t)(head.Q * head.D) + SLACK, sizeof(float));
    head.dq = r->dq;
    r->dk = floats_drawn(head.K * head.D, 7, 8); /* the kernel overwrites dk and dv; it does not
                                                  * add to them */
    head.dk = r->dk;
    r->dv = floats_drawn(head.K * head.Dv, 7, 8);
    head.dv = r->dv;
    r->dbias = calloc((size_t)(head.Q * head.K), sizeof(float));
    head.dbias = head.bias ? r->dbias : NULL;
    r->max = calloc((size_t)head.Q, sizeof(double));
    head.max = r->max;
    r->inverse = calloc((size_t)head.Q, sizeof(double));
    head.inverse = r->inverse;
    Generator forward = *before;
    Generator backward = *before;
    Generator after = *before;
    head.generator = &forward;
    table->attention[F32](&head, workspace);
    head.generator = &backward;
    table->attention_dx[F32](&head, workspace);
    check_drawn(table, head, before, workspace);
    for (int i = 0; i < 64; i++) CHECK(((char *)workspace)[bytes + (size_t)i] == 0x5a);
    if (head.dropout > 0) tensor_generator_skip(&after, 2 * head.Q * head.K);
    CHECK(same_generator(&forward, &after));
    CHECK(same_generator(&backward, &after));
    free(workspace);
}

static void free_head(HeadResults *r) {
    free(r->y);
    free(r->dq);
    free(r->dk);
    free(r->dv);
    free(r->dbias);
    free(r->max);
    free(r->inverse);
}

/* Tries every part of a mask, dropout, a query that contains NaN or whose scores overflow, and rows
 * that are not contiguous. */
static void try_head(int64_t Q, int64_t K, int64_t D, int64_t Dv, int parts) {
    const int64_t gap = draw(2) ? 5 : 0;
    float *q = floats_drawn(Q * (D + gap), -2, 2);
    float *k = floats_drawn(K * (D + gap), -2, 2);
    float *v = floats_drawn(K * (Dv + gap), -2, 2);
    float *dy = floats_drawn(Q * (Dv + gap), -1, 1);
    float *bias = floats_drawn(Q * K, -1, 1);
    float *window = floats_drawn(Q * K, -1, 1);
    bool *keep = malloc((size_t)(Q * K));
    int64_t *length = malloc((size_t)Q * sizeof *length);
    Generator generator;
    tensor_generator_seed(&generator, draw(1000));
    for (int64_t i = 0; i < Q * K; i++) {
        keep[i] = draw(5) > 0;
        float *masking = draw(2) ? bias : window;
        float *other = masking == bias ? window : bias;
        if (draw(6) > 0) continue;
        masking[i] = -INFINITY; /* whatever the other part says */
        if (parts & BIAS && parts & WINDOW && draw(2)) other[i] = draw(2) ? NAN : INFINITY;
    }
    for (int64_t i = 0; i < Q; i++) length[i] = parts & LENGTHS ? draw((uint32_t)K + 1) : K;
    if (parts & LENGTHS && Q > 2) {
        length[0] = 0;
        length[1] = 1;
    }
    if (parts & ODD) q[(Q / 2) * (D + gap)] = draw(2) ? NAN : 3e38f;
    AttentionHead head = {.Q = Q, .K = K, .D = D, .Dv = Dv, .q = q, .k = k, .v = v, .dy = dy};
    head.k_row = D + gap;
    head.q_row = head.k_row;
    head.dy_row = Dv + gap;
    head.v_row = head.dy_row;
    head.y_row = Dv;
    head.dq_row = D;
    head.dk_row = D;
    head.dv_row = Dv;
    head.scale = 0.5;
    head.length = length;
    if (parts & KEEP) {
        head.keep = keep;
        head.keep_row = K;
        head.keep_column = 1;
    }
    if (parts & BIAS) {
        head.bias = bias;
        head.bias_row = K;
        head.bias_column = 1;
    }
    if (parts & WINDOW) {
        head.window = window;
        head.window_row = K;
        head.window_column = 1;
    }
    if (parts & DROPOUT) head.dropout = 0.3;
    HeadResults r[TABLES];
    const float *got[5][TABLES];
    for (int t = 0; t < table_count; t++) {
        run_head(more_tables[t], head, &generator, &r[t]);
        /* If the weights of a query are NaN and all are dropped, y is 0 in the plain kernel and NaN
         * in the others. */
        if (parts & ODD && parts & DROPOUT)
            memset(r[t].y + (Q / 2) * Dv, 0, (size_t)Dv * sizeof(float));
        got[0][t] = r[t].y;
        got[1][t] = r[t].dq;
        got[2][t] = r[t].dk;
        got[3][t] = r[t].dv;
        got[4][t] = r[t].dbias;
        const int64_t counts[] = {Q * Dv, Q * D, K * D, K * Dv, Q * K};
        static const char *const names[] = {"attention", "attention dq", "attention dk",
                                            "attention dv", "attention dbias"};
        for (int i = 0; i < 5; i++) expect_floats(t, names[i], got[i], counts[i], 2e-5);
    }
    for (int t = 0; t < table_count; t++) free_head(&r[t]);
    free(q);
    free(k);
    free(v);
    free(dy);
    free(bias);
    free(window);
    free(keep);
    free(length);
}

CASE("attention", .setup = setup, .is_long = true)
static int third = 1; /* 3: each head has every third mask, and each mask two or three heads */

LOOP_TEST(attention_agrees, COUNT(heads)) {
    for (int parts = _i % third; parts < PARTS; parts += third)
        try_head(heads[_i].Q, heads[_i].K, heads[_i].D, heads[_i].Dv, parts);
}

/* ---- functions of float32 -------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Reference functions: the C library's, in double. */
static double logistic_of(double x) { return 1 / (1 + exp(-x)); }
static double softplus_of(double x) { return x < 0 ? log1p(exp(x)) : x + log1p(exp(-x)); }
static double silu_of(double x) { return x / (1 + exp(-x)); }
static double gelu_tanh_of(double x) {
    return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double gelu_of(double x) { return x * 0.5 * erfc(-x / sqrt(2)); }

static const struct {
    const char *name;
    int op;
    double (*truth)(double);
    double fused; /* the largest error in ulps, if products and sums are fused */
    double plain; /* the same if they are not fused */
} FUNCTIONS[] = {
    {"exp", ELEMENTWISE_exp, exp, 1, 1},
    {"log", ELEMENTWISE_log, log, 1, 1},
    {"log1p", ELEMENTWISE_log1p, log1p, 1, 1},
    {"tanh", ELEMENTWISE_tanh, tanh, 1, 1},
    {"sigmoid", ELEMENTWISE_sigmoid, logistic_of, 1, 1},
    {"softplus", ELEMENTWISE_softplus, softplus_of, 2, 2},
    {"silu", ELEMENTWISE_silu, silu_of, 2, 2},
    {"gelu", ELEMENTWISE_gelu, gelu_of, 2, 3},
    {"gelu_tanh", ELEMENTWISE_gelu_tanh, gelu_tanh_of, 2, 3},
};
enum { FUNCTION_N = 1 << 10 };

/* The error of y in ulps of the truth. (An ulp is one unit in the last place of a float.) Infinity
 * counts as 2^128, the number after the largest float. A wrong NaN, sign or zero is an infinite
 * error. */
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
    float y[FUNCTION_N];
    double truth[FUNCTION_N];
    for (int i = 0; i < n; i++) truth[i] = FUNCTIONS[f].truth((double)x[i]);
    for (int t = 0; t < table_count; t++) {
        const bool fuses = t == 0 || table_fuses(t); /* the plain table computes in double */
        const double most = fuses ? FUNCTIONS[f].fused : FUNCTIONS[f].plain;
        Kernel *const kernel = tables[t]->value[FUNCTIONS[f].op][F32];
        kernel(n, (void *[]){y, (void *)(uintptr_t)x}, 0);
        for (int i = 0; i < n; i++)
            EXPECT(ulps(y[i], truth[i]) <= most, "%s: %s(%.9g) is %.9g, %.3f ulps from %.9g",
                   tables[t]->name, FUNCTIONS[f].name, (double)x[i], (double)y[i],
                   ulps(y[i], truth[i]), truth[i]);
    }
}

CASE("accuracy", .setup = setup)
/* For every sign and exponent, denormals, infinities and NaNs included: the smallest and the
 * largest mantissas, and one of 8,192 between them. */
LOOP_TEST(functions_are_good_to_an_ulp_or_two_on_every_exponent, COUNT(FUNCTIONS)) {
    enum { EVERY = (1 << 23) / FUNCTION_N };
    float x[FUNCTION_N];
    for (uint32_t top = 0; top < 512; top++) {
        for (uint32_t i = 0; i < FUNCTION_N; i++) {
            const uint32_t between = i * EVERY + draw(EVERY);
            uint32_t mantissa = between;
            if (i < 4) mantissa = i;
            else if (i >= FUNCTION_N - 4) mantissa = i - FUNCTION_N;
            x[i] = float_of(top << 23 | (mantissa & 0x7fffff));
        }
        check_function(_i, x, FUNCTION_N);
    }
}

/* Evenly spaced x, in the range where most results are not 0, 1 or infinity. */
LOOP_TEST(functions_are_good_to_an_ulp_or_two_in_between, COUNT(FUNCTIONS)) {
    static const double end[] = {104.5, 10, 1.5};
    float x[FUNCTION_N];
    for (int round = 0; round < 600; round++) {
        for (int i = 0; i < FUNCTION_N; i++) x[i] = (float)draw_in(-end[round % 3], end[round % 3]);
        check_function(_i, x, FUNCTION_N);
    }
}

static float exp_of(const Kernels *table, float x) {
    float y[8], row[8];
    for (int i = 0; i < 8; i++) row[i] = x;
    table->value[ELEMENTWISE_exp][F32](8, (void *[]){y, row}, 0);
    for (int i = 1; i < 8; i++) ck_assert_mem_eq(y, y + i, sizeof *y);
    return y[0];
}

/* ln(FLT_MAX) = 88.7228391117..., which rounds to the float 0x1.62e43p+6; e^-103.97 is half the
 * smallest denormal. */
TEST(exp_at_its_ends) {
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

/* ---- accuracy -------------------------------------------------------------------------------- */

/* Every lane of a block adds 128 such numbers, and every addition rounds in the same direction: the
 * relative error is 1.0007e-6. A single running sum of floats would have an error of 1e-2. */
TEST(long_sums_are_accurate) {
    enum { N = 1000000 };
    float *x = malloc((N + SLACK) * sizeof *x), sum;
    for (int i = 0; i < N; i++) x[i] = 0.1f;
    for (int t = 0; t < table_count; t++) {
        if (!tables[t]->sum[F32]) continue;
        tables[t]->sum[F32](N, (void *[]){&sum, x}, 0);
        CHECK(fabs((double)sum / (N * (double)0.1f) - 1) <= 1.1e-6);
    }
    free(x);
}

static const int64_t ROW_SIZES[] = {1, 2, 31, 32, 33, 100, 1023, 1025, 4096, 4097, 5000};

/* With a mean of 1e4 and deviations of 1e-3, z must equal the z of the same floats in double. */
TEST(a_large_mean_costs_no_digits) {
    static float x[5000 + SLACK], y[5000 + SLACK];
    for (int i = 0; i < COUNT(ROW_SIZES); i++)
        for (int t = 0; t < table_count; t++) {
            const int64_t n = ROW_SIZES[i];
            double sum = 0, squares = 0, mean, scale;
            for (int64_t j = 0; j < n; j++) x[j] = (float)draw_in(1e4 - 2e-3, 1e4 + 2e-3);
            for (int64_t j = 0; j < n; j++) sum += (double)x[j] - 1e4;
            const double exact = 1e4 + sum / (double)n;
            for (int64_t j = 0; j < n; j++)
                squares += ((double)x[j] - exact) * ((double)x[j] - exact);
            tables[t]->layer_norm[F32](n, (void *[]){y, x, NULL, NULL, &mean, &scale}, 1e-12);
            const double want_scale = 1 / sqrt(squares / (double)n + 1e-12);
            CHECK(fabs(mean - exact) <= 1e-9 && fabs(scale / want_scale - 1) <= 1e-6);
            for (int64_t j = 0; j < n; j++)
                CHECK(fabs((double)y[j] - ((double)x[j] - exact) * want_scale) <= 4e-6);
        }
}

/* The mean of equal numbers is exactly this number, so y is exactly b. */
TEST(a_constant_row_is_normalised_to_zero) {
    static const float values[] = {1234.567f, -0.1f, 1e30f, 3e-39f, 0};
    static float x[5000 + SLACK], y[5000 + SLACK];
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < COUNT(values) * COUNT(ROW_SIZES); i++) {
            const int64_t n = ROW_SIZES[i / COUNT(values)];
            double mean, scale;
            for (int64_t j = 0; j < n; j++) x[j] = values[i % COUNT(values)];
            tables[t]->layer_norm[F32](n, (void *[]){y, x, NULL, NULL, &mean, &scale}, 1e-5);
            for (int64_t j = 0; j < n; j++) CHECK(y[j] == 0);
        }
}

/* Masked elements are not read: NaN there changes nothing. A row whose elements are all masked
 * becomes 0. */
TEST(masked_elements_are_not_read) {
    enum { N = 100 };
    float x[2][N + SLACK], window[N + SLACK], y[2][N + SLACK];
    bool keep[N + SLACK];
    for (int round = 0; round < 30; round++)
        for (int t = 0; t < table_count; t++) {
            const int64_t length = round % 3 == 0 ? 0 : draw(N + 1);
            for (int j = 0; j < N; j++) {
                keep[j] = round % 3 == 1 ? false : draw(2);
                window[j] = draw(3) ? (float)draw_in(-1, 1) : -INFINITY;
                x[1][j] = (float)draw_in(-3, 3);
                x[0][j] = x[1][j];
                if (j >= length || !keep[j] || window[j] == -INFINITY) x[1][j] = NAN;
            }
            for (int f = 0; f < 2; f++) {
                void *data[] = {y[f], x[f], (void *)(uintptr_t)&length, keep, NULL, window};
                tables[t]->masked_softmax[F32](N, data, 1);
            }
            double sum = 0;
            for (int j = 0; j < N; j++) {
                CHECK(same_bits(F32, y[0], j, y[1], j) && (!isnan(x[1][j]) || y[0][j] == 0));
                sum += (double)y[0][j];
            }
            CHECK(sum == 0 || fabs(sum - 1) < 1e-5);
        }
}

/* ---- which table a program gets -------------------------------------------------------------- */

static const char *program;

/* Runs this program with TAPEHEAD_ISA=wanted. It prints the table that it chose and the best table.
 * EMULATOR is a command that runs programs of another machine. */
static void ask(const char *wanted, char *chosen, char *best) {
    char command[1000];
    snprintf(command, sizeof command, "TAPEHEAD_ISA=%s $EMULATOR '%s' --which-kernels", wanted,
             program);
    FILE *answer = popen(command, "r");
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(fscanf(answer, "%19s %19s", chosen, best), 2);
    ck_assert_int_eq(pclose(answer), 0);
}

CASE("walk", .setup = setup)
/* If the CPU cannot run the table, or if the name is unknown, the best table is chosen. */
TEST(the_environment_chooses_the_table) {
    char chosen[20], best[20];
    ask("", chosen, best);
    ck_assert_str_eq(chosen, best);
    ask("nonsense", chosen, best);
    ck_assert_str_eq(chosen, best);
    int most = 0;
    for (int i = 0; i < COUNT(NAMES); i++)
        if (strcmp(best, NAMES[i]) == 0) most = i;
    for (int i = 0; i < COUNT(NAMES); i++) {
        ask(NAMES[i], chosen, best);
        ck_assert_str_eq(chosen, NAMES[i < most ? i : most]);
    }
}

/* ---- the suite ------------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    find_tables();
    if (argc > 1) { /* the question of ask() */
        printf("%s %s\n", tensor_kernels()->name, tables[table_count - 1]->name);
        return EXIT_SUCCESS;
    }
    program = argv[0];
    third = sample_step(3);
    return run_tests("kernels");
}
