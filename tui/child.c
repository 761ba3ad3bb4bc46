/* SPDX-License-Identifier: MIT */
/*
 * Starts and ends programs. Nothing here keeps state; one thread.
 */
#include "tui/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/trace/format.h"

extern char **environ;

#define TERM_WAIT_MS 200
#define KILL_WAIT_MS 2000

/*
 * The name to preload `path` by. The loader splits its list at spaces and
 * colons and knows no quotes, so a path that has them goes by descriptor.
 */
static int preload_name(const char *path, int *held, char **name)
{
	if (!strpbrk(path, " :\t\n")) {
		*name = strdup(path);
		return *name ? 0 : ENOMEM;
	}
	*held = open(path, O_RDONLY);
	if (*held < 0)
		return errno;
	if (asprintf(name, "/proc/self/fd/%d", *held) < 0) {
		*name = NULL;
		return ENOMEM;
	}
	return 0;
}

/* "LD_PRELOAD=probe:soft:what was there", or NULL with an errno in *err. */
static char *preload_entry(struct child_environment *environment,
			   const char *probe, const char *soft, int *err)
{
	const char *paths[] = { probe, soft };
	const char *before = getenv("LD_PRELOAD");
	char *entry = strdup("LD_PRELOAD=");

	*err = entry ? 0 : ENOMEM;
	for (int i = 0; i < 2 && !*err; i++) {
		char *name, *longer = NULL;

		if (!paths[i])
			continue;
		*err = access(paths[i], R_OK) ? errno : 0;
		if (*err)
			break;
		*err = preload_name(paths[i], &environment->held[i], &name);
		if (*err)
			break;
		if (asprintf(&longer, "%s%s:", entry, name) < 0)
			*err = ENOMEM;
		free(name);
		if (!*err) {
			free(entry);
			entry = longer;
		}
	}
	if (!*err) {
		char *whole;

		if (asprintf(&whole, "%s%s", entry, before ? before : "") < 0) {
			*err = ENOMEM;
		} else {
			free(entry);
			return whole;
		}
	}
	free(entry);
	return NULL;
}

/* Whether `entry` of our environment gives way to one of the child's. */
static bool is_replaced(const char *entry, bool preloads)
{
	static const char *const names[] = { TRACE_FD_ENV "=",
					     TRACE_START_ENV "=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(entry, names[i], strlen(names[i])))
			return true;
	return preloads && (!strncmp(entry, "LD_PRELOAD=", 11) ||
			    !strncmp(entry, "ASAN_OPTIONS=", 13));
}

int child_environment(struct child_environment *environment, const char *probe,
		      const char *soft, int fd, bool run)
{
	bool preloads = probe || soft;
	const char *asan = getenv("ASAN_OPTIONS");
	size_t count = 0, used = 0;
	int err = 0;

	environment->held[0] = environment->held[1] = -1;
	while (environ && environ[count])
		count++;
	environment->env = calloc(count + 5, sizeof(char *));
	if (!environment->env)
		return ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (is_replaced(environ[i], preloads))
			continue;
		environment->env[used] = strdup(environ[i]);
		if (!environment->env[used++])
			goto no_memory;
	}
	if (preloads) {
		environment->env[used] =
			preload_entry(environment, probe, soft, &err);
		if (!environment->env[used++])
			goto fail;
		/* A sanitized program would refuse what is loaded before it. */
		if (asprintf(&environment->env[used],
			     "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
			     asan ? asan : "", asan ? ":" : "") < 0)
			goto no_memory_here;
		used++;
	}
	if (fd >= 0) {
		if (asprintf(&environment->env[used], TRACE_FD_ENV "=%d", fd) <
		    0)
			goto no_memory_here;
		used++;
		environment->env[used] = strdup(run ? TRACE_START_ENV "=run"
						    : TRACE_START_ENV "=stop");
		if (!environment->env[used])
			goto no_memory_here;
	}
	return 0;

no_memory_here:
	environment->env[used] = NULL;
no_memory:
	err = ENOMEM;
fail:
	child_environment_free(environment);
	return err;
}

void child_environment_free(struct child_environment *environment)
{
	for (char **entry = environment->env; entry && *entry; entry++)
		free(*entry);
	free(environment->env);
	environment->env = NULL;
	for (int i = 0; i < 2; i++) {
		if (environment->held[i] >= 0)
			close(environment->held[i]);
		environment->held[i] = -1;
	}
}

/* Signals as a program expects them, whatever we catch, ignore or block. */
static void plain_signals(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * The rest of the start, in the child; gives the errno of what failed. Who
 * forked has one thread: PR_SET_PDEATHSIG looks at the end of that thread.
 */
static int become(char **argv, char **env, int output, pid_t parent)
{
	int null;

	if (setsid() < 0)
		return errno;
	if (prctl(PR_SET_PDEATHSIG, SIGTERM))
		return errno;
	if (getppid() != parent)
		_exit(1);
	plain_signals();
	null = open("/dev/null", O_RDONLY);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
		return errno;
	if (null > STDERR_FILENO)
		close(null);
	execvpe(argv[0], argv, env);
	return errno;
}

int child_spawn(pid_t *pid, char **argv, char **env, int output)
{
	pid_t parent = getpid();
	int ends[2], err = 0;

	/* Closed by exec, or else told what failed. */
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	*pid = fork();
	if (*pid == 0) {
		err = become(argv, env, output, parent);
		while (write(ends[1], &err, sizeof(err)) < 0 && errno == EINTR)
			;
		_exit(127);
	}
	if (*pid < 0)
		err = errno;
	close(ends[1]);
	if (!err) {
		while (read(ends[0], &err, sizeof(err)) < 0 && errno == EINTR)
			;
		if (err)
			waitpid(*pid, NULL, 0);
	}
	close(ends[0]);
	return err;
}

int child_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
	/* glibc has a name for it since 2.36 only. It is close-on-exec. */
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	return -1;
#endif
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		return true;
	return info.si_pid == pid;
}

/* Waits for the end in slices, since without a pidfd it must be asked for. */
static void await_end(pid_t pid, int pidfd, int milliseconds)
{
	struct pollfd wait = { .fd = pidfd, .events = POLLIN };
	int slice = pidfd < 0 ? 5 : milliseconds;

	while (milliseconds > 0 && !has_ended(pid)) {
		poll(&wait, 1, slice);
		milliseconds -= slice;
	}
}

void child_end(pid_t pid, int pidfd)
{
	if (!has_ended(pid)) {
		kill(-pid, SIGTERM);
		await_end(pid, pidfd, TERM_WAIT_MS);
	}
	/* While it is not reaped its number cannot be another group's. */
	kill(-pid, SIGKILL);
	await_end(pid, pidfd, KILL_WAIT_MS);
	waitpid(pid, NULL, WNOHANG);
}
