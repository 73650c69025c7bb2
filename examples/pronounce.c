/* pronounce.c - learns to pronounce English: from letters to sounds, with additive attention.
 *
 * A bidirectional GRU reads the letters of a word, another GRU says its sounds, one after the
 * other, and before each sound attention looks at the letters (Bahdanau, Cho & Bengio 2015). The
 * loss knows only which sounds are right; nobody tells the model which letter makes which sound.
 * Its map is an alignment of letters and sounds, which anybody can check by eye, and the program
 * checks it by a number.
 *
 * The sections: training, words to show, what was learned, one word step by step, main. The words
 * are in pronounce/dictionary.c, the model in pronounce/encoder_decoder.c and gru.c. What it is
 * compared with is in pronounce/alignment.c and letter_table.c, and the comparison in score.c.
 */
#include "common/plural.h"
#include "common/repository.h"
#include "common/training.h"
#include "explain/page/recording.h"
#include "pronounce/score.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static Training run = {
    .program = "pronounce",
    .summary = "learns which letters make which sounds",
    .caption = {{"A row is a sound that the model says, a column a letter, the colour the weight.",
                 "Looks go from left to right; a pale column is a silent letter."}},
    .seed = 1,
    .steps = 15000,
    .batch = 32,
    .lr = 0.005};

static EncoderDecoderOptions options = {.attention = "additive", .hidden = 64, .dropout = 0.1};
static double decay = 0.2;
static const char english[] = "examples/data/pronounce.txt";
static const char *dictionary_path = english;
static const char *shown = "daughter,light,knight,box,psychology,taxi";
static bool final;

static Dictionary dictionary;
static Alignment alignment;
static LetterTable table;

static bool has_attention(const EncoderDecoder *net) { return net->additive || net->dot; }

/* ---- training ------------------------------------------------------------------------------ */

static void train(EncoderDecoder *net, Optimizer *adamw) {
    while (training_next(&run)) {
        double warm = nn_warmup(run.step, run.steps / 20);
        nn_optimizer_scale_lr(adamw, warm * nn_cosine_decay(run.step, run.steps, 0));
        tape_begin();
        const Batch batch = dictionary_draw(&dictionary, run.batch);
        Tensor *loss = encoder_decoder_loss(net, &batch);
        nn_optimizer_zero_grad(adamw);
        ag_backward(loss);
        nn_clip_grad_norm(net, 1);
        nn_optimizer_step(adamw);
        training_report(&run, loss);
        tape_end();
    }
}

/* Additive attention draws its matrices at its first input, which this gives. */
static void first_input(EncoderDecoder *net) {
    if (!net) return;
    tape_begin_no_grad();
    const Batch batch = dictionary_draw(&dictionary, 1);
    encoder_decoder_loss(net, &batch);
    tape_end();
}

/* ---- words to show --------------------------------------------------------------------------- */

enum { SOUNDS_TEXT = (MOST_SAID + 1) * (1 + sizeof *dictionary.sound) };

/* " N AY T" */
static void write_sounds(char text[SOUNDS_TEXT], const int64_t *sound, int n) {
    size_t at = 0;
    *text = '\0';
    for (int i = 0; i < n && at < SOUNDS_TEXT; i++)
        at += (size_t)snprintf(text + at, SOUNDS_TEXT - at, " %s",
                               tensor_name_text(dictionary.sound[sound[i]]));
}

/* The sounds of a word in the dictionary. */
static int right_sounds(const Word *word, int64_t sound[WORD_MAX]) {
    for (int i = 0; i < word->num_sounds; i++) sound[i] = word->sound[i];
    return word->num_sounds;
}

static int count_sounds(const int64_t *said) {
    int n = 0;
    while (n < MOST_SAID && said[n]) n++;
    return n;
}

static bool is_right(const Word *word, const int64_t *said, int n) {
    bool same = n == word->num_sounds;
    for (int i = 0; same && i < n; i++) same = said[i] == word->sound[i];
    return same;
}

/* Prints "knight  N AY T", and what the dictionary says instead. */
static void print_word(const Word *word, const int64_t *said) {
    int64_t right[WORD_MAX];
    char text[SOUNDS_TEXT];
    const int n = count_sounds(said);
    write_sounds(text, said, n);
    printf("%-10s %s", word->text, text);
    write_sounds(text, right, right_sounds(word, right));
    if (word->num_sounds && !is_right(word, said, n)) printf("   (the dictionary:%s)", text);
    putchar('\n');
}

