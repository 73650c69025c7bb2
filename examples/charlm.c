/* charlm.c - a language model: it reads a text and learns to predict the next character.
 *
 * The model is the decoder of "Attention Is All You Need" in the form of GPT-2 (Radford et al.
 * 2019), with the sizes of nanoGPT (Karpathy 2022) for a CPU; or, with --block llama, in the form
 * of Llama (Touvron et al. 2023). The loss is the mean of -log p(the character that came), in nats.
 * A guess among n characters has the loss log n.
 *
 * B sequences in a batch, T characters of each, C the width, V different characters. The sections:
 * the model, its quality, its text, its attention, its backward, training.
 */
#include "charlm/corpus.h"
#include "charlm/draw.h"
#include "common/plural.h"
#include "common/training.h"
#include "charlm/trigram.h"
#include "explain/page/recording.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 24, MAX_HEADS = 16, SHOWN = 16, EXPLAINED = 6, MEASURED = 100000 };

static struct {
    int64_t layers, heads, width, context, layer, sample, top_k;
    double dropout, temperature;
    const char *text, *prompt, *block;
    bool composed, no_cache;
} options = {
    .block = "gpt", .layers = 4, .heads = 4, .width = 128, .context = 64, .temperature = 0.8};

static Training run = {.program = "charlm",
                       .summary = "learns a text, character by character",
                       .caption = {{"A row is a character, a column one that it looks back at.",
                                    "Hatched: what comes later, which the causal mask hides."}},
                       .seed = 1,
                       .steps = 2000,
                       .batch = 12,
                       .lr = 1e-3};

/* ---- the model --------------------------------------------------------------------------- */

typedef struct {
    Module module;
    Tensor *norm1, *norm2; /* (C) */
    MultiHeadAttention *attention;
    Linear *gate, *up, *down; /* gpt: C -> 4 C, 4 C -> C, no gate; llama: C -> F, F -> C */
    Dropout *dropout;
} Block;

typedef struct {
    Module module;
    Tensor *tokens, *places; /* (V, C), (T, C): a vector for each character and for each place */
    Block *block[MAX_LAYERS];
    Tensor *norm;               /* (C) */
    KVCache *cache[MAX_LAYERS]; /* for writing */
} Transformer;

static bool is_llama(void) { return strcmp(options.block, "llama") == 0; }

static Tensor *normed(Tensor *x, Tensor *w) {
    return is_llama() ? ag_rms_norm(x, w, 1e-5) : ag_layer_norm(x, w, NULL, 1e-5);
}

/* x: (B, T, C) -> same.
 *
 *     x = x + attention(norm(x))        each place attends to itself and to the places before it
 *     x = x + gelu(norm(x) Up') Down'   a network with one hidden layer, at each place alone
 *
 * With --block llama the norm is RMSNorm, the attention turns queries and keys by their places and
 * has half as many heads of keys and values, and in place of gelu(norm(x) Up') stands SwiGLU,
 * silu(norm(x) Gate') (norm(x) Up') (Shazeer 2020). cache: NULL, or x follows what it holds.
 *
 * Blocks add to x, so the gradient of the last block reaches the first block directly. */
static Tensor *block_forward(Block *b, Tensor *x, KVCache *cache) {
    MultiHeadAttention *attention = b->attention;
    const AttentionMask causal = {.causal = true};
    Tensor *y = normed(x, b->norm1);
    if (cache) y = nn_multi_head_attention_forward_cached(attention, y, cache, causal);
    else y = nn_multi_head_attention_forward(attention, y, y, y, causal);
    x = ag_add(x, nn_dropout_forward(b->dropout, y));

    y = normed(x, b->norm2);
    Tensor *up = nn_linear_forward(b->up, y); /* (B, T, 4 C), or F in place of 4 C */
    y = b->gate ? ag_mul(ag_silu(nn_linear_forward(b->gate, y)), up) : ag_gelu(up);
    return ag_add(x, nn_dropout_forward(b->dropout, nn_linear_forward(b->down, y)));
}

/* x: (B, T) characters -> (B, T, V), scores of the character after each of them. Input and output
 * use the same vectors of characters, net->tokens. cache: NULL, or one for each layer. */
