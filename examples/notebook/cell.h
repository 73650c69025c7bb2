/* cell.h - the services of a notebook: it numbers the cells, prints the last value of a cell, and
 * keeps named values until its kernel stops. While an error is pending nothing is printed, so a
 * notebook needs one check, at its end. */
#ifndef TAPEHEAD_EXAMPLES_CELL_H
#define TAPEHEAD_EXAMPLES_CELL_H

#include "../common/attention_map.h"

/* Prints "In [7]:". */
void cell(int number);

__attribute__((format(printf, 1, 2))) void cell_printf(const char *format, ...);
void cell_print(const Tensor *x);
void cell_print_shape(const Tensor *x); /* torch.Size([50, 49]) */
void cell_show(const Tensor *x);        /* both */

/* Takes over the reference, keeps it until the kernel stops, and returns x. */
Tensor *cell_own(Tensor *x);
#define CELL_INTEGERS(shape, ...)                                                                  \
    cell_own(tensor_from_int64s(shape, (const int64_t[]){__VA_ARGS__}))
void cell_stop_kernel(void);

/* Keeps attention_weights (Q, K) of a cell for the picture; a tape must be open. */
void cell_plot(int number, Tensor *attention_weights);

enum { CELL_MAPS = 4 };
extern AttentionMap cell_maps[CELL_MAPS];
extern int cell_num_maps;

#endif
