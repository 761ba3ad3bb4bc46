/* SPDX-License-Identifier: MIT */
/*
 * The data path, counted. While nobody steps, an answer that came before at
 * this place, on this object, only adds one to a slot; slots are reported
 * when something else happens on this thread, or every so often. While the
 * program is stepped, the same is done with empty polls.
 *
 * A slot is its thread's own: no lock.
 */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE     100 /* ms from a count to its report */
#define PATIENCE_MAX 1600
#define BODY_MAX     8192
#define WAYS         4 /* slots that an answer may be in */

static size_t hash(const void *pointer)
{
	uintptr_t bits = (uintptr_t)pointer;

	return (bits >> 2) ^ (bits >> 7) ^ (bits >> 13);
}

static const struct place *hinted(struct thread *thread, const void *address)
{
	size_t i = hash(address) % HINTS;

	if (thread->hint[i].address != address) {
		thread->hint[i].place = place_find(address);
		thread->hint[i].address = address;
	}
	return thread->hint[i].place;
}

const struct place *quiet_place(struct thread *thread, struct from from)
{
	const struct place *place = hinted(thread, from.address);

	if (LIKELY(!place->header))
		return place;
	if (place->frame_pointer)
		return hinted(thread, from.frame[1]);
	return place_of(from);
}

static bool matches(const struct slot *slot, const struct verb *verb,
		    const struct place *place, const void *object,
		    int64_t answer)
{
	return slot->place == place && slot->verb == verb &&
	       slot->object == object && slot->answer == answer &&
	       slot->generation == atomic_load_explicit(&probe_generation,
							memory_order_relaxed);
}

/* The slot of this answer; NULL: it has none. */
static inline struct slot *find(struct thread *thread, const struct verb *verb,
				const struct place *place, const void *object,
				int64_t answer)
{
	size_t start = hash(place) + hash(object) + (size_t)answer;

	for (size_t i = start; i < start + WAYS; i++) {
		struct slot *slot = &thread->slot[i % SLOTS];

		if (LIKELY(matches(slot, verb, place, object, answer)))
			return slot;
	}
	return NULL;
}

/* Where slots change their meaning. */
static void forget_hot(struct thread *thread)
{
	memset(thread->hot, 0, sizeof(thread->hot));
}

/* A slot to put the answer in: an unused one, else the longest there. */
static struct slot *vacate(struct thread *thread, const struct place *place,
			   const void *object, int64_t answer)
{
	size_t start = hash(place) + hash(object) + (size_t)answer;
	struct slot *found = NULL;

	for (size_t i = start; i < start + WAYS; i++) {
		struct slot *slot = &thread->slot[i % SLOTS];

		if (!slot->place || slot->generation != probe_generation) {
			found = slot;
			break;
		}
		if (!found || slot->seq < found->seq)
			found = slot;
	}
	if (found->count)
		quiet_flush(thread, false);
	return found;
}

/* --- reports -------------------------------------------------------------- */

static void report(struct thread *thread, struct slot *slot)
{
	struct text text = {
		.at = thread->line,
		.size = sizeof(thread->line),
	};

	text_add(&text,
		 "{\"v\":%d,\"ev\":\"ret\",\"seq\":%lu,\"tid\":%d,"
		 "\"call\":\"%s\",%s,\"count\":%llu,\"at\":%s}\n",
		 TRACE_VERSION, slot->seq, (int)thread->tid, slot->verb->name,
		 slot->body, (unsigned long long)slot->count, slot->place->at);
	slot->count = 0;
	channel_send(text.at, text.used);
}

/* The slot with the lowest seq that has something to report. */
static struct slot *oldest(struct thread *thread)
{
	struct slot *found = NULL;

	for (struct slot *s = thread->slot; s < thread->slot + SLOTS; s++)
		if (s->count && (!found || s->seq < found->seq))
			found = s;
	return found;
}

void quiet_flush(struct thread *thread, bool forget)
{
	struct slot *slot;

	while (thread->pending && (slot = oldest(thread)))
		report(thread, slot);
	thread->pending = false;
	if (!forget)
		return;
	thread->patience = PATIENCE;
	forget_hot(thread);
	for (int i = 0; i < SLOTS; i++)
		thread->slot[i].place = NULL;
}

/* How often the clock is read follows the pace of the calls. */
void quiet_clock(struct thread *thread)
{
	uint64_t now = channel_ms();

	if (now - thread->slept > 8)
		thread->ticks = thread->ticks > 1 ? thread->ticks / 2 : 1;
	else if (thread->ticks < 256)
		thread->ticks *= 2;
	thread->tick = thread->ticks;
	thread->slept = now;
	channel_listen();
	if (!thread->pending || now - thread->since < thread->patience)
		return;
	quiet_flush(thread, false);
	thread->since = now;
	if (thread->patience < PATIENCE_MAX)
		thread->patience *= 2;
}

