/* SPDX-License-Identifier: 0BSD */
/*
 * Lesson 03: the memory region. What registering memory gives, which rights
 * there are, what is refused, and why memory is deregistered before it is
 * freed.
 *
 * Copy from here: page-aligned memory, registered and given back in order.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../common/lesson/lesson.h"

#define WAIT_SECONDS 10
#define REMOTE_WRITE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static const struct {
	const char *name;
	unsigned int access;
} rights[] = {
	{ "none: the device only reads", 0 },
	{ "LOCAL_WRITE", IBV_ACCESS_LOCAL_WRITE },
	{ "REMOTE_READ", IBV_ACCESS_REMOTE_READ },
	{ "LOCAL_WRITE | REMOTE_WRITE", REMOTE_WRITE },
	{ "LOCAL_WRITE | REMOTE_ATOMIC",
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC },
	{ "LOCAL_WRITE | MW_BIND",
	  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND },
	{ "ZERO_BASED", IBV_ACCESS_ZERO_BASED },
	{ "ON_DEMAND", IBV_ACCESS_ON_DEMAND },
	{ "HUGETLB", IBV_ACCESS_HUGETLB },
	{ "RELAXED_ORDERING", IBV_ACCESS_RELAXED_ORDERING },
};

/* NULL is no MR, and fine: a registration that was refused left none. */
static void dereg(struct ibv_mr *mr)
{
	int err = mr ? ibv_dereg_mr(mr) : 0;

	if (err)
		report(err, "ibv_dereg_mr(lkey=0x%08x)", mr->lkey);
}

/* Registers and deregisters: the device's answer to each set of rights. */
static void try_rights(struct ibv_pd *pd, void *memory)
{
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, page_bytes(),
					       rights[i].access);

		say("  %-28s %s", rights[i].name,
		    mr ? "registered" : errno_text(lesson_errno()));
		dereg(mr);
	}
}

/*
 * One RDMA WRITE to the start of `target`, over a connection of its own: a
 * write that fails ends it. Says what came of it; `expected` is the status
 * that the rules give, -1 where they give none.
 */
static void show_write(const struct ibv_mr *source,
		       const struct ibv_mr *target, size_t length,
		       int expected)
{
	struct ibv_qp *near = NULL, *far = NULL;
	struct ibv_cq *cq;
	int status = -1, err;

	cq = ibv_create_cq(source->context, 16, NULL, NULL, 0);
	if (!cq) {
		report(errno, "ibv_create_cq(cqe=16)");
		return;
	}
	near = create_rc_qp(source->pd, cq, 4);
	far = create_rc_qp(target->pd, cq, 4);
	if (near && far && !connect_pair(near, far, REMOTE_WRITE))
		status = write_and_wait(near, source, target, length);
	if (status >= 0)
		say("  RDMA WRITE of %zu bytes: %s", length,
		    ibv_wc_status_str(status));
	if (expected >= 0 && status != expected)
		report(EPROTO, "this write was to end with \"%s\"",
		       ibv_wc_status_str(expected));
	err = far ? ibv_destroy_qp(far) : 0;
	if (err)
		report(err, "ibv_destroy_qp(far)");
	err = near ? ibv_destroy_qp(near) : 0;
	if (err)
		report(err, "ibv_destroy_qp(near)");
	err = ibv_destroy_cq(cq);
	if (err)
		report(err, "ibv_destroy_cq()");
}

/* In a child: registers 16 pages where 4 may be locked. */
static int over_memlock(void *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	char *memory = page_alloc(16);
	struct ibv_mr *mr;
	int err;

	if (!pd || !memory)
		return 1;
	err = limit_locked(4);
	if (err) {
		say("  cannot be shown here: %s", errno_text(err));
		return 0;
	}
	mr = ibv_reg_mr(pd, memory, 16 * page_bytes(), 0);
	say("  16 pages, 4 may be locked: %s",
	    mr ? "registered: this device does not count them"
	       : errno_text(lesson_errno()));
	dereg(mr);
	free(memory);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}

/* In a child: the memory goes while it is registered. */
static int unmap_registered(void *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_mr *mr, *source;
	char *memory;
	int err;

	memory = mmap(NULL, 2 * page_bytes(), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pd || memory == MAP_FAILED)
		return 1;
	source = ibv_reg_mr(pd, memory, page_bytes(), 0);
	mr = ibv_reg_mr(pd, memory + page_bytes(), page_bytes(),
			REMOTE_WRITE);
	if (!source || !mr)
		return 1;
	err = munmap(mr->addr, page_bytes());
	say("  munmap() of registered memory: %s",
	    err ? errno_text(errno) : "done, nobody objects");
	if (lesson_can_connect(context))
		show_write(source, mr, 8, /* expected: undefined */ -1);
	err = ibv_dereg_mr(mr);
	say("  ibv_dereg_mr() afterwards: %s",
	    err ? errno_text(err) : "done");
	dereg(source);
	munmap(memory, page_bytes());
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}

