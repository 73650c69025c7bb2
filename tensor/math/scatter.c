/* scatter.c - elements that an index chooses: gather, and scatter_add, its backward.
 *
 * If an index names an element of x often, scatter_add adds many numbers to it. Float32 additions
 * one after the other lose digits: after 10^6 additions of 0.1 the sum is 1 % wrong. So an element
 * with more than USES uses gets its sum from a double, which is rounded once. Up to USES uses are
 * added one after the other, with PyTorch's bits. Either way the order is y's, row-major, so the
 * bits depend on nothing else. */
#include "operations.h"

#include <string.h>

enum { USES = 128 };

/* A view of x at index 0 of dim, in y's shape: the kernels add index times the stride of dim. */
static Tensor at_start(const Tensor *x, int dim, Shape y) {
    const int lead = y.ndim - x->shape.ndim;
    Tensor start = {.shape = y, .dtype = x->dtype, .data = x->data};
    for (int d = 0; d < x->shape.ndim; d++)
        if (d != dim) start.stride[lead + d] = x->stride[d];
    return start;
}

void tensor_gather_elements(const Tensor *y, const Tensor *x, int dim, const Tensor *index) {
    const Tensor start = at_start(x, dim, y->shape);
    tensor_loop_strided(tensor_kernels()->gather[x->dtype], 3, (const Tensor *[]){y, &start, index},
                        x->stride[dim]);
}

/* ---- scatter_add ----------------------------------------------------------------------------- */

/* The dimensions of y, sorted: first those that x has too, but for dim, then those along which
 * elements of y are added to the same element of x. */
typedef struct {
    int axis[TENSOR_MAX_DIMS];
    int kept;     /* how many dimensions x has, too */
    int64_t uses; /* the product of the sizes of the others */
} Sorted;

static Sorted sort_dims(const Tensor *x, int dim, Shape y) {
    const int lead = y.ndim - x->shape.ndim;
    Sorted sorted = {.uses = 1};
    for (int d = lead; d < y.ndim; d++)
        if (d != lead + dim) sorted.axis[sorted.kept++] = d;
    int last = sorted.kept;
    for (int d = 0; d < y.ndim; d++) {
        if (d >= lead && d != lead + dim) continue;
        sorted.axis[last++] = d;
        sorted.uses *= y.dim[d];
    }
    return sorted;
}

/* A copy of index, contiguous, with its dimensions sorted: a line of `uses` numbers for each
 * position of the kept dimensions. It has size 1 where all positions have the same line. */
static Tensor *sorted_index(const Tensor *index, const Sorted *sorted, int ndim) {
    const int lead = ndim - index->shape.ndim;
    Tensor moved = *index;
    moved.shape.ndim = ndim;
    for (int k = 0; k < ndim; k++) {
        const int d = sorted->axis[k] - lead;
        moved.shape.dim[k] = d < 0 ? 1 : index->shape.dim[d];
        moved.stride[k] = d < 0 ? 0 : index->stride[d];
    }
    return tensor_convert(&moved, I64);
}

/* The inverse: x, sorted, as a view in y's order of dimensions, without a reference. */
static Tensor in_order(const Tensor *x, const Sorted *sorted) {
    Tensor back = *x;
    for (int k = 0; k < x->shape.ndim; k++) {
        back.shape.dim[sorted->axis[k]] = x->shape.dim[k];
        back.stride[sorted->axis[k]] = x->stride[k];
    }
    return back;
}

/* The index of scatter_add, in two parts. -1: nothing is added. */
typedef struct {
    Tensor *few;   /* the index where its element has USES uses or fewer, else -1 */
    Tensor *many;  /* where it has more, the number of a sum, else -1 */
    Tensor *owner; /* for each sum the index of its element, -1 if there is no such sum */
} Parts;

/* Makes the parts from few, which holds the index. counts: two numbers for each element along dim.
 * Returns the number of sums of all lines. */
