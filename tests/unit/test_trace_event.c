/* SPDX-License-Identifier: MIT */
/*
 * Lines to events and events to words: what the format promises, and bytes
 * that are no event at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "common/trace/event.h"
#include "common/trace/format.h"

static struct event *parse(const char *line)
{
	char *why = NULL;
	struct event *event = event_parse(line, strlen(line), &why);

	if (!event)
		fail_msg("refused: %s\n%s", why, line);
	assert_null(why);
	return event;
}

/* The line is refused, with a reason that holds `word`. */
static void refused(const char *line, size_t length, const char *word)
{
	char *why = NULL;
	struct event *event = event_parse(line, length, &why);

	assert_null(event);
	assert_non_null(why);
	if (!strstr(why, word))
		fail_msg("\"%s\" does not say \"%s\"", why, word);
	for (const char *c = why; *c; c++)
		assert_true((unsigned char)*c >= 0x20);
	free(why);
}

#define REFUSED(line, word) refused(line, strlen(line), word)

/* `line` in words is `text`. */
static void says(const char *line, const char *text)
{
	struct event *event = parse(line);
	char *words = event_text(event);

	assert_string_equal(words, text);
	free(words);
	event_free(event);
}

static void reads_every_key(void **state)
{
	(void)state;
	struct event *event = parse(
		"{\"ev\":\"ret\",\"seq\":7,\"tid\":4711,\"call\":\"ibv_create_"
		"cq\",\"args\":{\"context\":\"ctx0\",\"cqe\":16,\"channel\":"
		"null,\"cap\":{\"a\":1,\"b\":[true,{\"c\":-5}]}},\"ok\":true,"
		"\"ret\":\"cq0\",\"err\":0,\"out\":{\"cqe\":31},\"count\":3,"
		"\"at\":{\"file\":\"a.c\",\"dir\":\"/x\",\"line\":95,"
		"\"func\":\"main\"}}\n");

	assert_int_equal(event->kind, EVENT_RET);
	assert_int_equal(event->seq, 7);
	assert_int_equal(event->tid, 4711);
	assert_string_equal(event->call, "ibv_create_cq");
	assert_int_equal(event->args.count, 6);
	assert_string_equal(event->args.field[0].name, "context");
	assert_string_equal(event_field(&event->args, "cqe"), "16");
	assert_string_equal(event_field(&event->args, "channel"), "NULL");
	assert_string_equal(event_field(&event->args, "cap.a"), "1");
	assert_string_equal(event_field(&event->args, "cap.b[0]"), "true");
	assert_string_equal(event_field(&event->args, "cap.b[1].c"), "-5");
	assert_null(event_field(&event->args, "cap"));
	assert_true(event->ok);
	assert_string_equal(event->ret, "cq0");
	assert_string_equal(event_field(&event->out, "cqe"), "31");
	assert_int_equal(event->count, 3);
	assert_string_equal(event->file, "a.c");
	assert_string_equal(event->dir, "/x");
	assert_int_equal(event->line, 95);
	assert_string_equal(event->func, "main");
	event_free(event);
}

static void reads_the_other_kinds(void **state)
{
	(void)state;
	struct event *event = parse("{\"v\":1,\"ev\":\"hello\",\"pid\":42,"
				    "\"exe\":\"/bin/x\",\"later\":[1]}");
	assert_int_equal(event->pid, 42);
	assert_string_equal(event->exe, "/bin/x");
	event_free(event);

	event = parse(
		"{\"ev\":\"mark\",\"seq\":8,\"stop\":true,\"id\":\"a-b\"}");
	assert_int_equal(event->kind, EVENT_MARK);
	assert_true(event->stop);
	assert_string_equal(event->call, "a-b");
	event_free(event);

	event = parse("{\"ev\":\"enter\",\"seq\":1,\"call\":\"ibv_x\"}");
	assert_int_equal(event->count, 1);
	assert_null(event->file);
	event_free(event);

	event = parse("{\"ev\":\"bye\"}");
	assert_int_equal(event->kind, EVENT_BYE);
	event_free(event);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	REFUSED("", "not JSON");
	REFUSED("hello\033[2J", "not JSON");
	REFUSED("[1]", "object");
	REFUSED("7", "not JSON");
	REFUSED("{}", "\"ev\"");
	REFUSED("{\"ev\":1}", "\"ev\"");
	REFUSED("{\"ev\":\"h\\ni\"}", "h?i");
	REFUSED("{\"ev\":\"hello\"}", "\"v\"");
	REFUSED("{\"ev\":\"hello\",\"v\":2}", "version 2");
	REFUSED("{\"ev\":\"enter\",\"call\":\"x\"}", "\"seq\"");
	REFUSED("{\"ev\":\"enter\",\"seq\":0,\"call\":\"x\"}", "\"seq\"");
	REFUSED("{\"ev\":\"enter\",\"seq\":1}", "\"call\"");
	REFUSED("{\"ev\":\"enter\",\"seq\":1,\"call\":7}", "\"call\"");
	REFUSED("{\"ev\":\"mark\",\"seq\":1,\"id\":\"\"}", "\"id\"");
	REFUSED("{\"ev\":\"ret\",\"seq\":1,\"call\":\"x\"}", "\"ok\"");
	REFUSED("{\"ev\":\"ret\",\"seq\":1,\"call\":\"x\",\"ok\":1}", "\"ok\"");
	REFUSED("{\"ev\":\"ret\",\"seq\":1,\"call\":\"x\",\"ok\":true,"
		"\"ret\":{}}",
		"\"ret\"");
	REFUSED("{\"ev\":\"enter\",\"seq\":1,\"call\":\"x\",\"args\":3}",
		"\"args\"");
	REFUSED("{\"ev\":\"bye\",\"ev\":\"bye\"}", "ev");
	REFUSED("{\"ev\":\"bye\"} x", "not JSON");
	REFUSED("{\"ev\":\"\xff\"}", "not JSON");
}

