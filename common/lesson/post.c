/* SPDX-License-Identifier: 0BSD */
/*
 * Posting, and waiting for what comes of it, for lessons about something
 * else. Lesson 05 fills the work requests by hand.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <poll.h>
#include <time.h>

#define WAIT_SECONDS 10

int post_recv(struct ibv_qp *qp, uint64_t wr_id, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { 0 };
	struct ibv_recv_wr wr = { .wr_id = wr_id };
	struct ibv_recv_wr *bad;
	int err;

	if (mr) {
		sge.addr = (uintptr_t)mr->addr;
		sge.length = (uint32_t)mr->length;
		sge.lkey = mr->lkey;
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	err = ibv_post_recv(qp, &wr, &bad);
	if (err)
		report(err, "ibv_post_recv(wr_id=%d)", (int)wr_id);
	return err;
}

int post_empty_send(struct ibv_qp *qp, uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags };
	struct ibv_send_wr *bad;
	int err;

	err = ibv_post_send(qp, &wr, &bad);
	if (err)
		report(err, "ibv_post_send(SEND, wr_id=%d)", (int)wr_id);
	return err;
}

int write_and_wait(struct ibv_qp *qp, const struct ibv_mr *from,
		   const struct ibv_mr *to, size_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->addr,
		.length = (uint32_t)length,
		.lkey = from->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to->addr,
			     .rkey = to->rkey },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int err;

	err = ibv_post_send(qp, &wr, &bad);
	if (err) {
		report(err, "ibv_post_send(RDMA_WRITE, %zu bytes, rkey=0x%x)",
		       length, to->rkey);
		return -1;
	}
	if (wait_completion(qp->send_cq, &wc, WAIT_SECONDS) != 1) {
		report(ETIMEDOUT, "no completion of an RDMA WRITE");
		return -1;
	}
	return wc.status;
}

double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int wait_completion(struct ibv_cq *cq, struct ibv_wc *wc, int seconds)
{
	/* A nap leaves the processor to a software device's own thread. */
	const struct timespec nap = { .tv_nsec = 50 * 1000 };
	double end = seconds_now() + seconds;

	for (;;) {
		int count = ibv_poll_cq(cq, 1, wc);

		if (count)
			return count < 0 ? -1 : 1;
		if (seconds_now() > end)
			return 0;
		nanosleep(&nap, NULL);
	}
}

bool readable_within(int fd, int milliseconds)
{
	struct pollfd events = { .fd = fd, .events = POLLIN };

	return poll(&events, 1, milliseconds) == 1;
}

int get_completion(struct ibv_cq *cq, struct ibv_wc *wc, const char *whose)
{
	int count = wait_completion(cq, wc, WAIT_SECONDS);

	if (count != 1) {
		report(count ? EIO : ETIMEDOUT, "ibv_poll_cq(%s)", whose);
		return EIO;
	}
	say("  %s: wr_id %d, %s", whose, (int)wc->wr_id,
	    ibv_wc_status_str(wc->status));
	return 0;
}

int expect_success(struct ibv_cq *cq, const char *whose)
{
	struct ibv_wc wc;

	if (get_completion(cq, &wc, whose))
		return EIO;
	if (wc.status == IBV_WC_SUCCESS)
		return 0;
	report_wc(&wc, whose);
	return EIO;
}
