/* SPDX-License-Identifier: MIT */
/*
 * Search in the pane in focus: source, words, calls, output by line, the
 * graph by object. Upper and lower case are the same.
 */
#include "tui/keys_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/words.h"
#include "tui/view.h"

/* The lines of a pane, by number; made for one search. */
struct lines {
	int count;
	char **line; /* borrowed */
	char *text;  /* words: what `line` points into; else NULL */
};

static void source_lines(struct model *model, struct lines *lines)
{
	const struct event *event = model_next(model);
	const struct model_source *source;

	for (size_t i = model->at; (!event || !event->file) && i > 0; i--)
		event = model->session->event[i - 1];
	if (!event || !event->file)
		return;
	source = model_source(model, event->file);
	lines->count = source->lines;
	lines->line = source->line;
}

/* Cuts the rendered section into lines, which the caller frees. */
static void word_lines(const struct model *model, struct lines *lines)
{
	const char *id = model_step_id(model);
	const struct words_section *section = NULL;
	int columns = VIEW_PROSE_COLUMNS;

	if (model->width > 0)
		columns = view_pane(model, model->height, model->width,
				    PANE_WORDS)
				  .columns -
			  1;
	if (id && model->current >= 0)
		section = words_find(model->lang,
				     model->lesson[model->current].name, id);
	if (section && columns > 0)
		lines->text =
			words_render(section, columns < VIEW_PROSE_COLUMNS
						      ? columns
						      : VIEW_PROSE_COLUMNS);
	for (char *at = lines->text; at && *at;) {
		char *end = at + strcspn(at, "\n");
		char **more = realloc(lines->line, ((size_t)lines->count + 1) *
							   sizeof(*more));

		if (!more)
			break;
		lines->line = more;
		more[lines->count++] = at;
		at = *end ? end + 1 : end;
		*end = '\0';
	}
}

static void take_lines(struct model *model, struct lines *lines)
{
	memset(lines, 0, sizeof(*lines));
	switch (model->focus) {
	case PANE_GRAPH:
	case PANE_ATTRS:
		lines->count = (int)model->graph->nodes;
		break;
	case PANE_CALLS:
		lines->count = (int)model->calls;
		break;
	case PANE_OUTPUT:
		lines->count = (int)model->session->lines;
		lines->line = model->session->line;
		break;
	case PANE_WORDS:
		word_lines(model, lines);
		break;
	default:
		source_lines(model, lines);
	}
}

static void free_lines(struct lines *lines)
{
	if (!lines->text)
		return;
	free(lines->line);
	free(lines->text);
}

static bool matches(const struct model *model, const struct lines *lines,
		    int row)
{
	bool found;
	char *text;

	if (model->focus == PANE_GRAPH || model->focus == PANE_ATTRS) {
		const struct graph_node *node = &model->graph->node[row];

		return strcasestr(node->id, model->search) &&
		       graph_find(model->graph, node->id) == node;
	}
	if (model->focus != PANE_CALLS)
		return strcasestr(lines->line[row], model->search);
	text = event_text(model->session->event[model->call[row]]);
	found = text && strcasestr(text, model->search);
	free(text);
	return found;
}

/* Where the search goes on from. */
static int search_from(const struct model *model)
{
	const struct graph_node *node = model_selected(model);
	const struct model_scroll *scroll = &model->scroll[model->focus];

	if (model->focus == PANE_GRAPH || model->focus == PANE_ATTRS)
		return node ? (int)(node - model->graph->node) : 0;
	return model->focus == PANE_WORDS ? scroll->top : scroll->cursor;
}

static void go_to(struct model *model, int row)
{
	if (model->focus == PANE_GRAPH || model->focus == PANE_ATTRS) {
		keys_select(model, &model->graph->node[row]);
	} else if (model->focus == PANE_WORDS) {
		model->scroll[PANE_WORDS].follows = false;
		model->scroll[PANE_WORDS].top = row;
	} else {
		keys_cursor(model, model->focus, row);
	}
}

void keys_search(struct model *model, int direction)
{
	struct lines lines;
	int from, row = 0, tried;

	if (!model->search[0]) {
		keys_say(model, "nothing to search for yet; / asks");
		return;
	}
	take_lines(model, &lines);
	from = search_from(model);
	for (tried = 1; tried <= lines.count; tried++) {
		row = (from + direction * tried) % lines.count;
		row += row < 0 ? lines.count : 0;
		if (matches(model, &lines, row))
			break;
	}
	if (tried > lines.count) {
		keys_say(model, "\"%s\" is not in this pane", model->search);
	} else {
		if (direction > 0 ? row <= from : row >= from)
			keys_say(model, "the search went round the end");
		go_to(model, row);
	}
	free_lines(&lines);
}

/* --- typing --------------------------------------------------------------- */

static void append_character(struct model *model, int code)
{
	size_t used = strlen(model->input);
	unsigned int c = (unsigned int)code;
	char utf8[5] = { 0 };

	if (c < 0x80) {
		utf8[0] = (char)c;
	} else if (c < 0x800) {
		utf8[0] = (char)(0xc0 | c >> 6);
		utf8[1] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		utf8[0] = (char)(0xe0 | c >> 12);
		utf8[1] = (char)(0x80 | (c >> 6 & 0x3f));
		utf8[2] = (char)(0x80 | (c & 0x3f));
	} else {
		utf8[0] = (char)(0xf0 | c >> 18);
		utf8[1] = (char)(0x80 | (c >> 12 & 0x3f));
		utf8[2] = (char)(0x80 | (c >> 6 & 0x3f));
		utf8[3] = (char)(0x80 | (c & 0x3f));
	}
	if (used + strlen(utf8) < sizeof(model->input))
		strcpy(model->input + used, utf8);
}

static void erase_character(struct model *model)
{
	size_t used = strlen(model->input);

	if (!used) {
		model->prompt = '\0';
		return;
	}
	do
		used--;
	while (used && (model->input[used] & 0xc0) == 0x80);
	model->input[used] = '\0';
}

void keys_prompt(struct model *model, int code)
{
	switch (code) {
	case KEYS_ESC:
		model->prompt = '\0';
		break;
	case KEYS_ENTER:
	case '\n':
		model->prompt = '\0';
		/* Nothing typed: what was searched for before. */
		if (model->input[0])
			snprintf(model->search, sizeof(model->search), "%s",
				 model->input);
		keys_search(model, 1);
		break;
	case KEYS_BACKSPACE:
		erase_character(model);
		break;
	default:
		if (code >= ' ' && code < KEYS_UP)
			append_character(model, code);
	}
}
