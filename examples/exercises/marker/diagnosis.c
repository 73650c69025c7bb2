/* diagnosis.c - which mistake is it? See diagnosis.h. */
#include "diagnosis.h"

#include "../../common/mistakes.h"

#include "hints.h"
#include "numbers.h"
#include "stages.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool diagnosis_hides_numbers;

const char *const mark_names[] = {"right",   "wrong",  "empty",      "crash",     "timeout",
                                  "outside", "inputs", "no-compile", "not-marked"};

/* ---- equal numbers --------------------------------------------------------------------------- */

/* How far is a from b, in units of `unit`? */
static double distance(double a, double b, double unit) {
    if (isnan(a) && isnan(b)) return 0;
    if (a == b) return 0;
    const double d = fabs(a - b) / unit;
    return isnan(d) ? HUGE_VAL : d;
}

int64_t worst_element(const Exercise *e, const Call *a, const Call *b, int array, double *error) {
    const int64_t n = call_length(e, b, array);
    const double *x = a->array[array];
    const double *y = b->array[array];
    double unit = 1;
    int64_t worst = -1;
    *error = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(y[i])) unit = fmax(unit, fabs(y[i]));
    for (int64_t i = 0; i < n; i++) {
        const double d = distance(x[i], y[i], unit);
        if (d > *error) {
            *error = d;
            worst = i;
        }
    }
    return *error > 1e-9 ? worst : -1;
}

bool same_output(const Exercise *e, const Call *a, const Call *b, int array) {
    double error;
    if (e->compares && !e->compares(b, array)) return true;
    return worst_element(e, a, b, array, &error) < 0;
}

/* An element that must be exactly 0, and is not; -1 if there is none. */
static int64_t not_zero(const Exercise *e, const Call *call, int array) {
    const double *x = call->array[array];
    const int64_t n = call_length(e, call, array);
    for (int64_t i = 0; e->is_zero && i < n; i++)
        if (e->is_zero(call, i) && x[i] != 0) return i;
    return -1;
}

/* ---- what is known about a trial ---------------------------------------------------------------
 */

/* How a mistake's results compare with the student's and with the right ones, output by output. */
typedef struct {
    bool known;             /* it has been computed */
    bool decided;           /* on at least one input, and the student's function returned there */
    bool same[MOST_ARRAYS]; /* the student's output is the mistake's, wherever it is decided */
    bool differs[MOST_ARRAYS]; /* the mistake's output is wrong somewhere */
} Fit;

typedef struct {
    const Exercise *e;
    const Trial *trial;
    const Calls *given, *right;
    Mark *mark;
    Finding stage;           /* the first that is wrong */
    bool wrong[MOST_ARRAYS]; /* outputs with a wrong number */
    Fit fit[MOST_MISTAKES];
} Case;

static bool returned(const Case *c, int call) { return c->trial->result[call].call >= 0; }

static bool is_complete(const Case *c) {
    for (int i = 0; i < c->right->n; i++)
        if (!returned(c, i)) return false;
    return true;
}

static bool is_right(const Case *c, int call, int array) {
    return same_output(c->e, &c->trial->calls.call[call], &c->right->call[call], array) &&
           not_zero(c->e, &c->trial->calls.call[call], array) < 0;
}

static void find_wrong_outputs(Case *c) {
    for (int k = 0; exercise_array(c->e, k); k++)
        for (int i = 0; i < c->right->n && is_output(exercise_array(c->e, k)); i++)
            if (returned(c, i) && !is_right(c, i, k)) c->wrong[k] = true;
}

static bool any_wrong(const Case *c) {
    for (int k = 0; k < MOST_ARRAYS; k++)
        if (c->wrong[k]) return true;
    return false;
}

/* The first call with a write outside, or with a changed input; -1 if there is none. With a
 * mistake, only calls on which the mistake is decided: elsewhere its plainest C may do anything. */
