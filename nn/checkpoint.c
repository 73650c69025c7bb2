/* checkpoint.c - a model in a file: its parameters under their paths, which are PyTorch's names.
 *
 * Loading has two halves, like a step of an optimizer: the first sees whether every name, shape and
 * type fits, and makes what must be made; only then does the second write. */
#include "nn.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 512, PREFIX_SIZE = 128, LISTED = 3 };

/* What does not fit: how many, and the first few of them, each behind a comma. */
typedef struct {
    int n;
    char text[400];
} List;

typedef struct {
    const char *who;
    Module *root;
    const char *prefix;     /* of all names in the dict */
    TensorDict *to;         /* saving */
    const TensorDict *from; /* loading */
    Tensor **plan; /* loading: what its entries are to parameters; NULL for the unexpected */
    List missing, misfits;
} Transfer;

__attribute__((format(printf, 2, 3))) static void list(List *it, const char *format, ...) {
    const size_t length = strlen(it->text), room = sizeof it->text - length;
    if (it->n++ >= LISTED || room < 8) return;
    va_list arguments;
    va_start(arguments, format);
    strcpy(it->text + length, ", ");
    vsnprintf(it->text + length + 2, room - 2, format, arguments);
    va_end(arguments);
}

/* The name of a parameter in the dict. */
static bool find_name(const Transfer *t, const ModuleSlot *parameter, char name[NAME_SIZE]) {
    const size_t length = strlen(strcpy(name, t->prefix));
    return nn_parameter_path(t->root, parameter, name + length, NAME_SIZE - length);
}

static bool ready(const Transfer *t, const void *dict) {
    const char *absent = !t->root ? "module" : !t->prefix ? "prefix" : !dict ? "dict" : NULL;
    if (absent) tensor_fail("%s: the %s is NULL", t->who, absent);
    else if (strlen(t->prefix) >= PREFIX_SIZE)
        tensor_fail("%s: the prefix is longer than %d bytes", t->who, PREFIX_SIZE - 1);
    return !tensor_error();
}

/* ---- saving ------------------------------------------------------------------------------ */

static void save_parameter(ModuleSlot *parameter, void *transfer) {
    const Transfer *t = transfer;
    char name[NAME_SIZE];
    if (!find_name(t, parameter, name)) return;
    if (!*parameter->slot)
        tensor_fail("%s: \"%s\" is lazy, the first input makes it", t->who, name);
    else if (t->to) tensor_dict_set(t->to, name, *parameter->slot);
}

static bool save_to(Transfer t) {
    if (!ready(&t, t.to)) return false;
    Transfer check = t;
    check.to = NULL; /* first see whether all of them are there */
    nn_visit_parameters(t.root, "", save_parameter, &check);
    if (!tensor_error()) nn_visit_parameters(t.root, "", save_parameter, &t);
    return !tensor_error();
}

bool nn_state_dict(void *module, const char *prefix, TensorDict *dict) {
    return save_to((Transfer){.who = "state_dict", .root = module, .prefix = prefix, .to = dict});
}

bool nn_save(void *module, const char *path) {
    TensorDict *dict = tensor_dict_new();
    bool ok = save_to((Transfer){.who = "save", .root = module, .prefix = "", .to = dict}) &&
              tensor_dict_set_metadata(dict, "format", "pt") && tensor_save_safetensors(dict, path);
    tensor_dict_free(dict);
    return ok;
}

/* ---- loading ----------------------------------------------------------------------------- */

static int find(const TensorDict *dict, const char *name) {
    for (int i = 0; i < dict->n; i++)
        if (!strcmp(dict->entry[i].name, name)) return i;
    return -1;
}

static bool admits(Shape wanted, Shape shape) {
    bool fits = wanted.ndim == shape.ndim || wanted.ndim < 0;
    for (int d = 0; fits && d < wanted.ndim; d++)
        fits = wanted.dim[d] == NN_LAZY || wanted.dim[d] == shape.dim[d];
    return fits;
}

