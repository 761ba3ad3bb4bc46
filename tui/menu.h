/* SPDX-License-Identifier: MIT */
/*
 * What there is beside the program: the lessons, the probe, soft0, sources.
 * Found from where the program itself lies: in a build folder, or installed
 * (PREFIX/bin beside PREFIX/lib/verbstep and PREFIX/share/verbstep).
 */
#ifndef TUI_MENU_H
#define TUI_MENU_H

#include "tui/model.h"

struct menu {
	struct model_lesson *lesson; /* by number */
	int lessons;
	char *probe, *soft; /* paths; NULL: not found */
	char *bin;          /* the folder of the program */
};

/* Titles are in `lang`, where the chapter is there. 0 or ENOMEM. */
int menu_init(struct menu *menu, const char *lang);
void menu_free(struct menu *menu);

/*
 * The row of a lesson by its number ("05", "5") or name ("05_qp", "qp");
 * -1: there is none.
 */
int menu_find(const struct menu *menu, const char *word);

/* Tells the model where sources may lie. 0 or ENOMEM. */
int menu_add_source_dirs(const struct menu *menu, struct model *model);

#endif
