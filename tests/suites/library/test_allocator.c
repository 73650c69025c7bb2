/* test_allocator.c - how many bytes of freed memory wait for the next tensor. Steady steps ask the
 * system for nothing. The waiting memory has a limit after steps of many sizes, after one large
 * step, for threads whose tensors are freed by other threads, and for threads that have ended.
 *
 * The linker replaces the system's allocation functions by the functions below. A test that depends
 * on the earlier steps of a thread runs in a new thread, which has no earlier steps. */
#include "../../../nn/nn.h"
#include "../../../tensor/internal.h"
#include "../common.h"
#include "common_locale.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __FreeBSD__
#include <malloc_np.h>
#else
#include <malloc.h>
#endif

enum { KB = 1024, MB = 1024 * KB };

/* For make tsan: this sanitizer ends a thread before the last destructors run. */
#ifdef __SANITIZE_THREAD__
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

/* tests/check-ports: where the compiler emulates thread-local variables, each round of destructors
 * at the end of a thread frees them, so in the next round the thread has forgotten that it gave its
 * lists back. */
#ifdef EMULATED_TLS
enum { ROUNDS = 1 };
#else
enum { ROUNDS = 4 }; /* all */
#endif

/* ---- between the library and the system ----------------------------------------------------- */

static atomic_long bytes, asked; /* bytes held now; how many allocations there were */
static atomic_int refusals;      /* how many of the next allocations fail */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    if (refusals > 0 && refusals-- > 0) return NULL;
    void *block = __real_aligned_alloc(alignment, size);
    bytes += (long)malloc_usable_size(block);
    asked++;
    return block;
}
/* free gets blocks of malloc, too; no test that reads `bytes` frees such a block. */
void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
    bytes -= (long)malloc_usable_size(block);
    __real_free(block);
}

static atomic_int trims; /* calls of malloc_trim, a function of glibc */
#ifdef __GLIBC__
int __real_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad) {
    trims++;
    return __real_malloc_trim(pad);
}
#endif

/* Runs f in a new thread; f reads and writes the numbers. */
static void in_a_thread(void *(*f)(void *), long long *number) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, f, number), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static void use(int64_t size) { tensor_release(tensor_make(SHAPE(size), BOOL)); }

/* A step that uses `count` blocks of this size at the same time. */
static void step(int count, int64_t size) {
    tape_begin_no_grad();
    for (int i = 0; i < count; i++) tape_own(tensor_make(SHAPE(size), BOOL));
    tape_end();
}

/* ---- steady steps --------------------------------------------------------------------------- */

static void train(MultiHeadAttention *attention, Optimizer *adamw, Tensor *x) {
    tape_begin();
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    nn_optimizer_zero_grad(adamw);
    ck_assert(ag_backward(ag_mse_loss(y, x, REDUCE_MEAN)));
    ck_assert(nn_clip_grad_norm(attention, 1) >= 0);
    ck_assert(nn_optimizer_step(adamw));
    tape_end();
}

CASE("steady")
LOOP_TEST(a_steady_training_step_asks_for_nothing, 2) {
    MultiHeadAttention *attention =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 32,
                                                               .num_heads = 4,
                                                               .query_size = 32,
                                                               .key_size = 32,
                                                               .value_size = 32,
                                                               .dropout = 0.1,
                                                               .fused = _i});
    Optimizer *adamw = nn_adamw_new(attention, (AdamWConfig){.lr = 1e-3});
    Tensor *x = tensor_randn(SHAPE(3, 40, 32));
    for (int i = 0; i < 5; i++) train(attention, adamw, x);
    const long long before = asked;
    for (int i = 0; i < 50; i++) train(attention, adamw, x);
    ck_assert_int_eq(asked, before);
    tensor_release(x);
    nn_free(adamw);
    nn_free(attention);
}

/* The first two steps of a thread, and what the next ones ask for. */
static void *three_steps(void *number) {
    Linear *linear = nn_linear_new(40, 40, true);
    Optimizer *adamw = nn_adamw_new(linear, (AdamWConfig){.lr = 1e-3});
    Tensor *x = tensor_randn(SHAPE(8, 40));
    for (int i = 0; i < 8; i++) {
        if (i == 2) *(long long *)number = asked;
        tape_begin();
        Tensor *y = nn_linear_forward(linear, x);
        nn_optimizer_zero_grad(adamw);
        ck_assert(ag_backward(ag_mse_loss(y, x, REDUCE_MEAN)) && nn_optimizer_step(adamw));
        tape_end();
    }
    *(long long *)number -= asked;
    tensor_release(x);
    nn_free(adamw);
    nn_free(linear);
    return NULL;
}

