/* loss.c - losses, composed of other ops. */
#include "../op.h"

/* (y - t)^2, as it is, summed, or averaged */
Tensor *ag_mse_loss(Tensor *y, Tensor *t, Reduction reduction) {
    if (!ag_ready("mse_loss", y) || !ag_ready("mse_loss", t)) return NULL;
    if (!shape_equal(y->shape, t->shape) || y->dtype != t->dtype)
        return tensor_fail("mse_loss: y is %s %s and t is %s %s: shapes and types must be equal",
                           tensor_dtype_name(y->dtype), tensor_shape_text(y->shape),
                           tensor_dtype_name(t->dtype), tensor_shape_text(t->shape));
    if (reduction != REDUCE_NONE && reduction != REDUCE_SUM && reduction != REDUCE_MEAN)
        return tensor_fail("mse_loss: %d is not a reduction", (int)reduction);
    Tensor *loss = ag_square(ag_sub(y, t));
    if (reduction == REDUCE_SUM) loss = ag_sum(loss);
    if (reduction == REDUCE_MEAN) loss = ag_mean(loss);
    if (loss && loss->grad_fn) loss->grad_fn = "MseLossBackward0";
    return loss;
}
