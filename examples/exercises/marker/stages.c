/* stages.c - see stages.h. */
#include "stages.h"

#include "../../common/put_text.h"
#include "diagnosis.h"
#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STAGES = 20, MOST_RECORDED = 4096 };

/* ---- what a right backward shows ---------------------------------------------------------------
 */

/* The numbers of one call. */
typedef struct {
    const Shown *number;
    int n;
} Numbers;

static struct {
    bool on;
    Shown number[MOST_RECORDED];
    int n;
    char stage[MOST_STAGES][SHOWN_NAME]; /* in the order of the first call */
    int stages;
    Numbers mine;    /* the student's */
    unsigned follow; /* bit k: stage k is set to the student's numbers */
    bool unfinished; /* the student's function never writes to some output */
} recorder;

static bool is_same_place(const Shown *a, const Shown *b) {
    return a->indices == b->indices && strcmp(a->name, b->name) == 0 &&
           memcmp(a->at, b->at, sizeof a->at) == 0;
}
static const Shown *find(Numbers in, const Shown *place) {
    for (int i = 0; i < in.n; i++)
        if (is_same_place(&in.number[i], place)) return &in.number[i];
    return NULL;
}
static int stage_named(const char *name) {
    for (int k = 0; k < recorder.stages; k++)
        if (strcmp(recorder.stage[k], name) == 0) return k;
    return -1;
}

void stages_record(const char *name, double *value, const int *at, int n) {
    Shown this = {.value = *value, .indices = n};
    if (!recorder.on || recorder.n == MOST_RECORDED) return;
    snprintf(this.name, sizeof this.name, "%s", name);
    memcpy(this.at, at, (size_t)n * sizeof *at);
    int k = stage_named(name);
    if (k < 0 && recorder.stages < MOST_STAGES) {
        k = recorder.stages++;
        memcpy(recorder.stage[k], this.name, sizeof this.name);
    }
    recorder.number[recorder.n++] = this;
    const Shown *mine = recorder.follow >> k & 1 ? find(recorder.mine, &this) : NULL;
    if (mine) *value = mine->value;
}

/* Runs a backward on a copy of the call, which the caller frees. */
static bool run(const Exercise *e, Function *backward, const Call *call, unsigned follow,
                Call *copy) {
    if (!call_copy(e, copy, call)) return false;
    for (int k = 0; exercise_array(e, k); k++)
        if (exercise_array(e, k)->kind == OUTPUT)
            memset(copy->array[k], 0, (size_t)call_length(e, call, k) * sizeof(double));
    recorder.n = 0;
    recorder.follow = follow;
    recorder.on = true;
    e->call(backward, copy);
    recorder.on = false;
    return true;
}

/* ---- the student's numbers ----------------------------------------------------------------------
 */

/* NaN is NaN. */
static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-7 * (1 + fabs(b)) || (isnan(a) && isnan(b));
}

/* Of tiny numbers all are near. */
static bool has_stages(const Call *call) {
    return call->dy != ONE_HOT && !call->lone && !call->tiny;
}

typedef enum { NOT_SHOWN, FOLLOWS, DIFFERS } Verdict;

/* Is it one of the other numbers for this place, which come right behind it? */
static bool has_another(const Shown *right, const Shown *mine) {
    const Shown *end = recorder.number + recorder.n;
    for (right++; right < end && is_same_place(right, mine); right++)
        if (is_near(mine->value, right->value)) return true;
    return false;
}

/* Are the student's numbers of stage k the recorded ones? `first` gets the first that is not. */
static Verdict compare_stage(int k, Shown *first, double *should) {
    const Numbers recorded = {recorder.number, recorder.n};
    Verdict verdict = NOT_SHOWN;
    for (int i = 0; i < recorder.mine.n; i++) {
        const Shown *mine = &recorder.mine.number[i];
        const Shown *right = stage_named(mine->name) == k ? find(recorded, mine) : NULL;
        if (!right) continue;
        verdict = FOLLOWS;
        if (is_near(mine->value, right->value) || has_another(right, mine)) continue;
        *first = *mine;
        *should = right->value;
        return DIFFERS;
    }
    return verdict;
}

