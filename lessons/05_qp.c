/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 05: the queue pair. What is asked of a QP and what is given, how
 * to find out why one is refused, its way from RESET to RTS attribute by
 * attribute, data in both directions, and errors and the way back.
 *
 * Two ends, A and B, live in one program here. They know of each other only
 * what is in a struct endpoint, as two hosts would.
 */
#include <stdlib.h>
#include <string.h>

#include "../common/lesson/lesson.h"

enum { TEXT = 64, DEPTH = 8 };

struct end {
	const char *name;
	char *text; /* TEXT bytes of the MR */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct endpoint self;
};

static int create_end(struct end *end, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 .max_inline_data = 16 },
		.sq_sig_all = 1, /* every send ends in a completion */
	};

	end->cq = ibv_create_cq(pd->context, 2 * DEPTH, NULL, NULL, 0);
	if (!end->cq) {
		report(errno, "ibv_create_cq(cqe=%d)", 2 * DEPTH);
		return EIO;
	}
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(pd, &init);
	if (!end->qp) {
		report(errno, "ibv_create_qp(max_send_wr=%d)", DEPTH);
		return EIO;
	}
	say("  %s, QP 0x%06x: send_wr %d -> %u, recv_wr %d -> %u, inline "
	    "16 -> %u",
	    end->name, end->qp->qp_num, DEPTH, init.cap.max_send_wr, DEPTH,
	    init.cap.max_recv_wr, init.cap.max_inline_data);
	return 0;
}

static void destroy_end(struct end *end)
{
	if (end->qp && ibv_destroy_qp(end->qp))
		report(errno, "ibv_destroy_qp(%s)", end->name);
	if (end->cq && ibv_destroy_cq(end->cq))
		report(errno, "ibv_destroy_cq(%s)", end->name);
}

/* --- creation --- */

/* A QP that may be refused: made and destroyed, 0, or the errno. */
static int try_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(pd, init);
	if (!qp)
		return lesson_errno();
	if (ibv_destroy_qp(qp))
		report(errno, "ibv_destroy_qp(tried one)");
	return 0;
}

/* No attribute tells the types a device has: asking for one does. */
static void try_types(struct ibv_pd *pd, struct ibv_qp_init_attr init)
{
	static const struct {
		enum ibv_qp_type type;
		const char *name;
	} types[] = { { IBV_QPT_RC, "RC" },
		      { IBV_QPT_UC, "UC" },
		      { IBV_QPT_UD, "UD" },
		      { IBV_QPT_RAW_PACKET, "RAW_PACKET" } };
	int i, err;

	for (i = 0; i < 4; i++) {
		init.qp_type = types[i].type;
		err = try_qp(pd, &init);
		say("  IBV_QPT_%-10s  %s", types[i].name,
		    err ? errno_text(err) : "made");
	}
}

static void refuse_qp(struct ibv_pd *pd, struct ibv_qp_init_attr init)
{
	struct ibv_qp *qp;

	refused(EINVAL, qp = ibv_create_qp(pd, &init));
	if (qp)
		ibv_destroy_qp(qp);
}

static void compare(const char *asked, uint32_t value, const char *limit,
		    int most)
{
	say("  %-12s %8u  %-9s %8d  %s", asked, value, limit, most,
	    value > (uint32_t)most ? "<-- too many" : "fine");
}

/* What was asked beside what the device says it has. */
static void find_culprit(const struct ibv_qp_cap *cap,
			 const struct ibv_device_attr *has)
{
	compare("max_send_wr", cap->max_send_wr, "max_qp_wr",
		has->max_qp_wr);
	compare("max_recv_wr", cap->max_recv_wr, "max_qp_wr",
		has->max_qp_wr);
	compare("max_send_sge", cap->max_send_sge, "max_sge", has->max_sge);
	compare("max_recv_sge", cap->max_recv_sge, "max_sge", has->max_sge);
}

/* Nor does one tell how much goes inline: halve until it works. */
static void find_inline(struct ibv_pd *pd, struct ibv_qp_init_attr init)
{
	int bytes, err;

	for (bytes = 32 * 1024, err = EINVAL; err && bytes; bytes /= 2) {
		init.cap.max_inline_data = bytes;
		err = try_qp(pd, &init);
		say("  inline %5d: %s", bytes,
		    err ? errno_text(err) : "made");
	}
	if (!err)
		say("  and got max_inline_data %u",
		    init.cap.max_inline_data);
}

