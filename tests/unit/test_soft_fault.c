/* SPDX-License-Identifier: MIT */
/*
 * What soft0 completes with when something is wrong: one case for each row
 * of the rules (IBTA, and what hardware answers; docs), both sides.
 */
#include <errno.h>
#include <sys/mman.h>
#include "tests/unit/soft_fixture.h"

/* As good as unmapped; but nothing else comes to lie at its address. */
static void take_away(void *page)
{
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
}

/* --- the requester's own memory ------------------------------------------ */

enum local { KEY, OUTSIDE, OTHER_PD, DEREGISTERED, UNMAPPED };

static void local_fault(enum local what, enum ibv_wr_opcode opcode)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mr *mr;
	void *page;

	open_rc(&p, 1);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	mr = ibv_reg_mr(what == OTHER_PD ? p.b.pd : p.a.pd, page, 4096,
			ALL_ACCESS);
	assert_non_null(mr);
	sge = (struct ibv_sge){ (uintptr_t)page, 8, mr->lkey };
	if (what == KEY)
		sge.lkey ^= 0xdead00;
	if (what == OUTSIDE)
		sge.addr += 4089;
	if (what == DEREGISTERED)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	if (what == UNMAPPED)
		take_away(page);
	wr = send_wr(opcode, &sge, &p.b, 0);
	expect_break(&p, &wr, IBV_WC_LOC_PROT_ERR);
	/* Nobody told the other side. */
	assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
	expect_empty(p.b.cq);
	munmap(page, 4096);
	if (what != DEREGISTERED)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

static void local_memory(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
		for (enum local what = KEY; what <= UNMAPPED; what++)
			local_fault(what, opcodes[i]);
	}
}

static void read_into_memory_without_local_write(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mr *mr;

	(void)state;
	open_rc(&p, 0);
	mr = ibv_reg_mr(p.a.pd, p.a.buf, 64, 0);
	assert_non_null(mr);
	sge = (struct ibv_sge){ (uintptr_t)p.a.buf, 8, mr->lkey };
	wr = send_wr(IBV_WR_RDMA_READ, &sge, &p.b, 0);
	expect_break(&p, &wr, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* The fault of a later WR waits until those before it are done. */
static void faults_come_in_their_turn(void **state)
{
	struct pair p;
	struct ibv_sge good, bad;
	struct ibv_send_wr first, second;
	struct ibv_wc wc;

	(void)state;
	open_rc(&p, 0); /* no receive: the first waits, RNR */
	good = sge_of(&p.a, 0, 8);
	bad = (struct ibv_sge){ good.addr, 8, 0 };
	first = send_wr(IBV_WR_SEND, &good, &p.b, 0);
	second = send_wr(IBV_WR_SEND, &bad, &p.b, 0);
	first.next = &second;
	second.wr_id = 2;
	post(&p.a, &first);
	post_receive(&p.b, 0, 64, 1);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 1);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc.wr_id, 2);
	pair_close(&p);
}

static void message_above_two_gib(void **state)
{
	struct pair p;
	struct ibv_sge sge[4];
	struct ibv_send_wr wr;

	(void)state;
	open_rc(&p, 1);
	for (int i = 0; i < 4; i++)
		sge[i] = sge_of(&p.a, 0, 1 << 30);
	wr = send_wr(IBV_WR_SEND, sge, &p.b, 0);
	wr.num_sge = 3;
	expect_break(&p, &wr, IBV_WC_LOC_LEN_ERR);
	pair_close(&p);
}

/* --- the responder's receive ---------------------------------------------- */

static void receive_fault(struct ibv_sge *sge, struct pair *p, size_t length,
			  enum ibv_wc_status requester,
			  enum ibv_wc_status responder)
{
	struct ibv_sge from = sge_of(&p->a, 0, length);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, &from, &p->b, 0);
	struct ibv_wc wc;

	post_receive_sge(&p->b, sge, 50);
	post_receive(&p->b, 0, 64, 51);
	expect_break(p, &wr, requester);
	wc = wait_wc(p->b.cq);
	assert_int_equal(wc.wr_id, 50);
	assert_string_equal(ibv_wc_status_str(wc.status),
			    ibv_wc_status_str(responder));
	wc = wait_wc(p->b.cq);
	assert_int_equal(wc.wr_id, 51);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p->b), IBV_QPS_ERR);
}

