/* test_experiments.c - the experiments of build/explain's lessons: every number is computed once
 * more with loops over the numbers of the lesson's tape, every gradient by differences, and what is
 * said must hold, at ten seeds. */
#include "../common.h"
#include "common_line.h"

#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/steps/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 10, MOST = 64 };

/* ---- the lesson and its experiments ---------------------------------------------------------- */

static char *text;
static char *copy;
static Json *lesson;

static bool keep_lesson(void *context, char *json) {
    (void)context;
    if (!text) text = strdup(json);
    return true;
}

static void open_lesson(int number, LessonOptions options) {
    text = NULL;
    options.experiments = experiments_as_json;
    ck_assert_msg(lessons_use(number, number, options, keep_lesson, NULL), "%s", tensor_error());
    copy = strdup(text);
    lesson = json_read(copy);
    ck_assert_msg(lesson != NULL, "%s", tensor_error());
}

static void open_seed(int number, int seed) {
    LessonOptions options = LESSON_OPTIONS;
    if (seed > 0) options.seed = (uint64_t)seed;
    options.part = number == 3 ? 'a' : 0;
    open_lesson(number, options);
}

static void close_lesson(void) {
    free(lesson);
    free(copy);
    free(text);
}

/* NULL: the lesson has no such experiment. */
static const Json *find_experiment(const char *title) {
    const Json *each = json_first(lesson, "experiments");
    while (each && !strstr(json_text(each, "title", ""), title)) each = each->next;
    return each;
}

static const Json *experiment(const char *title) {
    const Json *found = find_experiment(title);
    ck_assert_msg(found != NULL, "there is no experiment %s", title);
    return found;
}

static int count(const Json *list, const char *key) { return (int)json_get(list, key)->count; }

static const Json *position(const Json *e, int n) { return json_at(json_get(e, "positions"), n); }
static double label(const Json *e, int n) {
    return strtod(json_text(position(e, n), "label", ""), NULL);
}
static const char *cell(const Json *e, int n, int row, int column) {
    return json_at(json_get(position(e, n), "cells"), row * count(e, "columns") + column)->text;
}

/* What is said at a position. */
static const char *says(const Json *e, int n) {
    while (!json_get(position(e, n), "says")) n--;
    return json_text(position(e, n), "says", NULL);
}

/* A cell is this number, rounded where its digits end. */
static void expect_cell(const Json *e, int n, int row, int column, double number) {
    const char *shown = cell(e, n, row, column);
    const bool is_zero = strcmp(shown, "0") == 0;
    const bool agrees = isnan(number)
                            ? strcmp(shown, "NaN") == 0
                            : fabs(strtod(shown, NULL) - number) < 0.501 * last_place(shown);
    ck_assert_msg(agrees && (!is_zero || fabs(number) < 1e-300), "%s, %s: [%d, %d] is %s, not %g",
                  json_text(e, "title", ""), json_text(position(e, n), "label", ""), row, column,
                  shown, number);
    ck_assert_msg(*shown != '-' || strtod(shown, NULL) != 0, "a zero has a sign: %s", shown);
}

/* A tensor of the lesson's tape: its values or its gradient; returns how many there are. */
static int read_numbers(const char *name, const char *part, double *numbers) {
    const Json *x = json_first(json_get(lesson, "tape"), "tensors");
    while (x && strcmp(json_text(x, "name", ""), name) != 0) x = x->next;
    ck_assert_msg(x != NULL, "there is no %s", name);
    int n = 0;
    for (const Json *each = json_first(x, part); each; each = each->next, n++)
        numbers[n] = json_number(each);
    return n;
}

/* ---- attention in plain loops ---------------------------------------------------------------- */

static void softmax(const double *z, const bool *keep, int n, double *a) {
    double most = -(double)INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        if (keep[i] && z[i] > most) most = z[i];
    for (int i = 0; i < n; i++) a[i] = keep[i] ? exp(z[i] - most) : 0;
    for (int i = 0; i < n; i++) sum += a[i];
    for (int i = 0; i < n && sum > 0; i++) a[i] /= sum;
}

/* A head: q (Q, d), k (K, d), v (K, D), t (Q, D); keep (Q, K), counts (Q). plus (Q, D) is added to
 * the output, or is NULL. */
