/* worked.c - what each number of a step is made of: see worked.h.
 *
 * One walk over a tree writes its form, reads the elements of a number, or prints its line, as it
 * is asked. The sections: numbers, the walk, terms, trees of steps, calls, the whole. */
#include "worked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POWERS = 6 /* in the sum of a softmax */ };

/* What is asked: a form, elements, or a line and its value; the others are NULL. */
typedef struct {
    const Recipe *r;
    const Tree *tree;
    char *form, *line;
    Worked *w;
    int more;       /* decimals of a line */
    bool is_raised; /* the number has an exponent behind it */
    int64_t terms;  /* of the sum */
} Walk;

static void put(Walk *k, const char *text) {
    if (k->form) put_text(k->form, FORM_TEXT, "%s", text);
    else if (k->line) put_text(k->line, LINE_TEXT, "%s", text);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void read(Worked *w, int64_t element) {
    if (w->count < WORKED_ELEMENTS) w->elements[w->count++] = element;
}

/* A negative number has brackets behind a sign, and before a power. */
static void put_number(Walk *k, double x, Format format) {
    char text[NUMBER_TEXT];
    if (!k->line) return;
    format_number(x, format, text);
    const size_t n = strlen(k->line);
    const bool follows = n > 1 && k->line[n - 1] == ' ' && strchr("x+-/", k->line[n - 2]);
    const bool brackets = *text == '-' && (follows || k->is_raised);
    put_text(k->line, LINE_TEXT, brackets ? "(%s)" : "%s", text);
}

/* A number as its table shows it, or with more decimals where it is rounded there. */
static double as_printed(Walk *k, double x, Format format) {
    double value = format_value(x, format);
    if (k->more > 0 && fabs(value - x) > 1e-9 * fabs(x)) {
        format.decimals += k->more;
        value = format_value(x, format);
    }
    put_number(k, x, format);
    return value;
}

/* The item with these numbers; -1 if there is none. What the step makes is not looked at. */
static int find_item(const Formula *f, const double *numbers) {
    for (int i = 0; i < f->count; i++)
        if (i != f->main && f->items[i].numbers == numbers) return i;
    return -1;
}

/* Element i of a table, which is hidden if it is no item of the formula. */
static double walk_item(Walk *k, const double *numbers, int64_t size, int tensor, int64_t i,
                        bool any) {
    Formula *f = k->r->formula;
    int item = find_item(f, numbers);
    if (item < 0 && tensor >= 0) item = formula_hide_value(k->r->plan, f, tensor);
    if (item < 0) item = formula_hide_constants(f, numbers, size);
    const bool is_constant = f->items[item].of == ITEM_CONSTANT;
    if (k->form) put_text(k->form, FORM_TEXT, any ? "@*" : "@%d", item);
    if (k->w && any) read(k->w, item);
    if (k->w) read(k->w, i);
    return as_printed(k, numbers[i],
                      is_constant ? format_of_constant(numbers[i]) : f->items[item].format);
}

static double walk_table(Walk *k, int table, int64_t i, bool any) {
    const TreeTable *t = &k->tree->tables[table];
    return walk_item(k, t->numbers, dims_size(&t->dims), t->is_gradient ? -1 : t->tensor, i, any);
}

static double walk_constant(Walk *k, double x) {
    if (k->form) put_text(k->form, FORM_TEXT, "{%.17g}", x);
    return as_printed(k, x, format_of_constant(x));
}

/* ---- the walk -------------------------------------------------------------------------------- */

static double walk(Walk *k, int n, int64_t i, int least);

/* allowed * x: a term where allowed is 0 is left out, and allowed itself is not said. */
static int said_of(const Tree *tree, int n, int64_t i, bool *counts) {
    const TreeNode *node = &tree->nodes[n];
    const TreeNode *a = node->sign == '*' ? &tree->nodes[node->a] : NULL;
    *counts = true;
    if (!a || a->sign != 't' || strcmp(tree->tables[a->table].name, "allowed") != 0) return n;
    *counts = tree->tables[a->table].numbers[dims_element(&a->dims, &node->dims, i)] != 0;
    return node->b;
}

static bool is_flat(const Tree *tree, const TreeNode *node) {
    return node->sign == 'S' && tree->nodes[node->a].sign == '@' && !tree->nodes[node->a].own;
}

/* Term t of a sum; a sum of copies of products has the products' terms. */
static double walk_term(Walk *k, int n, int64_t i, int64_t t) {
    const TreeNode *node = &k->tree->nodes[n];
    int64_t a, b;
    bool counts;
    if (node->sign == 'J') {
        const TreeTerm *term = &node->terms->of[node->terms->begin[i] + t];
        const double J = node->is_plain ? 1
                                        : walk_item(k, node->terms->J, node->terms->count, -1,
                                                    term - node->terms->of, false);
        if (!node->is_plain) put(k, " x ");
        return J * walk_table(k, term->table, term->i, k->tree->num_tables > 1);
    }
    if (is_flat(k->tree, node)) {
        const int64_t inner = tree_terms(k->tree, node->a);
        tree_term(k->tree, n, i, t / inner, &a, &b);
        return walk_term(k, node->a, a, t % inner);
    }
    tree_term(k->tree, n, i, t, &a, &b);
    const double x = walk(k, said_of(k->tree, node->a, a, &counts), a, 2);
    if (b < 0) return x;
    put(k, " x ");
    return x * walk(k, node->b, b, 2);
}

/* Of a product with pairs those with 0 are left out, too. */
static bool counts_term(const Tree *tree, int n, int64_t i, int64_t t) {
    bool counts = true;
    int64_t a, b;
    const TreeNode *node = &tree->nodes[n];
    if (node->sign != 'f' && node->sign != '@') return true;
    tree_term(tree, n, i, t, &a, &b);
    if (b < 0) said_of(tree, node->a, a, &counts);
    else if (tree->nodes[node->b].sign == 't') {
        const TreeTable *table = &tree->tables[tree->nodes[node->b].table];
        counts = strcmp(table->name, "pairs") != 0 || table->numbers[b] != 0;
    }
    return counts;
}

/* In a form once, between brackets. */
static double walk_sum(Walk *k, int n, int64_t i) {
    const TreeNode *node = &k->tree->nodes[n];
    if (k->form) { /* that of any term */
        if (node->sign == 'J')
            while (node->terms->begin[i + 1] == 0 && node->terms->count > 0) i++;
        put(k, "[");
        if (node->sign != 'J' || node->terms->count > 0) walk_term(k, n, i, 0);
        put(k, "]");
        return 0;
    }
    int64_t terms = node->sign == 'J' ? node->terms->begin[i + 1] - node->terms->begin[i]
                                      : tree_terms(k->tree, n),
            all = 0, shown = 0;
    double sum = 0;
    char rest[48];
    if (is_flat(k->tree, node)) terms *= tree_terms(k->tree, node->a);
    for (int64_t t = 0; t < terms; t++) all += counts_term(k->tree, n, i, t);
    k->terms = all;
    for (int64_t t = 0; t < terms; t++) {
        if (!counts_term(k->tree, n, i, t)) continue;
        if (shown == MOST_TERMS && all > MOST_TERMS + 2) break;
        if (shown++) put(k, " + ");
        sum += walk_term(k, n, i, t);
    }
    snprintf(rest, sizeof rest, " + ... (%lld terms)", (long long)all);
    if (k->line && shown < all) put(k, rest);
    return shown < all ? (double)NAN : sum;
}

static double walk_two(Walk *k, const TreeNode *node, int64_t a, int64_t b) {
    const bool is_max = node->sign == 'M';
    const int own = is_max ? 0 : tree_strength(node->sign);
    const char sign[4] = {' ', (char)(node->sign == '*' ? 'x' : node->sign), ' '};
    if (is_max) put(k, "max(");
    const double x = walk(k, node->a, a, own);
    put(k, is_max ? ", " : sign);
    const double y = walk(k, node->b, b, is_max ? 0 : own + !strchr("+*", node->sign));
    if (is_max) put(k, ")");
    return tree_apply(node->sign, x, y);
}

static double walk_power(Walk *k, const TreeNode *node, int64_t i) {
    const double power = k->tree->nodes[node->b].number;
    char text[24];
    k->is_raised = true;
    const double x = walk(k, node->a, i, 3);
    k->is_raised = false;
    snprintf(text, sizeof text, "^%g", power);
    put(k, text);
    return pow(x, power);
}

static double walk_one(Walk *k, const TreeNode *node, int64_t i, int least) {
    const int64_t a = node->a < 0 ? 0 : dims_element(&k->tree->nodes[node->a].dims, &node->dims, i);
    double x;
    switch (node->sign) {
    case 't': return walk_table(k, node->table, i, false);
    case '#': return walk_constant(k, node->number);
    case '\'': return walk(k, node->a, dims_turned(&k->tree->nodes[node->a].dims, i), least);
    case 'E': return walk(k, node->a, a, least);
    case 'R': return walk(k, node->a, i, least);
    case '^': return walk_power(k, node, a);
    case '~': put(k, "-1 x "); return -walk(k, node->a, a, 3);
    case 'f':
        put(k, node->function);
        put(k, "(");
        x = walk(k, node->a, a, 0);
        put(k, ")");
        return tree_function(node->function, x);
    default:
        return walk_two(k, node, a, dims_element(&k->tree->nodes[node->b].dims, &node->dims, i));
    }
}

static double walk(Walk *k, int n, int64_t i, int least) {
    bool counts;
    n = said_of(k->tree, n, i, &counts);
    const TreeNode *node = &k->tree->nodes[n];
    const bool is_sum = tree_is_sum(node);
    if (node->own) return walk_item(k, node->own, dims_size(&node->dims), -1, i, false);
    const bool brackets = (is_sum ? 1 : tree_strength(node->sign)) < least;
    if (brackets) put(k, "(");
    const double x = is_sum ? walk_sum(k, n, i) : walk_one(k, node, i, least);
    if (brackets) put(k, ")");
    return x;
}

/* ---- trees of steps -------------------------------------------------------------------------- */

/* A sum of terms, as many as derivatives are not 0. */
static Tree *new_terms(Plan *plan, int64_t size, int64_t count) {
    Tree *tree = memory_take(&plan->tape.memory, 1, sizeof *tree);
    TreeTerms *terms = memory_take(&plan->tape.memory, 1, sizeof *terms);
    if (!tree || !terms) return NULL;
    *terms = (TreeTerms){.begin = memory_take(&plan->tape.memory, size + 1, sizeof *terms->begin),
                         .of = memory_take(&plan->tape.memory, count, sizeof *terms->of),
                         .J = memory_take(&plan->tape.memory, count, sizeof *terms->J)};
    tree->nodes[tree->n++] =
        (TreeNode){.sign = 'J', .a = -1, .b = -1, .terms = terms, .is_plain = true};
    return tensor_error() ? NULL : tree;
}

static void add_table(Plan *plan, Tree *tree, int tensor, bool is_gradient) {
    const TapeTensor *x = &plan->tape.tensors[tensor];
    tree->tables[tree->num_tables++] =
        (TreeTable){is_gradient, tensor, "", is_gradient ? x->grad : x->value, {1, {x->size}}};
}

static void add_term(Tree *tree, int table, int64_t i, double J) {
    TreeNode *node = tree->nodes;
    TreeTerms *terms = node->terms;
    terms->J[terms->count] = J;
    terms->of[terms->count++] = (TreeTerm){table, i};
    node->is_plain = node->is_plain && J == 1;
}

static Tree *tree_of_moves(Plan *plan, const Unit *unit, const Source *moves) {
    const RuledLine *first = &plan->tape.lines[unit->first];
    const int64_t size = plan->tape.tensors[plan->tape.lines[unit->last].out].size;
    Tree *tree = new_terms(plan, size, size);
    int tables[TREE_TABLES] = {0};
    for (int k = 0; tree && k < first->num_in && k < TREE_TABLES; k++) {
        tables[k] = tree->num_tables;
        if (first->in[k] >= 0) add_table(plan, tree, first->in[k], false);
    }
    for (int64_t j = 0; tree && j < size; j++) {
        add_term(tree, tables[moves[j].k], moves[j].i, 1);
        tree->nodes[0].terms->begin[j + 1] = j + 1;
    }
    return tree;
}

/* Of derivatives by row or by column; the largest terms first where not all are shown. */
static Tree *tree_of_jacobian(Plan *plan, const Jacobian *J, int64_t size, int tensor,
                              bool is_gradient) {
    Tree *tree = new_terms(plan, size, J->begin[size]);
    if (!tree) return NULL;
    add_table(plan, tree, tensor, is_gradient);
    const double *x = tree->tables[0].numbers;
    for (int64_t i = 0; i < size; i++) {
        const int64_t first = J->begin[i], n = J->begin[i + 1] - first;
        for (int64_t t = 0; t < n; t++) {
            int64_t best = first + t;
            for (int64_t e = best; n > MOST_TERMS + 2 && is_gradient && e < first + n; e++)
                if (fabs(x[J->of[e].j] * J->of[e].J) > fabs(x[J->of[best].j] * J->of[best].J))
                    best = e;
            const Derivative d = J->of[best];
            memmove(&J->of[first + t + 1], &J->of[first + t],
                    (size_t)(best - first - t) * sizeof d);
            J->of[first + t] = d;
            add_term(tree, 0, d.j, d.J);
        }
        tree->nodes[0].terms->begin[i + 1] = tree->nodes[0].terms->count;
    }
    return tree;
}

/* The parts that are added, or "before" and those after it. */
static Tree *tree_of_addition(Plan *plan, const Formula *f) {
    Tree *tree = memory_take(&plan->tape.memory, 1, sizeof *tree);
    for (int i = 0; tree && i < f->count; i++) {
        const Item *item = &f->items[i];
        if (i == f->main || !item->numbers) continue;
        const Dims dims = {1, {item->size}};
        const short table = (short)tree->num_tables, before = (short)(tree->n - 1);
        tree->tables[tree->num_tables++] = (TreeTable){true, -1, "", item->numbers, dims};
        tree->nodes[tree->n++] =
            (TreeNode){.sign = 't', .a = -1, .b = -1, .table = table, .dims = dims};
        if (before >= 0)
            tree->nodes[tree->n] =
                (TreeNode){.sign = '+', .a = before, .b = (short)(tree->n - 1), .dims = dims};
        tree->n += before >= 0;
    }
    return tree;
}

/* Is a sum of a line that is no table short enough to stand there? */
static bool has_short_sums(const Tree *tree, int n) {
    const TreeNode *node = &tree->nodes[n];
    if (node->sign == '=') return true;
    if (node->sign == 'f' && tree_is_sum(node) && tree_terms(tree, n) > MOST_POWERS) return false;
    return (node->a < 0 || has_short_sums(tree, node->a)) &&
           (node->b < 0 || has_short_sums(tree, node->b));
}

static void recipe_forward(Recipe *r) {
    Plan *plan = r->plan;
    const Step *step = r->step;
    const Unit *unit = &plan->units[step->unit];
    const RuledLine *line = &plan->tape.lines[unit->last];
    r->line = line;
    name_of_op(line, r->op);
    if (step->moves) {
        r->tree = tree_of_moves(plan, unit, unit->name ? unit->moves : line->right_moves);
        r->after = ", moved";
    } else if (line->tree)
        r->tree = has_short_sums(line->tree, line->tree->n - 1) ? line->tree : NULL;
    else if (line->num_parts == 1 && is_linear(plan, line))
        r->tree = tree_of_jacobian(plan, &line->parts[0].rows, plan->tape.tensors[line->out].size,
                                   line->parts[0].x, false);
}

/* Has a table of its own a line? A largest number is no sum. (The other tables have node 0, which
 * is a leaf.) */
static bool has_line(const TreeNode *node) {
    return node->sign == '=' ||
           (node->sign == 'f' && tree_is_sum(node) && strcmp(node->function, "max") != 0);
}

void recipe_of(Plan *plan, const Step *step, Formula *f, Recipe *r) {
    const Part *part = step->part;
    *r = (Recipe){.plan = plan, .step = step, .formula = f, .after = ""};
    formula_of(plan, step, f);
    if (step->phase == STEP_FORWARD) recipe_forward(r);
    else if (step->phase == STEP_ADD) r->tree = tree_of_addition(plan, f);
    else if (step->phase == STEP_BACKWARD) {
        r->tree = part->moves ? step->product : part->tree;
        if (part->moves && !r->tree) r->after = ", moved back";
        if (!r->tree && !part->is_odd)
            r->tree =
                tree_of_jacobian(plan, &part->by, plan->tape.tensors[part->x].size, part->y, true);
    }
    for (int i = 0; r->tree && i < f->count && r->num_sums < MOST_SUMS; i++)
        if (f->items[i].numbers && has_line(&r->tree->nodes[f->items[i].node]))
            r->sums[r->num_sums++] = i;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* How many derivatives reach element j. */
static int64_t count_sources(const RuledLine *line, int64_t j) {
    int64_t count = 0;
    for (int n = 0; n < line->num_parts; n++)
        count += line->parts[n].rows.begin[j + 1] - line->parts[n].rows.begin[j];
    return count;
}

/* Does any number of the input move result j? */
static bool moves(const Part *p, int64_t j) { return p->rows.begin[j] < p->rows.begin[j + 1]; }

/* As many numbers of each table, each once. */
static void read_call(const Recipe *r, int64_t j, Worked *w) {
    int tables = 0;
    w->op = r->op;
    for (int n = 0; n < r->line->num_parts; n++) tables += moves(&r->line->parts[n], j);
    for (int n = 0; n < r->line->num_parts; n++) {
        const Part *p = &r->line->parts[n];
        const int found = find_item(r->formula, r->plan->tape.tensors[p->x].value);
        const int item = found < 0 ? formula_hide_value(r->plan, r->formula, p->x) : found;
        int64_t shown = 0;
        for (int64_t e = p->rows.begin[j]; e < p->rows.begin[j + 1]; e++, shown++) {
            const bool is_more = shown == MOST_TERMS / tables;
            read(w, item);
            read(w, is_more ? -1 : p->rows.of[e].j);
            if (is_more) break;
        }
    }
}

/* Why no input changes a number; of a line that gets no gradient nothing is known but its op. */
static void note_unmoved(const Plan *plan, const RuledLine *line, int64_t j, char *note) {
    const TapeTensor *y = &plan->tape.tensors[line->out];
    char name[NAME_TEXT];
    size_t n = 0;
    strcpy(note, "no input changes it");
    for (int i = 0; i < line->num_parts; i++) {
        const Part *p = &line->parts[i];
        if (plan->tape.tensors[p->x].size != y->size) continue;
        if (p->reasons[j] && strcmp(p->reasons[j], "weight is 1") == 0)
            strcpy(note, "the other weights of its row are 0, so it stays 1");
        return;
    }
    if (line->num_parts > 0) return;
    name_of_op(line, name);
    n = (size_t)snprintf(note, NOTE_TEXT, "%.60s of ", name);
    for (int k = 0; k < line->num_in && n < NOTE_TEXT - 4; k++) {
        if (line->in[k] < 0) continue;
        name_of_tensor(plan, line->in[k], false, name);
        n += (size_t)snprintf(note + n, NOTE_TEXT - n, "%s%s", k ? ", " : "", name);
    }
}

/* "softmax of 1, 2, ... and 0, 1" */
static void print_call(Walk *k, const Worked *w) {
    put(k, w->op);
    for (int n = 0; n + 1 < w->count; n += 2) {
        const Item *from = &k->r->formula->items[w->elements[n]];
        const bool is_other = n > 0 && w->elements[n - 2] != w->elements[n];
        if (n == 0) put(k, " of ");
        else put(k, is_other ? " and " : ", ");
        if (w->elements[n + 1] < 0) put(k, "...");
        else put_number(k, from->numbers[w->elements[n + 1]], from->format);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The tree, or the inside of a table of sums. */
static double walk_all(Walk *k, int sum, int64_t i) {
    if (sum < 0) return walk(k, k->tree->n - 1, i, 0);
    int n = worked_item(k->r, sum)->node;
    if (k->tree->nodes[n].sign == '=') n = k->tree->nodes[n].a;
    const TreeNode *node = &k->tree->nodes[n];
    const bool is_mean = node->sign == 'f' && strcmp(node->function, "mean") == 0;
    if (!tree_is_sum(node)) return walk(k, n, i, 0);
    if (is_mean) put(k, "(");
    const double x = walk_sum(k, n, i);
    if (is_mean) put(k, ") / ");
    return is_mean ? x / walk_constant(k, (double)tree_terms(k->tree, n)) : x;
}

const Item *worked_item(const Recipe *r, int sum) {
    return &r->formula->items[sum < 0 ? r->formula->main : r->sums[sum]];
}

void worked_form(const Recipe *r, int sum, char form[FORM_TEXT]) {
    Walk k = {.r = r, .tree = r->tree, .form = form};
    *form = '\0';
    if (r->tree) walk_all(&k, sum, 0);
}

void worked_of(const Recipe *r, int sum, int64_t i, Worked *w) {
    Walk k = {.r = r, .tree = r->tree, .w = w, .terms = 1};
    const bool is_forward = r->step->phase == STEP_FORWARD;
    const int top = r->tree ? r->tree->n - 1 : 0;
    const bool is_softmax =
        r->tree && r->line && r->tree == r->line->tree && tree_has_sum(r->tree, top);
    const bool is_value = r->tree && (sum >= 0 || !is_softmax ||
                                      is_near(tree_number(r->tree, top, i), r->step->numbers[i]));
    const bool asks_line = is_forward && sum < 0 && (!r->tree || is_softmax);
    *w = (Worked){.terms = 1};
    if (asks_line && count_sources(r->line, i) == 0) note_unmoved(r->plan, r->line, i, w->note);
    else if (is_value) walk_all(&k, sum, i);
    else if (is_forward) read_call(r, i, w);
    w->terms = k.terms;
}

double worked_line(const Recipe *r, int sum, int64_t i, int more, char text[LINE_TEXT]) {
    static Worked w;
    Walk k = {.r = r, .tree = r->tree, .line = text, .more = more};
    if (text) *text = '\0';
    worked_of(r, sum, i, &w);
    put(&k, w.note);
    if (w.op) print_call(&k, &w);
    return *w.note || w.op || w.count == 0 ? (double)NAN : walk_all(&k, sum, i);
}

int worked_more(const Recipe *r, int sum, int64_t i) {
    enum { MOST_MORE = 9 /* 1 - y^2 of a y near 1 needs most digits */ };
    const Item *made = worked_item(r, sum);
    const Format format = made->format;
    const double wanted = format_value(made->numbers[i], format);
    for (int more = 0; r->tree && !*r->after && more <= MOST_MORE; more++) {
        const double value = worked_line(r, sum, i, more, NULL);
        if (!isfinite(value)) return 0;
        if (format_value(value, format) == wanted) return more;
    }
    return 0;
}
