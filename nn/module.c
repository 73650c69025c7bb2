/* module.c - a model is a tree of modules with named parameters.
 *
 * A module has two lists: slots (its fields that hold parameters or kept results) and children. To
 * train or evaluate, print, count, zero, find by name or free a model, the library walks over these
 * lists, slots before children. PyTorch's state_dict has the same order. A slot holds the
 * address of a field, not a tensor, so a lazy parameter has a place in the order before it exists.
 *
 * A module owns its tensors and children, and nn_free frees them. A function that takes over a
 * reference or a child does so also when it fails, so a constructor needs no checks between
 * nn_module_new and nn_module_done. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

Module *nn_check_given(void *module, const char *function) {
    return module ? module : tensor_fail("%s: the module is NULL", function);
}

Module *nn_check_model(void *module, const char *function) {
    Module *m = nn_check_given(module, function);
    if (!m || !m->is_optimizer) return m;
    return tensor_fail("%s: %s is an optimizer: pass the model that it trains, or call an "
                       "nn_optimizer function",
                       function, m->kind->name);
}

bool nn_check_not_negative(const char *who, const char *what, double value) {
    const char *rule = value < 0 ? "it must not be negative" : "it must be a number";
    return value >= 0 || tensor_fail("%s: %s is %g: %s", who, what, value, rule);
}

/* The rest of a path after name: after("a.b", "a") is "b", after("a", "a") is "". NULL if the path
 * does not begin with name. The path "" leads to everything, so its rest is "". */
static const char *after(const char *path, const char *name) {
    size_t n = strlen(name);
    if (!*path) return path;
    if (strncmp(path, name, n) != 0) return NULL;
    if (!path[n]) return path + n;
    return path[n] == '.' && path[n + 1] ? path + n + 1 : NULL;
}

/* The rest of a path from root after the names of the modules down to m. */
static const char *after_module(const Module *root, const Module *m, const char *path) {
    if (m == root || !*path) return path;
    const char *rest = after_module(root, m->parent, path);
    return rest ? after(rest, m->name) : NULL;
}

/* The module after m in the tree of root, parents before children; NULL at the end. */
static Module *next_module(const Module *root, const Module *m) {
    if (m->children) return m->children;
    while (m != root && !m->next) m = m->parent;
    return m == root ? NULL : m->next;
}

/* The slot after p in the tree of root; the first slot if p is NULL; NULL at the end. The slots of
 * a module come before the slots of its children. */
static ModuleSlot *next_slot(const Module *root, const ModuleSlot *p) {
    const Module *m = p ? p->module : root;
    ModuleSlot *next = p ? p->next : m->slots;
    while (!next && m) {
        m = next_module(root, m);
        next = m ? m->slots : NULL;
    }
    return next;
}

/* Is p a parameter, and does the prefix of a path from root lead to it? */
static bool is_at(const Module *root, const ModuleSlot *p, const char *prefix) {
    const char *rest = after_module(root, p->module, prefix);
    const char *left = rest ? after(rest, p->name) : NULL;
    return *p->name && left && !*left;
}

bool nn_next_parameter(void *module, const char *prefix, ModuleSlot **p) {
    const Module *root = nn_check_model(module, "next_parameter");
    if (!prefix || !p) tensor_fail("next_parameter: %s is NULL", prefix ? "p" : "the prefix");
    if (!root || !prefix || !p) return false;
    do *p = next_slot(root, *p);
    while (*p && !is_at(root, *p, prefix));
    return *p != NULL;
}

/* ---- construction -------------------------------------------------------------------------- */

void *nn_module_new(const ModuleClass *kind) {
    if (!kind || kind->size < sizeof(Module))
        tensor_fail("module_new: a class needs the size of a struct that begins with Module");
    if (tensor_error()) return NULL;
    Module *module = calloc(1, kind->size);
    if (!module) return tensor_fail("module_new: out of memory for %s", kind->name);
    module->kind = kind;
    module->training = true;
    return module;
}

void *nn_module_done(void *module) {
    nn_check_given(module, "module_done");
    if (tensor_error()) nn_free(module);
    return tensor_error() ? NULL : module;
}

static ModuleSlot *slot_of(const Module *module, Tensor **field) {
    ModuleSlot *slot = module->slots;
    while (slot && slot->slot != field) slot = slot->next;
    return slot;
}

/* Does a parameter or a child of the module have this name? */
static bool is_taken(const Module *module, const char *name) {
    for (const ModuleSlot *slot = module->slots; slot; slot = slot->next)
        if (!strcmp(slot->name, name)) return true;
    for (const Module *child = module->children; child; child = child->next)
        if (!strcmp(child->name, name)) return true;
    return false;
}

