/* test_inspect.c - tests of autograd/more/inspect.c: the lines of a tape, their vector-Jacobian
 * products, their forward once more, and the tape as JSON. */
#include "../common.h"
#include "../common_program.h"

#include "../../../examples/explain/page/json.h"

#include "../../../nn/nn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the lines ------------------------------------------------------------------------------- */

CASE("lines")
TEST(lines_are_those_of_tape_print) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    TapeLine line;
    ck_assert(!tape_line(0, &line));
    ck_assert(tape_begin());
    Tensor *c = tape_own(tensor_ones(SHAPE(2)));
    Tensor *y = ag_softmax(x, -1);
    Tensor *z = ag_layer_norm(y, NULL, c, 1e-5);
    ck_assert(tape_line(0, &line));
    ck_assert_str_eq(line.op, "kept");
    ck_assert_ptr_eq(line.out, c);
    ck_assert_ptr_null(line.text);
    ck_assert_int_eq(line.n_in, 0);
    ck_assert(tape_line(1, &line));
    ck_assert_str_eq(line.op, "softmax");
    ck_assert_str_eq(line.text->gradient, "y (dy - sum(y dy))");
    ck_assert_ptr_eq(line.out, y);
    ck_assert_ptr_eq(line.in[0], x);
    ck_assert(tape_line(2, &line));
    ck_assert_ptr_eq(line.out, z);
    ck_assert_int_eq(line.n_in, 3);
    ck_assert_ptr_null(line.in[1]);
    ck_assert(!tape_line(3, &line));
    ck_assert(!tape_line(-1, &line));
    ck_assert(tape_begin_no_grad()); /* tape_line reads the recording tape outside this one */
    ag_neg(x);
    ck_assert(!tape_line(3, &line));
    ck_assert(tape_line(2, &line));
    tape_end();
    tape_end();
    tensor_release(x);
}

/* The argument that a line shows. */
TEST(a_line_has_its_number) {
    static const struct {
        const char *op, *argument;
        double number;
    } lines[] = {{"scale", "s", 3},
                 {"clamp_min", "s", -0.5},
                 {"exp", NULL, 0},
                 {"dropout", "p", 0.25},
                 {"masked_softmax", "scale", 0.5},
                 {"softmax", NULL, 0},
                 {"layer_norm", "eps", 0.125},
                 {"rms_norm", "eps", 0.5}};
    Tensor *x = LEAF(SHAPE(1, 2, 2), 1, 2, 3, 4);
    TapeLine line;
    ck_assert(tape_begin());
    ag_scale(x, 3);
    ag_clamp_min(x, -0.5);
    ag_exp(x);
    ag_dropout(x, 0.25);
    ag_attention_weights(x, 0.5, (AttentionMask){0}, 1);
    ag_softmax(x, 1);
    ag_layer_norm(x, NULL, NULL, 0.125);
    ag_rms_norm(x, NULL, 0.5);
    for (int i = 0; i < COUNT(lines); i++) {
        ck_assert(tape_line(i, &line));
        ck_assert_str_eq(line.op, lines[i].op);
        ck_assert_pstr_eq(line.argument, lines[i].argument);
        ck_assert(line.number == lines[i].number);
    }
    tape_end();
    tensor_release(x);
}

LOOP_TEST(every_op_has_a_text, number_of_ops()) {
    const OpText *text = all_ops[_i]->text;
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(strncmp(text->call, "ag_", 3), 0);
    ck_assert(text->shapes && *text->shapes && text->value && *text->value && text->gradient &&
              *text->gradient);
}

/* ---- the vector-Jacobian product and the forward, of every op -------------------------------- */

/* All floats require a gradient, but not input number `constant`; -1: no input is a constant. */
static void make_inputs(const Sample *s, DType dtype, int constant, Tensor **in) {
    tensor_manual_seed(3);
    for (int i = 0; i < s->n; i++) {
        in[i] = sample_input(s, i, dtype);
        if (s->in[i].kind == 'r' && i != constant) ag_requires_grad(in[i]);
    }
}

