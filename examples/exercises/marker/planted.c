/* planted.c - the student's functions as ops: see planted.h. */
#include "planted.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const Exercise *e;
    Trial trial;
    bool is_yours;
} Student;

static Student students[MOST_EXERCISES]; /* by the number of the exercise */

static const int used[] = {3, 5, 7, 9, 10, 13};
enum { USED = sizeof used / sizeof *used };

void planted_begin(const Place *place) {
    for (int i = 0; i < USED; i++) {
        Student *student = &students[used[i]];
        student->e = exercise(used[i]);
        trial_compile(&student->trial, student->e, place);
        student->is_yours = student->trial.end == TRIAL_DONE;
    }
}

bool planted_is_yours(int number) { return students[number].is_yours; }

void planted_end(void) {
    for (int i = 0; i < USED; i++) trial_free(&students[used[i]].trial);
    memset(students, 0, sizeof students);
}

/* ---- calls -------------------------------------------------------------------------------------
 */

/* n calls of these sizes, with arrays of zeros; n is 0, with an error, if there is no memory. */
static Calls make_calls(const Student *student, int n, const int size[MOST_SIZES]) {
    Calls calls = {calloc((size_t)n, sizeof *calls.call), 0};
    for (int i = 0; i < n && calls.call; i++) {
        Call *call = &calls.call[i];
        call->input = i;
        memcpy(call->size, size, sizeof call->size);
        if (!call_make(student->e, call)) break;
        calls.n++;
    }
    if (calls.n < n) {
        calls_free(&calls);
        tensor_fail("out of memory");
    }
    return calls;
}

/* The elements of x are array `array` of the calls, one after the other. False with an error. */
static bool put_array(const Student *student, Calls *calls, int array, const Tensor *x) {
    double *elements = malloc(((size_t)tensor_numel(x) + 1) * sizeof *elements);
    const bool ok = elements && tensor_to_doubles(x, elements);
    const double *from = elements;
    for (int i = 0; i < calls->n && ok; i++) {
        const int64_t n = call_length(student->e, &calls->call[i], array);
        memcpy(calls->call[i].array[array], from, (size_t)n * sizeof *from);
        from += n;
    }
    free(elements);
    if (!elements) tensor_fail("out of memory");
    return ok;
}

/* The same array of all calls. */
static bool put_same(const Student *student, Calls *calls, int array, const Tensor *x) {
    for (int i = 0; i < calls->n; i++) {
        Calls one = {&calls->call[i], 1};
        if (!put_array(student, &one, array, x)) return false;
    }
    return true;
}

/* Array `array` of all calls, one after the other, as a new tensor of this shape. */
static Tensor *take_array(const Student *student, const Calls *calls, int array, Shape shape) {
    int64_t n = 0;
    for (int i = 0; i < calls->n; i++) n += call_length(student->e, &calls->call[i], array);
    double *elements = malloc(((size_t)n + 1) * sizeof *elements);
    double *to = elements;
    for (int i = 0; i < calls->n && elements; i++) {
        const int64_t length = call_length(student->e, &calls->call[i], array);
        memcpy(to, calls->call[i].array[array], (size_t)length * sizeof *to);
        to += length;
    }
    Tensor *x = elements ? tensor_from_doubles(shape, elements) : tensor_fail("out of memory");
    free(elements);
    return x;
}

/* The student's function computes the calls. False with an error if it does not return. */
static bool compute(Student *student, Calls *calls) {
    Trial *trial = &student->trial;
    if (!calls->n || tensor_error()) return false;
    trial_free(trial);
    trial->end = TRIAL_DONE;
    trial->stopped = -1;
    trial_compute(trial, student->e, calls);
    if (trial->end == TRIAL_DONE && trial->stopped < 0) {
        const Calls computed = trial->calls;
        trial->calls = *calls; /* trial_free frees them */
        *calls = computed;
        return true;
    }
    if (trial->end == TRIAL_IMPOSSIBLE)
        return tensor_fail("%d %s: %s", student->e->number, student->e->name, trial->sentence);
    return tensor_fail("%d %s: the function did not return; build/exercises %d says why",
                       student->e->number, student->e->name, student->e->number);
}

/* ---- 3 product ---------------------------------------------------------------------------------
 */

static Tensor *product_forward(const AgCall *call) {
    return tensor_retain(ag_bmm(call->in[0], call->in[1]));
}

