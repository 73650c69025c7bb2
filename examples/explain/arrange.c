/* arrange.c - places the tables of a tape: see arrange.h.
 *
 *   - A result is one layer right of its inputs; what was given is one layer left of its first use.
 *   - An arrow over several layers has a bend in each, which arrows from the same table share.
 *   - Order in a layer: depth first from the last result, then by the mean place of the neighbours,
 *     as long as this leaves fewer crossings.
 *   - Heights: each layer in turn takes the heights nearest to its neighbours' that keep order and
 *     distance.
 *
 * The sections: nodes, arrows, order, heights, the whole. */
#include "arrange.h"

#include <math.h>
#include <string.h>

enum { LANE = 12, BEND_HEIGHT = 6 }; /* units between two nodes of a layer; the height of a bend */

/* How much an arrow wants to be straight. */
typedef struct {
    int a, b;
    double weight;
} Link;

typedef struct {
    Arrangement *graph;
    const Plan *plan;
    int num_links;
    Link *links;
    int *node_of; /* of each tensor; -1: none */
    int *order;   /* the nodes of each layer in their order, one layer after the other */
    int *begin;   /* where a layer begins in it */
} Work;

/* ---- nodes ----------------------------------------------------------------------------------- */

static double least(double a, double b) { return a < b ? a : b; }

static void measure(Placed *node, const TapeTensor *x) {
    const double columns = (double)(x->panels * x->columns), rows = (double)x->rows;
    const bool is_table = x->rank > 0;
    const double c =
        is_table ? least(9, fmax(1, least(floor(48 / columns), floor(34 / rows)))) : 24;
    node->cell = c;
    node->map_w = columns * c + (double)(x->panels - 1) * 3;
    node->map_h = rows * c;
    node->under = is_table && node->map_w >= 1.5 * node->map_h;
    node->box_w = node->map_w + (x->grad && !node->under ? node->map_w + 4 : 0) + 6;
    node->box_h = node->map_h + (x->grad && node->under ? node->map_h + 4 : 0) + 6;
    node->w = fmax(node->box_w, 24);
    node->h = node->box_h + ARRANGE_NAME + ARRANGE_NOTE;
}

static int add_node(Work *w, int tensor, int layer) {
    Arrangement *g = w->graph;
    Placed *node = &g->nodes[g->num_nodes];
    *node = (Placed){.tensor = tensor, .layer = layer, .h = BEND_HEIGHT};
    if (tensor >= 0) measure(node, &w->plan->tape.tensors[tensor]);
    if (tensor >= 0) w->node_of[tensor] = g->num_nodes;
    if (layer >= g->num_layers) g->num_layers = layer + 1;
    return g->num_nodes++;
}

/* How many inputs the lines of a unit have together. */
static int inputs_of(const Plan *plan, const Unit *unit) {
    int n = 0;
    for (int l = unit->first; l <= unit->last; l++) n += plan->tape.lines[l].num_in;
    return n;
}

/* Input n of them, a tensor that the unit does not make itself; -1 if it is none. */
static int input_of(const Plan *plan, const Unit *unit, int n) {
    int l = unit->first;
    while (n >= plan->tape.lines[l].num_in) n -= plan->tape.lines[l++].num_in;
    const int t = plan->tape.lines[l].in[n];
    return t < 0 || plan->tape.tensors[t].maker >= unit->first ? -1 : t;
}

static int result_of(const Plan *plan, const Unit *unit) {
    return plan->tape.lines[unit->last].out;
}

/* One layer right of all that the unit reads. */
static int layer_of(const Work *w, const Unit *unit) {
    int layer = 1;
    for (int n = 0; n < inputs_of(w->plan, unit); n++) {
        const int t = input_of(w->plan, unit, n);
        if (t < 0 || w->node_of[t] < 0) continue;
        const int before = w->graph->nodes[w->node_of[t]].layer;
        if (before >= layer) layer = before + 1;
    }
    return layer;
}

/* What is given stands left of its first use. */
static void place_given(Work *w, const Unit *unit) {
    const int layer = w->graph->nodes[w->node_of[result_of(w->plan, unit)]].layer - 1;
    for (int n = 0; n < inputs_of(w->plan, unit); n++) {
        const int t = input_of(w->plan, unit, n);
        if (t < 0 || w->plan->tape.tensors[t].maker >= 0) continue;
        if (w->node_of[t] < 0) add_node(w, t, layer);
        Placed *node = &w->graph->nodes[w->node_of[t]];
        if (node->layer > layer) node->layer = layer;
    }
}

