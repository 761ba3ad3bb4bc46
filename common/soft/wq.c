/* SPDX-License-Identifier: MIT */
/*
 * Work queue rings. The places are a power of two and made once; SGEs and
 * inline data lie in two arrays beside the ring. A queue of a million WRs is
 * legal, so large arrays are mapped: they cost address space until used, also
 * where a debugger of memory would have touched all of a calloc().
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE (UINT32_C(1) << 20)

static void *new_array(size_t bytes)
{
	void *array;

	if (bytes < LARGE)
		return calloc(1, bytes + 1);
	array = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return array == MAP_FAILED ? NULL : array;
}

static void free_array(void *array, size_t bytes)
{
	if (bytes < LARGE)
		free(array);
	else if (array)
		munmap(array, bytes);
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

static void free_arrays(struct soft_wq *wq)
{
	size_t places = (size_t)wq->mask + 1;

	free_array(wq->ring, places * sizeof(*wq->ring));
	free_array(wq->sges, places * wq->max_sge * sizeof(*wq->sges));
	free_array(wq->inlines, places * wq->max_inline);
	wq->ring = NULL;
}

int soft_wq_init(struct soft_wq *wq, uint32_t max_wr, uint32_t max_sge,
		 uint32_t max_inline)
{
	size_t places = power_of_two(max_wr);

	*wq = (struct soft_wq){
		.mask = (uint32_t)places - 1,
		.max_wr = max_wr,
		.max_sge = max_sge,
		.max_inline = max_inline,
	};
	wq->ring = new_array(places * sizeof(*wq->ring));
	wq->sges = new_array(places * max_sge * sizeof(*wq->sges));
	wq->inlines = new_array(places * max_inline);
	if (wq->ring && wq->sges && wq->inlines &&
	    !pthread_mutex_init(&wq->lock, NULL))
		return 0;
	free_arrays(wq);
	return ENOMEM;
}

void soft_wq_fini(struct soft_wq *wq)
{
	if (!wq->ring)
		return;
	pthread_mutex_destroy(&wq->lock);
	free_arrays(wq);
}