/* A fixed random cotangent. You own it. */
static Tensor *cotangent_of(const Tensor *y) {
    Tensor *c = tensor_to(y, y->dtype);
    tensor_manual_seed(7);
    ck_assert(tensor_normal_(c, 0, 1));
    return c;
}

static void expect_equal(const Sample *s, const char *what, const Tensor *x, const Tensor *expected,
                         double tolerance) {
    const int64_t n = tensor_numel(expected);
    double *numbers = calloc((size_t)(2 * n) + 1, sizeof *numbers);
    ck_assert(tensor_to_doubles(x, numbers) && tensor_to_doubles(expected, numbers + n));
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(same_number(numbers[i], numbers[n + i], tolerance),
                      "%s %s: element %d of %s is %.17g, not %.17g", s->op,
                      tensor_shape_text(s->in[0].shape), (int)i, what, numbers[i], numbers[n + i]);
    free(numbers);
}

/* The line of the sample's op: the last line with this name. */
static int line_of(const char *op) {
    TapeLine line;
    int found = -1;
    for (int i = 0; tape_line(i, &line); i++)
        if (!strcmp(line.op, op)) found = i;
    return found;
}

static void check_line(const Sample *s) {
    Tensor *in[SAMPLE_INPUTS];
    Tensor *dx[64] = {NULL};
    TapeLine line;
    make_inputs(s, F64, -1, in);
    ck_assert(tape_begin());
    Tensor *y = call_op(s->op, in, s->n, s->number);
    ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
    const int i = line_of(s->op);
    ck_assert(tape_line(i, &line));
    if (y->requires_grad && line.out == y) {
        Tensor *dy = cotangent_of(y);
        Tensor *before = tensor_clone(dy);
        ck_assert(tape_vjp(i, dy, dx));
        expect_equal(s, "dy, which was only read,", dy, before, 0);
        ck_assert(ag_backward_from(y, dy));
        for (int k = 0; k < line.n_in; k++) {
            const bool alone = dx[k] && !line.in[k]->grad_fn && line.n_in == s->n;
            if (alone) expect_equal(s, "dx", dx[k], line.in[k]->grad, 1e-13);
            tensor_release(dx[k]);
        }
        Tensor *again = tape_forward(i);
        ck_assert_msg(again != NULL, "%s: %s", s->op, tensor_error());
        expect_equal(s, "the forward once more", again, y, 0);
        RELEASE(again, before, dy);
    }
    tape_end();
    release_all(in, s->n);
}

LOOP_TEST(a_line_computes_what_backward_adds_and_its_result_again, number_of_ops()) {
    each_sample(_i, check_line);
}

TEST(a_line_that_is_not_there_or_has_no_gradient_is_an_error) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *wrong = tensor_ones(SHAPE(3));
    Tensor *dx[1];
    FAILS(tape_vjp(0, x, dx), "tape_vjp: the open recording tape has no line 0");
    FAILS(tape_forward(4), "tape_forward: the open recording tape has no line 4");
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    Tensor *greater = ag_gt(x, x);
    FAILS(tape_vjp(1, x, dx), "tape_vjp: line 1, gt, has no gradient");
    FAILS(tape_vjp(0, wrong, dx),
          "tape_vjp: y is float64 (2,) and dy is float64 (3,): shapes and types must be equal");
    ck_assert(!tape_vjp(0, NULL, dx));
    tensor_clear_error();
    ck_assert(!tape_vjp(0, x, NULL));
    tensor_clear_error();
    ag_let_go(ag_square(y));
    ag_exp(y);
    ag_let_go(y);
    ck_assert_ptr_null(tape_forward(2)); /* its input was let go */
    expect_error_like("tape_forward: ", "was let go");
    Tensor *again = tape_forward(1); /* needs no gradient */
    ck_assert(again && again != greater && tensor_get(again, 0) == 0);
    ag_dropout(wrong, 0.5);
    FAILS(tape_forward(4),
          "tape_forward: line 4, dropout, has no gradient, so its draw was not kept");
    tape_own(tensor_ones(SCALAR));
    FAILS(tape_forward(5), "tape_forward: line 5 is no op");
    tape_end();
    RELEASE(wrong, x, again);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static char *json_text_read; /* the text of the last tape_as_json; the tree points into it */

