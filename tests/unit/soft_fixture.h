/* SPDX-License-Identifier: MIT */
/*
 * A pair of connected QPs on soft0, for its tests: two ends in one process,
 * each with a PD, a CQ, a buffer and an MR of its own. Fails the test that
 * asks for what cannot be had. Nothing sleeps: who waits polls to a limit.
 */
#ifndef SOFT_FIXTURE_H
#define SOFT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <infiniband/verbs.h>

#define BUFFER (1 << 20)
#define ALL_ACCESS                                         \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define UNUSED __attribute__((unused))
#define QKEY   0x11111111

struct end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buf;
	size_t registered;       /* of its BUFFER bytes */
	struct ibv_qp_attr attr; /* what connect() gives it */
};

/* What a test may change between pair_init() and pair_make(). */
struct pair {
	enum ibv_qp_type type;
	int cqe;
	int wrs;
	int signal_all;
	bool srq;                         /* end b receives from an SRQ */
	struct ibv_comp_channel *channel; /* of end b's CQ, if wanted */
	struct ibv_context *context;
	struct end a, b;
};

static UNUSED double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static UNUSED struct ibv_context *open_soft0(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	assert_non_null(list);
	for (int i = 0; list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), "soft0"))
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

static UNUSED void end_init(struct end *end)
{
	memset(end, 0, sizeof(*end));
	end->registered = BUFFER;
	end->attr = (struct ibv_qp_attr){
		.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_LOCAL_WRITE,
		.path_mtu = IBV_MTU_1024,
		.rq_psn = 0xfffff0, /* so that PSNs wrap */
		.sq_psn = 0xfffff0,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, /* 10 us */
		.timeout = 8,       /* 1 ms */
		.retry_cnt = 2,
		.rnr_retry = 7,
		.port_num = 1,
		.qkey = QKEY,
	};
}

static UNUSED void pair_init(struct pair *p, enum ibv_qp_type type)
{
	memset(p, 0, sizeof(*p));
	p->type = type;
	p->cqe = 256;
	p->wrs = 15;
	p->signal_all = 1;
	end_init(&p->a);
	end_init(&p->b);
	p->context = open_soft0();
}

static UNUSED void end_make(struct pair *p, struct end *end)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = p->wrs,
			 .max_recv_wr = p->wrs,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_data = 64 },
		.qp_type = p->type,
		.sq_sig_all = p->signal_all,
	};
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = p->wrs, .max_sge = 4 },
	};

	end->pd = ibv_alloc_pd(p->context);
	assert_non_null(end->pd);
	end->cq = ibv_create_cq(p->context, p->cqe, NULL,
				end == &p->b ? p->channel : NULL, 0);
	assert_non_null(end->cq);
	end->buf = malloc(BUFFER);
	memset(end->buf, 0, BUFFER);
	end->mr = ibv_reg_mr(end->pd, end->buf, end->registered, ALL_ACCESS);
	assert_non_null(end->mr);
	if (p->srq && end == &p->b) {
		end->srq = ibv_create_srq(end->pd, &srq);
		assert_non_null(end->srq);
	}
	init.send_cq = init.recv_cq = end->cq;
	init.srq = end->srq;
	end->qp = ibv_create_qp(end->pd, &init);
	assert_non_null(end->qp);
}

static UNUSED void address(struct ibv_context *context,
			   struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .hop_limit = 64 },
	};
	assert_int_equal(ibv_query_gid(context, 1, 0, &attr->grh.dgid), 0);
}

static UNUSED void to_init(struct pair *p, struct end *end)
{
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	end->attr.qp_state = IBV_QPS_INIT;
	mask |= p->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	assert_int_equal(ibv_modify_qp(end->qp, &end->attr, mask), 0);
}

