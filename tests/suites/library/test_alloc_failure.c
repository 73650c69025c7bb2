/* test_alloc_failure.c - makes every allocation fail, one after the other.
 *
 * The linker replaces malloc and similar functions by the functions below. A piece of work is
 * repeated: first its 1st allocation fails, then its 2nd, and so on, until the work ends before the
 * allocation that would fail. Then all is repeated, but all later allocations fail, too, as when
 * memory has run out. Each time the work must report a failure or give the right result. A failure
 * must leave gradients, parameters and numbers as they were, and every block and tensor must be
 * freed.
 *
 * The caching allocator would hide allocations. So it is off, except in tests of the cache itself.
 */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../examples/explain/page/recording.h"
#include "../../../examples/explain/rules/rule_planted.h"
#include "../common.h"

/* ---- between the library and malloc -------------------------------------------------------- */

enum { BLOCKS_MAX = 8192 };

static struct {
    bool armed;      /* count allocations, and make some fail */
    bool persistent; /* fail from fail_at on, not only at fail_at */
    int calls, fail_at, failed;
    void *block[BLOCKS_MAX]; /* allocated while armed, and not freed yet */
    int blocks;
} memory;

static bool refuses(void) {
    if (!memory.armed) return false;
    int call = ++memory.calls;
    bool refused = call == memory.fail_at || (memory.persistent && call > memory.fail_at);
    memory.failed += refused;
    if (refused) errno = ENOMEM;
    return refused;
}

static void *handed_out(void *block) {
    if (block && memory.armed) {
        if (memory.blocks == BLOCKS_MAX) abort();
        memory.block[memory.blocks++] = block;
    }
    return block;
}

