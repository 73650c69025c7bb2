/* attention.c - attention from scratch. You write the engine: ten stages, in order. At the end
 * your code alone learns to read words backwards, and says where it looked.
 *
 *     cc -O2 -Wall attention.c -o attention -lm
 *     ./attention 3        checks stage 3
 *     ./attention          checks the stages up to the first that is not right; after ten it trains
 *     ./attention YOURWORD the same, and it reads a word of yours, nine letters from a to z
 *
 * Write where it says "your code". Below are the words that all stages use, and add, an op that is
 * complete: read it first. The checks are in check.h, where there is nothing to write. Each stage
 * names a step of the page explain.html, which shows the same with other numbers. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARROW = 26, TOKENS = 27, WORD = 9, LENGTH = 2 * WORD, WIDTH = 32, HEADS = 2 };

/* A matrix, the gradient of the loss with respect to it, and how it was computed: a and b are the
 * matrices from which forward computes value. backward adds to a's and b's gradients. */
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

/* Element i, j of x and its gradient: V(y, 0, 1) = 3, G(y, 0, 1) += 3. An element that is not there
 * ends the program with a sentence: "line 92: [3][3] IS OUTSIDE of a matrix of 4 x 3". */
#define V(x, i, j) (*at(__LINE__, x, false, i, j))
#define G(x, i, j) (*at(__LINE__, x, true, i, j))
static const char *missing(const Matrix *x) { /* NULL: x has its numbers */
    if (!x) return "IS NULL";
    if (x->value) return NULL;
    return x->forward ? "HAS NO ARRAY yet: make it with matrix()" : "WAS RELEASED";
}
static void end_at(int line, const Matrix *x, int i, int j) {
    if (missing(x)) printf("  line %d: this matrix %s\n", line, missing(x));
    else
        printf("  line %d: [%d][%d] IS OUTSIDE of a matrix of %d x %d\n", line, i, j, x->rows,
               x->columns);
    exit(1);
}
static double *at(int line, const Matrix *x, bool is_grad, int i, int j) {
    if (missing(x) || i < 0 || i >= x->rows || j < 0 || j >= x->columns) end_at(line, x, i, j);
    return (is_grad ? x->grad : x->value) + i * x->columns + j;
}

/* A copy of m on the heap, with arrays of its own, all 0. alive counts the numbers that are not
 * released. */
long alive;
Matrix *matrix(Matrix m) {
    Matrix *x = malloc(sizeof *x);
    *x = m;
    x->value = calloc((size_t)m.rows * (size_t)m.columns, sizeof(double));
    x->grad = calloc((size_t)m.rows * (size_t)m.columns, sizeof(double));
    alive += m.rows * m.columns;
    return x;
}
/* Frees the arrays. The struct stays, without forward, so that it can be said that its matrix was
 * released. */
void release(Matrix *x) {
    if (missing(x)) {
        printf("  release: this matrix %s\n", missing(x));
        exit(1);
    }
    alive -= x->rows * x->columns;
    free(x->value);
    free(x->grad);
    x->value = NULL;
    x->grad = NULL;
    x->forward = NULL;
}

/* y = a + b. A number of a is in one number of y, with the factor 1: its gradient gets that of y.
 * It gets, +=, since a may be used elsewhere, too, and each use adds its part. */
void add_forward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) V(y, i, j) = V(y->a, i, j) + V(y->b, i, j);
}
void add_backward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) {
            G(y->a, i, j) += G(y, i, j);
            G(y->b, i, j) += G(y, i, j);
        }
}

/* ---- stage 1: a product ----------------------------------------------------------------------
 * y = a b: N x K times K x M gives N x M.    y[i][j] = sum over p of a[i][p] b[p][j]
 * By hand: {{1, 2}, {3, 4}} times {{5}, {6}} is {{17}, {39}}, since 1 5 + 2 6 = 17.
 * Page: explain.html#2/f1
 *     ./attention 1        y: 17 | 39 */
void matmul_forward(Matrix *y) {
    /* your code */
}

/* ---- stage 2: softmax that does not look ahead -----------------------------------------------
 * a are scores: a row for each query, a column for each of K keys, at the places 0 to K - 1. The
 * heads stand under each other, Q rows each: y->rows is heads Q, and row r is query i = r % Q. The
 * queries are those of the last Q places, and none sees a key behind its own place, K - Q + i.
 * With 2 heads, Q = 2, K = 3:
 *                                      key: 0 1 2
 *     row 0   head 0   query 0   place 1    x x .      x: seen, j <= K - Q + i
 *     row 1   head 0   query 1   place 2    x x x      .: not seen, y is 0 here
 *     row 2   head 1   query 0   place 1    x x .
 *     row 3   head 1   query 1   place 2    x x x
 * Over the keys that row r sees, and with the largest of these scores as max,
 *     y[r][j] = exp(a[r][j] - max) / sum over the seen l of exp(a[r][l] - max)
 * Without max exp(1000) is infinite.
 * By hand: heads = 1, {{0, 9}, {0, log 3}} gives {{1, 0}, {0.25, 0.75}}.
 * Page: explain.html#3/f3
 *     ./attention 2        y: 1 0 | 0.25 0.75 */
