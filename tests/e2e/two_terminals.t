#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Lesson 05 as two processes: a server and its client on one device, options
# that make no sense, and peers that are strangers, silent, or die half way.
# TWO_DEVICE names another device than soft0.
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build}"
device=${TWO_DEVICE:-soft0}
lesson=$BUILD/lessons/05_qp

number=0
result() # status text
{
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		for file in server client; do
			tail -n 4 "$temp/$file.out" | sed "s/^/# $file out: /"
			sed "s/^/# $file err: /" "$temp/$file.err"
		done
	fi
}

temp=$(mktemp -d) || exit 1
server=
trap 'kill $server 2>/dev/null; rm -rf "$temp"' EXIT
touch "$temp/server.out" "$temp/server.err" "$temp/client.out" \
	"$temp/client.err"

# At the mark that DIE_AT names the process is gone, and no destructor runs.
cat >"$temp/die.c" <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
void verbs_mark(const char *id, const char *file, int line)
{
	const char *at = getenv("DIE_AT");

	(void)file;
	(void)line;
	if (at && !strcmp(at, id))
		raise(SIGKILL);
}
END
${CC:-cc} -shared -fPIC -o "$temp/die.so" "$temp/die.c" || exit 1

# A peer that is no lesson: stranger.py listen|PORT SCRIPT. The script is
# bytes in hex to say, "wait" for the peer's greeting, "echo" its endpoint,
# "stay" until it goes.
cat >"$temp/stranger.py" <<'END'
import socket, sys

if sys.argv[1] == 'listen':
    listener = socket.create_server(('127.0.0.1', 0))
    print('listening on port', listener.getsockname()[1], flush=True)
    listener.settimeout(30)
    peer = listener.accept()[0]
else:
    peer = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
peer.settimeout(30)
for word in sys.argv[2:]:
    if word == 'wait':
        peer.recv(16, socket.MSG_WAITALL)
    elif word == 'echo':
        peer.sendall(peer.recv(40, socket.MSG_WAITALL))
    elif word == 'stay':
        while peer.recv(100):
            pass
    else:
        peer.sendall(bytes.fromhex(word))
END

start_server() # program and its arguments: sets $server and $port
{
	: >"$temp/server.out"
	timeout 60 "$@" </dev/null >"$temp/server.out" 2>"$temp/server.err" &
	server=$!
	port=
	tries=0
	while [ -z "$port" ] && [ $tries -lt 200 ] && kill -0 $server; do
		port=$(sed -n 's/.*listening on port \([0-9]*\).*/\1/p' \
			"$temp/server.out")
		sleep 0.05
		tries=$((tries + 1))
	done 2>/dev/null
}

end_server() # sets $server_status
{
	wait $server 2>/dev/null
	server_status=$?
	server=
}

client() # host and port, more arguments: sets $client_status
{
	host=$1
	shift
	timeout 60 "$lesson" --auto --device "$device" --connect "$host" "$@" \
		</dev/null >"$temp/client.out" 2>"$temp/client.err"
	client_status=$?
}

serve() # arguments
{
	start_server "$lesson" --auto --device "$device" --server "$@"
}

# The lesson's own steps, in order, and its last line.
whole_run() # server or client
{
	[ -s "$temp/$1.err" ] && return 1
	sed -n 's/^-- \([a-z0-9-]*\): .*/\1/p' "$temp/$1.out" |
		cmp -s - "$temp/expected" &&
		tail -n 1 "$temp/$1.out" | grep -q 'everything was destroyed'
}

# One failure was reported, the rest went on to the end.
one_failure() # server or client, words of the report
{
	grep -q -e "$2" "$temp/$1.err" &&
		grep -q 'failed: 1 unexpected answer' "$temp/$1.err" &&
		[ "$(grep -vc 'hint: ' "$temp/$1.err")" -eq 2 ]
}

# --- the run -----------------------------------------------------------------

"$lesson" --list-steps | cut -d' ' -f1 | grep -E '^(open|create-qp|two-|destroy)' \
	>"$temp/expected"
[ "$(grep -c '^two-' "$temp/expected")" -ge 6 ]
result $? "it has steps for two terminals"

serve 0
client "127.0.0.1:$port"
end_server
[ $server_status -eq 0 ] && [ $client_status -eq 0 ]
result $? "both end well"
whole_run server && whole_run client
result $? "both go through every step and destroy everything"
grep -q 'received "sent by client"' "$temp/server.out" &&
	grep -q 'received "sent by server"' "$temp/client.out"
result $? "a SEND each way"
grep -q 'memory here says "written by client"' "$temp/server.out" &&
	grep -q 'read back "written by client"' "$temp/client.out"
result $? "WRITE and READ reach the server's memory"
for what in 'this end' 'the peer'; do
	sed -n "s/^  $what: //p" "$temp/server.out" "$temp/client.out"
done | sort | uniq -c | awk '$1 != 2 { bad = 1 } END { exit bad || NR != 2 }'
result $? "each knows of the other what that said of itself"

