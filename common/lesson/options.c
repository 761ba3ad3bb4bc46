/* SPDX-License-Identifier: 0BSD */
/*
 * The options of a lesson, read with argp, and the beginning of its run.
 * A wrong option, step or device is found here, before the lesson has
 * printed or made anything: one line, status 2.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION "0.1"
#endif

enum {
	OPTION_DEVICE = 'd',
	OPTION_PORT = 'p',
	OPTION_GID_INDEX = 'g',
	OPTION_AUTO = 'a',
	OPTION_LIST_STEPS = 'l',
	OPTION_FROM = 'f',
	OPTION_LANG = 'L',
	OPTION_HELP = 'h',
	OPTION_VERSION = 'V',
	OPTION_SERVER = 's',
	OPTION_CONNECT = 'c',
};

#define PEER_PORT "18515" /* where ibv_rc_pingpong listens, too */

struct lesson_run lesson_run = {
	.gid_index = -1,
	.lang = "en",
	.port_in_use = 1,
	.peer_port = PEER_PORT,
};

/* The first two are for lessons that run in two terminals: see below. */
static const struct argp_option all_options[] = {
	{ .name = "server",
	  .key = OPTION_SERVER,
	  .arg = "PORT",
	  .flags = OPTION_ARG_OPTIONAL,
	  .doc = "one end of two: wait for the other on TCP port " PEER_PORT },
	{ .name = "connect",
	  .key = OPTION_CONNECT,
	  .arg = "HOST[:PORT]",
	  .doc = "the other end: connect to that server" },
	{ .name = "device",
	  .key = OPTION_DEVICE,
	  .arg = "NAME|GUID",
	  .doc = "use this device, not the first one with an active port" },
	{ .name = "port",
	  .key = OPTION_PORT,
	  .arg = "N",
	  .doc = "use this port, not the first active one" },
	{ .name = "gid-index",
	  .key = OPTION_GID_INDEX,
	  .arg = "N",
	  .doc = "use this entry of the port's GID table" },
	{ .name = "auto", .key = OPTION_AUTO, .doc = "do not wait at a step" },
	{ .name = "list-steps",
	  .key = OPTION_LIST_STEPS,
	  .doc = "list the steps and end" },
	{ .name = "from",
	  .key = OPTION_FROM,
	  .arg = "STEP",
	  .doc = "run quietly up to this step" },
	{ .name = "lang",
	  .key = OPTION_LANG,
	  .arg = "LANG",
	  .doc = "the language of the words (en)" },
	{ .name = "help", .key = OPTION_HELP, .doc = "print this and end" },
	{ .name = "version",
	  .key = OPTION_VERSION,
	  .doc = "print the version and end" },
	{ 0 },
};

#define OPTIONS_IN_TWO 2

static const struct argp_option *options = all_options;

/* A number from 0 to 255, or the end of the program. */
static int parse_byte(const char *text, const char *option, int least)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < least || value > 255) {
		fprintf(stderr,
			"%s: --%s takes a number from %d to 255, not '%s'\n",
			lesson_run.name, option, least, text);
		exit(2);
	}
	return (int)value;
}

/* A TCP port, or the end of the program. The kernel chooses for port 0. */
static const char *parse_port(const char *text, const char *option, int least)
{
	char *end;
	long value;

	value = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || value < least ||
	    value > 65535) {
		fprintf(stderr,
			"%s: --%s takes a TCP port from %d to 65535, "
			"not '%s'\n",
			lesson_run.name, option, least, text);
		exit(2);
	}
	return text;
}

/* HOST, HOST:PORT, an IPv6 address, or one in brackets and :PORT. */
static void parse_host(char *text)
{
	char *host = text, *port = NULL, *end = strchr(text, ']');

	if (text[0] == '[' && end) {
		host++;
		*end++ = '\0';
		if (*end == ':')
			port = end + 1;
		else if (*end)
			host = "";
	} else if ((end = strchr(text, ':')) && end == strrchr(text, ':')) {
		*end = '\0';
		port = end + 1;
	}
	if (!*host) {
		fprintf(stderr,
			"%s: --connect takes HOST, HOST:PORT or [IPv6]:PORT\n",
			lesson_run.name);
		exit(2);
	}
	lesson_run.host = host;
	if (port)
		lesson_run.peer_port = parse_port(port, "connect", 1);
}

