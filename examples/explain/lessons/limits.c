/* limits.c - how large a lesson can be: see limits.h.
 *
 * Writing a tape takes long, so its size is estimated: the lesson runs forward only, on a tape of
 * its own, and each line adds the bytes of its derivatives that are not 0. The lengths of numbers
 * are those of some elements of the tensors. */
#include "limits.h"

#include <math.h>
#include <string.h>

enum {
    MOST_JSON = 1 << 20,        /* bytes of a tape: tape_write_json's limit */
    MOST_DERIVATIVES = 1 << 22, /* of one input: the same */
    SAMPLE = 48                 /* elements of a tensor */
};

/* ---- the length of a number ------------------------------------------------------------------ */

/* Of a number in JSON, and a comma: "-0.0123456789012345678,". 0 for a 0, which is not written. */
static double length_of(double number, double digits) {
    const double size = fabs(number);
    if (size == 0) return 0;
    if (fabs(size * 100 - round(size * 100)) < 1e-9 || !isfinite(size)) return 7;
    const double zeros = size < 1 ? floor(-log10(size)) : 0;
    return digits + 3.3 + (zeros > 4 ? 4 : zeros);
}

static double digits_of(const Tensor *x) { return x->dtype == F64 ? 16.3 : 7.9; }

/* The mean length of the numbers of x. */
static double mean_length(const Tensor *x) {
    const int64_t n = tensor_numel(x), step = n / SAMPLE + 1;
    double sum = 0;
    int64_t seen = 0;
    for (int64_t i = 0; i < n; i += step, seen++)
        sum += length_of(lesson_element(x, i), digits_of(x));
    return seen ? sum / (double)seen : 0;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static bool is_any(const TapeLine *line, const char *ops) {
    const char *at = strstr(ops, line->op);
    const size_t size = strlen(line->op);
    return at && (at == ops || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0');
}

static double last_dim(const Tensor *x) { return (double)x->shape.dim[x->shape.ndim - 1]; }

/* A product has the derivatives of each of its sums by one factor: the numbers of the other. Those
 * of softmax are products of two weights. Others have one for each element, often 1. */
static double bytes_of_derivatives(const TapeLine *line, int k) {
    const double n = (double)tensor_numel(line->out);
    const double index = 1 + log10(n + 9); /* ,12 */
    const double inputs = (double)tensor_numel(line->in[k]);
    if (is_any(line, "matmul bmm linear") && k < 2) {
        const double length = mean_length(line->in[1 - k]);
        return n * last_dim(line->in[0]) * (length > 0 ? length + index : 0);
    }
    if (is_any(line, "softmax masked_softmax")) {
        const double K = last_dim(line->out);
        return n * K * (index + length_of(0.35 / (K * K), digits_of(line->out)));
    }
    const bool is_1 =
        is_any(line, "reshape transpose unsqueeze squeeze add sub sum relu masked_fill");
    return (n > inputs ? n : inputs) * (index + (is_1 ? 2 : digits_of(line->out) + 4));
}

static double bytes_of_line(const TapeLine *line) {
    const double each = digits_of(line->out) + 4, n = (double)tensor_numel(line->out);
    double bytes = 500 + n * 2 * each; /* the value and the gradient of the result */
    for (int k = 0; k < line->n_in; k++) {
        const Tensor *x = line->in[k];
        if (!x) continue;
        const double inputs = (double)tensor_numel(x);
        if (!x->grad_fn) bytes += inputs * 2 * each;
        if (!x->requires_grad) continue;
        if (inputs * n > MOST_DERIVATIVES) return HUGE_VAL;
        bytes += inputs * (each + 2) + bytes_of_derivatives(line, k);
    }
    return bytes;
}

/* ---- the lesson ------------------------------------------------------------------------------ */

/* Does the open tape fit into the JSON? */
static bool tape_fits(void) {
    double bytes = 0;
    TapeLine line;
    for (int i = 0; bytes <= MOST_JSON && tape_line(i, &line); i++)
        if (line.n_in > 0) bytes += bytes_of_line(&line);
    return bytes > 0 && bytes <= MOST_JSON;
}

static bool fits(void *context, const LessonOptions *options) {
    const Lesson *l = context;
    Lesson tried = {.number = l->number, .kind = l->kind, .options = *options, .pad = l->pad};
    tried.options.num_edits = 0;
    if (tensor_error()) return false;
    tensor_manual_seed(tried.options.seed);
    tape_begin();
    tape_keep_grads(true); /* so no result is let go */
    const bool built = l->kind->build(&tried) != NULL;
    const bool is_small = built && tape_fits();
    tape_end();
    lesson_let_go(&tried);
    if (tried.too_large) tensor_clear_error();
    return is_small;
}

void limits_find(Lesson *l) { settings_find_most(&l->most, l->number, &l->options, fits, l); }
