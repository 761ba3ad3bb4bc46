/* SPDX-License-Identifier: MIT */
/*
 * The screen without a terminal: a model is fed with events, drawn, and
 * compared with the frames in tests/golden. To make them anew:
 *
 *	GOLDEN_WRITE=1 build/tests/unit/test_tui_view
 *
 * and then look at every one that `git diff` names: a frame is right because
 * somebody has read it, not because it was written.
 */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/words/words.h"
#include "tui/view.h"

#define SAMPLE       "tests/golden/06_sample.c"
#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

static const struct model_lesson lessons[] = {
	{ "01", "01_context", "The device context", (char *)"build/a", false },
	{ "02", "02_pd", "The protection domain", (char *)"build/b", false },
	{ "06", "06_sample", "The whole life", (char *)"build/c", false },
	{ "07", "07_wide", "\xe5\xae\xbd\xe5\xad\x97\xe7\xac\xa6", NULL,
	  false },
};

/* --- a run, as the probe would tell it ------------------------------------ */

#define AT(line) \
	"\"at\":{\"file\":\"" SAMPLE "\",\"line\":" #line ",\"func\":\"main\"}"
#define MARK(seq, id, line)              \
	"{\"ev\":\"mark\",\"seq\":" #seq \
	",\"tid\":7,\"stop\":true,\"id\":\"" id "\"," AT(line) "}"
#define ENTER(seq, call, args, line)                                  \
	"{\"ev\":\"enter\",\"seq\":" #seq ",\"tid\":7,\"stop\":true," \
	"\"call\":\"" call "\",\"args\":{" args "}," AT(line) "}"
#define RET(seq, call, args, ret, out, line)                          \
	"{\"ev\":\"ret\",\"seq\":" #seq ",\"tid\":7,\"call\":\"" call \
	"\",\"args\":{" args "},\"ok\":true,\"ret\":" ret             \
	",\"err\":0,\"out\":{" out "},\"count\":1," AT(line) "}"
#define REFUSED(seq, call, args, err, line)                                  \
	"{\"ev\":\"ret\",\"seq\":" #seq ",\"tid\":7,\"call\":\"" call        \
	"\",\"args\":{" args "},\"ok\":false,\"ret\":" #err ",\"err\":" #err \
	",\"out\":{},\"count\":1," AT(line) "}"
#define CALL(seq, call, args, ret, out, line) \
	ENTER(seq, call, args, line), RET(seq, call, args, ret, out, line)

#define MR_ARGS                                                       \
	"\"pd\":\"pd0\",\"addr\":\"0x7f5a10000000\",\"length\":4096," \
	"\"access\":\"IBV_ACCESS_LOCAL_WRITE\""
#define CQ_ARGS                                                \
	"\"context\":\"ctx0\",\"cqe\":16,\"cq_context\":null," \
	"\"channel\":null,\"comp_vector\":0"
#define QP_ARGS                                                       \
	"\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\","     \
	"\"srq\":null,\"cap.max_send_wr\":16,\"cap.max_recv_wr\":16," \
	"\"cap.max_send_sge\":1,\"cap.max_recv_sge\":1,"              \
	"\"cap.max_inline_data\":0,\"qp_type\":\"IBV_QPT_RC\","       \
	"\"sq_sig_all\":0"

static const char *const run[] = {
	"{\"v\":1,\"ev\":\"hello\",\"pid\":7,\"exe\":\"/x/06_sample\"}",
	CALL(1, "ibv_open_device", "\"device\":\"soft0\"", "\"ctx0\"",
	     "\"num_comp_vectors\":1", 17),
	MARK(2, "alloc-pd", 22),
	CALL(3, "ibv_alloc_pd", "\"context\":\"ctx0\"", "\"pd0\"",
	     "\"handle\":1", 23),
	MARK(4, "reg-mr", 29),
	CALL(5, "ibv_reg_mr", MR_ARGS, "\"mr0\"",
	     "\"handle\":2,\"lkey\":\"0x1234\",\"rkey\":\"0x1234\"", 31),
	MARK(6, "create-cq", 37),
	CALL(7, "ibv_create_cq", CQ_ARGS, "\"cq0\"", "\"handle\":3,\"cqe\":31",
	     38),
	MARK(8, "create-qp", 42),
	CALL(9, "ibv_create_qp", QP_ARGS, "\"qp0\"",
	     "\"handle\":4,\"qp_num\":17,\"state\":\"IBV_QPS_RESET\","
	     "\"cap.max_send_wr\":16,\"cap.max_inline_data\":64",
	     49),
	MARK(10, "wrong-order", 54),
	ENTER(11, "ibv_dealloc_pd", "\"pd\":\"pd0\"", 55),
	REFUSED(11, "ibv_dealloc_pd", "\"pd\":\"pd0\"", 16, 55),
	ENTER(12, "ibv_destroy_qp", "\"qp\":\"qp0\"", 57),
	RET(12, "ibv_destroy_qp", "\"qp\":\"qp0\"", "0", "", 57),
	ENTER(13, "ibv_destroy_cq", "\"cq\":\"cq0\"", 59),
};

