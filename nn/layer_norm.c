/* layer_norm.c - gives each vector mean 0 and variance 1, then a learned scale and shift. */
#include "module.h"

static void print_layer_norm(const void *module, FILE *file) {
    const LayerNorm *norm = module;
    fprintf(file, "%s, eps=", tensor_shape_text(norm->weight->shape));
    nn_print_float(norm->eps, file);
    fprintf(file, ", elementwise_affine=True, bias=True");
}

static const ModuleClass layer_norm_class = {"LayerNorm", sizeof(LayerNorm), print_layer_norm, NULL};

LayerNorm *nn_layer_norm_new(Shape normalized_shape) {
    bool fits = normalized_shape.ndim >= 1 && normalized_shape.ndim <= TENSOR_MAX_DIMS;
    for (int d = 0; fits && d < normalized_shape.ndim; d++) fits = normalized_shape.dim[d] >= 0;
    if (!fits)
        return tensor_fail("layer_norm: normalized_shape is %s: it needs 1 to %d sizes, none of "
                           "them negative",
                           tensor_shape_text(normalized_shape), TENSOR_MAX_DIMS);
    LayerNorm *norm = nn_module_new(&layer_norm_class);
    if (!norm) return NULL;
    norm->eps = 1e-5;
    nn_add_parameter(norm, "weight", &norm->weight, tensor_ones(normalized_shape));
    nn_add_parameter(norm, "bias", &norm->bias, tensor_zeros(normalized_shape));
    return nn_module_done(norm);
}

Tensor *nn_layer_norm_forward(LayerNorm *norm, Tensor *x) {
    if (!nn_forward_begins("layer_norm", norm)) return NULL;
    if (!x) tensor_fail("layer_norm: x is NULL");
    return nn_forward_done(norm, ag_layer_norm(x, norm->weight, norm->bias, norm->eps));
}
