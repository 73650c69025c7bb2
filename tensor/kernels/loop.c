/* loop.c - runs kernels over whole tensors of any strides.
 *
 * The one idea: a Walk goes over the outer dimensions like an odometer and keeps one pointer per
 * operand; a kernel works along what is inside. Broadcasting is a stride of 0. Elementwise loops
 * first merge dimensions that lie evenly in all operands, so contiguous tensors take one call. What
 * is large is then cut for several threads, along a dimension in which no two positions are written
 * to one place. */
#include "../internal.h"

#include <math.h>
#include <string.h>

typedef struct {
    int n;         /* operands */
    int ndim;      /* dimensions that are left */
    bool in_tiles; /* of the last two: see run_tiles */
    int cut;       /* the one that is shared by threads */
    LoopKernel kernel;
    double s;
    int64_t size[TENSOR_MAX_DIMS];
    int64_t stride[TENSOR_MAX_DIMS][LOOP_OPERANDS]; /* in elements; gcc 12.2 loses the stores of
                                                     * walk_next if operands come first */
    void *data[LOOP_OPERANDS];
    int64_t element[LOOP_OPERANDS]; /* bytes of an element */
} Walk;

/* Operands aligned at the right with x[0], whose shape rules, without their last `inner`
 * dimensions. A scalar is walked as one row of one element. */
static void walk_start(Walk *walk, int n, const Tensor *const *x, int inner) {
    const int ndim = x[0]->shape.ndim - inner;
    walk->n = n, walk->in_tiles = false;
    walk->ndim = ndim > 0 ? ndim : 1;
    memcpy(walk->size, x[0]->shape.dim, sizeof walk->size);
    if (ndim <= 0) walk->size[0] = 1;
    for (int i = 0; i < n; i++) {
        int lead = walk->ndim - x[i]->shape.ndim + inner;
        walk->data[i] = x[i]->data, walk->element[i] = dtype_size(x[i]->dtype);
        for (int d = 0; d < walk->ndim; d++) {
            bool repeats = d < lead || (x[i]->shape.dim[d - lead] == 1 && walk->size[d] != 1);
            walk->stride[d][i] = repeats ? 0 : x[i]->stride[d - lead];
        }
    }
}

/* A dimension merges with the one before it if that goes on where it ends, in every operand. Those
 * of size 1 go, but for one if there is nothing else. */
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

/* So many steps along dimension d. */
static inline void walk_along(Walk *walk, int d, int64_t steps) {
    for (int i = 0; i < walk->n; i++)
        walk->data[i] = (char *)walk->data[i] + steps * walk->stride[d][i] * walk->element[i];
}

/* To the next position of the dimensions before ndim; false after the last one. */
static bool walk_next(Walk *walk, int ndim, int64_t *index) {
    for (int d = ndim - 1; d >= 0; d--) {
        bool wraps = ++index[d] == walk->size[d];
        walk_along(walk, d, wraps ? 1 - walk->size[d] : 1);
        if (!wraps) return true;
        index[d] = 0;
    }
    return false;
}

/* ---- turned operands --------------------------------------------------------------------------
 *
 * The elements of a transposed operand lie a row apart along the last dimension: each would bring
 * in a line of memory that is gone when the next element of it is wanted. So the walk goes tile by
 * tile, as many rows high as a line has floats. The part of such an operand that is in the tile is
 * turned, in registers, into room that stays in the first cache, and the kernel finds rows there.
 * (Doubles and integers, which stay small, are read where they are, tile by tile as well; and
 * bools, of which a line has many, as ever.) */

enum { TILE_ROWS = 16, TILE_COLUMNS = 256, TILE_ROOMS = 4 };

static bool is_turned(const Walk *walk, int d, int i) {
    return walk->stride[d][i] == 1 && walk->stride[walk->ndim - 1][i] > 1 &&
           walk->element[i] >= 4 && walk->size[d] >= TILE_ROWS;
}

/* If an operand is turned, its rows become the last dimension but one. */
static bool find_tiles(Walk *walk) {
    const int last = walk->ndim - 1;
    for (int i = 1; i < walk->n && walk->size[last] >= TILE_ROWS; i++)
        for (int d = 0; d < last; d++)
            if (is_turned(walk, d, i)) return swap_dims(walk, d, last - 1), true;
    return false;
}

