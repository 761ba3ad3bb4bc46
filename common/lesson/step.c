/* SPDX-License-Identifier: 0BSD */
/*
 * Step marks. Each step(id) of a lesson leaves a struct lesson_mark in the
 * linker section "lesson_marks", so the steps are known before the lesson
 * runs; the words come from the chapter of the same name, when the lesson
 * was built with them.
 *
 * A stepper defines `void verbs_mark(const char *id, const char *file, int
 * line)` in a library loaded before the lesson. It is then called instead of
 * printing the words, and does the waiting.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../words/words.h"

/* Copied elsewhere, a lesson is built without words: it prints the ids. */
#pragma weak words_sections
#pragma weak words_sections_count
#pragma weak words_find
#pragma weak words_render

#define COLUMNS 78

/* The linker's bounds of the section; none in a program without steps. */
extern const struct lesson_mark __start_lesson_marks[]
	__attribute__((weak, visibility("hidden")));
extern const struct lesson_mark __stop_lesson_marks[]
	__attribute__((weak, visibility("hidden")));

static const struct lesson_mark *find_mark(const char *id)
{
	const struct lesson_mark *mark;

	for (mark = __start_lesson_marks; mark < __stop_lesson_marks; mark++)
		if (!strcmp(mark->id, id))
			return mark;
	return NULL;
}

static int by_line(const void *a, const void *b)
{
	const struct lesson_mark *const *one = a, *const *other = b;

	return ((*one)->line > (*other)->line) -
	       ((*one)->line < (*other)->line);
}

/* The marks in the order of their lines: the compiler's order is its own. */
static const struct lesson_mark **sorted_marks(size_t *count)
{
	const struct lesson_mark **marks;

	*count = (size_t)(__stop_lesson_marks - __start_lesson_marks);
	marks = calloc(*count + 1, sizeof(*marks));
	if (!marks)
		exit(1);
	for (size_t i = 0; i < *count; i++)
		marks[i] = &__start_lesson_marks[i];
	qsort(marks, *count, sizeof(*marks), by_line);
	return marks;
}

const struct words_section *lesson_section(const char *id)
{
	if (!words_find)
		return NULL;
	return words_find(lesson_run.lang, lesson_run.name, id);
}

bool lesson_has_lang(const char *lang)
{
	int sections = &words_sections_count ? words_sections_count : 0;

	for (int i = 0; i < sections; i++)
		if (!strcmp(words_sections[i].lang, lang))
			return true;
	return !sections;
}

void lesson_print_langs(void)
{
	int sections = &words_sections_count ? words_sections_count : 0;
	const char *last = "";

	/* Chapters of one language follow each other. */
	for (int i = 0; i < sections; i++) {
		if (strcmp(words_sections[i].lang, last))
			fprintf(stderr, " %s", words_sections[i].lang);
		last = words_sections[i].lang;
	}
	fprintf(stderr, "\n");
}

/* Calls `visit` for each step: the chapter's first, in its order. */
static void each_step(void (*visit)(const char *id,
				    const struct words_section *section))
{
	size_t count;
	const struct lesson_mark **marks = sorted_marks(&count);
	int sections = &words_sections_count ? words_sections_count : 0;

	for (int i = 0; i < sections; i++) {
		const struct words_section *section = &words_sections[i];

		if (!strcmp(section->lang, "en") &&
		    !strcmp(section->lesson, lesson_run.name) &&
		    section->id[0] && find_mark(section->id))
			visit(section->id, lesson_section(section->id));
	}
	for (size_t i = 0; i < count; i++)
		if (!lesson_section(marks[i]->id))
			visit(marks[i]->id, NULL);
	free(marks);
}

static void list_step(const char *id, const struct words_section *section)
{
	if (section)
		printf("%-24s %s\n", id, section->title);
	else
		printf("%s\n", id);
}

static void name_step(const char *id, const struct words_section *section)
{
	(void)section;
	fprintf(stderr, " %s", id);
}

void lesson_list_steps(void)
{
	each_step(list_step);
}

void lesson_print_step_ids(void)
{
	each_step(name_step);
	fprintf(stderr, "\n");
}

bool lesson_has_step(const char *id)
{
	return find_mark(id) != NULL;
}

bool lesson_is_step_in_two(const char *id)
{
	return !strncmp(id, "two-", 4);
}

bool lesson_has_step_in_two(void)
{
	const struct lesson_mark *mark;

	for (mark = __start_lesson_marks; mark < __stop_lesson_marks; mark++)
		if (lesson_is_step_in_two(mark->id))
			return true;
	return false;
}

typedef void mark_hook(const char *id, const char *file, int line);

static mark_hook *stepper(void)
{
	return (mark_hook *)dlsym(RTLD_DEFAULT, "verbs_mark");
}

bool lesson_has_stepper(void)
{
	return stepper() != NULL;
}

void lesson_print_section(const struct words_section *section)
{
	char *text;

	if (!section || !words_render)
		return;
	text = words_render(section, COLUMNS);
	if (!text)
		return;
	if (text[0])
		printf("%s\n", text);
	free(text);
}

void lesson_print_opening(void)
{
	const struct words_section *opening;

	if (lesson_run.from || lesson_has_stepper())
		return;
	opening = lesson_section("");
	if (!opening) {
		printf("%s: %s\n\n", lesson_run.name, lesson_run.about);
		return;
	}
	printf("%s\n\n", opening->title);
	lesson_print_section(opening);
}

/*
 * Enter goes on; q, or the end of the input, runs the rest without waiting:
 * ending here would leave everything that was made undestroyed.
 */
static void wait_for_enter(void)
{
	char line[80];

	printf("[Enter: next step, q: run to the end] ");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || line[0] == 'q')
		lesson_run.automatic = true;
	printf("\n");
}

void lesson_step(const struct lesson_mark *mark)
{
	const struct words_section *section;
	mark_hook *hook = stepper();

	if (lesson_run.from && !strcmp(lesson_run.from, mark->id))
		lesson_run.from = NULL;
	fflush(stdout);
	if (hook) {
		hook(mark->id, mark->file, (int)mark->line);
		return;
	}
	if (lesson_run.from)
		return;
	section = lesson_section(mark->id);
	if (section)
		printf("\n-- %s: %s\n\n", mark->id, section->title);
	else
		printf("\n-- %s\n\n", mark->id);
	lesson_print_section(section);
	if (!lesson_run.automatic)
		wait_for_enter();
}

void say(const char *format, ...)
{
	va_list args;

	if (lesson_run.from)
		return;
	va_start(args, format);
	flockfile(stdout);
	vprintf(format, args);
	putchar_unlocked('\n');
	funlockfile(stdout);
	va_end(args);
}
