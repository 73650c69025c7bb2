/* test_function.c - ops of a program's own: ag_call with an AgFunction, as torch.autograd.Function.
 *
 * The functions below use only the public headers. Each case is small enough to be checked by hand.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"

/* ---- functions ------------------------------------------------------------------------------- */

/* y = a b^2, of ops; b is broadcast to a's shape. */
static Tensor *scaled_forward(const AgCall *call) {
    return tensor_retain(ag_mul(call->in[0], ag_square(call->in[1])));
}
/* The dx of b has a's shape: the engine sums it. */
static void scaled_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Tensor *a = call->in[0];
    Tensor *b = call->in[1];
    dx[0] = tensor_retain(ag_mul(dy, ag_square(b)));
    dx[1] = tensor_retain(ag_mul(dy, ag_mul(a, ag_scale(b, 2))));
}
static const AgFunction scaled = {"scaled", "a b^2", "b^2 dy; 2 a b dy", scaled_forward,
                                  scaled_backward};

/* y = exp(x), dx = y dy: a loop over numbers of any type and strides. */
static Tensor *own_exp_forward(const AgCall *call) {
    const Tensor *x = call->in[0];
    Tensor *y = tensor_zeros_like(x);
    const int64_t n = tensor_numel(x);
    double *number = malloc((size_t)n * sizeof *number);
    tensor_to_doubles(x, number);
    for (int64_t i = 0; i < n; i++) tensor_set(y, exp(number[i]), i);
    free(number);
    return y;
}
static void own_exp_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_retain(ag_mul(call->out, dy));
}
static const AgFunction own_exp = {"own_exp", NULL, NULL, own_exp_forward, own_exp_backward};

/* A function with one mistake. */
typedef struct {
    enum {
        NO_MISTAKE,
        FORWARD_NULL,
        FORWARD_ERROR,
        FORWARD_ERROR_AND_RESULT,
        FORWARD_LOAN,
        FORWARD_LET_GO,
        FORWARD_TAPE,
        BACKWARD_NOTHING,
        BACKWARD_ERROR,
        BACKWARD_ERROR_AND_RESULT,
        BACKWARD_LOAN,
        BACKWARD_LET_GO,
        BACKWARD_TYPE,
        BACKWARD_SHAPE,
        BACKWARD_SMALL,
        BACKWARD_TAPE,
        BACKWARD_WRONG,
        MISTAKES
    } mistake;
    int forwards, backwards; /* how often they ran */
} Plan;

static Tensor *planned_forward(const AgCall *call) {
    Plan *plan = call->data;
    Tensor *x = call->in[0];
    Tensor *y = ag_scale(x, 2);
    plan->forwards++;
    ck_assert_ptr_null(call->out);
    switch (plan->mistake) {
    case FORWARD_NULL: return NULL;
    case FORWARD_ERROR: return tensor_fail("planned: an error of forward");
    case FORWARD_ERROR_AND_RESULT: tensor_fail("planned: an error of forward"); break;
    case FORWARD_LOAN: return y;
    case FORWARD_LET_GO: return tensor_retain(ag_let_go(y));
    case FORWARD_TAPE: ck_assert(!tape_begin()); break;
    default: break;
    }
    return tensor_retain(y);
}

static void planned_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    Plan *plan = call->data;
    plan->backwards++;
    switch (plan->mistake) {
    case BACKWARD_NOTHING: return;
    case BACKWARD_ERROR: tensor_fail("planned: an error of backward"); return;
    case BACKWARD_LOAN: dx[0] = ag_scale(dy, 2); return;
    case BACKWARD_LET_GO: dx[0] = tensor_retain(ag_let_go(ag_scale(dy, 2))); return;
    case BACKWARD_TYPE: dx[0] = tensor_retain(ag_to(dy, F32)); return;
    case BACKWARD_SHAPE: dx[0] = tensor_ones(SHAPE(3)); return;
    case BACKWARD_SMALL: dx[0] = tensor_ones(SHAPE(1)); return;
    case BACKWARD_TAPE: ck_assert(!ag_backward_from(dy, dy)); return;
    case BACKWARD_WRONG: dx[0] = tensor_retain(ag_scale(dy, 3)); return;
    default: break;
    }
    dx[0] = tensor_retain(ag_scale(dy, 2));
    if (plan->mistake == BACKWARD_ERROR_AND_RESULT) tensor_fail("planned: an error of backward");
}
static const AgFunction planned = {"planned", "2 x", "2 dy", planned_forward, planned_backward};

