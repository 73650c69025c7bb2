/* test_attention_map.c - do the pictures of attention show the weights, whatever the weights are?
 *
 * The sheet must be equal to golden/attention_map.svg, which a person has checked, byte for byte.
 * Other sheets must be well-formed, stay inside the picture and contain no NaN. The output on a
 * terminal is compared as text; a pseudo-terminal stands for a terminal with colours.
 *
 * If you change the picture on purpose, look at $BUILD/tests/attention_map.svg, then copy it. Run
 * from the root of the repository. */
#include "../../../examples/common/attention_map.h"
#include "../../../examples/common/colours.h"
#include "../../../examples/common/utf8.h"
#include "../common.h"
#include "../common_program.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[1 << 20]; /* the last text that was written */
static AttentionMap maps[9];
static double losses[1000];

/* ---- writing into text --------------------------------------------------------------------- */

static void write_sheet(const Sheet *sheet) {
    FILE *file = fmemopen(text, sizeof text, "w");
    ck_assert_ptr_nonnull(file);
    sheet_write_svg(file, sheet);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_lt(strlen(text), sizeof text - 1);
}

static void print_maps(int num_maps) {
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    maps_print(file, maps, num_maps);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
}

/* Prints the maps on a pseudo-terminal, with these values of TERM, LANG and NO_COLOR. */
static void print_maps_on_terminal(int num_maps, char *term, char *language, char *no_color) {
    int status, slave, terminal = open_terminal(&slave);
    ck_assert_int_ge(terminal, 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *file = fdopen(slave, "w");
        putenv(term);
        putenv(language);
        putenv(no_color);
        putenv("LC_ALL=");
        putenv("LC_CTYPE=");
        maps_print(file, maps, num_maps);
        _exit(fflush(file) == 0 ? 0 : 1);
    }
    close(slave);
    size_t n = 0;
    for (ssize_t got = 1; got > 0; n += got > 0 ? (size_t)got : 0)
        got = read(terminal, text + n, sizeof text - 1 - n);
    text[n] = '\0';
    close(terminal);
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
}

static int count(const char *part) { return occurrences(text, part); }

/* ---- maps to draw -------------------------------------------------------------------------- */

static void clear(void) {
    memset(maps, 0, sizeof maps);
    for (int i = 0; i < 1000; i++) losses[i] = 3 / (1 + 0.1 * i);
}

/* Makes maps of one size, with labels a, b, c, ... */
static void make_maps(int num_maps, int queries, int keys, double weight) {
    clear();
    for (int m = 0; m < num_maps; m++) {
        snprintf(maps[m].title, sizeof maps[m].title, "head %d", m + 1);
        maps[m].queries = queries;
        maps[m].keys = keys;
        for (int i = 0; i < queries * keys; i++) maps[m].weights[i] = weight;
        for (int i = 0; i < MAP_MAX; i++) {
            maps[m].query[i][0] = (char)('A' + i % 26);
            maps[m].key[i][0] = (char)('a' + i % 26);
        }
    }
}

/* Two heads with every kind of cell and of label. */
static void make_golden(void) {
    static const double first[] = {0, 0.25, 0.75, 0, 1, 0, 0, 0, 0.04, 0.06, 0.9, 0};
    static const double second[] = {0.5, 0.5, 0, 0.125, 0.125, 0.75};
    static const char *const query[] = {"<b>", "&", "\xC3\xA9"};
    static const char *const key[] = {"k1", " ", "\n", "\""};
    make_maps(2, 3, 4, 0);
    maps[1].queries = 2;
    maps[1].keys = 3;
    memcpy(maps[0].weights, first, sizeof first);
    memcpy(maps[1].weights, second, sizeof second);
    for (int q = 0; q < 3; q++) maps[0].weights[q * 4 + 3] = (double)NAN;
    for (int i = 0; i < 3; i++) map_label(maps[0].query[i], query[i]);
    for (int i = 0; i < 4; i++) map_label(maps[0].key[i], key[i]);
}