/* A place of stage k that the student does not show; NULL if there is none. */
static const Shown *not_shown(int k) {
    for (int i = 0; i < recorder.n; i++)
        if (stage_named(recorder.number[i].name) == k && !find(recorder.mine, &recorder.number[i]))
            return &recorder.number[i];
    return NULL;
}

/* Has the student set a number of stage k? */
static bool is_filled(int k) {
    for (int i = 0; i < recorder.mine.n; i++) {
        const double value = recorder.mine.number[i].value;
        if (stage_named(recorder.mine.number[i].name) == k && value != 0 && !isnan(value))
            return true;
    }
    return false;
}

static bool is_same_output(const Exercise *e, const Call *mine, const Call *right, int k) {
    const double *a = mine->array[k];
    const double *b = right->array[k];
    for (int64_t i = 0; i < call_length(e, right, k); i++)
        if (!is_near(a[i], b[i])) return false;
    return true;
}

/* How many of the stages behind k, and of the outputs, are the student's, if these stages are? */
static int count_fitting(const Exercise *e, const Call *mine, int k, unsigned follow) {
    Call copy;
    Shown first;
    double should;
    int fitting = 0;
    if (!run(e, e->source, mine, follow, &copy)) return 0;
    for (int next = k + 1; next < recorder.stages; next++)
        fitting += compare_stage(next, &first, &should) == FOLLOWS;
    for (int array = 0; exercise_array(e, array); array++)
        if (is_output(exercise_array(e, array))) fitting += is_same_output(e, mine, &copy, array);
    call_free(&copy);
    return fitting;
}

/* ---- one call -----------------------------------------------------------------------------------
 */

/* What is known of all calls, by stages and then by outputs. */
typedef struct {
    Shown number;
    double should;
    Shown lacks;         /* a place where it is not shown, if it has indices */
    int followed, apart; /* in so many calls: what follows is made of it, or is right without it */
    int call;            /* on this one it is wrong, and an output, if there is one */
    bool seen;           /* so it is */
    bool shown, differs, filled;
} Known;

/* What is shown wrong may be shown too early, or be a convention: then it is left out. */
static bool is_unwritten(const Known *k) {
    return recorder.unfinished && k->shown && k->differs && !k->filled;
}
static bool is_wrong(const Known *k) {
    return k->differs && (k->followed >= k->apart || is_unwritten(k));
}
static bool is_apart(const Known *k) { return k->differs && !is_wrong(k); }
static bool is_right(const Known *k) { return k->shown && !k->differs; }
static bool is_hidden(const Known *k) { return !k->shown; }

enum { MOST_KNOWN = MOST_STAGES + MOST_ARRAYS };

/* True if this is the call to be shown. */
static bool note(Known *known, int call, bool seen) {
    const bool better = !known->differs || (seen && !known->seen);
    known->differs = true;
    if (!better) return false;
    known->call = call;
    known->seen = seen;
    return true;
}

static void look_at_call(const Exercise *e, const Call *mine, const Call *right, int i,
                         Known *known) {
    Call copy;
    unsigned follow = 0;
    bool seen = false;
    for (int k = 0; exercise_array(e, k); k++)
        if (is_output(exercise_array(e, k)) && !is_same_output(e, mine, right, k)) seen = true;
    for (int k = 0; k < recorder.stages; k++) {
        Shown number;
        double should = 0;
        if (!run(e, e->source, mine, follow, &copy)) return;
        const Verdict verdict = compare_stage(k, &number, &should);
        const Shown *lacks = verdict == FOLLOWS ? not_shown(k) : NULL;
        call_free(&copy);
        if (verdict != NOT_SHOWN) known[k].shown = true;
        if (lacks && !known[k].lacks.indices) known[k].lacks = *lacks;
        if (verdict != DIFFERS) continue;
        known[k].filled = known[k].filled || is_filled(k);
        const int with = count_fitting(e, mine, k, follow | 1U << k);
        const int without = count_fitting(e, mine, k, follow);
        known[k].followed += with > without;
        known[k].apart += with < without;
        if (with >= without) follow |= 1U << k;
        if (!note(&known[k], i, seen)) continue;
        known[k].number = number;
        known[k].should = should;
    }
    if (!run(e, e->source, mine, follow, &copy)) return;
    for (int array = 0; exercise_array(e, array); array++)
        if (is_output(exercise_array(e, array)) && !is_same_output(e, mine, &copy, array))
            note(&known[MOST_STAGES + array], i, seen);
    call_free(&copy);
}