TEST(the_third_step_asks_for_nothing) {
    long long number;
    in_a_thread(three_steps, &number);
    ck_assert_int_eq(number, 0);
}

/* Uses ten blocks of ten sizes, one after the other: their sum is ten times the memory in use at
 * any time.
 */
static void *ten_sizes(void *number) {
    for (int i = 0; i < 50; i++) {
        if (i == 30) *(long long *)number = asked;
        tape_begin_no_grad();
        for (int k = 0; k < 10; k++) use(MB + k * 128 * KB);
        tape_end();
    }
    *(long long *)number -= asked;
    return NULL;
}

TEST(a_steady_step_of_many_sizes_asks_for_nothing) {
    long long number;
    in_a_thread(ten_sizes, &number);
    ck_assert_int_eq(number, 0);
}

/* A large step among small ones, as when a model is evaluated now and then. */
static void *one_large_among_small(void *number) {
    for (int i = 0; i < 200; i++) {
        if (i == 40) *(long long *)number = asked;
        step(4, i % 10 == 0 ? MB : 8 * KB);
    }
    *(long long *)number -= asked;
    return NULL;
}

TEST(small_steps_between_do_not_count) {
    long long number;
    in_a_thread(one_large_among_small, &number);
    ck_assert_int_eq(number, 0);
}

/* ---- steps that differ ---------------------------------------------------------------------- */

/* Steps with blocks of 1 to 40 times 64 KB, in a mixed order. *number becomes the most bytes held
 * after a step. */
static void *forty_sizes(void *number) {
    long long *most = number;
    const long long before = bytes;
    for (int i = 0; i < 400; i++) {
        step(5, (i * 7 % 40 + 1) * 64 * KB);
        if (bytes - before > *most) *most = bytes - before;
    }
    return NULL;
}

CASE("cap")
TEST(steps_of_many_sizes_hold_half_again_what_the_largest_needs) {
    long long most = 0;
    in_a_thread(forty_sizes, &most);
    const double largest = 5.0 * 40 * 64 * KB;
    ck_assert_double_ge((double)most, largest); /* so freed blocks wait */
    ck_assert_double_le((double)most, 1.55 * largest);
}

/* The same without any tape. */
static void *sizes_without_a_tape(void *number) {
    long long *most = number;
    const long long before = bytes;
    for (int i = 0; i < 400; i++) {
        use((i * 7 % 40 + 1) * 64 * KB);
        if (bytes - before > *most) *most = bytes - before;
    }
    return NULL;
}

TEST(so_they_do_without_a_tape) {
    long long most = 0;
    in_a_thread(sizes_without_a_tape, &most);
    ck_assert_int_ge(most, 40 * 64 * KB);
    ck_assert_double_le((double)most, 1.55 * 40 * 64 * KB);
}

/* If the two blocks of a step do not both fit into the limit, each step gets them from the system
 * again. */
static void *come_and_go(void *number) {
    for (int i = 0; i < 3; i++) {
        tape_begin_no_grad();
        for (int k = 0; k < 100; k++) use(MB + k % 2 * 128 * KB);
        tape_end();
    }
    return sizes_without_a_tape(number);
}

TEST(blocks_that_come_and_go_count_once) {
    long long most = 0;
    in_a_thread(come_and_go, &most);
    ck_assert_double_le((double)most, 1.55 * 40 * 64 * KB);
}

/* *number: the number of nodes; it becomes the bytes that are held afterwards */
static void *one_long_tape(void *number) {
    const int nodes = (int)*(long long *)number;
    for (int i = 0; i < 40; i++) step(4, KB); /* ordinary steps first */
    const long long before = bytes;
    Tensor *x = ag_requires_grad(tensor_ones(SHAPE(4)));
    tape_begin();
    Tensor *y = x;
    for (int i = 0; i < nodes && y; i++) y = ag_neg(y);
    const long long during = bytes - before;
    if (!ag_backward(ag_sum(y)) || during < nodes * 500LL) abort();
    tape_end();
    tensor_release(x);
    *(long long *)number = bytes - before;
    return NULL;
}

TEST(one_long_tape_leaves_nothing_behind) {
    const int before = trims;
    const int most = 64 * KB + 1024 * 384; /* of the structs of its tensors 1024 wait */
    long long number = 1000;
    in_a_thread(one_long_tape, &number);
    ck_assert_int_lt(number, most);
    ck_assert_int_eq(trims, before);
    number = 100000;
    in_a_thread(one_long_tape, &number);
    ck_assert_int_lt(number, most);
#ifdef __GLIBC__
    ck_assert_int_gt(trims, before); /* the heap must shrink, even if a block at its end is in
                                      * use */
#endif
}

/* number: the bytes held after large steps; how many allocations the small steps after them make;
 * the bytes held at the end */
