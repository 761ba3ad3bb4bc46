/* SPDX-License-Identifier: MIT */
/*
 * Homes: the directory, claiming blocks, clearing away what the dead left.
 */
#include "common/soft/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/soft/object.h"
#include "common/soft/peers.h"

#define HOME_MAGIC   0x30746673u /* "sft0" */
#define HOME_VERSION 1u
#define HOME_BYTES   4096u
#define MOST_BLOCKS  1024u /* of one process */

_Static_assert(sizeof(struct soft_home) <= HOME_BYTES, "a home is a page");

struct claim {
	uint32_t block;
	int fd; /* holds the lock */
	struct soft_home *home;
};

/* A process is one on its machine. Under soft_lock, but for `users`. */
static struct {
	pthread_mutex_t join_lock; /* before soft_lock */
	unsigned int users;
	int directory;
	char path[256];
	struct claim *claims;
	unsigned int count;
	struct soft_home *home; /* of the first claim; atomic */
} machine = {
	.join_lock = PTHREAD_MUTEX_INITIALIZER,
	.directory = -1,
};

/* --- the directory ------------------------------------------------------ */

static int complain(const char *what, int err)
{
	soft_diagnose("%s %s: %s", what, machine.path, strerror(err));
	return err;
}

static int check_directory(int fd)
{
	struct stat is;

	if (fstat(fd, &is))
		return complain("cannot look at", errno);
	if (is.st_uid != geteuid()) {
		soft_diagnose("%s belongs to user %u, not to you: another "
			      "name can be given with SOFTVERBS_DIR",
			      machine.path, (unsigned int)is.st_uid);
		return EPERM;
	}
	if (is.st_mode & 077) {
		soft_diagnose("%s is open to others (mode %04o): chmod 700 it",
			      machine.path, (unsigned int)is.st_mode & 07777);
		return EPERM;
	}
	return 0;
}

static int open_directory(void)
{
	const char *wish = secure_getenv("SOFTVERBS_DIR");
	int fd, err;

	if (wish && *wish)
		snprintf(machine.path, sizeof(machine.path), "%s", wish);
	else
		snprintf(machine.path, sizeof(machine.path), "%s/softverbs-%u",
			 access("/dev/shm", F_OK) ? "/tmp" : "/dev/shm",
			 (unsigned int)geteuid());
	if (mkdir(machine.path, 0700) && errno != EEXIST)
		return complain("cannot make the directory", errno);
	fd = open(machine.path,
		  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		err = errno;
		if (err == ENOTDIR || err == ELOOP)
			soft_diagnose("%s is no directory", machine.path);
		else
			complain("cannot open the directory", err);
		return err;
	}
	err = check_directory(fd);
	if (err)
		close(fd);
	else
		machine.directory = fd;
	return err;
}

/* --- homes -------------------------------------------------------------- */

static void name_of(uint32_t block, char name[8])
{
	snprintf(name, 8, "%03x", block & 0xfff);
}

/* Whether `fd` is still what the name stands for. */
static bool is_still(int fd, const char *name)
{
	struct stat ours, theirs;

	return !fstat(fd, &ours) &&
	       !fstatat(machine.directory, name, &theirs,
			AT_SYMLINK_NOFOLLOW) &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* "012" is a home, "012-345" a ring. */
static bool is_home_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == 3 && !name[3];
}

static bool is_ring_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == 3 && name[3] == '-';
}

/* Takes away a home whose process is dead: nobody holds its lock. */
static void clear_home(const char *name)
{
	int fd = openat(machine.directory, name,
			O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB) && is_still(fd, name))
		unlinkat(machine.directory, name, 0);
	close(fd);
}

/* A ring that nobody took, of a sender that is no more. */
static void clear_ring(const char *name)
{
	char sender[4] = "";

	memcpy(sender, name, 3);
	if (faccessat(machine.directory, sender, F_OK, 0) && errno == ENOENT)
		unlinkat(machine.directory, name, 0);
}

