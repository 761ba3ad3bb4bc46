/* SPDX-License-Identifier: MIT */
/*
 * The engine: one thread in a process that plays the hardware. Posting rings
 * a doorbell, which puts the QP on the list of those with work; the thread
 * takes one after the other and gives each a burst under soft_lock. With
 * nothing to do it sleeps until a doorbell or the next timer.
 *
 * The doorbell's lock is taken last of all and held for a few instructions.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define BURSTS 64 /* that a verb may wait for */
#define LOOKS  30 /* some 20 us on an idle machine */

/* One thread serves the process, as one card serves the machine. */
static struct {
	pthread_mutex_t start_lock; /* starting and ending; before soft_lock */
	bool started;
	pthread_t thread;

	pthread_mutex_t lock; /* the doorbell's; the fields below */
	pthread_cond_t bell;
	struct soft_engine_qp *first, *last; /* QPs with work */
	bool asleep, stop;

	struct soft_engine_qp *qps; /* all; under soft_lock */
	unsigned int waiting;       /* verbs that want soft_lock; atomic */
} engine = {
	.start_lock = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

void soft_enter(void)
{
	__atomic_fetch_add(&engine.waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&soft_lock);
	__atomic_fetch_sub(&engine.waiting, 1, __ATOMIC_RELAXED);
}

void soft_leave(void)
{
	pthread_mutex_unlock(&soft_lock);
}

struct soft_engine_qp *soft_engine_qps(void)
{
	return engine.qps;
}

/* Written under the doorbell's lock, looked at without. */
static void set_first(struct soft_engine_qp *eq)
{
	__atomic_store_n(&engine.first, eq, __ATOMIC_RELAXED);
}

void soft_ring(struct soft_engine_qp *eq)
{
	pthread_mutex_lock(&engine.lock);
	if (!eq->active) {
		eq->active = true;
		eq->next_active = NULL;
		if (engine.first)
			engine.last->next_active = eq;
		else
			set_first(eq);
		engine.last = eq;
		if (engine.asleep)
			pthread_cond_signal(&engine.bell);
	}
	pthread_mutex_unlock(&engine.lock);
}

static struct soft_engine_qp *next_active(void)
{
	struct soft_engine_qp *eq;

	pthread_mutex_lock(&engine.lock);
	eq = engine.first;
	if (eq) {
		set_first(eq->next_active);
		eq->active = false;
	}
	pthread_mutex_unlock(&engine.lock);
	return eq;
}

static void forget_active(struct soft_engine_qp *eq)
{
	struct soft_engine_qp *before = NULL;

	pthread_mutex_lock(&engine.lock);
	if (eq->active && engine.first == eq) {
		set_first(eq->next_active);
	} else if (eq->active) {
		before = engine.first;
		while (before->next_active != eq)
			before = before->next_active;
		before->next_active = eq->next_active;
	}
	if (engine.last == eq)
		engine.last = before;
	pthread_mutex_unlock(&engine.lock);
}

/*
 * Work often comes right after work: a short look round, letting others run,
 * spares both sides a sleep and a wake-up.
 */
static void look_round(void)
{
	for (int i = 0; i < LOOKS; i++) {
		if (__atomic_load_n(&engine.first, __ATOMIC_RELAXED))
			return;
		sched_yield();
	}
}

/* Until there is work, or `deadline` has come. False: the thread shall end. */
static bool wait_for_work(uint64_t deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / 1000000000),
		.tv_nsec = (long)(deadline % 1000000000),
	};
	bool go_on;

	look_round();
	pthread_mutex_lock(&engine.lock);
	engine.asleep = true;
	while (!engine.first && !engine.stop) {
		if (deadline == UINT64_MAX)
			pthread_cond_wait(&engine.bell, &engine.lock);
		else if (pthread_cond_timedwait(&engine.bell, &engine.lock,
						&until) == ETIMEDOUT)
			break;
	}
	engine.asleep = false;
	go_on = !engine.stop;
	pthread_mutex_unlock(&engine.lock);
	return go_on;
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

