/* SPDX-License-Identifier: MIT */
/*
 * A hash map from a number to a pointer: soft0's tables of handles, keys,
 * QP numbers and live pointers.
 *
 * A map of zeros is an empty one. No locks: each map has a lock of its own.
 */
#ifndef SOFT_MAP_H
#define SOFT_MAP_H

#include <stddef.h>
#include <stdint.h>

struct soft_map {
	struct soft_map_place *places;
	size_t capacity, count;
};

/* The value of `key`, or NULL. */
void *soft_map_get(const struct soft_map *map, uint64_t key);
/* Sets a value that is not NULL; 0 or ENOMEM. */
int soft_map_set(struct soft_map *map, uint64_t key, void *value);
/* Removes a key; nothing happens if it is not there. */
void soft_map_remove(struct soft_map *map, uint64_t key);
/* Forgets everything; the values are not looked at. */
void soft_map_clear(struct soft_map *map);

#endif
