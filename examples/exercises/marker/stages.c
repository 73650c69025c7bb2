/* stages.c - the first wrong stage: see stages.h. */
#include "stages.h"

#include "../../common/put_text.h"

#include "numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the calls that a rule looks at ------------------------------------------------------------
 */

bool stages_fit(const Exercise *e, const Call *call) {
    for (int k = 0; exercise_array(e, k); k++) {
        const int64_t columns = call_columns(e, call, k);
        if (columns > MOST_SIDE || call_length(e, call, k) > columns * MOST_SIDE) return false;
    }
    for (const Stage *s = e->stages->stage; s->name; s++)
        if (s->size[2] &&
            call_size(e, call, s->size[0]) * call_size(e, call, s->size[1]) > MOST_SIDE)
            return false;
    return true;
}

int stages_dense(const Evidence *evidence, int at) {
    const Calls *right = evidence->right;
    while (++at < right->n) {
        const Call *call = &right->call[at];
        const bool last = at + 1 == right->n || right->call[at + 1].input != call->input;
        if (call->dy != DENSE || call->lone || call->tiny ||
            (!last && right->call[at + 1].dy == DENSE))
            continue;
        if (evidence->trial->result[at].call >= 0 && stages_fit(evidence->e, call)) return at;
    }
    return -1;
}

int stages_one_hot(const Evidence *evidence, int call) {
    const Calls *right = evidence->right;
    const int input = right->call[call].input;
    int first = call;
    while (first > 0 && right->call[first - 1].input == input) first--;
    for (int i = first; i < call; i++)
        if (evidence->trial->result[i].call < 0) return -1;
    return right->call[first].dy == ONE_HOT ? first : -1;
}

Matrix stages_mine(const Evidence *evidence, int call, int array) {
    return matrix_of(evidence->e, &evidence->trial->calls.call[call], array);
}
Matrix stages_right(const Evidence *evidence, int call, int array) {
    return matrix_of(evidence->e, &evidence->right->call[call], array);
}

bool stages_is_right(const Evidence *evidence, int call, int array) {
    const Matrix mine = stages_mine(evidence, call, array);
    const Matrix right = stages_right(evidence, call, array);
    return matrix_same(&mine, &right, 1e-7);
}

void stages_show(Finding *finding, int call, const char *stage, const char *proved,
                 const Matrix *mine) {
    finding->stage = stage;
    finding->proved = proved;
    finding->call = call;
    finding->seen = mine != NULL;
    if (mine) finding->mine = *mine;
}

void stages_prove(Finding *finding, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->proof, sizeof finding->proof, format, arguments);
    va_end(arguments);
}

/* ---- words --------------------------------------------------------------------------------------
 */

/* The output with this name; -1 if it is none. */
static int output_named(const Exercise *e, const char *name) {
    for (int k = 0; exercise_array(e, k); k++)
        if (is_output(exercise_array(e, k)) && strcmp(exercise_array(e, k)->name, name) == 0)
            return k;
    return -1;
}

static int stage_named(const Exercise *e, const char *name) {
    for (int i = 0; name && e->stages->stage[i].name; i++)
        if (strcmp(e->stages->stage[i].name, name) == 0) return i;
    return -1;
}

/* The right numbers of a stage; false if it has none. */
static bool right_numbers(const Exercise *e, const Call *call, const char *name, Matrix *right) {
    Matrix value[MOST_STAGES];
    const int output = output_named(e, name), stage = stage_named(e, name);
    if (output >= 0) *right = matrix_of(e, call, output);
    if (output >= 0) return true;
    if (stage < 0 || !e->stages->stage[stage].size[0]) return false;
    e->stages->values(e, call, value);
    *right = value[stage];
    return true;
}

/* The row with the largest error. */
static int worst_row(const Matrix *a, const Matrix *b) {
    double most = -1;
    int row = 0;
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++)
            if (fabs(a->x[i][j] - b->x[i][j]) > most) {
                most = fabs(a->x[i][j] - b->x[i][j]);
                row = i;
            }
    return row;
}

enum { MOST_NUMBERS_IN_ROW = 6 };

/* "{+0.5, -0.5}" */
static void append_row(const Matrix *a, int row, char *text, size_t size) {
    char number[32];
    for (int j = 0; j < a->columns && j < MOST_NUMBERS_IN_ROW; j++) {
        number_signed(number, a->x[row][j], 6);
        put_text(text, size, "%s%s", j ? ", " : "{", number);
    }
    put_text(text, size, a->columns > MOST_NUMBERS_IN_ROW ? ", ...}" : "}");
}

/* "[1]", or "[0][2]" for a stage of three sizes, whose matrix has the first two as its rows. */
static void append_row_name(const Exercise *e, const Call *call, const char *name, int row,
                            char *text, size_t size) {
    const Stage *stage = &e->stages->stage[stage_named(e, name)];
    const int inner = stage->size[2] ? (int)call_size(e, call, stage->size[1]) : 0;
    const int output = output_named(e, name);
    if (output >= 0 && !exercise_array(e, output)->rows) put_text(text, size, "%s", name);
    else if (inner) put_text(text, size, "%s[%d][%d]", name, row / inner, row % inner);
    else put_text(text, size, "%s[%d]", name, row);
}

