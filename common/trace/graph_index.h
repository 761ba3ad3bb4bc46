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

/* Open addressing over numbers of something. */
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

enum graph_change_kind {
	CHANGE_EVENT,  /* what follows is of one event; `seq` before it */
	CHANGE_NODE,   /* the node came, with its parents and place */
	CHANGE_SEQ,    /* it went into the table of seqs */
	CHANGE_ID,     /* it got its id */
	CHANGE_STATE,  /* the state, and died, that it does not have now */
	CHANGE_NEW,    /* an attribute was added */
	CHANGE_ATTR,   /* one was replaced: by this, or this by it */
	CHANGE_LINK,   /* an edge went into a list; what it pointed to before */
	CHANGE_UNLINK, /* an edge left its list, and still knows its place */
	CHANGE_PARENTS, /* the parents that the node does not have now */
	CHANGE_REFUSAL, /* a refusal was added */
	CHANGE_COUNT,   /* the last one counts more */
};

struct graph_parents {
	uint32_t parent[GRAPH_PARENTS];
	uint8_t refs[GRAPH_PARENTS];
	int parents;
};

/*
 * One change of a graph, to be taken back and done again. Most hold what the
 * graph does not have now: both ways they change places.
 */
struct graph_change {
	uint8_t kind, slot; /* slot: of the edge */
	uint16_t at;        /* of the attribute */
	uint32_t node;
	union {
		unsigned long seq, count;
		const char *id;
		struct {
			enum graph_state state;
			unsigned long died;
		};
		struct graph_attr attr;
		struct {
			uint32_t next, prev;
		};
		struct graph_parents parents;
	};
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
	uint32_t refused;  /* refusals that there are, with those taken back */
	unsigned long seq; /* the newest */
	/*
	 * Every change since the beginning: the first `done` of them are in the
	 * graph, the others were taken back. What those made stays where it
	 * was, behind the counts.
	 */
	struct graph_change *change;
	size_t changes, done, changes_room;
	uint32_t made;  /* nodes that there are, with those taken back */
	bool no_memory; /* a change could not be kept: no way back any more */
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

/* Takes one out again that is in. */
void index_drop_id(struct graph *graph, uint32_t node);
void index_drop_seq(struct graph *graph, uint32_t node);

/* A copy of the text that lives as long as the graph; NULL: no memory. */
char *index_text(struct graph *graph, const char *text);

/* Puts `node` into, takes it out of its slot's parent's list, and counts. */
void index_link(struct graph *graph, uint32_t node, int slot);
void index_unlink(struct graph *graph, uint32_t node, int slot);

/* Puts the edge unlinked last back to where it was. */
void index_relink(struct graph *graph, uint32_t node, int slot);

#endif
