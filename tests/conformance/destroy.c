/* SPDX-License-Identifier: MIT */
/* Destroying: what is refused, what blocks, what is left. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <pthread.h>

/* --- a PD and what lives in it ------------------------------------------ */

static void pd_with_mr(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_mr *mr = make_mr(w->pd, get_memory(PAGE, 3), PAGE, 0);

	if (rule->arg)
		ibv_dereg_mr(mr);
	answer_call(ibv_dealloc_pd(w->pd));
}

static void pd_with_qp(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));

	(void)rule;
	make_qp(w->pd, &init);
	answer_call(ibv_dealloc_pd(w->pd));
}

static void pd_with_ah(const struct rule *rule)
{
	struct world *w = open_world();

	(void)rule;
	make_ah(w, w->pd);
	answer_call(ibv_dealloc_pd(w->pd));
}

static void pd_with_srq(const struct rule *rule)
{
	struct world *w = open_world();

	(void)rule;
	make_srq(w->pd, 4, 0, NULL);
	answer_call(ibv_dealloc_pd(w->pd));
}

static void pd_with_mw(const struct rule *rule)
{
	struct world *w = open_world();

	if (!ibv_alloc_mw(w->pd, (enum ibv_mw_type)rule->arg))
		not_here("MW", errno);
	answer_call(ibv_dealloc_pd(w->pd));
}

static void pd_usable(const struct rule *rule)
{
	struct world *w = open_world();
	void *memory = get_memory(PAGE, 3);
	int err;

	(void)rule;
	make_mr(w->pd, memory, PAGE, 0);
	err = ibv_dealloc_pd(w->pd);
	if (!err)
		answer("was not refused");
	answer_pointer(ibv_reg_mr(w->pd, memory, PAGE, 0));
}

static void pd_empty(const struct rule *rule)
{
	(void)rule;
	answer_call(ibv_dealloc_pd(open_world()->pd));
}

/* --- CQ, SRQ, channel --------------------------------------------------- */

enum { SEND_CQ, RECV_CQ };

static void cq_with_qp(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq *send_cq = make_cq(w, 4, NULL);
	struct ibv_cq *recv_cq = make_cq(w, 4, NULL);
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, send_cq);

	init.recv_cq = recv_cq;
	make_qp(w->pd, &init);
	answer_call(ibv_destroy_cq(rule->arg == SEND_CQ ? send_cq : recv_cq));
}

static void cq_idle(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq *cq = make_cq(w, 4, NULL);
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, cq);

	(void)rule;
	ibv_destroy_qp(make_qp(w->pd, &init));
	answer_call(ibv_destroy_cq(cq));
}

static void cq_usable(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_cq *cq = make_cq(w, 4, NULL);
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, cq);
	struct ibv_wc wc;

	(void)rule;
	make_qp(w->pd, &init);
	if (!ibv_destroy_cq(cq))
		answer("was not refused");
	answer("%d completions", ibv_poll_cq(cq, 1, &wc));
}

static void srq_with_qp(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	struct ibv_qp *qp;

	init.srq = make_srq(w->pd, 4, 0, NULL);
	qp = make_qp(w->pd, &init);
	if (rule->arg)
		ibv_destroy_qp(qp);
	answer_call(ibv_destroy_srq(init.srq));
}

static void channel_with_cq(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_comp_channel *channel = make_channel(w);
	struct ibv_cq *cq = make_cq(w, 4, channel);

	if (rule->arg)
		ibv_destroy_cq(cq);
	answer_call(ibv_destroy_comp_channel(channel));
}

/* --- events that were not acknowledged ---------------------------------- */

struct destroying {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	int err, done;
};

