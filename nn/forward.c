/* forward.c - how a forward function of a module begins and ends, so that an error says where in
 * the model it was made. */
#include "module.h"

static TENSOR_THREAD_LOCAL bool located; /* does the pending error have the path of a module? */

bool nn_forward_begins(const char *who, const void *module) {
    if (!tensor_error()) located = false;
    if (!module) tensor_fail("%s: the module is NULL", who);
    return !tensor_error();
}

Tensor *nn_forward_done(const void *module, Tensor *y) {
    const Module *m = module;
    const Module *root = m;
    const char *message = tensor_error();
    char path[256];
    if (!message || !m->parent || located) return y;
    while (root->parent) root = root->parent;
    if (nn_write_path(root, m->parent, m->name, path, sizeof path) >= sizeof path) return y;
    tensor_clear_error();
    tensor_fail("%s: %s", path, message);
    located = true;
    return NULL;
}
