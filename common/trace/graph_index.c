/* SPDX-License-Identifier: MIT */
/* The tables and lists beside a graph's nodes. */
#include "common/trace/graph_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_text(const char *text)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash ^ hash >> 15;
}

static uint32_t hash_number(unsigned long number)
{
	uint64_t hash = number * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> 32);
}

static void insert(struct graph_table *table, struct graph_slot fresh)
{
	uint32_t i = fresh.hash & (table->size - 1);

	while (table->slot[i].number != GRAPH_NONE)
		i = (i + 1) & (table->size - 1);
	table->slot[i] = fresh;
}

/* Adds `number`, growing so that the table stays at most half full. */
static int add(struct graph_table *table, uint32_t hash, uint32_t number)
{
	if (table->used * 2ul >= table->size) {
		struct graph_table grown = { .used = table->used };

		grown.size = table->size ? table->size * 2 : 64;
		grown.slot = malloc(grown.size * sizeof(*grown.slot));
		if (!grown.slot)
			return ENOMEM;
		memset(grown.slot, 0xff, grown.size * sizeof(*grown.slot));
		for (uint32_t i = 0; i < table->size; i++) {
			if (table->slot[i].number != GRAPH_NONE)
				insert(&grown, table->slot[i]);
		}
		free(table->slot);
		*table = grown;
	}
	insert(table, (struct graph_slot){ hash, number });
	table->used++;
	return 0;
}

/* Takes a number out that is in; what stands behind it moves up. */
static void drop(struct graph_table *table, uint32_t hash, uint32_t number)
{
	uint32_t mask = table->size - 1, hole = hash & mask;

	while (table->slot[hole].number != number)
		hole = (hole + 1) & mask;
	for (uint32_t i = (hole + 1) & mask;
	     table->slot[i].number != GRAPH_NONE; i = (i + 1) & mask) {
		uint32_t home = table->slot[i].hash & mask;

		/* It may stand no farther up than where it is looked for. */
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		table->slot[hole] = table->slot[i];
		hole = i;
	}
	table->slot[hole].number = GRAPH_NONE;
	table->used--;
}

/* The text that a table's number stands for. */
static const char *text_of(const struct graph *graph,
			   const struct graph_table *table, uint32_t number)
{
	const struct graph_index *index = graph_index(graph);

	return table == &index->by_id ? graph->node[number].id
				      : index->text[number];
}

static uint32_t find_text(const struct graph *graph,
			  const struct graph_table *table, uint32_t hash,
			  const char *text)
{
	if (!table->size)
		return GRAPH_NONE;
	uint32_t i = hash & (table->size - 1);
	for (; table->slot[i].number != GRAPH_NONE;
	     i = (i + 1) & (table->size - 1)) {
		uint32_t number = table->slot[i].number;

		if (table->slot[i].hash == hash &&
		    !strcmp(text_of(graph, table, number), text))
			return number;
	}
	return GRAPH_NONE;
}

uint32_t index_find_id(const struct graph *graph, const char *id)
{
	return find_text(graph, &graph_index(graph)->by_id, hash_text(id), id);
}

uint32_t index_find_seq(const struct graph *graph, unsigned long seq)
{
	const struct graph_table *table = &graph_index(graph)->by_seq;

	if (!table->size)
		return GRAPH_NONE;
	uint32_t hash = hash_number(seq), i = hash & (table->size - 1);
	for (; table->slot[i].number != GRAPH_NONE;
	     i = (i + 1) & (table->size - 1)) {
		uint32_t number = table->slot[i].number;

		if (table->slot[i].hash == hash &&
		    graph->node[number].born == seq)
			return number;
	}
	return GRAPH_NONE;
}

int index_add_id(struct graph *graph, uint32_t node)
{
	return add(&graph_index(graph)->by_id, hash_text(graph->node[node].id),
		   node);
}

int index_add_seq(struct graph *graph, uint32_t node)
{
	return add(&graph_index(graph)->by_seq,
		   hash_number(graph->node[node].born), node);
}