/* How many of them each picture takes; each ends in a stop. */
enum { NEXT_QP = 14, BORN_QP = 16, REFUSED_PD = 19, GHOST_QP = 21 };

struct fixture {
	struct model model;
	struct session session;
	struct event *event[64];
	char *line[8];
	char *note[1];
};

static void feed(struct fixture *f, const char *line)
{
	char *why = NULL;
	struct event *event = event_parse(line, strlen(line), &why);

	if (!event)
		fail_msg("%s: %s", line, why);
	f->event[f->session.events++] = event;
}

static struct fixture *menu(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(model_init(&f->model, lessons, COUNT(lessons), "en"),
			 0);
	return f;
}

/* The first `events` of the run, stopped at the last of them. */
static struct fixture *stopped_at(int events)
{
	struct fixture *f = menu();

	f->session.state = SESSION_STOPPED;
	f->session.event = f->event;
	f->session.line = f->line;
	f->session.note = f->note;
	assert_true(events <= COUNT(run));
	assert_int_equal(model_attach(&f->model, &f->session, "build/c", 2), 0);
	for (int i = 0; i < events; i++)
		feed(f, run[i]);
	f->session.stopped_at = f->event[events - 1];
	assert_int_equal(model_update(&f->model), 0);
	return f;
}

static void output(struct fixture *f, const char *text)
{
	f->line[f->session.lines++] = (char *)text;
}

static void done(struct fixture *f)
{
	/* Its session is no real one: session_free() must not see it. */
	f->model.session = NULL;
	model_free(&f->model);
	for (size_t i = 0; i < f->session.events; i++)
		event_free(f->event[i]);
	free(f);
}

/* --- frames --------------------------------------------------------------- */

static char *frame(struct model *model, int columns, int rows, bool utf8)
{
	struct cells *cells = cells_new(rows, columns);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(cells);
	assert_non_null(out);
	view_draw(cells, model);
	cells_dump(cells, utf8, out);
	fclose(out);
	cells_free(cells);
	return text;
}

static char *slurp(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = fopen(path, "r");

	if (!file || getdelim(&text, &size, '\0', file) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	fclose(file);
	return text;
}

static void check(struct fixture *f, const char *name, int columns, int rows,
		  bool utf8)
{
	char *got = frame(&f->model, columns, rows, utf8);
	char path[128];

	snprintf(path, sizeof(path), "tests/golden/%s.txt", name);
	if (getenv("GOLDEN_WRITE")) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(got, file);
		fclose(file);
	}
	char *expected = slurp(path);
	if (strcmp(got, expected) != 0) {
		/* Longer than what fail_msg() takes. */
		fprintf(stderr, "instead of %s:\n%s", path, got);
		fail();
	}
	free(expected);
	free(got);
}

static void frame_of_the_menu(void **state)
{
	struct fixture *f = menu();

	(void)state;
	f->model.menu = 2;
	check(f, "menu-80x24", 80, 24, true);
	check(f, "menu-40x8", 40, 8, false);
	struct model_lesson finished[COUNT(lessons)];
	memcpy(finished, lessons, sizeof(finished));
	finished[1].done = true;
	f->model.lesson = finished;
	f->model.menu = 1;
	check(f, "menu-done-80x24", 80, 24, true);
	done(f);
}

static void frame_before_a_call(void **state)
{
	struct fixture *f = stopped_at(NEXT_QP);

	(void)state;
	check(f, "next-80x24", 80, 24, true);
	check(f, "next-80x24-ascii", 80, 24, false);
	f->model.focus = PANE_CALLS;
	f->model.lower = PANE_CALLS;
	check(f, "next-200x60", 200, 60, true);
	check(f, "next-100x40", 100, 40, true);
	done(f);
}

static void frame_of_a_refusal(void **state)
{
	struct fixture *f = stopped_at(REFUSED_PD);

	(void)state;
	check(f, "refused-80x24", 80, 24, true);
	check(f, "refused-60x15", 60, 15, true);
	check(f, "refused-40x8", 40, 8, true);
	done(f);
}

