/* SPDX-License-Identifier: MIT */
/*
 * Between processes. Requests are taken only while there is room for what
 * they may be answered with; answers always, since nothing follows from them.
 * So rings that are full both ways come free again.
 */
#include "common/soft/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/soft/engine.h"
#include "common/soft/machine.h"
#include "common/soft/object.h"
#include "common/soft/ring.h"

#define BURST_RECORDS 256
#define BURST_BYTES   (256u << 10)
#define LOOK_NS       UINT64_C(20000000) /* at processes that make no room */

struct peer {
	uint32_t block; /* its main one */
	struct soft_neighbour neighbour;
	struct soft_peer_ring out, in;
	struct soft_engine_qp *held; /* QPs that wait for room in `out` */
	bool stalled; /* requests wait for room for their answers */
	bool deaf;    /* its ring could not be made, and that was said */
	bool busy;    /* its packets are being taken: it can't go now */
};

/* One process's. Peers by their blocks; several may lead to one. */
static struct {
	struct peer *by_block[SOFT_BLOCKS];
	unsigned int waiting; /* peers with QPs held, or stalled */
	uint64_t look_at;
	/* What a burst left over; as in a home. */
	uint64_t again, again_news[SOFT_NEWS_WORDS];
} peers;

static uint32_t block_of(uint32_t qpn)
{
	return qpn >> SOFT_BLOCK_SHIFT & (SOFT_BLOCKS - 1);
}

static bool is_ours(uint32_t block)
{
	for (unsigned int i = 0; i < soft_machine_blocks(); i++)
		if (soft_machine_block(i) == block)
			return true;
	return false;
}

bool soft_peers_has(uint32_t qpn)
{
	return soft_machine_home() && !is_ours(block_of(qpn));
}

/* --- coming and going --------------------------------------------------- */

static void wait_more(int by)
{
	if (!peers.waiting && by > 0) {
		peers.look_at = soft_now() + LOOK_NS;
		soft_timer_note(peers.look_at);
	}
	peers.waiting += (unsigned int)by;
}

static void release_held(struct peer *peer)
{
	struct soft_engine_qp *eq = peer->held;

	if (!eq)
		return;
	peer->held = NULL;
	wait_more(-1);
	while (eq) {
		struct soft_engine_qp *next = eq->next_held;

		eq->held = false;
		soft_ring(eq);
		eq = next;
	}
}

/* Its memory, and what leads to it. */
static void free_peer(struct peer *peer)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++)
		if (peers.by_block[block] == peer)
			peers.by_block[block] = NULL;
	soft_ring_close(&peer->out);
	soft_ring_close(&peer->in);
	soft_neighbour_close(&peer->neighbour);
	free(peer);
}

static void drop(struct peer *peer)
{
	release_held(peer);
	if (peer->stalled)
		wait_more(-1);
	if (peer->out.mapped)
		soft_ring_unlink(soft_machine_block(0), peer->block);
	free_peer(peer);
}

static bool has_left(const struct peer *peer)
{
	return __atomic_load_n(&peer->neighbour.home->left, __ATOMIC_RELAXED);
}

/* Without a thread there it would all just lie in the ring. */
static bool listens(const struct peer *peer)
{
	return !has_left(peer) &&
	       __atomic_load_n(&peer->neighbour.home->serving,
			       __ATOMIC_RELAXED);
}

/* The process whose block that is, or NULL. */
static struct peer *find(uint32_t block)
{
	struct peer *peer = peers.by_block[block];
	struct soft_neighbour neighbour;
	uint32_t main_block;

	if (peer) {
		if (!has_left(peer))
			return peer;
		if (peer->busy)
			return NULL;
		drop(peer);
	}
	if (!soft_neighbour_open(&neighbour, block))
		return NULL;
	main_block = neighbour.home->main_block % SOFT_BLOCKS;
	if (main_block != block) {
		soft_neighbour_close(&neighbour);
		/* One step only: a main block's main block is itself. */
		peer = peers.by_block[main_block];
		if (!peer && soft_neighbour_open(&neighbour, main_block)) {
			bool is_main = neighbour.home->main_block == main_block;

			soft_neighbour_close(&neighbour);
			peer = is_main ? find(main_block) : NULL;
		}
		return peers.by_block[block] = peer;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer) {
		soft_neighbour_close(&neighbour);
		return NULL;
	}
	peer->block = block;
	peer->neighbour = neighbour;
	return peers.by_block[block] = peer;
}

static void tell(struct peer *peer, bool fresh)
{
	soft_home_tell(peer->neighbour.home, soft_machine_block(0), fresh);
}

/* Its ring from us, made if need be. */
static bool ensure_out(struct peer *peer)
{
	int err;

	if (peer->out.mapped)
		return true;
	if (peer->deaf)
		return false;
	err = soft_ring_make(&peer->out, soft_machine_block(0), peer->block);
	if (!err) {
		tell(peer, true);
		return true;
	}
	peer->deaf = true;
	soft_diagnose("no way to another process: its ring cannot be made: %s",
		      strerror(err));
	return false;
}

/* --- sending ------------------------------------------------------------ */

static struct soft_lane *lane_for(struct peer *peer,
				  const struct soft_packet *p)
{
	return &peer->out.lane[p->op >= SOFT_OP_READ_RESPONSE ? SOFT_RESPONSES
							      : SOFT_REQUESTS];
}

/* What a run of `length` bytes takes, cut into records. */
static uint32_t run_cost(uint32_t length)
{
	uint32_t whole = length / SOFT_PIECE_BYTES;

	return whole * soft_lane_cost(SOFT_PIECE_BYTES) +
	       soft_lane_cost(length % SOFT_PIECE_BYTES);
}

