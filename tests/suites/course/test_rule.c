/* test_rule.c - formulas as the backward of a line, build/explain --rule: what is right stays
 * green, a wrong one turns red, a known mistake is named, and nonsense gets its place.
 *
 * A small tape has one line, an op of the library. A lesson has a rule for each of its lines. */
#include "../common.h"
#include "../common_page.h"
#include "../common_program.h"
#include "common_live.h"

#include "../../../examples/explain/page/check.h"
#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/page/live.h"
#include "../../../examples/explain/rules/rule_planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- small tapes ----------------------------------------------------------------------------- */

enum { INPUTS = 3, RULE = 480 };

static Tensor *mask_of(Shape shape) {
    Tensor *drawn = tensor_randn(shape);
    Tensor *mask = ag_gt_scalar(tape_own(drawn), 0);
    return ag_contiguous(mask);
}

/* (2, Q, K): lengths for a batch of 2. */
static Tensor *lengths_of(int64_t first, int64_t second) {
    return tape_own(tensor_from_int64s(SHAPE(2), (int64_t[]){first, second}));
}

static Tensor *targets_of(int64_t n) {
    return tape_own(tensor_from_int64s(SHAPE(n), (int64_t[]){1, 0, 2, 1}));
}

#define ATTENTION_P  "(exp(q @ k' / sqrt(3)) / sum(exp(q @ k' / sqrt(3))))"
#define ATTENTION_DP "(dy @ v')"
#define ATTENTION_DS                                                                               \
    "(" ATTENTION_P " * (" ATTENTION_DP " - sum(" ATTENTION_P " * " ATTENTION_DP ")))"

/* A name; an op of in[0], in[1], in[2]; the rule of each input of the line; the shapes of in. */
#define CASES(CASE)                                                                                                     \
    CASE(add, ag_add(in[0], in[1]), "dy", "dy", NULL, D(3, 4), D(3, 4))                                                 \
    CASE(add_row, ag_add(in[0], in[1]), "dy", "sum0(dy)", NULL, D(3, 4), D(4))                                          \
    CASE(add_as_broadcast, ag_add(in[0], in[1]), "dy", "dy", NULL, D(2, 3, 4), D(3, 1))                                 \
    CASE(sub, ag_sub(in[0], in[1]), "dy", "-dy", NULL, D(3, 4), D(3, 4))                                                \
    CASE(sub_row, ag_sub(in[0], in[1]), "sum(dy)", "-sum0(dy)", NULL, D(3, 1), D(1, 4))                                 \
    CASE(mul, ag_mul(in[0], in[1]), "b * dy", "a * dy", NULL, D(3, 4), D(3, 4))                                         \
    CASE(mul_one, ag_mul(in[0], in[1]), "b * dy", "sum0(sum(a * dy))", NULL, D(3, 4), D(1))                             \
    CASE(div, ag_div(in[0], in[1]), "dy / b", "-dy * y / b", NULL, D(3, 4), D(4))                                       \
    CASE(pow, ag_pow(ag_abs(in[0]), in[1]), "b * y / a * dy", "y * log(a) * dy", NULL, D(3, 4),                         \
         D(3, 4))                                                                                                       \
    CASE(maximum, ag_maximum(in[0], in[1]), "(y - b) / (a - b) * dy", "(y - a) / (b - a) * dy",                         \
         NULL, D(3, 4), D(3, 4))                                                                                        \
    CASE(minimum, ag_minimum(in[0], in[1]), "(y - b) / (a - b) * dy", "(y - a) / (b - a) * dy",                         \
         NULL, D(3, 4), D(3, 4))                                                                                        \
    CASE(neg, ag_neg(in[0]), "-dy", NULL, NULL, D(3, 4))                                                                \
    CASE(abs, ag_abs(in[0]), "y / x * dy", NULL, NULL, D(3, 4))                                                         \
    CASE(square, ag_square(in[0]), "2 * x * dy", NULL, NULL, D(3, 4))                                                   \
    CASE(sqrt, ag_sqrt(ag_abs(in[0])), "dy / (2 * y)", NULL, NULL, D(3, 4))                                             \
    CASE(exp, ag_exp(in[0]), "y * dy", NULL, NULL, D(3, 4))                                                             \
    CASE(log, ag_log(ag_abs(in[0])), "dy / x", NULL, NULL, D(3, 4))                                                     \
    CASE(log1p, ag_log1p(ag_abs(in[0])), "dy / (1 + x)", NULL, NULL, D(3, 4))                                           \
    CASE(tanh, ag_tanh(in[0]), "(1 - y * y) * dy", NULL, NULL, D(3, 4))                                                 \
    CASE(sigmoid, ag_sigmoid(in[0]), "y * (1 - y) * dy", NULL, NULL, D(3, 4))                                           \
    CASE(silu, ag_silu(in[0]), "(1 + x - y) / (1 + exp(-x)) * dy", NULL, NULL, D(3, 4))                                 \
    CASE(softplus, ag_softplus(in[0]), "dy / (1 + exp(-x))", NULL, NULL, D(3, 4))                                       \
    CASE(relu, ag_relu(in[0]), "y / x * dy", NULL, NULL, D(3, 4))                                                       \
    CASE(                                                                                                               \
        gelu_tanh, ag_gelu_tanh(in[0]),                                                                                 \
        "y / x * (1 + x * (1 - y / x) * 2 * sqrt(2 / 3.141592653589793) * (1 + 0.134145 * x * x)) * dy",                \
        NULL, NULL, D(3, 4))                                                                                            \
    CASE(scale, ag_scale(in[0], 0.3), "s * dy", NULL, NULL, D(3, 4))                                                    \
    CASE(add_scalar, ag_add_scalar(in[0], 0.3), "dy", NULL, NULL, D(3, 4))                                              \
    CASE(leaky_relu, ag_leaky_relu(in[0], 0.3), "y / x * dy", NULL, NULL, D(3, 4))                                      \
    CASE(pow_scalar, ag_pow_scalar(ag_abs(in[0]), 2.5), "s * y / x * dy", NULL, NULL, D(3, 4))                          \
    CASE(clamp_min, ag_clamp_min(in[0], 0.1), "(y - s) / (x - s) * dy", NULL, NULL, D(3, 4))                            \
    CASE(clamp_max, ag_clamp_max(in[0], 0.1), "(y - s) / (x - s) * dy", NULL, NULL, D(3, 4))                            \
    CASE(where, ag_where(mask_of(SHAPE(3, 4)), in[0], in[1]), NULL, "condition * dy",                                   \
         "(1 - condition) * dy", D(3, 4), D(3, 4))                                                                      \
    CASE(masked_fill, ag_masked_fill(in[0], mask_of(SHAPE(3, 4)), -9), "(1 - mask) * dy", NULL,                         \
         NULL, D(3, 4))                                                                                                 \
    CASE(sum, ag_sum(in[0]), "dy", NULL, NULL, D(3, 4))                                                                 \
    CASE(sum_rows, ag_sum_dims(in[0], AXES(0), false), "dy", NULL, NULL, D(3, 4))                                       \
    CASE(sum_columns, ag_sum_dims(in[0], AXES(1), false), "dy'", NULL, NULL, D(3, 4))                                   \
    CASE(mean, ag_mean(in[0]), "dy / count", NULL, NULL, D(3, 4))                                                       \
    CASE(mean_dims, ag_mean_dims(in[0], AXES(-1), true), "dy / count", NULL, NULL, D(3, 4))                             \
    CASE(matmul, ag_matmul(in[0], in[1]), "dy @ b'", "a' @ dy", NULL, D(3, 4), D(4, 2))                                 \
    CASE(matmul_square, ag_matmul(in[0], in[1]), "dy @ b'", "a' @ dy", NULL, D(3, 3), D(3, 3))                          \
    CASE(matmul_batch, ag_matmul(in[0], in[1]), "dy @ b'", "a' @ dy", NULL, D(2, 3, 4), D(4, 5))                        \
    CASE(bmm, ag_bmm(in[0], in[1]), "dy @ b'", "a' @ dy", NULL, D(2, 3, 4), D(2, 4, 2))                                 \
    CASE(linear, ag_linear(in[0], in[1], in[2]), "dy @ w", "dy' @ x", "sum0(dy)", D(2, 3, 4),                           \
         D(5, 4), D(5))                                                                                                 \
    CASE(linear_square, ag_linear(in[0], in[1], in[2]), "dy @ w", "dy' @ x", "dy", D(3, 4),                             \
         D(4, 4), D(4))                                                                                                 \
    CASE(linear_squares, ag_linear(in[0], in[1], in[2]), "dy @ w", "dy' @ x", "dy", D(4, 4),                            \
         D(4, 4), D(4))                                                                                                 \
    CASE(softmax, ag_softmax(in[0], -1), "y * (dy - sum(y * dy))", NULL, NULL, D(3, 4))                                 \
    CASE(log_softmax, ag_log_softmax(in[0], -1), "dy - exp(y) * sum(dy)", NULL, NULL, D(3, 4))                          \
    CASE(logsumexp, ag_logsumexp_dim(in[0], -1, true), "exp(x - y) * dy", NULL, NULL, D(3, 4))                          \
    CASE(masked_softmax, ag_masked_softmax(in[0], lengths_of(3, 4)),                                                    \
         "scale * y * (dy - sum(y * dy))", NULL, NULL, D(2, 3, 4))                                                      \
    CASE(masked_empty, ag_masked_softmax(in[0], lengths_of(0, 4)), "y * (dy - sum(y * dy))", NULL,                      \
         NULL, D(2, 3, 4))                                                                                              \
    CASE(attention_weights, ag_attention_weights(in[0], 0.4, (AttentionMask){.causal = true}, 1),                       \
         "scale * y * (dy - sum(y * dy))", NULL, NULL, D(2, 3, 4))                                                      \
    CASE(                                                                                                               \
        layer_norm, ag_layer_norm(in[0], in[1], in[2], 0.1),                                                            \
        "(w * dy - mean(w * dy) - (y - b) / w * mean(dy * (y - b))) / sqrt(mean((x - mean(x)) * (x - mean(x))) + 0.1)", \
        "dy * (y - b) / w", "dy", D(3, 4), D(4), D(4))                                                                  \
    CASE(var, ag_var_dim(in[0], -1, true), "2 * (x - mean(x)) / 3 * dy", NULL, NULL, D(3, 4))                           \
    CASE(std, ag_std_dim(in[0], -1, true), "(x - mean(x)) / (3 * y) * dy", NULL, NULL, D(3, 4))                         \
    CASE(cross_entropy, ag_cross_entropy(in[0], targets_of(3), AG_IGNORE_NONE, REDUCE_SUM), NULL,                       \
         NULL, NULL, D(3, 4))                                                                                           \
    CASE(dropout, ag_dropout(in[0], 0.3), "dy * kept / (1 - p)", NULL, NULL, D(3, 4))                                   \
    CASE(attention, ag_attention(in[0], in[1], in[2], (AttentionMask){0}, 0),                                           \
         ATTENTION_DS " @ k / sqrt(3)", ATTENTION_DS "' @ q / sqrt(3)", ATTENTION_P "' @ dy",                           \
         D(1, 4, 3), D(1, 4, 3), D(1, 4, 2))                                                                            \
    CASE(reshape, ag_reshape(in[0], SHAPE(2, 6)), "dy", NULL, NULL, D(3, 4))                                            \
    CASE(view, ag_view(in[0], SHAPE(12)), "dy", NULL, NULL, D(3, 4))                                                    \
    CASE(flatten, ag_flatten(in[0], 0, -1), "dy", NULL, NULL, D(3, 4))                                                  \
    CASE(transpose, ag_transpose(in[0], 0, 1), "dy'", NULL, NULL, D(3, 4))                                              \
    CASE(permute, ag_permute(in[0], AXES(0, 2, 1)), "dy'", NULL, NULL, D(2, 3, 4))                                      \
    CASE(unsqueeze, ag_unsqueeze(in[0], 1), "dy", NULL, NULL, D(3, 4))                                                  \
    CASE(squeeze, ag_squeeze(in[0], 1), "dy", NULL, NULL, D(3, 1, 4))                                                   \
    CASE(expand, ag_expand(in[0], SHAPE(2, 3, 4)), "dy", NULL, NULL, D(3, 1))                                           \
    CASE(to, ag_to(in[0], F32), "dy", NULL, NULL, D(3, 4))

