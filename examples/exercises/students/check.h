/* check.h - the checks of attention.c, the training, and main. There is nothing to write here. A
 * teacher may change the words that are read at the end, and the seed of all random numbers. */
#define WORDS "backwards", "gradients", "attention"
enum { SEED = 1, SECONDS = 10 };

#include <signal.h>
#include <string.h>
#ifdef _WIN32
#include <process.h>
__declspec(dllimport) void __stdcall Sleep(unsigned long milliseconds);
#else
#include <sys/time.h>
#endif

/* The checks leave their matrices to the end of the program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

/* ---- how a program ends ---------------------------------------------------------------------- */

static int stage; /* that is checked; 0: none */

/* exit in a function of the student, and in at, ends here. */
static void ended(void) {
    if (!stage) return;
    printf("  The program ended before the check did.\nStage %d is next.\n", stage);
    _Exit(1);
}
static void too_long(int signal_number) {
    (void)signal_number;
    if (!stage) return;
    printf("  This takes more than %d SECONDS: which loop has no end?\n", SECONDS);
    ended();
}
/* The seconds are those of the processor; on Windows those of the clock. */
#ifdef _WIN32
static void wait_for_end(void *none) {
    (void)none;
    Sleep(1000 * SECONDS);
    too_long(0);
}
static void limit_time(void) {
    _beginthread(wait_for_end, 0, NULL);
}
#else
static void limit_time(void) {
    const struct itimerval once = {.it_value = {.tv_sec = SECONDS}};
    signal(SIGPROF, too_long);
    setitimer(ITIMER_PROF, &once, NULL);
}
#endif

/* ---- numbers --------------------------------------------------------------------------------- */

#define LIST(...)              ((const double[]){__VA_ARGS__})
#define M(rows, columns, ...)  numbers(rows, columns, LIST(__VA_ARGS__))
#define COUNT(...)             ((int)(sizeof LIST(__VA_ARGS__) / sizeof(double)))
#define SAME(name, array, ...) TABLE(name, COUNT(__VA_ARGS__), array, __VA_ARGS__)
#define TABLE(name, columns, array, ...)                                                           \
    same(name, columns, COUNT(__VA_ARGS__), array, LIST(__VA_ARGS__))
#define ADDED(name, x, ...) added(name, x, LIST(__VA_ARGS__))

