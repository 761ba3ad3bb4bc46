/* SPDX-License-Identifier: MIT */
/*
 * Which lessons were stepped to their end, in $XDG_STATE_HOME/verbstep/progress
 * (~/.local/state where that is not set): a first line that says what it is,
 * then the name of a lesson a line. Nothing depends on it.
 */
#ifndef TUI_PROGRESS_H
#define TUI_PROGRESS_H

#include "tui/model.h"

/*
 * Sets `done` of the lessons in the file. NULL; or, when there is one that
 * cannot be read or is something else, what is wrong, in words for the message
 * row, in a string that the caller frees: nothing is set then.
 */
char *progress_read(struct model_lesson *lesson, int lessons);

/*
 * Puts the lessons that are done into the file, all or nothing. A file that is
 * something else stays. As above.
 */
char *progress_write(const struct model_lesson *lesson, int lessons);

#endif
