#!/bin/sh
# SPDX-License-Identifier: MIT
#
# soft0 beside a real device (a stand-in, behind it), and under programs that
# know nothing of it: Debian's own tools.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
soft=$BUILD/libsoftverbs.so
CC=${CC:-cc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0

# is STATUS WHAT
is() {
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		sed 's/^/# /' "$work/out"
	fi
}

echo 1..4
here=tests/e2e/soft_beside
# soft0 asks for libibverbs' version, so the stand-in has it too.
echo 'IBVERBS_1.1 { ibv_*; };' > "$work/fake.map"
$CC -shared -fPIC -w -Wl,--version-script="$work/fake.map" \
	-o "$work/fake.so" $here/fake.c &&
	$CC -O2 -Wl,--no-as-needed -o "$work/program" $here/program.c -libverbs
LD_PRELOAD="$soft $work/fake.so" "$work/program" > "$work/out" 2>&1
is $? 'each call goes to the device that it concerns'

if command -v ibv_devices > /dev/null; then
	LD_PRELOAD=$soft ibv_devices > "$work/out" 2>&1 &&
		grep -q '^ *soft0 ' "$work/out"
	is $? 'ibv_devices lists soft0'
	LD_PRELOAD=$soft ibv_devinfo -v -d soft0 > "$work/out" 2>&1 &&
		grep -q 'PORT_ACTIVE' "$work/out" &&
		grep -q 'GID.*RoCE v2' "$work/out"
	is $? 'ibv_devinfo -v shows its port and its GID'
else
	echo 'ok 2 # SKIP ibv_devices is not installed'
	echo 'ok 3 # SKIP ibv_devinfo is not installed'
	number=3
fi

# Whatever this libibverbs exports and would look into our objects with.
nm -D --defined-only "$soft" | sed 's/.* //' | sort -u > "$work/ours"
lib=$(LD_PRELOAD=$soft ldd "$work/program" | sed -n 's/.*libibverbs.* => \([^ ]*\).*/\1/p')
nm -D --defined-only "$lib" | sed 's/.* //; s/@.*//' |
	grep '^_\{0,1\}ibv_' | sort -u |
	grep -v -e '^ibv_cmd_' -e '_str$' -e 'fork' -e '^ibv_rate_' -e '^ibv_copy_' \
	-e 'sysfs' -e '^ibv_register_driver$' \
	-e '^ibv_\(dealloc_dmah\|dm_export_dmabuf_fd\|free_buf\)$' \
	-e '^ibv_export_buf_dmabuf_fd$' -e '_comp_cntr$' > "$work/theirs"
comm -13 "$work/ours" "$work/theirs" > "$work/out"
[ -s "$work/theirs" ] && [ ! -s "$work/out" ]
is $? 'every export that could be given an object of ours is ours'
