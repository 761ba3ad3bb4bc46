/* SPDX-License-Identifier: MIT */
/* JSON into a buffer of fixed size. */
#include "probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_add(struct text *text, const char *format, ...)
{
	size_t room = text->size - text->used;
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text->at + text->used, room, format, list);
	va_end(list);
	if (length < 0 || (size_t)length >= room) {
		text->at[text->used] = '\0';
		text->full = true;
		return;
	}
	text->used += (size_t)length;
}

/* Length of a well-formed UTF-8 sequence at s; 0: it is none. */
static int utf8_length(const unsigned char *s)
{
	int more = s[0] < 0xc2    ? 0
		   : s[0] < 0xe0  ? 1
		   : s[0] < 0xf0  ? 2
		   : s[0] <= 0xf4 ? 3
				  : 0;

	if (s[0] < 0x80)
		return 1;
	if (!more || (s[0] == 0xe0 && s[1] < 0xa0) ||
	    (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (int i = 1; i <= more; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return more + 1;
}

void text_quote(struct text *text, const char *string)
{
	const unsigned char *s = (const unsigned char *)string;

	text_add(text, "\"");
	while (*s) {
		int length = utf8_length(s);

		if (!length)
			text_add(text, "?");
		else if (*s == '"' || *s == '\\')
			text_add(text, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			text_add(text, "\\u%04x", *s);
		else
			text_add(text, "%.*s", length, (const char *)s);
		s += length ? length : 1;
	}
	text_add(text, "\"");
}

void text_key(struct text *text, const char *name)
{
	if (text->used && text->at[text->used - 1] != '{')
		text_add(text, ",");
	text_quote(text, name);
	text_add(text, ":");
}
