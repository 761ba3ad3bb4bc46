/* SPDX-License-Identifier: MIT */
/*
 * History: which events there are, at which of them the screen stands, and
 * the graph as it was there.
 */
#include "tui/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/words.h"
#include "tui/model_private.h"

int model_init(struct model *model, const struct model_lesson *lesson,
	       int lessons, const char *lang)
{
	memset(model, 0, sizeof(*model));
	model->lesson = lesson;
	model->lessons = lessons;
	model->lang = lang;
	model->current = -1;
	model->private = calloc(1, sizeof(struct model_private));
	model->graph = graph_new();
	if (!model->private || !model->graph) {
		model_free(model);
		return ENOMEM;
	}
	return 0;
}

void model_free(struct model *model)
{
	session_free(model->session);
	if (model->graph)
		graph_free(model->graph);
	model_free_sources(model);
	for (int i = 0; i < model->source_dirs; i++)
		free(model->source_dir[i]);
	free(model->source_dir);
	free(model->stop);
	free(model->call);
	if (model->private)
		free(((struct model_private *)model->private)->mark);
	free(model->private);
	memset(model, 0, sizeof(*model));
}

int model_add_source_dir(struct model *model, const char *path)
{
	size_t count = (size_t)model->source_dirs;
	char **dir = realloc(model->source_dir, (count + 1) * sizeof(*dir));

	if (!dir)
		return ENOMEM;
	model->source_dir = dir;
	dir[count] = strdup(path);
	if (!dir[count])
		return ENOMEM;
	model->source_dirs++;
	return 0;
}

int model_attach(struct model *model, struct session *session,
		 const char *program, int current)
{
	struct model_private *own = model->private;
	struct graph *graph = graph_new();

	if (!graph) {
		session_free(session);
		return ENOMEM;
	}
	session_free(model->session);
	graph_free(model->graph);
	model->session = session;
	model->graph = graph;
	model->program = program;
	model->current = current;
	model->screen = session ? SCREEN_STEP : SCREEN_MENU;
	model->focus = PANE_SOURCE;
	/* Only lessons have words. */
	model->lower = session && current < 0 ? PANE_CALLS : PANE_WORDS;
	model->at = model->stops = model->calls = 0;
	memset(model->scroll, 0, sizeof(model->scroll));
	memset(model->length, 0, sizeof(model->length));
	for (int pane = 0; pane < PANES; pane++)
		model->scroll[pane].follows = true;
	memset(model->expanded, 0, sizeof(model->expanded));
	model->selected[0] = model->message[0] = '\0';
	model->help = model->confirm_quit = model->zoom = false;
	model->prompt = '\0';
	memset(&model->guess, 0, sizeof(model->guess));
	own->known = own->folded = 0;
	own->ended = own->bye = false;
	own->opens = 0;
	own->marks = 0;
	own->notes = 0;
	/* A program may have been built anew since its source was read. */
	model_free_sources(model);
	return 0;
}

/* --- taking events in ----------------------------------------------------- */

static int append(size_t **list, size_t *used, size_t *room, size_t value)
{
	if (*used == *room) {
		size_t more = *room ? 2 * *room : 256;
		size_t *longer = realloc(*list, more * sizeof(**list));

		if (!longer)
			return ENOMEM;
		*list = longer;
		*room = more;
	}
	(*list)[(*used)++] = value;
	return 0;
}

/* Forgets the enter that this ret belongs to. False: it had none. */
static bool close_enter(struct model *model, const struct event *ret)
{
	struct model_private *own = model->private;

	for (int i = own->opens - 1; i >= 0; i--) {
		if (model->session->event[own->open[i]]->seq != ret->seq)
			continue;
		own->opens--;
		memmove(&own->open[i], &own->open[i + 1],
			(size_t)(own->opens - i) * sizeof(own->open[0]));
		return true;
	}
	return false;
}

static void open_enter(struct model_private *own, size_t index)
{
	if (own->opens == MODEL_OPEN_MAX) {
		own->opens--;
		memmove(&own->open[0], &own->open[1],
			(MODEL_OPEN_MAX - 1) * sizeof(own->open[0]));
	}
	own->open[own->opens++] = index;
}

