/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 06: the whole life of a service's objects, through the manager of
 * common/manager: checked, made in order, looked at, taken down in reverse.
 * On the way every wrong order is tried, and every step made to fail.
 *
 * To copy: manager.h and manager.c; this program shows each of their calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/lesson/lesson.h"
#include "../common/manager/manager.h"

enum { DEPTH = 16 };

/* What the manager's log hook has heard. */
struct heard {
	int failures;
	char call[32];
};

static void log_failure(void *arg, int err, const char *call,
			const char *given)
{
	struct heard *heard = arg;

	heard->failures++;
	snprintf(heard->call, sizeof(heard->call), "%s", call);
	say("    log: %s(%s): %s", call, given, errno_text(err));
}

/* A small service: one buffer for requests, one for data, two peers. */
struct service {
	struct manager_mr_plan mrs[2];
	struct manager_cq_plan cqs[2];
	struct manager_qp_plan qps[2];
	struct manager_plan plan;
	struct heard heard;
};

static void describe(struct service *s, char *memory)
{
	const struct manager_qp_plan qp = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.send_cq = 0,
		.recv_cq = 1,
		.access = IBV_ACCESS_REMOTE_WRITE,
	};

	*s = (struct service){
		.mrs = {
			{ .addr = memory, .length = page_bytes(),
			  .access = IBV_ACCESS_LOCAL_WRITE },
			{ .addr = memory + page_bytes(),
			  .length = page_bytes(),
			  .access = IBV_ACCESS_LOCAL_WRITE |
				    IBV_ACCESS_REMOTE_WRITE },
		},
		/* Each CQ must hold what two queues can have under way. */
		.cqs = { { .cqe = 2 * DEPTH, .channel = true },
			 { .cqe = 2 * DEPTH, .channel = true } },
		.qps = { qp, qp },
		.plan = {
			.port_num = lesson_port(),
			.channel = true,
			.mrs = s->mrs, .num_mrs = 2,
			.cqs = s->cqs, .num_cqs = 2,
			.qps = s->qps, .num_qps = 2,
			.log = log_failure, .log_arg = &s->heard,
		},
	};
}

static void check(struct ibv_context *context, const struct service *s)
{
	struct manager_lack lack;
	int err;

	err = manager_check(context, &s->plan, &lack);
	if (!err)
		say("  the device has all that the plan needs");
	else
		say("  %s: %s[%d] needs %s %llu, there is %llu",
		    errno_text(err), lack.of, lack.index, lack.limit,
		    (unsigned long long)lack.needed,
		    (unsigned long long)lack.available);
}

static void show_audit(const struct manager *m)
{
	struct manager_audit audit;
	int err;

	err = manager_audit(m, &audit);
	if (err)
		report(err, "manager_audit()");
	say("  %d alive: context %d, PD %d, MR %d, channel %d, "
	    "CQ %d, QP %d",
	    audit.total, audit.contexts, audit.pds, audit.mrs,
	    audit.channels, audit.cqs, audit.qps);
	if (audit.qps)
		say("  QP states: RESET %d, INIT %d, RTR %d, RTS %d, "
		    "ERR %d",
		    audit.qp_states[IBV_QPS_RESET],
		    audit.qp_states[IBV_QPS_INIT],
		    audit.qp_states[IBV_QPS_RTR],
		    audit.qp_states[IBV_QPS_RTS],
		    audit.qp_states[IBV_QPS_ERR]);
}

/* --- wrong orders --- */

static int pd_first(struct manager *m)
{
	return refused(EBUSY, ibv_dealloc_pd(manager_pd(m)));
}

static int cq_first(struct manager *m)
{
	return refused(EBUSY, ibv_destroy_cq(manager_cq(m, 0)));
}

static int channel_first(struct manager *m)
{
	return refused(EBUSY, ibv_destroy_comp_channel(manager_channel(m)));
}

/* A receive into the MR, never filled: work that is pending. */
static int leave_work(struct manager *m)
{
	return post_recv(manager_qp(m, 0), 1, manager_mr(m, 0));
}

static int mr_in_use(struct manager *m)
{
	return leave_work(m) ? EPROTO : manager_drop_mr(m, 0);
}

static int qp_in_use(struct manager *m)
{
	return leave_work(m) ? EPROTO : manager_drop_qp(m, 0);
}

/* For children, which their kernel cleans up after. */
static int context_first(struct manager *m)
{
	return ibv_close_device(manager_context(m));
}

static int memory_first(struct manager *m)
{
	free(manager_mr(m, 0)->addr);
	return manager_drop_mr(m, 0);
}

