/* SPDX-License-Identifier: MIT */
/*
 * Address handles, and the check of an address that QPs share.
 *
 * WQEs may name an AH that the program has destroyed: it is freed when the
 * last of them is done.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

int soft_check_address(const struct ibv_ah_attr *attr)
{
	if (attr->port_num != 1)
		return EINVAL;
	/* RoCE has no LIDs: a GRH is a must (rdma_check_ah_attr). */
	if (!attr->is_global)
		return EINVAL;
	/* The table has one entry (rdma_get_gid_attr). */
	return attr->grh.sgid_index ? EINVAL : 0;
}

struct ibv_ah *soft_create_ah(struct ibv_pd *public,
			      const struct ibv_ah_attr *attr, const char *verb)
{
	struct soft_pd *pd;
	struct soft_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	soft_enter();
	pd = soft_find(public, SOFT_PD, verb);
	err = pd ? soft_check_address(attr) : errno;
	if (!err) {
		ah->ah.context = public->context;
		ah->ah.pd = public;
		ah->attr = *attr;
		err = soft_object_add(&ah->object, SOFT_AH, ah,
				      pd->object.context);
	}
	if (!err)
		pd->refs++;
	soft_leave();
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	return &ah->ah;
}

SOFT_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
					 struct ibv_ah_attr *attr)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_create_ah)(pd, attr);
	return soft_create_ah(pd, attr, "ibv_create_ah");
}

/* Under soft_lock; tells whether WQEs still name it. */
static bool leave_ah(struct soft_ah *ah)
{
	((struct soft_pd *)ah->ah.pd)->refs--;
	soft_object_remove(&ah->object);
	ah->destroyed = true;
	return __atomic_load_n(&ah->refs, __ATOMIC_ACQUIRE);
}

SOFT_EXPORT int ibv_destroy_ah(struct ibv_ah *public)
{
	struct soft_ah *ah;
	bool named = false;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_destroy_ah)(public);
	soft_enter();
	ah = soft_find(public, SOFT_AH, "ibv_destroy_ah");
	if (ah)
		named = leave_ah(ah);
	else
		err = errno;
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	if (!named)
		free(ah);
	return 0;
}

void soft_ah_abandon(struct soft_object *object)
{
	struct soft_ah *ah = object->public;

	leave_ah(ah);
	/* The program's, like the other structs that it left behind. */
	ah->destroyed = false;
}
