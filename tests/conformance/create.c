/* SPDX-License-Identifier: MIT */
/* Creating CQs, SRQs, AHs; joining multicast groups. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <string.h>

/* --- CQs ---------------------------------------------------------------- */

enum { CQE, CQE_OF_MAX, VECTOR, VECTOR_OF_MAX };

static void cq(const struct rule *rule)
{
	struct world *w = open_world();
	int cqe = 4, vector = 0;

	switch (rule->arg) {
	case CQE:
		cqe = (int)rule->arg2;
		break;
	case CQE_OF_MAX:
		cqe = w->device.max_cqe + (int)rule->arg2;
		break;
	case VECTOR:
		vector = (int)rule->arg2;
		break;
	case VECTOR_OF_MAX:
		vector = w->context->num_comp_vectors;
		break;
	}
	errno = 0;
	answer_pointer(ibv_create_cq(w->context, cqe, NULL, NULL, vector));
}

static void cq_size(const struct rule *rule)
{
	answer("%d", make_cq(open_world(), (int)rule->arg, NULL)->cqe);
}

static void resize(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq *made = make_cq(w, 4, NULL);
	int cqe = rule->arg2 ? w->device.max_cqe + 1 : (int)rule->arg;
	int err = ibv_resize_cq(made, cqe);

	if (err == EOPNOTSUPP)
		not_here("ibv_resize_cq", err);
	answer_call(err);
}

/* Three completions in it. */
static void resize_full(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	for (int i = 0; i < 3; i++) {
		fill_recv(p, 8);
		post_recv(p);
	}
	ibv_modify_qp(p->b.qp, &attr, IBV_QP_STATE);
	/* The engine's work: no call says when it is done. */
	wait_readable(-1, QUIET_MS);
	answer_call(ibv_resize_cq(p->b.recv_cq, (int)rule->arg));
}

enum { EX_PLAIN, EX_WC_FLAGS, EX_FLAGS, EX_COMP_MASK, EX_STAMPS };

static void cq_ex(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq_init_attr_ex init = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	if (!ibv_create_cq_ex(w->context, &init) && errno == EOPNOTSUPP)
		not_here("ibv_create_cq_ex", errno);
	switch (rule->arg) {
	case EX_WC_FLAGS:
		init.wc_flags |= 1ull << 40;
		break;
	case EX_STAMPS:
		init.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
		break;
	case EX_FLAGS:
		init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
		init.flags = 1 << 20;
		break;
	case EX_COMP_MASK:
		init.comp_mask = 1 << 20;
		break;
	}
	errno = 0;
	answer_pointer(ibv_create_cq_ex(w->context, &init));
}

/* --- SRQs --------------------------------------------------------------- */

enum { SRQ_WR, SRQ_WR_OVER, SRQ_SGE_OVER };

static void srq(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = (uint32_t)rule->arg2, .max_sge = 1 },
	};

	if (rule->arg == SRQ_WR_OVER)
		init.attr.max_wr = (uint32_t)w->device.max_srq_wr + 1;
	if (rule->arg == SRQ_SGE_OVER)
		init.attr.max_sge = (uint32_t)w->device.max_srq_sge + 1;
	errno = 0;
	answer_pointer(ibv_create_srq(w->pd, &init));
}

static void srq_given(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = (uint32_t)rule->arg, .max_sge = 1 },
	};

	if (!ibv_create_srq(w->pd, &init))
		answer_pointer(NULL);
	answer("%u", init.attr.max_wr);
}

static void srq_type(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = (enum ibv_srq_type)rule->arg,
		.pd = w->pd,
	};

	errno = 0;
	answer_pointer(ibv_create_srq_ex(w->context, &init));
}

static void srq_limit(const struct rule *rule)
{
	struct ibv_srq *made =
		make_srq(open_world()->pd, 4, (uint32_t)rule->arg, NULL);
	struct ibv_srq_attr attr;
	int err = ibv_query_srq(made, &attr);

	if (err)
		not_here("ibv_query_srq", err);
	answer("limit %u", attr.srq_limit);
}

static void modify_srq(const struct rule *rule)
{
	struct ibv_srq *made = make_srq(open_world()->pd, 4, 0, NULL);
	struct ibv_srq_attr attr = { .srq_limit = (uint32_t)rule->arg,
				     .max_wr = 8 };

	answer_call(ibv_modify_srq(made, &attr, (int)rule->arg2));
}

/* --- AHs ---------------------------------------------------------------- */

enum { AH_GOOD, AH_PORT, AH_PORT_0, AH_NO_GRH, AH_INDEX, AH_EMPTY };

static void ah(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_ah_attr attr = ah_attr(w);

	switch (rule->arg) {
	case AH_PORT:
		attr.port_num = 200;
		break;
	case AH_PORT_0:
		attr.port_num = 0;
		break;
	case AH_NO_GRH:
		attr.is_global = 0;
		break;
	case AH_EMPTY:
		attr.grh.sgid_index = 100;
		break;
	}
	errno = 0;
	if (!ibv_create_ah(w->pd, &attr)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			not_here("AHs", errno);
		answer_pointer(NULL);
	}
	answer("ok");
}