static void append_numbers(const Evidence *evidence, const Finding *f, char *text, size_t size) {
    const Call *call = &evidence->right->call[f->call];
    const int output = output_named(evidence->e, f->stage);
    Matrix right;
    Matrix mine = f->mine;
    if (!right_numbers(evidence->e, call, f->stage, &right)) return;
    if (output >= 0) mine = stages_mine(evidence, f->call, output);
    const bool seen = f->seen || output >= 0;
    const int row = seen ? worst_row(&mine, &right) : 0;
    if (right.rows == 1 && right.columns == 1) put_text(text, size, "%s", f->stage);
    else append_row_name(evidence->e, call, f->stage, row, text, size);
    put_text(text, size, " should be ");
    append_row(&right, row, text, size);
    if (seen) {
        put_text(text, size, ", and your results have ");
        append_row(&mine, row, text, size);
    }
    put_text(text, size, ".\n");
}

/* ---- what the function shows --------------------------------------------------------------------
 */

/* The sizes of a stage; returns how many. An output's are those of its array. */
static int sizes_of(const Exercise *e, const Call *call, int stage, int size[3]) {
    const char *text[3] = {e->stages->stage[stage].size[0], e->stages->stage[stage].size[1],
                           e->stages->stage[stage].size[2]};
    const int output = output_named(e, e->stages->stage[stage].name);
    int n = 0;
    if (output >= 0) {
        const Parameter *p = exercise_array(e, output);
        text[0] = p->rows ? p->rows : p->columns;
        text[1] = p->rows ? p->columns : NULL;
    }
    for (; n < 3 && text[n]; n++) size[n] = (int)call_size(e, call, text[n]);
    return n;
}

/* The right number in the place of a shown one; NULL if the stage has no such place. */
static const double *place_of(const Exercise *e, const Call *call, int stage, const Shown *shown,
                              const Matrix *right) {
    int size[3], at = 0;
    const int n = sizes_of(e, call, stage, size);
    if (shown->indices > n || (shown->indices < n && !(n == 1 && size[0] == 1))) return NULL;
    for (int i = 0; i < n; i++) {
        if (shown->at[i] < 0 || shown->at[i] >= size[i]) return NULL;
        at = at * size[i] + shown->at[i];
    }
    return &right->x[at / right->columns][at % right->columns];
}

/* Is every number that the function shows of this stage, in this call, factor times the right one?
 * `first` gets the first that is not. */
static bool shown_are(const Evidence *evidence, int call, int stage, double factor,
                      const Matrix *right, const Shown **first) {
    for (int i = 0; i < evidence->trial->num_shown; i++) {
        const ShownInCall *s = &evidence->trial->shown[i];
        if (s->call != call || stage_named(evidence->e, s->number.name) != stage) continue;
        const double *place =
            place_of(evidence->e, &evidence->right->call[call], stage, &s->number, right);
        if (!place) continue;
        if (fabs(s->number.value - factor * *place) <= 1e-7 * (1 + fabs(factor * *place))) continue;
        if (first) *first = &s->number;
        return false;
    }
    return true;
}

/* A ds behind or before the scale, and sums with their 1/n or without, are right: it is a
 * convention. */
static bool is_convention(const Evidence *evidence, int call, int stage, const Matrix *right) {
    const int *size = evidence->right->call[call].size;
    const char *name = evidence->e->stages->stage[stage].name;
    double factor = 1;
    if (strcmp(name, "ds") == 0) factor = sqrt(size[2]);
    if (strcmp(name, "sums") == 0) factor = size[1];
    return factor != 1 && (shown_are(evidence, call, stage, factor, right, NULL) ||
                           shown_are(evidence, call, stage, 1 / factor, right, NULL));
}

typedef enum { NOT_SHOWN, SHOWN_RIGHT, SHOWN_WRONG } ShownStage;

static ShownStage look_at_shown(const Evidence *evidence, int stage, int *wrong_call,
                                const Shown **wrong, double *should) {
    ShownStage found = NOT_SHOWN;
    const Exercise *e = evidence->e;
    int compared = -1; /* the call whose numbers are right */
    for (int i = 0; i < evidence->trial->num_shown; i++) {
        const ShownInCall *s = &evidence->trial->shown[i];
        Matrix right;
        if (s->call == compared || stage_named(e, s->number.name) != stage) continue;
        const Call *call = &evidence->right->call[s->call];
        if (!stages_fit(e, call) || !right_numbers(e, call, s->number.name, &right)) continue;
        if (!place_of(e, call, stage, &s->number, &right)) continue;
        found = SHOWN_RIGHT;
        compared = s->call;
        if (shown_are(evidence, s->call, stage, 1, &right, wrong) ||
            is_convention(evidence, s->call, stage, &right))
            continue;
        *wrong_call = s->call;
        *should = *place_of(e, call, stage, *wrong, &right);
        return SHOWN_WRONG;
    }
    return found;
}

