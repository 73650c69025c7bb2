/* test_corners.c - special cases that a reviewer found: each of these once crashed, gave a wrong
 * result, or named a wrong cause. PyTorch's answers are literals. */
#include "../common.h"

#include <check.h>
#include <float.h>
#include <math.h>

/* ---- the tape ------------------------------------------------------------------------------ */

CASE("corners")
TEST(a_result_handed_through_one_no_grad_tape_keeps_its_history) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    tape_begin();
    Tensor *y = ag_scale(x, 2);
    tape_begin_no_grad();
    ck_assert_ptr_eq(tape_end_keeping(ag_contiguous(y)), y);
    ck_assert(ag_backward(ag_sum(y)));
    EXPECT_GRAD(x, 2, 2);
    tape_end();
    tensor_release(x);
}

TEST(a_small_gradient_does_not_hold_on_to_large_bytes) {
    Tensor *a = LEAF(SHAPE(1), 1);
    Tensor *b = tensor_zeros(SHAPE(1000));
    tape_begin();
    ck_assert(ag_backward(ag_sum(ag_square(ag_cat((Tensor *[]){a, b}, 2, 0)))));
    ck_assert_int_eq(a->grad->storage->size, sizeof(double));
    tape_end();
    RELEASE(a, b);
}

/* ---- values and gradients -------------------------------------------------------------------- */

TEST(the_gradient_of_a_loser_is_zero_even_where_it_is_infinite) {
    const double inf = (double)INFINITY;
    Tensor *low = LEAF(SCALAR, -inf);
    Tensor *high = LEAF(SCALAR, 1);
    tape_begin();
    ck_assert(ag_backward(ag_add(ag_maximum(low, high), ag_minimum(low, high))));
    EXPECT_GRAD(low, 1);
    EXPECT_GRAD(high, 1);
    tape_end();
    RELEASE(low, high);
}

TEST(dropout_divides_in_the_type_of_the_tensor) {
    tensor_set_default_dtype(F32);
    Tensor *x = tensor_ones(SHAPE(4));
    tape_begin_no_grad();
    tensor_manual_seed(3);
    Tensor *y = ag_dropout(x, 0.15); /* torch.nn.functional.dropout(torch.ones(4), 0.15) */
    for (int i = 0; i < 4; i++) ck_assert_double_eq(tensor_get(y, i), 1.1764705181121826);
    tape_end();
    tensor_release(x);
}

TEST(the_variance_of_fewer_than_two_is_nan) {
    Tensor *none = tensor_zeros(SHAPE(1, 0));
    Tensor *one = tensor_zeros(SHAPE(1, 1));
    tape_begin_no_grad();
    ck_assert_double_nan(tensor_item(ag_var_dim(none, 1, false)));
    ck_assert_double_nan(tensor_item(ag_var_dim(one, 1, false)));
    tape_end();
    RELEASE(none, one);
}

/* A gradient that is 0 by its rule is 0 for any dy: that of log(y) where y is 0 is infinite. */
TEST(a_gradient_that_is_0_is_0_for_any_dy) {
    static const struct {
        const char *op;
        double number[2], x[3];
        bool is_zero[3];
    } rules[] = {
        {"std_dim", {0, 0}, {0.1, 0.1, 0.1}, {true, true, true}},
        {"std_dim", {0, 1}, {-7, -7, -7}, {true, true, true}},
        {"std_dim", {0, 0}, {1, 2, 4}, {false, false, false}},
        {"relu", {0}, {-1, 0, 2}, {true, true, false}},
        {"clamp_min", {0}, {-1, 0, 2}, {true, true, false}},
        {"clamp_max", {0}, {-1, 0, 2}, {false, true, true}},
        {"clamp", {-1, 1}, {-1, 0, 1}, {true, false, true}},
        {"pow_scalar", {0}, {-1, 0, 2}, {true, true, true}},
        {"max_dim", {0, 0}, {-1, 2, 2}, {true, false, true}},
        {"min_dim", {0, 0}, {-1, 2, 2}, {false, true, true}},
        {"max", {0}, {-1, 2, 2}, {true, false, false}},
    };
    const double dys[] = {HUGE_VAL, -HUGE_VAL, (double)NAN};
    for (int r = 0; r < (int)COUNT(rules); r++)
        for (int i = 0; i < 6; i++) {
            tensor_set_default_dtype(i < 3 ? F32 : F64);
            Tensor *x = ag_requires_grad(tensor_from_doubles(SHAPE(3), rules[r].x));
            tape_begin();
            Tensor *y = call_op(rules[r].op, &x, 1, rules[r].number);
            ck_assert_msg(y != NULL, "%s: %s", rules[r].op, tensor_error());
            Tensor *dy = tensor_full(y->shape, dys[i % 3]);
            ck_assert(ag_backward_from(y, dy));
            for (int e = 0; e < 3; e++) {
                const double dx = tensor_get(x->grad, (int64_t)e);
                ck_assert_msg(rules[r].is_zero[e] ? dx == 0 : !isfinite(dx), "%s: dx[%d] is %g",
                              rules[r].op, e, dx);
            }
            tape_end();
            RELEASE(x, dy);
        }
}