static bool check_name(const Module *module, const char *name, const char *function) {
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length >= NN_NAME_SIZE || strchr(name, '.'))
        tensor_fail("%s: \"%s\" is no name: it needs 1 to %d bytes, no dot among them", function,
                    name ? name : "", NN_NAME_SIZE - 1);
    else if (is_taken(module, name))
        tensor_fail("%s: %s has a \"%s\" already", function, module->kind->name, name);
    return !tensor_error();
}

/* Adds a slot for a field, which becomes NULL. name is "" for a result. A field may be in one slot
 * only, because nn_free releases the tensor of each slot. */
static ModuleSlot *add_slot(Module *m, const char *function, const char *name, Tensor **field) {
    if (!field) tensor_fail("%s: the field is NULL", function);
    else if (slot_of(m, field))
        tensor_fail("%s: %s holds something in this field already", function, m->kind->name);
    if (tensor_error()) return NULL;
    ModuleSlot *slot = malloc(sizeof *slot);
    ModuleSlot **end = &m->slots;
    if (!slot) return tensor_fail("%s: out of memory for a field of %s", function, m->kind->name);
    *slot = (ModuleSlot){.slot = field, .lazy = {.ndim = -1}, .module = m};
    strcpy(slot->name, name);
    while (*end) end = &(*end)->next;
    *end = slot;
    *field = NULL;
    return slot;
}

/* ---- parameters -------------------------------------------------------------------------- */

bool nn_shape_matches(Shape pattern, Shape shape) {
    bool matches = pattern.ndim == shape.ndim || pattern.ndim < 0;
    for (int d = 0; matches && d < pattern.ndim; d++)
        matches = pattern.dim[d] == NN_LAZY || pattern.dim[d] == shape.dim[d];
    return matches;
}

size_t nn_write_path(const Module *root, const Module *m, const char *name, char *path,
                     size_t size) {
    if (!m || m == root) return m ? (size_t)snprintf(path, size, "%s", name) : 0;
    const size_t at = nn_write_path(root, m->parent, m->name, path, size);
    if (at == 0 || at >= size) return at;
    return at + (size_t)snprintf(path + at, size - at, ".%s", name);
}

bool nn_parameter_path(const void *root, const ModuleSlot *parameter, char *path, size_t size) {
    if (!root || !parameter || !path) return tensor_fail("parameter_path: an argument is NULL");
    const size_t length = nn_write_path(root, parameter->module, parameter->name, path, size);
    if (length == 0) tensor_fail("parameter_path: \"%s\" is not in this module", parameter->name);
    else if (length >= size)
        tensor_fail("parameter_path: the path has more than %lld byte%s", (long long)size,
                    size == 1 ? "" : "s");
    return length > 0 && length < size;
}

/* Names a parameter's tensor after its path from the root, or after the last names of the path if
 * the whole path is too long. */
static void name_parameter(const ModuleSlot *parameter) {
    char path[sizeof((*parameter->slot)->name)], longer[sizeof path];
    const Module *m = parameter->module;
    for (const Module *root = m; root; root = root->parent)
        if (nn_write_path(root, m, parameter->name, longer, sizeof longer) < sizeof longer)
            strcpy(path, longer);
    if (*parameter->slot) ag_name(*parameter->slot, path);
}

/* Training writes parameters in place, so two elements must not share their bytes. */
static bool is_expanded(const Tensor *x) {
    for (int d = 0; d < x->shape.ndim; d++)
        if (x->shape.dim[d] > 1 && x->stride[d] == 0) return true;
    return false;
}

bool nn_set_parameter(void *module, Tensor **slot, Tensor *value) {
    Module *m = nn_check_model(module, "set_parameter");
    ModuleSlot *parameter = m ? slot_of(m, slot) : NULL;
    if (m && (!parameter || !*parameter->name))
        tensor_fail("set_parameter: the field is no parameter of %s", m->kind->name);
    if (!value) tensor_fail("set_parameter: the value is NULL");
    else if (is_expanded(value))
        tensor_fail("set_parameter: the value is %s and expanded: several elements share one place",
                    tensor_shape_text(value->shape));
    if (tensor_error() || !ag_requires_grad(value)) {
        tensor_release(value);
        return false;
    }
    value->is_parameter = true;
    value->requires_grad = !parameter->frozen;
    tensor_release(*slot);
    *slot = value;
    name_parameter(parameter);
    return true;
}

/* Undoes add_slot. */
static void remove_slot(Module *m, Tensor **field) {
    ModuleSlot **at = &m->slots;
    while ((*at)->slot != field) at = &(*at)->next;
    ModuleSlot *removed = *at;
    *at = removed->next;
    free(removed);
}