typedef struct {
    int Q, K, d, D;
    double q[MOST], k[MOST], v[MOST], t[MOST], bias, plus[MOST];
    bool keep[MOST], counts[MOST];
    double z[MOST], a[MOST];
} Head;

static double loss_of(Head *h) {
    double loss = 0;
    for (int i = 0; i < h->Q; i++) {
        for (int j = 0; j < h->K; j++) {
            double *z = &h->z[i * h->K + j];
            *z = 0;
            for (int c = 0; c < h->d; c++)
                *z += h->q[i * h->d + c] * (h->k[j * h->d + c] + h->bias);
            *z /= sqrt(h->d);
        }
        softmax(h->z + i * h->K, h->keep + i * h->K, h->K, h->a + i * h->K);
        for (int c = 0; c < h->D && h->counts[i]; c++) {
            double y = h->plus[i * h->D + c];
            for (int j = 0; j < h->K; j++) y += h->a[i * h->K + j] * h->v[j * h->D + c];
            loss += pow(y - h->t[i * h->D + c], 2);
        }
    }
    return loss;
}

/* The gradient of n numbers of the head, by differences; returns its length. */
typedef double (*LossOf)(void *);
static double slopes(LossOf loss, void *of, double *x, int n, double *dx) {
    const double h = 1e-5;
    double squares = 0;
    for (int i = 0; i < n; i++) {
        const double before = x[i];
        x[i] = before + h;
        const double up = loss(of);
        x[i] = before - h;
        dx[i] = (up - loss(of)) / (2 * h);
        x[i] = before;
        squares += dx[i] * dx[i];
    }
    return sqrt(squares);
}

static double loss_of_head(void *head) { return loss_of(head); }

static Head read_head(void) {
    Head h = {0};
    const int q = read_numbers("Q", "value", h.q), k = read_numbers("K", "value", h.k);
    const int v = read_numbers("V", "value", h.v), t = read_numbers("T", "value", h.t);
    h.D = 2;
    h.K = v / h.D;
    h.Q = t / h.D;
    h.d = q / h.Q;
    ck_assert_int_eq(k, h.K * h.d);
    memset(h.keep, true, sizeof h.keep);
    memset(h.counts, true, sizeof h.counts);
    return h;
}

/* ---- each experiment ------------------------------------------------------------------------- */

/* Scores of d numbers, q (R, 256) and k (R, 6, 256): their usual size, the mean of the largest
 * weights of the rows, and in the middle of all rows the lengths of the gradients of a row of
 * scores and of its query. */
enum { R = 64, N = 6, LONGEST = 256 };
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const double *q, const double *k, const double *dy, int d, double factor,
                    double measured[4]) {
    static const bool all[N] = {true, true, true, true, true, true};
    double lengths[R], queries[R], squares = 0, largest = 0;
    for (int r = 0; r < R; r++) {
        double z[N] = {0}, a[N], mean = 0, arrives = 0, passes = 0;
        for (int j = 0; j < N; j++)
            for (int c = 0; c < d; c++)
                z[j] += factor * q[r * LONGEST + c] * k[(r * N + j) * LONGEST + c];
        softmax(z, all, N, a);
        double most = 0;
        for (int j = 0; j < N; j++) {
            squares += z[j] * z[j];
            most = fmax(most, a[j]);
            mean += a[j] * dy[r * N + j];
            arrives += dy[r * N + j] * dy[r * N + j];
        }
        for (int j = 0; j < N; j++) passes += pow(a[j] * (dy[r * N + j] - mean), 2);
        lengths[r] = sqrt(passes / arrives);
        queries[r] = 0;
        for (int c = 0; c < d; c++) {
            double dq = 0;
            for (int j = 0; j < N; j++)
                dq += factor * a[j] * (dy[r * N + j] - mean) * k[(r * N + j) * LONGEST + c];
            queries[r] += dq * dq / arrives;
        }
        largest += most / R;
    }
    qsort(lengths, R, sizeof *lengths, by_size);
    measured[0] = sqrt(squares / (R * N));
    measured[1] = largest;
    measured[2] = lengths[R / 2];
    qsort(queries, R, sizeof *queries, by_size);
    measured[3] = sqrt(queries[R / 2]);
}

