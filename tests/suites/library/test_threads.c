/* test_threads.c - neither the number of threads nor the width of vectors changes a bit of any
 * result: of any op, of products on all paths, of a training run. The suite also tests the pool of
 * threads: more threads, fewer threads, a system that refuses threads, other threads of the
 * program, fork, signals, exit, and a shared library that is closed.
 *
 * Small tensors are cut like large ones, and the threads take turns, so that every thread does some
 * work.
 */
#ifdef __linux__
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): sched_setaffinity wants it */
#endif
#include "../../../nn/nn.h"
#include "../../../tensor/internal.h"
#include "../../../tensor/fast/threads.h"
#include "../../../tensor/parts.h"
#include "../common.h"
#include "../common_program.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int counts[] = {1, 2, 3, 7, 16};

static void share_all(void) {
    worth_a_thread = 32;
    threads_take_turns = true;
}

static void one_thread(void) {
    frame_setup();
    tensor_set_num_threads(1);
    share_all();
}

/* ---- bits ---------------------------------------------------------------------------------- */

/* A check that also works in print_bits, where the asserts of Check do not. */
static void must(bool fine) {
    if (fine) return;
    fprintf(stderr, "%s\n", tensor_error() ? tensor_error() : "what must be is not");
    abort();
}

/* Continues the hash h (Fowler, Noll and Vo) with the elements of a tensor. */
static uint64_t hash(uint64_t h, const Tensor *x) {
    Tensor *dense = tensor_contiguous(x);
    must(dense != NULL);
    const unsigned char *byte = dense->data;
    for (int64_t i = 0; i < tensor_numel(x) * dtype_size(x->dtype); i++)
        h = (h ^ byte[i]) * UINT64_C(1099511628211);
    tensor_release(dense);
    return h;
}

/* A hash of y and of the gradients of `in`, for a random dy. Ends the tape and releases `in`. */
static uint64_t bits_of(Tensor *y, Tensor **in, int n) {
    must(y != NULL);
    uint64_t h = hash(0, y);
    if (y->requires_grad) {
        Tensor *dy = tensor_randn(y->shape);
        must(ag_backward_from(y, dy));
        tensor_release(dy);
    }
    tape_end();
    for (int i = 0; i < n; i++) {
        if (in[i]->grad) h = hash(h, in[i]->grad);
        tensor_release(in[i]);
    }
    return h;
}

/* ---- ops: large samples, and functions of two tensors that are cut in other ways ------------- */

static uint64_t bits_of_sample(const Sample *sample, DType dtype) {
    Tensor *in[SAMPLE_INPUTS];
    for (int i = 0; i < sample->n; i++) {
        in[i] = sample_input(sample, i, dtype);
        if (sample->in[i].kind == 'r') ag_requires_grad(in[i]);
    }
    tape_begin();
    return bits_of(call_op(sample->op, in, sample->n, sample->number), in, sample->n);
}

static int large_count(void) {
    int n = 0;
    while (large_samples()[n].op) n++;
    return n;
}

typedef Tensor *(*Run)(Tensor *x, Tensor *y);

/* x (6, 17, 44), y the same. */
static Tensor *broadcast(Tensor *x, Tensor *y) {
    return ag_add(ag_transpose(x, 0, 2), ag_slice(ag_transpose(y, 0, 2), 0, 0, 1));
}
static Tensor *transpose_of(Tensor *x, Tensor *y) {
    return ag_mul(ag_transpose(x, 1, 2), ag_contiguous(ag_transpose(y, 1, 2)));
}
static Tensor *chosen(Tensor *x, Tensor *y) { return ag_where(ag_lt(x, y), x, ag_scale(y, 3)); }
static Tensor *sums(Tensor *x, Tensor *y) {
    return ag_add(ag_sum_dims(x, AXES(0, 2), true), ag_mean_dims(y, AXES(1), true));
}
/* The product is cut by columns, so each thread needs a part of b. dw is cut by rows. */
static Tensor *wide_linear(Tensor *x, Tensor *y) {
    Tensor *b = ag_select(ag_reshape(y, SHAPE(34, 132)), 0, 0);
    return ag_linear(ag_reshape(x, SHAPE(132, 34)), ag_reshape(y, SHAPE(132, 34)), b);
}
/* The columns of a are contiguous but far apart in memory, so the product is cut by rows, although
 * c has more columns. */
