/* SPDX-License-Identifier: MIT */
/*
 * The conformance probe: each rule of verbs that a device can be asked
 * about is a case, run in a process of its own, and its answer is one line.
 *
 * A case is a function that sets something up, does the one thing that the
 * rule is about, and ends with answer(). It never returns and cleans nothing
 * up: its process goes. Public verbs only; soft0 is a device like others.
 *
 * Beside each case stands what the rule says, what soft0 must answer, what
 * specification and hardware say, and why a kernel driver that differs does
 * so. docs/devices.md is made of these words and of runs, by `compare`.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct rule {
	const char *name; /* stable: what.circumstance */
	void (*run)(const struct rule *rule);
	const char *want; /* soft0's answer */
	const char *text; /* the rule */
	const char *spec; /* what specification and hardware say */
	/* Why this driver may differ; NULL: it must not. */
	const char *rxe, *siw;
	const char *family; /* rows that may share a line in docs/, or NULL */
	/* What the function makes of them is its own affair. */
	int64_t arg, arg2;
	enum look { LOOK_REQUESTER, LOOK_RESPONDER, LOOK_STATES } look;
};

/* A row: the words of `spec`, then what else there is, with its name. */
#define RULE(name_, run_, want_, text_, ...)                              \
	{                                                                 \
		.name = name_, .run = run_, .want = want_, .text = text_, \
		.spec = __VA_ARGS__                                       \
	}

/* Three rows of one fault: both completions and the states afterwards. */
#define FAULT(fault, run, requester, responder, states, words, ...)       \
	RULE(fault ".requester", run, requester, words ": the requester", \
	     __VA_ARGS__, .look = LOOK_REQUESTER, .family = fault ".*"),  \
		RULE(fault ".responder", run, responder,                  \
		     words ": the responder", __VA_ARGS__,                \
		     .look = LOOK_RESPONDER, .family = fault ".*"),       \
		RULE(fault ".states", run, states, words ": the QPs",     \
		     __VA_ARGS__, .look = LOOK_STATES, .family = fault ".*")

/* The tables, a file each; every pointer lives as long as the program. */
struct rules {
	const struct rule *rules;
	size_t count;
};
#define RULES(table)                                       \
	{                                                  \
		table, sizeof(table) / sizeof((table)[0]), \
	}
extern const struct rules destroy_rules, create_mr_rules, create_rules,
	create_qp_rules, query_rules, modify_rules, post_rules,
	completion_rules, event_rules, fault_rules, silence_rules,
	datagram_rules, window_rules;
/* Made of common/rules when first asked for. */
struct rules transition_rules(void);

/* --- answers (main.c) --------------------------------------------------- */

