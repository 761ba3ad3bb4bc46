/* SPDX-License-Identifier: MIT */
/* The fold: what each kind of event does to objects, edges, states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/trace_feed.h"

static int setup(void **state)
{
	feed_seq = 0;
	*state = graph_new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	graph_free(*state);
	return 0;
}

static const struct graph_node *at(const struct graph *graph, const char *id)
{
	const struct graph_node *node = graph_find(graph, id);

	if (!node)
		fail_msg("no %s", id);
	return node;
}

static const char *attr(const struct graph *graph, const char *id,
			const char *name)
{
	const struct graph_node *node = at(graph, id);

	for (int i = 0; i < node->attrs; i++) {
		if (!strcmp(node->attr[i].name, name))
			return node->attr[i].value;
	}
	return NULL;
}

static void holders_are(const struct graph *graph, const char *id, int most,
			const char *text)
{
	char *holders = graph_holders(graph, at(graph, id), most);

	assert_string_equal(holders, text);
	free(holders);
}

static void mark_is(const struct graph *graph, const char *id, const char *text)
{
	char mark[16];

	graph_mark(at(graph, id), mark, sizeof(mark));
	assert_string_equal(mark, text);
}

/* The lesson's five objects. */
static void five(struct graph *graph)
{
	assert_int_equal(FEED_CTX(graph, "ctx0"), 0);
	assert_int_equal(FEED_PD(graph, "pd0", "ctx0"), 0);
	assert_int_equal(FEED_MR(graph, "mr0", "pd0"), 0);
	assert_int_equal(FEED_CQ(graph, "cq0", "ctx0"), 0);
	assert_int_equal(FEED_QP(graph, "qp0", "pd0", "cq0", "cq0"), 0);
}

static void creation_has_three_ends(void **state)
{
	struct graph *graph = *state;

	FEED_CTX(graph, "ctx0");
	feed_enter(graph, "ibv_alloc_pd", "\"context\":\"ctx0\"");
	assert_int_equal(graph->nodes, 2);
	assert_int_equal(graph->node[1].state, GRAPH_CREATING);
	assert_string_equal(graph->node[1].id, "pd?");
	assert_int_equal(graph->node[1].parents, 1);
	assert_int_equal(at(graph, "ctx0")->children, 0);
	assert_null(graph_find(graph, "pd0"));

	feed_ret(graph, "ibv_alloc_pd", "\"context\":\"ctx0\"", "pd0", 0,
		 "\"handle\":3");
	assert_int_equal(graph->nodes, 2);
	assert_int_equal(at(graph, "pd0")->state, GRAPH_LIVE);
	assert_int_equal(at(graph, "pd0")->born, 2);
	assert_string_equal(at(graph, "pd0")->file, "src/a.c");
	assert_int_equal(at(graph, "pd0")->line, 2);
	assert_string_equal(attr(graph, "pd0", "handle"), "3");
	assert_int_equal(graph->live[RULES_PD], 1);

	feed_call(graph, "ibv_alloc_pd", "\"context\":\"ctx0\"", "NULL", ENOMEM,
		  "");
	assert_int_equal(graph->node[2].state, GRAPH_FAILED);
	assert_int_equal(graph->node[2].died, 3);
	assert_string_equal(graph->node[2].attr[graph->node[2].attrs - 1].value,
			    "ENOMEM");
	assert_int_equal(graph->live[RULES_PD], 1);
	assert_int_equal(at(graph, "ctx0")->children, 1);
}

/* In run mode an answer may come without its question. */
static void answers_alone_create_too(void **state)
{
	struct graph *graph = *state;

	feed_seq = 9;
	feed_ret(graph, "ibv_open_device", "", "ctx0", 0, "");
	assert_int_equal(at(graph, "ctx0")->state, GRAPH_LIVE);
	assert_int_equal(at(graph, "ctx0")->born, 9);
}

