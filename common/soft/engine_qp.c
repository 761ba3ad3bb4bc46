/* SPDX-License-Identifier: MIT */
/*
 * A QP's life in the engine: its queues, its state, and what there is to do
 * for it.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "common/soft/peers.h"

static struct soft_engine_qp *qps; /* all; under soft_lock */

struct soft_engine_qp *soft_engine_qps(void)
{
	return qps;
}

void soft_qp_event(struct soft_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event = {
		.event_type = type,
		.element.qp = &qp->qp,
	};

	soft_async_raise(qp->qp.context, &event);
}

static void publish_state(struct soft_engine_qp *eq)
{
	struct soft_qp *qp = eq->qp;

	pthread_mutex_lock(&qp->sq.lock);
	pthread_mutex_lock(&qp->rq.lock);
	eq->state = qp->attr.qp_state;
	pthread_mutex_unlock(&qp->rq.lock);
	pthread_mutex_unlock(&qp->sq.lock);
}

void soft_qp_error(struct soft_engine_qp *eq)
{
	struct soft_qp *qp = eq->qp;

	qp->attr.qp_state = IBV_QPS_ERR;
	publish_state(eq);
	soft_timer_clear(eq);
	eq->rnr_wait = eq->draining = false;
	soft_requester_flush(eq);
	soft_responder_flush(eq);
	if (qp->init.srq && !eq->last_wqe_told) {
		eq->last_wqe_told = true;
		soft_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

bool soft_qp_run(struct soft_engine_qp *eq)
{
	if (eq->cq_died) {
		eq->cq_died = false;
		if (eq->state == IBV_QPS_RESET)
			return false;
		if (eq->state != IBV_QPS_ERR)
			soft_qp_event(eq->qp, IBV_EVENT_QP_FATAL);
		soft_qp_error(eq);
		return false;
	}
	switch (eq->state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
		return soft_requester_run(eq);
	case IBV_QPS_ERR:
		soft_qp_error(eq);
		return false;
	default:
		return false;
	}
}

static int init_queues(struct soft_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	const struct soft_pd *domain = (struct soft_pd *)qp->qp.pd;
	bool srq = qp->init.srq;
	int err;

	err = soft_wq_init(&qp->sq, domain, cap->max_send_wr, cap->max_send_sge,
			   cap->max_inline_data);
	if (err)
		return err;
	err = soft_wq_init(&qp->rq, domain, srq ? 0 : cap->max_recv_wr,
			   srq ? 0 : cap->max_recv_sge, 0);
	if (err)
		soft_wq_fini(&qp->sq);
	return err;
}

int soft_engine_qp_init(struct soft_qp *qp)
{
	struct soft_engine_qp *eq = calloc(1, sizeof(*eq));
	int err = ENOMEM;

	if (!eq)
		return ENOMEM;
	if (qp->init.srq) {
		eq->srq_wqe.sge = calloc(SOFT_MAX_SGE, sizeof(struct ibv_sge));
		if (!eq->srq_wqe.sge)
			goto free_engine;
	}
	err = init_queues(qp);
	if (err)
		goto free_sge;
	eq->qp = qp;
	eq->state = IBV_QPS_RESET;

	err = soft_engine_start();
	if (err)
		goto fini_queues;
	soft_enter();
	qp->engine = eq;
	eq->next = qps;
	if (eq->next)
		eq->next->prev = eq;
	qps = eq;
	soft_leave();
	soft_engine_started();
	return 0;
fini_queues:
	soft_engine_started();
	soft_wq_fini(&qp->sq);
	soft_wq_fini(&qp->rq);
	err = ENOMEM;
free_sge:
	free(eq->srq_wqe.sge);
free_engine:
	free(eq);
	return err;
}

/* Both queues emptied without a word; CQEs stay but free nothing. */
static void discard(struct soft_engine_qp *eq)
{
	struct soft_qp *qp = eq->qp;

	soft_timer_clear(eq);
	soft_requester_discard(eq);
	soft_responder_discard(eq);
	soft_cq_forget(soft_cq_of(qp->init.send_cq), qp);
	__atomic_store_n(&qp->sq.used, 0, __ATOMIC_RELEASE);
}

void soft_engine_qp_fini(struct soft_qp *qp)
{
	struct soft_engine_qp *eq = qp->engine;

	discard(eq);
	soft_unring(eq);
	soft_peers_forget_qp(eq);
	if (eq->prev)
		eq->prev->next = eq->next;
	else
		qps = eq->next;
	if (eq->next)
		eq->next->prev = eq->prev;
	free(eq->srq_wqe.sge);
	free(eq);
	qp->engine = NULL;
}

static void reset(struct soft_engine_qp *eq)
{
	discard(eq);
	soft_cq_drop(soft_cq_of(eq->qp->init.send_cq), eq->qp);
	soft_cq_drop(soft_cq_of(eq->qp->init.recv_cq), eq->qp);
	eq->cq_died = eq->last_wqe_told = false;
	eq->rnr_wait = eq->draining = eq->drain_notify = false;
	eq->nak_sent = eq->in_message = false;
	eq->reads = eq->unreported = 0;
	eq->msn = 0;
}

void soft_engine_qp_changed(struct soft_qp *qp, enum ibv_qp_state from,
			    int attr_mask)
{
	struct soft_engine_qp *eq = qp->engine;
	enum ibv_qp_state to = qp->attr.qp_state;

	publish_state(eq);
	switch (to) {
	case IBV_QPS_RESET:
		reset(eq);
		break;
	case IBV_QPS_RTR:
		if (from == IBV_QPS_INIT)
			eq->expected_psn = qp->attr.rq_psn & SOFT_PSN_MASK;
		break;
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR) {
			eq->next_psn = qp->attr.sq_psn & SOFT_PSN_MASK;
			eq->una_psn = eq->next_psn;
			eq->retries = qp->attr.retry_cnt;
			eq->rnr_retries = qp->attr.rnr_retry;
		}
		eq->draining = false;
		soft_ring(eq);
		break;
	case IBV_QPS_SQD:
		if (from == IBV_QPS_RTS) {
			eq->draining = true;
			eq->drain_notify =
				(attr_mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
				qp->attr.en_sqd_async_notify;
			soft_requester_drained(eq);
		}
		soft_ring(eq);
		break;
	case IBV_QPS_ERR:
		if (from != IBV_QPS_ERR)
			soft_qp_error(eq);
		break;
	default:
		break;
	}
}

void soft_engine_qp_query(struct soft_qp *qp, struct ibv_qp_attr *attr)
{
	attr->sq_psn = qp->engine->next_psn;
	attr->rq_psn = qp->engine->expected_psn;
	attr->sq_draining = qp->engine->draining;
}

void soft_engine_qps_forget(void)
{
	qps = NULL;
}