static void *destroy_it(void *arg)
{
	struct destroying *d = arg;

	if (d->cq)
		d->err = ibv_destroy_cq(d->cq);
	else if (d->qp)
		d->err = ibv_destroy_qp(d->qp);
	else
		d->err = ibv_destroy_srq(d->srq);
	__atomic_store_n(&d->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Destroys in a thread; acknowledges when that has not come back. */
static _Noreturn void destroy_unacked(struct destroying *d,
				      struct ibv_async_event *event)
{
	uint64_t end = now_ms() + QUIET_MS;
	pthread_t thread;
	bool waits;

	if (pthread_create(&thread, NULL, destroy_it, d))
		not_here("a thread", EAGAIN);
	while (!__atomic_load_n(&d->done, __ATOMIC_ACQUIRE) && now_ms() < end)
		wait_readable(-1, 1);
	waits = !__atomic_load_n(&d->done, __ATOMIC_ACQUIRE);
	if (waits && event)
		ibv_ack_async_event(event);
	else if (waits)
		ibv_ack_cq_events(d->cq, 1);
	pthread_join(thread, NULL);
	answer("%s, %s", waits ? "waits" : "does not wait", call_name(d->err));
}

static void cq_unacked(const struct rule *rule)
{
	struct pair_wish wish_ = wish(IBV_QPT_RC);
	struct destroying d = { .err = 0 };
	struct ibv_cq *cq;
	void *context;
	struct pair *p;

	(void)rule;
	wish_.channel = true;
	p = make_pair(open_world(), &wish_);
	ibv_req_notify_cq(p->a.send_cq, 0);
	fill_send(p, IBV_WR_RDMA_WRITE, 8);
	post(p);
	if (!wait_readable(p->a.channel->fd, LIMIT_MS) ||
	    ibv_get_cq_event(p->a.channel, &cq, &context))
		answer("no event");
	ibv_destroy_qp(p->a.qp);
	d.cq = p->a.send_cq;
	destroy_unacked(&d, NULL);
}

static void get_event(struct world *w, struct ibv_async_event *event)
{
	if (!wait_readable(w->context->async_fd, LIMIT_MS) ||
	    ibv_get_async_event(w->context, event))
		answer("no event");
}

static void qp_unacked(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct destroying d = { .qp = p->a.qp };
	struct ibv_async_event event;

	(void)rule;
	if (ibv_modify_qp(p->a.qp, &attr,
			  IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY))
		answer("no SQD");
	get_event(p->w, &event);
	destroy_unacked(&d, &event);
}

static void srq_unacked(const struct rule *rule)
{
	struct pair_wish wish_ = wish(IBV_QPT_RC);
	struct ibv_srq_attr attr = { .srq_limit = 1 };
	struct destroying d = { .err = 0 };
	struct ibv_async_event event;
	struct pair *p;

	(void)rule;
	wish_.srq = true;
	p = make_pair(open_world(), &wish_);
	fill_recv(p, 64);
	post_recv(p);
	if (ibv_modify_srq(p->b.srq, &attr, IBV_SRQ_LIMIT))
		answer("no limit");
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	get_event(p->w, &event);
	ibv_destroy_qp(p->b.qp);
	d.srq = p->b.srq;
	destroy_unacked(&d, &event);
}

/* --- QP, AH, MR --------------------------------------------------------- */

static void qp_with_receives(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);
	int err;

	fill_recv(p, 64);
	post_recv(p);
	err = ibv_destroy_qp(p->b.qp);
	if (!rule->arg)
		answer_call(err);
	answer("%s", wc_name(wait_status(p->b.recv_cq, QUIET_MS)));
}

static void qp_completed(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	(void)rule;
	fill_recv(p, 64);
	post_recv(p);
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	if (wait_status(p->a.send_cq, LIMIT_MS))
		answer("no completion");
	ibv_destroy_qp(p->b.qp);
	answer("%s", wc_name(wait_status(p->b.recv_cq, QUIET_MS)));
}

static void ah_in_flight(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_UD);

	(void)rule;
	fill_send(p, IBV_WR_SEND, 8);
	post(p);
	answer_call(ibv_destroy_ah(p->a.ah));
}

