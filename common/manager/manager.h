/* SPDX-License-Identifier: 0BSD */
/*
 * A resource manager for verbs: one struct that owns what a service opens on
 * a device (context, PD, MRs, completion channel, CQs, QPs), makes it in
 * order, says what is alive, and takes it down in reverse.
 *
 * To use it elsewhere, copy manager.h and manager.c; they need libibverbs
 * and nothing else. Lesson 06 shows every call.
 *
 * Rules of use:
 *   - A plan says what is wanted; manager_check() holds it against the
 *     device before anything is made, manager_create() makes it.
 *   - Objects belong to the manager. Use them as verbs allow, from any
 *     thread; destroy them only through it.
 *   - An object's index is its place in the plan, later ones follow. It
 *     stays the same for the object's life; dropped places are used again.
 *   - Before destroying: every event got from a CQ or QP is acknowledged
 *     (ibv_destroy_cq() waits for that for ever), and the memory of the MRs
 *     is still there. It is free for reuse once its MR is gone.
 *   - One thread at a time in the calls below, per manager.
 *   - Errors are positive errno values, the log hook tells the story.
 */
#ifndef MANAGER_H
#define MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/*
 * Called for each failure: the errno, the verb, and what it was given
 * ("qps[1]: qp_type=2 send_wr=1048577/1 ...", requests/SGEs), valid during the
 * call only.
 */
typedef void manager_log(void *arg, int err, const char *call,
			 const char *given);

struct manager_mr_plan {
	void *addr;    /* the caller's; must outlive the MR */
	size_t length; /* bytes */
	int access;    /* IBV_ACCESS_... */
};

struct manager_cq_plan {
	int cqe; /* at least this many completions */
	int comp_vector;
	bool channel;     /* its events go to the manager's channel */
	void *cq_context; /* what ibv_get_cq_event() gives back */
};

struct manager_qp_plan {
	enum ibv_qp_type qp_type; /* RC, UC or UD */
	struct ibv_qp_cap cap;
	int send_cq, recv_cq; /* indexes of CQs */
	bool sq_sig_all;
	int access;    /* RC, UC: what the peer may do, IBV_ACCESS_REMOTE_... */
	uint32_t qkey; /* UD */
};

struct manager_plan {
	uint8_t port_num; /* from 1: the port that the QPs use */
	uint16_t pkey_index;
	bool channel; /* make a completion channel */
	const struct manager_mr_plan *mrs;
	const struct manager_cq_plan *cqs;
	const struct manager_qp_plan *qps;
	int num_mrs, num_cqs, num_qps;
	manager_log *log; /* or NULL */
	void *log_arg;
};

/* What a plan asks for and does not get. */
struct manager_lack {
	const char *limit; /* "max_qp_wr", the name of the device's attribute */
	const char *of; /* the plan's entry it is about: "qps"; "" for none */
	int index;      /* which of them */
	uint64_t needed, available;
};

struct manager_table {
	void **object; /* NULL where one was dropped */
	int count;
};

/* Private to manager.c; all zero is a manager that holds nothing. */
struct manager {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct manager_table mrs, cqs, qps;
	uint8_t port_num;
	uint16_t pkey_index;
	manager_log *log;
	void *log_arg;
};

/*
 * Holds the plan against what the device says of itself, and against its own
 * sense: a CQ must hold the sum of the work requests of the queues that
 * complete to it. What no attribute tells (the largest inline size, the QP
 * types) only creation can find out. Makes nothing.
 *
 * 0; EOPNOTSUPP when the device has less, EINVAL when the plan contradicts
 * itself, both with *lack saying what; or the errno of ibv_query_device().
 */
int manager_check(struct ibv_context *context, const struct manager_plan *plan,
		  struct manager_lack *lack);

/*
 * Opens `device` and makes all that the plan says: context, PD, MRs, channel,
 * CQs, QPs, and moves the QPs to INIT, so that receives may be posted. The
 * plan itself may go away afterwards. What *m held before is not looked at.
 *
 * 0, or the errno of the call that failed, with everything made before it
 * destroyed again and *m holding nothing.
 */
int manager_create(struct manager *m, struct ibv_device *device,
		   const struct manager_plan *plan);

/*
 * Destroys in reverse order: QPs, CQs, channel, MRs, PD, context. A refusal
 * is logged and the rest goes on. What was refused stays in the manager, and
 * then so does the context: ibv_close_device() would not refuse, it would
 * leave the rest out of reach. So when what stood in the way is gone, the
 * same call finishes the work.
 *
 * 0 when nothing is left, else the first errno. NULL, an empty manager and
 * one destroyed before are fine.
 */
int manager_destroy(struct manager *m);

/*
 * One more object. 0 with its index in *index (NULL: not wanted), or the
 * errno with nothing made. A QP is in INIT.
 */
int manager_add_mr(struct manager *m, const struct manager_mr_plan *plan,
		   int *index);
int manager_add_cq(struct manager *m, const struct manager_cq_plan *plan,
		   int *index);
int manager_add_qp(struct manager *m, const struct manager_qp_plan *plan,
		   int *index);

/* One less. 0; ENOENT: none has that index; or the refusal, object intact. */
int manager_drop_mr(struct manager *m, int index);
int manager_drop_cq(struct manager *m, int index);
int manager_drop_qp(struct manager *m, int index);

/* The objects; NULL where there is none. They stay the manager's. */
struct ibv_context *manager_context(const struct manager *m);
struct ibv_pd *manager_pd(const struct manager *m);
struct ibv_comp_channel *manager_channel(const struct manager *m);
struct ibv_mr *manager_mr(const struct manager *m, int index);
struct ibv_cq *manager_cq(const struct manager *m, int index);
struct ibv_qp *manager_qp(const struct manager *m, int index);

/* What is alive. QP states are what the device answers, not a memory. */
struct manager_audit {
	int contexts, pds, mrs, channels, cqs, qps;
	int total;                      /* of all of these */
	int qp_states[IBV_QPS_ERR + 1]; /* QPs in each enum ibv_qp_state */
	int qps_unknown;                /* QPs whose state could not be asked */
};

/* 0, or the first errno of ibv_query_qp(), with the rest counted. */
int manager_audit(const struct manager *m, struct manager_audit *audit);

#endif
