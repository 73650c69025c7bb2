/* rule_mistakes.c - mistakes of a backward as formulas: see rule_plant.h.
 *
 * They are those mistakes of the exercises that the language can say. A formula that does not fit a
 * line, in its names or its sizes, is not the mistake of that line. */
#include "rule_plant.h"

/* Numbers of rows: the sum of ones over all dimensions but the last. */
#define ROWS "sum0(mean(dy * 0 + 1))"

/* layer_norm: z, 1 / sqrt(variance + eps), w dy and x - mean. The formulas know eps by z alone,
 * since mean(z^2) = variance / (variance + eps). */
#define Z   "((y - b) / w)"
#define C   "(x - mean(x))"
#define VAR "mean(" C " * " C ")"
#define R   "sqrt(mean(" Z " * " Z ") / " VAR ")"
#define G   "(dy * w)"
#define N   "sum(x * 0 + 1)"
/* The same with a variance that is divided by n - 1. */
#define EPS  "(" VAR " / mean(" Z " * " Z ") - " VAR ")"
#define VAR1 "(sum(" C " * " C ") / (" N " - 1))"
#define R1   "(1 / sqrt(" VAR1 " + " EPS "))"
#define Z1   "(" C " * " R1 ")"

/* attention: the weights, their gradient, sqrt(D) for each row of q and of k. */
#define ROOT  "sqrt(sum(q * 0 + 1))"
#define ROOTK "sqrt(sum(k * 0 + 1))"
#define E     "exp(q @ k' / " ROOT ")"
#define P     "(" E " / sum(" E "))"
#define DP    "(dy @ v')"
#define DS    "(" P " * (" DP " - sum(" P " * " DP ")))"

