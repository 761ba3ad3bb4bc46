/* SPDX-License-Identifier: MIT */
/*
 * Two RC QPs over a wire that loses, repeats and disorders packets as the
 * input says, in a time that the input says. What IBTA 9.7 promises must hold
 * all the same: each message arrives once, whole and in its turn, an atomic
 * is done once, nothing that was done is done again; and in the end all work
 * completes, well or with RETRY_EXC and flushes.
 *
 * Packets are records, as between processes (wire.h).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/connect.h"
#include "tests/fuzz/wire.h"

#define SLOTS    16 /* one more than WRs in a queue: a slot's turn */
#define WRS      15
#define SLOT     2048
#define STEPS    200   /* of one input at most */
#define PATIENCE 20000 /* rounds until all must be done */
#define POISON   0xee
#define SENT     (UINT64_C(1) << 63) /* in the wr_id */

struct work {
	enum ibv_wr_opcode opcode;
	uint32_t size;
};

/* One end, and what it sends. */
struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	bool broken, failed;   /* flushes; a send did not succeed */
	uint32_t posted, done; /* send WRs */
	uint32_t atomics;      /* done */
	/* Of those that take a receive: acknowledged; arrived here. */
	uint32_t acked, arrived;
	struct work work[SLOTS];
	/* Numbers of WRs that take a receive, in their order. */
	uint32_t order[SLOTS * 2], ordered;
	uint32_t receives, taken; /* posted here; completed here */
	struct ibv_wc kept[4 * SLOTS];
	unsigned int keeping;
	/*
	 * Registered: what is sent, what the peer writes, what it reads, what
	 * was read, what was received, what the peer adds to.
	 */
	struct memory {
		uint8_t from[SLOTS][SLOT], to[SLOTS][SLOT];
		uint8_t read[SLOTS][SLOT], got[SLOTS][SLOT];
		uint8_t inbox[SLOTS][SLOT];
		uint64_t counter;
	} * memory;
};

static struct end end[2];
static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;

/* --- the two ends ------------------------------------------------------- */

static void make_end(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.cap = { WRS, WRS, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	e->memory = calloc(1, sizeof(*e->memory));
	e->cq = ibv_create_cq(context, 4 * SLOTS, NULL, NULL, 0);
	must(e->memory && e->cq);
	e->mr = ibv_reg_mr(pd, e->memory, sizeof(*e->memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &init);
	must(e->mr && e->qp);
}

static void make_world(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int last = 0;

	must(list && list[0]);
	while (list[last + 1])
		last++;
	wire.time = 1000 * MS;
	context = ibv_open_device(list[last]);
	ibv_free_device_list(list);
	must(context && !ibv_query_gid(context, 1, 0, &gid));
	pd = ibv_alloc_pd(context);
	must(pd);
	make_end(&end[0]);
	make_end(&end[1]);
	for (unsigned int i = 0; i < WIRE; i++)
		wire.at[i] = &wire.pool[i];
}

static void connect_end(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0xfffff8,
		.sq_psn = 0xfffff8,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = gid } },
		.timeout = 14, /* 67 ms */
		.retry_cnt = 3,
		.rnr_retry = 7, /* for ever */
		.min_rnr_timer = 1,
	};

	must(to_rts(e->qp, &attr));
}

static void begin(struct end *e)
{
	e->broken = e->failed = false;
	e->posted = e->done = e->atomics = 0;
	e->acked = e->arrived = e->ordered = 0;
	e->receives = e->taken = 0;
	e->memory->counter = 0;
	memset(e->memory->to, POISON, sizeof(e->memory->to));
	memset(e->memory->inbox, POISON, sizeof(e->memory->inbox));
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		memset(e->memory->read[slot], (int)slot + 100, SLOT);
}

