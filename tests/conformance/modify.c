/* SPDX-License-Identifier: MIT */
/* ibv_modify_qp() beside the state table: values, masks, what it does. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <linux/capability.h>

#include "common/rules/rules.h"

struct subject {
	struct world *w;
	struct ibv_qp *qp;
	struct ibv_qp_attr attr;
};

static struct subject subject_in(enum ibv_qp_type type, enum ibv_qp_state state)
{
	struct subject s = { .w = open_world() };
	struct ibv_qp_init_attr init = qp_init(type, make_cq(s.w, 16, NULL));

	s.qp = make_qp(s.w->pd, &init);
	s.attr = good_attr(s.w, s.qp);
	bring(s.qp, s.attr, state);
	return s;
}

/* --- masks -------------------------------------------------------------- */

static void mask_bit(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_RESET);

	s.attr.qp_state = IBV_QPS_INIT;
	answer_call(ibv_modify_qp(
		s.qp, &s.attr,
		required_mask(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT) |
			(int)rule->arg));
}

/* arg: the state, arg2: the mask, without IBV_QP_STATE. */
static void without_state(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, (enum ibv_qp_state)rule->arg);

	answer_call(ibv_modify_qp(s.qp, &s.attr, (int)rule->arg2));
}

static void cur_state(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, (enum ibv_qp_state)rule->arg);

	s.attr.qp_state = IBV_QPS_RTS;
	s.attr.cur_qp_state = (enum ibv_qp_state)rule->arg2;
	answer_call(ibv_modify_qp(
		s.qp, &s.attr,
		required_mask(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS) |
			IBV_QP_CUR_STATE));
}

static void unknown_state(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_RESET);

	(void)rule;
	s.attr.qp_state = (enum ibv_qp_state)77;
	answer_call(ibv_modify_qp(s.qp, &s.attr, IBV_QP_STATE));
}

/* --- values ------------------------------------------------------------- */

enum value {
	PORT,
	AV_PORT,
	NO_GRH,
	SGID_EMPTY,
	MTU,
	RD_ATOMIC,
	DEST_RD_ATOMIC,
	TIMEOUT,
	RETRY_CNT,
	RNR_RETRY,
	RNR_TIMER,
	PKEY,
	ACCESS,
	DEST_QPN,
	QKEY_HIGH,
};

static void set_value(struct ibv_qp_attr *attr, enum value which, int64_t value)
{
	switch (which) {
	case PORT:
		attr->port_num = (uint8_t)value;
		break;
	case AV_PORT:
		attr->ah_attr.port_num = (uint8_t)value;
		break;
	case NO_GRH:
		attr->ah_attr.is_global = 0;
		break;
	case SGID_EMPTY:
		attr->ah_attr.grh.sgid_index = (uint8_t)value;
		break;
	case MTU:
		attr->path_mtu = (enum ibv_mtu)value;
		break;
	case RD_ATOMIC:
		attr->max_rd_atomic = (uint8_t)value;
		break;
	case DEST_RD_ATOMIC:
		attr->max_dest_rd_atomic = (uint8_t)value;
		break;
	case TIMEOUT:
		attr->timeout = (uint8_t)value;
		break;
	case RETRY_CNT:
		attr->retry_cnt = (uint8_t)value;
		break;
	case RNR_RETRY:
		attr->rnr_retry = (uint8_t)value;
		break;
	case RNR_TIMER:
		attr->min_rnr_timer = (uint8_t)value;
		break;
	case PKEY:
		attr->pkey_index = (uint16_t)value;
		break;
	case ACCESS:
		attr->qp_access_flags = (unsigned int)value;
		break;
	case DEST_QPN:
		attr->dest_qp_num = (uint32_t)value;
		break;
	case QKEY_HIGH:
		attr->qkey = (uint32_t)value;
		break;
	}
}

/* The transition at which an RC QP is told the value. */
static enum ibv_qp_state state_for(enum value which)
{
	switch (which) {
	case PORT:
	case PKEY:
	case ACCESS:
	case QKEY_HIGH:
		return IBV_QPS_RESET;
	case RD_ATOMIC:
	case TIMEOUT:
	case RETRY_CNT:
	case RNR_RETRY:
		return IBV_QPS_RTR;
	default:
		return IBV_QPS_INIT;
	}
}

static int modify_with(struct subject *s, enum value which, int64_t value)
{
	enum ibv_qp_state from = state_for(which);
	enum ibv_qp_state to = from + 1;

	set_value(&s->attr, which, value);
	s->attr.qp_state = to;
	return ibv_modify_qp(s->qp, &s->attr,
			     required_mask(s->qp->qp_type, from, to));
}

