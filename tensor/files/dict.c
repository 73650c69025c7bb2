/* dict.c - named tensors and metadata: the form of a checkpoint between a file and a model. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

TensorDict *tensor_dict_new(void) {
    TensorDict *dict = tensor_pending() ? NULL : calloc(1, sizeof *dict);
    return dict ? dict : tensor_fail("dict_new: out of memory");
}

static void free_pairs(Metadata *list, int n) {
    for (int i = 0; i < n; i++) {
        free(list[i].key);
        free(list[i].value);
    }
    free(list);
}

void tensor_dict_free(TensorDict *dict) {
    if (!dict) return;
    for (int i = 0; i < dict->n; i++) {
        free(dict->entry[i].name);
        tensor_release(dict->entry[i].tensor);
    }
    free_pairs(dict->metadata, dict->n_metadata);
    free_pairs(dict->unread, dict->n_unread);
    free(dict->entry);
    free(dict);
}

static bool check_text(const char *function, const char *what, const char *text) {
    if (!tensor_check_given(function, what, text) || tensor_pending()) return false;
    return tensor_is_utf8(text, strlen(text)) ||
           tensor_fail("%s: the %s is not UTF-8", function, what);
}

void *tensor_list_reserve(void *list, int n, size_t size) {
    if (n & (n - 1)) return list; /* the capacity doubles when n is 0, 1, 2, 4, ... */
    void *longer = realloc(list, (size_t)(n ? 2 * n : 1) * size);
    return longer ? longer : tensor_fail("dict: out of memory for another entry");
}

static char *copy_of(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text)
                : tensor_fail("dict: out of memory for \"%s\"", tensor_name_text(text));
}

bool tensor_dict_append(TensorDict *dict, const char *name, Tensor *x) {
    NamedTensor *longer = tensor_list_reserve(dict->entry, dict->n, sizeof *longer);
    if (longer) dict->entry = longer;
    char *copy = longer ? copy_of(name) : NULL;
    if (copy) dict->entry[dict->n++] = (NamedTensor){copy, tensor_retain(x)};
    return copy != NULL;
}

bool tensor_pair_append(Metadata **list, int *n, const char *key, const char *value) {
    Metadata *longer = tensor_list_reserve(*list, *n, sizeof *longer);
    if (longer) *list = longer;
    Metadata pair = {longer ? copy_of(key) : NULL, longer ? copy_of(value) : NULL};
    if (pair.key && pair.value) (*list)[(*n)++] = pair;
    else {
        free(pair.key);
        free(pair.value);
    }
    return pair.key && pair.value;
}

/* list: n structs of `size` bytes; each begins with a name. Returns the struct with this name, or
 * NULL. */
static void *find(void *list, int n, size_t size, const char *name) {
    for (char *at = list; n > 0; n--, at += size)
        if (!strcmp(*(char **)(void *)at, name)) return at;
    return NULL;
}

/* Advice for a user of PyTorch whose file has a type that we do not read. */
static const char *conversion(const char *type) {
    if (*type == 'F' || *type == 'B') return "; in PyTorch, save x.float()";
    return *type == 'I' || *type == 'U' ? "; in PyTorch, save x.long()" : "";
}

void *tensor_fail_unread(const char *function, const Metadata *entry) {
    return tensor_fail("%s: the type of \"%s\" is %s: only F16, BF16, F32, F64, I64 and BOOL are "
                       "read%s",
                       function, tensor_name_text(entry->key), tensor_name_text(entry->value),
                       conversion(entry->value));
}

/* A tensor takes the place of an entry that was not read. */
static bool forget_unread(TensorDict *dict, const char *name) {
    Metadata *entry = find(dict->unread, dict->n_unread, sizeof *entry, name);
    if (!entry) return true;
    free(entry->key);
    free(entry->value);
    *entry = dict->unread[--dict->n_unread];
    return true;
}

