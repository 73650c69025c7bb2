/* test_threads.c - the number of threads changes no digit: every kind of kernel on tensors that are
 * large enough to be cut, and a training run; and what can happen to a pool of threads: more of
 * them, fewer, a program's own threads beside it, fork. */
#include "../nn/nn.h"
#include "../tensor/internal.h"
#include "common.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int counts[] = {1, 2, 3, 7, 16};
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static void one_thread(void) {
    frame_setup();
    tensor_set_num_threads(1);
    worth_a_thread = 32;
    threads_take_turns = true;
}

/* ---- every kind of kernel ------------------------------------------------------------------ */

static Tensor *large(DType dtype, Shape shape) {
    tensor_set_default_dtype(dtype);
    return tensor_randn(shape);
}

typedef Tensor *(*Run)(Tensor *x, Tensor *y);

/* x (6, 17, 44), y the same. */
static Tensor *elementwise(Tensor *x, Tensor *y) { return ag_mul(ag_exp(x), ag_tanh(y)); }
static Tensor *broadcast(Tensor *x, Tensor *y) {
    return ag_add(ag_transpose(x, 0, 2), ag_slice(ag_transpose(y, 0, 2), 0, 0, 1));
}
static Tensor *chosen(Tensor *x, Tensor *y) { return ag_where(ag_lt(x, y), x, ag_scale(y, 3)); }
static Tensor *softmax_last(Tensor *x, Tensor *y) { return ag_softmax(ag_add(x, y), -1); }
static Tensor *softmax_first(Tensor *x, Tensor *y) { return ag_log_softmax(ag_sub(x, y), 0); }
static Tensor *sums(Tensor *x, Tensor *y) {
    return ag_add(ag_sum_dims(x, AXES(0, 2), true), ag_mean_dims(y, AXES(1), true));
}
static Tensor *maxima(Tensor *x, Tensor *y) { return ag_max_dim(ag_maximum(x, y), 1, false); }
static Tensor *variances(Tensor *x, Tensor *y) {
    return ag_add(ag_var_dim(x, 2, false), ag_logsumexp(y, 2));
}
static Tensor *normalised(Tensor *x, Tensor *y) {
    Tensor *w = ag_select(ag_select(y, 0, 0), 0, 0);
    return ag_layer_norm(x, w, w, 1e-5);
}
static Tensor *cross_entropies(Tensor *x, Tensor *y) {
    return ag_cross_entropy(x, ag_argmax(y, 1), -100, REDUCE_NONE);
}
static Tensor *matrix_product(Tensor *x, Tensor *y) {
    Tensor *a = ag_reshape(x, SHAPE(102, 44)), *b = ag_reshape(y, SHAPE(102, 44));
    return ag_matmul(ag_matmul(a, ag_transpose(b, 0, 1)), b);
}
static Tensor *batch_product(Tensor *x, Tensor *y) {
    return ag_bmm(ag_bmm(x, ag_transpose(y, 1, 2)), y);
}
static Tensor *tall_product(Tensor *x, Tensor *y) {
    Tensor *a = ag_reshape(x, SHAPE(1122, 4)), *b = ag_reshape(y, SHAPE(1122, 4));
    return ag_matmul(ag_transpose(a, 0, 1), b);
}
static Tensor *fused(Tensor *x, Tensor *y) {
    /* heads so long that each is a part of the work */
    Tensor *q = ag_reshape(x, SHAPE(3, 68, 22)), *k = ag_reshape(y, SHAPE(3, 68, 22));
    return ag_attention(q, k, k, (AttentionMask){.causal = true}, 0.3);
}
static Tensor *gathered(Tensor *x, Tensor *y) {
    return ag_gather(x, 2, ag_argmax(ag_reshape(y, SHAPE(6, 17, 22, 2)), -1));
}

static const struct {
    const char *name;
    Run run;
} runs[] = {{"elementwise", elementwise},
            {"broadcast", broadcast},
            {"where", chosen},
            {"softmax", softmax_last},
            {"log_softmax", softmax_first},
            {"sums", sums},
            {"max_dim", maxima},
            {"variances", variances},
            {"layer_norm", normalised},
            {"cross_entropy", cross_entropies},
            {"matmul", matrix_product},
            {"bmm", batch_product},
            {"tall matmul", tall_product},
            {"attention", fused},
            {"gather", gathered}};

/* The result and both gradients, in one tensor that is yours. */
static Tensor *all_of(Run run, Tensor *x, Tensor *y) {
    tensor_manual_seed(1);
    tape_begin();
    Tensor *z = run(x, y);
    ck_assert_msg(z != NULL, "%s", tensor_error());
    Tensor *dz = tensor_randn(z->shape);
    ck_assert(ag_backward_from(z, dz));
    Tensor *list[] = {z, x->grad, y->grad};
    for (int i = 0; i < 3; i++)
        list[i] = list[i] ? ag_reshape(ag_detach(list[i]), SHAPE(-1)) : list[0];
    Tensor *all = tensor_clone(ag_cat(list, 3, 0));
    tape_end();
    tensor_release(dz);
    tensor_release(x->grad), x->grad = NULL;
    tensor_release(y->grad), y->grad = NULL;
    return all;
}

