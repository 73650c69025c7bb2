/* picture.h - a picture of the page, as SVG: one step of a lesson, the backward of its softmax. */
#ifndef TAPEHEAD_EXAMPLES_PICTURE_H
#define TAPEHEAD_EXAMPLES_PICTURE_H

#include "json.h"

enum { PICTURE_NAME = 15 };

/* What is drawn. The lesson must stay until the picture is written. */
typedef struct {
    const Json *lesson;
    int64_t line;                    /* of the tape: its first softmax */
    const Json *dy, *y, *dx;         /* lists of numbers */
    const Json *jacobian;            /* of y by x */
    int64_t matrices, rows, columns; /* of y, dy and dx */
    int64_t chosen;                  /* the element of dx that is the farthest from 0 */
    char weights[PICTURE_NAME], scores[PICTURE_NAME]; /* names of y and x; a long one is cut */
} Picture;

/* Chooses the step and the element, from a lesson whose tape check_tape accepts. False and an error
 * if the lesson has no softmax, one that is too large, one whose backward differs from its check,
 * or one whose gradients are all 0. */
bool picture_choose(Picture *picture, const Json *lesson);

/* For output_write; context is the Picture. */
void picture_write(FILE *file, const void *context);

#endif
