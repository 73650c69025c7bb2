/* rules.c - a tape as arrays: see rules.h.
 *
 * The sections: memory, tensors, Jacobians, products, moves, reading. */
#include "rules.h"

#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

struct Piece {
    Piece *before;
    double elements[];
};

void *memory_take(Piece **memory, int64_t count, size_t size) {
    if (tensor_error()) return NULL;
    Piece *piece = calloc(1, sizeof *piece + (size_t)(count > 0 ? count : 1) * size);
    if (!piece) return tensor_fail("out of memory");
    piece->before = *memory;
    *memory = piece;
    return piece->elements;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* A list of the JSON as doubles; NULL if there is no list. */
static double *read_numbers(Piece **memory, const Json *list) {
    double *numbers = list ? memory_take(memory, list->count, sizeof *numbers) : NULL;
    int64_t i = 0;
    if (numbers)
        for (const Json *x = list->first; x; x = x->next) numbers[i++] = json_number(x);
    return numbers;
}

static bool read_tensor(RuledTape *tape, int t, const Json *json) {
    TapeTensor *x = &tape->tensors[t];
    *x = (TapeTensor){.json = json, .maker = -1, .panels = 1, .rows = 1, .columns = 1, .size = 1};
    x->name = json_text(json, "name", "");
    for (const Json *d = json_get(json, "shape")->first; d; d = d->next) {
        const int64_t n = (int64_t)d->number;
        x->shape[x->rank++] = n;
        x->panels *= x->rows;
        x->rows = x->columns;
        x->columns = n;
        x->size *= n;
    }
    x->value = read_numbers(&tape->memory, json_get(json, "value"));
    x->grad = read_numbers(&tape->memory, json_get(json, "grad"));
    return !tensor_error();
}

Dims dims_of(const TapeTensor *x) {
    Dims dims = {.rank = (int)x->rank};
    memcpy(dims.size, x->shape, (size_t)x->rank * sizeof *x->shape);
    return dims;
}

bool is_float32(const TapeTensor *x) {
    return strcmp(json_text(x->json, "type", ""), "float32") == 0;
}

int num_inputs(const RuledLine *line) {
    int n = 0;
    for (int k = 0; k < line->num_in; k++) n += line->in[k] >= 0;
    return n;
}

bool is_wrong_rule(const Json *planted) {
    return strcmp(json_text(planted, "verdict", ""), "wrong") == 0;
}

bool is_factor(const RuledLine *line, int k) {
    return line->product.is_one && (k == line->product.a || k == line->product.b);
}

bool goes_by_numbers(const Part *part) {
    return part->tree && !part->moves && !part->copies && tree_goes_by_numbers(part->tree);
}

/* Numbers of float32 that should be equal are rounded differently. */
bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-5 * fmax(1, fabs(b)) || (isnan(a) && isnan(b));
}

/* ---- Jacobians ------------------------------------------------------------------------------- */

/* Reads the columns, [j, J, j, J, ...] or a reason. */
static bool read_jacobian(RuledTape *tape, Jacobian *by, const Json *jacobian) {
    int64_t total = 0, n = 0, i = 0;
    for (const Json *column = jacobian->first; column; column = column->next)
        if (column->kind == JSON_ARRAY) total += column->count / 2;
    by->begin = memory_take(&tape->memory, jacobian->count + 1, sizeof *by->begin);
    by->of = memory_take(&tape->memory, total, sizeof *by->of);
    if (!by->begin || !by->of) return false;
    for (const Json *column = jacobian->first; column; column = column->next) {
        by->begin[i++] = n;
        if (column->kind != JSON_ARRAY) continue;
        for (const Json *pair = column->first; pair; pair = pair->next->next)
            by->of[n++] = (Derivative){(int64_t)pair->number, json_number(pair->next)};
    }
    by->begin[i] = n;
    return true;
}

