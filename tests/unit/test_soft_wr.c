/* SPDX-License-Identifier: MIT */
/*
 * ibv_wr_* on soft0: what each builder does, that a list is posted whole or
 * not at all, and which error wr_complete() says.
 */
#include <errno.h>
#include <pthread.h>
#include "tests/unit/soft_fixture.h"

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                         \
	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_BIND_MW | \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV)
#define OPS_RC                                                              \
	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ |                                \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_SEND_WITH_INV | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct ibv_qp_init_attr_ex wish(const struct pair *p,
				       const struct end *end, uint64_t ops)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 7,
			 .max_recv_wr = 7,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_data = 64 },
		.qp_type = p->type,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_ops_flags = ops,
	};
}

/* A connected pair whose end a posts by ibv_wr_*. */
static struct ibv_qp_ex *open_ex(struct pair *p, enum ibv_qp_type type,
				 uint64_t ops)
{
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp_ex *ex;

	pair_init(p, type);
	pair_make(p);
	assert_int_equal(ibv_destroy_qp(p->a.qp), 0);
	init = wish(p, &p->a, ops);
	p->a.qp = ibv_create_qp_ex(p->context, &init);
	assert_non_null(p->a.qp);
	assert_int_equal(init.cap.max_send_wr, 7);
	p->b.attr.dest_qp_num = p->a.qp->qp_num;
	end_connect(p, &p->a);
	end_connect(p, &p->b);
	ex = ibv_qp_to_qp_ex(p->a.qp);
	assert_non_null(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	return ex;
}

static void set_data(struct ibv_qp_ex *ex, const struct end *end, size_t at,
		     uint32_t length)
{
	ibv_wr_set_sge(ex, end->mr->lkey, (uintptr_t)end->buf + at, length);
}

static struct ibv_wc done(struct pair *p, uint64_t wr_id,
			  enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = wait_wc(p->a.cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	return wc;
}

static void sends(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		ex = open_ex(&p, types[i], i ? OPS_UC : OPS_RC);
		strcpy(p.a.buf, "hello");
		post_receive(&p.b, 64, 64, 1);
		post_receive(&p.b, 128, 64, 2);
		ibv_wr_start(ex);
		ex->wr_id = 11;
		ibv_wr_send(ex);
		set_data(ex, &p.a, 0, 6);
		ex->wr_id = 12;
		ibv_wr_send_imm(ex, 0x12345678);
		set_data(ex, &p.a, 0, 3);
		assert_int_equal(ibv_wr_complete(ex), 0);
		done(&p, 11, IBV_WC_SEND);
		done(&p, 12, IBV_WC_SEND);
		wc = wait_wc(p.b.cq);
		assert_int_equal(wc.byte_len, 6);
		assert_string_equal(p.b.buf + 64, "hello");
		wc = wait_wc(p.b.cq);
		assert_int_equal(wc.byte_len, 3);
		assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(wc.imm_data, 0x12345678);
		pair_close(&p);
	}
}

static void writes_and_reads(void **state)
{
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	strcpy(p.a.buf, "written");
	post_receive(&p.b, 0, 64, 1);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf + 100);
	set_data(ex, &p.a, 0, 8);
	ex->wr_id = 2;
	ibv_wr_rdma_write_imm(ex, p.b.mr->rkey, (uintptr_t)p.b.buf + 200, 77);
	set_data(ex, &p.a, 0, 8);
	ex->wr_id = 3;
	ibv_wr_rdma_read(ex, p.b.mr->rkey, (uintptr_t)p.b.buf + 100);
	set_data(ex, &p.a, 300, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 1, IBV_WC_RDMA_WRITE);
	done(&p, 2, IBV_WC_RDMA_WRITE);
	wc = done(&p, 3, IBV_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, 8);
	assert_string_equal(p.b.buf + 100, "written");
	assert_string_equal(p.b.buf + 200, "written");
	assert_string_equal(p.a.buf + 300, "written");
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, 77);
	pair_close(&p);
}

static void atomics(void **state)
{
	struct ibv_qp_ex *ex;
	uint64_t value = 40, was;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	memcpy(p.b.buf, &value, 8);
	ibv_wr_start(ex);
	ibv_wr_atomic_fetch_add(ex, p.b.mr->rkey, (uintptr_t)p.b.buf, 2);
	set_data(ex, &p.a, 0, 8);
	ibv_wr_atomic_cmp_swp(ex, p.b.mr->rkey, (uintptr_t)p.b.buf, 42, 99);
	set_data(ex, &p.a, 8, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 0, IBV_WC_FETCH_ADD);
	done(&p, 0, IBV_WC_COMP_SWAP);
	memcpy(&was, p.a.buf, 8);
	assert_int_equal(was, 40);
	memcpy(&was, p.a.buf + 8, 8);
	assert_int_equal(was, 42);
	memcpy(&value, p.b.buf, 8);
	assert_int_equal(value, 99);
	pair_close(&p);
}

