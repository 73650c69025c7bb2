/* rule_judge.c - is a formula right, and what is it if not? See rule_judge.h. */
#include "rule_judge.h"

#include "../page/recording.h"

#include "../../common/put_text.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 2, FIRST_DRAW = 17, MOST_USES = 4, MOST_GIVEN = 64 };

/* The gradient of x, on the open tape. */
typedef struct {
    const Planting *planting;
    bool is_whole, moves; /* the card's; the line only moves numbers */
    Tensor *x;
    int num_uses;
    PlantedUse at[MOST_USES], uses[MOST_USES]; /* what reads x; through K', what reads K' */
    RuleValues of[MOST_USES], own_values;      /* of the uses; of the formula */
    Tensor *in[MOST_USES][PLANTED_INPUTS], *own_in[PLANTED_INPUTS];
    Tensor *kept[MOST_USES];
    RuleGiven given[MOST_GIVEN];
    int64_t n; /* numbers of the gradient */
    double tolerance;
    double *own, *right, *other, *part[MOST_USES];
    RuleFormula *formula;
} Look;

/* Of the look: the names of mistakes.def for each use, and those of the formula; the formula of a
 * card; one that is tried. */
static RuleScope of_op[MOST_USES], of_lesson;
static RuleFormula whole, tried;

/* ---- random numbers -------------------------------------------------------------------------- */

/* A lesson's own generator stays as it is. */
static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const double u = (double)(*state >> 11) / 9007199254740992.0;
    return u < 0.5 ? -1.5 + 2 * u : 2 * u - 0.5;
}

Tensor *planted_draw_like(const Tensor *x, uint64_t *state, double factor) {
    const int64_t n = tensor_numel(x);
    double *numbers = malloc((size_t)(n + 1) * sizeof *numbers);
    if (!numbers) return tensor_fail("out of memory for a rule");
    for (int64_t i = 0; i < n; i++) numbers[i] = factor * draw(state);
    Tensor *drawn = tensor_from_doubles(x->shape, numbers);
    Tensor *typed = drawn ? tensor_to(drawn, x->dtype) : NULL;
    tensor_release(drawn);
    free(numbers);
    return typed;
}

static bool is_float(const Tensor *x) { return x->dtype == F32 || x->dtype == F64; }

bool rule_draw(Tensor *x, uint64_t *state) {
    if (!is_float(x)) return true;
    Tensor *drawn = planted_draw_like(x, state, 1);
    const bool done = drawn && tensor_copy_from(x, drawn);
    tensor_release(drawn);
    return done;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Sums a gradient over the dimensions in which x was broadcast. */
static Tensor *in_shape_of(Tensor *dx, const Tensor *x) {
    Axes dims = {0};
    if (!dx) return NULL;
    const int more = dx->shape.ndim - x->shape.ndim;
    for (int d = 0; d < dx->shape.ndim; d++)
        if (d < more || x->shape.dim[d - more] != dx->shape.dim[d]) dims.axis[dims.n++] = d;
    return ag_reshape(dims.n ? ag_sum_dims(dx, dims, true) : dx, x->shape);
}

bool planted_compute(RuleFormula *f, const RuleValues *values, const Tensor *x, bool moves,
                     double *numbers) {
    if (!tape_begin_no_grad()) return false;
    Tensor *dx = in_shape_of(rule_fit(f, rule_evaluate(f, values), x, moves), x);
    const bool done = dx && tensor_to_doubles(dx, numbers);
    tape_end();
    return done;
}

/* A formula in the lesson's names; that of a card has to have the size of the gradient. */
static bool compute_own(Look *l, RuleFormula *f, double *numbers) {
    if (!l->is_whole) return planted_compute(f, &l->own_values, l->x, l->moves, numbers);
    if (!tape_begin_no_grad()) return false;
    Tensor *value = rule_fit_whole(f, rule_evaluate(f, &l->own_values), l->x);
    const bool done = value && tensor_to_doubles(value, numbers);
    tape_end();
    return done;
}

/* A formula of mistakes.def. */
static bool compute_use(Look *l, int u, const char *formula, double *numbers) {
    return rule_parse(&tried, formula, &of_op[u]) &&
           planted_compute(&tried, &l->of[u], l->x, l->moves, numbers);
}

/* What a use gives, by the own backward of its line. */
static bool compute_part(Look *l, int u) {
    Tensor *dx[PLANTED_INPUTS] = {NULL};
    TapeLine line;
    if (!tape_line(l->at[u].line, &line)) return false;
    const Tensor *dy = l->is_whole ? line.out->grad : l->own_values.dy;
    const bool done = tape_vjp(l->at[u].line, dy, dx);
    const Tensor *mine = done ? dx[l->at[u].k] : NULL;
    const bool read = mine && tensor_to_doubles(mine, l->part[u]);
    for (int k = 0; k < PLANTED_INPUTS; k++) tensor_release(dx[k]);
    return read;
}

static bool compute_right(Look *l) {
    bool done = true;
    for (int u = 0; u < l->num_uses && done; u++) done = compute_part(l, u);
    for (int64_t i = 0; i < l->n && done; i++) {
        l->right[i] = 0;
        for (int u = 0; u < l->num_uses; u++) l->right[i] += l->part[u][i];
    }
    return done;
}

bool planted_same(const double *a, const double *b, double factor, int64_t n, double tolerance) {
    double largest = 1;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(b[i])) largest = fmax(largest, fabs(factor * b[i]));
    for (int64_t i = 0; i < n; i++) {
        const double wanted = factor * b[i];
        const bool near = fabs(a[i] - wanted) <= tolerance * largest;
        if (!near && a[i] != wanted && !(isnan(a[i]) && isnan(wanted))) return false;
    }
    return true;
}

