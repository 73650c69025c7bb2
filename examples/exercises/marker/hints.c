/* hints.c - what can be said about a wrong output without a name: see hints.h. */
#include "hints.h"

#include "../../common/put_text.h"

#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Is x factor times the right output? */
static bool is_multiple(const Pair *p, double factor) {
    const double most = fmax(1, fabs(factor)) * largest(p);
    for (int64_t i = 0; i < p->n; i++)
        if (!(fabs(p->x[i] - factor * p->right[i]) <= 1e-9 * most)) return false;
    return true;
}

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
    for (int64_t i = 0; i < p->n; i++) {
        const bool fits =
            e->is_zero(call, i) ? fabs(p->x[i]) < 1e-6 : fabs(p->x[i] - p->right[i]) <= 1e-9 * most;
        if (!fits) return false;
    }
    return true;
}

/* What holds in all calls in which the output has no NaN, where it can be seen. */
typedef struct {
    bool set; /* right where it is not wrong by what was there before: = in place of += */
    bool multiple, zero, constant, transposed, up, down;
    double factor; /* of the first call that has one */
    double error;  /* the largest, in units of the largest number of its call */
    int calls, nans, wrong;
    int squares, wrong_squares, wrong_long_ones;
    int wrong_tiny, wrong_large; /* of the wrong ones */
} Found;

/* How far is x from the right output, in units of its largest number? */
static double error_of(const Pair *p) {
    double most = 0, error = 0;
    for (int64_t i = 0; i < p->n; i++) {
        most = fmax(most, fabs(p->right[i]));
        error = fmax(error, fabs(p->x[i] - p->right[i]));
    }
    if (most < 1e-9) return error < 1e-9 ? 0 : HUGE_VAL;
    return error / most;
}

static void look_for_factor(Found *found, const Pair *p) {
    const double factor = factor_of(p);
    if (factor == 0) found->zero = true;
    if (isnan(factor)) {
        if (!is_small(p)) found->multiple = false;
        return;
    }
    if (!is_multiple(p, factor)) found->multiple = false;
    if (isnan(found->factor)) found->factor = factor;
    if (fabs(factor - found->factor) > 1e-6 * fabs(factor)) found->constant = false;
}

/* Is each number right, or right minus what was there before? */
static bool is_set(const Pair *p, double before) {
    const double most = largest(p);
    for (int64_t i = 0; i < p->n; i++)
        if (!(fabs(p->x[i] - p->right[i]) <= 1e-9 * most) &&
            !(fabs(p->x[i] + before - p->right[i]) <= 1e-9 * most))
            return false;
    return true;
}

static void look_at(Found *found, const Call *call, const Pair *p, bool has_rows) {
    const bool wrong = !is_multiple(p, 1);
    found->calls++;
    found->wrong += wrong;
    found->wrong_tiny += wrong && call->tiny;
    found->wrong_large += wrong && call->lone && !call->tiny;
    found->error = fmax(found->error, error_of(p));
    look_for_factor(found, p);
    if (has_rows && p->columns > 1 && p->n == p->columns * p->columns) {
        found->squares++;
        found->wrong_squares += wrong;
        if (!is_moved(p, transposed)) found->transposed = false;
    }
    if (p->n > 1) {
        found->wrong_long_ones += wrong;
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

/* A sum over a loop: two terms may stand in one formula, which one of them was left out of. */
static bool has_many_terms(const Terms *t, int64_t i) {
    int terms = 0;
    for (int j = 0; j < t->n; j++) terms += is_term(t, i, j);
    return terms > 2;
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
            if (fabs(value - p.right[i]) > 1e-6 && has_many_terms(&t, i)) seen = true;
        }
    }
    return seen;
}

enum { MOST_TERMS = 4 };

/* Why has every dy the factor 0? */
static const char *why_zero(const Exercise *e, const Call *call, int64_t i) {
    if (e->is_zero && e->is_zero(call, i)) return ": a masked x changes nothing";
    if ((e->number == 4 || e->number == 5) && call->size[0] == 1)
        return ": with n = 1, y is 1 whatever x is";
    if (e->number == 10 && e->letter && call->size[0] == 1)
        return ": with K = 1, p is 1 whatever x is";
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
    put_text(text, size, " %s = %s times %s = %s", name, numbers[0], numbers[1], numbers[2]);
}

