/* SPDX-License-Identifier: MIT */
/*
 * Keys: what each does to the history, the panes, the menu, and which
 * command it sends. For the last a child is needed that says what it was
 * told: this program itself, started anew.
 */
#include "tui/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/trace/format.h"
#include "model_feed.h"
#include "tui/view.h"

#define CTX "\"context\":\"ctx0\""
#define PD0 "\"pd\":\"pd0\""

static const char *const run[] = {
	/* 0 */ HELLO,
	/* 1 */ ENTER(1, "ibv_open_device", "\"device\":\"soft0\""),
	/* 2 */ RET(1, "ibv_open_device", "\"device\":\"soft0\"", "\"ctx0\""),
	/* 3 */ MARK(2, "one"),
	/* 4 */ ENTER(3, "ibv_alloc_pd", CTX),
	/* 5 */ RET(3, "ibv_alloc_pd", CTX, "\"pd0\""),
	/* 6 */ MARK(4, "two"),
	/* 7 */ ENTER(5, "ibv_dealloc_pd", PD0),
	/* 8 */ REFUSED(5, "ibv_dealloc_pd", PD0),
	/* 9 */ ENTER(6, "ibv_alloc_pd", CTX),
	/* 10 */ RET(6, "ibv_alloc_pd", CTX, "\"pd1\""),
	/* 11 */ ENTER(7, "ibv_dealloc_pd", PD0),
};
#define RUN ((int)(sizeof(run) / sizeof(run[0])))

static const struct model_lesson lessons[] = {
	{ "01", "01_a", "A", (char *)"/x/01_a", false },
	{ "02", "02_b", "B", NULL, false },
	{ "03", "03_c", "C", (char *)"/x/03_c", false },
};

static struct model_feed *ran(void)
{
	struct model_feed *f = model_feed_new(lessons, 3, -1);

	for (int i = 0; i < RUN; i++)
		model_feed(f, run[i]);
	return f;
}

static enum keys_result press(struct model *model, const char *keys)
{
	enum keys_result result = KEYS_DRAW;

	for (; *keys; keys++)
		result = keys_press(model, (unsigned char)*keys);
	return result;
}

/* --- history -------------------------------------------------------------- */

static void test_history(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	press(model, "[");
	assert_int_equal(model->at, 10);
	press(model, "[[");
	assert_int_equal(model->at, 7);
	press(model, "]");
	assert_int_equal(model->at, 8);
	/* Space goes on through what has happened. */
	press(model, " ");
	assert_int_equal(model->at, 10);
	press(model, "{");
	assert_int_equal(model->at, 2);
	press(model, "[");
	assert_int_equal(model->at, 2);
	assert_non_null(strstr(model->message, "beginning"));
	press(model, "}");
	assert_int_equal(model->at, RUN);
	press(model, "]");
	assert_non_null(strstr(model->message, "present"));
	model_feed_free(f);
}

static void test_runs_in_the_past(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	press(model, "{m");
	assert_int_equal(model->at, 4);
	press(model, "m");
	assert_int_equal(model->at, 7);
	/* After the refused call, before the next. */
	press(model, "{f");
	assert_int_equal(model->at, 10);
	assert_int_equal(model_event(model)->seq, 6);
	/* From the first ibv_alloc_pd to the second. */
	press(model, "{  b");
	assert_int_equal(model->at, 10);
	/* None behind: to the present, which is not run on from unasked. */
	press(model, "b");
	assert_int_equal(model->at, RUN);
	assert_int_equal(f->session.state, SESSION_STOPPED);
	assert_non_null(strstr(model->message, "present"));
	press(model, "{c");
	assert_int_equal(model->at, RUN);
	model_feed_free(f);
}

static void test_enter_goes_to_call(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	model->focus = PANE_CALLS;
	keys_press(model, 'g');
	assert_false(model->scroll[PANE_CALLS].follows);
	assert_int_equal(model->scroll[PANE_CALLS].cursor, 0);
	keys_press(model, KEYS_DOWN);
	keys_press(model, KEYS_ENTER);
	/* ibv_alloc_pd has just returned. */
	assert_int_equal(model_calls_shown(model), 2);
	assert_int_equal(model->at, 7);
	model_feed_free(f);
}

