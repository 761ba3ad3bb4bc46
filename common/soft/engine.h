/* SPDX-License-Identifier: MIT */
/*
 * What the engine's files share: a QP's state as requester and responder,
 * and the calls between requester.c, responder.c, complete.c, timer.c and
 * engine.c. Everything here is under soft_lock unless it says otherwise.
 */
#ifndef SOFT_ENGINE_H
#define SOFT_ENGINE_H

#include "common/soft/carrier.h"
#include "common/soft/ring.h"
#include "common/soft/soft.h"

#define SOFT_BURST_BYTES (4 * SOFT_RUN_BYTES) /* of one QP, then the next */
#define SOFT_BURST_WQES  64
#define SOFT_WINDOW      128 /* unacknowledged PSNs at which a requester waits */
#define SOFT_MAX_MESSAGE (UINT32_C(1) << 31)
#define SOFT_REPLAYS     128 /* max_dest_rd_atomic at most */
#define SOFT_PSN_MASK    UINT32_C(0xffffff)
#define SOFT_GRH_BYTES   40

struct soft_replay {
	uint32_t psn;
	bool valid;
	uint64_t original;
};

struct soft_engine_qp {
	struct soft_qp *qp;
	struct soft_engine_qp *next, *prev; /* all QPs */
	struct soft_engine_qp *next_active; /* under the doorbell's lock */
	bool active;                        /* same */
	/*
	 * The state for those that post: attr.qp_state, but written with both
	 * queues' locks held, so that it holds still under either.
	 */
	enum ibv_qp_state state;
	bool cq_died; /* the engine has still to break this QP for it */
	bool last_wqe_told;

	/* In the list of those that wait for room on their way (peers.c). */
	struct soft_engine_qp *next_held;
	bool held;

	/* Timer: absolute CLOCK_MONOTONIC nanoseconds; 0: none (timer.c). */
	struct soft_engine_qp *next_timer, **prev_timer;
	uint64_t deadline;

	/* Requester. Ring indexes run freely, as in soft_wq. */
	bool running;     /* in soft_requester_run(), further up the stack */
	uint32_t current; /* WQE to send from next */
	uint32_t offset;  /* bytes of it that are sent */
	uint32_t begun;   /* the first WQE of which nothing was ever sent */
	uint32_t next_psn, una_psn; /* to send; oldest unacknowledged */
	uint32_t reads;           /* READs and atomics without their response */
	uint32_t unreported;      /* WQEs done since the last CQE */
	int retries, rnr_retries; /* left */
	bool rnr_wait;
	bool draining, drain_notify;

	/* Responder. */
	uint32_t expected_psn, msn;
	bool nak_sent; /* one sequence NAK for each gap */
	bool in_message;
	enum soft_op message; /* SEND or WRITE */
	bool told; /* a receive's completion tells of the fault already */
	struct soft_wqe *recv;   /* taken, not completed; or NULL */
	struct soft_wqe srq_wqe; /* what recv points to with an SRQ */
	uint64_t received;       /* bytes of the message so far */
	uint64_t write_va;
	uint32_t write_rkey, write_left;
	uint32_t next_replay;
	struct soft_replay replay[SOFT_REPLAYS];
};

static inline int32_t soft_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t soft_path_mtu(const struct soft_qp *qp)
{
	enum ibv_mtu mtu = qp->init.qp_type == IBV_QPT_UD ? SOFT_PORT_MTU
							  : qp->attr.path_mtu;

	return UINT32_C(128) << mtu;
}

static inline uint32_t soft_packets(uint32_t length, uint32_t mtu)
{
	return length ? (length - 1) / mtu + 1 : 1;
}

static inline enum soft_service soft_service_of(const struct soft_qp *qp)
{
	switch (qp->init.qp_type) {
	case IBV_QPT_UD:
		return SOFT_UD;
	case IBV_QPT_UC:
		return SOFT_UC;
	default:
		return SOFT_RC;
	}
}

static inline struct soft_cq *soft_cq_of(struct ibv_cq *cq)
{
	return (struct soft_cq *)((char *)cq - offsetof(struct soft_cq, cq));
}

static inline struct soft_srq *soft_srq_of(struct ibv_srq *srq)
{
	return (struct soft_srq *)((char *)srq -
				   offsetof(struct soft_srq, srq));
}

static inline struct soft_qp *soft_qp_of(struct ibv_qp *qp)
{
	return (struct soft_qp *)((char *)qp - offsetof(struct soft_qp, qp));
}

static inline struct soft_mw *soft_mw_of(struct ibv_mw *mw)
{
	return (struct soft_mw *)((char *)mw - offsetof(struct soft_mw, mw));
}

static inline struct soft_wqe *soft_wq_at(const struct soft_wq *wq,
					  uint32_t index)
{
	return &wq->ring[index & wq->mask];
}

/* WQEs posted so far, with all that was written into them. Any thread. */
static inline uint32_t soft_wq_tail(const struct soft_wq *wq)
{
	return __atomic_load_n(&wq->tail, __ATOMIC_ACQUIRE);
}

