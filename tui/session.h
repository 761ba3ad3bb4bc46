/* SPDX-License-Identifier: MIT */
/*
 * One run of a program under the probe: the child process, its events and
 * its output. The child may crash, hang, fork, flood or talk nonsense; the
 * session says so in its state and notes, and never goes down with it.
 * One thread.
 */
#ifndef TUI_SESSION_H
#define TUI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/trace/event.h"

enum session_state {
	SESSION_RUNNING, /* started, between stops */
	SESSION_STOPPED, /* waits before a call or at a mark: `stopped_at` */
	SESSION_EXITED,  /* `status` is its exit status */
	SESSION_KILLED,  /* `status` is the signal */
};

struct session {
	enum session_state state;
	int status;
	pid_t pid;
	int fd; /* readable when session_dispatch() has something to do */
	/* Everything the probe said, in order. Owned here. */
	struct event **event;
	size_t events;
	const struct event *stopped_at; /* the enter or mark; else NULL */
	/*
	 * How long it has been running since the last command, in whole
	 * seconds, as of the last session_dispatch(); 0 in other states.
	 */
	unsigned int running_seconds;
	/*
	 * The child's stdout and stderr, which are a terminal of their own (its
	 * stdin is none), cut into lines, control characters replaced; only the
	 * last SESSION_LINES are kept.
	 */
	char **line;
	size_t lines;
	bool line_open;           /* the last one has no newline yet */
	unsigned long lines_lost; /* how many older ones were dropped */
	/* What went wrong with the child or the channel, newest last; for the
	 * message row. */
	char **note;
	size_t notes;
	unsigned long notes_ever; /* with those that were dropped as too old */
	void *private;
};

#define SESSION_LINES 2000

struct session_options {
	char **argv;       /* program and arguments, NULL at the end */
	const char *probe; /* path of libverbprobe.so */
	const char *soft;  /* path of libsoftverbs.so to preload; NULL: none */
	bool run; /* start in run mode: do not stop before the first call */
};

/*
 * Starts the program. NULL when it cannot be started: *why then says what
 * was wrong, in a string the caller frees. The caller ends with
 * session_free(), which kills what still runs and reaps it.
 */
struct session *session_start(const struct session_options *options,
			      char **why);
void session_free(struct session *session);

/*
 * Reads what has arrived, without waiting, in bounded time (a flood is read
 * in portions). True when anything changed.
 */
bool session_dispatch(struct session *session);

/* Waits up to `milliseconds` (-1: for ever) and dispatches. As above. */
bool session_wait(struct session *session, int milliseconds);

/*
 * Commands; each but pause only when SESSION_STOPPED, else nothing happens.
 * `what` of until is "mark", "fail" or a verb's name.
 */
void session_go(struct session *session);
void session_run(struct session *session);
void session_until(struct session *session, const char *what);
void session_pause(struct session *session);

/* "stopped", "running", "exited 0", "killed SIGSEGV". Static per state. */
const char *session_text(const struct session *session);

#endif
