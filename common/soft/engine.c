/* SPDX-License-Identifier: MIT */
/*
 * The engine: a thread in a process that plays the hardware, and whoever
 * calls helps it. Posting does the work at once if nobody else is at work;
 * polling an empty CQ takes what has arrived, runs timers and goes on with
 * what was left over. So a program that polls waits for no other thread, and
 * the thread looks only from time to time whether it still does.
 *
 * Without such a program the thread does everything: it sleeps until a
 * doorbell, another process or the next timer wakes it, all through the
 * futex in our home (machine.h). All work is done under soft_lock, a burst
 * at a time. The doorbell's lock is taken last of all and held for a few
 * instructions.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "common/soft/machine.h"
#include "common/soft/peers.h"

#define BURSTS    64 /* of catching up at most */
#define QPS_A_GO  8
#define BUSY_POLL 8 /* empty polls in a row, without arming the CQ */
#define YIELD     8 /* every so many empty polls others may run */

/* One thread serves the process, as one card serves the machine. */
static struct {
	pthread_mutex_t start_lock; /* starting and ending; before soft_lock */
	bool started;
	pthread_t thread;

	pthread_mutex_t lock; /* the doorbell's; QPs with work */
	struct soft_engine_qp *first, *last;

	/* By __atomic_*, so that nobody waits to look at them. */
	bool stop;
	unsigned int waiting; /* verbs that want soft_lock */
} engine = {
	.start_lock = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static _Thread_local unsigned int empty_polls; /* since a CQ was armed */

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

/* --- the doorbell ------------------------------------------------------- */

/* Written under the doorbell's lock, looked at without. */
static void set_first(struct soft_engine_qp *eq)
{
	__atomic_store_n(&engine.first, eq, __ATOMIC_SEQ_CST);
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
	}
	pthread_mutex_unlock(&engine.lock);
	soft_rest_wake();
}

static struct soft_engine_qp *next_active(void)
{
	struct soft_engine_qp *eq;

	if (!__atomic_load_n(&engine.first, __ATOMIC_SEQ_CST))
		return NULL;
	pthread_mutex_lock(&engine.lock);
	eq = engine.first;
	if (eq) {
		set_first(eq->next_active);
		eq->active = false;
	}
	pthread_mutex_unlock(&engine.lock);
	return eq;
}

void soft_unring(struct soft_engine_qp *eq)
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

/* --- work --------------------------------------------------------------- */

bool soft_engine_stopping(void)
{
	return __atomic_load_n(&engine.stop, __ATOMIC_SEQ_CST);
}

bool soft_engine_work_waits(void)
{
	return __atomic_load_n(&engine.first, __ATOMIC_SEQ_CST) ||
	       soft_peers_pending();
}

/* A burst of whatever there is. Under soft_lock. */
static void work(void)
{
	struct soft_engine_qp *eq;

	soft_mapped_fresh();
	soft_peers_poll();
	/* Only now: an answer that is here already is not overdue. */
	soft_timers_run();
	for (int i = 0; i < QPS_A_GO && (eq = next_active()); i++)
		if (soft_qp_run(eq))
			soft_ring(eq);
}

void soft_engine_catch_up(void)
{
	soft_mapped_fresh();
	for (int i = 0; i < BURSTS; i++) {
		struct soft_engine_qp *eq = next_active();

		if (!eq)
			return;
		if (soft_qp_run(eq))
			soft_ring(eq);
	}
}

/*
 * For a program's thread: soft_lock if it is free and no verb waits for it.
 * Cancelling the thread waits until it is given back.
 */
static bool try_enter(int *cancel)
{
	if (__atomic_load_n(&engine.waiting, __ATOMIC_RELAXED))
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	if (!pthread_mutex_trylock(&soft_lock))
		return true;
	pthread_setcancelstate(*cancel, NULL);
	return false;
}

static void leave(int cancel)
{
	soft_rest_deadline();
	pthread_mutex_unlock(&soft_lock);
	pthread_setcancelstate(cancel, NULL);
}

void soft_posted(struct soft_engine_qp *eq)
{
	int cancel;

	if (!try_enter(&cancel)) {
		soft_ring(eq);
		soft_rest_end_nap();
		return;
	}
	soft_mapped_fresh();
	if (soft_qp_run(eq))
		soft_ring(eq);
	leave(cancel);
}

bool soft_polled_nothing(void)
{
	bool waits;
	int cancel;

	empty_polls++;
	if (empty_polls >= BUSY_POLL)
		soft_rest_polled();
	waits = soft_engine_work_waits() || soft_timer_due();
	if (waits && try_enter(&cancel)) {
		work();
		leave(cancel);
		return true;
	}
	if (waits || empty_polls % YIELD == 0)
		sched_yield();
	return false;
}

void soft_armed(void)
{
	empty_polls = 0;
	soft_rest_end_nap();
}

/* --- the thread --------------------------------------------------------- */

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
	struct soft_sense sense = { 0 };

	(void)unused;
	while (!soft_engine_stopping()) {
		if (!soft_rest(&sense))
			continue;
		make_way();
		pthread_mutex_lock(&soft_lock);
		work();
		pthread_mutex_unlock(&soft_lock);
	}
	return NULL;
}

int soft_engine_start(void)
{
	sigset_t all, before;
	int err;

	pthread_mutex_lock(&engine.start_lock);
	if (engine.started)
		return 0;
	engine.stop = false;
	soft_mapped_start();
	/* Signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&engine.thread, NULL, engine_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		soft_mapped_stop();
	soft_machine_serve(!err);
	engine.started = !err;
	return err;
}

void soft_engine_started(void)
{
	pthread_mutex_unlock(&engine.start_lock);
}

static void end(void)
{
	soft_machine_serve(false);
	__atomic_store_n(&engine.stop, true, __ATOMIC_SEQ_CST);
	soft_rest_wake();
	soft_rest_end_nap();
	pthread_join(engine.thread, NULL);
	soft_mapped_stop();
	engine.started = false;
}

void soft_engine_rest(void)
{
	bool idle;

	pthread_mutex_lock(&engine.start_lock);
	soft_enter();
	idle = !soft_engine_qps();
	soft_leave();
	if (engine.started && idle)
		end();
	pthread_mutex_unlock(&engine.start_lock);
}

/*
 * exit() may have been called by a signal's handler, above a poll that holds
 * soft_lock: then all is left to the kernel, as when a process is killed.
 */
static bool lock_in_time(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	return !pthread_mutex_timedlock(&soft_lock, &until);
}

/* A program that exits with QPs alive: nothing runs on in its memory. */
__attribute__((destructor)) static void end_at_exit(void)
{
	if (!lock_in_time())
		return;
	pthread_mutex_unlock(&soft_lock);
	pthread_mutex_lock(&engine.start_lock);
	if (engine.started)
		end();
	pthread_mutex_unlock(&engine.start_lock);
	soft_enter();
	soft_machine_end();
	soft_leave();
}

void soft_engine_after_fork(void)
{
	pthread_mutex_init(&engine.start_lock, NULL);
	pthread_mutex_init(&engine.lock, NULL);
	engine.started = engine.stop = false;
	engine.first = engine.last = NULL;
	engine.waiting = 0;
	soft_rest_after_fork();
	soft_timers_forget();
	soft_engine_qps_forget();
	soft_mapped_stop();
	soft_peers_abandon();
	soft_machine_forget();
}
