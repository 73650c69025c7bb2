/* rule_card.c - the lines of a card are judged: see rule_card.h.
 *
 * A look compares the value of a formula with the gradient on the tape, and with what the known
 * mistakes compute from the same numbers. What agrees in every look is said at the end. */
#include "rule_card.h"

#include "../page/json.h"
#include "rule_planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_USES = 4 };

/* A line on an open tape. */
typedef struct {
    const Planting *planting;
    CardLine *line;
    Tensor *x; /* whose gradient is written */
    int num_uses;
    PlantedUse uses[MOST_USES];
    RuleValues values[MOST_USES];
    Tensor *in[MOST_USES][PLANTED_INPUTS];
    Tensor *kept;
    int64_t n;
    double tolerance;
    double *own, *right, *other, *part[MOST_USES];
    RuleScope *scope, *op;
    RuleFormula *formula, *tried;
} Look;

static bool refuse(CardLine *line, int column, const char *why) {
    line->is_refused = true;
    line->column = column;
    snprintf(line->why, sizeof line->why, "%.*s", (int)sizeof line->why - 1, why);
    return false;
}

/* ---- where the gradient comes from ----------------------------------------------------------- */

static bool is_product(const TapeLine *line) {
    return strcmp(line->op, "matmul") == 0 || strcmp(line->op, "bmm") == 0;
}

/* Where x' is the second factor of a product: x goes into a b'. */
static bool find_turned(Tensor *x, const TapeLine *turning, PlantedUse *use) {
    TapeLine line;
    if (!planted_turns(turning)) return false;
    for (int i = 0; tape_line(i, &line); i++)
        if (is_product(&line) && line.in[1] == turning->out) {
            *use = (PlantedUse){i, 1, x};
            return true;
        }
    return false;
}

static void find_uses(Look *l) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in && l->num_uses < MOST_USES; k++) {
            PlantedUse use = {i, k, NULL};
            if (line.in[k] != l->x || !planted_has_gradient(&line, k)) continue;
            find_turned(l->x, &line, &use);
            l->uses[l->num_uses++] = use;
        }
    for (int u = 0; u < l->num_uses; u++) {
        tape_line(l->uses[u].line, &line);
        planted_inputs(&line, l->in[u]);
        l->values[u] = (RuleValues){line.out->grad, line.out, l->in[u]};
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The value of a formula of the card, which has to have the size of the gradient. */
static bool compute_whole(Look *l, RuleFormula *f, double *numbers) {
    if (!tape_begin_no_grad()) return false;
    Tensor *value = rule_fit_whole(f, rule_evaluate(f, &l->values[0]), l->x);
    const bool done = value && tensor_to_doubles(value, numbers);
    tape_end();
    return done;
}

/* A formula in the names of a use's op. */
static bool compute_use(Look *l, int u, const char *formula, double *numbers) {
    return planted_scope_of_op(&l->uses[u], &l->kept, l->op) &&
           rule_parse(l->tried, formula, l->op) &&
           planted_compute(l->tried, &l->values[u], l->x, false, numbers);
}

static bool same(const Look *l, const double *a, const double *b, double factor) {
    return planted_same(a, b, factor, l->n, l->tolerance);
}

/* The first right row of an op. */
static const MistakeRow *right_row(const PlantedUse *use) {
    for (int i = 0; i < num_mistake_rows; i++)
        if (!mistake_rows[i].id && planted_formula_of(&mistake_rows[i], use))
            return &mistake_rows[i];
    return NULL;
}

/* ---- what agrees ----------------------------------------------------------------------------- */

static void compare_mistakes(Look *l) {
    for (int i = 0; i < num_mistake_rows && !tensor_error(); i++) {
        const MistakeRow *m = &mistake_rows[i];
        const char *formula = m->id && l->num_uses == 1 ? planted_formula_of(m, &l->uses[0]) : NULL;
        bool *agrees = &l->line->is_mistake[i];
        *agrees = *agrees && formula && compute_use(l, 0, formula, l->other) &&
                  same(l, l->own, l->other, 1);
    }
}

/* The sums of some of the parts that the uses give. */
static void compare_parts(Look *l) {
    bool known = l->num_uses > 1;
    for (int u = 0; u < l->num_uses && known; u++) {
        const MistakeRow *m = right_row(&l->uses[u]);
        known = m && compute_use(l, u, planted_formula_of(m, &l->uses[u]), l->part[u]);
    }
    for (unsigned set = 1; set < 1u << l->num_uses; set++) {
        for (int64_t i = 0; i < l->n && known; i++) {
            l->other[i] = 0;
            for (int u = 0; u < l->num_uses; u++)
                if (set >> u & 1) l->other[i] += l->part[u][i];
        }
        if (!known || !same(l, l->own, l->other, 1)) l->line->parts &= ~(1u << set);
    }
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* A right formula in the lesson's names, which the card itself takes. */
static bool try_shown(Look *l, const char *text) {
    snprintf(l->line->shown, sizeof l->line->shown, "%.*s", CARD_TEXT - 1, text);
    const bool right = rule_parse(l->tried, l->line->shown, l->scope) &&
                       compute_whole(l, l->tried, l->other) && same(l, l->other, l->right, 1);
    if (!right) *l->line->shown = '\0';
    return right;
}

/* One of a use: where forward multiplies by 1 / sqrt(d), backward divides by sqrt(d). */
static void say_right(Look *l, const PlantedUse *use, char said[320]) {
    TapeLine line;
    char formula[120] = "";
    const MistakeRow *m = right_row(use);
    if (m) snprintf(formula, sizeof formula, "%s", planted_formula_of(m, use));
    tape_line(use->line, &line);
    const bool is_scale = strcmp(line.op, "scale") == 0;
    if (is_scale) snprintf(formula, sizeof formula, "dy / sqrt(d)");
    const char *at = formula;
    if (line.number == 1 && strncmp(at, "scale * ", 8) == 0) at += 8;
    planted_say_formula(l->planting, use, &l->kept, at, said);
    if (!is_scale || try_shown(l, said)) return;
    snprintf(formula, sizeof formula, "%.6g * dy", line.number);
    planted_say_formula(l->planting, use, &l->kept, formula, said);
    if (!try_shown(l, said)) planted_say_formula(l->planting, use, &l->kept, "s * dy", said);
}

/* What was broadcast forward is summed backward. */
static void say_shown(Look *l) {
    static const char *const sums[] = {"%s", "sum(%s)", "sum0(%s)", "sum0(sum(%s))",
                                       "sum(sum(%s)')"};
    char all[MOST_USES * CARD_TEXT] = "", said[320], text[sizeof all + 40];
    for (int u = 0; u < l->num_uses; u++) {
        say_right(l, &l->uses[u], said);
        const size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", u ? " + " : "", said);
    }
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const char *at = strchr(sums[i], '%');
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - sums[i]), sums[i], all, at + 2);
        if (try_shown(l, text)) return;
    }
}

