/* SPDX-License-Identifier: MIT */
/*
 * A lesson is linked with soft0 and takes options of ours; any other program
 * gets soft0 by preload, and its arguments as they were typed.
 */
#include "tui/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tui/child.h"

/* The lesson's arguments: an array to free, of strings that are borrowed. */
static char **lesson_arguments(const struct options *options, char *path)
{
	size_t used = 0, rest = 0;
	char **argv;

	while (options->rest && options->rest[rest])
		rest++;
	argv = calloc(rest + 6, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[used++] = path;
	if (options->device) {
		argv[used++] = "--device";
		argv[used++] = (char *)options->device;
	}
	if (options->lang) {
		argv[used++] = "--lang";
		argv[used++] = (char *)options->lang;
	}
	for (size_t i = 0; i < rest; i++)
		argv[used++] = options->rest[i];
	return argv;
}

struct session *start_session(const struct menu *menu,
			      const struct options *options, int row,
			      char **why)
{
	struct session_options what = { .probe = menu->probe };
	struct session *session;

	*why = NULL;
	if (!menu->probe) {
		*why = strdup("libverbprobe.so is neither beside verbstep nor "
			      "in ../lib/verbstep");
		return NULL;
	}
	if (row < 0) {
		what.argv = options->rest;
		what.soft = menu->soft;
		return session_start(&what, why);
	}
	what.argv = lesson_arguments(options, menu->lesson[row].path);
	if (!what.argv)
		return NULL;
	session = session_start(&what, why);
	free(what.argv);
	return session;
}

int start_at_full_speed(const struct menu *menu, const struct options *options)
{
	struct child_environment environment;
	int err;

	if (!menu->soft)
		return ENOENT;
	err = child_environment(&environment, /* probe */ NULL, menu->soft,
				/* fd */ -1, /* run */ true);
	if (err)
		return err;
	execvpe(options->rest[0], options->rest, environment.env);
	err = errno;
	child_environment_free(&environment);
	return err;
}

int start_ending_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
