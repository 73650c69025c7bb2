/* fit.h - a fitted curve and its attention weights: as numbers, as a picture, in a terminal. */
#ifndef TAPEHEAD_EXAMPLES_FIT_H
#define TAPEHEAD_EXAMPLES_FIT_H

#include "sample.h"

enum { FIT_CURVE = 201, FIT_HEAT = 48 };

/* All numbers are in the units of the data. */
typedef struct {
    const Sample *sample;
    double bandwidth;
    double x[FIT_CURVE], y[FIT_CURVE]; /* the curve, from the smallest x to the largest */
    double heat[FIT_HEAT *
                FIT_HEAT]; /* [query][interval of x]: the sum of the weights of the points in it */
} Fit;

/* Returns the predictions (Q) for standardised queries (Q), and sets *weights to the weights (Q,
 * K). Both are loans. */
typedef Tensor *(*FitAttend)(void *model, const Sample *sample, Tensor *queries, Tensor **weights);

bool fit_make(Fit *fit, const Sample *sample, double bandwidth, FitAttend attend, void *model);

/* For tensor_write_file; context is a Fit. */
void fit_write_csv(FILE *file, const void *context);
void fit_write_svg(FILE *file, const void *context);

/* Draws the curve if the file is a terminal. */
void fit_draw(FILE *file, const Fit *fit);

#endif
