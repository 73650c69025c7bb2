/* module.h - shared by the files of nn/: checks, small helpers, and what the optimizers share. */
#ifndef TAPEHEAD_NN_MODULE_H
#define TAPEHEAD_NN_MODULE_H

#include "nn.h"

/* Returns the module; NULL and an error if it is NULL or an optimizer. An optimizer is a Module for
 * nn_print and nn_free only. */
Module *nn_check_model(void *module, const char *function);
/* Returns the optimizer; NULL and an error if it is NULL or no optimizer. */
Optimizer *nn_check_optimizer(Optimizer *optimizer, const char *function);
/* False and an error unless value >= 0; NaN fails, too. */
bool nn_check_not_negative(const char *who, const char *what, double value);
/* A forward function begins with nn_forward_begins: false if an error is pending or module is NULL.
 * A forward function ends with nn_forward_done, which returns y, or NULL if an error was set in
 * between. The message of this error then begins with the path of the innermost module:
 * "encoder.layers.0.W_q: linear: ...". */
bool nn_forward_begins(const char *who, const void *module);
Tensor *nn_forward_done(const void *module, Tensor *y);
/* Does shape match a pattern, in which NN_LAZY stands for any size and ndim -1 for any shape? */
bool nn_shape_matches(Shape pattern, Shape shape);
/* Several fields may hold one parameter x. Returns the first such field in state_dict order. */
Tensor **nn_first_holder(Module *module, const Tensor *x);

/* Checks x (..., in), and draws the parameters of a lazy layer when the layer gets its first x.
 * False and an error if x does not fit. */
bool nn_linear_prepare(Linear *linear, const Tensor *x);

/* ---- optimizers ---------------------------------------------------------------------------- */

enum { STEP, STATES = 3 };

/* An optimizer has an Update for each parameter theta. */
typedef struct {
    Tensor **slot;           /* the field of a module that holds theta; *slot is NULL while lazy */
    double lr, weight_decay; /* of its group */
    Tensor *state[STATES]; /* state[STEP]: how many steps theta has taken, I64 (); then the state of
                              the rule, zeros at first. All NULL before the first step */
    Tensor *direction;     /* during a step: the copy of the gradient to which the rule adds */
} Update;

typedef struct {
    const char *name;
    const char *state[STATES]; /* torch's names in an optimizer's state_dict */
    void (*move)(const Optimizer *optimizer, const Update *u, double lr); /* cannot fail */
    /* Does move add to the gradient? Then it gets a copy, u->direction. NULL: never. */
    bool (*adds)(const Optimizer *optimizer, const Update *u);
} Rule;

struct Optimizer {
    Module module; /* it has no parameters */
    const Rule *rule;
    int states;    /* how many tensors of state each parameter has */
    double factor; /* multiplies every group's learning rate */
    Module *model;
    int num_updates;
    Update *updates; /* in state_dict order */
};

/* The Update of a field. If several fields hold one parameter, only the first field has an Update;
 * NULL for the others. */
Update *nn_update_of(const Optimizer *optimizer, Tensor **slot);
double nn_steps_of(const Update *u);
void nn_optimizer_forget(Optimizer *optimizer); /* releases all state */

/* For the constructor of an optimizer: checks the arguments, and lists the parameters.
 * kind->destroy is nn_optimizer_destroy. NULL on error. */
Optimizer *nn_optimizer_new(const ModuleClass *kind, const Rule *rule, void *model, double lr,
                            double weight_decay);
void nn_optimizer_destroy(void *module);
bool nn_check_group(const char *who, double lr, double weight_decay); /* neither is negative */

#endif
