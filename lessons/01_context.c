/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 01: the context. Which RDMA devices are there, how to choose one,
 * what opening it gives, and what the device and its ports say of
 * themselves.
 *
 * Copy from here: finding a device by name or GUID, and reading the limits
 * that everything created later has to keep.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../common/lesson/lesson.h"

#define MAX_GIDS 1024 /* of all ports */

static struct ibv_device *find_by_name(struct ibv_device **list,
				       const char *name)
{
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	return NULL;
}

/* `guid` in network byte order, as ibv_get_device_guid() gives it. */
static struct ibv_device *find_by_guid(struct ibv_device **list,
				       __be64 guid)
{
	for (int i = 0; list[i]; i++)
		if (ibv_get_device_guid(list[i]) == guid)
			return list[i];
	return NULL;
}

static const char *transport_str(enum ibv_transport_type transport)
{
	switch (transport) {
	case IBV_TRANSPORT_IB:
		return "InfiniBand"; /* RoCE also: it is carried by Ethernet
				      */
	case IBV_TRANSPORT_IWARP:
		return "iWARP";
	default:
		return "other";
	}
}

static const char *link_layer_str(uint8_t layer)
{
	switch (layer) {
	case IBV_LINK_LAYER_INFINIBAND:
		return "InfiniBand";
	case IBV_LINK_LAYER_ETHERNET:
		return "Ethernet";
	default:
		return "unspecified";
	}
}

static const char *gid_type_str(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "IB";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "?";
	}
}

static void show_device(struct ibv_device *device)
{
	say("  %-8s guid %016" PRIx64 ", %s, transport %s",
	    ibv_get_device_name(device),
	    be64toh(ibv_get_device_guid(device)),
	    ibv_node_type_str(device->node_type),
	    transport_str(device->transport_type));
}

static void show_limits(const struct ibv_device_attr *attr)
{
	say("  max_pd         %d", attr->max_pd);
	say("  max_mr         %d, of at most %" PRIu64 " bytes each",
	    attr->max_mr, attr->max_mr_size);
	say("  max_cq         %d, of at most %d completions each",
	    attr->max_cq, attr->max_cqe);
	say("  max_qp         %d, of at most %d requests a queue",
	    attr->max_qp, attr->max_qp_wr);
	say("  max_sge        %d scattered pieces a request",
	    attr->max_sge);
	say("  max_qp_rd_atom %d reads and atomics under way at a target",
	    attr->max_qp_rd_atom);
	say("  ports          %d", attr->phys_port_cnt);
}

static void show_port(uint8_t number, const struct ibv_port_attr *port)
{
	say("  port %d: %s, link layer %s", number,
	    ibv_port_state_str(port->state),
	    link_layer_str(port->link_layer));
	/* The enum counts from IBV_MTU_256 = 1: 128 bytes shifted by it. */
	say("  MTU %d bytes active, %d at most; LID %d; GID table of %d",
	    128 << port->active_mtu, 128 << port->max_mtu, port->lid,
	    port->gid_tbl_len);
}

static void show_gids(struct ibv_context *context)
{
	struct ibv_gid_entry *entries;
	char address[INET6_ADDRSTRLEN];
	ssize_t count;

	entries = calloc(MAX_GIDS, sizeof(*entries));
	if (!entries) {
		report(ENOMEM, "calloc()");
		return;
	}
	count = ibv_query_gid_table(context, entries, MAX_GIDS, 0);
	if (count < 0)
		report((int)-count, "ibv_query_gid_table()");
	for (ssize_t i = 0; i < count; i++) {
		const struct ibv_gid_entry *entry = &entries[i];
		bool used = entry->port_num == lesson_port() &&
			    entry->gid_index == lesson_gid_index();

		inet_ntop(AF_INET6, entry->gid.raw, address,
			  sizeof(address));
		say("  port %u, index %-3u %-8s %s%s", entry->port_num,
		    entry->gid_index, gid_type_str(entry->gid_type),
		    address, used ? "   <- used here" : "");
	}
	free(entries);
}

int main(int argc, char **argv)
{
	struct ibv_device **list, *device;
	struct ibv_context *context, *second;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int count, err;

	lesson_begin("01_context", "devices and contexts", argc, argv);

	step("list-devices");
	list = ibv_get_device_list(&count);
	if (!list) {
		report(errno, "ibv_get_device_list()");
		goto end;
	}
	say("  %d device%s", count, count == 1 ? "" : "s");

	step("read-list");
	for (int i = 0; list[i]; i++)
		show_device(list[i]);

	step("choose-device");
	device = lesson_choose(list);
	if (!device)
		goto free_list;
	if (!find_by_name(list, ibv_get_device_name(device)) ||
	    !find_by_guid(list, ibv_get_device_guid(device))) {
		report(ENODEV, "the list has lost a device");
		goto free_list;
	}
	say("  chosen: %s", ibv_get_device_name(device));

	step("open-device");
	context = ibv_open_device(device);
	if (!context) {
		report(errno, "ibv_open_device(%s)",
		       ibv_get_device_name(device));
		goto free_list;
	}

	step("free-list");
	ibv_free_device_list(list);
	list = NULL;
	say("  still usable: %s", ibv_get_device_name(context->device));
	err = lesson_settle(context);
	if (err)
		goto close;

	step("query-device");
	err = ibv_query_device(context, &attr);
	if (err) {
		report(err, "ibv_query_device(%s)",
		       ibv_get_device_name(context->device));
		goto close;
	}
	show_limits(&attr);

	step("firmware");
	say("  firmware %s, vendor 0x%06x, part %u, hardware version %u",
	    attr.fw_ver[0] ? attr.fw_ver : "(none)", attr.vendor_id,
	    attr.vendor_part_id, attr.hw_ver);

	step("query-port");
	err = ibv_query_port(context, lesson_port(), &port);
	if (err) {
		report(err, "ibv_query_port(port=%d)", lesson_port());
		goto close;
	}
	show_port(lesson_port(), &port);

	step("bad-port");
	refused(EINVAL,
		ibv_query_port(context, attr.phys_port_cnt + 1, &port));

	step("gid-table");
	show_gids(context);

	step("query-gid");
	err = ibv_query_gid(context, lesson_port(), lesson_gid_index(),
			    &gid);
	if (err) {
		report(errno, "ibv_query_gid(port=%d, index=%d)",
		       lesson_port(), lesson_gid_index());
		goto close;
	}
	say("  subnet prefix %016" PRIx64 ", interface id %016" PRIx64,
	    be64toh(gid.global.subnet_prefix),
	    be64toh(gid.global.interface_id));

	step("second-context");
	second = ibv_open_device(context->device);
	if (!second) {
		report(errno, "ibv_open_device(%s), again",
		       ibv_get_device_name(context->device));
		goto close;
	}
	say("  two contexts of %s: async_fd %d and %d",
	    ibv_get_device_name(context->device), context->async_fd,
	    second->async_fd);

	step("close-second");
	err = ibv_close_device(second);
	if (err)
		report(err, "ibv_close_device(second)");
	err = ibv_query_port(context, lesson_port(), &port);
	if (err)
		report(err, "ibv_query_port(), after the other was closed");

	step("close-device");
close:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device(context)");
free_list:
	if (list)
		ibv_free_device_list(list);
end:
	return lesson_end();
}
