/* test_charlm.c - tests the parts of examples/charlm.c: texts as numbers, the trigram model that
 * its loss must be below, and the draw of the next character. Run from the root of the repository.
 */
#include "../../../examples/charlm/corpus.h"
#include "../../../examples/charlm/draw.h"
#include "../../../examples/charlm/trigram.h"
#include "../common.h"
#include "../common_program.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- texts --------------------------------------------------------------------------------- */

static char written[] = "/tmp/test_charlm_XXXXXX"; /* the last text, as a file */

static const char *text_file(const char *bytes, size_t size) {
    strcpy(strrchr(written, '_'), "_XXXXXX");
    int file = mkstemp(written);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    return written;
}

static Corpus read_text(const char *bytes, size_t size, int64_t least) {
    Corpus text;
    bool ok = corpus_read(&text, text_file(bytes, size), least);
    unlink(written);
    ck_assert_msg(ok, "%s", tensor_error());
    return text;
}

CASE("texts")
TEST(symbols_are_the_bytes_that_occur_in_their_order) {
    const char bytes[] = "b\xFF\0ab\na.b\xFF"; /* 11 bytes with the NUL at the end */
    Corpus text = read_text(bytes, 11, 1);
    const uint8_t order[] = {'\0', '\n', '.', 'a', 'b', 0xFF};
    const uint8_t symbol[] = {4, 5, 0, 3, 4, 1, 3, 2, 4, 5, 0};
    ck_assert_int_eq(text.size, 11);
    ck_assert_int_eq(text.held_out, 10);
    ck_assert_int_eq(text.num_symbols, 6);
    ck_assert_mem_eq(text.byte, order, 6);
    ck_assert_mem_eq(text.symbol, symbol, 11);
    ck_assert_int_eq(text.symbol_of[0xFF], 5);
    ck_assert_int_eq(text.symbol_of['c'], -1);
    Tensor *vocabulary = corpus_vocabulary(&text);
    EXPECT_ELEMENTS(vocabulary, 0, '\n', '.', 'a', 'b', 0xFF);
    tensor_release(vocabulary);
    corpus_free(&text);
}

/* The letters a, b, c ... are their own numbers, 0, 1, 2 ... */
static Corpus alphabet(void) { return read_text("abcdefghijklmnopqrstuvwxyzabcd", 30, 3); }

TEST(windows_are_parts_of_the_text) {
    Corpus text = alphabet();
    const int64_t start[] = {3, 0, 27};
    Tensor *windows = corpus_windows(text.symbol, start, 3, 2);
    EXPECT_ELEMENTS(windows, 3, 4, 0, 1, 1, 2);
    tensor_release(windows);
    corpus_free(&text);
}

TEST(windows_are_drawn_from_everywhere_but_the_last_tenth) {
    Corpus text = alphabet(); /* 27 letters are learned, so windows of 5 begin at places 0 to 22 */
    int seen[26] = {0};
    Tensor *windows = corpus_draw(&text, 1000, 5);
    for (int64_t b = 0; b < 1000; b++) {
        int first = (int)tensor_get(windows, b, (int64_t)0);
        ck_assert_int_le(first, 22);
        seen[first]++;
        for (int64_t i = 1; i < 5; i++)
            ck_assert_int_eq((int)tensor_get(windows, b, i), (first + (int)i) % 26);
    }
    for (int i = 0; i <= 22; i++) ck_assert_int_gt(seen[i], 0);
    tensor_release(windows);
    corpus_free(&text);
}

