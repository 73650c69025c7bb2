/* lesson.c - what all lessons share: options, their tensors, training, and the lesson as JSON. See
 * lesson.h. */
#include "lesson.h"

#include "../page/json.h"
#include "../page/plan_json.h"
#include "../page/recording.h"
#include "loop.h"
#include "../rules/rule_card.h"
#include "sgd.h"
#include "tell.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const LessonKind *const kinds[] = {&lesson_1, &lesson_2, &lesson_3, &lesson_3b,
                                          &lesson_4, &lesson_5, &lesson_6};
enum { KINDS = sizeof kinds / sizeof *kinds };

double lesson_scale(const Lesson *l) {
    return l->options.no_scale ? 1 : 1 / sqrt((double)l->options.size);
}

const char *lesson_scores(const Lesson *l) { return l->options.no_scale ? "S" : "S / sqrt(d)"; }
const char *lesson_weights(const Lesson *l) { return l->options.dropout > 0 ? "dropout(A)" : "A"; }

/* ---- tensors --------------------------------------------------------------------------------- */

Shape lesson_place(Shape shape, int64_t i) {
    Shape index = {.ndim = shape.ndim};
    for (int d = shape.ndim - 1; d >= 0; d--) {
        index.dim[d] = i % shape.dim[d];
        i /= shape.dim[d];
    }
    return index;
}

/* Makes the edits of a leaf; a later look of a card has other numbers in it. */
static void edit(Lesson *l, Tensor *x) {
    if (l->options.card > 1) {
        rule_draw(x, &l->drawn);
        return;
    }
    for (int i = 0; i < l->options.num_edits && !tensor_error(); i++) {
        const LessonEdit *e = &l->options.edits[i];
        if (strcmp(e->name, x->name) != 0) continue;
        if (e->index < 0 || e->index >= tensor_numel(x))
            tensor_fail("lesson %d: %s is %s: it has no element %" PRId64, l->number, e->name,
                        tensor_shape_text(x->shape), e->index);
        else tensor_set_at(x, e->value, lesson_place(x->shape, e->index));
    }
}

Tensor *lesson_own(Lesson *l, const char *name, Tensor *x) {
    if (!x) return NULL;
    if (l->num_made < l->num_owned) {
        tensor_release(x);
        return l->owned[l->num_made++];
    }
    if (l->num_owned == LESSON_TENSORS) {
        tensor_release(x);
        return tensor_fail("lesson %d: raise LESSON_TENSORS", l->number);
    }
    l->owned[l->num_owned++] = x;
    l->num_made = l->num_owned;
    ag_name(x, name);
    edit(l, x);
    return x;
}

void lesson_own_model(Lesson *l, void *model) {
    l->model = model;
    for (ModuleSlot *p = NULL; model && !tensor_error() && nn_next_parameter(model, "", &p);) {
        char name[sizeof((*p->slot)->name)];
        memcpy(name, (*p->slot)->name, sizeof name);
        ag_requires_grad(ag_name(*p->slot, name));
        edit(l, *p->slot);
    }
}

static bool is_leaf(const Lesson *l, const char *name) {
    for (int i = 0; i < l->num_owned; i++)
        if (strcmp(l->owned[i]->name, name) == 0) return true;
    for (ModuleSlot *p = NULL; l->model && nn_next_parameter(l->model, "", &p);)
        if (strcmp((*p->slot)->name, name) == 0) return true;
    return false;
}

/* Does each edit name a leaf? */
static bool check_edits(const Lesson *l) {
    for (int i = 0; i < l->options.num_edits && !tensor_error(); i++)
        if (!is_leaf(l, l->options.edits[i].name))
            tensor_fail("lesson %d has no leaf with the name %s", l->number,
                        l->options.edits[i].name);
    return !tensor_error();
}

Tensor *lesson_leaf(Lesson *l, const char *name, Tensor *x) {
    return ag_requires_grad(lesson_own(l, name, x));
}

