/* SPDX-License-Identifier: MIT */
/* Memory windows. */
#include "tests/conformance/conform.h"

#include <errno.h>

#define BIND_ACCESS                                         \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)

struct window {
	struct pair *p;
	struct ibv_mw *mw;
	struct ibv_mr *mr; /* of b's buffer, with MW_BIND */
	struct ibv_mw_bind_info info;
};

static struct window make_window(enum ibv_mw_type type, int access)
{
	struct window w = { .p = plain_pair(IBV_QPT_RC) };

	w.mr = make_mr(w.p->w->pd, w.p->b.buffer, BUFFER, access);
	w.mw = ibv_alloc_mw(w.p->w->pd, type);
	if (!w.mw)
		not_here("MW", errno);
	w.info = (struct ibv_mw_bind_info){
		.mr = w.mr,
		.addr = (uintptr_t)w.p->b.buffer,
		.length = PAGE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	return w;
}

/* b binds: a type 1 window by the verb, a type 2 one by a WR. */
static int bind(struct window *w)
{
	struct ibv_mw_bind one = {
		.wr_id = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = w->info,
	};
	struct ibv_send_wr *bad_wr, two = {
		.wr_id = 1,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = w->mw,
			     .rkey = ibv_inc_rkey(w->mw->rkey),
			     .bind_info = w->info },
	};
	int err;

