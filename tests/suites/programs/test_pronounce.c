/* test_pronounce.c - the parts of examples/pronounce/: the GRU against PyTorch's numbers, the split
 * of the dictionary, alignments, the letter table, decoding and the score; and the words that
 * build/pronounce shows. test_programs.c tests what all training programs have in common. Run from
 * the root of the repository. */
#include "../../../examples/pronounce/score.h"
#include "../common.h"
#include "../common_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENGLISH     "examples/data/pronounce.txt"
#define SMALL_WORDS "tests/golden/words.txt"

/* ---- the GRU ------------------------------------------------------------------------------- */

static TensorDict *golden_file;

static void load_golden(void) {
    frame_setup();
    golden_file = tensor_load_safetensors("tests/golden/gru.safetensors");
    ck_assert_ptr_nonnull(golden_file);
}

static void free_golden(void) {
    tensor_dict_free(golden_file);
    frame_teardown();
}

static Tensor *torchs(const char *name) { return tensor_dict_get(golden_file, name); }

static void expect_torchs(Tensor *x, const char *name, double tolerance) {
    ck_assert_msg(tensor_allclose(x, torchs(name), 0, tolerance), "%s is not torch's", name);
}

static Gru *torchs_gru(const char *prefix) {
    Gru *gru = gru_new(3, 5);
    ck_assert_msg(nn_load_state_dict(gru, prefix, golden_file), "%s", tensor_error());
    return gru;
}

CASE("gru", .setup = load_golden, .teardown = free_golden)
TEST(initial_values) {
    tensor_set_default_dtype(F32);
    tensor_manual_seed(7);
    Gru *gru = gru_new(3, 5);
    expect_torchs(gru->weight_ih, "initial.weight_ih_l0", 0);
    expect_torchs(gru->weight_hh, "initial.weight_hh_l0", 0);
    expect_torchs(gru->bias_ih, "initial.bias_ih_l0", 0);
    expect_torchs(gru->bias_hh, "initial.bias_hh_l0", 0);
    nn_free(gru);
    tensor_set_default_dtype(F64);
}

static void expect_gradients(Gru *gru, const char *direction) {
    for (ModuleSlot *p = NULL; nn_next_parameter(gru, "", &p);)
        expect_torchs((*p->slot)->grad, format("d_%s.%s", direction, p->name), 1e-12);
}

/* torch's states are 0 after the end of a sequence; ours go on, and nothing reads them. */
TEST(both_directions_with_lengths) {
    Gru *forward = torchs_gru("forward.");
    Gru *backward = torchs_gru("backward.");
    Tensor *x = ag_requires_grad(tensor_clone(torchs("x")));
    Tensor *lengths = torchs("lengths");
    tape_begin();
    Tensor *both[] = {gru_forward(forward, x, NULL), gru_forward_reversed(backward, x, lengths)};
    Tensor *t = tape_own(tensor_arange_of(0, 6, 1, I64));
    Tensor *ended = ag_unsqueeze(ag_ge(t, ag_unsqueeze(lengths, 1)), 2);
    Tensor *states = ag_masked_fill(ag_cat(both, 2, 2), ended, 0);
    expect_torchs(states, "states", 1e-12);
    ck_assert(ag_backward_from(states, torchs("dy")));
    expect_torchs(x->grad, "dx", 1e-12);
    expect_gradients(forward, "forward");
    expect_gradients(backward, "backward");
    tape_end();
    tensor_release(x);
    nn_free(forward);
    nn_free(backward);
}

/* One step at a time, as in decoding, gives the states of all steps at once. */
TEST(from_a_state) {
    Gru *gru = torchs_gru("forward.");
    Tensor *x = torchs("x");
    Tensor *h = torchs("h");
    Tensor *list[6];
    tape_begin_no_grad();
    expect_torchs(gru_forward(gru, x, h), "states_from_h", 1e-12);
    for (int t = 0; t < 6; t++) {
        list[t] = gru_forward(gru, ag_slice(x, 1, t, t + 1), h);
        h = ag_select(list[t], 1, 0);
    }
    expect_torchs(ag_cat(list, 6, 1), "states_from_h", 1e-12);
    tape_end();
    nn_free(gru);
}

