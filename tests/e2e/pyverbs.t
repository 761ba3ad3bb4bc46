#!/bin/sh
# SPDX-License-Identifier: MIT
#
# rdma-core's own tests on soft0: none fails, and no fewer pass than did.
#
# `kept` never falls. Where a change makes more of them pass, raise it to the
# number that this test prints, and write docs/soft0-pyverbs.md anew (its
# head says how).
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
kept=108

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Debian's packages are for Debian's Python, not for one further up the PATH.
python=/usr/bin/python3
[ -x $python ] || python=python3
# An interpreter leaks on purpose.
ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0:detect_leaks=0"
export ASAN_OPTIONS

timeout 300 $python tests/e2e/pyverbs_run.py "$BUILD/libsoftverbs.so" \
	"$work/summary" > "$work/out" 2>&1
status=$?
if [ $status -eq 77 ]; then
	echo "1..0 # SKIP $(head -1 "$work/out")"
	exit 0
fi

echo 1..3
if [ $status -ne 0 ] || [ ! -s "$work/summary" ]; then
	echo "not ok 1 - they run to the end (status $status)"
	tail -20 "$work/out" | sed 's/^/# /'
	exit 1
fi
echo 'ok 1 - they run to the end'
if grep -q '"failed": \[\]' "$work/summary"; then
	echo 'ok 2 - none fails'
else
	echo 'not ok 2 - none fails'
	sed -n '/^\(ERROR\|FAIL\):/,/^$/p' "$work/out" | sed 's/^/# /'
fi
passed=$(sed -n 's/.*"passed": \([0-9]*\).*/\1/p' "$work/summary")
[ "${passed:-0}" -ge $kept ] || printf 'not '
echo "ok 3 - $passed pass, and $kept is the least"
