/* SPDX-License-Identifier: MIT */
/*
 * Faults on the data path of RC: the completion at the requester, the one at
 * the responder, and the states in which both QPs are left.
 */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <stdlib.h>

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
		/* Its keys are still to be named. */
		mr = malloc(sizeof(*mr));
		if (!mr)
			not_here("memory", ENOMEM);
		*mr = *side->mr;
		if (ibv_dereg_mr(side->mr))
			answer("dereg_mr failed");
		side->mr = mr;
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

/* --- no fault, and what follows one --- */

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

#define OK          "IBV_WC_SUCCESS"
#define FLUSH       "IBV_WC_WR_FLUSH_ERR"
#define PROT        "IBV_WC_LOC_PROT_ERR"
#define REM_ACCESS  "IBV_WC_REM_ACCESS_ERR"
#define REM_INV     "IBV_WC_REM_INV_REQ_ERR"
#define REM_OP      "IBV_WC_REM_OP_ERR"
#define BOTH        "ERR, ERR"
#define ONE_BREAKS  "ERR, RTS"
#define NONE_BREAKS "RTS, RTS"

#define LOCAL "IBTA 9.9.2: LOC_PROT_ERR; cards the same"
#define LOCAL_RXE \
	"LOC_QP_OP_ERR on 6.1; 6.12 loses the status, WR_FLUSH_ERR is left"
#define RECV      "IBTA 9.9: REM_OP_ERR, LOC_PROT_ERR; cards the same"
#define RECV_RXE  "the receive ends in LOC_QP_OP_ERR"
#define SHORT     "IBTA 9.9: REM_INV_REQ_ERR, LOC_LEN_ERR; cards the same"
#define SHORT_RXE "does not tell it from a receive that it can't read"
#define REMOTE    "IBTA 9.7.4: NAK remote access error; cards the same"
#define IMM_RXE   "the receive ends in REM_ACCESS_ERR"
#define QP_RIGHT  "REM_INV_REQ_ERR or REM_ACCESS_ERR, from memory of cards"