/* --- the way to RTS --- */

/* The attributes of each transition; returns the mask that names them. */
static int init_attr(struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0, /* the partition: 0 is the default one */
		.port_num = lesson_port(),
		/* What the peer may do here by RDMA. */
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS;
}

static int rtr_attr(struct ibv_qp_attr *attr, const struct endpoint *self,
		    const struct endpoint *peer)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		/* The same at both ends: the smaller of the two. */
		.path_mtu = self->mtu < peer->mtu ? self->mtu : peer->mtu,
		.dest_qp_num = peer->qp_num,
		.rq_psn = peer->psn, /* the peer's first packet has it */
		.max_dest_rd_atomic = 1, /* READs the peer may have open */
		.min_rnr_timer = 12,     /* no receive: try after 0.64 ms */
		.ah_attr = { .port_num = lesson_port(), .dlid = peer->lid },
	};
	if (!peer->lid) { /* Ethernet: the GID is the address */
		attr->ah_attr.is_global = 1;
		attr->ah_attr.grh.dgid = peer->gid;
		attr->ah_attr.grh.sgid_index = lesson_gid_index();
		attr->ah_attr.grh.hop_limit = 64;
	}
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
	       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	       IBV_QP_MIN_RNR_TIMER;
}

static int rts_attr(struct ibv_qp_attr *attr, const struct endpoint *self)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = self->psn,
		.timeout = 14,  /* no answer in 4.096 us * 2^14 = 67 ms */
		.retry_cnt = 6, /* then again, six times */
		.rnr_retry = 1, /* no receive: once more; 7 is for ever */
		.max_rd_atomic = 1, /* READs this end may have open */
	};
	return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
	       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

static int to_state(struct end *end, enum ibv_qp_state state,
		    const struct endpoint *peer)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = IBV_QP_STATE; /* RESET and ERR need no more */
	int err;

	if (state == IBV_QPS_INIT)
		mask = init_attr(&attr);
	else if (state == IBV_QPS_RTR)
		mask = rtr_attr(&attr, &end->self, peer);
	else if (state == IBV_QPS_RTS)
		mask = rts_attr(&attr, &end->self);
	err = ibv_modify_qp(end->qp, &attr, mask);
	if (err)
		report(err, "ibv_modify_qp(%s, qp_state=%d)", end->name,
		       state);
	return err;
}

/* RESET to RTS: how a QP is connected, and a broken one used again. */
static int connect_again(struct end *end, const struct endpoint *peer)
{
	if (to_state(end, IBV_QPS_INIT, NULL) ||
	    to_state(end, IBV_QPS_RTR, peer) ||
	    to_state(end, IBV_QPS_RTS, NULL))
		return EIO;
	return 0;
}

static void refuse_wrong_ways(struct end *end, const struct endpoint *peer)
{
	struct ibv_qp_attr attr;
	int mask;

	say("  RESET to RTR, with all that RTR needs:");
	mask = rtr_attr(&attr, &end->self, peer);
	refused(EINVAL, ibv_modify_qp(end->qp, &attr, mask));
	say("  RESET to INIT, without IBV_QP_ACCESS_FLAGS:");
	mask = init_attr(&attr) & ~IBV_QP_ACCESS_FLAGS;
	refused(EINVAL, ibv_modify_qp(end->qp, &attr, mask));
}

static void show_state(struct end *end)
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS",
					      "SQD",   "SQE",  "ERR" };
	const int mask = IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_SQ_PSN;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err;

	err = ibv_query_qp(end->qp, &attr, mask, &init);
	if (err) {
		report(err, "ibv_query_qp(%s)", end->name);
		return;
	}
	if (attr.qp_state == IBV_QPS_RESET) {
		say("  %s: RESET, it has forgotten its peer", end->name);
		return;
	}
	say("  %s: %s, peer 0x%06x, rq_psn 0x%06x, sq_psn 0x%06x",
	    end->name,
	    attr.qp_state <= IBV_QPS_ERR ? states[attr.qp_state] : "?",
	    attr.dest_qp_num, attr.rq_psn, attr.sq_psn);
}

/* --- data --- */

