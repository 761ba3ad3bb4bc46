/* SPDX-License-Identifier: MIT */
/*
 * How fast a device moves data and makes objects, each figure beside its
 * bound, measured in the same run: memcpy() of the same size for bandwidth, a
 * ping-pong over a Unix socket for latency, malloc()/free() for objects.
 *
 *   soft [--device NAME] [--gid-index N]     the default is soft0
 *
 * Each figure is the best of several rounds, since a machine that does other
 * things only takes away from it. Targets that are missed are said so.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define MOST   (1u << 20)
#define WINDOW 16
#define ROUNDS 15
#define PINGS  2000
#define ACCESS                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_WRITE)

static const size_t sizes[] = { 4096, 65536, MOST };
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static const char *device_name = "soft0";
static int gid_index = -1;

/* What one end must know of the other. */
struct address {
	uint32_t qpn, rkey;
	uint64_t addr;
	uint16_t lid;
	union ibv_gid gid;
};

struct end {
	struct ibv_context *context;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buffer;
	struct address own, peer;
};

static void die(const char *what)
{
	fprintf(stderr, "soft: %s: %s\n", what, strerror(errno));
	exit(1);
}

#define CHECK(call)                   \
	do {                          \
		int err_ = (call);    \
		if (err_) {           \
			errno = err_; \
			die(#call);   \
		}                     \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As an MR's memory in these tests. */
static char *pages(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	return memory;
}

/* --- an end ------------------------------------------------------------- */

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device_name))
			context = ibv_open_device(list[i]);
	if (!context)
		die(device_name);
	ibv_free_device_list(list);
	return context;
}

/* The first GID that there is, unless one was asked for; RoCE v2 by luck. */
static void find_gid(struct end *end)
{
	static const union ibv_gid none;
	int at = gid_index < 0 ? 0 : gid_index;

	while (ibv_query_gid(end->context, 1, at, &end->own.gid) ||
	       (!memcmp(&end->own.gid, &none, sizeof(none)) && gid_index < 0)) {
		if (++at >= end->port.gid_tbl_len)
			die("no GID");
	}
	gid_index = at;
}

static void make_end(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 2 * WINDOW,
			 .max_recv_wr = 2 * WINDOW,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	end->context = open_device();
	CHECK(ibv_query_port(end->context, 1, &end->port));
	find_gid(end);
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 4 * WINDOW, NULL, NULL, 0);
	end->buffer = pages(MOST);
	if (!end->pd || !end->cq)
		die("an end");
	memset(end->buffer, 1, MOST);
	end->mr = ibv_reg_mr(end->pd, end->buffer, MOST, ACCESS);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &init);
	if (!end->mr || !end->qp)
		die("an end");
	end->own.qpn = end->qp->qp_num;
	end->own.rkey = end->mr->rkey;
	end->own.addr = (uintptr_t)end->buffer;
	end->own.lid = end->port.lid;
}

static void connect_end(struct end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = end->port.active_mtu,
		.dest_qp_num = end->peer.qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .dlid = end->peer.lid,
			     .port_num = 1,
			     .grh = { .dgid = end->peer.gid,
				      .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 64 } },
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
	};

	CHECK(ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void close_end(struct end *end)
{
	CHECK(ibv_destroy_qp(end->qp));
	CHECK(ibv_dereg_mr(end->mr));
	CHECK(ibv_destroy_cq(end->cq));
	CHECK(ibv_dealloc_pd(end->pd));
	CHECK(ibv_close_device(end->context));
	munmap(end->buffer, MOST);
}

static void post(struct end *end, enum ibv_wr_opcode opcode, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)end->buffer, (uint32_t)size,
			       end->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1,
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = size <= 64 && opcode != IBV_WR_RDMA_READ
				      ? IBV_SEND_INLINE
				      : 0,
		.wr.rdma = { end->peer.addr, end->peer.rkey },
	};

	CHECK(ibv_post_send(end->qp, &wr, &bad));
}

static void post_receive(struct end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->buffer, MOST, end->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	CHECK(ibv_post_recv(end->qp, &wr, &bad));
}

/* Polls once; counts what sends and receives are done. */
static void poll_end(struct end *end, unsigned int *sent, unsigned int *got)
{
	struct ibv_wc wc[WINDOW];
	int n = ibv_poll_cq(end->cq, WINDOW, wc);

	if (n < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "soft: a work request failed: %s\n",
				ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (wc[i].wr_id)
			++*sent;
		else
			++*got;
	}
}

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

static bool missed;

static void judge(const char *what, double ratio, double target)
{
	bool short_of = ratio < target;

	missed |= short_of;
	printf("%s %s: %.2f, wanted %.2f or more\n",
	       short_of ? "MISSED" : "met   ", what, ratio, target);
}

static void row(const char *where, const char *what, const double *rate,
		const double *bound)
{
	printf("%-14s %-6s", where, what);
	for (int i = 0; i < SIZES; i++) {
		printf(" %8.2f", rate[i]);
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
	double bound[SIZES], one, two, one_us, two_us, socket_us;
	int fd[2], status;
	char ready;
	pid_t child;

	options(argc, argv);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		die("socketpair");
	socket_us = socket_ping();
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

	say(fd[0], &order, sizeof(order));
	hear(fd[0], &ready, 1);
	two_us = ping(&far, NULL);
	one_us = ping(&a, &b);
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
