/* SPDX-License-Identifier: MIT */
/*
 * Calls that reach a device through pointers in the context: the pointers
 * are replaced, the device's own are kept in a list by context.
 */
#include "data_path.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct saved {
	_Atomic(struct ibv_context *) context; /* NULL: free to be used again */
	struct ibv_context_ops ops;
	/* Of struct verbs_context. */
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr, size_t length);
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t size);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
					 struct ibv_srq_init_attr_ex *attr);
	struct saved *next;
};

/* Grows only; read without the lock. */
static _Atomic(struct saved *) list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static inline struct saved *saved_of(const struct ibv_context *context)
{
	struct saved *saved = atomic_load_explicit(&list, memory_order_acquire);

	while (saved && atomic_load_explicit(&saved->context,
					     memory_order_acquire) != context)
		saved = saved->next;
	return saved;
}

/* --- the data path -------------------------------------------------------- */

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	const struct saved *saved = saved_of(cq->context);

	if (!saved)
		return -EINVAL;
	DATA_PATH(ibv_poll_cq, saved->ops.poll_cq(cq, num_entries, wc), cq,
		  num_entries, wc);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct saved *saved = saved_of(cq->context);

	if (!saved)
		return EINVAL;
	DATA_PATH(ibv_req_notify_cq,
		  saved->ops.req_notify_cq(cq, solicited_only), cq,
		  solicited_only, NULL);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	const struct saved *saved = saved_of(qp->context);

	if (!saved)
		return EINVAL;
	DATA_PATH(ibv_post_send, saved->ops.post_send(qp, wr, bad_wr), qp, wr,
		  bad_wr);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	const struct saved *saved = saved_of(qp->context);

	if (!saved)
		return EINVAL;
	DATA_PATH(ibv_post_recv, saved->ops.post_recv(qp, wr, bad_wr), qp, wr,
		  bad_wr);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	const struct saved *saved = saved_of(srq->context);

	if (!saved)
		return EINVAL;
	DATA_PATH(ibv_post_srq_recv, saved->ops.post_srq_recv(srq, wr, bad_wr),
		  srq, wr, bad_wr);
}

/* --- the control path ----------------------------------------------------- */

#define CONTROL_PATH(type, name, real, a, b, c)            \
	do {                                               \
		struct call call;                          \
		type ret;                                  \
                                                           \
		call.word[0] = WIDE(a);                    \
		call.word[1] = WIDE(b);                    \
		call.word[2] = WIDE(c);                    \
		call_begin(&call, &VERB(name), FROM_HERE); \
		ret = real;                                \
		call_end(&call, WIDE(ret));                \
		return ret;                                \
	} while (0)

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	const struct saved *saved = saved_of(pd->context);

	if (!saved) {
		errno = EINVAL;
		return NULL;
	}
	CONTROL_PATH(struct ibv_mw *, ibv_alloc_mw,
		     saved->ops.alloc_mw(pd, type), pd, type, NULL);
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *mw_bind)
{
	const struct saved *saved = saved_of(mw->context);

	if (!saved)
		return EINVAL;
	CONTROL_PATH(int, ibv_bind_mw, saved->ops.bind_mw(qp, mw, mw_bind), qp,
		     mw, mw_bind);
}

static int dealloc_mw(struct ibv_mw *mw)
{
	const struct saved *saved = saved_of(mw->context);

	if (!saved)
		return EINVAL;
	CONTROL_PATH(int, ibv_dealloc_mw, saved->ops.dealloc_mw(mw), mw, NULL,
		     NULL);
}

/* A program built with older headers has a shorter structure. */
static int query_port(struct ibv_context *context, uint8_t port_num,
		      struct ibv_port_attr *port_attr, size_t length)
{
	const struct saved *saved = saved_of(context);
	const void *shown = length > offsetof(struct ibv_port_attr, link_layer)
				    ? port_attr
				    : NULL;

	if (!saved)
		return EINVAL;
	CONTROL_PATH(int, ibv_query_port,
		     saved->query_port(context, port_num, port_attr, length),
		     context, port_num, shown);
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	const struct saved *saved = saved_of(context);

	if (!saved)
		return EINVAL;
	CONTROL_PATH(int, ibv_query_device_ex,
		     saved->query_device_ex(context, input, attr, size),
		     context, input, attr);
}

