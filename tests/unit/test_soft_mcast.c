/* SPDX-License-Identifier: MIT */
/*
 * Multicast on soft0: who is in a group, who gets what is sent to it, and
 * what a group holds.
 */
#include <errno.h>
#include "tests/unit/soft_fixture.h"

#define RECEIVERS 3

struct cast {
	struct pair p; /* a sends; b is the first that may receive */
	struct end more[RECEIVERS - 1];
	union ibv_gid group;
	struct ibv_ah *ah;
};

static struct end *receiver(struct cast *c, int i)
{
	return i ? &c->more[i - 1] : &c->p.b;
}

static void open_cast(struct cast *c)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	pair_init(&c->p, IBV_QPT_UD);
	pair_open(&c->p);
	for (int i = 1; i < RECEIVERS; i++) {
		end_init(receiver(c, i));
		end_make(&c->p, receiver(c, i));
		end_connect(&c->p, receiver(c, i));
	}
	c->group = (union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 7 } };
	attr.grh.dgid = c->group;
	c->ah = ibv_create_ah(c->p.a.pd, &attr);
	assert_non_null(c->ah);
	strcpy(c->p.a.buf, "to all");
}

static void close_cast(struct cast *c)
{
	assert_int_equal(ibv_destroy_ah(c->ah), 0);
	for (int i = 1; i < RECEIVERS; i++)
		end_close(receiver(c, i));
	pair_close(&c->p);
}

static void attach(struct cast *c, struct end *end)
{
	assert_int_equal(ibv_attach_mcast(end->qp, &c->group, 0), 0);
}

static void detach(struct cast *c, struct end *end)
{
	assert_int_equal(ibv_detach_mcast(end->qp, &c->group, 0), 0);
}

static void post_to(struct cast *c, struct ibv_ah *ah, uint32_t qpn,
		    uint32_t qkey)
{
	struct ibv_sge sge = sge_of(&c->p.a, 0, 7);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};

	post(&c->p.a, &wr);
}

static void send_to(struct cast *c, struct ibv_ah *ah, uint32_t qpn,
		    uint32_t qkey)
{
	struct ibv_wc wc;

	post_to(c, ah, qpn, qkey);
	wc = wait_wc(c->p.a.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
}

static void send_all(struct cast *c)
{
	send_to(c, c->ah, 0xffffff, QKEY);
}

static void expect_it(struct cast *c, struct end *end)
{
	struct ibv_wc wc = wait_wc(end->cq);
	const struct ibv_grh *grh = (const struct ibv_grh *)end->buf;

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 47);
	assert_int_equal(wc.src_qp, c->p.a.qp->qp_num);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_string_equal(end->buf + 40, "to all");
	/* The receiver can tell which group it was. */
	assert_memory_equal(&grh->dgid, &c->group, 16);
	memset(end->buf, 0, 64);
}

/* A send completes when all that is in this process is delivered. */
static void everyone_in_it_and_nobody_else(void **state)
{
	struct cast c;

	(void)state;
	open_cast(&c);
	for (int i = 0; i < RECEIVERS; i++)
		post_receive(receiver(&c, i), 0, 128, 1);
	attach(&c, receiver(&c, 0));
	attach(&c, receiver(&c, 2));
	send_all(&c);
	expect_it(&c, receiver(&c, 0));
	expect_it(&c, receiver(&c, 2));
	expect_empty(receiver(&c, 1)->cq);
	/* Who leaves gets no more; the others do. */
	detach(&c, receiver(&c, 0));
	post_receive(receiver(&c, 0), 0, 128, 1);
	post_receive(receiver(&c, 2), 0, 128, 1);
	send_all(&c);
	expect_it(&c, receiver(&c, 2));
	expect_empty(receiver(&c, 0)->cq);
	detach(&c, receiver(&c, 2));
	close_cast(&c);
}

static void what_is_dropped(void **state)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *other;
	struct cast c;

	(void)state;
	open_cast(&c);
	attr.grh.dgid = c.group;
	attr.grh.dgid.raw[15]++;
	other = ibv_create_ah(c.p.a.pd, &attr);
	attach(&c, &c.p.b);
	send_all(&c); /* no receive is there */
	post_receive(&c.p.b, 0, 128, 5);
	send_to(&c, c.ah, 0xffffff, QKEY + 1);
	send_to(&c, c.ah, c.p.b.qp->qp_num, QKEY); /* not the group's number */
	send_to(&c, other, 0xffffff, QKEY);
	expect_empty(c.p.b.cq);
	send_all(&c);
	expect_it(&c, &c.p.b);
	expect_empty(c.p.b.cq);
	detach(&c, &c.p.b);
	assert_int_equal(ibv_destroy_ah(other), 0);
	close_cast(&c);
}

