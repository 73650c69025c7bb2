/* sgd.c - the step that the gradients are for: see sgd.h. */
#include "sgd.h"

#include "tell.h"

#include <math.h>
#include <string.h>

/* ---- the numbers that learn ------------------------------------------------------------------ */

int sgd_leaves(Tensor *leaf[MOST_TENSORS]) {
    Tensor *tensor[MOST_TENSORS];
    const int all = data_tensors(tensor);
    int n = 0;
    for (int t = 0; t < all; t++)
        if (!tensor[t]->grad_fn && tensor[t]->grad) leaf[n++] = tensor[t];
    return n;
}

void sgd_step(double rate, bool zeroes) {
    Tensor *leaf[MOST_TENSORS];
    const int n = sgd_leaves(leaf);
    for (int i = 0; i < n; i++) tensor_add_(leaf[i], leaf[i]->grad, -rate);
    for (int i = 0; i < n && zeroes; i++) ag_zero_grad(leaf[i]);
}

/* "each of the 26 numbers of `Q`, `K` and `V`"; "`w`" */
static const char *learning(const Lesson *l, Tensor *const *leaf, int n) {
    enum { MOST_NAMED = 3 };
    long long numbers = 0;
    const char *names = "";
    for (int i = 0; i < n; i++) numbers += tensor_numel(leaf[i]);
    if (n > MOST_NAMED) return text_of("each of the %lld numbers that learn", numbers);
    for (int i = 0; i < n; i++) {
        const char *before = i == n - 1 ? " and " : ", ";
        names = text_of("%s%s`%s`", names, i ? before : "", lesson_short_name(l, leaf[i]->name));
    }
    return numbers > 1 ? text_of("each of the %lld numbers of %s", numbers, names) : names;
}

/* ---- what the losses tell -------------------------------------------------------------------- */

/* A loss that is 0 but for rounding does not grow. */
static bool grew(const Lesson *l, int64_t step) {
    const double before = l->losses[step - 1], after = l->losses[step];
    return !(after <= before * (1 + 1e-9)) && !(after <= 1e-9 * l->losses[0]);
}

static const char too_large[] =
    "the step was too large, since a gradient says how the loss changes near these numbers, not far "
    "from them";

static void say_first(Lesson *l) {
    Tensor *leaf[MOST_TENSORS];
    const int n = sgd_leaves(leaf);
    if (n == 0) return;
    const char *name = leaf[0]->name;
    const int64_t i = largest_grad(name);
    const double rate = l->options.rate;
    const Number after = number_with(lesson_value(name, i) - rate * lesson_grad(name, i), 3);
    say(l, step_sgd(), 0,
        "SGD, gradient descent, subtracts from %s its gradient times %g, the learning rate: minus, since "
        "a gradient points to a larger loss. %s `%s` goes %s. Then the loss is not %s, but %s%s%s.",
        learning(l, leaf, n), rate, tensor_numel(leaf[0]) == 1 ? "So" : "One of",
        lesson_short_name(l, name),
        show_step(value_of(name, i), number(rate), grad_of(name, i), after), show(l->losses[0]),
        show(l->losses[1]), grew(l, 1) ? ": " : "", grew(l, 1) ? too_large : "");
}

/* The first step after which the loss is no number; 0 if it is one after each. */
static int64_t first_broken(const Lesson *l) {
    for (int64_t i = 1; i <= l->options.step; i++)
        if (!isfinite(l->losses[i])) return i;
    return 0;
}

static int64_t times_grown(const Lesson *l) {
    int64_t times = 0;
    for (int64_t i = 1; i <= l->options.step; i++) times += grew(l, i);
    return times;
}

static void say_later(Lesson *l) {
    const int64_t n = l->options.step, broken = first_broken(l), times = times_grown(l);
    const double first = l->losses[0], before = l->losses[n - 1], now = l->losses[n];
    const char *steps = plural(n);
    if (broken)
        say(l, step_sgd(), 0,
            "After %d step%s the numbers are too large to compute with: NaN means not a number. Start "
            "again, with a smaller rate.",
            (int)broken, plural(broken));
    else if (grew(l, n))
        say(l, step_sgd(), 0, "The last step took the loss from %s to %s. It grew: %s.",
            show(before), show(now), too_large);
    else if (times > 0)
        say(l, step_sgd(), 0,
            "After %d step%s the loss is %s; at first it was %s. But %d of them made it larger: %s.",
            (int)n, steps, show(now), show(first), (int)times, too_large);
    else if (now > 0.1 * first)
        say(l, step_sgd(), 0,
            "The loss was %s, and after %d step%s it is %s. Each step needs gradients of its own, of "
            "the numbers that the step before has made.",
            show(first), (int)n, steps, show(now));
    else
        say(l, step_sgd(), 0,
            "The loss was %s, and after %d step%s it is %s. That is training: forward, backward, a "
            "small step, again and again.",
            show(first), (int)n, steps, show(now));
}

void sgd_say(Lesson *l) {
    if (l->options.step == 0) say_first(l);
    else say_later(l);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

void sgd_write(const Lesson *l, FILE *file) {
    const double *rates = l->kind->rates;
    fprintf(file, ",\n\"sgd\":{\"rate\":%g,\"rates\":[%g,%g,%g]", l->options.rate, rates[0],
            rates[1], rates[2]);
    lesson_write_losses(file, "losses", l->losses, l->options.step + 1);
    if (l->options.step == 0) lesson_write_losses(file, "next", l->losses + 1, 1);
    putc('}', file);
}
