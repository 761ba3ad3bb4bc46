/* SPDX-License-Identifier: MIT */
/*
 * Source places, from the debug information by elfutils' libdw.
 *
 * A return address lies in the program's own line, in an inline verb of
 * verbs.h that was inlined into it (then the line is where it was inlined),
 * or, at -O0, in an inline verb that became a function of the program (then
 * the line is one frame up). Finding a place takes up to a millisecond, so
 * each address is looked up once and kept.
 */
#include "probe.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define BUCKETS 1024
#define DEEP    64     /* functions within each other */
#define WIDE    100000 /* entries beside each other */

struct entry {
	struct place place;
	struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *bucket[BUCKETS];
static Dwfl *dwfl;
static bool ended;

/* What a place is made from; the strings belong to libdw. */
struct found {
	const char *file, *dir, *func;
	int line;
	bool header;
	char name[256]; /* "program!function", where that is all there is */
};

/* Headers whose inline functions are calls that the program makes. */
static bool is_header(const char *file)
{
	static const char *const header[] = { "infiniband/verbs.h",
					      "infiniband/verbs_api.h",
					      "rdma/rdma_verbs.h" };
	size_t length = file ? strlen(file) : 0;

	for (size_t i = 0; i < sizeof(header) / sizeof(*header); i++) {
		size_t tail = strlen(header[i]);

		if (length >= tail && !strcmp(file + length - tail, header[i]))
			return true;
	}
	return false;
}

/* --- reading the debug information, under the lock ---------------------- */

static bool open_modules(void)
{
	/* No dwfl_standard_find_debuginfo: it may ask the network. */
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_build_id_find_debuginfo,
	};

	if (!dwfl)
		dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		return false;
	dwfl_report_begin(dwfl);
	if (dwfl_linux_proc_report(dwfl, getpid()) != 0)
		return false;
	return dwfl_report_end(dwfl, NULL, NULL) == 0;
}

static Dwfl_Module *module_of(Dwarf_Addr pc)
{
	Dwfl_Module *module = dwfl ? dwfl_addrmodule(dwfl, pc) : NULL;

	/* The first time, or a library that was loaded since. */
	if (!module && open_modules())
		module = dwfl_addrmodule(dwfl, pc);
	return module;
}

/* The CU of an address. clang writes no .debug_aranges: then look at each. */
static Dwarf_Die *unit_of(Dwfl_Module *module, Dwarf_Addr pc, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(module, pc, bias);

	if (unit)
		return unit;
	while ((unit = dwfl_module_nextcu(module, unit, bias)))
		if (dwarf_haspc(unit, pc - *bias) == 1)
			return unit;
	return NULL;
}

static const char *text_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static int number_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	dwarf_formudata(dwarf_attr(die, name, &attribute), &value);
	return (int)value;
}

/* The file that an attribute of a DIE means, by the table of the DIE's unit. */
static const char *file_attribute(Dwarf_Die *die, unsigned int name)
{
	int index = number_attribute(die, name);
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t count;

	if (!dwarf_diecu(die, &unit, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit, &files, &count) != 0 ||
	    (size_t)index >= count)
		return NULL;
	return dwarf_filesrc(files, index, NULL, NULL);
}

/* Where a function was written. dwarf_decl_file() asserts, in some releases,
 * what -gsplit-dwarf does not give. */
static const char *written_in(const Dwarf_Die *function)
{
	Dwarf_Die at = *function, origin;
	Dwarf_Attribute attribute;
	int left = DEEP; /* what is damaged may lead in a circle */

	while (!dwarf_hasattr(&at, DW_AT_decl_file)) {
		if (!left--)
			return NULL;
		if (!dwarf_attr(&at, DW_AT_abstract_origin, &attribute) &&
		    !dwarf_attr(&at, DW_AT_specification, &attribute))
			return NULL;
		if (!dwarf_formref_die(&attribute, &origin))
			return NULL;
		at = origin;
	}
	return file_attribute(&at, DW_AT_decl_file);
}

/* An inlined verb: the place is where it was called. */
static void climb(Dwarf_Die *inlined, struct found *found)
{
	found->line = number_attribute(inlined, DW_AT_call_line);
	found->file = file_attribute(inlined, DW_AT_call_file);
}

/*
 * The functions, inlined or not, around an address, outermost first, as they
 * lie in the tree: dwarf_getscopes() would go over to where an inlined one
 * was written. Returns how many are in `chain`.
 */