static void receive_with_a_bad_lkey(void **state)
{
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	sge = sge_of(&p.b, 0, 64);
	sge.lkey ^= 0xdead00;
	receive_fault(&sge, &p, 8, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	pair_close(&p);
}

static void receive_without_local_write(void **state)
{
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	mr = ibv_reg_mr(p.b.pd, p.b.buf, 64, IBV_ACCESS_REMOTE_READ);
	sge = (struct ibv_sge){ (uintptr_t)p.b.buf, 64, mr->lkey };
	receive_fault(&sge, &p, 8, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

static void receive_into_another_pd(void **state)
{
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	sge = sge_of(&p.a, 0, 64);
	receive_fault(&sge, &p, 8, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	pair_close(&p);
}

static void receive_that_is_too_short(void **state)
{
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	sge = sge_of(&p.b, 0, 7);
	receive_fault(&sge, &p, 8, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
	pair_close(&p);
}

static void receive_too_short_for_the_last_packets(void **state)
{
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	sge = sge_of(&p.b, 0, 150000);
	receive_fault(&sge, &p, 150001, IBV_WC_REM_INV_REQ_ERR,
		      IBV_WC_LOC_LEN_ERR);
	pair_close(&p);
}

static void receive_that_was_unmapped(void **state)
{
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct pair p;
	void *page;

	(void)state;
	open_rc(&p, 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(p.b.pd, page, 4096, ALL_ACCESS);
	sge = (struct ibv_sge){ (uintptr_t)page, 64, mr->lkey };
	take_away(page);
	receive_fault(&sge, &p, 8, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	munmap(page, 4096);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* --- remote accesses ------------------------------------------------------ */

static const enum ibv_wr_opcode remote_opcodes[] = {
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP,
};

enum remote { R_KEY, R_BEFORE, R_PAST, R_OTHER_PD, R_DEREGISTERED, R_RIGHTS };

static void remote_target(struct ibv_send_wr *wr, uint64_t addr, uint32_t rkey)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

static void remote_fault(enum remote what, enum ibv_wr_opcode opcode)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mr *mr;
	uint64_t addr;
	uint32_t rkey;

	open_rc(&p, 1);
	mr = ibv_reg_mr(what == R_OTHER_PD ? p.a.pd : p.b.pd, p.b.buf + 4096,
			4096,
			what == R_RIGHTS ? IBV_ACCESS_LOCAL_WRITE : ALL_ACCESS);
	addr = (uintptr_t)p.b.buf + 4096;
	rkey = what == R_KEY ? mr->rkey ^ 0xdead00 : mr->rkey;
	if (what == R_BEFORE)
		addr -= 8;
	if (what == R_PAST)
		addr += 4096;
	if (what == R_DEREGISTERED)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(opcode, &sge, &p.b, 0);
	remote_target(&wr, addr, rkey);
	memset(p.a.buf, 0x55, 8);
	expect_break(&p, &wr, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wait_event(p.context), IBV_EVENT_QP_ACCESS_ERR);
	expect_wc(p.b.cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(state_of(&p.b), IBV_QPS_ERR);
	assert_int_equal(p.b.buf[4096], 0);
	if (what != R_DEREGISTERED)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

static void remote_memory(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		for (enum remote what = R_KEY; what <= R_RIGHTS; what++)
			remote_fault(what, remote_opcodes[i]);
	}
}

static void remote_memory_that_was_unmapped(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct pair p;
		struct ibv_sge sge;
		struct ibv_send_wr wr;
		struct ibv_mr *mr;
		void *page;

		open_rc(&p, 0);
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mr = ibv_reg_mr(p.b.pd, page, 4096, ALL_ACCESS);
		take_away(page);
		sge = sge_of(&p.a, 0, 8);
		wr = send_wr(remote_opcodes[i], &sge, &p.b, 0);
		remote_target(&wr, (uintptr_t)page, mr->rkey);
		expect_break(&p, &wr, IBV_WC_REM_OP_ERR);
		assert_int_equal(state_of(&p.b), IBV_QPS_ERR);
		munmap(page, 4096);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_close(&p);
	}
}

static void write_with_imm_and_a_bad_rkey(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_rc(&p, 2);
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_RDMA_WRITE_WITH_IMM, &sge, &p.b, 0);
	wr.wr.rdma.rkey ^= 0xdead00;
	expect_break(&p, &wr, IBV_WC_REM_ACCESS_ERR);
	expect_wc(p.b.cq, IBV_WC_LOC_ACCESS_ERR);
	expect_wc(p.b.cq, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

/* The QP, not the MR, lacks the right. */
static void qp_without_remote_rights(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct pair p;
		struct ibv_sge sge;
		struct ibv_send_wr wr;

		pair_init(&p, IBV_QPT_RC);
		p.b.attr.qp_access_flags = 0;
		pair_open(&p);
		sge = sge_of(&p.a, 0, 8);
		wr = send_wr(remote_opcodes[i], &sge, &p.b, 0);
		expect_break(&p, &wr, IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(wait_event(p.context), IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(state_of(&p.b), IBV_QPS_ERR);
		pair_close(&p);
	}
}

/* C9-88: the key of a zero-length access is not looked at. */
static void zero_length_with_a_bad_rkey(void **state)
{
	struct pair p;

	(void)state;
	open_rc(&p, 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr wr =
			send_wr(remote_opcodes[i], NULL, &p.b, 0);

		wr.num_sge = 0;
		wr.wr.rdma.rkey ^= 0xdead00;
		post(&p.a, &wr);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

static void read_from_a_qp_that_takes_none(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.b.attr.max_dest_rd_atomic = 0;
	pair_open(&p);
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_RDMA_READ, &sge, &p.b, 0);
	expect_break(&p, &wr, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(state_of(&p.b), IBV_QPS_ERR);
	pair_close(&p);
}

static void read_with_own_max_rd_atomic_zero(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	p.a.attr.max_rd_atomic = 0;
	pair_open(&p);
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_RDMA_READ, &sge, &p.b, 0);
	expect_break(&p, &wr, IBV_WC_LOC_QP_OP_ERR);
	pair_close(&p);
}

/* There is nothing to invalidate: only the responder breaks. */
static void send_with_invalidate_of_a_bad_rkey(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	open_rc(&p, 1);
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_SEND_WITH_INV, &sge, &p.b, 0);
	wr.invalidate_rkey = 0xdead00;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(state_of(&p.a), IBV_QPS_RTS);
	assert_int_equal(state_of(&p.b), IBV_QPS_ERR);
	pair_close(&p);
}

/* --- UC ------------------------------------------------------------------- */

/* Remote faults stay with the message: both QPs go on. */
static void uc_drops_what_it_may_not_do(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	(void)state;
	pair_init(&p, IBV_QPT_UC);
	pair_open(&p);
	sge = sge_of(&p.a, 0, 5000);
	wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p.b, 0);
	wr.wr.rdma.rkey ^= 0xdead00;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	post_simple(&p.a, IBV_WR_SEND, 5000, &p.b); /* no receive */
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	post_receive(&p.b, 0, 64, 8);
	post_simple(&p.a, IBV_WR_SEND, 5, &p.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 8);
	assert_int_equal(wc.byte_len, 5);
	assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
	pair_close(&p);
}

static void uc_breaks_on_its_own_receive(void **state)
{
	(void)state;
	for (int bad_key = 0; bad_key <= 1; bad_key++) {
		struct ibv_sge sge;
		struct pair p;

		pair_init(&p, IBV_QPT_UC);
		pair_open(&p);
		sge = sge_of(&p.b, 0, bad_key ? 64 : 7);
		if (bad_key)
			sge.lkey ^= 0xdead00;
		post_receive_sge(&p.b, &sge, 1);
		post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
		expect_wc(p.b.cq,
			  bad_key ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR);
		assert_int_equal(state_of(&p.a), IBV_QPS_RTS);
		assert_int_equal(state_of(&p.b), IBV_QPS_ERR);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_memory),
		cmocka_unit_test(read_into_memory_without_local_write),
		cmocka_unit_test(faults_come_in_their_turn),
		cmocka_unit_test(message_above_two_gib),
		cmocka_unit_test(receive_with_a_bad_lkey),
		cmocka_unit_test(receive_without_local_write),
		cmocka_unit_test(receive_into_another_pd),
		cmocka_unit_test(receive_that_is_too_short),
		cmocka_unit_test(receive_too_short_for_the_last_packets),
		cmocka_unit_test(receive_that_was_unmapped),
		cmocka_unit_test(remote_memory),
		cmocka_unit_test(remote_memory_that_was_unmapped),
		cmocka_unit_test(write_with_imm_and_a_bad_rkey),
		cmocka_unit_test(qp_without_remote_rights),
		cmocka_unit_test(zero_length_with_a_bad_rkey),
		cmocka_unit_test(read_from_a_qp_that_takes_none),
		cmocka_unit_test(read_with_own_max_rd_atomic_zero),
		cmocka_unit_test(send_with_invalidate_of_a_bad_rkey),
		cmocka_unit_test(uc_drops_what_it_may_not_do),
		cmocka_unit_test(uc_breaks_on_its_own_receive),
	};

	return cmocka_run_group_tests_name("soft fault", tests, NULL, NULL);
}
