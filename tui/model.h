/* SPDX-License-Identifier: MIT */
/*
 * What the screen shows, as data: changed by keys and by the session, read by
 * the views. No curses here: a view draws a model into cells (cells.h), and a
 * test can do both without a terminal.
 */
#ifndef TUI_MODEL_H
#define TUI_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/trace/graph.h"
#include "tui/session.h"

enum model_screen { SCREEN_MENU, SCREEN_STEP };

enum model_pane {
	PANE_SOURCE,
	PANE_GRAPH,
	PANE_ATTRS,
	PANE_WORDS,
	PANE_CALLS,
	PANE_OUTPUT,
	PANES,
};

/* One lesson of the menu. */
struct model_lesson {
	const char *number; /* "05" */
	const char *name; /* "05_qp" */
	const char *title; /* "The queue pair" */
	char *path; /* the program; NULL: not built */
};

/* A source file as lines; files that cannot be read have 0 lines. */
struct model_source {
	char *path; /* as the events name it */
	char **line;
	int lines;
};

/* Where a pane is scrolled to and what its cursor is on. */
struct model_scroll {
	int top;
	int cursor;
	bool follows; /* keeps the newest, or the current line, in view */
};

struct model {
	enum model_screen screen;
	const struct model_lesson *lesson; /* table, `lessons` rows */
	int lessons;
	int menu; /* the row under the cursor */
	int current; /* the lesson that runs; -1: any other program */
	const char *program; /* what runs, for the title */
	const char *lang;

	struct session *session; /* NULL in the menu */
	/*
	 * History: the screen shows the first `at` events; at ==
	 * session->events is the present. `graph` is folded to it.
	 */
	size_t at;
	struct graph *graph;

	enum model_pane focus;
	/*
	 * The lower strip shows one of words, calls and output.
	 */
	enum model_pane lower;
	struct model_scroll scroll[PANES];
	char selected[24]; /* object id; "": the newest the graph has */
	bool tree; /* the graph as an indented tree */
	bool expanded[RULES_OBJECTS]; /* types shown one by one */
	bool help;
	char message[160]; /* for the message row, until the next key */

	/* A line being typed: '/' search; 0 when there is none. */
	char prompt;
	char input[80];
	char search[80]; /* what n and N look for */
	bool confirm_quit; /* asked, the child still holds objects */

	struct model_source *source; /* cache */
	int sources;
};

/* The event that the screen stands on: the newest shown; NULL before any. */
const struct event *model_event(const struct model *model);

/*
 * The call or mark that comes next at this place of the history: an enter
 * without its ret, or a mark just reached; NULL when none is known.
 */
const struct event *model_next(const struct model *model);

/* The id of the step that the shown place lies in; NULL before the first. */
const char *model_step_id(const struct model *model);

/* Which step of how many ("step 9/31"): marks passed, marks of the chapter
 * (0 when the program has none). */
void model_step_count(const struct model *model, int *step, int *steps);

/* The source of `path`, read on first use; never NULL. */
const struct model_source *model_source(struct model *model, const char *path);

/* The node shown in the attribute pane, or NULL. */
const struct graph_node *model_selected(const struct model *model);

#endif
