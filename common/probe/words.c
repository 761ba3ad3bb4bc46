/* SPDX-License-Identifier: MIT */
/*
 * Names of constants. What rules.h names comes from there, in the spelling
 * of the headers; the rest stands here. NULL: no name.
 */
#include "probe.h"

#include <string.h>

#define NAME(constant) \
	case constant: \
		return #constant

static const char *known(const char *name)
{
	return strncmp(name, "unknown", 7) ? name : NULL;
}

const char *name_wc_status(int value)
{
	return known(rules_wc_status(value));
}

const char *name_wc_opcode(int value)
{
	return known(rules_wc_opcode(value));
}

const char *name_wr_opcode(int value)
{
	return known(rules_wr_opcode(value));
}

const char *name_qp_attr_bit(int bit)
{
	return known(rules_qp_attr_bit(bit));
}

const char *name_access_bit(int bit)
{
	return known(rules_access_bit((unsigned int)bit));
}

/* The rules say "RTS" and "RC": words for people; here the constants. */
const char *name_qp_state(int value)
{
	switch (value) {
		NAME(IBV_QPS_RESET);
		NAME(IBV_QPS_INIT);
		NAME(IBV_QPS_RTR);
		NAME(IBV_QPS_RTS);
		NAME(IBV_QPS_SQD);
		NAME(IBV_QPS_SQE);
		NAME(IBV_QPS_ERR);
	}
	return NULL;
}

const char *name_qp_type(int value)
{
	switch (value) {
		NAME(IBV_QPT_RC);
		NAME(IBV_QPT_UC);
		NAME(IBV_QPT_UD);
		NAME(IBV_QPT_RAW_PACKET);
		NAME(IBV_QPT_XRC_SEND);
		NAME(IBV_QPT_XRC_RECV);
		NAME(IBV_QPT_DRIVER);
	}
	return NULL;
}

const char *name_mtu(int value)
{
	switch (value) {
		NAME(IBV_MTU_256);
		NAME(IBV_MTU_512);
		NAME(IBV_MTU_1024);
		NAME(IBV_MTU_2048);
		NAME(IBV_MTU_4096);
	}
	return NULL;
}

const char *name_port_state(int value)
{
	switch (value) {
		NAME(IBV_PORT_NOP);
		NAME(IBV_PORT_DOWN);
		NAME(IBV_PORT_INIT);
		NAME(IBV_PORT_ARMED);
		NAME(IBV_PORT_ACTIVE);
		NAME(IBV_PORT_ACTIVE_DEFER);
	}
	return NULL;
}

const char *name_link_layer(int value)
{
	switch (value) {
		NAME(IBV_LINK_LAYER_UNSPECIFIED);
		NAME(IBV_LINK_LAYER_INFINIBAND);
		NAME(IBV_LINK_LAYER_ETHERNET);
	}
	return NULL;
}

const char *name_event_type(int value)
{
	switch (value) {
		NAME(IBV_EVENT_CQ_ERR);
		NAME(IBV_EVENT_QP_FATAL);
		NAME(IBV_EVENT_QP_REQ_ERR);
		NAME(IBV_EVENT_QP_ACCESS_ERR);
		NAME(IBV_EVENT_COMM_EST);
		NAME(IBV_EVENT_SQ_DRAINED);
		NAME(IBV_EVENT_PATH_MIG);
		NAME(IBV_EVENT_PATH_MIG_ERR);
		NAME(IBV_EVENT_DEVICE_FATAL);
		NAME(IBV_EVENT_PORT_ACTIVE);
		NAME(IBV_EVENT_PORT_ERR);
		NAME(IBV_EVENT_LID_CHANGE);
		NAME(IBV_EVENT_PKEY_CHANGE);
		NAME(IBV_EVENT_SM_CHANGE);
		NAME(IBV_EVENT_SRQ_ERR);
		NAME(IBV_EVENT_SRQ_LIMIT_REACHED);
		NAME(IBV_EVENT_QP_LAST_WQE_REACHED);
		NAME(IBV_EVENT_CLIENT_REREGISTER);
		NAME(IBV_EVENT_GID_CHANGE);
		NAME(IBV_EVENT_WQ_FATAL);
	}
	return NULL;
}

