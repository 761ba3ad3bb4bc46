/* SPDX-License-Identifier: MIT */
/*
 * The keys pressed last, by name, for a class that watches a projector.
 */
#include "tui/keys_private.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(int code, char one[2])
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
		{ ' ', "Space" },           { KEYS_TAB, "Tab" },
		{ KEYS_ENTER, "Enter" },    { '\n', "Enter" },
		{ KEYS_ESC, "Esc" },        { KEYS_UP, "Up" },
		{ KEYS_DOWN, "Down" },      { KEYS_LEFT, "Left" },
		{ KEYS_RIGHT, "Right" },    { KEYS_PAGE_UP, "PgUp" },
		{ KEYS_PAGE_DOWN, "PgDn" }, { KEYS_HOME, "Home" },
		{ KEYS_END, "End" },        { KEYS_BACK_TAB, "Shift-Tab" },
		{ KEYS_BACKSPACE, "Bksp" }, { KEYS_F1, "F1" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	one[0] = code > ' ' && code < 127 ? (char)code : '?';
	one[1] = '\0';
	return one;
}

void keys_note(struct model *model, int code)
{
	char one[2], longer[sizeof(model->pressed) + 16];
	const char *from = longer;
	const size_t most = 24; /* columns in the message row */

	snprintf(longer, sizeof(longer), "%s%s%s", model->pressed,
		 model->pressed[0] ? " " : "", name_of(code, one));
	while (strlen(from) > most && strchr(from, ' '))
		from = strchr(from, ' ') + 1;
	snprintf(model->pressed, sizeof(model->pressed), "%s", from);
}
