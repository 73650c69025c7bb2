/* loop.c - runs kernels on the elements of whole tensors, of any strides.
 *
 * The one idea: a kernel works on contiguous elements. A Walk visits every position of the outer
 * dimensions and has one pointer per operand. A strided operand, that is, one whose elements are
 * not contiguous along the inner dimension, is gathered into a workspace before the kernel runs; a
 * strided result is scattered from a workspace. A broadcast operand has a stride of 0. Large work
 * is cut along one dimension and shared by threads. */
#include "loop.h"

#include "../parts.h"

#include <string.h>

/* ---- the walk ------------------------------------------------------------------------------- */

void tensor_walk_start(Walk *walk, int n, const Tensor *const *x, int inner) {
    int ndim = 0;
    memset(walk, 0, sizeof *walk);
    for (int i = 0; i < n; i++)
        if (x[i] && x[i]->shape.ndim - inner > ndim) ndim = x[i]->shape.ndim - inner;
    walk->n = n;
    walk->ndim = ndim > 0 ? ndim : 1; /* a scalar is a row of one element */
    for (int d = 0; d < walk->ndim; d++) walk->size[d] = 1;
    for (int i = 0; i < n; i++) {
        if (!x[i]) continue;
        const int lead = walk->ndim - (x[i]->shape.ndim - inner);
        walk->data[i] = x[i]->data;
        walk->element[i] = dtype_size(x[i]->dtype);
        for (int d = lead > 0 ? lead : 0; d < walk->ndim; d++) {
            walk->stride[d][i] = x[i]->shape.dim[d - lead] == 1 ? 0 : x[i]->stride[d - lead];
            if (x[i]->shape.dim[d - lead] != 1) walk->size[d] = x[i]->shape.dim[d - lead];
        }
    }
}

void tensor_walk_along(Walk *walk, int d, int64_t steps) {
    for (int i = 0; i < walk->n; i++)
        if (walk->data[i])
            walk->data[i] = (char *)walk->data[i] + steps * walk->stride[d][i] * walk->element[i];
}

bool tensor_walk_next(Walk *walk, int ndim, int64_t *index) {
    for (int d = ndim - 1; d >= 0; d--) {
        const bool wraps = ++index[d] == walk->size[d];
        tensor_walk_along(walk, d, wraps ? 1 - walk->size[d] : 1);
        if (!wraps) return true;
        index[d] = 0;
    }
    return false;
}

/* A dimension merges with the one before it if one stride covers both, in every operand. Dimensions
 * of size 1 are dropped; if all have size 1, one dimension is left. */
static void merge_dims(Walk *walk) {
    int left = 0;
    for (int d = 0; d < walk->ndim; d++) {
        if (walk->size[d] == 1) continue;
        bool merges = left > 0;
        for (int i = 0; i < walk->n && merges; i++)
            merges = walk->stride[left - 1][i] == walk->stride[d][i] * walk->size[d];
        const int to = merges ? left - 1 : left++;
        walk->size[to] = merges ? walk->size[to] * walk->size[d] : walk->size[d];
        for (int i = 0; i < walk->n; i++) walk->stride[to][i] = walk->stride[d][i];
    }
    walk->ndim = left > 0 ? left : 1;
}

static void swap_dims(Walk *walk, int d, int e) {
    swap(&walk->size[d], &walk->size[e]);
    for (int i = 0; i < walk->n; i++) swap(&walk->stride[d][i], &walk->stride[e][i]);
}

/* ---- strided elements ------------------------------------------------------------------------ */

#ifdef __GNUC__
#define MAY_ALIAS __attribute__((may_alias))
#else
#define MAY_ALIAS
#endif
typedef uint32_t MAY_ALIAS Four;
typedef uint64_t MAY_ALIAS Eight;

/* to[i] = *from for n elements of `size` bytes: the row of a broadcast operand. */
static void repeat_element(int64_t size, int64_t n, void *to, const void *from) {
    switch (size) {
    case 1: memset(to, *(const unsigned char *)from, (size_t)n); break;
    case 4: {
        const Four element = *(const Four *)from;
        for (int64_t i = 0; i < n; i++) ((Four *)to)[i] = element;
        break;
    }
    default: {
        const Eight element = *(const Eight *)from;
        for (int64_t i = 0; i < n; i++) ((Eight *)to)[i] = element;
    }
    }
}