/* --- multicast ---------------------------------------------------------- */

static const union ibv_gid group = {
	.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 7 },
};

enum {
	GROUP,
	NO_GROUP,
	ATTACH_TWICE,
	DETACH,
	DETACH_UNATTACHED,
	DESTROY,
	DESTROY_DETACHED
};

static void mcast(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init =
		qp_init((enum ibv_qp_type)rule->arg2, make_cq(w, 4, NULL));
	struct ibv_qp *qp = make_qp(w->pd, &init);
	union ibv_gid gid = group;
	int err;

	if (rule->arg == NO_GROUP)
		gid = w->gid;
	if (rule->arg == DETACH_UNATTACHED)
		answer_call(ibv_detach_mcast(qp, &gid, 0));
	err = ibv_attach_mcast(qp, &gid, 0);
	if (err == EOPNOTSUPP)
		not_here("multicast", err);
	if (err || rule->arg == GROUP || rule->arg == NO_GROUP)
		answer_call(err);
	if (rule->arg == ATTACH_TWICE)
		answer_call(ibv_attach_mcast(qp, &gid, 0));
	if (rule->arg == DETACH || rule->arg == DESTROY_DETACHED)
		err = ibv_detach_mcast(qp, &gid, 0);
	if (err || rule->arg == DETACH)
		answer_call(err);
	answer_call(ibv_destroy_qp(qp));
}

#define RANGE    "more than the device offers is refused; the errno is left open"
#define ROUND    "at least what was asked for; how much more is left open"
#define FEATURE  "devices that have the feature take it"
#define ROCE     "the kernel's core checks, for every RoCE device"
#define MC       "the kernel's core checks, for every device"
#define SRQ_TYPE "libibverbs wants its other objects first, and says EINVAL"
#define RXE_CAPS "6.1 gives back what was asked for, though its rings hold more"
#define SIW_CAPS "gives what was asked for"

