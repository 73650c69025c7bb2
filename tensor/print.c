/* print.c - tensor_print: the text that PyTorch's print(x) writes, character for character.
 *
 * There are two passes over the elements that are shown. The first chooses one format for all of
 * them: "1." if all are whole, else four decimals, or scientific notation if the magnitudes differ
 * too much, or if one of them is very large or very small. The second writes them in right-aligned
 * columns and nested brackets. A tensor of more than 1000 elements shows only the first and last
 * three of each long dimension, and both passes read only these.
 *
 * Three details of PyTorch look like mistakes. They are kept, so that the texts are equal: zeros,
 * NaN and infinities do not count for the width of a column; an ellipsis counts as one element of a
 * line; the first suffix is placed as if it began two columns further right.
 *
 * Nothing is allocated. The recursion is at most TENSOR_MAX_DIMS deep. */
#include "operations/operations.h"

#include <math.h>
#include <string.h>

enum { EDGE = 3, SUMMARY_ABOVE = 1000, LINE_WIDTH = 80, INDENT = 7 /* "tensor(" */ };

/* Formats of floats: 1. or 1.0000 or 1.0000e+00 */
typedef enum { WHOLE, FIXED, SCIENTIFIC } Style;

typedef struct {
    const Tensor *x;
    FILE *file;
    int column;   /* of the next character */
    bool summary; /* long dimensions show their first and last elements only */
    Style style;
    double smallest, largest; /* magnitudes, of the shown elements that are finite and not 0 */
    int width;                /* of a column */
    char text[32]; /* the longest are -9223372036854775808 and, in floats, -1.7977e+308 */
} Printer;

/* ---- elements ------------------------------------------------------------------------------ */

/* at: in elements, from the first element of x */
static const char *element_text(Printer *p, int64_t at) {
    static const char *const format[] = {"%.0f.", "%.4f", "%.4e"}; /* by Style */
    const double value = tensor_read_element(p->x, at);
    if (p->x->dtype == BOOL) return value != 0 ? "True" : "False";
    if (isnan(value)) return "nan"; /* C may write -nan too */
    if (isinf(value)) return value < 0 ? "-inf" : "inf";
    if (p->x->dtype != I64) tensor_snprintf(p->text, sizeof p->text, format[p->style], value);
    else snprintf(p->text, sizeof p->text, "%lld", (long long)((const int64_t *)p->x->data)[at]);
    return p->text;
}

/* ---- the first pass: one format for all ---------------------------------------------------- */

typedef void Visit(Printer *p, int64_t at);

/* The index shown after index i. */
static int64_t next_shown(const Printer *p, int dim, int64_t i) {
    int64_t size = p->x->shape.dim[dim];
    return p->summary && size > 2 * EDGE && i == EDGE - 1 ? size - EDGE : i + 1;
}

/* Does the element count for the format and the width? */
static bool counts(const Printer *p, int64_t at) {
    double value = tensor_read_element(p->x, at);
    return !dtype_is_float(p->x->dtype) || (isfinite(value) && value != 0);
}

static void visit_shown(Printer *p, int dim, int64_t at, Visit *visit) {
    if (dim == p->x->shape.ndim) {
        if (counts(p, at)) visit(p, at);
        return;
    }
    for (int64_t i = 0; i < p->x->shape.dim[dim]; i = next_shown(p, dim, i))
        visit_shown(p, dim + 1, at + i * p->x->stride[dim], visit);
}

static void measure_magnitude(Printer *p, int64_t at) {
    double value = tensor_read_element(p->x, at);
    p->smallest = fmin(p->smallest, fabs(value));
    p->largest = fmax(p->largest, fabs(value));
    if (value != ceil(value)) p->style = FIXED;
}

static void measure_width(Printer *p, int64_t at) {
    int width = (int)strlen(element_text(p, at));
    if (width > p->width) p->width = width;
}

static void choose_format(Printer *p) {
    if (dtype_is_float(p->x->dtype)) visit_shown(p, 0, 0, measure_magnitude);
    if (p->largest / p->smallest > 1000 || p->largest > 1e8 || p->smallest < 1e-4)
        p->style = SCIENTIFIC;
    visit_shown(p, 0, 0, measure_width);
}

