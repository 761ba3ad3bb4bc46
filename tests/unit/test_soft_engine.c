/* SPDX-License-Identifier: MIT */
/*
 * The engine's thread: when there is one, at exit, over a fork, and beside
 * several contexts and programs' threads that use the control path.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "tests/unit/soft_fixture.h"
#include "tests/unit/tsan.h"

static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	assert_non_null(tasks);
	for (struct dirent *entry; (entry = readdir(tasks));)
		count += entry->d_name[0] != '.';
	closedir(tasks);
	return count;
}

/* A joined thread may be listed for a moment longer. */
static void expect_threads(int want)
{
	double limit = seconds() + 10;

	while (threads() != want) {
		if (seconds() > limit)
			fail_msg("%d threads, not %d", threads(), want);
	}
}

static void round_trip(struct pair *p)
{
	post_receive(&p->b, 0, 64, 1);
	post_simple(&p->a, IBV_WR_SEND, 8, &p->b);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	expect_wc(p->b.cq, IBV_WC_SUCCESS);
}

static void a_thread_from_the_first_qp_to_the_last_context(void **state)
{
	int before = threads();
	struct pair p;

	(void)state;
	skip_under_tsan("it has a thread itself");
	pair_init(&p, IBV_QPT_RC);
	expect_threads(before);
	pair_open(&p);
	expect_threads(before + 1);
	round_trip(&p);
	pair_close(&p);
	expect_threads(before);
}

/* How often the process's threads gave up a processor in some time. */
static long switches_in(long ns)
{
	struct timespec time = { 0, ns };
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	nanosleep(&time, NULL);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_nvcsw - before.ru_nvcsw;
}

/* It naps while a program polls, and after the last message looks round. */
static void an_idle_device_uses_no_processor(void **state)
{
	double limit = seconds() + 10;
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	round_trip(&p);
	for (int i = 0; i < 100000; i++)
		expect_empty(p.a.cq);
	/* Ours is one. */
	while (switches_in(50000000) > 1) {
		if (seconds() > limit)
			fail_msg("the thread does not go to sleep");
	}
	/* But it is there when it is needed. */
	round_trip(&p);
	pair_close(&p);
}

static void qps_of_two_contexts(void **state)
{
	struct pair p, q;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_init(&q, IBV_QPT_RC);
	pair_make(&p);
	pair_make(&q);
	/* p's a with q's b, and closing p's context does not stop q's. */
	p.a.attr.dest_qp_num = q.b.qp->qp_num;
	q.b.attr.dest_qp_num = p.a.qp->qp_num;
	end_connect(&p, &p.a);
	end_connect(&q, &q.b);
	end_connect(&q, &q.a);
	post_receive(&q.b, 0, 64, 1);
	post_simple(&p.a, IBV_WR_SEND, 8, &q.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(q.b.cq, IBV_WC_SUCCESS);
	pair_close(&p);
	post_simple(&q.b, IBV_WR_SEND, 8, &q.a);
	expect_wc(q.b.cq, IBV_WC_RETRY_EXC_ERR);
	pair_close(&q);
}

/* Waits for a child and gives its status; it must end by itself in time. */
static int status_of(pid_t child)
{
	double limit = seconds() + 20;
	int status = 0;

	while (!waitpid(child, &status, WNOHANG)) {
		if (seconds() > limit) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			fail_msg("the child hangs");
		}
	}
	return status;
}

static void exit_with_work_under_way(void **state)
{
	pid_t child;

	(void)state;
	skip_under_tsan("a child starts a thread");
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child) {
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		pair_open(&p);
		for (int i = 0; i < 8; i++)
			post_simple(&p.a, IBV_WR_RDMA_WRITE, BUFFER, &p.b);
		exit(7);
	}
	assert_int_equal(status_of(child), 7 << 8);
}

/*
 * Closing with live objects answers 0, and nothing moves any more. What the
 * program did not destroy leaks, as with libibverbs: so in a child.
 */
static void close_with_live_qps(void **state)
{
	pid_t child;

	(void)state;
	skip_under_tsan("a child starts a thread");
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child) {
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		pair_open(&p);
		for (int i = 0; i < 8; i++)
			post_simple(&p.a, IBV_WR_RDMA_WRITE, BUFFER, &p.b);
		assert_int_equal(ibv_close_device(p.context), 0);
		expect_threads(1);
		free(p.a.buf);
		free(p.b.buf);
		_exit(4);
	}
	assert_int_equal(status_of(child), 4 << 8);
}

static void a_forked_child_starts_afresh(void **state)
{
	struct pair p;
	pid_t child;

	(void)state;
	skip_under_tsan("a child starts a thread");
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	for (int i = 0; i < 8; i++)
		post_simple(&p.a, IBV_WR_RDMA_WRITE, BUFFER, &p.b);
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child) {
		struct pair own;

		pair_init(&own, IBV_QPT_RC);
		pair_open(&own);
		round_trip(&own);
		pair_close(&own);
		exit(threads() == 1 ? 5 : 6);
	}
	assert_int_equal(status_of(child), 5 << 8);
	for (int i = 0; i < 8; i++)
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	round_trip(&p);
	pair_close(&p);
}

/* --- the control path while data moves ------------------------------------ */

static void *control_main(void *arg)
{
	struct pair *p = arg;
	long wrong = 0;

	for (int i = 0; i < 300; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(p->context);
		struct ibv_mr *mr =
			ibv_reg_mr(pd, p->a.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_cq *cq = ibv_create_cq(p->context, 4, NULL, NULL, 0);
		struct ibv_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { 1, 1, 1, 1, 0 },
			.qp_type = IBV_QPT_RC,
		};
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		wrong += !pd || !mr || !cq || !qp;
		wrong += ibv_destroy_qp(qp) != 0;
		wrong += ibv_destroy_cq(cq) != 0;
		wrong += ibv_dereg_mr(mr) != 0;
		wrong += ibv_dealloc_pd(pd) != 0;
	}
	return (void *)wrong;
}

static void others_create_and_destroy_meanwhile(void **state)
{
	pthread_t thread;
	struct pair p;
	void *wrong;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	pthread_create(&thread, NULL, control_main, &p);
	for (int i = 0; i < 100; i++) {
		post_simple(&p.a, IBV_WR_RDMA_WRITE, BUFFER, &p.b);
		post_simple(&p.a, IBV_WR_RDMA_READ, BUFFER, &p.b);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	}
	pthread_join(thread, &wrong);
	assert_null(wrong);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_thread_from_the_first_qp_to_the_last_context),
		cmocka_unit_test(an_idle_device_uses_no_processor),
		cmocka_unit_test(qps_of_two_contexts),
		cmocka_unit_test(exit_with_work_under_way),
		cmocka_unit_test(close_with_live_qps),
		cmocka_unit_test(a_forked_child_starts_afresh),
		cmocka_unit_test(others_create_and_destroy_meanwhile),
	};

	return cmocka_run_group_tests_name("soft engine", tests, NULL, NULL);
}