static const char *const sentences[MISTAKES] = {
    [FORWARD_NULL] = "planned: forward returned NULL without an error",
    [FORWARD_ERROR] = "planned: an error of forward",
    [FORWARD_ERROR_AND_RESULT] = "planned: an error of forward",
    [FORWARD_LOAN] = "planned: forward returned a loan of its own tape: tensor_retain it",
    [FORWARD_LET_GO] = "planned: the tensor was let go, and its elements with it",
    [FORWARD_TAPE] =
        "tape_begin: a function of ag_call is running, and what it does is not recorded",
    [BACKWARD_NOTHING] = "planned: backward set no dx[0], but in[0] requires a gradient",
    [BACKWARD_ERROR] = "planned: an error of backward",
    [BACKWARD_ERROR_AND_RESULT] = "planned: an error of backward",
    [BACKWARD_LOAN] = "planned: backward set dx[0] to a loan of its own tape: tensor_retain it",
    [BACKWARD_LET_GO] = "planned: the tensor was let go, and its elements with it",
    [BACKWARD_TYPE] = "planned: backward set dx[0] to float32 (2,), but in[0] is float64 (2,): the "
                      "types must be equal, and in[0] must broadcast to dx[0]",
    [BACKWARD_SHAPE] =
        "planned: backward set dx[0] to float64 (3,), but in[0] is float64 (2,): the "
        "types must be equal, and in[0] must broadcast to dx[0]",
    [BACKWARD_SMALL] =
        "planned: backward set dx[0] to float64 (1,), but in[0] is float64 (2,): the "
        "types must be equal, and in[0] must broadcast to dx[0]",
    [BACKWARD_TAPE] = "backward: no recording tape is open: call tape_begin first",
};

/* y = x: the input itself. */
static Tensor *same_forward(const AgCall *call) { return tensor_retain(call->in[0]); }
static void same_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    (void)call;
    dx[0] = tensor_retain(dy);
}
static const AgFunction same = {"same", "x", "dy", same_forward, same_backward};

static int lines_of_the_tape(void) {
    TapeLine line;
    int n = 0;
    while (tape_line(n, &line)) n++;
    return n;
}

/* ---- values and gradients -------------------------------------------------------------------- */

CASE("gradients")
/* An op of one's own among the others: values, gradients, lines. What it applies itself is not on
 * the tape. */
TEST(a_function_is_an_op_like_any_other) {
    Tensor *a = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    Tensor *b = LEAF(SHAPE(2), 3, -1);
    const int64_t before = tensor_live();
    TapeLine line;
    ck_assert(tape_begin());
    Tensor *y = ag_call(&scaled, 2, (Tensor *[]){ag_neg(a), b}, NULL);
    EXPECT_ELEMENTS(y, -9, -2, -27, -4);
    ck_assert_str_eq(y->grad_fn, "scaled");
    ck_assert_int_eq(y->refs, 1);
    ck_assert_int_eq(lines_of_the_tape(), 2);
    ck_assert(tape_line(1, &line));
    ck_assert_str_eq(line.op, "scaled");
    ck_assert_str_eq(line.text->call, "scaled");
    ck_assert_str_eq(line.text->value, "a b^2");
    ck_assert_str_eq(line.text->gradient, "b^2 dy; 2 a b dy");
    ck_assert_ptr_eq(line.out, y);
    ck_assert(line.n_in == 2 && line.in[1] == b);
    ck_assert(ag_backward(ag_sum(ag_scale(y, 10))));
    EXPECT_GRAD(a, -90, -10, -90, -10);
    EXPECT_GRAD(b, -240, 120); /* the sum over a's rows */
    tape_end();
    ck_assert_int_eq(tensor_live(), before + 2); /* the two gradients */
    RELEASE(a, b);
}