static Tensor *far_product(Tensor *x, Tensor *y) {
    Tensor *a = ag_slice(ag_reshape(x, SHAPE(6, 748)), 1, 0, 600);
    return ag_matmul(ag_transpose(a, 0, 1), ag_reshape(y, SHAPE(6, 748)));
}
/* One factor is a single element. */
static Tensor *one_factor(Tensor *x, Tensor *y) {
    Tensor *row = ag_reshape(x, SHAPE(-1));
    Tensor *factor = ag_slice(ag_reshape(y, SHAPE(-1)), 0, 0, 1);
    return ag_mul(ag_slice(row, 0, 0, 3999), factor);
}
static Tensor *gathered(Tensor *x, Tensor *y) {
    return ag_gather(x, 2, ag_argmax(ag_reshape(y, SHAPE(6, 17, 22, 2)), -1));
}
/* There is one batch, so the work is cut by hidden units. Some keys are masked. */
static Tensor *wide_additive(Tensor *x, Tensor *y) {
    Tensor *q = ag_reshape(x, SHAPE(1, 3, 1496));
    Tensor *k = ag_reshape(y, q->shape);
    Tensor *w = ag_slice(ag_select(k, 0, 0), 0, 0, 1);
    return ag_additive_scores(q, k, w, ag_argmax(ag_slice(q, 2, 0, 4), 2));
}

static const struct {
    const char *name;
    Run run;
} runs[] = {{"broadcast", broadcast},
            {"transposed", transpose_of},
            {"where", chosen},
            {"sums", sums},
            {"far matmul", far_product},
            {"wide linear", wide_linear},
            {"one factor", one_factor},
            {"gather", gathered},
            {"wide additive", wide_additive}};

static uint64_t bits_of_run(int i) {
    Tensor *in[] = {ag_requires_grad(tensor_randn(SHAPE(6, 17, 44))),
                    ag_requires_grad(tensor_randn(SHAPE(6, 17, 44)))};
    tape_begin();
    return bits_of(runs[i].run(in[0], in[1]), in, 2);
}

/* ---- the rows of elementwise.def, on (5, 300) and (300) -------------------------------------- */

static const Sample *rows[60]; /* a sample of each row */
static int row_count;

static void find_rows(void) {
    for (const Sample *s = samples(); s->op; s++) {
        const bool fresh = row_count == 0 || strcmp(rows[row_count - 1]->op, s->op) != 0;
        const Op *op = find_op(s->op);
        if (op && op->forward == ag_elementwise_forward && fresh) rows[row_count++] = s;
    }
}

static uint64_t bits_of_row(int i, DType dtype) {
    Sample sample = *rows[i];
    for (int j = 0; j < sample.n; j++) sample.in[j].shape = j == 0 ? SHAPE(5, 300) : SHAPE(300);
    return bits_of_sample(&sample, dtype);
}

/* ---- products: each path, and each way to cut ------------------------------------------------ */

static const struct {
    int64_t batch, m, n, k;
} products[] = {{1, 1030, 9, 33}, {1, 5, 1100, 40}, {1, 200, 1, 50},    {1, 1, 300, 50},
                {1, 3, 3, 700},   {40, 3, 5, 7},    {3, 130, 70, 20},   {2, 70, 200, 300},
                {1, 70, 80, 1},   {7, 1, 1, 90},    {1, 100, 200, 1000}};

/* layout: if bit 0 is set, a is stored transposed; if bit 1 is set, b is */
static uint64_t bits_of_product(int i, int layout) {
    const int64_t batch = products[i].batch, m = products[i].m, n = products[i].n,
                  k = products[i].k;
    Tensor *in[] = {tensor_randn(layout & 1 ? SHAPE(batch, k, m) : SHAPE(batch, m, k)),
                    tensor_randn(layout & 2 ? SHAPE(batch, n, k) : SHAPE(batch, k, n))};
    ag_requires_grad(in[0]);
    ag_requires_grad(in[1]);
    tape_begin();
    Tensor *a = layout & 1 ? ag_transpose(in[0], 1, 2) : in[0];
    Tensor *b = layout & 2 ? ag_transpose(in[1], 1, 2) : in[1];
    return bits_of(ag_matmul(a, b), in, 2);
}

/* ---- attention with every mask --------------------------------------------------------------- */

/* masks: a bit for each part: causal, lengths, keep, window. Runs the composed ops or ag_attention.
 */