TEST(a_passage_is_the_string_or_a_line_that_is_held_out) {
    char bytes[200];
    memset(bytes, '.', sizeof bytes);
    memcpy(bytes + 180, "no\n  \nyes, this one\n", 20);
    Corpus text = read_text(bytes, 200, 20);
    struct {
        const char *string, *expected;
        int64_t most;
    } cases[] = {{"one.", "one.", 2},
                 {NULL, "yes,", 4},
                 {NULL, "yes, this one\n", 14},
                 {NULL, "no\n  \nyes, this", 15},
                 {NULL, "no\n  \nyes, this one\n", 99}};
    for (int i = 0; i < COUNT(cases); i++) {
        Passage passage = corpus_passage(&text, cases[i].string, cases[i].most, 1);
        ck_assert_int_eq(passage.size, (int64_t)strlen(cases[i].expected));
        for (int64_t j = 0; j < passage.size; j++)
            ck_assert_int_eq(text.byte[passage.symbol[j]], cases[i].expected[j]);
        passage.symbol[passage.size++] = 0; /* the array has space for one more */
        Tensor *last = corpus_last(&passage, 2);
        Tensor *all = corpus_last(&passage, 100);
        ck_assert_int_eq(tensor_numel(all), passage.size);
        ck_assert(tensor_get(last, (int64_t)0, (int64_t)1) == 0);
        ck_assert(tensor_get(last, (int64_t)0, (int64_t)0) == passage.symbol[passage.size - 2]);
        RELEASE(last, all);
        free(passage.symbol);
    }
    corpus_free(&text);
}

TEST(what_cannot_be_read_is_said) {
    Corpus text;
    FAILS(corpus_read(&text, "/no/such.txt", 1),
          "cannot read /no/such.txt: No such file or directory");
    corpus_free(&text);
    FAILS(corpus_read(&text, "examples", 1), "cannot read examples: Is a directory");
    corpus_free(&text);
    FAILS(corpus_read(&text, "/dev/null", 1),
          "/dev/null: a text of 0 bytes is too short: its last tenth must have 1");
    corpus_free(&text);
    ck_assert(!corpus_read(&text, text_file("0", 1), 1));
    unlink(written);
    expect_error_like(written, "a text of 1 byte is too short: its last tenth must have 1");
    corpus_free(&text);
    FAILS(corpus_read(&text, "/dev/zero", 1), "/dev/zero: a text of more than 64 MB is too large");
    corpus_free(&text);
    ck_assert(!corpus_read(&text, text_file("0123456789012345678", 19), 2));
    unlink(written);
    expect_error_like(written, "a text of 19 bytes is too short: its last tenth must have 2");
    corpus_free(&text);
}

TEST(a_prompt_must_be_made_of_what_the_text_is_made_of) {
    Corpus text = alphabet();
    Passage passage = corpus_passage(&text, "", 9, 0);
    expect_error("the prompt is empty: it must have a character");
    free(passage.symbol);
    passage = corpus_passage(&text, "abCde", 9, 0);
    expect_error("the prompt's \"Cde\" begins with a character that is not in the text");
    free(passage.symbol);
    passage = corpus_passage(&text, "a\033[2J", 9, 0); /* the error must contain no control
                                                        * character */
    expect_error("the prompt's \"?[2J\" begins with a character that is not in the text");
    free(passage.symbol);
    corpus_free(&text);
}

/* Prints the bytes to a file or a terminal, and reads them there. */
static size_t shown(bool on_terminal, const char *bytes, size_t size, char *seen, size_t capacity) {
    Corpus text = read_text(bytes, size, 1);
    Passage all = {text.symbol, text.size};
    int slave, terminal = on_terminal ? open_terminal(&slave) : -1;
    FILE *file = on_terminal ? fdopen(slave, "r+") : tmpfile();
    corpus_print(&text, &all, file);
    ck_assert_int_eq(fflush(file), 0);
    rewind(file);
    size_t n =
        on_terminal ? (size_t)read(terminal, seen, capacity) : fread(seen, 1, capacity, file);
    fclose(file);
    if (on_terminal) close(terminal);
    corpus_free(&text);
    return n;
}

TEST(a_terminal_is_not_controlled_by_a_text) {
    const char bytes[] = "\xC3\xA9\t\x1B[2J \xC2\x9B"
                         "2J\x7F\r.\xC3\x9F\n";
    const char safe[] = "\xC3\xA9\t?[2J \xC2?2J??.\xC3\x9F";
    char seen[64] = "";
    size_t n = shown(false, bytes, sizeof bytes - 1, seen, sizeof seen);
    ck_assert_uint_eq(n, sizeof bytes);
    ck_assert_mem_eq(seen, bytes, sizeof bytes - 1);
    ck_assert_int_eq(seen[n - 1], '\n');
    if (!has_terminal("a_terminal_is_not_controlled_by_a_text")) return;
    shown(true, bytes, sizeof bytes - 1, seen, sizeof seen);
    ck_assert_mem_eq(seen, safe, sizeof safe - 1);
}

