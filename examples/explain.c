/* explain.c - writes a page that steps through backpropagation: six lessons about attention, or the
 * tape of any program. Lesson 3 has a second half.
 *
 * A lesson (examples/explain/lessons/lesson1.c and so on) runs a small model forward and backward
 * on an open tape. tape_write_json computes values, gradients, the terms of each gradient, the
 * reasons for zeros, and the check of each line. From these plan.c makes the steps, which the page
 * and the text in the terminal show; neither runs an op.
 *
 * The sections: the page, the text, a tape from a file, main.
 */
#include "common/flags.h"
#include "common/output.h"
#include "explain/page/check.h"
#include "explain/page/html.h"
#include "explain/lessons/lesson.h"
#include "explain/page/recording.h"
#include "explain/steps/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 }; /* of a tape */

/* The library as a WebAssembly module, an array that the Makefile makes of live.wasm.gz. */
extern const unsigned char live_wasm[];
extern const size_t live_wasm_size;

static LessonOptions options = {.dropout = -1, .seed = LESSON_SEED};
static const char *lesson_name; /* "3b"; NULL: all */
static int64_t lesson;          /* its number; 0: all */
static const char *tape_file;
static const char *page_file;
static bool text, causal, no_causal;
static FlagTexts rules;

/* ---- the page -------------------------------------------------------------------------------- */

static void write_page(const Page *page, const char *what) {
    if (tensor_error() || !html_write(page_file, page)) return;
    printf("%s: %s\n", page_file, what);
    printf("Open the page in a browser. The right arrow key takes the next step, first forward,\n"
           "then backward; click a number to see where it comes from.\n");
}

static void make_page(void) {
    char what[64];
    const int first = lesson > 0 ? (int)lesson : 1;
    const int last = lesson > 0 ? (int)lesson : LESSONS;
    if (!tensor_can_write_file(page_file)) return;
    char *json = lessons_as_json(first, last, options);
    if (lesson > 0) snprintf(what, sizeof what, "lesson %s", lesson_name);
    else snprintf(what, sizeof what, "lessons 1 to %d", LESSONS);
    write_page(&(Page){json, live_wasm, live_wasm_size}, what);
    free(json);
}

/* ---- the text -------------------------------------------------------------------------------- */

/* False, and no other lesson follows, after an error. */
static bool show_lesson(void *context, char *json) {
    bool *is_first = context;
    Json *tree = json_read(json);
    if (tree && !*is_first) printf("\n");
    *is_first = false;
    const bool more = tree && text_show(tree);
    free(tree);
    return more;
}

static void show_text(void) {
    bool is_first = true;
    const int first = lesson > 0 ? (int)lesson : 1;
    lessons_use(first, lesson > 0 ? first : LESSONS, options, show_lesson, &is_first);
}

/* ---- a tape from a file ---------------------------------------------------------------------- */

/* The whole file as a string; the caller frees it. NULL and an error, which begins with the name of
 * the file. */
static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return tensor_fail("%s: %s", path, strerror(errno));
    char *bytes = malloc(MOST_BYTES + 2);
    const size_t n = bytes ? fread(bytes, 1, MOST_BYTES + 1, file) : 0;
    if (!bytes) tensor_fail("out of memory");
    else if (ferror(file)) tensor_fail("%s: %s", path, strerror(errno));
    else if (n > MOST_BYTES)
        tensor_fail("%s: it has more than 1 MB: choose a smaller example", path);
    else if (memchr(bytes, '\0', n)) tensor_fail("%s: it is no text", path);
    else bytes[n] = '\0';
    fclose(file);
    if (!tensor_error()) return bytes;
    free(bytes);
    return NULL;
}

/* Is this text a tape? Errors begin with the name of the file. */
static bool is_tape(const char *path, const char *tape) {
    char sentence[512];
    char *copy = strdup(tape); /* reading overwrites it */
    Json *tree = copy ? json_read(copy) : tensor_fail("out of memory");
    const bool fits = tree && check_tape(tree);
    free(tree);
    free(copy);
    if (fits) return true;
    snprintf(sentence, sizeof sentence, "%s: %s", path, tensor_error());
    tensor_clear_error();
    return tensor_fail("%s", sentence);
}

/* The data of the page, which the caller frees. */
static char *tape_as_json(const char *path, const char *tape) {
    const char *slash = strrchr(path, '/');
    const Recording recording = {.title = slash ? slash + 1 : path,
                                 .idea = "The tape of a program, forward and backward.",
                                 .command = "build/explain --tape FILE.json",
                                 .columns = "",
                                 .tape = tape};
    return recording_as_json(&recording);
}

static void make_page_of_tape(void) {
    if (!tensor_can_write_file(page_file)) return;
    char *tape = read_file(tape_file);
    char *json = tape && is_tape(tape_file, tape) ? tape_as_json(tape_file, tape) : NULL;
    write_page(&(Page){.json = json}, tape_file);
    free(json);
    free(tape);
}

/* ---- main ------------------------------------------------------------------------------------ */

#define OWN "the lesson's own"
#define SIZE_FLAG(name, variable, sentence)                                                        \
    { name, FLAG_INTEGER, &(variable), "N", sentence, 1, 64, "from 1 to 64", OWN }

