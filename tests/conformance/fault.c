/* SPDX-License-Identifier: MIT */
/*
 * Faults on the data path of RC: the completion at the requester, the one at
 * the responder, and the states in which both QPs are left.
 */
#include "tests/conformance/conform.h"

#include <errno.h>

#define BAD_KEY 0xdead00

/* --- local keys --------------------------------------------------------- */

enum { BAD_LKEY, OTHER_PD, OUTSIDE, NO_RIGHT, DEREGISTERED };

/* Makes the SGE of `side` one that may not be used. */
static void spoil(struct pair *p, struct side *side, struct ibv_sge *sge,
		  int how)
{
	struct ibv_pd *pd = how == OTHER_PD ? make_pd(p->w) : p->w->pd;
	struct ibv_mr *mr;

	switch (how) {
	case BAD_LKEY:
		sge->lkey = BAD_KEY;
		break;
	case OUTSIDE:
		sge->addr += BUFFER - 4;
		break;
	case NO_RIGHT: /* to be written to */
	case OTHER_PD:
		mr = make_mr(pd, side->buffer, BUFFER,
			     how == NO_RIGHT ? 0 : ALL_ACCESS);
		sge->lkey = mr->lkey;
		break;
	case DEREGISTERED:
		if (ibv_dereg_mr(side->mr))
			answer("dereg_mr failed");
		break;
	}
}

/* arg: the opcode, arg2: what is wrong with the local SGE. */
static void local(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_recv(p, 64);
	post_recv(p);
	fill_send(p, (enum ibv_wr_opcode)rule->arg, 8);
	spoil(p, &p->a, &p->a.sge, (int)rule->arg2);
	post(p);
	look(rule, p);
}

/* arg: what is wrong with the receive's SGE. */
static void receive(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_recv(p, 64);
	if (rule->arg == DEREGISTERED) {
		post_recv(p);
		spoil(p, &p->b, &p->b.recv_sge, DEREGISTERED);
	} else {
		spoil(p, &p->b, &p->b.recv_sge, (int)rule->arg);
		post_recv(p);
	}
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	look(rule, p);
}

static void receive_short(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_recv(p, (uint32_t)rule->arg);
	post_recv(p);
	fill_send(p, IBV_WR_SEND, (uint32_t)rule->arg2);
	post(p);
	look(rule, p);
}

/* --- remote keys -------------------------------------------------------- */

/* arg: the opcode, arg2: what is wrong with the rkey. */
static void remote(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)rule->arg;
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_sge target = { .addr = (uintptr_t)p->b.buffer,
				  .lkey = p->b.mr->rkey };
	struct ibv_mr *mr;

	/* The one that takes a receive. */
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		fill_recv(p, 64);
		post_recv(p);
	}
	if (rule->arg2 == NO_RIGHT) {
		mr = make_mr(p->w->pd, p->b.buffer, BUFFER,
			     IBV_ACCESS_LOCAL_WRITE);
		target.lkey = mr->rkey ? mr->rkey : mr->lkey;
	} else if (rule->arg2 == OUTSIDE && atomic) {
		target.addr += BUFFER;
	} else {
		spoil(p, &p->b, &target, (int)rule->arg2);
	}
	fill_send(p, opcode, 8);
	if (atomic) {
		p->a.wr.wr.atomic.rkey = target.lkey;
		p->a.wr.wr.atomic.remote_addr = target.addr;
	} else {
		p->a.wr.wr.rdma.rkey = target.lkey;
		p->a.wr.wr.rdma.remote_addr = target.addr;
	}
	post(p);
	look(rule, p);
}

/* arg: the opcode; the responder's QP opens nothing. */
static void qp_right(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	rc.qp_access = 0;
	p = make_pair(open_world(), &rc);
	fill_send(p, (enum ibv_wr_opcode)rule->arg, 8);
	post(p);
	look(rule, p);
}

