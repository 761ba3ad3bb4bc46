/* SPDX-License-Identifier: MIT */
/*
 * One other process, as peers.c, peers_send.c and peers_take.c share it.
 * Everything here is under soft_lock.
 */
#ifndef SOFT_PEER_H
#define SOFT_PEER_H

#include "common/soft/machine.h"
#include "common/soft/ring.h"

struct soft_engine_qp;

struct soft_peer {
	uint32_t block; /* its main one */
	struct soft_neighbour neighbour;
	struct soft_peer_ring out, in;
	struct soft_engine_qp *held; /* QPs that wait for room in `out` */
	bool stalled; /* requests wait for room for their answers */
	bool deaf;    /* its ring could not be made, and that was said */
	bool busy;    /* its packets are being taken: it can't go now */
};

/* The process whose block that is, or NULL. */
struct soft_peer *soft_peer_find(uint32_t block);
/* The same, if it was found before. */
struct soft_peer *soft_peer_known(uint32_t block);
/* The block of a QP number. */
uint32_t soft_peer_block(uint32_t qpn);
/* False: without a thread there it would all just lie in the ring. */
bool soft_peer_listens(const struct soft_peer *peer);
/* Whether its process is there; if not, it is dropped. */
bool soft_peer_lives(struct soft_peer *peer);
/* Its ring from us, made if need be. */
bool soft_peer_ensure_out(struct soft_peer *peer);
/* That there is news for it; `fresh`: a ring. */
void soft_peer_tell(struct soft_peer *peer, bool fresh);
/* A QP waits for room in `out`; those that did may go on. */
void soft_peer_hold(struct soft_peer *peer, struct soft_engine_qp *eq);
void soft_peer_release(struct soft_peer *peer);
/* Its requests wait for room for their answers, or no more. */
void soft_peer_stall(struct soft_peer *peer, bool stalled);

/* What a burst left over is forgotten. */
void soft_peers_take_no_more(void);

#endif