/* ---- taking weights ------------------------------------------------------------------------ */

CASE("maps")
TEST(takes_any_floats_and_strides) {
    static const double number[24] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                      12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    clear();
    Tensor *wide = tensor_from_doubles(SHAPE(2, 3, 4), number);
    Tensor *narrow = tensor_to(wide, F32);
    Tensor *turned = tensor_as_strided(narrow, SHAPE(2, 4, 3), (int64_t[]){12, 1, 4}, 0);
    ck_assert(map_take(&maps[0], wide, 1, -1) && map_take(&maps[1], narrow, 1, 4));
    ck_assert(map_take(&maps[2], turned, 1, 2) && map_take(&maps[3], wide, 0, 0));
    ck_assert(maps[0].queries == 3 && maps[0].keys == 4);
    ck_assert(maps[2].queries == 4 && maps[2].keys == 3);
    for (int q = 0; q < 3; q++)
        for (int k = 0; k < 4; k++) {
            ck_assert_double_eq(maps[0].weights[q * 4 + k], 12 + q * 4 + k);
            ck_assert_double_eq(maps[1].weights[q * 4 + k], 12 + q * 4 + k);
            if (q < 2) ck_assert_double_eq(maps[2].weights[k * 3 + q], 12 + q * 4 + k);
            else ck_assert(isnan(maps[2].weights[k * 3 + q]));
            ck_assert(isnan(maps[3].weights[q * 4 + k]));
        }
    RELEASE(wide, narrow, turned);
}

TEST(refuses_what_is_no_map) {
    Tensor *most = tensor_zeros(SHAPE(2, MAP_MAX, MAP_MAX));
    Tensor *many = tensor_zeros(SHAPE(2, 8, 65));
    Tensor *none = tensor_zeros(SHAPE(2, 0, 8));
    Tensor *flat = tensor_zeros(SHAPE(2, 8));
    Tensor *whole = tensor_to(most, I64);
    ck_assert(map_take(&maps[0], most, 1, -1));
    FAILS(map_take(&maps[0], most, 2, -1),
          "map_take: the attention weights are (2, 64, 64): there is no map 2");
    FAILS(map_take(&maps[0], most, -1, -1),
          "map_take: the attention weights are (2, 64, 64): there is no map -1");
    FAILS(map_take(&maps[0], many, 0, -1),
          "map_take: the attention weights are (2, 8, 65): a map shows 1 to 64 queries and "
          "1 to 64 keys");
    ck_assert(!map_take(&maps[0], none, 0, -1));
    expect_error_like("map_take: the attention weights are (2, 0, 8): a map shows 1 to 64", "");
    FAILS(map_take(&maps[0], flat, 0, -1),
          "map_take: the attention weights are (2, 8): they need three dimensions (batch, "
          "queries, keys)");
    FAILS(map_take(&maps[0], whole, 0, -1),
          "map_take: the attention weights are int64: they must be float32 or float64");
    FAILS(map_take(&maps[0], NULL, 0, -1),
          "map_take: the attention weights are NULL: a fused module keeps none");
    RELEASE(most, many, none, flat, whole);
}

TEST(labels_are_whole_characters) {
    static const char *const pairs[][2] = {
        {"", ""},
        {"a", "a"},
        {"1234567", "1234567"},
        {"12345678", "123456."},
        {"attention", "attent."},
        {"\xC3\xA9\xC3\xA9\xC3\xA9", "\xC3\xA9\xC3\xA9\xC3\xA9"},
        {"12345\xC3\xA9", "12345\xC3\xA9"},
        {"12345\xC3\xA9x", "12345."},
        {"\xF0\x9F\x98\x80\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80."},
        {"\n", "\n"},
    };
    for (int i = 0; i < COUNT(pairs); i++) {
        char label[MAP_LABEL_SIZE];
        map_label(label, pairs[i][0]);
        ck_assert_str_eq(label, pairs[i][1]);
    }
}

