/* SPDX-License-Identifier: MIT */
/*
 * Async events of a context.
 */
#include "common/soft/object.h"

#include <errno.h>

#include "common/rules/rules.h"
#include "common/soft/events.h"

/* Whose event it is; NULL: the port's or the device's. */
static struct soft_object *owner(const struct ibv_async_event *event)
{
	switch (rules_object_of_event(event->event_type)) {
	case RULES_CQ:
		return &((struct soft_cq *)event->element.cq)->object;
	case RULES_QP:
		return &((struct soft_qp *)event->element.qp)->object;
	case RULES_SRQ:
		return &((struct soft_srq *)event->element.srq)->object;
	default:
		return NULL;
	}
}

void soft_async_raise(struct ibv_context *context,
		      const struct ibv_async_event *event)
{
	struct soft_context *soft =
		(struct soft_context *)verbs_get_ctx(context);
	struct soft_event copy = {
		.object = owner(event),
		.type = event->event_type,
	};

	if (copy.object)
		copy.given = &copy.object->async_given;
	soft_events_raise(&soft->async, &copy);
}

SOFT_EXPORT int ibv_get_async_event(struct ibv_context *context,
				    struct ibv_async_event *event)
{
	struct soft_event got;
	int err;

	if (soft_foreign(context))
		return SOFT_REAL(ibv_get_async_event)(context, event);
	if (!soft_find(context, SOFT_CONTEXT, "ibv_get_async_event"))
		return -1;
	err = soft_events_get(&soft_context_of(context)->async, &got);
	if (err) {
		errno = err;
		return -1;
	}
	event->event_type = got.type;
	if (!got.object)
		event->element.port_num = 1;
	else if (got.object->type == SOFT_CQ)
		event->element.cq = got.object->public;
	else if (got.object->type == SOFT_QP)
		event->element.qp = got.object->public;
	else
		event->element.srq = got.object->public;
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond,
			uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

SOFT_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (rules_object_of_event(event->event_type)) {
	case RULES_CQ:
		if (!soft_find_quietly(cq, SOFT_CQ))
			break;
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		return;
	case RULES_QP:
		if (!soft_find_quietly(qp, SOFT_QP))
			break;
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		return;
	case RULES_SRQ:
		if (!soft_find_quietly(srq, SOFT_SRQ))
			break;
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		return;
	default:
		if (event->event_type == IBV_EVENT_WQ_FATAL)
			break; /* a real device's: soft0 has no WQs */
		return;        /* the port's: nothing is counted */
	}
	/* Not ours, or of an object that is no more. */
	if (soft_foreign(event->element.cq))
		SOFT_REAL(ibv_ack_async_event)(event);
	else
		soft_diagnose("ibv_ack_async_event: %p, whose event it is, "
			      "is no live object",
			      (void *)event->element.cq);
}
