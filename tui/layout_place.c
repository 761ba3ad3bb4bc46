/* SPDX-License-Identifier: MIT */
/*
 * Boxes to places: history played again. Each object, in order of creation,
 * takes the free place nearest to where it would like to be; objects that are
 * gone now, but were there then, count as there.
 */
#include "tui/layout_parts.h"

#include <errno.h>
#include <stdlib.h>

#define WIDE_ENOUGH 72 /* columns; a wider plane is not used up to its edge */

/* One row of boxes: those placed in it, and how much of it is taken. */
struct row {
	int first, last; /* chain of places; -1: none */
	int used;
};

struct placing {
	struct plan *plan;
	struct row *row; /* of one rank */
	int rows, rows_room;
	int *next; /* chain, per place */
	int columns;
};

static const struct graph_node *node_of(const struct plan *plan,
					const struct place *place)
{
	return &plan->graph->node[place->node];
}

/* Was `there` gone before `fresh` came? */
static bool made_room(const struct plan *plan, const struct place *there,
		      const struct place *fresh)
{
	return there->hidden &&
	       node_of(plan, there)->died < node_of(plan, fresh)->born;
}

static bool is_free(const struct placing *placing, const struct row *row,
		    const struct place *fresh, int column)
{
	const struct plan *plan = placing->plan;

	for (int i = row->first; i >= 0; i = placing->next[i]) {
		const struct place *there = &plan->place[i];

		if (column < there->column + there->width + LAYOUT_GAP &&
		    there->column < column + fresh->width + LAYOUT_GAP &&
		    !made_room(plan, there, fresh))
			return false;
	}
	return true;
}

/* Where a box would like to be. */
static int wish(const struct placing *placing, const struct place *place)
{
	const struct plan *plan = placing->plan;
	enum rules_object type = node_of(plan, place)->type;
	int last = placing->columns - place->width, pd = 0, other = -1;

	for (int i = 0; i < place->parents; i++) {
		const struct place *parent = &plan->place[place->parent[i]];

		if (node_of(plan, parent)->type == RULES_PD)
			pd = parent->column;
		else if (node_of(plan, parent)->type == RULES_CQ && other < 0)
			other = parent->column;
	}
	switch (type) {
	case RULES_CONTEXT:
		return last / 2;
	case RULES_CQ:
	case RULES_CHANNEL:
		return last;
	case RULES_QP:
		return other < 0 ? pd : (pd + other) / 2;
	default:
		return pd;
	}
}

/* The free column nearest to `want` in the row, or -1. */
static int nearest(const struct placing *placing, const struct row *row,
		   const struct place *place, int want)
{
	int last = placing->columns - place->width;

	if (row->first < 0 && last < 0)
		return 0; /* too narrow a plane: it passes the edge */
	for (int away = 0; away <= placing->columns; away++) {
		if (want + away <= last && want + away >= 0 &&
		    is_free(placing, row, place, want + away))
			return want + away;
		if (want - away >= 0 && want - away <= last &&
		    is_free(placing, row, place, want - away))
			return want - away;
	}
	return -1;
}

static int add_row(struct placing *placing)
{
	if (placing->rows == placing->rows_room) {
		int room = placing->rows_room ? placing->rows_room * 2 : 4;
		struct row *row =
			realloc(placing->row, (size_t)room * sizeof(*row));
		if (!row)
			return ENOMEM;
		placing->row = row;
		placing->rows_room = room;
	}
	placing->row[placing->rows++] = (struct row){ .first = -1, .last = -1 };
	return 0;
}

static int put(struct placing *placing, int number)
{
	struct place *place = &placing->plan->place[number];
	int want = wish(placing, place);

	for (int r = 0;; r++) {
		if (r == placing->rows) {
			if (r == placing->plan->subs_most)
				return ENOSPC;
			if (add_row(placing))
				return ENOMEM;
		}
		struct row *row = &placing->row[r];
		if (row->used && row->used + place->width > placing->columns)
			continue;
		int column = nearest(placing, row, place, want);
		if (column < 0)
			continue;
		place->column = column;
		place->sub = r;
		placing->next[number] = -1;
		if (row->last >= 0)
			placing->next[row->last] = number;
		else
			row->first = number;
		row->last = number;
		if (!place->hidden)
			row->used += place->width + LAYOUT_GAP;
		return 0;
	}
}

/* Numbers the rows that have boxes to be seen, over all ranks. */
static int number_rows(struct plan *plan)
{
	int subs = 0;

	for (int i = 0; i < plan->places; i++) {
		if (plan->place[i].sub >= subs)
			subs = plan->place[i].sub + 1;
	}
	int *row = malloc(((size_t)subs * LAYOUT_LEVELS + 1) * sizeof(*row));
	if (!row)
		return ENOMEM;
	for (int i = 0; i < subs * LAYOUT_LEVELS; i++)
		row[i] = -1;
	for (int i = 0; i < plan->places; i++) {
		if (!plan->place[i].hidden)
			row[plan->place[i].level * subs + plan->place[i].sub] =
				0;
	}
	plan->rows = 0;
	for (int i = 0; i < subs * LAYOUT_LEVELS; i++) {
		if (row[i] == 0)
			row[i] = plan->rows++;
	}
	for (int i = 0; i < plan->places; i++)
		plan->place[i].row =
			row[plan->place[i].level * subs + plan->place[i].sub];
	free(row);
	return 0;
}

int layout_place(struct plan *plan)
{
	struct placing placing = { .plan = plan, .columns = plan->columns };
	int level = -1, err = 0;

	if (placing.columns > WIDE_ENOUGH)
		placing.columns = WIDE_ENOUGH;
	placing.next = malloc(((size_t)plan->places + 1) * sizeof(int));
	if (!placing.next)
		return ENOMEM;
	for (int i = 0; i < plan->places && !err; i++) {
		if (plan->place[i].level != level) {
			level = plan->place[i].level;
			placing.rows = 0;
		}
		err = put(&placing, i);
	}
	free(placing.next);
	free(placing.row);
	return err ? err : number_rows(plan);
}
