/* hints.c - what can be said about a wrong output without a name: see hints.h. */
#include "hints.h"

#include "diagnosis.h"
#include "numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...) {
    const size_t at = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + at, size - at, format, arguments);
    va_end(arguments);
}

/* ---- right, but for something ------------------------------------------------------------------
 */

/* One call of the student's function, and the same call with the right output. */
typedef struct {
    int64_t n, columns;
    const double *x, *right;
} Pair;

static Pair pair_of(const Exercise *e, const Trial *trial, const Calls *right, int call,
                    int array) {
    return (Pair){call_length(e, &right->call[call], array),
                  call_columns(e, &right->call[call], array), trial->calls.call[call].array[array],
                  right->call[call].array[array]};
}

static double largest(const Pair *p) {
    double most = 1;
    for (int64_t i = 0; i < p->n; i++) most = fmax(most, fabs(p->right[i]));
    return most;
}

/* Is x factor times the right output, within this part of the largest number? */
static bool is_near(const Pair *p, double factor, double part) {
    const double most = fmax(1, fabs(factor)) * largest(p);
    for (int64_t i = 0; i < p->n; i++)
        if (!(fabs(p->x[i] - factor * p->right[i]) <= part * most)) return false;
    return true;
}
static bool is_multiple(const Pair *p, double factor) { return is_near(p, factor, 1e-9); }

/* Are all numbers almost 0? Then every factor fits. */
static bool is_small(const Pair *p) {
    for (int64_t i = 0; i < p->n; i++)
        if (!(fabs(p->x[i]) < 1e-4)) return false;
    return true;
}

/* The factor of one call, by its largest right number; NaN if they are all almost 0. */
static double factor_of(const Pair *p) {
    int64_t at = 0;
    for (int64_t i = 0; i < p->n; i++)
        if (fabs(p->right[i]) > fabs(p->right[at])) at = i;
    return fabs(p->right[at]) > 1e-6 ? p->x[at] / p->right[at] : (double)NAN;
}

/* Does x have NaN where the right output has a number? */
static bool has_nan(const Pair *p) {
    for (int64_t i = 0; i < p->n; i++)
        if (isnan(p->x[i]) && !isnan(p->right[i])) return true;
    return false;
}

/* Element i of the right output, transposed (a square array) or shifted. */
static double transposed(const Pair *p, int64_t i) {
    return p->right[i % p->columns * p->columns + i / p->columns];
}
static double shifted_up(const Pair *p, int64_t i) {
    return i + 1 < p->n ? p->right[i + 1] : p->x[i];
}
static double shifted_down(const Pair *p, int64_t i) { return i > 0 ? p->right[i - 1] : p->x[i]; }

static bool is_moved(const Pair *p, double (*moved)(const Pair *, int64_t)) {
    const double most = largest(p);
    for (int64_t i = 0; i < p->n; i++)
        if (!(fabs(p->x[i] - moved(p, i)) <= 1e-9 * most)) return false;
    return true;
}

/* Is x right but where it must be exactly 0: 1e-12 at a masked element? */
static bool is_right_elsewhere(const Exercise *e, const Call *call, const Pair *p) {
    const double most = largest(p);
    for (int64_t i = 0; i < p->n; i++)
        if (!e->is_zero(call, i) && !(fabs(p->x[i] - p->right[i]) <= 1e-9 * most)) return false;
    return true;
}

/* What holds in all calls, where it can be seen. */
typedef struct {
    bool nan, almost, multiple, zero, constant, transposed, up, down;
    double factor; /* of the first call that has one */
    int calls, squares, long_ones;
} Found;

static void look_at(Found *found, const Pair *p, bool has_rows) {
    const double factor = factor_of(p);
    found->calls++;
    if (has_nan(p)) found->nan = true;
    if (!is_near(p, 1, 1e-5)) found->almost = false;
    if (factor == 0) found->zero = true;
    if (isnan(factor)) {
        if (!is_small(p)) found->multiple = false;
    } else {
        if (!is_multiple(p, factor)) found->multiple = false;
        if (isnan(found->factor)) found->factor = factor;
        if (fabs(factor - found->factor) > 1e-6 * fabs(factor)) found->constant = false;
    }
    if (has_rows && p->columns > 1 && p->n == p->columns * p->columns) {
        found->squares++;
        if (!is_moved(p, transposed)) found->transposed = false;
    }
    if (p->n > 2) {
        found->long_ones++;
        if (!is_moved(p, shifted_up)) found->up = false;
        if (!is_moved(p, shifted_down)) found->down = false;
    }
}

/* ---- the terms of a number ---------------------------------------------------------------------
 */

/* The calls with one-hot dy's of an input have its Jacobian: element i of the output, in the j-th
 * of them, is the factor of dy[j]. */
typedef struct {
    const Call *call, *jacobian; /* with a dense dy; with the one-hot dy's */
    int dy, array, n;            /* the numbers of two arrays, and how many dy's there are */
} Terms;

