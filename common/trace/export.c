/* SPDX-License-Identifier: MIT */
/* A graph for other programs and for a terminal: DOT, JSON, a tree. */
#include "common/trace/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "common/trace/graph_index.h"

static const char *state_name(enum graph_state state)
{
	switch (state) {
	case GRAPH_CREATING:
		return "creating";
	case GRAPH_LIVE:
		return "live";
	case GRAPH_DESTROYED:
		return "destroyed";
	case GRAPH_LEAKED:
		return "leaked";
	case GRAPH_FAILED:
		return "failed";
	default:
		return "unknown";
	}
}

static const char *attr(const struct graph_node *node, const char *name)
{
	for (int i = 0; i < node->attrs; i++) {
		if (!strcmp(node->attr[i].name, name))
			return node->attr[i].value;
	}
	return NULL;
}

/* 0 when everything was written, else -1 with errno. */
static int written(FILE *out)
{
	if (fflush(out) || ferror(out)) {
		if (!errno)
			errno = EIO;
		return -1;
	}
	return 0;
}

/* Text inside a DOT string. */
static void dot_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
	}
}

static void dot_node(const struct graph *graph, uint32_t i, FILE *out)
{
	const struct graph_node *node = &graph->node[i];
	const char *state = attr(node, "state");

	fprintf(out, "\tn%u [label=\"%s", i, node->id);
	if (node->type == RULES_QP && state) {
		fputc(' ', out);
		dot_text(state, out);
	}
	if (graph_busy(node))
		fprintf(out, "\\nbusy: %u", node->dependents);
	else if (node->state != GRAPH_LIVE)
		fprintf(out, "\\n%s", state_name(node->state));
	fputs("\"", out);
	if (node->type == RULES_QP)
		fputs(", shape=ellipse", out);
	if (node->state == GRAPH_DESTROYED || node->state == GRAPH_FAILED)
		fputs(", style=dotted", out);
	else if (node->state == GRAPH_CREATING)
		fputs(", style=dashed", out);
	else if (node->state == GRAPH_LEAKED)
		fputs(", style=filled", out);
	fputs("];\n", out);
	for (int k = 0; k < node->parents; k++) {
		uint32_t parent = node->parent[k];
		const struct rules_edge *edge =
			rules_edge_find(graph->node[parent].type, node->type);

		fprintf(out, "\tn%u -> n%u", parent, i);
		if (node->refs[k] > 1)
			fprintf(out, " [label=\"x%u\"]", node->refs[k]);
		else if (edge && !edge->err)
			fputs(" [style=dashed]", out);
		fputs(";\n", out);
	}
}

int graph_dot(const struct graph *graph, FILE *out)
{
	errno = 0;
	fputs("digraph verbs {\n\tnode [shape=box];\n", out);
	for (uint32_t i = 0; i < graph->nodes; i++)
		dot_node(graph, i, out);
	fputs("}\n", out);
	return written(out);
}

/* A new reference, NULL when memory is out. */
static json_t *json_node(const struct graph *graph,
			 const struct graph_node *node)
{
	json_t *parents = json_array(), *attrs = json_object();
	json_t *at = node->file ? json_pack("{s:s, s:i}", "file", node->file,
					    "line", node->line)
				: json_null();
	bool bad = false;

	for (int i = 0; i < node->parents; i++)
		bad |= json_array_append_new(
			       parents,
			       json_pack("{s:s, s:i}", "id",
					 graph->node[node->parent[i]].id,
					 "refs", (int)node->refs[i])) != 0;
	for (int i = 0; i < node->attrs; i++)
		bad |= json_object_set_new(attrs, node->attr[i].name,
					   json_string(node->attr[i].value)) !=
		       0;
	json_t *root = json_pack(
		"{s:s, s:s, s:s, s:o, s:I, s:I, s:o, s:I, s:I, s:o}", "id",
		node->id, "type", rules_objects[node->type].prefix, "state",
		state_name(node->state), "parents", parents, "dependents",
		(json_int_t)node->dependents, "children",
		(json_int_t)node->children, "at", at, "born",
		(json_int_t)node->born, "died", (json_int_t)node->died, "attrs",
		attrs);
	if (bad) {
		json_decref(root);
		return NULL;
	}
	return root;
}

int graph_json(const struct graph *graph, FILE *out)
{
	errno = 0;
	fputs("{\"v\":1,\"nodes\":[", out);
	for (uint32_t i = 0; i < graph->nodes; i++) {
		json_t *node = json_node(graph, &graph->node[i]);
		if (!node) {
			errno = ENOMEM;
			return -1;
		}
		fputs(i ? ",\n" : "\n", out);
		int bad = json_dumpf(node, out, JSON_COMPACT);
		json_decref(node);
		if (bad) {
			if (!errno)
				errno = EIO;
			return -1;
		}
	}
	fputs("\n]}\n", out);
	return written(out);
}

static void tree_line(const struct graph *graph, const struct graph_node *node,
		      int depth, FILE *out)
{
	const char *state = attr(node, "state");
	const char *device = attr(node, "device");
	char mark[16];

	graph_mark(node, mark, sizeof(mark));
	fprintf(out, "%*s%s", 2 * depth, "", node->id);
	if (node->type == RULES_QP && state)
		fprintf(out, " %s", state);
	if (node->type == RULES_CONTEXT && device)
		fprintf(out, " %s", device);
	if (*mark)
		fprintf(out, " %s", mark);
	for (int i = 1; i < node->parents; i++) {
		fprintf(out, "%s%s", i == 1 ? "  uses " : ", ",
			graph->node[node->parent[i]].id);
		if (node->refs[i] > 1)
			fprintf(out, " x%u", node->refs[i]);
	}
	fputc('\n', out);
}

/*
 * Each node stands under the first of its parents and names the others. A
 * parent is not always older than its child: windows are bound later.
 */
int graph_tree(const struct graph *graph, FILE *out)
{
	/* Of each node: its first child, and the next of its parent's. */
	uint32_t *first = malloc((graph->nodes + 1) * sizeof(*first));
	uint32_t *next = malloc((graph->nodes + 1) * sizeof(*next));
	uint32_t roots = GRAPH_NONE;
	int depth = 0;

	if (!first || !next) {
		free(first);
		free(next);
		errno = ENOMEM;
		return -1;
	}
	errno = 0;
	for (uint32_t i = 0; i < graph->nodes; i++)
		first[i] = GRAPH_NONE;
	for (uint32_t i = graph->nodes; i-- > 0;) {
		const struct graph_node *node = &graph->node[i];
		uint32_t *list =
			node->parents ? &first[node->parent[0]] : &roots;
		next[i] = *list;
		*list = i;
	}
	for (uint32_t i = roots; i != GRAPH_NONE;) {
		const struct graph_node *node = &graph->node[i];

		tree_line(graph, node, depth, out);
		if (first[i] != GRAPH_NONE) {
			i = first[i];
			depth++;
			continue;
		}
		while (next[i] == GRAPH_NONE && graph->node[i].parents) {
			i = graph->node[i].parent[0];
			depth--;
		}
		i = next[i];
	}
	free(first);
	free(next);
	return written(out);
}
