/* target_api.c - for libFuzzer: sequences of calls of the library, valid and invalid ones.
 *
 * An input is a program. Its tensors, modules and optimizers are in numbered places. A byte chooses
 * a call; the bytes after it choose the places and the numbers of the arguments. Missing bytes are
 * 0. The program begins with a few ordinary tensors and an open tape. Every call must succeed or
 * set one printable error message, whatever its arguments are. At the end all places are emptied,
 * and then no tensor may exist. The sanitizers check the rest.
 *
 * The program does nothing that tensor.h forbids: it releases only tensors that it owns, and uses
 * no loan after the end of its tape. Slow calls are skipped, too: inputs of more than ELEMENTS_MAX
 * elements, or products of more than WORK_MAX operations. */
#include "common.h"

#include "../suites/common.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { TENSORS = 16, MODULES = 4, OPTIMIZERS = 2, TAPES_MAX = 8, CALLS_MAX = 200 };
enum { ELEMENTS_MAX = 2048, WORK_MAX = 1 << 16 };

/* ---- arguments ----------------------------------------------------------------------------- */

static const unsigned char *next;
static const unsigned char *end;

static unsigned byte(void) { return next < end ? *next++ : 0; }
static unsigned below(unsigned n) { return byte() % n; }
static bool flag(void) { return byte() & 1; }

/* A whole number: mostly a small one, else an extreme one. */
static int64_t whole(void) {
    static const int64_t odd[] = {-1,
                                  -2,
                                  8,
                                  9,
                                  70,
                                  1LL << 31,
                                  -(1LL << 31),
                                  1LL << 40,
                                  1LL << 62,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_MAX / 2,
                                  -8,
                                  100,
                                  4097,
                                  INT64_MAX - 1};
    const unsigned v = byte();
    return v < 224 ? v % 7 : odd[v % 16];
}
static int dimension(void) {
    const unsigned v = byte();
    if (v < 250) return (int)(v % 10) - 4;
    return v % 2 ? INT_MAX : INT_MIN;
}
static double real(void) {
    static const double odd[] = {(double)NAN,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 1e308,
                                 -1e308,
                                 0x1p63,
                                 -0x1p63,
                                 1e39,
                                 5e-324,
                                 -0.0,
                                 1e18,
                                 0.1};
    const unsigned v = byte();
    return v < 200 ? (v % 21) / 4.0 - 2 : odd[v % 12];
}
static int count_of_dimensions(void) {
    static const int odd[] = {6, 7, 8, 9, -1, INT_MAX, INT_MIN, 5};
    const unsigned v = byte();
    return v < 240 ? (int)(v % 5) : odd[v % 8];
}
static Shape shape(void) {
    Shape result = {count_of_dimensions(), {0}};
    for (int d = 0; d < result.ndim && d < TENSOR_MAX_DIMS; d++) result.dim[d] = whole();
    return result;
}
static Axes axes(void) {
    Axes result = {count_of_dimensions(), {0}};
    for (int i = 0; i < result.n && i < TENSOR_MAX_DIMS; i++) result.axis[i] = dimension();
    return result;
}

/* The number of elements, at least 1; 0 if s is not a valid shape, which every call refuses at
 * once. */
static double volume(Shape s) {
    double n = 1;
    if (s.ndim < 0 || s.ndim > TENSOR_MAX_DIMS) return 0;
    for (int d = 0; d < s.ndim; d++) n *= s.dim[d] < 0 ? 0 : (double)s.dim[d];
    for (int d = 0; d < s.ndim; d++)
        if (s.dim[d] == 0) n = 1; /* a tensor without elements needs no work */
    return n;
}
static bool can_be_made(Shape s) { return volume(s) <= ELEMENTS_MAX || volume(s) >= 0x1p40; }

/* ---- places ---------------------------------------------------------------------------------- */

