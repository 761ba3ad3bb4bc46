/* SPDX-License-Identifier: MIT */
/*
 * Where the objects of a graph stand on a plane of `columns`: rank fixed by
 * type, order fixed at creation so that nothing jumps, one bus per parent.
 * A pure function, no curses, no cells.
 *
 * Ranks from the top: contexts; PDs and channels; MRs, CQs, SRQs and AHs; MWs
 * and QPs. PDs and what hangs on them start at the left, completion queues
 * and channels at the right. An object takes the free place nearest to where
 * it would like to be when it is made, and keeps it: what is destroyed leaves
 * a gap, for the next one to take. Places have room for the longest mark.
 *
 * Objects of one type, state and parents are drawn one by one while they are
 * few; when they are many or do not fit, as one box ("[mr x512]"). A rank
 * that still does not fit takes several rows.
 */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include "common/trace/graph.h"

/* One box: a node, or `count` nodes of one type and parents ("mr x512"). */
struct layout_box {
	uint32_t node; /* the first node it stands for */
	uint32_t count;
	int row, column, width; /* in characters; a box is one row high */
	char label[32]; /* "[pd0 !2]", "(qp0 RTS)", "[mr x512]"; ASCII */
};

/*
 * A line segment of two cells or more. Ends of segments meet in a corner or a
 * tee; where lines of two buses cross, the horizontal one leaves a gap, or,
 * where there is no room for one, both go through: four arms always are a
 * crossing. Vertical lines start and
 * end in the box they belong to: draw lines first, boxes over them. No line
 * passes a box that it does not belong to.
 */
struct layout_line {
	int row, column; /* the upper or left end */
	int length;      /* in cells, >= 1 */
	bool vertical;
};

struct layout {
	struct layout_box *box;
	int boxes;
	struct layout_line *line;
	int lines;
	int rows, columns; /* the extent used */
	uint32_t *box_of;  /* of each node: its box; UINT32_MAX: not shown */
	int unrouted; /* references for which there was no way to draw a line */
};

/*
 * Lays out `graph` for a plane `columns` wide and about `rows` high (more
 * rows than that are for scrolling). Of types whose `expanded` is true up to
 * 512 of a kind are shown one by one. Destroyed and failed nodes are shown
 * while their last seq is >= `ghosts_from`. Below about 14 columns boxes pass
 * the right edge. 0 or ENOMEM; ends with layout_free(), also after ENOMEM.
 */
int layout_graph(struct layout *layout, const struct graph *graph, int rows,
		 int columns, const bool expanded[RULES_OBJECTS],
		 unsigned long ghosts_from);
void layout_free(struct layout *layout);

#endif
