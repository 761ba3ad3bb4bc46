/* SPDX-License-Identifier: MIT */
/*
 * Completion queues: the ring, polling, arming, overrun.
 *
 * A CQ takes as many CQEs as it says (cq.cqe). One more kills it, as IBTA
 * has it (C9-7.2.4, 11.6.3.3): one IBV_EVENT_CQ_ERR, no CQE ever after, its
 * QPs go to ERR with IBV_EVENT_QP_FATAL. The CQEs that were there can still
 * be polled.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t ring_places(int cqe)
{
	uint32_t places = 1;

	while (places < (uint32_t)cqe + 1)
		places <<= 1;
	return places;
}

bool soft_cq_array_init(const struct soft_cq *cq, struct soft_array *array,
			int cqe)
{
	return soft_array_init(array, cq->domain,
			       ring_places(cqe) * sizeof(*cq->ring));
}

/* An array of soft_cq_array_init() becomes the ring. */
static void take_array(struct soft_cq *cq, const struct soft_array *array)
{
	uint32_t places = (uint32_t)(array->bytes / sizeof(*cq->ring));

	cq->array = *array;
	cq->ring = array->memory;
	cq->mask = places - 1;
	cq->cq.cqe = (int)places - 1;
}

int soft_cq_ring_init(struct soft_cq *cq, int cqe)
{
	struct soft_array array;

	if (!soft_cq_array_init(cq, &array, cqe))
		return ENOMEM;
	if (pthread_mutex_init(&cq->lock, NULL)) {
		soft_array_fini(&array);
		return ENOMEM;
	}
	take_array(cq, &array);
	return 0;
}

int soft_cq_ring_resize(struct soft_cq *cq, struct soft_array *array)
{
	struct soft_array old = cq->array;
	struct soft_cqe *ring = array->memory;
	uint32_t count;
	int err = 0;

	pthread_mutex_lock(&cq->lock);
	count = cq->tail - cq->head;
	if (count >= array->bytes / sizeof(*ring)) {
		err = EINVAL;
	} else {
		for (uint32_t i = 0; i < count; i++)
			ring[i] = cq->ring[(cq->head + i) & cq->mask];
		take_array(cq, array);
		cq->head = 0;
		cq->tail = count;
		*array = old;
	}
	pthread_mutex_unlock(&cq->lock);
	return err;
}

void soft_cq_ring_fini(struct soft_cq *cq)
{
	if (!cq->ring)
		return;
	pthread_mutex_destroy(&cq->lock);
	soft_array_fini(&cq->array);
	cq->ring = NULL;
}

/* The engine breaks the CQ's QPs when it gets to them: we may be in one. */
static void overrun(struct soft_cq *cq)
{
	struct ibv_async_event event = {
		.event_type = IBV_EVENT_CQ_ERR,
		.element.cq = &cq->cq,
	};

	soft_async_raise(cq->cq.context, &event);
	for (struct soft_engine_qp *eq = soft_engine_qps(); eq; eq = eq->next) {
		if (eq->qp->init.send_cq != &cq->cq &&
		    eq->qp->init.recv_cq != &cq->cq)
			continue;
		eq->cq_died = true;
		soft_ring(eq);
	}
}

void soft_cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited,
		  struct soft_qp *frees, unsigned int slots)
{
	bool died = false, fire = false;

	pthread_mutex_lock(&cq->lock);
	if (!cq->dead && cq->tail - cq->head >= (uint32_t)cq->cq.cqe)
		died = cq->dead = true;
	if (!cq->dead) {
		cq->ring[cq->tail++ & cq->mask] = (struct soft_cqe){
			.wc = *wc,
			.frees = frees,
			.slots = slots,
		};
		if (cq->stamps)
			soft_cq_stamp(&cq->ring[(cq->tail - 1) & cq->mask]);
		/* Errors count as solicited (IBTA 11.4.2.2). */
		if (wc->status != IBV_WC_SUCCESS)
			solicited = true;
		fire = cq->armed || (cq->armed_solicited && solicited);
		if (fire)
			cq->armed = cq->armed_solicited = false;
	}
	pthread_mutex_unlock(&cq->lock);
	if (fire && cq->cq.channel)
		soft_channel_raise(cq);
	if (died)
		overrun(cq);
}

void soft_cq_drop(struct soft_cq *cq, const struct soft_qp *qp)
{
	uint32_t kept;

	pthread_mutex_lock(&cq->lock);
	kept = cq->head;
	for (uint32_t i = cq->head; i != cq->tail; i++) {
		const struct soft_cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->wc.qp_num != qp->qp.qp_num)
			cq->ring[kept++ & cq->mask] = *cqe;
	}
	cq->tail = kept;
	pthread_mutex_unlock(&cq->lock);
}

void soft_cq_forget(struct soft_cq *cq, const struct soft_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	for (uint32_t i = cq->head; i != cq->tail; i++) {
		struct soft_cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->frees == qp)
			cqe->frees = NULL;
	}
	pthread_mutex_unlock(&cq->lock);
}

/* Under the CQ's lock; there is one. */
static const struct soft_cqe *take(struct soft_cq *cq)
{
	const struct soft_cqe *cqe = &cq->ring[cq->head++ & cq->mask];

	if (cqe->frees)
		__atomic_fetch_sub(&cqe->frees->sq.used, cqe->slots,
				   __ATOMIC_RELEASE);
	return cqe;
}

static bool take_one(struct soft_cq *cq, struct soft_cqe *cqe)
{
	bool any;

	pthread_mutex_lock(&cq->lock);
	any = cq->head != cq->tail;
	if (any)
		*cqe = *take(cq);
	pthread_mutex_unlock(&cq->lock);
	return any;
}

bool soft_cq_take(struct soft_cq *cq, struct soft_cqe *cqe)
{
	return take_one(cq, cqe) ||
	       (soft_polled_nothing() && take_one(cq, cqe));
}

static int take_some(struct soft_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int n = 0;

	pthread_mutex_lock(&cq->lock);
	while (n < num_entries && cq->head != cq->tail)
		wc[n++] = take(cq)->wc;
	pthread_mutex_unlock(&cq->lock);
	return n;
}

int soft_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct soft_cq *cq = soft_cq_of(ibcq);
	int n = take_some(cq, num_entries, wc);

	if (!n && soft_polled_nothing())
		n = take_some(cq, num_entries, wc);
	return n;
}

int soft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct soft_cq *cq = soft_cq_of(ibcq);

	pthread_mutex_lock(&cq->lock);
	if (solicited_only)
		cq->armed_solicited = true;
	else
		cq->armed = true;
	pthread_mutex_unlock(&cq->lock);
	soft_armed();
	return 0;
}
