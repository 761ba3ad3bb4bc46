/* SPDX-License-Identifier: MIT */
/*
 * Rings: their files, and putting and taking.
 */
#include "common/soft/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/soft/machine.h"

#define RING_MAGIC  0x474e4952u /* "RING" */
#define HEAD_BYTES  4096u
#define MOST_BYTES  262144u /* of a lane */
#define LEAST_BYTES 131072u /* room for a READ's whole run and more */

struct ring_head {
	uint32_t magic, bytes, from, to;
	struct soft_lane_shared lane[SOFT_LANES];
};

_Static_assert(sizeof(struct ring_head) <= HEAD_BYTES, "the head is a page");

static void name_of(uint32_t from, uint32_t to, char name[16])
{
	snprintf(name, 16, "%03x-%03x", from & 0xfff, to & 0xfff);
}

static size_t size_of(uint32_t bytes)
{
	return HEAD_BYTES + (size_t)SOFT_LANES * bytes;
}

static bool map_ring(struct soft_peer_ring *ring, int fd, uint32_t bytes)
{
	struct ring_head *head;

	ring->size = size_of(bytes);
	head = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (head == MAP_FAILED)
		return false;
	ring->mapped = head;
	for (int i = 0; i < SOFT_LANES; i++)
		ring->lane[i] = (struct soft_lane){
			.shared = &head->lane[i],
			.data = (uint8_t *)head + size_of(bytes) -
				(size_t)(SOFT_LANES - i) * bytes,
			.bytes = bytes,
		};
	return true;
}

/* As large as there is memory for; it is all there before it is touched. */
static int get_memory(int fd, uint32_t *bytes)
{
	int err = ENOSPC;

	for (*bytes = MOST_BYTES; *bytes >= LEAST_BYTES; *bytes /= 2) {
		err = posix_fallocate(fd, 0, (off_t)size_of(*bytes));
		if (err != ENOSPC && err != ENOMEM)
			break;
		if (ftruncate(fd, 0))
			return errno;
	}
	return err;
}

