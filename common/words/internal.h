/* SPDX-License-Identifier: MIT */
/*
 * Text as it grows, and how wide it is: shared by render.c, table.c and wrap.c.
 */
#ifndef WORDS_INTERNAL_H
#define WORDS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* A growing string. Once memory ran out, `failed` stays set. */
struct text {
	char *data; /* ends in NUL; NULL while empty */
	size_t length, size;
	bool failed;
};

void text_put(struct text *text, const char *data, size_t length);
void text_puts(struct text *text, const char *string);
void text_spaces(struct text *text, int count);
void text_clear(struct text *text); /* keeps the memory */
void text_free(struct text *text);

/* Columns that `length` bytes of UTF-8 take in a terminal. */
int text_columns(const char *data, size_t length);

/* Columns of the longest word: no line can be narrower. */
int text_longest(const char *words, size_t length);

/*
 * Appends `words` to `out`, wrapped to `columns`; the first line starts with
 * `first`, the others with as many spaces. A word that is too long stands on
 * a line of its own. Wide characters may part from each other, but no closing
 * mark starts a line.
 */
void text_wrap(struct text *out, const char *words, size_t length,
	       const char *first, int columns);

/* A table as it is read: table_row() begins a row, table_cell() takes the
 * text of a cell and clears it. Rows have as many cells as the head. */
struct table;

struct table *table_new(void); /* NULL when memory is out */
void table_row(struct table *table);
void table_cell(struct table *table, struct text *text);
void table_write(const struct table *table, struct text *out, int columns);
void table_free(struct table *table);

#endif