CASE("experiments")
LOOP_TEST(root_of_d, SEEDS) {
    static double q[R * LONGEST], k[R * N * LONGEST], dy[R * N];
    double before = 0, alike = 1;
    tensor_manual_seed(1);
    Tensor *const drawn[] = {tensor_randn(SHAPE(R, 1, LONGEST)), tensor_randn(SHAPE(R, N, LONGEST)),
                             tensor_randn(SHAPE(R, 1, N))};
    tensor_to_doubles(drawn[0], q);
    tensor_to_doubles(drawn[1], k);
    tensor_to_doubles(drawn[2], dy);
    for (int i = 0; i < 3; i++) tensor_release(drawn[i]);
    open_seed(2, _i);
    const Json *e = experiment("root");
    ck_assert_int_eq(count(e, "positions"), 9);
    for (int n = 0; n < 9; n++) {
        const int d = 1 << n;
        double scores[4], divided[4], by_d[4];
        ck_assert_double_eq(label(e, n), d);
        measure(q, k, dy, d, 1, scores);
        measure(q, k, dy, d, 1 / sqrt(d), divided);
        measure(q, k, dy, d, 1.0 / d, by_d);
        for (int c = 0; c < 4; c++) expect_cell(e, n, 0, c, scores[c]);
        for (int c = 0; c < 4; c++) expect_cell(e, n, 1, c, divided[c]);
        for (int c = 0; c < 4; c++) expect_cell(e, n, 2, c, by_d[c]);
        ck_assert_double_eq_tol(scores[0] / sqrt(d), 1, 0.11); /* "a size of sqrt(d)" */
        ck_assert_double_gt(scores[1], before);                /* softmax decides more and more */
        ck_assert_double_eq_tol(divided[1], 0.42, 0.03);
        ck_assert_double_eq_tol(divided[2], 0.155, 0.02);
        if (d >= 4) ck_assert_double_eq_tol(divided[3], divided[2], 0.02); /* "about as long" */
        if (d >= 4) ck_assert_double_lt(by_d[3] * sqrt(d), 0.17);          /* "it sinks" */
        ck_assert_double_eq_tol(by_d[0] * sqrt(d), 1, 0.11);
        ck_assert_double_lt(by_d[1], alike); /* the weights become alike */
        before = scores[1];
        alike = by_d[1];
        ck_assert_double_eq_tol(by_d[2], divided[2], 0.015);          /* "look alike" */
        if (d > 1) ck_assert_int_eq(scores[3] > divided[3], d <= 32); /* "up to d = 32" */
        if (d < LONGEST) continue;
        ck_assert_double_gt(divided[3], 10 * scores[3]);
        ck_assert_double_gt(divided[3], 10 * by_d[3]);
        ck_assert_double_lt(scores[2], 0.001); /* "both go to 0" */
        ck_assert_double_gt(by_d[2], 0.99 * divided[2]);
    }
    ck_assert_int_eq(count(e, "algebra"), 3);
    close_lesson();
}

LOOP_TEST(key_bias, SEEDS) {
    double dk[MOST];
    open_seed(2, _i);
    const Json *e = experiment("bias");
    Head h = read_head();
    const int last = (h.Q - 1) * h.K;
    for (int n = 0; n < count(e, "positions"); n++) {
        h.bias = label(e, n);
        slopes(loss_of_head, &h, h.k, h.K * h.d, dk);
        loss_of(&h);
        for (int j = 0; j < h.K; j++) {
            expect_cell(e, n, j, 0, h.z[last + j]);
            expect_cell(e, n, j, 1, h.a[last + j]);
            for (int c = 0; c < h.d; c++) expect_cell(e, n, j, 2 + c, dk[j * h.d + c]);
            for (int c = 1; c < 2 + h.d; c++) /* nothing moves but the scores */
                ck_assert_str_eq(cell(e, n, j, c), cell(e, 0, j, c));
        }
        expect_cell(e, n, h.K, 1, 1);
        for (int c = 0; c < h.d; c++) ck_assert_str_eq(cell(e, n, h.K, 2 + c), "0.000");
    }
    /* The gradient of a bias of the keys, from the lesson's own dK. */
    read_numbers("K", "grad", dk);
    for (int c = 0; c < h.d; c++) {
        double sum = 0;
        for (int j = 0; j < h.K; j++) sum += dk[j * h.d + c];
        ck_assert_double_lt(fabs(sum), 1e-12);
    }
    close_lesson();
}

