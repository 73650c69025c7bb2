/* rules.c - a tape as arrays, and the kinds of its rules: see rules.h.
 *
 * The sections: memory, tensors, Jacobians, products, softmax, turns, number by number, moves,
 * reading. */
#include "rules.h"

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

void memory_free(Piece **memory) {
    while (*memory) {
        Piece *before = (*memory)->before;
        free(*memory);
        *memory = before;
    }
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

bool can_broadcast(const TapeTensor *x, const TapeTensor *y) {
    for (int64_t d = 0; d < x->rank && x->rank <= y->rank; d++)
        if (x->shape[d] != 1 && x->shape[d] != y->shape[y->rank - x->rank + d]) return false;
    return x->rank <= y->rank;
}

int64_t broadcast_index(const TapeTensor *x, const TapeTensor *y, int64_t j) {
    int64_t i = 0, stride = 1;
    for (int64_t d = y->rank - 1, e = x->rank - 1; d >= 0 && e >= 0; d--, e--) {
        if (x->shape[e] > 1) i += j % y->shape[d] * stride;
        j /= y->shape[d];
        stride *= x->shape[e];
    }
    return i;
}

bool is_float32(const TapeTensor *x) {
    return strcmp(json_text(x->json, "type", ""), "float32") == 0;
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

/* The derivatives of column i of the product of two Jacobians, by j. */
static int64_t compose_column(const Jacobian *p, const Jacobian *next, int64_t i,
                              Derivative *column) {
    int64_t n = 0;
    for (int64_t e = p->begin[i]; e < p->begin[i + 1]; e++) {
        const Derivative inner = p->of[e];
        for (int64_t o = next->begin[inner.j]; o < next->begin[inner.j + 1]; o++) {
            const Derivative outer = next->of[o];
            int64_t at = n;
            while (at > 0 && column[at - 1].j >= outer.j) at--;
            if (at == n || column[at].j != outer.j) {
                memmove(column + at + 1, column + at, (size_t)(n++ - at) * sizeof *column);
                column[at] = (Derivative){outer.j, 0};
            }
            column[at].J += inner.J * outer.J;
        }
    }
    return n;
}

static void find_simple_kind(RuledTape *tape, Part *p);

static bool compose(RuledTape *tape, Jacobian *p, const Jacobian *next, int64_t columns) {
    int64_t most = 0, n = 0;
    for (int64_t e = 0; e < p->begin[columns]; e++)
        most += next->begin[p->of[e].j + 1] - next->begin[p->of[e].j];
    int64_t *begin = memory_take(&tape->memory, columns + 1, sizeof *begin);
    Derivative *of = memory_take(&tape->memory, most + 1, sizeof *of);
    if (!begin || !of) return false;
    for (int64_t i = 0; i < columns; i++) {
        begin[i] = n;
        n += compose_column(p, next, i, of + n);
    }
    begin[columns] = n;
    *p = (Jacobian){begin, of};
    return true;
}

bool rules_compose(RuledTape *tape, Part *p, const Part *next) {
    if (!compose(tape, &p->by, &next->by, tape->tensors[p->x].size)) return false;
    p->right = p->by;
    p->y = next->y;
    p->line = next->line;
    if (next->worst > p->worst || isnan(next->worst)) p->worst = next->worst;
    p->unchecked += next->unchecked;
    p->copies = false;
    p->is_rowwise = false;
    p->is_odd = false;
    p->factor = 0;
    p->right_factor = 0;
    find_simple_kind(tape, p);
    return !tensor_error();
}

/* ---- products -------------------------------------------------------------------------------- */

int64_t product_terms(const Product *p, int64_t panels_of_b, bool by_a) {
    if (by_a) return p->M;
    return panels_of_b == 1 ? p->P * p->N : p->N;
}

/* By a, i = (q, n, k): the terms are dy[q, n, m] b[q, k, m]. By b, i = (q, k, m): the terms are
 * dy[q, n, m] a[q, n, k], of all panels q if b has only one. By j, they increase. */
Pair product_term(const Product *p, int64_t panels_of_b, bool by_a, int64_t i, int64_t t) {
    const int64_t N = p->N, M = p->M, K = p->K;
    if (by_a) {
        const int64_t k = i % K, n = i / K % N, q = i / K / N, m = t;
        const int64_t r = panels_of_b == 1 ? 0 : q;
        return (Pair){(q * N + n) * M + m, p->flipped ? (r * M + m) * K + k : (r * K + k) * M + m};
    }
    const int64_t k = p->flipped ? i % K : i / M % K;
    const int64_t m = p->flipped ? i / K % M : i % M;
    const int64_t q = panels_of_b == 1 ? t / N : i / K / M, n = t % N;
    return (Pair){(q * N + n) * M + m, (q * N + n) * K + k};
}

/* Is J what this product says? */
static bool fits_product(const RuledTape *tape, const RuledLine *line, const Product *p,
                         const Part *part) {
    const bool by_a = part->k == p->a;
    const int64_t panels = tape->tensors[line->in[p->b]].panels;
    const double *other = tape->tensors[line->in[by_a ? p->b : p->a]].value;
    const int64_t terms = product_terms(p, panels, by_a);
    for (int64_t i = 0; i < tape->tensors[part->x].size; i++) {
        int64_t e = part->right.begin[i];
        for (int64_t t = 0; t < terms; t++) {
            const Pair pair = product_term(p, panels, by_a, i, t);
            const bool found = e < part->right.begin[i + 1] && part->right.of[e].j == pair.j;
            if (!is_near(found ? part->right.of[e].J : 0, other[pair.other])) return false;
            e += found;
        }
        if (e < part->right.begin[i + 1]) return false;
    }
    return true;
}

/* Are the numbers of the result these products? Only asked if nothing is added to them. */
static bool is_sum_of_products(const RuledTape *tape, const RuledLine *line, const Product *p) {
    const TapeTensor *b = &tape->tensors[line->in[p->b]];
    const TapeTensor *y = &tape->tensors[line->out];
    const double *a = tape->tensors[line->in[p->a]].value;
    for (int64_t j = 0; j < y->size; j++) {
        const int64_t m = j % p->M, row = j / p->M, q = b->panels == 1 ? 0 : row / p->N;
        double sum = 0;
        for (int64_t k = 0; k < p->K; k++)
            sum += a[row * p->K + k] *
                   b->value[p->flipped ? (q * p->M + m) * p->K + k : (q * p->K + k) * p->M + m];
        if (!is_near(sum, y->value[j])) return false;
    }
    return true;
}

static bool is_product(const RuledTape *tape, const RuledLine *line, const Product *p) {
    const TapeTensor *b = &tape->tensors[line->in[p->b]];
    int relevant = 0, inputs = 0;
    if ((p->flipped ? b->columns : b->rows) != p->K) return false;
    if ((p->flipped ? b->rows : b->columns) != p->M) return false;
    if (p->K * p->M < 2 && p->N < 2) return false;
    for (int i = 0; i < line->num_parts; i++) {
        if (line->parts[i].k != p->a && line->parts[i].k != p->b) continue;
        relevant++;
        if (!fits_product(tape, line, p, &line->parts[i])) return false;
    }
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0) continue;
        const TapeTensor *x = &tape->tensors[line->in[k]];
        const bool is_factor = k == p->a || k == p->b;
        if (!is_factor && !can_broadcast(x, &tape->tensors[line->out])) return false;
        inputs++;
    }
    return relevant > 0 && (inputs > 2 || is_sum_of_products(tape, line, p));
}

