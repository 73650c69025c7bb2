/* sentences.c - what is said of a step: see sentences.h.
 *
 * The sections: sentences with names, forward and backward, nudges, checks. */
#include "sentences.h"

#include <math.h>
#include <string.h>

/* ---- sentences with names -------------------------------------------------------------------- */

typedef struct {
    const Plan *plan;
    const Step *step;
    char *text; /* SENTENCE_TEXT */
} Said;

/* The names of what a unit reads, each once: "`Y`, `T`". */
static void put_inputs(Said *s, const Unit *unit) {
    const Plan *plan = s->plan;
    char name[NAME_TEXT], quoted[NAME_TEXT + 4], list[SENTENCE_TEXT] = "";
    for (int l = unit->first; l <= unit->last; l++)
        for (int k = 0; k < plan->tape.lines[l].num_in; k++) {
            const int t = plan->tape.lines[l].in[k];
            if (t < 0 || plan_line_in(plan, unit, t) >= 0) continue;
            name_of_tensor(plan, t, false, name);
            snprintf(quoted, sizeof quoted, "`%s`", name);
            if (!strstr(list, quoted))
                put_text(list, sizeof list, "%s%s", *list ? ", " : "", quoted);
        }
    put_text(s->text, SENTENCE_TEXT, "%s", list);
}

/* What a word in braces stands for: x and y are the input and the result, dx and dy their
 * gradients, a and b the factors of a product, and "in" is all inputs. */
static void put_name(Said *s, const char *word) {
    char name[NAME_TEXT];
    const Plan *plan = s->plan;
    const Step *step = s->step;
    const Unit *unit = &plan->units[step->unit];
    const RuledLine *line = &plan->tape.lines[unit->last];
    const Part *part = step->part;
    const char letter = word[*word == 'd'];
    int tensor = part ? part->y : line->out;
    if (letter == 'x') tensor = step->tensor;
    if (letter == 'a') tensor = line->in[line->product.a];
    if (letter == 'b') tensor = line->in[line->product.b];
    if (letter == 'i') {
        put_inputs(s, unit);
        return;
    }
    if (*word == 'd') name_of_gradient(plan, tensor, false, name);
    else name_of_tensor(plan, tensor, letter == 'b' && line->product.flipped, name);
    put_text(s->text, SENTENCE_TEXT, "`%s`", name);
}

/* "`dY` arrives." for "{dy} arrives." */
static void say(Said *s, const char *words) {
    while (*words) {
        const size_t n = strcspn(words, "{");
        put_text(s->text, SENTENCE_TEXT, "%.*s", (int)n, words);
        words += n;
        if (!*words) return;
        put_name(s, words + 1);
        words += strcspn(words, "}") + 1;
    }
}

/* ---- forward and backward -------------------------------------------------------------------- */

static void say_forward(Said *s) {
    const Unit *unit = &s->plan->units[s->step->unit];
    const RuledLine *line = &s->plan->tape.lines[unit->last];
    const char *formula = json_text(line->json, "formula", "");
    char inputs[SENTENCE_TEXT] = "";
    put_inputs(&(Said){s->plan, s->step, inputs}, unit);
    if (s->step->moves)
        say(s, "Nothing is computed. Each number of {in} moves to its place in {y}.");
    else if (!unit->name && line->product.is_one)
        say(s, "Each number of {y} is a row of {a} times a column of {b}: products, added up.");
    else if (!unit->name && line->num_parts > 0 && line->parts[0].factor != 0)
        say(s, "Each row of {y} becomes weights: positive, with the sum 1.");
    else if (!*inputs) say(s, "{y} is made.");
    else {
        say(s, "{y} is made from {in}");
        if (unit->name)
            put_text(s->text, SENTENCE_TEXT, " in %d lines", unit->last - unit->first + 1);
        else if (*formula && !is_linear(s->plan, line) && !is_in_line(line))
            put_text(s->text, SENTENCE_TEXT, ": %.300s", formula);
        put_text(s->text, SENTENCE_TEXT, ".");
    }
}

static bool reads_derivatives(const Tree *tree) {
    for (int t = 0; t < tree->num_tables; t++)
        if (strcmp(tree->tables[t].name, "derivative") == 0) return true;
    return false;
}

