/* SPDX-License-Identifier: MIT */
/*
 * Creating CQs, QPs, SRQs and AHs on soft0: what is refused and what is given
 * (section 2 of the specification; its rows are quoted where tested).
 */
#include "tests/unit/soft_world.h"

#include <sched.h>

static void cq_sizes(void **state)
{
	struct world *world = *state;
	static const int given[][2] = { { 1, 1 },     { 10, 15 },
					{ 15, 15 },   { 16, 31 },
					{ 100, 127 }, { 32767, 32767 } };
	struct ibv_cq *cq;

	/* «cq->cqe = roundup_pow2(cqe+1) − 1» */
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		cq = ibv_create_cq(world->context, given[i][0], world, NULL, 0);
		assert_non_null(cq);
		assert_int_equal(cq->cqe, given[i][1]);
		assert_ptr_equal(cq->cq_context, world);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	/* «cqe ≤ 0 or > max_cqe: EINVAL» */
	assert_none(EINVAL, ibv_create_cq(world->context, 0, NULL, NULL, 0));
	assert_none(EINVAL, ibv_create_cq(world->context, -1, NULL, NULL, 0));
	assert_none(EINVAL,
		    ibv_create_cq(world->context, 32768, NULL, NULL, 0));
	/* «comp_vector < 0 or ≥ num_comp_vectors: EINVAL» */
	assert_none(EINVAL, ibv_create_cq(world->context, 1, NULL, NULL, -1));
	assert_none(EINVAL, ibv_create_cq(world->context, 1, NULL, NULL,
					  world->context->num_comp_vectors));
}

static void cq_resize(void **state)
{
	struct world *world = *state;

	assert_int_equal(ibv_resize_cq(world->cq, 200), 0);
	assert_int_equal(world->cq->cqe, 255);
	assert_int_equal(ibv_resize_cq(world->cq, 3), 0);
	assert_int_equal(world->cq->cqe, 3);
	assert_refused(EINVAL, ibv_resize_cq(world->cq, 0));
	assert_refused(EINVAL, ibv_resize_cq(world->cq, 32768));
	assert_int_equal(world->cq->cqe, 3);
}

static void qp_caps_given(void **state)
{
	struct world *world = *state;
	static const struct {
		struct ibv_qp_cap asked, given;
	} rows[] = {
		/* wr, wr, sge, sge, inline */
		{ { 10, 10, 1, 1, 0 }, { 15, 15, 1, 1, 16 } },
		{ { 16, 1, 2, 3, 0 }, { 31, 1, 2, 3, 32 } },
		{ { 1, 1, 1, 1, 64 }, { 1, 1, 4, 1, 64 } },
		{ { 1, 1, 1, 1, 36 }, { 1, 1, 2, 1, 36 } },
		{ { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 } },
		{ { 1, 1, 32, 32, 512 }, { 1, 1, 32, 32, 512 } },
	};

	/* «wr = roundup_pow2(n+1)−1; bytes = max(16·send_sge, inline); ...» */
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC), got;
		struct ibv_qp_attr attr;
		struct ibv_qp *qp;

		init.cap = rows[i].asked;
		qp = ibv_create_qp(world->pd, &init);
		assert_non_null(qp);
		assert_memory_equal(&init.cap, &rows[i].given,
				    sizeof(init.cap));
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &got), 0);
		assert_memory_equal(&attr.cap, &rows[i].given,
				    sizeof(init.cap));
		assert_memory_equal(&got.cap, &rows[i].given, sizeof(got.cap));
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

static void qp_is_as_born(void **state)
{
	struct world *world = *state;
	struct ibv_qp *one = make_qp(world, IBV_QPT_RC);
	struct ibv_qp *two = make_qp(world, IBV_QPT_UC);

	assert_int_equal(one->state, IBV_QPS_RESET);
	assert_int_equal(state_of(one), IBV_QPS_RESET);
	assert_int_not_equal(one->qp_num, two->qp_num);
	assert_true(one->qp_num >= 16 && one->qp_num < 1 << 24);
	assert_int_equal(two->qp_type, IBV_QPT_UC);
	assert_ptr_equal(one->pd, world->pd);
	assert_int_equal(ibv_destroy_qp(one), 0);
	assert_int_equal(ibv_destroy_qp(two), 0);
}

static void assert_no_qp(struct world *world, struct ibv_qp_init_attr init,
			 int err)
{
	const struct ibv_qp_cap asked = init.cap;

	assert_none(err, ibv_create_qp(world->pd, &init));
	assert_memory_equal(&init.cap, &asked, sizeof(asked));
}

/* «max_send_wr/max_recv_wr > max_qp_wr, sge > 32, inline > 512: EINVAL» */
static void qp_caps_refused(void **state)
{
	struct world *world = *state;
	const struct ibv_qp_init_attr good = qp_wish(world, IBV_QPT_RC);
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1 } };
	struct ibv_qp_init_attr bad;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	bad = good, bad.cap.max_send_wr = (1 << 20) + 1;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_recv_wr = (1 << 20) + 1;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_send_sge = 33;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_recv_sge = 33;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_inline_data = 513;
	assert_no_qp(world, bad, EINVAL);
	/* «recv caps not checked when an SRQ is given» */
	srq = ibv_create_srq(world->pd, &srq_init);
	assert_non_null(srq);
	bad = good, bad.cap.max_recv_wr = 1 << 30, bad.srq = srq;
	qp = ibv_create_qp(world->pd, &bad);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void qp_types_refused(void **state)
{
	struct world *world = *state;

	/* «not a known enum: EINVAL»; section 8: XRC_RECV too */
	assert_no_qp(world, qp_wish(world, 0), EINVAL);
	assert_no_qp(world, qp_wish(world, 77), EINVAL);
	assert_no_qp(world, qp_wish(world, IBV_QPT_XRC_RECV), EINVAL);
	/* «known type the device lacks: EOPNOTSUPP» */
	assert_no_qp(world, qp_wish(world, IBV_QPT_XRC_SEND), EOPNOTSUPP);
	assert_no_qp(world, qp_wish(world, IBV_QPT_DRIVER), EOPNOTSUPP);
}