static void edges_and_counts(void **state)
{
	struct graph *graph = *state;

	five(graph);
	mark_is(graph, "ctx0", "");
	mark_is(graph, "pd0", "!2");
	mark_is(graph, "mr0", "");
	mark_is(graph, "cq0", "!2");
	mark_is(graph, "qp0", "");
	assert_int_equal(at(graph, "qp0")->parents, 2);
	assert_int_equal(at(graph, "qp0")->refs[1], 2);
	holders_are(graph, "pd0", 5, "mr0, qp0");
	holders_are(graph, "pd0", 1, "mr0, ...");
	holders_are(graph, "cq0", 5, "qp0");
	holders_are(graph, "qp0", 5, "");
	assert_int_equal(graph_destroy_answer(graph, at(graph, "pd0")), EBUSY);
	assert_int_equal(graph_destroy_answer(graph, at(graph, "cq0")), EBUSY);
	assert_int_equal(graph_destroy_answer(graph, at(graph, "qp0")), 0);
}

/* A context has children, but nothing ever refuses to close it. */
static void a_context_is_never_busy(void **state)
{
	struct graph *graph = *state;

	five(graph);
	assert_int_equal(at(graph, "ctx0")->children, 2);
	assert_false(graph_busy(at(graph, "ctx0")));
	assert_int_equal(graph_destroy_answer(graph, at(graph, "ctx0")), 0);
	holders_are(graph, "ctx0", 5, "pd0, cq0");
}

static void refused_destroys_change_nothing(void **state)
{
	struct graph *graph = *state;

	five(graph);
	feed_call(graph, "ibv_dealloc_pd", "\"pd\":\"pd0\"", "16", EBUSY, "");
	mark_is(graph, "pd0", "!2");
	FEED_DESTROY(graph, "ibv_destroy_qp", "qp", "qp0");
	mark_is(graph, "qp0", "x");
	assert_int_equal(at(graph, "qp0")->died, feed_seq);
	mark_is(graph, "cq0", "");
	mark_is(graph, "pd0", "!1");
	holders_are(graph, "pd0", 5, "mr0");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr0");
	assert_int_equal(graph_destroy_answer(graph, at(graph, "pd0")), 0);
	FEED_DESTROY(graph, "ibv_dealloc_pd", "pd", "pd0");
	mark_is(graph, "pd0", "x");
	/* A second destroy that claims to be done changes nothing either. */
	unsigned long died = at(graph, "pd0")->died;
	FEED_DESTROY(graph, "ibv_dealloc_pd", "pd", "pd0");
	assert_int_equal(at(graph, "pd0")->died, died);
	assert_int_equal(graph->live[RULES_PD], 0);
}

/* The middle of a list of children goes, then its ends. */
static void children_leave_in_any_order(void **state)
{
	struct graph *graph = *state;

	FEED_CTX(graph, "ctx0");
	FEED_PD(graph, "pd0", "ctx0");
	FEED_MR(graph, "mr0", "pd0");
	FEED_MR(graph, "mr1", "pd0");
	FEED_MR(graph, "mr2", "pd0");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr1");
	holders_are(graph, "pd0", 5, "mr0, mr2");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr2");
	holders_are(graph, "pd0", 5, "mr0");
	FEED_MR(graph, "mr3", "pd0");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr0");
	holders_are(graph, "pd0", 5, "mr3");
}

