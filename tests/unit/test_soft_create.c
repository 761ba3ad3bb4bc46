/* SPDX-License-Identifier: MIT */
/*
 * Creating on soft0: what is refused and what is given (section 2 of the
 * specification; the rows are quoted where they are tested).
 */
#include "tests/unit/soft_world.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static char *map_pages(int count, int protection)
{
	char *pages = mmap(NULL, (size_t)count * PAGE, protection,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	return pages;
}

static int registers(struct world *world, void *addr, size_t length,
		     unsigned int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(world->pd, addr, length, access);
	if (!mr)
		return errno;
	assert_ptr_equal(mr->addr, addr);
	assert_true(mr->length == length);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	return 0;
}

static void mr_access_flags(void **state)
{
	struct world *world = *state;
	char *page = map_pages(1, PROT_READ | PROT_WRITE);
	const unsigned int local = IBV_ACCESS_LOCAL_WRITE;

	/* «REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE: EINVAL» */
	assert_int_equal(registers(world, page, PAGE, IBV_ACCESS_REMOTE_WRITE),
			 EINVAL);
	assert_int_equal(registers(world, page, PAGE, IBV_ACCESS_REMOTE_ATOMIC),
			 EINVAL);
	assert_int_equal(registers(world, page, PAGE,
				   local | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_ATOMIC),
			 0);
	assert_int_equal(registers(world, page, PAGE, 0), 0);
	assert_int_equal(registers(world, page, PAGE, IBV_ACCESS_REMOTE_READ),
			 0);
	assert_int_equal(
		registers(world, page, PAGE, local | IBV_ACCESS_MW_BIND), 0);
	/* «unknown access bit (above FLUSH_PERSISTENT): EINVAL» */
	for (int bit = 10; bit < 20; bit++)
		assert_int_equal(
			registers(world, page, PAGE, local | 1u << bit),
			EINVAL);
	/* «optional bits (1<<20 ...): ignored» */
	assert_int_equal(registers(world, page, PAGE,
				   local | IBV_ACCESS_RELAXED_ORDERING),
			 0);
	assert_int_equal(registers(world, page, PAGE, local | 1u << 29), 0);
	/* «ON_DEMAND», «ZERO_BASED or HUGETLB: EOPNOTSUPP» */
	assert_int_equal(
		registers(world, page, PAGE, local | IBV_ACCESS_ON_DEMAND),
		EOPNOTSUPP);
	assert_int_equal(
		registers(world, page, PAGE, local | IBV_ACCESS_ZERO_BASED),
		EOPNOTSUPP);
	assert_int_equal(
		registers(world, page, PAGE, local | IBV_ACCESS_HUGETLB),
		EOPNOTSUPP);
	/* «FLUSH_PERSISTENT on ordinary RAM: EINVAL» */
	assert_int_equal(registers(world, page, PAGE, local | 1u << 9), EINVAL);
	munmap(page, PAGE);
}

static void mr_length(void **state)
{
	struct world *world = *state;
	char *page = map_pages(1, PROT_READ | PROT_WRITE);
	const unsigned int local = IBV_ACCESS_LOCAL_WRITE;

	/* «length 0, page-aligned: EINVAL; unaligned: success» */
	assert_int_equal(registers(world, page, 0, local), EINVAL);
	assert_int_equal(registers(world, page + 8, 0, local), 0);
	/* «addr+length overflows: EINVAL» */
	assert_int_equal(registers(world, page, SIZE_MAX, local), EINVAL);
	assert_int_equal(
		registers(world, page, SIZE_MAX - (uintptr_t)page, local),
		EINVAL);
	munmap(page, PAGE);
}

static void mr_memory(void **state)
{
	struct world *world = *state;
	char *pages = map_pages(3, PROT_READ | PROT_WRITE);
	char *constant = map_pages(1, PROT_READ);
	const unsigned int local = IBV_ACCESS_LOCAL_WRITE;

	/* «unmapped address: EFAULT», at the start, within and at the end */
	munmap(pages + PAGE, PAGE);
	assert_int_equal(registers(world, pages + PAGE, 8, 0), EFAULT);
	assert_int_equal(registers(world, pages, 3 * PAGE, 0), EFAULT);
	assert_int_equal(registers(world, pages, PAGE + 1, local), EFAULT);
	assert_int_equal(registers(world, pages, PAGE, local), 0);
	assert_int_equal(registers(world, pages + 2 * PAGE, PAGE, local), 0);
	assert_int_equal(registers(world, NULL, PAGE, 0), EFAULT);
	/* A range too large for populating goes by the list of mappings. */
	assert_int_equal(registers(world, pages, (size_t)1 << 40, 0), EFAULT);
	/* «LOCAL_WRITE/... on a read-only mapping: EFAULT; access = 0 or
	 * REMOTE_READ is fine» */
	assert_int_equal(registers(world, constant, PAGE, local), EFAULT);
	assert_int_equal(registers(world, constant, PAGE, IBV_ACCESS_MW_BIND),
			 EFAULT);
	assert_int_equal(registers(world, constant, PAGE, 0), 0);
	assert_int_equal(
		registers(world, constant, PAGE, IBV_ACCESS_REMOTE_READ), 0);
	munmap(constant, PAGE);
	munmap(pages, PAGE);
	munmap(pages + 2 * PAGE, PAGE);
}

static void mr_of_much_memory(void **state)
{
	enum { COUNT = 2048 };
	struct world *world = *state;
	char *pages = map_pages(COUNT, PROT_READ | PROT_WRITE);
	const unsigned int local = IBV_ACCESS_LOCAL_WRITE;

	assert_int_equal(registers(world, pages, COUNT * PAGE, local), 0);
	mprotect(pages + 1000 * PAGE, PAGE, PROT_READ);
	assert_int_equal(registers(world, pages, COUNT * PAGE, local), EFAULT);
	assert_int_equal(registers(world, pages, COUNT * PAGE, 0), 0);
	munmap(pages, COUNT * PAGE);
}

static void mr_iova(void **state)
{
	struct world *world = *state;
	char *page = map_pages(1, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	/* «(addr ^ iova) & 4095 ≠ 0: EINVAL» */
	assert_none(EINVAL, ibv_reg_mr_iova(world->pd, page, PAGE, 0x1008, 0));
	mr = ibv_reg_mr_iova(world->pd, page + 8, 100, 0x1008, 0);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, page + 8);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(page, PAGE);
}

/* «overlapping / same range registered twice: allowed, distinct keys» */
static void mr_twice(void **state)
{
	struct world *world = *state;
	char page[PAGE];
	struct ibv_mr *one = ibv_reg_mr(world->pd, page, sizeof(page), 0);
	struct ibv_mr *two = ibv_reg_mr(world->pd, page, sizeof(page), 0);

	assert_non_null(one);
	assert_non_null(two);
	assert_int_not_equal(one->lkey, two->lkey);
	assert_int_equal(ibv_dereg_mr(one), 0);
	assert_int_equal(ibv_dereg_mr(two), 0);
}

/* Takes the capability away, as an ordinary user has none. */
static int drop_ipc_lock(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	return (int)syscall(SYS_capset, &header, data);
}

static int memlock_errno(struct world *world, rlim_t limit, char *pages,
			 size_t count)
{
	struct rlimit rlimit = { limit, limit };
	int first;

	if (setrlimit(RLIMIT_MEMLOCK, &rlimit))
		return -1;
	first = registers(world, pages, count * PAGE, 0);
	if (first)
		return first;
	/* What was given back is there again. */
	return registers(world, pages, count * PAGE, 0);
}

static int limited_child(void)
{
	struct world world;
	void *state = &world;
	char *pages = map_pages(16, PROT_READ | PROT_WRITE);
	struct ibv_mr *held;

	make_world(&state);
	world = *(struct world *)state;
	if (drop_ipc_lock())
		return 1;
	if (memlock_errno(&world, 8 * PAGE, pages, 8))
		return 2;
	if (memlock_errno(&world, 8 * PAGE, pages, 9) != ENOMEM)
		return 3;
	/* Counted in pages: two bytes across a border are two. */
	held = ibv_reg_mr(world.pd, pages, 7 * PAGE, 0);
	if (!held)
		return 4;
	if (registers(&world, pages + PAGE - 1, 2, 0) != ENOMEM)
		return 5;
	if (registers(&world, pages, 2, 0))
		return 6;
	if (ibv_dereg_mr(held))
		return 7;
	if (memlock_errno(&world, 0, pages, 1) != EPERM)
		return 8;
	return 0;
}

/* «over RLIMIT_MEMLOCK without CAP_IPC_LOCK: ENOMEM; limit 0: EPERM» */
static void mr_memlock(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child)
		_exit(limited_child());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void cq_sizes(void **state)
{
	struct world *world = *state;
	static const int given[][2] = { { 1, 1 },     { 10, 15 },
					{ 15, 15 },   { 16, 31 },
					{ 100, 127 }, { 32767, 32767 } };
	struct ibv_cq *cq;

	/* «cq->cqe = roundup_pow2(cqe+1) − 1» */
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		cq = ibv_create_cq(world->context, given[i][0], world, NULL, 0);
		assert_non_null(cq);
		assert_int_equal(cq->cqe, given[i][1]);
		assert_ptr_equal(cq->cq_context, world);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	/* «cqe ≤ 0 or > max_cqe: EINVAL» */
	assert_none(EINVAL, ibv_create_cq(world->context, 0, NULL, NULL, 0));
	assert_none(EINVAL, ibv_create_cq(world->context, -1, NULL, NULL, 0));
	assert_none(EINVAL,
		    ibv_create_cq(world->context, 32768, NULL, NULL, 0));
	/* «comp_vector < 0 or ≥ num_comp_vectors: EINVAL» */
	assert_none(EINVAL, ibv_create_cq(world->context, 1, NULL, NULL, -1));
	assert_none(EINVAL, ibv_create_cq(world->context, 1, NULL, NULL,
					  world->context->num_comp_vectors));
}

static void cq_resize(void **state)
{
	struct world *world = *state;

	assert_int_equal(ibv_resize_cq(world->cq, 200), 0);
	assert_int_equal(world->cq->cqe, 255);
	assert_int_equal(ibv_resize_cq(world->cq, 3), 0);
	assert_int_equal(world->cq->cqe, 3);
	assert_refused(EINVAL, ibv_resize_cq(world->cq, 0));
	assert_refused(EINVAL, ibv_resize_cq(world->cq, 32768));
	assert_int_equal(world->cq->cqe, 3);
}

static void qp_caps_given(void **state)
{
	struct world *world = *state;
	static const struct {
		struct ibv_qp_cap asked, given;
	} rows[] = {
		/* wr, wr, sge, sge, inline */
		{ { 10, 10, 1, 1, 0 }, { 15, 15, 1, 1, 16 } },
		{ { 16, 1, 2, 3, 0 }, { 31, 1, 2, 3, 32 } },
		{ { 1, 1, 1, 1, 64 }, { 1, 1, 4, 1, 64 } },
		{ { 1, 1, 1, 1, 36 }, { 1, 1, 2, 1, 36 } },
		{ { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 } },
		{ { 1, 1, 32, 32, 512 }, { 1, 1, 32, 32, 512 } },
	};

	/* «wr = roundup_pow2(n+1)−1; bytes = max(16·send_sge, inline); ...» */
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC), got;
		struct ibv_qp_attr attr;
		struct ibv_qp *qp;

		init.cap = rows[i].asked;
		qp = ibv_create_qp(world->pd, &init);
		assert_non_null(qp);
		assert_memory_equal(&init.cap, &rows[i].given,
				    sizeof(init.cap));
		assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &got), 0);
		assert_memory_equal(&attr.cap, &rows[i].given,
				    sizeof(init.cap));
		assert_memory_equal(&got.cap, &rows[i].given, sizeof(got.cap));
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

