/* prototypes.h - of the exercises whose mistakes are not edits yet. */
#ifndef TAPEHEAD_EXERCISES_PROTOTYPES_H
#define TAPEHEAD_EXERCISES_PROTOTYPES_H

#include <stdbool.h>

void scale_backward(int n, double s, double dx[n], const double dy[n]);
void bias_backward(int rows, int n, double dx[rows][n], double db[n], const double dy[rows][n]);
void product_backward(int n, int k, int m, double da[n][k], double db[k][m], const double a[n][k],
                      const double b[k][m], const double dy[n][m]);
void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]);
void linear_backward(int rows, int in, int out, double dx[rows][in], double dw[out][in],
                     double db[out], const double x[rows][in], const double w[out][in],
                     const double dy[rows][out]);
void mean_variance_backward(int rows, int n, double dx[rows][n], const double x[rows][n],
                            const double dy[rows][2]);
void cross_entropy_backward(int n, int target, double dloss, double dx[n], const double x[n]);
void weighted_mean_backward(int K, int D, double dx[K], double dv[K][D], const double x[K],
                            const double v[K][D], const double dy[D]);
void sgd_step(int n, double lr, double momentum, double theta[n], double velocity[n],
              const double g[n]);

#endif