/* Of an operand's last four columns turn_rows may read more than there are: cache_alloc leaves
 * something behind. */
static void run_tile(Walk tile, int64_t rows, int64_t columns) {
    _Alignas(64) float room[TILE_ROOMS][TILE_ROWS * TILE_COLUMNS];
    int64_t *down = tile.stride[tile.ndim - 2], *along = tile.stride[tile.ndim - 1];
    const int64_t row = (columns + TILE_ROWS - 1) & -TILE_ROWS; /* of a room */
    for (int64_t i = 0; i < rows; i++)                          /* y's part is fetched meanwhile */
        for (int64_t j = 0; j < columns; j += TILE_ROWS)
            __builtin_prefetch((char *)tile.data[0] + (i * down[0] + j) * tile.element[0], 1);
    for (int i = 1; i < tile.n && i <= TILE_ROOMS; i++) {
        if (down[i] != 1 || along[i] <= 1 || tile.element[i] != sizeof(float)) continue;
        kernels()->turn_rows[F32](columns, (void *[]){room[i - 1], tile.data[i]},
                                  (int64_t[]){row, along[i]}, (double)rows);
        tile.data[i] = room[i - 1], down[i] = row, along[i] = 1;
    }
    for (; rows > 0; rows--, walk_along(&tile, tile.ndim - 2, 1))
        tile.kernel(columns, tile.data, along, tile.s);
}

static void run_tiles(Walk *walk) {
    const int down = walk->ndim - 2, along = walk->ndim - 1;
    int64_t index[TENSOR_MAX_DIMS] = {0};
    do
        for (int64_t j = 0; j < walk->size[along]; j += TILE_COLUMNS)
            for (int64_t i = 0; i < walk->size[down]; i += TILE_ROWS) {
                Walk tile = *walk;
                walk_along(&tile, down, i);
                walk_along(&tile, along, j);
                run_tile(tile, MIN(walk->size[down] - i, TILE_ROWS),
                         MIN(walk->size[along] - j, TILE_COLUMNS));
            }
    while (walk_next(walk, down, index));
}

/* ---- the walk, on one thread or several ------------------------------------------------------ */

/* Calls the kernel along the last dimension at every position of the others. An empty row has a
 * result only where x[0] repeats along it. */
static void run_rows(Walk *walk) {
    Loop *const kernel = walk->kernel;
    const int outer = walk->ndim - 1;
    for (int d = walk->stride[outer][0] ? outer : outer - 1; d >= 0; d--)
        if (walk->size[d] == 0) return;
    int64_t index[TENSOR_MAX_DIMS] = {0};
    do kernel(walk->size[outer], walk->data, walk->stride[outer], walk->s);
    while (walk_next(walk, outer, index));
}

static void run(Walk *walk) { (walk->in_tiles ? run_tiles : run_rows)(walk); }

/* A piece of the last dimension is so long that every cut is where a vector begins. */
static int64_t piece(const Walk *walk, int d) { return d == walk->ndim - 1 ? 64 : 1; }

/* The pieces that dimension d gives; none where what is written repeats. */
static int64_t pieces_along(const Walk *walk, int d) {
    return walk->stride[d][0] == 0 ? 0 : (walk->size[d] + piece(walk, d) - 1) / piece(walk, d);
}

static void run_part(int worker, int64_t from, int64_t to, void *context) {
    (void)worker;
    Walk walk = *(const Walk *)context;
    int64_t *size = &walk.size[walk.cut], each = piece(&walk, walk.cut);
    *size = MIN(to * each, *size) - from * each;
    walk_along(&walk, walk.cut, from * each);
    run(&walk);
}

/* Cut along one of the first dims dimensions, the outer one of two that give as many pieces, or as
 * many as are of use. */
static void run_parts(Walk *walk, int dims, LoopKernel kernel, double s, double operations) {
    double elements = operations; /* on each */
    for (int d = 0; d < walk->ndim; d++) elements *= (double)walk->size[d];
    const int workers = workers_for(elements);
    int64_t most = 1;
    walk->kernel = kernel, walk->s = s, walk->cut = -1;
    for (int d = 0; d < dims && workers > 1; d++) {
        const int64_t pieces = MIN(pieces_along(walk, d), 16 * workers);
        if (pieces > most) most = pieces, walk->cut = d;
    }
    if (walk->cut < 0) run(walk);
    else work_in_parts(workers, pieces_along(walk, walk->cut), run_part, walk);
}

