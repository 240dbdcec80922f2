"""Claim: a tree of 1,000 nodes is planned at least 100 times faster than HiGHS gets and solves its linear program.

HiGHS gets the program in arrays, whole, with its default settings on one thread; its building (numpy), hand-over and
solving are timed apart, and the ratio to solving alone stands beside the ratio to all. Both plan the same trees in one
process on one CPU, taking turns in shuffled order; the optima must agree. Each tree is solved many times in a row: the
claim is about the median, when both run warm, and the first calls stand beside it: there the processor knows neither
the tree nor the way through it, which weighs more on the shorter of the two.

    python benchmarks/plan_against_highs.py [nodes] [trees]
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import highspy
import numpy as np
import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "property"))
from tree_program import Columns, load, program, random_columns

from crosswind import _core

REPEATS = 25  # of each, in a row; the median counts, so both run warm


def plan(tree: Columns, ports: str) -> tuple[float, dict[str, float]]:
    arguments = (*list(vars(tree).values()), ports, "exact")
    start = time.perf_counter()
    rates = _core.plan_rates(*arguments)
    return rates["throughput_tasks_per_s"], {"plan_s": time.perf_counter() - start}


def highs(tree: Columns, ports: str) -> tuple[float, dict[str, float]]:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    start = time.perf_counter()
    rows = program(tree, ports)
    built = time.perf_counter()
    load(solver, rows, len(tree.parent))
    passed = time.perf_counter()
    solver.run()
    solved = time.perf_counter()
    times = {"build_s": built - start, "pass_s": passed - built, "solve_s": solved - passed, "highs_s": solved - start}
    return solver.getObjectiveValue(), times


def repeated(turn: Callable[[Columns, str], tuple[float, dict[str, float]]], tree: Columns, ports: str):
    results = [turn(tree, ports) for _ in range(REPEATS)]
    optimum, first = results[0]
    times = {key: statistics.median(times[key] for _, times in results) for key in first}
    return optimum, times | {f"first_{key}": value for key, value in first.items()}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    trees = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    record.pin_to_one_core()
    rng, order = np.random.default_rng(1), random.Random(1)
    cases = []
    for ports in ("single", "multi"):
        samples: dict[str, list[float]] = {}
        worst = 0.0
        for n in range(trees):
            kind = ["measured", "starved"][n % 2]
            tree = random_columns(rng, 12, count, kind)
            turns = [plan, highs]
            order.shuffle(turns)
            optima = []
            for turn in turns:
                optimum, times = repeated(turn, tree, ports)
                optima.append(optimum)
                for key, value in times.items():
                    samples.setdefault(key, []).append(value)
            worst = max(worst, abs(optima[0] / optima[1] - 1))
        ratio = [h / p for h, p in zip(samples["highs_s"], samples["plan_s"], strict=True)]
        alone = [h / p for h, p in zip(samples["solve_s"], samples["plan_s"], strict=True)]
        first = [h / p for h, p in zip(samples["first_highs_s"], samples["first_plan_s"], strict=True)]
        cases.append(
            {
                "ports": ports,
                "trees": trees,
                "largest_relative_difference": worst,
                "times_faster_than_build_and_solve": record.spread(ratio),
                "times_faster_than_solve_alone": record.spread(alone),
                "times_faster_on_first_calls": record.spread(first),
                **{key: record.spread(values) for key, values in samples.items()},
            }
        )
    least = min(case["times_faster_than_build_and_solve"]["median"] for case in cases)
    claim = {"nodes": count, "at_least_times_faster": 100, "smallest_median": least}
    path = record.write("plan_against_highs", ["numpy", "highspy"], claim=claim, holds=least >= 100, cases=cases)
    for case in cases:
        whole = case["times_faster_than_build_and_solve"]["median"]
        alone = case["times_faster_than_solve_alone"]["median"]
        first = case["times_faster_on_first_calls"]["median"]
        print(
            f"{case['ports']:>6}: plan {case['plan_s']['median'] * 1e6:.0f} us, "
            f"HiGHS {case['highs_s']['median'] * 1e3:.2f} ms: "
            f"{whole:.0f} times faster than build and solve, {alone:.0f} than solve alone, {first:.0f} on first calls; "
            f"optima within {case['largest_relative_difference']:.1e}"
        )
    print(path)


if __name__ == "__main__":
    main()