static void taken_back(const void *block) {
    for (int i = memory.blocks - 1; i >= 0 && block; i--) {
        if (memory.block[i] != block) continue;
        memory.block[i] = memory.block[--memory.blocks];
        return;
    }
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **block, size_t alignment, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size) { return refuses() ? NULL : handed_out(__real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) {
    return refuses() ? NULL : handed_out(__real_calloc(count, size));
}
void *__wrap_realloc(void *block, size_t size) {
    if (refuses()) return NULL;
    taken_back(block);
    return handed_out(__real_realloc(block, size));
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return refuses() ? NULL : handed_out(__real_aligned_alloc(alignment, size));
}
int __wrap_posix_memalign(void **block, size_t alignment, size_t size) {
    if (refuses()) return 12; /* ENOMEM */
    int error = __real_posix_memalign(block, alignment, size);
    if (!error) handed_out(*block);
    return error;
}
void __wrap_free(void *block) {
    taken_back(block);
    __real_free(block);
}

/* ---- doing a piece of work until nothing fails --------------------------------------------- */

/* The numbers that a piece of work computed, to be compared with the right ones. */
typedef struct {
    int n;
    double number[4096];
} Outcome;

static void note(Outcome *outcome, const Tensor *x) {
    int left = (int)(sizeof outcome->number / sizeof *outcome->number) - outcome->n;
    if (!x || tensor_numel(x) > left) abort(); /* no ck_assert here, because it allocates */
    tensor_to_doubles(x, outcome->number + outcome->n);
    outcome->n += (int)tensor_numel(x);
}

/* A piece of work. `prepare` runs before each try, and its allocations succeed. `attempt` is the
 * try: it closes its tapes and returns whether all of it succeeded. `inspect` then checks that a
 * failure changed nothing, and `clean` frees what `prepare` made. */
typedef struct {
    const char *name;
    void (*prepare)(void *context);
    bool (*attempt)(void *context, Outcome *outcome);
    void (*inspect)(void *context, bool succeeded);
    void (*clean)(void *context);
} Work;

static void arm(int fail_at, bool persistent) {
    tensor_empty_cache();
    memory.armed = true;
    memory.persistent = persistent;
    memory.fail_at = fail_at;
    memory.calls = 0;
    memory.failed = 0;
    memory.blocks = 0;
}

/* One try, in which allocation number fail_at fails. Did the work succeed? */
static bool try_once(const Work *work, void *context, int fail_at, bool persistent,
                     Outcome *outcome) {
    int64_t live = tensor_live();
    tensor_manual_seed(1);
    if (work->prepare) work->prepare(context);
    int64_t prepared = tensor_live();
    outcome->n = 0;
    arm(fail_at, persistent);
    bool succeeded = work->attempt(context, outcome);
    memory.armed = false;
    if (!succeeded) {
        ck_assert_msg(memory.failed > 0, "%s failed by itself: %s", work->name, tensor_error());
        ck_assert_msg(tensor_error() != NULL, "%s: allocation %d failed and nobody says so",
                      work->name, fail_at);
        ck_assert_msg(strstr(tensor_error(), "out of memory") != NULL, "%s: %s", work->name,
                      tensor_error());
        ck_assert_msg(!work->inspect || prepared <= tensor_live(), "%s", work->name);
    } else ck_assert_msg(!tensor_error(), "%s succeeded, and yet: %s", work->name, tensor_error());
    tensor_clear_error();
    ck_assert_msg(!tape_print(stdout), "%s leaves a tape open", work->name);
    tensor_clear_error();
    if (work->inspect) work->inspect(context, succeeded);
    if (work->clean) work->clean(context);
    tensor_empty_cache();
    ck_assert_msg(tensor_live() == live, "%s: allocation %d failed and %d tensors are left over",
                  work->name, fail_at, (int)(tensor_live() - live));
    ck_assert_msg(memory.blocks == 0, "%s: allocation %d failed and %d blocks are left over",
                  work->name, fail_at, memory.blocks);
    bool done = memory.failed == 0;
    ck_assert_msg(!done || succeeded, "%s", work->name);
    return succeeded;
}

static void expect_outcome(const Work *work, int k, const Outcome *got, const Outcome *right) {
    ck_assert_int_eq(got->n, right->n);
    for (int i = 0; i < got->n; i++)
        ck_assert_msg(same_number(got->number[i], right->number[i], 0),
                      "%s: allocation %d failed, it claims success, and number %d is %g, not %g",
                      work->name, k, i, got->number[i], right->number[i]);
}

static void exhaust(const Work *work, void *context) {
    static Outcome right, got;
    ck_assert(try_once(work, context, 0, false, &right));
    for (int persistent = 0; persistent < 2; persistent++) {
        int k = 1;
        do {
            if (try_once(work, context, k, persistent, &got)) expect_outcome(work, k, &got, &right);
            ck_assert_int_lt(k, 10000);
        } while (memory.failed > 0 && k++);
    }
}

/* ---- ops: forward and backward ------------------------------------------------------------- */

typedef struct {
    const Sample *sample;
    bool has_grads; /* the inputs have gradients already */
    bool permuted;  /* neither the inputs nor dy are row-major */
    Tensor *in[SAMPLE_INPUTS], *c;
} OpWork;

static Tensor *apply_work(OpWork *work) {
    return call_op(work->sample->op, work->in, work->sample->n, work->sample->number);
}

static bool gets_grad(const OpWork *work, int i) {
    const Op *op = find_op(work->sample->op); /* NULL for a composite */
    return work->sample->in[i].kind == 'r' && (!op || op->backward);
}

static void prepare_op(void *context) {
    OpWork *work = context;
    for (int i = 0; i < work->sample->n; i++) {
        work->in[i] = sample_input(work->sample, i, F64);
        if (work->permuted) work->in[i] = permuted(work->in[i]);
        if (work->sample->in[i].kind == 'r') ag_requires_grad(work->in[i]);
        if (work->has_grads && gets_grad(work, i)) {
            work->in[i]->grad = tensor_clone(work->in[i]);
            tensor_fill(work->in[i]->grad, 0.5);
        }
    }
    ck_assert(tape_begin_no_grad());
    Tensor *y = apply_work(work);
    ck_assert_msg(y != NULL, "%s: %s", work->sample->op, tensor_error());
    work->c = y->dtype == F64 ? tensor_full(y->shape, 0.25) : NULL;
    if (work->c && work->permuted) work->c = permuted(work->c);
    tape_end();
    tensor_manual_seed(2);
}

static bool attempt_op(void *context, Outcome *outcome) {
    OpWork *work = context;
    tape_begin();
    Tensor *y = apply_work(work);
    bool done = y && (!y->requires_grad || ag_backward_from(y, work->c));
    if (done) note(outcome, y);
    for (int i = 0; i < work->sample->n && done; i++)
        if (gets_grad(work, i)) note(outcome, work->in[i]->grad);
    tape_end();
    return done;
}

/* All or nothing. */
static void inspect_op(void *context, bool succeeded) {
    const OpWork *work = context;
    for (int i = 0; i < work->sample->n && !succeeded; i++) {
        const Tensor *grad = work->in[i]->grad;
        ck_assert_msg(!grad == !(work->has_grads && gets_grad(work, i)), "%s: input %d has a %s",
                      work->sample->op, i, "gradient from a backward pass that failed");
        for (int64_t e = 0; grad && e < tensor_numel(grad); e++)
            ck_assert_double_eq(((const double *)grad->data)[e], 0.5);
    }
}

static void clean_op(void *context) {
    OpWork *work = context;
    for (int i = 0; i < work->sample->n; i++) tensor_release(work->in[i]);
    tensor_release(work->c);
}

static void exhaust_op(const Sample *sample) {
    const Work work = {sample->op, prepare_op, attempt_op, inspect_op, clean_op};
    const bool is_view = !strcmp(sample->op, "view"); /* view refuses such strides */
    for (int way = 0; way < (is_view ? 2 : 4); way++)
        exhaust(&work, &(OpWork){.sample = sample, .has_grads = way % 2, .permuted = way / 2});
}

static int number_of_composites(void) {
    int of_composites = 0;
    while (samples_of_composites()[of_composites].op) of_composites++;
    return of_composites;
}

CASE("autograd")
LOOP_TEST(ops, number_of_ops()) { each_sample(_i, exhaust_op); }

/* With the cache on, the library can return cached blocks to the system and try again. (With
 * CK_FORK=no the setting was read before, so this test then equals the one above.) */
LOOP_TEST(ops_with_a_cache, sampled(number_of_ops(), 7)) {
    setenv("TAPEHEAD_CACHE", "1G", 1);
    each_sample(_i * number_of_ops() / sampled(number_of_ops(), 7), exhaust_op);
    setenv("TAPEHEAD_CACHE", "0", 1);
}

LOOP_TEST(composite_ops, number_of_composites()) {
    const Sample *s = &samples_of_composites()[_i];
    const Work work = {s->op, prepare_op, attempt_op, inspect_op, clean_op};
    exhaust(&work, &(OpWork){.sample = s});
}

/* ---- the tape ------------------------------------------------------------------------------ */

typedef struct {
    Tensor *x, *w;
} Leaves;

static void prepare_leaves(void *context) {
    Leaves *leaves = context;
    leaves->x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    leaves->w = LEAF(SHAPE(2, 2), 0.5, 0.25, -0.5, 1);
}

static void clean_leaves(void *context) {
    Leaves *leaves = context;
    RELEASE(leaves->x, leaves->w);
}

static void inspect_leaves(void *context, bool succeeded) {
    const Leaves *leaves = context;
    if (succeeded) return;
    ck_assert_ptr_null(leaves->x->grad);
    ck_assert_ptr_null(leaves->w->grad);
}

/* A tape that must grow, an op with many inputs, gradients that are kept. */
static bool attempt_long_tape(void *context, Outcome *outcome) {
    Leaves *l = context;
    tape_begin();
    tape_keep_grads(true);
    Tensor *y = l->x;
    for (int i = 0; i < 66; i++) y = ag_add(y, l->w);
    y = ag_cat((Tensor *[]){y, l->x, l->w, y, l->x}, 5, 0);
    Tensor *loss = ag_sum(ag_mul(ag_expand(ag_sum_dims(y, AXES(0), true), SHAPE(10, 2)), y));
    bool done = ag_backward(loss);
    const Tensor *all[] = {loss, l->x->grad, l->w->grad, done ? y->grad : NULL};
    for (int i = 0; i < 4 && done; i++) note(outcome, all[i]);
    tape_end();
    return done;
}

/* A result is kept through the ends of two tapes. Whatever fails, both tapes are closed. A tensor
 * that is given to a tape is freed with the tape, or at once if that fails. */
static bool attempt_nested_tapes(void *context, Outcome *outcome) {
    Leaves *l = context;
    tape_begin();
    tape_own(tensor_ones(SHAPE(2)));
    tape_begin_no_grad();
    tape_begin_no_grad();
    Tensor *constant = tape_end_keeping(ag_softmax(ag_matmul(l->x, l->w), -1));
    constant = tape_end_keeping(ag_square(constant));
    bool done = ag_backward(ag_sum(ag_mul(l->x, constant)));
    if (done) note(outcome, l->x->grad);
    tape_end();
    return done;
}

/* A value that is used three times; its gradients cannot be added in place. */
static bool attempt_fan_out(void *context, Outcome *outcome) {
    Leaves *l = context;
    tape_begin();
    Tensor *y = ag_reshape(l->x, SHAPE(4));
    Tensor *z = ag_add(ag_reshape(y, SHAPE(2, 2)), ag_expand(ag_sum(y), SHAPE(2, 2)));
    bool done = ag_backward(ag_sum(ag_add(z, ag_add(l->x, ag_transpose(l->x, 0, 1)))));
    if (done) note(outcome, l->x->grad);
    tape_end();
    return done;
}

static bool attempt_comparison(void *context, Outcome *outcome) {
    Leaves *l = context;
    tape_begin();
    Tensor *y = ag_where(ag_gt_scalar(l->x, 2), ag_scale(l->x, 3), l->w);
    bool done = ag_backward(ag_sum(y));
    if (done) note(outcome, y);
    if (done) note(outcome, l->x->grad);
    tape_end();
    return done;
}

/* A function of a program, with ops forward and backward; its inputs are let go. */
static Tensor *product_forward(const AgCall *call) {
    return tensor_retain(ag_matmul(ag_scale(call->in[0], 2), call->in[1]));
}
static void product_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_retain(ag_scale(ag_matmul(dy, ag_transpose(call->in[1], 0, 1)), 2));
    dx[1] = tensor_retain(ag_scale(ag_matmul(ag_transpose(call->in[0], 0, 1), dy), 2));
}
static void doubles_dx(const AgCall *call, Tensor *dy, Tensor **dx) {
    Tensor *right = dx[0];
    (void)call;
    (void)dy;
    dx[0] = tensor_retain(ag_scale(right, 2));
    tensor_release(right);
}
static bool attempt_function(void *context, Outcome *outcome) {
    static const AgFunction product = {"product", NULL, NULL, product_forward, product_backward};
    Leaves *l = context;
    tape_begin();
    Tensor *x = ag_neg(l->x);
    Tensor *y = ag_call(&product, 2, (Tensor *[]){x, l->w}, NULL);
    Tensor *loss = ag_sum(ag_square(y));
    bool done = ag_let_go(x) && tape_register_hook(0, doubles_dx, NULL) && ag_backward(loss);
    const Tensor *all[] = {loss, l->x->grad, l->w->grad};
    for (int i = 0; i < 3 && done; i++) note(outcome, all[i]);
    tape_end();
    return done;
}

