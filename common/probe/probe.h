/* SPDX-License-Identifier: MIT */
/*
 * The probe: stops before, and reports after, each verbs call of a program
 * that it is loaded into (LD_PRELOAD). Private to this room.
 *
 *   exported.c  the exported ibv_* functions, each a wrapper
 *   context.c   the calls that go through pointers in a context
 *   qp_ex.c     ... in an extended QP: WRs that are built call by call
 *   cq_ex.c     ... in an extended CQ: completions read field by field
 *   wrapped.c   which object has its pointers replaced, and what they were
 *   table.c     per verb: its arguments' names, its answer, its outputs
 *   decode.c    values and structures as JSON, driven by the table
 *   words.c     names of constants that rules.h does not have
 *   lists.c     the shapes that a table of fields cannot say: WRs, WCs ...
 *   call.c      one call from entering to its report; modes and stops
 *   thread.c    what each thread has; what others had counted at the end
 *   quiet.c     repeated calls of the data path, counted
 *   channel.c   the socket: lines out, commands in; start and end
 *   place.c     return address -> source line; names.c: pointer -> id
 *
 * Rules: errno is the program's and kept around everything here. Nothing
 * here may be reported: a thread's depth is above 0 while the probe or a
 * verb works, and calls at that depth pass through. When the other side is
 * gone, the probe is off for good and only passes calls on.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "common/rules/rules.h"
#include "common/trace/format.h"

#define EXPORT    __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* --- text (text.c): JSON into a buffer of fixed size --------------------- */

/* What does not fit sets `full` and is left out, always whole values. */
struct text {
	char *at;
	size_t used, size;
	bool full;
};

