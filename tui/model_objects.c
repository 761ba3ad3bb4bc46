/* SPDX-License-Identifier: MIT */
/*
 * Which object the screen looks at, and the objects as a tree.
 */
#include "tui/model.h"

#include <stdlib.h>
#include <string.h>

/* The first argument that is an object, but a context only for want of it. */
static const char *argument_object(const struct event *event)
{
	const char *context = NULL;

	for (int i = 0; i < event->args.count; i++) {
		const char *value = event->args.field[i].value;
		enum rules_object type = rules_object_of_id(value);

		if (type == RULES_CONTEXT && !context)
			context = value;
		else if (type != RULES_NONE && type != RULES_CONTEXT)
			return value;
	}
	return context;
}

static const char *call_object(const struct event *event)
{
	if (event->ret && rules_object_of_id(event->ret) != RULES_NONE)
		return event->ret;
	return argument_object(event);
}

static bool creates(const char *call)
{
	const struct rules_call *row = rules_call_find(call);

	return row && row->effect == RULES_CREATES;
}

const struct graph_node *model_selected(const struct model *model)
{
	const struct event *next = model_next(model);
	const struct graph_node *node = NULL;
	const char *id = NULL;
	size_t calls;

	if (model->selected[0])
		node = graph_find(model->graph, model->selected);
	if (!node && next && next->kind == EVENT_ENTER &&
	    !creates(next->call)) {
		id = argument_object(next);
		node = id ? graph_find(model->graph, id) : NULL;
	}
	calls = model_calls_shown(model);
	for (size_t i = calls; !node && i > 0 && i + 8 > calls; i--) {
		id = call_object(model->session->event[model->call[i - 1]]);
		node = id ? graph_find(model->graph, id) : NULL;
	}
	if (!node && model->graph->nodes)
		node = &model->graph->node[model->graph->nodes - 1];
	return node;
}

/* As layout_graph() has it: the dead are shown as ghosts for one step. */
static bool is_shown(const struct graph_node *node, unsigned long ghosts_from)
{
	if (node->state == GRAPH_DESTROYED || node->state == GRAPH_FAILED)
		return node->died >= ghosts_from || node->born >= ghosts_from;
	return true;
}

/* A node's place below its first parent. */
struct links {
	uint32_t parent, child, last_child, sibling;
	bool shown;
};

#define NO_NODE UINT32_MAX

/* In one pass: with 100,000 objects, touching each takes the time. */
static struct links *link_nodes(const struct graph *graph,
				unsigned long ghosts_from)
{
	struct links *links = malloc(graph->nodes * sizeof(*links));

	if (!links)
		return NULL;
	for (uint32_t i = 0; i < graph->nodes; i++) {
		const struct graph_node *node = &graph->node[i];
		uint32_t parent = node->parents ? node->parent[0] : NO_NODE;

		/* Parents are older: anything else would be a circle. */
		if (parent >= i)
			parent = NO_NODE;
		links[i] = (struct links){ parent, NO_NODE, NO_NODE, NO_NODE,
					   is_shown(node, ghosts_from) };
		if (parent == NO_NODE)
			continue;
		if (links[parent].last_child == NO_NODE)
			links[parent].child = i;
		else
			links[links[parent].last_child].sibling = i;
		links[parent].last_child = i;
	}
	return links;
}

/* The node after `at`, depth first; NO_NODE at the end of its tree. */
static uint32_t next_node(const struct links *links, uint32_t at, int *depth)
{
	if (links[at].child != NO_NODE) {
		++*depth;
		return links[at].child;
	}
	while (at != NO_NODE && links[at].sibling == NO_NODE) {
		at = links[at].parent;
		--*depth;
	}
	return at == NO_NODE ? NO_NODE : links[at].sibling;
}

struct model_tree_row *model_tree(const struct model *model, int *rows)
{
	const struct graph *graph = model->graph;
	unsigned long ghosts_from = model_ghosts_from(model);
	struct model_tree_row *row;
	struct links *links;

	*rows = 0;
	if (!graph->nodes)
		return NULL;
	row = malloc(graph->nodes * sizeof(*row));
	links = link_nodes(graph, ghosts_from);
	if (!row || !links) {
		free(row);
		free(links);
		return NULL;
	}
	for (uint32_t root = 0; root < graph->nodes; root++) {
		int depth = 0;

		if (links[root].parent != NO_NODE)
			continue;
		for (uint32_t at = root; at != NO_NODE;
		     at = next_node(links, at, &depth))
			if (links[at].shown)
				row[(*rows)++] =
					(struct model_tree_row){ at, depth };
	}
	free(links);
	return row;
}
