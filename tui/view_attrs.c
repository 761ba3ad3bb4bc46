/* SPDX-License-Identifier: MIT */
/*
 * The attributes pane: what the calls said of the selected object, who holds
 * it, and what destroying it would be answered. A value is never ours: each
 * is an argument or an answer of a call, named at the right where there is
 * room.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where values begin, unless a name is longer. */
#define VALUE_COLUMN 14
/* The call that said so stands no farther off than this. */
#define MOST_COLUMNS 64

/* The rows of the pane as they are drawn, one after the other. */
struct rows {
	struct cells *cells;
	const struct cells_area *area;
	const struct model *model;
	int top;   /* rows above the pane */
	int count; /* rows so far */
};

/* One row: name, value, and the call that said so (NULL: none). */
static void add(struct rows *rows, const char *name, unsigned int style,
		const char *value, const char *from)
{
	const struct cells_area *area = rows->area;
	int row = rows->count++ - rows->top;

	if (row < 0 || row >= area->rows)
		return;
	int column = 1 + cells_text(rows->cells, area, row, 1, STYLE_DIM, name);
	column = column < VALUE_COLUMN ? VALUE_COLUMN : column + 1;
	column += cells_text(rows->cells, area, row, column, style, value);
	if (from && column + 2 + cells_width(from) <= area->columns)
		cells_text(rows->cells, area, row,
			   area->columns - cells_width(from), STYLE_DIM, from);
}

/* The call with this seq that has returned by the shown place, or NULL. */
static const struct event *call_of(const struct model *model, unsigned long seq)
{
	for (size_t i = model->at; i > 0; i--) {
		const struct event *event = model->session->event[i - 1];
		if (event->kind == EVENT_RET && event->seq == seq)
			return event;
	}
	return NULL;
}

/* How many live objects were made in a context, at whatever remove. */
static uint32_t alive_in(const struct graph *graph,
			 const struct graph_node *context)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < graph->nodes; i++) {
		const struct graph_node *node = &graph->node[i];
		if (node->state != GRAPH_LIVE || node == context)
			continue;
		/* Parents are older, so that this ends. */
		for (uint32_t at = i; graph->node[at].parents > 0 &&
				      graph->node[at].parent[0] < at;) {
			at = graph->node[at].parent[0];
			if (&graph->node[at] == context) {
				alive++;
				break;
			}
		}
	}
	return alive;
}

static void add_state(struct rows *rows, const struct graph_node *node)
{
	char text[96];

	switch (node->state) {
	case GRAPH_CREATING:
		add(rows, "object", 0, "being created", NULL);
		return;
	case GRAPH_FAILED:
		add(rows, "object", STYLE_BOLD | STYLE_BAD,
		    "refused, never made", NULL);
		return;
	case GRAPH_LEAKED:
		add(rows, "object", STYLE_BOLD | STYLE_BAD, "leaked", NULL);
		return;
	case GRAPH_DESTROYED:
		snprintf(text, sizeof(text), "by call %lu", node->died);
		add(rows, "destroyed", STYLE_BOLD, text, NULL);
		return;
	default:
		break;
	}
	if (node->type == RULES_CONTEXT) {
		snprintf(text, sizeof(text), "%u",
			 alive_in(rows->model->graph, node));
		add(rows, "alive in it", 0, text, NULL);
		return;
	}
	if (graph_unsure(rows->model->graph, node)) {
		add(rows, "held by", 0, "? windows may", NULL);
		return;
	}
	char *holders = graph_holders(rows->model->graph, node, 8);
	if (node->dependents > 0)
		add(rows, "held by", STYLE_BOLD, holders ? holders : "?", NULL);
	else
		add(rows, "held by", 0, "nothing", NULL);
	free(holders);
}