static struct {
    Tensor *x;
    int owned; /* how many references we own */
    int depth; /* the depth of the tape that lends it; 0 for a tensor that is no loan */
} places[TENSORS];
static int depth; /* how many tapes are open */

static Tensor *tensor(void) {
    const unsigned v = byte();
    return v == 255 ? NULL : places[v % TENSORS].x;
}
static int place_of(const Tensor *x) {
    int i = 0;
    while (i < TENSORS && places[i].x != x) i++;
    return i;
}
static void empty(int i) {
    for (; places[i].owned > 0; places[i].owned--) tensor_release(places[i].x);
    places[i].x = NULL;
    places[i].depth = 0;
}

static bool stays_pending; /* is the error of an earlier call left pending for the next calls? */

static void check(bool ok) {
    if (stays_pending) return;
    if (tensor_error() && byte() > 240) stays_pending = true;
    else said(ok);
}

/* Puts a tensor into a random place. It is ours, or a loan of the innermost tape. */
static void keep(Tensor *x, bool ours) {
    check(x != NULL);
    if (!x) return;
    int i = place_of(x);
    if (i == TENSORS && volume(x->shape) > ELEMENTS_MAX) { /* a large view, or a large result of
                                                            * ag_split, is not kept */
        if (ours) tensor_release(x);
        return;
    }
    if (i == TENSORS) {
        i = (int)below(TENSORS);
        empty(i);
        places[i].x = x;
        places[i].depth = ours ? 0 : depth;
    }
    places[i].owned += ours;
}
static void own(Tensor *x) { keep(x, true); }
static void borrow(Tensor *x) { keep(x, false); }

/* Called after a tape was closed: removes its loans from the places. */
static void forget_loans(void) {
    for (int i = 0; i < TENSORS; i++) {
        if (places[i].depth <= depth) continue;
        places[i].depth = 0;
        if (places[i].owned == 0) places[i].x = NULL;
    }
}

