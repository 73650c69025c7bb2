/* picture.h - a step of the page as SVG: the backward of a lesson's softmax, with the picture of
 * the tape above it. */
#ifndef TAPEHEAD_EXAMPLES_PICTURE_H
#define TAPEHEAD_EXAMPLES_PICTURE_H

#include "arrange.h"
#include "formula.h"

/* What is drawn. The lesson must stay until the picture is written. */
typedef struct {
    Plan plan;
    Arrangement graph;
    Formula formula;
    const Step *step;
    double width;
    int64_t chosen; /* the element of dx that is worked out: the one that the lesson looks at */
    int64_t panel;  /* that is shown, of a softmax with several heads */
} Picture;

/* Chooses the step and the element, from a lesson whose tape check_tape accepts. False and an error
 * if the lesson has no softmax, one that is too large, one whose backward differs from its check,
 * or one whose gradients are all 0. The caller calls picture_free also then. */
bool picture_choose(Picture *picture, const Json *lesson);
void picture_free(Picture *picture);

/* For output_write; context is the Picture. */
void picture_write(FILE *file, const void *context);

#endif
