/* connected.c - which parameters does a loss not reach? They would get no gradient, and a layer
 * that was made and never called looks just like one that learns slowly. */
#include "nn.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const void *root;
    Tensor *loss;
    char names[800];
    size_t length;
    int unnamed; /* those for which there was no room */
} Unreached;

static void add_unreached(ModuleSlot *parameter, void *context) {
    Unreached *u = context;
    Tensor *theta = *parameter->slot;
    char path[512];
    if (parameter->frozen || (theta && (!theta->requires_grad || ag_reaches(u->loss, theta))))
        return;
    if (tensor_error() || !nn_parameter_path(u->root, parameter, path, sizeof path)) return;
    const char *comma = u->length ? ", " : "";
    if (u->unnamed || u->length + strlen(comma) + strlen(path) >= sizeof u->names) u->unnamed++;
    else u->length += (size_t)sprintf(u->names + u->length, "%s%s", comma, path);
}

bool nn_check_connected(Tensor *loss, void *module) {
    Unreached u = {.root = module, .loss = loss};
    if (!loss || !module) tensor_fail("check_connected: the %s is NULL", loss ? "module" : "loss");
    if (tensor_error()) return false;
    nn_visit_parameters(module, "", add_unreached, &u);
    if (u.unnamed)
        tensor_fail("check_connected: the loss does not reach %s and %d more", u.names, u.unnamed);
    if (u.length) tensor_fail("check_connected: the loss does not reach %s", u.names);
    return !tensor_error();
}
