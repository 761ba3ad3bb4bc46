/* SPDX-License-Identifier: MIT */
/*
 * Extended CQs: completions read field by field.
 *
 * A poll is from start_poll() to end_poll(); another thread's waits for it,
 * unless the CQ was made for a single thread. The engine doesn't wait: each
 * step takes one CQE out of the ring, as polling does. A CQE is used up with
 * the step that reads it, so what next_poll() has not come to stays.
 *
 * Times are taken when a completion is written, on CQs that ask for them:
 * the device's clock is CLOCK_MONOTONIC_RAW in nanoseconds, the wall clock
 * CLOCK_REALTIME.
 */
#include "common/soft/engine.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "common/soft/object.h"

#define STAMPS                                 \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define READABLE (IBV_WC_STANDARD_FLAGS | STAMPS)

static struct soft_cq *soft_cq_of_ex(struct ibv_cq_ex *ex)
{
	return (struct soft_cq *)((char *)ex - offsetof(struct soft_cq, ex));
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void soft_cq_stamp(struct soft_cqe *cqe)
{
	cqe->clock = clock_ns(CLOCK_MONOTONIC_RAW);
	cqe->wallclock = clock_ns(CLOCK_REALTIME);
}

int soft_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values)
{
	if (!soft_find(context, SOFT_CONTEXT, "ibv_query_rt_values_ex"))
		return errno;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask)
		clock_gettime(CLOCK_MONOTONIC_RAW, &values->raw_clock);
	return 0;
}

/* --- polling ------------------------------------------------------------ */

static int take_next(struct soft_cq *cq)
{
	if (!soft_cq_take(cq, &cq->current))
		return ENOENT;
	cq->ex.status = cq->current.wc.status;
	cq->ex.wr_id = cq->current.wc.wr_id;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct soft_cq *cq = soft_cq_of_ex(ex);
	int err;

	if (soft_is_inherited(ex->context))
		return soft_refuse_inherited("ibv_start_poll");
	if (attr && attr->comp_mask)
		return EINVAL;
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->poll_lock);
	err = take_next(cq);
	if (!err)
		return 0;
	/* There is no end_poll() after a start_poll() that failed. */
	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->poll_lock);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take_next(soft_cq_of_ex(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct soft_cq *cq = soft_cq_of_ex(ex);

	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->poll_lock);
}

/* --- readers ------------------------------------------------------------ */

#define READER(name, type, value)                                         \
	static type read_##name(struct ibv_cq_ex *ex)                     \
	{                                                                 \
		const struct soft_cqe *cqe = &soft_cq_of_ex(ex)->current; \
                                                                          \
		return value;                                             \
	}

READER(opcode, enum ibv_wc_opcode, cqe->wc.opcode)
READER(vendor_err, uint32_t, cqe->wc.vendor_err)
READER(byte_len, uint32_t, cqe->wc.byte_len)
READER(imm_data, __be32, cqe->wc.imm_data)
READER(qp_num, uint32_t, cqe->wc.qp_num)
READER(src_qp, uint32_t, cqe->wc.src_qp)
READER(wc_flags, unsigned int, cqe->wc.wc_flags)
READER(slid, uint32_t, cqe->wc.slid)
READER(sl, uint8_t, cqe->wc.sl)
READER(dlid_path_bits, uint8_t, cqe->wc.dlid_path_bits)
READER(completion_ts, uint64_t, cqe->clock)
READER(completion_wallclock_ns, uint64_t, cqe->wallclock)

/* Nobody can have asked for these; elsewhere they are NULL, and a crash. */
static void no_such_field(const char *reader)
{
	soft_diagnose("%s: the CQ was not created for it, and soft0 has no "
		      "such field",
		      reader);
}

static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	(void)ex;
	no_such_field("ibv_wc_read_cvlan");
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	(void)ex;
	no_such_field("ibv_wc_read_flow_tag");
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	(void)ex;
	*info = (struct ibv_wc_tm_info){ .tag = 0 };
	no_such_field("ibv_wc_read_tm_info");
}

/* --- creating ----------------------------------------------------------- */

static void fill(struct ibv_cq_ex *ex)
{
	ex->comp_mask = 0;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_cvlan = read_cvlan;
	ex->read_flow_tag = read_flow_tag;
	ex->read_tm_info = read_tm_info;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

/* 0, or why there can be no such CQ, before what all CQs are checked for. */
static int check_init(const struct ibv_context *context,
		      const struct ibv_cq_init_attr_ex *init, uint32_t *flags)
{
	const uint32_t known =
		IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;

	if (init->comp_mask & ~known)
		return EINVAL;
	if (init->wc_flags & ~(uint64_t)READABLE)
		return EOPNOTSUPP;
	*flags =
		init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? init->flags : 0;
	/* IGNORE_OVERRUN among them: an overrun is told here. */
	if (*flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return EOPNOTSUPP;
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		if (!soft_find(init->parent_domain, SOFT_PD,
			       "ibv_create_cq_ex"))
			return errno;
		if (init->parent_domain->context != context)
			return EINVAL;
	}
	if (init->cqe > INT32_MAX || init->comp_vector > INT32_MAX)
		return EINVAL;
	return 0;
}

/* Checked before. */
static struct soft_pd *domain_of(const struct ibv_cq_init_attr_ex *init)
{
	if (!(init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
		return NULL;
	return (struct soft_pd *)init->parent_domain;
}

struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *init)
{
	uint32_t flags = 0;
	struct soft_cq *cq;
	int err = check_init(context, init, &flags);

	if (!err)
		err = soft_cq_create(context, (int)init->cqe, init->cq_context,
				     init->channel, (int)init->comp_vector,
				     domain_of(init), &cq);
	if (err) {
		errno = err;
		return NULL;
	}
	/* No QP has it yet: nothing completes before it is whole. */
	fill(&cq->ex);
	cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq->stamps = init->wc_flags & STAMPS;
	return &cq->ex;
}