static void say_shown(Finding *f, const Shown *shown, double should) {
    char is[32], right[32], name[64];
    int at = snprintf(name, sizeof name, "%s", shown->name);
    for (int i = 0; i < shown->indices; i++)
        at += snprintf(name + at, sizeof name - (size_t)at, "[%d]", shown->at[i]);
    number_signed(is, shown->value, 6);
    number_signed(right, should, 6);
    snprintf(f->shown, sizeof f->shown, "The number that you show as %s is %s, should be %s.", name,
             is, right);
}

/* A name or an index that no stage has. */
static void say_unknown(const Evidence *evidence, Finding *f) {
    const Exercise *e = evidence->e;
    for (int i = 0; i < evidence->trial->num_shown && !*f->shown; i++) {
        const ShownInCall *s = &evidence->trial->shown[i];
        if (stage_named(e, s->number.name) >= 0) continue;
        snprintf(f->shown, sizeof f->shown, "You show %s; the names are", s->number.name);
        for (int k = 0; e->stages->stage[k].name; k++)
            put_text(f->shown, sizeof f->shown, "%s %s", k ? "," : "", e->stages->stage[k].name);
        put_text(f->shown, sizeof f->shown, ".");
    }
}

/* The first stage that is shown and wrong, or the first behind those that are shown and right,
 * where the outputs do not prove an earlier one. */
static void use_shown(const Evidence *evidence, Finding *f) {
    const int seen = stage_named(evidence->e, f->stage);
    int last_right = -1, call = 0;
    for (int i = 0; evidence->e->stages->stage[i].name; i++) {
        const Shown *wrong = NULL;
        double should = 0;
        const ShownStage found = look_at_shown(evidence, i, &call, &wrong, &should);
        if (found == SHOWN_RIGHT) last_right = i;
        if (found != SHOWN_WRONG) continue;
        if (seen >= 0 && seen < i && seen > last_right) return;
        if (seen != i) memset(f, 0, sizeof *f);
        f->stage = evidence->e->stages->stage[i].name;
        f->call = call;
        say_shown(f, wrong, should);
        return;
    }
    if (seen < 0 || seen > last_right || !evidence->e->stages->stage[last_right + 1].name) return;
    const int at = f->call;
    memset(f, 0, sizeof *f);
    f->call = at;
    f->stage = evidence->e->stages->stage[last_right + 1].name;
}

Finding stages_find(const Exercise *e, const Trial *trial, const Calls *right) {
    const Evidence evidence = {e, trial, right};
    Finding finding;
    memset(&finding, 0, sizeof finding);
    if (!e->stages) return finding;
    e->stages->find(&evidence, &finding);
    if (trial->num_shown) {
        use_shown(&evidence, &finding);
        say_unknown(&evidence, &finding);
    }
    return finding;
}

/* SHOW helps where the outputs do not have the numbers of the stage. */
static void offer_show(const Evidence *evidence, const Finding *f, char *text, size_t size) {
    static const char *const index[] = {"", ", i", ", i, j", ", h, i, j"};
    static const char *const place[] = {"", "[i]", "[i][j]", "[h][i][j]"};
    int sizes[3];
    const int n = sizes_of(evidence->e, &evidence->right->call[f->call],
                           stage_named(evidence->e, f->stage), sizes);
    if (n == 0 || f->seen || *f->shown || output_named(evidence->e, f->stage) >= 0) return;
    put_text(text, size,
             "SHOW(\"%s\", %s%s%s); behind the line that computes it gives yours to the marker.\n",
             f->stage, f->stage, place[n], index[n]);
}

/* A NaN goes wherever its number is used: it makes no second mistake. */
static bool has_nan(const Evidence *evidence) {
    const Calls *mine = &evidence->trial->calls;
    for (int c = 0; c < mine->n; c++)
        for (int k = 0; exercise_array(evidence->e, k); k++)
            if (is_output(exercise_array(evidence->e, k)) &&
                first_nan(call_length(evidence->e, &mine->call[c], k), mine->call[c].array[k],
                          evidence->right->call[c].array[k]) >= 0)
                return true;
    return false;
}

void stages_say(const Evidence *evidence, const Finding *f, bool proof, char *text, size_t size) {
    if (f->proved) put_text(text, size, "Right: %s. ", f->proved);
    /* With two mistakes an output can look as if another stage were wrong. */
    put_text(text, size, "The first that is wrong %s %s. ", *f->shown ? "is" : "seems to be",
             f->stage);
    append_numbers(evidence, f, text, size);
    if (text[strlen(text) - 1] == ' ') text[strlen(text) - 1] = '\n';
    if (*f->shown) put_text(text, size, "%s\n", f->shown);
    if (!proof) return;
    if (*f->proof) put_text(text, size, "%s\n", f->proof);
    if (f->asks) put_text(text, size, "%s\n", f->asks);
    offer_show(evidence, f, text, size);
    if (f->another && !has_nan(evidence))
        put_text(text, size, "There is another mistake: %s\n", f->another);
}