serve "$port" # the port of a run that has just ended
client "localhost:$port"
end_server
[ $server_status -eq 0 ] && [ $client_status -eq 0 ]
result $? "again on the same port, by a name"

if [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; then
	serve 0
	client "[::1]:$port"
	end_server
	[ $server_status -eq 0 ] && [ $client_status -eq 0 ]
	result $? "by IPv6"
else
	result 0 "by IPv6 # SKIP no IPv6 here"
fi

start_server "$BUILD/verbstep" step --batch 05 -- --device "$device" --server 0
client "127.0.0.1:$port"
end_server
[ $server_status -eq 0 ] && [ $client_status -eq 0 ] &&
	grep -qE '^every created object destroyed: ([0-9]+) of \1$' \
		"$temp/server.out"
result $? "one end stepped"

# --- options -----------------------------------------------------------------

one_line() # text, words of the line, arguments
{
	text=$1
	words=$2
	shift 2
	timeout 60 "$lesson" --auto --device "$device" "$@" </dev/null \
		>"$temp/client.out" 2>"$temp/client.err"
	[ $? -eq 2 ] && [ "$(wc -l <"$temp/client.err")" -eq 1 ] &&
		grep -q -e "$words" "$temp/client.err"
	result $? "$text"
}
one_line "a port that is no number" "--server takes .*'x'" --server x
one_line "a port that is too high" "--server takes .*'65536'" --server=65536
one_line "a client's port 0" "--connect takes .*'0'" --connect host:0
one_line "no host" '--connect takes HOST' --connect :18515
one_line "no host in brackets" '--connect takes HOST' --connect '[]:18515'
one_line "words behind the brackets" '--connect takes HOST' --connect '[::1]x'
one_line "both ends at once" '--server and --connect' --server --connect x
one_line "a step of a run in two, alone" "two-send.*--server" --from two-send
long=$(printf '%0100d' 0 | tr 0 a) # longer than a name's part may be
one_line "a host that is not there" "no host '$long'" --connect "$long"

timeout 60 "$BUILD/lessons/04_cq" --server 2>"$temp/client.err" >/dev/null
[ $? -eq 2 ] && grep -q "no option '--server'" "$temp/client.err"
result $? "a lesson without two ends has no --server"

serve 0
one_line "a port in use" "cannot listen on port $port: EADDRINUSE" \
	--server "$port"
kill $server
end_server
client "127.0.0.1:$port"
[ $client_status -eq 1 ] && one_failure client "port $port.*ECONNREFUSED"
result $? "nobody listens"

# --- strangers ---------------------------------------------------------------

hex() # text
{
	printf "$1" | od -An -tx1 | tr -d ' \n'
}
greeting=$(hex 'verbstep-peer 1\n')

meets() # text, words of the report, what the stranger does
{
	text=$1
	words=$2
	shift 2
	serve 0
	timeout 60 python3 "$temp/stranger.py" "$port" "$@" 2>/dev/null
	end_server
	[ $server_status -eq 1 ] && one_failure server "$words"
	result $? "a server meets $text"
}
meets "nonsense" 'no lesson' "$(hex 'GET / HTTP/1.1\r\n\r\n')" stay
meets "silence" 'greeting: nothing within' stay
meets "half a greeting and an end" 'greeting: the peer has gone' "$(hex verbs)"
meets "another version" 'another version' "$(hex 'verbstep-peer 9\n')" stay
meets "a peer that goes after greeting" 'endpoint: the peer has gone' \
	"$greeting" wait
meets "an endpoint that makes no sense" 'makes no sense' \
	"$greeting" wait "$(printf 'ff%078d' 0)" stay
# Its own endpoint is one that it can connect to.
meets "no barrier" 'not where this end is' \
	"$greeting" wait echo "$(hex x)" stay
meets "a peer that goes before the barrier" 'come here: the peer has gone' \
	"$greeting" wait echo

start_server python3 "$temp/stranger.py" listen "$(hex '220 mail ready\r\n')" stay
client "127.0.0.1:$port"
end_server
[ $client_status -eq 1 ] && one_failure client 'no lesson'
result $? "a client meets another kind of server"

# --- a peer that is killed ----------------------------------------------------

for step in two-exchange two-connect two-send two-reach two-goodbye; do
	DIE_AT=$step LD_PRELOAD="$temp/die.so" serve 0
	client "127.0.0.1:$port"
	end_server
	[ $server_status -eq 137 ] && [ $client_status -eq 1 ] &&
		grep -q 'failed: ' "$temp/client.err"
	result $? "a server killed at $step: the client ends, with status 1"

	serve 0
	DIE_AT=$step LD_PRELOAD="$temp/die.so" client "127.0.0.1:$port"
	end_server
	[ $client_status -eq 137 ] && [ $server_status -eq 1 ] &&
		grep -q 'failed: ' "$temp/server.err"
	result $? "a client killed at $step: the server ends, with status 1"
done

echo "1..$number"
