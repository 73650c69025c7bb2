/* valley.h - finds a start for gradient descent on a function of one number. */
#ifndef TAPEHEAD_EXAMPLES_VALLEY_H
#define TAPEHEAD_EXAMPLES_VALLEY_H

enum { VALLEY_PLACES = 256 };

typedef double (*ValleyFunction)(void *context, double u);

typedef struct {
    double u;                 /* a local minimum on the grid: descent from u leads to the floor */
    double floor;             /* the value of the minimum; NaN if f returned NaN anywhere */
    double curvature;         /* the second derivative: at u on the grid, or at the minimum if
                               * larger; 0 if flat */
    double largest_curvature; /* the largest absolute second derivative on the grid */
} Valley;

/* Evaluates f at n points, evenly spaced from low to high, 3 <= n <= VALLEY_PLACES. Each local
 * minimum of this grid lies in a valley. Returns the deepest valley; of equally deep valleys, the
 * one with the smallest u. If f(low) is not above the floor of this valley, the result is u = low
 * with curvature 0. If f(high) is below the floor and below f(low), u is the beginning of the flat
 * part that ends at high, also with curvature 0. */
Valley valley_deepest(ValleyFunction f, void *context, double low, double high, int n);

/* Returns the smallest curvature that does not count as 0 where the function has this value. */
double valley_flat(double value);

#endif
