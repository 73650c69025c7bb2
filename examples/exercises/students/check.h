/* check.h - the checks of attention.c, the training, and main. There is nothing to write here. */

/* The checks leave their matrices to the end of the program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

#define LIST(...)              ((const double[]){__VA_ARGS__})
#define M(rows, columns, ...)  numbers(rows, columns, LIST(__VA_ARGS__))
#define SAME(name, array, ...) same(name, sizeof LIST(__VA_ARGS__) / 8, array, LIST(__VA_ARGS__))

/* Prints the numbers of an array, and what they should be if they differ. */
static double tolerance = 1e-9;
static bool good; /* has all been right in this stage? */
static void same(const char *name, int n, const double *is, const double *should) {
    bool right = true;
    printf("  %s:", name);
    for (int i = 0; i < n; i++) printf(" %g", is[i] + 0);
    for (int i = 0; i < n; i++)
        right &= fabs(is[i] - should[i]) <= tolerance * (1 + fabs(should[i]));
    for (int i = 0; !right && i < n; i++) printf("%s %g", i ? "" : ", SHOULD BE", should[i]);
    printf("\n");
    good &= right;
}
static bool wrong(const char *text) {
    printf("  %s\n", text);
    good = false;
    return false;
}
static Matrix *zeros(int rows, int columns) {
    return matrix((Matrix){.rows = rows, .columns = columns});
}
static Matrix *numbers(int rows, int columns, const double *list) {
    Matrix *x = zeros(rows, columns);
    for (int i = 0; i < rows * columns; i++) x->value[i] = list[i];
    return x;
}
static unsigned state = 1;
static double uniform(void) { /* -1 to 1 */
    state = state * 1664525 + 1013904223;
    return (state >> 8) / 8388608.0 - 1;
}
static Matrix *random_matrix(int rows, int columns, double scale) {
    Matrix *x = zeros(rows, columns);
    for (int i = 0; i < rows * columns; i++) x->value[i] = scale * uniform();
    return x;
}
static Matrix *compute(Matrix m, const double *dy) {
    Matrix *y = matrix(m);
    y->forward(y);
    for (int i = 0; dy && i < y->rows * y->columns; i++) y->grad[i] = dy[i];
    if (dy) y->backward(y);
    return y;
}
/* Compares the gradient of x, an input of y, with differences. It begins as 1: backward adds. */
static void agrees(const char *name, Matrix y, Matrix *x) {
    double dy[99];
    if (!good) return;
    for (int i = 0; i < 99; i++) dy[i] = cos(i + 1);
    for (int i = 0; i < x->rows * x->columns; i++) x->grad[i] = 1;
    compute(y, dy);
    for (int at = 0; at < x->rows * x->columns; at++) {
        const double old = x->value[at], h = 1e-5;
        double slope = 0;
        for (int side = -1; side <= 1; side += 2) {
            x->value[at] = old + side * h;
            const Matrix *z = compute(y, NULL);
            for (int i = 0; i < y.rows * y.columns; i++)
                slope += side * z->value[i] * dy[i] / (2 * h);
        }
        x->value[at] = old;
        if (fabs(x->grad[at] - 1 - slope) <= 1e-6 * (1 + fabs(slope))) continue;
        printf("  %s[%d][%d] was 1 before backward, is %g, SHOULD BE 1 + %g (by differences)\n",
               name, at / x->columns, at % x->columns, x->grad[at], slope);
        good = false;
        return;
    }
    printf("  %s agrees with differences\n", name);
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
static void make_weights(double scale) {
    const int rows[WEIGHTS] = {TOKENS, LENGTH, WIDTH, WIDTH, WIDTH, WIDTH};
    state = 1;
    for (int i = 0; i < WEIGHTS; i++)
        weight[i] = random_matrix(rows[i], i == OUT ? TOKENS : WIDTH, scale);
}
static Cache new_cache(void) {
    Cache cache = {zeros(LENGTH, WIDTH), zeros(LENGTH, WIDTH)};
    cache.key->rows = 0;
    cache.value->rows = 0;
    return cache;
}

static int forwards, backwards;
static void count_forward(Matrix *y) {
    y->value[0] = ++forwards;
}
static void count_backward(Matrix *y) {
    backwards += y->rows;
}
static bool check_tape(void) {
    Matrix *x = M(1, 1, 3), *y = add(x, x), *z = y ? add(y, y) : NULL;
    const long before = alive - 2;
    if (!z || length != 2 || tape[0] != y || tape[1] != z)
        return wrong("two results SHOULD BE on the tape, in the order of their recording");
    backward(z);
    SAME("z, dz, dy, dx", LIST(*z->value, *z->grad, *y->grad, *x->grad), 12, 1, 2, 4);
    clear();
    SAME("after clear: results, what is not released", LIST(length, alive - before), 0, 0);
    if (good) {
        backward(add(x, x));
        clear();
    }
    SAME("x, dx with another x + x", LIST(*x->value, *x->grad), 3, 6);
    y = record(OP(count, 1, 1, .a = x, .b = x)); /* no add */
    SAME("how often its own forward runs", y->value, 1);
    if (good) backward(y);
    if (good) SAME("how often its own backward runs", LIST(backwards), 1);
    clear();
    return good;
}

/* Weights of a few numbers each, so that one part of the model shows in each result. */
static void check_parts(void) {
    const int token[2] = {0, 1};
    Matrix *p = NULL, *y;
    make_weights(0);
    if (!(y = model(2, token, &p)) || !p) {
        wrong("model or *weights is NULL");
        return;
    }
    SAME("rows and columns of the logits", LIST(y->rows, y->columns), 2, TOKENS);
    SAME("rows and columns of *weights, the softmax", LIST(p->rows, p->columns), 2 * HEADS, 2);
    clear();
    if (!good) return;
    weight[VALUE]->value[0] = 1;
    weight[OUT]->value[0] = 1;
    weight[TOKEN]->value[0] = 1;
    y = model(2, token, &p);
    SAME("logits of TOKEN alone: values, mixed, times OUT", LIST(V(y, 0, 0), V(y, 1, 0)), 1, 0.5);
    clear();
    weight[TOKEN]->value[0] = 0;
    weight[PLACE]->value[WIDTH] = 1;
    y = model(2, token, &p);
    SAME("logits of PLACE alone: are the places added?", LIST(V(y, 0, 0), V(y, 1, 0)), 0, 0.5);
    clear();
    /* Head 0: every query is 4 and key j is j log 2, so its weights grow with j. */
    weight[PLACE]->value[1] = 1;
    weight[PLACE]->value[WIDTH + 1] = 1;
    weight[QUERY]->value[WIDTH] = 4;
    weight[KEY]->value[0] = log(2);
    model(2, token, &p);
    SAME("*weights of head 0, key 1 is larger, all queries are 4: are QUERY and KEY right?",
         p->value, 1, 0, 1 / 3., 2 / 3.);
    SAME("*weights of head 1, all scores are 0: has softmax HEADS heads?", p->value + 4, 1, 0, 0.5,
         0.5);
    clear();
}
/* Weights of 2 x 3 numbers, with others behind them that are not theirs. */
static void check_update(void) {
    static double value[WEIGHTS][4096], grad[WEIGHTS][4096];
    double is[WEIGHTS], should[WEIGHTS], behind = 0;
    for (int i = 0; i < WEIGHTS; i++) {
        weight[i] = zeros(2, 3);
        weight[i]->value = value[i];
        weight[i]->grad = grad[i];
        for (int j = 0; j < 4096; j++) grad[i][j] = 4;
        for (int j = 0; j < 6; j++) value[i][j] = 3;
        should[i] = 1;
    }
    update(0.5);
    for (int i = 0; i < WEIGHTS; i++) {
        is[i] =
            (value[i][0] + value[i][1] + value[i][2] + value[i][3] + value[i][4] + value[i][5]) / 6;
        for (int j = 6; j < 4096; j++) behind += value[i][j] != 0;
    }
    same("the means of 6 weights of threes, gradients of 4, a step of 0.5", WEIGHTS, is, should);
    SAME("numbers that update changes behind a weight", &behind, 0);
}
static bool check_model(void) {
    const Example e[2] = {example_of("attention"), example_of("backwards")};
    check_parts();
    if (!good) return false;
    make_weights(0);
    SAME("with weights 0 the loss", LIST(train(2, e, 0)), log(TOKENS));
    make_weights(0.5);
    double *const w[] = {weight[KEY]->value, weight[OUT]->value};
    const double loss = train(2, e, 0), old[] = {*w[0], *w[1]};
    double slope[2];
    SAME("with random weights", &loss, 3.36272732413535);
    for (int i = 0; i < 2; i++) {
        *w[i] = old[i] + 1e-4;
        slope[i] = (train(2, e, 0) - loss) / 1e-4;
        *w[i] = old[i];
    }
    train(2, e, 100);
    tolerance = 1e-4; /* of a difference */
    SAME("a step of rate 100 moves KEY[0][0] down by", LIST(old[0] - *w[0]), 100 * slope[0]);
    SAME("and OUT[0][0] by (are all gradients 0 before?)", LIST(old[1] - *w[1]), 100 * slope[1]);
    tolerance = 1e-9;
    SAME("results on the tape after it", LIST(length), 0);
    if (good) check_update();
    return good;
}
static bool check_cache(void) {
    Cache cache = new_cache();
    const Example e = example_of("attention");
    Matrix *p, *y;
    make_weights(0.5);
    for (int n = 1; n <= LENGTH && good; n++) {
        if (!(y = model(n, e.token, &p))) return wrong("model returns NULL: stage 9 is first");
        const double *whole = &V(y, n - 1, 0);
        const long before = alive;
        if (!(y = model_next(&cache, e.token[n - 1]))) return wrong("model_next returns NULL");
        if (y->rows != 1 || y->columns != TOKENS) return wrong("the logits SHOULD BE 1 x TOKENS");
        if (alive - before > 400) return wrong("it computes more than one letter needs");
        if (cache.key->rows != n || cache.value->rows != n)
            return wrong("rows of key and of value SHOULD BE the number of letters");
        if (n == 1 || n == LENGTH) same("some logits", 3, y->value, whole);
        for (int j = 0; j < TOKENS && good; j++)
            if (!(fabs(y->value[j] - whole[j]) < 1e-9)) same("logits", TOKENS, y->value, whole);
        clear();
    }
    return good;
}
static void check(int stage) {
    const int index[] = {2, 0, 2}, target[] = {1, -1, 0};
    Matrix *a = M(2, 2, 1, 2, 3, 4), *b = M(2, 1, 5, 6), *s = M(2, 2, 0, 9, 0, log(3)), *y, *z;
    Matrix *q = M(1, 2, 1, 2), *k = M(2, 2, 3, 4, 5, 6), *t = M(3, 2, 1, 2, 3, 4, 5, 6);
    Matrix *p = M(2, 2, .25, .75, .5, .5), *v = M(2, 2, 4, 2, 8, 6), *l = M(2, 2, 0, log(3), 7, 9);
    Matrix *r = random_matrix(2, 6, 1), *u = random_matrix(4, 3, 1), *w = random_matrix(3, 6, 1);
    switch (stage) {
    case 1:
        y = compute(OP(matmul, 2, 1, .a = a, .b = b), NULL);
        z = compute(OP(matmul, 1, 2, .a = M(1, 3, 1, 2, 3), .b = t), NULL);
        SAME("y", y->value, 17, 39);
        SAME("{{1, 2, 3}} times {{1, 2}, {3, 4}, {5, 6}}", z->value, 22, 28);
        break;
    case 2:
        y = compute(OP(softmax, 2, 2, .a = s, .heads = 1), NULL);
        s = M(4, 3, -1e3, -1e3, 1e3, 1, 1, 1, 9, 9, 9, 4, 4, 4);
        z = compute(OP(softmax, 4, 3, .a = s, .heads = 2), NULL);
        SAME("y", y->value, 1, 0, .25, .75);
        SAME("2 heads, {{-1000, -1000, 1000}, {1, 1, 1}, {9, 9, 9}, {4, 4, 4}}", z->value, .5, .5,
             0, 1 / 3., 1 / 3., 1 / 3., .5, .5, 0, 1 / 3., 1 / 3., 1 / 3.);
        break;
    case 3:
        y = compute(OP(scores, 2, 2, .a = q, .b = k, .heads = 2), NULL);
        z = compute(OP(mix, 1, 2, .a = p, .b = v, .heads = 2), NULL);
        SAME("scores", y->value, 3, 5, 8, 12);
        SAME("mix", z->value, 7, 4);
        q = M(2, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1);
        k = M(1, 8, 1, 1, 1, 1, 2, 2, 2, 2);
        p = M(4, 1, 1, 2, 3, 4);
        v = M(1, 4, 1, 10, 100, 1000);
        y = compute(OP(scores, 4, 1, .a = q, .b = k, .heads = 2), NULL);
        z = compute(OP(mix, 2, 4, .a = p, .b = v, .heads = 2), NULL);
        SAME("scores, D = 4, q {{1, 2, ... 8}, {8, ... 1}}, k {{1, 1, 1, 1, 2, 2, 2, 2}}", y->value,
             5, 13, 26, 10);
        SAME("mix, D = 2, p {{1}, {2}, {3}, {4}}, v {{1, 10, 100, 1000}}", z->value, 1, 10, 300,
             3000, 2, 20, 400, 4000);
        break;
    case 4: check_tape(); break;
    case 5:
        compute(OP(matmul, 2, 1, .a = a, .b = b), LIST(1, 10));
        SAME("da", a->grad, 5, 6, 50, 60);
        SAME("db", b->grad, 31, 42);
        agrees("da", OP(matmul, 4, 6, .a = u, .b = w), u);
        agrees("db", OP(matmul, 4, 6, .a = u, .b = w), w);
        break;
    case 6:
        compute(OP(softmax, 2, 2, .a = s, .heads = 1), LIST(5, 5, 0, 8));
        SAME("da", s->grad, 0, 0, -1.5, 1.5);
        agrees("da", OP(softmax, 4, 3, .a = u, .heads = 2), u);
        break;
    case 7:
        compute(OP(scores, 2, 2, .a = q, .b = k, .heads = 2), LIST(1, 1, 0, 1));
        compute(OP(mix, 1, 2, .a = p, .b = v, .heads = 2), LIST(1, 10));
        SAME("dq", q->grad, 8, 6);
        SAME("dk", k->grad, 1, 0, 1, 2);
        SAME("dp", p->grad, 4, 8, 20, 60);
        SAME("dv", v->grad, .25, 5, .75, 5);
        agrees("dq", OP(scores, 4, 3, .a = r, .b = w, .heads = 2), r);
        agrees("dk", OP(scores, 4, 3, .a = r, .b = w, .heads = 2), w);
        agrees("dp", OP(mix, 2, 6, .a = u, .b = w, .heads = 2), u);
        agrees("dv", OP(mix, 2, 6, .a = u, .b = w, .heads = 2), w);
        break;
    case 8:
        compute(OP(embed, 3, 2, .a = t, .index = index), LIST(1, 2, 3, 4, 5, 6));
        y = compute(OP(cross_entropy, 1, 1, .a = l, .index = target), LIST(1));
        s = M(1, 2, 0, 1000);
        z = compute(OP(cross_entropy, 1, 1, .a = s, .index = target), LIST(1));
        SAME("da of embed", t->grad, 3, 4, 0, 0, 6, 8);
        SAME("loss", y->value, log(4 / 3.));
        SAME("loss of {{0, 1000}}", z->value, 0);
        SAME("da of {{0, 1000}}", s->grad, 0, 0);
        SAME("da", l->grad, .25, -.25, 0, 0);
        agrees("da", OP(cross_entropy, 1, 1, .a = w, .index = target), w);
        break;
    case 9: check_model(); break;
    case 10: check_cache(); break;
    }
}

/* ---- training -------------------------------------------------------------------------------- */

/* What the model makes of a word, and where it looks. */
static void answer(const char *word, bool cached, bool map) {
    Cache cache = new_cache();
    Example e = example_of(word);
    Matrix *p = NULL;
    printf("%s%s > ", word, cached ? " with the cache" : "");
    for (int n = 1; n <= LENGTH; n++) {
        const Matrix *y = cached ? model_next(&cache, e.token[n - 1]) : model(n, e.token, &p);
        const double *logits = &V(y, y->rows - 1, 0);
        int best = 0;
        for (int j = 1; j < ARROW; j++) best = logits[j] > logits[best] ? j : best;
        if (n > WORD) putchar('a' + best);
        if (n > WORD && n < LENGTH) e.token[n] = best;
        if (n < LENGTH) clear();
    }
    printf("\n");
    for (int h = 0; map && h < HEADS; h++) {
        printf("\n  head %d: a row is an answer, a column what it looked at\n\n    %s>", h, word);
        for (int i = WORD; i < LENGTH; i++) {
            printf("\n  %c ", 'a' + e.target[i]);
            for (int j = 0; j <= WORD; j++)
                putchar(" .:-=+*#%@"[(int)(9.99 * V(p, h * LENGTH + i, j))]);
        }
        printf("\n");
    }
    clear();
}
int main(int argc, char **argv) {
    const int only = argc > 1 ? atoi(argv[1]) : 0;
    if (argc > 1 && (only < 1 || only > 10)) return printf("The stages are 1 to 10.\n"), 1;
    const char *words[] = {"backwards", "gradients", "attention"};
    for (int stage = argc > 1 ? only : 1; stage <= (argc > 1 ? only : 10); stage++) {
        printf("stage %d\n", stage);
        fflush(stdout);
        good = true;
        check(stage);
        if (!good) {
            printf("Stage %d is next.\n", stage);
            return 1;
        }
    }
    if (argc > 1) return 0;
    make_weights(0.5);
    for (int step = 0; step <= 200; step++) {
        Example e[16];
        for (int i = 0; i < 16; i++) e[i] = example_of(NULL);
        const double loss = train(16, e, 1);
        if (step % 20 == 0) printf("step %3d: loss %.4f\n", step, loss);
        if (isfinite(loss)) continue;
        printf("step %3d: the loss is not a number. Is each gradient 0 before each step?\n", step);
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        answer(words[i], true, false);
        answer(words[i], false, i == 2);
    }
    return 0;
}
