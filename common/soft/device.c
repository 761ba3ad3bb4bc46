/* SPDX-License-Identifier: MIT */
/*
 * The device list: real devices first, soft0 after them.
 *
 * soft0's struct ibv_device is static, so that a pointer to it stays valid
 * after the list is freed.
 */
#include "common/soft/object.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* With RDMA_STATIC_PROVIDERS it is a macro. */
#undef ibv_get_device_list

struct ibv_device soft_device = {
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.name = "soft0",
	.dev_name = "soft0",
};

/* A list that was handed out; the program holds `devices`. */
struct list {
	struct list *next;
	struct ibv_device **real; /* to be freed with it, or NULL */
	struct ibv_device *devices[];
};

static struct list *lists; /* under soft_lock */

SOFT_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **real = NULL;
	struct list *list;
	int count = 0;

	/* Without kernel support it fails with ENOSYS: no real devices. */
	if (SOFT_REAL(ibv_get_device_list))
		real = SOFT_REAL(ibv_get_device_list)(&count);
	if (!real)
		count = 0;
	list = malloc(sizeof(*list) + (count + 2) * sizeof(*list->devices));
	if (!list) {
		if (real)
			SOFT_REAL(ibv_free_device_list)(real);
		errno = ENOMEM;
		return NULL;
	}
	list->real = real;
	for (int i = 0; i < count; i++)
		list->devices[i] = real[i];
	list->devices[count] = &soft_device;
	list->devices[count + 1] = NULL;
	if (num_devices)
		*num_devices = count + 1;
	soft_enter();
	list->next = lists;
	lists = list;
	soft_leave();
	return list->devices;
}

SOFT_EXPORT void ibv_free_device_list(struct ibv_device **devices)
{
	struct list **place = &lists;
	struct list *list;

	if (!devices)
		return;
	soft_enter();
	while (*place && (*place)->devices != devices)
		place = &(*place)->next;
	list = *place;
	if (list)
		*place = list->next;
	soft_leave();
	if (!list) {
		soft_diagnose("ibv_free_device_list: %p is no list of "
			      "ibv_get_device_list(), or was freed before",
			      (void *)devices);
		return;
	}
	if (list->real)
		SOFT_REAL(ibv_free_device_list)(list->real);
	free(list);
}

SOFT_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	if (device != &soft_device)
		return SOFT_REAL(ibv_get_device_name)(device);
	return soft_device.name;
}

SOFT_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	if (device != &soft_device)
		return SOFT_REAL(ibv_get_device_index)(device);
	return -1; /* the kernel does not know it */
}

SOFT_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	if (device != &soft_device)
		return SOFT_REAL(ibv_get_device_guid)(device);
	return soft_guid();
}

/* FNV-1a, continued from `hash`. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *byte = bytes;

	while (length--)
		hash = (hash ^ *byte++) * UINT64_C(0x100000001B3);
	return hash;
}

/* Of this machine and user, at every run. */
static struct {
	uint64_t number;
	union ibv_gid gid;
} identity;

/* A loopback address of our own; 127.0.x.x is for others. */
static union ibv_gid gid_of(uint64_t number)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 127 } };

	gid.raw[13] = (number >> 16) % 254 + 1;
	gid.raw[14] = number >> 8;
	gid.raw[15] = number % 254 + 1;
	return gid;
}

static void read_identity(void)
{
	uint64_t hash = hash_bytes(UINT64_C(0xCBF29CE484222325), "soft0", 5);
	char id[64] = "";
	uid_t user = getuid();
	FILE *file = fopen("/etc/machine-id", "re");
	size_t length = 0;

	if (file) {
		length = fread(id, 1, sizeof(id), file);
		fclose(file);
	}
	if (!length && !gethostname(id, sizeof(id)))
		length = sizeof(id);
	hash = hash_bytes(hash, id, length);
	identity.number = hash_bytes(hash, &user, sizeof(user));
	identity.gid = gid_of(identity.number);
}

static void need_identity(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_identity);
}

__be64 soft_guid(void)
{
	uint64_t guid;

	need_identity();
	guid = identity.number;
	/* An EUI-64 that is locally administered and of one station. */
	guid &= ~(UINT64_C(3) << 56);
	guid |= UINT64_C(2) << 56;
	return htobe64(guid);
}

union ibv_gid soft_gid(void)
{
	need_identity();
	return identity.gid;
}
