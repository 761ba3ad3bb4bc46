/* SPDX-License-Identifier: MIT */
/*
 * What each key does to a model. No curses here: the terminal turns what was
 * typed into these codes, the loop does what a result asks for, and a test
 * presses keys without either.
 */
#ifndef TUI_KEYS_H
#define TUI_KEYS_H

#include "tui/model.h"

/*
 * A character is its Unicode code point (Space is ' ', Ctrl-L is KEYS_CTRL_L);
 * keys that are no characters lie above them.
 */
enum keys_code {
	KEYS_NONE = -1,
	KEYS_TAB = '\t',
	KEYS_CTRL_L = 'L' & 31,
	KEYS_ENTER = '\r', /* also for '\n' and the keypad's */
	KEYS_ESC = 27,
	KEYS_UP = 0x110000,
	KEYS_DOWN,
	KEYS_LEFT,
	KEYS_RIGHT,
	KEYS_PAGE_UP,
	KEYS_PAGE_DOWN,
	KEYS_HOME,
	KEYS_END,
	KEYS_BACK_TAB,
	KEYS_BACKSPACE, /* also for 8 and 127 */
	KEYS_F1,
	KEYS_RESIZE, /* the size has changed: draw anew */
};

/* What the loop has to do after a key, besides drawing. */
enum keys_result {
	KEYS_DRAW,    /* nothing more */
	KEYS_START,   /* start the lesson in row model->menu */
	KEYS_RESTART, /* start what runs anew */
	KEYS_FORGET,  /* the lesson in row model->menu is no longer done */
	KEYS_MENU,    /* end what runs, show the menu */
	KEYS_REDRAW,  /* send the whole screen anew */
	KEYS_QUIT,
};

/*
 * Takes one key: moves in panes and in the history, sends commands to the
 * session, asks questions by way of the model. A key that means nothing says
 * so in model->message.
 */
enum keys_result keys_press(struct model *model, int code);

/* One key for the help screen and the manual page. */
struct keys_help {
	const char *key;  /* "Space s" */
	const char *does; /* "do this call, stop before the next" */
};

extern const struct keys_help keys_help[];
extern const int keys_help_count;

#endif
