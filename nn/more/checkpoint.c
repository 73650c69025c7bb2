/* checkpoint.c - a model in a file. Parameters are saved under their paths, which are PyTorch's
 * names; the state of an optimizer under the same paths and PyTorch's names for it.
 *
 * Loading has two halves, like a step of an optimizer. The first checks every name, shape and type,
 * lists the names that do not match, and makes all copies; it can fail, and then nothing has
 * changed. The second writes. A strict load is one that fails if a name is listed. */
#include "../optimizer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 512, PREFIX_SIZE = 128, LISTED = 3 };

/* A list for an error: how many items there are, and a text with the first LISTED, each after a
 * comma. */
typedef struct {
    int n;
    char text[400];
} List;

/* A tensor that is saved or loaded. */
typedef struct {
    char name[NAME_SIZE + NN_NAME_SIZE]; /* in the dict */
    Tensor **slot;  /* the field that holds the tensor; *slot is NULL while lazy */
    Module *module; /* the module of the parameter; NULL for an optimizer's state */
    DType dtype;    /* of the tensor; while lazy, of the tensor that will be made */
    Shape shape;    /* the same; a pattern as in nn_shape_matches while lazy */
} Entry;

typedef struct Transfer {
    const char *who;
    Module *root;
    Optimizer *optimizer; /* its state is saved or loaded; NULL: the parameters of root are saved
                           * or loaded */
    const char *prefix;   /* of all names in the dict */
    void (*act)(struct Transfer *t, const Entry *e); /* called for each entry */
    TensorDict *to;                                  /* for saving */
    const TensorDict *from;                          /* for loading */
    bool strict;                                     /* the same */
    Tensor **plan; /* for loading: the tensor to load for each entry of `from`; NULL: unexpected */
    IncompatibleKeys *keys;
    List misfits;
} Transfer;

static void list(List *it, const char *item) {
    const size_t length = strlen(it->text), left = sizeof it->text - length;
    if (it->n++ >= LISTED || left < 8) return;
    tensor_snprintf(it->text + length, left, ", %s", item);
}

static int find(const TensorDict *dict, const char *name) {
    for (int i = 0; i < dict->n; i++)
        if (!strcmp(dict->entry[i].name, name)) return i;
    return -1;
}

static bool check_arguments(const Transfer *t, const void *dict) {
    nn_check_model(t->root, t->who);
    if (!t->prefix || !dict)
        tensor_fail("%s: the %s is NULL", t->who, t->prefix ? "dict" : "prefix");
    else if (strlen(t->prefix) >= PREFIX_SIZE)
        tensor_fail("%s: the prefix is longer than %d bytes", t->who, PREFIX_SIZE - 1);
    return !tensor_error();
}

/* Is the end of the name, after a whole word? "opt.w.step" ends with "w.step", "draw.step" does
 * not. */
static bool ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end) &&
           (n == m || !isalnum((unsigned char)name[n - m - 1]));
}

/* No entry has this name. Adds to t->misfits if the dict has such an entry under another prefix,
 * and nothing under t's: a prefix that was mistyped must not restart the optimizer. */
static void check_prefix(Transfer *t, const char *name) {
    const size_t length = strlen(t->prefix);
    const char *there = NULL;
    for (int i = t->from->n - 1; i >= 0; i--) {
        const char *other = t->from->entry[i].name;
        if (!strncmp(other, t->prefix, length)) return;
        if (ends_with(other, name + length)) there = other;
    }
    char item[sizeof t->misfits.text];
    tensor_snprintf(item, sizeof item, "\"%s\" is missing and \"%s\" is there",
                    tensor_name_text(name), tensor_name_text(there ? there : ""));
    if (there) list(&t->misfits, item);
}

