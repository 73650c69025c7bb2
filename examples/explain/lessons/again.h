/* again.h - questions about earlier lessons, with other numbers: what a lesson opens with.
 *
 *     Again questions[AGAIN_MOST];
 *     int n = again_draw(3, 'a', 17, questions);   // before lesson 3: softmax's rule, and another
 *
 * The numbers are drawn from a seed, small enough to compute with in the head, and the answer is
 * computed by the library, with its own backward. Each known mistake has its own value, so that the
 * page can name it from the answer. Draws whose answer is 0, has more than two decimals, or is also
 * the value of a mistake, are left out. */
#ifndef TAPEHEAD_EXAMPLES_AGAIN_H
#define TAPEHEAD_EXAMPLES_AGAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { AGAIN_MOST = 2, AGAIN_TABLES = 2, AGAIN_CELLS = 9, AGAIN_MISTAKES = 4 };

typedef enum {
    AGAIN_STEP,
    AGAIN_PRODUCT_SIGN, /* should the weight grow or shrink? */
    AGAIN_PRODUCT,
    AGAIN_SOFTMAX_SIGN,
    AGAIN_SOFTMAX,
    AGAIN_MASK,
    AGAIN_FILL,
    AGAIN_USES,
    AGAIN_HEADS,
    AGAIN_KINDS
} AgainKind;

/* What the reader gives: a number; which cells of the table, bit i for cell i; an option. */
typedef enum { AGAIN_NUMBER, AGAIN_WHICH, AGAIN_CHOICE } AgainForm;

typedef struct {
    const char *name, *note;
    int rows, columns;
    double numbers[AGAIN_CELLS]; /* AGAIN_WHICH: 0 where the mask hides a key */
} AgainTable;

typedef struct {
    double value;
    const char *says;
} AgainMistake;

typedef struct {
    const char *about; /* the lesson: "3b" */
    AgainForm form;
    char ask[320], hint[160], why[200];
    int num_tables, at; /* at: which number of the tables is asked about */
    AgainTable tables[AGAIN_TABLES];
    double answer;
    int num_mistakes;
    AgainMistake mistakes[AGAIN_MISTAKES];
    const char *options[3]; /* AGAIN_CHOICE: two, and NULL */
} Again;

/* Draws a question of this kind. False and an error without memory. No recording tape may be open.
 */
bool again_draw_kind(AgainKind kind, uint64_t seed, Again *question);
/* The questions before a lesson: about the lesson before it, and about an earlier one. Returns how
 * many there are: 0 before lesson 1, and after an error. */
int again_draw(int lesson, char part, uint64_t seed, Again questions[AGAIN_MOST]);
/* Writes them as JSON:
 *
 *     [{"about":"2","form":"number","ask":"...","hint":"...","why":"0.4 x (3 - 1.2) = 0.72",
 *      "tables":[{"name":"A","note":"weights of one row","columns":3,"numbers":[0.4,0.4,0.2]}],
 *      "answer":0.72,"mistakes":[{"value":1.2,"says":"..."}],"options":[]}] */
void again_write(FILE *file, const Again *questions, int n);
/* {"again":[...]}, a string that the caller frees; NULL and an error on failure. */
char *again_as_json(int lesson, char part, uint64_t seed);

#endif