static uint64_t bits_of_attention(int masks, bool fused) {
    const int64_t B = 3, H = 2, Q = 67, K = 71, D = 8; /* so that each head is a part of the work */
    Tensor *in[] = {tensor_randn(SHAPE(B, H, Q, D)), tensor_randn(SHAPE(B, H, K, D)),
                    tensor_randn(SHAPE(B, H, K, D))};
    Tensor *part[] = {tensor_randint(0, K, SHAPE(B, Q)), tensor_bernoulli(0.7, SHAPE(B, 1, Q, K)),
                      tensor_randn(SHAPE(B, Q, K))};
    const AttentionMask mask = {.causal = masks & 1,
                                .valid_lens = masks & 2 ? part[0] : NULL,
                                .keep = masks & 4 ? part[1] : NULL,
                                .window = masks & 8 ? part[2] : NULL};
    for (int i = 0; i < 3; i++) ag_requires_grad(in[i]);
    tape_begin();
    Tensor *y =
        fused ? ag_attention(in[0], in[1], in[2], mask, 0.3)
              : ag_attention_weights(ag_matmul(in[0], ag_transpose(in[1], 2, 3)), 0.3, mask, H);
    const uint64_t bits = bits_of(y, in, 3);
    for (int i = 0; i < 3; i++) tensor_release(part[i]);
    return bits;
}

/* ---- a training run: attention with dropout, layer norm, AdamW ------------------------------- */

static uint64_t hash_parameters(uint64_t h, void *module, const char *const *paths) {
    for (; *paths; paths++) h = hash(h, nn_parameter(module, *paths));
    return h;
}

static uint64_t bits_of_training(bool fused) {
    MultiHeadAttention *attention = nn_multi_head_attention_new((MultiHeadAttentionConfig){
        .num_hiddens = 16, .num_heads = 4, .dropout = 0.1, .fused = fused});
    LayerNorm *norm = nn_layer_norm_new(SHAPE(16));
    Tensor *x = tensor_randn(SHAPE(3, 27, 16));
    Tensor *t = tensor_randn(SHAPE(3, 27, 16));
    Optimizer *optimizer[] = {NULL, nn_adamw_new(norm, (AdamWConfig){.lr = 0.01})};
    uint64_t h = 0;
    for (int step = 0; step < 3; step++) {
        tape_begin();
        Tensor *y = nn_multi_head_attention_forward(attention, x, x, x,
                                                    (AttentionMask){.causal = step % 2 == 0});
        Tensor *loss = ag_mse_loss(nn_layer_norm_forward(norm, y), t, REDUCE_MEAN);
        if (step == 0) optimizer[0] = nn_adamw_new(attention, (AdamWConfig){.lr = 0.01});
        nn_optimizer_zero_grad(optimizer[0]);
        nn_optimizer_zero_grad(optimizer[1]);
        must(ag_backward(loss));
        nn_clip_grad_norm(attention, 0.5);
        must(nn_optimizer_step(optimizer[0]) && nn_optimizer_step(optimizer[1]));
        h = hash(h, loss);
        tape_end();
    }
    h = hash_parameters(h, attention, (const char *[]){"W_q.weight", "W_o.weight", NULL});
    h = hash_parameters(h, norm, (const char *[]){"weight", "bias", NULL});
    RELEASE(x, t);
    nn_free(optimizer[0]);
    nn_free(optimizer[1]);
    nn_free(attention);
    nn_free(norm);
    return h;
}

/* ---- all of it ------------------------------------------------------------------------------- */

enum { LAYOUTS = 4, MASKS = 16 };

static int case_count(void) {
    return 2 *
           (COUNT(runs) + large_count() + row_count + LAYOUTS * COUNT(products) + 2 * MASKS + 2);
}

/* A hash of a case in one of two types. Writes its name to name. */
static uint64_t bits_of_case(int number, char *name) {
    const DType dtype = number % 2 ? F64 : F32;
    int i = number / 2;
    tensor_set_default_dtype(dtype);
    tensor_manual_seed(1);
    if (i < COUNT(runs)) {
        strcpy(name, runs[i].name);
        return bits_of_run(i);
    }
    i -= COUNT(runs);
    if (i < large_count()) {
        strcpy(name, large_samples()[i].op);
        return bits_of_sample(&large_samples()[i], dtype);
    }
    i -= large_count();
    if (i < row_count) {
        strcpy(name, rows[i]->op);
        return bits_of_row(i, dtype);
    }
    i -= row_count;
    if (i < LAYOUTS * COUNT(products)) {
        sprintf(name, "product %d, layout %d", i / LAYOUTS, i % LAYOUTS);
        return bits_of_product(i / LAYOUTS, i % LAYOUTS);
    }
    i -= LAYOUTS * COUNT(products);
    if (i < 2 * MASKS) {
        sprintf(name, "%s attention, masks %d", i / MASKS ? "fused" : "composed", i % MASKS);
        return bits_of_attention(i % MASKS, i / MASKS);
    }
    sprintf(name, "training, %s", i - 2 * MASKS ? "fused" : "composed");
    return bits_of_training(i - 2 * MASKS);
}