bool nn_add_parameter(void *module, const char *name, Tensor **slot, Tensor *value) {
    const char *who = "add_parameter";
    Module *m = nn_check_model(module, who);
    const bool added = m && check_name(m, name, who) && add_slot(m, who, name, slot);
    if (!added) tensor_release(value);
    if (!added || !value || nn_set_parameter(m, slot, value)) return added;
    remove_slot(m, slot);
    return false;
}

bool nn_add_lazy_parameter(void *module, const char *name, Tensor **slot, Shape shape) {
    if (!nn_add_parameter(module, name, slot, NULL)) return false;
    slot_of(module, slot)->lazy = shape;
    return true;
}

/* ---- children and kept results ------------------------------------------------------------- */

void *nn_add_child(void *module, const char *name, void *child) {
    Module *parent = nn_check_model(module, "add_child");
    Module *c = nn_check_given(child, "add_child");
    if (c) nn_check_model(c, "add_child");
    const Module *root = parent;
    while (root && root->parent) root = root->parent;
    if (root && c && (root == c || c->parent)) /* the child stays with its tree */
        return tensor_fail("add_child: %s is in a tree already", c->kind->name);
    if (tensor_error() || !check_name(parent, name, "add_child")) {
        nn_free(c);
        return NULL;
    }
    Module **end = &parent->children;
    while (*end) end = &(*end)->next;
    *end = c;
    c->parent = parent;
    strcpy(c->name, name);
    for (ModuleSlot *p = NULL; nn_next_parameter(c, "", &p);) name_parameter(p);
    return c;
}

bool nn_add_result(void *module, Tensor **slot) {
    Module *m = nn_check_model(module, "add_result");
    return m && add_slot(m, "add_result", "", slot);
}

bool nn_keep_result(void *module, Tensor **slot, Tensor *value) {
    const Module *m = nn_check_model(module, "keep_result");
    if (!value) tensor_fail("keep_result: the value is NULL");
    if (!m || !value) return false;
    const ModuleSlot *result = slot_of(m, slot);
    if (!result || *result->name)
        return tensor_fail("keep_result: the field is no kept result of %s", m->kind->name);
    if (!tensor_retain(value)) return false; /* first, because *slot may be value */
    tensor_release(*slot);
    *slot = value;
    return true;
}

void nn_free(void *module) {
    Module *m = module;
    if (m && m->parent)
        tensor_fail("free: %s belongs to %s, which frees it", m->name, m->parent->kind->name);
    if (!m || m->parent) return;
    for (Module *child = m->children, *next; child; child = next) {
        next = child->next;
        child->parent = NULL;
        nn_free(child);
    }
    for (const ModuleSlot *slot = m->slots; slot; slot = slot->next) tensor_release(*slot->slot);
    if (m->kind->destroy) m->kind->destroy(m);
    for (ModuleSlot *slot = m->slots, *next; slot; slot = next) {
        next = slot->next;
        free(slot);
    }
    free(m);
}

/* ---- walks over the tree ------------------------------------------------------------------- */

void nn_train(void *module, bool on) {
    Module *const root = nn_check_model(module, "train");
    for (Module *m = root; m; m = next_module(root, m)) m->training = on;
}

bool nn_zero_grad(void *module) {
    Module *m = nn_check_model(module, "zero_grad");
    for (ModuleSlot *p = NULL; nn_next_parameter(m, "", &p);)
        if (*p->slot) ag_zero_grad(*p->slot);
    return m != NULL;
}

Tensor **nn_first_holder(Module *module, const Tensor *x) {
    for (ModuleSlot *p = NULL; nn_next_parameter(module, "", &p);)
        if (*p->slot == x) return p->slot;
    return NULL;
}

int64_t nn_num_parameters(void *module) {
    Module *m = nn_check_model(module, "num_parameters");
    int64_t n = m ? 0 : -1;
    for (ModuleSlot *p = NULL; nn_next_parameter(m, "", &p);)
        if (nn_first_holder(m, *p->slot) == p->slot) n += tensor_numel(*p->slot); /* 0 while lazy */
    return n;
}

Tensor *nn_parameter(void *module, const char *path) {
    const Module *root = nn_check_model(module, "parameter");
    if (!path) tensor_fail("parameter: the path is NULL");
    if (!root || !path) return NULL;
    ModuleSlot *p = NULL;
    if (!nn_next_parameter(module, path, &p))
        return tensor_fail("parameter: %s has no \"%s\"", root->kind->name, path);
    if (!*after_module(root, p->module, path))
        return tensor_fail("parameter: \"%s\" is the path of a module: a parameter's ends with its "
                           "name, as in \"%s\"",
                           path, p->name);
    if (!*p->slot) return tensor_fail("parameter: \"%s\" is lazy, the first input makes it", path);
    return *p->slot;
}
