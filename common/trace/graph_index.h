/* SPDX-License-Identifier: MIT */
/*
 * What a graph keeps beside its nodes, private to common/trace: tables that
 * find a node by id and by the seq of its create call, the lists of live
 * children, the texts, the refused destroys.
 */
#ifndef TRACE_GRAPH_INDEX_H
#define TRACE_GRAPH_INDEX_H

#include "common/trace/graph.h"

#define GRAPH_PARENTS 4
#define GRAPH_NONE    UINT32_MAX

/*
 * Lists of live children. An edge is a child and which of its parents:
 * child * GRAPH_PARENTS + slot; so a child is in as many lists as it has
 * parents, and leaves each in constant time.
 */
struct graph_links {
	uint32_t first, last; /* of this node's children: edges */
	uint32_t next[GRAPH_PARENTS], prev[GRAPH_PARENTS];
};

/* Open addressing over numbers of something; no deletion. */
struct graph_table {
	struct graph_slot {
		uint32_t hash, number; /* number GRAPH_NONE: empty */
	} * slot;
	uint32_t size, used; /* size is 0 or a power of two */
};

/* A destroy call that was refused. */
struct graph_refusal {
	uint32_t node;
	int err;
	unsigned long seq, count;
	const char *call, *file; /* in texts; file may be NULL */
	int line;
	char *holders;
};

struct graph_index {
	struct graph_links *links;        /* one per node */
	uint32_t room;                    /* nodes that there is space for */
	struct graph_table by_id, by_seq; /* numbers of nodes */
	/* Each text once: names, values and files repeat a lot. */
	char **text;
	uint32_t texts, texts_room;
	struct graph_table by_text;
	struct graph_refusal *refusal;
	uint32_t refusals, refusals_room;
	unsigned long seq; /* the newest */
};

static inline struct graph_index *graph_index(const struct graph *graph)
{
	return graph->index;
}

/* A node by id or by seq of creation; GRAPH_NONE. */
uint32_t index_find_id(const struct graph *graph, const char *id);
uint32_t index_find_seq(const struct graph *graph, unsigned long seq);

/* Enters a node that has its id, its born. 0 or ENOMEM. */
int index_add_id(struct graph *graph, uint32_t node);
int index_add_seq(struct graph *graph, uint32_t node);

/* A copy of the text that lives as long as the graph; NULL: no memory. */
char *index_text(struct graph *graph, const char *text);

/* Puts `node` into, takes it out of its slot's parent's list, and counts. */
void index_link(struct graph *graph, uint32_t node, int slot);
void index_unlink(struct graph *graph, uint32_t node, int slot);

#endif
