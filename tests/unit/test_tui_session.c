/* SPDX-License-Identifier: MIT */
/*
 * A session with children that behave, misbehave and die. The children are
 * this program itself, started anew with the name of what to do.
 */
#include "tui/session.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/trace/format.h"

/* --- children ------------------------------------------------------------- */

static int channel;

static void say_line(const char *line)
{
	size_t length = strlen(line);

	while (length) {
		ssize_t sent = write(channel, line, length);

		if (sent <= 0)
			_exit(99);
		line += sent;
		length -= (size_t)sent;
	}
}

static void say_hello(void)
{
	say_line("{\"v\":1,\"ev\":\"hello\",\"pid\":1,\"exe\":\"x\"}\n");
}

static void say_enter(int seq, bool stop)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "{\"ev\":\"enter\",\"seq\":%d,\"tid\":1,\"stop\":%s,"
		 "\"call\":\"ibv_alloc_pd\",\"args\":{\"context\":\"ctx0\"}}\n",
		 seq, stop ? "true" : "false");
	say_line(line);
}

static void say_ret(int seq, int count)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "{\"ev\":\"ret\",\"seq\":%d,\"tid\":1,"
		 "\"call\":\"ibv_alloc_pd\",\"args\":{\"context\":\"ctx0\"},"
		 "\"ok\":true,\"ret\":\"pd%d\",\"err\":0,\"out\":{},"
		 "\"count\":%d}\n",
		 seq, seq, count);
	say_line(line);
}

/* The next command, without its newline. */
static void hear(char *command, size_t size)
{
	size_t used = 0;
	char c;

	while (read(channel, &c, 1) == 1 && c != '\n')
		if (used + 1 < size)
			command[used++] = c;
	command[used] = '\0';
}

/* Three calls; prints what it was told at each. */
static int child_behaves(void)
{
	char command[100];

	say_hello();
	for (int seq = 1; seq <= 3; seq++) {
		say_enter(seq, true);
		hear(command, sizeof(command));
		printf("told %s\n", command);
		fflush(stdout);
		say_ret(seq, 1);
	}
	say_line("{\"ev\":\"bye\"}\n");
	return 7;
}

