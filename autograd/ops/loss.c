/* loss.c - losses: mse_loss, a function of other ops, and cross_entropy. */
#include "../op.h"

#include <string.h>

static bool check_reduction(const char *op, Reduction reduction) {
    return (unsigned)reduction <= REDUCE_MEAN ||
           tensor_fail("%s: %d is not a reduction", op, (int)reduction);
}

/* ---- mse_loss ------------------------------------------------------------------------------ */

OP_TEXT(mse_loss) = {
    .call = "ag_mse_loss(y, t, reduction)",
    .shapes = "(...), same -> (), or the same for REDUCE_NONE",
    .value = "(y - t)^2 of each element, or its sum or mean",
    .gradient = "for y 2 (y - t) dy, divided by the count for REDUCE_MEAN; for t the negative of "
                "this",
};

Tensor *ag_mse_loss(Tensor *y, Tensor *t, Reduction reduction) {
    if (!ag_check_named("mse_loss", "y", y) || !ag_check_named("mse_loss", "t", t)) return NULL;
    if (!shape_equal(y->shape, t->shape) || y->dtype != t->dtype)
        return tensor_fail("mse_loss: y is %s %s and t is %s %s: shapes and types must be equal%s",
                           tensor_dtype_name(y->dtype), tensor_shape_text(y->shape),
                           tensor_dtype_name(t->dtype), tensor_shape_text(t->shape),
                           y->dtype == t->dtype ? "" : "; convert one with ag_to");
    if (!dtype_is_float(y->dtype))
        return tensor_fail(
            "mse_loss: y is %s: it must be float32 or float64; convert it with ag_to",
            tensor_dtype_name(y->dtype));
    if (!check_reduction("mse_loss", reduction)) return NULL;
    Tensor *difference = ag_sub(y, t);
    Tensor *squares = ag_square(difference);
    Tensor *loss = squares;
    if (reduction == REDUCE_SUM) loss = ag_sum(squares);
    if (reduction == REDUCE_MEAN) loss = ag_mean(squares);
    ag_let_go(difference);
    if (reduction != REDUCE_NONE) ag_let_go(squares);
    return made_by("MseLossBackward0", loss);
}

/* ---- cross_entropy ------------------------------------------------------------------------- */

/* The shape of the logits with another size in the dimension of the classes. */
static Shape with_classes(const Node *n, int64_t count) {
    Shape shape = n->in[0]->shape;
    shape.dim[n->at.dim] = count;
    return shape;
}

static bool check_targets(const Node *n) {
    const Shape logits = n->in[0]->shape, targets = n->in[1]->shape;
    if (logits.ndim == 0)
        return tensor_fail("cross_entropy: logits is (): it must be (C), (N, C) or (N, C, ...)");
    const int last = logits.ndim - 1;
    const Shape wanted = tensor_shape_without(logits, n->at.dim);
    if (shape_equal(targets, wanted)) return true;
    char advice[192] = "";
    if (last > 1 && shape_equal(targets, tensor_shape_without(logits, last)))
        snprintf(advice, sizeof advice,
                 "; where the classes are last, ag_reshape both, to %s and %s",
                 tensor_shape_text(SHAPE(tensor_numel(n->in[1]), logits.dim[last])),
                 tensor_shape_text(SHAPE(tensor_numel(n->in[1]))));
    return tensor_fail(
        "cross_entropy: logits is %s and targets is %s: the classes are dimension %d "
        "of logits, so targets must be %s%s",
        tensor_shape_text(logits), tensor_shape_text(targets), n->at.dim, tensor_shape_text(wanted),
        advice);
}

static void fail_class(const Node *n, int64_t target) {
    const char *logits = tensor_shape_text(n->in[0]->shape);
    const long long ignored = n->at.ignore_index;
    if (ignored == AG_IGNORE_NONE)
        tensor_fail("cross_entropy: target %lld is no class of logits %s in dimension %d",
                    (long long)target, logits, n->at.dim);
    else
        tensor_fail("cross_entropy: target %lld is neither a class of logits %s in dimension %d "
                    "nor ignore_index %lld",
                    (long long)target, logits, n->at.dim, ignored);
}

/* A copy of the targets, (N, 1, ...), -1 where a target is ignored. */
static Tensor *copy_targets(const Node *n) {
    const int64_t classes = n->in[0]->shape.dim[n->at.dim], ignored = n->at.ignore_index;
    Tensor *copy = tensor_clone(n->in[1]);
    int64_t *target = copy ? copy->data : NULL;
    for (int64_t i = 0; i < tensor_numel(copy); i++) {
        if (ignored != AG_IGNORE_NONE && target[i] == ignored) target[i] = -1;
        else if (target[i] < 0 || target[i] >= classes) fail_class(n, target[i]);
    }
    return tensor_reshape_own(copy, with_classes(n, 1));
}

