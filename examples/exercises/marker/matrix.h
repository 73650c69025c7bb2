/* matrix.h - matrices as small as the inputs of an exercise, by value: a rule about the stages of a
 * backward (stages.h) then reads as it is written on paper. */
#ifndef TAPEHEAD_EXERCISES_MATRIX_H
#define TAPEHEAD_EXERCISES_MATRIX_H

#include "exercise.h"

enum { MOST_SIDE = 16 };

typedef struct {
    int rows, columns;
    double x[MOST_SIDE][MOST_SIDE];
} Matrix;

Matrix matrix_zeros(int rows, int columns);
/* An array of a call; a vector is one row. */
Matrix matrix_of(const Exercise *e, const Call *call, int array);

Matrix matrix_times(const Matrix *a, const Matrix *b);
Matrix matrix_transposed(const Matrix *a);
Matrix matrix_scaled(const Matrix *a, double factor);
/* The x with x b = a, or where there is none, the one that comes nearest: a b' (b b')^-1. The rows
 * of b are independent; NaN everywhere if they almost are not. */
Matrix matrix_over(const Matrix *a, const Matrix *b);
/* Some columns; and the reverse, writes them back. */
Matrix matrix_columns(const Matrix *a, int from, int n);
void matrix_set_columns(Matrix *a, int from, const Matrix *columns);
/* Some rows. */
Matrix matrix_rows(const Matrix *a, int from, int n);

/* Of each row: its softmax; and y (dy - sum of y dy), the gradient of what the softmax gets. */
Matrix matrix_softmax(const Matrix *a);
Matrix matrix_softmax_dx(const Matrix *y, const Matrix *dy);

double matrix_row_sum(const Matrix *a, int row);
bool matrix_is_finite(const Matrix *a);
/* Is every element within this part of 1 + the largest of b? Never, if one is NaN. */
bool matrix_same(const Matrix *a, const Matrix *b, double part);
/* c, where a = c b within this part; NaN if there is none, or b is 0. */
double matrix_factor(const Matrix *a, const Matrix *b, double part);

#endif