static Terms terms_of(const Exercise *e, const Calls *right, int call, int array) {
    Terms t = {.call = &right->call[call], .dy = dy_array(e), .array = array};
    if (t.dy < 0 || t.call->dy == ONE_HOT || t.call->measured) return t;
    int first = call;
    while (first > 0 && right->call[first - 1].input == t.call->input) first--;
    t.jacobian = &right->call[first];
    while (t.jacobian[t.n].dy == ONE_HOT) t.n++;
    return t;
}
static double factor_at(const Terms *t, int64_t i, int j) {
    return ((double *)t->jacobian[j].array[t->array])[i];
}
static double dy_of(const Terms *t, int j) { return ((double *)t->call->array[t->dy])[j]; }
static bool is_term(const Terms *t, int64_t i, int j) {
    return factor_at(t, i, j) != 0 && !isnan(dy_of(t, j));
}
/* The last term of element i; -1 if there is none. */
static int last_term(const Terms *t, int64_t i) {
    int last = t->n - 1;
    while (last >= 0 && !is_term(t, i, last)) last--;
    return last;
}

/* Numbers so large that a tanh is flat, or a weight 0, make a factor 0: which term is the last? */
static bool is_moderate(const Exercise *e, const Call *call) {
    for (int k = 0; exercise_array(e, k); k++)
        for (int64_t i = 0; exercise_array(e, k)->kind == INPUT && i < call_length(e, call, k); i++)
            if (fabs(((double *)call->array[k])[i]) > 4) return false;
    return true;
}

/* Is every element of the output the last one of its terms, as = in place of += leaves it? */
static bool is_overwritten(const Exercise *e, const Trial *trial, const Calls *right, int array) {
    bool seen = false;
    for (int call = 0; call < right->n; call++) {
        const Terms t = terms_of(e, right, call, array);
        if (t.n < 2 || trial->result[call].call < 0 || !is_moderate(e, t.call)) continue;
        const Pair p = pair_of(e, trial, right, call, array);
        for (int64_t i = 0; i < p.n; i++) {
            const int last = last_term(&t, i);
            const double value = last < 0 ? 0 : factor_at(&t, i, last) * dy_of(&t, last);
            if (!(fabs(p.x[i] - value) <= 1e-9 * largest(&p))) return false;
            if (fabs(value - p.right[i]) > 1e-6) seen = true;
        }
    }
    return seen;
}

enum { MOST_TERMS = 6 };

/* Why has every dy the factor 0? */
static const char *why_zero(const Exercise *e, const Call *call, int64_t i) {
    if (e->is_zero && e->is_zero(call, i)) return ": a masked x changes nothing";
    if ((e->number == 4 || e->number == 5) && call->size[0] == 1)
        return ": with n = 1, y is 1 whatever x is";
    if (e->number == 8 && call->size[1] == 1) return ": with n = 1, xhat is 0 whatever x is";
    return "";
}

static void append_term(const Exercise *e, const Terms *t, int64_t i, int j, char *text,
                        size_t size) {
    const double factor = factor_at(t, i, j), dy = dy_of(t, j);
    char name[64], numbers[3][32];
    element_name(e, t->call, t->dy, j, name, sizeof name);
    number_signed(numbers[0], dy, 4);
    number_signed(numbers[1], factor, 4);
    number_signed(numbers[2], dy * factor, 4);
    append(text, size, " %s = %s times %s = %s", name, numbers[0], numbers[1], numbers[2]);
}

/* The loss of 9 is one number, so its Jacobian is one row. */
static void append_loss(const Call *call, int64_t i, char *text, size_t size) {
    const double dloss = call->number[0], right = ((double *)call->array[0])[i];
    if (dloss == 0) return; /* + 0: no -0 below */
    append(text, size, "dx[%d] should be dloss = %.4g times %.4g%s.\n", (int)i, dloss,
           right / dloss + 0, call->size[1] < 0 ? ", since a target below 0 is ignored" : "");
}

/* The formula of 13, whose arrays are theta, velocity and g. */
static void append_step(const Calls *given, const Calls *right, int at, int array, int64_t i,
                        char *text, size_t size) {
    const Call *call = &right->call[at];
    const Call *before = call->carries ? &right->call[at - 1] : &given->call[at];
    const double was = ((double *)before->array[array])[i];
    const double velocity = ((double *)call->array[1])[i], g = ((double *)call->array[2])[i];
    if (array == 0)
        append(text, size,
               "theta[%d] should be its theta before (%.4g) minus lr (%.4g) times its new velocity "
               "(%.4g).\n",
               (int)i, was, call->number[0], velocity);
    else
        append(text, size,
               "velocity[%d] should be momentum (%.4g) times its velocity before (%.4g) plus g "
               "(%.4g).\n",
               (int)i, call->number[1], was, g);
}

