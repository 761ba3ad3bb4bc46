/* SPDX-License-Identifier: 0BSD */
/*
 * Memory in whole pages: what is registered is pinned by the page, so that
 * is how it should be allocated.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void *page_alloc(size_t count)
{
	size_t size = count * page_bytes();
	void *memory = NULL;
	int err = posix_memalign(&memory, page_bytes(), size);

	if (err) {
		report(err, "posix_memalign(%zu bytes)", size);
		return NULL;
	}
	memset(memory, 0, size);
	return memory;
}
