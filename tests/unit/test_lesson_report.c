/* SPDX-License-Identifier: MIT */
/*
 * Reports, refusals and the status of a lesson; what it prints is read back
 * from files that stand in for its output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/lesson/internal.h"

static int saved[2];
static FILE *taken[2];

static int setup(void **state)
{
	(void)state;
	fflush(NULL);
	lesson_run.name = "99_x";
	lesson_run.failures = 0;
	lesson_run.misused = false;
	lesson_run.from = NULL;
	for (int fd = 1; fd <= 2; fd++) {
		saved[fd - 1] = dup(fd);
		taken[fd - 1] = tmpfile();
		dup2(fileno(taken[fd - 1]), fd);
	}
	return 0;
}

/* What was written to a descriptor since the test began. */
static const char *output(int fd)
{
	static char text[2][4096];
	ssize_t length;

	fflush(NULL);
	length = pread(fd, text[fd - 1], sizeof(text[0]) - 1, 0);
	text[fd - 1][length > 0 ? length : 0] = '\0';
	return text[fd - 1];
}

static int teardown(void **state)
{
	(void)state;
	fflush(NULL);
	for (int fd = 1; fd <= 2; fd++) {
		dup2(saved[fd - 1], fd);
		close(saved[fd - 1]);
		fclose(taken[fd - 1]);
	}
	return 0;
}

static int calls;

static int answers(int value)
{
	calls++;
	return value;
}

static int minus_one(int err)
{
	errno = err;
	return -1;
}

static void *null(int err)
{
	errno = err;
	return NULL;
}

static void errnos_have_names(void **state)
{
	(void)state;
	assert_string_equal(errno_text(EBUSY),
			    "EBUSY (Device or resource busy)");
	assert_string_equal(errno_text(4242), "errno 4242");
}

static void refusals_of_each_kind(void **state)
{
	void *made;

	(void)state;
	assert_int_equal(refused(EBUSY, answers(EBUSY)), EBUSY);
	assert_int_equal(refused(EINVAL, minus_one(EINVAL)), EINVAL);
	assert_int_equal(refused(ENOMEM, made = null(ENOMEM)), ENOMEM);
	assert_null(made);
	/* A device that says no without a reason. */
	assert_int_equal(refused(EINVAL, made = null(0)), EIO);
	assert_int_equal(lesson_run.failures, 0);
	assert_non_null(strstr(output(1), "  answers(EBUSY)\n"
					  "    refused: EBUSY (Device"));
	assert_non_null(strstr(output(1), "  made = null(ENOMEM)\n"));
}

static void another_refusal_is_no_failure(void **state)
{
	(void)state;
	assert_int_equal(refused(EINVAL, answers(ENOMEM)), ENOMEM);
	assert_non_null(strstr(output(1), "refused: ENOMEM"));
	assert_non_null(strstr(output(1), "other devices answer EINVAL"));
	assert_int_equal(lesson_end(), 0);
}

static void what_is_not_refused_fails(void **state)
{
	(void)state;
	calls = 0;
	assert_int_equal(refused(EBUSY, answers(0)), 0);
	assert_int_equal(calls, 1);
	assert_non_null(strstr(output(2), "99_x: answers(0): "));
	assert_non_null(strstr(output(2), "EBUSY"));
	assert_int_equal(lesson_end(), 1);
}

static void a_report_names_all(void **state)
{
	const char *first = "99_x: ibv_create_cq(cqe=0): EINVAL (Invalid "
			    "argument)\n";

	(void)state;
	report(EINVAL, "ibv_create_cq(cqe=%d)", 0);
	assert_int_equal(strncmp(output(2), first, strlen(first)), 0);
	/* The rules know this one; the advice is a line of its own. */
	assert_int_equal(strncmp(output(2) + strlen(first),
				 "99_x: hint: ", strlen("99_x: hint: ")),
			 0);
	assert_int_equal(lesson_end(), 1);
	assert_null(strstr(output(1), "everything was destroyed"));
}

static void a_good_end_says_so(void **state)
{
	(void)state;
	assert_int_equal(lesson_end(), 0);
	assert_string_equal(output(1),
			    "\n99_x: done, everything was destroyed\n");
	assert_string_equal(output(2), "");
}

static void a_completion_is_named(void **state)
{
	struct ibv_wc wc = { .wr_id = 7, .status = IBV_WC_RETRY_EXC_ERR };

	(void)state;
	report_wc(&wc, "the send");
	assert_non_null(strstr(output(2), "99_x: the send: "));
	assert_non_null(strstr(output(2), "wr_id 7"));
	assert_non_null(strstr(output(2), ibv_wc_status_str(wc.status)));
	assert_int_equal(lesson_end(), 1);
}

static void quiet_until_the_step(void **state)
{
	static const struct lesson_mark before = { "before", "x.c", 1 };
	static const struct lesson_mark here = { "here", "x.c", 2 };

	(void)state;
	lesson_run.from = "here";
	lesson_run.automatic = true;
	say("unheard");
	lesson_step(&before);
	refused(EBUSY, answers(EBUSY));
	assert_string_equal(output(1), "");
	lesson_step(&here);
	say("heard");
	assert_non_null(strstr(output(1), "-- here"));
	assert_non_null(strstr(output(1), "heard"));
	assert_null(strstr(output(1), "unheard"));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(errnos_have_names),
		test(refusals_of_each_kind),
		test(another_refusal_is_no_failure),
		test(what_is_not_refused_fails),
		test(a_report_names_all),
		test(a_good_end_says_so),
		test(a_completion_is_named),
		test(quiet_until_the_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