/* An option that is not there, or one that lacks its value. */
static void wrong_option(const char *text)
{
	const struct argp_option *option;

	for (option = options; option->name; option++)
		if (option->arg &&
		    ((!strncmp(text, "--", 2) &&
		      !strcmp(text + 2, option->name)) ||
		     (text[0] == '-' && text[1] == option->key && !text[2])))
			break;
	if (option->name) {
		fprintf(stderr, "%s: --%s needs a value: %s\n", lesson_run.name,
			option->name, option->arg);
		return;
	}
	fprintf(stderr, "%s: no option '%s'; there are:", lesson_run.name,
		text);
	for (option = options; option->name; option++)
		fprintf(stderr, " --%s", option->name);
	fprintf(stderr, "\n");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPTION_DEVICE:
		lesson_run.device = arg;
		return 0;
	case OPTION_PORT:
		lesson_run.port = parse_byte(arg, "port", 1);
		return 0;
	case OPTION_GID_INDEX:
		lesson_run.gid_index = parse_byte(arg, "gid-index", 0);
		return 0;
	case OPTION_AUTO:
		lesson_run.automatic = true;
		return 0;
	case OPTION_LIST_STEPS:
		lesson_run.list_steps = true;
		return 0;
	case OPTION_FROM:
		lesson_run.from = arg;
		return 0;
	case OPTION_LANG:
		lesson_run.lang = arg;
		return 0;
	case OPTION_SERVER:
		lesson_run.server = true;
		if (arg)
			lesson_run.peer_port = parse_port(arg, "server", 0);
		return 0;
	case OPTION_CONNECT:
		parse_host(arg);
		return 0;
	case OPTION_HELP:
		printf("Lesson %s: %s.\n", lesson_run.name, lesson_run.about);
		argp_help(state->root_argp, stdout,
			  ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_POST_DOC,
			  (char *)lesson_run.name);
		exit(0);
	case OPTION_VERSION:
		printf("%s %s\n", lesson_run.name, VERSION);
		exit(0);
	case ARGP_KEY_ARG:
		/* To getopt, a value that is optional is no value here. */
		if (!strcmp(state->argv[state->next - 2], "--server")) {
			lesson_run.peer_port = parse_port(arg, "server", 0);
			return 0;
		}
		fprintf(stderr,
			"%s: takes options only, not '%s'; --help lists them\n",
			lesson_run.name, arg);
		exit(2);
	case ARGP_KEY_ERROR:
		wrong_option(state->argv[state->next - 1]);
		exit(2);
	}
	return ARGP_ERR_UNKNOWN;
}

/*
 * argp is told to be silent about errors (it would print two lines, and not
 * what there is instead) and to leave --help to parse_option().
 */
static void parse_options(int argc, char **argv)
{
	static const char doc[] =
		"\vA plain verbs program. In a terminal it explains each step "
		"and waits for Enter; without one, or with --auto, it runs "
		"through.";
	struct argp argp = { .options = options,
			     .parser = parse_option,
			     .doc = doc };

	if (argp_parse(&argp, argc, argv,
		       ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, NULL))
		exit(2);
}

static void check_lang(void)
{
	if (lesson_has_lang(lesson_run.lang))
		return;
	fprintf(stderr, "%s: no words in '%s'; there are:", lesson_run.name,
		lesson_run.lang);
	lesson_print_langs();
	exit(2);
}

/* --server, --connect and --from, each against the others. */
static void check_ends(void)
{
	bool in_two = lesson_run.from && lesson_is_step_in_two(lesson_run.from);

	if (lesson_run.server && lesson_run.host)
		fprintf(stderr,
			"%s: --server and --connect: an end is one of both\n",
			lesson_run.name);
	else if (in_two && !lesson_in_two())
		fprintf(stderr,
			"%s: step '%s' is one of the run in two terminals: "
			"it wants --server or --connect\n",
			lesson_run.name, lesson_run.from);
	else
		return;
	exit(2);
}

static void check_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (int i = 0; list && list[i]; i++)
		found |= lesson_device_matches(list[i], lesson_run.device);
	if (!found)
		lesson_no_such_device(list);
	if (list)
		ibv_free_device_list(list);
	if (!found)
		exit(2);
}

void lesson_begin(const char *name, const char *about, int argc, char **argv)
{
	lesson_run.name = name;
	lesson_run.about = about;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!lesson_has_step_in_two())
		options += OPTIONS_IN_TWO;
	parse_options(argc, argv);
	check_lang();
	if (lesson_run.list_steps) {
		lesson_list_steps();
		exit(0);
	}
	if (lesson_run.from && !lesson_has_step(lesson_run.from)) {
		fprintf(stderr, "%s: no step '%s'; there are:", name,
			lesson_run.from);
		lesson_print_step_ids();
		exit(2);
	}
	check_ends();
	if (lesson_run.device)
		check_device();
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		lesson_run.automatic = true;
	lesson_print_opening();
}
