/* SPDX-License-Identifier: MIT */
/*
 * Device memory on soft0, and its domains: thread domains and parent domains.
 */
#include <errno.h>
#include <sys/wait.h>
#include "tests/unit/soft_fixture.h"

#define DM_ACCESS (IBV_ACCESS_ZERO_BASED | ALL_ACCESS)

static struct ibv_dm *alloc(struct ibv_context *context, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	errno = 0;
	return ibv_alloc_dm(context, &attr);
}

static void copied_to_and_from(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_dm *dm = alloc(context, 100);
	char text[] = "sixteen letters!", back[17] = "";

	(void)state;
	assert_non_null(dm);
	assert_int_equal(ibv_memcpy_to_dm(dm, 40, text, 16), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 40, 16), 0);
	assert_string_equal(back, text);
	/* New memory is empty, and not another's. */
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 0, 16), 0);
	assert_string_equal(back, "");
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static void out_of_reach(void **state)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int err;
	} tries[] = {
		{ 2, 4, EINVAL },        { 4, 2, EINVAL },
		{ 104, 4, EFAULT },      { 0, 104, EFAULT },
		{ 96, 8, EFAULT },       { UINT64_MAX - 3, 8, EFAULT },
		{ 4, SIZE_MAX, EFAULT }, { 96, 4, 0 },
		{ 100, 0, 0 },
	};
	struct ibv_context *context = open_soft0();
	struct ibv_dm *dm = alloc(context, 100);
	char bytes[128] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, tries[i].offset, bytes,
						  tries[i].length),
				 tries[i].err);
		assert_int_equal(ibv_memcpy_from_dm(bytes, dm, tries[i].offset,
						    tries[i].length),
				 tries[i].err);
	}
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static void how_much_there_is(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_alloc_dm_attr attr = { .length = 64, .log_align_req = 13 };
	struct ibv_device_attr_ex device;
	struct ibv_dm *dm;

	(void)state;
	assert_int_equal(ibv_query_device_ex(context, NULL, &device), 0);
	assert_int_equal(device.max_dm_size, 4096);
	assert_null(alloc(context, 4097));
	assert_int_equal(errno, ENOMEM);
	dm = alloc(context, 4000);
	assert_non_null(dm);
	assert_null(alloc(context, 100));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_free_dm(dm), 0);
	dm = alloc(context, 4096);
	assert_non_null(dm);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_null(alloc(context, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_alloc_dm(context, &attr));
	attr.log_align_req = 0;
	attr.comp_mask = 1;
	assert_null(ibv_alloc_dm(context, &attr));
	/* Left behind, it is given back with the context. */
	dm = alloc(context, 4096);
	assert_int_equal(ibv_close_device(context), 0);
	free(dm);
	context = open_soft0();
	dm = alloc(context, 4096);
	assert_non_null(dm);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* A peer writes into it and reads it; addresses count from 0. */
static void a_peer_reaches_it(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct pair p;
	char back[8];

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	dm = alloc(p.context, 256);
	mr = ibv_reg_dm_mr(p.b.pd, dm, 64, 128, DM_ACCESS);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	strcpy(p.a.buf, "written");
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p.b, 0);
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = 8;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 72, 8), 0);
	assert_string_equal(back, "written");
	/* It may receive, too. */
	struct ibv_sge here = { 16, 8, mr->lkey };
	post_receive_sge(&p.b, &here, 1);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(back, dm, 80, 8), 0);
	assert_string_equal(back, "written");
	/* One byte past what is registered, though not past the memory. */
	wr.wr.rdma.remote_addr = 121;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	pair_close(&p);
}

