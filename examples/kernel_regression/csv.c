/* csv.c - reads columns of numbers from a text file: see csv.h.
 *
 * The whole file is read into memory, and a cursor goes through it once. A record is the cells of
 * one line. Quotes are removed in place, because the text of a cell never grows. Every error names
 * the file and the line.
 */
#include "csv.h"

#include "../../tensor/tensor.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 20)
#define MAX_CELLS 4096

typedef struct {
    const char *path;
    char *text, *cursor; /* text ends with a NUL and has none before */
    char delimiter;
    int64_t line, record_line;  /* the line of the cursor and of the record, counted from 1 */
    int num_cells, first_width; /* the number of cells of this record and of the first record */
    char *cell[MAX_CELLS];
    char *error;
} Reader;

__attribute__((format(printf, 2, 3))) static bool fail(Reader *reader, const char *format, ...) {
    char path[301];
    tensor_snprintf(path, sizeof path, "%s", reader->path);
    int used = snprintf(reader->error, CSV_ERROR_SIZE, "%s:", path);
    if (reader->record_line > 0)
        used += snprintf(reader->error + used, CSV_ERROR_SIZE - (size_t)used,
                         "%lld:", (long long)reader->record_line);
    va_list arguments;
    va_start(arguments, format);
    reader->error[used] = ' ';
    vsnprintf(reader->error + used + 1, CSV_ERROR_SIZE - (size_t)used - 1, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the bytes --------------------------------------------------------------------------- */

/* Reads to the end of the file, which may be a pipe. */
static bool read_bytes(Reader *reader, FILE *file) {
    size_t size = 0, capacity = 0, got;
    do {
        if (size + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            char *text = capacity > 2 * MAX_BYTES ? NULL : realloc(reader->text, capacity);
            if (!text) return fail(reader, "the file is too large");
            reader->text = text;
        }
        got = fread(reader->text + size, 1, capacity - size - 1, file);
        if (memchr(reader->text + size, '\0', got))
            return fail(reader, "not a UTF-8 text file; a spreadsheet must be saved as .csv");
        size += got;
    } while (got > 0);
    if (ferror(file)) return fail(reader, "cannot read the file: %s", strerror(errno));
    reader->text[size] = '\0';
    reader->cursor = reader->text;
    if (strncmp(reader->text, "\xEF\xBB\xBF", 3) == 0) reader->cursor += 3; /* byte order mark */
    return true;
}

static bool open_and_read(Reader *reader) {
    FILE *file = fopen(reader->path, "rb");
    if (!file) return fail(reader, "cannot read the file: %s", strerror(errno));
    bool ok = read_bytes(reader, file);
    fclose(file);
    return ok;
}

/* ---- records ----------------------------------------------------------------------------- */

/* The first of these that the first line has, outside of quotes and between its cells. With a
 * semicolon or a tab a comma may be a decimal comma. */
static char find_delimiter(const char *line) {
    static const char delimiters[] = ";\t, ";
    size_t found = sizeof delimiters - 2;
    bool quoted = false;
    for (; *line && (quoted || (*line != '\n' && *line != '\r')); line++) {
        const char *at = quoted ? NULL : strchr(delimiters, *line);
        if (*line == '"') quoted = !quoted;
        if (at && (size_t)(at - delimiters) < found) found = (size_t)(at - delimiters);
    }
    return delimiters[found];
}

/* Skips one line end: \n, \r or \r\n. */
static void end_line(Reader *reader) {
    if (*reader->cursor == '\r') reader->cursor++;
    if (*reader->cursor == '\n') reader->cursor++;
    reader->line++;
}

/* Removes the quotes of a cell in place, from the opening quote on; "" inside becomes one quote. */
static bool read_quoted(Reader *reader, char **end) {
    char *out = *end;
    for (reader->cursor++;; *out++ = *reader->cursor++) {
        if (!*reader->cursor) return fail(reader, "a quoted cell has no closing quote");
        if (*reader->cursor == '\n') reader->line++;
        if (*reader->cursor == '"' && *++reader->cursor != '"') break;
    }
    *end = out;
    return true;
}

/* Of several spaces between two cells the last is the delimiter; those at the end of a line are
 * none. */
static void skip_spaces(Reader *reader) {
    const size_t spaces = strspn(reader->cursor, " ");
    const bool ends = strchr("\r\n", reader->cursor[spaces]); /* or the file ends: its NUL */
    const bool keeps_one = reader->delimiter == ' ' && spaces > 0 && !ends;
    reader->cursor += keeps_one ? spaces - 1 : spaces;
}

/* Finds the next cell, without spaces around it. The cursor stops at the character after it. */
static bool read_cell(Reader *reader, char **begin, char **end) {
    const char stops[] = {reader->delimiter, '\n', '\r', '\0'};
    reader->cursor += strspn(reader->cursor, reader->delimiter == '\t' ? " " : " \t");
    *begin = reader->cursor;
    *end = reader->cursor;
    if (*reader->cursor == '"') {
        if (!read_quoted(reader, end)) return false;
        skip_spaces(reader);
        if (!strchr(stops, *reader->cursor)) return fail(reader, "text after a closing quote");
        return true;
    }
    reader->cursor += strcspn(reader->cursor, stops);
    *end = reader->cursor;
    skip_spaces(reader);
    while (*end > *begin && ((*end)[-1] == ' ' || (*end)[-1] == '\t')) --*end;
    return true;
}

/* Reads the cells of the next line that is not blank; num_cells is 0 at the end of the file. */
static bool read_record(Reader *reader) {
    for (reader->num_cells = 0; *reader->cursor || reader->num_cells;) {
        if (reader->num_cells == 0) reader->record_line = reader->line;
        if (reader->num_cells == MAX_CELLS)
            return fail(reader, "more than %d cells in a line", MAX_CELLS);
        char *begin;
        char *end;
        if (!read_cell(reader, &begin, &end)) return false;
        reader->cell[reader->num_cells++] = begin;
        bool more = *reader->cursor && *reader->cursor == reader->delimiter;
        if (more) reader->cursor++;
        else end_line(reader);
        *end = '\0'; /* not before, because this byte may be the delimiter */
        if (more) continue;
        if (reader->num_cells > 1 || *begin) return true;
        reader->num_cells = 0; /* a blank line */
    }
    return true;
}

/* ---- cells ------------------------------------------------------------------------------- */

/* Decimal notation, an infinity or NaN, but not hexadecimal, which strtod also accepts. */
static bool is_number(const char *cell, double *number) {
    char *end;
    *number = strtod(cell, &end);
    return end != cell && !*end && (!isfinite(*number) || !strpbrk(cell, "xX"));
}

static bool read_number(Reader *reader, int column, double *number) {
    const char *cell = reader->cell[column];
    if (!*cell) return fail(reader, "column %d is empty", column + 1);
    if (!is_number(cell, number))
        return fail(reader, "\"%s\" in column %d is not a number", tensor_name_text(cell),
                    column + 1);
    if (!isfinite(*number))
        return fail(reader, "\"%s\" in column %d is not a finite number", tensor_name_text(cell),
                    column + 1);
    return true;
}

/* ---- columns ----------------------------------------------------------------------------- */

/* 1 or more if the choice is all digits; 0 if it is a name. */
static int column_number(const char *choice) {
    if (strspn(choice, "0123456789") != strlen(choice)) return 0;
    return strlen(choice) > 6 ? 1000000 : atoi(choice);
}

static bool find_column(Reader *reader, const char *choice, int *index) {
    int number = column_number(choice);
    *index = number - 1;
    if (number > reader->num_cells || strcmp(choice, "0") == 0)
        return fail(reader, "there is no column %s, the line has %d", tensor_name_text(choice),
                    reader->num_cells);
    for (int i = 0; number == 0 && i < reader->num_cells; i++)
        if (strcmp(reader->cell[i], choice) == 0) {
            *index = i;
            number = i + 1;
        }
    if (number == 0)
        return fail(reader, "there is no column named \"%s\" in the first line",
                    tensor_name_text(choice));
    return true;
}

/* Finds the chosen columns in the first record, and whether it is a header. */
static bool find_columns(Reader *reader, const char *const *columns, CsvTable *table, int *index,
                         bool *header) {
    bool named = false, numeric = false;
    double ignored;
    for (int i = 0; i < table->num_columns; i++) {
        if (!find_column(reader, columns[i], &index[i])) return false;
        named = named || column_number(columns[i]) == 0;
        numeric = numeric || is_number(reader->cell[index[i]], &ignored);
    }
    *header = named || !numeric;
    for (int i = 0; i < table->num_columns; i++) {
        char number[32];
        snprintf(number, sizeof number, "column %d", index[i] + 1);
        const char *name = *header && *reader->cell[index[i]] ? reader->cell[index[i]] : number;
        table->name[i] = malloc(strlen(name) + 1);
        if (!table->name[i]) return fail(reader, "out of memory");
        strcpy(table->name[i], name);
    }
    return true;
}

/* Allocates memory for one more row; capacities are powers of two. */
static bool grow(Reader *reader, CsvTable *table) {
    size_t n = (size_t)table->num_rows;
    if (n & (n - 1)) return true;
    for (int i = 0; i < table->num_columns; i++) {
        double *column = realloc(table->column[i], (n ? 2 * n : 1) * sizeof *column);
        if (!column) return fail(reader, "out of memory");
        table->column[i] = column;
    }
    return true;
}

static bool add_row(Reader *reader, CsvTable *table, const int *index) {
    if (reader->num_cells != reader->first_width)
        return fail(reader, "the line has %d cell%s where the first has %d", reader->num_cells,
                    reader->num_cells == 1 ? "" : "s", reader->first_width);
    if (!grow(reader, table)) return false;
    for (int i = 0; i < table->num_columns; i++)
        if (!read_number(reader, index[i], &table->column[i][table->num_rows])) return false;
    table->num_rows++;
    table->last_line = reader->record_line;
    return true;
}

static bool read_table(Reader *reader, const char *const *columns, CsvTable *table) {
    int index[CSV_MAX_COLUMNS] = {0};
    bool header;
    if (!open_and_read(reader)) return false;
    reader->delimiter = find_delimiter(reader->cursor);
    reader->line = 1;
    if (!read_record(reader)) return false;
    if (reader->num_cells == 0) return fail(reader, "the file is empty");
    reader->first_width = reader->num_cells;
    if (!find_columns(reader, columns, table, index, &header)) return false;
    table->last_line = reader->record_line;
    if (header && !read_record(reader)) return false;
    for (; reader->num_cells > 0;)
        if (!add_row(reader, table, index) || !read_record(reader)) return false;
    return true;
}

bool csv_read(const char *path, const char *const *columns, int num_columns, CsvTable *table,
              char error[CSV_ERROR_SIZE]) {
    *table = (CsvTable){.num_columns = num_columns};
    Reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        snprintf(error, CSV_ERROR_SIZE, "out of memory");
        return false;
    }
    reader->path = path;
    reader->error = error;
    bool ok = read_table(reader, columns, table);
    free(reader->text);
    free(reader);
    return ok;
}

void csv_free(CsvTable *table) {
    for (int i = 0; i < table->num_columns; i++) {
        free(table->column[i]);
        free(table->name[i]);
    }
    *table = (CsvTable){0};
}

void csv_write_cell(FILE *file, const char *text) {
    bool quotes = strpbrk(text, ",;\t\"\r\n") != NULL;
    if (quotes) putc('"', file);
    for (; *text; text++) {
        if (*text == '"') putc('"', file);
        putc(*text, file);
    }
    if (quotes) putc('"', file);
}