static void check_parameter(ModuleSlot *parameter, void *transfer) {
    Transfer *t = transfer;
    char name[NAME_SIZE];
    if (!find_name(t, parameter, name)) return;
    const int i = find(t->from, name);
    if (i < 0) list(&t->missing, "\"%s\"", tensor_name_text(name));
    if (i < 0) return;
    Tensor *x = t->from->entry[i].tensor, *theta = *parameter->slot;
    const Shape shape = theta ? theta->shape : parameter->lazy;
    const DType dtype = theta ? theta->dtype : tensor_default_dtype();
    if (x->dtype != dtype || !admits(shape, x->shape))
        list(&t->misfits, "\"%s\" is %s %s and should be %s %s", tensor_name_text(name),
             tensor_dtype_name(x->dtype), tensor_shape_text(x->shape), tensor_dtype_name(dtype),
             tensor_shape_text(shape.ndim < 0 ? x->shape : shape));
    t->plan[i] = theta ? tensor_retain(x) : tensor_clone(x); /* what is lazy takes it over */
}

static void load_parameter(ModuleSlot *parameter, void *transfer) {
    const Transfer *t = transfer;
    char name[NAME_SIZE];
    if (!find_name(t, parameter, name)) return;
    Tensor *x = t->plan[find(t->from, name)];
    if (*parameter->slot) tensor_copy_from(*parameter->slot, x);
    else nn_set_parameter(parameter->module, parameter->slot, tensor_retain(x));
}

/* Appends "; missing: ..." to a sentence. */
static char *tell(char *end, const char *what, const List *it) {
    if (it->n == 0) return end;
    end += sprintf(end, "; %s%s", what, it->text + 2);
    return it->n > LISTED ? end + sprintf(end, " and %d more", it->n - LISTED) : end;
}

/* Does everything fit? source: what it comes from, for the sentence. */
static bool all_fit(Transfer *t, const char *source) {
    char text[3 * sizeof t->missing.text + 128];
    List unexpected = {0};
    for (int i = 0; i < t->from->n; i++) {
        const char *name = t->from->entry[i].name;
        if (!t->plan[i] && !strncmp(name, t->prefix, strlen(t->prefix)))
            list(&unexpected, "\"%s\"", tensor_name_text(name));
    }
    char *end = tell(text, "missing: ", &t->missing);
    end = tell(end, "unexpected: ", &unexpected);
    if (tell(end, "", &t->misfits) == text) return !tensor_error();
    return tensor_fail("%s: %s does not fit %s: %s", t->who, source, t->root->kind->name,
                       text + 2) != NULL;
}

static bool load_from(Transfer t, const char *source) {
    if (!ready(&t, t.from)) return false;
    const int n = t.from->n;
    t.plan = calloc((size_t)n + 1, sizeof(Tensor *));
    if (!t.plan) return tensor_fail("%s: out of memory for a list of entries", t.who) != NULL;
    nn_visit_parameters(t.root, "", check_parameter, &t);
    if (all_fit(&t, source)) nn_visit_parameters(t.root, "", load_parameter, &t);
    for (int i = 0; i < n; i++) tensor_release(t.plan[i]);
    free(t.plan);
    return !tensor_error();
}

bool nn_load_state_dict(void *module, const char *prefix, const TensorDict *dict) {
    Transfer t = {.who = "load_state_dict", .root = module, .prefix = prefix, .from = dict};
    return load_from(t, "the dict");
}

bool nn_load(void *module, const char *path) {
    if (!module) return tensor_fail("load: the module is NULL") != NULL;
    TensorDict *dict = tensor_load_safetensors(path);
    Transfer t = {.who = "load", .root = module, .prefix = "", .from = dict};
    bool ok = load_from(t, path);
    tensor_dict_free(dict);
    return ok;
}