static const char *backward_says(const Plan *plan, const Part *part) {
    const RuledTape *tape = &plan->tape;
    if (part->moves)
        return "Nothing is computed. Each number of {dy} moves back to the place that its number "
               "came from.";
    if (!part->tree)
        return "{dy} arrives. Each number of {dx} is a sum of its numbers, times derivatives.";
    if (part->factor != 0 && tree_goes_by_rows(part->tree))
        return "{dy} arrives. The weights of a row share a sum of 1, so what counts is how far a "
               "number is above the mean of its row, in which each counts with its weight.";
    if (is_factor(&tape->lines[part->line], part->k))
        return "{dy} arrives. Each number of {x} was multiplied by numbers of the other factor; "
               "the same numbers, times what arrives, give {dx}.";
    if (tree_goes_by_rows(part->tree) && tape->tensors[part->y].size == tape->tensors[part->x].size)
        return "{dy} arrives. Forward, each number of {x} changes all numbers of its row of {y}, "
               "so all of that row of {dy} come back to it.";
    if (reads_derivatives(part->tree))
        return "{dy} arrives, and each number is multiplied by the derivative in its place.";
    if (tape->tensors[part->y].size < tape->tensors[part->x].size)
        return "One number of {dy} arrives for many of {x}: the rule gives it to each of them.";
    return "{dy} arrives, and the rule goes number by number.";
}

/* Rows meet columns: to multiply rows with rows, or columns with columns, one table is turned over.
 */
static const char *product_says(const Product *p, bool of_a) {
    if (of_a && !p->flipped)
        return "A number of {a} meets one row of {b}, and moves one row of {y}. Its gradient is "
               "that row of {b} times that row of {dy}, number by number, added up. A product takes rows with columns; to take "
               "rows with rows, {b} is turned over.";
    if (of_a)
        return "A number of {a} meets one column of {b} as it was given, and moves one row of {y}. "
               "Its gradient is that column times that row of {dy}, number by number, added up. A product takes rows with "
               "columns: nothing is turned over.";
    if (!p->flipped)
        return "A number of {b} meets one column of {a}, and moves one column of {y}. Its gradient "
               "is that column of {a} times that column of {dy}, number by number, added up. A product takes rows with columns; "
               "to take columns with columns, {a} is turned over.";
    return "A number of {b} meets one column of {a}, and moves one column of {y}. Its gradient is "
           "that column of {dy} times that column of {a}, number by number, added up. A product takes rows with columns, so "
           "{dy} is turned over.";
}

static void say_of_product(Said *s) {
    const Product *p = &s->plan->tape.lines[s->step->part->line].product;
    say(s, product_says(p, s->step->part->k == p->a));
}

static void say_backward(Said *s) {
    const Part *part = s->step->part;
    const TapeTensor *x = &s->plan->tape.tensors[part->x];
    if (nudge_of(s->plan, s->step) == NUDGE_PRODUCT) say_of_product(s);
    else say(s, backward_says(s->plan, part));
    if (part->tree && part->copies && !is_factor(&s->plan->tape.lines[part->line], part->k))
        say(s, " {x} was used more than once, so the products are added up.");
    if (x->maker < 0 && x->parts == 1)
        say(s, " {x} was given, not computed: here its gradient is complete.");
}

static void say_addition(Said *s) {
    const int parts = s->plan->tape.tensors[s->step->tensor].parts;
    const bool is_last = s->step->part->number + 1 == parts;
    say(s, "{x} was used ");
    put_text(s->text, SENTENCE_TEXT, "%d times, so its gradient is a sum. %s", parts,
             is_last ? "Now all parts are there: it is complete." : "More is to come.");
}

void sentence_of(const Plan *plan, const Step *step, char text[SENTENCE_TEXT]) {
    Said s = {plan, step, text};
    *text = '\0';
    switch (step->phase) {
    case STEP_COVER:
    case STEP_TWICE:
    case STEP_SGD:
    case STEP_CARD: break;
    case STEP_FORWARD: say_forward(&s); break;
    case STEP_START:
        say(&s, "Backward begins here. A gradient says how fast the loss changes when a number "
                "changes, and the loss changes as fast as itself.");
        break;
    case STEP_BACKWARD: say_backward(&s); break;
    case STEP_ADD: say_addition(&s);
    }
}

/* ---- nudges ---------------------------------------------------------------------------------- */

static const char *const softmax_says[MOST_LOOKS] = {
    "Move the nudge `h`. One number of {x} grows, and its weight in {y} grows. The others sink, because "
    "the weights of a row sum to 1. The upright mark predicts, the bar is what happens: they part when `h` "
    "is large. The last column is a row of the Jacobian of softmax, how fast each weight follows this "
    "number.",
    "Each weight that changes moves the loss, as fast as its {dy} says; added up, so fast does the loss "
    "follow this number. The underlined term makes the sum a mean of the row."};

/* A row of the Jacobian, in words. c: of the scores, with a blank, if they have a factor. */
static void say_jacobian(Said *s) {
    const char *c = s->step->part->factor == 1 ? "" : "c ";
    put_text(
        s->text, SENTENCE_TEXT,
        " `p` is the weight of this number, `r` another one: with a small `h` the number's exponential grows "
        "by the share `%sh`, the sum of the row by `%sp h`; so `r` loses `%sp r h`, and `p` gains what all "
        "others lose.",
        c, c, c);
}

