/* SPDX-License-Identifier: MIT */
/*
 * The registry of live objects: which pointers are ours, and what they are.
 */
#include "common/soft/object.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/soft/map.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_map objects; /* by the pointer that the program holds */
static unsigned int counts[SOFT_TYPES];
static uint32_t handles[SOFT_TYPES]; /* the last given */
static bool real_opened;

/* Where the public struct keeps its handle; channels and contexts do not. */
#define NO_HANDLE ((size_t)-1)
static const struct type {
	const char *name;
	size_t handle;
} types[SOFT_TYPES] = {
	[SOFT_PD] = { "PD", offsetof(struct ibv_pd, handle) },
	[SOFT_MR] = { "MR", offsetof(struct ibv_mr, handle) },
	[SOFT_MW] = { "MW", offsetof(struct ibv_mw, handle) },
	[SOFT_CHANNEL] = { "completion channel", NO_HANDLE },
	[SOFT_CQ] = { "CQ", offsetof(struct ibv_cq, handle) },
	[SOFT_SRQ] = { "SRQ", offsetof(struct ibv_srq, handle) },
	[SOFT_AH] = { "AH", offsetof(struct ibv_ah, handle) },
	[SOFT_QP] = { "QP", offsetof(struct ibv_qp, handle) },
	[SOFT_TD] = { "thread domain", NO_HANDLE },
	[SOFT_DM] = { "device memory", offsetof(struct ibv_dm, handle) },
	[SOFT_CONTEXT] = { "context", NO_HANDLE },
};

const char *soft_type_name(enum soft_type type)
{
	return types[type].name;
}

void soft_diagnose(const char *format, ...)
{
	char line[512] = "soft0: ";
	size_t prefix = strlen(line);
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line + prefix, sizeof(line) - prefix, format,
			   arguments);
	va_end(arguments);
	if (length < 0)
		return;
	length = strlen(line);
	if ((size_t)length == sizeof(line) - 1)
		length--;
	line[length++] = '\n';
	/* One write, so that lines of threads do not mix. */
	if (write(STDERR_FILENO, line, length) < 0)
		return; /* nobody is left to be told */
}

static uint32_t *handle_in(const struct soft_object *object)
{
	size_t offset = types[object->type].handle;

	if (offset == NO_HANDLE)
		return NULL;
	return (uint32_t *)((char *)object->public + offset);
}

static struct soft_object *look_up(const void *public)
{
	struct soft_object *object;

	pthread_mutex_lock(&lock);
	object = soft_map_get(&objects, (uintptr_t) public);
	pthread_mutex_unlock(&lock);
	return object;
}

void soft_real_opened(void)
{
	__atomic_store_n(&real_opened, true, __ATOMIC_RELAXED);
}

bool soft_is_ours(const struct ibv_context *context)
{
	const struct soft_object *object = look_up(context);

	return object && object->type == SOFT_CONTEXT;
}

struct soft_context *soft_context_of(const struct ibv_context *context)
{
	const struct soft_object *object = look_up(context);

	return object && object->type == SOFT_CONTEXT ? object->context : NULL;
}

bool soft_foreign(const void *object)
{
	if (!object || !__atomic_load_n(&real_opened, __ATOMIC_RELAXED) ||
	    look_up(object))
		return false;
	/* A context begins with its device, all others with their context. */
	return *(void *const *)object != &soft_device &&
	       !soft_is_ours(*(struct ibv_context *const *)object);
}

void *soft_find_quietly(const void *public, enum soft_type type)
{
	const struct soft_object *object = look_up(public);

	return object && object->type == type ? object->public : NULL;
}

void *soft_find(const void *public, enum soft_type type, const char *verb)
{
	const struct soft_object *object = look_up(public);
	const char *name = types[type].name;
	const uint32_t *handle;

	if (!public) {
		soft_diagnose("%s: the %s is NULL", verb, name);
		errno = EINVAL;
		return NULL;
	}
	if (!object || object->dying) {
		soft_diagnose("%s: %p is no live %s: destroyed before, or "
			      "never created here",
			      verb, public, name);
		errno = ENOENT;
		return NULL;
	}
	if (object->type != type) {
		soft_diagnose("%s: %p is a %s, not a %s", verb, public,
			      types[object->type].name, name);
		errno = EINVAL;
		return NULL;
	}
	handle = handle_in(object);
	if (handle && *handle != object->handle) {
		soft_diagnose("%s: the handle of %s %p is %u, but was created "
			      "as %u",
			      verb, name, public, *handle, object->handle);
		errno = ENOENT;
		return NULL;
	}
	return object->public;
}

static unsigned int limit_of(enum soft_type type)
{
	const struct soft_device_limits *limits = soft_limits();

	switch (type) {
	case SOFT_PD:
		return limits->max_pd;
	case SOFT_MR:
		return limits->max_mr;
	case SOFT_CQ:
		return limits->max_cq;
	case SOFT_SRQ:
		return limits->max_srq;
	case SOFT_AH:
		return limits->max_ah;
	case SOFT_QP:
		return limits->max_qp;
	case SOFT_MW:
		return limits->max_mw;
	default:
		return UINT32_MAX;
	}
}

int soft_object_add(struct soft_object *object, enum soft_type type,
		    void *public, struct soft_context *context)
{
	struct soft_object **list = &context->live[type];
	int err = 0;

	*object = (struct soft_object){
		.type = type,
		.public = public,
		.context = context,
	};
	pthread_mutex_lock(&lock);
	if (counts[type] >= limit_of(type))
		err = EINVAL;
	else
		err = soft_map_set(&objects, (uintptr_t) public, object);
	if (!err) {
		counts[type]++;
		object->handle = ++handles[type];
	}
	pthread_mutex_unlock(&lock);
	if (err)
		return err;
	if (handle_in(object))
		*handle_in(object) = object->handle;
	object->next = *list;
	object->prev = list;
	if (*list)
		(*list)->prev = &object->next;
	*list = object;
	return 0;
}

static void unlist(struct soft_object *object)
{
	*object->prev = object->next;
	if (object->next)
		object->next->prev = object->prev;
}

void soft_object_dying(struct soft_object *object)
{
	unlist(object);
	pthread_mutex_lock(&lock);
	object->dying = true;
	pthread_mutex_unlock(&lock);
}

void soft_object_remove(struct soft_object *object)
{
	if (!object->dying)
		unlist(object);
	pthread_mutex_lock(&lock);
	soft_map_remove(&objects, (uintptr_t)object->public);
	counts[object->type]--;
	pthread_mutex_unlock(&lock);
}

unsigned int soft_object_count(enum soft_type type)
{
	unsigned int count;

	pthread_mutex_lock(&lock);
	count = counts[type];
	pthread_mutex_unlock(&lock);
	return count;
}

void soft_objects_lock(void)
{
	pthread_mutex_lock(&lock);
}

void soft_objects_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void soft_objects_forget(void)
{
	soft_map_clear(&objects);
	memset(counts, 0, sizeof(counts));
	pthread_mutex_unlock(&lock);
}
