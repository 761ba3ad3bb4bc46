/* SPDX-License-Identifier: MIT */
/* Values and structures as JSON members, driven by tables of fields. */
#include "probe.h"

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void key(struct decode *d, const char *name)
{
	char full[96];

	if (!d->prefix) {
		text_key(d->out, name);
		return;
	}
	snprintf(full, sizeof(full), "%s%s", d->prefix, name);
	text_key(d->out, full);
}

/* A number of 1, 2, 4 or 8 bytes, extended by its sign if it has one. */
static uint64_t load(const void *at, size_t size, bool with_sign)
{
	uint64_t value = 0;
	int shift = 64 - 8 * (int)size;

	switch (size) {
	case 1:
		value = *(const uint8_t *)at;
		break;
	case 2:
		value = *(const uint16_t *)at;
		break;
	case 4:
		value = *(const uint32_t *)at;
		break;
	case 8:
		value = *(const uint64_t *)at;
		break;
	}
	if (with_sign && shift)
		value = (uint64_t)((int64_t)(value << shift) >> shift);
	return value;
}

static void add_unsigned(struct text *out, uint64_t value)
{
	if (value > INT64_MAX)
		text_add(out, "\"0x%" PRIx64 "\"", value);
	else
		text_add(out, "%" PRIu64, value);
}

void decode_number(struct decode *d, const char *name, uint64_t value)
{
	key(d, name);
	add_unsigned(d->out, value);
}

static void add_pointer(struct text *out, uint64_t value)
{
	if (value)
		text_add(out, "\"0x%" PRIx64 "\"", value);
	else
		text_add(out, "null");
}

static void add_enum(struct text *out, const struct field *field,
		     uint64_t value)
{
	const char *name = field->name_of((int)value);

	if (name)
		text_quote(out, name);
	else
		text_add(out, "%d", (int)value);
}

/* "A|B", with the bits that have no name as one number: "A|0x300". */
static void add_flags(struct text *out, const struct field *field,
		      uint64_t value)
{
	const char *bar = "";
	uint64_t rest = value;

	if (!value) {
		text_add(out, "\"0\"");
		return;
	}
	text_add(out, "\"");
	for (int bit = 0; bit < 31; bit++) {
		const char *name = NULL;

		if (value >> bit & 1)
			name = field->name_of(1 << bit);
		if (!name)
			continue;
		text_add(out, "%s%s", bar, name);
		bar = "|";
		rest &= ~(1ull << bit);
	}
	if (rest)
		text_add(out, "%s0x%" PRIx64, bar, rest);
	text_add(out, "\"");
}

static void add_gid(struct text *out, const void *at)
{
	char gid[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, at, gid, sizeof(gid));
	text_quote(out, gid);
}

static void add_guid(struct text *out, uint64_t raw)
{
	uint64_t guid = be64toh(raw);

	text_add(out, "\"%04x:%04x:%04x:%04x\"", (int)(guid >> 48) & 0xffff,
		 (int)(guid >> 32) & 0xffff, (int)(guid >> 16) & 0xffff,
		 (int)guid & 0xffff);
}

static void add_text(struct text *out, const char *at, size_t size)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%.*s", (int)size, at);
	text_quote(out, copy);
}

static void add_value(struct text *out, const struct field *f, const void *at)
{
	uint64_t value = f->size <= 8 ? load(at, f->size, false) : 0;
	const struct ibv_device *device;

	switch (f->kind) {
	case KIND_SIGNED:
		value = load(at, f->size, true);
		text_add(out, "%" PRId64, (int64_t)value);
		break;
	case KIND_UNSIGNED:
		add_unsigned(out, value);
		break;
	case KIND_BIG_ENDIAN:
		value = f->size == 2 ? ntohs((uint16_t)value)
				     : ntohl((uint32_t)value);
		text_add(out, "%" PRIu64, value);
		break;
	case KIND_OBJECT:
		if (value)
			text_add(out, "\"%s%lu\"",
				 rules_objects[f->object].prefix,
				 name_of(f->object, (void *)value));
		else
			text_add(out, "null");
		break;
	case KIND_POINTER:
	case KIND_ADDRESS:
		add_pointer(out, value);
		break;
	case KIND_ENUM:
		add_enum(out, f, value);
		break;
	case KIND_FLAGS:
		add_flags(out, f, value);
		break;
	case KIND_TEXT:
		add_text(out, at, f->size);
		break;
	case KIND_GID:
		add_gid(out, at);
		break;
	case KIND_GUID:
		add_guid(out, value);
		break;
	case KIND_DEVICE:
		device = (const struct ibv_device *)value;
		if (device)
			add_text(out, device->name, sizeof(device->name));
		else
			text_add(out, "null");
		break;
	default:
		text_add(out, "null");
	}
}

static void add_member(struct decode *d, const struct field *field,
		       const void *where)
{
	if (field->kind == KIND_CUSTOM) {
		field->decode(d, field, where);
	} else if (field->kind != KIND_STRUCT) {
		key(d, field->name);
		add_value(d->out, field, where);
	} else if (*(void *const *)where) {
		decode_fields(d, field->fields, *(void *const *)where);
	} else {
		key(d, field->name);
		text_add(d->out, "null");
	}
}

void decode_field(struct decode *d, const struct field *field, const void *at)
{
	size_t before = d->out->used;

	if (field->bit && !(d->mask & field->bit))
		return;
	add_member(d, field, (const char *)at + field->offset);
	if (!d->out->full)
		return;
	/* Half a member is none. */
	d->out->used = before;
	d->out->at[before] = '\0';
	d->out->full = false;
}

void decode_fields(struct decode *d, const struct field *fields, const void *at)
{
	for (; fields->kind != KIND_END; fields++)
		decode_field(d, fields, at);
}