/* The open tape as JSON. Free it with free_json. */
static Json *tape_as_json(void) {
    FILE *file = tmpfile();
    ck_assert_msg(tape_write_json(file), "%s", tensor_error());
    const long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    rewind(file);
    ck_assert_uint_eq(fread(text, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    Json *json = json_read(text);
    ck_assert_msg(json != NULL, "%s", tensor_error());
    json_text_read = text;
    return json;
}

static void free_json(Json *json) {
    free(json);
    free(json_text_read);
}

/* Checks input k of a line: the terms of each element sum to dx, and the error of the Jacobian is
 * small. The dx of all lines must sum to the gradient. */
static void check_input(const Json *tensors, const Json *line, int64_t k, double tolerance,
                        double *sums) {
    const Json *back = json_at(json_get(line, "backward"), k);
    const Json *x = json_at(tensors, (int64_t)json_at(json_get(line, "in"), k)->number);
    const bool has_gradient = json_get(x, "requires_grad")->number == 1;
    ck_assert_msg(has_gradient == (back->kind != JSON_NULL), "%s: input %d has%s a gradient",
                  json_text(line, "op", ""), (int)k, has_gradient ? " no" : "");
    if (!has_gradient) return;
    const Json *dy = json_get(json_at(tensors, json_integer(line, "out", -1)), "grad");
    const char *op = json_text(line, "op", "");
    ck_assert_msg(json_get(back, "worst")->number < 1e-6, "%s: the error of input %d is %g", op,
                  (int)k, json_get(back, "worst")->number);
    const Json *dx = json_get(back, "dx")->first;
    for (const Json *column = json_get(back, "jacobian")->first; column; column = column->next) {
        double sum = 0;
        for (const Json *j = column->first; j; j = j->next->next)
            sum += json_at(dy, (int64_t)j->number)->number * j->next->number;
        ck_assert_msg(same_number(sum, dx->number, tolerance), "%s: %.17g is not %.17g", op, sum,
                      dx->number);
        *sums++ += sum;
        dx = dx->next;
    }
    ck_assert_ptr_null(dx);
}

static void check_json(const Json *json, double tolerance) {
    const Json *tensors = json_get(json, "tensors");
    double(*sums)[4096] = calloc((size_t)tensors->count, sizeof *sums);
    for (const Json *line = json_get(json, "lines")->first; line; line = line->next)
        for (int64_t k = 0; k < json_get(line, "backward")->count; k++) {
            const int64_t in = (int64_t)json_at(json_get(line, "in"), k)->number;
            if (in >= 0) check_input(tensors, line, k, tolerance, sums[in]);
        }
    for (int64_t t = 0; t < tensors->count; t++) {
        const Json *x = json_at(tensors, t);
        const Json *grad = json_get(x, "grad");
        const bool leaf = json_get(x, "leaf")->number == 1;
        for (int64_t i = 0; leaf && grad && i < grad->count; i++)
            ck_assert(same_number(sums[t][i], json_at(grad, i)->number, tolerance));
    }
    free(sums);
}

static void write_sample(const Sample *s, DType dtype, int constant, double tolerance) {
    Tensor *in[SAMPLE_INPUTS];
    make_inputs(s, dtype, constant, in);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *y = call_op(s->op, in, s->n, s->number);
    ck_assert_msg(y != NULL, "%s: %s", s->op, tensor_error());
    if (y->grad_fn && dtype == y->dtype) {
        Tensor *dy = cotangent_of(y);
        ck_assert(ag_backward_from(y, dy));
        Json *json = tape_as_json();
        check_json(json, tolerance);
        free_json(json);
        tensor_release(dy);
    }
    tape_end();
    release_all(in, s->n);
}

CASE("json")
LOOP_TEST(the_json_of_every_op_has_its_gradients_as_sums_of_terms, number_of_ops()) {
    for (const Sample *s = samples(); s->op; s++) {
        if (strcmp(s->op, all_ops[_i]->name)) continue;
        /* First no float is a constant, then each in turn. The op `to` goes to float32 and back. */
        for (int constant = -1; constant < s->n; constant++)
            if (constant < 0 || s->in[constant].kind == 'r')
                write_sample(s, F64, constant, strcmp(s->op, "to") ? 1e-12 : 1e-5);
        write_sample(s, F32, -1, 1e-5);
    }
}

/* Multi-head attention with lengths and dropout, one x for all three inputs. */
LOOP_TEST(the_json_of_attention, 2) {
    const MultiHeadAttentionConfig config = {
        .num_hiddens = 6, .num_heads = 3, .dropout = 0.25, .fused = _i};
    MultiHeadAttention *attention = nn_multi_head_attention_new(config);
    Tensor *x = ag_name(ag_requires_grad(tensor_randn(SHAPE(2, 3, 6))), "a \"name\"\n\\");
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){2, 1});
    ck_assert(tape_begin());
    tape_keep_grads(true);
    const AttentionMask mask = {.valid_lens = lens};
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, mask);
    ck_assert(ag_backward(ag_sum(ag_square(y))));
    Json *json = tape_as_json();
    check_json(json, 1e-12);
    const Json *first = json_at(json_get(json, "tensors"), 0);
    ck_assert_str_eq(json_text(first, "name", ""), "a \"name\"\n\\");
    ck_assert_int_eq(json_get(first, "value")->count, 36);
    free_json(json);
    tape_end();
    RELEASE(lens, x);
    nn_free(attention);
}

