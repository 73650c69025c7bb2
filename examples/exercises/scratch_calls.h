/* scratch_calls.h - how each of the eighteen functions of scratch/attention.c is called on arrays,
 * so that it is marked as an exercise is. It stands behind micro.c's engine: in the marker, with
 * the right functions and the mistakes, and in the student's program, with one function of the
 * student's. */

/* ---- the ops: matrices on arrays ------------------------------------------------------------- */

static Matrix on(int rows, int columns, void *value) {
    Matrix m = {.rows = rows, .columns = columns, .value = value};
    m.grad = calloc((size_t)(rows * columns) + 1, sizeof(double));
    return m;
}

static void run_forward(Rule *f, Matrix y, Matrix a, Matrix b) {
    y.a = &a;
    y.b = b.value ? &b : NULL;
    f(&y);
    free(y.grad);
    free(a.grad);
    free(b.grad);
}

/* The gradients are 1 before: backward adds to them. */
static void run_backward(Rule *f, Matrix y, const double *dy, Matrix a, double *da, Matrix b,
                         double *db) {
    for (int i = 0; i < y.rows * y.columns; i++) y.grad[i] = dy[i];
    for (int i = 0; i < a.rows * a.columns; i++) da[i] = 1;
    for (int i = 0; i < b.rows * b.columns; i++) db[i] = 1;
    free(a.grad);
    free(b.grad);
    a.grad = da;
    b.grad = db;
    y.a = &a;
    y.b = b.value ? &b : NULL;
    f(&y);
    for (int i = 0; i < a.rows * a.columns; i++) da[i] -= 1;
    for (int i = 0; i < b.rows * b.columns; i++) db[i] -= 1;
    free(y.grad);
}

/* The sizes, the numbers and the arrays of a call, in the order of the exercise's parameters. */
#define CALL const int *s, const double *number, void *const *x
static const Matrix none;

static void call_matmul_forward(Rule *f, CALL) {
    run_forward(f, on(s[0], s[2], x[0]), on(s[0], s[1], x[1]), on(s[1], s[2], x[2]));
}
static void call_matmul_backward(Rule *f, CALL) {
    run_backward(f, on(s[0], s[2], x[4]), x[5], on(s[0], s[1], x[2]), x[0], on(s[1], s[2], x[3]),
                 x[1]);
}

/* Q, K, heads, and of scores and mix D */
static Matrix with_heads(Matrix m, int heads) {
    m.heads = heads;
    return m;
}
static void call_softmax_forward(Rule *f, CALL) {
    const int rows = s[0] * s[2];
    run_forward(f, with_heads(on(rows, s[1], x[0]), s[2]), on(rows, s[1], x[1]), none);
}
static void call_softmax_backward(Rule *f, CALL) {
    const int rows = s[0] * s[2];
    run_backward(f, with_heads(on(rows, s[1], x[2]), s[2]), x[3], on(rows, s[1], x[1]), x[0], none,
                 NULL);
}
static void call_scores_forward(Rule *f, CALL) {
    const int width = s[2] * s[3];
    run_forward(f, with_heads(on(s[0] * s[2], s[1], x[0]), s[2]), on(s[0], width, x[1]),
                on(s[1], width, x[2]));
}
static void call_scores_backward(Rule *f, CALL) {
    const int width = s[2] * s[3];
    run_backward(f, with_heads(on(s[0] * s[2], s[1], x[4]), s[2]), x[5], on(s[0], width, x[2]),
                 x[0], on(s[1], width, x[3]), x[1]);
}
static void call_mix_forward(Rule *f, CALL) {
    const int width = s[2] * s[3];
    run_forward(f, with_heads(on(s[0], width, x[0]), s[2]), on(s[0] * s[2], s[1], x[1]),
                on(s[1], width, x[2]));
}
static void call_mix_backward(Rule *f, CALL) {
    const int width = s[2] * s[3];
    run_backward(f, with_heads(on(s[0], width, x[4]), s[2]), x[5], on(s[0] * s[2], s[1], x[2]),
                 x[0], on(s[1], width, x[3]), x[1]);
}

