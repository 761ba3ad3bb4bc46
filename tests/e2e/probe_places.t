#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The source places of the probe: tests/programs/places.c says in comments
which call is made on which line; each compiler and optimisation must give
exactly those, stepped and at full speed.
"""
import os
import re
import shutil
import subprocess
import tempfile

import peer

SOURCE = "tests/programs/places.c"
BUILDS = [(cc, options) for cc in ("gcc", "clang")
          for options in (["-O0"], ["-O2"], ["-O0", "-fno-pie", "-no-pie"],
                          ["-O0", "-fomit-frame-pointer"],
                          ["-O2", "-gdwarf-4"], ["-O2", "-gsplit-dwarf"])]
BUILDS.append(("gcc", ["-O2", "-flto"]))


def expected():
    """{(call, line, function)} of the comments."""
    wanted = set()
    with open(SOURCE) as lines:
        for number, line in enumerate(lines, 1):
            found = re.search(r"/\* @(\w+) (\w+) \*/", line)
            if found:
                wanted.add((found[1], number, found[2]))
    return wanted


def places(session):
    return {(e["call"], e["at"].get("line"), e["at"].get("func"))
            for e in session.events if e["ev"] == "ret"}


def difference(session):
    got, wanted = places(session), expected()
    return {"missing": wanted - got, "wrong": got - wanted}


def run(program, start):
    session = peer.Peer(program, start=start)
    status = session.finish()
    return status, session


tap = peer.Tap()
with tempfile.TemporaryDirectory() as folder:
    for cc, options in BUILDS:
        name = " ".join([cc, *options])
        if not shutil.which(cc):
            tap.ok(True, f"{name} # SKIP no {cc}")
            continue
        program = os.path.join(folder, "places")
        # In two steps: so -gsplit-dwarf leaves its file in the folder too.
        subprocess.run([cc, "-g", *options, "-Wno-unused-command-line-argument",
                        "-c", "-o", program + ".o",
                        SOURCE], check=True)
        subprocess.run([cc, "-g", *options, "-o", program, program + ".o",
                        "-libverbs"], check=True)
        for start in ("stop", "run"):
            status, session = run(program, start)
            wrong = difference(session)
            tap.ok(status == 0 and not any(wrong.values()),
                   f"{name}, {start}: every call at its line", status, wrong)
            files = {e["at"].get("file") for e in session.events
                     if e["ev"] in ("enter", "ret")}
            tap.equal(files, {SOURCE}, f"{name}, {start}: its file")
            entered = {(e["call"], e["at"]["line"]) for e in session.events
                       if e["ev"] == "enter"}
            if start == "stop":
                tap.equal(entered, {w[:2] for w in expected()},
                          f"{name}: entered where it returned")

    # An absolute source keeps its name, from whatever folder.
    program = os.path.join(folder, "places")
    subprocess.run(["gcc", "-g", "-O2", "-o", program,
                    os.path.abspath(SOURCE), "-libverbs"], check=True)
    status, session = run(program, "run")
    tap.equal({e["at"].get("file") for e in session.events
               if e["ev"] == "ret"}, {os.path.abspath(SOURCE)},
              "an absolute source path stays absolute")

    # Without debug information: the program and the function.
    for cc in ("gcc", "clang"):
        if not shutil.which(cc):
            continue
        subprocess.run([cc, "-g0", "-O0", "-o", program, SOURCE,
                        "-libverbs"], check=True)
        status, session = run(program, "stop")
        named = {(e["call"], "places!" + e["at"]["func"].split("!")[1])
                 for e in session.events if e["ev"] == "ret"
                 and "file" not in e["at"]}
        tap.equal(named, {(c, f"places!{f}") for c, _, f in expected()},
                  f"{cc} without -g: program!function")
tap.done()
