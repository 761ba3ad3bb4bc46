/* SPDX-License-Identifier: MIT */
/*
 * Layouts as pictures, and, over random graphs, what a reader of any picture
 * relies on: boxes do not touch, lines pass no box, and following the lines
 * from a box leads to its children and to nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/trace_feed.h"
#include "tui/layout.h"

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8, BOX = 16 };

/* A picture in direction bits, with the labels over them. */
struct picture {
	int rows, columns;
	unsigned char *bits;
	char *text;
	int *box; /* which box a cell belongs to; -1 */
};

static void draw_line(struct picture *picture, const struct layout_line *line)
{
	for (int i = 0; i < line->length; i++) {
		int row = line->row + (line->vertical ? i : 0);
		int column = line->column + (line->vertical ? 0 : i);
		unsigned char *bits =
			&picture->bits[row * picture->columns + column];

		if (i > 0)
			*bits |= line->vertical ? UP : LEFT;
		if (i + 1 < line->length)
			*bits |= line->vertical ? DOWN : RIGHT;
	}
}

static struct picture draw(const struct layout *layout)
{
	struct picture p = { .rows = layout->rows, .columns = layout->columns };
	size_t cells = (size_t)(p.rows * p.columns) + 1;

	p.bits = calloc(cells, 1);
	p.text = calloc(cells, 1);
	p.box = malloc(cells * sizeof(int));
	for (size_t i = 0; i < cells; i++)
		p.box[i] = -1;
	for (int i = 0; i < layout->lines; i++)
		draw_line(&p, &layout->line[i]);
	for (int i = 0; i < layout->boxes; i++) {
		const struct layout_box *box = &layout->box[i];

		assert_int_equal(box->width, strlen(box->label));
		for (int c = 0; c < box->width; c++) {
			int at = box->row * p.columns + box->column + c;
			assert_int_equal(p.box[at], -1);
			p.box[at] = i;
			p.text[at] = box->label[c];
		}
	}
	return p;
}

static void free_picture(struct picture *picture)
{
	free(picture->bits);
	free(picture->text);
	free(picture->box);
}

/* The picture as lines of text, each after a "|". */
static char *render(const struct picture *p)
{
	static const char glyph[] = " |||-+++-+++-+++";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (int row = 0; row < p->rows; row++) {
		char line[512] = "";
		int end = 0;

		for (int c = 0; c < p->columns; c++) {
			int at = row * p->columns + c;
			line[c] = p->text[at] ? p->text[at]
					      : glyph[p->bits[at] & 15];
			if (line[c] != ' ')
				end = c + 1;
		}
		fprintf(out, "|%.*s\n", end, line);
	}
	fclose(out);
	return text;
}

static const bool nothing[RULES_OBJECTS];

static void looks_like(const struct graph *graph, int columns,
		       const bool expanded[RULES_OBJECTS],
		       unsigned long ghosts_from, const char *want)
{
	struct layout layout;

	assert_int_equal(
		layout_graph(&layout, graph, 8, columns, expanded, ghosts_from),
		0);
	struct picture picture = draw(&layout);
	char *text = render(&picture);
	if (strcmp(text, want))
		fail_msg("\n%s is not\n%s", text, want);
	free(text);
	free_picture(&picture);
	layout_free(&layout);
}

/* A graph from one letter per call, in order; see each test. */
static struct graph *new_graph(void)
{
	feed_seq = 0;
	return graph_new();
}

#define QP_ARGS "\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\""

static void an_empty_graph_has_no_rows(void **state)
{
	struct graph *graph = new_graph();

	(void)state;
	looks_like(graph, 45, nothing, 1, "");
	graph_free(graph);
}

