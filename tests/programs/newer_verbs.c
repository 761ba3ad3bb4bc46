/* SPDX-License-Identifier: MIT */
/*
 * A verbs program of the newer kind: two RC QPs of the first device, built
 * with ibv_wr_*, a memory window, and a CQ that is read field by field. Ends
 * with 0 when what was written through the window arrived.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <infiniband/verbs.h>

#define PORT 1

static char buffer[4096] __attribute__((aligned(4096)));

static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_pd *pd,
			      struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 16 },
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_BIND_MW,
	};

	return ibv_create_qp_ex(context, &init);
}

static int connect_to(struct ibv_qp *qp, uint32_t peer, uint16_t lid,
		      const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .grh = { .dgid = *gid, .hop_limit = 1 },
			     .dlid = lid,
			     .port_num = PORT },
	};
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The next completion's opcode, or -1. */
static int next(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	time_t limit = time(NULL) + 10;
	int opcode, err;

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT)
		if (time(NULL) > limit)
			return -1;
	if (err)
		return -1;
	opcode =
		cq->status == IBV_WC_SUCCESS ? (int)ibv_wc_read_opcode(cq) : -1;
	if (opcode == IBV_WC_RECV)
		printf("received %u bytes, flags %u\n",
		       ibv_wc_read_byte_len(cq), ibv_wc_read_wc_flags(cq));
	ibv_end_poll(cq);
	return opcode;
}

static int bind(struct ibv_qp *qp, struct ibv_cq_ex *cq, struct ibv_mw *mw,
		struct ibv_mr *mr)
{
	struct ibv_mw_bind_info info = {
		.mr = mr,
		.addr = (uintptr_t)buffer,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	if (ibv_wr_complete(ex) || next(cq) != IBV_WC_BIND_MW)
		return -1;
	mw->rkey = rkey;
	return 0;
}

static int write_and_invalidate(struct ibv_qp *qp, struct ibv_cq_ex *cq,
				uint32_t rkey)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	char word[] = "hello";
	int seen = 0;

	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, rkey, (uintptr_t)buffer);
	ibv_wr_set_inline_data(ex, word, sizeof(word));
	ex->wr_id = 3;
	ibv_wr_send_inv(ex, rkey);
	if (ibv_wr_complete(ex))
		return -1;
	for (int i = 0; i < 3; i++)
		seen |= 1 << next(cq) % 32;
	return seen & 1 << IBV_WC_RECV % 32 ? 0 : -1;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_cq_init_attr_ex wish = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN,
	};
	struct ibv_recv_wr receive = { .wr_id = 9 }, *bad;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_context *context;
	struct ibv_cq_ex *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_qp *a, *b;
	int failed;

	if (!list || !list[0])
		return 77;
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	cq = ibv_create_cq_ex(context, &wish);
	if (!mr || !mw || !cq || ibv_query_port(context, PORT, &port) ||
	    ibv_query_gid(context, PORT, 0, &gid))
		return 1;
	a = make_qp(context, pd, ibv_cq_ex_to_cq(cq));
	b = make_qp(context, pd, ibv_cq_ex_to_cq(cq));
	if (!a || !b || connect_to(a, b->qp_num, port.lid, &gid) ||
	    connect_to(b, a->qp_num, port.lid, &gid))
		return 2;
	if (ibv_post_recv(b, &receive, &bad) || bind(b, cq, mw, mr) ||
	    write_and_invalidate(a, cq, mw->rkey))
		return 3;
	failed = ibv_destroy_qp(a) || ibv_destroy_qp(b) ||
		 ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) || ibv_dealloc_mw(mw) ||
		 ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) ||
		 ibv_close_device(context);
	puts(buffer);
	return failed || strcmp(buffer, "hello");
}
