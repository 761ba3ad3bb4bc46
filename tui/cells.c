/* SPDX-License-Identifier: MIT */
/*
 * The grid of cells: text, lines and their characters. Invariant: a wide
 * character always has its empty right half beside it in the same row; what
 * overwrites one half blanks the other.
 */
#include "tui/cells.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct cells *cells_new(int rows, int columns)
{
	struct cells *cells = malloc(sizeof(*cells));
	if (!cells)
		return NULL;
	cells->rows = rows > 0 ? rows : 0;
	cells->columns = columns > 0 ? columns : 0;
	cells->cell = calloc((size_t)cells->rows * cells->columns + 1,
			     sizeof(*cells->cell));
	if (!cells->cell) {
		free(cells);
		return NULL;
	}
	cells_clear(cells);
	return cells;
}

void cells_free(struct cells *cells)
{
	if (!cells)
		return;
	free(cells->cell);
	free(cells);
}

void cells_clear(struct cells *cells)
{
	for (long i = 0; i < (long)cells->rows * cells->columns; i++)
		cells->cell[i] = (struct cell){ .ch = L' ' };
}

/* The cell at a place of the area, NULL outside it or outside the grid. */
static struct cell *cell_at(struct cells *cells, const struct cells_area *area,
			    int row, int column)
{
	if (row < 0 || row >= area->rows || column < 0 ||
	    column >= area->columns)
		return NULL;
	row += area->row;
	column += area->column;
	if (row < 0 || row >= cells->rows || column < 0 ||
	    column >= cells->columns)
		return NULL;
	return &cells->cell[(long)row * cells->columns + column];
}

static bool is_right_half(const struct cell *cell)
{
	return !cell->ch && !cell->line;
}

/* Blanks what would be left of a wide character when `cell` is overwritten. */
static void split_wide(struct cells *cells, struct cell *cell)
{
	long column = (cell - cells->cell) % cells->columns;

	if (is_right_half(cell) && column > 0)
		cell[-1].ch = L' ';
	if (cell->ch && column + 1 < cells->columns && is_right_half(cell + 1))
		cell[1].ch = L' ';
}

static void put(struct cells *cells, struct cell *cell, wchar_t ch,
		unsigned int style)
{
	split_wide(cells, cell);
	*cell = (struct cell){ .ch = ch, .style = (unsigned short)style };
}

/*
 * One character of strict UTF-8 (no overlong forms, no surrogates). Gives
 * its length; bad bytes give -1 and are skipped one by one.
 */
static long decode(const unsigned char *text, int *length)
{
	static const long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int n = text[0] < 0x80   ? 1
		: text[0] < 0xc0 ? 0
		: text[0] < 0xe0 ? 2
		: text[0] < 0xf0 ? 3
		: text[0] < 0xf8 ? 4
				 : 0;

	*length = 1;
	if (n == 0)
		return -1;
	if (n == 1)
		return text[0];
	long ch = text[0] & (0x7f >> n);
	for (int i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return -1;
		ch = ch << 6 | (text[i] & 0x3f);
	}
	if (ch < least[n] || ch > 0x10ffff || (ch >= 0xd800 && ch <= 0xdfff))
		return -1;
	*length = n;
	return ch;
}

/* The ASCII character that stands for one that cannot be shown. */
static wchar_t ascii_for(wchar_t ch)
{
	switch (ch) {
	case 0x2018: /* quotation marks */
	case 0x2019:
		return L'\'';
	case 0x201c:
	case 0x201d:
		return L'"';
	case 0x00a0: /* no-break space */
		return L' ';
	case 0x2010: /* hyphens, dashes, minus */
	case 0x2011:
	case 0x2012:
	case 0x2013:
	case 0x2014:
	case 0x2212:
		return L'-';
	case 0x2026: /* ellipsis */
		return L'.';
	case 0x2022: /* bullet, multiplication */
	case 0x00b7:
		return L'*';
	case 0x00d7:
		return L'x';
	case 0x2190: /* arrows */
		return L'<';
	case 0x2192:
	case 0x21d2:
		return L'>';
	default:
		return L'?';
	}
}

const char *cells_next(const char *text, wchar_t *ch, int *columns)
{
	int length;
	long code = decode((const unsigned char *)text, &length);

	*columns = 1;
	if (code < 0 || code < 0x20 || (code >= 0x7f && code < 0xa0)) {
		*ch = L'?';
		return text + length;
	}
	*ch = (wchar_t)code;
	if (code >= 0x7f) {
		*columns = wcwidth(*ch);
		if (*columns < 0 || *columns > 2) {
			*ch = ascii_for(*ch);
			*columns = 1;
		}
	}
	return text + length;
}

int cells_width(const char *text)
{
	int width = 0, columns;
	wchar_t ch;

	while (*text) {
		text = cells_next(text, &ch, &columns);
		width += columns;
	}
	return width;
}

/*
 * An accent joins its letter. What else has no width (joiners, direction
 * marks, variation selectors) could change the width of what is around it.
 */
static void put_over(struct cell *cell, wchar_t ch)
{
	bool accent =
		(ch >= 0x300 && ch < 0x370) || (ch >= 0x483 && ch < 0x488) ||
		(ch >= 0x591 && ch < 0x5c0) || (ch >= 0x64b && ch < 0x660) ||
		ch == 0x3099 || ch == 0x309a;

	if (cell && accent && !cell->over)
		cell->over = ch;
}

