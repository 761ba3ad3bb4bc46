/* SPDX-License-Identifier: MIT */
/*
 * Re-registration: libibverbs' own checks (IBV_REREG_MR_ERR_INPUT), then the
 * kernel's (IBV_REREG_MR_ERR_CMD). The keys stay. A refused one changes
 * nothing, so that the MR can be used as before; other devices don't
 * promise that after ERR_CMD.
 */
#include "common/soft/object.h"

#include <errno.h>

#include "common/soft/pages.h"

/* What the MR shall be. */
struct wish {
	int flags;
	struct soft_pd *pd;
	void *addr;
	size_t length;
	unsigned int access;
};

/* ibv_rereg_mr() of libibverbs. */
static bool input_is_valid(int flags, void *addr, size_t length, int access)
{
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return false;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr))
		return false;
	return !access || flags & IBV_REREG_MR_CHANGE_ACCESS;
}

/*
 * The new memory, or the old one with more access to it. The old pages are
 * given back first: the limit counts what is there in the end.
 */
static int take_memory(struct soft_mr *mr, const struct wish *wish)
{
	size_t pages;
	int err;

	soft_pages_uncharge(mr->pages);
	err = soft_mr_get_memory((uintptr_t)wish->addr, wish->length,
				 wish->access, &pages);
	if (err) /* it was there before */
		soft_pages_recharge(mr->pages);
	else
		mr->pages = pages;
	return err;
}

static void take_pd(struct soft_mr *mr, struct soft_pd *pd)
{
	((struct soft_pd *)mr->mr.pd)->refs--;
	pd->refs++;
	mr->mr.pd = &pd->pd;
}

/* Under soft_lock. */
static int change(struct soft_mr *mr, const struct wish *wish)
{
	int err;

	/* A window looks into what would go; a DM's MR can't leave it. */
	if (!wish->flags || mr->refs || mr->dm)
		return EINVAL;
	if (wish->flags & IBV_REREG_MR_CHANGE_ACCESS) {
		err = soft_mr_check_access(wish->access);
		if (err)
			return err;
	}
	if (wish->pd && wish->pd->object.context != mr->object.context)
		return EINVAL;
	if (wish->flags & ~IBV_REREG_MR_CHANGE_PD) {
		err = take_memory(mr, wish);
		if (err)
			return err;
	}
	if (wish->pd)
		take_pd(mr, wish->pd);
	if (wish->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->mr.addr = mr->memory = wish->addr;
		mr->mr.length = wish->length;
		mr->iova = (uintptr_t)wish->addr;
	}
	mr->access = wish->access;
	return 0;
}

SOFT_EXPORT int ibv_rereg_mr(struct ibv_mr *public, int flags,
			     struct ibv_pd *pd, void *addr, size_t length,
			     int access)
{
	struct wish wish = { .flags = flags };
	struct soft_mr *mr;
	int err;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_rereg_mr)(public, flags, pd, addr, length,
					       access);
	if (!input_is_valid(flags, addr, length, access)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	soft_enter();
	mr = soft_find(public, SOFT_MR, "ibv_rereg_mr");
	if (mr && flags & IBV_REREG_MR_CHANGE_PD)
		wish.pd = soft_find(pd, SOFT_PD, "ibv_rereg_mr");
	if (!mr || (flags & IBV_REREG_MR_CHANGE_PD && !wish.pd)) {
		soft_leave();
		return IBV_REREG_MR_ERR_INPUT;
	}
	wish.access =
		flags & IBV_REREG_MR_CHANGE_ACCESS
			? (unsigned int)access & ~IBV_ACCESS_OPTIONAL_RANGE
			: mr->access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		wish.addr = addr;
		wish.length = length;
	} else {
		wish.addr = mr->memory;
		wish.length = mr->mr.length;
	}
	err = change(mr, &wish);
	soft_leave();
	if (!err)
		return 0;
	errno = err;
	return IBV_REREG_MR_ERR_CMD;
}