/* --- panes ---------------------------------------------------------------- */

static void test_panes(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	assert_int_equal(model->focus, PANE_SOURCE);
	keys_press(model, KEYS_BACK_TAB);
	assert_int_equal(model->focus, PANE_OUTPUT);
	/* What has the focus is shown. */
	assert_int_equal(model->lower, PANE_OUTPUT);
	keys_press(model, KEYS_TAB);
	assert_int_equal(model->focus, PANE_SOURCE);
	assert_int_equal(model->lower, PANE_OUTPUT);
	press(model, "a");
	assert_int_equal(model->lower, PANE_CALLS);
	assert_int_equal(model->focus, PANE_SOURCE);
	press(model, "w");
	assert_int_equal(model->lower, PANE_WORDS);
	press(model, "v");
	assert_true(model->tree);
	press(model, "vX");
	assert_false(model->tree);
	assert_non_null(strstr(model->message, "X does nothing"));
	model_feed_free(f);
}

static void test_scroll_ends(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;
	struct model_scroll *scroll = &model->scroll[PANE_SOURCE];

	(void)state;
	model->length[PANE_SOURCE] = 100;
	press(model, "kkk");
	assert_int_equal(scroll->cursor, 0);
	press(model, "G");
	assert_int_equal(scroll->cursor, 99);
	press(model, "j");
	assert_int_equal(scroll->cursor, 99);
	assert_true(scroll->top <= 99 && scroll->top > 80);
	keys_press(model, KEYS_PAGE_UP);
	assert_true(scroll->cursor < 99);
	press(model, "g");
	assert_int_equal(scroll->cursor, 0);
	assert_int_equal(scroll->top, 0);
	/* A step shows the line that runs again. */
	press(model, "[");
	assert_true(scroll->follows);
	model_feed_free(f);
}

static void test_graph_moves(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	model->focus = PANE_GRAPH;
	assert_string_equal(model_selected(model)->id, "pd0");
	keys_press(model, KEYS_RIGHT);
	assert_string_equal(model_selected(model)->id, "pd1");
	press(model, "h");
	assert_string_equal(model_selected(model)->id, "pd0");
	press(model, "k");
	assert_string_equal(model_selected(model)->id, "ctx0");
	press(model, "k");
	assert_string_equal(model_selected(model)->id, "ctx0");
	press(model, "j");
	assert_string_equal(model_selected(model)->id, "pd0");
	press(model, "G");
	assert_string_equal(model_selected(model)->id, "pd1");
	press(model, "g");
	assert_string_equal(model_selected(model)->id, "ctx0");
	/* In the tree, down is the next row. */
	press(model, "vjj");
	assert_string_equal(model_selected(model)->id, "pd1");
	keys_press(model, KEYS_ENTER);
	assert_int_equal(model->focus, PANE_ATTRS);
	press(model, "e");
	assert_true(model->expanded[RULES_PD]);
	/* Esc gives the choice up before it leaves. */
	assert_int_equal(keys_press(model, KEYS_ESC), KEYS_DRAW);
	assert_string_equal(model->selected, "");
	assert_int_equal(keys_press(model, KEYS_ESC), KEYS_MENU);
	model_feed_free(f);
}

static void test_search(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	press(model, "n");
	assert_non_null(strstr(model->message, "nothing to search"));
	model->focus = PANE_CALLS;
	press(model, "g/");
	assert_int_equal(model->prompt, '/');
	/* While it is typed, no letter is a key. */
	press(model, "qDEALLOC");
	keys_press(model, KEYS_BACKSPACE);
	press(model, "C");
	assert_string_equal(model->input, "qDEALLOC");
	keys_press(model, KEYS_ESC);
	assert_int_equal(model->prompt, 0);
	press(model, "/DEALLOC");
	keys_press(model, KEYS_ENTER);
	assert_int_equal(model->scroll[PANE_CALLS].cursor, 2);
	press(model, "/alloc_pd(ctx");
	keys_press(model, KEYS_ENTER);
	assert_int_equal(model->scroll[PANE_CALLS].cursor, 3);
	press(model, "n");
	assert_int_equal(model->scroll[PANE_CALLS].cursor, 1);
	assert_non_null(strstr(model->message, "round"));
	press(model, "N");
	assert_int_equal(model->scroll[PANE_CALLS].cursor, 3);
	press(model, "/nowhere");
	keys_press(model, KEYS_ENTER);
	assert_int_equal(model->scroll[PANE_CALLS].cursor, 3);
	assert_non_null(strstr(model->message, "nowhere"));
	model_feed_free(f);
}