/* The typical lesson fits 45 columns and 8 rows, at each of its steps. */
static void the_lesson_grows(void **state)
{
	struct graph *graph = new_graph();

	(void)state;
	FEED_CTX(graph, "ctx0");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n");
	FEED_PD(graph, "pd0", "ctx0");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0]\n");
	FEED_MR(graph, "mr0", "pd0");
	FEED_CQ(graph, "cq0", "ctx0");
	feed_enter(graph, "ibv_create_qp", QP_ARGS);
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !1]          |\n"
		   "|  +----+          +--------------------+\n"
		   "|[mr0]  |                             [cq0]\n"
		   "|       +-----------+ +-----------------+\n"
		   "|                  (qp? +)\n");
	feed_ret(graph, "ibv_create_qp", QP_ARGS, "qp0", 0,
		 "\"state\":\"IBV_QPS_RESET\"");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !2]          |\n"
		   "|  +----+          +--------------------+\n"
		   "|[mr0]  |                             [cq0 !2]\n"
		   "|       +-----------+     +-------------+\n"
		   "|                  (qp0 RESET)\n");
	FEED_DESTROY(graph, "ibv_destroy_qp", "qp", "qp0");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !1]          |\n"
		   "|  +----+          +--------------------+\n"
		   "|[mr0]  |                             [cq0]\n"
		   "|       +-----------+     +-------------+\n"
		   "|                  (qp0 RESET x)\n");
	looks_like(graph, 45, nothing, feed_seq + 1,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !1]          |\n"
		   "|  |               +--------------------+\n"
		   "|[mr0]                                [cq0]\n");
	graph_free(graph);
}

/* Crossing lines leave a gap: what meets is a corner or a tee. */
static void lines_that_cross(void **state)
{
	struct graph *graph = new_graph();

	(void)state;
	FEED_CTX(graph, "ctx0");
	FEED_PD(graph, "pd0", "ctx0");
	FEED_PD(graph, "pd1", "ctx0");
	FEED_CHANNEL(graph, "chan0", "ctx0");
	FEED_CQ(graph, "cq0", "ctx0");
	feed_make(graph, "ibv_create_cq", "cq1",
		  "\"context\":\"ctx0\",\"channel\":\"chan0\"");
	FEED_QP(graph, "qp0", "pd0", "cq0", "cq1");
	FEED_QP(graph, "qp1", "pd1", "cq1", "cq1");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------+-----++------------------+\n"
		   "|[pd0 !1]  [pd1 !1] |               [chan0 !1]\n"
		   "|  |         |      +--------+---------|-+\n"
		   "|  |         |               | +-------+ |\n"
		   "|  |         |              [cq1 !3]  [cq0 !1]\n"
		   "|  +---------|------+         |         |\n"
		   "|            |      |+--------+----+    |\n"
		   "|            |      ||+------------|----+\n"
		   "|            +------|||----------+ |\n"
		   "|                  (qp0)        (qp1)\n");
	graph_free(graph);
}

static void destroyed_ones_leave_a_gap(void **state)
{
	struct graph *graph = new_graph();

	(void)state;
	FEED_CTX(graph, "ctx0");
	FEED_PD(graph, "pd0", "ctx0");
	FEED_MR(graph, "mr0", "pd0");
	FEED_MR(graph, "mr1", "pd0");
	FEED_MR(graph, "mr2", "pd0");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr1");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !2]\n"
		   "|  +--------+--------+\n"
		   "|[mr0]    [mr1 x]  [mr2]\n");
	looks_like(graph, 45, nothing, feed_seq + 1,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !2]\n"
		   "|  +-----------------+\n"
		   "|[mr0]             [mr2]\n");
	FEED_MR(graph, "mr3", "pd0");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !3]\n"
		   "|  +--------+--------+\n"
		   "|[mr0]    [mr3]    [mr2]\n");
	feed_call(graph, "ibv_reg_mr", "\"pd\":\"pd0\"", "NULL", 22, "");
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !3]\n"
		   "|  +--------+--------+--------+\n"
		   "|[mr0]    [mr3]    [mr2]    [mr? E]\n");
	feed(graph, "{\"ev\":\"bye\"}");
	looks_like(graph, 45, nothing, feed_seq + 1,
		   "|               [ctx0 soft0 L]\n"
		   "|  +---------------+\n"
		   "|[pd0 L]\n"
		   "|  +--------+--------+\n"
		   "|[mr0 L]  [mr3 L]  [mr2 L]\n");
	graph_free(graph);
}