static void attributes_are_the_newest(void **state)
{
	struct graph *graph = *state;

	FEED_CTX(graph, "ctx0");
	assert_string_equal(attr(graph, "ctx0", "device"), "soft0");
	feed_call(graph, "ibv_create_cq", "\"context\":\"ctx0\",\"cqe\":10",
		  "cq0", 0, "\"cqe\":15");
	assert_string_equal(attr(graph, "cq0", "cqe"), "15");
	FEED_PD(graph, "pd0", "ctx0");
	feed_call(graph, "ibv_create_qp",
		  "\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\","
		  "\"srq\":null,\"cap\":{\"max_send_wr\":10}",
		  "qp0", 0,
		  "\"state\":\"IBV_QPS_RESET\",\"cap\":{\"max_send_wr\":15}");
	assert_string_equal(attr(graph, "qp0", "cap.max_send_wr"), "15");
	assert_string_equal(attr(graph, "qp0", "state"), "RESET");
	assert_string_equal(attr(graph, "qp0", "send_cq"), "cq0");
	assert_null(attr(graph, "qp0", "srq"));

	feed_call(graph, "ibv_modify_qp",
		  "\"qp\":\"qp0\",\"qp_state\":\"IBV_QPS_INIT\",\"port_num\":1,"
		  "\"attr_mask\":\"IBV_QP_STATE|IBV_QP_PORT\"",
		  "0", 0, "");
	assert_string_equal(attr(graph, "qp0", "state"), "INIT");
	assert_string_equal(attr(graph, "qp0", "port_num"), "1");
	assert_null(attr(graph, "qp0", "attr_mask"));
	/* Refused: as it was. */
	feed_call(graph, "ibv_modify_qp",
		  "\"qp\":\"qp0\",\"qp_state\":\"IBV_QPS_RTS\",\"port_num\":2",
		  "22", EINVAL, "");
	assert_string_equal(attr(graph, "qp0", "state"), "INIT");
	assert_string_equal(attr(graph, "qp0", "port_num"), "1");
	feed_call(graph, "ibv_query_qp", "\"qp\":\"qp0\",\"attr_mask\":\"x\"",
		  "0", 0, "\"qp_state\":\"IBV_QPS_ERR\",\"sq_psn\":7");
	assert_string_equal(attr(graph, "qp0", "state"), "ERR");
	assert_string_equal(attr(graph, "qp0", "sq_psn"), "7");

	feed_call(graph, "ibv_query_port",
		  "\"context\":\"ctx0\",\"port_num\":1", "0", 0,
		  "\"state\":\"IBV_PORT_ACTIVE\"");
	assert_string_equal(attr(graph, "ctx0", "port1.state"),
			    "IBV_PORT_ACTIVE");
	feed_call(graph, "ibv_query_gid",
		  "\"context\":\"ctx0\",\"port_num\":1,\"index\":2", "0", 0,
		  "\"gid\":\"fe80::1\"");
	assert_string_equal(attr(graph, "ctx0", "port1.gid[2]"), "fe80::1");
	/* What a poll hands back is not a property of the CQ. */
	int before = at(graph, "cq0")->attrs;
	feed_call(graph, "ibv_poll_cq", "\"cq\":\"cq0\",\"num_entries\":1", "1",
		  0, "\"wc\":[{\"wr_id\":1}],\"x\":1");
	assert_int_equal(at(graph, "cq0")->attrs, before);
}

static void close_leaks_what_lives(void **state)
{
	struct graph *graph = *state;

	five(graph);
	FEED_CTX(graph, "ctx1");
	FEED_PD(graph, "pd1", "ctx1");
	FEED_MR(graph, "mr1", "pd0");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr1");
	FEED_DESTROY(graph, "ibv_close_device", "context", "ctx0");
	mark_is(graph, "ctx0", "x");
	mark_is(graph, "pd0", "L");
	mark_is(graph, "mr0", "L");
	mark_is(graph, "cq0", "L");
	mark_is(graph, "qp0", "L");
	mark_is(graph, "mr1", "x");
	mark_is(graph, "pd1", "");
	assert_int_equal(graph->live[RULES_QP], 0);
	assert_int_equal(graph->live[RULES_PD], 1);
	feed(graph, "{\"ev\":\"bye\"}");
	mark_is(graph, "pd1", "L");
	mark_is(graph, "ctx1", "L");
	assert_int_equal(at(graph, "pd1")->died, feed_seq);
	assert_int_equal(graph->live[RULES_PD], 0);
}

static void windows_and_moved_regions(void **state)
{
	struct graph *graph = *state;

	five(graph);
	FEED_MR(graph, "mr1", "pd0");
	feed_make(graph, "ibv_alloc_mw", "mw0", "\"pd\":\"pd0\"");
	mark_is(graph, "pd0", "!4");
	feed_call(graph, "ibv_bind_mw",
		  "\"qp\":\"qp0\",\"mw\":\"mw0\",\"bind_info\":{\"mr\":\"mr0\","
		  "\"length\":64}",
		  "0", 0, "");
	mark_is(graph, "mr0", "!1");
	assert_int_not_equal(graph_destroy_answer(graph, at(graph, "mr0")), 0);
	feed_call(graph, "ibv_bind_mw",
		  "\"qp\":\"qp0\",\"mw\":\"mw0\",\"bind_info\":{\"mr\":\"mr1\","
		  "\"length\":64}",
		  "0", 0, "");
	mark_is(graph, "mr0", "");
	mark_is(graph, "mr1", "!1");
	mark_is(graph, "pd0", "!4");
	feed_call(graph, "ibv_bind_mw",
		  "\"qp\":\"qp0\",\"mw\":\"mw0\",\"bind_info\":{\"mr\":\"mr1\","
		  "\"length\":0}",
		  "0", 0, "");
	mark_is(graph, "mr1", "");

	FEED_PD(graph, "pd1", "ctx0");
	feed_call(graph, "ibv_rereg_mr",
		  "\"mr\":\"mr1\",\"flags\":\"IBV_REREG_MR_CHANGE_PD\",\"pd\":"
		  "\"pd1\"",
		  "0", 0, "");
	mark_is(graph, "pd1", "!1");
	mark_is(graph, "pd0", "!3");
}