TEST(an_input_needs_no_gradient) {
    Tensor *a = tensor_ones(SHAPE(2));
    Tensor *b = LEAF(SHAPE(2), 3, -1);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(ag_call(&scaled, 2, (Tensor *[]){a, b}, NULL))));
    ck_assert_ptr_null(a->grad);
    EXPECT_GRAD(b, 6, -2);
    Tensor *none = ag_call(&scaled, 2, (Tensor *[]){a, a}, NULL);
    ck_assert(none && !none->requires_grad && !none->grad_fn);
    tape_end();
    RELEASE(a, b);
}

/* The same tensor twice in one call, and the function twice in one tape. */
TEST(gradients_of_all_uses_are_added) {
    Tensor *x = LEAF(SHAPE(2), 2, 3);
    ck_assert(tape_begin());
    Tensor *y = ag_call(&scaled, 2, (Tensor *[]){x, x}, NULL); /* x^3 */
    Tensor *z = ag_call(&scaled, 2, (Tensor *[]){y, x}, NULL); /* x^5 */
    EXPECT_ELEMENTS(z, 32, 243);
    for (int i = 1; i <= 2; i++) {
        ck_assert(ag_backward(ag_sum(z)));
        EXPECT_GRAD(x, i * 80, i * 405);
    }
    tape_end();
    tensor_release(x);
}

/* y = data[0] + x where the mask holds, else data[1]: an int64, a bool and a float input. */
static Tensor *chosen_forward(const AgCall *call) {
    const double *number = call->data;
    Tensor *index = ag_to(call->in[0], F64);
    Tensor *sum = ag_add_scalar(ag_add(call->in[1], index), number[0]);
    return tensor_retain(ag_masked_fill(sum, ag_logical_not(call->in[2]), number[1]));
}
static void chosen_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_ones(SHAPE(1)); /* nobody needs it */
    dx[1] = tensor_retain(ag_masked_fill(dy, ag_logical_not(call->in[2]), 0));
}
static const AgFunction chosen = {"chosen", NULL, NULL, chosen_forward, chosen_backward};

TEST(inputs_may_have_different_types) {
    Tensor *index = tensor_from_int64s(SHAPE(2), (int64_t[]){5, 7});
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *mask = tensor_from_bools(SHAPE(2), (bool[]){true, false});
    double numbers[] = {0.5, -1};
    ck_assert(tape_begin());
    Tensor *y = ag_call(&chosen, 3, (Tensor *[]){index, x, mask}, numbers);
    EXPECT_ELEMENTS(y, 6.5, -1);
    ck_assert(ag_backward(ag_sum(y)));
    EXPECT_GRAD(x, 1, 0);
    ck_assert_ptr_null(index->grad);
    tape_end();
    RELEASE(index, x, mask);
}

/* An integer result, or a function without a backward: the result has no gradient. */
static Tensor *rank_forward(const AgCall *call) { return tensor_retain(ag_argmax(call->in[0], 0)); }
static Tensor *three_forward(const AgCall *call) {
    ck_assert(call->n == 0);
    return tensor_full(SHAPE(2), 3);
}

TEST(a_result_may_have_no_gradient) {
    static const AgFunction rank = {"rank", NULL, NULL, rank_forward, same_backward};
    static const AgFunction fixed = {"fixed", NULL, NULL, own_exp_forward, NULL};
    static const AgFunction three = {"three", NULL, NULL, three_forward, same_backward};
    Tensor *x = LEAF(SHAPE(2), 0, 0);
    ck_assert(tape_begin());
    Tensor *all[] = {ag_call(&rank, 1, &x, NULL), ag_call(&fixed, 1, &x, NULL),
                     ag_call(&three, 0, NULL, NULL)};
    for (int i = 0; i < 3; i++) ck_assert(all[i] && !all[i]->requires_grad && !all[i]->grad_fn);
    EXPECT_ELEMENTS(all[1], 1, 1);
    EXPECT_ELEMENTS(all[2], 3, 3);
    ck_assert(ag_backward(ag_sum(ag_mul(x, all[1]))));
    EXPECT_GRAD(x, 1, 1);
    tape_end();
    tensor_release(x);
}

