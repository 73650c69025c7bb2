/* test_sources.c - the C beside a step of explain's page: every step of every lesson names its
 * lines, and these lines are in the files. */
#include "../common.h"
#include "../common_page.h"
#include "../common_program.h"
#include "common_live.h"

#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/page/program.h"

#include <stdlib.h>
#include <string.h>

/* Requests (live.h) for the lessons as they are, and with every setting that changes the ops. */
static const char *const requests[] = {
    "lesson 1",
    "lesson 2",
    "lesson 2\nno-scale 1",
    "lesson 2\nqueries 1\nkeys 1\nsize 1",
    "lesson 3",
    "lesson 3\nno-mask 1",
    "lesson 3\ncausal 1\nno-scale 1",
    "lesson 3b",
    "lesson 4",
    "lesson 4\ndropout 0\ncausal 1",
    "lesson 5",
    "lesson 5\nheads 1\nno-scale 1",
    "lesson 5\ncausal 1\ndropout 0.5",
    "lesson 6",
    "lesson 6\nadditive 1",
    "lesson 6\nadditive 1\ntokens 2",
    "play begin\nattention dot",
    "play begin\nattention additive\nno-mask 1",
};
enum { REQUESTS = COUNT(requests) };

/* Of the last answer. */
static const Json *lines;
static const Json *tensors;
static const Json *program_list;

static bool is_play(const char *request) { return strncmp(request, "play", 4) == 0; }

static void open_answer(const char *request) {
    if (is_play(request)) answer_to(request);
    const Json *tree = ask(is_play(request) ? "play record" : request);
    if (is_play(request)) answer_to("play end");
    const Json *lesson = json_at(json_get(tree, "lessons"), 0);
    ck_assert_msg(lesson != NULL, "%s: %s", request, json_text(tree, "error", ""));
    lines = json_get(json_get(lesson, "tape"), "lines");
    tensors = json_get(json_get(lesson, "tape"), "tensors");
    program_list = json_get(lesson, "program");
    ck_assert_int_gt(lines->count, 0);
    ck_assert_int_eq(program_list->count, lines->count);
}

static const char *result_of(const Json *line) {
    return json_text(json_at(tensors, json_integer(line, "out", -1)), "name", "");
}

/* Is this a list of one piece or more, all of which a page shows? */
static void expect_pieces(const char *request, const Json *line, const Json *list) {
    const char *op = json_text(line, "op", "");
    ck_assert_msg(list && list->count > 0, "%s: %s has no piece", request, op);
    for (const Json *piece = list->first; piece; piece = piece->next) {
        const int i = (int)piece->number;
        ck_assert_msg(i >= 0 && i < program_num_sources, "%s: %s: piece %d", request, op, i);
        ck_assert_msg(program_shown[i], "%s: %s: no page shows piece %d", request, op, i);
    }
}

static bool is_differentiated(const Json *line) {
    const Json *backward = json_get(line, "backward");
    for (const Json *part = backward->first; part; part = part->next)
        if (part->kind == JSON_OBJECT) return true;
    return false;
}

/* ---- every step ------------------------------------------------------------------------------ */

CASE("steps")
LOOP_TEST(every_step_has_its_lines, REQUESTS) {
    const char *request = requests[_i];
    open_answer(request);
    const Json *entry = program_list->first;
    for (const Json *line = lines->first; line; line = line->next, entry = entry->next) {
        ck_assert_int_eq(json_integer(entry, "line", -1), json_integer(line, "line", -2));
        expect_pieces(request, line, json_get(entry, "forward"));
        if (is_differentiated(line)) expect_pieces(request, line, json_get(entry, "backward"));
        const int64_t model = json_integer(entry, "model", -1);
        if (is_play(request)) ck_assert_int_eq(model, -1);
        else
            ck_assert_msg(model >= 0 && program_shown[model], "%s: %s has no line of the model",
                          request, result_of(line));
    }
    ask_no_more();
}

/* A page of one lesson shows all that its controls and its playground may need: no answer needs a
 * piece that the lesson alone did not. */
