#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A short soak; `make soak` is the long one.
cd "$(dirname "$0")/../.." || exit 1
soak=${BUILD:-build}/tests/soak/soak

echo 1..2
out=$(timeout 300 "$soak" -n 20000 -t 240 2>&1)
status=$?
case "$status $out" in
"0 20000 messages, "*) echo "ok 1 - $out" ;;
*)
	echo 'not ok 1 - 20000 messages between two processes, every byte right'
	echo "$out" | sed 's/^/# /'
	;;
esac

# Few QPs fill their windows and areas; a message that is all of the area.
out=$(timeout 300 "$soak" -n 5001 -q 1 -s 2 -t 240 2>&1)
status=$?
case "$status $out" in
"0 5001 messages, "*) echo "ok 2 - $out" ;;
*)
	echo 'not ok 2 - 5001 messages over one QP'
	echo "$out" | sed 's/^/# /'
	;;
esac
