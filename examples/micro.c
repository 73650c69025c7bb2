/* micro.c - all of attention and backpropagation in one file, without the library.
 *
 * A matrix knows how it was computed. A tape lists the matrices in the order in which they were
 * computed, and backward walks it from the end to the start. With seven ops the model learns to
 * read a word backwards; then the same model answers with a cache of keys and values. Nothing but
 * attention moves a letter, so its map shows where each answer comes from.
 *
 * exercises/students/attention.c is the same program as an assignment: its bodies are empty there.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARROW = 26, TOKENS = 27, WORD = 9, LENGTH = 2 * WORD, WIDTH = 32, HEADS = 2 };

/* ---- a matrix and its gradient --------------------------------------------------------------- */

/* forward computes value from a's and b's values; backward adds to a's and b's gradients. */
typedef struct Matrix Matrix;
typedef void Rule(Matrix *y);
struct Matrix {
    int rows, columns;
    double *value, *grad; /* row after row */
    Matrix *a, *b;        /* NULL: there is none */
    Rule *forward, *backward;
    int heads;        /* of softmax, scores and mix */
    const int *index; /* of embed: rows of a; of cross_entropy: the right columns */
};

/* Element i, j of x and its gradient. */
#define V(x, i, j) ((x)->value[(i) * (x)->columns + (j)])
#define G(x, i, j) ((x)->grad[(i) * (x)->columns + (j)])

/* A copy of m on the heap, with arrays of zeros. alive counts the numbers that are not released. */
static long alive;
static Matrix *matrix(Matrix m) {
    Matrix *x = malloc(sizeof *x);
    *x = m;
    x->value = calloc((size_t)m.rows * (size_t)m.columns, sizeof(double));
    x->grad = calloc((size_t)m.rows * (size_t)m.columns, sizeof(double));
    alive += m.rows * m.columns;
    return x;
}
static void release(Matrix *x) {
    alive -= x->rows * x->columns;
    free(x->value);
    free(x->grad);
    free(x);
}

/* ---- the tape -------------------------------------------------------------------------------- */

enum { TAPE = 10000 };
static Matrix *tape[TAPE];
static int length;

static Matrix *record(Matrix m) {
    Matrix *y = matrix(m);
    y->forward(y);
    tape[length++] = y;
    return y;
}

/* Whoever uses a result stands after it on the tape. So its gradient is complete when its turn
 * comes. */
static void backward(Matrix *loss) {
    loss->grad[0] = 1;
    for (int i = length - 1; i >= 0; i--) tape[i]->backward(tape[i]);
}

static void clear(void) {
    while (length > 0) release(tape[--length]);
}

/* ---- the ops, each with its backward --------------------------------------------------------- */

/* y = a + b. Backward adds, +=, since a may be used elsewhere, too. */
static void add_forward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) V(y, i, j) = V(y->a, i, j) + V(y->b, i, j);
}
static void add_backward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) {
            G(y->a, i, j) += G(y, i, j);
            G(y->b, i, j) += G(y, i, j);
        }
}

/* y = a b. a[i][p] meets b[p][j] in y[i][j], so each is the factor of the other's gradient. */
static void matmul_forward(Matrix *y) {
    const Matrix *a = y->a;
    const Matrix *b = y->b;
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++)
            for (int p = 0; p < a->columns; p++) V(y, i, j) += V(a, i, p) * V(b, p, j);
}
static void matmul_backward(Matrix *y) {
    Matrix *a = y->a;
    Matrix *b = y->b;
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++)
            for (int p = 0; p < a->columns; p++) {
                G(a, i, p) += G(y, i, j) * V(b, p, j);
                G(b, p, j) += G(y, i, j) * V(a, i, p);
            }
}

/* Each row of y is the softmax of a's row over the keys that its query sees. The queries are the
 * last of the places, so query i stands at place keys - queries + i, and sees up to there. */
