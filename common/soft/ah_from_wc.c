/* SPDX-License-Identifier: MIT */
/*
 * An address to answer a UD message's sender, from its completion and the
 * 40 bytes before its data. libibverbs has the same; where it is built with
 * symbolic binding its own would call past soft0.
 */
#include "common/soft/object.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* With IPv4 the GRH's place holds an IPv4 header in its last 20 bytes. */
#define IPV4_AT     20
#define IPV4_SOURCE (IPV4_AT + 12)
#define IPV4_DEST   (IPV4_AT + 16)
#define IPV4_TOS    (IPV4_AT + 1)
#define IPV4_TTL    (IPV4_AT + 8)

static bool is_ipv4(const uint8_t *header)
{
	return header[0] >> 4 != 6 && header[IPV4_AT] == 0x45;
}

static union ibv_gid ipv4_gid(const uint8_t *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + 12, address, 4);
	return gid;
}

/* The sender becomes the destination; returns the GID that was written to. */
static union ibv_gid read_route(struct ibv_global_route *route,
				const struct ibv_grh *grh)
{
	const uint8_t *header = (const uint8_t *)grh;
	uint32_t flow;

	if (is_ipv4(header)) {
		route->dgid = ipv4_gid(header + IPV4_SOURCE);
		route->hop_limit = header[IPV4_TTL];
		route->traffic_class = header[IPV4_TOS];
		return ipv4_gid(header + IPV4_DEST);
	}
	flow = ntohl(grh->version_tclass_flow);
	route->dgid = grh->sgid;
	route->hop_limit = grh->hop_limit;
	route->flow_label = flow & 0xfffff;
	route->traffic_class = flow >> 20;
	return grh->dgid;
}

static int from_wc(uint8_t port_num, const struct ibv_wc *wc,
		   const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const union ibv_gid ours = soft_gid();
	union ibv_gid written_to;

	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	written_to = read_route(&attr->grh, grh);
	if (!memcmp(&written_to, &ours, sizeof(ours)))
		return 0;
	errno = ENOENT; /* it is not in the GID table */
	return -1;
}

SOFT_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context,
				    uint8_t port_num, struct ibv_wc *wc,
				    struct ibv_grh *grh,
				    struct ibv_ah_attr *attr)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_init_ah_from_wc)(context, port_num, wc,
						      grh, attr);
	if (!soft_find(context, SOFT_CONTEXT, "ibv_init_ah_from_wc"))
		return -1;
	return from_wc(port_num, wc, grh, attr);
}

SOFT_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
						 struct ibv_wc *wc,
						 struct ibv_grh *grh,
						 uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (soft_foreign(pd))
		return SOFT_REAL(ibv_create_ah_from_wc)(pd, wc, grh, port_num);
	if (from_wc(port_num, wc, grh, &attr))
		return NULL;
	return soft_create_ah(pd, &attr, "ibv_create_ah_from_wc");
}
