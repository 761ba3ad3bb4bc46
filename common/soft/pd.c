/* SPDX-License-Identifier: MIT */
/*
 * Protection domains.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

SOFT_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct soft_context *soft;
	struct soft_pd *pd;
	int err = ENOENT;

	if (soft_foreign(context))
		return SOFT_REAL(ibv_alloc_pd)(context);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->pd.context = context;
	pd->real = pd;
	soft_enter();
	if (!soft_find(context, SOFT_CONTEXT, "ibv_alloc_pd")) {
		err = errno;
		goto refused;
	}
	soft = soft_context_of(context);
	err = soft_object_add(&pd->object, SOFT_PD, pd, soft);
	if (err)
		goto refused;
	soft_leave();
	return &pd->pd;

refused:
	soft_leave();
	free(pd);
	errno = err;
	return NULL;
}

static void leave_pd(struct soft_pd *pd)
{
	if (pd->real != pd)
		pd->real->refs--;
	if (pd->td)
		pd->td->refs--;
	soft_object_remove(&pd->object);
}

SOFT_EXPORT int ibv_dealloc_pd(struct ibv_pd *public)
{
	struct soft_pd *pd;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_dealloc_pd)(public);
	soft_enter();
	pd = soft_find(public, SOFT_PD, "ibv_dealloc_pd");
	if (!pd)
		err = errno;
	else if (pd->refs)
		err = EBUSY;
	else
		leave_pd(pd);
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	free(pd);
	return 0;
}

/* Of those left behind in any order: the structs stay the program's. */
void soft_pd_abandon(struct soft_object *object)
{
	leave_pd(object->public);
}
