/* SPDX-License-Identifier: MIT */
/*
 * What the soak's files share: its wishes, its one state per process, and how
 * it ends when something is wrong.
 */
#ifndef SOAK_H
#define SOAK_H

#include <stddef.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

#include "tests/soak/plan.h"

#define WINDOW   16u
#define MOST_QPS 1024u
#define ACCESS                                             \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

extern struct wish {
	uint64_t messages, seed;
	unsigned int qps, limit;
	int gid_index;
	const char *device;
} wish;

/* One direction of a QP, as one of its ends sees it. */
struct lane {
	struct plan plan;
	struct message next; /* the plan's next, not begun yet */
	struct message window[WINDOW];
	uint64_t head, tail; /* begun; finished */
	uint64_t seen;       /* of what comes in: all before it has arrived */
	char *area;
};

/* Per direction (of side 0, of side 1) and QP; messages, always from 0. */
struct shared {
	uint64_t ready[2][MOST_QPS]; /* the receiver has made ready */
	uint64_t done[2][MOST_QPS];  /* the sender knows to be done */
	int failed;
};

struct address {
	uint64_t addr;
	uint32_t rkey;
	uint16_t lid;
	union ibv_gid gid;
	uint32_t qpn[MOST_QPS];
};

struct figures {
	uint64_t kind[KINDS], bytes;
};

extern struct soak {
	int side, fd;
	pid_t child;
	double start, told;
	struct shared *shared;
	struct ibv_context *context;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *memory;
	struct ibv_qp *qp[MOST_QPS];
	struct lane out[MOST_QPS], in[MOST_QPS];
	struct address own, peer;
	struct figures figures;
} soak;

/* Says why on stderr, if the other process has not done so, and exits. */
void fail(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#define CHECK(call)                                            \
	do {                                                   \
		int err_ = (call);                             \
		if (err_)                                      \
			fail("%s: %s", #call, strerror(err_)); \
	} while (0)

/* soak.c: over the socket to the other process. */
void tell(const void *what, size_t size);
void hear(void *what, size_t size);
void meet(void); /* both have come here */

/* device.c: all objects, and their QPs connected to the other process's. */
void make_all(void);
void destroy_all(void);

/* lanes.c: one turn of everything; *did: something. Messages that are left. */
void lanes_init(void);
uint64_t turn(bool *did);

#endif