/* "dealloc now": the verb that ends this type, without "ibv_" and object. */
static void destroy_word(const struct graph_node *node, char *out, size_t size)
{
	const char *call = "ibv_destroy_";

	for (int i = 0; i < rules_calls_count; i++)
		if (rules_calls[i].object == node->type &&
		    rules_calls[i].effect == RULES_DESTROYS) {
			call = rules_calls[i].call;
			break;
		}
	call += strncmp(call, "ibv_", 4) ? 0 : 4;
	snprintf(out, size, "%.*s now", (int)strcspn(call, "_"), call);
}

static void add_destroy(struct rows *rows, const struct graph_node *node)
{
	char word[48];

	if (node->state != GRAPH_LIVE || graph_unsure(rows->model->graph, node))
		return;
	int err = graph_destroy_answer(rows->model->graph, node);
	destroy_word(node, word, sizeof(word));
	if (err)
		add(rows, word, STYLE_BOLD | STYLE_WARN, rules_errno_name(err),
		    NULL);
	else if (node->type == RULES_CONTEXT &&
		 alive_in(rows->model->graph, node) > 0)
		add(rows, word, STYLE_WARN, "0, and they leak", NULL);
	else
		add(rows, word, 0, "0, done", NULL);
}

/*
 * Where an attribute stands: what a person looks for first, then the rest as
 * the calls gave it, then the objects it was made with.
 */
static int attr_rank(const struct graph_attr *attr)
{
	static const char *const first[] = { "errno",  "state",   "handle",
					     "lkey",   "rkey",    "qp_num",
					     "cqe",    "addr",    "length",
					     "access", "qp_type", "device" };
	const int count = sizeof(first) / sizeof(*first);

	for (int i = 0; i < count; i++)
		if (!strcmp(attr->name, first[i]))
			return i;
	return rules_object_of_id(attr->value) == RULES_NONE ? count
							     : count + 1;
}

#define RANKS 14

static void add_attr(struct rows *rows, const struct graph_attr *attr)
{
	int row = rows->count - rows->top;
	bool seen = row >= 0 && row < rows->area->rows;
	const struct event *call =
		seen ? call_of(rows->model, attr->seq) : NULL;
	bool fresh = attr->seq == model_ghosts_from(rows->model);
	char from[64] = "";

	if (call)
		snprintf(from, sizeof(from), "%lu %s", attr->seq, call->call);
	add(rows, attr->name, fresh ? STYLE_BOLD : 0, attr->value, from);
}

static void add_attrs(struct rows *rows, const struct graph_node *node)
{
	for (int rank = 0; rank < RANKS; rank++)
		for (int i = 0; i < node->attrs; i++)
			if (attr_rank(&node->attr[i]) == rank)
				add_attr(rows, &node->attr[i]);
}

static void add_place(struct rows *rows, const struct graph_node *node)
{
	char text[256];

	if (!node->file)
		return;
	snprintf(text, sizeof(text), "%s:%d", view_base(node->file),
		 node->line);
	add(rows, "made at", 0, text, NULL);
}

static void add_all(struct rows *rows, const struct graph_node *node)
{
	add_state(rows, node);
	add_destroy(rows, node);
	add_attrs(rows, node);
	add_place(rows, node);
}

void view_attrs(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	struct cells_area pane = plan->pane[PANE_ATTRS], *area = &pane;
	const struct cells_area none = { 0 };
	const struct graph_node *node = model_selected(model);
	/* The first time round counts: nothing is drawn into no area. */
	struct rows rows = { .cells = cells, .area = &none, .model = model };

	if (pane.columns > MOST_COLUMNS)
		pane.columns = MOST_COLUMNS;
	if (!node) {
		cells_text(cells, area, 0, 1, STYLE_DIM, "Nothing selected.");
		return;
	}
	add_all(&rows, node);
	rows.top = view_scroll(model, PANE_ATTRS, area->rows, rows.count, 0);
	rows.area = area;
	rows.count = 0;
	add_all(&rows, node);
	view_cursor(cells, area, model, PANE_ATTRS, rows.top);
}
