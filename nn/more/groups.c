/* groups.c - learning rates and weight decays of groups of parameters, and the factor of all
 * learning rates, which a schedule sets. */
#include "../optimizer.h"

bool nn_optimizer_set_group(Optimizer *optimizer, const char *prefix, double lr, double decay) {
    const char *who = "optimizer_set_group";
    if (!nn_check_optimizer(optimizer, who)) return false;
    if (!prefix) return tensor_fail("%s: the prefix is NULL", who);
    if (!nn_check_group(who, lr, decay)) return false;
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
