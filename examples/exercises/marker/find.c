/* find.c - the other direction: see find.h. A question shows the C of a mistake of an exercise. The
 * student types an input and a dy, and names the element that is wrong on it; the program computes
 * both results. */
#include "find.h"

#include "../../common/plural.h"

#include "calls.h"
#include "diagnosis.h"
#include "numbers.h"
#include "texts.h"

#include "../../../tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int exercise;
    const char *mistake; /* its id; its C is in find_softmax.inc, which the exercise includes */
    const char *hint;    /* after a wrong answer */
    int size[MOST_SIZES];
    const char *asks[4]; /* what the student types: parameters, or the x whose softmax is y */
} Question;

static const Question questions[] = {
    {4,
     "mean_of_dy",
     "For which y is the mean of dy equal to the sum of y dy? Take another one.",
     {3},
     {"x", "dy"}},
    {9,
     "ignored_not_zero",
     "Which targets are there? Read the text above the function in 09_cross_entropy.c.",
     {3},
     {"x", "target", "dloss"}},
    {5,
     "unmasked_gradient",
     "y is 0 where keep is false. Which dy makes 0 times dy something else than 0? You can "
     "type it.",
     {3},
     {"x", "keep", "dy"}},
};
enum { QUESTIONS = sizeof questions / sizeof *questions, TRIES = 3, LINE = 1024 };

/* ---- what the student types --------------------------------------------------------------------
 */

/* Reads a line without its end; false at the end of the input. A longer line is cut. */
static bool read_line(char line[LINE]) {
    fflush(stdout);
    if (!fgets(line, LINE, stdin)) return false;
    char *end = strchr(line, '\n');
    if (end) *end = '\0';
    else
        for (int c = getchar(); c != EOF && c != '\n';) c = getchar();
    return true;
}

/* The array of a parameter; y stands for x. -1: it is none. */
static int array_named(const Exercise *e, const char *name) {
    for (int k = 0; exercise_array(e, k); k++) {
        const char *has = exercise_array(e, k)->name;
        if (strcmp(has, name) == 0 || (strcmp(has, "y") == 0 && strcmp(name, "x") == 0)) return k;
    }
    return -1;
}

/* "3 numbers" */
static const char *wants(const Exercise *e, int array, int64_t n) {
    static char text[64];
    const bool mask = array >= 0 && exercise_array(e, array)->kind == MASK;
    if (mask) snprintf(text, sizeof text, "%d time%s true or false, or 1 or 0", (int)n, plural(n));
    else snprintf(text, sizeof text, "%d number%s", (int)n, plural(n));
    return text;
}

/* Stores the numbers of a line as the parameter with this name. False with a sentence on standard
 * output if they do not fit. */
static bool store(const Exercise *e, Call *call, const char *name, const char *line) {
    const int array = array_named(e, name);
    const int64_t n = array < 0 ? 1 : call_length(e, call, array);
    double number[16];
    if (!numbers_read(line, number, (int)n)) {
        printf("It wants %s, with spaces between.\n", wants(e, array, n));
        return false;
    }
    if (strcmp(name, "target") == 0) {
        const bool fits =
            number[0] == floor(number[0]) && number[0] < call->size[0] && number[0] >= -100;
        if (!fits)
            printf("target wants a class, 0 to %d, or a number below 0\n", call->size[0] - 1);
        else call->size[1] = (int)number[0];
        return fits;
    }
    if (array < 0) call->number[0] = number[0];
    for (int64_t i = 0; array >= 0 && i < n; i++)
        if (exercise_array(e, array)->kind == MASK)
            ((bool *)call->array[array])[i] = number[i] != 0;
        else ((double *)call->array[array])[i] = number[i];
    return true;
}

static bool ask(const Exercise *e, Call *call, const char *name) {
    const int array = array_named(e, name);
    char line[LINE];
    for (;;) {
        printf("%s, %s = ", name, wants(e, array, array < 0 ? 1 : call_length(e, call, array)));
        if (!read_line(line)) return false;
        if (store(e, call, name, line)) return true;
    }
}

/* "dx[1]", "1": the index; -1 if it is none. */
static int read_element(const char *line, int64_t n) {
    const char *bracket = strchr(line, '[');
    const char *digits = bracket ? bracket + 1 : line;
    char *end;
    const long i = strtol(digits, &end, 10);
    return end == digits || i < 0 || i >= n ? -1 : (int)i;
}

