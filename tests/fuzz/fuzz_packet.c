/* SPDX-License-Identifier: MIT */
/*
 * Whatever another process may write into a ring of soft0: records that are
 * parsed and given to QPs in every state, between work that the program
 * posts; and lanes whose indexes are anything.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE \
 *       -DVERSION='"fuzz"' -I. \
 *       tests/fuzz/fuzz_packet.c common/soft/[a-z]*.c common/rules/[a-z]*.c \
 *       -pthread -libverbs -o build/fuzz_packet
 *   build/fuzz_packet -max_total_time=180
 */
#include <stdlib.h>
#include <string.h>

#include "common/soft/engine.h"
#include "tests/fuzz/connect.h"

#define BYTES   (1 << 17)
#define PAIRS   3
#define RECORDS 64 /* of one input at most */

static const enum ibv_qp_type types[PAIRS] = { IBV_QPT_RC, IBV_QPT_UC,
					       IBV_QPT_UD };

/* The fuzzer's one process. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2 * PAIRS];
	char *memory;
	union ibv_gid gid;
} world;

static void must(bool good)
{
	if (!good)
		abort();
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = world.cq,
		.recv_cq = world.cq,
		.srq = srq,
		.cap = { 16, 16, 2, 2, 64 },
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(world.pd, &init);

	must(qp);
	return qp;
}

static void make_world(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq = { .attr = { 64, 2, 0 } };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	int last = 0;

	must(list);
	while (list[last + 1])
		last++;
	world.context = ibv_open_device(list[last]);
	ibv_free_device_list(list);
	must(world.context);
	world.pd = ibv_alloc_pd(world.context);
	world.cq = ibv_create_cq(world.context, 4096, NULL, NULL, 0);
	world.memory = calloc(1, BYTES);
	world.mr = ibv_reg_mr(world.pd, world.memory, BYTES,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_ATOMIC);
	must(!ibv_query_gid(world.context, 1, 0, &world.gid));
	ah.grh.dgid = world.gid;
	world.ah = ibv_create_ah(world.pd, &ah);
	world.srq = ibv_create_srq(world.pd, &srq);
	must(world.mr && world.ah && world.srq);
	for (int i = 0; i < PAIRS; i++) {
		world.qp[2 * i] = make_qp(types[i], NULL);
		world.qp[2 * i + 1] = make_qp(types[i], world.srq);
	}
}

static void connect_qp(struct ibv_qp *qp, struct ibv_qp *to)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qkey = 0x11,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.rq_psn = 0xfffff8,
		.sq_psn = 0xfffff8,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = world.gid } },
		.retry_cnt = 2,
		.rnr_retry = 2,
		.min_rnr_timer = 1,
	};

	must(to_rts(qp, &attr));
}

/* --- an input ----------------------------------------------------------- */

struct input {
	const uint8_t *at;
	size_t left;
};

static void get(struct input *in, void *to, size_t size)
{
	size_t n = in->left < size ? in->left : size;

	memset(to, 0, size);
	memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
}

static uint8_t get_byte(struct input *in)
{
	uint8_t byte;

	get(in, &byte, 1);
	return byte;
}

static void post_send(struct ibv_qp *qp, uint8_t how, uint8_t size)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,          IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,     IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct ibv_sge sge = { (uintptr_t)world.memory,
			       how & 64 ? 8 : size * 97u, world.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcodes[how % 6],
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = world.ah;
		wr.wr.ud.remote_qpn = world.qp[2 * PAIRS - 1]->qp_num;
		wr.wr.ud.remote_qkey = 0x11;
	} else if (how % 6 == 3) {
		wr.wr.atomic.remote_addr = (uintptr_t)world.memory;
		wr.wr.atomic.rkey = world.mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)world.memory + BYTES / 2;
		wr.wr.rdma.rkey = world.mr->rkey;
	}
	ibv_post_send(qp, &wr, &bad);
}

