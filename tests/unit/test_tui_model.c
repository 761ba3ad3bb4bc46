/* SPDX-License-Identifier: MIT */
/*
 * The history of a run: where it stops, what the graph was there, what comes
 * next, how far back it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/words/words.h"
#include "model_feed.h"

#define CTX "\"context\":\"ctx0\""

/*
 * A context, a step, a PD, a post and two polls that ran past without a word
 * before, a refused dealloc, a dealloc that has not returned.
 */
static const char *const run[] = {
	/* 0 */ HELLO,
	/* 1 */ ENTER(1, "ibv_open_device", "\"device\":\"soft0\""),
	/* 2 */ RET(1, "ibv_open_device", "\"device\":\"soft0\"", "\"ctx0\""),
	/* 3 */ MARK(2, "one"),
	/* 4 */ ENTER(3, "ibv_alloc_pd", CTX),
	/* 5 */ RET(3, "ibv_alloc_pd", CTX, "\"pd0\""),
	/* 6 */ RET(4, "ibv_req_notify_cq", "\"cq\":\"cq0\"", "0"),
	/* 7 */ RET(5, "ibv_poll_cq", "\"cq\":\"cq0\"", "0"),
	/* 8 */ ENTER(6, "ibv_alloc_pd", CTX),
	/* 9 */ RET(6, "ibv_alloc_pd", CTX, "\"pd1\""),
	/* 10 */ MARK(7, "two"),
	/* 11 */ ENTER(8, "ibv_dealloc_pd", "\"pd\":\"pd0\""),
	/* 12 */ REFUSED(8, "ibv_dealloc_pd", "\"pd\":\"pd0\""),
	/* 13 */ ENTER(9, "ibv_dealloc_pd", "\"pd\":\"pd0\""),
	/* 14 */ RET(9, "ibv_dealloc_pd", "\"pd\":\"pd0\"", "0"),
	/* 15 */ ENTER(10, "ibv_dealloc_pd", "\"pd\":\"pd1\""),
};
#define RUN ((int)(sizeof(run) / sizeof(run[0])))

static const size_t stops[] = { 2, 4, 5, 6, 7, 9, 11, 12, 14, 16 };
#define STOPS (sizeof(stops) / sizeof(stops[0]))

static struct model_feed *ran(int events)
{
	struct model_feed *f = model_feed_new(NULL, 0, -1);

	for (int i = 0; i < events; i++)
		model_feed(f, run[i]);
	return f;
}

static enum graph_state state_of(const struct model *model, const char *id)
{
	const struct graph_node *node = graph_find(model->graph, id);

	return node ? node->state : GRAPH_CREATING;
}

static void test_stops(void **state)
{
	struct model_feed *f = ran(RUN);

	(void)state;
	assert_int_equal(f->model.stops, STOPS);
	for (size_t i = 0; i < STOPS; i++)
		assert_int_equal(f->model.stop[i], stops[i]);
	assert_true(model_present(&f->model));
	assert_int_equal(f->model.at, RUN);
	assert_int_equal(model_behind(&f->model), 0);
	model_feed_free(f);
}

static void test_back_and_forward(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;

	(void)state;
	for (size_t back = 1; back < STOPS; back++) {
		assert_int_equal(model_seek(model, model_before(model)), 0);
		assert_int_equal(model->at, stops[STOPS - 1 - back]);
		assert_int_equal(model_behind(model), back);
		assert_false(model_present(model));
	}
	/* The beginning stays the beginning. */
	assert_int_equal(model_before(model), stops[0]);
	for (size_t i = 1; i < STOPS; i++) {
		assert_int_equal(model_seek(model, model_after(model)), 0);
		assert_int_equal(model->at, stops[i]);
	}
	assert_true(model_present(model));
	model_feed_free(f);
}

static void test_graph_as_it_was(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;

	(void)state;
	assert_int_equal(state_of(model, "pd0"), GRAPH_DESTROYED);
	assert_int_equal(model_seek(model, 14), 0);
	assert_int_equal(state_of(model, "pd0"), GRAPH_LIVE);
	assert_int_equal(state_of(model, "pd1"), GRAPH_LIVE);
	assert_int_equal(model_seek(model, 7), 0);
	assert_int_equal(state_of(model, "pd0"), GRAPH_LIVE);
	assert_null(graph_find(model->graph, "pd1"));
	assert_int_equal(model_seek(model, 2), 0);
	assert_null(graph_find(model->graph, "ctx0"));
	/* Alive is what is alive in the present: ctx0, pd1, and cq0, seen. */
	assert_int_equal(model_live(model), 3);
	assert_int_equal(model_seek(model, RUN), 0);
	assert_int_equal(state_of(model, "pd0"), GRAPH_DESTROYED);
	assert_int_equal(model_live(model), 3);
	model_feed_free(f);
}

