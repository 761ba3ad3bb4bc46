/* SPDX-License-Identifier: MIT */
/*
 * How fast a device moves data and makes objects, each figure beside its
 * bound, measured in the same run: memcpy() of the same size for bandwidth, a
 * ping-pong over a Unix socket for latency, malloc()/free() for objects.
 *
 *   soft [--device NAME] [--gid-index N]     the default is soft0
 *
 * Each figure is the best of several rounds, since a machine that does other
 * things only takes away from it. Targets that are missed are said so; where
 * the two processors share no cache, copying through memory that two processes
 * share is slow in itself, which the row "shared memory" tells.
 */
#include "tests/bench/soft_end.h"

/* --- bandwidth ---------------------------------------------------------- */

static unsigned int count_of(size_t size)
{
	return size >= MOST ? 64 : size >= 65536 ? 512 : 2048;
}

/* Seconds for all; `sink` is the other end if it is in this process. */
static double stream(struct end *end, struct end *sink,
		     enum ibv_wr_opcode opcode, size_t size)
{
	unsigned int count = count_of(size), posted = 0, sent = 0, got = 0;
	bool receives = opcode == IBV_WR_SEND && sink;
	unsigned int ready = 0;
	double start = now();

	while (sent < count || (receives && got < count)) {
		while (receives && ready < count && ready - got < WINDOW) {
			post_receive(sink);
			ready++;
		}
		while (posted < count && posted - sent < WINDOW &&
		       (!receives || posted < ready)) {
			post(end, opcode, size);
			posted++;
		}
		poll_end(end, &sent, &got);
		if (receives)
			poll_end(sink, &sent, &got);
	}
	return now() - start;
}

static double best_memcpy(size_t size)
{
	char *from = pages(size), *to = pages(size);
	unsigned int count = count_of(size);
	double best = 1e9;

	memset(from, 1, size);
	memset(to, 2, size);
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();

		for (unsigned int i = 0; i < count; i++) {
			memcpy(to, from, size);
			__asm__ volatile("" : : "r"(to) : "memory");
		}
		start = now() - start;
		best = start < best ? start : best;
	}
	munmap(from, size);
	munmap(to, size);
	return (double)size * count / best / 1e9;
}

/*
 * What two processes can do at best that copy through memory that they share:
 * one writes pieces of it, the other reads them, and there is nothing else.
 * It says how far apart the two processors are.
 */
static double through_shared_memory(void)
{
	enum { PIECE = 16384, PIECES = 16, COUNT = 4000 };
	struct {
		uint32_t written;
		_Alignas(64) uint32_t read;
	} *at = (void *)pages_of(MAP_SHARED, sizeof(*at));
	char *shared = pages_of(MAP_SHARED, PIECE * PIECES);
	char *own = pages(PIECE * 4);
	double start = now();
	pid_t child = fork();

	for (uint32_t i = 0; i < COUNT; i++) {
		char *place = shared + i % PIECES * PIECE;
		char *mine = own + i % 4 * PIECE;

		while (child ? i - __atomic_load_n(&at->read,
						   __ATOMIC_ACQUIRE) >=
				       PIECES
			     : i == __atomic_load_n(&at->written,
						    __ATOMIC_ACQUIRE))
			sched_yield();
		memcpy(child ? place : mine, child ? mine : place, PIECE);
		__atomic_store_n(child ? &at->written : &at->read, i + 1,
				 __ATOMIC_RELEASE);
	}
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	start = now() - start;
	munmap(at, sizeof(*at));
	munmap(shared, PIECE * PIECES);
	munmap(own, PIECE * 4);
	return (double)PIECE * COUNT / start / 1e9;
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} kinds[] = {
	{ "send", IBV_WR_SEND },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "read", IBV_WR_RDMA_READ },
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* --- the other process -------------------------------------------------- */

struct order {
	enum { STREAM, PINGPONG, END } what;
	unsigned int count; /* of messages to receive */
};

static void say(int fd, const void *what, size_t size)
{
	if (write(fd, what, size) != (ssize_t)size)
		die("write to the other process");
}

static void hear(int fd, void *what, size_t size)
{
	if (read(fd, what, size) != (ssize_t)size)
		die("read from the other process");
}

