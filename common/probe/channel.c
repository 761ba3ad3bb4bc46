/* SPDX-License-Identifier: MIT */
/*
 * The socket to the stepper: lines out, commands in; the probe's start and
 * end. Two locks: only one thread at a time waits for a command (stop_lock,
 * which also guards what was read), and lines go out whole (send_lock).
 */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Atomic(enum mode) probe_mode = MODE_OFF;
_Atomic(const struct verb *) probe_until;
atomic_uint probe_generation;

static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t send_lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1;
static bool follow;
static atomic_ulong last_seq;
static atomic_ullong listened; /* ms: when commands were looked for */
static char in[256];           /* read and not yet obeyed */
static size_t in_used;

/* The other side is gone or talks nonsense. The descriptor stays open: a
 * thread may be about to use it, and its number must not be another's. */
static void off(void)
{
	probe_mode = MODE_OFF;
	shutdown(fd, SHUT_RDWR);
}

uint64_t channel_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

unsigned long channel_seq(void)
{
	return atomic_fetch_add(&last_seq, 1) + 1;
}

void channel_lock(void)
{
	pthread_mutex_lock(&stop_lock);
}

void channel_unlock(void)
{
	pthread_mutex_unlock(&stop_lock);
}

static void send_all(const char *line, size_t length)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	while (length && probe_mode != MODE_OFF) {
		ssize_t sent = send(fd, line, length, MSG_NOSIGNAL);

		if (sent >= 0) {
			line += sent;
			length -= (size_t)sent;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			poll(&room, 1, -1);
		} else if (errno != EINTR) {
			off();
		}
	}
}

void channel_send(const char *line, size_t length)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&send_lock);
	send_all(line, length);
	pthread_mutex_unlock(&send_lock);
	pthread_setcancelstate(cancel, NULL);
}

/* --- commands, under stop_lock ------------------------------------------- */