static void mr_posted(const struct rule *rule)
{
	struct pair *p = plain_pair(IBV_QPT_RC);

	(void)rule;
	fill_recv(p, 64);
	post_recv(p);
	answer_call(ibv_dereg_mr(p->b.mr));
}

/* --- the context -------------------------------------------------------- */

static void close_with(const struct rule *rule)
{
	struct world *w = open_world();

	if (rule->arg)
		make_cq(w, 4, NULL);
	else
		ibv_dealloc_pd(w->pd);
	answer_call(ibv_close_device(w->context));
}

/* --- handles that name nothing ------------------------------------------ */

#define NO_HANDLE 0xdead

static void bad_pd(const struct rule *rule)
{
	struct world *w = open_world();

	(void)rule;
	w->pd->handle = NO_HANDLE;
	answer_call(ibv_dealloc_pd(w->pd));
}

static void bad_mr(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_mr *mr = make_mr(w->pd, get_memory(PAGE, 3), PAGE, 0);

	(void)rule;
	mr->handle = NO_HANDLE;
	answer_call(ibv_dereg_mr(mr));
}

static void bad_cq(const struct rule *rule)
{
	struct ibv_cq *cq = make_cq(open_world(), 4, NULL);

	(void)rule;
	cq->handle = NO_HANDLE;
	answer_call(ibv_destroy_cq(cq));
}

static void bad_srq(const struct rule *rule)
{
	struct ibv_srq *srq = make_srq(open_world()->pd, 4, 0, NULL);

	(void)rule;
	srq->handle = NO_HANDLE;
	answer_call(ibv_destroy_srq(srq));
}

static void bad_qp(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_qp_init_attr init = qp_init(IBV_QPT_RC, make_cq(w, 4, NULL));
	struct ibv_qp *qp = make_qp(w->pd, &init);

	(void)rule;
	qp->handle = NO_HANDLE;
	answer_call(ibv_destroy_qp(qp));
}

static void bad_ah(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_ah *ah = make_ah(w, w->pd);

	(void)rule;
	ah->handle = NO_HANDLE;
	answer_call(ibv_destroy_ah(ah));
}

#define BUSY   "the kernel's core counts, for every device"
#define HANDLE "the handle is looked up in the process's table"

