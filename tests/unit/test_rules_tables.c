/* SPDX-License-Identifier: MIT */
/*
 * The rules against what we did not write: the constants' own strings in
 * libibverbs, and facts of the manual pages stated here by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "common/rules/rules.h"

static void ids_name_their_type(void **state)
{
	(void)state;
	assert_int_equal(rules_object_of_id("qp12"), RULES_QP);
	assert_int_equal(rules_object_of_id("ctx0"), RULES_CONTEXT);
	assert_int_equal(rules_object_of_id("chan3"), RULES_CHANNEL);
	assert_int_equal(rules_object_of_id("srq0"), RULES_SRQ);
	assert_int_equal(rules_object_of_id("qp"), RULES_NONE);
	assert_int_equal(rules_object_of_id("qp1x"), RULES_NONE);
	assert_int_equal(rules_object_of_id(""), RULES_NONE);
}

/* Every object can be made and unmade, and the first rows are the plain. */
static void every_object_has_its_calls(void **state)
{
	(void)state;
	for (int object = 0; object < RULES_OBJECTS; object++) {
		int makes = 0, unmakes = 0;

		for (int i = 0; i < rules_calls_count; i++) {
			if ((int)rules_calls[i].object != object)
				continue;
			makes += rules_calls[i].effect == RULES_CREATES;
			unmakes += rules_calls[i].effect == RULES_DESTROYS;
		}
		assert_true(makes >= 1);
		assert_int_equal(unmakes, 1);
	}
	assert_int_equal(rules_call_find("ibv_create_qp")->object, RULES_QP);
	assert_null(rules_call_find("ibv_poll_cq"));
}

/* A PD holds no CQ: the claim that most texts get wrong. */
static void edges_are_reference_counts(void **state)
{
	(void)state;
	assert_null(rules_edge_find(RULES_PD, RULES_CQ));
	assert_int_equal(rules_edge_find(RULES_PD, RULES_MR)->err, EBUSY);
	assert_int_equal(rules_edge_find(RULES_CQ, RULES_QP)->err, EBUSY);
	assert_int_equal(rules_edge_find(RULES_CHANNEL, RULES_CQ)->err, EBUSY);
	assert_int_equal(rules_edge_find(RULES_CONTEXT, RULES_PD)->err, 0);
}

static int check(enum ibv_qp_type type, enum ibv_qp_state from,
		 enum ibv_qp_state to, int mask)
{
	int missing, extra;

	return rules_modify_check(type, from, to, mask, &missing, &extra);
}

/* The masks of ibv_rc_pingpong and of the manual page pass; slips do not. */
static void transitions_as_programs_use_them(void **state)
{
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER;
	int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

	(void)state;
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
			       init | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, rtr), 0);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, rts), 0);
	assert_int_equal(check(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
			       init | IBV_QP_QKEY), 0);
	assert_int_equal(check(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
			       init | IBV_QP_ACCESS_FLAGS), EINVAL);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
			       rtr & ~IBV_QP_MIN_RNR_TIMER), EINVAL);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
			       rtr | IBV_QP_PORT), EINVAL);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTR, rtr),
			 EINVAL);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_ERR,
			       IBV_QP_STATE), EINVAL);
	assert_int_equal(check(IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RESET,
			       IBV_QP_STATE), 0);
}

/* No two rows for one transition: the look-up would hide the second. */
static void transitions_are_unique(void **state)
{
	(void)state;
	for (int i = 0; i < rules_transitions_count; i++) {
		const struct rules_transition *row = &rules_transitions[i];

		assert_ptr_equal(rules_transition_find(row->type, row->from,
						       row->to), row);
		assert_int_equal(row->required & row->optional, 0);
	}
}

static void names_are_the_headers(void **state)
{
	(void)state;
	assert_string_equal(rules_errno_name(EBUSY), "EBUSY");
	assert_string_equal(rules_errno_name(99999), "unknown errno");
	assert_string_equal(rules_qp_state(IBV_QPS_RTS), "RTS");
	assert_string_equal(rules_wc_status(12), "IBV_WC_RETRY_EXC_ERR");
	for (int status = 0; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++)
		assert_string_not_equal(rules_wc_status(status),
					"unknown status");
	assert_string_equal(rules_wc_status(1000), "unknown status");
}

static void hints_know_their_calls(void **state)
{
	(void)state;
	assert_non_null(rules_hint("ibv_dealloc_pd", EBUSY));
	assert_ptr_equal(rules_hint("ibv_reg_mr_iova2", EFAULT),
			 rules_hint("ibv_reg_mr", EFAULT));
	assert_null(rules_hint("ibv_dealloc_pd", EFAULT));
	assert_null(rules_wc_hint(IBV_WC_SUCCESS));
	assert_non_null(strstr(rules_wc_hint(IBV_WC_WR_FLUSH_ERR), "first"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_name_their_type),
		cmocka_unit_test(every_object_has_its_calls),
		cmocka_unit_test(edges_are_reference_counts),
		cmocka_unit_test(transitions_as_programs_use_them),
		cmocka_unit_test(transitions_are_unique),
		cmocka_unit_test(names_are_the_headers),
		cmocka_unit_test(hints_know_their_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