static void take_map(AttentionMap *map, const Word *word, const int64_t *said, Tensor *weights) {
    if (!map_take(map, weights, 0, -1)) return;
    snprintf(map->title, sizeof map->title, "%s", word->text);
    for (int i = 0; i < map->queries; i++) map_label(map->query[i], dictionary.sound[said[i]]);
    for (int l = 0; l < map->keys; l++) map->key[l][0] = word->text[l];
}

static Batch batch_of(int word) {
    const int64_t number = word;
    return dictionary_batch(&dictionary, tape_own(tensor_from_int64s(SHAPE(1), &number)));
}

static void show(EncoderDecoder *net) {
    static AttentionMap maps[SHOWN_MAX];
    int num_maps = 0;
    for (int i = 0; i < dictionary.num_shown && !tensor_error(); i++) {
        const Word *word = &dictionary.word[dictionary.shown[i]];
        int64_t said[MOST_SAID];
        Tensor *weights;
        tape_begin_no_grad();
        const Batch batch = batch_of(dictionary.shown[i]);
        if (speak(net, &batch, said, &weights)) {
            print_word(word, said);
            if (weights) take_map(&maps[num_maps++], word, said, weights);
        }
        tape_end();
    }
    if (!tensor_error()) putchar('\n');
    training_show(&run, maps, num_maps);
}

/* ---- what was learned --------------------------------------------------------------------------
 */

static void print_tally(const char *letters, const Tally *s) {
    printf("%7s  %5.0f  %.4f  %.4f        %.4f  %.4f\n", letters, s->words, s->right / s->words,
           s->table_right / s->words, s->wrong / s->sounds, s->table_wrong / s->sounds);
}

static void print_by_length(const Score *s) {
    char letters[16];
    printf("%14s  words right           sounds wrong\nletters  words  %-6s  %-12s  %-6s  table\n",
           "", "model", "table", "model");
    for (int n = 0; n <= WORD_MAX; n++) {
        snprintf(letters, sizeof letters, "%d", n);
        if (s->by_length[n].words > 0) print_tally(letters, &s->by_length[n]);
    }
    print_tally("all", &s->all);
}

/* The bounds are for the held-out words, by which they were chosen. Prints nothing if `of` is 0. */
static void report(const char *what, double part, double of, const char *relation, double bound) {
    if (of > 0 && final) printf("final  %s  %.4f\n", what, part / of);
    if (of > 0 && !final) training_expect(&run, what, part / of, relation, bound);
}

static void evaluate(EncoderDecoder *net) {
    nn_train(net, false);
    show(net);
    if (run.step < run.steps) return; /* after Ctrl-C */
    const Score s = score_of(net, &dictionary, &alignment, &table, final ? FINAL : HELD_OUT);
    if (tensor_error()) return;
    const double spoken = s.all.words, sounds = s.all.sounds;
    print_by_length(&s);
    report("sounds wrong", s.all.wrong, sounds, "<", 0.11);
    report("words right", s.all.right, spoken, ">=", 0.58);
    report("words right by the letter table", s.all.table_right, spoken, "<", s.all.right / spoken);
    if (!has_attention(net)) return;
    report("looks that never go left", s.steps - s.left, s.steps, ">=", 0.99);
    report("looks at the alignment's letter", s.agree, sounds, ">=", 0.94);
    report("the diagonal at the alignment's letter", s.diagonal, sounds, "<", s.agree / sounds);
    report("weight of a silent letter", s.on_silent, s.silent, "<", 0.35);
    report("weight of a letter that says a sound", s.on_sounding, s.sounding, ">=", 0.9);
}

/* ---- one word step by step ---------------------------------------------------------------------
 */

/* The attention of a whole backward pass, for the page. */
typedef struct {
    Tensor *queries, *keys, *values; /* (1, S, h), (1, T, h), (1, T, h) */
    Tensor *w;                       /* (1, h), of additive attention */
    Tensor *context_grad;            /* (1, S, h), of the loss by the contexts */
    double loss;
} Seen;

/* The shortest of the words to show. */
static int shortest(void) {
    int best = dictionary.shown[0];
    for (int i = 1; i < dictionary.num_shown; i++)
        if (dictionary.word[dictionary.shown[i]].num_letters < dictionary.word[best].num_letters)
            best = dictionary.shown[i];
    return best;
}

