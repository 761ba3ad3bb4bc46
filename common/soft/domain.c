/* SPDX-License-Identifier: MIT */
/*
 * Thread domains and parent domains.
 *
 * A parent domain gives the protection of the PD it was made of: objects of
 * the one and of the other go together. Its thread domain is the program's
 * promise to use objects from one thread at a time; soft0 has no use for it,
 * and its locks are taken all the same. Allocators give the memory of the
 * queues of QPs, SRQs and extended CQs that are made with it (array.c).
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

struct ibv_td *soft_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *init)
{
	struct soft_td *td;
	int err;

	if (init && init->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	soft_enter();
	if (soft_find(context, SOFT_CONTEXT, "ibv_alloc_td"))
		err = soft_object_add(&td->object, SOFT_TD, td,
				      soft_context_of(context));
	else
		err = errno;
	soft_leave();
	if (err) {
		free(td);
		errno = err;
		return NULL;
	}
	return &td->td;
}

int soft_dealloc_td(struct ibv_td *public)
{
	struct soft_td *td;
	int err = 0;

	soft_enter();
	td = soft_find(public, SOFT_TD, "ibv_dealloc_td");
	if (!td)
		err = errno;
	else if (td->refs)
		err = EBUSY;
	else
		soft_object_remove(&td->object);
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	free(td);
	return 0;
}

void soft_td_abandon(struct soft_object *object)
{
	soft_object_remove(object);
}

/* Under soft_lock. */
static int enter_domain(struct soft_pd *domain,
			const struct ibv_parent_domain_init_attr *init)
{
	struct ibv_context *context = domain->pd.context;
	struct soft_td *td = NULL;
	struct soft_pd *pd;
	int err;

	if (!soft_find(context, SOFT_CONTEXT, "ibv_alloc_parent_domain"))
		return errno;
	pd = soft_find(init->pd, SOFT_PD, "ibv_alloc_parent_domain");
	if (!pd)
		return errno;
	if (init->td) {
		td = soft_find(init->td, SOFT_TD, "ibv_alloc_parent_domain");
		if (!td)
			return errno;
	}
	/* A parent domain is made of a PD, not of another one. */
	if (pd->pd.context != context || pd->real != pd ||
	    (td && td->td.context != context))
		return EINVAL;
	err = soft_object_add(&domain->object, SOFT_PD, domain,
			      soft_context_of(context));
	if (err)
		return err;
	domain->real = pd;
	if (init->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		domain->alloc = init->alloc;
		domain->free = init->free;
	}
	if (init->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		domain->context = init->pd_context;
	domain->td = td;
	pd->refs++;
	if (td)
		td->refs++;
	return 0;
}

struct ibv_pd *
soft_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *init)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct soft_pd *domain;
	int err;

	if (init->comp_mask & ~known ||
	    (init->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	     (!init->alloc || !init->free))) {
		errno = EINVAL;
		return NULL;
	}
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return NULL;
	domain->pd.context = context;
	soft_enter();
	err = enter_domain(domain, init);
	soft_leave();
	if (err) {
		free(domain);
		errno = err;
		return NULL;
	}
	return &domain->pd;
}