static DIR *list_directory(void)
{
	int fd = openat(machine.directory, ".",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list && fd >= 0)
		close(fd);
	return list;
}

static void clear_dead(void)
{
	static bool (*const is[])(const char *) = { is_home_name,
						    is_ring_name };
	static void (*const clear[])(const char *) = { clear_home, clear_ring };

	for (int i = 0; i < 2; i++) {
		DIR *list = list_directory();

		if (!list)
			return;
		for (struct dirent *entry; (entry = readdir(list));)
			if (is[i](entry->d_name))
				clear[i](entry->d_name);
		closedir(list);
	}
}

static struct soft_home *map_home(int fd)
{
	void *home = mmap(NULL, HOME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);

	return home == MAP_FAILED ? NULL : home;
}

/* 0; EEXIST: it is somebody's; or what is wrong. */
static int try_claim(uint32_t block, struct claim *claim)
{
	char name[8];
	int err;

	name_of(block, name);
	claim->block = block;
	claim->fd = openat(machine.directory, name,
			   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			   0600);
	if (claim->fd < 0)
		return errno;
	/* Somebody may have taken it for a dead one's before it was locked. */
	if (flock(claim->fd, LOCK_EX | LOCK_NB) || !is_still(claim->fd, name)) {
		close(claim->fd);
		return EEXIST;
	}
	/* Memory that isn't there when it's touched would be a SIGBUS. */
	err = posix_fallocate(claim->fd, 0, HOME_BYTES);
	claim->home = err ? NULL : map_home(claim->fd);
	if (!claim->home) {
		err = err ? err : errno;
		unlinkat(machine.directory, name, 0);
		close(claim->fd);
		return err;
	}
	claim->home->version = HOME_VERSION;
	claim->home->block = block;
	claim->home->main_block =
		machine.count ? machine.claims[0].block : block;
	__atomic_store_n(&claim->home->magic, HOME_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* One more block, any that is free: a number that is gone stays so long. */
static int claim_one(void)
{
	const uint32_t most = SOFT_BLOCKS - 2;
	struct claim *more;
	uint32_t start;
	int err = EEXIST;

	if (machine.count == MOST_BLOCKS)
		return EAGAIN;
	more = realloc(machine.claims, (machine.count + 1) * sizeof(*more));
	if (!more)
		return ENOMEM;
	machine.claims = more;
	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) != sizeof(start))
		start = (uint32_t)getpid() * 2654435761u >> 8;
	for (uint32_t i = 0; i < most && err == EEXIST; i++)
		err = try_claim(1 + (start % most + i) % most,
				&more[machine.count]);
	if (!err)
		machine.count++;
	else if (err == EEXIST)
		err = EAGAIN;
	return err;
}

static int settle(void)
{
	int err = open_directory();

	if (err)
		return err;
	clear_dead();
	err = claim_one();
	if (!err) {
		__atomic_store_n(&machine.home, machine.claims[0].home,
				 __ATOMIC_RELEASE);
		return 0;
	}
	if (err == EAGAIN)
		soft_diagnose("too many processes have soft0 open: no block "
			      "of QP numbers is free in %s",
			      machine.path);
	else
		complain("cannot make a file in", err);
	close(machine.directory);
	machine.directory = -1;
	return err;
}

static void take_name(const struct claim *claim)
{
	char name[8];

	name_of(claim->block, name);
	__atomic_store_n(&claim->home->left, 1, __ATOMIC_RELEASE);
	unlinkat(machine.directory, name, 0);
}

/* Under soft_lock. */
static void depart(bool unlink_too)
{
	__atomic_store_n(&machine.home, NULL, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < machine.count; i++) {
		struct claim *claim = &machine.claims[i];

		if (unlink_too)
			take_name(claim);
		munmap(claim->home, HOME_BYTES);
		close(claim->fd);
	}
	free(machine.claims);
	machine.claims = NULL;
	machine.count = 0;
	if (machine.directory >= 0)
		close(machine.directory);
	machine.directory = -1;
}

