/* SPDX-License-Identifier: MIT */
/*
 * The responder: checks requests, moves their data, answers them and
 * completes receives (IBTA 9.7.3 to 9.7.5, 9.8.3, 9.9.3).
 *
 * A fault has three sides: the NAK that the requester hears (RC only), the
 * status of the receive, if one was taken, and whether this QP breaks. An
 * affiliated event tells of it where no completion does.
 */
#include "common/soft/engine.h"

#include <string.h>

enum fault {
	FAULT_NONE,
	FAULT_LOST, /* the sender's memory is gone: as if never arrived */
	FAULT_RNR,
	FAULT_REQUEST,    /* NAK 0x61 */
	FAULT_ACCESS,     /* NAK 0x62 */
	FAULT_OPERATION,  /* NAK 0x63 */
	FAULT_INVALIDATE, /* acknowledged, and this QP breaks */
};

static bool is_atomic(const struct soft_packet *p)
{
	return p->op == SOFT_OP_CMP_SWAP || p->op == SOFT_OP_FETCH_ADD;
}

/* --- data --------------------------------------------------------------- */

/*
 * A failed copy: the sender's memory (then the packet is as good as lost,
 * and its requester is told so by the flag) or ours.
 */
static enum fault copy_fault(struct soft_packet *p)
{
	p->unreadable = !soft_readable(p->part, p->parts);
	return p->unreadable ? FAULT_LOST : FAULT_OPERATION;
}

/* Into the receive's buffers. On FAULT_OPERATION they're to blame. */
static enum fault scatter(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct iovec to[SOFT_MAX_SGE];
	int parts;

	if (!soft_sge_memory(eq->qp->qp.pd, eq->recv, eq->received, p->length,
			     IBV_ACCESS_LOCAL_WRITE, to, &parts))
		return FAULT_OPERATION;
	if (!soft_copy(to, parts, p->part, p->parts, p->length, p->ours))
		return copy_fault(p);
	return FAULT_NONE;
}

/*
 * The order of packets in a message, and their lengths: all but the last
 * carry exactly the path MTU of this side (IBTA 9.7.4.1).
 */
static enum fault check_data(const struct soft_engine_qp *eq,
			     const struct soft_packet *p)
{
	uint64_t full = (uint64_t)p->count * soft_path_mtu(eq->qp);

	if (p->first == eq->in_message)
		return FAULT_REQUEST;
	if (!p->first && p->op != eq->message)
		return FAULT_REQUEST;
	if (!p->last)
		return p->length == full ? FAULT_NONE : FAULT_REQUEST;
	if (p->length > full || (!p->length && !p->first))
		return FAULT_REQUEST;
	return FAULT_NONE;
}

static void complete_success(struct soft_engine_qp *eq,
			     const struct soft_packet *p,
			     enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = (uint32_t)eq->received,
	};

	if (p->has_imm) {
		wc.imm_data = p->imm;
		wc.wc_flags |= IBV_WC_WITH_IMM;
	} else if (p->invalidate) {
		wc.invalidated_rkey = p->imm;
		wc.wc_flags |= IBV_WC_WITH_INV;
	}
	soft_recv_complete(eq, &wc, p->solicited);
}

static enum fault do_send(struct soft_engine_qp *eq, struct soft_packet *p)
{
	enum fault fault;

	if (p->first) {
		eq->received = 0;
		if (!soft_recv_take(eq))
			return FAULT_RNR;
	}
	if (eq->received + p->length > eq->recv->length) {
		soft_recv_fail(eq, IBV_WC_LOC_LEN_ERR);
		return FAULT_REQUEST;
	}
	fault = scatter(eq, p);
	if (fault == FAULT_OPERATION)
		soft_recv_fail(eq, IBV_WC_LOC_PROT_ERR);
	if (fault != FAULT_NONE)
		return fault;
	eq->received += p->length;
	eq->message = SOFT_OP_SEND;
	eq->in_message = !p->last;
	if (!p->last)
		return FAULT_NONE;
	if (p->invalidate && !soft_mw_invalidate(eq->qp, p->imm)) {
		soft_recv_fail(eq, IBV_WC_REM_INV_REQ_ERR);
		return FAULT_INVALIDATE;
	}
	complete_success(eq, p, IBV_WC_RECV);
	return FAULT_NONE;
}

