/* loop.c - the lines of a training loop, pressed one by one: see loop.h. */
#include "loop.h"

#include "../page/json.h"
#include "sgd.h"
#include "tell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PRESSES = 40, REFUSED = 200 };

typedef struct {
    Lesson *l;
    FILE *json;
    Tensor *leaf[MOST_TENSORS];
    int num_leaves;
    int64_t look;  /* the element of the shown leaf that the sentences name: its largest gradient */
    int backwards; /* since zero_grad */
    bool is_mixed; /* and they were of different weights */
    bool is_old;   /* the weights have changed since the tape was made */
} Loop;

static double grad_now(const Loop *loop) {
    const double dw = lesson_grad(loop->l->kind->loop, loop->look);
    return isnan(dw) ? 0 : dw; /* zero_grad lets it go */
}

/* ---- what is said ---------------------------------------------------------------------------- */

static const char *say_backward_again(const Loop *loop, double before) {
    const char *name = lesson_short_name(loop->l, loop->l->kind->loop);
    const double now = grad_now(loop);
    const Number was = number_with(before, 2), is = number_with(now, 2);
    if (loop->backwards == 1)
        return text_of(
            "Nothing was there, so each gradient is that of this run alone: one of `d%s` is %s.",
            name, show(now));
    if (loop->is_mixed)
        return text_of(
            "It adds to what is there: the gradients are a sum of %d runs, and not all had these weights.",
            loop->backwards);
    return text_of(
        "It adds to what is there: for one number of `%s`, %s. Every gradient is %d times "
        "that of one run.",
        name, show_sum(was, number_with(now - before, 2), is), loop->backwards);
}

static const char *say_step(const Loop *loop, double before) {
    const double rate = loop->l->options.rate, dw = grad_now(loop);
    const char *name = loop->l->kind->loop;
    const char *how = "by a sum of old and new gradients";
    if (!loop->is_mixed) how = text_of("%d times as far as it should", loop->backwards);
    if (!loop->is_mixed && loop->backwards == 1) how = "as far as it should";
    if (loop->backwards == 0) return "There is no gradient, so each weight stays.";
    return text_of(
        "Each weight goes %s: one number of `%s` is %s. The tape still holds the numbers from before "
        "the step: press forward.",
        how, lesson_short_name(loop->l, name),
        show_subtraction(number_with(before, 3), number(rate), number_with(dw, 3),
                         number_with(lesson_value(name, loop->look), 3)));
}

/* The library's sentence has the names of its ops; the reader has those of the page. */
static const char *say_refused(const Loop *loop) {
    char sentence[REFUSED];
    if (!loop->is_old) return NULL;
    snprintf(sentence, sizeof sentence, "%s", tensor_error());
    tensor_clear_error();
    return tensor_fail("%s. Here sgd_step has written over %s and the other weights: press forward "
                       "first, loss = model(x); it makes a new tape",
                       sentence, lesson_short_name(loop->l, loop->l->kind->loop));
}

/* ---- a press --------------------------------------------------------------------------------- */

static void run_forward(Loop *loop) {
    tape_end();
    tape_begin();
    tape_keep_grads(true);
    lesson_forward(loop->l);
    loop->is_old = false;
}

static void zero(Loop *loop) {
    for (int i = 0; i < loop->num_leaves; i++) ag_zero_grad(loop->leaf[i]);
    loop->backwards = 0;
    loop->is_mixed = false;
}

