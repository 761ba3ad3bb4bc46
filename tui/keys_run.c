/* SPDX-License-Identifier: MIT */
/*
 * The keys that run the program and those that walk through its history. In
 * the past, those that run go forward through what has already happened, and
 * in the present through what has not.
 */
#include <stdio.h>
#include <string.h>

#include "tui/keys_private.h"

bool keys_has_ended(const struct model *model)
{
	return model->session->state == SESSION_EXITED ||
	       model->session->state == SESSION_KILLED;
}

/* --- history ---------------------------------------------------------- */

void keys_seek(struct model *model, size_t at)
{
	if (model_seek(model, at))
		keys_say(model, "no memory to show the past");
	keys_follow(model);
}

size_t keys_stop_behind(const struct model *model, size_t index)
{
	for (size_t i = 0; i < model->stops; i++)
		if (model->stop[i] > index)
			return model->stop[i];
	return model->session->events;
}

/* The verb that b runs to: the next call's, else the last one's. */
static const char *this_verb(const struct model *model)
{
	const struct event *next = model_next(model);
	size_t calls = model_calls_shown(model);

	if (next && next->kind == EVENT_ENTER)
		return next->call;
	return calls ? model->session->event[model->call[calls - 1]]->call
		     : NULL;
}

/* Where m, f or b stop in the history; the present when they do not. */
static size_t place_in_past(const struct model *model, int key,
			    const char *verb)
{
	const struct session *session = model->session;

	for (size_t i = model->at; key == 'f' && i < session->events; i++)
		if (session->event[i]->kind == EVENT_RET &&
		    !session->event[i]->ok)
			return keys_stop_behind(model, i);
	for (size_t i = 0; key != 'f' && i < model->stops; i++) {
		const struct event *event =
			model_stop_event(model, model->stop[i]);

		if (model->stop[i] <= model->at || !event)
			continue;
		if (key == 'm' ? event->kind == EVENT_MARK
			       : key == 'b' && event->kind == EVENT_ENTER &&
					 !strcmp(event->call, verb))
			return model->stop[i];
	}
	return session->events;
}

/* m, f, b, c in the past: on to that place in what has happened. */
static void run_in_past(struct model *model, int key, const char *verb)
{
	/* The verb may be borrowed from what the search changes. */
	char name[80];

	snprintf(name, sizeof(name), "%s", verb ? verb : "");
	keys_seek(model, place_in_past(model, key, name));
	if (!model_present(model))
		return;
	if (keys_has_ended(model))
		keys_say(model, "this is the end of the history");
	else
		keys_say(model, "this is the present; %c runs on from here",
			 key);
}

/* --- running ---------------------------------------------------------- */

/* Whether a command would be taken; says why not. */
static bool can_run(struct model *model)
{
	if (model->session->state == SESSION_STOPPED)
		return true;
	if (keys_has_ended(model))
		keys_say(model,
			 "the program has %s; r restarts it, [ goes "
			 "back, Esc is the menu",
			 session_text(model->session));
	else
		keys_say(model, "the program runs; p pauses it, r restarts it");
	return false;
}

void keys_run(struct model *model, int key)
{
	const char *verb = this_verb(model);

	if (key == 'b' && !verb) {
		keys_say(model, "no call yet that b could look for");
		return;
	}
	if (!model_present(model)) {
		run_in_past(model, key, verb);
		return;
	}
	if (!can_run(model))
		return;
	keys_follow(model);
	if (key == 'c')
		session_run(model->session);
	else if (key == 'b')
		session_until(model->session, verb);
	else
		session_until(model->session, key == 'm' ? "mark" : "fail");
}

void keys_step(struct model *model)
{
	if (!model_present(model)) {
		keys_seek(model, model_after(model));
		return;
	}
	if (!can_run(model))
		return;
	keys_follow(model);
	session_go(model->session);
}

void keys_guess(struct model *model, bool refused)
{
	const struct event *next = model_next(model);

	if (!model_present(model)) {
		keys_say(model, "this is the past: nothing is left to guess; } "
				"goes to the present");
		return;
	}
	if (!can_run(model))
		return;
	if (!next || next->kind != EVENT_ENTER) {
		keys_say(model, "+ and - are for a call, and this is a step; "
				"Space goes on");
		return;
	}
	model->guess.seq = next->seq;
	model->guess.refused = refused;
	model->guess.judged = false;
	keys_step(model);
}

void keys_pause(struct model *model)
{
	if (model->session->state == SESSION_RUNNING) {
		session_pause(model->session);
		keys_say(model, "it will stop before its next call");
	} else {
		keys_say(model, "the program is %s already",
			 session_text(model->session));
	}
}

void keys_back(struct model *model)
{
	size_t at = model_before(model);

	if (at == model->at)
		keys_say(model, "this is the beginning");
	else
		keys_seek(model, at);
}

void keys_forward(struct model *model)
{
	if (model_present(model))
		keys_say(model,
			 "this is the present; Space does the next call");
	else
		keys_seek(model, model_after(model));
}