TEST(characters_out_of_bytes) {
    static const struct {
        const char *bytes;
        uint32_t character;
        int length, columns;
    } rows[] = {
        {"a", 'a', 1, 1},
        {"\x7F", '?', 1, 1},
        {"\n", '?', 1, 1},
        {"\xC3\xA9", 0xE9, 2, 1},
        {"\xC2\x9B", '?', 2, 1}, /* a terminal would read this as the beginning of a command */
        {"\xC1\xA9", '?', 1, 1}, /* more bytes than this character needs */
        {"\xE0\x9F\xBF", '?', 1, 1},
        {"\xE0\xA0\x80", 0x800, 3, 1},
        {"\xED\x9F\xBF", 0xD7FF, 3, 1},
        {"\xED\xA0\x80", '?', 1, 1}, /* a surrogate */
        {"\xEF\xBF\xBD", 0xFFFD, 3, 1},
        {"\xEF\xBF\xBE", '?', 3, 1}, /* not allowed in XML */
        {"\xE6\x97\xA5", 0x65E5, 3, 2},
        {"\xF0\x8F\xBF\xBF", '?', 1, 1},
        {"\xF0\x9F\x98\x80", 0x1F600, 4, 2},
        {"\xF4\x8F\xBF\xBF", 0x10FFFF, 4, 2},
        {"\xF4\x90\x80\x80", '?', 1, 1},
        {"\xF8\x90\x80\x80", '?', 1, 1},
        {"\xC3", '?', 1, 1}, /* the rest is missing */
        {"\xE6\x97", '?', 1, 1},
        {"\x80", '?', 1, 1},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        const char *next = rows[i].bytes;
        ck_assert_uint_eq(utf8_next(&next), rows[i].character);
        ck_assert_int_eq(next - rows[i].bytes, rows[i].length);
        ck_assert_int_eq(utf8_columns(rows[i].character), rows[i].columns);
    }
    const char *end = "";
    ck_assert(utf8_next(&end) == 0 && *end == '\0');
    ck_assert_int_eq(utf8_length("a\xC3\xA9\xE6\x97\xA5"), 3);
    ck_assert_int_eq(utf8_text_columns("a\xC3\xA9\xE6\x97\xA5"), 4);
}

/* ---- the sheet ------------------------------------------------------------------------------ */

TEST(the_golden_sheet) {
    static char golden[1 << 16];
    char name[256];
    const char *build = getenv("BUILD");
    make_golden();
    write_sheet(
        &(Sheet){"Weights & <losses>", {{"A row & a column", "<colour>"}}, losses, 12, maps, 2});
    snprintf(name, sizeof name, "%s/tests/attention_map.svg", build ? build : "build");
    FILE *file = fopen("tests/golden/attention_map.svg", "rb");
    FILE *copy = fopen(name, "wb");
    if (copy) {
        fputs(text, copy);
        fclose(copy);
    }
    ck_assert_msg(file != NULL, "run me from the root of the repository");
    golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(!strcmp(text, golden), "%s is not tests/golden/attention_map.svg", name);
}

/* Every tag ends, the only entities are XML's own, and no number is a NaN. */
static void expect_well_formed(void) {
    char open[16][16];
    int depth = 0;
    for (const char *s = text; *s; s++) {
        if (*s == '&')
            ck_assert(!strncmp(s, "&amp;", 5) || !strncmp(s, "&lt;", 4) || !strncmp(s, "&gt;", 4));
        if (*s != '<') continue;
        const char *end = strpbrk(s + 1, "<>");
        ck_assert(end && *end == '>');
        if (s[1] == '/') {
            ck_assert_int_gt(depth, 0);
            depth--;
            ck_assert_int_eq(strncmp(s + 2, open[depth], strlen(open[depth])), 0);
        } else if (end[-1] != '/') {
            ck_assert_int_lt(depth, 16);
            ck_assert_int_eq(sscanf(s + 1, "%15[a-z]", open[depth++]), 1);
        }
        s = end;
    }
    ck_assert_int_eq(depth, 0);
    ck_assert(!strstr(text, "nan") && !strstr(text, "inf"));
}