/* Finds two inputs whose product is the result, b also transposed. An input without a gradient has
 * no J; then the other J decides. */
static void find_product(const RuledTape *tape, RuledLine *line) {
    const TapeTensor *y = &tape->tensors[line->out];
    for (int i = 0; i < line->num_in; i++)
        for (int k = i + 1; k < line->num_in; k++) {
            if (line->in[i] < 0 || line->in[k] < 0) continue;
            const TapeTensor *a = &tape->tensors[line->in[i]];
            const TapeTensor *b = &tape->tensors[line->in[k]];
            if (a->rows != y->rows || a->panels != y->panels) continue;
            if (b->panels != 1 && b->panels != y->panels) continue;
            Product p = {i, k, false, y->panels, y->rows, y->columns, a->columns};
            bool found = is_product(tape, line, &p);
            p.flipped = !found;
            found = found || is_product(tape, line, &p);
            if (found) line->product = p;
            if (found) return;
        }
}

/* ---- softmax --------------------------------------------------------------------------------- */

static bool have_same_shape(const TapeTensor *x, const TapeTensor *y) {
    return x->rank == y->rank &&
           memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0;
}

/* J[j, i] of a softmax with s = 1. */
static double softmax_derivative(const double *y, int64_t j, int64_t i) {
    return y[i] * ((i == j) - y[j]);
}

/* Does each row of y depend on the same row of x only, and on several of its elements? Returns the
 * place of the largest derivative: its index in `of`, and its column. */
static bool is_rowwise(const RuledTape *tape, const Part *p, const Jacobian *by, int64_t *largest,
                       int64_t *column) {
    const TapeTensor *x = &tape->tensors[p->x];
    bool mixes = false;
    if (!have_same_shape(x, &tape->tensors[p->y])) return false;
    for (int64_t i = 0; i < x->size; i++)
        for (int64_t e = by->begin[i]; e < by->begin[i + 1]; e++) {
            if (by->of[e].j / x->columns != i / x->columns) return false;
            mixes = mixes || by->of[e].j != i;
            if (fabs(by->of[e].J) <= fabs(by->of[*largest].J)) continue;
            *largest = e;
            *column = i;
        }
    return mixes;
}