static int functions_at(Dwarf_Die *die, Dwarf_Addr pc, Dwarf_Die *chain,
			int depth)
{
	Dwarf_Die child;
	int found = depth, more, left = WIDE;

	if (depth == DEEP || dwarf_child(die, &child) != 0)
		return depth;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_namespace) {
			found = functions_at(&child, pc, chain, depth);
		} else if ((tag == DW_TAG_subprogram ||
			    tag == DW_TAG_inlined_subroutine ||
			    tag == DW_TAG_lexical_block) &&
			   dwarf_haspc(&child, pc) == 1) {
			if (tag != DW_TAG_lexical_block)
				chain[depth++] = child;
			return functions_at(&child, pc, chain, depth);
		}
		more = dwarf_siblingof(&child, &child);
	} while (found == depth && more == 0 && --left);
	return found;
}

/* From the innermost function outwards, to the first that is no inline verb. */
static void climb_scopes(Dwarf_Die *unit, Dwarf_Addr pc, struct found *found)
{
	Dwarf_Die chain[DEEP];
	int i = functions_at(unit, pc, chain, 0);

	while (i--) {
		found->func = dwarf_diename(&chain[i]);
		if (!is_header(written_in(&chain[i])))
			break;
		if (dwarf_tag(&chain[i]) == DW_TAG_subprogram)
			found->header = true;
		else
			climb(&chain[i], found);
	}
}

/* With -gsplit-dwarf the functions are in a file of their own. */
static Dwarf_Die whole_unit(const Dwarf_Die *unit)
{
	Dwarf_Die rest = { .addr = NULL };
	uint8_t type = 0;

	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, &rest, NULL, NULL,
			  NULL) == 0 &&
	    type == DW_UT_skeleton && rest.addr)
		return rest;
	return *unit;
}

/* The file as the compiler was given it, and the folder it stands in. */
static void as_compiled(Dwarf_Die *whole, Dwarf_Die *unit, struct found *found)
{
	const char *dir = text_attribute(unit, DW_AT_comp_dir);
	const char *name = dwarf_diename(whole);
	size_t length = dir ? strlen(dir) : 0;

	if (!found->file)
		return;
	if (name && name[0] == '/' && !strcmp(name, found->file))
		return;
	if (found->file[0] != '/') {
		found->dir = dir;
	} else if (length && !strncmp(found->file, dir, length) &&
		   found->file[length] == '/') {
		found->file += length + 1;
		found->dir = dir;
	}
	while (found->dir && !strncmp(found->file, "./", 2))
		found->file += 2;
}

static bool from_debug(Dwfl_Module *module, Dwarf_Addr pc, struct found *found)
{
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit = unit_of(module, pc, &bias), whole;
	Dwarf_Line *line;

	if (!unit)
		return false;
	line = dwarf_getsrc_die(unit, pc - bias);
	if (!line || dwarf_lineno(line, &found->line) != 0)
		return false;
	found->file = dwarf_linesrc(line, NULL, NULL);
	whole = whole_unit(unit);
	climb_scopes(&whole, pc - bias, found);
	/* An inline verb whose caller is not to be found: -gsplit-dwarf, and
	 * its file is gone. */
	if (is_header(found->file) && !found->header)
		return false;
	as_compiled(&whole, unit, found);
	return found->file != NULL;
}

/* Without debug information: "program!function". */
static void from_symbols(Dwfl_Module *module, Dwarf_Addr pc,
			 struct found *found)
{
	const char *symbol = module ? dwfl_module_addrname(module, pc) : NULL;
	const char *object = "?", *slash;
	char offset[32] = "?";
	Dl_info info;

	if (dladdr((void *)pc, &info) && info.dli_fname) {
		object = info.dli_fname;
		snprintf(offset, sizeof(offset), "0x%lx",
			 (unsigned long)(pc - (uintptr_t)info.dli_fbase));
		if (!symbol)
			symbol = info.dli_sname;
	}
	slash = strrchr(object, '/');
	snprintf(found->name, sizeof(found->name), "%s!%s",
		 slash ? slash + 1 : object, symbol ? symbol : offset);
	found->file = NULL;
	found->func = found->name;
	if (symbol && strspn(symbol, "_") <= 3)
		found->header =
			!strncmp(symbol + strspn(symbol, "_"), "ibv_", 4);
}

