/* SPDX-License-Identifier: MIT */
/*
 * What stands around the panes: the title row, and the rules with the panes'
 * names.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/words.h"

/*
 * The device of the newest context, or "". Contexts come before what is made
 * with them: where there is a live one it is not far from the beginning.
 */
static const char *device_name(const struct model *model)
{
	const struct graph *graph = model->graph;
	uint32_t live = graph ? graph->live[RULES_CONTEXT] : 0;
	const struct graph_node *context = NULL;

	for (uint32_t i = 0; graph && i < graph->nodes; i++) {
		if (graph->node[i].type != RULES_CONTEXT)
			continue;
		context = &graph->node[i];
		if (context->state == GRAPH_LIVE && --live == 0)
			break;
	}
	for (int i = 0; context && i < context->attrs; i++)
		if (!strcmp(context->attr[i].name, "device"))
			return context->attr[i].value;
	return "";
}

void view_title(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	const struct cells_area *area = &plan->title;
	char state[64], place[48];
	int step, steps;

	model_step_count(model, &step, &steps);
	if (steps > 0)
		snprintf(place, sizeof(place), "step %d/%d", step, steps);
	else if (step > 0)
		snprintf(place, sizeof(place), "step %d", step);
	else
		snprintf(place, sizeof(place), "call %zu",
			 model_calls_shown(model));
	model_state_text(model, state, sizeof(state));

	const char *device = device_name(model);
	char *right;
	if (asprintf(&right, "  %s%s%s  %s ", place, *device ? "  " : "",
		     device, state) < 0)
		return;
	int width = cells_width(right);
	struct cells_area left = *area;
	left.columns -= width;
	const struct model_lesson *lesson =
		model->current >= 0 && model->current < model->lessons
			? &model->lesson[model->current]
			: NULL;
	int used = cells_text(cells, &left, 0, 1, STYLE_BOLD,
			      lesson           ? lesson->name
			      : model->program ? model->program
					       : "");
	if (lesson && strcmp(lesson->title, lesson->name) != 0)
		cells_text(cells, &left, 0, used + 3, 0, lesson->title);
	cells_text(cells, area, 0, area->columns - width,
		   model_present(model) ? 0 : STYLE_BOLD, right);
	if (model->session->state == SESSION_KILLED && model_present(model))
		cells_style(cells, area, 0,
			    area->columns - cells_width(state) - 1,
			    cells_width(state), STYLE_BOLD | STYLE_BAD);
	cells_style(cells, area, 0, 0, area->columns, STYLE_REVERSE);
	free(right);
}

/* The name of a pane in its rule, in a string the caller frees. */
static char *pane_title(struct model *model, enum model_pane pane)
{
	const struct graph_node *node = model_selected(model);
	const struct event *event = view_placed(model);
	char *title = NULL;
	int rc = 0;

	switch (pane) {
	case PANE_SOURCE:
		if (event && event->func)
			rc = asprintf(&title, "%s: %s()", event->file,
				      event->func);
		else
			rc = asprintf(&title, "%s",
				      event ? event->file : "source");
		break;
	case PANE_GRAPH:
		rc = asprintf(&title, "%s",
			      view_is_over(model) ? "the end" : "objects");
		break;
	case PANE_ATTRS:
		rc = node ? asprintf(&title, "%s %s", node->id,
				     rules_objects[node->type].name)
			  : asprintf(&title, "no object");
		break;
	case PANE_WORDS:
		rc = asprintf(&title, "words");
		break;
	case PANE_CALLS:
		rc = asprintf(&title, "calls");
		break;
	default:
		rc = model->session->lines_lost
			     ? asprintf(&title, "output, %lu older lines lost",
					model->session->lines_lost)
			     : asprintf(&title, "output");
	}
	return rc < 0 ? NULL : title;
}

