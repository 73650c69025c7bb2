/* attention_tiles.c - attention of float32 in tiles, without the Q x K weights in memory, compiled
 * once per instruction set. The kernels compute the formulas of attention and attention_dx in
 * more/more_plain.inc, up to rounding. One more difference: a plain loop skips a key of weight 0,
 * and a tile multiplies it by 0, so the result can be NaN if an element is NaN or infinite
 * (autograd/README.md, "Masks").
 *
 * The kernel processes the keys tile by tile (Dao 2023, FlashAttention-2). Forward: the scores of
 * a tile become weights, exp(score - the largest score so far), and are multiplied by the values of
 * the tile; the weights are not stored. If a later tile has a larger score for a query, the sums of
 * this query so far are scaled. Backward: forward stores two numbers for each query, the largest
 * score and 1 / the sum of the weights; from these, q and k the weights are computed again. The
 * gradient of a score also needs one number for each query: sum(P dP) over all keys, which equals
 * sum(y dy). The memory grows with the lengths, not with their product.
 *
 * A tile is stored transposed: a row for each key, a column for each query. The products
 * need no copies of their operands:
 *     S' = K q',  dP' = V dy',  Y += P V,  dQ += dS K,  dV += P' dy,  dK += dS' q
 * The left factor is read one number at a time, in any order, the right factor in contiguous rows.
 * Only q and dy are transposed, once for each block of queries. Softmax needs no sum across a
 * vector, because each lane is a query: no result depends on the width of a vector.
 *
 * Sizes: a tile has KEYS x QUERIES numbers, a small part of the L2 cache; both are large enough for
 * fast products. While a tile of keys and values, and of their gradients, is in that cache, BLOCKS
 * blocks of queries use it. If the rows of a head do not follow each other in memory, as in (B, N,
 * H, D), and more than two blocks read them, then keys and values are copied first, and their
 * gradients are summed in a contiguous buffer and copied at the end. A block skips the tiles after
 * its longest length, so causal attention takes half of the time. */
#include "isa.h"

#include "fast_math.h"

#include <float.h>
#include <string.h>

enum { KEYS = 256, QUERIES = 64, GROUP = 16, BLOCKS = 4 };
enum { KEY, VALUE, DKEY, DVALUE, KEYED }; /* matrices with a row for each key, and their number */

/* Element (i, j) is data[i * row + j * column]. One of the two strides is 1. */
typedef struct {
    float *data;
    int64_t row, column;
} Matrix;

/* Consecutive queries. D+ and Dv+ are D and Dv, rounded up to a multiple of GROUP. */
typedef struct {
    int64_t from, rows, end;    /* the first query, how many, and their largest length */
    Matrix q, q_t;              /* (rows, D+), and scale q': (D, width) */
    Matrix dy, dy_t;            /* (rows, Dv+) and (Dv, width) */
    Matrix q_buffer, dy_buffer; /* copies of q and dy, if their rows are not contiguous */
    Matrix out;                 /* y: (rows, Dv+), or dq: (rows, D+) */
    float *max, *sum;           /* (width): for each query the largest score and the sum so far */
    float *factor;              /* (width): forward: exp(old max - new max) of the last tile */
    float *inverse_sum;         /* (width): 1 / sum exp(score - max) over all keys */
    int64_t *length;            /* (width): keys at or past it are masked */
    bool *kept;                 /* what dropout keeps, (K, width) */
    bool undefined;             /* backward: is_undefined is true for some query */
} Block;

/* One head, forward or backward. */
typedef struct {
    const AttentionHead *of;
    bool backward;
    int64_t rows, width;         /* queries in a block; rows rounded up to a multiple of GROUP */
    int blocks;                  /* how many use one tile of keys */
    Matrix keyed[KEYED];         /* the tensor itself, or its copy if is_copied says so */
    Matrix copy[KEYED];          /* (K, D+) or (K, Dv+) */
    Matrix weights, dp, dropped; /* (KEYS, width) */
    bool *drawn;                 /* what dropout draws, (rows, K) */
    Block block[BLOCKS];
} Pass;

