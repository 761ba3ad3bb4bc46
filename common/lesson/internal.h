/* SPDX-License-Identifier: 0BSD */
/*
 * What the helper's own sources know of one run: its options, whether it is
 * quiet, and how it went so far. Lessons include lesson.h, never this.
 *
 * Global, because a lesson is one run of one program: step() and report()
 * take no handle, so that a lesson's lines stay about verbs.
 */
#ifndef LESSON_INTERNAL_H
#define LESSON_INTERNAL_H

#include <stdatomic.h>
#include "lesson.h"

struct lesson_run {
	const char *name; /* "05_qp" */
	const char *about;
	const char *device; /* --device, or NULL */
	int port;           /* --port, or 0 */
	int gid_index;      /* --gid-index, or -1 */
	const char *from;   /* --from; NULL once its step was reached */
	const char *lang;   /* --lang, "en" */
	bool automatic;     /* --auto, or no terminal: never waits */
	bool list_steps;
	bool server;           /* --server */
	const char *host;      /* --connect, or NULL */
	const char *peer_port; /* of either */
	/* Settled by lesson_open(). */
	uint8_t port_in_use;
	uint8_t gid_index_in_use;
	/* How it went: report() runs in any thread. */
	atomic_int failures;
	bool misused; /* an option named what is not there: status 2 */
};

extern struct lesson_run lesson_run;

/* The words are optional: a lesson copied elsewhere is built without them. */
struct words_section;

/* The section of a step; NULL without words, or where they have none. */
const struct words_section *lesson_section(const char *id);

/* Prints a section's body, indented; nothing without words. */
void lesson_print_section(const struct words_section *section);

/* The chapter's title and introduction, when nobody steps. */
void lesson_print_opening(void);

/* Is there a chapter in this language? Without words, any will do. */
bool lesson_has_lang(const char *lang);
void lesson_print_langs(void); /* to stderr, in one line */

bool lesson_has_stepper(void); /* somebody filled verbs_mark() */

/* --list-steps, and the check of --from. */
void lesson_list_steps(void);
bool lesson_has_step(const char *id);
bool lesson_has_step_in_two(void); /* one of the run in two terminals */
bool lesson_is_step_in_two(const char *id);
void lesson_print_step_ids(void); /* to stderr, in one line */

/*
 * One line to stderr: "no device 'x'; there are: a, b". `list` may be NULL.
 * Notes that the run ends with status 2.
 */
void lesson_no_such_device(struct ibv_device **list);

/*
 * How well a GID serves to connect over Ethernet, more is better: RoCE v2
 * before v1; of v2, IPv4-mapped before routed IPv6 before link-local.
 */
int lesson_gid_rank(const struct ibv_gid_entry *entry);

/* The index of the best entry of a port, the first of equals; 0: none. */
uint8_t lesson_best_gid(const struct ibv_gid_entry *entries, size_t count,
			uint8_t port);

/* What ends tell each other (exchange.c); false: it makes no sense. */
#define LESSON_WIRE_SIZE 40
void lesson_pack(const struct endpoint *end, void *bytes);
bool lesson_unpack(const void *bytes, struct endpoint *end);

/* The greetings, on a socket that is connected. 0, or an errno, reported. */
int lesson_greet(int fd);

#endif
