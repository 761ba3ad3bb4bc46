/* SPDX-License-Identifier: 0BSD */
/*
 * The TCP connection beside the RDMA one: how two ends of a lesson find each
 * other, tell each other their endpoints, and wait for each other.
 *
 * On the wire, from each end to the other: 16 bytes of greeting, the text
 * "verbstep-peer 1\n", 1 being the version of all of this; once, 40 bytes of
 * endpoint (struct wire); and a '.' at each barrier. What comes is a
 * stranger's until it was checked.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <endian.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING      "verbstep-peer 1\n"
#define GREETING_SIZE 16
#define NAME_LENGTH   14 /* of the greeting, what no version changes */

#define NAME_SIZE (NI_MAXHOST + NI_MAXSERV + 8) /* " port " */

/* Seconds: for a program to answer, and for a person who may be reading. */
#define SOON   5
#define PERSON 600

struct wire {
	uint32_t qp_num;
	uint32_t psn;
	uint32_t rkey;
	uint16_t lid;
	uint16_t mtu; /* enum ibv_mtu */
	uint64_t addr;
	uint8_t gid[16];
};
_Static_assert(sizeof(struct wire) == LESSON_WIRE_SIZE, "no holes in it");

bool lesson_in_two(void)
{
	return lesson_run.server || lesson_run.host;
}

bool lesson_is_server(void)
{
	return lesson_run.server;
}

/* --- bytes, with a time limit --- */

static int broken(int err, const char *what)
{
	report(err, "%s", what);
	return err;
}

static int send_all(int fd, const void *bytes, size_t size)
{
	/* So little fits into the socket's buffer, or the peer is no lesson. */
	ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent == (ssize_t)size)
		return 0;
	return broken(sent < 0 ? errno : EPROTO, "send(to the peer)");
}

/* `what` is what is waited for. */
static int receive_all(int fd, void *bytes, size_t size, int seconds,
		       const char *what)
{
	double end = seconds_now() + seconds;
	size_t have = 0;
	ssize_t got;

	while (have < size) {
		double left = end - seconds_now();

		if (left <= 0 || !readable_within(fd, (int)(left * 1000) + 1)) {
			if (seconds_now() < end)
				continue; /* a signal */
			report(ETIMEDOUT, "%s: nothing within %d seconds", what,
			       seconds);
			return ETIMEDOUT;
		}
		got = recv(fd, (char *)bytes + have, size - have, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			int err = got ? errno : ECONNRESET;

			report(err, "%s: the peer has gone", what);
			return err;
		}
		have += (size_t)got;
	}
	return 0;
}

/* --- meeting --- */

/* "127.0.0.1 port 40000" */
static void name_of(const struct sockaddr *address, socklen_t length,
		    char *text, size_t size)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo(address, length, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, size, "an unknown address");
	else
		snprintf(text, size, "%s port %s", host, port);
}

/* An option named what cannot be had: one line, and status 2. */
static void misused(const char *format, const char *what, const char *why)
{
	lesson_run.misused = true;
	fflush(stdout);
	fprintf(stderr, format, lesson_run.name, what, why);
}

/* A listening socket of one family, or -1 and errno. */
static int listen_on(int family, const char *port)
{
	struct addrinfo hints = { .ai_family = family,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found;
	const int yes = 1, no = 0;
	int fd, err;

	if (getaddrinfo(NULL, port, &hints, &found)) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* The port of a run that has just ended may be used again at once. */
	if (fd >= 0 &&
	    (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	     (family == AF_INET6 &&
	      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no))) ||
	     bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1))) {
		err = errno;
		close(fd);
		errno = err;
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* IPv6 takes IPv4 as well; IPv4 alone where there is no IPv6. */
static int listen_any(const char *port)
{
	int fd = listen_on(AF_INET6, port);

	if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
		fd = listen_on(AF_INET, port);
	if (fd < 0)
		misused("%s: --server: cannot listen on port %s: %s\n", port,
			errno_text(errno));
	return fd;
}

static int accept_one(int listener)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char name[NAME_SIZE];
	double end = seconds_now() + PERSON;
	int fd;

	if (!getsockname(listener, (struct sockaddr *)&address, &length)) {
		/* The port's place is the same in both families. */
		say("  listening on port %d; now, in another terminal: "
		    "--connect HOST:%d",
		    be16toh(((struct sockaddr_in *)&address)->sin_port),
		    be16toh(((struct sockaddr_in *)&address)->sin_port));
	}
	while (!readable_within(listener, 1000))
		if (seconds_now() > end) {
			report(ETIMEDOUT, "nobody has connected");
			return -1;
		}
	length = sizeof(address);
	fd = accept4(listener, (struct sockaddr *)&address, &length,
		     SOCK_CLOEXEC);
	if (fd < 0) {
		report(errno, "accept()");
		return -1;
	}
	name_of((struct sockaddr *)&address, length, name, sizeof(name));
	say("  a client has come, from %s", name);
	return fd;
}

