/* recording.c - a page of one tape: see recording.h. */
#include "recording.h"

#include "../common/output.h"
#include "html.h"
#include "json.h"

#include <stdlib.h>

enum { MOST_JSON = 1 << 23 }; /* bytes of the data of a page */

/* ---- the data of the page -------------------------------------------------------------------- */

/* Memory for MOST_JSON bytes; open_memstream would lose bytes without an error if memory ran out.
 */
FILE *data_open(char **string) {
    *string = tensor_error() ? NULL : malloc(MOST_JSON);
    FILE *file = *string ? fmemopen(*string, MOST_JSON, "w") : NULL;
    if (!file) tensor_fail("out of memory");
    return file;
}

void data_close(FILE *file, char *string) {
    if (!file) return;
    const bool failed = fflush(file) != 0 || ferror(file);
    const long size = ftell(file);
    if (failed || size < 0 || size >= MOST_JSON - 1)
        tensor_fail("the page would be too large: choose smaller examples");
    else string[size] = '\0';
#ifdef _WIN32
    if (!tensor_error()) win32_read_back(file, string, (size_t)size);
#endif
    fclose(file);
}

char *recording_as_json(const Recording *r) {
    char *json;
    FILE *file = data_open(&json);
    if (file) {
        fprintf(file, "{\"lessons\":[{\"number\":0");
        json_write_member(file, "title", r->title);
        json_write_member(file, "idea", r->idea);
        fprintf(file, ",\n\"text\":");
        json_write_strings(file, r->text, 4);
        fprintf(file, ",\n\"formula\":");
        json_write_strings(file, r->formula, 6);
        json_write_member(file, "columns", r->columns);
        json_write_member(file, "command", r->command);
        fprintf(file, ",\n\"source\":\"\",\"questions\":[],\"tape\":");
        if (r->tape) fputs(r->tape, file);
        else tape_write_json(file);
        fprintf(file, "}]}\n");
    }
    data_close(file, json);
    if (!tensor_error()) return json;
    free(json);
    return NULL;
}

/* ---- a recording ----------------------------------------------------------------------------- */

static Tensor *kept[16]; /* the tensors for the page, until its tape owns them */
static int num_kept;

void recording_prepare(void *model) {
    nn_freeze(model, "", true);
    tape_begin_no_grad();
}

Tensor *recording_constant(Tensor *x, const char *name) {
    if (num_kept == sizeof kept / sizeof *kept) abort(); /* make kept longer */
    kept[num_kept] = ag_name(tensor_clone(x), name);
    return kept[num_kept++];
}

Tensor *recording_leaf(Tensor *x, const char *name) {
    return ag_requires_grad(recording_constant(x, name));
}

Tensor *recording_heads(Linear *W, Tensor *x, int64_t H, const char *name) {
    Tensor *y = nn_linear_forward(W, x);
    if (!y) return NULL;
    const int64_t N = y->shape.dim[1], D = y->shape.dim[2] / H;
    return recording_leaf(ag_transpose(ag_reshape(y, SHAPE(N, H, D)), 0, 1), name);
}

void recording_begin(void) {
    tape_end();
    tape_begin();
    tape_keep_grads(true);
    while (num_kept > 0) tape_own(kept[--num_kept]);
}

Tensor *recording_join(Tensor *heads) {
    if (!heads) return NULL;
    const int64_t H = heads->shape.dim[0], N = heads->shape.dim[1], D = heads->shape.dim[2];
    Tensor *places = ag_transpose(ag_reshape(heads, SHAPE(1, H, N, D)), 1, 2);
    return ag_name(ag_reshape(places, SHAPE(1, N, H * D)), "joined");
}

char *recording_json(void *model, Tensor *loss, const Recording *recording) {
    if (loss && !*loss->name) ag_name(loss, "loss");
    ag_backward(loss);
    char *json = tensor_error() ? NULL : recording_as_json(recording);
    tape_end();
    if (model) nn_freeze(model, "", false);
    return json;
}

void recording_write(char *json, const char *path) {
    if (json) output_write(path, html_write, &(Page){.json = json});
    free(json);
}

void recording_end(void *model, Tensor *loss, const Recording *recording, const char *path) {
    recording_write(recording_json(model, loss, recording), path);
}