static void qp_is_as_born(void **state)
{
	struct world *world = *state;
	struct ibv_qp *one = make_qp(world, IBV_QPT_RC);
	struct ibv_qp *two = make_qp(world, IBV_QPT_UC);

	assert_int_equal(one->state, IBV_QPS_RESET);
	assert_int_equal(state_of(one), IBV_QPS_RESET);
	assert_int_not_equal(one->qp_num, two->qp_num);
	assert_true(one->qp_num >= 16 && one->qp_num < 1 << 24);
	assert_int_equal(two->qp_type, IBV_QPT_UC);
	assert_ptr_equal(one->pd, world->pd);
	assert_int_equal(ibv_destroy_qp(one), 0);
	assert_int_equal(ibv_destroy_qp(two), 0);
}

static void assert_no_qp(struct world *world, struct ibv_qp_init_attr init,
			 int err)
{
	const struct ibv_qp_cap asked = init.cap;

	assert_none(err, ibv_create_qp(world->pd, &init));
	assert_memory_equal(&init.cap, &asked, sizeof(asked));
}

/* «max_send_wr/max_recv_wr > max_qp_wr, sge > 32, inline > 512: EINVAL» */
static void qp_caps_refused(void **state)
{
	struct world *world = *state;
	const struct ibv_qp_init_attr good = qp_wish(world, IBV_QPT_RC);
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1 } };
	struct ibv_qp_init_attr bad;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	bad = good, bad.cap.max_send_wr = (1 << 20) + 1;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_recv_wr = (1 << 20) + 1;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_send_sge = 33;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_recv_sge = 33;
	assert_no_qp(world, bad, EINVAL);
	bad = good, bad.cap.max_inline_data = 513;
	assert_no_qp(world, bad, EINVAL);
	/* «recv caps not checked when an SRQ is given» */
	srq = ibv_create_srq(world->pd, &srq_init);
	assert_non_null(srq);
	bad = good, bad.cap.max_recv_wr = 1 << 30, bad.srq = srq;
	qp = ibv_create_qp(world->pd, &bad);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void qp_types_refused(void **state)
{
	struct world *world = *state;

	/* «not a known enum: EINVAL»; section 8: XRC_RECV too */
	assert_no_qp(world, qp_wish(world, 0), EINVAL);
	assert_no_qp(world, qp_wish(world, 77), EINVAL);
	assert_no_qp(world, qp_wish(world, IBV_QPT_XRC_RECV), EINVAL);
	/* «known type the device lacks: EOPNOTSUPP» */
	assert_no_qp(world, qp_wish(world, IBV_QPT_XRC_SEND), EOPNOTSUPP);
	assert_no_qp(world, qp_wish(world, IBV_QPT_DRIVER), EOPNOTSUPP);
}

