/* SPDX-License-Identifier: MIT */
/*
 * verbstep: steps through the verbs calls of lessons and of other programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/words/words.h"
#include "tui/batch.h"
#include "tui/loop.h"
#include "tui/menu.h"
#include "tui/options.h"
#include "tui/start.h"

/* What we open must not become somebody's stdin, stdout or stderr. */
static void fill_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static bool has_words(const char *lang)
{
	for (int i = 0; i < words_sections_count; i++)
		if (!strcmp(words_sections[i].lang, lang))
			return true;
	return false;
}

/* The languages there are, each once, with a blank before it. */
static void list_languages(char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; i < words_sections_count && used < size; i++) {
		const char *lang = words_sections[i].lang;
		bool is_new = true;

		for (int k = 0; k < i && is_new; k++)
			is_new = strcmp(words_sections[k].lang, lang);
		if (is_new)
			used += (size_t)snprintf(out + used, size - used, " %s",
						 lang);
	}
}

/* --lang; else that of the locale, where there are words in it; else "en". */
static const char *choose_language(const struct options *options)
{
	static char lang[8];
	char there[100];
	const char *locale;

	if (options->lang) {
		list_languages(there, sizeof(there));
		if (!has_words(options->lang))
			options_wrong("no words in '%s'; there are:%s",
				      options->lang, there);
		return options->lang;
	}
	locale = setlocale(LC_MESSAGES, NULL);
	snprintf(lang, sizeof(lang), "%.2s", locale ? locale : "en");
	return has_words(lang) ? lang : "en";
}

/* The row of the lesson asked for, or the end of the program. */
static int choose_lesson(const struct menu *menu, const char *word)
{
	char there[256] = "";
	size_t used = 0;
	int row = menu_find(menu, word);

	if (row < 0) {
		for (int i = 0; i < menu->lessons && used < sizeof(there); i++)
			used += (size_t)snprintf(there + used,
						 sizeof(there) - used, " %s",
						 menu->lesson[i].name);
		options_wrong("no lesson or command '%s'; there are step, run "
			      "and the lessons%s; other programs: "
			      "verbstep step -- PROGRAM",
			      word, menu->lessons ? there : " (none found)");
	}
	if (!menu->lesson[row].path)
		options_wrong("lesson %s is not built: make lessons",
			      menu->lesson[row].name);
	return row;
}

static int run(const struct menu *menu, const struct options *options)
{
	int err = start_at_full_speed(menu, options);

	if (!menu->soft)
		fprintf(stderr, "verbstep: libsoftverbs.so is neither beside "
				"verbstep nor in ../lib/verbstep\n");
	else
		fprintf(stderr, "verbstep: cannot run %s: %s\n",
			options->rest[0], strerror(err));
	/* As a shell has it: not found, or found and not to be run. */
	return err == ENOENT ? 127 : 126;
}

static int step_batch(const struct menu *menu, const struct options *options,
		      const char *lang, int row)
{
	char *why;
	struct session *session = start_session(menu, options, row, &why);

	if (!session) {
		fprintf(stderr, "verbstep: %s\n", why ? why : "no memory");
		free(why);
		return 1;
	}
	return batch_run(session, row >= 0 ? menu->lesson[row].name : NULL,
			 lang);
}

int main(int argc, char **argv)
{
	struct options options;
	struct menu menu;
	const char *lang;
	int row = -1, status;

	fill_standard_streams();
	setlocale(LC_CTYPE, "");
	setlocale(LC_MESSAGES, "");
	options_parse(&options, argc, argv);
	lang = choose_language(&options);
	if (menu_init(&menu, lang)) {
		fprintf(stderr, "verbstep: no memory\n");
		return 1;
	}
	if (options.lesson)
		row = choose_lesson(&menu, options.lesson);
	if (options.what == OPTIONS_RUN)
		status = run(&menu, &options);
	else if (options.batch)
		status = step_batch(&menu, &options, lang, row);
	else if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		options_wrong("this is no terminal; for text: verbstep step "
			      "--batch %s",
			      options.lesson ? options.lesson : "LESSON");
	else
		status = loop_run(&menu, &options, lang, row);
	menu_free(&menu);
	return status;
}
