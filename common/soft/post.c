/* SPDX-License-Identifier: MIT */
/*
 * Posting: what the call itself refuses, and the WQE into the ring. Takes
 * the queue's lock only. What is refused is refused whole: *bad_wr names it,
 * it is not queued, and the WRs before it are.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <string.h>

#include "common/soft/object.h"

/* Which opcodes a QP type can do (IBTA table 85). */
static bool opcode_fits(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return true;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		return type == IBV_QPT_RC || type == IBV_QPT_UC;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_SEND_WITH_INV:
		return type == IBV_QPT_RC;
	default:
		return false;
	}
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What is done here and sends nothing: no SGEs. */
static bool is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

static uint64_t sge_sum(const struct ibv_sge *sge, int num_sge)
{
	uint64_t sum = 0;

	for (int i = 0; i < num_sge; i++)
		sum += sge[i].length;
	return sum;
}

/* Of a bind only that its objects live; the rest is the window's (mw.c). */
static int check_bind(const struct ibv_send_wr *wr, unsigned int how)
{
	const struct ibv_mr *mr = wr->bind_mw.bind_info.mr;
	enum ibv_mw_type type =
		how & SOFT_POST_TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

	if (!soft_find(wr->bind_mw.mw, SOFT_MW, "bind of a memory window"))
		return EINVAL;
	if (wr->bind_mw.mw->type != type)
		return EINVAL;
	if (mr && !soft_find(mr, SOFT_MR, "bind of a memory window"))
		return EINVAL;
	return 0;
}

static int check_local(const struct ibv_send_wr *wr, unsigned int how)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		return EINVAL;
	return wr->opcode == IBV_WR_BIND_MW ? check_bind(wr, how) : 0;
}

static int check_send(const struct soft_qp *qp, const struct ibv_send_wr *wr,
		      unsigned int how)
{
	const struct soft_wq *wq = &qp->sq;
	uint64_t length;

	if (!opcode_fits(qp->init.qp_type, wr->opcode))
		return EINVAL;
	if (is_local(wr->opcode))
		return check_local(wr, how);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge)
		return EINVAL;
	length = sge_sum(wr->sg_list, wr->num_sge);
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (wr->opcode == IBV_WR_RDMA_READ || is_atomic(wr->opcode))
			return EINVAL;
		if (length > wq->max_inline)
			return EINVAL;
	}
	if (is_atomic(wr->opcode) &&
	    (length < 8 || wr->wr.atomic.remote_addr & 7))
		return EINVAL;
	if (qp->init.qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
		return EINVAL;
	return 0;
}

static void copy_inline(struct soft_wqe *wqe, const struct ibv_send_wr *wr)
{
	uint32_t at = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length)
			memcpy(wqe->inline_data + at,
			       (const void *)(uintptr_t)sge->addr, sge->length);
		at += sge->length;
	}
	wqe->inline_length = at;
	wqe->num_sge = 0;
}

/* A WQE's place with its SGEs; a sum above 32 bits is too long anyway. */
static struct soft_wqe *place_wqe(struct soft_wq *wq, uint64_t wr_id,
				  const struct ibv_sge *sge, int num_sge)
{
	uint32_t place = wq->tail & wq->mask;
	struct soft_wqe *wqe = &wq->ring[place];
	uint64_t length = sge_sum(sge, num_sge);

	*wqe = (struct soft_wqe){
		.wr_id = wr_id,
		.num_sge = num_sge,
		.length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length,
		.sge = wq->sges + (size_t)place * wq->max_sge,
		.inline_data = wq->inlines + (size_t)place * wq->max_inline,
	};
	if (num_sge)
		memcpy(wqe->sge, sge, (size_t)num_sge * sizeof(*sge));
	return wqe;
}

static void push_wqe(struct soft_wq *wq)
{
	__atomic_store_n(&wq->tail, wq->tail + 1, __ATOMIC_RELEASE);
}

static void take_local(struct soft_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->opcode == IBV_WR_LOCAL_INV) {
		wqe->rkey = wr->invalidate_rkey;
		return;
	}
	wqe->mw_key = soft_mw_of(wr->bind_mw.mw)->rkey;
	wqe->mr_key = info->mr ? info->mr->lkey : 0;
	wqe->rkey = wr->bind_mw.rkey;
	wqe->remote_addr = info->addr;
	wqe->compare_add = info->length;
	wqe->swap = info->mw_access_flags;
}

