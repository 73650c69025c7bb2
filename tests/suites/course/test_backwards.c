/* test_backwards.c - is the answer key of the exercises right? The right results are compared with
 * differences of the forwards in the students' own files; the results of a mistake must differ from
 * the right ones and from those of every other mistake; and the reader of submissions must see
 * which backward is empty. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../examples/exercises/marker/calls.h"
#include "../../../examples/exercises/marker/diagnosis.h"
#include "../../../examples/exercises/marker/submission.h"
#include "../../../nn/nn.h"
#include "../common.h"

/* The forwards. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wpedantic"
#include "../../../examples/exercises/students/14_flash.c"
#include "forwards.inc" /* text_forward: those of the texts */

enum { MOST = 1 << 15 };

/* Somebody has added it. */
static bool is_own(const Exercise *e) { return e->number > 14; }

/* ---- differences -------------------------------------------------------------------------------
 */

/* The inputs of a forward that the exercise's backward has a gradient for, in the order of its
 * outputs, and where the backward gets no x, made up here. */
typedef struct {
    double *leaf[5];
    double own[2][MOST];
} Leaves;

static void forward(const Exercise *e, const Call *c, const Leaves *l, double *y) {
    const int *n = c->size;
    double *const *x = l->leaf;
    if (e->number == 14)
        flash(n[0], n[1], n[2], (void *)y, (void *)x[0], (void *)x[1], (void *)x[2]);
    else text_forward(e, c, x, y);
}

/* Output "dx" is the gradient of the input "x". */
static int named_input(const Exercise *e, int output) {
    for (int k = 0; exercise_array(e, k); k++)
        if (strcmp(exercise_array(e, k)->name, exercise_array(e, output)->name + 1) == 0) return k;
    return -1;
}

/* A backward that gets y has the x whose softmax y is; one that gets neither may have any x: 0. */
static void make_own(const Exercise *e, const Call *c, double *x, int64_t n) {
    const double *y = e->number == 4 ? c->array[1] : c->array[2];
    const double s = e->number == 5 ? c->number[0] : 1;
    for (int64_t i = 0; i < n; i++) {
        const bool kept = e->number == 4 || (e->number == 5 && ((const bool *)c->array[0])[i]);
        x[i] = kept ? log(y[i]) / s : 0;
    }
}

static int leaves_of(const Exercise *e, const Call *c, Leaves *l) {
    int n = 0, own = 0;
    for (int k = 0; exercise_array(e, k); k++) {
        if (exercise_array(e, k)->kind != OUTPUT) continue;
        const int input = named_input(e, k);
        l->leaf[n] = input >= 0 ? c->array[input] : l->own[own++];
        if (input < 0) make_own(e, c, l->leaf[n], call_length(e, c, k));
        n++;
    }
    return n;
}

/* sum of dy y; a masked dy is NaN, and its y 0. */
static double loss(const Exercise *e, const Call *c, const Leaves *l) {
    double y[MOST], sum = 0;
    const int at = dy_array(e);
    forward(e, c, l, y);
    if (at < 0) return c->number[0] * y[0];
    const double *dy = c->array[at];
    for (int64_t i = 0; i < call_length(e, c, at); i++) sum += isnan(dy[i]) ? 0 : dy[i] * y[i];
    return sum;
}

/* By differences of the fourth order. No number of this leaf is larger than most. */
static double slope(const Exercise *e, const Call *c, const Leaves *l, double *x, double most) {
    const double at = *x, h = 1e-3 * fmax(0.1 * fmin(1, most), fmin(1, fabs(at)));
    const double step[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *x = at + step[i] * h;
        sum += weight[i] * loss(e, c, l);
    }
    *x = at;
    return sum / (12 * h);
}

/* Of a large call some elements are enough. */
static void compare_with_differences(const Exercise *e, const Call *c) {
    static Leaves l;
    leaves_of(e, c, &l);
    for (int k = 0, leaf = 0; exercise_array(e, k); k++) {
        if (exercise_array(e, k)->kind != OUTPUT) continue;
        const double *right = c->array[k];
        const int64_t n = call_length(e, c, k), step = c->lone ? n / 4 + 1 : 1;
        double most = 1, scale = named_input(e, k) < 0 ? 1 : 1e-7;
        for (int64_t i = 0; i < n; i++) {
            most = fmax(most, fabs(right[i]));
            scale = fmax(scale, fabs(l.leaf[leaf][i]));
        }
        for (int64_t i = 0; i < n; i += step) {
            const double found = slope(e, c, &l, &l.leaf[leaf][i], scale);
            ck_assert_msg(fabs(found - right[i]) < 1e-7 * most,
                          "%s, input %d, %s[%d]: %.9g, and by differences %.9g", e->name, c->input,
                          exercise_array(e, k)->name, (int)i, right[i], found);
        }
        leaf++;
    }
}

