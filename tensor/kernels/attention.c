/* attention.c - softmax(scale Q K' + window) V without the matrix of Q x K weights in memory, and
 * masked_softmax, whose masks it shares.
 *
 * Queries go through the keys tile by tile (Dao 2023, FlashAttention-2). Forward, a tile of scores
 * becomes weights by the softmax of the keys so far, is multiplied with its values and forgotten;
 * what was added up before is scaled whenever a query finds a larger score. For the way back each
 * query leaves two numbers, its largest score and the sum below its fractions, with which the
 * weights are made again from q and k. What the gradient of a score needs besides is one number for
 * each query, sum(P dP) over all keys, which is sum(y dy). So the memory grows with the lengths and
 * not with their product.
 *
 * A tile holds its weights with the keys as rows and the queries side by side, the transpose of the
 * page of a book: then every product of the two passes reads its operands where they are,
 *     S' = K q'   dP' = V dy'   Y += P V   dQ += dS K   dV += P' dy   dK += dS' q
 * the left ones by single numbers in any order, the right ones by rows that are dense in memory;
 * only q and dy are turned, once for a block. And softmax needs no sum across a vector: each lane
 * is a query.
 *
 * Sizes: KEYS x TILE_QUERIES numbers are a small part of the second cache, and both are long enough
 * to keep the products going. A tile of keys and values, and of their gradients, serves BLOCKS
 * blocks of queries while it is in that cache: what lies behind it is slow. Slower still where the
 * rows of a head lie apart, as in (B, N, H, D), each in a page of its own: where more than two
 * blocks read them, a head's keys and values are copied first, and their gradients are added up
 * beside where they belong. A block does not see the tiles beyond its longest length, so what is
 * causal costs half. None of it depends on the number of threads, which share the heads.
 *
 * B batch, H heads, Q queries, K keys. */
#include "../internal.h"

#include <math.h>
#include <string.h>

enum { KEYS = 256, LANES = 16, BLOCKS = 4 };
enum { KEY, VALUE, DKEY, DVALUE, KEYED }; /* what has a row for each key */

/* ---- masks --------------------------------------------------------------------------------- */

/* I64, (B, H, Q, K) of one number per row: causal and lens, (B), (B, Q) or NULL, are both a number
 * of keys. Where there are no scores, nobody reads a length, and one stands for all. */
static Tensor *row_lengths(const Tensor *lens, bool causal, Shape scores) {
    const bool some = shape_numel(scores) > 0;
    const int64_t B = some ? scores.dim[0] : 1, Q = some ? scores.dim[2] : 1, K = scores.dim[3];
    const int64_t *given = some && lens ? lens->data : &K;
    const int64_t step_b = lens ? lens->stride[0] : 0;
    const int64_t step_q = lens && lens->shape.ndim == 2 ? lens->stride[1] : 0;
    Tensor *rows = tensor_make(SHAPE(B, 1, Q, 1), I64);
    int64_t *length = rows ? rows->data : NULL;
    for (int64_t b = 0; length && b < B; b++)
        for (int64_t q = 0; q < Q; q++)
            *length++ = MIN(given[b * step_b + q * step_q], causal ? q + 1 : K);
    Tensor *wide = rows ? view_expand(rows, scores) : NULL;
    tensor_release(rows);
    return wide;
}

bool mask_open(Mask *mask, const Tensor *const part[3], bool causal, Shape scores) {
    *mask = (Mask){.scores = scores, .window = part[2]};
    mask->lengths = row_lengths(part[0], causal, scores);
    mask->keep = part[1] ? view_expand(part[1], scores) : NULL;
    return !tensor_pending();
}

void mask_close(Mask *mask) { tensor_release(mask->lengths), tensor_release(mask->keep); }

/* x, (B, H, Q, K) or (B H, Q, K), as (B / W, W, H, Q, K); or a window, (W, Q, K), as (1, W, 1, Q,
 * K): a view for kernels alone. */