static void softmax_forward(Matrix *y) {
    const int queries = y->rows / y->heads, keys = y->columns;
    for (int r = 0; r < y->rows; r++) {
        const int seen = keys - queries + r % queries + 1;
        double max = V(y->a, r, 0), sum = 0;
        for (int j = 0; j < seen; j++) max = fmax(max, V(y->a, r, j));
        for (int j = 0; j < seen; j++) sum += exp(V(y->a, r, j) - max);
        for (int j = 0; j < seen; j++) V(y, r, j) = exp(V(y->a, r, j) - max) / sum;
    }
}
/* da[l] = sum over j of dy[j] y[j] ([j = l] - y[l]) = y[l] (dy[l] - sum over j of y[j] dy[j]) */
static void softmax_backward(Matrix *y) {
    for (int r = 0; r < y->rows; r++) {
        double sum = 0;
        for (int j = 0; j < y->columns; j++) sum += V(y, r, j) * G(y, r, j);
        for (int j = 0; j < y->columns; j++) G(y->a, r, j) += V(y, r, j) * (G(y, r, j) - sum);
    }
}

/* y[h Q + i][j] = q[i] . k[j] / sqrt(D) in the D columns of head h. a is q, b is k. */
static void scores_forward(Matrix *y) {
    const int Q = y->a->rows, K = y->b->rows, D = y->a->columns / y->heads;
    for (int h = 0; h < y->heads; h++)
        for (int i = 0; i < Q; i++)
            for (int j = 0; j < K; j++) {
                double sum = 0;
                for (int d = h * D; d < h * D + D; d++) sum += V(y->a, i, d) * V(y->b, j, d);
                V(y, h * Q + i, j) = sum / sqrt(D);
            }
}
static void scores_backward(Matrix *y) {
    const int Q = y->a->rows, K = y->b->rows, D = y->a->columns / y->heads;
    for (int h = 0; h < y->heads; h++)
        for (int i = 0; i < Q; i++)
            for (int j = 0; j < K; j++)
                for (int d = h * D; d < h * D + D; d++) {
                    G(y->a, i, d) += G(y, h * Q + i, j) * V(y->b, j, d) / sqrt(D);
                    G(y->b, j, d) += G(y, h * Q + i, j) * V(y->a, i, d) / sqrt(D);
                }
}

/* y[i] = sum over j of p[h Q + i][j] v[j] in the columns of head h. a is p, b is v. */
static void mix_forward(Matrix *y) {
    const int Q = y->rows, K = y->b->rows, D = y->columns / y->heads;
    for (int h = 0; h < y->heads; h++)
        for (int i = 0; i < Q; i++)
            for (int d = h * D; d < h * D + D; d++)
                for (int j = 0; j < K; j++) V(y, i, d) += V(y->a, h * Q + i, j) * V(y->b, j, d);
}
static void mix_backward(Matrix *y) {
    const int Q = y->rows, K = y->b->rows, D = y->columns / y->heads;
    for (int h = 0; h < y->heads; h++)
        for (int i = 0; i < Q; i++)
            for (int j = 0; j < K; j++)
                for (int d = h * D; d < h * D + D; d++) {
                    G(y->a, h * Q + i, j) += G(y, i, d) * V(y->b, j, d);
                    G(y->b, j, d) += G(y, i, d) * V(y->a, h * Q + i, j);
                }
}

/* Row i of y is row index[i] of a. */
static void embed_forward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) V(y, i, j) = V(y->a, y->index[i], j);
}
static void embed_backward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) G(y->a, y->index[i], j) += G(y, i, j);
}

/* The mean of log(sum of exp(a[i])) - a[i][index[i]] over the rows with index[i] >= 0. */
static void cross_entropy_forward(Matrix *y) {
    int asked = 0;
    for (int i = 0; i < y->a->rows; i++) {
        if (y->index[i] < 0) continue;
        double max = V(y->a, i, 0), sum = 0;
        for (int j = 0; j < y->a->columns; j++) max = fmax(max, V(y->a, i, j));
        for (int j = 0; j < y->a->columns; j++) sum += exp(V(y->a, i, j) - max);
        V(y, 0, 0) += log(sum) + max - V(y->a, i, y->index[i]);
        asked++;
    }
    V(y, 0, 0) /= asked;
}
/* da[i][j] = dy (softmax(a[i])[j] - [j = index[i]]) / asked */
static void cross_entropy_backward(Matrix *y) {
    int asked = 0;
    for (int i = 0; i < y->a->rows; i++) asked += y->index[i] >= 0;
    for (int i = 0; i < y->a->rows; i++) {
        if (y->index[i] < 0) continue;
        double max = V(y->a, i, 0), sum = 0;
        for (int j = 0; j < y->a->columns; j++) max = fmax(max, V(y->a, i, j));
        for (int j = 0; j < y->a->columns; j++) sum += exp(V(y->a, i, j) - max);
        for (int j = 0; j < y->a->columns; j++) {
            const double p = exp(V(y->a, i, j) - max) / sum;
            G(y->a, i, j) += G(y, 0, 0) * (p - (j == y->index[i])) / asked;
        }
    }
}