static void qp_needs_cqs_of_its_context(void **state)
{
	struct world *world = *state;
	struct ibv_context *other = open_soft0();
	struct ibv_cq *foreign = ibv_create_cq(other, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);

	/* «send_cq or recv_cq NULL → pick EINVAL + a diagnosis» */
	init.send_cq = NULL;
	assert_no_qp(world, init, EINVAL);
	init = qp_wish(world, IBV_QPT_RC);
	init.recv_cq = NULL;
	assert_no_qp(world, init, EINVAL);
	/* «with a CQ of another context → pick EINVAL» */
	init.recv_cq = foreign;
	assert_no_qp(world, init, EINVAL);
	assert_int_equal(ibv_destroy_cq(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* «max_wr 0 / > 1<<20, max_sge > 27: EINVAL» */
static void srq_attributes(void **state)
{
	struct world *world = *state;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 0 } };
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	assert_none(EINVAL, ibv_create_srq(world->pd, &init));
	init.attr.max_wr = (1 << 20) + 1;
	assert_none(EINVAL, ibv_create_srq(world->pd, &init));
	init.attr.max_wr = 10;
	init.attr.max_sge = 28;
	assert_none(EINVAL, ibv_create_srq(world->pd, &init));
	init.attr.max_sge = 27;
	init.attr.srq_limit = 5;
	srq = ibv_create_srq(world->pd, &init);
	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, 15);
	/* Section 8: «An SRQ limit given at creation takes effect.» */
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 15);
	assert_int_equal(attr.max_sge, 27);
	assert_int_equal(attr.srq_limit, 5);
	attr.srq_limit = 16;
	assert_refused(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	attr.srq_limit = 9;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	attr.srq_limit = 0;
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 9);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void assert_no_ah(struct world *world, struct ibv_ah_attr attr)
{
	assert_none(EINVAL, ibv_create_ah(world->pd, &attr));
}

static void ah_attributes(void **state)
{
	struct world *world = *state;
	const struct ibv_ah_attr good = { .grh = { .dgid = world->gid },
					  .is_global = 1,
					  .port_num = 1 };
	struct ibv_ah_attr bad;

	/* «bad port», «is_global = 0 on RoCE», «sgid_index out of table» */
	bad = good, bad.port_num = 0;
	assert_no_ah(world, bad);
	bad = good, bad.port_num = 2;
	assert_no_ah(world, bad);
	bad = good, bad.is_global = 0;
	assert_no_ah(world, bad);
	bad = good, bad.grh.sgid_index = 1;
	assert_no_ah(world, bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(mr_access_flags),
		in_world(mr_length),
		in_world(mr_memory),
		in_world(mr_of_much_memory),
		in_world(mr_iova),
		in_world(mr_twice),
		in_world(mr_memlock),
		in_world(cq_sizes),
		in_world(cq_resize),
		in_world(qp_caps_given),
		in_world(qp_is_as_born),
		in_world(qp_caps_refused),
		in_world(qp_types_refused),
		in_world(qp_needs_cqs_of_its_context),
		in_world(srq_attributes),
		in_world(ah_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
