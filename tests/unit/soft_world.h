/* SPDX-License-Identifier: MIT */
/*
 * What the tests of soft0's verbs start from: the device open, a PD, a CQ,
 * and how to bring a QP into a state. As in any verbs program: nothing of
 * soft0 but its name.
 */
#ifndef SOFT_WORLD_H
#define SOFT_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <infiniband/verbs.h>

struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	union ibv_gid gid;
};

/* A call that must fail with this errno, as a value and in errno. */
#define assert_refused(expected, call)             \
	do {                                       \
		errno = 0;                         \
		assert_int_equal(call, expected);  \
		assert_int_equal(errno, expected); \
	} while (0)

/* A call that must answer NULL with this errno. */
#define assert_none(expected, call)                \
	do {                                       \
		errno = 0;                         \
		assert_null(call);                 \
		assert_int_equal(errno, expected); \
	} while (0)

static inline struct ibv_context *open_soft0(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	assert_non_null(list);
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "soft0"))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

static inline int make_world(void **state)
{
	static struct world world;

	world.context = open_soft0();
	world.pd = ibv_alloc_pd(world.context);
	assert_non_null(world.pd);
	world.cq = ibv_create_cq(world.context, 64, NULL, NULL, 0);
	assert_non_null(world.cq);
	assert_int_equal(ibv_query_gid(world.context, 1, 0, &world.gid), 0);
	*state = &world;
	return 0;
}

/* That all of this succeeds says that the test left nothing behind. */
static inline int end_world(void **state)
{
	struct world *world = *state;

	assert_int_equal(ibv_destroy_cq(world->cq), 0);
	assert_int_equal(ibv_dealloc_pd(world->pd), 0);
	assert_int_equal(ibv_close_device(world->context), 0);
	return 0;
}

/* A test that gets a world, and must leave nothing in it. */
#define in_world(test) \
	cmocka_unit_test_setup_teardown(test, make_world, end_world)

static inline struct ibv_qp_init_attr qp_wish(struct world *world,
					      enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
	};
}

static inline struct ibv_qp *make_qp(struct world *world, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = qp_wish(world, type);
	struct ibv_qp *qp = ibv_create_qp(world->pd, &init);

	assert_non_null(qp);
	return qp;
}

/* Good values for every attribute, of a QP that is connected to itself. */
static inline struct ibv_qp_attr good_attr(struct world *world,
					   struct ibv_qp *qp)
{
	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = 0x1234,
		.rq_psn = 7,
		.sq_psn = 7,
		.dest_qp_num = qp->qp_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = { .grh = { .dgid = world->gid, .hop_limit = 64 },
			     .is_global = 1,
			     .port_num = 1 },
		.port_num = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
}

static inline enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

#endif
