/* SPDX-License-Identifier: 0BSD */
/*
 * Which device, port and GID index a lesson runs on: the options' choice,
 * else the first real device with an active port, else soft0.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 64
/* Entries of all ports that are looked at: for 2048 the kernel says EINVAL. */
#define GID_TABLE 2047

const char *lesson_device_name(void)
{
	return lesson_run.device;
}

uint8_t lesson_port(void)
{
	return lesson_run.port_in_use;
}

uint8_t lesson_gid_index(void)
{
	return lesson_run.gid_index_in_use;
}

/* The software device is found by its name: it is what is used last. */
static bool is_soft(struct ibv_device *device)
{
	return !strncmp(ibv_get_device_name(device), "soft", 4);
}

/*
 * "0002:c903:00ab:cdef", "0x0002c90300abcdef", "00-02-c9-...": sixteen hex
 * digits, separators anywhere between them.
 */
static bool parse_guid(const char *text, uint64_t *guid)
{
	int digits = 0;

	*guid = 0;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	for (; *text; text++) {
		if (*text == ':' || *text == '-')
			continue;
		if (!isxdigit((unsigned char)*text) || ++digits > 16)
			return false;
		*guid = *guid << 4 |
			(uint64_t)(isdigit((unsigned char)*text)
					   ? *text - '0'
					   : tolower((unsigned char)*text) -
						     'a' + 10);
	}
	return digits == 16;
}

bool lesson_device_matches(struct ibv_device *device, const char *wanted)
{
	uint64_t guid;

	if (!strcmp(ibv_get_device_name(device), wanted))
		return true;
	return parse_guid(wanted, &guid) &&
	       be64toh(ibv_get_device_guid(device)) == guid;
}

void lesson_no_such_device(struct ibv_device **list)
{
	lesson_run.misused = true;
	fflush(stdout);
	fprintf(stderr, "%s: no device '%s'; there %s", lesson_run.name,
		lesson_run.device,
		list && list[0] ? "are:" : "are no RDMA devices at all");
	for (int i = 0; list && list[i]; i++)
		fprintf(stderr, " %s", ibv_get_device_name(list[i]));
	fprintf(stderr, "\n");
}

/* The first active port, or 0. */
static uint8_t active_port(struct ibv_context *context)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	if (ibv_query_device(context, &device))
		return 0;
	for (int i = 1; i <= device.phys_port_cnt; i++)
		if (!ibv_query_port(context, (uint8_t)i, &port) &&
		    port.state == IBV_PORT_ACTIVE)
			return (uint8_t)i;
	return 0;
}

/* --port, else the first active port, else 1. False: no such port. */
static bool choose_port(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	uint8_t active;
	int err;

	if (!lesson_run.port) {
		active = active_port(context);
		lesson_run.port_in_use = active ? active : 1;
		return true;
	}
	err = ibv_query_device(context, &attr);
	if (err) {
		report(err, "ibv_query_device(%s)",
		       ibv_get_device_name(context->device));
		return false;
	}
	if (lesson_run.port > attr.phys_port_cnt) {
		lesson_run.misused = true;
		fprintf(stderr, "%s: no port %d; %s has ports 1 to %d\n",
			lesson_run.name, lesson_run.port,
			ibv_get_device_name(context->device),
			attr.phys_port_cnt);
		return false;
	}
	lesson_run.port_in_use = (uint8_t)lesson_run.port;
	return true;
}

int lesson_gid_rank(const struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *raw = entry->gid.raw;

	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 1;
	if (!memcmp(raw, mapped, sizeof(mapped)))
		return 4;
	if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80)
		return 2; /* link-local: of this link only */
	return 3;
}

uint8_t lesson_best_gid(const struct ibv_gid_entry *entries, size_t count,
			uint8_t port)
{
	uint8_t index = 0;
	int best = 0;

	for (size_t i = 0; i < count; i++) {
		int rank = lesson_gid_rank(&entries[i]);

		if (entries[i].port_num == port && entries[i].gid_index < 256 &&
		    rank > best) {
			best = rank;
			index = (uint8_t)entries[i].gid_index;
		}
	}
	return index;
}