static int first_outside(const Case *c, const KnownMistake *m, bool changed) {
    for (int i = 0; i < c->right->n; i++) {
        const CallResult *r = &c->trial->result[i];
        if (m && !mistake_counts(m, &c->right->call[i])) continue;
        if (returned(c, i) && (changed ? r->changed : r->outside)) return i;
    }
    return -1;
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

static Fit fit(const Case *c, const KnownMistake *m) {
    Fit fit = {.known = true};
    Calls wrong = calls_copy(c->e, c->given);
    bool complete = wrong.n > 0;
    calls_wrong(c->e, &wrong, m);
    for (int k = 0; k < MOST_ARRAYS; k++) fit.same[k] = true;
    for (int i = 0; i < wrong.n; i++) {
        if (!mistake_counts(m, &wrong.call[i])) continue;
        if (!returned(c, i)) complete = false;
        else fit.decided = true;
        for (int k = 0; exercise_array(c->e, k); k++) {
            if (!is_output(exercise_array(c->e, k))) continue;
            if (!same_output(c->e, &c->right->call[i], &wrong.call[i], k)) fit.differs[k] = true;
            if (returned(c, i) && !same_output(c->e, &c->trial->calls.call[i], &wrong.call[i], k))
                fit.same[k] = false;
        }
    }
    fit.decided = fit.decided && complete;
    calls_free(&wrong);
    return fit;
}

/* Of mistake i; it is computed once. */
static const Fit *fit_of(Case *c, int i) {
    if (!c->fit[i].known) c->fit[i] = fit(c, exercise_mistake(c->e, i));
    return &c->fit[i];
}

/* Has the student's function made this mistake, and no other? */
static bool fits_all(const Case *c, const Fit *f) {
    bool differs = false;
    for (int k = 0; exercise_array(c->e, k); k++) {
        if (is_output(exercise_array(c->e, k)) && !f->same[k]) return false;
        if (f->differs[k]) differs = true;
    }
    return f->decided && differs;
}

/* Does it explain this output, and the others that it makes wrong? */
static bool fits_output(const Case *c, const Fit *f, int output) {
    for (int k = 0; exercise_array(c->e, k); k++)
        if (f->differs[k] && !f->same[k]) return false;
    return f->decided && f->differs[output];
}

/* ---- sentences ---------------------------------------------------------------------------------
 */

__attribute__((format(printf, 2, 3))) static void say(Mark *mark, const char *format, ...) {
    const size_t at = strlen(mark->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(mark->text + at, sizeof mark->text - at, format, arguments);
    va_end(arguments);
}

/* Its own words, or those of the list for this exercise, in the names of the parameters; else, in
 * the step of a softmax, those of exercise 4: its id is "softmax_sign" here. */
void mistake_words(const Exercise *e, const KnownMistake *m, MistakeWords *words) {
    const MistakeRow *row = m->says ? NULL : mistake_find(e->name, m->id);
    words->of_softmax = !m->says && !row && strncmp(m->id, "softmax_", 8) == 0;
    if (words->of_softmax) row = mistake_find("softmax", m->id + 8);
    const char *says = row ? row->computes : m->says;
    const char *asks = row ? row->asks : m->asks;
    mistake_plain(says ? says : "", words->says, sizeof words->says);
    mistake_plain(asks ? asks : "", words->asks, sizeof words->asks);
}

/* "dq and dk: your", for the outputs that these bits name; "Your" for all. */
static void say_whose(const Case *c, unsigned outputs) {
    const char *between = "";
    for (int k = 0; exercise_array(c->e, k); k++) {
        if (!(outputs >> k & 1)) continue;
        const bool last = outputs >> k == 1;
        say(c->mark, "%s%s", *between && last ? " and " : between, exercise_array(c->e, k)->name);
        between = ", ";
    }
    say(c->mark, outputs ? ": your" : "Your");
}

static void say_mistake(const Case *c, const KnownMistake *m, unsigned outputs) {
    MistakeWords words;
    mistake_words(c->e, m, &words);
    say_whose(c, outputs);
    if (words.of_softmax)
        say(c->mark, " step from dp to ds, with y = p, dy = dp and dx = ds of a row, is this: ");
    else say(c->mark, " code computes this: ");
    say(c->mark, "%s\n%s\n", words.says, words.asks);
}

/* The number of all elements of a call's arrays. */
static int64_t size_of(const Exercise *e, const Call *call) {
    int64_t size = 0;
    for (int k = 0; exercise_array(e, k); k++) size += call_length(e, call, k);
    return size;
}

typedef struct {
    int call, array;
    int64_t element, size;
    double error;
    int step;  /* of a function that is no vjp: its errors go on in later steps */
    bool zero; /* the right output is 0 everywhere, as dx of a softmax with n = 1 */
} Worst;

static bool is_all_zero(const Exercise *e, const Call *call, int array) {
    const double *x = call->array[array];
    for (int64_t i = 0; i < call_length(e, call, array); i++)
        if (!(fabs(x[i]) < 1e-12)) return false;
    return true;
}

/* An input on which the right output is not 0 says more; then a smaller input, an earlier step, a
 * larger error. */
static bool is_better(const Worst *a, const Worst *b) {
    if (a->zero != b->zero) return b->zero;
    if (a->size != b->size) return a->size < b->size;
    if (a->step != b->step) return a->step < b->step;
    return a->error > b->error;
}

static void look_at_output(const Case *c, int call, int array, Worst *worst) {
    const Call *mine = &c->trial->calls.call[call];
    const int64_t size = size_of(c->e, mine);
    double error;
    if (!is_output(exercise_array(c->e, array)) || is_right(c, call, array)) return;
    int64_t at = worst_element(c->e, mine, &c->right->call[call], array, &error);
    if (at < 0) at = not_zero(c->e, mine, array);
    const Worst this = {call,
                        array,
                        at,
                        size,
                        error,
                        c->e->dy ? 0 : call,
                        is_all_zero(c->e, &c->right->call[call], array)};
    if (worst->call < 0 || is_better(&this, worst)) *worst = this;
}

/* The worst number of the smallest input that has a wrong one; of a mistake, where it is decided;
 * of a stage, where it is shown. Dense dy's first, since one-hot dy's show one element of the
 * Jacobian; lone calls last, since their arrays are large or their numbers tiny. */
static Worst find_worst(const Case *c, const KnownMistake *m) {
    Worst worst = {.call = -1};
    for (int pass = 0; pass < 3 && worst.call < 0; pass++)
        for (int i = 0; i < c->right->n; i++) {
            const Call *call = &c->right->call[i];
            if (!returned(c, i) || (pass == 0 && call->dy == ONE_HOT)) continue;
            if (pass < 2 && call->lone) continue;
            if (m && !mistake_counts(m, call)) continue;
            if (c->stage.call >= 0 && i != c->stage.call) continue;
            for (int k = 0; exercise_array(c->e, k); k++) look_at_output(c, i, k, &worst);
        }
    return worst;
}

/* Two numbers that differ, with at least six digits, and as many as show the difference. */
static void print_both(double yours, double right, char a[32], char b[32]) {
    int digits = 6;
    do {
        number_signed(a, yours, digits);
        number_signed(b, right, digits);
    } while (strcmp(a, b) == 0 && digits++ < 17);
}

static void say_worst(const Case *c, const KnownMistake *m) {
    char name[64], sizes[128];
    const Worst w = find_worst(c, m);
    c->mark->worst = w.call;
    c->mark->worst_array = w.array;
    c->mark->worst_element = w.element;
    if (w.call < 0) return;
    const Call *mine = &c->trial->calls.call[w.call];
    const double yours = ((double *)mine->array[w.array])[w.element];
    const double right = ((double *)c->right->call[w.call].array[w.array])[w.element];
    char is[32], should[32];
    print_both(yours, right, is, should);
    if (c->e->is_zero && c->e->is_zero(mine, w.element))
        snprintf(should, sizeof should, "exactly 0");
    element_name(c->e, mine, w.array, w.element, name, sizeof name);
    sizes_text(c->e, mine, sizes, sizeof sizes);
    if (diagnosis_hides_numbers) say(c->mark, "%s is wrong (%s)\n", name, sizes);
    else say(c->mark, "%s is %s, should be %s (%s)\n", name, is, should, sizes);
}

/* ---- the marks ---------------------------------------------------------------------------------
 */

/* Does one mistake explain all outputs? */
static const KnownMistake *name_all(Case *c) {
    for (int i = 0; exercise_mistake(c->e, i); i++)
        if (fits_all(c, fit_of(c, i))) return exercise_mistake(c->e, i);
    return NULL;
}

/* Nothing was written to it in the call that was made for this, and in all others it is 0. */
static bool never_written(const Case *c, int output) {
    for (int i = 0; i < c->right->n; i++)
        if (returned(c, i) && !is_all_zero(c->e, &c->trial->calls.call[i], output)) return false;
    return c->trial->unwritten >> output & 1;
}

/* The mistake that explains this output; `outputs` gets a bit for each output that it explains.
 * What is not written yet is no mistake: without dq, dk and dv none says that only v has a
 * gradient. */
static const KnownMistake *name_output(Case *c, int output, unsigned *outputs) {
    *outputs = 0;
    if (never_written(c, output)) return NULL;
    for (int i = 0; exercise_mistake(c->e, i); i++) {
        const Fit *f = fit_of(c, i);
        if (!fits_output(c, f, output)) continue;
        for (int k = 0; k < MOST_ARRAYS; k++)
            if (f->differs[k]) *outputs |= 1U << k;
        return exercise_mistake(c->e, i);
    }
    return NULL;
}

/* Has each wrong output a mistake of its own? */
static bool are_all_named(Case *c) {
    unsigned named = 0, outputs;
    for (int k = 0; exercise_array(c->e, k); k++) {
        if (!c->wrong[k] || named >> k & 1) continue;
        if (!name_output(c, k, &outputs)) return false;
        named |= outputs;
    }
    return any_wrong(c);
}

/* A hint, and the exercise's own question, once. */
static void say_hint(const Case *c, int output) {
    const char *asks = c->e->asks[output];
    char hint[1024] = "";
    hints_output(c->e, c->trial, c->right, output, c->mark->worst, hint, sizeof hint);
    if (!strstr(c->mark->text, hint)) say(c->mark, "%s", hint);
    if (asks && !strstr(c->mark->text, asks))
        say(c->mark, "%s: %s\n", exercise_array(c->e, output)->name, asks);
}

/* ---- one row alone ------------------------------------------------------------------------------
 */

/* The rows of an output with a wrong number, on all inputs with two rows or more. */
typedef struct {
    bool seen, only_first, only_last;
} WrongRows;

static void look_at_rows(const Case *c, int call, int output, WrongRows *rows) {
    const Call *right = &c->right->call[call];
    const double *x = c->trial->calls.call[call].array[output];
    const double *y = right->array[output];
    const int64_t columns = call_columns(c->e, right, output);
    const int64_t n = call_length(c->e, right, output);
    double unit = 1;
    bool here = false;
    for (int64_t i = 0; i < n; i++) unit = fmax(unit, fabs(y[i]));
    for (int64_t i = 0; i < n; i++) {
        if (distance(x[i], y[i], unit) <= 1e-9) continue;
        here = true;
        if (i / columns > 0) rows->only_first = false;
        if (i / columns < n / columns - 1) rows->only_last = false;
    }
    if (here) rows->seen = true;
    if (here) return;
    rows->only_first = false; /* it is not so on every input */
    rows->only_last = false;
}

/* A loop that begins or ends at the wrong place is no wrong stage. */
static void say_rows(const Case *c, int output) {
    const Parameter *p = exercise_array(c->e, output);
    WrongRows rows = {false, true, true};
    for (int i = 0; i < c->right->n && p->rows; i++) {
        const Call *call = &c->right->call[i];
        if (call->dy == ONE_HOT || !returned(c, i) || call_size(c->e, call, p->rows) < 2) continue;
        look_at_rows(c, i, output, &rows);
    }
    if (!rows.seen || !(rows.only_first || rows.only_last)) return;
    const char *what = strcmp(p->rows, "Q") == 0 ? "query" : "row";
    if (strcmp(p->rows, "K") == 0) what = "key";
    say(c->mark,
        "Of %s only the %s %s is wrong, on every input with two or more. Where does each "
        "loop begin and end?\n",
        p->name, rows.only_first ? "first" : "last", what);
}

/* Is this output right for the stages that are wrong, and does the mistake stand elsewhere? */
static bool is_consequence(const Case *c, const KnownMistake *m, int output) {
    char stage[SHOWN_NAME], word[SHOWN_NAME + 2];
    if (!(c->stage.follows >> output & 1)) return false;
    stages_of_mistake(c->e, m, c->given, c->right, stage);
    snprintf(word, sizeof word, " %s ", stage);
    return !strstr(c->stage.wrong, word);
}

/* What is known about each wrong output: a mistake, nothing written, or a hint. The mistakes have
 * ids in the mark only if every wrong output has one. */
static void explain_outputs(Case *c) {
    int named = 0;
    unsigned said = 0, outputs;
    bool all = true;
    for (int k = 0; exercise_array(c->e, k); k++) {
        if (!c->wrong[k] || said >> k & 1) continue;
        const KnownMistake *m = name_output(c, k, &outputs);
        if (m && is_consequence(c, m, k)) {
            all = false;
            continue;
        }
        said |= outputs;
        if (m) {
            say_mistake(c, m, outputs);
            if (named < MOST_OUTPUTS) c->mark->mistakes[named++] = m;
            continue;
        }
        all = false;
        say_rows(c, k);
        if (never_written(c, k))
            say(c->mark, "%s: the function never writes to it.\n", exercise_array(c->e, k)->name);
        else say_hint(c, k);
    }
    if (!all) memset(c->mark->mistakes, 0, sizeof c->mark->mistakes);
    const bool begun = c->mark->worst >= 0 && !never_written(c, c->mark->worst_array);
    if (!all && begun && !diagnosis_hides_numbers)
        hints_terms(c->e, c->given, c->right, c->mark->worst, c->mark->worst_array,
                    c->mark->worst_element, c->mark->text, sizeof c->mark->text);
}

/* The one output that is wrong, as a bit; 0 if there are several. */
static unsigned only_wrong(const Case *c) {
    unsigned only = 0;
    for (int k = 0; k < MOST_ARRAYS; k++) {
        if (c->wrong[k] && only) return 0;
        if (c->wrong[k]) only = 1U << k;
    }
    return only;
}

/* The stage is what the function shows, or else the mistake's. */
static void explain_wrong(Case *c, const KnownMistake *all) {
    c->stage = stages_find(c->e, c->trial, c->right);
    if (!*c->stage.stage && all) stages_of_mistake(c->e, all, c->given, c->right, c->stage.stage);
    snprintf(c->mark->stage, sizeof c->mark->stage, "%s", c->stage.stage);
    say_worst(c, all);
    say(c->mark, "%s", c->stage.text);
    if (all) {
        c->mark->mistakes[0] = all;
        say_mistake(c, all, only_wrong(c));
    } else {
        explain_outputs(c);
        if (!*c->mark->stage && c->mark->mistakes[0])
            stages_of_mistake(c->e, c->mark->mistakes[0], c->given, c->right, c->mark->stage);
    }
}

/* Behind an array, before it (an index below 0), or behind a block of malloc. */
static void say_outside(const Case *c, int call) {
    char sizes[128];
    const int outside = c->trial->result[call].outside;
    const Parameter *p = exercise_array(c->e, abs(outside) - 1);
    sizes_text(c->e, &c->right->call[call], sizes, sizeof sizes);
    if (outside == FAR_OUTSIDE)
        say(c->mark, "%s writes far before or behind an array (%s)\nHow far does each index go?\n",
            c->e->function, sizes);
    else if (!p)
        say(c->mark,
            "%s writes behind memory that it got from malloc (%s)\nHow many bytes does it ask for, "
            "and which is the largest index?\n",
            c->e->function, sizes);
    else
        say(c->mark, "%s writes %s %s (%s)\nWhich is the %s index of each loop?\n", c->e->function,
            outside < 0 ? "before the beginning of" : "behind the end of", p->name, sizes,
            outside < 0 ? "smallest" : "largest");
}

static void say_changed(const Case *c, int call) {
    char sizes[128];
    const Parameter *p = exercise_array(c->e, c->trial->result[call].changed - 1);
    sizes_text(c->e, &c->right->call[call], sizes, sizeof sizes);
    say(c->mark, "%s changes %s, an input (%s)\nOthers read it after this function.\n",
        c->e->function, p ? p->name : "an input", sizes);
}

/* The function has stopped in call `stopped`, and no mistake explains it. */
static void say_stopped(const Case *c) {
    char sizes[128];
    sizes_text(c->e, &c->right->call[c->trial->stopped], sizes, sizeof sizes);
    if (c->trial->end == TRIAL_TIMEOUT)
        say(c->mark, "%s did not return within %d seconds (%s)\nDoes every loop end?\n",
            c->e->function, TRIAL_SECONDS, sizes);
    else if (c->mark->kind == MARK_OUTSIDE)
        say(c->mark, "%s: %s (%s)\nWhich is the largest index of each loop?\n", c->e->function,
            c->trial->sentence, sizes);
    else if (c->trial->end == TRIAL_EXIT)
        say(c->mark, "%s calls exit (%s): it must return.\n", c->e->function, sizes);
    else say(c->mark, "%s crashed (%s): %s\n", c->e->function, sizes, c->trial->sentence);
}

enum { SLACK = 2048 };

/* Does the function use more memory than it may? The limit is 8 numbers for each of the sizes, and
 * 16 KB for its frame and for what the C library needs. */
static bool uses_too_much(const Case *c) {
    for (int i = 0; i < c->right->n; i++) {
        const Call *call = &c->right->call[i];
        char sizes[128];
        int64_t limit = 0;
        for (int s = 0; s < MOST_SIZES; s++) limit += 8 * call->size[s];
        const int64_t used = (c->trial->result[i].memory + c->trial->static_bytes) / 8;
        if (!call->measured || !returned(c, i) || used <= limit + SLACK) continue;
        sizes_text(c->e, call, sizes, sizeof sizes);
        say(c->mark,
            "%s uses memory for %ld numbers, and may use 8 (Q + K + D) = %ld, and %d more (%s)\n"
            "Which of its arrays has an element for every pair, or is memory not freed? Could it be "
            "computed anew, a row at a time?\n",
            c->e->function, (long)used, (long)limit, SLACK, sizes);
        return true;
    }
    return false;
}

/* Rounding alone makes a smaller error than 1e-12. */
static void say_digits(const Case *c) {
    double most = 0, error;
    for (int i = 0; i < c->right->n; i++)
        for (int k = 0; exercise_array(c->e, k); k++) {
            const Call *right = &c->right->call[i];
            if (!is_output(exercise_array(c->e, k))) continue;
            if (c->e->compares && !c->e->compares(right, k)) continue;
            worst_element(c->e, &c->trial->calls.call[i], right, k, &error);
            most = fmax(most, error);
        }
    if (most > 1e-12)
        say(c->mark, "It is right to %d digits: is it a formula, or a difference of two results?\n",
            (int)floor(-log10(most)));
}

/* From the worst to the mildest: a function that stops, a write outside, a changed input, wrong
 * numbers, too much memory. A mistake with a name may stop or write outside where it is not
 * decided. */
static void diagnose_done(Case *c) {
    find_wrong_outputs(c);
    const KnownMistake *all = any_wrong(c) ? name_all(c) : NULL;
    const int outside = first_outside(c, all, false);
    const int changed = first_outside(c, all, true);
    if (c->trial->stopped >= 0 && !all && !are_all_named(c)) {
        c->mark->kind = c->trial->end == TRIAL_TIMEOUT ? MARK_TIMEOUT : MARK_CRASH;
        if (c->trial->end == TRIAL_EXIT && *c->trial->sentence) c->mark->kind = MARK_OUTSIDE;
        say_stopped(c);
    } else if (outside >= 0) {
        c->mark->kind = MARK_OUTSIDE;
        say_outside(c, outside);
    } else if (changed >= 0) {
        c->mark->kind = MARK_INPUTS;
        say_changed(c, changed);
    } else if (c->trial->looks_outside && !any_wrong(c)) {
        c->mark->kind = MARK_OUTSIDE;
        say(c->mark,
            "%s compares something with a number that stands before or behind an array\n"
            "How far does each index go?\n",
            c->e->function);
    } else if (any_wrong(c) || uses_too_much(c)) {
        c->mark->kind = MARK_WRONG;
    }
    if (any_wrong(c)) explain_wrong(c, all);
    if (c->mark->kind == MARK_RIGHT && !is_complete(c)) {
        c->mark->kind = MARK_CRASH;
        say(c->mark, "%s did not return from every call.\n", c->e->function);
    }
    if (c->mark->kind == MARK_RIGHT) say_digits(c);
}

/* "'x' undeclared" or "undeclared identifier 'x'", where the backward computes dx and gets no x, or
 * gets no y: the name; NULL if the message is another one. */
static const char *missing_operand(const Exercise *e, const char *message) {
    static char name[32];
    char quoted[40];
    if (!strstr(message, "undeclared")) return NULL;
    for (int k = -1; k < 0 || exercise_array(e, k); k++) {
        if (k >= 0 && exercise_array(e, k)->kind != OUTPUT) continue;
        snprintf(name, sizeof name, "%s", k < 0 ? "y" : exercise_array(e, k)->name + 1);
        snprintf(quoted, sizeof quoted, "'%s'", name);
        if (strstr(message, quoted)) return name;
    }
    return NULL;
}

static void say_no_compile(Mark *mark, const char *message) {
    const char *name = missing_operand(mark->exercise, message);
    say(mark, "it does not compile: %s\n", message);
    if (name)
        say(mark, "A backward gets only what is in its parentheses; does it need %s?\n", name);
}

Mark diagnose(const Exercise *e, const Trial *trial, const Calls *given, const Calls *right) {
    Mark mark = {.exercise = e, .kind = MARK_RIGHT, .worst = -1};
    Case c = {.e = e, .trial = trial, .given = given, .right = right, .mark = &mark};
    switch (trial->end) {
    case TRIAL_EMPTY:
        mark.kind = MARK_EMPTY;
        if (*trial->sentence) say(&mark, "%s\n", trial->sentence);
        break;
    case TRIAL_REFUSED:
        mark.kind = MARK_NO_COMPILE;
        say(&mark, "%s\n", trial->sentence);
        break;
    case TRIAL_NO_COMPILE:
        mark.kind = MARK_NO_COMPILE;
        say_no_compile(&mark, trial->sentence);
        break;
    case TRIAL_IMPOSSIBLE:
        mark.kind = MARK_NOT_MARKED;
        say(&mark, "it could not be marked: %s\n", trial->sentence);
        break;
    default:
        if (right->n && right->n == trial->calls.n) {
            diagnose_done(&c);
            break;
        }
        mark.kind = MARK_NOT_MARKED;
        say(&mark, "it could not be marked: out of memory\n");
    }
    return mark;
}
