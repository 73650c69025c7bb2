/* rule_squares.c - a mistake whose sizes do not fit: dY V in place of dY V'. Where all tables are
 * square it can be computed, and compared. See rule_judge.h. */
#include "rule_judge.h"

#include "../page/recording.h"

#include <math.h>

/* Square tables in place of the tensors of a line. */
enum { SQUARE = 3, CELLS = SQUARE * SQUARE, MOST_SQUARES = 64, SQUARE_DRAWS = 2 };
typedef struct {
    uint64_t state;
    const Tensor *like;
    RuleValues values;
    Tensor *in[PLANTED_INPUTS];
    const Tensor *keys[MOST_SQUARES];
    bool of_gradient[MOST_SQUARES]; /* the square is in place of the gradient of keys[i] */
    Tensor *squares[MOST_SQUARES];
    int n;
} Squares;

/* K for K', which is turned. */
static const Tensor *twin_of(const Tensor *x, bool *turned) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        if (line.out != x || !data_turns(&line)) continue;
        *turned = true;
        return line.in[0];
    }
    return x;
}

/* The same for the same tensor, or for its gradient. */
static Tensor *square_of(Squares *s, const Tensor *x, bool of_gradient) {
    bool turned = false;
    const Tensor *key = twin_of(x, &turned);
    int i = 0;
    while (i < s->n && (s->keys[i] != key || s->of_gradient[i] != of_gradient)) i++;
    if (i == MOST_SQUARES) return NULL;
    if (i == s->n) {
        s->keys[i] = key;
        s->of_gradient[i] = of_gradient;
        s->squares[s->n++] = tape_own(planted_draw_like(s->like, &s->state, 1));
    }
    return turned && s->squares[i] ? ag_transpose(s->squares[i], 0, 1) : s->squares[i];
}

/* The numbers of a formula; false if it is none of squares. */
static bool by_squares(Squares *s, RuleFormula *f, double numbers[CELLS]) {
    for (int i = 0; i < f->n; i++) {
        RuleName *name = &f->nodes[i].value;
        const bool of_gradient = name->meaning == NAMES_GRADIENT;
        if (f->nodes[i].sign != 'n' || (name->meaning != NAMES_TENSOR && !of_gradient)) continue;
        name->tensor = square_of(s, name->tensor, of_gradient);
        name->meaning = NAMES_TENSOR;
        if (!name->tensor) return false;
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
    for (int k = 0; k < PLANTED_INPUTS; k++) s->in[k] = in[k] ? square_of(s, in[k], false) : NULL;
    s->values = (RuleValues){
        .dy = square_of(s, line.out, true), .out = square_of(s, line.out, false), .in = s->in};
    return !tensor_error();
}

/* Do two formulas compute the same for squares? */
static bool agree(const PlantedUse *use, const RuleScope *scope, const char *formula,
                  const RuleScope *of_op, const char *mistake) {
    static RuleFormula f, g;
    if (!tape_begin_no_grad()) return false;
    bool equal = true;
    for (uint64_t draw = 0; draw < SQUARE_DRAWS && equal; draw++) {
        Squares s;
        double a[CELLS], b[CELLS];
        equal = begin_squares(&s, use, 31 + draw) && rule_parse(&f, formula, scope) &&
                rule_parse(&g, mistake, of_op) && by_squares(&s, &f, a) && by_squares(&s, &g, b) &&
                planted_same(a, b, 1, CELLS, 1e-9);
    }
    tape_end();
    return equal;
}

const MistakeRow *judge_squares(const PlantedUse *use, const char *formula,
                                const RuleScope *scope) {
    static RuleScope of_op;
    const MistakeRow *found = NULL;
    Tensor *kept = NULL;
    if (!planted_scope_of_op(use, &kept, &of_op)) return NULL;
    for (int i = 0; i < num_mistake_rows && !found && !tensor_error(); i++) {
        const MistakeRow *m = &mistake_rows[i];
        const char *mistake = m->id ? planted_formula_of(m, use) : NULL;
        if (mistake && agree(use, scope, formula, &of_op, mistake)) found = m;
    }
    tensor_release(kept);
    return found;
}