int soft_ring_make(struct soft_peer_ring *ring, uint32_t from, uint32_t to)
{
	struct ring_head *head;
	uint32_t bytes = 0;
	char name[16];
	int fd, err;

	name_of(from, to, name);
	/* `from` is ours: what is there is of a dead process. */
	unlinkat(soft_machine_directory(), name, 0);
	fd = openat(soft_machine_directory(), name,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	err = get_memory(fd, &bytes);
	if (!err && !map_ring(ring, fd, bytes))
		err = errno;
	close(fd);
	if (err) {
		unlinkat(soft_machine_directory(), name, 0);
		return err;
	}
	head = ring->mapped;
	head->bytes = bytes;
	head->from = from;
	head->to = to;
	__atomic_store_n(&head->magic, RING_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static uint32_t bytes_of(int fd)
{
	struct stat is;

	if (fstat(fd, &is) || !S_ISREG(is.st_mode) || is.st_uid != geteuid())
		return 0;
	for (uint32_t bytes = MOST_BYTES; bytes >= LEAST_BYTES; bytes /= 2)
		if (is.st_size == (off_t)size_of(bytes))
			return bytes;
	return 0;
}

bool soft_ring_open(struct soft_peer_ring *ring, uint32_t from, uint32_t to)
{
	const struct ring_head *head;
	uint32_t bytes;
	char name[16];
	int fd;

	name_of(from, to, name);
	fd = openat(soft_machine_directory(), name,
		    O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	bytes = bytes_of(fd);
	if (bytes && !map_ring(ring, fd, bytes))
		bytes = 0;
	close(fd);
	unlinkat(soft_machine_directory(), name, 0);
	if (!bytes)
		return false;
	head = ring->mapped;
	if (__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE) == RING_MAGIC &&
	    head->bytes == bytes && head->from == from && head->to == to)
		return true;
	soft_ring_close(ring);
	return false;
}

void soft_ring_close(struct soft_peer_ring *ring)
{
	if (ring->mapped)
		munmap(ring->mapped, ring->size);
	ring->mapped = NULL;
}

void soft_ring_unlink(uint32_t from, uint32_t to)
{
	char name[16];

	name_of(from, to, name);
	unlinkat(soft_machine_directory(), name, 0);
}

/* --- putting ------------------------------------------------------------ */

/* An index of the receiver's that makes no sense is as if it stood still. */
static bool has_room(struct soft_lane *lane, uint32_t cost)
{
	uint32_t head;

	if (lane->bytes - (lane->mine - lane->theirs) >= cost)
		return true;
	head = __atomic_load_n(&lane->shared->head, __ATOMIC_ACQUIRE);
	if (lane->mine - head > lane->mine - lane->theirs || head & 127)
		return false;
	lane->theirs = head;
	return lane->bytes - (lane->mine - head) >= cost;
}

bool soft_lane_room(struct soft_lane *lane, uint32_t cost)
{
	if (has_room(lane, cost))
		return true;
	__atomic_store_n(&lane->shared->hungry, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return has_room(lane, cost);
}

bool soft_lane_empty(const struct soft_lane *lane)
{
	return __atomic_load_n(&lane->shared->head, __ATOMIC_ACQUIRE) ==
	       lane->mine;
}

/* `length` bytes at an index, which may go round the end. */
static int places_at(const struct soft_lane *lane, uint32_t index,
		     uint32_t length, struct iovec place[2])
{
	uint32_t at = index & (lane->bytes - 1);
	uint32_t first = lane->bytes - at;

	if (!length)
		return 0;
	if (first >= length) {
		place[0] = (struct iovec){ lane->data + at, length };
		return 1;
	}
	place[0] = (struct iovec){ lane->data + at, first };
	place[1] = (struct iovec){ lane->data, length - first };
	return 2;
}

int soft_lane_place(const struct soft_lane *lane, uint32_t length,
		    struct iovec place[2])
{
	return places_at(lane,
			 lane->mine + (uint32_t)sizeof(struct soft_record),
			 length, place);
}

void soft_lane_put(struct soft_lane *lane, const struct soft_record *r,
		   uint32_t length)
{
	memcpy(lane->data + (lane->mine & (lane->bytes - 1)), r, sizeof(*r));
	lane->mine += soft_lane_cost(length);
	__atomic_store_n(&lane->shared->tail, lane->mine, __ATOMIC_RELEASE);
}

/* --- taking ------------------------------------------------------------- */

int soft_lane_take(struct soft_lane *lane, struct soft_record *r,
		   struct iovec place[2], int *places)
{
	uint32_t there;

	if (lane->theirs == lane->mine)
		lane->theirs =
			__atomic_load_n(&lane->shared->tail, __ATOMIC_ACQUIRE);
	there = lane->theirs - lane->mine;
	if (!there)
		return 0;
	if (there > lane->bytes || there & 127)
		return -1;
	memcpy(r, lane->data + (lane->mine & (lane->bytes - 1)), sizeof(*r));
	if (r->length > SOFT_PIECE_BYTES || soft_lane_cost(r->length) > there)
		return -1;
	*places = places_at(lane,
			    lane->mine + (uint32_t)sizeof(struct soft_record),
			    r->length, place);
	return 1;
}

void soft_lane_release(struct soft_lane *lane, uint32_t length)
{
	lane->mine += soft_lane_cost(length);
	__atomic_store_n(&lane->shared->head, lane->mine, __ATOMIC_RELEASE);
}

bool soft_lane_fed(struct soft_lane *lane)
{
	uint32_t tail;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&lane->shared->hungry, __ATOMIC_SEQ_CST))
		return false;
	tail = __atomic_load_n(&lane->shared->tail, __ATOMIC_RELAXED);
	if (tail - lane->mine > lane->bytes / 2)
		return false;
	__atomic_store_n(&lane->shared->hungry, 0, __ATOMIC_SEQ_CST);
	return true;
}
