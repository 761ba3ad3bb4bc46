/* SPDX-License-Identifier: MIT */
/*
 * An event as one line for people. Lists of work requests and of completions
 * get a short form: what was asked or answered, not how it was laid out.
 */
#include "common/trace/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rules/rules.h"

#define OUTS_MOST     4 /* values handed back that are shown */
#define ELEMENTS_MOST 3 /* elements of a list that are shown */

/* The field's place in a list, "wr[3].opcode": 3; -1 when in none. */
static long element_of(const char *name)
{
	const char *bracket = strchr(name, '[');

	return bracket ? strtol(bracket + 1, NULL, 10) : -1;
}

/* What follows the element, "wr[3].sg_list[0].addr": "sg_list[0].addr". */
static const char *member_of(const char *name)
{
	const char *end = strchr(name, ']');

	if (!end)
		return name;
	return end[1] == '.' ? end + 2 : end + 1;
}

static bool ends_in(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

/*
 * How much of a constant goes without saying beside the name of its field:
 * "qp_type=RC", "WR_SEND" as "SEND". The longer ones first.
 */
static size_t prefix_of(const char *constant)
{
	static const char *const prefix[] = {
		"IBV_ACCESS_", "IBV_LINK_LAYER_", "IBV_PORT_", "IBV_QPS_",
		"IBV_QPT_",    "IBV_QP_",         "IBV_MTU_",  "IBV_MIG_",
		"IBV_WR_",     "IBV_WC_",         "IBV_SEND_", "IBV_SRQ_",
		"IBV_EVENT_",
	};

	for (size_t i = 0; i < sizeof(prefix) / sizeof(*prefix); i++) {
		size_t length = strlen(prefix[i]);

		if (!strncmp(constant, prefix[i], length))
			return length;
	}
	return 0;
}

/* "IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ", each without its prefix. */
static void put_constants(const char *value, FILE *out)
{
	while (*value) {
		size_t length;

		value += prefix_of(value);
		length = strcspn(value, "|");
		length += value[length] == '|';
		fwrite(value, 1, length, out);
		value += length;
	}
}

/*
 * A pointer of a user's program has 8 to 12 digits, of which the last tell
 * one from another; a number has fewer, or is too large for a pointer.
 */
static bool is_pointer(const char *value)
{
	size_t digits;

	if (strncmp(value, "0x", 2))
		return false;
	digits = strspn(value + 2, "0123456789abcdef");
	return digits >= 8 && digits <= 12 && !value[2 + digits];
}

/* A value as short as it can be told from others. */
static void put_value(const char *value, FILE *out)
{
	if (is_pointer(value))
		fprintf(out, "0x..%s", value + strlen(value) - 5);
	else
		put_constants(value, out);
}

/* How many elements of a list did not go into the event. */
static bool is_rest(const struct event_field *field)
{
	return !strcmp(field->name, "more");
}

static bool has_list(const struct event_fields *fields)
{
	for (int i = 0; i < fields->count; i++) {
		if (element_of(fields->field[i].name) >= 0)
			return true;
	}
	return false;
}

/*
 * One element of a list, from fields[from] on: "wr_id=1 SEND 64 B" for a
 * work request, "wr_id=1 REM_ACCESS_ERR" for a completion; of others what
 * stands first, the name of a device, a GID. Returns the index of the first
 * field after it.
 */
static int put_element(const struct event_fields *fields, int from, FILE *out)
{
	long element = element_of(fields->field[from].name);
	unsigned long bytes = 0;
	bool sized = false, cut = false, first = true;
	bool completion = false;
	int end = from;

	for (; end < fields->count &&
	       element_of(fields->field[end].name) == element;
	     end++)
		completion |=
			!strcmp(member_of(fields->field[end].name), "status");
	for (int i = from; i < end; i++) {
		const char *member = member_of(fields->field[i].name);
		const char *value = fields->field[i].value;

		if (!strcmp(member, "wr_id")) {
			fprintf(out, "%swr_id=%s", first ? "" : " ", value);
		} else if (!strcmp(member, "status") ||
			   (!completion && !strcmp(member, "opcode"))) {
			fputs(first ? "" : " ", out);
			put_constants(value, out);
		} else {
			if (ends_in(member, "].length")) {
				bytes += strtoul(value, NULL, 10);
				sized = true;
			}
			/* SGEs that did not go into the event. */
			cut |= !strcmp(member, "more");
			continue;
		}
		first = false;
	}
	if (sized && !completion)
		fprintf(out, "%s%lu%s B", first ? "" : " ", bytes,
			cut ? "+" : "");
	else if (first)
		put_value(fields->field[from].value, out);
	return end;
}

/* Every list among the fields, a few elements of it. */
static void put_list(const struct event_fields *fields, const char *before,
		     FILE *out)
{
	unsigned long more = 0;
	int shown = 0;

	for (int i = 0; i < fields->count;) {
		long element = element_of(fields->field[i].name);

		if (element < 0) {
			if (is_rest(&fields->field[i]))
				more += strtoul(fields->field[i].value, NULL,
						10);
			i++;
			continue;
		}
		if (shown < ELEMENTS_MOST) {
			fputs(shown ? ", " : before, out);
			i = put_element(fields, i, out);
			shown++;
			continue;
		}
		while (i < fields->count &&
		       element_of(fields->field[i].name) == element)
			i++;
		more++;
	}
	if (more)
		fprintf(out, ", ... %lu more", more);
}

static void put_args(const struct event *event, FILE *out)
{
	const struct event_fields *args = &event->args;
	bool lists = has_list(args);
	/* A poll's list comes back in out; its count needs no name. */
	bool poll = !strcmp(event->call, "ibv_poll_cq");
	bool first = true;

	for (int i = 0; i < args->count; i++) {
		const char *name = args->field[i].name;
		const char *value = args->field[i].value;

		if (!strcmp(value, "NULL") || element_of(name) >= 0 ||
		    is_rest(&args->field[i]))
			continue;
		if ((lists || poll) && !strncmp(value, "0x", 2))
			continue;
		fputs(first ? "" : ", ", out);
		first = false;
		if (rules_object_of_id(value) == RULES_NONE && !poll)
			fprintf(out, "%s=", name);
		put_value(value, out);
	}
	put_list(args, first ? "" : ", ", out);
}

static void put_outs(const struct event_fields *outs, FILE *out)
{
	int shown = 0, plain = 0;

	for (int i = 0; i < outs->count; i++)
		plain += element_of(outs->field[i].name) < 0 &&
			 !is_rest(&outs->field[i]);
	for (int i = 0; i < outs->count; i++) {
		if (element_of(outs->field[i].name) >= 0 ||
		    is_rest(&outs->field[i]))
			continue;
		if (shown == OUTS_MOST && plain > OUTS_MOST + 1) {
			fputs(", ...", out);
			break;
		}
		fprintf(out, ", %s=", outs->field[i].name);
		put_value(outs->field[i].value, out);
		shown++;
	}
	put_list(outs, ": ", out);
}

static void put_call(const struct event *event, FILE *out)
{
	fprintf(out, "%s(", event->call);
	put_args(event, out);
	fputs(")", out);
	if (event->kind != EVENT_RET)
		return;
	/* A call that did what it was asked and gave NULL returns nothing. */
	if (event->ret && !(event->ok && !strcmp(event->ret, "NULL"))) {
		fputs(" = ", out);
		put_value(event->ret, out);
	}
	if (!event->ok && event->err)
		fprintf(out, " %s", rules_errno_name(event->err));
	put_outs(&event->out, out);
	if (event->count > 1)
		fprintf(out, "  x%lu", event->count);
}

char *event_text(const struct event *event)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	switch (event->kind) {
	case EVENT_HELLO:
		fprintf(out, "program %s, process %d",
			event->exe ? event->exe : "?", (int)event->pid);
		break;
	case EVENT_MARK:
		fprintf(out, "step %s", event->call);
		break;
	case EVENT_BYE:
		fputs("end of the program", out);
		break;
	default:
		put_call(event, out);
	}
	bool bad = ferror(out);
	if (fclose(out) || bad) {
		free(text);
		return NULL;
	}
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	return text;
}