static void many_become_one(void **state)
{
	bool expanded[RULES_OBJECTS] = { [RULES_MR] = true };
	struct graph *graph = new_graph();
	char id[16];

	(void)state;
	FEED_CTX(graph, "ctx0");
	FEED_PD(graph, "pd0", "ctx0");
	FEED_CQ(graph, "cq0", "ctx0");
	for (int i = 0; i < 12; i++) {
		snprintf(id, sizeof(id), "mr%d", i);
		feed_make(graph, "ibv_reg_mr", id, "\"pd\":\"pd0\"");
	}
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "qp%d", i);
		feed_call(graph, "ibv_create_qp", QP_ARGS, id, 0,
			  "\"state\":\"IBV_QPS_RESET\"");
	}
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !32]         |\n"
		   "|  +-------+       +-------------------+\n"
		   "|[mr x12]  |                         [cq0 !40]\n"
		   "|          +--------+        +---------+\n"
		   "|                  (qp x20 RESET)\n");
	looks_like(graph, 45, expanded, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|  +---------------+\n"
		   "|[pd0 !32]         |\n"
		   "|  |               +-------------------+\n"
		   "|  +----+---+--------+--------+        |\n"
		   "|[mr0]  | [mr1]    [mr2]    [mr3]    [cq0 !40]\n"
		   "|       |                 +------------+\n"
		   "|  +----++--+--------+----|---+------+\n"
		   "|[mr4]   |[mr5]    [mr6]  | [mr7]    [mr8]\n"
		   "|  +----++---+---------+  +-+\n"
		   "|[mr9]  | [mr10]    [mr11]  |\n"
		   "|       +-----------+       |\n"
		   "|                  (qp x20 RESET)\n");
	graph_free(graph);
}

/* --- random graphs ------------------------------------------------------ */

static unsigned int seed;

static int roll(int sides)
{
	seed = seed * 1103515245u + 12345u;
	return (int)(seed >> 16) % sides;
}

static struct graph *random_graph(int calls)
{
	static const char *const make[] = {
		[RULES_CONTEXT] = "ibv_open_device",
		[RULES_PD] = "ibv_alloc_pd",
		[RULES_CHANNEL] = "ibv_create_comp_channel",
		[RULES_MR] = "ibv_reg_mr",
		[RULES_CQ] = "ibv_create_cq",
		[RULES_SRQ] = "ibv_create_srq",
		[RULES_AH] = "ibv_create_ah",
		[RULES_MW] = "ibv_alloc_mw",
		[RULES_QP] = "ibv_create_qp",
	};
	struct graph *graph = new_graph();
	int made[RULES_OBJECTS] = { 0 };

	for (int i = 0; i < calls; i++) {
		int type = i ? roll(RULES_OBJECTS) : RULES_CONTEXT;
		char args[256] = "\"x\":1", id[16];
		size_t used = strlen(args);

		if (type == RULES_CONTEXT && i && roll(4))
			type = RULES_PD;
		for (int k = 0; k < rules_edges_count; k++) {
			const struct rules_edge *edge = &rules_edges[k];
			int uses = edge->parent == RULES_CQ ? 2 : 1;

			if ((int)edge->child != type || !made[edge->parent])
				continue;
			while (uses-- && roll(8))
				used += (size_t)snprintf(
					args + used, sizeof(args) - used,
					",\"p%d%d\":\"%s%d\"", k, uses,
					rules_objects[edge->parent].prefix,
					roll(made[edge->parent]));
		}
		snprintf(id, sizeof(id), "%s%d", rules_objects[type].prefix,
			 made[type]++);
		feed_call(graph, make[type], args, id, 0,
			  type == RULES_QP ? "\"state\":\"IBV_QPS_RTS\"" : "");
	}
	return graph;
}

static unsigned char bits_at(const struct picture *p, int row, int column)
{
	if (row < 0 || row >= p->rows || column < 0 || column >= p->columns)
		return 0;
	return p->bits[row * p->columns + column];
}

