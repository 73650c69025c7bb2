/* test_tape.c - the rules of the tape: who owns a result, what backpropagation adds to which
 * gradient, when it fails, what tape_print writes, and whether ag_gradcheck can tell a right
 * backward from a wrong one.
 *
 * The numbers are small enough to be checked by hand. test_ops.c checks the gradient of each op. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"

/* ---- ownership ----------------------------------------------------------------------------- */

CASE("ownership")
TEST(a_result_is_lent_and_the_tape_lets_it_go) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    int64_t before = tensor_live();
    ck_assert(tape_begin());
    Tensor *y = ag_exp(ag_mul(ag_add(x, x), x));
    ck_assert_ptr_nonnull(y);
    ck_assert_int_eq(tensor_live(), before + 3);
    ck_assert_int_eq(y->refs, 1);
    tape_end();
    ck_assert_int_eq(tensor_live(), before);
    ck_assert_int_eq(x->refs, 1);
    tensor_release(x);
}

/* The tape counts a reference to what its ops read, so the caller may let go early. */
TEST(an_input_may_be_released_before_the_tape_ends) {
    Tensor *w = LEAF(SHAPE(2), 3, 4);
    ck_assert(tape_begin());
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *y = ag_mul(w, x);
    tensor_release(x);
    ck_assert(ag_backward(ag_sum(y)));
    tape_end();
    EXPECT_GRAD(w, 1, 2);
    tensor_release(w);
}

TEST(a_retained_result_outlives_the_tape) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = tensor_retain(ag_scale(ag_transpose(ag_reshape(x, SHAPE(1, 2)), 0, 1), 3));
    tape_end();
    ck_assert_int_eq(y->refs, 1);
    EXPECT_ELEMENTS(y, 3, 6);
    tensor_release(x);
    EXPECT_ELEMENTS(y, 3, 6);
    tensor_release(y);
}

TEST(a_retained_view_keeps_the_bytes) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    ck_assert(tape_begin());
    Tensor *y = tensor_retain(ag_select(ag_exp(ag_scale(x, 0)), 0, 1));
    tape_end();
    tensor_release(x);
    EXPECT_ELEMENTS(y, 1, 1);
    tensor_release(y);
}

TEST(ending_nothing_does_nothing) {
    tape_end();
    tape_end();
    ck_assert_ptr_null(tensor_error());
    ck_assert(tape_begin());
    tape_end();
}

/* ---- nested tapes -------------------------------------------------------------------------- */

CASE("nested")
TEST(an_inner_tape_lets_go_of_its_own_results) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_scale(x, 2);
    int64_t before = tensor_live();
    ck_assert(tape_begin_no_grad());
    Tensor *inner = ag_exp(y);
    ck_assert(!inner->requires_grad);
    ck_assert_ptr_null(inner->grad_fn);
    ck_assert(tape_begin_no_grad());
    ck_assert_ptr_nonnull(ag_exp(inner));
    ck_assert_int_eq(tensor_live(), before + 2);
    tape_end();
    ck_assert_int_eq(tensor_live(), before + 1);
    tape_end();
    ck_assert_int_eq(tensor_live(), before);
    ck_assert(y->requires_grad);
    ck_assert(ag_backward(ag_sum(ag_square(y))));
    tape_end();
    EXPECT_GRAD(x, 8, 16);
    tensor_release(x);
}

TEST(a_recording_tape_may_stand_inside_one_that_does_not_record) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin_no_grad());
    Tensor *constant = ag_scale(x, 5);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(ag_mul(x, constant))));
    tape_end();
    tape_end();
    EXPECT_GRAD(x, 5, 10);
    tensor_release(x);
}

TEST(two_recording_tapes_are_an_error) {
    const char *sentence = "tape_begin: a recording tape is open already: tape_end it first";
    ck_assert(tape_begin());
    FAILS(tape_begin(), sentence);
    ck_assert(tape_begin_no_grad());
    FAILS(tape_begin(), sentence);
    tape_end();
    tape_end();
}

TEST(sixty_four_tapes_are_enough) {
    ck_assert(tape_begin());
    for (int i = 1; i < 64; i++) ck_assert(tape_begin_no_grad());
    FAILS(tape_begin_no_grad(),
          "tape_begin_no_grad: 64 tapes are open already: is a tape_end missing?");
    Tensor *x = LEAF(SCALAR, 2);
    ck_assert_ptr_nonnull(ag_exp(x));
    for (int i = 0; i < 63; i++) tape_end();
    ck_assert(ag_backward(ag_square(x))); /* the first tape is still open and records */
    tape_end();
    EXPECT_GRAD(x, 4);
    tensor_release(x);
}

/* The tape must open, so that the next tape_end closes it, and not the outer tape. */
TEST(a_tape_opens_while_an_error_is_pending) {
    Tensor *x = LEAF(SCALAR, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    tensor_fail("the first mistake");
    ck_assert(tape_begin_no_grad());
    ck_assert_ptr_null(ag_exp(y));
    tape_end();
    expect_error("the first mistake");
    ck_assert(ag_backward(y));
    tape_end();
    EXPECT_GRAD(x, 4);
    tensor_release(x);
}

static void *use_tape_in_thread(void *ok) {
    Tensor *x = LEAF(SCALAR, 3);
    *(bool *)ok = !ag_exp(x); /* a thread does not see the tape of another thread */
    tensor_clear_error();
    *(bool *)ok = *(bool *)ok && tape_begin() && ag_backward(ag_square(x));
    *(bool *)ok = *(bool *)ok && tensor_item(x->grad) == 6;
    tape_end();
    tensor_release(x);
    return NULL;
}

LOOP_TEST(each_thread_has_its_own_tapes, WITH_THREADS) {
    Tensor *x = LEAF(SCALAR, 2);
    bool ok = false;
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, use_tape_in_thread, &ok), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(ok);
    ck_assert(ag_backward(y));
    tape_end();
    EXPECT_GRAD(x, 4);
    tensor_release(x);
}

/* ---- tape_end_keeping ---------------------------------------------------------------------- */

CASE("keeping")
TEST(kept_for_the_caller) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    int64_t before = tensor_live();
    ck_assert(tape_begin_no_grad());
    Tensor *y = tape_end_keeping(ag_exp(ag_scale(x, 0)));
    ck_assert_ptr_nonnull(y);
    ck_assert_int_eq(tensor_live(), before + 1);
    ck_assert_int_eq(y->refs, 1);
    EXPECT_ELEMENTS(y, 1, 1);
    RELEASE(y, x);
}

TEST(kept_for_the_tape_outside) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    int64_t before = tensor_live();
    ck_assert(tape_begin_no_grad());
    ck_assert(tape_begin_no_grad());
    Tensor *y = tape_end_keeping(ag_scale(ag_exp(ag_scale(x, 0)), 3));
    y = tape_end_keeping(y);
    ck_assert_int_eq(tensor_live(), before + 1);
    ck_assert_int_eq(y->refs, 1); /* the outer tape's */
    ck_assert(ag_backward(ag_sum(ag_mul(x, y))));
    tape_end();
    ck_assert_int_eq(tensor_live(), before + 1); /* x's gradient */
    EXPECT_GRAD(x, 3, 3);
    tensor_release(x);
}

/* tape_end_keeping of a result of the outer tape must not take it from the outer tape. */
TEST(keeping_a_result_of_an_outer_tape_changes_nothing) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    ck_assert(tape_begin_no_grad());
    ck_assert(tape_begin_no_grad());
    ck_assert_ptr_eq(tape_end_keeping(ag_dropout(y, 0)), y);
    tape_end();
    Tensor *z = ag_scale(y, 2);
    ck_assert_msg(z != NULL, "%s", tensor_error());
    ck_assert(ag_backward(ag_sum(z)));
    tape_end();
    EXPECT_GRAD(x, 4, 8);
    tensor_release(x);
}

TEST(keeping_a_leaf_is_retaining_it) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    ck_assert_ptr_eq(tape_end_keeping(x), x);
    ck_assert_int_eq(x->refs, 2);
    RELEASE(x, x);
}

TEST(keeping_nothing_closes_the_tape) {
    ck_assert(tape_begin());
    ck_assert_ptr_null(tape_end_keeping(NULL));
    ck_assert_ptr_null(tensor_error());
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_exp(x);
    tensor_fail("the first mistake");
    FAILS(tape_end_keeping(y), "the first mistake");
    tensor_release(x); /* frame_teardown checks that no tape is open */
}

/* ---- tape_own ------------------------------------------------------------------------------ */

TEST(the_tape_owns_what_it_is_given) {
    const int64_t before = tensor_live();
    ck_assert(tape_begin());
    Tensor *made = tensor_full(SHAPE(2), 3);
    Tensor *x = tape_own(made);
    ck_assert_ptr_eq(x, made);
    ck_assert_int_eq(x->refs, 1);
    ck_assert_int_eq(tensor_live(), before + 1);
    ck_assert(tape_begin_no_grad());
    EXPECT_ELEMENTS(ag_add(tape_own(tensor_ones(SHAPE(2))), x), 4, 4);
    tape_end();
    ck_assert_int_eq(tensor_live(), before + 1); /* the tensor of the inner tape was freed */
    tape_end();
    ck_assert_int_eq(tensor_live(), before);
}

/* A tensor of tape_own may be a leaf. If it is retained, it outlives the tape. */
TEST(an_owned_leaf_gets_a_gradient_and_may_be_retained) {
    ck_assert(tape_begin());
    Tensor *x = ag_requires_grad(tape_own(LEAF(SHAPE(2), 2, 5)));
    ck_assert(ag_backward(ag_sum(ag_square(x))));
    EXPECT_GRAD(x, 4, 10);
    tensor_retain(x);
    tape_end();
    ck_assert(tape_begin()); /* it is a leaf, not a result of the tape that has ended */
    ck_assert(ag_backward(ag_sum(x)));
    tape_end();
    EXPECT_GRAD(x, 5, 11);
    tensor_release(x);
}

