/* SPDX-License-Identifier: MIT */
/*
 * Retry and RNR timers. Inside a process answers come at once, so that few
 * timers ever run: a plain list of them does. One timer for each QP.
 */
#include "common/soft/engine.h"

#include <time.h>

/* Under soft_lock: QPs whose deadline is not 0. */
static struct soft_engine_qp *timers;

uint64_t soft_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void soft_timer_set(struct soft_engine_qp *eq, uint64_t delay_ns)
{
	if (!eq->deadline) {
		eq->next_timer = timers;
		timers = eq;
	}
	eq->deadline = soft_now() + delay_ns;
}

void soft_timer_clear(struct soft_engine_qp *eq)
{
	struct soft_engine_qp **at = &timers;

	if (!eq->deadline)
		return;
	while (*at != eq)
		at = &(*at)->next_timer;
	*at = eq->next_timer;
	eq->deadline = 0;
}

uint64_t soft_timer_next(void)
{
	uint64_t next = UINT64_MAX;

	for (struct soft_engine_qp *eq = timers; eq; eq = eq->next_timer) {
		if (eq->deadline < next)
			next = eq->deadline;
	}
	return next;
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
	uint64_t now;
	struct soft_engine_qp *eq;

	if (!timers)
		return;
	now = soft_now();
	while ((eq = first_due(now))) {
		soft_timer_clear(eq);
		soft_requester_timeout(eq);
	}
}

void soft_timers_forget(void)
{
	timers = NULL;
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
