/* SPDX-License-Identifier: MIT */
/*
 * manager_check(): each limit is found out and named, before anything is
 * made. The limits are those that the device itself tells.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/manager/manager.h"

static struct ibv_context *context;
static struct ibv_device_attr has;

static struct manager_mr_plan mrs[1];
static struct manager_cq_plan cqs[2];
static struct manager_qp_plan qps[2];
static struct manager_plan plan;
static struct manager_lack lack;

static int open_soft0(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	assert_non_null(list);
	for (int i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "soft0"))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(context);
	return ibv_query_device(context, &has);
}

static int close_soft0(void **state)
{
	(void)state;
	return ibv_close_device(context);
}

/* A plan that fits; each test spoils one thing. */
static int make_plan(void **state)
{
	(void)state;
	mrs[0] = (struct manager_mr_plan){ .addr = mrs, .length = 1 };
	cqs[0] = (struct manager_cq_plan){ .cqe = 32, .channel = true };
	cqs[1] = (struct manager_cq_plan){ .cqe = 16 };
	for (int i = 0; i < 2; i++)
		qps[i] = (struct manager_qp_plan){
			.qp_type = IBV_QPT_RC,
			.cap = { 16, 8, 1, 1, 0 },
			.send_cq = 0,
			.recv_cq = 1,
		};
	plan = (struct manager_plan){
		.port_num = 1,
		.channel = true,
		.mrs = mrs,
		.num_mrs = 1,
		.cqs = cqs,
		.num_cqs = 2,
		.qps = qps,
		.num_qps = 2,
	};
	return 0;
}

static void assert_lack(int err, const char *of, int index, const char *limit,
			uint64_t needed, uint64_t available)
{
	assert_int_equal(manager_check(context, &plan, &lack), err);
	assert_string_equal(lack.limit, limit);
	assert_string_equal(lack.of, of);
	assert_int_equal(lack.index, index);
	assert_int_equal(lack.needed, needed);
	assert_int_equal(lack.available, available);
}

static void fits(void **state)
{
	(void)state;
	assert_int_equal(manager_check(context, &plan, &lack), 0);
}

static void names_the_port(void **state)
{
	(void)state;
	plan.port_num = has.phys_port_cnt + 1;
	assert_lack(EOPNOTSUPP, "", 0, "phys_port_cnt", has.phys_port_cnt + 1,
		    has.phys_port_cnt);
}

static void names_the_sges(void **state)
{
	(void)state;
	qps[0].cap.max_send_sge = has.max_sge + 1;
	assert_lack(EOPNOTSUPP, "qps", 0, "max_sge", has.max_sge + 1,
		    has.max_sge);
	qps[0].cap.max_send_sge = has.max_sge;
	qps[1].cap.max_recv_sge = has.max_sge + 2;
	assert_lack(EOPNOTSUPP, "qps", 1, "max_sge", has.max_sge + 2,
		    has.max_sge);
}

/* A CQ deep enough for it must be there, or the sum is what is named. */
static void names_the_queue(void **state)
{
	(void)state;
	assert_true(has.max_qp_wr < has.max_cqe);
	cqs[1].cqe = has.max_cqe;
	qps[1].cap.max_recv_wr = has.max_qp_wr + 1;
	assert_lack(EOPNOTSUPP, "qps", 1, "max_qp_wr", has.max_qp_wr + 1,
		    has.max_qp_wr);
}

static void names_the_cq(void **state)
{
	(void)state;
	cqs[1].cqe = has.max_cqe + 1;
	assert_lack(EOPNOTSUPP, "cqs", 1, "max_cqe", has.max_cqe + 1,
		    has.max_cqe);
	cqs[1].cqe = 16;
	cqs[1].comp_vector = context->num_comp_vectors;
	assert_lack(EOPNOTSUPP, "cqs", 1, "num_comp_vectors",
		    context->num_comp_vectors + 1, context->num_comp_vectors);
}

static void counts_the_objects(void **state)
{
	(void)state;
	plan.num_qps = 0;
	plan.num_mrs = 0;
	plan.num_cqs = 2;
	assert_int_equal(manager_check(context, &plan, &lack), 0);
	assert_int_equal(has.max_mr, 3);
	plan.num_mrs = 4;
	assert_lack(EOPNOTSUPP, "", 0, "max_mr", 4, 3);
}

/* 16 + 16 sends on one CQ, 8 + 8 receives on the other. */
static void sums_the_work(void **state)
{
	(void)state;
	cqs[0].cqe = 31;
	assert_lack(EINVAL, "cqs", 0, "cqe", 32, 31);
	cqs[0].cqe = 32;
	cqs[1].cqe = 15;
	assert_lack(EINVAL, "cqs", 1, "cqe", 16, 15);
	cqs[1].cqe = -1;
	assert_lack(EINVAL, "cqs", 1, "cqe", 16, 0);
}

static void finds_contradictions(void **state)
{
	(void)state;
	qps[1].recv_cq = 2;
	assert_lack(EINVAL, "qps", 1, "num_cqs", 3, 2);
	qps[1].recv_cq = 1;
	qps[0].send_cq = -1;
	assert_lack(EINVAL, "qps", 0, "num_cqs", 3, 2);
	qps[0].send_cq = 0;
	plan.channel = false;
	assert_lack(EINVAL, "cqs", 0, "channel", 1, 0);
}

#define TEST(f) cmocka_unit_test_setup(f, make_plan)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fits),
		TEST(names_the_port),
		TEST(names_the_queue),
		TEST(names_the_sges),
		TEST(names_the_cq),
		TEST(counts_the_objects),
		TEST(sums_the_work),
		TEST(finds_contradictions),
	};

	/* Before the first verb: soft0 reads them once. */
	setenv("SOFTVERBS_MAX_QP_WR", "64", 1);
	setenv("SOFTVERBS_MAX_MR", "3", 1);
	return cmocka_run_group_tests(tests, open_soft0, close_soft0);
}
