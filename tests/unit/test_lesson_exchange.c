/* SPDX-License-Identifier: MIT */
/*
 * What two ends tell each other by TCP: the bytes, and strangers who send
 * others. A socket pair stands for the connection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/lesson/internal.h"

static const struct endpoint example = {
	.qp_num = 0x010203,
	.psn = 0xfffffe,
	.lid = 0x0506,
	.gid.raw = { [0] = 0xfe, [1] = 0x80, [15] = 0x99 },
	.mtu = IBV_MTU_1024,
	.addr = 0x1122334455667788,
	.rkey = 0xa0b0c0d0,
};

/* The format, written out: a change of it needs a new version. */
static const unsigned char bytes[LESSON_WIRE_SIZE] = {
	0,    1,    2,    3,                            /* qp_num */
	0,    0xff, 0xff, 0xfe,                         /* psn */
	0xa0, 0xb0, 0xc0, 0xd0,                         /* rkey */
	5,    6,                                        /* lid */
	0,    3,                                        /* mtu */
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* addr */
	0xfe, 0x80, 0,    0,    0,    0,    0,    0,    /* gid */
	0,    0,    0,    0,    0,    0,    0,    0x99,
};

static int near_end, far_end;

static int setup(void **state)
{
	int ends[2];

	(void)state;
	lesson_run.name = "99_x";
	lesson_run.failures = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return -1;
	near_end = ends[0];
	far_end = ends[1];
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(near_end);
	close(far_end);
	return 0;
}

static void say_as_peer(const void *text, size_t size)
{
	assert_int_equal(write(far_end, text, size), size);
}

static void peer_goes(void)
{
	shutdown(far_end, SHUT_WR);
}

static void endpoints_in_network_order(void **state)
{
	struct endpoint end;
	char packed[LESSON_WIRE_SIZE];

	(void)state;
	lesson_pack(&example, packed);
	assert_memory_equal(packed, bytes, sizeof(bytes));
	assert_true(lesson_unpack(bytes, &end));
	assert_int_equal(end.qp_num, example.qp_num);
	assert_int_equal(end.psn, example.psn);
	assert_int_equal(end.lid, example.lid);
	assert_int_equal(end.mtu, example.mtu);
	assert_int_equal(end.addr, example.addr);
	assert_int_equal(end.rkey, example.rkey);
	assert_memory_equal(&end.gid, &example.gid, sizeof(end.gid));
}

static void endpoints_out_of_range(void **state)
{
	static const struct {
		int at, value;
	} wrong[] = { { 0, 1 }, { 4, 1 }, { 15, 0 }, { 15, 6 }, { 14, 1 } };
	unsigned char copy[LESSON_WIRE_SIZE];
	struct endpoint end;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(copy, bytes, sizeof(copy));
		copy[wrong[i].at] = (unsigned char)wrong[i].value;
		assert_false(lesson_unpack(copy, &end));
	}
}

static void exchanged(void **state)
{
	char said[LESSON_WIRE_SIZE];
	struct endpoint end;

	(void)state;
	say_as_peer(bytes, sizeof(bytes));
	assert_int_equal(peer_exchange(near_end, &example, &end), 0);
	assert_int_equal(end.qp_num, example.qp_num);
	assert_int_equal(read(far_end, said, sizeof(said)), sizeof(said));
	assert_memory_equal(said, bytes, sizeof(said));
	assert_int_equal(lesson_run.failures, 0);
}

/* One end with a LID, one without: two networks. */
static void two_networks(void **state)
{
	struct endpoint self = example, end;

	(void)state;
	self.lid = 0;
	say_as_peer(bytes, sizeof(bytes));
	assert_int_equal(peer_exchange(near_end, &self, &end), EPROTO);
	assert_int_equal(lesson_run.failures, 1);
}

static void half_an_endpoint(void **state)
{
	struct endpoint end;

	(void)state;
	say_as_peer(bytes, sizeof(bytes) - 1);
	peer_goes();
	assert_int_equal(peer_exchange(near_end, &example, &end), ECONNRESET);
	assert_int_equal(lesson_run.failures, 1);
}

static void greeted(void **state)
{
	static const char greeting[] = "verbstep-peer 1\n";
	char said[sizeof(greeting)] = "";

	(void)state;
	say_as_peer(greeting, strlen(greeting));
	assert_int_equal(lesson_greet(near_end), 0);
	assert_int_equal(read(far_end, said, sizeof(said)), strlen(greeting));
	assert_string_equal(said, greeting);
}

static void strangers(void **state)
{
	static const char *const greetings[] = { "GET / HTTP/1.1\r\n",
						 "verbstep-peer 2\n",
						 "VERBSTEP-PEER 1\n" };

	for (int i = 0; i < 3; i++) {
		say_as_peer(greetings[i], 16);
		assert_int_equal(lesson_greet(near_end), EPROTO);
		assert_int_equal(lesson_run.failures, 1);
		teardown(state);
		setup(state);
	}
}

static void silent(void **state)
{
	double start = seconds_now();

	(void)state;
	say_as_peer("verbs", 5); /* and no more */
	assert_int_equal(lesson_greet(near_end), ETIMEDOUT);
	assert_true(seconds_now() - start > 4);
	assert_int_equal(lesson_run.failures, 1);
}

static void barriers(void **state)
{
	(void)state;
	say_as_peer(".", 1);
	assert_int_equal(peer_barrier(near_end), 0);
	say_as_peer("x", 1);
	assert_int_equal(peer_barrier(near_end), EPROTO);
	peer_goes();
	assert_int_equal(peer_barrier(near_end), ECONNRESET);
	close(far_end);
	/* Nobody reads: no SIGPIPE, an errno. */
	assert_int_equal(peer_barrier(near_end), EPIPE);
	far_end = -1;
	assert_int_equal(lesson_run.failures, 3);
}

int main(void)
{
#define with_peer(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints_in_network_order),
		cmocka_unit_test(endpoints_out_of_range),
		with_peer(exchanged),
		with_peer(two_networks),
		with_peer(half_an_endpoint),
		with_peer(greeted),
		with_peer(strangers),
		with_peer(silent),
		with_peer(barriers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
