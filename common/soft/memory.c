/* SPDX-License-Identifier: MIT */
/*
 * The carrier inside a process: the packet is handed to the QP it names by a
 * plain call, and the payload copied once, from source to destination.
 *
 * How memory is copied. A real device pins registered pages; soft0 can't, and
 * a program may unmap what it registered. So that this breaks a WR and not
 * the program, the kernel makes the copy: process_vm_readv() on ourselves
 * reports memory that is gone as EFAULT. It costs a system call, some 1.4 us
 * a run where memcpy() of 4 KiB takes 0.1; at 64 KiB a run (carrier.h) it
 * moves 7 GB/s where memcpy() moves 30. Checks beforehand (mincore) cost as
 * much, leave a race and see no protection bits; a SIGSEGV handler would be
 * the program's business. Where the call is forbidden (some seccomp
 * filters) it is memcpy(), and such a program faults in our thread.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static pid_t ourselves;

void soft_copy_start(void)
{
	ourselves = getpid();
}

static bool plain_copy(const struct iovec *to, int to_count,
		       const struct iovec *from, int from_count, size_t length)
{
	size_t to_at = 0, from_at = 0;

	while (length && to_count && from_count) {
		size_t n = length;

		if (n > to->iov_len - to_at)
			n = to->iov_len - to_at;
		if (n > from->iov_len - from_at)
			n = from->iov_len - from_at;
		memmove((char *)to->iov_base + to_at,
			(const char *)from->iov_base + from_at, n);
		length -= n;
		to_at += n;
		from_at += n;
		if (to_at == to->iov_len) {
			to++, to_count--;
			to_at = 0;
		}
		if (from_at == from->iov_len) {
			from++, from_count--;
			from_at = 0;
		}
	}
	return !length;
}

bool soft_copy(const struct iovec *to, int to_count, const struct iovec *from,
	       int from_count, size_t length)
{
	ssize_t copied;

	if (!length)
		return true;
	copied = process_vm_readv(ourselves, to, (unsigned long)to_count, from,
				  (unsigned long)from_count, 0);
	if (copied < 0 && (errno == EPERM || errno == ENOSYS))
		return plain_copy(to, to_count, from, from_count, length);
	return copied >= 0 && (size_t)copied == length;
}

bool soft_readable(const struct iovec *part, int parts)
{
	char sink[4096];

	for (int i = 0; i < parts; i++) {
		for (size_t at = 0; at < part[i].iov_len; at += sizeof(sink)) {
			size_t n = part[i].iov_len - at;
			struct iovec from = { (char *)part[i].iov_base + at,
					      n < sizeof(sink) ? n
							       : sizeof(sink) };
			struct iovec to = { sink, from.iov_len };

			if (!soft_copy(&to, 1, &from, 1, from.iov_len))
				return false;
		}
	}
	return true;
}

void soft_carrier_send(struct soft_packet *packet)
{
	union ibv_gid gid = soft_gid();
	struct soft_qp *qp;

	if (memcmp(&packet->dgid, &gid, sizeof(gid)))
		return;
	qp = soft_qp_find(packet->dest_qpn);
	if (qp)
		soft_receive(qp, packet);
}
