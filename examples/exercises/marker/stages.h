/* stages.h - which intermediate of a backward is the first wrong one? A backward of attention
 * computes s, p, dp, ds, and then dq, dk and dv: these are its stages. A student's function returns
 * the last three alone; but with a dense dy and enough columns dv = p' dy has one solution p, and
 * dq = ds k / sqrt(D) one ds. So the outputs prove which stages are right, and show the wrong one.
 *
 * Each rule below is of one exercise. It says only what the outputs prove, also if the student's
 * code computes them in another way. */
#ifndef TAPEHEAD_EXERCISES_STAGES_H
#define TAPEHEAD_EXERCISES_STAGES_H

#include "matrix.h"
#include "trial.h"

enum { MOST_STAGES = 20, STAGE_NAME = 32 };

/* A stage that has numbers has up to three sizes, as the rows and columns of a Parameter; the
 * numbers are in a matrix, row by row. An output that is a stage has its own numbers. */
typedef struct {
    const char *name;
    const char *size[3];
} Stage;

/* All calls of a student's function, and the right results. */
typedef struct {
    const Exercise *e;
    const Trial *trial;
    const Calls *right;
} Evidence;

/* The first wrong stage. */
typedef struct {
    const char *stage;  /* its name; NULL: it cannot be seen */
    int call;           /* on this one it is wrong */
    const char *proved; /* the stages that are right: "s and p"; NULL: none is proved */
    bool seen;          /* `mine` has the student's numbers of it */
    Matrix mine;
    char proof[320];     /* sentences about what the outputs prove */
    const char *asks;    /* a question */
    char shown[256];     /* a sentence about what the function shows; "": none */
    const char *another; /* a sentence, if there is another mistake; NULL: none is known */
} Finding;

typedef struct StageRules {
    Stage stage[MOST_STAGES]; /* in their order; after the last one, name is NULL */
    /* The right numbers of the stages before the outputs, in their order. */
    void (*values)(const Exercise *e, const Call *call, Matrix *value);
    void (*find)(const Evidence *evidence, Finding *finding);
} StageRules;

extern const StageRules stages_masked_softmax, stages_dropout, stages_layer_norm, stages_additive,
    stages_attention, stages_self_attention;

Finding stages_find(const Exercise *e, const Trial *trial, const Calls *right);

/* Appends what is known: the stages that are right, the numbers of the first wrong one, and if
 * `proof` is set, what the outputs prove and a question. */
void stages_say(const Evidence *evidence, const Finding *finding, bool proof, char *text,
                size_t size);

/* ---- for the rules ------------------------------------------------------------------------------
 */

enum { MOST_SEEN = 8 }; /* inputs that a rule looks at */

/* Has every array and every stage of this call room in a matrix? */
bool stages_fit(const Exercise *e, const Call *call);
/* The next call after `at` that fits, with a dense dy without zeros, from which the function has
 * returned; -1 after the last one. Begin with -1. Tiny numbers prove nothing. */
int stages_dense(const Evidence *evidence, int at);
/* The first of the calls with one-hot dy's of the same input as `call`; -1 if the function has not
 * returned from all of them. */
int stages_one_hot(const Evidence *evidence, int call);
/* An output of the student's, and the right one. */
Matrix stages_mine(const Evidence *evidence, int call, int array);
Matrix stages_right(const Evidence *evidence, int call, int array);
/* Is it right, within 1e-7? */
bool stages_is_right(const Evidence *evidence, int call, int array);
/* What is found: on which call which stage is wrong. mine: the student's numbers; NULL: they are
 * not known. */
void stages_show(Finding *finding, int call, const char *stage, const char *proved,
                 const Matrix *mine);
__attribute__((format(printf, 2, 3))) void stages_prove(Finding *finding, const char *format, ...);

#endif
