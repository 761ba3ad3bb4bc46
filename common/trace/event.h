/* SPDX-License-Identifier: MIT */
/*
 * One event, parsed from its line (format.h). Nothing here calls a verb; an
 * event is immutable once parsed and may be read from any thread.
 */
#ifndef TRACE_EVENT_H
#define TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum event_kind {
	EVENT_HELLO,
	EVENT_ENTER,
	EVENT_RET,
	EVENT_MARK,
	EVENT_BYE,
};

/*
 * A named value as text: an object id, number, constant or pointer as it
 * stood in the event; "NULL" for a JSON null. Objects and arrays are
 * flattened: "cap.max_send_wr", "wc[0].status".
 */
struct event_field {
	char *name;
	char *value;
};

struct event_fields {
	struct event_field *field;
	int count;
};

struct event {
	enum event_kind kind;
	unsigned long seq;
	pid_t pid; /* hello */
	pid_t tid;
	bool stop;  /* the program waits for a command */
	char *call; /* enter, ret: "ibv_alloc_pd"; mark: the step's id */
	char *exe;  /* hello */
	struct event_fields args; /* enter, ret */
	struct event_fields out;  /* ret */
	/* ret: "pd0", "NULL", "16"; NULL: the call returns nothing. */
	char *ret;
	bool ok;
	int err;
	unsigned long count; /* ret: how many calls it stands for, from 1 */
	char *file;          /* NULL: unknown */
	char *dir;           /* what `file` is relative to; NULL: unknown */
	int line;
	char *func; /* NULL: unknown */
};

/*
 * Parses one line of `length` bytes (the newline is optional). NULL when it
 * is not an event of this version; *why then says what is wrong with it, in
 * words for a person, in a string that the caller frees (NULL: no memory);
 * `why` may be NULL. Takes any bytes; what it allocates is bounded by a small
 * multiple of TRACE_LINE_MAX.
 */
struct event *event_parse(const char *line, size_t length, char **why);
void event_free(struct event *event);

/* The value of a field, or NULL. */
const char *event_field(const struct event_fields *fields, const char *name);

/*
 * The event as one line for people, without its place:
 *   "ibv_alloc_pd(ctx0) = pd0"
 *   "ibv_create_cq(ctx0, cqe=16, comp_vector=0) = cq0, cqe=31"
 *   "ibv_dealloc_pd(pd0) = 16 EBUSY"
 *   "ibv_poll_cq(cq0, 1) = 0  x512"
 *   "ibv_poll_cq(cq0, 1) = 1: wr_id=1 SUCCESS"
 *   "ibv_post_send(qp0, wr_id=1 SEND 64 B) = 0"
 *   "ibv_get_device_list() = 0x..b7fe0: soft0"
 *   "ibv_free_device_list(list=0x..b7fe0)"
 * Object arguments stand bare, others as name=value; NULL ones are left out,
 * and pointers where a list of requests or completions says more. Of what the
 * call handed back, the first few. Constants are without the prefix of their
 * kind, pointers with their last digits only: the event has them whole.
 * Control characters become '?'.
 * Returns a string the caller frees; NULL when memory is out.
 */
char *event_text(const struct event *event);

#endif
