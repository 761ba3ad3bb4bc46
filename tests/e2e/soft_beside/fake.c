/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libibverbs with one real device, "fake0": preloaded behind
 * soft0, its functions are what soft0 finds where libibverbs' would be. It
 * answers with numbers that soft0 never gives.
 */
#include <stdlib.h>
#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

static struct ibv_device fake = { .name = "fake0" };
static struct ibv_context context = { .device = &fake };
static struct ibv_pd pd = { .context = &context, .handle = 4711 };
static struct ibv_mr mr = { .context = &context, .lkey = 4712 };
static struct ibv_cq cq = { .context = &context, .cqe = 4713 };
static struct ibv_qp qp = { .context = &context, .qp_num = 4714 };

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	list[0] = &fake;
	if (count)
		*count = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	(void)device;
	return 4710;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return device == &fake ? &context : NULL;
}

int ibv_close_device(struct ibv_context *closed)
{
	return closed == &context ? 0 : -1;
}

int ibv_query_device(struct ibv_context *queried, struct ibv_device_attr *attr)
{
	attr->vendor_id = queried == &context ? 4715 : 0;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	return of == &context ? &pd : NULL;
}

int ibv_dealloc_pd(struct ibv_pd *freed)
{
	return freed == &pd ? 4716 : 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *in, void *addr, size_t length,
			  int access)
{
	(void)addr, (void)length, (void)access;
	return in == &pd ? &mr : NULL;
}

int ibv_dereg_mr(struct ibv_mr *freed)
{
	return freed == &mr ? 4717 : 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	(void)cqe, (void)cq_context, (void)channel, (void)vector;
	return of == &context ? &cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *freed)
{
	return freed == &cq ? 4718 : 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *in, struct ibv_qp_init_attr *init)
{
	(void)init;
	return in == &pd ? &qp : NULL;
}

int ibv_modify_qp(struct ibv_qp *modified, struct ibv_qp_attr *attr, int mask)
{
	(void)attr, (void)mask;
	return modified == &qp ? 4719 : 0;
}

int ibv_destroy_qp(struct ibv_qp *freed)
{
	return freed == &qp ? 4720 : 0;
}
