#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Runs rdma-core's own tests (Debian's python3-pyverbs) on soft0:

    pyverbs_run.py LIBSOFTVERBS SUMMARY [DOC]

SUMMARY gets the counts as JSON (-: stdout), and DOC, if given, the page
docs/soft0-pyverbs.md of this run. Exits with 77 and a reason on stdout where
the tests are not installed. The tests are packaged as documentation, some of
them compressed: they run from a copy.
"""
import collections
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHANGELOG = "/usr/share/doc/python3-pyverbs/changelog.Debian.gz"
TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")

# What a test says when it skips, and why that is so on soft0: the first
# that its words begin with or contain.
REASONS = [
    ("non MLX5 device", "It is about NVIDIA's mlx5 hardware."),
    ("mlx5 context", "It is about NVIDIA's mlx5 hardware."),
    ("Converting timestamp", "The conversion is mlx5's own; soft0's times "
     "are nanoseconds already, and `test_soft_cq_ex` looks at them."),
    ("PCI device", "It drives a PCI device from userspace (mlx5 VFIO)."),
    ("EFA device", "It is about Amazon's EFA hardware."),
    ("ODP", "On-demand paging: soft0 pins nothing, and refuses the flag as "
     "the kernel's rxe did up to 6.12."),
    ("huge pages", "The machine has no huge pages set aside (needs root)."),
    ("net interface", "The connection manager: it needs a network interface "
     "behind the device and the kernel's /dev/infiniband/rdma_cm."),
    ("dmabuf", "DMA-BUF: it needs a GPU's memory."),
    ("cuda-python", "It needs CUDA and a GPU."),
    ("Create QP type 8", "Raw Ethernet packets: there is no Ethernet under "
     "soft0."),
    ("Raw Packet", "Raw Ethernet packets: there is no Ethernet under soft0."),
    ("XRCD", "XRC is not supported."),
    ("Extended CQ is not supported", "Tag matching is not supported."),
    ("Extended QP is not supported", "Atomic writes are not supported."),
    ("import", "Objects are not shared between contexts."),
    ("Importing", "Objects are not shared between contexts."),
    ("It reads /sys/class/infiniband", "It reads sysfs, where soft0 is not."),
    ("gid indices", "soft0's table has one GID, so none of it is empty."),
]


def reason_of(words):
    for part, reason in REASONS:
        if part in words:
            return reason
    return "(no reason is known: add one to tests/e2e/pyverbs_run.py)"


# Newer versions of these look up the device in sysfs first.
IN_SYSFS = {
    "test_get_pkey_index": "get_pkey_from_kernel",
}


def leave_out(tests):
    """Tests that read what only a kernel device has are skips, with why."""
    for name, reads in IN_SYSFS.items():
        if hasattr(tests.utils, reads):
            setattr(tests.test_device.DeviceTest, name, unittest.skip(
                "It reads /sys/class/infiniband")(
                    getattr(tests.test_device.DeviceTest, name)))


def unpack(to):
    """The tests as a package `tests` in the directory `to`."""
    package = to / "tests"
    package.mkdir()
    for path in TESTS.iterdir():
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                (package / path.stem).write_bytes(packed.read())
        elif path.is_file():
            shutil.copy(path, package)


class Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test.id())


def stand_in(directory):
    """
    Newer tests ask `rdma link show -j` for the network interface behind a
    device, and stop where that fails. It prints an empty list on a machine
    whose kernel has RDMA and no device; where there is no such kernel (or no
    rdma command) one that prints the same stands in: soft0 has no interface.
    """
    try:
        asked = subprocess.run(["rdma", "link", "show", "-j"], check=False,
                               capture_output=True)
        if not asked.returncode:
            return
    except OSError:
        pass
    command = directory / "bin" / "rdma"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho '[]'\n")
    command.chmod(0o755)
    os.environ["PATH"] = f"{command.parent}:{os.environ['PATH']}"


def run(directory):
    """Under the preload: all tests; returns their result."""
    stand_in(directory)
    sys.path[:0] = [str(directory), str(directory / "tests")]
    sys.argv[1:] = ["--dev", "soft0"]
    from args_parser import parser
    parser.parse_args()
    import tests
    import tests.test_device
    import tests.utils
    leave_out(tests)
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    return runner.run(suite)


def counts(result):
    return {
        "run": result.testsRun,
        "passed": len(result.passed),
        "failed": [test.id() for test, _ in
                   result.failures + result.errors] +
                  [test.id() for test in result.unexpectedSuccesses],
        "skipped": len(result.skipped),
    }


def version():
    try:
        with gzip.open(CHANGELOG, "rt") as log:
            return log.readline().partition("(")[2].partition(")")[0]
    except OSError:
        return "of a version unknown"


def document(result):
    """The page, from what the tests said."""
    groups = collections.defaultdict(list)
    for test, words in result.skipped:
        name = test.id().removeprefix("tests.")
        groups[reason_of(words), words].append(name)
    summary = counts(result)
    lines = [
        "# rdma-core's own tests on soft0", "",
        "Written by `tests/e2e/pyverbs_run.py` from a run; don't edit. "
        "Anew, after a change:", "",
        "    tests/e2e/pyverbs_run.py build/libsoftverbs.so - "
        "docs/soft0-pyverbs.md", "",
        f"rdma-core {version()}: {summary['run']} tests, "
        f"{summary['passed']} passed, {len(summary['failed'])} failed, "
        f"{summary['skipped']} skipped.", "",
        "`tests/e2e/pyverbs.t` runs them in every check and keeps the "
        "number of the passed.", "", "## Skipped, by reason", ""]
    by_reason = collections.defaultdict(list)
    for (reason, words), names in groups.items():
        by_reason[reason].append((words, names))
    size = {reason: sum(len(names) for _, names in parts)
            for reason, parts in by_reason.items()}
    for reason in sorted(by_reason, key=lambda r: (-size[r], r)):
        lines += [f"### {size[reason]}: {reason}", ""]
        for words, names in sorted(by_reason[reason]):
            lines += [f"The tests say: \"{words}\"", ""]
            lines += [f"* `{name}`" for name in sorted(names)] + [""]
    lines += ["## Passed", ""]
    lines += [f"* `{name.removeprefix('tests.')}`"
              for name in sorted(result.passed)]
    return "\n".join(lines) + "\n"


def skip(reason):
    print(reason)
    sys.exit(77)


def main():
    library, summary = sys.argv[1:3]
    doc = sys.argv[3] if len(sys.argv) > 3 else None
    try:
        import pyverbs  # noqa: F401
    except ImportError:
        skip("python3-pyverbs is not installed")
    if not TESTS.is_dir():
        skip(f"{TESTS} is not there: this machine leaves documentation out")
    if "SOFT_PYVERBS" not in os.environ:
        # Once more, with the device.
        os.environ["SOFT_PYVERBS"] = "1"
        os.environ["LD_PRELOAD"] = os.path.abspath(library)
        os.execv(sys.executable, [sys.executable] + sys.argv)
    os.environ.pop("LD_PRELOAD")  # not what the tests start
    with tempfile.TemporaryDirectory() as directory:
        unpack(pathlib.Path(directory))
        result = run(pathlib.Path(directory))
    text = json.dumps(counts(result)) + "\n"
    if summary == "-":
        sys.stdout.write(text)
    else:
        pathlib.Path(summary).write_text(text)
    if doc:
        pathlib.Path(doc).write_text(document(result))


if __name__ == "__main__":
    main()
