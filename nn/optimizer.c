/* optimizer.c - gradient descent, in place, all or nothing.
 *
 * A step has two halves. The first half checks every parameter that has a gradient and allocates
 * its state. The first half can fail, and then nothing has changed. The second half moves the
 * parameters, one after another, and cannot fail. A rule (SGD, AdamW) is the second half for one
 * parameter. A parameter without a gradient (NULL) takes no step. A gradient of zeros is different:
 * momentum and weight decay still move such a parameter.
 */
#include "module.h"

#include <math.h>
#include <stdlib.h>

/* ---- the rules ----------------------------------------------------------------------------- */

/* d = grad + weight_decay theta
 * b = d at first, then momentum b + (1 - dampening) d
 * theta -= lr d without momentum, lr (d + momentum b) with Nesterov's, else lr b */
static void move_sgd(const Optimizer *optimizer, const Update *u, double lr) {
    const SGDConfig *c = &optimizer->sgd;
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

/* m = beta1 m + (1 - beta1) g
 * v = beta2 v + (1 - beta2) g^2
 * theta -= lr weight_decay theta
 * theta -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 *
 * SGD needs only tensor_mul_ and tensor_add_, which write in place. AdamW also needs a square, a
 * square root and a quotient. Ops compute these, but ops allocate their results, so a step could
 * fail when half of the parameters have moved. Therefore AdamW is one kernel, tensor_adamw_. A
 * second reason: PyTorch fuses (1 - beta2) g * g + beta2 v, for which there is no op. Speed is no
 * reason: with ops, a step of gpt (tests/bench/steps) took only 1 to 2 % more time, and 60 MB
 * instead of 57. */
static void move_adamw(const Optimizer *optimizer, const Update *u, double lr) {
    const AdamWConfig *c = &optimizer->adamw;
    const double t = nn_steps_of(u) + 1;
    const double keep = 1 - lr * u->weight_decay, rate = lr / (1 - pow(c->beta1, t));
    const double unbias = sqrt(1 - pow(c->beta2, t));
    const AdamWStep step = {c->beta1, c->beta2, c->eps, keep, rate, unbias};
    tensor_adamw_(*u->slot, u->state[1], u->state[2], (*u->slot)->grad, step);
}

/* ---- construction ------------------------------------------------------------------------ */

static void print_sgd(const void *module, FILE *file) {
    const SGDConfig *c = &((const Optimizer *)module)->sgd;
    char text[160];
    tensor_snprintf(text, sizeof text,
                    "lr=%g, momentum=%g, dampening=%g, weight_decay=%g, nesterov=%s", c->lr,
                    c->momentum, c->dampening, c->weight_decay, c->nesterov ? "True" : "False");
    fputs(text, file);
}

static void print_adamw(const void *module, FILE *file) {
    const AdamWConfig *c = &((const Optimizer *)module)->adamw;
    char text[160];
    tensor_snprintf(text, sizeof text, "lr=%g, beta1=%g, beta2=%g, eps=%g, weight_decay=%g", c->lr,
                    c->beta1, c->beta2, c->eps, c->weight_decay);
    fputs(text, file);
}

void nn_optimizer_forget(Optimizer *optimizer) {
    for (int i = 0; i < optimizer->num_updates; i++)
        for (int k = 0; k < STATES; k++) {
            tensor_release(optimizer->updates[i].state[k]);
            optimizer->updates[i].state[k] = NULL;
        }
}

static void destroy_optimizer(void *module) {
    nn_optimizer_forget(module);
    free(((Optimizer *)module)->updates);
}

static const ModuleClass sgd_class = {"SGD", sizeof(Optimizer), print_sgd, destroy_optimizer};
static const ModuleClass adamw_class = {"AdamW", sizeof(Optimizer), print_adamw, destroy_optimizer};
static const Rule sgd_rule = {"sgd", {"step", "momentum_buffer"}, move_sgd};
static const Rule adamw_rule = {"adamw", {"step", "exp_avg", "exp_avg_sq"}, move_adamw};

bool nn_is_optimizer(const Module *module) {
    return module->kind == &sgd_class || module->kind == &adamw_class;
}

Optimizer *nn_check_optimizer(Optimizer *optimizer, const char *function) {
    if (!optimizer) return tensor_fail("%s: the optimizer is NULL", function);
    if (nn_is_optimizer(&optimizer->module)) return optimizer;
    return tensor_fail("%s: %s is no optimizer", function, optimizer->module.kind->name);
}

bool nn_check_not_negative(const char *who, const char *what, double value) {
    return value >= 0 || tensor_fail("%s: %s is %g: it must not be negative", who, what, value);
}

static bool check_group(const char *who, double lr, double weight_decay) {
    return nn_check_not_negative(who, "lr", lr) &&
           nn_check_not_negative(who, "weight_decay", weight_decay);
}

static void check_beta(const char *name, double beta) {
    if (!(beta >= 0 && beta < 1)) tensor_fail("adamw: %s is %g: it must be in [0, 1)", name, beta);
}

static size_t count_parameters(void *model) {
    size_t n = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(model, "", &p);) n++;
    return n;
}

