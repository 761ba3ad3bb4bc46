/* SPDX-License-Identifier: MIT */
/* Completions: what is in them, which are made, what makes room. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <string.h>

#include "common/rules/rules.h"

/* --- what is in them ---------------------------------------------------- */

enum { OPCODE, BYTES, FLAGS, QPN, IMM };

/* arg: the request's opcode, arg2: what of its completion. */
static void sent(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_wc wc;

	fill_recv(p, 64);
	post_recv(p);
	fill_send(p, (enum ibv_wr_opcode)rule->arg, 8);
	post(p);
	if (wait_wc(p->a.send_cq, &wc, LIMIT_MS))
		answer("no success");
	if (rule->arg2 == QPN)
		answer(wc.qp_num == p->a.qp->qp_num && wc.wr_id == 1
			       ? "wr_id, qp_num"
			       : "others");
	if (rule->arg2 == BYTES)
		answer("%u", wc.byte_len);
	answer("%s", rules_wc_opcode((int)wc.opcode));
}

static void received(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_wc wc;

	memset(p->b.buffer, 0xee, 64);
	fill_recv(p, 64);
	p->b.recv_sge.addr += PAGE;
	post_recv(p);
	fill_send(p, (enum ibv_wr_opcode)rule->arg, 8);
	p->a.wr.imm_data = htobe32(0x11223344);
	post(p);
	if (wait_wc(p->b.recv_cq, &wc, LIMIT_MS))
		answer("no success");
	switch (rule->arg2) {
	case OPCODE:
		answer("%s", rules_wc_opcode((int)wc.opcode));
	case BYTES:
		answer("%u", wc.byte_len);
	case FLAGS:
		answer(wc.wc_flags & IBV_WC_GRH ? "GRH" : "no GRH");
	case IMM:
		answer(wc.wc_flags & IBV_WC_WITH_IMM ? "%#x" : "no imm",
		       be32toh(wc.imm_data));
	}
}

/* A WRITE_WITH_IMM takes a receive, and leaves its memory alone. */
static void imm_leaves_buffer(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	(void)rule;
	p->b.buffer[PAGE] = 7;
	fill_recv(p, 64);
	p->b.recv_sge.addr += PAGE;
	post_recv(p);
	fill_send(p, IBV_WR_RDMA_WRITE_WITH_IMM, 8);
	p->a.buffer[0] = 9;
	post(p);
	if (wait_status(p->b.recv_cq, LIMIT_MS))
		answer("no success");
	answer("buffer %d, target %d", p->b.buffer[PAGE], p->b.buffer[0]);
}

static void failed_fields(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_wc wc;

	(void)rule;
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	p->a.wr.wr.rdma.rkey = ~p->b.mr->rkey;
	post(p);
	if (wait_wc(p->a.send_cq, &wc, LIMIT_MS) <= 0)
		answer("no error");
	answer(wc.wr_id == 1 && wc.qp_num == p->a.qp->qp_num ? "wr_id, qp_num"
							     : "others");
}

/* --- atomics ------------------------------------------------------------ */

static void atomic_result(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	uint64_t *mine = (uint64_t *)p->a.buffer;
	uint64_t *theirs = (uint64_t *)p->b.buffer;

	*theirs = 5;
	fill_send(p, (enum ibv_wr_opcode)rule->arg, 8);
	p->a.wr.wr.atomic.compare_add = (uint64_t)rule->arg2;
	p->a.wr.wr.atomic.swap = 40;
	post(p);
	if (wait_status(p->a.send_cq, LIMIT_MS))
		answer("no success");
	answer("was %d, is %d", (int)*mine, (int)*theirs);
}

/* --- which are made ----------------------------------------------------- */

static void unsignaled(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	p->a.wr.send_flags = 0;
	if (rule->arg)
		p->a.wr.wr.rdma.rkey = ~p->b.mr->rkey;
	post(p);
	answer("%s", wc_name(wait_status(p->a.send_cq,
					 rule->arg ? LIMIT_MS : QUIET_MS)));
}

