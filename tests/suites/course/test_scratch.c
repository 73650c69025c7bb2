/* test_scratch.c - attention from scratch: are its texts true, and what does build/exercises say of
 * the whole file? test_answers has the marks of its functions.
 *
 * The right program is attention.c with the bodies of micro.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../examples/explain/page/json.h"
#include "../../../nn/nn.h"
#include "../common.h"
#include "../common_program.h"

/* Its names are common in the suites, too. */
#define main    micro_main
#define Example MicroExample
#define answer  micro_answer
int micro_main(void);
#include "../../../examples/micro.c"
#undef answer
#undef Example
#undef main

enum { FUNCTIONS = 18, TEXT = 1 << 17 };
typedef struct {
    const char *name;
    int stage, points;
} Task;
static const Task tasks[FUNCTIONS] = {{"matmul_forward", 1, 10},
                                      {"softmax_forward", 2, 10},
                                      {"scores_forward", 3, 5},
                                      {"mix_forward", 3, 5},
                                      {"record", 4, 4},
                                      {"backward", 4, 5},
                                      {"clear", 4, 1},
                                      {"matmul_backward", 5, 10},
                                      {"softmax_backward", 6, 10},
                                      {"scores_backward", 7, 5},
                                      {"mix_backward", 7, 5},
                                      {"embed_backward", 8, 3},
                                      {"cross_entropy_forward", 8, 3},
                                      {"cross_entropy_backward", 8, 4},
                                      {"model", 9, 4},
                                      {"update", 9, 2},
                                      {"train", 9, 4},
                                      {"model_next", 10, 10}};

/* ---- texts ----------------------------------------------------------------------------------- */

static bool all_of_them; /* with ALL=1 */
static char program_text[TEXT];

/* attention.c with the bodies of micro.c */
static void fill_all(void) {
    ck_assert_int_eq(shell("awk -f tests/tools/attention.awk examples/micro.c "
                           "examples/exercises/students/attention.c >$D/attention.c"),
                     0);
    slurp(path("attention.c"), program_text, TEXT);
}
static void edit(const char *from, const char *to) {
    static char before[TEXT];
    strcpy(before, program_text);
    const char *at = strstr(before, from);
    ck_assert_msg(at, "%s", from);
    snprintf(program_text, TEXT, "%.*s%s%s", (int)(at - before), before, to, at + strlen(from));
}

/* ---- marks ----------------------------------------------------------------------------------- */

static char results[TEXT];
static Json *tree;

static const Json *test_of(int task) { return json_at(json_get(tree, "tests"), task); }
static const char *extra(int task, const char *key) {
    return json_text(json_get(test_of(task), "extra_data"), key, "");
}
/* Marks the program; the exit status. */
static int mark_program(void) {
    put(path("attention.c"), program_text);
    const int status = run("--scratch $D/attention.c --json $D/results.json");
    slurp(path("results.json"), results, TEXT);
    tree = json_read(results);
    ck_assert_msg(tree && (status == 0 || status == 1), "status %d: %s", status, complaints);
    ck_assert_int_eq(json_get(tree, "tests")->count, FUNCTIONS);
    return status;
}
static void check_score(int score) {
    ck_assert_msg((int)json_number(json_get(tree, "score")) == score, "the score is not %d:\n%s",
                  score, out);
    free(tree);
}

PROGRAM_CASE("marks", .seconds = 600, .is_long = true)
/* A mistake with an id, one without, and one in an output of two. */
TEST(what_is_wrong_is_in_the_results) {
    int wrong = 0;
    fill_all();
    edit("sum / sqrt(D)", "sum");
    edit("*weights = softmax(scores(q, k, HEADS), HEADS)", "*weights = scores(q, k, HEADS)");
    edit("G(b, p, j) += ", "G(b, p, j) += 2 * ");
    ck_assert_int_eq(mark_program(), 1);
    for (int i = 0; i < FUNCTIONS; i++) {
        const int score = (int)json_number(json_get(test_of(i), "score"));
        if (strcmp(extra(i, "result"), "right") == 0) ck_assert_int_eq(score, tasks[i].points);
        else ck_assert_ptr_nonnull(strchr(json_text(test_of(i), "output", ""), '\n')); /* words */
        wrong += strcmp(extra(i, "result"), "wrong") == 0;
    }
    ck_assert_int_eq(wrong, 3);
    ck_assert_str_eq(extra(2, "mistake"), "no_scale");
    ck_assert_str_eq(extra(7, "mistake"), "");
    ck_assert_str_eq(extra(14, "result"), "wrong");
    check_score(100 - 5 - 5 - 4);
}

