/* SPDX-License-Identifier: MIT */
/*
 * Where the objects of a graph stand on a plane of `columns`: rank fixed by
 * type, order fixed at creation so that nothing jumps, one bus per parent.
 * A pure function, no curses, no cells.
 */
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include "common/trace/graph.h"

/* One box: a node, or `count` nodes of one type and parents ("mr x512"). */
struct layout_box {
	uint32_t node; /* the first node it stands for */
	uint32_t count;
	int row, column, width; /* in characters; a box is one row high */
	char label[32]; /* "[pd0 !2]" */
};

/* A line segment: from == to is a point where lines meet. */
struct layout_line {
	int row, column; /* the upper or left end */
	int length; /* in cells, >= 1 */
	bool vertical;
};

struct layout {
	struct layout_box *box;
	int boxes;
	struct layout_line *line;
	int lines;
	int rows, columns; /* the extent used */
};

/*
 * Lays out `graph` for a plane `columns` wide and about `rows` high (more
 * rows than that are for scrolling). Types whose `expanded` is true are shown one by
 * one. Destroyed and failed nodes are shown while their last seq is
 * >= `ghosts_from`. 0 or ENOMEM; ends with layout_free().
 */
int layout_graph(struct layout *layout, const struct graph *graph, int rows,
		 int columns, const bool expanded[RULES_OBJECTS],
		 unsigned long ghosts_from);
void layout_free(struct layout *layout);

#endif
