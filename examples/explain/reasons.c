/* reasons.c - why a number is 0: see reasons.h. */
#include "reasons.h"

#include <string.h>

const Reason reasons[REASONS] = {
    {"masked", "//", "masked: the mask forbids this key"},
    {"weight is 0", "w0",
     "the weight is exactly 0, so a small change of the score changes nothing"},
    {"weight is 1", "w1", "the weight is exactly 1: the other weights of its row are 0"},
    {"dropped", "::", "dropped: dropout replaced it by 0"},
    {"flat", "__", "flat: here the function neither rises nor falls"},
    {"times 0", "*0", "times 0: everything that it is multiplied by is 0"},
    {"unused", "--", "unused: it does not influence the result"},
};

int number_of_reason(const char *name) {
    int r = 0;
    if (!name) return REASONS;
    while (r < REASONS && strcmp(name, reasons[r].name) != 0) r++;
    return r;
}

static bool is_row_masked(const char *const *why, int64_t start, int64_t columns) {
    for (int64_t i = start; i < start + columns; i++)
        if (number_of_reason(why[i]) != 0) return false;
    return true;
}

/* The words for the tape's reason at element i; NULL: there is none. */
static const char *words_of(const char *const *why, int64_t i, int64_t columns) {
    const int r = number_of_reason(why[i]);
    if (r == REASONS) return NULL;
    if (r == 0 && is_row_masked(why, i - i % columns, columns))
        return "masked: the mask allows this row no key";
    return reasons[r].words;
}

void reason_of_part(const Plan *plan, const Part *part, int64_t i, char text[REASON_TEXT]) {
    const int64_t columns = plan->tape.tensors[part->x].columns;
    const double *dy = plan->tape.tensors[part->y].grad;
    const char *words = words_of(part->reasons, i, columns);
    bool arrives = false;
    for (int64_t e = part->by.begin[i]; e < part->by.begin[i + 1]; e++)
        arrives = arrives || dy[part->by.of[e].j] != 0;
    if (!words)
        words = arrives ? "the terms cancel" : "nothing arrives: each dy that could arrive is 0";
    strcpy(text, words);
}

void reason_of_sum(const Plan *plan, const Part *const *parts, int n, bool complete, int64_t i,
                   char text[REASON_TEXT]) {
    char one[REASON_TEXT];
    *text = '\0';
    for (int k = 0; k < n; k++) {
        if (complete && parts[k]->dx[i] != 0) strcpy(one, "the parts cancel");
        else reason_of_part(plan, parts[k], i, one);
        const size_t used = strlen(text);
        if (!strstr(text, one) && used + strlen(one) + 3 < REASON_TEXT)
            snprintf(text + used, REASON_TEXT - used, "%s%s", used ? "; " : "", one);
    }
}

/* The reason of its line, if the line keeps the shape; or it comes from a single element, which is
 * 0. */
void reason_of_value(const Plan *plan, int tensor, int64_t j, char text[REASON_TEXT]) {
    const TapeTensor *y = &plan->tape.tensors[tensor];
    const RuledLine *line = y->maker < 0 ? NULL : &plan->tape.lines[y->maker];
    const Part *same = NULL;
    int sources = 0, from = -1;
    int64_t i = 0;
    *text = '\0';
    for (int n = 0; line && n < line->num_parts; n++) {
        const Part *part = &line->parts[n];
        const Jacobian *rows = &part->rows;
        if (!same && plan->tape.tensors[part->x].size == y->size) same = part;
        sources += (int)(rows->begin[j + 1] - rows->begin[j]);
        if (rows->begin[j + 1] == rows->begin[j]) continue;
        from = part->x;
        i = rows->of[rows->begin[j]].j;
    }
    const char *words = same ? words_of(same->reasons, j, y->columns) : NULL;
    if (words) strcpy(text, words);
    else if (sources == 1 && plan->tape.tensors[from].value[i] == 0)
        reason_of_value(plan, from, i, text);
}