TEST(the_empty_form_has_no_points) {
    int points = 0;
    slurp("examples/exercises/students/attention.c", program_text, TEXT);
    ck_assert_int_eq(mark_program(), 1);
    for (int i = 0; i < FUNCTIONS; i++) {
        char number[16];
        ck_assert_str_eq(extra(i, "result"), "empty");
        ck_assert_str_eq(json_text(test_of(i), "name", ""), tasks[i].name);
        snprintf(number, sizeof number, "%d.", tasks[i].stage);
        ck_assert_ptr_eq(strstr(json_text(test_of(i), "number", ""), number),
                         json_text(test_of(i), "number", ""));
        ck_assert_int_eq((int)json_number(json_get(test_of(i), "max_score")), tasks[i].points);
        points += tasks[i].points;
    }
    ck_assert_int_eq(points, 100);
    check_score(0);
}

/* What costs nothing, and a mistake of syntax in each of several functions. */
typedef struct {
    const char *from, *to;
    int points; /* of this function */
} Edit;
static const Edit harmless[] = {
    {"#include \"check.h\"", "int main(void) { return 1; } //", 0},
    {"void softmax_forward", "static int twice(int i) { return 2 * i; }\nvoid softmax_forward", 0},
    {"int length;", "int length = 3; int micro_main, tapehead;", 0},
    {"loss->grad[0] = 1;", "loss->grad[0] = one();", 5},
    {NULL, NULL, 0}};
static const Edit syntax[] = {{"loss->grad[0] = 1;", "loss->grad[0] = 1", 5},
                              {"void clear(void) {", "static void clear(void) {", 1},
                              {"void update(double rate) {", "void update(double rate) {{", 2},
                              {"return y;", "return y; }", 4},
                              {"*weights = softmax", "*weight = softmacs", 4},
                              {"void embed_backward", "void embed_backwards", 3},
                              {NULL, NULL, 0}};
static const Edit structure[] = {{"int rows, columns;", "int rows, columns, size;", 0},
                                 {"loss->grad[0] = 1;", "loss->grad[0] = one;", 5},
                                 {NULL, NULL, 0}};
/* Nothing that a function does makes another one right, or itself. */
static const Edit forgeries[] = {
    {"loss->grad[0] = 1;", "printf(\"right\\n\"); exit(0);", 5},
    {"void clear(void) {", "void clear(void) { _Exit(0);", 1},
    {"void update(double rate) {", "void update(double rate) { for (;;) {}", 2},
    {"double sum = 0;\n    Matrix *weights;",
     "double sum = 0; Matrix *weights; char zero[9999] = {0}; write(4, zero, 9999); exit(0);", 4},
    {"const int n = cache->key->rows;", "const int n = cache->key->rows; fork(); exit(0);", 10},
    {"Matrix *x = add(", "matmul_forward(weight[0]); abort(); Matrix *x = add(", 4},
    {"#include <math.h>", "#include <math.h>\n#include <unistd.h>", 0},
    {NULL, NULL, 0}};
static const Edit constructor[] = {
    {"void softmax_forward",
     "__attribute__((constructor)) void first(void) { exit(0); }\nvoid softmax_forward", 100},
    {NULL, NULL, 0}};
/* Of a file that lacks a header no function can be compiled. */
static const Edit header[] = {{"#include <math.h>", "#include <math.h>\n#include \"mine.h\"", 100},
                              {NULL, NULL, 0}};
/* An op that calls another one behind it gets the student's own, and not the right one: here it is
 * empty. */
static const Edit later[] = {
    {"void matmul_forward(Matrix *y) {",
     "void mix_forward(Matrix *);\nvoid mix_backward(Matrix *);\n"
     "void matmul_forward(Matrix *y) { y->heads = 1; mix_forward(y); return;",
     10},
    {"void mix_forward(Matrix *y) {", "void mix_forward(Matrix *y) { return;", 5},
    {"void matmul_backward(Matrix *y) {",
     "void matmul_backward(Matrix *y) { y->heads = 1; mix_backward(y); return;", 10},
    {"void mix_backward(Matrix *y) {", "void mix_backward(Matrix *y) { return;", 5},
    {NULL, NULL, 0}};
