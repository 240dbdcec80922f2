"""Claims: `crosswind cost` and `compare` raise at most 6 % false alarms, looks included, and find known duties.

False alarms: what is stopped and continued sleeps; a job is called slowed when the interval of wall, or of own, lies
above 0 at the look at which the session ended. Likewise two identical commands. 200 runs of each.

Known duties: a daemon on the job's CPU, or on another, with relative timers (it sleeps between bursts) or absolute ones
(it catches up), ten times a second, of 0.5, 1, 2 and 5 % of a CPU, or bursts of 10 ms a second. The truth on the job's
CPU is the CPU time that the daemon uses per second while nothing stops it, measured beside the same job for half as
long as a session; on another CPU it is 0. What a daemon costs beside its CPU time (caches, switches) counts as bias: it
is 0.1 points of 50 wake-ups a second on the host of the record, so the daemons wake as often as exporters do. Asked:
bias at most 0.2 points up to a duty of 2 %, 90 % of the 95 % intervals cover the truth, in 40 runs of each.

Exporter: a process that reads much of /proc ten times a second, on the CPU of a `gzip` whose place in its input is the
progress. The truth is the exporter's CPU time and what `own` sees.

How long 1 % takes to be known is `session_s` of the sessions that end by themselves ("detected"; asked: 30 s): from the
call to its answer, the undisturbed part included, while `blocks_s` is the wall time of the blocks only. Under "detected
busy" another process takes half of the job's CPU meanwhile (asked: 120 s, or "unknown").

    python benchmarks/cost_known.py [RUNS SECONDS [CASE ...]]

Without arguments it is a short try, printed and not recorded (`make bench`).

Cases: sleep, identical, exporter, detected, detected busy, and duties such as `1 relative same`, `2 absolute other`,
`bursts same`. Runs are added to those in the record, each with its time and commit, one of every case in turn, so that
it can be made in parts and stopped at any time; an interrupted session is left out. Quiet host; a run of 6 s of every
case takes 4 minutes.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import record

from crosswind.compare import compare
from crosswind.cost import cost
from crosswind.cost.result import Cost

NAME = "cost_known"
ASKED_RUNS, ASKED_ALARMS = 40, 200
PERIOD_S = 0.1
TEXT_BYTES = 1 << 30
"""Some 60 s of `gzip -9`."""
DAEMON = """
import os, sys, time
cpu, period, burst, how = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
os.sched_setaffinity(0, {cpu})
due = time.monotonic()
while True:
    begun = time.thread_time()
    while time.thread_time() - begun < burst: pass
    if how == "relative":
        time.sleep(period - burst)
    else:
        due += period
        time.sleep(max(due - time.monotonic(), 0))
"""
EXPORTER = """
import glob, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    for each in ("/proc/stat", "/proc/meminfo", "/proc/net/dev", "/proc/diskstats", *glob.glob("/proc/[0-9]*/stat")):
        try: open(each).read()
        except OSError: pass
    time.sleep(0.1)
"""
DUTIES = [
    f"{duty} {how} {where}"
    for duty in ("0.5", "1", "2", "5")
    for how in ("relative", "absolute")
    for where in ("same", "other")
]
BURSTS = ["bursts same", "bursts other"]
CASES = ["sleep", "identical", "exporter", "detected", "detected busy", *DUTIES, *BURSTS]
FOR_DETECTION_S = {"detected": 30.0, "detected busy": 120.0}
TRY = ["sleep", "identical", "2 relative same", "1 absolute same"]
IDENTICAL = f"{sys.executable} -S -c 'sum(range(300_000))'"


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def job(directory: Path, cpu: int) -> Iterator[tuple[int, str]]:
    """Run a built-in kernel on a CPU: its process, and what tells its progress."""
    counter = directory / "counter"
    counter.write_bytes(bytes(8))
    with running([sys.executable, "-m", "crosswind.cost.kernel", "burn", str(cpu), str(counter)]) as process:
        while counter.read_bytes() == bytes(8):
            time.sleep(0.05)
        yield process.pid, f"u64:{counter}"


@contextmanager
def compression(directory: Path, cpu: int) -> Iterator[tuple[int, str]]:
    """Compress this project's text, again and again, on a CPU."""
    text = b"".join(each.read_bytes() for each in sorted(Path(__file__).parents[1].glob("crates/*/src/**/*.rs")))
    source = directory / "text"
    with source.open("wb") as file:
        while file.tell() < TEXT_BYTES:
            file.write(text)
    command = ["taskset", "-c", str(cpu), "gzip", "-9"]
    with source.open("rb") as file, running(command, stdin=file, stdout=subprocess.DEVNULL) as process:
        time.sleep(0.5)
        yield process.pid, "stdin-position"


def daemon(directory: Path, cpu: int, period: float, burst: float, how: str) -> list[str]:
    script = directory / "daemon.py"
    script.write_text(DAEMON)
    return [sys.executable, "-S", str(script), str(cpu), str(period), str(burst), how]


def daemon_of(case: str, directory: Path, cpus: list[int]) -> list[str]:
    if case == "exporter":
        return [sys.executable, "-S", "-c", EXPORTER, str(cpus[-1])]
    *kind, where = case.split()
    cpu = cpus[-1] if where == "same" else cpus[0]
    if kind == ["bursts"]:
        return daemon(directory, cpu, 1.0, 0.01, "relative")
    return daemon(directory, cpu, PERIOD_S, 0.01 * float(kind[0]) * PERIOD_S, kind[1])