TEST(what_cannot_be_owned_is_released) {
    FAILS(tape_own(tensor_ones(SHAPE(2))),
          "tape_own: no tape is open: call tape_begin or tape_begin_no_grad first");
    ck_assert(tape_begin());
    FAILS(tape_own(NULL), "tape_own: the tensor is NULL");
    Tensor *x = tensor_ones(SHAPE(2));
    tensor_fail("the first mistake");
    ck_assert_ptr_null(tape_own(x)); /* frame_teardown checks that x was freed */
    expect_error("the first mistake");
    tape_end();
}

/* ---- a result whose tape has ended --------------------------------------------------------- */

TEST(history_ends_with_the_tape) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = tape_end_keeping(ag_square(x));
    ck_assert(tape_begin());
    FAILS(ag_mul(x, y),
          "mul: b was computed on a tape that has ended: ag_detach it to use it as a constant");
    FAILS(ag_backward_from(y, y), "backward: y was computed on a tape that has ended");
    ck_assert(ag_backward(ag_sum(ag_mul(x, ag_detach(y)))));
    tape_end();
    EXPECT_GRAD(x, 1, 4); /* y is a constant */
    RELEASE(y, x);
}

TEST(history_does_not_matter_where_nothing_is_recorded) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = tape_end_keeping(ag_square(x));
    ck_assert(tape_begin_no_grad());
    EXPECT_ELEMENTS(ag_add(y, y), 2, 8);
    tape_end();
    ck_assert(tape_begin());
    ck_assert_ptr_nonnull(ag_gt(y, x)); /* bools have no gradient */
    tape_end();
    RELEASE(y, x);
}

TEST(a_kept_constant_may_become_a_leaf) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin_no_grad());
    Tensor *y = ag_requires_grad(tape_end_keeping(ag_square(x)));
    ck_assert_ptr_nonnull(y);
    for (int i = 0; i < 2; i++) { /* several tapes can use it */
        ck_assert(tape_begin());
        ck_assert(ag_backward(ag_sum(ag_mul(x, y))));
        tape_end();
    }
    EXPECT_GRAD(y, 2, 4);
    EXPECT_GRAD(x, 2, 8);
    RELEASE(y, x);
}

/* ---- accumulation -------------------------------------------------------------------------- */

CASE("gradients")
TEST(leaf_gradients_add_up_over_tapes) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    for (int i = 1; i <= 3; i++) {
        ck_assert(tape_begin());
        ck_assert(ag_backward(ag_sum(ag_square(x))));
        tape_end();
        EXPECT_GRAD(x, 2 * i, 4 * i);
    }
    ck_assert(ag_zero_grad(x));
    ck_assert_ptr_null(x->grad);
    ck_assert(ag_zero_grad(x)); /* there is no gradient yet */
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(ag_square(x))));
    tape_end();
    EXPECT_GRAD(x, 2, 4);
    tensor_release(x);
}

/* The second walk computes the same numbers, so the gradient is exactly doubled. */
TEST(walking_a_tape_twice_adds_exactly_twice) {
    Tensor *x = LEAF(SHAPE(2, 2), 0.1, 0.7, -1.3, 2.9);
    Tensor *w = LEAF(SHAPE(2, 2), 0.3, -0.2, 1.1, 0.9);
    double first[8], second[8];
    ck_assert(tape_begin());
    Tensor *h = ag_tanh(ag_linear(x, w, NULL));
    Tensor *loss = ag_sum(ag_mul(ag_softmax(h, -1), ag_square(ag_sub(h, x))));
    ck_assert(ag_backward(loss));
    ck_assert(tensor_to_doubles(x->grad, first) && tensor_to_doubles(w->grad, first + 4));
    ck_assert(ag_backward(loss));
    ck_assert(tensor_to_doubles(x->grad, second) && tensor_to_doubles(w->grad, second + 4));
    tape_end();
    for (int i = 0; i < 8; i++) ck_assert_double_eq(second[i], 2 * first[i]);
    RELEASE(x, w);
}

TEST(a_value_used_twice_gets_both_contributions) {
    Tensor *x = LEAF(SHAPE(2), 3, 5);
    ck_assert(tape_begin());
    Tensor *y = ag_mul(x, x);                             /* x^2 */
    Tensor *z = ag_add(ag_mul(y, x), ag_add(y, x));       /* x^3 + x^2 + x */
    ck_assert(ag_backward(ag_sum(ag_sub(z, ag_neg(y))))); /* x^3 + 2 x^2 + x */
    tape_end();
    EXPECT_GRAD(x, 27 + 12 + 1, 75 + 20 + 1);
    tensor_release(x);
}

/* Gradients of slices are added to the gradient buffer of their tensor in place. If add has given
 * the same buffer to y, the gradient of y must not change. */
TEST(parts_add_to_the_gradient_so_far) {
    Tensor *x = LEAF(SHAPE(3), 1, 2, 3);
    Tensor *y = LEAF(SHAPE(3), 4, 5, 6);
    Tensor *index = tensor_from_int64s(SHAPE(2), (int64_t[]){2, 2});
    for (int order = 0; order < 2; order++) {
        ck_assert(tape_begin());
        Tensor *h = ag_scale(x, 1);
        Tensor *sum = order ? ag_sum(ag_add(h, y)) : NULL;
        ag_retain_grad(h);
        Tensor *parts = ag_add(ag_scale(ag_slice(h, 0, 0, 2), 10), ag_slice(h, 0, 1, 3));
        parts = ag_add(parts, ag_scale(ag_index_select(h, 0, index), 100));
        if (!order) sum = ag_sum(ag_add(h, y));
        ck_assert(ag_backward(ag_add(sum, ag_sum(parts))));
        EXPECT_GRAD(h, 11, 12, 202);
        EXPECT_GRAD(x, 11, 12, 202);
        EXPECT_GRAD(y, 1, 1, 1);
        ck_assert(ag_zero_grad(x));
        ck_assert(ag_zero_grad(y));
        tape_end();
    }
    RELEASE(x, y, index);
}

/* The gradient from sum is one number with strides of 0. Other gradients must not be added to it in
 * place. */
TEST(contributions_of_different_strides_add_up) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    ck_assert(tape_begin());
    Tensor *squares = ag_sum(ag_square(x));
    Tensor *turned = ag_sum(ag_square(ag_transpose(x, 0, 1)));
    Tensor *loss = ag_add(ag_add(squares, turned), ag_sum(x)); /* the gradient from sum comes
                                                                * first */
    ck_assert(ag_backward(loss));
    tape_end();
    EXPECT_GRAD(x, 5, 9, 13, 17);
    tensor_release(x);
}

/* The backward of add returns dy for both inputs. They must not share one ->grad. */
TEST(a_gradient_handed_to_two_inputs_is_not_shared) {
    Tensor *a = LEAF(SHAPE(2), 1, -2);
    Tensor *b = LEAF(SHAPE(2), -1, 2);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(ag_add(a, ag_reshape(b, SHAPE(2))))));
    tape_end();
    ck_assert_ptr_ne(a->grad->storage, b->grad->storage);
    ck_assert(tensor_fill(a->grad, 7));
    EXPECT_GRAD(b, 1, 1);
    RELEASE(a, b);
}

/* The backward of cat makes views of one dy, and a gradient can have strides of 0. Each leaf must
 * get a gradient of its own. */
TEST(each_leaf_gets_a_gradient_of_its_own) {
    Tensor *a = LEAF(SHAPE(2), 1, 2);
    Tensor *b = LEAF(SHAPE(2), 3, 4);
    Tensor *s = LEAF(SCALAR, 2);
    double c[] = {1, 2, 3, 4};
    Tensor *dy = tensor_from_doubles(SHAPE(4), c);
    ck_assert(tape_begin());
    ck_assert(ag_backward_from(ag_cat((Tensor *[]){a, b}, 2, 0), dy));
    ck_assert(ag_backward(ag_sum(ag_expand(s, SHAPE(3, 2)))));
    ck_assert(ag_backward_from(ag_reshape(a, SHAPE(2)), b));
    tape_end();
    EXPECT_GRAD(a, 1 + 3, 2 + 4);
    EXPECT_GRAD(b, 3, 4);
    EXPECT_GRAD(s, 6);
    EXPECT_ELEMENTS(dy, 1, 2, 3, 4);
    EXPECT_ELEMENTS(b, 3, 4);
    Tensor *all[] = {a, b, s};
    for (int i = 0; i < 3; i++) {
        ck_assert(tensor_is_contiguous(all[i]->grad));
        ck_assert_int_eq(all[i]->grad->storage->refs, 1);
        tensor_release(all[i]);
    }
    tensor_release(dy);
}

TEST(gradients_are_of_the_inputs_type_and_shape) {
    double one[] = {1, 2};
    tensor_set_default_dtype(F32);
    Tensor *x = ag_requires_grad(tensor_from_doubles(SHAPE(2, 1), one));
    Tensor *row = tensor_from_doubles(SHAPE(2), one);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(ag_mul(x, row))));
    tape_end();
    ck_assert_int_eq(x->grad->dtype, F32);
    ck_assert_int_eq(x->grad->shape.ndim, 2);
    EXPECT_GRAD(x, 3, 3);
    ck_assert(!x->grad->requires_grad);
    ck_assert_ptr_null(row->grad);
    RELEASE(x, row);
}

/* More nodes than the first capacity of the tape; some ops have more inputs than a node can hold.
 */
TEST(a_long_tape_grows) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = x;
    for (int i = 0; i < 300; i++) {
        y = ag_add(y, x);
        if (i % 50 == 0) y = ag_slice(ag_cat((Tensor *[]){x, y, x, x, y}, 5, 0), 0, 2, 4);
    }
    ck_assert(ag_backward(ag_sum(y)));
    tape_end();
    EXPECT_GRAD(x, 301, 301);
    tensor_release(x);
}

/* ---- gradients of intermediate results ----------------------------------------------------- */

/* Each loss has three lines of its own. The results of all other lines carry a mark in the place of
 * a gradient: a pass that came to such a line would take the mark. */
