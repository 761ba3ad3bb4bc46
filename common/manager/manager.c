/* SPDX-License-Identifier: 0BSD */
/*
 * The manager's calls: see manager.h. Creation and destruction share one
 * teardown: an object that was not made is NULL, and NULL is passed over.
 */
#include "manager.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Some providers return NULL and leave errno as it was. */
static int errno_or(int fallback)
{
	return errno ? errno : fallback;
}

/* Logs a failure and gives its errno back. */
__attribute__((format(printf, 4, 5))) static int fail(const struct manager *m,
						      int err, const char *call,
						      const char *format, ...)
{
	char given[160];
	va_list args;

	if (!m->log)
		return err;
	va_start(args, format);
	vsnprintf(given, sizeof(given), format, args);
	va_end(args);
	m->log(m->log_arg, err, call, given);
	return err;
}

/* --- tables ------------------------------------------------------------- */

/* A free place, a new one if need be; its index, or -1: no memory. */
static int table_place(struct manager_table *table)
{
	void **grown;
	int i;

	for (i = 0; i < table->count; i++)
		if (!table->object[i])
			return i;
	grown = realloc(table->object, (i + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	table->object = grown;
	table->object[i] = NULL;
	table->count++;
	return i;
}

static void *table_at(const struct manager_table *table, int index)
{
	if (index < 0 || index >= table->count)
		return NULL;
	return table->object[index];
}

static int table_live(const struct manager_table *table)
{
	int i, live = 0;

	for (i = 0; i < table->count; i++)
		live += table->object[i] != NULL;
	return live;
}

static void table_free(struct manager_table *table)
{
	free(table->object);
	*table = (struct manager_table){ 0 };
}

/* --- the check ---------------------------------------------------------- */

/* True when there is enough; else fills *lack. */
static bool enough(struct manager_lack *lack, const char *of, int index,
		   const char *limit, uint64_t needed, uint64_t available)
{
	if (needed <= available)
		return true;
	*lack = (struct manager_lack){
		.limit = limit,
		.of = of,
		.index = index,
		.needed = needed,
		.available = available,
	};
	return false;
}

static bool enough_objects(const struct ibv_device_attr *has,
			   const struct manager_plan *plan,
			   struct manager_lack *lack)
{
	return enough(lack, "", 0, "phys_port_cnt", plan->port_num,
		      has->phys_port_cnt) &&
	       enough(lack, "", 0, "max_pd", 1, has->max_pd) &&
	       enough(lack, "", 0, "max_mr", plan->num_mrs, has->max_mr) &&
	       enough(lack, "", 0, "max_cq", plan->num_cqs, has->max_cq) &&
	       enough(lack, "", 0, "max_qp", plan->num_qps, has->max_qp);
}

static bool enough_for_cq(const struct ibv_device_attr *has, int vectors,
			  const struct manager_cq_plan *cq, int i,
			  struct manager_lack *lack)
{
	return enough(lack, "cqs", i, "max_cqe", cq->cqe, has->max_cqe) &&
	       enough(lack, "cqs", i, "num_comp_vectors",
		      (uint64_t)cq->comp_vector + 1, vectors);
}

static bool enough_for_qp(const struct ibv_device_attr *has,
			  const struct ibv_qp_cap *cap, int i,
			  struct manager_lack *lack)
{
	return enough(lack, "qps", i, "max_qp_wr", cap->max_send_wr,
		      has->max_qp_wr) &&
	       enough(lack, "qps", i, "max_qp_wr", cap->max_recv_wr,
		      has->max_qp_wr) &&
	       enough(lack, "qps", i, "max_sge", cap->max_send_sge,
		      has->max_sge) &&
	       enough(lack, "qps", i, "max_sge", cap->max_recv_sge,
		      has->max_sge);
}

static bool device_has(const struct ibv_device_attr *has, int vectors,
		       const struct manager_plan *plan,
		       struct manager_lack *lack)
{
	int i;

	if (!enough_objects(has, plan, lack))
		return false;
	for (i = 0; i < plan->num_mrs; i++)
		if (!enough(lack, "mrs", i, "max_mr_size", plan->mrs[i].length,
			    has->max_mr_size))
			return false;
	for (i = 0; i < plan->num_cqs; i++)
		if (!enough_for_cq(has, vectors, &plan->cqs[i], i, lack))
			return false;
	for (i = 0; i < plan->num_qps; i++)
		if (!enough_for_qp(has, &plan->qps[i].cap, i, lack))
			return false;
	return true;
}

/* A CQ's room against all the work that may complete to it. */
static bool room_for_completions(const struct manager_plan *plan, int i,
				 struct manager_lack *lack)
{
	uint64_t sum = 0;
	int j;

	for (j = 0; j < plan->num_qps; j++) {
		if (plan->qps[j].send_cq == i)
			sum += plan->qps[j].cap.max_send_wr;
		if (plan->qps[j].recv_cq == i)
			sum += plan->qps[j].cap.max_recv_wr;
	}
	return enough(lack, "cqs", i, "cqe", sum,
		      plan->cqs[i].cqe > 0 ? plan->cqs[i].cqe : 0);
}

static bool cq_is_planned(const struct manager_plan *plan, int cq, int i,
			  struct manager_lack *lack)
{
	/* A negative index is answered as the one after the last. */
	uint64_t needed = (uint64_t)(cq < 0 ? plan->num_cqs : cq) + 1;

	return enough(lack, "qps", i, "num_cqs", needed, plan->num_cqs);
}

static bool plan_is_sound(const struct manager_plan *plan,
			  struct manager_lack *lack)
{
	int i;

	for (i = 0; i < plan->num_qps; i++)
		if (!cq_is_planned(plan, plan->qps[i].send_cq, i, lack) ||
		    !cq_is_planned(plan, plan->qps[i].recv_cq, i, lack))
			return false;
	for (i = 0; i < plan->num_cqs; i++)
		if (!enough(lack, "cqs", i, "channel", plan->cqs[i].channel,
			    plan->channel) ||
		    !room_for_completions(plan, i, lack))
			return false;
	return true;
}

int manager_check(struct ibv_context *context, const struct manager_plan *plan,
		  struct manager_lack *lack)
{
	struct ibv_device_attr has;
	int err;

	*lack = (struct manager_lack){ .limit = "", .of = "" };
	if (!plan_is_sound(plan, lack))
		return EINVAL;
	err = ibv_query_device(context, &has);
	if (err)
		return err;
	if (!device_has(&has, context->num_comp_vectors, plan, lack))
		return EOPNOTSUPP;
	return 0;
}

/* --- creation ----------------------------------------------------------- */

static int open_device(struct manager *m, struct ibv_device *device)
{
	if (!device)
		return fail(m, ENODEV, "ibv_open_device", "no device");
	errno = 0;
	m->context = ibv_open_device(device);
	if (!m->context)
		return fail(m, errno_or(EIO), "ibv_open_device", "%s",
			    ibv_get_device_name(device));
	return 0;
}

static int alloc_pd(struct manager *m)
{
	errno = 0;
	m->pd = ibv_alloc_pd(m->context);
	if (!m->pd)
		return fail(m, errno_or(ENOMEM), "ibv_alloc_pd", "pd");
	return 0;
}

static int create_channel(struct manager *m)
{
	errno = 0;
	m->channel = ibv_create_comp_channel(m->context);
	if (!m->channel)
		return fail(m, errno_or(EIO), "ibv_create_comp_channel",
			    "channel");
	return 0;
}

int manager_add_mr(struct manager *m, const struct manager_mr_plan *plan,
		   int *index)
{
	struct ibv_mr *mr;
	int i = table_place(&m->mrs);

	if (i < 0)
		return fail(m, ENOMEM, "realloc", "mrs");
	errno = 0;
	mr = ibv_reg_mr(m->pd, plan->addr, plan->length, plan->access);
	if (!mr)
		return fail(m, errno_or(EINVAL), "ibv_reg_mr",
			    "mrs[%d]: addr=%p length=%zu access=0x%x", i,
			    plan->addr, plan->length, plan->access);
	m->mrs.object[i] = mr;
	if (index)
		*index = i;
	return 0;
}

int manager_add_cq(struct manager *m, const struct manager_cq_plan *plan,
		   int *index)
{
	struct ibv_cq *cq;
	int i = table_place(&m->cqs);

	if (i < 0)
		return fail(m, ENOMEM, "realloc", "cqs");
	errno = 0;
	cq = ibv_create_cq(m->context, plan->cqe, plan->cq_context,
			   plan->channel ? m->channel : NULL,
			   plan->comp_vector);
	if (!cq)
		return fail(m, errno_or(EINVAL), "ibv_create_cq",
			    "cqs[%d]: cqe=%d comp_vector=%d", i, plan->cqe,
			    plan->comp_vector);
	m->cqs.object[i] = cq;
	if (index)
		*index = i;
	return 0;
}

/* RESET to INIT: what a QP needs to know of this end. */
static int init_qp(struct manager *m, struct ibv_qp *qp,
		   const struct manager_qp_plan *plan, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = m->port_num,
		.pkey_index = m->pkey_index,
		.qkey = plan->qkey,
		.qp_access_flags = plan->access,
	};
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX;
	int err;

	mask |= plan->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	err = ibv_modify_qp(qp, &attr, mask);
	if (err)
		return fail(m, err, "ibv_modify_qp",
			    "qps[%d] to INIT: port_num=%u pkey_index=%u", i,
			    m->port_num, m->pkey_index);
	return 0;
}

int manager_add_qp(struct manager *m, const struct manager_qp_plan *plan,
		   int *index)
{
	struct ibv_qp_init_attr init = {
		.send_cq = manager_cq(m, plan->send_cq),
		.recv_cq = manager_cq(m, plan->recv_cq),
		.cap = plan->cap,
		.qp_type = plan->qp_type,
		.sq_sig_all = plan->sq_sig_all,
	};
	struct ibv_qp *qp;
	int i = table_place(&m->qps);
	int err;

	if (i < 0)
		return fail(m, ENOMEM, "realloc", "qps");
	if (!init.send_cq || !init.recv_cq)
		return fail(m, EINVAL, "ibv_create_qp",
			    "qps[%d]: no such CQ: send_cq=%d recv_cq=%d", i,
			    plan->send_cq, plan->recv_cq);
	errno = 0;
	qp = ibv_create_qp(m->pd, &init);
	if (!qp)
		return fail(m, errno_or(EINVAL), "ibv_create_qp",
			    "qps[%d]: qp_type=%d send_wr=%u/%u recv_wr=%u/%u "
			    "inline=%u",
			    i, plan->qp_type, plan->cap.max_send_wr,
			    plan->cap.max_send_sge, plan->cap.max_recv_wr,
			    plan->cap.max_recv_sge, plan->cap.max_inline_data);
	/* From here on it is the manager's, whatever happens. */
	m->qps.object[i] = qp;
	err = init_qp(m, qp, plan, i);
	if (err) {
		manager_drop_qp(m, i);
		return err;
	}
	if (index)
		*index = i;
	return 0;
}

static int create_all(struct manager *m, struct ibv_device *device,
		      const struct manager_plan *plan)
{
	int i, err;

	err = open_device(m, device);
	if (!err)
		err = alloc_pd(m);
	for (i = 0; !err && i < plan->num_mrs; i++)
		err = manager_add_mr(m, &plan->mrs[i], NULL);
	if (!err && plan->channel)
		err = create_channel(m);
	for (i = 0; !err && i < plan->num_cqs; i++)
		err = manager_add_cq(m, &plan->cqs[i], NULL);
	for (i = 0; !err && i < plan->num_qps; i++)
		err = manager_add_qp(m, &plan->qps[i], NULL);
	return err;
}

int manager_create(struct manager *m, struct ibv_device *device,
		   const struct manager_plan *plan)
{
	int err;

	*m = (struct manager){
		.port_num = plan->port_num,
		.pkey_index = plan->pkey_index,
		.log = plan->log,
		.log_arg = plan->log_arg,
	};
	err = create_all(m, device, plan);
	if (err)
		manager_destroy(m);
	return err;
}

/* --- destruction -------------------------------------------------------- */

static int drop(struct manager *m, struct manager_table *table, int index)
{
	void *object = table_at(table, index);
	const char *call, *name;
	int err;

	if (!object)
		return ENOENT;
	if (table == &m->qps) {
		name = "qps";
		call = "ibv_destroy_qp";
		err = ibv_destroy_qp(object);
	} else if (table == &m->cqs) {
		name = "cqs";
		call = "ibv_destroy_cq";
		err = ibv_destroy_cq(object);
	} else {
		name = "mrs";
		call = "ibv_dereg_mr";
		err = ibv_dereg_mr(object);
	}
	if (err)
		return fail(m, err, call, "%s[%d]", name, index);
	table->object[index] = NULL;
	return 0;
}

int manager_drop_mr(struct manager *m, int index)
{
	return drop(m, &m->mrs, index);
}

int manager_drop_cq(struct manager *m, int index)
{
	return drop(m, &m->cqs, index);
}

int manager_drop_qp(struct manager *m, int index)
{
	return drop(m, &m->qps, index);
}

static void keep_first(int *first, int err)
{
	if (!*first)
		*first = err;
}

/* All of a table, the last made first. */
static void destroy_table(struct manager *m, struct manager_table *table,
			  int *first)
{
	int i, err;

	for (i = table->count - 1; i >= 0; i--) {
		if (!table->object[i])
			continue;
		err = drop(m, table, i);
		if (err)
			keep_first(first, err);
	}
	if (!table_live(table))
		table_free(table);
}

static void destroy_channel(struct manager *m, int *first)
{
	int err;

	if (!m->channel)
		return;
	err = ibv_destroy_comp_channel(m->channel);
	if (err)
		keep_first(first,
			   fail(m, err, "ibv_destroy_comp_channel", "channel"));
	else
		m->channel = NULL;
}

static void dealloc_pd(struct manager *m, int *first)
{
	int err;

	if (!m->pd)
		return;
	err = ibv_dealloc_pd(m->pd);
	if (err)
		keep_first(first, fail(m, err, "ibv_dealloc_pd", "pd"));
	else
		m->pd = NULL;
}

int manager_destroy(struct manager *m)
{
	int err, first = 0;

	if (!m)
		return 0;
	destroy_table(m, &m->qps, &first);
	destroy_table(m, &m->cqs, &first);
	destroy_channel(m, &first);
	destroy_table(m, &m->mrs, &first);
	dealloc_pd(m, &first);
	/* Closing is never refused: it must wait for the rest. */
	if (!m->context || first)
		return first;
	err = ibv_close_device(m->context);
	if (err)
		return fail(m, err, "ibv_close_device", "context");
	m->context = NULL;
	return 0;
}

/* --- looking ------------------------------------------------------------ */

struct ibv_context *manager_context(const struct manager *m)
{
	return m->context;
}

struct ibv_pd *manager_pd(const struct manager *m)
{
	return m->pd;
}

struct ibv_comp_channel *manager_channel(const struct manager *m)
{
	return m->channel;
}

struct ibv_mr *manager_mr(const struct manager *m, int index)
{
	return table_at(&m->mrs, index);
}

struct ibv_cq *manager_cq(const struct manager *m, int index)
{
	return table_at(&m->cqs, index);
}

struct ibv_qp *manager_qp(const struct manager *m, int index)
{
	return table_at(&m->qps, index);
}

static int audit_qp(const struct manager *m, int i, struct manager_audit *audit)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err;

	err = ibv_query_qp(m->qps.object[i], &attr, IBV_QP_STATE, &init);
	if (err) {
		audit->qps_unknown++;
		return fail(m, err, "ibv_query_qp", "qps[%d]", i);
	}
	if (attr.qp_state <= IBV_QPS_ERR)
		audit->qp_states[attr.qp_state]++;
	else
		audit->qps_unknown++;
	return 0;
}

int manager_audit(const struct manager *m, struct manager_audit *audit)
{
	int i, first = 0;

	*audit = (struct manager_audit){
		.contexts = m->context != NULL,
		.pds = m->pd != NULL,
		.channels = m->channel != NULL,
		.mrs = table_live(&m->mrs),
		.cqs = table_live(&m->cqs),
		.qps = table_live(&m->qps),
	};
	audit->total = audit->contexts + audit->pds + audit->channels +
		       audit->mrs + audit->cqs + audit->qps;
	for (i = 0; i < m->qps.count; i++)
		if (m->qps.object[i])
			keep_first(&first, audit_qp(m, i, audit));
	return first;
}
