/* SPDX-License-Identifier: MIT */
/*
 * Going back in a long history, and frames with many objects.
 *
 * The alternative to taking events back is folding all of them again, as far
 * as the place that is asked for: both are timed in one run. A frame has no
 * alternative but the refresh of a screen, 16 ms. Time is of the processor, so
 * that what else runs on the machine does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/cells.h"
#include "tui/model.h"
#include "tui/view.h"

#define OBJECTS    100000
#define EVENTS     (2 * OBJECTS + 8)
#define MOVES      200
#define REFRESH_MS 16.0

static struct session session;
static struct event *events[EVENTS];

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void tell(const char *kind, unsigned long seq, const char *call,
		 const char *args, const char *rest)
{
	char line[512];
	int length = snprintf(line, sizeof(line),
			      "{\"ev\":\"%s\",\"seq\":%lu,\"tid\":1,"
			      "\"call\":\"%s\",\"args\":{%s}%s,\"at\":{"
			      "\"file\":\"a.c\",\"line\":9,\"func\":\"main\"}}",
			      kind, seq, call, args, rest);

	events[session.events] = event_parse(line, (size_t)length, NULL);
	if (!events[session.events++])
		abort();
}

static void call(const char *name, const char *args, const char *id)
{
	static unsigned long seq;
	char rest[128];

	snprintf(rest, sizeof(rest),
		 ",\"ok\":true,\"ret\":\"%s\",\"err\":0,\"out\":{\"handle\":1,"
		 "\"lkey\":7,\"rkey\":7}",
		 id);
	tell("enter", ++seq, name, args, "");
	tell("ret", seq, name, args, rest);
}

static void make_objects(void)
{
	char id[24];

	call("ibv_open_device", "\"device\":\"soft0\"", "ctx0");
	call("ibv_alloc_pd", "\"context\":\"ctx0\"", "pd0");
	for (int i = 0; i < OBJECTS; i++) {
		snprintf(id, sizeof(id), "mr%d", i);
		call("ibv_reg_mr", "\"pd\":\"pd0\",\"length\":4096", id);
	}
}

/* As it was done before: all of them, from the first. */
static double fold_again(size_t at)
{
	double began = now_ms();
	struct graph *graph = graph_new();

	for (size_t i = 0; i < at; i++)
		graph_apply(graph, events[i]);
	double took = now_ms() - began;
	graph_free(graph);
	return took;
}

static int ascending(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static void report(const char *what, double *took, int count, double beside,
		   const char *alternative)
{
	qsort(took, (size_t)count, sizeof(*took), ascending);
	double p50 = took[count / 2], p99 = took[count * 99 / 100];

	printf("%-34s p50 %8.3f ms  p99 %8.3f ms  %s %.1f ms: ratio %.4f\n",
	       what, p50, p99, alternative, beside, p99 / beside);
}

/* A key in the history and the frame after it; both parts of the time. */
static void walk(struct model *model, struct cells *cells, bool big_steps)
{
	static double moves[MOVES], frames[MOVES];
	double again = fold_again(session.events - 1);

	for (int i = 0; i < MOVES; i++) {
		double began = now_ms();
		size_t at = big_steps       ? (i % 2 ? session.events : 0)
			    : i < MOVES / 2 ? model_before(model)
					    : model_after(model);

		if (model_seek(model, at))
			abort();
		double moved = now_ms();
		view_draw(cells, model);
		moves[i] = moved - began;
		frames[i] = now_ms() - moved;
	}
	report(big_steps ? "beginning to present and back" : "one step", moves,
	       MOVES, again, "folded again");
	if (!big_steps)
		report("its frame, 100,002 objects", frames, MOVES, REFRESH_MS,
		       "a refresh");
}

int main(void)
{
	struct model model;
	struct cells *cells = cells_new(24, 80);

	if (!cells || model_init(&model, NULL, 0, "en"))
		return 1;
	make_objects();
	session.event = events;
	session.state = SESSION_EXITED;
	if (model_attach(&model, &session, "objects", -1))
		return 1;
	double began = now_ms();
	if (model_update(&model))
		return 1;
	printf("%zu events, %u objects, taken in in %.0f ms\n", session.events,
	       model.graph->nodes, now_ms() - began);
	walk(&model, cells, false);
	walk(&model, cells, true);
	model.tree = true;
	puts("as a tree:");
	walk(&model, cells, false);
	model.session = NULL; /* no program is behind it */
	model_free(&model);
	cells_free(cells);
	for (size_t i = 0; i < session.events; i++)
		event_free(events[i]);
	return 0;
}
