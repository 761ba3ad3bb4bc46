/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs: creating, querying, destroying. modify.c has the states.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>

#include "common/soft/events.h"
#include "common/soft/machine.h"
#include "common/soft/map.h"

static struct soft_map qps; /* by number */
static uint32_t last_number; /* within the process's blocks of numbers */

struct soft_qp *soft_qp_find(uint32_t qp_num)
{
	return soft_map_get(&qps, qp_num);
}

void soft_qps_forget(void)
{
	soft_map_clear(&qps);
}

/*
 * Numbers go round, so that one that is gone stays unused for long; when all
 * are taken the process claims one more block of them.
 */
static int add_number(struct soft_qp *qp)
{
	const uint32_t in_block = 1u << SOFT_BLOCK_SHIFT;
	uint32_t held = soft_machine_blocks() * in_block;

	for (uint32_t i = 0; i <= held; i++) {
		uint32_t next = i == held ? held : (last_number + 1) % held;
		uint32_t block = soft_machine_block(next / in_block);
		uint32_t number = block << SOFT_BLOCK_SHIFT | next % in_block;

		if (!block)
			return ENOMEM;
		last_number = next;
		if (soft_map_get(&qps, number))
			continue;
		qp->qp.qp_num = number;
		return soft_map_set(&qps, number, qp);
	}
	return ENOMEM;
}

static int check_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_RAW_PACKET:
		/* Whether it is allowed comes before whether it exists. */
		return soft_capable(CAP_NET_RAW) ? EOPNOTSUPP : EPERM;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

/* rxe_qp_chk_cap(). */
static int check_caps(const struct ibv_qp_cap *cap, bool has_srq)
{
	const struct soft_device_limits *limits = soft_limits();

	if (cap->max_send_wr > limits->max_qp_wr ||
	    cap->max_send_sge > limits->max_sge ||
	    cap->max_inline_data > limits->max_inline)
		return EINVAL;
	if (has_srq)
		return 0;
	if (cap->max_recv_wr > limits->max_qp_wr ||
	    cap->max_recv_sge > limits->max_sge)
		return EINVAL;
	return 0;
}

/*
 * What is given for what was asked: rings of 2^k - 1; the SGEs of a send
 * and its inline data share one room (rxe_init_sq, rxe_init_rq).
 */
static void give_caps(struct ibv_qp_cap *cap, bool has_srq)
{
	const struct soft_device_limits *limits = soft_limits();
	const uint32_t sge = sizeof(struct ibv_sge);
	uint32_t room = cap->max_send_sge * sge;

	if (room < cap->max_inline_data)
		room = cap->max_inline_data;
	cap->max_send_wr = soft_ring_entries(cap->max_send_wr);
	cap->max_send_sge =
		room / sge < limits->max_sge ? room / sge : limits->max_sge;
	cap->max_inline_data =
		room < limits->max_inline ? room : limits->max_inline;
	if (has_srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	} else {
		cap->max_recv_wr = soft_ring_entries(cap->max_recv_wr);
	}
}

/* 0 if `cq` is a CQ of the context, or an errno. */
static int check_cq(const struct ibv_context *context, struct ibv_cq *cq,
		    const char *which)
{
	if (!cq) {
		soft_diagnose("ibv_create_qp: %s is NULL: a QP needs a CQ for "
			      "each of its queues, one CQ may serve both",
			      which);
		return EINVAL;
	}
	if (!soft_find(cq, SOFT_CQ, "ibv_create_qp"))
		return errno;
	return cq->context == context ? 0 : EINVAL;
}

static int check_init(const struct ibv_pd *pd,
		      const struct ibv_qp_init_attr *init)
{
	int err;

	err = check_type(init->qp_type);
	if (err)
		return err;
	err = check_cq(pd->context, init->send_cq, "send_cq");
	if (err)
		return err;
	err = check_cq(pd->context, init->recv_cq, "recv_cq");
	if (err)
		return err;
	/* Of another PD it may be, of another context it may not. */
	if (init->srq) {
		if (!soft_find(init->srq, SOFT_SRQ, "ibv_create_qp"))
			return errno;
		if (init->srq->context != pd->context)
			return EINVAL;
	}
	return check_caps(&init->cap, init->srq);
}

/* Counts the QP in (1) or out (-1) of all that it holds. Under soft_lock. */
static void hold(const struct soft_qp *qp, int count)
{
	((struct soft_pd *)qp->qp.pd)->refs += count;
	((struct soft_cq *)qp->qp.send_cq)->refs += count;
	((struct soft_cq *)qp->qp.recv_cq)->refs += count;
	if (qp->qp.srq)
		((struct soft_srq *)qp->qp.srq)->refs += count;
}

static struct soft_qp *new_qp(struct ibv_pd *pd,
			      const struct ibv_qp_init_attr *init)
{
	struct soft_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->init = *init;
	give_caps(&qp->init.cap, init->srq);
	qp->qp.context = pd->context;
	qp->qp.qp_context = init->qp_context;
	qp->qp.pd = pd;
	qp->qp.send_cq = init->send_cq;
	qp->qp.recv_cq = init->recv_cq;
	qp->qp.srq = init->srq;
	qp->qp.qp_type = init->qp_type;
	qp->qp.state = IBV_QPS_RESET;
	qp->attr.qp_state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	return qp;
}

