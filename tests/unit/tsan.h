/* SPDX-License-Identifier: MIT */
/*
 * What the thread sanitizer cannot follow: threads that a forked child
 * starts, and counting threads, of which it has one itself.
 */
#ifndef TSAN_H
#define TSAN_H

#if defined(__has_feature) && !defined(__SANITIZE_THREAD__)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

/* Not by skip(): in cmocka 1.1.5's TAP that is a "not ok". */
#ifdef __SANITIZE_THREAD__
#define skip_under_tsan(why)                                               \
	do {                                                               \
		print_message("# skipped under the thread sanitizer: " why \
			      "\n");                                       \
		return;                                                    \
	} while (0)
#else
#define skip_under_tsan(why) (void)0
#endif

#endif
