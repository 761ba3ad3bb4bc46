/* SPDX-License-Identifier: MIT */
/*
 * Completion queues: creating, resizing, destroying. The ring itself is the
 * engine's.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

#include "common/soft/events.h"

/* 0, or why there can be no such CQ (rxe_cq_chk_attr, uverbs' create_cq). */
static int check_cq(struct ibv_context *context, int cqe,
		    struct ibv_comp_channel *channel, int comp_vector)
{
	if (!soft_find(context, SOFT_CONTEXT, "ibv_create_cq"))
		return errno;
	if (comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return EINVAL;
	if (cqe <= 0 || (uint32_t)cqe > soft_limits()->max_cqe)
		return EINVAL;
	if (!channel)
		return 0;
	if (!soft_find(channel, SOFT_CHANNEL, "ibv_create_cq"))
		return errno;
	return channel->context == context ? 0 : EINVAL;
}

static void free_cq(struct soft_cq *cq)
{
	soft_cq_ring_fini(cq);
	pthread_mutex_destroy(&cq->poll_lock);
	pthread_cond_destroy(&cq->cq.cond);
	pthread_mutex_destroy(&cq->cq.mutex);
	free(cq);
}

static struct soft_cq *new_cq(struct ibv_context *context, void *cq_context,
			      struct ibv_comp_channel *channel,
			      struct soft_pd *domain)
{
	struct soft_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->cq.context = context;
	cq->cq.cq_context = cq_context;
	cq->cq.channel = channel;
	cq->domain = domain;
	pthread_mutex_init(&cq->poll_lock, NULL);
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	return cq;
}

/* Under soft_lock. */
static int enter_cq(struct soft_cq *cq, int cqe, int comp_vector)
{
	struct ibv_context *context = cq->cq.context;
	int err = check_cq(context, cqe, cq->cq.channel, comp_vector);

	if (err)
		return err;
	err = soft_object_add(&cq->object, SOFT_CQ, cq,
			      soft_context_of(context));
	if (err)
		return err;
	if (cq->cq.channel)
		cq->cq.channel->refcnt++;
	if (cq->domain)
		cq->domain->refs++;
	return err;
}

int soft_cq_create(struct ibv_context *context, int cqe, void *cq_context,
		   struct ibv_comp_channel *channel, int comp_vector,
		   struct soft_pd *domain, struct soft_cq **made)
{
	struct soft_cq *cq = new_cq(context, cq_context, channel, domain);
	int err;

	if (!cq)
		return ENOMEM;
	/* Here, and again when nothing can change any more. */
	err = check_cq(context, cqe, channel, comp_vector);
	if (!err)
		err = soft_cq_ring_init(cq, soft_ring_entries(cqe));
	if (!err) {
		soft_enter();
		err = enter_cq(cq, cqe, comp_vector);
		soft_leave();
	}
	if (err)
		free_cq(cq);
	else
		*made = cq;
	return err;
}

SOFT_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
					 void *cq_context,
					 struct ibv_comp_channel *channel,
					 int comp_vector)
{
	struct soft_cq *cq;
	int err;

	if (soft_foreign(context))
		return SOFT_REAL(ibv_create_cq)(context, cqe, cq_context,
						channel, comp_vector);
	err = soft_cq_create(context, cqe, cq_context, channel, comp_vector,
			     NULL, &cq);
	if (err) {
		errno = err;
		return NULL;
	}
	return &cq->cq;
}

SOFT_EXPORT int ibv_resize_cq(struct ibv_cq *public, int cqe)
{
	struct soft_array array;
	struct soft_cq *cq;
	int err;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_resize_cq)(public, cqe);
	cq = soft_find(public, SOFT_CQ, "ibv_resize_cq");
	if (!cq)
		return errno;
	if (cqe <= 0 || (uint32_t)cqe > soft_limits()->max_cqe) {
		errno = EINVAL;
		return EINVAL;
	}
	if (!soft_cq_array_init(cq, &array, soft_ring_entries(cqe))) {
		errno = ENOMEM;
		return ENOMEM;
	}
	soft_enter();
	/* Whether the CQEs fit, of all that was posted before. */
	soft_engine_catch_up();
	err = soft_cq_ring_resize(cq, &array);
	soft_leave();
	soft_array_fini(&array);
	if (err)
		errno = err;
	return err;
}

/* No new events from here on, and none that the program did not get. */
static void silence(struct soft_cq *cq)
{
	struct soft_channel *channel = (struct soft_channel *)cq->cq.channel;

	if (channel)
		soft_events_purge(&channel->events, &cq->object);
	soft_events_purge(&cq->object.context->async, &cq->object);
}

SOFT_EXPORT int ibv_destroy_cq(struct ibv_cq *public)
{
	struct soft_cq *cq;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_destroy_cq)(public);
	soft_enter();
	cq = soft_find(public, SOFT_CQ, "ibv_destroy_cq");
	if (!cq) {
		err = errno;
	} else if (cq->refs) {
		err = EBUSY;
	} else {
		soft_object_dying(&cq->object);
		silence(cq);
	}
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	/* As libibverbs does: it returns only when all events are acked. */
	soft_events_wait_acked(&cq->cq.mutex, &cq->cq.cond,
			       &cq->cq.comp_events_completed,
			       cq->object.comp_given);
	soft_events_wait_acked(&cq->cq.mutex, &cq->cq.cond,
			       &cq->cq.async_events_completed,
			       cq->object.async_given);
	soft_enter();
	soft_object_remove(&cq->object);
	if (cq->cq.channel)
		cq->cq.channel->refcnt--;
	soft_leave();
	soft_cq_ring_fini(cq);
	/* Its memory may have been the domain's. */
	soft_enter();
	if (cq->domain)
		cq->domain->refs--;
	soft_leave();
	free_cq(cq);
	return 0;
}

void soft_cq_abandon(struct soft_object *object)
{
	struct soft_cq *cq = object->public;

	silence(cq);
	if (cq->cq.channel)
		cq->cq.channel->refcnt--;
	soft_cq_ring_fini(cq);
	if (cq->domain)
		cq->domain->refs--;
	soft_object_remove(object);
}
