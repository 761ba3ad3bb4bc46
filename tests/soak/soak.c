/* SPDX-License-Identifier: MIT */
/*
 * Messages of random size and kind over many RC QPs between two processes,
 * both ways, every byte of them checked (see plan.h).
 *
 *   soak [-n MESSAGES] [-q QPS] [-d DEVICE] [-g GID-INDEX] [-s SEED] [-t LIMIT]
 *
 * Exit status 0 and one line of figures, or 1 and what was wrong. How far
 * each process is, the other sees in memory that they share by fork(); all
 * else goes through the device.
 */
#include "tests/soak/soak.h"

#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct wish wish = { .messages = 10000000,
		     .seed = 1,
		     .qps = 64,
		     .limit = 7200,
		     .gid_index = -1,
		     .device = "soft0" };

struct soak soak;

void fail(const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The first to fail says why; the other one's trouble follows of it. */
	if (!soak.shared ||
	    !__atomic_exchange_n(&soak.shared->failed, 1, __ATOMIC_SEQ_CST))
		fprintf(stderr, "soak: process %d: %s\n", soak.side, text);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- two processes ------------------------------------------------------ */

void tell(const void *what, size_t size)
{
	if (send(soak.fd, what, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("the other process does not listen");
}

void hear(void *what, size_t size)
{
	if (recv(soak.fd, what, size, MSG_WAITALL) != (ssize_t)size)
		fail("the other process says nothing");
}

void meet(void)
{
	char byte = 0;

	tell(&byte, 1);
	hear(&byte, 1);
}

/* Side 0 is the parent. Before any verb: QPs do not survive fork(). */
static void part(void)
{
	struct timeval patience = { .tv_sec = 120 };
	int fd[2];

	soak.shared = mmap(NULL, sizeof(*soak.shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (soak.shared == MAP_FAILED) {
		soak.shared = NULL;
		fail("mmap: %s", strerror(errno));
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		fail("socketpair: %s", strerror(errno));
	soak.child = fork();
	if (soak.child < 0)
		fail("fork: %s", strerror(errno));
	soak.side = soak.child == 0;
	if (soak.side && prctl(PR_SET_PDEATHSIG, SIGKILL))
		fail("prctl: %s", strerror(errno));
	soak.fd = fd[soak.side];
	close(fd[!soak.side]);
	setsockopt(soak.fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
}

/* --- the run ------------------------------------------------------------ */

/* Once a second: is all well, and what is there to tell? */
static void look_around(uint64_t left)
{
	double time = now();

	if (__atomic_load_n(&soak.shared->failed, __ATOMIC_RELAXED))
		exit(1);
	if (soak.child && waitpid(soak.child, NULL, WNOHANG) == soak.child)
		fail("the other process has ended");
	if (time - soak.start > wish.limit) {
		for (unsigned int i = 0; i < wish.qps; i++)
			if (soak.out[i].tail < soak.out[i].plan.total)
				fail("not done in %u s; QP %u has sent %llu of "
				     "%llu, begun %llu",
				     wish.limit, i,
				     (unsigned long long)soak.out[i].tail,
				     (unsigned long long)soak.out[i].plan.total,
				     (unsigned long long)soak.out[i].head);
		fail("not done receiving in %u s", wish.limit);
	}
	if (soak.side || time - soak.told < 5)
		return;
	soak.told = time;
	fprintf(stderr, "soak: %.0f s, %.1f %% done\n", time - soak.start,
		100.0 - 100.0 * (double)left / (double)wish.messages);
}

static void run(void)
{
	double next = 0;
	uint64_t left;
	bool did;

	lanes_init();
	do {
		left = turn(&did);
		if (!did)
			sched_yield();
		if (now() >= next) {
			look_around(left);
			next = now() + 1;
		}
	} while (left);
	meet();
}

/* Of both processes. */
static void report(void)
{
	struct figures other;
	double time = now() - soak.start;
	uint64_t all = 0;
	int status;

	hear(&other, sizeof(other));
	for (int kind = 0; kind < KINDS; kind++)
		all += other.kind[kind] += soak.figures.kind[kind];
	other.bytes += soak.figures.bytes;
	if (waitpid(soak.child, &status, 0) != soak.child || status)
		fail("the other process did not end well");
	printf("%llu messages, %llu bytes, over %u QPs in %.1f s: %.0f "
	       "messages/s, %.0f MB/s;",
	       (unsigned long long)all, (unsigned long long)other.bytes,
	       wish.qps, time, (double)all / time,
	       (double)other.bytes / time / 1e6);
	for (int kind = 0; kind < KINDS; kind++)
		printf(" %s %llu", kind_name[kind],
		       (unsigned long long)other.kind[kind]);
	printf("\n");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end = NULL;
	uint64_t value = 0;

	if (key == 'd') {
		wish.device = arg;
		return 0;
	}
	if (!arg)
		return ARGP_ERR_UNKNOWN;
	value = strtoull(arg, &end, 0);
	if (*end || !*arg)
		argp_error(state, "%s is no number", arg);
	switch (key) {
	case 'n':
		wish.messages = value;
		break;
	case 'q':
		if (value < 1 || value > MOST_QPS)
			argp_error(state, "QPs: 1 to %u", MOST_QPS);
		wish.qps = (unsigned int)value;
		break;
	case 'g':
		wish.gid_index = (int)value;
		break;
	case 's':
		wish.seed = value;
		break;
	case 't':
		wish.limit = (unsigned int)value;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "messages", 'n', "N", 0, "in all (10000000)", 0 },
		{ "qps", 'q', "N", 0, "at each end (64)", 0 },
		{ "device", 'd', "NAME", 0, "soft0, unless told", 0 },
		{ "gid-index", 'g', "N", 0, "the first one, unless told", 0 },
		{ "seed", 's', "N", 0, "another one, other messages (1)", 0 },
		{ "limit", 't', "SECONDS", 0, "for all of it (7200)", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		options,
		parse,
		NULL,
		"Messages of random size and kind over many QPs between two "
		"processes, every byte checked.",
		NULL,
		NULL,
		NULL
	};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	soak.start = soak.told = now();
	part();
	make_all();
	run();
	destroy_all();
	if (soak.side)
		tell(&soak.figures, sizeof(soak.figures));
	else
		report();
	return 0;
}
