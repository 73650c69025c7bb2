/* rows.c - the trees of a tape's lines: see rows.h. */
#include "rows.h"

#include "rule.h"
#include "../../common/mistakes.h"

#include <math.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

/* Tables that are no tensors: 1 where dropout kept the number, where the mask allows the key, at
 * the target of each row, in a row that the loss counts; the turns of rope, and what (a, b) times
 * `pairs` is: (-b, a). */
enum { KEPT, ALLOWED, DERIVATIVE, TARGET, COUNTED, COS, SIN, PAIRS, TENSORS };
static const char *const words[TENSORS] = {"kept",    "allowed", "derivative", "target",
                                           "counted", "cos",     "sin",        "pairs"};

/* Does the loss count a row of scores? An ignored one gets no gradient. */
static bool counts_row(const RuledTape *tape, const RuledLine *line, int64_t row) {
    const int64_t columns = tape->tensors[line->in[0]].columns;
    const int64_t *begin = line->parts[0].by.begin + row * columns;
    return begin[0] < begin[columns];
}

/* n, the number of rows that a loss counts; counted is 1 if these are all. */
static void add_counted(const RuledTape *tape, const RuledLine *line, RuleScope *scope) {
    if (strcmp(json_text(line->json, "op", ""), "cross_entropy") != 0 || line->num_parts == 0)
        return;
    const TapeTensor *x = &tape->tensors[line->in[0]];
    const int64_t rows = x->columns > 0 ? x->size / x->columns : 0;
    int64_t n = 0;
    for (int64_t r = 0; r < rows; r++) n += counts_row(tape, line, r);
    rule_add_number(scope, "n", (double)n);
    if (n == rows) rule_add_number(scope, "counted", 1);
}

/* The names of the op's call; of a planted rule x0, x1, ... are its inputs, t7 a tensor, and g7 the
 * gradient of one. */
static void make_scope(const RuledTape *tape, const RuledLine *line, RuleScope *scope) {
    static const char *const arguments[] = {"s", "p", "scale", "eps"};
    const char *call = json_text(line->json, "call", "");
    const TapeTensor *y = &tape->tensors[line->out];
    char name[RULE_NAME];
    scope->n = 0;
    scope->may_define = true;
    for (int i = 0; i < 4; i++) {
        const Json *argument = json_get(line->json, arguments[i]);
        if (!argument) continue;
        rule_add_number(scope, arguments[i], json_number(argument));
        if (*arguments[i] == 's') rule_add_number(scope, i ? "s" : "scale", json_number(argument));
    }
    if (line->num_in > 0 && line->in[0] >= 0 && y->size > 0)
        rule_add_number(scope, "count", (double)tape->tensors[line->in[0]].size / (double)y->size);
    for (int k = 0; k < line->num_in; k++) {
        const RuleName input = {.meaning = NAMES_INPUT, .input = k};
        if (line->in[k] < 0) continue;
        rule_argument(call, k, name);
        rule_add_name(scope, name, input);
        snprintf(name, sizeof name, "x%d", k);
        rule_add_name(scope, name, input);
    }
    rule_add_number(scope, "w", 1); /* where there is none */
    rule_add_number(scope, "b", 0);
    rule_add_name(scope, "y", (RuleName){.meaning = NAMES_OUT});
    rule_add_name(scope, "dy", (RuleName){.meaning = NAMES_DY});
    if (line->num_in > 0 && line->in[0] >= 0)
        rule_add_name(scope, "x", (RuleName){.meaning = NAMES_INPUT});
    add_counted(tape, line, scope);
    for (int i = 0; i < TENSORS; i++)
        rule_add_name(scope, words[i], (RuleName){.meaning = NAMES_TENSOR, .input = i});
    for (int t = 0; t < tape->num_tensors && scope->n < RULE_NAMES - 1; t++) {
        snprintf(name, sizeof name, "t%d", t);
        rule_add_name(scope, name, (RuleName){.meaning = NAMES_TENSOR, .input = TENSORS + t});
        snprintf(name, sizeof name, "g%d", t);
        rule_add_name(scope, name, (RuleName){.meaning = NAMES_GRADIENT, .input = t});
    }
}

/* ---- a tree of a formula --------------------------------------------------------------------- */

typedef struct {
    RuledTape *tape;
    RuledLine *line; /* NULL: of several lines */
    Part *part;      /* whose rule is made; NULL: what the line computes */
    const Tree *dy;  /* what stands for dy; NULL: the gradient itself */
    Tree *tree;
} Maker;

