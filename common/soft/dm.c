/* SPDX-License-Identifier: MIT */
/*
 * Device memory: the program copies to and from it, and registers parts of
 * it as MRs whose addresses count from 0. It is reached in pieces of four
 * bytes, as through a bus; the device has SOFTVERBS_MAX_DM bytes of it in
 * all.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN 4

static size_t allocated; /* of the process; under soft_lock */

/*
 * A forked child may use its parent's context for this: it has none of the
 * parent's device memory, but can have its own.
 */
static int check_context(struct ibv_context *context)
{
	if (soft_is_inherited(context) ||
	    soft_find(context, SOFT_CONTEXT, "ibv_alloc_dm"))
		return 0;
	return errno;
}

/* --- copying ------------------------------------------------------------ */

static int check_range(const struct soft_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return offset % GRAIN || length % GRAIN ? EINVAL : 0;
}

/* The memory, or NULL with errno set. Under soft_lock. */
static void *reach(struct ibv_dm *public, uint64_t offset, size_t length,
		   const char *verb)
{
	struct soft_dm *dm = soft_find(public, SOFT_DM, verb);
	int err = dm ? check_range(dm, offset, length) : errno;

	if (!err)
		return (char *)dm->memory + offset;
	errno = err;
	return NULL;
}

static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from,
			size_t length)
{
	void *to;

	soft_enter();
	to = reach(dm, offset, length, "ibv_memcpy_to_dm");
	if (to)
		memcpy(to, from, length);
	soft_leave();
	return to ? 0 : errno;
}

static int memcpy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset,
			  size_t length)
{
	const void *from;

	soft_enter();
	from = reach(dm, offset, length, "ibv_memcpy_from_dm");
	if (from)
		memcpy(to, from, length);
	soft_leave();
	return from ? 0 : errno;
}

/* --- allocating --------------------------------------------------------- */

/* Under soft_lock. */
static int enter_dm(struct soft_dm *dm, const struct ibv_alloc_dm_attr *attr)
{
	struct ibv_context *context = dm->dm.context;
	size_t room = soft_limits()->max_dm - allocated;
	size_t align = sizeof(void *);
	int err = check_context(context);

	if (err)
		return err;
	if (attr->comp_mask || !attr->length || attr->log_align_req > 12)
		return EINVAL;
	if (attr->length > room)
		return ENOMEM;
	if (align < (size_t)1 << attr->log_align_req)
		align = (size_t)1 << attr->log_align_req;
	err = posix_memalign(&dm->memory, align, attr->length);
	if (err)
		return err;
	memset(dm->memory, 0, attr->length);
	dm->length = attr->length;
	err = soft_object_add(&dm->object, SOFT_DM, dm,
			      (struct soft_context *)verbs_get_ctx(context));
	if (err)
		free(dm->memory);
	else
		allocated += dm->length;
	return err;
}

struct ibv_dm *soft_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	struct soft_dm *dm = calloc(1, sizeof(*dm));
	int err;

	if (!dm)
		return NULL;
	dm->dm.context = context;
	dm->dm.memcpy_to_dm = memcpy_to_dm;
	dm->dm.memcpy_from_dm = memcpy_from_dm;
	soft_enter();
	err = enter_dm(dm, attr);
	soft_leave();
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	return &dm->dm;
}

static void leave_dm(struct soft_dm *dm)
{
	allocated -= dm->length;
	soft_object_remove(&dm->object);
	free(dm->memory);
}

int soft_free_dm(struct ibv_dm *public)
{
	struct soft_dm *dm;
	int err = 0;

	soft_enter();
	dm = soft_find(public, SOFT_DM, "ibv_free_dm");
	if (!dm)
		err = errno;
	else if (dm->refs)
		err = EBUSY;
	else
		leave_dm(dm);
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	free(dm);
	return 0;
}

void soft_dm_abandon(struct soft_object *object)
{
	leave_dm(object->public);
}

void soft_dms_forget(void)
{
	allocated = 0;
}

/* --- registering -------------------------------------------------------- */

/* Under soft_lock. */
static int enter_dm_mr(struct soft_mr *mr, struct ibv_pd *public,
		       struct ibv_dm *public_dm, uint64_t offset)
{
	struct soft_pd *pd = soft_find(public, SOFT_PD, "ibv_reg_dm_mr");
	struct soft_dm *dm;
	int err;

	if (!pd)
		return errno;
	dm = soft_find(public_dm, SOFT_DM, "ibv_reg_dm_mr");
	if (!dm)
		return errno;
	if (dm->dm.context != public->context)
		return EINVAL;
	/* Addresses that are none of the program's must be zero-based. */
	if (!(mr->access & IBV_ACCESS_ZERO_BASED))
		return EINVAL;
	mr->access &= ~IBV_ACCESS_ZERO_BASED;
	err = soft_mr_check_access(mr->access);
	if (!err)
		err = check_range(dm, offset, mr->mr.length) ? EINVAL : 0;
	if (err)
		return err;
	mr->memory = (char *)dm->memory + offset;
	err = soft_mr_enter(mr, pd);
	if (err)
		return err;
	mr->dm = dm;
	dm->refs++;
	return 0;
}

struct ibv_mr *soft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return NULL;
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.length = length;
	mr->access = access & ~IBV_ACCESS_OPTIONAL_RANGE;
	soft_enter();
	err = enter_dm_mr(mr, pd, dm, offset);
	soft_leave();
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->mr;
}
