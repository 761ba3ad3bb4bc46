/* SPDX-License-Identifier: MIT */
/*
 * Datagrams on soft0: the 40 bytes, the qkey, what is dropped in silence and
 * what is not, address handles.
 */
#include <arpa/inet.h>
#include <errno.h>
#include "tests/unit/soft_fixture.h"

struct ud {
	struct pair p;
	struct ibv_ah *ah;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static void ud_open(struct ud *u)
{
	pair_init(&u->p, IBV_QPT_UD);
	pair_open(&u->p);
	u->ah = ibv_create_ah(u->p.a.pd, &u->p.a.attr.ah_attr);
	assert_non_null(u->ah);
	strcpy(u->p.a.buf, "datagram");
	u->sge = sge_of(&u->p.a, 0, 9);
	u->wr = (struct ibv_send_wr){
		.wr_id = 1,
		.opcode = IBV_WR_SEND,
		.sg_list = &u->sge,
		.num_sge = 1,
		.wr.ud = { .ah = u->ah,
			   .remote_qpn = u->p.b.qp->qp_num,
			   .remote_qkey = QKEY },
	};
}

static void ud_close(struct ud *u)
{
	if (u->ah)
		assert_int_equal(ibv_destroy_ah(u->ah), 0);
	pair_close(&u->p);
}

/* One good datagram arrives in receive `wr_id`: nothing was before it. */
static void next_arrives_in(struct ud *u, uint64_t wr_id)
{
	struct ibv_wc wc;

	post(&u->p.a, &u->wr);
	expect_wc(u->p.a.cq, IBV_WC_SUCCESS);
	wc = wait_wc(u->p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.byte_len, 40 + u->sge.length);
}

static void forty_bytes_and_the_payload(void **state)
{
	struct ud u;
	struct ibv_wc wc;
	const uint8_t *grh;
	union ibv_gid gid;
	uint16_t length;
	uint32_t sum = 0;

	(void)state;
	ud_open(&u);
	memset(u.p.b.buf, 0xff, 200);
	post_receive(&u.p.b, 0, 200, 7);
	u.wr.opcode = IBV_WR_SEND_WITH_IMM;
	u.wr.imm_data = 99;
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_SUCCESS);
	wc = wait_wc(u.p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 49);
	assert_int_equal(wc.src_qp, u.p.a.qp->qp_num);
	assert_int_equal(wc.imm_data, 99);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_string_equal(u.p.b.buf + 40, "datagram");

	/* 20 zeros, then an IPv4 header whose checksum comes out. */
	grh = (const uint8_t *)u.p.b.buf;
	for (int i = 0; i < 20; i++)
		assert_int_equal(grh[i], 0);
	assert_int_equal(grh[20], 0x45);
	assert_int_equal(grh[29], 17);
	/* IP, UDP, BTH, DETH, immediate, 9 bytes padded to 12, ICRC */
	memcpy(&length, grh + 22, 2);
	assert_int_equal(ntohs(length), 20 + 8 + 12 + 8 + 4 + 12 + 4);
	assert_int_equal(ibv_query_gid(u.p.context, 1, 0, &gid), 0);
	assert_memory_equal(grh + 32, gid.raw + 12, 4);
	assert_memory_equal(grh + 36, gid.raw + 12, 4);
	for (int i = 20; i < 40; i += 2)
		sum += (uint32_t)(grh[i] << 8 | grh[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
	ud_close(&u);
}

/* Silence for the sender, and the receive is still there for the next. */
static void dropped_in_silence(void **state)
{
	struct ud u;

	(void)state;
	ud_open(&u);
	post(&u.p.a, &u.wr); /* no receive */
	expect_wc(u.p.a.cq, IBV_WC_SUCCESS);
	post_receive(&u.p.b, 0, 200, 1);
	post_receive(&u.p.b, 0, 200, 2);
	u.wr.wr.ud.remote_qkey = QKEY + 1;
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_SUCCESS);
	u.wr.wr.ud.remote_qkey = QKEY;
	u.wr.wr.ud.remote_qpn = 0xfffff1;
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_SUCCESS);
	u.wr.wr.ud.remote_qpn = u.p.b.qp->qp_num;
	u.sge.length = 161; /* one byte more than the receive has room for */
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_SUCCESS);
	u.sge.length = 160;
	next_arrives_in(&u, 1);
	u.sge.length = 0;
	next_arrives_in(&u, 2);
	assert_int_equal(state_of(&u.p.a), IBV_QPS_RTS);
	assert_int_equal(state_of(&u.p.b), IBV_QPS_RTS);
	ud_close(&u);
}