/* All rectangles and words lie inside the picture, and there is a map (its width is below 641). */
static void expect_on_paper(void) {
    double width, height, x, y, w, h;
    ck_assert_int_eq(sscanf(strstr(text, "viewBox"), "viewBox=\"0 0 %lf %lf\"", &width, &height),
                     2);
    for (const char *s = strstr(text, "<rect x="); s; s = strstr(s + 1, "<rect x=")) {
        ck_assert_int_eq(
            sscanf(s, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x, &y, &w, &h), 4);
        ck_assert(x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= width && y + h <= height);
    }
    for (const char *s = strstr(text, "<text x="); s; s = strstr(s + 1, "<text x=")) {
        ck_assert_int_eq(sscanf(s, "<text x=\"%lf\" y=\"%lf\"", &x, &y), 2);
        ck_assert(x >= 0 && y >= 0 && x <= width && y <= height);
    }
}

static const struct {
    int num_maps, queries, keys;
    double weight;
    int steps;
} sheets[] = {
    {0, 1, 1, 1, 12},       {1, 1, 1, 1, 0},
    {1, 1, 1, 0, 1},        {1, 1, 64, 1, 2},
    {3, 64, 1, 1, 201},     {2, 64, 64, 0.25, 1000},
    {9, 3, 2, 0.5, 200},    {4, 12, 12, (double)NAN, 3},
    {1, 13, 13, 1e-300, 5}, {2, 30, 40, 0.1, 1000},
    {9, 8, 8, 0.1, 10},     {0, 1, 1, 1, 0},
};

/* Each sheet is drawn with labels of one letter, and with the longest labels. */
LOOP_TEST(any_sheet, COUNT(sheets)) {
    for (int wide = 0; wide < 2; wide++) {
        make_maps(sheets[_i].num_maps, sheets[_i].queries, sheets[_i].keys, sheets[_i].weight);
        for (int m = 0; wide && m < sheets[_i].num_maps; m++)
            for (int i = 0; i < MAP_MAX; i++) {
                map_label(maps[m].query[i], "WWWWWWW");
                map_label(maps[m].key[i], "<<<<<<<");
            }
        write_sheet(&(Sheet){"A sheet",
                             {{"One line", "another"}},
                             losses,
                             sheets[_i].steps,
                             maps,
                             sheets[_i].num_maps});
        expect_well_formed();
        expect_on_paper();
        ck_assert_int_eq(count(">query</text>"), sheets[_i].num_maps);
        ck_assert_int_eq(count(">masked</text>"), isnan(sheets[_i].weight) ? 1 : 0);
        ck_assert_int_eq(count(">loss</text>"), sheets[_i].steps ? 1 : 0);
        ck_assert_int_eq(count(">weight</text>"), sheets[_i].num_maps ? 1 : 0);
        if (wide)
            ck_assert_int_eq(count(">WWWWWWW</text>"), sheets[_i].num_maps * sheets[_i].queries);
    }
}

/* How many maps of n columns stand side by side. Their words "query" have the same y. */
static int side_by_side(int num_maps, int n) {
    double x, y, first = 0;
    int equal = 0;
    make_maps(num_maps, n, n, 0.5);
    write_sheet(&(Sheet){"A sheet", {{"One line", "another"}}, losses, 0, maps, num_maps});
    for (const char *s = strstr(text, "<g transform=\"translate("); s;
         s = strstr(s + 1, "<g transform=\"translate(")) {
        ck_assert_int_eq(sscanf(s, "<g transform=\"translate(%lf %lf)", &x, &y), 2);
        if (equal == 0) first = y;
        if (y == first) equal++;
    }
    return equal;
}

