/* SPDX-License-Identifier: 0BSD */
/*
 * What every lesson shares, so that a lesson itself holds verbs calls and
 * little else: options, the choice of the device, step marks, reports of
 * refusals and failures, fork-and-watch, and the data that two ends exchange
 * to connect.
 *
 * Knows verbs only. Everything is for the program's main thread, except
 * say() and report(), which any thread may call.
 */
#ifndef LESSON_H
#define LESSON_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <infiniband/verbs.h>

/*
 * Reads the options (--device, --port, --gid-index, --auto, --list-steps,
 * --from, --lang, --help, --version). Ends the program for --help, --version
 * and --list-steps with status 0, for a wrong option with status 2 and one
 * line that says what was wrong and what there is. `name` is the lesson's,
 * "05_qp"; `about` its one-line subject, for --help.
 */
void lesson_begin(const char *name, const char *about, int argc, char **argv);

/*
 * The lesson's last call: says that everything was destroyed, or that the
 * lesson failed. Returns main's status: 0, 1 once report() was called, or 2
 * when an option named something that the device does not have.
 */
int lesson_end(void);

/*
 * Marks a step. In a terminal it prints the step's section of the chapter
 * and waits for Enter; without one it prints and goes on; under a stepper
 * (which fills the hook verbs_mark(), see step.c) it prints nothing. The id
 * is a literal: "create-qp".
 */
/* clang-format off */
#define step(id)                                                              \
	do {                                                                  \
		static const struct lesson_mark mark_                         \
			__attribute__((section("lesson_marks"), used,         \
				       aligned(sizeof(void *)))) = {          \
				id, __FILE__, __LINE__ };                     \
		lesson_step(&mark_);                                          \
	} while (0)
/* clang-format on */

struct lesson_mark {
	const char *id;
	const char *file;
	long line;
} __attribute__((aligned(sizeof(void *))));

void lesson_step(const struct lesson_mark *mark);

/* One line of findings, printf-like; silent while --from runs up to a step. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Reports an unexpected failure: the text (the call and what it was given),
 * the errno's name and text, and a hint where one is known. `err` is a
 * positive errno. The lesson ends with status 1, but goes on to its teardown.
 *
 *	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
 *	if (!cq) {
 *		report(errno, "ibv_create_cq(cqe=%d)", 16);
 *		goto dealloc_pd;
 *	}
 */
