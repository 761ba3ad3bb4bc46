/* SPDX-License-Identifier: MIT */
/*
 * Memory that isn't what it was when it was registered breaks a WR and not
 * the program, in whatever way the kernel can be asked about it. Each way is
 * tested in a process of its own, from which a filter of system calls hides
 * the better ones.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/unit/soft_fixture.h"

#define PAGE  4096
#define PAGES 17

#define ITS_FILE 100 /* descriptor of memory that is to be truncated */

/* Fails a call with `err` where the low half of its argument is `value`. */
#define DENY(call, arg, value, err)                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),               \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                             \
			 offsetof(struct seccomp_data, args[arg])),            \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),              \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (err))

enum { RULE = 5 };

/* Ways of asking, the best first; a kernel that hides n has the others. */
static struct sock_filter hide[] = {
	/* PROCMAP_QUERY: before Linux 6.11 */
	DENY(SYS_ioctl, 1, _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104), ENOTTY),
	/* A kernel, or what stands for it, that looks at `how` first. */
	DENY(SYS_rt_sigprocmask, 0, 0xffffffff, EINVAL),
	/* MADV_POPULATE_READ and _WRITE: before Linux 5.14 */
	DENY(SYS_madvise, 2, 22, EINVAL),
	DENY(SYS_madvise, 2, 23, EINVAL),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static const struct {
	const char *name;
	int hidden; /* rules */
} ways[] = {
	{ "the kernel as it is", 0 },
	{ "without PROCMAP_QUERY", 1 },
	{ "and no touching", 2 },
	{ "and no populating", 4 },
};

static void hide_ways(int rules)
{
	const size_t all = sizeof(hide) / sizeof(*hide);
	struct sock_fprog program;

	hide[rules * RULE] = hide[all - 1];
	program = (struct sock_fprog){ rules * RULE + 1, hide };
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
			 0);
}

/* --- memory, and what becomes of it -------------------------------------- */

enum fate { STAYS, NO_ACCESS, READ_ONLY, TRUNCATED };

static char *make_memory(enum fate fate)
{
	int file = fate == TRUNCATED ? memfd_create("test", 0) : -1;
	char *memory;

	if (file >= 0)
		assert_int_equal(ftruncate(file, PAGES * PAGE), 0);
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file,
		      0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(memory, 0x11, PAGES * PAGE);
	if (file >= 0) {
		assert_int_equal(dup2(file, ITS_FILE), ITS_FILE);
		close(file);
	}
	return memory;
}

/* What befalls the page in which the last of `length` bytes lies. */
static void befall(char *memory, size_t length, enum fate fate)
{
	size_t last = (length - 1) / PAGE * PAGE;

	if (fate == TRUNCATED)
		assert_int_equal(ftruncate(ITS_FILE, (off_t)last), 0);
	else if (fate != STAYS)
		assert_int_equal(
			mprotect(memory + last, PAGE,
				 fate == READ_ONLY ? PROT_READ : PROT_NONE),
			0);
}

struct message {
	size_t length;
	enum fate source, target;
};

static void expect_statuses(struct pair *p, const struct message *m)
{
	if (m->source == NO_ACCESS || m->source == TRUNCATED) {
		expect_wc(p->a.cq, IBV_WC_LOC_PROT_ERR);
	} else if (m->target != STAYS) {
		expect_wc(p->a.cq, IBV_WC_REM_OP_ERR);
		expect_wc(p->b.cq, IBV_WC_LOC_PROT_ERR);
	} else {
		expect_wc(p->a.cq, IBV_WC_SUCCESS);
		expect_wc(p->b.cq, IBV_WC_SUCCESS);
	}
}

static void send_message(struct pair *p, const struct message *m, char *source,
			 char *target)
{
	struct ibv_mr *from = ibv_reg_mr(p->a.pd, source, PAGES * PAGE, 0);
	struct ibv_mr *to = ibv_reg_mr(p->b.pd, target, PAGES * PAGE,
				       IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	assert_non_null(from);
	assert_non_null(to);
	sge = (struct ibv_sge){ (uintptr_t)target, m->length, to->lkey };
	post_receive_sge(&p->b, &sge, 2);
	befall(source, m->length, m->source);
	befall(target, m->length, m->target);
	sge = (struct ibv_sge){ (uintptr_t)source, m->length, from->lkey };
	wr = send_wr(IBV_WR_SEND, &sge, &p->b, 0);
	post(&p->a, &wr);
	expect_statuses(p, m);
	if (m->source != NO_ACCESS && m->source != TRUNCATED &&
	    m->target == STAYS) {
		assert_memory_equal(source, target, m->length);
		assert_int_equal(target[m->length], 0x11);
	}
	assert_int_equal(ibv_dereg_mr(from), 0);
	assert_int_equal(ibv_dereg_mr(to), 0);
}

static void try_message(const struct message *m)
{
	char *source = make_memory(m->source);
	char *target = make_memory(m->target);
	struct pair p;

	for (size_t i = 0; i < m->length; i++)
		source[i] = (char)(i % 251 + 1);
	pair_init(&p, IBV_QPT_RC);
	pair_open(&p);
	send_message(&p, m, source, target);
	pair_close(&p);
	munmap(source, PAGES * PAGE);
	munmap(target, PAGES * PAGE);
}

static void try_all(void)
{
	static const size_t lengths[] = { 1, 8, PAGE, PAGE + 1, 16 * PAGE };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (enum fate fate = STAYS; fate <= TRUNCATED; fate++) {
			try_message(
				&(struct message){ lengths[i], fate, STAYS });
			try_message(
				&(struct message){ lengths[i], STAYS, fate });
		}
	}
}

static void memory_that_is_gone(void **state)
{
	int status;
	pid_t child = fork();

	assert_int_not_equal(child, -1);
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		alarm(120);
		hide_ways(*(const int *)*state);
		try_all();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	struct CMUnitTest tests[4];

	for (int i = 0; i < 4; i++)
		tests[i] = (struct CMUnitTest){
			.name = ways[i].name,
			.test_func = memory_that_is_gone,
			.initial_state = (void *)&ways[i].hidden,
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
