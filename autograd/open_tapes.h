/* open_tapes.h - the open tapes of a thread and their nodes: for the files that record them, walk
 * over them and print them. The files of the ops need only op.h. */
#ifndef TAPEHEAD_OPEN_TAPES_H
#define TAPEHEAD_OPEN_TAPES_H

#include "op.h"

enum { TAPES_MAX = 64 };

typedef struct {
    Node *nodes;
    int count, capacity;
    struct Tape {
        int first; /* the index of its first node; its nodes end where the next tape begins */
        bool records, keep_grads;
        uint32_t number; /* of a recording tape; else 0 */
    } tape[TAPES_MAX];
    int open;             /* how many tapes are open */
    uint32_t last_number; /* of a recording tape */
    bool apart;           /* of ag_run_apart: no tape records */
} Tapes;

extern TENSOR_THREAD_LOCAL Tapes ag_tapes;

/* The innermost recording tape, or -1. */
int ag_recording_tape(void);
bool ag_check_open(const char *op); /* an error if no tape is open */
/* Makes room for one more node, ag_tapes.nodes[ag_tapes.count]. The nodes may move. */
bool ag_reserve_node(void);

/* The bytes of Node.many for each input. */
#define AG_MANY_SIZE ((int64_t)(sizeof(Tensor *) + sizeof(bool)))

static inline Tensor *ag_tensor_of(const Node *n, int i) {
    return i == OP_INPUTS ? n->out : n->in[i];
}
/* After ag_hold_bytes(n, +1) the bytes that backward reads are not freed, until ag_hold_bytes(n,
 * -1). */
void ag_hold_bytes(const Node *n, int readers);
void ag_release_saved(Node *n);

#endif