/* "Z" of "dZ", and of "d(U^2)" what the brackets hold. */
static const char *name_of(const Look *l, char name[RULE_NAME]) {
    const bool in_brackets = l->line->name[1] == '(';
    snprintf(name, RULE_NAME, "%s", l->line->name + 1 + in_brackets);
    if (in_brackets) name[strlen(name) - 1] = '\0';
    return name;
}

/* "It is what comes from V; x goes into K and Q, too." */
static void say_parts(Look *l, unsigned set) {
    char from[120] = "", missing[120] = "", name[RULE_NAME];
    TapeLine line;
    for (int u = 0; u < l->num_uses; u++) {
        char *list = set >> u & 1 ? from : missing;
        const size_t n = strlen(list);
        tape_line(l->uses[u].line, &line);
        snprintf(list + n, 120 - n, "%s%.30s", n ? " and " : "", line.out->name);
    }
    snprintf(l->line->why, sizeof l->line->why,
             "It is what comes from %s; but %.30s goes into %s, too.", from, name_of(l, name),
             missing);
}

static void say_computes(Look *l, const MistakeRow *m, char said[CARD_TEXT]) {
    planted_say_computes(l->planting, &l->uses[0], &l->kept, m, said);
}

/* A hint: what the mistake asks, or the first mistake of this op. */
static void say_question(Look *l) {
    const MistakeRow *m = l->line->mistake;
    char name[RULE_NAME];
    for (int i = 0; i < num_mistake_rows && !m && l->num_uses == 1; i++)
        if (mistake_rows[i].id && planted_formula_of(&mistake_rows[i], &l->uses[0]))
            m = &mistake_rows[i];
    if (m) planted_say(l->planting, &l->uses[0], &l->kept, m->asks, l->line->question);
    else
        snprintf(l->line->question, CARD_TEXT,
                 l->num_uses > 1 ? "Into which lines does %s go? What does each of them give back?"
                                 : "Which numbers does a number of %s change, and by how much?",
                 name_of(l, name));
}

static void say_wrong(Look *l) {
    CardLine *line = l->line;
    char *why = line->why;
    const size_t size = sizeof line->why;
    unsigned set = 1;
    for (int i = 0; i < num_mistake_rows && !line->mistake; i++)
        if (line->is_mistake[i]) line->mistake = &mistake_rows[i];
    while (set < 1u << l->num_uses && !(line->parts >> set & 1)) set++;
    char said[CARD_TEXT] = "";
    if (line->mistake) say_computes(l, line->mistake, said);
    if (!line->is_wrong_here) planted_say_by_chance(said, why, size);
    else if (line->mistake) snprintf(why, size, "%s", said);
    else if (set < 1u << l->num_uses) say_parts(l, set);
    else if (!planted_say_likeness(&line->like, why, size))
        snprintf(why, size, "Its size is right, its numbers are not.");
}

/* ---- a look ---------------------------------------------------------------------------------- */

static bool read_name(Look *l) {
    l->x = planted_tensor_of(l->planting, l->line->name);
    if (!l->x || !l->x->grad)
        return refuse(l->line, 0,
                      "no gradient of this lesson has this name; one is dY, for example");
    find_uses(l);
    return l->num_uses > 0 || refuse(l->line, 0, "backward begins with this gradient");
}

