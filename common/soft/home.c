/* SPDX-License-Identifier: MIT */
/*
 * News between homes, and sleeping until there is some.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/soft/machine.h"

void soft_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = timeout_ns / 1000000000,
		.tv_nsec = timeout_ns % 1000000000,
	};

	syscall(SYS_futex, word, FUTEX_WAIT, value,
		timeout_ns < 0 ? NULL : &timeout, NULL, 0);
}

void soft_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void soft_home_wake(struct soft_home *home)
{
	if (__atomic_load_n(&home->asleep, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&home->asleep, 0, __ATOMIC_SEQ_CST))
		soft_futex_wake(&home->asleep);
}

/*
 * A bit that is set already means that the other side has still to look,
 * and what we wrote before the fence it will see then.
 */
void soft_home_tell(struct soft_home *home, uint32_t block, bool fresh)
{
	uint64_t bit = UINT64_C(1) << (block & 63);
	uint32_t word = block / 64;

	if (fresh)
		__atomic_fetch_or(&home->fresh[word], bit, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!fresh &&
	    __atomic_load_n(&home->news[word], __ATOMIC_SEQ_CST) & bit)
		return;
	__atomic_fetch_or(&home->news[word], bit, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&home->summary, UINT64_C(1) << word,
			  __ATOMIC_SEQ_CST);
	soft_home_wake(home);
}