/* Each op records its result. */
#define OP(name, n, m, ...)                                                                        \
    (Matrix) {                                                                                     \
        .rows = n, .columns = m, .forward = name##_forward, .backward = name##_backward,           \
        __VA_ARGS__                                                                                \
    }
static Matrix *add(Matrix *a, Matrix *b) {
    return record(OP(add, a->rows, a->columns, .a = a, .b = b));
}
static Matrix *matmul(Matrix *a, Matrix *b) {
    return record(OP(matmul, a->rows, b->columns, .a = a, .b = b));
}
static Matrix *softmax(Matrix *a, int heads) {
    return record(OP(softmax, a->rows, a->columns, .a = a, .heads = heads));
}
static Matrix *scores(Matrix *q, Matrix *k, int heads) {
    return record(OP(scores, heads * q->rows, k->rows, .a = q, .b = k, .heads = heads));
}
static Matrix *mix(Matrix *p, Matrix *v, int heads) {
    return record(OP(mix, p->rows / heads, v->columns, .a = p, .b = v, .heads = heads));
}
static Matrix *embed(Matrix *table, const int *index, int n) {
    return record(OP(embed, n, table->columns, .a = table, .index = index));
}
static Matrix *cross_entropy(Matrix *logits, const int *index) {
    return record(OP(cross_entropy, 1, 1, .a = logits, .index = index));
}

/* ---- the model ------------------------------------------------------------------------------- */

enum { TOKEN, PLACE, QUERY, KEY, VALUE, OUT, WEIGHTS };
static Matrix *weight[WEIGHTS];
static const int places[LENGTH] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
typedef struct {
    int token[LENGTH], target[LENGTH]; /* target -1: not asked */
} Example;

/* The logits of n letters, n x TOKENS, and where each letter looks. */
static Matrix *model(int n, const int *token, Matrix **weights) {
    Matrix *x = add(embed(weight[TOKEN], token, n), embed(weight[PLACE], places, n));
    Matrix *q = matmul(x, weight[QUERY]);
    Matrix *k = matmul(x, weight[KEY]);
    Matrix *v = matmul(x, weight[VALUE]);
    *weights = softmax(scores(q, k, HEADS), HEADS);
    return matmul(mix(*weights, v, HEADS), weight[OUT]);
}

/* A step against the gradient. */
static void update(double rate) {
    for (int i = 0; i < WEIGHTS; i++)
        for (int j = 0; j < weight[i]->rows * weight[i]->columns; j++)
            weight[i]->value[j] -= rate * weight[i]->grad[j];
}

/* A step with the mean gradient of n examples. Returns their mean loss. */
static double train(int n, const Example *example, double rate) {
    double sum = 0;
    Matrix *weights;
    for (int i = 0; i < WEIGHTS; i++)
        for (int j = 0; j < weight[i]->rows * weight[i]->columns; j++) weight[i]->grad[j] = 0;
    for (int i = 0; i < n; i++) {
        Matrix *loss = cross_entropy(model(LENGTH, example[i].token, &weights), example[i].target);
        sum += V(loss, 0, 0);
        backward(loss);
        clear();
    }
    update(rate / n);
    return sum / n;
}

/* The keys and values of the letters that were read; key and value have room for LENGTH rows. */
typedef struct {
    Matrix *key, *value;
} Cache;

