/* SPDX-License-Identifier: MIT */
/*
 * What session.c and session_start.c share. For nobody else.
 */
#ifndef TUI_SESSION_PRIVATE_H
#define TUI_SESSION_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "tui/channel.h"
#include "tui/output.h"
#include "tui/session.h"

struct session_private {
	struct channel channel;
	struct output output;
	int output_fd;  /* the child's stdout and stderr; -1: ended */
	int pidfd;      /* -1: not to be had, or done with */
	int timer;      /* timerfd; -1: none */
	bool hello;     /* the probe has spoken */
	bool alone;     /* it was noted that the child runs unwatched */
	bool ended;     /* it was seen that the child has ended */
	bool full;      /* no more events are kept */
	bool pausing;   /* a pause was sent, and no stop has come since */
	int end_status; /* of waitid() */
	bool end_killed;
	size_t event_room;
	unsigned long newest_ret; /* the highest seq that has returned */
	struct timespec since;    /* the last command */
};

/* Adds a descriptor to those that make session->fd readable. */
void session_watch(struct session *session, int fd);

/* Makes session->fd readable after a while; again and again if it `repeats`. */
void session_timer(struct session *session, int milliseconds, bool repeats);

/* The state between stops; its clock starts anew. */
void session_set_running(struct session *session);

#endif
