/* SPDX-License-Identifier: MIT */
/*
 * The ends of the benchmark of a device (soft.c): opening it, a QP with all
 * that it needs, connecting it, posting and polling. Ends the program when
 * anything fails.
 */
#ifndef BENCH_SOFT_END_H
#define BENCH_SOFT_END_H

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define MOST   (1u << 20)
#define WINDOW 16
#define ROUNDS 15
#define PINGS  2000
#define ACCESS                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_WRITE)

static const size_t sizes[] = { 4096, 65536, MOST };
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static const char *device_name = "soft0";
static int gid_index = -1;

/* What one end must know of the other. */
struct address {
	uint32_t qpn, rkey;
	uint64_t addr;
	uint16_t lid;
	union ibv_gid gid;
};

struct end {
	struct ibv_context *context;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *buffer;
	struct address own, peer;
};

static void die(const char *what)
{
	fprintf(stderr, "soft: %s: %s\n", what, strerror(errno));
	exit(1);
}

#define CHECK(call)                   \
	do {                          \
		int err_ = (call);    \
		if (err_) {           \
			errno = err_; \
			die(#call);   \
		}                     \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static char *pages_of(int kind, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    kind | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	return memory;
}

static char *pages(size_t size)
{
	return pages_of(MAP_PRIVATE, size);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* --- an end ------------------------------------------------------------- */

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	errno = ENODEV;
	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device_name))
			context = ibv_open_device(list[i]);
	if (!context)
		die(device_name);
	ibv_free_device_list(list);
	return context;
}

/* The first GID that there is, unless one was asked for; RoCE v2 by luck. */
static void find_gid(struct end *end)
{
	static const union ibv_gid none;
	int at = gid_index < 0 ? 0 : gid_index;

	while (ibv_query_gid(end->context, 1, at, &end->own.gid) ||
	       (!memcmp(&end->own.gid, &none, sizeof(none)) && gid_index < 0)) {
		if (++at >= end->port.gid_tbl_len)
			die("no GID");
	}
	gid_index = at;
}

static void make_end(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 2 * WINDOW,
			 .max_recv_wr = 2 * WINDOW,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	end->context = open_device();
	CHECK(ibv_query_port(end->context, 1, &end->port));
	find_gid(end);
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 4 * WINDOW, NULL, NULL, 0);
	end->buffer = pages(MOST);
	if (!end->pd || !end->cq)
		die("an end");
	memset(end->buffer, 1, MOST);
	end->mr = ibv_reg_mr(end->pd, end->buffer, MOST, ACCESS);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &init);
	if (!end->mr || !end->qp)
		die("an end");
	end->own.qpn = end->qp->qp_num;
	end->own.rkey = end->mr->rkey;
	end->own.addr = (uintptr_t)end->buffer;
	end->own.lid = end->port.lid;
}

static void connect_end(struct end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = end->port.active_mtu,
		.dest_qp_num = end->peer.qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .dlid = end->peer.lid,
			     .port_num = 1,
			     .grh = { .dgid = end->peer.gid,
				      .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 64 } },
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
	};

	CHECK(ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void close_end(struct end *end)
{
	CHECK(ibv_destroy_qp(end->qp));
	CHECK(ibv_dereg_mr(end->mr));
	CHECK(ibv_destroy_cq(end->cq));
	CHECK(ibv_dealloc_pd(end->pd));
	CHECK(ibv_close_device(end->context));
	munmap(end->buffer, MOST);
}

static void post(struct end *end, enum ibv_wr_opcode opcode, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)end->buffer, (uint32_t)size,
			       end->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1,
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = size <= 64 && opcode != IBV_WR_RDMA_READ
				      ? IBV_SEND_INLINE
				      : 0,
		.wr.rdma = { end->peer.addr, end->peer.rkey },
	};

	CHECK(ibv_post_send(end->qp, &wr, &bad));
}

static void post_receive(struct end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->buffer, MOST, end->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	CHECK(ibv_post_recv(end->qp, &wr, &bad));
}

/* Polls once; counts what sends and receives are done. */
static void poll_end(struct end *end, unsigned int *sent, unsigned int *got)
{
	struct ibv_wc wc[WINDOW];
	int n = ibv_poll_cq(end->cq, WINDOW, wc);

	if (n < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "soft: a work request failed: %s\n",
				ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (wc[i].wr_id)
			++*sent;
		else
			++*got;
	}
}

#endif
