#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every lesson, whole, on soft0: that it runs, that its steps and its chapter
# agree, that wrong options get one line, and that valgrind has no complaint.
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}"

number=0
result() # status text
{
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
	fi
}

temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

run() # program and arguments: status in $status, output in $temp/out, /err
{
	timeout 120 "$@" </dev/null >"$temp/out" 2>"$temp/err"
	status=$?
}

show_failure()
{
	echo "# status $status"
	tail -n 5 "$temp/out" | sed 's/^/# out: /'
	head -n 20 "$temp/err" | sed 's/^/# err: /'
}

# Status 2, nothing but one line, and that line has all the words given.
one_line() # text words...
{
	text=$1
	shift
	bad=0
	[ "$status" -eq 2 ] || bad=1
	[ "$(wc -l <"$temp/err")" -eq 1 ] || bad=1
	[ -s "$temp/out" ] && bad=1
	for word; do
		grep -qF -e "$word" "$temp/err" || bad=1
	done
	[ $bad -eq 0 ] || show_failure
	result $bad "$text"
}

# The ids of a chapter, in order: those of headings outside of code.
chapter_ids() # file
{
	awk '/^```/ { code = !code } !code && /^#+ .*\{#.*\}/ {
		sub(/.*\{#/, ""); sub(/\}.*/, ""); print }' "$1"
}

runs_to_its_end()
{
	run "$BUILD/lessons/$lesson" --auto --device soft0
	bad=0
	[ "$status" -eq 0 ] || bad=1
	[ -s "$temp/err" ] && bad=1
	[ "$(tail -n 1 "$temp/out")" = \
		"$lesson: done, everything was destroyed" ] || bad=1
	[ $bad -eq 0 ] || show_failure
	result $bad "$lesson runs and says that all was destroyed"
	cp "$temp/out" "$temp/ran"
	# The words came too, not only the ids: each step has a title.
	! grep -qE '^-- [a-z0-9-]+$' "$temp/out"
	result $? "$lesson has words for each step that it runs"
}

agrees_with_chapter()
{
	run "$BUILD/lessons/$lesson" --list-steps
	cut -d' ' -f1 "$temp/out" >"$temp/steps"
	for chapter in docs/*/"$lesson.md"; do
		if [ "$chapter" = "docs/en/$lesson.md" ]; then
			chapter_ids "$chapter" >"$temp/ids"
			cp "$temp/steps" "$temp/expected"
		else
			chapter_ids "$chapter" | sort >"$temp/ids"
			sort "$temp/steps" >"$temp/expected"
		fi
		diff "$temp/ids" "$temp/expected" >"$temp/diff"
		bad=$?
		[ -s "$temp/ids" ] || bad=1
		sed -e 's/^< /# no such step: /' \
			-e 's/^> /# no such section: /' "$temp/diff" |
			grep '^#'
		result $bad "$chapter and the steps of $lesson agree"
	done
	# Steps come in the order in which the chapter tells them. Those of a
	# run in two terminals are run by two_terminals.t.
	grep -v '^two-' "$temp/steps" >"$temp/expected"
	sed -n 's/^-- \([a-z0-9-]*\)\(: .*\)*$/\1/p' "$temp/ran" |
		cmp -s - "$temp/expected"
	bad=$?
	[ $bad -eq 0 ] || echo "# ran:" \
		$(sed -n 's/^-- \([a-z0-9-]*\)\(: .*\)*$/\1/p' "$temp/ran")
	result $bad "$lesson runs its steps in the chapter's order"
}

starts_from_a_step()
{
	last=$(tail -n 1 "$temp/steps")
	run "$BUILD/lessons/$lesson" --auto --device soft0 --from "$last"
	bad=0
	[ "$status" -eq 0 ] || bad=1
	[ "$(grep -c '^-- ' "$temp/out")" -eq 1 ] || bad=1
	grep -q "^-- $last: " "$temp/out" || bad=1
	[ $bad -eq 0 ] || show_failure
	result $bad "$lesson --from $last is quiet up to it"
}

refuses_bad_input()
{
	run "$BUILD/lessons/$lesson" --from nowhere
	one_line "$lesson: an unknown step" nowhere "$(head -n 1 "$temp/steps")"
	run "$BUILD/lessons/$lesson" --device nothing9
	one_line "$lesson: an unknown device" nothing9 soft0
}

leaks_nothing()
{
	if ! command -v valgrind >/dev/null; then
		echo "# no valgrind"
		result 0 "$lesson under valgrind # SKIP no valgrind"
		return
	fi
	if nm -D "$BUILD/libsoftverbs.so" | grep -q __asan_; then
		result 0 "$lesson under valgrind # SKIP built with ASan"
		return
	fi
	# Children end by _exit(), where libnl's lists are "possibly lost".
	run valgrind -q --leak-check=full --error-exitcode=99 \
		--show-leak-kinds=definite \
		--errors-for-leak-kinds=definite \
		"$BUILD/lessons/$lesson" --auto --device soft0
	grep -q '^==.*definitely lost' "$temp/err" && status=99
	grep -q '^==.*Invalid' "$temp/err" && status=99
	[ "$status" -eq 0 ] || show_failure
	result "$status" "$lesson under valgrind"
}

for source in lessons/[0-9]*.c; do
	lesson=$(basename "$source" .c)
	runs_to_its_end
	agrees_with_chapter
	starts_from_a_step
	refuses_bad_input
	leaks_nothing
done

first=$(ls lessons/[0-9]*.c | head -n 1)
first=$BUILD/lessons/$(basename "$first" .c)
run "$first" --frobnicate
one_line "an unknown option" --frobnicate --device --list-steps
run "$first" --device
one_line "an option without its value" --device NAME
run "$first" surplus
one_line "an argument that is no option" surplus
run "$first" --lang xx
one_line "a language without words" xx en
for port in 0 256 x 1x ''; do
	run "$first" --port "$port"
	one_line "--port '$port'" --port "'$port'"
done

run "$first" --help
bad=$status
for option in device port gid-index auto list-steps from lang help version; do
	grep -q -e "--$option" "$temp/out" || bad=1
done
[ -s "$temp/err" ] && bad=1
result "$bad" "--help names every option"
run "$first" --version
[ "$status" -eq 0 ] && grep -qE '^[0-9a-z_]+ [0-9.]+$' "$temp/out"
result $? "--version"

# These are found on the device, when it is open.
run "$first" --auto --device soft0 --port 200
[ "$status" -eq 2 ] && grep -q 'no port 200; soft0 has' "$temp/err"
result $? "a port that the device does not have"
run "$first" --auto --device soft0 --gid-index 200
[ "$status" -eq 2 ] && grep -q 'no GID index 200; port 1' "$temp/err"
result $? "a GID index that the port does not have"

# A device is also found by its GUID, however that is spelled.
run "$first" --auto --device soft0
guid=$(sed -n 's/^  soft0 .*guid \([0-9a-f]\{16\}\),.*/\1/p' "$temp/out")
colons=$(echo "$guid" | sed 's/..../&:/g; s/:$//')
upper=$(echo "$guid" | tr a-f A-F)
for spelling in "$guid" "$colons" "0x$upper"; do
	run "$first" --auto --device "$spelling"
	[ "$status" -eq 0 ] && grep -q 'chosen: soft0' "$temp/out"
	result $? "device by GUID $spelling"
done

# In a terminal it waits at each step; q, or no more input, runs to the end.
prompts() # input: how often the first lesson asked, in $asked
{
	printf "$1" | timeout 60 script -qec "$first --device soft0" \
		"$temp/log" >"$temp/out" 2>"$temp/err"
	asked=$(grep -o 'Enter: next step' "$temp/out" | wc -l)
	grep -q 'everything was destroyed' "$temp/out" || asked=none
}
run "$first" --list-steps
steps=$(wc -l <"$temp/out")
prompts "$(printf '%*s' "$steps" '' | sed 's/ /\\n/g')"
[ "$asked" = "$steps" ]
result $? "in a terminal, Enter at each of $steps steps (asked $asked)"
prompts '\n\nq\n'
[ "$asked" = 3 ]
result $? "q at the third step runs to the end (asked $asked)"
prompts '\n\004'
[ "$asked" = 2 ]
result $? "the end of the input runs to the end (asked $asked)"

# Under a stepper, which is whoever fills verbs_mark(): the marks, no words.
cat >"$temp/hook.c" <<'END'
#include <stdio.h>
void verbs_mark(const char *id, const char *file, int line)
{
	fprintf(stderr, "%s %s:%d\n", id, file, line);
}
END
${CC:-cc} -shared -fPIC -o "$temp/hook.so" "$temp/hook.c"
run "$first" --list-steps
cut -d' ' -f1 "$temp/out" >"$temp/steps"
run env LD_PRELOAD="$temp/hook.so" "$first" --device soft0
cut -d' ' -f1 "$temp/err" | cmp -s - "$temp/steps"
bad=$?
grep -q '^-- ' "$temp/out" && bad=1
[ "$status" -eq 0 ] || bad=1
[ $bad -eq 0 ] || show_failure
result $bad "under a stepper each mark is handed over, and nothing printed"
bad=0
while read -r id place; do
	sed -n "${place##*:}p" "${place%:*}" | grep -qF "step(\"$id\")" || bad=1
done <"$temp/err"
result $bad "marks name their source lines"

# A lesson copied elsewhere: the helper and libibverbs alone. Without words it
# prints the ids; without a device it says so.
for source in lessons/[0-9]*.c; do
	lesson=$(basename "$source" .c)
	helpers='common/lesson/*.c'
	grep -q 'common/manager' "$source" &&
		helpers="$helpers common/manager/*.c"
	${CC:-cc} -Wall -Wextra -Werror -o "$temp/alone" "$source" \
		$helpers -libverbs 2>"$temp/err"
	status=$?
	[ $status -eq 0 ] || show_failure
	result $status "$lesson builds alone"
	[ $status -eq 0 ] || continue
	run "$temp/alone" --list-steps
	sort "$temp/out" >"$temp/alone.ids"
	"$BUILD/lessons/$lesson" --list-steps | cut -d' ' -f1 | sort |
		cmp -s - "$temp/alone.ids"
	result $? "$lesson alone lists the ids of its steps"
done

echo "1..$number"
