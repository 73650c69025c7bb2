/* target_rule.c - for libFuzzer: rules that a reader types, NAME: FORMULA.
 *
 * An input is text: a rule on each line. It is planted on a tape with a line of each kind, or there
 * must be one printable error message, which names a column inside of the text. What was planted is
 * judged, backward runs with it, and it is written. Nothing may be left over. */
#include "common.h"

#include "../../examples/explain/rules/rule_plant.h"

#include <stdlib.h>
#include <string.h>

/* L0 (2, 3), L1 (3, 3), L2 (3): S = L0 L1, Z = S / 2, A = softmax(Z), D = dropout(A), T = D',
 * Y = T' L1' + L2, M = Y where a mask is false, F = tanh(M). */
static Tensor *forward(Tensor **in) {
    Tensor *s = ag_name(ag_matmul(in[0], in[1]), "S");
    Tensor *a = ag_name(ag_softmax(ag_name(ag_scale(s, 0.5), "S / 2"), -1), "A");
    Tensor *t = ag_name(ag_transpose(ag_name(ag_dropout(a, 0.5), "D"), 0, 1), "D'");
    Tensor *y = ag_name(ag_linear(ag_transpose(t, 0, 1), in[1], in[2]), "Y");
    Tensor *mask = ag_gt_scalar(ag_detach(y), 0);
    Tensor *f = ag_name(ag_tanh(ag_name(ag_masked_fill(y, mask, 1), "M")), "F");
    return ag_sum(ag_name(ag_mul(f, in[2]), "G"));
}

/* "..., column 12: ...": a place in the formula, or just behind it. */
static void check_column(const char *rule) {
    const char *at = strstr(rule, "column") ? NULL : strstr(tensor_error(), ", column ");
    const int column = at ? atoi(at + strlen(", column ")) : 1;
    if (column < 1 || (size_t)column > strlen(rule) + 1) fault("a column outside of the formula");
}

static void plant(Planting *planting, char *text) {
    while (text) {
        char *next = strchr(text, '\n');
        if (next) *next++ = '\0';
        const bool planted = rule_plant(planting, text);
        if (!planted && tensor_error()) check_column(text);
        said(planted);
        text = next;
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    static const RuleAlias aliases[] = {{"Z", "S / 2", 0}, {"d", NULL, 3}};
    static const Shape shapes[] = {{2, {2, 3}}, {2, {3, 3}}, {1, {3}}};
    const int64_t live = tensor_live();
    Planting planting = {.aliases = aliases, .num_aliases = 2};
    Tensor *in[3];
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    tensor_manual_seed(3);
    tensor_set_default_dtype(F64);
    tape_begin();
    tape_keep_grads(true);
    for (int k = 0; k < 3; k++) {
        const char name[] = {'L', (char)('0' + k), '\0'};
        in[k] = ag_requires_grad(ag_name(tensor_randn(shapes[k]), name));
    }
    Tensor *loss = forward(in);
    plant(&planting, text);
    if (!rule_judge(&planting)) fault("what was planted cannot be judged");
    if (!ag_backward(loss)) fault("backward fails with what was planted");
    rule_write(&planting, nowhere());
    tape_end();
    rule_free(&planting);
    for (int k = 0; k < 3; k++) tensor_release(in[k]);
    free(text);
    if (tensor_live() != live) fault("tensors are left over");
    return 0;
}
