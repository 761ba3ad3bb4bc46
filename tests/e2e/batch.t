#!/bin/sh
# SPDX-License-Identifier: MIT
#
# verbstep without a terminal: the lessons and other programs as text, wrong
# command lines, programs that die or are interrupted.
set -u
verbstep=$BUILD/verbstep
hello=$BUILD/tests/programs/hello_verbs
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0

# result STATUS NAME: one line of TAP, for a status of 0 or not.
result() {
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$dir/out" "$dir/err" | tail -n 12
	fi
}

# step STATUS ARGUMENTS: runs verbstep into $dir/out and $dir/err, without a
# terminal and within a minute; true when it ends with STATUS.
step() {
	want=$1
	shift
	timeout 60 "$verbstep" "$@" >"$dir/out" 2>"$dir/err" </dev/null
	status=$?
	[ "$status" -eq "$want" ] || echo "status $status" >>"$dir/err"
	[ "$status" -eq "$want" ]
}

says() { # the output has a line that matches
	grep -Eq -- "$1" "$dir/out"
}

wrong() { # NAME PATTERN ARGUMENTS: status 2, one line that says what
	name=$1 pattern=$2
	shift 2
	step 2 "$@" && [ "$(wc -l <"$dir/err")" -eq 1 ] &&
		grep -Eq -- "$pattern" "$dir/err" && [ ! -s "$dir/out" ]
	result $? "$name"
}

# --- lessons -----------------------------------------------------------------

