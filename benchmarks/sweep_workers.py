"""Claim: a sweep uses the machine: of points that take a millisecond or more, two cores simulate nearly twice as many.

A sweep of the fork graph of table 4 over orders, ports and works, with 100 to 100,000 tasks a point, by one thread and
by one for each processor, in shuffled order, in one process. What Python does for a point (its description made, its
run read) is not spread, so that points of a hundred tasks gain less.

    python benchmarks/sweep_workers.py [repetitions]
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import record

from crosswind import Experiment
from crosswind.run.grid import run

PLATFORM = Path(__file__).parents[1] / "examples" / "fork_of_table_4_corrected.toml"
SWEEPS = {100: 2400, 1000: 2400, 100_000: 80}
"""Tasks of a point -> points."""
GAINS = {100: 1.2, 1000: 1.5, 100_000: 1.8}
"""The same -> the gain claimed on two processors."""


def sweep(tasks: int, points: int) -> Experiment:
    """Return an experiment of so many points."""
    ports, orders = ["single", "multi"], ["interference", "bandwidth", "arrival", "planned"]
    works = [1 + n / 100 for n in range(points // len(ports) // len(orders))]
    return Experiment.from_dict(
        {
            "schema_version": 1,
            "name": f"{tasks} tasks",
            "platform": str(PLATFORM),
            "workload": {"kind": "farm", "tasks": tasks, "task_size_mb": 2.0, "task_work": 5.0},
            "sweep": {"policy.ports": ports, "policy.order": orders, "workload.task_work": works},
        }
    )


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cpus = len(os.sched_getaffinity(0))
    turns = [(tasks, workers) for tasks in SWEEPS for workers in (1, cpus) for _ in range(repetitions)]
    random.Random(0).shuffle(turns)
    times: dict[tuple[int, int], list[float]] = {}
    for tasks, workers in turns:
        experiment = sweep(tasks, SWEEPS[tasks])
        start = time.perf_counter()
        run(experiment, workers=workers)
        times.setdefault((tasks, workers), []).append(time.perf_counter() - start)
    cases = []
    for tasks, points in SWEEPS.items():
        one, all_ = (record.spread(times[tasks, workers]) for workers in (1, cpus))
        gain = one["median"] / all_["median"]
        cases.append({"tasks": tasks, "points": points, "one_s": one, "all_s": all_, "gain": gain})
        took = f"{one['median']:.3f} s, {cpus} threads {all_['median']:.3f} s"
        print(f"{points:>5} points of {tasks:>6} tasks: {took}: {gain:.2f}")
    holds = {f"{case['tasks']} tasks": case["gain"] > GAINS[case["tasks"]] for case in cases}
    print(record.write("sweep_workers", [], claim=GAINS, cpus=cpus, holds=holds, cases=cases))


if __name__ == "__main__":
    main()