static void takes_any_bytes(void **state)
{
	static char big[TRACE_LINE_MAX + 2];
	char nul[] = "{\"ev\":\"b\0ye\"}";
	char *why;

	(void)state;
	refused(nul, sizeof(nul) - 1, "not JSON");
	REFUSED("{\"ev\":\"b\\u0000ye\"}", "not JSON");
	memset(big, '[', sizeof(big));
	refused(big, sizeof(big) - 1, "65537 bytes");
	refused(big, TRACE_LINE_MAX, "not JSON");

	/* Deep, but good JSON. */
	int n = snprintf(
		big, sizeof(big),
		"{\"ev\":\"enter\",\"seq\":1,\"call\":\"x\",\"args\":");
	for (int i = 0; i < 1000; i++)
		n += snprintf(big + n, sizeof(big) - (size_t)n, "{\"a\":");
	n += snprintf(big + n, sizeof(big) - (size_t)n, "1");
	memset(big + n, '}', 1001);
	refused(big, (size_t)n + 1001, "deep");

	/* Wide: one array of as many numbers as a line holds. */
	n = snprintf(
		big, sizeof(big),
		"{\"ev\":\"enter\",\"seq\":1,\"call\":\"x\",\"args\":{\"a\":"
		"[0");
	while (n < TRACE_LINE_MAX - 10)
		n += snprintf(big + n, sizeof(big) - (size_t)n, ",0");
	n += snprintf(big + n, sizeof(big) - (size_t)n, "]}}");
	refused(big, (size_t)n, "more than");

	/* No one asks why. */
	assert_null(event_parse("x", 1, NULL));
	/* Cut anywhere, a line is refused and never read past its end. */
	const char *line = "{\"ev\":\"mark\",\"seq\":8,\"id\":\"create-cq\"}";
	for (size_t cut = 0; cut < strlen(line); cut++) {
		char *copy = malloc(cut + 1);
		memcpy(copy, line, cut);
		why = NULL;
		assert_null(event_parse(copy, cut, &why));
		assert_non_null(why);
		free(why);
		free(copy);
	}
}

static void words_of_calls(void **state)
{
	(void)state;
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_alloc_pd\",\"args\":{"
	     "\"context\":\"ctx0\"},\"ok\":true,\"ret\":\"pd0\"}",
	     "ibv_alloc_pd(ctx0) = pd0");
	says("{\"ev\":\"enter\",\"seq\":1,\"call\":\"ibv_create_cq\",\"args\":{"
	     "\"context\":\"ctx0\",\"cqe\":16,\"cq_context\":null}}",
	     "ibv_create_cq(ctx0, cqe=16)");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_create_cq\",\"args\":{"
	     "\"context\":\"ctx0\",\"cqe\":16,\"cq_context\":null},\"ok\":true,"
	     "\"ret\":\"cq0\",\"out\":{\"cqe\":31}}",
	     "ibv_create_cq(ctx0, cqe=16) = cq0, cqe=31");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_dealloc_pd\",\"args\":{"
	     "\"pd\":\"pd0\"},\"ok\":false,\"ret\":16,\"err\":16}",
	     "ibv_dealloc_pd(pd0) = 16 EBUSY");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_alloc_pd\",\"args\":{"
	     "\"context\":\"ctx0\"},\"ok\":false,\"ret\":null,\"err\":12}",
	     "ibv_alloc_pd(ctx0) = NULL ENOMEM");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_ack_cq_events\",\"args\":"
	     "{\"cq\":\"cq0\",\"nevents\":2},\"ok\":true}",
	     "ibv_ack_cq_events(cq0, nevents=2)");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_query_x\",\"ok\":true,"
	     "\"ret\":0,\"out\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,"
	     "\"f\":6}}",
	     "ibv_query_x() = 0, a=1, b=2, c=3, d=4, ...");
	/* void, with the null that the probe gives */
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_free_device_list\","
	     "\"args\":{\"list\":\"0x5632468b7fe0\"},\"ok\":true,"
	     "\"ret\":null}",
	     "ibv_free_device_list(list=0x..b7fe0)");
	/* Neither is a pointer that would be cut. */
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_query_x\",\"args\":{"
	     "\"flags\":\"0x1f\"},\"ok\":true,\"ret\":0,\"out\":{"
	     "\"max\":\"0xffffffffffffffff\"}}",
	     "ibv_query_x(flags=0x1f) = 0, max=0xffffffffffffffff");
	says("{\"ev\":\"enter\",\"seq\":1,\"call\":\"ibv_reg_mr\",\"args\":{"
	     "\"pd\":\"pd0\",\"access\":\"IBV_ACCESS_LOCAL_WRITE|"
	     "IBV_ACCESS_REMOTE_READ\"}}",
	     "ibv_reg_mr(pd0, access=LOCAL_WRITE|REMOTE_READ)");
	says("{\"ev\":\"enter\",\"seq\":1,\"call\":\"a\\u001bb\",\"args\":{"
	     "\"t\":\"x\\ny\"}}",
	     "a?b(t=x?y)");
}