static void post_receive(struct ibv_qp *qp, uint8_t size)
{
	struct ibv_sge sge = { (uintptr_t)world.memory, size * 257u,
			       world.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	if (qp->srq)
		ibv_post_srq_recv(qp->srq, &wr, &bad);
	else
		ibv_post_recv(qp, &wr, &bad);
}

/* What would get nowhere is helped on: it's the rest that is of interest. */
static void help_on(struct soft_record *r, struct ibv_qp *qp, uint8_t how)
{
	const struct soft_engine_qp *eq = soft_qp_of(qp)->engine;
	struct soft_packet none = { .mtu = 1024 };
	struct soft_record made;

	soft_record_make(&made, &none);
	r->magic = made.magic;
	r->dest_qpn = qp->qp_num;
	memcpy(r->dgid, world.gid.raw, 16);
	if (how & 1)
		r->service = (uint8_t)soft_service_of(soft_qp_of(qp));
	if (how & 2)
		r->mtu = soft_path_mtu(soft_qp_of(qp));
	if (how & 4)
		r->psn = r->op >= SOFT_OP_READ_RESPONSE ? eq->una_psn
							: eq->expected_psn;
	r->psn &= how & 8 ? SOFT_PSN_MASK : UINT32_MAX;
	if (how & 16) {
		r->rkey = world.mr->rkey;
		r->va = (uintptr_t)world.memory + r->va % BYTES;
	}
	if (how & 32) {
		r->qkey = 0x11;
		r->msn &= SOFT_PSN_MASK;
		r->src_qpn &= SOFT_PSN_MASK;
		r->length %= SOFT_PIECE_BYTES + 1;
	}
	if (how & 64 && r->mtu)
		r->count = soft_packets(r->op == SOFT_OP_READ ? r->dma_length
							      : r->length,
					r->mtu);
	if (how & 128)
		r->flags &= 63;
}

/* As peers_take.c does. */
static void deliver(struct input *in, struct ibv_qp *qp)
{
	static uint8_t payload[SOFT_PIECE_BYTES];
	uint8_t how = get_byte(in);
	struct soft_record r;
	struct soft_packet p;
	struct soft_qp *found;

	get(in, &r, sizeof(r));
	help_on(&r, qp, how);
	if (!soft_record_parse(&r, &p))
		return;
	if (p.length) {
		p.part[0] = (struct iovec){ payload, p.length };
		p.parts = 1;
	}
	found = soft_qp_find(p.dest_qpn);
	if (found)
		soft_receive(found, &p);
}

static void try_lane(struct input *in)
{
	static uint8_t data[1 << 17];
	struct soft_lane_shared shared = { 0 };
	struct soft_lane lane = { &shared, data, sizeof(data), 0, 0 };
	struct soft_record r;
	struct iovec place[2];
	int places, got = 1;

	get(in, &shared.tail, sizeof(shared.tail));
	get(in, &lane.mine, sizeof(lane.mine));
	lane.mine &= ~127u;
	lane.theirs = lane.mine;
	get(in, data + (lane.mine & (sizeof(data) - 1)), sizeof(r));
	for (int i = 0; i < 8 && got > 0; i++) {
		got = soft_lane_take(&lane, &r, place, &places);
		for (int part = 0; got > 0 && part < places; part++)
			must((uint8_t *)place[part].iov_base >= data &&
			     (uint8_t *)place[part].iov_base +
					     place[part].iov_len <=
				     data + sizeof(data));
		if (got > 0)
			soft_lane_release(&lane, r.length);
	}
}

static void step(struct input *in)
{
	uint8_t what = get_byte(in);
	struct ibv_qp *qp = world.qp[what % (2 * PAIRS)];

	switch (what / (2 * PAIRS) % 8) {
	case 0:
		post_send(qp, get_byte(in), get_byte(in));
		break;
	case 1:
		post_receive(qp, get_byte(in));
		break;
	case 2:
		try_lane(in);
		break;
	default:
		deliver(in, qp);
		break;
	}
	soft_engine_catch_up();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct ibv_wc wc[64];

	if (!world.context)
		make_world();
	for (int i = 0; i < PAIRS; i++) {
		connect_qp(world.qp[2 * i], world.qp[2 * i + 1]);
		connect_qp(world.qp[2 * i + 1], world.qp[2 * i]);
	}
	/* The engine's thread waits meanwhile: an input always does the same.
	 */
	soft_enter();
	for (int i = 0; i < RECORDS && in.left; i++)
		step(&in);
	soft_leave();
	while (ibv_poll_cq(world.cq, 64, wc) > 0)
		;
	return 0;
}