Tensor *lesson_data(Lesson *l, const char *name, double std, Shape shape) {
    double numbers[4096];
    Tensor *x = tensor_normal(0, std, shape);
    const int64_t n = x ? tensor_numel(x) : 0;
    assert(n <= 4096);
    if (tensor_error()) {
        tensor_release(x);
        return NULL;
    }
    tensor_to_doubles(x, numbers);
    tensor_release(x);
    for (int64_t i = 0; i < n; i++) {
        const double tenths = round(numbers[i] * 10);
        numbers[i] = (tenths == 0 ? 1 : tenths) / 10;
    }
    return lesson_own(l, name, tensor_from_doubles(shape, numbers));
}

Tensor *lesson_draw(Lesson *l, const char *name, double std, Shape shape) {
    return ag_requires_grad(lesson_data(l, name, std, shape));
}

Tensor *lesson_loss(Tensor *y, Tensor *t, Tensor *counts) {
    Tensor *difference = ag_name(ag_sub(y, t), "E");
    Tensor *squares = ag_name(ag_square(difference), "E^2");
    if (counts) squares = ag_name(ag_mul(squares, counts), "counted");
    return ag_name(ag_sum(squares), "loss");
}

double lesson_element(const Tensor *x, int64_t i) {
    if (!x || i >= tensor_numel(x)) return (double)NAN;
    return tensor_get_at(x, lesson_place(x->shape, i));
}

double lesson_value(const char *name, int64_t i) { return lesson_element(tensor_on_tape(name), i); }

