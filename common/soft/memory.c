/* SPDX-License-Identifier: MIT */
/*
 * The program's memory, and the carrier inside a process: the packet is
 * handed to the QP it names by a plain call, and the payload copied once,
 * from source to destination.
 *
 * What is copied was looked at just before (mapped.c), so that memory that a
 * program unmapped breaks a WR and not the program. What it unmaps in the
 * microseconds between, from another thread and while the device is at work
 * there, it faults on, as it would on its own accesses.
 *
 * Where looking says nothing the kernel makes the copy: process_vm_readv()
 * on ourselves reports what is gone as EFAULT, at a third of the speed. Where
 * that call is forbidden too (some seccomp filters) it is memcpy(), and such a
 * program faults in our code.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/soft/peers.h"

/* A page at a time: see copy(). */
#define COPY_BYTES 4096

/*
 * Some processors copy long runs tenfold slower when source and destination
 * lie differently in their cache lines, and an emulated one when memcpy()
 * takes an instruction made for long runs. Pages at a time they do not.
 */
static void copy(char *to, const char *from, size_t length)
{
	for (; length > COPY_BYTES; length -= COPY_BYTES) {
		memmove(to, from, COPY_BYTES);
		to += COPY_BYTES;
		from += COPY_BYTES;
	}
	memmove(to, from, length);
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

/* By the kernel. False: it may not do that, and nothing was copied. */
static bool copy_by_kernel(const struct iovec *to, int to_count,
			   const struct iovec *from, int from_count,
			   size_t length, bool *whole)
{
	ssize_t copied = process_vm_readv(getpid(), to, (unsigned long)to_count,
					  from, (unsigned long)from_count, 0);

	*whole = copied >= 0 && (size_t)copied == length;
	return copied >= 0 || (errno != EPERM && errno != ENOSYS);
}

bool soft_copy(const struct iovec *to, int to_count, const struct iovec *from,
	       int from_count, size_t length, bool from_ours)
{
	enum soft_mapped mapped;
	bool whole;

	if (!length)
		return true;
	mapped = soft_mapped(to, to_count, length, true);
	if (mapped == SOFT_MAPPED && !from_ours)
		mapped = soft_mapped(from, from_count, length, false);
	if (mapped == SOFT_NOT_MAPPED)
		return false;
	if (mapped == SOFT_MAPPED_UNKNOWN &&
	    copy_by_kernel(to, to_count, from, from_count, length, &whole))
		return whole;
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
		bool whole;

		if (!copy_by_kernel(&to, 1, &from, 1, from.iov_len, &whole))
			return true;
		if (!whole)
			return false;
	}
	return true;
}

bool soft_readable(const struct iovec *part, int parts)
{
	for (int i = 0; i < parts; i++) {
		enum soft_mapped mapped =
			soft_mapped(&part[i], 1, part[i].iov_len, false);

		if (mapped == SOFT_NOT_MAPPED ||
		    (mapped == SOFT_MAPPED_UNKNOWN && !try_to_read(&part[i])))
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
