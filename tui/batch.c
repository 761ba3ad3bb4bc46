/* SPDX-License-Identifier: MIT */
/*
 * Steps a program from call to call without anybody looking. A call is
 * printed once it is sure that it is over (repeated ones are counted until
 * another comes), and what the program wrote comes where it wrote it.
 */
#include "tui/batch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/trace/graph.h"
#include "common/words/words.h"
#include "tui/start.h"

/* Where the text of a call begins. */
#define PLACE_COLUMNS 20
/* Portions of output that forks of an ended program are listened to. */
#define LAST_WAITS    64
/* How far back a call is looked for that did not return. */
#define LAST_EVENTS   256

struct batch {
	struct session *session;
	const char *lesson, *lang;
	struct graph *graph;
	size_t printed;      /* events */
	unsigned long count; /* of the last one, as it was printed */
	unsigned long lines; /* of output, with those lost */
	size_t notes;
	bool no_memory;
};

static void put_place(const struct event *event)
{
	const char *slash = event->file ? strrchr(event->file, '/') : NULL;
	int used;

	if (event->file)
		used = printf("%s:%d", slash ? slash + 1 : event->file,
			      event->line);
	else
		used = printf("%s", event->func ? event->func : "?");
	printf("%*s", used < PLACE_COLUMNS ? PLACE_COLUMNS - used : 1, "");
}

static void put_call(const struct event *event)
{
	char *text = event_text(event);

	put_place(event);
	printf("%s\n", text ? text : event->call);
	free(text);
}

static void put_mark(const struct batch *batch, const struct event *mark)
{
	const struct words_section *section =
		batch->lesson
			? words_find(batch->lang, batch->lesson, mark->call)
			: NULL;

	if (section)
		printf("\n== %s: %s\n", mark->call, section->title);
	else
		printf("\n== %s\n", mark->call);
}

static void put_event(struct batch *batch, const struct event *event)
{
	switch (event->kind) {
	case EVENT_HELLO:
		printf("-- %s, pid %d\n", event->exe ? event->exe : "?",
		       (int)event->pid);
		break;
	case EVENT_MARK:
		put_mark(batch, event);
		break;
	case EVENT_RET:
		put_call(event);
		batch->count = event->count;
		break;
	default:
		break;
	}
}

/* Prints the events up to `end`, and what was counted since. */
static void put_events(struct batch *batch, size_t end)
{
	struct event **event = batch->session->event;

	if (batch->printed && batch->printed < end &&
	    event[batch->printed - 1]->kind == EVENT_RET &&
	    event[batch->printed - 1]->count > batch->count)
		put_call(event[batch->printed - 1]);
	for (; batch->printed < end; batch->printed++) {
		/* One that cannot be is ignored, as on the screen. */
		if (graph_apply(batch->graph, event[batch->printed]) == ENOMEM)
			batch->no_memory = true;
		put_event(batch, event[batch->printed]);
	}
}

static void put_output(struct batch *batch)
{
	const struct session *session = batch->session;
	unsigned long all = session->lines_lost + session->lines;

	/* A line without its newline may grow. */
	if (session->line_open && session->lines)
		all--;
	if (batch->lines < session->lines_lost) {
		printf("| (%lu lines were lost)\n",
		       session->lines_lost - batch->lines);
		batch->lines = session->lines_lost;
	}
	for (; batch->lines < all; batch->lines++)
		printf("| %s\n",
		       session->line[batch->lines - session->lines_lost]);
}

static void put_notes(struct batch *batch)
{
	const struct session *session = batch->session;
	unsigned long lost = session->notes_ever - session->notes;

	if (batch->notes < lost)
		batch->notes = lost;
	for (; batch->notes < session->notes_ever; batch->notes++)
		printf("note: %s\n", session->note[batch->notes - lost]);
}

static bool has_ended(const struct session *session)
{
	return session->state == SESSION_EXITED ||
	       session->state == SESSION_KILLED;
}

static bool has_output(const struct batch *batch)
{
	const struct session *session = batch->session;

	return session->lines_lost + session->lines >
	       batch->lines + session->line_open;
}

/*
 * What has come. Of the events, the last waits: what the program wrote before
 * it stopped comes before the mark it stopped at, and calls may still be
 * added to a ret, unless the program wrote something after it.
 */
