/* SPDX-License-Identifier: MIT */
/*
 * What the probe costs a program that nobody steps: nanoseconds per call of
 * ibv_poll_cq() on an empty CQ (of the thread's CPU time: a device may give
 * the processor away when there is nothing), and per message of a ping-pong
 * of two RC QPs (post, poll until it arrived), plain and under the probe in
 * run mode.
 *
 * Without arguments it runs itself both ways, by turns, and prints the
 * ratios of the best of each: others on the machine only ever add. The
 * stepper's side is a process that reads and forgets.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define POLLS    5000000
#define MESSAGES 30000
#define ROUNDS   7

static char buffer[4096];

static double ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *one, *two;
	union ibv_gid gid;
};

static void need(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "bench probe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_qp *make_qp(struct world *w)
{
	struct ibv_qp_init_attr init = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(w->pd, &init);

	need(qp != NULL, "ibv_create_qp");
	return qp;
}

static void connect_to(struct world *w, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int err;

	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .grh = { .dgid = w->gid, .hop_limit = 1 },
			     .port_num = 1 },
	};
	err |= ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	err |= ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
	need(!err, "ibv_modify_qp");
}

static void build(struct world *w)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0], "a device");
	w->context = ibv_open_device(list[0]);
	need(w->context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	need(!ibv_query_gid(w->context, 1, 0, &w->gid), "ibv_query_gid");
	w->pd = ibv_alloc_pd(w->context);
	need(w->pd != NULL, "ibv_alloc_pd");
	w->mr = ibv_reg_mr(w->pd, buffer, sizeof(buffer),
			   IBV_ACCESS_LOCAL_WRITE);
	need(w->mr != NULL, "ibv_reg_mr");
	w->cq = ibv_create_cq(w->context, 64, NULL, NULL, 0);
	need(w->cq != NULL, "ibv_create_cq");
	w->one = make_qp(w);
	w->two = make_qp(w);
	connect_to(w, w->one, w->two->qp_num);
	connect_to(w, w->two, w->one->qp_num);
}

static double polls(struct world *w)
{
	double start = ns(CLOCK_THREAD_CPUTIME_ID);
	struct ibv_wc wc;

	for (int i = 0; i < POLLS; i++)
		need(ibv_poll_cq(w->cq, 1, &wc) == 0, "an empty CQ");
	return (ns(CLOCK_THREAD_CPUTIME_ID) - start) / POLLS;
}

/* A receive, a send, and both their completions. */
static double messages(struct world *w)
{
	struct ibv_sge sge = { (uintptr_t)buffer, 64, w->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad_send;
	double start = ns(CLOCK_MONOTONIC);

	for (int i = 0; i < MESSAGES; i++) {
		struct ibv_wc wc;
		int done = 0, got;

		need(!ibv_post_recv(w->two, &recv, &bad_recv), "post_recv");
		need(!ibv_post_send(w->one, &send, &bad_send), "post_send");
		while (done < 2) {
			got = ibv_poll_cq(w->cq, 1, &wc);
			need(got >= 0, "ibv_poll_cq");
			if (got)
				need(!wc.status, "a completion");
			done += got;
		}
	}
	return (ns(CLOCK_MONOTONIC) - start) / MESSAGES;
}

static int measure(void)
{
	struct world w;

	build(&w);
	polls(&w);
	printf("%f %f\n", polls(&w), messages(&w));
	ibv_destroy_qp(w.two);
	ibv_destroy_qp(w.one);
	ibv_destroy_cq(w.cq);
	ibv_dereg_mr(w.mr);
	ibv_dealloc_pd(w.pd);
	ibv_close_device(w.context);
	return 0;
}

/* Reads the events until the program ends. */
static void forget_events(int fd)
{
	char text[65536];

	while (read(fd, text, sizeof(text)) > 0)
		;
	_exit(0);
}

/* One run of this program with "measure", probed or not. */
static void run(const char *self, const char *probe, double result[2])
{
	int events[2], out[2];
	char fd[16];
	FILE *answer;
	pid_t child, reader = 0;

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, events) == 0, "socketpair");
	need(pipe(out) == 0, "pipe");
	child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		dup2(out[1], STDOUT_FILENO);
		close(events[0]);
		close(out[0]);
		snprintf(fd, sizeof(fd), "%d", events[1]);
		if (probe) {
			setenv("LD_PRELOAD", probe, 1);
			setenv("VERBPROBE_FD", fd, 1);
			setenv("VERBPROBE_START", "run", 1);
		}
		execl(self, self, "measure", NULL);
		_exit(127);
	}
	close(events[1]);
	close(out[1]);
	reader = fork();
	if (reader == 0)
		forget_events(events[0]);
	close(events[0]);
	answer = fdopen(out[0], "r");
	need(answer && fscanf(answer, "%lf %lf", &result[0], &result[1]) == 2,
	     "the measurement");
	fclose(answer);
	waitpid(child, NULL, 0);
	waitpid(reader, NULL, 0);
}

static double best(const double *value)
{
	double least = value[0];

	for (int i = 1; i < ROUNDS; i++)
		least = value[i] < least ? value[i] : least;
	return least;
}

int main(int argc, char **argv)
{
	static const char *const what[] = { "poll of an empty CQ",
					    "message, ping-pong" };
	double plain[2][ROUNDS], probed[2][ROUNDS], result[2];
	char self[PATH_MAX], folder[PATH_MAX], probe[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc > 1 && !strcmp(argv[1], "measure"))
		return measure();
	need(length > 0, "/proc/self/exe");
	self[length] = '\0';
	strcpy(folder, self);
	snprintf(probe, sizeof(probe), "%s/../../libverbprobe.so",
		 dirname(folder));
	need(access(probe, R_OK) == 0, probe);
	for (int i = 0; i < ROUNDS; i++) {
		run(self, NULL, result);
		plain[0][i] = result[0];
		plain[1][i] = result[1];
		run(self, probe, result);
		probed[0][i] = result[0];
		probed[1][i] = result[1];
	}
	printf("The probe when nobody steps, the best of %d runs:\n", ROUNDS);
	for (int i = 0; i < 2; i++) {
		double with = best(probed[i]), without = best(plain[i]);

		printf("  %-20s plain %8.1f ns  probed %8.1f ns  ratio %.2f\n",
		       what[i], without, with, with / without);
	}
	return 0;
}