static void in_child(int (*body)(void *), struct ibv_device *device)
{
	struct child_result child = run_limited(WAIT_SECONDS, body, device);

	if (child.end == CHILD_KILLED)
		say("  the child was killed: %s", strsignal(child.status));
	else if (child.end == CHILD_TIMED_OUT)
		say("  no end within %d seconds", WAIT_SECONDS);
	else if (child.status)
		report(EPROTO, "the child could not prepare the case");
}

int main(int argc, char **argv)
{
	struct ibv_mr *mr = NULL, *twin, *bad, *source = NULL;
	struct ibv_context *context;
	char *memory, *page;
	struct ibv_pd *pd;
	int err;

	lesson_begin("03_mr", "memory regions", argc, argv);
	context = lesson_open();
	if (!context)
		return lesson_end();
	pd = ibv_alloc_pd(context);
	if (!pd) {
		report(errno, "ibv_alloc_pd()");
		goto close_device;
	}

	step("allocate");
	memory = page_alloc(4);
	if (!memory)
		goto dealloc_pd;
	say("  4 pages of %zu bytes", page_bytes());

	step("reg-mr");
	mr = ibv_reg_mr(pd, memory, page_bytes(), REMOTE_WRITE);
	if (!mr) {
		report(errno, "ibv_reg_mr(length=%zu)", page_bytes());
		goto free_memory;
	}

	step("keys");
	say("  lkey 0x%08x, rkey 0x%08x, %zu bytes", mr->lkey, mr->rkey,
	    mr->length);

	step("access-flags");
	try_rights(pd, memory);

	step("remote-needs-local");
	refused(EINVAL, bad = ibv_reg_mr(pd, memory, page_bytes(),
					 IBV_ACCESS_REMOTE_WRITE));
	dereg(bad);
	refused(EINVAL, bad = ibv_reg_mr(pd, memory, page_bytes(),
					 IBV_ACCESS_REMOTE_ATOMIC));
	dereg(bad);

	step("read-only-memory");
	page = mmap(NULL, page_bytes(), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		report(errno, "mmap()");
		goto dereg_mr;
	}
	refused(EFAULT, bad = ibv_reg_mr(pd, page, page_bytes(),
					 IBV_ACCESS_LOCAL_WRITE));
	dereg(bad);

	step("unmapped-memory");
	munmap(page, page_bytes());
	refused(EFAULT, bad = ibv_reg_mr(pd, page, page_bytes(), 0));
	dereg(bad);

	step("length-zero");
	bad = ibv_reg_mr(pd, memory, 0, 0);
	say("  length 0: %s",
	    bad ? "registered" : errno_text(lesson_errno()));
	dereg(bad);

	step("registered-twice");
	twin = ibv_reg_mr(pd, memory, page_bytes(), 0);
	if (!twin) {
		report(errno, "ibv_reg_mr(the same page, again)");
		goto dereg_mr;
	}
	say("  lkey 0x%08x and 0x%08x: one page, two MRs", mr->lkey,
	    twin->lkey);

	step("write-inside");
	source = ibv_reg_mr(pd, memory + 2 * page_bytes(), 2 * page_bytes(),
			    0);
	if (!source) {
		report(errno, "ibv_reg_mr(the last two pages)");
		goto dereg_twin;
	}
	memset(source->addr, 'x', source->length);
	if (lesson_can_connect(context)) {
		show_write(source, mr, mr->length, IBV_WC_SUCCESS);
		say("  last byte of the MR 0x%02x, the one behind it "
		    "0x%02x",
		    memory[mr->length - 1], memory[mr->length]);
	}

	step("write-past-end");
	if (lesson_can_connect(context)) {
		show_write(source, mr, mr->length + 1,
			   IBV_WC_REM_ACCESS_ERR);
		say("  the byte behind the MR: 0x%02x", memory[mr->length]);
	}

	step("write-without-right");
	if (lesson_can_connect(context))
		show_write(source, twin, 8, IBV_WC_REM_ACCESS_ERR);

	step("memlock");
	in_child(over_memlock, context->device);

	step("unmap-registered");
	in_child(unmap_registered, context->device);

	step("dereg-then-free");
	dereg(source);
dereg_twin:
	dereg(twin);
dereg_mr:
	dereg(mr);
free_memory:
	free(memory);
dealloc_pd:
	err = ibv_dealloc_pd(pd);
	if (err)
		report(err, "ibv_dealloc_pd()");
close_device:
	err = ibv_close_device(context);
	if (err)
		report(err, "ibv_close_device()");
	return lesson_end();
}
