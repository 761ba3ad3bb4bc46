/* SPDX-License-Identifier: MIT */
/*
 * Memory for queues and CQs: a parent domain's, if it has allocators of the
 * program's, or ours. A queue of a million WRs is legal, so large arrays of
 * ours are mapped: they cost address space until used, also where a debugger
 * of memory would have touched all of a calloc().
 *
 * The program's allocators may take its locks: they are called without
 * soft_lock, but for what ibv_close_device() finds left behind.
 */
#include "common/soft/engine.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LARGE    (UINT32_C(1) << 20)
#define ALIGN    64
/* Upper half: RDMA_DRIVER_UNKNOWN; lower half: a queue, the only kind. */
#define RESOURCE UINT64_C(1)

static struct ibv_pd *pd_of(const struct soft_pd *domain)
{
	return (struct ibv_pd *)&domain->pd;
}

static void *new_array(size_t bytes)
{
	void *array;

	if (bytes < LARGE)
		return calloc(1, bytes + 1);
	array = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return array == MAP_FAILED ? NULL : array;
}

bool soft_array_init(struct soft_array *array, const struct soft_pd *domain,
		     size_t bytes)
{
	*array = (struct soft_array){ .bytes = bytes };
	if (bytes && domain && domain->alloc) {
		array->memory = domain->alloc(pd_of(domain), domain->context,
					      bytes, ALIGN, RESOURCE);
		if (array->memory != IBV_ALLOCATOR_USE_DEFAULT) {
			array->domain = domain;
			return array->memory;
		}
	}
	array->memory = new_array(bytes);
	return array->memory;
}

void soft_array_fini(struct soft_array *array)
{
	const struct soft_pd *domain = array->domain;

	if (!array->memory)
		return;
	if (domain)
		domain->free(pd_of(domain), domain->context, array->memory,
			     RESOURCE);
	else if (array->bytes < LARGE)
		free(array->memory);
	else
		munmap(array->memory, array->bytes);
	array->memory = NULL;
}
