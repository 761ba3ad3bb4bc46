/* SPDX-License-Identifier: MIT */
/*
 * What a wrapper of the data path is made of. Inline, and short when nobody
 * steps: only for context.c, qp_ex.c and cq_ex.c.
 */
#ifndef PROBE_DATA_PATH_H
#define PROBE_DATA_PATH_H

#include "probe.h"

/* An argument or answer as a word: an int keeps its sign. */
#define WIDE(value) ((uint64_t)(intptr_t)(value))

/* Nobody steps, and nobody waits for this verb: only count. Then the thread
 * has been entered. */
static inline struct thread *quiet_enter(const struct verb *verb)
{
	struct thread *thread = thread_self;
	enum mode mode;

	if (!LIKELY(thread)) {
		if (probe_mode <= MODE_ENDING)
			return NULL;
		thread = thread_get();
	}
	if (!thread || !LIKELY(thread_enter(thread)))
		return NULL;
	mode = atomic_load_explicit(&probe_mode, memory_order_relaxed);
	if (LIKELY(mode > MODE_STEP &&
		   (mode != MODE_UNTIL_VERB || probe_until != verb)))
		return thread;
	thread_leave(thread);
	return NULL;
}

/* The call is like the last one from there: it has been counted. */
static inline bool quiet_hit(const struct call *call, const struct verb *verb,
			     const void *address, int64_t ret)
{
	struct thread *thread = call->thread;
	const struct hot *hot = quiet_hot(thread, address);
	struct slot *slot = hot->slot;

	if (!LIKELY(hot->address == address) || !LIKELY(slot->verb == verb) ||
	    !LIKELY(slot->object == (const void *)call->word[0]) ||
	    !LIKELY(slot->answer == ret) ||
	    !LIKELY(slot->generation ==
		    atomic_load_explicit(&probe_generation,
					 memory_order_relaxed)))
		return false;
	slot->count++;
	thread->pending = true;
	if (!--thread->tick)
		quiet_clock(thread);
	return true;
}

/*
 * One call: `real` is the device's pointer called, a to c the arguments, ret
 * the variable for its answer.
 */
#define DATA_CALL(ret, name, real, a, b, c)                          \
	do {                                                         \
		struct from from = FROM_HERE;                        \
		struct call call;                                    \
                                                                     \
		call.thread = quiet_enter(&VERB(name));              \
		call.word[0] = WIDE(a);                              \
		call.word[1] = WIDE(b);                              \
		call.word[2] = WIDE(c);                              \
		if (LIKELY(call.thread)) {                           \
			ret = real;                                  \
			if (!LIKELY(quiet_hit(&call, &VERB(name),    \
					      from.address, ret))) { \
				call.verb = &VERB(name);             \
				quiet_answer(&call, from, ret);      \
			}                                            \
			thread_leave(call.thread);                   \
		} else {                                             \
			call_begin(&call, &VERB(name), from);        \
			ret = real;                                  \
			call_end(&call, WIDE(ret));                  \
		}                                                    \
	} while (0)

#define DATA_PATH(name, real, a, b, c)               \
	do {                                         \
		int ret;                             \
                                                     \
		DATA_CALL(ret, name, real, a, b, c); \
		return ret;                          \
	} while (0)

#endif