/* The square of the deviation does not fit the type, or has few digits there. (PyTorch 2.15 is
 * right for std in float32; in float64 it says inf and 0 at 1e200, and its layer_norm is 0 at
 * 1e20.) */
TEST(a_deviation_fits_where_the_variance_does_not) {
    static const double sizes[] = {1e-22, 1e20, 3e37, 1e-200, 1e200, 1e307};
    for (int i = 0; i < 6; i++) {
        tensor_set_default_dtype(i < 3 ? F32 : F64);
        const double tolerance = i < 3 ? 1e-6 : 1e-14;
        Tensor *x = tensor_from_doubles(SHAPE(1, 2), (double[]){sizes[i], -sizes[i]});
        tape_begin();
        Tensor *std = ag_std_dim(ag_requires_grad(x), 1, false);
        ck_assert_double_eq_tol(tensor_item(std) / (sizes[i] * sqrt(2)), 1, tolerance);
        ck_assert(ag_backward(std));
        ck_assert_double_eq_tol(tensor_get(x->grad, 0, 0), sqrt(0.5), tolerance);
        ck_assert_double_eq_tol(tensor_get(x->grad, 0, 1), -sqrt(0.5), tolerance);
        Tensor *z = ag_layer_norm(x, NULL, NULL, 0);
        ck_assert_double_eq_tol(tensor_get(z, 0, 0), 1, tolerance);
        ck_assert_double_eq_tol(tensor_get(z, 0, 1), -1, tolerance);
        tape_end();
        tensor_release(x);
    }
}

/* PyTorch says NaN in float32 from 1e19 on, because the slope is infinite there. */
TEST(the_gradient_of_gelu_tanh_far_out_is_0_or_1) {
    for (int i = 0; i < 2; i++) {
        const double far = i ? 1e308 : 3e38;
        tensor_set_default_dtype(i ? F64 : F32);
        Tensor *x =
            tensor_from_doubles(SHAPE(6), (double[]){-1.2e13, 1.2e13, -1e30, 1e30, -far, far});
        tape_begin();
        ck_assert(ag_backward(ag_sum(ag_gelu_tanh(ag_requires_grad(x)))));
        EXPECT_GRAD(x, 0, 1, 0, 1, 0, 1);
        tape_end();
        tensor_release(x);
    }
}

TEST(the_gradient_of_abs_is_plain_zero_at_zero) {
    Tensor *x = LEAF(SHAPE(2), -0.0, (double)NAN);
    tape_begin();
    ck_assert(ag_backward(ag_sum(ag_abs(x))));
    ck_assert(!signbit(tensor_get(x->grad, 0)));
    EXPECT_GRAD(x, 0, 0);
    tape_end();
    tensor_release(x);
}

TEST(abs_multiplies_dy_by_the_sign) {
    Tensor *x = LEAF(SHAPE(3), 0, (double)NAN, -1);
    Tensor *dy = tensor_from_doubles(SHAPE(3), (double[]){(double)INFINITY, (double)NAN, 2});
    tape_begin();
    ck_assert(ag_backward_from(ag_abs(x), dy));
    EXPECT_GRAD(x, (double)NAN, (double)NAN, -2);
    tape_end();
    RELEASE(x, dy);
}

TEST(a_sum_over_no_dimensions_is_over_all) {
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    tape_begin_no_grad();
    EXPECT_ELEMENTS(ag_sum_dims(x, (Axes){0}, false), 10); /* torch.sum(x, dim=[]) */
    ck_assert_int_eq(ag_mean_dims(x, (Axes){0}, true)->shape.ndim, 2);
    tape_end();
    tensor_release(x);
}

