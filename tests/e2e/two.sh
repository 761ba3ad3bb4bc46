# SPDX-License-Identifier: MIT
#
# For tests of a server and its client: ports of loopback, and a result with
# what both said, in "$work/server" and "$work/client". To be sourced.

number=0

# result STATUS WHAT: a line of TAP, with the output of both when it failed.
result()
{
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		for file in client server; do
			[ -f "$work/$file" ] && sed "s/^/# $file: /" \
				"$work/$file" | tail -n 15
		done
	fi
}

# A port that nobody uses now.
free_port()
{
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# Waits until the server listens, or has ended; looks so often at most.
wait_for_port() # port pid looks
{
	hex=$(printf ':%04X' "$1")
	for _ in $(seq "$3"); do
		grep -q "$hex 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 \
			2> /dev/null && return
		kill -0 "$2" 2> /dev/null || return
		python3 -c 'import select; select.select([], [], [], 0.02)'
	done
}