CASE("threads", .setup = one_thread, .teardown = frame_teardown, .is_long = true)
static int third = 1; /* 3: each case has every third number of threads */

LOOP_TEST(no_bit_hangs_on_the_number_of_threads, case_count()) {
    char name[100];
    const uint64_t alone = bits_of_case(_i, name);
    for (int i = 1 + _i % third; i < COUNT(counts); i += third) {
        tensor_set_num_threads(counts[i]);
        ck_assert_int_eq(tensor_num_threads(), counts[i]);
        ck_assert_msg(bits_of_case(_i, name) == alone, "%s: %d threads", name, counts[i]);
    }
}

/* Runs this program with another environment and returns its output; free it. EMULATOR is a command
 * that runs programs of another machine. */
static char *ask(const char *environment, const char *question) {
    char command[1000], *answer = NULL;
    size_t size = 0;
    snprintf(command, sizeof command, "%s $EMULATOR '%s' %s", environment, program, question);
    FILE *in = popen(command, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_gt(getdelim(&answer, &size, '\0', in), 0);
    ck_assert_int_eq(pclose(in), 0);
    return answer;
}

CASE("pool", .setup = one_thread, .teardown = frame_teardown)
/* If the CPU cannot run one of the tables, another one replaces it. Then the test compares less. */
TEST(no_bit_hangs_on_the_width_of_vectors) {
    char *narrow = ask("TAPEHEAD_ISA=avx2 TAPEHEAD_NUM_THREADS=1", "bits");
    char *wide = ask("TAPEHEAD_ISA=avx512 TAPEHEAD_NUM_THREADS=3", "bits");
    char *a = narrow;
    char *b = wide;
    for (int i = 0; i < case_count(); i++, a = strchr(a, '\n') + 1, b = strchr(b, '\n') + 1) {
        const size_t length = strcspn(a, "\n");
        ck_assert_uint_gt(length, 16);
        ck_assert_msg(strncmp(a, b, length + 1) == 0, "%.*s", (int)length, a);
    }
    free(narrow);
    free(wide);
}

static int number_for(const char *environment, const char *question) {
    char *answer = ask(environment, question);
    const int number = atoi(answer);
    free(answer);
    return number;
}

static void print_bits(void) {
    char name[100];
    share_all();
    for (int i = 0; i < case_count(); i++) {
        const uint64_t bits = bits_of_case(i, name);
        printf("%016llx %s\n", (unsigned long long)bits, name);
    }
}

TEST(sorting_does_not_know_either) {
    Tensor *x = tensor_randn(SHAPE(30, 20));
    Tensor *order[2];
    Tensor *sorted[2];
    for (int i = 0; i < 2; i++) {
        tensor_set_num_threads(1 + 3 * i);
        sorted[i] = tensor_sort(x, &order[i]);
    }
    ck_assert(tensor_allclose(sorted[0], sorted[1], 0, 0));
    ck_assert(tensor_allclose(order[0], order[1], 0, 0));
    for (int i = 0; i < 2; i++) RELEASE(sorted[i], order[i]);
    tensor_release(x);
}

/* ---- the pool ------------------------------------------------------------------------------ */

/* The linker replaces pthread_create by a function below. */
static bool refuse;
static _Atomic size_t stack; /* the stack size of the last worker; threads of the tests have no
                              * attributes */
static atomic_int created;   /* how many threads were */
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
    size_t size;
    created++;
    if (a && pthread_attr_getstacksize(a, &size) == 0) stack = size;
    return refuse ? EAGAIN : __real_pthread_create(t, a, f, x);
}

static Tensor *product_of(uint64_t seed) {
    tensor_set_default_dtype(F32);
    tensor_manual_seed(seed);
    Tensor *x = tensor_randn(SHAPE(130, 30));
    tape_begin_no_grad();
    Tensor *y = tape_end_keeping(ag_matmul(x, ag_transpose(x, 0, 1)));
    tensor_release(x);
    return y;
}

static void *multiply(void *failures) {
    for (uint64_t seed = 0; seed < 10; seed++) {
        Tensor *first = product_of(seed);
        Tensor *again = product_of(seed);
        *(int *)failures += !tensor_allclose(first, again, 0, 0);
        RELEASE(first, again);
    }
    tensor_empty_cache();
    return NULL;
}

TEST(threads_of_the_program_share_the_pool) {
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    int failures[THREADS] = {0};
    tensor_set_num_threads(3);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, multiply, &failures[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_int_eq(failures[i], 0);
    }
}

