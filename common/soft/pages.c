/* SPDX-License-Identifier: MIT */
/*
 * The checks of pages.h: RLIMIT_MEMLOCK as in the kernel's ib_umem_get(),
 * and the mappings from /proc/self/maps.
 */
#include "common/soft/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/soft/object.h"

/* Up to here asking madvise() is quicker, and cheap in memory. */
#define SMALL ((size_t)1 << 20)

static size_t charged; /* by all MRs of the process */

static uintptr_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

size_t soft_pages_count(uintptr_t addr, size_t length)
{
	uintptr_t page = page_size();
	uintptr_t first = addr / page;
	/* Without addr + length + page - 1, which may wrap around. */
	uintptr_t end = (addr + length) / page + !!((addr + length) % page);

	return end - first;
}

int soft_pages_charge(size_t pages)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return errno;
	if (limit.rlim_cur != RLIM_INFINITY && !soft_capable(CAP_IPC_LOCK)) {
		if (limit.rlim_cur == 0)
			return EPERM;
		if (charged + pages > limit.rlim_cur / page_size())
			return ENOMEM;
	}
	charged += pages;
	return 0;
}

void soft_pages_uncharge(size_t pages)
{
	charged -= pages;
}

void soft_pages_recharge(size_t pages)
{
	charged += pages;
}

void soft_pages_forget(void)
{
	charged = 0;
}

/* Faults the pages in, as registering does; true if that worked. */
static bool populate(uintptr_t first, size_t length, bool write)
{
#if defined(MADV_POPULATE_READ) && defined(MADV_POPULATE_WRITE)
	/* Linux 5.14; elsewhere it fails and the mappings decide. */
	return !madvise((void *)first, length,
			write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#else
	(void)first, (void)length, (void)write;
	return false;
#endif
}

/* Looks through /proc/self/maps, which is in the order of addresses. */
static bool mapped(uintptr_t addr, uintptr_t last, bool write)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool whole = false;

	if (!maps)
		return true; /* no /proc: there is no telling */
	while (!whole && fgets(line, sizeof(line), maps)) {
		uintptr_t start, end;
		char may[5];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end,
			   may) != 3)
			continue; /* the rest of a long line */
		if (end <= addr)
			continue;
		if (start > addr || may[0] != 'r' || (write && may[1] != 'w'))
			break;
		whole = end > last;
		addr = end;
	}
	fclose(maps);
	return whole;
}

int soft_pages_check(uintptr_t addr, size_t length, bool write)
{
	uintptr_t first = addr & ~(page_size() - 1);
	uintptr_t last = length ? addr + length - 1 : addr;

	if (last - first < SMALL && populate(first, last - first + 1, write))
		return 0;
	return mapped(first, last, write) ? 0 : EFAULT;
}
