/* SPDX-License-Identifier: MIT */
/* Posting: what the call itself answers, and what *bad_wr then names. */
#include "tests/conformance/conform.h"

#include <errno.h>

/* Sends go to `type`'s a; what a post of one WR answers. */
static _Noreturn void answer_post(struct pair *p)
{
	struct ibv_send_wr *bad_wr;
	int err = try_post(p, &bad_wr);

	if (!err)
		answer("ok");
	answer("%s, bad_wr %s", call_name(err),
	       bad_wr == &p->a.wr ? "named" : "not named");
}

static _Noreturn void answer_post_recv(struct pair *p)
{
	struct ibv_recv_wr *bad_wr;
	int err = try_post_recv(p, &bad_wr);

	if (!err)
		answer("ok");
	answer("%s, bad_wr %s", call_name(err),
	       bad_wr == &p->b.recv_wr ? "named" : "not named");
}

/* --- states ------------------------------------------------------------- */

static struct pair *pair_in(enum ibv_qp_state a, enum ibv_qp_state b)
{
	struct pair_wish rc = wish(IBV_QPT_RC);

	rc.a = a;
	rc.b = b;
	return make_pair(open_world(), &rc);
}

static void send_in(const struct rule *rule)
{
	struct pair *p = pair_in((enum ibv_qp_state)rule->arg, IBV_QPS_RTS);

	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	answer_post(p);
}

/* Whether what was refused runs when the QP gets to RTS. */
static void send_early(const struct rule *rule)
{
	struct pair *p = pair_in(IBV_QPS_RTR, IBV_QPS_RTS);
	struct ibv_qp_attr attr = good_attr(p->w, p->b.qp);
	struct ibv_send_wr *bad_wr;
	struct ibv_wc wc;

	(void)rule;
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	if (!try_post(p, &bad_wr))
		answer("was not refused");
	attr.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(p->a.qp, &attr,
		      required_mask(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS));
	fill_send(p, IBV_WR_RDMA_WRITE, 8); /* wr_id 2 */
	post(p);
	if (wait_wc(p->a.send_cq, &wc, LIMIT_MS))
		answer("no completion");
	answer(wc.wr_id == 2 ? "was not queued" : "was queued, and runs");
}

static void recv_in(const struct rule *rule)
{
	struct pair *p = pair_in(IBV_QPS_RTS, (enum ibv_qp_state)rule->arg);

	fill_recv(p, 8);
	answer_post_recv(p);
}

static void flushed(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ibv_modify_qp(rule->arg ? p->b.qp : p->a.qp, &attr, IBV_QP_STATE))
		answer("no ERR");
	/* Not in the wake of the change itself. */
	wait_readable(-1, QUIET_MS);
	fill_recv(p, 8);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	if (rule->arg)
		post_recv(p);
	else
		post(p);
	answer("%s", wc_name(wait_status(
			     rule->arg ? p->b.recv_cq : p->a.send_cq, 1000)));
}

/* --- room --------------------------------------------------------------- */

/* Posts until it is refused: how many more than the queue holds, and why. */
static void send_full(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_send_wr *bad_wr;
	int taken, err = 0;
	struct pair *p;

	(void)rule;
	rc.max_wr = 10;
	rc.a = IBV_QPS_SQD; /* so that none of them leaves */
	p = make_pair(open_world(), &rc);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	for (taken = 0; taken < 100 && !err; taken++)
		err = try_post(p, &bad_wr);
	if (!err)
		answer("takes 100");
	answer("%s after %s, bad_wr %s", call_name(err),
	       (uint32_t)taken - 1 == p->a.given.max_send_wr ? "max_send_wr"
							     : "more",
	       bad_wr == &p->a.wr ? "named" : "not named");
}

