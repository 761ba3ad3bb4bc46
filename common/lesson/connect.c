/* SPDX-License-Identifier: 0BSD */
/*
 * Connecting two RC queue pairs by ibv_modify_qp(), as lesson 05 does it
 * attribute by attribute. The rules: ibv_modify_qp(3); IBTA volume 1, 11.2.5.2
 * (which attributes each transition takes).
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <sys/random.h>

#define PSN_MASK 0xffffff

/*
 * Six tries, 4.096 us * 2^14 = 67 ms apart: an absent peer is reported in
 * half a second. (Not seven: the kernel's rxe takes that for "for ever".)
 */
#define TIMEOUT_EXPONENT 14
#define RETRIES          6
#define RNR_RETRIES      6
#define RNR_TIMER        12 /* 0.64 ms between two tries */

int endpoint_of(struct ibv_qp *qp, struct endpoint *end)
{
	struct ibv_port_attr port;
	int err;

	err = ibv_query_port(qp->context, lesson_port(), &port);
	if (err) {
		report(err, "ibv_query_port(port=%d)", lesson_port());
		return err;
	}
	if (ibv_query_gid(qp->context, lesson_port(), lesson_gid_index(),
			  &end->gid)) {
		err = lesson_errno();
		report(err, "ibv_query_gid(port=%d, index=%d)", lesson_port(),
		       lesson_gid_index());
		return err;
	}
	/* A new one each time: packets of an older connection don't fit it. */
	if (getrandom(&end->psn, sizeof(end->psn), 0) != sizeof(end->psn)) {
		report(errno, "getrandom()");
		return EIO;
	}
	end->psn &= PSN_MASK;
	end->qp_num = qp->qp_num;
	end->lid = port.lid;
	end->mtu = port.active_mtu;
	end->addr = 0;
	end->rkey = 0;
	return 0;
}

static int to_init(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = lesson_port(),
		.qp_access_flags = access,
	};
	int err;

	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	if (err)
		report(err, "ibv_modify_qp(qp_num=%u, to INIT)", qp->qp_num);
	return err;
}

static int to_rtr(struct ibv_qp *qp, const struct endpoint *self,
		  const struct endpoint *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = self->mtu < peer->mtu ? self->mtu : peer->mtu,
		.dest_qp_num = peer->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = { .dlid = peer->lid, .port_num = lesson_port() },
	};
	int err;

	/* No LID: Ethernet, where the address is the GID. */
	if (!peer->lid) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = peer->gid;
		attr.ah_attr.grh.sgid_index = lesson_gid_index();
		attr.ah_attr.grh.hop_limit = 64;
	}
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (err)
		report(err, "ibv_modify_qp(qp_num=%u, to RTR, dest_qp_num=%u)",
		       qp->qp_num, peer->qp_num);
	return err;
}

static int to_rts(struct ibv_qp *qp, const struct endpoint *self)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT_EXPONENT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES,
		.sq_psn = self->psn,
		.max_rd_atomic = 1,
	};
	int err;

	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		report(err, "ibv_modify_qp(qp_num=%u, to RTS)", qp->qp_num);
	return err;
}

int connect_qp(struct ibv_qp *qp, const struct endpoint *self,
	       const struct endpoint *peer, unsigned int access)
{
	int err = to_init(qp, access);

	if (!err)
		err = to_rtr(qp, self, peer);
	if (!err)
		err = to_rts(qp, self);
	return err;
}

int connect_pair(struct ibv_qp *a, struct ibv_qp *b, unsigned int access)
{
	struct endpoint a_end, b_end;
	int err = endpoint_of(a, &a_end);

	if (a == b)
		return err ? err : connect_qp(a, &a_end, &a_end, access);
	if (!err)
		err = endpoint_of(b, &b_end);
	if (!err)
		err = connect_qp(a, &a_end, &b_end, access);
	if (!err)
		err = connect_qp(b, &b_end, &a_end, access);
	return err;
}

struct ibv_qp *create_rc_qp(struct ibv_pd *pd, struct ibv_cq *cq, int depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = (uint32_t)depth,
			 .max_recv_wr = (uint32_t)depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		report(lesson_errno(), "ibv_create_qp(RC, max_send_wr=%d)",
		       depth);
	return qp;
}