#define D(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / 8, { __VA_ARGS__ }                                      \
    }
#define MAKE(name, call, ...)                                                                      \
    static Tensor *make_##name(Tensor **in) { return call; }
CASES(MAKE)
#define ROW(name, call, a, b, c, ...) {#name, make_##name, {a, b, c}, {__VA_ARGS__}},
static const struct {
    const char *name;
    Tensor *(*make)(Tensor **in);
    const char *rules[INPUTS]; /* of each input; NULL: it has no gradient, or no formula */
    Shape shapes[INPUTS];
} cases[] = {CASES(ROW)};

static Tensor *in[INPUTS];
static Tensor *y;
static Tensor *dy;
static Planting planting;

static int find_case(const char *name) {
    int c = 0;
    while (c < COUNT(cases) && strcmp(cases[c].name, name) != 0) c++;
    ck_assert_msg(c < COUNT(cases), "%s", name);
    return c;
}

/* The last line of the tape. */
static int last_line(TapeLine *line) {
    int i = 0;
    while (tape_line(i, line)) i++;
    ck_assert(tape_line(i - 1, line));
    return i - 1;
}

static void open_tape(int c) {
    tensor_manual_seed(7);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    for (int k = 0; k < INPUTS; k++) {
        const char name[] = {'L', (char)('0' + k), '\0'};
        if (cases[c].shapes[k].ndim == 0) continue;
        in[k] = ag_requires_grad(ag_name(tensor_randn(cases[c].shapes[k]), name));
    }
    y = ag_name(cases[c].make(in), "R");
    ck_assert_msg(y != NULL, "%s: %s", cases[c].name, tensor_error());
    Tensor *drawn = tensor_randn(y->shape);
    dy = tensor_to(drawn, y->dtype);
    tensor_release(drawn);
}

static void close_tape(void) {
    tensor_release(dy);
    tape_end();
    rule_free(&planting);
    for (int k = 0; k < INPUTS; k++) tensor_release(in[k]);
    memset(in, 0, sizeof in);
}

/* The rule of input k. */
static PlantedRule *rule_of(int k) {
    ck_assert_ptr_nonnull(planting.first);
    PlantedRule *rule = planting.first->rules[k];
    ck_assert_ptr_nonnull(rule);
    return rule;
}

static void plant(int k, const char *formula) {
    TapeLine line;
    const int i = last_line(&line);
    ck_assert_msg(rule_plant_at(&planting, i, k, "R", formula), "%s: %s", formula, tensor_error());
}

/* The largest error of the checks of the last line, as the page reads it. */
static double worst_of_page(void) {
    char *text;
    size_t size;
    double worst = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_msg(ag_backward_from(y, dy) && tape_write_json(file), "%s", tensor_error());
    ck_assert_int_eq(fclose(file), 0);
    Json *tree = json_read(text);
    const Json *line = json_get(tree, "lines")->first;
    while (line->next) line = line->next;
    for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
        const double error = d->kind == JSON_OBJECT ? json_number(json_get(d, "worst")) : 0;
        if (error > worst || isnan(error)) worst = error;
    }
    free(tree);
    free(text);
    return worst;
}

/* ---- what is right --------------------------------------------------------------------------- */

CASE("formulas")
LOOP_TEST(a_right_rule_stays_green, COUNT(cases)) {
    open_tape(_i);
    for (int k = 0; k < INPUTS; k++)
        if (cases[_i].rules[k]) plant(k, cases[_i].rules[k]);
    ck_assert_msg(rule_judge(&planting), "%s: %s", cases[_i].name, tensor_error());
    for (int k = 0; k < INPUTS; k++) {
        if (!cases[_i].rules[k]) continue;
        ck_assert_msg(rule_of(k)->is_right, "%s: %s", cases[_i].name, cases[_i].rules[k]);
        ck_assert_str_eq(rule_of(k)->why, "");
    }
    ck_assert(rule_all_right(&planting));
    ck_assert_msg(worst_of_page() < 1e-6, "%s", cases[_i].name);
    close_tape();
}

