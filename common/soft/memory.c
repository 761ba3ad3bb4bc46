/* SPDX-License-Identifier: MIT */
/*
 * The program's memory, and the carrier inside a process: the packet is
 * handed to the QP it names by a plain call, and the payload copied once,
 * from source to destination.
 *
 * How memory is copied. A real device pins registered pages; soft0 can't, and
 * a program may unmap what it registered. That must break a WR and not the
 * program. Before each run is copied the kernel is asked what is mapped there
 * (PROCMAP_QUERY, Linux 6.11; 0.7 us however large), and memcpy() does the
 * rest: at 64 KiB some 20 GB/s. What a program unmaps in the microseconds
 * between, from another thread and while the device is at work there, it
 * faults on, as it would on its own accesses.
 *
 * Where the kernel can't be asked, and for mappings of files (which may have
 * been truncated), it makes the copy: process_vm_readv() on ourselves reports
 * what is gone as EFAULT, at 7 GB/s. MADV_POPULATE costs as much as that
 * copy, mincore() sees no protection, a SIGSEGV handler would be the
 * program's business. Where that call is forbidden too (some seccomp
 * filters) it is memcpy(), and such a program faults in our code.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/soft/peers.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* struct procmap_query of <linux/fs.h>, missing in older headers. */
struct vma_query {
	uint64_t size, query_flags, query_addr;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
#define VMA_QUERY    _IOWR('f', 17, struct vma_query)
#define VMA_READABLE 1u
#define VMA_WRITABLE 2u

/* A process has one address space. */
static pid_t ourselves;
static int maps = -1; /* /proc/self/maps; -1: the kernel can't be asked */

enum mapped { MAPPED, NOT_MAPPED, UNKNOWN };

/* What was asked about last, in this burst of work; under soft_lock. */
static struct vma {
	uint64_t start, end, flags;
} vma;

void soft_copy_fresh(void)
{
	vma.end = 0;
}

void soft_copy_start(void)
{
	struct vma_query query = {
		.size = sizeof(query),
		.query_addr = (uintptr_t)&maps,
	};

	soft_copy_stop();
	ourselves = getpid();
	maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps >= 0 && ioctl(maps, VMA_QUERY, &query))
		soft_copy_stop();
}

void soft_copy_stop(void)
{
	if (maps >= 0)
		close(maps);
	maps = -1;
	soft_copy_fresh();
}

static enum mapped ask(uint64_t addr)
{
	struct vma_query query = { .size = sizeof(query), .query_addr = addr };

	if (addr >= vma.start && addr < vma.end)
		return MAPPED;
	if (maps < 0)
		return UNKNOWN;
	if (ioctl(maps, VMA_QUERY, &query))
		return errno == ENOENT ? NOT_MAPPED : UNKNOWN;
	if (query.inode)
		return UNKNOWN; /* pages past the file's end are SIGBUS */
	vma = (struct vma){ query.start, query.end, query.flags };
	return MAPPED;
}

static enum mapped check(const struct iovec *part, int parts, size_t length,
			 uint64_t flags)
{
	for (int i = 0; i < parts && length; i++) {
		uint64_t at = (uintptr_t)part[i].iov_base;
		size_t n = part[i].iov_len < length ? part[i].iov_len : length;
		uint64_t end = at + n;

		length -= n;
		while (at < end) {
			enum mapped mapped = ask(at);

			if (mapped != MAPPED)
				return mapped;
			if ((vma.flags & flags) != flags)
				return NOT_MAPPED;
			at = vma.end;
		}
	}
	return length ? NOT_MAPPED : MAPPED;
}

/*
 * Some processors copy long runs tenfold slower when source and destination
 * lie differently in their cache lines; pages at a time they do not.
 */
static void copy(char *to, const char *from, size_t length)
{
	const size_t page = 4096;

	if ((((uintptr_t)to ^ (uintptr_t)from) & 63) == 0) {
		memmove(to, from, length);
		return;
	}
	for (size_t at = 0; at < length; at += page)
		memmove(to + at, from + at,
			length - at < page ? length - at : page);
}