/* True: it has more to do. */
static bool run(struct soft_engine_qp *eq)
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

void soft_engine_catch_up(void)
{
	for (int i = 0; i < BURSTS; i++) {
		struct soft_engine_qp *eq = next_active();

		if (!eq)
			return;
		if (run(eq))
			soft_ring(eq);
	}
}

/* Verbs waiting for soft_lock get it now: a mutex alone is not fair. */
static void make_way(void)
{
	for (int i = 0; i < 1000; i++) {
		if (!__atomic_load_n(&engine.waiting, __ATOMIC_RELAXED))
			return;
		sched_yield();
	}
}

static void *engine_main(void *unused)
{
	uint64_t deadline = UINT64_MAX;
	struct soft_engine_qp *eq;

	(void)unused;
	while (wait_for_work(deadline)) {
		make_way();
		pthread_mutex_lock(&soft_lock);
		soft_timers_run();
		eq = next_active();
		if (eq && run(eq))
			soft_ring(eq);
		deadline = soft_timer_next();
		pthread_mutex_unlock(&soft_lock);
	}
	return NULL;
}

static int start(void)
{
	pthread_condattr_t monotonic;
	sigset_t all, before;
	int err;

	if (engine.started)
		return 0;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&engine.bell, &monotonic);
	pthread_condattr_destroy(&monotonic);
	engine.stop = false;
	soft_copy_start();
	/* Signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&engine.thread, NULL, engine_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		pthread_cond_destroy(&engine.bell);
	engine.started = !err;
	return err;
}

static void end(void)
{
	pthread_mutex_lock(&engine.lock);
	engine.stop = true;
	pthread_cond_signal(&engine.bell);
	pthread_mutex_unlock(&engine.lock);
	pthread_join(engine.thread, NULL);
	pthread_cond_destroy(&engine.bell);
	engine.started = false;
}

void soft_engine_rest(void)
{
	bool idle;

	pthread_mutex_lock(&engine.start_lock);
	soft_enter();
	idle = !engine.qps;
	soft_leave();
	if (engine.started && idle)
		end();
	pthread_mutex_unlock(&engine.start_lock);
}

/* A program that exits with QPs alive: nothing runs on in its memory. */
__attribute__((destructor)) static void end_at_exit(void)
{
	pthread_mutex_lock(&engine.start_lock);
	if (engine.started)
		end();
	pthread_mutex_unlock(&engine.start_lock);
}

void soft_engine_after_fork(void)
{
	pthread_mutex_init(&engine.start_lock, NULL);
	pthread_mutex_init(&engine.lock, NULL);
	engine.started = engine.asleep = engine.stop = false;
	engine.first = engine.last = engine.qps = NULL;
	engine.waiting = 0;
	soft_timers_forget();
}

static int init_queues(struct soft_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	bool srq = qp->init.srq;
	int err;

	err = soft_wq_init(&qp->sq, cap->max_send_wr, cap->max_send_sge,
			   cap->max_inline_data);
	if (err)
		return err;
	err = soft_wq_init(&qp->rq, srq ? 0 : cap->max_recv_wr,
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

	pthread_mutex_lock(&engine.start_lock);
	err = start();
	if (err)
		goto fini_queues;
	soft_enter();
	qp->engine = eq;
	eq->next = engine.qps;
	if (eq->next)
		eq->next->prev = eq;
	engine.qps = eq;
	soft_leave();
	pthread_mutex_unlock(&engine.start_lock);
	return 0;
fini_queues:
	pthread_mutex_unlock(&engine.start_lock);
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
	forget_active(eq);
	if (eq->prev)
		eq->prev->next = eq->next;
	else
		engine.qps = eq->next;
	if (eq->next)
		eq->next->prev = eq->prev;
	soft_wq_fini(&qp->sq);
	soft_wq_fini(&qp->rq);
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
