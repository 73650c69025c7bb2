/* valley.h - where a function of one number is lowest: look before you walk. */
#ifndef TAPEHEAD_EXAMPLES_VALLEY_H
#define TAPEHEAD_EXAMPLES_VALLEY_H

enum { VALLEY_PLACES = 256 };

typedef double (*ValleyFunction)(void *context, double u);

typedef struct {
    double u;         /* a low point of the grid: from here it is downhill to the floor */
    double floor;     /* the value there; NaN if the function had one anywhere */
    double curvature; /* the second derivative there, the walls' where it is more; 0 on a flat */
    double steepest;  /* the largest second derivative, in absolute value, of the whole grid */
} Valley;

/* Evaluates f at n places, evenly spaced from low to high, 3 <= n <= VALLEY_PLACES. Each low point
 * of this grid lies in a valley: sounds how deep that is, and returns the deepest. A floor only as
 * deep as that of a valley further down does not win. Should f be as low at one of the ends, that
 * end wins, with the curvature 0. */
Valley valley_deepest(ValleyFunction f, void *context, double low, double high, int n);

/* A smaller curvature is none, compared with the value: that of data without noise is tiny. */
double valley_flat(double value);

#endif
