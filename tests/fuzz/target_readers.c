/* target_readers.c - for libFuzzer: invalid files never crash a reader.
 *
 * The first byte of an input says what is written before the other bytes. 0: nothing, the other
 * bytes are the whole file. 1: the magic bytes of a .npy file and the length of the header. 2: the
 * length of the header, as in a safetensors file. In cases 1 and 2 the header ends at the first
 * byte 0xff, which no valid header contains.
 *
 * Every reader must read the file or set one printable error message. It must leak nothing,
 * allocate no block larger than twice the file (a float of 16 bits becomes one of 32) plus SLACK
 * bytes, and allocate at most TIMES the size of the file in all. Tensors that were read are equal
 * after they are saved and read again. If a load fails, the model or the optimizer is unchanged. */
#include "common.h"

#include <stdlib.h>
#include <string.h>

enum { SLACK = 64 << 10, TIMES = 16, FILE_MAX = 1 << 16 };

/* ---- memory -------------------------------------------------------------------------------- */

/* A function of the sanitizers. */
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                              void (*free_hook)(const volatile void *));

static size_t largest, total; /* the largest block, and the sum of all blocks, since begin_count */

static void on_malloc(const volatile void *block, size_t size) {
    (void)block;
    if (size > largest) largest = size;
    total += size;
}
static void on_free(const volatile void *block) { (void)block; }

static void begin_count(void) {
    largest = 0;
    total = 0;
}
static void check_count(size_t size) {
    if (largest > 2 * size + SLACK) fault("a block is larger than twice the file");
    if (total > TIMES * size + SLACK) fault("the blocks are many times the file");
}

/* ---- models and optimizers ------------------------------------------------------------------- */

typedef struct {
    Module module;
    Linear *linear;
    Embedding *embedding;
} Net;
static const ModuleClass net_class = {"Net", sizeof(Net), NULL, NULL};

static Net *net_new(void) {
    Net *new = nn_module_new(&net_class);
    new->linear = nn_add_child(new, "l", nn_linear_new(2, 3, true));
    new->embedding = nn_add_child(new, "e", nn_embedding_new(3, 2));
    return nn_module_done(new);
}

static Net *net;
static Optimizer *optimizers[2];
static TensorDict *parameters;
static TensorDict *memories[2]; /* the states of the optimizers before an input */

static void read_state(int k, TensorDict *dict) {
    if (k < 0 ? !nn_state_dict(net, "", dict) : !nn_optimizer_state_dict(optimizers[k], "", dict))
        fault("a state cannot be read");
}

static void step(Optimizer *optimizer) {
    for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p);)
        (*p->slot)->grad = tensor_clone(*p->slot);
    if (!nn_optimizer_step(optimizer)) fault("an optimizer cannot step");
    nn_zero_grad(net);
}

/* Checks that a load that failed has changed nothing. k: the number of an optimizer, or -1 for the
 * model. */
static void check_unchanged(int k) {
    const TensorDict *before = k < 0 ? parameters : memories[k];
    TensorDict *now = tensor_dict_new();
    read_state(k, now);
    if (now->n != before->n) fault("a load that failed changed the number of tensors");
    for (int i = 0; i < now->n; i++)
        if (!same_bytes(now->entry[i].tensor, before->entry[i].tensor))
            fault("a load that failed changed a tensor");
    tensor_dict_free(now);
}

static void restore(int k) {
    if (k < 0 ? !nn_load_state_dict(net, "", parameters)
              : !nn_optimizer_load_state_dict(optimizers[k], "", memories[k]))
        fault("what was saved cannot be loaded");
}

/* Copies of the parameters, because a load overwrites the parameters of the model. */
static TensorDict *copy_parameters(void) {
    TensorDict *shared = tensor_dict_new();
    TensorDict *copies = tensor_dict_new();
    read_state(-1, shared);
    for (int i = 0; i < shared->n; i++) {
        Tensor *x = tensor_clone(shared->entry[i].tensor);
        tensor_dict_set(copies, shared->entry[i].name, x);
        tensor_release(x);
    }
    tensor_dict_free(shared);
    return copies;
}

/* ---- the readers --------------------------------------------------------------------------- */

static MemoryFile in, out;

static void print_and_read(const Tensor *x) {
    static double element[FILE_MAX];
    if (!tensor_print(x, nowhere())) fault("a tensor cannot be printed");
    if (tensor_numel(x) <= FILE_MAX && !tensor_to_doubles(x, element))
        fault("a tensor cannot be looked at");
}

static void try_npy(size_t size) {
    begin_count();
    Tensor *x = tensor_load_npy(in.path);
    check_count(size);
    if (!said(x != NULL)) return;
    print_and_read(x);
    write_file(&out, "", 0);
    Tensor *y = tensor_save_npy(x, out.path) ? tensor_load_npy(out.path) : NULL;
    if (!y || !same_bytes(x, y)) fault("a .npy file is another after a round trip");
    if (said(tensor_set_generator_state(x))) tensor_release(tensor_rand(SHAPE(700)));
    tensor_release(x);
    tensor_release(y);
}

