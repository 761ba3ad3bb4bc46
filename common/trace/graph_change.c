/* SPDX-License-Identifier: MIT */
/*
 * Changes of a graph, and the way back. Taken back are always the newest, so
 * that each finds the graph as it left it: what was added last stands last.
 */
#include "common/trace/graph_change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ATTRS_MOST 512 /* names of attributes that one object may have */
#define NODES_MOST (GRAPH_NONE / GRAPH_PARENTS)

/* --- keeping -------------------------------------------------------------- */

static void keep(struct graph *graph, const struct graph_change *change)
{
	struct graph_index *index = graph_index(graph);

	if (index->changes == index->changes_room) {
		size_t room =
			index->changes_room ? index->changes_room * 2 : 256;
		struct graph_change *grown =
			realloc(index->change, room * sizeof(*grown));

		if (!grown) {
			index->no_memory = true;
			return;
		}
		index->change = grown;
		index->changes_room = room;
	}
	index->change[index->changes++] = *change;
	index->done = index->changes;
}

static void keep_of(struct graph *graph, enum graph_change_kind kind,
		    uint32_t number)
{
	keep(graph,
	     &(struct graph_change){ .kind = (uint8_t)kind, .node = number });
}

void change_event(struct graph *graph)
{
	keep(graph, &(struct graph_change){ .kind = CHANGE_EVENT,
					    .seq = graph_index(graph)->seq });
}

void change_seq(struct graph *graph, unsigned long seq)
{
	if (seq > graph_index(graph)->seq)
		graph_index(graph)->seq = seq;
}

/* --- nodes ---------------------------------------------------------------- */

/* Space for one node more. */
static int grow(struct graph *graph)
{
	struct graph_index *index = graph_index(graph);
	uint32_t room = index->room ? index->room * 2 : 16;

	if (graph->nodes < index->room)
		return 0;
	if (room > NODES_MOST)
		return ENOMEM;
	struct graph_node *node =
		realloc(graph->node, room * sizeof(*graph->node));
	if (!node)
		return ENOMEM;
	graph->node = node;
	struct graph_links *links =
		realloc(index->links, room * sizeof(*index->links));
	if (!links)
		return ENOMEM;
	index->links = links;
	index->room = room;
	return 0;
}

static void no_id(struct graph_node *node)
{
	snprintf(node->id, sizeof(node->id), "%s?",
		 rules_objects[node->type].prefix);
}

int change_add_node(struct graph *graph, enum rules_object type,
		    uint32_t *number)
{
	struct graph_index *index = graph_index(graph);
	int err = grow(graph);

	if (err)
		return err;
	*number = graph->nodes++;
	index->made = graph->nodes;
	struct graph_node *node = &graph->node[*number];
	*node = (struct graph_node){ .type = type, .state = GRAPH_CREATING };
	index->links[*number] =
		(struct graph_links){ .first = GRAPH_NONE, .last = GRAPH_NONE };
	no_id(node);
	keep_of(graph, CHANGE_NODE, *number);
	return 0;
}

int change_enter_seq(struct graph *graph, uint32_t number)
{
	int err = index_add_seq(graph, number);

	if (!err)
		keep_of(graph, CHANGE_SEQ, number);
	return err;
}

int change_set_id(struct graph *graph, uint32_t number, const char *id)
{
	const char *text = index_text(graph, id);
	int err;

	if (!text)
		return ENOMEM;
	strcpy(graph->node[number].id, id);
	err = index_add_id(graph, number);
	if (err) {
		no_id(&graph->node[number]);
		return err;
	}
	keep(graph, &(struct graph_change){
			    .kind = CHANGE_ID, .node = number, .id = text });
	return 0;
}

static void set_state(struct graph *graph, uint32_t number,
		      enum graph_state state, unsigned long died)
{
	struct graph_node *node = &graph->node[number];

	graph->live[node->type] -= node->state == GRAPH_LIVE;
	graph->live[node->type] += state == GRAPH_LIVE;
	node->state = state;
	node->died = died;
}