TEST(as_many_side_by_side_as_fit) {
    ck_assert_int_eq(side_by_side(4, 1), 4);
    ck_assert_int_eq(side_by_side(4, 6), 3);
    ck_assert_int_eq(side_by_side(4, 12), 2);
    ck_assert_int_eq(side_by_side(4, 16), 2);
    ck_assert_int_eq(side_by_side(4, 20), 1);
    ck_assert_int_eq(side_by_side(4, 64), 1);
    ck_assert_int_eq(side_by_side(9, 16), 4); /* a wide sheet */
    ck_assert_int_eq(side_by_side(9, 36), 2);
    ck_assert_int_eq(side_by_side(9, 64), 1);
}

/* The points of the loss curve, "M1.0 2.0L3.0 4.0", in a string that the next call overwrites. */
static const char *curve(const double *loss, int steps) {
    static char points[1 << 12];
    make_maps(1, 1, 1, 1);
    write_sheet(&(Sheet){"A curve", {{"One line", "another"}}, loss, steps, maps, 1});
    expect_well_formed();
    const char *line = strstr(text, "class=\"curve\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(strstr(line, " d="), " d=\"%4095[^\"]", points), 1);
    return points;
}

/* The panel is 500 by 220 units from (100, 144), with a twentieth of the range above and below. */
TEST(the_curve) {
    double many[1000];
    ck_assert_str_eq(curve((double[]){4, 2.5, 1}, 3), "M183.3 154.0L266.7 254.0L350.0 354.0");
    ck_assert_str_eq(curve((double[]){100, 10, 1}, 3), "M183.3 154.0L266.7 254.0L350.0 354.0");
    ck_assert_int_eq(count(">10</text>"), 1);
    ck_assert_str_eq(curve((double[]){1, -1, 0}, 3), "M183.3 154.0L266.7 354.0L350.0 254.0");
    for (int i = 0; i < 1000; i++) many[i] = i / 5 % 2 ? 3 + i % 5 : 1 + i % 5; /* means 5 and 3 */
    const char *points = curve(many, 1000);
    ck_assert_int_eq(strncmp(points, "M101.5 354.0L104.0 154.0L106.5 354.0L", 37), 0);
    int n = 0;
    for (const char *c = points; *c; c++) n += *c == 'L';
    ck_assert_int_eq(n, 199);
    ck_assert_ptr_nonnull(strstr(curve(many, 201), "L600.0 ")); /* the last mean is a single loss */
}

/* Equal losses make a line in the middle. The axis has numbers, however large or small the losses
 * are. */
TEST(constant_losses) {
    static const double values[] = {0, 3, 1e-8, 1e-300, 1e300, -2};
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(curve((double[]){values[i], values[i]}, 2), "M183.3 254.0L266.7 254.0");
        ck_assert_int_ge(count("h500.0\""), 1);
    }
    ck_assert_str_eq(curve(values, 1), "M183.3 254.0");
    ck_assert_int_eq(count("<circle"), 1);
}

/* ---- the terminal --------------------------------------------------------------------------- */

TEST(in_plain_characters) {
    make_golden();
    print_maps(2);
    ck_assert_str_eq(text, "    head 1         head 2   \n"
                           "    k                       \n"
                           "    1 _ $ \"        a b c    \n"
                           "<b>|  ::##//|    A|++++  |  \n"
                           "  &|@@    //|    B|....##|  \n"
                           "  ?|  ..%%//|               \n"
                           "\n"
                           "weight 0 |  ..::--==++**##%%@@| 1,  masked //\n");
}

/* In the terminal the note of a map comes after its title; on the sheet it is below the title. */
TEST(a_note) {
    make_maps(2, 3, 10, 0.5);
    strcpy(maps[0].note, "importance 1");
    print_maps(2);
    ck_assert_ptr_nonnull(strstr(text, "  head 1, importance 1   "));
    write_sheet(&(Sheet){"A sheet", {{"One line", "another"}}, losses, 0, maps, 2});
    ck_assert_int_eq(count(">importance 1</text>"), 1);
    ck_assert_int_eq(count(">head 1</text>"), 1);
}