TEST(an_error_before_the_gru_stays) {
    Gru *gru = torchs_gru("forward.");
    tape_begin();
    tensor_fail("the first error");
    ck_assert_ptr_null(gru_forward(gru, NULL, NULL));
    FAILS(gru_forward_reversed(gru, NULL, NULL), "the first error");
    tape_end();
    nn_free(gru);
}

/* ---- the dictionary ------------------------------------------------------------------------ */

static Dictionary d;

static void read_words(const char *path, const char *shown) {
    ck_assert_msg(dictionary_read(&d, path, shown), "%s", tensor_error());
}

static const Word *find_word(const char *text) {
    for (int i = 0; i < d.num_words; i++)
        if (strcmp(d.word[i].text, text) == 0) return &d.word[i];
    ck_abort_msg("there is no word %s", text);
}

static int words_in(Part part) {
    int n = 0;
    for (int i = 0; i < d.num_words; i++) n += d.word[i].part == part;
    return n;
}

CASE("dictionary")
TEST(english) {
    read_words(ENGLISH, "knight");
    ck_assert_int_eq(d.num_words, 9617);
    ck_assert_int_eq(d.num_sounds, 1 + 39);
    ck_assert_int_eq(tensor_size(d.all.letters, 1), 10);
    ck_assert_int_eq(tensor_size(d.all.before, 1), 13);
    const Word *w = find_word("knight");
    ck_assert(w->num_letters == 6 && w->num_sounds == 3);
    ck_assert_str_eq(d.sound[w->sound[1]], "AY");
    ck_assert_int_eq(words_in(TRAINED) + words_in(HELD_OUT) + words_in(FINAL), 9617);
    ck_assert_int_eq(tensor_size(d.trained, 0), words_in(TRAINED));
    ck_assert(abs(words_in(HELD_OUT) - 960) < 50 && abs(words_in(FINAL) - 960) < 50);
    dictionary_free(&d);
}

/* For every pair of words with the same first four letters, by a way of its own: the file is sorted
 * by the alphabet, so a family is together. */
TEST(no_family_is_on_both_sides) {
    read_words(ENGLISH, "taxi,house,water");
    int families = 1;
    for (int i = 1; i < d.num_in_file; i++) {
        const Word *a = &d.word[i - 1];
        const Word *b = &d.word[i];
        const bool same = strncmp(a->text, b->text, 4) == 0;
        ck_assert_msg(same == (a->family == b->family), "%s, %s", a->text, b->text);
        if (same) ck_assert_msg(a->part == b->part, "%s, %s", a->text, b->text);
        families += !same;
    }
    ck_assert_int_eq(families, 3289);
    dictionary_free(&d);
}

static bool is_trained(const char *text) {
    bool found = false;
    for (int64_t i = 0; i < tensor_size(d.trained, 0); i++)
        found = found || strcmp(d.word[(int)tensor_get(d.trained, i)].text, text) == 0;
    return found;
}

TEST(shown_words_are_not_trained_on) {
    read_words(ENGLISH, "light");
    ck_assert(is_trained("house") && is_trained("houses") && is_trained("water"));
    const int trained = words_in(TRAINED);
    Tensor *before = dictionary_is_trained(&d);
    dictionary_free(&d);
    read_words(ENGLISH, "houses, WATER light\nqqq");
    ck_assert(!is_trained("house") && !is_trained("houses") && !is_trained("water"));
    ck_assert_int_eq(d.num_shown, 4);
    ck_assert_str_eq(d.word[d.shown[1]].text, "water");
    ck_assert_int_eq(find_word("light")->part, HELD_OUT);
    ck_assert_int_eq(find_word("qqq")->num_sounds, 0);
    ck_assert_int_eq(words_in(TRAINED) + words_in(SHOWN), trained + 1);
    Tensor *now = dictionary_is_trained(&d);
    ck_assert_int_eq(tensor_size(now, 0), 9617);
    ck_assert(!tensor_allclose(before, now, 0, 0));
    RELEASE(before, now);
    dictionary_free(&d);
}

