#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From a key press to the last byte of the new frame.

verbstep steps lesson 06 call by call; gdb -tui continues to a breakpoint on
the verbs of the same program. Both run in a terminal of 80x24, one after the
other in turns, and are timed in one way: from writing the key to the last
byte that comes before QUIET seconds of silence.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

BUILD = os.environ['BUILD']
LESSON = os.path.join(BUILD, 'lessons', '06_lifecycle')
QUIET = 0.15
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
VERBS = ('ibv_alloc_pd ibv_dealloc_pd ibv_reg_mr_iova2 ibv_reg_mr '
         'ibv_dereg_mr ibv_create_cq ibv_destroy_cq ibv_create_qp '
         'ibv_destroy_qp ibv_query_qp ibv_query_device').split()


class Terminal:
    """A program in a pseudo-terminal of its own."""

    def __init__(self, argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM='xterm-256color', LC_ALL='C.UTF-8')
            os.execvp(argv[0], argv)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack('HHHH', 24, 80, 0, 0))

    def settle(self, quiet=QUIET, limit=20.0):
        """Reads until silence: the time of the last byte, and the bytes."""
        last, data = None, b''
        end = time.monotonic() + limit
        while time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], quiet)
            if not ready:
                if last is not None or quiet > QUIET:
                    break
                continue
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                break
            if not piece:
                break
            data += piece
            last = time.monotonic()
        return last, data

    def press(self, keys):
        """Sends keys: seconds to the last byte of the answer, or None."""
        start = time.monotonic()
        os.write(self.fd, keys)
        last, _ = self.settle()
        return last - start if last else None

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


def stepper():
    terminal = Terminal([os.path.join(BUILD, 'verbstep'), '06'])
    terminal.settle(1.0)
    return terminal, b' '


def debugger():
    # Pending: the verbs are in libraries that the start loads.
    commands = ['set pagination off', 'set confirm off',
                'set breakpoint pending on']
    commands += ['break ' + verb for verb in VERBS]
    argv = ['gdb', '-nx', '-q', '-tui']
    for command in commands:
        argv += ['-ex', command]
    terminal = Terminal(argv + ['--args', LESSON, '--auto'])
    terminal.settle(3.0)
    os.write(terminal.fd, b'run\n')
    terminal.settle(3.0)
    return terminal, b'continue\n'


def main():
    if subprocess.call(['which', 'gdb'], stdout=subprocess.DEVNULL):
        print('gdb is not installed: nothing to compare with')
        return 1
    contenders = {'verbstep': stepper(), 'gdb -tui': debugger()}
    times = {name: [] for name in contenders}
    for _ in range(STEPS):
        for name, (terminal, keys) in contenders.items():
            took = terminal.press(keys)
            if took is not None:
                times[name].append(took)
    for terminal, _ in contenders.values():
        terminal.close()
    for name, values in times.items():
        if len(values) < STEPS // 2:
            print(f'{name}: only {len(values)} of {STEPS} keys answered')
            return 1
        print(f'{name:9} p50 {percentile(values, .5) * 1e3:7.2f} ms   '
              f'p99 {percentile(values, .99) * 1e3:7.2f} ms   '
              f'({len(values)} keys)')
    for name, part in ('p50', .5), ('p99', .99):
        ratio = (percentile(times['gdb -tui'], part) /
                 percentile(times['verbstep'], part))
        print(f'gdb -tui takes {ratio:.1f} times as long at {name}')
    return 0


sys.exit(main())
