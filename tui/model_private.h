/* SPDX-License-Identifier: MIT */
/*
 * What the files of the model share. For nobody else.
 */
#ifndef TUI_MODEL_PRIVATE_H
#define TUI_MODEL_PRIVATE_H

#include "tui/model.h"

#define MODEL_OPEN_MAX 64

struct model_private {
	size_t known;  /* events taken in so far */
	size_t folded; /* events in the graph */
	bool ended; /* the graph also took the end of a program without bye */
	bool bye;   /* the probe said so itself */
	size_t stop_room, call_room;
	/* Enters without their rets: indexes of events, oldest first. */
	size_t open[MODEL_OPEN_MAX];
	int opens;
	struct event enter;  /* of model_stop_event(); its texts are borrowed */
	unsigned long notes; /* session->notes_ever as of the last update */
};

void model_free_sources(struct model *model);

#endif
