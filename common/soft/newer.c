/* SPDX-License-Identifier: MIT */
/*
 * Exports of libibverbs that came after rdma-core 60 (IBVERBS_1.15 to 1.18):
 * soft0 has none of them, and older headers do not declare them.
 *
 * Calls on an object that only such a call could make (a DMA handle, a
 * buffer, a completion counter) cannot concern soft0 and are left alone.
 */
#include "common/soft/object.h"

#include <errno.h>

struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_init_attr;
struct ibv_comp_cntr_caps;
struct ibv_qp_attach_comp_cntr_attr;

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
				struct ibv_dmah_init_attr *attr);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
			 uint64_t *port_speed);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
			      void *addr, size_t length, int access);
int _ibv_query_comp_cntr_caps(struct ibv_context *context,
			      struct ibv_comp_cntr_caps *caps,
			      size_t caps_size);
struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context,
		     struct ibv_comp_cntr_init_attr *attr);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
			    struct ibv_qp_attach_comp_cntr_attr *attr);

/* Passes on to a real device, if this libibverbs has the function. */
#define PASS_ON(object, type, function, ...)                     \
	do {                                                     \
		if (soft_foreign(object) && SOFT_REAL(function)) \
			return SOFT_REAL(function)(__VA_ARGS__); \
		if (soft_foreign(object) ||                      \
		    soft_find(object, type, #function))          \
			errno = EOPNOTSUPP;                      \
	} while (0)

SOFT_EXPORT struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
					    struct ibv_dmah_init_attr *attr)
{
	PASS_ON(context, SOFT_CONTEXT, ibv_alloc_dmah, context, attr);
	return NULL;
}

SOFT_EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd,
					 struct ibv_mr_init_attr *attr)
{
	PASS_ON(pd, SOFT_PD, ibv_reg_mr_ex, pd, attr);
	return NULL;
}

SOFT_EXPORT int ibv_query_port_speed(struct ibv_context *context,
				     uint32_t port_num, uint64_t *port_speed)
{
	PASS_ON(context, SOFT_CONTEXT, ibv_query_port_speed, context, port_num,
		port_speed);
	return errno;
}

SOFT_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size,
				struct ibv_buf **buf)
{
	PASS_ON(pd, SOFT_PD, ibv_alloc_buf, pd, size, buf);
	return NULL;
}

SOFT_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd,
					  struct ibv_buf *buf, void *addr,
					  size_t length, int access)
{
	PASS_ON(pd, SOFT_PD, ibv_reg_buf_mr, pd, buf, addr, length, access);
	return NULL;
}

SOFT_EXPORT int _ibv_query_comp_cntr_caps(struct ibv_context *context,
					  struct ibv_comp_cntr_caps *caps,
					  size_t caps_size)
{
	PASS_ON(context, SOFT_CONTEXT, _ibv_query_comp_cntr_caps, context, caps,
		caps_size);
	return errno;
}

SOFT_EXPORT struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context,
		     struct ibv_comp_cntr_init_attr *attr)
{
	PASS_ON(context, SOFT_CONTEXT, ibv_create_comp_cntr, context, attr);
	return NULL;
}

SOFT_EXPORT int
ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
			struct ibv_qp_attach_comp_cntr_attr *attr)
{
	PASS_ON(qp, SOFT_QP, ibv_qp_attach_comp_cntr, qp, comp_cntr, attr);
	return errno;
}