static int put(Tree *tree, TreeNode node) {
    if (tree->n == TREE_NODES) return -1;
    tree->nodes[tree->n] = node;
    return tree->n++;
}

static int put_number(Tree *tree, double x) {
    return put(tree, (TreeNode){.sign = '#', .a = -1, .b = -1, .number = x});
}

static int put_table(Maker *m, TreeTable table) {
    Tree *tree = m->tree;
    int t = 0;
    while (t < tree->num_tables && tree->tables[t].numbers != table.numbers) t++;
    if (t == TREE_TABLES || !table.numbers) return -1;
    if (t == tree->num_tables) tree->tables[tree->num_tables++] = table;
    return put(tree,
               (TreeNode){.sign = 't', .a = -1, .b = -1, .table = (short)t, .dims = table.dims});
}

static int put_tensor(Maker *m, int tensor, bool is_gradient) {
    const TapeTensor *x = &m->tape->tensors[tensor];
    return put_table(
        m, (TreeTable){is_gradient, tensor, "", is_gradient ? x->grad : x->value, dims_of(x)});
}

/* Does rope turn a number and its neighbour, or numbers of both halves? A position 0 turns nothing,
 * and says nothing. */
static bool turns_neighbours(const RuledTape *tape, const RuledLine *line) {
    const Jacobian *rows = &line->parts[0].rows;
    const int64_t size = tape->tensors[line->out].size;
    for (int64_t j = 0; j < size; j++)
        if (rows->begin[j + 1] == rows->begin[j] + 2)
            return rows->of[rows->begin[j] + 1].j == rows->of[rows->begin[j]].j + 1;
    return true;
}

/* The angle by which rope turns number i of x, (..., N, D): a position, (N) or (B, N), times the
 * speed of its pair. */
static double angle_of(const RuledTape *tape, const RuledLine *line, int64_t i) {
    const TapeTensor *x = &tape->tensors[line->in[0]];
    const TapeTensor *position = &tape->tensors[line->in[1]];
    const TapeTensor *speeds = line->in[2] < 0 ? NULL : &tape->tensors[line->in[2]];
    const int64_t D = x->columns, c = i % D;
    const int64_t pair = turns_neighbours(tape, line) ? c / 2 : c % (D / 2);
    const int64_t batch = position->rank > 1 ? i / (x->size / position->shape[0]) : 0;
    const double base = json_number(json_get(line->json, "base"));
    const double speed = speeds ? speeds->value[pair] : pow(base, -2 * (double)pair / (double)D);
    return position->value[batch * x->rows + i / D % x->rows] * speed;
}

/* What number a of a row adds to number b, if each pair (a, b) becomes (-b, a). */
static double turn_of_pair(const RuledTape *tape, const RuledLine *line, int64_t a, int64_t b) {
    const int64_t D = tape->tensors[line->in[0]].columns;
    const bool neighbours = turns_neighbours(tape, line);
    const int64_t apart = neighbours ? 1 : D / 2;
    const bool is_first = neighbours ? b % 2 == 0 : b < D / 2;
    return (a == b + apart && is_first ? -1 : 0) + (a == b - apart && !is_first ? 1 : 0);
}

static double number_of_word(const RuledTape *tape, const RuledLine *line, int word, int64_t i) {
    const Jacobian *rows = &line->parts[0].rows;
    const TapeTensor *x = &tape->tensors[line->in[0]];
    const int64_t C = x->columns;
    switch (word) {
    case KEPT: return rows->begin[i + 1] > rows->begin[i];
    case ALLOWED: return tape->tensors[line->out].value[i] != 0;
    case TARGET:
        return counts_row(tape, line, i / C) &&
               tape->tensors[line->in[1]].value[i / C] == (double)(i % C);
    case COUNTED: return counts_row(tape, line, i);
    case COS: return cos(angle_of(tape, line, i));
    case SIN: return sin(angle_of(tape, line, i));
    default: return turn_of_pair(tape, line, i / C, i % C);
    }
}

