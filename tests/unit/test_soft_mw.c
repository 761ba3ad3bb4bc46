/* SPDX-License-Identifier: MIT */
/*
 * Memory windows on soft0: end b opens windows into its MR, end a comes
 * through them, or not. The status and the errno of each rule.
 */
#include <errno.h>
#include "tests/unit/soft_fixture.h"

#define WINDOW_AT   4096
#define WINDOW_SIZE 1024

struct mw {
	struct pair p;
	struct ibv_mw *mw;
};

/* An MR that lets windows be bound, and that gives a peer no other way in. */
static void open_window(struct mw *m, enum ibv_mw_type type,
			enum ibv_qp_type qp_type)
{
	pair_init(&m->p, qp_type);
	pair_open(&m->p);
	assert_int_equal(ibv_dereg_mr(m->p.b.mr), 0);
	m->p.b.mr = ibv_reg_mr(m->p.b.pd, m->p.b.buf, BUFFER,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_non_null(m->p.b.mr);
	m->mw = ibv_alloc_mw(m->p.b.pd, type);
	assert_non_null(m->mw);
	assert_int_equal(m->mw->type, type);
	memset(m->p.a.buf, 0x77, WINDOW_SIZE);
}

static void close_window(struct mw *m)
{
	if (m->mw)
		assert_int_equal(ibv_dealloc_mw(m->mw), 0);
	pair_close(&m->p);
}

static struct ibv_mw_bind_info part(const struct mw *m, unsigned int access)
{
	return (struct ibv_mw_bind_info){
		.mr = m->p.b.mr,
		.addr = (uintptr_t)m->p.b.buf + WINDOW_AT,
		.length = WINDOW_SIZE,
		.mw_access_flags = access,
	};
}

static struct ibv_send_wr bind_wr(const struct mw *m, uint32_t rkey,
				  struct ibv_mw_bind_info info)
{
	return (struct ibv_send_wr){
		.wr_id = 9,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = m->mw, .rkey = rkey, .bind_info = info },
	};
}

/* Binds a type 2 window; returns the key that opens it. */
static uint32_t bind_2(struct mw *m, unsigned int access)
{
	uint32_t rkey = ibv_inc_rkey(m->mw->rkey);
	struct ibv_send_wr wr = bind_wr(m, rkey, part(m, access));
	struct ibv_wc wc;

	post(&m->p.b, &wr);
	wc = wait_wc(m->p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.wr_id, 9);
	return rkey;
}

/* Type 1, by the inline call. */
static void bind_1(struct mw *m, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .wr_id = 8, .bind_info = info };

	assert_int_equal(ibv_bind_mw(m->p.b.qp, m->mw, &bind), 0);
	assert_int_equal(wait_wc(m->p.b.cq).opcode, IBV_WC_BIND_MW);
}

/* a's access of one kind to [at, at + length) of b's buffer. */
static enum ibv_wc_status come(struct mw *m, enum ibv_wr_opcode opcode,
			       uint32_t rkey, uint64_t addr, size_t length)
{
	struct ibv_sge sge = sge_of(&m->p.a, 0, length);
	struct ibv_send_wr wr = send_wr(opcode, &sge, &m->p.b, 0);

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	post(&m->p.a, &wr);
	return wait_wc(m->p.a.cq).status;
}

static uint64_t at(const struct mw *m, size_t offset)
{
	return (uintptr_t)m->p.b.buf + WINDOW_AT + offset;
}

static void assert_written(const struct mw *m, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		assert_int_equal(m->p.b.buf[WINDOW_AT + i], 0x77);
}

static void type_1_opens_and_closes(void **state)
{
	struct mw m;
	uint32_t unbound, open;

	(void)state;
	open_window(&m, IBV_MW_TYPE_1, IBV_QPT_RC);
	unbound = m.mw->rkey;
	bind_1(&m, part(&m, IBV_ACCESS_REMOTE_WRITE));
	/* «each bind changes its key» */
	open = m.mw->rkey;
	assert_int_not_equal(open, unbound);
	assert_int_equal(
		come(&m, IBV_WR_RDMA_WRITE, open, at(&m, 0), WINDOW_SIZE),
		IBV_WC_SUCCESS);
	assert_written(&m, 0, WINDOW_SIZE);
	assert_int_equal(m.p.b.buf[WINDOW_AT + WINDOW_SIZE], 0);
	/* Bound to nothing, it is closed. */
	bind_1(&m, (struct ibv_mw_bind_info){ .mr = NULL });
	assert_int_equal(come(&m, IBV_WR_RDMA_WRITE, m.mw->rkey, at(&m, 0), 8),
			 IBV_WC_REM_ACCESS_ERR);
	close_window(&m);
}