/* The high bit stands for the sender's own qkey. */
static void the_senders_own_qkey(void **state)
{
	struct ud u;

	(void)state;
	ud_open(&u);
	post_receive(&u.p.b, 0, 200, 1);
	u.wr.wr.ud.remote_qkey = 0x80000000;
	next_arrives_in(&u, 1);
	ud_close(&u);
}

static void a_bad_receive_breaks_the_receiver(void **state)
{
	struct ibv_sge sge;
	struct ud u;

	(void)state;
	ud_open(&u);
	sge = sge_of(&u.p.b, 0, 200);
	sge.lkey ^= 0xdead00;
	post_receive_sge(&u.p.b, &sge, 1);
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_SUCCESS);
	expect_wc(u.p.b.cq, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(&u.p.b), IBV_QPS_ERR);
	ud_close(&u);
}

static void more_than_the_mtu(void **state)
{
	struct ibv_port_attr port;
	uint32_t mtu;
	struct ud u;

	(void)state;
	ud_open(&u);
	assert_int_equal(ibv_query_port(u.p.context, 1, &port), 0);
	mtu = UINT32_C(128) << port.active_mtu;
	post_receive(&u.p.b, 0, 65536, 1);
	u.sge.length = mtu;
	next_arrives_in(&u, 1);
	u.sge.length = mtu + 1;
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(state_of(&u.p.a), IBV_QPS_ERR);
	ud_close(&u);
}

static void bad_local_memory(void **state)
{
	struct ud u;

	(void)state;
	ud_open(&u);
	u.sge.lkey ^= 0xdead00;
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_LOC_PROT_ERR);
	ud_close(&u);
}

static void address_handles(void **state)
{
	struct ibv_send_wr *bad = NULL;
	struct ibv_ah *other;
	struct ud u;

	(void)state;
	ud_open(&u);
	u.wr.wr.ud.ah = NULL;
	assert_int_equal(ibv_post_send(u.p.a.qp, &u.wr, &bad), EINVAL);
	assert_ptr_equal(bad, &u.wr);
	other = ibv_create_ah(u.p.b.pd, &u.p.a.attr.ah_attr);
	assert_non_null(other);
	u.wr.wr.ud.ah = other;
	post(&u.p.a, &u.wr);
	expect_wc(u.p.a.cq, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(ibv_destroy_ah(other), 0);
	ud_close(&u);
}

/* Sends that name it are in flight, held in SQD. */
static void destroyed_address_handle(void **state)
{
	struct ud u;

	(void)state;
	ud_open(&u);
	to_state(&u.p.a, IBV_QPS_SQD);
	post(&u.p.a, &u.wr);
	post(&u.p.a, &u.wr);
	assert_int_equal(ibv_destroy_ah(u.ah), 0);
	u.ah = NULL;
	to_state(&u.p.a, IBV_QPS_RTS);
	expect_wc(u.p.a.cq, IBV_WC_LOC_QP_OP_ERR);
	expect_wc(u.p.a.cq, IBV_WC_WR_FLUSH_ERR);
	ud_close(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forty_bytes_and_the_payload),
		cmocka_unit_test(dropped_in_silence),
		cmocka_unit_test(the_senders_own_qkey),
		cmocka_unit_test(a_bad_receive_breaks_the_receiver),
		cmocka_unit_test(more_than_the_mtu),
		cmocka_unit_test(bad_local_memory),
		cmocka_unit_test(address_handles),
		cmocka_unit_test(destroyed_address_handle),
	};

	return cmocka_run_group_tests_name("soft ud", tests, NULL, NULL);
}
