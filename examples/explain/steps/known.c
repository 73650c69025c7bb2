/* known.c - which rule a step has, and which lesson showed it first: see known.h. */
#include "known.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The first step of each rule that a later lesson has, too. */
static const struct {
    const char *rule, *where;
} known[] = {
    {"s $ = #", "1/s"},
    {"f $ = $ - $", "1/f0"},
    {"b $ = sum of $ x $", "1/b1.1"},
    {"f $ = $ x $", "1/f1"},
    {"f $ = $ x $, number by number", "1/f2"},
    {"b $ = # $", "1/b3.0"},
    {"f $ = # $", "1/f3"},
    {"b $ = $ x ($ - sum($ x $))", "1/b4.0"},
    {"f $ = softmax($)", "1/f4"},
    {"b $ = $ $'", "1/b5.0"},
    {"f $ = $ $", "1/f5"},
    {"b $ = $", "1/b6.0"},
    {"b $ = # $ x $", "1/b6.0"},
    {"b $ = $, for each number", "1/b8.0"},
    {"f $ = sum(($ - $)^#)", "1/f8"},
    {"f $ = sum($)", "1/f8"},
    {"f $ -> $'", "2/f0"},
    {"b $ = $ $", "2/b1.0"},
    {"b $' = $' $", "2/b1.1"},
    {"f $ = $ $'", "2/f1"},
    {"b $ = $' $", "2/b4.1"},
    {"f $ = masked softmax($, $)", "3/f3"},
    {"b $ = $ x $", "3/b7.0"},
    {"a $ = from $ + from $ + from $", "4/a0.0"},
    {"f $ = $ $' weight", "4/f0"},
    {"a $ so far = from $ + from $", "4/a1.0"},
    {"b $ = $ $ weight", "4/b2.0"},
    {"b $ = $' $ weight", "4/b2.1"},
};

/* "`dA` = 0.5 `V'`" becomes "$ = # $'". */
static void write_blank(const char *title, char *at, const char *end) {
    for (const char *c = title; *c && at < end; c++) {
        const bool is_number =
            isdigit((unsigned char)*c) || (*c == '-' && isdigit((unsigned char)c[1]));
        const char *name_end = *c == '`' ? strchr(c + 1, '`') : NULL;
        if (name_end) {
            *at++ = '$';
            if (name_end[-1] == '\'') *at++ = '\'';
            c = name_end;
        } else if (is_number) {
            *at++ = '#';
            c += strspn(c + 1, ".0123456789e+-");
        } else {
            *at++ = *c;
        }
    }
    *at = '\0';
}

static bool has_weight(const Plan *plan, const Step *step) {
    const Json *line = plan->tape.lines[plan->units[step->unit].first].json;
    return strcmp(json_text(line, "op", ""), "linear") == 0;
}

/* Has it several matrices? */
static bool has_panels(const TapeTensor *x) {
    int64_t matrices = 1;
    for (int d = 0; d + 2 < x->rank; d++) matrices *= x->shape[d];
    return matrices > 1;
}

void known_rule(const Plan *plan, const Step *step, const char *title, char rule[KNOWN_TEXT]) {
    rule[0] = *step->name;
    rule[1] = ' ';
    write_blank(title, rule + 2, rule + KNOWN_TEXT - 10);
    const bool is_product = strstr(rule, "$ $") || strstr(rule, "$' $");
    if (is_product && has_weight(plan, step)) strcat(rule, " weight");
    else if (is_product && has_panels(&plan->tape.tensors[step->tensor])) strcat(rule, " each");
}

/* Does this lesson come after that of "2/b4.1"? */
static bool is_after(const Plan *plan, const char *where) {
    const int64_t number = json_integer(plan->lesson, "number", 0), other = strtol(where, NULL, 10);
    return other < number ||
           (other == number && *json_text(plan->lesson, "part", "") && where[1] == '/');
}

static const char *where_known(const Plan *plan, const char *rule) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].rule, rule) == 0 && is_after(plan, known[i].where))
            return known[i].where;
    return NULL;
}

bool known_mark(Plan *plan) {
    Formula f;
    char(*rules)[KNOWN_TEXT] = memory_take(&plan->tape.memory, plan->num_steps, sizeof *rules);
    for (int s = 0; rules && s < plan->num_steps; s++) {
        Step *step = &plan->steps[s];
        if (step->unit < 0) continue;
        formula_of(plan, step, &f);
        known_rule(plan, step, f.title, rules[s]);
        step->as = where_known(plan, rules[s]);
        bool is_new = !step->as && step->phase != STEP_START && (!step->moves || step->product);
        for (int i = 0; i < s && is_new; i++) is_new = strcmp(rules[i], rules[s]) != 0;
        if (is_new) step->is_key = true;
    }
    return rules && !tensor_error();
}