static inline bool soft_wqe_is_atomic(const struct soft_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Done at home, in its turn: sends nothing and takes no PSN. */
static inline bool soft_wqe_is_local(const struct soft_wqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

static inline bool soft_wqe_wants_response(const struct soft_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || soft_wqe_is_atomic(wqe);
}

static inline struct soft_wqe *soft_send_oldest(struct soft_engine_qp *eq)
{
	return soft_wq_at(&eq->qp->sq, eq->qp->sq.head);
}

/* engine.c */
void soft_ring(struct soft_engine_qp *eq);   /* the doorbell; any thread */
void soft_unring(struct soft_engine_qp *eq); /* before it is freed */
/* What the program's threads do, without a lock held: see engine.c. */
void soft_posted(struct soft_engine_qp *eq);
bool soft_polled_nothing(void); /* true: it did some work */
void soft_armed(void);
/*
 * Starts the thread if there's none, and keeps others from ending it until
 * soft_engine_started(), which follows in any case. 0 or an errno.
 */
int soft_engine_start(void);
void soft_engine_started(void);

/* Any thread, without a lock: whether there's work, timers apart; ... */
bool soft_engine_work_waits(void);
bool soft_engine_stopping(void); /* ... and whether the thread has to end */

/* rest.c. What the thread knows of the program's polls, and of its processor */
struct soft_sense {
	uint32_t polls;     /* at the last look */
	unsigned int still; /* looks since there was a new one */
	bool napped;        /* since it worked last */
	unsigned int lying; /* naps in a row over which work was left lying */
	uint64_t wary_until, crowded_until;
};

/* The thread's: until there is work; false: it seems to be a program's. */
bool soft_rest(struct soft_sense *sense);
/* Any thread, without a lock: a program polls and does nothing else. */
void soft_rest_polled(void);
void soft_rest_end_nap(void);  /* nobody polls any more, or not enough */
void soft_rest_wake(void);     /* from its sleep */
void soft_rest_deadline(void); /* a timer may be due before its sleep ends */
void soft_rest_after_fork(void);

/* engine_qp.c */
bool soft_qp_run(struct soft_engine_qp *eq); /* true: it has more to do */
void soft_engine_qps_forget(void);
/* To ERR: flushes both queues, in order. Again in ERR: flushes what came. */
void soft_qp_error(struct soft_engine_qp *eq);
void soft_qp_event(struct soft_qp *qp, enum ibv_event_type type);
struct soft_engine_qp *soft_engine_qps(void); /* head of the list of all */

/* requester.c */
bool soft_requester_run(struct soft_engine_qp *eq); /* true: there is more */
/* In SQD: whether all that was begun is done; tells so if asked to. */
void soft_requester_drained(struct soft_engine_qp *eq);
void soft_requester_flush(struct soft_engine_qp *eq);
void soft_requester_discard(struct soft_engine_qp *eq); /* silently */
/*
 * The oldest WQE is done. Its place, and those of the unsignaled ones before
 * it, become free when its CQE is polled, as on hardware.
 */
void soft_send_complete(struct soft_engine_qp *eq, enum ibv_wc_status status);
/* The same with an error, and the QP breaks. */
void soft_send_fail(struct soft_engine_qp *eq, enum ibv_wc_status status);

/* answers.c */
void soft_requester_response(struct soft_engine_qp *eq, struct soft_packet *p);
void soft_requester_timeout(struct soft_engine_qp *eq);

/* responder.c */
void soft_responder_request(struct soft_engine_qp *eq, struct soft_packet *p);

/* receive.c */
/* The receive for the message that begins, as eq->recv; false: none. */
bool soft_recv_take(struct soft_engine_qp *eq);
/* Completes eq->recv; fills in wr_id and qp_num. */
void soft_recv_complete(struct soft_engine_qp *eq, struct ibv_wc *wc,
			bool solicited);
void soft_recv_fail(struct soft_engine_qp *eq, enum ibv_wc_status status);
void soft_responder_flush(struct soft_engine_qp *eq);
void soft_responder_discard(struct soft_engine_qp *eq);

/*
 * The memory behind `length` bytes at `offset` of a WQE's SGEs, as *parts
 * entries of part[SOFT_MAX_SGE], checked for `access`. (requester.c)
 */
bool soft_sge_memory(const struct ibv_pd *pd, const struct soft_wqe *wqe,
		     uint64_t offset, uint64_t length, unsigned int access,
		     struct iovec *part, int *parts);

/*
 * complete.c: adds a CQE. `frees` and `slots` as in soft_cqe. A full CQ dies
 * of it, and so will its QPs.
 */
void soft_cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited,
		  struct soft_qp *frees, unsigned int slots);
/* Takes the oldest CQE out, as polling does; false: there is none. */
bool soft_cq_take(struct soft_cq *cq, struct soft_cqe *cqe);
/*
 * Takes a QP's CQEs out: its next life, after RESET, begins with none of the
 * last one's, as on mlx4 and mlx5 (from memory).
 */
void soft_cq_drop(struct soft_cq *cq, const struct soft_qp *qp);
/* The CQEs of a QP stay but free nothing any more. */
void soft_cq_forget(struct soft_cq *cq, const struct soft_qp *qp);

/* grh.c */
void soft_make_grh(const struct soft_packet *p, uint8_t grh[SOFT_GRH_BYTES]);

/* timer.c */
uint64_t soft_now(void);
void soft_timer_set(struct soft_engine_qp *eq, uint64_t delay_ns);
void soft_timer_clear(struct soft_engine_qp *eq);
/* No deadline is before it; UINT64_MAX: there's none. Without soft_lock. */
uint64_t soft_timer_next(void);
bool soft_timer_due(void); /* whether it has come. Without soft_lock */
void soft_timer_note(uint64_t deadline); /* one that isn't a QP's */
void soft_timers_run(void);
void soft_timers_forget(void);
uint64_t soft_rnr_delay(unsigned int code);    /* ns; codes of IBTA table 46 */
uint64_t soft_ack_delay(unsigned int timeout); /* ns; 4.096 us * 2^timeout */

#endif
