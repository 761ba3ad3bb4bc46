/* SPDX-License-Identifier: MIT */
/* The names of the constants, as the headers spell them. */
#include "common/rules/rules.h"

#include <string.h>

#define NAME(constant)                                                        \
	case constant:                                                        \
		return #constant
#define NAMED(constant, name)                                                 \
	case constant:                                                        \
		return name

const char *rules_errno_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "unknown errno";
}

const char *rules_qp_state(int state)
{
	switch (state) {
		NAMED(IBV_QPS_RESET, "RESET");
		NAMED(IBV_QPS_INIT, "INIT");
		NAMED(IBV_QPS_RTR, "RTR");
		NAMED(IBV_QPS_RTS, "RTS");
		NAMED(IBV_QPS_SQD, "SQD");
		NAMED(IBV_QPS_SQE, "SQE");
		NAMED(IBV_QPS_ERR, "ERR");
	default:
		return "unknown state";
	}
}

const char *rules_qp_type(int type)
{
	switch (type) {
		NAMED(IBV_QPT_RC, "RC");
		NAMED(IBV_QPT_UC, "UC");
		NAMED(IBV_QPT_UD, "UD");
		NAMED(IBV_QPT_RAW_PACKET, "RAW_PACKET");
		NAMED(IBV_QPT_XRC_SEND, "XRC_SEND");
		NAMED(IBV_QPT_XRC_RECV, "XRC_RECV");
		NAMED(IBV_QPT_DRIVER, "DRIVER");
	default:
		return "unknown type";
	}
}

const char *rules_wc_status(int status)
{
	switch (status) {
		NAME(IBV_WC_SUCCESS);
		NAME(IBV_WC_LOC_LEN_ERR);
		NAME(IBV_WC_LOC_QP_OP_ERR);
		NAME(IBV_WC_LOC_EEC_OP_ERR);
		NAME(IBV_WC_LOC_PROT_ERR);
		NAME(IBV_WC_WR_FLUSH_ERR);
		NAME(IBV_WC_MW_BIND_ERR);
		NAME(IBV_WC_BAD_RESP_ERR);
		NAME(IBV_WC_LOC_ACCESS_ERR);
		NAME(IBV_WC_REM_INV_REQ_ERR);
		NAME(IBV_WC_REM_ACCESS_ERR);
		NAME(IBV_WC_REM_OP_ERR);
		NAME(IBV_WC_RETRY_EXC_ERR);
		NAME(IBV_WC_RNR_RETRY_EXC_ERR);
		NAME(IBV_WC_LOC_RDD_VIOL_ERR);
		NAME(IBV_WC_REM_INV_RD_REQ_ERR);
		NAME(IBV_WC_REM_ABORT_ERR);
		NAME(IBV_WC_INV_EECN_ERR);
		NAME(IBV_WC_INV_EEC_STATE_ERR);
		NAME(IBV_WC_FATAL_ERR);
		NAME(IBV_WC_RESP_TIMEOUT_ERR);
		NAME(IBV_WC_GENERAL_ERR);
		NAME(IBV_WC_TM_ERR);
		NAME(IBV_WC_TM_RNDV_INCOMPLETE);
	default:
		return "unknown status";
	}
}

const char *rules_wc_opcode(int opcode)
{
	switch (opcode) {
		NAME(IBV_WC_SEND);
		NAME(IBV_WC_RDMA_WRITE);
		NAME(IBV_WC_RDMA_READ);
		NAME(IBV_WC_COMP_SWAP);
		NAME(IBV_WC_FETCH_ADD);
		NAME(IBV_WC_BIND_MW);
		NAME(IBV_WC_LOCAL_INV);
		NAME(IBV_WC_TSO);
		NAME(IBV_WC_RECV);
		NAME(IBV_WC_RECV_RDMA_WITH_IMM);
	default:
		return "unknown opcode";
	}
}

const char *rules_wr_opcode(int opcode)
{
	switch (opcode) {
		NAME(IBV_WR_RDMA_WRITE);
		NAME(IBV_WR_RDMA_WRITE_WITH_IMM);
		NAME(IBV_WR_SEND);
		NAME(IBV_WR_SEND_WITH_IMM);
		NAME(IBV_WR_RDMA_READ);
		NAME(IBV_WR_ATOMIC_CMP_AND_SWP);
		NAME(IBV_WR_ATOMIC_FETCH_AND_ADD);
		NAME(IBV_WR_LOCAL_INV);
		NAME(IBV_WR_BIND_MW);
		NAME(IBV_WR_SEND_WITH_INV);
		NAME(IBV_WR_TSO);
		NAME(IBV_WR_DRIVER1);
	default:
		return "unknown opcode";
	}
}

const char *rules_qp_attr_bit(int bit)
{
	switch (bit) {
		NAME(IBV_QP_STATE);
		NAME(IBV_QP_CUR_STATE);
		NAME(IBV_QP_EN_SQD_ASYNC_NOTIFY);
		NAME(IBV_QP_ACCESS_FLAGS);
		NAME(IBV_QP_PKEY_INDEX);
		NAME(IBV_QP_PORT);
		NAME(IBV_QP_QKEY);
		NAME(IBV_QP_AV);
		NAME(IBV_QP_PATH_MTU);
		NAME(IBV_QP_TIMEOUT);
		NAME(IBV_QP_RETRY_CNT);
		NAME(IBV_QP_RNR_RETRY);
		NAME(IBV_QP_RQ_PSN);
		NAME(IBV_QP_MAX_QP_RD_ATOMIC);
		NAME(IBV_QP_ALT_PATH);
		NAME(IBV_QP_MIN_RNR_TIMER);
		NAME(IBV_QP_SQ_PSN);
		NAME(IBV_QP_MAX_DEST_RD_ATOMIC);
		NAME(IBV_QP_PATH_MIG_STATE);
		NAME(IBV_QP_CAP);
		NAME(IBV_QP_DEST_QPN);
		NAME(IBV_QP_RATE_LIMIT);
	default:
		return "unknown bit";
	}
}

const char *rules_access_bit(unsigned int bit)
{
	switch (bit) {
		NAME(IBV_ACCESS_LOCAL_WRITE);
		NAME(IBV_ACCESS_REMOTE_WRITE);
		NAME(IBV_ACCESS_REMOTE_READ);
		NAME(IBV_ACCESS_REMOTE_ATOMIC);
		NAME(IBV_ACCESS_MW_BIND);
		NAME(IBV_ACCESS_ZERO_BASED);
		NAME(IBV_ACCESS_ON_DEMAND);
		NAME(IBV_ACCESS_HUGETLB);
		NAME(IBV_ACCESS_RELAXED_ORDERING);
	default:
		return "unknown access bit";
	}
}
