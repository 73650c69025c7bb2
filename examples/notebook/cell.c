/* cell.c - the services of a notebook: see cell.h. */
#include "cell.h"

#include "../../autograd/autograd.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static Tensor *names[64];
static int num_names;

void cell_printf(const char *format, ...) {
    va_list arguments;
    if (tensor_error()) return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

void cell(int number) { cell_printf("%sIn [%d]:\n", number == 1 ? "" : "\n", number); }

void cell_print(const Tensor *x) {
    if (tensor_error() || tensor_print(x, stdout) || !ferror(stdout)) return;
    tensor_clear_error(); /* the old error does not name standard output */
    tensor_fail("cannot write to standard output");
}

void cell_print_shape(const Tensor *x) {
    if (tensor_error()) return;
    printf("torch.Size([");
    for (int d = 0; d < x->shape.ndim; d++) printf("%s%" PRId64, d ? ", " : "", x->shape.dim[d]);
    printf("])\n");
}

void cell_show(const Tensor *x) {
    cell_print(x);
    cell_print_shape(x);
}

Tensor *cell_own(Tensor *x) {
    if (num_names < (int)(sizeof names / sizeof *names)) {
        names[num_names++] = x;
        return x;
    }
    tensor_release(x);
    return tensor_fail("a notebook of more than %d names", num_names);
}

void cell_stop_kernel(void) {
    while (num_names > 0) tensor_release(names[--num_names]);
}

AttentionMap cell_maps[CELL_MAPS];
int cell_num_maps;

void cell_plot(int number, Tensor *attention_weights) {
    AttentionMap *map = &cell_maps[cell_num_maps];
    attention_weights = ag_unsqueeze(ag_detach(attention_weights), 0);
    if (cell_num_maps == CELL_MAPS) tensor_fail("a notebook of more than %d plots", CELL_MAPS);
    if (tensor_error() || !map_take(map, attention_weights, 0, -1)) return;
    snprintf(map->title, sizeof map->title, "In [%d]", number);
    cell_num_maps++;
}
