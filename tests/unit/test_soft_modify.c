/* SPDX-License-Identifier: MIT */
/*
 * ibv_modify_qp() on soft0: the whole transition table, driven from the
 * rules, and the checks around it (section 3 of the specification). Some
 * transitions are stated here by hand, so that a slip in the rules shows.
 */
#include "tests/unit/soft_world.h"

#include <sched.h>

#include "common/rules/rules.h"

#define BITS 21 /* of enum ibv_qp_attr_mask that exist without a rate */

static int required(enum ibv_qp_type type, enum ibv_qp_state from,
		    enum ibv_qp_state to)
{
	const struct rules_transition *row =
		rules_transition_find(type, from, to);

	assert_non_null(row);
	return row->required;
}

static int try(struct world *world, struct ibv_qp *qp, enum ibv_qp_state to,
	       int mask)
{
	struct ibv_qp_attr attr = good_attr(world, qp);

	attr.qp_state = to;
	attr.cur_qp_state = qp->state;
	return ibv_modify_qp(qp, &attr, mask);
}

static void go(struct world *world, struct ibv_qp *qp, enum ibv_qp_state to)
{
	int mask = required(qp->qp_type, qp->state, to) | IBV_QP_STATE;

	assert_int_equal(try(world, qp, to, mask), 0);
	assert_int_equal(state_of(qp), to);
}

/* Leaving SQD is refused while it drains: even an empty queue takes time. */
static void wait_drained(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	for (int i = 0; i < 10000000; i++) {
		assert_int_equal(ibv_query_qp(qp, &attr, 0, &init), 0);
		if (!attr.sq_draining)
			return;
		sched_yield();
	}
	fail_msg("an empty send queue does not end draining");
}

/* A new QP of the type, in the state; NULL: no way leads there (SQE). */
static struct ibv_qp *qp_in(struct world *world, enum ibv_qp_type type,
			    enum ibv_qp_state state)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS, IBV_QPS_SQD };
	struct ibv_qp *qp;

	if (state == IBV_QPS_SQE)
		return NULL;
	qp = make_qp(world, type);
	if (state == IBV_QPS_ERR) {
		go(world, qp, IBV_QPS_INIT);
		go(world, qp, IBV_QPS_ERR);
	}
	for (size_t i = 0; qp->state != state; i++)
		go(world, qp, way[i]);
	if (state == IBV_QPS_SQD)
		wait_drained(qp);
	return qp;
}

/* The modify is refused, and nothing about the QP has changed. */
static void assert_untouched(struct world *world, struct ibv_qp *qp,
			     enum ibv_qp_state to, int mask, int err)
{
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(qp, &before, 0, &init), 0);
	assert_int_equal(try(world, qp, to, mask), err);
	assert_int_equal(ibv_query_qp(qp, &after, 0, &init), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(qp->state, before.qp_state);
}