void index_drop_id(struct graph *graph, uint32_t node)
{
	drop(&graph_index(graph)->by_id, hash_text(graph->node[node].id), node);
}

void index_drop_seq(struct graph *graph, uint32_t node)
{
	drop(&graph_index(graph)->by_seq, hash_number(graph->node[node].born),
	     node);
}

char *index_text(struct graph *graph, const char *text)
{
	struct graph_index *index = graph_index(graph);
	uint32_t hash = hash_text(text);
	uint32_t at = find_text(graph, &index->by_text, hash, text);

	if (at != GRAPH_NONE)
		return index->text[at];
	if (index->texts == index->texts_room) {
		uint32_t room = index->texts_room ? index->texts_room * 2 : 64;
		char **grown = realloc(index->text, room * sizeof(*grown));
		if (!grown)
			return NULL;
		index->text = grown;
		index->texts_room = room;
	}
	char *copy = strdup(text);
	if (!copy)
		return NULL;
	index->text[index->texts] = copy;
	if (add(&index->by_text, hash, index->texts)) {
		free(copy);
		return NULL;
	}
	index->texts++;
	return copy;
}

static uint32_t *next_of(struct graph_index *index, uint32_t edge)
{
	return &index->links[edge / GRAPH_PARENTS].next[edge % GRAPH_PARENTS];
}

static uint32_t *prev_of(struct graph_index *index, uint32_t edge)
{
	return &index->links[edge / GRAPH_PARENTS].prev[edge % GRAPH_PARENTS];
}

/* How many references of an edge make its parent's destroy be refused. */
static uint32_t refusing(const struct graph *graph, uint32_t node, int slot)
{
	const struct graph_node *child = &graph->node[node];
	const struct rules_edge *edge = rules_edge_find(
		graph->node[child->parent[slot]].type, child->type);

	return edge && edge->err ? child->refs[slot] : 0;
}

void index_link(struct graph *graph, uint32_t node, int slot)
{
	struct graph_index *index = graph_index(graph);
	uint32_t edge = node * GRAPH_PARENTS + (uint32_t)slot;
	uint32_t parent = graph->node[node].parent[slot];
	struct graph_links *links = &index->links[parent];

	*next_of(index, edge) = GRAPH_NONE;
	*prev_of(index, edge) = links->last;
	if (links->last != GRAPH_NONE)
		*next_of(index, links->last) = edge;
	else
		links->first = edge;
	links->last = edge;
	graph->node[parent].children++;
	graph->node[parent].dependents += refusing(graph, node, slot);
}

/* The two neighbours of an edge in its list, or the list's ends. */
static void join_neighbours(struct graph_index *index,
			    struct graph_links *links, uint32_t edge,
			    uint32_t next, uint32_t prev)
{
	uint32_t behind = *next_of(index, edge);
	uint32_t before = *prev_of(index, edge);

	if (before != GRAPH_NONE)
		*next_of(index, before) = next;
	else
		links->first = next;
	if (behind != GRAPH_NONE)
		*prev_of(index, behind) = prev;
	else
		links->last = prev;
}

void index_unlink(struct graph *graph, uint32_t node, int slot)
{
	struct graph_index *index = graph_index(graph);
	uint32_t edge = node * GRAPH_PARENTS + (uint32_t)slot;
	uint32_t parent = graph->node[node].parent[slot];

	join_neighbours(index, &index->links[parent], edge,
			*next_of(index, edge), *prev_of(index, edge));
	graph->node[parent].children--;
	graph->node[parent].dependents -= refusing(graph, node, slot);
}

void index_relink(struct graph *graph, uint32_t node, int slot)
{
	struct graph_index *index = graph_index(graph);
	uint32_t edge = node * GRAPH_PARENTS + (uint32_t)slot;
	uint32_t parent = graph->node[node].parent[slot];

	join_neighbours(index, &index->links[parent], edge, edge, edge);
	graph->node[parent].children++;
	graph->node[parent].dependents += refusing(graph, node, slot);
}
