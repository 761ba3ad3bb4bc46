/* SPDX-License-Identifier: MIT */
/* Two connected QPs of one process, and waiting for what they do. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "common/rules/rules.h"

struct pair_wish wish(enum ibv_qp_type type)
{
	return (struct pair_wish){
		.type = type,
		.qp_access = REMOTE_ACCESS,
		.mr_access = ALL_ACCESS,
		.timeout = 14, /* 67 ms: no spurious retries */
		.retry_cnt = 3,
		.rnr_retry = 1,
		.min_rnr_timer = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.mtu_a = IBV_MTU_1024,
		.mtu_b = IBV_MTU_1024,
		.cqe = 16,
		.max_wr = 8,
		.a = IBV_QPS_RTS,
		.b = IBV_QPS_RTS,
	};
}

static void make_side(struct world *w, struct side *s,
		      const struct pair_wish *wish, bool responder)
{
	struct ibv_qp_init_attr init;

	s->buffer = get_memory(BUFFER, PROT_READ | PROT_WRITE);
	s->mr = make_mr(w->pd, s->buffer, BUFFER, wish->mr_access);
	if (wish->channel) {
		s->channel = make_channel(w);
		fcntl(s->channel->fd, F_SETFL, O_NONBLOCK);
	}
	s->send_cq = make_cq(w, wish->cqe, s->channel);
	s->recv_cq = make_cq(w, wish->cqe, s->channel);
	init = qp_init(wish->type, s->send_cq);
	init.recv_cq = s->recv_cq;
	init.cap.max_send_wr = wish->max_wr;
	init.cap.max_recv_wr = wish->max_wr;
	if (wish->srq && responder)
		init.srq = s->srq =
			make_srq(w->pd, wish->max_wr, 0, &s->srq_given);
	s->qp = make_qp(w->pd, &init);
	s->given = init.cap;
	if (wish->type == IBV_QPT_UD)
		s->ah = make_ah(w, w->pd);
}

static struct ibv_qp_attr attr_of(const struct world *w,
				  const struct pair_wish *wish,
				  const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = good_attr(w, peer);

	attr.qp_access_flags = (unsigned int)wish->qp_access;
	attr.timeout = wish->timeout;
	attr.retry_cnt = wish->retry_cnt;
	attr.rnr_retry = wish->rnr_retry;
	attr.min_rnr_timer = wish->min_rnr_timer;
	return attr;
}

struct pair *make_pair(struct world *w, const struct pair_wish *wish)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct ibv_qp_attr attr;

	if (!p)
		not_here("memory", ENOMEM);
	p->w = w;
	make_side(w, &p->a, wish, false);
	make_side(w, &p->b, wish, true);
	attr = attr_of(w, wish, p->a.qp);
	attr.path_mtu = wish->mtu_b;
	attr.max_dest_rd_atomic = wish->max_dest_rd_atomic;
	bring(p->b.qp, attr, wish->b);
	attr = attr_of(w, wish, p->b.qp);
	attr.path_mtu = wish->mtu_a;
	attr.max_rd_atomic = wish->max_rd_atomic;
	attr.sq_psn = (uint32_t)((int)attr.sq_psn + wish->psn_ahead) & 0xffffff;
	bring(p->a.qp, attr, wish->a);
	return p;
}

struct pair *plain_pair(enum ibv_qp_type type)
{
	struct pair_wish plain = wish(type);

	return make_pair(open_world(), &plain);
}

static void fill_target(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr *wr = &p->a.wr;

	if (p->a.ah) {
		wr->wr.ud.ah = p->a.ah;
		wr->wr.ud.remote_qpn = p->b.qp->qp_num;
		wr->wr.ud.remote_qkey = QKEY;
	} else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = (uintptr_t)p->b.buffer;
		wr->wr.atomic.rkey = p->b.mr->rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = (uintptr_t)p->b.buffer;
		wr->wr.rdma.rkey = p->b.mr->rkey;
	}
}

void fill_send(struct pair *p, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct side *a = &p->a;

	a->sge = (struct ibv_sge){
		.addr = (uintptr_t)a->buffer,
		.length = length,
		.lkey = a->mr->lkey,
	};
	a->wr = (struct ibv_send_wr){
		.wr_id = a->wr.wr_id + 1,
		.sg_list = &a->sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	fill_target(p, opcode);
}

void fill_recv(struct pair *p, uint32_t length)
{
	struct side *b = &p->b;

	b->recv_sge = (struct ibv_sge){
		.addr = (uintptr_t)b->buffer,
		.length = length,
		.lkey = b->mr->lkey,
	};
	b->recv_wr = (struct ibv_recv_wr){
		.wr_id = b->recv_wr.wr_id + 1,
		.sg_list = &b->recv_sge,
		.num_sge = 1,
	};
}

int try_post(struct pair *p, struct ibv_send_wr **bad_wr)
{
	*bad_wr = NULL;
	return ibv_post_send(p->a.qp, &p->a.wr, bad_wr);
}

int try_post_recv(struct pair *p, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = NULL;
	if (p->b.srq)
		return ibv_post_srq_recv(p->b.srq, &p->b.recv_wr, bad_wr);
	return ibv_post_recv(p->b.qp, &p->b.recv_wr, bad_wr);
}

void post(struct pair *p)
{
	struct ibv_send_wr *bad_wr;
	int err = try_post(p, &bad_wr);

	if (err)
		answer("post_send: %s", call_name(err));
}

void post_recv(struct pair *p)
{
	struct ibv_recv_wr *bad_wr;
	int err = try_post_recv(p, &bad_wr);

	if (err)
		answer("post_recv: %s", call_name(err));
}

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Gives the processor away between two looks: two cores and an engine. */
static void pause_a_little(void)
{
	poll(NULL, 0, 1);
}

int wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, int limit_ms)
{
	uint64_t end = now_ms() + (uint64_t)limit_ms;

	for (;;) {
		int count = ibv_poll_cq(cq, 1, wc);

		if (count < 0)
			answer("ibv_poll_cq: %d", count);
		if (count)
			return wc->status;
		if (now_ms() >= end)
			return NOTHING;
		pause_a_little();
	}
}

int wait_status(struct ibv_cq *cq, int limit_ms)
{
	struct ibv_wc wc;

	return wait_wc(cq, &wc, limit_ms);
}

bool wait_readable(int fd, int limit_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, limit_ms) == 1;
}

int wait_async(struct ibv_context *context, int limit_ms)
{
	struct ibv_async_event event;

	if (!wait_readable(context->async_fd, limit_ms))
		return NOTHING;
	if (ibv_get_async_event(context, &event))
		return NOTHING;
	ibv_ack_async_event(&event);
	return (int)event.event_type;
}

enum ibv_qp_state settled_state(struct ibv_qp *qp)
{
	uint64_t end = now_ms() + QUIET_MS;
	enum ibv_qp_state state;

	while ((state = state_of(qp)) == IBV_QPS_RTS && now_ms() < end)
		pause_a_little();
	return state;
}

void look(const struct rule *rule, struct pair *p)
{
	int requester = wait_status(p->a.send_cq, LIMIT_MS);

	switch (rule->look) {
	case LOOK_REQUESTER:
		answer("%s", wc_name(requester));
	case LOOK_RESPONDER:
		answer("%s", wc_name(wait_status(p->b.recv_cq, QUIET_MS)));
	case LOOK_STATES:
		answer("%s, %s", rules_qp_state(settled_state(p->a.qp)),
		       rules_qp_state(settled_state(p->b.qp)));
	}
	abort();
}