/* ---- all calls ----------------------------------------------------------------------------------
 */

/* The numbers that the function has shown in a call: they lie together. */
static int take_shown(const Trial *trial, int call, Shown *mine) {
    int n = 0;
    for (int i = 0; i < trial->num_shown && n < MOST_RECORDED; i++)
        if (trial->shown[i].call == call) mine[n++] = trial->shown[i].number;
    recorder.mine = (Numbers){mine, n};
    return n;
}

static const char *name_of(const Exercise *e, int k) {
    return k < MOST_STAGES ? recorder.stage[k] : exercise_array(e, k - MOST_STAGES)->name;
}

/* "s, p and dp" */
static void put_list(const char *const *name, int n, char *text, size_t size) {
    for (int i = 0; i < n; i++) {
        const char *before = i + 1 < n ? ", " : " and ";
        put_text(text, size, "%s%s", i ? before : "", name[i]);
    }
}

/* Those for which `is` holds, from `from` to `to` - 1. */
static int list(const Exercise *e, const Known *known, int from, int to, bool (*is)(const Known *),
                const char **name) {
    int n = 0;
    for (int k = from; k < to; k++)
        if ((k < recorder.stages || k >= MOST_STAGES) && is(&known[k])) name[n++] = name_of(e, k);
    return n;
}

/* "ds[0][2]" */
static void put_place(const Shown *number, char *text, size_t size) {
    put_text(text, size, "%s", number->name);
    for (int i = 0; i < number->indices; i++) put_text(text, size, "[%d]", number->at[i]);
}

static void say_number(const Known *known, char *text, size_t size) {
    char is[32], should[32];
    number_signed(is, known->number.value, 6);
    number_signed(should, known->should, 6);
    put_text(text, size, " Your ");
    put_place(&known->number, text, size);
    put_text(text, size, " is %s, should be %s.", is, should);
}

/* What is right where it is shown, and not shown everywhere. */
static void say_lacking(const Known *known, int stages, char *text, size_t size) {
    int k = 0;
    while (k < stages && !(is_right(&known[k]) && known[k].lacks.indices)) k++;
    if (k == stages) return;
    put_text(text, size, ", but ");
    put_place(&known[k].lacks, text, size);
    put_text(text, size, " is never shown");
}

static void say(const Exercise *e, const Known *known, int first, Finding *f) {
    const char *name[MOST_KNOWN];
    char *text = f->text;
    const size_t size = sizeof f->text;
    const int stages = first < recorder.stages ? first : recorder.stages;
    int n = list(e, known, 0, stages, is_right, name);
    if (n) put_text(text, size, "Right: ");
    put_list(name, n, text, size);
    say_lacking(known, stages, text, size);
    put_text(text, size, n ? ". " : "");
    if (is_unwritten(&known[first])) {
        put_text(text, size, "%s is not written yet: what you show is 0, or no number.\n",
                 f->stage);
        return;
    }
    put_text(text, size, "The first that is wrong is %s.", f->stage);
    if (first < MOST_STAGES && !diagnosis_hides_numbers) say_number(&known[first], text, size);
    int from = stages;
    while (from > 0 && !is_right(&known[from - 1])) from--;
    n = list(e, known, from, stages, is_hidden, name);
    if (n) put_text(text, size, n > 1 ? " Before it come " : " Before it comes ");
    put_list(name, n, text, size);
    put_text(text, size, n ? ", which you do not show.\n" : "\n");
    n = list(e, known, first + 1, MOST_KNOWN, is_wrong, name);
    if (n && first < MOST_STAGES) {
        put_text(text, size, "By your own numbers before, ");
        put_list(name, n, text, size);
        put_text(text, size, " %s wrong, too: is it the same mistake?\n", n > 1 ? "are" : "is");
    }
    n = list(e, known, 0, MOST_STAGES, is_apart, name);
    if (n == 0) return;
    put_text(text, size, "What you show as ");
    put_list(name, n, text, size);
    put_text(text, size,
             " is left out: what follows is right without it. Does SHOW stand behind the last line "
             "that changes it?\n");
}

