/* SPDX-License-Identifier: MIT */
/*
 * Completion events and async events on soft0: one for each arming, counted
 * until acknowledged, gone with their object (section 1 of the
 * specification, the rows on unacked events).
 */
#include "tests/unit/soft_world.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#define LIMIT 5000 /* milliseconds; only a failing test waits so long */

struct notified {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* in ERR: each receive completes at once */
};

static void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static void make_notified(struct world *world, struct notified *it)
{
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);

	it->channel = ibv_create_comp_channel(world->context);
	assert_non_null(it->channel);
	it->cq = ibv_create_cq(world->context, 16, it, it->channel, 0);
	assert_non_null(it->cq);
	init.send_cq = init.recv_cq = it->cq;
	it->qp = ibv_create_qp(world->pd, &init);
	assert_non_null(it->qp);
	to_error(it->qp);
}

static void complete_one(struct notified *it)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	assert_int_equal(ibv_post_recv(it->qp, &wr, &bad), 0);
}

static bool readable(int fd, int milliseconds)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, milliseconds) == 1;
}

static void get_event(struct notified *it)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	assert_true(readable(it->channel->fd, LIMIT));
	assert_int_equal(ibv_get_cq_event(it->channel, &cq, &context), 0);
	assert_ptr_equal(cq, it->cq);
	assert_ptr_equal(context, it);
}