/* Twice the rule is wrong, the page sees it, and it is said what it is. */
LOOP_TEST(twice_a_right_rule_turns_red, COUNT(cases)) {
    open_tape(_i);
    for (int k = 0; k < INPUTS; k++) {
        if (!cases[_i].rules[k]) continue;
        const char *formula = format("2 * (%s)", cases[_i].rules[k]);
        plant(k, formula);
        ck_assert(rule_judge(&planting));
        ck_assert_msg(!rule_of(k)->is_right && !rule_all_right(&planting), "%s", formula);
        ck_assert_str_eq(rule_of(k)->why, "This is the right gradient times 2.");
        ck_assert_ptr_null(rule_of(k)->mistake);
        ck_assert_msg(worst_of_page() > 1e-3, "%s: %s", cases[_i].name, formula);
    }
    close_tape();
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* of the case */
    int k;
    const char *formula, *id;
} mistakes[] = {
    {"softmax", 0, "dR * R", "no_sum"},
    {"softmax", 0, "y * dy - y * sum(dy)", "plain_sum"},
    {"softmax", 0, "y * (dy - sum(dy) / 4)", "mean_of_dy"},
    {"softmax", 0, "y * dy - y * sum(y * dy) / 4", ""},
    {"softmax", 0, "y * dy - y * y * dy", "y_squared"},
    {"softmax", 0, "dy - sum(dy * y)", "sum_not_weighted_by_y_outside"},
    {"softmax", 0, "y * dy + y * sum(y * dy)", "sign"},
    {"softmax", 0, "y * dy - sum(dy * y)", ""},
    {"softmax", 0, "1 * dy", ""},
    {"softmax", 0, "dy * y * y", ""},
    {"softmax", 0, "sum(dy * x)", ""},
    {"softmax", 0, "0 * x + sum(dy * y)", ""},
    {"softmax", 0, "dy * exp(x)", ""},
    {"attention_weights", 0, "y * dy - sum(dy * y)", ""},
    {"attention_weights", 0, "y * (dy - sum(y * dy))", "no_scale"},
    {"attention_weights", 0, "0.16 * y * (dy - sum(y * dy))", "scale_squared"},
    {"attention_weights", 0, "y * dy * s", "no_sum"},
    {"masked_softmax", 0, "y * dy", "no_sum"},
#define W "(y / sum(y))"
    {"masked_empty", 0, W " * dy - " W " * sum(" W " * dy)", "mask_multiplies"},
    {"transpose", 0, "1 * dy", "not_undone"},
    {"scale", 0, "dy", "no_scale"},
    {"scale", 0, "dy / scale", "divided"},
    {"scale", 0, "dy * s * s", "squared"},
    {"mul", 0, "1 * dy", ""},
    {"mul", 1, "1 * dy", ""},
    {"mul", 0, "a * dy", ""},
    {"mul", 1, "b * dy", ""},
    {"relu", 0, "1 * dy", ""},
    {"relu", 0, "y * dy", ""},
    {"masked_fill", 0, "1 * dy", ""},
    {"masked_fill", 0, "dy * mask", ""},
    {"add_row", 1, "sum0(dy) / 3", "db_mean"},
    {"add_row", 0, "0 * x + sum0(dy)", "dx_summed"},
    {"matmul_square", 0, "dy @ L1", "da_untransposed"},
    {"matmul_square", 1, "L0 @ dy", "db_untransposed"},
    {"matmul_square", 0, "dy @ a'", "swapped"},
    {"matmul_square", 1, "b' @ dy", "swapped"},
    {"matmul_square", 0, "dy @ a", "swapped"},
    {"matmul_square", 1, "b @ dy", "swapped"},
    {"matmul_square", 0, "b * dy", "da_elementwise"},
    {"dropout", 0, "kept * dy", "no_rescale"},
    {"dropout", 0, "kept * dy / p", "rescale_by_p"},
    {"dropout", 0, "kept * dy / ((1 - p) * (1 - p))", "rescale_twice"},
    {"dropout", 0, "dy / 0.7", "all_elements"},
    {"dropout", 0, "(1 - kept) / (1 - p) * dy", "inverted_mask"},
    {"linear_square", 0, "dy @ w'", "dx_w_transposed"},
    {"linear_square", 1, "(dy' @ x)'", "dw_transposed_indices"},
    {"linear_squares", 1, "(x' @ dy')'", ""},
    {"linear_squares", 0, "dy @ x", ""},
    {"linear_squares", 1, "dy' @ w", ""},
    {"linear", 1, "dy' @ x / 6", "dw_mean"},
    {"linear", 2, "0", "db_missing"},
    {"linear", 2, "sum0(dy) / 6", "db_mean"},
    {"tanh", 0, "dy", "no_tanh_derivative"},
    {"tanh", 0, "dy - tanh(y) * tanh(y) * dy", "derivative_of_input"},
#define DEV "(x - mean(x))"
#define STD "sqrt(mean(" DEV " * " DEV ") + 0.1)"
#define HAT "(" DEV " / " STD ")"
    {"layer_norm", 0, "(w * dy - " HAT " * mean(w * dy * " HAT ")) / " STD, "mean_as_constant"},
    {"layer_norm", 0, "(w * dy - mean(w * dy)) / " STD, "variance_as_constant"},
    {"layer_norm", 0, "w * dy / " STD, "both_constant"},
    {"layer_norm", 0, "(dy - mean(dy) - " HAT " * mean(dy * " HAT ")) / " STD, "no_w"},
#define STD0 "sqrt(mean(" DEV " * " DEV "))"
    {"layer_norm", 0,
     "(w * dy - mean(w * dy) - " DEV " / " STD0 " * mean(w * dy * " DEV " / " STD0 ")) / " STD0,
     "eps_missing"},
    {"layer_norm", 1, "dy * " DEV " / " STD0, "eps_missing"},
#define STD1 "sqrt(sum(" DEV " * " DEV ") / 3 + 0.1)"
    {"layer_norm", 0,
     "(w * dy - mean(w * dy) - " DEV " / " STD1 " * mean(w * dy * " DEV " / " STD1 ")) / " STD1,
     "biased_n_minus_1"},
    {"layer_norm", 1, "dy * " DEV " / " STD1, "biased_n_minus_1"},
    {"layer_norm", 1, "sum0(dy * x)", "dw_not_normalized"},
    {"cross_entropy", 0, "dy * exp(x) / sum(exp(x))", "no_onehot"},
    {"cross_entropy", 0, "dy * (exp(x) / sum(exp(x)) - 1)", "probabilities_minus_all"},
    {"attention", 0, ATTENTION_DS " @ k", "no_scale"},
    {"attention", 1, ATTENTION_DS "' @ q", "no_scale"},
    {"attention", 0, ATTENTION_DS " @ k / 3", "scale_twice"},
    {"attention", 1, ATTENTION_DS "' @ q / 3", "scale_twice"},
    {"attention", 0, "(" ATTENTION_P " * " ATTENTION_DP ") @ k / sqrt(3)", "softmax_no_sum"},
    {"attention", 1, "(" ATTENTION_P " * " ATTENTION_DP ")' @ q / sqrt(3)", "softmax_no_sum"},
    {"attention", 2, ATTENTION_P " @ dy", "dv_untransposed"},
    {"attention", 0, ATTENTION_DS " @ q / sqrt(3)", "dq_uses_q"},
    {"attention", 1, ATTENTION_DS " @ q / sqrt(3)", "dk_untransposed"},
    {"attention", 0, "0", "dv_only"},
    {"attention", 1, "0 * k", "dv_only"},
};

/* A mistake that is written in another way has its name, and the page sees it. */
LOOP_TEST(a_mistake_is_named, COUNT(mistakes)) {
    open_tape(find_case(mistakes[_i].name));
    plant(mistakes[_i].k, mistakes[_i].formula);
    ck_assert_msg(rule_judge(&planting), "%s", tensor_error());
    const PlantedRule *rule = rule_of(mistakes[_i].k);
    ck_assert(!rule->is_right);
    ck_assert_str_eq(rule->mistake ? rule->mistake->id : "", mistakes[_i].id);
    ck_assert(*rule->why && *rule->question && !strpbrk(rule->why, "{}"));
    ck_assert_msg(!strpbrk(rule->question, "{}"), "%s", rule->question);
    ck_assert_ptr_null(strstr(rule->why, "  "));
    ck_assert_msg(!(worst_of_page() <= 1e-4), "%s", mistakes[_i].formula); /* it may be NaN */
    close_tape();
}

/* Each formula of the table of mistakes is tested here. */
TEST(every_mistake_is_tested) {
    for (int m = 0; m < num_mistake_rows; m++)
        for (int k = 0; k < INPUTS; k++) {
            bool found = !mistake_rows[m].id || !mistake_rows[m].formula[k];
            for (int i = 0; i < COUNT(mistakes); i++) {
                TapeLine line;
                if (!mistake_rows[m].id || strcmp(mistakes[i].id, mistake_rows[m].id) != 0 ||
                    mistakes[i].k != k)
                    continue;
                open_tape(find_case(mistakes[i].name));
                last_line(&line);
                found = found || strstr(mistake_rows[m].of, line.op);
                close_tape();
            }
            ck_assert_msg(found, "%s of %s", mistake_rows[m].id, mistake_rows[m].of);
        }
}

static const struct {
    const char *name, *formula, *why;
} others[] = {
    {"softmax", "-y * (dy - sum(y * dy))", "This is the right gradient with the other sign."},
    {"softmax", "y * (dy * dy - sum(y * dy))",
     "This does not double when dR doubles, as a gradient does."},
    {"softmax", "1", "This does not double when dR doubles, as a gradient does."},
    {"softmax", "0", "This is 0 everywhere."},
    {"softmax", "y * (dy - sum(y) * dy)", "This is 0 everywhere, but for rounding."},
    {"softmax", "y * y * y * dy", "The size is right, the numbers are not."},
    {"linear_squares", "(dy @ w)'", "This is the right gradient, transposed."},
    {"attention_weights", "0.4001 * y * (dy - sum(y * dy))",
     "This is right but for a rounded number: write sqrt(d), or the fraction."},
    {"matmul_square", "dy", "The size is right, the numbers are not."},
    {"masked_softmax", "y / sum(y) * dy * (1 / 0)", "The size is right, the numbers are not."},
};

