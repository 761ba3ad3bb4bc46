/* SPDX-License-Identifier: MIT */
/*
 * To another process: a packet run becomes records in its ring.
 */
#include "common/soft/peers.h"

#include <string.h>

#include "common/soft/engine.h"
#include "common/soft/object.h"
#include "common/soft/peer.h"

static struct soft_lane *lane_for(struct soft_peer *peer,
				  const struct soft_packet *p)
{
	return &peer->out.lane[p->op >= SOFT_OP_READ_RESPONSE ? SOFT_RESPONSES
							      : SOFT_REQUESTS];
}

/* Whole pieces only, as long as there is one. */
static uint32_t what_fits(struct soft_lane *lane, uint32_t length)
{
	while (!soft_lane_room(lane, soft_lane_run_cost(length))) {
		if (length <= SOFT_PIECE_BYTES)
			return 0;
		length = (length - 1) / SOFT_PIECE_BYTES * SOFT_PIECE_BYTES;
	}
	return length;
}

bool soft_peers_room(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct soft_peer *peer = soft_peer_find(soft_peer_block(p->dest_qpn));
	struct soft_lane *lane;
	uint32_t fits;

	if (!peer || !soft_peer_listens(peer) || !soft_peer_ensure_out(peer))
		return true;
	lane = lane_for(peer, p);
	if (soft_lane_room(lane, soft_lane_run_cost(p->length)))
		return true;
	fits = what_fits(lane, p->length);
	if (fits && fits == p->length)
		return true; /* room came meanwhile */
	if (fits) {
		p->length = fits;
		p->count = fits / p->mtu;
		p->last = p->has_imm = p->invalidate = p->solicited = false;
		return true;
	}
	soft_peer_hold(peer, eq);
	return false;
}

/* One record; its payload is the run's bytes from `offset` on. */
static void put_piece(struct soft_lane *lane, const struct soft_packet *p,
		      uint32_t offset, const struct soft_record *r)
{
	struct iovec place[2];
	int places = soft_lane_place(lane, r->length, place);

	soft_gather(place, places, p->part, p->parts, offset, r->length);
	soft_lane_put(lane, r, r->length);
}

/*
 * A run as records: each but the last as many whole packets as fit into
 * SOFT_PIECE_BYTES; what ends a message is with the last.
 */
static void put_run(struct soft_peer *peer, struct soft_lane *lane,
		    const struct soft_packet *p)
{
	struct soft_packet head;
	uint32_t offset = 0;

	memcpy(&head, p, offsetof(struct soft_packet, part));
	do {
		struct soft_record r;
		uint32_t length = p->length - offset;
		bool last = length <= SOFT_PIECE_BYTES;

		if (!last)
			length = SOFT_PIECE_BYTES;
		head.length = length;
		if (p->op != SOFT_OP_READ)
			head.count = length ? (length - 1) / p->mtu + 1 : 1;
		head.last = p->last && last;
		head.has_imm = p->has_imm && last;
		head.invalidate = p->invalidate && last;
		head.solicited = p->solicited && last;
		head.ack_req = p->ack_req && last;
		soft_record_make(&r, &head);
		put_piece(lane, p, offset, &r);
		soft_peer_tell(peer, false);
		head.first = false;
		head.psn = (head.psn + head.count) & SOFT_PSN_MASK;
		offset += length;
	} while (offset < p->length);
}

static void send_to(struct soft_peer *peer, struct soft_packet *p)
{
	struct soft_lane *lane;

	if (!peer || !soft_peer_listens(peer) || !soft_peer_ensure_out(peer))
		return;
	lane = lane_for(peer, p);
	if (!soft_lane_room(lane, soft_lane_run_cost(p->length)))
		return;
	if (!p->ours && !soft_readable(p->part, p->parts)) {
		p->unreadable = true;
		return;
	}
	put_run(peer, lane, p);
}

void soft_peers_send(struct soft_packet *p)
{
	send_to(soft_peer_find(soft_peer_block(p->dest_qpn)), p);
}

static void send_one(uint32_t block, void *arg)
{
	struct soft_peer *peer = soft_peer_find(block);

	if (peer && peer->block == block)
		send_to(peer, arg);
}

void soft_peers_send_all(struct soft_packet *p)
{
	if (soft_machine_home())
		soft_machine_each(send_one, p);
}

bool soft_peers_under_way(uint32_t qpn)
{
	struct soft_peer *peer = soft_peer_known(soft_peer_block(qpn));

	return peer && soft_peer_lives(peer) && soft_peer_listens(peer) &&
	       peer->out.mapped &&
	       !soft_lane_empty(&peer->out.lane[SOFT_REQUESTS]);
}
