/* SPDX-License-Identifier: MIT */
/*
 * Extended QPs: what ibv_create_qp_ex() can be asked for. wr.c has what they
 * do.
 */
#include "common/soft/object.h"

#include <errno.h>

#define SUPPORTED                                                         \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | \
	 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define OF_UC                                                             \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OF_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

static int check_ops(enum ibv_qp_type type, uint64_t ops)
{
	if (ops & ~(uint64_t)SUPPORTED)
		return EOPNOTSUPP;
	if ((type == IBV_QPT_UC && ops & ~(uint64_t)OF_UC) ||
	    (type == IBV_QPT_UD && ops & ~(uint64_t)OF_UD))
		return EOPNOTSUPP;
	return 0;
}

static int check_init(const struct ibv_context *context,
		      const struct ibv_qp_init_attr_ex *init)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (init->comp_mask & ~known)
		return EOPNOTSUPP;
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	if (!soft_find(init->pd, SOFT_PD, "ibv_create_qp_ex"))
		return errno;
	if (init->pd->context != context)
		return EINVAL;
	if (init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    init->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
		return EOPNOTSUPP;
	if (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return check_ops(init->qp_type, init->send_ops_flags);
	return 0;
}

struct ibv_qp *soft_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *init)
{
	bool ops = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool flags = init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS;
	struct soft_qp *qp = NULL;
	int err = check_init(context, init);

	/* It begins as an ibv_qp_init_attr does. */
	if (!err)
		err = soft_qp_create(init->pd, (struct ibv_qp_init_attr *)init,
				     flags && init->create_flags, &qp);
	if (!err && ops) {
		err = soft_wr_init(qp, init->send_ops_flags);
		if (err)
			ibv_destroy_qp(&qp->qp);
	}
	if (err) {
		errno = err;
		return NULL;
	}
	return &qp->qp;
}

SOFT_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *public)
{
	struct soft_qp *qp;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_qp_to_qp_ex)(public);
	/* Only QPs of ibv_create_qp_ex() with send_ops_flags have one. */
	qp = soft_find(public, SOFT_QP, "ibv_qp_to_qp_ex");
	return qp && qp->wr ? &qp->ex : NULL;
}
