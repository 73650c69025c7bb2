/* optimizer.h - what the optimizers share: a rule for one parameter, and its state. */
#ifndef TAPEHEAD_NN_OPTIMIZER_H
#define TAPEHEAD_NN_OPTIMIZER_H

#include "module.h"

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

/* Returns the optimizer; NULL and an error if it is NULL or no optimizer. */
Optimizer *nn_check_optimizer(Optimizer *optimizer, const char *function);
/* The Update of a field. If several fields hold one parameter, only the first has one: NULL for the
 * others. */
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
