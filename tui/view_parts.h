/* SPDX-License-Identifier: MIT */
/*
 * What the files of the view share, and nobody else: where things stand on
 * the screen, and the drawing of each part.
 */
#ifndef TUI_VIEW_PARTS_H
#define TUI_VIEW_PARTS_H

#include "tui/view.h"

/* Where everything stands on a screen of one size. */
struct view_plan {
	bool tiny; /* no room: a message only */
	bool tree; /* the graph pane is too small for a drawing */
	bool side; /* all parts of the lower strip stand side by side */
	struct cells_area pane[PANES]; /* rows 0: not shown */
	/* The row above a pane, with its title; columns 0: none. */
	struct cells_area rule[PANES];
	struct cells_area title, last, message, keys;
};

void view_plan(struct view_plan *plan, const struct model *model, int rows,
	       int columns);

/* The newest call that has returned by the shown place; NULL before any. */
const struct event *view_last_call(const struct model *model);

/* The newest event, up to the shown place, whose file is known, or NULL. */
const struct event *view_placed(const struct model *model);

/* The program has ended well, nothing is left alive, and that is shown. */
bool view_is_over(const struct model *model);

/* The heading of the shown step's section, else its id; NULL before one. */
const char *view_heading(const struct model *model);

/*
 * What the last call's errno, or a completion's status in its answer,
 * usually means; NULL when there is nothing to explain, or when the message
 * row is taken.
 */
const char *view_hint(const struct model *model);

/* How many bytes of a text, up to a blank, fit into a row. */
size_t view_wrap(const char *text, int columns);

/* The part of a path behind its last '/'. */
const char *view_base(const char *path);

/*
 * Keeps a pane's scroll within `length` rows, and `row` in view when the
 * pane follows. Stores the length; gives the first row to draw.
 */
int view_scroll(struct model *model, enum model_pane pane, int rows, int length,
		int row);

/* Underlines what the search is for in a row that was drawn from `text`. */
void view_mark_search(struct cells *cells, const struct cells_area *area,
		      int row, int column, const char *text,
		      const struct model *model);

/* The same in a row as it is drawn, from a column on, what was cut apart. */
void view_mark_found(struct cells *cells, const struct cells_area *area,
		     int row, int column, const struct model *model);

/*
 * A pane's cursor shows when the pane has the focus and does not follow: a
 * style over the row.
 */
void view_cursor(struct cells *cells, const struct cells_area *area,
		 const struct model *model, enum model_pane pane, int top);

/*
 * A call as event_text() has it, within the area's columns; too long a one
 * is cut in its arguments, so that the answer is seen. Gives the columns.
 */
int view_call_text(struct cells *cells, const struct cells_area *area, int row,
		   int column, unsigned int style, const struct event *call);

/* Draws a text of several lines at the top of an area; gives its rows. */
int view_lines(struct cells *cells, const struct cells_area *area,
	       const char *text, const struct model *model);

/* The parts: each draws into its area of the plan. */
void view_source(struct cells *cells, const struct view_plan *plan,
		 struct model *model);
void view_graph(struct cells *cells, const struct view_plan *plan,
		struct model *model);
void view_attrs(struct cells *cells, const struct view_plan *plan,
		struct model *model);
void view_words(struct cells *cells, const struct view_plan *plan,
		struct model *model);
void view_calls(struct cells *cells, const struct view_plan *plan,
		struct model *model);
void view_output(struct cells *cells, const struct view_plan *plan,
		 struct model *model);
void view_rules(struct cells *cells, const struct view_plan *plan,
		struct model *model);
void view_title(struct cells *cells, const struct view_plan *plan,
		struct model *model);
void view_last(struct cells *cells, const struct view_plan *plan,
	       const struct model *model);
void view_message(struct cells *cells, const struct view_plan *plan,
		  struct model *model);
void view_keys(struct cells *cells, const struct view_plan *plan,
	       const struct model *model);
void view_menu(struct cells *cells, const struct view_plan *plan,
	       struct model *model);
void view_help(struct cells *cells, const struct model *model);

#endif
