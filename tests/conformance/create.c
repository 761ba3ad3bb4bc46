/* SPDX-License-Identifier: MIT */
/* Creating CQs, QPs, SRQs, AHs; joining multicast groups. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <linux/capability.h>
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

	answer_call(ibv_resize_cq(made, cqe));
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

/* --- QPs ---------------------------------------------------------------- */

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
		init.srq = make_srq(w->pd, 4, 0);
	errno = 0;
	answer_pointer(ibv_create_qp(w->pd, &init));
}

static void qp_given(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	enum cap which = (enum cap)rule->arg;

	*cap_field(&init.cap, which) = (uint32_t)rule->arg2;
	make_qp(w->pd, &init);
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
		init.srq = make_srq(make_pd(w), 4, 0);
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
		make_srq(open_world()->pd, 4, (uint32_t)rule->arg);
	struct ibv_srq_attr attr;
	int err = ibv_query_srq(made, &attr);

	if (err)
		not_here("ibv_query_srq", err);
	answer("limit %u", attr.srq_limit);
}

static void modify_srq(const struct rule *rule)
{
	struct ibv_srq *made = make_srq(open_world()->pd, 4, 0);
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

#define RANGE     "IBTA: more than the device offers is refused; errno by device"
#define ROUND     "IBTA: at least what was asked; how much more is the device's"
#define FEATURE   "devices that have the feature take it"
#define ROCE      "the kernel's core checks, for every RoCE device"
#define MC        "the kernel's core checks; IBTA 11.3.1, 11.3.2"
#define UNCHECKED "rxe does not look"
#define RXE_CAPS  "6.1 gives back what was asked for, though its rings hold more"
#define SIW_CAPS  "siw gives back what was asked for"
#define SIW_SRQ   "siw's SRQ has no such limit"
#define NULL_CQ \
	"libibverbs looks into the NULL; soft0 says so in a line instead"

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
	     "A CQ asked for 10 entries", ROUND, .arg = 10),
	RULE("create_cq.given_for_16", cq_size, "31",
	     "A CQ asked for 16 entries", ROUND, .arg = 16),
	RULE("resize_cq.more", resize, "ok", "An empty CQ can grow", FEATURE,
	     .arg = 100),
	RULE("resize_cq.to_0", resize, "EINVAL", "A CQ can't shrink to nothing",
	     RANGE),
	RULE("resize_cq.above_max", resize, "EINVAL",
	     "A CQ can't grow above max_cqe", RANGE, .arg2 = 1),
	RULE("resize_cq.below_content", resize_full, "EINVAL",
	     "A CQ can't shrink below what it holds", "IBTA 11.2.6.3",
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
	     "A creation flag that nobody knows is refused", "mlx5 the same",
	     .rxe = "does not look", .arg = EX_FLAGS),
	RULE("create_cq_ex.unknown_mask", cq_ex, "EINVAL",
	     "A comp_mask bit that nobody knows is refused, with errno set",
	     "the man page leaves the errno open",
	     .rxe = "its library refuses, and forgets errno",
	     .arg = EX_COMP_MASK),

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
	     .arg = RECV_WR, .arg2 = WITH_SRQ),
	RULE("create_qp.srq.recv_sge_above_max", qp_cap, "ok",
	     "With an SRQ nobody looks at max_recv_sge", "ibv_create_qp(3)",
	     .arg = RECV_SGE, .arg2 = WITH_SRQ),
	RULE("create_qp.given_for_send_wr_10", qp_given, "15",
	     "max_send_wr asked for 10", ROUND, .rxe = RXE_CAPS, .arg = SEND_WR,
	     .arg2 = 10),
	RULE("create_qp.given_for_recv_wr_10", qp_given, "15",
	     "max_recv_wr asked for 10", ROUND, .rxe = RXE_CAPS, .arg = RECV_WR,
	     .arg2 = 10),
	RULE("create_qp.given_for_send_wr_0", qp_given, "0",
	     "max_send_wr asked for 0", ROUND, .arg = SEND_WR),
	RULE("create_qp.given_for_inline_100", qp_given, "100",
	     "max_inline_data asked for 100", ROUND, .arg = INLINE,
	     .arg2 = 100),
	RULE("create_qp.queried_as_given", qp_queried, "the same",
	     "What create_qp gave is what query_qp says", "IBTA 11.2.5.3",
	     .rxe = RXE_CAPS),
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
	     NULL_CQ, .rxe = NULL_CQ, .arg = NO_SEND_CQ),
	RULE("create_qp.no_recv_cq", qp_parts, "EINVAL",
	     "A QP needs a receive CQ", NULL_CQ, .rxe = NULL_CQ,
	     .arg = NO_RECV_CQ),
	RULE("create_qp.foreign_cq", qp_foreign_cq, "EINVAL",
	     "A QP's CQ must be of its context",
	     "handles are numbers of one open file: ENOENT, or another's CQ",
	     .rxe = "the number is not in the table: ENOENT"),
	RULE("create_qp.foreign_srq_pd", qp_parts, "ok",
	     "A QP's SRQ may be of another PD",
	     "IBTA 10.2.9.1; hardware the same", .arg = FOREIGN_SRQ_PD),
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
	     "A UD QP has no ibv_wr_rdma_read", "ibv_create_qp_ex(3); mlx5 too",
	     .arg = EX_QP_OPS_UD),

	RULE("create_srq.wr_0", srq, "EINVAL", "An SRQ of no WRs is refused",
	     RANGE, .arg = SRQ_WR),
	RULE("create_srq.wr_above_max", srq, "EINVAL",
	     "max_wr can't be above max_srq_wr", RANGE, .arg = SRQ_WR_OVER),
	RULE("create_srq.sge_above_max", srq, "EINVAL",
	     "max_sge can't be above max_srq_sge", RANGE, .arg = SRQ_SGE_OVER,
	     .arg2 = 4),
	RULE("create_srq.given_for_10", srq_given, "15",
	     "An SRQ asked for 10 WRs", ROUND, .rxe = RXE_CAPS, .arg = 10),
	RULE("create_srq_ex.basic", srq_type, "ok", "A basic SRQ", FEATURE,
	     .arg = IBV_SRQT_BASIC),
	RULE("create_srq_ex.xrc", srq_type, "EOPNOTSUPP",
	     "An XRC SRQ is refused by a device without XRC", FEATURE,
	     .rxe = "6.1 knows the basic type only, and says EINVAL",
	     .arg = IBV_SRQT_XRC),
	RULE("create_srq_ex.tag_matching", srq_type, "EOPNOTSUPP",
	     "An SRQ with tag matching is refused by a device without it",
	     FEATURE, .rxe = "6.1 knows the basic type only, and says EINVAL",
	     .arg = IBV_SRQT_TM),
	RULE("create_srq.limit", srq_limit, "limit 2",
	     "A limit given at creation takes effect",
	     "the man page says ignored", .arg = 2),
	RULE("modify_srq.limit", modify_srq, "ok", "The limit can be set",
	     "IBTA 11.2.3.3", .arg = 2, .arg2 = IBV_SRQ_LIMIT),
	RULE("modify_srq.limit_above", modify_srq, "EINVAL",
	     "The limit can't be above what the SRQ holds", "IBTA 11.2.3.3",
	     .arg = 1000, .arg2 = IBV_SRQ_LIMIT),
	RULE("modify_srq.unknown_bit", modify_srq, "EINVAL",
	     "A mask bit that nobody knows is refused", "ibv_modify_srq(3)",
	     .rxe = UNCHECKED, .arg2 = 1 << 8),

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