/* Visits the state of a parameter e; it has none before its first step. */
static void visit_state(Transfer *t, Entry e) {
    Update *u = nn_update_of(t->optimizer, e.slot);
    char *end = e.name + strlen(e.name);
    const Entry parameter = e;
    e.module = NULL;
    if (!u) return;
    for (int k = 0; k < t->optimizer->states; k++) {
        sprintf(end, ".%s", t->optimizer->rule->state[k]);
        const bool there = t->from ? find(t->from, e.name) >= 0 : nn_steps_of(u) > 0;
        if (k == STEP && !there && t->from) check_prefix(t, e.name);
        if (k == STEP && !there) return;
        e.slot = &u->state[k];
        e.dtype = k == STEP ? I64 : parameter.dtype;
        e.shape = k == STEP ? SCALAR : parameter.shape;
        t->act(t, &e);
    }
}

static void visit_parameter(Transfer *t, const ModuleSlot *parameter) {
    const Tensor *theta = *parameter->slot;
    Entry e = {.slot = parameter->slot, .module = parameter->module};
    const size_t length = strlen(strcpy(e.name, t->prefix));
    if (!nn_parameter_path(t->root, parameter, e.name + length, NAME_SIZE - length)) return;
    e.dtype = theta ? theta->dtype : tensor_default_dtype();
    e.shape = theta ? theta->shape : parameter->lazy;
    if (t->optimizer) visit_state(t, e);
    else t->act(t, &e);
}

static void visit(Transfer *t, void (*act)(Transfer *t, const Entry *e)) {
    t->act = act;
    for (ModuleSlot *p = NULL; nn_next_parameter(t->root, "", &p);) visit_parameter(t, p);
}

/* ---- saving ------------------------------------------------------------------------------ */

static void check_made(Transfer *t, const Entry *e) {
    const Tensor *x = *e->slot;
    if (!x) tensor_fail("%s: \"%s\" is lazy, the first input makes it", t->who, e->name);
    else if (x->let_go)
        tensor_fail("%s: \"%s\" was let go, and its elements with it", t->who, e->name);
}

/* Parameters are shared with the dict. State is copied, because the next step writes over it. */
static void save_entry(Transfer *t, const Entry *e) {
    Tensor *x = e->module ? tensor_retain(*e->slot) : tensor_clone(*e->slot);
    tensor_dict_set(t->to, e->name, x);
    tensor_release(x);
}

