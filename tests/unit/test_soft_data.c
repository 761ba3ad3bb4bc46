/* SPDX-License-Identifier: MIT */
/*
 * soft0 moves data: every opcode of RC and UC, each kind of local list,
 * sizes around the path MTU, and that nothing else is touched.
 */
#include <pthread.h>
#include <sched.h>
#include "tests/unit/soft_fixture.h"

static void fill_random(char *buf, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		buf[i] = (char)(rand_r(&seed) >> 8);
}

static void rc_send_carries_immediate_and_length(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	strcpy(p.a.buf, "hello");
	post_receive(&p.b, 100, 64, 77);
	sge = sge_of(&p.a, 0, 6);
	wr = send_wr(IBV_WR_SEND_WITH_IMM, &sge, &p.b, 0);
	wr.imm_data = 0x12345678;
	post(&p.a, &wr);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.qp_num, p.a.qp->qp_num);
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.byte_len, 6);
	assert_int_equal(wc.imm_data, 0x12345678);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.qp_num, p.b.qp->qp_num);
	assert_string_equal(p.b.buf + 100, "hello");
	pair_close(&p);
}

/* Sizes around the MTU and the engine's runs of packets. */
static const size_t sizes[] = {
	0,     1,     4,     1023,  1024,   1025,   2048,   4096,
	65535, 65536, 65537, 66560, 131072, 200001, 524288,
};

static void check_placed(const struct end *from, size_t from_at,
			 const struct end *to, size_t to_at, size_t length)
{
	assert_memory_equal(from->buf + from_at, to->buf + to_at, length);
	assert_int_equal(to->buf[to_at + length], 0);
	assert_int_equal(to->buf[to_at - 1], 0);
}

static void every_size(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct pair p;

	pair_init(&p, type);
	pair_open(&p);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		bool read = opcode == IBV_WR_RDMA_READ;
		struct end *from = read ? &p.b : &p.a;
		struct end *to = read ? &p.a : &p.b;
		struct ibv_sge sge = sge_of(&p.a, 64, sizes[i]);
		struct ibv_send_wr wr = send_wr(opcode, &sge, &p.b, 64);

		fill_random(from->buf, BUFFER, (unsigned int)i);
		memset(to->buf, 0, BUFFER);
		if (opcode == IBV_WR_SEND ||
		    opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			post_receive(&p.b, 64, sizes[i], 5);
		post(&p.a, &wr);
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
		if (opcode == IBV_WR_SEND ||
		    opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
			struct ibv_wc wc = wait_wc(p.b.cq);

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.byte_len, sizes[i]);
		}
		check_placed(from, 64, to, 64, sizes[i]);
	}
	pair_close(&p);
}

static void rc_sizes(void **state)
{
	(void)state;
	every_size(IBV_QPT_RC, IBV_WR_SEND);
	every_size(IBV_QPT_RC, IBV_WR_RDMA_WRITE);
	every_size(IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM);
	every_size(IBV_QPT_RC, IBV_WR_RDMA_READ);
}

static void uc_sizes(void **state)
{
	(void)state;
	every_size(IBV_QPT_UC, IBV_WR_SEND);
	every_size(IBV_QPT_UC, IBV_WR_RDMA_WRITE);
	every_size(IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM);
}

/* Section 5: byte_len is the RDMA length, the receive buffer untouched. */
static void write_with_imm_leaves_the_receive_buffer(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	strcpy(p.a.buf, "hello");
	post_receive(&p.b, 500, 1, 9);
	sge = sge_of(&p.a, 0, 6);
	wr = send_wr(IBV_WR_RDMA_WRITE_WITH_IMM, &sge, &p.b, 32);
	wr.imm_data = 42;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 6);
	assert_int_equal(wc.imm_data, 42);
	assert_int_equal(wc.wr_id, 9);
	assert_string_equal(p.b.buf + 32, "hello");
	assert_int_equal(p.b.buf[500], 0);
	pair_close(&p);
}

static void atomics(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	uint64_t *there, *here;
	struct ibv_wc wc;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	there = (uint64_t *)(void *)(p.b.buf + 64);
	here = (uint64_t *)(void *)p.a.buf;
	*there = 1000;
	sge = sge_of(&p.a, 0, 8);
	wr = send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, &p.b, 64);
	wr.wr.atomic.compare_add = 7;
	post(&p.a, &wr);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(*here, 1000);
	assert_int_equal(*there, 1007);

	wr = send_wr(IBV_WR_ATOMIC_CMP_AND_SWP, &sge, &p.b, 64);
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.swap = 5;
	post(&p.a, &wr);
	wc = wait_wc(p.a.cq);
	assert_int_equal(wc.opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*here, 1007);
	assert_int_equal(*there, 1007);
	wr.wr.atomic.compare_add = 1007;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(*here, 1007);
	assert_int_equal(*there, 5);
	pair_close(&p);
}

/* Section 4: an SGE of length 0 is skipped, its key not looked at. */
static void gather_and_scatter(void **state)
{
	struct pair p;
	struct ibv_sge from[4], to[3];
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv = { .sg_list = to, .num_sge = 3 }, *bad;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	memcpy(p.a.buf, "abcdefghij", 10);
	from[0] = sge_of(&p.a, 8, 2);
	from[1] = (struct ibv_sge){ 0, 0, 0 };
	from[2] = sge_of(&p.a, 0, 3);
	from[3] = sge_of(&p.a, 4, 1);
	to[0] = sge_of(&p.b, 50, 1);
	to[1] = sge_of(&p.b, 10, 4);
	to[2] = sge_of(&p.b, 30, 9);
	assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad), 0);
	wr = send_wr(IBV_WR_SEND, from, &p.b, 0);
	wr.num_sge = 4;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(p.b.cq).byte_len, 6);
	assert_memory_equal(p.b.buf + 50, "i\0", 2);
	assert_memory_equal(p.b.buf + 10, "jabc\0", 5);
	assert_memory_equal(p.b.buf + 30, "e\0", 2);
	pair_close(&p);
}

