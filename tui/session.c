/* SPDX-License-Identifier: MIT */
/*
 * A child process, its event channel, its output and its end, behind one
 * descriptor. Every dispatch tries all of them, in an order that matters:
 * first whether the child has ended, so that what it said before is still
 * read; then events; then output, so that what was printed before a stop is
 * there with the stop.
 */
#include "tui/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/trace/format.h"
#include "tui/session_private.h"

#define NOTES_MAX    100
#define EVENTS_MAX   500000
#define COUNT_BACK   4096
#define OUTPUT_READ  1024 /* bytes; as many lines at most */
#define OUTPUT_READS 256
/* A program may close its channel a moment before it ends: no note then. */
#define FAREWELL_MS  300
/* Without a pidfd the end is asked for this often. */
#define ASK_MS       50
/* Portions of events that are read when a program has ended, at most. */
#define LAST_READS   16

static void add_note(void *arg, const char *text)
{
	struct session *session = arg;
	char **note;
	char *copy;

	if (session->notes && !strcmp(session->note[session->notes - 1], text))
		return;
	copy = strdup(text);
	if (!copy)
		return;
	if (session->notes == NOTES_MAX) {
		free(session->note[0]);
		memmove(session->note, session->note + 1,
			(NOTES_MAX - 1) * sizeof(*note));
		session->notes--;
	} else {
		note = realloc(session->note,
			       (session->notes + 1) * sizeof(*note));
		if (!note) {
			free(copy);
			return;
		}
		session->note = note;
	}
	session->note[session->notes++] = copy;
	session->notes_ever++;
}

void session_set_running(struct session *session)
{
	struct session_private *own = session->private;

	session->state = SESSION_RUNNING;
	session->stopped_at = NULL;
	session->running_seconds = 0;
	clock_gettime(CLOCK_MONOTONIC, &own->since);
}

/* The history is full: what comes is dropped, and the program runs on. */
static void drop_event(struct session *session, struct event *event)
{
	struct session_private *own = session->private;

	if (!own->full)
		add_note(session, "the history is full; the program runs on "
				  "unrecorded");
	own->full = true;
	if (event->stop)
		channel_send(&own->channel, TRACE_CMD_RUN);
	event_free(event);
}

/*
 * A ret that only adds to the count of one before it. True when it was one,
 * and is used up. Such come soon after: not far back is looked.
 */
static bool add_to_count(struct session *session, struct event *ret)
{
	struct session_private *own = session->private;

	/* As nearly all are: no other of this seq can have come before. */
	if (ret->seq > own->newest_ret) {
		own->newest_ret = ret->seq;
		return false;
	}
	for (size_t i = 1; i <= session->events && i <= COUNT_BACK; i++) {
		struct event *before = session->event[session->events - i];

		if (before->kind != EVENT_RET || before->seq != ret->seq)
			continue;
		if (strcmp(before->call, ret->call))
			add_note(session, "an event was dropped: another call "
					  "has its seq");
		else
			before->count += ret->count;
		event_free(ret);
		return true;
	}
	return false;
}

static void take_event(void *arg, struct event *event)
{
	struct session *session = arg;
	struct session_private *own = session->private;

	if (event->kind == EVENT_RET && add_to_count(session, event))
		return;
	if (session->events == own->event_room) {
		size_t room = own->event_room ? 2 * own->event_room : 256;
		struct event **more = NULL;

		if (session->events < EVENTS_MAX)
			more = realloc(session->event, room * sizeof(*more));
		if (!more) {
			drop_event(session, event);
			return;
		}
		session->event = more;
		own->event_room = room;
	}
	session->event[session->events++] = event;
	if (event->kind == EVENT_HELLO)
		own->hello = true;
	if (event->stop &&
	    (event->kind == EVENT_ENTER || event->kind == EVENT_MARK)) {
		session->state = SESSION_STOPPED;
		session->stopped_at = event;
		session->running_seconds = 0;
		own->pausing = false;
	}
}

/* --- what happens ------------------------------------------------------- */

void session_watch(struct session *session, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(session->fd, EPOLL_CTL_ADD, fd, &event);
}

void session_timer(struct session *session, int milliseconds, bool repeats)
{
	struct session_private *own = session->private;
	struct timespec when = { .tv_nsec = milliseconds * 1000000L };
	struct itimerspec timer = { .it_value = when };

	if (repeats)
		timer.it_interval = when;
	if (own->timer < 0) {
		own->timer = timerfd_create(CLOCK_MONOTONIC,
					    TFD_NONBLOCK | TFD_CLOEXEC);
		if (own->timer < 0)
			return;
		session_watch(session, own->timer);
	}
	timerfd_settime(own->timer, 0, &timer, NULL);
}

static bool read_channel(struct session *session)
{
	struct session_private *own = session->private;
	struct channel_user user = { take_event, add_note, session };

	if (own->channel.fd < 0 || !channel_read(&own->channel, &user))
		return false;
	if (own->channel.fd < 0) {
		if (session->state == SESSION_STOPPED)
			session_set_running(session);
		if (!own->ended && own->pidfd >= 0)
			session_timer(session, FAREWELL_MS, false);
	}
	return true;
}