/* Indices come as doubles, as all arrays do. */
static Matrix with_index(Matrix m, int n, const double *from) {
    int *index = calloc((size_t)n + 1, sizeof *index);
    for (int i = 0; i < n; i++) index[i] = (int)from[i];
    m.index = index;
    return m;
}
static void call_embed_backward(Rule *f, CALL) {
    const Matrix y = with_index(on(s[0], s[2], x[3]), s[0], x[2]);
    run_backward(f, y, x[4], on(s[1], s[2], x[1]), x[0], none, NULL);
    free((void *)y.index);
}
static void call_cross_entropy_forward(Rule *f, CALL) {
    const Matrix y = with_index(on(1, 1, x[0]), s[0], x[2]);
    run_forward(f, y, on(s[0], s[1], x[1]), none);
    free((void *)y.index);
}
static void call_cross_entropy_backward(Rule *f, CALL) {
    const Matrix y = with_index(on(1, 1, x[3]), s[0], x[2]);
    run_backward(f, y, x[4], on(s[0], s[1], x[1]), x[0], none, NULL);
    free((void *)y.index);
}

/* ---- the tape -------------------------------------------------------------------------------- */

/* An op whose forward adds 1. Its rules count. */
static int forwards, backwards, order[64];
static void step_forward(Matrix *y) {
    forwards++;
    V(y, 0, 0) += V(y->a, 0, 0) + 1;
}
static void step_backward(Matrix *y) {
    order[backwards++ % 64] = y->heads;
    G(y->a, 0, 0) += G(y, 0, 0);
}

enum { STEPS = 4 };
static Matrix *scalar(double value) {
    Matrix *x = matrix((Matrix){.rows = 1, .columns = 1});
    x->value[0] = value;
    return x;
}
/* x + 1, x + 2, ... on an empty tape. */
static bool chain(Matrix *(*f)(Matrix), Matrix *x, Matrix **y) {
    length = 0;
    forwards = 0;
    backwards = 0;
    for (int i = 0; i < STEPS; i++) {
        Matrix *from = i ? y[i - 1] : x;
        y[i] = f((Matrix){.rows = 1,
                          .columns = 1,
                          .a = from,
                          .forward = step_forward,
                          .backward = step_backward,
                          .heads = i + 1});
        if (!y[i]) return false;
    }
    return true;
}
static void put(void *array, int i, double number) { ((double *)array)[i] = number; }
static double get(const void *array, int i) { return ((const double *)array)[i]; }

/* Outputs are 0 where nothing comes. */
static void zero(void *array, int n) {
    for (int i = 0; i < n; i++) put(array, i, 0);
}

/* value, tape, length, made, runs; x */
static void call_record(Matrix *(*f)(Matrix), CALL) {
    Matrix *leaf = scalar(get(x[5], 0)), *y[STEPS] = {NULL};
    const long before = alive;
    for (int i = 0; i < 5; i++) zero(x[i], i < 2 ? STEPS : 1);
    if (chain(f, leaf, y)) {
        for (int i = 0; i < STEPS; i++) put(x[0], i, y[i]->value[0]);
        for (int i = 0; i < STEPS; i++)
            for (int k = 0; k < STEPS && k < length; k++)
                if (tape[k] == y[i]) put(x[1], k, i + 1);
        put(x[2], 0, length);
        put(x[3], 0, (double)(alive - before));
        put(x[4], 0, forwards);
        for (int i = 0; i < STEPS; i++) release(y[i]);
    }
    length = 0;
    release(leaf);
}

/* order, runs, dloss, dx, twice; x. At last x + x, three times over: twice is x + 8. */
static void call_backward(void (*f)(Matrix *), CALL) {
    Matrix *leaf = scalar(0), *y[STEPS];
    chain(record, leaf, y);
    f(y[STEPS - 1]);
    for (int i = 0; i < STEPS; i++) put(x[0], i, i < backwards ? order[i] : 0);
    put(x[1], 0, backwards);
    put(x[2], 0, y[STEPS - 1]->grad[0]);
    put(x[3], 0, leaf->grad[0]);
    while (length > 0) release(tape[--length]);
    leaf->grad[0] = get(x[5], 0);
    Matrix *sum = leaf;
    for (int i = 0; i < 3; i++) sum = add(sum, sum);
    f(sum);
    put(x[4], 0, leaf->grad[0]);
    while (length > 0) release(tape[--length]);
    release(leaf);
}

