/* SPDX-License-Identifier: MIT */
/*
 * The manager's objects from creation to destruction. The witness that
 * nothing is left behind is the device: its limits are set so low that what
 * a failed creation left would be missing for the next one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/manager/manager.h"

static struct ibv_device **list;
static struct ibv_device *soft0;

static char memory[2][4096];
static struct manager_mr_plan mrs[2];
static struct manager_cq_plan cqs[2];
static struct manager_qp_plan qps[2];
static struct manager_plan plan;

/* The log, one line per failure. */
static char heard[512];
static int failures;

static void listen(void *arg, int err, const char *call, const char *given)
{
	size_t end = strlen(heard);

	assert_ptr_equal(arg, heard);
	snprintf(heard + end, sizeof(heard) - end, "%d %s %s\n", err, call,
		 given);
	failures++;
}

/* soft0's own, but for as often as a test wants it to fail. */
static int broken_deregs;

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *) = dlsym(RTLD_NEXT, "ibv_dereg_mr");

	if (broken_deregs && broken_deregs--)
		return EIO;
	return real(mr);
}

static int find_soft0(void **state)
{
	(void)state;
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "soft0"))
			soft0 = list[i];
	assert_non_null(soft0);
	return 0;
}

static int free_list(void **state)
{
	(void)state;
	ibv_free_device_list(list);
	return 0;
}

static int make_plan(void **state)
{
	(void)state;
	heard[0] = '\0';
	failures = 0;
	for (int i = 0; i < 2; i++) {
		mrs[i] = (struct manager_mr_plan){
			.addr = memory[i],
			.length = sizeof(memory[i]),
			.access = IBV_ACCESS_LOCAL_WRITE,
		};
		cqs[i] = (struct manager_cq_plan){ .cqe = 8, .channel = true };
		qps[i] = (struct manager_qp_plan){
			.qp_type = IBV_QPT_RC,
			.cap = { 4, 4, 1, 1, 0 },
			.send_cq = 0,
			.recv_cq = 1,
		};
	}
	plan = (struct manager_plan){
		.port_num = 1,
		.channel = true,
		.mrs = mrs,
		.num_mrs = 2,
		.cqs = cqs,
		.num_cqs = 2,
		.qps = qps,
		.num_qps = 2,
		.log = listen,
		.log_arg = heard,
	};
	return 0;
}

static int lowest_free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* The right plan can be had, which takes most of what the device has. */
static void assert_device_unused(void)
{
	struct manager m;

	make_plan(NULL);
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	assert_int_equal(manager_destroy(&m), 0);
	assert_int_equal(failures, 0);
}

static void assert_empty(const struct manager *m)
{
	struct manager_audit audit;

	assert_int_equal(manager_audit(m, &audit), 0);
	assert_int_equal(audit.total, 0);
	assert_null(manager_context(m));
	assert_null(manager_pd(m));
	assert_null(manager_channel(m));
	assert_null(manager_mr(m, 0));
	assert_null(manager_cq(m, 0));
	assert_null(manager_qp(m, 0));
}

/* Fails, again and again, with one line in the log that begins so. */
static void assert_fails(const char *line)
{
	int fd = lowest_free_fd();
	struct manager m;

	for (int i = 0; i < 8; i++) {
		heard[0] = '\0';
		failures = 0;
		assert_int_equal(manager_create(&m, soft0, &plan), atoi(line));
		if (strncmp(heard, line, strlen(line)))
			fail_msg("heard \"%s\", not \"%s\"", heard, line);
		assert_int_equal(failures, 1);
		assert_empty(&m);
		assert_int_equal(manager_destroy(&m), 0);
		assert_int_equal(lowest_free_fd(), fd);
	}
	assert_device_unused();
}

static void makes_all_and_unmakes_it(void **state)
{
	int fd = lowest_free_fd();
	struct manager_audit audit;
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	assert_int_equal(manager_audit(&m, &audit), 0);
	assert_int_equal(audit.total, 9);
	assert_int_equal(audit.qp_states[IBV_QPS_INIT], 2);
	assert_ptr_equal(manager_mr(&m, 1)->addr, memory[1]);
	assert_ptr_equal(manager_mr(&m, 1)->pd, manager_pd(&m));
	assert_ptr_equal(manager_cq(&m, 1)->channel, manager_channel(&m));
	assert_ptr_equal(manager_qp(&m, 0)->send_cq, manager_cq(&m, 0));
	assert_ptr_equal(manager_qp(&m, 0)->recv_cq, manager_cq(&m, 1));
	assert_null(manager_qp(&m, 2));
	assert_null(manager_qp(&m, -1));
	assert_int_equal(manager_destroy(&m), 0);
	assert_empty(&m);
	assert_int_equal(manager_destroy(&m), 0);
	assert_int_equal(manager_destroy(NULL), 0);
	assert_int_equal(failures, 0);
	assert_int_equal(lowest_free_fd(), fd);
}

