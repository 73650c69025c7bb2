/* encoder_decoder.c - the model of pronounce: see encoder_decoder.h. */
#include "encoder_decoder.h"

#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

EncoderDecoder *encoder_decoder_new(const EncoderDecoderOptions *options, int64_t V) {
    static const ModuleClass class = {"EncoderDecoder", sizeof(EncoderDecoder), NULL, NULL};
    const int64_t h = options->hidden;
    EncoderDecoder *net = nn_module_new(&class);
    if (!net) return NULL;
    net->options = *options;
    net->letters = nn_add_child(net, "letters", nn_embedding_new(LETTERS, h));
    net->sounds = nn_add_child(net, "sounds", nn_embedding_new(V, h));
    net->forward = nn_add_child(net, "forward", gru_new(h, h / 2));
    net->backward = nn_add_child(net, "backward", gru_new(h, h / 2));
    net->decoder = nn_add_child(net, "decoder", gru_new(h, h));
    if (is(options->attention, "additive"))
        net->additive = nn_add_child(net, "attention", nn_additive_attention_new(h, 0));
    if (is(options->attention, "dot"))
        net->dot = nn_add_child(net, "attention", nn_dot_product_attention_new(0));
    net->dropout = nn_add_child(net, "dropout", nn_dropout_new(options->dropout));
    net->join = nn_add_child(net, "join", nn_linear_new(2 * h, h, true));
    net->answer = nn_add_child(net, "answer", nn_linear_new(h, V, true));
    return nn_module_done(net);
}

Tensor *encode(EncoderDecoder *net, Tensor *letters, Tensor *lengths) {
    Tensor *x = nn_dropout_forward(net->dropout, nn_embedding_forward(net->letters, letters));
    Tensor *both[] = {gru_forward(net->forward, x, NULL),
                      gru_forward_reversed(net->backward, x, lengths)};
    return ag_cat(both, 2, 2);
}

/* The forward state of the last letter, and the backward state of the first: (N, 1, h). */
static Tensor *last_states(Tensor *keys, Tensor *lengths) {
    const int64_t N = tensor_size(keys, 0), h = tensor_size(keys, 2);
    Tensor *last = ag_reshape(ag_add_scalar(lengths, -1), SHAPE(N, 1, 1));
    Tensor *forward = ag_slice(keys, 2, 0, h / 2);
    Tensor *backward = ag_slice(keys, 2, h / 2, h);
    Tensor *both[] = {ag_gather(forward, 1, ag_expand(last, SHAPE(N, 1, h / 2))),
                      ag_slice(backward, 1, 0, 1)};
    return ag_cat(both, 2, 2);
}

Tensor *first_state(const EncoderDecoder *net, Tensor *keys, Tensor *lengths) {
    return is(net->options.attention, "last") ? ag_select(last_states(keys, lengths), 1, 0) : NULL;
}

Tensor *decode(EncoderDecoder *net, Tensor *before, Tensor *h) {
    Tensor *x = nn_dropout_forward(net->dropout, nn_embedding_forward(net->sounds, before));
    return gru_forward(net->decoder, x, h);
}

Tensor *attend(EncoderDecoder *net, Tensor *queries, Tensor *keys, Tensor *lengths,
               Tensor **weights) {
    const AttentionMask mask = {.valid_lens = lengths};
    const Shape scores = SHAPE(tensor_size(keys, 0), tensor_size(queries, 1), tensor_size(keys, 1));
    Tensor *contexts;
    *weights = NULL;
    if (net->additive) {
        contexts = nn_additive_attention_forward(net->additive, queries, keys, keys, mask);
        *weights = net->additive->attention_weights;
    } else if (net->dot) {
        contexts = nn_dot_product_attention_forward(net->dot, queries, keys, keys, mask);
        *weights = net->dot->attention_weights;
    } else if (is(net->options.attention, "mean")) { /* the softmax of equal scores */
        *weights = ag_masked_softmax(tape_own(tensor_zeros(scores)), lengths);
        contexts = ag_bmm(*weights, keys);
    } else contexts = ag_repeat_interleave(last_states(keys, lengths), scores.dim[1], 1);
    return contexts;
}

Tensor *answer(EncoderDecoder *net, Tensor *queries, Tensor *contexts) {
    Tensor *both = ag_cat((Tensor *[]){queries, contexts}, 2, 2);
    Tensor *joined = ag_tanh(nn_linear_forward(net->join, both));
    return nn_linear_forward(net->answer, nn_dropout_forward(net->dropout, joined));
}

Tensor *encoder_decoder_forward(EncoderDecoder *net, const Batch *batch, Tensor **weights) {
    Tensor *keys = encode(net, batch->letters, batch->lengths);
    Tensor *h = first_state(net, keys, batch->lengths);
    Tensor *queries = decode(net, batch->before, h);
    return answer(net, queries, attend(net, queries, keys, batch->lengths, weights));
}

Tensor *loss_of(Tensor *logits, const Batch *batch) {
    return ag_cross_entropy(ag_transpose(logits, 1, 2), batch->answers, NO_SOUND, REDUCE_MEAN);
}

Tensor *encoder_decoder_loss(EncoderDecoder *net, const Batch *batch) {
    Tensor *weights;
    return loss_of(encoder_decoder_forward(net, batch, &weights), batch);
}

/* ---- saying words -------------------------------------------------------------------------- */

/* Copies sound i of each word; a word that has ended stays ended. True if all have. */
static bool take_sounds(Tensor *said, int i, int64_t *sounds) {
    bool all = true;
    for (int64_t n = 0; n < tensor_size(said, 0); n++) {
        int64_t *sound = &sounds[n * MOST_SAID + i];
        const bool ended = i > 0 && sound[-1] == 0;
        *sound = ended ? 0 : (int64_t)tensor_get(said, n, 0);
        all = all && *sound == 0;
    }
    return all;
}

bool speak(EncoderDecoder *net, const Batch *batch, int64_t *sounds, Tensor **weights) {
    const int64_t N = tensor_size(batch->letters, 0);
    const int64_t most = SOUNDS_A_LETTER * tensor_size(batch->letters, 1);
    Tensor *keys = encode(net, batch->letters, batch->lengths);
    Tensor *said = tape_own(tensor_zeros_of(SHAPE(N, 1), I64));
    Tensor *h = first_state(net, keys, batch->lengths);
    Tensor *rows[MOST_SAID];
    bool ended = false;
    int i = 0;
    for (int64_t n = 0; n < N * MOST_SAID; n++) sounds[n] = 0;
    for (; i < most && !ended && !tensor_error(); i++) {
        Tensor *query = decode(net, said, h); /* (N, 1, h) */
        Tensor *context = attend(net, query, keys, batch->lengths, &rows[i]);
        if (rows[i])
            rows[i] = tape_own(tensor_retain(rows[i])); /* the module keeps only the last */
        said = ag_argmax(answer(net, query, context), 2);
        h = ag_select(query, 1, 0);
        ended = take_sounds(said, i, sounds);
    }
    *weights = i > 0 && rows[0] ? ag_cat(rows, i, 1) : NULL;
    return !tensor_error();
}
