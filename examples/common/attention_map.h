/* attention_map.h - attention weights to look at: on a sheet with the loss curve, as SVG, and in
 * the terminal.
 *
 *     AttentionMap map = {.title = "head 1"};
 *     map_take(&map, attention->attention_weights, 0, -1);
 *     for (int i = 0; i < map.keys; i++) map_label(map.key[i], token[i]);
 */
#ifndef TAPEHEAD_EXAMPLES_ATTENTION_MAP_H
#define TAPEHEAD_EXAMPLES_ATTENTION_MAP_H

#include "../../tensor/tensor.h"

#include "svg.h"

enum { MAP_MAX = 64, MAP_LABEL_SIZE = 8 };

/* A row per query, the first at the top, a column per key. Labels are the tokens as they are, in
 * UTF-8: pictures make blanks and ends of lines visible. */
typedef struct {
    char title[64]; /* "head 1" */
    char note[64];  /* a number and what it is, "importance 0.0163", or "" */
    int queries, keys;
    double weights[MAP_MAX * MAP_MAX]; /* (queries, keys), row-major; NaN where a mask forbids */
    char query[MAP_MAX][MAP_LABEL_SIZE], key[MAP_MAX][MAP_LABEL_SIZE];
} AttentionMap;

/* Takes queries, keys and weights from attention_weights (N, Q, K)[index], floats of any strides;
 * keys from num_keys on, if it is not negative, are masked. Labels, title and note are yours to
 * write.
 * False with an error pending, say for more than MAP_MAX keys. */
bool map_take(AttentionMap *map, const Tensor *attention_weights, int64_t index, int64_t num_keys);

/* A token as a label: whole characters, and a point where they are not all: "attent." */
void map_label(char label[MAP_LABEL_SIZE], const char *token);

/* A block of characters per map, as many side by side as 80 columns hold, in one scale from 0 to
 * the largest weight: in colours on a terminal that has them, else in plain ASCII (" .:-=+*#%@",
 * '/' where masked; of labels, '_' for a blank, '$' for the end of a line, '?' for what is not
 * ASCII). */
void maps_print(FILE *file, const AttentionMap *maps, int num_maps);

typedef struct {
    const char *title;
    Caption caption;
    const double *losses; /* of each step */
    int64_t num_losses;   /* 0: no curve is drawn */
    const AttentionMap *maps;
    int num_maps;
} Sheet;

/* For tensor_write_file: context is a Sheet. The loss curve on top (on a logarithmic scale where
 * all are positive; a line through at most 200 means of consecutive losses), below it the maps, in
 * one scale of colour from 0 to the largest weight, labelled with their tokens, masked cells
 * hatched. With more than four maps the sheet is as wide as a screen, so that a class sees all of
 * it. */
void sheet_write_svg(FILE *file, const void *context);

#endif