static bool takes_receive(const struct work *work)
{
	return work->opcode == IBV_WR_SEND ||
	       work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint8_t byte_of(uint32_t number, uint32_t at)
{
	return (uint8_t)(number * 7 + at + at / MTU);
}

static bool is_message(const uint8_t *at, uint32_t number, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (at[i] != byte_of(number, i))
			return false;
	return true;
}

static bool is_all(const uint8_t *at, uint8_t byte, size_t size)
{
	return !size || (*at == byte && !memcmp(at, at + 1, size - 1));
}

/* --- work --------------------------------------------------------------- */

static void post_send(struct end *e, struct end *peer, uint8_t kind,
		      uint32_t size)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	uint32_t number = e->posted, slot = number % SLOTS;
	struct work *work = &e->work[slot];
	struct ibv_sge sge = { 0, size, e->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = SENT | number, .num_sge = 1 };

	/* What it sent before it broke may still arrive: its slots stay. */
	if (e->posted - e->done == WRS || e->broken)
		return;
	*work = (struct work){ opcodes[kind % 5], size };
	wr.opcode = work->opcode;
	wr.sg_list = &sge;
	wr.imm_data = number;
	wr.wr.rdma.rkey = peer->mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)peer->memory->to[slot];
	if (work->opcode == IBV_WR_RDMA_READ) {
		sge.addr = (uintptr_t)e->memory->got[slot];
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory->read[slot];
	} else if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.addr = (uintptr_t)e->memory->got[slot];
		sge.length = 8;
		wr.wr.atomic.remote_addr = (uintptr_t)&peer->memory->counter;
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		sge.addr = (uintptr_t)e->memory->from[slot];
		for (uint32_t i = 0; i < size; i++)
			e->memory->from[slot][i] = byte_of(number, i);
	}
	if (takes_receive(work))
		e->order[e->ordered++ % (SLOTS * 2)] = number;
	memset(e->memory->got[slot], 0, SLOT);
	e->posted++;
	must(!ibv_post_send(e->qp, &wr, &bad));
}

static void post_receive(struct end *e)
{
	uint32_t slot = e->receives % SLOTS;
	struct ibv_sge sge = { (uintptr_t)e->memory->inbox[slot], SLOT,
			       e->mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = e->receives, .sg_list = &sge, .num_sge = 1 };

	if (e->receives - e->taken == WRS)
		return;
	/* What came late, after it was taken, would have left its mark. */
	must(is_all(e->memory->inbox[slot], POISON, SLOT));
	e->receives++;
	must(!ibv_post_recv(e->qp, &wr, &bad));
}

/* What a WRITE left: looked at once, and then nothing may write there. */
static void take_write(uint8_t *to, uint32_t number, uint32_t size)
{
	must(is_message(to, number, size));
	must(is_all(to + size, POISON, SLOT - size));
	memset(to, POISON, SLOT);
}

static void sent(struct end *e, struct end *peer, const struct ibv_wc *wc)
{
	uint32_t number = e->done++, slot = number % SLOTS;
	const struct work *work = &e->work[slot];
	uint64_t before;

	must(wc->wr_id == (SENT | number) && number < e->posted);
	if (wc->status != IBV_WC_SUCCESS) {
		must(wc->status == (e->failed ? IBV_WC_WR_FLUSH_ERR
					      : IBV_WC_RETRY_EXC_ERR) ||
		     wc->status == IBV_WC_WR_FLUSH_ERR);
		e->broken = e->failed = true;
		return;
	}
	must(!e->failed);
	e->acked += takes_receive(work);
	switch (work->opcode) {
	case IBV_WR_RDMA_WRITE:
		take_write(peer->memory->to[slot], number, work->size);
		break;
	case IBV_WR_RDMA_READ:
		must(is_all(e->memory->got[slot], (uint8_t)(slot + 100),
			    work->size));
		must(is_all(e->memory->got[slot] + work->size, 0,
			    SLOT - work->size));
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		memcpy(&before, e->memory->got[slot], sizeof(before));
		must(before == e->atomics++);
		break;
	default:
		break;
	}
}