static Tensor *transformer_forward(Transformer *net, Tensor *x, KVCache *const *cache) {
    if (!x) return NULL;
    const int64_t past = cache ? cache[0]->length : 0, end = past + x->shape.dim[1];
    x = ag_embedding(net->tokens, x);                                    /* (B, T, C) */
    if (net->places) x = ag_add(x, ag_slice(net->places, 0, past, end)); /* (T, C) */
    for (int i = 0; i < options.layers; i++)
        x = block_forward(net->block[i], x, cache ? cache[i] : NULL);
    return ag_linear(normed(x, net->norm), net->tokens, NULL);
}

/* L = -log p(characters 1 .. T | those before each), the mean. windows: (B, T + 1) */
static Tensor *transformer_loss(Transformer *net, Tensor *windows) {
    Tensor *x = ag_slice(windows, 1, 0, -1);
    Tensor *next = ag_slice(windows, 1, 1, INT64_MAX);
    Tensor *scores = transformer_forward(net, x, NULL); /* (B, T, V) */
    return ag_cross_entropy(ag_transpose(scores, 1, 2), next, AG_IGNORE_NONE, REDUCE_MEAN);
}

/* F, with which a block of Llama has as many parameters as one of GPT-2: C (2 C + 2 C G / H) in the
 * attention, and 3 C F, are 12 C^2. */
static int64_t hidden_of(int64_t C, int64_t H, int64_t G) {
    return (10 * C - 2 * C * G / H + 1) / 3;
}

/* Each block adds to x twice. The weights of these two sums, W_o and down, are scaled so that the
 * sum over all blocks has the standard deviation of one linear layer. */
static Block *block_new(int64_t C) {
    static const ModuleClass class = {"Block", sizeof(Block), NULL, NULL};
    static const char *const matrix[] = {
        "attention.W_q.weight", "attention.W_k.weight", "attention.W_v.weight", "up.weight",
        "attention.W_o.weight", "down.weight", /* these two add to x */
        "gate.weight"};
    const bool llama = is_llama(), fused = !options.composed; /* never stores (T, T) weights */
    const int64_t H = options.heads, G = llama && H % 2 == 0 ? H / 2 : H;
    const int64_t F = llama ? hidden_of(C, H, G) : 4 * C;
    MultiHeadAttentionConfig config = {.num_hiddens = C,
                                       .num_heads = H,
                                       .dropout = options.dropout,
                                       .query_size = C,
                                       .key_size = C,
                                       .value_size = C,
                                       .fused = fused,
                                       .num_kv_heads = G};
    Block *b = nn_module_new(&class);
    if (!b) return NULL;
    nn_add_parameter(b, "norm1", &b->norm1, tensor_ones(SHAPE(C)));
    b->attention = nn_add_child(b, "attention", nn_multi_head_attention_new(config));
    if (llama) nn_multi_head_attention_rope(b->attention, 10000, ROPE_HALVES);
    nn_add_parameter(b, "norm2", &b->norm2, tensor_ones(SHAPE(C)));
    if (llama) b->gate = nn_add_child(b, "gate", nn_linear_new(C, F, false));
    b->up = nn_add_child(b, "up", nn_linear_new(C, F, false));
    b->down = nn_add_child(b, "down", nn_linear_new(F, C, false));
    b->dropout = nn_add_child(b, "dropout", nn_dropout_new(options.dropout));
    for (int i = 0; i < (llama ? 7 : 6) && !tensor_error(); i++) {
        double share = i < 4 || i == 6 ? 1 : 1 / sqrt(2 * (double)options.layers);
        nn_init_normal(nn_parameter(b, matrix[i]), 0, 0.02 * share);
    }
    return nn_module_done(b);
}

static void caches_free(void *net) {
    for (int i = 0; i < options.layers; i++) nn_kv_cache_free(((Transformer *)net)->cache[i]);
}

static Transformer *transformer_new(int64_t V, int64_t T, int64_t C) {
    static const ModuleClass class = {"Transformer", sizeof(Transformer), NULL, caches_free};
    Transformer *net = nn_module_new(&class);
    if (!net) return NULL;
    nn_add_parameter(net, "tokens", &net->tokens, tensor_normal(0, 0.02, SHAPE(V, C)));
    if (!is_llama())
        nn_add_parameter(net, "places", &net->places, tensor_normal(0, 0.02, SHAPE(T, C)));
    for (int i = 0; i < options.layers; i++) {
        char name[NN_NAME_SIZE];
        snprintf(name, sizeof name, "block%d", i + 1);
        net->block[i] = nn_add_child(net, name, block_new(C));
        net->cache[i] = nn_kv_cache_new(T);
    }
    nn_add_parameter(net, "norm", &net->norm, tensor_ones(SHAPE(C)));
    return nn_module_done(net);
}

