/* rule_judge.c - is a planted formula right, and which mistake is it if not? See rule_plant.h.
 *
 * A backward is linear in dy, and two linear functions that agree on a random dy agree on all, but
 * for a probability of 0. So the formula and the line's own backward are compared on two random dy,
 * and the formulas of the known mistakes are, too. */
#include "rule_planted.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 2 };

/* What is compared: gradients of in[k] on line i. */
typedef struct {
    const Planting *planting;
    PlantedLine *line;
    PlantedRule *rule;
    PlantedUse use;
    Tensor *in[PLANTED_INPUTS];
    Tensor *out;
    Tensor *arrives; /* the gradient of out, after backward; or NULL */
    const Tensor *x;
    int64_t n; /* numbers of a gradient */
    double tolerance;
    Tensor *dy[DRAWS + 1]; /* the last one is twice the first */
    double *right[DRAWS], *own[DRAWS + 1], *other;
    RuleScope *scope; /* the names in the formulas of mistakes */
    RuleFormula *tried;
} Trial;

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

bool rule_draw(Tensor *x, uint64_t *state) {
    if (x->dtype != F32 && x->dtype != F64) return true;
    Tensor *drawn = planted_draw_like(x, state, 1);
    const bool done = drawn && tensor_copy_from(x, drawn);
    tensor_release(drawn);
    return done;
}

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

static bool by_formula(const Trial *t, RuleFormula *f, Tensor *dy, double *numbers) {
    const RuleValues values = {dy, t->out, t->in};
    return planted_compute(f, &values, t->x, t->line->moves, numbers);
}

