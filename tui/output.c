/* SPDX-License-Identifier: MIT */
/*
 * Lines out of bytes. A line that has no newline yet is shown as it grows:
 * its slot is replaced at the end of every portion.
 */
#include "tui/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int output_init(struct output *output, size_t keep)
{
	memset(output, 0, sizeof(*output));
	output->keep = keep;
	output->slot = calloc(2 * keep, sizeof(char *));
	return output->slot ? 0 : ENOMEM;
}

void output_free(struct output *output)
{
	for (size_t i = 0; i < output->lines; i++)
		free(output->slot[output->first + i]);
	free(output->slot);
	output->slot = NULL;
	output->lines = 0;
}

static void drop_oldest(struct output *output)
{
	free(output->slot[output->first]);
	output->slot[output->first++] = NULL;
	output->lines--;
	output->lost++;
}

/* Puts the growing line into its slot: the newest when that is still open. */
static void show_line(struct output *output)
{
	char *text = strndup(output->text, output->used);

	if (!text) {
		output->lost++;
		return;
	}
	if (output->open) {
		char **newest =
			&output->slot[output->first + output->lines - 1];

		free(*newest);
		*newest = text;
		return;
	}
	if (output->lines == output->keep)
		drop_oldest(output);
	if (output->first + output->lines == 2 * output->keep) {
		memmove(output->slot, output->slot + output->first,
			output->lines * sizeof(char *));
		output->first = 0;
	}
	output->slot[output->first + output->lines++] = text;
	output->open = true;
}

static void end_line(struct output *output)
{
	show_line(output);
	output->open = output->returned = false;
	output->used = 0;
}

static void put(struct output *output, char byte)
{
	if (output->returned)
		output->used = 0;
	output->returned = false;
	if (output->used == OUTPUT_WIDTH)
		end_line(output);
	output->text[output->used++] = byte;
}

/* How many bytes of "\033[1;31m" stand at `bytes`; 0: none, or cut off. */
static size_t colour_sequence(const char *bytes, size_t length)
{
	size_t i = 2;

	if (length < 3 || bytes[0] != '\033' || bytes[1] != '[')
		return 0;
	while (i < length && strchr("0123456789;?", bytes[i]) && bytes[i])
		i++;
	return i < length && bytes[i] >= '@' && bytes[i] <= '~' ? i + 1 : 0;
}

void output_feed(struct output *output, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		size_t skip = colour_sequence(bytes + i, length - i);

		if (skip)
			i += skip - 1;
		else if (byte == '\n')
			end_line(output);
		else if (byte == '\t')
			do
				put(output, ' ');
			while (output->used % 8);
		else if (byte == '\r')
			output->returned = true;
		else
			put(output, byte < ' ' || byte == 127 ? '?' : byte);
	}
	if (output->used)
		show_line(output);
}