static const Flag flags[] = {
    {"--lesson", FLAG_CHOICE, &lesson_name, "1|2|3|3b|4|5|6",
     "One lesson, and not all of them; 3 has its second half, 3b, with it.", 0, 0, NULL, "all"},
    {"--page", FLAG_OUTPUT, &page_file, "FILE.html", "The page.", 0, 0, NULL, "explain.html"},
    SWITCH_FLAG("--text", text, "Print all steps of the lesson and write no page."),
    TEXT_FLAG(
        "--tape", tape_file, "FILE.json", "none",
        "Make the page of a tape that a program wrote with tape_write_json, not of a lesson."),
    SIZE_FLAG("--heads", options.heads, "Lesson 5: heads, of --size numbers each."),
    SIZE_FLAG("--queries", options.queries, "Lessons 1, 2 and 3: queries."),
    SIZE_FLAG("--keys", options.keys, "Lessons 1, 2 and 3: keys."),
    SIZE_FLAG("--tokens", options.tokens, "Lessons 4, 5 and 6: tokens."),
    SIZE_FLAG("--size", options.size, "Lessons 2 to 5: d, the numbers of a query and of a key."),
    {"--step", FLAG_INTEGER, &options.step, "N",
     "All lessons: show the tape after N steps of SGD on all leaves.", 0, LESSON_STEPS,
     "from 0 to 200", NULL},
    {"--rate", FLAG_NUMBER, &options.rate, "NUMBER", "All lessons: the learning rate of SGD.", 1e-4,
     10, "from 0.0001 to 10", OWN},
    {"--dropout", FLAG_NUMBER, &options.dropout, "NUMBER",
     "Lessons 4 and 5: the probability with which a weight is dropped.", 0, 1 - 1e-16,
     "of at least 0 and below 1", OWN},
    {"--seed", FLAG_SEED, &options.seed, "N",
     "All lessons: the seed of the numbers that are drawn.", 0, 0, NULL, OWN},
    TEXT_FLAG("--words", options.words, "\"the cat sat\"", OWN,
              "Lessons 2 to 6: the words of the tokens, and so how many tokens there are."),
    SWITCH_FLAG(
        "--causal", causal,
        "Lessons 3, 4 and 5: no query sees a later key than its own. In lesson 3 so it is."),
    SWITCH_FLAG("--no-causal", no_causal,
                "Lessons 3, 4 and 5: without the causal mask, which lesson 3 has by itself."),
    SWITCH_FLAG("--no-scale", options.no_scale,
                "Lessons 2 to 5: scores are not divided by sqrt(d)."),
    SWITCH_FLAG("--no-mask", options.no_mask, "Lesson 3: nothing is masked."),
    SWITCH_FLAG(
        "--lengths", options.lengths,
        "Lesson 3: padding stands at the end, and lengths say how many keys are before it."),
    SWITCH_FLAG("--window", options.window,
                "Lesson 3: a query sees its own key and the keys next to it."),
    SWITCH_FLAG("--pad-in-loss", options.pad_in_loss,
                "Lesson 3: the error of the padded query counts in the loss."),
    SWITCH_FLAG("--additive", options.additive,
                "Lesson 6: additive attention, with a tanh that is flat."),
    SWITCH_FLAG("--train", options.train,
                "Add the losses of 200 steps of SGD on all leaves to the data of the page; with\n"
                "--break both the right and the wrong ones."),
    TEXT_FLAG(
        "--break", options.rule, "MISTAKE", "none",
        "Plant a known mistake in the backward of the lines that it fits: softmax, transpose,\n"
        "assign, dropout, mask, or the name of any other, as no_scale. The check of these lines\n"
        "fails; with assign, = in place of +=, the sum of a gradient is wrong."),
    {"--rule", FLAG_TEXTS, &rules, "'NAME: FORMULA'",
     "Give the backward of a line by a formula, 'A: y * dy' or 'dA: dY @ V\\'': what is right stays\n"
     "green, what is wrong turns red, and a known mistake is named. May be given several times.",
     0, 0, NULL, "none"},
};

static void check_flags(void) {
    const char *refused = lesson_refuses((int)lesson, &options);
    if (options.rule && !wrong_find(options.rule))
        flags_misuse("explain", "--break: there is no mistake \"%s\"", options.rule);
    if (refused) flags_misuse("explain", "lesson %s takes no %s", lesson_name, refused);
    if (text && rules.n && lesson == 0)
        flags_misuse("explain", "--rule with --text needs a lesson: add --lesson");
    if (text && page_file) flags_misuse("explain", "--text writes no page: leave out --page");
    if (!tape_file) return;
    if (text) flags_misuse("explain", "--tape makes a page: leave out --text");
    if (lesson > 0) flags_misuse("explain", "--tape makes the page of a tape: leave out --lesson");
    refused = lesson_refuses(LESSONS + 1, &options);
    if (refused) flags_misuse("explain", "--tape makes the page of a tape: leave out %s", refused);
}

int main(int argc, char **argv) {
    flags_parse(argc, argv, "explain", "writes a page that steps through backpropagation", flags,
                sizeof flags / sizeof *flags);
    lesson = lesson_name ? *lesson_name - '0' : 0;
    options.part = lesson_name && lesson_name[1] == 'b' ? 'b' : '\0'; /* '\0': all parts */
    options.causal = (signed char)(causal - no_causal);
    options.experiments = experiments_as_json;
    for (int i = 0; i < rules.n; i++) lesson_set(&options, "formula", rules.text[i]);
    check_flags();
    if (!page_file) page_file = "explain.html";
    if (tape_file) make_page_of_tape();
    else if (text) show_text();
    else make_page();
    if (output_reader_is_gone()) return OUTPUT_READER_GONE;
    if (!tensor_error() && !output_stdout_ok()) tensor_fail("cannot write to standard output");
    if (!tensor_error()) return 0;
    fprintf(stderr, "explain: %s\n", tensor_error());
    return 1;
}
