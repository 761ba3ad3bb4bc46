/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 05: the queue pair. What is asked of a QP and what is given, how
 * to find out why one is refused, its way from RESET to RTS attribute by
 * attribute, data in both directions, and errors and the way back.
 *
 * Two ends, A and B, live in one program here, or, with --server and
 * --connect, each in a program of its own. They know of each other only
 * what is in a struct endpoint.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/lesson/lesson.h"

enum { TEXT = 64, DEPTH = 8, INLINE = 16 };

struct end {
	const char *name;
	char *text; /* a page, of which TEXT bytes are used */
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
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = INLINE },
		.sq_sig_all = 1, /* every send ends in a completion */
	};

	end->text = page_alloc(1);
	if (!end->text)
		return ENOMEM;
	end->mr = ibv_reg_mr(pd, end->text, page_bytes(),
			     IBV_ACCESS_LOCAL_WRITE |
				     IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ);
	if (!end->mr) {
		report(errno, "ibv_reg_mr(length=%zu)", page_bytes());
		return EIO;
	}
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
	    "%d -> %u",
	    end->name, end->qp->qp_num, DEPTH, init.cap.max_send_wr, DEPTH,
	    init.cap.max_recv_wr, INLINE, init.cap.max_inline_data);
	return 0;
}

static void destroy_end(struct end *end)
{
	int err;

	err = end->qp ? ibv_destroy_qp(end->qp) : 0;
	if (err)
		report(err, "ibv_destroy_qp(%s)", end->name);
	err = end->cq ? ibv_destroy_cq(end->cq) : 0;
	if (err)
		report(err, "ibv_destroy_cq(%s)", end->name);
	err = end->mr ? ibv_dereg_mr(end->mr) : 0;
	if (err)
		report(err, "ibv_dereg_mr(%s)", end->name);
	free(end->text);
}

/* --- creation --- */

/* A QP that may be refused: made and destroyed, 0, or the errno. */
static int try_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;
	int err;

	errno = 0;
	qp = ibv_create_qp(pd, init);
	if (!qp)
		return lesson_errno();
	err = ibv_destroy_qp(qp);
	if (err)
		report(err, "ibv_destroy_qp(the one tried)");
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
		      { IBV_QPT_RAW_PACKET, "RAW_PACKET" },
		      { (enum ibv_qp_type)99, "number 99" } };
	int i, err;

	for (i = 0; i < 5; i++) {
		init.qp_type = types[i].type;
		err = try_qp(pd, &init);
		say("  %-10s  %s", types[i].name,
		    err ? errno_text(err) : "made");
	}
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
	int bytes, err = EINVAL;

	for (bytes = 32 * 1024; err && bytes; bytes /= 2) {
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

static int both_to(struct end *a, struct end *b, enum ibv_qp_state state)
{
	int err = to_state(a, state, &b->self);

	return err ? err : to_state(b, state, &a->self);
}

/* What the peer must be told of this end. */
static int describe(struct end *end)
{
	int err = endpoint_of(end->qp, &end->self);

	end->self.addr = (uintptr_t)end->text;
	end->self.rkey = end->mr->rkey;
	return err;
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
	if (err)
		report(err, "ibv_query_qp(%s)", end->name);
	else if (attr.qp_state == IBV_QPS_RESET)
		say("  %s: RESET, it has forgotten its peer", end->name);
	else
		say("  %s: %s, peer 0x%06x, rq_psn 0x%06x, sq_psn 0x%06x",
		    end->name,
		    attr.qp_state < 7 ? states[attr.qp_state] : "?",
		    attr.dest_qp_num, attr.rq_psn, attr.sq_psn);
}

/* --- data --- */

static int receive(struct end *end, uint64_t wr_id)
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
static int transfer(struct end *end, uint64_t wr_id,
		    enum ibv_wr_opcode opcode, const struct endpoint *peer)
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
		.wr.rdma.remote_addr = peer->addr,
		.wr.rdma.rkey = peer->rkey,
	};
	struct ibv_send_wr *bad_wr;
	int err;

	err = ibv_post_send(end->qp, &wr, &bad_wr);
	if (err)
		report(err, "ibv_post_send(%s, wr_id=%d)", end->name,
		       (int)wr_id);
	return err;
}

