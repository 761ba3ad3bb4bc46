/* SPDX-License-Identifier: MIT */
/*
 * The one place that says, per verb: the names of its arguments (the manual
 * pages'), what its answer means, and what it hands back. The words of a
 * call are its arguments in order; word CALL_RET is what it returned.
 */
#include "fields.h"

#include <errno.h>

#define ROW(call, what, ...)                                       \
	const struct verb verb_##call = { .name = #call,           \
					  .answer = ANSWER_##what, \
					  .makes = RULES_NONE,     \
					  .unmakes = RULES_NONE,   \
					  __VA_ARGS__ }
/* Rows without a macro of their own override the defaults above. */
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
#define MAKES(type)   .makes = RULES_##type
#define UNMAKES(type) .unmakes = RULES_##type
#define LIST(...)                \
	(const struct field[])   \
	{                        \
		__VA_ARGS__, END \
	}
#define ARGS(...) .args = LIST(__VA_ARGS__)
#define OUT(...)  .out = LIST(__VA_ARGS__)
#define CONTEXT   OBJECT(0, "context", CONTEXT)
#define PORT      UNSIGNED(1, "port_num")

/* What an object itself tells once it is there. */
static const struct field context_made[] = {
	MEMBER(struct ibv_context, num_comp_vectors, KIND_SIGNED),
	MEMBER(struct ibv_context, async_fd, KIND_SIGNED),
	END,
};
static const struct field pd_made[] = {
	MEMBER(struct ibv_pd, handle, KIND_UNSIGNED),
	END,
};
static const struct field mr_made[] = {
	MEMBER(struct ibv_mr, handle, KIND_UNSIGNED),
	MEMBER(struct ibv_mr, lkey, KIND_UNSIGNED),
	MEMBER(struct ibv_mr, rkey, KIND_UNSIGNED),
	END,
};
static const struct field mw_made[] = {
	MEMBER(struct ibv_mw, handle, KIND_UNSIGNED),
	MEMBER(struct ibv_mw, rkey, KIND_UNSIGNED),
	END,
};
static const struct field mw_bound[] = {
	MEMBER(struct ibv_mw, rkey, KIND_UNSIGNED),
	END,
};
static const struct field channel_made[] = {
	MEMBER(struct ibv_comp_channel, fd, KIND_SIGNED),
	END,
};
static const struct field cq_made[] = {
	MEMBER(struct ibv_cq, handle, KIND_UNSIGNED),
	MEMBER(struct ibv_cq, cqe, KIND_SIGNED),
	END,
};
static const struct field cq_resized[] = {
	MEMBER(struct ibv_cq, cqe, KIND_SIGNED),
	END,
};
static const struct field srq_made[] = {
	MEMBER(struct ibv_srq, handle, KIND_UNSIGNED),
	END,
};
static const struct field ah_made[] = {
	MEMBER(struct ibv_ah, handle, KIND_UNSIGNED),
	END,
};
static const struct field qp_made[] = {
	MEMBER(struct ibv_qp, handle, KIND_UNSIGNED),
	MEMBER(struct ibv_qp, qp_num, KIND_UNSIGNED),
	MEMBER(struct ibv_qp, state, KIND_ENUM, .name_of = name_qp_state),
	END,
};
static const struct field qp_moved[] = {
	MEMBER(struct ibv_qp, state, KIND_ENUM, .name_of = name_qp_state),
	END,
};

