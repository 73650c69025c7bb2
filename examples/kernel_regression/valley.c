/* valley.c - finds a start for gradient descent on a function of one number: see valley.h. */
#include "valley.h"

#include <math.h>

double valley_flat(double value) { return 1e-6 * fmax(value, 1e-12); }

/* Halves the distance of three points around a minimum, five times, and fits a parabola to the last
 * three. f3: the values at u - step, u, u + step. */
static Valley refine(ValleyFunction f, void *context, const double *f3, double u, double step) {
    double left = f3[0], here = f3[1], right = f3[2], at = u;
    for (int i = 0; i < 5; i++) {
        step /= 2;
        double a = f(context, at - step), b = f(context, at + step);
        if (a < here && a <= b) {
            right = here;
            here = a;
            at -= step;
        } else if (b < here) {
            left = here;
            here = b;
            at += step;
        } else {
            left = a;
            right = b;
        }
    }
    double slope = (right - left) / (2 * step);
    double curvature = (left - 2 * here + right) / (step * step);
    return (Valley){u, curvature > 0 ? here - slope * slope / (2 * curvature) : here, curvature, 0};
}

Valley valley_deepest(ValleyFunction f, void *context, double low, double high, int n) {
    double y[VALLEY_PLACES] = {0}, step = (high - low) / (n - 1), largest_curvature = 0;
    for (int i = 0; i < n; i++) {
        y[i] = f(context, low + i * step);
        if (isnan(y[i])) return (Valley){.floor = (double)NAN};
    }
    Valley best = {low, y[0], 0, 0};
    for (int i = 1; i < n - 1; i++) {
        double curvature = (y[i - 1] - 2 * y[i] + y[i + 1]) / (step * step);
        largest_curvature = fmax(largest_curvature, fabs(curvature));
        if (y[i] > y[i - 1] || y[i] > y[i + 1] || curvature < valley_flat(y[i])) continue;
        Valley here = refine(f, context, &y[i - 1], low + i * step, step);
        here.curvature = fmax(here.curvature, curvature); /* of the grid if that is larger */
        if (here.floor < best.floor * (1 - 1e-7)) best = here;
    }
    if (y[n - 1] < best.floor * (1 - 1e-7)) {
        int i = n - 1;
        while (i > 0 && fabs(y[i - 1] - y[n - 1]) <= 1e-12 * y[n - 1]) i--;
        best = (Valley){low + i * step, y[n - 1], 0, 0};
    }
    best.largest_curvature = largest_curvature;
    return best;
}