LOOP_TEST(a_page_shows_what_its_controls_need, LESSONS) {
    const char *request = format("lesson %d", _i + 1);
    for (int i = 0; i < program_num_sources; i++) program_shown[i] = false;
    ask(request);
    bool *shown = malloc((size_t)program_num_sources * sizeof *shown);
    memcpy(shown, program_shown, (size_t)program_num_sources * sizeof *shown);
    for (int i = 0; i < REQUESTS; i++) {
        const size_t first = strcspn(requests[i], "\n");
        const bool is_of_it = first == strlen(request) && !strncmp(requests[i], request, first);
        if (is_of_it || is_play(requests[i])) open_answer(requests[i]);
    }
    for (int i = 0; i < program_num_sources; i++)
        ck_assert_msg(shown[i] || !program_shown[i], "%s: the page does not show %s", request,
                      program_sources[i].title);
    free(shown);
}

/* ---- the right lines ------------------------------------------------------------------------- */

/* The text of a piece, its lines joined. */
static const char *joined(int64_t i) {
    static char all[1 << 14];
    ck_assert(i >= 0 && i < program_num_sources);
    *all = '\0';
    for (const char *const *line = program_sources[i].text; *line; line++) {
        strncat(all, *line, sizeof all - strlen(all) - 1);
        strncat(all, "\n", sizeof all - strlen(all) - 1);
    }
    return all;
}

static const Json *entry_of(const char *result) {
    const Json *entry = program_list->first;
    for (const Json *line = lines->first; line; line = line->next, entry = entry->next)
        if (strcmp(result_of(line), result) == 0) return entry;
    ck_abort_msg("there is no result %s", result);
    return NULL;
}

/* way: "forward" or "backward", piece 0 of it, or "model". */
static const struct {
    const char *request, *result, *way, *title, *part;
} known[] = {
    {"lesson 2", "A", "backward", "softmax_dx", "= y_j (g_j - sum_i y_i g_i)"},
    {"lesson 2", "A", "forward", "softmax", "exp(x[i] - max) / sum"},
    {"lesson 2", "K'", "backward", "transpose_backward", "tensor_view_transpose(dy"},
    {"lesson 2", "S", "backward", "product_backward", "da = dc b',  db = a' dc"},
    {"lesson 2", "S", "forward", "matmul", "sum += (SUM)a["},
    {"lesson 2", "E^2", "backward", "square", "2 * PRODUCT(x, dy)"},
    {"lesson 2", "loss", "backward", "sum_backward", "ag_expand_to_x"},
    {"lesson 2", "K'", "model", "build", "ag_transpose(k, 0, 1), \"K'\""},
    {"lesson 2", "E", "model", "lesson_loss", "ag_sub(y, t)"},
    {"lesson 3", "counted", "model", "lesson_loss", "counts"},
    {"lesson 3", "A", "backward", "masked_softmax_dx", "Where y is 0, dx is exactly 0"},
    {"lesson 3", "A", "model", "build", "ag_attention_weights("},
    {"lesson 3\nno-mask 1", "A", "model", "build", "ag_softmax("},
    {"lesson 4", "dropout(A)", "backward", "dropout", "The gradient is the"},
    {"lesson 5", "V transposed", "model", "split", "ag_transpose(x, 1, 2), text_of("},
    {"lesson 5", "transposed", "model", "merge", "ag_transpose(x, 1, 2), \"transposed\""},
    {"lesson 5", "A", "model", "attend", ": ag_softmax(s, -1);\n    a = ag_name(a, \"A\");"},
    {"lesson 6", "output", "model", "net_forward", "nn_dot_product_attention_forward("},
    {"lesson 6", "keys'", "model", "net_forward", "nn_dot_product_attention_forward("},
    {"lesson 6\nadditive 1", "output", "model", "additive", "ag_bmm(weights, x)"},
    {"lesson 6\nadditive 1", "queries", "model", "additive", "nn_linear_forward(net->W_q, x)"},
};
enum { KNOWN = COUNT(known) };