/* For a word that the dictionary does not have, what the model says is taken for right. */
static void as_said(EncoderDecoder *net, Batch *batch) {
    int64_t said[MOST_SAID + 2] = {0}; /* a 0 before the sounds, and one after them */
    Tensor *weights;
    if (!speak(net, batch, said + 1, &weights)) return;
    const Shape shape = SHAPE(1, count_sounds(said + 1) + 1);
    batch->before = tape_own(tensor_from_int64s(shape, said));
    batch->answers = tape_own(tensor_from_int64s(shape, said + 1));
}

/* One forward and backward pass of the whole model. The queries and keys of the page are what a
 * score compares: for additive attention W_q q and W_k k. */
static Seen see(EncoderDecoder *net, const Batch *batch) {
    Seen seen = {0};
    Tensor *weights;
    tape_begin();
    tape_keep_grads(true);
    Tensor *keys = encode(net, batch->letters, batch->lengths);
    Tensor *queries = decode(net, batch->before, NULL);
    Tensor *contexts = attend(net, queries, keys, batch->lengths, &weights);
    Tensor *loss = loss_of(answer(net, queries, contexts), batch);
    if (ag_backward(loss)) {
        Tensor *q = net->additive ? nn_linear_forward(net->additive->W_q, queries) : queries;
        Tensor *k = net->additive ? nn_linear_forward(net->additive->W_k, keys) : keys;
        seen =
            (Seen){.queries = recording_leaf(q, "queries"),
                   .keys = recording_leaf(k, "keys"),
                   .values = recording_leaf(keys, "values"),
                   .w = net->additive ? recording_constant(net->additive->w_v->weight, "w") : NULL,
                   .context_grad = recording_constant(contexts->grad, "G"),
                   .loss = tensor_item(loss)};
    }
    tape_end();
    return seen;
}

/* What the page shows: the contexts again, and a sum that has the loss's gradient. */
static Tensor *page_sum(const Seen *s) {
    Tensor *scores = s->w ? ag_additive_scores(s->queries, s->keys, s->w, NULL)
                          : ag_scale(ag_bmm(s->queries, ag_transpose(s->keys, 1, 2)),
                                     1 / sqrt((double)options.hidden));
    Tensor *weights = ag_name(ag_softmax(ag_name(scores, "scores"), 2), "attention_weights");
    Tensor *contexts = ag_name(ag_bmm(weights, s->values), "contexts"); /* (1, S, h) */
    return ag_name(ag_sum(ag_name(ag_mul(s->context_grad, contexts), "products")), "total");
}

/* The words of a page: the sounds of its rows, with the end, and the letters of its columns. */
typedef struct {
    const char *sound[MOST_SAID + 2], *letter[WORD_MAX + 1]; /* then a NULL */
    char text[WORD_MAX][2];
} PageWords;

static void name_page(PageWords *page, const Word *word, const int64_t *sound) {
    const int n = count_sounds(sound);
    for (int i = 0; i <= n; i++) page->sound[i] = dictionary.sound[sound[i]];
    for (int l = 0; l < word->num_letters; l++) {
        page->text[l][0] = word->text[l];
        page->letter[l] = page->text[l];
    }
}

static const char additive_text[] =
    "A score adds a query and a key: `queries` are W_q times the states of the decoder, `keys` are "
    "W_k times the states of the encoder. `values` are these states themselves; here the gradients "
    "of keys and values are apart.";
static const char dot_text[] = "`queries` are the states of the decoder, `keys` and `values` those "
                               "of the encoder; here the gradients of keys and values are apart.";
static const char sum_text[] =
    "The page is too small for the rest of the model: it has only `G`, the gradient of the model's "
    "loss by the contexts. `total`, the sum of `G` times the contexts, has the gradient "
    "`G`, so all gradients before it are those of the loss; its value means nothing.";
static const char sign_text[] =
    "A step of SGD goes against the gradient: a negative number in the gradient of the scores "
    "means that the model should look more at this letter.";

/* Writes the page of one word. A page cannot show the matrices of the model. The whole model
 * runs once, and the page gets the gradient of its loss by the contexts, G: the sum of G times the
 * contexts, number by number, has the gradients that the loss has. */