static void add_nodes(Work *w) {
    const Plan *plan = w->plan;
    for (int t = 0; t < plan->tape.num_tensors; t++) w->node_of[t] = -1;
    for (int u = 0; u < plan->num_units; u++)
        add_node(w, result_of(plan, &plan->units[u]), layer_of(w, &plan->units[u]));
    for (int u = 0; u < plan->num_units; u++) place_given(w, &plan->units[u]);
}

/* ---- arrows ---------------------------------------------------------------------------------- */

static void add_link(Work *w, int a, int b, double weight) {
    w->links[w->num_links++] = (Link){a, b, weight};
}

/* The bend in a layer that this tensor's arrows share; made if it is not there. */
static int bend_after(Work *w, int last, int layer) {
    Arrangement *g = w->graph;
    for (int i = 0; i < w->num_links; i++)
        if (w->links[i].a == last && g->nodes[w->links[i].b].tensor < 0) return w->links[i].b;
    const int bend = add_node(w, -1, layer);
    add_link(w, last, bend, g->nodes[last].tensor < 0 ? 8 : 2);
    return bend;
}

static bool add_arrow(Work *w, int u, int t, bool is_first) {
    Arrangement *g = w->graph;
    Arrow *arrow = &g->arrows[g->num_arrows];
    *arrow = (Arrow){.unit = u, .tensor = t, .from = w->node_of[t]};
    arrow->to = w->node_of[result_of(w->plan, &w->plan->units[u])];
    int last = arrow->from;
    for (int layer = g->nodes[last].layer + 1; layer < g->nodes[arrow->to].layer; layer++) {
        if (arrow->num_bends == MOST_BENDS)
            return tensor_fail("the tape is too long for a picture");
        last = bend_after(w, last, layer);
        arrow->bends[arrow->num_bends++] = last;
    }
    double weight = is_first ? 4 : 1;
    if (w->plan->tape.tensors[t].maker < 0) weight = 0.5;
    if (arrow->num_bends > 0) weight = 2;
    add_link(w, last, arrow->to, weight);
    g->num_arrows++;
    return true;
}

static bool add_arrows(Work *w) {
    const Plan *plan = w->plan;
    for (int u = 0; u < plan->num_units; u++) {
        const int begin = w->graph->num_arrows;
        bool has_made = false;
        for (int n = 0; n < inputs_of(plan, &plan->units[u]); n++) {
            const int t = input_of(plan, &plan->units[u], n);
            bool again = t < 0;
            for (int i = begin; i < w->graph->num_arrows; i++)
                again = again || w->graph->arrows[i].tensor == t;
            if (again) continue;
            if (!add_arrow(w, u, t, !has_made)) return false;
            has_made = has_made || plan->tape.tensors[t].maker >= 0;
        }
    }
    return true;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void number_places(Work *w) {
    for (int l = 0; l < w->graph->num_layers; l++)
        for (int i = w->begin[l]; i < w->begin[l + 1]; i++)
            w->graph->nodes[w->order[i]].place = i - w->begin[l];
}

/* Depth first: a node gets the next place of its layer after all that it reads. */
static void visit(Work *w, int n, int *used) {
    Placed *node = &w->graph->nodes[n];
    if (node->place >= 0) return;
    node->place = 0;
    for (int i = 0; i < w->num_links; i++)
        if (w->links[i].b == n) visit(w, w->links[i].a, used);
    w->order[w->begin[node->layer] + used[node->layer]++] = n;
}

static int crossings(Work *w) {
    const Placed *nodes = w->graph->nodes;
    int count = 0;
    number_places(w);
    for (int i = 0; i < w->num_links; i++)
        for (int k = 0; k < i; k++) {
            const Link *a = &w->links[i];
            const Link *b = &w->links[k];
            if (nodes[a->a].layer != nodes[b->a].layer) continue;
            count +=
                (nodes[a->a].place - nodes[b->a].place) * (nodes[a->b].place - nodes[b->b].place) <
                0;
        }
    return count;
}

static int size_of(const Work *w, int layer) { return w->begin[layer + 1] - w->begin[layer]; }

static double share(const Work *w, int n) {
    const Placed *node = &w->graph->nodes[n];
    const int others = size_of(w, node->layer) - 1;
    return node->place / (double)(others > 1 ? others : 1);
}

/* The mean place of a node's neighbours at one side; its own if it has none. */
static double wish(const Work *w, int n, bool before) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < w->num_links; i++) {
        const Link *link = &w->links[i];
        if ((before ? link->b : link->a) != n) continue;
        sum += share(w, before ? link->a : link->b);
        count++;
    }
    return count > 0 ? sum / count : share(w, n);
}