/* Where the backward of an exercise of one's own gets y, it is the result of its x. */
static void set_results(const Exercise *e, Calls *calls) {
    for (int k = 0; is_own(e) && exercise_array(e, k); k++)
        for (int i = 0; strcmp(exercise_array(e, k)->name, e->dy + 1) == 0 && i < calls->n; i++) {
            static Leaves l;
            leaves_of(e, &calls->call[i], &l);
            forward(e, &calls->call[i], &l, calls->call[i].array[k]);
        }
}

CASE("answer key")
/* Exercise _i, on all calls with a dense dy. */
LOOP_TEST(right_results_agree_with_differences, MOST_EXERCISES) {
    if (_i >= num_exercises) return;
    const Exercise *e = exercise_list[_i];
    for (uint64_t seed = 7; seed < 9 && e->dy; seed++) {
        Calls calls = calls_draw(e, seed);
        ck_assert_int_gt(calls.n, 0);
        set_results(e, &calls);
        calls_right(e, &calls);
        ck_assert_ptr_null(tensor_error());
        for (int i = 0; i < calls.n; i++)
            if (calls.call[i].dy == DENSE) compare_with_differences(e, &calls.call[i]);
        calls_free(&calls);
    }
}

/* Exercise 13 against the optimizer of nn: theta after each step, with a learning rate that
 * changes. */