static void judge_guess(struct model_guess *guess, const struct event *ret)
{
	if (guess->judged || guess->seq != ret->seq)
		return;
	guess->judged = true;
	guess->judgements++;
	guess->right += guess->refused == !ret->ok;
}

static int take_in(struct model *model, size_t index)
{
	struct model_private *own = model->private;
	const struct event *event = model->session->event[index];
	size_t stop = index + 1;
	bool is_stop = false;
	int err = 0;

	model_learn_dir(model, event);
	switch (event->kind) {
	case EVENT_ENTER:
		open_enter(own, index);
		is_stop = true;
		break;
	case EVENT_MARK:
		is_stop = true;
		err = append(&own->mark, &own->marks, &own->mark_room, stop);
		break;
	case EVENT_RET:
		judge_guess(&model->guess, event);
		/* Run past without a word before: it stood before this. */
		if (!close_enter(model, event)) {
			is_stop = true;
			stop = index;
		}
		err = append(&model->call, &model->calls, &own->call_room,
			     index);
		break;
	case EVENT_BYE:
		own->bye = true;
		break;
	default:
		break;
	}
	if (model->stops && model->stop[model->stops - 1] >= stop)
		is_stop = false;
	if (is_stop && !err)
		err = append(&model->stop, &model->stops, &own->stop_room,
			     stop);
	return err;
}

static bool session_ended(const struct session *session)
{
	return session->state == SESSION_EXITED ||
	       session->state == SESSION_KILLED;
}

/* The end of a program that did not say so itself, after all it said. */
static int fold_end(struct model *model)
{
	static const struct event end = { .kind = EVENT_BYE };
	struct model_private *own = model->private;

	if (own->bye || own->ended || !session_ended(model->session))
		return 0;
	own->ended = true;
	if (graph_forth(model->graph))
		return 0;
	return graph_apply(model->graph, &end) == ENOMEM ? ENOMEM : 0;
}

/* Brings the graph to the first `at` events. */
static int fold(struct model *model, size_t at)
{
	struct model_private *own = model->private;
	struct session *session = model->session;

	if (own->ended && at < own->known)
		own->ended = !graph_back(model->graph);
	for (; own->folded > at; own->folded--)
		if (!graph_back(model->graph))
			return ENOMEM;
	/* An event that cannot be is ignored: EPROTO is no failure here. */
	for (; own->folded < at; own->folded++)
		if (!graph_forth(model->graph) &&
		    graph_apply(model->graph, session->event[own->folded]) ==
			    ENOMEM)
			return ENOMEM;
	return at == own->known ? fold_end(model) : 0;
}

/* What the session has to say goes to the message row. */
static void take_notes(struct model *model)
{
	struct model_private *own = model->private;
	const struct session *session = model->session;

	if (session->notes_ever == own->notes || !session->notes)
		return;
	own->notes = session->notes_ever;
	snprintf(model->message, sizeof(model->message), "%s",
		 session->note[session->notes - 1]);
}

int model_update(struct model *model)
{
	struct model_private *own = model->private;
	bool present = model_present(model);
	int err = 0;

	if (!model->session)
		return 0;
	take_notes(model);
	for (; own->known < model->session->events && !err; own->known++)
		err = take_in(model, own->known);
	if (!err && present)
		err = model_seek(model, own->known);
	return err;
}

/* --- where the screen stands ---------------------------------------------- */

int model_seek(struct model *model, size_t at)
{
	struct model_private *own = model->private;

	if (!model->session)
		return 0;
	model->at = at > own->known ? own->known : at;
	return fold(model, model->at);
}

bool model_present(const struct model *model)
{
	const struct model_private *own = model->private;

	return model->at == own->known;
}