/* Weight decay is for matrices, not for scales of layer norm. */
static Optimizer *optimizer_new(Transformer *net) {
    AdamWConfig config = {.lr = run.lr, .beta2 = 0.99, .weight_decay = 0.1};
    Optimizer *adamw = nn_adamw_new(net, config);
    nn_optimizer_set_group(adamw, "norm", run.lr, 0);
    for (int i = 0; i < 2 * options.layers; i++) {
        char path[64];
        snprintf(path, sizeof path, "block%d.norm%d", i / 2 + 1, i % 2 + 1);
        nn_optimizer_set_group(adamw, path, run.lr, 0);
    }
    return adamw;
}

/* ---- its quality --------------------------------------------------------------------------- */

/* The loss on the first MEASURED characters of the held-out tenth, in windows side by side, and the
 * loss of a trigram model on the same characters. */
static void evaluate(Transformer *net, const Corpus *text) {
    const int64_t T = options.context, begin = text->held_out, all = (text->size - begin - 1) / T;
    const int64_t n = all < MEASURED / T ? all : MEASURED / T;
    double loss = 0;
    for (int64_t i = 0; i < n && !tensor_error(); i++) {
        const int64_t start = begin + i * T;
        Tensor *window = corpus_windows(text->symbol, &start, 1, T + 1);
        tape_begin_no_grad();
        loss += tensor_item(transformer_loss(net, window)) / (double)n;
        tape_end();
        tensor_release(window);
    }
    double counting = trigram_loss(text->symbol, begin, begin + n * T + 1, text->num_symbols);
    training_expect(&run, "held-out loss", loss, "<", 2);
    training_expect(&run, "held-out loss, a trigram model's", loss, "<", counting);
}

/* ---- its text ------------------------------------------------------------------------------ */

/* The scores of the next character, (V). With the cache the model reads only the characters that it
 * has not read yet. Beyond T characters the place of each one changes with the next, and all that
 * the cache holds with it: then the model reads the last T characters again. */
static Tensor *next_scores(Transformer *net, const Passage *passage) {
    const int64_t T = options.context;
    int64_t seen = net->cache[0]->length;
    if (options.no_cache || passage->size > T) seen = 0;
    for (int i = 0; i < options.layers; i++) net->cache[i]->length = seen;
    Tensor *x = tape_own(corpus_last(passage, seen ? passage->size - seen : T)); /* (1, n) */
    Tensor *scores = transformer_forward(net, x, options.no_cache ? NULL : net->cache);
    return ag_select(ag_select(scores, 1, -1), 0, 0);
}

/* The model draws the next character after the last T characters, again and again. */
static void write_on(Transformer *net, const Corpus *text, Passage *passage) {
    tensor_manual_seed(run.seed); /* a loaded model writes the same text again */
    for (int64_t i = 0; i < options.sample && !tensor_error(); i++) {
        tape_begin_no_grad();
        passage->symbol[passage->size++] =
            (uint8_t)draw_from(next_scores(net, passage), options.temperature, options.top_k);
        tape_end();
    }
    if (options.sample > 0 && !tensor_error()) corpus_print(text, passage, stdout);
}

/* ---- its attention ------------------------------------------------------------------------- */

/* The maps of the heads of one layer: a row for each character of the passage. */
static void show(Transformer *net, const Corpus *text, const Passage *passage) {
    static AttentionMap maps[MAX_HEADS];
    MultiHeadAttention *attention = net->block[options.layer - 1]->attention;
    Tensor *x = corpus_last(passage, options.context < SHOWN ? options.context : SHOWN);
    attention->fused = false; /* the fused path has no weights */
    tape_begin_no_grad();
    transformer_forward(net, x, NULL);
    tape_end();
    attention->fused = !options.composed;
    for (int h = 0; h < options.heads; h++) {
        map_take(&maps[h], attention->attention_weights, h, -1);
        snprintf(maps[h].title, sizeof maps->title, "layer %d, head %d", (int)options.layer, h + 1);
        corpus_label(text, x, &maps[h]);
    }
    training_show(&run, maps, (int)options.heads);
    tensor_release(x);
}

