/* SPDX-License-Identifier: MIT */
/*
 * Work queue rings. The places are a power of two and made once; SGEs and
 * inline data lie in two arrays beside the ring, so that a large queue costs
 * only address space until it is used.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power <<= 1;
	return power;
}

int soft_wq_init(struct soft_wq *wq, uint32_t max_wr, uint32_t max_sge,
		 uint32_t max_inline)
{
	uint32_t places = power_of_two(max_wr);

	*wq = (struct soft_wq){
		.mask = places - 1,
		.max_wr = max_wr,
		.max_sge = max_sge,
		.max_inline = max_inline,
	};
	wq->ring = calloc(places, sizeof(*wq->ring));
	wq->sges = calloc(places, (max_sge + 1) * sizeof(*wq->sges));
	wq->inlines = calloc(places, max_inline + 1);
	if (!wq->ring || !wq->sges || !wq->inlines)
		goto free_all;
	if (pthread_mutex_init(&wq->lock, NULL))
		goto free_all;
	return 0;
free_all:
	free(wq->ring);
	free(wq->sges);
	free(wq->inlines);
	wq->ring = NULL;
	return ENOMEM;
}

void soft_wq_fini(struct soft_wq *wq)
{
	if (!wq->ring)
		return;
	pthread_mutex_destroy(&wq->lock);
	free(wq->ring);
	free(wq->sges);
	free(wq->inlines);
	wq->ring = NULL;
}
