/* internal.h - what the files of nn/ share: small questions, and what an optimizer is, which
 * checkpoint.c saves. */
#ifndef TAPEHEAD_NN_INTERNAL_H
#define TAPEHEAD_NN_INTERNAL_H

#include "nn.h"

/* The module; NULL and an error where it is NULL, or an optimizer: that is a Module for nn_print
 * and nn_free alone. */
Module *nn_check_model(void *module, const char *function);
bool nn_is_optimizer(const Module *module);
/* The same the other way round. */
Optimizer *nn_check_optimizer(Optimizer *optimizer, const char *function);
/* value >= 0, else an error; NaN fails too. */
bool nn_check_not_negative(const char *who, const char *what, double value);
/* The frame of a forward function: it begins where no error is pending and there is a module, and
 * it ends with y, or NULL. An error that was born in between gets the module's path put before its
 * sentence, "encoder.layers.0.W_q: linear: ...", by the innermost module alone. */
bool nn_forward_begins(const char *who, const void *module);
Tensor *nn_forward_done(const void *module, Tensor *y);
/* Does shape match a pattern, in which NN_LAZY stands for any size and ndim -1 for any shape? */
bool nn_shape_matches(Shape pattern, Shape shape);
/* The first field in the tree, in state_dict order, that holds x. */
Tensor **nn_first_holder(Module *module, const Tensor *x);

/* Checks x (..., in), and draws the parameters of a lazy layer when it meets its first x. False and
 * an error if x does not suit. */
bool nn_linear_prepare(Linear *linear, const Tensor *x);

/* ---- optimizers ---------------------------------------------------------------------------- */

enum { STEP, STATES = 3 };

/* Of one parameter. */
typedef struct {
    Tensor **slot;           /* the module's field that holds theta; *slot is NULL while lazy */
    double lr, weight_decay; /* of its group */
    Tensor *state[STATES];   /* what is remembered of it: how many steps it has taken, I64 (), and
                                what the rule needs, zeros at first; NULL before the first step */
    Tensor *direction;       /* during a step of SGD: a copy of the gradient, to be added to */
} Update;

typedef struct {
    const char *name, *state[STATES]; /* as torch names them in an optimizer's state_dict */
    void (*move)(const Optimizer *optimizer, const Update *u, double lr); /* cannot fail */
} Rule;

struct Optimizer {
    Module module; /* without parameters of its own */
    const Rule *rule;
    SGDConfig sgd; /* the configuration of its rule; the other one is not used */
    AdamWConfig adamw;
    int states;    /* how many it remembers of each parameter */
    double factor; /* of every group's learning rate */
    Module *model;
    int num_updates;
    Update *updates; /* in state_dict order */
};

/* That of the parameter in a field. One that several fields share takes its steps as the first, and
 * the others have none: NULL. */
Update *nn_update_of(const Optimizer *optimizer, Tensor **slot);
double nn_steps_of(const Update *u);
void nn_optimizer_forget(Optimizer *optimizer); /* all that it remembers */

#endif
