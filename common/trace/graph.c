/* SPDX-License-Identifier: MIT */
/*
 * The fold: what each event does to the objects. A node that is live or
 * leaked stands in the lists of its parents; no other does.
 */
#include "common/trace/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace/graph_change.h"

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
	for (uint32_t i = 0; i < index->made; i++)
		free(graph->node[i].attr);
	for (uint32_t i = 0; i < index->texts; i++)
		free(index->text[i]);
	for (uint32_t i = 0; i < index->refused; i++)
		free(index->refusal[i].holders);
	free(index->links);
	free(index->by_id.slot);
	free(index->by_seq.slot);
	free(index->by_text.slot);
	free(index->text);
	free(index->refusal);
	free(index->change);
	free(index);
	free(graph->node);
	free(graph);
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
		err = change_attr(graph, number, name, value, seq);
	}
	return err;
}

static bool is_held(const struct graph_node *node)
{
	return node->state == GRAPH_LIVE || node->state == GRAPH_LEAKED;
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
			change_add_parent(graph, number, parent);
	}
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
		int err = change_add_node(graph, type, &number);
		if (!err)
			err = change_set_id(graph, number, id);
		if (err)
			return err;
		change_state(graph, number, GRAPH_LIVE, 0);
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
	int err = change_add_node(graph, type, number);
	if (err)
		return err;
	struct graph_node *node = &graph->node[*number];
	node->born = event->seq;
	node->line = event->line;
	err = change_enter_seq(graph, *number);
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
		change_state(graph, number, GRAPH_FAILED, event->seq);
		return event->err ? change_attr(graph, number, "errno",
						rules_errno_name(event->err),
						event->seq)
				  : 0;
	}
	err = change_set_id(graph, number, event->ret);
	if (err)
		return err;
	change_state(graph, number, GRAPH_LIVE, 0);
	change_link(graph, number);
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
			change_state(graph, child, GRAPH_LEAKED, seq);
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
	change_unlink(graph, number);
	change_state(graph, number, GRAPH_DESTROYED, seq);
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
		const struct graph_refusal *last =
			&index->refusal[index->refusals - 1];
		if (last->node == fresh.node && last->err == fresh.err &&
		    last->call == fresh.call && last->file == fresh.file &&
		    last->line == fresh.line) {
			change_count(graph, fresh.count);
			return 0;
		}
	}
	fresh.holders = graph_holders(graph, &graph->node[number], 8);
	if (!fresh.holders)
		return ENOMEM;
	int err = change_add_refusal(graph, &fresh);
	if (err)
		free(fresh.holders);
	return err;
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
	change_parent(graph, window, RULES_MR, region);
}

static void reregister(struct graph *graph, const struct event *event)
{
	uint32_t region = argument(graph, event, RULES_MR);
	uint32_t pd = argument(graph, event, RULES_PD);
	const char *flags = event_field(&event->args, "flags");

	if (region != GRAPH_NONE && pd != GRAPH_NONE && flags &&
	    strstr(flags, "CHANGE_PD") && is_held(&graph->node[region]))
		change_parent(graph, region, RULES_PD, pd);
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

static bool has_attr(const struct graph_node *node, const char *name,
		     const char *value)
{
	for (int i = 0; i < node->attrs; i++)
		if (!strcmp(node->attr[i].name, name))
			return !strcmp(node->attr[i].value, value);
	return false;
}

/* The live QP that uses the CQ and has this number, or GRAPH_NONE. */
static uint32_t qp_by_number(const struct graph *graph, uint32_t cq,
			     const char *qp_num)
{
	const struct graph_index *index = graph_index(graph);
	uint32_t edge = index->links[cq].first;

	while (edge != GRAPH_NONE) {
		uint32_t child = edge / GRAPH_PARENTS;
		const struct graph_node *node = &graph->node[child];

		if (node->type == RULES_QP && has_attr(node, "qp_num", qp_num))
			return child;
		edge = index->links[child].next[edge % GRAPH_PARENTS];
	}
	return GRAPH_NONE;
}

/* Each answers with completions; the last two with one, of an extended CQ. */
static bool polls(const char *call)
{
	return !strcmp(call, "ibv_poll_cq") ||
	       !strcmp(call, "ibv_start_poll") ||
	       !strcmp(call, "ibv_next_poll");
}

/* A completion with an error: its QP is no longer in the state it was in. */
static int learn_completions(struct graph *graph, const struct event *event)
{
	uint32_t cq = argument(graph, event, RULES_CQ);
	bool failed = false;
	int err = 0;

	for (int i = 0; i < event->out.count && cq != GRAPH_NONE && !err; i++) {
		const struct event_field *field = &event->out.field[i];
		uint32_t qp;

		if (last_word(field->name, "status"))
			failed = strcmp(field->value, "IBV_WC_SUCCESS");
		if (!failed || !last_word(field->name, "qp_num"))
			continue;
		failed = false;
		qp = qp_by_number(graph, cq, field->value);
		if (qp != GRAPH_NONE &&
		    !has_attr(&graph->node[qp], "state", "ERR"))
			err = change_attr(graph, qp, "state", "?", event->seq);
	}
	return err;
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
	if (polls(event->call))
		return learn_completions(graph, event);
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
		if (graph->node[i].state == GRAPH_LIVE)
			change_state(graph, i, GRAPH_LEAKED,
				     graph_index(graph)->seq);
	}
}

static int fold(struct graph *graph, const struct event *event)
{
	const struct rules_call *rule;
	uint32_t number;
	int err;

	if (event->kind == EVENT_BYE)
		end_program(graph);
	if (event->kind == EVENT_ENTER || event->kind == EVENT_RET ||
	    event->kind == EVENT_MARK)
		change_seq(graph, event->seq);
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

int graph_apply(struct graph *graph, const struct event *event)
{
	const struct graph_index *index = graph_index(graph);
	int err;

	if (index->no_memory)
		return ENOMEM;
	if (index->done < index->changes)
		return EBUSY;
	change_event(graph);
	err = fold(graph, event);
	return index->no_memory ? ENOMEM : err;
}