static void *large_steps_first(void *number) {
    long long *result = number, asked_before = 0;
    const long long before = bytes;
    for (int i = 0; i < 40; i++) step(5, 4 * MB);
    result[0] = bytes - before;
    for (int i = 0; i < 40; i++) {
        if (i == 3) asked_before = asked;
        step(5, 64 * KB);
    }
    result[1] = asked - asked_before;
    result[2] = bytes - before;
    return NULL;
}

TEST(large_steps_are_forgotten_without_a_trace) {
    long long number[3];
    in_a_thread(large_steps_first, number);
    ck_assert_int_ge(number[0], 5 * 4 * MB);
    ck_assert_int_eq(number[1], 0);
    ck_assert_double_le((double)number[2], 1.55 * 5 * 64 * KB);
}

/* ---- tensors that another thread frees ------------------------------------------------------ */

/* A loader hands batches to another thread, one at a time. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    Tensor *batch; /* NULL: the loader should make the next one */
    bool stopped;
} loader = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false};

static void hand_over(Tensor *batch) {
    pthread_mutex_lock(&loader.mutex);
    while (loader.batch) pthread_cond_wait(&loader.changed, &loader.mutex);
    loader.batch = batch;
    pthread_cond_broadcast(&loader.changed);
    pthread_mutex_unlock(&loader.mutex);
}

static Tensor *take_over(void) {
    pthread_mutex_lock(&loader.mutex);
    while (!loader.batch) pthread_cond_wait(&loader.changed, &loader.mutex);
    Tensor *batch = loader.batch;
    loader.batch = NULL;
    pthread_cond_broadcast(&loader.changed);
    pthread_mutex_unlock(&loader.mutex);
    return batch;
}

static void stop_loader(void) {
    pthread_mutex_lock(&loader.mutex);
    loader.stopped = true;
    pthread_cond_broadcast(&loader.changed);
    pthread_mutex_unlock(&loader.mutex);
}

enum { BATCHES = 300 };

/* *number: the most bytes that the loader holds in later work of its own. It makes the batches on
 * three tapes, as if it computed something, so no step needs the memory of all batches. */
static void *load(void *number) {
    for (int i = 0; i < BATCHES; i++) {
        if (i % (BATCHES / 3) == 0) tape_begin_no_grad();
        hand_over(tensor_make_zeros(SHAPE(MB), BOOL));
        if (i % (BATCHES / 3) == BATCHES / 3 - 1) tape_end();
    }
    pthread_mutex_lock(&loader.mutex);
    while (!loader.stopped) pthread_cond_wait(&loader.changed, &loader.mutex);
    pthread_mutex_unlock(&loader.mutex);
    return sizes_without_a_tape(number);
}

CASE("threads")
TEST(batches_of_a_loader_do_not_pile_up) {
    pthread_t thread;
    long long own = 0, most = 0;
    const long long before = bytes;
    ck_assert_int_eq(pthread_create(&thread, NULL, load, &own), 0);
    for (int i = 0; i < BATCHES; i++) {
        tape_begin_no_grad();
        ck_assert_ptr_nonnull(ag_logical_not(tape_own(take_over())));
        if (bytes - before > most) most = bytes - before;
        tape_end();
    }
    stop_loader();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_ge(most, 2 * MB);
    ck_assert_int_le(most, 10 * MB);
    ck_assert_int_le(own, 10 * MB); /* no batch still counts as in use */
}

/* ---- threads that end ----------------------------------------------------------------------- */

static Tensor *left; /* a tensor of a thread that has ended */

static void *leave_a_tensor(void *number) {
    sizes_without_a_tape(number);
    left = tensor_make(SHAPE(96 * MB), BOOL);
    return NULL;
}

/* A new thread that gets the number of an ended thread owns the blocks that the ended thread still
 * had in use. */
TEST(a_thread_that_ends_gives_back_what_waits) {
    for (int i = 0; i < 2; i++) {
        long long number = 0;
        const long long before = bytes;
        in_a_thread(leave_a_tensor, &number);
        ck_assert_double_le((double)number, 1.55 * 40 * 64 * KB);
        ck_assert_int_ge(bytes - before, 96 * MB);
        ck_assert_int_le(bytes - before, 96 * MB + 64 * KB);
        if (i == 0) tensor_release(left);
        else in_a_thread(forty_sizes, &number);
    }
    tensor_release(left);
}

/* A destructor that runs in ROUNDS rounds of destructors, so it also runs after the destructor of
 * the allocator. Then the thread has no lists for blocks. */
static pthread_key_t late;
static Tensor *for_later;
static int rounds;