LOOP_TEST(what_is_no_known_mistake, COUNT(others)) {
    open_tape(find_case(others[_i].name));
    plant(0, others[_i].formula);
    ck_assert_msg(rule_judge(&planting), "%s", tensor_error());
    ck_assert(!rule_of(0)->is_right);
    ck_assert_ptr_null(rule_of(0)->mistake);
    ck_assert_str_eq(rule_of(0)->why, others[_i].why);
    close_tape();
}

/* If b is symmetric, dy b is dy b': the rule stays green, and it is said. */
TEST(right_for_these_numbers) {
    ck_assert(tape_begin());
    in[0] = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    in[1] = LEAF(SHAPE(2, 2), 5, 6, 6, 7);
    y = ag_matmul(in[0], in[1]);
    dy = tensor_ones_like(y);
    plant(0, "dy @ b");
    ck_assert(rule_judge(&planting) && rule_all_right(&planting));
    ck_assert_ptr_null(rule_of(0)->mistake);
    ck_assert_str_eq(rule_of(0)->why,
                     "This is right for these numbers, but not for all. This is dy "
                     "times b, where b is not transposed.");
    plant(0, "dy @ b'");
    ck_assert(rule_judge(&planting) && rule_all_right(&planting));
    ck_assert_str_eq(rule_of(0)->why, "");
    close_tape();
    ck_assert(tape_begin());
    in[0] = LEAF(SHAPE(2), 1, 2);
    y = ag_scale(in[0], 1);
    dy = tensor_ones_like(y);
    plant(0, "dy"); /* s is 1 in both */
    ck_assert(rule_judge(&planting) && rule_all_right(&planting));
    ck_assert_str_eq(rule_of(0)->why, "");
    close_tape();
}

/* ---- the language ---------------------------------------------------------------------------- */

/* On a line of ag_mul: a (2, 3), b (3), dy (2, 3). */
static const struct {
    const char *formula;
    Shape shape;
    double first, last;
} values[] = {
    {"1 + 2 * 3", {0, {0}}, 7, 7},
    {"(1 + 2) * 3", {0, {0}}, 9, 9},
    {"7 - 2 - 1", {0, {0}}, 4, 4},
    {"8 / 2 / 2", {0, {0}}, 2, 2},
    {"-2 * 3 - -1", {0, {0}}, -5, -5},
    {"--2", {0, {0}}, 2, 2},
    {"1.5e1 + .5", {0, {0}}, 15.5, 15.5},
    {"2e-1", {0, {0}}, 0.2, 0.2},
    {"sum(4)", {0, {0}}, 4, 4},
    {"sqrt(9) + exp(0) + log(1) + tanh(0)", {0, {0}}, 4, 4},
    {"a", {2, {2, 3}}, 1, 6},
    {"a'", {2, {3, 2}}, 1, 6},
    {"a''", {2, {2, 3}}, 1, 6},
    {" ( a ) ' ", {2, {3, 2}}, 1, 6},
    {"b'", {2, {3, 1}}, 10, 30},
    {"a + b", {2, {2, 3}}, 11, 36},
    {"a - b", {2, {2, 3}}, -9, -24},
    {"a * 2", {2, {2, 3}}, 2, 12},
    {"b / a", {2, {2, 3}}, 10, 5},
    {"a * sum(a)", {2, {2, 3}}, 6, 90},
    {"sum(a)", {2, {2, 1}}, 6, 15},
    {"mean(a)", {2, {2, 1}}, 2, 5},
    {"max(-a)", {2, {2, 1}}, -1, -4},
    {"sum0(a)", {2, {1, 3}}, 5, 9},
    {"sum0(b)", {1, {3}}, 10, 30},
    {"sum(b)", {1, {1}}, 60, 60},
    {"a @ a'", {2, {2, 2}}, 14, 77},
    {"a' @ a", {2, {3, 3}}, 17, 45},
    {"a @ b", {1, {2}}, 140, 320},
    {"b @ a'", {1, {2}}, 140, 320},
    {"b' @ b", {2, {3, 3}}, 100, 900},
    {"a * a @ b", {1, {2}}, 360, 1740},
    {"-a'", {2, {3, 2}}, -1, -6},
    {"2 * -a", {2, {2, 3}}, -2, -12},
    {"a^2", {2, {2, 3}}, 1, 36},
    {"-a^2", {2, {2, 3}}, -1, -36},
    {"2 * a^3 / b", {2, {2, 3}}, 0.2, 14.4},
    {"(a + 1)^0.5", {2, {2, 3}}, 1.4142135623730951, 2.6457513110645907},
    {"a'^2", {2, {3, 2}}, 1, 36},
    {"a > 1", {2, {2, 3}}, 0, 1},
    {"a > b / 10", {2, {2, 3}}, 0, 1},
    {"1 + a > a * 2", {2, {2, 3}}, 0, 0},
    {"(a > 1) * dy", {2, {2, 3}}, 0, 1},
    {"max(a, 2)", {2, {2, 3}}, 2, 6},
    {"max(a, b / 10 + 1)", {2, {2, 3}}, 2, 6},
    {"max(max(a), b)", {2, {2, 3}}, 10, 30},
    {"sign(a - 2)", {2, {2, 3}}, -1, 1},
    {"sign(a - a) + sign(0)", {2, {2, 3}}, 0, 0},
};

/* The names of the line. */
static void read_scope(RuleScope *scope) {
    TapeLine line;
    Tensor *kept = NULL;
    ck_assert(planted_scope(&planting, last_line(&line), NULL, &kept, scope));
    ck_assert_ptr_null(kept);
}

