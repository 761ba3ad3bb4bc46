/* SPDX-License-Identifier: MIT */
/*
 * Our end of the socket to the probe: bytes in, events out, commands back.
 * For session.c. It believes nothing: lines that are too long, are no events
 * or have a seq that cannot be are dropped with a note, and a channel that
 * talks only nonsense is closed.
 */
#ifndef TUI_CHANNEL_H
#define TUI_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/trace/event.h"

/* Lines in a row that are no events before the channel is closed. */
#define CHANNEL_NONSENSE 50
/* How far out of order the seq of two threads may arrive. */
#define CHANNEL_WINDOW   1024

/* Which seq were seen among the newest CHANNEL_WINDOW. */
struct channel_window {
	unsigned long newest;
	unsigned long seen[CHANNEL_WINDOW];
};

struct channel {
	int fd;       /* non-blocking; -1: closed */
	char *buffer; /* TRACE_LINE_MAX bytes */
	size_t used;
	size_t skipped;        /* bytes of a line that is too long; 0: none */
	unsigned int nonsense; /* lines in a row */
	struct channel_window begun; /* enters and marks */
};

struct channel_user {
	void (*event)(void *arg, struct event *event); /* takes it over */
	void (*note)(void *arg, const char *text);
	void *arg;
};

/* Takes `fd` over. 0 or ENOMEM (then it does not). */
int channel_init(struct channel *channel, int fd);
void channel_close(struct channel *channel);
void channel_free(struct channel *channel);

/*
 * Reads a portion of what is there, without waiting; closes the channel at
 * its end and when it talks nonsense. True when anything came.
 */
bool channel_read(struct channel *channel, const struct channel_user *user);

/* Sends a command line, without its newline. False when that failed. */
bool channel_send(struct channel *channel, const char *command);

#endif
