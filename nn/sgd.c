/* sgd.c - stochastic gradient descent, with momentum (Sutskever et al. 2013). optimizer.c calls the
 * rule. */
#include "optimizer.h"

#include <math.h>

typedef struct {
    Optimizer optimizer;
    SGDConfig config;
} SGD;

/* d = grad + weight_decay theta
 * b = d at first, then momentum b + (1 - dampening) d
 * theta -= lr d without momentum, lr (d + momentum b) with Nesterov's, else lr b */
static void move_sgd(const Optimizer *optimizer, const Update *u, double lr) {
    const SGDConfig *c = &((const SGD *)optimizer)->config;
    const double fresh = nn_steps_of(u) == 0 ? 1 : 1 - c->dampening;
    Tensor *theta = *u->slot;
    Tensor *b = u->state[1];
    Tensor *d = u->direction ? u->direction : theta->grad;
    if (u->weight_decay != 0) tensor_add_(d, theta, u->weight_decay);
    if (c->momentum != 0) {
        tensor_mul_(b, c->momentum);
        tensor_add_(b, d, fresh);
    }
    if (c->nesterov) tensor_add_(d, b, c->momentum);
    tensor_add_(theta, c->momentum == 0 || c->nesterov ? d : b, -lr);
}

/* Weight decay and Nesterov's momentum are added to the gradient. */
static bool adds(const Optimizer *optimizer, const Update *u) {
    return u->weight_decay != 0 || ((const SGD *)optimizer)->config.nesterov;
}

static void print_sgd(const void *module, FILE *file) {
    const SGDConfig *c = &((const SGD *)module)->config;
    char text[160];
    tensor_snprintf(text, sizeof text,
                    "lr=%g, momentum=%g, dampening=%g, weight_decay=%g, nesterov=%s", c->lr,
                    c->momentum, c->dampening, c->weight_decay, c->nesterov ? "True" : "False");
    fputs(text, file);
}

static const ModuleClass sgd_class = {"SGD", sizeof(SGD), print_sgd, nn_optimizer_destroy};
static const Rule sgd_rule = {"sgd", {"step", "momentum_buffer"}, move_sgd, adds};

Optimizer *nn_sgd_new(void *module, SGDConfig c) {
    nn_check_not_negative("sgd", "momentum", c.momentum);
    if (isnan(c.dampening)) tensor_fail("sgd: dampening is not a number");
    if (c.nesterov && (c.momentum == 0 || c.dampening != 0))
        tensor_fail("sgd: nesterov needs a momentum and no dampening; they are %g and %g",
                    c.momentum, c.dampening);
    Optimizer *sgd = nn_optimizer_new(&sgd_class, &sgd_rule, module, c.lr, c.weight_decay);
    if (sgd) {
        ((SGD *)sgd)->config = c;
        sgd->states = c.momentum != 0 ? 2 : 1;
    }
    return sgd;
}