static Tensor *checked_function(Tensor **in, void *context) {
    (void)context;
    return ag_tanh(ag_dropout(ag_matmul(in[0], in[1]), 0.5));
}

static FILE *json;

static void prepare_json(void *context) {
    prepare_leaves(context);
    json = tmpfile();
}

static void clean_json(void *context) {
    clean_leaves(context);
    fclose(json);
}

/* After a failure nothing is written. */
static void inspect_json(void *context, bool succeeded) {
    (void)context;
    ck_assert(succeeded == (ftell(json) > 0));
}

static bool attempt_json(void *context, Outcome *outcome) {
    Leaves *l = context;
    tape_begin();
    tape_keep_grads(true);
    Tensor *scores = ag_reshape(ag_matmul(l->x, l->w), SHAPE(1, 2, 2));
    Tensor *y = ag_dropout(ag_masked_softmax(scores, NULL), 0.5);
    TapeLine line;
    bool done = ag_backward(ag_sum(ag_square(y)));
    Tensor *dx[1] = {NULL};
    done = done && tape_line(3, &line) && tape_vjp(3, line.out->grad, dx);
    Tensor *again = done ? tape_forward(3) : NULL;
    done = again && tape_write_json(json);
    if (done) note(outcome, again);
    if (done) note(outcome, dx[0]);
    RELEASE(again, dx[0]);
    tape_end();
    return done;
}

/* Formulas in place of a backward, a right one and a mistake. */
static bool attempt_rules(void *context, Outcome *outcome) {
    Leaves *l = context;
    Planting planting = {0};
    tape_begin();
    tape_keep_grads(true);
    Tensor *product = ag_name(ag_matmul(l->x, l->w), "S");
    Tensor *y = ag_name(ag_softmax(product, -1), "A");
    Tensor *loss = ag_sum(ag_square(ag_name(ag_dropout(y, 0.5), "D")));
    bool done = rule_plant(&planting, "S.da: dS @ b'") && rule_plant(&planting, "A: y * dy") &&
                rule_plant(&planting, "D: dD * kept * 2") && rule_judge(&planting);
    const PlantedRule *mistake = done ? planting.first->next->rules[0] : NULL;
    if (done && (mistake->is_right || strcmp(mistake->mistake->id, "no_sum") != 0)) abort();
    if (done && !planting.first->rules[0]->is_right) abort();
    done = done && ag_backward(loss);
    const Tensor *all[] = {loss, l->x->grad, l->w->grad};
    for (int i = 0; i < 3 && done; i++) note(outcome, all[i]);
    tape_end();
    rule_free(&planting);
    return done;
}

