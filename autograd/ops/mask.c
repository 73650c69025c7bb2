/* mask.c - which keys a query may attend to: checks an AttentionMask, and prepares its parts for
 * the kernels. B batch, H heads, Q queries, K keys. */
#include "../op.h"

/* ---- checks -------------------------------------------------------------------------------- */

static bool check_lengths(const char *who, const Tensor *lens, Shape scores) {
    const int64_t B = scores.dim[0], Q = scores.dim[2];
    const Shape l = lens->shape;
    if (lens->dtype != I64)
        tensor_fail("%s: valid_lens is %s: it must be int64; convert it with ag_to", who,
                    tensor_dtype_name(lens->dtype));
    else if (!shape_equal(l, SHAPE(B, Q)) && !shape_equal(l, SHAPE(B)))
        tensor_fail("%s: valid_lens is %s: it must be (B) or (B, Q), here %s or %s", who,
                    tensor_shape_text(l), tensor_shape_text(SHAPE(B)),
                    tensor_shape_text(SHAPE(B, Q)));
    const bool there = tensor_check_argument(who, "valid_lens", lens);
    Tensor *row = there ? tensor_contiguous(lens) : NULL;
    const int64_t *length = row ? row->data : NULL;
    for (int64_t i = 0; !tensor_pending() && i < tensor_numel(lens); i++)
        if (length[i] < 0)
            tensor_fail("%s: valid_lens has %lld: a length must not be negative", who,
                        (long long)length[i]);
    tensor_release(row);
    return !tensor_pending();
}

static bool check_broadcasts(const char *who, const char *part, const Tensor *x, Shape scores) {
    Shape both;
    return (tensor_shape_broadcast(x->shape, scores, &both) && shape_equal(both, scores)) ||
           tensor_fail("%s: %s is %s: it must broadcast to (B, H, Q, K), here %s", who, part,
                       tensor_shape_text(x->shape), tensor_shape_text(scores));
}

static bool check_keep(const char *who, const Tensor *keep, Shape scores) {
    if (keep->dtype != BOOL)
        return tensor_fail("%s: keep is %s: it must be bool; convert it with ag_to", who,
                           tensor_dtype_name(keep->dtype));
    return check_broadcasts(who, "keep", keep, scores);
}

/* False, with the error for a part that is added to scores of another type. */
static bool refuse_type(const char *who, const char *part, const Tensor *x, DType scores) {
    return tensor_fail("%s: %s is %s and the scores are %s: the types must be equal; convert %s "
                       "with ag_to",
                       who, part, tensor_dtype_name(x->dtype), tensor_dtype_name(scores), part);
}

static bool check_window(const char *who, const Tensor *window, Shape scores, DType dtype) {
    const int64_t B = scores.dim[0], Q = scores.dim[2], K = scores.dim[3];
    const Shape *w = &window->shape;
    if (window->dtype != dtype) refuse_type(who, "window", window, dtype);
    else if (w->ndim != 3 || w->dim[1] != Q || w->dim[2] != K)
        tensor_fail("%s: window is %s: it must be (windows, Q, K), here (windows, %lld, %lld)", who,
                    tensor_shape_text(*w), (long long)Q, (long long)K);
    else if (w->dim[0] == 0 || B % w->dim[0])
        tensor_fail("%s: window is %s: the number of windows %lld must divide the batch size %lld",
                    who, tensor_shape_text(*w), (long long)w->dim[0], (long long)B);
    else if (window->requires_grad)
        tensor_fail(
            "%s: window requires a gradient and is a constant: ag_detach it, or make it a bias",
            who);
    return !tensor_pending();
}

static bool check_bias(const char *who, const Tensor *bias, Shape scores, DType dtype) {
    if (bias->dtype != dtype) return refuse_type(who, "bias", bias, dtype);
    return check_broadcasts(who, "bias", bias, scores);
}

bool ag_mask_fits(const char *who, AttentionMask mask, Shape scores, DType dtype) {
    if (scores.ndim != 4)
        return tensor_fail("%s: the scores are %s: they must be (B, H, Q, K)", who,
                           tensor_shape_text(scores));
    return !tensor_pending() && (!mask.valid_lens || check_lengths(who, mask.valid_lens, scores)) &&
           (!mask.keep || check_keep(who, mask.keep, scores)) &&
           (!mask.window || check_window(who, mask.window, scores, dtype)) &&
           (!mask.bias || check_bias(who, mask.bias, scores, dtype));
}

/* ---- the parts as inputs of a node --------------------------------------------------------- */

/* A mask is const for the caller: no op writes its elements, the tape counts its references. */
void ag_mask_inputs(AttentionMask mask, Tensor **in) {
    in[0] = (Tensor *)mask.valid_lens;
    in[1] = (Tensor *)mask.keep;
    in[2] = (Tensor *)mask.window;
    in[3] = mask.bias;
}

/* The mask whose parts are the inputs from first on. additive_scores has only the first part. */
static AttentionMask mask_at(const Node *n, int first, bool causal) {
    Tensor *part[4] = {NULL};
    for (int i = 0; i < 4 && first + i < n->n_in; i++) part[i] = n->in[first + i];
    return (AttentionMask){part[0], part[1], part[2], part[3], causal};
}

Tensor *ag_mask_lengths(const Node *n, int first, bool causal, Shape scores) {
    const AttentionMask mask = mask_at(n, first, causal);
    if (!ag_mask_fits(n->op->name, mask, scores, n->in[0]->dtype)) return NULL;
    return tensor_mask_lengths(mask.valid_lens, causal, scores);
}

Mask ag_mask_of(const Node *n, int first, const Tensor *lengths, Shape scores) {
    const AttentionMask mask = mask_at(n, first, false);
    return (Mask){scores, lengths, mask.keep, mask.window, mask.bias};
}