static Tensor in_windows(const Tensor *x, Shape shape) {
    const int64_t *t = x->stride + x->shape.ndim - 3;
    const int64_t batch = x->shape.ndim == 4 ? x->stride[0] : shape.dim[2] * t[0];
    return (Tensor){.shape = shape,
                    .stride = {shape.dim[1] * batch, batch, t[0], t[1], t[2]},
                    .dtype = x->dtype,
                    .data = x->data};
}

void masked_softmax(const Mask *mask, const Tensor *y, const Tensor *x, double scale) {
    bool yes = true;
    double zero = 0; /* its bits are 0 in both float types */
    const Tensor *w = mask->window;
    const Shape s = mask->scores;
    const int64_t W = w ? w->shape.dim[0] : 1;
    const Shape shape = SHAPE(s.dim[0] / W, W, s.dim[1], s.dim[2], s.dim[3]);
    const Tensor y_view = in_windows(y, shape), x_view = in_windows(x, shape);
    const Tensor lengths = in_windows(mask->lengths, shape);
    Tensor keep = {.dtype = BOOL, .data = &yes}, window = {.dtype = y->dtype, .data = &zero};
    if (mask->keep) keep = in_windows(mask->keep, shape);
    if (w) window = in_windows(w, SHAPE(1, W, 1, s.dim[2], s.dim[3]));
    loop_rows(kernels()->masked_softmax[y->dtype], 5,
              (const Tensor *[]){&y_view, &x_view, &lengths, &keep, &window}, scale);
}

/* ---- a pass -------------------------------------------------------------------------------- */

/* A matrix of the pass's type: where, and its strides. */
typedef struct {
    char *data;
    int64_t row, col;
} Matrix;

/* What all blocks share. D and Dv stand for the sizes of a key and of a value. */
typedef struct {
    const AttentionOperands *of;
    const Tensor *dy; /* backward, else NULL */
    Tensor *const *dx;
    const Tensor *keyed[KEYED]; /* forward, the gradients are NULL */
    DType dtype;
    int64_t size; /* bytes of a number */
    int64_t H, Q, K, D, Dv;
    int64_t rows, width; /* queries in a block, and these in whole vectors */
    int blocks;          /* at work at once */
    char *rooms;
    int64_t room; /* bytes, for each worker */
} Pass;

/* Some queries that stand side by side. (rows, D+): D rounded up to whole vectors. */
typedef struct {
    int64_t from, rows, end; /* first, count, and the most keys that one of them may see */
    Matrix q, q_t;           /* (rows, D+), and scale q': (D, width) */
    Matrix dy, dy_t;         /* (rows, Dv+) and (Dv, width) */
    Matrix q_room, dy_room;  /* for those that are not dense */
    Matrix out;              /* y: (rows, Dv+), or dq: (rows, D+) */
    char *max, *sum, *scale; /* (width): a number for each query; one after the other */
    int64_t *length;         /* (width): how many keys it may see */
    bool lost;               /* backward: is there a query that is_lost? */
    bool *kept;              /* dropout's draws, (K, width) */
} Block;

/* What a worker has for itself. */
typedef struct {
    int64_t head;
    Matrix keyed[KEYED];         /* the head's: where it is, or */
    Matrix copy[KEYED];          /* its copy, (K, D+) or (K, Dv+), where rows lie apart */
    Matrix weights, dp, dropped; /* (KEYS, width) */
    bool *drawn;                 /* dropout's draws as they come, (rows, K) */
    Generator generator;
    Block block[BLOCKS];
} Room;

static int64_t columns_of(const Tensor *x) { return x->shape.dim[x->shape.ndim - 1]; }

