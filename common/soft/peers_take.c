/* SPDX-License-Identifier: MIT */
/*
 * From other processes. Requests are taken only while there is room for what
 * they may be answered with; answers always, since nothing follows from them.
 * So rings that are full both ways come free again.
 */
#include "common/soft/peers.h"

#include <string.h>

#include "common/soft/engine.h"
#include "common/soft/object.h"
#include "common/soft/peer.h"

#define BURST_RECORDS 256
#define BURST_BYTES   (256u << 10)

/* What a burst left over; as in a home. */
static struct {
	uint64_t words, news[SOFT_NEWS_WORDS];
} left_over;

/* What answering the request takes at most: a READ's data, or an ACK. */
static bool may_answer(struct soft_peer *peer, const struct soft_packet *p)
{
	uint32_t length = p->op == SOFT_OP_READ ? p->dma_length : 8;

	if (p->service != SOFT_RC || !soft_peer_ensure_out(peer))
		return true;
	return soft_lane_room(&peer->out.lane[SOFT_RESPONSES],
			      soft_lane_run_cost(length));
}

static void deliver(struct soft_packet *p)
{
	union ibv_gid gid = soft_gid();
	struct soft_qp *qp;

	if (soft_is_mcast(&p->dgid) && p->service == SOFT_UD) {
		soft_mcast_deliver(p, NULL);
		return;
	}
	if (memcmp(&p->dgid, &gid, sizeof(gid)))
		return;
	qp = soft_qp_find(p->dest_qpn);
	if (qp)
		soft_receive(qp, p);
}

struct burst {
	uint32_t records, bytes;
};

/* Takes from one lane. False: it is nonsense, or speaks of the other lane. */
static bool take_lane(struct soft_peer *peer, enum soft_lane_name name,
		      struct burst *left, bool *more)
{
	struct soft_lane *lane = &peer->in.lane[name];
	struct soft_record r;
	struct soft_packet p;
	int got;

	*more = false;
	while ((got = soft_lane_take(lane, &r, p.part, &p.parts)) > 0) {
		struct iovec part[2] = { p.part[0], p.part[1] };
		int parts = p.parts;

		if (!left->records || left->bytes < r.length) {
			*more = true;
			return true;
		}
		if (!soft_record_parse(&r, &p) ||
		    (p.op >= SOFT_OP_READ_RESPONSE) != (name == SOFT_RESPONSES))
			return false;
		if (name == SOFT_REQUESTS && !may_answer(peer, &p)) {
			soft_peer_stall(peer, true);
			return true;
		}
		memcpy(p.part, part, sizeof(part));
		p.parts = parts;
		deliver(&p);
		left->records--;
		left->bytes -= r.length;
		soft_lane_release(lane, r.length);
	}
	return got == 0;
}

static void again(uint32_t block)
{
	left_over.news[block / 64] |= UINT64_C(1) << (block & 63);
	__atomic_fetch_or(&left_over.words, UINT64_C(1) << (block / 64),
			  __ATOMIC_RELAXED);
}

static void take_all(struct soft_peer *peer, struct burst *left)
{
	bool more[SOFT_LANES] = { false, false };
	bool sane, fed;

	soft_peer_stall(peer, false);
	sane = take_lane(peer, SOFT_RESPONSES, left, &more[SOFT_RESPONSES]) &&
	       take_lane(peer, SOFT_REQUESTS, left, &more[SOFT_REQUESTS]);
	if (!sane) {
		soft_diagnose("another process speaks nonsense: its ring is "
			      "dropped");
		soft_ring_close(&peer->in);
		return;
	}
	if (more[SOFT_RESPONSES] || more[SOFT_REQUESTS])
		again(peer->block);
	fed = soft_lane_fed(&peer->in.lane[SOFT_RESPONSES]);
	fed |= soft_lane_fed(&peer->in.lane[SOFT_REQUESTS]);
	if (fed)
		soft_peer_tell(peer, false);
}

static void serve(uint32_t block, bool fresh, struct burst *left)
{
	struct soft_peer *peer = soft_peer_known(block);

	/* What one that has left sent before is taken all the same. */
	if (!peer)
		peer = soft_peer_find(block);
	if (!peer || peer->block != block)
		return;
	peer->busy = true;
	if (fresh) {
		struct soft_peer_ring ring = { 0 };

		if (soft_ring_open(&ring, block, soft_machine_block(0))) {
			soft_ring_close(&peer->in);
			peer->in = ring;
		}
	}
	if (peer->in.mapped)
		take_all(peer, left);
	/* Its news may be that it made room. */
	soft_peer_release(peer);
	peer->busy = false;
}

bool soft_peers_pending(void)
{
	struct soft_home *home = soft_machine_home();

	return home && (__atomic_load_n(&home->summary, __ATOMIC_SEQ_CST) ||
			__atomic_load_n(&left_over.words, __ATOMIC_RELAXED));
}

static void serve_word(struct soft_home *home, uint32_t word,
		       struct burst *left)
{
	uint64_t news =
		__atomic_exchange_n(&home->news[word], 0, __ATOMIC_SEQ_CST);
	uint64_t fresh = 0;

	if (news && __atomic_load_n(&home->fresh[word], __ATOMIC_SEQ_CST))
		fresh = __atomic_exchange_n(&home->fresh[word], 0,
					    __ATOMIC_SEQ_CST);
	news |= left_over.news[word] | fresh;
	left_over.news[word] = 0;
	for (; news; news &= news - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(news);

		if (word * 64 + bit != soft_machine_block(0))
			serve(word * 64 + bit, fresh >> bit & 1, left);
	}
}

void soft_peers_poll(void)
{
	struct soft_home *home = soft_machine_home();
	struct burst left = { BURST_RECORDS, BURST_BYTES };
	uint64_t words;

	if (!soft_peers_pending())
		return;
	words = __atomic_exchange_n(&home->summary, 0, __ATOMIC_SEQ_CST) |
		__atomic_exchange_n(&left_over.words, 0, __ATOMIC_RELAXED);
	for (; words; words &= words - 1)
		serve_word(home, (uint32_t)__builtin_ctzll(words), &left);
}

void soft_peers_take_no_more(void)
{
	memset(&left_over, 0, sizeof(left_over));
}