static void what_registration_refuses(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_dm *dm = alloc(context, 100);

	(void)state;
	errno = 0;
	assert_null(ibv_reg_dm_mr(pd, dm, 0, 100, ALL_ACCESS));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dm_mr(pd, dm, 0, 104, DM_ACCESS));
	assert_null(ibv_reg_dm_mr(pd, dm, 4, 100, DM_ACCESS));
	assert_null(ibv_reg_dm_mr(pd, dm, 2, 4, DM_ACCESS));
	assert_null(
		ibv_reg_dm_mr(pd, dm, 0, 100,
			      IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE));
	/* None of them holds anything. */
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static void a_child_has_its_own(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_dm *dm = alloc(context, 4096);
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		struct ibv_dm *own;
		char bytes[4] = "";

		if (!ibv_memcpy_to_dm(dm, 0, bytes, 4))
			_exit(1); /* the parent's */
		own = alloc(context, 4096);
		if (!own || ibv_memcpy_to_dm(own, 0, bytes, 4))
			_exit(2);
		_exit(ibv_free_dm(own) ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* --- domains ------------------------------------------------------------ */

static struct ibv_pd *parent(struct ibv_context *context, struct ibv_pd *pd,
			     struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr init = { .pd = pd, .td = td };

	errno = 0;
	return ibv_alloc_parent_domain(context, &init);
}

static void who_holds_whom(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_td_init_attr td_init = { .comp_mask = 0 };
	struct ibv_td *td = ibv_alloc_td(context, &td_init);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_pd *domain = parent(context, pd, td);

	(void)state;
	assert_non_null(td);
	assert_non_null(domain);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	/* Not of a parent domain, and of a PD there must be one. */
	assert_null(parent(context, domain, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(parent(context, NULL, NULL));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	td_init.comp_mask = 1;
	assert_null(ibv_alloc_td(context, &td_init));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_close_device(context), 0);
}

/* b's QP is of a parent domain, its MRs of the PD below, and all goes on. */
static void it_protects_as_its_pd_does(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_pd *domain, *stranger;
	struct ibv_mr *mr;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
	domain = parent(p.context, p.b.pd, NULL);
	init = (struct ibv_qp_init_attr){ .send_cq = p.b.cq,
					  .recv_cq = p.b.cq,
					  .cap = { .max_recv_wr = 3,
						   .max_recv_sge = 1 },
					  .qp_type = IBV_QPT_RC };
	p.b.qp = ibv_create_qp(domain, &init);
	assert_non_null(p.b.qp);
	assert_ptr_equal(p.b.qp->pd, domain);
	p.a.attr.dest_qp_num = p.b.qp->qp_num;
	end_connect(&p, &p.a);
	end_connect(&p, &p.b);
	post_receive(&p.b, 0, 64, 1);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	/* An MR of another PD's parent domain is a stranger. */
	stranger = parent(p.context, p.a.pd, NULL);
	mr = ibv_reg_mr(stranger, p.b.buf, BUFFER, ALL_ACCESS);
	struct ibv_sge sge = sge_of(&p.a, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p.b, 0);
	wr.wr.rdma.rkey = mr->rkey;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(stranger), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
	p.b.qp = NULL;
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	pair_close(&p);
}

/* The program's allocator: counts, and can be told what to answer. */
struct allocator {
	struct ibv_pd *domain;
	int given, taken;
	enum { OWN, DEFAULT, NONE } answer;
	int troubles;
};

static void *give(struct ibv_pd *pd, void *context, size_t size,
		  size_t alignment, uint64_t resource_type)
{
	struct allocator *allocator = context;
	void *memory;

	(void)resource_type;
	allocator->troubles += pd != allocator->domain || !size;
	if (allocator->answer == DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (allocator->answer == NONE ||
	    posix_memalign(&memory, alignment, size))
		return NULL;
	memset(memory, 0, size);
	allocator->given++;
	return memory;
}

static void take(struct ibv_pd *pd, void *context, void *memory,
		 uint64_t resource_type)
{
	struct allocator *allocator = context;

	(void)resource_type;
	allocator->troubles += pd != allocator->domain;
	allocator->taken++;
	free(memory);
}

static void with_allocator(struct allocator *allocator,
			   struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr init = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give,
		.free = take,
		.pd_context = allocator,
	};

	*allocator = (struct allocator){ .answer = OWN };
	allocator->domain = ibv_alloc_parent_domain(context, &init);
	assert_non_null(allocator->domain);
	/* One without the other is no allocator. */
	init.free = NULL;
	assert_null(ibv_alloc_parent_domain(context, &init));
}

static struct ibv_qp_init_attr qp_wish(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){ .send_cq = cq,
					  .recv_cq = cq,
					  .cap = { .max_send_wr = 3,
						   .max_recv_wr = 3,
						   .max_send_sge = 1,
						   .max_recv_sge = 1 },
					  .qp_type = IBV_QPT_RC };
}

/* Queues of the program's memory work, and it gets all of it back. */
static void queues_of_the_programs_memory(void **state)
{
	struct ibv_srq_init_attr srq_wish = { .attr = { .max_wr = 3,
							.max_sge = 1 } };
	struct ibv_cq_init_attr_ex cq_wish = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_qp_init_attr init;
	struct allocator allocator;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct pair p;
	int before;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	with_allocator(&allocator, p.context, p.b.pd);
	cq_wish.parent_domain = allocator.domain;
	cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(p.context, &cq_wish));
	assert_int_equal(allocator.given, 1);
	assert_int_equal(ibv_dealloc_pd(allocator.domain), EBUSY);
	assert_int_equal(ibv_resize_cq(cq, 20), 0);
	assert_int_equal(allocator.given, 2);
	assert_int_equal(allocator.taken, 1);
	before = allocator.given;
	srq = ibv_create_srq(allocator.domain, &srq_wish);
	assert_non_null(srq);
	assert_true(allocator.given > before);
	before = allocator.given;
	assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
	init = qp_wish(cq);
	p.b.qp = ibv_create_qp(allocator.domain, &init);
	assert_non_null(p.b.qp);
	assert_true(allocator.given > before);
	p.a.attr.dest_qp_num = p.b.qp->qp_num;
	end_connect(&p, &p.a);
	end_connect(&p, &p.b);
	for (int i = 0; i < 20; i++) {
		post_receive(&p.b, 0, 64, (uint64_t)i);
		post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(cq).wr_id, i);
	}
	assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
	p.b.qp = NULL;
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(allocator.taken, allocator.given);
	assert_int_equal(allocator.troubles, 0);
	assert_int_equal(ibv_dealloc_pd(allocator.domain), 0);
	pair_close(&p);
}