/* A SEND of this end's name; the peer has posted a receive before. */
static int send_name(struct end *end, const struct endpoint *peer)
{
	strcpy(end->text, "sent by ");
	strcat(end->text, end->name);
	if (transfer(end, 2, IBV_WR_SEND, peer))
		return EIO;
	return expect_success(end->cq, end->name);
}

static int see_received(struct end *end)
{
	int err = expect_success(end->cq, end->name);

	if (!err)
		say("  %s has received \"%.*s\"", end->name, TEXT,
		    end->text);
	return err;
}

/* Into the peer's memory, and back out of it. */
static int write_and_read(struct end *end, const struct endpoint *peer)
{
	strcpy(end->text, "written by ");
	strcat(end->text, end->name);
	if (transfer(end, 3, IBV_WR_RDMA_WRITE, peer) ||
	    expect_success(end->cq, end->name))
		return EIO;
	memset(end->text, 0, TEXT);
	if (transfer(end, 4, IBV_WR_RDMA_READ, peer) ||
	    expect_success(end->cq, end->name))
		return EIO;
	say("  %s has read back \"%.*s\"", end->name, TEXT, end->text);
	return 0;
}

/* Three SENDs that nobody has posted a receive for. */
static int send_unexpected(struct end *a, struct end *b)
{
	enum ibv_wc_status cause = IBV_WC_WR_FLUSH_ERR;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		if (transfer(a, 5 + i, IBV_WR_SEND, &b->self))
			return EIO;
	for (i = 0; i < 3; i++) {
		if (get_completion(a->cq, &wc, "A"))
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

/* --- two terminals --- */

static void show_endpoint(const char *whose, const struct endpoint *end)
{
	say("  %s: QP 0x%06x, PSN 0x%06x, LID %u, memory at 0x%llx, "
	    "rkey 0x%x",
	    whose, end->qp_num, end->psn, end->lid,
	    (unsigned long long)end->addr, end->rkey);
}

static void in_two_terminals(struct end *end)
{
	bool server = lesson_is_server();
	struct endpoint peer;
	int fd, err;

	step("two-meet");
	fd = peer_meet();
	if (fd < 0)
		return;

	step("two-exchange");
	if (describe(end) || peer_exchange(fd, &end->self, &peer))
		goto close_socket;
	show_endpoint("this end", &end->self);
	show_endpoint("the peer", &peer);

	step("two-connect");
	if (to_state(end, IBV_QPS_INIT, NULL) || receive(end, 1) ||
	    to_state(end, IBV_QPS_RTR, &peer) ||
	    to_state(end, IBV_QPS_RTS, NULL) || peer_barrier(fd))
		goto close_socket;
	show_state(end);

	step("two-send");
	if (server)
		err = peer_barrier(fd) || see_received(end) ||
		      send_name(end, &peer) || peer_barrier(fd);
	else
		err = send_name(end, &peer) || peer_barrier(fd) ||
		      peer_barrier(fd) || see_received(end);
	if (err)
		goto close_socket;

	step("two-reach");
	if ((!server && write_and_read(end, &peer)) || peer_barrier(fd))
		goto close_socket;
	say("  memory here says \"%.*s\"", TEXT, end->text);

	step("two-goodbye");
	if (!peer_barrier(fd))
		say("  both have all that they wanted");
close_socket:
	close(fd);
}

/* --- the steps --- */

/* What is asked of a QP, and what a device has. Makes nothing that stays.
 */
static int ask_too_much(struct ibv_context *context, struct ibv_pd *pd,
			struct ibv_qp_init_attr wish)
{
	struct ibv_device_attr has;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int err;

	step("types");
	try_types(pd, wish);

	step("refused");
	err = ibv_query_device(context, &has);
	if (err) {
		report(err, "ibv_query_device(context)");
		return err;
	}
	wish.cap.max_send_wr = has.max_qp_wr + 1;
	refused(EINVAL, qp = ibv_create_qp(pd, &wish));
	if (qp)
		ibv_destroy_qp(qp);

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
	refused(EINVAL, qp = ibv_create_qp(pd, &wish));
	if (qp)
		ibv_destroy_qp(qp);
	find_culprit(&wish.cap, &has);
	wish.cap.max_recv_sge = 1;

	step("inline");
	find_inline(pd, wish);

	step("cq-depth");
	refused(EINVAL, cq = ibv_create_cq(context, has.max_cqe + 1, NULL,
					   NULL, 0));
	if (cq)
		ibv_destroy_cq(cq);
	return 0;
}

/* Both from RESET to RTS. */
static int connect_ends(struct end *a, struct end *b)
{
	step("exchange");
	if (describe(a) || describe(b))
		return EIO;

	step("wrong-ways");
	refuse_wrong_ways(a, &b->self);

	step("init");
	if (both_to(a, b, IBV_QPS_INIT))
		return EIO;

	step("rtr");
	if (both_to(a, b, IBV_QPS_RTR))
		return EIO;

	step("rts");
	if (both_to(a, b, IBV_QPS_RTS))
		return EIO;

	step("query");
	show_state(a);
	show_state(b);
	return 0;
}

static int move_data(struct end *a, struct end *b)
{
	step("send");
	if (receive(b, 1) || send_name(a, &b->self) || see_received(b))
		return EIO;

	step("write-read");
	if (write_and_read(a, &b->self))
		return EIO;
	say("  B's memory says \"%.*s\"; B was told nothing", TEXT,
	    b->text);
	return 0;
}

/* An error, what it leaves, and the way back. */
static int break_and_mend(struct end *a, struct end *b)
{
	struct ibv_wc wc;

	step("rnr");
	if (send_unexpected(a, b))
		return EIO;
	show_state(a);
	show_state(b);

	step("flush");
	if (receive(b, 8) || to_state(b, IBV_QPS_ERR, NULL) ||
	    get_completion(b->cq, &wc, "B"))
		return EIO;

	step("reset");
	if (both_to(a, b, IBV_QPS_RESET))
		return EIO;
	show_state(a);

	step("reuse");
	if (both_to(a, b, IBV_QPS_INIT) || both_to(a, b, IBV_QPS_RTR) ||
	    both_to(a, b, IBV_QPS_RTS) || receive(b, 10) ||
	    send_name(a, &b->self) || see_received(b))
		return EIO;
	return 0;
}

static void destroy_with_work(struct end *end)
{
	struct ibv_wc wc;
	int err;

	step("pending");
	if (receive(end, 9))
		return;
	err = ibv_destroy_qp(end->qp);
	if (err) {
		report(err, "ibv_destroy_qp(%s)", end->name);
		return;
	}
	end->qp = NULL;
	say("  a receive was pending; ibv_poll_cq(%s) = %d", end->name,
	    ibv_poll_cq(end->cq, 1, &wc));
}

static void in_one_program(struct ibv_context *context, struct ibv_pd *pd,
			   struct end *a, struct end *b)
{
	struct ibv_qp_init_attr wish = {
		.send_cq = a->cq,
		.recv_cq = a->cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (ask_too_much(context, pd, wish) || !lesson_can_connect(context))
		return;
	if (!connect_ends(a, b) && !move_data(a, b) &&
	    !break_and_mend(a, b))
		destroy_with_work(b);
}

int main(int argc, char **argv)
{
	struct end a = { .name = "A" }, b = { .name = "B" };
	struct ibv_context *context;
	struct ibv_pd *pd;
	int err;

	lesson_begin("05_qp", "The queue pair", argc, argv);
	if (lesson_in_two())
		a.name = lesson_is_server() ? "server" : "client";

	step("open");
	context = lesson_open();
	if (!context)
		return lesson_end();
	pd = ibv_alloc_pd(context);
	if (!pd) {
		report(errno, "ibv_alloc_pd(context)");
		goto close_device;
	}

	step("create-qp");
	if (create_end(&a, pd))
		goto destroy_ends;
	if (lesson_in_two()) {
		if (lesson_can_connect(context))
			in_two_terminals(&a);
	} else if (!create_end(&b, pd)) {
		in_one_program(context, pd, &a, &b);
	}

destroy_ends:
	step("destroy");
	destroy_end(&b);
	destroy_end(&a);
	err = ibv_dealloc_pd(pd);
	if (err)
		report(err, "ibv_dealloc_pd(pd)");
close_device:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device(context)");
	return lesson_end();
}
