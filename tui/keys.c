/* SPDX-License-Identifier: MIT */
/*
 * Keys that run the program, walk through its history and choose what is
 * shown. In the past, the keys that run go forward through what has already
 * happened, and in the present through what has not.
 */
#include "tui/keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/keys_private.h"

const struct keys_help keys_help[] = {
	{ "Space s", "do this call, stop before the next" },
	{ "+ -", "guess: it is done, is refused; and do it" },
	{ "m", "run to the next step" },
	{ "c", "run to the end" },
	{ "f", "run to the next call that fails" },
	{ "b", "run to the next call of this verb" },
	{ "p", "pause a program that runs" },
	{ "r > <", "restart; next and previous lesson" },
	{ "[ ]", "back and forward in history" },
	{ "{ }", "its beginning, and the present" },
	{ "Tab Shift-Tab", "next and previous pane" },
	{ "Arrows hjkl", "move in the pane" },
	{ "PgUp PgDn g G", "a page; first and last line" },
	{ "/ n N", "search; next and previous hit" },
	{ "Enter", "inspect the object; go to the call" },
	{ "w a o z", "words, all calls, output; this pane alone" },
	{ "v e", "graph or tree; show a type one by one" },
	{ "P", "show the keys that are pressed" },
	{ "Ctrl-L Ctrl-Z", "redraw; suspend" },
	{ "Esc", "close, go back, then the menu" },
	{ "? F1 q", "this help; quit" },
};
const int keys_help_count = sizeof(keys_help) / sizeof(keys_help[0]);

void keys_say(struct model *model, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(model->message, sizeof(model->message), format, args);
	va_end(args);
}

void keys_follow(struct model *model)
{
	for (int pane = 0; pane < PANES; pane++) {
		model->scroll[pane].follows = true;
		if (pane == PANE_WORDS || pane == PANE_ATTRS)
			model->scroll[pane].top = 0;
	}
}

static bool has_ended(const struct model *model)
{
	return model->session->state == SESSION_EXITED ||
	       model->session->state == SESSION_KILLED;
}

/* --- history ----------------------------------------------------------------
 */

static void seek(struct model *model, size_t at)
{
	if (model_seek(model, at))
		keys_say(model, "no memory to show the past");
	keys_follow(model);
}

/* The first stop behind the event with this index, or the present. */
static size_t stop_behind(const struct model *model, size_t index)
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
			return stop_behind(model, i);
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
	seek(model, place_in_past(model, key, name));
	if (!model_present(model))
		return;
	if (has_ended(model))
		keys_say(model, "this is the end of the history");
	else
		keys_say(model, "this is the present; %c runs on from here",
			 key);
}

/* --- running ----------------------------------------------------------------
 */

/* Whether a command would be taken; says why not. */
static bool can_run(struct model *model)
{
	if (model->session->state == SESSION_STOPPED)
		return true;
	if (has_ended(model))
		keys_say(model,
			 "the program has %s; r restarts it, [ goes "
			 "back, Esc is the menu",
			 session_text(model->session));
	else
		keys_say(model, "the program runs; p pauses it, r restarts it");
	return false;
}

static void run(struct model *model, int key)
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

static void step(struct model *model)
{
	if (!model_present(model)) {
		seek(model, model_after(model));
		return;
	}
	if (!can_run(model))
		return;
	keys_follow(model);
	session_go(model->session);
}

/* What the next call will answer, said before it is done. */
static void guess(struct model *model, bool refused)
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
	step(model);
}

static void pause_program(struct model *model)
{
	if (model->session->state == SESSION_RUNNING) {
		session_pause(model->session);
		keys_say(model, "it will stop before its next call");
	} else {
		keys_say(model, "the program is %s already",
			 session_text(model->session));
	}
}

static void back(struct model *model)
{
	size_t at = model_before(model);

	if (at == model->at)
		keys_say(model, "this is the beginning");
	else
		seek(model, at);
}