/* Whole pieces only, as long as there is one. */
static uint32_t what_fits(struct soft_lane *lane, uint32_t length)
{
	while (!soft_lane_room(lane, run_cost(length))) {
		if (length <= SOFT_PIECE_BYTES)
			return 0;
		length = (length - 1) / SOFT_PIECE_BYTES * SOFT_PIECE_BYTES;
	}
	return length;
}

bool soft_peers_room(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct peer *peer = find(block_of(p->dest_qpn));
	struct soft_lane *lane;
	uint32_t fits;

	if (!peer || !listens(peer) || !ensure_out(peer))
		return true;
	lane = lane_for(peer, p);
	if (soft_lane_room(lane, run_cost(p->length)))
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
	if (!eq->held) {
		if (!peer->held)
			wait_more(1);
		eq->held = true;
		eq->next_held = peer->held;
		peer->held = eq;
	}
	return false;
}

void soft_peers_forget_qp(struct soft_engine_qp *eq)
{
	if (!eq->held)
		return;
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct peer *peer = peers.by_block[block];
		struct soft_engine_qp **at = peer ? &peer->held : NULL;

		if (!peer || !peer->held)
			continue;
		while (*at && *at != eq)
			at = &(*at)->next_held;
		if (!*at)
			continue;
		*at = eq->next_held;
		if (!peer->held)
			wait_more(-1);
	}
	eq->held = false;
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
static void put_run(struct peer *peer, struct soft_lane *lane,
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
		tell(peer, false);
		head.first = false;
		head.psn = (head.psn + head.count) & SOFT_PSN_MASK;
		offset += length;
	} while (offset < p->length);
}

static void send_to(struct peer *peer, struct soft_packet *p)
{
	struct soft_lane *lane;

	if (!peer || !listens(peer) || !ensure_out(peer))
		return;
	lane = lane_for(peer, p);
	if (!soft_lane_room(lane, run_cost(p->length)))
		return;
	if (!p->ours && !soft_readable(p->part, p->parts)) {
		p->unreadable = true;
		return;
	}
	put_run(peer, lane, p);
}

void soft_peers_send(struct soft_packet *p)
{
	send_to(find(block_of(p->dest_qpn)), p);
}

static void send_one(uint32_t block, void *arg)
{
	struct peer *peer = find(block);

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
	struct peer *peer = peers.by_block[block_of(qpn)];

	if (!peer)
		return false;
	if (!soft_neighbour_lives(&peer->neighbour, peer->block)) {
		drop(peer);
		return false;
	}
	return listens(peer) && peer->out.mapped &&
	       !soft_lane_empty(&peer->out.lane[SOFT_REQUESTS]);
}

/* --- taking ------------------------------------------------------------- */

/* What answering the request takes at most: a READ's data, or an ACK. */
static bool may_answer(struct peer *peer, const struct soft_packet *p)
{
	uint32_t length = p->op == SOFT_OP_READ ? p->dma_length : 8;

	if (p->service != SOFT_RC || !ensure_out(peer))
		return true;
	return soft_lane_room(&peer->out.lane[SOFT_RESPONSES],
			      run_cost(length));
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
static bool take_lane(struct peer *peer, enum soft_lane_name name,
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
			if (!peer->stalled)
				wait_more(1);
			peer->stalled = true;
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
	peers.again_news[block / 64] |= UINT64_C(1) << (block & 63);
	__atomic_fetch_or(&peers.again, UINT64_C(1) << (block / 64),
			  __ATOMIC_RELAXED);
}

static void take_all(struct peer *peer, struct burst *left)
{
	bool more[SOFT_LANES] = { false, false };
	bool sane, fed;

	if (peer->stalled)
		wait_more(-1);
	peer->stalled = false;
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
		tell(peer, false);
}

static void serve(uint32_t block, bool fresh, struct burst *left)
{
	struct peer *peer = peers.by_block[block];

	/* What one that has left sent before is taken all the same. */
	if (!peer)
		peer = find(block);
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
	release_held(peer);
	peer->busy = false;
}

bool soft_peers_pending(void)
{
	struct soft_home *home = soft_machine_home();

	return home && (__atomic_load_n(&home->summary, __ATOMIC_SEQ_CST) ||
			__atomic_load_n(&peers.again, __ATOMIC_RELAXED));
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
	news |= peers.again_news[word] | fresh;
	peers.again_news[word] = 0;
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
		__atomic_exchange_n(&peers.again, 0, __ATOMIC_RELAXED);
	for (; words; words &= words - 1)
		serve_word(home, (uint32_t)__builtin_ctzll(words), &left);
}

/* --- those that wait ---------------------------------------------------- */

uint64_t soft_peers_next(void)
{
	return peers.waiting ? peers.look_at : UINT64_MAX;
}

void soft_peers_tick(uint64_t now)
{
	if (!peers.waiting || now < peers.look_at)
		return;
	peers.look_at = now + LOOK_NS;
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct peer *peer = peers.by_block[block];

		if (peer && (peer->held || peer->stalled) &&
		    !soft_neighbour_lives(&peer->neighbour, peer->block))
			drop(peer);
	}
}

void soft_peers_forget(void)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct peer *peer = peers.by_block[block];

		if (peer)
			drop(peer);
	}
	memset(&peers.again_news, 0, sizeof(peers.again_news));
	peers.again = 0;
}

void soft_peers_unlink(void)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct peer *peer = peers.by_block[block];

		if (peer && peer->block == block && peer->out.mapped)
			soft_ring_unlink(soft_machine_block(0), block);
	}
}

void soft_peers_abandon(void)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++)
		if (peers.by_block[block])
			free_peer(peers.by_block[block]);
	memset(&peers, 0, sizeof(peers));
}
