/* SPDX-License-Identifier: MIT */
/*
 * What each key does, and those that choose what is shown.
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

/* --- what is shown -------------------------------------------------------- */

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
		keys_seek(model,
			  keys_stop_behind(model, model->call[calls->cursor]));
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
	if (model->screen == SCREEN_MENU || keys_has_ended(model) ||
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
		keys_step(model);
		break;
	case '+':
	case '-':
		keys_guess(model, code == '-');
		break;
	case 'm':
	case 'c':
	case 'f':
	case 'b':
		keys_run(model, code);
		break;
	case 'p':
		keys_pause(model);
		break;
	case 'r':
		return KEYS_RESTART;
	case '[':
		keys_back(model);
		break;
	case ']':
		keys_forward(model);
		break;
	case '{':
		keys_seek(model, model->stops ? model->stop[0] : 0);
		break;
	case '}':
		keys_seek(model, model->session->events);
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
