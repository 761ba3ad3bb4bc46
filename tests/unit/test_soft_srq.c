/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues on soft0: who takes from them, what a QP that breaks
 * leaves there, and their events.
 */
#include <errno.h>
#include <poll.h>
#include "tests/unit/soft_fixture.h"

static void open_srq(struct pair *p)
{
	pair_init(p, IBV_QPT_RC);
	p->srq = true;
	pair_open(p);
}

static void receives_come_from_it(void **state)
{
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	open_srq(&p);
	post_receive(&p.b, 0, 200000, 5);
	post_receive(&p.b, 0, 64, 6);
	memset(p.a.buf, 0x5a, 150000);
	post_simple(&p.a, IBV_WR_SEND, 150000, &p.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.byte_len, 150000);
	assert_int_equal(wc.qp_num, p.b.qp->qp_num);
	assert_memory_equal(p.a.buf, p.b.buf, 150000);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	assert_int_equal(wait_wc(p.b.cq).wr_id, 6);
	pair_close(&p);
}

static void the_qp_itself_has_no_queue(void **state)
{
	struct ibv_recv_wr wr = { 0 }, *bad = NULL;
	struct pair p;

	(void)state;
	open_srq(&p);
	assert_int_equal(ibv_post_recv(p.b.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	pair_close(&p);
}

static void full(void **state)
{
	enum { MANY = 100 };
	struct ibv_recv_wr wr[MANY] = { 0 }, *bad = NULL;
	struct ibv_srq_attr attr;
	struct pair p;

	(void)state;
	open_srq(&p);
	for (int i = 0; i + 1 < MANY; i++)
		wr[i].next = &wr[i + 1];
	assert_int_equal(ibv_query_srq(p.b.srq, &attr), 0);
	assert_true(attr.max_wr < MANY);
	assert_int_equal(ibv_post_srq_recv(p.b.srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[attr.max_wr]);
	pair_close(&p);
}

/* An SRQ's receives do not flush with the QP; the event says it is over. */
static void last_wqe_reached(void **state)
{
	struct pair p;

	(void)state;
	open_srq(&p);
	post_receive(&p.b, 0, 64, 5);
	to_state(&p.b, IBV_QPS_ERR);
	assert_int_equal(wait_event(p.context), IBV_EVENT_QP_LAST_WQE_REACHED);
	expect_empty(p.b.cq);
	/* It is there for the next. */
	to_state(&p.b, IBV_QPS_RESET);
	to_state(&p.a, IBV_QPS_RESET);
	end_connect(&p, &p.a);
	end_connect(&p, &p.b);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	assert_int_equal(wait_wc(p.b.cq).wr_id, 5);
	pair_close(&p);
}

/* One event when fewer than the limit are left; then it is disarmed. */
static void limit_event(void **state)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct pollfd fd = { .events = POLLIN };
	struct pair p;

	(void)state;
	open_srq(&p);
	for (uint64_t i = 0; i < 4; i++)
		post_receive(&p.b, 0, 64, i);
	assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	fd.fd = p.context->async_fd;
	for (int i = 0; i < 2; i++) {
		post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
		expect_wc(p.b.cq, IBV_WC_SUCCESS);
	}
	assert_int_equal(poll(&fd, 1, 0), 0);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	assert_int_equal(wait_event(p.context), IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_int_equal(ibv_query_srq(p.b.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(poll(&fd, 1, 0), 0);
	pair_close(&p);
}

static struct ibv_srq *try_ex(struct pair *p, uint32_t mask,
			      enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 5, .max_sge = 1, .srq_limit = 2 },
		.comp_mask = mask,
		.srq_type = type,
		.pd = p->b.pd,
	};

	errno = 0;
	return ibv_create_srq_ex(p->context, &init);
}

static void the_extended_call(void **state)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	uint32_t number;
	struct pair p;

	(void)state;
	open_srq(&p);
	/* With the type named, the header calls ibv_create_srq(). */
	srq = try_ex(&p, IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_XRC);
	assert_non_null(srq);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 7);
	assert_int_equal(attr.srq_limit, 2);
	assert_int_equal(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_null(try_ex(&p, IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
			   IBV_SRQT_XRC));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(try_ex(&p, IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD,
			   IBV_SRQT_BASIC));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(try_ex(&p, IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC));
	assert_int_equal(errno, EINVAL);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_come_from_it),
		cmocka_unit_test(the_qp_itself_has_no_queue),
		cmocka_unit_test(full),
		cmocka_unit_test(last_wqe_reached),
		cmocka_unit_test(limit_event),
		cmocka_unit_test(the_extended_call),
	};

	return cmocka_run_group_tests_name("soft srq", tests, NULL, NULL);
}