/* Lesson 3: [pad] is key 0, or the last one; the causal mask hides what comes later. */
static void mask_padding(Head *h, int pad) {
    for (int i = 0; i < h->Q; i++)
        for (int j = 0; j < h->K; j++) h->keep[i * h->K + j] = j != pad && j <= i;
}

LOOP_TEST(masks, SEEDS) {
    enum {
        ROW = 2,
        MOVED = 3
    }; /* the first query that sees two keys, and the last that it may not */
    static const bool all[] = {true, true, true, true};
    double z[MOST], first[4], zero[4], cut[4];
    open_seed(3, _i);
    const Json *e = experiment("Mask");
    Head h = read_head();
    mask_padding(&h, 0);
    const bool *keep = h.keep + ROW * h.K;
    ck_assert_int_eq(read_numbers("S / sqrt(d)", "value", z), h.Q * h.K);
    double *row = z + ROW * h.K;
    for (int n = 0; n < count(e, "positions"); n++) {
        double zeroed[4], sum = 0;
        row[MOVED] = label(e, n);
        for (int j = 0; j < h.K; j++) zeroed[j] = keep[j] ? row[j] : 0;
        softmax(row, keep, h.K, first);
        softmax(zeroed, all, h.K, zero);
        softmax(row, all, h.K, cut);
        for (int j = 0; j < h.K; j++) cut[j] = keep[j] ? cut[j] : 0;
        for (int j = 0; j < h.K; j++) sum += cut[j];
        for (int j = 0; j < h.K; j++) {
            expect_cell(e, n, 0, j, first[j]);
            expect_cell(e, n, 1, j, zero[j]);
            expect_cell(e, n, 2, j, cut[j]);
            expect_cell(e, n, 3, j,
                        sum > 0 ? first[j] : (double)NAN); /* those of -infinity, or 0 / 0 */
        }
        expect_cell(e, n, 0, h.K, 1);
        expect_cell(e, n, 2, h.K, sum);
        expect_cell(e, n, 3, h.K, sum > 0 ? 1 : (double)NAN);
        ck_assert(sum < 1 && (sum == 0) == (label(e, n) > 800));
        ck_assert_msg(strstr(says(e, n), sum > 0 ? "0 / 0 is NaN" : "they are NaN"), "%s",
                      says(e, n));
        ck_assert(!strstr(says(e, n), "never enters") == (sum == 0));
    }
    close_lesson();
}

LOOP_TEST(padding, SEEDS) {
    open_seed(3, _i);
    const Json *e = experiment("padding");
    Head h = read_head();
    ck_assert_int_eq(count(e, "positions"), 2);
    for (int n = 0; n < 2; n++) {
        double lengths[2][3], dx[MOST];
        const int pad = n == 0 ? 0 : h.K - 1;
        mask_padding(&h, pad);
        for (int out = 0; out < 2; out++) {
            h.counts[pad] = out == 0;
            expect_cell(e, n, out, 0, loss_of(&h));
            lengths[out][0] = slopes(loss_of_head, &h, h.q, h.Q * h.d, dx);
            lengths[out][1] = slopes(loss_of_head, &h, h.k, h.K * h.d, dx);
            lengths[out][2] = slopes(loss_of_head, &h, h.v, h.K * h.D, dx);
            for (int c = 0; c < 3; c++) expect_cell(e, n, out, c + 1, lengths[out][c]);
        }
        h.counts[pad] = true;
        const bool changes = fabs(lengths[0][2] - lengths[1][2]) > 1e-6;
        ck_assert(changes == (n == 1) && changes == !strstr(says(e, n), "nothing can change"));
    }
    close_lesson();
}

/* Lesson 4: x in four uses, and the three matrices times a number. */
typedef struct {
    int T, d;
    double use[4][MOST], w[3][MOST], t[MOST], times;
    bool is_residual, is_causal;
} Uses;

static double loss_of_uses(void *of) {
    const Uses *u = of;
    Head h = {.Q = u->T, .K = u->T, .d = u->d, .D = u->d};
    double *const made[] = {h.v, h.k, h.q};
    for (int m = 0; m < 3; m++)
        for (int i = 0; i < u->T * u->d; i++)
            for (int c = 0; c < u->d; c++)
                made[m][i] +=
                    u->times * u->use[m][i / u->d * u->d + c] * u->w[m][i % u->d * u->d + c];
    for (int i = 0; i < u->T * u->T; i++) h.keep[i] = !u->is_causal || i % u->T <= i / u->T;
    memset(h.counts, true, sizeof h.counts);
    memcpy(h.t, u->t, sizeof h.t);
    if (u->is_residual) memcpy(h.plus, u->use[3], sizeof h.plus);
    return loss_of(&h);
}