int soft_machine_join(void)
{
	int err = 0;

	pthread_mutex_lock(&machine.join_lock);
	if (!machine.users) {
		soft_enter();
		err = settle();
		soft_leave();
	}
	if (!err)
		machine.users++;
	pthread_mutex_unlock(&machine.join_lock);
	return err;
}

void soft_machine_leave(void)
{
	pthread_mutex_lock(&machine.join_lock);
	if (!--machine.users) {
		soft_enter();
		soft_peers_forget();
		depart(true);
		soft_leave();
	}
	pthread_mutex_unlock(&machine.join_lock);
}

void soft_machine_end(void)
{
	soft_peers_unlink();
	for (unsigned int i = 0; i < machine.count; i++)
		take_name(&machine.claims[i]);
}

void soft_machine_forget(void)
{
	pthread_mutex_init(&machine.join_lock, NULL);
	machine.users = 0;
	depart(false);
}

struct soft_home *soft_machine_home(void)
{
	return __atomic_load_n(&machine.home, __ATOMIC_ACQUIRE);
}

void soft_machine_serve(bool serving)
{
	struct soft_home *home = soft_machine_home();

	if (home)
		__atomic_store_n(&home->serving, serving, __ATOMIC_RELEASE);
}

uint32_t soft_machine_block(unsigned int index)
{
	int err = 0;

	while (machine.count && index >= machine.count && !err)
		err = claim_one();
	if (err)
		complain("no more QP numbers in", err);
	return index < machine.count ? machine.claims[index].block : 0;
}

unsigned int soft_machine_blocks(void)
{
	return machine.count;
}

int soft_machine_directory(void)
{
	return machine.directory;
}

/* --- others' homes ------------------------------------------------------ */

static bool makes_sense(const struct stat *is)
{
	return S_ISREG(is->st_mode) && is->st_uid == geteuid() &&
	       is->st_size == HOME_BYTES;
}

bool soft_neighbour_open(struct soft_neighbour *n, uint32_t block)
{
	struct stat is;
	char name[8];

	name_of(block, name);
	n->fd = openat(machine.directory, name,
		       O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (n->fd < 0)
		return false;
	if (fstat(n->fd, &is) || !makes_sense(&is))
		goto close_it;
	n->home = map_home(n->fd);
	if (!n->home)
		goto close_it;
	n->device = is.st_dev;
	n->inode = is.st_ino;
	if (__atomic_load_n(&n->home->magic, __ATOMIC_ACQUIRE) == HOME_MAGIC &&
	    n->home->version == HOME_VERSION)
		return true;
	munmap(n->home, HOME_BYTES);
close_it:
	close(n->fd);
	return false;
}

void soft_neighbour_close(struct soft_neighbour *n)
{
	munmap(n->home, HOME_BYTES);
	close(n->fd);
}

bool soft_neighbour_lives(const struct soft_neighbour *n, uint32_t block)
{
	char name[8];

	name_of(block, name);
	if (__atomic_load_n(&n->home->left, __ATOMIC_RELAXED) ||
	    !is_still(n->fd, name))
		return false;
	if (flock(n->fd, LOCK_SH | LOCK_NB))
		return true;
	flock(n->fd, LOCK_UN);
	return false;
}

void soft_machine_each(void (*visit)(uint32_t block, void *arg), void *arg)
{
	DIR *list = list_directory();

	if (!list)
		return;
	for (struct dirent *entry; (entry = readdir(list));) {
		uint32_t block;

		if (!is_home_name(entry->d_name))
			continue;
		block = (uint32_t)strtoul(entry->d_name, NULL, 16);
		if (block != machine.claims[0].block)
			visit(block, arg);
	}
	closedir(list);
}