static bool same(const Look *l, const double *a, const double *b, double factor) {
    return planted_same(a, b, factor, l->n, l->tolerance);
}

/* ---- where a gradient comes from ------------------------------------------------------------- */

static bool is_product(const TapeLine *line) {
    return strcmp(line->op, "matmul") == 0 || strcmp(line->op, "bmm") == 0;
}

bool judge_turned_use(int i, int k, PlantedUse *use) {
    TapeLine line;
    if (!tape_line(i, &line) || !data_turns(&line)) return false;
    const Tensor *turned = line.out;
    Tensor *x = line.in[k];
    for (int j = i + 1; tape_line(j, &line); j++)
        if (is_product(&line) && line.in[1] == turned) {
            *use = (PlantedUse){j, 1, x};
            return true;
        }
    return false;
}

static void add_use(Look *l, PlantedUse at, bool turns) {
    TapeLine line;
    const int u = l->num_uses++;
    l->at[u] = at;
    l->uses[u] = at;
    if (turns) judge_turned_use(at.line, at.k, &l->uses[u]);
    tape_line(l->uses[u].line, &line);
    planted_inputs(&line, l->in[u]);
    l->of[u] = (RuleValues){.dy = line.out->grad, .out = line.out, .in = l->in[u]};
    if (u > 0) return;
    if (!l->is_whole) tape_line(at.line, &line);
    planted_inputs(&line, l->own_in);
    l->own_values = (RuleValues){.dy = line.out->grad, .out = line.out, .in = l->own_in};
}

/* All lines that read x. */
static void find_uses(Look *l) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in && l->num_uses < MOST_USES; k++)
            if (line.in[k] == l->x && planted_has_gradient(&line, k))
                add_use(l, (PlantedUse){i, k, NULL}, true);
}

static bool begin(Look *l) {
    const int64_t n = tensor_numel(l->x);
    const bool is_f32 = l->x->dtype == F32 || l->own_values.out->dtype == F32;
    l->n = n;
    const double most = l->is_whole ? 1e-4 : 2e-5;
    l->tolerance = is_f32 ? most : 1e-9;
    l->own = malloc((size_t)(n * (3 + MOST_USES) + 1) * sizeof *l->own);
    if (!l->own) return tensor_fail("out of memory for a rule");
    l->right = l->own + n;
    l->other = l->own + 2 * n;
    if (!l->formula) l->formula = &whole;
    for (int u = 0; u < l->num_uses; u++) {
        l->part[u] = l->own + (3 + u) * n;
        if (!planted_scope_of_op(&l->uses[u], &l->kept[u], &of_op[u])) return false;
    }
    return !tensor_error();
}

static void end(Look *l) {
    for (int u = 0; u < l->num_uses; u++) tensor_release(l->kept[u]);
    free(l->own);
}

/* ---- the gradients that a formula reads ------------------------------------------------------ */

