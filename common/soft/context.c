/* SPDX-License-Identifier: MIT */
/*
 * Contexts: opening and closing the device.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/soft/events.h"
#include "common/soft/machine.h"

static void fill(struct verbs_context *vctx)
{
	struct ibv_context *context = &vctx->context;

	vctx->sz = sizeof(*vctx);
	vctx->query_port = soft_query_port;
	vctx->query_device_ex = soft_query_device_ex;
	vctx->create_cq_ex = soft_create_cq_ex;
	vctx->create_qp_ex = soft_create_qp_ex;
	vctx->create_srq_ex = soft_create_srq_ex;
	vctx->query_rt_values = soft_query_rt_values;
	vctx->alloc_td = soft_alloc_td;
	vctx->dealloc_td = soft_dealloc_td;
	vctx->alloc_parent_domain = soft_alloc_parent_domain;
	vctx->alloc_dm = soft_alloc_dm;
	vctx->free_dm = soft_free_dm;
	vctx->reg_dm_mr = soft_reg_dm_mr;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->device = &soft_device;
	context->num_comp_vectors = 1;
	context->ops.poll_cq = soft_poll_cq;
	context->ops.req_notify_cq = soft_req_notify_cq;
	context->ops.post_srq_recv = soft_post_srq_recv;
	context->ops.post_send = soft_post_send;
	context->ops.post_recv = soft_post_recv;
	context->ops.alloc_mw = soft_alloc_mw;
	context->ops.bind_mw = soft_bind_mw;
	context->ops.dealloc_mw = soft_dealloc_mw;
	pthread_mutex_init(&context->mutex, NULL);
}

static int open_descriptors(struct soft_context *soft)
{
	struct ibv_context *context = &soft->vctx.context;
	int err;

	/* Nothing is sent there, but programs may look whether it is open. */
	context->cmd_fd = eventfd(0, EFD_CLOEXEC);
	if (context->cmd_fd < 0)
		return errno;
	err = soft_events_init(&soft->async);
	if (err) {
		close(context->cmd_fd);
		return err;
	}
	context->async_fd = soft->async.fd;
	return 0;
}

static void free_context(struct soft_context *soft)
{
	soft_events_fini(&soft->async);
	close(soft->vctx.context.cmd_fd);
	pthread_mutex_destroy(&soft->vctx.context.mutex);
	free(soft);
}

static struct ibv_context *open_soft(void)
{
	struct soft_context *soft;
	int err;

	soft = calloc(1, sizeof(*soft));
	if (!soft)
		return NULL;
	fill(&soft->vctx);
	err = soft_machine_join();
	if (err) {
		free(soft);
		errno = err;
		return NULL;
	}
	err = open_descriptors(soft);
	if (err) {
		soft_machine_leave();
		free(soft);
		errno = err;
		return NULL;
	}
	soft_enter();
	err = soft_object_add(&soft->object, SOFT_CONTEXT, &soft->vctx.context,
			      soft);
	if (!err)
		soft_context_opened(soft);
	soft_leave();
	if (err) {
		free_context(soft);
		soft_machine_leave();
		errno = err;
		return NULL;
	}
	return &soft->vctx.context;
}

SOFT_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;

	if (device == &soft_device)
		return open_soft();
	if (!device) {
		soft_diagnose("ibv_open_device: the device is NULL");
		errno = EINVAL;
		return NULL;
	}
	context = SOFT_REAL(ibv_open_device)(device);
	if (context)
		soft_real_opened();
	return context;
}

/* Takes from the program what it left behind, users before the used. */
static void abandon_all(struct soft_context *soft)
{
	static const struct {
		enum soft_type type;
		void (*abandon)(struct soft_object *object);
	} order[] = {
		{ SOFT_QP, soft_qp_abandon },
		{ SOFT_AH, soft_ah_abandon },
		{ SOFT_SRQ, soft_srq_abandon },
		{ SOFT_CQ, soft_cq_abandon },
		{ SOFT_CHANNEL, soft_channel_abandon },
		{ SOFT_MW, soft_mw_abandon },
		{ SOFT_MR, soft_mr_abandon },
		{ SOFT_DM, soft_dm_abandon },
		{ SOFT_PD, soft_pd_abandon },
		{ SOFT_TD, soft_td_abandon },
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		while (soft->live[order[i].type])
			order[i].abandon(soft->live[order[i].type]);
}

SOFT_EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct soft_context *soft;
	struct ibv_context *found;

	if (soft_foreign(context))
		return SOFT_REAL(ibv_close_device)(context);
	soft_enter();
	found = soft_find(context, SOFT_CONTEXT, "ibv_close_device");
	if (!found) {
		soft_leave();
		return errno;
	}
	soft = soft_context_of(found);
	abandon_all(soft);
	soft_object_remove(&soft->object);
	soft_context_closed(soft);
	soft_leave();
	free_context(soft);
	soft_engine_rest();
	soft_machine_leave();
	return 0;
}
