/* SPDX-License-Identifier: MIT */
/*
 * A layout: tries, from the most detailed to the most aggregated, until one
 * fits the plane.
 */
#include "tui/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tui/layout_parts.h"

#define ROWS_MOST (1 << 20) /* no end to the rows of a rank */

/*
 * How many of a kind stand alone, and how many rows a rank may take. Two rows
 * of few objects tell more than one box for all, so they come first; at last
 * there is no end to the rows.
 */
static const struct attempt {
	uint32_t limit;
	int subs;
} attempts[] = {
	{ 8, 1 }, { 6, 1 }, { 4, 1 }, { 4, 2 },         { 3, 2 },
	{ 2, 2 }, { 1, 2 }, { 4, 4 }, { 1, ROWS_MOST },
};

/* Whole types one by one: those take as many rows as they need. */
static bool any_expanded(const struct plan *plan)
{
	for (int type = 0; plan->expanded && type < RULES_OBJECTS; type++) {
		if (plan->expanded[type] && plan->graph->live[type])
			return true;
	}
	return false;
}

static void forget_lines(struct layout *layout)
{
	free(layout->line);
	layout->line = NULL;
	layout->lines = layout->unrouted = 0;
}

static int attempt(struct plan *plan, struct layout *layout)
{
	int err = layout_group(plan);

	if (!err)
		err = layout_place(plan);
	if (!err)
		err = layout_route(plan, layout);
	return err;
}

static int find_layout(struct plan *plan, struct layout *layout)
{
	size_t count = sizeof(attempts) / sizeof(*attempts);
	bool expanded = any_expanded(plan);
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		bool last = i + 1 == count;

		plan->limit = attempts[i].limit;
		plan->subs_most = attempts[i].subs;
		if (expanded)
			plan->subs_most = ROWS_MOST;
		forget_lines(layout);
		err = attempt(plan, layout);
		if (err == ENOMEM || (!err && (last || !layout->unrouted)))
			break;
	}
	return err;
}

/* The extent of everything drawn. */
static void measure(struct layout *layout)
{
	for (int i = 0; i < layout->boxes; i++) {
		const struct layout_box *box = &layout->box[i];

		if (box->row >= layout->rows)
			layout->rows = box->row + 1;
		if (box->column + box->width > layout->columns)
			layout->columns = box->column + box->width;
	}
	for (int i = 0; i < layout->lines; i++) {
		const struct layout_line *line = &layout->line[i];
		int end = line->column + (line->vertical ? 1 : line->length);

		if (end > layout->columns)
			layout->columns = end;
	}
}

/* The places that are to be seen become boxes. */
static int make_boxes(struct plan *plan, struct layout *layout)
{
	uint32_t *box_of = malloc(((size_t)plan->places + 1) * sizeof(*box_of));

	layout->box = calloc((size_t)plan->places + 1, sizeof(*layout->box));
	if (!layout->box || !box_of) {
		free(box_of);
		return ENOMEM;
	}
	for (int i = 0; i < plan->places; i++) {
		const struct place *place = &plan->place[i];

		box_of[i] = LAYOUT_NONE;
		if (place->hidden)
			continue;
		box_of[i] = (uint32_t)layout->boxes;
		struct layout_box *box = &layout->box[layout->boxes++];
		box->node = place->node;
		box->count = place->count;
		box->row = place->row;
		box->column = place->column;
		box->width = (int)strlen(place->label);
		strcpy(box->label, place->label);
	}
	for (uint32_t i = 0; i < plan->graph->nodes; i++) {
		if (layout->box_of[i] != LAYOUT_NONE)
			layout->box_of[i] = box_of[layout->box_of[i]];
	}
	free(box_of);
	return 0;
}

int layout_graph(struct layout *layout, const struct graph *graph, int rows,
		 int columns, const bool expanded[RULES_OBJECTS],
		 unsigned long ghosts_from)
{
	struct plan plan = {
		.graph = graph,
		.expanded = expanded,
		.ghosts_from = ghosts_from,
		.columns = columns > 0 ? columns : 1,
	};

	(void)rows; /* what does not fit is scrolled to */
	*layout = (struct layout){ 0 };
	layout->box_of = malloc((graph->nodes + 1ul) * sizeof(uint32_t));
	if (!layout->box_of)
		return ENOMEM;
	plan.place_of = layout->box_of;
	int err = find_layout(&plan, layout);
	if (!err)
		err = make_boxes(&plan, layout);
	if (!err)
		measure(layout);
	free(plan.place);
	return err;
}

void layout_free(struct layout *layout)
{
	free(layout->box);
	free(layout->line);
	free(layout->box_of);
	*layout = (struct layout){ 0 };
}
