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
	const char *name;   /* "05_qp" */
	const char *title;  /* "The queue pair" */
	char *path;         /* the program; NULL: not built */
	bool done;          /* it was stepped to its end */
};

/* A source file as lines; files that cannot be read have 0 lines. */
struct model_source {
	char *path; /* as the events name it */
	char **line;
	int lines;
};

/* What the user said of a call before it was done, and of all of them. */
struct model_guess {
	unsigned long seq; /* of that call; 0: nothing was said yet */
	bool refused;      /* what was said */
	bool judged;       /* the call has returned since */
	unsigned int judgements, right;
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
	int menu;            /* the row under the cursor */
	int current;         /* the lesson that runs; -1: any other program */
	const char *program; /* what runs, for the title */
	const char *lang;

	struct session *session; /* NULL in the menu */
	/*
	 * History: the screen shows the first `at` events; at ==
	 * session->events is the present. `graph` is folded to it.
	 */
	size_t at;
	struct graph *graph;
	/*
	 * The places of the history that [ and ] visit, as values of `at`,
	 * ascending: before a call (after its enter; before the ret of one
	 * that had no enter) and at a mark. The present is one more when it
	 * is none of them.
	 */
	size_t *stop;
	size_t stops;
	/* The calls pane, a row each: indexes of all ret events. */
	size_t *call;
	size_t calls;      /* in the present; see model_calls_shown() */
	int height, width; /* of the screen, in characters; 0: not known */

	enum model_pane focus;
	/* The lower strip shows one of words, calls and output. */
	enum model_pane lower;
	struct model_scroll scroll[PANES];
	/*
	 * Rows of content the pane had when it was drawn last (0: not drawn);
	 * set by view_draw(), so that keys do not scroll past the end.
	 */
	int length[PANES];
	char selected[24]; /* object id; "": what the calls are about */
	bool tree;         /* the graph as an indented tree */
	bool expanded[RULES_OBJECTS]; /* types shown one by one */
	bool help;
	bool zoom;     /* the pane in focus takes all of the room */
	bool presents; /* the keys pressed last are shown */
	char pressed[48];
	char message[160]; /* for the message row, until the next key */

	/* A line being typed: '/' search; 0 when there is none. */
	char prompt;
	char input[80];
	char search[80];   /* what n and N look for */
	bool confirm_quit; /* asked, the child still holds objects */
	struct model_guess guess;

	struct model_source *source; /* cache */
	int sources;
	char **source_dir; /* where sources named relatively are looked for */
	int source_dirs;
	void *private; /* model.c's own */
};

/*
 * An empty model that shows the menu of `lessons` (borrowed, as is `lang`).
 * 0 or ENOMEM. model_free() also frees its session.
 */
int model_init(struct model *model, const struct model_lesson *lesson,
	       int lessons, const char *lang);
void model_free(struct model *model);

/* Adds a folder to source_dir. 0 or ENOMEM. */
int model_add_source_dir(struct model *model, const char *path);

/*
 * Shows a run from its beginning; the model owns `session` from here on and
 * frees the one before it. NULL: back to the menu. 0 or ENOMEM.
 */
int model_attach(struct model *model, struct session *session,
		 const char *program, int current);

/*
 * Takes in what session_dispatch() has brought: in the present the screen
 * moves on with it, in the past it stays where it is. 0 or ENOMEM.
 */
int model_update(struct model *model);

/* Moves the screen to the first `at` events of the history. 0 or ENOMEM. */
int model_seek(struct model *model, size_t at);

/* True when the screen shows the newest event. */
bool model_present(const struct model *model);

/* The stop before the shown place, and the one after it or the present. */
size_t model_before(const struct model *model);
size_t model_after(const struct model *model);

/* How many stops the screen is behind the present; 0 in the present. */
size_t model_behind(const struct model *model);

/* How many rows of the calls pane the shown place of the history has. */
size_t model_calls_shown(const struct model *model);

/*
 * For layout_graph(): the seq from which on destroyed and failed objects are
 * still shown as ghosts, that of the newest call that has returned.
 */
unsigned long model_ghosts_from(const struct model *model);

/* Objects alive in the present, contexts included, wherever the screen is. */
unsigned long model_live(struct model *model);

/*
 * "stopped", "running", "running 12 s in ibv_get_cq_event", "past, 3 back",
 * "exited 0": the state for the title row. Returns `out`.
 */
const char *model_state_text(const struct model *model, char *out, size_t size);

/*
 * The tree view: the nodes shown now, parents before children, each once
 * (below its first parent). Up and Down in the graph pane follow this order
 * when model->tree. Frees with free(); NULL with *rows 0 when there is none.
 */
struct model_tree_row {
	uint32_t node;
	int depth;
};
struct model_tree_row *model_tree(const struct model *model, int *rows);

/* The event that the screen stands on: the newest shown; NULL before any. */
const struct event *model_event(const struct model *model);

/*
 * The call or mark that comes next at this place of the history: an enter
 * without its ret, or a mark just reached; NULL when none is known.
 */
const struct event *model_next(const struct model *model);

/*
 * The same for any stop. Of a call that had no enter one is made up, which
 * stays until the next call of these functions.
 */
const struct event *model_stop_event(const struct model *model, size_t at);

/* The id of the step that the shown place lies in; NULL before the first. */
const char *model_step_id(const struct model *model);

/* Which step of how many ("step 9/31"): marks passed, marks of the chapter
 * (0 when the program has none). */
void model_step_count(const struct model *model, int *step, int *steps);

/*
 * The source of `path`, read on first use, tabs as blanks; never NULL. It
 * stays until the next call of this function.
 */
const struct model_source *model_source(struct model *model, const char *path);

/*
 * The node shown in the attribute pane, or NULL: the selected one; else what
 * the next call is about, unless that creates; else what the last one was.
 */
const struct graph_node *model_selected(const struct model *model);

#endif
