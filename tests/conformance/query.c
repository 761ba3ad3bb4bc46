/* SPDX-License-Identifier: MIT */
/* Asking: ports, GIDs, P_Keys, events that are not there. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <fcntl.h>

static void port(const struct rule *rule)
{
	struct ibv_port_attr attr;

	answer_call(ibv_query_port(open_world()->context, (uint8_t)rule->arg,
				   &attr));
}

static _Noreturn void answer_minus_one(int result)
{
	answer("%d, %s", result, call_name(errno));
}

static void gid(const struct rule *rule)
{
	struct world *w = open_world();
	int index = rule->arg2 ? w->port.gid_tbl_len : -1;
	union ibv_gid answered;

	errno = 0;
	answer("%d",
	       ibv_query_gid(w->context, (uint8_t)rule->arg, index, &answered));
}

static void pkey(const struct rule *rule)
{
	struct world *w = open_world();
	__be16 answered;
	int index = rule->arg ? w->port.pkey_tbl_len : 0;
	int result = ibv_query_pkey(w->context, 1, index, &answered);

	if (result)
		answer("%d", result);
	answer("%#x", be16toh(answered));
}

static void no_cq_event(const struct rule *rule)
{
	struct ibv_comp_channel *channel = make_channel(open_world());
	struct ibv_cq *cq;
	void *context;

	(void)rule;
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	errno = 0;
	answer_minus_one(ibv_get_cq_event(channel, &cq, &context));
}

static void no_async_event(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_async_event event;

	(void)rule;
	fcntl(w->context->async_fd, F_SETFL, O_NONBLOCK);
	errno = 0;
	answer_minus_one(ibv_get_async_event(w->context, &event));
}

static void new_qp_state(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	struct ibv_qp *qp = make_qp(w->pd, &init);

	(void)rule;
	answer(state_of(qp) == IBV_QPS_RESET ? "RESET" : "another");
}

/* Whether limits that every program relies on are above 0. */
static void limits(const struct rule *rule)
{
	const struct ibv_device_attr *d = &open_world()->device;

	(void)rule;
	answer(d->max_qp > 0 && d->max_qp_wr > 0 && d->max_sge > 0 &&
			       d->max_cq > 0 && d->max_cqe > 0 &&
			       d->max_mr > 0 && d->max_pd > 0
		       ? "above 0"
		       : "some are 0");
}

static void mtu(const struct rule *rule)
{
	const struct ibv_port_attr *attr = &open_world()->port;

	(void)rule;
	answer(attr->active_mtu <= attr->max_mtu ? "active <= max"
						 : "active > max");
}

#define CORE "the kernel's core checks"

static const struct rule rules[] = {
	RULE("query_device.limits", limits, "above 0",
	     "The limits that every program needs are above 0",
	     "IBTA 11.2.1.2"),
	RULE("query_port.1", port, "ok", "Ports are numbered from 1", CORE,
	     .arg = 1),
	RULE("query_port.0", port, "EINVAL", "There is no port 0 on an adapter",
	     CORE),
	RULE("query_port.beyond", port, "EINVAL",
	     "There is no port behind phys_port_cnt", CORE, .arg = 200),
	RULE("query_port.mtu", mtu, "active <= max",
	     "The active MTU is at most the port's maximum", "IBTA 11.2.1.2"),
	RULE("query_gid.negative", gid, "-1",
	     "A GID's index below 0 is refused", "libibverbs", .arg = 1),
	RULE("query_gid.beyond", gid, "-1",
	     "A GID's index behind gid_tbl_len is refused", CORE, .arg = 1,
	     .arg2 = 1),
	RULE("query_gid.port_beyond", gid, "-1",
	     "A GID of a port that is not there is refused", CORE, .arg = 200),
	RULE("query_pkey.0", pkey, "0xffff", "RoCE has the default P_Key at 0",
	     "IBTA A16", .siw = "iWARP has no P_Keys"),
	RULE("query_pkey.beyond", pkey, "-1",
	     "A P_Key's index behind pkey_tbl_len is refused", CORE, .arg = 1),
	RULE("get_cq_event.none", no_cq_event, "-1, EAGAIN",
	     "Without blocking and without an event: -1 and EAGAIN",
	     "ibv_get_cq_event(3)"),
	RULE("get_async_event.none", no_async_event, "-1, EAGAIN",
	     "Without blocking and without an event: -1 and EAGAIN",
	     "ibv_get_async_event(3)"),
	RULE("query_qp.new", new_qp_state, "RESET", "A new QP is in RESET",
	     "IBTA 10.3.1"),
};
const struct rules query_rules = RULES(rules);