/* The derivatives row by row; NULL and an error without memory. */
static Jacobian rows_of(RuledTape *tape, const Jacobian *by, int64_t columns, int64_t rows) {
    const int64_t total = by->begin[columns];
    Jacobian turned = {memory_take(&tape->memory, rows + 2, sizeof *turned.begin),
                       memory_take(&tape->memory, total, sizeof *turned.of)};
    if (!turned.begin || !turned.of) return (Jacobian){NULL, NULL};
    int64_t *next = turned.begin + 1; /* where the next one of a row goes; at last, where it ends */
    for (int64_t e = 0; e < total; e++) next[by->of[e].j + 1]++;
    for (int64_t j = 0; j < rows; j++) next[j + 1] += next[j];
    for (int64_t i = 0; i < columns; i++)
        for (int64_t e = by->begin[i]; e < by->begin[i + 1]; e++)
            turned.of[next[by->of[e].j]++] = (Derivative){i, by->of[e].J};
    return turned;
}

/* The derivatives of p followed by next: one for each way from a number to another. */
static bool compose(RuledTape *tape, Jacobian *p, const Jacobian *next, int64_t columns) {
    int64_t most = 0, n = 0;
    for (int64_t e = 0; e < p->begin[columns]; e++)
        most += next->begin[p->of[e].j + 1] - next->begin[p->of[e].j];
    int64_t *begin = memory_take(&tape->memory, columns + 1, sizeof *begin);
    Derivative *of = memory_take(&tape->memory, most, sizeof *of);
    if (!begin || !of) return false;
    for (int64_t i = 0; i < columns; i++) {
        for (int64_t e = p->begin[i]; e < p->begin[i + 1]; e++)
            for (int64_t o = next->begin[p->of[e].j]; o < next->begin[p->of[e].j + 1]; o++)
                of[n++] = (Derivative){next->of[o].j, p->of[e].J * next->of[o].J};
        begin[i + 1] = n;
    }
    *p = (Jacobian){begin, of};
    return true;
}

bool rules_compose(RuledTape *tape, Part *p, const Part *next) {
    if (!compose(tape, &p->by, &next->by, tape->tensors[p->x].size)) return false;
    if (!rows_compose(tape, p, next)) return false;
    p->right = p->by;
    p->y = next->y;
    p->line = next->line;
    if (next->worst > p->worst || isnan(next->worst)) p->worst = next->worst;
    p->unchecked += next->unchecked;
    p->copies = false;
    p->is_odd = false;
    p->factor = 0;
    p->moves = false;
    return true;
}

/* Was x repeated in y? The shapes must fit, from the end, and J must agree. */
static bool is_broadcast(const TapeTensor *x, const TapeTensor *y, const Part *p) {
    const Dims of_x = dims_of(x), of_y = dims_of(y);
    if (x->size == y->size || x->rank > y->rank) return false;
    for (int64_t d = 1; d <= x->rank; d++)
        if (x->shape[x->rank - d] != 1 && x->shape[x->rank - d] != y->shape[y->rank - d])
            return false;
    for (int64_t i = 0; i < x->size; i++)
        for (int64_t e = p->by.begin[i]; e < p->by.begin[i + 1]; e++)
            if (dims_element(&of_x, &of_y, p->by.of[e].j) != i) return false;
    return true;
}