/* The result is a view of the input, with a line of its own; a copy would be a third tensor. */
TEST(forward_may_return_an_input) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_call(&same, 1, &x, NULL);
    ck_assert(y && y != x);
    ck_assert_ptr_eq(y->data, x->data);
    ck_assert_ptr_null(x->grad_fn);
    ck_assert(ag_backward(ag_sum(ag_square(y))));
    EXPECT_GRAD(x, 2, 4);
    tape_end();
    ck_assert_int_eq(x->refs, 1);
    tensor_release(x);
}

/* A result that the program holds on to, and returns again: the lines do not share it. */
static Tensor *constant_forward(const AgCall *call) { return tensor_retain(call->data); }

TEST(forward_may_return_what_the_program_holds) {
    static const AgFunction constant = {"constant", NULL, NULL, constant_forward, same_backward};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *held = tensor_ones(SHAPE(2));
    ck_assert(tape_begin());
    Tensor *y = ag_call(&constant, 1, &x, held);
    Tensor *z = ag_call(&constant, 1, &x, held);
    ck_assert(y && z && y != z && y->line != z->line);
    ck_assert(!held->grad_fn && !held->requires_grad);
    tape_end();
    ck_assert_int_eq(held->refs, 1);
    RELEASE(x, held);
}

/* dy is empty, so backward is not called. */
TEST(an_empty_result_has_gradients_of_zeros) {
    Plan plan = {0};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_call(&planned, 1, (Tensor *[]){ag_slice(x, 0, 0, 0)}, &plan);
    ck_assert(ag_backward(ag_sum(y)));
    EXPECT_GRAD(x, 0, 0);
    ck_assert(plan.forwards == 1 && plan.backwards == 0);
    tape_end();
    tensor_release(x);
}

/* ---- tapes ----------------------------------------------------------------------------------- */

/* Calls itself: y = 2^depth x, each level on a tape of its own. */
static Tensor *nested_forward(const AgCall *call);
static void nested_backward(const AgCall *call, Tensor *dy, Tensor **dx);
static const AgFunction nested = {"nested", NULL, NULL, nested_forward, nested_backward};

static Tensor *nested_forward(const AgCall *call) {
    int deeper = *(int *)call->data - 1;
    Tensor *x = ag_scale(call->in[0], 2);
    ck_assert_int_eq(tape_mark(), 1); /* the tape begins anew */
    ck_assert_int_eq(lines_of_the_tape(), 0);
    return tensor_retain(deeper ? ag_call(&nested, 1, &x, &deeper) : x);
}
static void nested_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_retain(ag_call(&nested, 1, &dy, call->data));
}

/* Enough nodes that the array of the nodes moves, both while forward runs and while backward does.
 */
static Tensor *long_forward(const AgCall *call) {
    Tensor *y = call->in[0];
    for (int i = 0; i < 200; i++) y = ag_add_scalar(y, 1);
    return tensor_retain(y);
}
static void long_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    (void)call;
    Tensor *y = dy;
    for (int i = 0; i < 200; i++) y = ag_add_scalar(y, i % 2 ? -1 : 1);
    dx[0] = tensor_retain(y);
}

CASE("tapes")
TEST(what_a_function_applies_is_not_recorded) {
    static const AgFunction many = {"many", NULL, NULL, long_forward, long_backward};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    int depth = 5;
    const int64_t before = tensor_live();
    ck_assert(tape_begin());
    Tensor *y = ag_call(&nested, 1, &x, &depth);
    Tensor *z = ag_call(&many, 1, &y, NULL);
    EXPECT_ELEMENTS(z, 232, 264);
    ck_assert_int_eq(tensor_live(), before + 2);
    ck_assert_int_eq(tape_mark(), 2);
    ck_assert(ag_backward(ag_sum(z)));
    EXPECT_GRAD(x, 32, 32);
    ck_assert_int_eq(tape_mark(), 3);
    tape_end();
    ck_assert_int_eq(tensor_live(), before + 1);
    tensor_release(x);
}

/* Tapes that a function leaves open end with it; a tape_end too many ends none of the caller's. */
static Tensor *careless_forward(const AgCall *call) {
    Tensor *y = tensor_clone(call->in[0]);
    for (int i = 0; i < 3 && call->data; i++) ck_assert(ag_neg(y) && tape_begin_no_grad());
    for (int i = 0; i < 2 && !call->data; i++) tape_end();
    return y;
}

