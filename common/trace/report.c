/* SPDX-License-Identifier: MIT */
/* What a program left behind, and where it was refused. */
#include "common/trace/graph.h"

#include <string.h>

#include "common/trace/graph_index.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put_place(const char *words, const char *file, int line, FILE *out)
{
	if (file)
		fprintf(out, "%s%s:%d", words, base_name(file), line);
}

static void put_refusal(const struct graph *graph,
			const struct graph_refusal *refusal, FILE *out)
{
	const struct graph_node *node = &graph->node[refusal->node];

	fprintf(out, "refused: %s(%s) = %s", refusal->call, node->id,
		refusal->err ? rules_errno_name(refusal->err) : "failure");
	if (refusal->count > 1)
		fprintf(out, " x%lu", refusal->count);
	put_place(" at ", refusal->file, refusal->line, out);
	if (*refusal->holders)
		fprintf(out, ", held by %s", refusal->holders);
	switch (node->state) {
	case GRAPH_DESTROYED:
		fputs(refusal->seq < node->died ? "; later destroyed"
						: "; already destroyed",
		      out);
		break;
	case GRAPH_LEAKED:
		fputs("; leaked", out);
		break;
	default:
		fputs("; still live", out);
	}
	fputc('\n', out);
}

uint32_t graph_report(const struct graph *graph, FILE *out)
{
	const struct graph_index *index = graph_index(graph);
	uint32_t leaked = 0;

	for (uint32_t i = 0; i < index->refusals; i++)
		put_refusal(graph, &index->refusal[i], out);
	for (uint32_t i = 0; i < graph->nodes; i++) {
		const struct graph_node *node = &graph->node[i];

		if (node->state != GRAPH_LEAKED)
			continue;
		leaked++;
		fprintf(out, "leaked: %s, %s", node->id,
			rules_objects[node->type].name);
		put_place(", made at ", node->file, node->line, out);
		fputc('\n', out);
	}
	return leaked;
}
