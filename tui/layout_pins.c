/* SPDX-License-Identifier: MIT */
/*
 * The columns of a channel: where each net comes in from above, where it goes
 * down to the boxes below, and where its trunk passes between those.
 */
#include "tui/layout_nets.h"

#include <stdlib.h>
#include <string.h>

#define CROWDED 12 /* columns of a detour that a free neighbour is worth */

static void add_pin(struct routing *routing, int net, int column, bool top,
		    int place)
{
	struct net *at = &routing->net[net];

	routing->pin[routing->pins++] = (struct pin){
		.net = net, .column = column, .top = top, .place = place
	};
	routing->owner[column] = net + 1;
	if (top) {
		at->low = at->high = column;
		at->bottoms = 0;
		return;
	}
	at->bottoms++;
	if (column < at->low)
		at->low = column;
	if (column > at->high)
		at->high = column;
}

/* Does a neighbour column belong to another net? */
static bool is_crowded(const struct routing *routing, int net, int column)
{
	int left = column ? routing->owner[column - 1] : 0;
	int right =
		column + 1 < routing->columns ? routing->owner[column + 1] : 0;

	return (left && left != net + 1) || (right && right != net + 1);
}

static bool is_open(const struct routing *routing, int net, int column)
{
	return !routing->owner[column] || routing->owner[column] == net + 1;
}

/* Where the net's trunk passes the lower row: a free column, or -1. */
static int trunk_column(const struct routing *routing, int net, int target)
{
	int best = -1, least = 0;

	for (int column = 0; column < routing->columns; column++) {
		if (routing->taken[column] || !is_open(routing, net, column))
			continue;
		int cost = abs(column - routing->net[net].top) +
			   abs(column - target) +
			   CROWDED * is_crowded(routing, net, column);
		if (best < 0 || cost < least) {
			best = column;
			least = cost;
		}
	}
	return best;
}

/* Where a net enters a box of the lower row from above, or -1. */
static int port_column(const struct routing *routing, int net,
		       const struct place *place)
{
	int best = -1, least = 0;
	int middle = place->column + place->base / 2;
	int from = routing->net[net].top;

	for (int column = place->column;
	     column < place->column + place->base && column < routing->columns;
	     column++) {
		if (!is_open(routing, net, column))
			continue;
		/* Straight down is best; else the middle, or the near side
		 * where several nets share the box. */
		int cost = column == from        ? -100
			   : place->parents == 1 ? abs(column - middle)
						 : abs(column - from);
		cost += CROWDED * is_crowded(routing, net, column);
		cost += 8 * (column == place->column ||
			     column == place->column + place->base - 1);
		if (best < 0 || cost < least) {
			best = column;
			least = cost;
		}
	}
	return best;
}

/* The middle of the net's children below `row`; how many there are. */
static int below(const struct routing *routing, int net, int row, int *target)
{
	const struct plan *plan = routing->plan;
	int count = 0;
	long sum = 0;

	for (int i = routing->net[net].place + 1; i < plan->places; i++) {
		const struct place *child = &plan->place[i];

		if (child->hidden || child->row <= row)
			continue;
		for (int k = 0; k < child->parents; k++) {
			if (child->parent[k] != routing->net[net].place)
				continue;
			sum += child->column + child->base / 2;
			count++;
		}
	}
	*target = count ? (int)(sum / count) : 0;
	return count;
}

static void pins_of_row(struct routing *routing, int row)
{
	const struct plan *plan = routing->plan;

	for (int i = 0; i < plan->places; i++) {
		const struct place *place = &plan->place[i];

		if (place->hidden || place->row != row)
			continue;
		for (int k = 0; k < place->parents; k++) {
			int net = routing->net_of[place->parent[k]];

			if (net < 0 || routing->net[net].cut)
				continue;
			int column = port_column(routing, net, place);
			if (column < 0)
				routing->layout->unrouted++;
			else
				add_pin(routing, net, column, false, i);
		}
	}
}

void layout_find_pins(struct routing *routing, int row)
{
	const struct plan *plan = routing->plan;
	size_t columns = (size_t)routing->columns;

	memset(routing->owner, 0, columns * sizeof(*routing->owner));
	memset(routing->taken, 0, columns * sizeof(*routing->taken));
	routing->pins = routing->actives = 0;
	for (int i = 0; i < plan->places; i++) {
		const struct place *place = &plan->place[i];
		if (place->hidden || place->row != row + 1)
			continue;
		for (int c = place->column;
		     c < place->column + place->width && c < routing->columns;
		     c++)
			routing->taken[c] = true;
	}
	for (int i = 0; i < routing->nets; i++) {
		struct net *net = &routing->net[i];
		if (net->cut || net->first > row || net->last <= row)
			continue;
		if (net->first == row)
			net->top = plan->place[net->place].column +
				   plan->place[net->place].base / 2;
		if (net->top >= routing->columns)
			net->top = routing->columns - 1;
		add_pin(routing, i, net->top, true, -1);
		routing->active[routing->actives++] = i;
	}
	pins_of_row(routing, row + 1);
}

void layout_find_trunks(struct routing *routing, int row)
{
	for (int a = 0; a < routing->actives; a++) {
		struct net *net = &routing->net[routing->active[a]];
		int target, children;

		if (net->last <= row + 1)
			continue;
		children = below(routing, routing->active[a], row + 1, &target);
		int column = trunk_column(routing, routing->active[a], target);
		if (column < 0) {
			net->cut = true;
			routing->layout->unrouted += children;
			continue;
		}
		add_pin(routing, routing->active[a], column, false, -1);
	}
}