/* The divisor of the sum of the losses: for a mean, the number of targets that are not ignored. */
static double divisor(const Node *n) {
    const int64_t *target = n->saved[0]->data;
    const int64_t numel = tensor_numel(n->saved[0]);
    int64_t count = 0;
    if (n->at.reduction != REDUCE_MEAN) return 1;
    for (int64_t i = 0; i < numel; i++) count += target[i] >= 0;
    return (double)count;
}

/* losses (N, 1, ...) unchanged, or summed and divided. PyTorch's grad_fn depends on ndim. */
static Tensor *reduced_losses(const Node *n, const Tensor *losses) {
    bool summed[TENSOR_MAX_DIMS];
    const bool each = n->at.reduction == REDUCE_NONE;
    memset(summed, !each, sizeof summed);
    Tensor *sum = tensor_sum_dims(losses, summed);
    if (sum && n->at.reduction == REDUCE_MEAN) tensor_divide(sum, divisor(n));
    Tensor *y = tensor_reshape_own(sum, each ? n->in[1]->shape : SCALAR);
    const int ndim = losses->shape.ndim;
    if (y && ndim > 2) y->grad_fn = each && ndim != 4 ? "ViewBackward0" : "NllLoss2DBackward0";
    return y;
}

OP_TEXT(cross_entropy) = {
    .call = "ag_cross_entropy(logits, targets, ignore_index, reduction)",
    .shapes = "(C), (N, C) or (N, C, ...), the same without C -> () or, for REDUCE_NONE, the "
              "shape of targets",
    .value = "-log softmax(logits)[target] over C, 0 for an ignored target; or the sum of these; "
             "or their mean over the targets that are not ignored",
    .gradient = "(softmax(logits) - 1 at the target) dy, divided by the count for REDUCE_MEAN, "
                "exactly 0 for an ignored target",
};

/* saved: the targets; for each row max x and log sum exp(x - max x), in double. */
static Tensor *cross_entropy_forward(Node *n) {
    const Tensor *x = n->in[0];
    if (!check_targets(n)) return NULL;
    n->saved[0] = copy_targets(n);
    if (!n->saved[0]) return NULL;
    Kernel *const kernel = tensor_kernels()->cross_entropy[x->dtype];
    Tensor *losses = tensor_make(with_classes(n, 1), x->dtype);
    n->saved[1] = tensor_make(with_classes(n, 1), F64);
    n->saved[2] = tensor_make(with_classes(n, 1), F64);
    const Tensor *const operand[] = {losses, x, n->saved[0], n->saved[1], n->saved[2]};
    if (n->saved[2]) tensor_loop_rows(kernel, n->at.dim, 5, operand, 0);
    Tensor *y = n->saved[2] ? reduced_losses(n, losses) : NULL;
    tensor_release(losses);
    return y;
}

static void cross_entropy_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const bool each = n->at.reduction == REDUCE_NONE;
    Tensor *d = tensor_reshape(dy, each ? with_classes(n, 1) : SCALAR);
    dx[0] = d ? tensor_make(n->in[0]->shape, dy->dtype) : NULL;
    const Tensor *const operand[] = {dx[0], n->in[0], n->saved[0], n->saved[1], n->saved[2], d};
    Kernel *const kernel = tensor_kernels()->cross_entropy_dx[dy->dtype];
    if (dx[0]) tensor_loop_rows(kernel, n->at.dim, 6, operand, divisor(n));
    tensor_release(d);
}

DEFINE_OP(cross_entropy, .in = {{"logits", FLOAT}, {"targets", INT64}},
          .forward = cross_entropy_forward, .backward = cross_entropy_backward, .reads = READS_IN0,
          .grad_fn = "NllLossBackward0");

Tensor *ag_cross_entropy(Tensor *logits, Tensor *targets, int64_t ignore_index,
                         Reduction reduction) {
    if (!ag_check_named("cross_entropy", "logits", logits) ||
        !check_reduction("cross_entropy", reduction))
        return NULL;
    const Attributes at = {
        .dim = logits->shape.ndim > 1, .ignore_index = ignore_index, .reduction = reduction};
    return apply2(&ag_op_cross_entropy, logits, targets, at);
}
