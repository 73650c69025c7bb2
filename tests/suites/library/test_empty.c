/* test_empty.c - tensors without elements. Their other sizes may be very large, but empty rows take
 * no time and no memory: a loop over 2^40 of them would not end before the time limit of the test.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common.h"

/* A size too large for any loop. */
#define N (INT64_C(1) << 40)

static void setup(void) {
    alarm(300);
    frame_setup();
}

static void teardown(void) {
    frame_teardown();
    alarm(0);
}

/* ---- every op ------------------------------------------------------------------------------ */

/* Does an input have the size N and the size 0? If after is false, the 0 must come first, else N.
 */
static bool is_large(const Sample *s, bool after) {
    for (int i = 0; i < s->n; i++) {
        int nothing = -1, large = -1;
        for (int d = 0; d < s->in[i].shape.ndim; d++) {
            if (s->in[i].shape.dim[d] == 0) nothing = d;
            if (s->in[i].shape.dim[d] == N) large = d;
        }
        if (nothing >= 0 && large >= 0 && (nothing < large) == after) return true;
    }
    return false;
}

enum { FEW = 16, FEWER = 3 }; /* how many elements an input and a result may have */

/* A sample that does not suit this suite is a mistake in its row above, not in the op. */
static void expect_suitable(const Sample *s) {
    bool empty = false;
    for (int i = 0; i < s->n; i++)
        ck_assert_msg(tensor_shape_numel(s->in[i].shape) <= FEW,
                      "a call of %s without elements: input %d, %s, has more than %d elements",
                      s->op, i, tensor_shape_text(s->in[i].shape), FEW);
    for (int i = 0; i < s->n; i++) empty = empty || tensor_shape_numel(s->in[i].shape) == 0;
    ck_assert_msg(empty, "a call of %s without elements: every input has elements", s->op);
}

/* If an input has elements although the result has none, its gradient must be 0. */
static void expect_nothing(const Sample *s, int i, const Tensor *grad) {
    double element[FEW];
    ck_assert_msg(grad != NULL, "%s: input %d has no gradient", s->op, i);
    ck_assert(tensor_to_doubles(grad, element));
    for (int64_t k = 0; k < tensor_numel(grad); k++)
        ck_assert_msg(element[k] == 0,
                      "%s: the gradient of input %d, %s, is %g at %d: it must be 0", s->op, i,
                      tensor_shape_text(s->in[i].shape), element[k], (int)k);
}

static void check(const Sample *s) {
    Tensor *x[SAMPLE_INPUTS];
    expect_suitable(s);
    for (int i = 0; i < s->n; i++) {
        x[i] = sample_input(s, i, F64);
        ck_assert_msg(x[i] != NULL, "%s: %s", s->op, tensor_error());
        if (s->in[i].kind == 'r') ag_requires_grad(x[i]);
    }
    ck_assert(tape_begin());
    Tensor *y = call_op(s->op, x, s->n, s->number);
    ck_assert_msg(
        y != NULL,
        "a call of %s without elements, %s: the op says \"%s\". If it is right, the sample "
        "is wrong: its result should have at most %d elements",
        s->op, tensor_shape_text(s->in[0].shape), tensor_error(), FEWER);
    ck_assert_msg(tensor_numel(y) <= FEWER,
                  "a call of %s without elements, %s: its result is %s and may have %d elements",
                  s->op, tensor_shape_text(s->in[0].shape), tensor_shape_text(y->shape), FEWER);
    if (y->requires_grad) {
        Tensor *dy = tensor_ones(y->shape);
        ck_assert_msg(ag_backward_from(y, dy), "%s: %s", s->op, tensor_error());
        for (int i = 0; i < s->n; i++)
            if (s->in[i].kind == 'r') expect_nothing(s, i, x[i]->grad);
        tensor_release(dy);
    }
    tape_end();
    for (int i = 0; i < s->n; i++) tensor_release(x[i]);
}