/* Breaking the QP flushes the receive, and that raises an event. */
static int cq_unacked(struct manager *m)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_comp_channel *channel = manager_channel(m);
	struct ibv_qp *qp = manager_qp(m, 0);
	void *cq_context;
	struct ibv_cq *cq;

	if (ibv_req_notify_cq(qp->recv_cq, 0) || leave_work(m) ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE) ||
	    !readable_within(channel->fd, 3000) ||
	    ibv_get_cq_event(channel, &cq, &cq_context) ||
	    manager_drop_qp(m, 0))
		return EPROTO;
	say("  ibv_destroy_cq(), one event not acknowledged ...");
	return ibv_destroy_cq(cq);
}

/* One wrong order, on as few objects as it takes. */
static const struct trial {
	const char *order;
	int (*attempt)(struct manager *m);
	bool child; /* undefined, or for ever */
	int mrs, cqs, qps;
} trials[] = {
	{ "PD before its MR", pd_first, false, 1, 0, 0 },
	{ "PD before its QP", pd_first, false, 0, 1, 1 },
	{ "CQ before its QP", cq_first, false, 0, 1, 1 },
	{ "channel before its CQ", channel_first, false, 0, 1, 0 },
	{ "MR, a receive into it pending", mr_in_use, false, 1, 1, 1 },
	{ "QP, a receive in it pending", qp_in_use, false, 1, 1, 1 },
	{ "CQ, an event not acknowledged", cq_unacked, true, 1, 1, 1 },
	{ "memory before its MR", memory_first, true, 1, 0, 0 },
	{ "context before all else", context_first, true, 1, 1, 1 },
};

struct attempt {
	const struct trial *trial;
	struct ibv_device *device;
};

static int try_order(void *arg)
{
	const struct attempt *attempt = arg;
	const struct trial *trial = attempt->trial;
	struct manager_audit before, after;
	static struct manager m; /* a child leaves it as it is */
	struct service s;
	char *memory;
	int err, answer;

	memory = page_alloc(2);
	if (!memory)
		return EPROTO;
	describe(&s, memory);
	s.plan.num_mrs = trial->mrs;
	s.plan.num_cqs = trial->cqs;
	s.plan.num_qps = trial->qps;
	s.qps[0].recv_cq = 0;
	err = manager_create(&m, attempt->device, &s.plan);
	if (err) {
		report(err, "manager_create(for \"%s\")", trial->order);
		free(memory);
		return EPROTO;
	}
	manager_audit(&m, &before);
	answer = trial->attempt(&m);
	if (trial->child)
		return answer;
	manager_audit(&m, &after);
	if (answer && after.total != before.total)
		report(EPROTO, "\"%s\" was refused, but not intact",
		       trial->order);
	err = manager_destroy(&m);
	if (err)
		report(err, "manager_destroy(after \"%s\")", trial->order);
	free(memory);
	return answer;
}

static const char *answer_of(struct child_result result)
{
	if (result.end == CHILD_TIMED_OUT)
		return "never returns";
	if (result.end == CHILD_KILLED)
		return "crashes";
	if (result.status == EPROTO)
		return "could not be tried";
	return result.status ? errno_text(result.status)
			     : "done, not refused";
}

static void wrong_orders(struct ibv_device *device)
{
	enum { COUNT = sizeof(trials) / sizeof(trials[0]) };
	struct child_result results[COUNT] = { 0 };
	int i;

	for (i = 0; i < COUNT; i++) {
		struct attempt attempt = { &trials[i], device };

		if (trials[i].child)
			results[i] = run_limited(3, try_order, &attempt);
		else
			results[i].status = try_order(&attempt);
	}
	for (i = 0; i < COUNT; i++)
		say("  %-30s | %s", trials[i].order, answer_of(results[i]));
}

/* --- each step made to fail --- */

/*
 * Creates what must fail, at most `files` files being opened (-1: any
 * number); 0 when it did and nothing is left, else 1.
 */
static int fail_step(const char *what, struct ibv_device *device,
		     struct service *s, int files)
{
	int fd = lowest_free_fd();
	struct manager_audit audit;
	struct rlimit usual;
	struct manager m;
	int err;

	say("  %s:", what);
	s->heard.failures = 0;
	err = files < 0 ? 0 : limit_files(files, &usual);
	if (err) {
		report(err, "setrlimit(RLIMIT_NOFILE)");
		return 1;
	}
	err = manager_create(&m, device, &s->plan);
	if (files >= 0)
		setrlimit(RLIMIT_NOFILE, &usual);
	manager_audit(&m, &audit);
	say("    %d objects left, %d files left open", audit.total,
	    lowest_free_fd() - fd);
	/* A second failure would be one of the teardown. */
	if (err && s->heard.failures == 1 && !audit.total &&
	    lowest_free_fd() == fd)
		return 0;
	report(EPROTO, "%s: creation, or its undoing", what);
	if (!err)
		manager_destroy(&m);
	return 1;
}

