/* SPDX-License-Identifier: MIT */
/*
 * Retry and RNR timers. Nearly all are cleared before they are due, and
 * then a plain list of them does: one for each QP.
 */
#include "common/soft/engine.h"

#include <time.h>

#include "common/soft/peers.h"

#define TICKS_LONG 8 /* from here on a timer may be a tick late */

/* Under soft_lock: QPs whose deadline is not 0. */
static struct soft_engine_qp *timers;
/* No deadline is earlier; atomic. Often too early, never too late. */
static uint64_t nearest = UINT64_MAX;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t soft_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* How late CLOCK_MONOTONIC_COARSE may be: it goes on at the kernel's ticks. */
static uint64_t tick_ns(void)
{
	static uint64_t known; /* by __atomic_* */
	uint64_t tick = __atomic_load_n(&known, __ATOMIC_RELAXED);
	struct timespec resolution;

	if (!tick) {
		clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
		tick = (uint64_t)resolution.tv_nsec;
		__atomic_store_n(&known, tick, __ATOMIC_RELAXED);
	}
	return tick;
}

/*
 * Not before now, and at most a tick after it. The precise clock is read in a
 * system call where the processor's counter can't be trusted (most virtual
 * machines without a clock of their own): 10 times what a poll costs.
 */
static uint64_t soon(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE) + tick_ns();
}

void soft_timer_note(uint64_t deadline)
{
	if (deadline < soft_timer_next())
		__atomic_store_n(&nearest, deadline, __ATOMIC_SEQ_CST);
}

void soft_timer_set(struct soft_engine_qp *eq, uint64_t delay_ns)
{
	if (!eq->deadline) {
		eq->next_timer = timers;
		eq->prev_timer = &timers;
		if (timers)
			timers->prev_timer = &eq->next_timer;
		timers = eq;
	}
	eq->deadline =
		delay_ns +
		(delay_ns / TICKS_LONG < tick_ns() ? soft_now() : soon());
	soft_timer_note(eq->deadline);
}

void soft_timer_clear(struct soft_engine_qp *eq)
{
	if (!eq->deadline)
		return;
	*eq->prev_timer = eq->next_timer;
	if (eq->next_timer)
		eq->next_timer->prev_timer = eq->prev_timer;
	eq->deadline = 0;
}

uint64_t soft_timer_next(void)
{
	return __atomic_load_n(&nearest, __ATOMIC_SEQ_CST);
}

bool soft_timer_due(void)
{
	uint64_t next = soft_timer_next();

	return next != UINT64_MAX && next <= soon() && next <= soft_now();
}

static struct soft_engine_qp *first_due(uint64_t now)
{
	for (struct soft_engine_qp *eq = timers; eq; eq = eq->next_timer) {
		if (eq->deadline <= now)
			return eq;
	}
	return NULL;
}

void soft_timers_run(void)
{
	uint64_t now, next = UINT64_MAX;
	struct soft_engine_qp *eq;

	if (!soft_timer_due())
		return;
	now = soft_now();
	soft_peers_tick(now);
	while ((eq = first_due(now))) {
		soft_timer_clear(eq);
		soft_requester_timeout(eq);
	}
	for (eq = timers; eq; eq = eq->next_timer)
		next = eq->deadline < next ? eq->deadline : next;
	__atomic_store_n(&nearest, next, __ATOMIC_SEQ_CST);
	soft_timer_note(soft_peers_next());
}

void soft_timers_forget(void)
{
	timers = NULL;
	nearest = UINT64_MAX;
}

uint64_t soft_rnr_delay(unsigned int code)
{
	/* In units of 10 us, IBTA table 46. */
	static const uint32_t delay[32] = {
		65536, 1,    2,    3,     4,     6,     8,     12,
		16,    24,   32,   48,    64,    96,    128,   192,
		256,   384,  512,  768,   1024,  1536,  2048,  3072,
		4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return (uint64_t)delay[code & 31] * 10000;
}

uint64_t soft_ack_delay(unsigned int timeout)
{
	return UINT64_C(4096) << (timeout & 31);
}