/* The common case, found without a walk: every operand is contiguous and of x[0]'s shape, or one
 * element. Since all broadcast to that shape, as many elements are the same shape. Their number, or
 * 0 where it is not so. */
static int64_t as_row(int n, const Tensor *const *x, void **data, int64_t *step) {
    int64_t row = 0;
    for (int i = 0; i < n; i++) {
        int64_t numel = 1;
        for (int d = x[i]->shape.ndim - 1; d >= 0; d--) {
            const int64_t size = x[i]->shape.dim[d];
            if (size != 1 && x[i]->stride[d] != numel) return 0;
            numel *= size;
        }
        if (i == 0) row = numel;
        if (numel != 1 && numel != row) return 0;
        data[i] = x[i]->data;
        step[i] = numel == row;
    }
    return row;
}

void loop_operations(LoopKernel kernel, int n, const Tensor *const *x, double s,
                     double operations) {
    void *data[LOOP_OPERANDS];
    int64_t step[LOOP_OPERANDS];
    const int64_t row = as_row(n, x, data, step);
    if (row > 0 && workers_for((double)row * operations) == 1) {
        kernel(row, data, step, s);
        return;
    }
    if (tensor_numel(x[0]) == 0) return;
    Walk walk;
    walk_start(&walk, n, x, 0);
    for (int d = 0; d < walk.ndim - 1; d++) /* what is written goes along its own rows */
        if (is_turned(&walk, d, 0)) swap_dims(&walk, d, walk.ndim - 1);
    merge_dims(&walk);
    walk.in_tiles = operations == 1 && find_tiles(&walk);
    run_parts(&walk, walk.ndim, kernel, s, operations);
}

void loop_elements(LoopKernel kernel, int n, const Tensor *const *x, double s) {
    loop_operations(kernel, n, x, s, 1);
}

void loop_rows_along(LoopKernel kernel, int dim, int n, const Tensor *const *x, double s) {
    Walk walk;
    walk_start(&walk, n, x, 0);
    swap_dims(&walk, dim, walk.ndim - 1);
    run_parts(&walk, walk.ndim - 1, kernel, s, 1);
}

void loop_rows(LoopKernel kernel, int n, const Tensor *const *x, double s) {
    loop_rows_along(kernel, x[0]->shape.ndim ? x[0]->shape.ndim - 1 : 0, n, x, s);
}

void loop_columns(LoopKernel kernel, int n, const Tensor *const *x, double s, double operations) {
    Walk walk;
    walk_start(&walk, n, x, 0);
    run_parts(&walk, walk.ndim, kernel, s, operations);
}

/* ---- whole tensors ------------------------------------------------------------------------- */

void copy_elements(Tensor *to, const Tensor *from) {
    loop_elements(kernels()->convert[to->dtype][from->dtype], 2, (const Tensor *[]){to, from}, 0);
}

void fill_elements(Tensor *x, double value) {
    const Tensor number = {.dtype = F64, .data = &value};
    copy_elements(x, &number);
}

double read_element(const Tensor *x, int64_t offset) {
    double value;
    char *place = (char *)x->data + offset * dtype_size(x->dtype);
    kernels()->convert[F64][x->dtype](1, (void *[]){&value, place}, (int64_t[]){0, 0}, 0);
    return value;
}

void swap_bytes(Tensor *x) {
    const int64_t size = dtype_size(x->dtype);
    char *element = x->data;
    for (int64_t n = tensor_numel(x); n > 0; n--, element += size)
        for (int64_t i = 0; i < size / 2; i++) {
            const char moved = element[i];
            element[i] = element[size - 1 - i];
            element[size - 1 - i] = moved;
        }
}

void bytes_to_bools(Tensor *x) {
    unsigned char *byte = x->data;
    for (int64_t i = 0; i < tensor_numel(x); i++) byte[i] = byte[i] != 0;
}

