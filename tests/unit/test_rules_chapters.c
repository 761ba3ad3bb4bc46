/* SPDX-License-Identifier: MIT */
/*
 * The tables of the chapters say what the rules say: the way of a QP to RTS
 * in chapter 05, the calls that make and unmake objects in chapter 06.
 * Runs in the project's folder, as tests/run does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/rules/rules.h"

#define COLUMNS 8

/* One row of a Markdown table, its cells without blanks and backquotes. */
struct row {
	char text[512];
	char *cell[COLUMNS];
	int cells;
};

static char *trim(char *cell)
{
	char *end;

	cell += strspn(cell, " `");
	end = cell + strlen(cell);
	while (end > cell && strchr(" `\n", end[-1]))
		*--end = '\0';
	return cell;
}

/* The next row of any table in the file; false at its end. */
static bool next_row(FILE *file, struct row *row)
{
	char *cell, *rest;

	do {
		if (!fgets(row->text, sizeof(row->text), file))
			return false;
	} while (row->text[0] != '|');
	row->cells = 0;
	rest = row->text + 1;
	while ((cell = strsep(&rest, "|")) && rest && row->cells < COLUMNS)
		row->cell[row->cells++] = trim(cell);
	return true;
}

static FILE *open_chapter(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		fail_msg("%s cannot be read", path);
	return file;
}

/* "PKEY_INDEX, PORT" -> the mask. */
static int mask_of(const char *names)
{
	char text[256], *name, *rest = text;
	int bit, mask = 0;

	if (!strcmp(names, "nothing"))
		return 0;
	snprintf(text, sizeof(text), "%s", names);
	while ((name = strsep(&rest, ","))) {
		name = trim(name);
		for (bit = 0; bit < 26; bit++)
			if (!strcmp(rules_qp_attr_bit(1 << bit) +
					    strlen("IBV_QP_"),
				    name))
				break;
		if (bit == 26)
			fail_msg("no attribute is called \"%s\"", name);
		mask |= 1 << bit;
	}
	return mask;
}

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

static void compare_masks(const struct row *row, enum ibv_qp_state from,
			  enum ibv_qp_state to, bool optional)
{
	const struct rules_transition *rule;

	assert_int_equal(row->cells, 4);
	for (int i = 0; i < 3; i++) {
		const char *cell = row->cell[i + 1];
		int mask;

		if (!strcmp(cell, "the same"))
			cell = row->cell[i];
		rule = rules_transition_find(types[i], from, to);
		assert_non_null(rule);
		mask = optional ? rule->optional : rule->required;
		if (mask_of(cell) != mask)
			fail_msg("%s, %s: \"%s\" is not mask 0x%x",
				 rules_qp_type(types[i]), row->cell[0], cell,
				 mask);
	}
}

static void way_to_rts(void **state)
{
	static const struct {
		const char *name;
		enum ibv_qp_state from, to;
	} ways[] = {
		{ "RESET to INIT", IBV_QPS_RESET, IBV_QPS_INIT },
		{ "INIT to RTR", IBV_QPS_INIT, IBV_QPS_RTR },
		{ "RTR to RTS", IBV_QPS_RTR, IBV_QPS_RTS },
		{ "any to RESET", IBV_QPS_ERR, IBV_QPS_RESET },
		{ "any but RESET to ERR", IBV_QPS_RTS, IBV_QPS_ERR },
	};
	FILE *file = open_chapter("docs/en/05_qp.md");
	struct row row;
	int found = 0, last = -1;

	(void)state;
	while (next_row(file, &row)) {
		if (last >= 0 && !strcmp(row.cell[0], "optional")) {
			compare_masks(&row, ways[last].from, ways[last].to,
				      true);
			found++;
		}
		last = -1;
		for (int i = 0; i < 5; i++)
			if (!strcmp(row.cell[0], ways[i].name))
				last = i;
		if (last < 0)
			continue;
		compare_masks(&row, ways[last].from, ways[last].to, false);
		found++;
	}
	fclose(file);
	/* Five transitions; RESET to INIT, RESET and ERR take no more. */
	assert_int_equal(found, 7);
	assert_null(
		rules_transition_find(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_ERR));
}

static void calls_in_pairs(void **state)
{
	FILE *file = open_chapter("docs/en/06_lifecycle.md");
	const struct rules_call *makes, *unmakes;
	bool seen[RULES_OBJECTS] = { false };
	struct row row;
	int found = 0;

	(void)state;
	while (next_row(file, &row)) {
		char *unmaker = row.cell[1], *maker = strsep(&unmaker, ",");

		if (row.cells != 4 || !unmaker || strncmp(maker, "ibv_", 4))
			continue;
		maker = trim(maker);
		unmaker = trim(unmaker);
		makes = rules_call_find(maker);
		unmakes = rules_call_find(unmaker);
		if (!makes || !unmakes)
			fail_msg("%s or %s: no such call", maker, unmaker);
		assert_int_equal(makes->effect, RULES_CREATES);
		assert_int_equal(unmakes->effect, RULES_DESTROYS);
		assert_int_equal(makes->object, unmakes->object);
		assert_string_equal(row.cell[2], makes->needs);
		assert_string_equal(row.cell[3], unmakes->refused);
		assert_false(seen[makes->object]);
		seen[makes->object] = true;
		found++;
	}
	fclose(file);
	assert_int_equal(found, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(way_to_rts),
		cmocka_unit_test(calls_in_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