/* to[i to_stride] = from[i from_stride] for n elements of `size` bytes. */
static void copy_strided(int64_t size, int64_t n, void *to, int64_t to_stride, const void *from,
                         int64_t from_stride) {
    if (n > 0 && to_stride == 1 && from_stride == 0) {
        repeat_element(size, n, to, from);
        return;
    }
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            ((char *)to)[i * to_stride] = ((const char *)from)[i * from_stride];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((Four *)to)[i * to_stride] = ((const Four *)from)[i * from_stride];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((Eight *)to)[i * to_stride] = ((const Eight *)from)[i * from_stride];
    }
}

/* Is operand i a row whose elements are not contiguous? */
static bool row_is_strided(const Walk *walk, int i) {
    const int last = walk->ndim - 1;
    return walk->is_row[i] && walk->size[last] > 1 && walk->stride[last][i] != 1;
}

/* Calls an elementwise kernel for a row. Strided operands are gathered piece by piece. */
static void call_on_elements(const Walk *walk, void *const *data) {
    enum { PIECE = 128 };
    _Alignas(64) char buffer[LOOP_OPERANDS][PIECE * sizeof(double)];
    void *place[LOOP_OPERANDS];
    const int64_t *stride = walk->stride[walk->ndim - 1];
    const int64_t n = walk->size[walk->ndim - 1];
    for (int64_t from = 0; from < n; from += PIECE) {
        const int64_t m = MIN(n - from, PIECE);
        char *y = (char *)data[0] + from * stride[0] * walk->element[0];
        place[0] = stride[0] == 1 ? y : buffer[0];
        for (int i = 1; i < walk->n; i++) {
            char *x = (char *)data[i] + from * stride[i] * walk->element[i];
            const bool is_filled = from > 0 && stride[i] == 0;
            place[i] = stride[i] == 1 ? x : buffer[i];
            if (stride[i] != 1 && !is_filled)
                copy_strided(walk->element[i], m, buffer[i], 1, x, stride[i]);
        }
        walk->kernel(m, place, walk->s);
        if (stride[0] != 1) copy_strided(walk->element[0], m, y, stride[0], buffer[0], 1);
    }
}

/* The bytes of a workspace for `rows` rows of n elements, where each row begins a new cache line;
 * INT64_MAX on overflow, which an expanded tensor can cause. */
static int64_t bytes_of_rows(int64_t n, int64_t rows) {
    int64_t bytes;
    return multiply_sizes(n / 8 + 1, 64 * rows, &bytes) ? bytes : INT64_MAX;
}

/* Calls a row kernel. Strided rows are gathered into the worker's workspace. */
static void call_on_row(const Walk *walk, void *const *data) {
    void *place[LOOP_OPERANDS] = {NULL};
    char *buffer = walk->workspace;
    const int64_t *stride = walk->stride[walk->ndim - 1];
    const int64_t n = walk->size[walk->ndim - 1];
    for (int i = 0; i < walk->n; i++) {
        place[i] = data[i];
        if (!row_is_strided(walk, i)) continue;
        place[i] = buffer;
        buffer += bytes_of_rows(n, 1);
        if (i > 0) copy_strided(walk->element[i], n, place[i], 1, data[i], stride[i]);
    }
    walk->kernel(n, place, walk->s);
    if (row_is_strided(walk, 0)) copy_strided(walk->element[0], n, data[0], stride[0], place[0], 1);
}

static void call_strided(const Walk *walk, void *const *data) {
    const int last = walk->ndim - 1;
    walk->strided(walk->size[last], data, walk->stride[last], walk->step);
}