LOOP_TEST(values_of_formulas, COUNT(values)) {
    static RuleScope scope;
    static RuleFormula f;
    double numbers[9];
    ck_assert(tape_begin());
    in[0] = LEAF(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    in[1] = LEAF(SHAPE(3), 10, 20, 30);
    y = ag_mul(in[0], in[1]);
    dy = tensor_ones_like(y);
    read_scope(&scope);
    ck_assert_msg(rule_parse(&f, values[_i].formula, &scope), "%s: %s", values[_i].formula,
                  f.complaint);
    const Tensor *value = rule_evaluate(&f, &(RuleValues){.dy = dy, .out = y, .in = in});
    ck_assert_msg(value != NULL, "%s: %s", values[_i].formula, f.complaint);
    ck_assert_int_eq(value->shape.ndim, values[_i].shape.ndim);
    for (int d = 0; d < value->shape.ndim; d++)
        ck_assert_int_eq(value->shape.dim[d], values[_i].shape.dim[d]);
    ck_assert(tensor_to_doubles(value, numbers));
    ck_assert_msg(fabs(numbers[0] - values[_i].first) < 1e-12, "%s", values[_i].formula);
    ck_assert_msg(fabs(numbers[tensor_numel(value) - 1] - values[_i].last) < 1e-12, "%s",
                  values[_i].formula);
    close_tape();
}

/* What a page shows with a raised T or 2 can be typed so; a name that is written so is itself. */
static const struct {
    const char *formula, *name; /* the last one */
    char sign;                  /* of the whole formula */
} shown_names[] = {
    {"K'", "K'", 'n'},
    {"KT", "K'", 'n'},
    {"K^T", "K'", 'n'},
    {"dKT", "dK'", 'n'},
    {"dK^T", "dK'", 'n'},
    {"d(KT)", "d(K')", 'n'},
    {"d(K^T)", "d(K')", 'n'},
    {"K^T'", "K'", '\''},
    {"(K)^T", "K", '\''},
    {"K ^T", "K", '\''},
    {"K + KT", "K'", '+'},
    {"LT", "LT", 'n'},
    {"L^T", "L'", 'n'},
    {"T", "T", 'n'},
    {"TT", "T", '\''},
    {"A^T", "A", '\''},
    {"AT", "A", '\''},
    {"AT^T'", "A", '\''},
    {"E\xc2\xb2", "E^2", 'n'},
    {"dE\xc2\xb2", "dE^2", 'n'},
    {"d(E\xc2\xb2)", "d(E^2)", 'n'},
    {"d(E^2)", "d(E^2)", 'n'},
    {"E * E\xc2\xb2", "E^2", '*'},
};

LOOP_TEST(names_as_they_are_shown, COUNT(shown_names)) {
    static const char *const names[] = {"K",  "K'",          "dK'",  "d(K')", "L",   "L'",
                                        "LT", "A",           "T",    "E",     "E^2", "x",
                                        "y",  "S / sqrt(d)", "dE^2", "d(E^2)"};
    static RuleScope scope;
    static RuleFormula f;
    scope.n = COUNT(names);
    scope.own = COUNT(names);
    for (int i = 0; i < COUNT(names); i++) strcpy(scope.names[i].name, names[i]);
    ck_assert_msg(rule_parse(&f, shown_names[_i].formula, &scope), "%s: %s",
                  shown_names[_i].formula, f.complaint);
    const RuleNode *last = &f.nodes[f.n - 1];
    ck_assert_msg(last->sign == shown_names[_i].sign, "%s", shown_names[_i].formula);
    while (last->sign != 'n') last--;
    ck_assert_str_eq(last->value.name, shown_names[_i].name);
}

/* In lesson 2. (Known mistakes whose sizes do not fit are in test_rule_card.c.) */
static const struct {
    const char *rule, *error;
} nonsense[] = {
    {"", "rule \"\": it begins with a name and a colon, as in A: y * dy"},
    {"y * dy", "rule \"y * dy\": it begins with a name and a colon, as in A: y * dy"},
    {" : y", "rule \" : y\": it begins with a name and a colon, as in A: y * dy"},
    {"Nope: y", "rule of Nope: no line of the tape makes or reads a tensor of this name"},
    {"dNope: y", "rule of dNope: no line of the tape makes or reads a tensor of this name"},
    {"Y.dQ: y", "rule of Y.dQ: the line has no such gradient"},
    {"Y: dY @ V'", "rule of Y: its line has several gradients: say which, Y.dA or Y.dV"},
    {"T: dy", "rule of T: it gets no gradient"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: dy",
     "rule of aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: dy: no tensor has so long a name"},
    {"A:", "rule of A, column 1: the formula is empty"},
    {"A:   ", "rule of A, column 1: the formula is empty"},
    {"A: sum dA", "rule of A, column 1: sum needs a bracket: sum(x) adds up each row"},
    {"A: A * max",
     "rule of A, column 5: max needs a bracket: max(x) is the largest number of each row"},
    {"A: A * (dA - sum(A * dA)", "rule of A, column 5: this bracket is not closed"},
    {"A: A * dA)", "rule of A, column 7: this bracket has no opening one"},
    {"A: A * ()", "rule of A, column 6: a value is missing before this bracket"},
    {"A: A *", "rule of A, column 4: the formula ends, and a value is missing"},
    {"A: * dA", "rule of A, column 1: a value is missing before *"},
    {"A: A * * dA", "rule of A, column 5: a value is missing before *"},
    {"A: A ** 2", "rule of A, column 4: there is no ** here: write x * x"},
    {"A: A .* dA",
     "rule of A, column 3: write * without the point: it goes number by number, and @ is the "
     "product of tables"},
    {"A: (A = dA)", "rule of A, column 4: write the formula alone, without ="},
    {"A: dA * (A .* dA)",
     "rule of A, column 9: write * without the point: it goes number by number, and @ is the "
     "product of tables"},
    {"A: A * (dA - (dA * A).sum(-1, keepdims=True))",
     "rule of A, column 19: write sum(dA * A): it adds up each row; sum0(x) adds up all rows"},
    {"A: A * (dA - (dA * A) .sum(dim=-1, keepdim=True))",
     "rule of A, column 20: write sum(dA * A): it adds up each row; sum0(x) adds up all rows"},
    {"A: dA'.max(1)", "rule of A, column 4: write max(dA'): it is the largest number of each row"},
    {"A: A * (dA - np.sum(A * dA, axis=-1))",
     "rule of A, column 11: write sum(x): it adds up each row; sum0(x) adds up all rows"},
    {"A: A * (dA - dA.softmax(-1))",
     "rule of A, column 13: there is no .softmax here: the functions are sum, mean, max, sum0, exp, log, "
     "tanh, sqrt and sign"},
    {"A: A.T", "rule of A, column 2: write ' behind what is transposed"},
    {"A: (A.t() @ dA)", "rule of A, column 3: write ' behind what is transposed"},
    {"A: (dA @ A.transpose(-2, -1))", "rule of A, column 8: write ' behind what is transposed"},
    {"A: np.transpose(A)", "rule of A, column 1: write ' behind what is transposed"},
    {"A: A.matmul(dA)", "rule of A, column 2: write a @ b: it is the product of tables"},
    {"A: torch.bmm(A, dA)", "rule of A, column 1: write a @ b: it is the product of tables"},
    {"A: A dA",
     "rule of A, column 3: A is 2 x 3 and dA is 2 x 3: @ needs equal inner sizes, and * goes number by "
     "number"},
    {"A: 2 A &", "rule of A, column 5: & is no sign of a formula"},
    {"A: A \xc2\xb2", "rule of A, column 3: behind ^ stands a number: x^2"},
    {"A: A^Tx", "rule of A, column 2: behind ^ stands a number: x^2"},
    {"A: A \xc2", "rule of A, column 3: this is no sign of a formula"},
    {"A: dA * ZZT",
     "rule of A, column 6: there is no ZZT here: the names are dA, A, Z, x, y, dy, d; the "
     "functions are sum, mean, max, sum0, exp, log, tanh, sqrt and sign"},
    {"A: dA = A", "rule of A, column 4: write the formula alone, without ="},
    {"A: A, dA", "rule of A, column 2: one formula, without a comma"},
    {"A: sum(A, -1)", "rule of A, column 6: sum takes one value, and adds up each row"},
    {"A: (A, 1)", "rule of A, column 3: one value stands in brackets, without a comma"},
    {"A: A & dA", "rule of A, column 3: & is no sign of a formula"},
    {"A: $", "rule of A, column 1: $ is no sign of a formula"},
    {"A: A \xc2\xb7 dA", "rule of A, column 3: this is no sign of a formula"},
    {"A: \xc2\xb7", "rule of A, column 1: this is no sign of a formula"},
    {"A: 1.2.3", "rule of A, column 1: 1.2.3 is no number"},
    {"A: 1e999", "rule of A, column 1: 1e999 is no number"},
    {"A: .", "rule of A, column 1: . is no number"},
    {"A: dA * dz",
     "rule of A, column 6: there is no dz here: the names are dA, A, Z, x, y, dy, d; the "
     "functions are sum, mean, max, sum0, exp, log, tanh, sqrt and sign"},
    {"A: A * dV", "rule of A, column 5: dV is not known here: backward has not reached it yet"},
    {"K: dQ", "rule of K, column 1: dQ is not known here: backward has not reached it yet"},
    {"dA: V' @ dY", "rule of dA, column 4: V' is 2 x 3 and dY is 2 x 2: @ needs equal inner sizes"},
    {"dA: dY @ V",
     "rule of dA, column 4: dY is 2 x 2 and V is 3 x 2: @ needs equal inner sizes. This is dY times "
     "V, where V is not transposed"},
    {"Y.dV: dY' @ A",
     "rule of Y.dV, column 1: the formula is 2 x 3 and the gradient must be 3 x 2. This is dY' times "
     "A, the transpose of the gradient of V"},
    {"dA: dY √", "rule of dA, column 5: the formula ends, and a value is missing"},
    {"dA: √d * nope",
     "rule of dA, column 6: there is no nope here: the names are dY, Y, A, V, a, b, y, dy, x, d; "
     "the functions are sum, mean, max, sum0, exp, log, tanh, sqrt and sign"},
    {"dA: (dY + 1) - V",
     "rule of dA, column 10: dY + 1 is 2 x 2 and V is 3 x 2: - needs equal sizes, or 1"},
    {"dA: V @\tV' \t+ dY",
     "rule of dA, column 9: V @ V' is 3 x 3 and dY is 2 x 2: + needs equal sizes, or 1"},
    {"dA: dY", "rule of dA, column 1: the formula is 2 x 2 and the gradient must be 2 x 3"},
    {"A: 2 @ A",
     "rule of A, column 3: 2 is one number and A is 2 x 3: @ needs matrices; * multiplies by a "
     "number"},
    {"A: 2'", "rule of A, column 2: 2 is one number: ' needs a matrix"},
    {"A: A^", "rule of A, column 2: behind ^ stands a number: x^2"},
    {"A: max(A, dA", "rule of A, column 4: this bracket is not closed"},
    {"A: max(A, dA, Z)",
     "rule of A, column 10: max takes one value or two, and is the largest number of each row"},
    {"A: A >", "rule of A, column 4: the formula ends, and a value is missing"},
};

LOOP_TEST(nonsense_gets_its_place, COUNT(nonsense)) {
    LessonOptions options = LESSON_OPTIONS;
    Lesson lesson;
    options.formulas[options.num_formulas++] = nonsense[_i].rule;
    ck_assert_msg(!lesson_open(&lesson, 2, options), "%s", nonsense[_i].rule);
    expect_error(nonsense[_i].error);
    lesson_close(&lesson);
}

/* Brackets, signs and parts have a limit, and it is said. */
TEST(too_long_and_too_deep) {
    static char rule[8000];
    static const char *const parts[] = {"(", "-", "a+", "sum(", "'", " ", "1*"};
    ck_assert(tape_begin());
    in[0] = LEAF(SHAPE(2), 1, 2);
    ag_name(ag_mul(in[0], in[0]), "R");
    for (int p = 0; p < COUNT(parts); p++) {
        strcpy(rule, "R.da: ");
        for (int i = 0; i < 1300; i++) strcat(rule, parts[p]);
        ck_assert(!rule_plant(&planting, rule));
        expect_error_like("rule of R.da, column ", "");
    }
    tape_end();
    rule_free(&planting);
    tensor_release(in[0]);
}

/* ---- lessons --------------------------------------------------------------------------------- */

/* The language swaps the last two dimensions only. */
static bool can_be_said(const TapeLine *line) {
    return strcmp(line->op, "transpose") != 0 || line->out->shape.ndim < 4;
}

static const struct {
    int number;
    LessonOptions options;
} lessons[] = {
    {1, {.dropout = -1, .seed = LESSON_SEED}},
    {2, {.dropout = -1, .seed = LESSON_SEED}},
    {2, {.dropout = -1, .seed = 5, .queries = 3, .keys = 3, .size = 3}},
    {3, {.dropout = -1, .seed = LESSON_SEED}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'b'}},
    {4, {.dropout = -1, .seed = LESSON_SEED}},
    {4, {.dropout = 0.5, .seed = 3, .causal = true}},
    {5, {.dropout = -1, .seed = LESSON_SEED}},
    {6, {.dropout = -1, .seed = LESSON_SEED}},
    {6, {.dropout = -1, .seed = LESSON_SEED, .additive = true, .step = 20}},
};

