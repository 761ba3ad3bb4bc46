/* SPDX-License-Identifier: MIT */
/*
 * The grid: what stands in the cells after text of any width, bad bytes and
 * lines that meet, read back as a dump.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tui/cells.h"

#define WIDE "\xe5\xae\xbd" /* one character of two columns */

static char *dump(const struct cells *cells, bool utf8)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	cells_dump(cells, utf8, out);
	fclose(out);
	return text;
}

static void expect(const struct cells *cells, bool utf8, const char *text)
{
	char *got = dump(cells, utf8);

	assert_string_equal(got, text);
	free(got);
}

static struct cells *grid(int rows, int columns)
{
	struct cells *cells = cells_new(rows, columns);

	assert_non_null(cells);
	return cells;
}

static void text_is_cut_at_the_area(void **state)
{
	struct cells *cells = grid(2, 8);
	struct cells_area area = { 0, 2, 1, 4 };

	(void)state;
	assert_int_equal(cells_text(cells, &area, 0, 0, 0, "abcdef"), 4);
	assert_int_equal(cells_text(cells, &area, 1, 0, 0, "below"), 4);
	assert_int_equal(cells_text(cells, &area, 0, -2, 0, "XYZ"), 3);
	expect(cells, true, "  Zbcd\n\n");
	/* An area that hangs over the grid draws what is inside. */
	struct cells_area over = { 1, 6, 5, 50 };
	cells_text(cells, &over, 0, 0, 0, "edge");
	cells_text(cells, &over, 3, 0, 0, "far");
	expect(cells, true, "  Zbcd\n      ed\n");
	cells_free(cells);
}

static void wide_characters_stay_whole(void **state)
{
	struct cells *cells = grid(1, 5);
	struct cells_area all = { 0, 0, 1, 5 };

	(void)state;
	/* The third would begin in the last column. */
	assert_int_equal(cells_text(cells, &all, 0, 0, 0, WIDE WIDE WIDE), 4);
	expect(cells, true, WIDE WIDE "\n");
	assert_int_equal(cells->cell[0].ch, 0x5bbd);
	assert_int_equal(cells->cell[1].ch, 0);
	/* Half of one overwritten: the other half is blank. */
	cells_text(cells, &all, 0, 1, 0, "x");
	expect(cells, true, " x" WIDE "\n");
	cells_text(cells, &all, 0, 2, 0, "y");
	expect(cells, true, " xy\n");
	cells_text(cells, &all, 0, 2, 0, WIDE);
	cells_text(cells, &all, 0, 1, 0, WIDE);
	expect(cells, true, " " WIDE "\n");
	/* Cut at the left, a half is a blank. */
	cells_text(cells, &all, 0, -1, 0, WIDE "z");
	expect(cells, true, " z\n");
	cells_free(cells);
}

static void a_line_over_a_wide_character(void **state)
{
	struct cells *cells = grid(1, 6);
	struct cells_area all = { 0, 0, 1, 6 };

	(void)state;
	cells_text(cells, &all, 0, 0, 0, WIDE WIDE WIDE);
	cells_hline(cells, &all, 0, 1, 4, 0);
	expect(cells, false, " ----\n");
	cells_free(cells);
}

static void bad_bytes_are_marked(void **state)
{
	struct cells *cells = grid(1, 20);
	struct cells_area all = { 0, 0, 1, 20 };

	(void)state;
	/* A lone lead, an overlong form, a surrogate, controls, a cut end. */
	cells_text(cells, &all, 0, 0, 0,
		   "\xff \xc0\x80 \xed\xa0\x80 \x1b\n\x7f");
	expect(cells, true, "? ?? ??? ???\n");
	assert_int_equal(cells_width("\xe5\xae"), 2);
	/* A combining accent has no column of its own and is left out. */
	assert_int_equal(cells_width("e\xcc\x81"), 1);
	cells_free(cells);
}

