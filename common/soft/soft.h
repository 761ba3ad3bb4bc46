/* SPDX-License-Identifier: MIT */
/*
 * soft0, a software RDMA device in userspace behind the public verbs ABI.
 *
 * Three layers, each a few files, an arrow only downwards:
 *   verbs   what programs call: the exported ibv_* functions and the ops
 *           pointers (device.c, context.c, pd.c, mr.c, cq.c, channel.c,
 *           qp.c, srq.c, ah.c, async.c, forward.c, unsupported.c)
 *   engine  queues and the transport: WQEs, packets, PSNs, ACKs, timers,
 *           completions (post.c, requester.c, responder.c, complete.c,
 *           engine.c, timer.c)
 *   carrier takes packets from QP to QP (carrier.h; memory.c is the one
 *           inside a process)
 *
 * Locks, in the order in which they may be taken:
 *   1 soft_lock      all objects' tables, states and references, the engine
 *   2 soft_wq.lock   one work queue's ring
 *   3 soft_cq.lock   one CQ's ring and its arming
 *   4 soft_events.lock  one list of events
 * Posting takes 2 only, polling 3 only: a program's data path does not wait
 * while the engine moves data. The engine runs in one thread per process,
 * started with the first QP, that plays the hardware; it holds soft_lock
 * for one burst at a time. After fork() the child starts afresh: it has none
 * of the parent's objects (soft_after_fork()).
 */
#ifndef SOFT_H
#define SOFT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define SOFT_MAX_SGE    32
#define SOFT_MAX_INLINE 512
#define SOFT_PORT_MTU   IBV_MTU_4096

/* Every object's head. `handle` is also in the public struct, per type. */
enum soft_type {
	SOFT_PD,
	SOFT_MR,
	SOFT_MW,
	SOFT_CHANNEL,
	SOFT_CQ,
	SOFT_SRQ,
	SOFT_AH,
	SOFT_QP,
	SOFT_TD,
	SOFT_DM,
	SOFT_CONTEXT,
	SOFT_TYPES,
};

/* The registry's part of an object (object.c); the verbs' only. */
struct soft_object {
	enum soft_type type;
	uint32_t handle;
	bool dying;   /* destroyed, waiting for its events to be acked */
	void *public; /* what the program holds */
	struct soft_context *context;
	struct soft_object *next, **prev; /* of one type, on the context */
	/* Events that the program was given; under their list's lock. */
	uint32_t comp_given, async_given;
};

/* FIFO of events behind a file descriptor that polls readable (eventfd). */
struct soft_event;
struct soft_events {
	pthread_mutex_t lock;
	int fd;
	struct soft_event *first, **last; /* private to events.c */
};

struct soft_context {
	struct verbs_context vctx; /* what the program holds: &vctx.context */
	struct soft_context *next;
	struct soft_events async;
	struct soft_object *live[SOFT_TYPES]; /* its objects */
	bool inherited; /* in a forked child: it and its objects are dead */
	struct soft_object object;
};

struct soft_pd {
	struct ibv_pd pd;
	/* What decides on access: itself, or a parent domain's PD. */
	struct soft_pd *real;
	struct soft_td *td; /* a parent domain's, or NULL */
	/* A parent domain's allocators, or NULL (array.c). */
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *context, void *memory,
		     uint64_t resource_type);
	void *context;
	/* Live MR, MW, AH, SRQ, QP, parent domains: dealloc is EBUSY. */
	unsigned int refs;
	struct soft_object object;
};

struct soft_mr {
	struct ibv_mr mr; /* lkey == rkey, as on most devices */
	uint32_t key;     /* the same; the program can't change this one */
	unsigned int access;
	uint64_t iova;     /* what remote and local addresses are relative to */
	unsigned int refs; /* bound MWs */
	size_t pages;      /* counted against RLIMIT_MEMLOCK */
	void *memory;      /* what iova stands for: mr.addr, or a DM's */
	struct soft_dm *dm; /* whose memory it is, or NULL */
	struct soft_object object;
};