TEST(a_pass_comes_only_to_the_lines_of_its_loss) {
    enum { LOSSES = 10, OWN = 3 };
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *loss[LOSSES];
    for (int i = 0; i < LOSSES; i++) loss[i] = ag_sum(ag_square(ag_scale(x, i)));
    Tensor *mark = tensor_ones(SHAPE(2));
    for (int i = 0; i < LOSSES; i++) {
        TapeLine line;
        int taken = 0;
        for (int l = 0; tape_line(l, &line); l++)
            if (l / OWN != i) line.out->grad_buffer = tensor_retain(mark);
        ck_assert(ag_zero_grad(x));
        ck_assert(ag_reaches(loss[i], x) && ag_backward(loss[i]));
        EXPECT_GRAD(x, 2 * i * i * 1, 2 * i * i * 2);
        for (int l = 0; tape_line(l, &line); l++) {
            if (l / OWN == i) continue;
            taken += line.out->grad_buffer != mark;
            tensor_release(line.out->grad_buffer);
            line.out->grad_buffer = NULL;
        }
        ck_assert_int_eq(taken, 0);
    }
    tensor_release(mark);
    tape_end();
    tensor_release(x);
}

/* Each value is the mean of two earlier ones, chosen at random, so it is a sum of the two leaves:
 * part[i] of the first, 1 - part[i] of the second. Every third value is the mean of constants. */
TEST(a_pass_comes_to_all_lines_of_its_result) {
    enum { VALUES = 90 };
    Tensor *value[VALUES] = {LEAF(SCALAR, 1), LEAF(SCALAR, 1), tensor_ones(SCALAR)};
    double part[VALUES] = {1, 0, 0}, sum[2] = {0, 0};
    Tensor *draws = tensor_randint(0, 1 << 20, SHAPE(2, VALUES));
    const int64_t *draw = draws->data;
    ck_assert(tape_begin());
    for (int i = 3; i < VALUES; i++) {
        const int a = (int)(draw[i] % i), b = (int)(draw[VALUES + i] % i);
        const int from = i % 3 == 2 ? 2 : a - (a % 3 == 2), to = i % 3 == 2 ? 2 : b - (b % 3 == 2);
        value[i] = ag_scale(ag_add(value[from], value[to]), 0.5);
        part[i] = (part[from] + part[to]) / 2;
    }
    for (int pass = 0; pass < 200; pass++) {
        const int i = (int)(draw[pass % VALUES] + 7 * pass) % VALUES;
        if (i % 3 == 2) continue;
        ck_assert(ag_reaches(value[i], value[0]) == (part[i] > 0));
        ck_assert(ag_reaches(value[i], value[1]) == (part[i] < 1));
        ck_assert(!ag_reaches(value[i], value[2]));
        ck_assert(ag_backward(value[i]));
        sum[0] += part[i];
        sum[1] += 1 - part[i];
    }
    expect_elements("grad", value[0]->grad, &sum[0], 1e-12);
    expect_elements("grad", value[1]->grad, &sum[1], 1e-12);
    tape_end();
    tensor_release(draws);
    for (int i = 0; i < 3; i++) tensor_release(value[i]);
}

TEST(gradients_of_intermediate_results_are_let_go) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    Tensor *z = ag_exp(y);
    Tensor *loss = ag_sum(z);
    int64_t before = tensor_live();
    ck_assert(ag_backward(loss));
    ck_assert_ptr_null(y->grad);
    ck_assert_ptr_null(z->grad);
    ck_assert_ptr_null(loss->grad);
    ck_assert_int_eq(tensor_live(), before + 1);
    tape_end();
    tensor_release(x);
}

TEST(one_gradient_may_be_retained) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    Tensor *z = ag_scale(y, 3);
    Tensor *loss = ag_sum(z);
    ck_assert_ptr_eq(ag_retain_grad(y), y);
    ck_assert(ag_backward(loss));
    EXPECT_GRAD(y, 3, 3);
    ck_assert_ptr_null(z->grad);
    ck_assert(ag_backward(loss));
    EXPECT_GRAD(y, 6, 6);
    EXPECT_GRAD(x, 12, 24); /* the gradient that y keeps is not propagated again */
    tape_end();
    tensor_release(x);
}

TEST(a_tape_may_keep_all_gradients) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *y = ag_square(x);
    Tensor *z = ag_reshape(y, SHAPE(2, 1));
    Tensor *loss = ag_sum(z);
    ck_assert(ag_backward(loss));
    EXPECT_GRAD(loss, 1);
    EXPECT_GRAD(z, 1, 1);
    EXPECT_GRAD(y, 1, 1);
    EXPECT_GRAD(x, 2, 4);
    ck_assert_ptr_ne(y->grad->storage, z->grad->storage);
    tape_keep_grads(false);
    ck_assert(ag_backward(loss));
    EXPECT_GRAD(y, 1, 1); /* as it was */
    EXPECT_GRAD(x, 4, 8);
    tape_keep_grads(true);
    tape_end();
    ck_assert(tape_begin()); /* the next tape does not keep gradients */
    y = ag_square(x);
    ck_assert(ag_backward(ag_sum(y)));
    ck_assert_ptr_null(y->grad);
    tape_end();
    tensor_release(x);
}

TEST(keeping_gradients_needs_a_recording_tape) {
    tape_keep_grads(true);
    expect_error("tape_keep_grads: no recording tape is open: call tape_begin first");
    ck_assert(tape_begin_no_grad());
    tape_keep_grads(true);
    expect_error("tape_keep_grads: no recording tape is open: call tape_begin first");
    tape_end();
}

/* ---- marks --------------------------------------------------------------------------------- */

CASE("marks")
TEST(marks_hand_their_tensor_back_or_say_why_not) {
    Tensor *whole = tensor_from_int64s(SHAPE(1), (int64_t[]){1});
    Tensor *x = tensor_ones(SHAPE(1));
    ck_assert_ptr_eq(ag_requires_grad(x), x);
    ck_assert(x->requires_grad);
    ck_assert_ptr_eq(ag_retain_grad(x), x); /* a leaf keeps its gradient anyway */
    FAILS(ag_requires_grad(whole), "requires_grad: x is int64: only floats can have a gradient");
    FAILS(ag_retain_grad(whole), "retain_grad: x does not require a gradient");
    FAILS(ag_requires_grad(NULL), "requires_grad: the tensor is NULL");
    FAILS(ag_retain_grad(NULL), "retain_grad: the tensor is NULL");
    FAILS(ag_zero_grad(NULL), "zero_grad: the tensor is NULL");
    FAILS(ag_name(NULL, "x"), "name: the tensor is NULL");
    ck_assert_ptr_eq(ag_name(x, "an astonishingly long name for one"), x);
    ck_assert_str_eq(x->name, "an astonishingly long name for ");
    ck_assert_ptr_eq(ag_name(x, x->name + 3), x);
    ck_assert_str_eq(x->name, "astonishingly long name for ");
    ck_assert_ptr_eq(ag_name(x, NULL), x);
    ck_assert_str_eq(x->name, "");
    RELEASE(whole, x);
}

/* A name is cut between characters, of two, three and four bytes. */
TEST(a_name_is_cut_between_characters) {
    static const struct {
        const char *character;
        size_t kept; /* bytes */
    } rows[] = {{"\xc3\xa9", 30},
                {"\xe6\x97\xa5", 30},
                {"\xf0\x9f\x98\x80", 28},
                {"\x80", 31},
                {"\xe9 ", 30}};
    Tensor *x = tensor_ones(SHAPE(2));
    for (int i = 0; i < COUNT(rows); i++) {
        char name[65] = "";
        while (strlen(name) < 32) strcat(name, rows[i].character);
        ck_assert_ptr_eq(ag_name(x, name), x);
        name[rows[i].kept] = '\0';
        ck_assert_str_eq(x->name, name);
    }
    ag_name(x, "of thirty-one bytes, the last \xe9"); /* Latin-1, and not cut */
    ck_assert_uint_eq(strlen(x->name), 31);
    tensor_release(x);
}

TEST(detach_shares_bytes_and_stops_gradients) {
    Tensor *x = LEAF(SHAPE(2), 3, 5);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    Tensor *d = ag_detach(y);
    ck_assert(!d->requires_grad);
    ck_assert_ptr_null(d->grad_fn);
    ck_assert_ptr_eq(d->data, y->data);
    ck_assert(ag_backward(ag_sum(ag_mul(y, d))));
    EXPECT_GRAD(x, 9 * 6, 25 * 10);
    FAILS(ag_backward(ag_sum(d)), "backward: y does not require a gradient");
    ck_assert_ptr_nonnull(ag_requires_grad(d)); /* a leaf of its own now */
    ck_assert(ag_backward(ag_sum(ag_square(d))));
    EXPECT_GRAD(d, 18, 50);
    tape_end();
    tensor_release(x);
}

/* ---- printing ------------------------------------------------------------------------------ */

static void expect_printed(const char *text) {
    char *printed = NULL;
    size_t size;
    FILE *file = open_memstream(&printed, &size);
    ck_assert_ptr_nonnull(file);
    ck_assert(tape_print(file));
    fclose(file);
    ck_assert_str_eq(printed, text);
    free(printed);
}

/* ---- letting go ------------------------------------------------------------------------------ */

/* The backward of exp reads its result; the backward of scale reads nothing. */
TEST(what_is_let_go_stays_for_backward_alone) {
    Tensor *x = LEAF(SHAPE(2), 0, 1);
    Tensor *dy = tensor_ones(SHAPE(2));
    ck_assert(tape_begin());
    Tensor *y = ag_exp(x);
    Tensor *z = ag_scale(y, 2);
    ck_assert_ptr_eq(ag_let_go(z), z);
    ck_assert_ptr_null(z->storage->bytes);
    ck_assert_ptr_eq(ag_let_go(y), y);
    ag_let_go(y); /* a second call changes nothing */
    ck_assert_ptr_nonnull(y->storage->bytes);
    for (int i = 1; i <= 2; i++) {
        ck_assert(ag_backward_from(z, dy));
        EXPECT_GRAD(x, 2 * i, 2 * i * exp(1));
    }
    tape_end();
    ck_assert(tape_begin_no_grad());
    y = ag_let_go(ag_exp(x));
    ck_assert_ptr_null(y->storage->bytes);
    tape_end();
    FAILS(ag_let_go(NULL), "let_go: the tensor is NULL");
    RELEASE(x, dy);
}

