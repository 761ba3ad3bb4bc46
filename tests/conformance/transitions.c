/* SPDX-License-Identifier: MIT */
/*
 * The QP state table, every row of it, made of common/rules: each pair of
 * states, each required attribute left out, each optional one given, each
 * one that does not belong. On the kernel's drivers the table that answers
 * is the kernel's own.
 */
#include "tests/conformance/conform.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rules/rules.h"

#define TYPES 3
static const enum ibv_qp_type types[TYPES] = { IBV_QPT_RC, IBV_QPT_UC,
					       IBV_QPT_UD };
/* SQE is left out: no call leads there. */
#define STARTS 6
static const enum ibv_qp_state starts[STARTS] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
	IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR,
};
#define ATTR_BITS 21 /* IBV_QP_DEST_QPN is the last */

/* A row of the table, packed into rule->arg. */
static int64_t pack(enum ibv_qp_type type, enum ibv_qp_state from,
		    enum ibv_qp_state to)
{
	return (int64_t)type << 16 | (int64_t)from << 8 | (int64_t)to;
}

struct start {
	struct world *w;
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	struct ibv_cq *cq;
	int mask;
};

/*
 * The attributes given are those that the way into `to` usually needs: what
 * is refused is then the transition, not an attribute.
 */
static int usual_mask(enum ibv_qp_type type, enum ibv_qp_state from,
		      enum ibv_qp_state to)
{
	if (rules_transition_find(type, from, to))
		return required_mask(type, from, to);
	switch (to) {
	case IBV_QPS_INIT:
		return required_mask(type, IBV_QPS_RESET, to);
	case IBV_QPS_RTR:
		return required_mask(type, IBV_QPS_INIT, to);
	case IBV_QPS_RTS:
		return required_mask(type, IBV_QPS_RTR, to);
	default:
		return IBV_QP_STATE;
	}
}

static struct start begin(const struct rule *rule)
{
	struct start s = {
		.w = open_world(),
		.type = (enum ibv_qp_type)(rule->arg >> 16),
		.from = (enum ibv_qp_state)(rule->arg >> 8 & 0xff),
		.to = (enum ibv_qp_state)(rule->arg & 0xff),
	};

	s.cq = make_cq(s.w, 4, NULL);
	s.mask = usual_mask(s.type, s.from, s.to);
	return s;
}

/* What a fresh QP in the row's first state answers to this mask. */
static int ask(const struct start *s, int mask)
{
	struct ibv_qp_init_attr init = qp_init(s->type, s->cq);
	struct ibv_qp *qp = make_qp(s->w->pd, &init);
	struct ibv_qp_attr attr = good_attr(s->w, qp);
	int err;

	bring(qp, attr, s->from);
	attr.qp_state = s->to;
	attr.cur_qp_state = s->from;
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	err = ibv_modify_qp(qp, &attr, mask);
	ibv_destroy_qp(qp);
	return err;
}

static void go(const struct rule *rule)
{
	struct start s = begin(rule);

	answer_call(ask(&s, s.mask));
}

static void go_without(const struct rule *rule)
{
	struct start s = begin(rule);

	answer_call(ask(&s, s.mask & ~(int)rule->arg2));
}

/* Each bit of `bits` beside what is required; those that got `err` or not. */
static _Noreturn void try_each(const struct start *s, int bits, bool taken)
{
	char names[512] = "";

	for (int bit = 1; bit < 1 << ATTR_BITS; bit <<= 1) {
		int err = bits & bit ? ask(s, s->mask | bit) : 0;

		if (!(bits & bit) || !err != taken)
			continue;
		snprintf(names + strlen(names), sizeof(names) - strlen(names),
			 "%s%s", names[0] ? ", " : "",
			 rules_qp_attr_bit(bit) + strlen("IBV_QP_"));
	}
	if (!names[0])
		answer(taken ? "all refused" : "all taken");
	answer("%s %s", taken ? "takes" : "refuses", names);
}

static void go_optional(const struct rule *rule)
{
	struct start s = begin(rule);

	try_each(&s, rules_transition_find(s.type, s.from, s.to)->optional,
		 false);
}

static void go_extra(const struct rule *rule)
{
	struct start s = begin(rule);
	const struct rules_transition *row =
		rules_transition_find(s.type, s.from, s.to);
	int known = ((1 << ATTR_BITS) - 1) & ~IBV_QP_STATE;

	try_each(&s, known & ~(row->required | row->optional), true);
}

/* --- the table ---------------------------------------------------------- */

