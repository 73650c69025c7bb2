/* inspect.c - reads the tape: its lines, the vector-Jacobian product of a line, the forward of a
 * line once more, and the whole tape as JSON, with all numbers that a page needs to show
 * backpropagation.
 *
 * A backward is linear in dy: the backward of a dy that is 1 at element j and 0 elsewhere is row
 * j of the op's Jacobian, J[j, i] = d y[j] / d x[i]. For any op, J gives the terms of every
 * gradient,
 *     dx[i] = sum over j of dy[j] J[j, i],
 * and the reason why a gradient is 0. Differences of the op's forward check J. */
#include "../gradcheck.h"
#include "../op.h"
#include "../../tensor/files/file.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES = 1 << 20, JACOBIAN_SIZE = 1 << 22 };

/* ---- a line ---------------------------------------------------------------------------------- */

static const OpText *node_text(const Node *n) { return n->op->calls ? &n->at.text : n->op->text; }

/* The argument that a page shows, if there is one. */
static double shown_number(const Node *n) {
    double number;
    memcpy(&number, (const char *)&n->at + n->op->shown.offset, sizeof number);
    return number;
}

bool tape_line(int i, TapeLine *line) {
    const Node *n = tensor_pending() ? NULL : ag_node(i);
    if (!n) return false;
    *line = (TapeLine){node_name(n), node_text(n), n->out, n->in, n->n_in, n->op->shown.name, 0};
    if (line->argument) line->number = shown_number(n);
    return true;
}

/* Line i, whose result requires a gradient. */
static const Node *node_of(const char *function, int i) {
    const Node *n = tensor_pending() ? NULL : ag_node(i);
    if (n && n->out->grad_fn && n->op->backward) return n;
    if (!n) return tensor_fail("%s: the open recording tape has no line %d", function, i);
    return tensor_fail("%s: line %d, %s, has no gradient", function, i, node_name(n));
}

bool tape_register_hook(int i, void (*hook)(const AgCall *call, Tensor *dy, Tensor **dx),
                        void *data) {
    Node *n = (Node *)(uintptr_t)node_of("tape_register_hook", i);
    if (!n) return false;
    if (hook && !n->hook) n->hook = tensor_cache_alloc(sizeof *n->hook);
    if (hook && n->hook) *n->hook = (Hook){ag_run_hook, hook, data};
    if (hook) return n->hook != NULL;
    tensor_cache_free(n->hook, sizeof *n->hook);
    n->hook = NULL;
    return true;
}

/* A backward may write over a dy that nobody else holds, so it gets a view of dy. */
static bool vjp_of(const Node *n, const Tensor *dy, Tensor **dx) {
    Tensor *view = tensor_view_make(dy, dy->shape, dy->stride, dy->data);
    const bool done = view && ag_node_vjp(n, view, dx);
    tensor_release(view);
    return done;
}

bool tape_vjp(int i, const Tensor *dy, Tensor **dx) {
    const Node *n = node_of("tape_vjp", i);
    return n && tensor_check_given("tape_vjp", "dx", dx) &&
           ag_check_cotangent("tape_vjp", n->out, dy) && vjp_of(n, dy, dx);
}

/* Runs n's forward once more, on n's inputs, with the numbers that n drew. `again` becomes a node
 * that owns its saved tensors and its result: release_again. */
static bool run_again(const Node *n, Node *again) {
    const int drawn = n->op->draws - 1;
    *again = (Node){.op = n->op,
                    .in = n->in,
                    .needs = n->needs,
                    .n_in = n->n_in,
                    .reads = n->reads,
                    .hook = n->hook,
                    .at = n->at};
    if (tensor_pending()) return false;
    if (drawn >= 0) again->saved[drawn] = tensor_retain(n->saved[drawn]);
    again->out = n->op->forward(again);
    for (int k = 0; k < n->n_in && k < OP_INPUTS; k++)
        if (n->in[k]) again->version[k] = n->in[k]->storage->version;
    if (again->out) again->version[OP_INPUTS] = again->out->storage->version;
    return !tensor_pending();
}

static void release_again(Node *again) {
    for (int i = 0; i < SAVED; i++) tensor_release(again->saved[i]);
    tensor_release(again->out);
}

static Tensor *forward_again(const Node *n) {
    Node again;
    Tensor *y = run_again(n, &again) ? tensor_retain(again.out) : NULL;
    release_again(&again);
    return y;
}