static void test_search_wide(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	press(model, "/");
	keys_press(model, 0x5bbd);
	keys_press(model, 0xe9);
	assert_string_equal(model->input, "\xe5\xae\xbd\xc3\xa9");
	keys_press(model, KEYS_BACKSPACE);
	keys_press(model, KEYS_BACKSPACE);
	assert_string_equal(model->input, "");
	/* Longer than there is room for: never half a character. */
	for (int i = 0; i < 100; i++)
		keys_press(model, 0x5bbd);
	assert_int_equal(strlen(model->input) % 3, 0);
	model_feed_free(f);
}

/* --- leaving -------------------------------------------------------------- */

static void test_quit(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	/* Objects live: it asks, and anything but yes is no. */
	assert_int_equal(press(model, "q"), KEYS_DRAW);
	assert_true(model->confirm_quit);
	assert_int_equal(press(model, "n"), KEYS_DRAW);
	assert_false(model->confirm_quit);
	assert_int_equal(press(model, "q"), KEYS_DRAW);
	assert_int_equal(keys_press(model, KEYS_ESC), KEYS_DRAW);
	assert_false(model->confirm_quit);
	assert_int_equal(press(model, "qy"), KEYS_QUIT);
	/* In the past too, it is the present that counts. */
	assert_int_equal(press(model, "{q"), KEYS_DRAW);
	assert_int_equal(press(model, "n}"), KEYS_DRAW);
	f->session.state = SESSION_EXITED;
	assert_int_equal(press(model, "q"), KEYS_QUIT);
	model_feed_free(f);
	/* Nothing lives: nothing is asked. */
	f = model_feed_new(lessons, 3, 0);
	model_feed(f, run[0]);
	model_feed(f, run[1]);
	assert_int_equal(press(&f->model, "q"), KEYS_QUIT);
	model_feed_free(f);
}

static void test_help(void **state)
{
	struct model_feed *f = ran();
	struct model *model = &f->model;

	(void)state;
	press(model, "?");
	assert_true(model->help);
	assert_int_equal(keys_press(model, KEYS_ESC), KEYS_DRAW);
	assert_false(model->help);
	keys_press(model, KEYS_F1);
	assert_true(model->help);
	assert_int_equal(keys_press(model, KEYS_CTRL_L), KEYS_REDRAW);
	model_feed_free(f);
}

static void test_menu(void **state)
{
	struct model model;

	(void)state;
	assert_int_equal(model_init(&model, lessons, 3, "en"), 0);
	press(&model, "k");
	assert_int_equal(model.menu, 0);
	press(&model, "jjjj");
	assert_int_equal(model.menu, 2);
	assert_int_equal(keys_press(&model, KEYS_ENTER), KEYS_START);
	assert_int_equal(press(&model, "1"), KEYS_START);
	assert_int_equal(model.menu, 0);
	/* Not built, and not there. */
	assert_int_equal(press(&model, "2"), KEYS_DRAW);
	assert_non_null(strstr(model.message, "02_b is not built"));
	assert_int_equal(press(&model, "9"), KEYS_DRAW);
	/* Esc never quits. */
	assert_int_equal(keys_press(&model, KEYS_ESC), KEYS_DRAW);
	assert_int_equal(press(&model, "q"), KEYS_QUIT);
	model_free(&model);
}

