/* mask.c - which keys a query may attend to: what is demanded of an AttentionMask, and its parts as
 * the kernel of masked_softmax takes them. B batch, H heads, Q queries, K keys, W windows. */
#include "../op.h"

/* ---- what is demanded ---------------------------------------------------------------------- */

/* lens: (B) or (B, Q) */
static int64_t length_of(const Tensor *lens, int64_t b, int64_t q) {
    const int64_t step = lens->shape.ndim == 2 ? lens->stride[1] : 0;
    return ((const int64_t *)lens->data)[b * lens->stride[0] + q * step];
}

static bool lengths_fit(const char *who, const Tensor *lens, Shape scores) {
    const int64_t B = scores.dim[0], Q = scores.dim[2];
    const Shape *l = &lens->shape;
    const bool each = shape_equal(*l, SHAPE(B, Q));
    if (lens->dtype != I64)
        tensor_fail("%s: valid_lens is %s: it must be int64", who, tensor_dtype_name(lens->dtype));
    else if (!each && !shape_equal(*l, SHAPE(B)))
        tensor_fail("%s: valid_lens is %s: it must be (B) or (B, Q), here %s or %s", who,
                    tensor_shape_text(*l), tensor_shape_text(SHAPE(B)),
                    tensor_shape_text(SHAPE(B, Q)));
    for (int64_t i = 0; !tensor_pending() && i < tensor_numel(lens); i++) {
        const int64_t b = each ? i / Q : i, q = each ? i % Q : 0;
        if (length_of(lens, b, q) < 0)
            tensor_fail("%s: valid_lens has %lld: a length must not be negative", who,
                        (long long)length_of(lens, b, q));
    }
    return !tensor_pending();
}

static bool keep_fits(const char *who, const Tensor *keep, Shape scores) {
    Shape both;
    if (keep->dtype != BOOL)
        tensor_fail("%s: keep is %s: it must be bool", who, tensor_dtype_name(keep->dtype));
    else if (!shape_broadcast(keep->shape, scores, &both) || !shape_equal(both, scores))
        tensor_fail("%s: keep is %s: it must broadcast to (B, H, Q, K), here %s", who,
                    tensor_shape_text(keep->shape), tensor_shape_text(scores));
    return !tensor_pending();
}

static bool window_fits(const char *who, const Tensor *window, Shape scores, DType dtype) {
    const int64_t B = scores.dim[0], Q = scores.dim[2], K = scores.dim[3];
    const Shape *w = &window->shape;
    if (window->dtype != dtype)
        tensor_fail("%s: window is %s and the scores are %s: the types must be equal", who,
                    tensor_dtype_name(window->dtype), tensor_dtype_name(dtype));
    else if (w->ndim != 3 || w->dim[1] != Q || w->dim[2] != K)
        tensor_fail("%s: window is %s: it must be (windows, Q, K), here (windows, %lld, %lld)", who,
                    tensor_shape_text(*w), (long long)Q, (long long)K);
    else if (w->dim[0] == 0 || B % w->dim[0])
        tensor_fail("%s: window is %s: the number of windows %lld must divide the batch size %lld",
                    who, tensor_shape_text(*w), (long long)w->dim[0], (long long)B);
    else if (window->requires_grad)
        tensor_fail("%s: window requires a gradient and is a constant: ag_detach it, or add it to "
                    "the scores",
                    who);
    return !tensor_pending();
}

bool ag_mask_fits(const char *who, AttentionMask mask, Shape scores, DType dtype) {
    return !tensor_pending() && (!mask.valid_lens || lengths_fit(who, mask.valid_lens, scores)) &&
           (!mask.keep || keep_fits(who, mask.keep, scores)) &&
           (!mask.window || window_fits(who, mask.window, scores, dtype));
}

/* ---- its parts ----------------------------------------------------------------------------- */

/* I64 (B, 1, Q, 1): causal and valid_lens are both a number of keys per query. */
static Tensor *row_lengths(const Tensor *lens, bool causal, Shape scores) {
    const int64_t B = scores.dim[0], Q = scores.dim[2], K = scores.dim[3];
    Tensor *rows = tensor_make(SHAPE(B, 1, Q, 1), I64);
    int64_t *length = rows ? rows->data : NULL;
    for (int64_t b = 0; length && b < B; b++)
        for (int64_t q = 0; q < Q; q++, length++) {
            *length = lens ? length_of(lens, b, q) : K;
            if (causal && *length > q + 1) *length = q + 1;
        }
    return rows;
}

Tensor ag_split_heads(const Tensor *x, int64_t heads) {
    Tensor view = *x;
    if (x->shape.ndim == 4) return view;
    view.shape = SHAPE(x->shape.dim[0] / heads, heads, x->shape.dim[1], x->shape.dim[2]);
    for (int d = 3; d > 0; d--) view.stride[d] = x->stride[d - 1];
    view.stride[0] = heads * x->stride[0];
    return view;
}

/* Missing dimensions and sizes of 1 repeat. */
Tensor ag_split_windows(const Tensor *x, const MaskView *mask) {
    const int lead = 4 - x->shape.ndim;
    int64_t stride[4] = {0};
    Shape shape = mask->scores;
    Tensor view = *x;
    for (int d = lead; d < 4; d++) {
        if (x->shape.dim[d - lead] > 1) stride[d] = x->stride[d - lead];
        if (d >= 2) shape.dim[d] = x->shape.dim[d - lead];
    }
    view.shape = SHAPE(shape.dim[0] / mask->windows, mask->windows, shape.dim[1], shape.dim[2],
                       shape.dim[3]);
    view.stride[0] = mask->windows * stride[0];
    for (int d = 0; d < 4; d++) view.stride[d + 1] = stride[d];
    return view;
}

bool ag_mask_open(MaskView *mask, const Node *n, int first, Shape scores) {
    static const bool yes = true;
    static const double zero; /* its bits are 0 in both float types */
    const Tensor *const *part = (const Tensor *const *)n->in + first, *window = part[2];
    const DType dtype = n->in[0]->dtype;
    const AttentionMask whole = {part[0], part[1], window, n->at.causal};
    if (!ag_mask_fits(n->op->name, whole, scores, dtype)) return false;

    *mask = (MaskView){.scores = scores, .windows = window ? window->shape.dim[0] : 1};
    mask->row_lengths = row_lengths(part[0], n->at.causal, scores);
    if (!mask->row_lengths) return false;
    const Tensor all = {.dtype = BOOL, .data = (void *)(uintptr_t)&yes};
    const Tensor nothing = {.dtype = dtype, .data = (void *)(uintptr_t)&zero};
    mask->lengths = ag_split_windows(mask->row_lengths, mask);
    mask->keep = ag_split_windows(part[1] ? part[1] : &all, mask);
    mask->window = ag_split_windows(&nothing, mask);
    if (window) { /* (W, Q, K) as (1, W, 1, Q, K) */
        mask->window.data = window->data;
        mask->window.stride[1] = window->stride[0];
        mask->window.stride[3] = window->stride[1];
        mask->window.stride[4] = window->stride[2];
    }
    return true;
}

void ag_mask_close(MaskView *mask) { tensor_release(mask->row_lengths); }