static void empty_access(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_send(p, (enum ibv_wr_opcode)rule->arg, 0);
	p->a.wr.num_sge = 0;
	p->a.wr.wr.rdma.rkey = BAD_KEY;
	post(p);
	look(rule, p);
}

/* --- resources ---------------------------------------------------------- */

static void no_dest_rd(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	rc.max_dest_rd_atomic = 0;
	p = make_pair(open_world(), &rc);
	fill_send(p, (enum ibv_wr_opcode)rule->arg, 8);
	post(p);
	look(rule, p);
}

static void no_own_rd(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_send_wr *bad_wr;
	struct pair *p;
	int err;

	(void)rule;
	rc.max_rd_atomic = 0;
	p = make_pair(open_world(), &rc);
	fill_send(p, IBV_WR_RDMA_READ, 8);
	err = try_post(p, &bad_wr);
	if (err)
		answer_call(err);
	answer("%s", wc_name(wait_status(p->a.send_cq, 1500)));
}

/* No receive there; arg: rnr_retry, arg2: one comes after a while. */
static void rnr(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	rc.rnr_retry = (uint8_t)rule->arg;
	rc.min_rnr_timer = 14; /* 1.28 ms */
	p = make_pair(open_world(), &rc);
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	if (rule->arg2) {
		wait_readable(-1, 100);
		fill_recv(p, 8);
		post_recv(p);
	}
	look(rule, p);
}

/* --- the peer does not answer ------------------------------------------- */

enum { GONE, WRONG_QPN, NOT_READY, BROKEN, RESET, WRONG_GID };

static void no_answer(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct pair *p;

	rc.timeout = 8; /* 1 ms */
	rc.retry_cnt = 2;
	rc.a = rule->arg == WRONG_QPN ? IBV_QPS_INIT : IBV_QPS_RTS;
	rc.b = rule->arg == NOT_READY ? IBV_QPS_INIT : IBV_QPS_RTS;
	p = make_pair(open_world(), &rc);
	switch (rule->arg) {
	case GONE:
		ibv_destroy_qp(p->b.qp);
		break;
	case WRONG_QPN:
		attr = good_attr(p->w, p->b.qp);
		attr.dest_qp_num = 0xfffff0;
		attr.timeout = rc.timeout;
		attr.retry_cnt = rc.retry_cnt;
		attr.qp_state = IBV_QPS_RTR;
		ibv_modify_qp(
			p->a.qp, &attr,
			required_mask(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR));
		attr.qp_state = IBV_QPS_RTS;
		ibv_modify_qp(
			p->a.qp, &attr,
			required_mask(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS));
		break;
	case BROKEN:
	case RESET:
		attr.qp_state =
			rule->arg == RESET ? IBV_QPS_RESET : IBV_QPS_ERR;
		ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
		break;
	}
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
	answer("%s", wc_name(wait_status(p->a.send_cq, LIMIT_MS)));
}

/* retry_cnt 7: seven times, not for ever. */
static void seven_retries(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	(void)rule;
	rc.timeout = 8;
	rc.retry_cnt = 7;
	p = make_pair(open_world(), &rc);
	ibv_destroy_qp(p->b.qp);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
	answer("%s", wc_name(wait_status(p->a.send_cq, LIMIT_MS)));
}

static void psn(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	rc.psn_ahead = (int)rule->arg;
	rc.timeout = 8;
	rc.retry_cnt = 2;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8);
	post_recv(p);
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	look(rule, p);
}

/* arg: bytes; the requester's path MTU is the larger. */
static void mtu(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	rc.mtu_a = IBV_MTU_1024;
	rc.mtu_b = IBV_MTU_512;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8192);
	post_recv(p);
	fill_send(p, IBV_WR_SEND, (uint32_t)rule->arg);
	post(p);
	look(rule, p);
}

static void after_error(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	(void)rule;
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	p->a.wr.wr.rdma.rkey = BAD_KEY;
	post(p);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
	wait_status(p->a.send_cq, LIMIT_MS);
	answer("%s", wc_name(wait_status(p->a.send_cq, 1000)));
}

