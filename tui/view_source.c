/* SPDX-License-Identifier: MIT */
/*
 * The source pane: the file of the call that comes next, that line marked
 * with '>' and bold, the line of a call just refused with '!'. Comments are
 * dim, the names of verbs that are called are coloured.
 */
#include "tui/view_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAB_COLUMNS  8
/* How far above the first row a comment's beginning is looked for. */
#define COMMENT_ROWS 200

/* The line with its tabs as blanks, in a string the caller frees. */
static char *expand(const char *line)
{
	char *out = malloc(strlen(line) * TAB_COLUMNS + 1), *p = out;
	int column = 0, columns;
	wchar_t ch;

	while (out && *line) {
		if (*line == '\t') {
			do
				*p++ = ' ';
			while (++column % TAB_COLUMNS);
			line++;
			continue;
		}
		const char *behind = cells_next(line, &ch, &columns);
		column += columns;
		while (line < behind)
			*p++ = *line++;
	}
	if (out)
		*p = '\0';
	return out;
}

/*
 * Follows C's comments and strings through a line: true when the next line
 * begins inside a comment. `each`, unless NULL, gets a style per byte.
 */
static bool scan(const char *line, bool comment, unsigned short *each)
{
	char quote = 0;

	for (size_t i = 0; line[i]; i++) {
		bool ends = comment && line[i] == '*' && line[i + 1] == '/';
		if (!comment && !quote && line[i] == '/' &&
		    line[i + 1] == '/') {
			for (; each && line[i]; i++)
				each[i] = STYLE_DIM;
			return false;
		}
		if (!comment && !quote && line[i] == '/' &&
		    line[i + 1] == '*') {
			comment = true;
			if (each)
				each[i] = each[i + 1] = STYLE_DIM;
			i++;
			continue;
		}
		if (each && comment)
			each[i] = STYLE_DIM;
		if (ends) {
			if (each)
				each[i + 1] = STYLE_DIM;
			comment = false;
			i++;
		} else if (quote && line[i] == '\\' && line[i + 1]) {
			i++;
		} else if (quote && line[i] == quote) {
			quote = 0;
		} else if (!comment && !quote &&
			   (line[i] == '"' || line[i] == '\'')) {
			quote = line[i];
		}
	}
	return comment;
}

/* Colours the names of verbs outside comments. */
static void scan_verbs(const char *line, unsigned short *each)
{
	for (const char *p = line; (p = strstr(p, "ibv_"));) {
		size_t start = (size_t)(p - line), end = start;
		while (isalnum((unsigned char)line[end]) || line[end] == '_')
			end++;
		bool whole = start == 0 ||
			     (!isalnum((unsigned char)line[start - 1]) &&
			      line[start - 1] != '_');
		for (size_t i = start; whole && line[end] == '(' && i < end;
		     i++)
			if (!each[i])
				each[i] = STYLE_ACCENT;
		p = line + end;
	}
}

/* Draws a line of source in the styles of its bytes. */
static void draw_line(struct cells *cells, const struct cells_area *area,
		      int row, int column, unsigned int style, const char *line,
		      bool comment)
{
	unsigned short *each = calloc(strlen(line) + 2, sizeof(*each));
	int columns;
	wchar_t ch;

	cells_text(cells, area, row, column, style, line);
	if (!each)
		return;
	scan(line, comment, each);
	scan_verbs(line, each);
	for (const char *p = line; *p;) {
		unsigned short own = each[p - line];
		p = cells_next(p, &ch, &columns);
		/* The marked line is bold: dim would undo that. */
		if (own && !(style & STYLE_BOLD && own == STYLE_DIM))
			cells_style(cells, area, row, column, columns, own);
		column += columns;
	}
	free(each);
}

static void draw_none(struct cells *cells, const struct cells_area *area,
		      const struct event *event)
{
	if (event) {
		cells_printf(cells, area, 0, 1, 0, "cannot read %s",
			     event->file);
		cells_printf(cells, area, 1, 1, 0,
			     "the place is line %d, in %s", event->line,
			     event->func ? event->func : "?");
	} else if (area->rows > 0) {
		cells_text(cells, area, 0, 1, STYLE_DIM,
			   "No place in a source file is known yet.");
		cells_text(cells, area, 1, 1, STYLE_DIM,
			   "(A program built without -g has none.)");
	}
}

/* One line: its number, its mark, its text. */
static void draw_row(struct cells *cells, const struct cells_area *area,
		     int row, int number, char mark, const char *line,
		     bool comment, const struct model *model)
{
	unsigned int style = mark == '>' ? STYLE_BOLD : 0;
	/* Four columns: a line of 76 fits a screen of 80. */
	int column = cells_printf(cells, area, row, 0,
				  style ? style : STYLE_DIM, "%3d", number);

	column += cells_printf(
		cells, area, row, column,
		mark == '!' ? STYLE_BOLD | STYLE_BAD : STYLE_BOLD, "%c", mark);
	draw_line(cells, area, row, column, style, line, comment);
	view_mark_search(cells, area, row, column, line, model);
}

void view_source(struct cells *cells, const struct view_plan *plan,
		 struct model *model)
{
	const struct cells_area *area = &plan->pane[PANE_SOURCE];
	const struct event *event = view_placed(model);
	const struct event *next = model_next(model);
	const struct event *last = view_last_call(model);
	const struct model_source *source =
		event ? model_source(model, event->file) : NULL;
	bool comment = false;

	if (!source || source->lines == 0) {
		draw_none(cells, area, event);
		return;
	}
	int top = view_scroll(model, PANE_SOURCE, area->rows, source->lines,
			      event->line - 1);
	for (int i = top > COMMENT_ROWS ? top - COMMENT_ROWS : 0; i < top; i++)
		comment = scan(source->line[i], comment, NULL);
	for (int row = 0; row < area->rows && top + row < source->lines;
	     row++) {
		int number = top + row + 1;
		bool here = event == next && number == event->line;
		bool refused = last && !last->ok && last->file &&
			       last->line == number &&
			       !strcmp(last->file, event->file);
		char *line = expand(source->line[number - 1]);
		if (!line)
			return;
		draw_row(cells, area, row, number,
			 here      ? '>'
			 : refused ? '!'
				   : ' ',
			 line, comment, model);
		comment = scan(line, comment, NULL);
		free(line);
	}
	view_cursor(cells, area, model, PANE_SOURCE, top);
}
