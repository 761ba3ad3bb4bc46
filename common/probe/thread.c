/* SPDX-License-Identifier: MIT */
/*
 * What each thread has, and the end of the program: the thread that ends it
 * reports what the others have counted, though they are in the middle of
 * something. No lock on the data path: each thread says in `depth` whether
 * its slots may change, with plain stores; the one that looks makes them
 * visible with membarrier(2).
 */
#include "probe.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE        64 /* bytes of a line of the processor's cache */
#define PATIENCE_MS 20 /* for threads in a data path call, all together */

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *all;

static void link_in(struct thread *thread)
{
	thread->next = all;
	thread->link = &all;
	if (all)
		all->link = &thread->next;
	all = thread;
}

static void link_out(struct thread *thread)
{
	pthread_mutex_lock(&lock);
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	pthread_mutex_unlock(&lock);
}

static void thread_ends(void *arg)
{
	struct thread *thread = arg;

	if (thread_enter(thread)) {
		quiet_flush(thread, true);
		thread_leave(thread);
	}
	link_out(thread);
	for (int i = 0; i < SLOTS; i++)
		free(thread->slot[i].body);
	batch_free(thread->batch);
	thread_self = NULL;
	free(thread);
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ends);
}

struct thread *thread_get(void)
{
	size_t size = (sizeof(struct thread) + LINE - 1) / LINE * LINE;
	struct thread *thread = thread_self;

	if (thread)
		return thread;
	thread = aligned_alloc(LINE, size);
	if (!thread)
		return NULL;
	*thread = (struct thread){
		.tid = (pid_t)syscall(SYS_gettid),
		.tick = 1,
		.ticks = 1,
	};
	pthread_once(&key_once, make_key);
	pthread_setspecific(key, thread);
	thread_self = thread;
	pthread_mutex_lock(&lock);
	link_in(thread);
	pthread_mutex_unlock(&lock);
	return thread;
}

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

void threads_start(void)
{
	/* While there is one thread it costs nothing. */
	membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

void threads_forked(void)
{
	struct thread *thread = thread_self;

	pthread_mutex_init(&lock, NULL);
	all = NULL;
	if (thread)
		link_in(thread);
}

/* Waits until the thread's slots are left alone; false: they are not. */
static bool settled(const struct thread *thread, uint64_t until)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	while (atomic_load_explicit(&thread->depth, memory_order_acquire) ==
	       DEPTH_COUNTS) {
		if (channel_ms() > until)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

void threads_flush(void)
{
	uint64_t until = channel_ms() + PATIENCE_MS;
	struct thread *thread = thread_self;

	if (thread)
		quiet_flush(thread, true);
	/* From here each other thread either sees the mode, or is seen. */
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
		return;
	pthread_mutex_lock(&lock);
	for (struct thread *other = all; other; other = other->next)
		if (other != thread && settled(other, until))
			quiet_flush(other, false);
	pthread_mutex_unlock(&lock);
}
