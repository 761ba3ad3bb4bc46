#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each fuzz target for ten seconds; `make fuzz` is the long run.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# clang, and its runtime library: packages of their own on Debian.
echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) {
return 0; }' > "$work/empty.c"
if ! clang -fsanitize=fuzzer,address,undefined -o "$work/empty" \
	"$work/empty.c" > "$work/out" 2>&1; then
	echo '1..0 # SKIP clang cannot build fuzzers here: it needs its' \
		'runtime, the package libclang-rt-dev or compiler-rt'
	sed 's/^/# /' "$work/out"
	exit 0
fi
# A build of its own kind, whatever kind this one is of.
unset MAKEFLAGS MFLAGS MAKELEVEL SANITIZE TSAN
if ! make -s BUILD="$BUILD" fuzzers > "$work/out" 2>&1; then
	echo '1..1'
	echo 'not ok 1 - the fuzzers are built'
	sed 's/^/# /' "$work/out"
	exit 1
fi
exec sh tests/fuzz/run "$BUILD/fuzz" 10
