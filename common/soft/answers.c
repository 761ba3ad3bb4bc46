/* SPDX-License-Identifier: MIT */
/*
 * The requester's other half: ACKs, NAKs, responses and timers, and what they
 * make of the WQEs under way (IBTA 9.7.5.2, 9.7.5.1.4, 9.9.2).
 */
#include "common/soft/engine.h"

#include "common/soft/peers.h"

/* Back to the oldest packet without an answer. */
static void go_back(struct soft_engine_qp *eq)
{
	uint32_t done;

	if (eq->una_psn == eq->next_psn)
		return;
	eq->current = eq->qp->sq.head;
	done = (uint32_t)soft_psn_diff(eq->una_psn,
				       soft_send_oldest(eq)->first_psn);
	eq->offset = done * soft_path_mtu(eq->qp);
	eq->next_psn = eq->una_psn;
	eq->reads = 0;
}

static void retry(struct soft_engine_qp *eq)
{
	if (!eq->retries) {
		soft_send_fail(eq, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	eq->retries--;
	go_back(eq);
	if (!eq->running)
		soft_ring(eq);
}

void soft_requester_timeout(struct soft_engine_qp *eq)
{
	if (eq->rnr_wait) {
		eq->rnr_wait = false;
		soft_ring(eq);
		return;
	}
	/*
	 * Hardware answers however busy or stopped its program is; a process
	 * that does not get the processor is no reason to give it up.
	 */
	if (soft_peers_under_way(eq->qp->attr.dest_qp_num))
		soft_timer_set(eq, soft_ack_delay(eq->qp->attr.timeout));
	else
		retry(eq);
}

/* The peer lives: retries count anew. */
static void progress(struct soft_engine_qp *eq, uint32_t una_psn)
{
	if (soft_psn_diff(una_psn, eq->una_psn) <= 0)
		return;
	eq->una_psn = una_psn;
	eq->retries = eq->qp->attr.retry_cnt;
	eq->rnr_retries = eq->qp->attr.rnr_retry;
	soft_timer_clear(eq);
	if (!eq->running)
		soft_ring(eq);
}

/*
 * All requests before `psn` have been executed. False: a READ or atomic is
 * among them whose response was lost; the retry is under way.
 */
static bool acked_before(struct soft_engine_qp *eq, uint32_t psn)
{
	while (soft_psn_diff(psn, eq->una_psn) > 0) {
		struct soft_wqe *wqe = soft_send_oldest(eq);
		uint32_t end = (wqe->last_psn + 1) & SOFT_PSN_MASK;

		if (soft_wqe_wants_response(wqe)) {
			retry(eq);
			return false;
		}
		if (soft_psn_diff(end, psn) > 0) {
			progress(eq, psn);
			return true;
		}
		progress(eq, end);
		soft_send_complete(eq, IBV_WC_SUCCESS);
	}
	return true;
}

static void rnr_nak(struct soft_engine_qp *eq, unsigned int code)
{
	if (!eq->rnr_retries) {
		soft_send_fail(eq, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (eq->rnr_retries < 7) /* 7: for ever */
		eq->rnr_retries--;
	go_back(eq);
	eq->rnr_wait = true;
	soft_timer_set(eq, soft_rnr_delay(code));
}

static void nak(struct soft_engine_qp *eq, uint8_t syndrome)
{
	if (syndrome >> 5 == 1) {
		rnr_nak(eq, syndrome & 31);
		return;
	}
	switch (syndrome) {
	case SOFT_NAK_SEQUENCE:
		retry(eq);
		break;
	case SOFT_NAK_REQUEST:
		soft_send_fail(eq, IBV_WC_REM_INV_REQ_ERR);
		break;
	case SOFT_NAK_ACCESS:
		soft_send_fail(eq, IBV_WC_REM_ACCESS_ERR);
		break;
	case SOFT_NAK_OPERATION:
		soft_send_fail(eq, IBV_WC_REM_OP_ERR);
		break;
	default:
		break; /* reserved codes: as if lost */
	}
}

/* Puts a response's data where the oldest WQE wants it. */
static bool take_data(struct soft_engine_qp *eq, struct soft_packet *p,
		      uint64_t offset)
{
	struct iovec to[SOFT_MAX_SGE];
	int parts;

	if (!soft_sge_memory(eq->qp->qp.pd, soft_send_oldest(eq), offset,
			     p->length, IBV_ACCESS_LOCAL_WRITE, to, &parts)) {
		soft_send_fail(eq, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	if (soft_copy(to, parts, p->part, p->parts, p->length, p->ours))
		return true;
	p->unreadable = !soft_readable(p->part, p->parts);
	if (!p->unreadable)
		soft_send_fail(eq, IBV_WC_LOC_PROT_ERR);
	return false;
}

/*
 * Whether a response fits the READ or atomic from packet `done` of it on:
 * so many packets and bytes as were asked for, and no more than went out.
 */
static bool fits(const struct soft_engine_qp *eq, const struct soft_wqe *wqe,
		 const struct soft_packet *p, uint32_t done)
{
	bool atomic = soft_wqe_is_atomic(wqe);
	uint32_t mtu = soft_path_mtu(eq->qp);
	uint32_t length = atomic ? sizeof(uint64_t) : wqe->length;
	uint32_t packets = soft_packets(length, mtu);
	uint64_t offset = (uint64_t)done * mtu;

	if (!soft_wqe_wants_response(wqe) ||
	    atomic != (p->op == SOFT_OP_ATOMIC_ACK))
		return false;
	if (p->count > packets - done || offset > length ||
	    (int32_t)p->count > soft_psn_diff(eq->next_psn, p->psn))
		return false;
	if (p->count == packets - done)
		return p->length == length - offset;
	return p->length == (uint64_t)p->count * mtu;
}

static void data_response(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct soft_wqe *wqe;
	uint32_t done;

	if (!acked_before(eq, p->psn) || p->psn != eq->una_psn)
		return;
	wqe = soft_send_oldest(eq);
	done = (uint32_t)soft_psn_diff(p->psn, wqe->first_psn);
	if (!fits(eq, wqe, p, done)) {
		soft_send_fail(eq, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (!take_data(eq, p, (uint64_t)done * soft_path_mtu(eq->qp)))
		return;
	/* Its last piece and its only READ response may be several runs. */
	if (p->last && eq->reads)
		eq->reads--;
	progress(eq, (p->psn + p->count) & SOFT_PSN_MASK);
	if (soft_psn_diff(eq->una_psn, wqe->last_psn) > 0)
		soft_send_complete(eq, IBV_WC_SUCCESS);
}

void soft_requester_response(struct soft_engine_qp *eq, struct soft_packet *p)
{
	bool ack = p->op == SOFT_OP_ACK && p->syndrome >> 5 == 0;

	if (eq->state != IBV_QPS_RTS && eq->state != IBV_QPS_SQD)
		return;
	/* Answers to nothing that is under way: ghosts, and duplicates. */
	if (soft_psn_diff(p->psn, eq->una_psn) < 0 ||
	    soft_psn_diff(p->psn, eq->next_psn) >= 0)
		return;
	if (p->op == SOFT_OP_READ_RESPONSE || p->op == SOFT_OP_ATOMIC_ACK)
		data_response(eq, p);
	else if (ack)
		acked_before(eq, (p->psn + 1) & SOFT_PSN_MASK);
	else if (acked_before(eq, p->psn))
		nak(eq, p->syndrome);
}
