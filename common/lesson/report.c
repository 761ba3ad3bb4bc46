/* SPDX-License-Identifier: 0BSD */
/*
 * What went wrong, and what was meant to: failures go to stderr, refusals
 * that a lesson asked for are findings and go to stdout.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rules/rules.h"

/* Built without the rules, a report has no hint. */
#pragma weak rules_hint
#pragma weak rules_wc_hint

#define TEXT_SIZE 256

const char *errno_text(int err)
{
	static _Thread_local char text[TEXT_SIZE];
	const char *name = strerrorname_np(err);
	const char *meaning = strerrordesc_np(err);

	if (name && meaning)
		snprintf(text, sizeof(text), "%s (%s)", name, meaning);
	else
		snprintf(text, sizeof(text), "errno %d", err);
	return text;
}

int lesson_errno(void)
{
	return errno ? errno : EIO;
}

int lesson_answer(int answer)
{
	return answer < 0 ? lesson_errno() : answer;
}

/* The name of the first call in a text like "qp = ibv_create_qp(pd, ..". */
static const char *call_name(const char *text, char *name, size_t size)
{
	const char *start = strstr(text, "ibv_");
	size_t length;

	if (!start)
		return NULL;
	length = strcspn(start, "( ");
	if (length >= size)
		return NULL;
	memcpy(name, start, length);
	name[length] = '\0';
	return name;
}

static const char *hint_of(const char *text, int err)
{
	char buffer[64];
	const char *name = call_name(text, buffer, sizeof(buffer));

	if (!name || !rules_hint)
		return NULL;
	return rules_hint(name, err);
}

/* One line, and one of advice where there is some. */
static void complain(const char *what, const char *answer, const char *hint)
{
	fflush(stdout);
	flockfile(stderr);
	fprintf(stderr, "%s: %s: %s\n", lesson_run.name, what, answer);
	if (hint)
		fprintf(stderr, "%s: hint: %s\n", lesson_run.name, hint);
	funlockfile(stderr);
}

void report(int err, const char *format, ...)
{
	char what[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	atomic_fetch_add(&lesson_run.failures, 1);
	/* Some providers return NULL and leave errno as it was. */
	complain(what, err ? errno_text(err) : "failed, and set no errno",
		 hint_of(what, err));
}

void report_wc(const struct ibv_wc *wc, const char *what)
{
	char answer[TEXT_SIZE];

	/* opcode and byte_len mean nothing on a failed completion. */
	snprintf(answer, sizeof(answer),
		 "completion of wr_id %llu has status %d (%s)",
		 (unsigned long long)wc->wr_id, wc->status,
		 ibv_wc_status_str(wc->status));
	atomic_fetch_add(&lesson_run.failures, 1);
	complain(what, answer,
		 rules_wc_hint ? rules_wc_hint(wc->status) : NULL);
}

void lesson_refused(int expected, int err, const char *call)
{
	char name[TEXT_SIZE];

	if (!err) {
		atomic_fetch_add(&lesson_run.failures, 1);
		snprintf(name, sizeof(name),
			 "done, but it was to be refused with %s",
			 errno_text(expected));
		complain(call, name, NULL);
		return;
	}
	say("  %s", call);
	say("    refused: %s", errno_text(err));
	if (err == expected)
		return;
	snprintf(name, sizeof(name), "%s", errno_text(expected));
	say("    other devices answer %s: the number varies, the refusal "
	    "does not",
	    name);
}

int lesson_end(void)
{
	int failures = atomic_load(&lesson_run.failures);

	fflush(stdout);
	if (lesson_run.misused)
		return 2;
	lesson_run.from = NULL;
	if (!failures) {
		printf("\n%s: done, everything was destroyed\n",
		       lesson_run.name);
		fflush(stdout);
		return 0;
	}
	fprintf(stderr, "%s: failed: %d unexpected answer%s, see above\n",
		lesson_run.name, failures, failures == 1 ? "" : "s");
	return 1;
}
