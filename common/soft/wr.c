/* SPDX-License-Identifier: MIT */
/*
 * QPs with ibv_wr_*: work requests that are built call by call.
 *
 * From wr_start() to wr_complete() the WRs are gathered as a list, with
 * their SGEs and inline data beside it; then the list is posted as
 * ibv_post_send() posts one, with its checks, but whole or not at all. So
 * nothing of it is seen before wr_complete(), and wr_abort() only forgets.
 * What a builder or setter finds wrong is kept and said by wr_complete().
 *
 * One thread builds at a time, others wait at wr_start(). The engine never
 * does.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/soft/object.h"

struct built {
	struct ibv_send_wr wr;
	size_t data; /* where its SGEs or bytes begin */
	bool has_data;
};

/* An array that grows. */
struct array {
	void *items;
	size_t used, room;
};

struct soft_wr {
	pthread_mutex_t lock;
	uint64_t ops; /* send_ops_flags of the QP's creation */
	int err;      /* the first one since wr_start() */
	struct array built, sges, bytes;
};

static struct soft_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct soft_qp *)((char *)ex - offsetof(struct soft_qp, ex));
}

static void fail(struct soft_wr *w, int err)
{
	if (!w->err)
		w->err = err;
}

/* Room for `count` more items of `size`; NULL when memory is out. */
static void *grow(struct array *array, size_t count, size_t size)
{
	if (array->used + count > array->room) {
		size_t room = (array->used + count) * 2;
		void *items = realloc(array->items, room * size);

		if (!items)
			return NULL;
		array->items = items;
		array->room = room;
	}
	array->used += count;
	return (char *)array->items + (array->used - count) * size;
}

/* --- builders ----------------------------------------------------------- */

/* The next WR, or NULL after an error. */
static struct ibv_send_wr *begin(struct ibv_qp_ex *ex,
				 enum ibv_wr_opcode opcode, uint64_t op)
{
	struct soft_qp *qp = qp_of(ex);
	struct soft_wr *w = qp->wr;
	struct built *built;

