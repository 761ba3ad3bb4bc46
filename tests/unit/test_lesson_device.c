/* SPDX-License-Identifier: MIT */
/*
 * Choosing a device and a GID, and connecting, on soft0: the one device that
 * is there wherever this runs.
 */
#include <endian.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/lesson/internal.h"

static struct ibv_context *context;

static int open_soft0(void **state)
{
	(void)state;
	lesson_run.name = "99_x";
	lesson_run.device = "soft0";
	context = lesson_open();
	return context ? 0 : -1;
}

static int close_soft0(void **state)
{
	(void)state;
	return ibv_close_device(context);
}

static void names_and_guids_match(void **state)
{
	struct ibv_device *device = context->device;
	uint64_t guid = be64toh(ibv_get_device_guid(device));
	char text[64];

	(void)state;
	assert_true(lesson_device_matches(device, "soft0"));
	assert_false(lesson_device_matches(device, "soft"));
	assert_false(lesson_device_matches(device, "soft00"));
	assert_false(lesson_device_matches(device, ""));
	snprintf(text, sizeof(text), "%016" PRIx64, guid);
	assert_true(lesson_device_matches(device, text));
	snprintf(text, sizeof(text), "0x%016" PRIX64, guid);
	assert_true(lesson_device_matches(device, text));
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x",
		 (unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
		 (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
	assert_true(lesson_device_matches(device, text));
	text[strlen(text) - 1] = '\0'; /* fifteen digits */
	assert_false(lesson_device_matches(device, text));
	snprintf(text, sizeof(text), "0%016" PRIx64, guid); /* 17 digits */
	assert_false(lesson_device_matches(device, text));
	snprintf(text, sizeof(text), "%016" PRIx64, guid ^ 1);
	assert_false(lesson_device_matches(device, text));
}

static struct ibv_gid_entry entry(uint32_t type, uint8_t first, uint8_t second,
				  uint8_t eleventh)
{
	struct ibv_gid_entry entry = { .gid_type = type };

	entry.gid.raw[0] = first;
	entry.gid.raw[1] = second;
	entry.gid.raw[10] = entry.gid.raw[11] = eleventh;
	entry.gid.raw[15] = 1;
	return entry;
}

static void gids_are_ranked(void **state)
{
	struct ibv_gid_entry v1 = entry(IBV_GID_TYPE_ROCE_V1, 0, 0, 0xff);
	struct ibv_gid_entry local = entry(IBV_GID_TYPE_ROCE_V2, 0xfe, 0x80, 0);
	struct ibv_gid_entry v6 = entry(IBV_GID_TYPE_ROCE_V2, 0x20, 1, 0);
	struct ibv_gid_entry v4 = entry(IBV_GID_TYPE_ROCE_V2, 0, 0, 0xff);

	(void)state;
	assert_true(lesson_gid_rank(&v1) > 0);
	assert_true(lesson_gid_rank(&local) > lesson_gid_rank(&v1));
	assert_true(lesson_gid_rank(&v6) > lesson_gid_rank(&local));
	assert_true(lesson_gid_rank(&v4) > lesson_gid_rank(&v6));
}

static struct ibv_gid_entry placed(struct ibv_gid_entry entry, uint32_t port,
				   uint32_t index)
{
	entry.port_num = port;
	entry.gid_index = index;
	return entry;
}

/* Tables as devices have them. */
static void the_best_gid_is_chosen(void **state)
{
	const struct ibv_gid_entry
		local_1 = entry(IBV_GID_TYPE_ROCE_V1, 0xfe, 0x80, 0),
		local_2 = entry(IBV_GID_TYPE_ROCE_V2, 0xfe, 0x80, 0),
		v4_1 = entry(IBV_GID_TYPE_ROCE_V1, 0, 0, 0xff),
		v4_2 = entry(IBV_GID_TYPE_ROCE_V2, 0, 0, 0xff),
		v6_2 = entry(IBV_GID_TYPE_ROCE_V2, 0x20, 1, 0),
		ib = entry(IBV_GID_TYPE_IB, 0xfe, 0x80, 0);
	const struct ibv_gid_entry rxe[] = { placed(local_2, 1, 0),
					     placed(v4_2, 1, 1) };
	const struct ibv_gid_entry both[] = {
		placed(local_1, 1, 0), placed(local_2, 1, 1),
		placed(v4_1, 1, 2),    placed(v4_2, 1, 3),
		placed(v4_2, 1, 5), /* equal to one before */
	};
	const struct ibv_gid_entry v6[] = { placed(local_2, 1, 0),
					    placed(v6_2, 1, 7),
					    placed(v4_1, 1, 8) };
	const struct ibv_gid_entry ports[] = { placed(v4_2, 1, 0),
					       placed(local_2, 2, 4),
					       placed(v4_2, 2, 300) };
	const struct ibv_gid_entry only_v1[] = { placed(local_1, 1, 6) };
	const struct ibv_gid_entry only_ib[] = { placed(ib, 1, 0) };

	(void)state;
	assert_int_equal(lesson_best_gid(rxe, 2, 1), 1);
	assert_int_equal(lesson_best_gid(both, 5, 1), 3);
	assert_int_equal(lesson_best_gid(v6, 3, 1), 7);
	assert_int_equal(lesson_best_gid(ports, 3, 1), 0);
	assert_int_equal(lesson_best_gid(ports, 3, 2), 4); /* 300: no uint8 */
	assert_int_equal(lesson_best_gid(only_v1, 1, 1), 6);
	assert_int_equal(lesson_best_gid(only_ib, 1, 1), 0);
	assert_int_equal(lesson_best_gid(NULL, 0, 1), 0);
}

static void pages_are_whole(void **state)
{
	char *memory = page_alloc(3);

	(void)state;
	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % page_bytes(), 0);
	for (size_t i = 0; i < 3 * page_bytes(); i++)
		assert_int_equal(memory[i], 0);
	free(memory);
}

static void a_pair_connects_and_writes(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *a = create_rc_qp(pd, cq, 4),
		      *b = create_rc_qp(pd, cq, 4);
	char *memory = page_alloc(2);
	struct ibv_mr *from, *to;
	struct ibv_wc wc;

	(void)state;
	from = ibv_reg_mr(pd, memory, page_bytes(), 0);
	to = ibv_reg_mr(pd, memory + page_bytes(), page_bytes(),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(connect_pair(a, b, IBV_ACCESS_REMOTE_WRITE), 0);
	strcpy(memory, "hello");
	assert_int_equal(write_and_wait(a, from, to, 6), IBV_WC_SUCCESS);
	assert_string_equal(memory + page_bytes(), "hello");
	assert_int_equal(wait_completion(cq, &wc, 0), 0);
	/* A target without the right: the status, not a failure of ours. */
	assert_int_equal(write_and_wait(b, to, from, 6), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(lesson_run.failures, 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_dereg_mr(from), 0);
	assert_int_equal(ibv_dereg_mr(to), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	free(memory);
}

static void a_failed_transition_is_reported(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *a = create_rc_qp(pd, cq, 4),
		      *b = create_rc_qp(pd, cq, 4);
	struct endpoint a_end, b_end;

	(void)state;
	assert_int_equal(endpoint_of(a, &a_end), 0);
	assert_int_equal(endpoint_of(b, &b_end), 0);
	assert_int_equal(a_end.qp_num, a->qp_num);
	assert_true(a_end.psn < 1 << 24);
	b_end.mtu = 0; /* no such MTU */
	assert_int_equal(connect_qp(a, &a_end, &b_end, 0), EINVAL);
	assert_int_equal(lesson_run.failures, 1);
	lesson_run.failures = 0;
	assert_int_equal(a->state, IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_guids_match),
		cmocka_unit_test(gids_are_ranked),
		cmocka_unit_test(the_best_gid_is_chosen),
		cmocka_unit_test(pages_are_whole),
		cmocka_unit_test(a_pair_connects_and_writes),
		cmocka_unit_test(a_failed_transition_is_reported),
	};

	return cmocka_run_group_tests(tests, open_soft0, close_soft0);
}