static void check_same_dict(const TensorDict *a, const TensorDict *b) {
    if (a->n != b->n || a->n_metadata != b->n_metadata) fault("a round trip lost an entry");
    for (int i = 0; i < a->n; i++) {
        const Tensor *x = tensor_dict_get(b, a->entry[i].name);
        if (!x || !same_bytes(a->entry[i].tensor, x)) fault("a round trip changed an entry");
    }
    for (int i = 0; i < a->n_metadata; i++) {
        const char *value = tensor_dict_metadata(b, a->metadata[i].key);
        if (!value || strcmp(a->metadata[i].value, value) != 0)
            fault("a round trip changed the metadata");
    }
}

static void try_states(const TensorDict *dict) {
    for (int k = -1; k < 2; k++) {
        const bool loaded = k < 0 ? nn_load_state_dict(net, "", dict)
                                  : nn_optimizer_load_state_dict(optimizers[k], "", dict);
        if (!said(loaded)) check_unchanged(k);
        else if (k >= 0) step(optimizers[k]);
    }
    for (int k = -1; k < 2; k++) restore(k);
    IncompatibleKeys *keys = nn_load_state_dict_not_strict(net, "", dict);
    if (!said(keys != NULL)) check_unchanged(-1);
    nn_incompatible_keys_free(keys);
    restore(-1);
}

static void try_safetensors(size_t size) {
    begin_count();
    TensorDict *dict = tensor_load_safetensors(in.path);
    check_count(size);
    if (!said(dict != NULL)) return;
    for (int i = 0; i < dict->n; i++) print_and_read(dict->entry[i].tensor);
    write_file(&out, "", 0);
    const bool saved = said(tensor_save_safetensors(dict, out.path));
    if (saved == (dict->n_unread > 0))
        fault("it is saved without what was not read, or not at all");
    TensorDict *again = saved ? tensor_load_safetensors(out.path) : NULL;
    if (saved && !again) fault("what was saved cannot be loaded");
    if (again) check_same_dict(dict, again);
    try_states(dict);
    tensor_dict_free(dict);
    tensor_dict_free(again);
}

/* A lazy model takes the sizes in the file. Then its forward works or sets an error. */
static void try_lazy_model(void) {
    const MultiHeadAttentionConfig config = {.num_hiddens = 4, .num_heads = 2};
    MultiHeadAttention *lazy = nn_multi_head_attention_new(config);
    if (said(nn_load(lazy, in.path)) && tape_begin()) {
        Tensor *x = tape_own(tensor_rand(SHAPE(1, 2, 3)));
        Tensor *y = nn_multi_head_attention_forward(lazy, x, x, x, (AttentionMask){0});
        if (said(y != NULL)) said(ag_backward(ag_sum(y)));
        tape_end();
    }
    nn_free(lazy);
}

/* ---- one input ------------------------------------------------------------------------------- */

static void start(void) {
    make_file(&in);
    make_file(&out);
    net = net_new();
    optimizers[0] = nn_sgd_new(net, (SGDConfig){.lr = 0.1, .momentum = 0.9});
    optimizers[1] = nn_adamw_new(net, (AdamWConfig){.lr = 0.1});
    for (int k = 0; k < 2; k++) {
        memories[k] = tensor_dict_new();
        step(optimizers[k]);
        read_state(k, memories[k]);
    }
    parameters = copy_parameters();
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

/* Writes the file that an input describes, and returns its size. */
static size_t write_input(int mode, const unsigned char *bytes, size_t size) {
    static unsigned char file[FILE_MAX + 16];
    const unsigned char *mark = memchr(bytes, 0xff, size);
    const size_t header = mark ? (size_t)(mark - bytes) : size, rest = size - header - !!mark;
    const unsigned char low = header & 0xff, high = header >> 8 & 0xff;
    const unsigned char front[3][10] = {
        {0}, {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, low, high}, {low, high}};
    const size_t length = mode == 1 ? 10 : 8; /* the number of bytes before the header */
    if (mode == 0) {
        write_file(&in, bytes, size);
        return size;
    }
    memcpy(file, front[mode], length);
    memcpy(file + length, bytes, header);
    memcpy(file + length + header, bytes + size - rest, rest);
    write_file(&in, file, length + header + rest);
    return length + header + rest;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    if (size == 0 || size > FILE_MAX) return 0;
    if (!net) start();
    const int64_t live = tensor_live();
    const size_t file_size = write_input(bytes[0] % 3, bytes + 1, size - 1);
    try_npy(file_size);
    try_safetensors(file_size);
    try_lazy_model();
    if (tensor_live() != live) fault("tensors are left over");
    return 0;
}
