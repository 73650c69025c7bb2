/* layers.c - Linear, Dropout, Embedding and LayerNorm. */
#include "module.h"

#include <math.h>

/* ---- linear ---------------------------------------------------------------------------------- */

/* x W' + b. The first input can set the size of a lazy layer.
 *
 * The initial weights are the same numbers as PyTorch's: first weight, then bias, both uniform in
 * (-1 / sqrt(in), 1 / sqrt(in)). A lazy layer draws its weights in its first forward, so lazy
 * layers draw in the order in which they are first used. */

static void print_linear(const void *module, FILE *file) {
    const Linear *linear = module;
    int64_t in = linear->weight ? linear->weight->shape.dim[1] : 0;
    fprintf(file, "in_features=%lld, out_features=%lld, bias=%s", (long long)in,
            (long long)linear->out_features, linear->has_bias ? "True" : "False");
}

static const ModuleClass linear_class = {"Linear", sizeof(Linear), print_linear, NULL};
static const ModuleClass lazy_linear_class = {"LazyLinear", sizeof(Linear), print_linear, NULL};

/* A layer that has a weight, drawn or loaded, is no longer lazy. */
static void end_laziness(Linear *linear) {
    if (!linear->weight || linear->in_features != NN_LAZY) return;
    linear->in_features = linear->weight->shape.dim[1];
    linear->module.kind = &linear_class;
}

/* Draws weight and bias, or neither: while an error is pending, nn_set_parameter only releases its
 * value. */
static void draw_parameters(Linear *linear, int64_t in) {
    int64_t out = linear->out_features;
    double bound = in > 0 ? 1 / sqrt((double)in) : 0; /* 0 if in is 0, as in PyTorch */
    Tensor *weight = tensor_empty(SHAPE(out, in));
    Tensor *bias = NULL;
    /* The bound of the weights is also 1 / sqrt(in), but computed as in PyTorch: its last bit can
     * differ from that of `bound`. */
    bool drawn = weight && nn_init_kaiming_uniform(weight, sqrt(5));
    if (drawn && linear->has_bias) bias = tensor_uniform(-bound, bound, SHAPE(out));
    nn_set_parameter(linear, &linear->weight, weight);
    if (linear->has_bias) nn_set_parameter(linear, &linear->bias, bias);
    end_laziness(linear);
}

Linear *nn_linear_new(int64_t in, int64_t out, bool bias) {
    if ((in < 0 && in != NN_LAZY) || out < 0)
        return tensor_fail(
            "linear: in_features is %lld and out_features %lld: a size must not be negative",
            (long long)in, (long long)out);
    Linear *linear = nn_module_new(in == NN_LAZY ? &lazy_linear_class : &linear_class);
    if (!linear) return NULL;
    linear->in_features = in;
    linear->out_features = out;
    linear->has_bias = bias;
    nn_add_lazy_parameter(linear, "weight", &linear->weight, SHAPE(out, NN_LAZY));
    if (bias) nn_add_lazy_parameter(linear, "bias", &linear->bias, SHAPE(out));
    if (in != NN_LAZY) draw_parameters(linear, in);
    return nn_module_done(linear);
}

bool nn_linear_prepare(Linear *linear, const Tensor *x) {
    const DType ours = tensor_default_dtype();
    const int64_t in = x->shape.ndim > 0 ? x->shape.dim[x->shape.ndim - 1] : 0;
    end_laziness(linear);
    if (x->shape.ndim == 0)
        tensor_fail("linear: x is (): it needs a last size, the number of features");
    else if (linear->has_bias && !linear->weight != !linear->bias)
        tensor_fail("linear: one of weight and bias was set: a lazy layer needs both, or neither");
    else if (!linear->weight && x->dtype != ours)
        tensor_fail("linear: x is %s and the weights would be made as %s: the types must be equal; "
                    "convert x with ag_to",
                    tensor_dtype_name(x->dtype), tensor_dtype_name(ours));
    else if (!linear->weight) draw_parameters(linear, in);
    else if (in != linear->in_features)
        tensor_fail("linear: x is %s: its last size %lld and in_features %lld must be equal",
                    tensor_shape_text(x->shape), (long long)in, (long long)linear->in_features);
    return !tensor_error();
}

Tensor *nn_linear_forward(Linear *linear, Tensor *x) {
    if (!nn_forward_begins("linear", linear)) return NULL;
    if (!x) tensor_fail("linear: x is NULL");
    const bool ready = x && nn_linear_prepare(linear, x);
    return nn_forward_done(linear, ready ? ag_linear(x, linear->weight, linear->bias) : NULL);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void print_dropout(const void *module, FILE *file) {
    fprintf(file, "p=");
    nn_print_float(((const Dropout *)module)->p, file);
    fprintf(file, ", inplace=False");
}

static const ModuleClass dropout_class = {"Dropout", sizeof(Dropout), print_dropout, NULL};

Dropout *nn_dropout_new(double p) {
    if (!(p >= 0 && p <= 1)) /* NaN is refused too */
        return tensor_fail("dropout: p is %g: a probability lies in [0, 1]", p);
    Dropout *dropout = nn_module_new(&dropout_class);
    if (!dropout) return NULL;
    dropout->p = p;
    return nn_module_done(dropout);
}

Tensor *nn_dropout_forward(Dropout *dropout, Tensor *x) {
    if (!nn_forward_begins("dropout", dropout)) return NULL;
    if (!x) tensor_fail("dropout: x is NULL");
    const bool drops = dropout->module.training && dropout->p != 0; /* ag_dropout refuses a nan */
    return nn_forward_done(dropout, drops ? ag_dropout(x, dropout->p) : x);
}

/* ---- embedding ------------------------------------------------------------------------------- */

static void print_embedding(const void *module, FILE *file) {
    const Shape shape = ((const Embedding *)module)->weight->shape;
    fprintf(file, "%lld, %lld", (long long)shape.dim[0], (long long)shape.dim[1]);
}

static const ModuleClass embedding_class = {"Embedding", sizeof(Embedding), print_embedding, NULL};

Embedding *nn_embedding_new(int64_t num_embeddings, int64_t embedding_dim) {
    if (num_embeddings < 0 || embedding_dim < 0)
        return tensor_fail(
            "embedding: num_embeddings is %lld and embedding_dim %lld: a size must not be negative",
            (long long)num_embeddings, (long long)embedding_dim);
    Embedding *embedding = nn_module_new(&embedding_class);
    if (!embedding) return NULL;
    nn_add_parameter(embedding, "weight", &embedding->weight,
                     tensor_randn(SHAPE(num_embeddings, embedding_dim)));
    return nn_module_done(embedding);
}

Tensor *nn_embedding_forward(Embedding *embedding, Tensor *index) {
    if (!nn_forward_begins("embedding", embedding)) return NULL;
    return nn_forward_done(embedding, ag_embedding(embedding->weight, index));
}

/* ---- layer norm ------------------------------------------------------------------------------ */

static void print_layer_norm(const void *module, FILE *file) {
    const LayerNorm *norm = module;
    fprintf(file, "%s, eps=", tensor_shape_text(norm->weight->shape));
    nn_print_float(norm->eps, file);
    fprintf(file, ", elementwise_affine=True, bias=True");
}

static const ModuleClass layer_norm_class = {"LayerNorm", sizeof(LayerNorm), print_layer_norm,
                                             NULL};

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