const RuleMistake rule_mistakes[] = {
    {"softmax", NULL, {"y * (dy - sum(y * dy))"}, NULL},
    {"masked_softmax", NULL, {"scale * y * (dy - sum(y * dy))"}, NULL},
    {"scale", NULL, {"s * dy"}, NULL},
    {"add", NULL, {"dy", "dy"}, NULL},
    {"matmul bmm", NULL, {"dy @ b'", "a' @ dy"}, NULL},
    {"dropout", NULL, {"dy * kept / (1 - p)"}, NULL},
    {"linear", NULL, {"dy @ w", "dy' @ x", "sum0(dy)"}, NULL},
    {"tanh", NULL, {"(1 - y * y) * dy"}, NULL},

    {"softmax", "no_sum", {"y * dy"}, "It is y dy: the sum over the row is missing."},
    {"softmax", "plain_sum", {"y * (dy - sum(dy))"}, "Its sum adds dy, and not y dy."},
    {"softmax", "mean_of_dy", {"y * (dy - mean(dy))"}, "It subtracts the plain mean of dy."},
    {"softmax",
     "y_squared",
     {"y * (1 - y) * dy"},
     "It is y (1 - y) dy: the diagonal of the Jacobian alone."},
    {"softmax",
     "sum_not_weighted_by_y_outside",
     {"dy - sum(y * dy)"},
     "It is dy - sum(y dy): the factor y in front is missing."},
    {"softmax", "sign", {"y * (dy + sum(y * dy))"}, "It adds the sum over the row."},

    {"masked_softmax",
     "no_sum",
     {"scale * y * dy"},
     "It is s y dy: the sum over the row is missing."},
    {"masked_softmax", "no_scale", {"y * (dy - sum(y * dy))"}, "It has no factor s."},
    {"masked_softmax",
     "scale_squared",
     {"scale * scale * y * (dy - sum(y * dy))"},
     "It has the factor s twice."},

    {"scale", "no_scale", {"dy"}, "It is dy: the factor s is missing."},
    {"scale", "divided", {"dy / s"}, "It divides by s."},
    {"scale", "squared", {"s * s * dy"}, "It has the factor s twice."},

    {"add", "db_mean", {NULL, "sum0(dy) / " ROWS}, "It is the mean of dy over the rows."},
    {"add", "dx_summed", {"sum0(dy)"}, "It is the sum of dy over the rows, in every row."},

    {"matmul bmm", "da_untransposed", {"dy @ b"}, "It is dy b, without a transpose."},
    {"matmul bmm", "db_untransposed", {NULL, "a @ dy"}, "It is a dy, without a transpose."},
    {"matmul bmm",
     "swapped",
     {"dy @ a'", "b' @ dy"},
     "It multiplies dy by the other operand of the product."},
    {"matmul bmm", "da_elementwise", {"dy * b"}, "It multiplies element by element."},

    {"dropout", "no_rescale", {"dy * kept"}, "It is dy where kept: 1 / (1 - p) is missing."},
    {"dropout", "rescale_by_p", {"dy * kept / p"}, "It divides by p."},
    {"dropout", "rescale_twice", {"dy * kept / (1 - p) / (1 - p)"}, "It divides by 1 - p twice."},
    {"dropout", "all_elements", {"dy / (1 - p)"}, "It is dy / (1 - p) where dropped, too."},
    {"dropout",
     "inverted_mask",
     {"dy * (1 - kept) / (1 - p)"},
     "It is dy / (1 - p) where dropped, and 0 where kept."},

    {"linear", "dx_w_transposed", {"dy @ w'"}, "It is dy w', with w transposed."},
    {"linear",
     "dw_transposed_indices",
     {NULL, "x' @ dy"},
     "It is x' dy, the transpose of the gradient of w."},
    {"linear", "dw_mean", {NULL, "dy' @ x / " ROWS}, "It is the mean over the rows."},
    {"linear", "db_missing", {NULL, NULL, "0"}, "It is 0: b gets no gradient."},
    {"linear", "db_mean", {NULL, NULL, "sum0(dy) / " ROWS}, "It is the mean of dy over the rows."},

    {"tanh", "no_tanh_derivative", {"dy"}, "It is dy: the derivative of tanh is missing."},
    {"tanh",
     "derivative_of_input",
     {"(1 - tanh(y) * tanh(y)) * dy"},
     "It takes the derivative of tanh at y."},

    {"layer_norm",
     "mean_as_constant",
     {R " * (" G " - " Z " * mean(" G " * " Z "))"},
     "It takes the mean of x as a constant."},
    {"layer_norm",
     "variance_as_constant",
     {R " * (" G " - mean(" G "))"},
     "It takes the variance of x as a constant."},
    {"layer_norm",
     "both_constant",
     {R " * " G},
     "It takes the mean and the variance of x as constants."},
    {"layer_norm",
     "no_w",
     {R " * (dy - mean(dy) - " Z " * mean(dy * " Z "))"},
     "It reads dy in place of w dy."},
    {"layer_norm",
     "eps_missing",
     {"(" G " - mean(" G ") - " C " * mean(" G " * " C ") / " VAR ") / sqrt(" VAR ")",
      "dy * " C " / sqrt(" VAR ")"},
     "It has no eps."},
    {"layer_norm",
     "biased_n_minus_1",
     {R1 " * (" G " - mean(" G ") - " Z1 " * mean(" G " * " Z1 "))", "dy * " Z1},
     "It divides the variance by n - 1."},
    {"layer_norm", "dw_not_normalized", {NULL, "dy * x"}, "It reads x in place of z."},

    {"cross_entropy",
     "no_onehot",
     {"dy * exp(logits) / sum(exp(logits))"},
     "It is dy softmax(x): nothing is subtracted at the target."},
    {"cross_entropy",
     "probabilities_minus_all",
     {"dy * (exp(logits) / sum(exp(logits)) - 1)"},
     "It subtracts 1 from every probability."},

    {"attention", "no_scale", {DS " @ k", DS "' @ q"}, "It has no 1 / sqrt(D)."},
    {"attention",
     "scale_twice",
     {DS " @ k / " ROOT " / " ROOT, DS "' @ q / " ROOTK " / " ROOTK},
     "It is divided by sqrt(D) twice."},
    {"attention",
     "softmax_no_sum",
     {"(" P " * " DP ") @ k / " ROOT, "(" P " * " DP ")' @ q / " ROOTK},
     "The sum of softmax's backward is missing."},
    {"attention", "dv_untransposed", {NULL, NULL, P " @ dy"}, "It is p dy, without a transpose."},
    {"attention", "dq_uses_q", {DS " @ q / " ROOT}, "It multiplies by q in place of k."},
    {"attention",
     "dk_untransposed",
     {NULL, DS " @ q / " ROOTK},
     "It multiplies ds by q, without a transpose."},
    {"attention", "dv_only", {"0", "0"}, "It is 0: only v gets a gradient."},
};
const int rule_num_mistakes = sizeof rule_mistakes / sizeof *rule_mistakes;
