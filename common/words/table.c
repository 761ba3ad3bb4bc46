/* SPDX-License-Identifier: MIT */
/*
 * A table laid out in columns. Where it is too wide its widest columns are
 * narrowed and their cells wrapped; where even that is too wide, each row
 * becomes a few lines of "head: cell".
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS  12
#define GAP          2
#define LEAST_COLUMN 8

struct row {
	struct text cells[MAX_COLUMNS];
	int count;
};

struct table {
	struct row *rows; /* the first is the head */
	int count;
	bool failed;
};

struct table *table_new(void)
{
	return calloc(1, sizeof(struct table));
}

void table_row(struct table *table)
{
	struct row *rows = realloc(table->rows,
				   (size_t)(table->count + 1) * sizeof(*rows));

	if (!rows) {
		table->failed = true;
		return;
	}
	table->rows = rows;
	table->rows[table->count++] = (struct row){ 0 };
}

void table_cell(struct table *table, struct text *text)
{
	struct row *row;

	if (table->count && !table->failed) {
		row = &table->rows[table->count - 1];
		if (row->count < MAX_COLUMNS)
			text_put(&row->cells[row->count++],
				 text->data ? text->data : "", text->length);
	}
	text_clear(text);
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (int i = 0; i < table->count; i++)
		for (int j = 0; j < table->rows[i].count; j++)
			text_free(&table->rows[i].cells[j]);
	free(table->rows);
	free(table);
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

/* A column's natural width, and the least that breaks no word. */
static void measure(const struct table *table, int column, int *width,
		    int *least)
{
	*width = *least = 1;
	for (int i = 0; i < table->count; i++) {
		const struct text *cell = &table->rows[i].cells[column];
		const char *data = cell->data ? cell->data : "";

		*width = larger(*width, text_columns(data, cell->length));
		*least = larger(*least, text_longest(data, cell->length));
	}
	*least = larger(*least, LEAST_COLUMN);
}

/* Each column's width, narrowed to fit; false when it can't be. */
static bool find_widths(const struct table *table, int *widths, int columns)
{
	int count = table->rows[0].count;
	int total = GAP * (count - 1);
	int least[MAX_COLUMNS];

	for (int j = 0; j < count; j++) {
		measure(table, j, &widths[j], &least[j]);
		total += widths[j];
	}
	for (; total > columns; total--) {
		int widest = -1;

		for (int j = 0; j < count; j++)
			if (widths[j] > least[j] &&
			    (widest < 0 || widths[j] > widths[widest]))
				widest = j;
		if (widest < 0)
			return false;
		widths[widest]--;
	}
	return true;
}

/* The next line of wrapped text; *at moves behind it. */
static size_t next_line(const char **at, const char **line)
{
	size_t length = strcspn(*at, "\n");

	*line = *at;
	*at += length + ((*at)[length] == '\n');
	return length;
}

static void write_row(struct text *out, const struct row *row,
		      const int *widths)
{
	struct text wrapped[MAX_COLUMNS] = { 0 };
	const char *at[MAX_COLUMNS], *line;
	bool more = true;

	for (int j = 0; j < row->count; j++) {
		const struct text *cell = &row->cells[j];

		text_wrap(&wrapped[j], cell->data ? cell->data : "",
			  cell->length, "", widths[j]);
		at[j] = wrapped[j].data ? wrapped[j].data : "";
		out->failed |= wrapped[j].failed;
	}
	while (more) {
		int pending = 0; /* spaces, written only before more text */

		more = false;
		for (int j = 0; j < row->count; j++) {
			size_t length = next_line(&at[j], &line);

			if (length) {
				text_spaces(out, pending);
				pending = 0;
			}
			text_put(out, line, length);
			pending += widths[j] + GAP - text_columns(line, length);
			more |= *at[j] != '\0';
		}
		text_puts(out, "\n");
	}
	for (int j = 0; j < row->count; j++)
		text_free(&wrapped[j]);
}

static void write_rule(struct text *out, const int *widths, int count)
{
	for (int j = 0; j < count; j++) {
		for (int i = 0; i < widths[j]; i++)
			text_puts(out, "-");
		text_spaces(out, j + 1 < count ? GAP : 0);
	}
	text_puts(out, "\n");
}

static void write_record(struct text *out, const struct row *head,
			 const struct row *row, int columns)
{
	struct text line = { 0 };

	for (int j = 0; j < row->count; j++) {
		text_clear(&line);
		text_puts(&line,
			  head->cells[j].data ? head->cells[j].data : "");
		text_puts(&line, ": ");
		text_puts(&line, row->cells[j].data ? row->cells[j].data : "");
		out->failed |= line.failed;
		if (!line.failed)
			text_wrap(out, line.data, line.length, j ? "  " : "",
				  columns);
	}
	text_free(&line);
}

void table_write(const struct table *table, struct text *out, int columns)
{
	int widths[MAX_COLUMNS];

	out->failed |= table->failed;
	if (!table->count || out->failed)
		return;
	if (!find_widths(table, widths, columns)) {
		for (int i = 1; i < table->count; i++)
			write_record(out, &table->rows[0], &table->rows[i],
				     columns);
		return;
	}
	for (int i = 0; i < table->count; i++) {
		write_row(out, &table->rows[i], widths);
		if (!i)
			write_rule(out, widths, table->rows[0].count);
	}
}
