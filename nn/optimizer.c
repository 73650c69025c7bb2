/* optimizer.c - gradient descent, in place, all or nothing.
 *
 * A step has two halves. The first computes, for every parameter that has a gradient, where it
 * will go; this allocates, so it can fail, and then nothing has changed. The second moves the
 * parameters. Between steps an optimizer remembers only its momentum buffers. A parameter
 * without a gradient is skipped: it is not one whose gradient is zero, which momentum and
 * weight decay would still move.
 */
#include "nn.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Tensor **slot;     /* the module's field that holds theta; *slot is NULL while lazy */
    Tensor *momentum;  /* b; NULL before the first step with a gradient */
    Tensor *next;      /* planned: b after this step; NULL when there is no momentum */
    Tensor *direction; /* planned: theta -= lr * direction; NULL when theta is skipped */
} Update;

struct Optimizer {
    Module module; /* without parameters of its own */
    SGDConfig config;
    int num_updates;
    Update *updates; /* in state_dict order */
};

static void print_sgd(const void *module, FILE *file) {
    const SGDConfig *c = &((const Optimizer *)module)->config;
    fprintf(file, "lr=%g, momentum=%g, dampening=%g, weight_decay=%g, nesterov=%s", c->lr,
            c->momentum, c->dampening, c->weight_decay, c->nesterov ? "True" : "False");
}

static void destroy_optimizer(void *module) {
    Optimizer *optimizer = module;
    for (int i = 0; i < optimizer->num_updates; i++) tensor_release(optimizer->updates[i].momentum);
    free(optimizer->updates);
}

static const ModuleClass sgd_class = {"SGD", sizeof(Optimizer), print_sgd, destroy_optimizer};

/* ---- construction ------------------------------------------------------------------------ */

/* Written so that NaN fails too. */
static bool good_config(const SGDConfig *c) {
    if (!(c->lr >= 0)) tensor_fail("sgd: lr is %g: it must not be negative", c->lr);
    else if (!(c->momentum >= 0))
        tensor_fail("sgd: momentum is %g: it must not be negative", c->momentum);
    else if (!(c->weight_decay >= 0))
        tensor_fail("sgd: weight_decay is %g: it must not be negative", c->weight_decay);
    else if (c->dampening != c->dampening) tensor_fail("sgd: dampening is not a number");
    else if (c->nesterov && (c->momentum == 0 || c->dampening != 0))
        tensor_fail("sgd: nesterov needs a momentum and no dampening; they are %g and %g",
                    c->momentum, c->dampening);
    else return true;
    return false;
}

static bool list_parameters(Optimizer *optimizer, void *module) {
    int n = nn_parameter_slots(module, NULL, 0);
    size_t count = n > 0 ? (size_t)n : 1;
    Tensor ***slots = malloc(count * sizeof *slots);
    optimizer->updates = calloc(count, sizeof *optimizer->updates);
    bool ok = slots && optimizer->updates;
    if (!ok) tensor_fail("sgd: out of memory for %d parameters", n);
    if (ok) optimizer->num_updates = nn_parameter_slots(module, slots, n);
    for (int i = 0; i < optimizer->num_updates; i++) optimizer->updates[i].slot = slots[i];
    free(slots);
    return ok;
}

Optimizer *nn_sgd_new(void *module, SGDConfig config) {
    if (!module) return tensor_fail("sgd: the module is NULL");
    if (!good_config(&config)) return NULL;
    Optimizer *optimizer = nn_module_new(&sgd_class);
    if (!optimizer) return NULL;
    optimizer->config = config;
    list_parameters(optimizer, module);
    return nn_module_done(optimizer);
}

/* ---- a step ------------------------------------------------------------------------------ */

/* Parameters that two fields share take one step, as the first of them. */
static bool comes_earlier(const Optimizer *optimizer, int i) {
    const Tensor *theta = *optimizer->updates[i].slot;
    for (int j = 0; j < i; j++)
        if (*optimizer->updates[j].slot == theta) return true;
    return false;
}

/* factor x + alpha y, a new tensor */
static Tensor *combine(const Tensor *x, double factor, const Tensor *y, double alpha) {
    Tensor *sum = tensor_clone(x);
    if (sum && (factor == 1 || tensor_mul_(sum, factor)) && tensor_add_(sum, y, alpha)) return sum;
    tensor_release(sum);
    return NULL;
}

static bool fits(const Tensor *theta) {
    const Tensor *g = theta->grad;
    bool ok = g->dtype == theta->dtype && g->shape.ndim == theta->shape.ndim;
    for (int d = 0; ok && d < theta->shape.ndim; d++) ok = g->shape.dim[d] == theta->shape.dim[d];
    if (!ok)
        tensor_fail("sgd: %s is %s %s and its gradient %s %s: they must be equal", theta->name,
                    tensor_dtype_name(theta->dtype), tensor_shape_text(theta->shape),
                    tensor_dtype_name(g->dtype), tensor_shape_text(g->shape));
    return ok;
}

/* g = grad + weight_decay theta
 * b' = g at first, then mu b + (1 - dampening) g
 * direction = g without momentum, g + mu b' with Nesterov's, else b' */
static bool plan(const SGDConfig *c, Update *u) {
    const Tensor *theta = *u->slot;
    double mu = c->momentum;
    if (!fits(theta)) return false;
    Tensor *g = c->weight_decay == 0 ? tensor_retain(theta->grad)
                                     : combine(theta->grad, 1, theta, c->weight_decay);
    if (g && mu == 0) {
        u->direction = g;
        return true;
    }
    if (g) u->next = u->momentum ? combine(u->momentum, mu, g, 1 - c->dampening) : tensor_clone(g);
    if (u->next) u->direction = c->nesterov ? combine(g, 1, u->next, mu) : tensor_retain(u->next);
    tensor_release(g);
    return u->direction != NULL;
}

static void commit(const SGDConfig *c, Update *u) {
    if (!u->direction) return;
    tensor_add_(*u->slot, u->direction, -c->lr);
    if (!u->next) return;
    tensor_release(u->momentum);
    u->momentum = tensor_retain(u->next);
}

static void forget_plan(Update *u) {
    tensor_release(u->next);
    tensor_release(u->direction);
    u->next = u->direction = NULL;
}

bool nn_optimizer_step(Optimizer *optimizer) {
    if (!optimizer) tensor_fail("optimizer_step: the optimizer is NULL");
    if (tensor_error()) return false;
    bool ok = true;
    for (int i = 0; ok && i < optimizer->num_updates; i++) {
        const Tensor *theta = *optimizer->updates[i].slot;
        if (theta && theta->grad && !comes_earlier(optimizer, i))
            ok = plan(&optimizer->config, &optimizer->updates[i]);
    }
    for (int i = 0; ok && i < optimizer->num_updates; i++)
        commit(&optimizer->config, &optimizer->updates[i]);
    for (int i = 0; i < optimizer->num_updates; i++) forget_plan(&optimizer->updates[i]);
    return ok && !tensor_error();
}

void nn_optimizer_zero_grad(Optimizer *optimizer) {
    if (!optimizer) tensor_fail("optimizer_zero_grad: the optimizer is NULL");
    for (int i = 0; optimizer && i < optimizer->num_updates; i++) {
        Tensor *theta = *optimizer->updates[i].slot;
        if (!theta) continue;
        tensor_release(theta->grad);
        theta->grad = NULL;
    }
}