static void takes_datagram_queue_pairs(void **state)
{
	struct manager_audit audit;
	struct manager m;

	(void)state;
	qps[1].qp_type = IBV_QPT_UD;
	qps[1].qkey = 0x1234;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	assert_int_equal(manager_audit(&m, &audit), 0);
	assert_int_equal(audit.qp_states[IBV_QPS_INIT], 2);
	assert_int_equal(manager_destroy(&m), 0);
}

static void audit_asks_the_device(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct manager_audit audit;
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	assert_int_equal(ibv_modify_qp(manager_qp(&m, 1), &attr, IBV_QP_STATE),
			 0);
	assert_int_equal(manager_audit(&m, &audit), 0);
	assert_int_equal(audit.qp_states[IBV_QPS_INIT], 1);
	assert_int_equal(audit.qp_states[IBV_QPS_ERR], 1);
	assert_int_equal(manager_destroy(&m), 0);
}

static void no_device(void **state)
{
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, NULL, &plan), ENODEV);
	assert_empty(&m);
}

/* No verb can be asked for fewer files, the process can have fewer. */
static void no_files(void **state)
{
	struct rlimit usual, few;
	struct manager m;
	int err, files = 0, fd = lowest_free_fd();

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	do {
		heard[0] = '\0';
		few = usual;
		few.rlim_cur = fd + files;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = manager_create(&m, soft0, &plan);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
		if (!files)
			assert_non_null(strstr(heard, "ibv_open_device"));
		if (!err)
			break;
		assert_int_equal(err, EMFILE);
		assert_empty(&m);
		assert_int_equal(lowest_free_fd(), fd);
	} while (++files < 32 && !strstr(heard, "ibv_create_comp_channel"));
	assert_non_null(strstr(heard, "ibv_create_comp_channel"));
	assert_device_unused();
}

static void no_pd(void **state)
{
	struct ibv_context *context = ibv_open_device(soft0);
	struct ibv_pd *pds[2];

	(void)state;
	assert_non_null(context);
	for (int i = 0; i < 2; i++) {
		pds[i] = ibv_alloc_pd(context);
		assert_non_null(pds[i]);
	}
	struct manager m;
	assert_int_not_equal(manager_create(&m, soft0, &plan), 0);
	assert_non_null(strstr(heard, "ibv_alloc_pd"));
	assert_int_equal(failures, 1);
	assert_empty(&m);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_device_unused();
}

static void no_memory_there(void **state)
{
	void *gone =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(gone != MAP_FAILED);
	mrs[1].addr = gone;
	assert_fails("14 ibv_reg_mr mrs[1]: addr=0x");
	munmap(gone, 4096);
}

static void no_such_cq(void **state)
{
	(void)state;
	cqs[1].cqe = 0;
	assert_fails("22 ibv_create_cq cqs[1]: cqe=0 ");
}

static void no_such_qp(void **state)
{
	(void)state;
	qps[1].cap.max_recv_wr = 1000000000;
	assert_fails("22 ibv_create_qp qps[1]: ");
}

static void no_cq_for_the_qp(void **state)
{
	(void)state;
	qps[1].recv_cq = 7;
	assert_fails("22 ibv_create_qp qps[1]: no such CQ: send_cq=0 "
		     "recv_cq=7");
}

static void no_such_port(void **state)
{
	(void)state;
	plan.port_num = 9;
	assert_fails("22 ibv_modify_qp qps[0] to INIT: port_num=9 ");
}

/* A CQ before its QPs: refused, intact, and done when they are gone. */
static void refuses_to_drop_what_is_held(void **state)
{
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	assert_int_equal(manager_drop_cq(&m, 1), EBUSY);
	assert_string_equal(heard, "16 ibv_destroy_cq cqs[1]\n");
	assert_non_null(manager_cq(&m, 1));
	assert_int_equal(manager_drop_qp(&m, 0), 0);
	assert_int_equal(manager_drop_qp(&m, 0), ENOENT);
	assert_int_equal(manager_drop_qp(&m, 7), ENOENT);
	assert_int_equal(manager_drop_qp(&m, 1), 0);
	assert_int_equal(manager_drop_cq(&m, 1), 0);
	assert_int_equal(manager_destroy(&m), 0);
}

