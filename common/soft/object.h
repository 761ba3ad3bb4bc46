/* SPDX-License-Identifier: MIT */
/*
 * What soft0's verbs share: exporting, reaching the real libibverbs, and the
 * registry of what is ours.
 *
 * An exported verb starts in one way:
 *
 *	if (soft_foreign(pd))
 *		return SOFT_REAL(ibv_dealloc_pd)(pd);
 *	soft_enter();
 *	object = soft_find(pd, SOFT_PD, "ibv_dealloc_pd");
 *
 * so that objects of real devices pass through untouched, ours are found,
 * and a pointer that is neither (destroyed before, never created) is named
 * in a line on stderr and refused, where other devices crash.
 *
 * The registry has a lock of its own, the innermost of all: these functions
 * may be called with or without soft_lock, unless they say otherwise.
 */
#ifndef SOFT_OBJECT_H
#define SOFT_OBJECT_H

#include "common/soft/soft.h"

/* A verb's unversioned definition satisfies every versioned reference. */
#define SOFT_EXPORT __attribute__((visibility("default")))

/*
 * libibverbs' own function behind ours, or behind another library's that is
 * preloaded after us; NULL: there is none.
 */
void *soft_real(const char *name);

#define SOFT_REAL(function)                                                    \
	({                                                                     \
		static __typeof__(function) *real_;                            \
		__typeof__(function) *found_ =                                 \
			__atomic_load_n(&real_, __ATOMIC_RELAXED);             \
		if (!found_) {                                                 \
			found_ = (__typeof__(function) *)soft_real(#function); \
			__atomic_store_n(&real_, found_, __ATOMIC_RELAXED);    \
		}                                                              \
		found_;                                                        \
	})

/* One line on stderr: "soft0: ...". */
void soft_diagnose(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* "PD", "completion channel" */
const char *soft_type_name(enum soft_type type);

/* A real device was opened: what is not ours may be real from now on. */
void soft_real_opened(void);

/*
 * Is `object` (any verbs struct: the first member is its context; or a
 * context) of a real device? Doubtful pointers are looked into only after a
 * real device was opened; before that all that is not ours is nobody's.
 */
bool soft_foreign(const void *object);

/*
 * The live object of `type` that the program holds as `public`; or NULL with
 * a line on stderr and errno set: ENOENT for a pointer that is no live object
 * or whose handle was garbled, EINVAL for NULL or an object of another type.
 */
void *soft_find(const void *public, enum soft_type type, const char *verb);
/* The same, in silence and for dying objects too: for acknowledging. */
void *soft_find_quietly(const void *public, enum soft_type type);

/*
 * Enters an object, whose `public` struct is its first member, under the
 * next handle of its type; 0, ENOMEM, or EINVAL when the device has as many
 * as its limits allow. Under soft_lock.
 */
int soft_object_add(struct soft_object *object, enum soft_type type,
		    void *public, struct soft_context *context);
/*
 * From now on only soft_find_quietly() finds it, and its context does not
 * list it. Under soft_lock.
 */
void soft_object_dying(struct soft_object *object);
/* Takes it out for good. Under soft_lock. */
void soft_object_remove(struct soft_object *object);
/* How many live objects of a type there are, of all contexts. */
unsigned int soft_object_count(enum soft_type type);
/* Around fork(); in the child nothing is ours any more. */
void soft_objects_lock(void);
void soft_objects_unlock(void);
void soft_objects_forget(void);

/* The open contexts, for fork() (fork.c); under soft_lock. */
void soft_context_opened(struct soft_context *soft);
void soft_context_closed(struct soft_context *soft);

/*
 * Keys of MRs and MWs (key.c), under soft_lock: adding gives an object an
 * index that is free and a key of it, 0 or ENOMEM; finding looks at the
 * index only.
 */
int soft_key_add(struct soft_object *object, uint32_t *key);
void soft_key_remove(uint32_t key);
struct soft_object *soft_key_find(uint32_t key);

/* MRs and MWs by key, QPs by number; under soft_lock, in a forked child. */
void soft_keys_forget(void);
void soft_qps_forget(void);
void soft_mcast_forget(void);
void soft_dms_forget(void);
/* Out of all its groups; under soft_lock (mcast.c). */
void soft_mcast_forget_qp(struct soft_qp *qp);
/* Says so on stderr and gives EINVAL, in errno too (fork.c). */
int soft_refuse_inherited(const char *verb);
static inline bool soft_is_inherited(struct ibv_context *context)
{
	return ((struct soft_context *)verbs_get_ctx(context))->inherited;
}

/*
 * What ibv_close_device() does with objects left behind: they stop working
 * and give back all but the struct that the program holds, as the kernel
 * takes back what libibverbs leaks. Under soft_lock.
 */
void soft_pd_abandon(struct soft_object *object);
void soft_mr_abandon(struct soft_object *object);
void soft_channel_abandon(struct soft_object *object);
void soft_cq_abandon(struct soft_object *object);
void soft_srq_abandon(struct soft_object *object);
void soft_ah_abandon(struct soft_object *object);
void soft_qp_abandon(struct soft_object *object);
void soft_mw_abandon(struct soft_object *object);
void soft_td_abandon(struct soft_object *object);
void soft_dm_abandon(struct soft_object *object);

/* The one device, and what kind of port it has (device.c, query.c). */
extern struct ibv_device soft_device;
__be64 soft_guid(void);
int soft_query_port(struct ibv_context *context, uint8_t port_num,
		    struct ibv_port_attr *attr, size_t size);
int soft_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);

/* What a context's pointers lead to; each file's head says more. */
struct ibv_mw *soft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int soft_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind);
int soft_dealloc_mw(struct ibv_mw *mw);
struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *init);
int soft_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values);
struct ibv_qp *soft_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *init);
struct ibv_srq *soft_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *init);
struct ibv_td *soft_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *init);
int soft_dealloc_td(struct ibv_td *td);
struct ibv_pd *
soft_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *init);
struct ibv_dm *soft_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int soft_free_dm(struct ibv_dm *dm);
struct ibv_mr *soft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access);