static const struct rule rules[] = {
	RULE("create_cq.cqe_0", cq, "EINVAL", "A CQ of no entries is refused",
	     RANGE, .arg = CQE),
	RULE("create_cq.cqe_negative", cq, "EINVAL",
	     "A CQ of less than no entries is refused", RANGE, .arg = CQE,
	     .arg2 = -1),
	RULE("create_cq.cqe_max", cq, "ok", "A CQ can have max_cqe entries",
	     RANGE, .arg = CQE_OF_MAX),
	RULE("create_cq.cqe_above_max", cq, "EINVAL",
	     "A CQ can't have more than max_cqe entries", RANGE,
	     .arg = CQE_OF_MAX, .arg2 = 1),
	RULE("create_cq.vector_negative", cq, "EINVAL",
	     "A completion vector below 0 is refused",
	     "the kernel's core checks", .arg = VECTOR, .arg2 = -1),
	RULE("create_cq.vector_above", cq, "EINVAL",
	     "A completion vector from num_comp_vectors on is refused",
	     "the kernel's core checks", .arg = VECTOR_OF_MAX),
	RULE("create_cq.given_for_1", cq_size, "1", "A CQ asked for 1 entry",
	     ROUND, .arg = 1),
	RULE("create_cq.given_for_10", cq_size, "15",
	     "A CQ asked for 10 entries", ROUND, .siw = "the next power of two",
	     .arg = 10),
	RULE("create_cq.given_for_16", cq_size, "31",
	     "A CQ asked for 16 entries", ROUND, .siw = "the next power of two",
	     .arg = 16),
	RULE("resize_cq.more", resize, "ok", "An empty CQ can grow", FEATURE,
	     .arg = 100),
	RULE("resize_cq.to_0", resize, "EINVAL", "A CQ can't shrink to nothing",
	     RANGE),
	RULE("resize_cq.above_max", resize, "EINVAL",
	     "A CQ can't grow above max_cqe", RANGE, .arg2 = 1),
	RULE("resize_cq.below_content", resize_full, "EINVAL",
	     "A CQ can't shrink below what it holds", "ibv_resize_cq(3)",
	     .arg = 1),
	RULE("create_cq_ex.standard", cq_ex, "ok",
	     "An extended CQ with the standard fields", FEATURE),
	RULE("create_cq_ex.unknown_field", cq_ex, "EOPNOTSUPP",
	     "A field that nobody knows is refused", "ibv_create_cq_ex(3)",
	     .arg = EX_WC_FLAGS),
	RULE("create_cq_ex.timestamp", cq_ex, "ok",
	     "Completions with a time, where the device has a clock", FEATURE,
	     .rxe = "has no clock to offer", .arg = EX_STAMPS),
	RULE("create_cq_ex.unknown_flag", cq_ex, "EOPNOTSUPP",
	     "A creation flag that nobody knows is refused", "left open",
	     .rxe = "does not look", .arg = EX_FLAGS),
	RULE("create_cq_ex.unknown_mask", cq_ex, "EINVAL",
	     "A comp_mask bit that nobody knows is refused, with errno set",
	     "the man page leaves the errno open",
	     .rxe = "its library refuses, and forgets errno",
	     .arg = EX_COMP_MASK),

	RULE("create_srq.wr_0", srq, "EINVAL", "An SRQ of no WRs is refused",
	     RANGE, .arg = SRQ_WR),
	RULE("create_srq.wr_above_max", srq, "EINVAL",
	     "max_wr can't be above max_srq_wr", RANGE, .arg = SRQ_WR_OVER),
	RULE("create_srq.sge_above_max", srq, "EINVAL",
	     "max_sge can't be above max_srq_sge", RANGE, .arg = SRQ_SGE_OVER,
	     .arg2 = 4),
	RULE("create_srq.given_for_10", srq_given, "15",
	     "An SRQ asked for 10 WRs", ROUND, .rxe = RXE_CAPS, .siw = SIW_CAPS,
	     .arg = 10),
	RULE("create_srq_ex.basic", srq_type, "ok", "A basic SRQ", FEATURE,
	     .arg = IBV_SRQT_BASIC),
	RULE("create_srq_ex.xrc", srq_type, "EOPNOTSUPP",
	     "An XRC SRQ is refused by a device without XRC", FEATURE,
	     .rxe = SRQ_TYPE, .arg = IBV_SRQT_XRC),
	RULE("create_srq_ex.tag_matching", srq_type, "EOPNOTSUPP",
	     "An SRQ with tag matching is refused by a device without it",
	     FEATURE, .rxe = SRQ_TYPE, .arg = IBV_SRQT_TM),
	RULE("create_srq.limit", srq_limit, "limit 2",
	     "A limit given at creation takes effect",
	     "the man page says ignored", .arg = 2),
	RULE("modify_srq.limit", modify_srq, "ok", "The limit can be set",
	     "ibv_modify_srq(3)", .arg = 2, .arg2 = IBV_SRQ_LIMIT),
	RULE("modify_srq.limit_above", modify_srq, "EINVAL",
	     "The limit can't be above what the SRQ holds", "ibv_modify_srq(3)",
	     .arg = 1000, .arg2 = IBV_SRQ_LIMIT),
	RULE("modify_srq.unknown_bit", modify_srq, "EINVAL",
	     "A mask bit that nobody knows is refused", "ibv_modify_srq(3)",
	     .rxe = "does not look", .siw = "does not look", .arg2 = 1 << 8),

	RULE("create_ah.good", ah, "ok", "An AH to the device itself", ROCE),
	RULE("create_ah.port_200", ah, "EINVAL",
	     "A port that is not there is refused", ROCE, .arg = AH_PORT),
	RULE("create_ah.port_0", ah, "EINVAL", "Port numbers start at 1", ROCE,
	     .arg = AH_PORT_0),
	RULE("create_ah.no_grh", ah, "EINVAL", "RoCE needs is_global = 1", ROCE,
	     .arg = AH_NO_GRH),
	RULE("create_ah.empty_index", ah, "EINVAL",
	     "A source GID's index with no GID there is refused",
	     "ENODATA inside the table, EINVAL past its end", .arg = AH_EMPTY,
	     .rxe = "its table has 1024 places: 100 is empty; soft0's has one"),

	RULE("attach_mcast.ud", mcast, "ok", "A UD QP joins a group", MC,
	     .arg = GROUP, .arg2 = IBV_QPT_UD),
	RULE("attach_mcast.rc", mcast, "EINVAL", "An RC QP can't join a group",
	     MC, .arg = GROUP, .arg2 = IBV_QPT_RC),
	RULE("attach_mcast.no_group", mcast, "EINVAL",
	     "A GID that is no multicast GID is no group", MC, .arg = NO_GROUP,
	     .arg2 = IBV_QPT_UD),
	RULE("attach_mcast.twice", mcast, "ok", "Joining twice is joining once",
	     MC, .arg = ATTACH_TWICE, .arg2 = IBV_QPT_UD),
	RULE("detach_mcast.attached", mcast, "ok", "A QP leaves its group", MC,
	     .arg = DETACH, .arg2 = IBV_QPT_UD),
	RULE("detach_mcast.not_attached", mcast, "EINVAL",
	     "A QP can't leave a group that it is not in", MC,
	     .arg = DETACH_UNATTACHED, .arg2 = IBV_QPT_UD),
	RULE("destroy_qp.in_group", mcast, "EBUSY",
	     "A QP that is in a multicast group stays", MC, .arg = DESTROY,
	     .arg2 = IBV_QPT_UD),
	RULE("destroy_qp.left_group", mcast, "ok",
	     "A QP goes when it has left its groups", MC,
	     .arg = DESTROY_DETACHED, .arg2 = IBV_QPT_UD),
};
const struct rules create_rules = RULES(rules);