TEST(the_tapes_of_the_caller_stay) {
    static const AgFunction careless = {"careless", NULL, NULL, careless_forward, same_backward};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    for (int i = 0; i < 2; i++) {
        Tensor *y = ag_call(&careless, 1, &x, i ? x : NULL);
        ck_assert_int_eq(lines_of_the_tape(), 2 * i + 1);
        ck_assert(ag_backward(ag_sum(y)));
        EXPECT_GRAD(x, i + 1, i + 1);
    }
    tape_end();
    FAILS(ag_neg(x), "neg: no tape is open: call tape_begin or tape_begin_no_grad first");
    tensor_release(x);
}

TEST(a_no_grad_tape_owns_the_result_alone) {
    Plan plan = {0};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin_no_grad());
    Tensor *y = ag_call(&planned, 1, &x, &plan);
    EXPECT_ELEMENTS(y, 2, 4);
    ck_assert(!y->requires_grad && !y->grad_fn);
    ck_assert_int_eq(x->refs, 1);
    y = tape_end_keeping(y);
    EXPECT_ELEMENTS(y, 2, 4);
    RELEASE(y, x);
}

TEST(a_result_may_be_kept) {
    Plan plan = {0};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin_no_grad() && tape_begin());
    Tensor *y = tape_end_keeping(ag_call(&planned, 1, &x, &plan));
    EXPECT_ELEMENTS(y, 2, 4);
    tape_end();
    ck_assert(tape_begin());
    y = tape_end_keeping(ag_call(&planned, 1, &x, &plan));
    EXPECT_ELEMENTS(y, 2, 4);
    ck_assert(tape_begin());
    FAILS(ag_call(&planned, 1, &y, &plan),
          "planned: in[0] was computed on a tape that has ended: ag_detach it to use it as a "
          "constant");
    tape_end();
    RELEASE(y, x);
}

/* Backward reads inputs and result, so their elements stay until then. */
TEST(what_is_let_go_stays_for_backward) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *a = ag_scale(x, 3);
    Tensor *y = ag_call(&own_exp, 1, &a, NULL);
    Tensor *z = ag_call(&scaled, 2, (Tensor *[]){a, y}, NULL);
    Tensor *loss = ag_sum(z);
    ag_let_go(a);
    ag_let_go(y);
    FAILS(ag_call(&own_exp, 1, &a, NULL), "own_exp: in[0] was let go, and its elements with it");
    FAILS(ag_call(&scaled, 2, (Tensor *[]){x, a}, NULL),
          "scaled: in[1] was let go, and its elements with it");
    ck_assert(ag_backward(loss)); /* 3 x exp(6 x) */
    expect_elements("x->grad", x->grad, (double[]){3 * exp(6) * 7, 3 * exp(12) * 13}, 1e-6);
    tape_end();
    tensor_release(x);
}

TEST(what_backward_reads_must_not_change) {
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert(tape_begin());
        Tensor *a = ag_scale(x, 1);
        Tensor *y = ag_call(&own_exp, 1, &a, NULL);
        Tensor *loss = ag_sum(y);
        ck_assert(tensor_fill(i ? y : a, 1));
        FAILS(ag_backward(loss),
              i ? "backward: own_exp needs its result (2,) as it was, but fill has written "
                  "over it since"
                : "backward: own_exp needs its input in[0] (2,) as it was, but fill has "
                  "written over it since");
        FAILS(ag_call(&own_exp, 1, i ? &y : &a, NULL),
              "own_exp: in[0] is a result of the tape, and fill has written over it, which "
              "the tape does not record: use ops, or ag_detach it to use it as a constant");
        tape_end();
    }
    ck_assert_ptr_null(x->grad);
    tensor_release(x);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