static void send_with_inv(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_recv(p, 64);
	post_recv(p);
	fill_send(p, IBV_WR_SEND_WITH_INV, 8);
	p->a.wr.invalidate_rkey = BAD_KEY;
	post(p);
	look(rule, p);
}

static void good(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_recv(p, BUFFER);
	post_recv(p);
	fill_send(p, (enum ibv_wr_opcode)rule->arg, (uint32_t)rule->arg2);
	post(p);
	look(rule, p);
}

/* --- the table ---------------------------------------------------------- */

#define SENDS      IBV_WR_SEND
#define WRITES     IBV_WR_RDMA_WRITE
#define WRITES_IMM IBV_WR_RDMA_WRITE_WITH_IMM
#define READS      IBV_WR_RDMA_READ
#define ADDS       IBV_WR_ATOMIC_FETCH_AND_ADD

/* Three cases of one fault; .rxe and the function's own words follow. */
#define FAULT(fault, function, requester, responder, states, words, says, ...) \
	RULE("wc." fault ".requester", function, requester,                    \
	     words ": the requester", says, .look = LOOK_REQUESTER,            \
	     .family = "wc." fault ".*", __VA_ARGS__),                         \
		RULE("wc." fault ".responder", function, responder,            \
		     words ": the responder", says, .look = LOOK_RESPONDER,    \
		     .family = "wc." fault ".*", __VA_ARGS__),                 \
		RULE("wc." fault ".states", function, states,                  \
		     words ": the QPs", says, .look = LOOK_STATES,             \
		     .family = "wc." fault ".*", __VA_ARGS__)
#define ONE(fault, function, status, words, says, ...)                \
	RULE("wc." fault ".requester", function, status, words, says, \
	     __VA_ARGS__)

#define OK          "IBV_WC_SUCCESS"
#define FLUSH       "IBV_WC_WR_FLUSH_ERR"
#define PROT        "IBV_WC_LOC_PROT_ERR"
#define REM_ACCESS  "IBV_WC_REM_ACCESS_ERR"
#define REM_INV     "IBV_WC_REM_INV_REQ_ERR"
#define REM_OP      "IBV_WC_REM_OP_ERR"
#define BOTH        "ERR, ERR"
#define ONE_BREAKS  "ERR, RTS"
#define NONE_BREAKS "RTS, RTS"

#define LOCAL "IBTA table 61: LOC_PROT_ERR; hardware the same"
#define LOCAL_RXE \
	"LOC_QP_OP_ERR on 6.1; 6.12 loses the status, WR_FLUSH_ERR is left"
#define RECV      "IBTA table 61, 62: REM_OP_ERR, LOC_PROT_ERR; hardware the same"
#define RECV_RXE  "the receive ends in LOC_QP_OP_ERR"
#define SHORT     "IBTA table 61, 62: REM_INV_REQ_ERR, LOC_LEN_ERR; hardware too"
#define SHORT_RXE "does not tell it from a receive that it can't read"
#define REMOTE    "IBTA 9.7.4.1: NAK remote access error; hardware the same"
#define IMM_RXE   "the receive ends in REM_ACCESS_ERR"
#define QP_RIGHT  "REM_INV_REQ_ERR or REM_ACCESS_ERR by card"
#define GONE_SPEC "IBTA C9-141: after retry_cnt tries; hardware the same"

