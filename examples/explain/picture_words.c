/* picture_words.c - the words, the numbers and the colours of a picture: see picture_parts.h. */
#include "picture_parts.h"

#include "../common/svg.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

void write_colours(FILE *file) {
    fputs("<style>@media(prefers-color-scheme:dark){.neg{fill:" NEG_DARK "}.good{fill:" GOOD_DARK
          "}.faint{fill:" FAINT_DARK "}.edge{stroke:" ARROW_DARK "}.edge-head{fill:" ARROW_DARK
          "}.back{stroke:" BACK_DARK "}.back-head{fill:" BACK_DARK "}.bar{stroke:" FAINT_DARK
          "}.rest{fill:" LINE_DARK "}}</style>\n",
          file);
}

void end_group(FILE *file) { fputs("</g>\n", file); }

void put_escaped(FILE *file, char c) {
    if (c == '&') fputs("&amp;", file);
    else if (c == '<') fputs("&lt;", file);
    else putc(c, file);
}

/* A name of the tape as mathematics: W_q with a subscript, K' with a raised T, sqrt(d) as a root.
 * Another size of type is given in units, as not every viewer knows em here. */
void put_name(FILE *file, const char *name, double size) {
    double down = 0; /* how far below its line the type stands */
    fputs("<tspan font-style=\"italic\">", file);
    for (const char *c = name; *c; c++) {
        if (strncmp(c, "sqrt(", 5) == 0 && strchr(c, ')')) {
            fprintf(file, "\u221a%.*s", (int)strcspn(c + 5, ")"), c + 5);
            c = strchr(c, ')');
        } else if (strncmp(c, "^2", 2) == 0) {
            fputs("\u00b2", file);
            c++;
        } else if (*c == '_' && c[1] && !isalnum((unsigned char)c[2])) {
            down = 0.2 * size;
            fprintf(file, "<tspan font-size=\"%.1f\" dy=\"%.1f\">", 0.68 * size, down);
            put_escaped(file, *++c);
            fputs("</tspan>", file);
        } else if (*c == '\'') {
            fprintf(file, "<tspan font-size=\"%.1f\" font-style=\"normal\" dy=\"%.1f\">T</tspan>",
                    0.6 * size, -0.4 * size - down);
            down = -0.4 * size;
        } else if (down != 0) {
            fprintf(file, "<tspan dy=\"%.1f\">", -down);
            down = 0;
            put_escaped(file, *c);
            fputs("</tspan>", file);
        } else put_escaped(file, *c);
    }
    fputs("</tspan>", file);
    if (down != 0) fprintf(file, "<tspan dy=\"%.1f\">\u200a</tspan>", -down);
}

void begin_text(FILE *file, double x, double y, const char *anchor) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
}

void end_text(FILE *file) { fputs("</text>\n", file); }

/* The signs of formulas: a times sign, a minus, a left arrow. */
const char *sign_of(const char *text) {
    if (!strcmp(text, "x")) return "\u00d7";
    if (!strcmp(text, "-")) return "\u2212";
    return text;
}

/* Words of a lesson, as the page sets them: `names` in italics, curly quotes, minus and times. */
static void put_prose(FILE *file, const char *text, int length, bool *in_name, double size) {
    char name[NAME_TEXT];
    for (int i = 0; i < length; i++) {
        const int before = i > 0 ? text[i - 1] : ' ', after = i + 1 < length ? text[i + 1] : ' ';
        const bool alone = before == ' ' && after == ' ';
        if (*in_name || text[i] == '`') {
            const int begin = i + (text[i] == '`');
            const int n = (int)strcspn(text + begin, "`");
            *in_name = begin + n >= length;
            snprintf(name, sizeof name, "%.*s", *in_name ? length - begin : n, text + begin);
            put_name(file, name, size);
            i = begin + n;
        } else if (strncmp(text + i, "sqrt(d)", 7) == 0) {
            fputs("\u221ad", file);
            i += 6;
        } else if (text[i] == '"') fputs(strchr(" (", before) ? "\u201c" : "\u201d", file);
        else if (text[i] == '\'') fputs("\u2019", file);
        else if (text[i] == 'x' && alone) fputs("\u00d7", file);
        else if (text[i] == '-' &&
                 (alone || (strchr(" (=", before) && after >= '0' && after <= '9')))
            fputs("\u2212", file);
        else put_escaped(file, text[i]);
    }
}

/* Lines of at most so many characters. Returns how many there are; writes none without a file. */
int write_prose(FILE *file, double x, double y, const char *text, int most, double size) {
    int lines = 0;
    bool in_name = false;
    while (*text) {
        int end = 0, length = 0, fits = 0;
        for (; text[end] && length <= most; end++) {
            if (text[end] == ' ') fits = end;
            length += text[end] != '`';
        }
        if (!text[end] && length <= most) fits = end;
        if (fits == 0) fits = (int)strcspn(text, " ");
        if (file) {
            begin_text(file, x, y + lines * 1.5 * size, "start");
            put_prose(file, text, fits, &in_name, size);
            end_text(file);
        }
        lines++;
        text += fits + (text[fits] == ' ');
    }
    return lines;
}

void write_box(FILE *file, double x, double y, double width, double height,
               const char *attributes) {
    fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y, width,
            height, attributes);
}

/* ---- numbers --------------------------------------------------------------------------------- */

double largest_of(const double *numbers, int64_t size) {
    double most = 0;
    for (int64_t i = 0; i < size; i++)
        if (fabs(numbers[i]) < 1e5) most = fmax(most, fabs(numbers[i]));
    return most;
}

static bool are_short(const double *numbers, int64_t size, int decimals) {
    const double power = pow(10, decimals);
    for (int64_t i = 0; i < size; i++)
        if (fabs(numbers[i]) < 1e5 && fabs(numbers[i] - round(numbers[i] * power) / power) >= 1e-9)
            return false;
    return true;
}

/* Three digits for the largest number of a table, fewer if all numbers are short. */
int decimals_in(const double *numbers, int64_t size) {
    const double most = largest_of(numbers, size);
    int decimals = most > 0 ? 2 - (int)floor(log10(most) + 1e-9) : 0;
    if (decimals > 3) decimals = 3;
    if (decimals < 0) decimals = 0;
    while (decimals > 0 && are_short(numbers, size, decimals - 1)) decimals--;
    return decimals;
}

/* "0.40"; a number that would round to 0 has three digits. */
void number_as(char text[32], double x, int decimals) {
    char plain[24];
    const bool rounds = x != 0 && fabs(x) < 0.5 * pow(10, -decimals);
    if (x == 0) snprintf(plain, sizeof plain, "0");
    else if (rounds) snprintf(plain, sizeof plain, "%.2g", fabs(x));
    else snprintf(plain, sizeof plain, "%.*f", decimals, fabs(x));
    snprintf(text, 32, "%s%s", x < 0 ? "\u2212" : "", plain);
}

/* How strong a colour is: largest is the largest number of its table, top that of the lesson. A
 * table of small numbers is paler. */
double strength_of(double x, double largest, double top) {
    if (x == 0 || isnan(x)) return 0;
    const double paler = fmin(1, sqrt(sqrt(largest / top)));
    return (0.1 + 0.62 * fmin(1, fabs(x) / largest)) * paler;
}

double top_of(const Picture *p, bool grads) {
    double top = 1e-300;
    for (int t = 0; t < p->plan.tape.num_tensors; t++) {
        const TapeTensor *x = &p->plan.tape.tensors[t];
        const double *numbers = grads ? x->grad : x->value;
        if (numbers) top = fmax(top, largest_of(numbers, x->size));
    }
    return top;
}