static void forward(struct model *model)
{
	if (model_present(model))
		keys_say(model,
			 "this is the present; Space does the next call");
	else
		seek(model, model_after(model));
}

/* --- what is shown
 * ------------------------------------------------------------ */

static void show_lower(struct model *model, enum model_pane pane)
{
	model->lower = pane;
	if (model->focus >= PANE_WORDS || model->zoom)
		model->focus = pane;
}

static void next_pane(struct model *model, int by)
{
	model->focus = (enum model_pane)((model->focus + PANES + by) % PANES);
	if (model->focus >= PANE_WORDS)
		model->lower = model->focus;
}

static void expand(struct model *model)
{
	const struct graph_node *node = model_selected(model);

	if (!node) {
		keys_say(model, "no object yet");
		return;
	}
	model->expanded[node->type] = !model->expanded[node->type];
	keys_say(model, "objects like %s are shown %s", node->id,
		 model->expanded[node->type] ? "one by one" : "together");
}

static void enter(struct model *model)
{
	const struct graph_node *node = model_selected(model);
	const struct model_scroll *calls = &model->scroll[PANE_CALLS];

	if (model->focus == PANE_CALLS && (size_t)calls->cursor < model->calls)
		seek(model, stop_behind(model, model->call[calls->cursor]));
	else if (model->focus == PANE_GRAPH && node) {
		keys_select(model, node);
		model->focus = PANE_ATTRS;
	} else if (model->focus == PANE_ATTRS)
		model->focus = PANE_GRAPH;
	else
		keys_say(model, "Enter inspects an object or goes to a call: "
				"Tab to those first");
}

static enum keys_result escape(struct model *model)
{
	bool follows = true;

	for (int pane = 0; pane < PANES; pane++)
		follows = follows && model->scroll[pane].follows;
	if (model->zoom) {
		model->zoom = false;
		return KEYS_DRAW;
	}
	if (follows && !model->selected[0] && !model->search[0]) {
		if (model->lessons)
			return KEYS_MENU;
		keys_say(model, "there is no menu here; q quits");
	}
	keys_follow(model);
	model->selected[0] = model->search[0] = '\0';
	return KEYS_DRAW;
}

static enum keys_result quit(struct model *model)
{
	if (model->screen == SCREEN_MENU || has_ended(model) ||
	    !model_live(model))
		return KEYS_QUIT;
	model->confirm_quit = true;
	return KEYS_DRAW;
}

static void begin_search(struct model *model)
{
	model->prompt = '/';
	model->input[0] = '\0';
}

static void unknown_key(struct model *model, int code)
{
	if (code > ' ' && code < 127)
		keys_say(model, "%c does nothing here; ? shows the keys", code);
	else
		keys_say(model, "this key does nothing here; ? shows the keys");
}

/* Keys that choose what is shown; false for others. */
static bool press_show(struct model *model, int code)
{
	switch (code) {
	case KEYS_TAB:
		next_pane(model, 1);
		return true;
	case KEYS_BACK_TAB:
		next_pane(model, -1);
		return true;
	case 'w':
		show_lower(model, PANE_WORDS);
		return true;
	case 'a':
		show_lower(model, PANE_CALLS);
		return true;
	case 'o':
		show_lower(model, PANE_OUTPUT);
		return true;
	case 'v':
		model->tree = !model->tree;
		return true;
	case 'e':
		expand(model);
		return true;
	case 'z':
		model->zoom = !model->zoom;
		return true;
	case '/':
		begin_search(model);
		return true;
	case 'n':
	case 'N':
		keys_search(model, code == 'n' ? 1 : -1);
		return true;
	case KEYS_ENTER:
	case '\n':
		enter(model);
		return true;
	default:
		return keys_move(model, code);
	}
}

