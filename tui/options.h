/* SPDX-License-Identifier: MIT */
/*
 * The command line.
 */
#ifndef TUI_OPTIONS_H
#define TUI_OPTIONS_H

#include <stdbool.h>

enum options_what { OPTIONS_MENU, OPTIONS_STEP, OPTIONS_RUN };

/* Texts are borrowed from argv. */
struct options {
	enum options_what what;
	bool batch, ascii;
	const char *lang;   /* NULL: not given */
	const char *device; /* passed on to lessons; NULL: not given */
	const char *lesson; /* as it was typed; NULL: none */
	/*
	 * What followed "--", NULL at the end: arguments of the lesson, or a
	 * program and its arguments. NULL: nothing.
	 */
	char **rest;
};

/*
 * Reads argv. Ends the program for --help and --version with status 0, and
 * for what is wrong with one line and status 2.
 */
void options_parse(struct options *options, int argc, char **argv);

/* Ends the program with one line on stderr, "verbstep: ...", and status 2. */
void options_wrong(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#endif