#define SPEC  "IBTA 11.2.5.2"
/* ib_uverbs_modify_qp(), for every device. */
#define UC_AV "the kernel's core adds PORT to AV, which UC's row does not list"
#define SIW   "asks no table: QPs are connected by the connection manager"

static struct rule *made;
static size_t made_count;

static __attribute__((format(printf, 1, 2))) char *text(const char *format, ...)
{
	va_list args;
	char *string;

	va_start(args, format);
	if (vasprintf(&string, format, args) < 0)
		abort();
	va_end(args);
	return string;
}

static struct rule *add(void (*run)(const struct rule *), int64_t arg)
{
	struct rule *rule;

	made = reallocarray(made, made_count + 1, sizeof(*made));
	if (!made)
		abort();
	rule = &made[made_count++];
	*rule = (struct rule){
		.run = run, .arg = arg, .spec = SPEC, .siw = SIW
	};
	return rule;
}

static void add_pair(enum ibv_qp_type type, enum ibv_qp_state from,
		     enum ibv_qp_state to)
{
	bool exists = rules_transition_find(type, from, to);
	const char *of = rules_qp_type(type);
	const char *a = rules_qp_state(from), *b = rules_qp_state(to);
	struct rule *rule = add(go, pack(type, from, to));

	rule->name = text("modify_qp.%s.%s.%s", of, a, b);
	rule->want = exists ? "ok" : "EINVAL";
	rule->text = text("%s goes from %s to %s: %s", of, a, b,
			  exists ? "yes" : "no");
	rule->family = text("modify_qp.%s.*.*", of);
}

static void add_missing(const struct rules_transition *row, int bit)
{
	const char *of = rules_qp_type(row->type);
	const char *a = rules_qp_state(row->from), *b = rules_qp_state(row->to);
	const char *name = rules_qp_attr_bit(bit) + strlen("IBV_QP_");
	struct rule *rule =
		add(go_without, pack(row->type, row->from, row->to));

	rule->arg2 = bit;
	rule->name = text("modify_qp.%s.%s.%s.without.%s", of, a, b, name);
	rule->want = "EINVAL";
	rule->text = text("%s from %s to %s needs %s", of, a, b, name);
	rule->family = text("modify_qp.%s.*.*.without.*", of);
}

static void add_groups(const struct rules_transition *row)
{
	const char *of = rules_qp_type(row->type);
	const char *a = rules_qp_state(row->from), *b = rules_qp_state(row->to);
	int64_t arg = pack(row->type, row->from, row->to);
	struct rule *rule;

	if (row->optional) {
		rule = add(go_optional, arg);
		rule->name = text("modify_qp.%s.%s.%s.optional", of, a, b);
		/* No alternate path on RoCE. */
		rule->want = row->optional & IBV_QP_ALT_PATH
				     ? "refuses ALT_PATH"
				     : "all taken";
		rule->text = text("%s from %s to %s takes each optional "
				  "attribute, on RoCE all but ALT_PATH",
				  of, a, b);
		rule->family = text("modify_qp.%s.*.*.optional", of);
		if (row->type == IBV_QPT_UC && row->from == IBV_QPS_SQD &&
		    row->optional & IBV_QP_AV)
			rule->rxe = UC_AV;
	}
	rule = add(go_extra, arg);
	rule->name = text("modify_qp.%s.%s.%s.extra", of, a, b);
	rule->want = "all refused";
	rule->text = text("%s from %s to %s refuses each attribute that the "
			  "table does not list",
			  of, a, b);
	rule->family = text("modify_qp.%s.*.*.extra", of);
}

static void add_row(const struct rules_transition *row)
{
	bool to_end = row->to == IBV_QPS_RESET || row->to == IBV_QPS_ERR;

	if (row->from == IBV_QPS_SQE)
		return;
	for (int bit = 1; bit < 1 << ATTR_BITS; bit <<= 1)
		if (row->required & bit)
			add_missing(row, bit);
	/* These rows are all alike: one start is enough. */
	if (!to_end || row->from == IBV_QPS_RTS)
		add_groups(row);
}

struct rules transition_rules(void)
{
	if (made)
		return (struct rules){ made, made_count };
	for (int t = 0; t < TYPES; t++)
		for (int from = 0; from < STARTS; from++)
			for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++)
				add_pair(types[t], starts[from],
					 (enum ibv_qp_state)to);
	for (int i = 0; i < rules_transitions_count; i++)
		add_row(&rules_transitions[i]);
	return (struct rules){ made, made_count };
}
