#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Lesson 05 by keys alone, from the first step to the end, back and forward
# and out again; in several terminals.
set -u
. "$(dirname "$0")/term.sh"

whole_lesson() { # NAME VARIABLE=VALUE...
	name=$1
	shift
	term_start 80 24 "$BUILD/verbstep 05" "$@"
	wait_for '05_qp.*step 1/.*stopped'
	result $? "$name: it opens at the first step"
	[ "$(alternate)" = 1 ] || [ "${TERM_HAS_ONE_SCREEN:-}" ]
	result $? "$name: on a screen of its own"

	# From the step's mark to its first call, and over that.
	keys Space Space && wait_for 'last 2 ibv_get_device_list' &&
		keys Space Space Space Space && wait_for 'last 6 ibv_'
	result $? "$name: Space does one call"

	step_to_end && grep -q 'exited 0' "$dir/screen" &&
		grep -q 'every object was destroyed' "$dir/screen"
	result $? "$name: m goes from step to step, to the end"

	keys '[' '[' '[' '[' '[' '[' '[' '[' '[' '[' && wait_for 'past, 10 back'
	result $? "$name: [ goes back ten calls"
	keys ']' ']' ']' && wait_for 'past, 7 back' && keys '}' &&
		wait_for 'exited 0'
	result $? "$name: and forward again"
	keys q && left 0
	result $? "$name: q leaves, the terminal is as before"
}

whole_lesson UTF-8
whole_lesson 'LC_ALL=C' LC_ALL=C
whole_lesson NO_COLOR NO_COLOR=1
TERM_HAS_ONE_SCREEN=1 whole_lesson vt100 TERM=vt100

# The end, the next lesson, and what is remembered of it.
term_start 80 24 "$BUILD/verbstep 01"
wait_for 'step 1/' && keys c && wait_for 'The end: exited 0' &&
	grep -q 'goes on with 02_pd' "$dir/screen" && keys '>' &&
	wait_for '^ 02_pd .*stopped'
result $? "an end is summed up, and > goes on"
keys Escape && wait_for '01_context .*  done' && keys q && left 0 &&
	term_start 80 24 "$BUILD/verbstep" && wait_for '> 01_context .*  done'
result $? "the menu knows what is done, another day too"
keys x && wait_for '> 01_context .*opening it *$' && keys q && left 0 &&
	! grep -q 01_context "$dir/.local/state/verbstep/progress"
result $? "x forgets it"

# What a PD that is in use answers: - is right, + would not be.
term_start 80 24 "$BUILD/verbstep 02"
wait_for 'step 0/.*stopped' && to_step dealloc-busy && keys Space &&
	wait_for 'next .*ibv_dealloc_pd' && keys - &&
	wait_for 'right, 1 of 1  refused: EBUSY'
result $? "who guesses a refusal is told that it was right"
to_step three-pds && keys Space && wait_for 'next .*ibv_alloc_pd' && keys - &&
	wait_for 'wrong, 1 of 2  ok'
result $? "and a wrong guess that it was wrong"

# Only ASCII where the locale has no more.
term_start 80 24 "$BUILD/verbstep 05" LC_ALL=C
wait_for 'step 1/' && ! LC_ALL=C grep -q '[^ -~]' "$dir/screen"
result $? "LC_ALL=C: nothing but ASCII"
term_start 80 24 "$BUILD/verbstep --ascii 05"
wait_for 'step 1/' && ! LC_ALL=C grep -q '[^ -~]' "$dir/screen"
result $? "--ascii: nothing but ASCII"

echo "1..$n"