TEST(a_map_is_labelled_and_the_future_masked) {
    static AttentionMap map;
    Corpus text = alphabet();
    const int64_t start = 5;
    Tensor *weights = tensor_ones(SHAPE(1, 3, 3));
    Tensor *x = corpus_windows(text.symbol, &start, 1, 3);
    ck_assert(map_take(&map, weights, 0, -1));
    corpus_label(&text, x, &map);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(map.query[i], ((const char *[]){"f", "g", "h"})[i]);
        ck_assert_str_eq(map.key[i], map.query[i]);
        for (int j = 0; j < 3; j++) ck_assert_int_eq(isnan(map.weights[3 * i + j]) != 0, j > i);
    }
    RELEASE(weights, x);
    corpus_free(&text);
}

/* ---- trigrams ------------------------------------------------------------------------------ */

CASE("trigrams")
/* The text is abcabdcbca. After ab comes c once and d once; after b comes c twice and d once. Of
 * the eight letters that are counted, three are c. e never occurs. */
TEST(trigrams_are_what_they_are_by_hand) {
    const uint8_t text[] = {0, 1, 2, 0, 1, 3, 2, 1, 2, 0};
    Trigram model;
    ck_assert(trigram_fit(&model, text, 10, 5));
    memcpy(model.w, (double[]){0.1, 0.2, 0.3, 0.4}, sizeof model.w);
    const struct {
        uint8_t text[3];
        double p;
    } cases[] = {
        {{0, 1, 2}, 0.1 / 5 + 0.2 * 3 / 8 + 0.3 * 2 / 3 + 0.4 * 1 / 2}, /* abc */
        {{0, 1, 0}, 0.1 / 5 + 0.2 * 2 / 8},                             /* aba does not occur */
        {{2, 3, 2}, 0.1 / 5 + 0.2 * 3 / 8 + 0.7 * 1}, /* cd does not occur: p3 is p2, after d */
        {{0, 4, 2}, 0.1 / 5 + 0.9 * 3 / 8},           /* ae does not occur: p3 and p2 are p1 */
        {{1, 2, 0}, 0.1 / 5 + 0.2 * 2 / 8 + 0.3 * 2 / 3 + 0.4 * 2 / 2}, /* bca */
    };
    for (int i = 0; i < COUNT(cases); i++)
        ck_assert_double_eq_tol(trigram_probability(&model, cases[i].text, 2), cases[i].p, 1e-14);
    trigram_free(&model);
}

static Corpus licence(void) {
    Corpus text;
    ck_assert(corpus_read(&text, "LICENSE", 1));
    return text;
}

TEST(trigram_probabilities_sum_to_1) {
    Corpus text = licence();
    Trigram model;
    ck_assert(trigram_fit(&model, text.symbol, text.held_out, text.num_symbols));
    ck_assert_double_eq_tol(model.w[0] + model.w[1] + model.w[2] + model.w[3], 1, 1e-12);
    for (int a = 0; a < text.num_symbols; a += 5)
        for (int b = 0; b < text.num_symbols; b++) {
            double sum = 0;
            for (int c = 0; c < text.num_symbols; c++)
                sum +=
                    trigram_probability(&model, (uint8_t[]){(uint8_t)a, (uint8_t)b, (uint8_t)c}, 2);
            ck_assert_double_eq_tol(sum, 1, 1e-12);
        }
    trigram_free(&model);
    corpus_free(&text);
}

/* How often text[i - k] ... text[i] occurs in the first n symbols; without_last leaves text[i] out.
 */
static double occurs(const uint8_t *text, int64_t n, int64_t i, int k, bool without_last) {
    int count = 0;
    for (int64_t j = 2; j < n; j++)
        count += memcmp(text + j - k, text + i - k, (size_t)(k + !without_last)) == 0;
    return count;
}

