/* SPDX-License-Identifier: MIT */
/*
 * QPs of several processes: every operation, many processes, one that is
 * killed, another user's, and folders that soft0 refuses to use. This process
 * never opens the device; its children do, each with a plan of its own. They
 * find each other's addresses in a page that they share.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "tests/unit/soft_fixture.h"

#define MOST     8
#define MESSAGES 40
#define LONGEST  70000
#define NOBODY   65534

struct place {
	uint32_t qpn[MOST]; /* the QP for each of the others */
	uint64_t addr;
	uint32_t rkey;
	int ready, done;
};

static struct place *places; /* shared by all; `ready`, `done` are atomic */
static char folder[64];

/* --- children ----------------------------------------------------------- */

static void wait_for(const int *flag)
{
	double limit = seconds() + 60;

	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
		if (seconds() > limit)
			fail_msg("another process does not come");
		sched_yield();
	}
}

static void set(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

typedef void plan_fn(int me, int all);

static pid_t start(plan_fn *plan, int me, int all)
{
	pid_t child = fork();

	assert_int_not_equal(child, -1);
	if (!child) {
		plan(me, all);
		exit(0);
	}
	return child;
}

static void expect_good_end(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void run_all(plan_fn *plan, int all)
{
	pid_t child[MOST];

	memset(places, 0, MOST * sizeof(*places));
	for (int i = 0; i < all; i++)
		child[i] = start(plan, i, all);
	for (int i = 0; i < all; i++)
		expect_good_end(child[i]);
}

static int files_left(void)
{
	DIR *list = opendir(folder);
	int count = 0;

	assert_non_null(list);
	for (struct dirent *entry; (entry = readdir(list));)
		count += entry->d_name[0] != '.';
	closedir(list);
	return count;
}

/* One end, of which `places[me]` tells; connected to the QP of `peer`. */
static void meet(struct pair *p, int me, int peer)
{
	end_make(p, &p->a);
	address(p->context, &p->a.attr.ah_attr);
	places[me].qpn[peer] = p->a.qp->qp_num;
	places[me].addr = (uintptr_t)p->a.buf;
	places[me].rkey = p->a.mr->rkey;
	set(&places[me].ready);
	wait_for(&places[peer].ready);
	p->a.attr.dest_qp_num = places[peer].qpn[me];
	p->a.attr.timeout = 14;
	p->a.attr.retry_cnt = 7;
}

static void end_pair(struct pair *p)
{
	end_close(&p->a);
	assert_int_equal(ibv_close_device(p->context), 0);
}

static void post_remote(struct pair *p, enum ibv_wr_opcode opcode, int peer,
			uint32_t size, uint32_t far)
{
	struct ibv_sge sge = sge_of(&p->a, 0, size);
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.imm_data = 7,
		.wr.rdma = { places[peer].addr + far, places[peer].rkey },
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic = (__typeof__(wr.wr.atomic)){
			.remote_addr = places[peer].addr + far,
			.rkey = places[peer].rkey,
			.compare_add = 5,
		};
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
}

/* --- two ---------------------------------------------------------------- */

static void fill(char *buf, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = (char)(seed * 31 + i * 7 + (i >> 8));
}

static bool is_filled(const char *buf, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		if (buf[i] != (char)(seed * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

/* The active one; the other only has memory and two receives. */
static void operate(struct pair *p)
{
	const uint32_t half = BUFFER / 2, size = half - 3;

	fill(p->a.buf, size, 1);
	post_remote(p, IBV_WR_RDMA_WRITE, 1, size, half);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	memset(p->a.buf, 0, size);
	post_remote(p, IBV_WR_RDMA_READ, 1, size, half);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	assert_true(is_filled(p->a.buf, size, 1));
	for (uint64_t i = 0; i < 3; i++) {
		post_remote(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8, 8);
		expect_wc(p->a.cq, IBV_WC_SUCCESS);
		assert_int_equal(*(uint64_t *)p->a.buf, 5 * i);
	}
	fill(p->a.buf, size, 2);
	post_remote(p, IBV_WR_SEND, 1, size, 0);
	post_remote(p, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 100, 0);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	expect_wc(p->a.cq, IBV_WC_SUCCESS);
	/* A fault there is told here. */
	post_remote(p, IBV_WR_RDMA_WRITE, 1, 8, BUFFER);
	expect_wc(p->a.cq, IBV_WC_REM_ACCESS_ERR);
}

static void every_operation(int me, int all)
{
	struct pair p;
	struct ibv_wc wc;

	(void)all;
	pair_init(&p, IBV_QPT_RC);
	meet(&p, me, 1 - me);
	to_init(&p, &p.a);
	if (me) {
		post_receive(&p.a, BUFFER / 2, BUFFER / 2, 1);
		post_receive(&p.a, 0, 64, 2);
	}
	to_rtr(&p, &p.a);
	to_rts(&p, &p.a);
	set(&places[me].done);
	wait_for(&places[1 - me].done);
	if (me) {
		wc = wait_wc(p.a.cq);
		assert_int_equal(wc.byte_len, BUFFER / 2 - 3);
		assert_true(is_filled(p.a.buf + BUFFER / 2, wc.byte_len, 2));
		wc = wait_wc(p.a.cq);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.imm_data, 7);
		assert_int_equal(wait_event(p.context),
				 IBV_EVENT_QP_ACCESS_ERR);
	} else {
		operate(&p);
	}
	end_pair(&p);
}

static void two_processes(void **state)
{
	(void)state;
	run_all(every_operation, 2);
	assert_int_equal(files_left(), 0);
}

/* --- many --------------------------------------------------------------- */

struct crowd {
	struct pair p[MOST];
	int sent[MOST], got[MOST], acked[MOST];
};

static size_t size_of(int from, int to, int number)
{
	unsigned int seed = (unsigned int)(from * 64 + to * 8 + number * 512);

	return (seed * 2654435761u >> 8) % LONGEST;
}

/* Receives go into the upper half, sends out of the lower. */
static void move(struct crowd *c, int me, int peer)
{
	struct pair *p = &c->p[peer];
	struct ibv_wc wc;

	if (c->sent[peer] < MESSAGES && c->sent[peer] == c->acked[peer]) {
		size_t size = size_of(me, peer, c->sent[peer]);

		fill(p->a.buf, size, (unsigned int)c->sent[peer]++);
		post_remote(p, IBV_WR_SEND, peer, (uint32_t)size, 0);
	}
	if (ibv_poll_cq(p->a.cq, 1, &wc) != 1)
		return;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	if (!(wc.opcode & IBV_WC_RECV)) {
		c->acked[peer]++;
		return;
	}
	assert_int_equal(wc.byte_len, size_of(peer, me, c->got[peer]));
	assert_true(is_filled(p->a.buf + BUFFER / 2, wc.byte_len,
			      (unsigned int)c->got[peer]++));
	if (c->got[peer] < MESSAGES)
		post_receive(&p->a, BUFFER / 2, LONGEST, 1);
}

static bool all_moved(const struct crowd *c, int me, int all)
{
	for (int peer = 0; peer < all; peer++)
		if (peer != me &&
		    (c->got[peer] < MESSAGES || c->acked[peer] < MESSAGES))
			return false;
	return true;
}

static void all_to_all(int me, int all)
{
	static struct crowd c;

	for (int peer = 0; peer < all; peer++) {
		pair_init(&c.p[peer], IBV_QPT_RC);
		/* All of them within 8 MiB, an ordinary limit. */
		c.p[peer].a.registered = BUFFER / 2 + LONGEST;
		end_make(&c.p[peer], &c.p[peer].a);
		address(c.p[peer].context, &c.p[peer].a.attr.ah_attr);
		places[me].qpn[peer] = c.p[peer].a.qp->qp_num;
	}
	set(&places[me].ready);
	for (int peer = 0; peer < all; peer++) {
		struct end *end = &c.p[peer].a;

		wait_for(&places[peer].ready);
		end->attr.dest_qp_num = places[peer].qpn[me];
		end->attr.timeout = 14;
		end->attr.retry_cnt = 7;
		to_init(&c.p[peer], end);
		post_receive(end, BUFFER / 2, LONGEST, 1);
		to_rtr(&c.p[peer], end);
		to_rts(&c.p[peer], end);
	}
	set(&places[me].done);
	for (int peer = 0; peer < all; peer++)
		wait_for(&places[peer].done);
	while (!all_moved(&c, me, all))
		for (int peer = 0; peer < all; peer++)
			if (peer != me)
				move(&c, me, peer);
	/* Nobody goes before all have their ACKs. */
	__atomic_store_n(&places[me].ready, 2, __ATOMIC_RELEASE);
	for (int peer = 0; peer < all; peer++)
		while (__atomic_load_n(&places[peer].ready, __ATOMIC_ACQUIRE) !=
		       2)
			sched_yield();
	for (int peer = 0; peer < all; peer++)
		end_pair(&c.p[peer]);
}

static void many_processes(void **state)
{
	(void)state;
	run_all(all_to_all, MOST);
	assert_int_equal(files_left(), 0);
}

/* --- one is killed ------------------------------------------------------ */

static void victim(int me, int all)
{
	struct pair p;

	(void)all;
	pair_init(&p, IBV_QPT_RC);
	meet(&p, me, 0);
	end_connect(&p, &p.a);
	set(&places[me].done);
	for (;;)
		pause();
}

static void survivor(int me, int all)
{
	double start;
	struct pair p;

	(void)all;
	pair_init(&p, IBV_QPT_RC);
	meet(&p, me, 1);
	p.a.attr.timeout = 14; /* 67 ms */
	p.a.attr.retry_cnt = 2;
	end_connect(&p, &p.a);
	wait_for(&places[1].done);
	post_remote(&p, IBV_WR_RDMA_WRITE, 1, 4096, 0);
	expect_wc(p.a.cq, IBV_WC_SUCCESS);
	set(&places[me].done);
	wait_for(&places[2].done);
	/* More than a ring holds: the full ring must not keep us either. */
	start = seconds();
	post_remote(&p, IBV_WR_RDMA_WRITE, 1, BUFFER, 0);
	expect_wc(p.a.cq, IBV_WC_RETRY_EXC_ERR);
	assert_true(seconds() - start >= 3 * 0.067);
	assert_true(seconds() - start < 10);
	end_pair(&p);
}

static void killed_peer(void **state)
{
	pid_t dying, living;

	(void)state;
	memset(places, 0, MOST * sizeof(*places));
	dying = start(victim, 1, 2);
	living = start(survivor, 0, 2);
	wait_for(&places[0].done);
	assert_int_equal(kill(dying, SIGKILL), 0);
	waitpid(dying, NULL, 0);
	set(&places[2].done);
	expect_good_end(living);
	/* What it left the next ones take away. */
	run_all(every_operation, 2);
	assert_int_equal(files_left(), 0);
}

/* --- another user ------------------------------------------------------- */

static void become(uid_t user)
{
	assert_int_equal(setresgid(user, user, user), 0);
	assert_int_equal(setresuid(user, user, user), 0);
}

/* In the default place: that is where strangers would meet. */
static void honest(int me, int all)
{
	struct pair p;

	(void)all;
	become(NOBODY - 1);
	unsetenv("SOFTVERBS_DIR");
	pair_init(&p, IBV_QPT_RC);
	meet(&p, me, 1);
	end_connect(&p, &p.a);
	set(&places[me].done);
	wait_for(&places[1].done);
	assert_int_equal(p.a.buf[0], 0);
	assert_int_equal(state_of(&p.a), IBV_QPS_RTS);
	end_pair(&p);
}

static void stranger(int me, int all)
{
	char home[80];
	struct pair p;

	(void)all;
	become(NOBODY - 2);
	unsetenv("SOFTVERBS_DIR");
	pair_init(&p, IBV_QPT_RC);
	meet(&p, me, 0);
	/* It knows all that a peer would tell it, and the GID too. */
	p.a.attr.timeout = 10;
	p.a.attr.retry_cnt = 1;
	end_connect(&p, &p.a);
	wait_for(&places[0].done);
	memset(p.a.buf, 1, 64);
	post_remote(&p, IBV_WR_RDMA_WRITE, 0, 64, 0);
	expect_wc(p.a.cq, IBV_WC_RETRY_EXC_ERR);
	snprintf(home, sizeof(home), "/dev/shm/softverbs-%d", NOBODY - 1);
	assert_int_equal(open(home, O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	snprintf(home, sizeof(home), "/dev/shm/softverbs-%d/%03x", NOBODY - 1,
		 places[0].qpn[1] >> 12);
	assert_int_equal(open(home, O_RDWR), -1);
	assert_int_equal(errno, EACCES);
	end_pair(&p);
	set(&places[me].done);
}

static void another_user(void **state)
{
	pid_t child[2];

	(void)state;
	if (geteuid()) {
		/* Not skip(): in cmocka 1.1.5's TAP that is a "not ok". */
		print_message("# skipped: needs root, to be two others\n");
		return;
	}
	memset(places, 0, MOST * sizeof(*places));
	child[0] = start(honest, 0, 2);
	child[1] = start(stranger, 1, 2);
	expect_good_end(child[1]);
	expect_good_end(child[0]);
	rmdir("/dev/shm/softverbs-65533");
	rmdir("/dev/shm/softverbs-65532");
}

/* --- folders that are refused ------------------------------------------- */

/* The open fails with `want` and one line that has `words` in it. */
static void expect_refusal(int want, const char *words)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *soft = NULL;
	char line[512] = "";
	int said[2], before, got;
	ssize_t length;

	for (int i = 0; list[i]; i++)
		soft = list[i];
	assert_int_equal(pipe(said), 0);
	before = dup(STDERR_FILENO);
	dup2(said[1], STDERR_FILENO);
	errno = 0;
	assert_null(ibv_open_device(soft));
	got = errno;
	dup2(before, STDERR_FILENO);
	close(said[1]);
	length = read(said[0], line, sizeof(line) - 1);
	assert_true(length > 0);
	assert_int_equal(got, want);
	assert_non_null(strstr(line, words));
	assert_ptr_equal(strchr(line, '\n'), line + length - 1);
	ibv_free_device_list(list);
	close(said[0]);
	close(before);
}

static void open_to_others(int me, int all)
{
	(void)me, (void)all;
	assert_int_equal(chmod(folder, 0755), 0);
	expect_refusal(EPERM, "is open to others");
	assert_int_equal(chmod(folder, 0700), 0);
}

static void a_link(int me, int all)
{
	char name[80];

	(void)me, (void)all;
	snprintf(name, sizeof(name), "%s/link", folder);
	assert_int_equal(symlink(folder, name), 0);
	setenv("SOFTVERBS_DIR", name, 1);
	expect_refusal(ENOTDIR, "is no directory");
	unlink(name);
}

static void no_parent(int me, int all)
{
	(void)me, (void)all;
	setenv("SOFTVERBS_DIR", "/proc/nowhere/at/all", 1);
	expect_refusal(ENOENT, "cannot make the directory");
}

static void somebody_elses(int me, int all)
{
	(void)me, (void)all;
	setenv("SOFTVERBS_DIR", "/proc", 1);
	become(NOBODY - 1);
	expect_refusal(EPERM, "belongs to user 0");
}

static void one_too_many(int me, int all)
{
	(void)me, (void)all;
	expect_refusal(ENOSPC, "No space left on device");
}

static void full(int me, int all)
{
	struct ibv_context *context;

	(void)me, (void)all;
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, "size=4k,mode=700"))
		exit(0); /* not in this container */
	/* A page is room for one process. */
	context = open_soft0();
	expect_good_end(start(one_too_many, 0, 1));
	assert_int_equal(ibv_close_device(context), 0);
}

static void too_few_descriptors(int me, int all)
{
	struct ibv_device **list;
	struct rlimit before, few;

	(void)me, (void)all;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ 3, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	list = ibv_get_device_list(NULL);
	assert_null(ibv_open_device(list[0]));
	assert_int_equal(errno, EMFILE);
	ibv_free_device_list(list);
	/* A sanitizer opens files when its program ends. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void folders_that_are_refused(void **state)
{
	(void)state;
	expect_good_end(start(open_to_others, 0, 1));
	expect_good_end(start(a_link, 0, 1));
	expect_good_end(start(no_parent, 0, 1));
	expect_good_end(start(too_few_descriptors, 0, 1));
	if (geteuid())
		return;
	expect_good_end(start(somebody_elses, 0, 1));
	expect_good_end(start(full, 0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes),
		cmocka_unit_test(many_processes),
		cmocka_unit_test(killed_peer),
		cmocka_unit_test(another_user),
		cmocka_unit_test(folders_that_are_refused),
	};
	int failed;

	/* A folder of this test's own: others are running, too. */
	snprintf(folder, sizeof(folder), "/dev/shm/test-softverbs-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	setenv("SOFTVERBS_DIR", folder, 1);
	places = mmap(NULL, MOST * sizeof(*places), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	failed = cmocka_run_group_tests_name("soft peers", tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