/* The sizes of such a table; rank -1: the line has none. */
static Dims dims_of_word(const RuledTape *tape, const RuledLine *line, int word) {
    Dims dims = dims_of(&tape->tensors[line->out]);
    const Dims none = {.rank = -1};
    const char *op = json_text(line->json, "op", "");
    if (line->num_parts == 0) return none;
    if (word == KEPT || word == ALLOWED) return dims;
    dims = dims_of(&tape->tensors[line->in[0]]);
    const int last = dims.rank - 1;
    if (word == TARGET || word == COUNTED) {
        if (strcmp(op, "cross_entropy") != 0 || last > 1) return none;
        if (word == COUNTED) dims.size[last] = 1;
        return dims;
    }
    if (strcmp(op, "rope") != 0) return none;
    if (word == PAIRS) dims = (Dims){.rank = 2, .size = {dims.size[last], dims.size[last]}};
    return dims;
}

static int put_word(Maker *m, int word) {
    TreeTable table = {.tensor = -1, .dims = dims_of_word(m->tape, m->line, word)};
    if (table.dims.rank < 0) return -1;
    const int64_t size = dims_size(&table.dims);
    for (int t = 0; t < m->tree->num_tables; t++)
        if (strcmp(m->tree->tables[t].name, words[word]) == 0)
            return put_table(m, m->tree->tables[t]);
    double *numbers = memory_take(&m->tape->memory, size, sizeof *numbers);
    if (!numbers) return -1;
    for (int64_t i = 0; i < size; i++) numbers[i] = number_of_word(m->tape, m->line, word, i);
    snprintf(table.name, TREE_NAME, "%s", words[word]);
    table.numbers = numbers;
    return put_table(m, table);
}

/* The one derivative of each number of the result, or of x if that has more numbers; of an op that
 * has no row. */
static int put_derivative(Maker *m) {
    const TapeTensor *y = &m->tape->tensors[m->line->out];
    const TapeTensor *x = &m->tape->tensors[m->part->x];
    const bool of_x = x->size > y->size;
    const Jacobian *J = of_x ? &m->part->by : &m->part->rows;
    const int64_t size = of_x ? x->size : y->size;
    TreeTable table = {.tensor = -1, .name = "derivative", .dims = dims_of(of_x ? x : y)};
    double *numbers = memory_take(&m->tape->memory, size, sizeof *numbers);
    for (int64_t j = 0; numbers && j < size; j++) {
        if (J->begin[j + 1] > J->begin[j] + 1) return -1;
        if (J->begin[j + 1] > J->begin[j]) numbers[j] = J->of[J->begin[j]].J;
    }
    table.numbers = numbers;
    return put_table(m, table);
}

static bool take_own(RuledTape *tape, TreeNode *node) {
    node->own = memory_take(&tape->memory, dims_size(&node->dims), sizeof *node->own);
    return node->own != NULL;
}

/* All nodes of another tree; m->dy takes the place of the gradient of tensor y. */
static int put_tree(Maker *m, const Tree *other, int y) {
    int at[TREE_NODES];
    for (int i = 0; i < other->n; i++) {
        TreeNode node = other->nodes[i];
        const TreeTable *table = node.sign == 't' ? &other->tables[node.table] : NULL;
        node.own = NULL;
        if (node.sign == '=' && !take_own(m->tape, &node)) return -1;
        if (table && m->dy && table->is_gradient && table->tensor == y)
            at[i] = put_tree(m, m->dy, -1);
        else if (table) at[i] = put_table(m, *table);
        else {
            if (node.a >= 0) node.a = (short)at[node.a];
            if (node.b >= 0) node.b = (short)at[node.b];
            at[i] = put(m->tree, node);
        }
        if (at[i] < 0) return -1;
    }
    return at[other->n - 1];
}

static int put_name(Maker *m, const RuleName *name) {
    switch (name->meaning) {
    case NAMES_DY: return put_tensor(m, m->line->out, true);
    case NAMES_OUT: return put_tensor(m, m->line->out, false);
    case NAMES_INPUT: return put_tensor(m, m->line->in[name->input], false);
    case NAMES_NUMBER: return put_number(m->tree, name->number);
    case NAMES_GRADIENT: return put_tensor(m, name->input, true);
    default: break;
    }
    if (name->input >= TENSORS) return put_tensor(m, name->input - TENSORS, false);
    if (name->input == DERIVATIVE) return put_derivative(m);
    return put_word(m, name->input);
}

/* Sizes side by side, each 1 or that of the other, but the last few; false if they do not fit. */
static bool join(const Dims *a, const Dims *b, int last, Dims *both) {
    const Dims *more = a->rank >= b->rank ? a : b;
    const Dims *less = more == a ? b : a;
    *both = *more;
    for (int d = last; d < less->rank; d++) {
        int64_t *size = &both->size[more->rank - 1 - d];
        const int64_t other = less->size[less->rank - 1 - d];
        if (*size != other && *size != 1 && other != 1) return false;
        if (*size == 1) *size = other;
    }
    return true;
}

