/* play.c - recall in a page that computes: see play.h. */
#include "play.h"

#include "../../recall/model.h"
#include "json.h"
#include "recording.h"
#include "../lessons/settings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 1000, EVALUATED = 64 }; /* in a request; sequences */

/* The settings of a run. */
typedef struct {
    RecallOptions options;
    double rate, seed;
} Settings;
static const Settings defaults = {RECALL_OPTIONS, RECALL_RATE, RECALL_SEED};

static struct {
    Settings settings;
    Recall *net; /* NULL: there is no run */
    Optimizer *sgd;
    Tensor *generator; /* its state after the last step: lessons seed the generator, too */
    int64_t step;
    double losses[MOST_STEPS]; /* of the last request */
    int64_t num_losses;
    RecallScore score;
    AttentionMap map;
    int right[MAP_MAX];
} play;

static void end(void) {
    nn_free(play.sgd);
    nn_free(play.net);
    tensor_release(play.generator);
    play.sgd = NULL;
    play.net = NULL;
    play.generator = NULL;
    play.step = 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool set_attention(Settings *s, const char *value) {
    if (strcmp(value, "dot") == 0) s->options.attention = "dot";
    else if (strcmp(value, "additive") == 0) s->options.attention = "additive";
    else return tensor_fail("attention is \"%s\": it must be dot or additive", value);
    return true;
}

static bool set(void *context, const char *key, const char *value) {
    Settings *s = context;
    double number;
    if (strcmp(key, "attention") == 0) return set_attention(s, value);
    if (strcmp(key, "seed") == 0) return setting_number(key, value, true, 0, MOST_SEED, &s->seed);
    if (strcmp(key, "lr") == 0) return setting_number(key, value, false, 1e-6, 1e6, &s->rate);
    if (strcmp(key, "pairs") == 0) {
        if (!setting_number(key, value, true, 1, (double)s->options.keys, &number)) return false;
        s->options.pairs = (int64_t)number;
        return true;
    }
    const bool is_mask = strcmp(key, "no-mask") == 0;
    if (!is_mask && strcmp(key, "no-scale") != 0)
        return tensor_fail("there is no setting \"%s\"", key);
    if (!setting_number(key, value, true, 0, 1, &number)) return false;
    *(is_mask ? &s->options.no_mask : &s->options.no_scale) = number != 0;
    return true;
}

static bool read_settings(Settings *s, char *lines) {
    if (!settings_read(lines, set, s)) return false;
    if (s->options.no_scale && strcmp(s->options.attention, "dot") != 0)
        return tensor_fail("additive attention has no scale");
    return true;
}

/* ---- training -------------------------------------------------------------------------------- */

static uint64_t seed(void) { return (uint64_t)play.settings.seed; }

static void keep_generator(void) {
    tensor_release(play.generator);
    play.generator = tensor_generator_state();
}

/* Evaluates the first sequences that build/recall evaluates, too. */
static void look(void) {
    play.score = (RecallScore){0};
    tensor_manual_seed(~seed());
    nn_train(play.net, false);
    tape_begin_no_grad();
    Sequences s = recall_draw(play.net, EVALUATED);
    recall_score(play.net, &s, &play.score);
    recall_take_map(&play.map, play.net, &s, 0);
    for (int i = 0; i < play.map.queries && !tensor_error(); i++)
        play.right[i] = (int)tensor_get(s.place, 0, i);
    tape_end();
    nn_train(play.net, true);
}

static void begin(char *lines) {
    Settings settings = defaults;
    if (!read_settings(&settings, lines)) return;
    end();
    play.settings = settings;
    play.num_losses = 0;
    tensor_manual_seed(seed());
    play.net = recall_new(&settings.options);
    recall_show_input(play.net);
    play.sgd = nn_sgd_new(play.net, (SGDConfig){.lr = settings.rate, .momentum = RECALL_MOMENTUM});
    keep_generator();
    if (!tensor_error()) look();
    if (tensor_error()) end();
}

static void take_step(void) {
    tape_begin();
    const double loss = tensor_item(recall_step(play.net, play.sgd, RECALL_BATCH));
    tape_end();
    play.step++;
    if (!isfinite(loss) && !tensor_error())
        tensor_fail("step %" PRId64
                    ": the loss is not a finite number: choose a smaller learning rate",
                    play.step);
    if (!tensor_error()) play.losses[play.num_losses++] = loss;
}

static void train(const char *steps) {
    double number;
    if (!setting_number("train", steps, true, 1, MOST_STEPS, &number)) return;
    play.num_losses = 0;
    tensor_set_generator_state(play.generator);
    while (play.num_losses < (int64_t)number && !tensor_error()) take_step();
    keep_generator();
    if (!tensor_error()) look();
    if (tensor_error()) end();
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The command that makes the page of the recording. */
static void print_command(char *text, size_t size) {
    const Settings *s = &play.settings;
    const RecallOptions *o = &s->options;
    snprintf(text, size,
             "build/recall --attention %s --pairs %" PRId64
             " --lr %.15g --seed %.0f --steps %" PRId64 "%s%s --explain FILE.html",
             o->attention, o->pairs, s->rate, s->seed, play.step, o->no_scale ? " --no-scale" : "",
             o->no_mask ? " --no-mask" : "");
}

static char *record(void) {
    char command[256];
    print_command(command, sizeof command);
    return recall_record(play.net, seed(), play.step, command);
}

static void write_map(FILE *file) {
    const AttentionMap *map = &play.map;
    fprintf(file, "{\"queries\":");
    json_write_texts(file, *map->query, MAP_LABEL_SIZE, map->queries);
    fprintf(file, ",\"keys\":");
    json_write_texts(file, *map->key, MAP_LABEL_SIZE, map->keys);
    fprintf(file, ",\"right\":[");
    for (int i = 0; i < map->queries; i++) fprintf(file, "%s%d", i ? "," : "", play.right[i]);
    fprintf(file, "],\"weights\":[");
    for (int i = 0; i < map->queries * map->keys; i++)
        if (isnan(map->weights[i])) fprintf(file, "%snull", i ? "," : "");
        else fprintf(file, "%s%.9g", i ? "," : "", map->weights[i]);
    fprintf(file, "]}");
}

static char *state(void) {
    char *json;
    FILE *file = data_open(&json);
    if (!file) return NULL;
    fprintf(file, "{\"step\":%" PRId64, play.step);
    if (play.net) {
        fprintf(file, ",\"losses\":");
        json_write_numbers(file, play.losses, play.num_losses, 9);
        fprintf(file, ",\"accuracy\":%.9g,\"found\":%.9g,\"map\":",
                play.score.right / play.score.questions, play.score.found / play.score.questions);
        write_map(file);
    }
    putc('}', file);
    return data_close(file, json);
}

char *play_answer(char *request) {
    char *const lines = strchr(request, '\n');
    if (lines) *lines = '\0';
    if (strcmp(request, "begin") == 0) begin(lines ? lines + 1 : "");
    else if (strcmp(request, "end") == 0) end();
    else if (!play.net) tensor_fail("there is no run: begin one first");
    else if (strcmp(request, "record") == 0) return record();
    else if (strncmp(request, "train ", 6) == 0) train(request + 6);
    else tensor_fail("\"%s\" is no request: it must be begin, train, record or end", request);
    return tensor_error() ? NULL : state();
}
