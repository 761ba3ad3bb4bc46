/* SPDX-License-Identifier: MIT */
/*
 * How a row of fields is written: a field of a structure, and an argument,
 * which is a field of the words of a call. Only for table.c and lists.c.
 */
#ifndef PROBE_FIELDS_H
#define PROBE_FIELDS_H

#include "probe.h"

#define MEMBER(type, member, as, ...)                                          \
	{                                                                      \
		.name = #member, .kind = as, .offset = offsetof(type, member), \
		.size = sizeof(((type *)NULL)->member), ##__VA_ARGS__          \
	}
#define WORD(index, text, as, ...)                                        \
	{                                                                 \
		.name = text, .kind = as, .offset = (index)*8, .size = 8, \
		##__VA_ARGS__                                             \
	}
#define OBJECT(index, text, type) \
	WORD(index, text, KIND_OBJECT, .object = RULES_##type)
#define STRUCT(index, text, rows) WORD(index, text, KIND_STRUCT, .fields = rows)
#define CUSTOM(index, text, by)   WORD(index, text, KIND_CUSTOM, .decode = by)
/* The wrappers widen each argument to 64 bits; an int keeps its sign. */
#define SIGNED(index, text)       WORD(index, text, KIND_SIGNED)
#define UNSIGNED(index, text)     WORD(index, text, KIND_UNSIGNED)
#define POINTER(index, text)      WORD(index, text, KIND_POINTER)
#define FLAGS(index, text, by)    WORD(index, text, KIND_FLAGS, .name_of = by)
#define END                      \
	{                        \
		.kind = KIND_END \
	}

#endif
