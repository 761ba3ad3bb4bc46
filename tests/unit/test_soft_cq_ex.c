/* SPDX-License-Identifier: MIT */
/*
 * Extended CQs on soft0: polling step by step, every reader that can be
 * asked for, times, and what creation refuses.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include "tests/unit/soft_fixture.h"

#define EVERYTHING                                                     \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* A connected pair whose end b completes into an extended CQ. */
static struct ibv_cq_ex *open_ex(struct pair *p, enum ibv_qp_type type,
				 struct ibv_cq_init_attr_ex *init)
{
	struct ibv_qp_init_attr qp = {
		.cap = { .max_send_wr = 3,
			 .max_recv_wr = 15,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
	};
	struct ibv_cq_ex *cq;

	pair_init(p, type);
	pair_make(p);
	assert_int_equal(ibv_destroy_qp(p->b.qp), 0);
	assert_int_equal(ibv_destroy_cq(p->b.cq), 0);
	cq = ibv_create_cq_ex(p->context, init);
	assert_non_null(cq);
	p->b.cq = ibv_cq_ex_to_cq(cq);
	qp.send_cq = qp.recv_cq = p->b.cq;
	p->b.qp = ibv_create_qp(p->b.pd, &qp);
	assert_non_null(p->b.qp);
	p->a.attr.dest_qp_num = p->b.qp->qp_num;
	end_connect(p, &p->a);
	end_connect(p, &p->b);
	return cq;
}

static struct ibv_cq_ex *open_plain(struct pair *p)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 16, .wc_flags = EVERYTHING };

	return open_ex(p, IBV_QPT_RC, &init);
}

/* start_poll() that waits, ten seconds at most. */
static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	double limit = seconds() + 10;
	int err;

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT)
		if (seconds() > limit)
			fail_msg("no completion came");
	assert_int_equal(err, 0);
}

/* `count` messages of 1, 2, 3 ... bytes into receives 100, 101 ... */
static void send_some(struct pair *p, int count)
{
	for (int i = 0; i < count; i++) {
		post_receive(&p->b, 0, 64, 100 + (uint64_t)i);
		post_simple(&p->a, IBV_WR_SEND, 1 + (size_t)i, &p->b);
		expect_wc(p->a.cq, IBV_WC_SUCCESS);
	}
}

static void one_after_the_other(void **state)
{
	struct ibv_cq_ex *cq;
	struct pair p;

	(void)state;
	cq = open_plain(&p);
	assert_int_equal(cq->cqe, 31);
	send_some(&p, 3);
	start(cq);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(cq->wr_id, 100 + i);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		assert_int_equal(ibv_wc_read_byte_len(cq), 1 + i);
		assert_int_equal(ibv_wc_read_qp_num(cq), p.b.qp->qp_num);
		assert_int_equal(ibv_next_poll(cq), i < 2 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	/* An end in the middle leaves the rest. */
	send_some(&p, 2);
	start(cq);
	assert_int_equal(cq->wr_id, 100);
	ibv_end_poll(cq);
	start(cq);
	assert_int_equal(cq->wr_id, 101);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 0 }),
			 ENOENT);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){ 1 }),
			 EINVAL);
	pair_close(&p);
}

static void polled_the_plain_way_too(void **state)
{
	struct ibv_cq_ex *cq;
	struct pair p;

	(void)state;
	cq = open_plain(&p);
	send_some(&p, 2);
	assert_int_equal(wait_wc(p.b.cq).wr_id, 100);
	start(cq);
	assert_int_equal(cq->wr_id, 101);
	ibv_end_poll(cq);
	pair_close(&p);
}