static void take_send(struct soft_qp *qp, const struct ibv_send_wr *wr)
{
	struct soft_wqe *wqe =
		place_wqe(&qp->sq, wr->wr_id, wr->sg_list,
			  is_local(wr->opcode) ? 0 : wr->num_sge);

	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	if (qp->init.sq_sig_all)
		wqe->flags |= IBV_SEND_SIGNALED;
	/* In a union with the rkey that SEND_WITH_INV names. */
	wqe->imm = wr->imm_data;
	if (is_local(wr->opcode)) {
		take_local(wqe, wr);
	} else if (qp->init.qp_type == IBV_QPT_UD) {
		wqe->ah = (struct soft_ah *)((char *)wr->wr.ud.ah -
					     offsetof(struct soft_ah, ah));
		__atomic_fetch_add(&wqe->ah->refs, 1, __ATOMIC_RELAXED);
		wqe->remote_qpn = wr->wr.ud.remote_qpn;
		wqe->remote_qkey = wr->wr.ud.remote_qkey;
	} else if (is_atomic(wr->opcode)) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	if (wr->send_flags & IBV_SEND_INLINE)
		copy_inline(wqe, wr);
	__atomic_fetch_add(&qp->sq.used, 1, __ATOMIC_RELAXED);
	push_wqe(&qp->sq);
}

/* 0, or why this one can't be queued as the `taken`th from now. */
static int may_take(const struct soft_qp *qp, const struct ibv_send_wr *wr,
		    uint32_t taken, unsigned int how)
{
	const struct soft_wq *wq = &qp->sq;
	int err;

	if (qp->engine->state < IBV_QPS_RTS)
		return EINVAL;
	err = check_send(qp, wr, how);
	if (err)
		return err;
	if (__atomic_load_n(&wq->used, __ATOMIC_ACQUIRE) + taken >= wq->max_wr)
		return ENOMEM;
	return 0;
}

/* The first that can't be taken, NULL: none; and why. */
static struct ibv_send_wr *check_all(const struct soft_qp *qp,
				     struct ibv_send_wr *wr, unsigned int how,
				     int *err)
{
	for (uint32_t taken = 0; wr; wr = wr->next, taken++) {
		*err = may_take(qp, wr, taken, how);
		if (*err)
			break;
	}
	return wr;
}

int soft_post_list(struct soft_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr, unsigned int how)
{
	int err = 0;

	pthread_mutex_lock(&qp->sq.lock);
	if (how & SOFT_POST_WHOLE && check_all(qp, wr, how, &err))
		goto unlock;
	for (; wr; wr = wr->next) {
		err = may_take(qp, wr, 0, how);
		if (err)
			break;
		take_send(qp, wr);
	}
unlock:
	pthread_mutex_unlock(&qp->sq.lock);
	soft_posted(qp->engine);
	if (err)
		*bad_wr = wr;
	return err;
}

int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	if (!bad_wr)
		return EINVAL;
	return soft_post_list(soft_qp_of(qp), wr, bad_wr, 0);
}

/* The part that an RQ and an SRQ share. The lock is held. */
static int take_recv(struct soft_wq *wq, const struct ibv_recv_wr *wr)
{
	uint32_t head = __atomic_load_n(&wq->head, __ATOMIC_ACQUIRE);

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge)
		return EINVAL;
	if (wq->tail - head >= wq->max_wr)
		return ENOMEM;
	place_wqe(wq, wr->wr_id, wr->sg_list, wr->num_sge);
	push_wqe(wq);
	return 0;
}

int soft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct soft_qp *qp = soft_qp_of(ibqp);
	struct soft_wq *wq = &qp->rq;
	bool broken;
	int err = 0;

	if (!bad_wr)
		return EINVAL;
	if (qp->init.srq) {
		*bad_wr = wr;
		return EINVAL;
	}
	pthread_mutex_lock(&wq->lock);
	for (; wr; wr = wr->next) {
		err = qp->engine->state == IBV_QPS_RESET ? EINVAL
							 : take_recv(wq, wr);
		if (err)
			break;
	}
	broken = qp->engine->state == IBV_QPS_ERR;
	pthread_mutex_unlock(&wq->lock);
	/* Receives wait for packets; only a broken QP has work with them. */
	if (broken)
		soft_ring(qp->engine);
	if (err)
		*bad_wr = wr;
	return err;
}

int soft_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct soft_wq *wq = &soft_srq_of(ibsrq)->wq;
	int err = 0;

	if (!bad_wr)
		return EINVAL;
	pthread_mutex_lock(&wq->lock);
	for (; wr; wr = wr->next) {
		err = take_recv(wq, wr);
		if (err)
			break;
	}
	pthread_mutex_unlock(&wq->lock);
	if (err)
		*bad_wr = wr;
	return err;
}