void soft_gather(const struct iovec *to, int to_count, const struct iovec *from,
		 int from_count, size_t skip, size_t length)
{
	size_t to_at = 0;

	while (length && to_count && from_count) {
		size_t n = length;

		if (skip >= from->iov_len) {
			skip -= from->iov_len;
			from++, from_count--;
			continue;
		}
		if (n > to->iov_len - to_at)
			n = to->iov_len - to_at;
		if (n > from->iov_len - skip)
			n = from->iov_len - skip;
		copy((char *)to->iov_base + to_at,
		     (const char *)from->iov_base + skip, n);
		length -= n;
		to_at += n;
		skip += n;
		if (to_at == to->iov_len) {
			to++, to_count--;
			to_at = 0;
		}
	}
}

bool soft_copy(const struct iovec *to, int to_count, const struct iovec *from,
	       int from_count, size_t length, bool from_ours)
{
	enum mapped mapped;
	ssize_t copied;

	if (!length)
		return true;
	mapped = check(to, to_count, length, VMA_READABLE | VMA_WRITABLE);
	if (mapped == MAPPED && !from_ours)
		mapped = check(from, from_count, length, VMA_READABLE);
	if (mapped == NOT_MAPPED)
		return false;
	if (mapped == UNKNOWN) {
		copied =
			process_vm_readv(ourselves, to, (unsigned long)to_count,
					 from, (unsigned long)from_count, 0);
		if (copied >= 0)
			return (size_t)copied == length;
		if (errno != EPERM && errno != ENOSYS)
			return false;
	}
	soft_gather(to, to_count, from, from_count, 0, length);
	return true;
}

/* Page by page, into nowhere. */
static bool try_to_read(const struct iovec *part)
{
	char sink[4096];

	for (size_t at = 0; at < part->iov_len; at += sizeof(sink)) {
		size_t left = part->iov_len - at;
		struct iovec from = { (char *)part->iov_base + at,
				      left < sizeof(sink) ? left
							  : sizeof(sink) };
		struct iovec to = { sink, from.iov_len };
		ssize_t n = process_vm_readv(ourselves, &to, 1, &from, 1, 0);

		if (n < 0 && (errno == EPERM || errno == ENOSYS))
			return true;
		if (n < 0 || (size_t)n != from.iov_len)
			return false;
	}
	return true;
}

static bool populate(const struct iovec *part)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)part->iov_base & -page;
	uintptr_t end = (uintptr_t)part->iov_base + part->iov_len;

	if (!madvise((void *)start, end - start, MADV_POPULATE_READ))
		return true;
	/* Older kernels, and mappings that it is not for. */
	return errno == EINVAL && try_to_read(part);
}

bool soft_readable(const struct iovec *part, int parts)
{

	for (int i = 0; i < parts; i++) {
		enum mapped mapped =
			check(&part[i], 1, part[i].iov_len, VMA_READABLE);

		if (mapped == NOT_MAPPED ||
		    (mapped == UNKNOWN && !populate(&part[i])))
			return false;
	}
	return true;
}

void soft_carrier_send(struct soft_packet *packet)
{
	union ibv_gid gid = soft_gid();
	struct soft_qp *qp;

	if (soft_is_mcast(&packet->dgid)) {
		soft_peers_send_all(packet);
		return;
	}
	if (memcmp(&packet->dgid, &gid, sizeof(gid)))
		return;
	qp = soft_qp_find(packet->dest_qpn);
	if (qp)
		soft_receive(qp, packet);
	else if (soft_peers_has(packet->dest_qpn))
		soft_peers_send(packet);
}

bool soft_carrier_room(struct soft_engine_qp *eq, struct soft_packet *p)
{
	return soft_is_mcast(&p->dgid) || soft_qp_find(p->dest_qpn) ||
	       !soft_peers_has(p->dest_qpn) || soft_peers_room(eq, p);
}
