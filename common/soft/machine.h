/* SPDX-License-Identifier: MIT */
/*
 * The processes of one user on one machine, and how they find each other:
 * a directory that only this user can enter, and in it a file ("home") for
 * each process that has the device open.
 *
 * A home's name is a block of QP numbers, and the process holds a lock on it
 * as long as it lives: the kernel lets go of the lock however a process ends,
 * so that a home without one is known as a dead one's, and cleared away by
 * the next process that comes. A process with many QPs claims more blocks.
 *
 * What is in a home other processes write into: it wakes, and says who has
 * news, and is believed in nothing else.
 */
#ifndef SOFT_MACHINE_H
#define SOFT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOFT_BLOCKS      4096u /* 0 and the last are nobody's */
#define SOFT_BLOCK_SHIFT 12    /* QP numbers in a block: 2^12 */
#define SOFT_NEWS_WORDS  (SOFT_BLOCKS / 64)

/* In shared memory; all but the first line by __atomic_*. */
struct soft_home {
	uint32_t magic, version;
	uint32_t block, main_block; /* the process's first */
	uint32_t left;    /* it has closed the device, or ended in order */
	uint32_t serving; /* its engine's thread is there: it takes packets */
	/* 1: the engine's thread sleeps on this futex; waking sets 0. */
	_Alignas(64) uint32_t asleep;
	/* Bit b / 64 of summary, then bit b of news: block b has news. */
	_Alignas(64) uint64_t summary;
	uint64_t news[SOFT_NEWS_WORDS];
	uint64_t fresh[SOFT_NEWS_WORDS]; /* and a new ring */
};

/*
 * Joins the other processes, or counts one more that wants them: 0, or an
 * errno and a line on stderr that says what is in the way. soft_lock is not
 * held, here and in leaving.
 */
int soft_machine_join(void);
/* When none is left that wants them, nothing remains of this process. */
void soft_machine_leave(void);
/*
 * At exit, under soft_lock: the names go, however many want it; the memory
 * stays, since other threads may still look into it.
 */
void soft_machine_end(void);
/* In a forked child: what was the parent's is let go of. */
void soft_machine_forget(void);

/* Ours; NULL before joining. Without soft_lock. */
struct soft_home *soft_machine_home(void);
/* Whether this process takes packets. */
void soft_machine_serve(bool serving);
/* The `index`th block that this process holds; claims it if need be; 0: no. */
uint32_t soft_machine_block(unsigned int index);
unsigned int soft_machine_blocks(void); /* that it holds */
/* The directory's descriptor, for openat(). */
int soft_machine_directory(void);

/* Another process's home, mapped, with a descriptor of it. */
struct soft_neighbour {
	struct soft_home *home;
	int fd;
	dev_t device;
	ino_t inode;
};
/* False: there's none that makes sense. */
bool soft_neighbour_open(struct soft_neighbour *n, uint32_t block);
void soft_neighbour_close(struct soft_neighbour *n);
/* Whether its process lives, and the block is still its own. System calls. */
bool soft_neighbour_lives(const struct soft_neighbour *n, uint32_t block);

/* Calls `visit` with the main block of every other process's home. */
void soft_machine_each(void (*visit)(uint32_t block, void *arg), void *arg);

/* Tells `home` that `block` has news. */
void soft_home_tell(struct soft_home *home, uint32_t block, bool fresh);
/* Wakes the thread that sleeps in `home`, if one does. Any thread. */
void soft_home_wake(struct soft_home *home);
/* Sleeps in our own until woken, or `timeout_ns` are over (< 0: no limit). */
void soft_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns);
void soft_futex_wake(uint32_t *word);

#endif