/*
 * A memory window. The program's mw.rkey is a copy: posting a bind of type 1
 * changes it at once, of type 2 the program does. `rkey` is what opens it.
 */
struct soft_mw {
	struct ibv_mw mw;
	uint32_t rkey;
	struct soft_mr *mr;    /* that it is bound to, or NULL: opens nothing */
	uint64_t addr, length; /* addr is an address of the MR */
	unsigned int access;   /* IBV_ACCESS_ZERO_BASED: counts from addr */
	struct soft_qp *qp;    /* type 2: whose peers it is for */
	struct soft_object object;
};

/* Device memory: out of the program's sight, copied to and from. */
struct soft_dm {
	struct ibv_dm dm;
	void *memory;
	size_t length;
	unsigned int refs; /* MRs */
	struct soft_object object;
};

/* A thread domain; soft0's locks are taken all the same. */
struct soft_td {
	struct ibv_td td;
	unsigned int refs; /* parent domains */
	struct soft_object object;
};

struct soft_channel {
	struct ibv_comp_channel channel;
	struct soft_events events;
	struct soft_object object;
};

/* Memory, and whose it is (array.c). */
struct soft_array {
	void *memory;
	size_t bytes;
	const struct soft_pd *domain; /* that gave it; NULL: ours */
};

/* Completions as the engine writes and poll_cq reads them: plain ibv_wc. */
struct soft_cqe {
	struct ibv_wc wc;
	struct soft_qp
		*frees;     /* QP whose SQ slots polling this frees, or NULL */
	unsigned int slots; /* how many slots */
	uint64_t clock, wallclock; /* ns; of CQs that were asked to stamp */
};

struct soft_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex; /* begins as ibv_cq does */
	};
	/* Of ibv_create_cq_ex(): held from start_poll to end_poll (cq_ex.c). */
	pthread_mutex_t poll_lock;
	struct soft_cqe current;
	bool single_threaded, stamps;
	pthread_mutex_t lock;
	struct soft_pd *domain; /* parent domain that it holds, or NULL */
	struct soft_array array;
	struct soft_cqe *ring; /* cq.cqe + 1 places, a power of two */
	uint32_t mask, head, tail;
	unsigned int refs; /* QPs, twice where one CQ serves both queues */
	bool armed, armed_solicited;
	bool dead; /* overrun */
	struct soft_object object;
};

/* One work request as posted. */
struct soft_wqe {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode; /* send queues */
	unsigned int flags; /* IBV_SEND_*; SIGNALED also from sq_sig_all */
	uint32_t imm;       /* network order; or the rkey to invalidate */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add, swap;
	struct soft_ah *ah;               /* UD */
	uint32_t remote_qpn, remote_qkey; /* UD */
	uint32_t length;                  /* the sum of the SGEs */
	/* BIND_MW: rkey is the new one, compare_add the length, swap flags. */
	uint32_t mw_key, mr_key; /* as they were when posted; 0: no MR */
	/* Requester's progress, engine only. */
	uint32_t first_psn, last_psn;
	uint32_t inline_length;
	int num_sge;
	struct ibv_sge *sge;  /* max_sge of the queue, set when posted */
	uint8_t *inline_data; /* max_inline of the queue, set when posted */
};

struct soft_wq {
	pthread_mutex_t lock;
	struct soft_array ring_array, sge_array, inline_array;
	struct soft_wqe *ring;
	uint32_t mask;
	uint32_t max_wr, max_sge, max_inline;
	/* Free-running: tail posts, head is the oldest not completed. */
	uint32_t head, tail;
	uint32_t used; /* places taken, by unpolled unsignaled ones too */
	struct ibv_sge *sges; /* max_sge for each place of the ring */
	uint8_t *inlines;     /* max_inline for each place of the ring */
};