/* Returns what is said of it. */
static const char *press(Loop *loop, char line) {
    const double weight = lesson_value(loop->l->kind->loop, loop->look), before = grad_now(loop);
    const char *said;
    switch (line) {
    case 'f':
        run_forward(loop);
        return text_of(
            "A new tape: its loss is %s. The gradients are as they were, since forward changes none.",
            show(lesson_value("loss", 0)));
    case 'b':
        if (!ag_backward(tensor_on_tape("loss"))) return say_refused(loop);
        loop->backwards++;
        return say_backward_again(loop, before);
    case 's':
        sgd_step(loop->l->options.rate, false);
        said = say_step(loop, weight);
        loop->is_mixed = loop->backwards > 0;
        loop->is_old = loop->is_old || loop->is_mixed;
        return said;
    case 'z':
        zero(loop);
        return "All gradients are 0, and the weights stay. The next backward begins anew.";
    default: return tensor_fail("loop: '%c' is no press: it must be f, b, s or z", line);
    }
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* x: NULL for zeros. */
static void write_numbers(const Loop *loop, const char *key, int64_t n, const Tensor *x) {
    fprintf(loop->json, ",\"%s\":[", key);
    for (int64_t i = 0; i < n; i++) {
        if (i) putc(',', loop->json);
        json_write_number(loop->json, x ? lesson_element(x, i) : 0, 17);
    }
    putc(']', loop->json);
}

static void write_state(const Loop *loop, const char *pressed, const char *said) {
    fprintf(loop->json, "{\"press\":\"%s\",\"backwards\":%d", pressed, loop->backwards);
    write_numbers(loop, "loss", 1, tensor_on_tape("loss"));
    if (loop->is_mixed) fprintf(loop->json, ",\"mixed\":true");
    json_write_member(loop->json, "says", said);
    fprintf(loop->json, ",\"leaves\":[");
    for (int i = 0; i < loop->num_leaves; i++) {
        const Tensor *x = loop->leaf[i];
        fprintf(loop->json, "%s{\"tensor\":%d", i ? "," : "", data_number(x));
        write_numbers(loop, "value", tensor_numel(x), x);
        write_numbers(loop, "grad", tensor_numel(x), x->grad);
        putc('}', loop->json);
    }
    fprintf(loop->json, "]}");
}

static void write_lines(const Loop *loop) {
    FILE *json = loop->json;
    fprintf(json, "{\"leaf\":%d,\"lines\":[", data_number(tensor_on_tape(loop->l->kind->loop)));
    fprintf(json, "{\"press\":\"f\",\"code\":\"loss = model(x)\",\"does\":\"makes the tape\"},");
    fprintf(json, "{\"press\":\"b\",\"code\":\"ag_backward(loss)\",\"does\":\"grad += dW\"},");
    fprintf(json, "{\"press\":\"s\",\"code\":\"sgd_step(%g)\",\"does\":\"W -= rate x grad\"},",
            loop->l->options.rate);
    fprintf(json,
            "{\"press\":\"z\",\"code\":\"zero_grad()\",\"does\":\"grad = 0\"}],\n\"states\":[");
}

static void press_all(Lesson *l, FILE *json, const char *presses) {
    Loop loop = {.l = l, .json = json, .look = largest_grad(l->kind->loop), .backwards = 1};
    loop.num_leaves = sgd_leaves(loop.leaf);
    write_lines(&loop);
    write_state(&loop, "", "");
    for (; *presses && !tensor_error(); presses++) {
        const char *said = press(&loop, *presses);
        fprintf(json, ",\n");
        if (!tensor_error()) write_state(&loop, (char[]){*presses, '\0'}, said);
    }
    fprintf(json, "]");
}

char *loop_as_json(int number, LessonOptions options, const char *presses) {
    Lesson l;
    char *json;
    FILE *file = data_open(&json);
    options.train = false;
    options.only_tape = true;
    if (strlen(presses) > MOST_PRESSES)
        tensor_fail("loop: at most %d lines can be pressed", MOST_PRESSES);
    const bool opened = lesson_open(&l, number, options);
    if (opened && !l.kind->loop) tensor_fail("lesson %d has no loop", number);
    if (!tensor_error() && file) press_all(&l, file, presses);
    if (!tensor_error() && file) fprintf(file, "}");
    lesson_close(&l);
    return data_close(file, json);
}

void loop_write(const Lesson *l, FILE *file) {
    const char *course = text_of(
        "%d steps, at the rate %g. With zero_grad the loss comes to %s; without it each step adds all old "
        "gradients, too: %s.",
        LOOP_STEPS, l->options.rate, show(lesson_losses(l)[LOOP_STEPS]),
        show(l->unzeroed[LOOP_STEPS]));
    fprintf(file, ",\n\"loop\":%.*s", (int)strlen(l->loop) - 1, l->loop);
    json_write_member(file, "course", course);
    lesson_write_losses(file, "unzeroed", l->unzeroed, LOOP_STEPS + 1);
    putc('}', file);
}
