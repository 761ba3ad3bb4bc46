# SPDX-License-Identifier: MIT
#
# For tests that press keys: a terminal by tmux, on a socket of its own, with
# nothing of the reader's settings. Sourced by the *.t beside it.
#
#	term_start 80 24 'verbstep 05'   a shell that runs this
#	keys Space m                     keys, by tmux' names
#	wait_for 'step 3/'               until a line of the screen matches
#
# Nothing here sleeps for a time that is hoped to be long enough: wait_for
# looks again and again, and gives up after 20 seconds.

n=0
server=verbstep-$$
starts=0
dir=$(mktemp -d) || exit 1
if ! command -v tmux >/dev/null; then
	echo "1..0 # SKIP no tmux"
	rmdir "$dir"
	exit 0
fi
term_end() {
	tmux -L "$server" kill-server 2>/dev/null
	rm -rf "$dir"
}
trap term_end EXIT

# term_start COLUMNS ROWS COMMAND [VARIABLE=VALUE...]
term_start() {
	columns=$1 rows=$2 command=$3
	shift 3
	tmux -L "$server" kill-server 2>/dev/null
	starts=$((starts + 1))
	server=verbstep-$$-$starts
	env -i PATH="$PATH" HOME="$dir" BUILD="$BUILD" LC_CTYPE=C.UTF-8 \
		ASAN_OPTIONS="${ASAN_OPTIONS:-}" TERM=screen-256color \
		tmux -L "$server" -f /dev/null new-session -d \
		-x "$columns" -y "$rows" "PS1='prompt> ' exec sh"
	# The shell's echo of what is typed is no answer: the words are cut.
	wait_for 'prompt>'
	tmux -L "$server" send-keys -l "$* $command; echo 'sta''tus' \$?"
	tmux -L "$server" send-keys Enter
	: >"$dir/screen"
}

keys() {
	for key; do
		tmux -L "$server" send-keys -- "$key"
	done
}

typed() {
	tmux -L "$server" send-keys -l "$1"
}

screen() {
	tmux -L "$server" capture-pane -p 2>/dev/null
}

resize() { # COLUMNS ROWS
	tmux -L "$server" resize-window -x "$1" -y "$2"
}

alternate() { # 1: the program's screen; 0: as it was before
	tmux -L "$server" display-message -p '#{alternate_on}' 2>/dev/null
}

wait_for() { # PATTERN
	tries=0
	until screen >"$dir/screen" && grep -Eq -- "$1" "$dir/screen"; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || return 1
		sleep 0.05
	done
}

# The program of this terminal has ended with STATUS and gave it back.
left() {
	wait_for "^status $1" && [ "$(alternate)" = 0 ] &&
		! grep -Eq 'Space|help  q quit' "$dir/screen"
}

# The process id of verbstep in this terminal.
stepper() {
	shell=$(tmux -L "$server" display-message -p '#{pane_pid}')
	ps -o pid=,comm= --ppid "$shell" | awk '$2 == "verbstep" { print $1 }'
}

result() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		screen | sed 's/^/# /'
	fi
}

# Presses m and waits until the screen has moved on.
one_step() {
	before=$(head -n 1 "$dir/screen")
	keys m
	tries=0
	while screen >"$dir/screen" &&
		[ "$(head -n 1 "$dir/screen")" = "$before" ]; do
		tries=$((tries + 1))
		[ $tries -lt 400 ] || return 1
		sleep 0.02
	done
	wait_for '(stopped|exited|killed)'
}

# Presses m until the program has ended; every step must be seen.
step_to_end() {
	steps=0
	while ! grep -Eq '(exited|killed)' "$dir/screen"; do
		one_step || return 1
		steps=$((steps + 1))
		[ $steps -lt 100 ] || return 1
	done
}

# Presses m until it stands before a step.
to_step() { # ID
	until grep -q "^next step $1" "$dir/screen"; do
		! grep -Eq '(exited|killed)' "$dir/screen" && one_step ||
			return 1
	done
}