TEST(the_number_changes_at_any_time) {
    pthread_t thread;
    int failures = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, multiply, &failures), 0);
    for (int i = 0; i < 50; i++) {
        tensor_set_num_threads(1 + i % 5);
        tensor_release(product_of(3));
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(failures, 0);
}

TEST(where_there_are_no_threads_one_does_it) {
    Tensor *alone = product_of(9);
    refuse = true;
    tensor_set_num_threads(4);
    Tensor *refused = product_of(9);
    refuse = false;
    tensor_set_num_threads(6); /* the library asks the system for two more */
    Tensor *shared = product_of(9);
    ck_assert(tensor_allclose(alone, refused, 0, 0));
    ck_assert(tensor_allclose(alone, shared, 0, 0));
    RELEASE(alone, refused, shared);
}

/* The stack of a worker does not depend on the system or on `ulimit -s`. */
TEST(workers_have_stacks_of_one_size) {
    tensor_set_num_threads(2);
    tensor_release(product_of(9));
    ck_assert_uint_eq(stack, 1 << 20);
}

/* If the program's thread blocks a signal, no worker takes it. */
TEST(workers_take_no_signals) {
    sigset_t user, pending;
    int taken;
    tensor_set_num_threads(3);
    tensor_release(product_of(1)); /* this starts the workers */
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &user, NULL), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    tensor_release(product_of(1));
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert(sigismember(&pending, SIGUSR1));
    ck_assert_int_eq(sigwait(&user, &taken), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &user, NULL), 0);
}

/* A thread of the program that computes until the program ends. */
static void *multiply_forever(void *unused) {
    for (;;) tensor_release(product_of(1));
    return unused;
}

static int exit_in_the_midst(void) {
    pthread_t thread;
    share_all();
    tensor_set_num_threads(3);
    if (pthread_create(&thread, NULL, multiply_forever, NULL) != 0) return EXIT_FAILURE;
    for (int i = 0; i < 10; i++) tensor_release(product_of(2));
    puts("done");
    return EXIT_SUCCESS;
}

TEST(a_program_ends_whatever_its_threads_do) {
    for (int i = 0; i < 10; i++) {
        char *answer = ask("", "exit");
        ck_assert_str_eq(answer, "done\n");
        free(answer);
    }
}

/* ---- the end of the main thread -------------------------------------------------------------- */

/* The main thread ends with its destructors. The second call of this one comes after the library's.
 */
static pthread_key_t at_the_end;
static sem_t main_ended;

static void end_of_main(void *twice) {
    if (twice == &at_the_end) pthread_setspecific(at_the_end, &main_ended);
    else sem_post(&main_ended);
}

/* Uses the workers in the main thread. */
static void begin_in_main(void) {
    must(sem_init(&main_ended, 0, 0) == 0 && pthread_key_create(&at_the_end, end_of_main) == 0);
    must(pthread_setspecific(at_the_end, &at_the_end) == 0);
    share_all();
    tensor_set_num_threads(3);
    tensor_release(product_of(9));
}

static void say_number(void) {
    printf("%ld\n", (long)getpid());
    fflush(stdout);
}

static void *wait_here(void *unused) {
    say_number();
    for (;;) pause();
    return unused;
}

static void *wait_without_main(void *unused) {
    sem_wait(&main_ended);
    return wait_here(unused);
}

static void *work_and_wait_without_main(void *unused) {
    sem_wait(&main_ended);
    tensor_release(product_of(9));
    return wait_here(unused);
}

/* How a process waits after its main thread has used the pool: which thread waits, and whether the
 * main thread waits for it or ends. */
static const struct {
    void *(*other)(void *);
    bool main_ends;
} waits[] = {{NULL, false},
             {wait_here, false},
             {wait_without_main, true},
             {work_and_wait_without_main, true},
             {NULL, true}};
enum { NOBODY_WAITS = COUNT(waits) - 1 };

static int begin_to_wait(int i) {
    pthread_t other;
    signal(SIGINT, SIG_DFL); /* a shell may have started the tests with SIGINT ignored */
    begin_in_main();
    if (waits[i].other) must(__real_pthread_create(&other, NULL, waits[i].other, NULL) == 0);
    else say_number();
    if (waits[i].main_ends) pthread_exit(NULL);
    if (waits[i].other) pthread_join(other, NULL);
    pause();
    return EXIT_FAILURE;
}