static int child_crashes(void)
{
	say_hello();
	say_enter(1, false);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

static int child_talks_nonsense(void)
{
	say_hello();
	for (int i = 0; i < 100000; i++)
		if (write(channel, "nonsense\n", 9) < 0)
			break;
	return 3;
}

static int child_makes_mistakes(void)
{
	char *line = malloc(2 * TRACE_LINE_MAX);

	say_hello();
	say_enter(1, false);
	say_line("{\"ev\":\"what\"}\n");
	say_enter(1, false);
	say_enter(0, false);
	say_line("\xff\xfe{}\n");
	memset(line, 'x', 2 * TRACE_LINE_MAX);
	line[2 * TRACE_LINE_MAX - 2] = '\n';
	line[2 * TRACE_LINE_MAX - 1] = '\0';
	say_line(line);
	say_ret(1, 1);
	say_ret(1, 511);
	free(line);
	return 0;
}

/* Bytes without an end of line, for as long as anybody listens. */
static int child_never_ends_a_line(void)
{
	static char bytes[4096];

	say_hello();
	memset(bytes, 'x', sizeof(bytes));
	while (write(channel, bytes, sizeof(bytes)) > 0)
		;
	return 4;
}

static int child_floods(void)
{
	for (int i = 0; i < 200000; i++)
		printf("line %d\n", i);
	return 0;
}

static int child_hangs(void)
{
	signal(SIGTERM, SIG_IGN);
	say_hello();
	say_enter(1, false);
	for (;;)
		pause();
	return 0;
}

static int child_closes_its_channel(void)
{
	say_hello();
	say_enter(1, true);
	close(channel);
	for (;;)
		pause();
	return 0;
}

/* Leaves a fork behind that holds the channel and the output. */
static int child_forks(void)
{
	say_hello();
	printf("%d\n", getpid());
	fflush(stdout);
	if (fork() == 0)
		for (;;)
			pause();
	return 5;
}

static int child_prints_controls(void)
{
	printf("\033[1;31mred\033[0m\ttab\a\r\nno newline");
	fflush(stdout);
	return 0;
}

static int child_shows_environment(void)
{
	say_hello();
	printf("%s\n%s\n%s\n%d\n", getenv(TRACE_START_ENV),
	       getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none",
	       isatty(0) ? "tty" : "no tty", getsid(0) == getpid());
	return 0;
}

/* As plain programs do: no flush, and their output is theirs to buffer. */
static int child_prints_before_a_stop(void)
{
	char command[100];

	say_hello();
	for (int percent = 0; percent <= 100; percent += 50)
		printf("%d%%\r", percent);
	printf("\nbefore\n");
	say_enter(1, true);
	hear(command, sizeof(command));
	return 0;
}

static int child_stays(void)
{
	say_hello();
	say_enter(1, true);
	for (;;)
		pause();
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} children[] = {
	{ "stays", child_stays },
	{ "prints", child_prints_before_a_stop },
	{ "behaves", child_behaves },
	{ "crashes", child_crashes },
	{ "nonsense", child_talks_nonsense },
	{ "mistakes", child_makes_mistakes },
	{ "endless", child_never_ends_a_line },
	{ "floods", child_floods },
	{ "hangs", child_hangs },
	{ "closes", child_closes_its_channel },
	{ "forks", child_forks },
	{ "controls", child_prints_controls },
	{ "environment", child_shows_environment },
};

static int be_child(const char *name)
{
	/* Whatever goes wrong in a test, no child outlives it for long. */
	alarm(60);
	signal(SIGPIPE, SIG_IGN);
	if (getenv(TRACE_FD_ENV))
		channel = atoi(getenv(TRACE_FD_ENV));
	for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++)
		if (!strcmp(children[i].name, name))
			return children[i].run();
	return 98;
}

/* --- helpers -------------------------------------------------------------- */

static struct session *start(const char *name)
{
	char *argv[] = { "/proc/self/exe", "--child", (char *)name, NULL };
	struct session_options options = { .argv = argv };
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *why = NULL;
	struct session *session;

