/* SPDX-License-Identifier: MIT */
/*
 * RC without an answer, or without what an answer needs: retries, receivers
 * that are not ready, PSNs and MTUs that differ, no room for READs.
 */
#include "tests/conformance/conform.h"

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

/* --- the table --- */

#define READS       IBV_WR_RDMA_READ
#define ADDS        IBV_WR_ATOMIC_FETCH_AND_ADD
#define OK          "IBV_WC_SUCCESS"
#define FLUSH       "IBV_WC_WR_FLUSH_ERR"
#define REM_INV     "IBV_WC_REM_INV_REQ_ERR"
#define BOTH        "ERR, ERR"
#define ONE_BREAKS  "ERR, RTS"
#define NONE_BREAKS "RTS, RTS"
#define GONE_SPEC   "IBTA 9.9.2: after retry_cnt tries; cards the same"

static const struct rule rules[] = {
	FAULT("wc.read.dest_rd_atomic_0", no_dest_rd, REM_INV, "nothing", BOTH,
	      "READ to a QP with max_dest_rd_atomic 0", "IBTA 9.7.4",
	      .arg = READS),
	FAULT("wc.atomic.dest_rd_atomic_0", no_dest_rd, REM_INV, "nothing",
	      BOTH, "Atomic to a QP with max_dest_rd_atomic 0", "IBTA 9.7.4",
	      .arg = ADDS),
	RULE("wc.read.rd_atomic_0.requester", no_own_rd, "IBV_WC_LOC_QP_OP_ERR",
	     "READ by a QP with max_rd_atomic 0 breaks it",
	     "left open: to wait for ever is allowed", .rxe = "waits for ever"),

	FAULT("wc.send.rnr", rnr, "IBV_WC_RNR_RETRY_EXC_ERR", "nothing",
	      ONE_BREAKS, "SEND without a receive, rnr_retry 1",
	      "IBTA 9.7.5; cards the same", .arg = 1),
	RULE("wc.send.rnr_0.requester", rnr, "IBV_WC_RNR_RETRY_EXC_ERR",
	     "SEND without a receive, rnr_retry 0: at once",
	     "IBTA 9.7.5; cards the same"),
	RULE("wc.send.rnr_7.requester", rnr, OK,
	     "SEND without a receive, rnr_retry 7: until there is one",
	     "IBTA 9.7.5; cards the same", .arg = 7, .arg2 = 1),

	RULE("wc.write.peer_gone.requester", no_answer, "IBV_WC_RETRY_EXC_ERR",
	     "The peer's QP is destroyed", GONE_SPEC, .arg = GONE),
	RULE("wc.write.wrong_qpn.requester", no_answer, "IBV_WC_RETRY_EXC_ERR",
	     "There is no such QP", GONE_SPEC, .arg = WRONG_QPN),
	RULE("wc.write.peer_in_init.requester", no_answer,
	     "IBV_WC_RETRY_EXC_ERR", "The peer is in INIT", GONE_SPEC,
	     .arg = NOT_READY),
	RULE("wc.write.peer_in_err.requester", no_answer,
	     "IBV_WC_RETRY_EXC_ERR", "The peer is in ERR", GONE_SPEC,
	     .arg = BROKEN),
	RULE("wc.write.peer_in_reset.requester", no_answer,
	     "IBV_WC_RETRY_EXC_ERR", "The peer is in RESET", GONE_SPEC,
	     .arg = RESET),
	RULE("wc.write.retry_cnt_7.requester", seven_retries,
	     "IBV_WC_RETRY_EXC_ERR", "retry_cnt 7 is seven tries",
	     "IBTA 9.9.2, from memory of cards too", .rxe = "7 is for ever"),
	FAULT("wc.send.psn_ahead", psn, "IBV_WC_RETRY_EXC_ERR", "nothing",
	      ONE_BREAKS, "The requester's PSN is ahead by 5", "IBTA 9.7.4",
	      .arg = 5),
	FAULT("wc.send.psn_behind", psn, "IBV_WC_RETRY_EXC_ERR", "nothing",
	      ONE_BREAKS, "The requester's PSN is behind by 5",
	      "IBTA 9.7.4: a duplicate; not delivered", .arg = -5),
	FAULT("wc.send.mtu_differs", mtu, REM_INV, FLUSH, BOTH,
	      "Path MTUs differ, the message has many packets",
	      "IBTA 9.7.4: an invalid request",
	      .rxe = "6.1 delivers it; 6.12: REM_INV_REQ_ERR on both sides",
	      .arg = 4000),
	FAULT("wc.send.mtu_differs.one", mtu, OK, OK, NONE_BREAKS,
	      "Path MTUs differ, the message has one small packet",
	      "IBTA 9.7.4", .arg = 100),
};
const struct rules silence_rules = RULES(rules);
