/* SPDX-License-Identifier: MIT */
/*
 * Other processes: found, let go, waited for.
 */
#include "common/soft/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/soft/engine.h"
#include "common/soft/object.h"
#include "common/soft/peer.h"

#define LOOK_NS UINT64_C(20000000) /* at processes that make no room */

/* One process's. Peers by their blocks; several may lead to one. */
static struct {
	struct soft_peer *by_block[SOFT_BLOCKS];
	unsigned int waiting; /* peers with QPs held, or stalled */
	uint64_t look_at;
} peers;

uint32_t soft_peer_block(uint32_t qpn)
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
	return soft_machine_home() && !is_ours(soft_peer_block(qpn));
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

void soft_peer_release(struct soft_peer *peer)
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

void soft_peer_hold(struct soft_peer *peer, struct soft_engine_qp *eq)
{
	if (eq->held)
		return;
	if (!peer->held)
		wait_more(1);
	eq->held = true;
	eq->next_held = peer->held;
	peer->held = eq;
}

void soft_peer_stall(struct soft_peer *peer, bool stalled)
{
	if (peer->stalled != stalled)
		wait_more(stalled ? 1 : -1);
	peer->stalled = stalled;
}

/* Its memory, and what leads to it. */
static void free_peer(struct soft_peer *peer)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++)
		if (peers.by_block[block] == peer)
			peers.by_block[block] = NULL;
	soft_ring_close(&peer->out);
	soft_ring_close(&peer->in);
	soft_neighbour_close(&peer->neighbour);
	free(peer);
}

static void drop(struct soft_peer *peer)
{
	soft_peer_release(peer);
	if (peer->stalled)
		wait_more(-1);
	if (peer->out.mapped)
		soft_ring_unlink(soft_machine_block(0), peer->block);
	free_peer(peer);
}

static bool has_left(const struct soft_peer *peer)
{
	return __atomic_load_n(&peer->neighbour.home->left, __ATOMIC_RELAXED);
}

bool soft_peer_listens(const struct soft_peer *peer)
{
	return !has_left(peer) &&
	       __atomic_load_n(&peer->neighbour.home->serving,
			       __ATOMIC_RELAXED);
}

struct soft_peer *soft_peer_find(uint32_t block)
{
	struct soft_peer *peer = peers.by_block[block];
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
			peer = is_main ? soft_peer_find(main_block) : NULL;
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

struct soft_peer *soft_peer_known(uint32_t block)
{
	return peers.by_block[block];
}

bool soft_peer_lives(struct soft_peer *peer)
{
	if (soft_neighbour_lives(&peer->neighbour, peer->block))
		return true;
	drop(peer);
	return false;
}

void soft_peer_tell(struct soft_peer *peer, bool fresh)
{
	soft_home_tell(peer->neighbour.home, soft_machine_block(0), fresh);
}

bool soft_peer_ensure_out(struct soft_peer *peer)
{
	int err;

	if (peer->out.mapped)
		return true;
	if (peer->deaf)
		return false;
	err = soft_ring_make(&peer->out, soft_machine_block(0), peer->block);
	if (!err) {
		soft_peer_tell(peer, true);
		return true;
	}
	peer->deaf = true;
	soft_diagnose("no way to another process: its ring cannot be made: %s",
		      strerror(err));
	return false;
}

/* --- those that wait ---------------------------------------------------- */

void soft_peers_forget_qp(struct soft_engine_qp *eq)
{
	if (!eq->held)
		return;
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct soft_peer *peer = peers.by_block[block];
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
		struct soft_peer *peer = peers.by_block[block];

		if (peer && (peer->held || peer->stalled))
			soft_peer_lives(peer);
	}
}

void soft_peers_forget(void)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct soft_peer *peer = peers.by_block[block];

		if (peer)
			drop(peer);
	}
	soft_peers_take_no_more();
}

void soft_peers_unlink(void)
{
	for (uint32_t block = 0; block < SOFT_BLOCKS; block++) {
		struct soft_peer *peer = peers.by_block[block];

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
	soft_peers_take_no_more();
}
