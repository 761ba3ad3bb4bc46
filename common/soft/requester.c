/* SPDX-License-Identifier: MIT */
/*
 * The requester's sending half: turns the send queue's WQEs into packets and
 * completes them (IBTA 9.7.2, 9.9.2). Answers are in answers.c.
 *
 * A READ longer than one run of packets is asked for in pieces, each with a
 * RETH of its own, as a retry from its middle would be: no answer then keeps
 * the engine for longer than a run does. WQEs complete in order; what goes
 * wrong with one is told when it is the oldest.
 */
#include "common/soft/engine.h"

#include <stdlib.h>
#include <string.h>

bool soft_sge_memory(const struct ibv_pd *pd, const struct soft_wqe *wqe,
		     uint64_t offset, uint64_t length, unsigned int access,
		     struct iovec *part, int *parts)
{
	*parts = 0;
	for (int i = 0; i < wqe->num_sge && length; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];
		uint64_t n = sge->length;
		void *place;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n -= offset;
		if (n > length)
			n = length;
		if (soft_mr_access(pd, sge->lkey, sge->addr + offset, n, access,
				   &place) != SOFT_ACCESS_OK)
			return false;
		part[(*parts)++] = (struct iovec){ place, n };
		length -= n;
		offset = 0;
	}
	return !length;
}

void soft_ah_put(struct soft_ah *ah)
{
	if (!__atomic_sub_fetch(&ah->refs, 1, __ATOMIC_ACQ_REL) &&
	    ah->destroyed)
		free(ah);
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

void soft_send_complete(struct soft_engine_qp *eq, enum ibv_wc_status status)
{
	struct soft_qp *qp = eq->qp;
	struct soft_wqe *wqe = soft_send_oldest(eq);
	struct ibv_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.qp_num = qp->qp.qp_num,
	};

	if (status == IBV_WC_SUCCESS) {
		wc.opcode = wc_opcode(wqe->opcode);
		if (soft_wqe_wants_response(wqe))
			wc.byte_len = soft_wqe_is_atomic(wqe) ? 8 : wqe->length;
	}
	if (wqe->ah)
		soft_ah_put(wqe->ah);
	wqe->ah = NULL;
	eq->unreported++;
	qp->sq.head++;
	if (status == IBV_WC_SUCCESS && !(wqe->flags & IBV_SEND_SIGNALED))
		return;
	soft_cq_push(soft_cq_of(qp->init.send_cq), &wc, false, qp,
		     eq->unreported);
	eq->unreported = 0;
}

void soft_send_fail(struct soft_engine_qp *eq, enum ibv_wc_status status)
{
	soft_send_complete(eq, status);
	soft_qp_error(eq);
}

void soft_requester_flush(struct soft_engine_qp *eq)
{
	while (eq->qp->sq.head != soft_wq_tail(&eq->qp->sq))
		soft_send_complete(eq, IBV_WC_WR_FLUSH_ERR);
	eq->current = eq->begun = eq->qp->sq.head;
	eq->offset = 0;
	eq->reads = 0;
}

void soft_requester_discard(struct soft_engine_qp *eq)
{
	struct soft_wq *sq = &eq->qp->sq;

	for (; sq->head != soft_wq_tail(sq); sq->head++) {
		struct soft_wqe *wqe = soft_wq_at(sq, sq->head);

		if (wqe->ah)
			soft_ah_put(wqe->ah);
		wqe->ah = NULL;
	}
	eq->current = eq->begun = sq->head;
	eq->offset = 0;
}

/* --- sending ------------------------------------------------------------ */

static void fill_packet(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct soft_qp *qp = eq->qp;

	memset(p, 0, offsetof(struct soft_packet, part));
	p->service = soft_service_of(qp);
	p->mtu = soft_path_mtu(qp);
	p->dest_qpn = qp->attr.dest_qp_num;
	p->sgid = soft_gid();
	p->dgid = qp->attr.ah_attr.grh.dgid;
	p->psn = eq->next_psn;
	p->count = 1;
	p->first = p->last = true;
	p->ack_req = p->service == SOFT_RC;
}

