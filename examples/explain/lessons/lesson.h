/* lesson.h - a lesson: a small model, its tape after a backward pass, texts, and questions.
 *
 *     Lesson lesson;
 *     lesson_open(&lesson, 2, (LessonOptions){.dropout = -1});
 *     tape_print(stdout);
 *     lesson_write_json(&lesson, file);
 *     lesson_close(&lesson);
 *
 * A lesson is a file of its own, lesson1.c and so on, which says what differs from lesson to
 * lesson: see LessonKind. What it says is said with tell.h. */
#ifndef TAPEHEAD_EXAMPLES_LESSON_H
#define TAPEHEAD_EXAMPLES_LESSON_H

#include "again.h"
#include "settings.h"
#include "words.h"
#include "../rules/wrong.h"

enum { LESSON_TENSORS = 24, LESSON_SHORTS = 16, LOOP_STEPS = 20 };

typedef struct LessonKind LessonKind;
typedef struct {
    int number;
    const LessonKind *kind;
    LessonOptions given, options; /* from the caller; in use */
    Words words;
    uint64_t drawn;         /* the state of the numbers that a card's other looks get */
    int64_t pad;            /* the token that is no word but padding; -1: none is */
    const MistakeRow *rule; /* in use on the tape; NULL if none is */
    bool any_rule;          /* this rule, or a formula of the options, is in use */
    bool is_wrong;          /* and one of them is wrong */
    Planting planting;
    RuleAlias aliases[LESSON_SHORTS + 1]; /* of the planting */
    char refusals[LESSON_FORMULAS][320];  /* of the formulas that were left out: why */
    void *model;                          /* a module that lesson_close frees, or NULL */
    Tensor *owned[LESSON_TENSORS];
    int num_owned, num_made; /* num_made: how many build has asked for since it began */
    double right[LESSON_STEPS], wrong[LESSON_STEPS]; /* the losses of training, without and with
                                                      * the wrong rule */
    double
        unzeroed[LOOP_STEPS + 1]; /* those of steps without zero_grad, if the lesson has a loop */
    double losses[LESSON_STEPS + 1]; /* of the tapes after 0 to options.step steps, and after one
                                      * more than none */
    const char *experiments;         /* of options.experiments, the caller's, or NULL */
    const char *loop;                /* loop_as_json's, the caller's, or NULL */
    FILE *json;                      /* for tell.c */
    int items;                       /* written so far, of a list */
    const Again *again;              /* the questions that it opens with */
    int num_again;
} Lesson;

/* Makes the model, opens a tape, runs forward and backward. options.part 'b' opens the second half
 * of a lesson that has one. The tape stays open. The caller calls
 * lesson_close, also after a failure. A wrong rule that would change no line is not used. A
 * formula that does not fit is an error, unless options.any_lesson; so is an edit that names no
 * leaf, or no element of it. */
bool lesson_open(Lesson *lesson, int number, LessonOptions options);
/* The lesson as one JSON object. False and an error if the tape is too large, or if the file cannot
 * be written. */
bool lesson_write_json(Lesson *lesson, FILE *file);
void lesson_close(Lesson *lesson);
/* Opens, writes and closes the lessons from first to last, with options.part 0 all their parts.
 * `use` gets each as JSON, a string that it may overwrite; after a false no other lesson follows.
 * False then, and with an error, for example if first is last, and the wrong rule changes no line
 * of this lesson. */
typedef bool (*LessonUse)(void *context, char *lesson);
bool lessons_use(int first, int last, LessonOptions options, LessonUse use, void *context);
/* The data of a page, {"lessons": [...]}, each with its plan (plan_json.h): a string that the
 * caller frees. NULL and an error on failure. */
char *lessons_as_json(int first, int last, LessonOptions options);
/* The same for what a box for a rule needs: {"box":{"help":[{"text":"a @ b","says":"..."}, ...],
 * "planted":..., "places":...}}, see rule_plant.h. It takes a tenth of the time: nothing is
 * differentiated once more for the terms. */
char *lesson_box_as_json(int number, LessonOptions options);
/* For LessonOptions: the experiments of a lesson or of its second half, objects of JSON with commas
 * between them, a string that the caller frees. NULL without an error if there are none. A planted
 * rule changes none of them. */
char *experiments_as_json(int number, char part, LessonOptions options);
/* Judges the options' formulas as lines of a card: {"card":[...]}, see rule_card.h. */
char *lesson_card_as_json(int number, LessonOptions options);
/* Does lesson `number` have this part? Every lesson has the part 'a'. */
bool lesson_has_part(int number, char part);

