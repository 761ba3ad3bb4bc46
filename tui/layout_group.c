/* SPDX-License-Identifier: MIT */
/*
 * Nodes into boxes. Rank by rank, so that what an object hangs on is already
 * a box: objects are of one kind when their type, state and boxes of parents
 * are the same. One look-up in a hash table per node.
 */
#include "tui/layout_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXPANDED_MOST 512
#define HIDDEN_MOST   32 /* gaps that are kept per rank */
#define DEVICE_WIDTH  12 /* of a device's name in a label */

/* Objects that may become one box. */
struct kind {
	int type, state;
	int parent[LAYOUT_PARENTS];
	int parents;
	uint32_t count;
	uint32_t alone; /* how many of them got a box of their own */
	int place;      /* the box of the others; -1: none yet */
};

/* The kinds of one rank. */
struct kinds {
	struct kind *kind;
	uint32_t kinds, room;
	uint32_t *slot; /* open addressing */
	uint32_t size;
	uint32_t *of; /* of each node */
};

int layout_level(enum rules_object type)
{
	switch (type) {
	case RULES_CONTEXT:
		return 0;
	case RULES_PD:
	case RULES_CHANNEL:
		return 1;
	case RULES_MW:
	case RULES_QP:
		return 3;
	default:
		return 2;
	}
}

static bool is_shown(const struct plan *plan, const struct graph_node *node)
{
	if (node->state == GRAPH_DESTROYED || node->state == GRAPH_FAILED)
		return node->died >= plan->ghosts_from;
	return true;
}

static uint32_t hash_kind(const struct kind *kind)
{
	uint32_t hash = (uint32_t)kind->type * 8 + (uint32_t)kind->state;

	for (int i = 0; i < kind->parents; i++)
		hash = (hash ^ (uint32_t)kind->parent[i]) * 0x9e3779b1u;
	return hash ^ hash >> 15;
}

static bool same_kind(const struct kind *a, const struct kind *b)
{
	return a->type == b->type && a->state == b->state &&
	       a->parents == b->parents &&
	       !memcmp(a->parent, b->parent,
		       (size_t)a->parents * sizeof(*a->parent));
}

static int grow_kinds(struct kinds *kinds)
{
	uint32_t room = kinds->room ? kinds->room * 2 : 32;
	struct kind *kind = realloc(kinds->kind, room * sizeof(*kind));
	if (!kind)
		return ENOMEM;
	kinds->kind = kind;
	uint32_t *slot = malloc(room * 2 * sizeof(*slot));
	if (!slot)
		return ENOMEM;
	memset(slot, 0xff, room * 2 * sizeof(*slot));
	free(kinds->slot);
	kinds->slot = slot;
	kinds->room = room;
	kinds->size = room * 2;
	for (uint32_t i = 0; i < kinds->kinds; i++) {
		uint32_t at = hash_kind(&kind[i]) & (kinds->size - 1);
		while (slot[at] != LAYOUT_NONE)
			at = (at + 1) & (kinds->size - 1);
		slot[at] = i;
	}
	return 0;
}

static int add_to_kind(struct kinds *kinds, const struct kind *like,
		       uint32_t node)
{
	if (kinds->kinds == kinds->room && grow_kinds(kinds))
		return ENOMEM;
	uint32_t at = hash_kind(like) & (kinds->size - 1);
	while (kinds->slot[at] != LAYOUT_NONE &&
	       !same_kind(&kinds->kind[kinds->slot[at]], like))
		at = (at + 1) & (kinds->size - 1);
	if (kinds->slot[at] == LAYOUT_NONE) {
		kinds->slot[at] = kinds->kinds;
		kinds->kind[kinds->kinds++] = *like;
	}
	kinds->of[node] = kinds->slot[at];
	kinds->kind[kinds->slot[at]].count++;
	return 0;
}

/* The parents of a node as boxes, each once. */
static int parent_places(const struct plan *plan, const struct graph_node *node,
			 int parent[LAYOUT_PARENTS])
{
	int parents = 0;

	for (int i = 0; i < node->parents; i++) {
		uint32_t place = plan->place_of[node->parent[i]];
		bool there = place == LAYOUT_NONE;

		for (int k = 0; k < parents; k++)
			there |= parent[k] == (int)place;
		if (!there)
			parent[parents++] = (int)place;
	}
	return parents;
}

static const char *attr(const struct graph_node *node, const char *name)
{
	for (int i = 0; i < node->attrs; i++) {
		if (!strcmp(node->attr[i].name, name))
			return node->attr[i].value;
	}
	return NULL;
}

/* The states of two QPs may differ; values are not shared across graphs. */
static bool same_qp_state(const struct graph_node *a,
			  const struct graph_node *b)
{
	const char *x = attr(a, "state"), *y = attr(b, "state");

	return x == y || (x && y && !strcmp(x, y));
}

static int add_place(struct plan *plan, uint32_t number)
{
	const struct graph_node *node = &plan->graph->node[number];

	if (plan->places == plan->room) {
		int room = plan->room ? plan->room * 2 : 32;
		struct place *place =
			realloc(plan->place, (size_t)room * sizeof(*place));
		if (!place)
			return ENOMEM;
		plan->place = place;
		plan->room = room;
	}
	struct place *place = &plan->place[plan->places];
	*place =
		(struct place){ .node = number,
				.count = 1,
				.dependents =
					graph_busy(node) ? node->dependents : 0,
				.level = layout_level(node->type),
				.hidden = !is_shown(plan, node) };
	place->parents = parent_places(plan, node, place->parent);
	plan->place_of[number] = (uint32_t)plan->places++;
	return 0;
}

