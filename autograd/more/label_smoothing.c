/* label_smoothing.c - cross entropy with a target that is a little of every class. Szegedy et al.
 * 2016. */
#include "../op.h"

OP_TEXT(cross_entropy_smoothed) = {
    .call = "ag_cross_entropy_smoothed(logits, targets, ignore_index, reduction, s)",
    .shapes = "as ag_cross_entropy",
    .value =
        "as ag_cross_entropy, with sum over C of -q log softmax(logits), where q is 1 - s + s / C "
        "for the target and s / C for each other class",
    .gradient = "(softmax(logits) - q) dy, divided by the count for REDUCE_MEAN, exactly 0 for an "
                "ignored target",
    .source = "Szegedy et al. 2016",
};

/* The sum of the losses, divided by the number of targets that count. */
static Tensor *mean_over(Tensor *losses, Tensor *ignored) {
    Tensor *count = ag_to(ag_sum(ag_logical_not(ignored)), losses ? losses->dtype : F32);
    return ag_div(ag_sum(losses), count);
}

/* The mean of log softmax(x) over the classes, 0 for an ignored target. Ignored logits become 0
 * first, so that a NaN among them has no gradient. */
static Tensor *mean_log_softmax(Tensor *x, Tensor *ignored, int dim) {
    Tensor *counted = ag_masked_fill(x, ag_unsqueeze(ignored, dim), 0);
    Tensor *means = ag_mean_dims(ag_log_softmax(counted, dim), AXES(dim), false);
    return ag_masked_fill(means, ignored, 0);
}

Tensor *ag_cross_entropy_smoothed(Tensor *logits, Tensor *targets, int64_t ignore_index,
                                  Reduction reduction, double smoothing) {
    const char *const op = "cross_entropy_smoothed";
    if (!ag_check_named(op, "logits", logits) || !ag_check_named(op, "targets", targets))
        return NULL;
    if (!(smoothing >= 0 && smoothing <= 1))
        return tensor_fail("%s: smoothing is %g: it must be from 0 to 1", op, smoothing);
    const int mark = tape_mark();
    Tensor *loss = ag_cross_entropy(logits, targets, ignore_index, reduction);
    if (!loss || smoothing == 0) return loss;
    Tensor *number = tape_own(tensor_from_int64s(SCALAR, &ignore_index));
    Tensor *ignored = ag_eq(targets, number);
    Tensor *smooth = mean_log_softmax(logits, ignored, logits->shape.ndim > 1);
    if (reduction == REDUCE_SUM) smooth = ag_sum(smooth);
    if (reduction == REDUCE_MEAN) smooth = mean_over(smooth, ignored);
    Tensor *y = ag_sub(ag_scale(loss, 1 - smoothing), ag_scale(smooth, smoothing));
    return ag_let_go_since(mark, made_by("AddBackward0", y));
}