static void frame_of_a_guess(void **state)
{
	struct fixture *f = stopped_at(REFUSED_PD - 2);

	(void)state;
	f->model.guess = (struct model_guess){
		.seq = 11,
		.refused = true,
		.judgements = 3,
		.right = 1,
	};
	feed(f, run[REFUSED_PD - 2]);
	feed(f, run[REFUSED_PD - 1]);
	assert_int_equal(model_update(&f->model), 0);
	check(f, "guess-80x24", 80, 24, true);
	check(f, "guess-40x8", 40, 8, true);
	done(f);
}

static void frame_of_a_ghost(void **state)
{
	struct fixture *f = stopped_at(GHOST_QP);

	(void)state;
	f->model.focus = PANE_GRAPH;
	check(f, "ghost-80x24", 80, 24, true);
	f->model.tree = true;
	check(f, "tree-80x24", 80, 24, true);
	done(f);
}

static void frame_of_the_past(void **state)
{
	struct fixture *f = stopped_at(GHOST_QP);

	(void)state;
	f->model.focus = f->model.lower = PANE_CALLS;
	model_seek(&f->model, 10);
	check(f, "past-80x24", 80, 24, true);
	done(f);
}

/* All that was made is destroyed, and the program has ended. */
static struct fixture *ended(void)
{
	static const char *const ending[] = {
		CALL(13, "ibv_destroy_cq", "\"cq\":\"cq0\"", "0", "", 58),
		CALL(14, "ibv_dereg_mr", "\"mr\":\"mr0\"", "0", "", 60),
		CALL(15, "ibv_dealloc_pd", "\"pd\":\"pd0\"", "0", "", 62),
		CALL(16, "ibv_close_device", "\"context\":\"ctx0\"", "0", "",
		     64),
		"{\"ev\":\"bye\"}",
	};
	struct fixture *f = stopped_at(GHOST_QP);

	for (int i = 0; i < COUNT(ending); i++)
		feed(f, ending[i]);
	f->session.state = SESSION_EXITED;
	f->session.stopped_at = NULL;
	assert_int_equal(model_update(&f->model), 0);
	return f;
}

static void frame_of_the_end(void **state)
{
	struct fixture *f = ended();

	(void)state;
	check(f, "end-80x24", 80, 24, true);
	check(f, "end-40x8", 40, 8, true);
	f->model.presents = true;
	strcpy(f->model.pressed, "m Space c");
	f->model.zoom = true;
	f->model.focus = PANE_CALLS;
	check(f, "zoom-80x24", 80, 24, true);
	done(f);
}

/* What is left alive is shown, not summed up. */
static void leaks_are_no_good_end(void **state)
{
	struct fixture *f = stopped_at(GHOST_QP);
	char *text;

	(void)state;
	f->session.state = SESSION_EXITED;
	f->session.stopped_at = NULL;
	model_update(&f->model);
	text = frame(&f->model, 80, 24, true);
	assert_null(strstr(text, "The end"));
	assert_non_null(strstr(text, "left alive"));
	free(text);
	done(f);
}

static void hits_are_underlined_in_calls(void **state)
{
	struct fixture *f = ended();
	struct cells *cells = cells_new(24, 80);
	int marked = 0;

	(void)state;
	f->model.focus = f->model.lower = PANE_CALLS;
	f->model.zoom = true;
	strcpy(f->model.search, "DeReg");
	view_draw(cells, &f->model);
	for (int i = 0; i < 24 * 80; i++)
		if (cells->cell[i].style & STYLE_UNDERLINE)
			assert_int_equal((wchar_t) "dereg"[marked++ % 5],
					 cells -> cell[i].ch);
	assert_int_equal(marked, 5);
	cells_free(cells);
	done(f);
}

