/* SPDX-License-Identifier: MIT */
/*
 * The lower strip: the words of the step, the calls so far, the program's
 * output.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/words.h"

static int count_lines(const char *text)
{
	int lines = 0;

	for (const char *p = text; *p; p++)
		lines += *p == '\n' || !p[1];
	return lines;
}

/* The text behind `lines` lines. */
static const char *skip_lines(const char *text, int lines)
{
	while (lines-- > 0 && *text) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

/* The shown step's section, or NULL; *why then says why there is none. */
static const struct words_section *section_of(const struct model *model,
					      const char **why)
{
	const char *id = model_step_id(model);
	const struct words_section *section = NULL;

	if (model->current < 0)
		*why = "This program is no lesson: there are no words for it. "
		       "a shows its calls.";
	else if (!id)
		*why = "No step yet. Space takes the program to its first "
		       "call, c to its end.";
	else
		*why = "The chapter has no words for this step.";
	if (id && model->current >= 0 && model->current < model->lessons)
		section = words_find(model->lang,
				     model->lesson[model->current].name, id);
	return section;
}

void view_words(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	struct cells_area area = plan->pane[PANE_WORDS];
	const char *why;
	const struct words_section *section = section_of(model, &why);

	area.column += 1;
	area.columns -= 1;
	if (!section) {
		cells_text(cells, &area, 0, 0, STYLE_DIM, why);
		return;
	}
	char *text = words_render(section, area.columns < VIEW_PROSE_COLUMNS
						   ? area.columns
						   : VIEW_PROSE_COLUMNS);
	if (!text) {
		cells_text(cells, &area, 0, 0, STYLE_BOLD, "no memory");
		return;
	}
	int top =
		view_scroll(model, PANE_WORDS, area.rows, count_lines(text), 0);
	view_lines(cells, &area, skip_lines(text, top), model);
	free(text);
}

static void draw_call(struct cells *cells, const struct cells_area *area,
		      int row, const struct event *call, bool shown, bool past,
		      const struct model *model)
{
	char place[128] = "";
	unsigned int style = past       ? STYLE_DIM
			     : call->ok ? 0
					: STYLE_BOLD | STYLE_BAD;
	struct cells_area room = *area;

	if (call->file)
		snprintf(place, sizeof(place), "%s:%d", view_base(call->file),
			 call->line);
	int width = cells_width(place);
	if (width * 3 < area->columns && width > 0) {
		cells_text(cells, area, row, area->columns - width, STYLE_DIM,
			   place);
		room.columns -= width + 2;
	}
	cells_text(cells, area, row, 0, STYLE_BOLD, shown ? ">" : " ");
	int column = 1 + cells_printf(cells, &room, row, 1, STYLE_DIM, "%4lu ",
				      call->seq);
	view_call_text(cells, &room, row, column,
		       style | (shown ? STYLE_BOLD : 0), call);
	view_mark_found(cells, &room, row, column, model);
}

void view_calls(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	const struct cells_area *area = &plan->pane[PANE_CALLS];
	int shown = (int)model_calls_shown(model) - 1;

	if (model->calls == 0) {
		cells_text(cells, area, 0, 1, STYLE_DIM,
			   "No call has returned yet.");
		return;
	}
	struct model_scroll *scroll = &model->scroll[PANE_CALLS];
	if (scroll->follows) {
		/* The shown call is the last row, as in a log. */
		scroll->top = shown - area->rows + 1;
		scroll->cursor = shown < 0 ? 0 : shown;
	}
	int top = view_scroll(model, PANE_CALLS, area->rows, (int)model->calls,
			      shown);
	for (int row = 0;
	     row < area->rows && (size_t)(top + row) < model->calls; row++) {
		const struct event *call =
			model->session->event[model->call[top + row]];
		draw_call(cells, area, row, call, top + row == shown,
			  top + row > shown, model);
	}
	view_cursor(cells, area, model, PANE_CALLS, top);
}

void view_output(struct cells *cells, const struct view_plan *plan,
		 struct model *model)
{
	const struct cells_area *area = &plan->pane[PANE_OUTPUT];
	int lines = (int)model->session->lines;

	if (lines == 0) {
		cells_text(cells, area, 0, 1, STYLE_DIM,
			   "The program has written nothing yet.");
		return;
	}
	if (model->scroll[PANE_OUTPUT].follows)
		model->scroll[PANE_OUTPUT].top = lines - area->rows;
	int top = view_scroll(model, PANE_OUTPUT, area->rows, lines, lines - 1);
	for (int row = 0; row < area->rows && top + row < lines; row++) {
		const char *line = model->session->line[top + row];
		cells_text(cells, area, row, 1, 0, line);
		view_mark_search(cells, area, row, 1, line, model);
	}
	view_cursor(cells, area, model, PANE_OUTPUT, top);
}
