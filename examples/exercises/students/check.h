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

/* The checks leave their matrices to the end of the program; a crash is the sanitizer's to tell. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0:handle_segv=2";
}

/* ---- how a program ends ---------------------------------------------------------------------- */

static int stage; /* that is checked; 0: none */

/* exit in a function of the student, and in at, ends here. */
static void ended(void) {
    if (!stage) return;
    printf("  The program ended before the check did.\nStage %d is next.\n", stage);
    _Exit(1);
}
static void stopped(int signal_number) {
    const bool crash = signal_number == SIGSEGV || signal_number == SIGABRT;
    if (!stage && !crash) return;
    if (crash) printf("  It CRASHED: with -g -fsanitize=address,undefined it names the line.\n");
    else printf("  This takes more than %d SECONDS: which loop has no end?\n", SECONDS);
    ended();
    _Exit(1);
}
/* The seconds are those of the processor; on Windows those of the clock. */
#ifdef _WIN32
static void wait_for_end(void *none) {
    (void)none;
    Sleep(1000 * SECONDS);
    stopped(0);
}
static void limit_time(void) {
    _beginthread(wait_for_end, 0, NULL);
}
#else
static void limit_time(void) {
    const struct itimerval once = {.it_value = {.tv_sec = SECONDS}};
    signal(SIGPROF, stopped);
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
#define GIVES(name, y, ...)    gives(name, y, COUNT(__VA_ARGS__), LIST(__VA_ARGS__))
#define ADDED(name, y, x, ...) added(name, y, x, LIST(__VA_ARGS__))

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
enum { BEFORE = 1 }; /* a gradient before backward adds */
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
/* Compares what forward makes of m with numbers. */
static void gives(const char *name, Matrix m, int n, const double *should) {
    const Matrix *y = compute(m, NULL);
    same(name, y->columns, n, y->value, should);
}
/* Compares what the backward of y added to the gradient of x. NaN stays where it is added to. */
static void added(const char *name, Matrix *y, Matrix *x, const double *should) {
    const int n = x->rows * x->columns;
    double sum[99] = {0};
    int set = 0;
    for (int i = 0; i < n; i++) sum[i] = x->grad[i] - BEFORE;
    same(name, x->columns, n, sum, should);
    if (equal(n, sum, should)) return;
    set_gradient(x, NAN);
    y->backward(y);
    for (int i = 0; i < n; i++) set += !isnan(x->grad[i]);
    if (set) wrong("The gradient before is lost: is it set, =, where it must grow, +=?");
}
/* Compares the gradient of x, an input of y, with differences. */
static void agrees(const char *name, Matrix y, Matrix *x) {
    double dy[99];
    if (!good) return;
    for (int i = 0; i < 99; i++) dy[i] = cos(i + 1);
    compute(y, dy);
    for (int at = 0; good && at < x->rows * x->columns; at++) {
        const double old = x->value[at], h = 1e-5, sum = x->grad[at] - BEFORE;
        double slope = 0;
        for (int side = -1; side <= 1; side += 2) {
            x->value[at] = old + side * h;
            const Matrix *z = compute(y, NULL);
            for (int i = 0; i < y.rows * y.columns; i++)
                slope += side * z->value[i] * dy[i] / (2 * h);
        }
        x->value[at] = old;
        good = fabs(sum - slope) <= 1e-6 * (1 + fabs(slope));
        if (!good)
            printf("  backward added %g to %s[%d][%d], SHOULD BE %g (by differences of forward)\n",
                   sum, name, at / x->columns, at % x->columns, slope);
    }
    if (good) printf("  %s agrees with differences\n", name);
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

/* Is there a result, not released, and was all before it right? */
static bool is_there(const char *name, const Matrix *y) {
    if (missing(y)) printf("  %s %s\n", name, missing(y));
    good &= !missing(y);
    return good;
}
static int runs;
static void count(Matrix *y) {
    runs += y->rows;
}
static bool check_tape(void) {
    Matrix *x = M(1, 1, 3);
    Matrix *y = add(x, x);
    Matrix *z = y ? add(y, y) : NULL;
    const Matrix m = {1, 1, .a = x, .b = x, .forward = count, .backward = count}; /* no add */
    if (y && y == z) return wrong("both results ARE ONE matrix: m is gone, make a matrix of it");
    if (!is_there("the result of record", y) || !is_there("the second result", z)) return false;
    if (length != 2 || tape[0] != y || tape[1] != z)
        return wrong("two results SHOULD BE on the tape, in the order of their recording");
    tape[2] = matrix(m);
    const long before = alive - 2;
    backward(z);
    tape[2] = NULL;
    if (runs) return wrong("backward SHOULD BEGIN with the last result, tape[length - 1]");
    if (!is_there("z, after backward,", z)) return false;
    SAME("z, dz, dy, dx", LIST(*z->value, *z->grad, *y->grad, *x->grad), 12, 1, 2, 4);
    clear();
    if (!is_there("x, after clear,", x)) return false;
    SAME("after clear: results, what is not released", LIST(length, alive - before), 0, 0);
    if (!good) return false;
    backward(add(x, x));
    clear();
    SAME("x, dx with another x + x", LIST(*x->value, *x->grad), 3, 6);
    y = record(m);
    const int forwards = runs;
    backward(y);
    SAME("how often its own forward and backward run", LIST(forwards, runs - forwards), 1, 1);
    clear();
    return good;
}

/* Of two letters, the first logit of each. Nothing after a wrong line: it would be its effect. */
static const int token[2] = {0, 1};
static void check_logits(const char *name, double first, double second) {
    Matrix *p;
    if (!good) return;
    Matrix *y = model(2, token, &p);
    SAME(name, LIST(V(y, 0, 0), V(y, 1, 0)), first, second);
    clear();
}
/* Weights of a few numbers each, so that one part of the model shows in each result. */
static void check_model(void) {
    Matrix *p = NULL;
    printf(" model\n");
    make_weights(0);
    const Matrix *y = model(2, token, &p);
    if (!is_there("the result of model", y) || !is_there("*weights", p)) return;
    SAME("rows and columns of the logits", LIST(y->rows, y->columns), 2, TOKENS);
    SAME("rows and columns of *weights, the softmax", LIST(p->rows, p->columns), 2 * HEADS, 2);
    if (!good) return;
    TABLE("*weights, all scores are 0: has softmax HEADS heads?", 2, p->value, 1, 0, .5, .5, 1, 0,
          .5, .5);
    clear();
    weight[VALUE]->value[0] = 1;
    weight[OUT]->value[0] = 1;
    weight[TOKEN]->value[0] = 1;
    check_logits("logits of TOKEN alone: values, mixed, times OUT", 1, 0.5);
    weight[TOKEN]->value[0] = 0;
    weight[PLACE]->value[WIDTH] = 1;
    check_logits("logits of PLACE alone: are the places added?", 0, 0.5);
    if (!good) return;
    /* Head 0: every query is 4 and key j is j log 2, so its weights grow with j. */
    weight[PLACE]->value[1] = 1;
    weight[PLACE]->value[WIDTH + 1] = 1;
    weight[QUERY]->value[WIDTH] = 4;
    weight[KEY]->value[0] = log(2);
    model(2, token, &p);
    TABLE("*weights, in head 0 key 1 is larger, all queries are 4: are QUERY and KEY right?", 2,
          p->value, 1, 0, 1 / 3., 2 / 3., 1, 0, .5, .5);
    clear();
}
/* Weights of 2 x 3 numbers, with others behind them that are not theirs. */
static void check_update(void) {
    double is[WEIGHTS] = {0}, behind = 0;
    if (!good) return;
    printf(" update\n");
    for (int i = 0; i < WEIGHTS; i++) {
        weight[i] = zeros(64, 64);
        set_gradient(weight[i], 4);
        weight[i]->rows = 2;
        weight[i]->columns = 3;
        for (int j = 0; j < 6; j++) weight[i]->value[j] = 3;
    }
    update(0.5);
    for (int i = 0; i < WEIGHTS; i++) {
        for (int j = 0; j < 6; j++) is[i] += weight[i]->value[j] / 6;
        for (int j = 6; j < 4096; j++) behind += weight[i]->value[j] != 0;
    }
    SAME("all numbers 3, gradients 4, a step of 0.5: the mean of each weight", is, 1, 1, 1, 1, 1,
         1);
    SAME("numbers that update changes behind a weight", &behind, 0);
}
/* The mean loss, without train. */
static double loss_of(int n, const Example *e) {
    Matrix *p;
    double sum = 0;
    for (int k = 0; k < n; k++) {
        sum += V(cross_entropy(model(LENGTH, e[k].token, &p), e[k].target), 0, 0);
        clear();
    }
    return sum / n;
}
/* The first and the last number of each weight. */
enum { ENDS = 2 * WEIGHTS };
static double *end_of_weight(int i) {
    const Matrix *w = weight[i / 2];
    return w->value + (i % 2) * (w->rows * w->columns - 1);
}
/* A step from weights whose gradients are already `before`. */
static void check_step(const char *name, double before, const Example *e, const double *slope) {
    double moved[ENDS];
    if (!good) return;
    make_weights(0.5);
    for (int i = 0; i < ENDS; i++) moved[i] = *end_of_weight(i);
    for (int i = 0; i < WEIGHTS; i++) set_gradient(weight[i], before);
    train(2, e, 100);
    for (int i = 0; i < ENDS; i++) moved[i] -= *end_of_weight(i);
    tolerance = 1e-5; /* of a difference */
    same(name, 2, ENDS, moved, slope);
    tolerance = 1e-9;
}
static void check_train(void) {
    const Example e[2] = {example_of("attention"), example_of("backwards")};
    double slope[ENDS] = {0};
    if (!good) return;
    printf(" train\n");
    make_weights(0);
    SAME("with weights 0 the loss", LIST(train(2, e, 0)), log(TOKENS));
    SAME("results on the tape after it", LIST(length), 0);
    clear();
    make_weights(0.5);
    SAME("with random weights the loss", LIST(train(2, e, 0)), loss_of(2, e));
    for (int i = 0; i < ENDS; i++) {
        double *const w = end_of_weight(i), old = *w;
        for (int side = -1; side <= 1; side += 2) {
            *w = old + side * 1e-4;
            slope[i] += 100 * side * loss_of(2, e) / 2e-4;
        }
        *w = old;
    }
    check_step("a step of rate 100 moves TOKEN to OUT, of each the first and last number, down by",
               0, e, slope);
    check_step("the same, but all gradients were 5 before", 5, e, slope);
}
static bool check_cache(void) {
    Cache cache = new_cache();
    const Example e = example_of("attention");
    Matrix *p;
    char name[40];
    make_weights(0.5);
    for (int n = 1; n <= LENGTH && good; n++) {
        const Matrix *y = model(n, e.token, &p);
        if (!is_there("stage 9 is first: the result of model", y)) return false;
        const double *whole = &V(y, n - 1, 0);
        const long before = alive;
        y = model_next(&cache, e.token[n - 1]);
        if (!is_there("the result of model_next", y)) return false;
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
/* The examples by hand, whose forward is in the stages 1 to 3, and backward in 5 to 7. */
#define PRODUCT OP(matmul, 2, 1, .a = M(2, 2, 1, 2, 3, 4), .b = M(2, 1, 5, 6))
#define SOFTMAX OP(softmax, 2, 2, .a = M(2, 2, 0, 9, 0, log(3)), .heads = 1)
#define SCORES  OP(scores, 2, 2, .a = M(1, 2, 1, 2), .b = M(2, 2, 3, 4, 5, 6), .heads = 2)
#define MIX     OP(mix, 1, 2, .a = M(2, 2, .25, .75, .5, .5), .b = M(2, 2, 4, 2, 8, 6), .heads = 2)
static void check_forward(void) {
    Matrix *x;
    if (stage == 1) {
        GIVES("y", PRODUCT, 17, 39);
        GIVES("{{1, 2, 3}} times {{1, 2}, {3, 4}, {5, 6}}",
              OP(matmul, 1, 2, .a = M(1, 3, 1, 2, 3), .b = M(3, 2, 1, 2, 3, 4, 5, 6)), 22, 28);
    } else if (stage == 2) {
        GIVES("y", SOFTMAX, 1, 0, .25, .75);
        x = M(4, 3, -1e3, -1e3, 1e3, 1, 1, 1, 9, 9, 9, 4, 4, 4);
        GIVES("2 heads, Q = 2, K = 3, {{-1000, -1000, 1000}, {1, 1, 1}, {9, 9, 9}, {4, 4, 4}}",
              OP(softmax, 4, 3, .a = x, .heads = 2), .5, .5, 0, 1 / 3., 1 / 3., 1 / 3., .5, .5, 0,
              1 / 3., 1 / 3., 1 / 3.);
    } else if (stage == 3) {
        GIVES("scores", SCORES, 3, 5, 8, 12);
        GIVES("mix", MIX, 7, 4);
        x = M(2, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1);
        GIVES("scores, D = 4, q {{1, 2, ... 8}, {8, ... 1}}, k {{1, 1, 1, 1, 2, 2, 2, 2}}",
              OP(scores, 4, 1, .a = x, .b = M(1, 8, 1, 1, 1, 1, 2, 2, 2, 2), .heads = 2), 5, 13, 26,
              10);
        GIVES("mix, D = 2, p {{1}, {2}, {3}, {4}}, v {{1, 10, 100, 1000}}",
              OP(mix, 2, 4, .a = M(4, 1, 1, 2, 3, 4), .b = M(1, 4, 1, 10, 100, 1000), .heads = 2),
              1, 10, 300, 3000, 2, 20, 400, 4000);
    }
}
static void check_gradients(void) {
    Matrix *r = random_matrix(2, 6, 1);
    Matrix *u = random_matrix(4, 3, 1);
    Matrix *w = random_matrix(3, 6, 1);
    Matrix *y;
    if (stage == 5) {
        y = compute(PRODUCT, LIST(1, 10));
        ADDED("added to da", y, y->a, 5, 6, 50, 60);
        ADDED("added to db", y, y->b, 31, 42);
        agrees("da", OP(matmul, 4, 6, .a = u, .b = w), u);
        agrees("db", OP(matmul, 4, 6, .a = u, .b = w), w);
    } else if (stage == 6) {
        y = compute(SOFTMAX, LIST(5, 5, 0, 8));
        ADDED("added to da", y, y->a, 0, 0, -1.5, 1.5);
        agrees("da", OP(softmax, 4, 3, .a = u, .heads = 2), u);
    } else if (stage == 7) {
        y = compute(SCORES, LIST(1, 1, 0, 1));
        ADDED("added to dq", y, y->a, 8, 6);
        ADDED("added to dk", y, y->b, 1, 0, 1, 2);
        y = compute(MIX, LIST(1, 10));
        ADDED("added to dp", y, y->a, 4, 8, 20, 60);
        ADDED("added to dv", y, y->b, .25, 5, .75, 5);
        if (good) printf("  now with 2 heads, D = %d:\n", w->columns / 2);
        agrees("dq", OP(scores, 4, 3, .a = r, .b = w, .heads = 2), r);
        agrees("dk", OP(scores, 4, 3, .a = r, .b = w, .heads = 2), w);
        agrees("dp", OP(mix, 2, 6, .a = u, .b = w, .heads = 2), u);
        agrees("dv", OP(mix, 2, 6, .a = u, .b = w, .heads = 2), w);
    }
}
static void check_letters(void) {
    const int index[] = {2, 0, 2}, target[] = {1, -1, 0}, both[] = {1, 0}, first[] = {0};
    Matrix *t = M(3, 2, 1, 2, 3, 4, 5, 6);
    Matrix *w = random_matrix(3, 6, 1);
    Matrix *y = compute(OP(embed, 3, 2, .a = t, .index = index), LIST(1, 2, 3, 4, 5, 6));
    ADDED("added to da of embed", y, t, 3, 4, 0, 0, 6, 8);
    t = M(2, 2, 0, log(3), 7, 9);
    y = compute(OP(cross_entropy, 1, 1, .a = t, .index = target), LIST(1));
    SAME("loss", y->value, log(4 / 3.));
    ADDED("added to da", y, t, .25, -.25, 0, 0);
    t = M(1, 2, 0, 1000);
    y = compute(OP(cross_entropy, 1, 1, .a = t, .index = first), LIST(1));
    SAME("loss of {{0, 1000}}, index {0}", y->value, 1000);
    ADDED("added to da of {{0, 1000}}", y, t, -1, 1);
    t = M(2, 2, 0, log(3), 0, log(3));
    GIVES("loss of {{0, log 3}, {0, log 3}}, index {1, 0}: the mean of 2 rows",
          OP(cross_entropy, 1, 1, .a = t, .index = both), log(16 / 3.) / 2);
    agrees("da", OP(cross_entropy, 1, 1, .a = w, .index = target), w);
}
static void check(void) {
    if (stage <= 3) check_forward();
    if (stage == 4) check_tape();
    if (stage >= 5 && stage <= 7) check_gradients();
    if (stage == 8) check_letters();
    if (stage <= 8) return;
    if (!is_there("stage 4 is first: the result of record", add(M(1, 1, 3), M(1, 1, 3)))) return;
    clear();
    if (stage == 10) check_cache();
    if (stage == 9) check_model();
    if (stage == 9) check_update();
    if (stage == 9) check_train();
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
    signal(SIGSEGV, stopped);
    signal(SIGABRT, stopped);
    good = true;
    for (stage = from; good && stage <= to; stage++) {
        printf("stage %d\n", stage);
        check();
        printf(good ? "Stage %d is right.\n" : "Stage %d is next.\n", stage);
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
    const char *words[] = {WORDS};
    const int n = argc > 1 ? 1 : sizeof words / sizeof *words;
    setvbuf(stdout, NULL, _IONBF, 0);
    atexit(ended);
    if (argc > 1) words[0] = argv[1];
    if (argc > 1 && strchr("-0123456789", *argv[1])) {
        const int only = atoi(argv[1]);
        if (only >= 1 && only <= 10) return !check_stages(only, only);
        printf("The stages are 1 to 10.\n");
        return 1;
    }
    for (int i = 0; i < n; i++)
        if (!is_word(words[i])) return 1;
    return !check_stages(1, 10) || !read_words(n, words);
}
