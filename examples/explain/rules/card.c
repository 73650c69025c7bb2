/* card.c - what the card of a lesson asks: see card.h. */
#include "card.h"

#include <stdio.h>
#include <string.h>

/* The part of a gradient that a line gives; through K', which only moves the numbers of K, that of
 * the line which reads K'. */
static const Part *use_of(const RuledTape *tape, const Part *part) {
    const RuledLine *line = &tape->lines[part->line];
    const Part *only = NULL;
    for (int l = part->line + 1; l < tape->num_lines && line->right_moves; l++)
        for (int n = 0; n < tape->lines[l].num_parts; n++)
            if (tape->lines[l].parts[n].x == line->out) only = &tape->lines[l].parts[n];
    return only && tape->tensors[line->out].parts == 1 ? only : part;
}

/* The rule of a line forward, as its step says it. */
static void add_forward(Plan *plan, int line, char forward[FORMULA_TEXT]) {
    Formula f;
    for (int s = 0; s < plan->num_steps; s++) {
        const Step *step = &plan->steps[s];
        if (step->phase != STEP_FORWARD || plan->units[step->unit].name) continue;
        if (plan->units[step->unit].first != line) continue;
        formula_of(plan, step, &f);
        const size_t n = strlen(forward);
        snprintf(forward + n, FORMULA_TEXT - n, "%s%s", n ? ",  " : "", f.title);
    }
}

/* y[n, m] = sum over k of a[n, k] b[k, m]: a number of a meets row k of b, one of b column k of a.
 * Where b is transposed, columns stand as rows. */
static void say_product(const Plan *plan, const RuledLine *line, int k, bool turned,
                        char why[CARD_WHY]) {
    char own[NAME_TEXT], other[NAME_TEXT];
    const Product *p = &line->product;
    const bool by_a = k == p->a;
    name_of_tensor(plan, line->in[k], turned, own);
    name_of_tensor(plan, line->in[by_a ? p->b : p->a], false, other);
    tensor_snprintf(why, CARD_WHY, "each number of `%s` met a %s of `%s`", own,
                    by_a && !p->flipped ? "row" : "column", other);
}

static void say_part(const Plan *plan, const Part *part, bool turned, char why[CARD_WHY]) {
    char y[NAME_TEXT], factor[NUMBER_TEXT];
    const TreeNode *top = part->tree ? &part->tree->nodes[part->tree->n - 1] : NULL;
    const TreeNode *by = top && top->sign == '*' ? &part->tree->nodes[top->a] : NULL;
    const RuledLine *line = &plan->tape.lines[part->line];
    name_of_tensor(plan, part->y, false, y);
    constant_text(by && by->sign == '#' ? by->number : 1, factor);
    if (is_factor(line, part->k)) say_product(plan, line, part->k, turned, why);
    else if (part->factor != 0)
        tensor_snprintf(why, CARD_WHY, "where one number of `%s` rises, the others of its row sink",
                        y);
    else if (part->copies)
        tensor_snprintf(why, CARD_WHY, "used again and again: its terms are added");
    else if (top && (top->sign == 't' || (by && by->sign == '#')))
        tensor_snprintf(why, CARD_WHY, "times %s forward, times %s back", factor, factor);
    else tensor_snprintf(why, CARD_WHY, "each number by its own derivative");
}

bool card_task(Plan *plan, int n, CardTask *task) {
    const RuledTape *tape = &plan->tape;
    const Json *tensor = json_at(json_get(plan->lesson, "card"), n);
    if (!tensor) return false;
    *task = (CardTask){.tensor = (int)tensor->number};
    name_of_gradient(plan, task->tensor, false, task->name);
    const TapeTensor *x = &tape->tensors[task->tensor];
    for (int i = x->parts - 1; i >= 0; i--) {
        const Part *use = use_of(tape, x->part[i]);
        add_forward(plan, use->line, task->forward);
        say_part(plan, use, use != x->part[i], task->why);
    }
    if (x->parts > 1) tensor_snprintf(task->why, CARD_WHY, "%d uses, %d terms", x->parts, x->parts);
    return true;
}