TEST(a_view_keeps_what_its_base_has_let_go) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    Tensor *view = ag_reshape(y, SHAPE(2, 1));
    Tensor *other = ag_detach(y);
    ag_let_go(y);
    EXPECT_ELEMENTS(view, 1, 4);
    ag_let_go(view);
    EXPECT_ELEMENTS(other, 1, 4);
    Tensor *kept = tensor_retain(other);
    tape_end();
    EXPECT_ELEMENTS(kept, 1, 4);
    RELEASE(kept, x);
}

/* ag_let_go_since does not let go of earlier results, of y, and of tensors that the program has
 * retained. */
TEST(all_since_a_mark_is_let_go) {
    Tensor *x = LEAF(SHAPE(2), 0, 1);
    Tensor *dy = tensor_ones(SHAPE(2));
    ck_assert(tape_begin());
    Tensor *before = ag_square(x);
    const int mark = tape_mark();
    Tensor *read = ag_exp(x);
    Tensor *unread = ag_scale(read, 2);
    Tensor *kept = tensor_retain(ag_neg(unread));
    Tensor *y = ag_add(ag_add(kept, before), unread);
    ck_assert_ptr_eq(ag_let_go_since(mark, y), y);
    ck_assert(!before->let_go && !x->let_go && !y->let_go && !kept->let_go);
    ck_assert(read->let_go && unread->let_go);
    ck_assert(read->storage->bytes && !unread->storage->bytes); /* exp reads its result */
    ck_assert(ag_backward_from(y, dy));
    EXPECT_GRAD(x, 0, 2);
    ck_assert_ptr_eq(ag_let_go_since(tape_mark(), y), y);
    FAILS(ag_let_go_since(mark, NULL), "let_go_since: the tensor is NULL");
    FAILS(ag_let_go_since(-1, y), "let_go_since: mark is -1: it must not be negative");
    tape_end();
    ck_assert_int_eq(tape_mark(), 0);
    ck_assert_ptr_eq(ag_let_go_since(mark, kept), kept); /* no tape, and nothing on it */
    RELEASE(kept, x, dy);
}

#define REFUSES(name, call)                                                                        \
    do {                                                                                           \
        (void)!(call);                                                                             \
        expect_error(name ": the tensor was let go, and its elements with it");                    \
    } while (0)

/* y (1) was let go, a (1) was not. */
static void expect_nobody_looks(Tensor *y, Tensor *a) {
    double element;
    int64_t whole;
    ck_assert(isnan(tensor_item(y)));
    expect_error("item: the tensor was let go, and its elements with it");
    REFUSES("get", tensor_get(y, 0) != 0);
    REFUSES("to_doubles", tensor_to_doubles(y, &element));
    REFUSES("to_int64s", tensor_to_int64s(y, &whole));
    REFUSES("sum_of_squares", tensor_sum_of_squares(y) != 0);
    REFUSES("clone", tensor_clone(y));
    REFUSES("to", tensor_to(y, F32));
    REFUSES("sort", tensor_sort(y, NULL));
    REFUSES("print", tensor_print(y, stdout));
    REFUSES("copy_from", tensor_copy_from(y, a));
    FAILS(tensor_copy_from(a, y), "copy_from: src was let go, and its elements with it");
    REFUSES("fill", tensor_fill(y, 1));
    FAILS(tensor_add_(a, y, 1), "add_: y was let go, and its elements with it");
    REFUSES("mul_", tensor_mul_(y, 1));
    REFUSES("set", tensor_set(y, 1, 0));
    REFUSES("uniform_", tensor_uniform_(y, 0, 1));
    REFUSES("normal_", tensor_normal_(y, 0, 1));
    FAILS(tensor_allclose(a, y, 0, 0), "allclose: b was let go, and its elements with it");
    FAILS(tensor_allclose(y, a, 0, 0), "allclose: a was let go, and its elements with it");
    REFUSES("set_generator_state", tensor_set_generator_state(y));
    REFUSES("norm", tensor_norm(y) != 0);
    REFUSES("save_npy", tensor_save_npy(y, "/tmp/never"));
    TensorDict *dict = tensor_dict_new();
    REFUSES("dict_set", tensor_dict_set(dict, "y", y));
    tensor_dict_free(dict);
}

TEST(nobody_looks_at_what_was_let_go) {
    Tensor *x = LEAF(SHAPE(1), 1);
    Tensor *a = tensor_ones(SHAPE(1));
    Tensor *lens = tensor_arange(0, 1, 1);
    ck_assert(tape_begin());
    Tensor *y = ag_let_go(ag_exp(x));
    FAILS(ag_add(x, y), "add: b was let go, and its elements with it");
    expect_nobody_looks(y, a);
    FAILS(ag_backward_from(x, y), "backward: dy was let go, and its elements with it");
    TensorDict *dict = tensor_dict_new();
    ck_assert(tensor_dict_set(dict, "a", a));
    ag_let_go(a);
    REFUSES("save_safetensors", tensor_save_safetensors(dict, "/tmp/never"));
    Tensor *lengths = tensor_to(lens, I64);
    FAILS(ag_mask_fits("mask", (AttentionMask){.valid_lens = ag_let_go(lengths)}, SHAPE(1, 1, 1, 1),
                       F64),
          "mask: valid_lens was let go, and its elements with it");
    tape_end();
    RELEASE(x, a, lens, lengths);
    tensor_dict_free(dict);
}

/* A freed struct waits for a new tensor, unless TAPEHEAD_CACHE=0: the sanitizers then see who uses
 * it. */
static bool structs_wait(void) {
    const char *setting = getenv("TAPEHEAD_CACHE");
    return !setting || strcmp(setting, "0") != 0;
}

/* The loss of a tape that has ended, of 3 nodes or of 3000, with temporary tensors of backward. */
TEST(nobody_looks_at_a_result_when_its_tape_has_ended) {
    if (!structs_wait()) return;
    Tensor *x = LEAF(SHAPE(1), 1);
    Tensor *a = tensor_ones(SHAPE(1));
    Tensor *loss;
    for (int n = 3; n <= 3000; n += 2997) {
        ck_assert(tape_begin());
        loss = x;
        for (int i = 0; i < n; i++) loss = ag_neg(loss);
        ck_assert(ag_zero_grad(x) && ag_backward(loss));
        tape_end();
        expect_nobody_looks(loss, a);
        REFUSES("zero_grad", ag_zero_grad(loss));
        REFUSES("name", ag_name(loss, "loss"));
        REFUSES("let_go", ag_let_go(loss));
        REFUSES("backward", ag_backward(loss));
        FAILS(tensor_retain(loss), "retain: the tensor was let go");
        ck_assert_int_eq(tensor_live(), 3);
        ck_assert(tape_begin_no_grad());
        FAILS(ag_add(a, loss), "add: b was let go, and its elements with it");
        ck_assert_ptr_null(tape_end_keeping(loss));
        expect_error("retain: the tensor was let go");
    }
    ck_assert(tape_begin_no_grad()); /* one result alone, without a gradient */
    loss = ag_neg(a);
    tape_end();
    expect_nobody_looks(loss, a);
    RELEASE(x, a);
}

static const char *const too_many =
    "release: the tensor was let go already: a release too many, or "
    "one of a loan, which the tape releases";

/* Of the loans the first is read by no op, the second by one, the third also by its backward. */
TEST(a_release_too_many_is_an_error) {
    if (!structs_wait()) return;
    Tensor *x = LEAF(SHAPE(1), 1);
    Tensor *a = tensor_ones(SHAPE(1));
    for (int i = 0; i < 3; i++) {
        ck_assert(tape_begin());
        Tensor *loan = i == 2 ? ag_exp(x) : ag_neg(x);
        if (i > 0) ck_assert(ag_backward(ag_sum(loan)));
        tensor_release(loan);
        ck_assert_ptr_null(tensor_error());
        tape_end();
        expect_error(too_many);
    }
    ck_assert(tape_begin_no_grad());
    Tensor *view = tensor_retain(ag_unsqueeze(a, 0)); /* as x, but its storage lives */
    tape_end();
    tensor_release(view);
    tensor_release(view);
    expect_error(too_many);
    tensor_release(a);
    tensor_release(a);
    expect_error(too_many);
    tensor_release(x);
}

/* The gradient of b in a * b reads only a. So the bytes of b are freed, and backward must not read
 * them, although b is broadcast. (valgrind would report it.) */
TEST(what_is_let_go_and_repeated_is_not_read) {
    const Shape column = SHAPE(5000, 1);
    Tensor *x = ag_requires_grad(tensor_ones(column));
    Tensor *a = tensor_full(SHAPE(5000, 3), 2);
    ck_assert(tape_begin());
    Tensor *b = ag_neg(x);
    Tensor *loss = ag_sum(ag_mul(a, b));
    ck_assert_ptr_ne(b->storage->bytes, (char *)b->storage + 64); /* the bytes are in a block of
                                                                   * their own, which can be
                                                                   * freed */
    ag_let_go(b);
    ck_assert_ptr_null(b->storage->bytes);
    ck_assert(ag_backward(loss));
    ck_assert(tensor_get(x->grad, 0, 0) == -6);
    tape_end();
    RELEASE(x, a);
}

/* w is a constant for the ops before ag_requires_grad, as in PyTorch: so no backward reads `half`,
 * which has been let go. Of two ops with more inputs than fit in a node, the second sees a leaf. */