static void lines_meet(void **state)
{
	struct cells *cells = grid(3, 5);
	struct cells_area all = { 0, 0, 3, 5 };

	(void)state;
	for (int row = 0; row < 3; row++)
		cells_hline(cells, &all, row, 0, 4, 0);
	for (int column = 0; column < 5; column += 2)
		cells_vline(cells, &all, column, 0, 2, 0);
	expect(cells, true,
	       "\xe2\x94\x8c\xe2\x94\x80\xe2\x94\xac\xe2\x94\x80\xe2\x94\x90\n"
	       "\xe2\x94\x9c\xe2\x94\x80\xe2\x94\xbc\xe2\x94\x80\xe2\x94\xa4\n"
	       "\xe2\x94\x94\xe2\x94\x80\xe2\x94\xb4\xe2\x94\x80\xe2\x94\x98\n");
	expect(cells, false, "+-+-+\n+-+-+\n+-+-+\n");
	/* A box over a line takes its place. */
	cells_text(cells, &all, 1, 1, 0, "[a]");
	expect(cells, false, "+-+-+\n+[a]+\n+-+-+\n");
	cells_free(cells);
}

static void ascii_stands_for_what_it_can(void **state)
{
	struct cells *cells = grid(1, 12);
	struct cells_area all = { 0, 0, 1, 12 };

	(void)state;
	/* a right arrow, an en dash, a curly quote */
	cells_text(cells, &all, 0, 0, 0,
		   "a\xe2\x86\x92"
		   "b\xe2\x80\x93\xe2\x80\x99");
	expect(cells, false, "a>b-'\n");
	cells_free(cells);
}

static void styles_add_up(void **state)
{
	struct cells *cells = grid(1, 4);
	struct cells_area all = { 0, 0, 1, 4 };

	(void)state;
	cells_text(cells, &all, 0, 0, STYLE_BOLD, "abcd");
	cells_style(cells, &all, 0, 1, 99, STYLE_REVERSE);
	assert_int_equal(cells->cell[0].style, STYLE_BOLD);
	assert_int_equal(cells->cell[3].style, STYLE_BOLD | STYLE_REVERSE);
	struct cells_area middle = { 0, 1, 1, 2 };
	cells_fill(cells, &middle);
	assert_int_equal(cells->cell[1].style, 0);
	expect(cells, true, "a  d\n");
	cells_free(cells);
}

/* In a locale that cannot, the same text is drawn with marks. */
static void the_c_locale_gets_marks(void **state)
{
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C"));
	struct cells *cells = grid(1, 8);
	struct cells_area all = { 0, 0, 1, 8 };
	cells_text(cells, &all, 0, 0, 0, WIDE "\xe2\x86\x92x");
	expect(cells, false, "?>x\n");
	cells_free(cells);
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* An accent takes no column of its own; what hides in a text is left out. */
static void accents_join_their_letters(void **state)
{
	struct cells *cells = grid(1, 4);
	struct cells_area all = { 0, 0, 1, 4 };

	(void)state;
	cells_text(cells, &all, 0, 0, 0,
		   "\xcc\x81"
		   "e\xcc\x81\xe2\x80\x8bxyz");
	expect(cells, true, "e\xcc\x81xyz\n");
	expect(cells, false, "exyz\n");
	cells_text(cells, &all, 0, 0, 0, "a");
	expect(cells, true, "axyz\n");
	cells_free(cells);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_cut_at_the_area),
		cmocka_unit_test(wide_characters_stay_whole),
		cmocka_unit_test(a_line_over_a_wide_character),
		cmocka_unit_test(bad_bytes_are_marked),
		cmocka_unit_test(lines_meet),
		cmocka_unit_test(ascii_stands_for_what_it_can),
		cmocka_unit_test(styles_add_up),
		cmocka_unit_test(accents_join_their_letters),
		cmocka_unit_test(the_c_locale_gets_marks),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		fprintf(stderr, "no locale C.UTF-8\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