/* A remote access to `length` bytes; zero-length ones look at no key. */
static enum fault check_remote(const struct soft_engine_qp *eq, uint32_t rkey,
			       uint64_t va, uint64_t length,
			       unsigned int access, void **place)
{
	*place = NULL;
	if (!(eq->qp->attr.qp_access_flags & access))
		return FAULT_REQUEST;
	if (!length)
		return FAULT_NONE;
	if (soft_remote_access(eq->qp, rkey, va, length, access, place) !=
	    SOFT_ACCESS_OK)
		return FAULT_ACCESS;
	return FAULT_NONE;
}

static enum fault place_write(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct iovec to = { .iov_len = p->length };
	enum fault fault;

	if (p->first) {
		eq->received = 0;
		eq->write_va = p->va;
		eq->write_rkey = p->rkey;
		eq->write_left = p->dma_length;
		fault = check_remote(eq, p->rkey, p->va, p->dma_length,
				     IBV_ACCESS_REMOTE_WRITE, &to.iov_base);
		if (fault != FAULT_NONE)
			return fault;
	}
	if (p->length > eq->write_left ||
	    (p->last && p->length < eq->write_left))
		return FAULT_REQUEST;
	fault = check_remote(eq, eq->write_rkey, eq->write_va, p->length,
			     IBV_ACCESS_REMOTE_WRITE, &to.iov_base);
	if (fault != FAULT_NONE)
		return fault;
	if (!soft_copy(&to, 1, p->part, p->parts, p->length, p->ours))
		return copy_fault(p);
	eq->write_va += p->length;
	eq->write_left -= p->length;
	eq->received += p->length;
	eq->message = SOFT_OP_WRITE;
	eq->in_message = !p->last;
	return FAULT_NONE;
}

static enum fault do_write(struct soft_engine_qp *eq, struct soft_packet *p)
{
	enum fault fault;

	if (p->has_imm && !soft_recv_take(eq))
		return FAULT_RNR;
	fault = place_write(eq, p);
	if (!p->has_imm || fault == FAULT_LOST)
		return fault;
	if (fault == FAULT_NONE)
		complete_success(eq, p, IBV_WC_RECV_RDMA_WITH_IMM);
	else if (eq->qp->init.qp_type == IBV_QPT_RC)
		soft_recv_fail(eq, IBV_WC_LOC_ACCESS_ERR);
	return fault;
}

/* --- RC ----------------------------------------------------------------- */

static void answer(const struct soft_engine_qp *eq, struct soft_packet *p,
		   enum soft_op op, uint32_t psn)
{
	memset(p, 0, offsetof(struct soft_packet, part));
	p->service = SOFT_RC;
	p->op = op;
	p->first = p->last = true;
	p->count = 1;
	p->mtu = soft_path_mtu(eq->qp);
	p->dest_qpn = eq->qp->attr.dest_qp_num;
	p->psn = psn & SOFT_PSN_MASK;
	p->sgid = soft_gid();
	p->dgid = eq->qp->attr.ah_attr.grh.dgid;
	p->syndrome = SOFT_SYN_ACK;
	p->msn = eq->msn & SOFT_PSN_MASK;
}

static void acknowledge(const struct soft_engine_qp *eq, uint8_t syndrome,
			uint32_t psn)
{
	struct soft_packet p;

	answer(eq, &p, SOFT_OP_ACK, psn);
	p.syndrome = syndrome;
	soft_carrier_send(&p);
}

static void expect_next(struct soft_engine_qp *eq, const struct soft_packet *p)
{
	eq->expected_psn = (p->psn + p->count) & SOFT_PSN_MASK;
	if (p->last)
		eq->msn++;
}

static enum fault do_read(struct soft_engine_qp *eq, struct soft_packet *p,
			  bool again)
{
	struct soft_packet response;
	enum fault fault;
	void *place;

	if (!eq->qp->attr.max_dest_rd_atomic || (!again && eq->in_message))
		return FAULT_REQUEST;
	fault = check_remote(eq, p->rkey, p->va, p->dma_length,
			     IBV_ACCESS_REMOTE_READ, &place);
	if (fault != FAULT_NONE)
		return fault;
	if (!again)
		expect_next(eq, p);
	answer(eq, &response, SOFT_OP_READ_RESPONSE, p->psn);
	response.length = p->dma_length;
	response.count = soft_packets(p->dma_length, response.mtu);
	if (p->dma_length) {
		response.part[0] = (struct iovec){ place, p->dma_length };
		response.parts = 1;
	}
	soft_carrier_send(&response);
	return response.unreadable ? FAULT_OPERATION : FAULT_NONE;
}