TEST(an_op_records_which_inputs_need_a_gradient) {
    Tensor *x = LEAF(SHAPE(2), 2, 3);
    Tensor *w = tensor_ones(SHAPE(2));
    Tensor *dx[2];
    ck_assert(tape_begin());
    Tensor *half = ag_scale(x, 0.5);
    Tensor *before = ag_mul(half, w);
    Tensor *seven = ag_stack((Tensor *[]){x, w, w, w, w, w, w}, 7, 0);
    ag_let_go(half);
    ag_requires_grad(w);
    ck_assert(ag_backward(ag_sum(ag_add(before, ag_scale(w, 10)))));
    EXPECT_GRAD(w, 10, 10);
    EXPECT_GRAD(x, 0.5, 0.5);
    ck_assert(!ag_reaches(before, w));
    ck_assert(tape_vjp(1, before, dx)); /* line 1 is the product */
    ck_assert_ptr_null(dx[1]);
    tensor_release(dx[0]);
    ck_assert(ag_backward(ag_sum(seven)));
    EXPECT_GRAD(w, 10, 10);
    ck_assert(ag_backward(ag_sum(ag_stack((Tensor *[]){x, w, w, w, w, w, w}, 7, 0))));
    EXPECT_GRAD(w, 16, 16);
    EXPECT_GRAD(x, 2.5, 2.5);
    tape_end();
    RELEASE(x, w);
}

/* A leaf that is frozen when backward comes to it gets no gradient, as in PyTorch; frozen and
 * thawed between two ops, it gets the parts of the ops that saw it as a leaf. */
TEST(a_leaf_is_frozen_and_thawed_between_ops) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *w = LEAF(SHAPE(2), 3, 4);
    ck_assert(tape_begin());
    Tensor *y = ag_mul(x, w);
    w->requires_grad = false;
    ck_assert(ag_backward(ag_sum(y)));
    EXPECT_GRAD(x, 3, 4);
    ck_assert_ptr_null(w->grad);
    Tensor *z = ag_scale(w, 10);
    ag_requires_grad(w);
    ck_assert(ag_backward(ag_sum(ag_add(y, z))));
    EXPECT_GRAD(x, 6, 8);
    EXPECT_GRAD(w, 1, 2);
    tape_end();
    RELEASE(x, w);
}

/* ag_reaches says where backpropagation would add a gradient, and changes nothing. */
TEST(reaches_says_where_a_gradient_is_added) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *w = LEAF(SHAPE(2), 3, 4);
    Tensor *unused = LEAF(SHAPE(2), 5, 6);
    Tensor *constant = tensor_ones(SHAPE(2));
    FAILS(ag_reaches(x, x), "reaches: no recording tape is open: call tape_begin first");
    tape_begin();
    Tensor *y = ag_mul(x, constant);
    Tensor *stopped = ag_mul(ag_detach(w), y);
    Tensor *other = ag_exp(unused);
    Tensor *compared = ag_gt(y, w);
    Tensor *chosen = ag_where(compared, y, stopped);
    Tensor *lengths = tensor_from_int64s(SHAPE(1), (int64_t[]){1}); /* an op with inputs that are
                                                                     * absent */
    Tensor *weights = ag_masked_softmax(ag_reshape(chosen, SHAPE(1, 1, 2)), lengths);
    ck_assert(ag_reaches(weights, x) && ag_reaches(weights, y) && ag_reaches(weights, weights));
    ck_assert(ag_reaches(x, x));
    ck_assert(!ag_reaches(weights, w) && !ag_reaches(weights, constant));
    ck_assert(!ag_reaches(weights, other) && !ag_reaches(weights, unused));
    ck_assert(!ag_reaches(y, weights) && !ag_reaches(constant, x) &&
              !ag_reaches(constant, constant));
    ck_assert(ag_backward(ag_sum(weights))); /* marks that ag_reaches left would be taken for
                                              * gradients */
    ck_assert_ptr_null(w->grad);
    ck_assert_ptr_nonnull(x->grad);
    FAILS(ag_reaches(NULL, x), "reaches: the tensor is NULL");
    FAILS(ag_reaches(x, NULL), "reaches: the tensor is NULL");
    tape_begin_no_grad();
    ck_assert(ag_reaches(weights, x) && !ag_reaches(ag_exp(x), x));
    tape_end();
    tape_end();
    RELEASE(x, w, unused, constant, lengths);
}

TEST(a_printed_tape_reads_like_a_book) {
    Tensor *q = ag_requires_grad(ag_name(tensor_ones(SHAPE(1, 2, 4)), "queries"));
    Tensor *k = tensor_ones(SHAPE(1, 3, 4));
    ck_assert(tape_begin());
    expect_printed("");
    Tensor *scores = ag_name(ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), 0.5), "scores");
    ag_sum(ag_cat((Tensor *[]){scores, scores}, 2, 0));
    expect_printed("%0 = transpose((1, 3, 4)) (1, 4, 3)\n"
                   "%1 = bmm(queries (1, 2, 4), %0) (1, 2, 3) grad\n"
                   "%2 scores = scale(%1) (1, 2, 3) grad\n"
                   "%3 = cat(%2 scores, %2 scores) (2, 2, 3) grad\n"
                   "%4 = sum(%3) () grad\n");
    tape_end();
    RELEASE(q, k);
}

/* tape_print prints the innermost tape. A tape that does not record knows its results, but not
 * their inputs. */
TEST(an_inner_tape_prints_itself) {
    Tensor *x = LEAF(SHAPE(3), 1, 2, 3);
    ck_assert(tape_begin());
    ag_exp(x);
    ck_assert(tape_begin_no_grad());
    ck_assert(tape_begin_no_grad());
    ck_assert_ptr_nonnull(tape_end_keeping(ag_name(ag_neg(x), "minus")));
    expect_printed("%1 minus = kept() (3,)\n");
    ag_neg(x);
    expect_printed("%1 minus = kept() (3,)\n%2 = neg() (3,)\n");
    tape_end();
    expect_printed("%0 = exp((3,)) (3,) grad\n");
    tape_end();
    tensor_release(x);
}

TEST(printing_needs_a_tape_and_a_good_file) {
    FAILS(tape_print(stdout), "tape_print: no tape is open");
    FAILS(tape_print(NULL), "tape_print: the file is NULL");
    FILE *full = fopen("/dev/full", "w");
    if (!full) return;
    setvbuf(full, NULL, _IONBF, 0);
    Tensor *x = LEAF(SCALAR, 1);
    ck_assert(tape_begin());
    ag_exp(x);
    FAILS(tape_print(full), "tape_print: the file could not be written");
    tape_end();
    fclose(full);
    tensor_release(x);
}

/* ---- writes in place ----------------------------------------------------------------------- */

static bool write_over(Tensor *x, const char *by) {
    Tensor *other = tensor_clone(x);
    bool done = false;
    if (!strcmp(by, "add_")) done = tensor_add_(x, other, 1);
    else if (!strcmp(by, "mul_")) done = tensor_mul_(x, 2);
    else if (!strcmp(by, "copy_from")) done = tensor_copy_from(x, other);
    else done = tensor_fill(x, 1);
    tensor_release(other);
    return done;
}

CASE("writes")
/* If backward adds to a gradient, this is a write, too. Here an op reads the gradient g of x. */
TEST(backward_writes_over_a_gradient) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *w = LEAF(SHAPE(2), 3, 4);
    ck_assert(tape_begin());
    Tensor *sum = ag_sum(x);
    ck_assert(ag_backward(sum));
    Tensor *loss = ag_sum(ag_mul(w, x->grad));
    ck_assert(ag_backward(loss));
    ck_assert(ag_backward(sum));
    FAILS(ag_backward(loss),
          "backward: mul needs its input b (2,) as it was, but backward has written over it since");
    tape_end();
    RELEASE(x, w);
}

/* Backward reads a factor only for the gradient of the other factor. If the other factor is a
 * constant, the factor may be overwritten, for example the weight of a layer whose input is data.
 */
TEST(a_write_over_what_nobody_needs_is_fine) {
    static const char *const ops[] = {"mul", "matmul", "linear"};
    for (int i = 0; i < 6; i++) {
        bool harmless = i < 3;
        Tensor *w = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
        Tensor *constant = tensor_ones(SHAPE(2, 2));
        ck_assert(tape_begin());
        Tensor *loss = ag_sum(call_op(ops[i % 3], (Tensor *[]){constant, w}, 2, NULL));
        ck_assert(tensor_fill(harmless ? w : constant, 7));
        ck_assert(ag_backward(loss) == harmless);
        if (!harmless) expect_error_like("backward: ", "fill has written over it since");
        tape_end();
        RELEASE(w, constant);
    }
}

/* A view shares the bytes and the version, so backward notices a write through a view, too. */
TEST(a_write_through_a_view_is_noticed) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    ck_assert(tape_begin());
    Tensor *loss = ag_sum(ag_square(ag_transpose(x, 0, 1)));
    ck_assert(tensor_fill(ag_select(x, 0, 1), 9));
    FAILS(ag_backward(loss),
          "backward: square needs its input x (2, 2) as it was, but fill has written over "
          "it since");
    tape_end();
    tensor_release(x);
}

/* ---- writes that would have to be recorded --------------------------------------------------- */

static const char unrecorded[] =
    "mul: a was written in place from a tensor that requires a gradient, which the tape does not "
    "record: use ops, such as ag_cat or ag_where, or write from ag_detach of that tensor";

/* w requires a gradient. Each way leaves the elements of w, or of a function of w, in a buffer. */
enum { COPY, ADD, ROW, RESULT, WAYS };

static void write_to(Tensor *buffer, Tensor *w, int way) {
    Tensor *from = way == RESULT ? ag_exp(w) : w;
    Tensor *to = way == ROW ? ag_slice(buffer, 0, 0, 1) : buffer;
    if (way == ADD) ck_assert(tensor_add_(to, from, 2));
    else ck_assert(tensor_copy_from(to, way == ROW ? ag_slice(from, 0, 1, 2) : from));
}

TEST(an_op_refuses_what_was_written_from_a_gradient) {
    Tensor *w = LEAF(SHAPE(2), 1, 2);
    Tensor *buffer = tensor_zeros(SHAPE(2));
    Tensor *three = tensor_full(SHAPE(2), 3);
    for (int way = 0; way < WAYS; way++) {
        ck_assert(tape_begin());
        write_to(buffer, w, way);
        ck_assert(isfinite(tensor_get(buffer, 0))); /* the program may read it */
        FAILS(ag_mul(buffer, three), unrecorded);
        ck_assert_ptr_null(ag_mul(ag_reshape(buffer, SHAPE(2, 1)), three));
        expect_error_like("reshape: x was written in place from a tensor that requires", "");
        ck_assert_ptr_nonnull(ag_gt(buffer, three)); /* has no gradient */
        ck_assert(tensor_fill(buffer, 0));           /* all of it is new */
        ck_assert_ptr_nonnull(ag_mul(buffer, three));
        write_to(buffer, w, way);
        tape_end();
        ck_assert(tape_begin()); /* on the next tape it is a constant */
        ck_assert_ptr_nonnull(ag_mul(buffer, three));
        tape_end();
    }
    RELEASE(w, buffer, three);
}

