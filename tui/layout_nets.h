/* SPDX-License-Identifier: MIT */
/*
 * What the finding of columns (layout_pins.c) and the drawing of buses
 * (layout_route.c) share. For nobody else.
 */
#ifndef TUI_LAYOUT_NETS_H
#define TUI_LAYOUT_NETS_H

#include "tui/layout_parts.h"

struct net {
	int place;       /* the parent */
	int first, last; /* rows of the parent and of the lowest child */
	bool cut;        /* no way further down was found */
	int top;         /* the column where it enters the channel */
	int low, high;   /* its columns in the channel */
	int bottoms;     /* lines that leave the channel downwards */
	int track;
};

struct pin {
	int net, column;
	bool top;
	int place; /* the box it ends in; -1: a trunk, or from above */
};

struct routing {
	const struct plan *plan;
	struct layout *layout;
	int columns;
	struct net *net;
	int nets;
	int *net_of; /* of each place; -1 */
	/* Of the channel at work: */
	int *active; /* nets in it, from the upper track to the lower */
	int actives;
	struct pin *pin;
	int pins;
	int *owner;  /* of each column: net + 1; 0: nobody */
	bool *taken; /* columns that the boxes of the lower row keep */
	int lines_room;
};

/* Finds the columns of every net in the channel below `row`. */
void layout_find_pins(struct routing *routing, int row);

/* Takes the nets that have children further down through the next row. */
void layout_find_trunks(struct routing *routing, int row);

#endif