static void answer_atomic(const struct soft_engine_qp *eq, uint32_t psn,
			  uint64_t original)
{
	struct soft_packet response;

	answer(eq, &response, SOFT_OP_ATOMIC_ACK, psn);
	response.original = original;
	response.length = sizeof(original);
	response.part[0] =
		(struct iovec){ &response.original, sizeof(response.original) };
	response.parts = 1;
	response.ours = true;
	soft_carrier_send(&response);
}

/*
 * Atomic among the atomics of this device, as IBV_ATOMIC_HCA says: the one
 * thread of the process that owns the memory does them all.
 */
static bool atomic_exchange(const struct soft_packet *p, void *place,
			    uint64_t *original)
{
	uint64_t value;
	struct iovec there = { place, sizeof(value) };
	struct iovec here = { original, sizeof(*original) };

	if (!soft_copy(&here, 1, &there, 1, sizeof(value), false))
		return false;
	if (p->op == SOFT_OP_CMP_SWAP)
		value = *original == p->compare ? p->swap_add : *original;
	else
		value = *original + p->swap_add;
	here.iov_base = &value;
	return soft_copy(&there, 1, &here, 1, sizeof(value), true);
}

static enum fault do_atomic(struct soft_engine_qp *eq, struct soft_packet *p)
{
	struct soft_replay *replay;
	enum fault fault;
	uint64_t original;
	void *place;

	if (!eq->qp->attr.max_dest_rd_atomic || eq->in_message || p->va & 7)
		return FAULT_REQUEST;
	fault = check_remote(eq, p->rkey, p->va, sizeof(original),
			     IBV_ACCESS_REMOTE_ATOMIC, &place);
	if (fault != FAULT_NONE)
		return fault;
	if (!atomic_exchange(p, place, &original))
		return FAULT_OPERATION;
	replay = &eq->replay[eq->next_replay++ % SOFT_REPLAYS];
	*replay = (struct soft_replay){ p->psn, true, original };
	expect_next(eq, p);
	answer_atomic(eq, p->psn, original);
	return FAULT_NONE;
}

/* A request seen before: its answer was lost (IBTA 9.7.5.1.2). */
static enum fault duplicate(struct soft_engine_qp *eq, struct soft_packet *p)
{
	if (p->op == SOFT_OP_READ)
		return do_read(eq, p, true);
	if (!is_atomic(p)) {
		acknowledge(eq, SOFT_SYN_ACK, eq->expected_psn - 1);
		return FAULT_NONE;
	}
	/* The newest first: PSNs come round again. */
	for (uint32_t i = 1; i <= SOFT_REPLAYS; i++) {
		const struct soft_replay *replay =
			&eq->replay[(eq->next_replay - i) % SOFT_REPLAYS];

		if (!replay->valid || replay->psn != p->psn)
			continue;
		answer_atomic(eq, p->psn, replay->original);
		break;
	}
	return FAULT_NONE;
}

static enum fault execute(struct soft_engine_qp *eq, struct soft_packet *p)
{
	enum fault fault;

	if (p->op == SOFT_OP_READ)
		return do_read(eq, p, false);
	if (is_atomic(p))
		return do_atomic(eq, p);
	fault = check_data(eq, p);
	if (fault != FAULT_NONE)
		return fault;
	fault = p->op == SOFT_OP_SEND ? do_send(eq, p) : do_write(eq, p);
	if (fault != FAULT_NONE && fault != FAULT_INVALIDATE)
		return fault;
	expect_next(eq, p);
	if (p->ack_req)
		acknowledge(eq, SOFT_SYN_ACK, p->psn + p->count - 1);
	return fault;
}

static void break_qp(struct soft_engine_qp *eq, enum ibv_event_type event)
{
	if (eq->state == IBV_QPS_ERR)
		return;
	soft_qp_event(eq->qp, event);
	soft_qp_error(eq);
}

static void refuse(struct soft_engine_qp *eq, const struct soft_packet *p,
		   enum fault fault)
{
	switch (fault) {
	case FAULT_RNR:
		eq->nak_sent = true; /* what follows it is dropped */
		acknowledge(eq,
			    SOFT_SYN_RNR | (eq->qp->attr.min_rnr_timer & 31),
			    p->psn);
		return;
	case FAULT_REQUEST:
		acknowledge(eq, SOFT_NAK_REQUEST, p->psn);
		break;
	case FAULT_ACCESS:
		acknowledge(eq, SOFT_NAK_ACCESS, p->psn);
		break;
	case FAULT_OPERATION:
		acknowledge(eq, SOFT_NAK_OPERATION, p->psn);
		break;
	case FAULT_INVALIDATE:
		break;
	default:
		return;
	}
	if (eq->told)
		soft_qp_error(eq);
	else if (fault == FAULT_ACCESS)
		break_qp(eq, IBV_EVENT_QP_ACCESS_ERR);
	else
		break_qp(eq, IBV_EVENT_QP_REQ_ERR);
}