double sum_of_terms(const double *dy, const Jacobian *by, int64_t i, double *size) {
    double sum = 0;
    *size = 0;
    for (int64_t e = by->begin[i]; e < by->begin[i + 1]; e++) {
        const double term = dy[by->of[e].j] * by->of[e].J;
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

/* Is each dx[i] the sum of dy[j] J[j, i]? */
static bool is_linear_in_dy(const RuledTape *tape, const Part *p) {
    double size;
    const double *dy = tape->tensors[p->y].grad;
    for (int64_t i = 0; i < tape->tensors[p->x].size; i++)
        if (!is_near(p->dx[i], sum_of_terms(dy, &p->by, i, &size)) && !isnan(p->dx[i]))
            return false;
    return true;
}

/* ---- products -------------------------------------------------------------------------------- */

/* A tree of two tables, one of them perhaps transposed: their inputs. */
static int factor_of(const RuledTape *tape, const RuledLine *line, int n, bool *flipped) {
    const TreeNode *node = &line->tree->nodes[n];
    *flipped = node->sign == '\'';
    if (*flipped) node = &line->tree->nodes[node->a];
    int k = 0;
    while (node->sign == 't' && k < line->num_in &&
           line->in[k] != line->tree->tables[node->table].tensor)
        k++;
    return node->sign == 't' && k < line->num_in && tape->tensors[line->in[k]].rank > 1 ? k : -1;
}

/* a @ b, a @ b', and what is added to it. */
static void find_product(const RuledTape *tape, RuledLine *line) {
    Product p = {.is_one = true};
    bool unused;
    if (!line->tree) return;
    const TreeNode *node = &line->tree->nodes[line->tree->n - 1];
    if (node->sign == '+') node = &line->tree->nodes[node->a];
    if (node->sign != '@') return;
    p.a = factor_of(tape, line, node->a, &unused);
    p.b = factor_of(tape, line, node->b, &p.flipped);
    if (p.a >= 0 && p.b >= 0) line->product = p;
}

static double scale_of(const RuledLine *line) {
    const char *op = json_text(line->json, "op", "");
    if (strcmp(op, "softmax") == 0) return 1;
    if (strcmp(op, "masked_softmax") != 0) return 0;
    const Json *scale = json_get(line->json, "scale");
    return scale ? json_number(scale) : 1;
}

static void describe(const RuledTape *tape, const RuledLine *line, Part *p) {
    p->copies = is_broadcast(&tape->tensors[p->x], &tape->tensors[p->y], p);
    p->is_odd = is_wrong_rule(p->planted) && !is_linear_in_dy(tape, p);
    const bool is_ruled = p->planted || (p->tree && tree_has_sum(p->tree, p->tree->n - 1));
    p->factor = p->k == 0 && is_ruled ? scale_of(line) : 0;
    p->moves = line->moves && !p->copies;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static bool is_same(double a, double b) {
    return (a == b && !signbit(a) == !signbit(b)) || (isnan(a) && isnan(b));
}

/* Is each element of the result an element of an input? Returns which; NULL if not. */
static Source *find_moves(RuledTape *tape, const RuledLine *line, bool right) {
    const TapeTensor *y = &tape->tensors[line->out];
    Source *moves = memory_take(&tape->memory, y->size, sizeof *moves);
    int64_t found = 0;
    if (!moves || line->num_parts == 0) return NULL;
    for (int64_t j = 0; j < y->size; j++) moves[j].k = -1;
    for (int n = 0; n < line->num_parts; n++) {
        const Part *p = &line->parts[n];
        const Jacobian *by = right ? &p->right : &p->by;
        const TapeTensor *x = &tape->tensors[p->x];
        for (int64_t i = 0; i < x->size; i++)
            for (int64_t e = by->begin[i]; e < by->begin[i + 1]; e++) {
                const Derivative d = by->of[e];
                if (d.J != 1 || moves[d.j].k >= 0 || !is_same(x->value[i], y->value[d.j]))
                    return NULL;
                moves[d.j] = (Source){p->k, i};
                found++;
            }
    }
    return found == y->size ? moves : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The rule that a reader has planted at input k of a line; NULL: none. */
static const Json *planted_at(const Json *lesson, int line, int k) {
    const Json *item = json_first(lesson, "planted");
    while (item && (json_integer(item, "line", -1) != line || json_integer(item, "input", -1) != k))
        item = item->next;
    return item;
}

static const char **read_reasons(RuledTape *tape, const Json *jacobian) {
    int64_t i = 0;
    const char **reasons = memory_take(&tape->memory, jacobian->count, sizeof *reasons);
    for (const Json *column = jacobian->first; reasons && column; column = column->next, i++)
        reasons[i] = column->kind == JSON_STRING ? column->text : NULL;
    return reasons;
}

static bool read_part(RuledTape *tape, const RuledLine *line, Part *p, const Json *json,
                      const Json *lesson) {
    const Json *jacobian = json_get(json, "jacobian");
    const Json *lines = json_get(json_get(lesson, "right"), "lines");
    const Json *own = json_at(json_get(json_at(lines, p->line), "backward"), p->k);
    const Json *right = p->planted ? json_get(own, "jacobian") : NULL;
    p->own = p;
    p->x = line->in[p->k];
    p->y = line->out;
    p->dx = read_numbers(&tape->memory, json_get(json, "dx"));
    p->worst = json_number(json_get(json, "worst"));
    p->unchecked = json_integer(json, "unchecked", 0);
    tape->tensors[p->x].parts++;
    p->reasons = read_reasons(tape, right ? right : jacobian);
    if (!p->dx || !p->reasons || !read_jacobian(tape, &p->by, jacobian)) return false;
    p->right = p->by;
    if (right && !read_jacobian(tape, &p->right, right)) return false;
    p->rows = rows_of(tape, &p->right, tape->tensors[p->x].size, tape->tensors[p->y].size);
    return p->rows.begin != NULL;
}

/* Does a planted rule read other gradients than the one that arrives? Then its numbers are not what
 * the line moves. */
static bool reads_others(const Part *p) {
    for (int t = 0; p->planted && p->tree && t < p->tree->num_tables; t++)
        if (p->tree->tables[t].is_gradient && p->tree->tables[t].tensor != p->y) return true;
    return false;
}

static bool find_rules(RuledTape *tape, RuledLine *line) {
    bool any_planted = false;
    for (int i = 0; i < line->num_parts; i++) any_planted |= line->parts[i].planted != NULL;
    line->moves = find_moves(tape, line, false);
    line->right_moves = any_planted ? find_moves(tape, line, true) : line->moves;
    if (tensor_error() || !rows_of_line(tape, line)) return false;
    for (int i = 0; i < line->num_parts; i++)
        if (reads_others(&line->parts[i])) line->moves = NULL;
    find_product(tape, line);
    for (int i = 0; i < line->num_parts; i++) describe(tape, line, &line->parts[i]);
    return true;
}

static bool read_line(RuledTape *tape, int l, const Json *json, const Json *lesson) {
    RuledLine *line = &tape->lines[l];
    const Json *in = json_get(json, "in");
    const Json *backward = json_get(json, "backward");
    *line = (RuledLine){.json = json, .number = (int)json_integer(json, "line", 0)};
    line->out = (int)json_get(json, "out")->number;
    line->in = memory_take(&tape->memory, in->count, sizeof *line->in);
    line->parts = memory_take(&tape->memory, backward->count, sizeof *line->parts);
    if (!line->in || !line->parts) return false;
    for (const Json *x = in->first; x; x = x->next) {
        const int t = (int)x->number;
        bool again = t < 0;
        for (int k = 0; k < line->num_in; k++) again = again || line->in[k] == t;
        line->in[line->num_in++] = t;
        if (!again) tape->tensors[t].readers++;
    }
    int k = 0;
    for (const Json *d = backward->first; d; d = d->next, k++) {
        if (d->kind != JSON_OBJECT || !tape->tensors[line->out].grad) continue;
        Part *p = &line->parts[line->num_parts++];
        *p = (Part){.line = l, .k = k, .planted = planted_at(lesson, line->number, k)};
        if (!read_part(tape, line, p, d, lesson)) return false;
    }
    tape->tensors[line->out].maker = l;
    return find_rules(tape, line);
}

static bool order_parts(RuledTape *tape) {
    for (TapeTensor *x = tape->tensors; x < tape->tensors + tape->num_tensors; x++) {
        x->part = memory_take(&tape->memory, x->parts, sizeof(Part *));
        if (!x->part) return false;
        x->parts = 0;
    }
    for (int l = tape->num_lines - 1; l >= 0; l--)
        for (int i = 0; i < tape->lines[l].num_parts; i++) {
            Part *p = &tape->lines[l].parts[i];
            TapeTensor *x = &tape->tensors[p->x];
            p->number = x->parts;
            x->part[x->parts++] = p;
        }
    return true;
}

bool rules_read(RuledTape *tape, const Json *lesson) {
    const Json *json = json_get(lesson, "tape");
    const Json *tensors = json_get(json, "tensors");
    const Json *lines = json_get(json, "lines");
    *tape = (RuledTape){.memory = NULL};
    tape->tensors = memory_take(&tape->memory, tensors->count, sizeof *tape->tensors);
    tape->lines = memory_take(&tape->memory, lines->count, sizeof *tape->lines);
    if (!tape->tensors || !tape->lines) return false;
    for (const Json *x = tensors->first; x; x = x->next)
        if (!read_tensor(tape, tape->num_tensors++, x)) return false;
    for (const Json *line = lines->first; line; line = line->next)
        if (!read_line(tape, tape->num_lines++, line, lesson)) return false;
    return order_parts(tape);
}

void rules_free(RuledTape *tape) {
    while (tape->memory) {
        Piece *before = tape->memory->before;
        free(tape->memory);
        tape->memory = before;
    }
}
