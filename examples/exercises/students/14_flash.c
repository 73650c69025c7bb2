/* 14 flash: attention, exercise 11, without a Q x K array.
 *
 *     y = softmax(q k' / sqrt(D)) v
 *
 * Forward below keeps one weight at a time: of each query it needs the largest score and the sum of
 * the exponentials. Backward may use 8 (Q + K + D) numbers of memory of its own, in all its arrays,
 * and the program measures that at large sizes. (It lets 2048 numbers more pass, for the stack and
 * the C library; memory that is not freed counts.) So p and ds can be there a row at a time, or a
 * number at a time, but not as a whole. FlashAttention (Dao 2022) computes backward like this,
 * since it is memory that limits long sequences.
 *
 * The frame below keeps four rows and shows them to the marker, which says which one is the first
 * wrong. If you keep a number at a time, show it where it is complete: SHOW("p", p, i, j); dq, dk and dv arrive filled
 * with zeros.
 *
 * The numbers to check are those of exercise 11. */
#include "exercises.h"

static double score(int D, const double q[D], const double k[D]) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += q[d] * k[d] / sqrt(D);
    return sum;
}

void flash(int Q, int K, int D, double y[Q][D], const double q[Q][D], const double k[K][D],
           const double v[K][D]) {
    for (int i = 0; i < Q; i++) {
        double max = -HUGE_VAL, sum = 0;
        for (int j = 0; j < K; j++) max = fmax(max, score(D, q[i], k[j]));
        for (int d = 0; d < D; d++) y[i][d] = 0;
        for (int j = 0; j < K; j++) {
            const double weight = exp(score(D, q[i], k[j]) - max); /* not yet divided by sum */
            for (int d = 0; d < D; d++) y[i][d] += weight * v[j][d];
            sum += weight;
        }
        for (int d = 0; d < D; d++) y[i][d] /= sum;
    }
}

void flash_backward(int Q, int K, int D, double dq[Q][D], double dk[K][D], double dv[K][D],
                    const double q[Q][D], const double k[K][D], const double v[K][D],
                    const double dy[Q][D]) {
    for (int i = 0; i < Q; i++) {
        double s[K], p[K], dp[K], ds[K];

        /* s and p of query i: your code */
        SHOW_ROW(s, i, K);
        SHOW_ROW(p, i, K);

        /* dp */
        SHOW_ROW(dp, i, K);

        /* ds */
        SHOW_ROW(ds, i, K);

        /* dq[i], and the terms of query i in dk and dv */
    }
}
