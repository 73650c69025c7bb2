/* fit.c - a fitted curve and its attention weights: see fit.h. */
#include "fit.h"

#include "dots.h"

#include "../common/output.h"
#include "../common/svg.h"

#include "../../autograd/autograd.h"

#include <math.h>
#include <string.h>

/* x: n evenly spaced points, the first and the last `inset` spacings from the ends of the data; y:
 * the predictions there. heat, unless NULL: the sum of the weights of the keys in each interval of
 * x. */
static bool ask(const Sample *s, double inset, double *x, double *y, int n, double *heat,
                FitAttend attend, void *model) {
    double range = s->x_scale.max - s->x_scale.min;
    for (int i = 0; i < n; i++) x[i] = s->x_scale.min + (i + inset) * range / (n - 1 + 2 * inset);
    Tensor *queries = scale_standardise(x, n, s->x_scale);
    Tensor *weights = NULL;
    bool ok = tape_begin_no_grad() && tensor_to_doubles(attend(model, s, queries, &weights), y);
    for (int64_t k = 0; ok && heat && k < s->data.num_rows; k++) {
        double place = (s->data.column[0][k] - s->x_scale.min) / range;
        int slice = place < 1 ? (int)(place * FIT_HEAT) : FIT_HEAT - 1;
        for (int q = 0; q < n; q++) heat[q * FIT_HEAT + slice] += tensor_get(weights, q, k);
    }
    tape_end();
    tensor_release(queries);
    scale_restore(y, n, s->y_scale);
    return ok;
}

bool fit_make(Fit *fit, const Sample *sample, double bandwidth, FitAttend attend, void *model) {
    double x[FIT_HEAT], y[FIT_HEAT] = {0};
    memset(fit, 0, sizeof *fit);
    fit->sample = sample;
    fit->bandwidth = bandwidth;
    return ask(sample, 0, fit->x, fit->y, FIT_CURVE, NULL, attend, model) &&
           ask(sample, 0.5, x, y, FIT_HEAT, fit->heat, attend, model);
}

void fit_write_csv(FILE *file, const void *context) {
    const Fit *fit = context;
    csv_write_cell(file, fit->sample->data.name[0]);
    putc(',', file);
    csv_write_cell(file, fit->sample->data.name[1]);
    putc('\n', file);
    for (int i = 0; i < FIT_CURVE; i++) fprintf(file, "%.15g,%.12g\n", fit->x[i], fit->y[i]);
}

/* The upper panel has the points and the curve, the lower panel the weights of each query; both
 * have the same x axis. An interval of x is a whole number of units wide, so that there are no
 * gaps. */
void fit_write_svg(FILE *file, const void *context) {
    const Fit *fit = context;
    const CsvTable *data = &fit->sample->data;
    Scale x = fit->sample->x_scale, y = fit->sample->y_scale;
    double pad = y.max > y.min ? (y.max - y.min) * 0.05 : fmax(fabs(y.max), 1), most = 0;
    Panel curve = {100, 150, 9 * FIT_HEAT, 300, x.min, x.max, y.min - pad, y.max + pad};
    Panel heat = {100, 580, 9 * FIT_HEAT, 9 * FIT_HEAT, x.min, x.max, x.min, x.max};
    const Caption caption = {
        {"Above: measurements, and what the attention answers at each x.",
         "Below: a row is a query x, a column keys x, the colour the weight."}};
    char title[64], key[192], query[192];
    snprintf(title, sizeof title, "Kernel regression, bandwidth %.6g", fit->bandwidth);
    tensor_snprintf(key, sizeof key, "key: %s", data->name[0]);
    tensor_snprintf(query, sizeof query, "query: %s", data->name[0]);
    for (int i = 0; i < FIT_HEAT * FIT_HEAT; i++) most = fmax(most, fit->heat[i]);
    svg_begin(file, 640, 1080, title, caption);
    svg_chart(file, &curve, data->name[0], data->name[1]);
    svg_points(file, &curve, data->column[0], data->column[1], data->num_rows);
    svg_line(file, &curve, fit->x, fit->y, FIT_CURVE);
    svg_heat_map(file, &heat, fit->heat, FIT_HEAT, FIT_HEAT, most);
    svg_axes(file, &heat, key, query);
    svg_colour_bar(file, &heat, most, "weight");
    svg_end(file);
}

void fit_draw(FILE *file, const Fit *fit) {
    const CsvTable *data = &fit->sample->data;
    if (terminal_is(file))
        dots_curve(file, data->column[0], data->column[1], data->num_rows, fit->x, fit->y,
                   FIT_CURVE);
}