/* What is shown by default is never trained on, so showing it needs no other training. */
TEST(the_default_words_change_nothing) {
    read_words(ENGLISH, "daughter,light,knight,box,psychology,taxi");
    ck_assert_int_eq(words_in(SHOWN), 0);
    dictionary_free(&d);
}

TEST(batches) {
    read_words(SMALL_WORDS, "xo");
    const Word *w = find_word("xo");
    const int64_t numbers[] = {d.shown[0], find_word("baxi") - d.word};
    ck_assert(w->part == SHOWN && d.num_words == d.num_in_file + 1);
    tape_begin();
    const Batch b = dictionary_batch(&d, tape_own(tensor_from_int64s(SHAPE(2), numbers)));
    EXPECT_ELEMENTS(b.letters, 24, 15, 0, 0, 2, 1, 24, 9);
    EXPECT_ELEMENTS(b.lengths, 2, 4);
    int s[4]; /* B AA K S IY: K S has two numbers */
    for (int i = 0; i < 4; i++) s[i] = d.word[numbers[1]].sound[i];
    EXPECT_ELEMENTS(b.before, 0, 0, 0, 0, 0, 0, 0, s[0], s[1], s[2], s[3],
                    d.word[numbers[1]].sound[4]);
    tape_end();
    dictionary_free(&d);
}

/* Every word of a part comes once. */
TEST(parts) {
    static int seen[9617];
    read_words(ENGLISH, "light");
    tape_begin_no_grad();
    int n = 0, next = 0;
    Tensor *numbers = dictionary_part(&d, FINAL, &next, 100);
    while (numbers) {
        for (int64_t i = 0; i < tensor_size(numbers, 0); i++, n++) {
            const int word = (int)tensor_get(numbers, i);
            ck_assert(d.word[word].part == FINAL && seen[word]++ == 0);
        }
        numbers = dictionary_part(&d, FINAL, &next, 100);
    }
    tape_end();
    ck_assert_int_eq(n, words_in(FINAL));
    dictionary_free(&d);
}

/* ---- alignments ---------------------------------------------------------------------------- */

static Alignment alignment;

/* letters: for each sound, the letter that says it. */
static void expect_alignment(const char *text, const char *letters) {
    const Word *w = find_word(text);
    int letter[WORD_MAX];
    char found[WORD_MAX + 1] = "";
    alignment_of(&alignment, w, letter);
    for (int i = 0; i < w->num_sounds; i++) {
        found[i] = w->text[letter[i]];
        ck_assert(i == 0 || letter[i] >= letter[i - 1]);
    }
    ck_assert_msg(strcmp(found, letters) == 0, "%s: %s, not %s", text, found, letters);
}

CASE("alignment")
TEST(plain_alignments) {
    read_words(ENGLISH, "light");
    alignment_learn(&alignment, &d);
    expect_alignment("bad", "bad");
    expect_alignment("stop", "stop");
    expect_alignment("box", "boxx");
    expect_alignment("light", "lit");
    expect_alignment("knight", "nit");
    expect_alignment("taxi", "taxxi");
    expect_alignment("daughter", "date");
    expect_alignment("winter", "winte");
    expect_alignment("thing", "tin"); /* a sound of two letters is at the first */
    dictionary_free(&d);
}

/* The two letters of a double letter are alike, so the alignments are equal: the first one says the
 * sound. */
TEST(double_letters) {
    int letter[WORD_MAX], doubles = 0;
    read_words(ENGLISH, "light");
    alignment_learn(&alignment, &d);
    for (const Word *w = d.word; w < d.word + d.num_words; w++) {
        bool says[WORD_MAX] = {false};
        alignment_of(&alignment, w, letter);
        for (int i = 0; i < w->num_sounds; i++) says[letter[i]] = true;
        for (int l = 1; l < w->num_letters; l++) {
            const bool one = w->letter[l] == w->letter[l - 1] && says[l] != says[l - 1];
            ck_assert_msg(!one || says[l - 1], "%s: letter %d", w->text, l);
            doubles += one;
        }
    }
    ck_assert_int_gt(doubles, 1000);
    dictionary_free(&d);
}

