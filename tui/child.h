/* SPDX-License-Identifier: MIT */
/*
 * How a program is started with the probe and soft0 in it. For session.c,
 * and for `verbstep run`, which turns into the program instead.
 */
#ifndef TUI_CHILD_H
#define TUI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child_environment {
	char **env;  /* NULL at the end */
	int held[2]; /* descriptors that entries name; -1: none */
};

/*
 * Our environment with `probe` and `soft` (each may be NULL) preloaded in
 * this order, what was preloaded before behind them, and, when `fd` is not
 * -1, that as the probe's channel. Our own environment stays as it is.
 * 0, or an errno: a library that cannot be opened, ENOMEM. Ends with
 * child_environment_free(), after the program was started.
 */
int child_environment(struct child_environment *environment, const char *probe,
		      const char *soft, int fd, bool run);
void child_environment_free(struct child_environment *environment);

/*
 * Starts argv[0] (looked for in PATH) in a session of its own: no key that
 * is pressed here reaches it, and it cannot open our terminal. stdin is
 * /dev/null, stdout and stderr are `output`; descriptors not marked
 * close-on-exec are inherited. It is sent SIGTERM when this process ends in a
 * way that leaves no time for child_end(). 0, or the errno of what failed.
 */
int child_spawn(pid_t *pid, char **argv, char **env, int output);

/* A descriptor that is readable once `pid` has ended; -1: not to be had. */
int child_pidfd(pid_t pid);

/*
 * Ends the program and what it forked: SIGTERM, after a moment SIGKILL, then
 * reaps it. `pidfd` may be -1.
 */
void child_end(pid_t pid, int pidfd);

#endif