static void reliable(struct soft_engine_qp *eq, struct soft_packet *p)
{
	int32_t ahead = soft_psn_diff(p->psn, eq->expected_psn);
	enum fault fault;

	if (ahead > 0) {
		if (!eq->nak_sent)
			acknowledge(eq, SOFT_NAK_SEQUENCE, eq->expected_psn);
		eq->nak_sent = true;
		return;
	}
	eq->told = false;
	if (ahead < 0) {
		fault = duplicate(eq, p);
	} else {
		eq->nak_sent = false;
		fault = execute(eq, p);
	}
	refuse(eq, p, fault);
}

/* --- UC and UD ---------------------------------------------------------- */

/* Nobody is told; a message with a gap or a fault is dropped whole. */
static void unreliable(struct soft_engine_qp *eq, struct soft_packet *p)
{
	bool gap = p->psn != eq->expected_psn;
	enum fault fault;

	if (gap || p->first)
		eq->in_message = false;
	expect_next(eq, p);
	if ((gap && !p->first) || check_data(eq, p) != FAULT_NONE)
		return;
	if (p->op != SOFT_OP_SEND && p->op != SOFT_OP_WRITE)
		return;
	fault = p->op == SOFT_OP_SEND ? do_send(eq, p) : do_write(eq, p);
	if (fault == FAULT_NONE)
		return;
	eq->in_message = false;
	if (p->op == SOFT_OP_SEND && !eq->recv && fault != FAULT_RNR)
		soft_qp_error(eq);
}

static void datagram(struct soft_engine_qp *eq, struct soft_packet *p)
{
	uint32_t length = SOFT_GRH_BYTES + p->length;
	struct iovec from[SOFT_MAX_SGE + 1], to[SOFT_MAX_SGE];
	uint8_t grh[SOFT_GRH_BYTES];
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = length,
		.src_qp = p->src_qpn,
		.wc_flags = IBV_WC_GRH,
	};
	int parts;

	if (p->op != SOFT_OP_SEND || p->qkey != eq->qp->attr.qkey)
		return;
	/* One that is too short stays for the next. */
	if (!soft_recv_take(eq) || length > eq->recv->length)
		return;
	soft_make_grh(p, grh);
	from[0] = (struct iovec){ grh, sizeof(grh) };
	memcpy(from + 1, p->part, (size_t)p->parts * sizeof(*from));
	if (!soft_sge_memory(eq->qp->qp.pd, eq->recv, 0, length,
			     IBV_ACCESS_LOCAL_WRITE, to, &parts) ||
	    !soft_copy(to, parts, from, p->parts + 1, length, p->ours)) {
		p->unreadable = !soft_readable(p->part, p->parts);
		if (p->unreadable)
			return;
		soft_recv_fail(eq, IBV_WC_LOC_PROT_ERR);
		soft_qp_error(eq);
		return;
	}
	if (p->has_imm) {
		wc.imm_data = p->imm;
		wc.wc_flags |= IBV_WC_WITH_IMM;
	}
	soft_recv_complete(eq, &wc, p->solicited);
}

void soft_responder_request(struct soft_engine_qp *eq, struct soft_packet *p)
{
	switch (p->service) {
	case SOFT_RC:
		reliable(eq, p);
		break;
	case SOFT_UC:
		unreliable(eq, p);
		break;
	case SOFT_UD:
		datagram(eq, p);
		break;
	}
}

void soft_receive(struct soft_qp *qp, struct soft_packet *p)
{
	struct soft_engine_qp *eq = qp->engine;

	/* What does not fit is dropped silently (IBTA 9.6.1). */
	if (!eq || p->service != soft_service_of(qp))
		return;
	if (p->op >= SOFT_OP_READ_RESPONSE) {
		soft_requester_response(eq, p);
		return;
	}
	if (eq->state == IBV_QPS_RTR || eq->state == IBV_QPS_RTS ||
	    eq->state == IBV_QPS_SQD || eq->state == IBV_QPS_SQE)
		soft_responder_request(eq, p);
}
