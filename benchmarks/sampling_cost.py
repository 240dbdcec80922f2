"""Claim: sampling costs the kernel less than 0.5 % of its idle rate.

Blocks with the sampler at its usual interval alternate with blocks of the same length that are read at their ends only,
in the order ABBA, so that drift cancels. The kernel's rate is per CPU second of its thread: others on the host do not
count, but what the sampler does to caches, locks and memory does. The interval is that of paired differences (t).

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
from crosswind.design import BLOCK_S, SETTLE_S

BLOCK = 1.0
INTERVALS = {"usual": BLOCK_S - SETTLE_S, "none": BLOCK}
HERE, THERE = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))


def rates(probe: _core.Probe, interval_s: float) -> tuple[float, float]:
    probe.run_block([0.0], BLOCK, 0.0, interval_s, "bare")
    columns = probe.take()
    work = sum(columns["work"])
    return work / sum(columns["compute_cpu_s"]), work / sum(columns["dt_s"])


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
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
        "compute_cpus": [HERE],
        "traffic_cpus": [HERE],
        "sampler_cpus": [THERE],
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
    cost = 1 - np.array(per_cpu["usual"]) / np.array(per_cpu["none"])
    half = float(stats.t.ppf(0.975, pairs - 1) * cost.std(ddof=1) / np.sqrt(pairs))
    mean, median = float(cost.mean()), float(np.median(cost))
    print(f"sampling every {1e3 * INTERVALS['usual']:.0f} ms costs {100 * mean:.3f} % +- {100 * half:.3f} %")
    record.write(
        "sampling_cost",
        ["numpy", "scipy"],
        kernel="diagonals, 1024",
        interval_s=INTERVALS["usual"],
        pairs=pairs,
        cost=mean,
        cost_ci95=[mean - half, mean + half],
        cost_median=median,
        wall_cost_median=1 - statistics.median(np.array(wall["usual"]) / np.array(wall["none"])),
        rate_per_cpu_s={name: record.spread(values) for name, values in per_cpu.items()},
        reached=mean + half < 0.005,
    )


if __name__ == "__main__":
    main()
