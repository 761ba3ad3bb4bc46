/* SPDX-License-Identifier: MIT */
/*
 * Extended QPs: work requests that are built call by call. Nothing reaches
 * the device before ibv_wr_complete(), so that is the event, with all that
 * was built since ibv_wr_start() as its list; ibv_wr_abort() is one too.
 *
 * From wr_start to wr_complete the QP is one thread's (ibv_wr_post(3)), and
 * so is its batch. wr_complete gives the QP away, so the thread takes the
 * batch with it, and leaves the one that it took the time before.
 */
#include "data_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What no line has room for need not be kept. */
#define WRS_MAX  256
#define SGES_MAX 1024

struct qp_ex {
	struct wrapped wrapped; /* first: wrapped.c allocates it */
	struct batch *batch;
	struct ibv_qp_ex real; /* for its pointers */
};

static inline struct qp_ex *saved_of(const struct ibv_qp_ex *ex)
{
	return (struct qp_ex *)wrapped_find(RULES_QP, ex);
}

/* --- the batch ------------------------------------------------------------ */

void batch_free(struct batch *batch)
{
	if (!batch)
		return;
	free(batch->wr);
	free(batch->sge);
	free(batch);
}

/* Room for one more of `size` bytes. errno stays the program's. */
static bool room(void **items, size_t used, size_t *have, size_t size,
		 size_t most)
{
	size_t more = *have ? *have * 2 : 4;
	int err = errno;
	void *grown;

	if (LIKELY(used < *have))
		return true;
	if (used >= most)
		return false;
	grown = realloc(*items, more * size);
	errno = err;
	if (!grown)
		return false;
	*items = grown;
	*have = more;
	return true;
}

static void empty(struct batch *batch)
{
	if (!batch)
		return;
	batch->wrs = batch->sges = 0;
	batch->more = 0;
	batch->open = false;
}

static void batch_start(struct qp_ex *qp)
{
	int err = errno;

	if (!qp->batch)
		qp->batch = calloc(1, sizeof(*qp->batch));
	errno = err;
	empty(qp->batch);
}

/* A new WR, for the builder to fill; into `none` where it can't be kept. */
static struct ibv_send_wr *add(struct qp_ex *qp, const struct ibv_qp_ex *ex,
			       enum ibv_wr_opcode opcode,
			       struct ibv_send_wr *none)
{
	struct batch *batch = qp->batch;
	struct batch_wr *new;

	if (!batch)
		return none;
	batch->open = room((void **)&batch->wr, batch->wrs, &batch->wr_room,
			   sizeof(*batch->wr), WRS_MAX);
	if (!batch->open) {
		batch->more++;
		return none;
	}
	new = &batch->wr[batch->wrs++];
	new->wr.wr_id = ex->wr_id;
	new->wr.opcode = opcode;
	new->wr.send_flags = ex->wr_flags;
	new->wr.num_sge = 0;
	new->sge = new->sges = 0;
	new->inlined = false;
	return &new->wr;
}

/* The WR that a setter means, or NULL. */
static struct batch_wr *last(struct qp_ex *qp)
{
	struct batch *batch = qp->batch;

	return batch && batch->open ? &batch->wr[batch->wrs - 1] : NULL;
}

static void add_sge(struct qp_ex *qp, struct batch_wr *to, uint64_t addr,
		    size_t length, uint32_t lkey)
{
	struct batch *batch = qp->batch;

	if (!room((void **)&batch->sge, batch->sges, &batch->sge_room,
		  sizeof(*batch->sge), SGES_MAX))
		return;
	if (!to->sges++)
		to->sge = batch->sges;
	batch->sge[batch->sges++] = (struct ibv_sge){
		.addr = addr,
		.length = (uint32_t)length,
		.lkey = lkey,
	};
}

/* A setter gives the WR its data: `count` pieces, in place of any before. */
static void set_data(struct batch_wr *to, size_t count, bool inlined)
{
	to->wr.num_sge = count > INT32_MAX ? INT32_MAX : (int)count;
	to->sges = 0;
	to->inlined = inlined;
}

/* --- builders: the device's own, and noted -------------------------------- */

/*
 * BUILDER(name, opcode, (parameters), (arguments)) { fills `wr` }: the body
 * is what it notes besides.
 */
#define BUILDER(name, op, parameters, arguments, fill) \
	static void name parameters                    \
	{                                              \
		struct qp_ex *qp = saved_of(ex);       \
		struct ibv_send_wr none, *wr;          \
                                                       \
		if (!qp)                               \
			return;                        \
		wr = add(qp, ex, op, &none);           \
		fill;                                  \
		(void)wr;                              \
		qp->real.name arguments;               \
	}
