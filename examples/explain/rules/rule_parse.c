/* rule_parse.c - reads a formula into a list of nodes: see rule.h.
 *
 * One function per level of the grammar, the loosest sign first. A node follows its operands in the
 * list, so the last one is the whole formula. */
#include "rule.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    RuleFormula *formula;
    const RuleScope *scope;
    const char *text;
    int at, depth;
} Reader;

/* Columns count characters, of which one can have several bytes in UTF-8. */
static void note(RuleFormula *f, int column, const char *format, va_list arguments) {
    if (*f->complaint) return;
    vsnprintf(f->complaint, sizeof f->complaint, format, arguments);
    for (char *at = f->complaint; *at; at++)
        if (*at == '\t') *at = ' ';
    f->column = column;
    for (int i = 0; i < column - 1; i++)
        if (((unsigned char)f->text[i] & 0xc0) == 0x80) f->column--;
}

void *rule_complain(RuleFormula *f, int column, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note(f, column, format, arguments);
    va_end(arguments);
    return NULL;
}

/* A complaint about the next character; -1 is no node. */
__attribute__((format(printf, 2, 3))) static int complain(const Reader *r, const char *format,
                                                          ...) {
    va_list arguments;
    va_start(arguments, format);
    note(r->formula, r->at + 1, format, arguments);
    va_end(arguments);
    return -1;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static char next(Reader *r) {
    while (is_blank(r->text[r->at])) r->at++;
    return r->text[r->at];
}

/* Where the text that was read ends, without the blanks behind it. */
static int end_of_text(const Reader *r) {
    int end = r->at;
    while (end > 0 && is_blank(r->text[end - 1])) end--;
    return end;
}

/* Adds a node, whose text begins at begin and ends here; -1 with a complaint if there is no room.
 */
static int add(Reader *r, RuleNode node, int begin, int sign) {
    RuleFormula *f = r->formula;
    if (*f->complaint || node.a < 0 || node.b < 0) return -1;
    if (f->n == RULE_NODES) return complain(r, "the formula is too long");
    node.begin = (short)begin;
    node.end = (short)end_of_text(r);
    node.column = (short)(sign + 1);
    f->nodes[f->n] = node;
    return f->n++;
}

static int read_sum(Reader *r);
static int read_value(Reader *r);
static void refuse_rest(Reader *r);

/* ---- names ----------------------------------------------------------------------------------- */

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static int word_length(const char *word) {
    int n = 0;
    while (in_name(word[n])) n++;
    return n;
}

bool rule_can_stand(const char *name) {
    const size_t n = strlen(name);
    const bool in_brackets = strncmp(name, "d(", 2) == 0 && name[n - 1] == ')';
    return n > 0 && (in_brackets || !strpbrk(name, " +-*/@"));
}

#define SQUARED "\xc2\xb2"     /* the character of a raised 2, in UTF-8 */
#define ROOT    "\xe2\x88\x9a" /* the sign of a square root */

/* A part of a name, and how pages and papers show it; W_o and U^2 are typed Wo and U2, too. */
static const struct {
    const char *written, *shown;
} spellings[] = {{"'", "^T"}, {"'", "T"}, {"^2", SQUARED},
                 {"^2", "2"}, {"_", ""},  {"sqrt(d)", ROOT "d"}};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* How many characters here are the name; 0: it is another one. as_shown: its signs may be written
 * as they are shown.
 */
static size_t spells(const char *here, const char *name, bool as_shown) {
    const int n = as_shown ? (int)(sizeof spellings / sizeof *spellings) : 0;
    const char *at = here;
    while (*name) {
        if (*at == *name) {
            at++;
            name++;
            continue;
        }
        int i = 0;
        while (i < n && !(begins(name, spellings[i].written) && begins(at, spellings[i].shown)))
            i++;
        if (i == n) return 0;
        name += strlen(spellings[i].written);
        at += strlen(spellings[i].shown);
    }
    return at > here && in_name(at[-1]) && in_name(*at) ? 0 : (size_t)(at - here);
}

/* dK' is dK, transposed, where dK arrives, also if the gradient of K' is known, or refused. */
static int rank_of(const RuleName *name) {
    return name->meaning == NAMES_REFUSED ? 2 : name->meaning == NAMES_GRADIENT;
}

/* The longest name of the scope that stands here, of *n characters; NULL if there is none. Of two
 * that are as long the one counts that is written so. */
static const RuleName *find_name(const Reader *r, size_t *n) {
    const char *here = r->text + r->at;
    const RuleName *found = NULL;
    *n = 0;
    for (int as_shown = 0; as_shown <= 1; as_shown++)
        for (const RuleName *name = r->scope->names; name < r->scope->names + r->scope->n; name++) {
            const size_t length =
                rule_can_stand(name->name) ? spells(here, name->name, as_shown) : 0;
            const int rank = rank_of(name), best = found ? rank_of(found) : rank;
            if (length == 0 || rank > best || (rank == best && length <= *n)) continue;
            *n = length;
            found = name;
        }
    return found;
}

const RuleName *rule_find_name(const RuleScope *scope, const char *word, size_t n) {
    for (int i = 0; i < scope->n; i++)
        if (strlen(scope->names[i].name) == n && strncmp(scope->names[i].name, word, n) == 0)
            return &scope->names[i];
    return NULL;
}

void rule_add_name(RuleScope *scope, const char *name, RuleName means) {
    snprintf(means.name, sizeof means.name, "%.36s", name);
    const size_t n = strlen(means.name);
    if (n == 0 || scope->n == RULE_NAMES || rule_find_name(scope, means.name, n)) return;
    scope->names[scope->n++] = means;
}

void rule_add_number(RuleScope *scope, const char *name, double number) {
    rule_add_name(scope, name, (RuleName){.meaning = NAMES_NUMBER, .number = number});
}

void rule_argument(const char *call, int k, char argument[RULE_NAME]) {
    const char *at = strchr(call, '(');
    for (int i = 0; at && i < k; i++) at = strchr(at + 1, ',');
    at = at ? at + strspn(at, "(, ") : "";
    snprintf(argument, RULE_NAME, "%.*s", (int)strcspn(at, ",)"), at);
}

/* "dA, A, S, y, dy, d": as many names as fit, and all numbers. */
enum { LIST = 150 };
static const char *list_names(const RuleScope *scope, char list[LIST]) {
    size_t used = 0;
    *list = '\0';
    for (int i = 0; i < scope->n; i++) {
        const RuleName *name = &scope->names[i];
        const bool is_number = name->meaning == NAMES_NUMBER;
        if (!rule_can_stand(name->name) || strpbrk(name->name, "( ")) continue;
        if (is_number ? used > LIST - 25 : i >= scope->own || used > LIST - 60) continue;
        used += (size_t)snprintf(list + used, LIST - used, "%s%.20s", used ? ", " : "", name->name);
    }
    return list;
}

#define FUNCTIONS "sum, mean, max, sum0, exp, log, tanh, sqrt and sign"
static int find_function(const char *word, size_t n) {
    for (int i = 0; rule_function(i); i++)
        if (strlen(rule_function(i)) == n && strncmp(word, rule_function(i), n) == 0) return i;
    return -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A formula between the brackets. function: that it belongs to; -1: none. *larger: the second value
 * of max(a, b); NULL, or it stays as it is: there is none. */
static int read_brackets(Reader *r, int function, int *larger) {
    const int open = r->at++;
    if (++r->depth > RULE_DEPTH) return complain(r, "too many brackets inside each other");
    const int inside = read_sum(r);
    if (inside >= 0 && larger && next(r) == ',') {
        r->at++;
        *larger = read_sum(r);
        if (*larger < 0) return -1;
    }
    r->depth--;
    if (inside < 0) return -1;
    const char c = next(r);
    if (c == ',' && function >= 0)
        return complain(r, "%s takes %s, and %s", rule_function(function),
                        larger ? "one value or two" : "one value", rule_function_does(function));
    if (c == ',') return complain(r, "one value stands in brackets, without a comma");
    if (c == '\0') {
        r->at = open;
        return complain(r, "this bracket is not closed");
    }
    if (c != ')') {
        refuse_rest(r);
        return -1;
    }
    r->at++;
    return inside;
}

static int read_function(Reader *r, int function, int begin) {
    const char *name = rule_function(function);
    if (next(r) != '(') {
        r->at = begin;
        return complain(r, "%s needs a bracket: %s(x) %s", name, name,
                        rule_function_does(function));
    }
    int larger = -1;
    const bool is_max = strcmp(name, "max") == 0;
    const int inside = read_brackets(r, function, is_max ? &larger : NULL);
    RuleNode node = {.sign = 'f', .a = (short)inside, .function = function};
    if (larger >= 0) node = (RuleNode){.sign = 'M', .a = (short)inside, .b = (short)larger};
    return add(r, node, begin, begin);
}

/* ---- the signs of Python --------------------------------------------------------------------- */

/* Does this word of n characters stand in the list, "T t mT"? */
static bool is_among(const char *list, const char *word, int n) {
    for (const char *at = list; *at; at += strspn(at, " ")) {
        const int length = (int)strcspn(at, " ");
        if (length == n && strncmp(at, word, (size_t)n) == 0) return true;
        at += length;
    }
    return false;
}

/* What the language has in place of .sum(-1), .T or np.sum(...): word, of n characters, is what
 * stands behind the point; value, of length characters, is what the method is called of. False: it
 * has nothing of that name. */
static bool translate(Reader *r, const char *word, int n, const char *value, int length) {
    const int function = find_function(word, (size_t)n);
    const char *other = is_among("sum", word, n) ? "; sum0(x) adds up all rows" : "";
    const bool has_brackets = *value == '(' && value[length - 1] == ')';
    if (is_among("T mT t transpose swapaxes permute", word, n))
        complain(r, "write ' behind what is transposed");
    else if (is_among("matmul mm bmm dot", word, n))
        complain(r, "write a @ b: it is the product of tables");
    else if (function >= 0)
        complain(r, has_brackets ? "write %s%.*s: it %s%s" : "write %s(%.*s): it %s%s",
                 rule_function(function), length, value, rule_function_does(function), other);
    else return false;
    return true;
}

/* A method of the value that begins at begin: .sum(-1) */
static int refuse_method(Reader *r, int begin) {
    enum { SHOWN = 60 };
    const char *value = r->text + begin;
    const char *word = r->text + r->at + 1;
    const int n = word_length(word);
    const int length = end_of_text(r) - begin;
    const bool is_short = length <= SHOWN;
    if (translate(r, word, n, is_short ? value : "x", is_short ? length : 1)) return -1;
    return complain(r, "there is no .%.*s here: the functions are " FUNCTIONS, n > 30 ? 30 : n,
                    word);
}

static int unknown_word(Reader *r, const char *word, int n) {
    char names[LIST];
    const int begin = r->at;
    int point = n;
    while (point > 0 && word[point - 1] != '.') point--;
    if (point > 0 && translate(r, word + point, n - point, "x", 1)) return -1;
    r->at += n;
    const bool is_call = next(r) == '(';
    r->at = begin;
    if (is_call)
        return complain(r,
                        "there is no function %.*s: write the name of its result; the functions "
                        "are " FUNCTIONS,
                        n > 30 ? 30 : n, word);
    return complain(r, "there is no %.*s here: the names are %s; the functions are " FUNCTIONS,
                    n > 30 ? 30 : n, word, list_names(r->scope, names));
}

/* A name of n characters. */
static int add_name(Reader *r, const RuleName *value, size_t n) {
    const int begin = r->at;
    if (value->meaning == NAMES_REFUSED) return complain(r, "%s %s", value->name, value->why);
    r->at += (int)n;
    return add(r, (RuleNode){.sign = 'n', .value = *value}, begin, begin);
}

/* The part of the formula whose name is this word of n characters; -1 if there is none. */
static int find_part(const RuleFormula *f, const char *word, int n) {
    for (int i = 0; i < f->n; i++)
        if (f->nodes[i].sign == '=' && strncmp(f->text + f->nodes[i].begin, word, (size_t)n) == 0 &&
            !in_name(f->text[f->nodes[i].begin + n]))
            return i;
    return -1;
}

static int read_name(Reader *r) {
    const int begin = r->at;
    const char *word = r->text + begin;
    size_t length;
    int n = word_length(word);
    const int part = find_part(r->formula, word, n);
    if (part >= 0) r->at += n;
    if (part >= 0) return part;
    const RuleName *found = find_name(r, &length);
    if (found) return add_name(r, found, length);
    while (in_name(word[n]) || (word[n] == '.' && n > 0)) n++;
    const int function = find_function(word, (size_t)n);
    const bool ends_in_T = n > 1 && word[n - 1] == 'T';
    const RuleName *turned = ends_in_T ? rule_find_name(r->scope, word, (size_t)n - 1) : NULL;
    if (turned) { /* AT is A' */
        const int node = add_name(r, turned, (size_t)n - 1);
        const int sign = r->at++;
        return add(r, (RuleNode){.sign = '\'', .a = (short)node}, begin, sign);
    }
    if (function < 0) return unknown_word(r, word, n);
    r->at += n;
    return read_function(r, function, begin);
}

static int read_number(Reader *r) {
    char digits[64];
    const int begin = r->at;
    const char *word = r->text + begin;
    size_t n = strspn(word, "0123456789.");
    if ((word[n] == 'e' || word[n] == 'E') && n > 0) {
        const size_t sign = word[n + 1] == '-' || word[n + 1] == '+' ? 2 : 1;
        const size_t exponent = strspn(word + n + sign, "0123456789");
        if (exponent > 0) n += sign + exponent;
    }
    snprintf(digits, sizeof digits, "%.*s", (int)n, word);
    char *end;
    const double number = strtod(digits, &end);
    if (end == digits || *end || n >= sizeof digits || !isfinite(number))
        return complain(r, "%.20s is no number", digits);
    r->at += (int)n;
    return add(r, (RuleNode){.sign = '#', .number = number}, begin, begin);
}

/* A square root as pages and papers show it, of the value behind its sign. */
static int read_root(Reader *r) {
    const int begin = r->at;
    r->at += (int)strlen(ROOT);
    if (++r->depth > RULE_DEPTH) return complain(r, "too many signs");
    const int inside = read_value(r);
    r->depth--;
    const RuleNode root = {.sign = 'f', .a = (short)inside, .function = find_function("sqrt", 4)};
    return add(r, root, begin, begin);
}

static int read_value(Reader *r) {
    const char c = next(r);
    size_t n;
    if (c == '(') return read_brackets(r, -1, NULL);
    if ((c >= '0' && c <= '9') || c == '.') return read_number(r);
    if (isalpha((unsigned char)c) || c == '_') return read_name(r);
    if (find_name(r, &n)) return read_name(r);
    if (begins(r->text + r->at, ROOT)) return read_root(r);
    if (c == '*' && r->at > 0 && r->text[r->at - 1] == '*')
        return complain(r, "there is no ** here: write x * x");
    if (c == '\0') return complain(r, "the formula ends, and a value is missing");
    if (c == ')') return complain(r, "a value is missing before this bracket");
    if (strchr("+*/@'", c)) return complain(r, "a value is missing before %c", c);
    if (c > ' ' && c <= '~') return complain(r, "%c is no sign of a formula", c);
    return complain(r, "this is no sign of a formula");
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* How many characters of a transpose stand here: of ' or ^T. */
static int transpose_sign(Reader *r) {
    const char *here = next(r) ? r->text + r->at : "";
    if (*here == '\'') return 1;
    return strncmp(here, "^T", 2) == 0 && !in_name(here[2]) ? 2 : 0;
}

/* x' */
static int read_transposed(Reader *r) {
    next(r);
    const int begin = r->at;
    int node = read_value(r);
    while (node >= 0 && transpose_sign(r) > 0) {
        const int sign = r->at;
        r->at += transpose_sign(r);
        node = add(r, (RuleNode){.sign = '\'', .a = (short)node}, begin, sign);
    }
    if (node >= 0 && next(r) == '^' && isdigit((unsigned char)r->text[r->at + 1])) {
        const int sign = r->at++, power = read_number(r);
        if (power < 0) return -1;
        node = add(r, (RuleNode){.sign = '^', .a = (short)node, .b = (short)power}, begin, sign);
    }
    if (node >= 0 && next(r) == '.' && isalpha((unsigned char)r->text[r->at + 1]))
        return refuse_method(r, begin);
    return node;
}

/* -x */
static int read_minus(Reader *r) {
    if (next(r) != '-') return read_transposed(r);
    const int begin = r->at++;
    if (++r->depth > RULE_DEPTH) return complain(r, "too many signs");
    const int node = read_minus(r);
    r->depth--;
    return add(r, (RuleNode){.sign = '~', .a = (short)node}, begin, begin);
}

/* Is it a number, whatever the sizes of the tables are? */
static bool is_number(const RuleFormula *f, int node) {
    const RuleNode *n = &f->nodes[node];
    if (n->sign == '#') return true;
    if (n->sign == 'n') return n->value.meaning == NAMES_NUMBER;
    return is_number(f, n->a) && (!strchr("+-*/@^>M", n->sign) || is_number(f, n->b));
}

/* Does a value begin here, right behind another one? */
static bool begins_value(Reader *r) {
    const char c = next(r), *here = r->text + r->at;
    return in_name(c) || c == '(' || (c == '.' && isdigit((unsigned char)here[1])) ||
           begins(here, ROOT);
}

/* Operands of a level with signs between them, from left to right. A product may leave its sign
 * out, as on paper: dY V' is dY @ V', and 2 E is 2 * E. */
static int read_level(Reader *r, const char *signs, int (*operand)(Reader *), bool may_leave_out) {
    next(r);
    const int begin = r->at;
    int node = operand(r);
    while (node >= 0 && next(r)) {
        const int at = r->at;
        const bool is_written = strchr(signs, next(r)) != NULL;
        if (!is_written && !(may_leave_out && begins_value(r))) break;
        if (is_written) r->at++;
        const int right = operand(r);
        if (right < 0) return -1;
        char sign = r->text[at];
        if (!is_written)
            sign = is_number(r->formula, node) || is_number(r->formula, right) ? '*' : '@';
        node = add(r, (RuleNode){.sign = sign, .a = (short)node, .b = (short)right}, begin, at);
    }
    return node;
}

static int read_product(Reader *r) { return read_level(r, "*/@", read_minus, true); }
static int read_terms(Reader *r) { return read_level(r, "+-", read_product, false); }
/* a > b: 1 where it is so, else 0 */
static int read_sum(Reader *r) { return read_level(r, ">", read_terms, false); }

/* z = a - b; of as many parts as stand there. */
static bool read_parts(Reader *r) {
    for (;;) {
        next(r);
        const int begin = r->at, n = word_length(r->text + begin);
        const int equals = begin + n + (int)strspn(r->text + begin + n, " ");
        if (n == 0 || r->text[equals] != '=') return true;
        r->at = equals + 1;
        const int part = read_sum(r);
        if (part < 0) return false;
        if (next(r) != ';') {
            complain(r, "behind a part with a name stands ;");
            return false;
        }
        if (add(r, (RuleNode){.sign = '=', .a = (short)part}, begin, equals) < 0) return false;
        r->at++;
    }
}

/* What stands after the end of a formula. */
static void refuse_rest(Reader *r) {
    const char c = next(r);
    if (c == ')') complain(r, "this bracket has no opening one");
    else if (c == '^' || begins(r->text + r->at, SQUARED))
        complain(r, "behind ^ stands a number: x^2");
    else if (c == '=') complain(r, "write the formula alone, without =");
    else if (c == ',') complain(r, "one formula, without a comma");
    else if (begins(r->text + r->at, ".*") || begins(r->text + r->at, "./"))
        complain(r,
                 "write %c without the point: it goes number by number, and @ is the product of "
                 "tables",
                 r->text[r->at + 1]);
    else if (c > ' ' && c <= '~') complain(r, "%c is no sign of a formula", c);
    else complain(r, "this is no sign of a formula");
}

bool rule_parse(RuleFormula *f, const char *text, const RuleScope *scope) {
    Reader r = {.formula = f, .scope = scope, .text = text};
    f->text = text;
    f->n = 0;
    f->column = 0;
    *f->complaint = '\0';
    if (strlen(text) > RULE_TEXT) rule_complain(f, RULE_TEXT, "the formula is too long");
    else if (!next(&r)) rule_complain(f, 1, "the formula is empty");
    else if (scope->may_define && !read_parts(&r)) return false;
    else if (read_sum(&r) >= 0 && next(&r)) refuse_rest(&r);
    return !*f->complaint;
}
