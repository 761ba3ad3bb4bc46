/* SPDX-License-Identifier: MIT */
/*
 * ibv_modify_qp(): the checks, in the order in which libibverbs, the
 * kernel's core and rxe make them, and the state table of common/rules.
 *
 * A refused modify changes nothing.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>

#include "common/rules/rules.h"

#define KNOWN_MASK ((1 << 21) - 1)
#define PSN_MASK   0xffffffu
#define QPN_MASK   0xffffffu

/* Access that a QP can open: all that its MRs can. */
#define QP_ACCESS                                                           \
	(IBV_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE | IBV_ACCESS_MW_BIND | \
	 SOFT_ACCESS_FLUSH_GLOBAL | SOFT_ACCESS_FLUSH_PERSISTENT |          \
	 IBV_ACCESS_OPTIONAL_RANGE)

/* uverbs' modify_qp(). */
static int check_port(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_PORT && attr->port_num != 1)
		return EINVAL;
	if (mask & IBV_QP_AV && attr->ah_attr.port_num != 1)
		return EINVAL;
	if (mask & IBV_QP_STATE && (unsigned int)attr->qp_state > IBV_QPS_ERR)
		return EINVAL;
	/* Q_Keys with the high bit are for the privileged. */
	if (mask & IBV_QP_QKEY && attr->qkey >> 31 &&
	    !soft_capable(CAP_NET_RAW))
		return EPERM;
	return 0;
}

/* _ib_modify_qp(). */
static int check_path(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_AV && soft_check_address(&attr->ah_attr))
		return EINVAL;
	return mask & IBV_QP_ALT_PATH ? EINVAL : 0; /* not on RoCE */
}

/* rxe_qp_chk_attr(), and the ranges that rxe leaves unchecked. */
static int check_values(const struct soft_qp *qp,
			const struct ibv_qp_attr *attr, int mask)
{
	const uint32_t max_rd_atom = soft_limits()->max_rd_atom;
	const struct {
		int bit;
		uint32_t value, least, most;
	} ranges[] = {
		/* A beginner's slip: 1024, bytes instead of the enum. */
		{ IBV_QP_PATH_MTU, attr->path_mtu, IBV_MTU_256, SOFT_PORT_MTU },
		{ IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0,
		  max_rd_atom },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0,
		  max_rd_atom },
		{ IBV_QP_TIMEOUT, attr->timeout, 0, 31 },
		{ IBV_QP_PKEY_INDEX, attr->pkey_index, 0, 0 },
		{ IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 0, 31 },
		{ IBV_QP_RETRY_CNT, attr->retry_cnt, 0, 7 },
		{ IBV_QP_RNR_RETRY, attr->rnr_retry, 0, 7 },
		{ IBV_QP_DEST_QPN, attr->dest_qp_num, 0, QPN_MASK },
	};

	if (mask & IBV_QP_ACCESS_FLAGS && (qp->qp.qp_type == IBV_QPT_UD ||
					   attr->qp_access_flags & ~QP_ACCESS))
		return EINVAL;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (mask & ranges[i].bit &&
		    (ranges[i].value < ranges[i].least ||
		     ranges[i].value > ranges[i].most))
			return EINVAL;
	return 0;
}

/*
 * __qp_chk_state(); without IBV_QP_STATE the table's row that stays in the
 * state, and a CUR_STATE that isn't true is refused, as hardware does.
 */
static int check_transition(struct soft_qp *qp, const struct ibv_qp_attr *attr,
			    int mask)
{
	enum ibv_qp_state from = qp->attr.qp_state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	struct ibv_qp_attr now = { .sq_draining = 0 };
	int missing, extra;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (rules_modify_check(qp->qp.qp_type, from, to, mask, &missing,
			       &extra))
		return EINVAL;
	soft_engine_qp_query(qp, &now);
	if (from == IBV_QPS_SQD && now.sq_draining && mask & IBV_QP_STATE &&
	    to != IBV_QPS_ERR)
		return EINVAL;
	return 0;
}

static int check(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int err;

	if (mask & ~KNOWN_MASK)
		return EOPNOTSUPP;
	err = check_port(attr, mask);
	if (err)
		return err;
	err = check_path(attr, mask);
	if (err)
		return err;
	err = check_values(qp, attr, mask);
	if (err)
		return err;
	return check_transition(qp, attr, mask);
}

static uint8_t round_up(uint8_t count)
{
	unsigned int power = 1;

	while (power < count)
		power <<= 1;
	return count ? power : 0;
}

/* Takes over what the mask names. */
static void apply(struct ibv_qp_attr *to, const struct ibv_qp_attr *from,
		  int mask)
{
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
	if (mask & IBV_QP_ACCESS_FLAGS)
		to->qp_access_flags = from->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & IBV_QP_PORT)
		to->port_num = from->port_num;
	if (mask & IBV_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & IBV_QP_AV)
		to->ah_attr = from->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = from->rq_psn & PSN_MASK;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = from->sq_psn & PSN_MASK;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = round_up(from->max_rd_atomic);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = round_up(from->max_dest_rd_atomic);
	if (mask & IBV_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IBV_QP_PATH_MIG_STATE)
		to->path_mig_state = from->path_mig_state;
	if (mask & IBV_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
}

/* Under soft_lock, when all checks have passed. */
static void modify(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = qp->attr.qp_state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if (to == IBV_QPS_RESET)
		qp->attr = (struct ibv_qp_attr){ .qp_state = to };
	apply(&qp->attr, attr, mask);
	/* Asked for anew with each way into SQD. */
	if (to == IBV_QPS_SQD && from != to &&
	    !(mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
		qp->attr.en_sqd_async_notify = 0;
	qp->attr.qp_state = to;
	if (mask & IBV_QP_STATE)
		qp->qp.state = to;
	soft_engine_qp_changed(qp, from, mask);
}

SOFT_EXPORT int ibv_modify_qp(struct ibv_qp *public, struct ibv_qp_attr *attr,
			      int attr_mask)
{
	struct soft_qp *qp;
	int err;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_modify_qp)(public, attr, attr_mask);
	soft_enter();
	qp = soft_find(public, SOFT_QP, "ibv_modify_qp");
	err = qp ? check(qp, attr, attr_mask) : errno;
	if (!err)
		modify(qp, attr, attr_mask);
	soft_leave();
	if (err)
		errno = err;
	return err;
}
