/* recording.c - a page of one tape: see recording.h. */
#include "recording.h"

#include "html.h"
#include "json.h"
#include "plan_json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JSON = 1 << 23 }; /* bytes of the data of a page */

/* ---- the data of the page -------------------------------------------------------------------- */

/* Memory for MOST_JSON bytes; open_memstream would lose bytes without an error if memory ran out.
 */
FILE *data_open(char **string) {
    *string = tensor_error() ? NULL : malloc(MOST_JSON);
    FILE *file = *string ? fmemopen(*string, MOST_JSON, "w") : NULL;
    if (file) return file;
    free(*string);
    *string = NULL;
    return tensor_fail("out of memory");
}

char *data_close(FILE *file, char *string) {
    if (!file) return NULL;
    const bool failed = fflush(file) != 0 || ferror(file);
    const long size = ftell(file);
    if (failed || size < 0 || size >= MOST_JSON - 1)
        tensor_fail("the page would be too large: choose smaller examples");
    else string[size] = '\0';
#ifdef _WIN32
    if (!tensor_error()) win32_read_back(file, string, (size_t)size);
#endif
    fclose(file);
    if (tensor_error()) {
        free(string);
        return NULL;
    }
    char *fitting = realloc(string, (size_t)size + 1);
    return fitting ? fitting : string;
}

/* tape_write_json lists each tensor once, line by line, inputs before the result. */
int data_tensors(Tensor *tensor[MOST_TENSORS]) {
    int n = 0;
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; line.n_in > 0 && k <= line.n_in; k++) {
            Tensor *next = k < line.n_in ? line.in[k] : line.out;
            int t = 0;
            while (t < n && tensor[t] != next) t++;
            if (next && t == n && n < MOST_TENSORS) tensor[n++] = next;
        }
    return n;
}

int data_number(const Tensor *x) {
    Tensor *tensor[MOST_TENSORS];
    const int n = data_tensors(tensor);
    for (int t = 0; t < n; t++)
        if (x == tensor[t]) return t;
    return -1;
}

bool data_turns(const TapeLine *line) {
    const int last = line->out->shape.ndim - 1;
    const bool is_view = strcmp(line->op, "transpose") == 0 || strcmp(line->op, "permute") == 0;
    if (!is_view || last < 1) return false;
    const Tensor *x = line->in[0];
    const Tensor *y = line->out;
    for (int d = 0; d <= last; d++) {
        const int from = d < last - 1 ? d : 2 * last - 1 - d;
        if (y->shape.dim[d] != x->shape.dim[from] || y->stride[d] != x->stride[from]) return false;
    }
    return true;
}

void data_write_transposed(FILE *file) {
    const char *before = "";
    TapeLine line;
    fprintf(file, ",\n\"transposed\":[");
    for (int i = 0; tape_line(i, &line); i++) {
        if (!data_turns(&line)) continue;
        fprintf(file, "%s{\"tensor\":%d,\"of\":%d}", before, data_number(line.out),
                data_number(line.in[0]));
        before = ",";
    }
    putc(']', file);
}

/* The words of one dimension of x, if there are as many; NULL otherwise. */
static const char *const *words_of(const Tensor *x, int from_the_end, const char *const *words) {
    int64_t n = 0;
    while (words && words[n]) n++;
    return x->shape.ndim >= 2 && x->shape.dim[x->shape.ndim - from_the_end] == n ? words : NULL;
}

static bool is_named(const Tensor *x, const char *const *names) {
    for (; *names; names++)
        if (strcmp(x->name, *names) == 0) return true;
    return false;
}

/* The words of the rows and of the columns of x; NULL if they have none. The names are those of
 * nn's attention, and of the papers' contexts. G is a gradient of them. */
static const char *const *row_words(const Recording *r, const Tensor *x) {
    static const char *const queries[] = {"queries",  "scores", "attention_weights", "output",
                                          "contexts", "G",      "products",          NULL};
    static const char *const keys[] = {"keys", "values", NULL};
    if (is_named(x, queries)) return words_of(x, 2, r->queries);
    return is_named(x, keys) ? words_of(x, 2, r->keys) : NULL;
}

static const char *const *column_words(const Recording *r, const Tensor *x) {
    static const char *const weights[] = {"scores", "attention_weights", NULL};
    return is_named(x, weights) ? words_of(x, 1, r->keys) : NULL;
}

/* Writes ,"rows":["c?", "x?"], or nothing. */
static void write_words(FILE *file, const char *key, const char *const *words) {
    if (!words) return;
    fprintf(file, ",\"%s\":", key);
    json_write_strings(file, words, INT_MAX);
}

static void write_labels(FILE *file, const Recording *r) {
    Tensor *tensor[MOST_TENSORS];
    const int n = data_tensors(tensor);
    const char *before = "\n";
    fprintf(file, ",\n\"labels\":[");
    for (int t = 0; t < n; t++) {
        const char *const *rows = row_words(r, tensor[t]);
        const char *const *columns = column_words(r, tensor[t]);
        if (!rows && !columns) continue;
        fprintf(file, "%s{\"tensor\":%d", before, t);
        write_words(file, "rows", rows);
        write_words(file, "columns", columns);
        putc('}', file);
        before = ",\n";
    }
    putc(']', file);
}

/* The one lesson of the page. */
static void write_lesson(FILE *file, const Recording *r) {
    fprintf(file, "{\"number\":0");
    json_write_member(file, "title", r->title);
    json_write_member(file, "idea", r->idea);
    fprintf(file, ",\n\"text\":");
    json_write_strings(file, r->text, 4);
    fprintf(file, ",\n\"formula\":");
    json_write_strings(file, r->formula, 6);
    json_write_member(file, "columns", r->columns);
    json_write_member(file, "command", r->command);
    if (!r->tape) data_write_transposed(file);
    if (!r->tape) write_labels(file, r);
    fprintf(file, ",\n\"source\":\"\",\"questions\":[],\"tape\":");
    if (r->tape) fputs(r->tape, file);
    else tape_write_json(file);
    putc('}', file);
}

char *recording_as_json(const Recording *r) {
    char *json;
    char *lesson;
    FILE *part = data_open(&lesson);
    if (part) write_lesson(part, r);
    lesson = data_close(part, lesson);
    FILE *file = data_open(&json);
    if (file) {
        fprintf(file, "{\"lessons\":[");
        plan_write_lesson(file, lesson);
        fprintf(file, "]}\n");
    }
    free(lesson);
    return data_close(file, json);
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
    if (json) html_write(path, &(Page){.json = json});
    free(json);
}

void recording_end(void *model, Tensor *loss, const Recording *recording, const char *path) {
    recording_write(recording_json(model, loss, recording), path);
}