static int64_t whole_vectors(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

static Matrix turn(Matrix x) { return (Matrix){x.data, x.col, x.row}; }

static Matrix rows_from(const Pass *pass, Matrix x, int64_t row) {
    return (Matrix){x.data + row * x.row * pass->size, x.row, x.col};
}

/* Number i of some that lie side by side. */
static double number_at(const Pass *pass, const void *x, int64_t i) {
    return pass->dtype == F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* Matrix i of x, (..., N, L), from a row on. */
static Matrix part_of(const Tensor *x, int64_t i, int64_t from) {
    const int n = x->shape.ndim - 2;
    const int64_t *t = x->stride, H = n == 2 ? x->shape.dim[1] : 1;
    const int64_t offset = i / H * t[0] + (n == 2 ? i % H * t[1] : 0) + from * t[n];
    return (Matrix){(char *)x->data + offset * dtype_size(x->dtype), t[n], t[n + 1]};
}

/* c (m, n) = or += a (m, k) b (k, n) */
static void multiply(const Pass *pass, int64_t m, int64_t n, int64_t k, Matrix c, bool add,
                     Matrix a, Matrix b) {
    MatmulShape s = {m, n, k, {a.row, a.col}, {b.row, b.col}, {c.row, c.col}, .in_place = true};
    if (add) s.start = c.data, s.start_stride[0] = c.row, s.start_stride[1] = c.col;
    kernels()->matmul[pass->dtype](&s, a.data, b.data, c.data);
}

/* The kernel is copy_rows, to (rows, columns) = x, or turn_rows, to (columns, width) = x'. */
static void move_rows(const Pass *pass, const LoopKernel *kernel, Matrix to, Matrix x, int64_t rows,
                      int64_t columns) {
    kernel[pass->dtype](rows, (void *[]){to.data, x.data}, (int64_t[]){to.row, x.row, x.col},
                        (double)columns);
}

/* Does the query see no key, or are its weights NaN? Then 1 / its sum is 0 or NaN. */
static bool is_lost(const Pass *pass, const Block *q, int64_t r) {
    return !(number_at(pass, q->scale, r) > 0);
}

/* The rows of a block in x, q or dy; or a copy, where they are not dense, for every tile reads
 * them, or where a query is lost. Its rows are zeros there: then a key that it does not see gets
 * 0, not 0 times what the query holds, and one that it sees NaN all the same, that of the weight.
 */
static Matrix rows_of_block(const Pass *pass, const Block *q, Matrix x, int64_t columns,
                            Matrix room) {
    const bool dense = x.col == 1 && (q->rows <= LANES || x.row == columns);
    if (dense && !q->lost) return x;
    move_rows(pass, kernels()->copy_rows, room, x, q->rows, columns);
    for (int64_t r = 0; r < q->rows && q->lost; r++)
        if (is_lost(pass, q, r))
            memset(rows_from(pass, room, r).data, 0, (size_t)(columns * pass->size));
    return room;
}

/* Is x, keyed, copied? Where its columns are no neighbours, it must be. */
static bool lies_apart(const Pass *pass, const Tensor *x) {
    const int64_t *t = x->stride + x->shape.ndim - 2;
    return t[1] != 1 || (t[0] != columns_of(x) && pass->Q > 2 * TILE_QUERIES);
}

/* ---- room ---------------------------------------------------------------------------------- */

/* The next bytes of a room, or NULL where it is being measured. */
static void *take(char *room, int64_t *used, int64_t bytes) {
    char *piece = room ? room + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return piece;
}

static Matrix take_matrix(const Pass *pass, char *room, int64_t *used, int64_t rows,
                          int64_t columns) {
    return (Matrix){take(room, used, rows * columns * pass->size), columns, 1};
}

static void lay_out_block(const Pass *pass, Block *to, char *room, int64_t *used) {
    const int64_t D = pass->D, Dv = pass->Dv, rows = pass->rows, w = pass->width;
    const int64_t wide_D = whole_vectors(D), wide_Dv = whole_vectors(Dv);
    to->q_room = take_matrix(pass, room, used, rows, wide_D);
    to->q_t = take_matrix(pass, room, used, D, w);
    to->out = take_matrix(pass, room, used, rows, pass->dy ? wide_D : wide_Dv);
    to->max = take(room, used, w * pass->size);
    to->sum = take(room, used, w * pass->size);
    to->scale = take(room, used, w * pass->size);
    to->length = take(room, used, w * (int64_t)sizeof(int64_t));
    to->kept = take(room, used, pass->of->dropout > 0 ? pass->K * w : 0);
    to->dy_room = take_matrix(pass, room, used, pass->dy ? rows : 0, wide_Dv);
    to->dy_t = take_matrix(pass, room, used, pass->dy ? Dv : 0, w);
}

/* Lays out a worker's room; returns how many bytes it takes. */
static int64_t lay_out(const Pass *pass, Room *to, char *room) {
    const int64_t w = pass->width, tile = MIN(KEYS, pass->K), back = pass->dy ? tile : 0;
    int64_t used = 0;
    for (int x = 0; x < KEYED && pass->keyed[x]; x++)
        to->copy[x] = take_matrix(pass, room, &used, lies_apart(pass, pass->keyed[x]) ? pass->K : 0,
                                  whole_vectors(columns_of(pass->keyed[x])));
    to->weights = take_matrix(pass, room, &used, tile, w);
    to->dp = take_matrix(pass, room, &used, back, w);
    to->dropped = take_matrix(pass, room, &used, pass->of->dropout > 0 ? back : 0, w);
    to->drawn = take(room, &used, pass->of->dropout > 0 ? pass->K * pass->rows : 0);
    for (int b = 0; b < pass->blocks; b++) lay_out_block(pass, &to->block[b], room, &used);
    return used;
}

/* ---- dropout ------------------------------------------------------------------------------- */

/* p = 1 keeps nothing and draws nothing. */
static bool draws(const AttentionOperands *a) { return a->dropout > 0 && a->dropout < 1; }

/* What is kept for the way back of a head: what was drawn, unless a generator is smaller. */
static bool keeps_draws(Shape s) { return s.dim[2] * s.dim[3] < (int64_t)sizeof(Generator); }

int64_t attention_memory(Shape s) {
    return s.dim[0] * s.dim[1] * MIN(s.dim[2] * s.dim[3], (int64_t)sizeof(Generator));
}

/* Whether each weight of a block is kept, in the order of the rows. */
static void draw_block(const Pass *pass, Room *room, const Block *q) {
    const int64_t K = pass->K, w = pass->width;
    const bool *drawn = room->drawn;
    if (pass->of->dropout > 0) memset(q->kept, 0, (size_t)(K * w));
    if (!draws(pass->of)) return;
    if (keeps_draws(pass->of->mask.scores))
        drawn = pass->of->drawn + (room->head * pass->Q + q->from) * K;
    else draw_bools(&room->generator, q->rows * K, room->drawn, 1 - pass->of->dropout);
    for (int64_t r = 0; r < q->rows; r++)
        for (int64_t j = 0; j < q->end; j++) q->kept[j * w + r] = drawn[r * K + j];
}

/* What dropout leaves of the tile x, whose keys begin at j; in `to`, or x itself without it. */
static Matrix drop(const Pass *pass, const Block *q, Matrix to, Matrix x, int64_t j, int64_t n) {
    const int64_t w = pass->width;
    if (pass->of->dropout == 0) return x;
    kernels()->dropout[pass->dtype](n * w, (void *[]){to.data, x.data, q->kept + j * w},
                                    (int64_t[]){1, 1, 1}, 1 - pass->of->dropout);
    return to;
}

/* ---- blocks of queries, which begin with `open` and end with `close` ------------------------- */

/* How many keys the queries of a block may see, and the most of them. */
static void read_lengths(const Pass *pass, const Room *room, Block *q) {
    const Matrix lengths = part_of(pass->of->mask.lengths, room->head, q->from);
    const int64_t *length = (const int64_t *)(void *)lengths.data;
    q->end = 0;
    memset(q->length, 0, (size_t)pass->width * sizeof *length);
    for (int64_t r = 0; r < q->rows; r++) {
        q->length[r] = MIN(length[r * lengths.row], pass->K);
        if (q->length[r] > q->end) q->end = q->length[r];
    }
}

/* The mask of a query over its keys, from one of them on: data and col of a row of keep and of the
 * window. Where the mask has none, one number with the stride 0 stands for it. */
typedef struct {
    Matrix keep, window;
} QueryMask;

static QueryMask mask_of(const Pass *pass, const Room *room, int64_t query, int64_t key) {
    static const bool yes = true;
    static const double zero = 0; /* its bits are 0 in both float types */
    const Tensor *keep = pass->of->mask.keep, *window = pass->of->mask.window;
    QueryMask of = {{(char *)(uintptr_t)&yes, 0, 0}, {(char *)(uintptr_t)&zero, 0, 0}};
    if (keep) of.keep = part_of(keep, room->head, query);
    if (window) of.window = part_of(window, room->head / pass->H % window->shape.dim[0], query);
    of.keep.data += key * of.keep.col;
    of.window.data += key * of.window.col * pass->size;
    return of;
}

/* Does query r of a block see any key? */
static bool attends(const Pass *pass, const Room *room, const Block *q, int64_t r) {
    const QueryMask mask = mask_of(pass, room, q->from + r, 0);
    bool seen = false;
    for (int64_t j = 0; j < q->length[r] && !seen; j++)
        seen = mask.keep.data[j * mask.keep.col] &&
               number_at(pass, mask.window.data, j * mask.window.col) != -HUGE_VAL;
    return seen;
}

/* The scores of n keys from j on with a block's queries: x (n, width) = k scale q' + window, -inf
 * where the mask ignores them. */
static void score_tile(const Pass *pass, const Room *room, const Block *q, int64_t j, int64_t n) {
    const bool masked = pass->of->mask.keep || pass->of->mask.window;
    const Matrix x = room->weights;
    bool cut = false;
    multiply(pass, n, pass->width, pass->D, x, false, rows_from(pass, room->keyed[KEY], j), q->q_t);
    for (int64_t r = 0; r < q->rows && masked; r++) {
        const QueryMask mask = mask_of(pass, room, q->from + r, j);
        kernels()->query_mask[pass->dtype](
            n, (void *[]){x.data + r * pass->size, mask.keep.data, mask.window.data},
            (int64_t[]){x.row, mask.keep.col, mask.window.col}, 0);
    }
    for (int64_t r = 0; r < q->rows; r++) cut = cut || q->length[r] < j + n;
    if (cut) kernels()->tile_cut[pass->dtype](n, (void *[]){x.data, q->length}, &x.row, (double)j);
}

/* The largest score of the queries, 1 / the sum of their fractions, and the dots: (3, Q) for each
 * head. */
static char *stats_of(const Pass *pass, const Room *room, const Block *q, int which) {
    return part_of(pass->of->stats, room->head, which).data + q->from * pass->size;
}

/* ---- forward: y = dropout(weights) v --------------------------------------------------------- */

static void forward_open(const Pass *pass, Block *q) {
    const int64_t w = pass->width;
    double none = -HUGE_VAL;
    kernels()->convert[pass->dtype][F64](w, (void *[]){q->max, &none}, (int64_t[]){1, 0}, 0);
    memset(q->sum, 0, (size_t)(w * pass->size));
}

static void scale_out(const Pass *pass, const Block *q) {
    kernels()->scale_rows[pass->dtype](q->rows, (void *[]){q->out.data, q->out.data, q->scale},
                                       (int64_t[]){q->out.row, q->out.row, 1}, (double)q->out.row);
}

static void forward_tile(const Pass *pass, const Room *room, const Block *q, int64_t j, int64_t n) {
    const Matrix x = room->weights;
    score_tile(pass, room, q, j, n);
    kernels()->tile_softmax[pass->dtype](n, (void *[]){x.data, q->max, q->sum, q->scale},
                                         &pass->width, 0);
    if (j) scale_out(pass, q);
    multiply(pass, q->rows, q->out.row, n, q->out, j > 0, turn(drop(pass, q, x, x, j, n)),
             rows_from(pass, room->keyed[VALUE], j));
}

/* Where every score that a query sees has overflowed to -inf, its sum is 0 as if it saw none: it
 * becomes NaN, the weights' exp(-inf - -inf). */
static void mark_overflow(const Pass *pass, const Room *room, const Block *q) {
    for (int64_t r = 0; r < q->rows; r++)
        if (number_at(pass, q->sum, r) == 0 && attends(pass, room, q, r))
            memset(q->sum + r * pass->size, 0xff, (size_t)pass->size); /* the bits of a NaN */
}

static void forward_close(const Pass *pass, const Room *room, const Block *q) {
    const size_t bytes = (size_t)(q->rows * pass->size);
    mark_overflow(pass, room, q);
    kernels()->invert[pass->dtype](pass->width, (void *[]){q->scale, q->sum}, (int64_t[]){1, 1}, 0);
    scale_out(pass, q);
    memcpy(stats_of(pass, room, q, 0), q->max, bytes);
    memcpy(stats_of(pass, room, q, 1), q->scale, bytes);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* The first block of a head writes dk and dv, the others add: zeros for what it does not see. */
static void clear_keys(const Pass *pass, const Room *room, int64_t end) {
    for (int x = DKEY; x <= DVALUE; x++)
        for (int64_t j = end; j < pass->K; j++)
            memset(rows_from(pass, room->keyed[x], j).data, 0,
                   (size_t)(columns_of(pass->keyed[x]) * pass->size));
}

/* What the forward pass left: max and scale; and the dots, in sum. */
static void read_stats(const Pass *pass, const Room *room, Block *q) {
    const size_t bytes = (size_t)(q->rows * pass->size);
    memset(q->max, 0, (size_t)(3 * pass->width * pass->size));
    memcpy(q->max, stats_of(pass, room, q, 0), bytes);
    memcpy(q->sum, stats_of(pass, room, q, 2), bytes);
    /* nobody writes q->out where a block sees no key: its scale of 0 makes dq zeros */
    if (q->end > 0) memcpy(q->scale, stats_of(pass, room, q, 1), bytes);
    q->lost = false;
    for (int64_t r = 0; r < q->rows; r++) q->lost = q->lost || is_lost(pass, q, r);
}

static void backward_open(const Pass *pass, const Room *room, Block *q) {
    const Matrix dy = part_of(pass->dy, room->head, q->from);
    q->dy = rows_of_block(pass, q, dy, pass->Dv, q->dy_room);
    move_rows(pass, kernels()->turn_rows, q->dy_t, q->dy, q->rows, pass->Dv);
    if (q->from == 0) clear_keys(pass, room, q->end);
}

/* P weights, P~ = dropout(P):  dv += P~' dy,  dP = dropout's backward of dy v',
 * dS = scale P (dP - sum(P dP)),  dk += dS' q,  dq = dS k */
static void backward_tile(const Pass *pass, const Room *room, const Block *q, int64_t j,
                          int64_t n) {
    const int64_t w = pass->width;
    const Matrix p = room->weights, dp = room->dp, *x = room->keyed;
    score_tile(pass, room, q, j, n);
    kernels()->tile_weights[pass->dtype](n, (void *[]){p.data, q->max, q->scale}, &w, 0);
    multiply(pass, n, pass->Dv, q->rows, rows_from(pass, x[DVALUE], j), q->from > 0,
             drop(pass, q, room->dropped, p, j, n), q->dy);
    multiply(pass, n, w, pass->Dv, dp, false, rows_from(pass, x[VALUE], j), q->dy_t);
    drop(pass, q, dp, dp, j, n);
    kernels()->tile_dx[pass->dtype](n, (void *[]){dp.data, p.data, q->sum}, &w, pass->of->scale);
    multiply(pass, n, pass->D, q->rows, rows_from(pass, x[DKEY], j), q->from > 0, dp, q->q);
    multiply(pass, q->rows, q->out.row, n, q->out, j > 0, turn(dp), rows_from(pass, x[KEY], j));
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* The queries of the block, and what else it begins with. */
static void open_block(const Pass *pass, Room *room, Block *q, int64_t from) {
    q->from = from;
    q->rows = MIN(pass->rows, pass->Q - from);
    q->lost = false;
    read_lengths(pass, room, q);
    if (pass->dy) read_stats(pass, room, q);
    q->q = rows_of_block(pass, q, part_of(pass->of->q, room->head, from), pass->D, q->q_room);
    move_rows(pass, kernels()->turn_rows, q->q_t, q->q, q->rows, pass->D);
    kernels()->value[ELEMENTWISE_scale][pass->dtype](pass->D * pass->width,
                                                     (void *[]){q->q_t.data, q->q_t.data},
                                                     (int64_t[]){1, 1}, pass->of->scale);
    draw_block(pass, room, q);
    if (pass->dy) backward_open(pass, room, q);
    else forward_open(pass, q);
}

/* y, or dq, gets its rows: zeros for the queries that attend to nothing. */
static void close_block(const Pass *pass, const Room *room, const Block *q) {
    const Tensor *y = pass->dx[0];
    const Matrix to = part_of(y, room->head, q->from);
    if (!pass->dy) forward_close(pass, room, q);
    kernels()->attended_rows[pass->dtype](q->rows, (void *[]){to.data, q->out.data, q->scale},
                                          (int64_t[]){to.row, q->out.row}, (double)columns_of(y));
}

/* Some blocks of a head, side by side: each tile of keys meets all of them before the next comes.
 */
static void pass_blocks(const Pass *pass, Room *room, int64_t from) {
    Block *last = room->block; /* behind those that are open */
    for (; last < room->block + pass->blocks && from < pass->Q; last++, from += pass->rows)
        open_block(pass, room, last, from);
    for (int64_t j = 0; j < pass->K; j += KEYS)
        for (const Block *q = room->block; q < last; q++)
            if (j < q->end)
                (pass->dy ? backward_tile : forward_tile)(pass, room, q, j, MIN(KEYS, q->end - j));
    for (const Block *q = room->block; q < last; q++) close_block(pass, room, q);
}

/* Before the blocks of a head, what lies apart is copied; after them, gradients are brought to
 * where they belong. */
static void move_keys(const Pass *pass, Room *room, bool after) {
    for (int x = after ? DKEY : KEY; x < KEYED && pass->keyed[x]; x++) {
        const Matrix here = part_of(pass->keyed[x], room->head, 0), copy = room->copy[x];
        const bool apart = lies_apart(pass, pass->keyed[x]);
        room->keyed[x] = apart ? copy : here;
        if (apart && (after || x < DKEY))
            move_rows(pass, kernels()->copy_rows, after ? here : copy, after ? copy : here, pass->K,
                      columns_of(pass->keyed[x]));
    }
}

/* dx: dq, dk, dv, or y alone */
static void pass_part(int worker, int64_t from, int64_t to, void *context) {
    const Pass *pass = context;
    const AttentionOperands *a = pass->of;
    Room room;
    lay_out(pass, &room, pass->rooms + worker * pass->room);
    for (room.head = from; room.head < to; room.head++) {
        if (draws(a) && !keeps_draws(a->mask.scores)) room.generator = a->states[room.head];
        move_keys(pass, &room, false);
        for (int64_t row = 0; row < pass->Q; row += pass->blocks * pass->rows)
            pass_blocks(pass, &room, row);
        if (pass->dy) move_keys(pass, &room, true);
    }
}

Shape attention_scores(const Tensor *q, const Tensor *k) {
    const int n = q->shape.ndim;
    return SHAPE(q->shape.dim[0], n == 4 ? q->shape.dim[1] : 1, q->shape.dim[n - 2],
                 k->shape.dim[n - 2]);
}

Tensor *attention_result(const Tensor *x, const Tensor *last) {
    const int n = x->shape.ndim;
    Shape s = x->shape;
    s.dim[n - 1] = columns_of(last);
    if (n < 4 || x->stride[1] >= x->stride[2]) return tensor_make(s, x->dtype);
    Tensor *y = tensor_make(SHAPE(s.dim[0], s.dim[2], s.dim[1], s.dim[3]), x->dtype);
    Tensor *heads = y ? view_transpose(y, 1, 2) : NULL;
    tensor_release(y);
    return heads;
}

void attention_pass(const AttentionOperands *a, const Tensor *dy, Tensor *const *dx) {
    const Shape s = a->mask.scores;
    if (tensor_numel(dy ? dy : dx[0]) == 0) return;
    Pass pass = {.of = a, .dy = dy, .dx = dx, .keyed = {a->k, a->v}, .dtype = a->q->dtype};
    if (dy) pass.keyed[DKEY] = dx[1], pass.keyed[DVALUE] = dx[2];
    Room measured;
    pass.size = dtype_size(pass.dtype);
    pass.H = s.dim[1], pass.Q = s.dim[2], pass.K = s.dim[3];
    pass.D = columns_of(a->q), pass.Dv = columns_of(a->v);
    pass.rows = MIN(TILE_QUERIES, pass.Q);
    pass.width = whole_vectors(pass.rows);
    pass.blocks = (int)MIN((pass.Q + TILE_QUERIES - 1) / TILE_QUERIES, BLOCKS);
    pass.room = lay_out(&pass, &measured, NULL);
    const int64_t heads = s.dim[0] * s.dim[1];
    const double operations = (double)(heads * pass.Q * pass.K) * (double)(pass.D + pass.Dv);
    const int workers = (int)MIN(workers_for(operations / LANES), heads ? heads : 1);
    pass.rooms = cache_alloc(workers * pass.room);
    if (pass.rooms) work_in_parts(workers, heads, pass_part, &pass);
    cache_free(pass.rooms, workers * pass.room);
}

/* All draws of small heads; or the generator goes past the draws of each, and leaves its state
 * before them. */
void attention_draw(const AttentionOperands *a, Generator *generator) {
    const Shape s = a->mask.scores;
    const int64_t heads = s.dim[0] * s.dim[1], each = s.dim[2] * s.dim[3];
    if (!draws(a)) return;
    if (keeps_draws(s)) draw_bools(generator, heads * each, a->drawn, 1 - a->dropout);
    for (int64_t i = 0; i < heads && !keeps_draws(s); i++) {
        a->states[i] = *generator;
        generator_skip(generator, 2 * each);
    }
}

/* sum(P dP) = sum(y dy): both are the sum of P~ dy v', P~ = dropout(P) */
void attention_dots(const AttentionOperands *a, Tensor **y, const Tensor *dy) {
    const Shape s = a->mask.scores;
    if (!*y && (*y = attention_result(a->q, a->v))) attention_pass(a, NULL, y);
    for (int64_t i = 0; i < s.dim[0] * s.dim[1] && !tensor_pending(); i++) {
        const Matrix of_y = part_of(*y, i, 0), of_dy = part_of(dy, i, 0);
        void *dots = part_of(a->stats, i, 2).data;
        kernels()->row_dots[dy->dtype](s.dim[2], (void *[]){dots, of_y.data, of_dy.data},
                                       (int64_t[]){1, of_y.row, of_dy.row}, (double)columns_of(dy));
    }
}
