/* SPDX-License-Identifier: MIT */
/*
 * Completion channels and their events.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

#include "common/soft/events.h"

SOFT_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct soft_channel *channel;
	int err;

	if (soft_foreign(context))
		return SOFT_REAL(ibv_create_comp_channel)(context);
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	err = soft_events_init(&channel->events);
	if (err)
		goto free_channel;
	channel->channel.context = context;
	channel->channel.fd = channel->events.fd;
	soft_enter();
	if (soft_find(context, SOFT_CONTEXT, "ibv_create_comp_channel"))
		err = soft_object_add(&channel->object, SOFT_CHANNEL, channel,
				      soft_context_of(context));
	else
		err = errno;
	soft_leave();
	if (err)
		goto close;
	return &channel->channel;

close:
	soft_events_fini(&channel->events);
free_channel:
	free(channel);
	errno = err;
	return NULL;
}

SOFT_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *public)
{
	struct soft_channel *channel;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_destroy_comp_channel)(public);
	soft_enter();
	channel = soft_find(public, SOFT_CHANNEL, "ibv_destroy_comp_channel");
	if (!channel)
		err = errno;
	else if (channel->channel.refcnt)
		err = EBUSY; /* libibverbs' own count of CQs */
	else
		soft_object_remove(&channel->object);
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	soft_events_fini(&channel->events);
	free(channel);
	return 0;
}

void soft_channel_abandon(struct soft_object *object)
{
	struct soft_channel *channel = object->public;

	soft_object_remove(object);
	soft_events_fini(&channel->events);
}

void soft_channel_raise(struct soft_cq *cq)
{
	struct soft_channel *channel = (struct soft_channel *)cq->cq.channel;
	struct soft_event event = {
		.object = &cq->object,
		.given = &cq->object.comp_given,
	};

	if (channel)
		soft_events_raise(&channel->events, &event);
}

SOFT_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *public,
				 struct ibv_cq **cq, void **cq_context)
{
	struct soft_channel *channel;
	struct soft_event event;
	int err;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_get_cq_event)(public, cq, cq_context);
	channel = soft_find(public, SOFT_CHANNEL, "ibv_get_cq_event");
	if (!channel)
		return -1;
	err = soft_events_get(&channel->events, &event);
	if (err) {
		errno = err;
		return -1;
	}
	*cq = event.object->public;
	*cq_context = (*cq)->cq_context;
	return 0;
}

SOFT_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (soft_foreign(cq)) {
		SOFT_REAL(ibv_ack_cq_events)(cq, nevents);
		return;
	}
	/* A CQ whose destruction waits for this very call counts as well. */
	if (!soft_find_quietly(cq, SOFT_CQ)) {
		soft_find(cq, SOFT_CQ, "ibv_ack_cq_events");
		return;
	}
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
