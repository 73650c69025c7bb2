/* test_stacks.c - the library needs little stack, because threads in some programs and systems have
 * only 64 KB. Here everything runs in a thread with such a stack; the memory below the stack must
 * not be written. */
#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../nn/nn.h"
#include "../common.h"

/* ---- a thread with little stack ------------------------------------------------------------ */

/* The sanitizers' frames are larger, and those of a library without optimization (tests.mk), as
 * gcov counts it. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || defined NOT_OPTIMIZED
enum { STACK = 1 << 20 };
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { STACK = 1 << 20 };
#else
enum { STACK = 64 << 10 };
#endif
#else
enum { STACK = 64 << 10 };
#endif
enum { FORBIDDEN = 1 << 20 }; /* larger than any frame, so no frame can reach beyond it */

/* The first error in the thread. (The asserts of Check work only in the thread of the test.) */
static char problem[512];

static void must(bool fine, const char *format, ...) {
    va_list arguments;
    if (fine || problem[0]) return;
    va_start(arguments, format);
    const int n = vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    snprintf(problem + n, sizeof problem - (size_t)n, ": %s",
             tensor_error() ? tensor_error() : "no error");
}

static void on_little_stack(void *(*work)(void *)) {
    pthread_attr_t attributes;
    pthread_t thread;
    const long least = sysconf(_SC_THREAD_STACK_MIN);
    const size_t size = least > STACK ? (size_t)least : STACK;
    char *memory = aligned_alloc(1 << 16, FORBIDDEN + size);
    ck_assert_ptr_nonnull(memory);
    ck_assert_int_eq(mprotect(memory, FORBIDDEN, PROT_NONE), 0);
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstack(&attributes, memory + FORBIDDEN, size), 0);
    problem[0] = '\0';
    ck_assert_int_eq(pthread_create(&thread, &attributes, work, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    ck_assert_int_eq(mprotect(memory, FORBIDDEN, PROT_READ | PROT_WRITE), 0);
    free(memory);
    ck_assert_msg(!problem[0], "%s", problem);
}

/* With one thread, the caller's thread does all the work. */
static void setup(void) {
    tensor_set_num_threads(1);
    frame_setup();
}

/* ---- every op ------------------------------------------------------------------------------ */

static void run(const Sample *s, DType dtype, bool turn) {
    Tensor *x[SAMPLE_INPUTS] = {NULL};
    for (int i = 0; i < s->n; i++) {
        x[i] = sample_input(s, i, dtype);
        if (x[i] && turn) x[i] = permuted(x[i]);
        if (x[i] && s->in[i].kind == 'r') ag_requires_grad(x[i]);
    }
    tape_begin();
    Tensor *y = call_op(s->op, x, s->n, s->number);
    Tensor *dy = y && y->requires_grad ? tensor_ones_like(y) : NULL;
    const bool fine = y && (!dy || ag_backward_from(y, dy));
    must(fine || (turn && !strcmp(s->op, "view")), "%s %s", s->op,
         tensor_shape_text(s->in[0].shape));
    tensor_clear_error();
    tape_end();
    tensor_release(dy);
    for (int i = 0; i < s->n; i++) tensor_release(x[i]);
}

static void *every_op(void *unused) {
    for (const Sample *s = samples(); s->op; s++)
        for (int way = 0; way < 4; way++) run(s, way % 2 ? F64 : F32, way / 2);
    return unused;
}

CASE("64 KB", .setup = setup, .teardown = frame_teardown)
TEST(every_op_runs_on_64_kb) { on_little_stack(every_op); }

/* ---- large ones ---------------------------------------------------------------------------- */

static void *large_ops(void *unused) {
    for (const Sample *s = large_samples(); s->op; s++)
        for (int way = 0; way < 4; way++) run(s, way % 2 ? F64 : F32, way / 2);
    return unused;
}

TEST(large_ops_run_on_64_kb) { on_little_stack(large_ops); }

/* ---- all else ------------------------------------------------------------------------------ */

static Tensor *of_heads(Tensor **in, void *module) {
    return nn_multi_head_attention_forward(module, in[0], in[0], in[0], (AttentionMask){0});
}

/* Trains, checks, saves and loads a model. */
static void *training(void *unused) {
    char path[] = "/tmp/tapehead-stacks-XXXXXX";
    close(mkstemp(path));
    tensor_set_default_dtype(F64);
    const MultiHeadAttentionConfig config = {.num_hiddens = 4,
                                             .num_heads = 2,
                                             .dropout = 0.1,
                                             .bias = true,
                                             .query_size = 4,
                                             .key_size = 4,
                                             .value_size = 4};
    MultiHeadAttention *model = nn_multi_head_attention_new(config);
    Tensor *x = ag_requires_grad(tensor_randn(SHAPE(2, 5, 4)));
    must(ag_gradcheck(of_heads, &x, 1, model, (GradcheckOptions){0}), "gradcheck");
    Optimizer *adamw = nn_adamw_new(model, (AdamWConfig){.lr = 0.1});
    for (int i = 0; i < 3; i++) {
        tape_begin();
        Tensor *loss = ag_mean(ag_square(of_heads(&x, model)));
        must(ag_backward(loss) && nn_optimizer_step(adamw), "step %d", i);
        tape_end();
    }
    TensorDict *dict = tensor_dict_new();
    must(nn_optimizer_state_dict(adamw, "", dict), "optimizer_state_dict");
    must(nn_optimizer_load_state_dict(adamw, "", dict), "optimizer_load_state_dict");
    must(nn_save(model, path) && nn_load(model, path), "save and load");
    tensor_dict_free(dict);
    nn_free(adamw);
    nn_free(model);
    tensor_release(x);
    unlink(path);
    return unused;
}

static void *files_and_text(void *unused) {
    char path[] = "/tmp/tapehead-stacks-XXXXXX", *text = NULL;
    size_t size;
    close(mkstemp(path));
    Tensor *x = tensor_randn(SHAPE(20, 70));
    Tensor *state = tensor_generator_state();
    Tensor *indices;
    FILE *file = open_memstream(&text, &size);
    must(tensor_print(x, file), "print");
    must(tensor_save_npy(x, path), "save_npy");
    Tensor *loaded = tensor_load_npy(path);
    Tensor *sorted = tensor_sort(x, &indices);
    must(loaded && sorted && tensor_set_generator_state(state), "load_npy, sort");
    must(!tensor_load_npy("/nowhere/at all"), "load_npy");
    tensor_clear_error();
    fclose(file);
    free(text);
    unlink(path);
    RELEASE(x, state, loaded, sorted, indices);
    return unused;
}

TEST(training_runs_on_64_kb) { on_little_stack(training); }

TEST(files_and_text_take_64_kb) { on_little_stack(files_and_text); }

int main(void) { return run_tests("stacks"); }