/*
 * As a reader's eye: from the end of a line over lines that go straight down
 * to where it goes on; -1 when it does not.
 */
static int over_gap(const struct picture *p, int row, int column, int step)
{
	int toward = step > 0 ? LEFT : RIGHT, onward = step > 0 ? RIGHT : LEFT;

	for (int c = column + step; c >= 0 && c < p->columns; c += step) {
		unsigned char bits = bits_at(p, row, c);

		if (bits != (UP | DOWN))
			return (bits & onward) && !(bits & toward) ? c : -1;
	}
	return -1;
}

/* Marks the boxes that lines lead to from this cell, entered going `way`. */
static void follow(const struct picture *p, unsigned char *seen, int row,
		   int column, int way, bool *reached)
{
	static const int ways[] = { UP, DOWN, LEFT, RIGHT };
	unsigned char bits = bits_at(p, row, column);
	int at = row * p->columns + column;

	if (row < 0 || row >= p->rows || column < 0 || column >= p->columns)
		return;
	if (p->box[at] >= 0) {
		reached[p->box[at]] = true;
		return;
	}
	if (seen[at] & way)
		return;
	seen[at] |= way;
	for (int i = 0; i < 4; i++) {
		int down = ways[i] == UP ? -1 : ways[i] == DOWN;
		int right = ways[i] == LEFT ? -1 : ways[i] == RIGHT;

		/* Four arms are a crossing: straight on. */
		if (bits == (UP | DOWN | LEFT | RIGHT) && ways[i] != way)
			continue;
		if (bits & ways[i]) {
			follow(p, seen, row + down, column + right, ways[i],
			       reached);
		} else if (right && (bits & (LEFT | RIGHT))) {
			int c = over_gap(p, row, column, right);
			if (c >= 0)
				follow(p, seen, row, c, ways[i], reached);
		}
	}
}

/* The picture's lines are the graph's references, box by box. */
static void check_lines(const struct graph *graph, const struct layout *layout)
{
	struct picture p = draw(layout);
	size_t boxes = (size_t)layout->boxes;
	bool *reached = calloc(boxes + 1, 1), *wanted = calloc(boxes + 1, 1);
	unsigned char *seen = calloc((size_t)(p.rows * p.columns) + 1, 1);

	for (int b = 0; b < layout->boxes; b++) {
		const struct layout_box *box = &layout->box[b];

		memset(reached, 0, boxes);
		memset(wanted, 0, boxes);
		memset(seen, 0, (size_t)(p.rows * p.columns));
		for (uint32_t i = 0; i < graph->nodes; i++) {
			const struct graph_node *node = &graph->node[i];
			for (int k = 0; k < node->parents; k++)
				if (layout->box_of[node->parent[k]] ==
				    (uint32_t)b)
					wanted[layout->box_of[i]] = true;
		}
		wanted[b] = false;
		for (int c = box->column; c < box->column + box->width; c++)
			if (bits_at(&p, box->row + 1, c) & UP)
				follow(&p, seen, box->row + 1, c, DOWN,
				       reached);
		reached[b] = false;
		for (int i = 0; i < layout->boxes; i++) {
			if (wanted[i] == reached[i])
				continue;
			char *text = render(&p);
			fail_msg("seed %u: %s %s %s\n%s", seed, box->label,
				 wanted[i] ? "does not lead to" : "leads to",
				 layout->box[i].label, text);
		}
	}
	free(reached);
	free(wanted);
	free(seen);
	free_picture(&p);
}

static void random_pictures_are_true(void **state)
{
	int drawn = 0;

	(void)state;
	for (int round = 0; round < 400; round++) {
		seed = (unsigned int)round;
		struct graph *graph = random_graph(3 + roll(24));
		struct layout layout;
		int columns = 40 + roll(60);

		assert_int_equal(
			layout_graph(&layout, graph, 8, columns, nothing, 1),
			0);
		assert_true(layout.columns <= columns);
		seed = (unsigned int)round;
		if (!layout.unrouted) {
			check_lines(graph, &layout);
			drawn++;
		}
		layout_free(&layout);
		graph_free(graph);
	}
	assert_true(drawn > 390);
}