double lesson_grad(const char *name, int64_t i) {
    const Tensor *x = tensor_on_tape(name);
    return lesson_element(x ? x->grad : NULL, i);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The names in formulas beside those of the tape: short ones, and d. */
static void find_aliases(Lesson *l) {
    const NamePair *shorts = l->kind->shorts;
    int n = 0;
    for (; n < LESSON_SHORTS && shorts[n].name; n++)
        l->aliases[n] = (RuleAlias){.alias = shorts[n].other, .tensor = shorts[n].name};
    if (l->options.size > 0)
        l->aliases[n++] = (RuleAlias){.alias = "d", .number = (double)l->options.size};
    l->planting.aliases = l->aliases;
    l->planting.num_aliases = n;
}

const char *lesson_short_name(const Lesson *l, const char *name) {
    const NamePair *pair = l->kind->shorts;
    for (; pair->name; pair++)
        if (strcmp(pair->name, name) == 0) return pair->other;
    return name;
}

Tensor *lesson_tensor(const Lesson *l, const char *name) {
    const NamePair *shorts = l->kind->shorts;
    Tensor *x = tensor_on_tape(name);
    for (int i = 0; i < LESSON_SHORTS && shorts[i].name && !x; i++)
        if (strcmp(shorts[i].other, name) == 0) x = tensor_on_tape(shorts[i].name);
    return x;
}

/* Plants a formula of the options. One that does not fit is left out with options.any_lesson. */
static void plant_formula(Lesson *l, int i) {
    *l->refusals[i] = '\0';
    if (rule_plant(&l->planting, l->options.formulas[i]) || !l->options.any_lesson) return;
    if (strncmp(tensor_error(), "rule ", 5) != 0) return; /* memory is out */
    snprintf(l->refusals[i], sizeof l->refusals[i], "%s", tensor_error());
    tensor_clear_error();
}

/* Plants the formulas of the options, and the wrong rule. */
static void plant(Lesson *l) {
    rule_free(&l->planting);
    if (!l->any_rule) return;
    if (l->rule && wrong_apply(l->rule, &l->planting) == 0) l->rule = NULL;
    for (int i = 0; i < l->options.num_formulas && !tensor_error(); i++) plant_formula(l, i);
    l->any_rule = l->planting.first != NULL;
}

/* The seed is set each time, so dropout drops the same weights in every step of training. */
Tensor *lesson_forward(Lesson *l) {
    tensor_manual_seed(l->options.seed);
    l->num_made = 0;
    Tensor *loss = ag_name(l->kind->build(l), "loss");
    plant(l);
    return loss;
}

static Tensor *run(Lesson *l) {
    Tensor *loss = lesson_forward(l);
    ag_backward(loss);
    return loss;
}

/* Takes so many steps. losses: gets the loss of each step, or is NULL. */
static void train(Lesson *l, int64_t steps, double *losses, bool zeroes) {
    for (int64_t i = 0; i < steps && !tensor_error(); i++) {
        tape_begin();
        tape_keep_grads(l->any_rule); /* a formula can read what no backward reads */
        const Tensor *loss = run(l);
        if (losses && !tensor_error()) losses[i] = tensor_item(loss);
        sgd_step(l->options.rate, zeroes);
        tape_end();
    }
}

/* Frees the leaves and the model: the next run draws them anew. */
static void let_go(Lesson *l) {
    while (l->num_owned > 0) tensor_release(l->owned[--l->num_owned]);
    nn_free(l->model);
    l->model = NULL;
}

/* All trainings begin with the same numbers. */
static void train_for_losses(Lesson *l) {
    const bool any_rule = l->any_rule;
    l->any_rule = false;
    train(l, LESSON_STEPS, l->right, true);
    let_go(l);
    l->any_rule = any_rule;
    if (any_rule) train(l, LESSON_STEPS, l->wrong, true);
    let_go(l);
    if (l->kind->loop) train(l, LOOP_STEPS + 1, l->unzeroed, false);
    let_go(l);
}

const double *lesson_losses(const Lesson *l) { return l->any_rule ? l->wrong : l->right; }

static const LessonKind *find_kind(int number, char part) {
    for (int i = 0; i < KINDS; i++)
        if (kinds[i]->number == number && kinds[i]->part == (part == 'b' ? 'b' : '\0'))
            return kinds[i];
    return NULL;
}

bool lesson_has_part(int number, char part) { return find_kind(number, part) != NULL; }

/* The words say how many tokens there are, unless a size is given: each word is a key, and the
 * first words are the queries. */
static bool take_words(Lesson *l) {
    LessonOptions *o = &l->given;
    const LessonOptions *own = &l->kind->own;
    if (!words_read(&l->words, o->words)) return false;
    const int64_t n = l->words.count + (l->words.count > 0 && l->kind->is_padded);
    if (n > 0 && own->tokens && !o->tokens) o->tokens = n;
    if (n > 0 && own->keys && !o->keys) o->keys = n;
    if (n > 0 && own->queries && !o->queries) o->queries = n < own->queries ? n : own->queries;
    return true;
}

/* The options in use, and their limits. False and an error if a size is above its limit. */
static bool choose_options(Lesson *l) {
    const LessonOptions given = l->given;
    if (!take_words(l)) return false;
    LessonOptions own = l->kind->own;
    own.rate = l->kind->rates[0];
    l->options = lesson_or_own(l->given, own);
    l->pad = l->options.lengths ? l->options.keys - 1 : 0;
    if (!l->kind->is_padded || l->options.keys <= 1) l->pad = -1;
    l->given = given; /* for the command */
    return settings_check_sizes(l->number, &l->options);
}

bool lesson_open(Lesson *l, int number, LessonOptions options) {
    const LessonKind *kind = find_kind(number, options.part);
    *l = (Lesson){.number = number, .kind = kind, .given = options};
    tensor_set_default_dtype(F64);
    if (!kind) return tensor_fail("lesson %d has no part b", number);
    if (!choose_options(l)) return false;
    if (options.rule && *options.rule) {
        l->rule = wrong_find(options.rule);
        if (!l->rule) return tensor_fail("there is no rule \"%s\"", options.rule);
    }
    l->any_rule = l->rule || options.num_formulas > 0;
    find_aliases(l);
    l->drawn = (uint64_t)options.card;
    if (options.train || (kind->shows_losses && !options.only_tape)) train_for_losses(l);
    const int64_t steps = l->options.step;
    train(l, steps > 0 || options.only_tape ? steps : 2, l->losses, true);
    if (steps == 0) let_go(l); /* the second step has the loss after the first */
    tape_begin();
    tape_keep_grads(true);
    const Tensor *loss = run(l);
    if (!tensor_error()) l->losses[steps] = tensor_item(loss);
    if (!check_edits(l) || !rule_judge(&l->planting)) return false;
    l->is_wrong = l->rule || !rule_all_right(&l->planting);
    l->given.rule = l->rule ? wrong_key(l->rule) : NULL; /* for the command */
    return true;
}

void lesson_close(Lesson *l) {
    tape_end();
    rule_free(&l->planting);
    let_go(l);
}

/* A line of the formula: with --no-scale it has no scale. */
static void write_formula_line(const Lesson *l, const char *line, FILE *file) {
    static const char scale[] = " / sqrt(d)";
    char text[128];
    const char *at = l->options.no_scale ? strstr(line, scale) : NULL;
    snprintf(text, sizeof text, "%.*s%s", at ? (int)(at - line) : 0, line,
             at ? at + strlen(scale) : line);
    json_write_string(file, text);
}

static void write_formula(const Lesson *l, FILE *file) {
    const char *const *formula = l->options.additive ? l->kind->additive : l->kind->formula;
    fprintf(file, ",\n\"formula\":[");
    for (int i = 0; i < 6 && formula[i]; i++) {
        if (i) putc(',', file);
        write_formula_line(l, formula[i], file);
    }
    putc(']', file);
}

void lesson_write_losses(FILE *file, const char *key, const double *losses, int64_t n) {
    fprintf(file, ",\n\"%s\":", key);
    json_write_numbers(file, losses, n, 6);
}

static void write_training(const Lesson *l, FILE *file) {
    fprintf(file, ",\n\"training\":{\"rate\":%g", l->options.rate);
    lesson_write_losses(file, "right", l->right, LESSON_STEPS);
    if (l->any_rule) lesson_write_losses(file, "wrong", l->wrong, LESSON_STEPS);
    putc('}', file);
}

bool lesson_write_json(Lesson *l, FILE *file) {
    if (tensor_error()) return false;
    l->json = file;
    fprintf(file, "{\"number\":%d", l->number);
    if (l->kind->part) fprintf(file, ",\"part\":\"%c\"", l->kind->part);
    json_write_member(file, "title", l->kind->title);
    json_write_member(file, "idea", l->kind->idea);
    tell_write_cover(l);
    write_formula(l, file);
    json_write_member(file, "source", l->kind->source);
    json_write_member(file, "columns", l->kind->columns);
    json_write_member(file, "exercise", l->kind->exercise);
    tell_write_names(l);
    if (l->num_again > 0) {
        fprintf(file, ",\n\"again\":");
        again_write(file, l->again, l->num_again);
    }
    tell_write_steps(l);
    tell_write_questions(l);
    if (l->experiments) fprintf(file, ",\n\"experiments\":[%s]", l->experiments);
    if (l->loop) loop_write(l, file);
    if (l->kind->shows_losses) lesson_write_losses(file, "losses", lesson_losses(l), LESSON_STEPS);
    sgd_write(l, file);
    if (l->options.train) write_training(l, file);
    settings_write_command(file, l->number, &l->given);
    settings_write(file, l->number, &l->options);
    json_write_member(file, "rule", l->rule ? wrong_key(l->rule) : "");
    rule_write(&l->planting, file);
    fprintf(file, ",\n\"tape\":");
    if (!tape_write_json(file) || !rule_write_right(&l->planting, file)) return false;
    putc('}', file);
    if (ferror(file)) tensor_fail("the lesson could not be written");
    return !tensor_error();
}

static void write_help(FILE *file) {
    for (int i = 0; i < rule_num_help; i++) {
        fprintf(file, "%s{\"text\":", i ? ",\n" : "");
        json_write_string(file, rule_help[i].text);
        json_write_member(file, "says", rule_help[i].says);
        putc('}', file);
    }
}

char *lesson_box_as_json(int number, LessonOptions options) {
    Lesson lesson;
    char *json;
    FILE *file = data_open(&json);
    options.train = false;
    options.only_tape = true;
    if (lesson_open(&lesson, number, options) && file) {
        fprintf(file, "{\"box\":{\"help\":[");
        write_help(file);
        putc(']', file);
        rule_write(&lesson.planting, file);
        rule_write_places(&lesson.planting, file);
        fprintf(file, "}}\n");
    }
    lesson_close(&lesson);
    return data_close(file, json);
}

char *lesson_card_as_json(int number, LessonOptions options) {
    Card card;
    char *json;
    FILE *file = data_open(&json);
    bool more = card_begin(&card, options.formulas, options.num_formulas) && file;
    options.num_formulas = 0;
    options.rule = NULL;
    options.only_tape = true;
    for (options.card = 1; options.card <= CARD_LOOKS && more; options.card++) {
        Lesson lesson;
        if (options.card > 1) options.step = 0;
        more = lesson_open(&lesson, number, options) && card_look(&card, &lesson.planting);
        lesson_close(&lesson);
    }
    if (more) fprintf(file, "{\"card\":");
    if (more) card_write(&card, file);
    if (more) fprintf(file, "}\n");
    return data_close(file, json);
}

/* What is in use in at least one lesson: the wrong rule, and of the formulas those without a
 * refusal. */
typedef struct {
    bool rule;
    char refusals[LESSON_FORMULAS][320];
} InUse;

/* A refusal that names a column comes from a lesson that has the line. */
static void note_refusals(const Lesson *l, InUse *used, bool is_first) {
    for (int i = 0; i < l->options.num_formulas; i++) {
        const char *refusal = l->refusals[i];
        char *kept = used->refusals[i];
        if (is_first || !*refusal || (*kept && strstr(refusal, ", column ")))
            memcpy(kept, refusal, sizeof used->refusals[i]);
    }
}

/* One lesson as JSON, without its plan; NULL and an error on failure. */
static char *lesson_as_json(const LessonKind *kind, LessonOptions options, InUse *used,
                            bool is_first) {
    Lesson lesson;
    char *json;
    char *experiments =
        options.experiments ? options.experiments(kind->number, kind->part, options) : NULL;
    char *loop = kind->loop ? loop_as_json(kind->number, options, LOOP_SHOWN) : NULL;
    FILE *file = data_open(&json);
    options.part = kind->part;
    Again again[AGAIN_MOST] = {0};
    const int num_again = again_draw(kind->number, kind->part, 0, again);
    const bool opened = lesson_open(&lesson, kind->number, options);
    lesson.again = again;
    lesson.num_again = num_again;
    lesson.experiments = experiments;
    lesson.loop = loop;
    used->rule |= opened && lesson.rule;
    if (opened) note_refusals(&lesson, used, is_first);
    if (opened && file) lesson_write_json(&lesson, file);
    lesson_close(&lesson);
    free(experiments);
    free(loop);
    return data_close(file, json);
}

static bool is_asked(const LessonKind *kind, int first, int last, char part) {
    if (kind->number < first || kind->number > last) return false;
    return !part || find_kind(kind->number, part) == kind;
}

/* An error if a rule is in use in no lesson. */
static void check_use(const InUse *used, const LessonOptions *options, int first, int last) {
    const bool wants_rule = first == last && options->rule && *options->rule;
    if (wants_rule && !used->rule)
        tensor_fail("lesson %d has no line that the wrong rule %s changes", first, options->rule);
    for (int i = 0; i < options->num_formulas && !tensor_error(); i++)
        if (*used->refusals[i]) tensor_fail("%s", used->refusals[i]);
}

bool lessons_use(int first, int last, LessonOptions options, LessonUse use, void *context) {
    char *lessons[KINDS] = {NULL};
    InUse used = {0};
    int asked = 0, made = 0;
    for (int i = 0; i < KINDS; i++) asked += is_asked(kinds[i], first, last, options.part);
    options.any_lesson = asked > 1;
    for (int i = 0; i < KINDS && !tensor_error(); i++) {
        if (!is_asked(kinds[i], first, last, options.part)) continue;
        lessons[made] = lesson_as_json(kinds[i], options, &used, made == 0);
        made++;
    }
    if (!tensor_error()) check_use(&used, &options, first, last);
    bool more = !tensor_error();
    for (int i = 0; i < made && more; i++) more = use(context, lessons[i]);
    for (int i = 0; i < made; i++) free(lessons[i]);
    return more;
}

/* The lessons of a page, one after the other. */
typedef struct {
    FILE *file;
    const char *before;
} PageLessons;

static bool write_lesson(void *context, char *lesson) {
    PageLessons *page = context;
    fputs(page->before, page->file);
    page->before = ",\n";
    return plan_write_lesson(page->file, lesson);
}

char *lessons_as_json(int first, int last, LessonOptions options) {
    char *json;
    PageLessons page = {data_open(&json), "{\"lessons\":["};
    if (page.file) lessons_use(first, last, options, write_lesson, &page);
    if (page.file) fprintf(page.file, "]}\n");
    return data_close(page.file, json);
}
