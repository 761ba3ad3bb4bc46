/* SPDX-License-Identifier: MIT */
/*
 * How the engine's thread rests: it sleeps until a doorbell, another process
 * or a timer wakes it, all through the futex in our home (machine.h); or naps
 * while a program polls, which does the work itself then.
 */
#include "common/soft/engine.h"

#include <sched.h>

#include "common/soft/machine.h"

#define LOOKS    30 /* some 20 us on an idle machine */
#define PATIENCE 4  /* looks without a poll between them */
#define LYING    3  /* naps in a row over which work was left lying */

/* Nanoseconds. */
#define NAP_LEAST  50000     /* then twice that ... */
#define NAP_MOST   1000000   /* ... up to this */
#define A_POLL     20000     /* who polls less often does other things */
#define WARY       20000000  /* so long we don't nap */
#define LONG_YIELD 100000    /* somebody spins on our processor ... */
#define CROWDED    200000000 /* ... and we don't yield for so long */

/* One thread rests, and all others look at it; by __atomic_*. */
static struct {
	uint32_t polls;       /* of programs that do nothing else */
	uint32_t napping;     /* a futex */
	uint64_t sleep_until; /* 0: the thread is awake */
} rest;

void soft_rest_polled(void)
{
	__atomic_fetch_add(&rest.polls, 1, __ATOMIC_RELAXED);
}

void soft_rest_wake(void)
{
	struct soft_home *home = soft_machine_home();

	if (home)
		soft_home_wake(home);
}

void soft_rest_deadline(void)
{
	if (soft_timer_next() <
	    __atomic_load_n(&rest.sleep_until, __ATOMIC_SEQ_CST))
		soft_rest_wake();
}

void soft_rest_end_nap(void)
{
	if (__atomic_load_n(&rest.napping, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&rest.napping, 0, __ATOMIC_SEQ_CST))
		soft_futex_wake(&rest.napping);
}

void soft_rest_after_fork(void)
{
	rest.napping = 0;
	rest.sleep_until = 0;
}

/* True: there was a poll since the last look. */
static bool look(struct soft_sense *sense)
{
	uint32_t polls = __atomic_load_n(&rest.polls, __ATOMIC_RELAXED);
	bool polled = polls != sense->polls;

	sense->polls = polls;
	sense->still = polled ? 0 : sense->still + 1;
	return polled;
}

/* Whether a program has polled all the time since. */
static bool polled_since(uint32_t polls, uint64_t when)
{
	return __atomic_load_n(&rest.polls, __ATOMIC_RELAXED) - polls >
	       (soft_now() - when) / A_POLL;
}

/*
 * Somebody polls and does our work. Until that ends, or it arms a CQ, which
 * says that it is going to wait.
 */
static void nap(struct soft_sense *sense)
{
	uint32_t ns = NAP_LEAST / 2;
	uint64_t start;

	if (sense->napped)
		sense->lying = 0;
	sense->napped = true;
	do {
		ns = ns < NAP_MOST ? 2 * ns : NAP_MOST;
		look(sense);
		start = soft_now();
		__atomic_store_n(&rest.napping, 1, __ATOMIC_SEQ_CST);
		if (!soft_engine_stopping())
			soft_futex_wait(&rest.napping, 1, ns);
		if (!__atomic_exchange_n(&rest.napping, 0, __ATOMIC_SEQ_CST))
			return;
	} while (!soft_engine_stopping() && polled_since(sense->polls, start));
}

static void sleep_well(void)
{
	struct soft_home *home = soft_machine_home();
	uint64_t until = soft_timer_next(), now;

	__atomic_store_n(&home->asleep, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&rest.sleep_until, until, __ATOMIC_SEQ_CST);
	now = until == UINT64_MAX ? 0 : soft_now();
	if (!soft_engine_work_waits() && !soft_engine_stopping() &&
	    soft_timer_next() >= until && now < until)
		soft_futex_wait(&home->asleep, 1,
				until == UINT64_MAX ? -1
						    : (int64_t)(until - now));
	__atomic_store_n(&rest.sleep_until, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&home->asleep, 0, __ATOMIC_SEQ_CST);
}

/* A time of a sense, 0 for none. */
static bool is_to_come(uint64_t when)
{
	return when && soft_now() < when;
}

/* Where somebody spins on our processor, being woken is quicker. */
static void let_others_run(struct soft_sense *sense)
{
	uint64_t start = soft_now(), now;

	sched_yield();
	now = soft_now();
	if (now - start >= LONG_YIELD && !polled_since(sense->polls, start))
		sense->crowded_until = now + CROWDED;
}

/* Work waits. A program that polls would take it at once: is it for us? */
static bool take_it(struct soft_sense *sense, bool wary)
{
	if (sense->still < (wary ? 1 : PATIENCE) &&
	    !is_to_come(sense->crowded_until))
		return false;
	if (sense->napped && ++sense->lying == LYING) {
		sense->wary_until = soft_now() + WARY;
		sense->lying = 0;
	}
	sense->napped = false;
	return true;
}

/*
 * A short look round, letting others run, spares both sides a sleep and a
 * wake-up. Who polls is trusted to go on and to do the work, and then we nap.
 * But some poll now and then and look at their memory meanwhile, which brings
 * nothing about: work that was left lying makes wary.
 */
bool soft_rest(struct soft_sense *sense)
{
	bool wary = is_to_come(sense->wary_until);
	unsigned int polled = 0;
	uint64_t start;

	for (int i = 0; i < LOOKS && (wary || !polled); i++) {
		if (soft_engine_stopping())
			return true;
		if (soft_engine_work_waits() && take_it(sense, wary))
			return true;
		if (is_to_come(sense->crowded_until))
			break;
		let_others_run(sense);
		polled += look(sense);
	}
	if (wary || !polled) {
		start = soft_now();
		sleep_well();
		if (wary || !polled_since(sense->polls, start))
			return true;
	}
	nap(sense);
	return false;
}
