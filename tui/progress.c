/* SPDX-License-Identifier: MIT */
#include "tui/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char first_line[] = "verbstep progress 1\n";

/* The file's path, or NULL: there is no home, or no memory. */
static char *file_path(void)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	char *path;
	int length;

	/* A relative one is to be ignored, the XDG specification says. */
	if (state && state[0] == '/')
		length = asprintf(&path, "%s/verbstep/progress", state);
	else if (home && home[0] == '/')
		length = asprintf(&path, "%s/.local/state/verbstep/progress",
				  home);
	else
		return NULL;
	return length < 0 ? NULL : path;
}

static char *wrong(const char *path, const char *what)
{
	char *why;

	return asprintf(&why, "%s: %s", path, what) < 0 ? NULL : why;
}

static bool is_ours(FILE *file)
{
	char line[sizeof(first_line)];

	return fgets(line, sizeof(line), file) && !strcmp(line, first_line);
}

/* Opens the file to be read, behind its first line; NULL: see *why. */
static FILE *open_file(const char *path, char **why)
{
	struct stat st;
	FILE *file;

	*why = NULL;
	if (stat(path, &st)) {
		if (errno != ENOENT)
			*why = wrong(path, strerror(errno));
		return NULL;
	}
	/* Nothing that blocks, and nothing that has no end. */
	file = S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
	if (file && is_ours(file))
		return file;
	*why = wrong(path, S_ISREG(st.st_mode) && !file
				   ? strerror(errno)
				   : "no progress of verbstep, ignored");
	if (file)
		fclose(file);
	return NULL;
}

char *progress_read(struct model_lesson *lesson, int lessons)
{
	char *path = file_path(), *why = NULL;
	char line[64];
	FILE *file = path ? open_file(path, &why) : NULL;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < lessons; i++)
			if (!strcmp(line, lesson[i].name))
				lesson[i].done = true;
	}
	if (file)
		fclose(file);
	free(path);
	return why;
}

/* The folders above the file. */
static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700); /* what fails here shows at the file */
		*slash = '/';
	}
}

static int write_file(const char *path, const struct model_lesson *lesson,
		      int lessons)
{
	FILE *file = fopen(path, "we");
	bool bad;

	if (!file)
		return errno;
	fputs(first_line, file);
	for (int i = 0; i < lessons; i++)
		if (lesson[i].done)
			fprintf(file, "%s\n", lesson[i].name);
	bad = ferror(file);
	return fclose(file) || bad ? (errno ? errno : EIO) : 0;
}

char *progress_write(const struct model_lesson *lesson, int lessons)
{
	char *path = file_path(), *fresh = NULL, *why = NULL;
	FILE *file = path ? open_file(path, &why) : NULL;
	int err;

	if (file)
		fclose(file);
	if (!path || why)
		goto out;
	make_folders(path);
	if (asprintf(&fresh, "%s.%d", path, getpid()) < 0) {
		fresh = NULL;
		goto out;
	}
	err = write_file(fresh, lesson, lessons);
	if (!err && rename(fresh, path))
		err = errno;
	if (err) {
		unlink(fresh);
		why = wrong(path, strerror(err));
	}
out:
	free(fresh);
	free(path);
	return why;
}