Tensor *make_zeros(Shape shape, DType dtype) {
    Tensor *x = tensor_make(shape, dtype);
    if (x) memset(x->data, 0, (size_t)(tensor_numel(x) * dtype_size(dtype))); /* 0 in each type */
    return x;
}

void add_elements(const Tensor *to, const Tensor *x) {
    Loop *const add = kernels()->value[ELEMENTWISE_add][to->dtype];
    loop_elements(add, 3, (const Tensor *[]){to, to, x}, 0);
}

/* x at position 0 of dim, in y's shape: the kernels step from there by index times dim's stride. */
static Tensor at_start(const Tensor *x, int dim, Shape y) {
    const int lead = y.ndim - x->shape.ndim;
    Tensor start = {.shape = y, .dtype = x->dtype, .data = x->data};
    for (int d = 0; d < x->shape.ndim; d++)
        if (d != dim) start.stride[lead + d] = x->stride[d];
    return start;
}

void pick_elements(const Tensor *y, const Tensor *x, int dim, const Tensor *index) {
    const Tensor start = at_start(x, dim, y->shape);
    loop_operations(kernels()->pick[x->dtype], 3, (const Tensor *[]){y, &start, index},
                    (double)x->stride[dim], 2);
}

void put_elements(const Tensor *x, const Tensor *y, int dim, const Tensor *index) {
    const Tensor start = at_start(x, dim, y->shape);
    loop_operations(kernels()->put[x->dtype], 3, (const Tensor *[]){&start, y, index},
                    (double)x->stride[dim], 2);
}

Tensor *map_elements(LoopKernel kernel, Shape shape, DType dtype, int n, const Tensor *const *x,
                     double s) {
    Tensor *y = tensor_make(shape, dtype);
    const Tensor *operand[LOOP_OPERANDS] = {y};
    memcpy(operand + 1, x, (size_t)n * sizeof *x);
    if (y) loop_elements(kernel, n + 1, operand, s);
    return y;
}

Tensor *tensor_convert(const Tensor *x, DType dtype) {
    return map_elements(kernels()->convert[dtype][x->dtype], x->shape, dtype, 1, &x, 0);
}

/* The row kernel gets the output as a row of stride 0: its one element is the result. */
Tensor *tensor_reduce(const Tensor *x, LoopKernel kernel, int dim, DType out) {
    Shape kept = x->shape;
    kept.dim[dim] = 1;
    Tensor *y = tensor_make(kept, out);
    if (!y) return NULL;
    Tensor repeated = *y;
    repeated.shape = x->shape, repeated.stride[dim] = 0;
    loop_rows_along(kernel, dim, 2, (const Tensor *[]){&repeated, x}, 0);
    return y;
}

Tensor *tensor_sort(const Tensor *x, Tensor **indices) {
    if (indices) *indices = NULL;
    if (!readable("sort", x)) return NULL;
    Tensor *y = tensor_make(x->shape, x->dtype), *order = tensor_make(x->shape, I64);
    Tensor *scratch = tensor_make(x->shape, I64);
    const Tensor *const operand[] = {y, order, x, scratch};
    if (scratch) loop_rows(kernels()->sort[x->dtype], 4, operand, 0);
    if (scratch && indices) *indices = tensor_retain(order);
    if (!scratch) tensor_release(y), y = NULL;
    tensor_release(order), tensor_release(scratch);
    return y;
}

bool tensor_allclose(const Tensor *a, const Tensor *b, double rtol, double atol) {
    if (!a || !b || a->dtype != b->dtype || !shape_equal(a->shape, b->shape)) return false;
    if (!readable("allclose", a) || !readable("allclose", b)) return false;
    int64_t far = 0;
    const Tensor count = {.shape = a->shape, .dtype = I64, .data = &far}; /* one place for all */
    const Tensor bounds = {.dtype = F64, .data = (double[]){rtol, atol}};
    loop_elements(kernels()->count_far[a->dtype], 4, (const Tensor *[]){&count, a, b, &bounds}, 0);
    return far == 0;
}

