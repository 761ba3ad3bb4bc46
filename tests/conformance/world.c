/* SPDX-License-Identifier: MIT */
/* Objects for the cases: each is there, or the case ends here. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/rules/rules.h"
#include "tests/conformance/run.h"

struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device_name))
			context = ibv_open_device(list[i]);
	if (!context)
		not_here("the device", errno);
	return context;
}

/* RoCE v2 of IPv4 where there is one: others need more of a network. */
static void choose_gid(struct world *w)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct ibv_gid_entry entry;

	w->gid_index = -1;
	for (int i = 0; i < w->port.gid_tbl_len && i < 16; i++) {
		bool ipv4;

		if (ibv_query_gid_ex(w->context, 1, i, &entry, 0))
			continue;
		ipv4 = entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		       !memcmp(entry.gid.raw, mapped, sizeof(mapped));
		if (w->gid_index < 0 || ipv4) {
			w->gid_index = i;
			w->gid = entry.gid;
		}
		if (ipv4)
			return;
	}
	if (w->gid_index < 0)
		not_here("a GID", ENODATA);
}

struct world *open_world(void)
{
	struct world *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		not_here("memory", ENOMEM);
	w->context = open_device();
	err = ibv_query_device(w->context, &w->device);
	if (err)
		not_here("ibv_query_device", err);
	err = ibv_query_port(w->context, 1, &w->port);
	if (err)
		not_here("ibv_query_port", err);
	choose_gid(w);
	w->pd = make_pd(w);
	return w;
}

void *get_memory(size_t length, int protection)
{
	void *memory = mmap(NULL, length, protection,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		not_here("memory", errno);
	return memory;
}

struct ibv_pd *make_pd(struct world *w)
{
	struct ibv_pd *pd = ibv_alloc_pd(w->context);

	if (!pd)
		not_here("PD", errno);
	return pd;
}

struct ibv_mr *make_mr(struct ibv_pd *pd, void *memory, size_t length,
		       int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, length, access);

	if (!mr)
		not_here("MR", errno);
	return mr;
}

struct ibv_comp_channel *make_channel(struct world *w)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(w->context);

	if (!channel)
		not_here("completion channel", errno);
	return channel;
}

struct ibv_cq *make_cq(struct world *w, int cqe,
		       struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(w->context, cqe, w, channel, 0);

	if (!cq)
		not_here("CQ", errno);
	return cq;
}

struct ibv_srq *make_srq(struct ibv_pd *pd, uint32_t max_wr, uint32_t limit,
			 uint32_t *given)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = max_wr, .max_sge = 2, .srq_limit = limit },
	};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	if (!srq)
		not_here("SRQ", errno);
	if (given)
		*given = init.attr.max_wr;
	return srq;
}

struct ibv_ah_attr ah_attr(const struct world *w)
{
	return (struct ibv_ah_attr){
		.grh = { .dgid = w->gid,
			 .sgid_index = (uint8_t)w->gid_index,
			 .hop_limit = 64 },
		.is_global = 1,
		.port_num = 1,
	};
}

struct ibv_ah *make_ah(struct world *w, struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = ah_attr(w);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	if (!ah)
		not_here("AH", errno);
	return ah;
}

struct ibv_qp_init_attr qp_init(enum ibv_qp_type type, struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8,
			 .max_recv_wr = 8,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 32 },
		.qp_type = type,
	};
}

struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = ibv_create_qp(pd, init);
	char what[32] = "";

	if (qp)
		return qp;
	strcat(strcpy(what, rules_qp_type(init->qp_type)), " QPs");
	not_here(what, errno);
}

void without_capability(int capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		not_here("capget", errno);
	data[CAP_TO_INDEX(capability)].effective &= ~CAP_TO_MASK(capability);
	if (syscall(SYS_capset, &header, data))
		not_here("capset", errno);
}

struct ibv_qp_attr good_attr(const struct world *w, const struct ibv_qp *qp)
{
	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = QKEY,
		.rq_psn = 7,
		.sq_psn = 7,
		.dest_qp_num = qp->qp_num,
		.qp_access_flags = REMOTE_ACCESS,
		.ah_attr = ah_attr(w),
		.port_num = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 3,
		.rnr_retry = 1,
	};
}

int required_mask(enum ibv_qp_type type, enum ibv_qp_state from,
		  enum ibv_qp_state to)
{
	const struct rules_transition *row =
		rules_transition_find(type, from, to);

	return (row ? row->required : 0) | IBV_QP_STATE;
}

static void step_to(struct ibv_qp *qp, struct ibv_qp_attr attr,
		    enum ibv_qp_state from, enum ibv_qp_state to)
{
	int err;

	attr.qp_state = to;
	err = ibv_modify_qp(qp, &attr, required_mask(qp->qp_type, from, to));
	if (err && to == IBV_QPS_RTR)
		not_here("RTR by ibv_modify_qp", err);
	if (err)
		not_here(to == IBV_QPS_RTS ? "RTS by ibv_modify_qp"
					   : "a QP's way to its state",
			 err);
}

void wait_drained(struct ibv_qp *qp)
{
	uint64_t end = now_ms() + LIMIT_MS;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	while (!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) &&
	       attr.sq_draining && now_ms() < end)
		wait_readable(-1, 1);
}

void bring(struct ibv_qp *qp, struct ibv_qp_attr attr, enum ibv_qp_state state)
{
	static const enum ibv_qp_state way[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QPS_RTS,   IBV_QPS_SQD,
	};

	if (state == IBV_QPS_ERR) {
		step_to(qp, attr, IBV_QPS_RESET, IBV_QPS_INIT);
		step_to(qp, attr, IBV_QPS_INIT, IBV_QPS_ERR);
		return;
	}
	for (int i = 0; way[i] != state; i++)
		step_to(qp, attr, way[i], way[i + 1]);
	if (state == IBV_QPS_SQD)
		wait_drained(qp);
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);

	if (err)
		not_here("ibv_query_qp", err);
	return attr.qp_state;
}