Tensor *tape_forward(int i) {
    const Node *n = tensor_pending() ? NULL : ag_node(i);
    if (!n) return tensor_fail("tape_forward: the open recording tape has no line %d", i);
    if (!n->op->forward) return tensor_fail("tape_forward: line %d is no op", i);
    if (n->op->draws && !n->out->grad_fn)
        return tensor_fail("tape_forward: line %d, %s, has no gradient, so its draw was not kept",
                           i, node_name(n));
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] && !tensor_check_readable("tape_forward", n->in[k])) return NULL;
    return forward_again(n);
}

/* copy becomes n with its float inputs converted to float64, and one reference to each input. The
 * caller releases the inputs, frees copy->in and calls release_again. */
static bool copy_in_float64(const Node *n, Node *copy) {
    Node prepared = *n;
    Tensor **in = tensor_cache_alloc(n->n_in * (int64_t)sizeof *in);
    prepared.in = in;
    prepared.n_in = in ? n->n_in : 0;
    if (n->op->converts) prepared.at.dtype = F64;
    for (int k = 0; k < prepared.n_in; k++) {
        const bool is_float = n->in[k] && dtype_is_float(n->in[k]->dtype);
        in[k] = is_float ? tensor_convert(n->in[k], F64) : tensor_retain(n->in[k]);
    }
    return run_again(&prepared, copy);
}

/* ---- the Jacobian of a line, and its check --------------------------------------------------- */

/* J, a row for each element of n's result, a column for each element of in[k]: float64. */
static Tensor *jacobian_of(const Node *n, int k) {
    const int64_t rows = tensor_numel(n->out), columns = tensor_numel(n->in[k]);
    if (columns > JACOBIAN_SIZE / rows)
        return tensor_fail("tape_write_json: %s has %lld derivatives: choose a smaller example",
                           node_name(n), (long long)rows * (long long)columns);
    Tensor **dx = tensor_cache_alloc(n->n_in * (int64_t)sizeof *dx);
    Tensor *jacobian = tensor_make(SHAPE(rows, columns), F64);
    for (int64_t j = 0; j < rows && !tensor_pending(); j++) {
        Tensor *dy = tensor_make_zeros(n->out->shape, n->out->dtype);
        if (dy && dy->dtype == F32) ((float *)dy->data)[j] = 1;
        else if (dy) ((double *)dy->data)[j] = 1;
        const bool done = dy && ag_node_vjp(n, dy, dx);
        if (done) {
            tensor_to_doubles(dx[k], (double *)jacobian->data + j * columns);
            for (int i = 0; i < n->n_in; i++) tensor_release(dx[i]);
        }
        tensor_release(dy);
    }
    tensor_cache_free(dx, n->n_in * (int64_t)sizeof *dx);
    return jacobian;
}

/* The result of a copy with another number in place of x, an element of an input. y itself can be a
 * view of that input. */
static Tensor *forward_at(const Node *copy, double *x, double number) {
    const double before = *x;
    *x = number;
    Tensor *y = forward_again(copy);
    Tensor *dense = y ? tensor_convert(y, F64) : NULL;
    *x = before;
    tensor_release(y);
    return dense;
}

/* The check of the Jacobian by central differences D. */
typedef struct {
    double worst;      /* the largest |J - D| / max(1, |J|); NaN stays */
    int64_t unchecked; /* how many derivatives differences cannot check: see gradcheck.c. At a kink
                        * there is none */
} Agreement;

/* The check of J[j, i] for one i and every j. */
typedef struct {
    double exact, error; /* J, and the smallest error of a step */
    double size;         /* the largest |J[j, i] x[i]| of the row: what y[j] is computed from */
    bool is_kink;        /* y[j] has another slope on each side of x[i], and J is between them */
    Quotients known;
} Row;

/* An error up to this is the error of the difference. */
static const double right = 1e-6;

static double error_of(double exact, double quotient) {
    return fabs(exact - quotient) / fmax(1, fabs(exact));
}

/* Compares every J[j, i] with difference k. Returns whether all were right with this one or an
 * earlier one. */