static bool take_memory(Look *l) {
    const int64_t n = tensor_numel(l->x);
    l->n = n;
    l->tolerance = l->x->dtype == F32 ? 1e-4 : 1e-9;
    l->own = malloc((size_t)(n * (3 + MOST_USES) + 1) * sizeof *l->own);
    l->scope = malloc(2 * sizeof *l->scope);
    l->formula = malloc(2 * sizeof *l->formula);
    if (!l->own || !l->scope || !l->formula) return tensor_fail("out of memory for a rule");
    l->right = l->own + n;
    l->other = l->own + 2 * n;
    for (int u = 0; u < MOST_USES; u++) l->part[u] = l->own + (3 + u) * n;
    l->op = l->scope + 1;
    l->tried = l->formula + 1;
    return true;
}

/* Reads the formula and its numbers; false if it is refused, or with an error. */
static bool read_numbers(Look *l) {
    CardLine *line = l->line;
    char why[sizeof line->why];
    if (!planted_scope_until(l->planting, l->uses[0].line, l->x, &l->kept, l->scope)) return false;
    const bool reads = rule_parse(l->formula, line->formula, l->scope);
    if (reads && compute_whole(l, l->formula, l->own))
        return tensor_to_doubles(l->x->grad, l->right);
    if (tensor_error()) return false;
    if (reads && l->num_uses == 1)
        line->mistake = planted_mistake_of_squares(&l->uses[0], line->formula, l->scope);
    snprintf(why, sizeof why, "%s", l->formula->complaint);
    refuse(line, l->formula->column, why);
    if (line->mistake) say_computes(l, line->mistake, why);
    const size_t n = strlen(line->why), more = strlen(why);
    if (line->mistake && n + more + 3 < sizeof line->why)
        snprintf(line->why + n, sizeof line->why - n, ". %.*s", (int)more - 1, why);
    if (reads) say_question(l);
    return false;
}

static void look_at(Look *l, int look) {
    CardLine *line = l->line;
    if (!read_name(l) || !take_memory(l) || !read_numbers(l)) return;
    const bool is_right = same(l, l->own, l->right, 1);
    if (look == 0) line->is_wrong_here = !is_right;
    if (look == 0) return;
    line->is_wrong = line->is_wrong || !is_right;
    planted_liken(&line->like, l->own, l->right, l->x, l->other, l->tolerance);
    compare_mistakes(l);
    compare_parts(l);
    if (look < CARD_LOOKS - 1 || tensor_error()) return;
    if (line->is_wrong) say_wrong(l);
    if (line->is_wrong) say_question(l);
    else say_shown(l);
}

bool card_look(Card *card, const Planting *planting) {
    for (int i = 0; i < card->n && !tensor_error(); i++) {
        Look look = {.planting = planting, .line = &card->lines[i]};
        if (!look.line->is_refused) look_at(&look, card->looks);
        tensor_release(look.kept);
        free(look.own);
        free(look.scope);
        free(look.formula);
    }
    card->looks++;
    return !tensor_error();
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool card_begin(Card *card, const char *const *rules, int n) {
    *card = (Card){.n = n};
    if (n > CARD_LINES) {
        card->n = 0;
        return tensor_fail("a card has at most %d lines", CARD_LINES);
    }
    for (int i = 0; i < n; i++) {
        CardLine *line = &card->lines[i];
        const char *colon = strchr(rules[i], ':');
        int length = colon ? (int)(colon - rules[i]) : 0;
        while (length > 0 && rules[i][length - 1] == ' ') length--;
        if (length == 0 || length >= RULE_NAME)
            return tensor_fail("a line of a card is \"%s\": it begins with a gradient and a colon",
                               tensor_name_text(rules[i]));
        snprintf(line->name, sizeof line->name, "%.*s", length, rules[i]);
        line->formula = colon + 1 + strspn(colon + 1, " \t");
        line->parts = ~0u;
        line->is_mistake = malloc((size_t)num_mistake_rows);
        if (!line->is_mistake) return tensor_fail("out of memory for a rule");
        memset(line->is_mistake, true, (size_t)num_mistake_rows);
    }
    return true;
}

void card_write(const Card *card, FILE *file) {
    putc('[', file);
    for (int i = 0; i < card->n; i++) {
        const CardLine *line = &card->lines[i];
        const char *verdict = line->is_wrong ? "wrong" : "right";
        if (line->is_refused) verdict = "refused";
        fprintf(file, "%s{\"column\":%d", i ? ",\n" : "", line->column);
        json_write_member(file, "name", line->name);
        json_write_member(file, "formula", line->formula);
        json_write_member(file, "verdict", verdict);
        json_write_member(file, "mistake", line->mistake ? line->mistake->id : "");
        json_write_member(file, "why", line->why);
        json_write_member(file, "question", line->question);
        json_write_member(file, "shown", line->shown);
        putc('}', file);
    }
    putc(']', file);
}

void card_end(Card *card) {
    for (int i = 0; i < card->n; i++) free(card->lines[i].is_mistake);
}
