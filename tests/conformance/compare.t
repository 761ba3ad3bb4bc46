#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What `compare` makes of answers that were made up, and that docs/devices.md
# speaks of the rules that there are.
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}"
program=$BUILD/tests/conformance/conformance

number=0
result() # status text
{
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
		return
	fi
	echo "not ok $number - $2"
	head -n 5 "$temp/err" | sed 's/^/# /'
}

temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

"$program" --table >"$temp/table" || exit 1
rules=$(wc -l <"$temp/table")
cut -f 1,2 "$temp/table" >"$temp/soft0"

answers() # name answer: as soft0's but for one
{
	awk -F '\t' -v name="$1" -v answer="$2" '
		$1 == name { print name "\t" answer; next } { print }
	' "$temp/soft0" >"$temp/rxe"
}

compare() # options: status in $status
{
	tests/conformance/compare --program "$program" --page "$temp/page" \
		--from "soft0=${soft0:-$temp/soft0}" \
		--from "rxe-6.1=$temp/rxe" --from "rxe-6.12=$temp/rxe" \
		--from "siw-6.1=$temp/soft0" "$@" 2>"$temp/err"
	status=$?
}

says() { grep -qF -e "$1" "$temp/err"; }

answers none ''
compare --write
[ $status -eq 0 ] && grep -q "$rules of them" "$temp/page" &&
	! grep -q '<br>' "$temp/page"
result $? 'devices that agree: a page without a difference'

compare
result $status 'the page of this run is up to date'

answers wc.grh.rc GRH
compare
[ $status -eq 1 ] && says 'not in' && says wc.grh.rc
result $? 'a page that is not of this run fails'

compare --write
[ $status -eq 0 ] &&
	grep '`wc.grh.rc`' "$temp/page" | grep -q '| no GRH | GRH | GRH | = |.*\*\*rxe:\*\*'
result $? 'a difference with words is a row with them'

answers destroy_cq.idle EIO
compare --write
[ $status -eq 1 ] && says destroy_cq.idle && says EIO
result $? 'a difference without words fails'

answers destroy_cq.idle 'not here: CQ (EIO)'
compare --write
[ $status -eq 0 ] && grep -q 'rxe 6.1: CQ (EIO), 1 rule$' "$temp/page"
result $? 'what a device lacks is no difference'

answers none ''
sed 's/^destroy_cq.idle\t.*/destroy_cq.idle\tEIO/' "$temp/soft0" >"$temp/wrong"
soft0=$temp/wrong compare --write
[ $status -eq 1 ] && says 'destroy_cq.idle: soft0 answers EIO and must answer ok'
result $? 'soft0 against its own column'

grep -v '^destroy_cq.idle' "$temp/soft0" >"$temp/rxe"
compare --write
[ $status -eq 1 ] && says 'rxe-6.1: no answer to destroy_cq.idle'
result $? 'a rule without an answer fails'

compare --from "mlx=$temp/rxe"
[ $status -eq 1 ] && says 'rxe-6.12' && [ "$(wc -l <"$temp/err")" -eq 1 ]
result $? 'an unknown device is told in one line'

# The program's own options.
for wrong in '--device none0' '--case none.*' '--limit 0' '--jobs 0' --none; do
	# shellcheck disable=SC2086 # two words
	"$program" $wrong >"$temp/out" 2>"$temp/err"
	[ $? -eq 2 ] && [ ! -s "$temp/out" ]
	result $? "status 2: $wrong"
done

# The page that is kept.
grep -q "$rules of them" docs/devices.md
result $? "docs/devices.md is of $rules rules; if not: make devices"
grep -o '`[a-z_]*\.[^` ]*`' docs/devices.md | tr -d '`' | sort -u >"$temp/named"
cut -f 1 "$temp/table" | sort -u | comm -13 - "$temp/named" >"$temp/err"
[ ! -s "$temp/err" ]
result $? 'docs/devices.md names no rule that is not there'

echo "1..$number"