/* Does a row have no weights, because it sees no key? */
static bool any_blind_row(const TapeTensor *a) {
    for (int64_t first = 0; first < a->size; first += a->columns) {
        double sum = 0;
        for (int64_t c = 0; c < a->columns; c++) sum += a->value[first + c];
        if (sum == 0) return true;
    }
    return false;
}

void sentence_of_look(const Plan *plan, const Step *step, int look, char text[SENTENCE_TEXT]) {
    Said s = {plan, step, text};
    const NudgeKind kind = nudge_of(plan, step);
    *text = '\0';
    if (kind == NUDGE_SOFTMAX && look <= MOST_LOOKS) say(&s, softmax_says[look - 1]);
    if (kind == NUDGE_SOFTMAX && look == 2) say_jacobian(&s);
    if (look > 1) return;
    if (kind == NUDGE_SOFTMAX && any_blind_row(&plan->tape.tensors[step->part->y]))
        say(&s, " In a row that sees no key all weights are 0.");
    if (kind == NUDGE_PRODUCT) say_of_product(&s);
    if (kind == NUDGE_EACH)
        say(&s, "A number of {x} moves the number of {y} in its place, and no other. The slope "
                "says how fast; times {dy}, so fast does the loss follow.");
}

/* "`dK'` = `Q'` `dS`", the step before, and how "`dK` = `dS'` `Q`" follows. */
static void turned_over(Plan *plan, const Step *step, Algebra *algebra) {
    Formula before, both;
    char line[ALGEBRA_TEXT];
    const Step *made = plan->steps;
    while (made->phase != STEP_BACKWARD || made->tensor != step->part->y) made++;
    formula_of(plan, made, &before);
    formula_of(plan, step, &both);
    const char *product = strstr(before.title, " = ") + 3;
    const char *turned = strstr(both.title, " = ");
    algebra_add(algebra, before.title, "what the tape did, the step before");
    snprintf(line, sizeof line, "%.*s = (%.*s)'%s", (int)(turned - both.title), both.title,
             (int)sizeof line / 2, product, turned);
    algebra_add(algebra, line, "turned back: (`A B`)' = `B'` `A'`");
}

/* Is a wrong rule planted, or = in place of +=? */
static bool is_broken(const Plan *plan) {
    const Json *rule = json_first(plan->lesson, "planted");
    if (*json_text(plan->lesson, "rule", "")) return true;
    for (; rule; rule = rule->next)
        if (is_wrong_rule(rule)) return true;
    return false;
}