static bool reads_gradient(const RuleFormula *f, const Tensor *of) {
    for (int i = 0; i < f->n; i++)
        if (f->nodes[i].sign == 'n' && f->nodes[i].value.meaning == NAMES_GRADIENT &&
            (!of || f->nodes[i].value.tensor == of))
            return true;
    return false;
}

bool planted_reads_others(const RuleFormula *f) { return reads_gradient(f, NULL); }

/* The gradient of x, which becomes dx more; NULL: it has none yet. */
static Tensor *give(Look *l, const Tensor *x, Tensor *dx) {
    int i = 0, *n = &l->own_values.num_given;
    while (i < *n && l->given[i].of != x) i++;
    if (!dx || i == MOST_GIVEN) return i < *n ? l->given[i].gradient : NULL;
    if (i == *n) l->given[(*n)++] = (RuleGiven){x, dx};
    else l->given[i].gradient = ag_add(l->given[i].gradient, dx);
    return l->given[i].gradient;
}

/* Draws what arrives at the line, `factor` times; of a formula that reads gradients before it, and
 * of K', those are drawn, and go back to the line as in a backward pass. On an open tape without
 * gradients. */
static bool draw_gradients(Look *l, int seed, double factor) {
    uint64_t state = (uint64_t)seed;
    TapeLine line;
    int i = l->at[0].line;
    l->own_values.num_given = 0;
    l->own_values.given = l->given;
    if (reads_gradient(l->formula, NULL) || l->uses[0].turned)
        while (tape_line(i + 1, &line)) i++;
    for (; i >= l->at[0].line && !tensor_error(); i--) {
        Tensor *in[PLANTED_INPUTS];
        Tensor *dx[PLANTED_INPUTS] = {NULL};
        if (!tape_line(i, &line) || line.n_in > PLANTED_INPUTS) continue;
        const bool is_drawn =
            i == l->at[0].line || i == l->uses[0].line || reads_gradient(l->formula, line.out);
        planted_inputs(&line, in);
        Tensor *dy = give(l, line.out, NULL);
        if (!dy && is_drawn)
            dy = give(l, line.out, tape_own(planted_draw_like(line.out, &state, factor)));
        if (i == l->uses[0].line) l->of[0].dy = dy;
        if (i == l->at[0].line) l->own_values.dy = dy;
        else if (dy && line.out->grad_fn && tape_vjp(i, dy, dx))
            for (int k = 0; k < PLANTED_INPUTS; k++)
                if (dx[k]) give(l, in[k], tape_own(dx[k]));
    }
    return !tensor_error();
}

/* ---- what agrees ----------------------------------------------------------------------------- */

const char *planted_formula_of(const MistakeRow *m, const PlantedUse *use) {
    return use->k < 3 && mistake_is_of(m, planted_op(use)) ? m->formula[use->k] : NULL;
}

/* The formula of a mistake of this gradient; NULL if row m has none. */
static const char *mistake_of(const Look *l, int m) {
    const MistakeRow *row = &mistake_rows[m];
    return row->id && l->num_uses == 1 ? planted_formula_of(row, &l->uses[0]) : NULL;
}

/* A right formula for what a use gives; NULL if none is known. */
static const char *right_formula(Look *l, int u) {
    for (int m = 0; m < num_mistake_rows && !tensor_error(); m++) {
        const MistakeRow *row = &mistake_rows[m];
        const char *formula = row->id ? NULL : planted_formula_of(row, &l->uses[u]);
        if (formula && compute_use(l, u, formula, l->other) && same(l, l->part[u], l->other, 1))
            return formula;
    }
    return NULL;
}

static void compare_mistakes(Look *l, Judged *j) {
    for (int m = 0; m < num_mistake_rows && !tensor_error(); m++) {
        const char *formula = j->is_no_mistake[m] ? NULL : mistake_of(l, m);
        j->is_no_mistake[m] =
            !formula || !compute_use(l, 0, formula, l->other) || !same(l, l->own, l->other, 1);
    }
}

/* The sums of some of the uses. */
static void compare_parts(Look *l, Judged *j) {
    for (unsigned set = 1; set < 1u << l->num_uses; set++) {
        for (int64_t i = 0; i < l->n; i++) {
            l->other[i] = 0;
            for (int u = 0; u < l->num_uses; u++)
                if (set >> u & 1) l->other[i] += l->part[u][i];
        }
        if (!same(l, l->own, l->other, 1)) j->no_parts |= 1u << set;
    }
}