def true_duty(command: list[str], seconds: float) -> float:
    """CPU s per s of a daemon that is left alone."""
    with running(command) as process:
        time.sleep(0.5)
        clock = (~process.pid << 3) | 2
        before, begun = time.clock_gettime(clock), time.monotonic()
        time.sleep(seconds)
        return (time.clock_gettime(clock) - before) / (time.monotonic() - begun)


def of(found: Cost) -> dict[str, Any]:
    one = found.costs[0]
    return {
        "outcome": found.verdict.outcome,
        "headline": one.headline,
        "blocks_s": found.measured_s,
        "quads": len(one.quads),
        "catches_up": one.catches_up,
        "steal_share": found.document["steal_share"],
        "job_share": float(one.quads.job_cpu_s.sum() / one.quads.wall_s.sum()),
        **{name: [each.value, each.half_width(one.level)] for name, each in one.estimates.items()},
    }


def session(case: str, seed: int, seconds: float, directory: Path) -> dict[str, Any]:
    """Measure once: the truth and what was found."""
    cpus = sorted(os.sched_getaffinity(0))
    detects = case in FOR_DETECTION_S
    command = (
        ["sleep", "3600"] if case == "sleep" else daemon_of("1 relative same" if detects else case, directory, cpus)
    )
    with ExitStack() as stack:
        pid, progress = stack.enter_context((compression if case == "exporter" else job)(directory, cpus[-1]))
        if case == "detected busy":
            other = directory / "other"
            other.mkdir()
            stack.enter_context(running(daemon(other, cpus[-1], 0.02, 0.01, "relative")))
        truth = 0.0 if case == "sleep" or case.endswith("other") else true_duty(command, seconds / 2)
        begun = time.monotonic()
        found = cost(
            f"command:{shlex.join(command)}",
            job=pid,
            progress_of=progress,
            seconds=FOR_DETECTION_S.get(case, seconds),
            margin=0.005 if detects else 0.01,
            to_the_end=case != "sleep" and not detects,
            seed=seed,
        )
        session_s = time.monotonic() - begun
    if found.interrupted:
        raise SystemExit("interrupted: this session is left out")
    print(case, seed, f"{100 * truth:.3f}", found.sentence, flush=True)
    return {"asked_seconds": seconds, "true": truth, "session_s": session_s, **of(found)}


def identical(seed: int, seconds: float) -> dict[str, Any]:
    """Compare a command with itself once."""
    found = compare(IDENTICAL, IDENTICAL, seconds=seconds, seed=seed)
    if found.interrupted:
        raise SystemExit("interrupted: this session is left out")
    each = {by: [found.estimate(by).value, found.estimate(by).half_width(found.level)] for by in ("wall", "cpu")}
    print("identical", seed, found.sentence, flush=True)
    return {"asked_seconds": seconds, "outcome": found.verdict.outcome, "quads": len(found.pairs), **each}


def told(case: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what all runs of a case come to."""
    found: dict[str, Any] = {"runs": len(runs)}
    if case in ("sleep", "identical"):
        names = ("wall", "own") if case == "sleep" else ("wall", "cpu")
        alarms = {name: sum(one[name][0] - one[name][1] > 0 for one in runs) for name in names}
        if case == "identical":
            alarms = {name: sum(abs(one[name][0]) > one[name][1] for one in runs) for name in names}
        reached = max(alarms.values()) <= 0.06 * len(runs) if len(runs) >= ASKED_ALARMS else None
        return found | {"false_alarms": alarms, "reached": reached}
    if case in FOR_DETECTION_S:
        known = [one for one in runs if one["outcome"] == "above"]
        outcomes = [one["outcome"] for one in runs]
        counts = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
        times = {name: [one[name] for one in known if name in one] for name in ("session_s", "blocks_s")}
        return found | counts | {name: record.spread(each) for name, each in times.items() if each}
    own = "own" if case == "exporter" else None
    truths = [one["true"] + (one[own][0] if own else 0.0) for one in runs]
    pairs = [(one[one["headline"]], truth) for one, truth in zip(runs, truths, strict=True)]
    covered = sum(abs(value - true) <= half for (value, half), true in pairs)
    bias = float(np.mean([value - true for (value, _), true in pairs]))
    width = float(np.median([half for (_, half), _ in pairs]))
    is_near = abs(bias) <= 0.002 or case.startswith("5") or case == "exporter"
    reached = is_near and covered >= 0.9 * len(runs) if len(runs) >= ASKED_RUNS else None
    return found | {
        "true": float(np.mean(truths)),
        "bias": bias,
        "half_width": width,
        "covered": covered,
        "reached": reached,
    }


def main() -> None:
    recorded = len(sys.argv) > 2
    runs, seconds = (int(sys.argv[1]), float(sys.argv[2])) if recorded else (1, 8.0)
    path = record.RECORDS / f"{NAME}.json"
    known: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())["runs"] if path.exists() else {}
    cases = sys.argv[3:] or (CASES if recorded else TRY)
    for case in cases:
        if case not in CASES:
            raise SystemExit(f"{case!r} is no case; there are {', '.join(CASES)}")
    for case in cases * runs:
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **record.state_of_the_code()}
        seed, load = len(known.setdefault(case, [])), os.getloadavg()[0]
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:  # a counter on a disk would hold the job up
            found = identical(seed, seconds) if case == "identical" else session(case, seed, seconds, Path(directory))
        known[case].append({**about, "load_1_min": load, **found})
        if recorded:
            record.write(NAME, ["numpy"], cases={one: told(one, some) for one, some in known.items()}, runs=known)
    for case in cases:
        print(case, told(case, known[case]))


if __name__ == "__main__":
    main()
