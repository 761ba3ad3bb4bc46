/* SPDX-License-Identifier: MIT */
/*
 * The two ends of the event format: each line that the probe writes is an
 * event to the stepper's parser, and the graph that they fold into is what
 * the program really did.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/trace/format.h"
#include "common/trace/graph.h"

/* The build folder: this test is $(BUILD)/tests/unit/test_probe_events. */
static char build[PATH_MAX];

struct session {
	pid_t child;
	FILE *events;
};

static void become(const char *program, const char *argument, int fd)
{
	char path[PATH_MAX + 64], preload[2 * PATH_MAX + 64], number[16];

	snprintf(path, sizeof(path), "%s/tests/programs/%s", build, program);
	snprintf(preload, sizeof(preload),
		 "%s/libverbprobe.so %s/libsoftverbs.so", build, build);
	snprintf(number, sizeof(number), "%d", fd);
	setenv("LD_PRELOAD", preload, 1);
	setenv(TRACE_FD_ENV, number, 1);
	setenv(TRACE_START_ENV, "run", 1);
	if (!freopen("/dev/null", "w", stdout))
		_exit(126);
	execl(path, path, argument, NULL);
	_exit(127);
}

static struct session start(const char *program, const char *argument)
{
	struct session session;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	session.child = fork();
	assert_true(session.child >= 0);
	if (session.child == 0) {
		close(pair[0]);
		become(program, argument, pair[1]);
	}
	close(pair[1]);
	session.events = fdopen(pair[0], "r");
	assert_non_null(session.events);
	return session;
}

/* Everything that a program says, folded; the program must end well. */
static struct graph *fold(const char *program, const char *argument)
{
	static char line[TRACE_LINE_MAX + 2];
	struct session session = start(program, argument);
	struct graph *graph = graph_new();
	int status, lines = 0;

	assert_non_null(graph);
	while (fgets(line, sizeof(line), session.events)) {
		char *why = NULL;
		struct event *event = event_parse(line, strlen(line), &why);
		int err;

		if (!event)
			fail_msg("%s: %s", why, line);
		err = graph_apply(graph, event);
		if (err)
			fail_msg("%s: %s", strerror(err), line);
		if (event->kind == EVENT_BYE)
			assert_true(lines > 0);
		event_free(event);
		lines++;
	}
	fclose(session.events);
	assert_int_equal(waitpid(session.child, &status, 0), session.child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(lines > 10);
	return graph;
}

static void nothing_left(const struct graph *graph)
{
	for (int type = 0; type < RULES_OBJECTS; type++)
		assert_int_equal(graph->live[type], 0);
	for (uint32_t i = 0; i < graph->nodes; i++)
		assert_true(graph->node[i].state == GRAPH_DESTROYED ||
			    graph->node[i].state == GRAPH_FAILED);
}

static void hello(void **state)
{
	struct graph *graph = fold("hello_verbs", NULL);
	const struct graph_node *qp = graph_find(graph, "qp1");
	char *text = NULL;
	size_t size;
	FILE *report = open_memstream(&text, &size);

	(void)state;
	nothing_left(graph);
	assert_non_null(qp);
	assert_string_equal(graph->node[qp->parent[0]].id, "pd0");
	assert_string_equal(qp->file, "tests/programs/hello_verbs.c");
	assert_true(qp->line > 0);
	assert_int_equal(graph_report(graph, report), 0);
	fclose(report);
	assert_non_null(strstr(text, "ibv_dealloc_pd(pd0) = EBUSY"));
	assert_non_null(strstr(text, "held by mr0"));
	free(text);
	graph_free(graph);
}

static void every_case(void **state)
{
	static const char *const name[] = { "polls",   "many",    "refused",
					    "blocked", "threads", "marks",
					    "null",    "forks" };

	(void)state;
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
		struct graph *graph = fold("probe_cases", name[i]);

		nothing_left(graph);
		graph_free(graph);
	}
}

static void extended(void **state)
{
	static const char *const name[] = { "batch", "refused", "window",
					    "again" };

	(void)state;
	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
		struct graph *graph = fold("extended", name[i]);

		nothing_left(graph);
		graph_free(graph);
	}
}

static void places(void **state)
{
	struct graph *graph = fold("places", NULL);

	(void)state;
	nothing_left(graph);
	graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello),
		cmocka_unit_test(every_case),
		cmocka_unit_test(extended),
		cmocka_unit_test(places),
	};
	ssize_t length = readlink("/proc/self/exe", build, sizeof(build) - 1);

	if (length < 0)
		return 1;
	build[length] = '\0';
	for (int up = 0; up < 3; up++)
		*strrchr(build, '/') = '\0';
	return cmocka_run_group_tests_name("probe_events", tests, NULL, NULL);
}