static void recv_full(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_recv_wr *bad_wr;
	int taken, err = 0;
	uint32_t max;
	struct pair *p;

	rc.max_wr = 10;
	rc.srq = rule->arg;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8);
	for (taken = 0; taken < 100 && !err; taken++)
		err = try_post_recv(p, &bad_wr);
	if (!err)
		answer("takes 100");
	max = p->b.srq ? p->b.srq_given : p->b.given.max_recv_wr;
	answer("%s after %s, bad_wr %s", call_name(err),
	       (uint32_t)taken - 1 == max ? "max_wr" : "more",
	       bad_wr == &p->b.recv_wr ? "named" : "not named");
}

/* Three WRs, the second of them wrong. */
static void send_list(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_send_wr wrs[3], *bad_wr = NULL;
	int err, done = 0;

	(void)rule;
	for (int i = 0; i < 3; i++) {
		fill_send(p, IBV_WR_RDMA_WRITE, 8);
		wrs[i] = p->a.wr;
		wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
	}
	wrs[1].num_sge = 100;
	err = ibv_post_send(p->a.qp, wrs, &bad_wr);
	while (wait_status(p->a.send_cq, done ? QUIET_MS : LIMIT_MS) == 0)
		done++;
	answer("%s, bad_wr %s, %d done", call_name(err),
	       bad_wr == &wrs[1] ? "the second" : "another", done);
}

static void zero_cap(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	(void)rule;
	rc.max_wr = 0;
	p = make_pair(open_world(), &rc);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	answer_post(p);
}

/* --- SGEs --------------------------------------------------------------- */

static void send_sges(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_sge sges[40] = { { .addr = 0 } };

	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	p->a.wr.sg_list = sges;
	p->a.wr.num_sge = (int)rule->arg;
	answer_post(p);
}

static void recv_sges(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_sge sges[40] = { { .addr = 0 } };
	struct pair *p;

	rc.srq = rule->arg2;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8);
	p->b.recv_wr.sg_list = sges;
	p->b.recv_wr.num_sge = (int)rule->arg;
	answer_post_recv(p);
}

enum { NO_SGE, EMPTY_SGE };

static void empty(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_wc wc;

	fill_recv(p, 8);
	post_recv(p);
	fill_send(p, IBV_WR_SEND, 0);
	p->a.sge.lkey = 0;
	p->a.wr.num_sge = rule->arg == NO_SGE ? 0 : 1;
	post(p);
	if (wait_wc(p->b.recv_cq, &wc, LIMIT_MS))
		answer("%s", wc_name(wait_status(p->a.send_cq, QUIET_MS)));
	answer("%u bytes", wc.byte_len);
}

/* --- what a WR may not say ---------------------------------------------- */

static void inline_data(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_send(p, (enum ibv_wr_opcode)rule->arg2, (uint32_t)rule->arg);
	p->a.wr.send_flags |= IBV_SEND_INLINE;
	answer_post(p);
}

/* Inline data needs no MR, and is taken when the call is made. */
static void inline_taken(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	(void)rule;
	rc.a = IBV_QPS_RTS;
	p = make_pair(open_world(), &rc);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	p->a.sge.lkey = 0xdead;
	p->a.wr.send_flags |= IBV_SEND_INLINE;
	p->a.buffer[0] = 1;
	post(p);
	p->a.buffer[0] = 2;
	if (wait_status(p->a.send_cq, LIMIT_MS))
		answer("no success");
	answer("byte %d", p->b.buffer[0]);
}

static void atomic(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_send(p, IBV_WR_ATOMIC_FETCH_AND_ADD, (uint32_t)rule->arg);
	p->a.wr.wr.atomic.remote_addr += (uint64_t)rule->arg2;
	answer_post(p);
}

/* arg: the QP's type, arg2: the opcode. */
static void opcode(const struct rule *rule)
{
	struct pair *p = plain_pair((enum ibv_qp_type)rule->arg);
	struct ibv_send_wr *bad_wr;
	int err;

	fill_send(p, (enum ibv_wr_opcode)rule->arg2, 8);
	err = try_post(p, &bad_wr);
	if (err)
		answer_call(err);
	answer("ok, then %s", wc_name(wait_status(p->a.send_cq, 1000)));
}

