/* SPDX-License-Identifier: MIT */
/*
 * Extended CQs. Events are ibv_start_poll(), ibv_next_poll() and
 * ibv_end_poll(); the first two tell the completion that they came to, read
 * as the program may read it: only the fields that the CQ was created for.
 * The readers themselves change nothing and stay the device's own.
 */
#include "data_path.h"

#include <errno.h>

#include "fields.h"

struct cq_ex {
	struct wrapped wrapped; /* first: wrapped.c allocates it */
	uint64_t wc_flags;      /* of its creation: what may be read */
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
};

static inline const struct cq_ex *saved_of(const struct ibv_cq_ex *cq)
{
	return (const struct cq_ex *)wrapped_find(RULES_CQ, cq);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const struct cq_ex *saved = saved_of(cq);

	if (!saved)
		return EINVAL;
	DATA_PATH(ibv_start_poll, saved->start_poll(cq, attr), cq, attr, NULL);
}

static int next_poll(struct ibv_cq_ex *cq)
{
	const struct cq_ex *saved = saved_of(cq);

	if (!saved)
		return EINVAL;
	DATA_PATH(ibv_next_poll, saved->next_poll(cq), cq, NULL, NULL);
}

static void end_poll(struct ibv_cq_ex *cq)
{
	const struct cq_ex *saved = saved_of(cq);
	int ret;

	if (!saved)
		return;
	DATA_CALL(ret, ibv_end_poll, (saved->end_poll(cq), 0), cq, NULL, NULL);
	(void)ret;
}

void cq_ex_wrap(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	struct cq_ex *saved;

	if (!cq->start_poll || cq->start_poll == start_poll)
		return;
	wrapped_lock();
	saved = (struct cq_ex *)wrapped_entry(RULES_CQ, cq, sizeof(*saved));
	if (saved && cq->start_poll != start_poll) {
		saved->wc_flags = wc_flags;
		saved->start_poll = cq->start_poll;
		saved->next_poll = cq->next_poll;
		saved->end_poll = cq->end_poll;
		atomic_store_explicit(&saved->wrapped.object, cq,
				      memory_order_release);
		cq->start_poll = start_poll;
		cq->next_poll = next_poll;
		cq->end_poll = end_poll;
	}
	wrapped_unlock();
}

/* --- the completion that a poll came to ----------------------------------- */

/* Begins like a struct ibv_wc: rows over that one fit. */
struct completion {
	struct ibv_wc wc;
	uint64_t completion_ts, completion_wallclock_ns;
};

#define WC(member, as, ...) MEMBER(struct ibv_wc, member, as, ##__VA_ARGS__)
#define STAMP(member, flag)                              \
	MEMBER(struct completion, member, KIND_UNSIGNED, \
	       .bit = IBV_WC_EX_WITH_COMPLETION_##flag)
/* What the opcode field tells of imm_data; above all flags of wc_flags. */
#define INVALIDATED (1u << 31)
static const struct field wc_fields[] = {
	WC(wr_id, KIND_UNSIGNED),
	WC(status, KIND_ENUM, .name_of = name_wc_status),
	WC(qp_num, KIND_UNSIGNED, .bit = IBV_WC_EX_WITH_QP_NUM),
	END,
};
static const struct field wc_error_fields[] = {
	WC(vendor_err, KIND_UNSIGNED),
	END,
};
static const struct field wc_good_fields[] = {
	WC(opcode, KIND_ENUM, .name_of = name_wc_opcode),
	WC(byte_len, KIND_UNSIGNED, .bit = IBV_WC_EX_WITH_BYTE_LEN),
	WC(wc_flags, KIND_FLAGS, .name_of = name_wc_bit),
	WC(imm_data, KIND_BIG_ENDIAN, .bit = IBV_WC_EX_WITH_IMM),
	WC(invalidated_rkey, KIND_UNSIGNED, .bit = INVALIDATED),
	WC(src_qp, KIND_UNSIGNED, .bit = IBV_WC_EX_WITH_SRC_QP),
	STAMP(completion_ts, TIMESTAMP),
	STAMP(completion_wallclock_ns, TIMESTAMP_WALLCLOCK),
	END,
};

/* Which of the fields that may be read mean something here. */
static unsigned int meant(uint64_t asked, unsigned int wc_flags)
{
	unsigned int mask = (unsigned int)asked & ~INVALIDATED;

	if (wc_flags & IBV_WC_WITH_INV && asked & IBV_WC_EX_WITH_IMM)
		mask |= INVALIDATED;
	if (!(wc_flags & IBV_WC_WITH_IMM))
		mask &= ~(unsigned int)IBV_WC_EX_WITH_IMM;
	if (!(wc_flags & IBV_WC_GRH))
		mask &= ~(unsigned int)IBV_WC_EX_WITH_SRC_QP;
	return mask;
}

#define READ(flag, field, reader)                               \
	do {                                                    \
		if (mask & IBV_WC_EX_WITH_##flag && cq->reader) \
			field = cq->reader(cq);                 \
	} while (0)

static void read_good(struct ibv_cq_ex *cq, unsigned int mask,
		      struct completion *c)
{
	READ(BYTE_LEN, c->wc.byte_len, read_byte_len);
	READ(SRC_QP, c->wc.src_qp, read_src_qp);
	READ(COMPLETION_TIMESTAMP, c->completion_ts, read_completion_ts);
	READ(COMPLETION_TIMESTAMP_WALLCLOCK, c->completion_wallclock_ns,
	     read_completion_wallclock_ns);
	if (mask & INVALIDATED)
		c->wc.invalidated_rkey = ibv_wc_read_invalidated_rkey(cq);
	else
		READ(IMM, c->wc.imm_data, read_imm_data);
}

static void add_completion(struct decode *d, struct ibv_cq_ex *cq,
			   uint64_t asked)
{
	struct completion c = { .wc = { .wr_id = cq->wr_id,
					.status = cq->status } };
	bool good = cq->status == IBV_WC_SUCCESS;
	unsigned int mask;

	if (good) {
		c.wc.opcode = cq->read_opcode(cq);
		c.wc.wc_flags = cq->read_wc_flags(cq);
	} else {
		c.wc.vendor_err = cq->read_vendor_err(cq);
	}
	mask = meant(asked, c.wc.wc_flags);
	READ(QP_NUM, c.wc.qp_num, read_qp_num);
	if (good)
		read_good(cq, mask, &c);
	d->mask = mask;
	decode_fields(d, wc_fields, &c);
	decode_fields(d, good ? wc_good_fields : wc_error_fields, &c);
}

/* A list of one, like that of ibv_poll_cq(); empty when there was none. */
void list_wc_ex(struct decode *d, const struct field *f, const void *at)
{
	struct ibv_cq_ex *cq = *(struct ibv_cq_ex *const *)at;
	const struct cq_ex *saved = saved_of(cq);

	text_key(d->out, f->name);
	text_add(d->out, "[");
	if (saved && d->word[CALL_RET] == 0) {
		text_add(d->out, "{");
		add_completion(d, cq, saved->wc_flags);
		text_add(d->out, "}");
	}
	text_add(d->out, "]");
}