static bool read_output(struct session *session)
{
	struct session_private *own = session->private;
	struct output *output = &own->output;
	unsigned long before = output->lost + output->lines;
	char bytes[OUTPUT_READ];
	bool any = false;

	/* Never more lines than are kept: who dispatches sees them all. */
	for (int i = 0; i < OUTPUT_READS && own->output_fd >= 0 &&
			output->lost + output->lines - before <
				SESSION_LINES - OUTPUT_READ;
	     i++) {
		ssize_t got = read(own->output_fd, bytes, sizeof(bytes));

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		any = true;
		if (got <= 0) {
			close(own->output_fd);
			own->output_fd = -1;
			break;
		}
		output_feed(output, bytes, (size_t)got);
	}
	session->line = output->slot + output->first;
	session->lines = output->lines;
	session->lines_lost = output->lost;
	session->line_open = output->open;
	return any;
}

static void tick(struct session *session)
{
	struct session_private *own = session->private;
	struct timespec now;
	uint64_t expired;

	if (session->state == SESSION_RUNNING) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		session->running_seconds =
			(unsigned int)(now.tv_sec - own->since.tv_sec -
				       (now.tv_nsec < own->since.tv_nsec));
	}
	if (own->timer < 0 || own->ended ||
	    read(own->timer, &expired, sizeof(expired)) < 0)
		return;
	if (own->channel.fd < 0 && !own->alone) {
		own->alone = true;
		add_note(session, "the program closed its event channel and "
				  "runs on unwatched");
	}
}

/* Looks whether the child has ended, and leaves it unreaped (child_end()). */
static void look_for_end(struct session *session)
{
	struct session_private *own = session->private;
	siginfo_t info = { 0 };

	if (own->ended ||
	    waitid(P_PID, (id_t)session->pid, &info,
		   WEXITED | WNOHANG | WNOWAIT) ||
	    info.si_pid != session->pid)
		return;
	own->ended = true;
	own->end_status = info.si_status;
	own->end_killed = info.si_code != CLD_EXITED;
	/* Readable for ever now. */
	if (own->pidfd >= 0)
		close(own->pidfd);
	own->pidfd = -1;
	if (own->timer >= 0)
		close(own->timer);
	own->timer = -1;
}

/* The child has ended and all that it said was read. */
static void finish(struct session *session)
{
	struct session_private *own = session->private;

	channel_close(&own->channel);
	session->state = own->end_killed ? SESSION_KILLED : SESSION_EXITED;
	session->status = own->end_status;
	session->stopped_at = NULL;
	session->running_seconds = 0;
	if (!own->hello)
		add_note(session, "the program made no event: is it "
				  "statically linked, or set-user-ID?");
	if (own->end_killed) {
		char text[80];

		snprintf(text, sizeof(text), "the program was %s",
			 session_text(session));
		add_note(session, text);
	}
}

bool session_dispatch(struct session *session)
{
	struct session_private *own = session->private;
	enum session_state state = session->state;
	unsigned int seconds = session->running_seconds;
	unsigned long notes = session->notes_ever;
	bool running = state == SESSION_RUNNING || state == SESSION_STOPPED;
	bool said, printed;

	if (running)
		look_for_end(session);
	said = read_channel(session);
	printed = read_output(session);
	if (running && own->ended) {
		for (int i = 0; i < LAST_READS && read_channel(session); i++)
			;
		finish(session);
	}
	tick(session);
	return said || printed || state != session->state ||
	       seconds != session->running_seconds ||
	       notes != session->notes_ever;
}

bool session_wait(struct session *session, int milliseconds)
{
	struct pollfd wait = { .fd = session->fd, .events = POLLIN };

	poll(&wait, 1, milliseconds);
	return session_dispatch(session);
}

/* --- commands ------------------------------------------------------------ */

static void command(struct session *session, const char *line)
{
	struct session_private *own = session->private;

	if (session->state != SESSION_STOPPED)
		return;
	if (!channel_send(&own->channel, line))
		add_note(session, "the program does not take commands");
	session_set_running(session);
}

void session_go(struct session *session)
{
	command(session, TRACE_CMD_GO);
}

void session_run(struct session *session)
{
	command(session, TRACE_CMD_RUN);
}

void session_until(struct session *session, const char *what)
{
	char line[100];

	snprintf(line, sizeof(line), TRACE_CMD_UNTIL " %s", what);
	command(session, line);
}

void session_pause(struct session *session)
{
	struct session_private *own = session->private;

	/* Once is enough, and more would fill the socket of one that hangs. */
	if (session->state != SESSION_RUNNING || own->pausing)
		return;
	own->pausing = channel_send(&own->channel, TRACE_CMD_PAUSE);
}

const char *session_text(const struct session *session)
{
	static char text[40];
	const char *name;

	switch (session->state) {
	case SESSION_RUNNING:
		return "running";
	case SESSION_STOPPED:
		return "stopped";
	case SESSION_EXITED:
		snprintf(text, sizeof(text), "exited %d", session->status);
		return text;
	case SESSION_KILLED:
		name = sigabbrev_np(session->status);
		if (name)
			snprintf(text, sizeof(text), "killed SIG%s", name);
		else
			snprintf(text, sizeof(text), "killed by signal %d",
				 session->status);
		return text;
	default:
		return "?";
	}
}