/* RoCE: the best entry of the port's GID table. Others: entry 0. */
static uint8_t best_gid_index(struct ibv_context *context)
{
	struct ibv_gid_entry *entries;
	struct ibv_port_attr port;
	uint8_t index = 0;
	ssize_t count;

	if (ibv_query_port(context, lesson_run.port_in_use, &port) ||
	    port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return 0;
	entries = calloc(GID_TABLE, sizeof(*entries));
	if (!entries)
		return 0;
	count = ibv_query_gid_table(context, entries, GID_TABLE, 0);
	if (count < 0)
		report((int)-count, "ibv_query_gid_table(max_entries=%d)",
		       GID_TABLE);
	else
		index = lesson_best_gid(entries, (size_t)count,
					lesson_run.port_in_use);
	free(entries);
	return index;
}

/* --gid-index, else the best. False: no such entry. */
static bool choose_gid_index(struct ibv_context *context)
{
	struct ibv_port_attr port;
	int err;

	if (lesson_run.gid_index < 0) {
		lesson_run.gid_index_in_use = best_gid_index(context);
		return true;
	}
	err = ibv_query_port(context, lesson_run.port_in_use, &port);
	if (err) {
		report(err, "ibv_query_port(port=%d)", lesson_run.port_in_use);
		return false;
	}
	if (lesson_run.gid_index >= port.gid_tbl_len) {
		lesson_run.misused = true;
		fprintf(stderr,
			"%s: no GID index %d; port %d of %s has 0 to %d\n",
			lesson_run.name, lesson_run.gid_index,
			lesson_run.port_in_use,
			ibv_get_device_name(context->device),
			port.gid_tbl_len - 1);
		return false;
	}
	lesson_run.gid_index_in_use = (uint8_t)lesson_run.gid_index;
	return true;
}

static struct ibv_device *find_wanted(struct ibv_device **list)
{
	for (int i = 0; list[i]; i++)
		if (lesson_device_matches(list[i], lesson_run.device))
			return list[i];
	lesson_no_such_device(list);
	return NULL;
}

/* The first real one with an active port; `why` says why there was none. */
static struct ibv_device *find_real(struct ibv_device **list, char *why,
				    size_t size)
{
	struct ibv_context *context;
	bool active;

	snprintf(why, size, "there is no RDMA hardware here");
	for (int i = 0; list[i]; i++) {
		const char *name = ibv_get_device_name(list[i]);

		if (is_soft(list[i]))
			continue;
		context = ibv_open_device(list[i]);
		if (!context) {
			snprintf(why, size, "%s does not open: %s", name,
				 errno_text(lesson_errno()));
			continue;
		}
		active = active_port(context) != 0;
		ibv_close_device(context);
		if (active)
			return list[i];
		snprintf(why, size, "%s has no active port", name);
	}
	return NULL;
}

struct ibv_device *lesson_choose(struct ibv_device **list)
{
	struct ibv_device *device;
	char why[128];

	if (lesson_run.device)
		return find_wanted(list);
	device = find_real(list, why, sizeof(why));
	if (device)
		return device;
	for (int i = 0; list[i]; i++)
		if (is_soft(list[i])) {
			say("%s, so this runs on %s, the software device", why,
			    ibv_get_device_name(list[i]));
			return list[i];
		}
	report(ENODEV, "no device to run on: %s", why);
	return NULL;
}

int lesson_settle(struct ibv_context *context)
{
	if (choose_port(context) && choose_gid_index(context))
		return 0;
	return ENODEV;
}

struct ibv_context *lesson_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	struct ibv_device *device;

	if (!list) {
		report(lesson_errno(), "ibv_get_device_list()");
		return NULL;
	}
	device = lesson_choose(list);
	if (device) {
		context = ibv_open_device(device);
		if (!context)
			report(lesson_errno(), "ibv_open_device(%s)",
			       ibv_get_device_name(device));
	}
	ibv_free_device_list(list);
	if (context && lesson_settle(context)) {
		ibv_close_device(context);
		return NULL;
	}
	return context;
}

bool lesson_can_connect(struct ibv_context *context)
{
	if (context->device->transport_type != IBV_TRANSPORT_IWARP)
		return true;
	say("%s is an iWARP device: its QPs connect by the connection "
	    "manager (rdma_cm), not by ibv_modify_qp(); this part is left out",
	    ibv_get_device_name(context->device));
	return false;
}