/* The sender hears itself, unless it was created not to. */
static void loopback(void **state)
{
	struct ibv_qp_init_attr_ex init;
	struct cast c;

	(void)state;
	open_cast(&c);
	attach(&c, &c.p.a);
	post_receive(&c.p.a, 4096, 128, 1);
	/* One completion of each kind, in whichever order. */
	post_to(&c, c.ah, 0xffffff, QKEY);
	assert_int_equal(wait_wc(c.p.a.cq).opcode ^ wait_wc(c.p.a.cq).opcode,
			 IBV_WC_RECV ^ IBV_WC_SEND);
	assert_string_equal(c.p.a.buf + 4096 + 40, "to all");
	detach(&c, &c.p.a);

	assert_int_equal(ibv_destroy_qp(c.p.a.qp), 0);
	init = (struct ibv_qp_init_attr_ex){
		.send_cq = c.p.a.cq,
		.recv_cq = c.p.a.cq,
		.cap = { .max_send_wr = 3,
			 .max_recv_wr = 3,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = c.p.a.pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};
	c.p.a.qp = ibv_create_qp_ex(c.p.context, &init);
	assert_non_null(c.p.a.qp);
	end_connect(&c.p, &c.p.a);
	attach(&c, &c.p.a);
	attach(&c, &c.p.b);
	post_receive(&c.p.a, 4096, 128, 1);
	post_receive(&c.p.b, 0, 128, 1);
	send_all(&c);
	expect_it(&c, &c.p.b);
	expect_empty(c.p.a.cq);
	detach(&c, &c.p.a);
	detach(&c, &c.p.b);
	close_cast(&c);
}

/* Sections 1 and 2. */
static void rules(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *rc;
	struct cast c;

	(void)state;
	open_cast(&c);
	init = (struct ibv_qp_init_attr){ .send_cq = c.p.a.cq,
					  .recv_cq = c.p.a.cq,
					  .qp_type = IBV_QPT_RC };
	rc = ibv_create_qp(c.p.a.pd, &init);
	assert_non_null(rc);
	errno = 0;
	assert_int_equal(ibv_attach_mcast(rc, &c.group, 0), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
		ibv_attach_mcast(c.p.b.qp, &c.p.a.attr.ah_attr.grh.dgid, 0),
		EINVAL);
	assert_int_equal(ibv_detach_mcast(c.p.b.qp, &c.group, 0), EINVAL);
	attach(&c, &c.p.b);
	attach(&c, &c.p.b); /* «attaching twice the same: 0» */
	errno = 0;
	assert_int_equal(ibv_destroy_qp(c.p.b.qp), EBUSY);
	assert_int_equal(errno, EBUSY);
	/* It was in once. */
	post_receive(&c.p.b, 0, 128, 1);
	post_receive(&c.p.b, 0, 128, 2);
	send_all(&c);
	expect_it(&c, &c.p.b);
	expect_empty(c.p.b.cq);
	detach(&c, &c.p.b);
	assert_int_equal(ibv_detach_mcast(c.p.b.qp, &c.group, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	close_cast(&c);
}

/* Closing the device takes its QPs out of their groups. */
static void closed_while_attached(void **state)
{
	struct ibv_context *context = open_soft0();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_UD };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct cast c;

	(void)state;
	open_cast(&c);
	assert_int_equal(ibv_attach_mcast(qp, &c.group, 0), 0);
	assert_int_equal(ibv_close_device(context), 0);
	send_all(&c); /* to nobody */
	close_cast(&c);
	/* The structs are the program's, as after libibverbs' close. */
	free(qp);
	free(cq);
	free(pd);
}

static void limits(void **state)
{
	struct ibv_device_attr attr;
	struct cast c;

	(void)state;
	open_cast(&c);
	assert_int_equal(ibv_query_device(c.p.context, &attr), 0);
	assert_int_equal(attr.max_mcast_grp, 2);
	assert_int_equal(attr.max_mcast_qp_attach, 2);
	assert_int_equal(attr.max_total_mcast_qp_attach, 4);
	attach(&c, receiver(&c, 0));
	attach(&c, receiver(&c, 1));
	assert_int_equal(ibv_attach_mcast(receiver(&c, 2)->qp, &c.group, 0),
			 ENOMEM);
	c.group.raw[15]++;
	attach(&c, receiver(&c, 2));
	c.group.raw[15]++;
	assert_int_equal(ibv_attach_mcast(receiver(&c, 2)->qp, &c.group, 0),
			 ENOMEM);
	c.group.raw[15]--;
	detach(&c, receiver(&c, 2));
	c.group.raw[15]--;
	detach(&c, receiver(&c, 0));
	detach(&c, receiver(&c, 1));
	close_cast(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everyone_in_it_and_nobody_else),
		cmocka_unit_test(what_is_dropped),
		cmocka_unit_test(loopback),
		cmocka_unit_test(rules),
		cmocka_unit_test(closed_while_attached),
		cmocka_unit_test(limits),
	};

	setenv("SOFTVERBS_MAX_MCAST_GRP", "2", 1);
	setenv("SOFTVERBS_MAX_MCAST_ATTACH", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
