/* SPDX-License-Identifier: MIT */
/*
 * Source files as lines, each read once. A program's debug information names
 * its files as its build saw them: they are looked for in the folders of that
 * build, as they stand, then in the model's folders.
 */
#include "tui/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tui/model_private.h"

#define SOURCE_MAX (8 * 1024 * 1024)
#define TAB        8

static void free_source(struct model_source *source)
{
	for (int i = 0; i < source->lines; i++)
		free(source->line[i]);
	free(source->line);
	free(source->path);
}

void model_free_sources(struct model *model)
{
	struct model_private *own = model->private;

	for (int i = 0; i < model->sources; i++)
		free_source(&model->source[i]);
	free(model->source);
	model->source = NULL;
	model->sources = 0;
	if (!own)
		return;
	while (own->dirs)
		free(own->dir[--own->dirs]);
}

void model_learn_dir(struct model *model, const struct event *event)
{
	struct model_private *own = model->private;

	if (!event->dir || event->dir[0] != '/' || own->dirs == MODEL_DIRS_MAX)
		return;
	for (int i = 0; i < own->dirs; i++)
		if (!strcmp(own->dir[i], event->dir))
			return;
	own->dir[own->dirs] = strdup(event->dir);
	own->dirs += own->dir[own->dirs] != NULL;
}

static FILE *open_regular(const char *path)
{
	struct stat st;

	/* A name out of an event may be anything, a pipe that blocks too. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size > SOURCE_MAX)
		return NULL;
	return fopen(path, "re");
}

static FILE *open_in(const char *dir, const char *name)
{
	FILE *file;
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	file = open_regular(path);
	free(path);
	return file;
}

static FILE *open_source(const struct model *model, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct model_private *own = model->private;
	FILE *file = NULL;

	for (int i = 0; !file && path[0] != '/' && i < own->dirs; i++)
		file = open_in(own->dir[i], path);
	if (!file)
		file = open_regular(path);
	for (int i = 0; !file && path[0] != '/' && i < model->source_dirs; i++)
		file = open_in(model->source_dir[i], path);
	for (int i = 0; !file && i < model->source_dirs; i++)
		file = open_in(model->source_dir[i], slash ? slash + 1 : path);
	return file;
}

/* A copy with tabs as blanks; bytes that continue a character take no column.
 */
static char *expand_tabs(const char *line)
{
	size_t size = strlen(line) + 1, used = 0, column = 0;
	char *out;

	for (const char *c = line; *c; c++)
		size += *c == '\t' ? TAB : 0;
	out = malloc(size);
	for (const char *c = line; out && *c; c++) {
		if (*c == '\t') {
			do
				out[used++] = ' ';
			while (++column % TAB);
			continue;
		}
		out[used++] = *c;
		column += ((unsigned char)*c & 0xc0) != 0x80;
	}
	if (out)
		out[used] = '\0';
	return out;
}

static void read_lines(struct model_source *source, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, file)) >= 0) {
		size_t count = (size_t)source->lines;
		char **more =
			realloc(source->line, (count + 1) * sizeof(*more));

		if (!more)
			break;
		source->line = more;
		line[strcspn(line, "\r\n")] = '\0';
		more[count] = expand_tabs(line);
		if (!more[count])
			break;
		source->lines++;
	}
	free(line);
}

const struct model_source *model_source(struct model *model, const char *path)
{
	static const struct model_source none;
	size_t count = (size_t)model->sources;
	struct model_source *source;
	FILE *file;

	for (int i = 0; i < model->sources; i++)
		if (!strcmp(model->source[i].path, path))
			return &model->source[i];
	source = realloc(model->source, (count + 1) * sizeof(*source));
	if (!source)
		return &none;
	model->source = source;
	source += count;
	memset(source, 0, sizeof(*source));
	source->path = strdup(path);
	if (!source->path)
		return &none;
	model->sources++;
	file = open_source(model, path);
	if (file) {
		read_lines(source, file);
		fclose(file);
	}
	return source;
}
