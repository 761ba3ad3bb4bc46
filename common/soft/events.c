/* SPDX-License-Identifier: MIT */
/*
 * The FIFOs of events.h.
 *
 * The descriptor is an eventfd that counts what is in the list. Whoever
 * changes the list changes the count under the list's lock; a reader that
 * finds nothing waits in read(2) without the lock, so that O_NONBLOCK and
 * signals mean what they mean everywhere, and puts the count back before it
 * looks again.
 */
#include "common/soft/events.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int soft_events_init(struct soft_events *events)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

	if (fd < 0)
		return errno;
	events->fd = fd;
	events->first = NULL;
	events->last = &events->first;
	pthread_mutex_init(&events->lock, NULL);
	return 0;
}

void soft_events_fini(struct soft_events *events)
{
	struct soft_event *event;

	while ((event = events->first)) {
		events->first = event->next;
		free(event);
	}
	pthread_mutex_destroy(&events->lock);
	close(events->fd);
}

static void count_up(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* Under the lock, an event being in the list. */
static void count_down(int fd)
{
	uint64_t one;

	/* A waiting reader may hold the count for a moment: see above. */
	while (read(fd, &one, sizeof(one)) < 0 &&
	       (errno == EAGAIN || errno == EINTR))
		sched_yield();
}

/* Takes the event at *place out of the list, which the lock guards. */
static struct soft_event *take(struct soft_events *events,
			       struct soft_event **place)
{
	struct soft_event *event = *place;

	*place = event->next;
	if (!*place)
		events->last = place;
	count_down(events->fd);
	return event;
}

void soft_events_raise(struct soft_events *events,
		       const struct soft_event *event)
{
	struct soft_event *copy = malloc(sizeof(*copy));

	if (!copy)
		return;
	*copy = *event;
	copy->next = NULL;
	pthread_mutex_lock(&events->lock);
	*events->last = copy;
	events->last = &copy->next;
	count_up(events->fd);
	pthread_mutex_unlock(&events->lock);
}

/* Takes the oldest out, or leaves *event NULL. */
static struct soft_event *take_first(struct soft_events *events)
{
	struct soft_event *first = NULL;

	pthread_mutex_lock(&events->lock);
	if (events->first) {
		first = take(events, &events->first);
		if (first->given)
			++*first->given;
	}
	pthread_mutex_unlock(&events->lock);
	return first;
}

int soft_events_get(struct soft_events *events, struct soft_event *event)
{
	struct soft_event *first;

	while (!(first = take_first(events))) {
		uint64_t one;

		if (read(events->fd, &one, sizeof(one)) < 0)
			return errno;
		count_up(events->fd);
	}
	*event = *first;
	free(first);
	return 0;
}

void soft_events_purge(struct soft_events *events,
		       const struct soft_object *object)
{
	struct soft_event **place = &events->first;

	pthread_mutex_lock(&events->lock);
	while (*place) {
		if ((*place)->object == object)
			free(take(events, place));
		else
			place = &(*place)->next;
	}
	pthread_mutex_unlock(&events->lock);
}

void soft_events_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond,
			    const uint32_t *completed, uint32_t given)
{
	pthread_mutex_lock(mutex);
	while (*completed != given)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