/* p(sound | letter) sums to 1, and most of it is where it belongs. */
TEST(probabilities) {
    read_words(SMALL_WORDS, "xo");
    alignment_learn(&alignment, &d);
    for (int l = 1; l < LETTERS; l++) {
        double sum = 0;
        for (int s = 0; s < d.num_sounds; s++) sum += exp(alignment.log_p[l][s]);
        ck_assert_double_eq_tol(sum, 1, 1e-12);
    }
    const Word *w = find_word("baxi");
    for (int i = 0; i < 2; i++)
        ck_assert_double_gt(exp(alignment.log_p[w->letter[i]][w->sound[i]]), 0.98);
    ck_assert_double_gt(exp(alignment.log_p['h' - 'a' + 1][0]), 0.98);
    dictionary_free(&d);
}

/* ---- the letter table ---------------------------------------------------------------------- */

TEST(the_table_reads_letter_by_letter) {
    LetterTable table;
    uint8_t sound[MOST_SAID];
    read_words(SMALL_WORDS, "xo");
    alignment_learn(&alignment, &d);
    ck_assert(letter_table_learn(&table, &d, &alignment));
    for (int i = 0; i < d.num_in_file; i++) { /* held-out words, too: the language is regular */
        const Word *w = &d.word[i];
        const int n = letter_table_say(&table, w, sound);
        ck_assert_msg(edit_distance(sound, n, w->sound, w->num_sounds) == 0, "%s", w->text);
    }
    Word unknown = {.num_letters = 1, .letter = {26}}; /* no word has a z */
    ck_assert_int_eq(letter_table_say(&table, &unknown, sound), 0);
    letter_table_free(&table);
    dictionary_free(&d);
}

/* ---- the model ----------------------------------------------------------------------------- */

static const char *const kinds[] = {"additive", "dot", "last", "mean"};

static EncoderDecoder *begin_model(int kind) {
    EncoderDecoder *net = encoder_decoder_new(
        &(EncoderDecoderOptions){.attention = kinds[kind], .hidden = 8}, d.num_sounds);
    ck_assert_ptr_nonnull(net);
    nn_train(net, false);
    return net;
}

CASE("model")
/* Greedy decoding, one sound at a time, says what the model says if it is given these sounds. */
LOOP_TEST(decoding, COUNT(kinds)) {
    read_words(SMALL_WORDS, "babu,pathetho,x");
    EncoderDecoder *net = begin_model(_i);
    int64_t said[3 * MOST_SAID], before[3 * (MOST_SAID + 1)] = {0};
    tape_begin_no_grad();
    int64_t numbers[] = {d.shown[0], d.shown[1], d.shown[2]};
    Batch batch = dictionary_batch(&d, tape_own(tensor_from_int64s(SHAPE(3), numbers)));
    Tensor *weights;
    Tensor *again;
    ck_assert(speak(net, &batch, said, &weights));
    const int most = 2 * 8;
    for (int n = 0; n < 3; n++)
        for (int i = 1; i < most; i++) before[n * most + i] = said[n * MOST_SAID + i - 1];
    batch.before = tape_own(tensor_from_int64s(SHAPE(3, most), before));
    Tensor *best = ag_argmax(encoder_decoder_forward(net, &batch, &again), 2);
    for (int n = 0; n < 3; n++) {
        bool ended = false;
        for (int i = 0; i < most; i++) {
            const int64_t sound = said[n * MOST_SAID + i];
            if (ended) ck_assert_int_eq(sound, 0);
            else ck_assert_int_eq(sound, (int64_t)tensor_get(best, n, i));
            ended = ended || sound == 0;
        }
    }
    ck_assert(!weights == (strcmp(kinds[_i], "last") == 0));
    if (weights) {
        again = ag_slice(again, 1, 0, tensor_size(weights, 1));
        ck_assert(tensor_allclose(weights, again, 0, 1e-12));
    }
    tape_end();
    nn_free(net);
    dictionary_free(&d);
}

