/* SPDX-License-Identifier: MIT */
/*
 * The screen as a whole: where the panes stand at each size, and what the
 * parts share. The parts are in view_*.c.
 */
#include "tui/view.h"

#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "tui/view_parts.h"

/* From this size on everything is seen at once. */
#define SIDE_COLUMNS   140
#define SIDE_ROWS      30
/* Columns that a lesson's lines (76 at most) need with mark and number. */
#define SOURCE_COLUMNS 84
#define ATTRS_COLUMNS  31

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* A pane with its rule above, `rows` with both. */
static void place(struct view_plan *plan, enum model_pane pane, int row,
		  int column, int rows, int columns)
{
	plan->rule[pane] = (struct cells_area){ row, column, 1, columns };
	plan->pane[pane] =
		(struct cells_area){ row + 1, column, rows - 1, columns };
}

/* The part of the lower strip that is shown where there is room for one. */
static enum model_pane lower_pane(const struct model *model)
{
	return model->lower == PANE_CALLS || model->lower == PANE_OUTPUT
		       ? model->lower
		       : PANE_WORDS;
}

/* 80x24 and up: source, graph beside attributes, the lower strip. */
static void plan_full(struct view_plan *plan, const struct model *model,
		      int rows, int columns)
{
	/*
	 * At 24 rows: source 7, graph 7 (four ranks and the buses between),
	 * strip 3, each with a rule.
	 */
	int more = rows - 24;
	int source = 8 + more * 45 / 100, lower = 4 + more * 25 / 100;
	int graph = rows - 4 - source - lower;
	/* Who reads the strip needs little of the source meanwhile. */
	int give = model->focus == lower_pane(model) ? source / 2 - 1 : 0;
	int attrs = ATTRS_COLUMNS + (columns - 80) / 3;
	int row = 1;

	source -= give;
	lower += give;
	place(plan, PANE_SOURCE, row, 0, source, columns);
	row += source;
	place(plan, PANE_GRAPH, row, 0, graph, columns - attrs - 1);
	place(plan, PANE_ATTRS, row, columns - attrs, graph, attrs);
	row += graph;
	place(plan, lower_pane(model), row, 0, lower, columns);
}

/* A wide screen: graph over attributes beside the source; all of the strip. */
static void plan_side(struct view_plan *plan, const struct model *model,
		      int rows, int columns)
{
	int left = SOURCE_COLUMNS, right = columns - left - 1;
	int body = rows - 4, lower = least(body * 3 / 10, 18);
	int upper = body - lower, attrs = least(upper * 4 / 10, 20);

	place(plan, PANE_SOURCE, 1, 0, upper, left);
	place(plan, PANE_GRAPH, 1, left + 1, upper - attrs, right);
	place(plan, PANE_ATTRS, 1 + upper - attrs, left + 1, attrs, right);
	place(plan, PANE_WORDS, 1 + upper, 0, lower, left);
	if (right >= 100) {
		int calls = right * 6 / 10;
		place(plan, PANE_CALLS, 1 + upper, left + 1, lower, calls);
		place(plan, PANE_OUTPUT, 1 + upper, left + calls + 2, lower,
		      right - calls - 1);
	} else {
		place(plan,
		      model->lower == PANE_OUTPUT ? PANE_OUTPUT : PANE_CALLS,
		      1 + upper, left + 1, lower, right);
	}
}

/* Below 80x24: the source, and the pane in focus (else the graph) under it. */
static void plan_small(struct view_plan *plan, const struct model *model,
		       int rows, int columns)
{
	enum model_pane other =
		model->focus == PANE_SOURCE ? PANE_GRAPH : model->focus;
	int body = rows - 4;

	plan->tree = true;
	if (body < 8) {
		other = model->focus;
		plan->pane[other] = (struct cells_area){ 1, 0, body, columns };
		return;
	}
	int source = body < 17 ? body * 55 / 100 : body / 2;
	plan->pane[PANE_SOURCE] = (struct cells_area){ 1, 0, source, columns };
	place(plan, other, 1 + source, 0, body - source, columns);
}

