/* 9 cross entropy: how bad a prediction is. x has a number for each of n classes; target is the
 * right class.
 *
 *     loss = -log softmax(x)[target] = log(sum over j of exp(x[j])) - x[target]
 *
 * A target below 0 is ignored: its loss is 0, whatever x is. The loss is one number, so its
 * gradient is one number, too: dloss.
 *
 * A number to check: x = {0, log 3}, which has the softmax {0.25, 0.75}, target = 0 and dloss = 2
 * give dx = {-1.5, 1.5}. */
#include "exercises.h"

double cross_entropy(int n, int target, const double x[n]) {
    double max = x[0], sum = 0;
    if (target < 0) return 0;
    for (int j = 1; j < n; j++) max = fmax(max, x[j]);
    for (int j = 0; j < n; j++) sum += exp(x[j] - max);
    return log(sum) + max - x[target];
}

void cross_entropy_backward(int n, int target, double dloss, double dx[n], const double x[n]) {
    /* your code */
}