static bool try_step(const Node *n, double *x, double h, int k, Row *row) {
    Tensor *above = forward_at(n, x, *x + h);
    Tensor *below = forward_at(n, x, *x - h);
    const double distance = *x + h - (*x - h); /* 2 h, rounded as the two numbers are */
    bool all = true;
    if (above && below)
        for (int64_t j = 0; j < tensor_numel(above); j++, row++) {
            const double y = ((double *)above->data)[j], z = ((double *)below->data)[j];
            const double quotient = (y - z) / distance;
            const double error = error_of(row->exact, quotient);
            const double size = row->size + fmax(fabs(y), fabs(z));
            if (error < row->error) row->error = error;
            if (k > 0) ag_quotient_add(&row->known, quotient, DBL_EPSILON * size / distance);
            all = all && row->error <= right;
        }
    tensor_release(above);
    tensor_release(below);
    return all;
}

/* The slopes of element j of the result between three points. */
static Slopes slopes_of(Tensor *const y[3], int64_t j, double h, double size) {
    double at[3];
    for (int p = 0; p < 3; p++) at[p] = ((double *)y[p]->data)[j];
    size += fmax(fabs(at[1]), fmax(fabs(at[0]), fabs(at[2])));
    return (Slopes){(at[1] - at[0]) / h, (at[2] - at[1]) / h, 2 * DBL_EPSILON * size / h};
}

/* Is x a kink for the derivatives that no difference confirmed? There any slope between the two is
 * right (a subgradient), and any other is wrong. */
static void find_kinks(const Node *n, double *x, int64_t rows, Row *row) {
    const double step = ag_difference_step(*x, 1e-5, 0);
    Tensor *y[2][3];
    for (int k = 0; k < 2; k++)
        for (int p = 0; p < 3; p++)
            y[k][p] = forward_at(n, x, *x + (p - 1) * (k ? AG_KINK_STEPS * step : step));
    for (int64_t j = 0; j < rows && !tensor_pending(); j++) {
        const Slopes smaller = slopes_of(y[0], j, step, row[j].size);
        const Slopes larger = slopes_of(y[1], j, AG_KINK_STEPS * step, row[j].size);
        const bool between = row[j].exact >= fmin(smaller.left, smaller.right) - right &&
                             row[j].exact <= fmax(smaller.left, smaller.right) + right;
        row[j].is_kink = between && ag_is_kink(smaller, larger);
    }
    for (int k = 0; k < 2; k++)
        for (int p = 0; p < 3; p++) tensor_release(y[k][p]);
}

static void add_row(Agreement *a, const Row *row) {
    double error = row->error;
    if (!(error <= right)) {
        if (row->is_kink || ag_quotients_cannot_tell(&row->known, row->exact)) {
            a->unchecked++;
            return;
        }
        error = error_of(row->exact, row->known.best);
    }
    if (error > a->worst || isnan(error)) a->worst = error;
}

/* n: a copy, from copy_in_float64. Checks its Jacobian with respect to input k. */
static Agreement check_jacobian(const Node *n, int k) {
    const int64_t rows = tensor_numel(n->out), columns = tensor_numel(n->in[k]);
    const int64_t bytes = rows * (int64_t)sizeof(Row);
    Agreement agreement = {0, 0};
    Tensor *jacobian = jacobian_of(n, k);
    Row *row = jacobian ? tensor_cache_alloc(bytes) : NULL;
    double *x = n->in[k]->data;
    if (!row) {
        tensor_release(jacobian);
        return agreement;
    }
    for (int64_t j = 0; j < rows; j++) {
        row[j].size = 0;
        for (int64_t i = 0; i < columns; i++) {
            const double term = fabs(((double *)jacobian->data)[j * columns + i] * x[i]);
            if (term > row[j].size && isfinite(term)) row[j].size = term;
        }
    }
    for (int64_t i = 0; i < columns && !tensor_pending(); i++) {
        bool all = false;
        for (int64_t j = 0; j < rows; j++) {
            row[j].exact = ((double *)jacobian->data)[j * columns + i];
            row[j].error = HUGE_VAL;
            row[j].is_kink = false;
            row[j].known = NO_QUOTIENTS;
        }
        for (int s = 0; !all && ag_difference_step(x[i], 1e-5, s) > 0; s++)
            all = try_step(n, &x[i], ag_difference_step(x[i], 1e-5, s), s, row) || tensor_pending();
        if (!all) find_kinks(n, &x[i], rows, row);
        for (int64_t j = 0; j < rows; j++) add_row(&agreement, &row[j]);
    }
    tensor_cache_free(row, bytes);
    tensor_release(jacobian);
    return agreement;
}

/* ---- why no element of the result changes with an element of an input ------------------------ */

