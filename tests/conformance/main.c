/* SPDX-License-Identifier: MIT */
/*
 * Runs the cases, each in a process of its own: a crash or a hang is an
 * answer like others. --help has the options.
 */
#include "tests/conformance/run.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/rules/rules.h"
#include "tests/conformance/conform.h"

const char *device_name = "soft0";
static const char *pattern = "*";
static int limit_s = 15;
static enum { RUN, LIST, TABLE } what = RUN;
static int answer_fd; /* the case's process: where its answer goes */

const char *call_name(int err)
{
	return err ? rules_errno_name(err) : "ok";
}

const char *wc_name(int status)
{
	return status == NOTHING ? "nothing" : rules_wc_status(status);
}

void answer(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vdprintf(answer_fd, format, args);
	va_end(args);
	_exit(0);
}

void answer_call(int err)
{
	answer("%s", call_name(err));
}

void answer_pointer(const void *ptr)
{
	answer("%s", ptr ? "ok" : errno ? call_name(errno) : "NULL, errno 0");
}

void not_here(const char *name, int err)
{
	answer("not here: %s (%s)", name, call_name(err));
}

/* --- one case ----------------------------------------------------------- */

static void run_child(const struct rule *rule, int fd)
{
	const struct rlimit none = { 0, 0 };
	int null = open("/dev/null", O_WRONLY);

	/* What soft0 and libibverbs explain is not the answer. */
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	setrlimit(RLIMIT_CORE, &none);
	answer_fd = fd;
	errno = 0;
	rule->run(rule);
	answer("the case has no answer");
}

/* A case that is running. */
struct job {
	const struct rule *rule;
	pid_t pid;
	int fd;
	uint64_t end; /* when its time is up */
};

static int start_job(struct job *job, const struct rule *rule)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC)) {
		fprintf(stderr, "conformance: pipe: %s\n", strerror(errno));
		return 1;
	}
	fflush(stdout);
	*job = (struct job){
		.rule = rule,
		.pid = fork(),
		.fd = fds[0],
		.end = now_ms() + (uint64_t)limit_s * 1000,
	};
	if (!job->pid)
		run_child(rule, fds[1]);
	close(fds[1]);
	if (job->pid < 0) {
		fprintf(stderr, "conformance: fork: %s\n", strerror(errno));
		close(fds[0]);
		return 1;
	}
	return 0;
}

/* Reads until its end or the limit; the answer, cut, in text. */
static bool read_answer(const struct job *job, char *text, size_t size)
{
	struct pollfd pollfd = { .fd = job->fd, .events = POLLIN };
	size_t used = 0;

	for (;;) {
		uint64_t now = now_ms();
		ssize_t got;

		/* What is there is read, though the time be up. */
		if (poll(&pollfd, 1,
			 now < job->end ? (int)(job->end - now) : 0) == 0)
			return false;
		got = read(job->fd, text + used, size - 1 - used);
		if (got <= 0)
			break;
		used += (size_t)got;
	}
	text[used] = '\0';
	return true;
}

static void say_death(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "signal %s",
			 sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

static void end_job(struct job *job)
{
	char text[256] = "";
	bool in_time = read_answer(job, text, sizeof(text));
	int status = 0;

	close(job->fd);
	if (!in_time) {
		kill(job->pid, SIGKILL);
		strcpy(text, "timeout");
	}
	waitpid(job->pid, &status, 0);
	if (in_time && !text[0])
		say_death(status, text, sizeof(text));
	printf("%s\t%s\n", job->rule->name, text);
	fflush(stdout);
	job->rule = NULL;
}

#define MAX_JOBS 64
static struct job jobs[MAX_JOBS]; /* a ring: the oldest is at next_job */
static int job_count = 1, next_job;

/* The oldest one's place is taken, when it has answered. */
static int run_case(const struct rule *rule)
{
	struct job *job = &jobs[next_job];

	if (job->rule)
		end_job(job);
	next_job = (next_job + 1) % job_count;
	return start_job(job, rule);
}

static void end_jobs(void)
{
	for (int i = 0; i < job_count; i++) {
		struct job *job = &jobs[(next_job + i) % job_count];

		if (job->rule)
			end_job(job);
	}
}

/* --- all of them -------------------------------------------------------- */

static const char *or_none(const char *text)
{
	return text ? text : "";
}

static int do_rule(const struct rule *rule)
{
	if (fnmatch(pattern, rule->name, 0))
		return -1;
	if (what == RUN)
		return run_case(rule);
	if (what == LIST)
		puts(rule->name);
	else
		printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", rule->name, rule->want,
		       rule->text, rule->spec, or_none(rule->rxe),
		       or_none(rule->siw), or_none(rule->family));
	return 0;
}

static int do_all(void)
{
	const struct rules tables[] = {
		destroy_rules,      create_mr_rules, create_rules,
		create_qp_rules,    query_rules,     modify_rules,
		transition_rules(), post_rules,      completion_rules,
		event_rules,        fault_rules,     silence_rules,
		datagram_rules,     window_rules,
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		for (size_t j = 0; j < tables[i].count; j++) {
			int done = do_rule(&tables[i].rules[j]);

			if (done > 0)
				return 1;
			any |= !done;
		}
	}
	end_jobs();
	if (any)
		return 0;
	fprintf(stderr,
		"conformance: there is no case %s; --list names those there are\n",
		pattern);
	return 2;
}

static int check_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool there = false;

	for (int i = 0; list && list[i]; i++)
		there |= !strcmp(ibv_get_device_name(list[i]), device_name);
	if (!there) {
		fprintf(stderr, "conformance: there is no device %s; there is:",
			device_name);
		for (int i = 0; list && list[i]; i++)
			fprintf(stderr, " %s", ibv_get_device_name(list[i]));
		fputc('\n', stderr);
	}
	if (list)
		ibv_free_device_list(list);
	return there ? 0 : 2;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'd':
		device_name = arg;
		return 0;
	case 'c':
		pattern = arg;
		return 0;
	case 'l':
		what = LIST;
		return 0;
	case 't':
		what = TABLE;
		return 0;
	case 's':
		limit_s = atoi(arg);
		if (limit_s < 1 || limit_s > 3600)
			argp_error(state, "--limit takes 1 to 3600, not '%s'",
				   arg);
		return 0;
	case 'j':
		job_count = atoi(arg);
		if (job_count < 1 || job_count > MAX_JOBS)
			argp_error(state, "--jobs takes 1 to %d, not '%s'",
				   MAX_JOBS, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "device", 'd', "NAME", 0, "the device; default soft0", 0 },
		{ "case", 'c', "PATTERN", 0, "only these, as a shell pattern",
		  0 },
		{ "list", 'l', NULL, 0, "names of the cases", 0 },
		{ "table", 't', NULL, 0,
		  "name, what soft0 answers, rule, specification and hardware, "
		  "why rxe, why siw may differ, family: with tabs between",
		  0 },
		{ "jobs", 'j', "NUMBER", 0, "cases at a time; default 1", 0 },
		{ "limit", 's', "SECONDS", 0, "for one case; default 15", 0 },
		{ NULL, 0, NULL, 0, NULL, 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Asks a device about each rule of verbs; prints a line "
		       "for each: its name, a tab, the answer.",
	};
	int err;

	argp_err_exit_status = 2;
	err = argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (err)
		return 2;
	if (what == RUN) {
		err = check_device();
		if (err)
			return err;
	}
	return do_all();
}
