/* SPDX-License-Identifier: MIT */
/*
 * FIFOs of events behind a file descriptor that polls readable while there
 * are any: the completion channels' and the contexts' async events.
 */
#ifndef SOFT_EVENTS_H
#define SOFT_EVENTS_H

#include "common/soft/soft.h"

struct soft_event {
	struct soft_event *next;
	struct soft_object *object; /* whose event it is; NULL: the port's */
	uint32_t *given;            /* counts it when the program gets it */
	enum ibv_event_type type;   /* async events */
};

/* An empty list; 0 or the errno of eventfd(2). */
int soft_events_init(struct soft_events *events);
/* Drops what is in it, and closes the descriptor. */
void soft_events_fini(struct soft_events *events);

/* Appends a copy; when memory is out the event is lost. Any thread. */
void soft_events_raise(struct soft_events *events,
		       const struct soft_event *event);
/*
 * Takes the oldest out into *event and counts it as given. Waits for one,
 * unless the program made the descriptor non-blocking. 0, or an errno.
 */
int soft_events_get(struct soft_events *events, struct soft_event *event);
/* Drops the events of an object that is about to go. */
void soft_events_purge(struct soft_events *events,
		       const struct soft_object *object);

/* Returns when *completed, under `mutex`, has caught up with `given`. */
void soft_events_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond,
			    const uint32_t *completed, uint32_t given);

#endif
