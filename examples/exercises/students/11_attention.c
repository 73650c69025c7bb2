/* 11 attention: each query i takes a mean of the values v[j], with weights that its scores give.
 *
 *     s = q k' / sqrt(D)       the scores, Q x K
 *     p = softmax of each row of s
 *     y = p v
 *
 * Three lines forward, three steps back. Backward computes s and p again; dp and ds are arrays of
 * your own, too, Q x K each. Write one after the other, and print each for the number to check:
 *
 *     s, p         as in forward
 *     dv, dp       from dy: the product p v (exercise 3)
 *     ds           from dp: a softmax for each row (exercises 4 and 10b)
 *     dq, dk       from ds: the product q k', and the scale (exercise 3)
 *
 * An array of your own, double p[Q][K], is not zero at the start, and = {0} does not compile where
 * a size is a variable: use memset or a loop.
 *
 * A number to check: Q = 1, K = 2, D = 1, q = {{1}}, k = {{0}, {log 3}}, v = {{0}, {8}}, dy =
 * {{1}}. Then p = {{0.25, 0.75}}, dp = {{0, 8}}, ds = {{-1.5, 1.5}}, and dv = {{0.25}, {0.75}}, dq
 * = {{1.647918}}, dk = {{-1.5}, {1.5}}.
 *
 * After it: the tape, training and a cache of your own, with heads, in scratch/attention.c. */
#include "11_attention.h"

void attention(int Q, int K, int D, double y[Q][D], const double q[Q][D], const double k[K][D],
               const double v[K][D]) {
    for (int i = 0; i < Q; i++) {
        double p[K], max = -HUGE_VAL, sum = 0;
        for (int j = 0; j < K; j++) {
            p[j] = 0;
            for (int d = 0; d < D; d++) p[j] += q[i][d] * k[j][d] / sqrt(D);
            max = fmax(max, p[j]);
        }
        for (int j = 0; j < K; j++) {
            p[j] = exp(p[j] - max);
            sum += p[j];
        }
        for (int d = 0; d < D; d++) {
            y[i][d] = 0;
            for (int j = 0; j < K; j++) y[i][d] += p[j] / sum * v[j][d];
        }
    }
}

void attention_backward(int Q, int K, int D, double dq[Q][D], double dk[K][D], double dv[K][D],
                        const double q[Q][D], const double k[K][D], const double v[K][D],
                        const double dy[Q][D]) {
    /* your code */
}