static void test_next(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;
	static const char *const next[] = { "ibv_open_device",
					    "one",
					    "ibv_alloc_pd",
					    "ibv_req_notify_cq",
					    "ibv_poll_cq",
					    "ibv_alloc_pd",
					    "two",
					    "ibv_dealloc_pd",
					    "ibv_dealloc_pd",
					    "ibv_dealloc_pd" };

	(void)state;
	for (size_t i = 0; i < STOPS; i++) {
		assert_int_equal(model_seek(model, stops[i]), 0);
		assert_non_null(model_next(model));
		assert_string_equal(model_next(model)->call, next[i]);
		assert_int_equal(model_next(model)->kind == EVENT_MARK,
				 i == 1 || i == 6);
	}
	/* It stands before the poll: that has not been called yet. */
	assert_int_equal(model_seek(model, 7), 0);
	assert_int_equal(model_calls_shown(model), 3);
	assert_int_equal(model_next(model)->line, 5);
	model_feed_free(f);
}

static void test_running(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;
	char text[64];

	(void)state;
	assert_string_equal(model_state_text(model, text, sizeof(text)),
			    "stopped");
	f->session.state = SESSION_RUNNING;
	f->session.stopped_at = NULL;
	assert_string_equal(model_state_text(model, text, sizeof(text)),
			    "running");
	f->session.running_seconds = 12;
	/* Inside the call that has not returned. */
	assert_string_equal(model_next(model)->call, "ibv_dealloc_pd");
	assert_string_equal(model_state_text(model, text, sizeof(text)),
			    "running 12 s in ibv_dealloc_pd");
	model_feed(f, RET(10, "ibv_dealloc_pd", "\"pd\":\"pd1\"", "0"));
	assert_null(model_next(model));
	model_seek(model, 14);
	assert_string_equal(model_state_text(model, text, sizeof(text)),
			    "past, 2 back");
	model_feed_free(f);
}

/* In the past, what arrives does not move the screen. */
static void test_past_stays(void **state)
{
	struct model_feed *f = ran(RUN - 2);
	struct model *model = &f->model;

	(void)state;
	model_seek(model, 5);
	model_feed(f, run[RUN - 2]);
	model_feed(f, run[RUN - 1]);
	assert_int_equal(model->at, 5);
	assert_int_equal(state_of(model, "pd0"), GRAPH_CREATING);
	assert_int_equal(model->stops, STOPS);
	model_seek(model, 1000);
	assert_int_equal(model->at, RUN);
	model_feed_free(f);
}

static void test_killed_leaks(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;

	(void)state;
	f->session.state = SESSION_KILLED;
	f->session.status = 9;
	f->session.stopped_at = NULL;
	assert_int_equal(model_update(model), 0);
	assert_int_equal(state_of(model, "pd1"), GRAPH_LEAKED);
	assert_int_equal(state_of(model, "pd0"), GRAPH_DESTROYED);
	/* Before, it was alive, and afterwards it is leaked again. */
	model_seek(model, 14);
	assert_int_equal(state_of(model, "pd1"), GRAPH_LIVE);
	model_seek(model, RUN);
	assert_int_equal(state_of(model, "pd1"), GRAPH_LEAKED);
	model_feed_free(f);
}

static void test_selected(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;

	(void)state;
	/* The next call is about pd1. */
	assert_string_equal(model_selected(model)->id, "pd1");
	/* The next call creates: what the last one made. */
	model_seek(model, 5);
	assert_string_equal(model_selected(model)->id, "ctx0");
	/* At a mark: what the last call was about. */
	model_seek(model, 11);
	assert_string_equal(model_selected(model)->id, "pd1");
	strcpy(model->selected, "ctx0");
	assert_string_equal(model_selected(model)->id, "ctx0");
	/* Not there yet: as if nothing was selected. */
	strcpy(model->selected, "pd1");
	model_seek(model, 5);
	assert_string_equal(model_selected(model)->id, "ctx0");
	model_seek(model, 2);
	model_selected(model);
	model_feed_free(f);
}

static void test_ghosts(void **state)
{
	struct model_feed *f = ran(RUN);
	struct model *model = &f->model;

	(void)state;
	/* The call that destroyed pd0 is the newest: its ghost is seen. */
	assert_int_equal(model_ghosts_from(model),
			 graph_find(model->graph, "pd0")->died);
	model_feed(f, RET(10, "ibv_dealloc_pd", "\"pd\":\"pd1\"", "0"));
	assert_true(model_ghosts_from(model) >
		    graph_find(model->graph, "pd0")->died);
	model_feed_free(f);
}