static inline void count(struct thread *thread, struct slot *slot)
{
	slot->count++;
	thread->pending = true;
	if (!--thread->tick)
		quiet_clock(thread);
}

/* Keeps an answer to be counted on; false: it is too big to keep. */
static bool keep(struct thread *thread, struct call *call, const char *body,
		 size_t length, int64_t answer)
{
	struct slot *slot = vacate(thread, call->place,
				   (const void *)call->word[0], answer);
	char *copy = length < BODY_MAX ? realloc(slot->body, length + 1) : NULL;

	if (!copy)
		return false;
	memcpy(copy, body, length + 1);
	forget_hot(thread);
	if (!thread->pending)
		thread->since = channel_ms();
	if (!thread->patience)
		thread->patience = PATIENCE;
	*slot = (struct slot){
		.place = call->place,
		.verb = call->verb,
		.object = (const void *)call->word[0],
		.answer = answer,
		.count = 1,
		.seq = call->seq,
		.generation = probe_generation,
		.body = copy,
	};
	thread->pending = true;
	return true;
}

static void once(struct thread *thread, struct call *call, const char *body)
{
	struct slot alone = {
		.place = call->place,
		.verb = call->verb,
		.count = 1,
		.seq = call->seq,
		.body = (char *)body,
	};

	quiet_flush(thread, false);
	report(thread, &alone);
}

/* --- while nobody steps --------------------------------------------------- */

/* Has this answer completions with it? */
static inline bool completes(const struct verb *verb, int64_t ret)
{
	return (verb == &VERB(ibv_poll_cq) && ret > 0) ||
	       (verb->answer == ANSWER_POLL && ret == 0);
}

bool quiet_is_error(const struct call *call, int64_t ret)
{
	const struct ibv_cq_ex *cq = (const void *)call->word[0];
	const struct ibv_wc *wc = (const void *)call->word[2];

	if (!completes(call->verb, ret))
		return false;
	if (call->verb != &VERB(ibv_poll_cq))
		return cq->status != IBV_WC_SUCCESS;
	for (int64_t i = 0; i < ret; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			return true;
	return false;
}

/* The first of its kind, or one that is to be seen on its own. */
static void first(struct thread *thread, struct call *call, int64_t ret,
		  bool alone)
{
	struct text text = { .at = thread->out, .size = sizeof(thread->out) };
	int failure = call_failure(call->verb, (uint64_t)ret, errno);

	call->seq = channel_seq();
	call_args(call);
	call_body(call, (uint64_t)ret, errno, &text);
	/* Under "until fail" a refusal is never one of many. */
	if (failure && probe_mode == MODE_UNTIL_FAIL)
		alone = true;
	if (alone || !keep(thread, call, text.at, text.used, ret))
		once(thread, call, text.at);
	if (alone)
		call_failed();
}

void quiet_answer(struct call *call, struct from from, int64_t ret)
{
	struct thread *thread = call->thread;
	const void *object = (const void *)call->word[0];
	bool alone = quiet_is_error(call, ret);
	struct slot *slot;
	int err;

	call->place = quiet_place(thread, from);
	slot = find(thread, call->verb, call->place, object, ret);
	if (LIKELY(slot && !alone)) {
		/* Next time without looking further, if that is all. */
		if (!call->place->header &&
		    call->place->address == from.address &&
		    !completes(call->verb, ret))
			*quiet_hot(thread, from.address) =
				(struct hot){ from.address, slot };
		count(thread, slot);
		return;
	}
	err = errno;
	first(thread, call, ret, alone);
	errno = err;
}

/* --- while the program is stepped ----------------------------------------- */

bool quiet_known(struct thread *thread, const struct verb *verb,
		 const struct place *place, const void *object)
{
	return find(thread, verb, place, object, verb->empty) != NULL;
}

void quiet_poll(struct thread *thread, struct call *call)
{
	int64_t empty = call->verb->empty;
	struct slot *slot = find(thread, call->verb, call->place,
				 (const void *)call->word[0], empty);
	struct text text = { .at = thread->out, .size = sizeof(thread->out) };

	if (call->quiet && slot) {
		count(thread, slot);
		return;
	}
	if (call->quiet) /* the mode changed while it was done */
		call->seq = channel_seq();
	call_body(call, (uint64_t)empty, 0, &text);
	if (!keep(thread, call, text.at, text.used, empty))
		once(thread, call, text.at);
}