/* ---- the second pass: the text ------------------------------------------------------------- */

static void write_text(Printer *p, const char *text) {
    const char *newline = strrchr(text, '\n');
    fputs(text, p->file);
    if (newline) p->column = 0;
    p->column += (int)strlen(newline ? newline + 1 : text);
}

static void write_right(Printer *p, int width, const char *text) {
    for (int length = (int)strlen(text); length < width; length++) write_text(p, " ");
    write_text(p, text);
}

/* Writes the text between item n - 1 and item n of a dimension. Elements: ", ", or ",\n" at the end
 * of a full line. Slices: ",\n" and blank lines. */
static void separate(Printer *p, int dim, int64_t n) {
    int inner = p->x->shape.ndim - 1 - dim;                      /* dimensions of an item */
    int per_line = (LINE_WIDTH - INDENT - dim) / (p->width + 2); /* 2 or more */
    if (n == 0) return;
    bool fits = inner == 0 && n % per_line != 0;
    write_text(p, fits ? ", " : ",\n");
    for (int blank = 1; blank < inner; blank++) write_text(p, "\n");
    write_right(p, fits ? 0 : INDENT + dim + 1, "");
}

static void write_slice(Printer *p, int dim, int64_t at) {
    const Tensor *x = p->x;
    int64_t n = 0; /* items written, the ellipsis included */
    if (dim == x->shape.ndim) {
        write_right(p, p->width, element_text(p, at));
        return;
    }
    write_text(p, "[");
    for (int64_t i = 0; i < x->shape.dim[dim]; i = next_shown(p, dim, i)) {
        separate(p, dim, n++);
        write_slice(p, dim + 1, at + i * x->stride[dim]);
        if (next_shown(p, dim, i) > i + 1) {
            separate(p, dim, n++);
            write_text(p, dim == x->shape.ndim - 1 ? " ..." : "...");
        }
    }
    write_text(p, "]");
}

/* ---- suffixes: size, dtype, grad_fn -------------------------------------------------------- */

static void write_suffix(Printer *p, const char *before, const char *text, const char *after) {
    char suffix[256]; /* the longest names a shape, in up to 196 bytes */
    int length = snprintf(suffix, sizeof suffix, "%s%s%s", before, text, after);
    bool fits = p->column + length + 2 <= LINE_WIDTH;
    write_text(p, fits ? ", " : ",\n");
    write_right(p, fits ? 0 : INDENT + length, suffix);
}

/* The dtype is written where the elements do not show it: a float that is not of the default type,
 * and integers and bools of a tensor without elements. */
static void write_suffixes(Printer *p, bool empty) {
    const Tensor *x = p->x;
    bool named = x->dtype != tensor_default_dtype() && (empty || dtype_is_float(x->dtype));
    p->column += 2; /* as in PyTorch, for the first suffix only */
    if (empty && x->shape.ndim != 1) write_suffix(p, "size=", tensor_shape_text(x->shape), "");
    if (named) write_suffix(p, "dtype=torch.", tensor_dtype_name(x->dtype), "");
    if (x->requires_grad && x->grad_fn) write_suffix(p, "grad_fn=<", x->grad_fn, ">");
    else if (x->requires_grad) write_suffix(p, "requires_grad=True", "", "");
}

bool tensor_print(const Tensor *x, FILE *file) {
    if (tensor_pending() || !tensor_check_readable("print", x) ||
        !tensor_check_given("print", "file", file))
        return false;
    int64_t numel = tensor_numel(x);
    Printer p = {.x = x, .file = file, .smallest = HUGE_VAL, .width = 1};
    p.summary = numel > SUMMARY_ABOVE;
    if (x->is_parameter) write_text(&p, "Parameter containing:\n");
    write_text(&p, "tensor(");
    if (numel > 0) choose_format(&p);
    if (numel > 0) write_slice(&p, 0, 0);
    else write_text(&p, "[]");
    write_suffixes(&p, numel == 0);
    write_text(&p, ")\n");

    /* An error of the disk is reported at the flush. */
    bool written = fflush(file) == 0 && !ferror(file);
    return written || tensor_fail("print: the file could not be written");
}