/* How such a process ends after this signal, or, with 0, by itself. */
static int end_after(int i, int signal) {
    long process = 0;
    FILE *in = popen(format("exec $EMULATOR '%s' wait %d", program, i), "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fscanf(in, "%ld", &process), 1);
    if (signal) ck_assert_int_eq(kill((pid_t)process, signal), 0);
    return pclose(in);
}

static const int signals[] = {SIGINT, SIGTERM, 0};

static bool ended_by(int end, int signal) { return WIFSIGNALED(end) && WTERMSIG(end) == signal; }

/* The signal may come before the end. */
LOOP_TEST(a_process_ends_with_its_main_thread, COUNT(signals)) {
#ifdef __SANITIZE_THREAD__
    return; /* this sanitizer has a thread of its own, which never ends */
#endif
    const int end = end_after(NOBODY_WAITS, signals[_i]);
    ck_assert(end == 0 || ended_by(end, signals[_i]));
}

LOOP_TEST(a_signal_ends_a_process_that_waits, NOBODY_WAITS) {
    for (int i = 0; signals[i]; i++) ck_assert(ended_by(end_after(_i, signals[i]), signals[i]));
}

/* Ends the program when there are as many workers again, with the same digits. */
static void *work_again(void *of_main) {
    sem_wait(&main_ended);
    const int before = created;
    Tensor *again = product_of(9);
    printf("%d\n", tensor_allclose(of_main, again, 0, 0) && created == 2 * before);
    RELEASE(again, of_main);
    exit(EXIT_SUCCESS);
}

static int work_after_main(void) {
    pthread_t other;
    begin_in_main();
    must(__real_pthread_create(&other, NULL, work_again, product_of(9)) == 0);
    pthread_exit(NULL);
}

TEST(a_later_thread_starts_the_workers_again) {
    ck_assert_int_eq(number_for("", "work-after-main"), 1);
}

TEST(a_thread_that_ends_leaves_the_workers_to_main) {
    int failures = 0, before = 0;
    tensor_set_num_threads(3);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        ck_assert_int_eq(__real_pthread_create(&thread, NULL, multiply, &failures), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        if (i == 0) before = created;
        ck_assert_int_eq(created, before);
    }
    ck_assert_int_eq(failures, 0);
}

/* ---- fork ------------------------------------------------------------------------------------ */

TEST(a_child_has_a_pool_of_its_own) {
    /* qemu 7.2 aborts in a child that starts threads. */
    if (left_out_under_emulator("a_child_has_a_pool_of_its_own")) return;
    tensor_set_num_threads(3);
    Tensor *here = product_of(9);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        Tensor *there = product_of(9);
        const char *answer = tensor_allclose(here, there, 0, 0) ? "true" : "false";
        /* exec instead of exit: at the end of a child, a leak checker would report memory of the
         * parent's threads. */
        execlp(answer, answer, (char *)NULL);
        _exit(2);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    tensor_release(here);
}

/* ---- a fork while another thread holds a lock ------------------------------------------------ */

/* A thread stops where the library is about to leave a lock: at pthread_mutex_unlock, and in
 * getenv, which is called inside pthread_once. The linker replaces both. */
static _Thread_local int calls_left; /* of these functions until the thread stops; 0: never */
static sem_t stopped, forked;

static void stop_here(void) {
    if (calls_left == 0 || --calls_left > 0) return;
    sem_post(&stopped);
    sem_wait(&forked);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
    stop_here();
    return __real_pthread_mutex_unlock(mutex);
}

char *__real_getenv(const char *);
char *__wrap_getenv(const char *);
char *__wrap_getenv(const char *name) {
    stop_here();
    return __real_getenv(name);
}

/* Uses every lock of the library, of the pool, the allocator and the choice of kernels, and saves a
 * file, which needs none. */
static void use_all_locks(void) {
    char file[60];
    sprintf(file, "/tmp/tapehead-%ld.npy", (long)getpid());
    Tensor *y = product_of(9);
    must(tensor_save_npy(y, file) && remove(file) == 0);
    tensor_release(y);
}

static void *hold(void *calls) {
    calls_left = *(int *)calls;
    use_all_locks();
    if (calls_left > 0) *(int *)calls = 0; /* it did not stop */
    calls_left = 0;
    sem_post(&stopped);
    return NULL;
}

/* Forks while another thread stops at this call. In the child all must work, on several threads.
 * Returns 0 if it did not, or if there are fewer calls. */
static int fork_at(int calls) {
    pthread_t thread;
    int status = -1;
    share_all();
    tensor_set_num_threads(3);
    sem_init(&stopped, 0, 0);
    sem_init(&forked, 0, 0);
    must(__real_pthread_create(&thread, NULL, hold, &calls) == 0);
    sem_wait(&stopped);
    const pid_t child = calls > 0 ? fork() : 0;
    if (calls > 0 && child == 0) {
        alarm(300); /* ends a child that waits for a lock */
        created = 0;
        use_all_locks();
        execlp("sh", "sh", "-c", created > 0 ? "exit 0" : "exit 1", (char *)NULL);
        _exit(2);
    }
    if (calls > 0) must(waitpid(child, &status, 0) == child);
    sem_post(&forked);
    pthread_join(thread, NULL);
    return calls > 0 && status != 0 ? -1 : calls;
}

TEST(a_child_needs_no_lock_of_another_thread) {
    if (left_out_under_emulator("a_child_needs_no_lock_of_another_thread")) return;
    char question[20];
    int calls = 0;
    for (int answered = 1; answered > 0; calls++) {
        sprintf(question, "fork %d", calls + 1);
        answered = number_for("unset TAPEHEAD_CACHE;", question);
        ck_assert_msg(answered >= 0, "the child hangs or fails after call %d", calls + 1);
    }
    ck_assert_int_ge(calls, 4);
}

/* ---- a program that opens and closes the shared library -------------------------------------- */

typedef struct {
    void *handle;
    Tensor *(*ones)(Shape shape);
    void (*release)(Tensor *x);
    pthread_barrier_t used, closed;
} Opened;

static void find(const Opened *opened, const char *name, void *function) {
    void *found = dlsym(opened->handle, name);
    ck_assert_ptr_nonnull(found);
    memcpy(function, &found, sizeof found);
}

static void open_library(Opened *opened) {
    opened->handle =
        dlopen(format("%s/libtapehead.so", getenv("BUILD") ? getenv("BUILD") : "build"),
               RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(opened->handle != NULL, "%s", dlerror());
    find(opened, "tensor_ones", &opened->ones);
    find(opened, "tensor_release", &opened->release);
}

static void *outlive(void *library) {
    Opened *opened = library;
    opened->release(opened->ones(SHAPE(1000)));
    pthread_barrier_wait(&opened->used);
    pthread_barrier_wait(&opened->closed);
    return NULL; /* the allocator's destructor runs now */
}

TEST(a_thread_may_outlive_dlclose) {
    Opened opened;
    pthread_t thread;
    open_library(&opened);
    pthread_barrier_init(&opened.used, NULL, 2);
    pthread_barrier_init(&opened.closed, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, outlive, &opened), 0);
    pthread_barrier_wait(&opened.used);
    ck_assert_int_eq(dlclose(opened.handle), 0);
    pthread_barrier_wait(&opened.closed);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&opened.used);
    pthread_barrier_destroy(&opened.closed);
}

