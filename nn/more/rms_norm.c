/* rms_norm.c - each row divided by its root mean square: layer norm without the mean, and without
 * the bias. Llama and most language models since use it. */
#include "../module.h"

static void print_rms_norm(const void *module, FILE *file) {
    const RMSNorm *norm = module;
    fprintf(file, "%s, eps=", tensor_shape_text(norm->weight->shape));
    if (norm->eps == AG_EPS_OF_TYPE) fprintf(file, "None");
    else nn_print_float(norm->eps, file);
    fprintf(file, ", elementwise_affine=True");
}

static const ModuleClass kind = {"RMSNorm", sizeof(RMSNorm), print_rms_norm, NULL};

RMSNorm *nn_rms_norm_new(Shape normalized_shape) {
    bool fits = normalized_shape.ndim >= 1 && normalized_shape.ndim <= TENSOR_MAX_DIMS;
    for (int d = 0; fits && d < normalized_shape.ndim; d++) fits = normalized_shape.dim[d] >= 0;
    if (!fits)
        return tensor_fail("rms_norm: normalized_shape is %s: it needs 1 to %d sizes, none of them "
                           "negative",
                           tensor_shape_text(normalized_shape), TENSOR_MAX_DIMS);
    RMSNorm *norm = nn_module_new(&kind);
    if (!norm) return NULL;
    norm->eps = AG_EPS_OF_TYPE;
    nn_add_parameter(norm, "weight", &norm->weight, tensor_ones(normalized_shape));
    return nn_module_done(norm);
}

Tensor *nn_rms_norm_forward(RMSNorm *norm, Tensor *x) {
    if (!nn_forward_begins("rms_norm", norm)) return NULL;
    if (!x) tensor_fail("rms_norm: x is NULL");
    return nn_forward_done(norm, ag_rms_norm(x, norm->weight, norm->eps));
}