/* The page of a tape: without memory there is none, never one that knows fewer rules. */
static bool attempt_page(void *context, Outcome *outcome) {
    const Recording recording = {.title = "t", .idea = "", .command = "", .columns = ""};
    Leaves *l = context;
    tape_begin();
    tape_keep_grads(true);
    Tensor *y = ag_dropout(ag_softmax(ag_matmul(l->x, ag_transpose(l->w, 0, 1)), -1), 0.5);
    Tensor *z = ag_relu(ag_sub(y, ag_scale(y, 3)));
    bool done = ag_backward(ag_sum(ag_square(ag_add(z, ag_exp(y)))));
    char *page = done ? recording_as_json(&recording) : NULL;
    double hash = 0;
    for (const char *c = page; c && *c; c++) hash = fmod(hash * 31 + *c, 1e9 + 7);
    if (page) outcome->number[outcome->n++] = hash;
    free(page);
    tape_end();
    return page != NULL;
}

static bool attempt_gradcheck(void *context, Outcome *outcome) {
    Leaves *l = context;
    const Generator before = *tensor_generator_current();
    bool done =
        ag_gradcheck(checked_function, (Tensor *[]){l->x, l->w}, 2, NULL, (GradcheckOptions){0});
    if (memcmp(&before, tensor_generator_current(), sizeof before) != 0) abort();
    note(outcome, l->x); /* as they were */
    note(outcome, l->w);
    if (outcome->number[3] != 4 || outcome->number[4] != 0.5) abort();
    return done;
}

static const Work tape_work[] = {
    {"a long tape", prepare_leaves, attempt_long_tape, inspect_leaves, clean_leaves},
    {"nested tapes", prepare_leaves, attempt_nested_tapes, inspect_leaves, clean_leaves},
    {"fan out", prepare_leaves, attempt_fan_out, inspect_leaves, clean_leaves},
    {"a comparison", prepare_leaves, attempt_comparison, inspect_leaves, clean_leaves},
    {"a function of a program", prepare_leaves, attempt_function, inspect_leaves, clean_leaves},
    {"gradcheck", prepare_leaves, attempt_gradcheck, inspect_leaves, clean_leaves},
    {"rules of a reader", prepare_leaves, attempt_rules, inspect_leaves, clean_leaves},
    {"a page", prepare_leaves, attempt_page, NULL, clean_leaves},
    {"a tape as JSON", prepare_json, attempt_json, inspect_json, clean_json},
};

LOOP_TEST(tapes, COUNT(tape_work)) { exhaust(&tape_work[_i], &(Leaves){NULL, NULL}); }

/* ---- tensors ------------------------------------------------------------------------------- */

/* A call that fails draws no random numbers. */
static bool attempt_maker(void *context, Outcome *outcome) {
    const Maker *maker = context;
    const Generator before = *tensor_generator_current();
    Tensor *x = maker->make();
    if (x) note(outcome, x);
    if (!x && memcmp(&before, tensor_generator_current(), sizeof before) != 0) abort();
    tensor_release(x);
    return x != NULL;
}

CASE("tensor")
LOOP_TEST(creation, number_of_makers()) {
    Maker maker = makers[_i];
    exhaust(&(Work){.name = maker.name, .attempt = attempt_maker}, &maker);
}

static bool noted(Outcome *outcome, Tensor *x) {
    if (x) note(outcome, x);
    tensor_release(x);
    return x != NULL;
}

static bool attempt_clone(void *context, Outcome *outcome) {
    return noted(outcome, tensor_clone(((Leaves *)context)->x));
}
static bool attempt_to(void *context, Outcome *outcome) {
    return noted(outcome, tensor_to(((Leaves *)context)->x, I64));
}
static bool attempt_sort(void *context, Outcome *outcome) {
    Tensor *indices = NULL;
    Tensor *sorted = tensor_sort(((Leaves *)context)->w, &indices);
    if (!sorted && indices) abort();
    return noted(outcome, sorted) && noted(outcome, indices);
}

/* Writes the transpose of x to x, which needs a copy. */
static bool attempt_write(Leaves *l, bool add, Outcome *outcome) {
    const int64_t stride[] = {1, 2};
    memory.armed = false;
    Tensor *turned = tensor_as_strided(l->x, SHAPE(2, 2), stride, 0);
    memory.armed = true;
    bool done = add ? tensor_add_(l->x, turned, 2) : tensor_copy_from(l->x, turned);
    note(outcome, l->x);
    tensor_release(turned);
    return done;
}
static bool attempt_copy_from(void *context, Outcome *outcome) {
    return attempt_write(context, false, outcome);
}
static bool attempt_add(void *context, Outcome *outcome) {
    return attempt_write(context, true, outcome);
}

/* The elements of a view that is not contiguous are drawn in a copy first. */
static bool attempt_redraw(void *context, Outcome *outcome) {
    Leaves *l = context;
    memory.armed = false;
    Tensor *turned = tensor_as_strided(l->x, SHAPE(2, 2), (int64_t[]){1, 2}, 0);
    memory.armed = true;
    tensor_manual_seed(1);
    bool done = tensor_normal_(turned, 0, 1);
    note(outcome, l->x);
    tensor_release(turned);
    return done;
}

/* All or nothing. */
static void inspect_write(void *context, bool succeeded) {
    if (!succeeded) EXPECT_ELEMENTS(((Leaves *)context)->x, 1, 2, 3, 4);
}

static const Work tensor_work[] = {
    {"clone", prepare_leaves, attempt_clone, NULL, clean_leaves},
    {"to", prepare_leaves, attempt_to, NULL, clean_leaves},
    {"sort", prepare_leaves, attempt_sort, NULL, clean_leaves},
    {"copy_from", prepare_leaves, attempt_copy_from, inspect_write, clean_leaves},
    {"add_", prepare_leaves, attempt_add, inspect_write, clean_leaves},
    {"normal_", prepare_leaves, attempt_redraw, inspect_write, clean_leaves},
};

LOOP_TEST(tensors, COUNT(tensor_work)) { exhaust(&tensor_work[_i], &(Leaves){NULL, NULL}); }

/* ---- modules ------------------------------------------------------------------------------- */