struct soft_srq {
	struct ibv_srq srq;
	struct soft_wq wq;
	uint32_t limit;
	unsigned int refs;
	struct soft_object object;
};

struct soft_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
	/*
	 * WQEs that name it; posting adds one without soft_lock, so by
	 * __atomic_*. ibv_destroy_ah() sets `destroyed` under soft_lock and
	 * frees only if refs is 0; else soft_ah_put() frees it with the last.
	 */
	unsigned int refs;
	bool destroyed;
	struct soft_object object;
};

struct soft_engine_qp; /* requester's and responder's state: engine.h */

struct soft_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex; /* begins with an ibv_qp */
	};
	struct soft_wr *wr;  /* what ibv_wr_* are building (wr.c), or NULL */
	unsigned int groups; /* multicast groups that it is attached to */
	bool no_self_mcast;  /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	struct ibv_qp_init_attr init; /* with the caps as given */
	/*
	 * What was set by modify; PSNs masked. attr.qp_state is the state,
	 * under soft_lock: the engine sets it to ERR. qp.state is the
	 * program's copy, as old as its last modify or query.
	 */
	struct ibv_qp_attr attr;
	struct soft_wq sq, rq; /* rq unused with an SRQ */
	struct soft_engine_qp *engine;
	struct soft_object object;
};

/* The device. */
extern pthread_mutex_t soft_lock;
/*
 * The way for verbs to take soft_lock: the engine, which takes it again and
 * again, makes way for them (engine.c).
 */
void soft_enter(void);
void soft_leave(void);

/* --- verbs, for the verbs and the engine (device.c, context.c ...) ------ */

struct soft_device_limits {
	uint32_t max_qp, max_cq, max_mr, max_pd, max_ah, max_srq;
	uint32_t max_qp_wr, max_sge, max_inline, max_cqe;
	uint32_t max_srq_wr, max_srq_sge, max_rd_atom;
	uint32_t max_mw, max_mcast_grp, max_mcast_attach, max_dm;
};
extern const struct soft_device_limits *soft_limits(void);

bool soft_is_ours(const struct ibv_context *context);
struct soft_context *soft_context_of(const struct ibv_context *context);
union ibv_gid soft_gid(void); /* the device's one GID, index 0 */

/* Objects by handle or number; NULL: none. Under soft_lock. */
struct soft_mr *soft_mr_find(uint32_t key);
struct soft_mw *soft_mw_find(uint32_t key); /* low byte not looked at */
struct soft_qp *soft_qp_find(uint32_t qp_num);

/* Whether two PDs give the same protection: parent domains lend theirs. */
static inline bool soft_same_pd(const struct ibv_pd *a, const struct ibv_pd *b)
{
	return ((const struct soft_pd *)a)->real ==
	       ((const struct soft_pd *)b)->real;
}

/*
 * Checks a local or remote access: the MR of `key`, of `pd`, with all of
 * `access`, covering the range; gives the memory in *place. Under soft_lock.
 */
enum soft_access {
	SOFT_ACCESS_OK,
	SOFT_ACCESS_KEY, /* no such MR, or of another PD */
	SOFT_ACCESS_RIGHTS,
	SOFT_ACCESS_RANGE,
};
enum soft_access soft_mr_access(const struct ibv_pd *pd, uint32_t key,
				uint64_t addr, uint64_t length,
				unsigned int access, void **place);
/* The same for what a QP's peer may do: by an MR's key or an MW's. */
enum soft_access soft_remote_access(const struct soft_qp *qp, uint32_t key,
				    uint64_t addr, uint64_t length,
				    unsigned int access, void **place);

/* --- memory windows, for the engine (mw.c), under soft_lock -------------- */

/* Executes a BIND_MW or LOCAL_INV. */
enum ibv_wc_status soft_mw_execute(struct soft_qp *qp,
				   const struct soft_wqe *wqe);
