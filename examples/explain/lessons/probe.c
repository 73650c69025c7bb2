/* probe.c - what would a lesson compute if one of its numbers were another: see probe.h. */
#include "probe.h"

#include "../page/json.h"
#include "lesson.h"
#include "../page/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 12 };

/* ---- the request ----------------------------------------------------------------------------- */

/* All cells are of one tensor, and have as many points. */
static bool is_as_before(const Probe *p, const char *tensor, long points) {
    if (p->num_cells == 0) return true;
    if (strcmp(tensor, p->tensor) != 0 || points != p->points)
        return tensor_fail("probe of %s, %ld points: the request has one of %s, %d points", tensor,
                           points, p->tensor, p->points);
    if (p->num_cells == PROBE_CELLS)
        return tensor_fail("probe of %s: at most %d elements can change at once", tensor,
                           PROBE_CELLS);
    return true;
}

bool probe_read(Probe *p, const char *text) {
    ProbeCell cell;
    char *end;
    char *name;
    errno = 0;
    cell.index = strtoll(text, &end, 10);
    cell.from = strtod(end, &end);
    cell.to = strtod(end, &end);
    const long points = strtol(end, &name, 10);
    if (errno || name == end || *name != ' ' || !name[1] || !isfinite(cell.from) ||
        !isfinite(cell.to))
        return tensor_fail("\"%s\" is no probe: it must be an index, two numbers, how many points, "
                           "and a name",
                           text);
    if (points < 1 || points > PROBE_POINTS)
        return tensor_fail("probe of %s: %ld points: it must be an integer from 1 to %d", name + 1,
                           points, PROBE_POINTS);
    if (!is_as_before(p, name + 1, points)) return false;
    p->points = (int)points;
    p->tensor = name + 1;
    p->cells[p->num_cells++] = cell;
    return true;
}

bool probe_show(Probe *p, const char *name) {
    if (p->num_shown == PROBE_SHOWN)
        return tensor_fail("show %s: at most %d tensors can be shown", name, PROBE_SHOWN);
    p->shown[p->num_shown++] = name;
    return true;
}

/* ---- the lines after the number -------------------------------------------------------------- */

/* The lines that compute what depends on a tensor, in order. */
typedef struct {
    int line[MOST_TENSORS], count;
} Path;

/* The tensors whose numbers change. */
typedef struct {
    const Tensor *tensor[MOST_TENSORS];
    int count;
} Changing;

static bool changes(const Changing *c, const Tensor *x) {
    int i = 0;
    while (i < c->count && c->tensor[i] != x) i++;
    return i < c->count;
}

/* An input of the line that changes; NULL if there is none. An error if the line also reads what
 * the first of them is a view of: its numbers would change, too. */
static const Tensor *changing_input(const TapeLine *line, const Changing *c) {
    const Tensor *found = NULL;
    for (int k = 0; k < line->n_in; k++)
        if (changes(c, line->in[k])) found = line->in[k];
    for (int k = 0; k < line->n_in && found; k++)
        if (line->in[k] && line->in[k]->storage == c->tensor[0]->storage &&
            !changes(c, line->in[k]))
            return tensor_fail("probe of %s: %s shares its numbers with %s", c->tensor[0]->name,
                               line->in[k]->name, c->tensor[0]->name);
    return found;
}

/* A view changes with what it is a view of: it is on no path. */
static bool find_path(Path *path, const Tensor *x) {
    Changing c = {{x}, 1};
    TapeLine line;
    for (int i = 0; tape_line(i, &line) && c.count < MOST_TENSORS; i++) {
        const Tensor *from = changing_input(&line, &c);
        if (!from) continue;
        c.tensor[c.count++] = line.out;
        if (line.out->storage != from->storage) path->line[path->count++] = i;
    }
    if (c.count == MOST_TENSORS) tensor_fail("probe of %s: raise MOST_TENSORS", x->name);
    return !tensor_error();
}

static void run_path(const Path *path) {
    TapeLine line;
    for (int i = 0; i < path->count && tape_line(path->line[i], &line); i++) {
        Tensor *y = tape_forward(path->line[i]);
        if (y) tensor_copy_from(line.out, y);
        tensor_release(y);
    }
}

/* ---- the numbers ----------------------------------------------------------------------------- */

/* The numbers of a tensor: those on the tape, then those of each point. */
typedef struct {
    const Tensor *x;
    int64_t size;
    double *numbers;
} Series;

static bool series_begin(Series *s, const Tensor *x, int points) {
    s->x = x;
    s->size = x ? tensor_numel(x) : 0;
    s->numbers = x ? malloc(sizeof(double) * (size_t)s->size * (size_t)(points + 1)) : NULL;
    if (x && !s->numbers) tensor_fail("out of memory");
    return s->numbers && tensor_to_doubles(x, s->numbers);
}

static double number_at(const Series *s, int point, int64_t i) {
    return s->numbers[(point + 1) * s->size + i];
}

/* Is it another number than on the tape, at some point? */
static bool is_moved(const Series *s, int points, int64_t i) {
    const double before = s->numbers[i];
    int p = 0;
    while (p < points &&
           (number_at(s, p, i) == before || (isnan(before) && isnan(number_at(s, p, i)))))
        p++;
    return p < points;
}