/* The gradient by the line's own backward. */
static bool by_line(const Trial *t, const Tensor *dy, double *numbers) {
    Tensor *dx[PLANTED_INPUTS] = {NULL};
    const bool done = tape_vjp(t->line->number, dy, dx);
    const Tensor *mine = done ? dx[t->rule->input] : NULL;
    const bool read = mine && tensor_to_doubles(mine, numbers);
    for (int k = 0; k < PLANTED_INPUTS; k++) tensor_release(dx[k]);
    return read;
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

static bool same(const Trial *t, const double *a, const double *b, double factor) {
    return planted_same(a, b, factor, t->n, t->tolerance);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

const char *planted_formula_of(const MistakeRow *m, const PlantedUse *use) {
    return use->k < 3 && mistake_is_of(m, planted_op(use)) ? m->formula[use->k] : NULL;
}

/* Does the formula compute these numbers? */
static bool computes(Trial *t, const char *formula, double *const numbers[DRAWS]) {
    bool equal = rule_parse(t->tried, formula, t->scope);
    for (int d = 0; d < DRAWS && equal; d++)
        equal = by_formula(t, t->tried, t->dy[d], t->other) && same(t, numbers[d], t->other, 1);
    return equal;
}

/* The first mistake that computes these numbers; NULL if there is none. */
static const MistakeRow *find_mistake(Trial *t, double *const numbers[DRAWS]) {
    for (int i = 0; i < num_mistake_rows && !tensor_error(); i++) {
        const MistakeRow *m = &mistake_rows[i];
        const char *formula = m->id ? planted_formula_of(m, &t->use) : NULL;
        if (formula && computes(t, formula, numbers)) return m;
    }
    return NULL;
}

/* Is it a formula of this line, and not right? Where the right gradient is NaN, nobody knows. */
static bool is_wrong(Trial *t, const char *formula) {
    bool finite = true;
    for (int64_t i = 0; i < t->n; i++) finite = finite && isfinite(t->right[0][i]);
    return rule_parse(t->tried, formula, t->scope) && by_formula(t, t->tried, t->dy[0], t->other) &&
           !(finite && same(t, t->right[0], t->other, 1));
}

/* A text with the lesson's names. */
static void say(const Trial *t, const char *text, char said[320]) {
    planted_say(t->planting, &t->use, &t->rule->kept, text, said);
}

void planted_say_computes(const Planting *planting, const PlantedUse *use, Tensor **kept,
                          const MistakeRow *m, char said[320]) {
    char text[320];
    snprintf(text, sizeof text, "It is %s", m->computes);
    planted_say(planting, use, kept, text, said);
}

void planted_say_by_chance(const char *said, char *why, size_t size) {
    tensor_snprintf(why, size, "It is right for these numbers, but not for all. %s", said);
}

/* ---- mistakes whose sizes do not fit ----------------------------------------------------------
 */

/* Square tables in place of the tensors of a line. */
enum { SQUARE = 3, CELLS = SQUARE * SQUARE, MOST_SQUARES = 64 };
typedef struct {
    uint64_t state;
    const Tensor *like;
    RuleValues values;
    Tensor *in[PLANTED_INPUTS];
    const Tensor *keys[MOST_SQUARES];
    Tensor *squares[MOST_SQUARES];
    int n;
} Squares;

/* K for K', which is turned, and dK for dK'. */
static const Tensor *twin_of(const Tensor *x, bool *turned) {
    TapeLine line;
    for (int i = 0; x && tape_line(i, &line); i++) {
        if ((line.out != x && line.out->grad != x) || !planted_turns(&line)) continue;
        *turned = true;
        return line.out == x ? line.in[0] : line.in[0]->grad;
    }
    return x;
}

/* The same for the same tensor. NULL is the gradient that arrives, before there is one. */
static Tensor *square_of(Squares *s, const Tensor *x) {
    bool turned = false;
    const Tensor *key = twin_of(x, &turned);
    int i = 0;
    while (i < s->n && s->keys[i] != key) i++;
    if (i == MOST_SQUARES) return NULL;
    if (i == s->n) {
        s->keys[i] = key;
        s->squares[s->n++] = tape_own(planted_draw_like(s->like, &s->state, 1));
    }
    return turned && s->squares[i] ? ag_transpose(s->squares[i], 0, 1) : s->squares[i];
}

/* The numbers of a formula; false if it is none of squares. */
static bool by_squares(Squares *s, RuleFormula *f, double numbers[CELLS]) {
    for (int i = 0; i < f->n; i++)
        if (f->nodes[i].sign == 'n' && f->nodes[i].value.meaning == NAMES_TENSOR) {
            f->nodes[i].value.tensor = square_of(s, f->nodes[i].value.tensor);
            if (!f->nodes[i].value.tensor) return false;
        }
    bool done = planted_compute(f, &s->values, s->like, false, numbers);
    for (int i = 0; i < CELLS && done; i++) done = isfinite(numbers[i]);
    return done;
}

static bool begin_squares(Squares *s, const PlantedUse *use, uint64_t state) {
    const double zeros[CELLS] = {0};
    Tensor *in[PLANTED_INPUTS];
    TapeLine line;
    *s = (Squares){.state = state};
    if (!tape_line(use->line, &line)) return false;
    planted_inputs(&line, in);
    s->like = tape_own(tensor_from_doubles(SHAPE(SQUARE, SQUARE), zeros));
    if (!s->like) return false;
    for (int k = 0; k < PLANTED_INPUTS; k++) s->in[k] = in[k] ? square_of(s, in[k]) : NULL;
    s->values = (RuleValues){square_of(s, line.out->grad), square_of(s, line.out), s->in};
    return !tensor_error();
}

/* Do two formulas compute the same for squares? */
static bool agree(const PlantedUse *use, RuleFormula *f, const RuleScope *scope, RuleFormula *g,
                  const RuleScope *scope_of_g, const char *text, const char *text_of_g) {
    if (!tape_begin_no_grad()) return false;
    bool equal = true;
    for (uint64_t draw = 0; draw < DRAWS && equal; draw++) {
        Squares s;
        double a[CELLS], b[CELLS];
        equal = begin_squares(&s, use, 31 + draw) && rule_parse(f, text, scope) &&
                rule_parse(g, text_of_g, scope_of_g) && by_squares(&s, f, a) &&
                by_squares(&s, g, b) && planted_same(a, b, 1, CELLS, 1e-9);
    }
    tape_end();
    return equal;
}

const MistakeRow *planted_mistake_of_squares(const PlantedUse *use, const char *formula,
                                             const RuleScope *scope) {
    const MistakeRow *found = NULL;
    Tensor *kept = NULL;
    RuleFormula *formulas = malloc(2 * sizeof *formulas);
    RuleScope *of_op = malloc(sizeof *of_op);
    if (!formulas || !of_op) tensor_fail("out of memory for a rule");
    else if (use->k < 3 && planted_scope_of_op(use, &kept, of_op))
        for (int i = 0; i < num_mistake_rows && !found && !tensor_error(); i++) {
            const MistakeRow *m = &mistake_rows[i];
            if (m->id && planted_formula_of(m, use) &&
                agree(use, &formulas[0], scope, &formulas[1], of_op, formula, m->formula[use->k]))
                found = m;
        }
    tensor_release(kept);
    free(formulas);
    free(of_op);
    return found;
}

/* ---- what is right for some numbers ---------------------------------------------------------- */

/* The rule of the line as a formula, which computes its gradients; NULL if none is known. */
static const char *right_formula(Trial *t) {
    for (int i = 0; i < num_mistake_rows && !tensor_error(); i++) {
        const MistakeRow *m = &mistake_rows[i];
        const char *formula = m->id ? NULL : planted_formula_of(m, &t->use);
        if (formula && computes(t, formula, t->right)) return formula;
    }
    return NULL;
}

/* Puts random numbers in place of the result and of the inputs that are floats. */
static bool draw_values(Trial *t) {
    uint64_t state = 29;
    t->out = tape_own(planted_draw_like(t->out, &state, 1));
    for (int k = 0; k < PLANTED_INPUTS; k++) {
        const Tensor *x = t->in[k];
        if (x && (x->dtype == F32 || x->dtype == F64))
            t->in[k] = tape_own(planted_draw_like(x, &state, 1));
    }
    return !tensor_error();
}

/* A mistake can compute the right gradient: if w is symmetric, dy w' is dy w. With other numbers,
 * for which the line's result need not be true, it does not compute what the right formula does. */
static void look_behind(Trial *t) {
    char said[320];
    const char *right = right_formula(t);
    if (!right || !tape_begin_no_grad()) return;
    bool done = draw_values(t);
    for (int d = 0; d < DRAWS && done; d++)
        done = by_formula(t, &t->rule->formula, t->dy[d], t->own[d]);
    const MistakeRow *m = done ? find_mistake(t, t->own) : NULL;
    if (m && computes(t, right, t->own)) m = NULL;
    tape_end();
    *t->rule->formula.complaint = '\0';
    if (!m) return;
    planted_say_computes(t->planting, &t->use, &t->rule->kept, m, said);
    planted_say_by_chance(said, t->rule->why, sizeof t->rule->why);
}

/* ---- what else can be said ------------------------------------------------------------------- */

/* Is it the right one with its last two dimensions swapped? */
static bool is_transposed(const double *own, const double *right, const Tensor *x, double *other,
                          double tolerance) {
    const Shape s = x->shape;
    const int64_t n = tensor_numel(x), m = s.ndim >= 2 ? s.dim[s.ndim - 1] : 0;
    if (m < 2 || s.dim[s.ndim - 2] != m) return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t matrix = i / (m * m), row = i / m % m, column = i % m;
        other[i] = right[(matrix * m + column) * m + row];
    }
    return planted_same(own, other, 1, n, tolerance);
}

void planted_liken(PlantedLikeness *l, const double *own, const double *right, const Tensor *x,
                   double *other, double tolerance) {
    double product = 0, square = 0;
    const int64_t n = tensor_numel(x);
    for (int64_t i = 0; i < n; i++) {
        product += own[i] * right[i];
        square += right[i] * right[i];
    }
    const bool transposed = is_transposed(own, right, x, other, tolerance);
    if (l->looks == 0) l->factor = product / square;
    if (!planted_same(own, right, l->factor, n, tolerance)) l->factor = (double)NAN;
    l->is_transposed = transposed && (l->looks == 0 || l->is_transposed);
    l->looks++;
}

bool planted_say_likeness(const PlantedLikeness *l, char *why, size_t size) {
    const double c = l->factor;
    if (c == 0) snprintf(why, size, "It is 0 everywhere.");
    else if (fabs(c + 1) < 1e-9)
        snprintf(why, size, "It is the right gradient with the other sign.");
    else if (fabs(c - 1) < 1e-3)
        snprintf(why, size,
                 "It is right but for a rounded number: write sqrt(d), or the fraction.");
    else if (isfinite(c)) snprintf(why, size, "It is the right gradient times %.6g.", c);
    else if (l->is_transposed) snprintf(why, size, "It is the right gradient, transposed.");
    else return false;
    return true;
}

/* Is the rule right for the gradient that arrives here? *ones: is every number of that one 1? */
static bool is_right_here(const Trial *t, bool *ones) {
    const Tensor *dy = t->arrives;
    const int64_t n = dy ? tensor_numel(dy) : 0;
    double *numbers = malloc((size_t)(n + 2 * t->n + 1) * sizeof *numbers);
    if (!numbers) return tensor_fail("out of memory for a rule");
    double *own = numbers + n;
    double *right = own + t->n;
    *ones = dy && tensor_to_doubles(dy, numbers);
    const bool fits = *ones && by_formula(t, &t->rule->formula, t->arrives, own) &&
                      by_line(t, t->arrives, right) && same(t, own, right, 1);
    for (int64_t i = 0; i < n && *ones; i++) *ones = numbers[i] == 1;
    free(numbers);
    return fits;
}

/* Of a rule that is not linear in dy. */
static void say_not_linear(Trial *t) {
    bool ones = false;
    const bool is_right = is_right_here(t, &ones);
    if (!is_right)
        say(t, "It does not double when {dy} doubles, as a gradient does.", t->rule->why);
    else if (!ones)
        say(t,
            "All numbers are right here, for this loss. A rule of one line has to work for any "
            "loss: it takes what arrives, {dy}, and doubles when {dy} doubles.",
            t->rule->why);
    else if (same(t, t->own[DRAWS], t->own[0], 1))
        say(t,
            "All numbers are right here, since what arrives, {dy}, is 1 here. For any other number "
            "it is wrong: the rule forgets to multiply by {dy}.",
            t->rule->why);
    else
        say(t,
            "All numbers are right here, since what arrives, {dy}, is 1 here. For any other number "
            "it is wrong: it does not double when {dy} doubles.",
            t->rule->why);
}

static void say_why(Trial *t) {
    PlantedLikeness like = {0};
    PlantedRule *rule = t->rule;
    for (int d = 0; d < DRAWS; d++)
        planted_liken(&like, t->own[d], t->right[d], t->x, t->other, t->tolerance);
    if (rule->mistake) {
        planted_say_computes(t->planting, &t->use, &rule->kept, rule->mistake, rule->why);
        say(t, rule->mistake->asks, rule->question);
    } else if (!same(t, t->own[DRAWS], t->own[0], 2)) say_not_linear(t);
    else planted_say_likeness(&like, rule->why, sizeof rule->why);
}

/* ---- judging --------------------------------------------------------------------------------- */

static void begin(Trial *t, const TapeLine *shown) {
    planted_inputs(shown, t->in);
    t->use = (PlantedUse){.line = t->line->number, .k = t->rule->input};
    t->out = shown->out;
    t->arrives = shown->out->grad;
    t->x = t->in[t->rule->input];
}

static bool prepare(Trial *t) {
    const int64_t n = tensor_numel(t->x);
    uint64_t state = 17;
    double *memory = malloc((size_t)(n * (2 * DRAWS + 2) + 1) * sizeof *memory);
    if (!memory) return tensor_fail("out of memory for a rule");
    t->n = n;
    t->tolerance = t->x->dtype == F32 || t->out->dtype == F32 ? 2e-5 : 1e-9;
    t->other = memory;
    for (int d = 0; d < DRAWS; d++) t->right[d] = memory + (1 + d) * n;
    for (int d = 0; d <= DRAWS; d++) t->own[d] = memory + (1 + DRAWS + d) * n;
    for (int d = 0; d < DRAWS; d++) t->dy[d] = planted_draw_like(t->out, &state, 1);
    state = 17;
    t->dy[DRAWS] = planted_draw_like(t->out, &state, 2);
    t->scope = malloc(sizeof *t->scope);
    t->tried = malloc(sizeof *t->tried);
    if (!t->scope || !t->tried) return tensor_fail("out of memory for a rule");
    return planted_scope_of_op(&t->use, &t->rule->kept, t->scope) && !tensor_error();
}

static void end(Trial *t) {
    for (int d = 0; d <= DRAWS; d++) tensor_release(t->dy[d]);
    free(t->other);
    free(t->scope);
    free(t->tried);
}

static void judge(Trial *t) {
    RuleFormula *f = &t->rule->formula;
    bool done = prepare(t);
    for (int d = 0; d < DRAWS && done; d++)
        done = by_line(t, t->dy[d], t->right[d]) && by_formula(t, f, t->dy[d], t->own[d]);
    done = done && by_formula(t, f, t->dy[DRAWS], t->own[DRAWS]);
    t->rule->is_right = done;
    for (int d = 0; d < DRAWS && done; d++) t->rule->is_right &= same(t, t->own[d], t->right[d], 1);
    if (done && !t->rule->is_right) t->rule->mistake = find_mistake(t, t->own);
    if (done && !t->rule->is_right) say_why(t);
    else if (done) look_behind(t);
    end(t);
}

/* Without its hook the line has its own backward. */
static bool judge_line(const Planting *p, PlantedLine *line) {
    if (!tape_register_hook(line->number, NULL, NULL)) return false;
    for (int k = 0; k < PLANTED_INPUTS && !tensor_error(); k++) {
        TapeLine shown;
        Trial t = {.planting = p, .line = line, .rule = line->rules[k]};
        if (!t.rule || !tape_line(line->number, &shown)) continue;
        begin(&t, &shown);
        t.rule->mistake = NULL;
        *t.rule->why = '\0';
        *t.rule->question = '\0';
        judge(&t);
    }
    return planted_hook_on(line);
}

bool rule_judge(Planting *p) {
    for (PlantedLine *line = p->first; line; line = line->next)
        if (!judge_line(p, line)) return false;
    return true;
}

/* Sees what is asked of a trial of input k of line i, which has no hook. */
static const char *try_line(int i, int k, const char *(*ask)(Trial *, void *), void *of) {
    TapeLine shown;
    const char *found = NULL;
    PlantedRule *rule = calloc(1, sizeof *rule);
    if (!rule) return tensor_fail("out of memory for a rule");
    rule->input = k;
    PlantedLine line = {.number = i};
    Trial t = {.line = &line, .rule = rule};
    bool done = tape_line(i, &shown);
    if (done) begin(&t, &shown);
    line.moves = done && planted_moves(shown.op);
    done = done && prepare(&t);
    for (int d = 0; d < DRAWS && done; d++) done = by_line(&t, t.dy[d], t.right[d]);
    if (done) found = ask(&t, of);
    end(&t);
    tensor_release(rule->kept);
    free(rule);
    return found;
}

/* of: a bool for each row. */
static const char *find_known(Trial *t, void *of) {
    bool *wrong = of;
    for (int i = 0; i < num_mistake_rows; i++) {
        const MistakeRow *m = &mistake_rows[i];
        const char *formula = m->id ? planted_formula_of(m, &t->use) : NULL;
        wrong[i] = formula && is_wrong(t, formula);
    }
    return right_formula(t);
}

const char *planted_known(int i, int k, bool *wrong) { return try_line(i, k, find_known, wrong); }

static const char *wrong_formula(Trial *t, void *of) { return is_wrong(t, of) ? of : NULL; }

bool planted_is_wrong(const Planting *p, int i, int k, const char *formula) {
    PlantedLine *line = planted_line(p, i);
    char text[RULE_TEXT + 1];
    snprintf(text, sizeof text, "%s", formula);
    if (line && !tape_register_hook(i, NULL, NULL)) return false;
    const bool wrong = try_line(i, k, wrong_formula, text) != NULL;
    return (!line || planted_hook_on(line)) && wrong;
}