static void row_with_what_it_requires(struct world *world,
				      const struct rules_transition *row)
{
	struct ibv_qp *qp = qp_in(world, row->type, row->from);

	go(world, qp, row->to);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void row_with_bit(struct world *world,
			 const struct rules_transition *row, int bit)
{
	struct ibv_qp *qp = qp_in(world, row->type, row->from);
	int mask = row->required | IBV_QP_STATE;

	if (row->required & bit)
		assert_untouched(world, qp, row->to, mask & ~bit, EINVAL);
	else if (bit & IBV_QP_ALT_PATH || !(row->optional & bit))
		/* No alternate paths on RoCE, table or not. */
		assert_untouched(world, qp, row->to, mask | bit, EINVAL);
	else
		assert_int_equal(try(world, qp, row->to, mask | bit), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void every_row_of_the_table(void **state)
{
	struct world *world = *state;
	int rows = 0;

	for (int i = 0; i < rules_transitions_count; i++) {
		const struct rules_transition *row = &rules_transitions[i];

		if (row->from == IBV_QPS_SQE)
			continue;
		rows++;
		row_with_what_it_requires(world, row);
		for (int bit = 0; bit < BITS; bit++)
			if (1 << bit != IBV_QP_STATE)
				row_with_bit(world, row, 1 << bit);
	}
	assert_true(rows > 50);
}

static void no_row_no_transition(void **state)
{
	struct world *world = *state;
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };

	for (int i = 0; i < 3; i++)
		for (int from = 0; from <= IBV_QPS_ERR; from++)
			for (int to = 0; to <= IBV_QPS_UNKNOWN; to++) {
				struct ibv_qp *qp;

				if (rules_transition_find(types[i], from, to))
					continue;
				qp = qp_in(world, types[i], from);
				if (!qp)
					continue;
				assert_untouched(world, qp, to, IBV_QP_STATE,
						 EINVAL);
				assert_int_equal(ibv_destroy_qp(qp), 0);
			}
}

/* Stated by the specification in words, below its table. */
static void not_these_whatever_the_rules_say(void **state)
{
	struct world *world = *state;
	static const enum ibv_qp_state pairs[][2] = {
		{ IBV_QPS_RESET, IBV_QPS_ERR }, { IBV_QPS_RESET, IBV_QPS_RTR },
		{ IBV_QPS_INIT, IBV_QPS_RTS },  { IBV_QPS_RTR, IBV_QPS_INIT },
		{ IBV_QPS_RTR, IBV_QPS_RTR },   { IBV_QPS_RTS, IBV_QPS_RTR },
		{ IBV_QPS_RTS, IBV_QPS_INIT },  { IBV_QPS_ERR, IBV_QPS_INIT },
		{ IBV_QPS_ERR, IBV_QPS_RTS },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct ibv_qp *qp = qp_in(world, IBV_QPT_RC, pairs[i][0]);

		assert_untouched(world, qp, pairs[i][1], IBV_QP_STATE, EINVAL);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* The slips that section 3 names, and a way that must be open. */
static void beginners_slips(void **state)
{
	struct world *world = *state;
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int to_rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			   IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp *rc = make_qp(world, IBV_QPT_RC);
	struct ibv_qp *ud = make_qp(world, IBV_QPT_UD);

	assert_untouched(world, ud, IBV_QPS_INIT, to_init | IBV_QP_ACCESS_FLAGS,
			 EINVAL);
	assert_int_equal(try(world, ud, IBV_QPS_INIT, to_init | IBV_QP_QKEY),
			 0);
	assert_int_equal(
		try(world, rc, IBV_QPS_INIT, to_init | IBV_QP_ACCESS_FLAGS), 0);
	assert_untouched(world, rc, IBV_QPS_RTR, to_rtr & ~IBV_QP_MIN_RNR_TIMER,
			 EINVAL);
	assert_untouched(world, rc, IBV_QPS_RTR,
			 to_rtr & ~IBV_QP_MAX_DEST_RD_ATOMIC, EINVAL);
	assert_untouched(world, rc, IBV_QPS_RTR, to_rtr | IBV_QP_PORT, EINVAL);
	assert_untouched(world, rc, IBV_QPS_RTR, to_rtr | IBV_QP_TIMEOUT,
			 EINVAL);
	assert_int_equal(try(world, rc, IBV_QPS_RTR, to_rtr), 0);
	assert_int_equal(try(world, rc, IBV_QPS_RTS, to_rts), 0);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
}

/* A bad value in an otherwise right modify: EINVAL, and nothing changes. */
static void assert_bad_value(struct world *world, enum ibv_qp_state to,
			     size_t offset, size_t size, uint32_t value)
{
	enum ibv_qp_state from = to - 1;
	struct ibv_qp *qp = qp_in(world, IBV_QPT_RC, from);
	struct ibv_qp_attr attr = good_attr(world, qp), before, after;
	struct ibv_qp_init_attr init;

	attr.qp_state = to;
	memcpy((char *)&attr + offset, &value, size); /* little-endian */
	assert_int_equal(ibv_query_qp(qp, &before, 0, &init), 0);
	assert_refused(EINVAL, ibv_modify_qp(qp, &attr,
					     required(IBV_QPT_RC, from, to) |
						     IBV_QP_STATE));
	assert_int_equal(ibv_query_qp(qp, &after, 0, &init), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

#define BAD(world, to, field, value)                                     \
	assert_bad_value(world, to, offsetof(struct ibv_qp_attr, field), \
			 sizeof(((struct ibv_qp_attr *)NULL)->field), value)

/* Section 3, steps 2, 3 and 5; section 8 for those that rxe lets pass. */
static void values_out_of_range(void **state)
{
	struct world *world = *state;

	BAD(world, IBV_QPS_INIT, port_num, 0);
	BAD(world, IBV_QPS_INIT, port_num, 2);
	BAD(world, IBV_QPS_INIT, pkey_index, 1);
	BAD(world, IBV_QPS_INIT, qp_access_flags, 1u << 15);
	BAD(world, IBV_QPS_RTR, ah_attr.port_num, 2);
	BAD(world, IBV_QPS_RTR, ah_attr.is_global, 0);
	BAD(world, IBV_QPS_RTR, ah_attr.grh.sgid_index, 1);
	BAD(world, IBV_QPS_RTR, path_mtu, 0);
	BAD(world, IBV_QPS_RTR, path_mtu, 6);
	BAD(world, IBV_QPS_RTR, path_mtu, 1024);
	BAD(world, IBV_QPS_RTR, max_dest_rd_atomic, 129);
	BAD(world, IBV_QPS_RTR, min_rnr_timer, 32);
	BAD(world, IBV_QPS_RTR, dest_qp_num, 1u << 24);
	BAD(world, IBV_QPS_RTS, max_rd_atomic, 129);
	BAD(world, IBV_QPS_RTS, timeout, 32);
	BAD(world, IBV_QPS_RTS, retry_cnt, 8);
	BAD(world, IBV_QPS_RTS, rnr_retry, 8);
}

/* Step 1: EOPNOTSUPP comes before all other complaints. */
static void unknown_mask_bits(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = make_qp(world, IBV_QPT_RC);

	for (int bit = BITS; bit < 31; bit++)
		assert_untouched(world, qp, IBV_QPS_RTS,
				 IBV_QP_STATE | 1 << bit, EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Step 6: no STATE bit, the same table; a CUR_STATE that is not true. */
static void the_table_holds_without_a_state(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = qp_in(world, IBV_QPT_RC, IBV_QPS_RTS);
	struct ibv_qp_attr attr = good_attr(world, qp);

	assert_int_equal(try(world, qp, 0, IBV_QP_MIN_RNR_TIMER), 0);
	assert_untouched(world, qp, 0, IBV_QP_TIMEOUT, EINVAL);
	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_RTR;
	assert_refused(EINVAL, ibv_modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_CUR_STATE));
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Step 4 and below: what is taken over, and how. */
static void what_query_gives_back(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = qp_in(world, IBV_QPT_RC, IBV_QPS_INIT);
	struct ibv_qp_attr attr = good_attr(world, qp), got;
	struct ibv_qp_init_attr init;

	attr.qp_state = IBV_QPS_RTR;
	attr.rq_psn = 0xab123456;
	attr.max_dest_rd_atomic = 5;
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | required(IBV_QPT_RC, IBV_QPS_INIT,
						      IBV_QPS_RTR)),
		0);
	assert_int_equal(qp->state, IBV_QPS_RTR);
	assert_int_equal(ibv_query_qp(qp, &got, 0, &init), 0);
	assert_int_equal(got.rq_psn, 0x123456);
	assert_int_equal(got.max_dest_rd_atomic, 8);
	assert_int_equal(got.path_mtu, IBV_MTU_1024);
	assert_int_equal(got.dest_qp_num, qp->qp_num);
	assert_int_equal(got.port_num, 1);
	assert_int_equal(got.cap.max_send_wr, 7);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_ptr_equal(init.send_cq, world->cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(every_row_of_the_table),
		in_world(no_row_no_transition),
		in_world(not_these_whatever_the_rules_say),
		in_world(beginners_slips),
		in_world(values_out_of_range),
		in_world(unknown_mask_bits),
		in_world(the_table_holds_without_a_state),
		in_world(what_query_gives_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