static void value(const struct rule *rule)
{
	enum value which = (enum value)rule->arg;
	struct subject s = subject_in(IBV_QPT_RC, state_for(which));

	answer_call(modify_with(&s, which, rule->arg2));
}

static void qkey(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_UD, IBV_QPS_RESET);

	if (rule->arg)
		without_capability(CAP_NET_RAW);
	answer_call(modify_with(&s, QKEY_HIGH, rule->arg2));
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = ibv_query_qp(qp, &attr, (1 << 21) - 1, &init);

	if (err)
		not_here("ibv_query_qp", err);
	return attr;
}

static void rd_rounded(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_RTR);
	int err = modify_with(&s, RD_ATOMIC, rule->arg);

	if (err)
		answer_call(err);
	answer("%u", query(s.qp).max_rd_atomic);
}

static void psn_masked(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_INIT);
	int err;

	(void)rule;
	s.attr.rq_psn = 0x12345678;
	s.attr.qp_state = IBV_QPS_RTR;
	err = ibv_modify_qp(
		s.qp, &s.attr,
		required_mask(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR));
	if (err)
		answer_call(err);
	answer("%#x", query(s.qp).rq_psn);
}

/* --- a refusal ---------------------------------------------------------- */

static void refused_state(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_INIT);

	(void)rule;
	s.attr.qp_state = IBV_QPS_RTS;
	if (!ibv_modify_qp(s.qp, &s.attr, IBV_QP_STATE))
		answer("was not refused");
	answer("%s", rules_qp_state(state_of(s.qp)));
}

static void refused_values(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_INIT);

	(void)rule;
	s.attr.qp_state = IBV_QPS_RTR;
	s.attr.min_rnr_timer = 9;
	if (!ibv_modify_qp(s.qp, &s.attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER))
		answer("was not refused");
	answer(query(s.qp).min_rnr_timer == 9 ? "changed" : "unchanged");
}

static void refused_then_right(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_INIT);

	(void)rule;
	s.attr.qp_state = IBV_QPS_RTR;
	if (!ibv_modify_qp(s.qp, &s.attr, IBV_QP_STATE))
		answer("was not refused");
	answer_call(ibv_modify_qp(
		s.qp, &s.attr,
		required_mask(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR)));
}

static void public_state(const struct rule *rule)
{
	struct subject s = subject_in(IBV_QPT_RC, IBV_QPS_INIT);

	(void)rule;
	answer("%s", rules_qp_state(s.qp->state));
}

/* --- what transitions do ------------------------------------------------ */

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = { .qp_state = state,
				    .en_sqd_async_notify = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | more);
}

static void receives_at(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	fill_recv(p, 8);
	post_recv(p);
	if (to_state(p->b.qp, (enum ibv_qp_state)rule->arg, 0))
		answer("was refused");
	answer("%s", wc_name(wait_status(p->b.recv_cq, QUIET_MS)));
}

static void reset_then_again(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	(void)rule;
	to_state(p->a.qp, IBV_QPS_ERR, 0);
	to_state(p->a.qp, IBV_QPS_RESET, 0);
	bring(p->a.qp, good_attr(p->w, p->b.qp), IBV_QPS_RTS);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
	answer("%s", wc_name(wait_status(p->a.send_cq, LIMIT_MS)));
}

static void sqd_holds(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	if (to_state(p->a.qp, IBV_QPS_SQD, 0))
		answer("no SQD");
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
	if (!rule->arg)
		answer("%s", wc_name(wait_status(p->a.send_cq, QUIET_MS)));
	wait_drained(p->a.qp);
	if (to_state(p->a.qp, IBV_QPS_RTS, 0))
		answer("no RTS");
	answer("%s", wc_name(wait_status(p->a.send_cq, 1000)));
}

static const char *event_name(int event)
{
	return event == NOTHING
		       ? "nothing"
		       : ibv_event_type_str((enum ibv_event_type)event);
}

static void sqd_event(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	if (to_state(p->a.qp, IBV_QPS_SQD, (int)rule->arg))
		answer("no SQD");
	answer("%s", event_name(wait_async(p->w->context,
					   rule->arg ? LIMIT_MS : QUIET_MS)));
}

#define TABLE     "IBTA 11.2.5.2"
#define CORE      "the kernel's core checks"
#define RANGE     "IBTA 11.2.5.2: an invalid value is refused"
#define SIW_TABLE "looks at no attribute but the state and the rights"
#define SIW_IWARP "iWARP has no such attribute"
#define UNCHECKED "does not look"
#define BELIEVED  "believes what it is told"
#define NO_TABLE  "6.12 asks the table only with IBV_QP_STATE; 6.1 always"