static void end_late(void *round) {
    use(MB); /* allocates and frees a block, although the thread has no lists any more */
    tensor_release(for_later);
    for_later = NULL;
    if (++rounds < ROUNDS) pthread_setspecific(late, round);
}

static void *begin(void *unused) {
    use(MB); /* this thread gets lists */
    for_later = tensor_make(SHAPE(MB), BOOL);
    pthread_setspecific(late, &late);
    return unused;
}

LOOP_TEST(a_tensor_may_be_freed_when_its_thread_has_all_but_ended, !THREAD_SANITIZER) {
    use(MB); /* now the allocator has a key; its destructor runs before the destructor of a later
              * key */
    ck_assert_int_eq(pthread_key_create(&late, end_late), 0);
    const long long before = bytes;
    in_a_thread(begin, NULL);
    ck_assert_int_le(bytes - before, 8 * KB);
    pthread_key_delete(late);
}

/* *number: how many allocations two uses of one block make */
static void *use_twice(void *number) {
    const long long before = asked;
    use(MB);
    use(MB);
    *(long long *)number = asked - before;
    return NULL;
}

TEST(every_thread_has_lists_however_many_there_were) {
    long long number = 0;
    for (int i = 0; i < 1100; i++) {
        in_a_thread(use_twice, &number);
        ck_assert_msg(number == 3, "thread %d: %lld", i, number);
    }
}

/* ---- limits --------------------------------------------------------------------------------- */

static const char *program;

static const char *decimal_point = "."; /* of the new process */

/* Frees 16 blocks of 256 KB in a new process. Returns how many of them wait. EMULATOR is a command
 * that runs programs of another machine. */
static int waiting_with(const char *setting) {
    char command[1000];
    int waiting = -1;
    snprintf(command, sizeof command, "%s $EMULATOR '%s' %s", setting, program, decimal_point);
    FILE *in = popen(command, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fscanf(in, "%d", &waiting), 1);
    ck_assert_int_eq(pclose(in), 0);
    return waiting;
}

static int print_waiting(const char *point) {
    Tensor *x[16];
    if (strcmp(point, ".") != 0 && !set_decimal_point(point)) return EXIT_FAILURE;
    const long long before = bytes;
    for (int i = 0; i < 16; i++) x[i] = tensor_make(SHAPE(256 * KB), BOOL);
    for (int i = 0; i < 16; i++) tensor_release(x[i]);
    printf("%d\n", (int)((bytes - before) / (256 * KB)));
    return EXIT_SUCCESS;
}

CASE("limits")
TEST(the_environment_limits_what_waits) {
    ck_assert_int_eq(waiting_with("unset TAPEHEAD_CACHE;"), 16);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=0"), 0);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=100"), 0);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=600000"), 2);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=1100K"), 4);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=2M"), 7); /* the structs of the tensors wait,
                                                             * too */
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=1G"), 16);
    static const char *const nonsense[] = {"", "G", "-1", "many", "1MB", "3x", "nan", "1e30"};
    for (int i = 0; i < COUNT(nonsense); i++) {
        const char *setting = format("TAPEHEAD_CACHE=%s", nonsense[i]);
        ck_assert_msg(waiting_with(setting) == 16, "%s", setting);
    }
}

/* A program's locale may write 1,1. */
TEST(a_limit_has_a_decimal_point_in_every_locale) {
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=1.1M"), 4);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=.5e"), 16);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=1."), 0);
#ifdef __GLIBC__
    decimal_point = ",";
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=1.1M"), 4);
    ck_assert_int_eq(waiting_with("TAPEHEAD_CACHE=1,1M"), 16);
#endif
}

/* If the system refuses memory, the waiting blocks are returned to the system, and the library asks
 * again. */
static void *refused(void *number) {
    use(MB);
    const long long before = bytes;
    refusals = 1;
    Tensor *x = tensor_make(SHAPE(100), BOOL); /* no waiting block has this size */
    refusals = 0;
    *(long long *)number = x ? bytes - before : 1;
    tensor_release(x);
    return NULL;
}

TEST(what_waits_is_given_back_before_memory_is_out) {
    long long number;
    in_a_thread(refused, &number);
    ck_assert_int_lt(number, -MB + 8 * KB);
    tensor_empty_cache();
    refusals = 1;
    FAILS(tensor_make(SHAPE(5 * MB), BOOL), "out of memory: 64 bytes");
    refusals = 0;
}

/* ---- the suite ------------------------------------------------------------------------------ */

int main(int argc, char **argv) {
    if (argc > 1) return print_waiting(argv[1]);
    program = argv[0];
    unsetenv("TAPEHEAD_CACHE"); /* the sanitizers are run with TAPEHEAD_CACHE=0 */
    return run_tests("allocator");
}