/* Is it the right one with its last two dimensions swapped? */
static bool is_turned(Look *l) {
    const Shape s = l->x->shape;
    const int64_t m = s.ndim >= 2 ? s.dim[s.ndim - 1] : 0;
    if (m < 2 || s.dim[s.ndim - 2] != m) return false;
    for (int64_t i = 0; i < l->n; i++) {
        const int64_t matrix = i / (m * m), row = i / m % m, column = i % m;
        l->other[i] = l->right[(matrix * m + column) * m + row];
    }
    return same(l, l->own, l->other, 1);
}

static void compare_with_right(Look *l, Judged *j) {
    double product = 0, square = 0;
    for (int64_t i = 0; i < l->n; i++) {
        product += l->own[i] * l->right[i];
        square += l->right[i] * l->right[i];
    }
    const bool is_first = j->wrong_looks == 0;
    if (is_first) j->factor = product / square;
    if (!same(l, l->own, l->right, j->factor)) j->factor = (double)NAN;
    j->is_turned = is_turned(l) && (is_first || j->is_turned);
}

/* Own and right numbers are computed. */
static void compare(Look *l, Judged *j, bool here) {
    if (same(l, l->own, l->right, 1)) return;
    j->is_wrong = true;
    if (here) j->is_wrong_here = true;
    compare_with_right(l, j);
    compare_mistakes(l, j);
    compare_parts(l, j);
    j->wrong_looks++;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* A text with the lesson's names. */
static void say(Look *l, const char *text, char said[JUDGE_TEXT]) {
    planted_say(l->planting, &l->uses[0], l->is_whole ? l->x : NULL, text, said);
}

void judge_name_mistake(const Planting *planting, const PlantedUse *use, const MistakeRow *m,
                        char *complaint, size_t size) {
    char said[JUDGE_TEXT];
    if (!m) return;
    planted_say(planting, use, NULL, m->computes, said);
    said[strlen(said) - 1] = '\0'; /* the full stop */
    if (strlen(complaint) + strlen(said) + 10 < size)
        put_text(complaint, size, ". This is %s", said);
}

/* "This is what comes from V; x goes into K and Q, too." */
static void say_parts(Look *l, unsigned set, char *why, size_t size) {
    char from[120] = "", missing[120] = "", name[JUDGE_TEXT];
    TapeLine line;
    for (int u = 0; u < l->num_uses; u++) {
        char *list = set >> u & 1 ? from : missing;
        tape_line(l->uses[u].line, &line);
        put_text(list, sizeof from, "%s%.30s", *list ? " and " : "", line.out->name);
    }
    say(l, "{own}", name);
    tensor_snprintf(why, size, "This is what comes from %s; but %s goes into %s, too.", from, name,
                    missing);
}

/* Is the rule right for the gradient that arrives here? *ones: is every number of that one 1? */
static bool is_right_here(Look *l, bool *ones) {
    TapeLine line;
    tape_line(l->at[0].line, &line);
    Tensor *dy = line.out->grad;
    l->own_values.dy = dy;
    l->own_values.num_given = 0;
    *ones = dy && tensor_item(ag_sum(ag_to(ag_ne_scalar(dy, 1), F64))) == 0;
    return dy && compute_own(l, l->formula, l->own) && compute_right(l) &&
           same(l, l->own, l->right, 1);
}

static void say_not_linear(Look *l, const Judged *j, char *why) {
    bool ones = false;
    const char *says = "This does not double when {dy} doubles, as a gradient does.";
    const bool is_right = is_right_here(l, &ones);
    if (is_right && !ones)
        says = "All numbers are right here, for this loss. A rule of one line has to work for any "
               "loss: it takes what arrives, {dy}, and doubles when {dy} doubles.";
    else if (is_right && j->ignores_dy)
        says = "All numbers are right here, since what arrives, {dy}, is 1 here. For any other "
               "number it is wrong: the rule forgets to multiply by {dy}.";
    else if (is_right)
        says = "All numbers are right here, since what arrives, {dy}, is 1 here. For any other "
               "number it is wrong: it does not double when {dy} doubles.";
    say(l, says, why);
}

/* A factor that is smaller than the tolerance is what rounding left. */
static void say_likeness(const Look *l, double c, bool turned, char *why, size_t size) {
    if (c == 0) snprintf(why, size, "This is 0 everywhere.");
    else if (fabs(c) < l->tolerance) snprintf(why, size, "This is 0 everywhere, but for rounding.");
    else if (fabs(c + 1) < 1e-9)
        snprintf(why, size, "This is the right gradient with the other sign.");
    else if (fabs(c - 1) < 1e-3)
        snprintf(why, size,
                 "This is right but for a rounded number: write sqrt(d), or the fraction.");
    else if (isfinite(c)) snprintf(why, size, "This is the right gradient times %.6g.", c);
    else if (turned) snprintf(why, size, "This is the right gradient, transposed.");
    else snprintf(why, size, "The size is right, the numbers are not.");
}

/* A hint: what the mistake asks, or the first mistake of this op. */
static void say_question(Look *l, Judged *j) {
    const char *asks = j->mistake ? j->mistake->asks : NULL;
    for (int m = 0; m < num_mistake_rows && !asks; m++)
        if (mistake_of(l, m)) asks = mistake_rows[m].asks;
    if (!asks && l->num_uses > 1)
        asks = "Into which lines does {own} go? What does each of them give back?";
    if (!asks) asks = "Which numbers does a number of {own} change, and by how much?";
    say(l, asks, j->question);
}

static void say_wrong(Look *l, Judged *j) {
    char *why = j->why;
    const size_t size = sizeof j->why;
    unsigned set = 1;
    if (tensor_error()) return;
    for (int m = 0; m < num_mistake_rows && !j->mistake; m++)
        if (!j->is_no_mistake[m]) j->mistake = &mistake_rows[m];
    while (set < 1u << l->num_uses && (j->no_parts >> set & 1)) set++;
    if (j->mistake) say(l, j->mistake->computes, j->computes);
    if (!j->is_wrong_here)
        tensor_snprintf(why, size, "This is right for these numbers, but not for all. %s%s",
                        j->mistake ? "This is " : "", j->computes);
    else if (j->mistake) tensor_snprintf(why, size, "This is %s", j->computes);
    else if (set < 1u << l->num_uses) say_parts(l, set, why, size);
    else if (j->is_not_linear) say_not_linear(l, j, why);
    else say_likeness(l, j->factor, j->is_turned, why, size);
    if (j->mistake || !j->is_not_linear) say_question(l, j);
}

/* A right formula in the lesson's names, which the reader could have written. */
static bool try_shown(Look *l, const char *text, char shown[JUDGE_TEXT]) {
    snprintf(shown, JUDGE_TEXT, "%.*s", JUDGE_TEXT - 1, text);
    const bool right = rule_parse(&tried, shown, &of_lesson) && compute_own(l, &tried, l->other) &&
                       same(l, l->other, l->right, 1);
    if (!right) *shown = '\0';
    return right;
}

static void say_formula(Look *l, int u, const char *formula, char said[JUDGE_TEXT]) {
    planted_say_formula(l->planting, &l->uses[u], l->is_whole ? l->x : NULL, formula, said);
}

/* One of a use: where forward multiplies by 1 / sqrt(d), backward divides by sqrt(d). */
static void say_right(Look *l, int u, char said[JUDGE_TEXT]) {
    TapeLine line;
    char number[80];
    const char *formula = right_formula(l, u);
    say_formula(l, u, formula ? formula : "", said);
    if (!tape_line(l->uses[u].line, &line) || strcmp(line.op, "scale") != 0) return;
    say_formula(l, u, "dy / sqrt(d)", said);
    if (try_shown(l, said, (char[JUDGE_TEXT]){""})) return;
    snprintf(number, sizeof number, "%.6g * dy", line.number);
    say_formula(l, u, number, said);
    if (!try_shown(l, said, (char[JUDGE_TEXT]){""})) say_formula(l, u, "s * dy", said);
}

/* Are its numbers more than those of x? A line sums them, but a reader of the formula would not. */
static bool gives_more(Look *l, RuleFormula *f) {
    if (!tape_begin_no_grad()) return true;
    const Tensor *value = rule_evaluate(f, &l->own_values);
    const bool more = !value || tensor_numel(value) > l->n;
    tape_end();
    return more;
}

/* What was broadcast forward is summed backward. */
static void say_shown(Look *l, char shown[JUDGE_TEXT]) {
    static const char *const sums[] = {"%s", "sum(%s)", "sum0(%s)", "sum0(sum(%s))",
                                       "sum(sum(%s)')"};
    char all[MOST_USES * JUDGE_TEXT] = "", said[JUDGE_TEXT], text[sizeof all + 40];
    for (int u = 0; u < l->num_uses; u++) {
        say_right(l, u, said);
        put_text(all, sizeof all, "%s%s", u ? " + " : "", said);
    }
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const char *at = strchr(sums[i], '%');
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - sums[i]), sums[i], all, at + 2);
        if (try_shown(l, text, shown) && !gives_more(l, &tried)) return;
    }
    try_shown(l, all, shown); /* the language cannot sum a dimension before the last two */
}