static void frame_of_a_crash(void **state)
{
	struct fixture *f = stopped_at(GHOST_QP);

	(void)state;
	f->session.state = SESSION_KILLED;
	f->session.status = SIGSEGV;
	f->session.stopped_at = NULL;
	f->note[0] = (char *)"the program was killed by SIGSEGV in "
			     "ibv_destroy_cq";
	f->session.notes = 1;
	output(f, "about to crash");
	output(f,
	       "\xe8\xbe\x93\xe5\x87\xba\xef\xbc\x9a a wide line, cut at "
	       "the edge: \xe5\x86\x85\xe5\xad\x98\xe5\x8c\xba\xe5\x9f\x9f"
	       "\xe4\xbf\x9d\xe6\x8a\xa4\xe5\x9f\x9f\xe9\x98\x9f\xe5\x88\x97"
	       "\xe5\xaf\xb9\xe5\xae\x8c\xe6\x88\x90\xe9\x98\x9f\xe5\x88\x97"
	       "\xe8\xae\xbe\xe5\xa4\x87\xe4\xb8\x8a\xe4\xb8\x8b\xe6\x96\x87");
	output(f, "bad bytes \xff\xc0\x80 and \x1b[31m an escape");
	f->model.lower = f->model.focus = PANE_OUTPUT;
	model_update(&f->model);
	check(f, "crash-80x24", 80, 24, true);
	check(f, "crash-80x24-ascii", 80, 24, false);
	done(f);
}

static void frames_of_questions(void **state)
{
	struct fixture *f = stopped_at(BORN_QP);

	(void)state;
	f->model.help = true;
	check(f, "help-80x24", 80, 24, true);
	f->model.help = false;
	f->model.confirm_quit = true;
	char *text = frame(&f->model, 80, 24, true);
	assert_non_null(strstr(text, "5 objects"));
	assert_non_null(strstr(text, "y/n"));
	free(text);
	f->model.confirm_quit = false;
	f->model.prompt = '/';
	strcpy(f->model.input, "qp");
	text = frame(&f->model, 80, 24, true);
	assert_non_null(strstr(text, "\n/qp"));
	free(text);
	done(f);
}

/* The style of the first cell of the one place where `text` stands. */
static unsigned int style_of(struct model *model, const char *text)
{
	struct cells *cells = cells_new(24, 80);
	size_t length = strlen(text);
	unsigned int style = 0;
	int found = 0;

	assert_non_null(cells);
	view_draw(cells, model);
	for (int i = 0; i + (int)length <= 24 * 80; i++) {
		size_t same = 0;
		while (same < length &&
		       cells->cell[i + (int)same].ch == text[same])
			same++;
		if (same < length)
			continue;
		style = cells->cell[i].style;
		found++;
	}
	if (found != 1)
		fail_msg("\"%s\" stands %d times", text, found);
	cells_free(cells);
	return style;
}

static void styles_follow_the_marks(void **state)
{
	struct fixture *f = stopped_at(BORN_QP);

	(void)state;
	strcpy(f->model.selected, "mr0");
	assert_int_equal(style_of(&f->model, "(qp0 R"),
			 STYLE_BOLD | STYLE_GOOD);
	assert_int_equal(style_of(&f->model, "[mr0"), STYLE_REVERSE);
	assert_int_equal(style_of(&f->model, "[pd0"), 0);
	done(f);
	f = stopped_at(REFUSED_PD);
	assert_true(style_of(&f->model, "refused: EBUSY") & STYLE_BAD);
	assert_true(style_of(&f->model, ">qp0 R") & STYLE_BOLD);
	assert_false(style_of(&f->model, "destroy_cq:") & STYLE_UNDERLINE);
	strcpy(f->model.search, "DESTROY_CQ:");
	assert_true(style_of(&f->model, "destroy_cq:") & STYLE_UNDERLINE);
	done(f);
	f = stopped_at(GHOST_QP);
	assert_int_equal(style_of(&f->model, "(qp0 R"), STYLE_DIM);
	done(f);
}

/* What destroying would be answered is the graph's word, not the view's. */
static void attributes_say_who_holds(void **state)
{
	struct fixture *f = stopped_at(REFUSED_PD);
	char *text;

	(void)state;
	strcpy(f->model.selected, "pd0");
	text = frame(&f->model, 80, 24, true);
	assert_non_null(strstr(text, "held by      mr0, qp0"));
	assert_non_null(strstr(text, "dealloc now  EBUSY"));
	free(text);
	strcpy(f->model.selected, "ctx0");
	text = frame(&f->model, 80, 24, true);
	assert_non_null(strstr(text, "alive in it  4"));
	assert_non_null(strstr(text, "close now    0, and they leak"));
	free(text);
	done(f);
}

static void small_screens_ask_for_more(void **state)
{
	struct fixture *f = stopped_at(NEXT_QP);
	char *text = frame(&f->model, 20, 5, true);

	(void)state;
	assert_non_null(strstr(text, "20x5 is too small"));
	assert_non_null(strstr(text, "q quits"));
	free(text);
	text = frame(&f->model, 1, 1, true);
	assert_int_equal(strlen(text), 2);
	free(text);
	/* And it recovers. */
	text = frame(&f->model, 80, 24, true);
	assert_non_null(strstr(text, "ibv_create_qp"));
	free(text);
	done(f);
}