/* Names of 16 letters of two bytes, which is cut, and of bytes that are no UTF-8: one that
 * continues nothing, "/" in two bytes, a surrogate, a letter that ends too early, Latin-1. The
 * reader refuses a text that is not UTF-8. */
TEST(names_are_written_as_utf8) {
    static const struct {
        const char *name, *written;
    } rows[] = {{"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
                 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"},
                {"a\x80"
                 "b",
                 "a\xef\xbf\xbd"
                 "b"},
                {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xe6\x97", "\xef\xbf\xbd\xef\xbf\xbd"},
                {"caf\xe9\n", "caf\xef\xbf\xbd\n"},
                {"\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", /* the last character, and one after it */
                 "\xf4\x8f\xbf\xbf\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    for (int i = 0; i < COUNT(rows); i++) {
        Tensor *x = ag_name(LEAF(SHAPE(1), 2), rows[i].name);
        ck_assert(tape_begin());
        tape_keep_grads(true);
        ck_assert(ag_backward(ag_sum(x)));
        Json *json = tape_as_json();
        const Json *first = json_at(json_get(json, "tensors"), 0);
        ck_assert_str_eq(json_text(first, "name", ""), rows[i].written);
        free_json(json);
        tape_end();
        tensor_release(x);
    }
}

/* The reason for element i of input k of the first line of that op; NULL if there are terms. */
static const char *reason(const Json *json, const char *op, int64_t k, int64_t i) {
    const Json *line = json_get(json, "lines")->first;
    while (strcmp(json_text(line, "op", ""), op)) line = line->next;
    return json_at(json_get(json_at(json_get(line, "backward"), k), "jacobian"), i)->text;
}

TEST(the_reasons_for_zeros) {
    Tensor *scores = LEAF(SHAPE(1, 1, 3, 3), 1, 2, 3, 4, 5, 6, 900, 0, 900);
    Tensor *lens = tensor_from_int64s(SHAPE(1, 3), (int64_t[]){2, 1, 3});
    Tensor *x = LEAF(SHAPE(2), -1, 1);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *p = ag_masked_softmax(scores, lens);
    Tensor *dropped = ag_dropout(p, 1);
    Tensor *r = ag_mul(ag_relu(x), ag_slice(x, 0, 1, 2));
    Tensor *loss = ag_add(ag_sum(dropped), ag_sum(r));
    ck_assert(ag_backward(loss));
    Json *json = tape_as_json();
    ck_assert_ptr_null(reason(json, "masked_softmax", 0, 0));
    ck_assert_str_eq(reason(json, "masked_softmax", 0, 2), "masked");
    ck_assert_str_eq(reason(json, "masked_softmax", 0, 3), "weight is 1");
    ck_assert_str_eq(reason(json, "masked_softmax", 0, 4), "masked");
    ck_assert_ptr_null(reason(json, "masked_softmax", 0, 6));
    ck_assert_str_eq(reason(json, "masked_softmax", 0, 7), "weight is 0");
    ck_assert_str_eq(reason(json, "dropout", 0, 0), "dropped");
    ck_assert_str_eq(reason(json, "relu", 0, 0), "flat");
    ck_assert_ptr_null(reason(json, "relu", 0, 1));
    ck_assert_str_eq(reason(json, "slice", 0, 0), "unused");
    ck_assert_ptr_null(reason(json, "mul", 0, 0));
    free_json(json);
    tape_end();
    RELEASE(scores, lens, x);
}

TEST(a_weight_of_zero_is_the_reason_for_a_zero_of_a_product) {
    Tensor *a = LEAF(SHAPE(1, 2), 0, 1);
    Tensor *b = LEAF(SHAPE(2, 1), 3, 4);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    ck_assert(ag_backward(ag_matmul(a, b)));
    Json *json = tape_as_json();
    ck_assert_str_eq(reason(json, "matmul", 1, 0), "times 0");
    ck_assert_ptr_null(reason(json, "matmul", 1, 1));
    free_json(json);
    tape_end();
    RELEASE(a, b);
}

LOOP_TEST(nan_and_infinity_are_written, 2) {
    Tensor *x = tensor_zeros_of(SHAPE(3), _i ? F32 : F64);
    tensor_set(x, (double)NAN, 0);
    tensor_set(x, (double)INFINITY, 1);
    tensor_set(x, -(double)INFINITY, 2);
    ck_assert_ptr_nonnull(ag_requires_grad(x));
    ck_assert(tape_begin());
    tape_keep_grads(true);
    ck_assert(ag_backward(ag_sum(ag_square(x))));
    Json *json = tape_as_json();
    const Json *value = json_get(json_at(json_get(json, "tensors"), 0), "value");
    ck_assert_str_eq(json_at(value, 0)->text, "NaN");
    ck_assert_str_eq(json_at(value, 1)->text, "Infinity");
    ck_assert_str_eq(json_at(value, 2)->text, "-Infinity");
    free_json(json);
    tape_end();
    tensor_release(x);
}

/* ---- the check of a line: numbers of any size ------------------------------------------------ */

/* 2 x, but 0.01 % too large. */
static Tensor *own_square(const AgCall *call) { return tensor_retain(ag_square(call->in[0])); }
static void too_large(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_retain(ag_mul(ag_scale(call->in[0], 2.0002), dy));
}

static Tensor *wrong_square(Tensor *x) {
    static const AgFunction square = {"square", NULL, NULL, own_square, too_large};
    return ag_call(&square, 1, &x, NULL);
}

static double check_of(const Json *json, int64_t line, int64_t k, const char *key) {
    const Json *number =
        json_get(json_at(json_get(json_at(json_get(json, "lines"), line), "backward"), k), key);
    return number && number->kind == JSON_NUMBER ? number->number : (double)NAN;
}

LOOP_TEST(a_check_steps_as_far_as_the_number_is_large, 9) {
    static const double sizes[] = {1e-9, 1, 1e5, 1e6, 1e7, 1e9, 1e12, 1e20, 1e60};
    const double s = sizes[_i];
    Tensor *x = LEAF(SHAPE(3), s, -2 * s, s / 2);
    Tensor *w = LEAF(SHAPE(3), 3 * s, s, 2 * s);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *product = ag_mul(x, w);
    Tensor *square = ag_square(x);
    Tensor *wrong = wrong_square(x);
    Tensor *y = ag_add(ag_add(product, square), wrong);
    ck_assert(ag_backward(ag_sum(ag_scale(ag_neg(y), 1 / s))));
    Json *json = tape_as_json();
    const Json *lines = json_get(json, "lines");
    for (int64_t l = 0; l < lines->count; l++)
        for (int64_t k = 0; k < json_get(json_at(lines, l), "in")->count; k++) {
            const char *op = json_text(json_at(lines, l), "op", "");
            const double worst = check_of(json, l, k, "worst");
            ck_assert_msg(l == 2 ? worst > 1e-5 || s < 1e-2 : worst < 1e-6,
                          "%s of %g: the error is %g", op, s, worst);
            ck_assert_msg(check_of(json, l, k, "unchecked") == 0, "%s of %g is not checked", op, s);
        }
    free_json(json);
    tape_end();
    RELEASE(x, w);
}

static Tensor *own_relu(const AgCall *call) { return tensor_retain(ag_relu(call->in[0])); }

static void five_dy(const AgCall *call, Tensor *dy, Tensor **dx) {
    (void)call;
    dx[0] = tensor_retain(ag_scale(dy, 5));
}

/* Differences check no slope between the two of a kink, and all others of the line. */
TEST(a_kink_is_not_a_wrong_rule) {
    static const AgFunction steep = {"steep", NULL, NULL, own_relu, five_dy};
    Tensor *x = LEAF(SHAPE(3), 0, 1, -1);
    Tensor *zero = LEAF(SHAPE(1), 0);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *wrong = wrong_square(ag_relu(x));
    Tensor *outside = ag_call(&steep, 1, &zero, NULL); /* 5, where the slopes are 0 and 1 */
    ck_assert(ag_backward(ag_sum(ag_add(wrong, outside))));
    Json *json = tape_as_json();
    ck_assert_double_eq(check_of(json, 0, 0, "unchecked"), 1);
    ck_assert(check_of(json, 0, 0, "worst") < 1e-6);
    ck_assert_double_eq(check_of(json, 1, 0, "unchecked"), 0);
    ck_assert(check_of(json, 1, 0, "worst") > 1e-5);
    ck_assert_double_eq(check_of(json, 2, 0, "unchecked"), 0);
    ck_assert(check_of(json, 2, 0, "worst") > 0.5);
    free_json(json);
    tape_end();
    RELEASE(zero, x);
}

/* 1 beside 10^20; a softmax of numbers whose neighbours are 1/8 away; an infinity. */
TEST(a_check_says_what_differences_cannot_tell) {
    Tensor *a = LEAF(SHAPE(2), 1, 1e20);
    Tensor *b = LEAF(SHAPE(2), 1e20, 1);
    Tensor *x = LEAF(SHAPE(2), 1e15, 1e15 + 1);
    Tensor *inf = LEAF(SHAPE(2), HUGE_VAL, 1);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *sum = ag_add(a, b);
    Tensor *p = ag_softmax(x, -1);
    Tensor *minus = ag_neg(inf);
    ck_assert(ag_backward_from(ag_add(ag_add(sum, p), minus), b));
    Json *json = tape_as_json();
    ck_assert_double_eq(check_of(json, 0, 0, "unchecked"), 1);
    ck_assert_double_eq(check_of(json, 0, 1, "unchecked"), 1);
    ck_assert(check_of(json, 0, 0, "worst") < 1e-6 && check_of(json, 0, 1, "worst") < 1e-6);
    ck_assert_double_eq(check_of(json, 1, 0, "unchecked"), 4);
    ck_assert_double_eq(check_of(json, 2, 0, "unchecked"), 3); /* all but -1 by 1 */
    ck_assert(check_of(json, 2, 0, "worst") < 1e-6);
    free_json(json);
    tape_end();
    RELEASE(a, b, x, inf);
}

CASE("lines")
TEST(a_tape_that_keeps_gradients_keeps_values) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    const int mark = tape_mark();
    Tensor *y = ag_let_go(ag_add_scalar(x, 1));
    Tensor *z = ag_let_go_since(mark, ag_neg(ag_neg(y)));
    ck_assert(ag_backward(ag_sum(z)));
    EXPECT_ELEMENTS(y, 2, 3);
    Json *json = tape_as_json();
    check_json(json, 1e-12);
    free_json(json);
    tape_end();
    tensor_release(x);
}

static void expect_no_json(FILE *file, const char *sentence) {
    FAILS(tape_write_json(file), sentence);
}

CASE("json")
TEST(a_tape_that_cannot_be_written_is_an_error) {
    static const char no_gradient[] =
        "tape_write_json: no result on an open recording tape has a gradient: call "
        "tape_keep_grads before the ops and ag_backward after them";
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *large = ag_requires_grad(tensor_ones(SHAPE(80, 80)));
    Tensor *huge = ag_requires_grad(tensor_ones(SHAPE(2100)));
    FILE *file = tmpfile();
    expect_no_json(file, no_gradient);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    expect_no_json(NULL, "tape_write_json: the file is NULL");
    expect_no_json(file, no_gradient);
    ck_assert(ag_backward(ag_sum(ag_retain_grad(y))));
    ag_let_go(y);
    ck_assert(!tape_write_json(file));
    expect_error_like("tape_write_json: ", "was let go");
    tape_end();
    ck_assert(tape_begin());
    tape_keep_grads(true);
    ck_assert(ag_backward(ag_sum(ag_matmul(large, large))));
    expect_no_json(file,
                   "tape_write_json: matmul has 40960000 derivatives: choose a smaller example");
    tape_end();
    ck_assert(tape_begin());
    tape_keep_grads(true);
    for (int i = 0; i < 12; i++) ag_exp(huge);
    ck_assert(ag_backward(ag_sum(ag_square(ag_exp(ag_scale(huge, 0.7))))));
    expect_no_json(file,
                   "tape_write_json: scale has 4410000 derivatives: choose a smaller example");
    tape_end();
    ck_assert(ftell(file) == 0);
    fclose(file);
    RELEASE(x, large, huge);
}

CASE("large", .is_long = true)
TEST(a_tape_of_more_than_a_megabyte_is_an_error) {
    Tensor *x = ag_requires_grad(tensor_rand(SHAPE(350)));
    FILE *file = tmpfile();
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *y = x;
    for (int i = 0; i < 48; i++) y = ag_sin(y);
    ck_assert(ag_backward(ag_sum(y)));
    expect_no_json(file,
                   "tape_write_json: the tape takes more than 1 MB: choose a smaller example");
    ck_assert(ftell(file) == 0);
    fclose(file);
    tape_end();
    tensor_release(x);
}

CASE("json")
TEST(a_full_disk_is_an_error) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    FILE *file = has_full_disk() ? fopen("/dev/full", "w") : NULL;
    ck_assert(tape_begin());
    tape_keep_grads(true);
    ck_assert(ag_backward(ag_sum(ag_square(x))));
    if (file) expect_no_json(file, "tape_write_json: the file could not be written");
    if (file) fclose(file);
    tape_end();
    tensor_release(x);
}

int main(void) { return run_tests("inspect"); }
