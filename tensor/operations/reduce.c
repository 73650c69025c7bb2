/* reduce.c - sums over dimensions, and other reductions of rows to a number. */
#include "operations.h"

#include "../parts.h"

#include <math.h>

Tensor *tensor_reduce(const Tensor *x, Kernel *kernel, int dim, DType out) {
    Shape kept = x->shape;
    kept.dim[dim] = 1;
    Tensor *y = tensor_make(kept, out);
    if (y) tensor_loop_rows(kernel, dim, 2, (const Tensor *[]){y, x}, 0);
    if (!tensor_pending()) return y;
    tensor_release(y); /* there was no memory to gather rows that are not contiguous */
    return NULL;
}

void tensor_divide(Tensor *y, double number) {
    Kernel *const div = tensor_kernels()->value[ELEMENTWISE_div][y->dtype];
    Number memory;
    const Tensor divisor = tensor_scalar(y->dtype, number, &memory);
    tensor_loop_elements(div, 3, (const Tensor *[]){y, y, &divisor}, 0);
}

double tensor_measure(const char *op, const Tensor *x, Kernel *const *kernel) {
    double y = (double)NAN;
    if (!tensor_check_readable(op, x)) return y;
    if (!dtype_is_float(x->dtype)) {
        tensor_fail("%s: x is %s: it must be a float", op, tensor_dtype_name(x->dtype));
        return y;
    }
    Tensor *dense = tensor_contiguous(x);
    if (dense) kernel[x->dtype](tensor_numel(x), (void *[]){&y, dense->data}, 0);
    tensor_release(dense);
    return y;
}

double tensor_sum_of_squares(const Tensor *x) {
    return tensor_measure("sum_of_squares", x, tensor_kernels()->squares);
}

/* ---- sums down columns ----------------------------------------------------------------------- */

/* A sum over the rows of (rows, columns), with one of the two kernels. */
typedef struct {
    SumRows *sum_rows;
    LayerNormDw *layer_norm_dw;
    int64_t rows, columns, step, size; /* size: bytes of an element */
    char *to;
    const char *x, *dy;
    void *mean, *scale;
} Columns;

/* Threads share the columns in groups of 64. */
static void sum_columns_part(int worker, int64_t from, int64_t to, void *context) {
    const Columns *c = context;
    const int64_t first = 64 * from, n = MIN(64 * to, c->columns) - first;
    const int64_t offset = first * c->size;
    (void)worker;
    if (c->sum_rows) c->sum_rows(c->rows, n, c->step, c->x + offset, c->to + offset);
    else
        c->layer_norm_dw(c->rows, n, c->step,
                         (void *[]){c->to + offset, (char *)(uintptr_t)c->x + offset,
                                    (char *)(uintptr_t)c->dy + offset, c->mean, c->scale});
}

static void sum_columns(Columns *c) {
    const int workers = tensor_workers_for((double)c->rows * (double)c->columns);
    tensor_work_in_parts(workers, (c->columns + 63) / 64, sum_columns_part, c);
}

/* Do the summed dimensions merge into rows with one stride, the others into contiguous columns? */
static bool are_columns(const Tensor *x, const bool *dims, Columns *c) {
    int64_t next = 1;
    c->rows = 1;
    c->columns = 1;
    c->step = 0;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        const int64_t size = x->shape.dim[d];
        if (size == 1) continue;
        if (!dims[d] && (x->stride[d] != next || c->rows > 1)) return false;
        if (!dims[d]) {
            c->columns *= size;
            next *= size;
            continue;
        }
        if (c->rows > 1 && x->stride[d] != c->step * c->rows) return false;
        if (c->rows == 1) c->step = x->stride[d];
        c->rows *= size;
    }
    return dtype_is_float(x->dtype) && c->rows > 1 && c->columns > 1;
}

void tensor_layer_norm_dw(Tensor *dw, const Tensor *x, const Tensor *dy, const Tensor *mean,
                          const Tensor *scale) {
    Columns c = {.layer_norm_dw = tensor_kernels()->layer_norm_dw[x->dtype],
                 .rows = tensor_numel(mean),
                 .columns = tensor_numel(dw),
                 .size = dtype_size(x->dtype),
                 .to = dw->data,
                 .x = x->data,
                 .dy = dy->data,
                 .mean = mean->data,
                 .scale = scale->data};
    c.step = c.columns;
    sum_columns(&c);
}

/* ---- sums over any dimensions ---------------------------------------------------------------- */

/* A view of x, or a copy if no view is possible: first the dimensions that are kept, then one last
 * dimension made of all summed ones. */
static Tensor *summed_last(const Tensor *x, const bool *dims, int kept) {
    Tensor moved = *x;
    int to[] = {0, kept}; /* where the next dimension goes: one that is kept, or a summed one */
    int64_t row = 1;
    for (int d = 0; d < x->shape.ndim; d++) {
        const int place = to[dims[d]]++;
        moved.shape.dim[place] = x->shape.dim[d];
        moved.stride[place] = x->stride[d];
        if (dims[d]) row *= x->shape.dim[d];
    }
    Shape rows = moved.shape;
    rows.ndim = kept + 1;
    rows.dim[kept] = row;
    return tensor_reshape(&moved, rows);
}

Tensor *tensor_sum_dims(const Tensor *x, const bool *dims) {
    const DType out = dtype_is_float(x->dtype) ? x->dtype : I64;
    Shape result = x->shape;
    Columns c = {.sum_rows = NULL};
    int kept = 0;
    for (int d = 0; d < x->shape.ndim; d++)
        if (dims[d]) result.dim[d] = 1;
        else kept++;
    if (kept == x->shape.ndim) return tensor_convert(x, out);
    if (are_columns(x, dims, &c)) {
        Tensor *y = tensor_make(result, out);
        c.sum_rows = tensor_kernels()->sum_rows[x->dtype];
        c.size = dtype_size(x->dtype);
        c.x = x->data;
        c.to = y ? y->data : NULL;
        if (y) sum_columns(&c);
        return y;
    }
    Tensor *rows = summed_last(x, dims, kept);
    Tensor *sums = rows ? tensor_reduce(rows, tensor_kernels()->sum[x->dtype], kept, out) : NULL;
    tensor_release(rows);
    return tensor_reshape_own(sums, result);
}

Tensor *tensor_sum_to(const Tensor *x, Shape shape) {
    bool summed[TENSOR_MAX_DIMS] = {false};
    const int lead = x->shape.ndim - shape.ndim;
    for (int d = 0; d < x->shape.ndim; d++)
        summed[d] = d < lead || (shape.dim[d - lead] == 1 && x->shape.dim[d] != 1);
    return tensor_reshape_own(tensor_sum_dims(x, summed), shape);
}