/* ---- for the file of a lesson ---------------------------------------------------------------- */

/* The name of a tensor, and another name that belongs to it. */
typedef struct {
    const char *name, *other;
} NamePair;

struct LessonKind {
    int number;
    char part; /* 'b' or '\0' */
    const char *title, *idea, *source;
    const char *hook;               /* the title of the cover; its %s is the word of the row */
    const char *exercise;           /* whose rule the lesson has: "04_softmax" */
    const char *columns;            /* what each matrix of a 3-d tensor is: "head"; or "" */
    const char *formula[6];         /* lines of 38 characters at most, the rest NULL */
    const char *additive[6];        /* the formula with --additive */
    const char *word_rows[24];      /* the tensors whose rows are tokens, */
    const char *word_columns[10];   /* and those whose columns are */
    NamePair shorts[LESSON_SHORTS]; /* a tensor, and a short name for its formulas */
    bool is_padded;                 /* a token is padding: the first; with --lengths, the last */
    const char *card[8];            /* tensors whose gradients the reader writes from memory */
    LessonOptions own;              /* sizes, dropout and seed, unless others are given */
    double rates[3];            /* of SGD on all leaves: the lesson's own, with which the loss falls
                                 * clearly, a larger one that learns, and one that is too large */
    bool shows_losses;          /* of LESSON_STEPS steps */
    const char *loop;           /* the leaf that its loop shows (loop.h); NULL: it has no loop */
    Tensor *(*build)(Lesson *); /* the leaves and the forward pass; returns the loss */
    void (*begin)(Lesson *);    /* the cover, and a bet if there is one */
    void (*tell)(Lesson *);     /* the texts of the steps, by say */
    void (*ask)(Lesson *);      /* the questions, by ask_* */
};
extern const LessonKind lesson_1, lesson_2, lesson_3, lesson_3b, lesson_4, lesson_5, lesson_6;

/* Gives the tensor a name and keeps it until the lesson is closed; takes over the reference. The
 * tensor is no line of the tape, as it would be with tape_own. Returns the tensor to use, which is
 * not x if training has made a step: then build runs again, and gets the tensor of the first step,
 * which training has changed. So fill x before the call. */
Tensor *lesson_own(Lesson *lesson, const char *name, Tensor *x);
/* The same for a leaf that gets a gradient. */
Tensor *lesson_leaf(Lesson *lesson, const char *name, Tensor *x);
/* A leaf of normal numbers with this standard deviation and one decimal, none of which is 0. */
Tensor *lesson_draw(Lesson *lesson, const char *name, double std, Shape shape);
/* A leaf of the same kind, for data: without a gradient. */
Tensor *lesson_data(Lesson *lesson, const char *name, double std, Shape shape);
/* The same for a module, whose parameters are leaves. Call this function only while
 * lesson->model is NULL. */
void lesson_own_model(Lesson *lesson, void *model);
/* E = y - t, loss = sum(E^2); with counts only rows of y that have a 1 there are added: counted =
 * E^2 counts. */
Tensor *lesson_loss(Tensor *y, Tensor *t, Tensor *counts);
/* Runs the lesson forward on the open tape, with the planted rules; returns the loss. */
Tensor *lesson_forward(Lesson *lesson);
/* Writes ,"key":[the losses] */
void lesson_write_losses(FILE *file, const char *key, const double *losses, int64_t n);
/* The losses of the training that the lesson shows. */
const double *lesson_losses(const Lesson *lesson);
/* 1 / sqrt(d), or 1 with --no-scale. */
double lesson_scale(const Lesson *lesson);
/* The name of what softmax reads, and of the weights with which it makes means. */
const char *lesson_scores(const Lesson *lesson), *lesson_weights(const Lesson *lesson);

/* Element i, row-major, of a tensor or of its gradient; NaN if there is none. */
double lesson_value(const char *name, int64_t i), lesson_grad(const char *name, int64_t i);

/* A tensor on the open tape, by its name or by the lesson's short one; NULL if there is none. */
Tensor *lesson_tensor(const Lesson *lesson, const char *name);

/* As the lesson's formulas call it. */
const char *lesson_short_name(const Lesson *lesson, const char *name);

/* The index of element i, row-major. */
Shape lesson_place(Shape shape, int64_t i);
/* Element i of x, row-major; NaN if there is none. */
double lesson_element(const Tensor *x, int64_t i);

#endif