/* What stands after the end of a word in a batch changes nothing. */
LOOP_TEST(a_word_is_the_same_alone, COUNT(kinds)) {
    read_words(SMALL_WORDS, "babu,pathetho");
    EncoderDecoder *net = begin_model(_i);
    int64_t numbers[] = {d.shown[0], find_word("baxi") - d.word};
    tape_begin_no_grad();
    Tensor *weights;
    Batch two = dictionary_batch(&d, tape_own(tensor_from_int64s(SHAPE(2), numbers)));
    numbers[1] = d.shown[1];
    Batch pair = dictionary_batch(&d, tape_own(tensor_from_int64s(SHAPE(2), numbers)));
    Batch one = dictionary_batch(&d, tape_own(tensor_from_int64s(SHAPE(1), numbers)));
    Tensor *alone = encoder_decoder_forward(net, &one, &weights); /* (1, 5, V) */
    Tensor *with = encoder_decoder_forward(net, &two, &weights);
    Tensor *with_long = encoder_decoder_forward(net, &pair, &weights);
    ck_assert(tensor_allclose(alone, ag_slice(ag_slice(with, 0, 0, 1), 1, 0, 5), 0, 1e-12));
    const int64_t S = tensor_size(with_long, 1) < 5 ? tensor_size(with_long, 1) : 5;
    ck_assert(tensor_allclose(ag_slice(alone, 1, 0, S),
                              ag_slice(ag_slice(with_long, 0, 0, 1), 1, 0, S), 0, 1e-12));
    tape_end();
    nn_free(net);
    dictionary_free(&d);
}

static Tensor *loss_of_parameters(Tensor **in, void *context) {
    (void)in;
    int64_t numbers[] = {find_word("babu") - d.word, find_word("baxi") - d.word};
    Batch batch = dictionary_batch(&d, tape_own(tensor_from_int64s(SHAPE(2), numbers)));
    return encoder_decoder_loss(context, &batch);
}

/* Every parameter learns: difference quotients agree with the gradients of the whole model. */
LOOP_TEST(gradients, COUNT(kinds)) {
    Tensor *parameter[32];
    int n = 0;
    read_words(SMALL_WORDS, "xo");
    EncoderDecoder *net = encoder_decoder_new(
        &(EncoderDecoderOptions){.attention = kinds[_i], .hidden = 4}, d.num_sounds);
    tape_begin_no_grad();
    loss_of_parameters(NULL, net); /* additive attention draws its matrices */
    tape_end();
    for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p);) parameter[n++] = *p->slot;
    ck_assert_msg(ag_gradcheck(loss_of_parameters, parameter, n, net, (GradcheckOptions){0}), "%s",
                  tensor_error());
    tape_begin();
    ck_assert_msg(nn_check_connected(loss_of_parameters(NULL, net), net), "%s", tensor_error());
    tape_end();
    nn_free(net);
    dictionary_free(&d);
}

/* ---- the score ----------------------------------------------------------------------------- */

static int distance(const char *a, const char *b) {
    return edit_distance((const uint8_t *)a, (int)strlen(a), (const uint8_t *)b, (int)strlen(b));
}

CASE("score")
TEST(edits) {
    ck_assert_int_eq(distance("", ""), 0);
    ck_assert_int_eq(distance("abc", "abc"), 0);
    ck_assert_int_eq(distance("", "abc"), 3);
    ck_assert_int_eq(distance("abc", ""), 3);
    ck_assert_int_eq(distance("kitten", "sitting"), 3);
    ck_assert_int_eq(distance("abc", "bc"), 1);
    ck_assert_int_eq(distance("bc", "abc"), 1);
    ck_assert_int_eq(distance("abcd", "dcba"), 4);
}

