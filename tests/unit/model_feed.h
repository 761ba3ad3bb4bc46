/* SPDX-License-Identifier: MIT */
/*
 * A model over a run that is told line by line, with no program behind it:
 * for what only looks at the history. Nothing here may be sent a command.
 */
#ifndef MODEL_FEED_H
#define MODEL_FEED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/model.h"

#define AT(n) "\"at\":{\"file\":\"feed.c\",\"line\":" #n ",\"func\":\"main\"}"
#define MARK(seq, id)                                                \
	"{\"ev\":\"mark\",\"seq\":" #seq ",\"tid\":1,\"stop\":true," \
	"\"id\":\"" id "\"," AT(seq) "}"
#define ENTER(seq, call, args)                                        \
	"{\"ev\":\"enter\",\"seq\":" #seq ",\"tid\":1,\"stop\":true," \
	"\"call\":\"" call "\",\"args\":{" args "}," AT(seq) "}"
#define RET(seq, call, args, ret)                                          \
	"{\"ev\":\"ret\",\"seq\":" #seq ",\"tid\":1,\"call\":\"" call "\"" \
	",\"args\":{" args "},\"ok\":true,\"ret\":" ret                    \
	",\"err\":0,\"out\":{},\"count\":1," AT(seq) "}"
#define REFUSED(seq, call, args)                                           \
	"{\"ev\":\"ret\",\"seq\":" #seq ",\"tid\":1,\"call\":\"" call "\"" \
	",\"args\":{" args "},\"ok\":false,\"ret\":16,\"err\":16,"         \
	"\"out\":{},\"count\":1," AT(seq) "}"
#define HELLO "{\"v\":1,\"ev\":\"hello\",\"pid\":1,\"exe\":\"/x/feed\"}"
#define BYE   "{\"ev\":\"bye\"}"

struct model_feed {
	struct model model;
	struct session session;
	struct event *event[64];
	char *note[4];
};

/* Brings one more event; the program stands there if that is a stop. */
static inline void model_feed(struct model_feed *f, const char *line)
{
	char *why = NULL;
	struct event *event = event_parse(line, strlen(line), &why);

	if (!event) {
		fprintf(stderr, "%s\n%s\n", line, why);
		abort();
	}
	f->event[f->session.events++] = event;
	f->session.stopped_at = event->stop ? event : NULL;
	f->session.state = event->stop ? SESSION_STOPPED : SESSION_RUNNING;
	if (model_update(&f->model))
		abort();
}

static inline struct model_feed *
model_feed_new(const struct model_lesson *lesson, int lessons, int current)
{
	struct model_feed *f = calloc(1, sizeof(*f));

	if (!f || model_init(&f->model, lesson, lessons, "en"))
		abort();
	f->session.event = f->event;
	f->session.note = f->note;
	if (model_attach(&f->model, &f->session, "feed", current))
		abort();
	return f;
}

static inline void model_feed_free(struct model_feed *f)
{
	/* There is no program for model_free() to end. */
	f->model.session = NULL;
	model_free(&f->model);
	for (size_t i = 0; i < f->session.events; i++)
		event_free(f->event[i]);
	free(f);
}

#endif
