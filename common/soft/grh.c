/* SPDX-License-Identifier: MIT */
/*
 * The 40 bytes that a datagram's receiver finds before the payload: with
 * RoCEv2 the IP header, an IPv4 one in the last 20 (IBTA annex A17).
 */
#include "common/soft/engine.h"

#include <arpa/inet.h>
#include <string.h>

static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (uint16_t)~sum;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

void soft_make_grh(const struct soft_packet *p, uint8_t grh[SOFT_GRH_BYTES])
{
	uint8_t *ip = grh + 20;
	uint32_t pad = -p->length & 3;
	/* UDP, BTH, DETH, immediate, payload, pad, ICRC */
	uint16_t udp = (uint16_t)(8 + 12 + 8 + (p->has_imm ? 4 : 0) +
				  p->length + pad + 4);
	uint16_t field;

	memset(grh, 0, SOFT_GRH_BYTES);
	if (!is_ipv4(&p->sgid) || !is_ipv4(&p->dgid)) {
		field = htons(udp);
		grh[0] = 0x60;
		memcpy(grh + 4, &field, 2);
		grh[6] = 17; /* UDP */
		grh[7] = 64; /* hop limit */
		memcpy(grh + 8, p->sgid.raw, 16);
		memcpy(grh + 24, p->dgid.raw, 16);
		return;
	}
	ip[0] = 0x45;
	field = htons((uint16_t)(20 + udp));
	memcpy(ip + 2, &field, 2);
	ip[6] = 0x40; /* don't fragment */
	ip[8] = 64;   /* time to live */
	ip[9] = 17;   /* UDP */
	memcpy(ip + 12, p->sgid.raw + 12, 4);
	memcpy(ip + 16, p->dgid.raw + 12, 4);
	field = htons(ip_checksum(ip));
	memcpy(ip + 10, &field, 2);
}