static Optimizer *optimizer_new(const ModuleClass *kind, const Rule *rule, void *model, double lr,
                                double weight_decay) {
    nn_check_model(model, rule->name);
    if (lr == 0)
        tensor_fail("%s: lr is 0: set a learning rate, as in .lr = 0.1 (a group may have 0)",
                    rule->name);
    Optimizer *optimizer = check_group(rule->name, lr, weight_decay) ? nn_module_new(kind) : NULL;
    if (!optimizer) return NULL;
    optimizer->rule = rule;
    optimizer->model = model;
    optimizer->factor = 1;
    optimizer->updates = calloc(count_parameters(model) + 1, sizeof(Update));
    if (!optimizer->updates) tensor_fail("%s: out of memory for a list of parameters", rule->name);
    for (ModuleSlot *p = NULL; optimizer->updates && nn_next_parameter(model, "", &p);)
        optimizer->updates[optimizer->num_updates++].slot = p->slot;
    nn_optimizer_set_group(optimizer, "", lr, weight_decay);
    return nn_module_done(optimizer);
}

Optimizer *nn_sgd_new(void *module, SGDConfig c) {
    nn_check_not_negative("sgd", "momentum", c.momentum);
    if (isnan(c.dampening)) tensor_fail("sgd: dampening is not a number");
    if (c.nesterov && (c.momentum == 0 || c.dampening != 0))
        tensor_fail("sgd: nesterov needs a momentum and no dampening; they are %g and %g",
                    c.momentum, c.dampening);
    Optimizer *sgd = optimizer_new(&sgd_class, &sgd_rule, module, c.lr, c.weight_decay);
    if (sgd) {
        sgd->sgd = c;
        sgd->states = c.momentum != 0 ? 2 : 1;
    }
    return sgd;
}

Optimizer *nn_adamw_new(void *module, AdamWConfig c) {
    if (c.beta1 == 0) c.beta1 = 0.9;
    if (c.beta2 == 0) c.beta2 = 0.999;
    if (c.eps == 0) c.eps = 1e-8;
    check_beta("beta1", c.beta1);
    check_beta("beta2", c.beta2);
    nn_check_not_negative("adamw", "eps", c.eps);
    Optimizer *adamw = optimizer_new(&adamw_class, &adamw_rule, module, c.lr, c.weight_decay);
    if (adamw) {
        adamw->adamw = c;
        adamw->states = 3;
    }
    return adamw;
}

/* ---- groups, and the schedule of their learning rates --------------------------------------- */

bool nn_optimizer_set_group(Optimizer *optimizer, const char *prefix, double lr, double decay) {
    const char *who = "optimizer_set_group";
    if (!nn_check_optimizer(optimizer, who)) return false;
    if (!prefix) return tensor_fail("%s: the prefix is NULL", who);
    if (!check_group(who, lr, decay)) return false;
    int joined = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(optimizer->model, prefix, &p);)
        for (int i = 0; i < optimizer->num_updates; i++) {
            Update *u = &optimizer->updates[i];
            if (u->slot != p->slot) continue;
            u->lr = lr;
            u->weight_decay = decay;
            joined++;
        }
    if (joined > 0 || !*prefix) return true;
    return tensor_fail("%s: the optimizer has no parameter at \"%s\"", who, prefix);
}

