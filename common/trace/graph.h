/* SPDX-License-Identifier: MIT */
/*
 * The object graph: a pure fold over events. Its edges are the references of
 * rules.h and nothing else. Going back in time is folding fewer events.
 * Not thread-safe: one graph, one thread.
 */
#ifndef TRACE_GRAPH_H
#define TRACE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/rules/rules.h"
#include "common/trace/event.h"

enum graph_state {
	GRAPH_CREATING, /* its create call was entered and has not returned */
	GRAPH_LIVE,
	GRAPH_DESTROYED,
	GRAPH_LEAKED, /* context closed, or program ended, before it */
	GRAPH_FAILED, /* its create call was refused: no id, a ghost */
};

/* A value that a call reported of an object, the newest of each name. */
struct graph_attr {
	char *name; /* "lkey", "cap.max_send_wr", "state" */
	char *value;
	unsigned long seq; /* the call that reported it */
};

struct graph_node {
	char id[24]; /* "qp0"; a failed creation: "qp?" */
	enum rules_object type;
	enum graph_state state;
	/* Indexes into graph.node: what it was made with. */
	uint32_t parent[4];
	int parents;
	/* How many live objects hold it: destroying it would be refused. */
	uint32_t dependents;
	struct graph_attr *attr;
	int attrs;
	char *file; /* where it was made; NULL: unknown */
	int line;
	unsigned long born, died; /* seq of its calls; 0: not yet */
};

struct graph {
	struct graph_node *node; /* in order of creation */
	uint32_t nodes;
	uint32_t live[RULES_OBJECTS]; /* live objects of each type */
	void *index; /* private to graph.c */
};

struct graph *graph_new(void);
void graph_free(struct graph *graph);

/*
 * Folds one event in. 0; or a positive errno: ENOMEM, or EPROTO when the
 * event names an object that cannot be (it is then ignored). BYE marks
 * everything live as leaked.
 */
int graph_apply(struct graph *graph, const struct event *event);

/* The node of an id, or NULL. A "creating" or "failed" node has none. */
const struct graph_node *graph_find(const struct graph *graph, const char *id);

/* Live and something holds it. */
static inline bool graph_busy(const struct graph_node *node)
{
	return node->state == GRAPH_LIVE && node->dependents > 0;
}

/* The errno that destroying the node now would be answered with; 0: done. */
int graph_destroy_answer(const struct graph *graph,
			 const struct graph_node *node);

/*
 * The live children that hold `node`, as "mr0, qp0" cut to `most` names and
 * "...". A string the caller frees; "" when nothing does.
 */
char *graph_holders(const struct graph *graph, const struct graph_node *node,
		    int most);

/* Mark of a state: "+" creating, "" live, "x", "L", "E"; busy: "!n". */
void graph_mark(const struct graph_node *node, char *out, size_t size);

/* The whole graph as DOT, as JSON, as an indented tree. 0 or -1, errno. */
int graph_dot(const struct graph *graph, FILE *out);
int graph_json(const struct graph *graph, FILE *out);
int graph_tree(const struct graph *graph, FILE *out);

/*
 * What was left alive, and which destroy calls were refused and why, a line
 * each; nothing when all is well. Returns how many objects leaked.
 */
uint32_t graph_report(const struct graph *graph, FILE *out);

#endif