size_t view_wrap(const char *text, int columns)
{
	const char *p = text, *blank = NULL;
	int used = 0, width;
	wchar_t ch;

	while (*p) {
		const char *behind = cells_next(p, &ch, &width);
		if (used + width > columns)
			return (size_t)((blank ? blank : p) - text);
		if (*p == ' ')
			blank = p;
		used += width;
		p = behind;
	}
	return (size_t)(p - text);
}

/* A long explanation takes rows from the panes above the last call. */
static void make_room(struct view_plan *plan, const char *why)
{
	int columns = plan->message.columns - 5, more = -1;

	for (; why && *why && more < 2; more++) {
		why += view_wrap(why, columns);
		why += strspn(why, " ");
	}
	if (more <= 0)
		return;
	for (int pane = 0; pane < PANES; pane++) {
		const struct cells_area *area = &plan->pane[pane];
		if (area->rows == 0 || area->row + area->rows != plan->last.row)
			continue;
		if (area->rows < 2 * more)
			return;
	}
	for (int pane = 0; pane < PANES; pane++)
		if (plan->pane[pane].rows > 0 &&
		    plan->pane[pane].row + plan->pane[pane].rows ==
			    plan->last.row)
			plan->pane[pane].rows -= more;
	plan->last.row -= more;
	plan->message.row -= more;
	plan->message.rows += more;
}

void view_plan(struct view_plan *plan, const struct model *model, int rows,
	       int columns)
{
	memset(plan, 0, sizeof(*plan));
	plan->tiny = rows < VIEW_LEAST_ROWS || columns < VIEW_LEAST_COLUMNS;
	if (plan->tiny)
		return;
	plan->title = (struct cells_area){ 0, 0, 1, columns };
	plan->last = (struct cells_area){ rows - 3, 0, 1, columns };
	plan->message = (struct cells_area){ rows - 2, 0, 1, columns };
	plan->keys = (struct cells_area){ rows - 1, 0, 1, columns };
	plan->tree = model->tree;
	if (model->zoom && model->screen == SCREEN_STEP) {
		place(plan, model->focus, 1, 0, rows - 4, columns);
	} else if (rows >= SIDE_ROWS && columns >= SIDE_COLUMNS) {
		plan->side = true;
		plan_side(plan, model, rows, columns);
	} else if (rows >= 24 && columns >= 80) {
		plan_full(plan, model, rows, columns);
	} else {
		plan_small(plan, model, rows, columns);
	}
	if (model->session)
		make_room(plan, view_hint(model));
}

struct cells_area view_pane(const struct model *model, int rows, int columns,
			    enum model_pane pane)
{
	struct view_plan plan;

	view_plan(&plan, model, rows, columns);
	return plan.pane[pane];
}

const struct event *view_last_call(const struct model *model)
{
	if (!model->session)
		return NULL;
	for (size_t i = model->at; i > 0; i--)
		if (model->session->event[i - 1]->kind == EVENT_RET)
			return model->session->event[i - 1];
	return NULL;
}

const struct event *view_placed(const struct model *model)
{
	const struct event *next = model_next(model);

	if (next && next->file)
		return next;
	for (size_t i = model->session ? model->at : 0; i > 0; i--)
		if (model->session->event[i - 1]->file)
			return model->session->event[i - 1];
	return NULL;
}

bool view_is_over(const struct model *model)
{
	const struct graph *graph = model->graph;

	if (!model->session || !model_present(model) ||
	    model->session->state != SESSION_EXITED || model->selected[0] ||
	    !graph->nodes)
		return false;
	for (uint32_t i = 0; i < graph->nodes; i++)
		if (graph->node[i].state != GRAPH_DESTROYED &&
		    graph->node[i].state != GRAPH_FAILED)
			return false;
	return true;
}

const char *view_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int view_scroll(struct model *model, enum model_pane pane, int rows, int length,
		int row)
{
	struct model_scroll *scroll = &model->scroll[pane];
	int most = length > rows ? length - rows : 0;

	model->length[pane] = length;
	if (scroll->follows) {
		/* What comes next matters more than what was. */
		if (row < scroll->top + (rows > 4) ||
		    row >= scroll->top + rows - (rows > 4 ? rows / 3 : 0))
			scroll->top = row - rows / 2;
		scroll->cursor = row < 0 ? 0 : row;
	}
	int top = least(scroll->top, most);
	if (top < 0)
		top = 0;
	if (scroll->follows)
		scroll->top = top;
	return top;
}

