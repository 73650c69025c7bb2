/* embedding.c - vectors for words: a learned table; an index selects a row. */
#include "module.h"

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