void change_state(struct graph *graph, uint32_t number, enum graph_state state,
		  unsigned long died)
{
	const struct graph_node *node = &graph->node[number];

	keep(graph, &(struct graph_change){ .kind = CHANGE_STATE,
					    .node = number,
					    .state = node->state,
					    .died = node->died });
	set_state(graph, number, state, died);
}

int change_attr(struct graph *graph, uint32_t number, const char *name,
		const char *value, unsigned long seq)
{
	struct graph_node *node = &graph->node[number];
	struct graph_attr *attr = node->attr;
	struct graph_change change = { .kind = CHANGE_NEW, .node = number };
	int i = 0;

	while (i < node->attrs && strcmp(attr[i].name, name))
		i++;
	if (i == ATTRS_MOST)
		return 0;
	if (i == node->attrs && (i == 0 || (i >= 4 && (i & (i - 1)) == 0))) {
		size_t room = i ? (size_t)i * 2 : 4;
		attr = realloc(attr, room * sizeof(*attr));
		if (!attr)
			return ENOMEM;
		node->attr = attr;
	}
	struct graph_attr fresh = { .name = index_text(graph, name),
				    .value = index_text(graph, value),
				    .seq = seq };
	if (!fresh.name || !fresh.value)
		return ENOMEM;
	if (i < node->attrs) {
		change.kind = CHANGE_ATTR;
		change.at = (uint16_t)i;
		change.attr = attr[i];
	}
	attr[i] = fresh;
	node->attrs += i == node->attrs;
	keep(graph, &change);
	return 0;
}

/* --- edges ---------------------------------------------------------------- */

void change_add_parent(struct graph *graph, uint32_t number, uint32_t parent)
{
	struct graph_node *node = &graph->node[number];

	for (int i = 0; i < node->parents; i++) {
		if (node->parent[i] == parent) {
			if (node->refs[i] < UINT8_MAX)
				node->refs[i]++;
			return;
		}
	}
	if (node->parents == GRAPH_PARENTS)
		return;
	node->parent[node->parents] = parent;
	node->refs[node->parents++] = 1;
}

void change_link(struct graph *graph, uint32_t number)
{
	const struct graph_links *links = &graph_index(graph)->links[number];

	for (int i = 0; i < graph->node[number].parents; i++) {
		keep(graph, &(struct graph_change){ .kind = CHANGE_LINK,
						    .node = number,
						    .slot = (uint8_t)i,
						    .next = links->next[i],
						    .prev = links->prev[i] });
		index_link(graph, number, i);
	}
}

void change_unlink(struct graph *graph, uint32_t number)
{
	for (int i = 0; i < graph->node[number].parents; i++) {
		keep(graph, &(struct graph_change){ .kind = CHANGE_UNLINK,
						    .node = number,
						    .slot = (uint8_t)i });
		index_unlink(graph, number, i);
	}
}

static struct graph_parents parents_of(const struct graph_node *node)
{
	struct graph_parents parents = { .parents = node->parents };

	memcpy(parents.parent, node->parent, sizeof(parents.parent));
	memcpy(parents.refs, node->refs, sizeof(parents.refs));
	return parents;
}

static void set_parents(struct graph_node *node,
			const struct graph_parents *parents)
{
	memcpy(node->parent, parents->parent, sizeof(node->parent));
	memcpy(node->refs, parents->refs, sizeof(node->refs));
	node->parents = parents->parents;
}

void change_parent(struct graph *graph, uint32_t number, enum rules_object type,
		   uint32_t parent)
{
	struct graph_node *node = &graph->node[number];
	int kept = 0;

	change_unlink(graph, number);
	keep(graph, &(struct graph_change){ .kind = CHANGE_PARENTS,
					    .node = number,
					    .parents = parents_of(node) });
	for (int i = 0; i < node->parents; i++) {
		if (graph->node[node->parent[i]].type == type)
			continue;
		node->parent[kept] = node->parent[i];
		node->refs[kept++] = node->refs[i];
	}
	node->parents = kept;
	if (parent != GRAPH_NONE)
		change_add_parent(graph, number, parent);
	change_link(graph, number);
}

/* --- refusals ------------------------------------------------------------- */