/* Inline data is taken when it is set: the buffer is free at once. */
static void inline_data(void **state)
{
	char one[] = "in", two[] = "line";
	struct ibv_data_buf list[] = { { one, 2 }, { two, 0 }, { two, 5 } };
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(ex, two, 5);
	memset(two, 'x', 4);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf + 100);
	ibv_wr_set_inline_data_list(ex, 3, list);
	memset(one, 'x', 2);
	/* And none at all. */
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf + 200);
	ibv_wr_set_inline_data(ex, NULL, 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (int i = 0; i < 3; i++)
		done(&p, 0, IBV_WC_RDMA_WRITE);
	assert_string_equal(p.b.buf, "line");
	assert_string_equal(p.b.buf + 100, "inxxxx");
	pair_close(&p);
}

static void a_list_of_sges(void **state)
{
	struct ibv_sge list[3];
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	strcpy(p.a.buf, "abcdefg");
	list[0] = sge_of(&p.a, 4, 2);
	list[1] = sge_of(&p.a, 0, 2);
	list[2] = sge_of(&p.a, 6, 2);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_sge_list(ex, 3, list);
	memset(list, 0, sizeof(list));
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 0, IBV_WC_RDMA_WRITE);
	assert_string_equal(p.b.buf, "efabg");
	pair_close(&p);
}