static void explain(EncoderDecoder *net) {
    const int number = shortest();
    const Word *word = &dictionary.word[number];
    PageWords page = {.sound = {NULL}};
    char title[64], command[96], text[1024], sounds[SOUNDS_TEXT];
    nn_train(net, false);
    tape_begin_no_grad();
    Batch batch = batch_of(number);
    if (word->num_sounds == 0) as_said(net, &batch);
    int64_t answers[MOST_SAID + 1] = {0};
    tensor_to_int64s(batch.answers, answers);
    write_sounds(sounds, answers, count_sounds(answers));
    name_page(&page, word, answers);
    const Seen seen = see(net, &batch);
    tape_end();
    recording_prepare(net);
    recording_begin();
    Tensor *sum = page_sum(&seen);
    snprintf(title, sizeof title, "pronounce: %s", word->text);
    snprintf(command, sizeof command, "build/pronounce --show %s --explain FILE.html", word->text);
    snprintf(text, sizeof text,
             "The word %s after %" PRId64 " step%s of training. It is said%s; the model's loss "
             "is %.4f. A row of `attention_weights` says where the model looks before a sound, the "
             "last row is the end of the word; a column is a letter.",
             word->text, run.step, plural(run.step), sounds, seen.loss);
    const Recording recording = {
        .title = title,
        .idea = "The loss knows the right sounds; the gradient of the scores finds their letters.",
        .command = command,
        .columns = "",
        .text = {text, seen.w ? additive_text : dot_text, sum_text, sign_text},
        .formula = {seen.w ? "attention_weights = softmax(w tanh(queries + keys))"
                           : "attention_weights = softmax(queries keys' / sqrt(d))",
                    "contexts = attention_weights values", "G = d loss of the model / d contexts",
                    "total = sum(G * contexts)"},
        .queries = page.sound,
        .keys = page.letter};
    recording_end(net, sum, &recording, run.explain);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    CHOICE_FLAG("--attention", options.attention, "additive|dot|last|mean",
                "The score of a query and a key: w . tanh(W_q q + W_k k), or q . k / sqrt(d). The\n"
                "other two have no attention: the model gets the encoder's last states, or the\n"
                "mean of all states."),
    TEXT_FLAG("--words", dictionary_path, "FILE", "examples/data/pronounce.txt",
              "The dictionary: a word and its sounds in each line."),
    TEXT_FLAG("--show", shown, "WORDS", "daughter,light,knight,box,psychology,taxi",
              "Words to show, in any spelling. Those of the dictionary, and words that begin with\n"
              "the same four letters, are not trained on."),
    INTEGER_FLAG("--hidden", options.hidden, 2, 1024, "from 2 to 1024",
                 "The size of the vectors, even."),
    NUMBER_FLAG("--dropout", options.dropout, 0, 1, "from 0 to 1", "Probability of dropout."),
    NUMBER_FLAG("--decay", decay, 0, 1e300, "of at least 0", "Weight decay."),
    SWITCH_FLAG("--final", final,
                "Measure by words that no choice was made by, for numbers that are reported."),
};

/* The number of the chosen attention: dot, last and mean have the same parameters. */
static Tensor *which_attention(void) {
    static const char *const all[] = {"additive", "dot", "last", "mean"};
    int64_t i = 0;
    while (strcmp(all[i], options.attention) != 0) i++;
    return tensor_from_int64s(SCALAR, &i);
}

int main(int argc, char **argv) {
    training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
    if (options.hidden % 2)
        flags_misuse(run.program, "--hidden %" PRId64 " is odd", options.hidden);
    const bool looks = options.attention[0] == 'a' || options.attention[0] == 'd';
    if (run.explain && !looks)
        flags_misuse(run.program, "--explain shows attention, and --attention %s is none",
                     options.attention);
    if (dictionary_path == english)
        dictionary_path = repository_find(english, "name a dictionary, --words");
    if (dictionary_path && dictionary_read(&dictionary, dictionary_path, shown)) {
        alignment_learn(&alignment, &dictionary);
        letter_table_learn(&table, &dictionary, &alignment);
    }
    EncoderDecoder *net = encoder_decoder_new(&options, dictionary.num_sounds);
    first_input(net);
    Optimizer *adamw = nn_adamw_new(net, (AdamWConfig){.lr = run.lr, .weight_decay = decay});
    training_must_match(&run, "attention", which_attention());
    training_must_match(&run, "dictionary (--words)", dictionary_fingerprint(&dictionary));
    training_must_match(&run, "choice of training words (--show)",
                        dictionary_is_trained(&dictionary));
    training_begin(&run, net, adamw);
    train(net, adamw);
    if (training_finish(&run)) evaluate(net);
    if (run.explain && !tensor_error()) explain(net);
    nn_free(adamw);
    nn_free(net);
    letter_table_free(&table);
    dictionary_free(&dictionary);
    return training_status(&run);
}
