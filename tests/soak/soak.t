#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A short soak; `make soak` is the long one.
cd "$(dirname "$0")/../.." || exit 1
soak=${BUILD:-build}/tests/soak/soak
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
number=0

# soak MESSAGES OPTIONS
soak()
{
	number=$((number + 1))
	messages=$1
	shift
	out=$(timeout 300 "$soak" -n "$messages" -t 240 "$@" 2> "$said")
	case "$? $out" in
	"0 $messages messages, "*) echo "ok $number - $out" ;;
	*)
		echo "not ok $number - $messages messages $*"
		echo "$out" | cat - "$said" | sed 's/^/# /'
		;;
	esac
}

echo 1..2
soak 20000
# Over a single QP, which fills its windows and its areas.
soak 5001 -q 1 -s 2