/* The program sees it from now on. */
static struct ibv_cq_ex *made_cq_ex(struct ibv_cq_ex *cq,
				    const struct ibv_cq_init_attr_ex *attr)
{
	if (cq && probe_mode > MODE_ENDING)
		cq_ex_wrap(cq, attr->wc_flags);
	return cq;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr)
{
	const struct saved *saved = saved_of(context);

	if (!saved) {
		errno = EINVAL;
		return NULL;
	}
	CONTROL_PATH(struct ibv_cq_ex *, ibv_create_cq_ex,
		     made_cq_ex(saved->create_cq_ex(context, attr), attr),
		     context, attr, NULL);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr)
{
	const struct saved *saved = saved_of(context);

	if (!saved) {
		errno = EINVAL;
		return NULL;
	}
	CONTROL_PATH(struct ibv_qp *, ibv_create_qp_ex,
		     saved->create_qp_ex(context, attr), context, attr, NULL);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context,
				     struct ibv_srq_init_attr_ex *attr)
{
	const struct saved *saved = saved_of(context);

	if (!saved) {
		errno = EINVAL;
		return NULL;
	}
	CONTROL_PATH(struct ibv_srq *, ibv_create_srq_ex,
		     saved->create_srq_ex(context, attr), context, attr, NULL);
}

/* --- in and out ----------------------------------------------------------- */

/* Pointers that a device lacks stay NULL: verbs.h looks at them. */
#define REPLACE(pointers, name)                  \
	do {                                     \
		if ((pointers)->name)            \
			(pointers)->name = name; \
	} while (0)
#define REPLACE_EXTENDED(context, saved, member)                \
	do {                                                    \
		struct verbs_context *have_ =                   \
			verbs_get_ctx_op(context, member);      \
                                                                \
		(saved)->member = have_ ? have_->member : NULL; \
		if (have_)                                      \
			have_->member = member;                 \
	} while (0)
#define RESTORE_EXTENDED(context, saved, name)                        \
	do {                                                          \
		if ((saved)->name)                                    \
			verbs_get_ctx(context)->name = (saved)->name; \
	} while (0)

static struct saved *free_entry(void)
{
	struct saved *saved = saved_of(NULL);

	if (saved)
		return saved;
	saved = calloc(1, sizeof(*saved));
	if (!saved)
		return NULL;
	saved->next = list;
	list = saved;
	return saved;
}

static void replace(struct saved *saved, struct ibv_context *context)
{
	struct ibv_context_ops *ops = &context->ops;

	saved->ops = *ops;
	/* The wrappers find the entry from the moment they are in place. */
	atomic_store_explicit(&saved->context, context, memory_order_release);
	REPLACE(ops, poll_cq);
	REPLACE(ops, req_notify_cq);
	REPLACE(ops, post_send);
	REPLACE(ops, post_recv);
	REPLACE(ops, post_srq_recv);
	REPLACE(ops, alloc_mw);
	REPLACE(ops, bind_mw);
	REPLACE(ops, dealloc_mw);
	REPLACE_EXTENDED(context, saved, query_port);
	REPLACE_EXTENDED(context, saved, query_device_ex);
	REPLACE_EXTENDED(context, saved, create_cq_ex);
	REPLACE_EXTENDED(context, saved, create_qp_ex);
	REPLACE_EXTENDED(context, saved, create_srq_ex);
}

void context_wrap(struct ibv_context *context)
{
	struct saved *saved;

	if (!context->ops.poll_cq ||
	    (saved_of(context) && context->ops.poll_cq == poll_cq))
		return;
	pthread_mutex_lock(&lock);
	saved = saved_of(context);
	/* An entry whose pointers are not ours is of a context that is gone. */
	if (!saved || context->ops.poll_cq != poll_cq) {
		saved = saved ? saved : free_entry();
		if (saved)
			replace(saved, context);
	}
	pthread_mutex_unlock(&lock);
}

void context_unwrap(struct ibv_context *context)
{
	struct saved *saved;

	pthread_mutex_lock(&lock);
	saved = saved_of(context);
	if (saved) {
		context->ops = saved->ops;
		RESTORE_EXTENDED(context, saved, query_port);
		RESTORE_EXTENDED(context, saved, query_device_ex);
		RESTORE_EXTENDED(context, saved, create_cq_ex);
		RESTORE_EXTENDED(context, saved, create_qp_ex);
		RESTORE_EXTENDED(context, saved, create_srq_ex);
		saved->context = NULL;
	}
	pthread_mutex_unlock(&lock);
}
