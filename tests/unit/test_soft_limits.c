/* SPDX-License-Identifier: MIT */
/*
 * The SOFTVERBS_* variables narrow soft0's limits; a value that makes no
 * sense is named in a line on stderr and ignored. The variables are read
 * once, so main() sets them before the first call.
 */
#include "tests/unit/soft_world.h"

#include <stdlib.h>
#include <unistd.h>

static char said[1024]; /* on stderr, while the variables were read */

static void narrowed_limits_are_told(void **state)
{
	struct world *world = *state;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(world->context, &attr), 0);
	assert_int_equal(attr.max_qp_wr, 100);
	assert_int_equal(attr.max_cqe, 80);
	assert_int_equal(attr.max_sge, 2);
	assert_int_equal(attr.max_qp, 2);
	assert_int_equal(attr.max_mr, 1);
	assert_int_equal(attr.max_pd, 2);
	assert_int_equal(attr.max_cq, 1048576);
	assert_int_equal(attr.max_ah, 1);
	assert_int_equal(attr.max_srq, 1);
	assert_int_equal(attr.max_srq_wr, 10);
	assert_int_equal(attr.max_srq_sge, 3);
	assert_int_equal(attr.max_qp_rd_atom, 2);
	assert_int_equal(attr.max_qp_init_rd_atom, 2);
	assert_int_equal(attr.max_mw, 1);
}

static void nonsense_is_named(void **state)
{
	(void)state;
	assert_non_null(strstr(said, "SOFTVERBS_MAX_CQ=0 "));
	assert_non_null(strstr(said, "SOFTVERBS_MAX_INLINE=much "));
	assert_non_null(strstr(said, "from 0 to 512"));
	assert_null(strstr(said, "SOFTVERBS_MAX_QP_WR"));
}

static void narrowed_limits_hold(void **state)
{
	struct world *world = *state;
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);

	init.cap.max_send_wr = 101;
	assert_none(EINVAL, ibv_create_qp(world->pd, &init));
	init.cap.max_send_wr = 100;
	init.cap.max_send_sge = 3;
	assert_none(EINVAL, ibv_create_qp(world->pd, &init));
	/* Room for inline data is no way around the limit of SGEs. */
	init.cap.max_send_sge = 1;
	init.cap.max_inline_data = 512;
	struct ibv_qp *qp = ibv_create_qp(world->pd, &init);
	assert_non_null(qp);
	assert_int_equal(init.cap.max_send_sge, 2);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_none(EINVAL, ibv_create_cq(world->context, 81, NULL, NULL, 0));
}

/* Section 2: «object-count limit of the device: EINVAL» */
static void counts_are_limited(void **state)
{
	struct world *world = *state;
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);
	struct ibv_qp *one = make_qp(world, IBV_QPT_RC);
	struct ibv_qp *two = make_qp(world, IBV_QPT_RC);
	struct ibv_pd *pd = ibv_alloc_pd(world->context);
	char page[16];
	struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), 0);

	assert_non_null(mr);
	assert_none(EINVAL, ibv_create_qp(world->pd, &init));
	assert_none(EINVAL, ibv_alloc_pd(world->context));
	assert_none(EINVAL, ibv_reg_mr(pd, page, sizeof(page), 0));
	/* One goes, and there is room for one. */
	assert_int_equal(ibv_destroy_qp(one), 0);
	one = make_qp(world, IBV_QPT_RC);
	assert_int_equal(ibv_destroy_qp(one), 0);
	assert_int_equal(ibv_destroy_qp(two), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void the_other_objects(void **state)
{
	struct world *world = *state;
	struct ibv_srq_init_attr wish = { .attr = { .max_wr = 10,
						    .max_sge = 3 } };
	struct ibv_ah_attr address = { .grh = { .dgid = world->gid },
				       .is_global = 1,
				       .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(world->pd, &address);
	struct ibv_mw *mw = ibv_alloc_mw(world->pd, IBV_MW_TYPE_1);
	struct ibv_srq *srq;

	assert_non_null(ah);
	assert_none(EINVAL, ibv_create_ah(world->pd, &address));
	assert_non_null(mw);
	assert_none(EINVAL, ibv_alloc_mw(world->pd, IBV_MW_TYPE_2));
	wish.attr.max_wr = 11;
	assert_none(EINVAL, ibv_create_srq(world->pd, &wish));
	wish.attr.max_wr = 10;
	wish.attr.max_sge = 4;
	assert_none(EINVAL, ibv_create_srq(world->pd, &wish));
	wish.attr.max_sge = 3;
	srq = ibv_create_srq(world->pd, &wish);
	assert_non_null(srq);
	wish.attr.max_wr = 1;
	assert_none(EINVAL, ibv_create_srq(world->pd, &wish));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void reads_and_atomics_under_way(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = make_qp(world, IBV_QPT_RC);
	struct ibv_qp_attr attr = good_attr(world, qp);
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_ACCESS_FLAGS;
	const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(qp, &attr, to_init), 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.max_dest_rd_atomic = 3;
	assert_refused(EINVAL, ibv_modify_qp(qp, &attr, to_rtr));
	attr.max_dest_rd_atomic = 2;
	assert_int_equal(ibv_modify_qp(qp, &attr, to_rtr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Opens the device with stderr caught in `said`. */
static void read_variables(void)
{
	struct ibv_device_attr attr;
	int pipe_fds[2], stderr_fd = dup(STDERR_FILENO);
	struct ibv_context *context;

	if (stderr_fd < 0 || pipe(pipe_fds) ||
	    dup2(pipe_fds[1], STDERR_FILENO) < 0)
		abort();
	context = open_soft0();
	ibv_query_device(context, &attr);
	ibv_close_device(context);
	dup2(stderr_fd, STDERR_FILENO);
	close(pipe_fds[1]);
	if (read(pipe_fds[0], said, sizeof(said) - 1) < 0)
		abort();
	close(pipe_fds[0]);
	close(stderr_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(narrowed_limits_are_told),
		in_world(nonsense_is_named),
		in_world(narrowed_limits_hold),
		in_world(counts_are_limited),
		in_world(the_other_objects),
		in_world(reads_and_atomics_under_way),
	};

	setenv("SOFTVERBS_MAX_QP_WR", "100", 1);
	setenv("SOFTVERBS_MAX_CQE", "80", 1);
	setenv("SOFTVERBS_MAX_SGE", "2", 1);
	setenv("SOFTVERBS_MAX_INLINE", "much", 1);
	setenv("SOFTVERBS_MAX_QP", "2", 1);
	setenv("SOFTVERBS_MAX_MR", "1", 1);
	setenv("SOFTVERBS_MAX_PD", "2", 1);
	setenv("SOFTVERBS_MAX_CQ", "0", 1);
	setenv("SOFTVERBS_MAX_AH", "1", 1);
	setenv("SOFTVERBS_MAX_SRQ", "1", 1);
	setenv("SOFTVERBS_MAX_SRQ_WR", "10", 1);
	setenv("SOFTVERBS_MAX_SRQ_SGE", "3", 1);
	setenv("SOFTVERBS_MAX_RD_ATOM", "2", 1);
	setenv("SOFTVERBS_MAX_MW", "1", 1);
	read_variables();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
