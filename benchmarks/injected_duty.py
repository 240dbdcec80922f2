"""Claim: a CPU-bound program that is away half of the time takes 2.0 times as long, within 5 %.

The program does a fixed amount of work. It runs alone (an injection of nothing) and disturbed by turns, in the order
ABBA and shortly, so that what this machine's speed does meets both; each ratio is that of two neighbouring runs, and
the median counts. On a virtual machine the same work takes 15 % more or less CPU time from one run to the next, so a
second ratio stands beside it: time per CPU second that the program used, disturbed against alone. Where it is
permitted, the program runs at the lowest real-time priority, so that others on the machine do not count (injection is
far above); other jobs at the lowest priority have the CPUs while it is away, as the disturbance says, so that none of
them goes to sleep. Slices begin at another moment in each run (the quantum is a tenth of the program), so that where
its end falls evens out. Besides: the same by the freezer where there is one, and a daemon of 10 ms every 50 ms on the
program's CPU, which must cost it 1 / (1 - 10/50) = 1.25.

    python benchmarks/injected_duty.py [pairs]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import record

from crosswind.inject import inject, means

WORK = """
import os
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    pass
n = 20_000_000
while n: n -= 1
"""
OTHER_JOB = """
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == {parent}: pass
"""
HEAD = 'schema_version = 1\nname = "{name}"\n'
SLICES = HEAD.format(name="half") + '[[source]]\nkind = "local"\nquantum_s = 0.1\njobs = 2\n'
DAEMON = HEAD.format(name="daemon") + '[[source]]\nkind = "daemon"\ninterval_s = 0.05\nduration_s = 0.01\n'
SLICED, BURNT, TOLERANCE = 2.0, 1.25, 0.05


@contextmanager
def others() -> Iterator[None]:
    """Keep every CPU from idling, at the lowest priority of all: a virtual CPU that wakes up is slow for a while."""
    code = OTHER_JOB.format(parent=os.getpid())
    processes = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(file: Path, how: str, pin: bool, seed: int) -> dict:
    injected = inject(file, [sys.executable, "-S", "-c", WORK], how=how, pin=pin, seed=seed)
    if not injected.succeeded:
        raise SystemExit(f"the program failed: {injected.summary}")
    return injected.summary


def cpu_s(summary: dict) -> float:
    return summary["cpu_user_s"] + summary["cpu_system_s"]


def measure(directory: Path, text: str, how: str, pin: bool, pairs: int) -> dict:
    nothing, file = directory / "nothing.toml", directory / "disturbance.toml"
    nothing.write_text(HEAD.format(name="nothing"))
    file.write_text(text)
    run(nothing, how, pin, 0)  # warm
    alone, disturbed = [], []
    for pair in range(pairs):
        for which in (nothing, file) if pair % 2 else (file, nothing):
            (alone if which == nothing else disturbed).append(run(which, how, pin, pair))
    both = list(zip(disturbed, alone, strict=True))
    ranks = [summary["ranks"][0] for summary in disturbed]
    return {
        "ratio": record.spread([d["elapsed_s"] / a["elapsed_s"] for d, a in both]),
        "ratio_per_cpu_s": record.spread([d["elapsed_s"] / cpu_s(d) / (a["elapsed_s"] / cpu_s(a)) for d, a in both]),
        "alone_s": record.spread([summary["elapsed_s"] for summary in alone]),
        "alone_cpu_s": record.spread([cpu_s(summary) for summary in alone]),
        "disturbed_s": record.spread([summary["elapsed_s"] for summary in disturbed]),
        "disturbed_cpu_s": record.spread([cpu_s(summary) for summary in disturbed]),
        "share": record.spread([rank["share"] for rank in ranks]),
        "late_mean_s": record.spread([rank["late_mean_s"] for rank in ranks]),
        "late_max_s": record.spread([rank["late_max_s"] for rank in ranks]),
        "how": sorted({way for rank in ranks for cause in rank["causes"] for way in cause["how"]}),
    }


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    cases = {"stop": (SLICES, "stop", False, SLICED)}
    if means()["no_freezer"] is None:
        cases["freeze"] = (SLICES, "freeze", False, SLICED)
    cases["daemon"] = (DAEMON, "auto", True, BURNT)
    found = {}
    with others(), tempfile.TemporaryDirectory() as directory:
        for name, (*case, asked) in cases.items():
            found[name] = {"asked": asked, **measure(Path(directory), *case, pairs)}
            ratio, per_cpu_s = found[name]["ratio"], found[name]["ratio_per_cpu_s"]
            late = 1e6 * found[name]["late_mean_s"]["median"]
            print(f"{name}: {ratio['median']:.4f} times as long ({ratio['low']:.3f} .. {ratio['high']:.3f});", end=" ")
            print(f"per CPU second {per_cpu_s['median']:.4f}; late by {late:.0f} us")

    def within(which: str) -> bool:
        return all(abs(case[which]["median"] / case["asked"] - 1) < TOLERANCE for case in found.values())

    reached = {"reached": within("ratio"), "reached_per_cpu_s": within("ratio_per_cpu_s")}
    record.write("injected_duty", [], pairs=pairs, within=TOLERANCE, cases=found, **reached)


if __name__ == "__main__":
    main()
