/* SPDX-License-Identifier: MIT */
/*
 * One line of bytes to one event. jansson reads the JSON; what is here checks
 * that it is an event of our version and flattens its values to text, within
 * limits, since the other side may be a program gone mad.
 */
#include "common/trace/event.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "common/trace/format.h"

#define DEPTH_MAX  8    /* objects and arrays inside "args" */
#define NAME_MAX_  160  /* a flattened name, in bytes */
#define FIELDS_MAX 8192 /* fields of one event */

/* One parse: what it builds, and the first thing that was wrong. */
struct parse {
	struct event *event;
	char *why;
	bool failed;
};

static bool wrong(struct parse *parse, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Notes what is wrong, unless something was before. Always false. */
static bool wrong(struct parse *parse, const char *format, ...)
{
	va_list args;

	if (parse->failed)
		return false;
	parse->failed = true;
	va_start(args, format);
	if (vasprintf(&parse->why, format, args) < 0)
		parse->why = NULL;
	va_end(args);
	return false;
}

static bool no_memory(struct parse *parse)
{
	parse->failed = true;
	return false;
}

static bool copy_text(struct parse *parse, const char *text, char **out)
{
	free(*out);
	*out = strdup(text);
	return *out || no_memory(parse);
}

/* A scalar as text; NULL with errno EINVAL for an object or an array. */
static char *scalar_text(const json_t *value)
{
	char *text = NULL;
	int n = 0;

	switch (json_typeof(value)) {
	case JSON_STRING:
		return strdup(json_string_value(value));
	case JSON_INTEGER:
		n = asprintf(&text, "%" JSON_INTEGER_FORMAT,
			     json_integer_value(value));
		return n < 0 ? NULL : text;
	case JSON_REAL:
		n = asprintf(&text, "%.17g", json_real_value(value));
		return n < 0 ? NULL : text;
	case JSON_TRUE:
		return strdup("true");
	case JSON_FALSE:
		return strdup("false");
	case JSON_NULL:
		return strdup("NULL");
	default:
		errno = EINVAL;
		return NULL;
	}
}

static bool add_field(struct parse *parse, struct event_fields *fields,
		      const char *name, const json_t *value)
{
	if (fields->count == FIELDS_MAX)
		return wrong(parse, "more than %d values", FIELDS_MAX);
	/* The array doubles whenever the count is a power of two. */
	if ((fields->count & (fields->count - 1)) == 0) {
		size_t room = fields->count ? 2 * (size_t)fields->count : 1;
		struct event_field *field =
			realloc(fields->field, room * sizeof(*field));
		if (!field)
			return no_memory(parse);
		fields->field = field;
	}
	struct event_field *field = &fields->field[fields->count];
	field->name = strdup(name);
	field->value = scalar_text(value);
	if (!field->name || !field->value) {
		free(field->name);
		free(field->value);
		return no_memory(parse);
	}
	fields->count++;
	return true;
}

/* Adds `value` and what is in it. `name` has NAME_MAX_ bytes, `used` filled. */
static bool flatten(struct parse *parse, struct event_fields *fields,
		    char *name, size_t used, json_t *value, int depth)
{
	const char *key;
	json_t *inner;
	size_t i;

	if (!json_is_object(value) && !json_is_array(value))
		return add_field(parse, fields, name, value);
	if (depth == DEPTH_MAX)
		return wrong(parse, "values nested deeper than %d", DEPTH_MAX);
	json_object_foreach (value, key, inner) {
		int n = snprintf(name + used, NAME_MAX_ - used, "%s%s",
				 used ? "." : "", key);
		if (n < 0 || (size_t)n >= NAME_MAX_ - used)
			return wrong(parse, "a name longer than %d bytes",
				     NAME_MAX_ - 1);
		if (!flatten(parse, fields, name, used + (size_t)n, inner,
			     depth + 1))
			return false;
	}
	json_array_foreach (value, i, inner) {
		int n = snprintf(name + used, NAME_MAX_ - used, "[%zu]", i);
		if (n < 0 || (size_t)n >= NAME_MAX_ - used)
			return wrong(parse, "a name longer than %d bytes",
				     NAME_MAX_ - 1);
		if (!flatten(parse, fields, name, used + (size_t)n, inner,
			     depth + 1))
			return false;
	}
	name[used] = '\0';
	return true;
}

/* Readers of one key each. A missing key is an error only if `needed`. */

static bool read_text(struct parse *parse, json_t *root, const char *key,
		      bool needed, char **out)
{
	json_t *value = json_object_get(root, key);

	if (!value)
		return !needed || wrong(parse, "no \"%s\"", key);
	if (!json_is_string(value))
		return wrong(parse, "\"%s\" is no text", key);
	if (needed && !*json_string_value(value))
		return wrong(parse, "\"%s\" is empty", key);
	return copy_text(parse, json_string_value(value), out);
}

static bool read_number(struct parse *parse, json_t *root, const char *key,
			bool needed, long long low, long long high,
			long long *out)
{
	json_t *value = json_object_get(root, key);

	if (!value)
		return !needed || wrong(parse, "no \"%s\"", key);
	if (!json_is_integer(value))
		return wrong(parse, "\"%s\" is no whole number", key);
	*out = json_integer_value(value);
	if (*out < low || *out > high)
		return wrong(parse, "\"%s\" is %lld, out of range", key, *out);
	return true;
}

static bool read_bool(struct parse *parse, json_t *root, const char *key,
		      bool needed, bool *out)
{
	json_t *value = json_object_get(root, key);

	if (!value)
		return !needed || wrong(parse, "no \"%s\"", key);
	if (!json_is_boolean(value))
		return wrong(parse, "\"%s\" is neither true nor false", key);
	*out = json_is_true(value);
	return true;
}

static bool read_fields(struct parse *parse, json_t *root, const char *key,
			struct event_fields *fields)
{
	char name[NAME_MAX_] = "";
	json_t *value = json_object_get(root, key);

	if (!value)
		return true;
	if (!json_is_object(value))
		return wrong(parse, "\"%s\" is no object", key);
	return flatten(parse, fields, name, 0, value, 0);
}

static bool read_place(struct parse *parse, json_t *root)
{
	struct event *event = parse->event;
	json_t *at = json_object_get(root, "at");
	long long line = 0;

	if (!at || json_is_null(at))
		return true;
	if (!json_is_object(at))
		return wrong(parse, "\"at\" is no object");
	if (!read_text(parse, at, "file", false, &event->file) ||
	    !read_text(parse, at, "dir", false, &event->dir) ||
	    !read_number(parse, at, "line", false, 0, INT_MAX, &line) ||
	    !read_text(parse, at, "func", false, &event->func))
		return false;
	event->line = (int)line;
	return true;
}

static bool read_hello(struct parse *parse, json_t *root)
{
	long long version = 0, pid = 0;

	if (!read_number(parse, root, "v", true, 0, INT_MAX, &version))
		return false;
	if (version != TRACE_VERSION)
		return wrong(parse, "version %lld of the format, this is %d",
			     version, TRACE_VERSION);
	if (!read_number(parse, root, "pid", false, 0, INT_MAX, &pid))
		return false;
	parse->event->pid = (pid_t)pid;
	return read_text(parse, root, "exe", false, &parse->event->exe);
}

static bool read_ret(struct parse *parse, json_t *root)
{
	struct event *event = parse->event;
	json_t *ret = json_object_get(root, "ret");
	long long err = 0, count = 1;

	if (!read_bool(parse, root, "ok", true, &event->ok) ||
	    !read_number(parse, root, "err", false, INT_MIN, INT_MAX, &err) ||
	    !read_number(parse, root, "count", false, 1, LONG_MAX, &count) ||
	    !read_fields(parse, root, "out", &event->out))
		return false;
	event->err = (int)err;
	event->count = (unsigned long)count;
	if (!ret)
		return true;
	if (json_is_object(ret) || json_is_array(ret))
		return wrong(parse, "\"ret\" is no single value");
	event->ret = scalar_text(ret);
	return event->ret || no_memory(parse);
}

/* What enter, ret and mark share. */
static bool read_call(struct parse *parse, json_t *root)
{
	struct event *event = parse->event;
	bool mark = event->kind == EVENT_MARK;
	long long seq = 0, tid = 0;

	if (!read_number(parse, root, "seq", true, 1, LONG_MAX, &seq) ||
	    !read_number(parse, root, "tid", false, 0, INT_MAX, &tid) ||
	    !read_bool(parse, root, "stop", false, &event->stop) ||
	    !read_text(parse, root, mark ? "id" : "call", true, &event->call) ||
	    !read_place(parse, root))
		return false;
	event->seq = (unsigned long)seq;
	event->tid = (pid_t)tid;
	return mark || read_fields(parse, root, "args", &event->args);
}

static bool read_event(struct parse *parse, json_t *root)
{
	static const char *const kinds[] = {
		[EVENT_HELLO] = "hello", [EVENT_ENTER] = "enter",
		[EVENT_RET] = "ret",     [EVENT_MARK] = "mark",
		[EVENT_BYE] = "bye",
	};
	const char *name = json_string_value(json_object_get(root, "ev"));
	int kind = 0;

	if (!json_is_object(root))
		return wrong(parse, "not a JSON object");
	if (!name)
		return wrong(parse, "no \"ev\" that names the kind of event");
	while (kind <= EVENT_BYE && strcmp(kinds[kind], name))
		kind++;
	if (kind > EVENT_BYE)
		return wrong(parse,
			     "\"%.20s\" is no kind of event; there are hello, "
			     "enter, ret, mark and bye",
			     name);
	parse->event->kind = kind;
	if (kind == EVENT_BYE)
		return true;
	if (kind == EVENT_HELLO)
		return read_hello(parse, root);
	return read_call(parse, root) &&
	       (kind != EVENT_RET || read_ret(parse, root));
}

static void replace_controls(char *text)
{
	for (; text && *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

struct event *event_parse(const char *line, size_t length, char **why)
{
	struct parse parse = { .event = calloc(1, sizeof(*parse.event)) };
	json_error_t error;
	json_t *root = NULL;

	if (!parse.event) {
		no_memory(&parse);
		goto out;
	}
	parse.event->count = 1;
	if (length > TRACE_LINE_MAX) {
		wrong(&parse, "a line of %zu bytes; %d is the most", length,
		      TRACE_LINE_MAX);
		goto out;
	}
	root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	if (root)
		read_event(&parse, root);
	else
		wrong(&parse, "not JSON at byte %d: %.100s", error.position,
		      error.text);
	json_decref(root);
out:
	replace_controls(parse.why);
	if (parse.failed) {
		event_free(parse.event);
		parse.event = NULL;
	}
	if (why)
		*why = parse.why;
	else
		free(parse.why);
	return parse.event;
}

static void free_fields(struct event_fields *fields)
{
	for (int i = 0; i < fields->count; i++) {
		free(fields->field[i].name);
		free(fields->field[i].value);
	}
	free(fields->field);
}

void event_free(struct event *event)
{
	if (!event)
		return;
	free_fields(&event->args);
	free_fields(&event->out);
	free(event->call);
	free(event->exe);
	free(event->ret);
	free(event->file);
	free(event->dir);
	free(event->func);
	free(event);
}

const char *event_field(const struct event_fields *fields, const char *name)
{
	for (int i = 0; i < fields->count; i++) {
		if (!strcmp(fields->field[i].name, name))
			return fields->field[i].value;
	}
	return NULL;
}
