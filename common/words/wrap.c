/* SPDX-License-Identifier: MIT */
/*
 * Growing strings and their wrapping into lines, by columns of a terminal.
 * UTF-8 is decoded here, not by the locale: a lesson runs in LC_ALL=C too.
 */
#include "internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void text_put(struct text *text, const char *data, size_t length)
{
	if (text->failed)
		return;
	if (text->length + length + 1 > text->size) {
		size_t size = 2 * (text->length + length + 1);
		char *grown = realloc(text->data, size);

		if (!grown) {
			text->failed = true;
			return;
		}
		text->data = grown;
		text->size = size;
	}
	memcpy(text->data + text->length, data, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void text_puts(struct text *text, const char *string)
{
	text_put(text, string, strlen(string));
}

void text_spaces(struct text *text, int count)
{
	while (count-- > 0)
		text_put(text, " ", 1);
}

void text_clear(struct text *text)
{
	text->length = 0;
	if (text->data)
		text->data[0] = '\0';
}

void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){ 0 };
}

/* Decodes one character; malformed bytes count as one character each. */
static size_t decode(const char *data, size_t length, uint32_t *out)
{
	const unsigned char *bytes = (const unsigned char *)data;
	size_t count = 1;

	*out = bytes[0];
	if (bytes[0] >= 0xf0)
		count = 4;
	else if (bytes[0] >= 0xe0)
		count = 3;
	else if (bytes[0] >= 0xc0)
		count = 2;
	if (count == 1 || count > length)
		return 1;
	*out = bytes[0] & (0x7fu >> count);
	for (size_t i = 1; i < count; i++) {
		if ((bytes[i] & 0xc0) != 0x80) {
			*out = bytes[0];
			return 1;
		}
		*out = *out << 6 | (bytes[i] & 0x3f);
	}
	return count;
}

struct range {
	uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* East Asian wide and fullwidth blocks (Unicode, annex 11). */
static bool is_wide(uint32_t c)
{
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0x303e },
		{ 0x3041, 0xa4cf },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },
		{ 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
		{ 0x1f300, 0x1f64f }, { 0x1f900, 0x1f9ff },
		{ 0x20000, 0x3fffd },
	};

	return in_ranges(c, wide, sizeof(wide) / sizeof(*wide));
}

static bool is_zero_width(uint32_t c)
{
	static const struct range zero[] = {
		{ 0x0300, 0x036f },
		{ 0x200b, 0x200f },
		{ 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },
	};

	return in_ranges(c, zero, sizeof(zero) / sizeof(*zero));
}

/* Marks that close what stands before them: no line starts with one. */
static bool closes(uint32_t c)
{
	static const uint32_t closing[] = {
		0x3001, 0x3002, 0x3009, 0x300b, 0x300d, 0x300f,
		0x3011, 0x3015, 0xff01, 0xff09, 0xff0c, 0xff0e,
		0xff1a, 0xff1b, 0xff1f, 0xff3d, 0x2019, 0x201d,
	};

	for (size_t i = 0; i < sizeof(closing) / sizeof(*closing); i++)
		if (closing[i] == c)
			return true;
	return false;
}

int text_columns(const char *data, size_t length)
{
	int columns = 0;
	uint32_t c;

	for (size_t at = 0; at < length;) {
		at += decode(data + at, length - at, &c);
		if (!is_zero_width(c))
			columns += 1 + is_wide(c);
	}
	return columns;
}

/* Bytes up to the next place where a line may end; spaces excluded. */
static size_t piece(const char *data, size_t length)
{
	bool wide = false;
	size_t at = 0, taken;
	uint32_t c;

	while (at < length && data[at] != ' ' && data[at] != '\n') {
		taken = decode(data + at, length - at, &c);
		if (at && (wide || is_wide(c)) && !closes(c) &&
		    !is_zero_width(c))
			break;
		wide = is_wide(c);
		at += taken;
	}
	return at;
}

int text_longest(const char *words, size_t length)
{
	int longest = 0;

	for (size_t at = 0; at < length;) {
		size_t bytes = piece(words + at, length - at);
		int width = text_columns(words + at, bytes);

		if (width > longest)
			longest = width;
		at += bytes ? bytes : 1; /* a space */
	}
	return longest;
}

void text_wrap(struct text *out, const char *words, size_t length,
	       const char *first, int columns)
{
	int indent = text_columns(first, strlen(first));
	int used = indent;
	bool empty = true; /* nothing on this line yet but the indent */

	text_puts(out, first);
	for (size_t at = 0; at < length;) {
		size_t spaces = strspn(words + at, " \n");
		size_t bytes = piece(words + at + spaces, length - at - spaces);
		int gap = spaces && !empty;
		int width = text_columns(words + at + spaces, bytes);

		if (!bytes)
			break;
		if (!empty && used + gap + width > columns) {
			text_puts(out, "\n");
			text_spaces(out, indent);
			used = indent;
			gap = 0;
		}
		text_spaces(out, gap);
		text_put(out, words + at + spaces, bytes);
		used += gap + width;
		empty = false;
		at += spaces + bytes;
	}
	text_puts(out, "\n");
}
