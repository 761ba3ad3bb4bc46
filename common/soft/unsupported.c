/* SPDX-License-Identifier: MIT */
/*
 * What libibverbs exports and soft0 does not do (yet). Left alone, these
 * would look into our objects for what only libibverbs' own have, and crash:
 * so each says EOPNOTSUPP, and passes real devices' objects through.
 *
 * Up to IBVERBS_1.14 (rdma-core 39 to 60) all are in every libibverbs. Those
 * of newer ones are declared here, for older headers, with the types of
 * their arguments incomplete; where there is no real one, nobody can have
 * made such an object.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int not_supported(const void *object, enum soft_type type,
			 const char *verb)
{
	if (soft_find(object, type, verb))
		errno = EOPNOTSUPP;
	return errno;
}

SOFT_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (soft_foreign(qp))
		return SOFT_REAL(ibv_query_ece)(qp, ece);
	return not_supported(qp, SOFT_QP, "ibv_query_ece");
}

SOFT_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (soft_foreign(qp))
		return SOFT_REAL(ibv_set_ece)(qp, ece);
	return not_supported(qp, SOFT_QP, "ibv_set_ece");
}

SOFT_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp,
					   enum ibv_wr_opcode op,
					   uint32_t flags)
{
	if (soft_foreign(qp))
		return SOFT_REAL(ibv_query_qp_data_in_order)(qp, op, flags);
	/* No errors here: 0 says that no order is promised, which is true. */
	soft_find(qp, SOFT_QP, "ibv_query_qp_data_in_order");
	return 0;
}

SOFT_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					     size_t length, uint64_t iova,
					     int fd, int access)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova,
						    fd, access);
	not_supported(pd, SOFT_PD, "ibv_reg_dmabuf_mr");
	return NULL;
}

SOFT_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
					    struct ibv_ah_attr *attr,
					    uint8_t mac[ETHERNET_LL_SIZE],
					    uint16_t *vid)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_resolve_eth_l2_from_gid)(context, attr,
							      mac, vid);
	/* There is no Ethernet under it; this one returns negative errnos. */
	return -not_supported(context, SOFT_CONTEXT,
			      "ibv_resolve_eth_l2_from_gid");
}

/* --- import: soft0's objects belong to one process ----------------------- */

/* Real devices have character devices; ours, and its copies, are these. */
static bool is_eventfd(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		return false;
	return !strcmp(target, "anon_inode:[eventfd]");
}

SOFT_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context;

	if (is_eventfd(cmd_fd)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	context = SOFT_REAL(ibv_import_device)(cmd_fd);
	if (context)
		soft_real_opened();
	return context;
}

SOFT_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context,
					 uint32_t handle)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_import_pd)(context, handle);
	not_supported(context, SOFT_CONTEXT, "ibv_import_pd");
	return NULL;
}

SOFT_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (soft_foreign(pd))
		SOFT_REAL(ibv_unimport_pd)(pd);
	else
		not_supported(pd, SOFT_PD, "ibv_unimport_pd");
}

SOFT_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	if (soft_foreign(pd))
		return SOFT_REAL(ibv_import_mr)(pd, handle);
	not_supported(pd, SOFT_PD, "ibv_import_mr");
	return NULL;
}

SOFT_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (soft_foreign(mr))
		SOFT_REAL(ibv_unimport_mr)(mr);
	else
		not_supported(mr, SOFT_MR, "ibv_unimport_mr");
}

SOFT_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context,
					 uint32_t handle)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_import_dm)(context, handle);
	not_supported(context, SOFT_CONTEXT, "ibv_import_dm");
	return NULL;
}

SOFT_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	if (soft_foreign(dm))
		SOFT_REAL(ibv_unimport_dm)(dm);
	else
		not_supported(dm, SOFT_DM, "ibv_unimport_dm");
}
