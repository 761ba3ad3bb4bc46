/* SPDX-License-Identifier: MIT */
/*
 * Graphs for tests, made as the stepper makes them: from lines of the event
 * format. Args and outs are the inside of a JSON object.
 */
#ifndef TRACE_FEED_H
#define TRACE_FEED_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace/graph.h"

static unsigned long feed_seq; /* reset by each test that looks at it */

/* Applies one line; returns what graph_apply() does. */
static inline int feed(struct graph *graph, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static inline int feed(struct graph *graph, const char *format, ...)
{
	char line[4096], *why = NULL;
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	struct event *event = event_parse(line, strlen(line), &why);
	if (!event) {
		fprintf(stderr, "%s\n%s\n", line, why);
		abort();
	}
	int err = graph_apply(graph, event);
	event_free(event);
	return err;
}

static inline int feed_enter(struct graph *graph, const char *call,
			     const char *args)
{
	feed_seq++;
	return feed(graph,
		    "{\"ev\":\"enter\",\"seq\":%lu,\"tid\":1,\"call\":\"%s\","
		    "\"args\":{%s},\"at\":{\"file\":\"src/a.c\",\"line\":%lu}}",
		    feed_seq, call, args, feed_seq);
}

/* The answer to the call entered last. */
static inline int feed_ret(struct graph *graph, const char *call,
			   const char *args, const char *ret, int err,
			   const char *out)
{
	return feed(graph,
		    "{\"ev\":\"ret\",\"seq\":%lu,\"tid\":1,\"call\":\"%s\","
		    "\"args\":{%s},\"ok\":%s,\"err\":%d,\"ret\":\"%s\","
		    "\"out\":{%s},\"at\":{\"file\":\"src/a.c\",\"line\":%lu}}",
		    feed_seq, call, args, err ? "false" : "true", err, ret, out,
		    feed_seq);
}

/* A whole call: enter and ret. */
static inline int feed_call(struct graph *graph, const char *call,
			    const char *args, const char *ret, int err,
			    const char *out)
{
	int bad = feed_enter(graph, call, args);

	return bad ? bad : feed_ret(graph, call, args, ret, err, out);
}

/* Shorthands: objects made with others. */
static inline int feed_make(struct graph *graph, const char *call,
			    const char *id, const char *args)
{
	return feed_call(graph, call, args, id, 0, "");
}

#define FEED_CTX(g, id) \
	feed_make(g, "ibv_open_device", id, "\"device\":\"soft0\"")
#define FEED_PD(g, id, ctx) \
	feed_make(g, "ibv_alloc_pd", id, "\"context\":\"" ctx "\"")
#define FEED_MR(g, id, pd) \
	feed_make(g, "ibv_reg_mr", id, "\"pd\":\"" pd "\",\"length\":4096")
#define FEED_CQ(g, id, ctx) \
	feed_make(g, "ibv_create_cq", id, "\"context\":\"" ctx "\",\"cqe\":16")
#define FEED_CHANNEL(g, id, ctx) \
	feed_make(g, "ibv_create_comp_channel", id, "\"context\":\"" ctx "\"")
#define FEED_QP(g, id, pd, send, recv)                    \
	feed_make(g, "ibv_create_qp", id,                 \
		  "\"pd\":\"" pd "\",\"send_cq\":\"" send \
		  "\",\"recv_cq\":\"" recv "\"")
#define FEED_DESTROY(g, call, arg, id) \
	feed_call(g, call, "\"" arg "\":\"" id "\"", "0", 0, "")

#endif