/* The largest error of any check in a lesson's JSON. */
static double worst_of_lesson(const char *text) {
    double worst = 0;
    for (const char *at = strstr(text, "\"worst\":"); at; at = strstr(at + 1, "\"worst\":"))
        worst = fmax(worst, strtod(at + strlen("\"worst\":"), NULL));
    return worst;
}

CASE("lessons")
/* Every gradient of every line is addressed, by the names of its line and its input, and computed
 * by the formula of the case with the name of its op: all stay green. */
LOOP_TEST(all_lines_of_a_lesson, COUNT(lessons)) {
    static char text[LESSON_STEPS][RULE];
    char argument[RULE_NAME], *json;
    Lesson lesson;
    TapeLine line;
    size_t size;
    int planted = 0;
    ck_assert(lesson_open(&lesson, lessons[_i].number, lessons[_i].options));
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in && line.out->grad_fn && can_be_said(&line); k++) {
            if (!line.in[k] || !line.in[k]->requires_grad) continue;
            planted_argument(&line, k, argument);
            snprintf(text[planted], RULE, "%s.d%s: %s", line.out->name, argument,
                     cases[find_case(line.op)].rules[k]);
            ck_assert_msg(rule_plant(&lesson.planting, text[planted]), "%s", tensor_error());
            planted++;
            ck_assert(tape_line(i, &line)); /* its lists are gone */
        }
    ck_assert_int_gt(planted, 6);
    ck_assert(rule_judge(&lesson.planting));
    for (const PlantedLine *l = lesson.planting.first; l; l = l->next)
        for (int k = 0; k < PLANTED_INPUTS; k++)
            if (l->rules[k])
                ck_assert_msg(l->rules[k]->is_right, "lesson %d: %s: %s", lesson.number,
                              l->rules[k]->name, l->rules[k]->formula.text);
    FILE *file = open_memstream(&json, &size);
    ck_assert_msg(lesson_write_json(&lesson, file), "%s", tensor_error());
    ck_assert_int_eq(fclose(file), 0);
    ck_assert(worst_of_lesson(json) < 1e-6);
    ck_assert_ptr_null(strstr(json, "\"verdict\":\"wrong\""));
    free(json);
    lesson_close(&lesson);
}

static const Json *tree;   /* of the last answer */
static const Json *answer; /* the lesson, or NULL */

static void get(const char *request) {
    tree = ask(request);
    answer = json_at(json_get(tree, "lessons"), 0);
    ck_assert_int_eq(live_tensors(), 0);
}

/* The only planted rule. */
static const Json *planted(void) {
    const Json *list = json_get(answer, "planted");
    ck_assert_msg(answer && list->count == 1, "%s", json_text(tree, "error", ""));
    return list->first;
}

static const struct {
    const char *request, *verdict, *mistake;
} asked[] = {
    {"lesson 2\nrule A: A * (dA - sum(A * dA))", "right", ""},
    {"lesson 2\nrule A: y * dy", "wrong", "no_sum"},
    {"lesson 2\nformula A: y * dy", "wrong", "no_sum"},
    {"lesson 2\nrule dA: dY @ V'", "right", ""},
    {"lesson 2\nrule V: A' @ dY", "right", ""},
    {"lesson 2\nrule Y.dV: A' @ dY", "right", ""},
    {"lesson 2\nrule Y.V: A' @ dY", "right", ""},
    {"lesson 2\nrule Y.db: a' @ dy", "right", ""},
    {"lesson 2\nrule Y.b: a' @ dy", "right", ""},
    {"lesson 2\nrule Z: dZ / sqrt(d)", "right", ""},
    {"lesson 2\nrule S / sqrt(d): d(S / sqrt(d)) * scale", "right", ""},
    {"lesson 2\nrule dS: dZ / sqrt(4)", "right", ""},
    {"lesson 2\nrule Z: dZ", "wrong", "no_scale"},
    {"lesson 2\nrule Z: dZ / d", "wrong", "squared"},
    {"lesson 2\nrule Q: dS @ K", "right", ""}, /* K is on another line */
    {"lesson 2\nrule dQ: dS @ K''", "right", ""},
    {"lesson 2\nrule dK': Q' @ dS", "right", ""},
    {"lesson 2\nrule d(K'): Q' @ dS", "right", ""},
    {"lesson 2\nrule K': dK''", "right", ""},
    {"lesson 2\nrule K: d(K')'", "right", ""},
    {"lesson 2\nrule K: dS' @ Q", "right", ""}, /* dS does not arrive here, but is known */
    {"lesson 2\nrule K: dZ' @ Q / sqrt(d)", "right", ""},
    {"lesson 2\nrule K: (Q' @ dS)' + dK'' - dS' @ Q", "right", ""},
    {"lesson 2\nrule A: A * (dY @ V' - sum(A * (dY @ V')))", "right", ""},
    {"lesson 2\nrule dQ: 0.5 * dZ @ K", "right", ""},
    {"lesson 4\nrule K': dZ' @ Q / sqrt(d)", "right", ""},
    {"lesson 2\nrule K': dy", "wrong", "not_undone"},
    {"lesson 2\nrule E^2: 2 * E * d(E^2)", "right", ""},
    {"lesson 2\nrule dE: 2 * E * dE\xc2\xb2", "right", ""},
    {"lesson 2\nrule V: AT @ dY", "right", ""},
    {"lesson 2\nrule K: dKT'", "right", ""},
    {"lesson 2\nrule dQ: dS @ (K^T)^T", "right", ""},
    {"lesson 2\nrule E^2: E * d(E^2)", "wrong", ""},
    {"lesson 2\nkeys 2\nrule A: y * dy", "wrong", "no_sum"},
    {"lesson 2\nkeys 2\nsize 2\nrule dA: dY @ V", "wrong", "da_untransposed"},
    {"lesson 3\nrule A: y * (dy - sum(y * dy)) * scale", "right", ""},
    {"lesson 4\nrule A_p: dA_p * kept", "wrong", "no_rescale"},
    {"lesson 4\nrule A_p: dA_p * (1 - kept) / (1 - p)", "wrong", "inverted_mask"},
    {"lesson 4\nrule Q.dx: dQ @ W_q", "right", ""},
    {"lesson 4\nrule K.dx: dK @ W_k'", "wrong", "dx_w_transposed"},
    {"lesson 4\nrule W_k: dK' @ x", "right", ""}, /* dK, transposed; not the gradient of K' */
    {"lesson 4\nrule W_q: x' @ dQ", "wrong", "dw_transposed_indices"},
    {"lesson 4\nrule Z: dZ * s * s", "wrong", "squared"},
    {"lesson 6\nrule W_1.weight: dP' @ output", "right", ""},
    {"lesson 6\nrule W_1.bias: dP", "right", ""},
    {"lesson 6\nrule W_1.bias: sum0(dP) / 4", "wrong", "db_mean"},
    {"lesson 6\nrule output.da: dO @ x'", "right", ""},
    {"lesson 6\nadditive 1\nrule F: dF", "wrong", "no_tanh_derivative"},
    {"lesson 6\nadditive 1\nrule dF: dF", NULL,
     "rule of dF, column 1: dF is not known here: backward has not reached it yet"},
    {"lesson 2\nrule A: y * dz", NULL, "rule of A, column 5: there is no dz here: "},
    {"lesson 3b\nrule Y: dY", NULL, "rule of Y: its line has several gradients: say which, "},
    {"lesson 4\nrule x: dQ @ W_q", NULL,
     "rule of x: several lines read x: say which, Q.dx or K.dx"},
    {"lesson 2\nrule exp", NULL, "there is no rule \"exp\""},
};

