"""Claim: the root's memory is bounded by its buffers, not by the number of tasks: 1,000,000 file tasks under 500 MB.

Each case is a process of its own, whose largest resident set counts, with few tasks and with many:

- `run_farm`: a source that is taken lazily, of 100 small files over and over; no work; each result is noted in the
  journal and taken.
- `map`: as many calls of a function on this machine.
- `map --resume`: as many distinct input files (links to a few, in directories of 1000), of which an earlier
  run has done all but some; the command runs for those. It keeps their paths, and what the journal knows of each.

    python benchmarks/root_memory.py [--tasks 1000000]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import record

import crosswind
from crosswind import Platform
from crosswind.run.agents import Task, Work, run_farm
from crosswind.run.command import JOURNAL, map_command
from crosswind.run.resume import digest_of, digest_of_file

NAME = "root_memory"
LIMIT_MB = 500
FEW = 10_000
FILES, FILE_BYTES = 100, 200
LEFT = 2_000
"""Inputs that the earlier run has not done."""
PER_DIRECTORY = 1_000


def tree() -> Platform:
    link = {"parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1000.0}
    nodes = [{"name": "r", "compute_per_s": 0.0}, {"name": "a", **link}, {"name": "b", **link}]
    return Platform.from_dict({"schema_version": 1, "name": NAME, "node": nodes})


def farm(tasks: int, directory: Path) -> int:
    """Tasks delivered by `run_farm`."""
    files = [directory / f"{number}.in" for number in range(FILES)]
    for file in files:
        file.write_bytes(os.urandom(FILE_BYTES))
    workload = {"kind": "farm", "tasks": tasks, "task_size_mb": FILE_BYTES / 1e6, "task_work": 1.0}
    policy = {"order": "arrival", "buffer_tasks": 1000}
    point = {"schema_version": 1, "name": NAME, "platform": "", "workload": workload, "policy": policy}
    delivered = 0

    def source() -> Iterator[Task]:
        for number in range(tasks):
            yield Task(files[number % FILES], 1.0)

    def sink(_: object) -> None:
        nonlocal delivered
        delivered += 1

    run_farm(tree(), point, Work("noop"), source=source(), sink=sink, journal=directory / "journal")
    assert delivered == tasks
    return delivered


def links(tasks: int, directory: Path) -> None:
    """Distinct inputs that take no room."""
    content = directory / "content"
    content.mkdir()
    for number in range(tasks):
        below = directory / "in" / f"{number // PER_DIRECTORY:04}"
        one = content / f"{number // 30_000}"  # a file has at most 65,000 names
        if number % PER_DIRECTORY == 0:
            below.mkdir(parents=True)
        if number % 30_000 == 0:
            one.write_bytes(os.urandom(FILE_BYTES))
        os.link(one, below / f"measured-{number:08}.dat")


def earlier(out: Path, inputs: Path, done: int) -> None:
    """Append to a journal that a run has begun what it had done: records as of crates/live/src/farm/journal.rs."""
    with (out / JOURNAL).open("ab") as journal:
        # In the order of their names, without a list of all: a child's peak memory counts from its parent's.
        for number in range(LEFT, LEFT + done):
            file = inputs / f"{number // PER_DIRECTORY:04}" / f"measured-{number:08}.dat"
            called = file.name
            label = os.fsencode(file.absolute())
            known = digest_of_file(file, by_content=False), digest_of(COMMAND, called)
            told = struct.pack(">I", len(label)) + label + struct.pack(">QQBQ", *known, 1, 0)
            journal.write(told + struct.pack(">I", zlib.crc32(told)))
            (out / called).touch()


def mapped(tasks: int, directory: Path) -> int:
    """Results of `map`."""
    return sum(1 for _ in crosswind.map(abs, range(tasks)))


def command(tasks: int, directory: Path) -> int:
    """Tasks delivered by `crosswind map --resume`; directory as `prepare` leaves it."""
    runs = map_command(COMMAND, [str(directory / "in" / "*" / "*")], directory / "out", platform=tree(), resume=True)
    return int(runs[0].data["tasks"])


COMMAND = "true {input}"


def prepare(tasks: int, directory: Path) -> None:
    """All inputs, and the journal of a run that was ended when all but LEFT were done."""
    links(tasks, directory)
    words = "import sys; from root_memory import *; begin(int(sys.argv[1]), Path(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", words, str(tasks), str(directory)], cwd=Path(__file__).parent, check=True)
    earlier(directory / "out", directory / "in", tasks - LEFT)


def begin(tasks: int, directory: Path) -> None:
    """Have a run write the head of its journal, and end it at once."""

    def stop(fraction: float, message: str) -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        map_command(COMMAND, [str(directory / "in" / "*" / "*")], directory / "out", platform=tree(), progress=stop)


CASES = {"run_farm": farm, "map": mapped, "map --resume": command}


def measured(case: str, tasks: int) -> dict[str, float | int | str]:
    """Run a case in a process of its own."""
    directory = Path(tempfile.mkdtemp(prefix="crosswind-root-memory-"))
    try:
        if case == "map --resume":
            prepare(tasks, directory)
        words = [sys.executable, __file__, "--case", case, "--directory", str(directory), "--tasks", str(tasks)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        found: dict[str, float | int | str] = json.loads(done.stdout.splitlines()[-1])
        return found
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--case", choices=CASES, help="only this one, here, printed as JSON")
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    if options.case and options.directory:
        begun, before_mb = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        delivered = CASES[options.case](options.tasks, options.directory)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        found = {"case": options.case, "tasks": options.tasks, "delivered": delivered, "peak_mb": peak_mb}
        print(json.dumps({**found, "before_mb": before_mb, "seconds": time.monotonic() - begun}))
        return
    runs = []
    for case in [options.case] if options.case else list(CASES):
        for tasks in (FEW, options.tasks):
            runs.append(measured(case, tasks))
            print(runs[-1], flush=True)
    holds = all(run["peak_mb"] < LIMIT_MB for run in runs)
    print(record.write(NAME, ["numpy", "pyarrow"], limit_mb=LIMIT_MB, holds=holds, runs=runs))
    sys.exit(not holds)


if __name__ == "__main__":
    main()