double tensor_sum_of_squares(const Tensor *x) {
    double sum = (double)NAN;
    const Tensor total = {.shape = SHAPE(tensor_numel(x)), .dtype = F64, .data = &sum};
    Tensor *row = readable("sum_of_squares", x) ? tensor_reshape(x, SHAPE(tensor_numel(x))) : NULL;
    if (row && dtype_is_float(row->dtype))
        loop_rows(kernels()->squares[row->dtype], 2, (const Tensor *[]){&total, row}, 0);
    else if (row)
        tensor_fail("sum_of_squares: x is %s: it must be a float", tensor_dtype_name(row->dtype));
    tensor_release(row);
    return sum;
}

void tensor_divide(Tensor *y, double number) {
    void *const in_type = y->dtype == F32 ? (void *)&(float){(float)number} : &number;
    const Tensor divisor = {.dtype = y->dtype, .data = in_type};
    Loop *const kernel = kernels()->value[ELEMENTWISE_div][y->dtype];
    loop_elements(kernel, 3, (const Tensor *[]){y, y, &divisor}, 0);
}

/* Where the summed dimensions are rows that lie evenly, and neighbours along the last of the others
 * are neighbours in memory: numbers become the kernel's. */
static bool sums_columns(const Tensor *x, const bool *dims, int64_t *numbers) {
    int64_t rows = 1, step = 0, column = 0;
    bool found = false;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        if (x->shape.dim[d] == 1) continue;
        if (!dims[d] && !found) column = x->stride[d], found = true;
        if (dims[d] && rows > 1 && x->stride[d] != step * rows) return false;
        if (dims[d] && rows == 1) step = x->stride[d];
        if (dims[d]) rows *= x->shape.dim[d];
    }
    numbers[0] = rows, numbers[1] = step;
    return dtype_is_float(x->dtype) && column == 1 && rows > 1;
}

static Tensor *sum_columns(const Tensor *x, Shape result, const int64_t *numbers) {
    Tensor *y = tensor_make(result, x->dtype);
    Tensor first = *x; /* of each column */
    first.shape = result;
    const Tensor rows = {.dtype = I64, .data = (void *)(uintptr_t)numbers};
    const Tensor *const operand[] = {y, &first, &rows};
    if (y) loop_operations(kernels()->sum_columns[x->dtype], 3, operand, 0, (double)numbers[0]);
    return y;
}

/* The summed dimensions go last and become one row, unless they can stay where they are. */
Tensor *tensor_sum_dims(const Tensor *x, const bool *dims) {
    const DType out = dtype_is_float(x->dtype) ? x->dtype : I64;
    int64_t numbers[2], row = 1;
    Shape result = x->shape;
    int kept = 0;
    for (int d = 0; d < x->shape.ndim; d++)
        if (dims[d]) result.dim[d] = 1, row *= x->shape.dim[d];
        else kept++;
    if (kept == x->shape.ndim) return tensor_convert(x, out);
    if (sums_columns(x, dims, numbers)) return sum_columns(x, result, numbers);
    if (kept == 0 && tensor_is_contiguous(x)) { /* one row */
        Tensor *y = tensor_make(result, out);
        if (y) kernels()->sum[x->dtype](row, (void *[]){y->data, x->data}, (int64_t[]){0, 1}, 0);
        return y;
    }

    Tensor moved = *x;    /* a view for what follows alone */
    int to[] = {0, kept}; /* where the next dimension goes: one that is kept, or a summed one */
    for (int d = 0; d < x->shape.ndim; d++) {
        moved.shape.dim[to[dims[d]]] = x->shape.dim[d];
        moved.stride[to[dims[d]]++] = x->stride[d];
    }
    Shape rows = moved.shape;
    rows.ndim = kept + 1, rows.dim[kept] = row;
    Tensor *flat = tensor_reshape(&moved, rows);
    Tensor *sums = flat ? tensor_reduce(flat, kernels()->sum[x->dtype], kept, out) : NULL;
    tensor_release(flat);
    return reshape_own(sums, result);
}

void layer_norm_dw(Tensor *const dwb[2], const Tensor *x, const Tensor *dy, const Tensor *stats) {
    int64_t numbers[] = {tensor_numel(stats) / 3, dwb[0]->shape.dim[0]};
    Tensor first[] = {*x, *dy}; /* of each column */
    first[0].shape = first[1].shape = dwb[0]->shape;
    first[0].stride[0] = first[1].stride[0] = 1;
    const Tensor at = {.dtype = stats->dtype, .data = stats->data};
    const Tensor rows = {.dtype = I64, .data = numbers};
    const Tensor *const operand[] = {dwb[0], dwb[1], &first[0], &first[1], &at, &rows};
    loop_operations(kernels()->layer_norm_dw[x->dtype], 6, operand, 0, 2 * (double)numbers[0]);
}