/* For a copy of an op of weights, the weights if all scores were 0: they are 0 for the masked keys
 * only. */
static Tensor *weights_of_zeros(const Node *copy) {
    Tensor *scores = copy->in[0];
    Tensor *before = copy->op->weighs ? tensor_clone(scores) : NULL;
    if (!before) return NULL;
    tensor_fill_elements(scores, 0);
    Tensor *weights = forward_again(copy);
    memcpy(scores->data, before->data, (size_t)tensor_numel(scores) * sizeof(double));
    tensor_release(before);
    return weights;
}

/* For element i of an input, which has the shape of the weights y, or was broadcast to it. */
static const char *reason_of(const Node *n, int64_t i, bool is_broadcast, const double *y,
                             const Tensor *weights) {
    const Op *const op = n->op;
    if (op->weighs && !is_broadcast && y[i] == 1) return "weight is 1";
    if (weights && !is_broadcast && ((double *)weights->data)[i] == 0) return "masked";
    if (op->zero) return op->zero;
    return op->reads & READS_OTHER ? "times 0" : "unused"; /* a product reads the other factor */
}

/* ---- the tape as JSON ------------------------------------------------------------------------ */

/* ,"key":[numbers] */
static void write_numbers(Buffer *json, const char *key, const Tensor *x) {
    Tensor *numbers = tensor_convert(x, F64);
    tensor_buffer_print(json, ",\"%s\":[", key);
    if (numbers)
        for (int64_t i = 0; i < tensor_numel(x) && json->size <= JSON_BYTES; i++)
            tensor_buffer_print_number(json, i ? "," : "", ((double *)numbers->data)[i], x->dtype);
    tensor_buffer_print(json, "]");
    tensor_release(numbers);
}

static void write_tensor(Buffer *json, const char *before, const Tensor *x) {
    tensor_buffer_print(json,
                        "%s\n{\"type\":\"%s\",\"leaf\":%s,\"requires_grad\":%s,\"shape\":", before,
                        tensor_dtype_name(x->dtype), x->grad_fn ? "false" : "true",
                        x->requires_grad ? "true" : "false");
    tensor_buffer_print_shape(json, x->shape);
    tensor_buffer_print_string(json, ",\"name\":", x->name);
    write_numbers(json, "value", x);
    if (x->grad) write_numbers(json, "grad", x->grad);
    tensor_buffer_print(json, "}");
}

/* Writes dx, which n's backward adds to the gradient of in[k], and J. Column i of J is written as
 * [j,number,j,number,...] without zeros, or as the reason if all are 0. */
static void write_gradient(Buffer *json, const Node *n, const Node *copy, int k, const Tensor *dx) {
    const int64_t rows = tensor_numel(n->out), columns = tensor_numel(dx);
    Tensor *jacobian = jacobian_of(n, k);
    Tensor *y = tensor_convert(n->out, F64);
    tensor_buffer_print(json, "{\"input\":%d", k);
    const Agreement agreement = check_jacobian(copy, k);
    tensor_buffer_print_number(json, ",\"worst\":", agreement.worst, F64);
    tensor_buffer_print(json, ",\"unchecked\":%lld", (long long)agreement.unchecked);
    Tensor *weights = weights_of_zeros(copy);
    write_numbers(json, "dx", dx);
    tensor_buffer_print(json, ",\"jacobian\":[");
    for (int64_t i = 0; i < columns && json->size <= JSON_BYTES && !tensor_pending(); i++) {
        int terms = 0;
        for (int64_t j = 0; j < rows; j++) {
            const double term = ((double *)jacobian->data)[j * columns + i];
            if (term == 0) continue;
            tensor_buffer_print(json, terms++ ? ",%lld" : "[%lld", (long long)j);
            tensor_buffer_print_number(json, ",", term, n->out->dtype);
        }
        if (!terms)
            tensor_buffer_print(json, "\"%s\"", reason_of(n, i, columns != rows, y->data, weights));
        tensor_buffer_print(json, "%s%s", terms ? "]" : "", i + 1 < columns ? "," : "");
    }
    tensor_buffer_print(json, "]}");
    tensor_release(weights);
    tensor_release(y);
    tensor_release(jacobian);
}

