/* SPDX-License-Identifier: MIT */
/*
 * What is sent on one direction of a QP, message after message, and each of
 * its bytes. Both ends follow the same plan, so that nothing about a message
 * has to be told: who receives it knows what it is, where it belongs and what
 * it must hold.
 *
 * Each direction has an area of AREA bytes at either end, used as a ring: a
 * message has its place in both at the same offset. A WRITE is followed by a
 * small message that a receive completes for, which says that it's there
 * (IBTA o9-20); so is the plan's end.
 */
#ifndef SOAK_PLAN_H
#define SOAK_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define AREA  65536u
#define SMALL 256u
#define MOST  (AREA - 2 * SMALL) /* so that a small one fits behind any */

enum kind {
	SEND,
	SEND_IMM,
	WRITE_IMM,
	WRITE,
	READ,
	FETCH_ADD,
	CMP_SWAP,
	KINDS
};

static const char *const kind_name[KINDS] = {
	"SEND", "SEND_WITH_IMM", "WRITE_WITH_IMM", "WRITE",
	"READ", "FETCH_ADD",     "CMP_SWAP",
};

struct message {
	enum kind kind;
	uint32_t size;
	uint64_t number;
	uint64_t start, end; /* of its place; never wraps */
	uint64_t seed;       /* of its bytes */
};

struct plan {
	uint64_t seed, number, total, at;
	bool after_write;
};

/* splitmix64's output function */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline uint64_t word_of(const struct message *m, uint64_t index)
{
	return mix(m->seed + index * UINT64_C(0x9e3779b97f4a7c15));
}

static inline bool takes_receive(enum kind kind)
{
	return kind <= WRITE_IMM;
}

static inline bool is_atomic(enum kind kind)
{
	return kind >= FETCH_ADD;
}

/* Mostly small; few are as large as may be. */
static inline uint32_t draw_size(uint64_t random)
{
	uint32_t most = random % 256 == 0  ? MOST
			: random % 16 == 0 ? 4096
					   : SMALL;

	return (uint32_t)((random >> 32) % (most + 1));
}

static inline enum kind draw_kind(uint64_t random)
{
	static const uint8_t of_32[] = { [SEND] = 9,
					 [SEND_IMM] = 14,
					 [WRITE_IMM] = 19,
					 [WRITE] = 26,
					 [READ] = 31 };
	enum kind kind = SEND;

	while (kind < FETCH_ADD && random % 32 >= of_32[kind])
		kind++;
	return kind < FETCH_ADD ? kind : random & 32 ? FETCH_ADD : CMP_SWAP;
}

/* The next message. There must be one: number < total. */
static inline struct message plan_next(struct plan *plan)
{
	uint64_t random = mix(plan->seed + mix(plan->number));
	bool last = plan->number + 1 == plan->total;
	struct message m = {
		.kind = draw_kind(random >> 8),
		.size = draw_size(random >> 16),
		.number = plan->number++,
		.seed = mix(random),
	};

	if (plan->after_write || last) {
		m.kind = (enum kind)((random >> 8) % (WRITE_IMM + 1));
		m.size %= SMALL + 1;
	}
	if (is_atomic(m.kind))
		m.size = 8;
	plan->after_write = m.kind == WRITE;
	m.start = plan->at;
	if (m.start % AREA + m.size > AREA)
		m.start += AREA - m.start % AREA;
	m.end = m.start + (m.size + 7) / 8 * 8;
	plan->at = m.end;
	return m;
}

static inline void fill(const struct message *m, char *at)
{
	for (uint32_t i = 0; i < m->size; i += 8) {
		uint64_t word = word_of(m, i / 8);
		uint32_t left = m->size - i;

		memcpy(at + i, &word, left < 8 ? left : 8);
	}
}

/* The offset of the first wrong byte, or -1. */
static inline int64_t first_wrong(const struct message *m, const char *at)
{
	for (uint32_t i = 0; i < m->size; i += 8) {
		uint64_t word = word_of(m, i / 8);
		uint32_t left = m->size - i;

		if (!memcmp(at + i, &word, left < 8 ? left : 8))
			continue;
		while (at[i] == (char)(word & 0xff)) {
			word >>= 8;
			i++;
		}
		return i;
	}
	return -1;
}

/* An atomic's operand, and what it must leave where its seed's word stood. */
static inline uint64_t operand(const struct message *m)
{
	return word_of(m, 1);
}

/* Every other one compares with something else, and must change nothing. */
static inline uint64_t comparand(const struct message *m)
{
	return word_of(m, m->seed & 1 ? 2 : 0);
}

static inline uint64_t left_by(const struct message *m)
{
	uint64_t before = word_of(m, 0);

	if (m->kind == FETCH_ADD)
		return before + operand(m);
	return comparand(m) == before ? operand(m) : before;
}

#endif
