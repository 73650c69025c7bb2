/* optimizer.c - gradient descent, in place, all or nothing.
 *
 * A step has two halves. The first half checks every parameter that has a gradient and allocates
 * its state. The first half can fail, and then nothing has changed. The second half moves the
 * parameters, one after another, and cannot fail. A rule is the second half for one parameter: SGD
 * here, AdamW in more/. A parameter without a gradient (NULL) takes no step. A gradient of zeros is
 * different: momentum and weight decay still move such a parameter.
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

/* ---- construction ------------------------------------------------------------------------ */

static void print_sgd(const void *module, FILE *file) {
    const SGDConfig *c = &((const Optimizer *)module)->sgd;
    char text[160];
    tensor_snprintf(text, sizeof text,
                    "lr=%g, momentum=%g, dampening=%g, weight_decay=%g, nesterov=%s", c->lr,
                    c->momentum, c->dampening, c->weight_decay, c->nesterov ? "True" : "False");
    fputs(text, file);
}

void nn_optimizer_forget(Optimizer *optimizer) {
    for (int i = 0; i < optimizer->num_updates; i++)
        for (int k = 0; k < STATES; k++) {
            tensor_release(optimizer->updates[i].state[k]);
            optimizer->updates[i].state[k] = NULL;
        }
}

void nn_optimizer_destroy(void *module) {
    nn_optimizer_forget(module);
    free(((Optimizer *)module)->updates);
}

static const ModuleClass sgd_class = {"SGD", sizeof(Optimizer), print_sgd, nn_optimizer_destroy};
static const Rule sgd_rule = {"sgd", {"step", "momentum_buffer"}, move_sgd};

Optimizer *nn_check_optimizer(Optimizer *optimizer, const char *function) {
    if (!optimizer) return tensor_fail("%s: the optimizer is NULL", function);
    if (optimizer->module.is_optimizer) return optimizer;
    return tensor_fail("%s: %s is no optimizer", function, optimizer->module.kind->name);
}

bool nn_check_not_negative(const char *who, const char *what, double value) {
    return value >= 0 || tensor_fail("%s: %s is %g: it must not be negative", who, what, value);
}

bool nn_check_group(const char *who, double lr, double weight_decay) {
    return nn_check_not_negative(who, "lr", lr) &&
           nn_check_not_negative(who, "weight_decay", weight_decay);
}

static size_t count_parameters(void *model) {
    size_t n = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(model, "", &p);) n++;
    return n;
}

Optimizer *nn_optimizer_new(const ModuleClass *kind, const Rule *rule, void *model, double lr,
                            double weight_decay) {
    nn_check_model(model, rule->name);
    if (lr == 0)
        tensor_fail("%s: lr is 0: set a learning rate, as in .lr = 0.1 (a group may have 0)",
                    rule->name);
    Optimizer *optimizer =
        nn_check_group(rule->name, lr, weight_decay) ? nn_module_new(kind) : NULL;
    if (!optimizer) return NULL;
    optimizer->module.is_optimizer = true;
    optimizer->rule = rule;
    optimizer->model = model;
    optimizer->factor = 1;
    optimizer->updates = calloc(count_parameters(model) + 1, sizeof(Update));
    if (!optimizer->updates) tensor_fail("%s: out of memory for a list of parameters", rule->name);
    for (ModuleSlot *p = NULL; optimizer->updates && nn_next_parameter(model, "", &p);)
        optimizer->updates[optimizer->num_updates++] =
            (Update){.slot = p->slot, .lr = lr, .weight_decay = weight_decay};
    return nn_module_done(optimizer);
}

Optimizer *nn_sgd_new(void *module, SGDConfig c) {
    nn_check_not_negative("sgd", "momentum", c.momentum);
    if (isnan(c.dampening)) tensor_fail("sgd: dampening is not a number");
    if (c.nesterov && (c.momentum == 0 || c.dampening != 0))
        tensor_fail("sgd: nesterov needs a momentum and no dampening; they are %g and %g",
                    c.momentum, c.dampening);
    Optimizer *sgd = nn_optimizer_new(&sgd_class, &sgd_rule, module, c.lr, c.weight_decay);
    if (sgd) {
        sgd->sgd = c;
        sgd->states = c.momentum != 0 ? 2 : 1;
    }
    return sgd;
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