TEST(sgd_agrees_with_the_optimizer) {
    extern const Exercise exercise_sgd;
    const Exercise *e = &exercise_sgd;
    Calls calls = calls_draw(e, 7);
    Calls right = calls_copy(e, &calls);
    Linear *layer = NULL;
    Optimizer *sgd = NULL;
    calls_right(e, &right);
    for (int i = 0; i < calls.n; i++) {
        const Call *c = &calls.call[i];
        const Shape shape = SHAPE(1, c->size[0]);
        if (c->size[0] > 256) continue; /* expect_elements reads no more */
        if (!c->carries) {
            nn_free(sgd);
            nn_free(layer);
            layer = nn_linear_new(c->size[0], 1, false);
            sgd = nn_sgd_new(layer, (SGDConfig){.lr = 1, .momentum = c->number[1]});
            Tensor *theta = tensor_from_doubles(shape, c->array[0]);
            ck_assert(tensor_copy_from(layer->weight, theta));
            tensor_release(theta);
        }
        tape_begin();
        Tensor *g = tape_own(tensor_from_doubles(shape, c->array[2]));
        nn_optimizer_zero_grad(sgd);
        ck_assert(ag_backward(ag_sum(ag_mul(layer->weight, g))));
        ck_assert(nn_optimizer_scale_lr(sgd, c->number[0]) && nn_optimizer_step(sgd));
        tape_end();
        expect_elements("theta", layer->weight, right.call[i].array[0], 1e-12);
    }
    nn_free(sgd);
    nn_free(layer);
    calls_free(&calls);
    calls_free(&right);
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

/* Do two lists of results differ in a call on which both mistakes are decided? b NULL: the right
 * results. */
static bool differ(const Exercise *e, const Calls *x, const KnownMistake *a, const Calls *y,
                   const KnownMistake *b) {
    for (int i = 0; i < x->n; i++) {
        if (!mistake_counts(a, &x->call[i]) || (b && !mistake_counts(b, &x->call[i]))) continue;
        for (int k = 0; exercise_array(e, k); k++)
            if (is_output(exercise_array(e, k)) && !same_output(e, &x->call[i], &y->call[i], k))
                return true;
    }
    return false;
}

CASE("mistakes")
/* For several seeds: each mistake is wrong, no two with different ids are the same. */
LOOP_TEST(mistakes_can_be_told_apart, MOST_EXERCISES) {
    if (_i >= num_exercises) return;
    const Exercise *e = exercise_list[_i];
    for (uint64_t seed = 5; seed < 9; seed++) {
        Calls given = calls_draw(e, seed), right = calls_copy(e, &given), wrong[MOST_MISTAKES];
        int n = 0;
        calls_right(e, &right);
        for (const KnownMistake *m = exercise_mistake(e, 0); m; m = exercise_mistake(e, n)) {
            ck_assert_int_lt(n, MOST_MISTAKES);
            wrong[n] = calls_copy(e, &given);
            calls_wrong(e, &wrong[n], m);
            ck_assert_msg(differ(e, &wrong[n], m, &right, NULL), "%s, %s is right", e->name, m->id);
            for (int i = 0; i < n; i++) {
                const KnownMistake *other = exercise_mistake(e, i);
                ck_assert_msg(strcmp(m->id, other->id) == 0 ||
                                  differ(e, &wrong[n], m, &wrong[i], other),
                              "%s: %s is %s", e->name, m->id, other->id);
            }
            n++;
        }
        ck_assert_int_ge(n, is_own(e) ? 0 : 3);
        for (int i = 0; i < n; i++) calls_free(&wrong[i]);
        calls_free(&given);
        calls_free(&right);
    }
}

/* A mistake says what is computed and asks a question, by itself or by another exercise. */
TEST(mistakes_have_their_words) {
    for (int number = 0; number < num_exercises; number++) {
        const Exercise *e = exercise_list[number];
        const char *end;
        char label[LABEL_SIZE];
        exercise_label(e, label);
        ck_assert_int_eq(exercise_named(label, &end), number);
        ck_assert_str_eq(end, "");
        for (int i = 0; exercise_mistake(e, i); i++) {
            const KnownMistake *m = exercise_mistake(e, i);
            MistakeWords words;
            ck_assert_msg(!m->says == !m->asks, "%s, %s: half of the words", e->name, m->id);
            mistake_words(e, m, &words);
            ck_assert_msg(*words.says && words.says[strlen(words.says) - 1] == '.', "%s, %s: %s",
                          e->name, m->id, words.says);
            ck_assert_msg(strchr(words.asks, '?'), "%s, %s: no question", e->name, m->id);
        }
    }
}

/* Is a function defined in this text: does a line that is not indented have its name and a bracket,
 * and no semicolon at its end? Kernels are NAME(function)(...). */
static bool defines(const char *source, const char *function) {
    char kernel[96], plain[96];
    snprintf(kernel, sizeof kernel, "NAME(%s)(", function);
    snprintf(plain, sizeof plain, "%s(", function);
    for (const char *line = source; *line;) {
        const size_t length = strcspn(line, "\n");
        char copy[256];
        snprintf(copy, sizeof copy, "%.*s", (int)(length < 255 ? length : 255), line);
        const char *at = strstr(copy, kernel);
        if (!at) at = strstr(copy, plain);
        const bool whole = at && at > copy && (at[-1] == ' ' || at[-1] == '*');
        if (whole && strncmp(copy, "static ", 7) == 0 && copy[strlen(copy) - 1] != ';') return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* Sizes of 1 are among the inputs. */
TEST(exercises_are_complete) {
    for (int i = 0; i < num_exercises; i++) {
        bool one = false;
        for (const Sizes *s = exercise_list[i]->inputs; s->size[0]; s++)
            if (s->size[0] == 1) one = true;
        ck_assert_msg(one, "%s has no size 1", exercise_list[i]->name);
    }
}

/* Each function that a right answer names stands in the file that it names: "FILE, f and g, and
 * FILE, h". The other words are prose. */
TEST(the_librarys_loops_are_where_it_says) {
    static const char *const prose = " the row of scale and backward its ops with n - 1 ";
    for (int i = 0; i < num_exercises; i++) {
        const char *name = exercise_list[i]->name;
        char where[256], word[96], file[96] = "";
        int files = 0;
        char *source = NULL;
        if (is_own(exercise_list[i])) continue;
        snprintf(where, sizeof where, "%s", exercise_list[i]->where);
        for (char *at = strtok(where, " ,"); at; at = strtok(NULL, " ,")) {
            snprintf(word, sizeof word, " %s ", at);
            if (strchr(at, '/')) {
                free(source);
                snprintf(file, sizeof file, "%s", at);
                source = submission_read(file, 1 << 20);
                ck_assert_msg(source, "%s: there is no %s", name, file);
                files++;
            } else if (!strstr(prose, word)) {
                ck_assert_msg(source && defines(source, at), "%s: there is no %s in %s", name, at,
                              file);
            }
        }
        ck_assert_int_ge(files, 1);
        free(source);
    }
}

/* ---- submissions -------------------------------------------------------------------------------
 */

CASE("submissions")
TEST(empty_backwards) {
    static const char *const empty[] = {
        "void f(int n) {\n    /* your code */\n}\n",
        "void f(int n) {}",
        "void f ( int n )\n{ ; (void)n; ( void ) n ; }",
        "void f(int n) { double a = 0, b[2] = {0, 0.5}, x [2 * n]; /* ? */ SHOW(\"x\",x[0]); }",
        "void f(int n) { const int m = 2 * n; for (int i = 0; i < m; i++) SHOW(\"x\", x[i], i); }",
        "void f(int n);\nvoid f(int n) { // } x = 1;\n}",
        "/* void f() { x(); } */ void f(int n) { }",
        "char *s = \"void f() { 1; }\"; void f(void) {}",
        "void g(void) { f(1); }\nvoid f(int n) { }",
    };
    static const char *const written[] = {
        "",
        "void f(int n);",
        "void f(int n) { n++; }",
        "void f(int n) { double x = n; }",
        "void f(int n) { double x = 1 + n; }",
        "void f(int n) { int *x = 0; }",
        "void f(int n) { for (int i = 0; i < n; x[i] = 1, i++); }",
        "void f(int n) { for (;;); }",
        "void f(int n) { SHOWN = 1; }",
        "void f(int n) { return; }",
        "void ff(int n) { } void f_(void) {}",
        "void f(int n) { \"text\"; }",
        "#define F f\nvoid F(int n) {}",
        "void f(int n) { } void f(int n) { n = 1; }",
        "void f(int n) {",
        "void f(int n",
        "f",
        "/* void f(int n) {}",
        "void f(int n) { '}'; }",
        "void f(int n) { (void)g(n); }",
        "void f(int n) { (void)",
    };
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        ck_assert_msg(submission_is_empty(empty[i], "f"), "%s", empty[i]);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        ck_assert_msg(!submission_is_empty(written[i], "f"), "%s", written[i]);
}

static void expect_line(const char *messages, const char *line) {
    char found[128];
    submission_error(messages, "f_backward", found, sizeof found);
    ck_assert_str_eq(found, line);
}

TEST(what_a_compiler_says) {
    char found[40];
    expect_line("", "the compiler gives no reason");
    expect_line("a/b.c: In function 'f':\na/b.c:3:5: error: expected ';'\n    x\n",
                "b.c:3:5: error: expected ';'");
    expect_line(
        "/usr/bin/ld: /tmp/x.o: in function `call':\nh.c:(.text+0x1): undefined reference to `f_backward'\n",
        "there is no function f_backward in it");
    expect_line("/tmp/x.o: in function `f': x.c:(.text+0x1): undefined reference to `g'\n",
                "undefined reference to `g'");
    expect_line("/usr/bin/ld: /tmp/x.o: in function `f_backward':\n"
                "f.c:(.text+0x1): undefined reference to `g'\n"
                "collect2: error: ld returned 1 exit status\n",
                "undefined reference to `g'");
    expect_line("x/y.c:1:1: error: \xc3\xa9\033[31m\n", "y.c:1:1: error: ???[31m");
    const char *const text =
        "x/y.c:1:1: note: a\nx/y.c:2:2: warning: unused variable 'abcdefghijklm'\n"
        "y.c: In function 'f':\ny.c:3:2: warning: b\ny.c:4:2: warning: c\n";
    submission_warning(text, "g", found, sizeof found);
    ck_assert_str_eq(found, "y.c:2:2: warning: unused variable 'abcd");
    submission_warning(text, "f", found, sizeof found);
    ck_assert_str_eq(found, "y.c:3:2: warning: b");
    submission_warning("y.c:1: error: no\n", "f", found, sizeof found);
    ck_assert_str_eq(found, "");
}

int main(void) { return run_tests("backwards"); }
