/* SPDX-License-Identifier: MIT */
/*
 * Lines of events from a program that may be broken or mean harm. What is
 * read at once, what is kept, and how long nonsense is listened to is bounded.
 */
#include "tui/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/trace/format.h"

#define READS_AT_ONCE 4
#define SKIP_MAX      (1024 * 1024)

int channel_init(struct channel *channel, int fd)
{
	memset(channel, 0, sizeof(*channel));
	channel->buffer = malloc(TRACE_LINE_MAX);
	if (!channel->buffer)
		return ENOMEM;
	channel->fd = fd;
	return 0;
}

void channel_close(struct channel *channel)
{
	if (channel->fd >= 0)
		close(channel->fd);
	channel->fd = -1;
	channel->used = 0;
	channel->skipped = 0;
}

void channel_free(struct channel *channel)
{
	channel_close(channel);
	free(channel->buffer);
	channel->buffer = NULL;
}

/* Whether `seq` can be: from 1, once each, no older than the window. */
static bool window_take(struct channel_window *window, unsigned long seq)
{
	unsigned long *slot = &window->seen[seq % CHANNEL_WINDOW];

	if (seq == 0 || *slot == seq)
		return false;
	if (seq > window->newest)
		window->newest = seq;
	else if (window->newest - seq >= CHANNEL_WINDOW)
		return false;
	*slot = seq;
	return true;
}

static bool seq_can_be(struct channel *channel, const struct event *event)
{
	switch (event->kind) {
	case EVENT_ENTER:
	case EVENT_MARK:
		return window_take(&channel->begun, event->seq);
	case EVENT_RET:
		/* Bulk reports come late, and more than once. */
		return event->seq > 0;
	default:
		return true;
	}
}

static void take_line(struct channel *channel, const char *line, size_t length,
		      const struct channel_user *user)
{
	char text[256];
	char *why = NULL;
	struct event *event = event_parse(line, length, &why);

	if (event && seq_can_be(channel, event)) {
		channel->nonsense = 0;
		user->event(user->arg, event);
		return;
	}
	channel->nonsense++;
	if (event)
		snprintf(text, sizeof(text),
			 "an event was dropped: its seq %lu cannot be",
			 event->seq);
	else
		snprintf(text, sizeof(text), "a line was dropped: %s",
			 why ? why : "no memory");
	user->note(user->arg, text);
	if (event)
		event_free(event);
	free(why);
}

/* Takes the whole lines out of the buffer and moves the rest to its front. */
static void take_lines(struct channel *channel, const struct channel_user *user)
{
	char *from = channel->buffer;
	char *end = channel->buffer + channel->used;
	char *newline;

	while (channel->nonsense < CHANNEL_NONSENSE &&
	       (newline = memchr(from, '\n', (size_t)(end - from)))) {
		if (channel->skipped)
			channel->skipped = 0;
		else
			take_line(channel, from, (size_t)(newline - from),
				  user);
		from = newline + 1;
	}
	channel->used = (size_t)(end - from);
	memmove(channel->buffer, from, channel->used);
	if (channel->used == TRACE_LINE_MAX || channel->skipped) {
		if (!channel->skipped)
			user->note(user->arg, "a line was dropped: it is too "
					      "long to be an event");
		channel->skipped += channel->used;
		channel->used = 0;
	}
}

static void give_up(struct channel *channel, const struct channel_user *user)
{
	channel_close(channel);
	user->note(user->arg, "the event channel brought only nonsense and "
			      "was closed; the program runs on unwatched");
}

bool channel_read(struct channel *channel, const struct channel_user *user)
{
	bool any = false;

	for (int i = 0; i < READS_AT_ONCE && channel->fd >= 0; i++) {
		ssize_t got =
			recv(channel->fd, channel->buffer + channel->used,
			     TRACE_LINE_MAX - channel->used, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			break;
		any = true;
		if (got <= 0) {
			if (channel->used)
				user->note(user->arg, "the event channel ended "
						      "within a line");
			channel_close(channel);
			break;
		}
		channel->used += (size_t)got;
		take_lines(channel, user);
		if (channel->nonsense >= CHANNEL_NONSENSE ||
		    channel->skipped > SKIP_MAX)
			give_up(channel, user);
	}
	return any;
}

bool channel_send(struct channel *channel, const char *command)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s\n", command);

	if (channel->fd < 0 || length < 0 || (size_t)length >= sizeof(line))
		return false;
	return send(channel->fd, line, (size_t)length,
		    MSG_DONTWAIT | MSG_NOSIGNAL) == length;
}
