"""Claim: a tree of 1,000,000 nodes is planned in under 1 s and 500 MB on one core.

Every shape and port mode in a fresh process on one CPU, in shuffled order. Time is that of the call, the copy of the
columns included; memory is the most that the whole process held, Python and the tree itself included.

    python benchmarks/plan_scale.py [nodes] [repetitions]
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time

import numpy as np
import record

from crosswind import _core

SHAPES = ["random", "tens", "chain", "star", "comb", "starved star"]
PORTS = ["single", "multi"]


def parents(shape: str, count: int) -> np.ndarray:
    """Each node's parent, -1 at the root."""
    node = np.arange(count, dtype=np.int64)
    match shape:
        case "random":  # any earlier node: about 2 ln n levels
            parent = (np.random.default_rng(1).random(count) * node).astype(np.int64)
        case "tens":  # ten children each, seven levels
            parent = (node - 1) // 10
        case "chain":  # a level per node
            parent = node - 1
        case "star" | "starved star":  # two levels
            parent = np.zeros(count, dtype=np.int64)
        case "comb":  # a chain, every other node a leaf of it
            parent = np.where(node % 2 == 1, node - 1, node - 2)
    parent[0] = -1
    return parent.astype(np.int32)


def columns(shape: str, count: int) -> list[np.ndarray]:
    """Make a platform like those that are measured; the starved star's root has nothing left to compute."""
    rng = np.random.default_rng(2)
    compute, receive, send = rng.uniform(1, 30, count), rng.uniform(0.2, 60, count), rng.uniform(5, 100, count)
    drop = np.where(rng.random(count) < 0.5, 0.0, rng.uniform(0, 1, count))
    ir_receive, ir_send = rng.uniform(0, 0.13, count), rng.uniform(0, 0.07, count)
    if shape == "starved star":
        receive *= 1e4  # the port could carry far more than the root's computation bears: two constraints bind
    return [parents(shape, count), compute, send, receive, drop, ir_receive, ir_send]


def one(shape: str, ports: str, count: int) -> None:
    """Plan once and print what it took."""
    record.pin_to_one_core()
    tree = columns(shape, count)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    rates = _core.plan_rates(*tree, 2.0, 5.0, ports, "exact")
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limited = np.bincount(np.frombuffer(rates["limited_by"], np.uint8), minlength=len(rates["limits"]))
    print(
        json.dumps(
            {
                "time_s": taken,
                "peak_mb": peak * 1024 / 1e6,
                "before_mb": before * 1024 / 1e6,
                "gap": rates["gap_to_exact"],
                "limited_by": dict(zip(rates["limits"], limited.tolist(), strict=True)),
            }
        )
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    runs = [(shape, ports) for shape in SHAPES for ports in PORTS] * repetitions
    random.Random(0).shuffle(runs)
    found: dict[tuple[str, str], list[dict]] = {}
    for shape, ports in runs:
        command = [sys.executable, __file__, "--one", shape, ports, str(count)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.setdefault((shape, ports), []).append(json.loads(output))
    cases = [
        {
            "shape": shape,
            "ports": ports,
            "time_s": record.spread([run["time_s"] for run in found[shape, ports]]),
            "peak_mb": record.spread([run["peak_mb"] for run in found[shape, ports]]),
            "input_and_python_mb": found[shape, ports][0]["before_mb"],
            "gap_to_exact": found[shape, ports][0]["gap"],
            "limited_by": found[shape, ports][0]["limited_by"],
        }
        for shape in SHAPES
        for ports in PORTS
    ]
    slowest = max(case["time_s"]["median"] for case in cases)
    largest = max(case["peak_mb"]["high"] for case in cases)
    claim = {"nodes": count, "under_s": 1.0, "under_mb": 500, "slowest_median_s": slowest, "largest_peak_mb": largest}
    path = record.write("plan_scale", ["numpy"], claim=claim, holds=slowest < 1 and largest < 500, cases=cases)
    for case in cases:
        print(
            f"{case['shape']:>12} {case['ports']:>6}: {case['time_s']['median']:.3f} s "
            f"({case['time_s']['low']:.3f} to {case['time_s']['high']:.3f}), {case['peak_mb']['high']:.0f} MB"
        )
    print(path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