/* What a WQE may not be, found when its turn comes (semantics: status). */
static enum ibv_wc_status check_wqe(const struct soft_qp *qp,
				    const struct soft_wqe *wqe)
{
	if (wqe->length > SOFT_MAX_MESSAGE)
		return IBV_WC_LOC_LEN_ERR;
	if (soft_wqe_wants_response(wqe) && !qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	if (qp->init.qp_type != IBV_QPT_UD)
		return IBV_WC_SUCCESS;
	if (wqe->ah->destroyed || !soft_same_pd(wqe->ah->ah.pd, qp->qp.pd))
		return IBV_WC_LOC_QP_OP_ERR;
	if (wqe->length > soft_path_mtu(qp))
		return IBV_WC_LOC_LEN_ERR;
	return IBV_WC_SUCCESS;
}

/* How much of the current WQE goes into the next run. */
static uint32_t run_length(const struct soft_engine_qp *eq,
			   const struct soft_wqe *wqe, uint32_t mtu)
{
	uint32_t left = wqe->length - eq->offset;
	uint32_t most = SOFT_RUN_BYTES / mtu * mtu;

	return left < most ? left : most;
}

static bool fill_payload(struct soft_engine_qp *eq, const struct soft_wqe *wqe,
			 struct soft_packet *p)
{
	if (wqe->flags & IBV_SEND_INLINE) {
		p->part[0] = (struct iovec){ wqe->inline_data + eq->offset,
					     p->length };
		p->parts = 1;
		p->ours = true;
		return true;
	}
	return soft_sge_memory(eq->qp->qp.pd, wqe, eq->offset, p->length, 0,
			       p->part, &p->parts);
}

/* A run of a SEND or WRITE. False: local memory is not what it says. */
static bool fill_data(struct soft_engine_qp *eq, const struct soft_wqe *wqe,
		      struct soft_packet *p)
{
	bool write = wqe->opcode == IBV_WR_RDMA_WRITE ||
		     wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	p->op = write ? SOFT_OP_WRITE : SOFT_OP_SEND;
	p->length = run_length(eq, wqe, p->mtu);
	p->first = !eq->offset;
	p->last = eq->offset + p->length == wqe->length;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->dma_length = wqe->length;
	p->imm = wqe->imm;
	p->has_imm = p->last && (wqe->opcode == IBV_WR_SEND_WITH_IMM ||
				 wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
	p->invalidate = p->last && wqe->opcode == IBV_WR_SEND_WITH_INV;
	p->solicited = p->last && (wqe->flags & IBV_SEND_SOLICITED);
	return fill_payload(eq, wqe, p);
}

static void fill_read(struct soft_engine_qp *eq, const struct soft_wqe *wqe,
		      struct soft_packet *p)
{
	p->op = SOFT_OP_READ;
	p->va = wqe->remote_addr + eq->offset;
	p->rkey = wqe->rkey;
	p->dma_length = run_length(eq, wqe, p->mtu);
	p->count = soft_packets(p->dma_length, p->mtu);
	p->last = eq->offset + p->dma_length == wqe->length;
}

static void fill_atomic(const struct soft_wqe *wqe, struct soft_packet *p)
{
	bool swap = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	p->op = swap ? SOFT_OP_CMP_SWAP : SOFT_OP_FETCH_ADD;
	p->va = wqe->remote_addr;
	p->rkey = wqe->rkey;
	p->swap_add = swap ? wqe->swap : wqe->compare_add;
	p->compare = wqe->compare_add;
}

static void fill_datagram(const struct soft_qp *qp, const struct soft_wqe *wqe,
			  struct soft_packet *p)
{
	p->dest_qpn = wqe->remote_qpn;
	p->dgid = wqe->ah->attr.grh.dgid;
	p->src_qpn = qp->qp.qp_num;
	/* The high bit asks for the QP's own (IBTA 10.2.5). */
	p->qkey = wqe->remote_qkey & 0x80000000 ? qp->attr.qkey
						: wqe->remote_qkey;
}

static bool fill(struct soft_engine_qp *eq, const struct soft_wqe *wqe,
		 struct soft_packet *p)
{
	fill_packet(eq, p);
	if (soft_wqe_is_atomic(wqe)) {
		fill_atomic(wqe, p);
		return true;
	}
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		fill_read(eq, wqe, p);
		return true;
	}
	if (!fill_data(eq, wqe, p))
		return false;
	p->count = soft_packets(p->length, p->mtu);
	if (p->service == SOFT_UD)
		fill_datagram(eq->qp, wqe, p);
	return true;
}

/* Forward over the run that is about to go. */
static void advance(struct soft_engine_qp *eq, const struct soft_wqe *wqe,
		    const struct soft_packet *p)
{
	eq->next_psn = (eq->next_psn + p->count) & SOFT_PSN_MASK;
	if (eq->begun == eq->current)
		eq->begun++;
	if (p->last) {
		eq->current++;
		eq->offset = 0;
	} else {
		eq->offset += wqe->opcode == IBV_WR_RDMA_READ ? p->dma_length
							      : p->length;
	}
	if (soft_wqe_wants_response(wqe))
		eq->reads++;
}

/* A fault of the current WQE is told when all before it are done. */
static bool fail_in_turn(struct soft_engine_qp *eq, enum ibv_wc_status status)
{
	if (eq->current != eq->qp->sq.head)
		return false;
	soft_send_fail(eq, status);
	return true;
}

/*
 * A bind or an invalidation, when all before it are done: later than it must
 * be, and so never too early. False: not yet, or the QP broke.
 */
static bool run_local(struct soft_engine_qp *eq, const struct soft_wqe *wqe)
{
	enum ibv_wc_status status;

	if (eq->current != eq->qp->sq.head)
		return false;
	status = soft_mw_execute(eq->qp, wqe);
	if (status != IBV_WC_SUCCESS) {
		soft_send_fail(eq, status);
		return false;
	}
	if (eq->begun == eq->current)
		eq->begun++;
	eq->current++;
	soft_send_complete(eq, IBV_WC_SUCCESS);
	return true;
}

/* One run of packets. False: nothing can be sent for now. */
static bool send_run(struct soft_engine_qp *eq, uint32_t *bytes)
{
	struct soft_qp *qp = eq->qp;
	struct soft_wqe *wqe = soft_wq_at(&qp->sq, eq->current);
	struct soft_packet p;
	enum ibv_wc_status status;

	if (soft_wqe_is_local(wqe))
		return run_local(eq, wqe);
	status = check_wqe(qp, wqe);
	if (status == IBV_WC_SUCCESS && !fill(eq, wqe, &p))
		status = IBV_WC_LOC_PROT_ERR;
	if (status != IBV_WC_SUCCESS)
		return fail_in_turn(eq, status);
	if (!soft_carrier_room(eq, &p))
		return false;
	if (!eq->offset) {
		uint32_t count = soft_wqe_is_atomic(wqe)
					 ? 1
					 : soft_packets(wqe->length, p.mtu);

		wqe->first_psn = eq->next_psn;
		wqe->last_psn = (eq->next_psn + count - 1) & SOFT_PSN_MASK;
	}
	*bytes += p.length;
	advance(eq, wqe, &p);
	if (p.service == SOFT_UD && soft_is_mcast(&p.dgid))
		soft_mcast_deliver(&p, qp);
	soft_carrier_send(&p);
	if (eq->state != IBV_QPS_RTS && eq->state != IBV_QPS_SQD)
		return false;
	if (p.unreadable) {
		soft_send_fail(eq, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	if (p.service != SOFT_RC) {
		eq->una_psn = eq->next_psn;
		if (p.last)
			soft_send_complete(eq, IBV_WC_SUCCESS);
	}
	return true;
}

/* Whether the next run may go now. */
static bool may_send(struct soft_engine_qp *eq)
{
	struct soft_qp *qp = eq->qp;
	struct soft_wqe *wqe;

	if (eq->state != IBV_QPS_RTS &&
	    !(eq->state == IBV_QPS_SQD &&
	      (eq->offset || eq->current != eq->begun)))
		return false;
	if (eq->rnr_wait || eq->current == soft_wq_tail(&qp->sq))
		return false;
	if (soft_psn_diff(eq->next_psn, eq->una_psn) >= SOFT_WINDOW)
		return false;
	wqe = soft_wq_at(&qp->sq, eq->current);
	if ((wqe->flags & IBV_SEND_FENCE) && !eq->offset && eq->reads)
		return false;
	if (soft_wqe_wants_response(wqe) && qp->attr.max_rd_atomic &&
	    eq->reads >= qp->attr.max_rd_atomic)
		return false;
	return true;
}

void soft_requester_drained(struct soft_engine_qp *eq)
{
	if (eq->state != IBV_QPS_SQD || !eq->draining)
		return;
	if (eq->begun != eq->qp->sq.head)
		return;
	eq->draining = false;
	if (eq->drain_notify)
		soft_qp_event(eq->qp, IBV_EVENT_SQ_DRAINED);
}

static void set_ack_timer(struct soft_engine_qp *eq)
{
	if (eq->rnr_wait)
		return;
	if (eq->una_psn == eq->next_psn)
		soft_timer_clear(eq);
	else if (!eq->deadline && eq->qp->attr.timeout)
		soft_timer_set(eq, soft_ack_delay(eq->qp->attr.timeout));
}

bool soft_requester_run(struct soft_engine_qp *eq)
{
	uint32_t bytes = 0;
	int wqes = 0;
	bool more = false;

	eq->running = true;
	while (may_send(eq)) {
		more = bytes >= SOFT_BURST_BYTES || wqes++ >= SOFT_BURST_WQES;
		if (more || !send_run(eq, &bytes))
			break;
	}
	eq->running = false;
	if (eq->state != IBV_QPS_RTS && eq->state != IBV_QPS_SQD)
		return false;
	soft_requester_drained(eq);
	if (!more && soft_service_of(eq->qp) == SOFT_RC)
		set_ack_timer(eq);
	return more;
}
