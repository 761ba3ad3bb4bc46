/* SPDX-License-Identifier: MIT */
/* Creating QPs. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <linux/capability.h>

enum cap { SEND_WR, RECV_WR, SEND_SGE, RECV_SGE, INLINE };

static uint32_t *cap_field(struct ibv_qp_cap *cap, enum cap which)
{
	uint32_t *const fields[] = {
		[SEND_WR] = &cap->max_send_wr,
		[RECV_WR] = &cap->max_recv_wr,
		[SEND_SGE] = &cap->max_send_sge,
		[RECV_SGE] = &cap->max_recv_sge,
		[INLINE] = &cap->max_inline_data,
	};

	return fields[which];
}

#define TOO_MUCH_INLINE (1 << 16)
#define WITH_SRQ        1

static void qp_cap(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	enum cap which = (enum cap)rule->arg;
	uint32_t value = TOO_MUCH_INLINE;

	if (which == SEND_WR || which == RECV_WR)
		value = (uint32_t)w->device.max_qp_wr + 1;
	else if (which != INLINE)
		value = (uint32_t)w->device.max_sge + 1;
	*cap_field(&init.cap, which) = value;
	if (rule->arg2 == WITH_SRQ)
		init.srq = make_srq(w->pd, 4, 0, NULL);
	errno = 0;
	answer_pointer(ibv_create_qp(w->pd, &init));
}

static void qp_given(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	enum cap which = (enum cap)rule->arg;

	*cap_field(&init.cap, which) = (uint32_t)rule->arg2;
	if (!ibv_create_qp(w->pd, &init))
		answer_pointer(NULL);
	answer("%u", *cap_field(&init.cap, which));
}

/* What query_qp says of it, beside what was given. */
static void qp_queried(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	struct ibv_qp_init_attr now;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	int err;

	(void)rule;
	init.cap.max_send_wr = 10;
	qp = make_qp(w->pd, &init);
	err = ibv_query_qp(qp, &attr, IBV_QP_CAP, &now);
	if (err)
		answer_call(err);
	answer(attr.cap.max_send_wr == init.cap.max_send_wr ? "the same"
							    : "another");
}

static void qp_type(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init =
		qp_init((enum ibv_qp_type)rule->arg, make_cq(w, 4, NULL));

	if (rule->arg2)
		without_capability((int)rule->arg2);
	errno = 0;
	answer_pointer(ibv_create_qp(w->pd, &init));
}

enum { NO_SEND_CQ, NO_RECV_CQ, FOREIGN_CQ, FOREIGN_SRQ_PD };

static void qp_parts(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));

	switch (rule->arg) {
	case NO_SEND_CQ:
		init.send_cq = NULL;
		break;
	case NO_RECV_CQ:
		init.recv_cq = NULL;
		break;
	case FOREIGN_SRQ_PD:
		init.srq = make_srq(make_pd(w), 4, 0, NULL);
		break;
	}
	errno = 0;
	answer_pointer(ibv_create_qp(w->pd, &init));
}

static void qp_foreign_cq(const struct rule *rule)
{
	struct world *w = open_world();
	struct world *other = open_world();
	struct ibv_qp_init_attr init;

	(void)rule;
	/* A number that the first context has not given out. */
	for (int i = 0; i < 20; i++)
		init = qp_init(IBV_QPT_RC, make_cq(other, 4, NULL));
	errno = 0;
	answer_pointer(ibv_create_qp(w->pd, &init));
}

enum { EX_QP_PLAIN, EX_QP_NO_PD, EX_QP_COMP_MASK, EX_QP_OPS_UD };

static void qp_ex(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq *made = make_cq(w, 4, NULL);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = made,
		.recv_cq = made,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.pd = w->pd,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	if (!ibv_create_qp_ex(w->context, &init) && errno == EOPNOTSUPP)
		not_here("ibv_create_qp_ex", errno);
	switch (rule->arg) {
	case EX_QP_NO_PD:
		init.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD;
		break;
	case EX_QP_COMP_MASK:
		init.comp_mask |= 1u << 20;
		break;
	case EX_QP_OPS_UD:
		init.qp_type = IBV_QPT_UD;
		init.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ;
		break;
	}
	errno = 0;
	answer_pointer(ibv_create_qp_ex(w->context, &init));
}

#define RANGE    "more than the device offers is refused; the errno is left open"
#define ROUND    "at least what was asked for; how much more is left open"
#define FEATURE  "devices that have the feature take it"
#define RXE_CAPS "6.1 gives back what was asked for, though its rings hold more"
#define SIW_CAPS "gives what was asked for"
#define NULL_CQ  "libibverbs looks into the NULL"

