/* SPDX-License-Identifier: MIT */
/*
 * What the files of the model share. For nobody else.
 */
#ifndef TUI_MODEL_PRIVATE_H
#define TUI_MODEL_PRIVATE_H

#include "tui/model.h"

#define MODEL_OPEN_MAX 64
#define MODEL_DIRS_MAX 16

struct model_private {
	size_t known;  /* events taken in so far */
	size_t folded; /* events in the graph */
	bool ended; /* the graph also took the end of a program without bye */
	bool bye;   /* the probe said so itself */
	size_t stop_room, call_room, mark_room;
	/* The places behind the marks, ascending. */
	size_t *mark, marks;
	/* Enters without their rets: indexes of events, oldest first. */
	size_t open[MODEL_OPEN_MAX];
	int opens;
	char *dir[MODEL_DIRS_MAX]; /* of the program's build, as it says */
	int dirs;
	struct event enter;  /* of model_stop_event(); its texts are borrowed */
	unsigned long notes; /* session->notes_ever as of the last update */
};

void model_free_sources(struct model *model); /* and what was learned */

/* Learns from an event where the program's build had its files. */
void model_learn_dir(struct model *model, const struct event *event);

#endif
