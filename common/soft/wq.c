/* SPDX-License-Identifier: MIT */
/*
 * Work queue rings. The places are a power of two and made once; SGEs and
 * inline data lie in two arrays beside the ring.
 */
#include "common/soft/engine.h"

#include <errno.h>

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

static void free_arrays(struct soft_wq *wq)
{
	soft_array_fini(&wq->ring_array);
	soft_array_fini(&wq->sge_array);
	soft_array_fini(&wq->inline_array);
	wq->ring = NULL;
}

int soft_wq_init(struct soft_wq *wq, const struct soft_pd *domain,
		 uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
	size_t places = power_of_two(max_wr);

	*wq = (struct soft_wq){
		.mask = (uint32_t)places - 1,
		.max_wr = max_wr,
		.max_sge = max_sge,
		.max_inline = max_inline,
	};
	if (soft_array_init(&wq->ring_array, domain,
			    places * sizeof(*wq->ring)) &&
	    soft_array_init(&wq->sge_array, domain,
			    places * max_sge * sizeof(*wq->sges)) &&
	    soft_array_init(&wq->inline_array, domain, places * max_inline) &&
	    !pthread_mutex_init(&wq->lock, NULL)) {
		wq->ring = wq->ring_array.memory;
		wq->sges = wq->sge_array.memory;
		wq->inlines = wq->inline_array.memory;
		return 0;
	}
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
