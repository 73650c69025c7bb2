/* protocol.h - what the marker writes for harness.c, and what harness.c writes for the marker. Both
 * are compiled with this file.
 *
 * The file of calls has a header for each call, and after it the bytes of the call's arrays. The
 * file of results has a result for each call that has returned, and after it the bytes of its
 * outputs and the numbers that it has shown. Where one is missing the function has crashed or
 * called exit. */
#ifndef TAPEHEAD_EXERCISES_PROTOCOL_H
#define TAPEHEAD_EXERCISES_PROTOCOL_H

#include <stdint.h>

enum { CALL_SIZES = 4, CALL_NUMBERS = 2, CALL_ARRAYS = 12 };
enum { GUARD = 512 }; /* numbers before and behind each array */
/* Something is written behind the guard of an array, or beside an input. */
enum { FAR_OUTSIDE = CALL_ARRAYS + 2 };

/* Begins the line that harness.c prints before it stops at an index outside of an array of a fixed
 * size: "FILE:LINE: INDEX SIZE". */
#define BOUNDS "tapehead-bounds "

enum { SHOWN_NAME = 16, SHOWN_INDICES = 3, MOST_SHOWN_NUMBERS = 4096 }; /* of a call */
enum { ONLY_READ, WRITTEN, CARRIED }; /* what the function does with an array */

typedef struct {
    double number[CALL_NUMBERS];
    int32_t size[CALL_SIZES];
    int32_t carries;  /* a CARRIED array begins as the call before left it */
    int32_t measured; /* how much memory does the function use? */
    int32_t filled;   /* outputs arrive with a pattern: which ones are never written? */
    int32_t guards;   /* 1, -1: numbers near 1e300 or -1e300 stand around the arrays; 0: NaN */
    int32_t shows;    /* the numbers that the function shows are wanted */
    int32_t arrays;
    int32_t bytes[CALL_ARRAYS]; /* of each array */
    int32_t access[CALL_ARRAYS];
} CallHeader;

typedef struct {
    int64_t memory;    /* bytes of stack, heap and static memory, of a measured call */
    int32_t call;      /* its number, from 0 */
    int32_t outside;   /* 1 + the array behind which something was written, negative if before it;
                        * 1 + CALL_ARRAYS for memory of malloc, or FAR_OUTSIDE; else 0 */
    int32_t changed;   /* 1 + the input that was changed; else 0 */
    int32_t shown;     /* how many Shown come after the outputs */
    int32_t unwritten; /* bit i: nothing was written to array i, in a filled call */
} CallResult;

/* A number that the function shows with SHOW(name, value, indices): the last one. */
typedef struct {
    double value;
    char name[SHOWN_NAME];
    int32_t at[SHOWN_INDICES];
    int32_t indices;
} Shown;

#endif