static void recv_with_srq(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_recv_wr *bad_wr = NULL;
	struct pair *p;
	int err;

	(void)rule;
	rc.srq = true;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8);
	err = ibv_post_recv(p->b.qp, &p->b.recv_wr, &bad_wr);
	answer_call(err);
}

static void no_bad_wr(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	fill_recv(p, 8);
	p->a.wr.num_sge = 100;
	p->b.recv_wr.num_sge = 100;
	if (rule->arg)
		answer_call(ibv_post_recv(p->b.qp, &p->b.recv_wr, NULL));
	answer_call(ibv_post_send(p->a.qp, &p->a.wr, NULL));
}

static void no_ah(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_UD);

	(void)rule;
	fill_send(p, IBV_WR_SEND, 8);
	p->a.wr.wr.ud.ah = NULL;
	answer_post(p);
}

/* --- ibv_wr_* ----------------------------------------------------------- */

enum { WR_GOOD, WR_SGES, WR_INLINE, WR_ABORT, WR_RESET };

static struct ibv_qp *extended_qp(struct world *w, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 7, 7, 2, 2, 32 },
		.qp_type = IBV_QPT_RC,
		.pd = w->pd,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(w->context, &init);

	if (!qp)
		not_here("ibv_create_qp_ex", errno);
	return qp;
}

static void wr_calls(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq *cq = make_cq(w, 8, NULL);
	struct ibv_qp *qp = extended_qp(w, cq);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	uint8_t *memory = get_memory(PAGE, 3);
	struct ibv_mr *mr = make_mr(w->pd, memory, PAGE, ALL_ACCESS);
	struct ibv_sge sges[40] = { { .addr = 0 } };

	if (rule->arg != WR_RESET)
		bring(qp, good_attr(w, qp), IBV_QPS_RTS);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory);
	if (rule->arg == WR_SGES)
		ibv_wr_set_sge_list(ex, 40, sges);
	else if (rule->arg == WR_INLINE)
		ibv_wr_set_inline_data(ex, memory, PAGE);
	else
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
	if (rule->arg == WR_ABORT) {
		ibv_wr_abort(ex);
		answer("%s", wc_name(wait_status(cq, QUIET_MS)));
	}
	answer_call(ibv_wr_complete(ex));
}

#define EARLY "IBTA C10-96: an immediate error; cards answer 0"
#define RXE_EARLY \
	"EINVAL from the doorbell: the WR is in the ring, and runs later"
#define FULL       "ibv_post_send(3); cards the same"
#define SIZE       "ibv_post_send(3); cards the same"
#define OPCODE     "the service lacks it; mlx5 refuses the post, from memory"
#define RXE_OPCODE "taken, then the QP breaks; 6.12 loses the status on the way"
#define UB         "undefined"

