/* connected.c - finds the parameters that a loss does not reach, and that get no gradient: those of
 * a layer that is made and never called, for example. Without this check the model only seems to
 * learn slowly. */
#include "../module.h"

#include <string.h>

/* Is the parameter not frozen, and either never made or not reached by the loss? */
static bool is_unreached(Tensor *loss, const ModuleSlot *p) {
    Tensor *theta = *p->slot;
    return !p->frozen && (!theta || (theta->requires_grad && !ag_reaches(loss, theta)));
}

bool nn_check_connected(Tensor *loss, void *module) {
    char names[800] = "", path[512];
    size_t length = 0;
    int unnamed = 0; /* how many do not fit into names */
    if (!loss) tensor_fail("check_connected: the loss is NULL");
    nn_check_model(module, "check_connected");
    if (tensor_error()) return false;
    for (ModuleSlot *p = NULL; nn_next_parameter(module, "", &p);) {
        if (!is_unreached(loss, p) || !nn_parameter_path(module, p, path, sizeof path)) continue;
        const char *comma = length ? ", " : "";
        if (unnamed || length + strlen(comma) + strlen(path) >= sizeof names) unnamed++;
        else length += (size_t)sprintf(names + length, "%s%s", comma, path);
    }
    if (unnamed)
        tensor_fail("check_connected: the loss does not reach %s and %d more", names, unnamed);
    if (length) tensor_fail("check_connected: the loss does not reach %s", names);
    return !tensor_error();
}