/* Any key at any time: nothing crashes, and there is always a way out. */
static void test_all_keys(void **state)
{
	struct model_feed *f = ran();

	(void)state;
	/* A program that has ended takes no commands. */
	f->session.state = SESSION_EXITED;
	f->session.stopped_at = NULL;
	model_update(&f->model);
	for (int round = 0; round < 3; round++)
		for (int code = -2; code <= KEYS_RESIZE + 1; code++) {
			if (code == 0x500)
				code = KEYS_UP - 1;
			keys_press(&f->model, code);
		}
	f->model.prompt = 0;
	f->model.help = f->model.confirm_quit = false;
	assert_int_equal(press(&f->model, "q"), KEYS_QUIT);
	model_feed_free(f);
}

/* --- commands ------------------------------------------------------------- */

/* Stops before call after call, and prints what it is told. */
static int be_child(void)
{
	FILE *channel = fdopen(atoi(getenv(TRACE_FD_ENV)), "r+");
	char line[100];

	alarm(60);
	if (!channel)
		return 99;
	setvbuf(channel, NULL, _IONBF, 0);
	fprintf(channel, "%s\n", HELLO);
	for (int seq = 1; seq <= 5; seq++) {
		fprintf(channel,
			"{\"ev\":\"enter\",\"seq\":%d,\"tid\":1,"
			"\"stop\":true,\"call\":\"ibv_alloc_pd\",\"args\":{}}"
			"\n",
			seq);
		if (!fgets(line, sizeof(line), channel))
			return 98;
		printf("%s", line);
		fflush(stdout);
		/* The second is refused. */
		fprintf(channel,
			"{\"ev\":\"ret\",\"seq\":%d,\"tid\":1,"
			"\"call\":\"ibv_alloc_pd\",\"args\":{},\"ok\":%s,"
			"\"ret\":null,\"err\":%d,\"out\":{}}\n",
			seq, seq == 2 ? "false" : "true", seq == 2 ? 12 : 0);
	}
	return 0;
}

static void wait_for_stop(struct model *model)
{
	for (int i = 0; i < 200 && model->session->state == SESSION_RUNNING;
	     i++) {
		session_wait(model->session, 100);
		model_update(model);
	}
}

static void start_child(struct model *model)
{
	char path[4096], *why;
	char *argv[] = { path, (char *)"--child", NULL };
	struct session_options options = { .argv = argv };
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(length > 0);
	path[length] = '\0';
	assert_int_equal(model_init(model, NULL, 0, "en"), 0);
	assert_int_equal(
		model_attach(model, session_start(&options, &why), "child", -1),
		0);
	assert_non_null(model->session);
}

static void test_guesses(void **state)
{
	struct model model;

	(void)state;
	start_child(&model);
	for (const char *key = "++-+"; *key; key++) {
		wait_for_stop(&model);
		keys_press(&model, *key);
		assert_int_equal(model.session->state, SESSION_RUNNING);
	}
	wait_for_stop(&model);
	/* The first and the last: the second was refused, the third not. */
	assert_int_equal(model.guess.judgements, 4);
	assert_int_equal(model.guess.right, 2);
	/* Nothing is guessed of what has been. */
	press(&model, "[-");
	assert_non_null(strstr(model.message, "past"));
	press(&model, "}c");
	wait_for_stop(&model);
	press(&model, "+");
	assert_non_null(strstr(model.message, "exited"));
	assert_int_equal(model.guess.judgements, 4);
	model_free(&model);
}