TEST(opening_again_uses_no_more_keys) {
    Opened opened;
    pthread_key_t key;
    for (int i = 0; i < 1100; i++) { /* systems give 128 to 1024 keys */
        open_library(&opened);
        opened.release(opened.ones(SHAPE(1000)));
        ck_assert_int_eq(dlclose(opened.handle), 0);
    }
    ck_assert_int_eq(pthread_key_create(&key, NULL), 0);
    pthread_key_delete(key);
}

TEST(a_number_of_threads_is_at_least_one) {
    tensor_set_num_threads(2);
    tensor_set_num_threads(0);
    expect_error("set_num_threads: 0: there must be at least 1 thread");
    ck_assert_int_eq(tensor_num_threads(), 2);
    tensor_set_num_threads(1000000); /* more than the largest number */
    ck_assert_int_eq(tensor_num_threads(), 64);
}

TEST(the_environment_says_how_many) {
    const int cores = number_for("unset TAPEHEAD_NUM_THREADS;", "number");
    ck_assert_int_ge(cores, 1);
#ifdef __linux__ /* elsewhere all cores count */
    ck_assert_int_eq(number_for("unset TAPEHEAD_NUM_THREADS;", "number-on-one-core"), 1);
    ck_assert_int_eq(number_for("TAPEHEAD_NUM_THREADS=5", "number-on-one-core"), 5);
#endif
    ck_assert_int_eq(number_for("TAPEHEAD_NUM_THREADS=1", "number"), 1);
    ck_assert_int_eq(number_for("TAPEHEAD_NUM_THREADS=1000", "number"), 64);
    static const char *const nonsense[] = {"", "0", "-3", "many", "3x", "2.5", "'2 '"};
    for (int i = 0; i < COUNT(nonsense); i++) {
        char environment[60];
        sprintf(environment, "TAPEHEAD_NUM_THREADS=%s", nonsense[i]);
        ck_assert_int_eq(number_for(environment, "number"), cores);
    }
}