/* The result may be the operand itself. */
static void copy_row(const Walk *walk, void *const *data) {
    const int64_t *stride = walk->stride[walk->ndim - 1];
    const int64_t n = walk->size[walk->ndim - 1];
    if (stride[0] == 1 && stride[1] == 1) memmove(data[0], data[1], (size_t)(n * walk->element[0]));
    else copy_strided(walk->element[0], n, data[0], stride[0], data[1], stride[1]);
}

/* ---- one thread or several ------------------------------------------------------------------- */

/* Calls the kernel for each row: at every position of the outer dimensions, which are not empty,
 * for all rows along the dimension before the last (one if there is no such dimension). */
static void run(Walk *walk) {
    int64_t index[TENSOR_MAX_DIMS] = {0};
    void *data[LOOP_OPERANDS] = {NULL};
    int64_t step[LOOP_OPERANDS]; /* bytes from a row to the next */
    const int outer = walk->ndim - 2;
    const int64_t rows = outer < 0 ? 1 : walk->size[outer];
    const int64_t n = walk->size[walk->ndim - 1];
    const int operands = walk->n;
    for (int i = 0; i < operands; i++)
        step[i] = outer < 0 ? 0 : walk->stride[outer][i] * walk->element[i];
    do {
        memcpy(data, walk->data, (size_t)operands * sizeof *data);
        for (int64_t row = 0; row < rows; row++) {
            if (walk->call) walk->call(walk, data);
            else walk->kernel(n, data, walk->s);
            for (int i = 0; i < operands; i++)
                if (data[i]) data[i] = (char *)data[i] + step[i];
        }
    } while (tensor_walk_next(walk, outer, index));
}

/* The size of a piece of dimension d: 64 elements in the last dimension, so that every piece begins
 * at the boundary of a vector, else 1. */
static int64_t piece(const Walk *walk, int d) { return d == walk->ndim - 1 ? 64 : 1; }

/* The number of pieces of dimension d; 0 if the result repeats along it. */
static int64_t pieces_along(const Walk *walk, int d) {
    return walk->stride[d][0] == 0 ? 0 : (walk->size[d] + piece(walk, d) - 1) / piece(walk, d);
}

static void run_part(int worker, int64_t from, int64_t to, void *context) {
    Walk walk = *(const Walk *)context;
    const int64_t each = piece(&walk, walk.cut);
    walk.size[walk.cut] = MIN(to * each, walk.size[walk.cut]) - from * each;
    if (walk.workspace) walk.workspace += worker * walk.workspace_bytes;
    tensor_walk_along(&walk, walk.cut, from * each);
    run(&walk);
}

/* Cuts along one of the first `dims` dimensions: the one with the most pieces. More than 16 pieces
 * for each worker count as 16. If two dimensions have equally many, the outer one is cut. */
static void run_parts(Walk *walk, int dims, int workers) {
    int64_t most = 1;
    walk->cut = -1;
    if (workers == 1) dims = 0;
    for (int d = 0; d < dims; d++) {
        const int64_t pieces = MIN(pieces_along(walk, d), 16 * workers);
        if (pieces <= most) continue;
        most = pieces;
        walk->cut = d;
    }
    if (walk->cut < 0) run(walk);
    else tensor_work_in_parts(workers, pieces_along(walk, walk->cut), run_part, walk);
}

static int64_t walk_numel(const Walk *walk) {
    int64_t numel = 1;
    for (int d = 0; d < walk->ndim; d++)
        if (walk->size[d] == 0) return 0;
    for (int d = 0; d < walk->ndim; d++) numel *= walk->size[d];
    return numel;
}

/* ---- elementwise ----------------------------------------------------------------------------- */

/* The common case, which needs no walk: every operand is contiguous and of x[0]'s shape. Returns
 * the number of elements, or 0 in other cases. */
static int64_t as_row(int n, const Tensor *const *x, void **data) {
    for (int i = 0; i < n; i++) {
        if (!tensor_is_contiguous(x[i]) || !shape_equal(x[i]->shape, x[0]->shape)) return 0;
        data[i] = x[i]->data;
    }
    return tensor_numel(x[0]);
}

