/* SPDX-License-Identifier: MIT */
/*
 * What a program prints, cut into lines that are safe to show. For
 * session.c. Memory is bounded, whatever comes.
 */
#ifndef TUI_OUTPUT_H
#define TUI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_WIDTH 1024 /* bytes; longer lines go on in the next */

struct output {
	char **slot;         /* twice the lines kept, so that few are moved */
	size_t keep;         /* how many lines are kept */
	size_t first, lines; /* those in use */
	unsigned long lost;  /* how many older ones were dropped */
	char text[OUTPUT_WIDTH + 1]; /* the line that grows */
	size_t used;
	bool open;     /* the newest line has no newline yet */
	bool returned; /* what comes next, but a newline, replaces it */
};

/* 0 or ENOMEM. */
int output_init(struct output *output, size_t keep);
void output_free(struct output *output);

/*
 * Takes bytes as they come. Tabs become blanks, other control characters
 * '?'; what follows a carriage return replaces the line, as the counters of
 * programs want it; colour sequences are left out.
 */
void output_feed(struct output *output, const char *bytes, size_t length);

#endif
