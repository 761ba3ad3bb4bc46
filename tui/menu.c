/* SPDX-License-Identifier: MIT */
/*
 * The table of lessons: those with a chapter, and those that are built,
 * which should be the same.
 */
#include "tui/menu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/words/words.h"

/* From the program's folder: as built, as installed. */
static const char *const homes[] = { ".", "../lib/verbstep" };

static char *find(const char *bin, const char *folder, const char *name,
		  int mode)
{
	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
		char *path, *real;

		if (asprintf(&path, "%s/%s/%s/%s", bin, homes[i], folder,
			     name) < 0)
			return NULL;
		real = access(path, mode) ? NULL : realpath(path, NULL);
		free(path);
		if (real)
			return real;
	}
	return NULL;
}

static char *program_folder(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (length <= 0)
		return strdup(".");
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return strdup(path);
}

static bool is_lesson_name(const char *name)
{
	return isdigit((unsigned char)name[0]) &&
	       isdigit((unsigned char)name[1]) && name[2] == '_' && name[3] &&
	       !strchr(name, '.');
}

/* "Finding a device" of "01 context: Finding a device". */
static const char *bare_title(const char *title)
{
	const char *colon = strstr(title, ": ");

	return isdigit((unsigned char)title[0]) && colon ? colon + 2 : title;
}

/* The chapter's first heading, in `lang` or in English; else the name. */
static const char *title_of(const char *lang, const char *name)
{
	const char *title = NULL;

	for (int i = 0; i < words_sections_count; i++) {
		const struct words_section *section = &words_sections[i];

		if (strcmp(section->lesson, name))
			continue;
		if (!strcmp(section->lang, lang))
			return bare_title(section->title);
		if (!title && !strcmp(section->lang, "en"))
			title = section->title;
	}
	return title ? bare_title(title) : name;
}

static int add_lesson(struct menu *menu, const char *lang, const char *name)
{
	struct model_lesson *lesson;
	char *own, *number;

	for (int i = 0; i < menu->lessons; i++)
		if (!strcmp(menu->lesson[i].name, name))
			return 0;
	lesson = realloc(menu->lesson,
			 ((size_t)menu->lessons + 1) * sizeof(*lesson));
	if (!lesson)
		return ENOMEM;
	menu->lesson = lesson;
	own = strdup(name);
	number = strndup(name, 2);
	if (!own || !number) {
		free(own);
		free(number);
		return ENOMEM;
	}
	lesson[menu->lessons++] = (struct model_lesson){
		.number = number,
		.name = own,
		.title = title_of(lang, own),
		.path = find(menu->bin, "lessons", own, X_OK),
	};
	return 0;
}

static int add_built(struct menu *menu, const char *lang)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
		char *path;
		DIR *folder;

		if (asprintf(&path, "%s/%s/lessons", menu->bin, homes[i]) < 0)
			return ENOMEM;
		folder = opendir(path);
		free(path);
		for (struct dirent *entry;
		     folder && !err && (entry = readdir(folder));)
			if (is_lesson_name(entry->d_name))
				err = add_lesson(menu, lang, entry->d_name);
		if (folder)
			closedir(folder);
	}
	return err;
}

static int by_name(const void *a, const void *b)
{
	const struct model_lesson *one = a, *other = b;

	return strcmp(one->name, other->name);
}

int menu_init(struct menu *menu, const char *lang)
{
	int err = 0;

	memset(menu, 0, sizeof(*menu));
	menu->bin = program_folder();
	if (!menu->bin)
		return ENOMEM;
	menu->probe = find(menu->bin, ".", "libverbprobe.so", R_OK);
	menu->soft = find(menu->bin, ".", "libsoftverbs.so", R_OK);
	for (int i = 0; i < words_sections_count && !err; i++)
		if (is_lesson_name(words_sections[i].lesson))
			err = add_lesson(menu, lang, words_sections[i].lesson);
	if (!err)
		err = add_built(menu, lang);
	if (err) {
		menu_free(menu);
		return err;
	}
	if (menu->lessons)
		qsort(menu->lesson, (size_t)menu->lessons,
		      sizeof(*menu->lesson), by_name);
	return 0;
}

void menu_free(struct menu *menu)
{
	for (int i = 0; i < menu->lessons; i++) {
		free((char *)menu->lesson[i].number);
		free((char *)menu->lesson[i].name);
		free(menu->lesson[i].path);
	}
	free(menu->lesson);
	free(menu->probe);
	free(menu->soft);
	free(menu->bin);
	memset(menu, 0, sizeof(*menu));
}

int menu_find(const struct menu *menu, const char *word)
{
	for (int i = 0; i < menu->lessons; i++) {
		const struct model_lesson *lesson = &menu->lesson[i];

		if (!strcmp(word, lesson->name) ||
		    !strcmp(word, lesson->number) ||
		    !strcmp(word, lesson->name + 3) ||
		    (lesson->number[0] == '0' &&
		     !strcmp(word, lesson->number + 1)))
			return i;
	}
	return -1;
}

int menu_add_source_dirs(const struct menu *menu, struct model *model)
{
	/* A build folder lies in the sources, or one deeper. */
	static const char *const folders[] = { "..",
					       "../..",
					       "../lessons",
					       "../../lessons",
					       "../share/verbstep",
					       "../share/verbstep/lessons" };
	int err = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !err;
	     i++) {
		char *path;

		if (asprintf(&path, "%s/%s", menu->bin, folders[i]) < 0)
			return ENOMEM;
		err = model_add_source_dir(model, path);
		free(path);
	}
	return err;
}
