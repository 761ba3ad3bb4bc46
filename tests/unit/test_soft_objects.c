/* SPDX-License-Identifier: MIT */
/*
 * Which object holds which (section 1 of the specification), pointers and
 * handles that are not what they seem (section 0), and fork().
 */
#include "tests/unit/soft_world.h"
#include "tests/unit/tsan.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_ah *make_ah(struct world *world)
{
	struct ibv_ah_attr attr = { .grh = { .dgid = world->gid },
				    .is_global = 1,
				    .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(world->pd, &attr);

	assert_non_null(ah);
	return ah;
}

static struct ibv_srq *make_srq(struct world *world)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4,
						    .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(world->pd, &init);

	assert_non_null(srq);
	return srq;
}

/* «dealloc_pd with a live MR, QP, AH, SRQ: EBUSY», one holder at a time. */
static void pd_is_held_by_an_mr(void **state)
{
	struct world *world = *state;
	_Alignas(16) char page[16];
	struct ibv_mr *mr = ibv_reg_mr(world->pd, page, sizeof(page), 0);

	assert_non_null(mr);
	assert_refused(EBUSY, ibv_dealloc_pd(world->pd));
	/* Intact: it still makes things, and goes when it is free. */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(world->pd, page, sizeof(page), 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void pd_is_held_by_an_ah(void **state)
{
	struct world *world = *state;
	struct ibv_ah *ah = make_ah(world);

	assert_refused(EBUSY, ibv_dealloc_pd(world->pd));
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void pd_is_held_by_an_srq(void **state)
{
	struct world *world = *state;
	struct ibv_srq *srq = make_srq(world);

	assert_refused(EBUSY, ibv_dealloc_pd(world->pd));
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void pd_and_cq_are_held_by_a_qp(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = make_qp(world, IBV_QPT_RC);
	struct ibv_wc wc;

	assert_refused(EBUSY, ibv_dealloc_pd(world->pd));
	assert_refused(EBUSY, ibv_destroy_cq(world->cq));
	assert_int_equal(ibv_poll_cq(world->cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* «while a QP uses it as send or recv CQ»: either alone is enough. */
static void each_cq_of_a_qp_is_held(void **state)
{
	struct world *world = *state;
	struct ibv_cq *other = ibv_create_cq(world->context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);
	struct ibv_qp *qp;

	init.recv_cq = other;
	qp = ibv_create_qp(world->pd, &init);
	assert_non_null(qp);
	assert_refused(EBUSY, ibv_destroy_cq(world->cq));
	assert_refused(EBUSY, ibv_destroy_cq(other));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(other), 0);
}

/* «create_qp SRQ in another PD: allowed»; the SRQ is held as well. */
static void srq_is_held_by_a_qp(void **state)
{
	struct world *world = *state;
	struct ibv_srq *srq = make_srq(world);
	struct ibv_pd *other = ibv_alloc_pd(world->context);
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);
	struct ibv_qp *qp;

	init.srq = srq;
	qp = ibv_create_qp(other, &init);
	assert_non_null(qp);
	assert_refused(EBUSY, ibv_destroy_srq(srq));
	assert_refused(EBUSY, ibv_dealloc_pd(other));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* «destroy_comp_channel while a CQ refers to it: EBUSY» */
static void channel_is_held_by_a_cq(void **state)
{
	struct world *world = *state;
	struct ibv_comp_channel *channel =
		ibv_create_comp_channel(world->context);
	struct ibv_cq *cq = ibv_create_cq(world->context, 4, NULL, channel, 0);

	assert_non_null(cq);
	assert_int_equal(channel->refcnt, 1);
	assert_refused(EBUSY, ibv_destroy_comp_channel(channel));
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* A creation that is refused must not hold what it was to be made with. */
static void a_refused_creation_holds_nothing(void **state)
{
	struct world *world = *state;
	struct ibv_comp_channel *channel =
		ibv_create_comp_channel(world->context);
	struct ibv_qp_init_attr init = qp_wish(world, IBV_QPT_RC);

	init.cap.max_send_wr = 1 << 21;
	assert_none(EINVAL, ibv_create_qp(world->pd, &init));
	assert_none(EINVAL, ibv_create_cq(world->context, 0, NULL, channel, 0));
	assert_none(EINVAL,
		    ibv_reg_mr(world->pd, world, 1, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	/* end_world() would be refused if the PD or the CQ were held. */
}

/* «double destroy», «a stale/garbage handle: ENOENT» */
static void what_was_destroyed_is_named(void **state)
{
	struct world *world = *state;
	struct ibv_pd *pd = ibv_alloc_pd(world->context);
	int on_the_stack[64] = { 0 };

	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_refused(ENOENT, ibv_dealloc_pd(pd));
	assert_none(ENOENT, ibv_reg_mr(pd, &state, 1, 0));
	assert_refused(ENOENT, ibv_destroy_qp((void *)on_the_stack));
	assert_refused(EINVAL, ibv_destroy_qp(NULL));
	assert_refused(EINVAL, ibv_destroy_cq((void *)world->pd));
}

static void a_garbled_handle_finds_nothing(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = make_qp(world, IBV_QPT_RC);

	qp->handle ^= 0x1000;
	assert_refused(ENOENT, ibv_destroy_qp(qp));
	qp->handle ^= 0x1000;
	world->pd->handle++;
	assert_refused(ENOENT, ibv_dealloc_pd(world->pd));
	world->pd->handle--;
	world->cq->handle++;
	assert_refused(ENOENT, ibv_destroy_cq(world->cq));
	assert_refused(ENOENT, ibv_resize_cq(world->cq, 8));
	world->cq->handle--;
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void what_is_unsupported_says_so(void **state)
{
	struct world *world = *state;
	struct ibv_qp *qp = make_qp(world, IBV_QPT_UD);
	struct ibv_ece ece = { .vendor_id = 0 };
	char page[16];
	struct ibv_mr *mr = ibv_reg_mr(world->pd, page, sizeof(page), 0);

	assert_refused(EOPNOTSUPP, ibv_query_ece(qp, &ece));
	assert_refused(EOPNOTSUPP, ibv_set_ece(qp, &ece));
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_none(EOPNOTSUPP, ibv_reg_dmabuf_mr(world->pd, 0, 4096, 0, 0, 0));
	assert_none(EOPNOTSUPP, ibv_import_pd(world->context, 1));
	assert_none(EOPNOTSUPP, ibv_import_mr(world->pd, 1));
	assert_none(EOPNOTSUPP, ibv_import_device(world->context->cmd_fd));
	assert_none(EOPNOTSUPP, ibv_alloc_null_mr(world->pd));
	assert_int_equal(ibv_modify_cq(world->cq, NULL), EOPNOTSUPP);
	assert_none(EOPNOTSUPP, ibv_open_xrcd(world->context, NULL));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Exits with the number of the first check that fails. */
static int in_the_child(struct world *parents)
{
	struct world world;
	void *state = &world;
	struct ibv_wc wc;
	struct ibv_qp *qp;

	if (ibv_dealloc_pd(parents->pd) != ENOENT)
		return 1;
	if (ibv_poll_cq(parents->cq, 1, &wc) >= 0)
		return 3;
	make_world(&state);
	qp = make_qp(state, IBV_QPT_RC);
	if (!qp || ibv_destroy_qp(qp))
		return 2;
	end_world(&state);
	return 0;
}

static void a_forked_child_starts_afresh(void **state)
{
	struct world *world = *state;
	struct world mine = *world;
	struct ibv_qp *qp;
	int status;
	pid_t child;

	skip_under_tsan("a child starts a thread");
	qp = make_qp(world, IBV_QPT_RC);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(in_the_child(&mine));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Every table grows, and nothing is found that was removed. */
static void thousands_of_objects(void **state)
{
	enum { MANY = 1900 }; /* pages: 8 MiB are an ordinary limit */
	struct world *world = *state;
	static struct ibv_mr *mrs[MANY];
	char page[16];

	for (int i = 0; i < MANY; i++) {
		mrs[i] = ibv_reg_mr(world->pd, page, sizeof(page), 0);
		assert_non_null(mrs[i]);
		assert_int_equal(mrs[i]->lkey, mrs[i]->rkey);
		if (i)
			assert_int_not_equal(mrs[i]->lkey >> 8,
					     mrs[i - 1]->lkey >> 8);
	}
	for (int i = 0; i < MANY; i += 2)
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
	for (int i = 1; i < MANY; i += 2)
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
}

/* cmocka's assertions are for its own thread: this returns the trouble. */
static const char *make_and_unmake(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { .max_send_wr = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_mr *mr = ibv_reg_mr(pd, &init, sizeof(init), 0);

	if (!pd || !cq || !qp || !mr)
		return "not made";
	if (ibv_dealloc_pd(pd) != EBUSY)
		return "the PD is not held";
	if (ibv_dereg_mr(mr) || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) ||
	    ibv_dealloc_pd(pd))
		return "not unmade";
	return NULL;
}

static void *one_of_many(void *context)
{
	const char *trouble = NULL;

	for (int i = 0; i < 100 && !trouble; i++)
		trouble = make_and_unmake(context);
	return (void *)trouble;
}

static void threads_share_a_context(void **state)
{
	struct world *world = *state;
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, one_of_many,
						world->context),
				 0);
	for (int i = 0; i < 4; i++) {
		void *trouble;

		pthread_join(threads[i], &trouble);
		if (trouble)
			fail_msg("%s", (const char *)trouble);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(pd_is_held_by_an_mr),
		in_world(pd_is_held_by_an_ah),
		in_world(pd_is_held_by_an_srq),
		in_world(pd_and_cq_are_held_by_a_qp),
		in_world(each_cq_of_a_qp_is_held),
		in_world(srq_is_held_by_a_qp),
		in_world(channel_is_held_by_a_cq),
		in_world(a_refused_creation_holds_nothing),
		in_world(what_was_destroyed_is_named),
		in_world(a_garbled_handle_finds_nothing),
		in_world(what_is_unsupported_says_so),
		in_world(a_forked_child_starts_afresh),
		in_world(thousands_of_objects),
		in_world(threads_share_a_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