static void *linear(void) { return nn_linear_new(4, 3, true); }
static void *lazy_linear(void) { return nn_linear_new(NN_LAZY, 3, true); }
static void *dropout(void) { return nn_dropout_new(0.5); }
static void *dot_product(void) { return nn_dot_product_attention_new(0.5); }
static void *additive(void) { return nn_additive_attention_new(3, 0.5); }
static void *multi_head(void) {
    return nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 4,
                                                                  .num_heads = 2,
                                                                  .bias = true,
                                                                  .query_size = 4,
                                                                  .key_size = 4,
                                                                  .value_size = 4});
}
static void *lazy_multi_head(void) {
    return nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .dropout = 0.1});
}

static void *embedding(void) { return nn_embedding_new(4, 3); }
static void *layer_norm(void) { return nn_layer_norm_new(SHAPE(3, 4)); }
static void *rms_norm(void) { return nn_rms_norm_new(SHAPE(3, 4)); }
static void *positional_encoding(void) { return nn_positional_encoding_new(4, 0.5, 3); }
static void *fused_multi_head(void) {
    return nn_multi_head_attention_new((MultiHeadAttentionConfig){
        .num_hiddens = 4, .num_heads = 2, .dropout = 0.1, .fused = true});
}

/* Two heads of queries that turn, and share one of keys and values. */
static void *shared_multi_head(void) {
    MultiHeadAttention *attention = nn_multi_head_attention_new((MultiHeadAttentionConfig){
        4, 2, .query_size = 4, .key_size = 4, .value_size = 4, .num_kv_heads = 1});
    if (!attention || nn_multi_head_attention_rope(attention, 10, ROPE_HALVES)) return attention;
    nn_free(attention);
    return NULL;
}

#define FORWARD(name, call)                                                                        \
    static Tensor *name##_forward_of(void *m, Tensor *x, Tensor *lens) {                           \
        (void)x, (void)lens;                                                                       \
        return call;                                                                               \
    }
FORWARD(linear, nn_linear_forward(m, x))
FORWARD(embedding, nn_embedding_forward(m, lens))
FORWARD(layer_norm, nn_layer_norm_forward(m, x))
FORWARD(rms_norm, nn_rms_norm_forward(m, x))
FORWARD(positional_encoding, nn_positional_encoding_forward(m, x))
FORWARD(dropout, nn_dropout_forward(m, x))
FORWARD(dot_product,
        nn_dot_product_attention_forward(m, x, x, x, (AttentionMask){.valid_lens = lens}))
FORWARD(additive, nn_additive_attention_forward(m, x, x, x, (AttentionMask){.valid_lens = lens}))
FORWARD(multi_head,
        nn_multi_head_attention_forward(m, x, x, x, (AttentionMask){.valid_lens = lens}))

typedef struct {
    const char *name;
    void *(*make)(void);
    Tensor *(*forward)(void *module, Tensor *x, Tensor *lens);
    bool lazy;
} Kind;

static const Kind kinds[] = {
    {"linear", linear, linear_forward_of, false},
    {"lazy linear", lazy_linear, linear_forward_of, true},
    {"dropout", dropout, dropout_forward_of, false},
    {"dot product attention", dot_product, dot_product_forward_of, false},
    {"additive attention", additive, additive_forward_of, true},
    {"multi-head attention", multi_head, multi_head_forward_of, false},
    {"lazy multi-head attention", lazy_multi_head, multi_head_forward_of, true},
    {"embedding", embedding, embedding_forward_of, false},
    {"layer norm", layer_norm, layer_norm_forward_of, false},
    {"rms norm", rms_norm, rms_norm_forward_of, false},
    {"positional encoding", positional_encoding, positional_encoding_forward_of, false},
    {"multi-head attention with rope", shared_multi_head, multi_head_forward_of, false},
    {"fused multi-head attention", fused_multi_head, multi_head_forward_of, true},
};
enum { KINDS = COUNT(kinds), SLOTS = 16 };

static bool attempt_make(void *context, Outcome *outcome) {
    const Kind *kind = *(const Kind *const *)context;
    Tensor **slots[SLOTS];
    void *module = kind->make();
    int n = module ? parameter_slots(module, slots, SLOTS) : 0;
    for (int i = 0; i < n; i++)
        if (*slots[i]) note(outcome, *slots[i]);
    nn_free(module);
    return module != NULL;
}

CASE("nn")
LOOP_TEST(constructors, KINDS) {
    const Kind *kind = &kinds[_i];
    exhaust(&(Work){.name = kind->name, .attempt = attempt_make}, &kind);
}

/* Attention with a cache, of two positions and then of one; with a window, if there is a context.
 */
static bool attempt_cached(void *context, Outcome *outcome) {
    MultiHeadAttention *attention = shared_multi_head();
    KVCache *cache = context ? nn_kv_cache_window_new(2) : nn_kv_cache_new(3);
    tape_begin_no_grad();
    Tensor *x = tape_own(tensor_ones(SHAPE(1, 3, 4)));
    for (int64_t from = 0; from < 3 && cache; from += 2) {
        Tensor *part = ag_slice(x, 1, from, from + 2);
        Tensor *y =
            nn_multi_head_attention_forward_cached(attention, part, cache, (AttentionMask){0});
        if (y) note(outcome, y);
        const int64_t before = cache->of || y ? 2 : 0; /* an error changes no length */
        if (cache->length != (y && from ? 3 : before)) abort();
    }
    tape_end();
    nn_kv_cache_free(cache);
    nn_free(attention);
    return !tensor_error();
}

TEST(a_cache_of_keys_and_values) {
    exhaust(&(Work){.name = "a cache", .attempt = attempt_cached}, NULL);
    exhaust(&(Work){.name = "a window", .attempt = attempt_cached}, &(bool){true});
}

/* ---- training steps ------------------------------------------------------------------------ */

typedef struct {
    const Kind *kind;
    Optimizer *(*make_optimizer)(void *module);
    void *module;
    Optimizer *optimizer;
    Tensor *x, *lens;
    enum { FORWARD, BACKWARD, STEP, DONE } reached; /* what was tried last */
    Outcome before;                                 /* the parameters */
} Training;

static void note_parameters(void *module, Outcome *outcome) {
    Tensor **slots[SLOTS];
    int n = parameter_slots(module, slots, SLOTS);
    for (int i = 0; i < n; i++)
        if (*slots[i]) note(outcome, *slots[i]);
}

