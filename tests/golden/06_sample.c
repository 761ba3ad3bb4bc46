/*
 * A source for the golden frames; it is shown, never built.
 * 中文注释：宽字符不能破坏边框。 A wide comment, to see that rows stay whole.
 */
#include <infiniband/verbs.h>
#include "lesson.h"

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	void *memory;

	context = lesson_open();
	if (!context)
		return 1;

	/* The domain: everything below is made in it. */
	step("alloc-pd");
	pd = ibv_alloc_pd(context);
	if (!pd) {
		report(errno, "ibv_alloc_pd");
		goto close_device;
	}

	step("reg-mr");
	memory = page_alloc(1);
	mr = ibv_reg_mr(pd, memory, page_bytes(), IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		report(errno, "ibv_reg_mr(length=%zu)", page_bytes());
		goto dealloc_pd;
	}

	step("create-cq");
	cq = ibv_create_cq(context, 16, NULL, /* channel */ NULL, 0);
	if (!cq)
		goto dereg_mr;

	step("create-qp");
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	qp = ibv_create_qp(pd, &init);
	if (!qp)
		goto destroy_cq;

	/* In the wrong order: the PD still has children. */
	step("wrong-order");
	refused(EBUSY, ibv_dealloc_pd(pd));

	ibv_destroy_qp(qp);
destroy_cq:
	ibv_destroy_cq(cq);
dereg_mr:
	ibv_dereg_mr(mr);
dealloc_pd:
	ibv_dealloc_pd(pd);
close_device:
	ibv_close_device(context);
	return lesson_end();
}
