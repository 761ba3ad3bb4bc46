/* SPDX-License-Identifier: MIT */
/*
 * Memory regions: registration with the kernel's checks, and the check of
 * every access that the engine makes.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

#include "common/soft/pages.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* ib_access_writable(): what makes registering ask for writable memory. */
#define WRITABLE                                            \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ELSEWHERE \
	(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB)
#define KNOWN                                                               \
	(IBV_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE | IBV_ACCESS_MW_BIND | \
	 ELSEWHERE | SOFT_ACCESS_FLUSH_GLOBAL | SOFT_ACCESS_FLUSH_PERSISTENT)

/* The kernel's ib_check_mr_access(), then what rxe's driver refuses. */
int soft_mr_check_access(unsigned int access)
{
	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	if (access & NEEDS_LOCAL_WRITE && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (access & ~KNOWN)
		return EINVAL;
	if (access & ELSEWHERE)
		return EOPNOTSUPP;
	/* It is for persistent memory, and ordinary RAM is none. */
	if (access & SOFT_ACCESS_FLUSH_PERSISTENT)
		return EINVAL;
	return 0;
}

/* The kernel's ib_umem_get(); what it charges is in *pages. */
int soft_mr_get_memory(uintptr_t addr, size_t length, unsigned int access,
		       size_t *pages)
{
	int err;

	if (addr + length < addr || addr + length > UINTPTR_MAX - 4095)
		return EINVAL;
	*pages = soft_pages_count(addr, length);
	err = soft_pages_charge(*pages);
	/* Length 0 at a page's start; EPERM comes before it. */
	if (!*pages && err != EPERM)
		err = EINVAL;
	if (err)
		return err;
	err = soft_pages_check(addr, length, access & WRITABLE);
	if (err)
		soft_pages_uncharge(*pages);
	return err;
}

struct soft_mr *soft_mr_find(uint32_t key)
{
	struct soft_object *object = soft_key_find(key);
	struct soft_mr *mr;

	if (!object || object->type != SOFT_MR)
		return NULL;
	mr = object->public;
	return mr->key == key ? mr : NULL;
}

enum soft_access soft_mr_access(const struct ibv_pd *pd, uint32_t key,
				uint64_t addr, uint64_t length,
				unsigned int access, void **place)
{
	const struct soft_mr *mr = soft_mr_find(key);
	uint64_t offset;

	if (!mr || !soft_same_pd(mr->mr.pd, pd))
		return SOFT_ACCESS_KEY;
	if (access & ~mr->access)
		return SOFT_ACCESS_RIGHTS;
	/* Below the MR's start the offset wraps and is too large. */
	offset = addr - mr->iova;
	if (offset > mr->mr.length || length > mr->mr.length - offset)
		return SOFT_ACCESS_RANGE;
	*place = (char *)mr->memory + offset;
	return SOFT_ACCESS_OK;
}

int soft_mr_enter(struct soft_mr *mr, struct soft_pd *pd)
{
	int err = soft_key_add(&mr->object, &mr->key);

	if (err)
		return err;
	mr->mr.lkey = mr->mr.rkey = mr->key;
	err = soft_object_add(&mr->object, SOFT_MR, mr, pd->object.context);
	if (err)
		soft_key_remove(mr->key);
	else
		pd->refs++;
	return err;
}

/* Under soft_lock, when access and iova have been checked. */
static int enter_mr(struct soft_mr *mr, struct soft_pd *pd)
{
	int err = soft_mr_get_memory((uintptr_t)mr->mr.addr, mr->mr.length,
				     mr->access, &mr->pages);

	if (err)
		return err;
	mr->memory = mr->mr.addr;
	err = soft_mr_enter(mr, pd);
	if (err)
		soft_pages_uncharge(mr->pages);
	return err;
}

static struct ibv_mr *register_mr(struct ibv_pd *public, void *addr,
				  size_t length, uint64_t iova,
				  unsigned int access, const char *verb)
{
	struct soft_pd *pd;
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	int err = 0;

	if (!mr)
		return NULL;
	soft_enter();
	pd = soft_find(public, SOFT_PD, verb);
	if (!pd)
		err = errno;
	else if (((uintptr_t)addr ^ iova) & 4095)
		err = EINVAL;
	if (!err)
		err = soft_mr_check_access(access);
	if (!err) {
		mr->mr.context = public->context;
		mr->mr.pd = public;
		mr->mr.addr = addr;
		mr->mr.length = length;
		mr->access = access & ~IBV_ACCESS_OPTIONAL_RANGE;
		mr->iova = iova;
		err = enter_mr(mr, pd);
	}
	soft_leave();
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->mr;
}

SOFT_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
				      size_t length, int access)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_reg_mr)(pd, addr, length, access);
	return register_mr(pd, addr, length, (uintptr_t)addr, access,
			   "ibv_reg_mr");
}

SOFT_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					   size_t length, uint64_t iova,
					   int access)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_reg_mr_iova)(pd, addr, length, iova,
						  access);
	return register_mr(pd, addr, length, iova, access, "ibv_reg_mr_iova");
}

SOFT_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					    size_t length, uint64_t iova,
					    unsigned int access)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_reg_mr_iova2)(pd, addr, length, iova,
						   access);
	return register_mr(pd, addr, length, iova, access, "ibv_reg_mr_iova2");
}

static void leave_mr(struct soft_mr *mr)
{
	((struct soft_pd *)mr->mr.pd)->refs--;
	soft_key_remove(mr->key);
	if (mr->dm)
		mr->dm->refs--;
	soft_pages_uncharge(mr->pages);
	soft_object_remove(&mr->object);
}

SOFT_EXPORT int ibv_dereg_mr(struct ibv_mr *public)
{
	struct soft_mr *mr;
	int err = 0;

	if (soft_foreign(public))
		return SOFT_REAL(ibv_dereg_mr)(public);
	soft_enter();
	mr = soft_find(public, SOFT_MR, "ibv_dereg_mr");
	if (!mr)
		err = errno;
	else if (mr->refs)
		err = EINVAL; /* a window is bound: the driver's word */
	else
		leave_mr(mr);
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	free(mr);
	return 0;
}

void soft_mr_abandon(struct soft_object *object)
{
	leave_mr((struct soft_mr *)object->public);
}
