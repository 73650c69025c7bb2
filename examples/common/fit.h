/* fit.h - a fitted curve and the attention behind it: as numbers, as a picture, in a terminal. */
#ifndef TAPEHEAD_EXAMPLES_FIT_H
#define TAPEHEAD_EXAMPLES_FIT_H

#include "sample.h"

enum { FIT_CURVE = 201, FIT_HEAT = 48 };

/* In the units of the data. */
typedef struct {
    const Sample *sample;
    double bandwidth;
    double x[FIT_CURVE], y[FIT_CURVE]; /* the curve, from the smallest x to the largest */
    double heat[FIT_HEAT *
                FIT_HEAT]; /* [query][slice of x]: the weight that goes to the points there */
} Fit;

/* Lends the answers (Q) to standardised queries (Q), and the weights (Q, K) behind them. */
typedef Tensor *(*FitAttend)(void *model, const Sample *sample, Tensor *queries, Tensor **weights);

bool fit_make(Fit *fit, const Sample *sample, double bandwidth, FitAttend attend, void *model);

/* For tensor_write_file: context is a Fit. */
void fit_write_csv(FILE *file, const void *context);
void fit_write_svg(FILE *file, const void *context);

/* If the file is a terminal; otherwise nothing. */
void fit_draw(FILE *file, const Fit *fit);

#endif