LOOP_TEST(the_lines_are_the_right_ones, KNOWN) {
    open_answer(known[_i].request);
    const Json *entry = entry_of(known[_i].result);
    const bool is_model = strcmp(known[_i].way, "model") == 0;
    const int64_t piece = is_model
                              ? json_integer(entry, "model", -1)
                              : (int64_t)json_number(json_at(json_get(entry, known[_i].way), 0));
    ck_assert_msg(strstr(joined(piece), known[_i].part) != NULL, "%s, %s, %s is %s",
                  known[_i].request, known[_i].result, known[_i].way, joined(piece));
    ck_assert_str_eq(program_sources[piece].title, known[_i].title);
    ask_no_more();
}

/* w is one number for all of D: its gradient is a sum, which another function computes. */
TEST(a_broadcast_is_undone) {
    open_answer("lesson 1");
    const Json *backward = json_get(entry_of("U"), "backward");
    const int64_t last = (int64_t)json_number(json_at(backward, backward->count - 1));
    ck_assert_int_eq(last, program_unbroadcast);
    ck_assert_str_eq(program_sources[last].title, "unbroadcast");
    const Json *square = json_get(entry_of("U^2"), "backward");
    for (const Json *piece = square->first; piece; piece = piece->next)
        ck_assert_int_ne((int)piece->number, program_unbroadcast);
    ask_no_more();
}

/* ---- the files ------------------------------------------------------------------------------- */

/* The lines of a file, one after the other. */
static void expect_in_file(const SourceText *source) {
    char line[256];
    FILE *file = fopen(source->file, "r");
    ck_assert_msg(file != NULL, "there is no file %s", source->file);
    for (int i = 1; i < source->line; i++) ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    for (const char *const *text_line = source->text; *text_line; text_line++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
        line[strcspn(line, "\n")] = '\0';
        ck_assert_msg(strcmp(line, *text_line) == 0, "%s:%d: %s: \"%s\" and \"%s\"", source->file,
                      source->line, source->title, *text_line, line);
    }
    fclose(file);
}

PROGRAM_CASE("files")
TEST(the_files_hold_the_lines) {
    ck_assert_int_gt(program_num_sources, 100);
    for (int i = 0; i < program_num_sources; i++) expect_in_file(&program_sources[i]);
}

/* A piece is a kernel or a function: not a comment alone, and not half a file. */
TEST(a_piece_is_short) {
    for (int i = 0; i < program_num_sources; i++) {
        const SourceText *source = &program_sources[i];
        int count = 0;
        while (source->text[count]) count++;
        ck_assert_msg(count >= 1 && count <= 60, "%s has %d lines", source->title, count);
        ck_assert_int_gt((int)strlen(source->title), 0);
    }
}

/* cut.awk ends with an error, and so does make, if a file has not what is cut out of it. */
static const struct {
    const char *change; /* of $D/sources, a copy of the files */
    const char *sentence;
} missing[] = {
    {"sed -i s/softmax_dx/softmax_d/ tensor/kernels/plain.inc && "
     "sed -i s/void.softmax_backward/void\\ b/ autograd/ops/softmax.c",
     "no kernel or function has the name softmax_backward"},
    {"sed -i s/filled/full/ autograd/ops/choose.c", "no kernel or function has the name filled"},
    {"sed -i s/ag_expand_to_x/expand/ autograd/*/*.c",
     "no kernel or function has the name ag_expand_to_x"},
    {"sed -i s/BINARY.name/BINARY/ tensor/kernels/elementwise.def",
     "the head does not say what BINARY is"},
    {"sed -i s/ag_name/name/g examples/explain/lessons/lesson2.c",
     "lesson2.c: no statement names a result"},
};