/* Moves the dimension in which the result has stride 1 to the end, then merges dimensions. */
static void arrange_dims(Walk *walk) {
    for (int d = 0; d < walk->ndim - 1; d++)
        if (walk->stride[d][0] == 1) swap_dims(walk, d, walk->ndim - 1);
    merge_dims(walk);
}

static void walk_elements(Kernel *kernel, int n, const Tensor *const *x, double s) {
    Walk walk;
    tensor_walk_start(&walk, n, x, 0);
    if (walk_numel(&walk) == 0) return;
    walk.kernel = kernel;
    walk.s = s;
    arrange_dims(&walk);
    for (int i = 0; i < n; i++) walk.is_row[i] = true;
    for (int i = 0; i < n; i++)
        if (row_is_strided(&walk, i)) walk.call = call_on_elements;
    run_parts(&walk, walk.ndim, tensor_workers_for((double)walk_numel(&walk)));
}

void tensor_loop_elements(Kernel *kernel, int n, const Tensor *const *x, double s) {
    void *data[LOOP_OPERANDS];
    const int64_t row = as_row(n, x, data);
    if (row > 0 && tensor_workers_for((double)row) == 1) kernel(row, data, s);
    else walk_elements(kernel, n, x, s);
}

void tensor_loop_copy(const Tensor *to, const Tensor *from) {
    Walk walk;
    tensor_walk_start(&walk, 2, (const Tensor *[]){to, from}, 0);
    if (walk_numel(&walk) == 0) return;
    walk.call = copy_row;
    arrange_dims(&walk);
    run_parts(&walk, walk.ndim, tensor_workers_for((double)walk_numel(&walk)));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A row of no elements has a result only if x[0] is a number for the row. */
static bool has_results(const Walk *walk) {
    const int last = walk->ndim - 1;
    for (int d = 0; d < last; d++)
        if (walk->size[d] == 0) return false;
    return walk->size[last] > 0 || !walk->is_row[0];
}

/* Is x a row along dim? (x may be broadcast along other dimensions.) */
static bool is_row(const Walk *walk, const Tensor *x, int dim) {
    const int lead = walk->ndim - (x ? x->shape.ndim : 0);
    return x && dim >= lead && x->shape.dim[dim - lead] == walk->size[walk->ndim - 1];
}

void tensor_loop_rows(Kernel *kernel, int dim, int n, const Tensor *const *x, double s) {
    tensor_loop_costly_rows(kernel, dim, n, x, s, 1);
}

void tensor_loop_costly_rows(Kernel *kernel, int dim, int n, const Tensor *const *x, double s,
                             double operations) {
    Walk walk;
    int strided = 0;
    while (!x[n - 1]) n--; /* absent operands at the end are NULL for the kernel in any case */
    tensor_walk_start(&walk, n, x, 0);
    swap_dims(&walk, dim, walk.ndim - 1);
    for (int i = 0; i < n; i++) walk.is_row[i] = is_row(&walk, x[i], dim);
    if (!has_results(&walk)) return;
    for (int i = 0; i < n; i++) strided += row_is_strided(&walk, i);
    const int workers = tensor_workers_for((double)walk_numel(&walk) * operations);
    if (strided) walk.call = call_on_row;
    walk.kernel = kernel;
    walk.s = s;
    const int64_t bytes = bytes_of_rows(walk.size[walk.ndim - 1], (int64_t)workers * strided);
    walk.workspace_bytes = bytes / workers;
    if (strided) walk.workspace = tensor_cache_alloc(bytes);
    if (!strided || walk.workspace) run_parts(&walk, walk.ndim - 1, workers);
    if (strided) tensor_cache_free(walk.workspace, bytes);
}

/* ---- elements that an index chooses ---------------------------------------------------------- */

void tensor_loop_strided(StridedKernel *kernel, int n, const Tensor *const *x, int64_t step) {
    Walk walk;
    tensor_walk_start(&walk, n, x, 0);
    if (walk_numel(&walk) == 0) return;
    walk.call = call_strided;
    walk.strided = kernel;
    walk.step = step;
    merge_dims(&walk);
    run_parts(&walk, walk.ndim, tensor_workers_for(2 * (double)walk_numel(&walk)));
}