static void other_answers_of_an_allocator(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = qp_wish(cq);
	struct allocator allocator;
	struct ibv_qp *qp;

	(void)state;
	with_allocator(&allocator, context, pd);
	allocator.answer = NONE;
	errno = 0;
	assert_null(ibv_create_qp(allocator.domain, &init));
	assert_int_equal(errno, ENOMEM);
	allocator.answer = DEFAULT;
	qp = ibv_create_qp(allocator.domain, &init);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(allocator.given + allocator.taken, 0);
	/* What is left behind is given back when the device is closed. */
	allocator.answer = OWN;
	qp = ibv_create_qp(allocator.domain, &init);
	assert_true(allocator.given > 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(allocator.taken, allocator.given);
	free(qp);
	free(cq);
	free(allocator.domain);
	free(pd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied_to_and_from),
		cmocka_unit_test(out_of_reach),
		cmocka_unit_test(how_much_there_is),
		cmocka_unit_test(a_peer_reaches_it),
		cmocka_unit_test(what_registration_refuses),
		cmocka_unit_test(a_child_has_its_own),
		cmocka_unit_test(who_holds_whom),
		cmocka_unit_test(it_protects_as_its_pd_does),
		cmocka_unit_test(queues_of_the_programs_memory),
		cmocka_unit_test(other_answers_of_an_allocator),
	};

	setenv("SOFTVERBS_MAX_DM", "4096", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