CASE("mistakes")
/* After an error nothing is recorded, no gradient has changed, no tensor is left. */
LOOP_TEST(a_mistake_is_one_sentence, MISTAKES) {
    Plan plan = {.mistake = _i};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *w = LEAF(SHAPE(2), 3, 4);
    ck_assert(tape_begin());
    ck_assert(ag_backward(ag_sum(x)));
    Tensor *product = ag_mul(x, w);
    const int64_t before = tensor_live();
    const int lines = lines_of_the_tape();
    Tensor *y = ag_call(&planned, 1, &product, &plan);
    if (!y) {
        ck_assert_int_lt(_i, BACKWARD_NOTHING);
        expect_error(sentences[_i]);
        ck_assert_int_eq(tensor_live(), before);
        ck_assert_int_eq(lines_of_the_tape(), lines);
    } else {
        Tensor *loss = ag_add(ag_sum(y), ag_sum(w)); /* w gets a part before the error */
        const int64_t live = tensor_live();
        const bool done = ag_backward(loss);
        ck_assert(done == !sentences[_i]);
        if (sentences[_i]) {
            expect_error(sentences[_i]);
            ck_assert_ptr_null(w->grad);
            EXPECT_GRAD(x, 1, 1);
            ck_assert_int_eq(tensor_live(), live);
        }
        ck_assert_int_eq(plan.backwards, 1);
        ck_assert(lines_of_the_tape() == lines + 4);
    }
    ck_assert_int_eq(plan.forwards, 1);
    tape_end();
    RELEASE(x, w);
}

/* dx[1] is left out, and in[1] needs it; a dx for in[0], which needs none, is ignored. */
static void half_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
    (void)call;
    dx[0] = tensor_retain(dy);
}

TEST(a_missing_gradient_is_named) {
    static const AgFunction half = {"half", NULL, NULL, scaled_forward, half_backward};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *c = tensor_ones(SHAPE(2));
    ck_assert(tape_begin());
    FAILS(ag_backward(ag_sum(ag_call(&half, 2, (Tensor *[]){c, x}, NULL))),
          "half: backward set no dx[1], but in[1] requires a gradient");
    ck_assert(ag_backward(ag_sum(ag_call(&half, 2, (Tensor *[]){x, c}, NULL))));
    EXPECT_GRAD(x, 1, 1);
    tape_end();
    RELEASE(x, c);
}

TEST(arguments_are_checked) {
    static const AgFunction nameless = {NULL, NULL, NULL, same_forward, same_backward};
    static const AgFunction valueless = {"valueless", NULL, NULL, NULL, same_backward};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *list[] = {x, x, x, x, x, x, x, x};
    Tensor *pair[] = {x, NULL};
    FAILS(ag_call(&same, 1, &x, NULL),
          "same: no tape is open: call tape_begin or tape_begin_no_grad first");
    ck_assert(tape_begin());
    FAILS(ag_call(NULL, 1, &x, NULL), "ag_call: it needs a function with a name and a forward");
    FAILS(ag_call(&nameless, 1, &x, NULL),
          "ag_call: it needs a function with a name and a forward");
    FAILS(ag_call(&valueless, 1, &x, NULL),
          "ag_call: it needs a function with a name and a forward");
    FAILS(ag_call(&same, 8, list, NULL), "same: n is 8: it must be from 0 to 7");
    FAILS(ag_call(&same, -1, list, NULL), "same: n is -1: it must be from 0 to 7");
    FAILS(ag_call(&same, 1, NULL, NULL), "same: in is NULL");
    FAILS(ag_call(&scaled, 2, pair, NULL), "scaled: in[1] is NULL");
    tensor_fail("the first mistake");
    FAILS(ag_call(&same, 7, NULL, NULL), "the first mistake");
    ck_assert_ptr_nonnull(ag_call(&same, 6, list, NULL));
    ck_assert_int_eq(lines_of_the_tape(), 1);
    tape_end();
    tensor_release(x);
}

/* ---- checked and shown ----------------------------------------------------------------------- */

static Tensor *call_planned(Tensor **in, void *plan) { return ag_call(&planned, 1, in, plan); }
static Tensor *call_scaled(Tensor **in, void *unused) {
    (void)unused;
    return ag_call(&scaled, 2, in, NULL);
}