static bool ask_element(const Exercise *e, const Call *call, int *element) {
    char line[LINE];
    for (;;) {
        printf("Which element of dx is wrong on this input? ");
        if (!read_line(line)) return false;
        *element = read_element(line, call_length(e, call, array_named(e, "dx")));
        if (*element >= 0) return true;
        printf("It has the form dx[1].\n");
    }
}

/* ---- one question ------------------------------------------------------------------------------
 */

/* The typed x becomes the y that these backwards get. */
static void make_y(const Exercise *e, Call *call) {
    const bool *keep = e->number == 5 ? call->array[0] : NULL;
    if (e->number == 9) return;
    double *y = call->array[array_named(e, "x")];
    softmax_of(call->size[0], y, e->number == 5 ? call->number[0] : 1, keep);
    printf("y = ");
    for (int i = 0; i < call->size[0]; i++) printf("%s%.6g", i ? " " : "", y[i]);
    printf("\n");
}

/* Is the element that the student named wrong? */
static bool check(const Exercise *e, const char *id, const Call *call, int element) {
    const int dx = array_named(e, "dx");
    const KnownMistake *mistake = e->mistakes;
    while (strcmp(mistake->id, id) != 0) mistake++;
    Calls right = {NULL, 0}, given = {(Call *)call, 1};
    Calls wrong = calls_copy(e, &given);
    right = calls_copy(e, &given);
    bool found = false;
    if (wrong.n && right.n) {
        calls_wrong(e, &wrong, mistake);
        calls_right(e, &right);
        const double is = ((double *)wrong.call->array[dx])[element];
        const double should = ((double *)right.call->array[dx])[element];
        found = !same_output(e, wrong.call, right.call, dx) &&
                (fabs(is - should) > 1e-9 || isnan(is) != isnan(should));
        char here[32], right_one[32];
        number_signed(here, is, 6);
        number_signed(right_one, should, 6);
        if (found)
            printf("Right: dx[%d] is %s here, and should be %s.\n", element, here, right_one);
        else printf("dx[%d] is %s, and should be %s.\n", element, here, right_one);
    }
    calls_free(&wrong);
    calls_free(&right);
    return found;
}

static void print_code(const Exercise *e) {
    const char *code = "";
    char file[64];
    snprintf(file, sizeof file, "find_%s.inc", e->name);
    for (int i = 0; i < num_texts; i++)
        if (strcmp(texts[i].name, file) == 0) code = (const char *)texts[i].text;
    while (*code) {
        const int length = (int)strcspn(code, "\n");
        printf("    %.*s\n", length, code);
        code += length + 1;
    }
}

/* One try; false at the end of the input. */
static bool try_question(const Question *q, bool *found) {
    const Exercise *e = exercise(q->exercise);
    Call call = {.number = {1, 0}};
    int element = 0;
    memcpy(call.size, q->size, sizeof call.size);
    if (!call_make(e, &call)) {
        tensor_fail("out of memory");
        return false;
    }
    bool more = true;
    for (int i = 0; i < 4 && q->asks[i] && more; i++) more = ask(e, &call, q->asks[i]);
    if (more) make_y(e, &call);
    more = more && ask_element(e, &call, &element);
    *found = more && check(e, q->mistake, &call, element);
    call_free(&call);
    return more;
}

/* 1 if it was answered, 0 if not, -1 at the end of the input. */
static int ask_question(const Question *q, int number) {
    bool found = false;
    printf("%d of %d. This backward is wrong, but not on every input (n = %d%s):\n\n", number,
           QUESTIONS, q->size[0], q->exercise == 5 ? ", s = 1" : "");
    print_code(exercise(q->exercise));
    printf("\nType an input on which one of its results is wrong.\n");
    for (int i = 0; i < TRIES && !found; i++) {
        if (i > 0) printf("%s\n", q->hint);
        if (!try_question(q, &found)) return -1;
    }
    printf("\n");
    return found;
}

int find_inputs(void) {
    int found = 0, last = 0;
    for (int i = 0; i < QUESTIONS && last >= 0; i++) {
        last = ask_question(&questions[i], i + 1);
        if (last > 0) found++;
    }
    if (last < 0) printf("\n");
    printf("%d of %d found.\n", found, QUESTIONS);
    return found == QUESTIONS ? 0 : 1;
}