void view_mark_search(struct cells *cells, const struct cells_area *area,
		      int row, int column, const char *text,
		      const struct model *model)
{
	size_t length = strlen(model->search);

	if (length == 0)
		return;
	for (const char *hit = strcasestr(text, model->search); hit;
	     hit = strcasestr(hit + length, model->search)) {
		char *before = strndup(text, (size_t)(hit - text));
		if (!before)
			return;
		cells_style(cells, area, row, column + cells_width(before),
			    cells_width(model->search), STYLE_UNDERLINE);
		free(before);
	}
}

/* The character at a place of the area, in lower case; 0: none, or a half. */
static wint_t char_at(const struct cells *cells, const struct cells_area *area,
		      int row, int column)
{
	row += area->row;
	column += area->column;
	if (row >= cells->rows || column >= cells->columns)
		return 0;
	return towlower(
		(wint_t)cells->cell[(long)row * cells->columns + column].ch);
}

void view_mark_found(struct cells *cells, const struct cells_area *area,
		     int row, int column, const struct model *model)
{
	int columns = cells_width(model->search);

	for (; columns && column + columns <= area->columns; column++) {
		const char *rest = model->search;
		int at = column;

		while (*rest) {
			wchar_t want;
			int width;

			rest = cells_next(rest, &want, &width);
			if (width && char_at(cells, area, row, at) !=
					     towlower((wint_t)want))
				break;
			at += width;
		}
		if (at == column + columns)
			cells_style(cells, area, row, column, columns,
				    STYLE_UNDERLINE);
	}
}

void view_cursor(struct cells *cells, const struct cells_area *area,
		 const struct model *model, enum model_pane pane, int top)
{
	const struct model_scroll *scroll = &model->scroll[pane];

	if (model->focus == pane && !scroll->follows)
		cells_style(cells, area, scroll->cursor - top, 0, area->columns,
			    STYLE_REVERSE);
}

int view_lines(struct cells *cells, const struct cells_area *area,
	       const char *text, const struct model *model)
{
	int row = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");
		char *line = strndup(text, length);
		if (!line)
			break;
		cells_text(cells, area, row, 0, 0, line);
		view_mark_search(cells, area, row++, 0, line, model);
		free(line);
		text += length + (text[length] == '\n');
	}
	return row;
}

static void draw_tiny(struct cells *cells)
{
	struct cells_area all = { 0, 0, cells->rows, cells->columns };
	int row = cells->rows > 2 ? (cells->rows - 2) / 2 : 0;

	cells_printf(cells, &all, row, 0, STYLE_BOLD, "%dx%d is too small",
		     cells->columns, cells->rows);
	cells_printf(cells, &all, row + 1, 0, 0, "needs %dx%d; q quits",
		     VIEW_LEAST_COLUMNS, VIEW_LEAST_ROWS);
}

static void draw_step(struct cells *cells, const struct view_plan *plan,
		      struct model *model)
{
	static void (*const part[PANES])(
		struct cells *, const struct view_plan *, struct model *) = {
		[PANE_SOURCE] = view_source, [PANE_GRAPH] = view_graph,
		[PANE_ATTRS] = view_attrs,   [PANE_WORDS] = view_words,
		[PANE_CALLS] = view_calls,   [PANE_OUTPUT] = view_output,
	};

	for (int pane = 0; pane < PANES; pane++) {
		model->length[pane] = 0;
		if (plan->pane[pane].rows > 0)
			part[pane](cells, plan, model);
	}
	view_rules(cells, plan, model);
	view_title(cells, plan, model);
	view_last(cells, plan, model);
}

void view_draw(struct cells *cells, struct model *model)
{
	struct view_plan plan;

	cells_clear(cells);
	view_plan(&plan, model, cells->rows, cells->columns);
	if (plan.tiny) {
		draw_tiny(cells);
		return;
	}
	if (model->screen == SCREEN_MENU || !model->session)
		view_menu(cells, &plan, model);
	else
		draw_step(cells, &plan, model);
	view_message(cells, &plan, model);
	view_keys(cells, &plan, model);
	if (model->help)
		view_help(cells, model);
}