/* A title that is longer than its map is not cut, and the next map stands beside it. */
TEST(a_title_wider_than_its_map) {
    make_maps(2, 2, 3, 0.5);
    strcpy(maps[0].title, "psychology: S AY K");
    print_maps(2);
    ck_assert_ptr_nonnull(strstr(text, " psychology: S AY K "));
    ck_assert_ptr_nonnull(strstr(text, " head 2 "));
    const char *end = strchr(text, '\n');
    ck_assert_ptr_nonnull(strstr(text, " head 2 "));
    ck_assert(strstr(text, " head 2 ") < end);
    for (const char *line = text; *line != 'w'; line = end + 1) { /* the maps, before the legend */
        end = strchr(line, '\n');
        ck_assert(end == line || end - line == strchr(text, '\n') - text);
    }
}

static int longest_line(void) {
    int longest = 0, n = 0;
    for (const char *c = text; *c; c++) {
        n = *c == '\n' ? 0 : n + 1;
        if (n > longest) longest = n;
    }
    return longest;
}

/* Everything fits into 80 columns, also the longest labels together with the most keys. */
TEST(in_eighty_columns) {
    for (int keys = 1; keys <= MAP_MAX; keys++) {
        make_maps(9, 2, keys, 0.5);
        for (int i = 0; i < MAP_MAX; i++) map_label(maps[4].query[i], "\xC3\xA9tendue");
        snprintf(maps[0].title, sizeof maps[0].title, "%060d", 0);
        print_maps(9);
        ck_assert_int_le(longest_line(), 80);
        ck_assert_int_gt(longest_line(), 34); /* the legend has more than 34 columns */
        ck_assert_int_eq(count("?"), 2);
        for (const char *c = text; *c; c++) ck_assert(isprint((unsigned char)*c) || *c == '\n');
    }
    make_maps(0, 1, 1, 1);
    print_maps(0);
    ck_assert_str_eq(text, "");
}

TEST(in_colours) {
    if (!has_terminal("in_colours")) return;
    make_golden();
    print_maps_on_terminal(2, "TERM=xterm", "LANG=C.UTF-8", "NO_COLOR=");
#define WHITE  "\033[48;5;231m"
#define MASKED "\033[0;90m//\033[0m"
    ck_assert_str_eq(
        text, "    head 1         head 2   \r\n"
              "    k                       \r\n"
              "    1 \u2423 \u21B5 \"        a b c    \r\n"
              "<b> " WHITE "  \033[48;5;153m  \033[48;5;19m  " MASKED
              "     A \033[48;5;26m    " WHITE "  \033[0m   \r\n"
              "  & \033[48;5;17m  " WHITE "    " MASKED
              "     B \033[48;5;195m    \033[48;5;19m  \033[0m   \r\n"
              "  \u00E9 " WHITE "  \033[48;5;195m  \033[48;5;18m  " MASKED "                \r\n"
              "\r\n"
              "weight 0  " WHITE "  \033[48;5;195m  \033[48;5;153m  \033[48;5;75m  "
              "\033[48;5;33m  \033[48;5;26m  \033[48;5;20m  \033[48;5;19m  \033[48;5;18m  "
              "\033[48;5;17m  \033[0m  1,  masked " MASKED "\r\n");
}

TEST(not_in_colours) {
    static char plain[sizeof text];
    if (!has_terminal("not_in_colours")) return;
    make_golden();
    print_maps(2);
    strcpy(plain, text);
    print_maps_on_terminal(2, "TERM=xterm", "LANG=C.UTF-8", "NO_COLOR=1");
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_nonnull(strstr(text, "@"));
    print_maps_on_terminal(2, "TERM=dumb", "LANG=C.UTF-8", "NO_COLOR=");
    ck_assert_ptr_null(strchr(text, '\033'));
    print_maps_on_terminal(2, "TERM=xterm", "LANG=C", "NO_COLOR=");
    ck_assert_ptr_null(strchr(text, '\033'));
    char *in = text;
    char *to = text; /* a terminal gets "\r\n" for "\n" */
    for (; *in; in++)
        if (*in != '\r') *to++ = *in;
    *to = '\0';
    ck_assert_str_eq(text, plain);
}