/* Whatever the size, nothing overlaps (draw() checks) and nothing crashes. */
static void any_size_will_do(void **state)
{
	(void)state;
	seed = 7;
	struct graph *graph = random_graph(60);
	for (int columns = -1; columns < 200; columns += 1 + columns / 20) {
		struct layout layout;
		assert_int_equal(
			layout_graph(&layout, graph, 0, columns, NULL, 1), 0);
		struct picture picture = draw(&layout);
		free_picture(&picture);
		layout_free(&layout);
	}
	graph_free(graph);
}

/* Boxes keep their places while objects come and go. */
static void nothing_jumps(void **state)
{
	struct graph *graph = new_graph();
	struct layout before, after;

	(void)state;
	FEED_CTX(graph, "ctx0");
	FEED_PD(graph, "pd0", "ctx0");
	FEED_PD(graph, "pd1", "ctx0");
	FEED_CQ(graph, "cq0", "ctx0");
	FEED_CQ(graph, "cq1", "ctx0");
	FEED_MR(graph, "mr0", "pd0");
	FEED_MR(graph, "mr1", "pd1");
	FEED_QP(graph, "qp0", "pd0", "cq0", "cq0");
	FEED_QP(graph, "qp1", "pd1", "cq1", "cq1");
	layout_graph(&before, graph, 8, 60, nothing, feed_seq);
	FEED_DESTROY(graph, "ibv_destroy_qp", "qp", "qp0");
	FEED_DESTROY(graph, "ibv_destroy_cq", "cq", "cq0");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr0");
	FEED_DESTROY(graph, "ibv_dealloc_pd", "pd", "pd0");
	layout_graph(&after, graph, 8, 60, nothing, feed_seq + 1);
	int kept = 0;
	for (int i = 0; i < before.boxes; i++) {
		uint32_t box = after.box_of[before.box[i].node];
		if (box == UINT32_MAX)
			continue;
		kept++;
		assert_int_equal(after.box[box].column, before.box[i].column);
	}
	assert_int_equal(kept, 5);
	layout_free(&before);
	layout_free(&after);
	graph_free(graph);
}

static void a_hundred_thousand_are_a_few_boxes(void **state)
{
	struct graph *graph = new_graph();
	bool expanded[RULES_OBJECTS] = { [RULES_MR] = true };
	struct layout layout;
	char id[16], args[64];

	(void)state;
	FEED_CTX(graph, "ctx0");
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "pd%d", i);
		feed_make(graph, "ibv_alloc_pd", id, "\"context\":\"ctx0\"");
	}
	for (int i = 0; i < 99000; i++) {
		snprintf(id, sizeof(id), "mr%d", i);
		snprintf(args, sizeof(args), "\"pd\":\"pd%d\"", i % 1000);
		feed_make(graph, "ibv_reg_mr", id, args);
	}
	looks_like(graph, 45, nothing, feed_seq,
		   "|               [ctx0 soft0]\n"
		   "|     +------------+\n"
		   "|[pd x1000 !99000]\n"
		   "|     |\n"
		   "|[mr x99000]\n");
	assert_int_equal(layout_graph(&layout, graph, 8, 45, expanded, 1), 0);
	assert_int_equal(layout.boxes, 2 + 512 + 1);
	layout_free(&layout);
	graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_graph_has_no_rows),
		cmocka_unit_test(the_lesson_grows),
		cmocka_unit_test(lines_that_cross),
		cmocka_unit_test(destroyed_ones_leave_a_gap),
		cmocka_unit_test(many_become_one),
		cmocka_unit_test(random_pictures_are_true),
		cmocka_unit_test(any_size_will_do),
		cmocka_unit_test(nothing_jumps),
		cmocka_unit_test(a_hundred_thousand_are_a_few_boxes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