void softmax_forward(Matrix *y) {
    /* your code */
}

/* ---- stage 3: attention with heads -----------------------------------------------------------
 * scores: a = q is Q x (heads D), b = k is K x (heads D); y is (heads Q) x K. Head h has columns
 * h D to h D + D - 1.    y[h Q + i][j] = sum over d of q[i][h D + d] k[j][h D + d] / sqrt(D)
 * mix: a = p is (heads Q) x K, b = v is K x (heads D); y is Q x (heads D).
 *     y[i][h D + d] = sum over j of p[h Q + i][j] v[j][h D + d]
 * By hand, heads = 2, D = 1: q = {{1, 2}}, k = {{3, 4}, {5, 6}} has scores {{3, 5}, {8, 12}}; and
 * p = {{0.25, 0.75}, {0.5, 0.5}}, v = {{4, 2}, {8, 6}} is mixed to {{7, 4}}.
 * Page: explain.html#5/f13
 *     ./attention 3        scores: 3 5 | 8 12, mix: 7 4 */
void scores_forward(Matrix *y) {
    /* your code */
}
void mix_forward(Matrix *y) {
    /* your code */
}

/* ---- stage 4: the tape -----------------------------------------------------------------------
 * The tape is the list of results in the order in which they were computed.
 * record: make a matrix of m (m itself is gone when record returns), run its forward, put it at the
 *     end of the tape, return it.
 * backward: the gradient of loss, 1 x 1, is 1. Then call backward of each result, the last one
 *     first. Why is the gradient of a result complete when its turn comes?
 * clear: release the results, and the tape is empty. (Weights are not on it: they stay.)
 * By hand: x = 3, y = x + x, z = y + y: z = 12, and dz/dy = 2, dz/dx = 4.
 * Page: explain.html#4/a0.0
 *     ./attention 4        z, dz, dy, dx: 12 1 2 4 */
enum { TAPE = 10000 };
Matrix *tape[TAPE];
int length;

Matrix *record(Matrix m) {
    /* your code */
    return NULL;
}
void backward(Matrix *loss) {
    /* your code */
}
void clear(void) {
    /* your code */
}

/* ---- stage 5: backward of the product --------------------------------------------------------
 * In which y is a[i][p], and with which factor? In y[i][j] for every j, with b[p][j]. So
 *     da[i][p] += sum over j of dy[i][j] b[p][j].    And db[p][j]?
 * By hand: in stage 1 with dy = {{1}, {10}}: da = {{5, 6}, {50, 60}}, db = {{31}, {42}}.
 * The check begins with gradients that are not 0, and prints what backward added.
 * Page: explain.html#2/b4.0
 *     ./attention 5        added to da: 5 6 | 50 60, added to db: 31 | 42; then differences */
void matmul_backward(Matrix *y) {
    /* your code */
}

/* ---- stage 6: backward of softmax ------------------------------------------------------------
 * Each score of a row is in all weights y of the row. The derivative of y[j] by a[l] is
 * y[j] ([j = l] - y[l]), where [j = l] is 1 if j = l, else 0. Sum over j, and simplify on paper:
 * one sum for each row is enough. What is it where y = 0?
 * By hand: in stage 2 with dy = {{5, 5}, {0, 8}}: da = {{0, 0}, {-1.5, 1.5}}.
 * Page: explain.html#2/b3.0
 *     ./attention 6        added to da: 0 0 | -1.5 1.5 */
void softmax_backward(Matrix *y) {
    /* your code */
}

/* ---- stage 7: backward of attention ----------------------------------------------------------
 * As in stage 5, with the indices of stage 3, and 1 / sqrt(D). By hand, in stage 3: scores with
 * dy = {{1, 1}, {0, 1}}: dq = {{8, 6}}, dk = {{1, 0}, {1, 2}}; mix with dy = {{1, 10}}:
 * dp = {{4, 8}, {20, 60}}, dv = {{0.25, 5}, {0.75, 5}}.
 * Page: explain.html#5/b13.0
 *     ./attention 7        dq: 8 6, dk: 1 0 | 1 2, dp: 4 8 | 20 60, dv: 0.25 5 | 0.75 5 */
void scores_backward(Matrix *y) {
    /* your code */
}
void mix_backward(Matrix *y) {
    /* your code */
}