const char *view_heading(const struct model *model)
{
	const char *id = model_step_id(model);
	const struct words_section *section = NULL;

	if (!id)
		return NULL;
	if (model->current >= 0 && model->current < model->lessons)
		section = words_find(model->lang,
				     model->lesson[model->current].name, id);
	return section ? section->title : id;
}

/*
 * "4-6/12" before `end` when a pane does not show all of its rows. Gives
 * where it begins, else `end`.
 */
static int draw_extent(struct cells *cells, const struct view_plan *plan,
		       const struct model *model, enum model_pane pane, int end)
{
	int rows = plan->pane[pane].rows, length = model->length[pane];
	int top = model->scroll[pane].top;
	char text[48];

	if (length <= rows)
		return end;
	if (top > length - rows)
		top = length - rows;
	if (top < 0)
		top = 0;
	snprintf(text, sizeof(text), " %d-%d/%d ", top + 1, top + rows, length);
	if (end - cells_width(text) < 20)
		return end;
	end -= cells_width(text);
	cells_text(cells, &plan->rule[pane], 0, end, STYLE_DIM, text);
	return end;
}

/* The other parts of the strip, a Tab away. Gives where they begin. */
static int draw_others(struct cells *cells, const struct cells_area *rule,
		       enum model_pane pane)
{
	static const char *const name[PANES] = {
		[PANE_WORDS] = " words ",
		[PANE_CALLS] = " calls ",
		[PANE_OUTPUT] = " output ",
	};
	int end = rule->columns;

	for (int other = PANES - 1; other >= PANE_WORDS && end > 40; other--) {
		if (other == (int)pane)
			continue;
		end -= cells_width(name[other]) + 1;
		cells_text(cells, rule, 0, end, STYLE_DIM, name[other]);
	}
	return end;
}

static void draw_rule(struct cells *cells, const struct view_plan *plan,
		      struct model *model, enum model_pane pane)
{
	struct cells_area all = { 0, 0, cells->rows, cells->columns };
	const struct cells_area *rule = &plan->rule[pane];
	bool focus = model->focus == pane;
	struct cells_area room = *rule;

	cells_hline(cells, &all, rule->row, rule->column - 1,
		    rule->column + rule->columns, STYLE_DIM);
	if (!plan->side && pane >= PANE_WORDS)
		room.columns = draw_others(cells, rule, pane) - 1;
	room.columns = draw_extent(cells, plan, model, pane, room.columns - 1);
	char *title = pane_title(model, pane);
	/* Of a long path the end says most. */
	if (title && cells_width(title) > room.columns - 4) {
		const char *base = view_base(title);
		memmove(title, base, strlen(base) + 1);
	}
	int used = cells_printf(cells, &room, 0, 2,
				focus ? STYLE_BOLD | STYLE_REVERSE : STYLE_BOLD,
				focus ? "[%s]" : " %s ", title ? title : "");
	free(title);
	const char *heading = pane == PANE_WORDS ? view_heading(model) : NULL;
	if (heading)
		cells_printf(cells, &room, 0, 2 + used, STYLE_BOLD, "%s%s ",
			     focus ? " " : "", heading);
}

static bool is_rule(const struct view_plan *plan, int row)
{
	for (int pane = 0; pane < PANES; pane++)
		if (plan->rule[pane].columns > 0 && plan->rule[pane].row == row)
			return true;
	return false;
}

void view_rules(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	struct cells_area all = { 0, 0, cells->rows, cells->columns };

	for (int pane = 0; pane < PANES; pane++) {
		const struct cells_area *area = &plan->pane[pane];
		if (area->column == 0 || plan->rule[pane].columns == 0)
			continue;
		int end = area->row + area->rows;
		cells_vline(cells, &all, area->column - 1, plan->rule[pane].row,
			    is_rule(plan, end) ? end : end - 1, STYLE_DIM);
	}
	for (int pane = 0; pane < PANES; pane++)
		if (plan->rule[pane].columns > 0)
			draw_rule(cells, plan, model, (enum model_pane)pane);
}