/* A name or an index that no stage has; an output may be shown. */
static void say_unknown(const Exercise *e, Finding *f) {
    const Numbers recorded = {recorder.number, recorder.n};
    for (int i = 0; i < recorder.mine.n; i++) {
        const Shown *mine = &recorder.mine.number[i];
        bool is_known = find(recorded, mine);
        for (int k = 0; exercise_array(e, k); k++)
            if (strcmp(exercise_array(e, k)->name, mine->name) == 0) is_known = true;
        if (is_known) continue;
        put_text(f->text, sizeof f->text, "You show ");
        put_place(mine, f->text, sizeof f->text);
        put_text(f->text, sizeof f->text, "; the stages are");
        for (int k = 0; k < recorder.stages; k++)
            put_text(f->text, sizeof f->text, "%s %s", k ? "," : "", recorder.stage[k]);
        put_text(f->text, sizeof f->text, ", with the indices of the text.\n");
        return;
    }
}

static void note_wrong(const Exercise *e, const Known *known, int first, Finding *f) {
    for (int k = first; k < recorder.stages; k++)
        if (is_wrong(&known[k])) put_text(f->wrong, sizeof f->wrong, " %s ", name_of(e, k));
    for (int k = 0; first < MOST_STAGES && exercise_array(e, k); k++)
        if (!is_wrong(&known[MOST_STAGES + k])) f->follows |= 1U << k;
}

Finding stages_find(const Exercise *e, const Trial *trial, const Calls *right) {
    static Shown mine[MOST_RECORDED];
    Known known[MOST_KNOWN] = {0};
    Finding f = {.call = -1};
    Call copy;
    int any = 0, last = -1;
    if (!trial->num_shown) return f;
    recorder.stages = 0;
    recorder.unfinished = trial->unwritten;
    if (run(e, e->source, &right->call[0], 0, &copy)) call_free(&copy);
    for (int i = 0; recorder.stages && i < right->n; i++) {
        if (trial->result[i].call < 0 || !has_stages(&right->call[i])) continue;
        if (!take_shown(trial, i, mine)) continue;
        any++;
        last = i;
        look_at_call(e, &trial->calls.call[i], &right->call[i], i, known);
    }
    int first = 0;
    while (any && first < MOST_KNOWN && !is_wrong(&known[first])) first++;
    if (any && first < MOST_KNOWN) {
        snprintf(f.stage, sizeof f.stage, "%s", name_of(e, first));
        if (known[first].seen) f.call = known[first].call;
        note_wrong(e, known, first, &f);
        say(e, known, first, &f);
    }
    if (any && take_shown(trial, last, mine) && run(e, e->source, &right->call[last], 0, &copy)) {
        call_free(&copy);
        say_unknown(e, &f);
    }
    return f;
}

void stages_of_mistake(const Exercise *e, const KnownMistake *mistake, const Calls *given,
                       const Calls *right, char stage[SHOWN_NAME]) {
    static Shown mine[MOST_RECORDED];
    Call wrong, copy;
    Shown number;
    double should;
    int first = MOST_KNOWN;
    *stage = '\0';
    recorder.stages = 0;
    for (int i = 0; i < given->n; i++) {
        if (!has_stages(&given->call[i])) continue;
        if (!mistake_counts(mistake, &given->call[i])) continue;
        if (recorder.stages == 0 && run(e, e->source, &given->call[i], 0, &copy)) call_free(&copy);
        if (recorder.stages == 0) return;
        if (!run(e, mistake->backward, &given->call[i], 0, &wrong)) return;
        memcpy(mine, recorder.number, (size_t)recorder.n * sizeof *mine);
        recorder.mine = (Numbers){mine, recorder.n};
        if (!run(e, e->source, &given->call[i], 0, &copy)) return;
        for (int k = 0; k < recorder.stages; k++)
            if (compare_stage(k, &number, &should) == DIFFERS && k < first) first = k;
        for (int k = 0; exercise_array(e, k); k++)
            if (is_output(exercise_array(e, k)) && MOST_STAGES + k < first &&
                !is_same_output(e, &wrong, &right->call[i], k))
                first = MOST_STAGES + k;
        call_free(&wrong);
        call_free(&copy);
    }
    if (first < MOST_KNOWN) snprintf(stage, SHOWN_NAME, "%s", name_of(e, first));
}
