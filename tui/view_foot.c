/* SPDX-License-Identifier: MIT */
/*
 * The rows at the foot of the screen: the last call and its answer, the
 * message row, the keys.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first completion in a call's answer that is no success: its status. */
static int bad_status(const struct event *call)
{
	for (int i = 0; i < call->out.count; i++) {
		const struct event_field *field = &call->out.field[i];
		if (strncmp(field->value, "IBV_WC_", 7) != 0 ||
		    !strstr(field->name, "status"))
			continue;
		for (int status = 1; status < 32; status++)
			if (!strcmp(rules_wc_status(status), field->value))
				return status;
	}
	return 0;
}

/* "ok", "refused: EBUSY", "bad completion"; gives its style. */
static unsigned int verdict(const struct event *call, char *out, size_t size)
{
	if (!call->ok) {
		if (call->err)
			snprintf(out, size, "refused: %s",
				 rules_errno_name(call->err));
		else
			snprintf(out, size, "failed");
		return STYLE_BOLD | STYLE_BAD;
	}
	if (bad_status(call)) {
		snprintf(out, size, "bad completion");
		return STYLE_BOLD | STYLE_WARN;
	}
	snprintf(out, size, "ok");
	return STYLE_GOOD;
}

int view_call_text(struct cells *cells, const struct cells_area *area, int row,
		   int column, unsigned int style, const struct event *call)
{
	struct cells_area room = *area;
	char *text = event_text(call);
	int start = column;

	if (!text)
		return 0;
	/* The answer is what must be seen: a long call is cut before it. */
	char *answer = strstr(text, ") = ");
	if (cells_width(text) > area->columns - column) {
		if (!answer)
			answer = text + strlen(text);
		int width = cells_width(answer);
		int most = (area->columns - column) * 2 / 3;
		room.columns -= width < most ? width : most;
		char rest = *answer;
		*answer = '\0';
		column += cells_text(cells, &room, row, column, style, text);
		*answer = rest;
		for (int i = 1; i <= 2 && room.columns - i > start; i++)
			cells_text(cells, &room, row, room.columns - i, style,
				   ".");
		column = room.columns;
		column += cells_text(cells, area, row, column, style, answer);
	} else {
		column += cells_text(cells, area, row, column, style, text);
	}
	free(text);
	return column - start;
}

/* " 05_qp.c:95" behind a call's text, where it fits whole. */
static void draw_place(struct cells *cells, const struct cells_area *area,
		       int column, const struct event *event)
{
	char place[128];

	if (!event->file)
		return;
	snprintf(place, sizeof(place), "%s:%d", view_base(event->file),
		 event->line);
	if (column + 2 + cells_width(place) <= area->columns)
		cells_text(cells, area, 0, column + 2, STYLE_DIM, place);
}

/* "right, 3 of 4": of a guess about this call; "" when there was none. */
static unsigned int judgement(const struct model *model,
			      const struct event *call, bool narrow, char *out,
			      size_t size)
{
	const struct model_guess *guess = &model->guess;
	bool right = guess->refused == !call->ok;
	const char *word = right ? "right" : "wrong";

	if (!guess->judged || guess->seq != call->seq)
		out[0] = '\0';
	else if (narrow)
		snprintf(out, size, "%s  ", word);
	else
		snprintf(out, size, "%s, %u of %u  ", word, guess->right,
			 guess->judgements);
	return STYLE_BOLD | (right ? STYLE_GOOD : STYLE_WARN);
}

void view_last(struct cells *cells, const struct view_plan *plan,
	       const struct model *model)
{
	const struct cells_area *area = &plan->last;
	const struct event *call = view_last_call(model);
	char answer[64], number[32], guess[64];

	cells_text(cells, area, 0, 0, STYLE_DIM, "last");
	if (!call) {
		cells_text(cells, area, 0, 5, STYLE_DIM, "no call yet");
		return;
	}
	unsigned int style = call->ok ? 0 : STYLE_BOLD | STYLE_BAD;
	unsigned int good = verdict(call, answer, sizeof(answer));
	/* On a narrow screen the answer itself must do. */
	bool narrow = area->columns < 60;
	if (narrow && strcmp(answer, "ok") != 0)
		answer[0] = '\0';
	unsigned int judged =
		judgement(model, call, narrow, guess, sizeof(guess));
	int judged_at =
		area->columns - cells_width(answer) - cells_width(guess) - 1;
	struct cells_area room = *area;
	room.columns = judged_at - 2;
	snprintf(number, sizeof(number), "%lu ", call->seq);
	int column = 5 + cells_text(cells, &room, 0, 5, STYLE_DIM, number);
	column += view_call_text(cells, &room, 0, column, style, call);
	draw_place(cells, &room, column, call);
	cells_text(cells, area, 0, judged_at, judged, guess);
	cells_text(cells, area, 0, area->columns - cells_width(answer) - 1,
		   good, answer);
}

