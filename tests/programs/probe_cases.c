/* SPDX-License-Identifier: MIT */
/*
 * Small programs in one, by the name of the first argument, each for one
 * behaviour that tests/e2e/probe.t looks at. Ends with 0 when the program
 * itself saw nothing wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define MANY 600

static struct ibv_context *context;
static struct ibv_pd *pd;
static char buffer[4096];

static void open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		exit(77);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!context)
		exit(1);
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, unsigned int depth)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 1, depth, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	return ibv_create_qp(pd, &init);
}

/* `count` receives posted, then flushed: as many completions with errors. */
static void flush_receives(struct ibv_qp *qp, int count)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_recv_wr wr[MANY] = { { .wr_id = 0 } }, *bad;

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS))
		exit(1);
	for (int i = 0; i < count; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = UINT64_MAX - (uint64_t)i,
			.next = i + 1 < count ? &wr[i + 1] : NULL,
		};
	if (ibv_post_recv(qp, wr, &bad))
		exit(1);
	attr.qp_state = IBV_QPS_ERR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		exit(1);
}

/* Empty polls by the thousand at two places, then something else. */
static int polls(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_wc wc;
	int got = 0;

	for (int i = 0; i < 1000; i++) {
		got |= ibv_poll_cq(cq, 1, &wc);
		got |= ibv_poll_cq(cq, 1, &wc);
	}
	ibv_destroy_cq(cq);
	return got;
}

/* Polls an empty CQ for ever: to be paused. */
static int forever(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_wc wc;

	puts("polling");
	fflush(stdout);
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	return 0;
}

/* Lists that no line can hold. */
static int many(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, MANY, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(cq, MANY);
	struct ibv_wc wc[MANY];
	int got = 0;

	flush_receives(qp, MANY);
	while (got < MANY)
		got += ibv_poll_cq(cq, MANY, wc);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return got != MANY;
}

/* A refusal, and errno: kept by what succeeds, set by what is refused. */
static int refused(void)
{
	struct ibv_mr *mr;
	int err;

	errno = 77;
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!mr || errno != 77)
		return 1;
	err = ibv_dealloc_pd(pd);
	if (err != EBUSY)
		return 1;
	errno = 0;
	if (ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_REMOTE_WRITE) ||
	    errno != EINVAL)
		return 1;
	return ibv_dereg_mr(mr);
}

/* The same refusal again and again: a QP in RESET sends nothing. */
static int refusals(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(cq, 4);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	int taken = 0;

	for (int i = 0; i < 500; i++)
		taken += !ibv_post_send(qp, &wr, &bad);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return taken;
}

/* One thread blocks in a call while the other goes on and wakes it. */
static void *get_event(void *arg)
{
	struct ibv_comp_channel *channel = arg;
	struct ibv_cq *cq;
	void *cq_context;

	if (ibv_get_cq_event(channel, &cq, &cq_context) || cq_context != buffer)
		return (void *)1;
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static int blocked(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, buffer, channel, 0);
	struct ibv_qp *qp = make_qp(cq, 4);
	pthread_t thread;
	struct ibv_wc wc;
	void *wrong;

	ibv_req_notify_cq(cq, 0);
	pthread_create(&thread, NULL, get_event, channel);
	flush_receives(qp, 1);
	pthread_join(thread, &wrong);
	if (ibv_poll_cq(cq, 1, &wc) != 1 || wc.status != IBV_WC_WR_FLUSH_ERR)
		return 1;
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
	return wrong != NULL;
}

/* Blocks in a call until SIGUSR1 comes: to be paused meanwhile. */
static int waits(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, buffer, channel, 0);
	struct ibv_qp *qp = make_qp(cq, 4);
	pthread_t thread;
	sigset_t usr1;
	void *wrong;
	int signal;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	ibv_req_notify_cq(cq, 0);
	pthread_create(&thread, NULL, get_event, channel);
	sigwait(&usr1, &signal);
	flush_receives(qp, 1);
	pthread_join(thread, &wrong);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
	return wrong != NULL;
}

