/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 02: the protection domain. What it holds, what refuses to let it
 * go, and what it protects: a server with two sessions, once in one PD and
 * once in a PD each.
 *
 * Copy from here: a session that makes and unmakes its own objects, and a
 * PD given back in the order that works.
 */
#include <stdlib.h>
#include <string.h>

#include "../common/lesson/lesson.h"

#define MANY_PDS      256
#define REMOTE_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* One end of a connection: a queue pair, and memory that a peer may write.
 */
struct session {
	struct ibv_qp *qp;
	char *memory;
	struct ibv_mr *mr;
};

static void close_session(struct session *session)
{
	int err;

	if (session->mr) {
		err = ibv_dereg_mr(session->mr);
		if (err)
			report(err, "ibv_dereg_mr()");
	}
	free(session->memory);
	if (session->qp) {
		err = ibv_destroy_qp(session->qp);
		if (err)
			report(err, "ibv_destroy_qp()");
	}
	memset(session, 0, sizeof(*session));
}

/* Everything a session owns is made in `pd`. 0, or -1, reported. */
static int open_session(struct session *session, struct ibv_pd *pd,
			struct ibv_cq *cq)
{
	memset(session, 0, sizeof(*session));
	session->qp = create_rc_qp(pd, cq, 4);
	if (!session->qp)
		return -1;
	session->memory = page_alloc(1);
	if (!session->memory)
		goto close;
	session->mr = ibv_reg_mr(pd, session->memory, page_bytes(),
				 REMOTE_ACCESS);
	if (!session->mr) {
		report(errno, "ibv_reg_mr(length=%zu)", page_bytes());
		goto close;
	}
	return 0;
close:
	close_session(session);
	return -1;
}

/*
 * The client writes through its connection to session A, but to the memory
 * of session B, whose rkey it was told.
 */
static void reach_across(struct ibv_pd *client_pd, struct ibv_pd *pd_a,
			 struct ibv_pd *pd_b, struct ibv_cq *cq,
			 enum ibv_wc_status expected)
{
	struct session client, a, b;
	int status;

	if (open_session(&client, client_pd, cq))
		return;
	if (open_session(&a, pd_a, cq))
		goto close_client;
	if (open_session(&b, pd_b, cq))
		goto close_a;
	strcpy(client.memory, "gotcha");
	if (connect_pair(client.qp, a.qp, REMOTE_ACCESS))
		goto close_b;
	status = write_and_wait(client.qp, client.mr, b.mr,
				sizeof("gotcha"));
	if (status < 0)
		goto close_b;
	say("  the client's write: %s", ibv_wc_status_str(status));
	say("  session B's memory: \"%s\"", b.memory);
	if (status != (int)expected)
		report(EPROTO, "this write was to end with \"%s\"",
		       ibv_wc_status_str(expected));
close_b:
	close_session(&b);
close_a:
	close_session(&a);
close_client:
	close_session(&client);
}

/* Allocates many PDs, says what one took, and gives all of them back. */
static void count_cost(struct ibv_context *context)
{
	struct ibv_pd *pds[MANY_PDS];
	double start = seconds_now();
	int count, err;

	for (count = 0; count < MANY_PDS; count++) {
		pds[count] = ibv_alloc_pd(context);
		if (!pds[count])
			break; /* the device's limit: no failure here */
	}
	say("  %d PDs, %.1f us each", count,
	    (seconds_now() - start) * 1e6 / (count ? count : 1));
	while (count--) {
		err = ibv_dealloc_pd(pds[count]);
		if (err)
			report(err, "ibv_dealloc_pd(number %d)", count);
	}
}

int main(int argc, char **argv)
{
	struct session session = { 0 };
	struct ibv_pd *pd = NULL, *pds[3];
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	bool connects;
	int made = 0, err;

	lesson_begin("02_pd", "protection domains", argc, argv);
	context = lesson_open();
	if (!context)
		return lesson_end();
	cq = ibv_create_cq(context, 16, NULL, /* channel */ NULL, 0);
	if (!cq) {
		report(errno, "ibv_create_cq(cqe=16)");
		goto close_device;
	}

	step("alloc-pd");
	pd = ibv_alloc_pd(context);
	if (!pd) {
		report(errno, "ibv_alloc_pd()");
		goto destroy_cq;
	}
	say("  a PD of %s, handle %u",
	    ibv_get_device_name(pd->context->device), pd->handle);

	step("pd-holds");
	if (open_session(&session, pd, cq))
		goto dealloc_pd;
	say("  MR lkey 0x%08x: in this PD: %s", session.mr->lkey,
	    session.mr->pd == pd ? "yes" : "no");
	say("  QP 0x%06x: in this PD: %s", session.qp->qp_num,
	    session.qp->pd == pd ? "yes" : "no");

	step("dealloc-busy");
	refused(EBUSY, ibv_dealloc_pd(pd));

	step("pd-intact");
	mr = ibv_reg_mr(pd, session.memory, page_bytes(), 0);
	if (!mr) {
		report(errno, "ibv_reg_mr(), after the refusal");
		goto close_session;
	}
	say("  another MR made in it: lkey 0x%08x", mr->lkey);
	err = ibv_dereg_mr(mr);
	if (err)
		report(err, "ibv_dereg_mr()");

	step("dealloc-retry");
	close_session(&session);
	err = ibv_dealloc_pd(pd);
	if (err) {
		report(err, "ibv_dealloc_pd(), with nothing left in it");
		goto dealloc_pd;
	}
	pd = NULL;
	say("  done; the CQ is still there");

	step("three-pds");
	for (; made < 3; made++) {
		pds[made] = ibv_alloc_pd(context);
		if (!pds[made]) {
			report(errno, "ibv_alloc_pd(number %d)", made);
			goto dealloc_pds;
		}
	}
	connects = lesson_can_connect(context);

	step("shared-pd");
	if (connects)
		reach_across(pds[0], pds[1], pds[1], cq, IBV_WC_SUCCESS);

	step("separate-pds");
	if (connects)
		reach_across(pds[0], pds[1], pds[2], cq,
			     IBV_WC_REM_ACCESS_ERR);

	step("memory-per-pd");
	if (open_session(&session, pds[1], cq))
		goto dealloc_pds;
	mr = ibv_reg_mr(pds[2], session.memory, page_bytes(), 0);
	if (!mr) {
		report(errno, "ibv_reg_mr(the same page, another PD)");
		goto close_session;
	}
	say("  one page, an MR in each PD: lkey 0x%08x and 0x%08x",
	    session.mr->lkey, mr->lkey);
	err = ibv_dereg_mr(mr);
	if (err)
		report(err, "ibv_dereg_mr()");

	step("many-pds");
	err = ibv_query_device(context, &attr);
	if (err)
		report(err, "ibv_query_device()");
	else
		say("  max_pd %d", attr.max_pd);
	count_cost(context);

	step("by-module");

	step("teardown");
close_session:
	close_session(&session);
dealloc_pds:
	while (made--) {
		err = ibv_dealloc_pd(pds[made]);
		if (err)
			report(err, "ibv_dealloc_pd(number %d)", made);
	}
dealloc_pd:
	err = pd ? ibv_dealloc_pd(pd) : 0;
	if (err)
		report(err, "ibv_dealloc_pd()");
destroy_cq:
	err = ibv_destroy_cq(cq);
	if (err)
		report(err, "ibv_destroy_cq()");
close_device:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device()");
	return lesson_end();
}
