/* SPDX-License-Identifier: MIT */
/*
 * Posting on soft0: what the calls refuse, and when the places of a queue
 * become free.
 */
#include <errno.h>
#include "tests/unit/soft_fixture.h"

static int try_send(struct end *end, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	*bad = NULL;
	return ibv_post_send(end->qp, wr, bad);
}

/* --- refused by the call -------------------------------------------------- */

/* IBTA C10-96: an immediate error; nothing is queued. */
static void send_before_rts(void **state)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	end_connect(&p, &p.b);
	post_receive(&p.b, 0, 64, 1);
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_SEND, &sge, &p.b, 0);
	assert_int_equal(try_send(&p.a, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	to_init(&p, &p.a);
	assert_int_equal(try_send(&p.a, &wr, &bad), EINVAL);
	to_rtr(&p, &p.a);
	assert_int_equal(try_send(&p.a, &wr, &bad), EINVAL);
	to_rts(&p, &p.a);
	wr.wr_id = 44;
	post(&p.a, &wr);
	assert_int_equal(wait_wc(p.a.cq).wr_id, 44);
	pair_close(&p);
}

static void receive_before_init(void **state)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	assert_int_equal(ibv_post_recv(p.b.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	to_init(&p, &p.b);
	post_receive(&p.b, 0, 8, 2);
	to_rtr(&p, &p.b);
	post_receive(&p.b, 0, 8, 3);
	end_connect(&p, &p.a);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	assert_int_equal(wait_wc(p.b.cq).wr_id, 2);
	assert_int_equal(wait_wc(p.b.cq).wr_id, 3);
	pair_close(&p);
}

static void refused_whole(struct pair *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(try_send(&p->a, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
}

static void send_wrs_that_are_refused(void **state)
{
	struct ibv_sge sge[5];
	struct ibv_send_wr wr;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	for (int i = 0; i < 5; i++)
		sge[i] = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_SEND, sge, &p.b, 0);
	wr.num_sge = 5; /* max_send_sge is 4 */
	refused_whole(&p, &wr);
	wr.num_sge = -1;
	refused_whole(&p, &wr);
	wr = send_wr(IBV_WR_SEND, sge, &p.b, 0);
	wr.send_flags = IBV_SEND_INLINE;
	sge[0].length = 4096; /* above any max_inline_data asked for */
	refused_whole(&p, &wr);
	sge[0].length = 8;
	wr = send_wr(IBV_WR_RDMA_READ, sge, &p.b, 0);
	wr.send_flags = IBV_SEND_INLINE;
	refused_whole(&p, &wr);
	wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, sge, &p.b, 4);
	refused_whole(&p, &wr); /* misaligned */
	wr = send_wr(IBV_WR_ATOMIC_CMP_AND_SWP, sge, &p.b, 0);
	sge[0].length = 7;
	refused_whole(&p, &wr);
	sge[0].length = 8;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, NULL), EINVAL);
	/* And the QP took no harm. */
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	pair_close(&p);
}

static void opcodes_that_a_type_lacks(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode opcode;
	} lacks[] = {
		{ IBV_QPT_UC, IBV_WR_RDMA_READ },
		{ IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP },
		{ IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD },
		{ IBV_QPT_UD, IBV_WR_RDMA_WRITE },
		{ IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM },
		{ IBV_QPT_UD, IBV_WR_RDMA_READ },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		struct pair p;

		pair_init(&p, lacks[i].type);
		pair_open(&p);
		sge = sge_of(&p.a, 0, 8);
		wr = send_wr(lacks[i].opcode, &sge, &p.b, 0);
		refused_whole(&p, &wr);
		pair_close(&p);
	}
}

