/* SPDX-License-Identifier: MIT */
/*
 * One call: reported and stopped at before it is done, reported after. A
 * thread waits for others only to stop; while the verb itself works, which
 * may block for ever, no lock is held.
 */
#include "probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what an answer means ------------------------------------------------- */

int call_failure(const struct verb *verb, uint64_t ret, int err)
{
	int64_t answer = (int64_t)ret;

	switch (verb->answer) {
	case ANSWER_ERRNO:
		if (answer > 0)
			return (int)answer;
		if (!answer)
			return 0;
		return err ? err : (int)-answer;
	case ANSWER_MINUS:
		if (!answer)
			return 0;
		return err ? err : EIO;
	case ANSWER_POLL:
		return answer == ENOENT ? 0 : (int)answer;
	case ANSWER_COUNT:
		if (answer >= 0)
			return 0;
		return err ? err : (int)-answer;
	case ANSWER_OBJECT:
	case ANSWER_POINTER:
	case ANSWER_TEXT:
		if (answer)
			return 0;
		return err ? err : EIO;
	default:
		return 0;
	}
}

static void add_answer(struct text *text, const struct verb *verb, uint64_t ret)
{
	struct field field = { .name = "ret", .size = 8, .kind = KIND_SIGNED };
	struct decode d = { .out = text };

	switch (verb->answer) {
	case ANSWER_OBJECT:
		field.kind = KIND_OBJECT;
		field.object = verb->makes;
		break;
	case ANSWER_POINTER:
		field.kind = KIND_POINTER;
		break;
	case ANSWER_GUID:
		field.kind = KIND_GUID;
		break;
	case ANSWER_TEXT:
		if (!ret)
			break;
		text_key(text, "ret");
		text_quote(text, (const char *)ret);
		return;
	default:
		break;
	}
	if (verb->answer == ANSWER_VOID || (verb->answer == ANSWER_TEXT)) {
		text_key(text, "ret");
		text_add(text, "null");
		return;
	}
	decode_field(&d, &field, &ret);
}

void call_args(struct call *call)
{
	struct decode d = {
		.out = &call->args,
		.word = call->word,
		.budget = TEXT_ARGS - 2048,
	};

	call->args = (struct text){
		.at = call->thread->args,
		.size = sizeof(call->thread->args),
	};
	text_add(&call->args, "{");
	if (call->verb->args)
		decode_fields(&d, call->verb->args, call->word);
	text_add(&call->args, "}");
}

bool call_body(struct call *call, uint64_t ret, int err, struct text *text)
{
	int failure = call_failure(call->verb, ret, err);
	const struct field *out =
		failure ? call->verb->out_failed : call->verb->out;
	struct decode d = {
		.out = text,
		.word = call->word,
		.budget = text->size - 2048,
	};

	call->word[CALL_RET] = ret;
	text_add(text, "\"args\":%s,\"ok\":%s", call->args.at,
		 failure ? "false" : "true");
	add_answer(text, call->verb, ret);
	text_add(text, ",\"err\":%d,\"out\":{", failure);
	if (out)
		decode_fields(&d, out, call->word);
	text_add(text, "}");
	return !failure;
}

void call_failed(void)
{
	enum mode mode = MODE_UNTIL_FAIL;

	if (atomic_compare_exchange_strong(&probe_mode, &mode, MODE_STEP))
		atomic_fetch_add(&probe_generation, 1);
}

bool call_stops(const struct verb *verb)
{
	return probe_mode == MODE_STEP ||
	       (probe_mode == MODE_UNTIL_VERB && probe_until == verb);
}

/* --- enter ---------------------------------------------------------------- */

static void add_head(struct text *text, const char *kind, unsigned long seq,
		     struct thread *thread)
{
	*text = (struct text){
		.at = thread->line,
		.size = sizeof(thread->line),
	};
	text_add(text, "{\"v\":%d,\"ev\":\"%s\",\"seq\":%lu,\"tid\":%d",
		 TRACE_VERSION, kind, seq, (int)thread->tid);
}

static void send_enter(struct call *call, bool stop)
{
	struct text text;

	call->seq = channel_seq();
	add_head(&text, "enter", call->seq, call->thread);
	text_add(&text, ",\"stop\":%s,\"call\":\"%s\",\"args\":%s,\"at\":%s}\n",
		 stop ? "true" : "false", call->verb->name, call->args.at,
		 call->place->at);
	if (stop)
		channel_stop(text.at, text.used);
	else
		channel_send(text.at, text.used);
}

static void enter(struct call *call)
{
	bool stop;

	if (!call_stops(call->verb)) {
		send_enter(call, false);
		return;
	}
	/* While this thread waited its turn, "run" may have been said. */
	channel_lock();
	stop = call_stops(call->verb);
	if (stop)
		send_enter(call, true);
	channel_unlock();
	if (!stop && probe_mode != MODE_OFF)
		send_enter(call, false);
}