/* Checks the samples of this op. Returns which large sizes there were: bit 0 and bit 1, for the two
 * cases of is_large. */
static int check_all(const char *op) {
    int sizes = 0;
    for (const Sample *s = samples_without_elements(); s->op; s++) {
        if (strcmp(s->op, op) != 0) continue;
        sizes |= is_large(s, false) | is_large(s, true) << 1;
        check(s);
    }
    return sizes;
}

/* An op that needs an element fails and says so, whatever the other sizes are. */
static void expect_refused(const char *op) {
    const Shape shapes[] = {SHAPE(0, N), SHAPE(N, 0)};
    ck_assert(tape_begin());
    for (int i = 0; i < 2; i++) {
        Tensor *x = tensor_zeros(shapes[i]);
        ck_assert_ptr_null(call_op(op, &x, 1, NULL));
        expect_error_like(op, ": it is empty and has no maximum");
        tensor_release(x);
    }
    tape_end();
}

CASE("ops", .setup = setup, .teardown = teardown)
LOOP_TEST(every_op_of_nothing_is_done_at_once, number_of_rows()) {
    const OpRow *row = &op_rows[_i];
    if (row->needs_elements) expect_refused(row->name);
    else
        ck_assert_msg(check_all(row->name) == 3,
                      "%s has no EMPTY call of (0, 2^40), or none of (2^40, 0)", row->name);
}

/* Products of expanded tensors: 2^40 empty rows and 2^40 dot products of no elements need no
 * memory. */
TEST(products_of_what_is_repeated) {
    Tensor *one = tensor_ones(SHAPE(1, 1, 1));
    Tensor *none = tensor_ones(SHAPE(N, 1, 0));
    for (int t = 0; t < 2; t++) {
        Tensor *a = tensor_to(one, t ? F64 : F32);
        Tensor *b = tensor_to(none, t ? F64 : F32);
        ck_assert(tape_begin_no_grad());
        Tensor *y = ag_bmm(ag_expand(a, SHAPE(N, 1, 1)), b);
        ck_assert_msg(y && shape_equal(y->shape, b->shape), "%s", tensor_error());
        tape_end();
        RELEASE(a, b);
    }
    RELEASE(one, none);
}

/* Where there are no scores, the number of heads has no limit. A stride computed from this number
 * would overflow; the sanitizers would see it. */
TEST(weights_of_many_heads_without_scores) {
    Tensor *scores = ag_requires_grad(tensor_zeros(SHAPE(0, 2, 2)));
    ck_assert(tape_begin());
    Tensor *y = ag_attention_weights(scores, 1, (AttentionMask){0}, INT64_MAX - 1);
    ck_assert_msg(y && shape_equal(y->shape, scores->shape), "%s", tensor_error());
    ck_assert_msg(ag_backward(ag_sum(y)) && scores->grad, "%s", tensor_error());
    tape_end();
    tensor_release(scores);
}

/* ---- all else ------------------------------------------------------------------------------ */

static const Shape shapes[] = {{2, {0, N}}, {2, {N, 0}}, {3, {3, N, 0}}};

static Tensor *checked(Tensor **in, void *unused) {
    (void)unused;
    return ag_softmax(ag_add(in[0], in[1]), -1);
}

CASE("others", .setup = setup, .teardown = teardown)
LOOP_TEST(gradcheck_of_nothing, COUNT(shapes)) {
    Tensor *in[] = {ag_requires_grad(tensor_ones(shapes[_i])),
                    ag_requires_grad(tensor_ones(shapes[_i]))};
    ck_assert_msg(ag_gradcheck(checked, in, 2, NULL, (GradcheckOptions){0}), "%s", tensor_error());
    RELEASE(in[0], in[1]);
}

