/* train.c - recall's model with the student's functions as its backward, beside the library's own:
 * see train.h. The model is recall/model.c's, in float64; only its ops and its optimizer are
 * replaced. */
#include "train.h"

#include "../../recall/model.h"
#include "planted.h"
#include "process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Small enough for a process for each backward of each op. */
enum { STEPS = 60, EVERY = 6, BATCH = 8, SEED = 1, MOST_SLOTS = 16 };
static const RecallOptions small = {.pairs = 4, .keys = 6, .values = 5, .hidden = 8};

/* ---- the model with planted ops
 * ------------------------------------------------------------------ */

/* (B, N, in) -> (B, N, out) */
static Tensor *linear(const Linear *layer, Tensor *x) {
    if (!x || !layer) return NULL;
    const Shape shape = x->shape;
    Tensor *rows = ag_reshape(x, SHAPE(-1, shape.dim[2]));
    Tensor *y = planted_linear(rows, layer->weight, layer->bias);
    return y ? ag_reshape(y, SHAPE(shape.dim[0], shape.dim[1], y->shape.dim[1])) : NULL;
}

/* The forward of recall_forward, op by op. */
static Tensor *forward(Recall *net, const Sequences *s) {
    Tensor *q = nn_embedding_forward(net->asked, s->asked);
    Tensor *k = nn_embedding_forward(net->keys, s->keys);
    Tensor *v = nn_embedding_forward(net->values, s->values);
    Tensor *scores;
    double scale = 1;
    if (net->dot) {
        scores = planted_product(q, ag_transpose(k, 1, 2));
        scale = 1 / sqrt((double)net->options.hidden);
    } else {
        Tensor *queries = linear(net->additive->W_q, q);
        Tensor *keys = linear(net->additive->W_k, k);
        scores = planted_additive(queries, keys, net->additive->w_v->weight);
    }
    return linear(net->answer, planted_product(planted_weights(scores, scale, s->num_pairs), v));
}

/* The velocity of each parameter, in the order of nn_next_parameter. */
typedef struct {
    double *velocity[MOST_SLOTS];
} Velocities;

static bool take_step(Recall *net, Velocities *v) {
    int i = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p) && i < MOST_SLOTS; i++) {
        Tensor *theta = *p->slot;
        if (!v->velocity[i])
            v->velocity[i] = calloc((size_t)tensor_numel(theta) + 1, sizeof(double));
        if (!v->velocity[i]) tensor_fail("out of memory");
        if (tensor_error() || !planted_sgd(theta, RECALL_RATE, RECALL_MOMENTUM, v->velocity[i]))
            return false;
    }
    return true;
}

/* A step of training, as recall_step makes it. */
static double planted_step(Recall *net, Velocities *v) {
    Sequences s = recall_draw(net, BATCH);
    Tensor *answered = forward(net, &s);
    Tensor *logits = answered ? ag_reshape(answered, SHAPE(-1, net->options.values)) : NULL;
    Tensor *loss = planted_cross_entropy(logits, ag_reshape(s.answers, SHAPE(-1)), IGNORED);
    nn_zero_grad(net);
    if (loss && ag_backward(loss)) take_step(net, v);
    return tensor_item(loss);
}

/* ---- two trainings ------------------------------------------------------------------------------
 */

typedef struct {
    double loss[STEPS];
    double right; /* the part of new questions that are answered rightly */
    int steps;
} Run;

static void evaluate(Recall *net, Run *run) {
    RecallScore score = {0};
    tape_begin_no_grad();
    Sequences s = recall_draw(net, 64);
    recall_score(net, &s, &score);
    tape_end();
    run->right = score.right / score.questions;
}

static Recall *new_net(const char *attention) {
    RecallOptions options = small;
    options.attention = attention;
    tensor_manual_seed(SEED);
    Recall *net = recall_new(&options);
    recall_show_input(net);
    return net;
}

