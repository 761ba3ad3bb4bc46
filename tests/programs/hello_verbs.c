/* SPDX-License-Identifier: MIT */
/*
 * A verbs program that is no lesson and was written for no stepper: two RC
 * QPs of the first device say hello to each other. Ends with 0 when the word
 * arrived.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <infiniband/verbs.h>

#define PORT 1

static char buffer[4096] __attribute__((aligned(4096)));

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
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

/* Polls until one completion is there, for ten seconds at most. */
static int wait_one(struct ibv_cq *cq)
{
	time_t end = time(NULL) + 10;
	struct ibv_wc wc;
	int got;

	do
		got = ibv_poll_cq(cq, 1, &wc);
	while (!got && time(NULL) < end);
	if (got != 1)
		return ETIMEDOUT;
	return wc.status == IBV_WC_SUCCESS ? 0 : EIO;
}

static int say_hello(struct ibv_qp *from, struct ibv_qp *to, struct ibv_cq *cq,
		     struct ibv_mr *mr)
{
	struct ibv_sge there = { (uintptr_t)buffer + 64, 64, mr->lkey };
	struct ibv_sge here = { (uintptr_t)buffer, 6, mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 1,
				    .sg_list = &there,
				    .num_sge = 1 };
	struct ibv_send_wr send = {
		.wr_id = 2,
		.sg_list = &here,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad_send;
	int err;

	strcpy(buffer, "hello");
	err = ibv_post_recv(to, &recv, &bad_recv);
	if (err)
		return err;
	err = ibv_post_send(from, &send, &bad_send);
	if (err)
		return err;
	err = wait_one(cq);
	return err ? err : wait_one(cq);
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *context = NULL;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *one, *two;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int status = 1;

	list = ibv_get_device_list(NULL);
	if (!list || !list[0]) {
		fprintf(stderr, "hello_verbs: no RDMA device\n");
		return 77;
	}
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!context)
		return 1;
	if (ibv_query_port(context, PORT, &port) ||
	    ibv_query_gid(context, PORT, 0, &gid))
		goto close;
	pd = ibv_alloc_pd(context);
	if (!pd)
		goto close;
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		goto dealloc;
	if (ibv_dealloc_pd(pd) != EBUSY)
		fprintf(stderr, "hello_verbs: a PD went under its MR\n");
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	if (!cq)
		goto dereg;
	one = make_qp(pd, cq);
	if (!one)
		goto destroy_cq;
	two = make_qp(pd, cq);
	if (!two)
		goto destroy_one;
	if (!connect_to(one, two->qp_num, port.lid, &gid) &&
	    !connect_to(two, one->qp_num, port.lid, &gid) &&
	    !say_hello(one, two, cq, mr) && !strcmp(buffer + 64, "hello")) {
		printf("%s\n", buffer + 64);
		status = 0;
	}
	ibv_destroy_qp(two);
destroy_one:
	ibv_destroy_qp(one);
destroy_cq:
	ibv_destroy_cq(cq);
dereg:
	ibv_dereg_mr(mr);
dealloc:
	ibv_dealloc_pd(pd);
close:
	ibv_close_device(context);
	return status;
}