/* ---- cores by a quota ------------------------------------------------------------------------ */

#ifdef __linux__
/* The machine of these tests has 64 cores. The linker replaces this function. */
static bool many_cores;
int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    if (!many_cores) return __real_sched_getaffinity(pid, size, set);
    CPU_ZERO(set);
    for (int i = 0; i < 64; i++) CPU_SET(i, set);
    return 0;
}

/* Files below /sys/fs/cgroup: the folder and its quota; in version 1 the quota and the period. */
typedef struct {
    const char *folder, *quota, *period;
} Group;

static const struct {
    const char *groups; /* /proc/self/cgroup; NULL: there is no such file */
    Group group[3];
    int cores;
} quotas[] = {
    {NULL, {{0}}, 64},
    {"0::/\n", {{"", "max 100000", NULL}}, 64},
    {"0::/\n", {{"", "200000 100000", NULL}}, 2},
    {"0::/\n", {{"", "200001 100000", NULL}}, 3},
    {"0::/\n", {{"", "1000 100000", NULL}}, 1},
    {"0::/\n", {{"", "6600000 100000", NULL}}, 64},
    {"0::/\n", {{"", "200000", NULL}}, 64},
    {"0::/\n", {{"", "0 0", NULL}}, 64},
    {"0::/a/b\n", {{"a/b", "max 100000", NULL}, {"a", "150000 50000", NULL}}, 3},
    {"0::/a/b\n", {{"a/b", "500000 100000", NULL}, {"a", "700000 100000", NULL}}, 5},
    {"0::/a/b\n", {{"a/b", "500000 100000", NULL}, {"", "400000 100000", NULL}}, 4},
    {"0::/docker/0:1\n", {{"", "300000 100000", NULL}}, 3}, /* a path of the host */
    {"5:memory:/m\n4:cpu,cpuacct:/docker/a\n1:name=systemd:/\n0::/\n",
     {{"cpu,cpuacct/docker/a", "400000", "100000"}},
     4},
    {"4:cpu:/docker/a\n", {{"cpu/docker/a", "-1", "100000"}, {"cpu", "700000", "100000"}}, 7},
    {"4:cpu:/a\n3:cpuset:/\n", {{"cpu/a", "-1", "100000"}}, 64},
    {"nonsense\n:\n::\n", {{"", "nonsense", NULL}}, 64},
};

static void write_group(const Group *group) {
    char file[100];
    ck_assert_int_eq(shell(format("mkdir -p \"$D/sys/fs/cgroup/%s\"", group->folder)), 0);
    snprintf(file, sizeof file, "sys/fs/cgroup/%s/%s", group->folder,
             group->period ? "cpu.cfs_quota_us" : "cpu.max");
    put(path(file), group->quota);
    snprintf(file, sizeof file, "sys/fs/cgroup/%s/cpu.cfs_period_us", group->folder);
    if (group->period) put(path(file), group->period);
}

PROGRAM_CASE("quota")
LOOP_TEST(a_quota_of_time_counts_as_cores, COUNT(quotas)) {
    ck_assert_int_eq(shell("mkdir -p \"$D/proc/self\""), 0);
    if (quotas[_i].groups) put(path("proc/self/cgroup"), quotas[_i].groups);
    for (const Group *group = quotas[_i].group; group->folder; group++) write_group(group);
    many_cores = true;
    const int cores = tensor_cores(folder);
    many_cores = false;
    ck_assert_int_eq(cores, quotas[_i].cores);
}
#endif

/* ---- the suite ------------------------------------------------------------------------------- */

static int to_one_core(void) {
#ifdef __linux__
    cpu_set_t set, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &set)) CPU_SET(i, &one);
    return sched_setaffinity(0, sizeof one, &one);
#else
    return -1;
#endif
}

/* The questions of ask(). */
static int answer(const char *question, int number) {
    if (strcmp(question, "exit") == 0) return exit_in_the_midst();
    if (strcmp(question, "wait") == 0) return begin_to_wait(number);
    if (strcmp(question, "work-after-main") == 0) return work_after_main();
    if (strcmp(question, "bits") == 0) print_bits();
    else if (strcmp(question, "fork") == 0) printf("%d\n", fork_at(number));
    else if (strcmp(question, "number-on-one-core") != 0 || to_one_core() == 0)
        printf("%d\n", tensor_num_threads());
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    find_rows();
    if (argc > 1) return answer(argv[1], argc > 2 ? atoi(argv[2]) : 0);
    program = argv[0];
    third = sample_step(3);
    return run_tests("threads");
}
