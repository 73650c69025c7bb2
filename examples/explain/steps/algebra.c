/* algebra.c - a rule in lines: see algebra.h. */
#include "algebra.h"

#include "../../common/put_text.h"
#include "format.h"

#include <ctype.h>
#include <string.h>

void algebra_add(Algebra *a, const char *line, const char *why) {
    if (a->count == ALGEBRA_LINES) return;
    snprintf(a->at[a->count].line, ALGEBRA_TEXT, "%s", line);
    snprintf(a->at[a->count].why, ALGEBRA_TEXT, "%s", why);
    a->count++;
}

void algebra_write(FILE *file, const Algebra *a) {
    for (int n = 0; n < a->count; n++) {
        fprintf(file, n == 0 ? ",\"algebra\":[{\"line\":" : ",\n{\"line\":");
        json_write_string(file, a->at[n].line);
        fprintf(file, ",\"why\":");
        json_write_string(file, a->at[n].why);
        putc('}', file);
    }
    if (a->count > 0) putc(']', file);
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* What the lines show of a row: first the number that is moved, then the others that have a weight;
 * of many only one, and "...". */
enum { FEW_TERMS = 4, FEW_PLACES = 10, NAME_PLACE = 16 };
typedef struct {
    const SoftmaxRow *row;
    char dx[NAME_PLACE], dy[FEW_TERMS][NAME_PLACE]; /* "dZ_0" */
    const char *c;                                  /* "c ", a factor; or "" */
    int terms;
    int64_t shown[FEW_TERMS];
    bool is_cut, is_masked; /* some have the weight 0, and no term */
} RowSum;

/* "dZ_0", or "dZ_i" in a long row; what is no word is called `otherwise`. */
static void name_place(const SoftmaxRow *r, const char *name, const char *otherwise, int64_t place,
                       char text[NAME_PLACE]) {
    char index[2] = {place == r->i ? 'i' : 'j'};
    size_t n = 0;
    while (isalpha((unsigned char)name[n])) n++;
    if (r->size <= FEW_PLACES) index[0] = (char)('0' + place);
    snprintf(text, NAME_PLACE, "%.10s_%s", n > 10 || name[n] ? otherwise : name, index);
}

static RowSum sum_of_row(const SoftmaxRow *r) {
    RowSum s = {.row = r, .c = r->factor == 1 ? "" : "c ", .terms = 1, .shown = {r->i}};
    int64_t others = 0;
    for (int64_t j = 0; j < r->size; j++) {
        others += j != r->i && r->p[j] != 0;
        s.is_masked = s.is_masked || r->p[j] == 0;
    }
    s.is_cut = others > 1 && (others >= FEW_TERMS || r->size > FEW_PLACES);
    for (int64_t j = 0; j < r->size && s.terms < (s.is_cut ? 2 : FEW_TERMS); j++)
        if (j != r->i && r->p[j] != 0) s.shown[s.terms++] = j;
    name_place(r, r->dx_name, "dx", r->i, s.dx);
    for (int n = 0; n < s.terms; n++) name_place(r, r->dy_name, "dy", s.shown[n], s.dy[n]);
    return s;
}

/* "`p dA_0` + `r dA_1` + `s dA_2`", from term n on. before: "p ", in front of each; or "". */
static void put_terms(const RowSum *s, int n, const char *sign, const char *before,
                      char line[ALGEBRA_TEXT]) {
    for (; n < s->terms; n++)
        put_text(line, ALGEBRA_TEXT, "%s`%s%c %s`", n > 0 ? sign : "", before, "prst"[n],
                 s -> dy[n]);
    if (s->is_cut) put_text(line, ALGEBRA_TEXT, "%s...", sign);
}

/* The rule, from a row of the Jacobian: four lines of letters. */
static void add_letters(const RowSum *s, Algebra *a) {
    char line[ALGEBRA_TEXT], why[ALGEBRA_TEXT], own[8];
    const char *c = s->c;
    const char *dy = s->dy[0];
    const int name = (int)strcspn(dy, "_");
    snprintf(own, sizeof own, "%sp ", c);
    snprintf(line, sizeof line, "`%s` = `%sp` (1 - `p`) `%s`", s->dx, c, dy);
    put_terms(s, 1, " - ", own, line);
    snprintf(why, sizeof why, "each change times its `%.*s`, added up", name, dy);
    if (*c) put_text(why, sizeof why, "; `c` = %.4g is the factor of the scores", s->row->factor);
    if (s->is_masked) put_text(why, sizeof why, "; a weight of 0 has no term");
    algebra_add(a, line, why);
    snprintf(line, sizeof line, "= `%sp %s` - <`%sp p %s`>", c, dy, c, dy);
    put_terms(s, 1, " - ", own, line);
    algebra_add(a, line, "`p` (1 - `p`) is `p` - `p p`");
    snprintf(line, sizeof line, "= `%sp %s` - `%sp` (<`p %s`>", c, dy, c, dy);
    put_terms(s, 1, " + ", "", line);
    put_text(line, sizeof line, ")");
    snprintf(why, sizeof why, "all that is subtracted has the factor `%sp`", c);
    algebra_add(a, line, why);
    snprintf(line, sizeof line, "= `%sp` (`%s` - [", c, dy);
    put_terms(s, 0, " + ", "", line);
    put_text(line, sizeof line, "])");
    snprintf(why, sizeof why, "framed: the weighted mean of `%.*s`", name, dy);
    algebra_add(a, line, why);
}

/* Writes a number with so many more decimals; returns what it then is. */
static double put_number(double x, Format format, int more, bool is_factor,
                         char line[ALGEBRA_TEXT]) {
    char text[NUMBER_TEXT];
    format.decimals += more;
    format_number(x, format, text);
    put_text(line, ALGEBRA_TEXT, *text == '-' && is_factor ? "(%s)" : "%s", text);
    return format_value(x, format);
}

/* Among masked numbers there may be any; they count 0 times. */
static double mean_of_row(const SoftmaxRow *r) {
    double mean = 0;
    for (int64_t j = 0; j < r->size; j++)
        if (r->p[j] != 0) mean += r->p[j] * r->dy[j];
    return mean;
}

/* "0.508 x 6.42 + 0.151 x 5.47"; returns what it is. */
static double put_sum(const RowSum *s, int more, char line[ALGEBRA_TEXT]) {
    const SoftmaxRow *r = s->row;
    double sum = 0;
    for (int n = 0; n < s->terms; n++) {
        const int64_t j = s->shown[n];
        if (n > 0) put_text(line, ALGEBRA_TEXT, " + ");
        const double weight = put_number(r->p[j], format_of(r->p, r->size), more, false, line);
        put_text(line, ALGEBRA_TEXT, " x ");
        sum += weight * put_number(r->dy[j], format_of(r->dy, r->size), more, true, line);
    }
    if (s->is_cut) put_text(line, ALGEBRA_TEXT, " + ...");
    return s->is_cut ? mean_of_row(r) : sum;
}

/* "= 0.508 x (6.42 - [4.01])", with the mean or with its sum; returns what it is as it is printed.
 */
static double put_numbers(const RowSum *s, bool is_mean, int more, char line[ALGEBRA_TEXT]) {
    const SoftmaxRow *r = s->row;
    const Format dy = format_of(r->dy, r->size);
    double outer = 1, mean;
    strcpy(line, "= ");
    if (*s->c) {
        outer = put_number(r->factor, format_of_constant(r->factor), 0, false, line);
        put_text(line, ALGEBRA_TEXT, " x ");
    }
    outer *= put_number(r->p[r->i], format_of(r->p, r->size), more, false, line);
    put_text(line, ALGEBRA_TEXT, " x (");
    const double own = put_number(r->dy[r->i], dy, more, false, line);
    put_text(line, ALGEBRA_TEXT, " - [");
    if (is_mean) mean = put_number(mean_of_row(r), dy, more, false, line);
    else mean = put_sum(s, more, line);
    put_text(line, ALGEBRA_TEXT, "])");
    return outer * (own - mean);
}

/* The last line in numbers, with as few decimals as give the result as it is printed. */
static void add_numbers(const RowSum *s, Algebra *a) {
    enum { MOST_MORE = 6 };
    const SoftmaxRow *r = s->row;
    const double x = r->factor * r->p[r->i] * (r->dy[r->i] - mean_of_row(r));
    const Format made = format_of(&x, 1);
    char sum[ALGEBRA_TEXT], mean[ALGEBRA_TEXT];
    for (int more = 0; more <= MOST_MORE; more++) {
        const double by_sum = format_value(put_numbers(s, false, more, sum), made);
        const double by_mean = format_value(put_numbers(s, true, more, mean), made);
        if (by_sum == by_mean && by_mean == format_value(x, made)) break;
    }
    algebra_add(a, sum, "");
    put_text(mean, sizeof mean, " = ");
    put_number(x, made, 0, false, mean);
    algebra_add(a, mean, "");
}

void algebra_of_softmax(const SoftmaxRow *row, Algebra *a) {
    char line[ALGEBRA_TEXT];
    const RowSum sum = sum_of_row(row);
    a->count = 0;
    if (row->p[row->i] != 0) {
        add_letters(&sum, a);
        add_numbers(&sum, a);
        return;
    }
    snprintf(line, sizeof line, "`%s` = 0", sum.dx);
    algebra_add(a, line, "its weight is 0, and so are all changes");
}
