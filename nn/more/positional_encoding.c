/* positional_encoding.c - attention does not see the order of its inputs, so a vector of the
 * position is added to each: sines and cosines with wavelengths from 2 pi to 10000 * 2 pi. The
 * vectors of two positions differ by a rotation that depends only on the distance. */
#include "../module.h"

static const ModuleClass kind = {"PositionalEncoding", sizeof(PositionalEncoding), NULL, NULL};

/* P (1, max_len, d): P[0, i, 2j] and P[0, i, 2j + 1] are the sine and the cosine of
 * i / 10000^(2j / d). A new reference. */
static Tensor *sinusoids(int64_t max_len, int64_t d) {
    if (!tape_begin_no_grad()) return NULL;
    Tensor *place = tensor_arange(0, (double)max_len, 1);
    Tensor *even = tensor_arange(0, (double)d, 2);
    Tensor *width = tensor_full(SCALAR, (double)d);
    Tensor *base = tensor_full(SCALAR, 10000);
    /* place / 10000^(2j / d): (max_len, d / 2), with the same roundings as PyTorch */
    Tensor *angle = ag_div(ag_unsqueeze(place, 1), ag_pow(base, ag_div(even, width)));
    Tensor *pair = ag_stack((Tensor *[]){ag_sin(angle), ag_cos(angle)}, 2, 2);
    Tensor *P = tensor_retain(ag_name(ag_reshape(pair, SHAPE(1, max_len, d)), "P"));
    Tensor *const made[] = {place, even, width, base};
    for (int i = 0; i < 4; i++) tensor_release(made[i]);
    tape_end();
    return P;
}

PositionalEncoding *nn_positional_encoding_new(int64_t num_hiddens, double dropout,
                                               int64_t max_len) {
    if (num_hiddens < 0 || num_hiddens % 2 || max_len < 0)
        return tensor_fail("positional_encoding: num_hiddens is %lld and max_len %lld: neither may "
                           "be negative, and num_hiddens must be even, a sine and a cosine for "
                           "each wavelength",
                           (long long)num_hiddens, (long long)max_len);
    PositionalEncoding *encoding = nn_module_new(&kind);
    if (!encoding) return NULL;
    encoding->dropout = nn_add_child(encoding, "dropout", nn_dropout_new(dropout));
    nn_add_result(encoding, &encoding->P); /* P is no parameter; nn_free releases it as a result */
    encoding->P = sinusoids(max_len, num_hiddens);
    return nn_module_done(encoding);
}

static bool check_x(const Tensor *P, const Tensor *x) {
    if (!x) tensor_fail("positional_encoding: x is NULL");
    else if (x->shape.ndim != 3 || x->shape.dim[2] != P->shape.dim[2])
        tensor_fail("positional_encoding: x is %s: it must be (batch, length, num_hiddens), and "
                    "num_hiddens is %lld",
                    tensor_shape_text(x->shape), (long long)P->shape.dim[2]);
    else if (x->shape.dim[1] > P->shape.dim[1])
        tensor_fail("positional_encoding: x is %s: its length %lld is beyond max_len %lld",
                    tensor_shape_text(x->shape), (long long)x->shape.dim[1],
                    (long long)P->shape.dim[1]);
    else if (x->dtype != P->dtype)
        tensor_fail("positional_encoding: x is %s and the encoding was made as %s: the types must "
                    "be equal; convert x with ag_to",
                    tensor_dtype_name(x->dtype), tensor_dtype_name(P->dtype));
    return !tensor_error();
}

Tensor *nn_positional_encoding_forward(PositionalEncoding *encoding, Tensor *x) {
    if (!nn_forward_begins("positional_encoding", encoding)) return NULL;
    if (!check_x(encoding->P, x)) return nn_forward_done(encoding, NULL);
    Tensor *P = ag_slice(encoding->P, 1, 0, x->shape.dim[1]);
    return nn_forward_done(encoding, nn_dropout_forward(encoding->dropout, ag_add(x, P)));
}