LOOP_TEST(rules_of_requests, COUNT(asked)) {
    get(asked[_i].request);
    if (asked[_i].verdict) {
        const Json *rule = planted();
        ck_assert_str_eq(json_text(rule, "verdict", ""), asked[_i].verdict);
        ck_assert_str_eq(json_text(rule, "mistake", ""), asked[_i].mistake);
        ck_assert(json_get(rule, "typed")->number == 1);
        ck_assert_ptr_nonnull(strstr(asked[_i].request, json_text(rule, "rule", "-")));
        ck_assert_str_eq(json_text(answer, "rule", "-"), "");
        const double worst = worst_of_lesson(answer_to(asked[_i].request)); /* the badge */
        ck_assert_msg((worst > 1e-5) == (*asked[_i].verdict == 'w'), "%s: %g", asked[_i].request,
                      worst);
    } else {
        const char *error = json_text(tree, "error", "");
        ck_assert_msg(strncmp(error, asked[_i].mistake, strlen(asked[_i].mistake)) == 0, "%s",
                      error);
    }
    ask_no_more();
}

#define ONES                                                                                       \
    "All numbers are right here, since what arrives, dE^2, is 1 here. For any other number it is " \
    "wrong: "
#define TURNED_ASKS "Does a row of K belong to a column of S or to a column of Q?"
/* What is said of a mistake has the names of the lesson. */
static const struct {
    const char *request, *why, *question;
} said[] = {
    {"lesson 2\nrule A: y * dy", "This is A * dA, without the sum over the row.",
     "If one number of Z grows, what happens to the other numbers of A in its row?"},
    {"lesson 2\nrule A: A * (dA - mean(A * dA))",
     "This is A * (dA - mean(A * dA)), with a mean over the row in place of the sum.",
     "The numbers of a row of A are weights that sum to 1. Is there something left to divide by?"},
    {"lesson 2\nrule Z: dZ * 2", "This is dZ times 2, but forward multiplies by 0.5.",
     "If a number of S grows by 1, does its number of Z grow by 0.5 or by 2?"},
    {"lesson 2\nrule Z: dZ", "This is dZ, without the factor 0.5.",
     "If a number of S grows by 1, by how much does its number of Z grow?"},
    {"lesson 2\nsize 3\nkeys 3\nrule dQ: dS @ K'",
     "This is dS times K', where K is transposed: the other factor of S = Q K' is K', and its transpose is "
     "K.",
     "Which numbers of K' does a number of Q meet on its way to S: a row of K' or a column?"},
    {"lesson 2\nsize 2\nkeys 2\nqueries 2\nrule dA: dY @ A'", "This is dY times A itself.",
     "If a number of A grows by 1, does Y grow by numbers of A or of V?"},
    {"lesson 4\nrule W_q: x' @ dQ", "This is x' times dQ, the transpose of the gradient of W_q.",
     "Does a row of W_q belong to a column of Q or to a column of x?"},
    {"lesson 6\nadditive 1\nrule F: dF", "This is dF, without the derivative of tanh.",
     "Where tanh is almost flat, does F change much with q + k?"},
    {"lesson 6\nadditive 1\nrule q + k.dkeys (1, 1, T, E): dy * dy",
     "This does not double when d(q + k) doubles, as a gradient does.", ""},
    {"lesson 2\nrule dE: 2 * E", ONES "the rule forgets to multiply by dE^2.", ""},
    {"lesson 2\nrule dE: 2 * E * dE^2 * dE^2", ONES "it does not double when dE^2 doubles.", ""},
    {"lesson 2\nrule loss: 1",
     "All numbers are right here, since what arrives, dloss, is 1 here. For any other number it is "
     "wrong: the rule forgets to multiply by dloss.",
     ""},
    {"lesson 2\nrule dY: 2 * (Y - T)",
     "All numbers are right here, for this loss. A rule of one line has to work for any loss: it "
     "takes what arrives, dE, and doubles when dE doubles.",
     ""},
    {"lesson 3\nrule A: A * dA", "This is A * dA, without the sum over the row.",
     "If one number of Z grows, what happens to the other numbers of A in its row?"},
    {"lesson 2\nrule dE: 3 * E", "This does not double when dE^2 doubles, as a gradient does.", ""},
    {"lesson 2\nrule K: 2 * dS' @ Q", "This is the right gradient times 2.", TURNED_ASKS},
    {"lesson 2\nkeys 2\nsize 2\nrule K: dS @ Q", "This is dS times Q, where dS is not transposed.",
     "In which numbers of S is a row of K used: in a row of them or in a column?"},
    {"lesson 2\nrule K: Q' @ dS", "This is Q' times dS, the transpose of the gradient of K.",
     TURNED_ASKS},
    {"lesson 2\nrule A: dA * dA", "This does not double when dA doubles, as a gradient does.", ""},
};

LOOP_TEST(mistakes_have_the_lessons_names, COUNT(said)) {
    get(said[_i].request);
    ck_assert_str_eq(json_text(planted(), "why", ""), said[_i].why);
    ck_assert_str_eq(json_text(planted(), "question", ""), said[_i].question);
    ask_no_more();
}

/* Where a rule leaves 0 of what arrives, the page does not say that nothing arrives. */
TEST(a_zero_of_a_rule_is_the_rules) {
    static const char *const requests[] = {"lesson 2\nrule A: 0",
                                           "lesson 2\nrule A: A * (dA - sum(A) * dA)"};
    for (int i = 0; i < COUNT(requests); i++) {
        get(requests[i]);
        const Json *reason = json_first(json_get(answer, "plan"), "reasons");
        while (reason && strcmp(reason->text, "the rule gives 0 here") != 0) reason = reason->next;
        ck_assert_msg(reason != NULL, "%s", requests[i]);
        ask_no_more();
    }
}

static double grad_of(const char *name, int64_t i) {
    const Json *tensors = json_get(json_get(answer, "tape"), "tensors");
    const Json *tensor = tensors->first;
    while (tensor && strcmp(json_text(tensor, "name", ""), name) != 0) tensor = tensor->next;
    return json_number(json_at(json_get(tensor, "grad"), i));
}

/* A known mistake is its formulas: sent back as rules they do the same. */
TEST(a_mistake_is_its_formulas) {
    static const struct {
        const char *lesson, *key, *leaf;
    } menu[] = {{"1", "softmax", "w"},   {"5", "softmax", "W_q"}, {"3", "softmax", "Q"},
                {"4", "transpose", "x"}, {"5", "transpose", "x"}, {"4", "dropout", "W_q"},
                {"3", "mask", "Q"},      {"6", "softmax", "x"},   {"5", "no_scale", "W_q"}};
    for (int i = 0; i < COUNT(menu); i++) {
        get(format("lesson %s\nrule %s", menu[i].lesson, menu[i].key));
        const double wanted = strcmp(menu[i].leaf, "x") ? grad_of(menu[i].leaf, 0) : 0;
        const char *request = format("lesson %s", menu[i].lesson);
        const int64_t count = json_get(answer, "planted")->count;
        ck_assert_int_gt(count, 0);
        for (const Json *p = json_get(answer, "planted")->first; p; p = p->next) {
            ck_assert(json_get(p, "typed")->number == 0);
            request = format("%s\nrule %s", request, json_text(p, "rule", ""));
        }
        get(request);
        ck_assert_int_eq(json_get(answer, "planted")->count, count);
        for (const Json *p = json_get(answer, "planted")->first; p; p = p->next)
            ck_assert_str_eq(json_text(p, "verdict", ""), "wrong");
        if (strcmp(menu[i].leaf, "x"))
            ck_assert_msg(same_number(grad_of(menu[i].leaf, 0), wanted, 0), "%s", request);
    }
    ask_no_more();
}

/* Has an earlier row the same id? */
static bool is_repeated(int row) {
    for (int i = 0; i < row; i++)
        if (mistake_rows[i].id && strcmp(mistake_rows[i].id, mistake_rows[row].id) == 0)
            return true;
    return false;
}

static bool all_lessons;

/* A mistake of the list, planted by its id, is recognized as this mistake, and its checks fail: in
 * at least one lesson, if a tape of the lessons has its op. A sample takes each id once, in one
 * lesson: the first one that has it, from another lesson for each id. */
