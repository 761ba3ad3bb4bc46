/* SPDX-License-Identifier: MIT */
/*
 * Looking up a section. The sections themselves are generated: embed.c
 * writes gen/chapters.c from docs/LANG/NN_name.md.
 */
#include "words.h"

#include <string.h>

static const struct words_section *find(const char *lang, const char *lesson,
					const char *id)
{
	for (int i = 0; i < words_sections_count; i++) {
		const struct words_section *section = &words_sections[i];

		if (!strcmp(section->lang, lang) &&
		    !strcmp(section->lesson, lesson) &&
		    !strcmp(section->id, id))
			return section;
	}
	return NULL;
}

const struct words_section *words_find(const char *lang, const char *lesson,
				       const char *id)
{
	const struct words_section *section = find(lang, lesson, id);

	return section ? section : find("en", lesson, id);
}
