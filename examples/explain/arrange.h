/* arrange.h - where a picture of the tape places its tables, as page/layout.js does: a result
 * stands right of its inputs. */
#ifndef TAPEHEAD_EXAMPLES_ARRANGE_H
#define TAPEHEAD_EXAMPLES_ARRANGE_H

#include "plan.h"

/* Units above and below the tables of a node: its name, and what is written under it. */
enum { ARRANGE_NAME = 15, ARRANGE_NOTE = 13 };

typedef struct {
    int tensor; /* -1: a bend of an arrow that goes over a layer */
    int layer, place;
    double x, y, w, h;         /* its middle and its size, with the words */
    double left, right;        /* of its layer */
    double cell, map_w, map_h; /* a number; the table of its values */
    double box_w, box_h; /* the table of its values and, if it has a gradient, that of these */
    bool under;          /* the gradient is under the values, not beside them */
} Placed;

enum { MOST_BENDS = 64 };

/* From a tensor to the result of a unit. */
typedef struct {
    int unit, tensor;
    int from, to; /* nodes */
    int num_bends, bends[MOST_BENDS];
} Arrow;

typedef struct {
    Piece *memory;
    int num_nodes, num_arrows, num_layers;
    Placed *nodes;
    Arrow *arrows;
    double width, height;
} Arrangement;

/* room: the width that the picture may take; it can be wider. False and an error without memory, or
 * if an arrow has too many bends; the caller calls arrange_free also then. */
bool arrange(Arrangement *graph, const Plan *plan, double room);
void arrange_free(Arrangement *graph);

enum { MOST_POINTS = 2 + 2 * MOST_BENDS };
typedef struct {
    double x, y;
} Point;

/* The points of an arrow from the right side of its table to the left side of the result. Returns
 * how many there are. */
int arrange_points(const Arrangement *graph, const Arrow *arrow, Point points[MOST_POINTS]);

#endif
