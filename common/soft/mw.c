/* SPDX-License-Identifier: MIT */
/*
 * Memory windows (IBTA 10.6.6, 10.6.7): rights to a part of an MR, given and
 * taken back on the data path.
 *
 * Type 1 is for all peers of its PD; binding it to nothing closes it, and
 * each bind changes its key. Type 2 is for the peer of the QP that bound it
 * (2B); to be bound anew it must have been invalidated, by either side. An
 * MR with windows on it can't be deregistered; a window that is deallocated
 * while bound, or whose QP is destroyed, is unbound.
 *
 * A bind is checked when its turn in the queue comes (MW_BIND_ERR, and the
 * QP breaks), as on hardware; the call refuses only what is no window.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdlib.h>

#define INDEX(key) ((key) >> 8)
#define WRITES     (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* LOCAL_WRITE opens nothing to a peer, but programs ask for it. */
#define RIGHTS \
	(SOFT_ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED)

struct soft_mw *soft_mw_find(uint32_t key)
{
	struct soft_object *object = soft_key_find(key);

	return object && object->type == SOFT_MW ? object->public : NULL;
}

static void unbind(struct soft_mw *mw)
{
	if (mw->mr)
		mw->mr->refs--;
	mw->mr = NULL;
	mw->qp = NULL;
}

/* --- the verbs ---------------------------------------------------------- */

static int enter_mw(struct soft_mw *mw, struct soft_pd *pd)
{
	int err;

	if (mw->mw.type != IBV_MW_TYPE_1 && mw->mw.type != IBV_MW_TYPE_2)
		return EINVAL;
	err = soft_key_add(&mw->object, &mw->rkey);
	if (err)
		return err;
	mw->mw.rkey = mw->rkey;
	err = soft_object_add(&mw->object, SOFT_MW, mw, pd->object.context);
	if (err)
		soft_key_remove(mw->rkey);
	else
		pd->refs++;
	return err;
}

struct ibv_mw *soft_alloc_mw(struct ibv_pd *public, enum ibv_mw_type type)
{
	struct soft_mw *mw = calloc(1, sizeof(*mw));
	struct soft_pd *pd;
	int err;

	if (!mw)
		return NULL;
	soft_enter();
	pd = soft_find(public, SOFT_PD, "ibv_alloc_mw");
	err = pd ? 0 : errno;
	if (!err) {
		mw->mw.context = public->context;
		mw->mw.pd = public;
		mw->mw.type = type;
		err = enter_mw(mw, pd);
	}
	soft_leave();
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	return &mw->mw;
}

static void leave_mw(struct soft_mw *mw)
{
	unbind(mw);
	((struct soft_pd *)mw->mw.pd)->refs--;
	soft_key_remove(mw->rkey);
	soft_object_remove(&mw->object);
}

int soft_dealloc_mw(struct ibv_mw *public)
{
	struct soft_mw *mw;
	int err = 0;

	soft_enter();
	mw = soft_find(public, SOFT_MW, "ibv_dealloc_mw");
	if (mw)
		leave_mw(mw);
	else
		err = errno;
	soft_leave();
	if (err) {
		errno = err;
		return err;
	}
	free(mw);
	return 0;
}

void soft_mw_abandon(struct soft_object *object)
{
	leave_mw(object->public);
}

/* Type 1: the header's inline function has checked type and PDs. */
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = bind->bind_info },
	};
	int err;

	if (!soft_find(qp, SOFT_QP, "ibv_bind_mw") ||
	    !soft_find(mw, SOFT_MW, "ibv_bind_mw"))
		return errno;
	err = soft_post_list((struct soft_qp *)qp, &wr, &bad, SOFT_POST_TYPE_1);
	/* Before its completion: what is posted behind it may use the key. */
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* --- the data path ------------------------------------------------------ */

/*
 * May this part of this MR be opened like that (C10-73 to C10-75)? The MR
 * can't change or go as long as the window is bound.
 */
