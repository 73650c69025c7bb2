/* optimizer.c - gradient descent, in place, all or nothing.
 *
 * A step has two halves. The first checks every parameter that has a gradient and allocates its
 * state; it can fail, and then nothing has changed. The second moves the parameters, one after
 * another, and cannot fail. A rule is the second half for one parameter: SGD in sgd.c, AdamW in
 * more/. A parameter without a gradient (NULL) takes no step. A gradient of zeros is different:
 * momentum and weight decay still move such a parameter. */
#include "optimizer.h"

#include <stdlib.h>

/* ---- construction ------------------------------------------------------------------------ */

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

Optimizer *nn_check_optimizer(Optimizer *optimizer, const char *function) {
    if (!optimizer) return tensor_fail("%s: the optimizer is NULL", function);
    if (optimizer->module.is_optimizer) return optimizer;
    return tensor_fail("%s: %s is no optimizer", function, optimizer->module.kind->name);
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
    const Rule *rule = optimizer->rule;
    const Tensor *theta = *u->slot;
    check_equal(rule, theta, "gradient", theta->grad);
    if (theta->let_go || theta->grad->let_go)
        tensor_fail("%s: %s of %s was let go, and its elements with it", rule->name,
                    theta->let_go ? "the value" : "the gradient", theta->name);
    if (rule->adds && rule->adds(optimizer, u)) u->direction = tensor_clone(theta->grad);
    if (!u->state[STEP]) u->state[STEP] = tensor_from_int64s(SCALAR, &(int64_t){0});
    for (int k = 1; k < optimizer->states; k++) {
        if (!u->state[k]) u->state[k] = tensor_zeros_like(theta);
        if (u->state[k]) check_equal(rule, theta, rule->state[k], u->state[k]);
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
