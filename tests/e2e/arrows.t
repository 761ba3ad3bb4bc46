#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The house keeps its arrows: what each room may include, and whose functions
# it may call (docs/hacking.md has the table for people).
cd "$(dirname "$0")/../.." || exit 1

number=0
result() # ok|not text
{
	number=$((number + 1))
	if [ "$1" = ok ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
	fi
}

# Project headers that the files of a room include, resolved from the top.
includes()
{
	for file in "$@"; do
		sed -n 's/^[ \t]*#[ \t]*include "\(.*\)"/\1/p' "$file" |
			while read -r name; do
			case $name in
			../* | [!/]*)
				if [ -e "$(dirname "$file")/$name" ]; then
					realpath --relative-to=. \
						"$(dirname "$file")/$name"
				else
					echo "$name"
				fi ;;
			esac
		done
	done | sort -u
}

allow() # room pattern-of-allowed-headers
{
	room=$1 allowed=$2
	files=$(ls "$room"/*.c "$room"/*.h 2>/dev/null)
	if [ -z "$files" ]; then
		result not "$room has files"
		return
	fi
	bad=$(includes $files | grep -Ev "^($allowed)$")
	[ -z "$bad" ] || echo "# $room includes:" $bad
	[ -z "$bad" ] && result ok "$room includes what it may" ||
		result not "$room includes what it may"
}

# Functions of the verbs, as an object file names those it calls.
refuse() # room regex-of-symbols text
{
	room=$1 symbols=$2 text=$3 bad=
	for object in "$BUILD"/obj/"$room"/*.o; do
		[ -e "$object" ] || continue
		name=$(nm -u "$object" | awk '{print $2}' |
			grep -E "^($symbols)" | sort -u | tr '\n' ' ')
		[ -z "$name" ] || bad="$bad ${object##*/}: $name"
	done
	[ -z "$bad" ] || echo "# $room:$bad"
	[ -z "$bad" ] && result ok "$room $text" || result not "$room $text"
}

echo 1..18
allow lessons 'common/lesson/lesson\.h|common/manager/manager\.h'
allow common/lesson 'common/lesson/.*|common/words/words\.h|common/rules/rules\.h'
allow common/manager 'common/manager/.*'
allow common/soft 'common/soft/.*|common/rules/rules\.h'
allow common/probe 'common/probe/.*|common/trace/format\.h|common/rules/rules\.h'
allow common/trace 'common/trace/.*|common/rules/rules\.h'
allow common/words 'common/words/.*'
allow common/rules 'common/rules/.*'
allow tui 'tui/.*|common/trace/.*|common/words/words\.h|common/rules/rules\.h'
refuse tui 'ibv_|verbs_' 'calls no verb'
refuse common/trace 'ibv_|verbs_|add_wch|wadd|wget|initscr|newterm' \
	'calls no verb and no curses'
refuse common/rules 'ibv_' 'calls no verb'
refuse common/manager 'say$|report|lesson_|step' 'stands alone'
refuse common/soft 'lesson_|step$|event_parse|graph_' 'knows no lesson'
refuse lessons 'soft_|graph_|event_|verbs_mark' 'does not know who watches'

only=$(grep -lE '#[ \t]*include <(n?curses|ncursesw/)' -r tui common lessons |
	sort | tr '\n' ' ')
echo "# curses: $only"
case $only in
'tui/terminal.c ') result ok 'curses is in tui/terminal.c alone' ;;
*) result not 'curses is in tui/terminal.c alone' ;;
esac

# Frames under tests/golden are data.
missing=$(git ls-files '*.c' '*.h' ':!tests/golden' | xargs grep -L 'SPDX-License-Identifier')
[ -z "$missing" ] || echo "# no SPDX line:" $missing
[ -z "$missing" ] && result ok 'every source names its licence' ||
	result not 'every source names its licence'

wide=$(expand -t8 lessons/*.c | awk 'length > 76' | head -3)
[ -z "$wide" ] || echo "# wide: $wide"
[ -z "$wide" ] && result ok 'lessons are at most 76 columns wide' ||
	result not 'lessons are at most 76 columns wide'