#define REMOTE(key, address) \
	(wr->wr.rdma.rkey = (key), wr->wr.rdma.remote_addr = (address))

BUILDER(wr_send, IBV_WR_SEND, (struct ibv_qp_ex * ex), (ex), )
BUILDER(wr_send_imm, IBV_WR_SEND_WITH_IMM,
	(struct ibv_qp_ex * ex, __be32 imm_data), (ex, imm_data),
	wr->imm_data = imm_data)
BUILDER(wr_send_inv, IBV_WR_SEND_WITH_INV,
	(struct ibv_qp_ex * ex, uint32_t invalidate_rkey),
	(ex, invalidate_rkey), wr->invalidate_rkey = invalidate_rkey)
BUILDER(wr_local_inv, IBV_WR_LOCAL_INV,
	(struct ibv_qp_ex * ex, uint32_t invalidate_rkey),
	(ex, invalidate_rkey), wr->invalidate_rkey = invalidate_rkey)
BUILDER(wr_send_tso, IBV_WR_TSO,
	(struct ibv_qp_ex * ex, void *hdr, uint16_t hdr_sz, uint16_t mss),
	(ex, hdr, hdr_sz, mss),
	(wr->tso.hdr = hdr, wr->tso.hdr_sz = hdr_sz, wr->tso.mss = mss))
BUILDER(wr_rdma_read, IBV_WR_RDMA_READ,
	(struct ibv_qp_ex * ex, uint32_t rkey, uint64_t remote_addr),
	(ex, rkey, remote_addr), REMOTE(rkey, remote_addr))
BUILDER(wr_rdma_write, IBV_WR_RDMA_WRITE,
	(struct ibv_qp_ex * ex, uint32_t rkey, uint64_t remote_addr),
	(ex, rkey, remote_addr), REMOTE(rkey, remote_addr))
BUILDER(wr_rdma_write_imm, IBV_WR_RDMA_WRITE_WITH_IMM,
	(struct ibv_qp_ex * ex, uint32_t rkey, uint64_t remote_addr,
	 __be32 imm_data),
	(ex, rkey, remote_addr, imm_data),
	(REMOTE(rkey, remote_addr), wr->imm_data = imm_data))
BUILDER(wr_atomic_cmp_swp, IBV_WR_ATOMIC_CMP_AND_SWP,
	(struct ibv_qp_ex * ex, uint32_t rkey, uint64_t remote_addr,
	 uint64_t compare, uint64_t swap),
	(ex, rkey, remote_addr, compare, swap),
	(wr->wr.atomic.rkey = rkey, wr->wr.atomic.remote_addr = remote_addr,
	 wr->wr.atomic.compare_add = compare, wr->wr.atomic.swap = swap))
BUILDER(wr_atomic_fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD,
	(struct ibv_qp_ex * ex, uint32_t rkey, uint64_t remote_addr,
	 uint64_t add_value),
	(ex, rkey, remote_addr, add_value),
	(wr->wr.atomic.rkey = rkey, wr->wr.atomic.remote_addr = remote_addr,
	 wr->wr.atomic.compare_add = add_value, wr->wr.atomic.swap = 0))
BUILDER(wr_bind_mw, IBV_WR_BIND_MW,
	(struct ibv_qp_ex * ex, struct ibv_mw *mw, uint32_t rkey,
	 const struct ibv_mw_bind_info *bind_info),
	(ex, mw, rkey, bind_info),
	(wr->bind_mw.mw = mw, wr->bind_mw.rkey = rkey,
	 wr->bind_mw.bind_info = *bind_info))

