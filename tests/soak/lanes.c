/* SPDX-License-Identifier: MIT */
/*
 * Sending by the plan, receiving by the plan, and checking that the one
 * agrees with the other.
 */
#include "tests/soak/soak.h"

#define BATCH 32

static void lane_next(struct lane *lane)
{
	if (lane->plan.number < lane->plan.total)
		lane->next = plan_next(&lane->plan);
}

/* `side` is the one that sends. */
static void lane_init(struct lane *lane, unsigned int i, int side, char *area)
{
	uint64_t all = (wish.messages + !side) / 2;

	*lane = (struct lane){
		.plan = { .seed = mix(wish.seed * 2 * MOST_QPS + 2 * i +
				      (unsigned int)side),
			  .total = all / wish.qps + (i < all % wish.qps) },
		.area = area,
	};
	lane_next(lane);
}

static struct message *lane_at(struct lane *lane, uint64_t number)
{
	return &lane->window[number % WINDOW];
}

static char *place(const struct lane *lane, const struct message *m)
{
	return lane->area + m->start % AREA;
}

/* Is there a next one, and room for it beside those that are under way? */
static bool lane_room(struct lane *lane)
{
	if (lane->head == lane->plan.total || lane->head - lane->tail == WINDOW)
		return false;
	return lane->head == lane->tail ||
	       lane->next.end - lane_at(lane, lane->tail)->start <= AREA;
}

static struct message *lane_begin(struct lane *lane)
{
	struct message *m = lane_at(lane, lane->head++);

	*m = lane->next;
	lane_next(lane);
	return m;
}

static void expect(const struct message *m, unsigned int i, const char *at,
		   const char *where)
{
	int64_t wrong = first_wrong(m, at);

	if (wrong >= 0)
		fail("QP %u: %s: byte %lld of message %llu (%s of %u bytes) is "
		     "0x%02x",
		     i, where, (long long)wrong, (unsigned long long)m->number,
		     kind_name[m->kind], m->size, at[wrong] & 0xff);
}

static void expect_word(const struct message *m, unsigned int i, const char *at,
			uint64_t value, const char *where)
{
	uint64_t found;

	memcpy(&found, at, 8);
	if (found != value)
		fail("QP %u: %s: message %llu (%s) has %#llx, not %#llx", i,
		     where, (unsigned long long)m->number, kind_name[m->kind],
		     (unsigned long long)found, (unsigned long long)value);
}

/* --- sending ------------------------------------------------------------ */