static const struct rule rules[] = {
	RULE("post_send.in_reset", send_in, "EINVAL, bad_wr named",
	     "No sends in RESET", EARLY, .rxe = RXE_EARLY,
	     .arg = IBV_QPS_RESET),
	RULE("post_send.in_init", send_in, "EINVAL, bad_wr named",
	     "No sends in INIT", EARLY, .rxe = RXE_EARLY, .arg = IBV_QPS_INIT),
	RULE("post_send.in_rtr", send_in, "EINVAL, bad_wr named",
	     "No sends in RTR", EARLY, .rxe = RXE_EARLY, .arg = IBV_QPS_RTR),
	RULE("post_send.in_rts", send_in, "ok", "Sends in RTS", "IBTA 10.3.1",
	     .arg = IBV_QPS_RTS),
	RULE("post_send.in_sqd", send_in, "ok", "Sends in SQD are taken",
	     "IBTA 10.3.1", .arg = IBV_QPS_SQD),
	RULE("post_send.in_err", send_in, "ok", "Sends in ERR are taken",
	     "IBTA 10.3.1", .arg = IBV_QPS_ERR),
	RULE("post_send.in_err.completion", flushed, "IBV_WC_WR_FLUSH_ERR",
	     "Sends in ERR are flushed", "IBTA 10.3.1"),
	RULE("post_send.early_then_rts", send_early, "was not queued",
	     "A send that was refused is not in the queue", EARLY,
	     .rxe = RXE_EARLY),
	RULE("post_recv.in_reset", recv_in, "EINVAL, bad_wr named",
	     "No receives in RESET", EARLY, .rxe = "EINVAL, bad_wr untouched",
	     .arg = IBV_QPS_RESET),
	RULE("post_recv.in_init", recv_in, "ok", "Receives in INIT are taken",
	     "IBTA 10.3.1", .arg = IBV_QPS_INIT),
	RULE("post_recv.in_rtr", recv_in, "ok", "Receives in RTR are taken",
	     "IBTA 10.3.1", .arg = IBV_QPS_RTR),
	RULE("post_recv.in_err", recv_in, "ok", "Receives in ERR are taken",
	     "IBTA 10.3.1", .arg = IBV_QPS_ERR),
	RULE("post_recv.in_err.completion", flushed, "IBV_WC_WR_FLUSH_ERR",
	     "Receives in ERR are flushed, at once",
	     "IBTA 10.3.1; cards the same",
	     .rxe = "not before something else wakes the QP", .arg = 1),

	RULE("post_send.full", send_full,
	     "ENOMEM after max_send_wr, bad_wr named",
	     "A send queue holds max_send_wr", FULL,
	     .rxe = "6.1 holds more than it gave"),
	RULE("post_recv.full", recv_full, "ENOMEM after max_wr, bad_wr named",
	     "A receive queue holds max_recv_wr", FULL,
	     .rxe = "6.1 holds more than it gave"),
	RULE("post_srq_recv.full", recv_full,
	     "ENOMEM after max_wr, bad_wr named", "An SRQ holds max_wr", FULL,
	     .rxe = "6.1 holds more than it gave", .arg = 1),
	RULE("post_send.queue_of_0", zero_cap, "ENOMEM, bad_wr named",
	     "A send queue of 0 holds nothing", FULL),
	RULE("post_send.list", send_list, "EINVAL, bad_wr the second, 1 done",
	     "Of a list, what stands before the wrong one is posted", FULL),
	RULE("post_send.sges_40", send_sges, "EINVAL, bad_wr named",
	     "A send has at most max_send_sge SGEs", SIZE, .arg = 40),
	RULE("post_send.sges_negative", send_sges, "EINVAL, bad_wr named",
	     "A send has no less than no SGEs", "left open", .arg = -1),
	RULE("post_recv.sges_40", recv_sges, "EINVAL, bad_wr named",
	     "A receive has at most max_recv_sge SGEs", SIZE, .arg = 40),
	RULE("post_srq_recv.sges_40", recv_sges, "EINVAL, bad_wr named",
	     "An SRQ's receive has at most max_sge SGEs", SIZE, .arg = 40,
	     .arg2 = 1),
	RULE("post_send.no_sge", empty, "0 bytes",
	     "A send without an SGE is an empty message", "ibv_post_send(3)",
	     .arg = NO_SGE),
	RULE("post_send.empty_sge", empty, "0 bytes",
	     "An SGE of no bytes is skipped, its lkey not looked at",
	     "left open; mlx5 reads 0 as 2 GiB, from memory", .arg = EMPTY_SGE),

	RULE("post_send.inline_fits", inline_data, "ok",
	     "Inline data up to max_inline_data", "ibv_post_send(3)", .arg = 32,
	     .arg2 = IBV_WR_RDMA_WRITE),
	RULE("post_send.inline_too_long", inline_data, "EINVAL, bad_wr named",
	     "No inline data above max_inline_data",
	     "cards: EINVAL, ENOMEM or EPERM", .arg = 4096,
	     .arg2 = IBV_WR_RDMA_WRITE),
	RULE("post_send.inline_read", inline_data, "EINVAL, bad_wr named",
	     "No inline data in a READ",
	     "cards: LOC_QP_OP_ERR or LOC_PROT_ERR, later",
	     .rxe = "taken, then LOC_PROT_ERR", .arg = 8,
	     .arg2 = IBV_WR_RDMA_READ),
	RULE("post_send.inline_taken", inline_taken, "byte 1",
	     "Inline data needs no lkey and is taken in the call",
	     "ibv_post_send(3)"),
	RULE("post_send.atomic", atomic, "ok", "An atomic has 8 bytes",
	     "IBTA 9.4.5", .arg = 8),
	RULE("post_send.atomic_4_bytes", atomic, "EINVAL, bad_wr named",
	     "An atomic has 8 bytes, not 4", "IBTA 9.4.5; cards break later",
	     .arg = 4),
	RULE("post_send.atomic_misaligned", atomic, "EINVAL, bad_wr named",
	     "An atomic's remote address is a multiple of 8",
	     "IBTA 9.4.5; cards break later", .arg = 8, .arg2 = 4),
	RULE("post_send.uc_read", opcode, "EINVAL", "UC has no READ", OPCODE,
	     .rxe = RXE_OPCODE, .arg = IBV_QPT_UC, .arg2 = IBV_WR_RDMA_READ),
	RULE("post_send.uc_atomic", opcode, "EINVAL", "UC has no atomics",
	     OPCODE, .rxe = RXE_OPCODE, .arg = IBV_QPT_UC,
	     .arg2 = IBV_WR_ATOMIC_FETCH_AND_ADD),
	RULE("post_send.ud_write", opcode, "EINVAL", "UD has no WRITE", OPCODE,
	     .rxe = RXE_OPCODE, .arg = IBV_QPT_UD, .arg2 = IBV_WR_RDMA_WRITE),
	RULE("post_send.ud_read", opcode, "EINVAL", "UD has no READ", OPCODE,
	     .rxe = RXE_OPCODE, .arg = IBV_QPT_UD, .arg2 = IBV_WR_RDMA_READ),
	RULE("post_send.unknown_opcode", opcode, "EINVAL",
	     "An opcode that nobody knows is refused", OPCODE,
	     .rxe = "does not look at it in the call", .arg = IBV_QPT_RC,
	     .arg2 = 99),
	RULE("post_recv.with_srq", recv_with_srq, "EINVAL",
	     "A QP with an SRQ has no receive queue", "IBTA 10.2.9"),
	RULE("post_send.no_bad_wr", no_bad_wr, "EINVAL", "bad_wr must be given",
	     UB),
	RULE("post_recv.no_bad_wr", no_bad_wr, "EINVAL", "bad_wr must be given",
	     UB, .arg = 1),
	RULE("post_send.no_ah", no_ah, "EINVAL, bad_wr named",
	     "A UD send needs an AH", UB,
	     .rxe = "its library looks into the NULL"),

	RULE("wr_complete.good", wr_calls, "ok", "A WR built call by call",
	     "ibv_wr_post(3)"),
	RULE("wr_complete.sges_40", wr_calls, "ENOSPC",
	     "A built WR has at most max_send_sge SGEs",
	     "ibv_wr_post(3) leaves the errno open", .arg = WR_SGES),
	RULE("wr_complete.inline_too_long", wr_calls, "ENOSPC",
	     "No built inline data above max_inline_data",
	     "ibv_wr_post(3) leaves the errno open", .arg = WR_INLINE),
	RULE("wr_complete.in_reset", wr_calls, "EINVAL",
	     "No built sends in RESET", EARLY, .arg = WR_RESET),
	RULE("wr_abort.forgets", wr_calls, "nothing",
	     "What was built before wr_abort is not posted", "ibv_wr_post(3)",
	     .arg = WR_ABORT),
};
const struct rules post_rules = RULES(rules);
