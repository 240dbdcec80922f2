"""Claims: `crosswind check` calls a healthy node sick in at most 1 % of checks, and finds faults that were made.

- healthy: the node as it is, against a baseline of the same hour; 200 runs, at most 2 sick.
- daemon: a process that takes 10 % of the only CPU, 2 ms at a time. quota: the only CPU is had for half of each 20 ms.
- link: the path to a peer in another namespace carries a third of what it did (the testbed; needs root).
- memory: a program on each other CPU writes to memory as fast as it can (`memory_lost` says what that takes from the
  CPU that is checked; a machine whose cores cannot fill the path to memory may lose less than half).

- drift: in virtual time, drawn, 1,500 checks of each: a node that loses 0.2, 0.5, 1 or 2 % of its speed from check to
  check is never healthy once it has lost more than 13 % (the tolerance and what the first five checks scatter), and is
  sick in the end; one that loses nothing is sick in at most 1 % of checks, with checks that lie 1, 2 or 5 % apart. It
  needs no quiet host and about 2 minutes: `python benchmarks/check_known.py 1 drift`.

Each of 20 runs, found in 19 at least. A baseline is saved before every 20 runs, without the fault. All but `healthy`
are on one CPU, so that the other one is free to make the fault.

    python benchmarks/check_known.py [RUNS [CASE ...]]

Without arguments it is a short try, printed and not recorded. Runs are added to those in the record, each with its
time and commit; 20 runs of a case take about 8 minutes. Quiet host.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import record

from crosswind.check.decision import Reading
from crosswind.check.result import Check

sys.path.insert(0, str(Path(__file__).parent / "testbed_farms"))
from nodes import Testbed, missing

NAME = "check_known"
DRIFTS = [(losing, 0.01) for losing in (0.002, 0.005, 0.01, 0.02)] + [(0.0, apart) for apart in (0.01, 0.02, 0.05)]
"""Speed lost from check to check, and how far checks lie apart."""
NODES, CHECKS = 10, 150
CASES = ("drift", "healthy", "daemon", "quota", "link", "memory")
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


def course(losing: float, apart: float, seed: int) -> Iterator[tuple[float, str]]:
    """Yield the speed of a node with two CPUs at each check, and the verdict against its earlier ones."""
    rng, before = random.Random(seed), list[Check]()
    load, host = {"others": 0.0, "steal": 0.0}, {"name": "drawn", "settings": {}}
    for number in range(CHECKS):
        speed, readings = (1 - losing) ** number, {}
        for cpu in range(2):
            for name, part in (("compute", 1.0), ("memory", 2.0)):
                rate = 100 * speed * rng.gauss(1, apart)
                values = tuple(rate * rng.gauss(1, 0.01) for _ in range(10))
                readings[f"{name} cpu {cpu}"] = Reading(values, part=part).to_dict()
            values = tuple(abs(rng.gauss(0.005, 0.003)) for _ in range(10))
            readings[f"lost time cpu {cpu}"] = Reading(values, "share", excusable=True, part=0.5).to_dict()
        document = {"at": f"{number:04}", "host": host, "tolerance": 0.1, "readings": readings, "load": load}
        document |= {"hidden": None, "interrupted": False, "warnings": [], "took_s": 0.0}
        found = Check(document, None, list(before))
        yield speed, found.outcome if found.is_judged else "not judged"
        before.append(Check(document))


def drift(losing: float, apart: float) -> dict[str, Any]:
    """Return what the checks of drawn nodes said."""
    found = [list(course(losing, apart, seed)) for seed in range(NODES)]
    outcomes = Counter(outcome for one in found for _, outcome in one)
    judged = sum(outcomes.values()) - outcomes["not judged"]
    wrong = sum(outcome == "healthy" and speed < 0.87 for one in found for speed, outcome in one)
    first = [next((speed for speed, outcome in one if outcome == "sick"), None) for one in found]
    ends_sick = all(one[-1][1] == "sick" for one in found)
    reached = not wrong and ends_sick if losing else outcomes["sick"] <= 0.01 * judged
    return {
        "losing": losing,
        "apart": apart,
        **outcomes,
        "healthy_beyond_the_tolerance": wrong,
        "speed_when_first_sick": record.spread([speed for speed in first if speed]) if losing and all(first) else None,
        "reached": reached,
    }


def told(case: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Count verdicts; of memory also what was lost."""
    if case == "drift":
        return {"runs": NODES * CHECKS * len(runs), "reached": all(run["reached"] for run in runs)}
    outcomes = [run["outcome"] for run in runs]
    counts = {outcome: outcomes.count(outcome) for outcome in ("healthy", "sick", "unknown")}
    sick = counts["sick"] / len(runs)
    lost = [each["loss"] for run in runs for each in run["judged"] if each["name"].startswith("memory")]
    about = {"memory_lost": record.spread(lost)} if case == "memory" and lost else {}
    enough = len(runs) >= (200 if case == "healthy" else 20)
    reached = (sick <= 0.01 if case == "healthy" else sick >= 0.95) if enough else None
    return {"runs": len(runs), **counts, **about, "reached": reached}


def write(known: dict[str, list[dict[str, Any]]]) -> None:
    record.write(NAME, ["numpy"], cases={one: told(one, runs) for one, runs in known.items()}, runs=known)


def main() -> None:
    recorded = len(sys.argv) > 1
    most = int(sys.argv[1]) if recorded else 1
    file = record.RECORDS / f"{NAME}.json"
    known: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())["runs"] if file.exists() else {}
    for case in sys.argv[2:] or CASES:
        if case not in CASES:
            raise SystemExit(f"{case!r} is no case; there are {', '.join(CASES)}")
        if case == "drift":
            known["drift"] = []
            for losing, apart in DRIFTS:
                known["drift"].append(drift(losing, apart))
                print(case, known["drift"][-1], flush=True)
            if recorded:
                write(known)
            continue
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
                        write(known)
        print(case, told(case, known[case]))


if __name__ == "__main__":
    main()