CASE("shown")
TEST(gradcheck_tells_right_from_wrong) {
    Plan right = {NO_MISTAKE, 0, 0}, wrong = {BACKWARD_WRONG, 0, 0};
    Tensor *x = LEAF(SHAPE(2, 2), 1, 2, 3, 4);
    Tensor *b = LEAF(SHAPE(2), 0.5, -0.3);
    ck_assert(ag_gradcheck(call_planned, &x, 1, &right, (GradcheckOptions){0}));
    ck_assert(ag_gradcheck(call_scaled, (Tensor *[]){x, b}, 2, NULL, (GradcheckOptions){0}));
    ck_assert(!ag_gradcheck(call_planned, &x, 1, &wrong, (GradcheckOptions){0}));
    expect_error_like("gradcheck: input 0, element (0, 0): backpropagation gives ",
                      ", the difference quotient ");
    RELEASE(x, b);
}

TEST(a_printed_tape_names_the_function) {
    Plan plan = {0};
    char *text = NULL;
    size_t size;
    Tensor *x = ag_name(LEAF(SHAPE(2), 1, 2), "x");
    FILE *file = open_memstream(&text, &size);
    ck_assert(tape_begin());
    Tensor *y = ag_name(ag_call(&planned, 1, &x, &plan), "y");
    ag_call(&scaled, 2, (Tensor *[]){y, x}, NULL);
    ck_assert(tape_print(file) && tensor_print(y, file));
    tape_end();
    fclose(file);
    ck_assert_str_eq(text, "%0 y = planned(x (2,)) (2,) grad\n"
                           "%1 = scaled(%0 y, x (2,)) (2,) grad\n"
                           "tensor([2., 4.], grad_fn=<planned>)\n");
    free(text);
    tensor_release(x);
}

static void expect_part(const char *text, const char *part) {
    ck_assert_msg(strstr(text, part) != NULL, "%s is not in %s", part, text);
}