/* Receives `count` messages and, for a ping-pong, answers each. */
static void receive(struct end *end, int fd, const struct order *order)
{
	unsigned int sent = 0, got = 0, ready = 0, answered = 0;

	for (; ready < order->count && ready < WINDOW; ready++)
		post_receive(end);
	say(fd, "r", 1);
	while (got < order->count) {
		poll_end(end, &sent, &got);
		for (; ready < order->count && ready - got < WINDOW; ready++)
			post_receive(end);
		for (; order->what == PINGPONG && answered < got; answered++)
			post(end, IBV_WR_SEND, 64);
	}
	while (sent < answered)
		poll_end(end, &sent, &got);
}

static void other_process(int fd)
{
	struct order order;
	struct end end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	make_end(&end);
	say(fd, &end.own, sizeof(end.own));
	hear(fd, &end.peer, sizeof(end.peer));
	connect_end(&end);
	say(fd, "c", 1);
	for (;;) {
		hear(fd, &order, sizeof(order));
		if (order.what == END)
			break;
		receive(&end, fd, &order);
	}
	close_end(&end);
	exit(0);
}

/* --- latency ------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *took)
{
	qsort(took, PINGS, sizeof(*took), by_size);
	return took[PINGS / 2] * 1e6;
}

/* Median round trip, microseconds. `other` is in this process, or NULL. */
static double ping(struct end *end, struct end *other)
{
	static double took[PINGS];

	post_receive(end);
	for (int i = 0; i < PINGS; i++) {
		unsigned int sent = 0, got = 0, sent2 = 0, got2 = 0;
		double start = now();

		if (other)
			post_receive(other);
		post(end, IBV_WR_SEND, 64);
		while (other && !got2)
			poll_end(other, &sent2, &got2);
		if (other)
			post(other, IBV_WR_SEND, 64);
		while (!got)
			poll_end(end, &sent, &got);
		took[i] = now() - start;
		while (!sent)
			poll_end(end, &sent, &got);
		while (other && !sent2)
			poll_end(other, &sent2, &got2);
		if (i < PINGS - 1)
			post_receive(end);
	}
	return median(took);
}