Tensor *tensor_sum_to(const Tensor *x, Shape shape) {
    bool summed[TENSOR_MAX_DIMS] = {false};
    int lead = x->shape.ndim - shape.ndim;
    for (int d = 0; d < x->shape.ndim; d++)
        summed[d] = d < lead || (shape.dim[d - lead] == 1 && x->shape.dim[d] != 1);
    return reshape_own(tensor_sum_dims(x, summed), shape);
}

Tensor turned(const Tensor *x) {
    Tensor view = *x;
    const int row = x->shape.ndim - 2, column = x->shape.ndim - 1;
    swap(&view.shape.dim[row], &view.shape.dim[column]);
    swap(&view.stride[row], &view.stride[column]);
    return view;
}

/* ---- products ------------------------------------------------------------------------------ */

/* To a position of a walk at its beginning. */
static void walk_seek(Walk *walk, int64_t position, int64_t *index) {
    for (int d = walk->ndim - 1; d >= 0; position /= walk->size[d--]) {
        index[d] = position % walk->size[d];
        walk_along(walk, d, index[d]);
    }
}

/* A batch of products, each of them cut into slices, of rows or of columns of c. */
typedef struct {
    MatmulShape shape;
    Matmul *kernel;
    bool rows;
    int64_t slices, room; /* room: bytes of workspace for each worker */
    Walk walk;            /* over the batch: c, a, b */
} Products;

/* Slices begin at multiples of 64, where tiles do, the nearest ones. */
static int64_t slice_begin(int64_t size, int64_t slices, int64_t slice) {
    return slice == slices ? size : (size * slice / slices + 32) / 64 * 64;
}

static void multiply_slice(const Products *whole, MatmulShape s, void *const *data, int64_t slice) {
    const int along = whole->rows ? 0 : 1;
    int64_t *size = whole->rows ? &s.m : &s.n;
    const int64_t from = slice_begin(*size, whole->slices, slice);
    const int64_t bytes = from * whole->walk.element[0]; /* all are of one type */
    char *c = data[0], *a = data[1], *b = data[2];
    *size = slice_begin(*size, whole->slices, slice + 1) - from;
    if (whole->rows) a += bytes * s.a_stride[0];
    else b += bytes * s.b_stride[1];
    if (s.start) s.start = (const char *)s.start + bytes * s.start_stride[along];
    whole->kernel(&s, a, b, c + bytes * s.c_stride[along]);
}

static void multiply_part(int worker, int64_t from, int64_t to, void *context) {
    const Products *whole = context;
    Walk walk = whole->walk;
    MatmulShape s = whole->shape;
    int64_t index[TENSOR_MAX_DIMS] = {0};
    s.workspace = (char *)s.workspace + worker * whole->room;
    walk_seek(&walk, from / whole->slices, index);
    for (int64_t i = from; i < to; i++) {
        const bool sliced = whole->slices > 1;
        if (sliced) multiply_slice(whole, s, walk.data, i % whole->slices);
        else whole->kernel(&s, walk.data[1], walk.data[2], walk.data[0]);
        if (!sliced || (i + 1) % whole->slices == 0) walk_next(&walk, walk.ndim, index);
    }
}

/* Cut so that little is packed twice: each slice of columns packs its own part of b, and reads a
 * where it is, if a's rows are dense or its columns near, else packs all of it; each slice of rows
 * packs all of b. The last slice has half a tile at least. A large batch has something for every
 * worker as it is. */
static void cut(Products *whole, int64_t batch, int workers) {
    const MatmulShape *s = &whole->shape;
    const int64_t far = s->a_stride[1] > 512 ? 2 : 1;
    whole->rows = s->n < 64 * workers || (far * s->m >= s->n && s->a_stride[1] != 1);
    const int64_t size = whole->rows ? s->m : s->n, each = whole->rows ? 1 : size / workers / 256;
    whole->slices = MIN(workers * (each < 1 ? 1 : MIN(each, 4)), (size + 32) / 64);
    if (workers == 1 || batch >= 4 * workers || whole->slices < 1) whole->slices = 1;
}