/* Equal weights look at the first letter, never to the left, and each letter gets 1 / n of each
 * sound. */
TEST(the_score_of_a_mean) {
    LetterTable table;
    double words = 0, right = 0, sounds = 0, on = 0, first = 0, diagonal = 0;
    int letter[WORD_MAX];
    read_words(SMALL_WORDS, "xo");
    alignment_learn(&alignment, &d);
    ck_assert(letter_table_learn(&table, &d, &alignment));
    EncoderDecoder *net = begin_model(3);
    const Score s = score_of(net, &d, &alignment, &table, HELD_OUT);
    for (const Word *w = d.word; w < d.word + d.num_words; w++)
        if (w->part == HELD_OUT) {
            alignment_of(&alignment, w, letter);
            for (int i = 0; i < w->num_sounds; i++)
                diagonal += letter[i] == (int)((double)i / w->num_sounds * w->num_letters);
            sounds += w->num_sounds;
            first++;
        }
    for (int n = 0; n <= WORD_MAX; n++) {
        words += s.by_length[n].words;
        right += s.by_length[n].table_right;
    }
    on = s.on_silent + s.on_sounding;
    ck_assert_int_eq((int)words, words_in(HELD_OUT));
    ck_assert_double_eq(right, words);
    ck_assert_double_eq(s.all.table_wrong, 0);
    ck_assert_double_eq(s.all.sounds, sounds);
    ck_assert_double_eq(s.steps, sounds - words);
    ck_assert_double_eq(s.left, 0);
    ck_assert_double_eq(s.diagonal, diagonal);
    ck_assert_double_eq_tol(on, sounds, 1e-9);
    ck_assert(s.agree >= first && s.agree < 2 * first); /* the first sound, and the x of xa */
    nn_free(net);
    letter_table_free(&table);
    dictionary_free(&d);
}

/* ---- the program --------------------------------------------------------------------------- */

#define SMALL "--threads 1 --quiet --words " SMALL_WORDS " --batch 8 --hidden 8 --steps 3 "

PROGRAM_CASE("program")
TEST(shows_any_spelling) {
    ck_assert_int_eq(run(SMALL "--show baxi"), 1);
    ck_assert_int_eq(strncmp(out, "baxi       ", 11), 0);
    ck_assert_ptr_nonnull(strstr(out, "   (the dictionary: B AA K S IY)\n"));
    run(SMALL "--show 'BaXi  zzzz,q'");
    ck_assert_int_eq(strncmp(out, "baxi       ", 11), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nzzzz       "));
    ck_assert_ptr_nonnull(strstr(out, "\nq          "));
    run(SMALL "--show abcdefghijklmnopqrstuvwxyzabcd --plot $D/a.svg"); /* 30 letters */
    ck_assert_str_eq(complaints, "");
}

TEST(refuses_what_is_no_word) {
    static const char *const no_words[][2] = {
        {"it-s", "\"it-s\" does not begin with a word of 1 to 30 letters a to z"},
        {"42", "\"42\" does not begin with a word"},
        {"a,\xC3\xA9", "does not begin with a word"},
        {"abcdefghijklmnopqrstuvwxyzabcde", "does not begin with a word"},
        {"' , '", "--show: there is no word in \" , \""},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "--show: there are more than 16 words"}};
    for (int i = 0; i < COUNT(no_words); i++) {
        expect_failure(format(SMALL "--show %s", no_words[i][0]), no_words[i][1]);
        ck_assert_str_eq(out, "");
    }
}

