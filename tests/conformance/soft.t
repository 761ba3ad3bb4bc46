#!/bin/sh
# SPDX-License-Identifier: MIT
#
# soft0 against its own column of the table: a line of TAP for each rule.
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}"
program=$BUILD/tests/conformance/conformance

temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

"$program" --table >"$temp/table" || exit 1
# Mostly waiting for what must not come: several at a time.
timeout 120 "$program" --device soft0 --jobs 6 >"$temp/answers" ||
	echo "# the program ended with status $?"

awk -F '\t' '
	NR == FNR { answer[$1] = $2; answered[$1] = 1; next }
	seen[$1]++ { print "not ok " ++n " - " $1 ": the name is there twice"; next }
	!answered[$1] { print "not ok " ++n " - " $1 ": no answer"; next }
	answer[$1] == $2 { print "ok " ++n " - " $1; next }
	{
		print "not ok " ++n " - " $1
		print "# " $3
		print "# is: " answer[$1] ", must be: " $2
	}
	END { print "1.." n }
' "$temp/answers" "$temp/table"
