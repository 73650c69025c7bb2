/* runner.c - runs the programs that programs.py draws, for ../check-pytorch.
 *
 *     runner IN.safetensors OUT.safetensors
 *
 * The metadata of IN has a text for each program; the key is the number of the program. A text is a
 * list of lines; the n-th line that makes a tensor makes tensor n:
 *
 *     leaf 1  2 3 4 1 3 0     a view of IN's tensor "PROGRAM.n": does it require a gradient?,
 *                             ndim, sizes, strides, offset
 *     op add_scalar 17 0 : 3  ag_add_scalar of tensor 0 ("-" is an absent one) and the numbers
 *                             that call_op in common.h takes; 17 seeds the generator
 *     retain 2                ag_retain_grad
 *     require 2 1             ag_requires_grad; 0: tensor 2 requires no gradient from here on
 *     let_go 2                ag_let_go
 *     backward 5              ag_backward
 *     from 5 6                ag_backward_from
 *
 * The runner copies the result of an op at once, so that only the tape holds it. If the text begins
 * with the line "hold", the runner retains the result instead, and reads it after backpropagation.
 * OUT's tensors are "PROGRAM.n", the result of op n, and "PROGRAM.grad.n", the gradient of tensor
 * n, if it has one; OUT's metadata has the error of each program that failed. */
#include "../suites/common.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 128, INPUTS = 8, NUMBERS = 24 };

typedef struct {
    const char *number; /* of the program */
    const TensorDict *in;
    TensorDict *out;
    int n;
    struct {
        Tensor *tensor, *seen; /* we own a leaf; seen is a reference of ours to a result, or to
                                * its copy */
        bool is_leaf;
    } node[NODES];
    bool hold;
} Program;

static Tensor *node(const Program *p, const char *text) { return p->node[atoi(text)].tensor; }

/* Reads the numbers of the text. Returns how many there are. */
static int numbers_of(const char *text, double *number, int capacity) {
    char *end;
    int n = 0;
    for (; n < capacity; n++, text = end) {
        number[n] = strtod(text, &end);
        if (end == text) break;
    }
    return n;
}

/* "1  2 3 4 1 3 0" */
static Tensor *make_leaf(const Program *p, const char *text) {
    char name[64];
    double number[3 + 2 * TENSOR_MAX_DIMS] = {0};
    int64_t stride[TENSOR_MAX_DIMS];
    numbers_of(text, number, (int)(sizeof number / sizeof *number));
    const Shape shape = shape_at(number + 1);
    for (int d = 0; d < shape.ndim; d++) stride[d] = (int64_t)number[2 + shape.ndim + d];
    snprintf(name, sizeof name, "%s.%d", p->number, p->n);
    Tensor *bytes = tensor_dict_get(p->in, name);
    Tensor *x =
        bytes ? tensor_as_strided(bytes, shape, stride, (int64_t)number[2 + 2 * shape.ndim]) : NULL;
    return x && number[0] != 0 ? ag_requires_grad(x) : x;
}

/* "add 17  0 1 : 0.5" */
static Tensor *call(const Program *p, char *text) {
    Tensor *in[INPUTS] = {NULL};
    double number[NUMBERS] = {0};
    int n = 0;
    char *rest = strchr(text, ':');
    char *at = NULL;
    *rest = '\0';
    const char *name = strtok_r(text, " ", &at);
    tensor_manual_seed((uint64_t)atoi(strtok_r(NULL, " ", &at)));
    char *input = strtok_r(NULL, " ", &at);
    for (; input && n < INPUTS; input = strtok_r(NULL, " ", &at))
        in[n++] = *input == '-' ? NULL : node(p, input);
    numbers_of(rest + 1, number, NUMBERS);
    if (!strcmp(name, "contiguous")) return ag_contiguous(in[0]); /* call_op transposes first */
    return call_op(name, in, n, number);
}

static bool add_node(Program *p, Tensor *x, bool is_leaf) {
    if (!x || p->n == NODES) return false;
    p->node[p->n].tensor = x;
    p->node[p->n].is_leaf = is_leaf;
    p->node[p->n].seen = p->hold || is_leaf ? tensor_retain(x) : tensor_clone(x);
    return p->node[p->n++].seen != NULL;
}

static bool require(Tensor *x, bool required) {
    x->requires_grad = false;
    return !required || ag_requires_grad(x);
}

static bool run_line(Program *p, char *line) {
    char *at = NULL;
    char *word = strtok_r(line, " ", &at);
    p->hold = p->hold || !strcmp(word, "hold");
    if (!strcmp(word, "hold")) return true;
    if (!strcmp(word, "leaf")) return add_node(p, make_leaf(p, at), true);
    if (!strcmp(word, "op")) return add_node(p, call(p, at), false);
    if (!strcmp(word, "retain")) return ag_retain_grad(node(p, at)) != NULL;
    if (!strcmp(word, "let_go")) return ag_let_go(node(p, at)) != NULL;
    if (!strcmp(word, "backward")) return ag_backward(node(p, at));
    Tensor *y = node(p, strtok_r(NULL, " ", &at));
    if (!strcmp(word, "require")) return require(y, atoi(at) != 0);
    return ag_backward_from(y, node(p, at));
}

static void keep(const Program *p, const char *kind, int i, Tensor *x) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s%d", p->number, kind, i);
    if (x) tensor_dict_set(p->out, name, x);
}

/* Ends the program and writes its results to out. */
static void finish(Program *p) {
    for (int i = 0; i < p->n; i++) {
        if (!p->node[i].is_leaf) keep(p, "", i, p->node[i].seen);
        keep(p, "grad.", i, p->node[i].tensor->grad);
    }
    tape_end();
    for (int i = 0; i < p->n; i++) {
        tensor_release(p->node[i].seen);
        if (p->node[i].is_leaf) tensor_release(p->node[i].tensor);
    }
}

static void run_program(const TensorDict *in, const Metadata *program, TensorDict *out) {
    Program p = {.number = program->key, .in = in, .out = out};
    char *at = NULL;
    tape_begin();
    for (char *line = strtok_r(program->value, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
        if (!run_line(&p, line)) break;
    if (tensor_error()) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s", tensor_error());
        tensor_clear_error();
        tensor_dict_set_metadata(out, p.number, sentence);
    }
    finish(&p);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    TensorDict *in = tensor_load_safetensors(argv[1]);
    TensorDict *out = tensor_dict_new();
    for (int i = 0; in && i < in->n_metadata; i++) run_program(in, &in->metadata[i], out);
    if (in && out) tensor_save_safetensors(out, argv[2]);
    if (in) tensor_dict_free(in);
    if (out) tensor_dict_free(out);
    if (tensor_error()) fprintf(stderr, "runner: %s\n", tensor_error());
    else if (tensor_live()) fprintf(stderr, "runner: %d tensors leak\n", (int)tensor_live());
    return tensor_error() || tensor_live() ? 1 : 0;
}