	assert_true(length > 0);
	path[length] = '\0';
	argv[0] = path;
	session = session_start(&options, &why);
	assert_non_null(session);
	assert_null(why);
	return session;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Dispatches until the state is `state`; fails after 20 seconds. */
static void wait_state(struct session *session, enum session_state state)
{
	double limit = seconds_now() + 20;

	while (session->state != state && seconds_now() < limit)
		session_wait(session, 100);
	assert_int_equal(session->state, state);
}

static void wait_output_end(struct session *session)
{
	while (session_wait(session, 0))
		;
}

static bool has_note(const struct session *session, const char *part)
{
	for (size_t i = 0; i < session->notes; i++)
		if (strstr(session->note[i], part))
			return true;
	return false;
}

/* --- tests ---------------------------------------------------------------- */

static void test_steps(void **state)
{
	struct session *session = start("behaves");

	(void)state;
	wait_state(session, SESSION_STOPPED);
	assert_int_equal(session->stopped_at->seq, 1);
	assert_string_equal(session_text(session), "stopped");
	session_go(session);
	assert_int_equal(session->state, SESSION_RUNNING);
	assert_null(session->stopped_at);
	session_go(session); /* not stopped: nothing happens */
	wait_state(session, SESSION_STOPPED);
	assert_int_equal(session->stopped_at->seq, 2);
	session_until(session, "mark");
	wait_state(session, SESSION_STOPPED);
	session_run(session);
	wait_state(session, SESSION_EXITED);
	wait_output_end(session);
	assert_int_equal(session->status, 7);
	assert_string_equal(session_text(session), "exited 7");
	assert_int_equal(session->events, 8);
	assert_int_equal(session->lines, 3);
	assert_string_equal(session->line[0], "told go");
	assert_string_equal(session->line[1], "told until mark");
	assert_string_equal(session->line[2], "told run");
	assert_int_equal(session->notes, 0);
	session_free(session);
}

static void test_crash(void **state)
{
	struct session *session = start("crashes");

	(void)state;
	wait_state(session, SESSION_KILLED);
	assert_int_equal(session->status, SIGSEGV);
	assert_string_equal(session_text(session), "killed SIGSEGV");
	/* What it said before is there. */
	assert_int_equal(session->events, 2);
	assert_true(has_note(session, "killed SIGSEGV"));
	session_free(session);
}

static void test_nonsense(void **state)
{
	struct session *session = start("nonsense");

	(void)state;
	wait_state(session, SESSION_EXITED);
	assert_true(has_note(session, "only nonsense"));
	assert_int_equal(session->status, 3);
	assert_int_equal(session->events, 1);
	session_free(session);
	session = start("endless");
	wait_state(session, SESSION_EXITED);
	assert_true(has_note(session, "only nonsense"));
	assert_int_equal(session->status, 4);
	session_free(session);
}

static void test_mistakes(void **state)
{
	struct session *session = start("mistakes");

	(void)state;
	wait_state(session, SESSION_EXITED);
	/* hello, enter, ret: what was right, and what was wrong is noted. */
	assert_int_equal(session->events, 3);
	assert_int_equal(session->event[1]->kind, EVENT_ENTER);
	assert_int_equal(session->event[2]->kind, EVENT_RET);
	assert_int_equal(session->event[2]->count, 512);
	assert_true(has_note(session, "seq 1 cannot be"));
	assert_true(has_note(session, "too long"));
	session_free(session);
}

static void test_flood(void **state)
{
	struct session *session = start("floods");
	char last[32];

	(void)state;
	wait_state(session, SESSION_EXITED);
	wait_output_end(session);
	assert_int_equal(session->lines, SESSION_LINES);
	assert_int_equal(session->lines_lost, 200000 - SESSION_LINES);
	snprintf(last, sizeof(last), "line %d", 199999);
	assert_string_equal(session->line[SESSION_LINES - 1], last);
	snprintf(last, sizeof(last), "line %d", 200000 - SESSION_LINES);
	assert_string_equal(session->line[0], last);
	/* It has not spoken: that is said. */
	assert_true(has_note(session, "made no event"));
	session_free(session);
}

/* Who dispatches sees every line, however fast they come. */
static void test_flood_seen(void **state)
{
	struct session *session = start("floods");
	unsigned long seen = 0;

	(void)state;
	for (;;) {
		bool any = session_wait(session, 5000);

		assert_true(seen >= session->lines_lost);
		seen = session->lines_lost + session->lines;
		if (!any && session->state == SESSION_EXITED)
			break;
	}
	assert_int_equal(seen, 200000);
	session_free(session);
}

static void test_hang(void **state)
{
	struct session *session = start("hangs");
	pid_t pid = session->pid;
	double limit = seconds_now() + 20;

	(void)state;
	while (session->running_seconds < 1 && seconds_now() < limit)
		session_wait(session, 1000);
	assert_int_equal(session->state, SESSION_RUNNING);
	assert_int_equal(session->events, 2);
	session_pause(session);
	session_pause(session);
	/* It ignores SIGTERM: it is ended all the same, and soon. */
	limit = seconds_now() + 3;
	session_free(session);
	assert_true(seconds_now() < limit);
	assert_int_equal(kill(pid, 0), -1);
}

static void test_closed_channel(void **state)
{
	struct session *session = start("closes");
	double limit = seconds_now() + 20;

	(void)state;
	while (!session->notes && seconds_now() < limit)
		session_wait(session, 1000);
	assert_true(has_note(session, "closed its event channel"));
	assert_int_equal(session->state, SESSION_RUNNING);
	session_free(session);
}

static void test_fork(void **state)
{
	struct session *session = start("forks");
	pid_t group;

	(void)state;
	/* The fork holds everything open; the end is seen all the same. */
	wait_state(session, SESSION_EXITED);
	assert_int_equal(session->status, 5);
	wait_output_end(session);
	assert_int_equal(session->lines, 1);
	group = atoi(session->line[0]);
	assert_true(group > 1);
	assert_int_equal(kill(-group, 0), 0);
	session_free(session);
	/* An orphan may be a zombie until init reaps it. */
	for (int i = 0; i < 200 && kill(-group, 0) == 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	assert_int_equal(kill(-group, 0), -1);
}

static void test_output_is_there_with_the_stop(void **state)
{
	struct session *session;
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);

	(void)state;
	if (terminal < 0) {
		/* Not skip(): in cmocka 1.1.5's TAP that is a "not ok". */
		print_message("# skipped: no pseudo-terminals here; the "
			      "session falls back to a pipe\n");
		return;
	}
	close(terminal);
	session = start("prints");
	wait_state(session, SESSION_STOPPED);
	assert_int_equal(session->lines, 2);
	assert_string_equal(session->line[0], "100%");
	assert_string_equal(session->line[1], "before");
	session_free(session);
}

/* A stepper that dies without a word takes its program along. */
static void test_no_program_outlives_the_stepper(void **state)
{
	struct session *session;
	int ends[2], status;
	pid_t stepper, program = 0;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	stepper = fork();
	if (stepper == 0) {
		session = start("stays");
		wait_state(session, SESSION_STOPPED);
		if (write(ends[1], &session->pid, sizeof(session->pid)) > 0)
			raise(SIGKILL);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &program, sizeof(program)),
			 sizeof(program));
	assert_int_equal(waitpid(stepper, &status, 0), stepper);
	assert_true(WIFSIGNALED(status));
	/* Ours by now; its alarm would be the end of it otherwise. */
	assert_int_equal(waitpid(program, &status, 0), program);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	close(ends[0]);
}

