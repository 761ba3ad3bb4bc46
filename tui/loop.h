/* SPDX-License-Identifier: MIT */
/*
 * The screen: waits for keys and for the program, and draws. Where model,
 * view, terminal and session meet.
 */
#ifndef TUI_LOOP_H
#define TUI_LOOP_H

#include "tui/menu.h"
#include "tui/options.h"

/*
 * Runs until the person quits. `row` is the lesson to begin with; -1: the
 * program of the options, or the menu when there is none. Gives the status
 * for main().
 */
int loop_run(const struct menu *menu, const struct options *options,
	     const char *lang, int row);

#endif
