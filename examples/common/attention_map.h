/* attention_map.h - pictures of attention weights: on a sheet with the loss curve (SVG), and in the
 * terminal.
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

/* A map has a row for each query, the first at the top, and a column for each key. Labels are
 * tokens in UTF-8; the pictures make blanks and line ends visible. */
typedef struct {
    char title[64]; /* "head 1" */
    char note[64];  /* a named number, "importance 0.0163", or "" */
    int queries, keys;
    double weights[MAP_MAX * MAP_MAX]; /* (queries, keys), row-major; NaN where a mask forbids */
    char query[MAP_MAX][MAP_LABEL_SIZE], key[MAP_MAX][MAP_LABEL_SIZE];
} AttentionMap;

/* Sets queries, keys and weights from attention_weights (N, Q, K)[index], floats of any strides. If
 * num_keys is not negative, keys from num_keys on are masked. The caller sets labels, title and
 * note. False and an error on failure, for more than MAP_MAX keys for example. */
bool map_take(AttentionMap *map, const Tensor *attention_weights, int64_t index, int64_t num_keys);

/* Writes a token as a label. A long token is cut between characters and ends with a point:
 * "attent."
 */
void map_label(char label[MAP_LABEL_SIZE], const char *token);

/* Prints each map as a block of characters, as many side by side as fit in 80 columns. All maps
 * share one scale, from 0 to the largest weight. A terminal with colours shows colours, else the
 * text is ASCII: " .:-=+*#%@" and '/' for masked; in labels '_' for a blank, '$' for a line end,
 * '?' for a character that is not ASCII. */
void maps_print(FILE *file, const AttentionMap *maps, int num_maps);

typedef struct {
    const char *title;
    Caption caption;
    const double *losses; /* of each step */
    int64_t num_losses;   /* 0: no curve is drawn */
    const AttentionMap *maps;
    int num_maps;
} Sheet;

/* For tensor_write_file; context is a Sheet. The loss curve is at the top: a line through at most
 * 200 means of consecutive losses, on a logarithmic scale if the smallest mean is positive and
 * below a tenth of the largest. Below are the maps with labels and hatched masked cells, in one
 * scale of colour from 0 to the largest weight. With more than four maps the sheet is as wide as a
 * screen, so that a class sees the whole sheet. */
void sheet_write_svg(FILE *file, const void *context);

#endif
