/* SPDX-License-Identifier: MIT */
/*
 * Retries on soft0: receiver not ready, nobody there, packets out of order or
 * seen twice. Times are lower bounds: a busy machine only adds to them.
 */
#include "tests/unit/soft_fixture.h"

static void rnr_retries_run_out(void **state)
{
	(void)state;
	for (int tries = 0; tries <= 2; tries += 2) {
		struct pair p;
		struct ibv_sge sge;
		struct ibv_send_wr wr;

		pair_init(&p, IBV_QPT_RC);
		p.a.attr.rnr_retry = (uint8_t)tries;
		pair_open(&p);
		sge = sge_of(&p.a, 0, 8);
		wr = send_wr(IBV_WR_SEND, &sge, &p.b, 0);
		expect_break(&p, &wr, IBV_WC_RNR_RETRY_EXC_ERR);
		/* It never saw anything wrong. */
		assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
		pair_close(&p);
	}
}

/* rnr_retry counts tries, min_rnr_timer says how long each waits. */
static void rnr_waits_as_long_as_asked(void **state)
{
	struct pair p;
	double start;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.a.attr.rnr_retry = 3;
	p.b.attr.min_rnr_timer = 18; /* 5.12 ms */
	pair_open(&p);
	start = seconds();
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	expect_wc(p.a.cq, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_true(seconds() - start >= 3 * 0.00512);
	pair_close(&p);
}

static void rnr_seven_waits_for_ever(void **state)
{
	struct pair p;
	double until;

	(void)state;
	open_rc(&p, 0);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	/* Hundreds of tries of 10 us. */
	for (until = seconds() + 0.05; seconds() < until;)
		expect_empty(p.a.cq);
	post_receive(&p.b, 0, 64, 1);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	pair_close(&p);
}

static void nobody_answers(struct pair *p, int retries)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, &sge, &p->b, 0);
	double start = seconds();

	expect_break(p, &wr, IBV_WC_RETRY_EXC_ERR);
	/* timeout 8: 4.096 us * 2^8, the first try and each retry. */
	assert_true(seconds() - start >= 0.001048576 * (retries + 1));
}

static void peer_is_not_ready(void **state)
{
	(void)state;
	for (enum ibv_qp_state peer = IBV_QPS_RESET; peer <= IBV_QPS_INIT;
	     peer++) {
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		pair_make(&p);
		end_connect(&p, &p.a);
		if (peer == IBV_QPS_INIT)
			to_init(&p, &p.b);
		nobody_answers(&p, 2);
		pair_close(&p);
	}
}

static void peer_is_broken(void **state)
{
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	to_state(&p.b, IBV_QPS_ERR);
	nobody_answers(&p, 2);
	pair_close(&p);
}

static void peer_is_destroyed(void **state)
{
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
	p.b.qp = NULL;
	nobody_answers(&p, 2);
	pair_close(&p);
}

/* Hardware and IBTA count seven retries where rxe goes on for ever. */
static void wrong_qp_number_seven_retries(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.a.attr.dest_qp_num = 0xfffff1;
	p.a.attr.retry_cnt = 7;
	pair_open(&p);
	nobody_answers(&p, 7);
	pair_close(&p);
}

static void wrong_gid(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	p.a.attr.ah_attr.grh.dgid.raw[15] ^= 1;
	end_connect(&p, &p.a);
	end_connect(&p, &p.b);
	nobody_answers(&p, 2);
	pair_close(&p);
}

/* timeout 0 waits for ever; the peer's late arrival alone helps nothing. */
static void timeout_zero_waits(void **state)
{
	struct pair p;
	double until;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.a.attr.timeout = 0;
	pair_make(&p);
	end_connect(&p, &p.a);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	for (until = seconds() + 0.05; seconds() < until;)
		expect_empty(p.a.cq);
	assert_int_equal(state_of(&p.a), IBV_QPS_RTS);
	pair_close(&p);
}

/* A retry finds the peer, which has come up meanwhile. */
static void retry_succeeds(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.a.attr.timeout = 14; /* 67 ms */
	pair_make(&p);
	end_connect(&p, &p.a);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	to_init(&p, &p.b);
	post_receive(&p.b, 0, 64, 1);
	to_rtr(&p, &p.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	pair_close(&p);
}

static void psn_mismatch(void **state)
{
	(void)state;
	for (int ahead = -5; ahead <= 5; ahead += 10) {
		struct pair p;

		pair_init(&p, IBV_QPT_RC);
		p.a.attr.sq_psn = (uint32_t)(1000 + ahead);
		p.b.attr.rq_psn = 1000;
		pair_open(&p);
		post_receive(&p.b, 0, 64, 1);
		nobody_answers(&p, 2);
		expect_empty(p.b.cq);
		pair_close(&p);
	}
}

static void path_mtu_mismatch(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.b.attr.path_mtu = IBV_MTU_2048;
	pair_open(&p);
	post_receive(&p.b, 0, 8192, 1);
	post_receive(&p.b, 0, 8192, 2);
	post_simple(&p.a, IBV_WR_SEND, 1024, &p.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	sge = sge_of(&p.a, 0, 4096 * 20);
	wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p.b, 0);
	expect_break(&p, &wr, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(wait_event(p.context), IBV_EVENT_QP_REQ_ERR);
	pair_close(&p);
}

/*
 * The peer's answers go astray: it sees each request again and again, and
 * executes it once (IBTA 9.7.5.1.2).
 */
static void duplicates_are_executed_once(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint64_t sum = 0;
	struct pair p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pair_init(&p, IBV_QPT_RC);
		pair_make(&p);
		p.b.attr.dest_qp_num = 0xfffff1;
		end_connect(&p, &p.a);
		end_connect(&p, &p.b);
		post_receive(&p.b, 8, 64, 1);
		post_receive(&p.b, 8, 64, 2);
		sge = sge_of(&p.a, 0, 8);
		wr = send_wr(i ? IBV_WR_SEND : IBV_WR_ATOMIC_FETCH_AND_ADD,
			     &sge, &p.b, 0);
		if (!i)
			wr.wr.atomic.compare_add = 1;
		post(&p.a, &wr);
		expect_wc(p.a.cq, IBV_WC_RETRY_EXC_ERR);
		memcpy(&sum, p.b.buf, sizeof(sum));
		assert_int_equal(sum, i ? 0 : 1);
		if (i)
			assert_int_equal(wait_wc(p.b.cq).wr_id, 1);
		expect_empty(p.b.cq);
		assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_retries_run_out),
		cmocka_unit_test(rnr_waits_as_long_as_asked),
		cmocka_unit_test(rnr_seven_waits_for_ever),
		cmocka_unit_test(peer_is_not_ready),
		cmocka_unit_test(peer_is_broken),
		cmocka_unit_test(peer_is_destroyed),
		cmocka_unit_test(wrong_qp_number_seven_retries),
		cmocka_unit_test(wrong_gid),
		cmocka_unit_test(timeout_zero_waits),
		cmocka_unit_test(retry_succeeds),
		cmocka_unit_test(psn_mismatch),
		cmocka_unit_test(path_mtu_mismatch),
		cmocka_unit_test(duplicates_are_executed_once),
	};

	return cmocka_run_group_tests_name("soft retry", tests, NULL, NULL);
}