static void product_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Student *student = call->data;
    const Shape a = call->in[0]->shape, b = call->in[1]->shape;
    const int size[MOST_SIZES] = {(int)a.dim[1], (int)a.dim[2], (int)b.dim[2]};
    Calls calls = make_calls(student, (int)a.dim[0], size);
    if (put_array(student, &calls, 2, call->in[0]) && put_array(student, &calls, 3, call->in[1]) &&
        put_array(student, &calls, 4, dy) && compute(student, &calls)) {
        dx[0] = take_array(student, &calls, 0, a);
        dx[1] = take_array(student, &calls, 1, b);
    }
    calls_free(&calls);
}

static const AgFunction product = {"your_product", NULL, NULL, product_forward, product_backward};

Tensor *planted_product(Tensor *a, Tensor *b) {
    if (!planted_is_yours(3)) return ag_bmm(a, b);
    return ag_call(&product, 2, (Tensor *[]){a, b}, &students[3]);
}

/* ---- 5 masked softmax --------------------------------------------------------------------------
 */

static double scale_of_scores; /* forward's, for backward: there is one attention */

static Tensor *weights_forward(const AgCall *call) {
    const AttentionMask mask = {.valid_lens = call->in[1]};
    return tensor_retain(ag_attention_weights(call->in[0], scale_of_scores, mask, 1));
}

/* A call for each query. */
static void weights_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Student *student = call->data;
    const Shape shape = call->in[0]->shape; /* (B, Q, K) */
    const int64_t Q = shape.dim[1], K = shape.dim[2];
    const int size[MOST_SIZES] = {(int)K};
    Calls calls = make_calls(student, (int)(shape.dim[0] * Q), size);
    for (int i = 0; i < calls.n; i++) {
        bool *keep = calls.call[i].array[0];
        const double length = tensor_get(call->in[1], (int64_t)i / Q);
        calls.call[i].number[0] = scale_of_scores;
        for (int64_t j = 0; j < K; j++) keep[j] = (double)j < length;
    }
    if (put_array(student, &calls, 2, call->out) && put_array(student, &calls, 3, dy) &&
        compute(student, &calls))
        dx[0] = take_array(student, &calls, 1, shape);
    calls_free(&calls);
}

static const AgFunction weights = {"your_masked_softmax", NULL, NULL, weights_forward,
                                   weights_backward};

Tensor *planted_weights(Tensor *scores, double scale, Tensor *valid_lens) {
    const AttentionMask mask = {.valid_lens = valid_lens};
    if (!planted_is_yours(5)) return ag_attention_weights(scores, scale, mask, 1);
    scale_of_scores = scale;
    return ag_call(&weights, 2, (Tensor *[]){scores, valid_lens}, &students[5]);
}

/* ---- 7 linear ----------------------------------------------------------------------------------
 */

static Tensor *linear_forward(const AgCall *call) {
    Tensor *b = call->n > 2 ? call->in[2] : NULL;
    return tensor_retain(ag_linear(call->in[0], call->in[1], b));
}

static void linear_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Student *student = call->data;
    const Shape x = call->in[0]->shape, w = call->in[1]->shape;
    const int size[MOST_SIZES] = {(int)x.dim[0], (int)w.dim[1], (int)w.dim[0]};
    Calls calls = make_calls(student, 1, size);
    if (put_array(student, &calls, 3, call->in[0]) && put_array(student, &calls, 4, call->in[1]) &&
        put_array(student, &calls, 5, dy) && compute(student, &calls)) {
        dx[0] = take_array(student, &calls, 0, x);
        dx[1] = take_array(student, &calls, 1, w);
        if (call->n > 2) dx[2] = take_array(student, &calls, 2, SHAPE(w.dim[0]));
    }
    calls_free(&calls);
}

static const AgFunction linear = {"your_linear", NULL, NULL, linear_forward, linear_backward};

Tensor *planted_linear(Tensor *x, Tensor *w, Tensor *b) {
    if (!planted_is_yours(7)) return ag_linear(x, w, b);
    return ag_call(&linear, b ? 3 : 2, (Tensor *[]){x, w, b}, &students[7]);
}

/* ---- 9 cross entropy ---------------------------------------------------------------------------
 */

static int64_t ignored_target;

static Tensor *cross_entropy_forward(const AgCall *call) {
    return tensor_retain(ag_cross_entropy(call->in[0], call->in[1], ignored_target, REDUCE_MEAN));
}

