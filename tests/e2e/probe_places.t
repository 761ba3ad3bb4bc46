#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The source places of the probe: tests/programs/places.c says in comments
which call is made on which line; each compiler and optimisation must give
exactly those, stepped and at full speed.
"""
import os
import random
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
BUILDS.extend((cc, ["-O2", "-gz"]) for cc in ("gcc", "clang"))


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


def build(folder, options, cc="gcc"):
    program = os.path.join(folder, "places")
    subprocess.run([cc, "-g", *options, "-c", "-o", program + ".o", SOURCE],
                   check=True)
    subprocess.run([cc, "-g", *options, "-o", program, program + ".o",
                    "-libverbs"], check=True)
    return program


def named(session, what):
    """Every call is there, each by the program's name at least."""
    wanted = {call for call, _, _ in expected()}
    got = [e for e in session.events if e["ev"] == "ret"]
    tap.equal({e["call"] for e in got}, wanted, f"{what}: every call")
    tap.ok(all(e["at"].get("file", SOURCE) == SOURCE and
               (e["at"].get("line") or
                e["at"]["func"].startswith("places!")) for e in got),
           f"{what}: by the program, if not by the line",
           [e["at"] for e in got])


def damage(program, sections, how):
    """Overwrites parts of sections of an ELF file, where it has them."""
    listed = subprocess.run(["readelf", "-SW", program], check=True,
                            capture_output=True, text=True).stdout
    with open(program, "r+b") as file:
        for name in sections:
            row = re.search(re.escape(name) + r"\s+\w+\s+\w+ (\w+) (\w+)",
                            listed)
            if not row:
                continue
            offset, size = int(row[1], 16), int(row[2], 16)
            file.seek(offset)
            data = bytearray(file.read(size))
            how(data)
            file.seek(offset)
            file.write(data)


def noise(seed):
    def fill(data):
        dice = random.Random(seed)
        for _ in range(max(1, len(data) // 16)):
            data[dice.randrange(len(data))] = dice.randrange(256)
    return fill


DEBUG = [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str",
         ".debug_line_str", ".debug_aranges", ".debug_rnglists",
         ".debug_ranges", ".debug_addr", ".debug_str_offsets"]


def without(folder):
    """Debug information that is gone, elsewhere, or damaged."""
    for options in (["-O0"], ["-O2"]):
        program = build(folder, options)
        subprocess.run(["strip", "--strip-all", program], check=True)
        for start in ("stop", "run"):
            status, session = run(program, start)
            tap.equal(status, 0, f"stripped, {options[0]}, {start}: runs")
            named(session, f"stripped, {options[0]}, {start}")
    # Only another file of the program has it.
    other = os.path.join(folder, "other.c")
    with open(other, "w") as file:
        file.write("int other(int a)\n{\n\treturn a + 1;\n}\n")
    for cc in ("gcc", "clang"):
        if not shutil.which(cc):
            continue
        program = build(folder, ["-g0"], cc)
        subprocess.run([cc, "-g", "-c", "-o", other + ".o", other], check=True)
        subprocess.run([cc, "-o", program, program + ".o", other + ".o",
                        "-libverbs"], check=True)
        status, session = run(program, "run")
        tap.equal(status, 0, f"{cc}, -g for another file: runs")
        named(session, f"{cc}, -g for another file")
    program = build(folder, ["-O2"])
    subprocess.run(["objcopy", "--only-keep-debug", program,
                    program + ".debug"], check=True)
    subprocess.run(["strip", "--strip-all", program], check=True)
    subprocess.run(["objcopy", "--add-gnu-debuglink=" + program + ".debug",
                    program], check=True)
    status, session = run(program, "run")
    tap.equal(status, 0, "debug information in a file beside it: runs")
    named(session, "debug information in a file beside it")
    for left in ("", "no DWARF at all\n"):
        program = build(folder, ["-O2", "-gsplit-dwarf"])
        for name in os.listdir(folder):
            if name.endswith(".dwo"):
                path = os.path.join(folder, name)
                os.remove(path)
                if left:
                    with open(path, "w") as file:
                        file.write(left)
        status, session = run(program, "run")
        tap.equal(status, 0, "-gsplit-dwarf, its file gone: runs")
        named(session, "-gsplit-dwarf, its file gone")
    for seed in range(12):
        options = [["-O2"], ["-O0"], ["-O2", "-gz"],
                   ["-O2", "-gdwarf-4"]][seed % 4]
        program = build(folder, options)
        damage(program, DEBUG, noise(seed))
        status, session = run(program, "run")
        calls = {e["call"] for e in session.events if e["ev"] == "ret"}
        tap.equal((status, calls), (0, {c for c, _, _ in expected()}),
                  f"damaged {seed}, {' '.join(options)}: every call")


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

    without(folder)

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
