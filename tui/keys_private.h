/* SPDX-License-Identifier: MIT */
/*
 * What the files of the keys share. For nobody else.
 */
#ifndef TUI_KEYS_PRIVATE_H
#define TUI_KEYS_PRIVATE_H

#include "tui/keys.h"

/* Puts a text into the message row. */
void keys_say(struct model *model, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Keeps the names of the keys pressed last, for those who watch. */
void keys_note(struct model *model, int code);

/* Every pane shows the newest, or the current line, again. */
void keys_follow(struct model *model);

bool keys_has_ended(const struct model *model);

/* The screen shows the first `at` events. */
void keys_seek(struct model *model, size_t at);
/* The first stop behind the event with this index, or the present. */
size_t keys_stop_behind(const struct model *model, size_t index);
/* A stop back, and forward. */
void keys_back(struct model *model);
void keys_forward(struct model *model);

/* One call; one whose answer was guessed; m, f, b, c; to its next stop. */
void keys_step(struct model *model);
void keys_guess(struct model *model, bool refused);
void keys_run(struct model *model, int key);
void keys_pause(struct model *model);

/* Moves in the pane in focus; false when the key is none that moves. */
bool keys_move(struct model *model, int code);

/* Puts the cursor of a pane on a row and keeps that in view. */
void keys_cursor(struct model *model, enum model_pane pane, int row);

/* Selects an object, to be seen in the attribute pane. */
void keys_select(struct model *model, const struct graph_node *node);

/* A key while a search is typed. */
void keys_prompt(struct model *model, int code);

/* Finds the next (1) or previous (-1) hit in the pane in focus. */
void keys_search(struct model *model, int direction);

#endif