static void test_commands(void **state)
{
	static const char *const told[] = { "go", "until mark",
					    "until ibv_alloc_pd", "until fail",
					    "run" };
	struct model model;

	(void)state;
	start_child(&model);
	for (const char *key = " mbfc"; *key; key++) {
		wait_for_stop(&model);
		assert_int_equal(model.session->state, SESSION_STOPPED);
		keys_press(&model, *key);
		assert_int_equal(model.session->state, SESSION_RUNNING);
		/* Until it stops again, no other is sent. */
		press(&model, " ");
		assert_non_null(strstr(model.message, "runs"));
	}
	wait_for_stop(&model);
	assert_int_equal(model.session->state, SESSION_EXITED);
	while (session_wait(model.session, 0))
		;
	assert_int_equal(model.session->lines, 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(model.session->line[i], told[i]);
	press(&model, " ");
	assert_non_null(strstr(model.message, "exited 0"));
	assert_int_equal(press(&model, "r"), KEYS_RESTART);
	model_free(&model);
}

/* The manual page has the table of the help, word for word. */
static void test_manual_page(void **state)
{
	static char page[65536];
	FILE *file = fopen("docs/verbstep.1", "r");

	(void)state;
	assert_non_null(file);
	page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
	fclose(file);
	for (int i = 0; i < keys_help_count; i++) {
		char entry[160];

		snprintf(entry, sizeof(entry), ".TP\n%s\n%s\n",
			 keys_help[i].key, keys_help[i].does);
		if (!strstr(page, entry))
			fail_msg("docs/verbstep.1 lacks:\n%s", entry);
	}
}

static void test_pressed_keys_are_kept(void **state)
{
	struct model model;

	(void)state;
	assert_int_equal(model_init(&model, lessons, 3, "en"), 0);
	keys_press(&model, 'P');
	assert_true(model.presents);
	keys_press(&model, KEYS_DOWN);
	keys_press(&model, 'k');
	assert_string_equal(model.pressed, "P Down k");
	for (int i = 0; i < 20; i++)
		keys_press(&model, KEYS_PAGE_DOWN);
	assert_string_equal(model.pressed, "PgDn PgDn PgDn PgDn PgDn");
	keys_press(&model, 'P');
	assert_false(model.presents);
	assert_int_equal(keys_press(&model, 'x'), KEYS_FORGET);
	model_free(&model);
}

static void test_lessons_beside(void **state)
{
	struct model_feed *f = model_feed_new(lessons, 3, 0);

	(void)state;
	model_feed(f, HELLO);
	assert_int_equal(keys_press(&f->model, '<'), KEYS_DRAW);
	assert_non_null(strstr(f->model.message, "first"));
	/* The next one is not built. */
	assert_int_equal(keys_press(&f->model, '>'), KEYS_DRAW);
	assert_non_null(strstr(f->model.message, "not built"));
	f->model.current = 1;
	assert_int_equal(keys_press(&f->model, '>'), KEYS_START);
	assert_int_equal(f->model.menu, 2);
	assert_int_equal(f->model.lower, PANE_WORDS);
	model_feed_free(f);

	/* No lesson: none beside it, and no words to be shown. */
	f = model_feed_new(lessons, 3, -1);
	model_feed(f, HELLO);
	assert_int_equal(keys_press(&f->model, '>'), KEYS_DRAW);
	assert_non_null(strstr(f->model.message, "no lesson"));
	assert_int_equal(f->model.lower, PANE_CALLS);
	model_feed_free(f);
}

static void test_zoom(void **state)
{
	struct model_feed *f = model_feed_new(lessons, 3, 0);

	(void)state;
	model_feed(f, HELLO);
	keys_press(&f->model, 'z');
	assert_true(f->model.zoom);
	/* What is asked for is what is seen alone. */
	keys_press(&f->model, 'o');
	assert_int_equal(f->model.focus, PANE_OUTPUT);
	assert_int_equal(view_pane(&f->model, 24, 80, PANE_OUTPUT).rows, 19);
	assert_int_equal(view_pane(&f->model, 24, 80, PANE_SOURCE).rows, 0);
	assert_int_equal(keys_press(&f->model, KEYS_ESC), KEYS_DRAW);
	assert_false(f->model.zoom);
	model_feed_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_manual_page),
		cmocka_unit_test(test_pressed_keys_are_kept),
		cmocka_unit_test(test_lessons_beside),
		cmocka_unit_test(test_zoom),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_runs_in_the_past),
		cmocka_unit_test(test_enter_goes_to_call),
		cmocka_unit_test(test_panes),
		cmocka_unit_test(test_scroll_ends),
		cmocka_unit_test(test_graph_moves),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_search_wide),
		cmocka_unit_test(test_quit),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_menu),
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_commands),
	};

	if (argc == 2 && !strcmp(argv[1], "--child"))
		return be_child();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