static int64_t whole_groups(int64_t n) { return (n + GROUP - 1) / GROUP * GROUP; }
static Matrix transposed(Matrix x) { return (Matrix){x.data, x.column, x.row}; }
static Matrix rows_from(Matrix x, int64_t row) {
    return (Matrix){x.data + row * x.row, x.row, x.column};
}
static Matrix matrix_at(const void *data, int64_t row) {
    return (Matrix){(float *)(uintptr_t)data, row, 1};
}

/* c (m, n) = or += a (m, k) b (k, n) */
static void multiply(int64_t m, int64_t n, int64_t k, Matrix c, bool add, Matrix a, Matrix b) {
    MatmulShape s = {
        m, n, k, {a.row, a.column}, {b.row, b.column}, {c.row, c.column}, .in_place = true};
    if (add) s.start = c.data;
    if (add) memcpy(s.start_stride, s.c_stride, sizeof s.start_stride);
    GLOBAL(matmul_f32)(&s, a.data, b.data, c.data);
}

static void copy_rows(Matrix to, Matrix x, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(to.data + r * to.row, x.data + r * x.row, (size_t)columns * sizeof(float));
}

/* to (columns, width) = x' of x (rows, columns), and 0 after the rows */
static void copy_transposed(Matrix to, Matrix x, int64_t rows, int64_t columns) {
    GLOBAL(transpose_f32)(rows, columns, x.data, x.row, to.data, to.row);
}

/* ---- the workspace --------------------------------------------------------------------------- */

/* The next bytes of a workspace, or NULL while it is being measured. */
static void *take(char *workspace, int64_t *used, int64_t bytes) {
    char *piece = workspace ? workspace + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return piece;
}

static Matrix take_matrix(char *workspace, int64_t *used, int64_t rows, int64_t columns) {
    const int64_t bytes = rows * columns * (int64_t)sizeof(float);
    return (Matrix){take(workspace, used, bytes), columns, 1};
}

static void lay_out_block(const Pass *pass, Block *to, char *workspace, int64_t *used) {
    const AttentionHead *a = pass->of;
    const int64_t rows = pass->rows, w = pass->width, numbers = w * (int64_t)sizeof(float);
    const int64_t D = whole_groups(a->D), Dv = whole_groups(a->Dv);
    to->q_buffer = take_matrix(workspace, used, rows, D);
    to->q_t = take_matrix(workspace, used, a->D, w);
    to->out = take_matrix(workspace, used, rows, pass->backward ? D : Dv);
    to->max = take(workspace, used, numbers);
    to->sum = take(workspace, used, numbers);
    to->factor = take(workspace, used, numbers);
    to->inverse_sum = take(workspace, used, numbers);
    to->length = take(workspace, used, w * (int64_t)sizeof(int64_t));
    to->kept = take(workspace, used, a->dropout > 0 ? a->K * w : 0);
    to->dy_buffer = take_matrix(workspace, used, pass->backward ? rows : 0, Dv);
    to->dy_t = take_matrix(workspace, used, pass->backward ? a->Dv : 0, w);
}

static int64_t columns_of(const AttentionHead *a, int x) {
    return x == KEY || x == DKEY ? a->D : a->Dv;
}

/* Are the rows of keys, values or their gradients copied? */
static bool is_copied(const AttentionHead *a, int x) {
    const int64_t row[KEYED] = {a->k_row, a->v_row, a->dk_row, a->dv_row};
    return row[x] != columns_of(a, x) && a->Q > 2 * QUERIES;
}

