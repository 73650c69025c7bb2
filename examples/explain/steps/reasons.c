/* reasons.c - why a number is 0: see reasons.h. */
#include "reasons.h"

#include "../../common/put_text.h"

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
    [NOTHING_ARRIVES] = {"nothing arrives", "0", "nothing arrives: each dy that could arrive is 0"},
    {"the terms cancel", "0", "the terms cancel"},
    {"the rule gives 0", "0", "the rule gives 0 here"},
};

/* The number of a reason that the tape gives; NOTHING_ARRIVES: it gives none. */
static int number_of_name(const char *name) {
    int r = 0;
    while (r < NOTHING_ARRIVES && !(name && strcmp(name, reasons[r].name) == 0)) r++;
    return r;
}

/* Does a number arrive that the derivatives of x[i] take? */
static bool arrives(const Jacobian *by, const double *dy, int64_t i) {
    for (int64_t e = by->begin[i]; e < by->begin[i + 1]; e++)
        if (dy[by->of[e].j] != 0) return true;
    return false;
}

/* A planted rule can give 0 where the line's own derivatives, which `right` holds, do not. */
int reason_number(const Plan *plan, const Part *part, int64_t i) {
    const double *dy = plan->tape.tensors[part->y].grad;
    const int r = number_of_name(part->reasons[i]);
    if (r != NOTHING_ARRIVES) return r;
    if (part->is_odd) return RULE_GIVES_0;
    if (arrives(&part->by, dy, i)) return TERMS_CANCEL;
    return arrives(&part->right, dy, i) ? RULE_GIVES_0 : NOTHING_ARRIVES;
}

/* A row of which the mask hides all is said to be one. */
static const char *words_of(const char *const *why, int r, int64_t i, int64_t columns) {
    const int64_t start = i - i % columns;
    if (r != MASKED) return reasons[r].words;
    for (int64_t k = start; k < start + columns; k++)
        if (number_of_name(why[k]) != MASKED) return reasons[r].words;
    return "masked: the mask allows this row no key";
}

void reason_of_part(const Plan *plan, const Part *part, int64_t i, char text[REASON_TEXT]) {
    const int64_t columns = plan->tape.tensors[part->x].columns;
    strcpy(text, words_of(part->reasons, reason_number(plan, part, i), i, columns));
}

void reason_of_derivative(const Plan *plan, const Part *part, int64_t i, char text[REASON_TEXT]) {
    const bool is_in_x = i < plan->tape.tensors[part->x].size;
    const int r = is_in_x ? number_of_name(part->reasons[i]) : NOTHING_ARRIVES;
    strcpy(text, r == NOTHING_ARRIVES ? "" : reasons[r].words);
}

void reason_of_sum(const Plan *plan, int tensor, int n, bool complete, int64_t i,
                   char text[REASON_TEXT]) {
    char one[REASON_TEXT];
    Part *const *parts = plan->tape.tensors[tensor].part;
    *text = '\0';
    for (int k = 0; k < n; k++) {
        if (complete && parts[k]->dx[i] != 0) strcpy(one, "the parts cancel");
        else reason_of_part(plan, parts[k], i, one);
        if (!strstr(text, one) && strlen(text) + strlen(one) + 3 < REASON_TEXT)
            put_text(text, REASON_TEXT, "%s%s", *text ? "; " : "", one);
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
    const int r = same ? number_of_name(same->reasons[j]) : NOTHING_ARRIVES;
    if (r != NOTHING_ARRIVES) strcpy(text, words_of(same->reasons, r, j, y->columns));
    else if (sources == 1 && plan->tape.tensors[from].value[i] == 0)
        reason_of_value(plan, from, i, text);
}
