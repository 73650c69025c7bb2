/* freeze.c - parameters that training does not change. */
#include "../module.h"

bool nn_freeze(void *module, const char *prefix, bool frozen) {
    Module *m = nn_check_model(module, "freeze");
    if (!prefix) tensor_fail("freeze: the prefix is NULL");
    if (!m || !prefix) return false;
    int n = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(m, prefix, &p); n++) {
        p->frozen = frozen;
        if (*p->slot) (*p->slot)->requires_grad = !frozen;
        if (frozen && *p->slot) ag_zero_grad(*p->slot);
    }
    if (n > 0 || !*prefix) return true;
    return tensor_fail("freeze: %s has no parameter at \"%s\"", m->kind->name, prefix);
}