LOOP_TEST(a_planted_mistake_is_recognized, num_mistake_rows) {
    static const char *const requests[] = {
        "1", "2\nqueries 3\nkeys 3\nsize 3", "3", "4", "5", "6", "6\nadditive 1"};
    static const char *const elsewhere =
        "add bias layer_norm cross_entropy attention flash self_attention +=";
    const MistakeRow *m = &mistake_rows[_i];
    int planted = 0;
    if (!m->id || !*m->id || (!all_lessons && is_repeated(_i))) return;
    for (int i = 0; i < COUNT(requests) && (all_lessons || planted == 0); i++) {
        const char *request =
            format("lesson %s\nrule %s", requests[(i + _i) % COUNT(requests)], m->id);
        get(request);
        if (json_get(tree, "error")) {
            ck_assert_ptr_nonnull(strstr(json_text(tree, "error", ""), "has no line that"));
            continue;
        }
        for (const Json *p = json_get(answer, "planted")->first; p; p = p->next) {
            ck_assert_msg(strcmp(json_text(p, "verdict", ""), "wrong") == 0, "%s", request);
            ck_assert_msg(strcmp(json_text(p, "mistake", ""), m->id) == 0, "%s", request);
            planted++;
        }
    }
    ck_assert_msg(planted > 0 || strstr(elsewhere, m->of), "%s of %s", m->id, m->of);
    ask_no_more();
}

static double loss_at(const char *key, int64_t i) {
    return json_number(json_at(json_get(json_get(answer, "training"), key), i));
}

/* Training goes on with the rule: a right one learns as the line's own backward does. */
TEST(training_with_rules) {
    get("lesson 2\ntrain 1");
    const double right = loss_at("right", LESSON_STEPS - 1);
    ck_assert_ptr_null(json_get(json_get(answer, "training"), "wrong"));
    get("lesson 2\ntrain 1\nrule A: A * (dA - sum(A * dA))\nrule dA: dY @ V'\nrule V: A' @ dY");
    ck_assert_double_eq_tol(loss_at("right", LESSON_STEPS - 1), right, 1e-12);
    ck_assert_double_eq_tol(loss_at("wrong", LESSON_STEPS - 1), right, 1e-6 * right);
    get("lesson 2\ntrain 1\nrule A: y * dy");
    ck_assert_double_eq_tol(loss_at("wrong", 0), loss_at("right", 0), 1e-12);
    ck_assert(fabs(loss_at("wrong", 1) - loss_at("right", 1)) > 1e-4);
    get("lesson 6\nstep 5\nrule W_1.weight: -dP' @ output");
    ck_assert_str_eq(json_text(planted(), "why", ""),
                     "This is the right gradient with the other sign.");
    ask_no_more();
}

/* A rule that reads other gradients than what arrives is what the gradient is, and what is shown.
 */
TEST(a_rule_of_other_gradients) {
    get("lesson 2");
    const double right = grad_of("K", 0);
    get("lesson 2\ntrain 1\nrule K: 3 * dS' @ Q");
    ck_assert_double_eq_tol(grad_of("K", 0), 3 * right, 1e-12);
    ck_assert(fabs(loss_at("wrong", 1) - loss_at("right", 1)) > 1e-4);
    get("lesson 2\ntrain 1\nrule K: dS' @ Q\nrule A: A * dA"); /* of a wrong dS the right dK */
    ck_assert_str_eq(json_text(json_get(answer, "planted")->first, "verdict", ""), "right");
    ask_no_more();
}

/* A rule of a gradient takes the place of an earlier one, and of the menu's; = for += stays. */
TEST(several_rules) {
    get("lesson 2\nrule A: y * dy\nrule A: A * (dA - sum(A * dA))");
    ck_assert_str_eq(json_text(planted(), "verdict", ""), "right");
    get("lesson 2\nrule softmax\nrule A: A * (dA - sum(A * dA))");
    ck_assert_str_eq(json_text(planted(), "verdict", ""), "right");
    ck_assert_str_eq(json_text(answer, "rule", ""), "softmax");
    get("lesson 4\nrule assign");
    const double wrong = grad_of("W_q", 0);
    ck_assert_int_eq(json_get(answer, "planted")->count, 0);
    get("lesson 4\nrule assign\nrule Q.dx: dQ @ W_q\nrule W_q: dQ' @ x");
    ck_assert_int_eq(json_get(answer, "planted")->count, 2);
    ck_assert_double_eq_tol(grad_of("W_q", 0), wrong, 1e-12);
    ck_assert_str_eq(json_text(json_at(json_get(answer, "planted"), 0), "verdict", ""), "right");
    get("lesson 2\nrule A: y\nrule A: y\nrule A: y\nrule A: y\nrule A: y\nrule A: y\nrule A: y\n"
        "rule A: y\nrule A: y\nrule A: y\nrule A: y\nrule A: y\nrule A: y");
    ck_assert_str_eq(json_text(tree, "error", ""), "at most 12 rules can be planted");
    ask_no_more();
}

/* ---- the program ----------------------------------------------------------------------------- */

PROGRAM_CASE("the program")
TEST(rules_of_the_program) {
    ck_assert_int_eq(run("--lesson 2 --rule 'A: y * dy' --rule \"dA: dY @ V'\" --train "
                         "--page $D/page.html"),
                     0);
    ck_assert_int_eq(occurrences(page_data("page.html"), "\"verdict\":\"wrong\""), 1);
    ck_assert_int_eq(occurrences(page_data("page.html"), "\"verdict\":\"right\""), 1);
    ck_assert_int_eq(occurrences(page_data("page.html"), "\"mistake\":\"no_sum\""), 1);
    ck_assert_ptr_nonnull(strstr(page_data("page.html"),
                                 "build/explain --lesson 2 --train --rule \\\"A: y * dy\\\" "
                                 "--rule \\\"dA: dY @ V'\\\"\""));
    ck_assert_int_eq(run("--lesson=2 '--rule=A: y * dy' --text"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nThe rule of A is wrong: y * dy. A known mistake: A * dA, "
                                      "without the sum over\nthe row.\n"));
    ck_assert_int_eq(occurrences(out, "check FAILS"), 1);
    ck_assert_ptr_null(strstr(out, "above the weighted mean")); /* which only the right rule is */
    ck_assert_int_eq(run("--lesson 2 --text --rule \"K: 3 * dS' @ Q\""), 0);
    ck_assert_ptr_nonnull(strstr(out, "\ndK = 3 dS' Q ...."));
    ck_assert_ptr_nonnull(strstr(out, "dK[0, 0] = 3 x 0.075 x 0.4 + 3 x 0.612 x 1.0 = 1.93"));
    ck_assert_int_eq(run("--lesson 2 --rule 'V: A@dY' --text"), 1);
    ck_assert_str_eq(complaints,
                     "explain: rule of V, column 2: A is 2 x 3 and dY is 2 x 2: @ needs "
                     "equal inner sizes. This is A times dY, where A is not transposed\n");
}

/* Without --lesson a rule is planted where it fits, and it must fit somewhere. */
TEST(rules_of_all_lessons) {
    ck_assert_int_eq(run("--rule 'A: y * dy' --page $D/page.html"), 0);
    ck_assert_int_ge(occurrences(page_data("page.html"), "\"verdict\":\"wrong\""), 6);
    ck_assert_int_eq(run("--rule 'B: y * dy' --page $D/page.html"), 0);
    ck_assert_int_eq(occurrences(page_data("page.html"), "\"verdict\":\"wrong\""),
                     1); /* in lesson 3b */
    ck_assert_int_eq(run("--lesson 3 --text --rule 'B: y * dy'"), 0);
    ck_assert_int_eq(occurrences(out, "The rule of B is wrong: "), 1);
    expect_failure("--rule 'B: y * dz' --page $D/page.html",
                   "rule of B, column 5: there is no dz here: ");
    expect_failure("--rule 'Nope: y' --page $D/page.html", "rule of Nope: no line of the tape");
}

TEST(misuse_of_rules) {
    ck_assert_int_eq(run("--rule"), 2);
    ck_assert_int_eq(run("--rule ''"), 2);
    ck_assert_int_eq(run("--text --rule 'A: y * dy'"), 2);
    ck_assert_int_eq(run("--tape $D/tape.json --rule 'A: y * dy'"), 2);
    ck_assert_ptr_nonnull(strstr(complaints, "--tape makes the page of a tape: leave out --rule"));
    ck_assert_int_eq(run("--rule a:b --rule a:b --rule a:b --rule a:b --rule a:b --rule a:b "
                         "--rule a:b --rule a:b --rule a:b --rule a:b --rule a:b --rule a:b "
                         "--rule a:b"),
                     2);
    ck_assert_ptr_nonnull(strstr(complaints, "--rule can be given 12 times"));
}

int main(void) {
    program = "explain";
    all_lessons = sampled(2, 2) == 2;
    return run_tests("rule");
}