static bool is_ignored(const Tensor *targets, int64_t i) {
    return (int64_t)tensor_get(targets, i) == ignored_target;
}

/* A call for each row; each loss is one of the mean. */
static void cross_entropy_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Student *student = call->data;
    const Shape shape = call->in[0]->shape; /* (N, C) */
    const int size[MOST_SIZES] = {(int)shape.dim[1], -1};
    Calls calls = make_calls(student, (int)shape.dim[0], size);
    int64_t counted = 0;
    for (int i = 0; i < calls.n; i++) {
        if (is_ignored(call->in[1], i)) continue;
        calls.call[i].size[1] = (int)tensor_get(call->in[1], (int64_t)i);
        counted++;
    }
    for (int i = 0; i < calls.n; i++) calls.call[i].number[0] = tensor_item(dy) / (double)counted;
    if (put_array(student, &calls, 1, call->in[0]) && compute(student, &calls))
        dx[0] = take_array(student, &calls, 0, shape);
    calls_free(&calls);
}

static const AgFunction cross_entropy = {"your_cross_entropy", NULL, NULL, cross_entropy_forward,
                                         cross_entropy_backward};

Tensor *planted_cross_entropy(Tensor *logits, Tensor *targets, int64_t ignored) {
    ignored_target = ignored;
    if (!planted_is_yours(9)) return ag_cross_entropy(logits, targets, ignored, REDUCE_MEAN);
    return ag_call(&cross_entropy, 2, (Tensor *[]){logits, targets}, &students[9]);
}

/* ---- 10 additive -------------------------------------------------------------------------------
 */

static Tensor *additive_forward(const AgCall *call) {
    return tensor_retain(ag_additive_scores(call->in[0], call->in[1], call->in[2], NULL));
}

/* A call for each sequence. All have the same w, and w gets a term from each. */
static void additive_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Student *student = call->data;
    const Shape q = call->in[0]->shape, k = call->in[1]->shape;
    const int64_t B = q.dim[0], H = q.dim[2];
    const int size[MOST_SIZES] = {(int)q.dim[1], (int)k.dim[1], (int)H};
    Calls calls = make_calls(student, (int)B, size);
    if (put_array(student, &calls, 3, call->in[0]) && put_array(student, &calls, 4, call->in[1]) &&
        put_same(student, &calls, 5, call->in[2]) && put_array(student, &calls, 6, dy) &&
        compute(student, &calls)) {
        dx[0] = take_array(student, &calls, 0, q);
        dx[1] = take_array(student, &calls, 1, k);
        dx[2] = take_array(student, &calls, 2, SHAPE(B, H)); /* w (1, H) was broadcast to it */
    }
    calls_free(&calls);
}

static const AgFunction additive = {"your_additive", NULL, NULL, additive_forward,
                                    additive_backward};

Tensor *planted_additive(Tensor *q, Tensor *k, Tensor *w) {
    if (!planted_is_yours(10)) return ag_additive_scores(q, k, w, NULL);
    return ag_call(&additive, 3, (Tensor *[]){q, k, w}, &students[10]);
}

/* ---- 13 sgd ------------------------------------------------------------------------------------
 */

static void library_step(int64_t n, double lr, double momentum, double *theta, double *velocity,
                         const double *g) {
    for (int64_t i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + g[i];
        theta[i] -= lr * velocity[i];
    }
}

bool planted_sgd(Tensor *theta, double lr, double momentum, double *velocity) {
    Student *student = &students[13];
    const int64_t n = tensor_numel(theta);
    const int size[MOST_SIZES] = {(int)n};
    if (!student->e || !theta->grad) return !tensor_error();
    Calls calls = make_calls(student, 1, size);
    bool ok = put_array(student, &calls, 0, theta) && put_array(student, &calls, 2, theta->grad);
    if (ok) {
        Call *call = calls.call;
        call->number[0] = lr;
        call->number[1] = momentum;
        memcpy(call->array[1], velocity, (size_t)n * sizeof *velocity);
        if (student->is_yours) ok = compute(student, &calls);
        else library_step(n, lr, momentum, call->array[0], call->array[1], call->array[2]);
    }
    if (ok) {
        Tensor *moved = take_array(student, &calls, 0, theta->shape);
        memcpy(velocity, calls.call->array[1], (size_t)n * sizeof *velocity);
        ok = moved && tensor_copy_from(theta, moved);
        tensor_release(moved);
    }
    calls_free(&calls);
    return ok;
}
