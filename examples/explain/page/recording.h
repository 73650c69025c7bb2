/* recording.h - a page of one tape: of a program that trains (--explain), or of a file
 * (build/explain --tape).
 *
 *     recording_prepare(net);
 *     Tensor *q = recording_leaf(nn_linear_forward(net->W_q, x), "queries");
 *     recording_begin();
 *     Tensor *loss = ...
 *     recording_end(net, loss, &recording, "page.html");
 *
 * A page can show some thousand numbers, and a matrix of 64 x 64 numbers alone has 4096
 * derivatives for each token. So a program records only its attention: the leaves are the queries,
 * keys and values, and all parameters are constants. */
#ifndef TAPEHEAD_EXAMPLES_RECORDING_H
#define TAPEHEAD_EXAMPLES_RECORDING_H

#include "json.h"

#include "../../../nn/nn.h"

typedef struct {
    const char *title, *idea, *command;
    const char *columns;        /* what each matrix of a 3-d tensor is: "head"; or "" */
    const char *text[4];        /* paragraphs, the rest NULL */
    const char *formula[6];     /* lines, the rest NULL */
    const char *tape;           /* JSON that tape_write_json wrote; NULL: the open tape */
    const char *const *queries; /* words of the queries, then a NULL; or NULL for none */
    const char *const *keys;    /* words of the keys */
} Recording;

/* The data of the page, {"lessons": [...]}, a string that the caller frees. NULL and an error if
 * the tape is too large. */
char *recording_as_json(const Recording *recording);

/* A file in memory for data of a page, and its string; NULL and an error without memory.
 * data_close gives the string to the caller, who frees it; NULL after an error. */
FILE *data_open(char **string);
char *data_close(FILE *file, char *string);
/* Lists the tensors of the open tape in the order of the numbers that tape_write_json gives them;
 * returns how many. And the number of a tensor; -1 if it is on no line. */
enum { MOST_TENSORS = 96 };
int data_tensors(Tensor *tensor[MOST_TENSORS]);
int data_number(const Tensor *x);
/* Does the line swap the last two dimensions, as in K'? Its result is a view of the input. */
bool data_turns(const TapeLine *line);
/* Writes ,"transposed":[{"tensor":1,"of":0}, ...]: the results of lines that swap the last two
 * dimensions. */
void data_write_transposed(FILE *file);

/* Freezes the parameters, and opens a tape for the ops that the page does not show: they compute
 * its leaves. */
void recording_prepare(void *model);
/* Tensors for the page, copies of x: the page shows the gradient of a leaf, and a constant has
 * none. The tape of recording_begin owns them. */
Tensor *recording_leaf(Tensor *x, const char *name);
Tensor *recording_constant(Tensor *x, const char *name);
/* x: (1, N, in), y = x W' -> (H, N, D): the leaf of H heads, of which each has D numbers of y. */
Tensor *recording_heads(Linear *W, Tensor *x, int64_t H, const char *name);
/* Closes the tape of recording_prepare, and opens the one that the page shows. */
void recording_begin(void);
/* (H, N, D) -> (1, N, H D): the numbers of all heads side by side. */
Tensor *recording_join(Tensor *heads);
/* Runs backward from the loss, makes the data of the page, ends the tape, and lets the parameters
 * learn again; it does the last two also after an error. The caller frees the data; NULL and an
 * error on failure. */
char *recording_json(void *model, Tensor *loss, const Recording *recording);
/* Writes the page of these data, and frees them. Does nothing for NULL. */
void recording_write(char *json, const char *path);
/* recording_json, then recording_write. */
void recording_end(void *model, Tensor *loss, const Recording *recording, const char *path);

#endif
