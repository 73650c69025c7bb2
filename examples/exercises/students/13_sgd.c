/* 13 sgd: one step of stochastic gradient descent with momentum, as torch.optim.SGD takes it.
 *
 *     velocity[i] = momentum velocity[i] + g[i]
 *     theta[i]    = theta[i] - lr velocity[i]
 *
 * This is not a backward: g is the gradient that backward has computed, and the step uses it. theta
 * and velocity are read and written; velocity is 0 before the first step. lr may change from step
 * to step.
 *
 * A number to check: theta = 10, lr = 0.1, momentum = 0.5, and g = 1 in two steps give theta = 9.9
 * and then 9.75, velocity = 1 and then 1.5. */
#include "exercises.h"

void sgd_step(int n, double lr, double momentum, double theta[n], double velocity[n],
              const double g[n]) {
    /* your code */
}
