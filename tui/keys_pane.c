/* SPDX-License-Identifier: MIT */
/*
 * Moving about in a pane. Most are lists with a cursor; the words have none
 * and scroll; in the graph one moves from object to object: up to what an
 * object was made from, down to what was made from it, aside to its like.
 */
#include "tui/keys_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/view.h"

/* A page where the size of the screen is not known. */
#define PAGE_ROWS 10
/* No list is longer; what moves by this goes to an end. */
#define ROWS_MAX  1000000000

static int pane_rows(const struct model *model, enum model_pane pane)
{
	int rows = 0;

	if (model->height > 0)
		rows = view_pane(model, model->height, model->width, pane).rows;
	return rows > 0 ? rows : PAGE_ROWS;
}

static int pane_length(const struct model *model, enum model_pane pane)
{
	if (model->length[pane])
		return model->length[pane];
	if (pane == PANE_CALLS)
		return (int)model->calls;
	return pane == PANE_OUTPUT ? (int)model->session->lines : 0;
}

static int between(int low, int value, int high)
{
	return value > high  ? (high < low ? low : high)
	       : value < low ? low
			     : value;
}

void keys_cursor(struct model *model, enum model_pane pane, int row)
{
	struct model_scroll *scroll = &model->scroll[pane];
	int length = pane_length(model, pane);
	int rows = pane_rows(model, pane);

	scroll->follows = false;
	scroll->cursor = between(0, row, length > 0 ? length - 1 : ROWS_MAX);
	scroll->top =
		between(scroll->cursor - rows + 1, scroll->top, scroll->cursor);
	scroll->top = between(0, scroll->top, scroll->top);
}

/* Words have no cursor: the first row moves. */
static void scroll_to(struct model *model, enum model_pane pane, int top)
{
	struct model_scroll *scroll = &model->scroll[pane];
	int most = pane_length(model, pane) - pane_rows(model, pane);

	scroll->follows = false;
	scroll->top = scroll->cursor = between(0, top, most < 0 ? 0 : most);
}

/* How many rows a key moves; 0: it is none that moves up or down. */
static int distance(const struct model *model, int code)
{
	int page = pane_rows(model, model->focus);

	switch (code) {
	case KEYS_UP:
	case 'k':
		return -1;
	case KEYS_DOWN:
	case 'j':
		return 1;
	case KEYS_PAGE_UP:
		return page > 1 ? 1 - page : -1;
	case KEYS_PAGE_DOWN:
		return page > 1 ? page - 1 : 1;
	case KEYS_HOME:
	case 'g':
		return -ROWS_MAX;
	case KEYS_END:
	case 'G':
		return ROWS_MAX;
	default:
		return 0;
	}
}

/* --- the graph ------------------------------------------------------------ */

void keys_select(struct model *model, const struct graph_node *node)
{
	snprintf(model->selected, sizeof(model->selected), "%s", node->id);
	model->scroll[PANE_ATTRS].top = 0;
}

static bool is_selectable(const struct model *model, uint32_t index)
{
	const struct graph_node *node = &model->graph->node[index];

	/* Those without an id of their own cannot be found again by it. */
	if (graph_find(model->graph, node->id) != node)
		return false;
	return node->state != GRAPH_DESTROYED ||
	       node->died >= model_ghosts_from(model);
}

static bool is_child(const struct graph_node *node, uint32_t parent)
{
	for (int i = 0; i < node->parents; i++)
		if (node->parent[i] == parent)
			return true;
	return false;
}

/* The nearest selectable one in a direction, of `type` unless RULES_NONE. */
static int64_t neighbour(const struct model *model, int64_t from, int by,
			 enum rules_object type)
{
	int64_t last = model->graph->nodes;

	for (int64_t i = from + by; i >= 0 && i < last; i += by)
		if ((type == RULES_NONE ||
		     model->graph->node[i].type == type) &&
		    is_selectable(model, (uint32_t)i))
			return i;
	return -1;
}

static int64_t first_child(const struct model *model, uint32_t parent)
{
	for (uint32_t i = parent + 1; i < model->graph->nodes; i++)
		if (is_child(&model->graph->node[i], parent) &&
		    is_selectable(model, i))
			return i;
	return -1;
}

/* In the tree, `by` rows on from the node. */
static int64_t tree_neighbour(const struct model *model, uint32_t from, int by)
{
	int rows, at = 0;
	struct model_tree_row *tree = model_tree(model, &rows);
	int64_t found = -1;

	for (int i = 0; i < rows; i++)
		if (tree[i].node == from)
			at = i;
	by = between(-rows, by, rows);
	for (int i = between(0, at + by, rows - 1); i >= 0 && i < rows;
	     i += by < 0 ? -1 : 1) {
		if (!is_selectable(model, tree[i].node))
			continue;
		found = tree[i].node;
		break;
	}
	free(tree);
	return found;
}

static bool draws_tree(const struct model *model)
{
	return model->tree ||
	       (model->height > 0 && (model->height < 24 || model->width < 80));
}

static int64_t graph_target(const struct model *model, uint32_t from, int code)
{
	const struct graph_node *node = &model->graph->node[from];
	int by = distance(model, code);
	int aside = code == KEYS_RIGHT || code == 'l' ? 1 : -1;
	int64_t like;

	if (by && draws_tree(model))
		return tree_neighbour(model, from, by);
	if (by == -1)
		return node->parents ? (int64_t)node->parent[0] : -1;
	if (by == 1)
		return first_child(model, from);
	if (by < 0)
		return neighbour(model, -1, 1, RULES_NONE);
	if (by > 0)
		return neighbour(model, model->graph->nodes, -1, RULES_NONE);
	like = neighbour(model, from, aside, node->type);
	return like >= 0 ? like : neighbour(model, from, aside, RULES_NONE);
}

static void move_in_graph(struct model *model, int code)
{
	const struct graph_node *node = model_selected(model);
	int64_t target;

	if (!node) {
		keys_say(model, "no object yet");
		return;
	}
	target = graph_target(model, (uint32_t)(node - model->graph->node),
			      code);
	if (target >= 0)
		keys_select(model, &model->graph->node[target]);
	else
		keys_say(model, "no object there");
}

bool keys_move(struct model *model, int code)
{
	bool aside = code == KEYS_LEFT || code == KEYS_RIGHT || code == 'h' ||
		     code == 'l';
	struct model_scroll *scroll = &model->scroll[model->focus];
	int by = distance(model, code);

	if (!by && !aside)
		return false;
	if (model->focus == PANE_GRAPH)
		move_in_graph(model, code);
	else if (aside)
		keys_say(model, "left and right move in the objects only");
	else if (model->focus == PANE_WORDS)
		scroll_to(model, PANE_WORDS, scroll->top + by);
	else
		keys_cursor(model, model->focus, scroll->cursor + by);
	return true;
}