/* ---- a whole gradient ------------------------------------------------------------------------ */

static void refuse(Judged *j, int column, const char *why) {
    j->is_refused = true;
    j->column = column;
    snprintf(j->why, sizeof j->why, "%s", why);
}

/* Reads the formula and its numbers; false if it is refused, or with an error. */
static bool read_whole(Look *l, Judged *j, const char *formula) {
    if (!planted_scope(l->planting, l->uses[0].line, l->x, &l->kept[0], &of_lesson)) return false;
    const bool reads = rule_parse(l->formula, formula, &of_lesson);
    if (reads && compute_own(l, l->formula, l->own)) return compute_right(l);
    if (tensor_error()) return false;
    if (reads && l->num_uses == 1) j->mistake = judge_squares(&l->uses[0], formula, &of_lesson);
    refuse(j, l->formula->column, l->formula->complaint);
    judge_name_mistake(l->planting, &l->uses[0], j->mistake, j->why, sizeof j->why);
    if (reads) say_question(l, j);
    return false;
}

void judge_whole(Judged *j, const Planting *planting, const char *name, const char *formula,
                 bool here, bool last) {
    Look l = {.planting = planting, .is_whole = true, .x = planted_tensor_of(planting, name)};
    if (j->is_refused) return;
    if (l.x && l.x->grad) find_uses(&l);
    if (!l.x || !l.x->grad)
        refuse(j, 0, "no gradient of this lesson has this name; one is dY, for example");
    else if (l.num_uses == 0) refuse(j, 0, "backward begins with this gradient");
    else if (begin(&l) && read_whole(&l, j, formula)) {
        compare(&l, j, here);
        if (last && j->is_wrong) say_wrong(&l, j);
        else if (last) say_shown(&l, j->shown);
    }
    end(&l);
}