static void train_library(const char *attention, Run *run) {
    Recall *net = new_net(attention);
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = RECALL_RATE, .momentum = RECALL_MOMENTUM});
    for (; run->steps < STEPS && !tensor_error(); run->steps++) {
        tape_begin();
        run->loss[run->steps] = tensor_item(recall_step(net, sgd, BATCH));
        tape_end();
    }
    if (net) evaluate(net, run);
    nn_free(sgd);
    nn_free(net);
}

static void train_yours(const char *attention, Run *run) {
    Velocities v = {{NULL}};
    Recall *net = new_net(attention);
    while (run->steps < STEPS && !tensor_error() && !process_interrupted()) {
        tape_begin();
        const double loss = planted_step(net, &v);
        tape_end();
        if (!tensor_error()) run->loss[run->steps++] = loss;
    }
    if (net && !tensor_error()) evaluate(net, run);
    nn_free(net);
    for (int i = 0; i < MOST_SLOTS; i++) free(v.velocity[i]);
}

/* ---- what is printed ----------------------------------------------------------------------------
 */

static bool print_functions(const int *numbers) {
    bool any = false;
    for (int yours = 1; yours >= 0; yours--) {
        bool first = true;
        for (const int *number = numbers; *number; number++) {
            if (planted_is_yours(*number) != yours) continue;
            if (first)
                printf(yours ? "  yours:"
                             : "  the library's, since yours is not there or does not compile:");
            printf(" %d %s", *number, exercise(*number)->name);
            first = false;
            if (yours) any = true;
        }
        if (!first) printf("\n");
    }
    return any;
}

/* Are the texts of the two numbers equal? */
static bool same_text(double a, double b) {
    char x[32], y[32];
    snprintf(x, sizeof x, "%.6f", a);
    snprintf(y, sizeof y, "%.6f", b);
    return strcmp(x, y) == 0;
}

/* Prints every sixth loss; true if all are equal to the last printed digit. */
static bool print_losses(const Run *library, const Run *yours) {
    bool equal = yours->steps == STEPS;
    printf("  step    library      yours\n");
    for (int i = 0; i < yours->steps; i++) {
        if (!same_text(library->loss[i], yours->loss[i])) equal = false;
        if (i % EVERY == 0 || i == STEPS - 1)
            printf("  %4d   %.6f   %.6f%s\n", i + 1, library->loss[i], yours->loss[i],
                   same_text(library->loss[i], yours->loss[i]) ? "" : "   differs");
    }
    printf("  right answers to new questions: %.0f %% and %.0f %%\n", 100 * library->right,
           100 * yours->right);
    printf(equal ? "  The losses are equal to the last digit.\n\n"
                 : "  The losses differ: mark the functions, `make exercises`.\n\n");
    fflush(stdout);
    return equal;
}

/* Both mechanisms; the functions that they use end with a 0. */
static bool train_mechanism(const char *attention, const char *title, const int *numbers) {
    Run library = {{0}, 0, 0}, yours = {{0}, 0, 0};
    printf("recall, %s attention, %d steps of SGD\n", title, STEPS);
    if (!print_functions(numbers)) {
        printf("  Write one of these functions first.\n\n");
        return false;
    }
    printf("  (a function that does not return is stopped after %d seconds)\n", TRIAL_SECONDS);
    fflush(stdout);
    train_library(attention, &library);
    train_yours(attention, &yours);
    if (tensor_error() || process_interrupted()) return false;
    return print_losses(&library, &yours);
}

int train_beside(const Place *place) {
    static const int dot[] = {3, 5, 7, 9, 13, 0}, additive[] = {3, 5, 7, 9, 10, 13, 0};
    tensor_set_default_dtype(F64);
    planted_begin(place);
    const bool first = train_mechanism("dot", "dot-product", dot);
    const bool second = !tensor_error() && !process_interrupted() &&
                        train_mechanism("additive", "additive", additive);
    planted_end();
    if (process_interrupted()) return 130;
    return first && second ? 0 : 1;
}
