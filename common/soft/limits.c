/* SPDX-License-Identifier: MIT */
/*
 * The limits of the device, and the environment variables that narrow them.
 * The numbers are those of the kernel's rxe.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MANY (1u << 20)

static struct soft_device_limits limits = {
	.max_qp = MANY,
	.max_cq = MANY,
	.max_mr = MANY,
	.max_pd = MANY,
	.max_ah = MANY,
	.max_srq = MANY,
	.max_qp_wr = 1u << 20,
	.max_sge = SOFT_MAX_SGE,
	.max_inline = SOFT_MAX_INLINE,
	.max_cqe = 32767,
	.max_srq_wr = 1u << 20,
	.max_srq_sge = 27,
	.max_rd_atom = 128,
	.max_mw = MANY,
	.max_mcast_grp = 8192,
	.max_mcast_attach = 56,
	.max_dm = 1u << 18,
};

/* Each narrows one limit, from `least` up to what the device can do. */
static const struct narrowing {
	const char *variable;
	uint32_t *limit;
	uint32_t least;
} narrowings[] = {
	{ "SOFTVERBS_MAX_QP_WR", &limits.max_qp_wr, 1 },
	{ "SOFTVERBS_MAX_CQE", &limits.max_cqe, 1 },
	{ "SOFTVERBS_MAX_SGE", &limits.max_sge, 1 },
	{ "SOFTVERBS_MAX_INLINE", &limits.max_inline, 0 },
	{ "SOFTVERBS_MAX_QP", &limits.max_qp, 1 },
	{ "SOFTVERBS_MAX_MR", &limits.max_mr, 1 },
	{ "SOFTVERBS_MAX_PD", &limits.max_pd, 1 },
	{ "SOFTVERBS_MAX_CQ", &limits.max_cq, 1 },
	{ "SOFTVERBS_MAX_AH", &limits.max_ah, 1 },
	{ "SOFTVERBS_MAX_SRQ", &limits.max_srq, 1 },
	{ "SOFTVERBS_MAX_SRQ_WR", &limits.max_srq_wr, 1 },
	{ "SOFTVERBS_MAX_SRQ_SGE", &limits.max_srq_sge, 1 },
	{ "SOFTVERBS_MAX_RD_ATOM", &limits.max_rd_atom, 0 },
	{ "SOFTVERBS_MAX_MW", &limits.max_mw, 0 },
	{ "SOFTVERBS_MAX_MCAST_GRP", &limits.max_mcast_grp, 0 },
	{ "SOFTVERBS_MAX_MCAST_ATTACH", &limits.max_mcast_attach, 0 },
	{ "SOFTVERBS_MAX_DM", &limits.max_dm, 0 },
};

static void narrow(const struct narrowing *narrowing)
{
	const char *text = getenv(narrowing->variable);
	unsigned long value;
	char *end;

	if (!text)
		return;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' ||
	    value < narrowing->least || value > *narrowing->limit) {
		soft_diagnose(
			"%s=%s is ignored: it takes a number from %u to %u",
			narrowing->variable, text, narrowing->least,
			*narrowing->limit);
		return;
	}
	*narrowing->limit = value;
}

static void narrow_all(void)
{
	for (size_t i = 0; i < sizeof(narrowings) / sizeof(*narrowings); i++)
		narrow(&narrowings[i]);
}

const struct soft_device_limits *soft_limits(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, narrow_all);
	return &limits;
}

uint32_t soft_ring_entries(uint32_t n)
{
	uint64_t entries = 1;

	while (entries < (uint64_t)n + 1)
		entries <<= 1;
	return entries - 1;
}

bool soft_capable(int capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[CAP_TO_INDEX(capability)].effective &
	       CAP_TO_MASK(capability);
}
