/* SPDX-License-Identifier: MIT */
/*
 * The terminal, by way of ncurses: shows grids of cells, gives keys. The only
 * file that knows curses.
 *
 * Rules of use: main() sets the locale first (LC_CTYPE and LC_MESSAGES); one
 * terminal per process, one thread. Between terminal_open() and
 * terminal_close() nothing else may write to the terminal; what goes to
 * stderr meanwhile, when that is a terminal, is held and replayed at the end.
 *
 * The terminal is put back on every way out: terminal_close(), exit(), and
 * the signals HUP, INT, QUIT, TERM, ABRT, SEGV, BUS, FPE, ILL, which then
 * end the process as they would have. TSTP and CONT work.
 */
#ifndef TUI_TERMINAL_H
#define TUI_TERMINAL_H

#include <stdbool.h>

#include "tui/cells.h"

/*
 * Takes the terminal over. `ascii`: no character beyond ASCII, whatever the
 * locale can. 0; or -1 when this is no terminal that can show a screen, and
 * *why then says so in a static string.
 */
int terminal_open(bool ascii, const char **why);
void terminal_close(void); /* harmless when it is not open */

/* The size now, in characters; changes only with KEYS_RESIZE. */
void terminal_size(int *rows, int *columns);

/* Shows `cells`, which have the terminal's size, by what has changed. */
void terminal_show(const struct cells *cells);

/* The next terminal_show() sends every character anew (Ctrl-L). */
void terminal_redraw(void);

/*
 * The next key as keys.h has them, KEYS_NONE when there is none yet. Never
 * waits, but for the rest of an escape sequence (ESCDELAY, else 25 ms). Call
 * it until KEYS_NONE before waiting: ncurses holds keys of its own.
 */
int terminal_key(void);

/*
 * Waits until a key or a change of size may be there, `fd` (-1: none) is
 * readable, or `milliseconds` (-1: for ever) have passed. True when `fd` is
 * readable, or the terminal is gone (then SIGHUP is pending). Signals are taken
 * here, so that none is lost before the wait.
 */
bool terminal_wait(int fd, int milliseconds);

#endif