int change_add_refusal(struct graph *graph, const struct graph_refusal *fresh)
{
	struct graph_index *index = graph_index(graph);

	if (index->refusals == index->refusals_room) {
		uint32_t room =
			index->refusals_room ? index->refusals_room * 2 : 8;
		struct graph_refusal *grown =
			realloc(index->refusal, room * sizeof(*grown));
		if (!grown)
			return ENOMEM;
		index->refusal = grown;
		index->refusals_room = room;
	}
	index->refusal[index->refusals++] = *fresh;
	index->refused = index->refusals;
	keep_of(graph, CHANGE_REFUSAL, fresh->node);
	return 0;
}

void change_count(struct graph *graph, unsigned long count)
{
	struct graph_index *index = graph_index(graph);

	index->refusal[index->refusals - 1].count += count;
	keep(graph,
	     &(struct graph_change){ .kind = CHANGE_COUNT, .count = count });
}

/* --- back and forth ------------------------------------------------------- */

/* What the change holds and what the graph has change places. */
static void swap(struct graph *graph, struct graph_change *change)
{
	struct graph_node *node = &graph->node[change->node];
	struct graph_change now = *change;

	switch (change->kind) {
	case CHANGE_EVENT:
		now.seq = graph_index(graph)->seq;
		graph_index(graph)->seq = change->seq;
		break;
	case CHANGE_STATE:
		now.state = node->state;
		now.died = node->died;
		set_state(graph, change->node, change->state, change->died);
		break;
	case CHANGE_ATTR:
		now.attr = node->attr[change->at];
		node->attr[change->at] = change->attr;
		break;
	default:
		now.parents = parents_of(node);
		set_parents(node, &change->parents);
		break;
	}
	*change = now;
}

static void take_back(struct graph *graph, struct graph_change *change)
{
	struct graph_index *index = graph_index(graph);
	struct graph_links *links = &index->links[change->node];

	switch (change->kind) {
	case CHANGE_NODE:
		graph->nodes--;
		break;
	case CHANGE_SEQ:
		index_drop_seq(graph, change->node);
		break;
	case CHANGE_ID:
		index_drop_id(graph, change->node);
		no_id(&graph->node[change->node]);
		break;
	case CHANGE_NEW:
		graph->node[change->node].attrs--;
		break;
	case CHANGE_LINK:
		index_unlink(graph, change->node, change->slot);
		links->next[change->slot] = change->next;
		links->prev[change->slot] = change->prev;
		break;
	case CHANGE_UNLINK:
		index_relink(graph, change->node, change->slot);
		break;
	case CHANGE_REFUSAL:
		index->refusals--;
		break;
	case CHANGE_COUNT:
		index->refusal[index->refusals - 1].count -= change->count;
		break;
	default:
		swap(graph, change);
	}
}

static void do_again(struct graph *graph, struct graph_change *change)
{
	struct graph_index *index = graph_index(graph);

	switch (change->kind) {
	case CHANGE_NODE:
		graph->nodes++;
		break;
	case CHANGE_SEQ:
		index_add_seq(graph, change->node);
		break;
	case CHANGE_ID:
		strcpy(graph->node[change->node].id, change->id);
		index_add_id(graph, change->node);
		break;
	case CHANGE_NEW:
		graph->node[change->node].attrs++;
		break;
	case CHANGE_LINK:
		index_link(graph, change->node, change->slot);
		break;
	case CHANGE_UNLINK:
		index_unlink(graph, change->node, change->slot);
		break;
	case CHANGE_REFUSAL:
		index->refusals++;
		break;
	case CHANGE_COUNT:
		index->refusal[index->refusals - 1].count += change->count;
		break;
	default:
		swap(graph, change);
	}
}

bool graph_back(struct graph *graph)
{
	struct graph_index *index = graph_index(graph);

	if (!index->done || index->no_memory)
		return false;
	do
		take_back(graph, &index->change[--index->done]);
	while (index->change[index->done].kind != CHANGE_EVENT);
	return true;
}

bool graph_forth(struct graph *graph)
{
	struct graph_index *index = graph_index(graph);

	if (index->done == index->changes || index->no_memory)
		return false;
	do
		do_again(graph, &index->change[index->done++]);
	while (index->done < index->changes &&
	       index->change[index->done].kind != CHANGE_EVENT);
	return true;
}
