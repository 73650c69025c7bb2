/* check.c - the outline of a tape as JSON: see check.h. */
#include "check.h"

#include "../../../tensor/tensor.h"

#include <math.h>

enum { MOST = 1 << 20 }; /* elements of a tensor */

/* The error. what: the end of the sentence; number: of the line or the tensor. */
static bool wrong(const char *part, int64_t number, const char *what) {
    if (number >= 0) tensor_fail("not a tape: %s %lld %s", part, (long long)number, what);
    else tensor_fail("not a tape: %s %s", part, what);
    return false;
}

static bool is_array(const Json *value) { return value && value->kind == JSON_ARRAY; }

static bool is_whole(const Json *value, double low, double high) {
    return value && value->kind == JSON_NUMBER && value->number >= low && value->number <= high &&
           value->number == floor(value->number);
}

int64_t size_of_tensor(const Json *tensor) {
    const Json *shape = json_get(tensor, "shape");
    int64_t size = 1;
    if (!is_array(shape) || shape->count > TENSOR_MAX_DIMS) return -1;
    for (const Json *d = shape->first; d; d = d->next) {
        if (!is_whole(d, 0, MOST)) return -1;
        size *= (int64_t)d->number;
        if (size > MOST) return -1;
    }
    return size;
}

/* Is this a list of so many numbers? A string stands for NaN or an infinity. */
static bool is_list(const Json *value, int64_t size) {
    if (!is_array(value) || value->count != size) return false;
    for (const Json *x = value->first; x; x = x->next)
        if (x->kind != JSON_NUMBER && x->kind != JSON_STRING) return false;
    return true;
}

static bool check_tensor(const Json *tensor, int64_t t) {
    const int64_t size = size_of_tensor(tensor);
    const Json *grad = json_get(tensor, "grad");
    if (size < 0) return wrong("tensor", t, "has no shape");
    if (!is_list(json_get(tensor, "value"), size))
        return wrong("tensor", t, "does not have as many values as its shape says");
    if (grad && !is_list(grad, size))
        return wrong("tensor", t, "does not have as many gradients as its shape says");
    return true;
}

/* The reason why all of a column is 0, or pairs of an element of the result and a number. */
static bool check_column(const Json *column, int64_t rows) {
    if (column->kind == JSON_STRING) return true;
    if (!is_array(column) || column->count % 2) return false;
    for (const Json *pair = column->first; pair; pair = pair->next->next)
        if (!is_whole(pair, 0, (double)rows - 1)) return false;
    return true;
}

/* Checks the derivative of a result of `rows` elements by an input x; NULL: by no tensor. */
static bool check_derivative(const Json *d, int64_t rows, const Json *x, int64_t line) {
    const Json *jacobian = json_get(d, "jacobian");
    if (d->kind == JSON_NULL) return true;
    const int64_t columns = x ? size_of_tensor(x) : -1;
    if (columns < 0 || !is_list(json_get(d, "dx"), columns))
        return wrong("line", line, "has a \"dx\" that does not fit its input");
    if (!json_get(x, "grad"))
        return wrong("line", line, "has a \"dx\" for an input without gradients");
    if (!is_array(jacobian) || jacobian->count != columns)
        return wrong("line", line, "has a \"jacobian\" that does not fit its input");
    for (const Json *column = jacobian->first; column; column = column->next)
        if (!check_column(column, rows)) return wrong("line", line, "has a broken \"jacobian\"");
    return true;
}

static bool check_line(const Json *line, const Json *tensors) {
    const Json *in = json_get(line, "in");
    const Json *out = json_get(line, "out");
    const Json *backward = json_get(line, "backward");
    const double last = (double)tensors->count - 1;
    const int64_t number = json_integer(line, "line", -1);
    if (number < 0 || !json_text(line, "op", NULL))
        return wrong("a line", -1, "has no \"line\" or no \"op\"");
    if (!is_array(in) || !is_whole(out, 0, last))
        return wrong("line", number, "has no \"in\" or no \"out\"");
    for (const Json *x = in->first; x; x = x->next)
        if (!is_whole(x, -1, last)) return wrong("line", number, "has an input that is no tensor");
    if (!is_array(backward) || (backward->count > 0 && backward->count != in->count))
        return wrong("line", number, "has a \"backward\" that does not fit its inputs");
    const int64_t rows = size_of_tensor(json_at(tensors, (int64_t)out->number));
    const Json *x = in->first;
    for (const Json *d = backward->first; d; d = d->next) {
        const Json *tensor = x->number >= 0 ? json_at(tensors, (int64_t)x->number) : NULL;
        if (!check_derivative(d, rows, tensor, number)) return false;
        x = x->next;
    }
    return true;
}

bool check_tape(const Json *tape) {
    const Json *lines = json_get(tape, "lines");
    const Json *tensors = json_get(tape, "tensors");
    int64_t t = 0;
    if (!is_array(lines) || !is_array(tensors))
        return wrong("it", -1, "has no \"lines\" or no \"tensors\"");
    if (lines->count == 0) return wrong("it", -1, "has no line");
    for (const Json *x = tensors->first; x; x = x->next)
        if (!check_tensor(x, t++)) return false;
    for (const Json *line = lines->first; line; line = line->next)
        if (!check_line(line, tensors)) return false;
    return true;
}