/* ---- the colours ---------------------------------------------------------------------------- */

/* The text up to an end, without blanks and quotation marks. */
static void squeeze(const char *from, const char *end, char to[256]) {
    for (; from < end; from++)
        if (!strchr(" \"'", *from)) *to++ = *from;
    *to = '\0';
}

static const char *value_in(const char *part, const char *property) {
    const char *before = format("%s: ", property);
    const char *at = strstr(part, before);
    ck_assert_msg(at != NULL, "the style sheet has no %s", property);
    return at + strlen(before);
}

/* In this part of a style sheet the property must be these words of colours.h. */
static void expect_style(const char *part, const char *property, const char *words) {
    char value[256], own[256];
    const char *at = value_in(part, property);
    squeeze(at, at + strcspn(at, ";}"), value);
    squeeze(words, words + strlen(words), own);
    ck_assert_msg(strcmp(value, own) == 0, "%s is %s, and %s in colours.h", property, value, own);
}

/* "0 114 178" is "#0072b2". */
static void expect_sign(const char *part, const char *property, const char *color) {
    unsigned r = 0, g = 0, b = 0;
    ck_assert_int_eq(sscanf(value_in(part, property), "%u %u %u", &r, &g, &b), 3);
    ck_assert_str_eq(format("#%02x%02x%02x", r, g, b), color);
}

static const struct {
    const char *property, *light, *dark;
} colours[] = {{"--paper", PAPER, PAPER_DARK}, {"--ink", INK, INK_DARK},
               {"--soft", SOFT, SOFT_DARK},    {"--line", LINE, LINE_DARK},
               {"--faint", FAINT, FAINT_DARK}, {"--cell", CELL, CELL_DARK}};

static char css[1 << 16];
static const char *light; /* the parts of css */
static const char *dark;

/* Reads a file with a style sheet, which must have the first n colours. */
static void expect_colours(const char *name, int n) {
    slurp(name, css, sizeof css);
    light = strstr(css, ":root {");
    dark = strstr(css, "(prefers-color-scheme: dark)");
    ck_assert_msg(light && dark && light < dark, "run me from the root of the repository");
    for (int i = 0; i < n; i++) {
        expect_style(light, colours[i].property, colours[i].light);
        expect_style(dark, colours[i].property, colours[i].dark);
    }
    expect_style(light, "--serif", SERIF);
    expect_style(light, "--sans", SANS);
    expect_style(light, "--mono", MONO);
}

/* One hand drew the page and the pictures. */
TEST(the_colours_of_the_page) {
    expect_colours("examples/explain/page/base.css", COUNT(colours));
    expect_sign(light, "--pos", POS);
    expect_sign(dark, "--pos", POS_DARK);
    ck_assert_str_eq(HATCH HATCH_DARK, "#000000#ffffff");
    expect_style(light, "--hatch", "rgb(0 0 0 / .17)");
    expect_style(dark, "--hatch", "rgb(255 255 255 / .22)");
    ck_assert_str_eq(HATCH_OPACITY HATCH_OPACITY_DARK, "0.170.22");
    slurp("examples/explain/page/step.css", css, sizeof css);
    ck_assert_ptr_nonnull(strstr(css, format("var(--hatch) 0 %dpx, transparent %dpx %dpx",
                                             HATCH_WIDTH, HATCH_WIDTH, HATCH_PERIOD)));
}

/* And the page with all pictures, which has some of the colours. */
TEST(the_colours_of_the_index) { expect_colours("examples/index.html", 4); }

int main(void) { return run_tests("attention_map"); }