/* ---- shapes beyond all bounds ---------------------------------------------------------------- */

TEST(sizes_that_overflow_are_an_error) {
    Tensor *x = LEAF(SHAPE(1), 1);
    const int64_t huge = INT64_C(1) << 62;
    tape_begin_no_grad();
    ck_assert_ptr_null(ag_reshape(x, SHAPE(huge, 4)));
    expect_error_like("reshape: x is (1,)", "the number of elements must stay the same");
    Tensor *nothing = ag_slice(x, 0, 0, 0);
    ck_assert_ptr_null(ag_reshape(nothing, SHAPE(0, huge, 4)));
    expect_error_like("reshape: x is (0,)", "the number of elements must stay the same");
    Tensor *wide = ag_expand(x, SHAPE(huge));
    ck_assert_ptr_null(ag_cat((Tensor *[]){wide, x}, 2, 0));
    expect_error_like("shape (", "its bytes do not fit in memory");
    FAILS(ag_cat((Tensor *[]){wide, wide}, 2, 0),
          "cat: dimension 0 has more than 2^63 - 1 elements");
    ck_assert_ptr_null(ag_repeat(ag_expand(x, SHAPE(4)), SHAPE(huge)));
    expect_error_like("repeat: 4611686018427387904 repeats of (4,)", "too many");
    tape_end();
    tensor_release(x);
}

/* PyTorch: "value cannot be converted to type ... without overflow" */
TEST(a_number_that_the_type_cannot_hold_is_an_error) {
    Tensor *one = LEAF(SHAPE(1), 1);
    Tensor *f32 = tensor_to(one, F32);
    Tensor *i64 = tensor_from_int64s(SHAPE(1), (int64_t[]){1});
    Tensor *mask = tensor_from_bools(SHAPE(1), (bool[]){true});
    FAILS(tensor_fill(f32, 1e39), "fill: float32 cannot hold 1e+39");
    FAILS(tensor_fill(i64, (double)NAN), "fill: int64 cannot hold nan");
    ck_assert(tensor_fill(f32, -(double)INFINITY) && tensor_fill(i64, -0x1p63));
    tensor_set_default_dtype(F32);
    FAILS(tensor_full(SHAPE(1), 1e300), "full: float32 cannot hold 1e+300");
    tape_begin_no_grad();
    FAILS(ag_masked_fill(i64, mask, 0x1p63), "masked_fill: int64 cannot hold 9.22337e+18");
    tape_end();
    RELEASE(one, f32, i64, mask);
}

/* So many tensors that a list that is too short would corrupt the heap. */
TEST(a_stack_of_a_thousand) {
    enum { N = 1000 };
    Tensor *list[N];
    Tensor *x = LEAF(SHAPE(2), 3, 4);
    for (int i = 0; i < N; i++) list[i] = x;
    tape_begin();
    Tensor *y = ag_stack(list, N, 0);
    ck_assert_msg(ag_backward(ag_sum(y)), "%s", tensor_error());
    ck_assert_double_eq(tensor_get(y, (int64_t)N - 1, (int64_t)1), 4);
    ck_assert_double_eq(tensor_get(x->grad, (int64_t)0), N);
    tape_end();
    tensor_release(x);
}

/* ---- the right name on an error -------------------------------------------------------------- */

TEST(a_composite_names_itself) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *t = tensor_to(x, F32);
    Tensor *scalar = LEAF(SCALAR, 1);
    FAILS(ag_max_dim(scalar, 0, false),
          "max_dim: no tape is open: call tape_begin or tape_begin_no_grad first");
    tape_begin_no_grad();
    FAILS(ag_mse_loss(x, t, REDUCE_SUM),
          "mse_loss: y is float64 (2,) and t is float32 (2,): shapes and types must be equal"
          "; convert one with ag_to");
    tape_end();
    RELEASE(x, t, scalar);
}

TEST(a_pending_error_reaches_the_end_of_every_chain) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *whole = tensor_from_int64s(SHAPE(1), (int64_t[]){1});
    tape_begin_no_grad();
    FAILS(ag_dropout(whole, 0),
          "dropout: x is int64: it must be float32 or float64; convert it with ag_to");
    tensor_fail("first");
    FAILS(ag_contiguous(x), "first");
    tape_end();
    RELEASE(x, whole);
}

int main(void) { return run_tests("corners"); }