/* Chooses n tensors. False if an op on them would take long. */
static bool several(Tensor **x, int n) {
    double work = 1;
    for (int i = 0; i < n; i++) {
        x[i] = tensor();
        work *= x[i] ? fmax(volume(x[i]->shape), 1) : 1;
    }
    return work <= WORK_MAX;
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* How many inputs to give to the row's function: for a composite, as many as its first call in the
 * table has. */
static int choose_count(const OpRow *row) {
    int n = 0;
    if (!row->op) {
        const SampleInput *in = row->wrong.list ? row->wrong.list->in : NULL;
        if (row->empty.n) in = row->empty.list->in;
        if (row->samples.n) in = row->samples.list->in;
        while (in && n < SAMPLE_INPUTS && in[n].kind) n++;
        return n;
    }
    if (row->op->in[0].type & MANY) return (int)below(8) + 1;
    n = inputs_of(row->op);
    while (n > 0 && row->op->in[n - 1].type & OPTIONAL && flag()) n--;
    return n;
}

/* Calls any function of the table, with small numbers for all its attributes: sizes, dimensions and
 * probabilities. */
static void call_any_op(void) {
    static unsigned n_rows;
    while (op_rows[n_rows].name) n_rows++;
    const OpRow *row = &op_rows[below(n_rows)];
    Tensor *in[8];
    double number[SAMPLE_NUMBERS];
    const int n = choose_count(row);
    if (!several(in, n)) return;
    for (int i = 0; i < SAMPLE_NUMBERS; i++) {
        const unsigned v = byte();
        number[i] = v < 200 ? (int)(v % 11) - 2 : v % 8 / 4.0;
    }
    borrow(call_op(row->name, in, n, number));
}

/* Calls functions that take numbers of any size, and functions that are no op of the table. */
static void call_op_with_odd_numbers(void) {
    Tensor *x[4];
    if (!several(x, 4)) return;
    switch (below(16)) {
    case 0: borrow(ag_reshape(x[0], shape())); break;
    case 1: borrow(ag_view(x[0], shape())); break;
    case 2: borrow(ag_expand(x[0], shape())); break;
    case 3: borrow(ag_permute(x[0], axes())); break;
    case 4: borrow(ag_transpose(x[0], dimension(), dimension())); break;
    case 5: borrow(ag_unsqueeze(x[0], dimension())); break;
    case 6: borrow(ag_squeeze(x[0], dimension())); break;
    case 7: borrow(ag_slice(x[0], dimension(), whole(), whole())); break;
    case 8: borrow(ag_select(x[0], dimension(), whole())); break;
    case 9: borrow(ag_sum_dims(x[0], axes(), flag())); break;
    case 10: borrow(ag_mean_dims(x[0], axes(), flag())); break;
    case 11: borrow(ag_softmax(x[0], dimension())); break;
    case 12: borrow(ag_scale(x[0], real())); break;
    case 13: borrow(ag_masked_fill(x[0], x[1], real())); break;
    case 14: borrow(ag_cross_entropy(x[0], x[1], whole(), (Reduction)below(4))); break;
    default: borrow(ag_layer_norm(x[0], x[1], x[2], real()));
    }
}

static AttentionMask mask(Tensor *const x[4]) {
    const unsigned parts = byte();
    return (AttentionMask){parts & 1 ? x[0] : NULL, parts & 2 ? x[1] : NULL,
                           parts & 4 ? x[2] : NULL, parts & 8 ? x[3] : NULL, parts & 16};
}

static void call_attention(void) {
    Tensor *x[7];
    if (!several(x, 7)) return;
    const AttentionMask m = mask(x + 3);
    if (flag()) borrow(ag_attention_weights(x[0], real(), m, whole()));
    else if (flag()) borrow(ag_attention(x[0], x[1], x[2], m, real()));
    else borrow(ag_attention(x[0], x[0], x[0], m, 0));
}

/* ---- tapes ----------------------------------------------------------------------------------- */

static void close_tape(void) {
    tape_end();
    depth -= depth > 0;
    forget_loans();
}

static void call_end_keeping(void) {
    Tensor *x = tensor();
    const int i = place_of(x);
    if (depth == 0 || (x && places[i].depth != depth)) return;
    Tensor *y = tape_end_keeping(x);
    depth--;
    if (y && depth == 0) places[i].owned++;
    if (y) places[i].depth = depth;
    forget_loans();
}

/* Is the tape so small that tape_write_json, which calls each op twice for each element of its
 * inputs, is fast? */
static bool tape_is_small(void) {
    double work = 0;
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in; k++)
            if (line.in[k]) work += volume(line.out->shape) * volume(line.in[k]->shape);
    return work <= WORK_MAX;
}

/* Calls the functions of autograd/more/inspect.c. */
static void look_at_tape(void) {
    Tensor *dx[OP_INPUTS];
    TapeLine line = {0};
    const unsigned which = below(5);
    const int i = (int)whole();
    const bool exists = tape_line(i, &line);
    if (exists && line.n_in > OP_INPUTS) return; /* cat of many tensors */
    switch (which) {
    case 0: check(tape_print(nowhere())); break;
    case 1: {
        const bool done = tape_vjp(i, tensor(), dx);
        for (int k = 0; k < line.n_in && done; k++) {
            const Tensor *x = line.in[k];
            if (dx[k] && !x) fault("tape_vjp: dx of an absent input");
            if (dx[k] && !shape_equal(dx[k]->shape, x->shape))
                fault("tape_vjp: dx has another shape than its input");
            if (dx[k]) own(dx[k]);
        }
        check(done);
        break;
    }
    case 2: own(tape_forward(i)); break;
    default:
        if (tape_is_small()) check(tape_write_json(nowhere()));
    }
}

