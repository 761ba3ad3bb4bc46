/* SPDX-License-Identifier: MIT */
/*
 * The fold: what each event does to the objects. A node that is live or
 * leaked stands in the lists of its parents; no other does.
 */
#include "common/trace/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace/graph_index.h"

#define ATTRS_MOST 512 /* names of attributes that one object may have */
#define NODES_MOST (GRAPH_NONE / GRAPH_PARENTS)

struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	if (!graph)
		return NULL;
	graph->index = calloc(1, sizeof(struct graph_index));
	if (!graph->index) {
		free(graph);
		return NULL;
	}
	return graph;
}

void graph_free(struct graph *graph)
{
	if (!graph)
		return;
	struct graph_index *index = graph_index(graph);
	for (uint32_t i = 0; i < graph->nodes; i++)
		free(graph->node[i].attr);
	for (uint32_t i = 0; i < index->texts; i++)
		free(index->text[i]);
	for (uint32_t i = 0; i < index->refusals; i++)
		free(index->refusal[i].holders);
	free(index->links);
	free(index->by_id.slot);
	free(index->by_seq.slot);
	free(index->by_text.slot);
	free(index->text);
	free(index->refusal);
	free(index);
	free(graph->node);
	free(graph);
}

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

static int add_node(struct graph *graph, enum rules_object type,
		    enum graph_state state, uint32_t *number)
{
	struct graph_index *index = graph_index(graph);
	int err = grow(graph);

	if (err)
		return err;
	*number = graph->nodes++;
	struct graph_node *node = &graph->node[*number];
	*node = (struct graph_node){ .type = type, .state = state };
	index->links[*number] =
		(struct graph_links){ .first = GRAPH_NONE, .last = GRAPH_NONE };
	snprintf(node->id, sizeof(node->id), "%s?", rules_objects[type].prefix);
	return 0;
}

static int set_attr(struct graph *graph, struct graph_node *node,
		    const char *name, const char *value, unsigned long seq)
{
	struct graph_attr *attr = node->attr;
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
	attr[i] = fresh;
	node->attrs += i == node->attrs;
	return 0;
}

/* Is `name`, or what follows its last dot, `word`? */
static bool last_word(const char *name, const char *word)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, word);
}

/*
 * Fields as attributes of a node; the name of each with `prefix` before and
 * `suffix` after it. Lists are no attributes, masks neither.
 */
static int set_attrs(struct graph *graph, uint32_t number,
		     const struct event_fields *fields, const char *prefix,
		     const char *suffix, unsigned long seq)
{
	struct graph_node *node = &graph->node[number];
	char name[256];
	int err = 0;

	for (int i = 0; i < fields->count && !err; i++) {
		const struct event_field *field = &fields->field[i];
		const char *value = field->value;

		if (strchr(field->name, '[') || !strcmp(value, "NULL") ||
		    !strcmp(value, node->id) ||
		    last_word(field->name, "attr_mask"))
			continue;
		if (node->type == RULES_QP &&
		    (last_word(field->name, "qp_state") ||
		     !strcmp(field->name, "state"))) {
			strcpy(name, "state");
			if (!strncmp(value, "IBV_QPS_", 8))
				value += 8;
		} else {
			snprintf(name, sizeof(name), "%s%s%s", prefix,
				 field->name, suffix);
		}
		err = set_attr(graph, node, name, value, seq);
	}
	return err;
}

static bool is_held(const struct graph_node *node)
{
	return node->state == GRAPH_LIVE || node->state == GRAPH_LEAKED;
}

/* One reference more from a node to `parent`. No list is touched. */
static void add_parent(struct graph *graph, uint32_t number, uint32_t parent)
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

/* The references that a new object has on those of its arguments. */
static void find_parents(struct graph *graph, uint32_t number,
			 const struct event_fields *args)
{
	for (int i = 0; i < args->count; i++) {
		const char *id = args->field[i].value;
		enum rules_object type = rules_object_of_id(id);

		if (type == RULES_NONE ||
		    !rules_edge_find(type, graph->node[number].type))
			continue;
		uint32_t parent = index_find_id(graph, id);
		if (parent != GRAPH_NONE && parent != number)
			add_parent(graph, number, parent);
	}
}

static void link_parents(struct graph *graph, uint32_t number)
{
	for (int i = 0; i < graph->node[number].parents; i++)
		index_link(graph, number, i);
}

static void unlink_parents(struct graph *graph, uint32_t number)
{
	for (int i = 0; i < graph->node[number].parents; i++)
		index_unlink(graph, number, i);
}

/*
 * Replaces the parent of one type of a live node: a window bound to another
 * MR, an MR moved to another PD. GRAPH_NONE: it has none now.
 */
static void set_parent(struct graph *graph, uint32_t number,
		       enum rules_object type, uint32_t parent)
{
	struct graph_node *node = &graph->node[number];
	int kept = 0;

