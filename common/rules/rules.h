/* SPDX-License-Identifier: MIT */
/*
 * The rules of verbs as tables, the one place for each fact. soft0 obeys
 * them, the graph draws by them, the explanations quote them, the tests and
 * the tables in docs/ are checked against them.
 *
 * Tables and look-ups only: no verbs call, no state, safe from any thread.
 */
#ifndef RULES_H
#define RULES_H

#include <infiniband/verbs.h>

/* The object types of the graph; the order is their rank in a drawing. */
enum rules_object {
	RULES_CONTEXT,
	RULES_PD,
	RULES_CHANNEL,
	RULES_MR,
	RULES_CQ,
	RULES_SRQ,
	RULES_AH,
	RULES_MW,
	RULES_QP,
	RULES_OBJECTS, /* how many there are */
	RULES_NONE = RULES_OBJECTS,
};

/*
 * How an object type is named: `prefix` starts its ids ("pd" for pd0),
 * `name` is the field's own word ("protection domain").
 */
struct rules_object_info {
	const char *prefix;
	const char *name;
	const char *type; /* "struct ibv_pd" */
};

extern const struct rules_object_info rules_objects[RULES_OBJECTS];

/* "qp12" -> RULES_QP; RULES_NONE when the text is no object id. */
enum rules_object rules_object_of_id(const char *id);

/*
 * Whose an async event is (enum ibv_event_type): a CQ's, a QP's or an SRQ's;
 * RULES_NONE: a port's, the device's, or that of an object that has no type
 * here. From ibv_get_async_event(3).
 */
enum rules_object rules_object_of_event(int type);

/*
 * One verbs call that makes or unmakes an object. Alternatives of a call
 * (ibv_create_cq_ex, ibv_reg_mr_iova2 ...) are rows of their own; the first
 * row of an object type is the one the tables in docs/ show.
 */
struct rules_call {
	const char *call;
	enum rules_object object;
	enum { RULES_CREATES, RULES_DESTROYS } effect;
	const char *needs; /* creates: what must be there before */
	const char *refused; /* destroys: what holds it, and the answer */
};

extern const struct rules_call rules_calls[];
extern const int rules_calls_count;

/* The row of `call`, or NULL for a call that makes and unmakes nothing. */
const struct rules_call *rules_call_find(const char *call);

/*
 * A reference: while a `child` made with a `parent` lives, destroying the
 * parent is answered with `err` (0: it is done all the same). `counted_by`
 * says who refuses: the kernel's core, libibverbs, or the driver.
 */
struct rules_edge {
	enum rules_object parent, child;
	int err;
	const char *counted_by;
};

extern const struct rules_edge rules_edges[];
extern const int rules_edges_count;

/* The edge from `parent` to `child`, or NULL where there is none. */
const struct rules_edge *rules_edge_find(enum rules_object parent,
					 enum rules_object child);

/*
 * One row of the QP state table (InfiniBand specification 11.2.5.2, as the
 * kernel's ib_modify_qp_is_ok has it). Masks are of enum ibv_qp_attr_mask;
 * IBV_QP_STATE itself is in neither.
 */
struct rules_transition {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
};

extern const struct rules_transition rules_transitions[];
extern const int rules_transitions_count;

/*
 * The row for a transition, or NULL where there is none. Transitions to
 * RESET and to ERR need nothing and have a row for each state they start in.
 */
const struct rules_transition *rules_transition_find(enum ibv_qp_type type,
						     enum ibv_qp_state from,
						     enum ibv_qp_state to);

/*
 * What ibv_modify_qp() with `mask` must answer in state `from`: 0, or EINVAL
 * with *missing and *extra set to the attribute bits that are lacking and
 * that do not belong (both 0 when the transition itself does not exist).
 */
int rules_modify_check(enum ibv_qp_type type, enum ibv_qp_state from,
		       enum ibv_qp_state to, int mask, int *missing,
		       int *extra);

/* Names of the constants, as the headers spell them. Never NULL. */
const char *rules_errno_name(int err); /* "EBUSY" */
const char *rules_qp_state(int state); /* "RTS" */
const char *rules_qp_type(int type); /* "RC" */
const char *rules_wc_status(int status); /* "IBV_WC_SUCCESS" */
const char *rules_wc_opcode(int opcode); /* "IBV_WC_SEND" */
const char *rules_wr_opcode(int opcode); /* "IBV_WR_SEND" */
const char *rules_qp_attr_bit(int bit); /* "IBV_QP_AV"; bit is the mask */
const char *rules_access_bit(unsigned int bit); /* "IBV_ACCESS_..." */

/*
 * One sentence on why `call` may answer `err` and what to look at, or NULL.
 * For completions: what a status usually means.
 */
const char *rules_hint(const char *call, int err);
const char *rules_wc_hint(int status);

#endif