/* ---- a rule of one line ---------------------------------------------------------------------- */

/* Looks at input k of line i, which may be turned, and at formula f, or NULL. */
static bool begin_line(Look *l, int i, int k, bool turns, RuleFormula *f) {
    TapeLine line;
    if (!tape_line(i, &line)) return false;
    l->x = line.in[k];
    l->moves = planted_moves(line.op);
    l->formula = f;
    add_use(l, (PlantedUse){i, k, NULL}, turns);
    if (!begin(l)) return false;
    if (!f) l->formula->n = 0;
    return true;
}

/* Puts random numbers in place of the result and of the inputs that are floats. */
static bool draw_values(Look *l) {
    uint64_t state = 29;
    l->of[0].out = tape_own(planted_draw_like(l->of[0].out, &state, 1));
    for (int k = 0; k < PLANTED_INPUTS; k++) {
        Tensor **x = &l->in[0][k];
        if (*x && is_float(*x)) *x = tape_own(planted_draw_like(*x, &state, 1));
        l->own_in[k] = *x;
    }
    l->own_values.out = l->of[0].out;
    return !tensor_error();
}

/* A mistake can compute the right gradient: if w is symmetric, dy w' is dy w. With other numbers,
 * for which the line's result need not be true, it does not compute what the right formula does. */
static void look_behind(Look *l, Judged *j) {
    const char *right = right_formula(l, 0);
    if (!right || l->uses[0].line != l->at[0].line || !draw_values(l)) return;
    if (!compute_own(l, l->formula, l->own) || !compute_use(l, 0, right, l->right)) return;
    compare(l, j, false);
    for (int m = 0; m < num_mistake_rows && j->is_wrong; m++)
        if (!j->is_no_mistake[m]) return;
    j->is_wrong = false; /* it may be right for all numbers that a result can be */
}

