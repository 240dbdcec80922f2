"""Claim: sampling costs the kernel less than 0.5 % of its idle rate.

Blocks with the sampler at its usual interval alternate with blocks of the same length that are read at their ends only,
in the order ABBA, so that drift cancels; blocks are short, for the same reason. The kernel's rate is per CPU second of
its thread: others on the host do not count, but what the sampler does to caches, locks and memory does. A block read at
its ends is read once all the same, so the difference is scaled to what all readings cost.

The interval is that of paired differences (Student's t), of the mean and, since a neighbour of the virtual machine
leaves a few pairs far out, of the 20 % trimmed mean too (Yuen 1974). The claim is held against the plain mean.

    python benchmarks/sampling_cost.py [pairs]
"""

from __future__ import annotations

import json
import os
import statistics
import sys

import numpy as np
import record
from scipy import stats

from crosswind import _core
from crosswind.measure.design import BLOCK_S, SETTLE_S

READINGS = 9
INTERVAL = BLOCK_S - SETTLE_S
BLOCK = READINGS * INTERVAL
INTERVALS = {"usual": INTERVAL, "none": BLOCK}
TRIM = 0.2
HERE, THERE = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))


def rates(probe: _core.Probe, interval_s: float) -> tuple[float, float]:
    probe.run_block([0.0], BLOCK, 0.0, interval_s, "bare")
    columns = probe.take()
    work = sum(columns["work"])
    return work / sum(columns["compute_cpu_s"]), work / sum(columns["dt_s"])


def trimmed(values: np.ndarray) -> tuple[float, float]:
    """Return the trimmed mean and half of its 95 % interval, after Yuen."""
    ordered = np.sort(values)
    cut = int(TRIM * ordered.size)
    kept = ordered.size - 2 * cut
    winsorized = np.clip(ordered, ordered[cut], ordered[-cut - 1])
    error = winsorized.std(ddof=1) * np.sqrt(ordered.size) / kept
    return float(ordered[cut:-cut].mean()), float(stats.t.ppf(0.975, kept - 1) * error)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 450
    settings = {
        "kernel": {"name": "diagonals"},
        "peers": ["127.0.0.1:1"],
        "channels": [{"peer": 0, "direction": "receive"}],
        "message_bytes": 1_000_000,
        "streams": 1,
        "wait": "event",
        "paced_by": "peer",
        "pacing_chunk_bytes": 65_536,
        "socket_buffer_bytes": None,
        "congestion_control": None,
        "placement": {"compute_cpus": [HERE], "traffic_cpus": [HERE], "sampler_cpus": [THERE]},
    }
    probe = _core.Probe(json.dumps(settings))
    rates(probe, BLOCK)  # warm
    per_cpu: dict[str, list[float]] = {name: [] for name in INTERVALS}
    wall: dict[str, list[float]] = {name: [] for name in INTERVALS}
    for pair in range(pairs):
        for name in sorted(INTERVALS, reverse=pair % 2 == 0):
            cpu_rate, wall_rate = rates(probe, INTERVALS[name])
            per_cpu[name].append(cpu_rate)
            wall[name].append(wall_rate)
    probe.close()
    cost = (1 - np.array(per_cpu["usual"]) / np.array(per_cpu["none"])) * READINGS / (READINGS - 1)
    half = float(stats.t.ppf(0.975, pairs - 1) * cost.std(ddof=1) / np.sqrt(pairs))
    mean, median = float(cost.mean()), float(np.median(cost))
    middle, middle_half = trimmed(cost)
    print(f"sampling every {1e3 * INTERVAL:.0f} ms costs {100 * mean:.3f} % +- {100 * half:.3f} %,", end=" ")
    print(f"trimmed {100 * middle:.3f} % +- {100 * middle_half:.3f} %")
    record.write(
        "sampling_cost",
        ["numpy", "scipy"],
        kernel="diagonals, 1024",
        interval_s=INTERVAL,
        pairs=pairs,
        cost=mean,
        cost_ci95=[mean - half, mean + half],
        cost_trimmed=middle,
        cost_trimmed_ci95=[middle - middle_half, middle + middle_half],
        cost_median=median,
        wall_cost_median=1 - statistics.median(np.array(wall["usual"]) / np.array(wall["none"])),
        rate_per_cpu_s={name: record.spread(values) for name, values in per_cpu.items()},
        reached=mean + half < 0.005,
    )


if __name__ == "__main__":
    main()