/* An inline buffer may be changed, and need be in no MR. */
static void inline_is_copied_when_posted(void **state)
{
	char word[8] = "inline";
	struct ibv_sge sge = { (uintptr_t)word, sizeof(word), 0 };
	struct ibv_send_wr wr;
	struct pair p;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	wr = send_wr(IBV_WR_SEND, &sge, &p.b, 0);
	wr.send_flags = IBV_SEND_INLINE;
	post(&p.a, &wr); /* no receive yet: it waits, RNR */
	memset(word, 'x', sizeof(word));
	post_receive(&p.b, 0, 64, 1);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.b.cq, IBV_WC_SUCCESS);
	assert_string_equal(p.b.buf, "inline");
	pair_close(&p);
}

static void zero_sges_is_an_empty_message(void **state)
{
	struct pair p;
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv = { .wr_id = 3 }, *bad;
	struct ibv_wc wc;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad), 0);
	wr = send_wr(IBV_WR_SEND, NULL, &p.b, 0);
	wr.num_sge = 0;
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	wc = wait_wc(p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 0);
	pair_close(&p);
}

static void a_qp_may_be_its_own_peer(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	p.a.attr.dest_qp_num = p.a.qp->qp_num;
	end_connect(&p, &p.a);
	strcpy(p.a.buf, "mirror");
	post_receive(&p.a, 100, 100, 1);
	sge = sge_of(&p.a, 0, 7);
	wr = send_wr(IBV_WR_SEND, &sge, &p.a, 0);
	post(&p.a, &wr);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	assert_string_equal(p.a.buf + 100, "mirror");
	pair_close(&p);
}

/* --- many QPs and threads ------------------------------------------------ */

#define MESSAGES 300

struct stream {
	struct pair p;
	unsigned int seed;
	const char *wrong;
};

/* Random sizes, each message checked where it arrived. */
static void *stream_main(void *arg)
{
	struct stream *s = arg;
	struct pair *p = &s->p;

	for (int i = 0; i < MESSAGES && !s->wrong; i++) {
		size_t length = (size_t)rand_r(&s->seed) % 100000;
		struct ibv_sge from = sge_of(&p->a, 0, length);
		struct ibv_sge to = sge_of(&p->b, 0, BUFFER);
		struct ibv_send_wr wr = send_wr(IBV_WR_SEND, &from, &p->b, 0),
				   *bad;
		struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 };
		struct ibv_recv_wr *bad_recv;
		struct ibv_wc sent = { 0 }, got = { 0 };

		fill_random(p->a.buf, length, s->seed);
		if (ibv_post_recv(p->b.qp, &recv, &bad_recv) ||
		    ibv_post_send(p->a.qp, &wr, &bad)) {
			s->wrong = "post";
			break;
		}
		while (!ibv_poll_cq(p->a.cq, 1, &sent))
			;
		while (!ibv_poll_cq(p->b.cq, 1, &got))
			;
		if (sent.status || got.status || got.byte_len != length)
			s->wrong = "completion";
		else if (memcmp(p->a.buf, p->b.buf, length))
			s->wrong = "data";
	}
	return NULL;
}

static void threads_with_a_qp_each(void **state)
{
	enum { THREADS = 4 };
	static struct stream streams[THREADS];
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		pair_init(&streams[i].p, i % 2 ? IBV_QPT_UC : IBV_QPT_RC);
		/* All of them within 8 MiB, an ordinary limit. */
		streams[i].p.a.registered = 100000;
		pair_open(&streams[i].p);
		streams[i].seed = (unsigned int)i;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, stream_main, &streams[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		assert_null(streams[i].wrong);
		pair_close(&streams[i].p);
	}
}

/* Several threads post to one QP while the main thread polls. */
static void *poster_main(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = sge_of(&p->a, 0, 8);
		struct ibv_send_wr wr =
			send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, &p->b, 0);
		struct ibv_send_wr *bad;

		wr.wr.atomic.compare_add = 1;
		while (ibv_post_send(p->a.qp, &wr, &bad))
			sched_yield(); /* full */
	}
	return NULL;
}

static void threads_that_share_a_qp(void **state)
{
	enum { THREADS = 3 };
	pthread_t threads[THREADS];
	struct pair p;
	uint64_t sum;

	(void)state;
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, poster_main, &p);
	for (int i = 0; i < THREADS * MESSAGES; i++)
		expect_wc(p.a.cq, IBV_WC_SUCCESS);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	memcpy(&sum, p.b.buf, sizeof(sum));
	assert_int_equal(sum, THREADS * MESSAGES);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rc_send_carries_immediate_and_length),
		cmocka_unit_test(rc_sizes),
		cmocka_unit_test(uc_sizes),
		cmocka_unit_test(write_with_imm_leaves_the_receive_buffer),
		cmocka_unit_test(atomics),
		cmocka_unit_test(gather_and_scatter),
		cmocka_unit_test(inline_is_copied_when_posted),
		cmocka_unit_test(zero_sges_is_an_empty_message),
		cmocka_unit_test(a_qp_may_be_its_own_peer),
		cmocka_unit_test(threads_with_a_qp_each),
		cmocka_unit_test(threads_that_share_a_qp),
	};

	return cmocka_run_group_tests_name("soft data", tests, NULL, NULL);
}