/* How many of some places of the history, ascending, lie until `at`. */
static size_t count_until(const size_t *place, size_t places, size_t at)
{
	size_t low = 0, high = places;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (place[middle] <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t stops_until(const struct model *model, size_t at)
{
	return count_until(model->stop, model->stops, at);
}

size_t model_behind(const struct model *model)
{
	const struct model_private *own = model->private;
	size_t behind = model->stops - stops_until(model, model->at);

	if (model->at < own->known &&
	    (!model->stops || model->stop[model->stops - 1] < own->known))
		behind++;
	return behind;
}

size_t model_before(const struct model *model)
{
	size_t stops = stops_until(model, model->at);

	if (stops && model->stop[stops - 1] == model->at)
		stops--;
	return stops ? model->stop[stops - 1] : model->at;
}

size_t model_after(const struct model *model)
{
	const struct model_private *own = model->private;
	size_t stops = stops_until(model, model->at);

	return stops < model->stops ? model->stop[stops] : own->known;
}

size_t model_calls_shown(const struct model *model)
{
	return model->at ? count_until(model->call, model->calls, model->at - 1)
			 : 0;
}

const struct event *model_event(const struct model *model)
{
	return model->session && model->at
		       ? model->session->event[model->at - 1]
		       : NULL;
}

/* A call that ran past without an enter, as the enter it would have had. */
static const struct event *unspoken_enter(const struct model *model,
					  const struct event *ret)
{
	struct model_private *own = model->private;

	own->enter = (struct event){
		.kind = EVENT_ENTER,
		.seq = ret->seq,
		.tid = ret->tid,
		.call = ret->call,
		.args = ret->args,
		.file = ret->file,
		.line = ret->line,
		.func = ret->func,
	};
	return &own->enter;
}

const struct event *model_stop_event(const struct model *model, size_t at)
{
	const struct model_private *own = model->private;
	const struct event *event;

	if (at) {
		event = model->session->event[at - 1];
		if (event->kind == EVENT_ENTER || event->kind == EVENT_MARK)
			return event;
	}
	if (at == own->known)
		return NULL;
	event = model->session->event[at];
	return event->kind == EVENT_RET ? unspoken_enter(model, event) : NULL;
}

const struct event *model_next(const struct model *model)
{
	const struct model_private *own = model->private;

	if (!model->session)
		return NULL;
	if (model_present(model) && model->session->stopped_at)
		return model->session->stopped_at;
	if (model_present(model) && own->opens)
		return model->session->event[own->open[own->opens - 1]];
	return model_stop_event(model, model->at);
}

unsigned long model_ghosts_from(const struct model *model)
{
	size_t calls = model_calls_shown(model);

	return calls ? model->session->event[model->call[calls - 1]]->seq : 0;
}

unsigned long model_live(struct model *model)
{
	const struct model_private *own = model->private;
	unsigned long live = 0;

	if (!model->session || fold(model, own->known))
		return 0;
	for (int type = 0; type < RULES_OBJECTS; type++)
		live += model->graph->live[type];
	return fold(model, model->at) ? 0 : live;
}

/* --- steps and state ------------------------------------------------------ */

/* How many of the marks lie at or before the shown place. */
static size_t marks_shown(const struct model *model)
{
	const struct model_private *own = model->private;

	return count_until(own->mark, own->marks, model->at);
}

const char *model_step_id(const struct model *model)
{
	const struct model_private *own = model->private;
	size_t marks = model->session ? marks_shown(model) : 0;

	return marks ? model->session->event[own->mark[marks - 1] - 1]->call
		     : NULL;
}

void model_step_count(const struct model *model, int *step, int *steps)
{
	const char *id = model->session ? model_step_id(model) : NULL;
	const char *lesson =
		model->current >= 0 ? model->lesson[model->current].name : NULL;
	int found = 0;

	*step = *steps = 0;
	for (int i = 0; lesson && i < words_sections_count; i++) {
		const struct words_section *section = &words_sections[i];

		if (strcmp(section->lang, "en") || !section->id[0] ||
		    strcmp(section->lesson, lesson))
			continue;
		++*steps;
		if (id && !strcmp(section->id, id))
			found = *steps;
	}
	if (found) {
		*step = found;
		return;
	}
	*step = id ? (int)marks_shown(model) : 0;
}

const char *model_state_text(const struct model *model, char *out, size_t size)
{
	const struct session *session = model->session;
	const struct event *next = model_next(model);

	if (!session)
		snprintf(out, size, "%s", "");
	else if (!model_present(model))
		snprintf(out, size, "past, %zu back", model_behind(model));
	else if (session->state != SESSION_RUNNING || !session->running_seconds)
		snprintf(out, size, "%s", session_text(session));
	else if (next && next->kind == EVENT_ENTER)
		snprintf(out, size, "running %u s in %s",
			 session->running_seconds, next->call);
	else
		snprintf(out, size, "running %u s", session->running_seconds);
	return out;
}