/* The words pane shows the section that the chapter has for the step. */
static void words_are_those_of_the_step(void **state)
{
	const struct words_section *section = NULL;
	char line[512];

	(void)state;
	for (int i = 0; i < words_sections_count && !section; i++)
		if (!strcmp(words_sections[i].lang, "en") &&
		    words_sections[i].id[0])
			section = &words_sections[i];
	assert_non_null(section);
	struct model_lesson lesson = { .number = "01",
				       .name = section->lesson,
				       .title = "x" };
	struct fixture *f = stopped_at(1);
	snprintf(line, sizeof(line),
		 "{\"ev\":\"mark\",\"seq\":1,\"tid\":7,\"stop\":true,"
		 "\"id\":\"%s\"}",
		 section->id);
	feed(f, line);
	f->model.lesson = &lesson;
	f->model.lessons = 1;
	f->model.current = 0;
	model_update(&f->model);
	char *text = frame(&f->model, 80, 24, true);
	char *words = words_render(section, 60);
	assert_true(strlen(words) > 40);
	assert_non_null(strstr(text, section->title));
	/* Wrapped at another width, but it begins alike. */
	words[40] = '\0';
	words[strcspn(words, "\n")] = '\0';
	assert_non_null(strstr(text, words));
	free(words);
	free(text);
	done(f);
}

/* A pane's area is what is drawn, and no row of a frame is ever too wide. */
static void every_size_draws(void **state)
{
	struct fixture *f = stopped_at(GHOST_QP);

	(void)state;
	output(f, "\xe5\xae\xbd\xe5\xae\xbd\xe5\xae\xbd\xe5\xae\xbd");
	for (int rows = 1; rows <= 35; rows++) {
		for (int columns = 1; columns <= 90; columns++) {
			f->model.focus = (enum model_pane)(columns % PANES);
			f->model.lower =
				(enum model_pane)(PANE_WORDS + rows % 3);
			f->model.tree = rows % 2;
			f->model.help = columns % 7 == 0;
			char *text = frame(&f->model, columns, rows, true);
			int lines = 0;
			for (char *p = strtok(text, "\n"); p;
			     p = strtok(NULL, "\n"), lines++)
				assert_true(cells_width(p) <= columns);
			assert_true(lines <= rows);
			free(text);
		}
	}
	done(f);
}

static void panes_lie_apart(void **state)
{
	static const int size[][2] = {
		{ 8, 40 },   { 15, 60 },  { 24, 80 },  { 40, 100 },
		{ 30, 140 }, { 60, 200 }, { 24, 200 }, { 90, 79 },
	};
	struct fixture *f = stopped_at(GHOST_QP);

	(void)state;
	for (int i = 0; i < COUNT(size); i++) {
		char used[90 * 200] = { 0 };
		for (int pane = 0; pane < PANES; pane++) {
			struct cells_area a =
				view_pane(&f->model, size[i][0], size[i][1],
					  (enum model_pane)pane);
			for (int r = a.row; r < a.row + a.rows; r++)
				for (int c = a.column; c < a.column + a.columns;
				     c++) {
					assert_true(r > 0 &&
						    r < size[i][0] - 3);
					assert_true(c < size[i][1]);
					assert_int_equal(
						used[r * size[i][1] + c]++, 0);
				}
		}
	}
	done(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_of_the_menu),
		cmocka_unit_test(frame_before_a_call),
		cmocka_unit_test(frame_of_a_refusal),
		cmocka_unit_test(frame_of_a_guess),
		cmocka_unit_test(frame_of_a_ghost),
		cmocka_unit_test(frame_of_the_past),
		cmocka_unit_test(frame_of_a_crash),
		cmocka_unit_test(frame_of_the_end),
		cmocka_unit_test(leaks_are_no_good_end),
		cmocka_unit_test(hits_are_underlined_in_calls),
		cmocka_unit_test(frames_of_questions),
		cmocka_unit_test(styles_follow_the_marks),
		cmocka_unit_test(attributes_say_who_holds),
		cmocka_unit_test(small_screens_ask_for_more),
		cmocka_unit_test(words_are_those_of_the_step),
		cmocka_unit_test(every_size_draws),
		cmocka_unit_test(panes_lie_apart),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8")) {
		fprintf(stderr, "no locale C.UTF-8\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
