/* SPDX-License-Identifier: MIT */
/*
 * Which extended QPs and CQs have their pointers replaced: a hash by address
 * that is read without a lock. An entry stays in its chain for ever and
 * serves the next object there, so a reader never meets freed memory.
 */
#include "probe.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 1024

static _Atomic(struct wrapped *) bucket[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long last_life;

static _Atomic(struct wrapped *) *chain_of(const void *object)
{
	uintptr_t bits = (uintptr_t)object;

	return &bucket[((bits >> 4) ^ (bits >> 14)) % BUCKETS];
}

static struct wrapped *search(const void *chain_object, enum rules_object type,
			      const void *object)
{
	struct wrapped *entry = atomic_load_explicit(chain_of(chain_object),
						     memory_order_acquire);

	while (entry && (entry->type != type ||
			 atomic_load_explicit(&entry->object,
					      memory_order_acquire) != object))
		entry = entry->next;
	return entry;
}

struct wrapped *wrapped_find(enum rules_object type, const void *object)
{
	return search(object, type, object);
}

void wrapped_lock(void)
{
	pthread_mutex_lock(&lock);
}

void wrapped_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct wrapped *wrapped_entry(enum rules_object type, const void *object,
			      size_t size)
{
	struct wrapped *entry = search(object, type, object);

	if (!entry)
		entry = search(object, type, NULL);
	if (!entry) {
		entry = calloc(1, size);
		if (!entry)
			return NULL;
		entry->type = type;
		entry->next = *chain_of(object);
		atomic_store_explicit(chain_of(object), entry,
				      memory_order_release);
	}
	entry->life = ++last_life;
	return entry;
}

unsigned long wrapped_life(enum rules_object type, const void *object)
{
	struct wrapped *entry;
	unsigned long life = 0;

	if (!object || probe_mode == MODE_OFF)
		return 0;
	pthread_mutex_lock(&lock);
	entry = wrapped_find(type, object);
	if (entry)
		life = entry->life;
	pthread_mutex_unlock(&lock);
	return life;
}

void wrapped_gone(enum rules_object type, const void *object,
		  unsigned long life)
{
	struct wrapped *entry;

	pthread_mutex_lock(&lock);
	entry = wrapped_find(type, object);
	if (entry && entry->life == life)
		entry->object = NULL;
	pthread_mutex_unlock(&lock);
}