const char *view_hint(const struct model *model)
{
	const struct event *call = view_last_call(model);

	if (!call || model->message[0] || model->prompt || model->confirm_quit)
		return NULL;
	if (!call->ok)
		return rules_hint(call->call, call->err);
	int status = bad_status(call);
	return status ? rules_wc_hint(status) : NULL;
}

static void draw_next(struct cells *cells, const struct cells_area *area,
		      const struct model *model, const struct event *next)
{
	cells_text(cells, area, 0, 0, STYLE_DIM, "next");
	if (next->kind == EVENT_MARK) {
		const char *heading = view_heading(model);
		int used = 5 + cells_printf(cells, area, 0, 5, 0, "step %s",
					    next->call);
		if (heading && strcmp(heading, next->call) != 0)
			cells_printf(cells, area, 0, used, 0, ": %s", heading);
		return;
	}
	int column = 5 + cells_printf(cells, area, 0, 5, STYLE_DIM, "%lu ",
				      next->seq);
	column += view_call_text(cells, area, 0, column, 0, next);
	draw_place(cells, area, column, next);
}

/* What is left, once the program has ended. */
static void draw_end(struct cells *cells, const struct cells_area *area,
		     const struct model *model)
{
	const struct session *session = model->session;
	unsigned long leaked = 0;

	for (uint32_t i = 0; model->graph && i < model->graph->nodes; i++)
		leaked += model->graph->node[i].state == GRAPH_LEAKED ||
			  model->graph->node[i].state == GRAPH_LIVE;
	bool bad = session->state == SESSION_KILLED || session->status != 0 ||
		   leaked > 0;
	const char *note =
		session->notes ? session->note[session->notes - 1] : NULL;
	int column = cells_text(cells, area, 0, 0,
				bad ? STYLE_BOLD | STYLE_BAD
				    : STYLE_BOLD | STYLE_GOOD,
				note ? note : session_text(session));
	if (leaked > 0)
		column += cells_printf(cells, area, 0, column,
				       STYLE_BOLD | STYLE_BAD,
				       ": %lu %s left alive", leaked,
				       leaked == 1 ? "object" : "objects");
	else if (!note)
		column += cells_text(cells, area, 0, column, 0,
				     ": every object was destroyed");
	if (model->guess.judgements)
		cells_printf(cells, area, 0, column, 0,
			     "; %u of %u guesses were right",
			     model->guess.right, model->guess.judgements);
}

/* A sentence over as many rows as the plan gave it. */
static void draw_hint(struct cells *cells, const struct cells_area *area,
		      const char *why)
{
	struct cells_area room = { area->row, area->column + 5, area->rows,
				   area->columns - 5 };

	cells_text(cells, area, 0, 0, STYLE_BOLD | STYLE_WARN, "why");
	for (int row = 0; row < area->rows && *why; row++) {
		size_t length = view_wrap(why, room.columns);
		cells_printf(cells, &room, row, 0, 0, "%.*s", (int)length, why);
		why += length;
		why += strspn(why, " ");
	}
}

/* What the message row says when nobody has anything to say. */
static void draw_idle(struct cells *cells, const struct cells_area *area,
		      const struct model *model)
{
	const struct session *session = model->session;
	const struct event *next = model_next(model);
	const char *why = view_hint(model);

	if (model_present(model) && (session->state == SESSION_EXITED ||
				     session->state == SESSION_KILLED)) {
		draw_end(cells, area, model);
	} else if (why) {
		draw_hint(cells, area, why);
	} else if (next) {
		draw_next(cells, area, model, next);
	} else if (session->notes) {
		cells_text(cells, area, 0, 0, STYLE_BOLD,
			   session->note[session->notes - 1]);
	} else {
		char state[64];
		cells_text(cells, area, 0, 0, 0,
			   model_state_text(model, state, sizeof(state)));
	}
}

void view_message(struct cells *cells, const struct view_plan *plan,
		  struct model *model)
{
	struct cells_area room = plan->message, *area = &room;