TEST(constants_may_be_written_and_used) {
    Tensor *w = LEAF(SHAPE(2), 1, 2);
    Tensor *other = LEAF(SHAPE(2), 5, 6);
    Tensor *buffer = tensor_zeros(SHAPE(2));
    ck_assert(tensor_copy_from(buffer, w)); /* with no tape */
    ck_assert(tape_begin());
    ck_assert_ptr_nonnull(ag_mul(buffer, w));
    ck_assert(tape_begin_no_grad()); /* torch.no_grad */
    ck_assert(tensor_copy_from(buffer, w) && tensor_add_(buffer, w, 1));
    tape_end();
    ck_assert_ptr_nonnull(ag_mul(buffer, w));
    ck_assert(tensor_copy_from(buffer, ag_detach(ag_exp(w))));
    ck_assert_ptr_nonnull(ag_mul(buffer, w));
    ck_assert(tensor_copy_from(other, w)); /* a leaf: its gradient begins here */
    ck_assert(ag_backward(ag_sum(ag_mul(other, other))));
    EXPECT_GRAD(other, 2, 4);
    tape_end();
    RELEASE(w, other, buffer);
}

/* y = a + 1 needs neither a nor y for its gradient, so only an op that takes y can notice. */
TEST(an_op_refuses_a_result_that_was_written_over) {
    static const char *const by[] = {"fill", "mul_", "add_", "copy_from"};
    Tensor *a = LEAF(SHAPE(2), 1, 2);
    for (int i = 0; i < 4; i++) {
        const char *sentence = format(
            "neg: x is a result of the tape, and %s has written over it, which the tape does "
            "not record: use ops, or ag_detach it to use it as a constant",
            by[i]);
        ck_assert(tape_begin());
        Tensor *y = ag_add_scalar(a, 1);
        Tensor *row = ag_slice(y, 0, 0, 1);
        ck_assert(write_over(i % 2 ? row : y, by[i])); /* a view shares the bytes */
        FAILS(ag_neg(y), sentence);
        FAILS(ag_neg(row), sentence);
        ck_assert_ptr_nonnull(ag_neg(ag_detach(y)));
        tape_end();
    }
    tensor_release(a);
}

/* A view of a leaf shows the new elements of the leaf, and its gradient is theirs. */
TEST(a_view_of_a_leaf_follows_the_leaf) {
    Tensor *w = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *view = ag_reshape(w, SHAPE(2, 1));
    ck_assert(tensor_add_(w, w, 1)); /* a step of an optimizer */
    ck_assert(ag_backward(ag_sum(ag_square(view))));
    EXPECT_GRAD(w, 4, 8);
    tape_end();
    tensor_release(w);
}

/* A training step writes parameters after backward; the next tape reads the new bytes. */
TEST(writes_between_tapes_are_fine) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    for (int i = 0; i < 3; i++) {
        ck_assert(ag_zero_grad(x));
        ck_assert(tape_begin());
        ck_assert(ag_backward(ag_sum(ag_square(x))));
        ck_assert(tensor_add_(x, x->grad, -0.25)); /* x / 2 */
        tape_end();
    }
    EXPECT_ELEMENTS(x, 0.125, 0.25);
    tensor_release(x);
}

/* ---- mistakes of backward ------------------------------------------------------------------ */

CASE("backward")
TEST(backward_without_a_tape) {
    Tensor *x = LEAF(SCALAR, 1);
    FAILS(ag_backward(x), "backward: no recording tape is open: call tape_begin first");
    ck_assert(tape_begin_no_grad());
    FAILS(ag_backward(ag_square(x)), "backward: no recording tape is open: call tape_begin first");
    tape_end();
    ck_assert_ptr_null(x->grad);
    tensor_release(x);
}

TEST(backward_wants_one_element) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *none = ag_requires_grad(tensor_ones(SHAPE(0)));
    ck_assert(tape_begin());
    FAILS(ag_backward(ag_square(x)),
          "backward: the loss is (2,): it must have one element, or use ag_backward_from");
    FAILS(ag_backward(ag_square(none)),
          "backward: the loss is (0,): it must have one element, or use ag_backward_from");
    ck_assert(ag_backward(ag_reshape(ag_sum(ag_square(x)), SHAPE(1, 1))));
    tape_end();
    EXPECT_GRAD(x, 2, 4);
    RELEASE(x, none);
}

TEST(backward_wants_something_that_requires_a_gradient) {
    Tensor *x = tensor_ones(SCALAR);
    Tensor *whole = tensor_from_int64s(SCALAR, (int64_t[]){1});
    ck_assert(tape_begin());
    FAILS(ag_backward(ag_square(x)), "backward: y does not require a gradient");
    FAILS(ag_backward(whole), "backward: y does not require a gradient");
    FAILS(ag_backward(NULL), "backward: the tensor is NULL");
    FAILS(ag_backward_from(NULL, x), "backward: the tensor is NULL");
    FAILS(ag_backward_from(ag_requires_grad(x), NULL), "backward: dy is NULL");
    tape_end();
    RELEASE(x, whole);
}

TEST(backward_wants_a_gradient_that_fits) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *dy = tensor_ones(SHAPE(1, 2));
    Tensor *f32 = tensor_to(x, F32);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    FAILS(ag_backward_from(y, dy),
          "backward: y is float64 (2,) and dy is float64 (1, 2): shapes and types must be equal");
    FAILS(ag_backward_from(y, f32),
          "backward: y is float64 (2,) and dy is float32 (2,): shapes and types must be "
          "equal; convert dy with ag_to");
    tensor_fail("the first mistake");
    FAILS(ag_backward_from(y, x), "the first mistake");
    ck_assert_ptr_null(x->grad);
    ck_assert(ag_backward_from(y, x));
    EXPECT_GRAD(x, 2, 8);
    tape_end();
    RELEASE(x, dy, f32);
}

TEST(backward_of_a_leaf_is_the_gradient_itself) {
    Tensor *x = LEAF(SCALAR, 5);
    ck_assert(tape_begin());
    ck_assert(ag_backward(x));
    ck_assert(ag_backward(x));
    tape_end();
    EXPECT_GRAD(x, 2);
    tensor_release(x);
}

/* Backward runs on the recording tape, even inside a no-grad tape. */
TEST(backward_may_run_inside_a_no_grad_tape) {
    Tensor *x = LEAF(SCALAR, 5);
    ck_assert(tape_begin());
    Tensor *y = ag_square(x);
    ck_assert(tape_begin_no_grad());
    ck_assert_ptr_nonnull(ag_exp(y));
    ck_assert(ag_backward(y));
    tape_end();
    tape_end();
    EXPECT_GRAD(x, 10);
    tensor_release(x);
}

/* The dy of ag_backward_from may have any strides. Backward does not write to it. */
TEST(an_incoming_gradient_may_be_strided) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    Tensor *c = LEAF(SHAPE(2, 2), 10, 20, 30, 40);
    Tensor *turned = tensor_as_strided(c, SHAPE(2, 2), (int64_t[]){1, 2}, 0);
    Tensor *repeated = tensor_as_strided(c, SHAPE(2, 2), (int64_t[]){0, 1}, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_reshape(x, SHAPE(2, 2));
    ck_assert(ag_backward_from(y, turned));
    EXPECT_GRAD(x, 10, 30, 20, 40);
    ck_assert(ag_backward_from(ag_add(y, y), repeated));
    EXPECT_GRAD(x, 70, 110, 80, 120);
    tape_end();
    EXPECT_ELEMENTS(c, 10, 20, 30, 40);
    RELEASE(turned, repeated, x, c);
}

/* Backward fails after some nodes have propagated their gradients. No gradient may change. */
TEST(a_failing_backward_changes_no_gradient) {
    Tensor *a = LEAF(SHAPE(2), 1, 2);
    Tensor *b = LEAF(SHAPE(2), 3, 4);
    ck_assert(tape_begin());
    Tensor *early = ag_exp(a);
    Tensor *late = ag_retain_grad(ag_square(b));
    Tensor *good = ag_sum(late);
    Tensor *all = ag_add(ag_sum(early), good);
    ck_assert(ag_backward(good));
    ck_assert(tensor_fill(early, 0));
    int64_t before = tensor_live();
    for (int i = 0; i < 2; i++) {
        FAILS(ag_backward(all),
              "backward: exp needs its result (2,) as it was, but fill has written over it since");
        ck_assert_ptr_null(a->grad);
        EXPECT_GRAD(b, 6, 8);
        EXPECT_GRAD(late, 1, 1);
        ck_assert_int_eq(tensor_live(), before);
    }
    ck_assert(ag_backward(good)); /* the failed walks have left nothing */
    EXPECT_GRAD(b, 12, 16);
    EXPECT_GRAD(late, 2, 2);
    tape_end();
    RELEASE(a, b);
}

/* ---- gradcheck: right and wrong rules ----------------------------------------------------- */

/* Functions of our own. Each has a right backward rule and a wrong one: call->data says which. All
 * inputs are contiguous float64. */
#define ELEMENTS(x) ((double *)(x)->data)

static bool is_wrong(const AgCall *call) { return *(const bool *)call->data; }

static Tensor *like(const Tensor *x) { return tensor_zeros_like(x); }

/* y = f(x), dx = dy * df(x, y), wrong or right. */
typedef double Rule(double x, double y, bool wrong);

static Tensor *each_element(const AgCall *call, double (*f)(double)) {
    Tensor *y = like(call->in[0]);
    for (int64_t i = 0; i < tensor_numel(y); i++) ELEMENTS(y)[i] = f(ELEMENTS(call->in[0])[i]);
    return y;
}