/* Rows of weights have a Jacobian that y itself gives: J[j, i] = s y[i] ([i = j] - y[j]). Returns
 * s if all of J agrees with it, else 0. */
static double factor_of(const RuledTape *tape, const Part *p, const Jacobian *by, bool *rowwise) {
    const TapeTensor *x = &tape->tensors[p->x];
    const TapeTensor *y = &tape->tensors[p->y];
    int64_t largest = 0, column = 0;
    *rowwise = is_rowwise(tape, p, by, &largest, &column);
    if (!*rowwise) return 0;
    for (; by->begin[column + 1] <= largest; column++) {
    } /* the first one is the largest */
    const double s = by->of[largest].J / softmax_derivative(y->value, by->of[largest].j, column);
    const double most = fabs(s) * (is_float32(y) ? 1e-5 : 1e-12);
    if (!isfinite(s)) return 0;
    for (int64_t i = 0; i < x->size; i++) {
        int64_t e = by->begin[i];
        const int64_t start = i - i % x->columns;
        for (int64_t j = start; j < start + x->columns; j++) {
            const bool found = e < by->begin[i + 1] && by->of[e].j == j;
            const double J = found ? by->of[e].J : 0;
            if (!(fabs(J - s * softmax_derivative(y->value, j, i)) <= most)) return 0;
            e += found;
        }
        if (e < by->begin[i + 1]) return 0;
    }
    return s;
}

