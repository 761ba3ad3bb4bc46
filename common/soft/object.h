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

/* MRs by key, QPs by number (mr.c, qp.c); under soft_lock. */
void soft_mrs_forget(void);
void soft_qps_forget(void);

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

/* The one device, and what kind of port it has (device.c, query.c). */
extern struct ibv_device soft_device;
__be64 soft_guid(void);
int soft_query_port(struct ibv_context *context, uint8_t port_num,
		    struct ibv_port_attr *attr, size_t size);
int soft_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);

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
