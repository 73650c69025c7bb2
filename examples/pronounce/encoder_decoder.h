/* encoder_decoder.h - the model of pronounce: one network reads letters, another says sounds, and
 * attention connects them. Bahdanau, Cho & Bengio 2015.
 *
 *     keys_j    = (forward state j, backward state j)     what the encoder has read at letter j
 *     query_i   = decoder state after the sounds 0 .. i - 1
 *     context_i = sum_j weight_ij keys_j                  attention; the values are the keys
 *     logits_i  = W tanh(U (query_i, context_i) + c) + b  scores of sound i
 *
 * The decoder reads only its own sounds, so in training all its states are known before attention
 * begins, and one call of attention answers all of its queries. (Bahdanau's decoder reads the
 * context as well, and needs a call for each sound.)
 *
 * N words, T letters, S sounds (the end included), V different sounds, h = hidden. */
#ifndef TAPEHEAD_EXAMPLES_ENCODER_DECODER_H
#define TAPEHEAD_EXAMPLES_ENCODER_DECODER_H

#include "dictionary.h"
#include "gru.h"

typedef struct {
    /* "additive", "dot", or two that are no attention: "last", where the decoder begins with the
     * last state of each direction and gets it at every sound as its context, and nothing else
     * (Cho et al. 2014; Sutskever, Vinyals & Le 2014 only begin with it), and "mean", where all
     * letters have the same weight. */
    const char *attention;
    int64_t hidden; /* h, even */
    double dropout;
} EncoderDecoderOptions;

typedef struct {
    Module module;
    EncoderDecoderOptions options;
    Embedding *letters, *sounds; /* (LETTERS, h), (V, h) */
    Gru *forward, *backward;     /* states of h / 2 numbers */
    Gru *decoder;
    AdditiveAttention *additive; /* at most one of these two is not NULL */
    DotProductAttention *dot;
    Dropout *dropout;
    Linear *join, *answer; /* U, c: (h, 2 h), and W, b: (V, h) */
} EncoderDecoder;

/* The caller frees the model with nn_free. */
EncoderDecoder *encoder_decoder_new(const EncoderDecoderOptions *options, int64_t V);

/* letters (N, T), lengths (N) -> keys (N, T, h). */
Tensor *encode(EncoderDecoder *net, Tensor *letters, Tensor *lengths);
/* The decoder's state before the first sound: (N, h) for "last", else NULL, which is 0. */
Tensor *first_state(const EncoderDecoder *net, Tensor *keys, Tensor *lengths);
/* before (N, S): the sound before each -> queries (N, S, h). h: the state before the first, (N, h);
 * NULL: 0. */
Tensor *decode(EncoderDecoder *net, Tensor *before, Tensor *h);
/* queries, keys, lengths -> contexts (N, S, h). *weights becomes (N, S, T); NULL for "last". */
Tensor *attend(EncoderDecoder *net, Tensor *queries, Tensor *keys, Tensor *lengths,
               Tensor **weights);
/* (N, S, h), (N, S, h) -> logits (N, S, V) */
Tensor *answer(EncoderDecoder *net, Tensor *queries, Tensor *contexts);

/* -log of the probability of the right sound, the mean over all sounds and ends. */
Tensor *loss_of(Tensor *logits, const Batch *batch);

/* All of it: batch -> logits (N, S, V), given the right sounds before each. *weights as above. */
Tensor *encoder_decoder_forward(EncoderDecoder *net, const Batch *batch, Tensor **weights);
Tensor *encoder_decoder_loss(EncoderDecoder *net, const Batch *batch);

/* Says the words of a batch: at each step the most probable sound, until the end of the word or
 * SOUNDS_A_LETTER sounds for each letter of the longest word. sounds[n * MOST_SAID + i] becomes
 * sound i of word n, and 0 after its end. *weights becomes (N, steps, T), a row for each sound and
 * for the end; NULL for "last". False on error. */
bool speak(EncoderDecoder *net, const Batch *batch, int64_t *sounds, Tensor **weights);

#endif