static void strangers_are_live(void **state)
{
	struct graph *graph = *state;

	FEED_QP(graph, "qp0", "pd7", "cq1", "cq2");
	assert_int_equal(at(graph, "pd7")->state, GRAPH_LIVE);
	assert_int_equal(at(graph, "pd7")->born, 0);
	assert_null(at(graph, "pd7")->file);
	mark_is(graph, "pd7", "!1");
	mark_is(graph, "cq2", "!1");
	FEED_DESTROY(graph, "ibv_destroy_srq", "srq", "srq4");
	mark_is(graph, "srq4", "x");
}

static void nonsense_is_ignored(void **state)
{
	struct graph *graph = *state;

	five(graph);
	uint32_t nodes = graph->nodes;
	assert_int_equal(FEED_PD(graph, "pd0", "ctx0"), EPROTO);
	assert_int_equal(FEED_PD(graph, "cq9", "ctx0"), EPROTO);
	assert_int_equal(
		FEED_PD(graph, "pd11111111111111111111111111111", "ctx0"),
		EPROTO);
	assert_int_equal(graph->live[RULES_PD], 1);
	/* The enters stand; their answers could not be. */
	assert_int_equal(graph->nodes, nodes + 3);
	feed_seq = 1;
	assert_int_equal(feed_ret(graph, "ibv_alloc_pd", "", "pd5", 0, ""),
			 EPROTO);
	assert_null(graph_find(graph, "pd5"));
	assert_int_equal(feed_enter(graph, "ibv_alloc_pd", ""), EPROTO);
	assert_int_equal(FEED_DESTROY(graph, "ibv_dealloc_pd", "pd", "x"), 0);
	mark_is(graph, "pd0", "!2");
}

/* What `export` writes. */
static char *exported(int (*export)(const struct graph *, FILE *),
		      const struct graph *graph)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(export(graph, out), 0);
	fclose(out);
	return text;
}

static void exports_are_whole(void **state)
{
	struct graph *graph = *state;

	five(graph);
	feed_call(graph, "ibv_modify_qp",
		  "\"qp\":\"qp0\",\"qp_state\":\"IBV_QPS_INIT\"", "0", 0, "");
	FEED_DESTROY(graph, "ibv_dereg_mr", "mr", "mr0");
	feed_enter(graph, "ibv_alloc_pd", "\"context\":\"ctx0\"");
	char *text = exported(graph_tree, graph);
	assert_string_equal(text, "ctx0 soft0\n"
				  "  pd0 !1\n"
				  "    mr0 x\n"
				  "    qp0 INIT  uses cq0 x2\n"
				  "  cq0 !2\n"
				  "  pd? +\n");
	free(text);
	text = exported(graph_dot, graph);
	assert_non_null(
		strstr(text, "n4 [label=\"qp0 INIT\", shape=ellipse];"));
	assert_non_null(strstr(text, "n3 -> n4 [label=\"x2\"];"));
	assert_non_null(strstr(text, "n0 -> n1 [style=dashed];"));
	assert_non_null(strstr(text, "n1 [label=\"pd0\\nbusy: 1\"];"));
	free(text);
	text = exported(graph_json, graph);
	assert_non_null(strstr(
		text,
		"{\"id\":\"qp0\",\"type\":\"qp\",\"state\":\"live\","
		"\"parents\":[{\"id\":\"pd0\",\"refs\":1},{\"id\":\"cq0\","
		"\"refs\":2}],\"dependents\":0,\"children\":0,\"at\":{"
		"\"file\":\"src/a.c\",\"line\":5},\"born\":5,\"died\":0,"));
	free(text);

	FILE *full = fopen("/dev/full", "w");
	assert_int_equal(graph_dot(graph, full), -1);
	assert_int_equal(errno, ENOSPC);
	fclose(full);
}

