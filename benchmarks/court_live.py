"""Claim: of real MPI programs the slow rank is named, with its cost and, where the kernel may be traced, its cause.

Four ranks work and communicate as a ring, a halo exchange, allreduces, or a master with workers; some 0.7 s. One rank
is made late by at least 5 % of the run:
  sleep   it sleeps longer in each step
  quota   it computes in a control group with a quota of CPU time (root)
  stop    `crosswind inject` stops it, 12 ms each 80 ms or so
  hog     another process computes on its CPU
Of 30 such runs the right rank must be named in 29; in 27 its seconds must lie within the interval, and the cause must
be named. `pair`: two ranks hide each other, and both must be named. `none`: nothing is done, and no rank may be named.
The truth is of the ranks' own stamps (`recorded_jobs/jobs.py`): when the job had ended, had the rank been as late as
the others are, from MPI_Init on: in its work, and while it communicated. What the stamps leave open is drawn; the
interval must hold the truth within the error of both. `alone` counts those that hold its mean.
Ranks that do not compute sleep until their work is over, so two CPUs do; whatever else the host does makes ranks late
that are not meant to be.
The master does what no other rank does, so that it always sleeps longer cannot be told; in `sleep` and `pair`, a worker
is late.

The record grows by each run, so it can be made in several quiet sittings. A second call continues the record:
    python benchmarks/court_live.py [--runs 30] [--minutes 5] [--fresh] [KIND...]
KIND: sleep, quota, stop, hog, pair, none; none given: all. `--runs`: of the four with one straggler together, and as
many of `pair` and of `none`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import record

sys.path.insert(0, str(Path(__file__).parent / "recorded_jobs"))
from jobs import (
    CROSSWIND,
    PATTERNS,
    beside,
    blamed,
    compiled,
    cost_s,
    missing,
    mpirun,
    ran,
    recorded,
    seconds_of,
    stamps,
)

NAME = "court_live"
RANKS, STEPS, WORK_US = 4, 80, 4000
ONE = ("sleep", "quota", "stop", "hog")
KINDS = (*ONE, "pair", "none")
CAUSES = {"sleep": "off the processor", "quota": "quota", "stop": "stopped", "hog": "hog"}
"""What the name of the first cause must hold."""
LEAST = 0.05
"""Part of the run that a straggler must cost to count."""
CPU_GROUP = Path("/sys/fs/cgroup/cpu")


@contextmanager
def quota(share: float) -> Iterator[Path | None]:
    """Make a control group that may use a part of a CPU; None where that is not permitted."""
    two = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = (Path("/sys/fs/cgroup") if two else CPU_GROUP) / f"court-{os.getpid()}"
    try:
        group.mkdir()
        if two:
            (group / "cpu.max").write_text(f"{round(10_000 * share)} 10000")
        else:
            (group / "cpu.cfs_period_us").write_text("10000")
            (group / "cpu.cfs_quota_us").write_text(str(round(10_000 * share)))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.rmdir()


def disturbance(rank: int, draw: random.Random) -> str:
    """Return one that stops a rank for 12 ms each 80 ms or so."""
    intervals, at = [], 0.05
    while at < 10.0:
        intervals.append([round(at, 6), 0.012, 0])
        at += draw.uniform(0.06, 0.10)
    cpus = ", ".join(f"{{ cpu = {cpu}, intervals = {intervals if cpu == rank else []} }}" for cpu in range(RANKS))
    head = 'schema_version = 1\nname = "stop"\n[[source]]\nkind = "recorded"\nlength_s = 3000.0\n'
    return f'{head}causes = ["stopped"]\naligned = true\ncpu = [{cpus}]\n'


def one(directory: Path, kind: str, pattern: str, number: int) -> dict[str, Any] | None:
    """Run a job with its straggler and judge its recording; None where this kind cannot be had here."""
    draw = random.Random(f"{kind} {pattern} {number}")
    workers = range(1 if pattern == "master" and kind in ("sleep", "pair") else 0, RANKS)
    late, other = draw.sample(workers, 2)
    phase = draw.randrange(2)
    cpus = sorted(os.sched_getaffinity(0))
    own = ["-"]
    if kind in ("quota", "stop", "hog"):  # alone on the last one
        others = [cpu for cpu in cpus[:-1] for _ in range(RANKS)]
        own = [str(cpus[-1] if rank == late else others[rank * (len(cpus) - 1)]) for rank in range(RANKS)]
    extra = draw.randint(800, 3000)
    how = {
        "sleep": f"{late}:{phase}:sleep:{extra}",
        "stop": f"{late}:0:compute:0",
        "hog": f"{late}:0:compute:0",
        "pair": f"{late}:0:sleep:{extra}+{other}:1:sleep:{extra}",
        "none": "-",
    }
    (directory / "out").mkdir(exist_ok=True)
    (directory / "go").unlink(missing_ok=True)
    loads = [os.getloadavg()[0]]

    def run(words: str, before: list[str]) -> float:
        job = mpirun(RANKS, pattern, STEPS, WORK_US, "out", ",".join(own), words)
        return seconds_of(ran([*before, *recorded(), *job, "go"], directory, codes=(0, 3)))

    if kind == "quota":
        with quota(draw.uniform(0.6, 0.85)) as group:
            if group is None:
                return None
            seconds = run(f"{late}:0:group:{group}", [])
    elif kind == "stop":
        (directory / "stop.toml").write_text(disturbance(late, draw))
        inject = [*CROSSWIND, "inject", "stop.toml", "--ranks", str(RANKS), "--how", "stop", "--start-file", "go", "--"]
        seconds = run(how[kind], inject)
    elif kind == "hog":
        with beside(["./hog", own[late], str(draw.randint(2000, 5000)), str(draw.randint(8000, 15000))], directory):
            seconds = run(how[kind], [])
    else:
        seconds = run(how[kind], [])
    loads.append(os.getloadavg()[0])
    guilty = {"pair": [late, other], "none": []}.get(kind, [late])
    found, truth = blamed(directory), stamps(directory / "out", RANKS)
    true_s, error_s = cost_s(pattern, truth, guilty)
    culprits = found["culprits"]
    causes = sorted((cause for one in culprits for cause in one["causes"]), key=lambda cause: -cause["seconds"])
    return {
        "kind": kind,
        "pattern": pattern,
        "number": number,
        "guilty": sorted(guilty),
        "named": sorted(rank for one in culprits for rank in one["ranks"]),
        "verdict": found["verdict"],
        "reason": found["reason"],
        "job_s": seconds,
        "true_s": true_s,
        "true_error_s": error_s,
        "alone_s": [cost_s(pattern, truth, [rank])[0] for rank in guilty],
        "seconds": [one["seconds"] for one in culprits],
        "ci95": [one["ci95"] for one in culprits],
        "causes": [[cause["name"], cause["seconds"]] for cause in causes],
        "load_1_min": loads,
    }


def judged(run: dict[str, Any]) -> dict[str, bool]:
    """Return whether a run's ranks, seconds and cause are right; `alone`: the truth taken as exact."""
    # Shares of ranks that are named apart add up to what they cost together.
    low, high = (sum(ends[at] for ends in run["ci95"]) for at in (0, 1))
    off, half = abs(run["true_s"] - (low + high) / 2), (high - low) / 2
    cause = CAUSES.get(run["kind"])
    return {
        "rank": run["named"] == run["guilty"],
        "seconds": bool(run["ci95"]) and off <= math.hypot(half, 1.96 * run["true_error_s"]),
        "alone": bool(run["ci95"]) and off <= half,
        "cause": cause is None or bool(run["causes"] and cause in run["causes"][0][0]),
    }