/* Checks of registration that others share (mr.c); 0 or an errno. */
int soft_mr_check_access(unsigned int access);
int soft_mr_get_memory(uintptr_t addr, size_t length, unsigned int access,
		       size_t *pages);

/* Gives an MR that has its memory a key and its place; under soft_lock. */
int soft_mr_enter(struct soft_mr *mr, struct soft_pd *pd);

/*
 * A CQ with all that ibv_create_cq() checks, entered (cq.c); or an errno.
 * `domain` is the PD whose allocators it uses, or NULL.
 */
int soft_cq_create(struct ibv_context *context, int cqe, void *cq_context,
		   struct ibv_comp_channel *channel, int comp_vector,
		   struct soft_pd *domain, struct soft_cq **made);
/* A QP the same way (qp.c); writes the caps back into `init`. */
int soft_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init,
		   bool no_self_mcast, struct soft_qp **made);
/* Gives a QP its ibv_wr_*, 0 or ENOMEM; and takes them, if it has (wr.c). */
int soft_wr_init(struct soft_qp *qp, uint64_t send_ops_flags);
void soft_wr_fini(struct soft_qp *qp);

/* An address as create_ah and modify_qp check it: 0 or EINVAL (ah.c). */
int soft_check_address(const struct ibv_ah_attr *attr);
/* ibv_create_ah() for a PD of ours, in the name of `verb` (ah.c). */
struct ibv_ah *soft_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr,
			      const char *verb);

/* Is a capability of capabilities(7) in effect? (limits.c) */
bool soft_capable(int capability);
/* Access flags that MRs and QPs of this device know. */
#define SOFT_ACCESS_REMOTE                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* FLUSH_GLOBAL and FLUSH_PERSISTENT are missing in older headers. */
#define SOFT_ACCESS_FLUSH_GLOBAL     (1u << 8)
#define SOFT_ACCESS_FLUSH_PERSISTENT (1u << 9)

/* 2^k - 1 entries, at least `n`: how rings are sized. */
uint32_t soft_ring_entries(uint32_t n);

#endif