static uint32_t report_is(const struct graph *graph, const char *want)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	uint32_t leaked = graph_report(graph, out);

	fclose(out);
	assert_string_equal(text, want);
	free(text);
	return leaked;
}

static void the_report_names_leaks_and_refusals(void **state)
{
	struct graph *graph = *state;

	five(graph);
	feed_call(graph, "ibv_dealloc_pd", "\"pd\":\"pd0\"", "16", EBUSY, "");
	feed_call(graph, "ibv_destroy_cq", "\"cq\":\"cq0\"", "16", EBUSY, "");
	FEED_DESTROY(graph, "ibv_destroy_qp", "qp", "qp0");
	FEED_DESTROY(graph, "ibv_destroy_cq", "cq", "cq0");
	assert_int_equal(
		report_is(graph,
			  "refused: ibv_dealloc_pd(pd0) = EBUSY at a.c:6, held "
			  "by mr0, qp0; still live\n"
			  "refused: ibv_destroy_cq(cq0) = EBUSY at a.c:7, held "
			  "by qp0; later destroyed\n"),
		0);
	FEED_DESTROY(graph, "ibv_close_device", "context", "ctx0");
	assert_int_equal(
		report_is(graph,
			  "refused: ibv_dealloc_pd(pd0) = EBUSY at a.c:6, held "
			  "by mr0, qp0; leaked\n"
			  "refused: ibv_destroy_cq(cq0) = EBUSY at a.c:7, held "
			  "by qp0; later destroyed\n"
			  "leaked: pd0, protection domain, made at a.c:2\n"
			  "leaked: mr0, memory region, made at a.c:3\n"),
		2);
}

static void all_is_well_says_nothing(void **state)
{
	struct graph *graph = *state;

	FEED_CTX(graph, "ctx0");
	FEED_DESTROY(graph, "ibv_close_device", "context", "ctx0");
	feed(graph, "{\"ev\":\"bye\"}");
	assert_int_equal(report_is(graph, ""), 0);
}

/*
 * Many of everything: a model that is slower than linear would not end
 * within the test's limit of time.
 */
static void a_hundred_thousand(void **state)
{
	struct graph *graph = *state;
	enum { MANY = 100000 };
	char id[24], args[64];

	FEED_CTX(graph, "ctx0");
	FEED_PD(graph, "pd0", "ctx0");
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "mr%d", i);
		assert_int_equal(feed_make(graph, "ibv_reg_mr", id,
					   "\"pd\":\"pd0\",\"length\":64"),
				 0);
	}
	assert_int_equal(graph->live[RULES_MR], MANY);
	assert_int_equal(at(graph, "pd0")->dependents, MANY);
	for (int i = MANY - 2; i >= 0; i -= 2) {
		snprintf(args, sizeof(args), "\"mr\":\"mr%d\"", i);
		feed_call(graph, "ibv_dereg_mr", args, "0", 0, "");
	}
	assert_int_equal(graph->live[RULES_MR], MANY / 2);
	holders_are(graph, "pd0", 2, "mr1, mr3, ...");
	FEED_DESTROY(graph, "ibv_close_device", "context", "ctx0");
	assert_int_equal(graph->live[RULES_MR], 0);
}