static void each_gradient(const AgCall *call, const Tensor *dy, Tensor **dx, Rule *rule) {
    dx[0] = like(call->in[0]);
    Tensor *dense = tensor_contiguous(dy);
    const double *x = ELEMENTS(call->in[0]);
    const double *y = ELEMENTS(call->out);
    for (int64_t i = 0; i < tensor_numel(dense); i++)
        ELEMENTS(dx[0])[i] = ELEMENTS(dense)[i] * rule(x[i], y[i], is_wrong(call));
    tensor_release(dense);
}

/* A wrong sign: d exp(x) = -y */
static double sign_rule(double x, double y, bool wrong) {
    (void)x;
    return wrong ? -y : y;
}
static Tensor *sign_forward(const AgCall *call) { return each_element(call, exp); }
static void sign_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    each_gradient(call, dy, dx, sign_rule);
}

/* A wrong factor: d x^2 = x */
static double square_of(double x) { return x * x; }
static double factor_rule(double x, double y, bool wrong) {
    (void)y;
    return wrong ? x : 2 * x;
}
static Tensor *factor_forward(const AgCall *call) { return each_element(call, square_of); }
static void factor_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    each_gradient(call, dy, dx, factor_rule);
}

/* A missing term: d x sin(x) = sin(x) */
static double x_sin(double x) { return x * sin(x); }
static double term_rule(double x, double y, bool wrong) {
    (void)y;
    return sin(x) + (wrong ? 0 : x * cos(x));
}
static Tensor *term_forward(const AgCall *call) { return each_element(call, x_sin); }
static void term_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    each_gradient(call, dy, dx, term_rule);
}

/* A stale value: d tanh(x) = 1 - y^2 with the y of an earlier call. */
static double stale[16];
static Tensor *stale_forward(const AgCall *call) {
    Tensor *y = each_element(call, tanh);
    if (stale[0] == 0) memcpy(stale, y->data, (size_t)tensor_numel(y) * sizeof *stale);
    return y;
}
static void stale_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = like(call->out);
    Tensor *dense = tensor_contiguous(dy);
    const double *y = is_wrong(call) ? stale : ELEMENTS(call->out);
    for (int64_t i = 0; i < tensor_numel(dx[0]); i++)
        ELEMENTS(dx[0])[i] = (1 - y[i] * y[i]) * ELEMENTS(dense)[i];
    tensor_release(dense);
}

/* A missing transpose: the gradient of x' is dy. The shape is right only because x is square. */
static Tensor *transposed_forward(const AgCall *call) {
    Tensor *view = tensor_view_transpose(call->in[0], 0, 1);
    Tensor *y = tensor_clone(view);
    tensor_release(view);
    return y;
}
static void transposed_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = is_wrong(call) ? tensor_clone(dy) : tensor_view_transpose(dy, 0, 1);
}

/* A missing operand: db of a b is dy, without a. */
static Tensor *product_of(const Tensor *a, const Tensor *b) {
    Tensor *y = like(a);
    Tensor *p = tensor_contiguous(a);
    Tensor *q = tensor_contiguous(b);
    for (int64_t i = 0; i < tensor_numel(y); i++) ELEMENTS(y)[i] = ELEMENTS(p)[i] * ELEMENTS(q)[i];
    RELEASE(p, q);
    return y;
}
static Tensor *operand_forward(const AgCall *call) { return product_of(call->in[0], call->in[1]); }
static void operand_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = product_of(call->in[1], dy);
    dx[1] = is_wrong(call) ? tensor_clone(dy) : product_of(call->in[0], dy);
}

/* A wrong reduction: a repeated row gets the gradient of its last repeat instead of the sum. */
static Tensor *rows_forward(const AgCall *call) {
    Tensor *view = tensor_view_expand(call->in[0], SHAPE(2, call->in[0]->shape.dim[0]));
    Tensor *y = tensor_clone(view);
    tensor_release(view);
    return y;
}
static void rows_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Tensor *last = is_wrong(call) ? tensor_view_narrow(dy, 0, 1, 1) : NULL;
    dx[0] = last ? tensor_reshape(last, call->in[0]->shape) : tensor_sum_to(dy, call->in[0]->shape);
    tensor_release(last);
}

/* A gradient of zero. With small values a check of absolute differences would accept it. */
static double zero_rule(double x, double y, bool wrong) {
    (void)x;
    (void)y;
    return wrong ? 0 : 1e-3;
}
static double thousandth(double x) { return 1e-3 * x; }
static Tensor *zero_forward(const AgCall *call) { return each_element(call, thousandth); }
static void zero_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    each_gradient(call, dy, dx, zero_rule);
}

typedef struct {
    AgFunction function;
    int inputs;
} TestOp;

