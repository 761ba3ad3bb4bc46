/* SPDX-License-Identifier: MIT */
/*
 * The graph pane: boxes and buses as layout.h places them, or the objects as
 * an indented tree. What the next call is given is marked with '>' in place
 * of a box's bracket; what the last call made is bold, what it destroyed a
 * dim ghost.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/layout.h"

/* True when an argument of the call that comes next is this object. */
static bool is_next(const struct model *model, const struct graph_node *node)
{
	const struct event *next = model_next(model);

	if (!next || next->kind != EVENT_ENTER || node->state != GRAPH_LIVE)
		return false;
	for (int i = 0; i < next->args.count; i++)
		if (!strcmp(next->args.field[i].value, node->id))
			return true;
	return false;
}

static unsigned int node_style(const struct model *model,
			       const struct graph_node *node)
{
	unsigned int style = 0;

	switch (node->state) {
	case GRAPH_DESTROYED:
		style = STYLE_DIM;
		break;
	case GRAPH_LEAKED:
	case GRAPH_FAILED:
		style = STYLE_BOLD | STYLE_BAD;
		break;
	case GRAPH_LIVE:
		if (node->born == model_ghosts_from(model))
			style = STYLE_BOLD | STYLE_GOOD;
		else if (is_next(model, node))
			style = STYLE_UNDERLINE | STYLE_ACCENT;
		break;
	default:
		break;
	}
	if (node == model_selected(model))
		style |= STYLE_REVERSE;
	return style;
}

/* The box that a node is drawn in, or NULL. */
static const struct layout_box *box_of(const struct layout *layout,
				       const struct model *model,
				       const struct graph_node *node)
{
	uint32_t box =
		node ? layout->box_of[node - model->graph->node] : UINT32_MAX;

	return box == UINT32_MAX ? NULL : &layout->box[box];
}

static void draw_box(struct cells *cells, const struct cells_area *area,
		     int top, const struct model *model,
		     const struct layout_box *box)
{
	unsigned int style = node_style(model, &model->graph->node[box->node]);

	cells_text(cells, area, box->row - top, box->column, style, box->label);
}

/* What the next call is given, also where one box stands for many. */
static void mark_next(struct cells *cells, const struct cells_area *area,
		      int top, const struct model *model,
		      const struct layout *layout)
{
	const struct event *next = model_next(model);

	for (int i = 0; next && i < next->args.count; i++) {
		const char *id = next->args.field[i].value;
		const struct graph_node *node =
			rules_object_of_id(id) == RULES_NONE
				? NULL
				: graph_find(model->graph, id);
		const struct layout_box *box =
			node && is_next(model, node)
				? box_of(layout, model, node)
				: NULL;
		if (!box)
			continue;
		cells_text(cells, area, box->row - top, box->column, STYLE_BOLD,
			   ">");
		cells_style(cells, area, box->row - top, box->column,
			    cells_width(box->label),
			    STYLE_UNDERLINE | STYLE_ACCENT);
	}
}

/* The first row to draw so that the selected object is seen. */
static int graph_top(struct model *model, int rows, int length, int selected)
{
	struct model_scroll *scroll = &model->scroll[PANE_GRAPH];
	int most = length > rows ? length - rows : 0;

	model->length[PANE_GRAPH] = length;
	if (selected >= 0 && selected < scroll->top)
		scroll->top = selected;
	if (selected >= 0 && selected >= scroll->top + rows)
		scroll->top = selected - rows + 1;
	if (scroll->top > most)
		scroll->top = most;
	if (scroll->top < 0)
		scroll->top = 0;
	return scroll->top;
}

static void draw_lines(struct cells *cells, const struct cells_area *area,
		       int top, const struct layout *layout)
{
	for (int i = 0; i < layout->lines; i++) {
		const struct layout_line *line = &layout->line[i];
		int row = line->row - top;
		if (line->vertical)
			cells_vline(cells, area, line->column, row,
				    row + line->length - 1, 0);
		else
			cells_hline(cells, area, row, line->column,
				    line->column + line->length - 1, 0);
	}
}

static void draw_boxes(struct cells *cells, const struct cells_area *area,
		       struct model *model)
{
	struct layout layout;
	const struct graph_node *node = model_selected(model);
	int selected = -1;

	if (layout_graph(&layout, model->graph, area->rows, area->columns,
			 model->expanded, model_ghosts_from(model)) != 0) {
		cells_text(cells, area, 0, 0, STYLE_BOLD,
			   "no memory to draw the graph");
		return;
	}
	const struct layout_box *box = box_of(&layout, model, node);
	if (box)
		selected = box->row;
	int top = graph_top(model, area->rows, layout.rows, selected);
	draw_lines(cells, area, top, &layout);
	for (int i = 0; i < layout.boxes; i++)
		draw_box(cells, area, top, model, &layout.box[i]);
	mark_next(cells, area, top, model, &layout);
	if (box)
		cells_style(cells, area, box->row - top, box->column,
			    cells_width(box->label), STYLE_REVERSE);
	layout_free(&layout);
}