for lesson in "$BUILD"/lessons/[0-9][0-9]_*; do
	lesson=${lesson##*/}
	step 0 step --batch "${lesson%%_*}" &&
		says '^every created object destroyed: ([0-9]+) of \1$'
	result $? "$lesson: ends well, everything destroyed"

	# Every call has its place and its answer.
	grep -E '^[^|=-].*ibv_' "$dir/out" | grep -v '^refused: ' >"$dir/calls"
	[ -s "$dir/calls" ] &&
		! grep -Evq '^[a-z0-9_]+\.c:[0-9]+ +ibv_[a-z0-9_]+\(.*\)( |$)' \
			"$dir/calls"
	result $? "$lesson: every call has its place"

	# The steps come in the order of the chapter, with their titles.
	"$BUILD/lessons/$lesson" --list-steps | awk '{print $1}' >"$dir/all"
	sed -n 's/^== \([^:]*\): ..*/\1/p' "$dir/out" >"$dir/marks"
	[ -s "$dir/marks" ] && [ "$(grep -c '^== ' "$dir/out")" -eq \
		"$(wc -l <"$dir/marks")" ] && ! grep -Fxvq -f "$dir/all" "$dir/marks"
	result $? "$lesson: steps are those of the lesson, with titles"

	# What the lesson says itself is marked as such.
	says "^\\| $lesson: done, everything was destroyed"
	result $? "$lesson: its output is there, marked"
done

# What it says was written where it was: after the call that it is about.
step 0 step --batch 01 && awk '
	/ibv_get_device_list\(/ { called = 1 }
	/^\|/ { if (!called) bad = 1; if (called) exit bad }
	END { exit bad || !called }' "$dir/out"
result $? "output stands behind the call that it is about"

step 0 step --batch qp && cp "$dir/out" "$dir/byname" && says 'ibv_modify_qp'
result $? "a lesson by its name"

step 0 step --batch 01 --device soft0 && says 'ibv_open_device\(.*soft0'
result $? "--device reaches the lesson"

step 2 step --batch 01 --device no_such_device &&
	says '^\|.*no_such_device'
result $? "a wrong device: the lesson's word and status"

step 0 step --batch 01 -- --device soft0 && says 'done'
result $? "what follows -- are the lesson's own arguments"

# --- other programs ----------------------------------------------------------

step 0 step --batch -- "$hello" && says '^hello_verbs\.c:[0-9]+ +ibv_open_device' &&
	says 'ibv_dealloc_pd\(pd0\) = 16 EBUSY$' && says '^\| hello$' &&
	says '^refused: ibv_dealloc_pd\(pd0\) = EBUSY .*held by mr0' &&
	says '^every created object destroyed: 6 of 6$'
result $? "a program that is no lesson"

# Each verb of the source is there; nothing is made up.
grep -o 'ibv_[a-z_]*(' "$(dirname "$0")/../programs/hello_verbs.c" | sort -u |
	grep -v 'ibv_wc_status_str' >"$dir/in_source"
grep -Eo '^hello_verbs\.c:[0-9]+ +ibv_[a-z_]*\(' "$dir/out" |
	grep -o 'ibv_.*' | sort -u >"$dir/seen"
cmp -s "$dir/in_source" "$dir/seen"
result $? "every verb of its source, and no other"

step 0 run "$hello" && [ "$(cat "$dir/out")" = hello ] && [ ! -s "$dir/err" ]
result $? "run: at full speed, only its own output"
step 0 run -- "$hello" && [ "$(cat "$dir/out")" = hello ]
result $? "run --: the same"
step 3 run sh -c 'exit 3'
result $? "run: the program's own status"

step 7 step --batch -- sh -c 'echo out; echo err >&2; exit 7' &&
	says '^\| out$' && says '^\| err$' && says 'no object was created' &&
	says 'exited 7'
result $? "a program without verbs: output and status"

step 137 step --batch -- sh -c 'kill -KILL $$' && says 'killed SIGKILL'
result $? "killed: said, and the status a shell would give"

# The probe comes first, then soft0, then what was there.
LD_PRELOAD=$BUILD/libsoftverbs.so "$verbstep" step --batch -- \
	sh -c 'tr "\0" "\n" </proc/$$/environ' >"$dir/out" 2>"$dir/err" &&
	says "LD_PRELOAD=$BUILD/libverbprobe.so:$BUILD/libsoftverbs.so:$BUILD/libsoftverbs.so\$"
result $? "what was preloaded before stays, behind"

# A build folder whose path the loader's list could not hold.
mkdir "$dir/a b:c" && cp "$verbstep" "$BUILD"/lib*.so "$dir/a b:c" &&
	mkdir "$dir/a b:c/lessons" && cp "$BUILD"/lessons/01_* "$dir/a b:c/lessons"
saved=$verbstep
verbstep="$dir/a b:c/verbstep"
step 0 step --batch -- "$hello" && says '^every created object destroyed: 6'
result $? "from a folder with a blank and a colon in its name"
verbstep=$saved

# --- interrupted -------------------------------------------------------------

# The program goes with us: nothing of it is left behind.
timeout 60 "$verbstep" step --batch -- sh -c 'echo pid $$; exec sleep 1000' \
	>"$dir/out" 2>"$dir/err" &
stepper=$!
i=0
while ! says '^\| pid' && [ $i -lt 200 ]; do
	sleep 0.05
	i=$((i + 1))
done
pid=$(sed -n 's/^| pid //p' "$dir/out")
inner=$(ps -o pid= --ppid $stepper 2>/dev/null | tr -d ' ')
kill -INT ${inner:-$stepper}
wait $stepper
[ $? -eq 130 ] && [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null
result $? "interrupted: 130, and the program is ended"

"$verbstep" step --batch 06 2>"$dir/err" | head -n 1 >"$dir/out"
says 'lessons/06_lifecycle'
result $? "a reader that goes early"

# --- wrong command lines -----------------------------------------------------

wrong "unknown lesson" "'nosuch'.*05_qp" step --batch nosuch
wrong "unknown command" "'nosuch'.*step, run" nosuch
wrong "unknown option" "'--nosuch'.*--batch" --nosuch
wrong "option without its value" "--lang needs a value" --lang
wrong "unknown language" "'xx'.* en" --lang xx step --batch 05
wrong "step without anything" "needs a lesson" step
wrong "run without anything" "needs a program" run
wrong "two lessons" "'06'" step 05 06
wrong "no terminal" "verbstep step --batch 05" step 05
wrong "no terminal for the menu" "--batch"

step 1 step --batch -- /no/such/program &&
	grep -q '^verbstep: .*/no/such/program: No such file' "$dir/err"
result $? "a program that is not there"
step 127 run /no/such/program
result $? "run: a program that is not there"

step 0 --help && says '^Usage: ' && says 'step -- PROGRAM' && [ ! -s "$dir/err" ]
result $? "--help: to stdout, status 0"
step 0 --version && says '^verbstep [0-9]'
result $? "--version"

echo "1..$n"