static const struct rule rules[] = {
	RULE("modify_qp.mask_bit_21", mask_bit, "EOPNOTSUPP",
	     "A mask bit behind the known ones is refused", CORE,
	     .arg = 1 << 21),
	RULE("modify_qp.mask_rate_limit", mask_bit, "EOPNOTSUPP",
	     "RATE_LIMIT is refused by a device without it", "libibverbs",
	     .arg = IBV_QP_RATE_LIMIT),
	RULE("modify_qp.unknown_state", unknown_state, "EINVAL",
	     "A state that nobody knows is refused", CORE),
	RULE("modify_qp.no_state.right_bits", without_state, "ok",
	     "Without STATE: what the row that stays in the state lists", TABLE,
	     .arg = IBV_QPS_RTS, .arg2 = IBV_QP_ACCESS_FLAGS),
	RULE("modify_qp.no_state.timeout_in_rts", without_state, "EINVAL",
	     "Without STATE: TIMEOUT can't be changed in RTS",
	     "IBTA 11.2.5.2; mlx5 refuses, from memory", .rxe = NO_TABLE,
	     .arg = IBV_QPS_RTS, .arg2 = IBV_QP_TIMEOUT),
	RULE("modify_qp.no_state.av_in_init", without_state, "EINVAL",
	     "Without STATE: AV can't be set in INIT",
	     "IBTA 11.2.5.2; mlx5 refuses, from memory", .rxe = NO_TABLE,
	     .siw = SIW_TABLE, .arg = IBV_QPS_INIT, .arg2 = IBV_QP_AV),
	RULE("modify_qp.no_state.port_in_reset", without_state, "EINVAL",
	     "Without STATE: RESET takes no attribute at all",
	     "IBTA 11.2.5.2; mlx5 refuses, from memory", .rxe = NO_TABLE,
	     .siw = SIW_TABLE, .arg = IBV_QPS_RESET, .arg2 = IBV_QP_PORT),
	RULE("modify_qp.cur_state.true", cur_state, "ok",
	     "CUR_STATE that is the state", TABLE, .siw = SIW_TABLE,
	     .arg = IBV_QPS_RTR, .arg2 = IBV_QPS_RTR),
	RULE("modify_qp.cur_state.false", cur_state, "EINVAL",
	     "CUR_STATE that is not the state is refused",
	     "IBTA 11.2.5.2: an error", .rxe = BELIEVED, .arg = IBV_QPS_INIT,
	     .arg2 = IBV_QPS_RTR),

	RULE("modify_qp.port_0", value, "EINVAL", "Port numbers start at 1",
	     CORE, .arg = PORT),
	RULE("modify_qp.port_200", value, "EINVAL",
	     "A port that is not there is refused", CORE, .arg = PORT,
	     .arg2 = 200),
	RULE("modify_qp.av_port_200", value, "EINVAL",
	     "A path's port that is not there is refused", CORE, .arg = AV_PORT,
	     .arg2 = 200),
	RULE("modify_qp.no_grh", value, "EINVAL", "RoCE needs is_global = 1",
	     CORE, .siw = SIW_IWARP, .arg = NO_GRH),
	RULE("modify_qp.sgid_empty", value, "EINVAL",
	     "A source GID's index with no GID there is refused",
	     "ENODATA inside the table, EINVAL past its end",
	     .rxe = "its table has 1024 places: 100 is empty; soft0's has one",
	     .arg = SGID_EMPTY, .arg2 = 100),
	RULE("modify_qp.mtu_0", value, "EINVAL", "0 is no path MTU", RANGE,
	     .rxe = UNCHECKED, .siw = SIW_TABLE, .arg = MTU),
	RULE("modify_qp.mtu_6", value, "EINVAL",
	     "There is no path MTU above 4096", RANGE, .siw = SIW_TABLE,
	     .arg = MTU, .arg2 = 6),
	RULE("modify_qp.mtu_in_bytes", value, "EINVAL",
	     "1024 is no path MTU: IBV_MTU_1024 is", RANGE,
	     .rxe = "cut to 8 bits it is 0, and taken", .siw = SIW_TABLE,
	     .arg = MTU, .arg2 = 1024),
	RULE("modify_qp.mtu_4096", value, "ok",
	     "A path MTU up to the port's maximum is taken", RANGE, .arg = MTU,
	     .arg2 = IBV_MTU_4096),
	RULE("modify_qp.rd_atomic_129", value, "EINVAL",
	     "max_rd_atomic can't be above max_qp_init_rd_atom", RANGE,
	     .arg = RD_ATOMIC, .arg2 = 129),
	RULE("modify_qp.dest_rd_atomic_129", value, "EINVAL",
	     "max_dest_rd_atomic can't be above max_qp_rd_atom", RANGE,
	     .rxe = UNCHECKED, .siw = SIW_TABLE, .arg = DEST_RD_ATOMIC,
	     .arg2 = 129),
	RULE("modify_qp.timeout_32", value, "EINVAL", "A timeout has 5 bits",
	     RANGE, .arg = TIMEOUT, .arg2 = 32),
	RULE("modify_qp.retry_cnt_8", value, "EINVAL", "retry_cnt has 3 bits",
	     RANGE, .rxe = UNCHECKED, .arg = RETRY_CNT, .arg2 = 8),
	RULE("modify_qp.rnr_retry_8", value, "EINVAL", "rnr_retry has 3 bits",
	     RANGE, .rxe = UNCHECKED, .arg = RNR_RETRY, .arg2 = 8),
	RULE("modify_qp.rnr_timer_32", value, "EINVAL",
	     "min_rnr_timer has 5 bits", RANGE, .rxe = UNCHECKED,
	     .siw = SIW_TABLE, .arg = RNR_TIMER, .arg2 = 32),
	RULE("modify_qp.pkey_index_1", value, "EINVAL",
	     "A P_Key's index behind the table is refused", RANGE,
	     .rxe = UNCHECKED, .siw = SIW_TABLE, .arg = PKEY, .arg2 = 1),
	RULE("modify_qp.access_unknown", value, "EINVAL",
	     "Rights that a QP does not have are refused", RANGE,
	     .rxe = "6.1 does not look", .siw = SIW_TABLE, .arg = ACCESS,
	     .arg2 = 1 << 12),
	RULE("modify_qp.dest_qpn_25_bits", value, "EINVAL",
	     "QP numbers have 24 bits", RANGE, .rxe = UNCHECKED,
	     .siw = SIW_TABLE, .arg = DEST_QPN, .arg2 = 1 << 24),
	RULE("modify_qp.rd_atomic_given_for_3", rd_rounded, "4",
	     "max_rd_atomic asked for 3", "left open", .siw = SIW_TABLE,
	     .arg = 3),
	RULE("modify_qp.psn_32_bits", psn_masked, "0x345678",
	     "Of a PSN 24 bits count", CORE, .siw = SIW_IWARP),
	RULE("modify_qp.qkey_privileged", qkey, "EPERM",
	     "A Q_Key with the high bit needs CAP_NET_RAW", CORE, .arg = 1,
	     .arg2 = 0x80000001),
	RULE("modify_qp.qkey_privileged_allowed", qkey, "ok",
	     "A Q_Key with the high bit, with CAP_NET_RAW", CORE,
	     .arg2 = 0x80000001),

	RULE("modify_qp.refused.state", refused_state, "INIT",
	     "A refused modify leaves the state", "IBTA 11.2.5.2",
	     .siw = SIW_TABLE),
	RULE("modify_qp.refused.values", refused_values, "unchanged",
	     "A refused modify leaves the values", "IBTA 11.2.5.2",
	     .siw = SIW_TABLE),
	RULE("modify_qp.refused.then_right", refused_then_right, "ok",
	     "After a refused modify the right one works", "IBTA 11.2.5.2",
	     .siw = SIW_TABLE),
	RULE("modify_qp.public_state", public_state, "INIT",
	     "A modify sets qp->state", "libibverbs"),

	RULE("modify_qp.to_reset.receives", receives_at, "nothing",
	     "RESET empties the queues without a completion", "IBTA 10.3.1",
	     .arg = IBV_QPS_RESET),
	RULE("modify_qp.to_err.receives", receives_at, "IBV_WC_WR_FLUSH_ERR",
	     "ERR flushes the receives", "IBTA 10.3.1", .arg = IBV_QPS_ERR),
	RULE("modify_qp.to_reset.again", reset_then_again, "IBV_WC_SUCCESS",
	     "A QP that broke is as new after RESET", "IBTA 10.3.1"),
	RULE("modify_qp.sqd.holds", sqd_holds, "nothing",
	     "What is posted in SQD waits", "IBTA 10.3.1"),
	RULE("modify_qp.sqd.resumes", sqd_holds, "IBV_WC_SUCCESS",
	     "RTS after SQD goes on with what waited", "IBTA 10.3.1",
	     .rxe = "waits for the next post", .arg = 1),
	RULE("modify_qp.sqd.event_asked", sqd_event, "send queue drained",
	     "SQ_DRAINED is raised when it was asked for", "IBTA 11.6.3",
	     .arg = IBV_QP_EN_SQD_ASYNC_NOTIFY),
	RULE("modify_qp.sqd.event_not_asked", sqd_event, "nothing",
	     "SQ_DRAINED is not raised when it was not asked for",
	     "IBTA 11.2.5.2: an attribute asks for it",
	     .rxe = "raises it always"),
};
const struct rules modify_rules = RULES(rules);
