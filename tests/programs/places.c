/* SPDX-License-Identifier: MIT */
/*
 * Calls of every kind, each on a line whose comment names it after an "@":
 * tests/e2e/probe_places.t compiles this file in several ways and compares
 * the places that the probe reports. The calls may be refused; they are only
 * made. A comment must stay on the line of its call:
 */
/* clang-format off */
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>

static char buffer[4096];

/* The line of a call is in the helper, also where that is inlined. */
static inline int drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got;

	got = ibv_poll_cq(cq, 1, &wc); /* @ibv_poll_cq drain */
	return got;
}

static void post(struct ibv_qp *qp, struct ibv_srq *srq)
{
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 2, .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad_send;
	int err = 0;

	err |= ibv_post_recv(qp, &recv, &bad_recv); /* @ibv_post_recv post */
	err |= ibv_post_send(qp, &send, &bad_send); /* @ibv_post_send post */
	if (srq)
		err |= ibv_post_srq_recv(srq, &recv, &bad_recv); /* @ibv_post_srq_recv post */
	printf("posts: %d\n", err);
}

static void build_wrs(struct ibv_qp_ex *ex)
{
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex); /* @ibv_wr_abort build_wrs */
	ibv_wr_start(ex);
	ibv_wr_complete(ex); /* @ibv_wr_complete build_wrs */
}

/* One completion: that of a receive which is flushed. */
static void extended(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex wanted = { .cqe = 4 };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
					    .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad;
	struct ibv_poll_cq_attr poll = { .comp_mask = 0 };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	int got;

	cq = ibv_create_cq_ex(context, &wanted); /* @ibv_create_cq_ex extended */
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	init.pd = pd;
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = ibv_create_qp_ex(context, &init); /* @ibv_create_qp_ex extended */
	build_wrs(ibv_qp_to_qp_ex(qp));
	got = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS); /* @ibv_modify_qp extended */
	got |= ibv_post_recv(qp, &recv, &bad); /* @ibv_post_recv extended */
	attr.qp_state = IBV_QPS_ERR;
	got |= ibv_modify_qp(qp, &attr, IBV_QP_STATE); /* @ibv_modify_qp extended */
	while ((got = ibv_start_poll(cq, &poll))) /* @ibv_start_poll extended */
		;
	got = ibv_next_poll(cq); /* @ibv_next_poll extended */
	ibv_end_poll(cq); /* @ibv_end_poll extended */
	printf("extended: %d\n", got);
	ibv_destroy_qp(qp); /* @ibv_destroy_qp extended */
	ibv_destroy_cq(ibv_cq_ex_to_cq(cq)); /* @ibv_destroy_cq extended */
}

static void ask(struct ibv_context *context)
{
	struct ibv_device_attr_ex extended;
	struct ibv_device_attr attr;
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int err = 0;

	err |= ibv_query_device(context, &attr); /* @ibv_query_device ask */
	err |= ibv_query_device_ex(context, NULL, &extended); /* @ibv_query_device_ex ask */
	err |= ibv_query_port(context, 1, &port); /* @ibv_query_port ask */
	err |= ibv_query_gid(context, 1, 0, &gid); /* @ibv_query_gid ask */
	err |= ibv_query_gid_ex(context, 1, 0, &entry, 0); /* @ibv_query_gid_ex ask */
	err |= (int)ibv_query_gid_table(context, &entry, 1, 0); /* @ibv_query_gid_table ask */
	printf("queries: %d\n", err);
}

static void use(struct ibv_context *context, struct ibv_pd *pd, int access)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE); /* @ibv_reg_mr use */
	ibv_dereg_mr(mr); /* @ibv_dereg_mr use */
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), access); /* @ibv_reg_mr_iova2 use */
	ibv_dereg_mr(mr); /* @ibv_dereg_mr use */
	init.send_cq = ibv_create_cq(context, 4, NULL, NULL, 0); /* @ibv_create_cq use */
	init.recv_cq = init.send_cq;
	srq = ibv_create_srq(pd, &shared); /* @ibv_create_srq use */
	qp = ibv_create_qp(pd, &init); /* @ibv_create_qp use */
	ibv_req_notify_cq(init.send_cq, 0); /* @ibv_req_notify_cq use */
	drain(init.send_cq);
	post(qp, srq);
	for (int i = 0; i < 3; i++)
		drain(init.send_cq);
	ibv_destroy_qp(qp); /* @ibv_destroy_qp use */
	if (srq)
		ibv_destroy_srq(srq); /* @ibv_destroy_srq use */
	ibv_destroy_cq(init.send_cq); /* @ibv_destroy_cq use */
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_device **list;
	struct ibv_pd *pd;

	list = ibv_get_device_list(NULL); /* @ibv_get_device_list main */
	if (!list || !list[0])
		return 77;
	puts(ibv_get_device_name(list[0])); /* @ibv_get_device_name main */
	context = ibv_open_device(list[0]); /* @ibv_open_device main */
	ibv_free_device_list(list); /* @ibv_free_device_list main */
	if (!context)
		return 1;
	ask(context);
	pd = ibv_alloc_pd(context); /* @ibv_alloc_pd main */
	use(context, pd, argc > 1 ? atoi(argv[1]) : IBV_ACCESS_LOCAL_WRITE);
	extended(context, pd);
	ibv_dealloc_pd(pd); /* @ibv_dealloc_pd main */
	ibv_close_device(context); /* @ibv_close_device main */
	return 0;
}