/* A context that came another way than by ibv_open_device(). */
static void adopt_context(struct call *call)
{
	const struct field *first = call->verb->args;

	if (first && first->kind == KIND_OBJECT &&
	    first->object == RULES_CONTEXT && call->word[0])
		context_wrap((struct ibv_context *)call->word[0]);
}

void call_begin(struct call *call, const struct verb *verb, struct from from)
{
	struct thread *thread;
	int err = errno;

	call->thread = NULL;
	if (probe_mode <= MODE_ENDING)
		return;
	thread = thread_get();
	if (!thread || !thread_enter(thread))
		return;
	call->thread = thread;
	call->verb = verb;
	adopt_context(call);
	call->place = quiet_place(thread, from);
	if (verb->unmakes != RULES_NONE && call->word[0])
		call->unmade = name_of(verb->unmakes, (void *)call->word[0]);
	call_args(call);
	channel_listen();
	call->quiet = verb->polls && quiet_known(thread, verb, call->place,
						 (const void *)call->word[0]);
	if (!call->quiet) {
		quiet_flush(thread, !verb->polls);
		/* It may be long until this call is back. */
		thread->depth = DEPTH_CALL;
		enter(call);
	}
	/* The verb starts with the errno that the program had. */
	errno = err;
}

/* --- the answer ----------------------------------------------------------- */

static void send_ret(struct call *call, uint64_t ret, int err)
{
	struct text text;

	if (call->quiet) { /* it was not entered */
		quiet_flush(call->thread, false);
		call->seq = channel_seq();
	}
	add_head(&text, "ret", call->seq, call->thread);
	text_add(&text, ",\"call\":\"%s\",", call->verb->name);
	text.size -= 2048; /* for the rest of the line */
	call_body(call, ret, err, &text);
	text.size += 2048;
	text_add(&text, ",\"count\":1,\"at\":%s}\n", call->place->at);
	channel_send(text.at, text.used);
}

void call_end(struct call *call, uint64_t ret)
{
	struct thread *thread = call->thread;
	const struct verb *verb;
	int err = errno;
	bool ok;

	if (!thread)
		return;
	verb = call->verb;
	ok = !call_failure(verb, ret, err);
	if (probe_mode == MODE_OFF ||
	    (probe_mode == MODE_ENDING && thread->depth == DEPTH_CALL))
		goto out;
	thread->depth = DEPTH_COUNTS;
	if (ok && verb->makes != RULES_NONE)
		name_new(verb->makes, (const void *)ret);
	if (verb->polls && (int64_t)ret == verb->empty)
		quiet_poll(thread, call);
	else
		send_ret(call, ret, err);
	if (ok && verb->unmakes != RULES_NONE)
		name_drop(verb->unmakes, (const void *)call->word[0],
			  call->unmade);
	if (!ok || quiet_is_error(call, (int64_t)ret))
		call_failed();
out:
	thread_leave(thread);
	errno = err;
}

/* --- marks ---------------------------------------------------------------- */

static bool mark_stops(void)
{
	return probe_mode == MODE_STEP || probe_mode == MODE_UNTIL_MARK;
}

static void send_mark(struct thread *thread, const char *id, const char *file,
		      int line, bool stop)
{
	char dir[1024];
	struct text text;

	place_dir(file, dir, sizeof(dir));
	add_head(&text, "mark", channel_seq(), thread);
	text_add(&text, ",\"stop\":%s,\"id\":", stop ? "true" : "false");
	text_quote(&text, id);
	text_add(&text, ",\"at\":{\"file\":");
	text_quote(&text, file);
	if (*dir) {
		text_key(&text, "dir");
		text_quote(&text, dir);
	}
	text_add(&text, ",\"line\":%d}}\n", line);
	if (stop)
		channel_stop(text.at, text.used);
	else
		channel_send(text.at, text.used);
}

/*
 * Any program may mark a place in its own words: looked for with
 * dlsym(RTLD_DEFAULT, "verbs_mark").
 */
EXPORT void verbs_mark(const char *id, const char *file, int line)
{
	struct thread *thread;
	int err = errno;
	bool stop;

	if (probe_mode <= MODE_ENDING || !id || !file)
		return;
	thread = thread_get();
	if (!thread || !thread_enter(thread))
		return;
	quiet_flush(thread, true);
	thread->depth = DEPTH_CALL;
	channel_listen();
	stop = mark_stops();
	if (stop) {
		channel_lock();
		stop = mark_stops();
		if (stop)
			send_mark(thread, id, file, line, true);
		channel_unlock();
	}
	if (!stop && probe_mode != MODE_OFF)
		send_mark(thread, id, file, line, false);
	thread_leave(thread);
	errno = err;
}
