/* SPDX-License-Identifier: MIT */
/*
 * What the device and its port are: attributes, GID and P_Key tables.
 */
#include "common/soft/object.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>

#undef ibv_query_port

#define PORTS    1
#define GIDS     1
#define PKEYS    1
#define MAX_PKEY 0xffff /* the default partition, as a full member */

static void fill_device(struct ibv_device_attr *attr)
{
	const struct soft_device_limits *limits = soft_limits();

	*attr = (struct ibv_device_attr){
		.fw_ver = VERSION,
		.node_guid = soft_guid(),
		.sys_image_guid = soft_guid(),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = 0xffffff, /* nobody's, as rxe has it */
		.max_qp = limits->max_qp,
		.max_qp_wr = limits->max_qp_wr,
		.device_cap_flags =
			IBV_DEVICE_CURR_QP_STATE_MOD |
			IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
			IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_sge = limits->max_sge,
		.max_sge_rd = limits->max_sge,
		.max_cq = limits->max_cq,
		.max_cqe = limits->max_cqe,
		.max_mr = limits->max_mr,
		.max_pd = limits->max_pd,
		.max_qp_rd_atom = limits->max_rd_atom,
		.max_res_rd_atom = limits->max_rd_atom * limits->max_qp,
		.max_qp_init_rd_atom = limits->max_rd_atom,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mw = limits->max_mw,
		.max_mcast_grp = limits->max_mcast_grp,
		.max_mcast_qp_attach = limits->max_mcast_attach,
		.max_total_mcast_qp_attach =
			limits->max_mcast_grp * limits->max_mcast_attach,
		.max_ah = limits->max_ah,
		.max_srq = limits->max_srq,
		.max_srq_wr = limits->max_srq_wr,
		.max_srq_sge = limits->max_srq_sge,
		.max_pkeys = PKEYS,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = PORTS,
	};
}

SOFT_EXPORT int ibv_query_device(struct ibv_context *context,
				 struct ibv_device_attr *attr)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_query_device)(context, attr);
	if (!soft_find(context, SOFT_CONTEXT, "ibv_query_device"))
		return errno;
	fill_device(attr);
	return 0;
}

int soft_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all = { .comp_mask = 0 };

	(void)context;
	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof(all.orig_attr))
		return EINVAL;
	fill_device(&all.orig_attr);
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
	all.phys_port_cnt_ex = PORTS;
	all.max_dm_size = soft_limits()->max_dm;
	/* The clock counts nanoseconds: a million of them in a millisecond. */
	all.completion_timestamp_mask = UINT64_MAX;
	all.hca_core_clock = 1000000;
	/* The program's struct may be an older or a newer one than ours. */
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

static bool port_exists(uint32_t port_num)
{
	return port_num >= 1 && port_num <= PORTS;
}

int soft_query_port(struct ibv_context *context, uint8_t port_num,
		    struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr all = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = SOFT_PORT_MTU,
		.active_mtu = SOFT_PORT_MTU,
		.gid_tbl_len = GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = PKEYS,
		.max_vl_num = 1,
		.active_width = 1, /* 1X */
		.active_speed = 1, /* 2.5 Gb/s: the least that has a code */
		.phys_state = 5,   /* LinkUp */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};

	if (!soft_find(context, SOFT_CONTEXT, "ibv_query_port"))
		return errno;
	if (!port_exists(port_num)) {
		errno = EINVAL;
		return EINVAL;
	}
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

/* The exported one has the struct of before port_cap_flags2. */
SOFT_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			       struct _compat_ibv_port_attr *attr)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_query_port)(context, port_num, attr);
	return soft_query_port(context, port_num, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* 0, or an errno, which is set too. */
static int check_entry(const struct ibv_context *context, uint32_t port_num,
		       uint32_t index, uint32_t table, const char *verb)
{
	if (!soft_find(context, SOFT_CONTEXT, verb))
		return errno;
	if (port_exists(port_num) && index < table)
		return 0;
	errno = EINVAL;
	return EINVAL;
}

SOFT_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
			      int index, union ibv_gid *gid)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_query_gid)(context, port_num, index, gid);
	if (check_entry(context, port_num, index, GIDS, "ibv_query_gid"))
		return -1;
	*gid = soft_gid();
	return 0;
}

static void fill_gid(struct ibv_gid_entry *entry, size_t size)
{
	struct ibv_gid_entry all = {
		.gid = soft_gid(),
		.gid_index = 0,
		.port_num = 1,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = 0, /* there is no netdev behind it */
	};

	memset(entry, 0, size);
	memcpy(entry, &all, size < sizeof(all) ? size : sizeof(all));
}

SOFT_EXPORT int _ibv_query_gid_ex(struct ibv_context *context,
				  uint32_t port_num, uint32_t index,
				  struct ibv_gid_entry *entry, uint32_t flags,
				  size_t size)
{
	int err;

	if (soft_foreign(context))
		return SOFT_REAL(_ibv_query_gid_ex)(context, port_num, index,
						    entry, flags, size);
	err = check_entry(context, port_num, index, GIDS, "ibv_query_gid_ex");
	if (err)
		return err;
	if (flags) {
		errno = EINVAL;
		return EINVAL;
	}
	fill_gid(entry, size);
	return 0;
}

SOFT_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
					 struct ibv_gid_entry *entries,
					 size_t max_entries, uint32_t flags,
					 size_t size)
{
	if (soft_foreign(context))
		return SOFT_REAL(_ibv_query_gid_table)(
			context, entries, max_entries, flags, size);
	if (!soft_find(context, SOFT_CONTEXT, "ibv_query_gid_table"))
		return -errno;
	if (flags || max_entries < GIDS) {
		errno = EINVAL;
		return -EINVAL;
	}
	fill_gid(entries, size);
	return GIDS;
}

/* Private to libibverbs and its tools, so the headers do not declare it. */
enum sysfs_gid_type { SYSFS_GID_ROCE_V1, SYSFS_GID_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
		       unsigned int index, enum sysfs_gid_type *type);

SOFT_EXPORT int ibv_query_gid_type(struct ibv_context *context,
				   uint8_t port_num, unsigned int index,
				   enum sysfs_gid_type *type)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_query_gid_type)(context, port_num, index,
						     type);
	if (check_entry(context, port_num, index, GIDS, "ibv_query_gid_type"))
		return -1;
	*type = SYSFS_GID_ROCE_V2;
	return 0;
}

SOFT_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
			       int index, __be16 *pkey)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_query_pkey)(context, port_num, index,
						 pkey);
	if (check_entry(context, port_num, index, PKEYS, "ibv_query_pkey"))
		return -1;
	*pkey = htobe16(MAX_PKEY);
	return 0;
}

SOFT_EXPORT int ibv_get_pkey_index(struct ibv_context *context,
				   uint8_t port_num, __be16 pkey)
{
	if (soft_foreign(context))
		return SOFT_REAL(ibv_get_pkey_index)(context, port_num, pkey);
	if (check_entry(context, port_num, 0, PKEYS, "ibv_get_pkey_index"))
		return -1;
	if (pkey == htobe16(MAX_PKEY))
		return 0;
	errno = EINVAL;
	return -1;
}