/* ---- its backward ---------------------------------------------------------------------------- */

/* The attention of one layer in a whole backward pass: each (H, N, D), for the page. */
typedef struct {
    Tensor *queries, *keys, *values;
    Tensor *output_grad; /* the gradient of the attention's output */
    double loss;
} Seen;

/* The result of the nth line, counted from 1, of all lines on the open tape that have this op
 * (NULL: any) and a result with this name. NULL if there is none. */
static Tensor *find(const char *op, const char *name, int64_t nth) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        const bool found = (!op || strcmp(line.op, op) == 0) && strcmp(line.out->name, name) == 0;
        if (found && --nth == 0) return line.out;
    }
    return NULL;
}

/* One forward and backward pass of the whole model. x: (1, N + 1) */
static Seen see(Transformer *net, Tensor *x) {
    Seen seen = {0};
    const int64_t layer = options.layer;
    for (int i = 0; i < options.layers; i++) net->block[i]->attention->fused = false;
    tape_begin();
    tape_keep_grads(true);
    Tensor *loss = transformer_loss(net, x);
    if (ag_backward(loss)) {
        const Tensor *output = find("bmm", "output", layer);
        seen = (Seen){.queries = recording_leaf(find(NULL, "queries", layer), "queries"),
                      .keys = recording_leaf(find(NULL, "keys", layer), "keys"),
                      .values = recording_leaf(find(NULL, "values", layer), "values"),
                      .output_grad = recording_constant(output->grad, "G"),
                      .loss = tensor_item(loss)};
    }
    tape_end();
    for (int i = 0; i < options.layers; i++) net->block[i]->attention->fused = !options.composed;
    return seen;
}

/* The passage as a string, where line ends and other control characters are blanks. */
static void print_passage(const Corpus *text, const Tensor *x, char *string) {
    const int64_t n = x ? tensor_numel(x) : 0;
    for (int64_t i = 0; i < n; i++) {
        string[i] = (char)text->byte[(int)tensor_get(x, 0, i)];
        if (string[i] < ' ' || string[i] > '~') string[i] = ' ';
    }
    string[n] = '\0';
}

/* Writes the page of a few characters from a random place of the training text. A page cannot show
 * the matrices of the model. The whole model runs once, and the page gets its gradient for the
 * attention's output, G: sum(G output) has the gradients that the model's loss has. */
static void explain(Transformer *net, const Corpus *text) {
    char characters[EXPLAINED + 2] = "", words[512], labels[EXPLAINED][2] = {""};
    const char *rows[EXPLAINED + 1] = {NULL};
    const int64_t N = options.context < EXPLAINED ? options.context : EXPLAINED;
    tensor_manual_seed(run.seed);
    Tensor *x = corpus_draw(text, 1, N + 1);
    const Seen seen = see(net, x);
    DotProductAttention *attention = net->block[options.layer - 1]->attention->attention;
    recording_prepare(net);
    recording_begin();
    Tensor *y = nn_dot_product_attention_forward(attention, seen.queries, seen.keys, seen.values,
                                                 (AttentionMask){.causal = true});
    Tensor *sum = ag_name(ag_sum(ag_mul(seen.output_grad, y)), "sum(G output)");
    print_passage(text, x, characters);
    for (int64_t i = 0; i < N; i++) {
        labels[i][0] = characters[i];
        if (characters[i] == ' ') labels[i][0] = '_';
        rows[i] = labels[i];
    }
    snprintf(words, sizeof words,
             "Layer %" PRId64 " of %" PRId64 " after %" PRId64
             " step%s of training. The model reads "
             "`%.*s` and predicts the character after each of these %" PRId64 "; its loss is %.4f. "
             "Row i of a head is character i; a blank is shown as _.",
             options.layer, options.layers, run.step, plural(run.step), (int)N, characters, N,
             seen.loss);
    const Recording recording = {
        .title = "charlm",
        .idea = "The attention of one layer, in the middle of the model's backward pass.",
        .command = "build/charlm --explain FILE.html",
        .columns = "head",
        .queries = rows,
        .keys = rows,
        .text = {words,
                 "The page is too small for the rest of the model: it has only `G`, the gradient "
                 "of the model's loss by the output of the attention. The last line, sum(G "
                 "output), has the gradient `G`, so all gradients before it are gradients of "
                 "the model's loss. No character sees a later one: later scores are masked."},
        .formula = {"attention_weights = softmax(queries keys' / sqrt(d)), for each head",
                    "output = attention_weights values", "G = d loss of the model / d output"}};
    recording_end(net, sum, &recording, run.explain);
    tensor_release(x);
}

