/* SPDX-License-Identifier: MIT */
/*
 * One process's objects on the device, and the exchange of their addresses.
 */
#include "tests/soak/soak.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !soak.context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), wish.device))
			soak.context = ibv_open_device(list[i]);
	if (!soak.context)
		fail("%s cannot be opened; ibv_devices lists what there is",
		     wish.device);
	ibv_free_device_list(list);
	CHECK(ibv_query_port(soak.context, 1, &soak.port));
}

/* The first GID that there is, unless one was asked for. */
static void find_gid(void)
{
	static const union ibv_gid none;
	int at = wish.gid_index < 0 ? 0 : wish.gid_index;

	while (ibv_query_gid(soak.context, 1, at, &soak.own.gid) ||
	       (wish.gid_index < 0 &&
		!memcmp(&soak.own.gid, &none, sizeof(none)))) {
		if (wish.gid_index >= 0 || ++at >= soak.port.gid_tbl_len)
			fail("%s has no such GID", wish.device);
	}
	wish.gid_index = at;
}

static void make_memory(void)
{
	size_t size = 2 * (size_t)wish.qps * AREA;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
	soak.memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (soak.memory == MAP_FAILED)
		fail("no memory of %zu bytes: %s", size, strerror(errno));
	soak.mr = ibv_reg_mr(soak.pd, soak.memory, size, ACCESS);
	if (!soak.mr)
		fail("ibv_reg_mr of %zu bytes: %s (`ulimit -l` limits it)",
		     size, strerror(errno));
}

static void make_qps(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = soak.cq,
		.recv_cq = soak.cq,
		.cap = { WINDOW, WINDOW, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	for (unsigned int i = 0; i < wish.qps; i++) {
		soak.qp[i] = ibv_create_qp(soak.pd, &init);
		if (!soak.qp[i])
			fail("ibv_create_qp: %s", strerror(errno));
		soak.own.qpn[i] = soak.qp[i]->qp_num;
	}
}

static void connect_qp(unsigned int i, uint8_t rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = soak.port.active_mtu,
		.dest_qp_num = soak.peer.qpn[i],
		.rq_psn = 0xfff000, /* so that PSNs wrap */
		.sq_psn = 0xfff000,
		.max_dest_rd_atomic = rd_atomic,
		.max_rd_atomic = rd_atomic,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .dlid = soak.peer.lid,
			     .port_num = 1,
			     .grh = { .dgid = soak.peer.gid,
				      .sgid_index = (uint8_t)wish.gid_index,
				      .hop_limit = 64 } },
		.timeout = 18, /* 1 s: a busy machine is no lost packet */
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	CHECK(ibv_modify_qp(soak.qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(soak.qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(soak.qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

void make_all(void)
{
	struct ibv_device_attr device;
	int rd_atomic;

	open_device();
	find_gid();
	CHECK(ibv_query_device(soak.context, &device));
	soak.pd = ibv_alloc_pd(soak.context);
	soak.cq = ibv_create_cq(soak.context, (int)(2 * WINDOW * wish.qps),
				NULL, NULL, 0);
	if (!soak.pd || !soak.cq)
		fail("no PD or CQ: %s", strerror(errno));
	make_memory();
	make_qps();
	soak.own.addr = (uintptr_t)soak.memory;
	soak.own.rkey = soak.mr->rkey;
	soak.own.lid = soak.port.lid;
	tell(&soak.own, sizeof(soak.own));
	hear(&soak.peer, sizeof(soak.peer));
	rd_atomic = device.max_qp_rd_atom < device.max_qp_init_rd_atom
			    ? device.max_qp_rd_atom
			    : device.max_qp_init_rd_atom;
	for (unsigned int i = 0; i < wish.qps; i++)
		connect_qp(i, (uint8_t)(rd_atomic < 16 ? rd_atomic : 16));
	meet();
}

void destroy_all(void)
{
	for (unsigned int i = 0; i < wish.qps; i++)
		CHECK(ibv_destroy_qp(soak.qp[i]));
	CHECK(ibv_dereg_mr(soak.mr));
	CHECK(ibv_destroy_cq(soak.cq));
	CHECK(ibv_dealloc_pd(soak.pd));
	CHECK(ibv_close_device(soak.context));
}
