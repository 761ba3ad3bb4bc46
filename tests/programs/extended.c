/* SPDX-License-Identifier: MIT */
/*
 * Extended QPs and CQs: work requests built call by call, completions read
 * field by field. By the name of the first argument, each for something that
 * tests/e2e/probe_extended.t looks at. Ends with 0 when all went as it
 * should, with 77 where the device has no such objects.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <infiniband/verbs.h>

#define PORT  1
#define LOOPS 1000
#define REMOTE                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_MW_BIND)

static char buffer[4096] __attribute__((aligned(4096)));
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq_ex *cq;
static struct ibv_qp *one, *two;
static struct ibv_qp_ex *ex;
static union ibv_gid gid;

static uint64_t at(int offset)
{
	return (uintptr_t)buffer + (uintptr_t)offset;
}

/* --- building and taking down --------------------------------------------- */

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 .max_inline_data = 16 },
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_WRITE |
			IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_READ |
			IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW,
	};

	return ibv_create_qp_ex(context, &init);
}

static int connect_to(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
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
			     .grh = { .dgid = gid, .hop_limit = 1 },
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

static int build(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_cq_init_attr_ex init = {
		.cqe = 64,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
			    IBV_WC_EX_WITH_QP_NUM,
	};

	if (!list || !list[0])
		return 77;
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!context || ibv_query_gid(context, PORT, 0, &gid))
		return 1;
	pd = ibv_alloc_pd(context);
	mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), REMOTE) : NULL;
	cq = ibv_create_cq_ex(context, &init);
	if (!mr || !cq)
		return errno == EOPNOTSUPP ? 77 : 1;
	one = make_qp();
	two = make_qp();
	if (!one || !two)
		return errno == EOPNOTSUPP ? 77 : 1;
	ex = ibv_qp_to_qp_ex(one);
	return !ex || connect_to(one, two->qp_num) ||
	       connect_to(two, one->qp_num);
}

static int take_down(void)
{
	int wrong = 0;

	wrong |= ibv_destroy_qp(two);
	wrong |= ibv_destroy_qp(one);
	wrong |= ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
	wrong |= ibv_dereg_mr(mr);
	wrong |= ibv_dealloc_pd(pd);
	return wrong | ibv_close_device(context);
}

/* --- what the cases share ------------------------------------------------- */

static int receive(uint64_t wr_id)
{
	struct ibv_sge sge = { at(2048), 64, mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = wr_id,
				    .sg_list = &sge,
				    .num_sge = 1 },
			   *bad;

	return ibv_post_recv(two, &recv, &bad);
}

/* Takes `count` completions; how many had an error, -1: they did not come. */
static int drain(int count)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	time_t end = time(NULL) + 10;
	int errors = 0, err;

	while (count > 0) {
		do
			err = ibv_start_poll(cq, &attr);
		while (err == ENOENT && time(NULL) < end);
		if (err)
			return -1;
		do {
			errors += cq->status != IBV_WC_SUCCESS;
			count--;
			err = ibv_next_poll(cq);
		} while (!err);
		ibv_end_poll(cq);
		if (err != ENOENT)
			return -1;
	}
	return errors;
}

