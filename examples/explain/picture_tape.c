/* picture_tape.c - the tape above the step of a picture: its tables, small, and its arrows, as
 * thick as their gradients are large. See picture_parts.h. The sections: arrows, tables, the whole.
 */
#include "picture_parts.h"

#include "../common/svg.h"

#include <math.h>
#include <string.h>

static const TapeTensor *tensor_of(const Picture *p, int t) { return &p->plan.tape.tensors[t]; }

static bool is_whole(const TapeTensor *x) {
    const char *type = json_text(x->json, "type", "");
    return !strcmp(type, "bool") || !strcmp(type, "int64");
}

enum { TAPE_TOP = 74, TAPE_HEIGHT = 206 };

typedef struct {
    double left, top, scale;
} Place;

static Place place_of_tape(const Picture *p) {
    const Arrangement *g = &p->graph;
    Place place = {
        .scale = fmin(1.3, fmin((p->width - 2 * MARGIN) / g->width, TAPE_HEIGHT / g->height))};
    place.left = (p->width - place.scale * g->width) / 2;
    place.top = TAPE_TOP;
    return place;
}

double tape_bottom(const Picture *p) { return TAPE_TOP + place_of_tape(p).scale * p->graph.height; }

/* The step at which the gradient of a tensor is complete; -1: never. */
static int grad_step(const Picture *p, int t) {
    int last = -1;
    for (int i = 0; i < p->plan.num_steps; i++) {
        const Step *step = &p->plan.steps[i];
        if (step->tensor == t && i > p->plan.num_forward) last = i;
    }
    return last;
}

static int number_of(const Picture *p, const Step *step) { return (int)(step - p->plan.steps); }

/* The part of a gradient that an arrow carries; NULL if none. */
static const Part *part_of(const Picture *p, const Arrow *arrow) {
    const RuledLine *line = &p->plan.tape.lines[p->plan.units[arrow->unit].first];
    for (int i = 0; i < line->num_parts; i++)
        if (line->parts[i].x == arrow->tensor) return &line->parts[i];
    return NULL;
}

static double norm_of(const Picture *p, const Part *part) {
    double sum = 0;
    for (int64_t i = 0; i < tensor_of(p, part->x)->size; i++)
        if (isfinite(part->dx[i])) sum += part->dx[i] * part->dx[i];
    return sqrt(sum);
}

static double most_norm(const Picture *p) {
    double most = 1e-300;
    for (int i = 0; i < p->graph.num_arrows; i++) {
        const Part *part = part_of(p, &p->graph.arrows[i]);
        if (part) most = fmax(most, norm_of(p, part));
    }
    return most;
}

static void put_curve(FILE *file, const Point *points, int n) {
    fprintf(file, "M%.1f %.1f", points[0].x, points[0].y);
    for (int i = 1; i < n; i++) {
        const double middle = (points[i - 1].x + points[i].x) / 2;
        if (fabs(points[i - 1].y - points[i].y) < 0.5)
            fprintf(file, "L%.1f %.1f", points[i].x, points[i].y);
        else
            fprintf(file, "C%.1f %.1f %.1f %.1f %.1f %.1f", middle, points[i - 1].y, middle,
                    points[i].y, points[i].x, points[i].y);
    }
}

/* An arrow points to its result, or, where backward has gone, to its input, as thick as the
 * gradient is large. */
static void write_arrow(FILE *file, const Picture *p, const Arrow *arrow, double most) {
    Point points[MOST_POINTS];
    const Part *part = part_of(p, arrow);
    const int n = arrange_points(&p->graph, arrow, points);
    const bool behind = part && part->step <= number_of(p, p->step);
    const bool now = part == p->step->part;
    const double width = behind ? 2 + 8 * sqrt(norm_of(p, part) / most) : 1.6;
    const double size = 5 + 0.75 * width;
    const Point end = behind ? points[0] : points[n - 1];
    const double sign = behind ? -1 : 1;
    const char *name = behind ? "back" : "edge";
    const char *color = behind ? BACK : ARROW;
    if (now) name = "now";
    if (now) color = "currentColor";
    if (behind) points[0].x += size;
    else points[n - 1].x -= 5;
    fprintf(file, "<path class=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" d=\"", name,
            color, width);
    put_curve(file, points, n);
    fprintf(file, "\"/>\n<path class=\"%s-head\" fill=\"%s\" d=\"M%.1f %.1fl%.1f %.1fv%.1fz\"/>\n",
            name, color, end.x, end.y, -sign * (size + 1), -0.72 * size, 1.44 * size);
    if (!now) return;
    fprintf(file,
            "<path class=\"gap\" fill=\"none\" stroke=\"" PAPER "\" stroke-width=\"%.1f\""
            " stroke-linecap=\"round\" stroke-dasharray=\"0.1 15\" d=\"",
            fmax(2.4, fmin(5, width / 2)));
    put_curve(file, points, n);
    fputs("\"/>\n", file);
}