static bool size_function(TreeNode *node, const Dims *a) {
    const bool is_sum = tree_is_sum(node), of_others = strcmp(node->function, "sum0") == 0;
    node->dims = *a;
    for (int d = 0; is_sum && d < a->rank; d++)
        if (of_others == (d < a->rank - 1)) node->dims.size[d] = 1;
    return true;
}

/* Sets the sizes of a node; false if those of its operands do not fit. */
static bool size_node(const Tree *tree, TreeNode *node) {
    const Dims *a = &tree->nodes[node->a].dims;
    if (node->sign == 'f') return size_function(node, a);
    node->dims = *a;
    if (node->sign == '~') return true;
    if (node->sign == '\'' && a->rank == 1) {
        node->dims = (Dims){.rank = 2, .size = {a->size[0], 1}};
        return true;
    }
    if (node->sign == '\'') {
        if (a->rank < 2) return false;
        node->dims.size[a->rank - 2] = a->size[a->rank - 1];
        node->dims.size[a->rank - 1] = a->size[a->rank - 2];
        return true;
    }
    const Dims *b = &tree->nodes[node->b].dims;
    if (node->sign != '@') return join(a, b, 0, &node->dims);
    if (a->rank < 2 || b->rank < 2 || a->size[a->rank - 1] != b->size[b->rank - 2]) return false;
    if (!join(a, b, 2, &node->dims)) return false;
    node->dims.size[node->dims.rank - 2] = a->size[a->rank - 2];
    node->dims.size[node->dims.rank - 1] = b->size[b->rank - 1];
    return true;
}

static bool is_number(const Tree *tree, int n, double number) {
    return tree->nodes[n].sign == '#' && tree->nodes[n].number == number;
}

static int put_formula(Maker *m, const RuleFormula *f, int n);

/* A part with a name, once. */
static int put_part(Maker *m, const RuleFormula *f, const RuleNode *from) {
    TreeNode node = {.sign = '=', .b = -1};
    const char *name = f->text + from->begin;
    snprintf(node.name, TREE_NAME, "%.*s", (int)strcspn(name, " ="), name);
    for (int i = 0; i < m->tree->n; i++)
        if (m->tree->nodes[i].sign == '=' && strcmp(m->tree->nodes[i].name, node.name) == 0)
            return i;
    node.a = (short)put_formula(m, f, from->a);
    if (node.a < 0 || m->tree->nodes[node.a].sign == 't') return node.a;
    node.dims = m->tree->nodes[node.a].dims;
    return take_own(m->tape, &node) ? put(m->tree, node) : -1;
}

static int put_formula(Maker *m, const RuleFormula *f, int n) {
    const RuleNode *from = &f->nodes[n];
    if (from->sign == '=') return put_part(m, f, from);
    if (from->sign == 'n') return put_name(m, &from->value);
    if (from->sign == '#') return put_number(m->tree, from->number);
    const bool has_two = strchr("+-*/@^>M", from->sign) != NULL;
    const int a = put_formula(m, f, from->a),
              b = a >= 0 && has_two ? put_formula(m, f, from->b) : -1;
    if (a < 0 || (has_two && b < 0)) return -1;
    /* "1 x" says nothing, nor does "+ 0". */
    if (from->sign == '*' && is_number(m->tree, a, 1)) return b;
    const bool is_nothing = (from->sign == '*' && is_number(m->tree, b, 1)) ||
                            (from->sign == '+' && is_number(m->tree, b, 0));
    if (is_nothing) m->tree->n--; /* the number is the last node */
    if (is_nothing) return a;
    TreeNode node = {.sign = from->sign, .a = (short)a, .b = (short)b};
    if (from->sign == 'f') node.function = rule_function(from->function);
    return size_node(m->tree, &node) ? put(m->tree, node) : -1;
}

/* ---- a tree that fits ------------------------------------------------------------------------ */

/* Is a formula the rule of a line? NO_MEMORY: nobody knows, and an error is pending. */
typedef enum { NO_MEMORY, FITS_NOT, FITS } Fit;

/* A gradient has the sizes of x: a larger one is summed, a smaller one copied; that of a move is
 * taken row by row. */
