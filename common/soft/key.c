/* SPDX-License-Identifier: MIT */
/*
 * The keys of MRs and MWs: index << 8 | a byte, random for an MR, and the
 * program's to choose for a bound window. Indexes go round, so that the key
 * of what is gone stays unused for long.
 */
#include "common/soft/object.h"

#include <sys/random.h>
#include <unistd.h>

#include "common/soft/map.h"

#define INDEX_MASK 0xffffffu

static struct soft_map keys; /* by index */
static uint32_t last_index;

static uint32_t random_byte(void)
{
	static uint64_t state;

	if (!state && getrandom(&state, sizeof(state), 0) != sizeof(state))
		state = getpid();
	state = state * UINT64_C(6364136223846793005) + 1;
	return state >> 56;
}

int soft_key_add(struct soft_object *object, uint32_t *key)
{
	int err;

	do
		last_index = (last_index + 1) & INDEX_MASK;
	while (!last_index || soft_map_get(&keys, last_index));
	err = soft_map_set(&keys, last_index, object);
	if (err)
		return err;
	*key = last_index << 8 | random_byte();
	return 0;
}

void soft_key_remove(uint32_t key)
{
	soft_map_remove(&keys, key >> 8);
}

struct soft_object *soft_key_find(uint32_t key)
{
	return soft_map_get(&keys, key >> 8);
}

void soft_keys_forget(void)
{
	soft_map_clear(&keys);
}
