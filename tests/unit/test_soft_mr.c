/* SPDX-License-Identifier: MIT */
/*
 * Registering memory on soft0: access flags, lengths, mappings and the limit
 * on locked memory (section 2 of the specification; its rows are quoted
 * where tested).
 */
#include "tests/unit/soft_world.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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
	int large;

	/* «unmapped address: EFAULT», at the start, within and at the end */
	munmap(pages + PAGE, PAGE);
	assert_int_equal(registers(world, pages + PAGE, 8, 0), EFAULT);
	assert_int_equal(registers(world, pages, 3 * PAGE, 0), EFAULT);
	assert_int_equal(registers(world, pages, PAGE + 1, local), EFAULT);
	assert_int_equal(registers(world, pages, PAGE, local), 0);
	assert_int_equal(registers(world, pages + 2 * PAGE, PAGE, local), 0);
	assert_int_equal(registers(world, NULL, PAGE, 0), EFAULT);
	/* A range too large for populating goes by the list of mappings. */
	large = registers(world, pages, (size_t)1 << 40, 0);
	assert_true(large == EFAULT || (geteuid() && large == ENOMEM));
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
	/* A re-registration that is refused gives nothing back... */
	if (ibv_rereg_mr(held, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, pages,
			 9 * PAGE, 0) != IBV_REREG_MR_ERR_CMD ||
	    errno != ENOMEM)
		return 9;
	if (registers(&world, pages, 2 * PAGE, 0) != ENOMEM)
		return 10;
	/* ... and one that is done counts what is there now. */
	if (ibv_rereg_mr(held, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, pages,
			 3 * PAGE, 0))
		return 11;
	if (registers(&world, pages, 6 * PAGE, 0) != ENOMEM)
		return 12;
	if (registers(&world, pages, 5 * PAGE, 0))
		return 13;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(mr_access_flags), in_world(mr_length),
		in_world(mr_memory),       in_world(mr_of_much_memory),
		in_world(mr_iova),         in_world(mr_twice),
		in_world(mr_memlock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