/* p[0] to p[3] of text[i], counted in the first n symbols in a slow and simple way. */
static void frequencies(const uint8_t *text, int64_t n, int64_t i, int V, double p[4]) {
    p[0] = 1.0 / V;
    for (int k = 0; k < 3; k++) {
        double before = occurs(text, n, i, k, true);
        p[k + 1] = before > 0 ? occurs(text, n, i, k, false) / before : p[k];
    }
}

/* The weights make the last tenth of the learned text as probable as possible: they maximise L(w),
 * the mean of log(w' p), for w >= 0 and sum w = 1. At the maximum dL/dw_j = mean(p_j / (w' p)) is 1
 * for every w_j that is not 0, and at most 1 for the others (Karush, Kuhn and Tucker). */
TEST(the_weights_of_trigrams_are_the_likeliest) {
    Corpus text = licence();
    const int64_t n = text.size, counted = n - (n + 9) / 10;
    Trigram model;
    double slope[4] = {0};
    ck_assert(trigram_fit(&model, text.symbol, n, text.num_symbols));
    for (int64_t i = counted; i < n; i++) {
        double p[4], sum = 0;
        frequencies(text.symbol, counted, i, text.num_symbols, p);
        for (int j = 0; j < 4; j++) sum += model.w[j] * p[j];
        for (int j = 0; j < 4; j++) slope[j] += p[j] / sum / (double)(n - counted);
    }
    for (int j = 0; j < 4; j++) {
        ck_assert_double_lt(slope[j], 1 + 1e-3);
        if (model.w[j] > 1e-2) ck_assert_double_gt(slope[j], 1 - 1e-3);
    }
    trigram_free(&model);
    corpus_free(&text);
}

TEST(the_loss_of_trigrams_is_of_what_they_did_not_learn) {
    Corpus text = licence();
    Trigram model;
    double sum = 0;
    ck_assert(trigram_fit(&model, text.symbol, text.held_out, text.num_symbols));
    for (int64_t i = text.held_out + 1; i < text.size; i++) {
        double p[4], mix = 0;
        frequencies(text.symbol, text.held_out, i, text.num_symbols, p);
        for (int j = 0; j < 4; j++) mix += model.w[j] * p[j];
        sum -= log(mix);
    }
    double loss = trigram_loss(text.symbol, text.held_out, text.size, text.num_symbols);
    ck_assert_double_eq_tol(loss, sum / (double)(text.size - text.held_out - 1), 1e-12);
    ck_assert_double_lt(loss, log(text.num_symbols)); /* better than a guess */
    trigram_free(&model);
    corpus_free(&text);
}

/* ---- drawing ------------------------------------------------------------------------------- */

/* How often each of 5 scores is chosen in 20000 draws. */
static void draw_often(double temperature, int64_t top_k, int times[5]) {
    for (int i = 0; i < 20000; i++) {
        tape_begin_no_grad();
        Tensor *scores = tensor_from_doubles(SHAPE(5), (double[]){1, -2, 3, 0.5, 2});
        times[draw_from(scores, temperature, top_k)]++;
        tensor_release(scores);
        tape_end();
    }
}

/* The frequency of i must be within five standard deviations of softmax(scores / temperature) over
 * the kept scores. */
static void expect_draws(double temperature, int64_t top_k, const bool kept[5]) {
    const double score[5] = {1, -2, 3, 0.5, 2};
    int times[5] = {0};
    double sum = 0;
    draw_often(temperature, top_k, times);
    for (int i = 0; i < 5; i++) sum += kept[i] ? exp(score[i] / temperature) : 0;
    for (int i = 0; i < 5; i++) {
        double p = kept[i] ? exp(score[i] / temperature) / sum : 0;
        ck_assert_double_le(fabs(times[i] / 20000.0 - p), 5 * sqrt(p * (1 - p) / 20000));
    }
}

CASE("draws")
TEST(draws_follow_the_softmax) {
    const bool all[] = {true, true, true, true, true}, three[] = {true, false, true, false, true};
    expect_draws(1, 0, all);
    expect_draws(0.5, 5, all);
    expect_draws(3, 100, all);
    expect_draws(2, 3, three);
    expect_draws(1, 1, (bool[]){false, false, true, false, false});
}