#define TEST_OP(rule, inputs)                                                                      \
    { {#rule, NULL, NULL, rule##_forward, rule##_backward}, inputs }
static const TestOp test_ops[] = {TEST_OP(sign, 1),  TEST_OP(factor, 1),     TEST_OP(term, 1),
                                  TEST_OP(stale, 1), TEST_OP(transposed, 1), TEST_OP(operand, 2),
                                  TEST_OP(rows, 1),  TEST_OP(zero, 1)};
enum { TEST_OPS = COUNT(test_ops) };

typedef struct {
    const TestOp *op;
    bool wrong;
} TestRule;

static Tensor *apply_rule(Tensor **inputs, void *ctx) {
    TestRule *rule = ctx;
    return ag_call(&rule->op->function, rule->op->inputs, inputs, &rule->wrong);
}

/* ag_gradcheck must reject the wrong rule with an error message and accept the right one. The
 * inputs are positive, and not symmetric, so that no mistake is hidden. */
static void expect_verdict(const TestOp *op, Tensor **in, int culprit) {
    TestRule test = {op, true};
    const char *beginning = format("gradcheck: input %d, element (", culprit);
    ck_assert_msg(!ag_gradcheck(apply_rule, in, op->inputs, &test, (GradcheckOptions){0}),
                  "the wrong rule `%s` passes", op->function.name);
    expect_error_like(beginning, "): backpropagation gives ");
    test.wrong = false;
    bool passes = ag_gradcheck(apply_rule, in, op->inputs, &test, (GradcheckOptions){0});
    ck_assert_msg(passes, "%s: %s", op->function.name, tensor_error());
}

CASE("gradcheck")
LOOP_TEST(gradcheck_tells_right_rules_from_wrong_ones, TEST_OPS) {
    const TestOp *op = &test_ops[_i];
    bool row = op->function.forward == rows_forward;
    Tensor *a = row ? LEAF(SHAPE(3), 0.3, 0.9, 1.4)
                    : LEAF(SHAPE(3, 3), 0.3, 0.9, 1.4, 0.5, 1.1, 0.7, 0.2, 1.6, 0.8);
    Tensor *b = LEAF(SHAPE(3, 3), 1.2, 0.4, 0.6, 1.5, 0.1, 0.9, 1.3, 0.8, 0.35);
    ck_assert(tape_begin_no_grad()); /* an earlier call, for the rule with the stale value */
    ck_assert_ptr_nonnull(apply_rule((Tensor *[]){b, b}, &(TestRule){op, false}));
    tape_end();
    expect_verdict(op, (Tensor *[]){a, b}, op->inputs - 1);
    RELEASE(a, b);
}

/* The sum of a softmax is constant, so the gradient of the sum is 0: a check that sums the result
 * would accept any wrong scale.
 */
static Tensor *softmax_of(Tensor **in, void *ctx) {
    (void)ctx;
    return ag_softmax(in[0], -1);
}
static Tensor *softmax_forward(const AgCall *call) {
    return tensor_retain(ag_softmax(call->in[0], -1));
}
static void nothing_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    (void)dy;
    dx[0] = like(call->in[0]);
}
static Tensor *softmax_without_gradient(Tensor **in, void *ctx) {
    static const AgFunction softmax = {"softmax", NULL, NULL, softmax_forward, nothing_backward};
    return ag_call(&softmax, 1, in, ctx);
}

TEST(gradcheck_sees_a_gradient_that_sums_to_zero) {
    Tensor *x = LEAF(SHAPE(1, 3), 0.3, -0.9, 1.4);
    ck_assert(ag_gradcheck(softmax_of, &x, 1, NULL, (GradcheckOptions){0}));
    ck_assert(!ag_gradcheck(softmax_without_gradient, &x, 1, NULL, (GradcheckOptions){0}));
    expect_error_like("gradcheck: input 0, element (0, 0): backpropagation gives 0, ",
                      "the difference quotient ");
    tensor_release(x);
}

/* At x = 0, with a step of 0.5, the difference quotient is the cotangent exactly. */
static Tensor *double_the_rest(Tensor **in, void *ctx) {
    (void)ctx;
    return ag_sub(ag_detach(ag_scale(in[0], 2)), in[0]);
}

TEST(gradcheck_says_what_it_found) {
    Tensor *x = LEAF(SHAPE(1), 0);
    tensor_manual_seed(7);
    Tensor *c = tensor_randn(SHAPE(1));
    GradcheckOptions options = {.eps = 0.5, .seed = 7};
    FAILS(ag_gradcheck(double_the_rest, &x, 1, NULL, options),
          format("gradcheck: input 0, element (0,): backpropagation gives %.12g, the difference "
                 "quotient %.12g",
                 -tensor_item(c), tensor_item(c)));
    RELEASE(x, c);
}

/* ---- gradcheck: numbers of any size ---------------------------------------------------------- */

LOOP_TEST(gradcheck_steps_as_far_as_the_number_is_large, 8) {
    static const double sizes[] = {1, 1e5, 1e6, 1e7, 1e9, 1e12, 1e20, 1e60};
    const double s = sizes[_i];
    Tensor *x = LEAF(SHAPE(3), s, -2 * s, s / 3);
    for (int i = 0; i < TEST_OPS; i++) {
        const char *name = test_ops[i].function.name;
        if (strcmp(name, "factor") != 0 && strcmp(name, "zero") != 0) continue;
        TestRule test = {&test_ops[i], false};
        const bool passes = ag_gradcheck(apply_rule, &x, 1, &test, (GradcheckOptions){0});
        ck_assert_msg(passes, "%s of %g: %s", name, s, tensor_error());
        test.wrong = true;
        ck_assert(!ag_gradcheck(apply_rule, &x, 1, &test, (GradcheckOptions){0}));
        expect_error_like("gradcheck: input 0, element (0,): backpropagation gives ",
                          ", the difference quotient ");
    }
    tensor_release(x);
}

/* Beside 10^20 the 1 is lost; an infinity has no neighbours. */
static Tensor *far_away(Tensor **in, void *ctx) {
    (void)ctx;
    return ag_add_scalar(in[0], 1e20);
}
TEST(gradcheck_says_what_differences_cannot_tell) {
    Tensor *x = LEAF(SHAPE(1), 1);
    Tensor *inf = LEAF(SHAPE(1), HUGE_VAL);
    TestRule test = {&test_ops[1], false};
    ck_assert(!ag_gradcheck(far_away, &x, 1, NULL, (GradcheckOptions){0}));
    expect_error_like("gradcheck: input 0, element (0,): backpropagation gives ",
                      ", but differences cannot check it: they give ");
    FAILS(ag_gradcheck(apply_rule, &inf, 1, &test, (GradcheckOptions){0}),
          "gradcheck: input 0, element (0,): backpropagation gives inf, but differences "
          "cannot check it: they give nan, give or take inf");
    RELEASE(inf, x);
}

/* At a kink, and nearer to it than a step, no difference is right; the sentence has both slopes. */
static Tensor *kinked(Tensor **in, void *ctx) {
    switch (*(int *)ctx) {
    case 0: return ag_relu(in[0]);
    case 1: return ag_clamp_min(in[0], 0);
    case 2: return ag_max_dim(in[0], 0, false);
    default: return ag_maximum(in[0], ag_scale(in[0], 3));
    }
}
TEST(gradcheck_names_a_kink) {
    static const double first[] = {0, 1e-8};
    for (int how = 0; how < 4; how++)
        for (int i = 0; i < 2; i++) {
            Tensor *x = LEAF(SHAPE(2), how == 2 ? 5 : first[i], how == 2 ? 5 : 1);
            if (how == 2) ((double *)x->data)[0] += first[i];
            if (how == 3 && i == 0) tensor_fill(x, 0); /* 2 on average, and what backward gives */
            const bool passes = ag_gradcheck(kinked, &x, 1, &how, (GradcheckOptions){0});
            if (how == 3 && i == 0) {
                ck_assert_msg(passes, "%s", tensor_error());
            } else {
                ck_assert(!passes);
                expect_error_like(format("gradcheck: input 0, element (%d,): ", 0),
                                  ", and the point is a kink: the slope is ");
            }
            tensor_release(x);
        }
    int relu = 0;
    Tensor *x = LEAF(SHAPE(1), 0);
    tensor_manual_seed(7);
    Tensor *c = tensor_randn(SHAPE(1));
    FAILS(ag_gradcheck(kinked, &x, 1, &relu, (GradcheckOptions){.seed = 7}),
          format(
              "gradcheck: input 0, element (0,): backpropagation gives 0, and the point is a kink: "
              "the slope is 0 before it and %.12g after it; check at a point further from it than "
              "1e-06",
              tensor_item(c)));
    RELEASE(c, x);
}

/* ---- gradcheck: what it demands, and what it leaves alone ---------------------------------- */

/* What the checked function does. */
typedef struct {
    int calls;
    enum { PRODUCT, SINGLE, WHOLE, FAILS, SILENT, GROWS, UNREACHED } how;
} Function;

static Tensor *function(Tensor **in, void *ctx) {
    Function *f = ctx;
    f->calls++;
    switch (f->how) {
    case SINGLE: return ag_exp(in[0]);
    case WHOLE: return ag_argmax(in[0], 0);
    case FAILS: return ag_reshape(in[0], SHAPE(1000));
    case SILENT: return NULL;
    case GROWS: return ag_expand(ag_sum(in[0]), SHAPE(f->calls));
    case UNREACHED: return ag_exp(in[1]);
    default: return ag_dropout(ag_mul(in[0], in[1]), 0.5);
    }
}

static bool check(Tensor **in, int n, int how) {
    Function f = {.how = how};
    return ag_gradcheck(function, in, n, &f, (GradcheckOptions){0});
}

TEST(gradcheck_explains_what_it_cannot_check) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *y = LEAF(SHAPE(2), 3, 4);
    Tensor *f32 = ag_requires_grad(tensor_to(x, F32));
    Tensor *wide = ag_requires_grad(tensor_as_strided(x, SHAPE(2, 2), (int64_t[]){0, 1}, 0));
    FAILS(check((Tensor *[]){f32}, 1, SINGLE), "gradcheck: input 0 is float32: it must be float64");
    FAILS(check((Tensor *[]){x, wide}, 2, PRODUCT),
          "gradcheck: input 1 is expanded: several elements share one place");
    FAILS(check((Tensor *[]){x, NULL}, 2, PRODUCT), "gradcheck: the tensor is NULL");
    FAILS(check(NULL, 1, PRODUCT), "gradcheck: it needs a function and its inputs");
    FAILS(ag_gradcheck(NULL, (Tensor *[]){x}, 1, NULL, (GradcheckOptions){0}),
          "gradcheck: it needs a function and its inputs");
    FAILS(check((Tensor *[]){x}, 1, WHOLE),
          "gradcheck: the function returned int64: it must be float64");
    ck_assert(!check((Tensor *[]){x}, 1, FAILS));
    expect_error_like("reshape: x is (2,) and the shape is (1000,): ", "");
    FAILS(check((Tensor *[]){x}, 1, SILENT),
          "gradcheck: the function returned NULL without an error");
    FAILS(check((Tensor *[]){x}, 1, GROWS),
          "gradcheck: the function returned (1,) and then (2,): its shape must not change");
    ck_assert(tape_begin());
    FAILS(check((Tensor *[]){x}, 1, SINGLE),
          "tape_begin: a recording tape is open already: tape_end it first");
    tape_end();
    tensor_fail("the first mistake");
    FAILS(check((Tensor *[]){x}, 1, SINGLE), "the first mistake");
    RELEASE(x, y, f32, wide);
}

TEST(gradcheck_refuses_numbers_that_measure_nothing) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Function f = {.how = SINGLE};
    const double none = (double)NAN, all = HUGE_VAL;
    FAILS(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.eps = -1e-6}),
          "gradcheck: eps is -1e-06: it must not be negative");
    FAILS(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.eps = none}),
          "gradcheck: eps is nan: it must be a number");
    FAILS(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.eps = all}),
          "gradcheck: eps is inf: it must be finite");
    FAILS(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.rtol = -1}),
          "gradcheck: rtol is -1: it must not be negative");
    FAILS(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.atol = none}),
          "gradcheck: atol is nan: it must be a number");
    ck_assert_int_eq(f.calls, 0);
    tensor_release(x);
}

TEST(gradcheck_takes_constants_of_any_type_and_unreached_inputs) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *y = LEAF(SHAPE(2), 3, 4);
    Tensor *whole = tensor_from_int64s(SHAPE(1), (int64_t[]){1});
    Tensor *none = LEAF(SHAPE(0), 0);
    ck_assert(check((Tensor *[]){x, whole}, 2, SINGLE));
    ck_assert(check((Tensor *[]){x, y}, 2, UNREACHED)); /* a missing gradient counts as 0 */
    ck_assert(check((Tensor *[]){none}, 1, SINGLE));
    ck_assert(check((Tensor *[]){x, x}, 2, PRODUCT));
    ck_assert(tape_begin_no_grad());
    ck_assert(check((Tensor *[]){x}, 1, SINGLE));
    tape_end();
    RELEASE(x, y, whole, none);
}

/* After success and after failure, the inputs, their gradients, the generator and the default type
 * have not changed. */
TEST(gradcheck_leaves_everything_as_it_was) {
    Tensor *x = LEAF(SHAPE(2), 0.1, 0.2);
    Tensor *y = LEAF(SHAPE(2), 0.3, 0.4);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(ag_mul(x, x))));
    tape_end();
    tensor_set_default_dtype(F32);
    tensor_release(tensor_randn(SHAPE(3))); /* a normal waits in the generator */
    const Generator generator = *tensor_generator_current();
    Tensor *grad = x->grad;
    int64_t before = tensor_live();
    for (int how = PRODUCT; how <= GROWS; how++) {
        check((Tensor *[]){x, y}, 2, how);
        tensor_clear_error();
        ck_assert_ptr_eq(x->grad, grad);
        EXPECT_GRAD(x, 0.2, 0.4);
        ck_assert_ptr_null(y->grad);
        ck_assert_double_eq(tensor_get(x, 0), 0.1);
        ck_assert_double_eq(tensor_get(y, 1), 0.4);
        ck_assert_mem_eq(tensor_generator_current(), &generator, sizeof generator);
        ck_assert_int_eq(tensor_default_dtype(), F32);
        ck_assert_int_eq(tensor_live(), before);
    }
    RELEASE(x, y);
}

/* ag_gradcheck rejects every NaN. */
TEST(gradcheck_rejects_nan) {
    Tensor *x = LEAF(SHAPE(2), 1, (double)NAN);
    ck_assert(!check((Tensor *[]){x}, 1, SINGLE));
    expect_error_like("gradcheck: input 0, element (0,): backpropagation gives ", "nan");
    tensor_release(x);
}

TEST(gradcheck_options_count) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Function f = {.how = SINGLE};
    /* With a step of 0.1 the error is 2e-3: only a large tolerance accepts it. */
    ck_assert(!ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.eps = 0.1}));
    tensor_clear_error();
    ck_assert(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.eps = 0.1, .rtol = 0.01}));
    ck_assert(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.eps = 0.1, .atol = 0.1}));
    ck_assert(ag_gradcheck(function, &x, 1, &f, (GradcheckOptions){.seed = 7}));
    tensor_release(x);
}

/* ---- the suite ----------------------------------------------------------------------------- */

int main(void) { return run_tests("tape"); }