/* The sum of y dy of each row: a mean of dy, since the weights of a row sum to 1. */
static bool find_means(RuledTape *tape, Part *p) {
    const TapeTensor *y = &tape->tensors[p->y];
    p->means = memory_take(&tape->memory, y->size / y->columns, sizeof *p->means);
    if (!p->means) return false;
    for (int64_t j = 0; j < y->size; j++) p->means[j / y->columns] += y->value[j] * y->grad[j];
    return true;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Which columns are pairs? In each row the same ones; a column that never turns is its own. */
static bool find_pairs(RuledTape *tape, Part *p, const TapeTensor *x) {
    const int64_t C = x->columns;
    bool any = false;
    p->pair = memory_take(&tape->memory, C, sizeof *p->pair);
    if (!p->pair || !have_same_shape(x, &tape->tensors[p->y])) return false;
    for (int64_t c = 0; c < C; c++) p->pair[c] = c;
    for (int64_t i = 0; i < x->size; i++)
        for (int64_t e = p->by.begin[i]; e < p->by.begin[i + 1]; e++) {
            const int64_t j = p->by.of[e].j, c = i % C;
            if (j == i) continue;
            if (j / C != i / C || (p->pair[c] != c && p->pair[c] != j % C)) return false;
            p->pair[c] = j % C;
            any = true;
        }
    for (int64_t c = 0; c < C; c++)
        if (p->pair[p->pair[c]] != c) return false;
    return any;
}

int64_t partner_of(const Part *p, int64_t columns, int64_t i) {
    return i - i % columns + p->pair[i % columns];
}

static double derivative_of(const Jacobian *by, int64_t j, int64_t i) {
    for (int64_t e = by->begin[i]; e < by->begin[i + 1]; e++)
        if (by->of[e].j == j) return by->of[e].J;
    return 0;
}

/* Does each pair (a, b) of a row turn by an angle t? Then y[a] = a cos t - b sin t and y[b] = a sin
 * t + b cos t. Sets p->angles. */
static bool find_turns(RuledTape *tape, Part *p) {
    const TapeTensor *x = &tape->tensors[p->x];
    const double *y = tape->tensors[p->y].value;
    if (!find_pairs(tape, p, x)) return false;
    p->angles = memory_take(&tape->memory, x->size, sizeof *p->angles);
    if (!p->angles) return false;
    for (int64_t i = 0; i < x->size; i++) {
        const int64_t other = partner_of(p, x->columns, i);
        const double c = derivative_of(&p->by, i, i);
        const double s = other == i ? 0 : derivative_of(&p->by, other, i);
        p->angles[i] = atan2(other < i ? -s : s, c);
        if (is_float32(x)) p->angles[i] = (double)(float)p->angles[i];
        if (!is_near(hypot(c, s), 1)) return false;
        if (!is_near(y[i], c * x->value[i] - s * x->value[other])) return false;
        if (other < i && !is_near(p->angles[i], p->angles[other])) return false;
    }
    return true;
}

/* ---- number by number ------------------------------------------------------------------------ */

/* Was x repeated in y? The shapes must fit, from the end, and J must agree. */
static bool is_broadcast(const TapeTensor *x, const TapeTensor *y, const Part *p) {
    if (x->size == y->size || !can_broadcast(x, y)) return false;
    for (int64_t i = 0; i < x->size; i++)
        for (int64_t e = p->by.begin[i]; e < p->by.begin[i + 1]; e++)
            if (broadcast_index(x, y, p->by.of[e].j) != i) return false;
    return true;
}

/* Has each element of y at most one derivative? Sets p->each, and whether they are all one number.
 */
static bool find_each(RuledTape *tape, Part *p) {
    const int64_t columns = tape->tensors[p->x].size, rows = tape->tensors[p->y].size;
    bool *seen = memory_take(&tape->memory, rows, sizeof *seen);
    p->each = memory_take(&tape->memory, rows, sizeof *p->each);
    if (!seen || !p->each) return false;
    int64_t with = 0;
    bool single = true;
    p->constant = p->by.begin[columns] > 0 ? p->by.of[0].J : 0;
    p->is_constant = p->by.begin[columns] > 0;
    for (int64_t e = 0; e < p->by.begin[columns]; e++) {
        const Derivative d = p->by.of[e];
        single = single && !seen[d.j];
        with += !seen[d.j];
        seen[d.j] = true;
        p->each[d.j] = d.J;
        p->is_constant = p->is_constant && is_near(d.J, p->constant);
    }
    p->is_constant = p->is_constant && with == rows;
    return single;
}

/* Has each element of x at most one derivative? Sets p->each. */
static bool find_spread(RuledTape *tape, Part *p) {
    const int64_t columns = tape->tensors[p->x].size;
    p->each = memory_take(&tape->memory, columns, sizeof *p->each);
    if (!p->each) return false;
    for (int64_t i = 0; i < columns; i++) {
        if (p->by.begin[i + 1] - p->by.begin[i] > 1) return false;
        if (p->by.begin[i + 1] > p->by.begin[i]) p->each[i] = p->by.of[p->by.begin[i]].J;
    }
    return true;
}

/* The kind of a part that is no move, no product and no softmax. */
static void find_simple_kind(RuledTape *tape, Part *p) {
    const TapeTensor *x = &tape->tensors[p->x];
    const bool each = find_each(tape, p) && (p->copies || x->size == tape->tensors[p->y].size);
    if (each) p->kind = RULE_EACH;
    else if (find_spread(tape, p)) p->kind = RULE_SPREAD;
    else p->kind = find_turns(tape, p) ? RULE_TURN : RULE_GENERAL;
}

double sum_of_terms(const RuledTape *tape, const Part *p, const Jacobian *by, int64_t i,
                    double *size) {
    const double *dy = tape->tensors[p->y].grad;
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
    for (int64_t i = 0; i < tape->tensors[p->x].size; i++)
        if (!is_near(p->dx[i], sum_of_terms(tape, p, &p->by, i, &size)) && !isnan(p->dx[i]))
            return false;
    return true;
}

/* The kind of a part. A wrong rule that a reader has planted is no product of these factors. */
static void find_kind(RuledTape *tape, const RuledLine *line, Part *p) {
    const bool is_wrong = p->planted && strcmp(json_text(p->planted, "verdict", ""), "wrong") == 0;
    const bool is_factor =
        line->product.P > 0 && (p->k == line->product.a || p->k == line->product.b);
    p->copies = is_broadcast(&tape->tensors[p->x], &tape->tensors[p->y], p);
    p->factor = factor_of(tape, p, &p->by, &p->is_rowwise);
    p->is_right_rowwise = p->is_rowwise;
    p->right_factor = p->factor;
    if (p->planted) p->right_factor = factor_of(tape, p, &p->right, &p->is_right_rowwise);
    p->is_odd = is_wrong && !is_linear_in_dy(tape, p);
    find_simple_kind(tape, p);
    if (line->moves && !p->copies) p->kind = RULE_MOVE;
    else if (p->factor != 0 && find_means(tape, p)) p->kind = RULE_SOFTMAX;
    else if (is_factor && !is_wrong) p->kind = RULE_PRODUCT;
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

static void find_kinds(RuledTape *tape, RuledLine *line) {
    bool any_planted = false;
    for (int i = 0; i < line->num_parts; i++) any_planted |= line->parts[i].planted != NULL;
    line->moves = find_moves(tape, line, false);
    line->right_moves = any_planted ? find_moves(tape, line, true) : line->moves;
    find_product(tape, line);
    for (int i = 0; i < line->num_parts; i++) find_kind(tape, line, &line->parts[i]);
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
    find_kinds(tape, line);
    return !tensor_error();
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
    return true;
}

void rules_free(RuledTape *tape) { memory_free(&tape->memory); }