static void put_news(struct batch *batch)
{
	struct session *session = batch->session;
	size_t end = session->events;
	bool is_over = has_ended(session) ||
		       (session->state == SESSION_RUNNING && has_output(batch));

	if (end && !is_over)
		end--;
	put_events(batch, end);
	put_output(batch);
	put_notes(batch);
	if (session->state == SESSION_STOPPED)
		put_events(batch, session->events);
	fflush(stdout);
}

/* --- the end -------------------------------------------------------------- */

/* Calls that were entered and never returned. */
static void put_unfinished(const struct batch *batch)
{
	const struct session *session = batch->session;

	size_t from = session->events > LAST_EVENTS
			      ? session->events - LAST_EVENTS
			      : 0;

	for (size_t i = from; i < session->events; i++) {
		const struct event *enter = session->event[i];
		bool returned = false;

		if (enter->kind != EVENT_ENTER)
			continue;
		for (size_t k = i + 1; k < session->events && !returned; k++)
			returned = session->event[k]->kind == EVENT_RET &&
				   session->event[k]->seq == enter->seq;
		if (!returned) {
			put_call(enter);
			printf("note: this call did not return\n");
		}
	}
}

static void put_report(const struct batch *batch)
{
	const struct graph *graph = batch->graph;
	unsigned long created = 0, left;

	printf("\n");
	left = graph_report(graph, stdout);
	for (uint32_t i = 0; i < graph->nodes; i++)
		created += graph->node[i].state == GRAPH_DESTROYED ||
			   graph->node[i].state == GRAPH_LEAKED;
	if (!created)
		printf("no object was created\n");
	else if (!left)
		printf("every created object destroyed: %lu of %lu\n", created,
		       created);
	else
		printf("%lu of %lu created objects not destroyed\n", left,
		       created);
	printf("the program: %s\n", session_text(batch->session));
}

static void put_end(struct batch *batch)
{
	static const struct event end = { .kind = EVENT_BYE };
	struct session *session = batch->session;

	/* Forks may hold the output open: what is there now is all. */
	for (int i = 0; i < LAST_WAITS && session_wait(session, 0); i++)
		put_news(batch);
	session->line_open = false;
	put_news(batch);
	put_unfinished(batch);
	/* A program that was killed did not say so itself. */
	if (graph_apply(batch->graph, &end) == ENOMEM || batch->no_memory)
		printf("note: no memory for all objects\n");
	put_report(batch);
}

/* Waits for the program or a signal; gives the signal, or 0. */
static int await(const struct session *session, int signals)
{
	struct signalfd_siginfo info;
	struct pollfd wait[] = { { .fd = session->fd, .events = POLLIN },
				 { .fd = signals, .events = POLLIN } };

	poll(wait, 2, -1);
	if (wait[1].revents &&
	    read(signals, &info, sizeof(info)) == sizeof(info))
		return (int)info.ssi_signo;
	return 0;
}

static int step_to_end(struct batch *batch, int signals)
{
	struct session *session = batch->session;

	while (!has_ended(session)) {
		int signal_number = await(session, signals);

		if (signal_number)
			return 128 + signal_number;
		session_dispatch(session);
		put_news(batch);
		if (ferror(stdout))
			return 128 + SIGPIPE;
		session_go(session);
	}
	put_end(batch);
	return session->state == SESSION_KILLED ? 128 + session->status
						: session->status;
}

int batch_run(struct session *session, const char *lesson, const char *lang)
{
	struct batch batch = { .session = session,
			       .lesson = lesson,
			       .lang = lang,
			       .graph = graph_new() };
	int signals = start_ending_signals();
	int status;

	/* A reader that has gone is seen by the error of a write. */
	signal(SIGPIPE, SIG_IGN);
	if (!batch.graph || signals < 0) {
		fprintf(stderr, "verbstep: cannot watch: %s\n",
			strerror(errno));
		status = 1;
	} else {
		status = step_to_end(&batch, signals);
	}
	if (signals >= 0)
		close(signals);
	if (batch.graph)
		graph_free(batch.graph);
	session_free(session);
	if (fflush(stdout) && status == 0)
		status = 1;
	return status;
}