	unlink_parents(graph, number);
	for (int i = 0; i < node->parents; i++) {
		if (graph->node[node->parent[i]].type == type)
			continue;
		node->parent[kept] = node->parent[i];
		node->refs[kept++] = node->refs[i];
	}
	node->parents = kept;
	if (parent != GRAPH_NONE)
		add_parent(graph, number, parent);
	link_parents(graph, number);
}

/* Objects that the probe did not see made: live, of unknown origin. */
static int meet(struct graph *graph, const struct event_fields *fields)
{
	for (int i = 0; i < fields->count; i++) {
		const char *id = fields->field[i].value;
		enum rules_object type = rules_object_of_id(id);
		uint32_t number;

		if (type == RULES_NONE ||
		    strlen(id) >= sizeof(graph->node->id) ||
		    index_find_id(graph, id) != GRAPH_NONE)
			continue;
		int err = add_node(graph, type, GRAPH_LIVE, &number);
		if (err)
			return err;
		strcpy(graph->node[number].id, id);
		graph->live[type]++;
		err = index_add_id(graph, number);
		if (err)
			return err;
	}
	return 0;
}

/* The first argument that is a known object of the type, or GRAPH_NONE. */
static uint32_t argument(const struct graph *graph, const struct event *event,
			 enum rules_object type)
{
	for (int i = 0; i < event->args.count; i++) {
		const char *id = event->args.field[i].value;

		if (rules_object_of_id(id) == type)
			return index_find_id(graph, id);
	}
	return GRAPH_NONE;
}

/* A node for a create call that was entered. */
static int begin_create(struct graph *graph, const struct event *event,
			enum rules_object type, uint32_t *number)
{
	if (index_find_seq(graph, event->seq) != GRAPH_NONE)
		return EPROTO;
	int err = add_node(graph, type, GRAPH_CREATING, number);
	if (err)
		return err;
	struct graph_node *node = &graph->node[*number];
	node->born = event->seq;
	node->line = event->line;
	err = index_add_seq(graph, *number);
	if (err)
		return err;
	if (event->file) {
		node->file = index_text(graph, event->file);
		if (!node->file)
			return ENOMEM;
	}
	find_parents(graph, *number, &event->args);
	return set_attrs(graph, *number, &event->args, "", "", event->seq);
}

static int end_create(struct graph *graph, const struct event *event,
		      enum rules_object type)
{
	uint32_t number = index_find_seq(graph, event->seq);
	int err;

	if (event->ok &&
	    (!event->ret || rules_object_of_id(event->ret) != type ||
	     strlen(event->ret) >= sizeof(graph->node->id) ||
	     index_find_id(graph, event->ret) != GRAPH_NONE))
		return EPROTO;
	if (number == GRAPH_NONE) {
		err = begin_create(graph, event, type, &number);
		if (err)
			return err;
	}
	struct graph_node *node = &graph->node[number];
	if (node->state != GRAPH_CREATING || node->type != type)
		return EPROTO;
	if (!event->ok) {
		node->state = GRAPH_FAILED;
		node->died = event->seq;
		return event->err ? set_attr(graph, node, "errno",
					     rules_errno_name(event->err),
					     event->seq)
				  : 0;
	}
	strcpy(node->id, event->ret);
	err = index_add_id(graph, number);
	if (err)
		return err;
	node->state = GRAPH_LIVE;
	graph->live[type]++;
	link_parents(graph, number);
	return set_attrs(graph, number, &event->out, "", "", event->seq);
}

/* Everything live that was made with the node, and with that, is leaked. */
static void leak_children(struct graph *graph, uint32_t number,
			  unsigned long seq)
{
	struct graph_index *index = graph_index(graph);
	uint32_t edge = index->links[number].first;

	while (edge != GRAPH_NONE) {
		uint32_t child = edge / GRAPH_PARENTS;
		struct graph_node *node = &graph->node[child];

		if (node->state == GRAPH_LIVE) {
			node->state = GRAPH_LEAKED;
			node->died = seq;
			graph->live[node->type]--;
			leak_children(graph, child, seq);
		}
		edge = index->links[child].next[edge % GRAPH_PARENTS];
	}
}

static void end_life(struct graph *graph, uint32_t number, unsigned long seq)
{
	struct graph_node *node = &graph->node[number];

	if (!is_held(node))
		return;
	unlink_parents(graph, number);
	if (node->state == GRAPH_LIVE)
		graph->live[node->type]--;
	node->state = GRAPH_DESTROYED;
	node->died = seq;
	if (node->type == RULES_CONTEXT)
		leak_children(graph, number, seq);
}

/* Keeps a refused destroy; the same again at one place only counts. */
static int note_refusal(struct graph *graph, const struct event *event,
			uint32_t number)
{
	struct graph_index *index = graph_index(graph);
	struct graph_refusal fresh = {
		.node = number,
		.err = event->err,
		.seq = event->seq,
		.count = event->count,
		.call = index_text(graph, event->call),
		.file = event->file ? index_text(graph, event->file) : NULL,
		.line = event->line,
	};

	if (!fresh.call || (event->file && !fresh.file))
		return ENOMEM;
	if (index->refusals) {
		struct graph_refusal *last =
			&index->refusal[index->refusals - 1];
		if (last->node == fresh.node && last->err == fresh.err &&
		    last->call == fresh.call && last->file == fresh.file &&
		    last->line == fresh.line) {
			last->count += fresh.count;
			return 0;
		}
	}
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
	fresh.holders = graph_holders(graph, &graph->node[number], 8);
	if (!fresh.holders)
		return ENOMEM;
	index->refusal[index->refusals++] = fresh;
	return 0;
}

