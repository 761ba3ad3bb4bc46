/* SPDX-License-Identifier: MIT */
/*
 * A screen as a grid of cells, with no curses in it: the views draw here, the
 * terminal and the golden frames are two readers of it.
 *
 * A cell holds one character (a wide one takes its cell and an empty next
 * one), or line directions that are joined where lines meet; UTF-8 or ASCII
 * is a table applied when the grid is read.
 */
#ifndef TUI_CELLS_H
#define TUI_CELLS_H

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

/* Attributes: a mark and a word come first, these second. */
enum cell_style {
	STYLE_PLAIN = 0,
	STYLE_BOLD = 1 << 0,
	STYLE_REVERSE = 1 << 1,
	STYLE_DIM = 1 << 2,
	STYLE_UNDERLINE = 1 << 3,
	/* Colours, only ever on top of a word: at most one. */
	STYLE_GOOD = 1 << 4,
	STYLE_BAD = 1 << 5,
	STYLE_WARN = 1 << 6,
	STYLE_ACCENT = 1 << 7,
};

enum cell_line { LINE_UP = 1, LINE_DOWN = 2, LINE_LEFT = 4, LINE_RIGHT = 8 };

struct cell {
	wchar_t ch;   /* 0: the right half of a wide character, or a line */
	wchar_t over; /* an accent that stands over it; 0: none */
	unsigned char line; /* directions; 0: none */
	unsigned short style;
};

struct cells {
	int rows, columns;
	struct cell *cell; /* rows * columns, row by row */
};

/* A part of a grid; drawing is clipped to it. */
struct cells_area {
	int row, column, rows, columns;
};

struct cells *cells_new(int rows, int columns); /* blank; NULL: no memory */
void cells_free(struct cells *cells);
void cells_clear(struct cells *cells);

/*
 * Text (UTF-8; bytes that are not become '?', control characters too) at a
 * place of the area, cut at its edge, never half a wide character. Characters
 * that the locale (LC_CTYPE) cannot show become '?', or the ASCII that stands
 * for them. Of those of no width an accent joins the character before it, one
 * at most; the others are left out. Returns the columns it took.
 */
int cells_text(struct cells *cells, const struct cells_area *area, int row,
	       int column, unsigned int style, const char *text);
int cells_printf(struct cells *cells, const struct cells_area *area, int row,
		 int column, unsigned int style, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/*
 * Straight lines between two places of the area, both drawn on, joined with
 * the lines that are there; an end points inwards only, so that a corner is
 * two lines that end in one place. Text is replaced.
 */
void cells_hline(struct cells *cells, const struct cells_area *area, int row,
		 int from, int to, unsigned int style);
void cells_vline(struct cells *cells, const struct cells_area *area, int column,
		 int from, int to, unsigned int style);

/* Blanks an area. */
void cells_fill(struct cells *cells, const struct cells_area *area);

/* Adds a style to a row's part. */
void cells_style(struct cells *cells, const struct cells_area *area, int row,
		 int column, int columns, unsigned int style);

/* The character of line directions. */
wchar_t cells_line_char(unsigned char line, bool utf8);

/*
 * What a cell shows: its character or line, in ASCII alone unless `utf8`; 0
 * for the right half of a wide character.
 */
wchar_t cells_char(const struct cell *cell, bool utf8);

/* The grid as text, a line a row, blanks at the end of a row cut. */
void cells_dump(const struct cells *cells, bool utf8, FILE *out);

/* The columns of UTF-8 text, as cells_text() would take. */
int cells_width(const char *text);

/*
 * Takes the next character off UTF-8 text that is not at its end, as
 * cells_text() would draw it: *ch and its columns (0, 1 or 2). Gives the text
 * behind it.
 */
const char *cells_next(const char *text, wchar_t *ch, int *columns);

#endif
