/* SPDX-License-Identifier: MIT */
/*
 * Completing on soft0: flushing, draining, events, overrun, destroying.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include "tests/unit/soft_fixture.h"

/* --- states --------------------------------------------------------------- */

static void posts_in_err_flush_at_once(void **state)
{
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	to_state(&p.a, IBV_QPS_ERR);
	post_receive(&p.a, 0, 8, 5);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 5);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 1);
	pair_close(&p);
}

static void reset_is_silent_and_the_qp_works_again(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b); /* waits, RNR */
	post_receive(&p.a, 0, 8, 5);
	to_state(&p.a, IBV_QPS_RESET);
	to_state(&p.b, IBV_QPS_RESET);
	end_connect(&p, &p.a);
	end_connect(&p, &p.b);
	expect_empty(p.a.cq);
	post_receive(&p.b, 0, 8, 6);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(p.b.cq).wr_id, 6);
	/* The receive of before is gone. */
	post_simple(&p.b, IBV_WR_SEND, 8, &p.a);
	post_receive(&p.a, 0, 8, 7);
	assert_int_equal(wait_wc(p.a.cq).wr_id, 7);
	pair_close(&p);
}

static int event_waiting(struct ibv_context *context)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };

	return poll(&fd, 1, 0);
}

/*
 * What was begun ends, what comes later waits; the event only if asked. The
 * peer comes up late, so that there is something under way to drain.
 */
static void draining(void **state)
{
	(void)state;
	for (int ask = 0; ask <= 1; ask++) {
		struct ibv_qp_attr attr = {
			.qp_state = IBV_QPS_SQD,
			.en_sqd_async_notify = 1,
		};
		int mask = IBV_QP_STATE;
		struct pair p;

		if (ask)
			mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
		pair_init(&p, IBV_QPT_RC);
		p.a.attr.timeout = 12; /* 17 ms */
		p.a.attr.retry_cnt = 7;
		pair_make(&p);
		end_connect(&p, &p.a);
		post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
		while (query(&p.a).sq_psn == p.a.attr.sq_psn)
			;
		assert_int_equal(ibv_modify_qp(p.a.qp, &attr, mask), 0);
		assert_int_equal(query(&p.a).sq_draining, 1);
		post_simple(&p.a, IBV_WR_RDMA_WRITE, 8, &p.b);
		to_init(&p, &p.b);
		post_receive(&p.b, 0, 8, 1);
		to_rtr(&p, &p.b);
		while (query(&p.a).sq_draining)
			;
		if (ask)
			assert_int_equal(wait_event(p.context),
					 IBV_EVENT_SQ_DRAINED);
		assert_int_equal(event_waiting(p.context), 0);
		assert_int_equal(wait_wc(p.a.cq).opcode, IBV_WC_SEND);
		expect_empty(p.a.cq);
		to_state(&p.a, IBV_QPS_RTS);
		assert_int_equal(wait_wc(p.a.cq).opcode, IBV_WC_RDMA_WRITE);
		pair_close(&p);
	}
}

static void an_idle_queue_is_drained_at_once(void **state)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	assert_int_equal(
		ibv_modify_qp(p.a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		0);
	assert_int_equal(query(&p.a).sq_draining, 0);
	assert_int_equal(wait_event(p.context), IBV_EVENT_SQ_DRAINED);
	to_state(&p.a, IBV_QPS_RTS);
	pair_close(&p);
}

/* --- channel events ------------------------------------------------------- */

static void open_with_channel(struct pair *p)
{
	int flags;

	pair_init(p, IBV_QPT_RC);
	p->channel = ibv_create_comp_channel(p->context);
	assert_non_null(p->channel);
	flags = fcntl(p->channel->fd, F_GETFL);
	assert_int_equal(fcntl(p->channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	pair_open(p);
}

static bool got_event(struct pair *p)
{
	struct ibv_cq *cq = NULL;
	void *context;

	if (ibv_get_cq_event(p->channel, &cq, &context)) {
		assert_int_equal(errno, EAGAIN);
		return false;
	}
	assert_ptr_equal(cq, p->b.cq);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* For an event that follows a CQE seen already: it may be on its way. */
static void expect_event(struct pair *p)
{
	double limit = seconds() + 10;

	while (!got_event(p)) {
		if (seconds() > limit)
			fail_msg("no event came");
	}
}

/* A message of which both sides have completed, so events are raised. */
static void message(struct pair *p, unsigned int flags)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, &p->b, 0);

	wr.send_flags = flags;
	post_receive(&p->b, 0, 64, 1);
	post(&p->a, &wr);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
}

static void one_arming_one_event(void **state)
{
	struct pair p;

	(void)state;
	open_with_channel(&p);
	message(&p, 0);
	assert_false(got_event(&p)); /* not armed */
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	assert_false(got_event(&p)); /* none for a CQE that was there */
	message(&p, 0);
	assert_true(got_event(&p));
	message(&p, 0);
	assert_false(got_event(&p));
	pair_close(&p);
}

static void solicited_events(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	open_with_channel(&p);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
	message(&p, 0);
	assert_false(got_event(&p));
	message(&p, IBV_SEND_SOLICITED);
	assert_true(got_event(&p));
	/* Armings add up: the wider one stays. */
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
	message(&p, 0);
	assert_true(got_event(&p));
	/* A send's completion never counts. */
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_wc(p.b.cq).opcode, IBV_WC_RECV);
	post_simple(&p.b, IBV_WR_RDMA_WRITE, 8, &p.a);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	assert_false(got_event(&p));
	/* An error's does (IBTA), a send's and a receive's. */
	sge = (struct ibv_sge){ (uintptr_t)p.b.buf, 8, 0 };
	wr = send_wr(IBV_WR_SEND, &sge, &p.a, 0);
	post(&p.b, &wr);
	expect_wc(p.b.cq, IBV_WC_LOC_PROT_ERR);
	expect_event(&p);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
	post_receive(&p.b, 0, 8, 1);
	expect_wc(p.b.cq, IBV_WC_WR_FLUSH_ERR);
	expect_event(&p);
	pair_close(&p);
}

