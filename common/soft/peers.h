/* SPDX-License-Identifier: MIT */
/*
 * The carrier between the processes of one user on one machine: a ring each
 * way for each two that talk (ring.h), found through their homes (machine.h).
 * Everything here is under soft_lock unless it says otherwise.
 */
#ifndef SOFT_PEERS_H
#define SOFT_PEERS_H

#include "common/soft/carrier.h"

struct soft_engine_qp;

/* Whether a QP number is of a block that isn't ours. */
bool soft_peers_has(uint32_t qpn);
/*
 * Takes a packet towards the process of packet->dest_qpn. A packet for which
 * there's no room is lost: requesters ask soft_peers_room() first.
 */
void soft_peers_send(struct soft_packet *packet);
/* The same to every process: datagrams of multicast groups. */
void soft_peers_send_all(struct soft_packet *packet);
/*
 * Shortens a run to what its ring has room for. False: that is nothing; the
 * doorbell of `eq` rings when it has changed.
 */
bool soft_peers_room(struct soft_engine_qp *eq, struct soft_packet *p);
/*
 * Nobody answered at `qpn`: whether that is because its process lives, but
 * did not come to take what it was sent.
 */
bool soft_peers_under_way(uint32_t qpn);
void soft_peers_forget_qp(struct soft_engine_qp *eq);

/* Whether soft_peers_poll() would find anything. Without soft_lock. */
bool soft_peers_pending(void);
/* Takes what has arrived, a burst of it. */
void soft_peers_poll(void);
/*
 * While QPs wait for room somebody looks from time to time whether the
 * process that ought to make it lives: when, as soft_now() counts.
 */
uint64_t soft_peers_next(void);
void soft_peers_tick(uint64_t now);

/* At exit: the names of rings that nobody took. */
void soft_peers_unlink(void);
/* Lets go of all. In a forked child the parent's rings stay the parent's. */
void soft_peers_forget(void);
void soft_peers_abandon(void);

#endif