static void qp_needs_cqs_of_its_context(void **state)
{
	struct world *world = *state;
	struct ibv_context *other = open_soft0();
	struct ibv_cq *foreign = ibv_create_cq(other, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);

	/* «send_cq or recv_cq NULL → pick EINVAL + a diagnosis» */
	init.send_cq = NULL;
	assert_no_qp(world, init, EINVAL);
	init = qp_wish(world, IBV_QPT_RC);
	init.recv_cq = NULL;
	assert_no_qp(world, init, EINVAL);
	/* «with a CQ of another context → pick EINVAL» */
	init.recv_cq = foreign;
	assert_no_qp(world, init, EINVAL);
	assert_int_equal(ibv_destroy_cq(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* «max_wr 0 / > 1<<20, max_sge > 27: EINVAL» */
static void srq_attributes(void **state)
{
	struct world *world = *state;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 0 } };
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	assert_none(EINVAL, ibv_create_srq(world->pd, &init));
	init.attr.max_wr = (1 << 20) + 1;
	assert_none(EINVAL, ibv_create_srq(world->pd, &init));
	init.attr.max_wr = 10;
	init.attr.max_sge = 28;
	assert_none(EINVAL, ibv_create_srq(world->pd, &init));
	init.attr.max_sge = 27;
	init.attr.srq_limit = 5;
	srq = ibv_create_srq(world->pd, &init);
	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, 15);
	/* Section 8: «An SRQ limit given at creation takes effect.» */
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 15);
	assert_int_equal(attr.max_sge, 27);
	assert_int_equal(attr.srq_limit, 5);
	attr.srq_limit = 16;
	assert_refused(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.srq_limit = 9;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	attr.srq_limit = 0;
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 9);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void assert_no_ah(struct world *world, struct ibv_ah_attr attr)
{
	assert_none(EINVAL, ibv_create_ah(world->pd, &attr));
}

static void ah_attributes(void **state)
{
	struct world *world = *state;
	const struct ibv_ah_attr good = { .grh = { .dgid = world->gid },
					  .is_global = 1,
					  .port_num = 1 };
	struct ibv_ah_attr bad;

	/* «bad port», «is_global = 0 on RoCE», «sgid_index out of table» */
	bad = good, bad.port_num = 0;
	assert_no_ah(world, bad);
	bad = good, bad.port_num = 2;
	assert_no_ah(world, bad);
	bad = good, bad.is_global = 0;
	assert_no_ah(world, bad);
	bad = good, bad.grh.sgid_index = 1;
	assert_no_ah(world, bad);
}

/* A UD QP that writes to itself; the completion of the receive in *wc. */
static void send_to_self(struct world *world, struct ibv_qp *qp,
			 struct ibv_mr *mr, struct ibv_ah *ah,
			 struct ibv_wc *wc)
{
	struct ibv_sge from = { .length = 8, .lkey = mr->lkey };
	struct ibv_sge to = { .addr = (uintptr_t)mr->addr,
			      .length = 48,
			      .lkey = mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr send = { .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad_send;

	from.addr = (uintptr_t)mr->addr + 48;
	send.wr.ud.ah = ah;
	send.wr.ud.remote_qpn = qp->qp_num;
	send.wr.ud.remote_qkey = 0x1234;
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	for (int i = 0; i < 10000000; i++) {
		if (ibv_poll_cq(world->cq, 1, wc) == 1) {
			assert_int_equal(wc->status, IBV_WC_SUCCESS);
			return;
		}
		sched_yield();
	}
	fail_msg("nothing was received");
}

static void ah_to_answer_a_sender(void **state)
{
	struct world *world = *state;
	char buffer[56];
	struct ibv_mr *mr = ibv_reg_mr(world->pd, buffer, sizeof(buffer),
				       IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = make_qp(world, IBV_QPT_UD);
	struct ibv_qp_attr attr = good_attr(world, qp);
	struct ibv_ah *ah = ibv_create_ah(world->pd, &attr.ah_attr);
	struct ibv_ah_attr answer;
	struct ibv_ah *back;
	struct ibv_wc wc;

	memset(buffer, 0, sizeof(buffer));
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
			 0);
	send_to_self(world, qp, mr, ah, &wc);
	assert_int_equal(ibv_init_ah_from_wc(world->context, 1, &wc,
					     (struct ibv_grh *)buffer, &answer),
			 0);
	assert_memory_equal(&answer.grh.dgid, &world->gid, sizeof(world->gid));
	assert_int_equal(answer.is_global, 1);
	assert_int_equal(answer.port_num, 1);
	back = ibv_create_ah_from_wc(world->pd, &wc, (struct ibv_grh *)buffer,
				     1);
	assert_non_null(back);
	assert_int_equal(ibv_destroy_ah(back), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(cq_sizes),
		in_world(cq_resize),
		in_world(qp_caps_given),
		in_world(qp_is_as_born),
		in_world(qp_caps_refused),
		in_world(qp_types_refused),
		in_world(qp_needs_cqs_of_its_context),
		in_world(srq_attributes),
		in_world(ah_attributes),
		in_world(ah_to_answer_a_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