	if (model->presents) {
		int width = cells_width(model->pressed) + 2;

		cells_printf(cells, area, 0, area->columns - width,
			     STYLE_BOLD | STYLE_REVERSE, " %s ",
			     model->pressed);
		room.columns -= width + 1;
	}
	if (model->prompt) {
		int column = cells_printf(cells, area, 0, 0, STYLE_BOLD, "%c%s",
					  model->prompt, model->input);
		cells_text(cells, area, 0, column, STYLE_REVERSE, " ");
	} else if (model->confirm_quit) {
		cells_printf(cells, area, 0, 0, STYLE_BOLD | STYLE_WARN,
			     "%lu %s still alive in the program. "
			     "Quit and end it? y/n",
			     model_live(model),
			     model_live(model) == 1 ? "object is"
						    : "objects are");
	} else if (model->message[0]) {
		cells_text(cells, area, 0, 0, STYLE_BOLD, model->message);
	} else if (model->session && model->screen == SCREEN_STEP) {
		draw_idle(cells, area, model);
	}
}

/* A key's name and what it does, in the key row. */
struct key_word {
	const char *key, *word;
};

static int draw_key(struct cells *cells, const struct cells_area *area,
		    int column, const struct key_word *word)
{
	int start = column;

	column += cells_text(cells, area, 0, column, STYLE_BOLD, word->key);
	column += 1;
	column += cells_text(cells, area, 0, column, 0, word->word);
	return column - start;
}

static int key_width(const struct key_word *word)
{
	return cells_width(word->key) + 1 + cells_width(word->word);
}

/* The keys that matter most now, a NULL at the end. */
static const struct key_word *keys_now(const struct model *model)
{
	static const struct key_word asked[] = { { "y", "quit" },
						 { "n", "stay" },
						 { NULL, NULL } };
	static const struct key_word typed[] = { { "Enter", "search" },
						 { "Esc", "back" },
						 { NULL, NULL } };
	static const struct key_word menu[] = { { "Up Down", "choose" },
						{ "Enter", "open" },
						{ NULL, NULL } };
	static const struct key_word done[] = { { "Up Down", "choose" },
						{ "Enter", "open" },
						{ "x", "forget it" },
						{ NULL, NULL } };
	static const struct key_word past[] = {
		{ "[", "back" },   { "]", "forward" }, { "}", "present" },
		{ "Tab", "pane" }, { "/", "search" },  { NULL, NULL }
	};
	static const struct key_word running[] = { { "p", "pause" },
						   { "[", "past" },
						   { "r", "restart" },
						   { "Esc", "menu" },
						   { NULL, NULL } };
	static const struct key_word ended[] = {
		{ "r", "restart" }, { ">", "next lesson" }, { "Esc", "menu" },
		{ "[", "past" },    { "Tab", "pane" },      { "/", "search" },
		{ NULL, NULL }
	};
	static const struct key_word stopped[] = {
		{ "Space", "call" }, { "m", "step" },   { "+ -", "guess" },
		{ "c", "run" },      { "[ ]", "past" }, { "Tab", "pane" },
		{ "b", "break" },    { "/", "search" }, { NULL, NULL }
	};

	static const struct key_word other_ended[] = {
		{ "r", "restart" }, { "Esc", "menu" }, { "[", "past" },
		{ "Tab", "pane" },  { "/", "search" }, { NULL, NULL }
	};

	if (model->confirm_quit)
		return asked;
	if (model->prompt)
		return typed;
	if (model->screen == SCREEN_MENU || !model->session)
		return model->menu >= 0 && model->menu < model->lessons &&
				       model->lesson[model->menu].done
			       ? done
			       : menu;
	if (!model_present(model))
		return past;
	bool beside =
		model->current >= 0 && model->current + 1 < model->lessons;
	return model->session->state == SESSION_RUNNING   ? running
	       : model->session->state == SESSION_STOPPED ? stopped
	       : beside                                   ? ended
							  : other_ended;
}

void view_keys(struct cells *cells, const struct view_plan *plan,
	       const struct model *model)
{
	static const struct key_word help = { "?", "help" };
	static const struct key_word quit = { "q", "quit" };
	const struct cells_area *area = &plan->keys;
	bool modal = model->confirm_quit || model->prompt;
	const struct key_word *word = keys_now(model);
	/* How to get help and how to leave are always seen. */
	int end = area->columns - 1;

	if (!modal) {
		end -= key_width(&quit);
		draw_key(cells, area, end, &quit);
		end -= key_width(&help) + 2;
		draw_key(cells, area, end, &help);
	}
	for (int column = 0; word->key; word++) {
		if (column + key_width(word) + 2 > end)
			break;
		column += draw_key(cells, area, column, word) + 2;
	}
}
