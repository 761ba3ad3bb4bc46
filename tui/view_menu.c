/* SPDX-License-Identifier: MIT */
/*
 * The menu of lessons, and the help that lies over everything.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/words.h"
#include "tui/keys.h"

/* What the chapter of a lesson says first. */
static const struct words_section *opening(const struct model *model,
					   const char *lesson)
{
	const struct words_section *found = NULL;

	for (int i = 0; i < words_sections_count; i++) {
		const struct words_section *section = &words_sections[i];
		if (strcmp(section->lesson, lesson) != 0)
			continue;
		if (!strcmp(section->lang, model->lang))
			return section;
		if (!found && !strcmp(section->lang, "en"))
			found = section;
	}
	return found;
}

static void draw_lesson(struct cells *cells, const struct cells_area *area,
			int row, const struct model_lesson *lesson, bool here)
{
	unsigned int style = lesson->path ? 0 : STYLE_DIM;

	cells_text(cells, area, row, 1, STYLE_BOLD, here ? ">" : " ");
	cells_printf(cells, area, row, 3, style | STYLE_BOLD, "%s",
		     lesson->name);
	int column = 18 + cells_printf(cells, area, row, 18, style, "%s%s",
				       lesson->title,
				       lesson->path ? "" : "  (not built)");
	if (lesson->done)
		cells_text(cells, area, row, column, STYLE_BOLD | STYLE_GOOD,
			   "  done");
	if (here)
		cells_style(cells, area, row, 0, area->columns, STYLE_REVERSE);
}

static void draw_opening(struct cells *cells, const struct cells_area *area,
			 const struct model *model)
{
	const struct words_section *section =
		opening(model, model->lesson[model->menu].name);
	struct cells_area all = { 0, 0, cells->rows, cells->columns };

	if (!section || area->rows < 3)
		return;
	cells_hline(cells, &all, area->row, 0, all.columns - 1, STYLE_DIM);
	cells_printf(cells, area, 0, 1, STYLE_BOLD, " %s ", section->title);
	int columns = area->columns - 2;
	char *text = words_render(section, columns < VIEW_PROSE_COLUMNS
						   ? columns
						   : VIEW_PROSE_COLUMNS);
	struct cells_area words = { area->row + 1, area->column + 1,
				    area->rows - 1, area->columns - 1 };
	if (text)
		view_lines(cells, &words, text, model);
	free(text);
}

void view_menu(struct cells *cells, const struct view_plan *plan,
	       struct model *model)
{
	int end = plan->message.row, rows = model->lessons;
	struct cells_area list = { 2, 0, end - 2, cells->columns };

	cells_text(cells, &plan->title, 0, 1, STYLE_BOLD, "Verbstep");
	cells_text(cells, &plan->title, 0, 11, 0,
		   "RDMA verbs, one call at a time");
	cells_style(cells, &plan->title, 0, 0, plan->title.columns,
		    STYLE_REVERSE);
	if (rows == 0) {
		cells_text(cells, &list, 0, 1, 0, "No lesson was found.");
		return;
	}
	/* Where they do not all fit, those around the cursor. */
	int top = 0;
	if (rows > list.rows && model->menu >= list.rows)
		top = model->menu - list.rows + 1;
	for (int row = 0; row < list.rows && top + row < rows; row++)
		draw_lesson(cells, &list, row, &model->lesson[top + row],
			    top + row == model->menu);
	if (model->menu < 0 || model->menu >= rows)
		return;
	struct cells_area below = { 3 + rows, 0, end - 3 - rows,
				    cells->columns };
	draw_opening(cells, &below, model);
}

void view_help(struct cells *cells, const struct model *model)
{
	struct cells_area all = { 0, 0, cells->rows, cells->columns };
	int keys = 0, words = 0;

	(void)model;
	for (int i = 0; i < keys_help_count; i++) {
		int key = cells_width(keys_help[i].key);
		int word = cells_width(keys_help[i].does);
		keys = key > keys ? key : keys;
		words = word > words ? word : words;
	}
	int columns = keys + words + 6, rows = keys_help_count + 2;
	if (columns > all.columns)
		columns = all.columns;
	if (rows > all.rows - 1)
		rows = all.rows - 1;
	struct cells_area box = { (all.rows - rows) / 2,
				  (all.columns - columns) / 2, rows, columns };
	cells_fill(cells, &box);
	cells_hline(cells, &box, 0, 0, columns - 1, 0);
	cells_hline(cells, &box, rows - 1, 0, columns - 1, 0);
	cells_vline(cells, &box, 0, 0, rows - 1, 0);
	cells_vline(cells, &box, columns - 1, 0, rows - 1, 0);
	cells_text(cells, &box, 0, 2, STYLE_BOLD, " Keys ");
	cells_text(cells, &box, rows - 1, 2, 0, " Esc closes ");
	struct cells_area text = { box.row + 1, box.column + 2, rows - 2,
				   columns - 3 };
	for (int i = 0; i < keys_help_count; i++) {
		cells_text(cells, &text, i, 0, STYLE_BOLD, keys_help[i].key);
		cells_text(cells, &text, i, keys + 2, 0, keys_help[i].does);
	}
}