static void test_output_is_safe(void **state)
{
	struct session *session = start("controls");

	(void)state;
	wait_state(session, SESSION_EXITED);
	wait_output_end(session);
	assert_int_equal(session->lines, 2);
	assert_string_equal(session->line[0], "red     tab?");
	assert_string_equal(session->line[1], "no newline");
	assert_true(session->line_open);
	session_free(session);
}

static void test_environment(void **state)
{
	struct session *session;

	(void)state;
	session = start("environment");
	wait_state(session, SESSION_EXITED);
	wait_output_end(session);
	assert_int_equal(session->lines, 4);
	assert_string_equal(session->line[0], "stop");
	assert_string_equal(session->line[1], "none");
	assert_string_equal(session->line[2], "no tty");
	assert_string_equal(session->line[3], "1");
	assert_null(getenv(TRACE_FD_ENV));
	session_free(session);
}

static void test_cannot_start(void **state)
{
	char *argv[] = { "/no/such/program", NULL };
	struct session_options options = { .argv = argv };
	char *why = NULL;

	(void)state;
	assert_null(session_start(&options, &why));
	assert_non_null(strstr(why, "/no/such/program"));
	assert_non_null(strstr(why, "No such file"));
	free(why);
	argv[0] = "/bin/true";
	options.probe = "/no/such/library.so";
	assert_null(session_start(&options, &why));
	assert_non_null(strstr(why, "/no/such/library.so"));
	free(why);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_flood_seen),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_closed_channel),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_output_is_there_with_the_stop),
		cmocka_unit_test(test_no_program_outlives_the_stepper),
		cmocka_unit_test(test_output_is_safe),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_cannot_start),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return be_child(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
