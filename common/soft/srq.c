/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

#include "common/soft/events.h"

/* rxe_srq_chk_init(). */
static int check_srq(const struct ibv_srq_attr *attr)
{
	const struct soft_device_limits *limits = soft_limits();

	if (attr->max_wr == 0 || attr->max_wr > limits->max_srq_wr)
		return EINVAL;
	if (attr->max_sge > limits->max_srq_sge)
		return EINVAL;
	return attr->srq_limit > attr->max_wr ? EINVAL : 0;
}

static void free_srq(struct soft_srq *srq)
{
	soft_wq_fini(&srq->wq);
	pthread_cond_destroy(&srq->srq.cond);
	pthread_mutex_destroy(&srq->srq.mutex);
	free(srq);
}

static struct soft_srq *new_srq(struct ibv_pd *pd,
				const struct ibv_srq_init_attr *init)
{
	struct soft_srq *srq = calloc(1, sizeof(*srq));
	int err;

	if (!srq)
		return NULL;
	err = soft_wq_init(&srq->wq, (struct soft_pd *)pd,
			   soft_ring_entries(init->attr.max_wr),
			   init->attr.max_sge, 0);
	if (err) {
		free(srq);
		errno = err;
		return NULL;
	}
	srq->srq.context = pd->context;
	srq->srq.pd = pd;
	srq->srq.srq_context = init->srq_context;
	srq->limit = init->attr.srq_limit;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	return srq;
}

static struct ibv_srq *create_srq(struct ibv_pd *public,
				  struct ibv_srq_init_attr *init)
{
	struct soft_pd *pd = soft_find(public, SOFT_PD, "ibv_create_srq");
	struct soft_srq *srq;
	int err;

	if (!pd)
		return NULL;
	err = check_srq(&init->attr);
	if (err) {
		errno = err;
		return NULL;
	}
	srq = new_srq(public, init);
	if (!srq)
		return NULL;
	soft_enter();
	err = soft_object_add(&srq->object, SOFT_SRQ, srq, pd->object.context);
	if (!err)
		pd->refs++;
	soft_leave();
	if (err) {
		free_srq(srq);
		errno = err;
		return NULL;
	}
	init->attr.max_wr = srq->wq.max_wr;
	init->attr.max_sge = srq->wq.max_sge;
	return &srq->srq;
}

SOFT_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					   struct ibv_srq_init_attr *init)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_create_srq)(pd, init);
	return create_srq(pd, init);
}

struct ibv_srq *soft_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *init)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	bool typed = init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
	int err = 0;

	if (init->comp_mask & ~known ||
	    (typed && init->srq_type != IBV_SRQT_BASIC))
		err = EOPNOTSUPP;
	else if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		err = EINVAL;
	else if (!soft_find(init->pd, SOFT_PD, "ibv_create_srq_ex"))
		err = errno;
	else if (init->pd->context != context)
		err = EINVAL;
	if (err) {
		errno = err;
		return NULL;
	}
	/* It begins as an ibv_srq_init_attr does. */
	return create_srq(init->pd, (struct ibv_srq_init_attr *)init);
}

SOFT_EXPORT int ibv_modify_srq(struct ibv_srq *public,
			       struct ibv_srq_attr *attr, int attr_mask)
{
	struct soft_srq *srq;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_modify_srq)(public, attr, attr_mask);
	soft_enter();
	srq = soft_find(public, SOFT_SRQ, "ibv_modify_srq");
	if (!srq)
		err = errno;
	else if (attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		err = EINVAL;
	else if (attr_mask & IBV_SRQ_MAX_WR)
		err = EOPNOTSUPP; /* IBV_DEVICE_SRQ_RESIZE is not promised */
	else if (attr_mask & IBV_SRQ_LIMIT && attr->srq_limit > srq->wq.max_wr)
		err = EINVAL;
	else if (attr_mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	soft_leave();
	if (err)
		errno = err;
	return err;
}

SOFT_EXPORT int ibv_query_srq(struct ibv_srq *public, struct ibv_srq_attr *attr)
{
	struct soft_srq *srq;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_query_srq)(public, attr);
	soft_enter();
	srq = soft_find(public, SOFT_SRQ, "ibv_query_srq");
	if (!srq)
		err = errno;
	else
		*attr = (struct ibv_srq_attr){
			.max_wr = srq->wq.max_wr,
			.max_sge = srq->wq.max_sge,
			.srq_limit = srq->limit,
		};
	soft_leave();
	if (err)
		errno = err;
	return err;
}

SOFT_EXPORT int ibv_destroy_srq(struct ibv_srq *public)
{
	struct soft_srq *srq;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_destroy_srq)(public);
	soft_enter();
	srq = soft_find(public, SOFT_SRQ, "ibv_destroy_srq");
	if (!srq) {
		err = errno;
	} else if (srq->refs) {
		err = EBUSY;
	} else {
		soft_object_dying(&srq->object);
		soft_events_purge(&srq->object.context->async, &srq->object);
	}
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	/* The ring, whose memory may be the PD's, and then the PD. */
	soft_wq_fini(&srq->wq);
	soft_enter();
	((struct soft_pd *)srq->srq.pd)->refs--;
	soft_leave();
	soft_events_wait_acked(&srq->srq.mutex, &srq->srq.cond,
			       &srq->srq.events_completed,
			       srq->object.async_given);
	soft_enter();
	soft_object_remove(&srq->object);
	soft_leave();
	free_srq(srq);
	return 0;
}

void soft_srq_abandon(struct soft_object *object)
{
	struct soft_srq *srq = object->public;

	soft_events_purge(&object->context->async, object);
	soft_wq_fini(&srq->wq);
	((struct soft_pd *)srq->srq.pd)->refs--;
	soft_object_remove(object);
}
