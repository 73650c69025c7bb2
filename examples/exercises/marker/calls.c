/* calls.c - the calls on which an exercise is marked: see calls.h. */
#include "calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers: splitmix64, the same on every system -------------------------------------
 */

static uint64_t next(Random *random) {
    random->state += 0x9e3779b97f4a7c15;
    uint64_t z = random->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

double random_uniform(Random *random, double low, double high) {
    return low + (high - low) * ((double)(next(random) >> 11) * 0x1p-53);
}

bool random_bool(Random *random, double probability) {
    return random_uniform(random, 0, 1) < probability;
}

double random_number(Random *random, double scale) {
    if (scale > 0) return random_uniform(random, -scale, scale);
    const double size = exp(random_uniform(random, log(1e-3), log(30)));
    return random_bool(random, 0.5) ? size : -size;
}

double geometric_score(int i) { return log(0.9 * pow(10, -i)); }

/* ---- one input ------------------------------------------------------------------------------- */

int dy_array(const Exercise *e) {
    for (int i = 0; e->dy && exercise_array(e, i); i++)
        if (strcmp(exercise_array(e, i)->name, e->dy) == 0) return i;
    return -1;
}

static void draw_array(const Exercise *e, Call *call, int array, double scale, Random *random) {
    const Parameter *p = exercise_array(e, array);
    const int64_t n = call_length(e, call, array);
    if (is_output(p) && p->kind != STATE) return;
    for (int64_t i = 0; i < n; i++)
        if (p->kind == MASK) ((bool *)call->array[array])[i] = random_bool(random, 0.6);
        else ((double *)call->array[array])[i] = random_number(random, scale);
}

static bool draw_input(const Exercise *e, Call *call, const Sizes *sizes, Random *random) {
    memcpy(call->size, sizes->size, sizeof call->size);
    if (!call_make(e, call)) return false;
    for (int i = 0; i < MOST_NUMBERS; i++) call->number[i] = random_number(random, 1.5);
    for (int i = 0; exercise_array(e, i); i++) draw_array(e, call, i, sizes->scale, random);
    call->tiny = sizes->scale == TINY || sizes->variant & (GEOMETRIC | TINY_WEIGHTS);
    if (e->prepare) e->prepare(call, sizes, random);
    return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Appends a copy of a call and returns it; NULL if there is no memory. */
static Call *append(const Exercise *e, Calls *calls, const Call *call) {
    Call *longer = realloc(calls->call, ((size_t)calls->n + 1) * sizeof *longer);
    if (!longer) return NULL;
    calls->call = longer;
    if (!call_copy(e, &longer[calls->n], call)) return NULL;
    return &longer[calls->n++];
}

/* Element i of dy, which may be one number. */
static double *dy_at(Call *call, int array, int64_t i) {
    return array < 0 ? &call->number[0] : (double *)call->array[array] + i;
}

/* A NaN in dy, at a masked place, stays. */
static void set_dy(Call *call, int array, int64_t i, double value) {
    double *dy = dy_at(call, array, i);
    if (!isnan(*dy)) *dy = value;
}

/* Some elements of a dense dy are 0. */
static bool append_dense(const Exercise *e, Calls *calls, Call *input, Random *random, int zeros,
                         double scale) {
    const int array = dy_array(e);
    const int64_t n = array < 0 ? 1 : call_length(e, input, array);
    input->dy = DENSE;
    for (int64_t i = 0; i < n; i++)
        set_dy(input, array, i, zeros && i % 2 ? 0 : random_number(random, scale));
    return append(e, calls, input);
}

/* The calls of one input: one-hot, dense, doubled. */
static bool append_input(const Exercise *e, Calls *calls, Call *input, Random *random) {
    const int array = dy_array(e);
    const int64_t n = array < 0 ? 1 : call_length(e, input, array);
    bool ok = true;
    input->dy = ONE_HOT;
    for (int64_t j = 0; j < n && ok; j++) {
        for (int64_t i = 0; i < n; i++) set_dy(input, array, i, i == j);
        ok = append(e, calls, input);
    }
    ok = ok && append_dense(e, calls, input, random, 1, 2) &&
         append_dense(e, calls, input, random, 0, 2);
    input->dy = DOUBLED;
    for (int64_t i = 0; i < n; i++) set_dy(input, array, i, 2 * *dy_at(input, array, i));
    return ok && append(e, calls, input);
}

/* The calls of one input, for a function that is no vjp: several steps. */
static bool append_steps(const Exercise *e, Calls *calls, Call *input, const Sizes *sizes,
                         Random *random) {
    for (int step = 0; step < e->steps; step++) {
        Call *call = append(e, calls, input);
        if (!call) return false;
        call->dy = DENSE;
        call->carries = step > 0;
        for (int i = 0; exercise_array(e, i); i++)
            if (!is_output(exercise_array(e, i))) draw_array(e, input, i, sizes->scale, random);
        input->number[0] *= sizes->variant ? random_uniform(random, 0.4, 1.6) : 1;
    }
    return true;
}

/* One call alone, with a dense dy of this scale. */
static bool append_lone(const Exercise *e, Calls *calls, const Sizes *sizes, double scale,
                        Random *random) {
    Call input = {.lone = true, .input = calls->n ? calls->call[calls->n - 1].input + 1 : 0};
    bool ok = draw_input(e, &input, sizes, random);
    input.measured = e->limited && call_length(e, &input, 0) > 1000;
    if (scale == TINY) input.tiny = true;
    ok = ok && append_dense(e, calls, &input, random, 0, scale);
    call_free(&input);
    return ok;
}

Calls calls_draw(const Exercise *e, uint64_t seed) {
    Calls calls = {0};
    Random random = {seed * 1000003 + (uint64_t)e->number + (e->letter ? 500009 : 0)};
    bool ok = true;
    for (int i = 0; ok && e->inputs[i].size[0]; i++) {
        Call input = {.input = i};
        ok = draw_input(e, &input, &e->inputs[i], &random);
        if (ok && e->steps) ok = append_steps(e, &calls, &input, &e->inputs[i], &random);
        else if (ok) ok = append_input(e, &calls, &input, &random);
        call_free(&input);
    }
    for (const Sizes *s = e->large; ok && s && s->size[0]; s++)
        ok = append_lone(e, &calls, s, 2, &random);
    if (ok && e->dy) ok = append_lone(e, &calls, e->inputs, TINY, &random);
    if (!ok) calls_free(&calls);
    return calls;
}

Calls calls_copy(const Exercise *e, const Calls *calls) {
    Calls copy = {0};
    for (int i = 0; i < calls->n; i++) {
        Call *call = append(e, &copy, &calls->call[i]);
        for (int k = 0; call && exercise_array(e, k); k++)
            if (exercise_array(e, k)->kind == OUTPUT)
                memset(call->array[k], 0, (size_t)call_length(e, call, k) * sizeof(double));
        if (call) continue;
        calls_free(&copy);
        return copy;
    }
    return copy;
}

void calls_free(Calls *calls) {
    for (int i = 0; i < calls->n; i++) call_free(&calls->call[i]);
    free(calls->call);
    *calls = (Calls){0};
}

/* ---- the results ----------------------------------------------------------------------------- */

/* STATE begins as the call before left it. */
static void carry(const Exercise *e, Call *to, const Call *from) {
    for (int k = 0; exercise_array(e, k); k++)
        if (exercise_array(e, k)->kind == STATE)
            memcpy(to->array[k], from->array[k], (size_t)call_length(e, to, k) * sizeof(double));
}

bool mistake_counts(const KnownMistake *mistake, const Call *call) {
    return !mistake->counts || mistake->counts(call);
}

void calls_wrong(const Exercise *e, Calls *calls, const KnownMistake *mistake) {
    for (int i = 0; i < calls->n; i++) {
        if (!mistake_counts(mistake, &calls->call[i])) continue;
        if (calls->call[i].carries) carry(e, &calls->call[i], &calls->call[i - 1]);
        e->call(mistake->backward, &calls->call[i]);
    }
}

void calls_right(const Exercise *e, Calls *calls) {
    calls_wrong(e, calls, &(KnownMistake){.backward = e->source});
}