#define LEFT 1000

static atomic_int polled;

/* Polls so often, then waits outside of verbs for ever. */
static void *poll_and_stay(void *arg)
{
	struct ibv_wc wc;

	for (int i = 0; i < LEFT; i++)
		if (ibv_poll_cq(arg, 1, &wc))
			return NULL;
	polled++;
	for (;;)
		pause();
}

/* As long as the program runs. */
static void *poll_on(void *arg)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(arg, 1, &wc))
		;
	return NULL;
}

/* In a call for ever. */
static void *event_never(void *arg)
{
	struct ibv_cq *cq;
	void *cq_context;

	polled++;
	ibv_get_cq_event(arg, &cq, &cq_context);
	return NULL;
}

/* Ends while other threads have polled, do so still, or are in a call. */
static int leftover(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq[3];
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		cq[i] = ibv_create_cq(context, 4, NULL, NULL, 0);
	pthread_create(&thread, NULL, poll_and_stay, cq[0]);
	pthread_create(&thread, NULL, poll_and_stay, cq[1]);
	pthread_create(&thread, NULL, poll_on, cq[2]);
	pthread_create(&thread, NULL, event_never, channel);
	while (polled < 3)
		usleep(1000);
	exit(0);
}

static void *churn(void *arg)
{
	for (int i = 0; i < 25; i++) {
		struct ibv_pd *mine = ibv_alloc_pd(context);

		if (!mine || ibv_dealloc_pd(mine))
			return (void *)1;
	}
	return arg;
}

static int threads(void)
{
	pthread_t thread[4];
	int wrong = 0;
	void *got;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, churn, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &got);
		wrong |= got != NULL;
	}
	return wrong;
}

/* The child calls verbs too, then becomes another program. */
static int forks(void)
{
	int status = 1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct ibv_device **list = ibv_get_device_list(NULL);

		if (list)
			ibv_free_device_list(list);
		execl("/bin/sh", "sh", "-c",
		      "echo \"preload=$LD_PRELOAD fd=$VERBPROBE_FD\"; "
		      "ls -l /proc/self/fd | grep -c socket",
		      (char *)NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? 0 : 1;
}

/* A child that is born without fork(): no handler of fork runs for it. */
static int spawns(void)
{
	static char shell[] = "sh", option[] = "-c",
		    command[] = "ls -l /proc/self/fd | grep -c socket";
	char *const argv[] = { shell, option, command, NULL };
	int status = 1;
	pid_t child;

	if (posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ))
		return 1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? 0 : 1;
}

static int marks(void)
{
	void (*mark)(const char *, const char *, int) =
		(void (*)(const char *, const char *, int))dlsym(RTLD_DEFAULT,
								 "verbs_mark");
	struct ibv_pd *more;

	if (!mark)
		return 1;
	mark("first", __FILE__, __LINE__);
	more = ibv_alloc_pd(context);
	mark("second", __FILE__, __LINE__);
	return ibv_dealloc_pd(more);
}

/* A structure that is not there. */
static int null(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 0, NULL, NULL, 0);

	return cq ? 1 : 0;
}

static int crash(void)
{
	abort();
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "polls", polls },     { "forever", forever },
	{ "many", many },       { "refused", refused },
	{ "blocked", blocked }, { "threads", threads },
	{ "forks", forks },     { "marks", marks },
	{ "null", null },       { "refusals", refusals },
	{ "spawns", spawns },   { "crash", crash },
	{ "waits", waits },     { "leftover", leftover },
};

int main(int argc, char **argv)
{
	int status = 2;

	open_first();
	pd = ibv_alloc_pd(context);
	if (!pd)
		return 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			status = cases[i].run();
	if (ibv_dealloc_pd(pd))
		status = 1;
	ibv_close_device(context);
	return status;
}
