/* SPDX-License-Identifier: MIT */
/*
 * From what the command line asks for to a program that runs.
 */
#ifndef TUI_START_H
#define TUI_START_H

#include "tui/menu.h"
#include "tui/options.h"
#include "tui/session.h"

/*
 * Starts the lesson in `row`, or for -1 the program of the options, under
 * the probe. NULL: *why says what was wrong, in a string the caller frees.
 */
struct session *start_session(const struct menu *menu,
			      const struct options *options, int row,
			      char **why);

/*
 * Turns into the program of the options, with soft0 in it. Comes back only
 * when that fails, with an errno.
 */
int start_at_full_speed(const struct menu *menu, const struct options *options);

/*
 * The signals that end the stepper (INT, TERM, HUP, QUIT), blocked and as a
 * descriptor that does not block, so that the program is ended with it. -1,
 * errno. The caller closes it.
 */
int start_ending_signals(void);

#endif