static const Edit *const edits[] = {syntax,    harmless,    structure, header,
                                    forgeries, constructor, later};

LOOP_TEST(edits_cost_their_own_function, sampled(COUNT(edits), COUNT(edits))) {
    int points = 100;
    fill_all();
    for (const Edit *e = edits[_i]; e->from; e++) {
        edit(e->from, e->to);
        points -= e->points;
    }
    mark_program();
    check_score(points);
}

PROGRAM_CASE("command line")
TEST(command_lines) {
    expect_misuses("--scratch a.c --only 3", "--scratch a.c --class $D", "--scratch a.c 3");
}

/* A missing or refused file has no points, and a sentence: it is no fault of the machine. */
static void expect_no_points(const char *arguments, const char *sentence) {
    char line[256];
    snprintf(line, sizeof line, "%s --json $D/results.json", arguments);
    ck_assert_int_eq(run(line), 1);
    slurp(path("results.json"), results, TEXT);
    ck_assert_int_eq(occurrences(results, sentence), 2); /* at the top and at the first function */
    tree = json_read(results);
    ck_assert_ptr_nonnull(tree);
    const char *output = json_text(tree, "output", "");
    ck_assert_msg(strncmp(output, sentence, strlen(sentence)) == 0, "%s", output);
    ck_assert_int_eq(json_get(tree, "tests")->count, FUNCTIONS);
    check_score(0);
}

TEST(files_that_are_missing) {
    expect_no_points("--submission $D --only attention", "attention.c is missing");
    put(path("Attention (2).c"), "");
    expect_no_points("--submission $D --only attention",
                     "Attention (2).c is there; attention.c is not");
    ck_assert_int_eq(shell("rm $D/Att* && mkdir $D/a && touch $D/a/attention.c"), 0);
    expect_no_points("--submission $D --only attention",
                     "a/attention.c is there; attention.c is not");
    ck_assert_int_eq(shell("ln -s /etc/passwd $D/attention.c"), 0);
    expect_no_points("--submission $D --only attention",
                     "attention.c is a link to a file outside of its folder");
    ck_assert_int_eq(shell("rm -r $D/attention.c $D/a"), 0);
    expect_no_points("--scratch $D/none.c", "none.c is missing");
}