/* ---- stage 8: letters in, a loss out ---------------------------------------------------------
 * embed: row i of y is row index[i] of a, complete. Backward: a row that is used twice gets a sum.
 * cross_entropy: a are logits, N x columns, p is softmax of each row (no mask). y, 1 x 1, is a mean
 * of -log p[i][index[i]] over the rows with index[i] >= 0; the others are not asked. Subtract max!
 * The gradient of a[i][j]: dy (p[i][j] - [j = index[i]]) / (number of rows that are asked).
 * By hand: {{0, log 3}, {7, 9}} with index {1, -1}: 0.287682 = -log 0.75, da {{.25, -.25}, {0, 0}};
 * embed with index {2, 0, 2} and dy = {{1, 2}, {3, 4}, {5, 6}}: da = {{3, 4}, {0, 0}, {6, 8}}.
 * Page: explain.html#2/f3, the softmax alone
 *     ./attention 8        da of embed: 3 4 | 0 0 | 6 8, loss: 0.287682, da: 0.25 -0.25 | 0 0 */
void embed_forward(Matrix *y) {
    for (int i = 0; i < y->rows; i++)
        for (int j = 0; j < y->columns; j++) V(y, i, j) = V(y->a, y->index[i], j);
}
void embed_backward(Matrix *y) {
    /* your code */
}
void cross_entropy_forward(Matrix *y) {
    /* your code */
}
void cross_entropy_backward(Matrix *y) {
    /* your code */
}

/* The ops: each records its result on your tape. */
#define OP(name, n, m, ...)                                                                        \
    (Matrix) {                                                                                     \
        .rows = n, .columns = m, .forward = name##_forward, .backward = name##_backward,           \
        __VA_ARGS__                                                                                \
    }
Matrix *add(Matrix *a, Matrix *b) {
    return record(OP(add, a->rows, a->columns, .a = a, .b = b));
}
Matrix *matmul(Matrix *a, Matrix *b) {
    return record(OP(matmul, a->rows, b->columns, .a = a, .b = b));
}
Matrix *softmax(Matrix *a, int heads) {
    return record(OP(softmax, a->rows, a->columns, .a = a, .heads = heads));
}
Matrix *scores(Matrix *q, Matrix *k, int heads) {
    return record(OP(scores, heads * q->rows, k->rows, .a = q, .b = k, .heads = heads));
}
Matrix *mix(Matrix *p, Matrix *v, int heads) {
    return record(OP(mix, p->rows / heads, v->columns, .a = p, .b = v, .heads = heads));
}
Matrix *embed(Matrix *table, const int *index, int n) {
    return record(OP(embed, n, table->columns, .a = table, .index = index));
}
Matrix *cross_entropy(Matrix *logits, const int *index) {
    return record(OP(cross_entropy, 1, 1, .a = logits, .index = index));
}

/* ---- stage 9: the model learns ---------------------------------------------------------------
 * model: token has n letters. x is the embed of TOKEN with token plus that of PLACE with places;
 *     q, k and v are x times QUERY, KEY and VALUE; then scores, softmax, mix with HEADS heads, and
 *     the result times OUT: logits, n x TOKENS. *weights becomes the softmax.
 * update: each number w of each weight becomes w - rate times its gradient.
 * train: each of n examples has LENGTH letters. Of each compute the loss by cross_entropy with its
 *     target, and backward; the gradients of the examples add up. Then update with rate / n. Returns
 *     the mean loss.
 *     Which gradients have to be 0 at the start, and who empties the tape?
 * By hand: if all weights are 0, all TOKENS are as likely, and the loss is log 27 = 3.295837.
 * Page: explain.html#6/sgd
 *     ./attention 9        three checks: model, update, train; with weights 0 the loss: 3.29584 */
enum { TOKEN, PLACE, QUERY, KEY, VALUE, OUT, WEIGHTS };
Matrix *weight[WEIGHTS];
const int places[LENGTH] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
typedef struct {
    int token[LENGTH], target[LENGTH]; /* target -1: not asked */
} Example;

Matrix *model(int n, const int *token, Matrix **weights) {
    /* your code */
    return NULL;
}
void update(double rate) {
    /* your code */
}
double train(int n, const Example *example, double rate) {
    /* your code */
    return 0;
}

/* ---- stage 10: a cache -----------------------------------------------------------------------
 * The keys and values of letters that were read do not change. key and value have room for LENGTH
 * rows; their field rows says how many are there, the same for both. model_next reads one letter
 * more, at place rows: it puts its row of keys and of values into the cache (raise rows first, since
 * V knows only the rows that are there) and returns the logits of this one letter, 1 x TOKENS: the
 * last row of what model returns, without computing the others. Whoever called it reads the logits,
 * then empties the tape: not you. The matrices k and v go then, so copy their numbers.
 * By hand: with n letters in the cache, how many scores has a head? (n + 1, not (n + 1)^2)
 * Page: explain.html#5/f16
 *     ./attention 10       some logits of letters 1 and 18 */
typedef struct {
    Matrix *key, *value;
} Cache;

Matrix *model_next(Cache *cache, int token) {
    /* your code */
    return NULL;
}

#include "check.h" /* the checks, and main */