static const struct rule rules[] = {
	FAULT("wc.send", good, OK, OK, NONE_BREAKS, "A SEND", "IBTA 9.4.1",
	      .arg = SENDS, .arg2 = 8),
	FAULT("wc.send.long", good, OK, OK, NONE_BREAKS,
	      "A SEND of many packets", "IBTA 9.4.1", .arg = SENDS,
	      .arg2 = 30000),
	FAULT("wc.write", good, OK, "nothing", NONE_BREAKS, "A WRITE",
	      "IBTA 9.4.3", .arg = WRITES, .arg2 = 30000),
	FAULT("wc.read", good, OK, "nothing", NONE_BREAKS, "A READ",
	      "IBTA 9.4.4", .arg = READS, .arg2 = 30000),

	FAULT("wc.send.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from an lkey that is none", LOCAL, .rxe = LOCAL_RXE,
	      .arg = SENDS, .arg2 = BAD_LKEY),
	FAULT("wc.send.other_pd", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from another PD's MR", LOCAL, .rxe = LOCAL_RXE,
	      .arg = SENDS, .arg2 = OTHER_PD),
	FAULT("wc.send.outside", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from beyond the MR", LOCAL, .rxe = LOCAL_RXE, .arg = SENDS,
	      .arg2 = OUTSIDE),
	FAULT("wc.send.deregistered", local, PROT, "nothing", ONE_BREAKS,
	      "SEND from an MR that is gone", LOCAL, .rxe = LOCAL_RXE,
	      .arg = SENDS, .arg2 = DEREGISTERED),
	FAULT("wc.send.no_right", local, OK, OK, NONE_BREAKS,
	      "SEND from an MR without rights: reading needs none", LOCAL,
	      .arg = SENDS, .arg2 = NO_RIGHT),
	FAULT("wc.write.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "WRITE from an lkey that is none", LOCAL, .rxe = LOCAL_RXE,
	      .arg = WRITES, .arg2 = BAD_LKEY),
	FAULT("wc.write.outside", local, PROT, "nothing", ONE_BREAKS,
	      "WRITE from beyond the MR", LOCAL, .rxe = LOCAL_RXE,
	      .arg = WRITES, .arg2 = OUTSIDE),
	FAULT("wc.read.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "READ to an lkey that is none", LOCAL, .arg = READS,
	      .arg2 = BAD_LKEY),
	FAULT("wc.read.other_pd", local, PROT, "nothing", ONE_BREAKS,
	      "READ to another PD's MR", LOCAL, .arg = READS, .arg2 = OTHER_PD),
	FAULT("wc.read.no_right", local, PROT, "nothing", ONE_BREAKS,
	      "READ to an MR without LOCAL_WRITE", LOCAL, .arg = READS,
	      .arg2 = NO_RIGHT),
	FAULT("wc.read.outside", local, PROT, "nothing", ONE_BREAKS,
	      "READ to beyond the MR", LOCAL, .arg = READS, .arg2 = OUTSIDE),
	FAULT("wc.atomic.bad_lkey", local, PROT, "nothing", ONE_BREAKS,
	      "Atomic to an lkey that is none", LOCAL, .arg = ADDS,
	      .arg2 = BAD_LKEY),
	FAULT("wc.atomic.no_right", local, PROT, "nothing", ONE_BREAKS,
	      "Atomic to an MR without LOCAL_WRITE", LOCAL, .arg = ADDS,
	      .arg2 = NO_RIGHT),

	FAULT("wc.recv.bad_lkey", receive, REM_OP, PROT, BOTH,
	      "Receive into an lkey that is none", RECV, .rxe = RECV_RXE,
	      .arg = BAD_LKEY),
	FAULT("wc.recv.other_pd", receive, REM_OP, PROT, BOTH,
	      "Receive into another PD's MR", RECV, .rxe = RECV_RXE,
	      .arg = OTHER_PD),
	FAULT("wc.recv.no_right", receive, REM_OP, PROT, BOTH,
	      "Receive into an MR without LOCAL_WRITE", RECV, .rxe = RECV_RXE,
	      .arg = NO_RIGHT),
	FAULT("wc.recv.outside", receive, REM_OP, PROT, BOTH,
	      "Receive beyond the MR", RECV, .rxe = RECV_RXE, .arg = OUTSIDE),
	FAULT("wc.recv.deregistered", receive, REM_OP, PROT, BOTH,
	      "Receive into an MR that is gone since", RECV, .rxe = RECV_RXE,
	      .arg = DEREGISTERED),
	FAULT("wc.recv.short", receive_short, REM_INV, "IBV_WC_LOC_LEN_ERR",
	      BOTH, "Receive of fewer bytes than the SEND has", SHORT,
	      .rxe = SHORT_RXE, .arg = 4, .arg2 = 8),
	FAULT("wc.recv.short.long", receive_short, REM_INV,
	      "IBV_WC_LOC_LEN_ERR", BOTH,
	      "Receive too short for a SEND of many packets", SHORT,
	      .rxe = SHORT_RXE, .arg = 3000, .arg2 = 8000),

	FAULT("wc.write.bad_rkey", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to an rkey that is none", REMOTE, .arg = WRITES,
	      .arg2 = BAD_LKEY),
	FAULT("wc.write.rkey_other_pd", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to another PD's MR", REMOTE, .arg = WRITES,
	      .arg2 = OTHER_PD),
	FAULT("wc.write.remote_outside", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE beyond the remote MR", REMOTE, .arg = WRITES,
	      .arg2 = OUTSIDE),
	FAULT("wc.write.rkey_no_right", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to an MR without REMOTE_WRITE", REMOTE, .arg = WRITES,
	      .arg2 = NO_RIGHT),
	FAULT("wc.write.rkey_deregistered", remote, REM_ACCESS, "nothing", BOTH,
	      "WRITE to an MR that is gone", REMOTE, .arg = WRITES,
	      .arg2 = DEREGISTERED),
	FAULT("wc.read.bad_rkey", remote, REM_ACCESS, "nothing", BOTH,
	      "READ from an rkey that is none", REMOTE, .arg = READS,
	      .arg2 = BAD_LKEY),
	FAULT("wc.read.rkey_no_right", remote, REM_ACCESS, "nothing", BOTH,
	      "READ from an MR without REMOTE_READ", REMOTE, .arg = READS,
	      .arg2 = NO_RIGHT),
	FAULT("wc.read.remote_outside", remote, REM_ACCESS, "nothing", BOTH,
	      "READ beyond the remote MR", REMOTE, .arg = READS,
	      .arg2 = OUTSIDE),
	FAULT("wc.atomic.bad_rkey", remote, REM_ACCESS, "nothing", BOTH,
	      "Atomic on an rkey that is none", REMOTE, .arg = ADDS,
	      .arg2 = BAD_LKEY),
	FAULT("wc.atomic.rkey_no_right", remote, REM_ACCESS, "nothing", BOTH,
	      "Atomic on an MR without REMOTE_ATOMIC", REMOTE, .arg = ADDS,
	      .arg2 = NO_RIGHT),
	FAULT("wc.atomic.remote_outside", remote, REM_ACCESS, "nothing", BOTH,
	      "Atomic beyond the remote MR", REMOTE, .arg = ADDS,
	      .arg2 = OUTSIDE),
	FAULT("wc.write_with_imm.bad_rkey", remote, REM_ACCESS,
	      "IBV_WC_LOC_ACCESS_ERR", BOTH,
	      "WRITE with immediate to an rkey that is none",
	      "cards: LOC_ACCESS_ERR or LOC_PROT_ERR at the responder",
	      .rxe = IMM_RXE, .arg = WRITES_IMM, .arg2 = BAD_LKEY),

	FAULT("wc.write.qp_no_right", qp_right, REM_INV, "nothing", BOTH,
	      "WRITE to a QP without REMOTE_WRITE", QP_RIGHT, .arg = WRITES),
	FAULT("wc.read.qp_no_right", qp_right, REM_INV, "nothing", BOTH,
	      "READ from a QP without REMOTE_READ", QP_RIGHT, .arg = READS),
	FAULT("wc.atomic.qp_no_right", qp_right, REM_INV, "nothing", BOTH,
	      "Atomic on a QP without REMOTE_ATOMIC", QP_RIGHT, .arg = ADDS),
	FAULT("wc.write.empty_bad_rkey", empty_access, OK, "nothing",
	      NONE_BREAKS, "WRITE of no bytes: the rkey is not looked at",
	      "IBTA C9-88; cards differ", .arg = WRITES),
	FAULT("wc.read.empty_bad_rkey", empty_access, OK, "nothing",
	      NONE_BREAKS, "READ of no bytes: the rkey is not looked at",
	      "IBTA C9-88; cards differ", .arg = READS),

	RULE("wc.write.after_error.requester", after_error, FLUSH,
	     "What was posted behind a WR that failed is flushed",
	     "IBTA 10.3.1"),
	FAULT("wc.send_with_inv.bad_rkey", send_with_inv, OK, REM_INV,
	      "RTS, ERR", "SEND with invalidate of an rkey that is none",
	      "IBTA 9.9.3", .arg = 0),
};
const struct rules fault_rules = RULES(rules);