TEST(a_draw_without_scores_is_an_error) {
    tape_begin_no_grad();
    ck_assert_int_eq(draw_from(tensor_fail("no scores"), 1, 3), -1);
    expect_error("no scores");
    Tensor *scores = tensor_full(SHAPE(3), (double)NAN);
    ck_assert_int_eq(draw_from(scores, 1, 0), -1);
    expect_error("multinomial: weight 0 of row 0 is nan: it must be finite and not negative");
    tensor_release(scores);
    tape_end();
}

/* ---- the program --------------------------------------------------------------------------- */

/* 60 steps; golden/generate_charlm.py computes their losses. */
#define SMALL                                                                                      \
    "--text LICENSE --layers 2 --width 16 --heads 2 --context 16 --batch 4 --steps 60 --lr 0.01"

static void expect_pytorchs_losses(const char *arguments) {
    char command[512], log[8192], *line = log;
    double held_out = (double)NAN;
    snprintf(command, sizeof command, SMALL " --quiet --every 1 --log $D/log.csv %s", arguments);
    ck_assert_int_eq(run(command), 1); /* the text is too short, and the steps too few, to pass */
    ck_assert_int_eq(sscanf(out, "expect  held-out loss  %lf", &held_out), 1);
    Tensor *losses = golden_tensor("charlm.txt", "losses");
    Tensor *expected = golden_tensor("charlm.txt", "held_out");
    ck_assert_double_eq_tol(held_out, tensor_item(expected), 1e-4);
    slurp(path("log.csv"), log, sizeof log);
    for (int64_t i = 0; i < 60; i++) {
        line = strchr(line, '\n');
        ck_assert_ptr_nonnull(line);
        double loss = strtod(strchr(line, ',') + 1, &line);
        ck_assert_double_eq_tol(loss, tensor_get(losses, i), 1e-5);
    }
    RELEASE(losses, expected);
}

PROGRAM_CASE("program")
TEST(it_trains_as_nanogpt_in_pytorch) {
    expect_pytorchs_losses("");
    expect_pytorchs_losses("--composed");
}

/* The text that the model wrote; it is printed before the expectations. */
static void sample(const char *arguments, char *text, size_t size) {
    ck_assert_int_eq(run(format(SMALL " --quiet --sample 40 %s", arguments)), 1);
    const char *end = strstr(out, "expect");
    ck_assert(end && end - out < (ptrdiff_t)size);
    memcpy(text, out, (size_t)(end - out));
    text[end - out] = '\0';
}

TEST(a_loaded_model_writes_what_it_wrote) {
    char first[256], again[256], other[256], greedy[256];
    sample("--prompt 'THE SOFTWARE' --save $D/m.safetensors", first, sizeof first);
    ck_assert_uint_eq(strlen(first), strlen("THE SOFTWARE") + 40 + 1);
    ck_assert_int_eq(strncmp(first, "THE SOFTWARE", 12), 0);
    const char *load = "--prompt 'THE SOFTWARE' --load $D/m.safetensors";
    sample(load, again, sizeof again);
    ck_assert_str_eq(again, first);
    sample("--prompt 'THE SOFTWARE' --load $D/m.safetensors --seed 2", other, sizeof other);
    ck_assert_str_ne(other, first);
    sample("--prompt 'THE SOFTWARE' --load $D/m.safetensors --top-k 1", greedy, sizeof greedy);
    ck_assert_str_ne(greedy, first);
    sample("--prompt 'THE SOFTWARE' --load $D/m.safetensors --temperature 0.01 --seed 3", again,
           sizeof again);
    ck_assert_str_eq(again, greedy); /* so cold that only the most probable character is drawn */
    sample("--load $D/m.safetensors --steps 0", again, sizeof again);
    ck_assert_int_eq(strncmp(again, "OUT OF OR IN CON", 16), 0); /* the prompt is a held-out line */
    expect_failure(SMALL " --prompt 'a#b'", "the prompt's \"#b\" begins with a character");
}

int main(void) {
    program = "charlm";
    return run_tests("charlm");
}
