/* SPDX-License-Identifier: MIT */
/*
 * The words of the lessons: docs/LANG/NN_name.md, embedded at build time, a
 * section per step. A heading that ends in {#id} opens the section of the
 * step with that id; sections without an id belong to the book alone.
 *
 * Read-only after start: safe from any thread.
 */
#ifndef WORDS_H
#define WORDS_H

#include <stddef.h>

struct words_section {
	const char *lang;   /* "en" */
	const char *lesson; /* "05_qp" */
	const char *id;    /* "create-qp"; "" for a section of the book alone */
	const char *title; /* the heading's text, without the id */
	const char *markdown; /* the section's body */
};

/* Every section, chapters in order, sections in the order of the chapter. */
extern const struct words_section words_sections[];
extern const int words_sections_count;

/* The section in `lang`, in English where that has none, or NULL. */
const struct words_section *words_find(const char *lang, const char *lesson,
				       const char *id);

/*
 * A section as plain text in lines of at most `columns` columns (wide
 * characters count two), paragraphs separated by an empty line. A table has
 * its columns aligned where they fit, else each row becomes lines of "head:
 * cell". Code is kept as it is, whatever its width. Text is ASCII or UTF-8 as
 * the chapter is, every line ends in a newline. Returns a string the caller
 * frees; NULL when memory is out.
 */
char *words_render(const struct words_section *section, int columns);

#endif