	if (w->mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(w->p->b.qp, w->mw, &one);
	err = ibv_post_send(w->p->b.qp, &two, &bad_wr);
	if (!err)
		w->mw->rkey = two.bind_mw.rkey;
	return err;
}

static _Noreturn void answer_bind(struct window *w)
{
	int err = bind(w);

	if (err)
		answer_call(err);
	answer("%s", wc_name(wait_status(w->p->b.send_cq, LIMIT_MS)));
}

static void must_bind(struct window *w)
{
	int err = bind(w);

	if (err)
		answer("bind: %s", call_name(err));
	err = wait_status(w->p->b.send_cq, LIMIT_MS);
	if (err)
		answer("bind: %s", wc_name(err));
}

static void alloc(const struct rule *rule)
{
	struct world *w = open_world();

	errno = 0;
	if (!ibv_alloc_mw(w->pd, (enum ibv_mw_type)rule->arg)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			not_here("MW", errno);
		answer_pointer(NULL);
	}
	answer("ok");
}

/* --- what a bind answers ------------------------------------------------ */

enum {
	GOOD,
	NO_MW_BIND,
	NO_LOCAL_WRITE,
	TOO_LONG,
	ATOMIC,
	NOTHING_BOUND,
	TWICE,
	OTHER_MR_PD,
	NO_MR
};

static void bind_case(const struct rule *rule)
{
	int access = BIND_ACCESS;
	struct window w;

	if (rule->arg2 == NO_MW_BIND)
		access &= ~IBV_ACCESS_MW_BIND;
	if (rule->arg2 == NO_LOCAL_WRITE)
		access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
	w = make_window((enum ibv_mw_type)rule->arg, access);
	switch (rule->arg2) {
	case TOO_LONG:
		w.info.length = BUFFER + 1;
		break;
	case NOTHING_BOUND:
		w.info.length = 0;
		break;
	case TWICE:
		must_bind(&w);
		break;
	case OTHER_MR_PD:
		w.info.mr = make_mr(make_pd(w.p->w), w.p->b.buffer, BUFFER,
				    BIND_ACCESS);
		break;
	case NO_MR:
		w.info.mr = NULL;
		break;
	}
	answer_bind(&w);
}

/* A type 2 window by the verb that is for type 1. */
static void bind_verb_2(const struct rule *rule)
{
	struct window w = make_window(IBV_MW_TYPE_2, BIND_ACCESS);
	struct ibv_mw_bind bind = { .bind_info = w.info };

	(void)rule;
	answer_call(ibv_bind_mw(w.p->b.qp, w.mw, &bind));
}

/* --- what a window opens ------------------------------------------------ */

enum { WITHIN, BEHIND, READ, UNBOUND, OLD_KEY, INVALIDATED, PEER_INVALIDATED };

static void invalidate_locally(struct window *w)
{
	struct ibv_send_wr *bad_wr, wr = {
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = w->mw->rkey,
	};

	if (ibv_post_send(w->p->b.qp, &wr, &bad_wr) ||
	    wait_status(w->p->b.send_cq, LIMIT_MS))
		answer("LOCAL_INV failed");
}

static void invalidate_remotely(struct window *w)
{
	fill_recv(w->p, 8);
	post_recv(w->p);
	fill_send(w->p, IBV_WR_SEND_WITH_INV, 8);
	w->p->a.wr.invalidate_rkey = w->mw->rkey;
	post(w->p);
	if (wait_status(w->p->a.send_cq, LIMIT_MS))
		answer("SEND_WITH_INV failed");
}

static void access_case(const struct rule *rule)
{
	struct window w = make_window((enum ibv_mw_type)rule->arg, BIND_ACCESS);
	uint32_t key;

	if (rule->arg2 != UNBOUND)
		must_bind(&w);
	key = w.mw->rkey;
	if (rule->arg2 == OLD_KEY)
		must_bind(&w);
	if (rule->arg2 == INVALIDATED)
		invalidate_locally(&w);
	if (rule->arg2 == PEER_INVALIDATED)
		invalidate_remotely(&w);
	fill_send(w.p,
		  rule->arg2 == READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 8);
	w.p->a.wr.wr.rdma.rkey = key;
	if (rule->arg2 == BEHIND)
		w.p->a.wr.wr.rdma.remote_addr += PAGE;
	post(w.p);
	answer("%s", wc_name(wait_status(w.p->a.send_cq, LIMIT_MS)));
}

enum { DEREG_BOUND, DEREG_AFTER, DEALLOC_BOUND };

static void destroy_case(const struct rule *rule)
{
	struct window w = make_window((enum ibv_mw_type)rule->arg, BIND_ACCESS);
	int err;

	must_bind(&w);
	if (rule->arg2 == DEREG_BOUND)
		answer_call(ibv_dereg_mr(w.mr));
	err = ibv_dealloc_mw(w.mw);
	if (err || rule->arg2 == DEALLOC_BOUND)
		answer_call(err);
	answer_call(ibv_dereg_mr(w.mr));
}

#define OK         "IBV_WC_SUCCESS"
#define BIND_ERR   "IBV_WC_MW_BIND_ERR"
#define REM_ACCESS "IBV_WC_REM_ACCESS_ERR"
#define SPEC       "IBTA 10.6"
#define STATUS     "6.12 loses the status, WR_FLUSH_ERR is left"
#define MW_RANGE   "checks the range of the MR, not of the window"
#define CLOSED     "IBTA 10.6: a NAK, remote access error"

static const struct rule rules[] = {
	RULE("alloc_mw.type_1", alloc, "ok", "A type 1 window", SPEC,
	     .arg = IBV_MW_TYPE_1),
	RULE("alloc_mw.type_2", alloc, "ok", "A type 2 window", SPEC,
	     .arg = IBV_MW_TYPE_2),
	RULE("alloc_mw.unknown_type", alloc, "EINVAL",
	     "A type that nobody knows is refused", SPEC, .arg = 7),
	RULE("bind_mw.1", bind_case, OK, "A type 1 window is bound by the verb",
	     SPEC, .arg = IBV_MW_TYPE_1),
	RULE("bind_mw.2", bind_case, OK, "A type 2 window is bound by a WR",
	     SPEC, .arg = IBV_MW_TYPE_2),
	RULE("bind_mw.2_by_verb", bind_verb_2, "EINVAL",
	     "ibv_bind_mw() is for type 1", "ibv_bind_mw(3), in the header"),
	RULE("bind_mw.1_no_mr", bind_case, "EINVAL",
	     "ibv_bind_mw() of a length needs an MR",
	     "ibv_bind_mw(3), in the header", .arg = IBV_MW_TYPE_1,
	     .arg2 = NO_MR),
	RULE("bind_mw.1_other_pd", bind_case, "EPERM",
	     "Window and MR are of one PD", "ibv_bind_mw(3), in the header",
	     .arg = IBV_MW_TYPE_1, .arg2 = OTHER_MR_PD),
	RULE("bind_mw.2_other_pd", bind_case, BIND_ERR,
	     "Window and MR are of one PD", SPEC,
	     .rxe = "6.1 does not compare the PD; " STATUS,
	     .arg = IBV_MW_TYPE_2, .arg2 = OTHER_MR_PD),
	RULE("bind_mw.no_right", bind_case, BIND_ERR,
	     "The MR must have MW_BIND", SPEC, .rxe = STATUS,
	     .arg = IBV_MW_TYPE_2, .arg2 = NO_MW_BIND),
	RULE("bind_mw.no_local_write", bind_case, BIND_ERR,
	     "To open writing the MR must have LOCAL_WRITE", SPEC,
	     .rxe = STATUS, .arg = IBV_MW_TYPE_2, .arg2 = NO_LOCAL_WRITE),
	RULE("bind_mw.too_long", bind_case, BIND_ERR,
	     "A window lies inside its MR", SPEC, .rxe = STATUS,
	     .arg = IBV_MW_TYPE_2, .arg2 = TOO_LONG),
	RULE("bind_mw.1_unbinds", bind_case, OK,
	     "A type 1 window is unbound by a bind of length 0", SPEC,
	     .arg = IBV_MW_TYPE_1, .arg2 = NOTHING_BOUND),
	RULE("bind_mw.2_of_length_0", bind_case, BIND_ERR,
	     "A type 2 window has no bind of length 0", SPEC, .rxe = STATUS,
	     .arg = IBV_MW_TYPE_2, .arg2 = NOTHING_BOUND),
	RULE("bind_mw.1_again", bind_case, OK,
	     "A type 1 window can be bound anew", SPEC, .arg = IBV_MW_TYPE_1,
	     .arg2 = TWICE),
	RULE("bind_mw.2_again", bind_case, BIND_ERR,
	     "A type 2 window must be invalidated before", SPEC, .rxe = STATUS,
	     .arg = IBV_MW_TYPE_2, .arg2 = TWICE),
	RULE("mw.1.within", access_case, OK, "A type 1 window opens its part",
	     SPEC, .arg = IBV_MW_TYPE_1, .arg2 = WITHIN),
	RULE("mw.2.within", access_case, OK, "A type 2 window opens its part",
	     SPEC, .arg = IBV_MW_TYPE_2, .arg2 = WITHIN),
	RULE("mw.1.behind", access_case, REM_ACCESS, "And nothing behind it",
	     CLOSED, .rxe = MW_RANGE, .arg = IBV_MW_TYPE_1, .arg2 = BEHIND),
	RULE("mw.2.behind", access_case, REM_ACCESS, "And nothing behind it",
	     CLOSED, .rxe = MW_RANGE, .arg = IBV_MW_TYPE_2, .arg2 = BEHIND),
	RULE("mw.1.read", access_case, REM_ACCESS,
	     "A window for writing is not for reading", CLOSED,
	     .arg = IBV_MW_TYPE_1, .arg2 = READ),
	RULE("mw.2.read", access_case, REM_ACCESS,
	     "A window for writing is not for reading", CLOSED,
	     .arg = IBV_MW_TYPE_2, .arg2 = READ),
	RULE("mw.1.unbound", access_case, REM_ACCESS,
	     "A window that is not bound opens nothing", CLOSED,
	     .arg = IBV_MW_TYPE_1, .arg2 = UNBOUND),
	RULE("mw.1.old_key", access_case, REM_ACCESS,
	     "Binding anew closes the key before", CLOSED, .arg = IBV_MW_TYPE_1,
	     .arg2 = OLD_KEY),
	RULE("mw.2.invalidated", access_case, REM_ACCESS,
	     "LOCAL_INV closes a type 2 window", CLOSED, .arg = IBV_MW_TYPE_2,
	     .arg2 = INVALIDATED),
	RULE("mw.2.invalidated_by_peer", access_case, REM_ACCESS,
	     "SEND_WITH_INV closes a type 2 window", CLOSED,
	     .arg = IBV_MW_TYPE_2, .arg2 = PEER_INVALIDATED),
	RULE("dereg_mr.with_mw", destroy_case, "EINVAL",
	     "An MR with a window on it stays",
	     "left open; cards: EBUSY or success", .arg = IBV_MW_TYPE_2,
	     .arg2 = DEREG_BOUND),
	RULE("dereg_mr.after_mw", destroy_case, "ok",
	     "An MR goes when its last window has gone", SPEC,
	     .arg = IBV_MW_TYPE_2, .arg2 = DEREG_AFTER),
	RULE("dealloc_mw.bound", destroy_case, "ok",
	     "A window that is bound goes, and is unbound", SPEC,
	     .arg = IBV_MW_TYPE_2, .arg2 = DEALLOC_BOUND),
};
const struct rules window_rules = RULES(rules);
