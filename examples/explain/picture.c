/* picture.c - a step of the page as SVG: see picture.h.
 *
 * What stands where, how strong a colour is and how thick an arrow is the page decides (page/
 * machine.js, tables.js, terms.js, step.css); here it is done once more, for a place without a
 * browser. picture_parts.h lists the parts. */
#include "picture_parts.h"

#include "../common/svg.h"

#include <math.h>
#include <string.h>

enum { MOST_COLUMNS = 16, MOST_ROWS = 8 };

static const Step *find_softmax(const Plan *plan) {
    for (int i = 0; i < plan->num_steps; i++) {
        const Step *step = &plan->steps[i];
        if (step->phase != STEP_BACKWARD) continue;
        const char *op = json_text(plan->tape.lines[step->part->line].json, "op", "");
        if (!strcmp(op, "softmax") || !strcmp(op, "masked_softmax")) return step;
    }
    return NULL;
}

static bool all_zero(const double *numbers, int64_t size) {
    for (int64_t i = 0; i < size; i++)
        if (numbers[i] != 0) return false;
    return true;
}

/* Can this step be drawn? A softmax whose backward is right has the rule of one. */
static bool check_step(const Step *step, const TapeTensor *x) {
    if (all_zero(step->numbers, x->size))
        tensor_fail("all gradients after this softmax are 0: choose another example");
    else if (!(step->part->worst < 1e-6))
        tensor_fail("the gradient of softmax differs from its check, so there is no picture");
    else if (step->part->unchecked > 0 || step->kind != RULE_SOFTMAX)
        tensor_fail("differences cannot check the gradient of softmax, so there is no picture");
    else if (x->columns > MOST_COLUMNS || x->rows > MOST_ROWS)
        tensor_fail("the picture can show %d columns and %d rows: choose a smaller example",
                    MOST_COLUMNS, MOST_ROWS);
    return !tensor_error();
}

bool picture_choose(Picture *p, const Json *lesson) {
    memset(p, 0, sizeof *p);
    if (!plan_make(&p->plan, lesson, false)) return false;
    p->step = find_softmax(&p->plan);
    if (!p->step) {
        tensor_fail("this lesson has no softmax to draw");
        return false;
    }
    const TapeTensor *x = &p->plan.tape.tensors[p->step->tensor];
    if (!check_step(p->step, x)) return false;
    p->chosen = p->step->look;
    p->panel = p->chosen / (x->rows * x->columns);
    formula_of(&p->plan, p->step, &p->formula);
    p->width = find_width(p);
    return arrange(&p->graph, &p->plan, p->width - 2 * MARGIN);
}

void picture_free(Picture *p) {
    arrange_free(&p->graph);
    plan_free(&p->plan);
}

static void write_header(FILE *file, const Picture *p) {
    char text[96];
    snprintf(text, sizeof text, "%d%s \u00a0%s", (int)json_integer(p->plan.lesson, "number", 0),
             json_text(p->plan.lesson, "part", ""), json_text(p->plan.lesson, "title", ""));
    fputs("<g " SERIF_TYPE "font-style=\"italic\" font-size=\"22\">\n", file);
    svg_text(file, MARGIN, 34, "start", "Tapehead");
    fputs("</g>\n<g " SOFT_WORDS "font-size=\"16\">\n", file);
    svg_text(file, MARGIN + 122, 34, "start", text);
    end_group(file);
}

static void write_line(FILE *file, const Picture *p, double y) {
    fprintf(file, "<path class=\"line\" stroke=\"" LINE "\" d=\"M0 %.1fh%.0f\"/>\n", y, p->width);
}

void picture_write(FILE *file, const void *context) {
    const Picture *p = context;
    const Layout l = layout_of(p);
    svg_begin_plain(file, (int)p->width, (int)write_terms(NULL, p, &l),
                    "Backward through a softmax, step by step");
    write_colours(file);
    write_header(file, p);
    write_line(file, p, 52.5);
    write_tape(file, p);
    write_line(file, p, floor(tape_bottom(p) + 56) + 0.5);
    write_rule(file, p, &l);
    write_terms(file, p, &l);
    write_tables(file, p, &l); /* over the curves of the terms */
    svg_end(file);
}