TEST(refuses_what_is_no_dictionary) {
    static const char *const files[][2] = {
        {"knight\n", ":1: \"knight\": the word has no sound"},
        {"# a\n\nknight N AY T\nKN1GHT N AY T\n",
         ":4: \"KN1GHT N AY T\": it does not begin with a word of 1 to 30 letters a to z"},
        {"a K K K\n", ":1: \"a K K K\": the word has more than 2 sounds for each letter"},
        {"a ABCDEFGH\n", ":1: \"a ABCDEFGH\": a sound has more than 7 bytes, or there are more"},
        {"# nothing\n", ": a dictionary of 0 words is too short for three parts"},
        {"a K\n", ": a dictionary of 1 word is too short for three parts"},
        {"a K\nb K\n", ": a dictionary of 2 words is too short for three parts"}};
    for (int i = 0; i < COUNT(files); i++) {
        put(path("words"), files[i][0]);
        expect_failure(SMALL "--words $D/words --show x", files[i][1]);
    }
}

/* A line that is too long is not two lines, and what follows a byte 0 is not lost. */
TEST(refuses_lines_that_it_cannot_hold) {
    ck_assert_int_eq(shell("{ echo 'a K'; printf '# %0600d\\n' 0; } >$D/words"), 0);
    expect_failure(SMALL "--words $D/words --show x",
                   ":2: the line has more than 510 bytes, or a byte 0");
    ck_assert_int_eq(shell("printf 'a K\\0 AE\\nb K\\n' >$D/words"), 0);
    expect_failure(SMALL "--words $D/words --show x",
                   ":1: the line has more than 510 bytes, or a byte 0");
    ck_assert_int_eq(shell("{ printf 'abcdefghijklmnopqrstuvwxyzabcd';"
                           "for i in $(seq 31); do printf ' K'; done; } >$D/words"),
                     0);
    expect_failure(SMALL "--words $D/words --show x", "\": the word has more than 30 sounds");
    ck_assert_int_eq(shell("for i in $(seq 64); do echo \"ab S$i\"; done >$D/words"), 0);
    expect_failure(SMALL "--words $D/words --show x",
                   ":64: \"ab S64\": a sound has more than 7 bytes,"
                   " or there are more than 63 different sounds");
}

/* Lines may end as on Windows, and the order of the words does not matter for families. */
TEST(reads_lines_of_any_system) {
    ck_assert_int_eq(shell("sed 's/$/\r/' " SMALL_WORDS " >$D/windows"), 0);
    run(SMALL "--show baxi");
    const char *before = copy_of_output();
    run(SMALL "--show baxi --words $D/windows");
    ck_assert_str_eq(out, before);
}

/* What was not trained to its end is shown, and not measured. */
TEST(after_ctrl_c) {
    ck_assert_int_eq(run_interrupted("--threads 1 --words " SMALL_WORDS
                                     " --hidden 8 --steps 100000 "
                                     "--every 1 --show baxi --plot $D/a.svg --final"),
                     130);
    ck_assert_int_eq(strncmp(out, "baxi       ", 11), 0);
    ck_assert_ptr_null(strstr(out, "final"));
    ck_assert_ptr_null(strstr(out, "letters  words"));
}

/* Without attention there are no looks to expect, and no page. */
TEST(without_attention) {
    ck_assert_int_eq(run(SMALL "--attention last"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\nexpect  words right"));
    ck_assert_ptr_null(strstr(out, "\nexpect  looks"));
    ck_assert_int_eq(run(SMALL "--attention additive"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\nexpect  looks"));
}

TEST(another_part) {
    run(SMALL "--save $D/model");
    const char *before = copy_of_output();
    run(SMALL "--load $D/model --final");
    ck_assert_str_ne(out, before);
    run(SMALL "--load $D/model");
    ck_assert_str_eq(out, before);
    run(SMALL "--load $D/model --show zzz,qqq,bakixyz"); /* none is trained on */
    ck_assert_str_eq(complaints, "");
}

/* The looks find the letters, though the loss knows only sounds. */
TEST(learns_to_look) {
    run(SMALL "--steps 1000 --hidden 16 --batch 16 --lr 0.01 --dropout 0");
    ck_assert_double_lt(number_after("expect  sounds wrong"), 0.11);
    ck_assert_double_ge(number_after("alignment's letter"), 0.9);
    ck_assert_double_ge(number_after("go left"), 0.97);
}

int main(void) {
    program = "pronounce";
    return run_tests("pronounce");
}