static void write_backward(Buffer *json, const Node *n) {
    Node copy = {0};
    Tensor **dx = tensor_cache_alloc(n->n_in * (int64_t)sizeof *dx);
    const bool done = dx && copy_in_float64(n, &copy) && vjp_of(n, n->out->grad, dx);
    if (done)
        for (int k = 0; k < n->n_in; k++) {
            tensor_buffer_print(json, k ? ",\n " : "\n ");
            if (!dx[k]) tensor_buffer_print(json, "null");
            else if (!tensor_pending()) write_gradient(json, n, &copy, k, dx[k]);
            tensor_release(dx[k]);
        }
    for (int k = 0; k < copy.n_in; k++) tensor_release(copy.in[k]);
    tensor_cache_free((void *)(uintptr_t)copy.in, copy.n_in * (int64_t)sizeof *copy.in);
    release_again(&copy);
    tensor_cache_free(dx, n->n_in * (int64_t)sizeof *dx);
}

/* The number of x in the JSON; -1 for NULL. tensor: the tensors that have a number, then NULLs. */
static int number_of(const Tensor **tensor, const Tensor *x) {
    int t = x ? 0 : -1;
    while (x && tensor[t] && tensor[t] != x) t++;
    if (x) tensor[t] = x;
    return t;
}

static void write_line(Buffer *json, const Tensor **tensor, int line, const Node *n) {
    const OpText *text = node_text(n);
    tensor_buffer_print(json, "%s\n{\"line\":%d,\"view\":%s", tensor[0] ? "," : "", line,
                        n->in[0]->storage == n->out->storage ? "true" : "false");
    tensor_buffer_print_string(json, ",\"op\":", node_name(n));
    tensor_buffer_print_string(json, ",\"call\":", text->call);
    tensor_buffer_print_string(json, ",\"shapes\":", text->shapes);
    tensor_buffer_print_string(json, ",\"formula\":", text->value);
    tensor_buffer_print_string(json, ",\"gradient\":", text->gradient);
    tensor_buffer_print_string(json, ",\"source\":", text->source);
    if (n->op->shown.name) {
        tensor_buffer_print(json, ",\"%s\":", n->op->shown.name);
        tensor_buffer_print_number(json, "", shown_number(n), F64);
    }
    tensor_buffer_print(json, ",\"in\":[");
    for (int k = 0; k < n->n_in; k++)
        tensor_buffer_print(json, k ? ",%d" : "%d", number_of(tensor, n->in[k]));
    tensor_buffer_print(json, "],\"out\":%d,\"backward\":[", number_of(tensor, n->out));
    if (n->out->grad && n->out->grad_fn && tensor_numel(n->out) > 0) write_backward(json, n);
    tensor_buffer_print(json, "]}");
}

bool tape_write_json(FILE *file) {
    Buffer text = {0}, *json = &text;
    int lines = 0, tensors = 1, gradients = 0;
    if (tensor_pending() || !tensor_check_given("tape_write_json", "file", file)) return false;
    for (const Node *n = ag_node(0); n; n = ag_node(++lines)) {
        tensors += n->n_in + 1;
        gradients += n->out->grad != NULL;
        if (!tensor_check_readable("tape_write_json", n->out)) return false;
    }
    if (gradients == 0)
        return tensor_fail("tape_write_json: no result on an open recording tape has a gradient: "
                           "call tape_keep_grads before the ops and ag_backward after them");
    const Tensor **tensor = tensor_cache_alloc(tensors * (int64_t)sizeof *tensor);
    if (tensor) memset(tensor, 0, (size_t)tensors * sizeof *tensor);
    tensor_buffer_print(json, "{\"lines\":[");
    for (int i = 0; i < lines && !tensor_pending(); i++)
        if (ag_node(i)->n_in > 0) write_line(json, tensor, i, ag_node(i));
    tensor_buffer_print(json, "],\n\"tensors\":[");
    for (int t = 0; !tensor_pending() && tensor[t]; t++)
        write_tensor(json, t ? "," : "", tensor[t]);
    tensor_buffer_print(json, "]}\n");
    if (json->failed) tensor_out_of_memory((int64_t)json->size);
    else if (json->size > JSON_BYTES)
        tensor_fail("tape_write_json: the tape takes more than 1 MB: choose a smaller example");
    else if (!tensor_pending() &&
             (fwrite(json->bytes, 1, json->size, file) != json->size || fflush(file) != 0))
        tensor_fail("tape_write_json: the file could not be written");
    free(json->bytes);
    tensor_cache_free(tensor, tensors * (int64_t)sizeof *tensor);
    return !tensor_pending();
}
