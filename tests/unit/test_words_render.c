/* SPDX-License-Identifier: MIT */
/*
 * Sections as plain text: what stands here as expected was laid out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/words/words.h"

static void renders(const char *markdown, int columns, const char *expected)
{
	struct words_section section = { "en", "99_x", "id", "T", markdown };
	char *text = words_render(&section, columns);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void nothing_gives_nothing(void **state)
{
	(void)state;
	renders("", 20, "");
	renders("\n\n", 20, "");
}

static void paragraphs_wrap(void **state)
{
	(void)state;
	renders("one two\nthree four\n", 9, "one two\nthree\nfour\n");
	renders("exactly ten\n", 11, "exactly ten\n");
	renders("exactly ten\n", 10, "exactly\nten\n");
	renders("a\n\nb\n", 20, "a\n\nb\n");
	/* A word that is too long is not cut. */
	renders("a ibv_query_device_ex b\n", 10, "a\nibv_query_device_ex\nb\n");
}

static void marks_vanish_and_their_text_stays(void **state)
{
	(void)state;
	renders("a *PD* is `ibv_pd` &lt;1&gt; **x**\n", 40,
		"a PD is ibv_pd <1> x\n");
	renders("`a_b_c` and IBV_QPT_RC\n", 40, "a_b_c and IBV_QPT_RC\n");
}

static void lists_hang(void **state)
{
	(void)state;
	renders("Text:\n\n- one two three\n- four\n  - nested\n\nEnd\n", 12,
		"Text:\n\n- one two\n  three\n- four\n  - nested\n\nEnd\n");
	renders("9. a b\n10. c\n", 6, "9. a b\n10. c\n");
}

static void code_is_kept(void **state)
{
	(void)state;
	renders("x\n\n```c\nint a;   /* long line */\n\n\tb;\n```\n\ny\n", 8,
		"x\n\n    int a;   /* long line */\n\n        b;\n\ny\n");
}

static void wide_characters_count_two(void **state)
{
	(void)state;
	/* Ten columns are five of these; they part without a space. */
	renders("保护域隔离资源\n", 10, "保护域隔离\n资源\n");
	/* A closing mark stays with what it closes. */
	renders("保护域隔离。资源\n", 10, "保护域隔\n离。资源\n");
	renders("a 保护 b\n", 6, "a 保护\nb\n");
}

static void tables_align(void **state)
{
	(void)state;
	renders("| a | bb |\n|---|---|\n| ccc | d |\n| e | |\n", 40,
		"a    bb\n---  --\nccc  d\ne\n");
	renders("| 保护 | b |\n|---|---|\n| x | y |\n", 40,
		"保护  b\n----  -\nx     y\n");
}

static void tables_narrow_then_fall_apart(void **state)
{
	(void)state;
	renders("| k | what it is |\n|---|---|\n| ab | one two three four |\n",
		14,
		"k   what it is\n--  ----------\n"
		"ab  one two\n    three four\n");
	/* No column gets narrower than its longest word. */
	renders("| k | v |\n|---|---|\n| ibv_destroy_qp | a b c d e f g |\n",
		26,
		"k               v\n--------------  ----------\n"
		"ibv_destroy_qp  a b c d e\n                f g\n");
	renders("| k | v |\n|---|---|\n| ibv_destroy_qp | a b c d e f g |\n",
		22, "k: ibv_destroy_qp\n  v: a b c d e f g\n");
	renders("| k | v |\n|---|---|\n| abcdefgh | one two three |\n", 10,
		"k:\nabcdefgh\n  v: one\n  two\n  three\n");
}

/* Every section of the book fits the strip that it is shown in. */
static void the_book_fits(void **state)
{
	(void)state;
	for (int i = 0; i < words_sections_count; i++) {
		char *text = words_render(&words_sections[i], 78);
		char *line, *rest = text;

		assert_non_null(text);
		while ((line = strsep(&rest, "\n")))
			if (strncmp(line, "    ", 4) && strlen(line) > 78 &&
			    !strpbrk(line, "\x80\xc2\xe2\xe4"))
				fail_msg("%s %s: %s", words_sections[i].lesson,
					 words_sections[i].id, line);
		free(text);
	}
}

static void sections_are_found(void **state)
{
	const struct words_section *section, *opening;

	(void)state;
	section = words_find("en", "01_context", "open-device");
	assert_non_null(section);
	assert_string_equal(section->lang, "en");
	assert_string_equal(section->title, "Opening it: the context");
	assert_null(strstr(section->markdown, "{#"));
	/* A language that has none falls back to English. */
	assert_ptr_equal(words_find("xx", "01_context", "open-device"),
			 section);
	assert_null(words_find("en", "01_context", "no-such-step"));
	assert_null(words_find("en", "77_none", "open-device"));
	opening = words_find("en", "01_context", "");
	assert_non_null(opening);
	assert_true(opening < section);
	assert_non_null(strstr(opening->title, "01 context: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_gives_nothing),
		cmocka_unit_test(paragraphs_wrap),
		cmocka_unit_test(marks_vanish_and_their_text_stays),
		cmocka_unit_test(lists_hang),
		cmocka_unit_test(code_is_kept),
		cmocka_unit_test(wide_characters_count_two),
		cmocka_unit_test(tables_align),
		cmocka_unit_test(tables_narrow_then_fall_apart),
		cmocka_unit_test(the_book_fits),
		cmocka_unit_test(sections_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
