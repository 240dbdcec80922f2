"""Claims: `crosswind check` calls a healthy node sick in at most 1 % of checks, and finds faults that were made.

- healthy: the node as it is, against a baseline of the same hour; 200 runs, at most 2 sick.
- daemon: a process that takes 10 % of the only CPU, 2 ms at a time. quota: the only CPU is had for half of each 20 ms.
- link: the path to a peer in another namespace carries a third of what it did (the testbed; needs root).
- memory: a program on each other CPU writes to memory as fast as it can (`memory_lost` says what that takes from the
  CPU that is checked; a machine whose cores cannot fill the path to memory may lose less than half).

Each of 20 runs, found in 19 at least. A baseline is saved before every 20 runs, without the fault. All but `healthy`
are on one CPU, so that the other one is free to make the fault.

    python benchmarks/check_known.py [RUNS [CASE ...]]

Without arguments it is a short try, printed and not recorded. Runs are added to those in the record, each with its
time and commit; 20 runs of a case take about 8 minutes. Quiet host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import record

sys.path.insert(0, str(Path(__file__).parent / "testbed_farms"))
from nodes import Testbed, missing

NAME = "check_known"
CASES = ("healthy", "daemon", "quota", "link", "memory")
AT_ONCE = 20
"""Runs against one baseline."""
TOKEN = "a token for namespaces only"
LINK, THIRD = 60.0, 20.0
SPEC = {
    "prefix": "tbc",
    "subnet": "10.89.0.0/24",
    "nodes": {"here": {}, "there": {}},
    "links": [{"from": "there", "to": "here", "MBps": LINK, "back": LINK}],
}
PORT = 7117
DAEMON = """
import time
while True:
    begun = time.thread_time()
    while time.thread_time() - begun < 0.002: pass
    time.sleep(0.018)
"""
HOG = """
import ctypes
size = 1 << 28
block = ctypes.create_string_buffer(size)
while True: ctypes.memset(block, 1, size)
"""


def crosswind(prefix: list[str], *words: str | Path) -> dict[str, Any]:
    """Run a check and return its document."""
    command = [*prefix, sys.executable, "-m", "crosswind.cli", "check", "--json", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3) or not done.stdout:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def running(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def half_of_a_cpu() -> Iterator[list[str]]:
    """Yield what a command begins with that gets 10 of each 20 ms of a CPU."""
    group = Path("/sys/fs/cgroup/cpu/crosswind-check-known")
    group.mkdir(exist_ok=True)
    try:
        (group / "cpu.cfs_period_us").write_text("20000")
        (group / "cpu.cfs_quota_us").write_text("10000")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()


@contextmanager
def path() -> Iterator[tuple[Testbed, list[str], list[str]]]:
    """Yield a testbed, what a command there begins with, and the options for its peer."""
    with Testbed(SPEC) as bed:
        token = bed.logs / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        at = f"{bed.addresses['there']}:{PORT}"
        serve = [sys.executable, "-m", "crosswind.cli", "serve", "--listen", at, "--token-file", str(token)]
        with running([*bed.on("there"), *serve]):
            yield bed, bed.on("here"), ["--peer", at, "--token-file", str(token)]


def checks(case: str, runs: int, directory: Path) -> Iterator[dict[str, Any]]:
    """Save a baseline, make the fault, and yield that many checks."""
    good = directory / "good.json"
    alone = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    with ExitStack() as stack:
        prefix, words, bed = ([] if case == "healthy" else alone), list[str](), None
        if case == "link":
            bed, inside, words = stack.enter_context(path())
            prefix = [*inside, *alone]
        crosswind(prefix, "--save", good, "--force", *words)
        if case == "daemon":
            stack.enter_context(running([*alone, sys.executable, "-S", "-c", DAEMON]))
        if case == "quota":
            prefix = [*stack.enter_context(half_of_a_cpu()), *alone]
        if bed is not None:
            bed.change("there:here", MBps=THIRD)
        if case == "memory":
            for cpu in sorted(os.sched_getaffinity(0))[:-1]:
                stack.enter_context(running(["taskset", "-c", str(cpu), sys.executable, "-c", HOG]))
        for _ in range(runs):
            at = datetime.now(UTC).isoformat(timespec="seconds")
            found = crosswind(prefix, "--baseline", good, *words)
            yield {"at": at, **record.state_of_the_code(), "load": found["load"], **found["result"]}


def told(case: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Count verdicts; of memory also what was lost."""
    outcomes = [run["outcome"] for run in runs]
    counts = {outcome: outcomes.count(outcome) for outcome in ("healthy", "sick", "unknown")}
    sick = counts["sick"] / len(runs)
    lost = [each["loss"] for run in runs for each in run["judged"] if each["name"].startswith("memory")]
    about = {"memory_lost": record.spread(lost)} if case == "memory" and lost else {}
    enough = len(runs) >= (200 if case == "healthy" else 20)
    reached = (sick <= 0.01 if case == "healthy" else sick >= 0.95) if enough else None
    return {"runs": len(runs), **counts, **about, "reached": reached}


def main() -> None:
    recorded = len(sys.argv) > 1
    most = int(sys.argv[1]) if recorded else 1
    file = record.RECORDS / f"{NAME}.json"
    known: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())["runs"] if file.exists() else {}
    for case in sys.argv[2:] or CASES:
        if case not in CASES:
            raise SystemExit(f"{case!r} is no case; there are {', '.join(CASES)}")
        if case in ("link", "quota") and (why := missing()):
            print(f"{case} skipped: {why}")
            continue
        left = most
        while left > 0:
            with tempfile.TemporaryDirectory() as directory:
                for run in checks(case, min(left, AT_ONCE), Path(directory)):
                    left -= 1
                    print(case, run["sentence"], flush=True)
                    known.setdefault(case, []).append(run)
                    if recorded:
                        record.write(
                            NAME, ["numpy"], cases={one: told(one, runs) for one, runs in known.items()}, runs=known
                        )
        print(case, told(case, known[case]))


if __name__ == "__main__":
    main()
