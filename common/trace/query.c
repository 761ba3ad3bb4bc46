/* SPDX-License-Identifier: MIT */
/* Questions to a graph. They change nothing. */
#include "common/trace/graph.h"

#include <stdlib.h>
#include <string.h>

#include "common/trace/graph_index.h"

const struct graph_node *graph_find(const struct graph *graph, const char *id)
{
	uint32_t number = index_find_id(graph, id);

	return number == GRAPH_NONE ? NULL : &graph->node[number];
}

static bool is_of_second_type(const struct graph_node *window)
{
	for (int i = 0; i < window->attrs; i++)
		if (!strcmp(window->attr[i].name, "type"))
			return !strcmp(window->attr[i].value, "IBV_MW_TYPE_2");
	return true;
}

bool graph_unsure(const struct graph *graph, const struct graph_node *node)
{
	struct graph_index *index = graph_index(graph);

	if (node->type != RULES_MR || node->state != GRAPH_LIVE ||
	    !graph->live[RULES_MW])
		return false;
	for (int i = 0; i < node->parents; i++) {
		uint32_t edge = index->links[node->parent[i]].first;

		while (edge != GRAPH_NONE) {
			uint32_t child = edge / GRAPH_PARENTS;
			const struct graph_node *window = &graph->node[child];

			if (window->type == RULES_MW &&
			    window->state == GRAPH_LIVE &&
			    is_of_second_type(window))
				return true;
			edge = index->links[child].next[edge % GRAPH_PARENTS];
		}
	}
	return false;
}

int graph_destroy_answer(const struct graph *graph,
			 const struct graph_node *node)
{
	struct graph_index *index = graph_index(graph);
	uint32_t edge = index->links[node - graph->node].first;

	if (!graph_busy(node))
		return 0;
	while (edge != GRAPH_NONE) {
		uint32_t child = edge / GRAPH_PARENTS;
		const struct rules_edge *rule =
			rules_edge_find(node->type, graph->node[child].type);

		if (rule && rule->err)
			return rule->err;
		edge = index->links[child].next[edge % GRAPH_PARENTS];
	}
	return 0;
}

char *graph_holders(const struct graph *graph, const struct graph_node *node,
		    int most)
{
	struct graph_index *index = graph_index(graph);
	uint32_t edge = index->links[node - graph->node].first;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (int i = 0; edge != GRAPH_NONE; i++) {
		uint32_t child = edge / GRAPH_PARENTS;

		if (i == most) {
			fputs(i ? ", ..." : "...", out);
			break;
		}
		fprintf(out, "%s%s", i ? ", " : "", graph->node[child].id);
		edge = index->links[child].next[edge % GRAPH_PARENTS];
	}
	bool bad = ferror(out);
	if (fclose(out) || bad) {
		free(text);
		return NULL;
	}
	return text;
}

void graph_mark(const struct graph_node *node, char *out, size_t size)
{
	static const char *const marks[] = {
		[GRAPH_CREATING] = "+",  [GRAPH_LIVE] = "",
		[GRAPH_DESTROYED] = "x", [GRAPH_LEAKED] = "L",
		[GRAPH_FAILED] = "E",
	};

	if (graph_busy(node))
		snprintf(out, size, "!%u", node->dependents);
	else
		snprintf(out, size, "%s", marks[node->state]);
}
