/* SPDX-License-Identifier: 0BSD */
/*
 * Running what may hang or crash in a child, under a time limit. The child
 * holds the write end of a pipe: the read end reports a hang-up when the
 * child is gone, however it went. What the body returned comes through the
 * pipe too, since tools like valgrind may change the exit status.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void run_child(int (*body)(void *), void *arg, int fd)
{
	const struct rlimit no_core = { 0 };
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core); /* a crash here is no accident */
	status = body(arg);
	fflush(stdout);
	if (write(fd, &status, sizeof(status)) != sizeof(status))
		abort();
	_exit(status);
}

/* Milliseconds from now to `end`, at least 0. */
static int remaining(const struct timespec *end)
{
	struct timespec now;
	long ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (end->tv_sec - now.tv_sec) * 1000 +
	     (end->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

/* True when the child went within the time. */
static bool wait_hangup(int fd, int seconds)
{
	struct pollfd poll_fd = { .fd = fd };
	struct timespec end;
	int ready;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	do
		ready = poll(&poll_fd, 1, remaining(&end));
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

static struct child_result watch(pid_t pid, int fd, int seconds)
{
	struct child_result result = { .end = CHILD_EXITED };
	bool in_time = wait_hangup(fd, seconds);
	int status;

	if (!in_time)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			report(errno, "waitpid(%d)", (int)pid);
			return (struct child_result){ CHILD_KILLED, 0 };
		}
	if (WIFEXITED(status)) {
		if (read(fd, &result.status, sizeof(int)) != sizeof(int))
			result.status = WEXITSTATUS(status);
		return result;
	}
	result.end = in_time ? CHILD_KILLED : CHILD_TIMED_OUT;
	result.status = WTERMSIG(status);
	return result;
}

struct child_result run_limited(int seconds, int (*body)(void *), void *arg)
{
	struct child_result result = { .end = CHILD_KILLED };
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC)) {
		report(errno, "pipe2()");
		return result;
	}
	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (pid < 0)
		report(errno, "fork()");
	if (!pid) {
		close(ends[0]);
		run_child(body, arg, ends[1]);
	}
	close(ends[1]);
	if (pid > 0)
		result = watch(pid, ends[0], seconds);
	close(ends[0]);
	return result;
}
