/* SPDX-License-Identifier: MIT */
/*
 * The steps of a layout, private to tui/layout*.c: nodes into boxes, boxes to
 * places, lines between them.
 */
#ifndef TUI_LAYOUT_PARTS_H
#define TUI_LAYOUT_PARTS_H

#include "tui/layout.h"

#define LAYOUT_LEVELS  4
#define LAYOUT_PARENTS 4
#define LAYOUT_GAP     2 /* columns between places, where lines pass */
#define LAYOUT_NONE    UINT32_MAX

/* A box before it is one. Hidden ones only keep their place taken. */
struct place {
	uint32_t node; /* the first of `count` */
	uint32_t count;
	uint32_t dependents; /* of all of them */
	bool hidden;
	bool mixed;                 /* QPs in several states */
	int parent[LAYOUT_PARENTS]; /* places, each once */
	int parents;
	int level, sub; /* rank, and which row of the rank */
	int row;        /* of all rows of boxes, from 0 */
	int column;
	int width; /* what is kept free for it */
	int base;  /* the part of it that is always drawn */
	char label[32];
};

struct plan {
	const struct graph *graph;
	const bool *expanded;
	unsigned long ghosts_from;
	int columns;
	uint32_t limit;      /* more than that of a kind are one box */
	int subs_most;       /* rows that a rank may take */
	struct place *place; /* by level, then in order of creation */
	int places, room;
	uint32_t *place_of; /* of each node; LAYOUT_NONE */
	int rows;           /* of boxes */
};

int layout_level(enum rules_object type);

/* Fills plan->place with boxes that have no position yet. 0 or ENOMEM. */
int layout_group(struct plan *plan);

/* Gives them positions. 0, ENOMEM, or ENOSPC when they do not fit. */
int layout_place(struct plan *plan);

/*
 * Draws the lines, which decides how far apart the rows stand: fills the
 * layout but for its boxes' labels. 0 or ENOMEM.
 */
int layout_route(struct plan *plan, struct layout *layout);

#endif
