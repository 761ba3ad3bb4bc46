/* SPDX-License-Identifier: MIT */
/*
 * Whether the program's memory is there. A real device pins registered
 * pages; soft0 can't, and a program may unmap what it registered. So the
 * kernel is asked, before each run is copied:
 *
 * - by PROCMAP_QUERY (Linux 6.11): 0.8 us, however large, and what it says
 *   of one mapping holds for the burst of work;
 * - for a short run, and before that, and for mappings of files, which may
 *   have been truncated, by touching the page: a system call reads a word in
 *   it (0.2 us), or writes one back atomically (0.5 us), and fails with EFAULT
 *   where we would die;
 * - for more than a few pages by MADV_POPULATE_READ and _WRITE (Linux 5.14),
 *   1 us and 0.05 for each page.
 *
 * mincore() sees no protection, and a handler of SIGSEGV would be the
 * program's business.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define MOST_TOUCHES 3 /* pages of a run; more are populated */
#define TOUCHED_RUNS 2 /* of a burst; asking once is cheaper for more */

/* struct procmap_query of <linux/fs.h>, missing in older headers. */
struct vma_query {
	uint64_t size, query_flags, query_addr;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
#define VMA_QUERY    _IOWR('f', 17, struct vma_query)
#define VMA_READABLE 1u
#define VMA_WRITABLE 2u

/* A process has one address space. */
static int maps = -1;  /* /proc/self/maps; -1: the kernel can't be asked */
static bool can_touch; /* and tells then what is not there */
static uintptr_t page;
static int touched; /* runs, in this burst; under soft_lock */

/* What was asked about last, in this burst of work; under soft_lock. */
static struct vma {
	uint64_t start, end, flags;
} vma;

void soft_mapped_fresh(void)
{
	vma.end = 0;
	touched = 0;
}

/* --- touching ----------------------------------------------------------- */

/* Its set of signals is read before it is told that there's no such thing. */
static bool touch_to_read(uintptr_t addr)
{
	return !syscall(SYS_rt_sigprocmask, -1, addr & ~(uintptr_t)7, NULL,
			8) ||
	       errno != EFAULT;
}

/* A word is or-ed with 0, atomically; nobody is woken. */
static bool touch_to_write(uintptr_t addr)
{
	uint32_t nobody = 0;

	return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
		       0, 0, addr & ~(uintptr_t)3,
		       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0 ||
	       errno != EFAULT;
}

/* It would report every touch of what the program has not written yet. */
static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload_");
}

/* Emulations of the kernel may look at the arguments in another order. */
static bool touching_works(void)
{
	uint64_t there = 0;
	void *gone;
	bool works;

	if (under_valgrind())
		return false;
	gone = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (gone == MAP_FAILED)
		return false;
	works = touch_to_read((uintptr_t)&there) &&
		touch_to_write((uintptr_t)&there) &&
		!touch_to_read((uintptr_t)gone) &&
		!touch_to_write((uintptr_t)gone);
	munmap(gone, page);
	return works;
}

static enum soft_mapped touch(uintptr_t start, uintptr_t end, bool write)
{
	for (uintptr_t at = start; at < end; at = (at & -page) + page)
		if (!(write ? touch_to_write(at) : touch_to_read(at)))
			return SOFT_NOT_MAPPED;
	return SOFT_MAPPED;
}

static enum soft_mapped populate(uintptr_t start, uintptr_t end, bool write)
{
	start &= -page;
	if (!madvise((void *)start, end - start,
		     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return SOFT_MAPPED;
	/* EINVAL: no right, an older kernel, or a mapping that it isn't for. */
	return errno == EINVAL ? SOFT_MAPPED_UNKNOWN : SOFT_NOT_MAPPED;
}

static bool is_short(uintptr_t start, uintptr_t end)
{
	return can_touch && end - (start & -page) <= MOST_TOUCHES * page;
}

static enum soft_mapped try(uintptr_t start, uintptr_t end, bool write)
{
	return is_short(start, end) ? touch(start, end, write)
				    : populate(start, end, write);
}

/* --- asking ------------------------------------------------------------- */

void soft_mapped_start(void)
{
	struct vma_query query = {
		.size = sizeof(query),
		.query_addr = (uintptr_t)&maps,
	};

	soft_mapped_stop();
	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	can_touch = touching_works();
	maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps >= 0 && ioctl(maps, VMA_QUERY, &query)) {
		close(maps);
		maps = -1;
	}
}

void soft_mapped_stop(void)
{
	if (maps >= 0)
		close(maps);
	maps = -1;
	can_touch = false;
	soft_mapped_fresh();
}

/* What is mapped at an address, as `vma`. */
static enum soft_mapped ask(uint64_t addr)
{
	struct vma_query query = { .size = sizeof(query), .query_addr = addr };

	if (addr >= vma.start && addr < vma.end)
		return SOFT_MAPPED;
	if (maps < 0)
		return SOFT_MAPPED_UNKNOWN;
	if (ioctl(maps, VMA_QUERY, &query))
		return errno == ENOENT ? SOFT_NOT_MAPPED : SOFT_MAPPED_UNKNOWN;
	if (query.inode)
		return SOFT_MAPPED_UNKNOWN; /* behind the file's end: SIGBUS */
	vma = (struct vma){ query.start, query.end, query.flags };
	return SOFT_MAPPED;
}

static enum soft_mapped look(uint64_t start, uint64_t end, bool write)
{
	const uint64_t rights =
		write ? VMA_READABLE | VMA_WRITABLE : VMA_READABLE;

	if (!vma.end && is_short(start, end) && touched++ < TOUCHED_RUNS)
		return touch(start, end, write);
	while (start < end) {
		enum soft_mapped mapped = ask(start);

		if (mapped == SOFT_MAPPED_UNKNOWN)
			return try(start, end, write);
		if (mapped == SOFT_NOT_MAPPED || (vma.flags & rights) != rights)
			return SOFT_NOT_MAPPED;
		start = vma.end;
	}
	return SOFT_MAPPED;
}

enum soft_mapped soft_mapped(const struct iovec *part, int parts, size_t length,
			     bool write)
{
	for (int i = 0; i < parts && length; i++) {
		uint64_t start = (uintptr_t)part[i].iov_base;
		size_t n = part[i].iov_len < length ? part[i].iov_len : length;
		enum soft_mapped mapped = look(start, start + n, write);

		if (mapped != SOFT_MAPPED)
			return mapped;
		length -= n;
	}
	return length ? SOFT_NOT_MAPPED : SOFT_MAPPED;
}
