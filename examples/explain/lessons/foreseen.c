/* foreseen.c - what may be taken for the answer to a question: see foreseen.h. The sections: a list
 * of numbers, terms, numbers, counts. */
#include "foreseen.h"

#include "../page/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- a list of numbers ----------------------------------------------------------------------- */

enum { WHY = 160, FORESEEN_TERMS = 16 };
typedef struct {
    double answer;
    int count;
    double value[MOST_FORESEEN];
    char why[MOST_FORESEEN][WHY];
} Foreseen;

/* A reader types two or three digits. */
static bool is_near(double a, double b) { return !(fabs(a - b) > fmax(0.006, 0.02 * fabs(b))); }

TELLS(3, 4) static void add(Foreseen *list, double value, const char *why, ...) {
    va_list arguments;
    bool is_new = !is_near(value, list->answer) && list->count < MOST_FORESEEN;
    for (int i = 0; i < list->count; i++) is_new = is_new && !is_near(value, list->value[i]);
    if (!is_new) return;
    va_start(arguments, why);
    vsnprintf(list->why[list->count], WHY, why, arguments);
    va_end(arguments);
    list->value[list->count++] = value;
}

static void write_list(const Lesson *l, const Foreseen *list) {
    for (int i = 0; i < list->count; i++) {
        fprintf(l->json, "%s{\"value\":%.6g", i ? "," : ",\"wrong\":[", list->value[i]);
        json_write_member(l->json, "why", list->why[i]);
        putc('}', l->json);
    }
    if (list->count) putc(']', l->json);
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* What a number is the sum of, without zeros. */
typedef struct {
    int count;
    double term[FORESEEN_TERMS];
    char from[FORESEEN_TERMS][32]; /* of an addition: the line that gave this part */
} Terms;

static void add_term(Terms *terms, double term, const char *from) {
    if (term == 0) return;
    if (terms->count < FORESEEN_TERMS) {
        terms->term[terms->count] = term;
        snprintf(terms->from[terms->count], sizeof terms->from[0], "%s", from);
    }
    terms->count++;
}

/* The vector-Jacobian product of a line for dy = x at its element j, else 0: element `index` of the
 * gradient of input k. */
static double moved_by(int i, const TapeLine *line, int64_t j, double x, int k, int64_t index) {
    Tensor *dx[8] = {NULL};
    Tensor *dy = tensor_zeros(line->out->shape);
    double number = (double)NAN;
    if (dy && line->n_in <= 8 && tensor_set_at(dy, x, lesson_place(dy->shape, j)) &&
        tape_vjp(i, dy, dx))
        number = lesson_element(dx[k], index);
    for (int n = 0; n < 8; n++) tensor_release(dx[n]);
    tensor_release(dy);
    return number;
}

/* A part of a gradient: a term for each number of the line's result. */
static void terms_of_part(Step at, int64_t index, Terms *terms) {
    TapeLine line;
    if (!tape_line(at.line, &line)) return;
    for (int64_t j = 0; j < tensor_numel(line.out); j++)
        add_term(terms,
                 moved_by(at.line, &line, j, lesson_element(line.out->grad, j), at.input, index),
                 "");
}

/* A number of a product, which is linear in its first factor. */
static void terms_of_value(Step at, int64_t index, Terms *terms) {
    TapeLine line;
    if (!tape_line(at.line, &line) || !line.in[0] || !line.in[0]->requires_grad) return;
    for (int64_t i = 0; i < tensor_numel(line.in[0]); i++)
        add_term(terms, lesson_element(line.in[0], i) * moved_by(at.line, &line, index, 1, 0, i),
                 "");
}

/* An addition: the parts of all lines that read x, in the order of backward. */
static void terms_of_sum(Step at, const Tensor *x, int64_t index, Terms *terms) {
    TapeLine line;
    int last = at.line;
    while (tape_line(last + 1, &line)) last++;
    for (int i = last; i >= at.line; i--) {
        if (!tape_line(i, &line)) continue;
        for (int k = 0; k < line.n_in && line.out->grad; k++) {
            if (line.in[k] != x) continue;
            Tensor *dx = step_part((Step){'b', i, k});
            add_term(terms, lesson_element(dx, index), line.out->name);
            tensor_release(dx);
        }
    }
}

static double sum_of(const Terms *terms) {
    double sum = 0;
    for (int i = 0; i < terms->count; i++) sum += terms->term[i];
    return sum;
}

/* "the sum of 3 parts" */
static void add_parts(Foreseen *list, const Terms *terms, const char *symbol) {
    const int n = terms->count;
    if (n > 2)
        add(list, terms->term[n - 1],
            "That is what comes from `%s` alone: `%s` is used %d times, and the parts add up.",
            terms->from[n - 1], symbol, n);
    for (int i = n - 1; i >= 0; i--)
        add(list, list->answer - terms->term[i],
            "The part from `%s` is left out: `%s` is used %d times, and the parts add up.",
            terms->from[i], symbol, n);
}

static void add_products(Foreseen *list, const Terms *terms) {
    double unsigned_sum = 0;
    for (int i = 0; i < terms->count; i++) unsigned_sum += fabs(terms->term[i]);
    add(list, list->answer - terms->term[terms->count - 1],
        "The last of %d terms is left out: they all add up.", terms->count);
    add(list, unsigned_sum, "Some of the %d terms are negative: mind their signs.", terms->count);
    add(list, list->answer - terms->term[0], "The first of %d terms is left out: they all add up.",
        terms->count);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The number at the same place of another panel, of another row, or in the same row. */
static void add_neighbours(const Lesson *l, Foreseen *list, const Tensor *numbers, int64_t index) {
    const int d = numbers->shape.ndim;
    const int64_t C = d > 0 ? numbers->shape.dim[d - 1] : 1;
    const int64_t R = d > 1 ? numbers->shape.dim[d - 2] : 1;
    const int64_t r = index / C % R, c = index % C, row = index - c, panel = index - r * C - c;
    if (tensor_numel(numbers) > R * C && *l->kind->columns)
        add(list, lesson_element(numbers, (index + R * C) % tensor_numel(numbers)),
            "That is the number of another %s.", l->kind->columns);
    if (R > 1)
        add(list, lesson_element(numbers, panel + (r + 1) % R * C + c),
            "That is the number of another row.");
    if (C > 1)
        add(list, lesson_element(numbers, row + (c + 1) % C),
            "That is the number of another column.");
}

void foreseen_write_number(Lesson *l, Step at, const Tensor *x, bool is_grad, int64_t index) {
    const Tensor *numbers = is_grad ? x->grad : x;
    Foreseen list = {.answer = lesson_element(numbers, index)};
    Terms terms = {0};
    TapeLine line;
    if (at.kind == 'f') terms_of_value(at, index, &terms);
    if (at.kind == 'b') terms_of_part(at, index, &terms);
    if (at.kind == 'a') terms_of_sum(at, x, index, &terms);
    if (terms.count > 1 && terms.count <= FORESEEN_TERMS && is_near(sum_of(&terms), list.answer)) {
        if (at.kind == 'a') add_parts(&list, &terms, lesson_short_name(l, x->name));
        else add_products(&list, &terms);
    }
    if (at.kind == 'b' && tape_line(at.line, &line) && tensor_numel(line.out) == tensor_numel(x))
        add(&list, lesson_element(line.out->grad, index), "That is what arrives, `d%s`.",
            lesson_short_name(l, line.out->name));
    add_neighbours(l, &list, numbers, index);
    write_list(l, &list);
}

/* ---- counts ---------------------------------------------------------------------------------- */

void foreseen_write_count(Lesson *l, Step at, int64_t index) {
    Foreseen list = {0};
    TapeLine line;
    if (!tape_line(at.line, &line)) return;
    const char *y = lesson_short_name(l, line.out->name);
    const int64_t all = tensor_numel(line.out), rows = rows_of(line.out->name);
    for (int64_t j = 0; j < all; j++)
        list.answer += moved_by(at.line, &line, j, 1, at.input, index) != 0;
    add(&list, (double)all, "`%s` has %" PRId64 " numbers: which of them does this one reach?", y,
        all);
    add(&list, (double)rows, "`%s` has %" PRId64 " rows: a term is for a number, not for a row.", y,
        rows);
    add(&list, (double)columns_of(line.out->name),
        "`%s` has %" PRId64 " columns: a term is for a number, not for a column.", y,
        columns_of(line.out->name));
    write_list(l, &list);
}