LOOP_TEST(copies_and_reductions_of_nothing, COUNT(shapes)) {
    Tensor *x = tensor_ones(shapes[_i]);
    Tensor *y = tensor_clone(x);
    Tensor *whole = tensor_to(x, I64);
    Tensor *indices;
    Tensor *sorted = tensor_sort(x, &indices);
    ck_assert_msg(y && whole && sorted && indices, "%s", tensor_error());
    ck_assert(tensor_allclose(x, y, 0, 0) && tensor_allclose(x, sorted, 0, 0));
    ck_assert(tensor_to_doubles(x, NULL));
    ck_assert_double_eq(tensor_sum_of_squares(x), 0);
    ck_assert_double_eq(tensor_norm(x), 0);
    ck_assert(tensor_is_contiguous(x));
    ck_assert_int_eq(tensor_numel(x), 0);
    RELEASE(x, y, whole, indices, sorted);
}

LOOP_TEST(writes_to_nothing, COUNT(shapes)) {
    Tensor *x = tensor_ones(shapes[_i]);
    Tensor *y = tensor_zeros(shapes[_i]);
    Tensor *m = tensor_zeros(shapes[_i]);
    Tensor *v = tensor_zeros(shapes[_i]);
    ck_assert(tensor_fill(x, 2) && tensor_copy_from(x, y) && tensor_add_(x, y, 2));
    ck_assert(tensor_mul_(x, 2) && tensor_uniform_(x, 0, 1) && tensor_normal_(x, 0, 1));
    ck_assert(tensor_adamw_(x, m, v, y, (AdamWStep){.keep = 1, .eps = 1}));
    RELEASE(x, y, m, v);
}

LOOP_TEST(nothing_is_drawn, COUNT(shapes)) {
    const Shape shape = shapes[_i];
    Tensor *before = tensor_generator_state();
    Tensor *all[] = {tensor_rand(shape),           tensor_randn(shape),
                     tensor_uniform(0, 1, shape),  tensor_normal(0, 1, shape),
                     tensor_bernoulli(0.5, shape), tensor_randint(0, 5, shape)};
    Tensor *after = tensor_generator_state();
    ck_assert_msg(tensor_allclose(before, after, 0, 0), "%s", tensor_error());
    for (int i = 0; i < COUNT(all); i++) {
        ck_assert(all[i] && shape_equal(all[i]->shape, shape));
        tensor_release(all[i]);
    }
    RELEASE(before, after);
}

/* torch: print(torch.ones(0, 2**40, dtype=torch.float64)), float64 is the default type here */
LOOP_TEST(nothing_is_printed, COUNT(shapes)) {
    static const char *const text[] = {"tensor([], size=(0, 1099511627776))\n",
                                       "tensor([], size=(1099511627776, 0))\n",
                                       "tensor([], size=(3, 1099511627776, 0))\n"};
    char *printed = NULL;
    size_t size;
    FILE *file = open_memstream(&printed, &size);
    Tensor *x = tensor_ones(shapes[_i]);
    ck_assert(tensor_print(x, file));
    fclose(file);
    ck_assert_str_eq(printed, text[_i]);
    free(printed);
    tensor_release(x);
}

LOOP_TEST(nothing_is_saved_and_loaded, COUNT(shapes)) {
    char path[] = "/tmp/tapehead-empty-XXXXXX";
    close(mkstemp(path));
    Tensor *x = tensor_ones(shapes[_i]);
    ck_assert_msg(tensor_save_npy(x, path), "%s", tensor_error());
    Tensor *y = tensor_load_npy(path);
    ck_assert_msg(y && shape_equal(y->shape, x->shape), "%s", tensor_error());
    TensorDict *dict = tensor_dict_new();
    ck_assert(tensor_dict_set(dict, "x", x) && tensor_save_safetensors(dict, path));
    TensorDict *loaded = tensor_load_safetensors(path);
    ck_assert_msg(loaded != NULL, "%s", tensor_error());
    ck_assert(shape_equal(tensor_dict_get(loaded, "x")->shape, x->shape));
    tensor_dict_free(dict);
    tensor_dict_free(loaded);
    RELEASE(x, y);
    unlink(path);
}

int main(void) { return run_tests("empty"); }
