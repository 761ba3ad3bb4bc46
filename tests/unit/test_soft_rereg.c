/* SPDX-License-Identifier: MIT */
/*
 * ibv_rereg_mr() on soft0: each of the three changes by what it lets a peer
 * do afterwards, and that a refused one changes nothing.
 */
#include <errno.h>
#include <sys/mman.h>
#include "tests/unit/soft_fixture.h"

#define READ_ONLY IBV_ACCESS_REMOTE_READ
#define WRITABLE  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static int rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	errno = 0;
	return ibv_rereg_mr(mr, flags, pd, addr, length, access);
}

static void open_pair(struct pair *p)
{
	pair_init(p, IBV_QPT_RC);
	pair_open(p);
	strcpy(p->a.buf, "written");
}

static enum ibv_wc_status write_to(struct pair *p, const void *addr)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p->b, 0);

	wr.wr.rdma.remote_addr = (uintptr_t)addr;
	post(&p->a, &wr);
	return wait_wc(p->a.cq).status;
}

static void access_is_taken_and_given(void **state)
{
	struct pair p;
	uint32_t key;

	(void)state;
	open_pair(&p);
	key = p.b.mr->rkey;
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			       0, READ_ONLY),
			 0);
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			       0, WRITABLE),
			 0);
	assert_int_equal(p.b.mr->rkey, key);
	assert_int_equal(write_to(&p, p.b.buf), IBV_WC_SUCCESS);
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			       0, READ_ONLY),
			 0);
	assert_int_equal(write_to(&p, p.b.buf), IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

static void other_memory(void **state)
{
	static char other[4096];
	struct pair p;

	(void)state;
	open_pair(&p);
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			       other, sizeof(other), 0),
			 0);
	assert_ptr_equal(p.b.mr->addr, other);
	assert_int_equal(p.b.mr->length, sizeof(other));
	assert_int_equal(write_to(&p, other), IBV_WC_SUCCESS);
	assert_string_equal(other, "written");
	assert_int_equal(write_to(&p, p.b.buf), IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);
}

static void another_pd(void **state)
{
	struct ibv_pd *pd;
	struct pair p;

	(void)state;
	open_pair(&p);
	pd = ibv_alloc_pd(p.context);
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
			 0);
	assert_ptr_equal(p.b.mr->pd, pd);
	/* The new one is held by it now, the old one no more. */
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(write_to(&p, p.b.buf), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
	p.b.mr = NULL;
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	pair_close(&p);
}

static void all_at_once(void **state)
{
	static char other[4096];
	struct ibv_pd *pd;
	struct pair p;

	(void)state;
	open_pair(&p);
	pd = ibv_alloc_pd(p.context);
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
			 0);
	assert_int_equal(rereg(p.b.mr, IBV_REREG_MR_FLAGS_SUPPORTED, p.b.pd,
			       other, sizeof(other), WRITABLE),
			 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(write_to(&p, other), IBV_WC_SUCCESS);
	pair_close(&p);
}

/* Each is refused with its code and errno, and the MR goes on as it was. */
static void what_is_refused(void **state)
{
	static const int TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION;
	static const int ACCESS = IBV_REREG_MR_CHANGE_ACCESS;
	struct ibv_context *second;
	struct ibv_pd *foreign;
	struct pair p;
	void *hole, *page;

	(void)state;
	open_pair(&p);
	second = open_soft0();
	foreign = ibv_alloc_pd(second);
	hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access, code, err;
	} tries[] = {
		{ 1 << 3, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL },
		{ TRANSLATION, NULL, NULL, 8, 0, IBV_REREG_MR_ERR_INPUT,
		  EINVAL },
		{ TRANSLATION, NULL, page, 0, 0, IBV_REREG_MR_ERR_INPUT,
		  EINVAL },
		{ TRANSLATION, NULL, page, 8, WRITABLE, IBV_REREG_MR_ERR_INPUT,
		  EINVAL },
		{ IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0,
		  IBV_REREG_MR_ERR_INPUT, EINVAL },
		{ 0, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_CMD, EINVAL },
		{ ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE,
		  IBV_REREG_MR_ERR_CMD, EINVAL },
		{ ACCESS, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND,
		  IBV_REREG_MR_ERR_CMD, EOPNOTSUPP },
		{ TRANSLATION, NULL, hole, 8, 0, IBV_REREG_MR_ERR_CMD, EFAULT },
		/* The old access says LOCAL_WRITE. */
		{ TRANSLATION, NULL, page, 8, 0, IBV_REREG_MR_ERR_CMD, EFAULT },
		{ IBV_REREG_MR_CHANGE_PD, foreign, NULL, 0, 0,
		  IBV_REREG_MR_ERR_CMD, EINVAL },
	};
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		assert_int_equal(rereg(p.b.mr, tries[i].flags, tries[i].pd,
				       tries[i].addr, tries[i].length,
				       tries[i].access),
				 tries[i].code);
		assert_int_equal(errno, tries[i].err);
		assert_int_equal(write_to(&p, p.b.buf), IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_dealloc_pd(foreign), 0);
	assert_int_equal(ibv_close_device(second), 0);
	munmap(hole, 4096);
	munmap(page, 4096);
	pair_close(&p);
}

static void of_no_mr(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char page[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), 0);

	(void)state;
	mr->handle++;
	assert_int_equal(
		rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, ENOENT);
	mr->handle--;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(access_is_taken_and_given),
		cmocka_unit_test(other_memory),
		cmocka_unit_test(another_pd),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(of_no_mr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
