/* SPDX-License-Identifier: MIT */
/*
 * soft0 as a device: in the list, its attributes, its port, its tables.
 */
#include "tests/unit/soft_world.h"

#include <endian.h>
#include <poll.h>

static void is_listed_last_and_once(void **state)
{
	struct ibv_device **list;
	int count = -1, found = 0;

	(void)state;
	list = ibv_get_device_list(&count);
	assert_non_null(list);
	assert_true(count >= 1);
	assert_null(list[count]);
	for (int i = 0; i < count; i++)
		found += !strcmp(ibv_get_device_name(list[i]), "soft0");
	assert_int_equal(found, 1);
	assert_string_equal(ibv_get_device_name(list[count - 1]), "soft0");
	assert_int_equal(list[count - 1]->node_type, IBV_NODE_CA);
	assert_int_equal(list[count - 1]->transport_type, IBV_TRANSPORT_IB);
	ibv_free_device_list(list);
}

static void two_opens_are_two_contexts(void **state)
{
	struct ibv_context *a = open_soft0(), *b = open_soft0();
	struct ibv_pd *pd = ibv_alloc_pd(a);

	(void)state;
	assert_ptr_not_equal(a, b);
	assert_int_not_equal(a->async_fd, b->async_fd);
	assert_int_equal(ibv_close_device(b), 0);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(a), 0);
}

static void descriptors_are_open_and_silent(void **state)
{
	struct world *world = *state;
	struct pollfd fds[] = {
		{ .fd = world->context->cmd_fd, .events = POLLIN },
		{ .fd = world->context->async_fd, .events = POLLIN },
	};

	assert_int_equal(poll(fds, 2, 0), 0);
}

/* Locally administered, one station: the low bits of the first byte. */
static void guid_is_local_and_stable(void **state)
{
	struct world *world = *state;
	struct ibv_device_attr attr;
	uint64_t guid = be64toh(ibv_get_device_guid(world->context->device));

	assert_int_equal(guid >> 56 & 3, 2);
	assert_int_equal(ibv_query_device(world->context, &attr), 0);
	assert_true(be64toh(attr.node_guid) == guid);
	assert_true(be64toh(ibv_get_device_guid(world->context->device)) ==
		    guid);
}

/* Section 7: the numbers of rxe. */
static void limits_are_those_of_rxe(void **state)
{
	struct world *world = *state;
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(world->context, &attr), 0);
	assert_int_equal(attr.max_qp_wr, 1048576);
	assert_int_equal(attr.max_sge, 32);
	assert_int_equal(attr.max_cqe, 32767);
	assert_int_equal(attr.max_srq_wr, 1048576);
	assert_int_equal(attr.max_srq_sge, 27);
	assert_true(attr.max_mr_size == UINT64_MAX);
	assert_int_equal(attr.max_qp_rd_atom, 128);
	assert_int_equal(attr.max_pkeys, 1);
	assert_int_equal(attr.vendor_id, 0xffffff);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(ibv_query_device_ex(world->context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
}

static void port_is_active_roce(void **state)
{
	struct world *world = *state;
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(world->context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_true(attr.max_msg_sz == 1u << 31);
	assert_int_equal(attr.lid, 0);
	assert_true(attr.gid_tbl_len >= 1);
	assert_refused(EINVAL, ibv_query_port(world->context, 0, &attr));
	assert_refused(EINVAL, ibv_query_port(world->context, 2, &attr));
}

#undef ibv_query_port
/* The exported function fills the old struct: not a byte more. */
static void old_port_struct_ends_before_the_new_fields(void **state)
{
	struct world *world = *state;
	struct ibv_port_attr attr;

	memset(&attr, 0x5a, sizeof(attr));
	assert_int_equal(ibv_query_port(world->context, 1,
					(struct _compat_ibv_port_attr *)&attr),
			 0);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.port_cap_flags2, 0x5a5a);
}

static void one_gid_of_roce_v2(void **state)
{
	struct world *world = *state;
	static const uint8_t prefix[] = { 0, 0, 0, 0,    0,    0,  0,
					  0, 0, 0, 0xff, 0xff, 127 };
	struct ibv_gid_entry entry, table[4];
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(world->context, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, prefix, sizeof(prefix));
	assert_int_equal(ibv_query_gid_ex(world->context, 1, 0, &entry, 0), 0);
	assert_memory_equal(&entry.gid, &gid, sizeof(gid));
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(ibv_query_gid_table(world->context, table, 4, 0), 1);
	assert_memory_equal(&table[0], &entry, sizeof(entry));
	/* Section 0: -1 here, the errno's value there. */
	assert_int_equal(ibv_query_gid(world->context, 1, 1, &gid), -1);
	assert_int_equal(ibv_query_gid(world->context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(world->context, 2, 0, &gid), -1);
	assert_refused(EINVAL,
		       ibv_query_gid_ex(world->context, 1, 1, &entry, 0));
	assert_int_equal(ibv_query_gid_table(world->context, table, 0, 0),
			 -EINVAL);
}

static void one_pkey_the_default(void **state)
{
	struct world *world = *state;
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(world->context, 1, 0, &pkey), 0);
	assert_int_equal(be16toh(pkey), 0xffff);
	assert_int_equal(ibv_get_pkey_index(world->context, 1, pkey), 0);
	assert_int_equal(ibv_get_pkey_index(world->context, 1, htobe16(1)), -1);
	assert_int_equal(ibv_query_pkey(world->context, 1, 1, &pkey), -1);
}

/* Section 0: ibv_close_device() always answers 0, whatever is left. */
static void close_takes_what_was_left(void **state)
{
	struct world world = { .context = open_soft0() };
	struct ibv_comp_channel *channel;
	struct ibv_qp *qp;
	char page[64];

	(void)state;
	world.pd = ibv_alloc_pd(world.context);
	channel = ibv_create_comp_channel(world.context);
	assert_non_null(channel);
	world.cq = ibv_create_cq(world.context, 8, NULL, channel, 0);
	assert_non_null(world.cq);
	assert_non_null(ibv_reg_mr(world.pd, page, sizeof(page), 0));
	qp = make_qp(&world, IBV_QPT_RC);
	assert_int_equal(ibv_close_device(world.context), 0);
	/* They are gone: names, not crashes. */
	assert_refused(ENOENT, ibv_destroy_qp(qp));
	assert_refused(ENOENT, ibv_dealloc_pd(world.pd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(is_listed_last_and_once),
		in_world(two_opens_are_two_contexts),
		in_world(descriptors_are_open_and_silent),
		in_world(guid_is_local_and_stable),
		in_world(limits_are_those_of_rxe),
		in_world(port_is_active_roce),
		in_world(old_port_struct_ends_before_the_new_fields),
		in_world(one_gid_of_roce_v2),
		in_world(one_pkey_the_default),
		in_world(close_takes_what_was_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