/* Connects within the time that a program takes. -1 and errno. */
static int connect_to(const struct addrinfo *to)
{
	int fd = socket(to->ai_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd events = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(int);
	int err = 0, no = 0;

	if (fd < 0)
		return -1;
	if (connect(fd, to->ai_addr, to->ai_addrlen)) {
		err = errno;
		if (err == EINPROGRESS && poll(&events, 1, SOON * 1000) != 1)
			err = ETIMEDOUT;
		else if (err == EINPROGRESS &&
			 getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length))
			err = errno;
	}
	if (!err && ioctl(fd, FIONBIO, &no))
		err = errno;
	if (!err)
		return fd;
	close(fd);
	errno = err;
	return -1;
}

/* Each address that the name has, in turn. */
static int connect_any(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICSERV };
	char name[NAME_SIZE];
	struct addrinfo *found, *to;
	int fd = -1, err;

	err = getaddrinfo(host, port, &hints, &found);
	if (err) {
		misused("%s: --connect: no host '%s': %s\n", host,
			gai_strerror(err));
		return -1;
	}
	for (to = found; to && fd < 0; to = to->ai_next) {
		fd = connect_to(to);
		err = errno;
		name_of(to->ai_addr, to->ai_addrlen, name, sizeof(name));
	}
	freeaddrinfo(found);
	if (fd < 0)
		report(err, "connect(%s); is --server running there?", name);
	else
		say("  connected to %s", name);
	return fd;
}

/* A peer's host that dies says nothing: ask it every few seconds. */
static void watch_over(int fd)
{
	const int yes = 1, seconds = SOON, times = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

int lesson_greet(int fd)
{
	char text[GREETING_SIZE];
	int err;

	err = send_all(fd, GREETING, GREETING_SIZE);
	if (!err)
		err = receive_all(fd, text, sizeof(text), SOON,
				  "waiting for the peer's greeting");
	if (err)
		return err;
	if (!memcmp(text, GREETING, GREETING_SIZE))
		return 0;
	return broken(EPROTO, memcmp(text, GREETING, NAME_LENGTH)
				      ? "the peer is no lesson"
				      : "the peer is of another version");
}

int peer_meet(void)
{
	int listener, fd;

	if (lesson_run.server) {
		listener = listen_any(lesson_run.peer_port);
		if (listener < 0)
			return -1;
		fd = accept_one(listener);
		close(listener);
	} else {
		fd = connect_any(lesson_run.host, lesson_run.peer_port);
	}
	if (fd < 0)
		return -1;
	watch_over(fd);
	if (!lesson_greet(fd))
		return fd;
	close(fd);
	return -1;
}

/* --- what they tell each other --- */

void lesson_pack(const struct endpoint *end, void *bytes)
{
	struct wire wire = {
		.qp_num = htobe32(end->qp_num),
		.psn = htobe32(end->psn),
		.rkey = htobe32(end->rkey),
		.lid = htobe16(end->lid),
		.mtu = htobe16(end->mtu),
		.addr = htobe64(end->addr),
	};

	/* A GID is in network byte order everywhere. */
	memcpy(wire.gid, end->gid.raw, sizeof(wire.gid));
	memcpy(bytes, &wire, sizeof(wire));
}

bool lesson_unpack(const void *bytes, struct endpoint *end)
{
	struct wire wire;

	memcpy(&wire, bytes, sizeof(wire));
	*end = (struct endpoint){
		.qp_num = be32toh(wire.qp_num),
		.psn = be32toh(wire.psn),
		.rkey = be32toh(wire.rkey),
		.lid = be16toh(wire.lid),
		.mtu = be16toh(wire.mtu),
		.addr = be64toh(wire.addr),
	};
	memcpy(end->gid.raw, wire.gid, sizeof(wire.gid));
	return end->qp_num <= 0xffffff && end->psn <= 0xffffff &&
	       end->mtu >= IBV_MTU_256 && end->mtu <= IBV_MTU_4096;
}

int peer_exchange(int fd, const struct endpoint *self, struct endpoint *peer)
{
	char bytes[LESSON_WIRE_SIZE];
	int err;

	lesson_pack(self, bytes);
	err = send_all(fd, bytes, sizeof(bytes));
	if (!err)
		err = receive_all(fd, bytes, sizeof(bytes), PERSON,
				  "waiting for the peer's endpoint");
	if (err)
		return err;
	if (!lesson_unpack(bytes, peer))
		return broken(EPROTO, "the peer's endpoint makes no sense");
	if (!self->lid != !peer->lid)
		return broken(EPROTO, "one end is on InfiniBand, "
				      "the other on Ethernet");
	return 0;
}

int peer_barrier(int fd)
{
	char mark = '.';
	int err;

	err = send_all(fd, &mark, 1);
	if (!err)
		err = receive_all(fd, &mark, 1, PERSON,
				  "waiting for the peer to come here");
	if (!err && mark != '.')
		err = broken(EPROTO, "the peer is not where this end is");
	return err;
}