static void post(unsigned int i, struct message *m)
{
	static const enum ibv_wr_opcode opcode[] = {
		[SEND] = IBV_WR_SEND,
		[SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[WRITE] = IBV_WR_RDMA_WRITE,
		[READ] = IBV_WR_RDMA_READ,
		[FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_sge sge = { (uintptr_t)place(&soak.out[i], m), m->size,
			       soak.mr->lkey };
	uint64_t there = soak.peer.addr + (uint64_t)(wish.qps + i) * AREA +
			 m->start % AREA;
	struct ibv_send_wr *bad, wr = {
		.wr_id = i,
		.opcode = opcode[m->kind],
		.sg_list = &sge,
		.num_sge = m->size > 0, /* a length of 0 is 2^31 to some */
		.imm_data = (uint32_t)m->seed,
		.wr.rdma = { there, soak.peer.rkey },
	};

	if (is_atomic(m->kind)) {
		wr.wr.atomic.remote_addr = there;
		wr.wr.atomic.rkey = soak.peer.rkey;
		wr.wr.atomic.compare_add =
			m->kind == FETCH_ADD ? operand(m) : comparand(m);
		wr.wr.atomic.swap = operand(m);
	}
	CHECK(ibv_post_send(soak.qp[i], &wr, &bad));
}

static bool send_more(unsigned int i)
{
	struct lane *lane = &soak.out[i];
	uint64_t ready = __atomic_load_n(&soak.shared->ready[soak.side][i],
					 __ATOMIC_ACQUIRE);
	bool did = false;

	while (lane->head < ready && lane_room(lane)) {
		struct message *m = lane_begin(lane);

		if (takes_receive(m->kind) || m->kind == WRITE)
			fill(m, place(lane, m));
		post(i, m);
		did = true;
	}
	return did;
}

static void sent(const struct ibv_wc *wc)
{
	unsigned int i = (unsigned int)wc->wr_id;
	struct lane *lane = &soak.out[i];
	struct message *m = lane_at(lane, lane->tail);

	if (lane->tail == lane->head)
		fail("QP %u: a completion too many", i);
	if (m->kind == READ)
		expect(m, i, place(lane, m), "what was read");
	else if (is_atomic(m->kind))
		expect_word(m, i, place(lane, m), word_of(m, 0),
			    "what was there before");
	soak.figures.kind[m->kind]++;
	soak.figures.bytes += m->size;
	__atomic_store_n(&soak.shared->done[soak.side][i], ++lane->tail,
			 __ATOMIC_RELEASE);
}

/* --- receiving ---------------------------------------------------------- */

static void post_receive(unsigned int i, struct message *m)
{
	struct ibv_sge sge = { (uintptr_t)place(&soak.in[i], m), m->size,
			       soak.mr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = UINT64_C(1) << 63 | (uint64_t)i << 48 | m->number,
		.sg_list = &sge,
		.num_sge = m->kind != WRITE_IMM && m->size,
	};

	CHECK(ibv_post_recv(soak.qp[i], &wr, &bad));
}

static bool make_ready(unsigned int i)
{
	struct lane *lane = &soak.in[i];
	uint64_t before = lane->head;

	while (lane_room(lane)) {
		struct message *m = lane_begin(lane);

		if (takes_receive(m->kind))
			post_receive(i, m);
		else if (m->kind != WRITE)
			fill(m, place(lane, m));
	}
	if (lane->head == before)
		return false;
	__atomic_store_n(&soak.shared->ready[!soak.side][i], lane->head,
			 __ATOMIC_RELEASE);
	return true;
}

static void received(const struct ibv_wc *wc)
{
	unsigned int i = wc->wr_id >> 48 & 0x7fff;
	uint64_t number = wc->wr_id & UINT64_C(0xffffffffffff);
	struct lane *lane = &soak.in[i];
	struct message *m = lane_at(lane, number);
	bool imm = m->kind != SEND;

	while (lane->seen < number)
		if (takes_receive(lane_at(lane, lane->seen++)->kind))
			fail("QP %u: message %llu comes out of its turn", i,
			     (unsigned long long)number);
	lane->seen = number + 1;
	if (wc->byte_len != m->size ||
	    wc->opcode != (m->kind == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
						: IBV_WC_RECV) ||
	    !(wc->wc_flags & IBV_WC_WITH_IMM) == imm ||
	    (imm && wc->imm_data != (uint32_t)m->seed) ||
	    wc->qp_num != soak.own.qpn[i])
		fail("QP %u: the completion of message %llu (%s of %u bytes) "
		     "has opcode %d, %u bytes, flags %#x, imm %#x, QPN %#x",
		     i, (unsigned long long)number, kind_name[m->kind], m->size,
		     wc->opcode, wc->byte_len, wc->wc_flags, wc->imm_data,
		     wc->qp_num);
}

/*
 * ThreadSanitizer does not see that a message was done here before the other
 * process said so: it must see the lock under which it was done.
 */
static void after_the_device(unsigned int i)
{
#ifdef __SANITIZE_THREAD__
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(soak.qp[i], &attr, IBV_QP_STATE, &init))
		fail("QP %u: ibv_query_qp failed", i);
#else
	(void)i;
#endif
}

/* Looks at what has come, and at what was read and must be as it was. */
static bool check_more(unsigned int i)
{
	struct lane *lane = &soak.in[i];
	uint64_t done = __atomic_load_n(&soak.shared->done[!soak.side][i],
					__ATOMIC_ACQUIRE);
	uint64_t before = lane->tail;

	for (; lane->tail < lane->head; lane->tail++) {
		struct message *m = lane_at(lane, lane->tail);
		bool at_home = takes_receive(m->kind) || m->kind == WRITE;

		if (m->number >= (at_home ? lane->seen : done))
			break;
		if (!at_home)
			after_the_device(i);
		if (is_atomic(m->kind))
			expect_word(m, i, place(lane, m), left_by(m),
				    "what an atomic left");
		else
			expect(m, i, place(lane, m),
			       at_home ? "what arrived" : "what was read from");
		if (lane->seen <= m->number)
			lane->seen = m->number + 1;
	}
	return lane->tail != before;
}

/* --- all of them ------------------------------------------------------- */

void lanes_init(void)
{
	for (unsigned int i = 0; i < wish.qps; i++) {
		lane_init(&soak.out[i], i, soak.side, soak.memory + i * AREA);
		lane_init(&soak.in[i], i, !soak.side,
			  soak.memory + (wish.qps + i) * AREA);
	}
}

static bool poll_all(void)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(soak.cq, BATCH, wc);

	if (n < 0)
		fail("ibv_poll_cq: %d", n);
	for (int at = 0; at < n; at++) {
		bool is_receive = wc[at].wr_id >> 63;

		if (wc[at].status != IBV_WC_SUCCESS)
			fail("QP %u: a %s failed: %s",
			     (unsigned int)(is_receive ? wc[at].wr_id >> 48 &
								 0x7fff
						       : wc[at].wr_id),
			     is_receive ? "receive" : "send",
			     ibv_wc_status_str(wc[at].status));
		if (is_receive)
			received(&wc[at]);
		else
			sent(&wc[at]);
	}
	return n > 0;
}

uint64_t turn(bool *did)
{
	uint64_t left = 0;

	*did = poll_all();
	for (unsigned int i = 0; i < wish.qps; i++) {
		*did |= check_more(i);
		*did |= make_ready(i);
		*did |= send_more(i);
		left += soak.out[i].plan.total - soak.out[i].tail;
		left += soak.in[i].plan.total - soak.in[i].tail;
	}
	return left;
}
