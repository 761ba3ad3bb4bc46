# SPDX-License-Identifier: MIT
"""
A scripted stepper for the tests of the probe: starts a program under it,
collects its events and answers each stop with what a function says.
"""
import glob
import json
import os
import socket
import subprocess
import sys
import time

BUILD = os.environ.get("BUILD", "build")
PROBE = os.path.join(BUILD, "libverbprobe.so")
SOFT = os.path.join(BUILD, "libsoftverbs.so")


def preload(*libraries):
    """The libraries, with the sanitizer's runtime first where one is used."""
    needed = subprocess.run(["ldd", PROBE], capture_output=True, text=True)
    asan = [word for word in needed.stdout.split()
            if "libasan" in word and word.startswith("/")]
    return " ".join(asan[:1] + list(libraries))


class Peer:
    """One program under the probe. `events` is everything it said."""

    def __init__(self, program, *args, start=None, soft=True, env=None,
                 wrap=()):
        ours, theirs = socket.socketpair()
        environment = dict(os.environ, VERBPROBE_FD=str(theirs.fileno()),
                           LD_PRELOAD=preload(PROBE, *([SOFT] if soft else [])))
        if start:
            environment["VERBPROBE_START"] = start
        environment.update(env or {})
        self.child = subprocess.Popen(
            [*wrap, program, *args], env=environment,
            pass_fds=[theirs.fileno()], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        theirs.close()
        self.socket = ours
        self.text = b""
        self.lines = []
        self.events = []
        self.deadline = time.monotonic() + 60

    def read(self):
        """The next event, or None at the end of the conversation."""
        while b"\n" not in self.text:
            self.socket.settimeout(max(self.deadline - time.monotonic(), 0.01))
            try:
                got = self.socket.recv(65536)
            except ConnectionResetError:
                got = b""
            if not got:
                return None
            self.text += got
        line, self.text = self.text.split(b"\n", 1)
        self.lines.append(line)
        event = json.loads(line)
        self.events.append(event)
        return event

    def say(self, command):
        self.socket.sendall(command.encode() + b"\n")

    def stop(self):
        """Reads up to the next stop: that event, or None."""
        while True:
            event = self.read()
            if event is None or event.get("stop"):
                return event

    def go(self, command="go"):
        self.say(command)
        return self.stop()

    def finish(self, answer=lambda event: "go"):
        """To the end, answering each stop; the exit status."""
        event = self.events[-1] if self.events else self.read()
        while event is not None:
            if event.get("stop"):
                self.say(answer(event))
            event = self.read()
        self.out, self.err = self.child.communicate(timeout=60)
        return self.child.returncode

    def calls(self, kind="ret"):
        return [e["call"] for e in self.events if e["ev"] == kind]

    def ret(self, call, nth=0):
        """The nth answer of a call."""
        found = [e for e in self.events
                 if e["ev"] == "ret" and e["call"] == call]
        return found[nth]


class Tap:
    """The few lines of TAP that the tests need."""

    def __init__(self):
        self.count = 0

    def ok(self, truth, name, *why):
        self.count += 1
        print(f"{'ok' if truth else 'not ok'} {self.count} - {name}")
        if not truth:
            for what in why:
                print("#", repr(what)[:2000])

    def equal(self, got, wanted, name):
        self.ok(got == wanted, name, ("got", got), ("wanted", wanted))

    def done(self):
        print(f"1..{self.count}")


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