/* --- setters: of the last WR ---------------------------------------------- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch_wr *to = qp ? last(qp) : NULL;

	if (to) {
		to->wr.wr.ud.ah = ah;
		to->wr.wr.ud.remote_qpn = remote_qpn;
		to->wr.wr.ud.remote_qkey = remote_qkey;
	}
	if (qp)
		qp->real.wr_set_ud_addr(ex, ah, remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch_wr *to = qp ? last(qp) : NULL;

	if (to)
		to->wr.qp_type.xrc.remote_srqn = remote_srqn;
	if (qp)
		qp->real.wr_set_xrc_srqn(ex, remote_srqn);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch_wr *to = qp ? last(qp) : NULL;

	if (to) {
		set_data(to, 1, false);
		add_sge(qp, to, addr, length, lkey);
	}
	if (qp)
		qp->real.wr_set_sge(ex, lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch_wr *to = qp ? last(qp) : NULL;

	if (to) {
		set_data(to, num_sge, false);
		for (size_t i = 0; i < num_sge && i < SGES_MAX; i++)
			add_sge(qp, to, sg_list[i].addr, sg_list[i].length,
				sg_list[i].lkey);
	}
	if (qp)
		qp->real.wr_set_sge_list(ex, num_sge, sg_list);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch_wr *to = qp ? last(qp) : NULL;

	if (to) {
		set_data(to, 1, true);
		add_sge(qp, to, (uintptr_t)addr, length, 0);
	}
	if (qp)
		qp->real.wr_set_inline_data(ex, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch_wr *to = qp ? last(qp) : NULL;

	if (to) {
		set_data(to, num_buf, true);
		for (size_t i = 0; i < num_buf && i < SGES_MAX; i++)
			add_sge(qp, to, (uintptr_t)buf_list[i].addr,
				buf_list[i].length, 0);
	}
	if (qp)
		qp->real.wr_set_inline_data_list(ex, num_buf, buf_list);
}

/* --- from start to end ---------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct qp_ex *qp = saved_of(ex);

	if (!qp)
		return;
	qp->real.wr_start(ex);
	/* Now the QP is this thread's. */
	if (probe_mode > MODE_ENDING)
		batch_start(qp);
}

/* The batch of a QP that is this thread's still, but not for long. */
static struct batch *take(struct qp_ex *qp)
{
	struct thread *thread = probe_mode > MODE_ENDING ? thread_get() : NULL;
	struct batch *batch = qp->batch;

	if (!thread || thread->depth)
		return NULL;
	qp->batch = thread->batch;
	thread->batch = batch;
	empty(qp->batch);
	return batch;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch *batch;

	if (!qp)
		return EINVAL;
	batch = take(qp);
	DATA_PATH(ibv_wr_complete, qp->real.wr_complete(ex), ex, batch, NULL);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct qp_ex *qp = saved_of(ex);
	struct batch *batch;
	int ret;

	if (!qp)
		return;
	batch = take(qp);
	DATA_CALL(ret, ibv_wr_abort, (qp->real.wr_abort(ex), 0), ex, batch,
		  NULL);
	(void)ret;
}

/* --- wrapping ------------------------------------------------------------- */

/*
 * All pointers up to here; those that newer headers add behind them stay the
 * device's own.
 */
#define POINTERS offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp)
#define POINTERS_END                            \
	(offsetof(struct ibv_qp_ex, wr_abort) + \
	 sizeof(((struct ibv_qp_ex *)NULL)->wr_abort))

/* A device has only those that the QP was created for. */
#define REPLACE(name)                    \
	do {                             \
		if (ex->name)            \
			ex->name = name; \
	} while (0)

static void replace(struct ibv_qp_ex *ex)
{
	REPLACE(wr_atomic_cmp_swp);
	REPLACE(wr_atomic_fetch_add);
	REPLACE(wr_bind_mw);
	REPLACE(wr_local_inv);
	REPLACE(wr_rdma_read);
	REPLACE(wr_rdma_write);
	REPLACE(wr_rdma_write_imm);
	REPLACE(wr_send);
	REPLACE(wr_send_imm);
	REPLACE(wr_send_inv);
	REPLACE(wr_send_tso);
	REPLACE(wr_set_ud_addr);
	REPLACE(wr_set_xrc_srqn);
	REPLACE(wr_set_inline_data);
	REPLACE(wr_set_inline_data_list);
	REPLACE(wr_set_sge);
	REPLACE(wr_set_sge_list);
	REPLACE(wr_start);
	REPLACE(wr_complete);
	REPLACE(wr_abort);
}

void qp_ex_wrap(struct ibv_qp_ex *ex)
{
	struct qp_ex *saved;

	if (!ex->wr_complete || ex->wr_complete == wr_complete)
		return;
	wrapped_lock();
	saved = (struct qp_ex *)wrapped_entry(RULES_QP, ex, sizeof(*saved));
	if (saved && ex->wr_complete != wr_complete) {
		memcpy((char *)&saved->real + POINTERS,
		       (const char *)ex + POINTERS, POINTERS_END - POINTERS);
		atomic_store_explicit(&saved->wrapped.object, ex,
				      memory_order_release);
		replace(ex);
	}
	wrapped_unlock();
}