/* What tells one object of a type from another, in a few words. */
static const char *node_detail(const struct graph_node *node)
{
	static const char *const names[] = { "state", "lkey", "cqe", "name",
					     "device" };

	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
		for (int i = 0; i < node->attrs; i++)
			if (!strcmp(node->attr[i].name, names[k]))
				return node->attr[i].value;
	return "";
}

static const char *node_detail_name(const struct graph_node *node)
{
	return node->type == RULES_MR   ? "lkey "
	       : node->type == RULES_CQ ? "cqe "
					: "";
}

static void draw_tree(struct cells *cells, const struct view_plan *plan,
		      const struct cells_area *area, struct model *model)
{
	int rows, selected = -1;
	struct model_tree_row *tree = model_tree(model, &rows);
	const struct graph_node *chosen = model_selected(model);

	for (int i = 0; i < rows; i++)
		if (&model->graph->node[tree[i].node] == chosen)
			selected = i;
	int top = graph_top(model, area->rows, rows, selected);
	for (int row = 0; row < area->rows && top + row < rows; row++) {
		const struct graph_node *node =
			&model->graph->node[tree[top + row].node];
		char mark[16];
		int column = 2 * tree[top + row].depth;
		graph_mark(node, mark, sizeof(mark));
		if (is_next(model, node))
			cells_text(cells, &plan->pane[PANE_GRAPH], row, column,
				   STYLE_BOLD, ">");
		column += cells_printf(cells, area, row, column,
				       node_style(model, node), "%s%s%s",
				       node->id, *mark ? " " : "", mark);
		column = column < 16 ? 16 : column + 2;
		column += cells_printf(cells, area, row, column, STYLE_DIM,
				       "%s  ", rules_objects[node->type].name);
		const char *detail = node_detail(node);
		if (*detail)
			cells_printf(cells, area, row, column, 0, "%s%s",
				     node_detail_name(node), detail);
	}
	free(tree);
}

/* "1 ctx  2 pd  3 mr": what the program made, by type. */
static void made_text(const uint32_t made[RULES_OBJECTS], char *out,
		      size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int type = 0; type < RULES_OBJECTS && used < size; type++)
		if (made[type])
			used += (size_t)snprintf(out + used, size - used,
						 "%s%u %s", used ? "  " : "",
						 made[type],
						 rules_objects[type].prefix);
}

/*
 * In place of the objects, of which none is left: what became of them, and
 * where to go from here.
 */
static void draw_summary(struct cells *cells, const struct cells_area *area,
			 const struct model *model)
{
	const struct graph *graph = model->graph;
	uint32_t made[RULES_OBJECTS] = { 0 }, all = 0;
	size_t refused = 0;
	char text[128];
	int row = area->rows > 7 ? (area->rows - 6) / 2 : 0;

	for (uint32_t i = 0; i < graph->nodes; i++) {
		bool real = graph->node[i].state == GRAPH_DESTROYED;

		made[graph->node[i].type] += real;
		all += real;
	}
	for (size_t i = 0; i < model->calls; i++)
		refused += !model->session->event[model->call[i]]->ok;
	cells_printf(cells, area, row, 0, STYLE_BOLD, "The end: %s",
		     session_text(model->session));
	made_text(made, text, sizeof(text));
	row += area->rows > 5 ? 2 : 1;
	cells_printf(cells, area, row++, 0, 0, "made       %-4u %s", all, text);
	cells_printf(cells, area, row++, 0, STYLE_GOOD, "destroyed  %-4u%s",
		     all, all ? " every one" : "");
	cells_printf(cells, area, row++, 0, 0, "refused    %-4zu %s", refused,
		     refused == 1 ? "call" : "calls");
	if (model->current >= 0 && model->current + 1 < model->lessons)
		cells_printf(cells, area, area->rows > 5 ? row + 1 : row, 0, 0,
			     "> goes on with %s",
			     model->lesson[model->current + 1].name);
}

void view_graph(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	/* A margin, so that no box touches a rule. */
	struct cells_area pane = plan->pane[PANE_GRAPH], *area = &pane;

	pane.column += 1;
	pane.columns -= 2;
	if (view_is_over(model))
		draw_summary(cells, area, model);
	else if (!model->graph || model->graph->nodes == 0)
		cells_text(cells, area, area->rows / 2, 0, STYLE_DIM,
			   "No object exists yet.");
	else if (plan->tree)
		draw_tree(cells, plan, area, model);
	else
		draw_boxes(cells, area, model);
}
