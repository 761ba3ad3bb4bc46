/* SPDX-License-Identifier: MIT */
/*
 * Multicast of UD QPs: who is in which group, and a packet to all of them.
 *
 * A datagram to a multicast GID and QPN 0xffffff goes to every QP attached
 * to the group, the sender's own if it is attached, unless it was created
 * with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB. Each takes it as any datagram: its
 * Q_Key must fit and a receive be there. The requester hands the packet here
 * and then to the carrier, which takes it to other processes; a carrier
 * calls soft_mcast_deliver() where it arrives.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/soft/carrier.h"

#define MCAST_QPN 0xffffffu

struct member {
	struct member *next;
	union ibv_gid gid;
	struct soft_qp *qp;
};

static struct member *members;   /* under soft_lock */
static struct member *inherited; /* a parent's, for the memory checkers */

/* RoCE v2 has groups of IPv4 too: ::ffff:224.0.0.0/100. */
bool soft_is_mcast(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return gid->raw[0] == 0xff ||
	       (!memcmp(gid->raw, mapped, sizeof(mapped)) &&
		gid->raw[12] >> 4 == 0xe);
}

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The place of a membership in the list, or its end. */
static struct member **find(const union ibv_gid *gid, const struct soft_qp *qp)
{
	struct member **place = &members;

	while (*place && ((*place)->qp != qp || !same(&(*place)->gid, gid)))
		place = &(*place)->next;
	return place;
}

void soft_mcast_deliver(const struct soft_packet *packet,
			const struct soft_qp *from)
{
	struct soft_packet copy = *packet;

	if (packet->dest_qpn != MCAST_QPN)
		return;
	for (struct member *m = members; m; m = m->next) {
		if (!same(&m->gid, &packet->dgid) ||
		    (m->qp == from && from->no_self_mcast))
			continue;
		soft_receive(m->qp, &copy);
	}
}

/* Whether the device's limits allow one more. */
static bool has_room(const union ibv_gid *gid)
{
	const struct soft_device_limits *limits = soft_limits();
	uint32_t attached = 0, groups = 0;

	for (struct member *m = members; m; m = m->next) {
		struct member *first = members;

		attached += same(&m->gid, gid);
		while (!same(&first->gid, &m->gid))
			first = first->next;
		groups += first == m;
	}
	return attached ? attached < limits->max_mcast_attach
			: groups < limits->max_mcast_grp;
}

/* Under soft_lock. */
static int attach(struct soft_qp *qp, const union ibv_gid *gid)
{
	struct member *member;

	if (!soft_is_mcast(gid) || qp->qp.qp_type != IBV_QPT_UD)
		return EINVAL;
	if (*find(gid, qp))
		return 0; /* it is */
	if (!has_room(gid))
		return ENOMEM;
	member = malloc(sizeof(*member));
	if (!member)
		return ENOMEM;
	*member = (struct member){ members, *gid, qp };
	members = member;
	qp->groups++;
	return 0;
}

static int detach(struct soft_qp *qp, const union ibv_gid *gid)
{
	struct member **place = find(gid, qp);
	struct member *member = *place;

	if (!member)
		return EINVAL;
	*place = member->next;
	free(member);
	qp->groups--;
	return 0;
}

void soft_mcast_forget_qp(struct soft_qp *qp)
{
	struct member **place = &members;

	while (*place) {
		struct member *member = *place;

		if (member->qp == qp) {
			*place = member->next;
			free(member);
		} else {
			place = &member->next;
		}
	}
	qp->groups = 0;
}

void soft_mcast_forget(void)
{
	struct member **end = &members;

	while (*end)
		end = &(*end)->next;
	*end = inherited;
	inherited = members;
	members = NULL;
}

static int change(struct ibv_qp *public, const union ibv_gid *gid,
		  int (*how)(struct soft_qp *qp, const union ibv_gid *gid),
		  const char *verb)
{
	struct soft_qp *qp;
	int err;

	soft_enter();
	qp = soft_find(public, SOFT_QP, verb);
	err = qp ? how(qp, gid) : errno;
	soft_leave();
	if (err)
		errno = err;
	return err;
}

/* RoCE has no LIDs; the argument is InfiniBand's. */
SOFT_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
				 uint16_t lid)
{
	if (soft_foreign(qp))
		return SOFT_REAL(ibv_attach_mcast)(qp, gid, lid);
	return change(qp, gid, attach, "ibv_attach_mcast");
}

SOFT_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
				 uint16_t lid)
{
	if (soft_foreign(qp))
		return SOFT_REAL(ibv_detach_mcast)(qp, gid, lid);
	return change(qp, gid, detach, "ibv_detach_mcast");
}
