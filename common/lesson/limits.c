/* SPDX-License-Identifier: 0BSD */
/*
 * Limits that a lesson puts on itself, or on its child, to see a call fail:
 * how much memory may be locked, how many files may be open.
 */
#define _GNU_SOURCE 1
#include "internal.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CAP_IPC_LOCK lifts the limit on locked memory: give it up. */
static int drop_ipc_lock(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		return errno;
	caps[0].effective &= ~(1u << CAP_IPC_LOCK);
	return syscall(SYS_capset, &head, caps) ? errno : 0;
}

int limit_locked(size_t pages)
{
	const struct rlimit limit = { pages * page_bytes(),
				      pages * page_bytes() };

	return setrlimit(RLIMIT_MEMLOCK, &limit) ? errno : drop_ipc_lock();
}

int lowest_free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd;
}

int limit_files(int more, struct rlimit *usual)
{
	struct rlimit few;

	if (getrlimit(RLIMIT_NOFILE, usual))
		return errno;
	few = *usual;
	few.rlim_cur = (rlim_t)(lowest_free_fd() + more);
	return setrlimit(RLIMIT_NOFILE, &few) ? errno : 0;
}