static double socket_ping(void)
{
	static double took[PINGS];
	char message[64] = "";
	int fd[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		die("socketpair");
	child = fork();
	if (!child) {
		close(fd[0]);
		while (read(fd[1], message, sizeof(message)) > 0)
			say(fd[1], message, sizeof(message));
		_exit(0);
	}
	close(fd[1]);
	for (int i = 0; i < PINGS; i++) {
		double start = now();

		say(fd[0], message, sizeof(message));
		hear(fd[0], message, sizeof(message));
		took[i] = now() - start;
	}
	close(fd[0]);
	waitpid(child, NULL, 0);
	return median(took);
}

/* --- tables ------------------------------------------------------------- */

static void judge(const char *what, double ratio, double target)
{
	bool short_of = ratio < target;

	printf("%s %s: %.2f, wanted %.2f or more\n",
	       short_of ? "MISSED" : "met   ", what, ratio, target);
}

static void row(const char *where, const char *what, const double *rate,
		const double *bound)
{
	printf("%-14s %-6s", where, what);
	for (int i = 0; i < SIZES; i++) {
		printf(" %8.3f", rate[i]);
		if (bound)
			printf(" (%4.2f)", rate[i] / bound[i]);
		else
			printf("       ");
	}
	printf("\n");
	fflush(stdout);
}

static double best_stream(struct end *end, struct end *sink, int fd,
			  enum ibv_wr_opcode opcode, size_t size)
{
	struct order order = { STREAM, count_of(size) };
	double best = 1e9;
	char ready;

	for (int round = 0; round < ROUNDS; round++) {
		double took;

		if (!sink && opcode == IBV_WR_SEND) {
			say(fd, &order, sizeof(order));
			hear(fd, &ready, 1);
		}
		took = stream(end, sink, opcode, size);
		best = took < best ? took : best;
	}
	return (double)size * order.count / best / 1e9;
}

/* Rows of one place; gives the 64 KiB WRITE's share of memcpy. */
static double bandwidths(const char *where, struct end *end, struct end *sink,
			 int fd, const double *bound)
{
	double ratio = 0;

	for (int kind = 0; kind < KINDS; kind++) {
		double rate[SIZES];

		for (int i = 0; i < SIZES; i++)
			rate[i] = best_stream(end, sink, fd, kinds[kind].opcode,
					      sizes[i]);
		row(where, kinds[kind].name, rate, bound);
		if (kinds[kind].opcode == IBV_WR_RDMA_WRITE)
			ratio = rate[1] / bound[1];
	}
	return ratio;
}

/* Calls a second of a pair, and of malloc() and free() in the same run. */
static void control_path(struct end *end)
{
	const int count = 2000;
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { 16, 16, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	double start = now(), mr, qp, memory;

	for (int i = 0; i < count; i++) {
		struct ibv_mr *m = ibv_reg_mr(end->pd, end->buffer, 4096,
					      IBV_ACCESS_LOCAL_WRITE);

		if (!m)
			die("ibv_reg_mr");
		CHECK(ibv_dereg_mr(m));
	}
	mr = count / (now() - start);
	start = now();
	for (int i = 0; i < count; i++) {
		struct ibv_qp *q = ibv_create_qp(end->pd, &init);

		if (!q)
			die("ibv_create_qp");
		CHECK(ibv_destroy_qp(q));
	}
	qp = count / (now() - start);
	start = now();
	for (int i = 0; i < count; i++) {
		void *volatile p = malloc(4096);

		free(p);
	}
	memory = count / (now() - start);
	printf("\nthousands of pairs a second, and a share of malloc/free's\n"
	       "reg_mr/dereg_mr 4 KiB      %9.1f (%.4f)\n"
	       "create_qp/destroy_qp       %9.1f (%.4f)\n"
	       "malloc/free 4 KiB          %9.1f\n\n",
	       mr / 1e3, mr / memory, qp / 1e3, qp / memory, memory / 1e3);
}

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "gid-index", required_argument, NULL, 'g' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 'd')
			device_name = optarg;
		else if (option == 'g')
			gid_index = atoi(optarg);
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	struct order order = { PINGPONG, PINGS }, end_order = { END, 0 };
	struct end far, a, b;
	double bound[SIZES], shared = 0, one, two;
	double one_us = 1e9, two_us = 1e9, socket_us = 1e9;
	int fd[2], status;
	char ready;
	pid_t child;

	options(argc, argv);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		die("socketpair");
	for (int round = 0; round < 3; round++) {
		socket_us = least(socket_us, socket_ping());
		shared = most(shared, through_shared_memory());
	}
	child = fork();
	if (!child)
		other_process(fd[1]);
	close(fd[1]);
	make_end(&far);
	hear(fd[0], &far.peer, sizeof(far.peer));
	say(fd[0], &far.own, sizeof(far.own));
	connect_end(&far);
	hear(fd[0], &ready, 1);
	make_end(&a);
	make_end(&b);
	a.peer = b.own;
	b.peer = a.own;
	connect_end(&a);
	connect_end(&b);

	printf("%s: GB/s, and a share of memcpy's; %d outstanding\n"
	       "%-14s %-6s %15s %15s %15s\n",
	       device_name, WINDOW, "", "", "4 KiB   ", "64 KiB   ",
	       "1 MiB   ");
	for (int i = 0; i < SIZES; i++)
		bound[i] = best_memcpy(sizes[i]);
	row("", "memcpy", bound, NULL);
	one = bandwidths("one process", &a, &b, -1, bound);
	two = bandwidths("two processes", &far, NULL, fd[0], bound);

	printf("%-14s %-6s %24.2f\n", "shared memory", "copied", shared);
	for (int round = 0; round < 3; round++) {
		say(fd[0], &order, sizeof(order));
		hear(fd[0], &ready, 1);
		two_us = least(two_us, ping(&far, NULL));
		one_us = least(one_us, ping(&a, &b));
	}
	printf("\n64 B there and back, median of %d, us\n"
	       "one process                %9.2f\n"
	       "two processes              %9.2f\n"
	       "Unix socket                %9.2f\n",
	       PINGS, one_us, two_us, socket_us);
	control_path(&a);
	judge("64 KiB WRITE in one process / memcpy", one, 0.5);
	judge("64 KiB WRITE between two / memcpy", two, 0.25);
	judge("Unix socket's latency / between two processes",
	      socket_us / two_us, 1);
	say(fd[0], &end_order, sizeof(end_order));
	close_end(&a);
	close_end(&b);
	close_end(&far);
	if (waitpid(child, &status, 0) != child || status)
		die("the other process");
	return 0;
}
