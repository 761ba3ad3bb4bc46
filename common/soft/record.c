/* SPDX-License-Identifier: MIT */
/*
 * Packets to records and back. What comes back may have been written by a
 * program gone mad: nothing is taken over that is not what a sender of ours
 * could have meant.
 */
#include "common/soft/ring.h"

#include <string.h>

#define RECORD_MAGIC 0x54524253u /* "SBRT" */
#define PSN_MASK     0xffffffu
#define MAX_MESSAGE  (UINT32_C(1) << 31)

enum {
	FIRST = 1,
	LAST = 2,
	IMM = 4,
	INVALIDATE = 8,
	SOLICITED = 16,
	ACK_REQ = 32,
	ALL_FLAGS = 63,
};

_Static_assert(sizeof(struct soft_record) == 128, "ends of lanes");

void soft_record_make(struct soft_record *r, const struct soft_packet *p)
{
	*r = (struct soft_record){
		.magic = RECORD_MAGIC,
		.service = (uint8_t)p->service,
		.op = (uint8_t)p->op,
		.flags = (uint8_t)((p->first ? FIRST : 0) |
				   (p->last ? LAST : 0) |
				   (p->has_imm ? IMM : 0) |
				   (p->invalidate ? INVALIDATE : 0) |
				   (p->solicited ? SOLICITED : 0) |
				   (p->ack_req ? ACK_REQ : 0)),
		.syndrome = p->syndrome,
		.count = p->count,
		.mtu = p->mtu,
		.dest_qpn = p->dest_qpn,
		.psn = p->psn,
		.va = p->va,
		.rkey = p->rkey,
		.dma_length = p->dma_length,
		.swap_add = p->swap_add,
		.compare = p->compare,
		.msn = p->msn,
		.imm = p->imm,
		.qkey = p->qkey,
		.src_qpn = p->src_qpn,
		.length = p->length,
	};
	memcpy(r->sgid, p->sgid.raw, sizeof(r->sgid));
	memcpy(r->dgid, p->dgid.raw, sizeof(r->dgid));
}

static uint32_t packets(uint32_t length, uint32_t mtu)
{
	return length ? (length - 1) / mtu + 1 : 1;
}

static bool is_mtu(uint32_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

/* What each service carries. */
static bool check_op(const struct soft_record *r)
{
	switch (r->service) {
	case SOFT_RC:
		return r->op <= SOFT_OP_ATOMIC_ACK;
	case SOFT_UC:
		return r->op == SOFT_OP_SEND || r->op == SOFT_OP_WRITE;
	case SOFT_UD:
		return r->op == SOFT_OP_SEND && r->count == 1 &&
		       (r->flags & (FIRST | LAST)) == (FIRST | LAST);
	default:
		return false;
	}
}

/* Payload, packets and what they say of themselves agree. */
static bool check_length(const struct soft_record *r)
{
	switch (r->op) {
	case SOFT_OP_SEND:
	case SOFT_OP_WRITE:
	case SOFT_OP_READ_RESPONSE:
		return r->length <= SOFT_PIECE_BYTES &&
		       r->dma_length <= MAX_MESSAGE &&
		       r->count == packets(r->length, r->mtu);
	case SOFT_OP_READ:
		return !r->length && r->dma_length <= SOFT_RUN_BYTES &&
		       r->count == packets(r->dma_length, r->mtu);
	case SOFT_OP_ATOMIC_ACK:
		return r->length == sizeof(uint64_t) && r->count == 1;
	default:
		return !r->length && r->count == 1;
	}
}

static bool check_flags(const struct soft_record *r)
{
	bool send = r->op == SOFT_OP_SEND, write = r->op == SOFT_OP_WRITE;

	if (r->flags & ~ALL_FLAGS)
		return false;
	if (r->flags & (IMM | INVALIDATE | SOLICITED) && !(r->flags & LAST))
		return false;
	if (r->flags & IMM && (!(send || write) || r->flags & INVALIDATE))
		return false;
	return !(r->flags & INVALIDATE) || send;
}

bool soft_record_parse(const struct soft_record *r, struct soft_packet *p)
{
	if (r->magic != RECORD_MAGIC || !is_mtu(r->mtu) || !check_op(r) ||
	    !check_length(r) || !check_flags(r))
		return false;
	if ((r->dest_qpn | r->psn | r->msn | r->src_qpn) & ~PSN_MASK)
		return false;
	p->service = (enum soft_service)r->service;
	p->op = (enum soft_op)r->op;
	p->first = r->flags & FIRST;
	p->last = r->flags & LAST;
	p->has_imm = r->flags & IMM;
	p->invalidate = r->flags & INVALIDATE;
	p->solicited = r->flags & SOLICITED;
	p->ack_req = r->flags & ACK_REQ;
	p->syndrome = r->syndrome;
	p->count = r->count;
	p->mtu = r->mtu;
	p->dest_qpn = r->dest_qpn;
	p->psn = r->psn;
	p->va = r->va;
	p->rkey = r->rkey;
	p->dma_length = r->dma_length;
	p->swap_add = r->swap_add;
	p->compare = r->compare;
	p->original = 0;
	p->msn = r->msn;
	p->imm = r->imm;
	p->qkey = r->qkey;
	p->src_qpn = r->src_qpn;
	p->length = r->length;
	p->ours = true;
	p->unreadable = false;
	p->parts = 0;
	memcpy(p->sgid.raw, r->sgid, sizeof(r->sgid));
	memcpy(p->dgid.raw, r->dgid, sizeof(r->dgid));
	return true;
}
