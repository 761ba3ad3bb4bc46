/* SPDX-License-Identifier: MIT */
/*
 * The hash map of map.h: open addressing with linear probing, never more
 * than half full, gaps closed on removal.
 */
#include "common/soft/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST 64

struct soft_map_place {
	uint64_t key;
	void *value; /* NULL: the place is free */
};

static size_t place_of(size_t capacity, uint64_t key)
{
	/* Fibonacci hashing: neighbours in, spread out. */
	return (key * UINT64_C(0x9E3779B97F4A7C15)) >> 32 & (capacity - 1);
}

/* Where `key` is, or the free place where it would go. */
static struct soft_map_place *find(const struct soft_map *map, uint64_t key)
{
	size_t i = place_of(map->capacity, key);

	while (map->places[i].value && map->places[i].key != key)
		i = (i + 1) & (map->capacity - 1);
	return &map->places[i];
}

void *soft_map_get(const struct soft_map *map, uint64_t key)
{
	return map->capacity ? find(map, key)->value : NULL;
}

static int grow(struct soft_map *map)
{
	struct soft_map bigger = {
		.capacity = map->capacity ? 2 * map->capacity : SMALLEST,
		.count = map->count,
	};

	bigger.places = calloc(bigger.capacity, sizeof(*bigger.places));
	if (!bigger.places)
		return ENOMEM;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->places[i].value)
			*find(&bigger, map->places[i].key) = map->places[i];
	free(map->places);
	*map = bigger;
	return 0;
}

int soft_map_set(struct soft_map *map, uint64_t key, void *value)
{
	struct soft_map_place *place;

	if (2 * map->count >= map->capacity && grow(map))
		return ENOMEM;
	place = find(map, key);
	map->count += !place->value;
	place->key = key;
	place->value = value;
	return 0;
}

void soft_map_remove(struct soft_map *map, uint64_t key)
{
	struct soft_map_place *gap;
	size_t mask = map->capacity - 1;

	if (!map->capacity)
		return;
	gap = find(map, key);
	if (!gap->value)
		return;
	map->count--;
	/* Whatever may move up to the gap does, so that probing finds it. */
	for (size_t i = (gap - map->places + 1) & mask; map->places[i].value;
	     i = (i + 1) & mask) {
		size_t home = place_of(map->capacity, map->places[i].key);
		size_t hole = gap - map->places;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		*gap = map->places[i];
		gap = &map->places[i];
	}
	gap->value = NULL;
}

void soft_map_clear(struct soft_map *map)
{
	if (map->capacity)
		memset(map->places, 0, map->capacity * sizeof(*map->places));
	map->count = 0;
}