static void free_qp(struct soft_qp *qp)
{
	soft_wr_fini(qp);
	pthread_cond_destroy(&qp->qp.cond);
	pthread_mutex_destroy(&qp->qp.mutex);
	free(qp);
}

/* Under soft_lock. */
static int enter_qp(struct soft_qp *qp)
{
	struct soft_pd *pd = (struct soft_pd *)qp->qp.pd;
	int err = soft_object_add(&qp->object, SOFT_QP, qp, pd->object.context);

	if (err)
		return err;
	err = add_number(qp);
	if (err)
		soft_object_remove(&qp->object);
	return err;
}

/* The rings, whose memory may be the PD's, and then what it holds. */
static void let_go(struct soft_qp *qp)
{
	soft_wq_fini(&qp->sq);
	soft_wq_fini(&qp->rq);
	soft_enter();
	hold(qp, -1);
	soft_leave();
}

/*
 * The references are taken before soft_lock is let go for the engine, so
 * that nothing that the QP needs goes meanwhile.
 */
static int build_qp(struct soft_qp *qp)
{
	int err = soft_engine_qp_init(qp);

	if (!err) {
		soft_enter();
		err = enter_qp(qp);
		if (err)
			soft_engine_qp_fini(qp);
		soft_leave();
	}
	if (err)
		let_go(qp);
	return err;
}

int soft_qp_create(struct ibv_pd *public, struct ibv_qp_init_attr *init,
		   bool no_self_mcast, struct soft_qp **made)
{
	struct soft_qp *qp = NULL;
	int err;

	soft_enter();
	if (soft_find(public, SOFT_PD, "ibv_create_qp"))
		err = check_init(public, init);
	else
		err = errno;
	if (!err) {
		qp = new_qp(public, init);
		if (qp)
			hold(qp, 1);
		else
			err = ENOMEM;
	}
	soft_leave();
	if (!err) {
		qp->no_self_mcast = no_self_mcast;
		err = build_qp(qp);
	}
	if (err) {
		if (qp)
			free_qp(qp);
		return err;
	}
	init->cap = qp->init.cap;
	*made = qp;
	return 0;
}

SOFT_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
					 struct ibv_qp_init_attr *init)
{
	struct soft_qp *qp;
	int err;

	if (soft_foreign(pd))
		return SOFT_REAL(ibv_create_qp)(pd, init);
	err = soft_qp_create(pd, init, false, &qp);
	if (err) {
		errno = err;
		return NULL;
	}
	return &qp->qp;
}

SOFT_EXPORT int ibv_query_qp(struct ibv_qp *public, struct ibv_qp_attr *attr,
			     int attr_mask, struct ibv_qp_init_attr *init)
{
	struct soft_qp *qp;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_query_qp)(public, attr, attr_mask, init);
	soft_enter();
	qp = soft_find(public, SOFT_QP, "ibv_query_qp");
	if (qp) {
		/* All attributes, asked for or not, as most devices do. */
		*attr = qp->attr;
		attr->cur_qp_state = attr->qp_state;
		attr->cap = qp->init.cap;
		soft_engine_qp_query(qp, attr);
		*init = qp->init;
		if (attr_mask & IBV_QP_STATE)
			public->state = attr->qp_state;
	} else {
		err = errno;
	}
	soft_leave();
	if (err)
		errno = err;
	return err;
}

/* Under soft_lock: it stops working. */
static void leave_qp(struct soft_qp *qp)
{
	soft_map_remove(&qps, qp->qp.qp_num);
	soft_mw_forget_qp(qp);
	soft_mcast_forget_qp(qp);
	soft_engine_qp_fini(qp);
	soft_events_purge(&qp->object.context->async, &qp->object);
}

SOFT_EXPORT int ibv_destroy_qp(struct ibv_qp *public)
{
	struct soft_qp *qp;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_destroy_qp)(public);
	soft_enter();
	qp = soft_find(public, SOFT_QP, "ibv_destroy_qp");
	if (!qp) {
		err = errno;
	} else if (qp->groups) {
		err = EBUSY;
	} else {
		soft_object_dying(&qp->object);
		leave_qp(qp);
	}
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	let_go(qp);
	soft_events_wait_acked(&qp->qp.mutex, &qp->qp.cond,
			       &qp->qp.events_completed,
			       qp->object.async_given);
	soft_enter();
	soft_object_remove(&qp->object);
	soft_leave();
	free_qp(qp);
	return 0;
}

void soft_qp_abandon(struct soft_object *object)
{
	struct soft_qp *qp = object->public;

	leave_qp(qp);
	soft_wq_fini(&qp->sq);
	soft_wq_fini(&qp->rq);
	hold(qp, -1);
	soft_object_remove(object);
}