/* The line of a function is run again and differentiated, and the check of a wrong one fails. */
LOOP_TEST(a_tape_as_json_shows_the_function, 2) {
    Plan plan = {.mistake = _i ? BACKWARD_WRONG : NO_MISTAKE};
    char *text = NULL;
    size_t size;
    Tensor *x = ag_requires_grad(tensor_full_of(SHAPE(2), 3, F32));
    Tensor *dx[1];
    FILE *file = open_memstream(&text, &size);
    ck_assert(tape_begin());
    tape_keep_grads(true);
    Tensor *y = ag_call(&planned, 1, &x, &plan);
    ck_assert(ag_backward(ag_sum(ag_call(&own_exp, 1, &y, NULL))));
    ck_assert(tape_write_json(file));
    Tensor *again = tape_forward(0);
    EXPECT_ELEMENTS(again, 6, 6);
    ck_assert(tape_vjp(0, y, dx));
    EXPECT_ELEMENTS(dx[0], _i ? 18 : 12, _i ? 18 : 12);
    tape_end();
    fclose(file);
    expect_part(text, "\"op\":\"planned\",\"call\":\"planned\",\"shapes\":\"\",\"formula\":\"2 x\","
                      "\"gradient\":\"2 dy\",\"source\":\"\",\"in\":[0],\"out\":1");
    expect_part(text, "\"op\":\"own_exp\"");
    expect_part(text, _i ? "\"jacobian\":[[0,3],[1,3]]" : "\"jacobian\":[[0,2],[1,2]]");
    const char *worst = strstr(text, "\"worst\":");
    ck_assert(worst && (strtod(worst + strlen("\"worst\":"), NULL) > 0.1) == _i);
    free(text);
    RELEASE(again, dx[0], x);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* What a hook has seen, and what it does. */
typedef struct {
    int calls, n;
    double dy[2], dx[2];
    enum { LOOKS, DOUBLES, FORGETS, FAILS } does;
} Seen;

static void look(const AgCall *call, Tensor *dy, Tensor **dx) {
    Seen *seen = call->data;
    seen->calls++;
    seen->n = call->n;
    ck_assert(!call->function && call->in && call->out);
    for (int64_t i = 0; i < 2; i++) seen->dy[i] = tensor_get(dy, i % tensor_numel(dy));
    for (int64_t i = 0; i < 2; i++) seen->dx[i] = tensor_get(dx[0], i);
    if (seen->does == FAILS) tensor_fail("look: an error of a hook");
    if (seen->does == LOOKS || seen->does == FAILS) return;
    Tensor *twice = tensor_retain(ag_scale(dx[0], 2));
    tensor_release(dx[0]);
    dx[0] = NULL;
    if (seen->does == DOUBLES) dx[0] = twice;
    else tensor_release(twice);
}

CASE("hooks")
/* The backward of exp may write over its dy; the hook sees dy as it was. */
TEST(a_hook_may_change_dx) {
    Seen seen = {.does = DOUBLES}, other = {.does = LOOKS};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *y = ag_exp(ag_scale(x, 3));
    ck_assert(tape_register_hook(1, look, &seen));
    Tensor *loss = ag_sum(ag_scale(y, 5));
    ck_assert(ag_backward(loss));
    ck_assert(seen.calls == 1 && seen.n == 1);
    expect_elements("x->grad", x->grad, (double[]){30 * exp(3), 30 * exp(6)}, 1e-9);
    ck_assert(seen.dy[0] == 5 && seen.dy[1] == 5);
    ck_assert(same_number(seen.dx[1], 5 * exp(6), 1e-9));
    ck_assert(tape_register_hook(1, look, &other)); /* it takes the place of the other one */
    ck_assert(ag_zero_grad(x) && ag_backward(loss));
    expect_elements("x->grad", x->grad, (double[]){15 * exp(3), 15 * exp(6)}, 1e-9);
    ck_assert(seen.calls == 1 && other.calls == 1);
    ck_assert(tape_register_hook(1, NULL, NULL) && ag_backward(loss));
    ck_assert(seen.calls == 1 && other.calls == 1);
    ck_assert(tape_register_hook(1, look, &other)); /* it ends with the tape */
    tape_end();
    tensor_release(x);
}

/* A slice adds to the gradient of x in place, where other lines have added theirs; a hook sees the
 * part of its line alone. */
TEST(a_hook_sees_the_gradient_of_its_line) {
    Seen seen = {.does = LOOKS};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    ck_assert(tape_begin());
    Tensor *first = ag_slice(x, 0, 0, 1);
    Tensor *y = ag_scale(x, 7);
    ck_assert(tape_register_hook(0, look, &seen));
    ck_assert(ag_backward(ag_add(ag_sum(first), ag_sum(y))));
    EXPECT_GRAD(x, 8, 7);
    ck_assert(seen.dx[0] == 1 && seen.dx[1] == 0);
    tape_end();
    tensor_release(x);
}

TEST(a_line_with_many_inputs_has_a_hook) {
    Seen seen = {.does = DOUBLES};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    Tensor *c = tensor_ones(SHAPE(2));
    ck_assert(tape_begin());
    Tensor *y = ag_cat((Tensor *[]){x, c, c, c, c, c, c, x}, 8, 0);
    ck_assert(tape_register_hook(0, look, &seen));
    ck_assert(ag_backward(ag_sum(y)));
    ck_assert_int_eq(seen.n, 8);
    EXPECT_GRAD(x, 3, 3);
    tape_end();
    RELEASE(x, c);
}

TEST(mistakes_of_hooks) {
    Seen seen = {.does = FORGETS};
    Tensor *x = LEAF(SHAPE(2), 1, 2);
    FAILS(tape_register_hook(0, look, &seen),
          "tape_register_hook: the open recording tape has no line 0");
    ck_assert(tape_begin());
    Tensor *loss = ag_sum(ag_neg(x));
    ag_gt(x, x);
    const int64_t before = tensor_live();
    FAILS(tape_register_hook(2, look, &seen), "tape_register_hook: line 2, gt, has no gradient");
    ck_assert(tape_register_hook(0, look, &seen) && !ag_backward(loss));
    expect_error("neg: backward set no dx[0], but in[0] requires a gradient");
    seen.does = FAILS;
    FAILS(ag_backward(loss), "look: an error of a hook");
    ck_assert_int_eq(seen.calls, 2);
    ck_assert_int_eq(tensor_live(), before);
    ck_assert_ptr_null(x->grad);
    tensor_fail("the first mistake");
    FAILS(tape_register_hook(0, look, &seen), "the first mistake");
    tape_end();
    tensor_release(x);
}

int main(void) { return run_tests("function"); }
