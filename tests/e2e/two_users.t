#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two users on one machine, each with soft0: to each its own, and no way from
# one to the other. The programs are Debian's. (What a stranger does who knows
# every number is in tests/unit/test_soft_peers.c.)
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
. tests/e2e/two.sh
one=65521 two=65522 three=65523

skip_all()
{
	echo "1..0 # SKIP $*"
	exit 0
}
[ "$(id -u)" = 0 ] || skip_all 'needs root, to be two other users'
for program in setpriv ibv_rc_pingpong ibv_devinfo python3; do
	command -v "$program" > /dev/null || skip_all "no $program here"
done
nm -D "$BUILD/libsoftverbs.so" | grep -q __asan_ &&
	skip_all "the address sanitizer's library is not preloaded here"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work" /dev/shm/softverbs-$one /dev/shm/softverbs-$two \
	/dev/shm/softverbs-$three' EXIT
# Where every user can read it.
chmod 755 "$work"
cp "$BUILD/libsoftverbs.so" "$work/soft.so"
chmod 644 "$work/soft.so"

# as USER PROGRAM ARGS
as() ( exec_as "$@" )

# The same in place of this shell, so that a job's number is its own.
exec_as()
{
	user=$1
	shift
	exec timeout 60 setpriv --reuid "$user" --regid "$user" --clear-groups \
		env LD_PRELOAD="$work/soft.so" "$@"
}

# pingpong SERVER'S-USER CLIENT'S-USER: the client's status. The server of a
# client that fails would wait for ever.
pingpong()
{
	port=$(free_port)
	(exec_as "$1" ibv_rc_pingpong -d soft0 -g 0 -p "$port") \
		> "$work/server" 2>&1 &
	server=$!
	wait_for_port "$port" "$server" 500
	as "$2" ibv_rc_pingpong -d soft0 -g 0 -p "$port" 127.0.0.1 \
		> "$work/client" 2>&1
	status=$?
	[ $status -eq 0 ] || kill "$server" 2> /dev/null
	wait "$server" 2> /dev/null
	return $status
}

gid_of() { as "$1" ibv_devinfo -v -d soft0 | sed -n 's/.*GID\[ *0\]:[[:blank:]]*//p'; }

echo 1..7
pingpong $one $one
result $? 'a user reaches its own process'
pingpong $two $two
result $? 'so does another'

pingpong $one $two
[ $? -ne 0 ] && grep -qi 'retry counter exceeded' "$work/client"
result $? 'no packet gets from one user to the other: RETRY_EXC_ERR'

first=$(gid_of $one)
second=$(gid_of $two)
[ -n "$first" ] && [ -n "$second" ] && [ "$first" != "$second" ]
result $? "each has a GID of its own: $first, $second"

# A process of the first user is there while the second one tries.
port=$(free_port)
(exec_as $one ibv_rc_pingpong -d soft0 -g 0 -p "$port") > "$work/server" 2>&1 &
server=$!
wait_for_port "$port" "$server" 500
folder=/dev/shm/softverbs-$one
file=$(find "$folder" -type f | head -n 1)
[ -n "$file" ] &&
	! as $two ls "$folder" > "$work/client" 2>&1 &&
	! as $two head -c 1 "$file" > "$work/client" 2>&1
result $? 'its folder and its files are closed to the other'
! as $two env SOFTVERBS_DIR="$folder" ibv_devinfo -d soft0 \
	> "$work/client" 2>&1 &&
	[ "$(grep -c '^soft0: .*Permission denied' "$work/client")" = 1 ]
result $? 'told to use that folder, the device does not open and says why'
kill "$server"
wait "$server" 2> /dev/null

# A name that somebody took before its owner came.
rm -rf /dev/shm/softverbs-$three
as $two mkdir -m 777 /dev/shm/softverbs-$three
! as $three ibv_devinfo -d soft0 > "$work/client" 2>&1 &&
	grep -q "^soft0: .*belongs to user $two, not to you" "$work/client"
result $? "a folder that is another's is not used"
