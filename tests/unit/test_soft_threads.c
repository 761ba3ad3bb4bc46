/* SPDX-License-Identifier: MIT */
/*
 * Many threads on many objects at once, which verbs allow: each call does
 * what it says, none waits for ever, and the thread sanitizer (`make tsan`)
 * has nothing to say.
 *
 * An assertion that fails outside the main thread ends the program.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include "tests/unit/soft_fixture.h"

#define THREADS 6
#define ROUNDS  20

/* All of them within 8 MiB, an ordinary limit. */
static void small_pair(struct pair *p)
{
	pair_init(p, IBV_QPT_RC);
	p->a.registered = p->b.registered = 65536;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	assert_int_equal(pthread_create(thread, NULL, run, arg), 0);
}

static void join_all(pthread_t *thread, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

/* Posts one; false: the send queue is full. Many threads may do so. */
static bool try_post(struct end *end, enum ibv_wr_opcode opcode, size_t length,
		     const struct end *peer)
{
	struct ibv_sge sge = sge_of(end, 0, length);
	struct ibv_send_wr wr = send_wr(opcode, &sge, peer, 0);
	struct ibv_send_wr *bad;
	int err = ibv_post_send(end->qp, &wr, &bad);

	assert_true(err == 0 || err == ENOMEM);
	return err == 0;
}

/* --- pairs that come and go --------------------------------------------- */

static void exchange(struct pair *p, char byte)
{
	memset(p->a.buf, byte, 9000);
	post_simple(&p->a, IBV_WR_RDMA_WRITE, 9000, &p->b);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	assert_int_equal(p->b.buf[8999], byte);
	post_receive(&p->b, 0, 64, 2);
	p->a.buf[0] = (char)(byte + 1);
	post_simple(&p->a, IBV_WR_SEND, 64, &p->b);
	expect_wc(p->b.cq, IBV_WC_SUCCESS);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	assert_int_equal(p->b.buf[0], (char)(byte + 1));
	p->b.buf[0] = (char)(byte + 2);
	post_simple(&p->a, IBV_WR_RDMA_READ, 1, &p->b);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	assert_int_equal(p->a.buf[0], (char)(byte + 2));
}

/* The device is opened and closed anew in each round, too. */
static void *come_and_go(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct pair p;

		small_pair(&p);
		pair_open(&p);
		exchange(&p, (char)(i + (intptr_t)arg));
		pair_close(&p);
	}
	return NULL;
}

static void test_pairs_come_and_go(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	for (intptr_t i = 0; i < THREADS; i++)
		start(&thread[i], come_and_go, (void *)i);
	join_all(thread, THREADS);
}

/* --- small objects in one context --------------------------------------- */

