/* SPDX-License-Identifier: MIT */
/* Registering memory. */
#include "tests/conformance/conform.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define UNKNOWN_BIT  (1 << 12)
#define OPTIONAL_BIT (1 << 29)
#define PERSISTENT   (1 << 9) /* IBV_ACCESS_FLUSH_PERSISTENT: newer headers */

static void access_flags(const struct rule *rule)
{
	struct world *w = open_world();

	answer_pointer(
		ibv_reg_mr(w->pd, get_memory(PAGE, 3), PAGE, (int)rule->arg));
}

/* The part of a page from arg on, arg2 bytes of it. */
static void length(const struct rule *rule)
{
	struct world *w = open_world();
	char *memory = get_memory(PAGE, 3);

	answer_pointer(ibv_reg_mr(w->pd, memory + rule->arg, (size_t)rule->arg2,
				  IBV_ACCESS_LOCAL_WRITE));
}

static void unmapped(const struct rule *rule)
{
	struct world *w = open_world();
	void *memory = get_memory(PAGE, 3);

	munmap(memory, PAGE);
	answer_pointer(ibv_reg_mr(w->pd, memory, PAGE, (int)rule->arg));
}

static void read_only(const struct rule *rule)
{
	struct world *w = open_world();

	answer_pointer(ibv_reg_mr(w->pd, get_memory(PAGE, PROT_READ), PAGE,
				  (int)rule->arg));
}

static void memlock(const struct rule *rule)
{
	struct world *w = open_world();
	struct rlimit limit = { (rlim_t)rule->arg, (rlim_t)rule->arg };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		not_here("setrlimit", errno);
	without_capability(CAP_IPC_LOCK);
	errno = 0;
	answer_pointer(ibv_reg_mr(w->pd, get_memory(64 * PAGE, 3), 64 * PAGE,
				  IBV_ACCESS_LOCAL_WRITE));
}

static void iova(const struct rule *rule)
{
	struct world *w = open_world();

	answer_pointer(ibv_reg_mr_iova(w->pd, get_memory(PAGE, 3), PAGE,
				       (uint64_t)rule->arg,
				       IBV_ACCESS_LOCAL_WRITE));
}

static void twice(const struct rule *rule)
{
	struct world *w = open_world();
	void *memory = get_memory(PAGE, 3);
	struct ibv_mr *a = make_mr(w->pd, memory, PAGE, ALL_ACCESS);
	struct ibv_mr *b = make_mr(w->pd, memory, PAGE, ALL_ACCESS);

	(void)rule;
	answer(a->lkey != b->lkey && a->rkey != b->rkey ? "keys differ"
							: "one key");
}

static void local_rkey(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_mr *mr = make_mr(w->pd, get_memory(PAGE, 3), PAGE,
				    IBV_ACCESS_LOCAL_WRITE);

	(void)rule;
	answer(!mr->rkey              ? "rkey 0"
	       : mr->rkey == mr->lkey ? "rkey = lkey"
				      : "rkey, lkey");
}

/* --- re-registering ----------------------------------------------------- */

static _Noreturn void answer_rereg(int result)
{
	if (result == IBV_REREG_MR_ERR_CMD && errno == EOPNOTSUPP)
		not_here("ibv_rereg_mr", errno);
	switch (result) {
	case 0:
		answer("ok");
	case IBV_REREG_MR_ERR_INPUT:
		answer("IBV_REREG_MR_ERR_INPUT");
	case IBV_REREG_MR_ERR_CMD:
		answer("IBV_REREG_MR_ERR_CMD, %s", call_name(errno));
	default:
		answer("%d", result);
	}
}

static void rereg(const struct rule *rule)
{
	struct world *w = open_world();
	struct ibv_mr *mr = make_mr(w->pd, get_memory(PAGE, 3), PAGE,
				    IBV_ACCESS_LOCAL_WRITE);
	int flags = (int)rule->arg;
	void *memory = NULL;
	size_t size = 0;

	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && rule->arg2) {
		size = 2 * PAGE;
		memory = get_memory(size, 3);
	}
	errno = 0;
	answer_rereg(ibv_rereg_mr(mr, flags, make_pd(w), memory, size,
				  flags & IBV_REREG_MR_CHANGE_ACCESS
					  ? IBV_ACCESS_LOCAL_WRITE
					  : 0));
}