	if (!(w->ops & op)) {
		soft_diagnose("ibv_wr_*: QP %u was not created with "
			      "send_ops_flags 0x%llx, which this one needs",
			      qp->qp.qp_num, (unsigned long long)op);
		fail(w, EINVAL);
	}
	/* More than there can ever be room for. */
	if (w->built.used >= qp->sq.max_wr)
		fail(w, ENOMEM);
	if (w->err)
		return NULL;
	built = grow(&w->built, 1, sizeof(*built));
	if (!built) {
		fail(w, ENOMEM);
		return NULL;
	}
	*built = (struct built){
		.wr = { .wr_id = ex->wr_id,
			.opcode = opcode,
			/* Inline is what the setters say it is. */
			.send_flags = ex->wr_flags & ~IBV_SEND_INLINE },
	};
	return &built->wr;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct ibv_send_wr *wr =
		begin(ex, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr =
		begin(ex, IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

static void begin_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
		       uint64_t op, uint32_t rkey, uint64_t remote_addr,
		       __be32 imm_data)
{
	struct ibv_send_wr *wr = begin(ex, opcode, op);

	if (!wr)
		return;
	wr->imm_data = imm_data;
	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	begin_rdma(ex, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, rkey,
		   remote_addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey,
		   remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM,
		   IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey, remote_addr,
		   imm_data);
}

static void begin_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
			 uint64_t op, uint32_t rkey, uint64_t remote_addr,
			 uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin(ex, opcode, op);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	begin_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP,
		     IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, rkey, remote_addr,
		     compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	begin_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD,
		     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, rkey, remote_addr,
		     add, 0);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr =
		begin(ex, IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_send_wr *wr =
		begin(ex, IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = invalidate_rkey;
}

/* Of QPs that soft0 has none of, or can't be asked for: never NULL. */
static void wr_send_tso(struct ibv_qp_ex *ex, void *header, uint16_t size,
			uint16_t mss)
{
	(void)header, (void)size, (void)mss;
	begin(ex, IBV_WR_TSO, IBV_QP_EX_WITH_TSO);
}

static void wr_unknown(struct ibv_qp_ex *ex)
{
	soft_diagnose("ibv_wr_*: soft0 has no such operation");
	fail(qp_of(ex)->wr, EOPNOTSUPP);
}

/* --- setters, for the WR begun last ------------------------------------- */

static struct built *last(struct soft_wr *w)
{
	if (!w->err && !w->built.used)
		fail(w, EINVAL); /* there is none to set it for */
	if (w->err)
		return NULL;
	return (struct built *)w->built.items + w->built.used - 1;
}

/* The same, for data, which a WR is given once. */
static struct built *last_without_data(struct soft_wr *w)
{
	struct built *built = last(w);

	if (!built)
		return NULL;
	if (built->has_data) {
		fail(w, EINVAL);
		return NULL;
	}
	built->has_data = true;
	return built;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct soft_qp *qp = qp_of(ex);
	struct built *built = last(qp->wr);

	if (!built)
		return;
	if (qp->init.qp_type != IBV_QPT_UD) {
		fail(qp->wr, EINVAL); /* the peer is the QP's own */
		return;
	}
	built->wr.wr.ud.ah = ah;
	built->wr.wr.ud.remote_qpn = remote_qpn;
	built->wr.wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	(void)remote_srqn;
	fail(qp_of(ex)->wr, EOPNOTSUPP); /* there are no XRC QPs */
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct soft_qp *qp = qp_of(ex);
	struct soft_wr *w = qp->wr;
	struct built *built = last_without_data(w);
	struct ibv_sge *sges;

	if (!built)
		return;
	if (num_sge > qp->sq.max_sge) {
		fail(w, ENOSPC);
		return;
	}
	if (!num_sge)
		return;
	built->data = w->sges.used;
	built->wr.num_sge = (int)num_sge;
	sges = grow(&w->sges, num_sge, sizeof(*sges));
	if (sges)
		memcpy(sges, sg_list, num_sge * sizeof(*sges));
	else
		fail(w, ENOMEM);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { addr, length, lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct soft_qp *qp = qp_of(ex);
	struct soft_wr *w = qp->wr;
	struct built *built = last_without_data(w);
	size_t length = 0;
	uint8_t *bytes;

	if (!built)
		return;
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > qp->sq.max_inline - length) {
			fail(w, ENOSPC);
			return;
		}
		length += buf_list[i].length;
	}
	built->data = w->bytes.used;
	built->wr.send_flags |= IBV_SEND_INLINE;
	built->wr.num_sge = (int)length; /* until the list is whole */
	if (!length)
		return;
	bytes = grow(&w->bytes, length, 1);
	if (!bytes) {
		fail(w, ENOMEM);
		return;
	}
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length)
			memcpy(bytes, buf_list[i].addr, buf_list[i].length);
		bytes += buf_list[i].length;
	}
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { addr, length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* --- from start to end -------------------------------------------------- */

static void forget(struct soft_wr *w)
{
	w->built.used = w->sges.used = w->bytes.used = 0;
	w->err = 0;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct soft_wr *w = qp_of(ex)->wr;

	pthread_mutex_lock(&w->lock);
	forget(w);
	if (soft_is_inherited(ex->qp_base.context))
		fail(w, soft_refuse_inherited("ibv_wr_start"));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct soft_wr *w = qp_of(ex)->wr;

	forget(w);
	pthread_mutex_unlock(&w->lock);
}

/* Links the WRs and their data, now that nothing moves any more. */
static int post(struct soft_qp *qp, struct soft_wr *w)
{
	struct built *built = w->built.items;
	struct ibv_sge *sges = w->sges.items;
	struct ibv_send_wr *bad;
	size_t inlines = 0;
	struct ibv_sge *sge;

	if (!w->built.used)
		return 0;
	/* One SGE for each WR with inline data. */
	sge = grow(&w->sges, w->built.used, sizeof(*sge));
	if (!sge)
		return ENOMEM;
	sges = w->sges.items;
	for (size_t i = 0; i < w->built.used; i++) {
		struct ibv_send_wr *wr = &built[i].wr;

		wr->next = i + 1 < w->built.used ? &built[i + 1].wr : NULL;
		wr->sg_list = sges + built[i].data;
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		wr->sg_list = &sge[inlines++];
		*wr->sg_list = (struct ibv_sge){
			.addr = (uintptr_t)w->bytes.items + built[i].data,
			.length = (uint32_t)wr->num_sge,
		};
		wr->num_sge = 1;
		/* A QP for inline data alone may have no SGEs at all. */
		if (!wr->sg_list->length)
			wr->num_sge = 0;
	}
	return soft_post_list(qp, &built->wr, &bad, SOFT_POST_WHOLE);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct soft_qp *qp = qp_of(ex);
	struct soft_wr *w = qp->wr;
	int err = w->err ? w->err : post(qp, w);

	forget(w);
	pthread_mutex_unlock(&w->lock);
	return err;
}

/* --- creating ----------------------------------------------------------- */

static void fill(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	/* Newer headers have more, for ops that soft0 can't be asked for. */
	for (void (**more)(struct ibv_qp_ex *) = &ex->wr_abort + 1;
	     (char *)more < (char *)(ex + 1); more++)
		*more = wr_unknown;
}

int soft_wr_init(struct soft_qp *qp, uint64_t ops)
{
	struct soft_wr *w = calloc(1, sizeof(*w));

	if (!w)
		return ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	w->ops = ops;
	qp->wr = w;
	fill(&qp->ex);
	return 0;
}

void soft_wr_fini(struct soft_qp *qp)
{
	struct soft_wr *w = qp->wr;

	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w->built.items);
	free(w->sges.items);
	free(w->bytes.items);
	free(w);
	qp->wr = NULL;
}