static const struct verb *verb_named(const char *name)
{
#define VERB_ROW(verb) &VERB(verb),
	static const struct verb *const all[] = { VERBS(VERB_ROW) };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

static void set_mode(enum mode mode, const struct verb *until)
{
	if (probe_mode <= MODE_ENDING)
		return;
	probe_until = until;
	probe_mode = mode;
	/* What was counted under another mode says nothing in this one. */
	atomic_fetch_add(&probe_generation, 1);
}

static bool obey_until(const char *what)
{
	const struct verb *verb = verb_named(what);

	if (!strcmp(what, "mark"))
		set_mode(MODE_UNTIL_MARK, NULL);
	else if (!strcmp(what, "fail"))
		set_mode(MODE_UNTIL_FAIL, NULL);
	else if (verb)
		set_mode(MODE_UNTIL_VERB, verb);
	else if (!strncmp(what, "ibv_", 4))
		set_mode(MODE_RUN, NULL); /* a verb that never comes by here */
	else
		return false;
	return true;
}

/* One command. `stopped`: a thread waits for it. True: the wait is over. */
static bool obey(const char *line, bool stopped)
{
	const size_t until = strlen(TRACE_CMD_UNTIL " ");

	if (!strcmp(line, TRACE_CMD_PAUSE)) {
		if (!stopped)
			set_mode(MODE_STEP, NULL);
		return false;
	}
	if (!strcmp(line, TRACE_CMD_GO)) {
		if (stopped && probe_mode != MODE_STEP)
			set_mode(MODE_STEP, NULL);
		return stopped;
	}
	if (!strcmp(line, TRACE_CMD_RUN)) {
		if (stopped)
			set_mode(MODE_RUN, NULL);
		return stopped;
	}
	if (!strncmp(line, TRACE_CMD_UNTIL " ", until) &&
	    (!stopped || obey_until(line + until)))
		return stopped;
	off();
	return true;
}

/* Obeys the lines that are there; true: one of them ends the stop. */
static bool obey_lines(bool stopped)
{
	char *end;
	bool over = false;

	while (!over && probe_mode != MODE_OFF &&
	       (end = memchr(in, '\n', in_used))) {
		char line[sizeof(in)];
		size_t length = (size_t)(end - in);

		memcpy(line, in, length);
		line[length] = '\0';
		in_used -= length + 1;
		memmove(in, end + 1, in_used);
		over = obey(line, stopped);
	}
	if (in_used == sizeof(in)) /* no command is that long */
		off();
	return over || probe_mode == MODE_OFF;
}

/* Reads more; false: there is none now. End and errors turn the probe off. */
static bool fill(int flags)
{
	ssize_t got;

	do
		got = recv(fd, in + in_used, sizeof(in) - in_used, flags);
	while (got < 0 && errno == EINTR);
	if (got > 0) {
		in_used += (size_t)got;
		return true;
	}
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	off();
	return false;
}

void channel_stop(const char *line, size_t length)
{
	struct pollfd command = { .fd = fd, .events = POLLIN };
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* What came before the stop is not an answer to it. */
	do
		obey_lines(false);
	while (probe_mode != MODE_OFF && fill(MSG_DONTWAIT));
	channel_send(line, length);
	while (probe_mode != MODE_OFF && !obey_lines(true))
		if (!fill(0) && probe_mode != MODE_OFF)
			poll(&command, 1, -1);
	pthread_setcancelstate(cancel, NULL);
}

void channel_listen(void)
{
	uint64_t now = channel_ms();
	int cancel;

	if (now - listened < 8 || pthread_mutex_trylock(&stop_lock) != 0)
		return;
	listened = now;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	do
		obey_lines(false); /* a stop may have left some unread */
	while (probe_mode != MODE_OFF && fill(MSG_DONTWAIT));
	pthread_setcancelstate(cancel, NULL);
	pthread_mutex_unlock(&stop_lock);
}

/* --- the next library's functions ----------------------------------------- */

/*
 * The default version of the name; where libibverbs has two and the oldest
 * was found, 1.1 of the same library.
 */
void *channel_next(const char *name)
{
	void *plain = dlsym(RTLD_NEXT, name);
	void *newer = dlvsym(RTLD_NEXT, name, "IBVERBS_1.1");
	Dl_info one, other;

	if (plain && newer && dladdr(plain, &one) && dladdr(newer, &other) &&
	    one.dli_fbase == other.dli_fbase)
		return newer;
	return plain ? plain : newer;
}

/* --- start and end -------------------------------------------------------- */

static void in_child(void)
{
	/* The parent's conversation is not the child's. */
	probe_mode = MODE_OFF;
	threads_forked();
	if (!follow)
		close(fd);
}

/* Takes this library out of LD_PRELOAD, and leaves the others. */
static void leave_preload(void)
{
	const char *preload = getenv("LD_PRELOAD"), *name;
	char *copy, *rest, *item, *kept;
	Dl_info self;

	if (!preload || !dladdr(&last_seq, &self) || !self.dli_fname)
		return;
	copy = strdup(preload);
	kept = calloc(1, strlen(preload) + 1);
	if (!copy || !kept)
		goto out;
	name = strrchr(self.dli_fname, '/');
	name = name ? name + 1 : self.dli_fname;
	for (item = strtok_r(copy, ": ", &rest); item;
	     item = strtok_r(NULL, ": ", &rest)) {
		const char *base = strrchr(item, '/');

		if (!strcmp(base ? base + 1 : item, name))
			continue;
		if (*kept)
			strcat(kept, ":");
		strcat(kept, item);
	}
	if (*kept)
		setenv("LD_PRELOAD", kept, 1);
	else
		unsetenv("LD_PRELOAD");
out:
	free(kept);
	free(copy);
}

static void say_hello(void)
{
	char buffer[8192], exe[4096];
	struct text text = { .at = buffer, .size = sizeof(buffer) };
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[length < 0 ? 0 : length] = '\0';
	text_add(&text, "{\"v\":%d,\"ev\":\"hello\",\"pid\":%d,\"exe\":",
		 TRACE_VERSION, (int)getpid());
	text_quote(&text, exe);
	text_add(&text, "}\n");
	channel_send(buffer, text.used);
}

static int inherited(void)
{
	const char *value = getenv(TRACE_FD_ENV);
	struct stat info;
	char *end = NULL;
	long number = value && *value ? strtol(value, &end, 10) : -1;

	if (number < 0 || number > INT32_MAX || *end ||
	    fstat((int)number, &info) != 0 || !S_ISSOCK(info.st_mode))
		return -1;
	return (int)number;
}

__attribute__((constructor)) static void start(void)
{
	const char *how = getenv(TRACE_START_ENV);
	int err = errno;

	follow = getenv(TRACE_FOLLOW_ENV) != NULL;
	fd = inherited();
	if (!follow)
		leave_preload();
	if (fd >= 0) {
		probe_mode = how && !strcmp(how, "run") ? MODE_RUN : MODE_STEP;
		threads_start();
		pthread_atfork(NULL, NULL, in_child);
		if (!follow)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		say_hello();
	}
	if (!follow) {
		unsetenv(TRACE_FD_ENV);
		unsetenv(TRACE_START_ENV);
	}
	errno = err;
}

__attribute__((destructor)) static void end(void)
{
	static const char bye[] = "{\"v\":1,\"ev\":\"bye\"}\n";

	if (probe_mode == MODE_OFF)
		return;
	probe_mode = MODE_ENDING;
	threads_flush();
	channel_send(bye, sizeof(bye) - 1);
	probe_mode = MODE_OFF;
	place_end();
}