static void expect_parts(const Json *e, int n, Uses *u) {
    double part[4][MOST] = {{0}}, dx[MOST], squares = 0;
    for (int r = 0; r < 2; r++, squares = 0) {
        u->is_residual = r == 1;
        for (int m = 0; m < 3 + r; m++)
            expect_cell(e, n, r, m, slopes(loss_of_uses, u, u->use[m], u->T * u->d, part[m]));
        for (int i = 0; i < u->T * u->d; i++) {
            dx[i] = part[0][i] + part[1][i] + part[2][i] + r * part[3][i];
            squares += dx[i] * dx[i];
        }
        expect_cell(e, n, r, 4, sqrt(squares));
    }
    ck_assert_str_eq(cell(e, n, 0, 3), "");
}

LOOP_TEST(residual, SEEDS) {
    Uses u = {.is_causal = false};
    open_seed(4, _i);
    const Json *e = experiment("residual");
    const int size = read_numbers("x", "value", u.use[0]);
    u.d = (int)(sqrt(read_numbers("W_v", "value", u.w[0])) + 0.5);
    u.T = size / u.d;
    read_numbers("W_k", "value", u.w[1]);
    read_numbers("W_q", "value", u.w[2]);
    read_numbers("T", "value", u.t);
    for (int m = 1; m < 4; m++) memcpy(u.use[m], u.use[0], sizeof u.use[m]);
    for (int n = 0; n < count(e, "positions"); n++) {
        u.times = label(e, n);
        expect_parts(e, n, &u);
        const bool little = strtod(cell(e, n, 0, 4), NULL) < 0.1 * strtod(cell(e, n, 1, 4), NULL);
        ck_assert(little || !strstr(says(e, n), "almost nothing"));
    }
    ck_assert(strstr(says(e, count(e, "positions") - 1), "almost nothing"));
    close_lesson();
}

LOOP_TEST(reshape, 2) {
    LessonOptions options = LESSON_OPTIONS;
    options.heads = _i == 0 ? 0 : 2;
    options.tokens = _i == 0 ? 0 : 3;
    open_lesson(5, options);
    const Json *e = experiment("reshape");
    const int H = _i == 0 ? 3 : 2, T = _i == 0 ? 4 : 3, d = 2;
    ck_assert_int_eq(count(e, "positions"), H);
    ck_assert_int_eq(count(e, "rows"), T);
    for (int h = 0; h < H; h++)
        for (int t = 0; t < T; t++)
            for (int c = 0; c < d; c++) {
                const int flat = (h * T + t) * d + c; /* in the memory of Q, and of the heads */
                const char *row = json_at(json_get(e, "rows"), t)->text;
                const char *word = json_at(json_get(e, "rows"), flat / (H * d))->text;
                ck_assert_str_eq(cell(e, h, t, c), format("%s %d", row, h * d + c));
                ck_assert_str_eq(cell(e, h, t, d + c), format("%s %d", word, flat % (H * d)));
            }
    close_lesson();
}

/* Lesson 1: w stands for attention's width. */
typedef struct {
    int Q, K;
    double queries[MOST], keys[MOST], values[MOST], t[MOST], w;
} Width;

static double loss_of_width(void *of) {
    const Width *x = of;
    double loss = 0;
    for (int i = 0; i < x->Q; i++) {
        double sum = 0, y = 0;
        for (int j = 0; j < x->K; j++) {
            const double a = exp(-0.5 * pow((x->queries[i] - x->keys[j]) * x->w, 2));
            sum += a;
            y += a * x->values[j];
        }
        loss += pow(y / sum - x->t[i], 2);
    }
    return loss;
}