static int post_recv(struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->text,
			       .length = TEXT,
			       .lkey = end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad_wr;
	int err;

	err = ibv_post_recv(end->qp, &wr, &bad_wr);
	if (err)
		report(err, "ibv_post_recv(%s)", end->name);
	return err;
}

/* SEND, WRITE or READ of the whole text. */
static int post_send(struct end *end, uint64_t wr_id,
		     enum ibv_wr_opcode opcode, const struct end *peer)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->text,
			       .length = TEXT,
			       .lkey = end->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		/* For WRITE and READ; a SEND does not look at these. */
		.wr.rdma.remote_addr = (uintptr_t)peer->text,
		.wr.rdma.rkey = peer->mr->rkey,
	};
	struct ibv_send_wr *bad_wr;
	int err;

	err = ibv_post_send(end->qp, &wr, &bad_wr);
	if (err)
		report(err, "ibv_post_send(%s, wr_id=%d)", end->name,
		       (int)wr_id);
	return err;
}

/* One completion, good or bad, which the caller judges. */
static int get_completion(struct end *end, struct ibv_wc *wc)
{
	if (wait_completion(end->cq, wc, /* seconds */ 10) != 1) {
		report(ETIMEDOUT, "ibv_poll_cq(%s)", end->name);
		return ETIMEDOUT;
	}
	say("  %s: wr_id %d, %s", end->name, (int)wc->wr_id,
	    ibv_wc_status_str(wc->status));
	return 0;
}

static int expect_success(struct end *end, const char *what)
{
	struct ibv_wc wc;

	if (get_completion(end, &wc))
		return EIO;
	if (wc.status == IBV_WC_SUCCESS)
		return 0;
	report_wc(&wc, what);
	return EIO;
}

static int send_and_receive(struct end *a, struct end *b, const char *text)
{
	strcpy(a->text, text);
	if (post_recv(b, 1) || post_send(a, 2, IBV_WR_SEND, b) ||
	    expect_success(a, "SEND") || expect_success(b, "receive"))
		return EIO;
	say("  B has received \"%s\"", b->text);
	return 0;
}

static int write_and_read(struct end *a, struct end *b)
{
	strcpy(a->text, "written by A");
	if (post_send(a, 3, IBV_WR_RDMA_WRITE, b) ||
	    expect_success(a, "RDMA WRITE"))
		return EIO;
	say("  B's memory now says \"%s\"; B was told nothing", b->text);
	strcpy(b->text, "read from B");
	if (post_send(a, 4, IBV_WR_RDMA_READ, b) ||
	    expect_success(a, "RDMA READ"))
		return EIO;
	say("  A's memory now says \"%s\"", a->text);
	return 0;
}

/* Three SENDs that nobody has posted a receive for. */
static int send_unexpected(struct end *a, struct end *b)
{
	enum ibv_wc_status cause = IBV_WC_WR_FLUSH_ERR;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		if (post_send(a, 5 + i, IBV_WR_SEND, b))
			return EIO;
	for (i = 0; i < 3; i++) {
		if (get_completion(a, &wc))
			return EIO;
		if (cause == IBV_WC_WR_FLUSH_ERR)
			cause = wc.status;
	}
	say("  the first that is no flush tells the cause: %s",
	    ibv_wc_status_str(cause));
	if (cause == IBV_WC_SUCCESS)
		report(EPROTO, "SEND without a receive succeeded");
	return 0;
}