/* A failed completion says that a QP left its state, not for which. */
static void failed_completions_leave_no_state(void **state)
{
	struct graph *graph = *state;
	const char *failed = "\"wc\":[{\"wr_id\":1,\"status\":"
			     "\"IBV_WC_SUCCESS\",\"qp_num\":18},{\"wr_id\":2,"
			     "\"status\":\"IBV_WC_RNR_RETRY_EXC_ERR\","
			     "\"qp_num\":17}]";

	five(graph);
	FEED_QP(graph, "qp1", "pd0", "cq0", "cq0");
	for (int i = 0; i < 2; i++) {
		char args[64], out[64];

		snprintf(args, sizeof(args), "\"qp\":\"qp%d\"", i);
		snprintf(out, sizeof(out),
			 "\"state\":\"IBV_QPS_RTS\",\"qp_num\":%d", 17 + i);
		feed_call(graph, "ibv_query_qp", args, "0", 0, out);
	}
	feed_call(graph, "ibv_poll_cq", "\"cq\":\"cq0\"", "2", 0, failed);
	assert_string_equal(attr(graph, "qp0", "state"), "?");
	assert_string_equal(attr(graph, "qp1", "state"), "RTS");
	feed_call(graph, "ibv_modify_qp",
		  "\"qp\":\"qp0\",\"qp_state\":\"IBV_QPS_ERR\"", "0", 0, "");
	feed_call(graph, "ibv_poll_cq", "\"cq\":\"cq0\"", "2", 0, failed);
	assert_string_equal(attr(graph, "qp0", "state"), "ERR");
	/* One at a time, of an extended CQ. */
	feed_call(graph, "ibv_next_poll", "\"cq\":\"cq0\"", "0", 0,
		  "\"wc\":[{\"wr_id\":1,\"status\":"
		  "\"IBV_WC_WR_FLUSH_ERR\",\"qp_num\":18}]");
	assert_string_equal(attr(graph, "qp1", "state"), "?");
}

/* Windows of type 2 are bound by work requests, which are not seen. */
static void unseen_binds_leave_regions_unsure(void **state)
{
	struct graph *graph = *state;

	five(graph);
	assert_false(graph_unsure(graph, at(graph, "mr0")));
	feed_make(graph, "ibv_alloc_mw", "mw0",
		  "\"pd\":\"pd0\",\"type\":\"IBV_MW_TYPE_1\"");
	assert_false(graph_unsure(graph, at(graph, "mr0")));
	feed_make(graph, "ibv_alloc_mw", "mw1",
		  "\"pd\":\"pd0\",\"type\":\"IBV_MW_TYPE_2\"");
	assert_true(graph_unsure(graph, at(graph, "mr0")));
	assert_false(graph_unsure(graph, at(graph, "qp0")));
	FEED_DESTROY(graph, "ibv_dealloc_mw", "mw", "mw1");
	assert_false(graph_unsure(graph, at(graph, "mr0")));
}

/* --- back and forth ------------------------------------------------------- */

/* Everything that can be seen of a graph, in a string to free. */
static char *all_of(const struct graph *graph)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(graph_json(graph, out), 0);
	graph_report(graph, out);
	for (uint32_t i = 0; i < graph->nodes; i++) {
		const struct graph_node *node = &graph->node[i];
		char *holders = graph_holders(graph, node, 99);

		fprintf(out, "%s found %d, holders %s, died %lu", node->id,
			graph_find(graph, node->id) == node, holders,
			node->died);
		for (int k = 0; k < node->attrs; k++)
			fprintf(out, " %s=%s@%lu", node->attr[k].name,
				node->attr[k].value, node->attr[k].seq);
		fprintf(out, " refs %d %d\n", node->refs[0], node->refs[1]);
		free(holders);
	}
	for (int i = 0; i < RULES_OBJECTS; i++)
		fprintf(out, "%u ", graph->live[i]);
	fclose(out);
	return text;
}

enum { STORY_MOST = 200 };

