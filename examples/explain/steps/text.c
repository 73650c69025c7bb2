/* text.c - a lesson in the terminal: see text.h.
 *
 * The page and this text show the same data, the lesson as JSON, in the same steps (plan.h). The
 * sections: words, headings, questions, steps. */
#include "text.h"

#include "../../common/output.h"
#include "../../common/plural.h"
#include "../../common/utf8.h"
#include "../lessons/again.h"
#include "../rules/card.h"
#include "algebra.h"
#include "sentences.h"
#include "tables.h"
#include "worked.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static Plan plan;
static const Json *lesson;

/* ---- words ----------------------------------------------------------------------------------- */

/* A paragraph in lines of at most 80 characters, after a margin; code in backquotes is bold. Behind
 * one that ends with a newline there is an empty line. */
static void print_paragraph(const char *text, int margin) {
    int column = 0;
    bool code = false;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        int letters = 0;
        for (int i = 0; i < length; i++) letters += !strchr("`\n", text[i]);
        if (column > margin && column + 1 + letters > TERMINAL_WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column > 0) putchar(' ');
        else printf("%*s", margin, "");
        column += letters + (column > 0 ? 1 : margin);
        for (int i = 0; i < length; i++) {
            if (text[i] != '`') {
                putchar(text[i]);
                continue;
            }
            code = !code;
            if (code) paint(BOLD);
            else unpaint();
        }
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

/* A paragraph as printf makes it. */
TENSOR_PRINTF(2, 3) static void say(int margin, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_paragraph(text, margin);
}

/* ---- headings -------------------------------------------------------------------------------- */

/* Do differences agree with the derivatives? Is a gradient the sum of its parts? */
static const char *check_of(const Step *step) {
    char words[160];
    bool passes_on;
    const Check check = check_of_step(&plan, step, words, &passes_on);
    const bool is_sum = step->phase == STEP_ADD;
    if (check == CHECK_WRONG) return ", check FAILS";
    if (check == CHECK_UNCHECKED || (check == CHECK_RIGHT && !is_sum && step->part->unchecked > 0))
        return ", not all checked";
    return check == CHECK_RIGHT && !is_sum ? ", check ok" : "";
}

static bool fails(const Step *step) {
    char words[160];
    bool passes_on;
    return check_of_step(&plan, step, words, &passes_on) == CHECK_WRONG;
}

/* How many steps are shown before this one, and how many in all, in its direction. */
static int count_steps(const Step *step, int *all) {
    const bool forward = step->phase == STEP_FORWARD;
    int before = 0;
    *all = 0;
    for (int i = 1; i < plan.num_steps; i++) {
        const Step *other = &plan.steps[i];
        if (other->unit < 0 || !plan_shows(&plan, other, false)) continue;
        if (forward != (other->phase == STEP_FORWARD)) continue;
        ++*all;
        before += other <= step;
    }
    return before;
}

/* "A = softmax(S) ............ backward 3 of 8, b3.0, check ok" */
static void print_heading(const Step *step, const Formula *f) {
    char title[FORMULA_TEXT], right[96];
    int all;
    const int number = count_steps(step, &all);
    const char *direction = step->phase == STEP_FORWARD ? "forward" : "backward";
    plain_text(f->title, title, sizeof title);
    const size_t n = strlen(title);
    if (step->unit < 0) snprintf(right, sizeof right, " %s", step->name);
    else
        snprintf(right, sizeof right, " %s %d of %d, %s%s", direction, number, all, step->name,
                 check_of(step));
    paint(BOLD);
    if (n <= TERMINAL_WIDTH) printf("%s", title);
    else print_paragraph(title, 0);
    unpaint();
    int used = utf8_text_columns(title) + 1;
    const bool fits = used + (int)strlen(right) <= TERMINAL_WIDTH;
    if (n <= TERMINAL_WIDTH) putchar(fits ? ' ' : '\n');
    if (!fits) used = 0;
    for (; used + (int)strlen(right) < TERMINAL_WIDTH; used++) putchar('.');
    printf("%s\n", right);
}

/* Prints the rules that are planted, and what became of them; = in place of += is none. */
static void show_planted(void) {
    const char *key = json_text(lesson, "rule", "");
    const Json *rule = json_first(lesson, "planted");
    if (strcmp(key, "assign") == 0) putchar('\n');
    if (strcmp(key, "assign") == 0) say(0, "Backward is wrong here: = in place of +=.");
    for (; rule; rule = rule->next) {
        const char *known = json_text(rule, "computes", "");
        const char *why = json_text(rule, "why", "");
        const char *before = *why ? ". " : "";
        if (*known) before = ". A known mistake: ";
        putchar('\n');
        say(0, "The rule of %s is %s: %s%s%s", json_text(rule, "name", ""),
            json_text(rule, "verdict", ""), json_text(rule, "formula", ""), before,
            *known ? known : why);
    }
}

/* "Lesson 3b: " */
static void print_title(void) {
    const int number = (int)json_integer(lesson, "number", 0);
    paint(BOLD);
    if (number > 0) printf("Lesson %d%s: ", number, json_text(lesson, "part", ""));
    printf("%s\n", json_text(lesson, "title", ""));
    unpaint();
}

/* The strings of a list, as paragraphs. */
static void print_list(const char *key, int margin, bool apart) {
    for (const Json *item = json_first(lesson, key); item; item = item->next) {
        if (item->kind != JSON_STRING) continue;
        if (apart) putchar('\n');
        print_paragraph(item->text, margin);
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The options of a question, and which one is right, or nothing. */
static const char *right_option(const Json *question) {
    const Json *option =
        json_at(json_get(question, "options"), json_integer(question, "answer", -1));
    return option && option->kind == JSON_STRING ? option->text : "";
}

/* A question with its options and its hint. */
static void print_question(const char *word, const Json *question) {
    const char *hint = json_text(question, "hint", "");
    const Json *option = json_first(question, "options");
    say(TERMINAL_MARGIN, "%s%s", word, json_text(question, "ask", ""));
    for (; option; option = option->next)
        say(TERMINAL_MARGIN + 2, "- %s", option->kind == JSON_STRING ? option->text : "");
    if (*hint) say(TERMINAL_MARGIN, "Hint: %s", hint);
    putchar('\n');
}

/* The cells of a gradient that are 0, as many as a line has room for. */
static void list_zeros(const TapeTensor *x, char *text, size_t size) {
    for (int64_t i = 0; x->grad && i < x->size && strlen(text) + 40 < size; i++) {
        char place[PLACE_TEXT] = "";
        if (x->grad[i] != 0) continue;
        put_place(&plan, x, i, x->rank, place);
        put_text(text, size, "%s%s", *text ? " and " : "0 at ", place);
    }
}

/* How many terms the gradient of an element has in one line; -1 if the tape has no such part. */
static int64_t terms_asked_for(const Json *question) {
    const int64_t l = json_integer(question, "line", -1), i = json_integer(question, "index", -1);
    const Json *line = json_at(json_get(json_get(lesson, "tape"), "lines"), l);
    const Json *d = json_at(json_get(line, "backward"), json_integer(question, "input", -1));
    const Json *column = json_at(json_get(d, "jacobian"), i);
    return column && column->kind == JSON_ARRAY ? column->count / 2 : -1;
}

static void print_answer(const Json *question) {
    char text[1024] = "", number[NUMBER_TEXT];
    const char *kind = json_text(question, "kind", "choice");
    const int64_t t = json_integer(question, "tensor", -1), i = json_integer(question, "index", -1);
    const TapeTensor *x = t >= 0 && t < plan.tape.num_tensors ? &plan.tape.tensors[t] : NULL;
    if (strcmp(kind, "choice") == 0) {
        const char *why = json_text(question, "why", "");
        snprintf(text, sizeof text, "%.200s%s%.700s", right_option(question), *why ? ". " : "",
                 why);
    } else if (strcmp(kind, "zeros") == 0 && x) {
        list_zeros(x, text, sizeof text);
    } else if (strcmp(kind, "number") == 0 && x && i >= 0 && i < x->size) {
        const bool is_grad = strcmp(json_text(question, "part", ""), "grad") == 0;
        const double *numbers = is_grad ? x->grad : x->value;
        if (numbers) format_number(numbers[i], format_of(numbers, x->size), number);
        if (numbers) snprintf(text, sizeof text, "%s", number);
    } else if (strcmp(kind, "count") == 0) {
        const int64_t terms = terms_asked_for(question);
        if (terms >= 0) snprintf(text, sizeof text, "%d term%s", (int)terms, plural(terms));
    }
    if (!*text) return;
    say(TERMINAL_MARGIN, "Answer: %s\n", text);
}

/* Does a question belong to this step, or to a line that is folded in it? */
static bool stands_at(const Json *item, const Step *step) {
    const char *name = json_text(item, "at", "");
    return *name && plan_find(&plan, name, false) == step - plan.steps;
}

/* Prints the questions of a step, or their answers. */
static void print_questions(const Step *step, bool answers) {
    const Json *question = json_first(lesson, "questions");
    for (; question; question = question->next) {
        if (!stands_at(question, step)) continue;
        if (answers) print_answer(question);
        else print_question("Question: ", question);
    }
}

/* ---- experiments ----------------------------------------------------------------------------- */

/* The width of a name or a number, without backquotes. */
static int width_of(const char *text) {
    int width = utf8_text_columns(text);
    for (; *text; text++) width -= *text == '`';
    return width;
}

/* Prints it after so many blanks that it ends at `width`. */
static void print_right(const char *text, int width) {
    printf("%*s", width - width_of(text), "");
    for (; *text; text++)
        if (*text != '`') putchar(*text);
}

static int widest_of(const Json *names) {
    int most = 0;
    for (const Json *name = names; name; name = name->next)
        if (width_of(name->text) > most) most = width_of(name->text);
    return most;
}

static int width_of_column(const Json *experiment, int64_t c) {
    const Json *columns = json_get(experiment, "columns");
    int most = width_of(json_at(columns, c)->text);
    const Json *position = json_first(experiment, "positions");
    for (; position; position = position->next) {
        int64_t i = 0;
        for (const Json *cell = json_first(position, "cells"); cell; cell = cell->next, i++)
            if (i % columns->count == c && width_of(cell->text) > most) most = width_of(cell->text);
    }
    return most;
}

/* Ends a line, of which `before` blanks are not yet printed, with names or cells of all columns.
 * Returns the cell after them. */
static const Json *print_cells(const Json *experiment, const Json *cell, int before) {
    const int64_t columns = json_get(experiment, "columns")->count;
    for (int64_t c = 0; c < columns && cell; c++, cell = cell->next) {
        before += 2 + width_of_column(experiment, c);
        if (!*cell->text) continue;
        print_right(cell->text, before);
        before = 0;
    }
    putchar('\n');
    return cell;
}

/* A line for each row of the table, with the label before the first. */
static void print_position(const Json *experiment, const Json *position, int label) {
    const Json *rows = json_first(experiment, "rows");
    const Json *cell = json_first(position, "cells");
    const char *before = json_text(position, "label", "");
    for (const Json *row = rows; row; row = row->next, before = "") {
        print_right(before, TERMINAL_MARGIN + label);
        print_right("", 2);
        print_right(row->text, widest_of(rows));
        cell = print_cells(experiment, cell, 0);
    }
    const char *says = json_text(position, "says", NULL);
    if (says) print_paragraph(says, TERMINAL_MARGIN + label + 2);
}

/* Why a line follows stands under it. */
static void print_why_line(const char *line, const char *why) {
    char plain[ALGEBRA_TEXT] = "";
    for (const char *c = line; *c; c++)
        if (!strchr("<>", *c)) put_text(plain, sizeof plain, "%c", *c);
    print_paragraph(plain, TERMINAL_MARGIN);
    if (*why) print_paragraph(why, TERMINAL_MARGIN + 4);
}

static void print_experiment(const Json *experiment) {
    const Json *positions = json_first(experiment, "positions");
    int label = 0;
    for (const Json *position = positions; position; position = position->next) {
        const int width = width_of(json_text(position, "label", ""));
        if (width > label) label = width;
    }
    say(TERMINAL_MARGIN, "Try it: %s", json_text(experiment, "title", ""));
    say(TERMINAL_MARGIN, "%s The slider: %s.", json_text(experiment, "lead", ""),
        json_text(experiment, "knob", ""));
    print_cells(experiment, json_first(experiment, "columns"),
                TERMINAL_MARGIN + label + 2 + widest_of(json_first(experiment, "rows")));
    for (const Json *position = positions; position; position = position->next)
        print_position(experiment, position, label);
    const Json *line = json_first(experiment, "algebra");
    for (; line; line = line->next)
        print_why_line(json_text(line, "line", ""), json_text(line, "why", ""));
    putchar('\n');
}

static void print_experiments(const Step *step) {
    const Json *experiment = json_first(lesson, "experiments");
    for (; experiment; experiment = experiment->next)
        if (stands_at(experiment, step)) print_experiment(experiment);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The tables of a question, a line for each row; a 0 is hidden where cells are to be chosen. */
static void print_again_tables(const Json *question) {
    const bool which = strcmp(json_text(question, "form", ""), "which") == 0;
    const Json *table = json_first(question, "tables");
    for (; table; table = table->next) {
        const int64_t columns = json_integer(table, "columns", 1);
        int64_t i = 0;
        for (const Json *x = json_first(table, "numbers"); x; x = x->next, i++) {
            if (i % columns == 0)
                printf("%s%*s%-4s", i ? "\n" : "", TERMINAL_MARGIN + 4, "",
                       i ? "" : json_text(table, "name", ""));
            if (which) printf("%6s", x->number == 0 ? "//" : ".");
            else printf("%6g", x->number);
        }
        printf("\n");
        if (!table->next) putchar('\n');
    }
}

static void print_again_answer(const Json *question) {
    const char *form = json_text(question, "form", "");
    const double answer = json_number(json_get(question, "answer"));
    char text[160] = "";
    if (strcmp(form, "number") == 0) snprintf(text, sizeof text, "%g", answer);
    if (strcmp(form, "choice") == 0) snprintf(text, sizeof text, "%s", right_option(question));
    for (int i = 0; strcmp(form, "which") == 0 && i < AGAIN_CELLS; i++)
        if ((int)answer >> i & 1)
            put_text(text, sizeof text, "%s[%d, %d]", *text ? ", " : "", i / 3, i % 3);
    say(TERMINAL_MARGIN, "Answer: %s. %s\n", text, json_text(question, "why", ""));
}

/* The questions about earlier lessons. */
static void show_again(void) {
    const Json *question = json_first(lesson, "again");
    for (; question; question = question->next) {
        say(0, "Again, from lesson %s: %s", json_text(question, "about", ""),
            json_text(question, "ask", ""));
        putchar('\n');
        print_again_tables(question);
        say(TERMINAL_MARGIN, "Hint: %s\n", json_text(question, "hint", ""));
        print_again_answer(question);
    }
}

/* The cover: the lesson's, or its text. */
static void show_cover(void) {
    const Json *cover = json_get(lesson, "cover");
    const Json *bet = json_get(lesson, "bet");
    print_title();
    if (cover) {
        print_paragraph(json_text(cover, "title", ""), 0);
        putchar('\n');
        print_paragraph(json_text(cover, "lead", ""), 0);
    } else {
        print_paragraph(json_text(lesson, "idea", ""), 0);
    }
    putchar('\n');
    print_list("formula", TERMINAL_MARGIN, false);
    if (!cover || !json_get(lesson, "steps")) print_list("text", 0, true);
    show_planted();
    putchar('\n');
    if (bet) print_question("Your bet: ", bet);
}

/* "dA[1, 0] = -1.121 x (-0.1) + (-3.944) x (-1.6) = 6.422"; makes: " = ", or words, if it does
 * not. */
static void show_line(const char *name, const char *place, const char *line, const Recipe *r,
                      const char *makes, const char *result) {
    const bool brackets = *place && name[strcspn(name, " (")] == ' ';
    say(TERMINAL_MARGIN, brackets ? "(%s)%s%s%s%s%s%s" : "%s%s%s%s%s%s%s", name, place,
        *line ? " = " : "", line, *line ? r->after : "", makes, result);
}

/* A table of sums: the one that number i of the step reads. */
static void show_sum(const Recipe *r, int n, int64_t row) {
    char line[LINE_TEXT], result[NUMBER_TEXT];
    const Item *sum = worked_item(r, n);
    worked_line(r, n, row, worked_more(r, n, row), line);
    format_number(sum->numbers[row], sum->format, result);
    show_line(sum->text, "", line, r, " = ", result);
}

/* A number that only moves says from where: "K[1, 0]". */
static void source_text(const Recipe *r, int64_t i, char line[LINE_TEXT]) {
    char place[PLACE_TEXT] = "";
    Worked w;
    worked_of(r, -1, i, &w);
    if (!r->tree || w.terms != 1 || w.count == 0) return;
    const TreeTerms *terms = r->tree->nodes[0].sign == 'J' ? r->tree->nodes[0].terms : NULL;
    const int table = terms ? terms->of[terms->begin[i]].table : 0;
    const Item *from = r->formula->items;
    while (from == worked_item(r, -1) || from->numbers != r->tree->tables[table].numbers) from++;
    put_place(&plan, from->like, w.elements[w.count - 1], from->like->rank, place);
    snprintf(line, LINE_TEXT, "%s%s", from->text, place);
}

static void show_number(const Recipe *r, int64_t i) {
    char line[LINE_TEXT], result[NUMBER_TEXT], place[PLACE_TEXT] = "";
    const Step *step = r->step;
    const Item *main = worked_item(r, -1);
    if (step->tensor < 0 || main->like->size == 0 || step->phase == STEP_START) return;
    worked_line(r, -1, i, worked_more(r, -1, i), line);
    if (*r->after) source_text(r, i, line);
    format_number(main->numbers[i], main->format, result);
    put_place(&plan, main->like, i, main->like->rank, place);
    const bool is_wrong_sum = step->phase == STEP_ADD && fails(step);
    show_line(main->text, place, line, r, is_wrong_sum ? ", but the gradient is " : " = ", result);
    for (int n = 0; n < r->num_sums; n++) show_sum(r, n, i / main->like->columns);
    putchar('\n');
}

/* At the last step: where the reader can write the rule of the lesson. */
static void show_exercise(void) {
    const char *exercise = json_text(lesson, "exercise", "");
    if (!*exercise) return;
    say(TERMINAL_MARGIN,
        "Write it yourself, in C: examples/exercises/students/%s.c. make exercises marks it.\n",
        exercise);
}

/* What the reader is to write, without an answer. */
static void show_card(const Step *step) {
    CardTask task;
    Formula f;
    formula_of(&plan, step, &f);
    print_heading(step, &f);
    putchar('\n');
    say(TERMINAL_MARGIN,
        "Write each gradient on paper, in any order, from what arrives and from what stands in its "
        "line. The page judges them.\n");
    for (int n = 0; card_task(&plan, n, &task); n++) {
        const TapeTensor *x = &plan.tape.tensors[task.tensor];
        char panels[24] = "", sizes[64] = "one number";
        if (x->panels > 1) snprintf(panels, sizeof panels, "%d x ", (int)x->panels);
        if (x->size > 1)
            snprintf(sizes, sizeof sizes, "%s%d x %d", panels, (int)x->rows, (int)x->columns);
        say(TERMINAL_MARGIN, "%s = ?  (%s)  %s", task.name, sizes, task.forward);
    }
    putchar('\n');
}

/* The code of a line of the loop. */
static const char *loop_code(const Json *loop, const char *press) {
    const Json *line = json_first(loop, "lines");
    while (line && strcmp(json_text(line, "press", ""), press) != 0) line = line->next;
    return json_text(line, "code", "");
}

/* The lines of the training loop; then some are called, one after the other. */
static void show_loop(void) {
    const Json *loop = json_get(lesson, "loop");
    const Json *line = json_first(loop, "lines");
    const Json *state = json_first(loop, "states");
    for (; line; line = line->next)
        say(TERMINAL_MARGIN, "%-20s %s", json_text(line, "code", ""), json_text(line, "does", ""));
    for (; state; state = state->next) {
        if (!*json_text(state, "press", "")) continue;
        putchar('\n');
        say(TERMINAL_MARGIN, "Then %s: %s", loop_code(loop, json_text(state, "press", "")),
            json_text(state, "says", ""));
    }
    putchar('\n');
    say(TERMINAL_MARGIN, "%s\n", json_text(loop, "course", ""));
}

static void show_step(const Step *step) {
    Algebra algebra;
    Formula f;
    Recipe r;
    const Json *bet = json_get(lesson, "bet");
    if (step->phase == STEP_COVER) {
        show_cover();
        show_again();
        return;
    }
    if (step->phase == STEP_CARD) {
        show_card(step);
        show_exercise();
        return;
    }
    recipe_of(&plan, step, &f, &r);
    print_heading(step, &f);
    putchar('\n');
    print_questions(step, false);
    if (step->phase == STEP_TWICE) show_loop();
    else tables_print(&plan, &f);
    show_number(&r, step->look);
    if (step->phase == STEP_BACKWARD) print_reasons(&plan, step->part);
    algebra_of(&plan, step, step->look, &algebra);
    for (int n = 0; n < algebra.count; n++) print_why_line(algebra.at[n].line, algebra.at[n].why);
    if (algebra.count > 0) putchar('\n');
    /* The words of a lesson are about its right rule. */
    if (step->text && !(step->phase == STEP_BACKWARD && fails(step))) {
        print_paragraph(step->text, TERMINAL_MARGIN);
        putchar('\n');
    }
    print_questions(step, true);
    if (stands_at(bet, step)) {
        say(TERMINAL_MARGIN, "Your bet was: %s", json_text(bet, "ask", ""));
        print_answer(bet);
    }
    print_experiments(step);
    if (step == &plan.steps[plan.num_steps - 1]) show_exercise();
}

bool text_show(const Json *shown) {
    lesson = shown;
    const bool made = plan_make(&plan, lesson);
    paint_plainly(terminal_is_plain(stdout));
    for (int i = 0; i < plan.num_steps && made && !tensor_error(); i++)
        if (plan_shows(&plan, &plan.steps[i], false)) show_step(&plan.steps[i]);
    plan_free(&plan);
    return made && !tensor_error();
}