static bool may_open(const struct soft_mr *mr, const struct soft_wqe *wqe)
{
	uint64_t length = wqe->compare_add;
	uint64_t offset = wqe->remote_addr - mr->iova;
	unsigned int access = (unsigned int)wqe->swap;

	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return false;
	if (access & WRITES && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	return offset <= mr->mr.length && length <= mr->mr.length - offset;
}

static bool bind(struct soft_qp *qp, const struct soft_wqe *wqe)
{
	struct soft_mw *mw = soft_mw_find(wqe->mw_key);
	struct soft_mr *mr = wqe->mr_key ? soft_mr_find(wqe->mr_key) : NULL;
	uint64_t length = wqe->compare_add;
	unsigned int access = (unsigned int)wqe->swap;
	bool one;

	if (!mw || INDEX(wqe->rkey) != INDEX(mw->rkey) ||
	    !soft_same_pd(mw->mw.pd, qp->qp.pd) || access & ~RIGHTS)
		return false;
	one = mw->mw.type == IBV_MW_TYPE_1;
	/* Only type 1 may be bound again, or to nothing (o10-37.2.30, .40). */
	if (!one && (mw->mr || !length))
		return false;
	if (one && access & IBV_ACCESS_ZERO_BASED)
		return false;
	if (length &&
	    (!mr || !soft_same_pd(mr->mr.pd, mw->mw.pd) || !may_open(mr, wqe)))
		return false;
	unbind(mw);
	mw->rkey = wqe->rkey;
	if (!length)
		return true;
	mw->mr = mr;
	mr->refs++;
	mw->addr = wqe->remote_addr;
	mw->length = length;
	mw->access = access;
	mw->qp = one ? NULL : qp;
	return true;
}

bool soft_mw_invalidate(const struct soft_qp *qp, uint32_t rkey)
{
	struct soft_mw *mw = soft_mw_find(rkey);

	if (!mw || mw->rkey != rkey || mw->mw.type != IBV_MW_TYPE_2 ||
	    !soft_same_pd(mw->mw.pd, qp->qp.pd))
		return false;
	/* Another QP's is none of its business. */
	if (mw->mr && mw->qp != qp)
		return false;
	unbind(mw);
	return true;
}

enum ibv_wc_status soft_mw_execute(struct soft_qp *qp,
				   const struct soft_wqe *wqe)
{
	bool done;

	if (wqe->opcode == IBV_WR_BIND_MW)
		done = bind(qp, wqe);
	else
		done = soft_mw_invalidate(qp, wqe->rkey);
	/* One status for both: IBTA's memory management operation error. */
	return done ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

void soft_mw_forget_qp(const struct soft_qp *qp)
{
	struct soft_object *object = qp->object.context->live[SOFT_MW];

	for (; object; object = object->next) {
		struct soft_mw *mw = object->public;

		if (mw->qp == qp)
			unbind(mw);
	}
}

/* A window of ours that is bound, for this QP; NULL: no such key. */
static const struct soft_mw *window_for(const struct soft_qp *qp, uint32_t key)
{
	const struct soft_mw *mw = soft_mw_find(key);

	if (!mw || mw->rkey != key || !mw->mr)
		return NULL;
	if (mw->mw.type == IBV_MW_TYPE_2)
		return mw->qp == qp ? mw : NULL;
	return soft_same_pd(mw->mw.pd, qp->qp.pd) ? mw : NULL;
}

enum soft_access soft_remote_access(const struct soft_qp *qp, uint32_t key,
				    uint64_t addr, uint64_t length,
				    unsigned int access, void **place)
{
	struct soft_object *object = soft_key_find(key);
	const struct soft_mw *mw;
	uint64_t offset;

	if (!object || object->type != SOFT_MW)
		return soft_mr_access(qp->qp.pd, key, addr, length, access,
				      place);
	mw = window_for(qp, key);
	if (!mw)
		return SOFT_ACCESS_KEY;
	if (access & ~mw->access)
		return SOFT_ACCESS_RIGHTS;
	offset = mw->access & IBV_ACCESS_ZERO_BASED ? addr : addr - mw->addr;
	if (offset > mw->length || length > mw->length - offset)
		return SOFT_ACCESS_RANGE;
	*place = (char *)mw->mr->memory + (mw->addr - mw->mr->iova) + offset;
	return SOFT_ACCESS_OK;
}
