/* SPDX-License-Identifier: MIT */
/*
 * Uses a real device and soft0 side by side, mixed; status 0 if each call
 * went to whom it concerns, else the line of the first that did not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <infiniband/verbs.h>

#define must(condition)                                            \
	do {                                                       \
		if (!(condition)) {                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, \
				#condition);                       \
			return 1;                                  \
		}                                                  \
	} while (0)

int main(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_device_attr device;
	struct ibv_context *real, *soft;
	struct ibv_device **list;
	struct ibv_pd *real_pd, *soft_pd;
	struct ibv_mr *real_mr, *soft_mr;
	struct ibv_cq *real_cq, *soft_cq;
	struct ibv_qp *real_qp;
	char page[64];
	int count;

	list = ibv_get_device_list(&count);
	must(list && count == 2 && !list[2]);
	must(!strcmp(ibv_get_device_name(list[0]), "fake0"));
	must(!strcmp(ibv_get_device_name(list[1]), "soft0"));
	must(ibv_get_device_guid(list[0]) == 4710);
	soft = ibv_open_device(list[1]);
	real = ibv_open_device(list[0]);
	must(soft && real && soft != real);
	ibv_free_device_list(list);

	must(!ibv_query_device(real, &device) && device.vendor_id == 4715);
	must(!ibv_query_device(soft, &device) && device.vendor_id == 0xffffff);
	real_pd = ibv_alloc_pd(real);
	soft_pd = ibv_alloc_pd(soft);
	must(real_pd->handle == 4711 && soft_pd->context == soft);
	real_mr = ibv_reg_mr(real_pd, page, sizeof(page), 0);
	soft_mr = ibv_reg_mr(soft_pd, page, sizeof(page), 0);
	must(real_mr->lkey == 4712 && soft_mr->pd == soft_pd);
	must(ibv_dealloc_pd(soft_pd) == EBUSY);
	must(ibv_dealloc_pd(real_pd) == 4716);
	real_cq = ibv_create_cq(real, 1, NULL, NULL, 0);
	soft_cq = ibv_create_cq(soft, 1, NULL, NULL, 0);
	must(real_cq->cqe == 4713 && soft_cq->cqe == 1);

	/* A CQ of the other device is no CQ for a QP of soft0. */
	init.send_cq = init.recv_cq = real_cq;
	must(!ibv_create_qp(soft_pd, &init));
	real_qp = ibv_create_qp(real_pd, &init);
	must(real_qp->qp_num == 4714);
	must(ibv_modify_qp(real_qp, &attr, IBV_QP_STATE) == 4719);
	must(ibv_destroy_qp(real_qp) == 4720);
	must(ibv_destroy_cq(real_cq) == 4718 && !ibv_destroy_cq(soft_cq));
	must(ibv_dereg_mr(real_mr) == 4717 && !ibv_dereg_mr(soft_mr));
	must(!ibv_dealloc_pd(soft_pd));
	must(!ibv_close_device(soft) && !ibv_close_device(real));
	return 0;
}
