/* SPDX-License-Identifier: MIT */
/*
 * What registering memory asks of the kernel: is it mapped, may it be
 * written, and may so much of it be locked. soft0 locks nothing, but refuses
 * what a device that does would be refused.
 */
#ifndef SOFT_PAGES_H
#define SOFT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many pages [addr, addr + length) touches, as the kernel's ib_umem_get()
 * counts them: one for an empty range inside a page, none for an empty range
 * at a page's start. The range must not wrap around.
 */
size_t soft_pages_count(uintptr_t addr, size_t length);

/* 0, or EFAULT: not all of it is mapped readable, and writable if `write`. */
int soft_pages_check(uintptr_t addr, size_t length, bool write);

/*
 * Counts pages against RLIMIT_MEMLOCK, for a process without CAP_IPC_LOCK:
 * 0, ENOMEM above the limit, EPERM when the limit is 0. Under soft_lock.
 */
int soft_pages_charge(size_t pages);
void soft_pages_uncharge(size_t pages);
/* Takes an uncharging back, whatever the limit says by now. */
void soft_pages_recharge(size_t pages);
/* After fork: nothing is registered. */
void soft_pages_forget(void);

#endif
