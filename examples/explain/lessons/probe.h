/* probe.h - what would a lesson compute if one of its numbers were another? A forward alone.
 *
 *     Probe probe = {0};
 *     probe_read(&probe, "3 -3 3 61 Z");     61 times: element 3 of Z, from 3 less to 3 more
 *     probe_show(&probe, "A");
 *     char *json = probe_as_json(2, LESSON_OPTIONS, &probe);
 *
 * The number can be one of any leaf or result on the tape. What does not depend on it stays; the
 * lines after it are computed once more by the library (tape_forward), with the numbers that they
 * drew. */
#ifndef TAPEHEAD_EXAMPLES_PROBE_H
#define TAPEHEAD_EXAMPLES_PROBE_H

#include "settings.h"

enum { PROBE_POINTS = 201, PROBE_CELLS = 8, PROBE_SHOWN = 8 };

/* What is added to an element, whose index is row-major: from at the first point, to at the last,
 * and between them at equal distances. */
typedef struct {
    int64_t index;
    double from, to;
} ProbeCell;

typedef struct {
    const char *tensor;           /* its name on the tape, or a short one; NULL: nothing is asked */
    ProbeCell cells[PROBE_CELLS]; /* elements that change at once */
    int num_cells, points;
    const char *shown[PROBE_SHOWN]; /* names of the tensors whose numbers are wanted */
    int num_shown;
} Probe;

/* Adds the cell of "3 -3 3 61 Z": index, from, to, points, name. The name stays in the text. False
 * and an error if the text has another form, asks for too many points, or for another tensor or
 * other points than the cells before it. */
bool probe_read(Probe *probe, const char *text);
/* Adds a tensor to those that are shown. The name stays the caller's. */
bool probe_show(Probe *probe, const char *name);

/* The answer, a string that the caller frees; live.h has its form. NULL and an error if the lesson
 * has no such tensor or element. */
char *probe_as_json(int number, LessonOptions options, const Probe *probe);

#endif