/* Lays out the workspace; returns how many bytes it takes. */
static int64_t lay_out(Pass *pass, const AttentionHead *a, bool backward, char *workspace) {
    int64_t used = 0;
    pass->of = a;
    pass->backward = backward;
    pass->rows = MIN(QUERIES, a->Q);
    pass->width = whole_groups(pass->rows);
    pass->blocks = (int)MIN((a->Q + QUERIES - 1) / QUERIES, BLOCKS);
    const int64_t keys = MIN(KEYS, a->K), back = backward ? keys : 0;
    for (int x = 0; x < (backward ? KEYED : DKEY); x++)
        pass->copy[x] = take_matrix(workspace, &used, is_copied(a, x) ? a->K : 0,
                                    whole_groups(columns_of(a, x)));
    pass->weights = take_matrix(workspace, &used, keys, pass->width);
    pass->dp = take_matrix(workspace, &used, back, pass->width);
    pass->dropped = take_matrix(workspace, &used, a->dropout > 0 ? back : 0, pass->width);
    pass->drawn = take(workspace, &used, a->dropout > 0 ? a->K * pass->rows : 0);
    for (int b = 0; b < pass->blocks; b++) lay_out_block(pass, &pass->block[b], workspace, &used);
    return used;
}

/* The workspace of backward, which needs more than forward. The strides of the gradients are not
 * known yet, so the workspace has space for copies of the gradients. */
int64_t GLOBAL(attention_workspace_f32)(const AttentionHead *head) {
    AttentionHead a = *head;
    Pass measured;
    a.dk_row = -1;
    a.dv_row = -1;
    return lay_out(&measured, &a, true, NULL);
}

/* ---- a tile: (n, w), a row for each of n keys, w queries side by side ------------------------ */

/* w is a multiple of GROUP. & -GROUP tells gcc this, so gcc makes no loop for a remainder. */
#define EACH_KEY   for (int64_t j = 0; j < n; j++)
#define EACH_QUERY IVDEP for (int64_t c = 0; c < (w & -GROUP); c++)

/* The scores of keys at or past the length of a query become -inf; first: the tile's first key. */
static void cut_to_lengths(int64_t n, int64_t w, float *x, const int64_t *length, int64_t first) {
    float left[QUERIES] = {0};
    for (int64_t c = 0; c < w; c++) left[c] = (float)MIN(length[c] - first, n);
    EACH_KEY EACH_QUERY x[j * w + c] = (float)j < left[c] ? x[j * w + c] : -INFINITY;
}

/* Online softmax (Milakov & Gimelshein 2018). On entry max and sum are for the keys before this
 * tile, on return they include this tile. x becomes exp(x - max). factor = exp(old max - new max):
 * the caller multiplies the output so far by factor. A query that has seen no key yet has max =
 * -inf and sum = 0. */
static void softmax_of_tile(int64_t n, int64_t w, float *x, float *max, float *sum, float *factor) {
    float base[QUERIES], added[QUERIES] = {0};
    memcpy(factor, max, (size_t)w * sizeof *max);
    for (int64_t c = 0; c < w; c += WIDE) { /* four chains, in registers */
        const float *key = x + c;
        Vector most[4];
        for (int r = 0; r < 4; r++) most[r] = *(Vector *)(max + c);
        int64_t j = 0;
        for (; j + 4 <= n; j += 4, key += 4 * w)
            UNROLL for (int r = 0; r < 4; r++) most[r] =
                LARGER(most[r], *(const Vector *)(key + r * w));
        for (; j < n; j++, key += w) most[0] = LARGER(most[0], *(const Vector *)key);
        most[0] = LARGER(most[0], most[1]);
        most[2] = LARGER(most[2], most[3]);
        *(Vector *)(max + c) = LARGER(most[0], most[2]);
    }
    EACH_QUERY {
        base[c] = max[c] > -INFINITY ? max[c] : 0;
        factor[c] = weight_float(factor[c] - base[c], 1);
    }
    EACH_KEY EACH_QUERY {
        const float weight = weight_float(x[j * w + c] - base[c], 1);
        x[j * w + c] = weight;
        added[c] += weight;
    }
    EACH_QUERY sum[c] = sum[c] * factor[c] + added[c];
}

/* The weights, x = exp(x - max) inverse_sum, where max is the largest score of the query over all
 * keys, and inverse_sum is 1 / sum exp(x - max). If inverse_sum is 0 (all keys are masked), the
 * weights are 0. If inverse_sum is NaN, the weights are NaN, but 0 for a masked key, whose score is
 * -inf: -FLT_MAX then takes the place of max, so that weight_float rounds no other weight to 0. */
