/* sample.c - standardised pairs (x, y) for a curve: see sample.h. */
#include "sample.h"

#include "../../autograd/autograd.h"
#include "../common/plural.h"

#include <math.h>
#include <stdlib.h>

/* Sets x_range and x_gap. Visits the different values of x in ascending order. a and b are the
 * distances of a value to the value before and the value after it. Equal x count once. */
static bool measure_gaps(Sample *s) {
    Tensor *sorted = tensor_sort(s->x, NULL);
    if (!sorted) return false;
    double last = tensor_get(sorted, 0), range = tensor_get(sorted, -1) - last, a = 0;
    double square = range * range, rounding = 1e-9 * range;
    for (int64_t i = 1; i < s->data.num_rows; i++) {
        double b = tensor_get(sorted, i) - last;
        if (b <= rounding) continue;
        square = fmin(square, b * b);
        if (a > 0 && fabs(a - b) > rounding) square = fmin(square, fabs(a - b) * (a + b));
        last += b;
        a = b;
    }
    s->x_range = range;
    s->x_gap = sqrt(square);
    tensor_release(sorted);
    return true;
}

/* In float64, because six digits of a fitted width need more than six digits of the loss. */
static bool make_tensors(Sample *s) {
    int64_t n = s->data.num_rows;
    s->x_scale = scale_measure(s->data.column[0], n);
    s->y_scale = scale_measure(s->data.column[1], n);
    tensor_set_default_dtype(F64);
    s->x = scale_standardise(s->data.column[0], n, s->x_scale);
    s->y = scale_standardise(s->data.column[1], n, s->y_scale);
    Tensor *eye = tensor_eye(n);
    s->self = eye ? tensor_to(eye, BOOL) : NULL;
    tensor_release(eye);
    return s->x && s->y && s->self && measure_gaps(s);
}

static bool describe(const char *path, const Sample *s, const char *problem) {
    char shown[301];
    tensor_snprintf(shown, sizeof shown, "%s", path);
    return tensor_fail("%s:%lld: the file ends after %lld point%s%s", shown,
                       (long long)s->data.last_line, (long long)s->data.num_rows,
                       plural(s->data.num_rows), problem);
}

bool sample_read(Sample *s, const char *path, const char *x_column, const char *y_column) {
    const char *columns[] = {x_column, y_column};
    char problem[64], error[CSV_ERROR_SIZE];
    *s = (Sample){0};
    if (!csv_read(path, columns, 2, &s->data, error)) return tensor_fail("%s", error);
    if (s->data.num_rows < 3) return describe(path, s, ", and at least 3 are needed");
    if (s->data.num_rows > SAMPLE_MAX_POINTS) {
        snprintf(problem, sizeof problem, ", and %d is the most that fit", SAMPLE_MAX_POINTS);
        return describe(path, s, problem);
    }
    Scale x = scale_measure(s->data.column[0], s->data.num_rows);
    Scale y = scale_measure(s->data.column[1], s->data.num_rows);
    if (!isfinite(x.deviation) || !isfinite(y.deviation))
        return describe(path, s, " that are too far apart for float64");
    if (!(x.deviation > 0)) {
        snprintf(problem, sizeof problem, ", and x is %g in all of them", x.mean);
        return describe(path, s, problem);
    }
    return make_tensors(s);
}

/* In float32, as in the notebook; float64 would draw other numbers. */
static bool draw(double *x, double *y) {
    Tensor *u = tensor_rand(SHAPE(50));
    Tensor *sorted = u && tensor_mul_(u, 5) ? tensor_sort(u, NULL) : NULL;
    Tensor *noise = sorted ? tensor_normal(0, 0.5, SHAPE(50)) : NULL;
    bool ok = noise && tape_begin_no_grad();
    if (ok) {
        Tensor *f = ag_add(ag_scale(ag_sin(sorted), 2), ag_pow_scalar(sorted, 0.8));
        ok = tensor_to_doubles(sorted, x) && tensor_to_doubles(ag_add(f, noise), y);
        tape_end();
    }
    tensor_release(u);
    tensor_release(sorted);
    tensor_release(noise);
    return ok;
}

bool sample_notebook(Sample *s, uint64_t seed) {
    *s = (Sample){.data = {.num_columns = 2, .num_rows = 50}};
    for (int i = 0; i < 2; i++) {
        s->data.column[i] = malloc(50 * sizeof(double));
        s->data.name[i] = calloc(2, 1);
        if (!s->data.column[i] || !s->data.name[i]) return tensor_fail("out of memory");
        *s->data.name[i] = i ? 'y' : 'x';
    }
    tensor_manual_seed(seed);
    return draw(s->data.column[0], s->data.column[1]) && make_tensors(s);
}

void sample_free(Sample *s) {
    tensor_release(s->x);
    tensor_release(s->y);
    tensor_release(s->self);
    csv_free(&s->data);
}