static const struct rule rules[] = {
	RULE("create_qp.send_wr_above_max", qp_cap, "EINVAL",
	     "max_send_wr can't be above max_qp_wr", RANGE, .arg = SEND_WR),
	RULE("create_qp.recv_wr_above_max", qp_cap, "EINVAL",
	     "max_recv_wr can't be above max_qp_wr", RANGE, .arg = RECV_WR),
	RULE("create_qp.send_sge_above_max", qp_cap, "EINVAL",
	     "max_send_sge can't be above max_sge", RANGE, .arg = SEND_SGE),
	RULE("create_qp.recv_sge_above_max", qp_cap, "EINVAL",
	     "max_recv_sge can't be above max_sge", RANGE, .arg = RECV_SGE),
	RULE("create_qp.inline_above_max", qp_cap, "EINVAL",
	     "max_inline_data can't be above what the device has", RANGE,
	     .arg = INLINE),
	RULE("create_qp.srq.recv_wr_above_max", qp_cap, "ok",
	     "With an SRQ nobody looks at max_recv_wr", "ibv_create_qp(3)",
	     .siw = "looks all the same", .arg = RECV_WR, .arg2 = WITH_SRQ),
	RULE("create_qp.srq.recv_sge_above_max", qp_cap, "ok",
	     "With an SRQ nobody looks at max_recv_sge", "ibv_create_qp(3)",
	     .siw = "looks all the same", .arg = RECV_SGE, .arg2 = WITH_SRQ),
	RULE("create_qp.given_for_send_wr_10", qp_given, "15",
	     "max_send_wr asked for 10", ROUND, .rxe = RXE_CAPS,
	     .siw = SIW_CAPS, .arg = SEND_WR, .arg2 = 10),
	RULE("create_qp.given_for_recv_wr_10", qp_given, "15",
	     "max_recv_wr asked for 10", ROUND, .rxe = RXE_CAPS,
	     .siw = SIW_CAPS, .arg = RECV_WR, .arg2 = 10),
	RULE("create_qp.given_for_send_wr_0", qp_given, "0",
	     "max_send_wr asked for 0", ROUND, .siw = "wants one at least",
	     .arg = SEND_WR),
	RULE("create_qp.given_for_inline_100", qp_given, "100",
	     "max_inline_data asked for 100", ROUND, .siw = "offers less",
	     .arg = INLINE, .arg2 = 100),
	RULE("create_qp.queried_as_given", qp_queried, "the same",
	     "What create_qp gave is what query_qp says", "ibv_query_qp(3)",
	     .rxe = RXE_CAPS, .siw = "says the next power of two"),
	RULE("create_qp.unknown_type", qp_type, "EINVAL",
	     "A QP type that nobody knows is refused", "libibverbs does it",
	     .arg = 77),
	RULE("create_qp.xrc_send", qp_type, "EOPNOTSUPP",
	     "XRC_SEND is refused by a device without XRC", FEATURE,
	     .arg = IBV_QPT_XRC_SEND),
	RULE("create_qp.xrc_recv", qp_type, "EINVAL",
	     "XRC_RECV takes an XRC domain: not this call", FEATURE,
	     .arg = IBV_QPT_XRC_RECV),
	RULE("create_qp.driver", qp_type, "EOPNOTSUPP",
	     "DRIVER is refused by a device without types of its own", FEATURE,
	     .arg = IBV_QPT_DRIVER),
	RULE("create_qp.raw_packet", qp_type, "EPERM",
	     "RAW_PACKET needs CAP_NET_RAW, before all else",
	     "the kernel's core checks", .arg = IBV_QPT_RAW_PACKET,
	     .arg2 = CAP_NET_RAW),
	RULE("create_qp.no_send_cq", qp_parts, "EINVAL", "A QP needs a send CQ",
	     "undefined", .rxe = NULL_CQ, .siw = NULL_CQ, .arg = NO_SEND_CQ),
	RULE("create_qp.no_recv_cq", qp_parts, "EINVAL",
	     "A QP needs a receive CQ", "undefined", .rxe = NULL_CQ,
	     .siw = NULL_CQ, .arg = NO_RECV_CQ),
	RULE("create_qp.foreign_cq", qp_foreign_cq, "EINVAL",
	     "A QP's CQ must be of its context",
	     "handles are numbers of one open file: ENOENT, or another's CQ",
	     .rxe = "the number is not in the table: ENOENT",
	     .siw = "the number is not in the table: ENOENT"),
	RULE("create_qp.foreign_srq_pd", qp_parts, "ok",
	     "A QP's SRQ may be of another PD", "IBTA 10.2.9; cards the same",
	     .arg = FOREIGN_SRQ_PD),
	RULE("create_qp_ex.send_ops", qp_ex, "ok", "A QP for ibv_wr_send",
	     FEATURE),
	RULE("create_qp_ex.no_pd", qp_ex, "EINVAL",
	     "An RC QP needs its PD in comp_mask", "ibv_create_qp_ex(3)",
	     .arg = EX_QP_NO_PD),
	RULE("create_qp_ex.unknown_mask", qp_ex, "EOPNOTSUPP",
	     "A comp_mask bit that nobody knows is refused",
	     "ibv_create_qp_ex(3) leaves the errno open",
	     .arg = EX_QP_COMP_MASK),
	RULE("create_qp_ex.read_on_ud", qp_ex, "EOPNOTSUPP",
	     "A UD QP has no ibv_wr_rdma_read", "ibv_create_qp_ex(3)",
	     .arg = EX_QP_OPS_UD),
};
const struct rules create_qp_rules = RULES(rules);