static int add_member(struct plan *plan, struct kinds *kinds, uint32_t number)
{
	const struct graph_node *node = &plan->graph->node[number];
	struct kind *kind = &kinds->kind[kinds->of[number]];
	uint32_t most = plan->expanded && plan->expanded[node->type]
				? EXPANDED_MOST
				: 0;

	if (kind->count <= plan->limit || kind->alone < most) {
		kind->alone++;
		return add_place(plan, number);
	}
	if (kind->place < 0) {
		kind->place = plan->places;
		return add_place(plan, number);
	}
	struct place *place = &plan->place[kind->place];
	place->count++;
	if (graph_busy(node))
		place->dependents += node->dependents;
	if (node->type == RULES_QP && !place->mixed)
		place->mixed =
			!same_qp_state(node, &plan->graph->node[place->node]);
	plan->place_of[number] = (uint32_t)kind->place;
	return 0;
}

/* Writes "id", "id mark", "type xN mark" between the brackets of the type. */
static void set_label(const struct plan *plan, struct place *place)
{
	const struct graph_node *node = &plan->graph->node[place->node];
	const char *detail = "";
	char name[24], mark[16] = "", *at = place->label;
	bool round = node->type == RULES_QP;

	if (place->count > 1)
		snprintf(name, sizeof(name), "%s x%u",
			 rules_objects[node->type].prefix, place->count);
	else
		snprintf(name, sizeof(name), "%.12s", node->id);
	if (round && !place->mixed)
		detail = attr(node, "state");
	if (node->type == RULES_CONTEXT && place->count == 1)
		detail = attr(node, "device");
	if (!detail)
		detail = "";
	if (place->count == 1 || node->state != GRAPH_LIVE)
		graph_mark(node, mark, sizeof(mark));
	else if (place->dependents)
		snprintf(mark, sizeof(mark), "!%u", place->dependents);
	/* The shortest states have three letters. */
	place->base = (int)strlen(name) + 2 + (round && *detail ? 4 : 0);
	int used = snprintf(at, sizeof(place->label), "%c%s%s%.*s%s%s%c",
			    round ? '(' : '[', name, *detail ? " " : "",
			    round ? 5 : DEVICE_WIDTH, detail, *mark ? " " : "",
			    mark, round ? ')' : ']');
	for (; *at; at++) {
		if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e)
			*at = '?';
	}
	/* Marks and states come and go: their room is kept. */
	place->width = (int)strlen(name) + 2;
	if (round)
		place->width += 1 + 5; /* " RESET" */
	else if (*detail)
		place->width += 1 + (int)strnlen(detail, DEVICE_WIDTH) + 2;
	else
		place->width += node->type == RULES_MR ? 2 : 3;
	if (place->width < used)
		place->width = used;
}

/*
 * Marks of each node: shown, hidden but keeping its place, or neither. A
 * place is kept while something shown in that rank was made before it was
 * given up: that stands where it stands because of it.
 */
static void choose(const struct plan *plan, char *choice)
{
	const struct graph *graph = plan->graph;
	unsigned long next[LAYOUT_LEVELS] = { 0 };
	int kept[LAYOUT_LEVELS] = { 0 };

	for (uint32_t i = graph->nodes; i-- > 0;) {
		const struct graph_node *node = &graph->node[i];
		int level = layout_level(node->type);

		if (is_shown(plan, node)) {
			choice[i] = (char)(1 + level);
			next[level] = node->born;
			continue;
		}
		choice[i] = 0;
		if (next[level] && next[level] < node->died &&
		    kept[level] < HIDDEN_MOST) {
			kept[level]++;
			choice[i] = (char)(1 + level + LAYOUT_LEVELS);
		}
	}
}

static int group_level(struct plan *plan, struct kinds *kinds, int level,
		       const char *choice)
{
	const struct graph *graph = plan->graph;
	int err = 0;

	kinds->kinds = 0;
	if (kinds->slot)
		memset(kinds->slot, 0xff, kinds->size * sizeof(*kinds->slot));
	for (uint32_t i = 0; i < graph->nodes && !err; i++) {
		if (choice[i] != 1 + level)
			continue;
		const struct graph_node *node = &graph->node[i];
		struct kind like = { .type = (int)node->type,
				     .state = (int)node->state,
				     .place = -1 };
		like.parents = parent_places(plan, node, like.parent);
		err = add_to_kind(kinds, &like, i);
	}
	for (uint32_t i = 0; i < graph->nodes && !err; i++) {
		if (choice[i] == 1 + level)
			err = add_member(plan, kinds, i);
		else if (choice[i] == 1 + level + LAYOUT_LEVELS)
			err = add_place(plan, i);
	}
	return err;
}

int layout_group(struct plan *plan)
{
	uint32_t nodes = plan->graph->nodes;
	struct kinds kinds = { 0 };
	char *choice = malloc(nodes + 1ul);
	int err = ENOMEM;

	plan->places = 0;
	kinds.of = malloc((nodes + 1ul) * sizeof(*kinds.of));
	if (!kinds.of || !choice)
		goto out;
	memset(plan->place_of, 0xff, nodes * sizeof(*plan->place_of));
	choose(plan, choice);
	err = 0;
	for (int level = 0; level < LAYOUT_LEVELS && !err; level++)
		err = group_level(plan, &kinds, level, choice);
	for (int i = 0; i < plan->places; i++)
		set_label(plan, &plan->place[i]);
out:
	free(kinds.kind);
	free(kinds.slot);
	free(kinds.of);
	free(choice);
	return err;
}