static void sort_layer(Work *w, int layer, bool before) {
    number_places(w);
    for (int i = w->begin[layer] + 1; i < w->begin[layer + 1]; i++)
        for (int k = i; k > w->begin[layer]; k--) {
            const int n = w->order[k], other = w->order[k - 1];
            if (wish(w, other, before) <= wish(w, n, before)) break;
            w->order[k] = other;
            w->order[k - 1] = n;
        }
}

static bool find_order(Work *w) {
    enum { SWEEPS = 24 };
    Arrangement *g = w->graph;
    const size_t size = (size_t)g->num_nodes * sizeof *w->order;
    int *used = memory_take(&g->memory, g->num_layers, sizeof *used);
    int *best = memory_take(&g->memory, g->num_nodes, sizeof *best);
    if (!used || !best) return false;
    for (int n = 0; n < g->num_nodes; n++) {
        g->nodes[n].place = -1;
        w->begin[g->nodes[n].layer + 1]++;
    }
    for (int l = 0; l < g->num_layers; l++) w->begin[l + 1] += w->begin[l];
    visit(w, w->node_of[result_of(w->plan, &w->plan->units[w->plan->num_units - 1])], used);
    for (int n = 0; n < g->num_nodes; n++) visit(w, n, used);
    int fewest = crossings(w);
    memcpy(best, w->order, size);
    for (int sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
        for (int l = 0; l < g->num_layers; l++)
            sort_layer(w, sweep % 2 ? g->num_layers - 1 - l : l, sweep % 2 == 0);
        const int now = crossings(w);
        if (now >= fewest) continue;
        fewest = now;
        memcpy(best, w->order, size);
    }
    memcpy(w->order, best, size);
    number_places(w);
    return true;
}

/* ---- heights --------------------------------------------------------------------------------- */

/* Neighbours that would overlap are a block, which takes its mean wish: isotonic regression. */
typedef struct {
    double sum, weight;
    int end; /* its nodes end before this place of the layer */
} HeightBlock;

/* The weighted sum of the heights of a node's neighbours. */
static HeightBlock wish_of(const Work *w, int n, bool before, bool after) {
    HeightBlock all = {0, 0, 0};
    for (int i = 0; i < w->num_links; i++) {
        const Link *link = &w->links[i];
        const bool is_before = before && link->b == n;
        if (!is_before && !(after && link->a == n)) continue;
        const int other = is_before ? link->a : link->b;
        all.sum += link->weight * w->graph->nodes[other].y;
        all.weight += link->weight;
    }
    return all;
}

static void place_layer(Work *w, int layer, bool before, bool after, HeightBlock *blocks,
                        double *offset) {
    Placed *nodes = w->graph->nodes;
    const int *order = w->order + w->begin[layer];
    const int n = size_of(w, layer);
    int count = 0;
    for (int i = 0; i < n; i++) {
        const Placed *node = &nodes[order[i]];
        offset[i] = i > 0 ? offset[i - 1] + (nodes[order[i - 1]].h + node->h) / 2 + LANE : 0;
        HeightBlock all = wish_of(w, order[i], before, after);
        const double y = all.weight > 0 ? all.sum / all.weight : node->y;
        const double weight = all.weight > 0 ? all.weight : 0.1;
        blocks[count++] = (HeightBlock){(y - offset[i]) * weight, weight, i + 1};
        while (count > 1 && blocks[count - 2].sum / blocks[count - 2].weight >=
                                blocks[count - 1].sum / blocks[count - 1].weight) {
            blocks[count - 2].sum += blocks[count - 1].sum;
            blocks[count - 2].weight += blocks[count - 1].weight;
            blocks[count - 2].end = blocks[count - 1].end;
            count--;
        }
    }
    for (int b = 0, i = 0; b < count; b++)
        for (; i < blocks[b].end; i++)
            nodes[order[i]].y = blocks[b].sum / blocks[b].weight + offset[i];
}