void report(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reports a completion that should have been IBV_WC_SUCCESS. */
void report_wc(const struct ibv_wc *wc, const char *what);

/*
 * A call that is meant to be refused: runs it, shows the call's text and the
 * device's real answer, and goes on. `expected` is the errno that the rules
 * name; another one is shown with a note that devices differ, and is no
 * failure. A call that is not refused is one (report()).
 * Takes calls that return an errno value (ibv_dealloc_pd), calls that return
 * -1 and set errno (ibv_query_gid), and calls that return a pointer
 * (ibv_create_qp; assign inside, to destroy what came when it should not
 * have). Gives the errno answered; 0 if it was not refused.
 *
 *	refused(EBUSY, ibv_dealloc_pd(pd));
 *	refused(EINVAL, qp = ibv_create_qp(pd, &init));
 */
/* clang-format off */
#define refused(expected, call)                                               \
	({                                                                    \
		errno = 0;                                                    \
		__auto_type answer_ = (call);                                 \
		int err_ = _Generic(answer_,                                  \
			int: lesson_answer((int)(intptr_t)answer_),           \
			default: (intptr_t)answer_ ? 0 : lesson_errno());     \
		lesson_refused(expected, err_, #call);                        \
		err_;                                                         \
	})
/* clang-format on */

int lesson_errno(void);        /* errno, or EIO where the device set none */
int lesson_answer(int answer); /* an errno value, of one or of -1 */
void lesson_refused(int expected, int err, const char *call);

/* "EBUSY (Device or resource busy)"; a static buffer per thread. */
const char *errno_text(int err);

/*
 * Opens the device of the options: --device NAME or GUID; else the first real
 * device with an active port; else soft0, and a line that says so and why.
 * The port and the GID index are settled with it (--port; --gid-index, else
 * the first RoCE v2 GID, IPv4-mapped before link-local; 0 on InfiniBand).
 * NULL: nothing could be opened, and it was reported: the lesson ends with
 * `return lesson_end();`. The caller closes it.
 */
struct ibv_context *lesson_open(void);

/*
 * For a lesson that walks the list itself: lesson_choose() gives the device
 * that lesson_open() would open (NULL: none, reported), lesson_settle()
 * settles port and GID index for a context that was opened from it (0, or an
 * errno, reported).
 */
struct ibv_device *lesson_choose(struct ibv_device **list);
int lesson_settle(struct ibv_context *context);

/* What --device said, or NULL; and whether a device is of that name or GUID. */
const char *lesson_device_name(void);
bool lesson_device_matches(struct ibv_device *device, const char *wanted);

uint8_t lesson_port(void);
uint8_t lesson_gid_index(void);

/*
 * True when QPs of this device connect by ibv_modify_qp(). iWARP ones do not
 * (they need the connection manager): then says so, and gives false; the
 * lesson skips what needs a connection.
 */
bool lesson_can_connect(struct ibv_context *context);

/*
 * What one end must know of the other to connect: exchanged out of band,
 * inside one program by copying, else by peer_exchange().
 */
struct endpoint {
	uint32_t qp_num;
	uint32_t psn; /* 24 bits: the first packet sequence number it sends */
	uint16_t lid; /* InfiniBand; 0 on Ethernet */
	union ibv_gid gid; /* RoCE: the address of the port */
	enum ibv_mtu mtu;
	/* Memory that the peer may reach by RDMA; 0 where there is none. */
	uint64_t addr;
	uint32_t rkey;
};

/*
 * Fills `end` for `qp` from the port in use, with no memory. 0, or an errno,
 * reported.
 */
int endpoint_of(struct ibv_qp *qp, struct endpoint *end);

/*
 * RC only. RESET to RTS towards `peer`, with remote rights `access`, and
 * retry settings that answer within a second. 0, or the errno of the
 * transition that failed, which was reported. Lesson 05 does the same by
 * hand, attribute by attribute.
 */
int connect_qp(struct ibv_qp *qp, const struct endpoint *self,
	       const struct endpoint *peer, unsigned int access);

/* connect_qp() both ways; once where a QP is to be its own peer. */
int connect_pair(struct ibv_qp *a, struct ibv_qp *b, unsigned int access);

/*
 * For lessons about something else: an RC QP whose queues take `depth`
 * requests of one piece each, with `cq` for both; NULL, reported, where there
 * is none. Lesson 05 creates its own by hand.
 */
struct ibv_qp *create_rc_qp(struct ibv_pd *pd, struct ibv_cq *cq, int depth);

/*
 * A receive into the whole of an MR; without one, for a message of no bytes.
 * A SEND of no bytes; `flags` are IBV_SEND_*. Each 0, or the errno, reported.
 */
int post_recv(struct ibv_qp *qp, uint64_t wr_id, const struct ibv_mr *mr);
int post_empty_send(struct ibv_qp *qp, uint64_t wr_id, unsigned int flags);

/*
 * One RDMA WRITE of the first `length` bytes of `from` to the start of `to`,
 * through a connected QP. Waits for its completion and gives its status; -1,
 * reported, when there was none. A status other than success ends the
 * connection.
 */
int write_and_wait(struct ibv_qp *qp, const struct ibv_mr *from,
		   const struct ibv_mr *to, size_t length);

/*
 * Polls until one completion arrives: 1; 0 after `seconds` without one; -1
 * when polling failed. Neither is reported: the caller knows what it means.
 */
int wait_completion(struct ibv_cq *cq, struct ibv_wc *wc, int seconds);

/*
 * Waits for one completion, of any status, and says it: 0; EIO, reported,
 * when none came within ten seconds. `whose` is the queue pair's name.
 */
int get_completion(struct ibv_cq *cq, struct ibv_wc *wc, const char *whose);

/* The same for one that must be IBV_WC_SUCCESS; EIO, reported, if not. */
int expect_success(struct ibv_cq *cq, const char *whose);

/* Whether there is something to read, now or within the time. */
bool readable_within(int fd, int milliseconds);

double seconds_now(void); /* of a clock that only goes forward */

/*
 * `count` pages of zeroed, page-aligned memory; NULL when there is none,
 * reported. Freed with free().
 */
void *page_alloc(size_t count);
size_t page_bytes(void); /* the size of one page */

/*
 * Runs `body(arg)` in a forked child and watches it: for what would hang or
 * is undefined behaviour. `status` is then what body returned. After
 * `seconds` the child is killed; nothing of it is left when this returns.
 * A device opened before belongs to the parent: the child opens its own.
 */
enum child_end { CHILD_EXITED, CHILD_KILLED, CHILD_TIMED_OUT };
struct child_result {
	enum child_end end;
	int status; /* what body returned, or the signal that killed it */
};
struct child_result run_limited(int seconds, int (*body)(void *), void *arg);

/*
 * Limits, to see a call fail. limit_locked(): no more than `pages` of memory
 * may be locked, for good; for a child. limit_files(): no more than `more`
 * files may be opened; setrlimit(RLIMIT_NOFILE, usual) lifts that. 0, or the
 * errno, not reported.
 */
int limit_locked(size_t pages);
int limit_files(int more, struct rlimit *usual);

/* What open() would return: files that stay open show in it. */
int lowest_free_fd(void);

/*
 * A lesson's run in two terminals, or on two hosts: one end a server, the
 * other its client, with a TCP connection beside the RDMA one. A lesson that
 * has steps whose ids begin with "two-" takes the options for it, --server
 * [PORT] and --connect HOST[:PORT].
 */
bool lesson_in_two(void); /* one of the options was given */
bool lesson_is_server(void);

/*
 * Server: waits for a client, ten minutes at most. Client: connects. Then
 * each greets the other, so that a stranger is found out within five seconds.
 * A socket, which the caller closes; -1, reported.
 */
int peer_meet(void);

/*
 * Tells the peer `self` and fills `peer` with what it tells, in a fixed form
 * in network byte order (exchange.c). 0, or an errno, reported: also when
 * the two could not connect, and when `peer` makes no sense.
 */
int peer_exchange(int fd, const struct endpoint *self, struct endpoint *peer);

/*
 * Returns when the peer has come here, too: 0; an errno, reported, when it
 * has gone, or has not come within ten minutes: somebody may be reading.
 */
int peer_barrier(int fd);

#endif
