/* SPDX-License-Identifier: MIT */
/*
 * fork(): the child has none of the parent's objects. The engine's thread is
 * not there, and the locks of its copies may be held for ever; so the child
 * forgets them all, and opens the device anew if it wants it.
 */
#include "common/soft/object.h"

#include <errno.h>

#include "common/soft/pages.h"

pthread_mutex_t soft_lock = PTHREAD_MUTEX_INITIALIZER;

static struct soft_context *opened; /* under soft_lock */
/* The parent's: kept, so that a memory checker does not call them lost. */
static struct soft_context *inherited;

int soft_refuse_inherited(const char *verb)
{
	soft_diagnose("%s: fork() leaves the parent's objects to the parent: "
		      "open the device in the child",
		      verb);
	errno = EINVAL;
	return EINVAL;
}

static int refuse_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	(void)qp;
	*bad_wr = wr;
	return soft_refuse_inherited("ibv_post_send");
}

static int refuse_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	(void)qp;
	*bad_wr = wr;
	return soft_refuse_inherited("ibv_post_recv");
}

static int refuse_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr)
{
	(void)srq;
	*bad_wr = wr;
	return soft_refuse_inherited("ibv_post_srq_recv");
}

static int refuse_poll(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	(void)cq, (void)num_entries, (void)wc;
	return -soft_refuse_inherited("ibv_poll_cq");
}

static int refuse_notify(struct ibv_cq *cq, int solicited_only)
{
	(void)cq, (void)solicited_only;
	return soft_refuse_inherited("ibv_req_notify_cq");
}

/* All objects in one piece, whatever other threads are doing. */
static void before_fork(void)
{
	pthread_mutex_lock(&soft_lock);
	soft_objects_lock();
}

static void after_fork_parent(void)
{
	soft_objects_unlock();
	pthread_mutex_unlock(&soft_lock);
}

static void after_fork_child(void)
{
	struct soft_context **place = &opened;

	for (; *place; place = &(*place)->next) {
		struct ibv_context_ops *ops = &(*place)->vctx.context.ops;

		ops->post_send = refuse_send;
		ops->post_recv = refuse_recv;
		ops->post_srq_recv = refuse_srq_recv;
		ops->poll_cq = refuse_poll;
		ops->req_notify_cq = refuse_notify;
		(*place)->inherited = true;
	}
	*place = inherited;
	inherited = opened;
	opened = NULL;
	soft_objects_forget();
	soft_keys_forget();
	soft_pages_forget();
	soft_qps_forget();
	soft_mcast_forget();
	soft_dms_forget();
	soft_engine_after_fork();
	pthread_mutex_unlock(&soft_lock);
}

static void watch(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void soft_context_opened(struct soft_context *soft)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	soft->next = opened;
	opened = soft;
}

void soft_context_closed(struct soft_context *soft)
{
	struct soft_context **place = &opened;

	while (*place != soft)
		place = &(*place)->next;
	*place = soft->next;
}
