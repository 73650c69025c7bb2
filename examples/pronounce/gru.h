/* gru.h - a gated recurrent unit, made of the ag_ ops: torch's nn.GRU of one layer with
 * batch_first. Cho et al. 2014.
 *
 *     r_t = sigmoid(W_ir x_t + b_ir + W_hr h + b_hr)          h is the state before, h_(t-1)
 *     z_t = sigmoid(W_iz x_t + b_iz + W_hz h + b_hz)
 *     n_t = tanh(W_in x_t + b_in + r_t * (W_hn h + b_hn))
 *     h_t = (1 - z_t) * n_t + z_t * h
 *
 * r says how much of the state before goes into the new one, n; z says how much of it stays. */
#ifndef TAPEHEAD_EXAMPLES_GRU_H
#define TAPEHEAD_EXAMPLES_GRU_H

#include "../../nn/nn.h"

typedef struct {
    Module module;
    int64_t size;                  /* H, of the state */
    Tensor *weight_ih, *weight_hh; /* (3 H, in), (3 H, H): W_ir, W_iz, W_in; W_hr, W_hz, W_hn */
    Tensor *bias_ih, *bias_hh;     /* (3 H) */
} Gru;

/* The parameters have torch's names, weight_ih_l0 and so on, and torch's initial values. */
Gru *gru_new(int64_t in, int64_t size);
/* x (B, T, in) -> all states (B, T, H), T at most 128. h is the state before the first, (B, H);
 * NULL: 0. */
Tensor *gru_forward(Gru *gru, Tensor *x, Tensor *h);
/* The same from the last x to the first, the other direction of a bidirectional GRU: state t has
 * read x_t and all after it. lengths, I64 (B): sequence b ends before x_(lengths[b]). */
Tensor *gru_forward_reversed(Gru *gru, Tensor *x, Tensor *lengths);

#endif
