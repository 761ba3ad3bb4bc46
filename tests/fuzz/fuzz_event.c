/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a stream of events, as a mad program might send them: parsed
 * line by line, said in words, folded into a graph, exported.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -I. \
 *       tests/fuzz/fuzz_event.c common/trace/[a-z]*.c common/rules/[a-z]*.c \
 *       -ljansson -libverbs -o build/fuzz_event
 *   build/fuzz_event -max_total_time=180
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace/event.h"
#include "common/trace/graph.h"

static void check(const struct graph *graph)
{
	uint32_t live = 0, counted = 0;

	for (int type = 0; type < RULES_OBJECTS; type++)
		counted += graph->live[type];
	for (uint32_t i = 0; i < graph->nodes; i++) {
		const struct graph_node *node = &graph->node[i];
		char mark[16];
		char *holders = graph_holders(graph, node, 3);

		live += node->state == GRAPH_LIVE;
		if (!holders ||
		    (graph_busy(node) && !graph_destroy_answer(graph, node)))
			abort();
		if ((node->children == 0) != (*holders == '\0'))
			abort();
		graph_mark(node, mark, sizeof(mark));
		free(holders);
	}
	if (live != counted)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct graph *graph = graph_new();

	if (!null)
		null = fopen("/dev/null", "w");
	if (!graph || !null)
		abort();
	while (size) {
		const uint8_t *newline = memchr(data, '\n', size);
		size_t length = newline ? (size_t)(newline - data) + 1 : size;
		char *why = NULL;
		struct event *event =
			event_parse((const char *)data, length, &why);

		if (event) {
			char *text = event_text(event);
			if (!text || why)
				abort();
			free(text);
			graph_apply(graph, event);
			event_free(event);
		} else if (!why) {
			abort();
		}
		free(why);
		data += length;
		size -= length;
	}
	check(graph);
	if (graph_dot(graph, null) || graph_json(graph, null) ||
	    graph_tree(graph, null))
		abort();
	graph_report(graph, null);
	graph_free(graph);
	return 0;
}
