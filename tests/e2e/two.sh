# SPDX-License-Identifier: MIT
#
# Ports of loopback, for tests that start a server. To be sourced.

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