/* Reads one letter more. Its logits are the last row of model's, with one query instead of n. */
static Matrix *model_next(Cache *cache, int token) {
    const int n = cache->key->rows;
    Matrix *x = add(embed(weight[TOKEN], &token, 1), embed(weight[PLACE], places + n, 1));
    Matrix *q = matmul(x, weight[QUERY]);
    Matrix *k = matmul(x, weight[KEY]);
    Matrix *v = matmul(x, weight[VALUE]);
    cache->key->rows = n + 1;
    cache->value->rows = n + 1;
    for (int d = 0; d < WIDTH; d++) {
        V(cache->key, n, d) = V(k, 0, d);
        V(cache->value, n, d) = V(v, 0, d);
    }
    Matrix *p = softmax(scores(q, cache->key, HEADS), HEADS);
    return matmul(mix(p, cache->value, HEADS), weight[OUT]);
}

/* ---- a word, an empty cache ------------------------------------------------------------------ */

static double uniform(void) { /* -1 to 1 */
    static unsigned state = 1;
    state = state * 1664525 + 1013904223;
    return (state >> 8) / 8388608.0 - 1;
}

/* A word, an arrow, and the word backwards; only this is asked. NULL: random letters. */
static Example example_of(const char *word) {
    Example e;
    for (int i = 0; i < WORD; i++) {
        e.token[i] = word ? word[i] - 'a' : (int)((uniform() + 1) * ARROW / 2);
        e.target[i] = -1;
        e.target[LENGTH - 1 - i] = e.token[i];
    }
    e.token[WORD] = ARROW;
    for (int i = WORD + 1; i < LENGTH; i++) e.token[i] = e.target[i - 1];
    return e;
}

static Cache new_cache(void) {
    Cache cache = {matrix((Matrix){.rows = LENGTH, .columns = WIDTH}),
                   matrix((Matrix){.rows = LENGTH, .columns = WIDTH})};
    cache.key->rows = 0;
    cache.value->rows = 0;
    return cache;
}

/* ---- training -------------------------------------------------------------------------------- */

static void make_weights(void) {
    static const int rows[WEIGHTS] = {TOKENS, LENGTH, WIDTH, WIDTH, WIDTH, WIDTH};
    for (int i = 0; i < WEIGHTS; i++) {
        const int columns = i == OUT ? TOKENS : WIDTH;
        weight[i] = matrix((Matrix){.rows = rows[i], .columns = columns});
        for (int j = 0; j < rows[i] * columns; j++) weight[i]->value[j] = uniform() / 2;
    }
}

/* What the model answers, letter by letter: each is read before the next one is asked. */
static void answer(const char *word, Cache *cache) {
    Example e = example_of(word);
    Matrix *weights;
    printf("%s%s > ", word, cache ? " with the cache" : "");
    for (int n = 1; n <= LENGTH; n++) {
        const Matrix *y = cache ? model_next(cache, e.token[n - 1]) : model(n, e.token, &weights);
        int best = 0;
        for (int j = 1; j < ARROW; j++)
            if (V(y, y->rows - 1, j) > V(y, y->rows - 1, best)) best = j;
        if (n > WORD) putchar('a' + best);
        if (n > WORD && n < LENGTH) e.token[n] = best;
        clear();
    }
    putchar('\n');
}

/* Where each letter of the answer looks. */
static void print_map(const char *word) {
    const Example e = example_of(word);
    Matrix *weights;
    model(LENGTH, e.token, &weights);
    for (int h = 0; h < HEADS; h++) {
        printf("\n  head %d: a row is an answer, a column what it looked at\n\n    %s>", h, word);
        for (int i = WORD; i < LENGTH; i++) {
            printf("\n  %c ", 'a' + e.target[i]);
            for (int j = 0; j <= WORD; j++)
                putchar(" .:-=+*#%@"[(int)(9.99 * V(weights, h * LENGTH + i, j))]);
        }
        putchar('\n');
    }
    clear();
}

int main(void) {
    static const char *const words[] = {"backwards", "gradients", "attention"};
    make_weights();
    for (int step = 0; step <= 200; step++) {
        Example e[16];
        for (int i = 0; i < 16; i++) e[i] = example_of(NULL);
        const double loss = train(16, e, 1);
        if (step % 20 == 0) printf("step %3d: loss %.4f\n", step, loss);
    }
    for (int i = 0; i < 3; i++) {
        Cache cache = new_cache();
        answer(words[i], &cache);
        answer(words[i], NULL);
        release(cache.key);
        release(cache.value);
    }
    print_map("attention");
    for (int i = 0; i < WEIGHTS; i++) release(weight[i]);
    return alive != 0; /* all is released */
}