bool tensor_dict_set(TensorDict *dict, const char *name, Tensor *x) {
    const char *op = "dict_set";
    if (!tensor_check_given(op, "dict", dict) || !tensor_check_readable(op, x) ||
        !check_text(op, "name", name))
        return false;
    if (!strcmp(name, "__metadata__"))
        return tensor_fail("dict_set: the name __metadata__ is taken by the metadata");
    NamedTensor *entry = find(dict->entry, dict->n, sizeof *entry, name);
    if (!entry) return tensor_dict_append(dict, name, x) && forget_unread(dict, name);
    tensor_retain(x); /* before the release, because x may be the old tensor */
    tensor_release(entry->tensor);
    entry->tensor = x;
    return true;
}

Tensor *tensor_dict_get(const TensorDict *dict, const char *name) {
    if (!tensor_check_given("dict_get", "dict", dict) ||
        !tensor_check_given("dict_get", "name", name))
        return NULL;
    const NamedTensor *entry = find(dict->entry, dict->n, sizeof *entry, name);
    if (entry) return entry->tensor;
    const Metadata *unread = find(dict->unread, dict->n_unread, sizeof *unread, name);
    if (unread) return tensor_fail_unread("dict_get", unread);
    return tensor_fail("dict_get: there is no \"%s\"", tensor_name_text(name));
}

/* The name of entry i; behind the entries come those that were not read. */
static char **name_of(const TensorDict *dict, int i) {
    return i < dict->n ? &dict->entry[i].name : &dict->unread[i - dict->n].key;
}

/* The name that begins with `from`, with `to` in its place. An error if a name that stays is so. */
static char *renamed(const TensorDict *dict, const char *name, const char *from, const char *to) {
    const size_t cut = strlen(from);
    char *text = malloc(strlen(to) + strlen(name + cut) + 1);
    if (!text) return tensor_fail("dict_rename: out of memory for a name");
    strcat(strcpy(text, to), name + cut);
    bool taken = !strcmp(text, "__metadata__");
    for (int i = 0; i < dict->n + dict->n_unread; i++) {
        const char *other = *name_of(dict, i);
        if (!strcmp(other, text) && strncmp(other, from, cut) != 0) taken = true;
    }
    if (taken) tensor_fail("dict_rename: the name \"%s\" is taken", tensor_name_text(text));
    return text;
}

bool tensor_dict_rename(TensorDict *dict, const char *from, const char *to) {
    const char *op = "dict_rename";
    if (!tensor_check_given(op, "dict", dict) || !check_text(op, "old prefix", from) ||
        !check_text(op, "new prefix", to))
        return false;
    const int n = dict->n + dict->n_unread;
    char **name = calloc((size_t)n + 1, sizeof *name);
    if (!name) return tensor_fail("dict_rename: out of memory for a list of names");
    bool any = false;
    for (int i = 0; i < n && !tensor_pending(); i++) {
        if (strncmp(*name_of(dict, i), from, strlen(from)) != 0) continue;
        name[i] = renamed(dict, *name_of(dict, i), from, to);
        any = true;
    }
    if (!any) tensor_fail("dict_rename: no name begins with \"%s\"", tensor_name_text(from));
    for (int i = 0; i < n; i++) {
        char *old = *name_of(dict, i);
        const bool good = name[i] && !tensor_pending();
        if (good) *name_of(dict, i) = name[i];
        free(good ? old : name[i]);
    }
    free(name);
    return !tensor_pending();
}

bool tensor_dict_set_metadata(TensorDict *dict, const char *key, const char *value) {
    const char *op = "dict_set_metadata";
    if (!tensor_check_given(op, "dict", dict) || !check_text(op, "key", key) ||
        !check_text(op, "value", value))
        return false;
    Metadata *pair = find(dict->metadata, dict->n_metadata, sizeof *pair, key);
    if (!pair) return tensor_pair_append(&dict->metadata, &dict->n_metadata, key, value);
    char *copy = copy_of(value);
    if (!copy) return false;
    free(pair->value);
    pair->value = copy;
    return true;
}

const char *tensor_dict_metadata(const TensorDict *dict, const char *key) {
    if (!tensor_check_given("dict_metadata", "dict", dict) ||
        !tensor_check_given("dict_metadata", "key", key))
        return NULL;
    const Metadata *pair = find(dict->metadata, dict->n_metadata, sizeof *pair, key);
    return pair ? pair->value : NULL;
}