/* The case's outcome, in one line; ends its process. */
_Noreturn void answer(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
_Noreturn void answer_call(int err);            /* "ok" or "EINVAL" */
_Noreturn void answer_pointer(const void *ptr); /* the same, by errno */
/* The device lacks what the case is about: "not here: UD QP (EINVAL)". */
_Noreturn void not_here(const char *what, int err);

const char *call_name(int err);  /* "ok" or "EINVAL" */
const char *wc_name(int status); /* without IBV_WC_; see NOTHING */
#define NOTHING (-1)

/* --- what the cases stand on (world.c) ---------------------------------- */

#define PAGE     4096
#define BUFFER   (16 * PAGE)
#define LIMIT_MS 4000 /* to wait for what must come */
#define QUIET_MS 250  /* to wait for what must not */
#define ALL_ACCESS                                         \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define REMOTE_ACCESS (ALL_ACCESS & ~IBV_ACCESS_LOCAL_WRITE)

/* The device open, with a PD. Each of these ends the case if it fails. */
struct world {
	struct ibv_context *context;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	struct ibv_pd *pd;
};

struct ibv_context *open_device(void);
struct world *open_world(void);
void *get_memory(size_t length, int protection);
struct ibv_pd *make_pd(struct world *w);
struct ibv_mr *make_mr(struct ibv_pd *pd, void *memory, size_t length,
		       int access);
struct ibv_cq *make_cq(struct world *w, int cqe,
		       struct ibv_comp_channel *channel);
struct ibv_comp_channel *make_channel(struct world *w);
/* *given: how many WRs it was said to hold; NULL: never mind. */
struct ibv_srq *make_srq(struct ibv_pd *pd, uint32_t max_wr, uint32_t limit,
			 uint32_t *given);
struct ibv_ah *make_ah(struct world *w, struct ibv_pd *pd);
struct ibv_ah_attr ah_attr(const struct world *w);
/* One CQ for both queues, eight WRs each, two SGEs, 64 bytes inline. */
struct ibv_qp_init_attr qp_init(enum ibv_qp_type type, struct ibv_cq *cq);
struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
void without_capability(int capability);

/* Good values for all attributes; the peer is the QP itself. */
struct ibv_qp_attr good_attr(const struct world *w, const struct ibv_qp *qp);
/* The required bits of a transition, IBV_QP_STATE among them. */
int required_mask(enum ibv_qp_type type, enum ibv_qp_state from,
		  enum ibv_qp_state to);
/* From RESET along the table, and no further than `state`. */
void bring(struct ibv_qp *qp, struct ibv_qp_attr attr, enum ibv_qp_state state);
enum ibv_qp_state state_of(struct ibv_qp *qp);
/* In SQD: until then the only way out is to ERR. */
void wait_drained(struct ibv_qp *qp);

/* --- two connected QPs (pair.c) ----------------------------------------- */

struct pair_wish {
	enum ibv_qp_type type;
	int qp_access, mr_access;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	enum ibv_mtu mtu_a, mtu_b;
	int psn_ahead;   /* of the requester's PSN, before the responder's */
	bool srq;        /* the responder's */
	bool unsignaled; /* sq_sig_all is 0 anyhow; WRs carry no SIGNALED */
	bool channel;    /* both of the responder's CQs have one */
	int cqe;
	uint32_t max_wr;
	enum ibv_qp_state a, b; /* how far */
};

struct side {
	struct ibv_qp *qp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;
	uint8_t *buffer; /* BUFFER bytes */
	struct ibv_qp_cap given;
	uint32_t srq_given;
	struct ibv_ah *ah;
	/* What post() and post_recv() post; see fill_send(), fill_recv(). */
	struct ibv_sge sge, recv_sge;
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv_wr;
};

struct pair {
	struct world *w;
	struct side a, b; /* a asks, b answers */
};

#define QKEY 0x1234567

struct pair_wish wish(enum ibv_qp_type type);
struct pair *make_pair(struct world *w, const struct pair_wish *wish);
struct pair *plain_pair(enum ibv_qp_type type);

/* a's WR of `length` bytes to the start of b's buffer; b's receive. */
void fill_send(struct pair *p, enum ibv_wr_opcode opcode, uint32_t length);
void fill_recv(struct pair *p, uint32_t length);
/* They must be taken. */
void post(struct pair *p);
void post_recv(struct pair *p);
/* What the call says; *bad_wr starts as NULL. */
int try_post(struct pair *p, struct ibv_send_wr **bad_wr);
int try_post_recv(struct pair *p, struct ibv_recv_wr **bad_wr);

/* The next completion; its status, or NOTHING when none came in time. */
int wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, int limit_ms);
int wait_status(struct ibv_cq *cq, int limit_ms);
/* The next event's type, or NOTHING; acknowledged. */
int wait_async(struct ibv_context *context, int limit_ms);
bool wait_readable(int fd, int limit_ms);
/* The state, once it is not RTS; RTS when it stays. */
enum ibv_qp_state settled_state(struct ibv_qp *qp);
/*
 * After the fault was posted: the requester's completion, then, as the rule
 * says, it, the responder's, or the states of both QPs. Ends the case.
 */
_Noreturn void look(const struct rule *rule, struct pair *p);

uint64_t now_ms(void);

#endif
