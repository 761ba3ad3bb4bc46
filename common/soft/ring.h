/* SPDX-License-Identifier: MIT */
/*
 * A ring: packets on their way from one process to one other, in shared
 * memory. It has two lanes, one for requests and one for responses. The
 * sender makes its file, the receiver maps it and takes the name away.
 *
 * A packet in a lane is a record, headers as on the wire but unpacked, and
 * its payload after it. One side puts, one takes; what the other side wrote
 * is copied once and checked before it is used.
 */
#ifndef SOFT_RING_H
#define SOFT_RING_H

#include "common/soft/carrier.h"

#define SOFT_RUN_BYTES   65536 /* of payload in one packet run at most */
#define SOFT_PIECE_BYTES 16384 /* of payload in one record at most */

/* 128 bytes, so that it never lies across the end of a lane. */
struct soft_record {
	uint32_t magic;
	uint8_t service, op, flags, syndrome;
	uint32_t count, mtu, dest_qpn, psn;
	uint64_t va;
	uint32_t rkey, dma_length;
	uint64_t swap_add, compare;
	uint32_t msn, imm, qkey, src_qpn;
	uint32_t length, reserved;
	uint8_t sgid[16], dgid[16];
	uint8_t unused[16];
};

/* From a packet; its payload is not in it. */
void soft_record_make(struct soft_record *r, const struct soft_packet *p);
/*
 * A packet from a record of our own memory that holds anything at all; false:
 * it is none. A function of its argument and nothing else. The payload (parts)
 * is left for the caller to fill in.
 */
bool soft_record_parse(const struct soft_record *r, struct soft_packet *p);

enum soft_lane_name { SOFT_REQUESTS, SOFT_RESPONSES, SOFT_LANES };

struct soft_lane_shared {
	_Alignas(64) uint32_t tail;   /* the sender's; free-running bytes */
	_Alignas(64) uint32_t head;   /* the receiver's */
	_Alignas(64) uint32_t hungry; /* the sender waits for room */
};

struct soft_lane {
	struct soft_lane_shared *shared;
	uint8_t *data;
	uint32_t bytes;        /* a power of two */
	uint32_t mine, theirs; /* own index; the other's when last looked at */
};

struct soft_peer_ring {
	void *mapped; /* NULL: there's none */
	size_t size;
	struct soft_lane lane[SOFT_LANES];
};

/* The sender's: makes the file of the ring between two blocks; 0 or errno. */
int soft_ring_make(struct soft_peer_ring *ring, uint32_t from, uint32_t to);
/* The receiver's: false when there's none that makes sense. */
bool soft_ring_open(struct soft_peer_ring *ring, uint32_t from, uint32_t to);
void soft_ring_close(struct soft_peer_ring *ring);
/* Takes away the name of one that the receiver never took. */
void soft_ring_unlink(uint32_t from, uint32_t to);

/* Bytes of a lane that `length` bytes of payload take in one record. */
static inline uint32_t soft_lane_cost(uint32_t length)
{
	return ((uint32_t)sizeof(struct soft_record) + length + 127) & ~127u;
}

/* What a run of `length` bytes takes, cut into records. */
static inline uint32_t soft_lane_run_cost(uint32_t length)
{
	uint32_t whole = length / SOFT_PIECE_BYTES;

	return whole * soft_lane_cost(SOFT_PIECE_BYTES) +
	       soft_lane_cost(length % SOFT_PIECE_BYTES);
}

/*
 * Sender: whether `cost` bytes are free. If not, the lane says that its
 * sender is hungry, and the receiver will tell when it has made room.
 */
bool soft_lane_room(struct soft_lane *lane, uint32_t cost);
/* Sender: where the next record's payload goes, at most two places. */
int soft_lane_place(const struct soft_lane *lane, uint32_t length,
		    struct iovec place[2]);
/* Sender: whether all was taken. */
bool soft_lane_empty(const struct soft_lane *lane);
void soft_lane_put(struct soft_lane *lane, const struct soft_record *r,
		   uint32_t length);

/*
 * Receiver: the next record, and where its payload lies. 1: there is one, 0:
 * there's none, -1: the lane is nonsense.
 */
int soft_lane_take(struct soft_lane *lane, struct soft_record *r,
		   struct iovec place[2], int *places);
void soft_lane_release(struct soft_lane *lane, uint32_t length);
/* Receiver: whether the sender waits, and there is room again. Says so once. */
bool soft_lane_fed(struct soft_lane *lane);

#endif
