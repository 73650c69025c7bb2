/* matrix.c - small matrices: see matrix.h. */
#include "matrix.h"

#include "numbers.h"

#include <math.h>
#include <string.h>

Matrix matrix_zeros(int rows, int columns) {
    Matrix a;
    memset(&a, 0, sizeof a);
    a.rows = rows;
    a.columns = columns;
    return a;
}

Matrix matrix_of(const Exercise *e, const Call *call, int array) {
    const int columns = (int)call_columns(e, call, array);
    Matrix a = matrix_zeros((int)call_length(e, call, array) / columns, columns);
    const double *x = call->array[array];
    for (int i = 0; i < a.rows; i++) memcpy(a.x[i], x + i * columns, (size_t)columns * sizeof *x);
    return a;
}

Matrix matrix_times(const Matrix *a, const Matrix *b) {
    Matrix y = matrix_zeros(a->rows, b->columns);
    for (int i = 0; i < y.rows; i++)
        for (int j = 0; j < y.columns; j++)
            for (int k = 0; k < a->columns; k++) y.x[i][j] += a->x[i][k] * b->x[k][j];
    return y;
}

Matrix matrix_transposed(const Matrix *a) {
    Matrix y = matrix_zeros(a->columns, a->rows);
    for (int i = 0; i < y.rows; i++)
        for (int j = 0; j < y.columns; j++) y.x[i][j] = a->x[j][i];
    return y;
}

Matrix matrix_scaled(const Matrix *a, double factor) {
    Matrix y = *a;
    for (int i = 0; i < y.rows; i++)
        for (int j = 0; j < y.columns; j++) y.x[i][j] *= factor;
    return y;
}

/* ---- x b = a -----------------------------------------------------------------------------------
 */

/* Makes column c of g zero below row c, with the largest pivot, and the same steps on y. False if g
 * is almost singular. */
static bool eliminate(long double g[MOST_SIDE][MOST_SIDE], long double y[MOST_SIDE][MOST_SIDE],
                      int n, int columns, int c) {
    int pivot = c;
    long double swap[MOST_SIDE];
    for (int i = c + 1; i < n; i++)
        if (fabsl(g[i][c]) > fabsl(g[pivot][c])) pivot = i;
    if (!(fabsl(g[pivot][c]) > 1e-10L * fabsl(g[0][0]))) return false;
    memcpy(swap, g[c], sizeof swap);
    memcpy(g[c], g[pivot], sizeof swap);
    memcpy(g[pivot], swap, sizeof swap);
    memcpy(swap, y[c], sizeof swap);
    memcpy(y[c], y[pivot], sizeof swap);
    memcpy(y[pivot], swap, sizeof swap);
    for (int i = c + 1; i < n; i++) {
        const long double factor = g[i][c] / g[c][c];
        for (int j = c; j < n; j++) g[i][j] -= factor * g[c][j];
        for (int j = 0; j < columns; j++) y[i][j] -= factor * y[c][j];
    }
    return true;
}

/* The transpose of x: (b b') x' = b a'. */
Matrix matrix_over(const Matrix *a, const Matrix *b) {
    const int n = b->rows, columns = a->rows;
    long double g[MOST_SIDE][MOST_SIDE] = {{0}}, y[MOST_SIDE][MOST_SIDE] = {{0}};
    Matrix x = matrix_zeros(a->rows, n);
    bool ok = true;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < b->columns; k++) {
            const long double b_ik = (long double)b->x[i][k];
            for (int j = 0; j < n; j++) g[i][j] += b_ik * (long double)b->x[j][k];
            for (int j = 0; j < columns; j++) y[i][j] += b_ik * (long double)a->x[j][k];
        }
    for (int c = 0; c < n && ok; c++) ok = eliminate(g, y, n, columns, c);
    for (int i = n - 1; i >= 0; i--)
        for (int j = 0; j < columns; j++) {
            for (int k = i + 1; k < n; k++) y[i][j] -= g[i][k] * y[k][j];
            y[i][j] /= g[i][i];
            x.x[j][i] = ok ? (double)y[i][j] : (double)NAN;
        }
    return x;
}

/* ---- parts --------------------------------------------------------------------------------------
 */

Matrix matrix_columns(const Matrix *a, int from, int n) {
    Matrix y = matrix_zeros(a->rows, n);
    for (int i = 0; i < y.rows; i++)
        for (int j = 0; j < n; j++) y.x[i][j] = a->x[i][from + j];
    return y;
}

void matrix_set_columns(Matrix *a, int from, const Matrix *columns) {
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < columns->columns; j++) a->x[i][from + j] = columns->x[i][j];
}

Matrix matrix_rows(const Matrix *a, int from, int n) {
    Matrix y = matrix_zeros(n, a->columns);
    for (int i = 0; i < n; i++) memcpy(y.x[i], a->x[from + i], sizeof y.x[i]);
    return y;
}

/* ---- softmax ------------------------------------------------------------------------------------
 */

Matrix matrix_softmax(const Matrix *a) {
    Matrix y = *a;
    for (int i = 0; i < y.rows; i++) softmax_of(y.columns, y.x[i], 1, NULL);
    return y;
}

Matrix matrix_softmax_dx(const Matrix *y, const Matrix *dy) {
    Matrix dx = *y;
    for (int i = 0; i < dx.rows; i++) {
        double sum = 0;
        for (int j = 0; j < dx.columns; j++) sum += y->x[i][j] * dy->x[i][j];
        for (int j = 0; j < dx.columns; j++) dx.x[i][j] = y->x[i][j] * (dy->x[i][j] - sum);
    }
    return dx;
}

/* ---- comparing ----------------------------------------------------------------------------------
 */

double matrix_row_sum(const Matrix *a, int row) {
    double sum = 0;
    for (int j = 0; j < a->columns; j++) sum += a->x[row][j];
    return sum;
}

static double largest(const Matrix *a) {
    double most = 0;
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++) most = fmax(most, fabs(a->x[i][j]));
    return most;
}

bool matrix_is_finite(const Matrix *a) {
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++)
            if (!isfinite(a->x[i][j])) return false;
    return true;
}

bool matrix_same(const Matrix *a, const Matrix *b, double part) {
    const double most = part * (1 + largest(b));
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++)
            if (!(fabs(a->x[i][j] - b->x[i][j]) <= most)) return false;
    return true;
}

double matrix_factor(const Matrix *a, const Matrix *b, double part) {
    double products = 0, squares = 0;
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->columns; j++) {
            products += a->x[i][j] * b->x[i][j];
            squares += b->x[i][j] * b->x[i][j];
        }
    const double factor = products / squares;
    const Matrix multiple = matrix_scaled(b, factor);
    const bool fits = squares > 1e-12 && fabs(factor) > 1e-6 && matrix_same(a, &multiple, part);
    return fits ? factor : (double)NAN;
}
