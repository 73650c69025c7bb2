/* schedule.c - factors of the learning rate. Each is a function of the step and has no state, so
 * factors can be multiplied, and a checkpoint needs only the number of the step. */
#include "../module.h"

#include <math.h>

static bool check_steps(const char *who, int64_t step, const char *what, int64_t steps, int least) {
    if (step >= 0 && steps >= least) return true;
    return tensor_fail("%s: step is %lld and %s %lld: step must be at least 0 and %s at least %d",
                       who, (long long)step, what, (long long)steps, what, least);
}

double nn_step_decay(int64_t step, int64_t step_size, double gamma) {
    const char *who = "step_decay";
    if (!check_steps(who, step, "step_size", step_size, 1) ||
        !nn_check_not_negative(who, "gamma", gamma))
        return (double)NAN;
    const int64_t decays = step / step_size;
    return pow(gamma, (double)decays);
}

double nn_cosine_decay(int64_t step, int64_t total_steps, double min_factor) {
    const char *who = "cosine_decay";
    if (!check_steps(who, step, "total_steps", total_steps, 1) ||
        !nn_check_not_negative(who, "min_factor", min_factor))
        return (double)NAN;
    const double angle = M_PI * (double)step / (double)total_steps;
    return min_factor + (1 - min_factor) * (1 + cos(angle)) / 2;
}

double nn_warmup(int64_t step, int64_t warmup_steps) {
    if (!check_steps("warmup", step, "warmup_steps", warmup_steps, 0)) return (double)NAN;
    return step < warmup_steps ? (double)(step + 1) / (double)warmup_steps : 1;
}