LOOP_TEST(check, SEEDS) {
    Width x;
    double slope, closest = 1;
    open_seed(1, _i);
    x.Q = read_numbers("queries", "value", x.queries);
    x.K = read_numbers("keys", "value", x.keys);
    read_numbers("values", "value", x.values);
    read_numbers("T", "value", x.t);
    read_numbers("w", "value", &x.w);
    read_numbers("w", "grad", &slope);
    const Json *e = find_experiment("check");
    ck_assert_msg((e != NULL) == (fabs(slope) > 0.1), "the slope is %g", slope);
    for (int n = 0; e && n < count(e, "positions"); n++) {
        const double h = label(e, n), w = x.w;
        const double error = strtod(cell(e, n, 0, 0), NULL), kink = strtod(cell(e, n, 2, 0), NULL);
        ck_assert_double_eq_tol(h * pow(10, n), 1, 1e-12);
        x.w = w + h;
        const double up = loss_of_width(&x);
        x.w = w - h;
        const double here = fabs((up - loss_of_width(&x)) / (2 * h) / slope - 1);
        x.w = w;
        if (n < 4) ck_assert_double_eq_tol(error, here, 0.051 * pow(10, ceil(log10(here))) + 1e-9);
        else ck_assert_double_lt(error, 1e-6 + 1e-13 / h / fabs(slope));
        if (n < 3) ck_assert(kink > 0.35 && strstr(says(e, n), "kink"));
        else ck_assert(kink < 1e-6 && !strstr(says(e, n), "kink"));
        if (n >= 3 && n < 8) closest = fmin(closest, error); /* "6 digits or more" */
    }
    ck_assert(!e || closest < 1e-6);
    close_lesson();
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
    int number;
    LessonOptions options;
    int experiments;
} cases[] = {
    {1, {.dropout = -1, .seed = LESSON_SEED}, 1},
    {1, {.dropout = -1, .seed = LESSON_SEED, .keys = 1}, 0}, /* the slope is 0 */
    {2, {.dropout = -1, .seed = LESSON_SEED}, 2},
    {2, {.dropout = -1, .seed = LESSON_SEED, .rule = "softmax"}, 2},
    {2, {.dropout = -1, .seed = 5, .no_scale = true, .size = 7}, 1},
    {2, {.dropout = -1, .seed = 5, .keys = 8}, 1}, /* too many rows for a bias */
    {2, {.dropout = -1, .seed = 5, .queries = 1, .keys = 1, .size = 1}, 2},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'a'}, 2},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'a', .lengths = true, .window = true}, 2},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'a', .no_mask = true}, 0},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'a', .no_scale = true}, 1},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'a', .queries = 1, .keys = 1}, 0},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'b'}, 0},
    {4, {.dropout = -1, .seed = LESSON_SEED, .step = 0}, 1},
    {4, {.dropout = 0, .seed = 4, .causal = 1, .tokens = 5, .words = "a b c d e"}, 1},
    {5, {.dropout = -1, .seed = LESSON_SEED}, 1},
    {5, {.dropout = -1, .seed = LESSON_SEED, .heads = 1}, 0},
    {6, {.dropout = -1, .seed = LESSON_SEED}, 0},
};

static void expect_whole(const Json *e, const Plan *plan) {
    const int rows = count(e, "rows"), columns = count(e, "columns");
    ck_assert_msg(plan_find(plan, json_text(e, "at", ""), true) > 0, "%s", json_text(e, "at", ""));
    ck_assert_int_eq((int)strlen(json_text(e, "kinds", "")), columns);
    ck_assert_int_lt((int)json_integer(e, "start", 99), count(e, "positions"));
    const bool has_lines = json_get(e, "algebra") != NULL;
    ck_assert(*json_text(position(e, 0), "says", "") || has_lines);
    ck_assert(*json_text(e, "lead", ""));
    for (int n = 0; n < count(e, "positions"); n++) {
        ck_assert_int_eq(count(position(e, n), "cells"), rows * columns);
        if (has_lines) continue;
        ck_assert_int_lt((int)strlen(says(e, n)), 300);
        const char *said = json_text(position(e, n), "says", NULL); /* once, not twice */
        ck_assert(n == 0 || !said || strcmp(said, says(e, n - 1)) != 0);
    }
}

LOOP_TEST(wholes, COUNT(cases)) {
    Plan plan;
    open_lesson(cases[_i].number, cases[_i].options);
    ck_assert(plan_make(&plan, lesson));
    int n = 0;
    const Json *e = json_first(lesson, "experiments");
    for (; e; e = e->next, n++) expect_whole(e, &plan);
    ck_assert_int_eq(n, cases[_i].experiments);
    plan_free(&plan);
    close_lesson();
}

int main(void) { return run_tests("experiments"); }