def counted(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many of each kind are right, of those that cost enough."""
    table = {}
    for kind in KINDS:
        of = [run for run in runs if run["kind"] == kind]
        if kind in ONE:
            of = [run for run in of if run["true_s"] >= LEAST * run["job_s"]]
        if of:
            right = [judged(run) for run in of]
            names = ["rank"] if kind == "none" else ["rank", "seconds", "alone"] if kind == "pair" else list(right[0])
            table[kind] = {"runs": len(of)} | {name: sum(each[name] for each in right) for name in names}
    return table


def passes(table: dict[str, Any], runs: int) -> bool | None:
    """Whether the claim holds; None while runs are missing."""
    one = [table[kind] for kind in ONE if kind in table]
    count = sum(kind["runs"] for kind in one)
    if count < runs or any(table.get(kind, {"runs": 0})["runs"] < runs for kind in ("pair", "none")):
        return None

    def misses(name: str) -> int:
        return count - sum(int(kind[name]) for kind in one)

    both, healthy = table["pair"], table["none"]
    return (
        30 * misses("rank") <= count
        and 30 * misses("seconds") <= 3 * count
        and 30 * misses("cause") <= 3 * count
        and 30 * (both["runs"] - both["rank"]) <= both["runs"]
        and healthy["rank"] == healthy["runs"]
    )


def main() -> None:
    """Run what is missing, as far as the time goes; print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--fresh", action="store_true", help="forget the runs recorded before")
    options = parser.parse_args()
    if why := missing():
        raise SystemExit(f"error: {why}")
    path = record.RECORDS / f"{NAME}.json"
    if options.fresh:
        path.unlink(missing_ok=True)
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    wanted = []
    for number in range(options.runs):
        for kind in ("pair", "none"):
            wanted.append((kind, PATTERNS[number % len(PATTERNS)], number))
        wanted.append((ONE[number % len(ONE)], PATTERNS[number // len(ONE) % len(PATTERNS)], number))
    over = time.monotonic() + 60 * options.minutes
    left = 0
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        compiled(directory)
        for kind, pattern, number in wanted:
            known = any((run["kind"], run["number"]) == (kind, number) for run in runs)
            if known or (options.kinds and kind not in options.kinds):
                continue
            if time.monotonic() > over:
                left += 1
                continue
            last = one(directory, kind, pattern, number)
            if last is None:
                print(f"{kind}: not permitted here", flush=True)
                continue
            runs.append(last)
            right = judged(last)
            wrong = [
                name for name in right if not right[name] and name != "alone" and (kind, name) != ("none", "seconds")
            ]
            found = [[round(end, 3) for end in ends] for ends in last["ci95"]]
            causes = [(name, round(seconds, 3)) for name, seconds in last["causes"][:2]]
            said = f" WRONG: {', '.join(wrong)}" if wrong else ""
            print(
                f"{kind:6} {pattern:9} {number:3}: {last['guilty']} named {last['named']}, "
                f"true {last['true_s']:.3f} s of {last['job_s']:.3f} s, found {found}, {causes}{said}",
                flush=True,
            )
            table = counted(runs)
            record.write(NAME, ["openmpi"], table=table, passed=passes(table, options.runs), runs=runs)
    for kind, row in counted(runs).items():
        print(kind, row)
    print(f"{path}; {left} runs are left")


if __name__ == "__main__":
    main()
