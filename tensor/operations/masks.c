/* masks.c - masks, and masked softmax of whole tensors: passes the pointers and strides to the
 * kernel, which does the arithmetic.
 *
 * B batch, H heads, Q queries, K keys. */
#include "operations.h"

/* ---- masks --------------------------------------------------------------------------------- */

Tensor *tensor_mask_lengths(const Tensor *valid_lens, bool causal, Shape scores) {
    const bool some = tensor_shape_numel(scores) > 0; /* without scores no kernel reads a length */
    const int64_t B = some && valid_lens ? scores.dim[0] : 1;
    const int64_t Q = some ? scores.dim[2] : 1;
    const int64_t K = scores.dim[3];
    const int64_t *all = some && valid_lens ? valid_lens->data : &K;
    const int64_t step_b = valid_lens ? valid_lens->stride[0] : 0;
    const int64_t step_q = valid_lens && valid_lens->shape.ndim == 2 ? valid_lens->stride[1] : 0;
    Tensor *lengths = tensor_make(SHAPE(B, 1, Q, 1), I64);
    if (!lengths) return NULL;
    int64_t *length = lengths->data;
    for (int64_t b = 0; b < B; b++)
        for (int64_t q = 0; q < Q; q++) {
            const int64_t keys = MIN(all[b * step_b + q * step_q], K);
            *length++ = causal ? MIN(keys, q + 1) : keys;
        }
    return lengths;
}

Tensor tensor_expanded(const Tensor *x, Shape shape) {
    Tensor view = {.shape = shape, .dtype = x->dtype, .data = x->data};
    tensor_expanded_strides(x, shape, view.stride);
    return view;
}

/* ---- masked softmax -------------------------------------------------------------------------- */

/* The dimension `windows` of the shape (B / windows, windows, H, Q, K) is only for mask.window, the
 * shifted windows of Swin (Liu et al. 2021): the scores of batch b get window b mod windows.
 * Without mask.window, windows is 1. Both functions return a view without a reference, only for
 * kernels. */

/* x, (B, H, Q, K) or (B H, Q, K), in this shape. */
static Tensor in_windows(const Tensor *x, Shape shape) {
    const int64_t *t = x->stride + x->shape.ndim - 3;
    const int64_t batch = x->shape.ndim == 4 ? x->stride[0] : shape.dim[2] * t[0];
    return (Tensor){.shape = shape,
                    .stride = {shape.dim[1] * batch, batch, t[0], t[1], t[2]},
                    .dtype = x->dtype,
                    .data = x->data};
}

/* A window (windows, Q, K), expanded to this shape. */
static Tensor window_in(const Tensor *window, Shape shape) {
    const int64_t *t = window->stride;
    return (Tensor){.shape = shape,
                    .stride = {0, t[0], 0, t[1], t[2]},
                    .dtype = window->dtype,
                    .data = window->data};
}

/* Calls the kernel for each row of the scores, with its part of the mask. The views have five
 * dimensions only for mask.window; without it the second dimension has size 1. Without scores the
 * number of heads has no limit, and a stride of a view could overflow. */
void tensor_masked_softmax(const Mask *mask, const Tensor *y, const Tensor *x, double scale) {
    if (tensor_numel(y) == 0) return;
    const Shape s = mask->scores;
    const int64_t windows = mask->window ? mask->window->shape.dim[0] : 1;
    const Shape shape = SHAPE(s.dim[0] / windows, windows, s.dim[1], s.dim[2], s.dim[3]);
    const Tensor lengths = tensor_expanded(mask->lengths, s);
    Tensor view[6] = {in_windows(y, shape), in_windows(x, shape), in_windows(&lengths, shape)};
    view[2].shape.dim[4] = 1; /* a number for each row */
    if (mask->keep) {
        const Tensor keep = tensor_expanded(mask->keep, s);
        view[3] = in_windows(&keep, shape);
    }
    if (mask->bias) {
        const Tensor bias = tensor_expanded(mask->bias, s);
        view[4] = in_windows(&bias, shape);
    }
    if (mask->window) view[5] = window_in(mask->window, shape);
    const Tensor *operand[6] = {NULL};
    for (int i = 0; i < 6; i++)
        if (view[i].data) operand[i] = &view[i];
    tensor_loop_rows(tensor_kernels()->masked_softmax[y->dtype], 4, 6, operand, scale);
}