/* Does it double when what arrives doubles? */
static void double_dy(Look *l, Judged *j) {
    if (!draw_gradients(l, FIRST_DRAW + DRAWS - 1, 2) || !compute_own(l, l->formula, l->other))
        return;
    j->is_not_linear = !same(l, l->other, l->own, 2);
    j->ignores_dy = same(l, l->other, l->own, 1);
}

static void judge_line(Look *l, Judged *j) {
    for (int d = 0; d < DRAWS; d++) {
        if (!draw_gradients(l, FIRST_DRAW + d, 1) || !compute_right(l)) return;
        if (!compute_own(l, l->formula, l->own)) return;
        compare(l, j, true);
    }
    if (j->is_wrong) double_dy(l, j);
    else look_behind(l, j);
    if (j->is_wrong) say_wrong(l, j);
}

static void judge_rule(const Planting *p, int i, PlantedRule *rule) {
    Look l = {.planting = p};
    Judged j = {.mistake = NULL};
    RuleFormula *f = &rule->formula;
    if (!tape_begin_no_grad()) return;
    if (begin_line(&l, i, rule->input, planted_reads_others(f), f)) judge_line(&l, &j);
    end(&l);
    tape_end();
    *f->complaint = '\0';
    rule->is_right = !j.is_wrong_here;
    rule->mistake = j.is_wrong_here ? j.mistake : NULL;
    snprintf(rule->computes, sizeof rule->computes, "%s", j.is_wrong_here ? j.computes : "");
    snprintf(rule->why, sizeof rule->why, "%s", j.why);
    snprintf(rule->question, sizeof rule->question, "%s", j.question);
}

bool rule_judge(Planting *p) {
    bool done = planted_hook_all(p, false);
    for (PlantedLine *line = p->first; line && done; line = line->next)
        for (int k = 0; k < PLANTED_INPUTS && !tensor_error(); k++)
            if (line->rules[k]) judge_rule(p, line->number, line->rules[k]);
    return planted_hook_all(p, true) && done && !tensor_error();
}

/* ---- what is known of a line ----------------------------------------------------------------- */

/* Is it a formula of this line, and not right? Where the right gradient is NaN, nobody knows. */
static bool is_wrong(Look *l, const char *formula) {
    bool finite = true;
    for (int64_t i = 0; i < l->n; i++) finite = finite && isfinite(l->right[i]);
    return formula && compute_use(l, 0, formula, l->other) &&
           !(finite && same(l, l->right, l->other, 1));
}

/* Could a reader have written the formula that was tried? Not where it counts rows as a sum of
 * ones, dy * 0 + 1, and not with s, for which the lesson has a name of its own, or a number. */
static bool is_written(void) {
    for (int i = 0; i < tried.n; i++) {
        const RuleNode *n = &tried.nodes[i];
        if (n->sign == '#' && n->number == 0 && tried.n > 1) return false;
        if (n->sign == 'n' && strcmp(n->value.name, "s") == 0) return false;
    }
    return true;
}

/* Without its hook the line has its own backward. */
bool judge_place(const Planting *p, int i, int k, bool turns, JudgePlace *place) {
    Look l = {.planting = p};
    PlantedLine *line = planted_line(p, i);
    *place = (JudgePlace){.formula = NULL};
    if (line && !tape_register_hook(i, NULL, NULL)) return false;
    const bool open = tape_begin_no_grad();
    if (open && begin_line(&l, i, k, turns, NULL) && draw_gradients(&l, FIRST_DRAW, 1) &&
        compute_right(&l) && planted_scope(p, i, NULL, &l.kept[0], &of_lesson)) {
        place->use = l.uses[0];
        place->formula = right_formula(&l, 0);
        if (place->formula) say_shown(&l, place->shown);
        for (int m = 0; m < num_mistake_rows; m++) {
            place->is_wrong[m] = is_wrong(&l, mistake_of(&l, m));
            place->is_written[m] = place->is_wrong[m] && is_written();
        }
    }
    end(&l);
    if (open) tape_end();
    return (!line || planted_hook_on(line)) && !tensor_error();
}
