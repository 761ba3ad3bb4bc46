/* SPDX-License-Identifier: MIT */
/*
 * The command line, by argp. It is told to be silent about errors, which it
 * would report in two lines without naming what there is, and to leave --help
 * to us, which it would be silent about then too.
 */
#include "tui/options.h"

#include <argp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_BATCH = 'b',
	OPTION_DEVICE = 'd',
	OPTION_LANG = 'L',
	OPTION_ASCII = 'A',
	OPTION_HELP = 'h',
	OPTION_VERSION = 'V',
};

static const struct argp_option option_table[] = {
	{ .name = "batch",
	  .key = OPTION_BATCH,
	  .doc = "print every call as a line of text, and what was left "
		 "alive at the end; needs no terminal" },
	{ .name = "device",
	  .key = OPTION_DEVICE,
	  .arg = "NAME|GUID",
	  .doc = "the device that a lesson uses" },
	{ .name = "lang",
	  .key = OPTION_LANG,
	  .arg = "LANG",
	  .doc = "the language of the words, where they are there" },
	{ .name = "ascii",
	  .key = OPTION_ASCII,
	  .doc = "draw with ASCII characters only" },
	{ .name = "help", .key = OPTION_HELP, .doc = "print this and end" },
	{ .name = "version",
	  .key = OPTION_VERSION,
	  .doc = "print the version and end" },
	{ 0 },
};

static const char args_doc[] = "\n"
			       "LESSON\n"
			       "step LESSON [-- ARGUMENTS]\n"
			       "step -- PROGRAM [ARGUMENTS]\n"
			       "run [--] PROGRAM [ARGUMENTS]";

static const char doc[] =
	"Steps through RDMA verbs: a lesson, or any verbs program."
	"\v"
	"Without arguments it shows the menu of lessons. A lesson is a number "
	"or a name: 05, qp, 05_qp. What follows -- belongs to the program: "
	"`verbstep step 05 -- --port 2' gives the lesson an option of its "
	"own, and `verbstep step -- ./program -v' steps a program that is "
	"no lesson. In the screen ? shows the keys.\n\n"
	"`run' does not step: it turns into the program, at full speed, with "
	"the device soft0 beside the real ones.\n\n"
	"The status is 0; with --batch the program's, or 128 and the number "
	"of the signal that ended it; 2 when the command line is wrong; 130 "
	"when interrupted.";

void options_wrong(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "verbstep: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(2);
}

/* An option that is not there, or one that lacks its value. */
static void wrong_option(const char *text)
{
	char there[128] = "";
	size_t used = 0;

	for (const struct argp_option *option = option_table; option->name;
	     option++) {
		bool is_name = !strncmp(text, "--", 2) &&
			       !strcmp(text + 2, option->name);
		bool is_key =
			text[0] == '-' && text[1] == option->key && !text[2];

		if (option->arg && (is_name || is_key))
			options_wrong("--%s needs a value: %s", option->name,
				      option->arg);
		used += (size_t)snprintf(there + used, sizeof(there) - used,
					 " --%s", option->name);
	}
	options_wrong("no option '%s'; there are%s", text, there);
}

static void take_rest(struct options *options, struct argp_state *state)
{
	options->rest = &state->argv[state->next - 1];
	state->next = state->argc;
}

static void take_word(struct options *options, char *word,
		      struct argp_state *state)
{
	bool quoted = state->quoted && state->next > state->quoted;

	if (options->what == OPTIONS_RUN || quoted)
		take_rest(options, state);
	else if (options->what == OPTIONS_MENU && !strcmp(word, "step"))
		options->what = OPTIONS_STEP;
	else if (options->what == OPTIONS_MENU && !strcmp(word, "run"))
		options->what = OPTIONS_RUN;
	else if (options->lesson)
		options_wrong("one lesson at a time: '%s' is one too many; its "
			      "own arguments go behind --",
			      word);
	else {
		options->lesson = word;
		options->what = OPTIONS_STEP;
	}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_BATCH:
		options->batch = true;
		return 0;
	case OPTION_DEVICE:
		options->device = arg;
		return 0;
	case OPTION_LANG:
		options->lang = arg;
		return 0;
	case OPTION_ASCII:
		options->ascii = true;
		return 0;
	case OPTION_HELP:
		argp_help(state->root_argp, stdout, ARGP_HELP_STD_HELP,
			  (char *)"verbstep");
		exit(0);
	case OPTION_VERSION:
		printf("verbstep %s\n", VERSION);
		exit(0);
	case ARGP_KEY_ARG:
		take_word(options, arg, state);
		return 0;
	case ARGP_KEY_ERROR:
		wrong_option(state->argv[state->next - 1]);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void check(const struct options *options)
{
	if (options->what == OPTIONS_RUN && !options->rest)
		options_wrong("run needs a program: verbstep run -- PROGRAM "
			      "[ARGUMENTS]");
	if (options->what == OPTIONS_RUN &&
	    (options->batch || options->device || options->ascii))
		options_wrong("run takes no options but --help; the program's "
			      "own go behind it");
	if (options->what == OPTIONS_STEP && !options->lesson && !options->rest)
		options_wrong("step needs a lesson, or -- and a program");
	if (options->what == OPTIONS_MENU && options->batch)
		options_wrong("--batch needs a lesson, or -- and a program");
	if (options->device && options->rest && !options->lesson)
		options_wrong("--device is for lessons; the program's own "
			      "options go behind it");
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_option,
		.args_doc = args_doc,
		.doc = doc,
	};

	memset(options, 0, sizeof(*options));
	if (argp_parse(&argp, argc, argv,
		       ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER, NULL,
		       options))
		exit(2);
	/* "verbstep -- PROGRAM": the word step may be left out. */
	if (options->what == OPTIONS_MENU && options->rest)
		options->what = OPTIONS_STEP;
	check(options);
}