/* A rectangle of a small table, for all of its numbers at once or for one. */
static void put_box(FILE *file, const TapeTensor *x, const Placed *node, Point at, int64_t i) {
    const double c = node->cell, gap = c >= 5 ? 1 : 0;
    const int64_t panel = i / (x->rows * x->columns);
    const double left = at.x + (double)panel * ((double)x->columns * c + 3);
    fprintf(file, "M%.1f %.1fh%.1fv%.1fh%.1fz", left + (double)(i % x->columns) * c,
            at.y + (double)(i / x->columns % x->rows) * c, c - gap, c - gap, gap - c);
}

static void write_map(FILE *file, const TapeTensor *x, const Placed *node, Point at,
                      const double *numbers, double top) {
    const double largest = largest_of(numbers, x->size);
    const bool whole = numbers == x->value && is_whole(x);
    fputs("<path class=\"cell\" fill=\"" CELL "\" d=\"", file);
    for (int64_t i = 0; i < x->size; i++) put_box(file, x, node, at, i);
    fputs("\"/>\n", file);
    for (int64_t i = 0; i < x->size; i++) {
        if (numbers[i] == 0) continue;
        const char *color = numbers[i] > 0 ? "pos\" fill=\"" POS : "neg\" fill=\"" NEG;
        fprintf(file, "<path class=\"%s\" fill-opacity=\"%.2f\" d=\"",
                whole ? "soft\" fill=\"" SOFT : color,
                whole ? 0.45 : strength_of(numbers[i], largest, top));
        put_box(file, x, node, at, i);
        fputs("\"/>\n", file);
    }
}

/* The small tables of a tensor: its values, and the gradient, empty as long as it is not complete.
 */
static void write_maps(FILE *file, const Picture *p, const Placed *node) {
    const TapeTensor *x = tensor_of(p, node->tensor);
    const double middle = node->y + (ARRANGE_NAME - ARRANGE_NOTE) / 2.0;
    const Point at = {node->x - node->box_w / 2 + 3, middle - node->box_h / 2 + 3};
    const Point grad = {at.x + (node->under ? 0 : node->map_w + 4),
                        at.y + (node->under ? node->map_h + 4 : 0)};
    const int step = grad_step(p, node->tensor);
    const bool done = x->grad && step >= 0 && step <= number_of(p, p->step);
    if (x->grad) fputs("<g opacity=\"0.5\">\n", file);
    write_map(file, x, node, at, x->value, top_of(p, false));
    if (x->grad) end_group(file);
    if (done) write_map(file, x, node, grad, x->grad, top_of(p, true));
    if (!x->grad) return;
    write_box(file, grad.x - 0.5, grad.y - 0.5, node->map_w + 1, node->map_h + 1,
              done ? "rx=\"2\" fill=\"none\" class=\"bar\" stroke=\"" FAINT
                     "\" stroke-width=\"1.5\""
                   : "rx=\"2\" fill=\"none\" class=\"line\" stroke=\"" LINE
                     "\" stroke-dasharray=\"2 2\"");
}

/* Is it computed by this step, or read by it? */
static const char *frame_of(const Picture *p, int t) {
    if (t == p->step->tensor)
        return "rx=\"5\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2.5\"";
    if (t == p->step->part->y)
        return "rx=\"5\" fill=\"none\" class=\"bar\" stroke=\"" FAINT "\" stroke-width=\"1.25\"";
    return NULL;
}

