/* SPDX-License-Identifier: MIT */
/* Events: of completion channels, and the asynchronous ones. */
#include "tests/conformance/conform.h"

#include <errno.h>

#include "common/rules/rules.h"

static struct pair *channel_pair(void)
{
	struct pair_wish rc = wish(IBV_QPT_RC);

	rc.channel = true;
	return make_pair(open_world(), &rc);
}

static _Noreturn void answer_event(struct ibv_comp_channel *channel,
				   int limit_ms)
{
	answer(wait_readable(channel->fd, limit_ms) ? "event" : "nothing");
}

static void write_once(struct pair *p)
{
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
}

/* --- arming ------------------------------------------------------------- */

enum { ARMED, NOT_ARMED, ARMED_LATE };

static void arm(const struct rule *rule)
{
	struct pair *p = channel_pair();

	if (rule->arg == ARMED)
		ibv_req_notify_cq(p->a.send_cq, 0);
	write_once(p);
	if (rule->arg == ARMED_LATE) {
		/* It is there when the receiver has its own. */
		fill_recv(p, 8);
		post_recv(p);
		fill_send(p, IBV_WR_SEND, 8);
		p->a.wr.send_flags = 0;
		post(p);
		wait_status(p->b.recv_cq, LIMIT_MS);
		wait_readable(-1, QUIET_MS);
		ibv_req_notify_cq(p->a.send_cq, 0);
	}
	answer_event(p->a.channel, rule->arg == ARMED ? LIMIT_MS : QUIET_MS);
}

static void arm_once(const struct rule *rule)
{
	struct pair *p = channel_pair();
	struct ibv_cq *cq;
	void *context;

	ibv_req_notify_cq(p->a.send_cq, 0);
	write_once(p);
	if (!wait_readable(p->a.channel->fd, LIMIT_MS) ||
	    ibv_get_cq_event(p->a.channel, &cq, &context))
		answer("no event");
	if (rule->arg)
		ibv_req_notify_cq(p->a.send_cq, 0);
	write_once(p);
	answer_event(p->a.channel, rule->arg ? LIMIT_MS : QUIET_MS);
}

static void event_names_cq(const struct rule *rule)
{
	struct pair *p = channel_pair();
	struct ibv_cq *cq;
	void *context;

	(void)rule;
	ibv_req_notify_cq(p->a.send_cq, 0);
	write_once(p);
	if (!wait_readable(p->a.channel->fd, LIMIT_MS) ||
	    ibv_get_cq_event(p->a.channel, &cq, &context))
		answer("no event");
	answer(cq == p->a.send_cq && context == p->w ? "cq, cq_context"
						     : "others");
}

static void no_channel(const struct rule *rule)
{
	struct ibv_cq *cq = make_cq(open_world(), 4, NULL);

	(void)rule;
	answer_call(ibv_req_notify_cq(cq, 0));
}

/* --- solicited ---------------------------------------------------------- */

enum { PLAIN = 0, SOLICITED = IBV_SEND_SOLICITED };

static void solicited(const struct rule *rule)
{
	struct pair *p = channel_pair();

	fill_recv(p, 8);
	post_recv(p);
	ibv_req_notify_cq(p->b.recv_cq, 1);
	fill_send(p, (enum ibv_wr_opcode)rule->arg2, 8);
	p->a.wr.send_flags |= (unsigned int)rule->arg;
	post(p);
	wait_status(p->a.send_cq, LIMIT_MS);
	answer_event(p->b.channel, rule->arg ? LIMIT_MS : QUIET_MS);
}

static void solicited_flush(const struct rule *rule)
{
	struct pair *p = channel_pair();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	(void)rule;
	fill_recv(p, 8);
	post_recv(p);
	ibv_req_notify_cq(p->b.recv_cq, 1);
	ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
	answer_event(p->b.channel, 1000);
}

static void solicited_send(const struct rule *rule)
{
	struct pair *p = channel_pair();

	(void)rule;
	fill_recv(p, 8);
	post_recv(p);
	ibv_req_notify_cq(p->a.send_cq, 1);
	fill_send(p, IBV_WR_SEND, 8);
	p->a.wr.send_flags |= IBV_SEND_SOLICITED;
	post(p);
	answer_event(p->a.channel, QUIET_MS);
}

/* --- asynchronous ------------------------------------------------------- */

static _Noreturn void answer_async(struct pair *p, int limit_ms)
{
	int event = wait_async(p->w->context, limit_ms);

	answer("%s", event == NOTHING
			     ? "nothing"
			     : ibv_event_type_str((enum ibv_event_type)event));
}

/* More completions than the sender's CQ holds. */
static struct pair *overrun(void)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	rc.cqe = 1;
	rc.max_wr = 30;
	p = make_pair(open_world(), &rc);
	for (int i = 0; i < p->a.send_cq->cqe + 2; i++)
		write_once(p);
	return p;
}

enum { OVERRUN_EVENT, OVERRUN_QP };

static void cq_overrun(const struct rule *rule)
{
	struct pair *p = overrun();

	if (rule->arg == OVERRUN_QP)
		answer("%s", rules_qp_state(settled_state(p->a.qp)));
	answer_async(p, 1000);
}

static void srq_limit(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct pair *p;

	rc.srq = true;
	p = make_pair(open_world(), &rc);
	for (int i = 0; i < 3; i++) {
		fill_recv(p, 8);
		post_recv(p);
	}
	if (ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_LIMIT))
		answer("no limit");
	for (int i = 0; i < rule->arg; i++) {
		fill_send(p, IBV_WR_SEND, 8);
		post(p);
		wait_status(p->a.send_cq, LIMIT_MS);
	}
	answer_async(p, rule->arg > 1 ? LIMIT_MS : QUIET_MS);
}

