/* 10 additive: the scores of additive attention, one for each query i and key j.
 *
 *     s[i][j] = sum over h of w[h] tanh(q[i][h] + k[j][h])
 *
 * The derivative of tanh(u) by u is 1 - tanh(u)^2. q[i] is used with every key, k[j] with every
 * query, and w everywhere. The gradient of s is called ds. dq, dk and dw arrive filled with zeros.
 *
 * A number to check: Q = K = H = 1, q = {{0.3}}, k = {{0.2}}, w = {2}, ds = {{1}}. Then
 * tanh(0.5) = 0.462117, and dq = dk = {{1.572895}}, dw = {0.462117}. */
#include "exercises.h"

void additive(int Q, int K, int H, double s[Q][K], const double q[Q][H], const double k[K][H],
              const double w[H]) {
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++) {
            s[i][j] = 0;
            for (int h = 0; h < H; h++) s[i][j] += w[h] * tanh(q[i][h] + k[j][h]);
        }
}

void additive_backward(int Q, int K, int H, double dq[Q][H], double dk[K][H], double dw[H],
                       const double q[Q][H], const double k[K][H], const double w[H],
                       const double ds[Q][K]) {
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) {
                double t = 0, du = 0;

                /* t: the tanh of u = q[i][h] + k[j][h]: your code */
                SHOW("t", t, i, j, h);

                /* du: how L changes with u */
                SHOW("du", du, i, j, h);

                /* dq, dk, dw */
            }
}
