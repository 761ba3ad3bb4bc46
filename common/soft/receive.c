/* SPDX-License-Identifier: MIT */
/*
 * Receives: taking the next one of a QP's RQ or SRQ, and completing it. One
 * of an RQ keeps its place until it is completed; one of an SRQ is copied
 * out, since others go on taking from there.
 */
#include "common/soft/engine.h"

#include <string.h>

static void check_srq_limit(struct soft_srq *srq, uint32_t left)
{
	struct ibv_async_event event = {
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &srq->srq,
	};

	if (!srq->limit || left >= srq->limit)
		return;
	srq->limit = 0; /* one event for each arming */
	soft_async_raise(srq->srq.context, &event);
}

static bool take_from_srq(struct soft_engine_qp *eq)
{
	struct soft_srq *srq = soft_srq_of(eq->qp->init.srq);
	struct soft_wq *wq = &srq->wq;
	struct ibv_sge *sge = eq->srq_wqe.sge;
	struct soft_wqe *wqe;
	uint32_t left;

	if (wq->head == soft_wq_tail(wq))
		return false;
	wqe = soft_wq_at(wq, wq->head);
	eq->srq_wqe = *wqe;
	eq->srq_wqe.sge = sge;
	memcpy(sge, wqe->sge, (size_t)wqe->num_sge * sizeof(*sge));
	left = soft_wq_tail(wq) - wq->head - 1;
	__atomic_store_n(&wq->head, wq->head + 1, __ATOMIC_RELEASE);
	eq->recv = &eq->srq_wqe;
	check_srq_limit(srq, left);
	return true;
}

bool soft_recv_take(struct soft_engine_qp *eq)
{
	struct soft_wq *rq = &eq->qp->rq;

	if (eq->recv)
		return true;
	if (eq->qp->init.srq)
		return take_from_srq(eq);
	if (rq->head == soft_wq_tail(rq))
		return false;
	eq->recv = soft_wq_at(rq, rq->head);
	return true;
}

static void drop_receive(struct soft_engine_qp *eq)
{
	struct soft_wq *rq = &eq->qp->rq;

	eq->recv = NULL;
	if (!eq->qp->init.srq)
		__atomic_store_n(&rq->head, rq->head + 1, __ATOMIC_RELEASE);
}

void soft_recv_complete(struct soft_engine_qp *eq, struct ibv_wc *wc,
			bool solicited)
{
	wc->wr_id = eq->recv->wr_id;
	wc->qp_num = eq->qp->qp.qp_num;
	drop_receive(eq);
	soft_cq_push(soft_cq_of(eq->qp->init.recv_cq), wc, solicited, NULL, 0);
}

void soft_recv_fail(struct soft_engine_qp *eq, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .status = status };

	eq->told = true;
	soft_recv_complete(eq, &wc, true);
}

void soft_responder_flush(struct soft_engine_qp *eq)
{
	bool srq = eq->qp->init.srq;

	eq->in_message = false;
	while (eq->recv || (!srq && soft_recv_take(eq)))
		soft_recv_fail(eq, IBV_WC_WR_FLUSH_ERR);
}

void soft_responder_discard(struct soft_engine_qp *eq)
{
	bool srq = eq->qp->init.srq;

	eq->in_message = false;
	while (eq->recv || (!srq && soft_recv_take(eq)))
		drop_receive(eq);
	for (int i = 0; i < SOFT_REPLAYS; i++)
		eq->replay[i].valid = false;
}
