/* SPDX-License-Identifier: MIT */
/*
 * What stands around the panes: the title row, the rules with the panes'
 * names, the last call and its answer, the message row and the key row.
 */
#include "tui/view_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/words.h"

/* The device of the newest context, or "". */
static const char *device_name(const struct model *model)
{
	const struct graph *graph = model->graph;
	static const char *const names[] = { "device", "name", "dev_name" };

	for (uint32_t n = graph ? graph->nodes : 0; n > 0; n--) {
		const struct graph_node *node = &graph->node[n - 1];
		if (node->type != RULES_CONTEXT)
			continue;
		for (int i = 0; i < node->attrs; i++)
			for (int k = 0; k < 3; k++)
				if (!strcmp(node->attr[i].name, names[k]))
					return node->attr[i].value;
	}
	return "";
}

void view_title(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	const struct cells_area *area = &plan->title;
	char state[64], place[48];
	int step, steps;

	model_step_count(model, &step, &steps);
	if (steps > 0)
		snprintf(place, sizeof(place), "step %d/%d", step, steps);
	else if (step > 0)
		snprintf(place, sizeof(place), "step %d", step);
	else
		snprintf(place, sizeof(place), "call %zu",
			 model_calls_shown(model));
	model_state_text(model, state, sizeof(state));

	char *right;
	if (asprintf(&right, "  %s  %s  %s ", place, device_name(model),
		     state) < 0)
		return;
	int width = cells_width(right);
	struct cells_area left = *area;
	left.columns -= width;
	if (model->current >= 0 && model->current < model->lessons) {
		const struct model_lesson *lesson =
			&model->lesson[model->current];
		int used = cells_printf(cells, &left, 0, 1, STYLE_BOLD, "%s",
					lesson->name);
		cells_printf(cells, &left, 0, used + 3, 0, "%s", lesson->title);
	} else if (model->program) {
		cells_text(cells, &left, 0, 1, STYLE_BOLD, model->program);
	}
	cells_text(cells, area, 0, area->columns - width,
		   model_present(model) ? 0 : STYLE_BOLD, right);
	if (model->session->state == SESSION_KILLED && model_present(model))
		cells_style(cells, area, 0,
			    area->columns - cells_width(state) - 1,
			    cells_width(state), STYLE_BOLD | STYLE_BAD);
	cells_style(cells, area, 0, 0, area->columns, STYLE_REVERSE);
	free(right);
}

/* The name of a pane in its rule, in a string the caller frees. */
static char *pane_title(struct model *model, enum model_pane pane)
{
	const struct graph_node *node = model_selected(model);
	const struct event *event = view_placed(model);
	char *title = NULL;
	int rc = 0;

	switch (pane) {
	case PANE_SOURCE:
		rc = asprintf(&title, "%s", event ? event->file : "source");
		break;
	case PANE_GRAPH:
		rc = asprintf(&title, "objects");
		break;
	case PANE_ATTRS:
		rc = node ? asprintf(&title, "%s %s", node->id,
				     rules_objects[node->type].name)
			  : asprintf(&title, "no object");
		break;
	case PANE_WORDS:
		rc = asprintf(&title, "words");
		break;
	case PANE_CALLS:
		rc = asprintf(&title, "calls");
		break;
	default:
		rc = model->session->lines_lost
			     ? asprintf(&title, "output, %lu older lines lost",
					model->session->lines_lost)
			     : asprintf(&title, "output");
	}
	return rc < 0 ? NULL : title;
}

/* The heading of the section in the words pane, or NULL. */
static const char *words_heading(const struct model *model)
{
	const char *id = model_step_id(model);
	const struct words_section *section = NULL;

	if (!id)
		return NULL;
	if (model->current >= 0 && model->current < model->lessons)
		section = words_find(model->lang,
				     model->lesson[model->current].name, id);
	return section ? section->title : id;
}

/*
 * "4-6/12" before `end` when a pane does not show all of its rows. Gives
 * where it begins, else `end`.
 */
static int draw_extent(struct cells *cells, const struct view_plan *plan,
		       const struct model *model, enum model_pane pane, int end)
{
	int rows = plan->pane[pane].rows, length = model->length[pane];
	int top = model->scroll[pane].top;
	char text[48];

	if (length <= rows)
		return end;
	if (top > length - rows)
		top = length - rows;
	if (top < 0)
		top = 0;
	snprintf(text, sizeof(text), " %d-%d/%d ", top + 1, top + rows, length);
	if (end - cells_width(text) < 20)
		return end;
	end -= cells_width(text);
	cells_text(cells, &plan->rule[pane], 0, end, STYLE_DIM, text);
	return end;
}

/* The other parts of the strip, a Tab away. Gives where they begin. */
static int draw_others(struct cells *cells, const struct cells_area *rule,
		       enum model_pane pane)
{
	static const char *const name[PANES] = {
		[PANE_WORDS] = " words ",
		[PANE_CALLS] = " calls ",
		[PANE_OUTPUT] = " output ",
	};
	int end = rule->columns;

	for (int other = PANES - 1; other >= PANE_WORDS && end > 40; other--) {
		if (other == (int)pane)
			continue;
		end -= cells_width(name[other]) + 1;
		cells_text(cells, rule, 0, end, STYLE_DIM, name[other]);
	}
	return end;
}

static void draw_rule(struct cells *cells, const struct view_plan *plan,
		      struct model *model, enum model_pane pane)
{
	struct cells_area all = { 0, 0, cells->rows, cells->columns };
	const struct cells_area *rule = &plan->rule[pane];
	bool focus = model->focus == pane;
	struct cells_area room = *rule;

