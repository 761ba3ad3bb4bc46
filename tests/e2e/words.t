#!/bin/sh
# SPDX-License-Identifier: MIT
#
# embed, the program that turns chapters into C: what it takes for a section,
# and which chapters it refuses.
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
mkdir -p "$temp/docs/en" "$temp/docs/zh"

cat >"$temp/docs/en/07_some.md" <<'END'
# 07 some: A title

Hello "you" \ ??/ end.

## Made {#make-it}

```sh
# no heading {#none}
```
Last.

## Aside
END
printf '# 07 一些：标题\n\n## 创建 {#make-it}\n\n文字。\n' \
	>"$temp/docs/zh/07_some.md"
echo 'not a chapter' >"$temp/docs/en/events.md"

cat >"$temp/print.c" <<'END'
#include <stdio.h>
#include "common/words/words.h"
int main(void)
{
	for (int i = 0; i < words_sections_count; i++)
		printf("%s|%s|%s|%s|%s\n", words_sections[i].lang,
		       words_sections[i].lesson, words_sections[i].id,
		       words_sections[i].title, words_sections[i].markdown);
}
END

cat >"$temp/expected" <<'END'
en|07_some||07 some: A title|Hello "you" \ ??/ end.

en|07_some|make-it|Made|```sh
# no heading {#none}
```
Last.

en|07_some||Aside|
zh|07_some||07 一些：标题|
zh|07_some|make-it|创建|文字。

END

"$BUILD/embed" "$temp"/docs/*/*.md >"$temp/chapters.c" 2>"$temp/err"
result $? "chapters are taken, other pages passed over"
${CC:-cc} -Wall -Wextra -Werror -std=gnu11 -I. -o "$temp/print" \
	"$temp/print.c" "$temp/chapters.c" 2>"$temp/err"
status=$?
sed 's/^/# /' "$temp/err"
result $status "what comes out is C without a warning"
"$temp/print" | diff -u "$temp/expected" - | sed 's/^/# /' >"$temp/diff"
cat "$temp/diff"
[ ! -s "$temp/diff" ]
result $? "sections are what the chapters say"

"$BUILD/embed" >"$temp/chapters.c" &&
	${CC:-cc} -I. -o "$temp/print" "$temp/print.c" "$temp/chapters.c" &&
	[ -z "$("$temp/print")" ]
result $? "no chapters at all are no sections"

refused() # text, chapter, words of the message
{
	printf "$2" >"$temp/docs/en/08_bad.md"
	"$BUILD/embed" "$temp/docs/en/08_bad.md" >/dev/null 2>"$temp/err"
	[ $? -eq 1 ] && [ "$(wc -l <"$temp/err")" -eq 1 ] &&
		grep -q "08_bad.md:.*$3" "$temp/err"
	status=$?
	[ $status -eq 0 ] || sed 's/^/# /' "$temp/err"
	result $status "$1"
}
refused "an id that comes twice" '# T\n\n## A {#x}\n\n## B {#x}\n' 'before: x'
refused "text before any heading" 'text\n' 'begins with a heading'
refused "code that is not closed" '# T\n\n```\n# x\n' 'open code'
refused "an empty id" '# T\n\n## A {#}\n' 'like-this'
refused "an empty chapter" '' 'no heading'

"$BUILD/embed" "$temp/docs/en/09_gone.md" >/dev/null 2>"$temp/err"
[ $? -eq 1 ] && grep -q '09_gone.md' "$temp/err"
result $? "a chapter that cannot be read"

echo "1..$number"