/* A rule that is right has the lines of the library's own. */
void algebra_of(Plan *plan, const Step *step, int64_t i, Algebra *algebra) {
    char dx[NAME_TEXT], dy[NAME_TEXT];
    const Part *part = step->part;
    algebra->count = 0;
    if (step->product) turned_over(plan, step, algebra);
    if (nudge_of(plan, step) != NUDGE_SOFTMAX) return;
    if (part->planted && is_broken(plan)) return;
    const TapeTensor *y = &plan->tape.tensors[part->y];
    const int64_t first = i - i % y->columns;
    name_of_gradient(plan, part->x, false, dx);
    name_of_gradient(plan, part->y, false, dy);
    const SoftmaxRow row = {
        dx, dy, part->factor, i - first, y->columns, y->value + first, y->grad + first};
    algebra_of_softmax(&row, algebra);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const double TOO_LARGE =
    1e5; /* so large a number leaves its neighbours no digits to differ in */

static const char uncheckable[] =
    "cannot be checked: the numbers are too large, or the point is a kink";

static bool any_large(const double *numbers, int64_t size) {
    for (int64_t i = 0; numbers && i < size; i++)
        if (fabs(numbers[i]) >= TOO_LARGE && isfinite(numbers[i])) return true;
    return false;
}

static bool is_too_large(const Plan *plan, const Part *part) {
    const TapeTensor *x = &plan->tape.tensors[part->x];
    const TapeTensor *y = &plan->tape.tensors[part->y];
    return any_large(x->value, x->size) || any_large(y->value, y->size) ||
           any_large(part->dx, x->size) || any_large(y->grad, y->size);
}

/* Differences cannot tell everything; and they see no rule that is not linear in dy: the library
 * does. */
static Check check_of_part(const Plan *plan, const Part *part, bool in_fold) {
    const int64_t derivatives = part->by.begin[plan->tape.tensors[part->x].size];
    if (!in_fold && is_wrong_rule(part->planted)) return CHECK_WRONG;
    if (part->worst < 1e-6)
        return part->unchecked > 0 && part->unchecked >= derivatives ? CHECK_UNCHECKED
                                                                     : CHECK_RIGHT;
    return is_too_large(plan, part) && !is_broken(plan) ? CHECK_UNCHECKED : CHECK_WRONG;
}

/* "2e-11" */
static void error_text(double worst, char text[32]) {
    if (isnan(worst)) strcpy(text, "NaN");
    else if (isinf(worst)) strcpy(text, "Infinity");
    else if (worst == 0) strcpy(text, "0");
    else {
        snprintf(text, 32, "%.0e", worst);
        char *e = strchr(text, 'e');
        if (e && e[2] == '0') memmove(e + 2, e + 3, strlen(e + 2));
    }
}

static void say_check_of_part(const Part *part, Check check, char words[160]) {
    char worst[32], some[80] = "";
    error_text(part->worst, worst);
    if (part->unchecked > 0)
        snprintf(some, sizeof some, "; %lld of the derivatives cannot be checked",
                 (long long)part->unchecked);
    if (check == CHECK_UNCHECKED) strcpy(words, uncheckable);
    else if (check == CHECK_RIGHT)
        snprintf(words, 160, "checked by difference quotients, largest error %s%s", worst, some);
    else if (part->worst < 1e-6)
        strcpy(words, "this rule is wrong: it is no gradient of this line");
    else snprintf(words, 160, "differences disagree: this rule is wrong (largest error %s)", worst);
}

/* Is the gradient the sum of all its terms? float32 was rounded on the way. "=" for "+=" makes it
 * wrong. */
static bool is_sum_of_terms(const Plan *plan, int tensor) {
    const TapeTensor *x = &plan->tape.tensors[tensor];
    const bool is_leaf = x->maker < 0, rounded = is_float32(x);
    for (int64_t i = 0; i < x->size; i++) {
        double sum = 0, size = 0;
        for (int k = 0; k < x->parts; k++) {
            const Part *part = x->part[k];
            double terms = fabs(part->dx[i]); /* of a leaf, term by term */
            sum += is_leaf ? sum_of_terms(plan->tape.tensors[part->y].grad, &part->by, i, &terms)
                           : part->dx[i];
            size += terms;
        }
        const double scale = is_leaf && rounded && size > 0 ? size : fmax(1, size);
        const bool same = sum == x->grad[i] || (isnan(sum) && isnan(x->grad[i]));
        if (!same && !(fabs(sum - x->grad[i]) / scale <= (rounded ? 1e-5 : 1e-12))) return false;
    }
    return true;
}

/* Of the gradient that this step completes. */
static Check check_of_sum(const Plan *plan, const Step *step, char words[160]) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    const bool adds = step->phase == STEP_ADD, is_last = step->part->number + 1 == x->parts;
    if (!is_last || adds != (x->parts > 1) || (x->maker >= 0 && x->parts < 2)) return CHECK_NONE;
    if (is_sum_of_terms(plan, step->tensor)) {
        strcpy(words, "the sum of all terms is the gradient that the program stored");
        return CHECK_RIGHT;
    }
    bool large = false;
    for (int64_t i = 0; i < x->size; i++) large = large || !(fabs(x->grad[i]) < TOO_LARGE);
    if (large && !is_broken(plan)) {
        strcpy(words, uncheckable);
        return CHECK_UNCHECKED;
    }
    strcpy(words, "the sum of all terms is not the gradient that the program stored");
    return CHECK_WRONG;
}

/* Does a wrong rule above make the numbers of this gradient wrong? Also a right rule passes them
 * on. */
static bool is_tainted(const Plan *plan, int tensor) {
    const TapeTensor *x = &plan->tape.tensors[tensor];
    for (int k = 0; k < x->parts; k++)
        if (check_of_part(plan, x->part[k], false) == CHECK_WRONG ||
            is_tainted(plan, x->part[k]->y))
            return true;
    return false;
}

Check check_of_step(const Plan *plan, const Step *step, char words[160], bool *passes_on) {
    char of_sum[160] = "";
    const bool is_back = step->phase == STEP_BACKWARD;
    *words = '\0';
    *passes_on = false;
    if (!is_back && step->phase != STEP_ADD) return CHECK_NONE;
    const bool in_fold = plan->units[step->unit].name != NULL;
    const Check sum = check_of_sum(plan, step, of_sum);
    const Check part = is_back ? check_of_part(plan, step->part, in_fold) : CHECK_NONE;
    const Check check = part > sum ? part : sum;
    const bool is_rule = is_back && part == check;
    *passes_on = check == CHECK_RIGHT && is_broken(plan) &&
                 is_tainted(plan, is_back ? step->part->y : step->tensor);
    if (*passes_on)
        snprintf(words, 160, "this %s is right; its numbers come from a wrong rule above",
                 is_rule ? "rule" : "sum");
    else if (is_rule) say_check_of_part(step->part, part, words);
    else strcpy(words, of_sum);
    return check;
}