static bool has_any_gradient(void *module) {
    Tensor **slots[SLOTS];
    int n = parameter_slots(module, slots, SLOTS);
    bool any = false;
    for (int i = 0; i < n; i++) any = any || (*slots[i] && (*slots[i])->grad);
    return any;
}

/* One step; the outcome is the parameters after the step. */
static bool attempt_training(void *context, Outcome *outcome) {
    Training *t = context;
    tape_begin();
    t->reached = FORWARD;
    Tensor *y = t->kind->forward(t->module, t->x, t->lens);
    Tensor *loss = ag_mean(ag_square(y));
    if (loss) {
        t->reached = BACKWARD;
        t->before.n = 0;
        note_parameters(t->module, &t->before);
    }
    if (loss && ag_backward(loss)) t->reached = STEP;
    if (t->reached == STEP && nn_optimizer_step(t->optimizer)) t->reached = DONE;
    tape_end();
    if (t->reached == DONE) note_parameters(t->module, outcome);
    return t->reached == DONE;
}

/* A module after two steps, so that there is a momentum that a failure could lose. */
static void prepare_training(void *context) {
    Training *t = context;
    t->module = t->kind->make();
    t->optimizer = t->make_optimizer(t->module);
    t->x = tensor_randn(SHAPE(2, 3, 4));
    t->lens = tensor_from_int64s(SHAPE(2), (int64_t[]){2, 3});
    ck_assert_ptr_nonnull(t->optimizer);
    if (nn_num_parameters(t->module) == 0 && !t->kind->lazy) ag_requires_grad(t->x);
    for (int i = 0; i < 2 && !t->kind->lazy; i++) {
        static Outcome unused;
        unused.n = 0;
        ck_assert_msg(attempt_training(t, &unused), "%s: %s", t->kind->name, tensor_error());
        nn_optimizer_zero_grad(t->optimizer);
    }
    tensor_release(t->x->grad);
    t->x->grad = NULL;
    tensor_manual_seed(3);
}

/* A failed step changed no gradient and no parameter, and the module can be trained further. */
static void inspect_training(void *context, bool succeeded) {
    static Outcome after;
    Training *t = context;
    if (succeeded) return;
    after.n = 0;
    note_parameters(t->module, &after);
    if (t->reached == FORWARD || t->reached == BACKWARD) {
        ck_assert_msg(!has_any_gradient(t->module), "%s", t->kind->name);
        ck_assert_ptr_null(t->x->grad);
    }
    if (t->reached == BACKWARD || t->reached == STEP) {
        ck_assert_int_eq(after.n, t->before.n);
        for (int i = 0; i < after.n; i++)
            ck_assert_msg(after.number[i] == t->before.number[i],
                          "%s: parameter %d has moved in a step that failed", t->kind->name, i);
    }
    nn_optimizer_zero_grad(t->optimizer);
    tensor_manual_seed(3);
    after.n = 0;
    ck_assert_msg(attempt_training(t, &after), "%s: %s", t->kind->name, tensor_error());
}

static void clean_training(void *context) {
    Training *t = context;
    nn_free(t->optimizer);
    nn_free(t->module);
    RELEASE(t->x, t->lens);
}

static Optimizer *plain_sgd(void *module) { return nn_sgd_new(module, (SGDConfig){.lr = 0.1}); }
static Optimizer *nesterov_sgd(void *module) {
    return nn_sgd_new(
        module, (SGDConfig){.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
}
static Optimizer *adamw(void *module) {
    return nn_adamw_new(module, (AdamWConfig){.lr = 0.1, .weight_decay = 0.01});
}
static Optimizer *(*const optimizers[])(void *) = {plain_sgd, nesterov_sgd, adamw};
enum { OPTIMIZERS = COUNT(optimizers) };

LOOP_TEST(training, KINDS *OPTIMIZERS) {
    static Training t;
    t = (Training){.kind = &kinds[_i / OPTIMIZERS], .make_optimizer = optimizers[_i % OPTIMIZERS]};
    exhaust(
        &(Work){t.kind->name, prepare_training, attempt_training, inspect_training, clean_training},
        &t);
}

/* A failed step is repeated. The result is the same as without the failure, so momentum was not
 * lost. */
static bool attempt_step_again(void *context, Outcome *outcome) {
    Training *t = context;
    if (!nn_optimizer_step(t->optimizer)) {
        if (memory.failed == 0 || !tensor_error()) abort();
        memory.armed = false;
        tensor_clear_error();
        if (!nn_optimizer_step(t->optimizer)) abort();
        memory.armed = true;
    }
    note_parameters(t->module, outcome);
    return true;
}

static void prepare_step(void *context) {
    Training *t = context;
    prepare_training(t);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_mean(ag_square(t->kind->forward(t->module, t->x, t->lens)))));
    tape_end();
}

LOOP_TEST(a_failed_step_can_be_taken_again, OPTIMIZERS) {
    static Training t;
    t = (Training){.kind = &kinds[5], .make_optimizer = optimizers[_i]};
    exhaust(&(Work){.name = "step",
                    .prepare = prepare_step,
                    .attempt = attempt_step_again,
                    .clean = clean_training},
            &t);
}

static void note_gradients(void *module, Outcome *outcome) {
    Tensor **slots[SLOTS];
    int n = parameter_slots(module, slots, SLOTS);
    for (int i = 0; i < n; i++) note(outcome, (*slots[i])->grad);
}

static bool attempt_clipping(void *context, Outcome *outcome) {
    Training *t = context;
    if (isnan(nn_clip_grad_norm(t->module, 1e-3))) return false;
    note_gradients(t->module, outcome);
    return true;
}

static void prepare_clipping(void *context) {
    Training *t = context;
    prepare_step(context);
    t->before.n = 0;
    note_gradients(t->module, &t->before);
}

static void inspect_clipping(void *context, bool succeeded) {
    static Outcome after;
    Training *t = context;
    after.n = 0;
    note_gradients(t->module, &after);
    ck_assert_int_eq(after.n, t->before.n);
    for (int i = 0; i < after.n && !succeeded; i++)
        ck_assert_msg(after.number[i] == t->before.number[i], "gradient %d has changed", i);
}