static void one_event_for_each_arming(void **state)
{
	struct notified it;

	make_notified(*state, &it);
	assert_int_equal(ibv_req_notify_cq(it.cq, 0), 0);
	complete_one(&it);
	get_event(&it);
	/* Not armed again: no event. */
	complete_one(&it);
	assert_false(readable(it.channel->fd, 0));
	ibv_ack_cq_events(it.cq, 1);
	assert_int_equal(ibv_destroy_qp(it.qp), 0);
	assert_int_equal(ibv_destroy_cq(it.cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(it.channel), 0);
}

/* Section 0: «ibv_get_cq_event: -1, errno» */
static void an_empty_channel_that_does_not_block(void **state)
{
	struct world *world = *state;
	struct ibv_comp_channel *channel =
		ibv_create_comp_channel(world->context);
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	fcntl(world->context->async_fd, F_SETFL, O_NONBLOCK);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	errno = 0;
	assert_int_equal(ibv_get_async_event(world->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

struct waiter {
	struct notified *it;
	pthread_t thread;
	bool returned;
};

static void *wait_for_event(void *argument)
{
	struct waiter *waiter = argument;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(waiter->it->channel, &cq, &context))
		return NULL;
	__atomic_store_n(&waiter->returned, true, __ATOMIC_RELEASE);
	return cq;
}

static void a_blocked_reader_is_woken(void **state)
{
	struct notified it;
	struct waiter waiter = { .it = &it };
	void *cq;

	make_notified(*state, &it);
	pthread_create(&waiter.thread, NULL, wait_for_event, &waiter);
	assert_int_equal(ibv_req_notify_cq(it.cq, 0), 0);
	complete_one(&it);
	pthread_join(waiter.thread, &cq);
	assert_ptr_equal(cq, it.cq);
	assert_false(readable(it.channel->fd, 0));
	ibv_ack_cq_events(it.cq, 1);
	assert_int_equal(ibv_destroy_qp(it.qp), 0);
	assert_int_equal(ibv_destroy_cq(it.cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(it.channel), 0);
}

/* The program never got it: it goes with the CQ, and nothing waits. */
static void an_event_that_nobody_got_goes_with_its_cq(void **state)
{
	struct notified it;

	make_notified(*state, &it);
	assert_int_equal(ibv_req_notify_cq(it.cq, 0), 0);
	complete_one(&it);
	assert_true(readable(it.channel->fd, LIMIT));
	assert_int_equal(ibv_destroy_qp(it.qp), 0);
	assert_int_equal(ibv_destroy_cq(it.cq), 0);
	assert_false(readable(it.channel->fd, 0));
	assert_int_equal(ibv_destroy_comp_channel(it.channel), 0);
}

static void *destroy_cq(void *argument)
{
	struct waiter *waiter = argument;
	intptr_t err = ibv_destroy_cq(waiter->it->cq);

	__atomic_store_n(&waiter->returned, true, __ATOMIC_RELEASE);
	return (void *)err;
}

static void *destroy_qp(void *argument)
{
	struct waiter *waiter = argument;
	intptr_t err = ibv_destroy_qp(waiter->it->qp);

	__atomic_store_n(&waiter->returned, true, __ATOMIC_RELEASE);
	return (void *)err;
}

/* The destroy has begun, and has had every chance to return, but has not. */
static void assert_blocked(struct waiter *waiter,
			   int (*gone)(struct notified *))
{
	int i = 0;

	while (!gone(waiter->it) && i++ < 10000000)
		sched_yield();
	assert_true(gone(waiter->it));
	for (i = 0; i < 1000; i++)
		sched_yield();
	assert_false(__atomic_load_n(&waiter->returned, __ATOMIC_ACQUIRE));
}

static int cq_gone(struct notified *it)
{
	return ibv_resize_cq(it->cq, 16) == ENOENT;
}

static int qp_gone(struct notified *it)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	return ibv_query_qp(it->qp, &attr, 0, &init) == ENOENT;
}

/* «destroy_cq with events got but not acked: blocks until acked» */
static void unacked_events_block_destroying_a_cq(void **state)
{
	struct notified it;
	struct waiter waiter = { .it = &it };
	void *err;

	make_notified(*state, &it);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(it.cq, 0), 0);
		complete_one(&it);
		get_event(&it);
	}
	assert_int_equal(ibv_destroy_qp(it.qp), 0);
	pthread_create(&waiter.thread, NULL, destroy_cq, &waiter);
	assert_blocked(&waiter, cq_gone);
	/* A channel whose last CQ is still being destroyed is referred to. */
	assert_refused(EBUSY, ibv_destroy_comp_channel(it.channel));
	ibv_ack_cq_events(it.cq, 1);
	assert_blocked(&waiter, cq_gone);
	ibv_ack_cq_events(it.cq, 1);
	pthread_join(waiter.thread, &err);
	assert_null(err);
	assert_int_equal(ibv_destroy_comp_channel(it.channel), 0);
}

static void get_drained(struct world *world, struct ibv_qp *qp,
			struct ibv_async_event *event)
{
	assert_true(readable(world->context->async_fd, LIMIT));
	assert_int_equal(ibv_get_async_event(world->context, event), 0);
	assert_int_equal(event->event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event->element.qp, qp);
}

/* A UD QP in SQD, which tells when it is drained. */
static struct ibv_qp *draining_qp(struct world *world)
{
	struct ibv_qp *qp = make_qp(world, IBV_QPT_UD);
	struct ibv_qp_attr attr = good_attr(world, qp);
	static const int masks[] = {
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		IBV_QP_STATE,
		IBV_QP_STATE | IBV_QP_SQ_PSN,
		IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
	};

	attr.en_sqd_async_notify = 1;
	for (int i = 0; i < 4; i++) {
		attr.qp_state = IBV_QPS_INIT + i;
		assert_int_equal(ibv_modify_qp(qp, &attr, masks[i]), 0);
	}
	return qp;
}

/* The same for destroy_qp and async events. */
static void unacked_events_block_destroying_a_qp(void **state)
{
	struct world *world = *state;
	struct notified it = { .qp = draining_qp(world) };
	struct waiter waiter = { .it = &it };
	struct ibv_async_event event;
	void *err;

	get_drained(world, it.qp, &event);
	pthread_create(&waiter.thread, NULL, destroy_qp, &waiter);
	assert_blocked(&waiter, qp_gone);
	ibv_ack_async_event(&event);
	pthread_join(waiter.thread, &err);
	assert_null(err);
}

static void an_async_event_goes_with_its_qp(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = draining_qp(world);

	assert_true(readable(world->context->async_fd, LIMIT));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_false(readable(world->context->async_fd, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(one_event_for_each_arming),
		in_world(an_empty_channel_that_does_not_block),
		in_world(a_blocked_reader_is_woken),
		in_world(an_event_that_nobody_got_goes_with_its_cq),
		in_world(unacked_events_block_destroying_a_cq),
		in_world(unacked_events_block_destroying_a_qp),
		in_world(an_async_event_goes_with_its_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
