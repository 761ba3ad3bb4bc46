# SPDX-License-Identifier: MIT
"""
Two views of one program, at every step: the kernel's, by `rdma resource
show`, and the stepper's graph. agree.py DEVICE STATES PROGRAM [ARGUMENT...]

Runs in the guest. STATES is `states` where the kernel's QP states are to be
compared too; siw says RESET of every QP. Prints one line, and what differs;
status 0 when nothing does.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
from peer import BUILD, Peer  # noqa: E402


class Kernel:
    """What a device's driver says that a process holds."""

    def __init__(self, device):
        self.batch = tempfile.NamedTemporaryFile("w")
        for what, name in (("pd", "dev"), ("cq", "dev"), ("mr", "dev"),
                           ("qp", "link")):
            self.batch.write(f"resource show {what} {name} {device}\n")
        self.batch.flush()

    def holds(self, pid):
        shown = subprocess.run(
            ["rdma", "-j", "-b", self.batch.name], capture_output=True,
            text=True, check=True).stdout.strip().splitlines()
        pd, cq, mr, qp = ([entry for entry in json.loads(line)
                           if entry.get("pid") == pid] for line in shown)
        return {"pd": len(pd), "cq": len(cq), "mr": len(mr),
                "qp": [[entry["lqpn"], entry["state"]] for entry in qp]}


class Graph:
    """The stepper's, in a process of its own."""

    def __init__(self):
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "tests", "kernel", "graph")], text=False,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def fold(self, lines):
        for line in lines:
            self.process.stdin.write(line + b"\n")

    def holds(self):
        self.process.stdin.write(b"?\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def unknown_left_out(ours, theirs):
    """A state that no call has told the graph, "?", is not compared."""
    unknown = {number for number, state in ours["qp"] if state == "?"}
    return [dict(view, qp=[[number, "?" if number in unknown else state]
                           for number, state in view["qp"]])
            for view in (ours, theirs)]


def comparable(view, states):
    qps = sorted(view["qp"])
    return dict(view, qp=qps if states else [number for number, _ in qps])


def main():
    device, states = sys.argv[1], sys.argv[2] == "states"
    peer = Peer(*sys.argv[3:], soft=False)
    peer.deadline += 600
    kernel, graph = Kernel(device), Graph()
    folded = steps = objects = 0
    differences = []
    stop = peer.stop()
    while stop is not None:
        graph.fold(peer.lines[folded:])
        folded = len(peer.lines)
        views = unknown_left_out(graph.holds(), kernel.holds(peer.child.pid))
        ours, theirs = (comparable(view, states) for view in views)
        steps += 1
        objects = max(objects, sum(ours[what] for what in ("pd", "cq", "mr"))
                      + len(ours["qp"]))
        if ours != theirs:
            differences.append((stop.get("call"), ours, theirs))
        stop = peer.go()
    status = peer.finish()
    print(f"{steps} steps, up to {objects} objects at once, "
          f"{len(differences)} differ")
    for call, ours, theirs in differences[:5]:
        print(f"before {call}: graph {ours}, kernel {theirs}")
    if status:
        print(f"the program's status is {status}:", peer.err[-500:])
    # A comparison of nothing is none.
    return status or differences or steps < 10 or objects < 3


sys.exit(1 if main() else 0)
