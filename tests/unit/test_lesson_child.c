/* SPDX-License-Identifier: MIT */
/* Children under a time limit: each way that one can end. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/lesson/internal.h"

static int gives(void *arg)
{
	return *(int *)arg;
}

static int crashes(void *arg)
{
	(void)arg;
	signal(SIGSEGV, SIG_DFL); /* not the sanitizer's handler */
	raise(SIGSEGV);
	return 0;
}

static int hangs(void *arg)
{
	(void)arg;
	signal(SIGTERM, SIG_IGN); /* only SIGKILL ends it */
	for (;;)
		pause();
	return 0;
}

static int exits(void *arg)
{
	(void)arg;
	_exit(3);
	return 0;
}

/* Says its own number, through memory that outlives nothing. */
static int writes_pid(void *arg)
{
	pid_t self = getpid();

	return write(*(int *)arg, &self, sizeof(self)) != sizeof(self);
}

static void assert_no_children(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void a_value_comes_back(void **state)
{
	int values[] = { 0, 1, 256, -1 };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct child_result result = run_limited(30, gives, &values[i]);

		assert_int_equal(result.end, CHILD_EXITED);
		assert_int_equal(result.status, values[i]);
	}
	assert_no_children();
}

static void an_exit_in_the_midst_is_seen(void **state)
{
	struct child_result result = run_limited(30, exits, NULL);

	(void)state;
	assert_int_equal(result.end, CHILD_EXITED);
	assert_int_equal(result.status, 3);
}

static void a_crash_is_seen(void **state)
{
	struct child_result result = run_limited(30, crashes, NULL);

	(void)state;
	assert_int_equal(result.end, CHILD_KILLED);
	assert_int_equal(result.status, SIGSEGV);
	assert_no_children();
}

static void a_hang_is_ended(void **state)
{
	double start = seconds_now();
	struct child_result result = run_limited(1, hangs, NULL);

	(void)state;
	assert_int_equal(result.end, CHILD_TIMED_OUT);
	assert_true(seconds_now() - start >= 1.0);
	assert_no_children();
}

static void it_is_another_process(void **state)
{
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(run_limited(30, writes_pid, &ends[1]).status, 0);
	assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
	assert_int_not_equal(child, getpid());
	assert_int_equal(kill(child, 0), -1); /* and it is gone */
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_comes_back),
		cmocka_unit_test(an_exit_in_the_midst_is_seen),
		cmocka_unit_test(a_crash_is_seen),
		cmocka_unit_test(a_hang_is_ended),
		cmocka_unit_test(it_is_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