static bool find_heights(Work *w) {
    enum { ROUNDS = 160, SETTLED = 40 };
    Arrangement *g = w->graph;
    HeightBlock *blocks = memory_take(&g->memory, g->num_nodes, sizeof *blocks);
    double *offset = memory_take(&g->memory, g->num_nodes, sizeof *offset);
    if (!blocks || !offset) return false;
    for (int l = 0; l < g->num_layers; l++) {
        double y = 0;
        for (int i = w->begin[l]; i < w->begin[l + 1]; i++) {
            Placed *node = &g->nodes[w->order[i]];
            node->y = y + node->h / 2;
            y += node->h + LANE;
        }
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int l = 0; l < g->num_layers; l++) {
            const bool forward = round % 2 == 0, both = round > SETTLED;
            place_layer(w, forward ? l : g->num_layers - 1 - l, forward || both, !forward || both,
                        blocks, offset);
        }
    double top = HUGE_VAL, bottom = -HUGE_VAL;
    for (int n = 0; n < g->num_nodes; n++) {
        top = fmin(top, g->nodes[n].y - g->nodes[n].h / 2);
        bottom = fmax(bottom, g->nodes[n].y + g->nodes[n].h / 2);
    }
    for (int n = 0; n < g->num_nodes; n++) g->nodes[n].y -= top;
    g->height = bottom - top;
    return true;
}

/* Columns of equal gaps. */
static void spread(Work *w, double room) {
    enum { NARROW_GAP = 24, WIDE_GAP = 78, NARROW_LAYER = 8 };
    Arrangement *g = w->graph;
    double all = 0, x = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double even = (room - all) / fmax(1, g->num_layers - 1);
        const double gap = fmax(NARROW_GAP, fmin(WIDE_GAP, even));
        for (int l = 0; l < g->num_layers; l++) {
            double width = NARROW_LAYER;
            for (int i = w->begin[l]; i < w->begin[l + 1]; i++)
                width = fmax(width, g->nodes[w->order[i]].w);
            if (pass == 0) all += width;
            for (int i = w->begin[l]; pass > 0 && i < w->begin[l + 1]; i++) {
                Placed *node = &g->nodes[w->order[i]];
                node->x = x + width / 2;
                node->left = x;
                node->right = x + width;
            }
            if (pass > 0) x += width + gap;
        }
        if (pass > 0) g->width = x - gap;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool arrange(Arrangement *g, const Plan *plan, double room) {
    const int tensors = plan->tape.num_tensors;
    int64_t inputs = 0;
    *g = (Arrangement){.memory = NULL};
    for (int l = 0; l < plan->tape.num_lines; l++) inputs += plan->tape.lines[l].num_in;
    const int64_t nodes = tensors * (int64_t)(plan->num_units + 1);
    Work w = {.graph = g, .plan = plan};
    g->nodes = memory_take(&g->memory, nodes, sizeof *g->nodes);
    g->arrows = memory_take(&g->memory, inputs, sizeof *g->arrows);
    w.links = memory_take(&g->memory, nodes + inputs, sizeof *w.links);
    w.node_of = memory_take(&g->memory, tensors, sizeof *w.node_of);
    w.order = memory_take(&g->memory, nodes, sizeof *w.order);
    w.begin = memory_take(&g->memory, plan->num_units + 2, sizeof *w.begin);
    if (tensor_error()) return false;
    add_nodes(&w);
    if (!add_arrows(&w) || !find_order(&w) || !find_heights(&w)) return false;
    spread(&w, room);
    return true;
}

void arrange_free(Arrangement *g) { memory_free(&g->memory); }

/* The height of the node that an arrow comes from last. */
static double before_end(const Arrangement *g, const Arrow *arrow) {
    return g->nodes[arrow->num_bends > 0 ? arrow->bends[arrow->num_bends - 1] : arrow->from].y;
}

/* The words above and below a node are not equally high. */
static double middle_of(const Placed *node) {
    return node->y + (ARRANGE_NAME - ARRANGE_NOTE) / 2.0;
}

int arrange_points(const Arrangement *g, const Arrow *arrow, Point points[MOST_POINTS]) {
    const Placed *from = &g->nodes[arrow->from];
    const Placed *to = &g->nodes[arrow->to];
    int above = 0, all = 0, n = 0;
    for (int i = 0; i < g->num_arrows; i++) {
        const Arrow *other = &g->arrows[i];
        if (other->to != arrow->to) continue;
        all++;
        const double y = before_end(g, other), own = before_end(g, arrow);
        above += y < own || (y == own && other < arrow);
    }
    const double apart = fmin(9, (to->box_h - 8) / fmax(1, all - 1));
    points[n++] = (Point){from->x + from->box_w / 2, middle_of(from)};
    for (int i = 0; i < arrow->num_bends; i++) {
        const Placed *bend = &g->nodes[arrow->bends[i]];
        points[n++] = (Point){bend->left, bend->y};
        points[n++] = (Point){bend->right, bend->y};
    }
    points[n++] = (Point){to->x - to->box_w / 2, middle_of(to) + (above - (all - 1) / 2.0) * apart};
    return n;
}