static bool fit(Tree *tree, const Dims *x, bool moves) {
    const TreeNode *top = &tree->nodes[tree->n - 1];
    Dims both;
    const bool is_same = top->dims.rank == x->rank &&
                         memcmp(top->dims.size, x->size, (size_t)x->rank * sizeof *x->size) == 0;
    if (moves && !is_same && dims_size(&top->dims) == dims_size(x))
        return put(tree, (TreeNode){.sign = 'R', .a = (short)(tree->n - 1), .b = -1, .dims = *x}) >=
               0;
    if (!join(&top->dims, x, 0, &both)) return false;
    const bool is_x = dims_size(&both) == dims_size(x),
               is_top = dims_size(&both) == dims_size(&top->dims);
    if (is_x && is_top) return true; /* but for sizes of 1 */
    if (!is_x && !is_top) return false;
    TreeNode node = {.sign = is_x ? 'E' : 'S', .a = (short)(tree->n - 1), .b = -1, .dims = *x};
    return put(tree, node) >= 0;
}

/* A row of weights without an allowed key is 0 / 0, and 0; exp of a number that is filled in can be
 * 0, or too large. */
static bool has_numbers(const Tree *tree, const double *numbers, int64_t size, bool forward) {
    double largest = 1;
    for (int64_t i = 0; i < size; i++)
        if (isfinite(numbers[i])) largest = fmax(largest, fabs(numbers[i]));
    for (int64_t i = 0; i < size; i++) {
        const double x = tree_number(tree, tree->n - 1, i);
        if (!(fabs(x - numbers[i]) <= 1e-5 * largest) && x != numbers[i] &&
            !(isnan(x) && (isnan(numbers[i]) || forward)))
            return false;
    }
    return true;
}

/* Is it the rule also of another dy? That of the tape can be 0. */
static Fit fits_jacobian(RuledTape *tape, Tree *tree, const Part *p) {
    const TapeTensor *x = &tape->tensors[p->x];
    const TapeTensor *y = &tape->tensors[p->y];
    int t = 0;
    while (t < tree->num_tables && !(tree->tables[t].is_gradient && tree->tables[t].tensor == p->y))
        t++;
    if (t == tree->num_tables) return FITS_NOT;
    double size, *dy = memory_take(&tape->memory, x->size + y->size, sizeof *dy);
    if (!dy) return NO_MEMORY;
    for (int64_t j = 0; j < y->size; j++) dy[j] = sin(1 + 2 * (double)j);
    double *dx = dy + y->size;
    for (int64_t i = 0; i < x->size; i++) dx[i] = sum_of_terms(dy, &p->by, i, &size);
    const double *own = tree->tables[t].numbers;
    tree->tables[t].numbers = dy;
    tree_compute_parts(tree);
    const bool fits = has_numbers(tree, dx, x->size, false);
    tree->tables[t].numbers = own;
    return fits ? FITS : FITS_NOT;
}

/* A sum of copies, of products: one sum with more terms. */
static bool is_flat(const Tree *tree, int n, int above) {
    const TreeNode *node = &tree->nodes[n];
    return node->sign == '@' && above >= 0 && tree->nodes[above].sign == 'S' &&
           tree->nodes[above].a == n;
}

/* A line of terms has one sum, its main one: the others stand in tables of their own, and so do
 * tables of 0 and 1. */
static bool compute_own(RuledTape *tape, Tree *tree, int n, int above, bool *has_main) {
    TreeNode *node = &tree->nodes[n];
    if (node->own) return true;
    const bool is_sum = tree_is_sum(node),
               is_main = is_sum && !*has_main && (node->sign != 'f' || n == tree->n - 1);
    if (is_main) *has_main = true;
    if (node->a >= 0 && !compute_own(tape, tree, node->a, n, has_main)) return false;
    if (node->b >= 0 && !compute_own(tape, tree, node->b, n, has_main)) return false;
    if ((!is_sum || is_main || is_flat(tree, n, above)) && node->sign != '>') return true;
    const int64_t size = dims_size(&node->dims);
    double *own = memory_take(&tape->memory, size, sizeof *own);
    for (int64_t i = 0; own && i < size; i++) own[i] = tree_number(tree, n, i);
    node->own = own;
    return own != NULL;
}