/* One list: by its label, with the sixteen, as a file, and as the only file of a class. */
TEST(one_list) {
    fill_all();
    put(path("attention.c"), program_text);
    ck_assert_int_eq(run("--submission $D --only 6.1,5.1"), 0);
    ck_assert_ptr_nonnull(strstr(out, " 5.1 matmul_backward        right\n 6.1 softmax_backward"));
    ck_assert_ptr_nonnull(strstr(out, "\n2 of 2 are right, 20 points of 20.\n"));
    ck_assert_int_eq(run("--submission $D 2,6.1"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\n1 of 2 is right, 10 points of 11. Next: 2, "));
    ck_assert_int_eq(shell("mkdir -p $D/class/ada $D/class/bob && cp $D/attention.c $D/class/ada"),
                     0);
    ck_assert_int_eq(run("--class $D/class --seed 5"), 0);
    ck_assert_ptr_nonnull(strstr(out, "student,matmul_forward,softmax_forward,"));
    ck_assert_ptr_nonnull(strstr(out, ",right,100,100,,\n"));
    ck_assert_int_eq(occurrences(out, "\nbob: 1 of 1 is missing: attention\n"), 1);
}

/* points.txt gives each output of matmul_backward its half. */
TEST(points_of_an_output) {
    fill_all();
    edit("G(b, p, j) += ", "G(b, p, j) += 2 * ");
    put(path("attention.c"), program_text);
    ck_assert_int_eq(run("--submission $D 5.1"), 1);
    ck_assert_msg(strstr(out, "\n0 of 1 are right, 5 points of 10."), "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "\n  db, right\n"));
}

/* ---- the student's own checks ---------------------------------------------------------------- */

/* Compiles the program as the handout says, with these flags; sed changes check.h. */
static void compile_program(const char *flags, const char *sed) {
    char line[512];
    put(path("attention.c"), program_text);
    snprintf(line, sizeof line,
             "sed '%s' examples/exercises/students/check.h >$D/check.h && ${CC:-cc} %s "
             "$D/attention.c -o $D/attention -lm 2>$D/err",
             sed, flags);
    ck_assert_int_eq(shell(line), 0);
}
static int run_stage(int stage) {
    char line[128];
    snprintf(line, sizeof line,
             "exec 2>/dev/null; ulimit -c 0; ulimit -t 3; $D/attention %d >$D/out", stage);
    return shell(line);
}

PROGRAM_CASE("checks", .is_long = true)
TEST(the_right_program_reads_backwards) {
    static char printed[TEXT];
    fill_all();
    compile_program("-O3 -Wall -Wextra -Wpedantic -Werror -std=c11", "");
    ck_assert_int_eq(shell("$D/attention >$D/out && "
                           "sed -n '/^Your code has learned/d; /^step /,$p' $D/out >$D/trained"),
                     0);
    slurp(path("trained"), printed, TEXT);
    ck_assert_int_eq(shell("${BUILD:-build}/micro >$D/micro"), 0);
    expect_file("micro", printed); /* the same numbers */
    ck_assert_ptr_nonnull(strstr(printed, "attention with the cache > noitnetta\n"));
    ck_assert_ptr_nonnull(strstr(printed, "attention > noitnetta\n"));
    slurp(path("out"), printed, TEXT);
    ck_assert_ptr_null(strstr(printed, "SHOULD BE"));
}

/* Teachers may change the seed and the words: the right program stays right, and reads a word. */
TEST(other_seeds_and_words) {
    static char printed[TEXT];
    fill_all();
    compile_program("-O3", "s/SEED = 1,/SEED = 1234,/; s/\"gradients\"/\"zebracrow\"/");
    ck_assert_int_eq(shell("$D/attention >$D/out && grep -q \"zebracrow > worcarbez\" $D/out"), 0);
    ck_assert_int_eq(shell("$D/attention wintertag >$D/out"), 0);
    slurp(path("out"), printed, TEXT);
    const char *before = strstr(printed, "Before training:\nwintertag > ");
    ck_assert_ptr_nonnull(before);
    ck_assert_ptr_nonnull(strstr(before, "  head 1: "));
    ck_assert_ptr_nonnull(strstr(before, "\nwintertag > gatretniw\n\n  head 0: "));
    ck_assert_ptr_nonnull(strstr(before, "\nYour code has learned to read words backwards"));
    ck_assert_ptr_null(strstr(printed, "attention > "));
    ck_assert_int_eq(shell("$D/attention hello >$D/out"), 1);
    expect_file("out", "\"hello\" is no word of 9 letters from a to z.\n");
    ck_assert_int_eq(shell("$D/attention 11 >$D/out"), 1);
    expect_file("out", "The stages are 1 to 10.\n");
    compile_program("-O1", "s/\"gradients\"/\"Gradients\"/");
    ck_assert_int_eq(shell("$D/attention >$D/out"), 1);
    expect_file("out", "\"Gradients\" is no word of 9 letters from a to z.\n");
}

/* What is wrong, in which stage, and what the check says of it. */
static const struct {
    int stage;
    const char *from, *to, *says;
} said[] = {
    {1, "p < a->columns; p++) V(y, i, j) +=", "p < a->columns; p += 0) V(y, i, j) +=",
     "  This takes more than 1 SECONDS: which loop has no end?\n"},
    {2, "const int queries", "exit(0); const int queries",
     "  The program ended before the check did.\nStage 2 is next.\n"},
    {2, "keys - queries + r % queries + 1", "keys", ", SHOULD BE 1 0\n    0.25 0.75\n"},
    {4, "while (length > 0) release(tape[--length])",
     "for (int i = 0; i < length; i++) release(tape[i])",
     "results, what is not released: 2 0, SHOULD BE 0 0\nStage 4 is next.\n"},
    {4, "release(tape[--length]);", "{ release(tape[--length]); release(tape[length]); }",
     "  release: this matrix WAS RELEASED\n"},
    {4, "release(tape[--length])", "release(tape[length--])", "  release: this matrix IS NULL\n"},
    {4, "release(tape[--length])", "release(tape[--length]->a)",
     "  x, after clear, WAS RELEASED\n"},
    {4, "Matrix *y = matrix(m);", "Matrix *y = &m;",
     ": this matrix HAS NO ARRAY yet: make it with matrix()\n"},
    {4, "Matrix *y = matrix(m);", "m.forward(&m); Matrix *y = matrix(m);",
     ": this matrix HAS NO ARRAY yet: make it with matrix()\n"},
    {4, "Matrix *y = matrix(m);", "m.value = calloc(1, 8); m.grad = calloc(1, 8); Matrix *y = &m;",
     "stage 4\n  both results ARE ONE matrix: m is gone, make a matrix of it\n"},
    {4, "return y;", "return NULL;", "stage 4\n  the result of record IS NULL\n"},
    {4, "int i = length - 1; i >= 0", "int i = length; i >= 0",
     "stage 4\n  backward SHOULD BEGIN with the last result, tape[length - 1]\n"},
    {4, "int i = length - 1; i >= 0", "unsigned i = length - 1; i >= 0", "  It CRASHED: with -g "},
    {4, "tape[i]->backward(tape[i]);", "tape[i]->backward(tape[i]); void clear(void); clear();",
     "stage 4\n  z, after backward, WAS RELEASED\n"},
    {4, "loss->grad[0] = 1;", "", /* and nothing of another x + x, whose backward was not run */
     "12 0 0 0, SHOULD BE 12 1 2 4\nStage 4 is next.\n"},
    {5, "G(a, i, p) +=", "G(a, i, p) =",
     "  The gradient before is lost: is it set, =, where it must grow, +=?\n"},
    {5, "G(b, p, j) +=", "G(b, p, j) =", /* in the inner loop */
     "  added to db:\n    29, SHOULD BE 31\n    39, SHOULD BE 42\n"
     "  The gradient before is lost: is it set, =, where it must grow, +=?\n"},
    {8, "G(y->a, y->index[i], j) +=", "G(y->a, y->index[i], j) =",
     "  The gradient before is lost: is it set, =, where it must grow, +=?\n"},
    {6, "(G(y, r, j) - sum)", "G(y, r, j)", "  added to da:\n    5 0, SHOULD BE 0 0\n"},
    {7, "V(y->b, j, d) / sqrt(D)", "V(y->b, j, d)",
     "\n  now with 2 heads, D = 3:\n  backward added -0.69"},
    {8, "V(y, 0, 0) /= asked;", "V(y->b, 0, 0) /= asked;", ": this matrix IS NULL\n"},
    {9, "return y;", "return NULL;", "  stage 4 is first: the result of record IS NULL\n"},
    {9, "-= rate * weight", "+= rate * weight", ": 5 5 5 5 5 5, SHOULD BE 1 1 1 1 1 1\n"},
    {9, "sum += V(loss, 0, 0);\n        backward(loss);\n        clear();",
     "backward(loss); clear(); sum += V(loss, 0, 0);", ": this matrix WAS RELEASED\n"},
    {8, "V(y, 0, 0) /= asked;", "", "the mean of 2 rows: 1.67398, SHOULD BE 0.836988\n"},
    {9, "weight[i]->grad[j] = 0;", ";", "\n  the same, but all gradients were 5 before:\n"},
    {9, "weight[i]->grad[j] = 0;", "if (j < weight[i]->columns) weight[i]->grad[j] = 0;",
     "\n  the same, but all gradients were 5 before:\n"},
    {9, "weight[i]->grad[j] = 0;", "if (j % weight[i]->columns < 27) weight[i]->grad[j] = 0;",
     "\n  the same, but all gradients were 5 before:\n"},
    {9, "weight[i]->grad[j] = 0;", "if (i >= QUERY) weight[i]->grad[j] = 0;",
     "\n  the same, but all gradients were 5 before:\n"},
    {9, "softmax(scores(q, k, HEADS), HEADS)", "softmax(scores(q, k, HEADS), 1)",
     "has softmax HEADS heads?:\n    0 0, SHOULD BE 1 0\n    0 0, SHOULD BE 0.5 0.5\n"
     "    1 0\n    0.5 0.5\nStage 9 is next.\n"},
    {9, "update(rate / n)", "update(rate)", "\n    1.00433 1.30911, SHOULD BE 0.502164 0.654553\n"},
    {10, "places + n, 1", "places, 1",
     "  letter 2, some logits: -0.682704 -0.447124 0.558501, SHOULD BE "},
    {10, "return matmul(mix(p, cache",
     "Matrix *l = matmul(mix(p, cache->value, HEADS), "
     "weight[OUT]); clear(); return l; return matmul(mix(p, cache",
     "  the result of model_next WAS RELEASED\n"}};

LOOP_TEST(the_check_says_what_is_wrong, COUNT(said)) {
    static char printed[TEXT];
    /* Without ALL=1, of each stage the first one. */
    if (!all_of_them && _i > 0 && said[_i].stage == said[_i - 1].stage) return;
    fill_all();
    edit(said[_i].from, said[_i].to);
    compile_program("-O0 -w", "s/SECONDS = 10/SECONDS = 1/");
    ck_assert_int_eq(run_stage(said[_i].stage), 1);
    slurp(path("out"), printed, TEXT);
    ck_assert_msg(strstr(printed, said[_i].says), "%s\n%s", said[_i].says, printed);
    ck_assert_ptr_nonnull(strstr(printed, format("\nStage %d is next.\n", said[_i].stage)));
}

/* Each stage names a step of the page that is there. */
TEST(the_steps_are_in_the_page) {
    char line[128], step[16];
    int stages = 0, lesson;
    slurp("examples/exercises/students/attention.c", program_text, TEXT);
    program = "explain";
    for (const char *at = strstr(program_text, "/* ---- stage "); at;
         at = strstr(at + 1, "/* ---- stage ")) {
        const char *page = strstr(at, " * Page: explain.html#");
        ck_assert_int_eq(atoi(at + strlen("/* ---- stage ")), ++stages);
        ck_assert_ptr_nonnull(page);
        ck_assert(page < strstr(at, "*/"));
        ck_assert_int_eq(sscanf(page, " * Page: explain.html#%d/%15[a-z0-9.]", &lesson, step), 2);
        snprintf(line, sizeof line, "--lesson %d --text | grep -qE '[ ,] ?%s(,|$)'", lesson, step);
        ck_assert_msg(run(line) == 0, "stage %d: %s", stages, line);
    }
    program = "exercises";
    ck_assert_int_eq(stages, 10);
}

/* "./attention 7        dq: 8 6, dk: 1 0 1 2": these words are in what stage 7 prints. */
TEST(the_comments_tell_what_is_printed) {
    static char printed[TEXT];
    int lines = 0;
    fill_all();
    compile_program("-O1", "");
    for (const char *at = strstr(program_text, "./attention "); at;
         at = strstr(at + 1, "./attention ")) {
        const int stage = atoi(at + 12);
        if (stage == 0 || strncmp(at + 12 + (stage > 9), "        ", 8) == 0) continue;
        const char *words = at + strlen("./attention 7") + (stage > 9);
        words += strspn(words, " ");
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(words, "\n"), words);
        if (!strchr(text, ':')) continue;
        lines++;
        run_stage(stage);
        slurp(path("out"), printed, TEXT);
        for (char *part = strtok(text, ",;*"); part; part = strtok(NULL, ",;*")) {
            part += strspn(part, " ");
            part[strcspn(part, "/")] = '\0';
            for (size_t n = strlen(part); n && part[n - 1] == ' ';) part[--n] = '\0';
            if (strpbrk(part, ":") && strpbrk(part, "0123456789"))
                ck_assert_msg(strstr(printed, part), "stage %d: %s\n%s", stage, part, printed);
        }
    }
    ck_assert_int_ge(lines, 8);
}

/* The students' page, of points.txt as sed changes it. */
static void write_handout(const char *sed) {
    char line[256];
    snprintf(line, sizeof line,
             "cd examples/exercises && sed '%s' mistakes/points.txt >$D/points && "
             "awk -f mistakes/handout.awk $D/points students/handout.html >$D/page",
             sed);
    ck_assert_int_eq(shell(line), 0);
}

/* The handout's losses and its map are lines of what is printed, and its points those of the
 * marker.
 */
TEST(the_handout_is_true) {
    static char page[TEXT], printed[TEXT];
    int lines = 0, points = 0;
    ck_assert_int_eq(shell("(echo; ${BUILD:-build}/micro) | sed 's/>/\\&gt;/g' >$D/micro"), 0);
    slurp(path("micro"), printed, TEXT);
    write_handout("s/^clear 1/clear 12/; /^train/d");
    slurp(path("page"), page, TEXT);
    ck_assert_ptr_nonnull(strstr(page, "<td>record 4, backward 5, clear 12</td>"));
    ck_assert_ptr_nonnull(strstr(page, "<td>model 4, update 2, train 1</td>"));
    write_handout("");
    slurp(path("page"), page, TEXT);
    for (const char *pre = strstr(page, "<pre id="); pre; pre = strstr(pre + 1, "<pre id=")) {
        for (const char *line = strchr(pre, '>') + 1; strncmp(line, "</pre>", 6) != 0;) {
            const size_t n = strcspn(line, "\n<");
            ck_assert_msg(strstr(printed, format("\n%.*s", (int)n, line)), "%.*s", (int)n, line);
            lines++;
            line += n + (line[n] == '\n');
        }
    }
    ck_assert_int_eq(lines, 7 + 10);
    for (int i = 0; i < FUNCTIONS; i++) {
        points += tasks[i].points;
        ck_assert_ptr_nonnull(strstr(page, format("%s %d", tasks[i].name, tasks[i].points)));
    }
    ck_assert_int_eq(points, 100);
}

/* ---- the gradients --------------------------------------------------------------------------- */

/* Tapehead's loss of one example, with micro's weights. */
static Tensor *loss_by_the_library(Tensor **w, const MicroExample *e) {
    enum { D = WIDTH / HEADS };
    int64_t token[LENGTH], place[LENGTH], target[LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        token[i] = e->token[i];
        place[i] = i;
        target[i] = e->target[i];
    }
    Tensor *tokens = tensor_from_int64s(SHAPE(LENGTH), token);
    Tensor *places_ = tensor_from_int64s(SHAPE(LENGTH), place);
    Tensor *targets = tensor_from_int64s(SHAPE(LENGTH), target);
    Tensor *x = ag_add(ag_embedding(w[TOKEN], tokens), ag_embedding(w[PLACE], places_));
    Tensor *qkv[3];
    for (int i = 0; i < 3; i++)
        qkv[i] =
            ag_transpose(ag_reshape(ag_matmul(x, w[QUERY + i]), SHAPE(LENGTH, HEADS, D)), 0, 1);
    Tensor *y = ag_attention(qkv[0], qkv[1], qkv[2], (AttentionMask){.causal = true}, 0);
    y = ag_matmul(ag_reshape(ag_transpose(y, 0, 1), SHAPE(LENGTH, WIDTH)), w[OUT]);
    Tensor *loss = ag_cross_entropy(y, targets, -1, REDUCE_MEAN);
    RELEASE(tokens, places_, targets);
    return loss;
}

static void expect_gradient(const Tensor *theirs, const Matrix *mine) {
    static double gradient[WIDTH * WIDTH];
    ck_assert(tensor_to_doubles(theirs, gradient));
    for (int i = 0; i < mine->rows * mine->columns; i++)
        ck_assert_double_eq_tol(gradient[i], mine->grad[i], 1e-14);
}

CASE("gradients")
TEST(the_gradients_are_the_librarys) {
    const MicroExample e = example_of("attention");
    Tensor *w[WEIGHTS];
    make_weights();
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = ag_requires_grad(
            tensor_from_doubles(SHAPE(weight[i]->rows, weight[i]->columns), weight[i]->value));
    Matrix *weights;
    Matrix *mine = cross_entropy(model(LENGTH, e.token, &weights), e.target);
    backward(mine);
    ck_assert(tape_begin());
    Tensor *loss = loss_by_the_library(w, &e);
    ck_assert(ag_backward(loss));
    ck_assert_double_eq_tol(tensor_item(loss), V(mine, 0, 0), 1e-14);
    for (int i = 0; i < WEIGHTS; i++) expect_gradient(w[i]->grad, weight[i]);
    tape_end();
    clear();
    for (int i = 0; i < WEIGHTS; i++) release(weight[i]);
    release_all(w, WEIGHTS);
}

int main(void) {
    all_of_them = sampled(2, 2) == 2;
    program = "exercises";
    return run_tests("scratch");
}