static void received(struct end *e, struct end *peer, const struct ibv_wc *wc)
{
	uint32_t number, slot = e->taken++ % SLOTS;
	uint8_t *inbox = e->memory->inbox[slot];
	const struct work *work;

	must(wc->wr_id == e->taken - 1);
	if (wc->status != IBV_WC_SUCCESS) {
		must(wc->status == IBV_WC_WR_FLUSH_ERR);
		e->broken = true;
		memset(inbox, POISON, SLOT); /* half a message, maybe */
		return;
	}
	must(e->arrived < peer->ordered);
	number = peer->order[e->arrived++ % (SLOTS * 2)];
	work = &peer->work[number % SLOTS];
	must(wc->byte_len == work->size);
	if (work->opcode == IBV_WR_SEND) {
		must(wc->opcode == IBV_WC_RECV);
		must(is_message(inbox, number, work->size));
		must(is_all(inbox + work->size, POISON, SLOT - work->size));
		memset(inbox, POISON, SLOT);
	} else {
		must(wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM);
		must(wc->imm_data == number);
		take_write(e->memory->to[number % SLOTS], number, work->size);
	}
}

static bool is_receive(const struct ibv_wc *wc)
{
	return !(wc->wr_id & SENT);
}

/*
 * Receives first: what is acknowledged has arrived. A queue is looked at
 * without the engine's help, which would take part in its own turn.
 */
static void poll_ends(void)
{
	for (int i = 0; i < 4; i++) {
		struct end *e = &end[i & 1], *peer = &end[!(i & 1)];
		struct ibv_wc wc[4 * SLOTS];
		int n = i < 2 ? ibv_poll_cq(e->cq, 4 * SLOTS, wc) : 0;

		must(n >= 0);
		for (int at = 0; at < n; at++)
			e->kept[e->keeping++] = wc[at];
		for (unsigned int at = 0; i < 2 && at < e->keeping; at++)
			if (is_receive(&e->kept[at]))
				received(e, peer, &e->kept[at]);
		for (unsigned int at = 0; i >= 2 && at < e->keeping; at++)
			if (!is_receive(&e->kept[at]))
				sent(e, peer, &e->kept[at]);
		if (i >= 2)
			e->keeping = 0;
	}
	must(end[0].acked <= end[1].arrived && end[1].acked <= end[0].arrived);
}

/* --- an input ----------------------------------------------------------- */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t get(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static void step(struct input *in)
{
	uint8_t what = get(in), how = get(in);
	struct end *e = &end[what >> 7];
	unsigned int i = wire.count ? how % wire.count : 0;

	switch (what % 8) {
	case 0:
	case 1:
		post_send(e, &end[!(what >> 7)], what >> 3 & 15,
			  how * 8u % (SLOT + 1));
		break;
	case 2:
		post_receive(e);
		break;
	case 3:
		if (wire.count)
			drop(i);
		break;
	case 4:
		if (wire.count)
			deliver(i);
		break;
	case 5:
		if (wire.count) {
			deliver(i);
			drop(i);
		}
		break;
	case 6:
		for (i = how % 16; i && wire.count; i--)
			deliver_first();
		break;
	default:
		pass_time(how * MS);
		break;
	}
	soft_engine_catch_up();
	poll_ends();
}

static bool all_done(void)
{
	return end[0].done == end[0].posted && end[1].done == end[1].posted;
}

/* From now on the wire is as good as any. */
static void finish(void)
{
	for (int round = 0; !all_done(); round++) {
		must(round < PATIENCE);
		for (int i = 0; i < 2; i++)
			if (!end[i].broken)
				post_receive(&end[i]);
		if (wire.count)
			deliver_first();
		else
			pass_time(10 * MS);
		soft_engine_catch_up();
		poll_ends();
	}
	/* Nothing that is still on its way may do anything any more. */
	while (wire.count)
		deliver_first();
	for (int i = 0; i < 2; i++) {
		struct memory *m = end[i].memory;

		if (end[!i].broken || end[i].broken)
			continue;
		must(m->counter == end[!i].atomics);
		must(is_all(m->to[0], POISON, sizeof(m->to)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	if (!context)
		make_world();
	wire.count = 0;
	for (int i = 0; i < 2; i++)
		connect_end(&end[i], &end[!i]);
	begin(&end[0]);
	begin(&end[1]);
	/* The engine's thread waits meanwhile. */
	soft_enter();
	wire.up = true;
	for (int i = 0; i < STEPS && in.left; i++)
		step(&in);
	finish();
	wire.up = false;
	wire.count = 0;
	soft_leave();
	return 0;
}