static void call_tape(void) {
    Tensor *x[2];
    switch (below(10)) {
    case 0:
    case 1:
        if (depth < TAPES_MAX) {
            const bool begun = flag() ? tape_begin() : tape_begin_no_grad();
            depth += begun;
            check(begun);
        }
        break;
    case 2: close_tape(); break;
    case 3: call_end_keeping(); break;
    case 4: tape_keep_grads(flag()); break;
    case 5: look_at_tape(); break;
    case 6:
    case 7: check(ag_backward(tensor())); break;
    case 8:
        if (several(x, 2)) check(ag_backward_from(x[0], x[1]));
        break;
    default: ag_reaches(tensor(), tensor());
    }
}

/* Calls functions that return their argument. */
static void call_on_a_tensor(void) {
    static const char *const names[] = {"x", "a name that is too long, \xc3\xa9\xc3\xa9", NULL};
    Tensor *x = tensor();
    switch (below(9)) {
    case 0:
    case 1: check(ag_requires_grad(x) != NULL); break;
    case 2: check(ag_retain_grad(x) != NULL); break;
    case 3: check(ag_name(x, names[below(3)])); break;
    case 4: check(ag_let_go(x) != NULL); break;
    case 7: check(ag_let_go_since((int)below(20) - 1, x) != NULL); break;
    case 5:
        if (x) own(tensor_retain(x));
        break;
    case 6:
        if (x && x->grad) own(tensor_retain(x->grad));
        break;
    default:
        if (x && places[place_of(x)].owned > 1) { /* empty releases the last reference */
            places[place_of(x)].owned--;
            tensor_release(x);
        }
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void call_constructor(void) {
    static double doubles[ELEMENTS_MAX];
    static int64_t integers[ELEMENTS_MAX];
    static bool bools[ELEMENTS_MAX];
    const Shape s = shape();
    if (!can_be_made(s)) return;
    const bool few = volume(s) <= ELEMENTS_MAX;
    for (int i = 0; i < 8; i++) doubles[i] = real();
    for (int i = 0; i < 8; i++) {
        integers[i] = whole();
        bools[i] = integers[i] & 1;
    }
    switch (below(12)) {
    case 0: own(tensor_zeros(s)); break;
    case 1: own(tensor_full_of(s, real(), (DType)below(5))); break;
    case 2: own(tensor_rand(s)); break;
    case 3: own(tensor_randn(s)); break;
    case 4: own(tensor_uniform(real(), real(), s)); break;
    case 5: own(tensor_normal(real(), real(), s)); break;
    case 6: own(tensor_bernoulli(real(), s)); break;
    case 7: own(tensor_randint(whole(), whole(), s)); break;
    case 8:
    case 9: own(tensor_from_doubles(s, few ? doubles : NULL)); break;
    case 10: own(tensor_from_int64s(s, few ? integers : NULL)); break;
    default: own(tensor_from_bools(s, few ? bools : NULL));
    }
}

static void call_range(void) {
    const double start = real(), stop = real(), step = real(), n = fabs((stop - start) / step);
    const int64_t size = whole();
    switch (below(3)) {
    case 0:
        if (!(n > ELEMENTS_MAX && n < 0x1p40))
            own(tensor_arange_of(start, stop, step, (DType)below(5)));
        break;
    case 1:
        if (size < 100 || size > 1LL << 30) own(tensor_eye(size));
        break;
    default:
        if (size < ELEMENTS_MAX || size > 1LL << 35) own(tensor_randperm(size));
    }
}

static void call_copy(void) {
    Tensor *x = tensor();
    Tensor *indices = NULL;
    int64_t stride[TENSOR_MAX_DIMS];
    switch (below(4)) {
    case 0: own(tensor_clone(x)); break;
    case 1: own(tensor_to(x, (DType)((int)below(6) - 1))); break;
    case 2:
        for (int d = 0; d < TENSOR_MAX_DIMS; d++) stride[d] = whole();
        own(tensor_as_strided(x, shape(), stride, whole()));
        break;
    default:
        own(tensor_sort(x, flag() ? &indices : NULL));
        if (indices) own(indices);
    }
}

static void call_reader(void) {
    static double out[ELEMENTS_MAX];
    Tensor *x[2];
    if (!several(x, 2)) return;
    switch (below(6)) {
    case 0: tensor_item(x[0]); break;
    case 1: tensor_get_at(x[0], shape()); break;
    case 2:
        tensor_sum_of_squares(x[0]);
        tensor_norm(x[0]);
        break;
    case 3: tensor_to_doubles(x[0], flag() ? out : NULL); break;
    case 4: tensor_allclose(x[0], x[1], real(), real()); break;
    default: tensor_print(x[0], nowhere());
    }
}

static void call_writer(void) {
    Tensor *x[2];
    if (!several(x, 2)) return;
    switch (below(6)) {
    case 0: check(tensor_copy_from(x[0], x[1])); break;
    case 1: check(flag() ? tensor_fill(x[0], real()) : tensor_set_at(x[0], real(), shape())); break;
    case 2: check(tensor_add_(x[0], x[1], real())); break;
    case 3: check(tensor_mul_(x[0], real())); break;
    case 4: check(tensor_uniform_(x[0], real(), real())); break;
    default: check(tensor_normal_(x[0], real(), real()));
    }
}

static void call_setting(void) {
    switch (below(4)) {
    case 0: check(tensor_set_default_dtype((DType)below(3))); break;
    case 1:
        tensor_set_num_threads(dimension());
        tensor_set_num_threads(1);
        break;
    case 2: check(tensor_set_generator_state(tensor())); break;
    default:
        nn_optimizer_scale_lr(NULL, nn_step_decay(whole(), whole(), real()) *
                                        nn_cosine_decay(whole(), whole(), real()) *
                                        nn_warmup(whole(), whole()));
    }
}

/* ---- modules --------------------------------------------------------------------------------- */

/* A module of our own. Its parameters may be any tensors, shared ones too. */
typedef struct {
    Module module;
    Tensor *w, *v, *result;
    Linear *linear;
} Net;
static const ModuleClass net_class = {"Net", sizeof(Net), NULL, NULL};

static void *net_new(void) {
    Net *net = nn_module_new(&net_class);
    if (!net) return NULL;
    nn_add_parameter(net, flag() ? "w" : "a.b", &net->w, tensor_retain(tensor()));
    if (flag()) nn_add_lazy_parameter(net, "v", &net->v, shape());
    nn_add_result(net, &net->result);
    net->linear = nn_add_child(net, flag() ? "linear" : "w", nn_linear_new(2, 2, true));
    return nn_module_done(net);
}

enum Kind { LINEAR, DROPOUT, EMBEDDING, NORM, ENCODING, DOT_PRODUCT, ADDITIVE, MULTI_HEAD, NET };

static struct {
    Module *module;
    enum Kind kind;
} modules[MODULES];
static struct {
    Optimizer *optimizer;
    int of; /* the place of its module in modules */
} optimizers[OPTIMIZERS];

static void *module_new(enum Kind kind) {
    const int64_t n = whole(), m = whole();
    if (n > 64 || m > 64) return tensor_fail("a module of that size is slow, no fault");
    const bool a = flag(), b = flag();
    const MultiHeadAttentionConfig config = {.num_hiddens = n,
                                             .num_heads = m,
                                             .dropout = a ? real() : 0,
                                             .bias = b,
                                             .query_size = m,
                                             .key_size = n,
                                             .value_size = below(4),
                                             .fused = flag(),
                                             .num_kv_heads = below(4)};
    switch (kind) {
    case LINEAR: return nn_linear_new(n, m, a);
    case DROPOUT: return nn_dropout_new(real());
    case EMBEDDING: return nn_embedding_new(n, m);
    case NORM: return nn_layer_norm_new(SHAPE(n, m));
    case ENCODING: return nn_positional_encoding_new(n, real(), m);
    case DOT_PRODUCT: return nn_dot_product_attention_new(real());
    case ADDITIVE: return nn_additive_attention_new(n, real());
    case MULTI_HEAD: return nn_multi_head_attention_new(config);
    case NET: return net_new();
    }
    return NULL;
}

static Tensor *forward(int i, Tensor **x) {
    void *m = modules[i].module;
    Tensor *k = flag() ? x[0] : x[1];
    Tensor *v = flag() ? x[0] : x[2];
    switch (modules[i].kind) {
    case LINEAR: return nn_linear_forward(m, x[0]);
    case DROPOUT: return nn_dropout_forward(m, x[0]);
    case EMBEDDING: return nn_embedding_forward(m, x[0]);
    case NORM: return nn_layer_norm_forward(m, x[0]);
    case ENCODING: return nn_positional_encoding_forward(m, x[0]);
    case DOT_PRODUCT: return nn_dot_product_attention_forward(m, x[0], k, v, mask(x + 3));
    case ADDITIVE: return nn_additive_attention_forward(m, x[0], k, v, mask(x + 3));
    case MULTI_HEAD: return nn_multi_head_attention_forward(m, x[0], k, v, mask(x + 3));
    case NET: break;
    }
    Net *net = m;
    return nn_keep_result(net, &net->result, x[0]) ? nn_linear_forward(net->linear, x[1]) : NULL;
}

static void free_optimizer(int k) {
    nn_free(optimizers[k].optimizer);
    optimizers[k].optimizer = NULL;
}
static void free_module(int i) {
    for (int k = 0; k < OPTIMIZERS; k++)
        if (optimizers[k].of == i) free_optimizer(k);
    nn_free(modules[i].module);
    modules[i].module = NULL;
}

/* Puts the nth parameter into a random place, like other tensors. */
static void own_parameter(Module *m, unsigned n) {
    ModuleSlot *p = NULL;
    while (nn_next_parameter(m, flag() ? "" : "weight", &p) && n > 0) n--;
    if (p && *p->slot) own(tensor_retain(*p->slot));
}

static void call_module(void) {
    const int i = (int)below(MODULES);
    Module *m = modules[i].module;
    Tensor *x[7];
    if (!m) {
        modules[i].kind = (enum Kind)below(NET + 1);
        modules[i].module = module_new(modules[i].kind);
        check(modules[i].module != NULL);
        return;
    }
    switch (below(12)) {
    case 0: free_module(i); break;
    case 1: nn_train(m, flag()); break;
    case 2: check(nn_print(m, nowhere())); break;
    case 3: check(nn_freeze(m, flag() ? "" : "weight", flag())); break;
    case 4: check(nn_check_connected(tensor(), m)); break;
    case 5: nn_clip_grad_norm(m, real()); break;
    case 6: own_parameter(m, below(8)); break;
    default:
        if (several(x, 7)) borrow(forward(i, x));
    }
}

static void make_optimizer(int k) {
    const int i = (int)below(MODULES);
    const bool a = flag(), b = flag();
    optimizers[k].of = i;
    if (flag())
        optimizers[k].optimizer =
            nn_sgd_new(modules[i].module, (SGDConfig){.lr = real(),
                                                      .momentum = a ? real() : 0,
                                                      .weight_decay = b ? real() : 0,
                                                      .nesterov = flag()});
    else
        optimizers[k].optimizer =
            nn_adamw_new(modules[i].module, (AdamWConfig){.lr = real(),
                                                          .beta1 = a ? real() : 0,
                                                          .beta2 = a ? real() : 0,
                                                          .eps = b ? real() : 0,
                                                          .weight_decay = b ? real() : 0});
    check(optimizers[k].optimizer != NULL);
}

static void call_optimizer(void) {
    const int k = (int)below(OPTIMIZERS);
    Optimizer *o = optimizers[k].optimizer;
    if (!o) {
        make_optimizer(k);
        return;
    }
    switch (below(5)) {
    case 0: free_optimizer(k); break;
    case 1: nn_optimizer_zero_grad(o); break;
    case 2: check(nn_optimizer_set_group(o, flag() ? "" : "weight", real(), real())); break;
    case 3: check(nn_optimizer_scale_lr(o, real())); break;
    default: check(nn_optimizer_step(o));
    }
}

/* ---- dicts and files ------------------------------------------------------------------------- */

static TensorDict *dict;
static MemoryFile file;

static void call_dict(void) {
    const int i = (int)below(MODULES), k = (int)below(OPTIMIZERS);
    Module *m = modules[i].module;
    Optimizer *o = optimizers[k].optimizer;
    const char *prefix = flag() ? "" : "o.";
    if (!dict) dict = tensor_dict_new();
    switch (below(8)) {
    case 0: check(nn_state_dict(m, prefix, dict)); break;
    case 1: check(nn_load_state_dict(m, prefix, dict)); break;
    case 2: check(nn_optimizer_state_dict(o, prefix, dict)); break;
    case 3: check(nn_optimizer_load_state_dict(o, prefix, dict)); break;
    case 4: check(tensor_dict_set(dict, flag() ? "o.weight.step" : "weight", tensor())); break;
    case 5:
        tensor_dict_free(dict);
        dict = NULL;
        break;
    default:
        write_file(&file, "", 0);
        check(tensor_save_safetensors(dict, file.path));
        tensor_dict_free(dict);
        dict = tensor_load_safetensors(file.path);
        check(dict != NULL);
    }
}

static void call_file(void) {
    if (flag()) {
        own(tensor_load_npy(file.path));
        return;
    }
    write_file(&file, "", 0);
    check(tensor_save_npy(tensor(), file.path));
}

/* ---- one input ------------------------------------------------------------------------------- */

static void (*const calls[])(void) = {
    call_any_op,    call_any_op,      call_any_op, call_any_op,    call_op_with_odd_numbers,
    call_attention, call_on_a_tensor, call_tape,   call_tape,      call_constructor,
    call_module,    call_module,      call_copy,   call_optimizer, call_constructor,
    call_reader,    call_writer,      call_range,  call_setting,   call_dict,
    call_file,
};

static void empty_all(bool tapes_first) {
    while (tapes_first && depth > 0) close_tape();
    for (int i = 0; i < MODULES; i++) free_module(i);
    while (depth > 0) close_tape();
    for (int i = 0; i < TENSORS; i++) empty(i);
    tensor_dict_free(dict);
    dict = NULL;
}

static void begin(void) {
    const bool bools[] = {true, false, true, true, false, true};
    tensor_set_default_dtype(F32);
    tensor_manual_seed(1);
    Tensor *const first[] = {ag_requires_grad(tensor_rand(SHAPE(2, 3))),
                             ag_requires_grad(tensor_rand(SHAPE(2, 2, 3))),
                             ag_requires_grad(tensor_rand(SHAPE(3, 3))),
                             tensor_rand(SHAPE(3)),
                             tensor_from_int64s(SHAPE(2), (int64_t[]){2, 1}),
                             tensor_from_bools(SHAPE(2, 3), bools)};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        places[i].x = first[i];
        places[i].owned = 1;
    }
    depth = tape_begin();
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    if (!file.fd) make_file(&file);
    next = bytes;
    end = bytes + size;
    begin();
    for (int n = 0; next < end && n < CALLS_MAX; n++) {
        const bool was_pending = stays_pending;
        calls[below(sizeof calls / sizeof *calls)]();
        check(!tensor_error()); /* an error of a call that returns neither a tensor nor a bool */
        if (was_pending) {
            stays_pending = false;
            tensor_clear_error();
        }
    }
    stays_pending = false;
    tensor_clear_error();
    empty_all(size & 1);
    tensor_clear_error();
    if (tensor_live() != 0) fault("tensors are left over");
    return 0;
}
