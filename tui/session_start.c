/* SPDX-License-Identifier: MIT */
/*
 * The beginning and the end of a session. What is opened here is closed in
 * session_free(), however far it got.
 */
#include "tui/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "tui/child.h"
#include "tui/session_private.h"

/* Without a pidfd the end is asked for this often. */
#define ASK_MS 50

static struct session *session_new(void)
{
	struct session *session = calloc(1, sizeof(*session));
	struct session_private *own = calloc(1, sizeof(*own));

	if (!session || !own) {
		free(session);
		free(own);
		return NULL;
	}
	session->private = own;
	session->fd = -1;
	session->state = SESSION_RUNNING;
	own->channel.fd = own->output_fd = -1;
	own->pidfd = own->timer = -1;
	return session;
}

void session_free(struct session *session)
{
	struct session_private *own;

	if (!session)
		return;
	own = session->private;
	if (session->pid > 0)
		child_end(session->pid, own->pidfd);
	channel_free(&own->channel);
	if (own->output_fd >= 0)
		close(own->output_fd);
	if (own->pidfd >= 0)
		close(own->pidfd);
	if (own->timer >= 0)
		close(own->timer);
	if (session->fd >= 0)
		close(session->fd);
	for (size_t i = 0; i < session->events; i++)
		event_free(session->event[i]);
	free(session->event);
	output_free(&own->output);
	for (size_t i = 0; i < session->notes; i++)
		free(session->note[i]);
	free(session->note);
	free(own);
	free(session);
}

static char *failed(const char *what, const char *which, int err)
{
	char *why;

	if (asprintf(&why, "%s%s%s: %s", what, which ? " " : "",
		     which ? which : "", strerror(err)) < 0)
		return NULL;
	return why;
}

/* Starts the program on the far ends: `channel` of the socket, `output`. */
static int start_child(struct session *session,
		       const struct session_options *options, int channel,
		       int output, char **why)
{
	struct child_environment environment;
	int err;

	err = child_environment(&environment, options->probe, options->soft,
				channel, options->run);
	if (err) {
		*why = failed("cannot preload", options->probe, err);
		return err;
	}
	err = child_spawn(&session->pid, options->argv, environment.env,
			  output);
	child_environment_free(&environment);
	if (err) {
		session->pid = 0;
		*why = failed("cannot run", options->argv[0], err);
	}
	return err;
}

/*
 * A terminal for the program's output, so that it comes line by line, as in a
 * terminal, and not when a buffer is full. Nothing on it is translated.
 */
static int open_terminal(int *near, int *far)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct termios termios;
	char name[64];
	int err;

	*near = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*near < 0)
		return errno;
	if (grantpt(*near) || unlockpt(*near) ||
	    ptsname_r(*near, name, sizeof(name)))
		goto fail;
	*far = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*far < 0)
		goto fail;
	if (tcgetattr(*far, &termios) == 0) {
		cfmakeraw(&termios);
		tcsetattr(*far, TCSANOW, &termios);
	}
	ioctl(*far, TIOCSWINSZ, &size);
	return 0;

fail:
	err = errno;
	close(*near);
	return err;
}

/* A terminal; a pipe where there are none (a bare chroot). */
static int open_output(int *near, int *far)
{
	int ends[2];

	if (open_terminal(near, far)) {
		if (pipe2(ends, O_CLOEXEC))
			return errno;
		*near = ends[0];
		*far = ends[1];
	}
	fcntl(*near, F_SETFL, O_NONBLOCK);
	return 0;
}

/*
 * Makes the socket and the output; our ends go into the session. The far ends
 * are inherited, the socket's under its own number.
 */
static int open_ends(struct session *session, int *channel, int *output)
{
	struct session_private *own = session->private;
	int sockets[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return errno;
	fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
	err = channel_init(&own->channel, sockets[0]);
	if (err)
		goto close_sockets;
	err = open_output(&own->output_fd, output);
	if (err)
		goto close_far;
	*channel = sockets[1];
	return 0;

close_sockets:
	close(sockets[0]);
close_far:
	close(sockets[1]);
	return err;
}

struct session *session_start(const struct session_options *options, char **why)
{
	struct session *session = session_new();
	struct session_private *own;
	int channel = -1, output = -1, err;

	*why = NULL;
	if (!session)
		return NULL;
	own = session->private;
	session->fd = epoll_create1(EPOLL_CLOEXEC);
	err = session->fd < 0 ? errno : open_ends(session, &channel, &output);
	if (!err) {
		err = output_init(&own->output, SESSION_LINES);
		if (!err)
			err = start_child(session, options, channel, output,
					  why);
		close(channel);
		close(output);
	}
	if (err) {
		if (!*why)
			*why = failed("cannot watch a program", NULL, err);
		session_free(session);
		return NULL;
	}
	session_watch(session, own->channel.fd);
	session_watch(session, own->output_fd);
	own->pidfd = child_pidfd(session->pid);
	if (own->pidfd >= 0)
		session_watch(session, own->pidfd);
	else
		session_timer(session, ASK_MS, true);
	session_set_running(session);
	return session;
}
