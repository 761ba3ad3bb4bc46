/* SPDX-License-Identifier: MIT */
/*
 * A run as text on stdout: every call with its place, arguments and answer,
 * every step with its title, the program's output, and at the end what was
 * left alive. Needs no terminal.
 */
#ifndef TUI_BATCH_H
#define TUI_BATCH_H

#include "tui/session.h"

/*
 * Steps the program to its end. `lesson` is its name for the titles of the
 * steps, NULL when it is none; `lang` the language of these. Gives the
 * status for main(): the program's, or 128 and its signal; so too when a
 * signal ended us. Frees the session.
 */
int batch_run(struct session *session, const char *lesson, const char *lang);

#endif
