/* SPDX-License-Identifier: MIT */
/*
 * Object ids: a pointer and its type to a number. Open addressing; an entry
 * that was dropped stays as a gap until the table grows.
 */
#include "probe.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
	const void *object; /* NULL: never used */
	unsigned long number;
	enum rules_object type;
	bool dropped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *table;
static size_t size, used; /* a power of two; entries and gaps */
static unsigned long next[RULES_OBJECTS];

/* The entry of the object, else the first one that is free for it. */
static struct entry *find(struct entry *in, size_t count,
			  enum rules_object type, const void *object)
{
	size_t i = ((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u + type;

	for (i ^= i >> 32;; i++) {
		struct entry *entry = &in[i & (count - 1)];

		if (!entry->object ||
		    (entry->object == object && entry->type == type))
			return entry;
	}
}

static bool grow(void)
{
	size_t bigger = size ? size * 2 : 256;
	struct entry *fresh = calloc(bigger, sizeof(*fresh));

	if (!fresh)
		return false;
	used = 0;
	for (size_t i = 0; i < size; i++) {
		if (!table[i].object || table[i].dropped)
			continue;
		*find(fresh, bigger, table[i].type, table[i].object) = table[i];
		used++;
	}
	free(table);
	table = fresh;
	size = bigger;
	return true;
}

static unsigned long name(enum rules_object type, const void *object,
			  bool fresh)
{
	unsigned long number = 0;
	struct entry *entry;

	pthread_mutex_lock(&lock);
	if (used * 2 >= size && !grow() && used + 1 >= size)
		goto out; /* no memory at all: the id is of no use */
	entry = find(table, size, type, object);
	if (!entry->object || entry->dropped || fresh) {
		if (!entry->object)
			used++;
		*entry = (struct entry){
			.object = object,
			.type = type,
			.number = next[type]++,
		};
	}
	number = entry->number;
out:
	pthread_mutex_unlock(&lock);
	return number;
}

unsigned long name_of(enum rules_object type, const void *object)
{
	return name(type, object, false);
}

unsigned long name_new(enum rules_object type, const void *object)
{
	return name(type, object, true);
}

void name_drop(enum rules_object type, const void *object, unsigned long n)
{
	struct entry *entry;

	pthread_mutex_lock(&lock);
	if (size) {
		entry = find(table, size, type, object);
		if (entry->object && entry->number == n)
			entry->dropped = true;
	}
	pthread_mutex_unlock(&lock);
}
