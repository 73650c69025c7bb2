/* csv.h - reads columns of numbers from a text file.
 *
 * Cells are separated by commas, semicolons, tabs or spaces; the first line shows which. Cells may
 * be "quoted". Lines may end as on Unix, Windows or old Macs. A byte order mark and blank lines are
 * skipped. Every cell of a chosen column must be a finite number such as 12, -0.5 or 6.02e23.
 */
#ifndef TAPEHEAD_EXAMPLES_CSV_H
#define TAPEHEAD_EXAMPLES_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CSV_MAX_COLUMNS 8
#define CSV_ERROR_SIZE  512

typedef struct {
    int num_columns;
    int64_t num_rows;
    int64_t last_line;               /* the line of the last row, counted from 1 */
    double *column[CSV_MAX_COLUMNS]; /* num_rows each */
    char *name[CSV_MAX_COLUMNS];     /* from the header, or "column 2" */
} CsvTable;

/* Reads num_columns columns. A column is chosen by its number, counted from 1, or by its name in
 * the header. The first line is a header if a column is chosen by name, or if none of its chosen
 * cells is a number. On failure: false, and a message such as `data.csv:7: "abc" in column 2 is
 * not a number` in error. The caller calls csv_free, also after a failure. */
bool csv_read(const char *path, const char *const *columns, int num_columns, CsvTable *table,
              char error[CSV_ERROR_SIZE]);
void csv_free(CsvTable *table);

/* Writes text as one cell, in quotes if it needs them. */
void csv_write_cell(FILE *file, const char *text);

#endif