TEST(clipping) {
    static Training t;
    t = (Training){.kind = &kinds[5], .make_optimizer = plain_sgd};
    exhaust(
        &(Work){"clipping", prepare_clipping, attempt_clipping, inspect_clipping, clean_training},
        &t);
}

static bool attempt_optimizer(void *context, Outcome *outcome) {
    Training *t = context;
    Optimizer *optimizer = t->make_optimizer(t->module);
    (void)outcome;
    nn_free(optimizer);
    return optimizer != NULL;
}

LOOP_TEST(making_optimizers, OPTIMIZERS) {
    static Training t;
    t = (Training){.kind = &kinds[5], .make_optimizer = optimizers[_i]};
    exhaust(&(Work){.name = "optimizer",
                    .prepare = prepare_training,
                    .attempt = attempt_optimizer,
                    .clean = clean_training},
            &t);
}

/* ---- the sentences of modules -------------------------------------------------------------- */

static bool made(void *module) {
    nn_free(module);
    return module != NULL;
}
static bool make_linear(void *model) {
    (void)model;
    return made(nn_linear_new(2, 3, true));
}
static bool make_lazy_linear(void *model) {
    (void)model;
    return made(nn_linear_new(NN_LAZY, 3, true));
}
static bool make_dropout(void *model) {
    (void)model;
    return made(nn_dropout_new(0.5));
}
static bool make_optimizer(void *model) { return made(plain_sgd(model)); }
static bool make_cache(void *model) {
    (void)model;
    KVCache *cache = nn_kv_cache_new(2);
    nn_kv_cache_free(cache);
    return cache != NULL;
}

/* For some allocation, its failure leads to this error message. */
static void expect_refused(bool (*work)(void *), void *model, const char *sentence) {
    for (int k = 1;; k++) {
        arm(k, false);
        bool done = work(model);
        memory.armed = false;
        ck_assert_msg(!done, "nobody said: %s", sentence);
        if (!strcmp(tensor_error(), sentence)) break;
        tensor_clear_error();
    }
    expect_error(sentence);
}

TEST(modules_say_for_what_memory_is_missing) {
    Linear *layer = nn_linear_new(2, 3, true);
    expect_refused(make_dropout, NULL, "module_new: out of memory for Dropout");
    expect_refused(make_linear, NULL, "module_new: out of memory for Linear");
    expect_refused(make_linear, NULL, "add_parameter: out of memory for a field of Linear");
    expect_refused(make_lazy_linear, NULL, "module_new: out of memory for LazyLinear");
    expect_refused(make_optimizer, layer, "sgd: out of memory for a list of parameters");
    expect_refused(make_cache, NULL, "kv_cache: out of memory");
    nn_free(layer);
}

/* ---- files --------------------------------------------------------------------------------- */

static char file_name[64]; /* of the test */

static void make_file(void) {
    frame_setup();
    const int file = mkstemp(strcpy(file_name, "/tmp/tapehead-alloc-XXXXXX"));
    ck_assert_int_ge(file, 0);
    close(file);
}

static void remove_file(void) {
    ck_assert_int_eq(unlink(file_name), 0);
    frame_teardown();
}

static bool attempt_npy(void *context, Outcome *outcome) {
    bool saved = tensor_save_npy(((Leaves *)context)->x, file_name);
    Tensor *y = saved ? tensor_load_npy(file_name) : NULL;
    if (y) note(outcome, y);
    tensor_release(y);
    return y != NULL;
}

static bool attempt_safetensors(void *context, Outcome *outcome) {
    TensorDict *dict = tensor_dict_new();
    TensorDict *loaded = NULL;
    Leaves *l = context;
    bool ok = dict && tensor_dict_set(dict, "x", l->x) && tensor_dict_set(dict, "y", l->x) &&
              tensor_dict_set(dict, "z", l->x) && tensor_dict_set_metadata(dict, "k", "v") &&
              tensor_dict_set_metadata(dict, "l", "v") &&
              tensor_dict_set_metadata(dict, "k", "w") && tensor_dict_rename(dict, "y", "yy");
    if (ok && tensor_save_safetensors(dict, file_name)) loaded = tensor_load_safetensors(file_name);
    for (int i = 0; loaded && i < loaded->n; i++) note(outcome, loaded->entry[i].tensor);
    tensor_dict_free(dict);
    tensor_dict_free(loaded);
    return loaded != NULL;
}

static const Work file_work[] = {
    {"npy", prepare_leaves, attempt_npy, inspect_write, clean_leaves},
    {"safetensors", prepare_leaves, attempt_safetensors, inspect_write, clean_leaves},
};

CASE("files", .setup = make_file, .teardown = remove_file)
LOOP_TEST(files, COUNT(file_work)) { exhaust(&file_work[_i], &(Leaves){NULL, NULL}); }

typedef struct {
    Linear *linear, *lazy;
} Pair;

static void prepare_pair(void *context) {
    *(Pair *)context = (Pair){nn_linear_new(2, 3, true), nn_linear_new(NN_LAZY, 3, true)};
}
static bool attempt_checkpoint(void *context, Outcome *outcome) {
    Pair *pair = context;
    if (!nn_save(pair->linear, file_name) || !nn_load(pair->lazy, file_name)) return false;
    note(outcome, pair->lazy->weight);
    note(outcome, pair->lazy->bias);
    return true;
}
/* A lazy layer is loaded completely or not at all. */
static void inspect_pair(void *context, bool succeeded) {
    const Pair *pair = context;
    ck_assert((pair->lazy->weight != NULL) == succeeded && (pair->lazy->bias != NULL) == succeeded);
}
static void clean_pair(void *context) {
    nn_free(((Pair *)context)->linear);
    nn_free(((Pair *)context)->lazy);
}

TEST(checkpoints) {
    exhaust(&(Work){"checkpoint", prepare_pair, attempt_checkpoint, inspect_pair, clean_pair},
            &(Pair){NULL, NULL});
}