/* The tensor that changes, and what follows from it. */
typedef struct {
    const Probe *probe;
    Tensor *x;
    double before[PROBE_CELLS]; /* its elements on the tape */
    Path path;
} Run;

/* Sets element number c of the probe's cells to its number at a point, and `more`. */
static void set_cell(const Run *run, int c, int point, double more) {
    const Probe *p = run->probe;
    const ProbeCell *cell = &p->cells[c];
    const double share = p->points > 1 ? (double)point / (p->points - 1) : 0;
    const double added = cell->from + (cell->to - cell->from) * share;
    tensor_set_at(run->x, run->before[c] + added + more, lesson_place(run->x->shape, cell->index));
}

static double loss_with(const Run *run, int point, double more, const Tensor *loss) {
    set_cell(run, 0, point, more);
    run_path(&run->path);
    return tensor_error() ? (double)NAN : tensor_item(loss);
}

/* How fast the loss changes with the first cell, by a difference of two near losses. */
static double slope_at(const Run *run, int point, const Tensor *loss) {
    const double h = 1e-5;
    return (loss_with(run, point, h, loss) - loss_with(run, point, -h, loss)) / (2 * h);
}

/* series[0] is the loss. slopes: has room for each point. */
static void run_points(const Run *run, Series *series, int n, double *slopes) {
    for (int i = 0; i < run->probe->points && !tensor_error(); i++) {
        for (int c = 1; c < run->probe->num_cells; c++) set_cell(run, c, i, 0);
        slopes[i] = slope_at(run, i, series[0].x);
        loss_with(run, i, 0, series[0].x);
        for (int s = 0; s < n && !tensor_error(); s++)
            tensor_to_doubles(series[s].x, series[s].numbers + (i + 1) * series[s].size);
    }
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void write_series(FILE *file, const Series *s, int points, int64_t i) {
    double numbers[PROBE_POINTS];
    for (int p = 0; p < points; p++) numbers[p] = number_at(s, p, i);
    json_write_numbers(file, numbers, points, DIGITS);
}

static void write_shown(FILE *file, const char *name, const Series *s, int points) {
    const char *before = "";
    fprintf(file, "{\"name\":");
    json_write_string(file, name);
    fprintf(file, ",\"moved\":[");
    for (int64_t i = 0; i < s->size; i++) {
        if (!is_moved(s, points, i)) continue;
        fprintf(file, "%s%" PRId64, before, i);
        before = ",";
    }
    fprintf(file, "],\"values\":[");
    before = "";
    for (int64_t i = 0; i < s->size; i++) {
        if (!is_moved(s, points, i)) continue;
        fputs(before, file);
        write_series(file, s, points, i);
        before = ",\n";
    }
    fprintf(file, "]}");
}

/* series[0] is the loss. */
static void write_answer(FILE *file, const Series *series, const double *slopes, const Probe *p) {
    fprintf(file, "{\"probe\":{\"losses\":");
    write_series(file, &series[0], p->points, 0);
    fprintf(file, ",\n\"slopes\":");
    json_write_numbers(file, slopes, p->points, DIGITS);
    fprintf(file, ",\n\"shown\":[");
    for (int i = 0; i < p->num_shown; i++) {
        if (i) fprintf(file, ",\n");
        write_shown(file, p->shown[i], &series[i + 1], p->points);
    }
    fprintf(file, "]}}\n");
}

static Tensor *find_tensor(const Lesson *l, const char *name) {
    Tensor *x = lesson_tensor(l, name);
    return x ? x : tensor_fail("lesson %d has no tensor with the name %s", l->number, name);
}

/* Finds the tensor, its elements and its path. */
static bool find_run(Run *run, const Lesson *l) {
    const Probe *p = run->probe;
    run->x = find_tensor(l, p->tensor);
    if (run->x && run->x->dtype != F64)
        tensor_fail("probe of %s: only a float can change by a little", p->tensor);
    for (int c = 0; c < p->num_cells && !tensor_error(); c++) {
        const int64_t i = p->cells[c].index;
        if (i < 0 || i >= tensor_numel(run->x))
            tensor_fail("lesson %d: %s is %s: it has no element %" PRId64, l->number, p->tensor,
                        tensor_shape_text(run->x->shape), i);
        else run->before[c] = lesson_element(run->x, i);
    }
    return !tensor_error() && find_path(&run->path, run->x);
}

static void probe_open_lesson(const Lesson *l, const Probe *p, FILE *file) {
    Series series[PROBE_SHOWN + 1] = {{0}};
    double slopes[PROBE_POINTS];
    Run run = {.probe = p};
    bool done = find_run(&run, l) && series_begin(&series[0], find_tensor(l, "loss"), p->points);
    for (int i = 0; i < p->num_shown && done; i++)
        done = series_begin(&series[i + 1], find_tensor(l, p->shown[i]), p->points);
    if (done) run_points(&run, series, p->num_shown + 1, slopes);
    if (!tensor_error()) write_answer(file, series, slopes, p);
    for (int i = 0; i <= p->num_shown; i++) free(series[i].numbers);
}

char *probe_as_json(int number, LessonOptions options, const Probe *p) {
    Lesson lesson;
    char *json;
    FILE *file = data_open(&json);
    options.train = false;
    options.only_tape = true;
    if (lesson_open(&lesson, number, options) && file) probe_open_lesson(&lesson, p, file);
    lesson_close(&lesson);
    return data_close(file, json);
}