static UNUSED void to_rtr(struct pair *p, struct end *end)
{
	int mask = IBV_QP_STATE;

	end->attr.qp_state = IBV_QPS_RTR;
	if (p->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (p->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	assert_int_equal(ibv_modify_qp(end->qp, &end->attr, mask), 0);
}

static UNUSED void to_rts(struct pair *p, struct end *end)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	end->attr.qp_state = IBV_QPS_RTS;
	if (p->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(ibv_modify_qp(end->qp, &end->attr, mask), 0);
}

static UNUSED void to_state(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_int_equal(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
}

static UNUSED void pair_make(struct pair *p)
{
	end_make(p, &p->a);
	end_make(p, &p->b);
	address(p->context, &p->a.attr.ah_attr);
	p->b.attr.ah_attr = p->a.attr.ah_attr;
	if (!p->a.attr.dest_qp_num)
		p->a.attr.dest_qp_num = p->b.qp->qp_num;
	p->b.attr.dest_qp_num = p->a.qp->qp_num;
}

static UNUSED void end_connect(struct pair *p, struct end *end)
{
	to_init(p, end);
	to_rtr(p, end);
	to_rts(p, end);
}

static UNUSED void pair_open(struct pair *p)
{
	pair_make(p);
	end_connect(p, &p->a);
	end_connect(p, &p->b);
}

static UNUSED void end_close(struct end *end)
{
	if (end->qp)
		assert_int_equal(ibv_destroy_qp(end->qp), 0);
	if (end->srq)
		assert_int_equal(ibv_destroy_srq(end->srq), 0);
	if (end->cq)
		assert_int_equal(ibv_destroy_cq(end->cq), 0);
	if (end->mr)
		assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	free(end->buf);
}

static UNUSED void pair_close(struct pair *p)
{
	end_close(&p->a);
	end_close(&p->b);
	if (p->channel)
		assert_int_equal(ibv_destroy_comp_channel(p->channel), 0);
	assert_int_equal(ibv_close_device(p->context), 0);
}

static UNUSED struct ibv_sge sge_of(const struct end *end, size_t offset,
				    size_t length)
{
	return (struct ibv_sge){ (uintptr_t)end->buf + offset, length,
				 end->mr->lkey };
}

/* A one-SGE WR on the whole of what `sge` says; change it before posting. */
static UNUSED struct ibv_send_wr send_wr(enum ibv_wr_opcode opcode,
					 struct ibv_sge *sge,
					 const struct end *peer, size_t offset)
{
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.opcode = opcode,
		.sg_list = sge,
		.num_sge = 1,
	};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + offset;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + offset;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return wr;
}

static UNUSED void post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	assert_int_equal(ibv_post_send(end->qp, wr, &bad), 0);
}

static UNUSED void post_simple(struct end *end, enum ibv_wr_opcode opcode,
			       size_t length, const struct end *peer)
{
	struct ibv_sge sge = sge_of(end, 0, length);
	struct ibv_send_wr wr = send_wr(opcode, &sge, peer, 0);

	post(end, &wr);
}

static UNUSED void post_receive_sge(struct end *end, struct ibv_sge *sge,
				    uint64_t wr_id)
{
	struct ibv_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = 1,
	};
	struct ibv_recv_wr *bad = NULL;

	if (end->srq)
		assert_int_equal(ibv_post_srq_recv(end->srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(end->qp, &wr, &bad), 0);
}

static UNUSED void post_receive(struct end *end, size_t offset, size_t length,
				uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(end, offset, length);

	post_receive_sge(end, &sge, wr_id);
}

/* The next completion of a CQ, in ten seconds at most. */
static UNUSED struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	double limit = seconds() + 10;
	struct ibv_wc wc;

	memset(&wc, 0, sizeof(wc));
	while (ibv_poll_cq(cq, 1, &wc) == 0) {
		if (seconds() > limit)
			fail_msg("no completion came");
	}
	return wc;
}

#define expect_wc(cq, want)                                        \
	do {                                                       \
		struct ibv_wc wc_ = wait_wc(cq);                   \
		assert_string_equal(ibv_wc_status_str(wc_.status), \
				    ibv_wc_status_str(want));      \
	} while (0)

static UNUSED void expect_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static UNUSED struct ibv_qp_attr query(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr;
}

static UNUSED enum ibv_qp_state state_of(struct end *end)
{
	return query(end).qp_state;
}

/* An RC pair with `posted` receives of 64 bytes at end b. */
static UNUSED void open_rc(struct pair *p, int posted)
{
	pair_init(p, IBV_QPT_RC);
	pair_open(p);
	for (int i = 0; i < posted; i++)
		post_receive(&p->b, 0, 64, 100 + (uint64_t)i);
}

/* Three WRs at once, of which the first fails: the others flush in order. */
static UNUSED void expect_break(struct pair *p, struct ibv_send_wr *first,
				enum ibv_wc_status status)
{
	struct ibv_send_wr second = *first, third = *first;

	first->next = &second;
	second.next = &third;
	second.wr_id = 2;
	third.wr_id = 3;
	post(&p->a, first);
	for (uint64_t i = 1; i <= 3; i++) {
		struct ibv_wc wc = wait_wc(p->a.cq);

		assert_int_equal(wc.wr_id, i);
		assert_string_equal(
			ibv_wc_status_str(wc.status),
			ibv_wc_status_str(i == 1 ? status
						 : IBV_WC_WR_FLUSH_ERR));
		assert_int_equal(wc.qp_num, p->a.qp->qp_num);
	}
	assert_int_equal(state_of(&p->a), IBV_QPS_ERR);
}

/* The next async event, acknowledged; waits ten seconds at most. */
static UNUSED enum ibv_event_type wait_event(struct ibv_context *context)
{
	struct ibv_async_event event;

	alarm(10); /* the call blocks */
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	alarm(0);
	ibv_ack_async_event(&event);
	return event.event_type;
}

#endif
