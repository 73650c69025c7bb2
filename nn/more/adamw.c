/* adamw.c - AdamW. Loshchilov & Hutter 2019, algorithm 2. optimizer.c calls the rule. */
#include "../optimizer.h"

#include <math.h>

typedef struct {
    Optimizer optimizer;
    AdamWConfig config;
} AdamW;

/* m = beta1 m + (1 - beta1) g
 * v = beta2 v + (1 - beta2) g^2
 * theta -= lr weight_decay theta
 * theta -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *
 * SGD needs only tensor_mul_ and tensor_add_, which write in place. AdamW also needs a square, a
 * square root and a quotient. Ops compute these, but they allocate their results, so a step could
 * fail when half of the parameters have moved. AdamW is therefore one kernel, tensor_adamw_. It
 * also fuses (1 - beta2) g * g + beta2 v, as PyTorch does; there is no op for that. */
static void move_adamw(const Optimizer *optimizer, const Update *u, double lr) {
    const AdamWConfig *c = &((const AdamW *)optimizer)->config;
    const double t = nn_steps_of(u) + 1;
    const double keep = 1 - lr * u->weight_decay, rate = lr / (1 - pow(c->beta1, t));
    const double unbias = sqrt(1 - pow(c->beta2, t));
    const AdamWStep step = {c->beta1, c->beta2, c->eps, keep, rate, unbias};
    tensor_adamw_(*u->slot, u->state[1], u->state[2], (*u->slot)->grad, step);
}

static void print_adamw(const void *module, FILE *file) {
    const AdamWConfig *c = &((const AdamW *)module)->config;
    char text[160];
    tensor_snprintf(text, sizeof text, "lr=%g, beta1=%g, beta2=%g, eps=%g, weight_decay=%g", c->lr,
                    c->beta1, c->beta2, c->eps, c->weight_decay);
    fputs(text, file);
}

static const ModuleClass adamw_class = {"AdamW", sizeof(AdamW), print_adamw, nn_optimizer_destroy};
static const Rule adamw_rule = {"adamw", {"step", "exp_avg", "exp_avg_sq"}, .move = move_adamw};

static void check_beta(const char *name, double beta) {
    if (!(beta >= 0 && beta < 1)) tensor_fail("adamw: %s is %g: it must be in [0, 1)", name, beta);
}

Optimizer *nn_adamw_new(void *module, AdamWConfig c) {
    if (c.beta1 == 0) c.beta1 = 0.9;
    if (c.beta2 == 0) c.beta2 = 0.999;
    if (c.eps == 0) c.eps = 1e-8;
    check_beta("beta1", c.beta1);
    check_beta("beta2", c.beta2);
    nn_check_not_negative("adamw", "eps", c.eps);
    Optimizer *adamw = nn_optimizer_new(&adamw_class, &adamw_rule, module, c.lr, c.weight_decay);
    if (adamw) {
        ((AdamW *)adamw)->config = c;
        adamw->states = 3;
    }
    return adamw;
}
