/* SPDX-License-Identifier: MIT */
/*
 * The object graph: a pure fold over events. Its edges are the references of
 * rules.h and nothing else. Going back in time is folding fewer events: the
 * graph keeps what each has changed, so that this takes as long as they did.
 * Not thread-safe: one graph, one thread.
 *
 * Decisions:
 * - dependents counts references that make a destroy be refused, as the
 *   kernel's and libibverbs' counters do (`users` of "rdma resource show"):
 *   a QP that uses one CQ for sends and receives counts 2 on it, though it is
 *   one edge. A context refuses nothing: it is never busy, however many
 *   children it has.
 * - What the device answers wins over what the rules expect: a destroy that
 *   succeeded has destroyed, a refused one has changed nothing.
 * - An object first seen as an argument was made before the probe looked: it
 *   is live, born is 0 and its place is unknown.
 * - When a context is closed, what was made with it and still lives is
 *   leaked: the program can no longer destroy it.
 * - A bound memory window holds its MR from ibv_bind_mw() on, without waiting
 *   for the completion. Binds that are posted as work requests are not seen:
 *   see graph_unsure().
 * - A completion with an error tells that its QP has left the state it was
 *   in, but not for which: "state" is then "?", until a call reports it,
 *   unless the program had put it into ERR itself.
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

/*
 * A value that a call gave or reported of an object, the newest of each name:
 * arguments and results of its create, modify, resize and query calls. A QP's
 * state is "state", without prefix ("RTS"). Values of ports and GIDs of a
 * context are "port1.state", "port1.gid[0]". A failed creation has "errno".
 */
struct graph_attr {
	char *name; /* "lkey", "cap.max_send_wr", "state" */
	char *value;
	unsigned long seq; /* the call that reported it */
};

struct graph_node {
	char id[24]; /* "qp0"; while it has none, creating or failed: "qp?" */
	enum rules_object type;
	enum graph_state state;
	/* Indexes into graph.node: what it was made with. */
	uint32_t parent[4]; /* each once */
	uint8_t refs[4]; /* references on that parent: 2 for a CQ used twice */
	int parents;
	/* References on it that make destroying it be refused. */
	uint32_t dependents;
	uint32_t children; /* live objects made with it, refusing or not */
	struct graph_attr *attr;
	int attrs;
	char *file; /* where it was made; NULL: unknown */
	int line;
	unsigned long born; /* seq of its create call; 0: before the events */
	/* seq of the call that destroyed, leaked or refused it; 0: not yet */
	unsigned long died;
};

struct graph {
	struct graph_node *node; /* in order of creation */
	uint32_t nodes;
	uint32_t live[RULES_OBJECTS]; /* live objects of each type */
	void *index;                  /* private to graph.c */
};

struct graph *graph_new(void);
void graph_free(struct graph *graph);

/*
 * Folds one event in. 0; or a positive errno: ENOMEM, or EPROTO when the
 * event names an object that cannot be: an id of another type, one that is
 * there already, a seq used twice. It is then ignored. BYE marks everything
 * live as leaked. Constant time per event, amortized; the events may be freed.
 * EBUSY: events were taken back and are not all folded in again.
 */
int graph_apply(struct graph *graph, const struct event *event);

/*
 * Takes the newest event back, one that was ignored too: the graph is as it
 * was before it. False: there is none. graph_forth() folds it in again, without
 * having it; false: none was taken back.
 */
bool graph_back(struct graph *graph);
bool graph_forth(struct graph *graph);

/*
 * The node of an id, or NULL. A "creating" or "failed" node has none. Valid
 * until the next graph_apply().
 */
const struct graph_node *graph_find(const struct graph *graph, const char *id);

/* Live and something holds it. */
static inline bool graph_busy(const struct graph_node *node)
{
	return node->state == GRAPH_LIVE && node->dependents > 0;
}

/*
 * The errno that destroying a live node now would be answered with, by the
 * rules; 0: it would be done. 0 for a node that is not live.
 */
int graph_destroy_answer(const struct graph *graph,
			 const struct graph_node *node);

/*
 * True for a live MR that more may hold than is known: a memory window of its
 * PD, of the type that is bound by work requests. Nothing should be said then
 * of what would hold it or of what destroying it would be answered.
 */
bool graph_unsure(const struct graph *graph, const struct graph_node *node);

/*
 * The live (or leaked) children of `node` in order of creation, as "mr0, qp0"
 * cut to `most` names and "...". For all but a context they are what holds it.
 * A string the caller frees; "" when there is none, NULL when memory is out.
 */
char *graph_holders(const struct graph *graph, const struct graph_node *node,
		    int most);

/*
 * Mark of a state: "+" creating, "" live, "x" destroyed, "L" leaked, "E"
 * failed; busy: "!n" with its dependents.
 */
void graph_mark(const struct graph_node *node, char *out, size_t size);

/* The whole graph as DOT, as JSON, as an indented tree. 0 or -1, errno. */
int graph_dot(const struct graph *graph, FILE *out);
int graph_json(const struct graph *graph, FILE *out);
int graph_tree(const struct graph *graph, FILE *out);

/*
 * What was left alive, and which destroy calls were refused and why, a line
 * each; nothing when all is well. Returns how many objects leaked.
 *   "leaked: mr0, memory region, made at 03_mr.c:61"
 *   "refused: ibv_dealloc_pd(pd0) = EBUSY at 02_pd.c:80, held by mr0; later
 *    destroyed"                                             (in one line)
 */
uint32_t graph_report(const struct graph *graph, FILE *out);

#endif
