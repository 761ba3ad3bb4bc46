#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every way out gives the terminal back and takes the program along; every
# size is survived; what a program does does not reach the screen.
set -u
. "$(dirname "$0")/term.sh"

# A program that says its process id and then does nothing more.
waits="sh -c 'echo pid \$\$; exec sleep 1000'"

is_gone() { # PID: within some seconds
	tries=0
	while kill -0 "$1" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || return 1
		sleep 0.05
	done
}

child_pid() {
	keys o && wait_for 'pid [0-9]+' &&
		child=$(sed -n 's/^.*pid \([0-9][0-9]*\).*$/\1/p' "$dir/screen")
	[ -n "$child" ] && kill -0 "$child"
}

# --- signals -----------------------------------------------------------------

for signal in INT TERM HUP QUIT; do
	case $signal in
	HUP) status=129 ;;
	INT) status=130 ;;
	QUIT) status=131 ;;
	TERM) status=143 ;;
	esac
	term_start 80 24 "$BUILD/verbstep step -- $waits"
	wait_for 'running' && child_pid && kill -$signal "$(stepper)" &&
		left $status && is_gone "$child"
	result $? "SIG$signal: terminal given back, program ended, $status"
done

term_start 80 24 "$BUILD/verbstep 05"
wait_for 'step 1/' && keys C-c && left 130
result $? "Ctrl-C: 130"

term_start 80 24 "$BUILD/verbstep 05"
wait_for 'step 1/' && kill -SEGV "$(stepper)" && wait_for '^status ' &&
	[ "$(alternate)" = 0 ]
result $? "a crash of its own gives the terminal back"

# The terminal itself goes: nothing stays behind.
term_start 80 24 "$BUILD/verbstep step -- $waits"
wait_for 'running' && child_pid && stepper=$(stepper) &&
	tmux -L "$server" kill-server && is_gone "$stepper" &&
	is_gone "$child"
result $? "the terminal is closed: stepper and program end"

term_start 80 24 "$BUILD/verbstep 05"
wait_for 'step 1/' && keys C-z && wait_for 'Stopped|suspended' &&
	[ "$(alternate)" = 0 ] && typed fg && keys Enter &&
	wait_for 'step 1/' && keys Space Space && wait_for 'last 2 ' && keys q &&
	wait_for 'prompt> *$' && typed 'echo "sta""tus $?"' && keys Enter &&
	left 0
result $? "Ctrl-Z and fg"

# --- sizes -------------------------------------------------------------------

term_start 80 24 "$BUILD/verbstep 06"
wait_for 'step 1/'
resize 20 5 && wait_for 'too small' && keys Space && resize 1 1 &&
	keys Space && resize 200 60 && wait_for 'step 1/.*stopped' &&
	keys m && wait_for 'step 2/' && resize 40 10 && wait_for 'step 2/' &&
	resize 80 24 && wait_for 'objects' && keys q
wait_for 'y/n|^status 0' && keys y && left 0
result $? "20x5, 1x1, 200x60, 40x10 and back"

# --- quitting ----------------------------------------------------------------

term_start 80 24 "$BUILD/verbstep 05"
wait_for 'step 1/' && keys m && wait_for 'step 2/.*stopped' && keys q &&
	wait_for 'alive' && keys n && wait_for 'Space call' && keys q &&
	wait_for 'alive' && keys y && left 0
result $? "q asks while objects live"

term_start 80 24 "$BUILD/verbstep"
wait_for '05_qp' && keys Escape && wait_for 'q quits' && keys j j Enter &&
	wait_for '03_mr.*stopped' && keys Escape && wait_for '> 03_mr' &&
	keys 1 && wait_for '01_context.*step 1/.*stopped' && keys Space Space &&
	wait_for 'last 2 ' && keys r && wait_for 'no call yet' &&
	keys Escape && wait_for '> 01_context' && keys q && left 0
result $? "the menu, a lesson, back, another, restart, out"

# --- programs that misbehave ---------------------------------------------------

term_start 80 24 "$BUILD/verbstep step -- sh -c 'kill -KILL \$\$'"
wait_for 'killed SIGKILL' && keys '?' && wait_for 'Keys' && keys Escape q &&
	left 0
result $? "a program that is killed: said, and the keys work"

term_start 80 24 "$BUILD/verbstep step -- sh -c 'while :; do echo flood; done'"
wait_for 'running [1-9]' && keys o && wait_for '^ *flood' && keys '?' &&
	wait_for 'Keys' && keys Escape q && left 0
result $? "a program that floods its output"

term_start 80 24 "$BUILD/verbstep step -- sh -c 'echo scribble >/dev/tty; echo done'"
wait_for 'exited' && ! grep -q scribble "$dir/screen" && keys q && left 0
result $? "a program cannot write to our terminal"

term_start 80 24 "$BUILD/verbstep step -- sh -c 'sleep 1000 & exit 5'"
wait_for 'exited 5' && keys q && left 0
result $? "a fork that stays behind does not hide the end"

term_start 80 24 "$BUILD/verbstep step -- $waits"
wait_for 'running [1-9][0-9]* s' && keys Space && wait_for 'p pauses it' &&
	keys r && wait_for 'running' && keys q && left 0
result $? "a program that hangs: for how long, and r and q work"

term_start 80 24 "$BUILD/verbstep 05" TERM=dumb
wait_for '^status 2' && grep -q 'for text: verbstep step' "$dir/screen"
result $? "TERM=dumb: a word about --batch"

echo "1..$n"