/* Unsignaled WRs to the queue's end, all of them done; is there room? */
static void unsignaled_room(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr *bad_wr;
	struct pair *p;

	rc.max_wr = 7;
	p = make_pair(open_world(), &rc);
	if (ibv_query_qp(p->a.qp, &attr, IBV_QP_CAP, &init))
		answer("no query");
	fill_recv(p, 8);
	post_recv(p);
	for (uint32_t i = 0; i < attr.cap.max_send_wr; i++) {
		bool last = i == attr.cap.max_send_wr - 1;

		fill_send(p, last ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 8);
		p->a.wr.send_flags = last && rule->arg ? IBV_SEND_SIGNALED : 0;
		post(p);
	}
	if (wait_status(p->b.recv_cq, LIMIT_MS))
		answer("no success");
	if (rule->arg && wait_status(p->a.send_cq, LIMIT_MS))
		answer("no success");
	/* The last ACK's way back. */
	wait_readable(-1, 50);
	answer_call(try_post(p, &bad_wr));
}

static void order(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_wc wc;

	(void)rule;
	for (int i = 0; i < 6; i++) {
		fill_send(p, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			  i & 2 ? 8 : 8192);
		post(p);
	}
	for (uint64_t i = 1; i <= 6; i++)
		if (wait_wc(p->a.send_cq, &wc, LIMIT_MS) || wc.wr_id != i)
			answer("%d came for %d", (int)wc.wr_id, (int)i);
	answer("in order");
}

/* Receives that a QP's end leaves behind: flushed in the order posted? */
static void flush_order(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	(void)rule;
	for (int i = 0; i < 4; i++) {
		fill_recv(p, 8);
		post_recv(p);
	}
	ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
	for (uint64_t i = 1; i <= 4; i++)
		if (wait_wc(p->b.recv_cq, &wc, LIMIT_MS) !=
			    IBV_WC_WR_FLUSH_ERR ||
		    wc.wr_id != i)
			answer("not in order");
	answer("in order");
}

/* An SRQ's receives belong to no QP: they stay. */
static void srq_not_flushed(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair *p;

	(void)rule;
	rc.srq = true;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8);
	post_recv(p);
	ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
	answer("%s", wc_name(wait_status(p->b.recv_cq, QUIET_MS)));
}

/* Two of three with one call, then the rest. */
static void poll_counts(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc[4];
	int first, second;

	(void)rule;
	for (int i = 0; i < 3; i++) {
		fill_recv(p, 8);
		post_recv(p);
	}
	ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
	wait_readable(-1, QUIET_MS);
	first = ibv_poll_cq(p->b.recv_cq, 2, wc);
	second = ibv_poll_cq(p->b.recv_cq, 4, wc);
	answer("%d, %d, %d", first, second, ibv_poll_cq(p->b.recv_cq, 4, wc));
}

#define WC "ibv_poll_cq(3)"
#define SENT(name, opcode, word)                      \
	RULE("wc.opcode." name, sent, "IBV_WC_" word, \
	     "The completion of a " name " says which", WC, .arg = opcode)