static const struct rule rules[] = {
	FAULT("send", good, OK, OK, NONE_BREAKS, "A SEND", "IBTA 9.4.1",
	      .arg = SENDS, .arg2 = 8),
	FAULT("send.long", good, OK, OK, NONE_BREAKS, "A SEND of many packets",
	      "IBTA 9.4.1", .arg = SENDS, .arg2 = 30000),
	FAULT("write", good, OK, "nothing", NONE_BREAKS, "A WRITE",
	      "IBTA 9.4.3", .arg = WRITES, .arg2 = 30000),
	FAULT("read", good, OK, "nothing", NONE_BREAKS, "A READ", "IBTA 9.4.4",
	      .arg = READS, .arg2 = 30000),

	FAULT("send.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from an lkey that is none", LOCAL, .rxe = LOCAL_RXE,
	      .arg = SENDS, .arg2 = BAD_LKEY),
	FAULT("send.other_pd", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from another PD's MR", LOCAL, .rxe = LOCAL_RXE,
	      .arg = SENDS, .arg2 = OTHER_PD),
	FAULT("send.outside", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from beyond the MR", LOCAL, .rxe = LOCAL_RXE, .arg = SENDS,
	      .arg2 = OUTSIDE),
	FAULT("send.deregistered", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from an MR that is gone", LOCAL, .rxe = LOCAL_RXE,
	      .arg = SENDS, .arg2 = DEREGISTERED),
	FAULT("send.no_right", local, OK, OK, NONE_BREAKS,
	      "SEND from an MR without rights: reading needs none", LOCAL,
	      .arg = SENDS, .arg2 = NO_RIGHT),
	FAULT("write.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "WRITE from an lkey that is none", LOCAL, .rxe = LOCAL_RXE,
	      .arg = WRITES, .arg2 = BAD_LKEY),
	FAULT("write.outside", local, PROT, "nothing", ONE_BREAKS,
	      "WRITE from beyond the MR", LOCAL, .rxe = LOCAL_RXE,
	      .arg = WRITES, .arg2 = OUTSIDE),
	FAULT("read.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "READ to an lkey that is none", LOCAL, .arg = READS,
	      .arg2 = BAD_LKEY),
	FAULT("read.other_pd", local, PROT, "nothing", ONE_BREAKS,
	      "READ to another PD's MR", LOCAL, .arg = READS, .arg2 = OTHER_PD),
	FAULT("read.no_right", local, PROT, "nothing", ONE_BREAKS,
	      "READ to an MR without LOCAL_WRITE", LOCAL, .arg = READS,
	      .arg2 = NO_RIGHT),
	FAULT("read.outside", local, PROT, "nothing", ONE_BREAKS,
	      "READ to beyond the MR", LOCAL, .arg = READS, .arg2 = OUTSIDE),
	FAULT("atomic.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "Atomic to an lkey that is none", LOCAL, .arg = ADDS,
	      .arg2 = BAD_LKEY),
	FAULT("atomic.no_right", local, PROT, "nothing", ONE_BREAKS,
	      "Atomic to an MR without LOCAL_WRITE", LOCAL, .arg = ADDS,
	      .arg2 = NO_RIGHT),

	FAULT("recv.bad_lkey", receive, REM_OP, PROT, BOTH,
	      "Receive into an lkey that is none", RECV, .rxe = RECV_RXE,
	      .arg = BAD_LKEY),
	FAULT("recv.other_pd", receive, REM_OP, PROT, BOTH,
	      "Receive into another PD's MR", RECV, .rxe = RECV_RXE,
	      .arg = OTHER_PD),
	FAULT("recv.no_right", receive, REM_OP, PROT, BOTH,
	      "Receive into an MR without LOCAL_WRITE", RECV, .rxe = RECV_RXE,
	      .arg = NO_RIGHT),
	FAULT("recv.outside", receive, REM_OP, PROT, BOTH,
	      "Receive beyond the MR", RECV, .rxe = RECV_RXE, .arg = OUTSIDE),
	FAULT("recv.deregistered", receive, REM_OP, PROT, BOTH,
	      "Receive into an MR that is gone since", RECV, .rxe = RECV_RXE,
	      .arg = DEREGISTERED),
	FAULT("recv.short", receive_short, REM_INV, "IBV_WC_LOC_LEN_ERR", BOTH,
	      "Receive of fewer bytes than the SEND has", SHORT,
	      .rxe = SHORT_RXE, .arg = 4, .arg2 = 8),
	FAULT("recv.short.long", receive_short, REM_INV, "IBV_WC_LOC_LEN_ERR",
	      BOTH, "Receive too short for a SEND of many packets", SHORT,
	      .rxe = SHORT_RXE, .arg = 3000, .arg2 = 8000),

	FAULT("write.bad_rkey", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to an rkey that is none", REMOTE, .arg = WRITES,
	      .arg2 = BAD_LKEY),
	FAULT("write.rkey_other_pd", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to another PD's MR", REMOTE, .arg = WRITES,
	      .arg2 = OTHER_PD),
	FAULT("write.remote_outside", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE beyond the remote MR", REMOTE, .arg = WRITES,
	      .arg2 = OUTSIDE),
	FAULT("write.rkey_no_right", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to an MR without REMOTE_WRITE", REMOTE, .arg = WRITES,
	      .arg2 = NO_RIGHT),
	FAULT("write.rkey_deregistered", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to an MR that is gone", REMOTE, .arg = WRITES,
	      .arg2 = DEREGISTERED),
	FAULT("read.bad_rkey", remote, REM_ACCESS, "nothing", BOTH,
	      "READ from an rkey that is none", REMOTE, .arg = READS,
	      .arg2 = BAD_LKEY),
	FAULT("read.rkey_no_right", remote, REM_ACCESS, "nothing", BOTH,
	      "READ from an MR without REMOTE_READ", REMOTE, .arg = READS,
	      .arg2 = NO_RIGHT),
	FAULT("read.remote_outside", remote, REM_ACCESS, "nothing", BOTH,
	      "READ beyond the remote MR", REMOTE, .arg = READS,
	      .arg2 = OUTSIDE),
	FAULT("atomic.bad_rkey", remote, REM_ACCESS, "nothing", BOTH,
	      "Atomic on an rkey that is none", REMOTE, .arg = ADDS,
	      .arg2 = BAD_LKEY),
	FAULT("atomic.rkey_no_right", remote, REM_ACCESS, "nothing", BOTH,
	      "Atomic on an MR without REMOTE_ATOMIC", REMOTE, .arg = ADDS,
	      .arg2 = NO_RIGHT),
	FAULT("atomic.remote_outside", remote, REM_ACCESS, "nothing", BOTH,
	      "Atomic beyond the remote MR", REMOTE, .arg = ADDS,
	      .arg2 = OUTSIDE),
	FAULT("write_with_imm.bad_rkey", remote, REM_ACCESS,
	      "IBV_WC_LOC_ACCESS_ERR", BOTH,
	      "WRITE with immediate to an rkey that is none",
	      "LOC_ACCESS_ERR or LOC_PROT_ERR at the responder by card",
	      .rxe = IMM_RXE, .arg = WRITES_IMM, .arg2 = BAD_LKEY),

	FAULT("write.qp_no_right", qp_right, REM_INV, "nothing", BOTH,
	      "WRITE to a QP without REMOTE_WRITE", QP_RIGHT, .arg = WRITES),
	FAULT("read.qp_no_right", qp_right, REM_INV, "nothing", BOTH,
	      "READ from a QP without REMOTE_READ", QP_RIGHT, .arg = READS),
	FAULT("atomic.qp_no_right", qp_right, REM_INV, "nothing", BOTH,
	      "Atomic on a QP without REMOTE_ATOMIC", QP_RIGHT, .arg = ADDS),
	FAULT("write.empty_bad_rkey", empty_access, OK, "nothing", NONE_BREAKS,
	      "WRITE of no bytes: the rkey is not looked at",
	      "IBTA C9-88; cards differ", .arg = WRITES),
	FAULT("read.empty_bad_rkey", empty_access, OK, "nothing", NONE_BREAKS,
	      "READ of no bytes: the rkey is not looked at",
	      "IBTA C9-88; cards differ", .arg = READS),

	FAULT("read.dest_rd_atomic_0", no_dest_rd, REM_INV, "nothing", BOTH,
	      "READ to a QP with max_dest_rd_atomic 0", "IBTA 9.7.4.1",
	      .arg = READS),
	FAULT("atomic.dest_rd_atomic_0", no_dest_rd, REM_INV, "nothing", BOTH,
	      "Atomic to a QP with max_dest_rd_atomic 0", "IBTA 9.7.4.1",
	      .arg = ADDS),
	ONE("read.rd_atomic_0", no_own_rd, "IBV_WC_LOC_QP_OP_ERR",
	    "READ by a QP with max_rd_atomic 0 breaks it",
	    "left open: to wait for ever is allowed", .rxe = "waits for ever"),

	FAULT("send.rnr", rnr, "IBV_WC_RNR_RETRY_EXC_ERR", "nothing",
	      ONE_BREAKS, "SEND without a receive, rnr_retry 1",
	      "IBTA 9.7.5.2.8; hardware the same", .arg = 1),
	ONE("send.rnr_0", rnr, "IBV_WC_RNR_RETRY_EXC_ERR",
	    "SEND without a receive, rnr_retry 0: at once",
	    "IBTA 9.7.5.2.8; hardware the same"),
	ONE("send.rnr_7", rnr, OK,
	    "SEND without a receive, rnr_retry 7: until there is one",
	    "IBTA 9.7.5.2.8; hardware the same", .arg = 7, .arg2 = 1),

	ONE("write.peer_gone", no_answer, "IBV_WC_RETRY_EXC_ERR",
	    "The peer's QP is destroyed", GONE_SPEC, .arg = GONE),
	ONE("write.wrong_qpn", no_answer, "IBV_WC_RETRY_EXC_ERR",
	    "There is no such QP", GONE_SPEC, .arg = WRONG_QPN),
	ONE("write.peer_in_init", no_answer, "IBV_WC_RETRY_EXC_ERR",
	    "The peer is in INIT", GONE_SPEC, .arg = NOT_READY),
	ONE("write.peer_in_err", no_answer, "IBV_WC_RETRY_EXC_ERR",
	    "The peer is in ERR", GONE_SPEC, .arg = BROKEN),
	ONE("write.peer_in_reset", no_answer, "IBV_WC_RETRY_EXC_ERR",
	    "The peer is in RESET", GONE_SPEC, .arg = RESET),
	ONE("write.retry_cnt_7", seven_retries, "IBV_WC_RETRY_EXC_ERR",
	    "retry_cnt 7 is seven tries", "IBTA C9-141; hardware the same",
	    .rxe = "7 is for ever"),
	FAULT("send.psn_ahead", psn, "IBV_WC_RETRY_EXC_ERR", "nothing",
	      ONE_BREAKS, "The requester's PSN is ahead by 5", "IBTA 9.7.4.1",
	      .arg = 5),
	FAULT("send.psn_behind", psn, "IBV_WC_RETRY_EXC_ERR", "nothing",
	      ONE_BREAKS, "The requester's PSN is behind by 5",
	      "IBTA 9.7.4.1: a duplicate; not delivered", .arg = -5),
	FAULT("send.mtu_differs", mtu, REM_INV, FLUSH, BOTH,
	      "Path MTUs differ, the message has many packets",
	      "IBTA 9.8.3.2.2: an invalid request",
	      .rxe = "6.1 delivers it; 6.12: REM_INV_REQ_ERR on both sides",
	      .arg = 4000),
	FAULT("send.mtu_differs.one", mtu, OK, OK, NONE_BREAKS,
	      "Path MTUs differ, the message has one small packet",
	      "IBTA 9.8.3.2.2", .arg = 100),
	ONE("write.after_error", after_error, FLUSH,
	    "What was posted behind a WR that failed is flushed",
	    "IBTA 10.3.1.7"),
	FAULT("send_with_inv.bad_rkey", send_with_inv, OK, REM_INV, "RTS, ERR",
	      "SEND with invalidate of an rkey that is none", "IBTA C9-221",
	      .arg = 0),
};
const struct rules fault_rules = RULES(rules);