/* A file with an unexpected entry, without a bias, loaded by a load that is not strict. */
static bool attempt_part(void *context, Outcome *outcome) {
    Pair *pair = context;
    TensorDict *dict = tensor_dict_new();
    bool ok = dict && tensor_dict_set(dict, "weight", pair->linear->weight) &&
              tensor_dict_set(dict, "other", pair->linear->bias) &&
              tensor_save_safetensors(dict, file_name);
    IncompatibleKeys *keys = ok ? nn_load_not_strict(pair->lazy, file_name) : NULL;
    ok = keys && keys->num_missing == 1 && keys->num_unexpected == 1;
    nn_incompatible_keys_free(keys);
    tensor_dict_free(dict);
    if (ok) note(outcome, pair->lazy->weight);
    return ok;
}
static void inspect_part(void *context, bool succeeded) {
    const Pair *pair = context;
    ck_assert((pair->lazy->weight != NULL) == succeeded && pair->lazy->bias == NULL);
}

TEST(parts_of_checkpoints) {
    exhaust(&(Work){"part", prepare_pair, attempt_part, inspect_part, clean_pair},
            &(Pair){NULL, NULL});
}

/* The state of an optimizer after two steps is loaded into an optimizer that has taken one step. */
typedef struct {
    Linear *linear;
    Optimizer *(*make)(void *), *from, *to;
} Memory;

static void prepare_memory(void *context) {
    Memory *m = context;
    m->linear = nn_linear_new(2, 3, true);
    m->from = m->make(m->linear);
    m->to = m->make(m->linear);
    m->linear->weight->grad = tensor_ones(SHAPE(3, 2));
    m->linear->bias->grad = tensor_ones(SHAPE(3));
    ck_assert(nn_optimizer_step(m->from) && nn_optimizer_step(m->from) && nn_optimizer_step(m->to));
}
static bool attempt_memory(void *context, Outcome *outcome) {
    Memory *m = context;
    TensorDict *dict = tensor_dict_new();
    const bool ok = dict && nn_optimizer_state_dict(m->from, "o.", dict) &&
                    nn_optimizer_load_state_dict(m->to, "o.", dict);
    for (int i = 0; ok && i < dict->n; i++) note(outcome, dict->entry[i].tensor);
    tensor_dict_free(dict);
    return ok;
}
/* All state is the loaded state, or all state is the old state. */
static void inspect_memory(void *context, bool succeeded) {
    const Memory *m = context;
    TensorDict *dict = tensor_dict_new();
    ck_assert(nn_optimizer_state_dict(m->to, "", dict));
    ck_assert_double_eq(tensor_item(tensor_dict_get(dict, "weight.step")), succeeded ? 2 : 1);
    ck_assert_double_eq(tensor_item(tensor_dict_get(dict, "bias.step")), succeeded ? 2 : 1);
    tensor_dict_free(dict);
}
static void clean_memory(void *context) {
    const Memory *m = context;
    nn_free(m->from);
    nn_free(m->to);
    nn_free(m->linear);
}

LOOP_TEST(memories_of_optimizers, OPTIMIZERS) {
    exhaust(&(Work){"memory", prepare_memory, attempt_memory, inspect_memory, clean_memory},
            &(Memory){.make = optimizers[_i]});
}

static bool save_and_load_memory(void *optimizer) {
    TensorDict *dict = tensor_dict_new();
    const bool ok = dict && nn_optimizer_state_dict(optimizer, "", dict) &&
                    nn_optimizer_load_state_dict(optimizer, "", dict);
    tensor_dict_free(dict);
    return ok;
}

TEST(loading_says_for_what_memory_is_missing) {
    Linear *linear = nn_linear_new(2, 3, true);
    Optimizer *sgd = plain_sgd(linear);
    expect_refused(save_and_load_memory, sgd,
                   "optimizer_load_state_dict: out of memory for a list of entries");
    nn_free(sgd);
    nn_free(linear);
}

static bool save_and_load(void *model) {
    return nn_save(model, file_name) && nn_load(model, file_name);
}

static bool load_other_names(void *model) {
    TensorDict *dict = tensor_dict_new();
    const bool ok = nn_state_dict(model, "other.", dict) && nn_load_state_dict(model, "", dict);
    tensor_dict_free(dict);
    return ok;
}

static bool rename_weight(void *model) {
    TensorDict *dict = tensor_dict_new();
    const bool ok = nn_state_dict(model, "", dict) && tensor_dict_rename(dict, "weight", "w");
    tensor_dict_free(dict);
    return ok;
}

TEST(files_say_for_what_memory_is_missing) {
    static const char *const sentences[] = {
        "dict_new: out of memory",
        "dict: out of memory for another entry",
        "dict: out of memory for \"weight\"",
        "save_safetensors: out of memory for a list of names",
        "load: out of memory for a list of entries",
    };
    Linear *linear = nn_linear_new(2, 3, true);
    for (int i = 0; i < COUNT(sentences); i++) expect_refused(save_and_load, linear, sentences[i]);
    expect_refused(load_other_names, linear, "load_state_dict: out of memory for a list of names");
    expect_refused(rename_weight, linear, "dict_rename: out of memory for a list of names");
    expect_refused(rename_weight, linear, "dict_rename: out of memory for a name");
    nn_free(linear);
}

/* ---- does this suite see anything? --------------------------------------------------------- */

CASE("tensor")
TEST(allocations_are_counted_and_refused) {
    arm(3, false);
    Tensor *x = tensor_ones(SHAPE(2)); /* the tensor and its bytes */
    int calls = memory.calls, blocks = memory.blocks;
    Tensor *y = tensor_ones(SHAPE(2));
    memory.armed = false; /* disarm before the assertions, because Check allocates */
    ck_assert_int_eq(calls, 2);
    ck_assert_int_eq(blocks, 2);
    ck_assert_ptr_null(y);
    ck_assert_int_eq(memory.failed, 1);
    expect_error_like("out of memory: ", " bytes");
    tensor_release(x);
    ck_assert_int_eq(memory.blocks, 0);
}

/* ---- the suite ----------------------------------------------------------------------------- */

int main(void) {
    setenv("TAPEHEAD_CACHE", "0", 1); /* read at the first free */
    return run_tests("alloc_failure");
}