static enum keys_result start(struct model *model, int row)
{
	if (row < 0 || row >= model->lessons) {
		keys_say(model, "there is no such lesson");
		return KEYS_DRAW;
	}
	model->menu = row;
	if (model->lesson[row].path)
		return KEYS_START;
	keys_say(model, "lesson %s is not built: make lessons",
		 model->lesson[row].name);
	return KEYS_DRAW;
}

/* The lesson beside the one that runs. */
static enum keys_result beside(struct model *model, int by)
{
	int row = model->current + by;

	if (model->current < 0)
		keys_say(model, "this program is no lesson; Esc is the menu");
	else if (row < 0 || row >= model->lessons)
		keys_say(model, "this is the %s lesson; Esc is the menu",
			 row < 0 ? "first" : "last");
	else
		return start(model, row);
	return KEYS_DRAW;
}

static enum keys_result press_step(struct model *model, int code)
{
	switch (code) {
	case ' ':
	case 's':
		step(model);
		break;
	case '+':
	case '-':
		guess(model, code == '-');
		break;
	case 'm':
	case 'c':
	case 'f':
	case 'b':
		run(model, code);
		break;
	case 'p':
		pause_program(model);
		break;
	case 'r':
		return KEYS_RESTART;
	case '[':
		back(model);
		break;
	case ']':
		forward(model);
		break;
	case '{':
		seek(model, model->stops ? model->stop[0] : 0);
		break;
	case '}':
		seek(model, model->session->events);
		break;
	case '>':
		return beside(model, 1);
	case '<':
		return beside(model, -1);
	case KEYS_ESC:
		return escape(model);
	default:
		if (!press_show(model, code))
			unknown_key(model, code);
	}
	return KEYS_DRAW;
}

static enum keys_result press_menu(struct model *model, int code)
{
	int last = model->lessons - 1;

	if (code >= '1' && code <= '9')
		return start(model, code - '1');
	switch (code) {
	case KEYS_ENTER:
	case '\n':
	case ' ':
	case 'l':
	case KEYS_RIGHT:
		return start(model, model->menu);
	case KEYS_UP:
	case 'k':
		model->menu -= model->menu > 0;
		break;
	case KEYS_DOWN:
	case 'j':
		model->menu += model->menu < last;
		break;
	case KEYS_HOME:
	case KEYS_PAGE_UP:
	case 'g':
		model->menu = 0;
		break;
	case KEYS_END:
	case KEYS_PAGE_DOWN:
	case 'G':
		model->menu = last < 0 ? 0 : last;
		break;
	case 'x':
		return KEYS_FORGET;
	case KEYS_ESC:
		keys_say(model, "this is the menu; q quits");
		break;
	default:
		unknown_key(model, code);
	}
	return KEYS_DRAW;
}

enum keys_result keys_press(struct model *model, int code)
{
	bool steps = model->screen == SCREEN_STEP && model->session;

	if (code == KEYS_NONE || code == KEYS_RESIZE)
		return KEYS_DRAW;
	if (code == KEYS_CTRL_L)
		return KEYS_REDRAW;
	model->message[0] = '\0';
	keys_note(model, code);
	if (model->confirm_quit) {
		model->confirm_quit = false;
		return strchr("yYqQ", code) && code > 0 && code < 127
			       ? KEYS_QUIT
			       : KEYS_DRAW;
	}
	if (model->prompt) {
		keys_prompt(model, code);
		return KEYS_DRAW;
	}
	if (model->help) {
		model->help = false;
		return KEYS_DRAW;
	}
	if (code == '?' || code == KEYS_F1) {
		model->help = true;
		return KEYS_DRAW;
	}
	if (code == 'q' || code == 'Q')
		return quit(model);
	if (code == 'P') {
		model->presents = !model->presents;
		keys_say(model, "the keys that are pressed are %s",
			 model->presents ? "shown at the right" : "not shown");
		return KEYS_DRAW;
	}
	return steps ? press_step(model, code) : press_menu(model, code);
}