static int end_destroy(struct graph *graph, const struct event *event,
		       enum rules_object type)
{
	uint32_t number = argument(graph, event, type);

	if (number == GRAPH_NONE)
		return 0;
	if (!event->ok)
		return note_refusal(graph, event, number);
	end_life(graph, number, event->seq);
	return 0;
}

static void bind_window(struct graph *graph, const struct event *event)
{
	uint32_t window = argument(graph, event, RULES_MW);
	uint32_t region = argument(graph, event, RULES_MR);

	if (window == GRAPH_NONE || !is_held(&graph->node[window]))
		return;
	for (int i = 0; i < event->args.count; i++) {
		/* A bind of no bytes unbinds. */
		if (last_word(event->args.field[i].name, "length") &&
		    !strcmp(event->args.field[i].value, "0"))
			region = GRAPH_NONE;
	}
	set_parent(graph, window, RULES_MR, region);
}

static void reregister(struct graph *graph, const struct event *event)
{
	uint32_t region = argument(graph, event, RULES_MR);
	uint32_t pd = argument(graph, event, RULES_PD);
	const char *flags = event_field(&event->args, "flags");

	if (region != GRAPH_NONE && pd != GRAPH_NONE && flags &&
	    strstr(flags, "CHANGE_PD") && is_held(&graph->node[region]))
		set_parent(graph, region, RULES_PD, pd);
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* `text` when it is a plain number of a sane length, else NULL. */
static const char *digits(const char *text)
{
	size_t length = text ? strspn(text, "0123456789") : 0;

	return length && length < 20 && !text[length] ? text : NULL;
}

/* A successful call that neither made nor unmade: what it tells. */
static int learn(struct graph *graph, const struct event *event)
{
	const char *port = digits(event_field(&event->args, "port_num"));
	const char *entry = digits(event_field(&event->args, "index"));
	char prefix[40] = "", suffix[40] = "";
	uint32_t number = GRAPH_NONE;
	bool query = starts(event->call, "ibv_query_");
	bool changes = starts(event->call, "ibv_modify_") ||
		       starts(event->call, "ibv_resize_") ||
		       starts(event->call, "ibv_rereg_");
	int err = 0;

	if (!entry)
		entry = digits(event_field(&event->args, "gid_index"));
	if (!strcmp(event->call, "ibv_bind_mw"))
		bind_window(graph, event);
	if (!strcmp(event->call, "ibv_rereg_mr"))
		reregister(graph, event);
	if (!query && !changes)
		return 0;
	for (int i = 0; i < event->args.count && number == GRAPH_NONE; i++) {
		const char *id = event->args.field[i].value;

		if (rules_object_of_id(id) != RULES_NONE)
			number = index_find_id(graph, id);
	}
	if (number == GRAPH_NONE)
		return 0;
	if (query && port && graph->node[number].type == RULES_CONTEXT) {
		snprintf(prefix, sizeof(prefix), "port%s.", port);
		if (entry)
			snprintf(suffix, sizeof(suffix), "[%s]", entry);
	}
	if (changes)
		err = set_attrs(graph, number, &event->args, "", "",
				event->seq);
	if (!err)
		err = set_attrs(graph, number, &event->out, prefix, suffix,
				event->seq);
	return err;
}

static void end_program(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->nodes; i++) {
		struct graph_node *node = &graph->node[i];

		if (node->state != GRAPH_LIVE)
			continue;
		node->state = GRAPH_LEAKED;
		node->died = graph_index(graph)->seq;
		graph->live[node->type]--;
	}
}

int graph_apply(struct graph *graph, const struct event *event)
{
	const struct rules_call *rule;
	uint32_t number;
	int err;

	if (event->kind == EVENT_BYE)
		end_program(graph);
	if (event->kind == EVENT_ENTER || event->kind == EVENT_RET ||
	    event->kind == EVENT_MARK) {
		if (event->seq > graph_index(graph)->seq)
			graph_index(graph)->seq = event->seq;
	}
	if (event->kind != EVENT_ENTER && event->kind != EVENT_RET)
		return 0;
	err = meet(graph, &event->args);
	if (err)
		return err;
	rule = rules_call_find(event->call);
	if (event->kind == EVENT_ENTER) {
		if (rule && rule->effect == RULES_CREATES)
			return begin_create(graph, event, rule->object,
					    &number);
		return 0;
	}
	if (rule && rule->effect == RULES_CREATES)
		return end_create(graph, event, rule->object);
	if (rule)
		return end_destroy(graph, event, rule->object);
	err = meet(graph, &event->out);
	if (!err && event->ok)
		err = learn(graph, event);
	return err;
}