/* A call that may be refused, and what it leaves: every kind of change. */
static int tell_story(struct graph *graph, char *after[STORY_MOST])
{
	int told = 0;

	after[told++] = all_of(graph);
#define TELL(call)                              \
	do {                                    \
		(void)(call);                   \
		after[told++] = all_of(graph);  \
		assert_true(told < STORY_MOST); \
	} while (0)
#define TELL_BOTH(call, args, ret, err, out)                      \
	do {                                                      \
		TELL(feed_enter(graph, call, args));              \
		TELL(feed_ret(graph, call, args, ret, err, out)); \
	} while (0)
	TELL_BOTH("ibv_open_device", "", "ctx0", 0, "");
	TELL_BOTH("ibv_query_device", "\"context\":\"ctx0\"", "0", 0,
		  "\"max_qp\":9,\"fw_ver\":\"1\"");
	for (int i = 0; i < 2; i++)
		TELL_BOTH("ibv_alloc_pd", "\"context\":\"ctx0\"",
			  i ? "pd1" : "pd0", 0, "\"handle\":3");
	for (int i = 0; i < 9; i++) {
		char id[8];

		snprintf(id, sizeof(id), "mr%d", i);
		TELL_BOTH("ibv_reg_mr", "\"pd\":\"pd0\"", id, 0, "\"lkey\":1");
	}
	TELL_BOTH("ibv_reg_mr", "\"pd\":\"pd0\"", "NULL", EINVAL, "");
	TELL_BOTH("ibv_create_cq", "\"context\":\"ctx0\"", "cq0", 0, "");
	TELL_BOTH("ibv_create_qp",
		  "\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"",
		  "qp0", 0, "\"state\":\"IBV_QPS_RESET\"");
	TELL_BOTH("ibv_modify_qp",
		  "\"qp\":\"qp0\",\"qp_state\":\"IBV_QPS_INIT\"", "0", 0, "");
	for (int i = 0; i < 3; i++)
		TELL(feed_ret(graph, "ibv_dealloc_pd", "\"pd\":\"pd0\"", "16",
			      EBUSY, ""));
	TELL_BOTH("ibv_alloc_mw", "\"pd\":\"pd0\"", "mw0", 0, "");
	TELL_BOTH("ibv_bind_mw", "\"mw\":\"mw0\",\"mr\":\"mr3\"", "0", 0, "");
	TELL_BOTH("ibv_bind_mw", "\"mw\":\"mw0\",\"mr\":\"mr5\"", "0", 0, "");
	TELL_BOTH("ibv_rereg_mr",
		  "\"mr\":\"mr4\",\"flags\":\"IBV_REREG_MR_CHANGE_PD\","
		  "\"pd\":\"pd1\"",
		  "0", 0, "");
	for (int i = 8; i >= 0; i -= 3) {
		char args[24];

		snprintf(args, sizeof(args), "\"mr\":\"mr%d\"", i);
		TELL_BOTH("ibv_dereg_mr", args, "0", 0, "");
	}
	TELL(feed_ret(graph, "ibv_alloc_pd", "", "pd0", 0, "")); /* nonsense */
	TELL(feed_ret(graph, "ibv_destroy_ah", "\"ah\":\"ah7\"", "0", 0, ""));
	TELL_BOTH("ibv_open_device", "", "ctx1", 0, "");
	TELL_BOTH("ibv_close_device", "\"context\":\"ctx0\"", "0", 0, "");
	TELL_BOTH("ibv_dereg_mr", "\"mr\":\"mr4\"", "0", 0, "");
	TELL(feed(graph, "{\"ev\":\"bye\"}"));
	return told;
}

static void every_event_can_be_taken_back(void **state)
{
	struct graph *graph = *state;
	char *after[STORY_MOST];
	int told = tell_story(graph, after), at = told - 1;

	assert_false(graph_forth(graph));
	/* A long way, then a drunkard's: always the same to be seen. */
	for (int step = 0; step < 4000; step++) {
		int target = step == 0   ? 0
			     : step == 1 ? told - 1
					 : rand() % told;

		for (; at > target; at--)
			assert_true(graph_back(graph));
		for (; at < target; at++)
			assert_true(graph_forth(graph));
		char *now = all_of(graph);
		assert_string_equal(now, after[at]);
		free(now);
		if (at == 0)
			assert_false(graph_back(graph));
	}
	while (at > 0 && graph_back(graph))
		at--;
	assert_int_equal(feed(graph, "{\"ev\":\"bye\"}"), EBUSY);
	for (int i = 0; i < told; i++)
		free(after[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(creation_has_three_ends),
		TEST(answers_alone_create_too),
		TEST(edges_and_counts),
		TEST(a_context_is_never_busy),
		TEST(refused_destroys_change_nothing),
		TEST(children_leave_in_any_order),
		TEST(attributes_are_the_newest),
		TEST(close_leaks_what_lives),
		TEST(windows_and_moved_regions),
		TEST(strangers_are_live),
		TEST(nonsense_is_ignored),
		TEST(exports_are_whole),
		TEST(the_report_names_leaks_and_refusals),
		TEST(all_is_well_says_nothing),
		TEST(a_hundred_thousand),
		TEST(failed_completions_leave_no_state),
		TEST(unseen_binds_leave_regions_unsure),
		TEST(every_event_can_be_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
