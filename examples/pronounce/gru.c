/* gru.c - a gated recurrent unit: see gru.h. */
#include "gru.h"

#include <math.h>

Gru *gru_new(int64_t in, int64_t size) {
    static const ModuleClass class = {"Gru", sizeof(Gru), NULL, NULL};
    const int64_t H = size;
    const double bound = 1 / sqrt((double)H);
    Gru *gru = nn_module_new(&class);
    if (!gru) return NULL;
    gru->size = H;
    nn_add_parameter(gru, "weight_ih_l0", &gru->weight_ih,
                     tensor_uniform(-bound, bound, SHAPE(3 * H, in)));
    nn_add_parameter(gru, "weight_hh_l0", &gru->weight_hh,
                     tensor_uniform(-bound, bound, SHAPE(3 * H, H)));
    nn_add_parameter(gru, "bias_ih_l0", &gru->bias_ih, tensor_uniform(-bound, bound, SHAPE(3 * H)));
    nn_add_parameter(gru, "bias_hh_l0", &gru->bias_hh, tensor_uniform(-bound, bound, SHAPE(3 * H)));
    return nn_module_done(gru);
}

/* given: (B, 3 H), W_i x_t + b_i. Returns h_t: (1 - z) n + z h = n + z (h - n). */
static Tensor *step(Gru *gru, Tensor *given, Tensor *h) {
    const int64_t H = gru->size;
    Tensor *own = ag_linear(h, gru->weight_hh, gru->bias_hh); /* (B, 3 H) */
    Tensor *gates = ag_sigmoid(ag_add(ag_slice(given, 1, 0, 2 * H), ag_slice(own, 1, 0, 2 * H)));
    Tensor *r = ag_slice(gates, 1, 0, H);
    Tensor *z = ag_slice(gates, 1, H, 2 * H);
    Tensor *n = ag_tanh(
        ag_add(ag_slice(given, 1, 2 * H, 3 * H), ag_mul(r, ag_slice(own, 1, 2 * H, 3 * H))));
    return ag_add(n, ag_mul(z, ag_sub(h, n)));
}

enum { MOST_STEPS = 128 };

/* W_i x + b_i does not depend on the states: one product computes it for all steps. */
Tensor *gru_forward(Gru *gru, Tensor *x, Tensor *h) {
    Tensor *states[MOST_STEPS];
    const int64_t B = tensor_size(x, 0), T = tensor_size(x, 1);
    if (T > MOST_STEPS) return tensor_fail("gru: more than %d steps", MOST_STEPS);
    Tensor *given = ag_linear(ag_transpose(x, 0, 1), gru->weight_ih, gru->bias_ih);
    if (!h) h = tape_own(tensor_zeros(SHAPE(B, gru->size)));
    for (int64_t t = 0; t < T; t++) {
        h = step(gru, ag_select(given, 0, t), h);
        states[t] = h;
    }
    return T > 0 ? ag_stack(states, (int)T, 1) : tape_own(tensor_zeros(SHAPE(B, 0, gru->size)));
}

/* Turns the sequences around, each within its length: x_t becomes x_(n - 1 - t) of a sequence of n.
 * What is after the end stays there. */
static Tensor *turned(Tensor *x, Tensor *lengths) {
    const int64_t B = tensor_size(x, 0), T = tensor_size(x, 1), D = tensor_size(x, 2);
    Tensor *t = tape_own(tensor_arange_of(0, (double)T, 1, I64));
    Tensor *n = ag_unsqueeze(lengths, 1);                                     /* (B, 1) */
    Tensor *from = ag_where(ag_lt(t, n), ag_sub(ag_add_scalar(n, -1), t), t); /* (B, T) */
    return ag_gather(x, 1, ag_expand(ag_unsqueeze(from, 2), SHAPE(B, T, D)));
}

Tensor *gru_forward_reversed(Gru *gru, Tensor *x, Tensor *lengths) {
    return turned(gru_forward(gru, turned(x, lengths), NULL), lengths);
}
