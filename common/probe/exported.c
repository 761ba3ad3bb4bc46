/* SPDX-License-Identifier: MIT */
/*
 * The exported functions of libibverbs, each a wrapper that passes on to the
 * next library's. They are unversioned: so they satisfy every version.
 */
#include "probe.h"

#include <errno.h>

/* verbs.h hides these behind macros or inline functions. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* An argument or answer as a word: an int keeps its sign. */
#define WIDE(value) ((uint64_t)(intptr_t)(value))

/* The next library's function of the same name, looked for once. */
#define NEXT(name)                                               \
	({                                                       \
		static _Atomic(void *) next_;                    \
		void *function_ = next_;                         \
                                                                 \
		if (!function_)                                  \
			next_ = function_ = channel_next(#name); \
		(__typeof__(&name))function_;                    \
	})

/* A libibverbs so old that it lacks the function. */
static intptr_t missing(const struct verb *verb)
{
	errno = EOPNOTSUPP;
	switch (verb->answer) {
	case ANSWER_ERRNO:
		return EOPNOTSUPP;
	case ANSWER_MINUS:
	case ANSWER_COUNT:
		return -1;
	default:
		return 0;
	}
}

/*
 * WRAP(type, function, row, (parameters), (their names), words...): the words
 * are what the row in table.c calls 0, 1, ...
 */
#define WRAP(type, name, row, parameters, arguments, ...)                \
	EXPORT type name parameters                                      \
	{                                                                \
		__typeof__(&name) next = NEXT(name);                     \
		struct call call = { .word = { __VA_ARGS__ } };          \
		type ret;                                                \
                                                                         \
		call_begin(&call, &VERB(row), FROM_HERE);                \
		ret = next ? next arguments : (type)missing(&VERB(row)); \
		call_end(&call, WIDE(ret));                              \
		return ret;                                              \
	}
#define WRAP_VOID(name, parameters, arguments, ...)             \
	EXPORT void name parameters                             \
	{                                                       \
		__typeof__(&name) next = NEXT(name);            \
		struct call call = { .word = { __VA_ARGS__ } }; \
                                                                \
		call_begin(&call, &VERB(name), FROM_HERE);      \
		if (next)                                       \
			next arguments;                         \
		call_end(&call, 0);                             \
	}
/* An object whose pointers may have been replaced. */
#define WRAP_DESTROY(name, A, a, type)                            \
	EXPORT int name(A a)                                      \
	{                                                         \
		__typeof__(&name) next = NEXT(name);              \
		struct call call = { .word = { WIDE(a) } };       \
		unsigned long life;                               \
		int ret;                                          \
                                                                  \
		call_begin(&call, &VERB(name), FROM_HERE);        \
		life = wrapped_life(RULES_##type, a);             \
		ret = next ? next(a) : (int)missing(&VERB(name)); \
		if (ret == 0 && life)                             \
			wrapped_gone(RULES_##type, a, life);      \
		call_end(&call, WIDE(ret));                       \
		return ret;                                       \
	}
#define WRAP1(type, name, A, a) WRAP(type, name, name, (A a), (a), WIDE(a))
#define WRAP2(type, name, A, a, B, b) \
	WRAP(type, name, name, (A a, B b), (a, b), WIDE(a), WIDE(b))
#define WRAP3(type, name, A, a, B, b, C, c)                                  \
	WRAP(type, name, name, (A a, B b, C c), (a, b, c), WIDE(a), WIDE(b), \
	     WIDE(c))
#define WRAP4(type, name, A, a, B, b, C, c, D, d)                           \
	WRAP(type, name, name, (A a, B b, C c, D d), (a, b, c, d), WIDE(a), \
	     WIDE(b), WIDE(c), WIDE(d))
#define WRAP5(type, name, A, a, B, b, C, c, D, d, E, e)                    \
	WRAP(type, name, name, (A a, B b, C c, D d, E e), (a, b, c, d, e), \
	     WIDE(a), WIDE(b), WIDE(c), WIDE(d), WIDE(e))

/* The device. */
WRAP1(struct ibv_device **, ibv_get_device_list, int *, num_devices)
WRAP_VOID(ibv_free_device_list, (struct ibv_device * *list), (list), WIDE(list))
WRAP1(const char *, ibv_get_device_name, struct ibv_device *, device)
WRAP1(__be64, ibv_get_device_guid, struct ibv_device *, device)
WRAP1(int, ibv_get_device_index, struct ibv_device *, device)
WRAP2(int, ibv_query_device, struct ibv_context *, context,
      struct ibv_device_attr *, device_attr)
WRAP3(int, ibv_query_port, struct ibv_context *, context, uint8_t, port_num,
      struct _compat_ibv_port_attr *, port_attr)
WRAP4(int, ibv_query_gid, struct ibv_context *, context, uint8_t, port_num, int,
      index, union ibv_gid *, gid)
WRAP(int, _ibv_query_gid_ex, ibv_query_gid_ex,
     (struct ibv_context * context, uint32_t port_num, uint32_t gid_index,
      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size),
     (context, port_num, gid_index, entry, flags, entry_size), WIDE(context),
     WIDE(port_num), WIDE(gid_index), WIDE(entry), WIDE(flags),
     WIDE(entry_size))
WRAP(ssize_t, _ibv_query_gid_table, ibv_query_gid_table,
     (struct ibv_context * context, struct ibv_gid_entry *entries,
      size_t max_entries, uint32_t flags, size_t entry_size),
     (context, entries, max_entries, flags, entry_size), WIDE(context),
     WIDE(entries), WIDE(max_entries), WIDE(flags), WIDE(entry_size))
WRAP4(int, ibv_query_pkey, struct ibv_context *, context, uint8_t, port_num,
      int, index, __be16 *, pkey)
WRAP3(int, ibv_get_pkey_index, struct ibv_context *, context, uint8_t, port_num,
      __be16, pkey)

/* The context's pointers become ours as soon as it is there, also when
 * another library or libibverbs itself has opened it. */
EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	__typeof__(&ibv_open_device) next = NEXT(ibv_open_device);
	struct call call = { .word = { WIDE(device) } };
	struct ibv_context *context;

	call_begin(&call, &VERB(ibv_open_device), FROM_HERE);
	context = next ? next(device) : NULL;
	if (context && probe_mode != MODE_OFF)
		context_wrap(context);
	call_end(&call, WIDE(context));
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	__typeof__(&ibv_close_device) next = NEXT(ibv_close_device);
	struct call call = { .word = { WIDE(context) } };
	int ret;

	call_begin(&call, &VERB(ibv_close_device), FROM_HERE);
	if (context)
		context_unwrap(context);
	ret = next ? next(context) : 0;
	if (ret && probe_mode != MODE_OFF)
		context_wrap(context);
	call_end(&call, WIDE(ret));
	return ret;
}

/* Protection domains and memory. */
WRAP1(struct ibv_pd *, ibv_alloc_pd, struct ibv_context *, context)
WRAP1(int, ibv_dealloc_pd, struct ibv_pd *, pd)
WRAP4(struct ibv_mr *, ibv_reg_mr, struct ibv_pd *, pd, void *, addr, size_t,
      length, int, access)
WRAP5(struct ibv_mr *, ibv_reg_mr_iova, struct ibv_pd *, pd, void *, addr,
      size_t, length, uint64_t, iova, int, access)
WRAP5(struct ibv_mr *, ibv_reg_mr_iova2, struct ibv_pd *, pd, void *, addr,
      size_t, length, uint64_t, iova, unsigned int, access)
WRAP(int, ibv_rereg_mr, ibv_rereg_mr,
     (struct ibv_mr * mr, int flags, struct ibv_pd *pd, void *addr,
      size_t length, int access),
     (mr, flags, pd, addr, length, access), WIDE(mr), WIDE(flags), WIDE(pd),
     WIDE(addr), WIDE(length), WIDE(access))
WRAP1(int, ibv_dereg_mr, struct ibv_mr *, mr)

/* Completions. */
WRAP1(struct ibv_comp_channel *, ibv_create_comp_channel, struct ibv_context *,
      context)
WRAP1(int, ibv_destroy_comp_channel, struct ibv_comp_channel *, channel)
WRAP5(struct ibv_cq *, ibv_create_cq, struct ibv_context *, context, int, cqe,
      void *, cq_context, struct ibv_comp_channel *, channel, int, comp_vector)
WRAP2(int, ibv_resize_cq, struct ibv_cq *, cq, int, cqe)
WRAP_DESTROY(ibv_destroy_cq, struct ibv_cq *, cq, CQ)
WRAP3(int, ibv_get_cq_event, struct ibv_comp_channel *, channel,
      struct ibv_cq **, cq, void **, cq_context)
WRAP_VOID(ibv_ack_cq_events, (struct ibv_cq * cq, unsigned int nevents),
	  (cq, nevents), WIDE(cq), WIDE(nevents))

/* Shared receive queues. */
WRAP2(struct ibv_srq *, ibv_create_srq, struct ibv_pd *, pd,
      struct ibv_srq_init_attr *, srq_init_attr)
WRAP3(int, ibv_modify_srq, struct ibv_srq *, srq, struct ibv_srq_attr *,
      srq_attr, int, srq_attr_mask)
WRAP2(int, ibv_query_srq, struct ibv_srq *, srq, struct ibv_srq_attr *,
      srq_attr)
WRAP1(int, ibv_destroy_srq, struct ibv_srq *, srq)

/* Queue pairs. */
WRAP2(struct ibv_qp *, ibv_create_qp, struct ibv_pd *, pd,
      struct ibv_qp_init_attr *, qp_init_attr)
WRAP3(int, ibv_modify_qp, struct ibv_qp *, qp, struct ibv_qp_attr *, attr, int,
      attr_mask)
WRAP4(int, ibv_query_qp, struct ibv_qp *, qp, struct ibv_qp_attr *, attr, int,
      attr_mask, struct ibv_qp_init_attr *, init_attr)
/* A cast, no event; but now the program sees the extended QP's pointers. */
EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	__typeof__(&ibv_qp_to_qp_ex) next = NEXT(ibv_qp_to_qp_ex);
	struct ibv_qp_ex *ex = next ? next(qp) : NULL;

	if (ex && probe_mode > MODE_ENDING)
		qp_ex_wrap(ex);
	return ex;
}

/* A struct ibv_qp_ex begins with its struct ibv_qp. */
WRAP_DESTROY(ibv_destroy_qp, struct ibv_qp *, qp, QP)

/* Addresses, multicast, asynchronous events. */
WRAP2(struct ibv_ah *, ibv_create_ah, struct ibv_pd *, pd, struct ibv_ah_attr *,
      attr)
WRAP4(struct ibv_ah *, ibv_create_ah_from_wc, struct ibv_pd *, pd,
      struct ibv_wc *, wc, struct ibv_grh *, grh, uint8_t, port_num)
WRAP1(int, ibv_destroy_ah, struct ibv_ah *, ah)
WRAP3(int, ibv_attach_mcast, struct ibv_qp *, qp, const union ibv_gid *, gid,
      uint16_t, lid)
WRAP3(int, ibv_detach_mcast, struct ibv_qp *, qp, const union ibv_gid *, gid,
      uint16_t, lid)
WRAP2(int, ibv_get_async_event, struct ibv_context *, context,
      struct ibv_async_event *, event)
WRAP_VOID(ibv_ack_async_event, (struct ibv_async_event * event), (event),
	  WIDE(event))
