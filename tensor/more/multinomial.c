/* multinomial.c - draws indices with given probabilities: the next token of a text.
 *
 * For one index, and without replacement, each weight is divided by a random q with the density
 * exp(-q), and the largest quotients win. q_i / w_i is when a clock first strikes that strikes w_i
 * times in a unit of time; so i is the first of all with the probability w_i / sum(w). With
 * replacement, an index is the first at which the sum of the weights up to it reaches a uniform
 * number. PyTorch draws in the same ways. B rows of V weights, n indices of each. */
#include "../operations/operations.h"

#include <math.h>

/* As PyTorch, which computes in the type of the weights. */
static double rounded(DType dtype, double x) { return dtype == F32 ? (double)(float)x : x; }

static void check_row(const double *w, int64_t row, int64_t V, int64_t least) {
    int64_t positive = 0;
    for (int64_t i = 0; i < V; i++) {
        positive += w[i] > 0;
        if (!(w[i] >= 0 && w[i] < (double)INFINITY))
            tensor_fail("multinomial: weight %lld of row %lld is %g: it must be finite and not "
                        "negative",
                        (long long)i, (long long)row, w[i]);
    }
    if (positive < least)
        tensor_fail("multinomial: row %lld has %lld weights above 0: it must have %lld or more",
                    (long long)row, (long long)positive, (long long)least);
}

/* w becomes -w / q; the result: where its n smallest elements are. PyTorch draws q in the order of
 * the weights in memory: by columns, if these are contiguous. */
static Tensor *draw_apart(const Tensor *weights, Tensor *w, const double *u, int64_t n) {
    int axes[TENSOR_MAX_DIMS];
    const int last = w->shape.ndim - 1;
    const int64_t V = w->shape.dim[last], numel = tensor_numel(w);
    double *quotient = w->data;
    tensor_sort_by_stride(weights, axes);
    for (int64_t i = 0; i < numel; i++) {
        const int64_t at = axes[last] == last ? i : i % V * (numel / V) + i / V;
        const double q = rounded(weights->dtype, -log1p(-u[at]));
        quotient[i] = -rounded(weights->dtype, quotient[i] / q);
    }
    Tensor *order = NULL;
    tensor_release(tensor_sort(w, &order));
    Tensor *first = order ? tensor_view_narrow(order, last, 0, n) : NULL;
    Tensor *index = first ? tensor_clone(first) : NULL;
    tensor_release(first);
    tensor_release(order);
    return index;
}

/* One row: w becomes its sums. Then the index is the first i with sum[i] / sum[V - 1] >= u. */
static void draw_again(DType dtype, int64_t V, double *w, int64_t n, const double *u, int64_t *y) {
    for (int64_t i = 1; i < V; i++) w[i] = rounded(dtype, w[i - 1] + w[i]);
    for (int64_t k = 0; k < n; k++) {
        int64_t high = V - 1;
        y[k] = 0; /* the index is from y[k] to high */
        while (y[k] < high) {
            const int64_t middle = (y[k] + high) / 2;
            if (rounded(dtype, w[middle] / w[V - 1]) < u[k]) y[k] = middle + 1;
            else high = middle;
        }
    }
}

Tensor *tensor_multinomial(const Tensor *weights, int64_t n, bool replacement) {
    if (!tensor_check_readable("multinomial", weights)) return NULL;
    Shape shape = weights->shape;
    const int last = shape.ndim - 1;
    if ((last != 0 && last != 1) || !dtype_is_float(weights->dtype) || n < 1)
        return tensor_fail(
            "multinomial: weights is %s %s and n is %lld: weights must be (V) or (B, "
            "V), float32 or float64, and n positive",
            tensor_dtype_name(weights->dtype), tensor_shape_text(shape), (long long)n);
    const bool apart = !replacement || n == 1;
    const int64_t V = shape.dim[last], B = last ? shape.dim[0] : 1;
    shape.dim[last] = n;
    Tensor *w = tensor_convert(weights, F64);
    Tensor *u = tensor_make(apart ? weights->shape : shape, F64);
    Tensor *index = u && !apart ? tensor_make(shape, I64) : NULL;
    for (int64_t b = 0; u && b < B; b++) check_row((double *)w->data + b * V, b, V, apart ? n : 1);
    const Generator before = *tensor_generator_current();
    if (!tensor_pending())
        tensor_draw_units(tensor_generator_current(), F64, tensor_numel(u), u->data);
    if (!tensor_pending() && apart) index = draw_apart(weights, w, u->data, n);
    for (int64_t b = 0; !tensor_pending() && !apart && b < B; b++)
        draw_again(weights->dtype, V, (double *)w->data + b * V, n, (double *)u->data + b * n,
                   (int64_t *)index->data + b * n);
    if (tensor_pending()) *tensor_generator_current() = before;
    tensor_release(w);
    tensor_release(u);
    if (!tensor_pending()) return index;
    tensor_release(index);
    return NULL;
}