static const struct rule rules[] = {
	SENT("send", IBV_WR_SEND, "SEND"),
	SENT("send_with_imm", IBV_WR_SEND_WITH_IMM, "SEND"),
	SENT("write", IBV_WR_RDMA_WRITE, "RDMA_WRITE"),
	SENT("write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE"),
	SENT("read", IBV_WR_RDMA_READ, "RDMA_READ"),
	SENT("cmp_and_swp", IBV_WR_ATOMIC_CMP_AND_SWP, "COMP_SWAP"),
	SENT("fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD, "FETCH_ADD"),
	RULE("wc.opcode.received", received, "IBV_WC_RECV",
	     "A receive's completion says what came: a SEND", WC,
	     .arg = IBV_WR_SEND),
	RULE("wc.opcode.received_write", received, "IBV_WC_RECV_RDMA_WITH_IMM",
	     "A receive's completion says what came: a WRITE with immediate",
	     WC, .arg = IBV_WR_RDMA_WRITE_WITH_IMM),
	RULE("wc.byte_len.received", received, "8",
	     "byte_len is what came, not what was offered", WC,
	     .arg = IBV_WR_SEND, .arg2 = BYTES),
	RULE("wc.byte_len.received_write", received, "8",
	     "byte_len of a WRITE with immediate is what was written", WC,
	     .arg = IBV_WR_RDMA_WRITE_WITH_IMM, .arg2 = BYTES),
	RULE("wc.imm_data.send", received, "0x11223344",
	     "A SEND's immediate comes with its flag", WC,
	     .arg = IBV_WR_SEND_WITH_IMM, .arg2 = IMM),
	RULE("wc.imm_data.write", received, "0x11223344",
	     "A WRITE's immediate comes with its flag", WC,
	     .arg = IBV_WR_RDMA_WRITE_WITH_IMM, .arg2 = IMM),
	RULE("wc.imm_data.none", received, "no imm",
	     "A SEND without an immediate has no flag", WC, .arg = IBV_WR_SEND,
	     .arg2 = IMM),
	RULE("wc.write_with_imm.receive", imm_leaves_buffer,
	     "buffer 7, target 9",
	     "A WRITE with immediate leaves the receive's memory alone",
	     "IBTA 9.4.3"),
	RULE("wc.grh.rc", received, "no GRH", "An RC receive has no GRH flag",
	     "ibv_poll_cq(3): the flag is for UD",
	     .rxe = "sets it on every receive", .arg = IBV_WR_SEND,
	     .arg2 = FLAGS),
	RULE("wc.fields.success", sent, "wr_id, qp_num",
	     "wr_id and qp_num tell whose it is", WC, .arg = IBV_WR_SEND,
	     .arg2 = QPN),
	RULE("wc.fields.failure", failed_fields, "wr_id, qp_num",
	     "On an error wr_id, status and qp_num hold, others do not", WC),
	RULE("atomic.cmp_and_swp.equal", atomic_result, "was 5, is 40",
	     "Compare and swap: equal, swapped", "IBTA 9.4.5",
	     .arg = IBV_WR_ATOMIC_CMP_AND_SWP, .arg2 = 5),
	RULE("atomic.cmp_and_swp.other", atomic_result, "was 5, is 5",
	     "Compare and swap: another, left", "IBTA 9.4.5",
	     .arg = IBV_WR_ATOMIC_CMP_AND_SWP, .arg2 = 6),
	RULE("atomic.fetch_and_add", atomic_result, "was 5, is 12",
	     "Fetch and add", "IBTA 9.4.5", .arg = IBV_WR_ATOMIC_FETCH_AND_ADD,
	     .arg2 = 7),
	RULE("wc.unsignaled.success", unsignaled, "nothing",
	     "An unsignaled send that succeeds has no completion", WC),
	RULE("wc.unsignaled.failure", unsignaled, "IBV_WC_REM_ACCESS_ERR",
	     "An unsignaled send that fails has one", WC, .arg = 1),
	RULE("wc.unsignaled.room", unsignaled_room, "ENOMEM",
	     "Unsignaled sends hold their places until a later completion is polled",
	     "from memory of cards: never signaling fills the queue",
	     .rxe = "frees a place as soon as the send is done"),
	RULE("wc.signaled.room", unsignaled_room, "ok",
	     "Polling a completion frees the unsignaled sends before it",
	     "from memory of cards", .arg = 1),
	RULE("wc.order", order, "in order",
	     "A queue's completions come in the order of its posts",
	     "IBTA 10.8"),
	RULE("wc.flush.order", flush_order, "in order",
	     "Flushed receives come in the order of their posts", "IBTA 10.8"),
	RULE("wc.flush.srq", srq_not_flushed, "nothing",
	     "An SRQ's receives are not flushed with a QP", "IBTA 10.2.9"),
	RULE("poll_cq.counts", poll_counts, "2, 1, 0",
	     "poll_cq gives at most what was asked for, then the rest, then 0",
	     WC),
};
const struct rules completion_rules = RULES(rules);