int main(int argc, char **argv)
{
	struct end a = { .name = "A" }, b = { .name = "B" };
	struct ibv_qp_init_attr wish;
	struct ibv_device_attr has;
	struct ibv_context *context;
	struct ibv_wc wc;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	char *buffer;
	int err;

	lesson_begin("05_qp", "The queue pair", argc, argv);

	step("open");
	context = lesson_open();
	if (!context)
		return lesson_end();
	pd = ibv_alloc_pd(context);
	if (!pd) {
		report(errno, "ibv_alloc_pd(context)");
		goto close_device;
	}
	buffer = page_alloc(1);
	if (!buffer)
		goto dealloc_pd;
	mr = ibv_reg_mr(pd, buffer, page_bytes(),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ);
	if (!mr) {
		report(errno, "ibv_reg_mr(length=%zu)", page_bytes());
		goto free_buffer;
	}
	a.mr = b.mr = mr;
	a.text = buffer;
	b.text = buffer + TEXT;

	step("create-qp");
	if (create_end(&a, pd) || create_end(&b, pd))
		goto destroy_ends;

	step("types");
	wish = (struct ibv_qp_init_attr){
		.send_cq = a.cq,
		.recv_cq = a.cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	try_types(pd, wish);

	step("refused");
	err = ibv_query_device(context, &has);
	if (err) {
		report(err, "ibv_query_device(context)");
		goto destroy_ends;
	}
	wish.cap.max_send_wr = has.max_qp_wr + 1;
	refuse_qp(pd, wish);

	step("culprit");
	find_culprit(&wish.cap, &has);

	step("corrected");
	wish.cap.max_send_wr = DEPTH;
	err = try_qp(pd, &wish);
	if (err)
		report(err, "ibv_create_qp(max_send_wr=%d)", DEPTH);
	else
		say("  with max_send_wr %d: made", DEPTH);

	step("sge");
	wish.cap.max_recv_sge = has.max_sge + 1;
	refuse_qp(pd, wish);
	find_culprit(&wish.cap, &has);
	wish.cap.max_recv_sge = 1;

	step("inline");
	find_inline(pd, wish);

	step("unknown-type");
	wish.qp_type = (enum ibv_qp_type)99;
	refuse_qp(pd, wish);

	step("cq-depth");
	refused(EINVAL, cq = ibv_create_cq(context, has.max_cqe + 1, NULL,
					   NULL, 0));
	if (cq)
		ibv_destroy_cq(cq);

	if (!lesson_can_connect(context))
		goto destroy_ends;
	step("exchange");
	if (endpoint_of(a.qp, &a.self) || endpoint_of(b.qp, &b.self))
		goto destroy_ends;

	step("wrong-ways");
	refuse_wrong_ways(&a, &b.self);

	step("init");
	if (to_state(&a, IBV_QPS_INIT, NULL) ||
	    to_state(&b, IBV_QPS_INIT, NULL))
		goto destroy_ends;

	step("rtr");
	if (to_state(&a, IBV_QPS_RTR, &b.self) ||
	    to_state(&b, IBV_QPS_RTR, &a.self))
		goto destroy_ends;

	step("rts");
	if (to_state(&a, IBV_QPS_RTS, NULL) ||
	    to_state(&b, IBV_QPS_RTS, NULL))
		goto destroy_ends;

	step("query");
	show_state(&a);
	show_state(&b);

	step("send");
	if (send_and_receive(&a, &b, "sent by A"))
		goto destroy_ends;

	step("write-read");
	if (write_and_read(&a, &b))
		goto destroy_ends;

	step("rnr");
	if (send_unexpected(&a, &b))
		goto destroy_ends;
	show_state(&a);
	show_state(&b);

	step("flush");
	if (post_recv(&b, 8) || to_state(&b, IBV_QPS_ERR, NULL) ||
	    get_completion(&b, &wc))
		goto destroy_ends;

	step("reset");
	if (to_state(&a, IBV_QPS_RESET, NULL) ||
	    to_state(&b, IBV_QPS_RESET, NULL))
		goto destroy_ends;
	show_state(&a);

	step("reuse");
	if (connect_again(&a, &b.self) || connect_again(&b, &a.self) ||
	    send_and_receive(&a, &b, "sent by A once more"))
		goto destroy_ends;

	step("pending");
	if (post_recv(&b, 9))
		goto destroy_ends;
	err = ibv_destroy_qp(b.qp);
	if (err) {
		report(err, "ibv_destroy_qp(B)");
		goto destroy_ends;
	}
	b.qp = NULL;
	say("  a receive was pending; ibv_poll_cq(B) = %d",
	    ibv_poll_cq(b.cq, 1, &wc));

destroy_ends:
	step("destroy");
	destroy_end(&b);
	destroy_end(&a);
	err = ibv_dereg_mr(mr);
	if (err)
		report(err, "ibv_dereg_mr(mr)");
free_buffer:
	free(buffer);
dealloc_pd:
	err = ibv_dealloc_pd(pd);
	if (err)
		report(err, "ibv_dealloc_pd(pd)");
close_device:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device(context)");
	return lesson_end();
}