/* The loss of 9 is one number, so its Jacobian is one row. */
static void append_loss(const Call *call, int64_t i, char *text, size_t size) {
    const double dloss = call->number[0], right = ((double *)call->array[0])[i];
    if (dloss == 0) return; /* + 0: no -0 below */
    put_text(text, size, "dx[%d] should be dloss = %.4g times %.4g%s.\n", (int)i, dloss,
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
        put_text(
            text, size,
            "theta[%d] should be its theta before (%.4g) minus lr (%.4g) times its new velocity "
            "(%.4g).\n",
            (int)i, was, call->number[0], velocity);
    else
        put_text(text, size,
                 "velocity[%d] should be momentum (%.4g) times its velocity before (%.4g) plus g "
                 "(%.4g).\n",
                 (int)i, call->number[1], was, g);
}

static void append_terms(const Exercise *e, const Calls *right, int call, int array, int64_t i,
                         char *text, size_t size) {
    const Terms t = terms_of(e, right, call, array);
    int terms = 0;
    char name[64];
    if (!t.n) return;
    element_name(e, t.call, array, i, name, sizeof name);
    if (last_term(&t, i) < 0) {
        put_text(text, size, "%s should be 0, since every %s has the factor 0 here%s.\n", name,
                 e->dy, why_zero(e, t.call, i));
        return;
    }
    put_text(text, size, "%s should be the sum of these terms:", name);
    for (int j = 0; j < t.n; j++) {
        if (!is_term(&t, i, j) || dy_of(&t, j) == 0 || terms++ >= MOST_TERMS) continue;
        put_text(text, size, terms > 1 ? "," : "");
        append_term(e, &t, i, j, text, size);
    }
    if (terms > MOST_TERMS) put_text(text, size, ", and %d more", terms - MOST_TERMS);
    put_text(text, size, "%s.\n", terms ? "" : " 0");
}

void hints_terms(const Exercise *e, const Calls *given, const Calls *right, int call, int array,
                 int64_t i, char *text, size_t size) {
    if (e->number == 9) append_loss(&right->call[call], i, text, size);
    else if (e->number == 13) append_step(given, right, call, array, i, text, size);
    else append_terms(e, right, call, array, i, text, size);
}

/* ---- all of an output --------------------------------------------------------------------------
 */

/* A call of which the result is not twice that of the call before, whose dy is half as large; -1 if
 * there is none, or if that of another input is. */
static int not_doubled(const Exercise *e, const Trial *trial, int array) {
    int found = -1;
    for (int i = 1; i < trial->calls.n; i++) {
        const Call *call = &trial->calls.call[i];
        if (call->dy != DOUBLED || trial->result[i].call < 0 || trial->result[i - 1].call < 0)
            continue;
        const Pair p = {call_length(e, call, array), 1, call->array[array],
                        trial->calls.call[i - 1].array[array]};
        if (is_multiple(&p, 2) && !is_small(&p)) return -1;
        if (!is_multiple(&p, 2) && found < 0) found = i;
    }
    return found;
}

/* Where an element has become NaN, and by what: the bits say it. */
static void say_nan(const Exercise *e, const Call *call, int array, const Pair *p, bool says_where,
                    char *text, size_t size) {
    char name[64], sizes[128];
    int beside = 0;
    const int64_t i = first_nan(p->n, p->x, p->right);
    const NanSource source = nan_source(p->x[i], &beside);
    const Parameter *read = exercise_array(e, beside);
    element_name(e, call, array, i, name, sizeof name);
    sizes_text(e, call, sizes, sizeof sizes);
    if (says_where) put_text(text, size, "%s is NaN (%s). ", name, sizes);
    if (source == NAN_UNSET)
        put_text(text, size,
                 "It is made of a number that nobody has set: is a variable or an array "
                 "of your own not 0 before +=, or an index of it too large?\n");
    else if ((source == NAN_BEFORE || source == NAN_BEHIND) && read)
        put_text(
            text, size, "It is made of a number that was read %s %s: how far does each index go?\n",
            source == NAN_BEFORE ? "before the beginning of" : "behind the end of", read->name);
    else if (source == NAN_BLOCK)
        put_text(text, size,
                 "It is made of a number that was read behind memory of malloc: how far "
                 "does each index go?\n");
    else if (source == NAN_GIVEN)
        put_text(text, size, "It is made of a masked %s, which is NaN here: what is 0 times NaN?\n",
                 e->dy);
    else if (source == NAN_MADE)
        put_text(text, size,
                 "Your code makes this NaN: does it divide 0 by 0 or infinity by infinity, or "
                 "take the root or the logarithm of a number below 0?\n");
    else
        put_text(text, size,
                 "Is a number read that nobody has set, an index too large, or something "
                 "divided by 0?\n");
}

/* The output is a multiple of the right one on every input. */
static void say_factor(const Found *f, const char *name, const char *where, const Pair *here,
                       char *text, size_t size) {
    const double factor = here ? factor_of(here) : (double)NAN;
    if (f->constant && fabs(f->factor + 1) < 1e-6)
        put_text(text, size, "%s is right but for its sign, on every input%s.\n", name, where);
    else if (f->constant)
        put_text(text, size, "%s is %.6g times what it should be, on every input%s.\n", name,
                 f->factor, where);
    else if (isnan(factor) || fabs(factor - 1) < 1e-6)
        put_text(text, size,
                 "%s is right up to a factor, which differs from input to input. What is it made "
                 "of?\n",
                 name);
    else
        put_text(
            text, size,
            "Here %s is %.6g times what it should be; on other inputs the factor differs. What "
            "is it made of?\n",
            name, factor);
}

/* The output is wrong on inputs of one kind alone. */
static bool say_kind(const Found *f, const char *name, char *text, size_t size) {
    if (f->wrong == f->wrong_tiny)
        put_text(
            text, size,
            "%s is right on every input but those in which a number is tiny, 1e-8 for example. "
            "Does your code take a small number as 0?\n",
            name);
    else if (f->wrong == f->wrong_large)
        put_text(
            text, size,
            "%s is right on every input but the large ones. Has an array of yours, or a loop, a "
            "fixed size?\n",
            name);
    else return false;
    return true;
}

/* What holds in all calls without a NaN; false if nothing was found. */
static bool say_found(const Exercise *e, const Trial *trial, const Calls *right, int array,
                      const Found *f, const Pair *here, char *text, size_t size) {
    const char *name = exercise_array(e, array)->name;
    const char *where = f->nans ? " where it is no NaN" : "";
    const int undoubled = e->dy ? not_doubled(e, trial, array) : -1;
    if (f->calls == 0 || f->wrong == 0) return false;
    if (f->set) {
        put_text(text, size,
                 "%s is right but for what was there before, which is lost: is it set, =, where it "
                 "must grow, +=?\n",
                 name);
        return true;
    }
    if (f->nans == 0 && say_kind(f, name, text, size)) return true;
    if (f->error <= 1e-5)
        put_text(text, size,
                 "%s is right to %d digits on every input%s. Is a float used somewhere, a constant "
                 "with few digits, or a difference of two results in place of a formula?\n",
                 name, (int)floor(-log10(f->error)), where);
    else if (f->multiple && !f->zero && !isnan(f->factor))
        say_factor(f, name, where, here, text, size);
    else if (is_overwritten(e, trial, right, array))
        put_text(text, size,
                 "Each element of %s is the last of its terms alone. What does = do to the terms "
                 "before?\n",
                 name);
    else if (f->transposed && f->wrong_squares)
        put_text(text, size, "%s is the transpose of what it should be%s%s.\n", name,
                 f->squares < f->calls ? ", where it is square" : "", where);
    else if ((f->up || f->down) && f->wrong_long_ones)
        put_text(text, size, "The elements of %s are right, but shifted by one place%s.\n", name,
                 where);
    else if (undoubled >= 0)
        put_text(text, size, "%s does not double when %s doubles: is %s squared, or not used?\n",
                 name, e->dy, e->dy);
    else return false;
    return true;
}

void hints_output(const Exercise *e, const Trial *trial, const Calls *right, int array, int here,
                  char *text, size_t size) {
    const char *name = exercise_array(e, array)->name;
    Found f = {.set = true,
               .multiple = true,
               .constant = true,
               .transposed = true,
               .up = true,
               .down = true};
    Pair shown = {0};
    int nan = -1;
    bool elsewhere = e->is_zero != NULL;
    f.factor = (double)NAN;
    for (int i = 0; i < right->n; i++) {
        if (trial->result[i].call < 0) continue;
        const Pair p = pair_of(e, trial, right, i, array);
        const bool has_nan = first_nan(p.n, p.x, p.right) >= 0;
        if (i == here && !has_nan) shown = p;
        if (has_nan && (nan < 0 || i == here)) nan = i;
        f.nans += has_nan;
        if (!has_nan) look_at(&f, &right->call[i], &p, exercise_array(e, array)->rows);
        f.set = f.set && e->before != 0 && !has_nan && is_set(&p, e->before);
        elsewhere = elsewhere && is_right_elsewhere(e, &right->call[i], &p);
    }
    if (nan < 0 && trial->unsteady >> array & 1) {
        put_text(text, size,
                 "%s has two results for one input: does the function draw numbers, remember "
                 "something, or use a variable that it never sets?\n",
                 name);
    } else if (elsewhere) {
        put_text(
            text, size,
            "%s is right where keep is true, and small, but not 0, where it is false. What does "
            "your code write there?\n",
            name);
    } else {
        say_found(e, trial, right, array, &f, shown.n ? &shown : NULL, text, size);
        if (nan >= 0) {
            const Pair p = pair_of(e, trial, right, nan, array);
            say_nan(e, &right->call[nan], array, &p, nan != here, text, size);
        }
    }
}