static void append_terms(const Exercise *e, const Calls *right, int call, int array, int64_t i,
                         char *text, size_t size) {
    const Terms t = terms_of(e, right, call, array);
    const int last = t.n ? last_term(&t, i) : -1;
    int terms = 0;
    char name[64];
    if (!t.n) return;
    element_name(e, t.call, array, i, name, sizeof name);
    if (last < 0) {
        append(text, size, "%s should be 0, since every %s has the factor 0 here%s.\n", name, e->dy,
               why_zero(e, t.call, i));
        return;
    }
    append(text, size, "%s should be the sum of these terms:", name);
    for (int j = 0; j <= last; j++) {
        if (!is_term(&t, i, j) || (terms >= MOST_TERMS && j < last)) continue;
        if (terms) append(text, size, terms < MOST_TERMS ? "," : ", ...");
        append_term(e, &t, i, j, text, size);
        terms++;
    }
    append(text, size, ".\n");
}

void hints_terms(const Exercise *e, const Calls *given, const Calls *right, int call, int array,
                 int64_t i, char *text, size_t size) {
    if (e->number == 9) append_loss(&right->call[call], i, text, size);
    else if (e->number == 13) append_step(given, right, call, array, i, text, size);
    else append_terms(e, right, call, array, i, text, size);
}

/* ---- all of an output --------------------------------------------------------------------------
 */

/* Is the result of a doubled dy twice the one before? */
static bool doubles(const Exercise *e, const Trial *trial, int array) {
    for (int i = 1; i < trial->calls.n; i++) {
        const Call *call = &trial->calls.call[i];
        if (call->dy != DOUBLED || trial->result[i].call < 0 || trial->result[i - 1].call < 0)
            continue;
        const Pair p = {call_length(e, call, array), 1, call->array[array],
                        trial->calls.call[i - 1].array[array]};
        if (!is_multiple(&p, 2)) return false;
    }
    return true;
}

static const char *nan_question(const Exercise *e) {
    return e->is_zero ? "Or is a number that may be NaN multiplied by 0?"
                      : "Or is something divided by 0?";
}

/* The output is a multiple of the right one on every input. */
static void say_factor(const Found *f, const char *name, const Pair *here, char *text,
                       size_t size) {
    const double factor = here ? factor_of(here) : (double)NAN;
    if (f->constant && fabs(f->factor + 1) < 1e-6)
        append(text, size, "%s is right but for its sign, on every input.\n", name);
    else if (f->constant)
        append(text, size, "%s is %.6g times what it should be, on every input.\n", name,
               f->factor);
    else if (isnan(factor) || fabs(factor - 1) < 1e-6)
        append(text, size,
               "%s is right up to a factor, which differs from input to input. What is it made "
               "of?\n",
               name);
    else
        append(text, size,
               "Here %s is %.6g times what it should be; on other inputs the factor differs. What "
               "is it made of?\n",
               name, factor);
}

void hints_output(const Exercise *e, const Trial *trial, const Calls *right, int array, int here,
                  char *text, size_t size) {
    const char *name = exercise_array(e, array)->name;
    Found f = {false, true, true, false, true, true, true, true, (double)NAN, 0, 0, 0};
    Pair shown = {0};
    bool elsewhere = e->is_zero != NULL;
    for (int i = 0; i < right->n; i++) {
        if (trial->result[i].call < 0) continue;
        const Pair p = pair_of(e, trial, right, i, array);
        if (i == here) shown = p;
        look_at(&f, &p, exercise_array(e, array)->rows);
        elsewhere = elsewhere && is_right_elsewhere(e, &right->call[i], &p);
    }
    if (f.nan)
        append(text, size,
               "%s has NaN in it. Is a variable or an array of your own not set to 0 before +=? Is "
               "an index too large? %s\n",
               name, nan_question(e));
    else if (trial->unsteady >> array & 1)
        append(text, size,
               "%s has two results for one input: does the function draw numbers, or remember "
               "something?\n",
               name);
    else if (elsewhere)
        append(text, size,
               "%s is right where keep is true, and small, but not 0, where it is false. What does "
               "your code write there?\n",
               name);
    else if (f.almost)
        append(text, size,
               "%s is almost right. Is a float used somewhere, or a constant with few digits?\n",
               name);
    else if (f.multiple && !f.zero && !isnan(f.factor))
        say_factor(&f, name, shown.n ? &shown : NULL, text, size);
    else if (is_overwritten(e, trial, right, array))
        append(text, size,
               "Each element of %s is the last of its terms alone. What does = do to the terms "
               "before?\n",
               name);
    else if (f.transposed && f.squares)
        append(text, size, "%s is the transpose of what it should be%s.\n", name,
               f.squares < f.calls ? ", where it is square" : "");
    else if ((f.up || f.down) && f.long_ones)
        append(text, size, "The elements of %s are right, but shifted by one place.\n", name);
    else if (e->dy && !doubles(e, trial, array))
        append(text, size, "%s does not double when %s doubles: is %s squared, or not used?\n",
               name, e->dy, e->dy);
}
