/* SPDX-License-Identifier: MIT */
/*
 * Structures of which only a part means something: what a mask, a bit or
 * another member says. As in lists.c, nothing else is read.
 */
#include "fields.h"

#define AH(member, as, ...) \
	MEMBER(struct ibv_ah_attr, member, as, ##__VA_ARGS__)
static const struct field ah_fields[] = {
	AH(port_num, KIND_UNSIGNED),
	AH(dlid, KIND_UNSIGNED),
	AH(sl, KIND_UNSIGNED),
	AH(src_path_bits, KIND_UNSIGNED),
	AH(static_rate, KIND_UNSIGNED),
	AH(is_global, KIND_UNSIGNED),
	END,
};
static const struct field grh_fields[] = {
	AH(grh.dgid, KIND_GID),
	AH(grh.sgid_index, KIND_UNSIGNED),
	AH(grh.hop_limit, KIND_UNSIGNED),
	AH(grh.traffic_class, KIND_UNSIGNED),
	AH(grh.flow_label, KIND_UNSIGNED),
	END,
};

static void ah_attr(struct decode *d, const char *prefix,
		    const struct ibv_ah_attr *attr)
{
	d->prefix = prefix;
	decode_fields(d, ah_fields, attr);
	if (attr->is_global)
		decode_fields(d, grh_fields, attr);
	d->prefix = NULL;
}

void list_ah_attr(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_ah_attr *attr = *(const struct ibv_ah_attr *const *)at;

	if (attr) {
		ah_attr(d, NULL, attr);
		return;
	}
	text_key(d->out, f->name);
	text_add(d->out, "null");
}

#define QP(member, mask, as, ...) \
	MEMBER(struct ibv_qp_attr, member, as, .bit = mask, ##__VA_ARGS__)
static const struct field qp_attr_fields[] = {
	QP(qp_state, IBV_QP_STATE, KIND_ENUM, .name_of = name_qp_state),
	QP(cur_qp_state, IBV_QP_CUR_STATE, KIND_ENUM, .name_of = name_qp_state),
	QP(pkey_index, IBV_QP_PKEY_INDEX, KIND_UNSIGNED),
	QP(port_num, IBV_QP_PORT, KIND_UNSIGNED),
	QP(qp_access_flags, IBV_QP_ACCESS_FLAGS, KIND_FLAGS,
	   .name_of = name_access_bit),
	QP(qkey, IBV_QP_QKEY, KIND_UNSIGNED),
	QP(path_mtu, IBV_QP_PATH_MTU, KIND_ENUM, .name_of = name_mtu),
	QP(dest_qp_num, IBV_QP_DEST_QPN, KIND_UNSIGNED),
	QP(rq_psn, IBV_QP_RQ_PSN, KIND_UNSIGNED),
	QP(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC, KIND_UNSIGNED),
	QP(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, KIND_UNSIGNED),
	QP(sq_psn, IBV_QP_SQ_PSN, KIND_UNSIGNED),
	QP(timeout, IBV_QP_TIMEOUT, KIND_UNSIGNED),
	QP(retry_cnt, IBV_QP_RETRY_CNT, KIND_UNSIGNED),
	QP(rnr_retry, IBV_QP_RNR_RETRY, KIND_UNSIGNED),
	QP(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC, KIND_UNSIGNED),
	QP(en_sqd_async_notify, IBV_QP_EN_SQD_ASYNC_NOTIFY, KIND_UNSIGNED),
	QP(path_mig_state, IBV_QP_PATH_MIG_STATE, KIND_ENUM,
	   .name_of = name_mig_state),
	QP(cap.max_send_wr, IBV_QP_CAP, KIND_UNSIGNED),
	QP(cap.max_recv_wr, IBV_QP_CAP, KIND_UNSIGNED),
	QP(cap.max_send_sge, IBV_QP_CAP, KIND_UNSIGNED),
	QP(cap.max_recv_sge, IBV_QP_CAP, KIND_UNSIGNED),
	QP(cap.max_inline_data, IBV_QP_CAP, KIND_UNSIGNED),
	QP(rate_limit, IBV_QP_RATE_LIMIT, KIND_UNSIGNED),
	END,
};

/* Only what attr_mask, word 2 of ibv_modify_qp and ibv_query_qp, names. */
void list_qp_attr(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_qp_attr *attr = *(const struct ibv_qp_attr *const *)at;

	d->mask = (unsigned int)d->word[2];
	if (!attr) {
		text_key(d->out, f->name);
		text_add(d->out, "null");
		return;
	}
	decode_fields(d, qp_attr_fields, attr);
	if (d->mask & IBV_QP_AV)
		ah_attr(d, "ah_attr.", &attr->ah_attr);
	if (d->mask & IBV_QP_ALT_PATH)
		ah_attr(d, "alt_ah_attr.", &attr->alt_ah_attr);
}

#define QP_EX(member, mask, as, ...)                   \
	MEMBER(struct ibv_qp_init_attr_ex, member, as, \
	       .bit = IBV_QP_INIT_ATTR_##mask, ##__VA_ARGS__)
static const struct field qp_ex_fields[] = {
	QP_EX(pd, PD, KIND_OBJECT, .object = RULES_PD),
	QP_EX(create_flags, CREATE_FLAGS, KIND_ADDRESS),
	QP_EX(send_ops_flags, SEND_OPS_FLAGS, KIND_FLAGS,
	      .name_of = name_send_op_bit),
	END,
};

/* Behind what it has in common with the plain one: what comp_mask names. */
void list_qp_init_ex(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_qp_init_attr_ex *attr =
		*(const struct ibv_qp_init_attr_ex *const *)at;

	(void)f;
	if (!attr)
		return;
	d->mask = attr->comp_mask;
	decode_fields(d, qp_ex_fields, attr);
}

static const struct field cq_ex_fields[] = {
	MEMBER(struct ibv_cq_init_attr_ex, flags, KIND_FLAGS,
	       .bit = IBV_CQ_INIT_ATTR_MASK_FLAGS,
	       .name_of = name_cq_create_bit),
	END,
};

void list_cq_init_ex(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_cq_init_attr_ex *attr =
		*(const struct ibv_cq_init_attr_ex *const *)at;

	(void)f;
	if (!attr)
		return;
	d->mask = attr->comp_mask;
	decode_fields(d, cq_ex_fields, attr);
}

static const struct field async_fields[] = {
	MEMBER(struct ibv_async_event, event_type, KIND_ENUM,
	       .name_of = name_event_type),
	END,
};
#define ELEMENT(member, as, ...) \
	MEMBER(struct ibv_async_event, element.member, as, ##__VA_ARGS__)
static const struct field async_cq =
	ELEMENT(cq, KIND_OBJECT, .object = RULES_CQ);
static const struct field async_qp =
	ELEMENT(qp, KIND_OBJECT, .object = RULES_QP);
static const struct field async_srq =
	ELEMENT(srq, KIND_OBJECT, .object = RULES_SRQ);
static const struct field async_port = ELEMENT(port_num, KIND_SIGNED);

/* Which member of `element` an event means: ibv_get_async_event(3). */
static const struct field *async_element(enum ibv_event_type type)
{
	switch (rules_object_of_event(type)) {
	case RULES_CQ:
		return &async_cq;
	case RULES_QP:
		return &async_qp;
	case RULES_SRQ:
		return &async_srq;
	default:
		break;
	}
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return &async_port;
	default:
		return NULL;
	}
}

void list_async(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_async_event *event =
		*(const struct ibv_async_event *const *)at;
	const struct field *element_field;

	(void)f;
	decode_fields(d, async_fields, event);
	element_field = async_element(event->event_type);
	if (element_field)
		decode_field(d, element_field, event);
}