bool nn_optimizer_scale_lr(Optimizer *optimizer, double factor) {
    if (!nn_check_optimizer(optimizer, "optimizer_scale_lr") ||
        !nn_check_not_negative("optimizer_scale_lr", "factor", factor))
        return false;
    optimizer->factor = factor;
    return true;
}

/* ---- a step ------------------------------------------------------------------------------ */

double nn_steps_of(const Update *u) { return u->state[STEP] ? tensor_item(u->state[STEP]) : 0; }

Update *nn_update_of(const Optimizer *optimizer, Tensor **slot) {
    for (Update *u = optimizer->updates; u < optimizer->updates + optimizer->num_updates; u++)
        if (u->slot == slot || (*slot && *u->slot == *slot)) return u->slot == slot ? u : NULL;
    return NULL;
}

static bool is_due(const Optimizer *optimizer, const Update *u) {
    return *u->slot && (*u->slot)->grad && nn_update_of(optimizer, u->slot) == u;
}

/* The module may have set a parameter of another shape since the last step. */
static void check_equal(const Rule *rule, const Tensor *theta, const char *what, const Tensor *x) {
    if (x->dtype != theta->dtype || !nn_shape_matches(theta->shape, x->shape))
        tensor_fail("%s: %s is %s %s and its %s %s %s: they must be equal", rule->name, theta->name,
                    tensor_dtype_name(theta->dtype), tensor_shape_text(theta->shape), what,
                    tensor_dtype_name(x->dtype), tensor_shape_text(x->shape));
}

/* The first half of a step: checks a parameter and its gradient, and allocates its state. */
static void prepare(const Optimizer *optimizer, Update *u) {
    const Tensor *theta = *u->slot;
    check_equal(optimizer->rule, theta, "gradient", theta->grad);
    if (theta->let_go || theta->grad->let_go)
        tensor_fail("%s: %s of %s was let go, and its elements with it", optimizer->rule->name,
                    theta->let_go ? "the value" : "the gradient", theta->name);
    /* SGD adds weight decay and Nesterov's momentum to a copy of the gradient. */
    const bool adds = u->weight_decay != 0 || optimizer->sgd.nesterov;
    if (optimizer->rule == &sgd_rule && adds) u->direction = tensor_clone(theta->grad);
    if (!u->state[STEP]) u->state[STEP] = tensor_from_int64s(SCALAR, &(int64_t){0});
    for (int k = 1; k < optimizer->states; k++) {
        if (!u->state[k]) u->state[k] = tensor_zeros_like(theta);
        if (u->state[k])
            check_equal(optimizer->rule, theta, optimizer->rule->state[k], u->state[k]);
    }
}

bool nn_optimizer_step(Optimizer *optimizer) {
    if (!nn_check_optimizer(optimizer, "optimizer_step") || tensor_error()) return false;
    Update *const end = optimizer->updates + optimizer->num_updates;
    for (Update *u = optimizer->updates; u < end && !tensor_error(); u++)
        if (is_due(optimizer, u)) prepare(optimizer, u);
    for (Update *u = optimizer->updates; u < end && !tensor_error(); u++) {
        if (!is_due(optimizer, u)) continue;
        optimizer->rule->move(optimizer, u, u->lr * optimizer->factor);
        tensor_fill(u->state[STEP], nn_steps_of(u) + 1);
    }
    for (Update *u = optimizer->updates; u < end; u++) {
        tensor_release(u->direction);
        u->direction = NULL;
    }
    return !tensor_error();
}

void nn_optimizer_zero_grad(Optimizer *optimizer) {
    if (nn_check_optimizer(optimizer, "optimizer_zero_grad")) nn_zero_grad(optimizer->model);
}
