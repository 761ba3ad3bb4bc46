/* SPDX-License-Identifier: MIT */
/*
 * The stepper's graph for a test to compare with: reads events on standard
 * input, a line each, and folds them. For a line "?" it prints, as one line of
 * JSON, how many PDs, CQs and MRs live and the number and state of each QP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace/graph.h"

static const char *attr(const struct graph_node *node, const char *name)
{
	for (int i = 0; i < node->attrs; i++)
		if (!strcmp(node->attr[i].name, name))
			return node->attr[i].value;
	return NULL;
}

static void print_qps(const struct graph *graph)
{
	const char *comma = "";

	for (uint32_t i = 0; i < graph->nodes; i++) {
		const struct graph_node *node = &graph->node[i];
		const char *state = attr(node, "state");
		const char *number = attr(node, "qp_num");

		if (node->type != RULES_QP || node->state != GRAPH_LIVE)
			continue;
		printf("%s[%s, \"%s\"]", comma, number ? number : "0",
		       state ? state : "RESET");
		comma = ", ";
	}
}

static void answer(const struct graph *graph)
{
	printf("{\"pd\": %u, \"cq\": %u, \"mr\": %u, \"qp\": [",
	       graph->live[RULES_PD], graph->live[RULES_CQ],
	       graph->live[RULES_MR]);
	print_qps(graph);
	printf("]}\n");
	fflush(stdout);
}

/* 0, or 1 with a word on standard error. */
static int fold(struct graph *graph, const char *line, size_t length)
{
	char *why = NULL;
	struct event *event = event_parse(line, length, &why);
	int err;

	if (!event) {
		fprintf(stderr, "graph: %s\n", why ? why : "out of memory");
		free(why);
		return 1;
	}
	err = graph_apply(graph, event);
	if (err)
		fprintf(stderr, "graph: %s: %.*s\n", strerror(err), (int)length,
			line);
	event_free(event);
	return err != 0;
}

int main(void)
{
	struct graph *graph = graph_new();
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	int bad = !graph;

	while (!bad && (length = getline(&line, &size, stdin)) > 0) {
		if (!strcmp(line, "?\n"))
			answer(graph);
		else
			bad = fold(graph, line, (size_t)length);
	}
	free(line);
	graph_free(graph);
	return bad;
}