static double tolerance = 1e-9;
static bool good; /* has all been right in this stage? */
static bool equal(int n, const double *is, const double *should) {
    for (int i = 0; i < n; i++)
        if (!(fabs(is[i] - should[i]) <= tolerance * (1 + fabs(should[i])))) return false;
    return true;
}
/* Prints the numbers of an array; if one is wrong in lines, with what a wrong row should be. */
static void same(const char *name, int columns, int n, const double *is, const double *should) {
    const bool right = equal(n, is, should);
    printf("  %s:", name);
    for (int i = 0; i < n; i += columns) {
        if (!right && n > columns) printf("\n   ");
        if (right && i > 0) printf(" |");
        for (int j = i; j < i + columns; j++) printf(" %g", is[j] + 0);
        if (equal(columns, is + i, should + i)) continue;
        printf(", SHOULD BE");
        for (int j = i; j < i + columns; j++) printf(" %g", should[j]);
    }
    printf("\n");
    good &= right;
}
static bool wrong(const char *text) {
    printf("  %s\n", text);
    good = false;
    return false;
}
/* Compares what backward added to the gradient of x, which was BEFORE. */
enum { BEFORE = 1 };
static void added(const char *name, const Matrix *x, const double *should) {
    const int n = x->rows * x->columns;
    double sum[99] = {0};
    for (int i = 0; i < n; i++) sum[i] = x->grad[i] - BEFORE;
    same(name, x->columns, n, sum, should);
    if (!equal(n, sum, should) && equal(n, x->grad, should))
        printf("  The gradient was %d before, and this is lost: is it set, =, where it must grow, "
               "+=?\n",
               BEFORE);
}
static Matrix *zeros(int rows, int columns) {
    return matrix((Matrix){.rows = rows, .columns = columns});
}
static Matrix *numbers(int rows, int columns, const double *list) {
    Matrix *x = zeros(rows, columns);
    for (int i = 0; i < rows * columns; i++) x->value[i] = list[i];
    return x;
}
static unsigned state = SEED;
static double uniform(void) { /* -1 to 1 */
    state = state * 1664525 + 1013904223;
    return (state >> 8) / 8388608.0 - 1;
}
static Matrix *random_matrix(int rows, int columns, double scale) {
    Matrix *x = zeros(rows, columns);
    for (int i = 0; i < rows * columns; i++) x->value[i] = scale * uniform();
    return x;
}
static void set_gradient(Matrix *x, double to) {
    for (int i = 0; x && i < x->rows * x->columns; i++) x->grad[i] = to;
}
static Matrix *compute(Matrix m, const double *dy) {
    Matrix *y = matrix(m);
    y->forward(y);
    if (!dy) return y;
    set_gradient(y->a, BEFORE);
    set_gradient(y->b, BEFORE);
    for (int i = 0; i < y->rows * y->columns; i++) y->grad[i] = dy[i];
    y->backward(y);
    return y;
}
/* Compares the gradient of x, an input of y, with differences. */
static void agrees(const char *name, Matrix y, Matrix *x) {
    double dy[99];
    if (!good) return;
    for (int i = 0; i < 99; i++) dy[i] = cos(i + 1);
    compute(y, dy);
    for (int at = 0; at < x->rows * x->columns; at++) {
        const double old = x->value[at], h = 1e-5, sum = x->grad[at] - BEFORE;
        double slope = 0;
        for (int side = -1; side <= 1; side += 2) {
            x->value[at] = old + side * h;
            const Matrix *z = compute(y, NULL);
            for (int i = 0; i < y.rows * y.columns; i++)
                slope += side * z->value[i] * dy[i] / (2 * h);
        }
        x->value[at] = old;
        if (fabs(sum - slope) <= 1e-6 * (1 + fabs(slope))) continue;
        printf("  backward added %g to %s[%d][%d], SHOULD BE %g (by differences of forward)\n", sum,
               name, at / x->columns, at % x->columns, slope);
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
    state = SEED;
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

/* Is there a result, not released? */
static bool is_there(const char *name, const Matrix *y) {
    if (!y) printf("  %s IS NULL\n", name);
    if (y && !y->value) printf("  %s WAS RELEASED\n", name);
    good &= y && y->value;
    return good;
}
/* What the stages 9 and 10 stand on. */
static bool has_tape(void) {
    Matrix *x = M(1, 1, 3);
    if (!is_there("stage 4 is first: the result of record", add(x, x))) return false;
    clear();
    return true;
}
/* Weights of a few numbers each, so that one part of the model shows in each result. */
static void check_model(void) {
    const int token[2] = {0, 1};
    Matrix *p = NULL, *y;
    make_weights(0);
    y = model(2, token, &p);
    if (!is_there("the result of model", y) || !is_there("*weights", p)) return;
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
    TABLE("*weights of head 0, key 1 is larger, all queries are 4: are QUERY and KEY right?", 2,
          p->value, 1, 0, 1 / 3., 2 / 3.);
    TABLE("*weights of head 1, all scores are 0: has softmax HEADS heads?", 2, p->value + 4, 1, 0,
          0.5, 0.5);
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
    same("all numbers 3, gradients 4, a step of 0.5: the mean of each weight", WEIGHTS, WEIGHTS, is,
         should);
    SAME("numbers that update changes behind a weight", &behind, 0);
}
/* The loss by model alone: the mean of -log of what softmax gives the right letter. */
static double loss_of(int n, const Example *e) {
    double sum = 0;
    for (int k = 0; k < n; k++) {
        Matrix *p, *y = model(LENGTH, e[k].token, &p);
        for (int i = WORD; i < LENGTH; i++) {
            double z = 0;
            for (int j = 0; j < TOKENS; j++) z += exp(V(y, i, j));
            sum += log(z) - V(y, i, e[k].target[i]);
        }
        clear();
    }
    return sum / (n * WORD);
}
/* A step from weights whose gradients are already `before`. */
static void check_step(const char *name, double before, const Example *e, const double *slope) {
    make_weights(0.5);
    const double *const w[] = {weight[KEY]->value, weight[OUT]->value}, old[] = {*w[0], *w[1]};
    for (int i = 0; i < WEIGHTS; i++) set_gradient(weight[i], before);
    train(2, e, 100);
    tolerance = 1e-5; /* of a difference */
    same(name, 2, 2, LIST(old[0] - *w[0], old[1] - *w[1]), slope);
    tolerance = 1e-9;
}
static void check_train(void) {
    const Example e[2] = {example_of("attention"), example_of("backwards")};
    double slope[2] = {0};
    make_weights(0);
    SAME("with weights 0 the loss", LIST(train(2, e, 0)), log(TOKENS));
    SAME("results on the tape after it", LIST(length), 0);
    clear();
    make_weights(0.5);
    double *const w[] = {weight[KEY]->value, weight[OUT]->value};
    SAME("with random weights the loss", LIST(train(2, e, 0)), loss_of(2, e));
    for (int i = 0; i < 2; i++) {
        const double old = *w[i];
        for (int side = -1; side <= 1; side += 2) {
            *w[i] = old + side * 1e-4;
            slope[i] += 100 * side * loss_of(2, e) / 2e-4;
        }
        *w[i] = old;
    }
    if (good) check_step("a step of rate 100 moves KEY[0][0] and OUT[0][0] down by", 0, e, slope);
    if (good) check_step("the same, but all gradients were 5 before", 5, e, slope);
}
/* The three functions of stage 9. What follows a wrong one is not checked. */
static void check_learning(void) {
    static const struct {
        const char *name;
        void (*check)(void);
    } part[] = {{"model", check_model}, {"update", check_update}, {"train", check_train}};
    for (int i = 0; i < 3 && good; i++) {
        printf(" %s\n", part[i].name);
        part[i].check();
    }
}
static bool check_cache(void) {
    Cache cache = new_cache();
    const Example e = example_of("attention");
    Matrix *p, *y;
    char name[40];
    make_weights(0.5);
    for (int n = 1; n <= LENGTH && good; n++) {
        if (!is_there("stage 9 is first: the result of model", y = model(n, e.token, &p)))
            return false;
        const double *whole = &V(y, n - 1, 0);
        const long before = alive;
        if (!is_there("the result of model_next", y = model_next(&cache, e.token[n - 1])))
            return false;
        if (y->rows != 1 || y->columns != TOKENS) return wrong("the logits SHOULD BE 1 x TOKENS");
        if (alive - before > 400) return wrong("it computes more than one letter needs");
        if (cache.key->rows != n || cache.value->rows != n)
            return wrong("rows of key and of value SHOULD BE the number of letters");
        int at = 0; /* the first that is wrong */
        while (at < TOKENS - 3 && equal(1, y->value + at, whole + at)) at++;
        snprintf(name, sizeof name, "letter %d, some logits", n);
        if (n == 1 || n == LENGTH || !equal(TOKENS, y->value, whole))
            same(name, 3, 3, y->value + at, whole + at);
        clear();
    }
    return good;
}
static void check_forward(void) {
    Matrix *a = M(2, 2, 1, 2, 3, 4), *b = M(2, 1, 5, 6), *s = M(2, 2, 0, 9, 0, log(3)), *y, *z;
    Matrix *q = M(1, 2, 1, 2), *k = M(2, 2, 3, 4, 5, 6);
    Matrix *p = M(2, 2, .25, .75, .5, .5), *v = M(2, 2, 4, 2, 8, 6);
    Matrix *t = M(3, 2, 1, 2, 3, 4, 5, 6);
    switch (stage) {
    case 1:
        y = compute(OP(matmul, 2, 1, .a = a, .b = b), NULL);
        z = compute(OP(matmul, 1, 2, .a = M(1, 3, 1, 2, 3), .b = t), NULL);
        TABLE("y", 1, y->value, 17, 39);
        SAME("{{1, 2, 3}} times {{1, 2}, {3, 4}, {5, 6}}", z->value, 22, 28);
        break;
    case 2:
        y = compute(OP(softmax, 2, 2, .a = s, .heads = 1), NULL);
        s = M(4, 3, -1e3, -1e3, 1e3, 1, 1, 1, 9, 9, 9, 4, 4, 4);
        z = compute(OP(softmax, 4, 3, .a = s, .heads = 2), NULL);
        TABLE("y", 2, y->value, 1, 0, .25, .75);
        TABLE("2 heads, Q = 2, K = 3, {{-1000, -1000, 1000}, {1, 1, 1}, {9, 9, 9}, {4, 4, 4}}", 3,
              z->value, .5, .5, 0, 1 / 3., 1 / 3., 1 / 3., .5, .5, 0, 1 / 3., 1 / 3., 1 / 3.);
        break;
    case 3:
        y = compute(OP(scores, 2, 2, .a = q, .b = k, .heads = 2), NULL);
        z = compute(OP(mix, 1, 2, .a = p, .b = v, .heads = 2), NULL);
        TABLE("scores", 2, y->value, 3, 5, 8, 12);
        SAME("mix", z->value, 7, 4);
        q = M(2, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1);
        k = M(1, 8, 1, 1, 1, 1, 2, 2, 2, 2);
        p = M(4, 1, 1, 2, 3, 4);
        v = M(1, 4, 1, 10, 100, 1000);
        y = compute(OP(scores, 4, 1, .a = q, .b = k, .heads = 2), NULL);
        z = compute(OP(mix, 2, 4, .a = p, .b = v, .heads = 2), NULL);
        TABLE("scores, D = 4, q {{1, 2, ... 8}, {8, ... 1}}, k {{1, 1, 1, 1, 2, 2, 2, 2}}", 1,
              y->value, 5, 13, 26, 10);
        TABLE("mix, D = 2, p {{1}, {2}, {3}, {4}}, v {{1, 10, 100, 1000}}", 4, z->value, 1, 10, 300,
              3000, 2, 20, 400, 4000);
        break;
    }
}
static void check_gradients(void) {
    Matrix *a = M(2, 2, 1, 2, 3, 4), *b = M(2, 1, 5, 6), *s = M(2, 2, 0, 9, 0, log(3));
    Matrix *q = M(1, 2, 1, 2), *k = M(2, 2, 3, 4, 5, 6);
    Matrix *p = M(2, 2, .25, .75, .5, .5), *v = M(2, 2, 4, 2, 8, 6);
    Matrix *r = random_matrix(2, 6, 1), *u = random_matrix(4, 3, 1), *w = random_matrix(3, 6, 1);
    switch (stage) {
    case 5:
        compute(OP(matmul, 2, 1, .a = a, .b = b), LIST(1, 10));
        ADDED("added to da", a, 5, 6, 50, 60);
        ADDED("added to db", b, 31, 42);
        agrees("da", OP(matmul, 4, 6, .a = u, .b = w), u);
        agrees("db", OP(matmul, 4, 6, .a = u, .b = w), w);
        break;
    case 6:
        compute(OP(softmax, 2, 2, .a = s, .heads = 1), LIST(5, 5, 0, 8));
        ADDED("added to da", s, 0, 0, -1.5, 1.5);
        agrees("da", OP(softmax, 4, 3, .a = u, .heads = 2), u);
        break;
    case 7:
        compute(OP(scores, 2, 2, .a = q, .b = k, .heads = 2), LIST(1, 1, 0, 1));
        compute(OP(mix, 1, 2, .a = p, .b = v, .heads = 2), LIST(1, 10));
        ADDED("added to dq", q, 8, 6);
        ADDED("added to dk", k, 1, 0, 1, 2);
        ADDED("added to dp", p, 4, 8, 20, 60);
        ADDED("added to dv", v, .25, 5, .75, 5);
        agrees("dq", OP(scores, 4, 3, .a = r, .b = w, .heads = 2), r);
        agrees("dk", OP(scores, 4, 3, .a = r, .b = w, .heads = 2), w);
        agrees("dp", OP(mix, 2, 6, .a = u, .b = w, .heads = 2), u);
        agrees("dv", OP(mix, 2, 6, .a = u, .b = w, .heads = 2), w);
        break;
    }
}
static void check_letters(void) {
    const int index[] = {2, 0, 2}, target[] = {1, -1, 0}, both[] = {1, 0};
    Matrix *t = M(3, 2, 1, 2, 3, 4, 5, 6), *l = M(2, 2, 0, log(3), 7, 9), *s, *y, *z;
    Matrix *w = random_matrix(3, 6, 1);
    compute(OP(embed, 3, 2, .a = t, .index = index), LIST(1, 2, 3, 4, 5, 6));
    y = compute(OP(cross_entropy, 1, 1, .a = l, .index = target), LIST(1));
    s = M(1, 2, 0, 1000);
    z = compute(OP(cross_entropy, 1, 1, .a = s, .index = target), LIST(1));
    ADDED("added to da of embed", t, 3, 4, 0, 0, 6, 8);
    SAME("loss", y->value, log(4 / 3.));
    SAME("loss of {{0, 1000}}", z->value, 0);
    z = compute(OP(cross_entropy, 1, 1, .a = M(2, 2, 0, log(3), 0, log(3)), .index = both), NULL);
    SAME("loss of {{0, log 3}, {0, log 3}}, index {1, 0}: the mean of 2 rows", z->value,
         log(16 / 3.) / 2);
    ADDED("added to da of {{0, 1000}}", s, 0, 0);
    ADDED("added to da", l, .25, -.25, 0, 0);
    agrees("da", OP(cross_entropy, 1, 1, .a = w, .index = target), w);
}
static void check(void) {
    if (stage <= 3) check_forward();
    if (stage == 4) check_tape();
    if (stage >= 5 && stage <= 7) check_gradients();
    if (stage == 8) check_letters();
    if (stage == 9 && has_tape()) check_learning();
    if (stage == 10 && has_tape()) check_cache();
}

/* ---- training -------------------------------------------------------------------------------- */

/* What the model makes of a word, and where it looks. Is the answer right? */
static bool answer(const char *word, bool cached, bool map) {
    Cache cache = new_cache();
    Example e = example_of(word);
    Matrix *p = NULL;
    bool right = true;
    printf("%s%s > ", word, cached ? " with the cache" : "");
    for (int n = 1; n <= LENGTH; n++) {
        const Matrix *y = cached ? model_next(&cache, e.token[n - 1]) : model(n, e.token, &p);
        const double *logits = &V(y, y->rows - 1, 0);
        int best = 0;
        for (int j = 1; j < ARROW; j++) best = logits[j] > logits[best] ? j : best;
        if (n > WORD) putchar('a' + best);
        if (n > WORD) right &= best == e.target[n - 1];
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
    return right;
}
static bool learns(void) {
    for (int step = 0; step <= 200; step++) {
        Example e[16];
        for (int i = 0; i < 16; i++) e[i] = example_of(NULL);
        const double loss = train(16, e, 1);
        if (step % 20 == 0) printf("step %3d: loss %.4f\n", step, loss);
        if (isfinite(loss)) continue;
        printf("step %3d: the loss is not a number. Is each gradient 0 before each step?\n", step);
        return false;
    }
    return true;
}
/* Trains, and reads the words, the last one with a map, before and after. */
static bool read_words(int n, const char *const *word) {
    bool right = true;
    make_weights(0.5);
    printf("Before training:\n");
    answer(word[n - 1], false, true);
    if (!learns()) return false;
    for (int i = 0; i < n; i++) {
        right &= answer(word[i], true, false);
        right &= answer(word[i], false, i == n - 1);
    }
    printf(right
               ? "Your code has learned to read words backwards, with no word but random letters; "
                 "where to look it found alone.\n"
               : "Not all is right: with another SEED of check.h, or more steps, it may be.\n");
    return right;
}
static bool check_stages(int from, int to) {
    limit_time();
    for (stage = from; stage <= to; stage++) {
        printf("stage %d\n", stage);
        good = true;
        check();
        printf(good ? "Stage %d is right.\n" : "Stage %d is next.\n", stage);
        if (!good) break;
    }
    stage = 0;
    return good;
}
static bool is_word(const char *text) {
    if (strspn(text, "abcdefghijklmnopqrstuvwxyz") == WORD && !text[WORD]) return true;
    printf("\"%s\" is no word of %d letters from a to z.\n", text, WORD);
    return false;
}
int main(int argc, char **argv) {
    const char *const words[] = {WORDS}, *const own = argc > 1 ? argv[1] : NULL;
    const int n = sizeof words / sizeof *words;
    setvbuf(stdout, NULL, _IONBF, 0);
    atexit(ended);
    if (own && strchr("-0123456789", *own)) {
        const int only = atoi(own);
        if (only >= 1 && only <= 10) return !check_stages(only, only);
        printf("The stages are 1 to 10.\n");
        return 1;
    }
    if (own && !is_word(own)) return 1;
    for (int i = 0; i < n; i++)
        if (!is_word(words[i])) return 1;
    if (!check_stages(1, 10)) return 1;
    return !read_words(own ? 1 : n, own ? &own : words);
}