void text_add(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void text_quote(struct text *text, const char *string);
/* A member's name, with the comma before it where one is needed. */
void text_key(struct text *text, const char *name);

/* --- places (place.c) ---------------------------------------------------- */

/* Immutable once found, and kept to the end. */
struct place {
	const void *address;
	char *at; /* the value of "at", as JSON */
	/*
	 * The address is in an inline verb that the compiler made a function
	 * of its own (-O0): the program's line is one frame up.
	 */
	bool header;
	bool frame_pointer; /* and the frame pointer leads there */
};

/* Where a wrapper was called from, as the wrapper sees it. */
struct from {
	const void *address; /* its return address */
	void **frame; /* the caller's frame pointer, where there is one */
};
#define FROM_HERE                                    \
	((struct from){ __builtin_return_address(0), \
			*(void ***)__builtin_frame_address(0) })

/* The place of the program's own line. Never NULL. Any thread. */
const struct place *place_of(struct from from);
/* The same for one address, without looking further up. */
const struct place *place_find(const void *address);
/* The folder that `file`, as the compiler was given it, is relative to;
 * "" when unknown. Into `dir`. */
void place_dir(const char *file, char *dir, size_t size);
void place_end(void);

/* --- names (names.c) ------------------------------------------------------ */

/*
 * The id's number of an object, given now if it has none (an object from
 * before the probe, or from a call it does not know). Any thread.
 */
unsigned long name_of(enum rules_object type, const void *object);
/* A new object at this address: a new number. */
unsigned long name_new(enum rules_object type, const void *object);
/* The object is gone; nothing happens when the address has another by now. */
void name_drop(enum rules_object type, const void *object, unsigned long n);

/* --- the table (table.c, decode.c, lists.c) ------------------------------- */

struct decode; /* what is being decoded */

enum kind {
	KIND_END,
	KIND_SIGNED,
	KIND_UNSIGNED,
	KIND_OBJECT, /* pointer to an object of `object` */
	KIND_POINTER,
	KIND_ADDRESS,    /* an address in a number */
	KIND_BIG_ENDIAN, /* __be16, __be32 */
	KIND_ENUM,       /* named by `name_of` */
	KIND_FLAGS,      /* each bit named by `name_of` */
	KIND_TEXT,       /* an array of char in the structure */
	KIND_GID,
	KIND_GUID,
	KIND_DEVICE, /* pointer to a struct ibv_device: its name */
	KIND_STRUCT, /* pointer to a structure with `fields` */
	KIND_CUSTOM, /* by `decode` */
};

/* A field of a structure, or an argument: a field of the words of a call. */
struct field {
	const char *name;
	enum kind kind;
	uint16_t offset, size;
	enum rules_object object;
	union {
		const char *(*name_of)(int value);
		const struct field *fields;
		void (*decode)(struct decode *d, const struct field *field,
			       const void *at);
	};
	unsigned int bit; /* only when the mask has it; 0: always */
};

enum answer {
	ANSWER_ERRNO,  /* 0 or an errno value */
	ANSWER_MINUS,  /* 0 or -1 and errno */
	ANSWER_COUNT,  /* from 0, or negative */
	ANSWER_POLL,   /* 0, ENOENT when there is nothing, or an errno value */
	ANSWER_OBJECT, /* pointer, NULL and errno */
	ANSWER_POINTER,
	ANSWER_TEXT, /* const char * */
	ANSWER_GUID,
	ANSWER_VOID,
};

#define CALL_WORDS 9 /* arguments; the last is the answer */
#define CALL_RET   8

struct verb {
	const char *name;
	enum answer answer;
	enum rules_object makes, unmakes; /* what, RULES_NONE: nothing */
	const struct field *args;         /* over the words of the call */
	const struct field *out;          /* the same, after success */
	const struct field *out_failed;
	bool polls;    /* may be called in a loop until it has something */
	int64_t empty; /* its answer when there is nothing */
};

/* The rows of table.c, by the name of the verb. */
#define VERB(name) verb_##name
#define VERBS(X)                    \
	X(ibv_get_device_list)      \
	X(ibv_free_device_list)     \
	X(ibv_get_device_name)      \
	X(ibv_get_device_guid)      \
	X(ibv_get_device_index)     \
	X(ibv_open_device)          \
	X(ibv_close_device)         \
	X(ibv_query_device)         \
	X(ibv_query_device_ex)      \
	X(ibv_query_port)           \
	X(ibv_query_gid)            \
	X(ibv_query_gid_ex)         \
	X(ibv_query_gid_table)      \
	X(ibv_query_pkey)           \
	X(ibv_get_pkey_index)       \
	X(ibv_alloc_pd)             \
	X(ibv_dealloc_pd)           \
	X(ibv_reg_mr)               \
	X(ibv_reg_mr_iova)          \
	X(ibv_reg_mr_iova2)         \
	X(ibv_rereg_mr)             \
	X(ibv_dereg_mr)             \
	X(ibv_alloc_mw)             \
	X(ibv_bind_mw)              \
	X(ibv_dealloc_mw)           \
	X(ibv_create_comp_channel)  \
	X(ibv_destroy_comp_channel) \
	X(ibv_create_cq)            \
	X(ibv_create_cq_ex)         \
	X(ibv_resize_cq)            \
	X(ibv_destroy_cq)           \
	X(ibv_get_cq_event)         \
	X(ibv_ack_cq_events)        \
	X(ibv_req_notify_cq)        \
	X(ibv_poll_cq)              \
	X(ibv_start_poll)           \
	X(ibv_next_poll)            \
	X(ibv_end_poll)             \
	X(ibv_create_srq)           \
	X(ibv_create_srq_ex)        \
	X(ibv_modify_srq)           \
	X(ibv_query_srq)            \
	X(ibv_destroy_srq)          \
	X(ibv_post_srq_recv)        \
	X(ibv_create_qp)            \
	X(ibv_create_qp_ex)         \
	X(ibv_modify_qp)            \
	X(ibv_query_qp)             \
	X(ibv_destroy_qp)           \
	X(ibv_post_send)            \
	X(ibv_post_recv)            \
	X(ibv_wr_complete)          \
	X(ibv_wr_abort)             \
	X(ibv_create_ah)            \
	X(ibv_create_ah_from_wc)    \
	X(ibv_destroy_ah)           \
	X(ibv_attach_mcast)         \
	X(ibv_detach_mcast)         \
	X(ibv_get_async_event)      \
	X(ibv_ack_async_event)

#define VERB_DECLARE(name) extern const struct verb verb_##name;
VERBS(VERB_DECLARE)

struct decode {
	struct text *out;
	const uint64_t *word; /* the words of the call */
	const char *prefix;   /* of every name written; NULL: none */
	unsigned int mask;    /* which fields with a `bit` are there */
	size_t budget;        /* lists stop when `out` holds this much */
};

void decode_fields(struct decode *d, const struct field *fields,
		   const void *at);
void decode_field(struct decode *d, const struct field *field, const void *at);
void decode_number(struct decode *d, const char *name, uint64_t value);

void list_send_wr(struct decode *d, const struct field *f, const void *at);
void list_recv_wr(struct decode *d, const struct field *f, const void *at);
void list_bad_send_wr(struct decode *d, const struct field *f, const void *at);
void list_bad_recv_wr(struct decode *d, const struct field *f, const void *at);
void list_batch(struct decode *d, const struct field *f, const void *at);
void list_wc_ex(struct decode *d, const struct field *f, const void *at);
void list_qp_init_ex(struct decode *d, const struct field *f, const void *at);
void list_cq_init_ex(struct decode *d, const struct field *f, const void *at);
void list_wc(struct decode *d, const struct field *f, const void *at);
void list_devices(struct decode *d, const struct field *f, const void *at);
void list_gids(struct decode *d, const struct field *f, const void *at);
void list_qp_attr(struct decode *d, const struct field *f, const void *at);
void list_async(struct decode *d, const struct field *f, const void *at);
void list_gid(struct decode *d, const struct field *f, const void *at);
void list_ah_attr(struct decode *d, const struct field *f, const void *at);

/* Names that rules.h does not have; NULL: none, then the number stands. */
const char *name_qp_state(int value);
const char *name_qp_type(int value);
const char *name_wc_status(int value);
const char *name_wc_opcode(int value);
const char *name_wr_opcode(int value);
const char *name_qp_attr_bit(int bit);
const char *name_access_bit(int bit);
const char *name_mtu(int value);
const char *name_port_state(int value);
const char *name_link_layer(int value);
const char *name_event_type(int value);
const char *name_send_bit(int bit);
const char *name_wc_bit(int bit);
const char *name_wc_ex_bit(int bit);
const char *name_cq_create_bit(int bit);
const char *name_send_op_bit(int bit);
const char *name_srq_bit(int bit);
const char *name_srq_type(int value);
const char *name_gid_type(int value);
const char *name_mig_state(int value);
const char *name_mw_type(int value);
const char *name_atomic_cap(int value);

/* --- one call (call.c) ---------------------------------------------------- */

#define TEXT_ARGS (TRACE_LINE_MAX / 4)
#define TEXT_OUT  (TRACE_LINE_MAX / 2)
#define SLOTS     16
#define HINTS     16
#define HOTS      8 /* a power of two */

/* A place of the data path with one answer, and how often it came. */
struct slot {
	const struct place *place;
	const struct verb *verb;
	const void *object;
	int64_t answer;
	uint64_t count; /* not reported yet */
	unsigned long seq;
	unsigned int generation;
	char *body; /* "args", "ok", "ret", "err", "out" as JSON members */
};

/* What a thread is in; others pass through. */
enum depth {
	DEPTH_PROGRAM, /* neither in the probe nor in a verb */
	DEPTH_COUNTS,  /* in either, and its slots may change */
	DEPTH_CALL,    /* in either, with nothing counted */
};

/* The slot that a call from this address counted in last. */
struct hot {
	const void *address; /* NULL: none */
	struct slot *slot;
};

/*
 * What the probe has for each thread, the thread's own. Only at the end of
 * the program does another look at it (thread.c): when `depth` says that
 * the slots are left alone.
 */
struct thread {
	pid_t tid;
	_Atomic(enum depth) depth;
	bool pending;             /* some slot has a count */
	uint32_t tick, ticks;     /* data path calls until the clock is read */
	uint64_t slept;           /* ms: the clock when it was read last */
	uint64_t since, patience; /* ms: of the oldest count; when to report */
	struct batch *batch;      /* of the last ibv_wr_complete() */
	struct thread *next, **link; /* all threads, under a lock */
	struct hot hot[HOTS];
	struct {
		const void *address;
		const struct place *place;
	} hint[HINTS];
	struct slot slot[SLOTS];
	char args[TEXT_ARGS], out[TEXT_OUT], line[TRACE_LINE_MAX];
};

enum mode {
	MODE_OFF,    /* nobody listens: pass everything through */
	MODE_ENDING, /* the program ends: pass through; reports still go out */
	MODE_STEP,
	MODE_RUN,
	MODE_UNTIL_MARK,
	MODE_UNTIL_FAIL,
	MODE_UNTIL_VERB,
};

struct call {
	struct thread *thread; /* NULL: not reported */
	const struct verb *verb;
	const struct place *place;
	struct text args;
	unsigned long seq;
	unsigned long unmade; /* number of the object that it may destroy */
	bool quiet; /* an empty poll that was seen before: not entered */
	uint64_t word[CALL_WORDS];
};

extern _Atomic(enum mode) probe_mode;
extern _Atomic(const struct verb *) probe_until; /* of MODE_UNTIL_VERB */
/* Counts the changes to MODE_STEP: older slots are void. */
extern atomic_uint probe_generation;

/* --- threads (thread.c) --------------------------------------------------- */

/* The calling thread's, or NULL when it is not to be watched. */
struct thread *thread_get(void);
extern __thread struct thread *thread_self
	__attribute__((tls_model("initial-exec")));
/*
 * Steps into a verb: false, with nothing changed, when the thread is in one
 * or nobody listens any more.
 */
static inline bool thread_enter(struct thread *thread)
{
	if (atomic_load_explicit(&thread->depth, memory_order_relaxed))
		return false;
	atomic_store_explicit(&thread->depth, DEPTH_COUNTS,
			      memory_order_relaxed);
	/* threads_flush() makes this hold between processors too. */
	atomic_signal_fence(memory_order_seq_cst);
	if (LIKELY(atomic_load_explicit(&probe_mode, memory_order_relaxed) >
		   MODE_ENDING))
		return true;
	atomic_store_explicit(&thread->depth, DEPTH_PROGRAM,
			      memory_order_relaxed);
	return false;
}
static inline void thread_leave(struct thread *thread)
{
	atomic_store_explicit(&thread->depth, DEPTH_PROGRAM,
			      memory_order_release);
}
void threads_start(void);
/*
 * At the end of the program, in MODE_ENDING: reports what all threads have
 * counted. A thread that is in a data path call gets some milliseconds to
 * come back from it; one that does not keeps its counts to itself.
 */
void threads_flush(void);
void threads_forked(void); /* in a new process: only this thread is left */

/* --- one call ------------------------------------------------------------- */

/*
 * Around a call: begin reports it and waits if it is time to; end reports
 * its answer. The words of the call stand in call->word before begin. Both
 * leave errno as it was.
 */
void call_begin(struct call *call, const struct verb *verb, struct from from);
void call_end(struct call *call, uint64_t ret);

/* The arguments, as JSON, into call->args. */
void call_args(struct call *call);
/* The members of a ret from "args" to "out"; false: the call failed. */
bool call_body(struct call *call, uint64_t ret, int err, struct text *text);
bool call_stops(const struct verb *verb);
/* 0, or the errno of an answer that says that the call was refused. */
int call_failure(const struct verb *verb, uint64_t ret, int err);
void call_failed(void); /* under "until fail": stop at the next call */

/* --- the data path (quiet.c) ---------------------------------------------- */

/* While nobody steps: reports an answer, or counts it with its likes. The
 * call has its thread, verb and words. */
void quiet_answer(struct call *call, struct from from, int64_t ret);
/* An answer that is to be seen on its own: a completion with an error. */
bool quiet_is_error(const struct call *call, int64_t ret);
/* Now and then: has it been long enough, and has the stepper said pause? */
void quiet_clock(struct thread *thread);
/* True: an empty poll came here before; do not stop before the next. */
bool quiet_known(struct thread *thread, const struct verb *verb,
		 const struct place *place, const void *object);
/* Which slot a call from this address is likely to count in. */
static inline struct hot *quiet_hot(struct thread *thread, const void *address)
{
	uintptr_t bits = (uintptr_t)address;

	return &thread->hot[((bits >> 2) ^ (bits >> 5)) % HOTS];
}
/* An empty poll of a program that is stepped. */
void quiet_poll(struct thread *thread, struct call *call);
/* Reports what was counted; `forget`: and starts anew. */
void quiet_flush(struct thread *thread, bool forget);
/* place_of(), with a short memory per thread. */
const struct place *quiet_place(struct thread *thread, struct from from);

/* --- contexts (context.c) ------------------------------------------------- */

void context_wrap(struct ibv_context *context);
void context_unwrap(struct ibv_context *context);

/* --- extended objects (qp_ex.c, cq_ex.c, wrapped.c) ------------------------
 *
 * Their pointers are replaced when the program gets to see them. Around the
 * destroying call, `_life` before and `_gone` after success: another thread
 * may have a new object at the same address by then.
 */

void qp_ex_wrap(struct ibv_qp_ex *ex);
void cq_ex_wrap(struct ibv_cq_ex *cq, uint64_t wc_flags);

/* An object with replaced pointers; entries are used again, never freed. */
struct wrapped {
	_Atomic(const void *) object; /* NULL: free */
	enum rules_object type;
	unsigned long life; /* differs for each object */
	struct wrapped *next;
};

/* The entry of an object, or NULL. Any thread, no lock. */
struct wrapped *wrapped_find(enum rules_object type, const void *object);
/*
 * The entry of the object, else a free one of `size` bytes: it becomes the
 * object's when `object` is stored in it, after the rest. NULL: no memory.
 * Under the lock.
 */
struct wrapped *wrapped_entry(enum rules_object type, const void *object,
			      size_t size);
void wrapped_lock(void);
void wrapped_unlock(void);
/* 0: the object has no entry. */
unsigned long wrapped_life(enum rules_object type, const void *object);
void wrapped_gone(enum rules_object type, const void *object,
		  unsigned long life);

/* The WRs between ibv_wr_start() and ibv_wr_complete(). */
struct batch_wr {
	struct ibv_send_wr wr; /* its sg_list is not used */
	size_t sge, sges;      /* the first one in the batch, how many */
	bool inlined;          /* they are inline data: no lkey */
};

struct batch {
	struct batch_wr *wr;
	struct ibv_sge *sge;
	size_t wrs, wr_room, sges, sge_room;
	unsigned long more; /* WRs that are too many to keep */
	bool open;          /* setters mean the last of `wr` */
};

void batch_free(struct batch *batch);

/* --- the socket (channel.c) ----------------------------------------------- */

unsigned long channel_seq(void);
/*
 * Sends a line, complete and with its newline. The other side gone: turns
 * the probe off.
 */
void channel_send(const char *line, size_t length);
/* Sends the line and waits for the command to it; changes the mode. */
void channel_stop(const char *line, size_t length);
void channel_lock(void); /* only one thread stops at a time */
void channel_unlock(void);
/* Has the stepper said pause? Does not wait. */
void channel_listen(void);
uint64_t channel_ms(void); /* a coarse clock */
/* The next definition of a name after the probe's own; NULL: none. */
void *channel_next(const char *name);

#endif