static int64_t divide_index(const Parts *p, Tensor *counts) {
    const int64_t most = p->owner->shape.dim[p->owner->shape.ndim - 1];
    const int64_t lines = tensor_numel(p->owner) / most, uses = tensor_numel(p->few) / lines;
    int64_t *few = p->few->data, *many = p->many->data, *owner = p->owner->data, all = 0;
    int64_t *const count = counts->data, *const sum = count + counts->shape.dim[1];
    memset(owner, -1, (size_t)(lines * most) * sizeof *owner);
    for (int64_t line = 0; line < lines; line++, few += uses, many += uses, owner += most) {
        int64_t sums = 0;
        memset(count, 0, (size_t)counts->shape.dim[1] * sizeof *count);
        for (int64_t i = 0; i < uses; i++)
            if (++count[few[i]] == USES + 1) {
                sum[few[i]] = sums;
                owner[sums++] = few[i];
            }
        for (int64_t i = 0; i < uses; i++) {
            many[i] = count[few[i]] > USES ? sum[few[i]] : -1;
            if (many[i] >= 0) few[i] = -1;
        }
        all += sums;
    }
    return all;
}

static void add_to(StridedKernel *const *kernel, const Tensor *start, const Tensor *y,
                   const Tensor *index, int64_t step) {
    tensor_loop_strided(kernel[y->dtype], 3, (const Tensor *[]){start, y, index}, step);
}

/* Adds y to the sums, which have y's kept dimensions and one more dimension, the last of `sorted`;
 * then adds the sums to x. */
static void add_sums(const Tensor *x, const Tensor *y, int dim, const Parts *p,
                     const Sorted *sorted) {
    const int last = sorted->axis[y->shape.ndim - 1];
    const Tensor many = in_order(p->many, sorted), owner = in_order(p->owner, sorted);
    Shape shape = y->shape;
    for (int k = sorted->kept; k < y->shape.ndim; k++)
        shape.dim[sorted->axis[k]] = owner.shape.dim[sorted->axis[k]];
    Tensor *sums = tensor_make_zeros(shape, F64);
    if (!sums) return;
    Tensor to_sum = *sums;
    to_sum.shape = y->shape;
    for (int k = sorted->kept; k < y->shape.ndim; k++) to_sum.stride[sorted->axis[k]] = 0;
    add_to(tensor_kernels()->scatter_add_double, &to_sum, y, &many, sums->stride[last]);
    Tensor *rounded = tensor_convert(sums, y->dtype);
    const Tensor to_x = at_start(x, dim, shape);
    if (rounded) add_to(tensor_kernels()->scatter_add, &to_x, rounded, &owner, x->stride[dim]);
    tensor_release(rounded);
    tensor_release(sums);
}

void tensor_scatter_add_elements(const Tensor *x, const Tensor *y, int dim, const Tensor *index) {
    const Sorted sorted = sort_dims(x, dim, y->shape);
    const Tensor start = at_start(x, dim, y->shape);
    const int ndim = y->shape.ndim;
    if (sorted.uses <= USES || tensor_numel(y) == 0) {
        add_to(tensor_kernels()->scatter_add, &start, y, index, x->stride[dim]);
        return;
    }
    Parts p = {.few = sorted_index(index, &sorted, ndim)};
    Shape sums = p.few ? p.few->shape : SCALAR; /* USES uses or more for each */
    for (int k = sorted.kept; k < ndim; k++) sums.dim[k] = k < ndim - 1 ? 1 : sorted.uses / USES;
    p.many = p.few ? tensor_make(p.few->shape, I64) : NULL;
    p.owner = p.many ? tensor_make(sums, I64) : NULL;
    Tensor *counts =
        p.owner ? tensor_make(SHAPE(2, x->shape.ndim ? x->shape.dim[dim] : 1), I64) : NULL;
    if (counts) {
        const bool has_sums = divide_index(&p, counts) > 0;
        const Tensor few = in_order(p.few, &sorted);
        add_to(tensor_kernels()->scatter_add, &start, y, &few, x->stride[dim]);
        if (has_sums) add_sums(x, y, dim, &p, &sorted);
    }
    tensor_release(counts);
    tensor_release(p.owner);
    tensor_release(p.many);
    tensor_release(p.few);
}
