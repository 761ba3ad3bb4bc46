#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Programs that nobody here wrote, unmodified, between two processes on soft0:
# Debian's ibverbs-utils and perftest. A table of what ran stands at the end.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
. tests/e2e/two.sh
soft=$(cd "$BUILD" && pwd)/libsoftverbs.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: > "$work/table"

have() { command -v "$1" > /dev/null 2>&1; }

skip()
{
	number=$((number + 1))
	echo "ok $number # SKIP $1"
}

# once PROGRAM ARGS: server and client, each with a limit. Their status.
once()
{
	port=$(free_port)
	LD_PRELOAD=$soft timeout 120 "$@" -p "$port" > "$work/server" 2>&1 &
	server=$!
	wait_for_port "$port" "$server" 200
	LD_PRELOAD=$soft timeout 120 "$@" -p "$port" 127.0.0.1 \
		> "$work/client" 2>&1
	status=$?
	wait "$server" || status=1
	return $status
}

# both PROGRAM ARGS: passes if it says no error and has its line of results.
both()
{
	have "$1" || { skip "$1 is not installed"; return; }
	tries='1 2 3'
	case " $* " in *' -a '*) tries=1 ;; esac
	for _ in $tries; do
		once "$@" -d soft0
		status=$?
		# perftest measures the processor's clock, at each size anew,
		# and gives up when the machine is busy: that isn't about the
		# device.
		busy=$(grep -l 'Correlation coefficient' "$work/client" \
			"$work/server") || break
	done
	if [ "$status" -ne 0 ] && [ -n "$busy" ]; then
		skip "$*: the machine is too busy for perftest's clock"
		return
	fi
	figure=$(awk '/^ *[0-9]/ { line = $0 } /usec\/iter/ { line = $0 }
		END { gsub(/[ \t]+/, " ", line); print line }' "$work/client")
	[ -n "$figure" ] || status=1
	printf '%-40s %s\n' "$*" "$figure" >> "$work/table"
	result "$status" "$*"
}

# What a program cannot do (older ones have no -N) it says with its usage.
optional()
{
	have "$1" || { skip "$1 is not installed"; return; }
	program=$1
	for option; do :; done
	if "$program" -h 2>&1 | grep -q -e "^ *$option[, ]"; then
		both "$@" -g 0
	else
		skip "$program has no $option"
	fi
}

alone() # what it prints, program and arguments
{
	want=$1
	shift
	have "$1" || { skip "$1 is not installed"; return; }
	LD_PRELOAD=$soft timeout 20 "$@" > "$work/client" 2>&1 &&
		grep -q "$want" "$work/client"
	result $? "$*"
}

rm -f "$work/server"
alone '^ *soft0' ibv_devices
alone 'GID\[ *0\]' ibv_devinfo -v -d soft0

# It runs until it is ended; that it has started it says.
if have ibv_asyncwatch; then
	LD_PRELOAD=$soft timeout -s INT 2 ibv_asyncwatch -d soft0 \
		> "$work/client" 2>&1
	[ $? -eq 124 ] && grep -q 'async event FD' "$work/client"
	result $? 'ibv_asyncwatch starts'
else
	skip 'ibv_asyncwatch is not installed'
fi

for type in rc uc ud srq; do
	both ibv_${type}_pingpong -g 0
	both ibv_${type}_pingpong -g 0 -e
	both ibv_${type}_pingpong -g 0 -c
done
optional ibv_rc_pingpong -N
optional ibv_rc_pingpong -t
optional ibv_srq_pingpong -N

# -F: no words about the processor's clock.
few='-F -n 50'
for test in send write read atomic; do
	for what in lat bw; do
		for type in RC UC UD; do
			case $test-$type in
			read-U? | atomic-U? | write-UD) continue ;;
			esac
			both ib_${test}_$what -c $type $few
		done
	done
done
for test in send write read; do
	for what in lat bw; do
		both ib_${test}_$what -a -F -n 5
	done
	both ib_${test}_bw -q 16 -F -n 50
done
both ib_atomic_bw -q 16 -F -n 50
both ib_send_bw -c UC -q 16 -F -n 50
both ib_send_lat -c RC -e -F -n 50

sed 's/^/# /' "$work/table"
echo "1..$number"