/* length, left, again; x */
static void call_clear(void (*f)(void), CALL) {
    Matrix *leaf = scalar(get(x[3], 0)), *y[STEPS];
    const long before = alive;
    chain(record, leaf, y);
    f();
    const long left = alive - before;
    put(x[0], 0, length);
    put(x[1], 0, (double)left);
    if (left == STEPS) /* it has released nothing */
        for (int i = 0; i < STEPS; i++) release(y[i]);
    for (int i = 0; i < length && left == length && left < STEPS; i++) release(tape[i]);
    length = 0;
    chain(record, leaf, y);
    backward(y[STEPS - 1]);
    put(x[2], 0, leaf->grad[0] + y[STEPS - 1]->value[0]);
    while (length > 0) release(tape[--length]);
    release(leaf);
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The six weights are arrays; their gradients are 0. */
static Matrix weights_[WEIGHTS];
static void take_weights(void *const *x) {
    static const int rows[WEIGHTS] = {TOKENS, LENGTH, WIDTH, WIDTH, WIDTH, WIDTH};
    length = 0;
    for (int i = 0; i < WEIGHTS; i++) {
        weights_[i] = on(rows[i], i == OUT ? TOKENS : WIDTH, x[i]);
        weight[i] = &weights_[i];
    }
}
static void drop_weights(void) {
    for (int i = 0; i < WEIGHTS; i++) free(weights_[i].grad);
    while (length > 0) release(tape[--length]);
}
static void copy_if(const Matrix *from, int rows, int columns, void *to) {
    if (from->rows == rows && from->columns == columns)
        for (int i = 0; i < rows * columns; i++) put(to, i, from->value[i]);
}
static void read_tokens(int *token, int n, const double *from) {
    for (int i = 0; i < n; i++) token[i] = (int)from[i];
}

/* sizes, weights, logits; the six weights, token */
static void call_model(Matrix *(*f)(int, const int *, Matrix **), CALL) {
    int token[LENGTH];
    Matrix *p = NULL;
    zero(x[0], 4);
    zero(x[1], HEADS * s[0] * s[0]);
    zero(x[2], s[0] * TOKENS);
    take_weights(x + 3);
    read_tokens(token, s[0], x[9]);
    const Matrix *y = f(s[0], token, &p);
    if (p) {
        put(x[0], 0, p->rows);
        put(x[0], 1, p->columns);
        copy_if(p, HEADS * s[0], s[0], x[1]);
    }
    if (y) {
        put(x[0], 2, y->rows);
        put(x[0], 3, y->columns);
        copy_if(y, s[0], TOKENS, x[2]);
    }
    drop_weights();
}

/* the six weights; their gradients */
static void call_update(void (*f)(double), CALL) {
    take_weights(x);
    for (int i = 0; i < WEIGHTS; i++)
        for (int j = 0; j < weight[i]->rows * weight[i]->columns; j++)
            weight[i]->grad[j] = get(x[WEIGHTS + i], j);
    f(number[0]);
    drop_weights();
}

/* Several steps in a row, each with the same examples. the six weights, loss, length; letters */
static void call_train(double (*f)(int, const Example *, double), CALL) {
    Example e[4];
    take_weights(x);
    for (int k = 0; k < s[0]; k++)
        for (int i = 0; i < LENGTH; i++) {
            const int mirror = LENGTH - 1 - i;
            const double *letter = (const double *)x[WEIGHTS + 2] + k * WORD;
            e[k].token[i] = i == WORD ? ARROW : (int)letter[i < WORD ? i : mirror + 1];
            e[k].target[i] = i < WORD ? -1 : (int)letter[mirror];
        }
    for (int step = 0; step < s[1]; step++) {
        put(x[WEIGHTS], step, f(s[0], e, number[0]));
        put(x[WEIGHTS + 1], step, length);
    }
    drop_weights();
}

enum { MOST_MADE = 400 };
/* Two texts in turn, so that a cache which is static shows. logits, rows, made; the six weights,
 * token */
static void call_model_next(Matrix *(*f)(Cache *, int), CALL) {
    const int n = s[0];
    Cache cache[2];
    zero(x[0], 2 * n * TOKENS);
    take_weights(x + 3);
    for (int k = 0; k < 2; k++) {
        cache[k].key = matrix((Matrix){.rows = LENGTH, .columns = WIDTH});
        cache[k].value = matrix((Matrix){.rows = LENGTH, .columns = WIDTH});
        cache[k].key->rows = 0;
        cache[k].value->rows = 0;
    }
    for (int i = 0; i < 2 * n; i++) {
        Cache *c = &cache[i % 2];
        const long before = alive;
        const Matrix *y = f(c, (int)get(x[9], i));
        if (y) copy_if(y, 1, TOKENS, (double *)x[0] + i * TOKENS);
        put(x[1], 2 * i, c->key->rows);
        put(x[1], 2 * i + 1, c->value->rows);
        put(x[2], i, alive - before > MOST_MADE);
        while (length > 0) release(tape[--length]);
    }
    for (int k = 0; k < 2; k++) {
        cache[k].key->rows = LENGTH;
        cache[k].value->rows = LENGTH;
        release(cache[k].key);
        release(cache[k].value);
    }
    drop_weights();
}
