/* SPDX-License-Identifier: MIT */
/*
 * Packets between QPs, and the carriers that take them there.
 *
 * A packet is a RoCEv2 transport packet with its headers decoded and its
 * payload as a list of references. To spare copies and calls one struct
 * stands for a run of consecutive packets of one message, as in a NIC's
 * segmentation offload: every packet but the run's last carries `mtu` bytes.
 * A carrier that goes through a wire cuts it up; the carrier inside a process
 * hands it over whole, and the receiver copies from source to destination.
 */
#ifndef SOFT_CARRIER_H
#define SOFT_CARRIER_H

#include <sys/uio.h>
#include "common/soft/soft.h"

/* The upper three bits of the BTH's opcode. */
enum soft_service {
	SOFT_RC = 0,
	SOFT_UC = 1,
	SOFT_UD = 3,
};

enum soft_op {
	SOFT_OP_SEND,
	SOFT_OP_WRITE,
	SOFT_OP_READ,
	SOFT_OP_CMP_SWAP,
	SOFT_OP_FETCH_ADD,
	/* From responder to requester: */
	SOFT_OP_READ_RESPONSE,
	SOFT_OP_ACK,
	SOFT_OP_ATOMIC_ACK,
};

/* AETH syndromes (IBTA 9.7.5.2); an RNR NAK adds its timer's code. */
enum {
	SOFT_SYN_ACK = 0x1f, /* no credit count */
	SOFT_SYN_RNR = 0x20,
	SOFT_NAK_SEQUENCE = 0x60,
	SOFT_NAK_REQUEST = 0x61,
	SOFT_NAK_ACCESS = 0x62,
	SOFT_NAK_OPERATION = 0x63,
};

struct soft_packet {
	enum soft_service service;
	enum soft_op op;
	bool first, last; /* holds the first, the last packet of its message */
	bool has_imm, invalidate;
	bool solicited, ack_req; /* BTH: of the run's last packet */
	uint32_t count;          /* packets in the run, at least 1 */
	uint32_t mtu;            /* bytes */
	uint32_t dest_qpn, psn;  /* the first packet's PSN */
	union ibv_gid sgid, dgid;

	uint64_t va; /* RETH and AtomicETH */
	uint32_t rkey, dma_length;
	uint64_t swap_add, compare;
	uint8_t syndrome; /* AETH */
	uint32_t msn;
	uint64_t original; /* AtomicAckETH */
	uint32_t imm;      /* network order; IETH's rkey with `invalidate` */
	uint32_t qkey, src_qpn; /* DETH */

	uint32_t length; /* of the payload */
	bool ours; /* the payload's memory is our own, not the program's */
	/* Set by whoever copies: the payload's memory could not be read. */
	bool unreadable;

	/* The payload; valid during the call only. */
	int parts;
	struct iovec part[SOFT_MAX_SGE];
};

/*
 * Takes a packet towards packet->dgid and dest_qpn. There is no answer: a
 * packet that nobody takes is lost, as on a wire. May hand over answers to
 * the sending QP before it returns. Under soft_lock.
 */
void soft_carrier_send(struct soft_packet *packet);
/*
 * Shortens a request's run to what there is room for on its way. False: not
 * now; the QP's doorbell rings when there is.
 */
struct soft_engine_qp;
bool soft_carrier_room(struct soft_engine_qp *eq, struct soft_packet *p);

/* What a carrier calls for a packet that has arrived. Under soft_lock. */
void soft_receive(struct soft_qp *qp, struct soft_packet *packet);

/*
 * Copies `length` bytes between lists of memory that belong to the program,
 * which may have unmapped any of it meanwhile, unless the source is our own.
 * False: it could not be.
 */
bool soft_copy(const struct iovec *to, int to_count, const struct iovec *from,
	       int from_count, size_t length, bool from_ours);
/* The same, of memory that was looked at: from `skip` bytes on. */
void soft_gather(const struct iovec *to, int to_count, const struct iovec *from,
		 int from_count, size_t skip, size_t length);
/* Whether all of it can be read: whose fault a failed copy was. */
bool soft_readable(const struct iovec *part, int parts);

/* mapped.c */
enum soft_mapped { SOFT_NOT_MAPPED, SOFT_MAPPED, SOFT_MAPPED_UNKNOWN };
/*
 * Whether the first `length` bytes of a list can be read, or read and written,
 * now. SOFT_MAPPED_UNKNOWN: the kernel tells only by making a copy.
 */
enum soft_mapped soft_mapped(const struct iovec *part, int parts, size_t length,
			     bool write);
/* Before the first question in a process; and after the last, and a fork. */
void soft_mapped_start(void);
void soft_mapped_stop(void);
/* A burst of work begins: what is mapped may have changed. */
void soft_mapped_fresh(void);

#endif