static void test_tree(void **state)
{
	struct model_feed *f = ran(14);
	int rows;
	struct model_tree_row *row = model_tree(&f->model, &rows);
	const struct graph_node *node = f->model.graph->node;
	int context = -1, below = 0;

	(void)state;
	for (int i = 0; i < rows; i++) {
		if (!strcmp(node[row[i].node].id, "ctx0")) {
			context = i;
			assert_int_equal(row[i].depth, 0);
		}
		if (node[row[i].node].type == RULES_PD) {
			assert_true(context >= 0);
			assert_int_equal(row[i].depth, 1);
			below++;
		}
	}
	assert_int_equal(below, 2);
	free(row);
	model_feed_free(f);
}

/* The first lesson that has steps, whatever the chapters are today. */
static void test_step_count(void **state)
{
	struct model_lesson lesson = { .number = "00" };
	const char *id[2] = { NULL, NULL };
	int count = 0, step, steps;
	char line[512];
	struct model_feed *f;

	(void)state;
	for (int i = 0; i < words_sections_count; i++) {
		const struct words_section *section = &words_sections[i];

		if (!section->id[0] || strcmp(section->lang, "en"))
			continue;
		if (!lesson.name)
			lesson.name = section->lesson;
		if (strcmp(lesson.name, section->lesson))
			continue;
		if (count < 2)
			id[count] = section->id;
		count++;
	}
	assert_true(count >= 2);
	f = model_feed_new(&lesson, 1, 0);
	model_feed(f, HELLO);
	model_step_count(&f->model, &step, &steps);
	assert_int_equal(step, 0);
	assert_int_equal(steps, count);
	assert_null(model_step_id(&f->model));
	snprintf(line, sizeof(line),
		 "{\"ev\":\"mark\",\"seq\":1,\"tid\":1,\"stop\":true,"
		 "\"id\":\"%s\",\"at\":{}}",
		 id[1]);
	/* The second step of the chapter, though the first was skipped. */
	model_feed(f, line);
	model_step_count(&f->model, &step, &steps);
	assert_int_equal(step, 2);
	assert_int_equal(steps, count);
	assert_string_equal(model_step_id(&f->model), id[1]);
	model_feed_free(f);
	/* No lesson: the marks that were passed, of nobody knows how many. */
	f = ran(RUN);
	model_step_count(&f->model, &step, &steps);
	assert_int_equal(step, 2);
	assert_int_equal(steps, 0);
	model_seek(&f->model, 5);
	model_step_count(&f->model, &step, &steps);
	assert_int_equal(step, 1);
	model_feed_free(f);
}

static void test_source(void **state)
{
	char folder[] = "/tmp/verbstep-test-XXXXXX", path[200], first[64];
	struct model_feed *f = ran(2);
	const struct model_source *source;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(first, sizeof(first), "%s/feed.c", folder);
	file = fopen(first, "w");
	assert_non_null(file);
	fputs("int main(void)\r\n{\n\treturn\t0;\n}", file);
	fclose(file);
	assert_int_equal(model_add_source_dir(&f->model, folder), 0);
	/* As the compiler was given it, from somewhere else. */
	source = model_source(&f->model, "../other/feed.c");
	assert_int_equal(source->lines, 4);
	assert_string_equal(source->line[0], "int main(void)");
	assert_string_equal(source->line[2], "        return  0;");
	assert_string_equal(source->line[3], "}");
	assert_int_equal(model_source(&f->model, "none.c")->lines, 0);
	/* The program says where its build had it; not the model's folders. */
	snprintf(path, sizeof(path),
		 "{\"ev\":\"mark\",\"seq\":99,\"id\":\"x\",\"at\":"
		 "{\"file\":\"sub.c\",\"dir\":\"%s\",\"line\":1}}",
		 folder);
	model_feed(f, path);
	snprintf(path, sizeof(path), "%s/sub.c", folder);
	assert_int_equal(rename(first, path), 0);
	free(f->model.source_dir[--f->model.source_dirs]);
	assert_int_equal(model_source(&f->model, "sub.c")->lines, 4);
	/* Neither a folder nor a device is read. */
	assert_int_equal(model_source(&f->model, "/")->lines, 0);
	assert_int_equal(model_source(&f->model, "/dev/zero")->lines, 0);
	unlink(path);
	rmdir(folder);
	model_feed_free(f);
}

static void test_notes(void **state)
{
	struct model_feed *f = ran(2);

	(void)state;
	f->note[0] = (char *)"something is wrong";
	f->session.notes = f->session.notes_ever = 1;
	model_update(&f->model);
	assert_string_equal(f->model.message, "something is wrong");
	/* Once: the next key clears it, and it does not come back. */
	f->model.message[0] = '\0';
	model_update(&f->model);
	assert_string_equal(f->model.message, "");
	model_feed_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_back_and_forward),
		cmocka_unit_test(test_graph_as_it_was),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_past_stays),
		cmocka_unit_test(test_killed_leaks),
		cmocka_unit_test(test_selected),
		cmocka_unit_test(test_ghosts),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_step_count),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
