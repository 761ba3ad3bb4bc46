/* SPDX-License-Identifier: MIT */
/*
 * The changes that events make to a graph, private to common/trace. Each
 * keeps how to take it back. One that could not be kept for want of memory
 * sets `no_memory` of the index; graph_apply() says so.
 */
#ifndef TRACE_GRAPH_CHANGE_H
#define TRACE_GRAPH_CHANGE_H

#include "common/trace/graph_index.h"

/* What follows is of one event. */
void change_event(struct graph *graph);

/* The newest seq that was seen. */
void change_seq(struct graph *graph, unsigned long seq);

/* A new node, being created; without an id and a seq. 0 or ENOMEM. */
int change_add_node(struct graph *graph, enum rules_object type,
		    uint32_t *number);

/* Enters a node with `born` set; gives it its id. 0 or ENOMEM. */
int change_enter_seq(struct graph *graph, uint32_t number);
int change_set_id(struct graph *graph, uint32_t number, const char *id);

/* The state, with the seq of the call that ended it (0: none). Counts. */
void change_state(struct graph *graph, uint32_t number, enum graph_state state,
		  unsigned long died);

/* 0 or ENOMEM. */
int change_attr(struct graph *graph, uint32_t number, const char *name,
		const char *value, unsigned long seq);

/*
 * One reference more from a node to `parent`. No list is touched: only for a
 * node of this event, or after change_parents().
 */
void change_add_parent(struct graph *graph, uint32_t number, uint32_t parent);

/* The node goes into the lists of its parents, and out of them. */
void change_link(struct graph *graph, uint32_t number);
void change_unlink(struct graph *graph, uint32_t number);

/*
 * Replaces the parent of one type of a live node: a window bound to another
 * MR, an MR moved to another PD. GRAPH_NONE: it has none now.
 */
void change_parent(struct graph *graph, uint32_t number, enum rules_object type,
		   uint32_t parent);

/* One refusal more, whose holders it takes; or the last one counts more. */
int change_add_refusal(struct graph *graph, const struct graph_refusal *fresh);
void change_count(struct graph *graph, unsigned long count);

#endif
