/* SPDX-License-Identifier: MIT */
/*
 * The object types, the calls that make and unmake them, and who holds whom.
 * Sources: the manual pages of rdma-core; the kernel's core/verbs.c and
 * core/uverbs_std_types.c, where usecnt is counted; libibverbs for channels.
 */
#include "common/rules/rules.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

const struct rules_object_info rules_objects[RULES_OBJECTS] = {
	[RULES_CONTEXT] = { "ctx", "device context", "struct ibv_context" },
	[RULES_PD] = { "pd", "protection domain", "struct ibv_pd" },
	[RULES_CHANNEL] = { "chan", "completion channel",
			    "struct ibv_comp_channel" },
	[RULES_MR] = { "mr", "memory region", "struct ibv_mr" },
	[RULES_CQ] = { "cq", "completion queue", "struct ibv_cq" },
	[RULES_SRQ] = { "srq", "shared receive queue", "struct ibv_srq" },
	[RULES_AH] = { "ah", "address handle", "struct ibv_ah" },
	[RULES_MW] = { "mw", "memory window", "struct ibv_mw" },
	[RULES_QP] = { "qp", "queue pair", "struct ibv_qp" },
};

enum rules_object rules_object_of_id(const char *id)
{
	for (int i = 0; i < RULES_OBJECTS; i++) {
		size_t length = strlen(rules_objects[i].prefix);

		if (strncmp(id, rules_objects[i].prefix, length))
			continue;
		if (isdigit((unsigned char)id[length]) &&
		    strspn(id + length, "0123456789") == strlen(id + length))
			return i;
	}
	return RULES_NONE;
}

enum rules_object rules_object_of_event(int type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return RULES_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return RULES_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return RULES_SRQ;
	default:
		return RULES_NONE;
	}
}

#define MAKES(call, object, needs)                                            \
	{                                                                     \
		call, object, RULES_CREATES, needs, NULL                      \
	}
#define UNMAKES(call, object, refused)                                        \
	{                                                                     \
		call, object, RULES_DESTROYS, NULL, refused                   \
	}

const struct rules_call rules_calls[] = {
	MAKES("ibv_open_device", RULES_CONTEXT, "a device of the list"),
	MAKES("ibv_import_device", RULES_CONTEXT, "a command descriptor"),
	UNMAKES("ibv_close_device", RULES_CONTEXT,
		"nothing: always 0, whatever still lives"),

	MAKES("ibv_alloc_pd", RULES_PD, "context"),
	MAKES("ibv_alloc_parent_domain", RULES_PD, "context, PD"),
	UNMAKES("ibv_dealloc_pd", RULES_PD,
		"a live MR, QP, AH, SRQ or MW: EBUSY"),

	MAKES("ibv_create_comp_channel", RULES_CHANNEL, "context"),
	UNMAKES("ibv_destroy_comp_channel", RULES_CHANNEL,
		"a CQ made with it: EBUSY"),

	MAKES("ibv_reg_mr", RULES_MR, "PD, memory"),
	MAKES("ibv_reg_mr_iova", RULES_MR, "PD, memory"),
	MAKES("ibv_reg_mr_iova2", RULES_MR, "PD, memory"),
	MAKES("ibv_reg_dmabuf_mr", RULES_MR, "PD, a dma-buf"),
	MAKES("ibv_reg_mr_ex", RULES_MR, "PD, memory"),
	MAKES("ibv_alloc_null_mr", RULES_MR, "PD"),
	UNMAKES("ibv_dereg_mr", RULES_MR,
		"a bound MW, on devices that count it"),

	MAKES("ibv_create_cq", RULES_CQ, "context (channel)"),
	MAKES("ibv_create_cq_ex", RULES_CQ, "context (channel)"),
	UNMAKES("ibv_destroy_cq", RULES_CQ,
		"a QP that uses it: EBUSY; unacknowledged events: it blocks"),

	MAKES("ibv_create_srq", RULES_SRQ, "PD"),
	MAKES("ibv_create_srq_ex", RULES_SRQ, "PD"),
	UNMAKES("ibv_destroy_srq", RULES_SRQ, "a QP that uses it: EBUSY"),

	MAKES("ibv_create_ah", RULES_AH, "PD"),
	MAKES("ibv_create_ah_from_wc", RULES_AH, "PD, a UD completion"),
	UNMAKES("ibv_destroy_ah", RULES_AH, "nothing"),

	MAKES("ibv_alloc_mw", RULES_MW, "PD"),
	UNMAKES("ibv_dealloc_mw", RULES_MW, "nothing: it is unbound"),

	MAKES("ibv_create_qp", RULES_QP, "PD, send CQ, receive CQ (SRQ)"),
	MAKES("ibv_create_qp_ex", RULES_QP, "PD, send CQ, receive CQ (SRQ)"),
	MAKES("ibv_open_qp", RULES_QP, "an XRC domain"),
	UNMAKES("ibv_destroy_qp", RULES_QP,
		"a multicast group it is attached to: EBUSY"),
};
const int rules_calls_count = sizeof(rules_calls) / sizeof(*rules_calls);

const struct rules_call *rules_call_find(const char *call)
{
	for (int i = 0; i < rules_calls_count; i++) {
		if (!strcmp(rules_calls[i].call, call))
			return &rules_calls[i];
	}
	return NULL;
}

const struct rules_edge rules_edges[] = {
	{ RULES_CONTEXT, RULES_PD, 0, "nobody" },
	{ RULES_CONTEXT, RULES_CHANNEL, 0, "nobody" },
	{ RULES_CONTEXT, RULES_CQ, 0, "nobody" },
	{ RULES_PD, RULES_MR, EBUSY, "kernel core" },
	{ RULES_PD, RULES_MW, EBUSY, "kernel core" },
	{ RULES_PD, RULES_AH, EBUSY, "kernel core" },
	{ RULES_PD, RULES_SRQ, EBUSY, "kernel core" },
	{ RULES_PD, RULES_QP, EBUSY, "kernel core" },
	{ RULES_CHANNEL, RULES_CQ, EBUSY, "libibverbs" },
	{ RULES_CQ, RULES_QP, EBUSY, "kernel core" },
	{ RULES_SRQ, RULES_QP, EBUSY, "kernel core" },
	{ RULES_MR, RULES_MW, EINVAL, "driver" },
};
const int rules_edges_count = sizeof(rules_edges) / sizeof(*rules_edges);

const struct rules_edge *rules_edge_find(enum rules_object parent,
					 enum rules_object child)
{
	for (int i = 0; i < rules_edges_count; i++) {
		if (rules_edges[i].parent == parent &&
		    rules_edges[i].child == child)
			return &rules_edges[i];
	}
	return NULL;
}