/* The device. */
static const struct field device_attr[] = {
#define ATTR(member, as, ...) \
	MEMBER(struct ibv_device_attr, member, as, ##__VA_ARGS__)
	ATTR(fw_ver, KIND_TEXT),
	ATTR(node_guid, KIND_GUID),
	ATTR(sys_image_guid, KIND_GUID),
	ATTR(vendor_id, KIND_UNSIGNED),
	ATTR(vendor_part_id, KIND_UNSIGNED),
	ATTR(hw_ver, KIND_UNSIGNED),
	ATTR(phys_port_cnt, KIND_UNSIGNED),
	ATTR(max_mr_size, KIND_UNSIGNED),
	ATTR(page_size_cap, KIND_ADDRESS),
	ATTR(max_pd, KIND_SIGNED),
	ATTR(max_mr, KIND_SIGNED),
	ATTR(max_cq, KIND_SIGNED),
	ATTR(max_cqe, KIND_SIGNED),
	ATTR(max_qp, KIND_SIGNED),
	ATTR(max_qp_wr, KIND_SIGNED),
	ATTR(max_sge, KIND_SIGNED),
	ATTR(max_sge_rd, KIND_SIGNED),
	ATTR(max_qp_rd_atom, KIND_SIGNED),
	ATTR(max_qp_init_rd_atom, KIND_SIGNED),
	ATTR(max_res_rd_atom, KIND_SIGNED),
	ATTR(atomic_cap, KIND_ENUM, .name_of = name_atomic_cap),
	ATTR(max_srq, KIND_SIGNED),
	ATTR(max_srq_wr, KIND_SIGNED),
	ATTR(max_srq_sge, KIND_SIGNED),
	ATTR(max_ah, KIND_SIGNED),
	ATTR(max_mw, KIND_SIGNED),
	ATTR(max_mcast_grp, KIND_SIGNED),
	ATTR(max_pkeys, KIND_UNSIGNED),
	ATTR(local_ca_ack_delay, KIND_UNSIGNED),
	ATTR(device_cap_flags, KIND_ADDRESS),
	END,
};
static const struct field port_attr[] = {
#define PORT_ATTR(member, as, ...) \
	MEMBER(struct ibv_port_attr, member, as, ##__VA_ARGS__)
	PORT_ATTR(state, KIND_ENUM, .name_of = name_port_state),
	PORT_ATTR(max_mtu, KIND_ENUM, .name_of = name_mtu),
	PORT_ATTR(active_mtu, KIND_ENUM, .name_of = name_mtu),
	PORT_ATTR(link_layer, KIND_ENUM, .name_of = name_link_layer),
	PORT_ATTR(lid, KIND_UNSIGNED),
	PORT_ATTR(sm_lid, KIND_UNSIGNED),
	PORT_ATTR(gid_tbl_len, KIND_SIGNED),
	PORT_ATTR(pkey_tbl_len, KIND_UNSIGNED),
	PORT_ATTR(max_msg_sz, KIND_UNSIGNED),
	PORT_ATTR(port_cap_flags, KIND_ADDRESS),
	PORT_ATTR(active_width, KIND_UNSIGNED),
	PORT_ATTR(active_speed, KIND_UNSIGNED),
	PORT_ATTR(phys_state, KIND_UNSIGNED),
	END,
};

ROW(ibv_get_device_list, POINTER,
    OUT(CUSTOM(CALL_RET, "devices", list_devices)));
ROW(ibv_free_device_list, VOID, ARGS(POINTER(0, "list")));
ROW(ibv_get_device_name, TEXT, ARGS(WORD(0, "device", KIND_DEVICE)));
ROW(ibv_get_device_guid, GUID, ARGS(WORD(0, "device", KIND_DEVICE)));
ROW(ibv_get_device_index, COUNT, ARGS(WORD(0, "device", KIND_DEVICE)));
ROW(ibv_open_device, OBJECT, MAKES(CONTEXT),
    ARGS(WORD(0, "device", KIND_DEVICE)),
    OUT(STRUCT(CALL_RET, "context", context_made)));
ROW(ibv_close_device, ERRNO, UNMAKES(CONTEXT), ARGS(CONTEXT));
ROW(ibv_query_device, ERRNO, ARGS(CONTEXT),
    OUT(STRUCT(1, "device_attr", device_attr)));
/* Its structure begins with a struct ibv_device_attr. */
ROW(ibv_query_device_ex, ERRNO, ARGS(CONTEXT),
    OUT(STRUCT(2, "attr", device_attr)));
ROW(ibv_query_port, ERRNO, ARGS(CONTEXT, PORT),
    OUT(STRUCT(2, "port_attr", port_attr)));
ROW(ibv_query_gid, MINUS, ARGS(CONTEXT, PORT, SIGNED(2, "index")),
    OUT(STRUCT(3, "gid", LIST({ "gid", KIND_GID, .size = 16 }))));
ROW(ibv_query_gid_ex, ERRNO,
    ARGS(CONTEXT, PORT, UNSIGNED(2, "gid_index"), UNSIGNED(4, "flags")),
    OUT(CUSTOM(3, "entry", list_gid)));
ROW(ibv_query_gid_table, COUNT,
    ARGS(CONTEXT, UNSIGNED(2, "max_entries"), UNSIGNED(3, "flags")),
    OUT(CUSTOM(1, "entries", list_gids)));
ROW(ibv_query_pkey, MINUS, ARGS(CONTEXT, PORT, SIGNED(2, "index")),
    OUT(STRUCT(3, "pkey", LIST({ "pkey", KIND_BIG_ENDIAN, .size = 2 }))));
ROW(ibv_get_pkey_index, COUNT,
    ARGS(CONTEXT, PORT,
	 { "pkey", KIND_BIG_ENDIAN, .offset = 2 * 8, .size = 2 }));

/* Protection domains and memory. */
#define PD           OBJECT(0, "pd", PD)
#define ACCESS(word) FLAGS(word, "access", name_access_bit)
ROW(ibv_alloc_pd, OBJECT, MAKES(PD), ARGS(CONTEXT),
    OUT(STRUCT(CALL_RET, "pd", pd_made)));
ROW(ibv_dealloc_pd, ERRNO, UNMAKES(PD), ARGS(PD));
ROW(ibv_reg_mr, OBJECT, MAKES(MR),
    ARGS(PD, POINTER(1, "addr"), UNSIGNED(2, "length"), ACCESS(3)),
    OUT(STRUCT(CALL_RET, "mr", mr_made)));
ROW(ibv_reg_mr_iova, OBJECT, MAKES(MR),
    ARGS(PD, POINTER(1, "addr"), UNSIGNED(2, "length"), POINTER(3, "iova"),
	 ACCESS(4)),
    OUT(STRUCT(CALL_RET, "mr", mr_made)));
ROW(ibv_reg_mr_iova2, OBJECT, MAKES(MR),
    ARGS(PD, POINTER(1, "addr"), UNSIGNED(2, "length"), POINTER(3, "iova"),
	 ACCESS(4)),
    OUT(STRUCT(CALL_RET, "mr", mr_made)));
ROW(ibv_rereg_mr, MINUS,
    ARGS(OBJECT(0, "mr", MR), UNSIGNED(1, "flags"), OBJECT(2, "pd", PD),
	 POINTER(3, "addr"), UNSIGNED(4, "length"), ACCESS(5)),
    OUT(STRUCT(0, "mr", mr_made)));
ROW(ibv_dereg_mr, ERRNO, UNMAKES(MR), ARGS(OBJECT(0, "mr", MR)));

static const struct field mw_bind[] = {
#define BIND(member, as, ...) \
	MEMBER(struct ibv_mw_bind, member, as, ##__VA_ARGS__)
	BIND(wr_id, KIND_UNSIGNED),
	BIND(send_flags, KIND_FLAGS, .name_of = name_send_bit),
	BIND(bind_info.mr, KIND_OBJECT, .object = RULES_MR),
	BIND(bind_info.addr, KIND_ADDRESS),
	BIND(bind_info.length, KIND_UNSIGNED),
	BIND(bind_info.mw_access_flags, KIND_FLAGS, .name_of = name_access_bit),
	END,
};
ROW(ibv_alloc_mw, OBJECT, MAKES(MW),
    ARGS(PD, WORD(1, "type", KIND_ENUM, .name_of = name_mw_type)),
    OUT(STRUCT(CALL_RET, "mw", mw_made)));
ROW(ibv_bind_mw, ERRNO,
    ARGS(OBJECT(0, "qp", QP), OBJECT(1, "mw", MW),
	 STRUCT(2, "mw_bind", mw_bind)),
    OUT(STRUCT(1, "mw", mw_bound)));
ROW(ibv_dealloc_mw, ERRNO, UNMAKES(MW), ARGS(OBJECT(0, "mw", MW)));

/* Completions. */
#define CQ OBJECT(0, "cq", CQ)
static const struct field cq_ex_attr[] = {
#define CQ_EX(member, as, ...) \
	MEMBER(struct ibv_cq_init_attr_ex, member, as, ##__VA_ARGS__)
	CQ_EX(cqe, KIND_UNSIGNED),
	CQ_EX(cq_context, KIND_POINTER),
	CQ_EX(channel, KIND_OBJECT, .object = RULES_CHANNEL),
	CQ_EX(comp_vector, KIND_UNSIGNED),
	CQ_EX(wc_flags, KIND_FLAGS, .name_of = name_wc_ex_bit),
	CQ_EX(comp_mask, KIND_UNSIGNED),
	END,
};
static const struct field got_cq[] = {
	{ "cq", KIND_OBJECT, .size = sizeof(void *), .object = RULES_CQ },
	END,
};
static const struct field got_cq_context[] = {
	{ "cq_context", KIND_POINTER, .size = sizeof(void *) },
	END,
};
ROW(ibv_create_comp_channel, OBJECT, MAKES(CHANNEL), ARGS(CONTEXT),
    OUT(STRUCT(CALL_RET, "channel", channel_made)));
ROW(ibv_destroy_comp_channel, ERRNO, UNMAKES(CHANNEL),
    ARGS(OBJECT(0, "channel", CHANNEL)));
ROW(ibv_create_cq, OBJECT, MAKES(CQ),
    ARGS(CONTEXT, SIGNED(1, "cqe"), POINTER(2, "cq_context"),
	 OBJECT(3, "channel", CHANNEL), SIGNED(4, "comp_vector")),
    OUT(STRUCT(CALL_RET, "cq", cq_made)));
/* A struct ibv_cq_ex begins like a struct ibv_cq. */
ROW(ibv_create_cq_ex, OBJECT, MAKES(CQ),
    ARGS(CONTEXT, STRUCT(1, "cq_attr", cq_ex_attr),
	 CUSTOM(1, "flags", list_cq_init_ex)),
    OUT(STRUCT(CALL_RET, "cq", cq_made)));
ROW(ibv_resize_cq, ERRNO, ARGS(CQ, SIGNED(1, "cqe")),
    OUT(STRUCT(0, "cq", cq_resized)));
ROW(ibv_destroy_cq, ERRNO, UNMAKES(CQ), ARGS(CQ));
ROW(ibv_get_cq_event, MINUS, ARGS(OBJECT(0, "channel", CHANNEL)),
    OUT(STRUCT(1, "cq", got_cq), STRUCT(2, "cq_context", got_cq_context)));
ROW(ibv_ack_cq_events, VOID, ARGS(CQ, UNSIGNED(1, "nevents")));
ROW(ibv_req_notify_cq, ERRNO, ARGS(CQ, SIGNED(1, "solicited_only")));
ROW(ibv_poll_cq, COUNT, ARGS(CQ, SIGNED(1, "num_entries")),
    OUT(CUSTOM(2, "wc", list_wc)), .polls = true);
ROW(ibv_start_poll, POLL,
    ARGS(CQ, STRUCT(1, "attr",
		    LIST(MEMBER(struct ibv_poll_cq_attr, comp_mask,
				KIND_UNSIGNED)))),
    OUT(CUSTOM(0, "wc", list_wc_ex)), .polls = true, .empty = ENOENT);
ROW(ibv_next_poll, POLL, ARGS(CQ), OUT(CUSTOM(0, "wc", list_wc_ex)));
ROW(ibv_end_poll, VOID, ARGS(CQ));

/* Shared receive queues. */
#define SRQ OBJECT(0, "srq", SRQ)
static const struct field srq_init[] = {
#define SRQ_INIT(member, as, ...) \
	MEMBER(struct ibv_srq_init_attr_ex, member, as, ##__VA_ARGS__)
	SRQ_INIT(srq_context, KIND_POINTER),
	SRQ_INIT(attr.max_wr, KIND_UNSIGNED),
	SRQ_INIT(attr.max_sge, KIND_UNSIGNED),
	SRQ_INIT(attr.srq_limit, KIND_UNSIGNED),
	END,
};
/* Of the extended structure the plain one is the beginning. */
static const struct field srq_init_ex[] = {
	SRQ_INIT(pd, KIND_OBJECT, .object = RULES_PD),
	SRQ_INIT(cq, KIND_OBJECT, .object = RULES_CQ),
	SRQ_INIT(srq_type, KIND_ENUM, .name_of = name_srq_type),
	SRQ_INIT(srq_context, KIND_POINTER),
	SRQ_INIT(attr.max_wr, KIND_UNSIGNED),
	SRQ_INIT(attr.max_sge, KIND_UNSIGNED),
	SRQ_INIT(attr.srq_limit, KIND_UNSIGNED),
	SRQ_INIT(comp_mask, KIND_UNSIGNED),
	END,
};
static const struct field srq_given[] = {
	SRQ_INIT(attr.max_wr, KIND_UNSIGNED),
	SRQ_INIT(attr.max_sge, KIND_UNSIGNED),
	END,
};
static const struct field srq_attr[] = {
	MEMBER(struct ibv_srq_attr, max_wr, KIND_UNSIGNED),
	MEMBER(struct ibv_srq_attr, max_sge, KIND_UNSIGNED),
	MEMBER(struct ibv_srq_attr, srq_limit, KIND_UNSIGNED),
	END,
};
ROW(ibv_create_srq, OBJECT, MAKES(SRQ),
    ARGS(PD, STRUCT(1, "srq_init_attr", srq_init)),
    OUT(STRUCT(CALL_RET, "srq", srq_made),
	STRUCT(1, "srq_init_attr", srq_given)));
ROW(ibv_create_srq_ex, OBJECT, MAKES(SRQ),
    ARGS(CONTEXT, STRUCT(1, "srq_init_attr_ex", srq_init_ex)),
    OUT(STRUCT(CALL_RET, "srq", srq_made),
	STRUCT(1, "srq_init_attr_ex", srq_given)));
ROW(ibv_modify_srq, ERRNO,
    ARGS(SRQ, STRUCT(1, "srq_attr", srq_attr),
	 FLAGS(2, "srq_attr_mask", name_srq_bit)));
ROW(ibv_query_srq, ERRNO, ARGS(SRQ), OUT(STRUCT(1, "srq_attr", srq_attr)));
ROW(ibv_destroy_srq, ERRNO, UNMAKES(SRQ), ARGS(SRQ));
ROW(ibv_post_srq_recv, ERRNO, ARGS(SRQ, CUSTOM(1, "wr", list_recv_wr)),
    .out_failed = LIST(CUSTOM(2, "bad_wr", list_bad_recv_wr)));

/* Queue pairs. A struct ibv_qp_init_attr_ex begins like the plain one. */
#define QP OBJECT(0, "qp", QP)
#define QP_INIT(member, as, ...) \
	MEMBER(struct ibv_qp_init_attr_ex, member, as, ##__VA_ARGS__)
#define QP_CAPS                                           \
	QP_INIT(cap.max_send_wr, KIND_UNSIGNED),          \
		QP_INIT(cap.max_recv_wr, KIND_UNSIGNED),  \
		QP_INIT(cap.max_send_sge, KIND_UNSIGNED), \
		QP_INIT(cap.max_recv_sge, KIND_UNSIGNED), \
		QP_INIT(cap.max_inline_data, KIND_UNSIGNED)
#define QP_INITS                                                         \
	QP_INIT(qp_context, KIND_POINTER),                               \
		QP_INIT(send_cq, KIND_OBJECT, .object = RULES_CQ),       \
		QP_INIT(recv_cq, KIND_OBJECT, .object = RULES_CQ),       \
		QP_INIT(srq, KIND_OBJECT, .object = RULES_SRQ), QP_CAPS, \
		QP_INIT(qp_type, KIND_ENUM, .name_of = name_qp_type),    \
		QP_INIT(sq_sig_all, KIND_SIGNED)
static const struct field qp_init[] = { QP_INITS, END };
static const struct field qp_init_ex[] = {
	QP_INITS,
	QP_INIT(comp_mask, KIND_UNSIGNED),
	END,
};
static const struct field qp_given[] = { QP_CAPS, END };
ROW(ibv_create_qp, OBJECT, MAKES(QP),
    ARGS(PD, STRUCT(1, "qp_init_attr", qp_init)),
    OUT(STRUCT(CALL_RET, "qp", qp_made), STRUCT(1, "qp_init_attr", qp_given)));
ROW(ibv_create_qp_ex, OBJECT, MAKES(QP),
    ARGS(CONTEXT, STRUCT(1, "qp_init_attr", qp_init_ex),
	 CUSTOM(1, "qp_init_attr", list_qp_init_ex)),
    OUT(STRUCT(CALL_RET, "qp", qp_made), STRUCT(1, "qp_init_attr", qp_given)));
ROW(ibv_modify_qp, ERRNO,
    ARGS(QP, CUSTOM(1, "attr", list_qp_attr),
	 FLAGS(2, "attr_mask", name_qp_attr_bit)),
    OUT(STRUCT(0, "qp", qp_moved)));
ROW(ibv_query_qp, ERRNO, ARGS(QP, FLAGS(2, "attr_mask", name_qp_attr_bit)),
    OUT(STRUCT(0, "qp", qp_moved), CUSTOM(1, "attr", list_qp_attr)));
ROW(ibv_destroy_qp, ERRNO, UNMAKES(QP), ARGS(QP));
ROW(ibv_post_send, ERRNO, ARGS(QP, CUSTOM(1, "wr", list_send_wr)),
    .out_failed = LIST(CUSTOM(2, "bad_wr", list_bad_send_wr)));
ROW(ibv_post_recv, ERRNO, ARGS(QP, CUSTOM(1, "wr", list_recv_wr)),
    .out_failed = LIST(CUSTOM(2, "bad_wr", list_bad_recv_wr)));
ROW(ibv_wr_complete, ERRNO, ARGS(QP, CUSTOM(1, "wr", list_batch)));
ROW(ibv_wr_abort, VOID, ARGS(QP, CUSTOM(1, "wr", list_batch)));

/* Addresses, multicast, asynchronous events. */
ROW(ibv_create_ah, OBJECT, MAKES(AH), ARGS(PD, CUSTOM(1, "attr", list_ah_attr)),
    OUT(STRUCT(CALL_RET, "ah", ah_made)));
ROW(ibv_create_ah_from_wc, OBJECT, MAKES(AH),
    ARGS(PD, POINTER(1, "wc"), POINTER(2, "grh"), UNSIGNED(3, "port_num")),
    OUT(STRUCT(CALL_RET, "ah", ah_made)));
ROW(ibv_destroy_ah, ERRNO, UNMAKES(AH), ARGS(OBJECT(0, "ah", AH)));
static const struct field gid_of[] = { { "gid", KIND_GID, .size = 16 }, END };
ROW(ibv_attach_mcast, ERRNO,
    ARGS(QP, STRUCT(1, "gid", gid_of), UNSIGNED(2, "lid")));
ROW(ibv_detach_mcast, ERRNO,
    ARGS(QP, STRUCT(1, "gid", gid_of), UNSIGNED(2, "lid")));
ROW(ibv_get_async_event, MINUS, ARGS(CONTEXT),
    OUT(CUSTOM(1, "event", list_async)));
ROW(ibv_ack_async_event, VOID, ARGS(CUSTOM(0, "event", list_async)));