static bool save_to(Transfer t) {
    if (!check_arguments(&t, t.to)) return false;
    visit(&t, check_made); /* before the first entry is set */
    if (!tensor_error()) visit(&t, save_entry);
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

/* Adds to t->misfits if x cannot be loaded into e. theta: the parameter, NULL if lazy or state. */
static void check_value(Transfer *t, const Entry *e, const Tensor *x, const Tensor *theta) {
    const char *name = tensor_name_text(e->name);
    char item[sizeof t->misfits.text] = "";
    if (x->dtype != e->dtype || !nn_shape_matches(e->shape, x->shape))
        tensor_snprintf(item, sizeof item, "\"%s\" is %s %s and should be %s %s", name,
                        tensor_dtype_name(x->dtype), tensor_shape_text(x->shape),
                        tensor_dtype_name(e->dtype),
                        tensor_shape_text(e->shape.ndim < 0 ? x->shape : e->shape));
    else if (x->let_go) tensor_snprintf(item, sizeof item, "the dict's \"%s\" was let go", name);
    else if (theta && theta->let_go)
        tensor_snprintf(item, sizeof item, "\"%s\" itself was let go", name);
    else if (e->dtype == I64 && !(tensor_item(x) >= 1 && tensor_item(x) <= 0x1p53))
        tensor_snprintf(item, sizeof item, "\"%s\" is %.0f and should be from 1 to 2^53", name,
                        tensor_item(x));
    if (*item) list(&t->misfits, item);
}

static void add_key(const Transfer *t, char ***keys, int *n, const char *name) {
    char **longer = *keys;
    if (!(*n & (*n - 1))) /* the capacity doubles when n is 0, 1, 2, 4, ... */
        longer = realloc(*keys, (size_t)(*n ? 2 * *n : 1) * sizeof *longer);
    if (longer) *keys = longer;
    char *copy = longer ? malloc(strlen(name) + 1) : NULL;
    if (copy) (*keys)[(*n)++] = strcpy(copy, name);
    else tensor_fail("%s: out of memory for a list of names", t->who);
}

/* Adds to t->misfits if the entry of e was not read, since no tensor has its type. */
static bool list_unread(Transfer *t, const Entry *e) {
    for (int k = 0; k < t->from->n_unread; k++) {
        char item[sizeof t->misfits.text];
        if (strcmp(t->from->unread[k].key, e->name) != 0) continue;
        tensor_snprintf(item, sizeof item, "\"%s\" is %s, which is not read, and should be %s",
                        tensor_name_text(e->name), tensor_name_text(t->from->unread[k].value),
                        tensor_dtype_name(e->dtype));
        list(&t->misfits, item);
        return true;
    }
    return false;
}

/* Plans the tensor to load for e. A parameter that exists is written in place: the plan is the
 * dict's tensor, or a copy of it if it is a view of the parameter's own bytes. A lazy parameter and
 * state take over a copy, and the second half allocates nothing. */
static void check_entry(Transfer *t, const Entry *e) {
    const int i = find(t->from, e->name);
    if (i < 0 && !list_unread(t, e))
        add_key(t, &t->keys->missing_keys, &t->keys->num_missing, e->name);
    if (i < 0) return;
    Tensor *x = t->from->entry[i].tensor;
    const Tensor *theta = e->module ? *e->slot : NULL;
    const bool as_it_is = theta && (x == theta || x->storage != theta->storage);
    check_value(t, e, x, theta);
    t->plan[i] = as_it_is || x->let_go ? tensor_retain(x) : tensor_clone(x);
}

static void load_entry(Transfer *t, const Entry *e) {
    const int i = find(t->from, e->name);
    if (i < 0) return; /* the load is not strict */
    Tensor *x = t->plan[i];
    if (!e->module) *e->slot = tensor_retain(x);
    else if (*e->slot) tensor_copy_from(*e->slot, x);
    else nn_set_parameter(e->module, e->slot, tensor_retain(x));
}

static void add_unexpected(Transfer *t, const char *name) {
    if (!strncmp(name, t->prefix, strlen(t->prefix)))
        add_key(t, &t->keys->unexpected_keys, &t->keys->num_unexpected, name);
}

/* Where something does not fit, an entry that was not read may be it, and the load fails anyway. */
static void list_unexpected(Transfer *t) {
    for (int i = 0; i < t->from->n; i++)
        if (!t->plan[i]) add_unexpected(t, t->from->entry[i].name);
    for (int i = 0; i < t->from->n_unread && t->misfits.n == 0; i++)
        add_unexpected(t, t->from->unread[i].key);
}

/* Each of the next two appends to an error message, and returns the new end. */
static char *append_list(char *end, const char *what, const List *it) {
    if (it->n == 0) return end;
    end += sprintf(end, "; %s%s", what, it->text + 2);
    return it->n > LISTED ? end + sprintf(end, " and %d more", it->n - LISTED) : end;
}

static char *append_keys(char *end, const char *what, char **keys, int n) {
    List names = {0};
    for (int i = 0; i < n; i++) {
        char quoted[72];
        tensor_snprintf(quoted, sizeof quoted, "\"%s\"", tensor_name_text(keys[i]));
        list(&names, quoted);
    }
    return append_list(end, what, &names);
}

/* Makes an error if anything does not fit. source: the dict or the file, for the error. */
static bool check_all(Transfer *t, const char *source) {
    char text[3 * sizeof t->misfits.text + 128];
    char *end = text;
    const IncompatibleKeys *keys = t->keys;
    if (t->strict) {
        end = append_keys(end, "missing: ", keys->missing_keys, keys->num_missing);
        end = append_keys(end, "unexpected: ", keys->unexpected_keys, keys->num_unexpected);
    }
    if (append_list(end, "", &t->misfits) == text) return !tensor_error();
    const Module *whole = t->optimizer ? &t->optimizer->module : t->root;
    return tensor_fail("%s: %s does not fit %s: %s", t->who, source, whole->kind->name, text + 2);
}

/* Returns the names that do not match; NULL on error. */
static IncompatibleKeys *load_from(Transfer t, const char *source) {
    if (!check_arguments(&t, t.from)) return NULL;
    t.plan = calloc((size_t)t.from->n + 1, sizeof(Tensor *));
    t.keys = t.plan ? calloc(1, sizeof *t.keys) : NULL;
    if (t.keys) {
        visit(&t, check_entry);
        list_unexpected(&t);
    } else tensor_fail("%s: out of memory for a list of entries", t.who);
    const bool fits = t.keys && check_all(&t, source);
    if (fits && t.optimizer) nn_optimizer_forget(t.optimizer);
    if (fits) visit(&t, load_entry);
    if (t.plan)
        for (int i = 0; i < t.from->n; i++) tensor_release(t.plan[i]);
    free(t.plan);
    if (!tensor_error()) return t.keys;
    nn_incompatible_keys_free(t.keys);
    return NULL;
}

static bool load_strictly(Transfer t, const char *source) {
    t.strict = true;
    IncompatibleKeys *none = load_from(t, source);
    nn_incompatible_keys_free(none);
    return none != NULL;
}

bool nn_load_state_dict(void *module, const char *prefix, const TensorDict *dict) {
    Transfer t = {.who = "load_state_dict", .root = module, .prefix = prefix, .from = dict};
    return load_strictly(t, "the dict");
}

bool nn_load(void *module, const char *path) {
    if (!nn_check_model(module, "load")) return false;
    TensorDict *dict = tensor_load_safetensors(path);
    Transfer t = {.who = "load", .root = module, .prefix = "", .from = dict};
    bool ok = load_strictly(t, path);
    tensor_dict_free(dict);
    return ok;
}

IncompatibleKeys *nn_load_state_dict_not_strict(void *module, const char *prefix,
                                                const TensorDict *dict) {
    const char *who = "load_state_dict_not_strict";
    return load_from((Transfer){.who = who, .root = module, .prefix = prefix, .from = dict},
                     "the dict");
}

IncompatibleKeys *nn_load_not_strict(void *module, const char *path) {
    const char *who = "load_not_strict";
    if (!nn_check_model(module, who)) return NULL;
    TensorDict *dict = tensor_load_safetensors(path);
    Transfer t = {.who = who, .root = module, .prefix = "", .from = dict};
    IncompatibleKeys *keys = load_from(t, path);
    tensor_dict_free(dict);
    return keys;
}

void nn_incompatible_keys_free(IncompatibleKeys *keys) {
    if (!keys) return;
    for (int i = 0; i < keys->num_missing; i++) free(keys->missing_keys[i]);
    for (int i = 0; i < keys->num_unexpected; i++) free(keys->unexpected_keys[i]);
    free(keys->missing_keys);
    free(keys->unexpected_keys);
    free(keys);
}

/* ---- the state of an optimizer ------------------------------------------------------------- */

bool nn_optimizer_state_dict(Optimizer *optimizer, const char *prefix, TensorDict *dict) {
    const char *who = "optimizer_state_dict";
    if (!nn_check_optimizer(optimizer, who)) return false;
    return save_to((Transfer){who, optimizer->model, optimizer, prefix, .to = dict});
}

bool nn_optimizer_load_state_dict(Optimizer *optimizer, const char *prefix,
                                  const TensorDict *dict) {
    const char *who = "optimizer_load_state_dict";
    if (!nn_check_optimizer(optimizer, who)) return false;
    Transfer t = {who, optimizer->model, optimizer, prefix, .from = dict};
    return load_strictly(t, "the dict");
}