static void an_old_key_opens_nothing(void **state)
{
	struct mw m;
	uint32_t old;

	(void)state;
	open_window(&m, IBV_MW_TYPE_1, IBV_QPT_RC);
	bind_1(&m, part(&m, IBV_ACCESS_REMOTE_WRITE));
	old = m.mw->rkey;
	bind_1(&m, part(&m, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(come(&m, IBV_WR_RDMA_WRITE, old, at(&m, 0), 8),
			 IBV_WC_REM_ACCESS_ERR);
	close_window(&m);
}

/* Each try breaks the QPs, so each has a world of its own. */
static void outside_its_range_or_rights(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int64_t offset;
		size_t length;
		enum ibv_wc_status status;
	} tries[] = {
		{ IBV_WR_RDMA_WRITE, WINDOW_SIZE - 8, 8, IBV_WC_SUCCESS },
		{ IBV_WR_RDMA_WRITE, -8, 16, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, WINDOW_SIZE - 8, 16,
		  IBV_WC_REM_ACCESS_ERR },
		/* It is in the MR, but the window gives no such right. */
		{ IBV_WR_RDMA_READ, 0, 8, IBV_WC_REM_ACCESS_ERR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct mw m;
		uint32_t key;

		open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
		key = bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
		assert_int_equal(come(&m, tries[i].opcode, key,
				      at(&m, 0) + (uint64_t)tries[i].offset,
				      tries[i].length),
				 tries[i].status);
		close_window(&m);
	}
}

static void zero_based_counts_from_its_start(void **state)
{
	struct mw m;
	uint32_t key;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	key = bind_2(&m, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	assert_int_equal(come(&m, IBV_WR_RDMA_WRITE, key, 16, 32),
			 IBV_WC_SUCCESS);
	assert_int_equal(m.p.b.buf[WINDOW_AT + 15], 0);
	assert_written(&m, 16, 48);
	assert_int_equal(come(&m, IBV_WR_RDMA_WRITE, key, at(&m, 0), 8),
			 IBV_WC_REM_ACCESS_ERR);
	close_window(&m);
}

static void reads_and_atomics_come_through(void **state)
{
	uint64_t seven = 7;
	struct mw m;
	uint32_t key;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	memcpy(m.p.b.buf + WINDOW_AT, &seven, 8);
	key = bind_2(&m, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(come(&m, IBV_WR_RDMA_READ, key, at(&m, 0), 8),
			 IBV_WC_SUCCESS);
	assert_memory_equal(m.p.a.buf, &seven, 8);

	struct ibv_sge sge = sge_of(&m.p.a, 0, 8);
	struct ibv_send_wr wr =
		send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, &m.p.b, WINDOW_AT);
	wr.wr.atomic.rkey = key;
	wr.wr.atomic.compare_add = 5;
	post(&m.p.a, &wr);
	expect_wc(m.p.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(m.p.b.buf[WINDOW_AT], 12);
	close_window(&m);
}

/* The bind's own turn: MW_BIND_ERR, and the QP breaks. */
static void expect_bind_error(struct mw *m, struct ibv_send_wr wr,
			      struct ibv_mr *mr)
{
	post(&m->p.b, &wr);
	expect_wc(m->p.b.cq, IBV_WC_MW_BIND_ERR);
	assert_int_equal(state_of(&m->p.b), IBV_QPS_ERR);
	if (mr)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	close_window(m);
}

static void binds_that_are_refused(void **state)
{
	struct ibv_mw_bind_info info;
	struct ibv_mr *mr;
	struct mw m;

	(void)state;
	/* The MR is of another PD. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	mr = ibv_reg_mr(m.p.a.pd, m.p.b.buf, BUFFER, IBV_ACCESS_MW_BIND);
	info = part(&m, IBV_ACCESS_REMOTE_READ);
	info.mr = mr;
	expect_bind_error(&m, bind_wr(&m, ibv_inc_rkey(m.mw->rkey), info), mr);
	/* It lets no windows be bound. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	mr = ibv_reg_mr(m.p.b.pd, m.p.b.buf, BUFFER, IBV_ACCESS_LOCAL_WRITE);
	info = part(&m, IBV_ACCESS_REMOTE_READ);
	info.mr = mr;
	expect_bind_error(&m, bind_wr(&m, ibv_inc_rkey(m.mw->rkey), info), mr);
	/* Past its end, by one byte. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	info = part(&m, IBV_ACCESS_REMOTE_READ);
	info.length = BUFFER - WINDOW_AT + 1;
	expect_bind_error(&m, bind_wr(&m, ibv_inc_rkey(m.mw->rkey), info),
			  NULL);
	/* Type 2 can't be bound to nothing. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	info = part(&m, 0);
	info.length = 0;
	expect_bind_error(&m, bind_wr(&m, ibv_inc_rkey(m.mw->rkey), info),
			  NULL);
	/* A key with another window's index. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	expect_bind_error(&m, bind_wr(&m, m.mw->rkey ^ 0x100, part(&m, 0)),
			  NULL);
	/* Bound already, and not invalidated. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	bind_2(&m, IBV_ACCESS_REMOTE_READ);
	expect_bind_error(&m, bind_wr(&m, m.mw->rkey, part(&m, 0)), NULL);
}

static void writing_needs_an_mr_that_is_written(void **state)
{
	struct ibv_mw_bind_info info;
	struct ibv_mr *mr;
	struct mw m;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	mr = ibv_reg_mr(m.p.b.pd, m.p.b.buf, BUFFER, IBV_ACCESS_MW_BIND);
	assert_non_null(mr);
	info = part(&m, IBV_ACCESS_REMOTE_WRITE);
	info.mr = mr;
	struct ibv_send_wr wr = bind_wr(&m, ibv_inc_rkey(m.mw->rkey), info);
	post(&m.p.b, &wr);
	expect_wc(m.p.b.cq, IBV_WC_MW_BIND_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close_window(&m);
}

static int try_bind(struct mw *m, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .bind_info = info };

	return ibv_bind_mw(m->p.b.qp, m->mw, &bind);
}

/* What the call itself says, section 4. */
static void what_the_call_refuses(void **state)
{
	struct ibv_mw_bind_info info = { .addr = 4096, .length = 1 };
	struct ibv_send_wr wr, *bad = NULL;
	struct mw m;

	(void)state;
	open_window(&m, IBV_MW_TYPE_1, IBV_QPT_RC);
	assert_int_equal(try_bind(&m, info), EINVAL); /* mr NULL with length */
	info = part(&m, 0);
	info.mr = m.p.a.mr;
	assert_int_equal(try_bind(&m, info), EPERM); /* of another PD */
	/* Type 1 by ibv_post_send() */
	wr = bind_wr(&m, ibv_inc_rkey(m.mw->rkey), part(&m, 0));
	assert_int_equal(ibv_post_send(m.p.b.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	close_window(&m);

	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	assert_int_equal(try_bind(&m, part(&m, 0)), EINVAL);
	wr = bind_wr(&m, ibv_inc_rkey(m.mw->rkey), part(&m, 0));
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_post_send(m.p.b.qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	wr.bind_mw.mw = NULL;
	assert_int_equal(ibv_post_send(m.p.b.qp, &wr, &bad), EINVAL);
	close_window(&m);

	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_UD);
	wr = bind_wr(&m, ibv_inc_rkey(m.mw->rkey), part(&m, 0));
	assert_int_equal(ibv_post_send(m.p.b.qp, &wr, &bad), EINVAL);
	close_window(&m);

	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_UC);
	bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	close_window(&m);
}

static void local_invalidation(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV };
	struct mw m;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	wr.invalidate_rkey = bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	post(&m.p.b, &wr);
	assert_int_equal(wait_wc(m.p.b.cq).opcode, IBV_WC_LOCAL_INV);
	/* Now it may be bound anew. */
	m.mw->rkey = wr.invalidate_rkey;
	m.mw->rkey = bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(
		come(&m, IBV_WR_RDMA_WRITE, wr.invalidate_rkey, at(&m, 0), 8),
		IBV_WC_REM_ACCESS_ERR);
	close_window(&m);
}

static void what_cannot_be_invalidated(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV };
	struct mw m;

	(void)state;
	/* An MR that the program registered. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	wr.invalidate_rkey = m.p.b.mr->rkey;
	post(&m.p.b, &wr);
	expect_wc(m.p.b.cq, IBV_WC_MW_BIND_ERR);
	close_window(&m);
	/* A window of type 1. */
	open_window(&m, IBV_MW_TYPE_1, IBV_QPT_RC);
	bind_1(&m, part(&m, IBV_ACCESS_REMOTE_WRITE));
	wr.invalidate_rkey = m.mw->rkey;
	post(&m.p.b, &wr);
	expect_wc(m.p.b.cq, IBV_WC_MW_BIND_ERR);
	close_window(&m);
}

static void send_inv(struct mw *m, uint32_t rkey)
{
	struct ibv_sge sge = sge_of(&m->p.a, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND_WITH_INV, &sge, &m->p.b, 0);

	wr.invalidate_rkey = rkey;
	post_receive(&m->p.b, 0, 64, 3);
	post(&m->p.a, &wr);
	expect_wc(m->p.a.cq, IBV_WC_SUCCESS);
}

static void remote_invalidation(void **state)
{
	struct ibv_wc wc;
	struct mw m;
	uint32_t key;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	key = bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	send_inv(&m, key);
	wc = wait_wc(m.p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 8);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_false(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.invalidated_rkey, key);
	assert_int_equal(come(&m, IBV_WR_RDMA_WRITE, key, at(&m, 0), 8),
			 IBV_WC_REM_ACCESS_ERR);
	close_window(&m);
}

/* «requester SUCCESS and stays RTS; responder REM_INV_REQ_ERR, QP → ERR» */
static void remote_invalidation_of_a_bad_key(void **state)
{
	struct mw m;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	send_inv(&m, bind_2(&m, 0) ^ 1);
	expect_wc(m.p.b.cq, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(state_of(&m.p.a), IBV_QPS_RTS);
	assert_int_equal(state_of(&m.p.b), IBV_QPS_ERR);
	close_window(&m);
}

static void reconnect(struct pair *p, struct end *end)
{
	to_state(end, IBV_QPS_RESET);
	end_connect(p, end);
}

/* Type 2B: for the peer of the QP that bound it, and no other of the PD. */
static void another_qp_has_no_part_in_it(void **state)
{
	struct pair *p;
	struct end other;
	struct mw m;
	uint32_t key;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	p = &m.p;
	key = bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	/* A second QP of b's PD, connected to a second one of a's. */
	other = p->b;
	struct end peer = p->a;
	struct ibv_qp_init_attr init = {
		.send_cq = p->b.cq,
		.recv_cq = p->b.cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	other.qp = ibv_create_qp(p->b.pd, &init);
	init.send_cq = init.recv_cq = p->a.cq;
	peer.qp = ibv_create_qp(p->a.pd, &init);
	other.attr.dest_qp_num = peer.qp->qp_num;
	peer.attr.dest_qp_num = other.qp->qp_num;
	end_connect(p, &other);
	end_connect(p, &peer);

	struct ibv_sge sge = sge_of(&p->a, 0, 8);
	struct ibv_send_wr wr =
		send_wr(IBV_WR_RDMA_WRITE, &sge, &p->b, WINDOW_AT);
	wr.wr.rdma.rkey = key;
	post(&peer, &wr);
	expect_wc(p->a.cq, IBV_WC_REM_ACCESS_ERR);
	/* Nor can it close it. */
	reconnect(p, &other);
	struct ibv_send_wr inv = { .opcode = IBV_WR_LOCAL_INV,
				   .invalidate_rkey = key };
	post(&other, &inv);
	expect_wc(p->b.cq, IBV_WC_MW_BIND_ERR);
	/* The right one's does come through. */
	post(&p->a, &wr);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(other.qp), 0);
	assert_int_equal(ibv_destroy_qp(peer.qp), 0);
	close_window(&m);
}

/* Section 1: MR→MW and PD→MW */
static void who_holds_whom(void **state)
{
	struct mw m;
	uint32_t key;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	key = bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	errno = 0;
	assert_int_equal(ibv_dereg_mr(m.p.b.mr), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(m.p.b.mr, IBV_REREG_MR_CHANGE_ACCESS,
				      NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_CMD);
	/* Deallocating unbinds. */
	assert_int_equal(ibv_dealloc_mw(m.mw), 0);
	m.mw = NULL;
	assert_int_equal(come(&m, IBV_WR_RDMA_WRITE, key, at(&m, 0), 8),
			 IBV_WC_REM_ACCESS_ERR);
	close_window(&m);

	/* So does the end of the QP that bound it. */
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	bind_2(&m, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(ibv_destroy_qp(m.p.b.qp), 0);
	m.p.b.qp = NULL;
	assert_int_equal(ibv_dereg_mr(m.p.b.mr), 0);
	m.p.b.mr = NULL;
	assert_int_equal(ibv_destroy_cq(m.p.b.cq), 0);
	m.p.b.cq = NULL;
	assert_int_equal(ibv_dealloc_pd(m.p.b.pd), EBUSY);
	close_window(&m);
}

static void type_1_is_not_zero_based(void **state)
{
	struct ibv_mw_bind bind;
	struct mw m;

	(void)state;
	open_window(&m, IBV_MW_TYPE_1, IBV_QPT_RC);
	bind = (struct ibv_mw_bind){
		.bind_info = part(&m, IBV_ACCESS_REMOTE_READ |
					      IBV_ACCESS_ZERO_BASED),
	};
	assert_int_equal(ibv_bind_mw(m.p.b.qp, m.mw, &bind), 0);
	expect_wc(m.p.b.cq, IBV_WC_MW_BIND_ERR);
	close_window(&m);
}

static void no_such_type(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	(void)state;
	errno = 0;
	assert_null(ibv_alloc_mw(pd, 3));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* Binds and invalidations keep their place among the other WRs. */
static void in_the_order_of_posting(void **state)
{
	struct mw m;
	struct ibv_sge sge;
	struct ibv_send_wr write, bind, inv;
	uint32_t key;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	sge = sge_of(&m.p.b, 0, 200000);
	write = send_wr(IBV_WR_RDMA_WRITE, &sge, &m.p.a, 300000);
	key = ibv_inc_rkey(m.mw->rkey);
	bind = bind_wr(&m, key, part(&m, IBV_ACCESS_REMOTE_WRITE));
	inv = (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV,
				    .invalidate_rkey = key };
	write.next = &bind;
	bind.next = &inv;
	post(&m.p.b, &write);
	assert_int_equal(wait_wc(m.p.b.cq).opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(wait_wc(m.p.b.cq).opcode, IBV_WC_BIND_MW);
	assert_int_equal(wait_wc(m.p.b.cq).opcode, IBV_WC_LOCAL_INV);
	close_window(&m);
}

/* A write without an answer is before it, and breaks the QP. */
static void not_before_its_turn(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr write, bind;
	struct mw m;

	(void)state;
	open_window(&m, IBV_MW_TYPE_2, IBV_QPT_RC);
	to_state(&m.p.a, IBV_QPS_RESET);
	sge = sge_of(&m.p.b, 0, 8);
	write = send_wr(IBV_WR_RDMA_WRITE, &sge, &m.p.a, 0);
	bind = bind_wr(&m, ibv_inc_rkey(m.mw->rkey),
		       part(&m, IBV_ACCESS_REMOTE_WRITE));
	write.next = &bind;
	post(&m.p.b, &write);
	expect_wc(m.p.b.cq, IBV_WC_RETRY_EXC_ERR);
	expect_wc(m.p.b.cq, IBV_WC_WR_FLUSH_ERR);
	/* It never was bound. */
	assert_int_equal(ibv_dereg_mr(m.p.b.mr), 0);
	m.p.b.mr = NULL;
	close_window(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(type_1_opens_and_closes),
		cmocka_unit_test(an_old_key_opens_nothing),
		cmocka_unit_test(outside_its_range_or_rights),
		cmocka_unit_test(zero_based_counts_from_its_start),
		cmocka_unit_test(reads_and_atomics_come_through),
		cmocka_unit_test(binds_that_are_refused),
		cmocka_unit_test(writing_needs_an_mr_that_is_written),
		cmocka_unit_test(what_the_call_refuses),
		cmocka_unit_test(local_invalidation),
		cmocka_unit_test(what_cannot_be_invalidated),
		cmocka_unit_test(remote_invalidation),
		cmocka_unit_test(remote_invalidation_of_a_bad_key),
		cmocka_unit_test(another_qp_has_no_part_in_it),
		cmocka_unit_test(who_holds_whom),
		cmocka_unit_test(no_such_type),
		cmocka_unit_test(type_1_is_not_zero_based),
		cmocka_unit_test(in_the_order_of_posting),
		cmocka_unit_test(not_before_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