static void srq_limit_clears(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	struct pair *p;

	(void)rule;
	rc.srq = true;
	p = make_pair(open_world(), &rc);
	fill_recv(p, 8);
	post_recv(p);
	if (ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_LIMIT))
		answer("no limit");
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	if (wait_async(p->w->context, LIMIT_MS) == NOTHING)
		answer("no event");
	if (ibv_query_srq(p->b.srq, &attr))
		answer("no query");
	answer("limit %u", attr.srq_limit);
}

static void last_wqe(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair *p;

	(void)rule;
	rc.srq = true;
	p = make_pair(open_world(), &rc);
	ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
	answer_async(p, 1000);
}

/* The responder of a forbidden access, or of a request that makes no sense. */
static void responder_event(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	if (rule->arg)
		rc.qp_access = 0;
	p = make_pair(open_world(), &rc);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	if (!rule->arg)
		p->a.wr.wr.rdma.rkey = ~p->b.mr->rkey;
	post(p);
	wait_status(p->a.send_cq, LIMIT_MS);
	answer_async(p, QUIET_MS);
}

/* The first message that reaches a QP in RTR. */
static void comm_est(const struct rule *rule)
{
	struct pair_wish rc = wish(IBV_QPT_RC);
	struct pair *p;

	(void)rule;
	rc.b = IBV_QPS_RTR;
	p = make_pair(open_world(), &rc);
	write_once(p);
	wait_status(p->a.send_cq, LIMIT_MS);
	answer_async(p, QUIET_MS);
}

#define NOTIFY "ibv_req_notify_cq(3)"
#define FLUSH  "IBTA 11.4.2: errors count as solicited"

static const struct rule rules[] = {
	RULE("req_notify_cq.armed", arm, "event",
	     "A CQ that is armed raises an event with its next completion",
	     NOTIFY, .arg = ARMED),
	RULE("req_notify_cq.not_armed", arm, "nothing",
	     "A CQ that is not armed raises none", NOTIFY, .arg = NOT_ARMED),
	RULE("req_notify_cq.too_late", arm, "nothing",
	     "What is in the CQ when it is armed raises none: arm, then poll",
	     NOTIFY, .arg = ARMED_LATE),
	RULE("req_notify_cq.once", arm_once, "nothing",
	     "Armed once, an event once", NOTIFY),
	RULE("req_notify_cq.again", arm_once, "event",
	     "Armed again, an event again", NOTIFY, .arg = 1),
	RULE("req_notify_cq.no_channel", no_channel, "ok",
	     "Arming a CQ without a channel does nothing", NOTIFY),
	RULE("get_cq_event.names", event_names_cq, "cq, cq_context",
	     "An event says which CQ, and its cq_context",
	     "ibv_get_cq_event(3)"),
	RULE("solicited.plain_send", solicited, "nothing",
	     "solicited_only: a send without SOLICITED raises none", NOTIFY,
	     .arg = PLAIN, .arg2 = IBV_WR_SEND),
	RULE("solicited.send", solicited, "event",
	     "solicited_only: a send with SOLICITED raises one", NOTIFY,
	     .arg = SOLICITED, .arg2 = IBV_WR_SEND),
	RULE("solicited.write_with_imm", solicited, "event",
	     "solicited_only: a WRITE with immediate and SOLICITED raises one",
	     NOTIFY, .arg = SOLICITED, .arg2 = IBV_WR_RDMA_WRITE_WITH_IMM),
	RULE("solicited.own_send", solicited_send, "nothing",
	     "solicited_only: one's own sends do not count", NOTIFY),
	RULE("solicited.flush", solicited_flush, "event",
	     "solicited_only: completions with an error count", FLUSH,
	     .rxe = "6.12 does not count them"),

	RULE("async.cq_overrun", cq_overrun, "CQ error",
	     "A CQ that is overrun raises CQ_ERR", "IBTA 11.6.3",
	     .arg = OVERRUN_EVENT),
	RULE("async.cq_overrun.qp", cq_overrun, "ERR",
	     "A CQ that is overrun is dead, and its QPs break",
	     "IBTA 11.6.3; cards: as many completions as fit, then silence",
	     .rxe = "loses the completion and goes on", .arg = OVERRUN_QP),
	RULE("async.srq_limit", srq_limit, "SRQ limit reached",
	     "An SRQ that falls below its limit raises SRQ_LIMIT_REACHED",
	     "IBTA 11.6.3; cards the same", .arg = 2),
	RULE("async.srq_limit.above", srq_limit, "nothing",
	     "An SRQ that is not below its limit raises none",
	     "IBTA 11.6.3; cards the same", .arg = 1),
	RULE("async.srq_limit.clears", srq_limit_clears, "limit 0",
	     "The event takes the limit back", "ibv_modify_srq(3)"),
	RULE("async.last_wqe", last_wqe, "last WQE reached",
	     "A QP with an SRQ that breaks raises QP_LAST_WQE_REACHED",
	     "IBTA 11.6.3", .rxe = "6.1 does not raise it"),
	RULE("async.access_error", responder_event,
	     "local access violation work queue error",
	     "A responder that refuses an rkey raises QP_ACCESS_ERR",
	     "IBTA 11.6.3; cards do", .rxe = "never raises it"),
	RULE("async.request_error", responder_event,
	     "invalid request local work queue error",
	     "A responder whose QP lacks the right raises QP_REQ_ERR",
	     "IBTA 11.6.3; cards: QP_REQ_ERR or QP_ACCESS_ERR",
	     .rxe = "never raises it", .arg = 1),
	RULE("async.comm_est", comm_est, "nothing",
	     "The first message that reaches a QP in RTR need not raise COMM_EST",
	     "IBTA 11.6.3 has it"),
};
const struct rules event_rules = RULES(rules);
