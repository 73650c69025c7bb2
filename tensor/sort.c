/* sort.c - sorting along the last dimension: a stable merge sort of positions. */
#include "internal.h"

#include <math.h>
#include <string.h>

/* Ascending, NaN behind everything. */
static bool element_before(const Tensor *row, int64_t i, int64_t j) {
    const int64_t s = row->stride[0];
    if (row->dtype == I64) /* a double does not tell all integers apart */
        return ((const int64_t *)row->data)[i * s] < ((const int64_t *)row->data)[j * s];
    const double a = tensor_get(row, i), b = tensor_get(row, j);
    return a < b || (isnan(b) && !isnan(a));
}

/* Sorts the positions in from[low .. high) by merging sorted halves; scratch is as long. */
static void merge_sort(const Tensor *row, int64_t *from, int64_t *scratch, int64_t low,
                       int64_t high) {
    if (high - low < 2) return;
    int64_t middle = low + (high - low) / 2;
    merge_sort(row, from, scratch, low, middle);
    merge_sort(row, from, scratch, middle, high);
    int64_t i = low, j = middle;
    for (int64_t k = low; k < high; k++) {
        bool right = i == middle || (j < high && element_before(row, from[j], from[i]));
        scratch[k] = right ? from[j++] : from[i++];
    }
    memcpy(from + low, scratch + low, (size_t)(high - low) * sizeof *from);
}

/* One row: order receives the sorted positions, out the elements in that order. */
static void sort_row(const Tensor *row, int64_t *order, int64_t *scratch, char *out) {
    const int64_t n = row->shape.dim[0], size = (int64_t)dtype_size(row->dtype);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    merge_sort(row, order, scratch, 0, n);
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * size, (char *)row->data + order[i] * row->stride[0] * size, (size_t)size);
}

static bool sort_rows(const Tensor *x, Tensor *y, Tensor *order) {
    Tensor *source = tensor_contiguous(x);
    const int64_t n = x->shape.ndim ? x->shape.dim[x->shape.ndim - 1] : 1;
    Tensor *scratch = tensor_make(SHAPE(n), I64);
    const int64_t rows = n ? tensor_numel(x) / n : 0, size = n * (int64_t)dtype_size(x->dtype);
    for (int64_t r = 0; scratch && source && r < rows; r++) {
        Tensor row = {.shape = SHAPE(n), .stride = {1}, .dtype = x->dtype};
        row.data = (char *)source->data + r * size;
        sort_row(&row, (int64_t *)order->data + r * n, scratch->data, (char *)y->data + r * size);
    }
    tensor_release(source);
    tensor_release(scratch);
    return !tensor_pending();
}

Tensor *tensor_sort(const Tensor *x, Tensor **indices) {
    if (indices) *indices = NULL;
    if (!x) return tensor_fail("sort: the tensor is NULL");
    Tensor *y = tensor_make(x->shape, x->dtype);
    Tensor *order = y ? tensor_make(x->shape, I64) : NULL;
    bool sorted = order && sort_rows(x, y, order);
    if (indices && sorted) *indices = tensor_retain(order);
    tensor_release(order);
    if (sorted) return y;
    tensor_release(y);
    return NULL;
}
