/* SPDX-License-Identifier: MIT */
/*
 * What a table of fields cannot say: lists, and unions in their elements. Only
 * what the call itself would read, or has written, is read here.
 */
#include "fields.h"

#include <string.h>

static const struct field sge_fields[] = {
	MEMBER(struct ibv_sge, addr, KIND_ADDRESS),
	MEMBER(struct ibv_sge, length, KIND_UNSIGNED),
	MEMBER(struct ibv_sge, lkey, KIND_UNSIGNED),
	END,
};

static const struct field inline_fields[] = {
	MEMBER(struct ibv_sge, addr, KIND_ADDRESS),
	MEMBER(struct ibv_sge, length, KIND_UNSIGNED),
	END,
};

static const struct field send_fields[] = {
	MEMBER(struct ibv_send_wr, wr_id, KIND_UNSIGNED),
	MEMBER(struct ibv_send_wr, opcode, KIND_ENUM,
	       .name_of = name_wr_opcode),
	MEMBER(struct ibv_send_wr, send_flags, KIND_FLAGS,
	       .name_of = name_send_bit),
	END,
};
static const struct field num_sge_field =
	MEMBER(struct ibv_send_wr, num_sge, KIND_SIGNED);

#define WR(member, as, ...) \
	MEMBER(struct ibv_send_wr, member, as, ##__VA_ARGS__)
static const struct field imm_field = WR(imm_data, KIND_BIG_ENDIAN);
static const struct field invalidate_field = WR(invalidate_rkey, KIND_UNSIGNED);
static const struct field rdma_fields[] = {
	WR(wr.rdma.remote_addr, KIND_ADDRESS),
	WR(wr.rdma.rkey, KIND_UNSIGNED),
	END,
};
static const struct field atomic_fields[] = {
	WR(wr.atomic.remote_addr, KIND_ADDRESS),
	WR(wr.atomic.compare_add, KIND_UNSIGNED),
	WR(wr.atomic.swap, KIND_UNSIGNED),
	WR(wr.atomic.rkey, KIND_UNSIGNED),
	END,
};
static const struct field bind_fields[] = {
	WR(bind_mw.mw, KIND_OBJECT, .object = RULES_MW),
	WR(bind_mw.rkey, KIND_UNSIGNED),
	WR(bind_mw.bind_info.mr, KIND_OBJECT, .object = RULES_MR),
	WR(bind_mw.bind_info.addr, KIND_ADDRESS),
	WR(bind_mw.bind_info.length, KIND_UNSIGNED),
	WR(bind_mw.bind_info.mw_access_flags, KIND_FLAGS,
	   .name_of = name_access_bit),
	END,
};
static const struct field ud_fields[] = {
	WR(wr.ud.ah, KIND_OBJECT, .object = RULES_AH),
	WR(wr.ud.remote_qpn, KIND_UNSIGNED),
	WR(wr.ud.remote_qkey, KIND_UNSIGNED),
	END,
};

/* The last `left` elements of a list did not go in. */
static void list_end(struct decode *d, unsigned long left)
{
	text_add(d->out, "]");
	if (left)
		decode_number(d, "more", left);
}

/* `element` opens the next object of a list; false: the line is full. */
static bool element(struct decode *d)
{
	if (d->out->used > d->budget)
		return false;
	text_add(d->out, "%s{", d->out->at[d->out->used - 1] == '}' ? "," : "");
	return true;
}

/* `count` SGEs, of which the first `have` are at hand. */
static void sg_list(struct decode *d, const char *name,
		    const struct field *fields, const struct ibv_sge *sge,
		    int count, int have)
{
	int i = 0;

	text_key(d->out, name);
	if (!sge && have) {
		text_add(d->out, "null");
		return;
	}
	text_add(d->out, "[");
	for (; i < have && element(d); i++) {
		decode_fields(d, fields, &sge[i]);
		text_add(d->out, "}");
	}
	list_end(d, count > i ? (unsigned long)(count - i) : 0);
}

/* Binding and invalidating move no data: their SGEs are not looked at. */
static bool has_data(const struct ibv_send_wr *wr)
{
	return wr->opcode != IBV_WR_BIND_MW && wr->opcode != IBV_WR_LOCAL_INV;
}

/* What a WR is about besides its data. */
static void send_target(struct decode *d, const struct ibv_send_wr *wr,
			enum ibv_qp_type type)
{
	if (wr->opcode == IBV_WR_SEND_WITH_IMM ||
	    wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		decode_field(d, &imm_field, wr);
	if (type == IBV_QPT_UD) {
		decode_fields(d, ud_fields, wr);
		return;
	}
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		decode_fields(d, rdma_fields, wr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		decode_fields(d, atomic_fields, wr);
		break;
	case IBV_WR_LOCAL_INV:
	case IBV_WR_SEND_WITH_INV:
		decode_field(d, &invalidate_field, wr);
		break;
	case IBV_WR_BIND_MW:
		decode_fields(d, bind_fields, wr);
		break;
	default:
		break;
	}
}

/* A list that bites its own tail is counted this far. */
#define MANY 1000000

void list_send_wr(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_qp *qp = (const void *)d->word[0];
	const struct ibv_send_wr *wr = *(const struct ibv_send_wr *const *)at;
	unsigned long left = 0;

	text_key(d->out, f->name);
	text_add(d->out, "[");
	for (; wr && element(d); wr = wr->next) {
		decode_fields(d, send_fields, wr);
		if (has_data(wr)) {
			decode_field(d, &num_sge_field, wr);
			sg_list(d, "sg_list", sge_fields, wr->sg_list,
				wr->num_sge, wr->num_sge);
		}
		send_target(d, wr, qp->qp_type);
		text_add(d->out, "}");
	}
	for (; wr && left < MANY; wr = wr->next)
		left++;
	list_end(d, left);
}

/* One that was built by ibv_wr_*: its data as the setters were given it. */
static void built_wr(struct decode *d, const struct batch *batch,
		     const struct batch_wr *built, enum ibv_qp_type type)
{
	decode_fields(d, send_fields, &built->wr);
	if (has_data(&built->wr))
		sg_list(d, built->inlined ? "inline_data" : "sg_list",
			built->inlined ? inline_fields : sge_fields,
			built->sges ? batch->sge + built->sge : NULL,
			built->wr.num_sge, (int)built->sges);
	send_target(d, &built->wr, type);
}

/* The WRs of ibv_wr_complete() and ibv_wr_abort(). */
void list_batch(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_qp *qp = (const void *)d->word[0];
	const struct batch *batch = *(const struct batch *const *)at;
	size_t i = 0;

	text_key(d->out, f->name);
	if (!batch) {
		text_add(d->out, "null");
		return;
	}
	text_add(d->out, "[");
	for (; i < batch->wrs && element(d); i++) {
		built_wr(d, batch, &batch->wr[i], qp->qp_type);
		text_add(d->out, "}");
	}
	list_end(d, batch->wrs - i + batch->more);
}

void list_recv_wr(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_recv_wr *wr = *(const struct ibv_recv_wr *const *)at;
	unsigned long left = 0;

	text_key(d->out, f->name);
	text_add(d->out, "[");
	for (; wr && element(d); wr = wr->next) {
		decode_number(d, "wr_id", wr->wr_id);
		sg_list(d, "sg_list", sge_fields, wr->sg_list, wr->num_sge,
			wr->num_sge);
		text_add(d->out, "}");
	}
	for (; wr && left < MANY; wr = wr->next)
		left++;
	list_end(d, left);
}

/* Which WR of the list was not taken: a device may leave it untouched. */
void list_bad_send_wr(struct decode *d, const struct field *f, const void *at)
{
	struct ibv_send_wr *const *bad = *(struct ibv_send_wr * *const *)at;
	const struct ibv_send_wr *wr = (const void *)d->word[1];
	unsigned long i = 0;

	for (; bad && wr && i < MANY; wr = wr->next, i++) {
		if (wr == *bad) {
			decode_number(d, f->name, i);
			return;
		}
	}
}

void list_bad_recv_wr(struct decode *d, const struct field *f, const void *at)
{
	struct ibv_recv_wr *const *bad = *(struct ibv_recv_wr * *const *)at;
	const struct ibv_recv_wr *wr = (const void *)d->word[1];
	unsigned long i = 0;

	for (; bad && wr && i < MANY; wr = wr->next, i++) {
		if (wr == *bad) {
			decode_number(d, f->name, i);
			return;
		}
	}
}

#define WC(member, as, ...) MEMBER(struct ibv_wc, member, as, ##__VA_ARGS__)
static const struct field wc_fields[] = {
	WC(wr_id, KIND_UNSIGNED),
	WC(status, KIND_ENUM, .name_of = name_wc_status),
	WC(qp_num, KIND_UNSIGNED),
	END,
};
static const struct field wc_error_fields[] = {
	WC(vendor_err, KIND_UNSIGNED),
	END,
};
static const struct field wc_good_fields[] = {
	WC(opcode, KIND_ENUM, .name_of = name_wc_opcode),
	WC(byte_len, KIND_UNSIGNED),
	WC(wc_flags, KIND_FLAGS, .name_of = name_wc_bit),
	WC(imm_data, KIND_BIG_ENDIAN, .bit = IBV_WC_WITH_IMM),
	WC(invalidated_rkey, KIND_UNSIGNED, .bit = IBV_WC_WITH_INV),
	WC(src_qp, KIND_UNSIGNED, .bit = IBV_WC_GRH),
	END,
};

/* After a failure only wr_id, status, qp_num and vendor_err mean anything. */
void list_wc(struct decode *d, const struct field *f, const void *at)
{
	const struct ibv_wc *wc = *(const struct ibv_wc *const *)at;
	int64_t count = (int64_t)d->word[CALL_RET], i = 0;

	text_key(d->out, f->name);
	text_add(d->out, "[");
	for (; i < count && element(d); i++) {
		bool good = wc[i].status == IBV_WC_SUCCESS;

		d->mask = good ? wc[i].wc_flags : 0;
		decode_fields(d, wc_fields, &wc[i]);
		decode_fields(d, good ? wc_good_fields : wc_error_fields,
			      &wc[i]);
		text_add(d->out, "}");
	}
	list_end(d, count > i ? (unsigned long)(count - i) : 0);
}

void list_devices(struct decode *d, const struct field *f, const void *at)
{
	struct ibv_device *const *list = *(struct ibv_device * *const *)at;
	unsigned long left = 0;

	text_key(d->out, f->name);
	text_add(d->out, "[");
	for (; *list && element(d); list++) {
		text_key(d->out, "name");
		text_quote(d->out, (*list)->name);
		text_add(d->out, "}");
	}
	for (; *list; list++)
		left++;
	list_end(d, left);
}

static const struct field gid_fields[] = {
	MEMBER(struct ibv_gid_entry, gid, KIND_GID),
	MEMBER(struct ibv_gid_entry, gid_index, KIND_UNSIGNED),
	MEMBER(struct ibv_gid_entry, port_num, KIND_UNSIGNED),
	MEMBER(struct ibv_gid_entry, gid_type, KIND_ENUM,
	       .name_of = name_gid_type),
	MEMBER(struct ibv_gid_entry, ndev_ifindex, KIND_UNSIGNED),
	END,
};

/* word 4 of both calls is the size of an entry, as the caller knows it. */
static size_t gid_entry_size(const struct decode *d, int word)
{
	return d->word[word] < sizeof(struct ibv_gid_entry) ? 0 : d->word[word];
}

void list_gid(struct decode *d, const struct field *f, const void *at)
{
	(void)f;
	if (gid_entry_size(d, 5))
		decode_fields(d, gid_fields, *(const void *const *)at);
}

void list_gids(struct decode *d, const struct field *f, const void *at)
{
	const char *entry = *(const char *const *)at;
	int64_t count = (int64_t)d->word[CALL_RET], i = 0;
	size_t size = gid_entry_size(d, 4);

	text_key(d->out, f->name);
	text_add(d->out, "[");
	for (; size && i < count && element(d); i++) {
		decode_fields(d, gid_fields, entry + (size_t)i * size);
		text_add(d->out, "}");
	}
	list_end(d, count > i ? (unsigned long)(count - i) : 0);
}
