/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 04: the completion queue. How large it must be, how completions
 * are polled, how to sleep until one comes, what holds a CQ, what blocks
 * its destruction, and what an overrun does to it.
 *
 * The completions come from a QP that is connected to itself and sends
 * itself messages of no bytes, which need no memory.
 */
#include "../common/lesson/lesson.h"

enum { DEPTH = 8 }; /* of the QP's send queue, and of its receive queue */

/* Lesson 05 does by hand what connect_pair() does here. */
static int connect_to_itself(struct ibv_qp *qp)
{
	return connect_pair(qp, qp, /* access */ 0);
}

/* The receive always completes, the send only with IBV_SEND_SIGNALED. */
static int send_to_itself(struct ibv_qp *qp, uint64_t wr_id, int flags)
{
	int err = post_recv(qp, wr_id, /* no bytes, no MR */ NULL);

	return err ? err : post_empty_send(qp, wr_id, flags);
}

static void show_size(struct ibv_context *context, int cqe)
{
	struct ibv_cq *cq;
	int err;

	cq = ibv_create_cq(context, cqe, NULL, /* channel */ NULL, 0);
	if (!cq) {
		report(errno, "ibv_create_cq(cqe=%d)", cqe);
		return;
	}
	say("  asked for %d completions, got room for %d", cqe, cq->cqe);
	err = ibv_destroy_cq(cq);
	if (err)
		report(err, "ibv_destroy_cq(cqe=%d)", cqe);
}

static void refuse_cq(struct ibv_context *context, int cqe, int vector)
{
	struct ibv_cq *cq;

	say("  cqe=%d, comp_vector=%d:", cqe, vector);
	refused(EINVAL,
		cq = ibv_create_cq(context, cqe, NULL, NULL, vector));
	if (cq)
		ibv_destroy_cq(cq);
}

/* Takes one completion that is there, or is about to be. */
static int poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, /* num_entries */ 1, &wc);
	while (n == 0);
	if (n < 0) {
		report(EIO, "ibv_poll_cq(num_entries=1) = %d", n);
		return EIO;
	}
	if (wc.status != IBV_WC_SUCCESS) {
		report_wc(&wc, "a message to itself");
		return EIO;
	}
	say("  wr_id %d: the %s of QP 0x%06x, %s", (int)wc.wr_id,
	    wc.opcode & IBV_WC_RECV ? "receive" : "send", wc.qp_num,
	    ibv_wc_status_str(wc.status));
	return 0;
}

/* Events wait behind a file descriptor, which can be waited for. */
static int get_event(struct ibv_comp_channel *channel)
{
	void *cq_context;
	struct ibv_cq *cq;

	if (!readable_within(channel->fd, 10000)) {
		report(ETIMEDOUT, "poll(channel->fd)");
		return ETIMEDOUT;
	}
	if (ibv_get_cq_event(channel, &cq, &cq_context)) {
		report(errno, "ibv_get_cq_event(channel)");
		return errno;
	}
	say("  an event of the CQ whose cq_context says \"%s\"",
	    (char *)cq_context);
	return 0;
}

/* With a completion in the CQ already: does that one count? */
static int arm_again(struct ibv_cq *cq)
{
	int err;

	err = ibv_req_notify_cq(cq, /* solicited_only */ 0);
	if (err) {
		report(err, "ibv_req_notify_cq(cq)");
		return err;
	}
	if (!readable_within(cq->channel->fd, 200)) {
		say("  no event for the completion that was there before; "
		    "some devices raise one");
		return 0;
	}
	say("  this device raises one for the completion that was there "
	    "before; others do not");
	err = get_event(cq->channel);
	if (!err)
		ibv_ack_cq_events(cq, 1);
	return err;
}

/* For a child, which opens everything for itself and never comes back. */
static int destroy_unacked(void *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	if (!context)
		return 1;
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	if (!pd || !channel)
		return 1;
	cq = ibv_create_cq(context, 2 * DEPTH, "the child", channel, 0);
	if (!cq)
		return 1;
	qp = create_rc_qp(pd, cq, DEPTH);
	if (!qp || connect_to_itself(qp) || ibv_req_notify_cq(cq, 0))
		return 1;
	if (send_to_itself(qp, 1, 0) || get_event(channel))
		return 1;
	if (ibv_destroy_qp(qp))
		return 1;
	say("  ibv_destroy_cq(), with that event not acknowledged ...");
	return ibv_destroy_cq(cq) ? 1 : 0;
}

static void show_unacked(struct ibv_device *device)
{
	struct child_result child;

	child = run_limited(/* seconds */ 3, destroy_unacked, device);
	if (child.end == CHILD_TIMED_OUT)
		say("  ... had not returned after 3 seconds: child ended");
	else
		report(EPROTO, "the child did not block, ended with %d",
		       child.status);
}