static void arming_without_a_channel(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	message(&p, 0);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* --- overrun ---------------------------------------------------------------*/

/* IBTA: one event, the CQ is dead, its QPs break; what it holds can be read. */
static void overrun(void **state)
{
	struct pair p;
	int fit;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.cqe = 3;
	pair_open(&p);
	fit = p.a.cq->cqe;
	assert_int_equal(fit, 3);
	for (int i = 0; i <= fit; i++)
		post_simple(&p.a, IBV_WR_RDMA_WRITE, 8, &p.b);
	assert_int_equal(wait_event(p.context), IBV_EVENT_CQ_ERR);
	assert_int_equal(wait_event(p.context), IBV_EVENT_QP_FATAL);
	assert_int_equal(state_of(&p.a), IBV_QPS_ERR);
	assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
	for (int i = 0; i < fit; i++)
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	/* Nothing comes any more, and no second event. */
	post_simple(&p.a, IBV_WR_RDMA_WRITE, 8, &p.b);
	post_simple(&p.b, IBV_WR_RDMA_WRITE, 8, &p.a);
	expect_wc(p.b.cq, IBV_WC_RETRY_EXC_ERR);
	expect_empty(p.a.cq);
	assert_int_equal(event_waiting(p.context), 0);
	pair_close(&p);
}

static void a_cq_holds_what_it_says(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.cqe = 3;
	pair_open(&p);
	for (int i = 0; i < 3; i++)
		post_simple(&p.a, IBV_WR_RDMA_WRITE, 8, &p.b);
	for (int i = 0; i < 3; i++)
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(event_waiting(p.context), 0);
	pair_close(&p);
}

/* --- destroying ------------------------------------------------------------*/

/* Section 1: WRs vanish, no completions; CQEs that are there stay. */
static void destroy_with_work_pending(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	post_simple(&p.a, IBV_WR_RDMA_WRITE, 8, &p.b);
	post_simple(&p.a, IBV_WR_RDMA_READ, 8, &p.b);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b); /* waits, RNR */
	post_receive(&p.a, 0, 8, 2);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	/* The READ's is in the CQ before the SEND has been tried. */
	while (query(&p.a).sq_psn < ((p.a.attr.sq_psn + 2) & 0xffffff))
		;
	assert_int_equal(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = NULL;
	assert_int_equal(wait_wc(p.a.cq).opcode, IBV_WC_RDMA_READ);
	expect_empty(p.a.cq);
	pair_close(&p);
}

static void destroy_while_data_moves(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		pair_open(&p);
		for (int j = 0; j < 8; j++)
			post_simple(&p.a, IBV_WR_RDMA_WRITE, BUFFER, &p.b);
		assert_int_equal(ibv_destroy_qp(i % 2 ? p.a.qp : p.b.qp), 0);
		*(i % 2 ? &p.a.qp : &p.b.qp) = NULL;
		pair_close(&p);
	}
}

/* As mlx4 and mlx5: its next life begins with an empty CQ. */
static void reset_takes_its_completions_along(void **state)
{
	struct ibv_qp_init_attr init;
	struct end other;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	init = (struct ibv_qp_init_attr){ .send_cq = p.a.cq,
					  .recv_cq = p.a.cq,
					  .cap = { .max_recv_wr = 1,
						   .max_recv_sge = 1 },
					  .qp_type = IBV_QPT_RC };
	post_receive(&p.a, 0, 8, 1);
	post_receive(&p.b, 0, 8, 2);
	/* Both ends complete a send and a receive into their one CQ. */
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	post_simple(&p.b, IBV_WR_SEND, 8, &p.a);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	/* A completion of another QP's, among them: it stays. */
	other = p.a;
	other.qp = ibv_create_qp(p.a.pd, &init);
	assert_non_null(other.qp);
	to_init(&p, &other);
	post_receive(&other, 0, 8, 77);
	to_state(&other, IBV_QPS_ERR);
	to_state(&p.a, IBV_QPS_RESET);
	assert_int_equal(wait_wc(p.a.cq).wr_id, 77);
	expect_empty(p.a.cq);
	assert_int_equal(ibv_destroy_qp(other.qp), 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_in_err_flush_at_once),
		cmocka_unit_test(reset_is_silent_and_the_qp_works_again),
		cmocka_unit_test(draining),
		cmocka_unit_test(an_idle_queue_is_drained_at_once),
		cmocka_unit_test(one_arming_one_event),
		cmocka_unit_test(solicited_events),
		cmocka_unit_test(arming_without_a_channel),
		cmocka_unit_test(overrun),
		cmocka_unit_test(a_cq_holds_what_it_says),
		cmocka_unit_test(destroy_with_work_pending),
		cmocka_unit_test(destroy_while_data_moves),
		cmocka_unit_test(reset_takes_its_completions_along),
	};

	return cmocka_run_group_tests_name("soft completion", tests, NULL,
					   NULL);
}