const char *name_send_bit(int bit)
{
	switch (bit) {
		NAME(IBV_SEND_FENCE);
		NAME(IBV_SEND_SIGNALED);
		NAME(IBV_SEND_SOLICITED);
		NAME(IBV_SEND_INLINE);
		NAME(IBV_SEND_IP_CSUM);
	}
	return NULL;
}

const char *name_wc_bit(int bit)
{
	switch (bit) {
		NAME(IBV_WC_GRH);
		NAME(IBV_WC_WITH_IMM);
		NAME(IBV_WC_IP_CSUM_OK);
		NAME(IBV_WC_WITH_INV);
	}
	return NULL;
}

const char *name_wc_ex_bit(int bit)
{
	switch (bit) {
		NAME(IBV_WC_EX_WITH_BYTE_LEN);
		NAME(IBV_WC_EX_WITH_IMM);
		NAME(IBV_WC_EX_WITH_QP_NUM);
		NAME(IBV_WC_EX_WITH_SRC_QP);
		NAME(IBV_WC_EX_WITH_SLID);
		NAME(IBV_WC_EX_WITH_SL);
		NAME(IBV_WC_EX_WITH_DLID_PATH_BITS);
		NAME(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
		NAME(IBV_WC_EX_WITH_CVLAN);
		NAME(IBV_WC_EX_WITH_FLOW_TAG);
		NAME(IBV_WC_EX_WITH_TM_INFO);
		NAME(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	}
	return NULL;
}

const char *name_cq_create_bit(int bit)
{
	switch (bit) {
		NAME(IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
		NAME(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	}
	return NULL;
}

const char *name_send_op_bit(int bit)
{
	switch (bit) {
		NAME(IBV_QP_EX_WITH_RDMA_WRITE);
		NAME(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
		NAME(IBV_QP_EX_WITH_SEND);
		NAME(IBV_QP_EX_WITH_SEND_WITH_IMM);
		NAME(IBV_QP_EX_WITH_RDMA_READ);
		NAME(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
		NAME(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
		NAME(IBV_QP_EX_WITH_LOCAL_INV);
		NAME(IBV_QP_EX_WITH_BIND_MW);
		NAME(IBV_QP_EX_WITH_SEND_WITH_INV);
		NAME(IBV_QP_EX_WITH_TSO);
	}
	return NULL;
}

const char *name_srq_bit(int bit)
{
	switch (bit) {
		NAME(IBV_SRQ_MAX_WR);
		NAME(IBV_SRQ_LIMIT);
	}
	return NULL;
}

const char *name_srq_type(int value)
{
	switch (value) {
		NAME(IBV_SRQT_BASIC);
		NAME(IBV_SRQT_XRC);
		NAME(IBV_SRQT_TM);
	}
	return NULL;
}

const char *name_gid_type(int value)
{
	switch (value) {
		NAME(IBV_GID_TYPE_IB);
		NAME(IBV_GID_TYPE_ROCE_V1);
		NAME(IBV_GID_TYPE_ROCE_V2);
	}
	return NULL;
}

const char *name_mig_state(int value)
{
	switch (value) {
		NAME(IBV_MIG_MIGRATED);
		NAME(IBV_MIG_REARM);
		NAME(IBV_MIG_ARMED);
	}
	return NULL;
}

const char *name_mw_type(int value)
{
	switch (value) {
		NAME(IBV_MW_TYPE_1);
		NAME(IBV_MW_TYPE_2);
	}
	return NULL;
}

const char *name_atomic_cap(int value)
{
	switch (value) {
		NAME(IBV_ATOMIC_NONE);
		NAME(IBV_ATOMIC_HCA);
		NAME(IBV_ATOMIC_GLOB);
	}
	return NULL;
}