static const struct rule rules[] = {
	RULE("dealloc_pd.empty", pd_empty, "ok", "A PD that holds nothing goes",
	     BUSY),
	RULE("dealloc_pd.with_mr", pd_with_mr, "EBUSY",
	     "A PD with an MR in it stays", BUSY),
	RULE("dealloc_pd.after_mr", pd_with_mr, "ok",
	     "A PD goes when its last MR has gone", BUSY, .arg = 1),
	RULE("dealloc_pd.with_qp", pd_with_qp, "EBUSY",
	     "A PD with a QP in it stays", BUSY),
	RULE("dealloc_pd.with_ah", pd_with_ah, "EBUSY",
	     "A PD with an AH in it stays", BUSY),
	RULE("dealloc_pd.with_srq", pd_with_srq, "EBUSY",
	     "A PD with an SRQ in it stays", BUSY),
	RULE("dealloc_pd.with_mw_1", pd_with_mw, "EBUSY",
	     "A PD with a type 1 MW in it stays", BUSY, .arg = IBV_MW_TYPE_1),
	RULE("dealloc_pd.with_mw_2", pd_with_mw, "EBUSY",
	     "A PD with a type 2 MW in it stays", BUSY, .arg = IBV_MW_TYPE_2),
	RULE("dealloc_pd.refused_then_used", pd_usable, "ok",
	     "A PD that was not let go is as good as before", BUSY),
	RULE("destroy_cq.idle", cq_idle, "ok", "A CQ that no QP uses goes",
	     BUSY),
	RULE("destroy_cq.of_send_queue", cq_with_qp, "EBUSY",
	     "A CQ of a QP's send queue stays", BUSY, .arg = SEND_CQ),
	RULE("destroy_cq.of_receive_queue", cq_with_qp, "EBUSY",
	     "A CQ of a QP's receive queue stays", BUSY, .arg = RECV_CQ),
	RULE("destroy_cq.refused_then_polled", cq_usable, "0 completions",
	     "A CQ that was not let go can be polled", BUSY,
	     .siw = "its library unmaps the CQ before the kernel is asked"),
	RULE("destroy_cq.unacknowledged", cq_unacked, "waits, ok",
	     "Destroying a CQ waits for ibv_ack_cq_events of each event got",
	     "ibv_get_cq_event(3); libibverbs does it for every device"),
	RULE("destroy_qp.unacknowledged", qp_unacked, "waits, ok",
	     "Destroying a QP waits for ibv_ack_async_event of its events",
	     "ibv_get_async_event(3); libibverbs does it for every device"),
	RULE("destroy_srq.unacknowledged", srq_unacked, "waits, ok",
	     "Destroying an SRQ waits for ibv_ack_async_event of its events",
	     "ibv_get_async_event(3); libibverbs does it for every device"),
	RULE("destroy_srq.with_qp", srq_with_qp, "EBUSY",
	     "An SRQ that a QP uses stays", BUSY),
	RULE("destroy_srq.after_qp", srq_with_qp, "ok",
	     "An SRQ goes when its last QP has gone", BUSY, .arg = 1),
	RULE("destroy_comp_channel.with_cq", channel_with_cq, "EBUSY",
	     "A channel with a CQ on it stays", "libibverbs counts"),
	RULE("destroy_comp_channel.after_cq", channel_with_cq, "ok",
	     "A channel goes when its last CQ has gone", "libibverbs counts",
	     .arg = 1),
	RULE("destroy_qp.with_receives", qp_with_receives, "ok",
	     "A QP with receives posted goes", "ibv_destroy_qp(3)"),
	RULE("destroy_qp.receives_vanish", qp_with_receives, "nothing",
	     "The receives of a QP that went do not complete",
	     "IBTA 10.2.4: no completion is owed", .arg = 1),
	RULE("destroy_qp.completions_stay", qp_completed, "IBV_WC_SUCCESS",
	     "What had completed when the QP went is still polled",
	     "left open"),
	RULE("destroy_ah.in_flight", ah_in_flight, "ok",
	     "An AH that a posted send names goes", "left open"),
	RULE("dereg_mr.posted", mr_posted, "ok",
	     "An MR that a posted receive names goes", "cards the same"),
	RULE("close_device.empty", close_with, "ok",
	     "Closing a device answers 0", "ibv_close_device(3)"),
	RULE("close_device.with_objects", close_with, "ok",
	     "Closing a device answers 0 with objects left, too",
	     "libibverbs; the kernel frees them when their mappings go",
	     .arg = 1),
	RULE("dealloc_pd.bad_handle", bad_pd, "ENOENT",
	     "A PD's handle that names nothing is no PD", HANDLE),
	RULE("dereg_mr.bad_handle", bad_mr, "ENOENT",
	     "An MR's handle that names nothing is no MR", HANDLE),
	RULE("destroy_cq.bad_handle", bad_cq, "ENOENT",
	     "A CQ's handle that names nothing is no CQ", HANDLE),
	RULE("destroy_srq.bad_handle", bad_srq, "ENOENT",
	     "An SRQ's handle that names nothing is no SRQ", HANDLE),
	RULE("destroy_qp.bad_handle", bad_qp, "ENOENT",
	     "A QP's handle that names nothing is no QP", HANDLE),
	RULE("destroy_ah.bad_handle", bad_ah, "ENOENT",
	     "An AH's handle that names nothing is no AH", HANDLE),
};
const struct rules destroy_rules = RULES(rules);