static void weights_of_tile(int64_t n, int64_t w, float *x, const float *max,
                            const float *inverse_sum) {
    float base[QUERIES];
    EACH_QUERY {
        base[c] = inverse_sum[c] == 0 ? INFINITY : max[c];
        base[c] = inverse_sum[c] == inverse_sum[c] ? base[c] : -FLT_MAX;
    }
    EACH_KEY EACH_QUERY x[j * w + c] = weight_float(x[j * w + c] - base[c], inverse_sum[c]);
}

/* dp = scale p (dp - sum), exactly 0 where p is 0; scale is the scale of the scores. If p is 1, the
 * other weights are almost 0, so sum is dp, but rounded differently. Then dp takes the place of
 * sum: the difference is exactly 0. */
static void gradient_of_tile(int64_t n, int64_t w, float *dp, const float *p, const float *sum,
                             float scale) {
    EACH_KEY EACH_QUERY {
        const int64_t i = j * w + c;
        const float all = p[i] == 1 ? dp[i] : sum[c];
        dp[i] = p[i] == 0 ? 0 : p[i] * (dp[i] - all) * scale;
    }
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Do keep, bias and window allow query i to attend to key j? */
static bool is_kept(const AttentionHead *a, int64_t i, int64_t j) {
    const float *bias = a->bias;
    const float *window = a->window;
    return (!a->keep || a->keep[i * a->keep_row + j * a->keep_column]) &&
           (!bias || bias[i * a->bias_row + j * a->bias_column] != -INFINITY) &&
           (!window || window[i * a->window_row + j * a->window_column] != -INFINITY);
}

static bool sees_any(const AttentionHead *a, int64_t i) {
    for (int64_t j = 0; j < a->length[i]; j++)
        if (is_kept(a, i, j)) return true;
    return false;
}

/* The scores of n keys from `first` on with a block's queries: x (n, width) = k scale q' + bias
 * + window, -inf where the key is masked. */
static void score_tile(const Pass *pass, const Block *q, int64_t first, int64_t n) {
    const AttentionHead *a = pass->of;
    const Matrix x = pass->weights;
    const float *bias = a->bias;
    const float *window = a->window;
    bool cut = false;
    multiply(n, pass->width, a->D, x, false, rows_from(pass->keyed[KEY], first), q->q_t);
    for (int64_t r = 0; r < q->rows; r++) {
        const int64_t i = q->from + r;
        cut = cut || q->length[r] < first + n;
        if (!a->keep && !bias && !window) continue;
        for (int64_t j = 0; j < n; j++) {
            float *score = x.data + j * x.row + r;
            if (bias) *score += bias[i * a->bias_row + (first + j) * a->bias_column];
            if (window) *score += window[i * a->window_row + (first + j) * a->window_column];
            if (!is_kept(a, i, first + j)) *score = -INFINITY;
        }
    }
    if (cut) cut_to_lengths(n, pass->width, x.data, q->length, first);
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* Draws which weights of a block dropout keeps, in the order of the rows. dropout = 1 keeps nothing
 * and draws nothing. */
static void draw_block(Pass *pass, const Block *q) {
    const AttentionHead *a = pass->of;
    const int64_t w = pass->width;
    const bool *drawn = a->drawn ? a->drawn + q->from * a->K : pass->drawn;
    if (a->dropout == 0) return;
    memset(q->kept, 0, (size_t)(a->K * w));
    if (a->dropout == 1) return;
    if (!a->drawn) tensor_draw_bools(a->generator, q->rows * a->K, pass->drawn, 1 - a->dropout);
    for (int64_t r = 0; r < q->rows; r++)
        for (int64_t j = 0; j < q->end; j++) q->kept[j * w + r] = drawn[r * a->K + j];
}

/* Applies dropout to tile x, whose keys begin at `first`. The result is `to`, or x if there is no
 * dropout. */
static Matrix drop(const Pass *pass, const Block *q, Matrix to, Matrix x, int64_t first,
                   int64_t n) {
    const float keep_scale = 1 / (float)(1 - pass->of->dropout);
    const unsigned char *kept = (const unsigned char *)q->kept + first * pass->width;
    if (pass->of->dropout == 0) return x;
    IVDEP for (int64_t i = 0; i < n * pass->width; i++) {
        const float scaled = x.data[i] * keep_scale;
        to.data[i] = kept[i] ? scaled : 0;
    }
    return to;
}

/* ---- forward: y = dropout(weights) v --------------------------------------------------------- */

/* out *= factor, which has a number for each row. Adding 0 turns -0 into 0, as in every product. */
static void multiply_rows(const Block *q, const float *factor) {
    for (int64_t r = 0; r < q->rows; r++) {
        float *row = q->out.data + r * q->out.row;
        const float by = factor[r];
        if (by == 1) continue;
        IVDEP for (int64_t d = 0; d < q->out.row; d++) row[d] = by * row[d] + 0;
    }
}

static void forward_open(const Pass *pass, const Block *q) {
    for (int64_t c = 0; c < pass->width; c++) q->max[c] = -INFINITY;
    memset(q->sum, 0, (size_t)pass->width * sizeof *q->sum);
}

static void forward_tile(const Pass *pass, const Block *q, int64_t first, int64_t n) {
    const Matrix x = pass->weights;
    score_tile(pass, q, first, n);
    softmax_of_tile(n, pass->width, x.data, q->max, q->sum, q->factor);
    if (first) multiply_rows(q, q->factor);
    multiply(q->rows, q->out.row, n, q->out, first > 0, transposed(drop(pass, q, x, x, first, n)),
             rows_from(pass->keyed[VALUE], first));
}

/* If all scores of a query that are not masked have overflowed to -inf, its sum is 0, as if all
 * keys were masked. Then the sum is set to NaN: the weights are NaN, as exp(-inf - -inf) is. */
static void forward_close(const Pass *pass, const Block *q) {
    const AttentionHead *a = pass->of;
    for (int64_t r = 0; r < pass->width; r++) {
        if (r < q->rows && q->sum[r] == 0 && sees_any(a, q->from + r)) q->sum[r] = NAN;
        q->inverse_sum[r] = q->sum[r] == 0 ? 0 : 1 / q->sum[r];
    }
    multiply_rows(q, q->inverse_sum);
    for (int64_t r = 0; r < q->rows; r++) {
        a->max[q->from + r] = (double)q->max[r];
        a->inverse[q->from + r] = (double)q->inverse_sum[r];
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Are the weights of the query undefined (0 / 0, because it sees no key, or NaN)? Then inverse_sum
 * is 0 or NaN. */
static bool is_undefined(const Block *q, int64_t r) { return !(q->inverse_sum[r] > 0); }

/* The rows of a block in x, which is q or dy. The rows are copied if they are many and not
 * contiguous, because every tile reads them, or if the weights of a query are undefined. In the
 * copy the row of such a query is zeros: a key that is masked for this query gets 0 from the
 * query, not 0 times NaN; any other key still gets NaN, from its weight. */
static Matrix rows_of_block(const Block *q, Matrix x, int64_t columns, Matrix buffer) {
    const bool dense = q->rows <= GROUP || x.row == columns;
    if (dense && !q->undefined) return x;
    copy_rows(buffer, x, q->rows, columns);
    if (!q->undefined) return buffer;
    for (int64_t r = 0; r < q->rows; r++)
        if (is_undefined(q, r))
            memset(buffer.data + r * buffer.row, 0, (size_t)columns * sizeof(float));
    return buffer;
}

/* y dy of a query, which is sum(P dP) over all keys (autograd/more/fused_attention.c says why) */
static float dot(int64_t n, const float *y, const float *dy) {
    float lane[GROUP] = {0};
    int64_t d = 0;
    for (; d + GROUP <= n; d += GROUP)
        IVDEP for (int64_t l = 0; l < GROUP; l++) lane[l] += y[d + l] * dy[d + l];
    for (int64_t l = 0; d < n; d++, l++) lane[l] += y[d] * dy[d];
    UNROLL for (int half = GROUP / 2; half > 0; half /= 2) UNROLL for (int l = 0; l < half; l++)
        lane[l] += lane[l + half];
    return lane[0];
}

/* Reads the two numbers of forward into max and inverse_sum, and computes sum = sum(y dy). If all
 * lengths of a block are 0, no tile writes q->out. Then inverse_sum is set to 0, so that
 * close_block writes zeros to dq. */
static void read_stats(const Pass *pass, Block *q) {
    const AttentionHead *a = pass->of;
    q->undefined = false;
    for (int64_t r = 0; r < pass->width; r++) {
        const int64_t i = q->from + r;
        const bool there = r < q->rows;
        const float *y = (const float *)a->y + i * a->y_row;
        q->max[r] = there ? (float)a->max[i] : 0;
        q->inverse_sum[r] = there && q->end > 0 ? (float)a->inverse[i] : 0;
        q->sum[r] = there ? dot(a->Dv, y, (const float *)a->dy + i * a->dy_row) : 0;
        q->undefined = q->undefined || (there && is_undefined(q, r));
    }
}

/* The first block of a head stores into dk and dv, later blocks add to them, as all blocks do where
 * another head has stored. The keys after the longest length of the first block get zeros here. */
static void clear_keys(const Pass *pass, int64_t end) {
    for (int x = DKEY; x <= DVALUE; x++)
        for (int64_t j = end; j < pass->of->K; j++)
            memset(rows_from(pass->keyed[x], j).data, 0,
                   (size_t)columns_of(pass->of, x) * sizeof(float));
}

static void backward_open(const Pass *pass, Block *q) {
    const AttentionHead *a = pass->of;
    const Matrix dy = matrix_at((const float *)a->dy + q->from * a->dy_row, a->dy_row);
    q->dy = rows_of_block(q, dy, a->Dv, q->dy_buffer);
    copy_transposed(q->dy_t, q->dy, q->rows, a->Dv);
    if (q->from == 0 && !a->adds) clear_keys(pass, q->end);
}

/* Stores dbias = dP, and scales dP. */
static void gradient_of_bias(const Pass *pass, const Block *q, int64_t first, int64_t n) {
    const AttentionHead *a = pass->of;
    for (int64_t r = 0; r < q->rows; r++) {
        float *row = (float *)a->dbias + (q->from + r) * a->K + first;
        for (int64_t j = 0; j < n; j++) row[j] = pass->dp.data[j * pass->dp.row + r];
    }
    const float scale = (float)a->scale;
    IVDEP for (int64_t i = 0; i < n * pass->width; i++) pass->dp.data[i] *= scale;
}

/* P weights, R = dropout(P):  dv += R' dy,  dP = dropout's backward of dy v',
 * dS = scale P (dP - sum(P dP)),  dk += dS' q,  dq += dS k */
static void backward_tile(const Pass *pass, const Block *q, int64_t first, int64_t n) {
    const AttentionHead *a = pass->of;
    const Matrix p = pass->weights, dp = pass->dp, *keyed = pass->keyed;
    const bool add = q->from > 0 || a->adds;
    score_tile(pass, q, first, n);
    weights_of_tile(n, pass->width, p.data, q->max, q->inverse_sum);
    const Matrix r = drop(pass, q, pass->dropped, p, first, n);
    multiply(n, a->Dv, q->rows, rows_from(keyed[DVALUE], first), add, r, q->dy);
    multiply(n, pass->width, a->Dv, dp, false, rows_from(keyed[VALUE], first), q->dy_t);
    drop(pass, q, dp, dp, first, n);
    gradient_of_tile(n, pass->width, dp.data, p.data, q->sum, a->dbias ? 1 : (float)a->scale);
    if (a->dbias) gradient_of_bias(pass, q, first, n);
    multiply(n, a->D, q->rows, rows_from(keyed[DKEY], first), add, dp, q->q);
    multiply(q->rows, q->out.row, n, q->out, first > 0, transposed(dp),
             rows_from(keyed[KEY], first));
}

/* ---- all of a head --------------------------------------------------------------------------- */

static void open_block(Pass *pass, Block *q, int64_t from) {
    const AttentionHead *a = pass->of;
    q->from = from;
    q->rows = MIN(pass->rows, a->Q - from);
    q->end = 0;
    q->undefined = false;
    for (int64_t r = 0; r < pass->width; r++) {
        q->length[r] = r < q->rows ? a->length[from + r] : 0;
        if (q->length[r] > q->end) q->end = q->length[r];
    }
    if (pass->backward) read_stats(pass, q);
    const Matrix rows = matrix_at((const float *)a->q + from * a->q_row, a->q_row);
    q->q = rows_of_block(q, rows, a->D, q->q_buffer);
    copy_transposed(q->q_t, q->q, q->rows, a->D);
    const float scale = (float)a->scale;
    IVDEP for (int64_t i = 0; i < a->D * pass->width; i++) q->q_t.data[i] *= scale;
    draw_block(pass, q);
    if (pass->backward) backward_open(pass, q);
    else forward_open(pass, q);
}

/* Writes the rows of y, or of dq: zeros for a query whose keys are all masked. */
static void close_block(const Pass *pass, const Block *q) {
    const AttentionHead *a = pass->of;
    if (!pass->backward) forward_close(pass, q);
    float *to = pass->backward ? a->dq : a->y;
    const int64_t row = pass->backward ? a->dq_row : a->y_row;
    const size_t bytes = (size_t)(pass->backward ? a->D : a->Dv) * sizeof(float);
    for (int64_t r = 0; r < q->rows; r++) {
        float *place = to + (q->from + r) * row;
        if (q->inverse_sum[r] == 0) memset(place, 0, bytes);
        else memcpy(place, q->out.data + r * q->out.row, bytes);
    }
}

/* Some blocks at once: every block uses a tile of keys before the next tile is read. */
static void pass_blocks(Pass *pass, int64_t from) {
    const AttentionHead *a = pass->of;
    int open = 0;
    for (; open < pass->blocks && from < a->Q; open++, from += pass->rows)
        open_block(pass, &pass->block[open], from);
    for (int64_t first = 0; first < a->K; first += KEYS)
        for (int b = 0; b < open; b++) {
            const Block *q = &pass->block[b];
            const int64_t n = MIN(KEYS, q->end - first);
            if (n <= 0) continue;
            if (pass->backward) backward_tile(pass, q, first, n);
            else forward_tile(pass, q, first, n);
        }
    for (int b = 0; b < open; b++) close_block(pass, &pass->block[b]);
}

static void pass_head(const AttentionHead *a, bool backward, void *workspace) {
    const Matrix here[KEYED] = {matrix_at(a->k, a->k_row), matrix_at(a->v, a->v_row),
                                matrix_at(a->dk, a->dk_row), matrix_at(a->dv, a->dv_row)};
    Pass pass;
    lay_out(&pass, a, backward, workspace);
    for (int x = 0; x < (backward ? KEYED : DKEY); x++) {
        pass.keyed[x] = is_copied(a, x) ? pass.copy[x] : here[x];
        if ((x < DKEY || a->adds) && is_copied(a, x))
            copy_rows(pass.copy[x], here[x], a->K, columns_of(a, x));
    }
    for (int64_t row = 0; row < a->Q; row += pass.blocks * pass.rows) pass_blocks(&pass, row);
    for (int x = DKEY; x < (backward ? KEYED : DKEY); x++)
        if (is_copied(a, x)) copy_rows(here[x], pass.copy[x], a->K, columns_of(a, x));
}

void GLOBAL(attention_f32)(const AttentionHead *head, void *workspace) {
    pass_head(head, false, workspace);
}

void GLOBAL(attention_dx_f32)(const AttentionHead *head, void *workspace) {
    pass_head(head, true, workspace);
}