static void datagrams(void **state)
{
	struct ibv_qp_ex *ex;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_UD, OPS_UD);
	ah = ibv_create_ah(p.a.pd, &p.a.attr.ah_attr);
	post_receive(&p.b, 0, 128, 1);
	strcpy(p.a.buf, "datagram");
	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, 5);
	ibv_wr_set_ud_addr(ex, ah, p.b.qp->qp_num, QKEY);
	set_data(ex, &p.a, 0, 9);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 0, IBV_WC_SEND);
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.imm_data, 5);
	assert_int_equal(wc.src_qp, p.a.qp->qp_num);
	assert_string_equal(p.b.buf + 40, "datagram");
	/* Without an address. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	pair_close(&p);
}

static void windows(void **state)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	struct pair p;
	uint32_t key;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	mr = ibv_reg_mr(p.a.pd, p.a.buf, BUFFER,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(p.a.pd, IBV_MW_TYPE_2);
	key = ibv_inc_rkey(mw->rkey);
	info = (struct ibv_mw_bind_info){ mr, (uintptr_t)p.a.buf, 64,
					  IBV_ACCESS_REMOTE_WRITE };
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, mw, key, &info);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 0, IBV_WC_BIND_MW);
	struct ibv_sge sge = sge_of(&p.b, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p.a, 0);
	wr.wr.rdma.rkey = key;
	post(&p.b, &wr);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, key);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 0, IBV_WC_LOCAL_INV);
	post(&p.b, &wr);
	expect_wc(p.b.cq, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

static void send_with_invalidation(void **state)
{
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	struct ibv_mw *mw;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	mw = ibv_alloc_mw(p.b.pd, IBV_MW_TYPE_2);
	post_receive(&p.b, 0, 64, 1);
	ibv_wr_start(ex);
	ibv_wr_send_inv(ex, mw->rkey);
	set_data(ex, &p.a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 0, IBV_WC_SEND);
	wc = wait_wc(p.b.cq);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_close(&p);
}

/* Nothing of a list that has one bad WR in it. */
static void all_or_nothing(void **state)
{
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	set_data(ex, &p.a, 0, 8);
	/* An atomic at an odd address: what posting refuses. */
	ibv_wr_atomic_fetch_add(ex, p.b.mr->rkey, (uintptr_t)p.b.buf + 1, 1);
	set_data(ex, &p.a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* And a list that is thought better of. */
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	set_data(ex, &p.a, 0, 8);
	ibv_wr_abort(ex);
	/* What comes next is the first to be done. */
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	set_data(ex, &p.a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	done(&p, 3, IBV_WC_RDMA_WRITE);
	/* An empty list is fine. */
	ibv_wr_start(ex);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_empty(p.a.cq);
	pair_close(&p);
}

static int write_many(struct ibv_qp_ex *ex, struct pair *p, int count)
{
	ibv_wr_start(ex);
	for (int i = 0; i < count; i++) {
		ibv_wr_rdma_write(ex, p->b.mr->rkey, (uintptr_t)p->b.buf);
		set_data(ex, &p->a, 0, 8);
	}
	return ibv_wr_complete(ex);
}

/* Section 4: «full: ENOMEM»; the queue holds 7. */
static void a_full_queue(void **state)
{
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	assert_int_equal(write_many(ex, &p, 8), ENOMEM);
	assert_int_equal(write_many(ex, &p, 5), 0);
	/* Their places are free when they are polled, and not before. */
	assert_int_equal(write_many(ex, &p, 3), ENOMEM);
	assert_int_equal(write_many(ex, &p, 2), 0);
	for (int i = 0; i < 7; i++)
		done(&p, 0, IBV_WC_RDMA_WRITE);
	assert_int_equal(write_many(ex, &p, 7), 0);
	for (int i = 0; i < 7; i++)
		done(&p, 0, IBV_WC_RDMA_WRITE);
	pair_close(&p);
}

/* Section 4: «num_sge > max_sge», «longer than max_inline»: ENOSPC */
static void too_much_for_one(void **state)
{
	struct ibv_sge sges[5] = { { 0 } };
	char bytes[65] = "";
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_sge_list(ex, 5, sges);
	assert_int_equal(ibv_wr_complete(ex), ENOSPC);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(ex, bytes, 65);
	assert_int_equal(ibv_wr_complete(ex), ENOSPC);
	/* The first one's error is said, whatever comes after it. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(ex, bytes, 65);
	ibv_wr_set_inline_data(ex, bytes, 1);
	assert_int_equal(ibv_wr_complete(ex), ENOSPC);
	pair_close(&p);
}

static void out_of_turn(void **state)
{
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC,
		     IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ);
	/* Data for no WR; data twice; an op that was not asked for. */
	ibv_wr_start(ex);
	set_data(ex, &p.a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	set_data(ex, &p.a, 0, 8);
	set_data(ex, &p.a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	set_data(ex, &p.a, 0, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* Inline data for what is read. */
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(ex, p.a.buf, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* An address where there is no choice. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, NULL, 1, 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	pair_close(&p);
}

/* Section 4: a send before RTS is refused; in ERR it is flushed. */
static void states(void **state)
{
	struct ibv_qp_ex *ex;
	struct pair p;

	(void)state;
	ex = open_ex(&p, IBV_QPT_RC, OPS_RC);
	to_state(&p.a, IBV_QPS_RESET);
	assert_int_equal(write_many(ex, &p, 1), EINVAL);
	to_init(&p, &p.a);
	assert_int_equal(write_many(ex, &p, 1), EINVAL);
	to_state(&p.a, IBV_QPS_ERR);
	assert_int_equal(write_many(ex, &p, 1), 0);
	expect_wc(p.a.cq, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

static void expect_none(struct pair *p, const struct ibv_qp_init_attr_ex *init,
			int err)
{
	struct ibv_qp_init_attr_ex copy = *init;

	errno = 0;
	assert_null(ibv_create_qp_ex(p->context, &copy));
	assert_int_equal(errno, err);
}

static void what_creation_refuses(void **state)
{
	struct ibv_qp_init_attr_ex good, init;
	struct ibv_qp *qp;
	struct pair p;

	(void)state;
	open_ex(&p, IBV_QPT_RC, OPS_RC);
	good = wish(&p, &p.a, IBV_QP_EX_WITH_SEND);
	init = good;
	init.send_ops_flags |= IBV_QP_EX_WITH_TSO;
	expect_none(&p, &init, EOPNOTSUPP);
	init = good;
	init.qp_type = IBV_QPT_UC;
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	expect_none(&p, &init, EOPNOTSUPP);
	init.qp_type = IBV_QPT_UD;
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	expect_none(&p, &init, EOPNOTSUPP);
	init = good;
	init.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE;
	expect_none(&p, &init, EOPNOTSUPP);
	init = good;
	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	expect_none(&p, &init, EOPNOTSUPP);
	init = good;
	init.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD;
	expect_none(&p, &init, EINVAL);
	init = good;
	init.send_cq = NULL;
	expect_none(&p, &init, EINVAL);
	/* Without send_ops_flags there are no ibv_wr_*. */
	init = good;
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = 0;
	qp = ibv_create_qp_ex(p.context, &init);
	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	pair_close(&p);
}

#define ROUNDS 200

struct builder {
	struct pair *p;
	struct ibv_qp_ex *ex;
	int troubles;
};

static void *build_and_post(void *argument)
{
	struct builder *b = argument;

	for (int i = 0; i < ROUNDS;) {
		int err;

		ibv_wr_start(b->ex);
		ibv_wr_atomic_fetch_add(b->ex, b->p->b.mr->rkey,
					(uintptr_t)b->p->b.buf, 1);
		set_data(b->ex, &b->p->a, 8, 8);
		err = ibv_wr_complete(b->ex);
		if (err && err != ENOMEM)
			b->troubles++;
		if (!err)
			i++;
	}
	return NULL;
}

/* Two threads build on one QP; none of their WRs is mixed up or lost. */
static void threads(void **state)
{
	pthread_t thread[2];
	struct builder b;
	uint64_t value;
	struct pair p;

	(void)state;
	b = (struct builder){ &p, open_ex(&p, IBV_QPT_RC, OPS_RC), 0 };
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, build_and_post, &b),
			0);
	for (int i = 0; i < 2 * ROUNDS; i++)
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(b.troubles, 0);
	memcpy(&value, p.b.buf, 8);
	assert_int_equal(value, 2 * ROUNDS);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends),
		cmocka_unit_test(writes_and_reads),
		cmocka_unit_test(atomics),
		cmocka_unit_test(inline_data),
		cmocka_unit_test(a_list_of_sges),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(windows),
		cmocka_unit_test(send_with_invalidation),
		cmocka_unit_test(all_or_nothing),
		cmocka_unit_test(a_full_queue),
		cmocka_unit_test(too_much_for_one),
		cmocka_unit_test(out_of_turn),
		cmocka_unit_test(states),
		cmocka_unit_test(what_creation_refuses),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