/* ---- training ------------------------------------------------------------------------------ */

static const Flag flags[] = {
    CHOICE_FLAG("--block", options.block, "gpt|llama",
                "GPT-2's layers; or Llama's: RMSNorm, rotary places, shared heads, SwiGLU."),
    TEXT_FLAG("--text", options.text, "FILE", "Tapehead's own sources", "Any text to learn."),
    INTEGER_FLAG("--layers", options.layers, 1, MAX_LAYERS, "from 1 to 24", "Blocks."),
    INTEGER_FLAG("--heads", options.heads, 1, MAX_HEADS, "from 1 to 16", "Heads in each block."),
    INTEGER_FLAG("--width", options.width, 1, 4096, "from 1 to 4096", "Numbers per character."),
    INTEGER_FLAG("--context", options.context, 1, 4096, "from 1 to 4096",
                 "Characters that the model sees."),
    NUMBER_FLAG("--dropout", options.dropout, 0, 1, "from 0 to 1", "Probability of dropout."),
    SWITCH_FLAG("--composed", options.composed, "Train with attention's weights kept, not fused."),
    INTEGER_FLAG("--sample", options.sample, 0, 1e6, "from 0 to 10^6", "Characters to write."),
    TEXT_FLAG("--prompt", options.prompt, "TEXT", "a held-out line", "What to show and continue."),
    SWITCH_FLAG("--no-cache", options.no_cache, "Write without the cache of keys and values."),
    NUMBER_FLAG("--temperature", options.temperature, 0.01, 100, "from 0.01 to 100",
                "Below 1 the model writes more probable characters, above 1 rarer ones."),
    INTEGER_FLAG("--top-k", options.top_k, 0, 256, "from 0 to 256",
                 "Choose among the N most probable; 0: all."),
    {"--layer", FLAG_INTEGER, &options.layer, "N", "The layer to show.", 1, MAX_LAYERS,
     "from 1 to 24", "the middle one"},
};

int main(int argc, char **argv) {
    Corpus text;
    training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
    if (options.width % options.heads) flags_misuse(run.program, "--heads must divide --width");
    if (is_llama() && options.width / options.heads % 2)
        flags_misuse(run.program, "--block llama turns pairs: --width / --heads must be even");
    if (options.layer == 0) options.layer = (options.layers + 1) / 2;
    else if (options.layer > options.layers)
        flags_misuse(run.program, "--layer is beyond --layers");
    corpus_read(&text, options.text, options.context + 1);
    Passage passage = corpus_passage(&text, options.prompt, SHOWN, options.sample);
    Transformer *net = transformer_new(text.num_symbols, options.context, options.width);
    Optimizer *adamw = optimizer_new(net);
    training_must_match(&run, "vocabulary", corpus_vocabulary(&text));
    training_must_match(&run, "heads", tensor_from_int64s(SCALAR, &options.heads));
    training_begin(&run, net, adamw);
    while (training_next(&run)) {
        Tensor *windows = corpus_draw(&text, run.batch, options.context + 1); /* (B, T + 1) */
        double warm = nn_warmup(run.step, run.steps / 20);
        nn_optimizer_scale_lr(adamw, warm * nn_cosine_decay(run.step, run.steps, 0.1));
        tape_begin();
        Tensor *loss = transformer_loss(net, windows);
        nn_optimizer_zero_grad(adamw);
        ag_backward(loss);
        nn_clip_grad_norm(net, 1);
        nn_optimizer_step(adamw);
        training_report(&run, loss);
        tape_end();
        tensor_release(windows);
    }
    nn_train(net, false);
    if (training_finish(&run)) {
        show(net, &text, &passage);
        write_on(net, &text, &passage);
        evaluate(net, &text);
    }
    if (run.explain && !tensor_error()) explain(net, &text);
    nn_free(adamw);
    nn_free(net);
    free(passage.symbol);
    corpus_free(&text);
    return training_status(&run);
}