static char *as_json(const struct found *found)
{
	char buffer[4096];
	struct text text = { .at = buffer, .size = sizeof(buffer) };

	text_add(&text, "{");
	if (found->file) {
		text_key(&text, "file");
		text_quote(&text, found->file);
		if (found->dir) {
			text_key(&text, "dir");
			text_quote(&text, found->dir);
		}
		text_key(&text, "line");
		text_add(&text, "%d", found->line);
	}
	if (found->func) {
		text_key(&text, "func");
		text_quote(&text, found->func);
	}
	text_add(&text, "}");
	return strdup(text.full ? "{}" : buffer);
}

/* --- places, and the way up ---------------------------------------------- */

static const struct place nowhere = { .at = (char *)"{}" };

static const struct place *look_up(const void *address)
{
	size_t index = ((uintptr_t)address >> 2) % BUCKETS;
	Dwarf_Addr pc = (uintptr_t)address - 1; /* inside the call itself */
	struct found found = { .file = NULL };
	struct entry *entry;
	Dwfl_Module *module;

	for (entry = bucket[index]; entry; entry = entry->next)
		if (entry->place.address == address)
			return &entry->place;
	entry = ended ? NULL : calloc(1, sizeof(*entry));
	if (!entry)
		return &nowhere;
	module = module_of(pc);
	if (!module || !from_debug(module, pc, &found))
		from_symbols(module, pc, &found);
	entry->place.address = address;
	entry->place.header = found.header;
	entry->place.at = as_json(&found);
	if (!entry->place.at)
		entry->place.at = nowhere.at;
	entry->next = bucket[index];
	bucket[index] = entry;
	return &entry->place;
}

const struct place *place_find(const void *address)
{
	const struct place *place;

	pthread_mutex_lock(&lock);
	place = look_up(address);
	pthread_mutex_unlock(&lock);
	return place;
}

struct climbing {
	struct from from;
	bool found; /* the frame of the inline verb was passed */
	bool by_frame_pointer;
	const struct place *place;
};

static _Unwind_Reason_Code frame_up(struct _Unwind_Context *context, void *arg)
{
	const void *ip = (const void *)_Unwind_GetIP(context);
	struct climbing *up = arg;
	const struct place *place;

	if (!up->found) {
		up->found = ip == up->from.address;
		return _URC_NO_REASON;
	}
	place = place_find(ip);
	if (place->header)
		return _URC_NO_REASON;
	/* The frame below ends where its saved frame pointer and its return
	 * address lie, if it has them. */
	up->by_frame_pointer = _Unwind_GetCFA(context) ==
			       (uintptr_t)up->from.frame + 2 * sizeof(void *);
	up->place = place;
	return _URC_NORMAL_STOP;
}

const struct place *place_of(struct from from)
{
	const struct place *place = place_find(from.address);
	struct climbing up = { .from = from, .place = place };

	if (!place->header)
		return place;
	if (place->frame_pointer)
		return place_find(from.frame[1]);
	_Unwind_Backtrace(frame_up, &up);
	if (up.by_frame_pointer && up.place->address == from.frame[1])
		((struct place *)place)->frame_pointer = true;
	return up.place;
}

/* The CU of the program that has this name. */
void place_dir(const char *file, char *dir, size_t size)
{
	static char last_file[256], last_dir[1024]; /* a search takes long */
	Dwarf_Addr bias;
	Dwarf_Die *unit = NULL;
	const char *name, *folder;

	pthread_mutex_lock(&lock);
	if (!strcmp(file, last_file))
		goto out;
	snprintf(last_file, sizeof(last_file), "%s", file);
	last_dir[0] = '\0';
	if (ended || file[0] == '/' || (!dwfl && !open_modules()))
		goto out;
	while ((unit = dwfl_nextcu(dwfl, unit, &bias))) {
		name = dwarf_diename(unit);
		if (!name || strcmp(name, file))
			continue;
		folder = text_attribute(unit, DW_AT_comp_dir);
		snprintf(last_dir, sizeof(last_dir), "%s",
			 folder ? folder : "");
		break;
	}
out:
	snprintf(dir, size, "%s", last_dir);
	pthread_mutex_unlock(&lock);
}

void place_end(void)
{
	pthread_mutex_lock(&lock);
	ended = true;
	if (dwfl)
		dwfl_end(dwfl);
	dwfl = NULL;
	pthread_mutex_unlock(&lock);
}
