/* csv.h - columns of numbers out of a text file.
 *
 * Commas, semicolons or tabs between the cells, whichever the first line shows; cells may be
 * "quoted"; lines may end as on Unix, Windows or old Macs; a byte order mark and blank lines are
 * skipped. Every cell of a chosen column must be a finite number, as 12, -0.5 or 6.02e23.
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
    int64_t last_line;               /* of the file, counted from 1: where the last row is */
    double *column[CSV_MAX_COLUMNS]; /* num_rows each */
    char *name[CSV_MAX_COLUMNS];     /* from the header, or "column 2" */
} CsvTable;

/* Reads num_columns columns, each chosen by its number, counted from 1, or by its name in the
 * header. The first line is a header when a column is chosen by name or when no chosen cell of it
 * is a number. False with a sentence such as `data.csv:7: "abc" in column 2 is not a number` in
 * error. The table is the caller's to csv_free, also after a failure. */
bool csv_read(const char *path, const char *const *columns, int num_columns, CsvTable *table,
              char error[CSV_ERROR_SIZE]);
void csv_free(CsvTable *table);

/* Writes text as one cell, in quotes if it needs them. */
void csv_write_cell(FILE *file, const char *text);

#endif