/* The one that does not fit is named; those before it are posted. */
static void full_queues(void **state)
{
	enum { MANY = 100 };
	struct ibv_recv_wr recv[MANY] = { 0 }, *bad_recv = NULL;
	struct ibv_send_wr send[MANY], *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	assert_int_equal(ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init), 0);
	assert_true(attr.cap.max_send_wr < MANY);
	sge = sge_of(&p.a, 0, 8);
	for (int i = 0; i < MANY; i++) {
		send[i] = send_wr(IBV_WR_SEND, &sge, &p.b, 0);
		send[i].next = i + 1 < MANY ? &send[i + 1] : NULL;
		recv[i].next = i + 1 < MANY ? &recv[i + 1] : NULL;
	}
	assert_int_equal(try_send(&p.a, send, &bad), ENOMEM);
	assert_ptr_equal(bad, &send[attr.cap.max_send_wr]);
	assert_int_equal(ibv_post_recv(p.a.qp, recv, &bad_recv), ENOMEM);
	assert_ptr_equal(bad_recv, &recv[attr.cap.max_recv_wr]);
	to_state(&p.a, IBV_QPS_ERR);
	for (uint32_t i = 0; i < attr.cap.max_send_wr + attr.cap.max_recv_wr;
	     i++)
		expect_wc(p.a.cq, IBV_WC_WR_FLUSH_ERR);
	expect_empty(p.a.cq);
	pair_close(&p);
}

/* --- places -------------------------------------------------------------- */

static struct ibv_send_wr unsignaled(struct pair *p, struct ibv_sge *sge)
{
	*sge = sge_of(&p->a, 0, 8);
	return send_wr(IBV_WR_RDMA_WRITE, sge, &p->b, 0);
}

/* The classic: nothing signaled, nothing polled, and the queue is full. */
static void unsignaled_wrs_keep_their_places(void **state)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.signal_all = 0;
	pair_open(&p);
	assert_int_equal(ibv_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init), 0);
	wr = unsignaled(&p, &sge);
	for (uint32_t i = 0; i + 1 < attr.cap.max_send_wr; i++)
		post(&p.a, &wr);
	wr.wr_id = 99;
	wr.send_flags = IBV_SEND_SIGNALED;
	post(&p.a, &wr);
	/* All may be done by now; no place is free until this one's CQE is. */
	assert_int_equal(try_send(&p.a, &wr, &bad), ENOMEM);
	assert_int_equal(wait_wc(p.a.cq).wr_id, 99);
	expect_empty(p.a.cq);
	wr = unsignaled(&p, &sge);
	for (uint32_t i = 0; i < attr.cap.max_send_wr; i++)
		post(&p.a, &wr);
	assert_int_equal(try_send(&p.a, &wr, &bad), ENOMEM);
	pair_close(&p);
}

static void unsignaled_wr_that_fails(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.signal_all = 0;
	pair_open(&p);
	wr = unsignaled(&p, &sge);
	post(&p.a, &wr);
	wr.wr_id = 2;
	wr.wr.rdma.rkey ^= 0xdead00;
	post(&p.a, &wr);
	wr.wr_id = 3;
	post(&p.a, &wr);
	assert_int_equal(wait_wc(p.a.cq).wr_id, 2);
	expect_wc(p.a.cq, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

/* As many WRs as the device says; the other end of full_queues(). */
static void the_largest_queues(void **state)
{
	struct ibv_device_attr device;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	assert_int_equal(ibv_query_device(p.context, &device), 0);
	p.wrs = device.max_qp_wr;
	pair_open(&p);
	for (int i = 0; i < 200; i++) {
		post_receive(&p.b, 0, 64, 0);
		post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
		expect_wc(p.b.cq, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_before_rts),
		cmocka_unit_test(receive_before_init),
		cmocka_unit_test(send_wrs_that_are_refused),
		cmocka_unit_test(opcodes_that_a_type_lacks),
		cmocka_unit_test(full_queues),
		cmocka_unit_test(the_largest_queues),
		cmocka_unit_test(unsignaled_wrs_keep_their_places),
		cmocka_unit_test(unsignaled_wr_that_fails),
	};

	return cmocka_run_group_tests_name("soft post", tests, NULL, NULL);
}