static void write_node(FILE *file, const Picture *p, const Placed *node) {
    char name[NAME_TEXT], number[32];
    const TapeTensor *x = tensor_of(p, node->tensor);
    const char *frame = frame_of(p, node->tensor);
    const bool current = node->tensor == p->step->tensor;
    const double top = node->y - node->h / 2;
    write_maps(file, p, node);
    if (frame)
        write_box(file, node->x - node->box_w / 2 - 0.5, top + ARRANGE_NAME - 0.5, node->box_w + 1,
                  node->box_h + 1, frame);
    name_of_tensor(&p->plan, node->tensor, false, name);
    if (current) fputs("<g font-weight=\"bold\">\n", file);
    begin_text(file, node->x, top + 9, "middle");
    put_name(file, name, 13);
    number_as(number, x->value[0], decimals_in(x->value, x->size));
    if (x->rank == 0) fprintf(file, " <tspan font-weight=\"bold\">%s</tspan>", number);
    end_text(file);
    if (current) end_group(file);
}

/* "softmax", "3 moves", under a result. */
static void write_note(FILE *file, const Picture *p, const Placed *node) {
    char text[48];
    const int maker = tensor_of(p, node->tensor)->maker;
    if (maker < 0) return;
    const Unit *unit = &p->plan.units[p->plan.unit_of[maker]];
    const int lines = unit->last - unit->first + 1;
    const char *op = json_text(p->plan.tape.lines[maker].json, "op", "");
    if (lines > 1) snprintf(text, sizeof text, "%d %s", lines, unit->moves ? "moves" : "lines");
    else snprintf(text, sizeof text, "%s", !strcmp(op, "masked_softmax") ? "softmax" : op);
    svg_text(file, node->x, node->y + node->h / 2 - 2, "middle", text);
}

static void write_graph(FILE *file, const Picture *p) {
    const Arrangement *g = &p->graph;
    const Place place = place_of_tape(p);
    const double most = most_norm(p);
    fprintf(file, "<g transform=\"translate(%.1f %.1f) scale(%.3f)\">\n", place.left, place.top,
            place.scale);
    for (int i = 0; i < g->num_arrows; i++) write_arrow(file, p, &g->arrows[i], most);
    fputs("<g " SERIF_TYPE "font-size=\"13\">\n", file);
    for (int n = 0; n < g->num_nodes; n++)
        if (g->nodes[n].tensor >= 0) write_node(file, p, &g->nodes[n]);
    fputs("</g>\n<g " FAINT_WORDS "font-size=\"10.5\">\n", file);
    for (int n = 0; n < g->num_nodes; n++)
        if (g->nodes[n].tensor >= 0) write_note(file, p, &g->nodes[n]);
    fputs("</g>\n</g>\n", file);
}

/* The steps as dashes: those that were taken, this one, the rest. */
static void write_steps(FILE *file, const Picture *p, double y) {
    enum { GAP = 14, LEFT = 210 };
    char text[48];
    const Plan *plan = &p->plan;
    const int here = number_of(p, p->step), steps = plan->num_steps - 1;
    const double each = fmin(40, (p->width - (MARGIN + LEFT + GAP)) / steps);
    snprintf(text, sizeof text, "backward %d of %d", here - plan->num_forward,
             plan->num_steps - 1 - plan->num_forward);
    fputs("<g " SOFT_WORDS "font-size=\"15\">\n", file);
    svg_text(file, MARGIN, y + 5, "start", text);
    end_group(file);
    for (int i = 1; i <= steps; i++) {
        const double x = LEFT + (i - 1) * each + (i > plan->num_forward ? GAP : 0);
        const char *look = "rx=\"2\" class=\"rest\" fill=\"" LINE "\"";
        if (i < here) look = "rx=\"2\" " FAINT_WORDS;
        if (i == here) look = "rx=\"4\"";
        write_box(file, x + 2, y - (i == here ? 4 : 2), each - 4, i == here ? 8 : 4, look);
    }
}

void write_tape(FILE *file, const Picture *p) {
    write_graph(file, p);
    write_steps(file, p, tape_bottom(p) + 28);
}