/* Says which async events come, until none has for a while. */
static void show_async_events(struct ibv_context *context)
{
	struct ibv_async_event event;
	int events = 0;

	while (readable_within(context->async_fd, events ? 200 : 3000)) {
		if (ibv_get_async_event(context, &event)) {
			report(errno, "ibv_get_async_event(context)");
			return;
		}
		say("  async event: %s",
		    ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
		events++;
	}
	if (!events)
		say("  no async event: this device does not tell");
}

/* More messages than the CQ has room for completions, nobody polling. */
static void overrun(struct ibv_pd *pd)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int i, err, sent, polled = 0;

	cq = ibv_create_cq(pd->context, 1, NULL, /* channel */ NULL, 0);
	if (!cq) {
		report(errno, "ibv_create_cq(cqe=1)");
		return;
	}
	sent = cq->cqe + 2;
	qp = create_rc_qp(pd, cq, sent);
	if (!qp)
		goto destroy_cq;
	err = connect_to_itself(qp);
	for (i = 0; !err && i < sent; i++)
		err = send_to_itself(qp, i, 0);
	show_async_events(pd->context);
	while (polled < sent && ibv_poll_cq(cq, 1, &wc) == 1)
		polled++;
	say("  %d messages, room for %d completions, %d polled", sent,
	    cq->cqe, polled);
	err = ibv_destroy_qp(qp);
	if (err)
		report(err, "ibv_destroy_qp(qp)");
destroy_cq:
	err = ibv_destroy_cq(cq);
	if (err)
		report(err, "ibv_destroy_cq(cq)");
}

int main(int argc, char **argv)
{
	struct ibv_comp_channel *channel;
	struct ibv_device_attr attr;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int err;

	lesson_begin("04_cq", "The completion queue", argc, argv);

	step("open");
	context = lesson_open();
	if (!context)
		return lesson_end();
	pd = ibv_alloc_pd(context);
	if (!pd) {
		report(errno, "ibv_alloc_pd(context)");
		goto close_device;
	}

	step("size");
	show_size(context, 1);
	show_size(context, 10);
	show_size(context, 100);

	step("size-refused");
	err = ibv_query_device(context, &attr);
	if (err) {
		report(err, "ibv_query_device(context)");
		goto dealloc_pd;
	}
	refuse_cq(context, 0, 0);
	refuse_cq(context, attr.max_cqe + 1, 0);
	refuse_cq(context, 16, context->num_comp_vectors);

	step("create-channel");
	channel = ibv_create_comp_channel(context);
	if (!channel) {
		report(errno, "ibv_create_comp_channel(context)");
		goto dealloc_pd;
	}

	step("create-cq");
	cq = ibv_create_cq(context, DEPTH + DEPTH, "the lesson's CQ",
			   channel, /* comp_vector */ 0);
	if (!cq) {
		report(errno, "ibv_create_cq(cqe=%d)", DEPTH + DEPTH);
		goto destroy_channel;
	}
	say("  %d sends + %d receives = %d places, got %d", DEPTH, DEPTH,
	    DEPTH + DEPTH, cq->cqe);

	step("channel-refused");
	refused(EBUSY, ibv_destroy_comp_channel(channel));

	step("create-qp");
	qp = create_rc_qp(pd, cq, DEPTH);
	if (!qp)
		goto destroy_cq;

	step("cq-refused");
	refused(EBUSY, ibv_destroy_cq(cq));

	if (!lesson_can_connect(context))
		goto destroy_qp;
	step("connect");
	if (connect_to_itself(qp))
		goto destroy_qp;

	step("poll-empty");
	say("  ibv_poll_cq() = %d", ibv_poll_cq(cq, 1, &wc));

	step("poll");
	if (send_to_itself(qp, 1, IBV_SEND_SIGNALED))
		goto destroy_qp;
	if (poll_one(cq) || poll_one(cq))
		goto destroy_qp;

	step("arm");
	err = ibv_req_notify_cq(cq, /* solicited_only */ 0);
	if (err) {
		report(err, "ibv_req_notify_cq(cq)");
		goto destroy_qp;
	}

	step("event");
	if (send_to_itself(qp, 2, /* unsignaled */ 0) || get_event(channel))
		goto destroy_qp;

	step("ack");
	ibv_ack_cq_events(cq, 1);

	step("arm-again");
	if (arm_again(cq))
		goto destroy_qp;

	step("poll-again");
	if (poll_one(cq))
		goto destroy_qp;

	step("unacked");
	show_unacked(context->device);

	step("overrun");
	overrun(pd);

destroy_qp:
	step("destroy-qp");
	err = ibv_destroy_qp(qp);
	if (err)
		report(err, "ibv_destroy_qp(qp)");
destroy_cq:
	step("destroy-cq");
	err = ibv_destroy_cq(cq);
	if (err)
		report(err, "ibv_destroy_cq(cq)");
destroy_channel:
	step("destroy-channel");
	err = ibv_destroy_comp_channel(channel);
	if (err)
		report(err, "ibv_destroy_comp_channel(channel)");
dealloc_pd:
	step("close");
	err = ibv_dealloc_pd(pd);
	if (err)
		report(err, "ibv_dealloc_pd(pd)");
close_device:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device(context)");
	return lesson_end();
}
