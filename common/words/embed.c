/* SPDX-License-Identifier: MIT */
/*
 * Runs at build time: reads chapters, docs/LANG/NN_name.md, and writes
 * words_sections[] as C to the standard output. Every other file that it is
 * given is passed over.
 *
 * A heading opens a section; one that ends in {#id} opens a step's. Lines
 * inside ``` fences are never headings. An id that comes twice in a chapter
 * is an error, as is a chapter without a heading: status 1, and nothing is
 * built from half a book.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IDS 1024

struct chapter {
	const char *path;
	char *lang, *lesson;
	char *ids[MAX_IDS];
	int ids_count;
	int line;
	bool in_section, in_code;
	int blank_lines; /* held back: a section ends without them */
	bool body_begun;
};

static int sections;

static void fail(const struct chapter *chapter, const char *what,
		 const char *which)
{
	fprintf(stderr, "%s:%d: %s%s\n", chapter->path, chapter->line, what,
		which);
	exit(1);
}

static char *copy(const char *text, size_t length)
{
	char *result = strndup(text, length);

	if (!result) {
		perror("embed");
		exit(1);
	}
	return result;
}

/* The text as a C string literal, on a line of its own. */
static void put_string(const char *text, size_t length)
{
	putchar('"');
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c == '\n')
			fputs("\\n", stdout);
		else if (c == '?' || c < ' ' || c > '~')
			printf("\\%03o", c);
		else
			putchar(c);
	}
	puts("\"");
}

/* docs/en/05_qp.md: "en" and "05_qp"; false for another kind of name. */
static bool split_path(struct chapter *chapter)
{
	const char *name = strrchr(chapter->path, '/');
	const char *lang;
	size_t length;

	if (!name || name == chapter->path)
		return false;
	for (lang = name; lang > chapter->path && lang[-1] != '/'; lang--)
		;
	chapter->lang = copy(lang, (size_t)(name - lang));
	name++;
	length = strlen(name);
	if (length < 7 || !isdigit((unsigned char)name[0]) ||
	    !isdigit((unsigned char)name[1]) || name[2] != '_' ||
	    strcmp(name + length - 3, ".md"))
		return false;
	chapter->lesson = copy(name, length - 3);
	return true;
}

static void end_section(struct chapter *chapter)
{
	if (chapter->in_section)
		puts("\t\"\" },");
	chapter->in_section = false;
}

static void note_id(struct chapter *chapter, const char *id)
{
	for (int i = 0; i < chapter->ids_count; i++)
		if (!strcmp(chapter->ids[i], id))
			fail(chapter, "this id was there before: ", id);
	if (chapter->ids_count == MAX_IDS)
		fail(chapter, "too many ids", "");
	chapter->ids[chapter->ids_count++] = copy(id, strlen(id));
}

/* "## Title {#id}" opens a section. `text` is behind the hashes. */
static void begin_section(struct chapter *chapter, const char *text,
			  size_t length)
{
	const char *mark = memmem(text, length, "{#", 2);
	size_t title = mark ? (size_t)(mark - text) : length;
	char *id = NULL;

	if (mark) {
		const char *end =
			memchr(mark, '}', length - (size_t)(mark - text));

		if (!end || end == mark + 2)
			fail(chapter, "an id is {#like-this}", "");
		id = copy(mark + 2, (size_t)(end - mark) - 2);
		note_id(chapter, id);
	}
	while (title && text[title - 1] == ' ')
		title--;
	end_section(chapter);
	chapter->in_section = true;
	chapter->body_begun = false;
	chapter->blank_lines = 0;
	sections++;
	puts("\t{");
	put_string(chapter->lang, strlen(chapter->lang));
	puts(",");
	put_string(chapter->lesson, strlen(chapter->lesson));
	puts(",");
	put_string(id ? id : "", id ? strlen(id) : 0);
	puts(",");
	put_string(text, title);
	puts(",");
	free(id);
}

static void put_body(struct chapter *chapter, const char *line, size_t length)
{
	if (!length) {
		chapter->blank_lines += chapter->body_begun;
		return;
	}
	for (; chapter->blank_lines; chapter->blank_lines--)
		put_string("\n", 1);
	chapter->body_begun = true;
	put_string(line, length);
	put_string("\n", 1);
}

static void read_line(struct chapter *chapter, const char *line, size_t length)
{
	size_t hashes = strspn(line, "#");

	chapter->line++;
	while (length && isspace((unsigned char)line[length - 1]))
		length--;
	if (length >= 3 && !strncmp(line, "```", 3))
		chapter->in_code = !chapter->in_code;
	else if (!chapter->in_code && hashes && hashes <= 6 &&
		 line[hashes] == ' ') {
		begin_section(chapter, line + hashes + 1, length - hashes - 1);
		return;
	}
	if (chapter->in_section)
		put_body(chapter, line, length);
	else if (length)
		fail(chapter, "a chapter begins with a heading", "");
}

static void read_chapter(const char *path)
{
	struct chapter *chapter = calloc(1, sizeof(*chapter));
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	FILE *file;

	if (!chapter) {
		perror("embed");
		exit(1);
	}
	chapter->path = path;
	if (split_path(chapter)) {
		file = fopen(path, "r");
		if (!file)
			fail(chapter, "", strerror(errno));
		while ((length = getline(&line, &size, file)) >= 0)
			read_line(chapter, line, (size_t)length);
		if (!chapter->in_section || chapter->in_code)
			fail(chapter,
			     "a chapter has no heading, or an open "
			     "code block",
			     "");
		end_section(chapter);
		fclose(file);
		free(line);
	}
	for (int i = 0; i < chapter->ids_count; i++)
		free(chapter->ids[i]);
	free(chapter->lang);
	free(chapter->lesson);
	free(chapter);
}

int main(int argc, char **argv)
{
	puts("/* Generated by common/words/embed.c from docs/: edit those. */");
	puts("#include \"common/words/words.h\"\n");
	puts("const struct words_section words_sections[] = {");
	for (int i = 1; i < argc; i++)
		read_chapter(argv[i]);
	if (!sections) /* ISO C has no empty arrays */
		puts("\t{ \"\", \"\", \"\", \"\", \"\" },");
	puts("};");
	printf("const int words_sections_count = %d;\n", sections);
	if (fflush(stdout) || ferror(stdout)) {
		perror("embed");
		return 1;
	}
	return 0;
}
