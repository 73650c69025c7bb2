/* 12 self-attention: n tokens attend to each other, in several heads.
 *
 *     q = x wq'    k = x wk'    v = x wv'        the projections, n x E, where E = heads d
 *     s = q k' / sqrt(d)    p = softmax of each row of s    o = p v        of each head
 *     y = o wo'
 *
 * Head h has the columns h d to h d + d - 1 of q, k, v and o. x is used in three products, so dx
 * has three terms. The rest is exercises 7 and 11: a projection is a linear layer without b, and a
 * head is attention. The tables below, and the lines that show them to the marker, are a frame that
 * you may change: it says which table is the first wrong one.
 *
 * The gradients arrive filled with zeros. An array of your own, double q[n][E], is not zero at the
 * start, and = {0} does not compile where a size is a variable: use memset or a loop.
 *
 * A number to check: n = 1. Then every weight is 1, so o = v, and dwq = dwk = 0. With heads = d =
 * 1, x = {{2}}, wv = {{3}}, wo = {{5}} and dy = {{1}}: dx = {{15}}, dwv = {{10}}, dwo = {{6}}. */
#include "exercises.h"

static void project(int n, int E, double y[n][E], const double x[n][E], const double w[E][E]) {
    for (int i = 0; i < n; i++)
        for (int o = 0; o < E; o++) {
            y[i][o] = 0;
            for (int c = 0; c < E; c++) y[i][o] += x[i][c] * w[o][c];
        }
}

/* p[j] = the weight of key j for query i of the head whose first column is c. */
static void weights(int n, int E, int d, int c, int i, double p[n], double q[n][E],
                    double k[n][E]) {
    double max = -HUGE_VAL, sum = 0;
    for (int j = 0; j < n; j++) {
        p[j] = 0;
        for (int e = c; e < c + d; e++) p[j] += q[i][e] * k[j][e] / sqrt(d);
        max = fmax(max, p[j]);
    }
    for (int j = 0; j < n; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
    }
    for (int j = 0; j < n; j++) p[j] /= sum;
}

void self_attention(int n, int heads, int d, double y[n][heads * d], const double x[n][heads * d],
                    const double wq[heads * d][heads * d], const double wk[heads * d][heads * d],
                    const double wv[heads * d][heads * d], const double wo[heads * d][heads * d]) {
    const int E = heads * d;
    double q[n][E], k[n][E], v[n][E], o[n][E], p[n];
    project(n, E, q, x, wq);
    project(n, E, k, x, wk);
    project(n, E, v, x, wv);
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < n; i++) {
            weights(n, E, d, h * d, i, p, q, k);
            for (int e = h * d; e < h * d + d; e++) {
                o[i][e] = 0;
                for (int j = 0; j < n; j++) o[i][e] += p[j] * v[j][e];
            }
        }
    project(n, E, y, o, wo);
}

void self_attention_backward(int n, int heads, int d, double dx[n][heads * d],
                             double dwq[heads * d][heads * d], double dwk[heads * d][heads * d],
                             double dwv[heads * d][heads * d], double dwo[heads * d][heads * d],
                             const double x[n][heads * d], const double wq[heads * d][heads * d],
                             const double wk[heads * d][heads * d],
                             const double wv[heads * d][heads * d],
                             const double wo[heads * d][heads * d], const double dy[n][heads * d]) {
    const int E = heads * d;
    double q[n][E], k[n][E], v[n][E], o[n][E], dO[n][E], dQ[n][E], dK[n][E], dV[n][E];

    /* q, k, v, as in forward, and dO, the gradient of o: your code */
    SHOW_TABLE(q, n, E);
    SHOW_TABLE(k, n, E);
    SHOW_TABLE(v, n, E);
    SHOW_TABLE(dO, n, E);

    for (int h = 0; h < heads; h++) {
        double p[n][n], dp[n][n], ds[n][n];

        /* p of this head, as in forward, and its columns of o */

        /* dp, ds, and its columns of dQ, dK and dV */

        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                SHOW("p", p[i][j], h, i, j);
                SHOW("dp", dp[i][j], h, i, j);
                SHOW("ds", ds[i][j], h, i, j);
            }
    }
    SHOW_TABLE(o, n, E);
    SHOW_TABLE(dQ, n, E);
    SHOW_TABLE(dK, n, E);
    SHOW_TABLE(dV, n, E);

    /* dwq, dwk, dwv, dwo, and the three terms of dx */
}
