/* SPDX-License-Identifier: MIT */
/*
 * A wire and a clock in place of the engine's, by the linker's --wrap: what
 * is sent waits here, as records of one packet each, until somebody delivers
 * or drops it; time passes when it's told to. For one source file.
 */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/soft/engine.h"

#define MTU  256
#define WIRE 256 /* packets that it holds; more are lost */
#define MS   UINT64_C(1000000)

#define must(good)                                                         \
	do {                                                               \
		if (!(good)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#good);                                    \
			abort();                                           \
		}                                                          \
	} while (0)

struct piece {
	struct soft_record r;
	uint8_t payload[MTU];
};

static struct {
	bool up;
	unsigned int count;
	struct piece *at[WIRE], pool[WIRE];
	uint64_t time;
} wire;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
void __real_soft_carrier_send(struct soft_packet *packet);
void __wrap_soft_carrier_send(struct soft_packet *packet);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t time = __atomic_load_n(&wire.time, __ATOMIC_RELAXED);

	if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
		return __real_clock_gettime(clock, now);
	now->tv_sec = (time_t)(time / 1000000000);
	now->tv_nsec = (long)(time % 1000000000);
	return 0;
}

static void put_piece(const struct soft_packet *head,
		      const struct soft_packet *p, uint32_t offset)
{
	struct piece *piece;
	struct iovec to;

	if (wire.count == WIRE)
		return;
	piece = wire.at[wire.count++];
	to = (struct iovec){ piece->payload, head->length };
	soft_record_make(&piece->r, head);
	if (head->length)
		soft_gather(&to, 1, p->part, p->parts, offset, head->length);
}

/* A run as its packets. */
void __wrap_soft_carrier_send(struct soft_packet *p)
{
	struct soft_packet head = *p;
	uint32_t offset = 0;

	if (!wire.up) {
		__real_soft_carrier_send(p);
		return;
	}
	do {
		bool last = p->length - offset <= MTU;

		head.length = last ? p->length - offset : MTU;
		if (p->op != SOFT_OP_READ)
			head.count = 1;
		head.last = p->last && last;
		head.has_imm = p->has_imm && last;
		head.invalidate = p->invalidate && last;
		head.solicited = p->solicited && last;
		head.ack_req = p->ack_req && last;
		put_piece(&head, p, offset);
		head.first = false;
		head.psn = (head.psn + head.count) & SOFT_PSN_MASK;
		offset += head.length;
	} while (offset < p->length);
}

static void drop(unsigned int i)
{
	struct piece *piece = wire.at[i];

	wire.count--;
	memmove(&wire.at[i], &wire.at[i + 1],
		(wire.count - i) * sizeof(*wire.at));
	wire.at[wire.count] = piece;
}

static void deliver(unsigned int i)
{
	struct piece piece = *wire.at[i];
	struct soft_packet p;
	struct soft_qp *qp;

	must(soft_record_parse(&piece.r, &p));
	p.part[0] = (struct iovec){ piece.payload, p.length };
	p.parts = p.length > 0;
	qp = soft_qp_find(p.dest_qpn);
	must(qp);
	soft_receive(qp, &p);
}

static void deliver_first(void)
{
	deliver(0);
	drop(0);
}

static void pass_time(uint64_t by)
{
	__atomic_fetch_add(&wire.time, by, __ATOMIC_RELAXED);
	soft_timers_run();
	soft_engine_catch_up();
}

#endif