struct pd_trial {
	struct ibv_device *device;
	struct service *service;
};

/* In a child: takes every PD of the device, and then creation needs one. */
static int take_all_pds(void *arg)
{
	struct pd_trial *trial = arg;
	struct ibv_context *context = ibv_open_device(trial->device);

	if (!context)
		return 1;
	while (ibv_alloc_pd(context))
		;
	return fail_step("no PD is left", trial->device, trial->service,
			 -1);
}

static void fail_pd(struct ibv_device *device, struct service *s)
{
	struct pd_trial trial = { device, s };
	struct child_result child;

	/* A device of the kernel is there for other programs too. */
	if (!access(device->ibdev_path, F_OK)) {
		say("  no PD is left: not tried, others need them too");
		return;
	}
	child = run_limited(20, take_all_pds, &trial);
	if (child.end == CHILD_TIMED_OUT)
		say("  no PD is left: not within 20 seconds");
	else if (child.end == CHILD_KILLED || child.status)
		report(EPROTO, "no PD is left: %d", child.status);
}

static void each_step_fails(struct ibv_context *context, char *memory)
{
	struct ibv_device *device = context->device;
	struct ibv_device_attr has;
	struct service s;
	int err, files = 0;

	err = ibv_query_device(context, &has);
	if (err) {
		report(err, "ibv_query_device(context)");
		return;
	}
	describe(&s, memory);
	fail_step("no file may be opened", device, &s, files);
	fail_pd(device, &s);

	describe(&s, memory);
	s.mrs[1].addr = NULL;
	fail_step("memory at address 0, where none is", device, &s, -1);

	describe(&s, memory);
	while (files++ < 16 && !strstr(s.heard.call, "channel"))
		fail_step("one file more may be opened", device, &s, files);

	describe(&s, memory);
	s.cqs[1].cqe = has.max_cqe + 1;
	fail_step("cqe above max_cqe", device, &s, -1);

	describe(&s, memory);
	s.qps[1].cap.max_send_wr = has.max_qp_wr + 1;
	fail_step("max_send_wr above max_qp_wr", device, &s, -1);

	describe(&s, memory);
	s.plan.port_num = has.phys_port_cnt + 1;
	fail_step("a port that the device has not", device, &s, -1);
}

/* --- the lesson --- */

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_device_attr has;
	struct ibv_mr *stray;
	struct service s;
	struct manager m;
	char *memory;
	int err, index;

	lesson_begin("06_lifecycle", "The whole life of the objects", argc,
		     argv);

	step("open");
	context = lesson_open();
	if (!context)
		return lesson_end();
	memory = page_alloc(2);
	if (!memory)
		goto close_device;

	step("check");
	describe(&s, memory);
	check(context, &s);

	step("check-fails");
	err = ibv_query_device(context, &has);
	if (err) {
		report(err, "ibv_query_device(context)");
		goto free_memory;
	}
	s.qps[1].cap.max_recv_sge = has.max_sge + 1;
	check(context, &s);
	describe(&s, memory);
	s.cqs[0].cqe = DEPTH;
	check(context, &s);

	step("create");
	describe(&s, memory);
	err = manager_create(&m, context->device, &s.plan);
	if (err) {
		report(err, "manager_create()");
		goto free_memory;
	}

	step("audit");
	show_audit(&m);

	step("one-more");
	err = manager_add_qp(&m, &s.qps[0], &index);
	if (err) {
		report(err, "manager_add_qp()");
		goto destroy;
	}
	say("  a third peer has come: qps[%d]", index);
	show_audit(&m);
	err = manager_drop_qp(&m, index);
	if (err)
		report(err, "manager_drop_qp(%d)", index);

	step("wrong-orders");
	wrong_orders(context->device);

	step("each-step-fails");
	each_step_fails(context, memory);

	step("stray");
	stray = ibv_reg_mr(manager_pd(&m), memory, page_bytes(), 0);
	if (!stray) {
		report(errno, "ibv_reg_mr(stray)");
		goto destroy;
	}
	err = manager_destroy(&m);
	say("  manager_destroy() = %s", errno_text(err));
	if (!err)
		report(EPROTO, "manager_destroy() lost a stray MR");
	show_audit(&m);

	step("stray-gone");
	err = ibv_dereg_mr(stray);
	if (err)
		report(err, "ibv_dereg_mr(stray)");

destroy:
	step("destroy");
	err = manager_destroy(&m);
	if (err)
		report(err, "manager_destroy()");
	show_audit(&m);

	step("destroy-again");
	say("  once more: %d, and of NULL: %d", manager_destroy(&m),
	    manager_destroy(NULL));

free_memory:
	step("close");
	free(memory);
close_device:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device(context)");
	return lesson_end();
}