static void places_are_used_again(void **state)
{
	struct ibv_mr *kept;
	struct manager m;
	int index = -1;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	assert_int_equal(manager_add_mr(&m, &mrs[0], &index), 0);
	assert_int_equal(index, 2);
	kept = manager_mr(&m, 2);
	assert_int_equal(manager_drop_mr(&m, 0), 0);
	assert_null(manager_mr(&m, 0));
	assert_ptr_equal(manager_mr(&m, 2), kept);
	assert_int_equal(manager_add_mr(&m, &mrs[1], &index), 0);
	assert_int_equal(index, 0);
	assert_int_equal(manager_destroy(&m), 0);
}

/* A failed add leaves the rest alone. */
static void add_fails_alone(void **state)
{
	struct manager_audit audit;
	struct manager m;
	int index = -1;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	qps[0].cap.max_send_sge = 1000000;
	assert_int_equal(manager_add_qp(&m, &qps[0], &index), EINVAL);
	assert_int_equal(index, -1);
	assert_int_equal(manager_audit(&m, &audit), 0);
	assert_int_equal(audit.total, 9);
	assert_int_equal(manager_destroy(&m), 0);
}

/* What stands in the way is reported; all else goes; the rest can wait. */
static void a_stray_mr_keeps_pd_and_context(void **state)
{
	struct manager_audit audit;
	struct ibv_mr *stray;
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	stray = ibv_reg_mr(manager_pd(&m), memory[0], 1, 0);
	assert_non_null(stray);
	for (int i = 0; i < 2; i++) {
		heard[0] = '\0';
		assert_int_equal(manager_destroy(&m), EBUSY);
		assert_string_equal(heard, "16 ibv_dealloc_pd pd\n");
		assert_int_equal(manager_audit(&m, &audit), 0);
		assert_int_equal(audit.total, 2);
		assert_int_equal(audit.contexts, 1);
		assert_int_equal(audit.pds, 1);
	}
	assert_int_equal(ibv_dereg_mr(stray), 0);
	assert_int_equal(manager_destroy(&m), 0);
	assert_empty(&m);
	assert_device_unused();
}

/* The first of two refusals is the one returned; both are reported. */
static void a_stray_qp_keeps_its_cqs(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct manager_audit audit;
	struct ibv_qp *stray;
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	init.send_cq = init.recv_cq = manager_cq(&m, 0);
	stray = ibv_create_qp(manager_pd(&m), &init);
	assert_non_null(stray);
	assert_int_equal(manager_destroy(&m), EBUSY);
	assert_string_equal(heard, "16 ibv_destroy_cq cqs[0]\n"
				   "16 ibv_destroy_comp_channel channel\n"
				   "16 ibv_dealloc_pd pd\n");
	assert_int_equal(manager_audit(&m, &audit), 0);
	assert_int_equal(audit.total, 4);
	assert_int_equal(audit.cqs, 1);
	assert_int_equal(audit.mrs, 0);
	assert_int_equal(ibv_destroy_qp(stray), 0);
	assert_int_equal(manager_destroy(&m), 0);
	assert_empty(&m);
}

/* EIO of the MR comes first, EBUSY of its PD follows from it. */
static void the_first_error_is_returned(void **state)
{
	struct manager m;

	(void)state;
	assert_int_equal(manager_create(&m, soft0, &plan), 0);
	broken_deregs = 1;
	assert_int_equal(manager_destroy(&m), EIO);
	assert_string_equal(heard, "5 ibv_dereg_mr mrs[1]\n"
				   "16 ibv_dealloc_pd pd\n");
	assert_null(manager_mr(&m, 0));
	assert_non_null(manager_mr(&m, 1));
	assert_int_equal(manager_destroy(&m), 0);
	assert_empty(&m);
}

#define TEST(f) cmocka_unit_test_setup(f, make_plan)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(makes_all_and_unmakes_it),
		TEST(takes_datagram_queue_pairs),
		TEST(audit_asks_the_device),
		TEST(no_device),
		TEST(no_files),
		TEST(no_pd),
		TEST(no_memory_there),
		TEST(no_such_cq),
		TEST(no_such_qp),
		TEST(no_cq_for_the_qp),
		TEST(no_such_port),
		TEST(refuses_to_drop_what_is_held),
		TEST(places_are_used_again),
		TEST(add_fails_alone),
		TEST(a_stray_mr_keeps_pd_and_context),
		TEST(a_stray_qp_keeps_its_cqs),
		TEST(the_first_error_is_returned),
	};

	/* Before the first verb: soft0 reads them once. */
	setenv("SOFTVERBS_MAX_PD", "2", 1);
	setenv("SOFTVERBS_MAX_MR", "3", 1);
	setenv("SOFTVERBS_MAX_CQ", "3", 1);
	setenv("SOFTVERBS_MAX_QP", "3", 1);
	return cmocka_run_group_tests(tests, find_soft0, free_list);
}