LOOP_TEST(what_is_missing_is_refused, COUNT(missing)) {
    static const char cut[] =
        "awk -f examples/explain/cut.awk tensor/kernels/elementwise.def tensor/kernels/plain_math.h"
        " tensor/kernels/plain.inc tensor/kernels/plain_*.inc $(find tensor -path '*/more/*.inc')"
        " autograd/*.c autograd/*/*.c examples/explain/lessons/lesson*.c >cut 2>said";
    const char *line =
        format("mkdir $D/sources && cp -R tensor autograd examples $D/sources && cd $D/sources && "
               "%s && %s; %s; test $? = 1 && grep -qF '%s' said",
               cut, missing[_i].change, cut, missing[_i].sentence);
    ck_assert_msg(shell(line) == 0, "%s", line);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static Json *data_of_page(const char *name) {
    Json *read = json_read(page_data(name));
    ck_assert_msg(read != NULL, "%s", tensor_error());
    return read;
}

static void expect_sources(const Json *page) {
    const Json *sources = json_get(page, "sources");
    ck_assert_ptr_nonnull(sources);
    ck_assert_int_eq(sources->count, program_num_sources);
    for (int i = 0; i < program_num_sources; i++) {
        const Json *source = json_at(sources, i);
        if (source->kind == JSON_NULL) continue;
        ck_assert_str_eq(json_text(source, "file", ""), program_sources[i].file);
        ck_assert_str_eq(json_text(source, "title", ""), program_sources[i].title);
        ck_assert_int_eq(json_integer(source, "line", 0), program_sources[i].line);
        const size_t size = strlen(joined(i)); /* with a \n at the end */
        ck_assert_int_eq((int)strlen(json_text(source, "text", "")), (int)size - 1);
        ck_assert(strncmp(json_text(source, "text", ""), joined(i), size - 1) == 0);
    }
}

PROGRAM_CASE("pages")
TEST(a_page_has_the_sources) {
    program = "explain";
    ck_assert_int_eq(run("--lesson 2 --page $D/page.html"), 0);
    Json *read = data_of_page("page.html");
    expect_sources(read);
    const Json *sources = json_get(read, "sources");
    ck_assert_int_eq(json_integer(read, "addition", -1), program_accumulate);
    ck_assert_int_eq(json_at(sources, program_accumulate)->kind, JSON_OBJECT);
    int left_out = 0; /* no lesson uses these ops */
    for (const Json *source = sources->first; source; source = source->next)
        left_out += source->kind == JSON_NULL;
    ck_assert_int_gt(left_out, program_num_sources / 3);
    free(read);
}

/* The ops of any program's tape have their pieces, too, but no line of a model. */
TEST(the_page_of_a_tape) {
    FILE *file = fopen(path("tape.json"), "w");
    Tensor *x = tensor_randn(SHAPE(2, 3));
    Tensor *b = tensor_randn(SHAPE(3));
    ag_requires_grad(x);
    ag_requires_grad(b);
    tape_begin();
    tape_keep_grads(true);
    ck_assert(ag_backward(ag_sum(ag_cumsum(ag_gelu(ag_add(x, b)), 1))));
    ck_assert(tape_write_json(file));
    tape_end();
    ck_assert_int_eq(fclose(file), 0);
    RELEASE(x, b);
    program = "explain";
    ck_assert_int_eq(run("--tape $D/tape.json --page $D/page.html"), 0);
    Json *read = data_of_page("page.html");
    expect_sources(read);
    const Json *list = json_get(json_at(json_get(read, "lessons"), 0), "program");
    const Json *sources = json_get(read, "sources");
    static const char *const titles[][2] = {
        {"add", "add"}, {"gelu", "gelu"}, {"cumsum", "cumsum_backward"}, {"sum", "sum_backward"}};
    ck_assert_int_eq(list->count, 4);
    for (int i = 0; i < 4; i++)
        for (int way = 0; way < 2; way++) {
            const Json *pieces = json_get(json_at(list, i), way ? "backward" : "forward");
            const Json *source = json_at(sources, (int64_t)json_number(json_at(pieces, 0)));
            ck_assert_str_eq(json_text(source, "title", ""), titles[i][way]);
            ck_assert_ptr_null(json_get(json_at(list, i), "model"));
        }
    const Json *backward = json_get(json_at(list, 0), "backward"); /* b was broadcast */
    ck_assert_int_eq((int)json_number(json_at(backward, backward->count - 1)), program_unbroadcast);
    free(read);
}

int main(void) { return run_tests("sources"); }