	cells_hline(cells, &all, rule->row, rule->column - 1,
		    rule->column + rule->columns, STYLE_DIM);
	if (!plan->side && pane >= PANE_WORDS)
		room.columns = draw_others(cells, rule, pane) - 1;
	room.columns = draw_extent(cells, plan, model, pane, room.columns - 1);
	char *title = pane_title(model, pane);
	/* Of a long path the end says most. */
	if (title && cells_width(title) > room.columns - 4) {
		const char *base = view_base(title);
		memmove(title, base, strlen(base) + 1);
	}
	int used = cells_printf(cells, &room, 0, 2,
				focus ? STYLE_BOLD | STYLE_REVERSE : STYLE_BOLD,
				focus ? "[%s]" : " %s ", title ? title : "");
	free(title);
	const char *heading = pane == PANE_WORDS ? words_heading(model) : NULL;
	if (heading)
		cells_printf(cells, &room, 0, 2 + used, STYLE_BOLD, "%s%s ",
			     focus ? " " : "", heading);
}

static bool is_rule(const struct view_plan *plan, int row)
{
	for (int pane = 0; pane < PANES; pane++)
		if (plan->rule[pane].columns > 0 && plan->rule[pane].row == row)
			return true;
	return false;
}

void view_rules(struct cells *cells, const struct view_plan *plan,
		struct model *model)
{
	struct cells_area all = { 0, 0, cells->rows, cells->columns };

	for (int pane = 0; pane < PANES; pane++) {
		const struct cells_area *area = &plan->pane[pane];
		if (area->column == 0 || plan->rule[pane].columns == 0)
			continue;
		int end = area->row + area->rows;
		cells_vline(cells, &all, area->column - 1, plan->rule[pane].row,
			    is_rule(plan, end) ? end : end - 1, STYLE_DIM);
	}
	for (int pane = 0; pane < PANES; pane++)
		if (plan->rule[pane].columns > 0)
			draw_rule(cells, plan, model, (enum model_pane)pane);
}

/* "refused: EBUSY"; "ok". */
static void verdict(const struct event *call, char *out, size_t size)
{
	if (call->ok)
		snprintf(out, size, "ok");
	else if (call->err)
		snprintf(out, size, "refused: %s", rules_errno_name(call->err));
	else
		snprintf(out, size, "failed");
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

void view_last(struct cells *cells, const struct view_plan *plan,
	       const struct model *model)
{
	const struct cells_area *area = &plan->last;
	const struct event *call = view_last_call(model);
	char answer[64], number[32];

	cells_text(cells, area, 0, 0, STYLE_DIM, "last");
	if (!call) {
		cells_text(cells, area, 0, 5, STYLE_DIM, "no call yet");
		return;
	}
	unsigned int style = call->ok ? 0 : STYLE_BOLD | STYLE_BAD;
	verdict(call, answer, sizeof(answer));
	/* On a narrow screen the answer itself must do. */
	if (area->columns < 60 && !call->ok)
		answer[0] = '\0';
	struct cells_area room = *area;
	room.columns -= cells_width(answer) + 3;
	snprintf(number, sizeof(number), "%lu ", call->seq);
	int column = 5 + cells_text(cells, &room, 0, 5, STYLE_DIM, number);
	column += view_call_text(cells, &room, 0, column, style, call);
	draw_place(cells, &room, column, call);
	cells_text(cells, area, 0, area->columns - cells_width(answer) - 1,
		   call->ok ? STYLE_GOOD : STYLE_BOLD | STYLE_BAD, answer);
}

const char *view_hint(const struct model *model)
{
	const struct event *call = view_last_call(model);

	if (!call || model->message[0] || model->prompt || model->confirm_quit)
		return NULL;
	if (!call->ok)
		return rules_hint(call->call, call->err);
	for (int i = 0; i < call->out.count; i++) {
		const struct event_field *field = &call->out.field[i];
		if (strncmp(field->value, "IBV_WC_", 7) != 0 ||
		    !strstr(field->name, "status"))
			continue;
		for (int status = 1; status < 32; status++)
			if (!strcmp(rules_wc_status(status), field->value))
				return rules_wc_hint(status);
	}
	return NULL;
}

static void draw_next(struct cells *cells, const struct cells_area *area,
		      const struct model *model, const struct event *next)
{
	cells_text(cells, area, 0, 0, STYLE_DIM, "next");
	if (next->kind == EVENT_MARK) {
		const char *heading = words_heading(model);
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
		cells_printf(cells, area, 0, column, STYLE_BOLD | STYLE_BAD,
			     ": %lu %s left alive", leaked,
			     leaked == 1 ? "object" : "objects");
	else if (!note)
		cells_text(cells, area, 0, column, 0,
			   ": every object was destroyed");
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
	const struct cells_area *area = &plan->message;

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
		{ "r", "restart" }, { "[", "past" },   { "Esc", "menu" },
		{ "Tab", "pane" },  { "/", "search" }, { NULL, NULL }
	};
	static const struct key_word stopped[] = {
		{ "Space", "call" }, { "m", "step" },   { "c", "run" },
		{ "b", "break" },    { "[ ]", "past" }, { "Tab", "pane" },
		{ "/", "search" },   { NULL, NULL }
	};

	if (model->confirm_quit)
		return asked;
	if (model->prompt)
		return typed;
	if (model->screen == SCREEN_MENU || !model->session)
		return menu;
	if (!model_present(model))
		return past;
	return model->session->state == SESSION_RUNNING   ? running
	       : model->session->state == SESSION_STOPPED ? stopped
							  : ended;
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