static void *make_objects(void *arg)
{
	struct pair *p = arg;
	static char memory[8192];

	for (int i = 0; i < 10 * ROUNDS; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(p->context);
		struct ibv_mr *mr =
			ibv_reg_mr(pd, memory, sizeof(memory), ALL_ACCESS);
		struct ibv_comp_channel *channel =
			ibv_create_comp_channel(p->context);
		struct ibv_cq *cq =
			ibv_create_cq(p->context, 8, NULL, channel, 0);
		struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		struct ibv_ah *ah = ibv_create_ah(pd, &p->a.attr.ah_attr);

		assert_true(pd && mr && channel && cq && mw && ah);
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
		assert_int_equal(ibv_resize_cq(cq, 100), 0);
		assert_int_equal(ibv_destroy_ah(ah), 0);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		assert_int_equal(ibv_destroy_comp_channel(channel), 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
	}
	return NULL;
}

static void test_objects_in_one_context(void **state)
{
	pthread_t thread[THREADS];
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	for (int i = 0; i < THREADS; i++)
		start(&thread[i], make_objects, &p);
	for (int i = 0; i < ROUNDS; i++)
		exchange(&p, (char)i);
	join_all(thread, THREADS);
	pair_close(&p);
}

/* --- one QP, one CQ, many threads --------------------------------------- */

#define EACH 300

struct crowd {
	struct pair p;
	unsigned int done;
};

static void *post_each(void *arg)
{
	struct crowd *crowd = arg;
	double limit = seconds() + 60;

	for (int i = 0; i < EACH;) {
		if (try_post(&crowd->p.a, IBV_WR_RDMA_WRITE, 32, &crowd->p.b))
			i++;
		else if (seconds() > limit)
			fail_msg("the queue stays full");
		else
			sched_yield();
	}
	return NULL;
}

static void *poll_until(void *arg)
{
	struct crowd *crowd = arg;
	double limit = seconds() + 60;
	struct ibv_wc wc[4];

	while (__atomic_load_n(&crowd->done, __ATOMIC_RELAXED) <
	       EACH * THREADS) {
		int n = ibv_poll_cq(crowd->p.a.cq, 4, wc);

		assert_true(n >= 0 && seconds() < limit);
		for (int i = 0; i < n; i++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		__atomic_fetch_add(&crowd->done, (unsigned int)n,
				   __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_many_post_and_poll_one_qp(void **state)
{
	pthread_t thread[THREADS + 2];
	struct crowd crowd = { .done = 0 };

	(void)state;
	pair_init(&crowd.p, IBV_QPT_RC);
	pair_open(&crowd.p);
	for (int i = 0; i < THREADS; i++)
		start(&thread[i], post_each, &crowd);
	start(&thread[THREADS], poll_until, &crowd);
	start(&thread[THREADS + 1], poll_until, &crowd);
	join_all(thread, THREADS + 2);
	assert_int_equal(crowd.done, EACH * THREADS);
	pair_close(&crowd.p);
}

/* --- events ------------------------------------------------------------- */

#define EVENTS 100

static void *wait_for_events(void *arg)
{
	struct pair *p = arg;
	unsigned int events = 0;
	struct ibv_wc wc;

	for (int got = 0; got < EVENTS;) {
		struct ibv_cq *cq;
		void *context;

		assert_int_equal(ibv_get_cq_event(p->channel, &cq, &context),
				 0);
		events++;
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			post_receive(&p->b, 0, 64, 1);
			got++;
		}
	}
	ibv_ack_cq_events(p->b.cq, events);
	return NULL;
}

static void test_events_wake_another_thread(void **state)
{
	pthread_t thread;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.channel = ibv_create_comp_channel(p.context);
	pair_open(&p);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	for (int i = 0; i < 8; i++)
		post_receive(&p.b, 0, 64, 1);
	alarm(60); /* an event that is lost */
	start(&thread, wait_for_events, &p);
	for (int i = 0; i < EVENTS; i++) {
		post_simple(&p.a, IBV_WR_SEND, 64, &p.b);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	}
	join_all(&thread, 1);
	alarm(0);
	pair_close(&p);
}

/* --- what others still use goes away ------------------------------------ */

/* As many completions as were posted; none fails but in an allowed way. */
static void drain(struct end *end, int posted, enum ibv_wc_status allowed)
{
	for (int i = 0; i < posted; i++) {
		struct ibv_wc wc = wait_wc(end->cq);

		assert_true(wc.status == IBV_WC_SUCCESS ||
			    wc.status == IBV_WC_WR_FLUSH_ERR ||
			    wc.status == allowed);
	}
	expect_empty(end->cq);
}

static void *write_on(void *arg)
{
	struct pair *p = arg;
	int posted = 0;

	for (int i = 0; i < 40; i++) {
		posted += try_post(&p->a, IBV_WR_RDMA_WRITE, 20000, &p->b);
		if (posted == p->wrs) {
			drain(&p->a, posted, IBV_WC_RETRY_EXC_ERR);
			posted = 0;
		}
	}
	drain(&p->a, posted, IBV_WC_RETRY_EXC_ERR);
	return NULL;
}

static void test_a_peer_destroyed_under_way(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		pair_open(&p);
		start(&thread, write_on, &p);
		for (int n = 0; n < i % 7; n++)
			sched_yield();
		assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
		p.b.qp = NULL;
		join_all(&thread, 1);
		pair_close(&p);
	}
}

/* End b as it was: its MR may go, the program knows its rkey by heart. */
struct target {
	struct pair *p;
	struct end b;
	struct ibv_mr mr;
};

static void *write_until_refused(void *arg)
{
	struct target *target = arg;
	struct pair *p = target->p;
	int posted = 0;

	for (int i = 0; i < p->wrs; i++)
		posted += try_post(&p->a, IBV_WR_RDMA_WRITE, 20000, &target->b);
	drain(&p->a, posted, IBV_WC_REM_ACCESS_ERR);
	return NULL;
}

static void test_a_qp_broken_and_an_mr_gone_under_way(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		pair_open(&p);
		struct target target = { &p, p.b, *p.b.mr };
		target.b.mr = &target.mr;
		start(&thread, write_until_refused, &target);
		for (int n = 0; n < i % 7; n++)
			sched_yield();
		if (i & 1)
			to_state(&p.a, IBV_QPS_ERR);
		else
			assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
		join_all(&thread, 1);
		if (!(i & 1))
			p.b.mr = NULL;
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs_come_and_go),
		cmocka_unit_test(test_objects_in_one_context),
		cmocka_unit_test(test_many_post_and_poll_one_qp),
		cmocka_unit_test(test_events_wake_another_thread),
		cmocka_unit_test(test_a_peer_destroyed_under_way),
		cmocka_unit_test(test_a_qp_broken_and_an_mr_gone_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