static void words_of_lists(void **state)
{
	(void)state;
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_post_send\",\"args\":{"
	     "\"qp\":\"qp0\",\"wr\":[{\"wr_id\":1,\"opcode\":\"IBV_WR_SEND\","
	     "\"send_flags\":\"IBV_SEND_SIGNALED\",\"sg_list\":[{\"addr\":"
	     "\"0x1\",\"length\":40,\"lkey\":7},{\"addr\":\"0x2\",\"length\":24,"
	     "\"lkey\":7}]}],\"bad_wr\":\"0x7f\"},\"ok\":true,\"ret\":0}",
	     "ibv_post_send(qp0, wr_id=1 SEND 64 B) = 0");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_post_recv\",\"args\":{"
	     "\"qp\":\"qp0\",\"wr\":[{\"wr_id\":1,\"sg_list\":[]},"
	     "{\"wr_id\":2},{\"wr_id\":3},{\"wr_id\":4},{\"wr_id\":5}]},"
	     "\"ok\":false,\"ret\":12,\"err\":12}",
	     "ibv_post_recv(qp0, wr_id=1, wr_id=2, wr_id=3, ... 2 more) = 12 "
	     "ENOMEM");
	/* What did not go into a line of the probe is counted. */
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_post_send\",\"args\":{"
	     "\"qp\":\"qp0\",\"wr\":[{\"wr_id\":1,\"opcode\":\"IBV_WR_SEND\","
	     "\"sg_list\":[{\"length\":40}],\"more\":2}],\"more\":70},"
	     "\"ok\":true,\"ret\":0}",
	     "ibv_post_send(qp0, wr_id=1 SEND 40+ B, ... 70 more) = 0");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_poll_cq\",\"args\":{"
	     "\"cq\":\"cq0\",\"num_entries\":1,\"wc\":\"0x7f\"},\"ok\":true,"
	     "\"ret\":0,\"count\":512}",
	     "ibv_poll_cq(cq0, 1) = 0  x512");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_poll_cq\",\"args\":{"
	     "\"cq\":\"cq0\",\"num_entries\":4},\"ok\":true,\"ret\":2,\"out\":{"
	     "\"wc\":[{\"wr_id\":1,\"status\":\"IBV_WC_SUCCESS\",\"opcode\":"
	     "\"IBV_WC_SEND\",\"byte_len\":64},{\"wr_id\":2,\"status\":"
	     "\"IBV_WC_REM_ACCESS_ERR\"}]}}",
	     "ibv_poll_cq(cq0, 4) = 2: wr_id=1 SUCCESS, wr_id=2 "
	     "REM_ACCESS_ERR");
	/* Of what is neither, what stands first. */
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_get_device_list\","
	     "\"ok\":true,\"ret\":\"0x5632468b7fe0\",\"out\":{\"devices\":[{"
	     "\"name\":\"soft0\"},{\"name\":\"mlx5_0\"}]}}",
	     "ibv_get_device_list() = 0x..b7fe0: soft0, mlx5_0");
	says("{\"ev\":\"ret\",\"seq\":1,\"call\":\"ibv_query_gid_table\","
	     "\"args\":{\"context\":\"ctx0\"},\"ok\":true,\"ret\":1,\"out\":{"
	     "\"entries\":[{\"gid\":\"fe80::1\",\"gid_index\":0}]}}",
	     "ibv_query_gid_table(ctx0) = 1: fe80::1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_key),
		cmocka_unit_test(reads_the_other_kinds),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(takes_any_bytes),
		cmocka_unit_test(words_of_calls),
		cmocka_unit_test(words_of_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