static void what_a_datagram_says(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4, .wc_flags = EVERYTHING };
	struct ibv_cq_ex *cq;
	struct ibv_ah *ah;
	struct pair p;

	(void)state;
	cq = open_ex(&p, IBV_QPT_UD, &init);
	ah = ibv_create_ah(p.a.pd, &p.a.attr.ah_attr);
	post_receive(&p.b, 0, 128, 1);
	struct ibv_sge sge = sge_of(&p.a, 0, 8);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0xabcd,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.ud = { ah, p.b.qp->qp_num, QKEY },
	};
	post(&p.a, &wr);
	start(cq);
	assert_int_equal(ibv_wc_read_byte_len(cq), 48);
	assert_int_equal(ibv_wc_read_src_qp(cq), p.a.qp->qp_num);
	assert_int_equal(ibv_wc_read_imm_data(cq), 0xabcd);
	assert_int_equal(ibv_wc_read_wc_flags(cq),
			 IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	assert_int_equal(ibv_wc_read_sl(cq), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	pair_close(&p);
}

static void an_error_is_read(void **state)
{
	struct ibv_cq_ex *cq;
	struct pair p;

	(void)state;
	cq = open_plain(&p);
	post_receive(&p.b, 0, 4, 100);
	post_simple(&p.a, IBV_WR_SEND, 8, &p.b);
	start(cq);
	assert_int_equal(cq->status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(cq->wr_id, 100);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	ibv_end_poll(cq);
	pair_close(&p);
}

static void an_invalidated_key_is_read(void **state)
{
	struct ibv_cq_ex *cq;
	struct ibv_mw *mw;
	struct pair p;

	(void)state;
	cq = open_plain(&p);
	mw = ibv_alloc_mw(p.b.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV,
				  .invalidate_rkey = mw->rkey };
	post_receive(&p.b, 0, 4, 100);
	post(&p.a, &wr);
	start(cq);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	assert_int_equal(ibv_wc_read_invalidated_rkey(cq), mw->rkey);
	ibv_end_poll(cq);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_close(&p);
}

static uint64_t device_clock(struct pair *p)
{
	struct ibv_values_ex values = {
		.comp_mask = IBV_VALUES_MASK_RAW_CLOCK,
	};

	assert_int_equal(ibv_query_rt_values_ex(p->context, &values), 0);
	return (uint64_t)values.raw_clock.tv_sec * 1000000000 +
	       (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t wallclock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Taken between the posting and the completion of the sender, in ns. */
static void times_are_of_the_completion(void **state)
{
	struct ibv_device_attr_ex attr;
	uint64_t before, wall_before, after, wall_after;
	struct ibv_cq_ex *cq;
	struct pair p;

	(void)state;
	cq = open_plain(&p);
	assert_int_equal(ibv_query_device_ex(p.context, NULL, &attr), 0);
	assert_int_equal(attr.hca_core_clock, 1000000); /* kHz */
	assert_int_equal(attr.completion_timestamp_mask, UINT64_MAX);
	before = device_clock(&p);
	wall_before = wallclock();
	send_some(&p, 1);
	after = device_clock(&p);
	wall_after = wallclock();
	start(cq);
	assert_in_range(ibv_wc_read_completion_ts(cq), before, after);
	assert_in_range(ibv_wc_read_completion_wallclock_ns(cq), wall_before,
			wall_after);
	ibv_end_poll(cq);
	pair_close(&p);
}

static void unknown_values_are_refused(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_values_ex values = {
		.comp_mask = IBV_VALUES_MASK_RESERVED,
	};

	(void)state;
	assert_int_equal(ibv_query_rt_values_ex(context, &values), EINVAL);
	assert_int_equal(ibv_close_device(context), 0);
}

static void refused(struct ibv_context *context,
		    struct ibv_cq_init_attr_ex init, int err)
{
	errno = 0;
	assert_null(ibv_create_cq_ex(context, &init));
	assert_int_equal(errno, err);
}

#define INIT(...) ((struct ibv_cq_init_attr_ex){ __VA_ARGS__ })

static void what_creation_refuses(void **state)
{
	struct ibv_context *context = open_soft0();

	(void)state;
	refused(context, INIT(.cqe = 0), EINVAL);
	refused(context, INIT(.cqe = 32768), EINVAL);
	refused(context, INIT(.cqe = UINT32_MAX), EINVAL);
	refused(context, INIT(.cqe = 4, .comp_vector = 1), EINVAL);
	refused(context, INIT(.cqe = 4, .comp_mask = 1u << 31), EINVAL);
	refused(context, INIT(.cqe = 4, .wc_flags = IBV_WC_EX_WITH_CVLAN),
		EOPNOTSUPP);
	refused(context, INIT(.cqe = 4, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG),
		EOPNOTSUPP);
	refused(context, INIT(.cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO),
		EOPNOTSUPP);
	refused(context, INIT(.cqe = 4, .wc_flags = UINT64_C(1) << 40),
		EOPNOTSUPP);
	refused(context,
		INIT(.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		     .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN),
		EOPNOTSUPP);
	refused(context,
		INIT(.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		     .flags = 1u << 30),
		EOPNOTSUPP);
	/* Flags that the mask does not name are not looked at. */
	struct ibv_cq_init_attr_ex init = INIT(.cqe = 4, .flags = 1u << 30);
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &init);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* Channel, context pointer, resizing: as with any CQ. */
static void it_is_a_cq_like_any(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4, .wc_flags = EVERYTHING };
	struct ibv_context *context = open_soft0();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq_ex *cq;

	(void)state;
	init.channel = channel;
	init.cq_context = &init;
	cq = ibv_create_cq_ex(context, &init);
	assert_non_null(cq);
	assert_ptr_equal(cq->context, context);
	assert_ptr_equal(cq->channel, channel);
	assert_ptr_equal(cq->cq_context, &init);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 20), 0);
	assert_int_equal(cq->cqe, 31);
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* Polling frees the places of the sends that it tells of, and no more. */
static void polling_frees_the_send_queue(void **state)
{
	struct ibv_cq_ex *cq;
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	(void)state;
	cq = open_plain(&p);
	sge = sge_of(&p.b, 0, 8);
	wr = send_wr(IBV_WR_RDMA_WRITE, &sge, &p.a, 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < 3; i++)
		post(&p.b, &wr);
	assert_int_equal(ibv_post_send(p.b.qp, &wr, &bad), ENOMEM);
	start(cq);
	/* A verb between start and end is no trouble. */
	assert_int_equal(ibv_post_send(p.b.qp, &wr, &bad), 0);
	assert_int_equal(ibv_post_send(p.b.qp, &wr, &bad), ENOMEM);
	assert_int_equal(state_of(&p.b), IBV_QPS_RTS);
	ibv_end_poll(cq);
	for (int i = 0; i < 3; i++)
		expect_wc(p.b.cq, IBV_WC_SUCCESS);
	pair_close(&p);
}

#define MESSAGES 200

struct poller {
	struct ibv_cq_ex *cq;
	int *left; /* atomic */
	int got, troubles;
};

static void *poll_some(void *argument)
{
	struct poller *poller = argument;
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };

	while (__atomic_load_n(poller->left, __ATOMIC_RELAXED) > 0) {
		if (ibv_start_poll(poller->cq, &attr))
			continue;
		do {
			uint64_t wr_id = poller->cq->wr_id;

			/* Nobody else moves on meanwhile. */
			sched_yield();
			if (poller->cq->wr_id != wr_id ||
			    ibv_wc_read_byte_len(poller->cq) != wr_id)
				poller->troubles++;
			poller->got++;
			__atomic_sub_fetch(poller->left, 1, __ATOMIC_RELAXED);
		} while (!ibv_next_poll(poller->cq));
		ibv_end_poll(poller->cq);
	}
	return NULL;
}

static void threads_take_turns(void **state)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 255,
					    .wc_flags = EVERYTHING };
	struct poller poller[2];
	pthread_t thread[2];
	int left = MESSAGES;
	struct pair p;

	(void)state;
	struct ibv_cq_ex *cq = open_ex(&p, IBV_QPT_RC, &init);
	for (int i = 0; i < 2; i++) {
		poller[i] = (struct poller){ .cq = cq, .left = &left };
		assert_int_equal(
			pthread_create(&thread[i], NULL, poll_some, &poller[i]),
			0);
	}
	for (int i = 0; i < MESSAGES; i++) {
		post_receive(&p.b, 0, 1024, 1 + (uint64_t)i);
		post_simple(&p.a, IBV_WR_SEND, 1 + (size_t)i, &p.b);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(poller[0].troubles + poller[1].troubles, 0);
	assert_int_equal(poller[0].got + poller[1].got, MESSAGES);
	pair_close(&p);
}

static void for_a_single_thread(void **state)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16,
		.wc_flags = EVERYTHING,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *cq;
	struct pair p;

	(void)state;
	cq = open_ex(&p, IBV_QPT_RC, &init);
	send_some(&p, 2);
	start(cq);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 101);
	ibv_end_poll(cq);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(polled_the_plain_way_too),
		cmocka_unit_test(what_a_datagram_says),
		cmocka_unit_test(an_error_is_read),
		cmocka_unit_test(an_invalidated_key_is_read),
		cmocka_unit_test(times_are_of_the_completion),
		cmocka_unit_test(unknown_values_are_refused),
		cmocka_unit_test(what_creation_refuses),
		cmocka_unit_test(it_is_a_cq_like_any),
		cmocka_unit_test(polling_frees_the_send_queue),
		cmocka_unit_test(threads_take_turns),
		cmocka_unit_test(for_a_single_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
