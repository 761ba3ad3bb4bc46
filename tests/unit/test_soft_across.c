/* SPDX-License-Identifier: MIT */
/*
 * Windows, remote invalidation and multicast between two processes. The
 * child opens the device after fork(), as any second process would; what it
 * sees it tells over a socket, and the parent judges.
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include "tests/unit/soft_fixture.h"

struct hello {
	uint32_t qpn, rkey;
	uint64_t addr;
};

/* The child is the one that comes through the window. */
struct seen {
	enum ibv_wc_status write, send_inv, write_again, multicast;
};

static const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };

static void tell(int fd, const void *what, size_t size)
{
	if (write(fd, what, size) != (ssize_t)size)
		_exit(90);
}

/* Ten seconds at most: the other one may have failed. */
static void hear(int fd, void *what, size_t size)
{
	struct timeval limit = { .tv_sec = 10 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (recv(fd, what, size, MSG_WAITALL) != (ssize_t)size)
		_exit(91);
}

/* A pair is made, its end a is connected to the other process's end a. */
static struct hello meet(struct pair *p, int fd, struct hello mine)
{
	struct hello theirs;

	mine.qpn = p->a.qp->qp_num;
	mine.addr = (uintptr_t)p->a.buf;
	tell(fd, &mine, sizeof(mine));
	hear(fd, &theirs, sizeof(theirs));
	p->a.attr.dest_qp_num = theirs.qpn;
	p->a.attr.timeout = 17;
	p->a.attr.retry_cnt = 7;
	end_connect(p, &p->a);
	return theirs;
}

static void open_datagrams(struct pair *u)
{
	pair_init(u, IBV_QPT_UD);
	pair_open(u);
}

static enum ibv_wc_status send_to_group(struct pair *u)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .dgid = group } };
	struct ibv_ah *ah = ibv_create_ah(u->a.pd, &attr);
	struct ibv_sge sge = sge_of(&u->a, 0, 7);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.ud = { ah, 0xffffff, QKEY },
	};
	struct ibv_wc wc;

	strcpy(u->a.buf, "to all");
	post(&u->a, &wr);
	wc = wait_wc(u->a.cq);
	ibv_destroy_ah(ah);
	return wc.status;
}

static void child(int fd)
{
	struct seen seen;
	struct hello peer;
	struct pair p, u;
	char go;

	alarm(60);
	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	peer = meet(&p, fd, (struct hello){ 0 });
	strcpy(p.a.buf, "written");
	struct ibv_sge sge = sge_of(&p.a, 0, 8);
	struct ibv_send_wr write = {
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { peer.addr, peer.rkey },
	};
	struct ibv_send_wr send = write;
	send.opcode = IBV_WR_SEND_WITH_INV;
	send.invalidate_rkey = peer.rkey;
	hear(fd, &go, 1);
	post(&p.a, &write);
	seen.write = wait_wc(p.a.cq).status;
	post(&p.a, &send);
	seen.send_inv = wait_wc(p.a.cq).status;
	post(&p.a, &write);
	seen.write_again = wait_wc(p.a.cq).status;

	open_datagrams(&u);
	seen.multicast = send_to_group(&u);
	tell(fd, &seen, sizeof(seen));
	pair_close(&u);
	pair_close(&p);
	_exit(0);
}

/* End a binds the window that the child was told of. */
static void open_window(struct pair *p, struct ibv_mw *mw, struct ibv_mr *mr,
			uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw,
			     .rkey = rkey,
			     .bind_info = { mr, (uintptr_t)p->a.buf, 64,
					    IBV_ACCESS_REMOTE_WRITE } },
	};

	post(&p->a, &wr);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
}

static void expect_invalidation(struct pair *p, uint32_t rkey)
{
	struct ibv_wc wc = wait_wc(p->a.cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_string_equal(p->a.buf, "written");
}

static void expect_multicast(struct end *end)
{
	struct ibv_wc wc = wait_wc(end->cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 47);
	assert_string_equal(end->buf + 40, "to all");
	assert_int_equal(ibv_detach_mcast(end->qp, &group, 0), 0);
}

static void parent(int fd)
{
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct pair p, u;
	struct seen seen;
	uint32_t rkey;

	pair_init(&p, IBV_QPT_RC);
	pair_make(&p);
	mr = ibv_reg_mr(p.a.pd, p.a.buf, BUFFER,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(p.a.pd, IBV_MW_TYPE_2);
	assert_non_null(mr);
	assert_non_null(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	meet(&p, fd, (struct hello){ .rkey = rkey });
	open_window(&p, mw, mr, rkey);
	post_receive(&p.a, 4096, 64, 5);
	/* Ready for the multicast, too: both ends are in the group. */
	open_datagrams(&u);
	for (int i = 0; i < 2; i++) {
		struct end *end = i ? &u.b : &u.a;

		assert_int_equal(ibv_attach_mcast(end->qp, &group, 0), 0);
		post_receive(end, 0, 128, 1);
	}
	tell(fd, "", 1);
	expect_invalidation(&p, rkey);
	hear(fd, &seen, sizeof(seen));
	assert_int_equal(seen.write, IBV_WC_SUCCESS);
	assert_int_equal(seen.send_inv, IBV_WC_SUCCESS);
	assert_int_equal(seen.write_again, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(seen.multicast, IBV_WC_SUCCESS);
	expect_multicast(&u.a);
	expect_multicast(&u.b);
	pair_close(&u);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

static void windows_and_groups(void **state)
{
	int fd[2], status;
	pid_t other;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	other = fork();
	assert_true(other >= 0);
	if (!other) {
		close(fd[0]);
		child(fd[1]);
	}
	close(fd[1]);
	parent(fd[0]);
	close(fd[0]);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_and_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