/* --- which QPs are refused by registering that fails: nothing is left --- */

static void refused_leaves_nothing(const struct rule *rule)
{
	struct world *w = open_world();

	(void)rule;
	if (ibv_reg_mr(w->pd, get_memory(PAGE, 3), PAGE,
		       IBV_ACCESS_REMOTE_WRITE))
		answer("was not refused");
	answer_call(ibv_dealloc_pd(w->pd));
}

#define CORE  "the kernel's core checks, for every device"
#define PAGES "the kernel's core pins the pages"
#define SUPPORT \
	"devices that have the feature take it; the rest answer EOPNOTSUPP"
#define REREG "ibv_rereg_mr(3)"

static const struct rule rules[] = {
	RULE("reg_mr.remote_write_alone", access_flags, "EINVAL",
	     "REMOTE_WRITE needs LOCAL_WRITE", CORE,
	     .arg = IBV_ACCESS_REMOTE_WRITE),
	RULE("reg_mr.remote_atomic_alone", access_flags, "EINVAL",
	     "REMOTE_ATOMIC needs LOCAL_WRITE", CORE,
	     .arg = IBV_ACCESS_REMOTE_ATOMIC),
	RULE("reg_mr.remote_read_alone", access_flags, "ok",
	     "REMOTE_READ needs nothing beside it", CORE,
	     .arg = IBV_ACCESS_REMOTE_READ),
	RULE("reg_mr.no_access", access_flags, "ok",
	     "No access flag at all: local reads", CORE),
	RULE("reg_mr.all_access", access_flags, "ok",
	     "LOCAL_WRITE and all remote rights", CORE, .arg = ALL_ACCESS),
	RULE("reg_mr.mw_bind", access_flags, "ok",
	     "MW_BIND is a right of its own", CORE, .arg = IBV_ACCESS_MW_BIND),
	RULE("reg_mr.unknown_bit", access_flags, "EINVAL",
	     "An access bit that nobody knows is refused", CORE,
	     .arg = UNKNOWN_BIT),
	RULE("reg_mr.optional_bit", access_flags, "ok",
	     "Optional access bits are taken, known or not", CORE,
	     .arg = OPTIONAL_BIT),
	RULE("reg_mr.relaxed_ordering", access_flags, "ok",
	     "RELAXED_ORDERING is optional: taken everywhere", CORE,
	     .arg = IBV_ACCESS_RELAXED_ORDERING),
	RULE("reg_mr.on_demand", access_flags, "EOPNOTSUPP",
	     "ON_DEMAND is refused by a device without paging on demand",
	     SUPPORT, .rxe = "6.1 says EINVAL", .siw = "6.1 says EINVAL",
	     .arg = IBV_ACCESS_ON_DEMAND),
	RULE("reg_mr.zero_based", access_flags, "EOPNOTSUPP",
	     "ZERO_BASED is refused by a device that lacks it", SUPPORT,
	     .rxe = "6.1 takes it", .siw = "6.1 takes it",
	     .arg = IBV_ACCESS_ZERO_BASED),
	RULE("reg_mr.huge_pages", access_flags, "EOPNOTSUPP",
	     "HUGETLB is refused by a device that does not look at it", SUPPORT,
	     .rxe = "6.1 takes it", .siw = "6.1 takes it",
	     .arg = IBV_ACCESS_HUGETLB),
	RULE("reg_mr.flush_persistent", access_flags, "EINVAL",
	     "FLUSH_PERSISTENT is for persistent memory, and RAM is none",
	     "the check is the device's", .arg = PERSISTENT),
	RULE("reg_mr.length_0_aligned", length, "EINVAL",
	     "Length 0 at a page's start is no memory", PAGES),
	RULE("reg_mr.length_0_inside", length, "ok",
	     "Length 0 inside a page is one page", PAGES,
	     .siw = "wants a length", .arg = 8),
	RULE("reg_mr.overflow", length, "EINVAL",
	     "A range past the last address is refused", PAGES,
	     .siw = "takes it", .arg2 = -1),
	RULE("reg_mr.unmapped", unmapped, "EFAULT",
	     "Memory must be mapped, to be read at least", PAGES),
	RULE("reg_mr.unmapped_write", unmapped, "EFAULT",
	     "Memory must be mapped, to be written", PAGES,
	     .arg = IBV_ACCESS_LOCAL_WRITE),
	RULE("reg_mr.read_only", read_only, "ok",
	     "Memory that is only readable can be registered without rights",
	     PAGES),
	RULE("reg_mr.read_only.remote_read", read_only, "ok",
	     "REMOTE_READ of memory that is only readable", PAGES,
	     .arg = IBV_ACCESS_REMOTE_READ),
	RULE("reg_mr.read_only.local_write", read_only, "EFAULT",
	     "LOCAL_WRITE needs memory that can be written", PAGES,
	     .arg = IBV_ACCESS_LOCAL_WRITE),
	RULE("reg_mr.read_only.mw_bind", read_only, "EFAULT",
	     "MW_BIND needs memory that can be written", PAGES,
	     .arg = IBV_ACCESS_MW_BIND),
	RULE("reg_mr.memlock", memlock, "ENOMEM",
	     "More than RLIMIT_MEMLOCK is refused without CAP_IPC_LOCK", PAGES,
	     .arg = 16 * PAGE),
	RULE("reg_mr.memlock_0", memlock, "EPERM",
	     "With RLIMIT_MEMLOCK at 0 there is no registering", PAGES,
	     .siw = "counts the pages itself, and says ENOMEM"),
	RULE("reg_mr.twice", twice, "keys differ",
	     "Memory can be registered twice, each with keys of its own", CORE),
	RULE("reg_mr.rkey_without_remote_right", local_rkey, "rkey = lkey",
	     "The rkey of an MR without a remote right is a number as any",
	     "left open", .rxe = "6.1 gives an rkey only with a remote right"),
	RULE("reg_mr.refused_leaves_nothing", refused_leaves_nothing, "ok",
	     "A registration that was refused holds nothing", CORE),
	RULE("reg_mr_iova.same_offset", iova, "ok",
	     "An IOVA of one's own, with the address's offset in the page",
	     CORE, .arg = 0x10000),
	RULE("reg_mr_iova.other_offset", iova, "EINVAL",
	     "An IOVA with another offset in the page is refused", CORE,
	     .arg = 0x10008),
	RULE("rereg_mr.nothing", rereg, "IBV_REREG_MR_ERR_CMD, EINVAL",
	     "Re-registering must change something", REREG),
	RULE("rereg_mr.unknown_flag", rereg, "IBV_REREG_MR_ERR_INPUT",
	     "A flag that nobody knows is refused by libibverbs", REREG,
	     .arg = 1 << 8),
	RULE("rereg_mr.translation_of_nothing", rereg, "IBV_REREG_MR_ERR_INPUT",
	     "CHANGE_TRANSLATION needs an address and a length", REREG,
	     .arg = IBV_REREG_MR_CHANGE_TRANSLATION),
	RULE("rereg_mr.translation", rereg, "ok",
	     "CHANGE_TRANSLATION gives the MR other memory", REREG,
	     .arg = IBV_REREG_MR_CHANGE_TRANSLATION, .arg2 = 1),
	RULE("rereg_mr.access", rereg, "ok",
	     "CHANGE_ACCESS gives the MR other rights", REREG,
	     .arg = IBV_REREG_MR_CHANGE_ACCESS),
	RULE("rereg_mr.pd", rereg, "ok", "CHANGE_PD moves the MR to another PD",
	     REREG, .arg = IBV_REREG_MR_CHANGE_PD),
};
const struct rules create_mr_rules = RULES(rules);