/* Keeps the tree, if it fits and its numbers are those of the tape. */
static Fit keep(const Maker *m) {
    Tree *tree = m->tree;
    const bool forward = !m->part;
    const TapeTensor *like = &m->tape->tensors[forward ? m->line->out : m->part->x];
    const Dims dims = dims_of(like);
    bool has_main = forward; /* forward all sums are in the line */
    if (!fit(tree, &dims, m->line && m->line->right_moves)) return FITS_NOT;
    const bool is_own = !forward && !m->part->planted && !m->dy;
    const Fit fits = is_own ? fits_jacobian(m->tape, tree, m->part) : FITS;
    if (fits != FITS) return fits;
    tree_compute_parts(tree);
    if (!has_numbers(tree, forward ? like->value : m->part->dx, like->size, forward))
        return FITS_NOT;
    Tree *found = memory_take(&m->tape->memory, 1, sizeof *found);
    if (!found) return NO_MEMORY;
    *found = *tree;
    if (!forward && !compute_own(m->tape, found, found->n - 1, -1, &has_main)) return NO_MEMORY;
    *(forward ? &m->line->tree : &m->part->tree) = found;
    return FITS;
}

static Fit try_formula(Maker m, const char *text, const RuleScope *scope) {
    static RuleFormula f;
    static Tree tree;
    m.tree = &tree;
    tree.n = 0;
    tree.num_tables = 0;
    if (!text || !rule_parse(&f, text, scope)) return FITS_NOT;
    const int whole = put_formula(&m, &f, f.n - 1);
    if (whole >= 0 && whole == tree.n - 1) return keep(&m);
    return tensor_error() ? NO_MEMORY : FITS_NOT;
}

/* Of an op without a row. */
static Fit find_each(Maker m, const RuleScope *scope) {
    const Jacobian *by = &m.part->by;
    bool all_one = true;
    for (int64_t e = 0; e < by->begin[m.tape->tensors[m.part->x].size]; e++)
        all_one = all_one && by->of[e].J == 1;
    const Fit fits = all_one ? try_formula(m, "dy", scope) : FITS_NOT;
    return fits == FITS_NOT ? try_formula(m, "dy * derivative", scope) : fits;
}

static Fit find_row(Maker m, const RuleScope *scope) {
    const char *op = json_text(m.line->json, "op", "");
    const int k = m.part ? m.part->k : 0;
    Fit fits = FITS_NOT;
    for (int i = 0; i < num_mistake_rows && fits == FITS_NOT; i++) {
        const MistakeRow *row = &mistake_rows[i];
        if (row->id || k > 2 || !mistake_is_of(row, op)) continue;
        fits = try_formula(m, m.part ? row->formula[k] : row->forward, scope);
    }
    return fits;
}

static Fit find_rule(Maker m, const RuleScope *scope) {
    const char *planted = json_text(m.part->planted, "tree", "");
    if (*planted) return try_formula(m, planted, scope);
    const Fit fits = find_row(m, scope);
    return fits == FITS_NOT ? find_each(m, scope) : fits;
}

bool rows_of_line(RuledTape *tape, RuledLine *line) {
    static RuleScope scope;
    Maker m = {.tape = tape, .line = line};
    make_scope(tape, line, &scope);
    Fit fits = find_row(m, &scope);
    for (int i = 0; i < line->num_parts && fits != NO_MEMORY; i++) {
        m.part = &line->parts[i];
        fits = find_rule(m, &scope);
    }
    return fits != NO_MEMORY;
}

static int turned_of(Maker *m, int n) {
    if (m->tree->nodes[n].sign == '\'') return m->tree->nodes[n].a;
    TreeNode node = {.sign = '\'', .a = (short)n, .b = -1};
    return size_node(m->tree, &node) ? put(m->tree, node) : -1;
}

/* (a b)' is b' a'. */
static bool turn_product(Maker *m) {
    const TreeNode *top = &m->tree->nodes[m->tree->n - 1];
    if (top->sign != '\'' || m->tree->nodes[top->a].sign != '@') return true;
    const TreeNode product = m->tree->nodes[top->a];
    const int a = turned_of(m, product.b), b = turned_of(m, product.a);
    TreeNode node = {.sign = '@', .a = (short)a, .b = (short)b};
    return a >= 0 && b >= 0 && size_node(m->tree, &node) && put(m->tree, node) >= 0;
}

bool rows_compose(RuledTape *tape, Part *p, const Part *next) {
    static Tree tree;
    Maker m = {.tape = tape, .part = p, .dy = next->tree, .tree = &tree};
    const Tree *own = p->tree;
    tree.n = 0;
    tree.num_tables = 0;
    p->tree = NULL;
    if (!own || !next->tree) return true;
    if (put_tree(&m, own, p->y) < 0 || !turn_product(&m)) return !tensor_error();
    return keep(&m) != NO_MEMORY;
}