START_TEST(kernels_do_not_know_how_many_they_are) {
    const DType dtype = _i % 2 ? F64 : F32;
    const Run run = runs[_i / 2].run;
    Tensor *x = ag_requires_grad(large(dtype, SHAPE(6, 17, 44)));
    Tensor *y = ag_requires_grad(large(dtype, SHAPE(6, 17, 44)));
    Tensor *alone = all_of(run, x, y);
    for (int i = 1; i < COUNT(counts); i++) {
        tensor_set_num_threads(counts[i]);
        ck_assert_int_eq(tensor_num_threads(), counts[i]);
        Tensor *together = all_of(run, x, y);
        const size_t bytes = (size_t)tensor_numel(alone) * (dtype == F32 ? 4 : 8);
        ck_assert_msg(memcmp(alone->data, together->data, bytes) == 0, "%s: %d threads",
                      runs[_i / 2].name, counts[i]);
        tensor_release(together);
    }
    tensor_release(alone), tensor_release(x), tensor_release(y);
}
END_TEST

START_TEST(sorting_does_not_either) {
    Tensor *x = large(F32, SHAPE(30, 20)), *order[2], *sorted[2];
    for (int i = 0; i < 2; i++) {
        tensor_set_num_threads(1 + 3 * i);
        sorted[i] = tensor_sort(x, &order[i]);
    }
    ck_assert(tensor_allclose(sorted[0], sorted[1], 0, 0));
    ck_assert(tensor_allclose(order[0], order[1], 0, 0));
    for (int i = 0; i < 2; i++) tensor_release(sorted[i]), tensor_release(order[i]);
    tensor_release(x);
}
END_TEST

/* ---- a training run ------------------------------------------------------------------------ */

/* The loss after some steps; the first parameter's bits go to out. */
static double train(int threads, float *out, size_t bytes) {
    tensor_set_num_threads(threads);
    tensor_set_default_dtype(F32);
    tensor_manual_seed(5);
    MultiHeadAttentionConfig config = {.num_hiddens = 16, .num_heads = 4, .dropout = 0.1};
    MultiHeadAttention *attention = nn_multi_head_attention_new(config);
    Optimizer *sgd = nn_sgd_new(attention, (SGDConfig){.lr = 0.1, .momentum = 0.9});
    Tensor *x = tensor_randn(SHAPE(3, 7, 16)), *y = tensor_randn(SHAPE(3, 7, 16));
    double value = 0;
    for (int step = 0; step < 3; step++) {
        tape_begin();
        Tensor *out_x = nn_multi_head_attention_forward(attention, x, x, x,
                                                        (AttentionMask){.causal = step % 2 == 0});
        Tensor *loss = ag_mse_loss(out_x, y, REDUCE_MEAN);
        nn_optimizer_zero_grad(sgd);
        ck_assert_msg(ag_backward(loss) && nn_optimizer_step(sgd), "%s", tensor_error());
        value = tensor_item(loss);
        tape_end();
    }
    memcpy(out, nn_parameter(attention, "W_q.weight")->data, bytes);
    tensor_release(x), tensor_release(y), nn_free(sgd), nn_free(attention);
    return value;
}

START_TEST(training_gives_the_same_bits) {
    static float alone[16 * 16], together[16 * 16];
    const double loss = train(1, alone, sizeof alone);
    for (int i = 1; i < COUNT(counts); i++) {
        ck_assert(train(counts[i], together, sizeof together) == loss);
        ck_assert_mem_eq(alone, together, sizeof alone);
    }
}
END_TEST

/* ---- the pool ------------------------------------------------------------------------------ */

static Tensor *product_of(uint64_t seed) {
    tensor_set_default_dtype(F32);
    tensor_manual_seed(seed);
    Tensor *x = tensor_randn(SHAPE(130, 30));
    tape_begin_no_grad();
    Tensor *y = tape_end_keeping(ag_matmul(x, ag_transpose(x, 0, 1)));
    tensor_release(x);
    return y;
}

static void *products(void *failures) {
    for (uint64_t seed = 0; seed < 10; seed++) {
        Tensor *first = product_of(seed), *again = product_of(seed);
        *(int *)failures += !tensor_allclose(first, again, 0, 0);
        tensor_release(first), tensor_release(again);
    }
    tensor_empty_cache();
    return NULL;
}

START_TEST(threads_of_the_program_share_the_pool) {
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    int failures[THREADS] = {0};
    tensor_set_num_threads(3);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, products, &failures[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_int_eq(failures[i], 0);
    }
}
END_TEST

START_TEST(a_child_has_a_pool_of_its_own) {
    tensor_set_num_threads(3);
    Tensor *here = product_of(9);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        Tensor *there = product_of(9);
        const char *answer = tensor_allclose(here, there, 0, 0) ? "true" : "false";
        /* A checker would look in a child that ends for what the parent's threads hold. */
        execlp(answer, answer, (char *)NULL);
        _exit(2);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    tensor_release(here);
}
END_TEST

START_TEST(a_number_of_threads_is_at_least_one) {
    tensor_set_num_threads(2);
    tensor_set_num_threads(0);
    expect_error("set_num_threads: 0: there must be at least 1 thread");
    ck_assert_int_eq(tensor_num_threads(), 2);
    tensor_set_num_threads(1000000); /* as many as there can be */
    ck_assert_int_eq(tensor_num_threads(), 64);
}
END_TEST

static void add(Suite *suite, const char *name, const TTest *test, int times) {
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, one_thread, frame_teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, test, 0, times);
    suite_add_tcase(suite, tcase);
}

int main(void) {
    Suite *suite = suite_create("threads");
    add(suite, "kernels", kernels_do_not_know_how_many_they_are, 2 * COUNT(runs));
    add(suite, "sort", sorting_does_not_either, 1);
    add(suite, "training", training_gives_the_same_bits, 1);
    add(suite, "program", threads_of_the_program_share_the_pool, 1);
    add(suite, "fork", a_child_has_a_pool_of_its_own, 1);
    add(suite, "number", a_number_of_threads_is_at_least_one, 1);
    return run_suite(suite);
}