static void next_wr(uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

/* --- the cases ------------------------------------------------------------ */

/* One of each, in one batch. */
static int batch(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info window = { mr, at(1024), 128,
					   IBV_ACCESS_REMOTE_WRITE };
	struct ibv_sge sges[2] = { { at(0), 8, mr->lkey },
				   { at(64), 24, mr->lkey } };
	struct ibv_data_buf bufs[2] = { { buffer, 3 }, { buffer + 8, 5 } };
	int wrong;

	if (!mw || receive(101) || receive(102) || receive(103))
		return 1;
	ibv_wr_start(ex);
	next_wr(1);
	ibv_wr_send_imm(ex, htobe32(0x1234));
	ibv_wr_set_sge(ex, mr->lkey, at(0), 48);
	next_wr(2);
	ibv_wr_rdma_write(ex, mr->rkey, at(512));
	ibv_wr_set_inline_data(ex, buffer, 12);
	next_wr(3);
	ibv_wr_rdma_write_imm(ex, mr->rkey, at(640), htobe32(7));
	ibv_wr_set_sge_list(ex, 2, sges);
	next_wr(4);
	ibv_wr_rdma_read(ex, mr->rkey, at(512));
	ibv_wr_set_sge(ex, mr->lkey, at(768), 16);
	next_wr(5);
	ibv_wr_atomic_cmp_swp(ex, mr->rkey, at(896), 10, 11);
	ibv_wr_set_sge(ex, mr->lkey, at(904), 8);
	next_wr(6);
	ibv_wr_atomic_fetch_add(ex, mr->rkey, at(896), 5);
	ibv_wr_set_sge(ex, mr->lkey, at(912), 8);
	next_wr(7);
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(mw->rkey), &window);
	next_wr(8);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, bufs);
	wrong = ibv_wr_complete(ex);
	if (!wrong)
		wrong = drain(11);
	return ibv_dealloc_mw(mw) || wrong;
}

/* What is given up, and what is refused. */
static int refused(void)
{
	struct ibv_sge sges[64] = { { at(0), 8, mr->lkey } };
	int err;

	ibv_wr_start(ex);
	next_wr(1);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, mr->lkey, at(0), 8);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	next_wr(2);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 64, sges);
	err = ibv_wr_complete(ex);
	return err == 0;
}

/* A key that nobody has: the completion says so. */
static int wrong_key(void)
{
	ibv_wr_start(ex);
	next_wr(9);
	ibv_wr_rdma_write(ex, 0xdead, at(0));
	ibv_wr_set_sge(ex, mr->lkey, at(0), 8);
	return ibv_wr_complete(ex) || drain(1) != 1;
}

static int loop(void)
{
	for (uint64_t i = 0; i < LOOPS; i++) {
		if (receive(i))
			return 1;
		ibv_wr_start(ex);
		next_wr(i);
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, mr->lkey, at(0), 8);
		if (ibv_wr_complete(ex) || drain(2))
			return 1;
	}
	return 0;
}

/* More WRs than are kept: the device refuses them, the probe counts them. */
static int many(void)
{
	ibv_wr_start(ex);
	for (uint64_t i = 0; i < LOOPS; i++) {
		next_wr(i);
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, mr->lkey, at(0), 8);
	}
	return ibv_wr_complete(ex) == 0;
}

/* Windows bound by ibv_post_send(), and given up by it. */
static int window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw,
			     .bind_info = { mr, at(256), 512,
					    IBV_ACCESS_REMOTE_READ } },
	}, *bad;
	int wrong;

	if (!mw)
		return 1;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wrong = ibv_post_send(one, &wr, &bad) || drain(1);
	wr = (struct ibv_send_wr){
		.wr_id = 2,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = wr.bind_mw.rkey,
	};
	wrong = wrong || ibv_post_send(one, &wr, &bad) || drain(1);
	return ibv_dealloc_mw(mw) || wrong;
}

/* A QP at the address of one that is gone, many times over. */
static int again(void)
{
	for (int i = 0; i < 100; i++) {
		if (ibv_destroy_qp(one))
			return 1;
		one = make_qp();
		ex = one ? ibv_qp_to_qp_ex(one) : NULL;
		if (!ex || connect_to(one, two->qp_num))
			return 1;
		ibv_wr_start(ex);
		next_wr((uint64_t)i);
		ibv_wr_rdma_write(ex, mr->rkey, at(0));
		ibv_wr_abort(ex);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "batch", batch }, { "refused", refused }, { "wrong_key", wrong_key },
	{ "loop", loop },   { "many", many },       { "window", window },
	{ "again", again },
};

int main(int argc, char **argv)
{
	int status = build();

	if (status)
		return status;
	status = 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			status = cases[i].run();
	if (take_down())
		status = 1;
	return status;
}