/* A peer's or the program's invalidation of a type 2 window; false: refused. */
bool soft_mw_invalidate(const struct soft_qp *qp, uint32_t rkey);
/* A QP goes, and with it what type 2 windows open to its peer. */
void soft_mw_forget_qp(const struct soft_qp *qp);

/* --- multicast, for the engine and carriers (mcast.c), under soft_lock --- */

struct soft_packet;
bool soft_is_mcast(const union ibv_gid *gid);
/* To the QPs of this process in the packet's group; `from` sent it, or NULL. */
void soft_mcast_deliver(const struct soft_packet *packet,
			const struct soft_qp *from);

/* Raises an async event on a context; takes 4. */
void soft_async_raise(struct ibv_context *context,
		      const struct ibv_async_event *event);
/* Puts a CQ's event on its channel; takes 4. */
void soft_channel_raise(struct soft_cq *cq);

/* --- engine, for the verbs (engine.c) ----------------------------------- */

/* Rings for the caps in qp->init; 0 or ENOMEM. soft_lock is not held. */
int soft_engine_qp_init(struct soft_qp *qp);
/* Under soft_lock; the rings are left, to soft_wq_fini() without it. */
void soft_engine_qp_fini(struct soft_qp *qp);
/*
 * After a transition was accepted and qp->attr and qp->qp.state are set,
 * under soft_lock: RESET empties the queues silently; ERR flushes; RTS and
 * SQD let the requester go on or drain; SQ_DRAINED is raised if asked for.
 */
void soft_engine_qp_changed(struct soft_qp *qp, enum ibv_qp_state from,
			    int attr_mask);
/* Current PSNs and draining flag for query_qp, under soft_lock. */
void soft_engine_qp_query(struct soft_qp *qp, struct ibv_qp_attr *attr);

/*
 * Does what was posted so far, or much of it, in the caller's thread: for a
 * verb whose answer depends on it, and that on hardware takes longer than
 * the work. Under soft_lock.
 */
void soft_engine_catch_up(void);

/*
 * Ends the engine's thread if no QP lives. For ibv_close_device, after its
 * other work; soft_lock is not held. An exiting process ends it by itself.
 */
void soft_engine_rest(void);

/* Sets a CQE's times to now. */
void soft_cq_stamp(struct soft_cqe *cqe);

/* Drops a WQE's reference on an AH, under soft_lock. */
void soft_ah_put(struct soft_ah *ah);

/* All zeros, if it is ours; false: there is none. */
bool soft_array_init(struct soft_array *array, const struct soft_pd *domain,
		     size_t bytes);
void soft_array_fini(struct soft_array *array);
/* `domain` is the PD that its object is of. 0 or ENOMEM. */
int soft_wq_init(struct soft_wq *wq, const struct soft_pd *domain,
		 uint32_t max_wr, uint32_t max_sge, uint32_t max_inline);
void soft_wq_fini(struct soft_wq *wq);
int soft_cq_ring_init(struct soft_cq *cq, int cqe); /* sets cq.cqe */
/*
 * Takes `array` of soft_cq_array_init(), for its new ring, and leaves the old
 * one in it; or EINVAL when the CQ holds more CQEs than would fit.
 */
int soft_cq_ring_resize(struct soft_cq *cq, struct soft_array *array);
bool soft_cq_array_init(const struct soft_cq *cq, struct soft_array *array,
			int cqe);
void soft_cq_ring_fini(struct soft_cq *cq);

/* The ops pointers of a context. */
int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
/*
 * Posting in its other ways. WHOLE: all of the list or nothing of it;
 * TYPE_1: binds are those of ibv_bind_mw(). *bad_wr is set on an error.
 */
enum { SOFT_POST_WHOLE = 1, SOFT_POST_TYPE_1 = 2 };
int soft_post_list(struct soft_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr, unsigned int how);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
int soft_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);
int soft_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* After fork, in the child: forget everything, the thread is gone. */
void soft_engine_after_fork(void);

#endif