/* A batch of dot products of short rows, or of numbers by them, is rows side by side for one
 * kernel. False if it is neither, or does not lie so. */
static bool multiply_rows(const MatmulShape *s, const Tensor *c, const Tensor *a, const Tensor *b) {
    const bool dots = s->n == 1 && s->a_stride[1] == 1 && s->b_stride[0] == 1;
    const bool rows = s->k == 1 && s->b_stride[1] == 1 && s->c_stride[1] == 1;
    const double size = (double)(dots ? s->k : s->n);
    if (s->m != 1 || !(dots || rows) || size > SHORT || c->dtype != F32) return false;
    const Tensor *const operand[] = {c, dots ? a : b, dots ? b : a};
    Walk walk;
    walk_start(&walk, 3, operand, 2);
    run_parts(&walk, walk.ndim, (dots ? kernels()->row_dots : kernels()->scale_rows)[F32], size,
              size);
    return true;
}

static void multiply(Products *whole, DType dtype, int64_t batch) {
    MatmulShape *s = &whole->shape;
    void *const *data = whole->walk.data;
    /* a vector of 8 multiplies at once */
    const int workers = workers_for((double)(batch * s->m * s->n) * (double)s->k / 8);
    whole->kernel = kernels()->matmul[dtype];
    whole->room = kernels()->matmul_workspace(s, (size_t)dtype_size(dtype));
    if (!(s->workspace = cache_alloc(workers * whole->room))) return;
    cut(whole, batch, workers);
    if (batch * whole->slices == 1) whole->kernel(s, data[1], data[2], data[0]);
    else work_in_parts(workers, batch * whole->slices, multiply_part, whole);
    cache_free(s->workspace, workers * whole->room);
}

Tensor *multiply_matrices(Shape shape, DType dtype, MatmulShape *s, const void *a, const void *b) {
    Tensor *c = tensor_make(shape, dtype);
    if (!c || tensor_numel(c) == 0) return c;
    /* as scalars, each of which a walk takes for a batch of one */
    const Tensor at_a = {.dtype = dtype, .data = (void *)(uintptr_t)a};
    const Tensor at_b = {.dtype = dtype, .data = (void *)(uintptr_t)b};
    const Tensor at_c = {.dtype = dtype, .data = c->data};
    Products whole;
    s->c_stride[0] = s->n, s->c_stride[1] = 1;
    if (!s->start && multiply_rows(s, &at_c, &at_a, &at_b)) return c;
    whole.shape = *s;
    walk_start(&whole.walk, 3, (const Tensor *[]){&at_c, &at_a, &at_b}, 2);
    multiply(&whole, dtype, 1);
    return c;
}

Tensor *tensor_matmul(const Tensor *a, const Tensor *b) {
    const int na = a->shape.ndim, nb = b->shape.ndim;
    Products whole;
    MatmulShape *s = &whole.shape;
    *s = (MatmulShape){.m = a->shape.dim[na - 2], .n = b->shape.dim[nb - 1]};
    s->k = a->shape.dim[na - 1];
    memcpy(s->a_stride, a->stride + na - 2, sizeof s->a_stride);
    memcpy(s->b_stride, b->stride + nb - 2, sizeof s->b_stride);
    if (na == 2 && nb == 2)
        return multiply_matrices(SHAPE(s->m, s->n), a->dtype, s, a->data, b->data);
    Shape shape, batch_a = a->shape, batch_b = b->shape;
    batch_a.ndim -= 2, batch_b.ndim -= 2;
    shape_broadcast(batch_a, batch_b, &shape);
    const int64_t batch = shape_numel(shape);
    shape.dim[shape.ndim++] = s->m, shape.dim[shape.ndim++] = s->n;
    Tensor *c = tensor_make(shape, a->dtype);
    if (!c || tensor_numel(c) == 0) return c;
    memcpy(s->c_stride, c->stride + shape.ndim - 2, sizeof s->c_stride);
    if (multiply_rows(s, c, a, b)) return c;
    walk_start(&whole.walk, 3, (const Tensor *[]){c, a, b}, 2);
    multiply(&whole, a->dtype, batch);
    return c;
}