int cells_text(struct cells *cells, const struct cells_area *area, int row,
	       int column, unsigned int style, const char *text)
{
	int start = column, columns;
	struct cell *last = NULL;
	wchar_t ch;

	while (*text) {
		text = cells_next(text, &ch, &columns);
		if (columns == 0) {
			put_over(last, ch);
			continue;
		}
		last = NULL;
		struct cell *cell = cell_at(cells, area, row, column);
		struct cell *right =
			cell_at(cells, area, row, column + columns - 1);
		if (column + columns > area->columns)
			break;
		if (cell && right) {
			put(cells, cell, ch, style);
			last = cell;
			if (columns == 2)
				put(cells, right, 0, style);
		} else if (right) {
			put(cells, right, L' ', style);
		}
		column += columns;
	}
	return column - start;
}

int cells_printf(struct cells *cells, const struct cells_area *area, int row,
		 int column, unsigned int style, const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return 0;
	int columns = cells_text(cells, area, row, column, style, text);
	free(text);
	return columns;
}

static void join(struct cells *cells, struct cell *cell, unsigned char line,
		 unsigned int style)
{
	if (!cell || !line)
		return;
	if (!cell->line)
		put(cells, cell, 0, 0);
	cell->line |= line;
	cell->style |= (unsigned short)style;
}

void cells_hline(struct cells *cells, const struct cells_area *area, int row,
		 int from, int to, unsigned int style)
{
	for (int column = from < 0 ? 0 : from;
	     column <= to && column < area->columns; column++)
		join(cells, cell_at(cells, area, row, column),
		     (column > from ? LINE_LEFT : 0) |
			     (column < to ? LINE_RIGHT : 0),
		     style);
}

void cells_vline(struct cells *cells, const struct cells_area *area, int column,
		 int from, int to, unsigned int style)
{
	for (int row = from < 0 ? 0 : from; row <= to && row < area->rows;
	     row++)
		join(cells, cell_at(cells, area, row, column),
		     (row > from ? LINE_UP : 0) | (row < to ? LINE_DOWN : 0),
		     style);
}

void cells_fill(struct cells *cells, const struct cells_area *area)
{
	for (int row = 0; row < area->rows; row++)
		for (int column = 0; column < area->columns; column++) {
			struct cell *cell = cell_at(cells, area, row, column);
			if (cell)
				put(cells, cell, L' ', 0);
		}
}

void cells_style(struct cells *cells, const struct cells_area *area, int row,
		 int column, int columns, unsigned int style)
{
	for (int i = 0; i < columns && column + i < area->columns; i++) {
		struct cell *cell = cell_at(cells, area, row, column + i);
		if (cell)
			cell->style |= (unsigned short)style;
	}
}

wchar_t cells_line_char(unsigned char line, bool utf8)
{
	/* By directions: bit 0 up, 1 down, 2 left, 3 right. */
	static const wchar_t box[16] = { L' ',   0x2502, 0x2502, 0x2502,
					 0x2500, 0x2518, 0x2510, 0x2524,
					 0x2500, 0x2514, 0x250c, 0x251c,
					 0x2500, 0x2534, 0x252c, 0x253c };
	static const wchar_t ascii[] = L" |||-+++-+++-+++";

	return (utf8 ? box : ascii)[line & 15];
}

wchar_t cells_char(const struct cell *cell, bool utf8)
{
	if (cell->line)
		return cells_line_char(cell->line, utf8);
	if (!utf8 && cell->ch >= 0x7f)
		return ascii_for(cell->ch);
	return cell->ch;
}

/* The locale does not matter here: a dump is UTF-8 or ASCII as asked. */
static void put_utf8(wchar_t ch, FILE *out)
{
	unsigned long c = (unsigned long)ch;

	if (c < 0x80) {
		fputc((int)c, out);
		return;
	}
	if (c < 0x800) {
		fputc((int)(0xc0 | c >> 6), out);
	} else {
		if (c < 0x10000) {
			fputc((int)(0xe0 | c >> 12), out);
		} else {
			fputc((int)(0xf0 | c >> 18), out);
			fputc((int)(0x80 | (c >> 12 & 0x3f)), out);
		}
		fputc((int)(0x80 | (c >> 6 & 0x3f)), out);
	}
	fputc((int)(0x80 | (c & 0x3f)), out);
}

void cells_dump(const struct cells *cells, bool utf8, FILE *out)
{
	for (int row = 0; row < cells->rows; row++) {
		const struct cell *cell =
			cells->cell + (long)row * cells->columns;
		int end = cells->columns;
		while (end > 0 && cell[end - 1].ch == L' ')
			end--;
		for (int i = 0; i < end; i++) {
			wchar_t ch = cells_char(&cell[i], utf8);
			if (ch)
				put_utf8(ch, out);
			else if (!utf8)
				/* An ASCII mark took one of two columns. */
				fputc(' ', out);
			if (utf8 && cell[i].over)
				put_utf8(cell[i].over, out);
		}
		fputc('\n', out);
	}
}
