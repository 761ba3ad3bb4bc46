/* SPDX-License-Identifier: MIT */
/* Which lessons are done is kept, and a file that is none is let alone. */
#include "tui/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/progressXXXXXX";
static char file[64];

static void lessons(struct model_lesson lesson[2])
{
	lesson[0] = (struct model_lesson){ .name = "01_context" };
	lesson[1] = (struct model_lesson){ .name = "05_qp" };
}

static void put(const char *text)
{
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void nothing_was_done_at_first(void **state)
{
	struct model_lesson lesson[2];

	(void)state;
	lessons(lesson);
	assert_null(progress_read(lesson, 2));
	assert_false(lesson[0].done || lesson[1].done);
}

static void what_is_done_is_kept(void **state)
{
	struct model_lesson lesson[2];

	(void)state;
	lessons(lesson);
	lesson[1].done = true;
	assert_null(progress_write(lesson, 2));
	lessons(lesson);
	assert_null(progress_read(lesson, 2));
	assert_false(lesson[0].done);
	assert_true(lesson[1].done);

	lesson[1].done = false;
	assert_null(progress_write(lesson, 2));
	lesson[0].done = lesson[1].done = false;
	assert_null(progress_read(lesson, 2));
	assert_false(lesson[0].done || lesson[1].done);
}

static void another_file_stays(void **state)
{
	static const char *const texts[] = { "", "05_qp\n",
					     "verbstep progress 2\n05_qp\n" };
	struct model_lesson lesson[2];
	char kept[64] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(texts[i]);
		lessons(lesson);
		char *why = progress_read(lesson, 2);
		assert_non_null(why);
		assert_non_null(strstr(why, file));
		free(why);
		assert_false(lesson[1].done);
		lesson[0].done = true;
		why = progress_write(lesson, 2);
		assert_non_null(why);
		free(why);
		FILE *in = fopen(file, "r");
		kept[fread(kept, 1, sizeof(kept) - 1, in)] = '\0';
		fclose(in);
		assert_string_equal(kept, texts[i]);
	}
	/* Lessons that there are not, and lines without an end. */
	put("verbstep progress 1\n99_x\n\n05_qp");
	lessons(lesson);
	assert_null(progress_read(lesson, 2));
	assert_true(lesson[1].done);
	unlink(file);
	assert_int_equal(mkfifo(file, 0600), 0);
	char *why = progress_read(lesson, 2);
	assert_non_null(why);
	free(why);
	unlink(file);
}

static void without_a_home_nothing_is_kept(void **state)
{
	struct model_lesson lesson[2];

	(void)state;
	lessons(lesson);
	setenv("XDG_STATE_HOME", "relative", 1);
	unsetenv("HOME");
	assert_null(progress_write(lesson, 2));
	assert_null(progress_read(lesson, 2));
	setenv("HOME", folder, 1);
	assert_null(progress_write(lesson, 2));
	char path[96];
	snprintf(path, sizeof(path), "%s/.local/state/verbstep/progress",
		 folder);
	assert_int_equal(access(path, R_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_was_done_at_first),
		cmocka_unit_test(what_is_done_is_kept),
		cmocka_unit_test(another_file_stays),
		cmocka_unit_test(without_a_home_nothing_is_kept),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	setenv("XDG_STATE_HOME", folder, 1);
	snprintf(file, sizeof(file), "%s/verbstep/progress", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) || failed;
}
