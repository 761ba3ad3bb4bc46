/* SPDX-License-Identifier: MIT */
/*
 * Why a call may answer as it did, one sentence each: what to look at, in
 * the order in which it is usually the cause.
 */
#include "common/rules/rules.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct hint {
	const char *call;
	int err;
	const char *text;
} hints[] = {
	{ "ibv_get_device_list", ENOSYS,
	  "the kernel has no RDMA support loaded; that is no device, not a "
	  "fault" },
	{ "ibv_open_device", ENOENT,
	  "listed but not openable: /dev/infiniband/uverbsN is missing, as in "
	  "a container without it" },
	{ "ibv_open_device", EACCES,
	  "no permission on /dev/infiniband/uverbsN" },
	{ "ibv_query_port", EINVAL,
	  "ports count from 1 to phys_port_cnt" },
	{ "ibv_dealloc_pd", EBUSY,
	  "an MR, QP, AH, SRQ or MW of this PD lives: destroy it first, then "
	  "try again" },
	{ "ibv_destroy_cq", EBUSY,
	  "a QP uses it for sends or receives: destroy the QP first" },
	{ "ibv_destroy_srq", EBUSY,
	  "a QP takes its receives from it: destroy the QP first" },
	{ "ibv_destroy_comp_channel", EBUSY,
	  "a CQ was created with it: destroy the CQ first" },
	{ "ibv_destroy_qp", EBUSY,
	  "it is attached to a multicast group: detach it first" },
	{ "ibv_dereg_mr", EBUSY, "a memory window is bound to it" },
	{ "ibv_dereg_mr", EINVAL, "a memory window is bound to it" },
	{ "ibv_reg_mr", EINVAL,
	  "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE; an access bit may "
	  "be unknown; the length may be 0 or wrap around" },
	{ "ibv_reg_mr", EFAULT,
	  "the memory is not mapped, or is read-only and the access writes" },
	{ "ibv_reg_mr", ENOMEM,
	  "over RLIMIT_MEMLOCK (ulimit -l), which root does not meet; or the "
	  "device has no MR left" },
	{ "ibv_reg_mr", EPERM, "RLIMIT_MEMLOCK is 0 (ulimit -l)" },
	{ "ibv_reg_mr", EOPNOTSUPP,
	  "the device lacks that kind of registration, as on-demand paging" },
	{ "ibv_create_cq", EINVAL,
	  "cqe must be 1 to max_cqe, comp_vector below num_comp_vectors" },
	{ "ibv_create_qp", EINVAL,
	  "compare with ibv_query_device: max_qp_wr, max_sge; then "
	  "max_inline_data, which no query tells; the CQs; the type" },
	{ "ibv_create_qp", ENOMEM,
	  "near max_qp_wr some devices count in larger blocks: ask for less" },
	{ "ibv_create_qp", EOPNOTSUPP, "the device lacks this QP type" },
	{ "ibv_create_qp", EPERM, "RAW_PACKET needs CAP_NET_RAW" },
	{ "ibv_modify_qp", EINVAL,
	  "a state was skipped, an attribute that the transition needs is "
	  "missing, or one that it does not take was given" },
	{ "ibv_modify_qp", ETIMEDOUT,
	  "the peer's GID does not resolve to an address: look at the GID "
	  "index" },
	{ "ibv_modify_qp", EOPNOTSUPP,
	  "the device lacks this attribute, or connects only through the "
	  "connection manager" },
	{ "ibv_post_send", ENOMEM,
	  "the send queue is full: nothing signaled, or nothing polled" },
	{ "ibv_post_send", EINVAL,
	  "the QP is not in RTS yet, or too many SGEs, or too much inline "
	  "data" },
	{ "ibv_post_recv", ENOMEM, "the receive queue is full" },
	{ "ibv_post_recv", EINVAL,
	  "the QP is in RESET, has an SRQ, or too many SGEs were given" },
	{ "ibv_create_ah", EINVAL,
	  "port, sgid_index, or is_global missing on RoCE" },
	{ "ibv_resize_cq", EINVAL,
	  "cqe below what the CQ holds, or above max_cqe" },
};

/* Registration has several spellings of one call. */
static const char *plain_name(const char *call)
{
	return strncmp(call, "ibv_reg_mr", 10) ? call : "ibv_reg_mr";
}

const char *rules_hint(const char *call, int err)
{
	call = plain_name(call);
	for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
		if (hints[i].err == err && !strcmp(hints[i].call, call))
			return hints[i].text;
	}
	return NULL;
}

const char *rules_wc_hint(int status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return "the message is longer than the receive, or than the "
		       "port's MTU on UD";
	case IBV_WC_LOC_QP_OP_ERR:
		return "the QP cannot do this request as it was made";
	case IBV_WC_LOC_PROT_ERR:
		return "a local buffer: wrong lkey, outside the MR, another "
		       "PD, or no LOCAL_WRITE";
	case IBV_WC_WR_FLUSH_ERR:
		return "the QP was in ERR already: look for the first "
		       "completion that is not a flush";
	case IBV_WC_MW_BIND_ERR:
		return "the window's MR, PD, range or rights";
	case IBV_WC_LOC_ACCESS_ERR:
		return "a remote write met memory that does not allow it";
	case IBV_WC_REM_INV_REQ_ERR:
		return "the peer's receive is too short, or its QP does not "
		       "allow this operation";
	case IBV_WC_REM_ACCESS_ERR:
		return "the rkey: wrong, of another PD, outside its MR, or "
		       "without that right";
	case IBV_WC_REM_OP_ERR:
		return "the peer could not finish: its receive buffer has a "
		       "wrong key or range";
	case IBV_WC_RETRY_EXC_ERR:
		return "no answer from the peer: gone, wrong QP number or "
		       "address, not yet in RTR, or in ERR";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "the peer had no receive posted, all retries long";
	default:
		return NULL;
	}
}
