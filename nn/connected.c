/* connected.c - which parameters does a loss not reach? They would get no gradient, and a layer
 * that was made and never called looks just like one that learns slowly. */
#include "internal.h"

#include <string.h>

/* Should the loss reach it, and does it not? What was never made is not reached. */
static bool is_unreached(Tensor *loss, const ModuleSlot *p) {
    Tensor *theta = *p->slot;
    return !p->frozen && (!theta || (theta->requires_grad && !ag_reaches(loss, theta)));
}

bool nn_check_connected(Tensor *loss, void *module) {
    char names[800] = "", path[512];
    size_t length = 0;
    int unnamed = 0; /* those for which there was no room */
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
