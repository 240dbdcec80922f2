"""Claim: 10 million frames/s on one core through one interface with two queues.

One core, from Python. A parallel and a local stream, both backlogged, leave one host for two others through the
interface's two queues, 4 bytes to 1 (drr); frames of 1 KiB. What is timed is the third measurement of a run (T3: both
streams, two queues), from the call that tells its beginning to the end. Whole runs, in which one queue and each stream
alone come before, stand beside it. Each run in a fresh process, in shuffled order.

    python benchmarks/interface_frames.py [repetitions]

htsim, SimPy and ns-3 are not run here. Seen on a machine like this one: htsim 10.6 to 11.0 million packets/s, SimPy
0.13 to 0.55, ns-3 0.23.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import record

FRAMES = 8_000_000
# Name -> queue of the policy, other fields of it, bytes of a parallel message.
CASES: dict[str, tuple[dict[str, str], int]] = {
    "drr, messages of 16 KiB": ({"queue": "drr"}, 16_384),
    "drr, messages of one frame": ({"queue": "drr"}, 64),
    "threshold, messages of 16 KiB": ({"queue": "threshold"}, 16_384),
    "one queue, messages of 16 KiB": ({"queue": "fifo"}, 16_384),
    "drr and credits, messages of 16 KiB": ({"queue": "drr", "credits": "receiver"}, 16_384),
}
CLAIM = 10e6
CLAIMED = "drr, messages of 16 KiB"


def point(policy: dict[str, str], message_bytes: int) -> str:
    """Build the point of an experiment."""
    frames = -(-message_bytes // 1024)
    backlogged = {"from": 0, "arrivals": "backlogged", "outstanding": 4}
    parallel = {"name": "p", "class": "parallel", "to": 1, "message_bytes": message_bytes, "messages": FRAMES // frames}
    # Long in T3 alone: the local stream's own messages are few.
    local = {"name": "l", "class": "local", "to": 2, "message_bytes": 16_384, "messages": 1}
    workload = {"kind": "streams", "hosts": 3, "stream": [{**parallel, **backlogged}, {**local, **backlogged}]}
    return json.dumps({"schema_version": 1, "name": "frames", "policy": policy, "workload": workload})


def once(name: str) -> None:
    """Simulate once; print what it took as JSON."""
    from crosswind import _core

    record.pin_to_one_core()
    told: list[tuple[int, float]] = []
    described = point(*CASES[name])
    start = time.perf_counter()
    run = json.loads(
        _core.simulate_streams(described, progress=lambda frames: told.append((frames, time.perf_counter())))
    )
    end = time.perf_counter()
    frames = told[-1][0]
    began = next(at for done, at in told if done == frames - run["frames"])
    print(
        json.dumps(
            {
                "frames": run["frames"],
                "frames_per_s": run["frames"] / (end - began),
                "whole_run_frames_per_s": frames / (end - start),
                "parallel_share_of_frames": share(run),
                "makespan_s": run["makespan_s"],
            }
        )
    )


def share(run: dict[str, object]) -> float:
    """Part of T3's frames that belong to the parallel stream's timed messages."""
    streams = run["streams"]
    assert isinstance(streams, list)
    frames = streams[0]["messages"] * -(-streams[0]["bytes"] // streams[0]["messages"] // 1024)
    total = run["frames"]
    assert isinstance(total, int)
    return float(frames / total)


def in_a_process(name: str) -> dict[str, float]:
    """Simulate once in a fresh process."""
    command = [sys.executable, __file__, "once", name]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    """Run all cases, write the record, say what is missed."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    order = [name for name in CASES for _ in range(repetitions)]
    random.Random(1).shuffle(order)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    for name in order:
        runs[name].append(in_a_process(name))
    results = {}
    for name in CASES:
        if len({run["makespan_s"] for run in runs[name]}) != 1:
            sys.exit(f"{name}: the same seed gave different runs")
        rates = record.spread([run["frames_per_s"] for run in runs[name]])
        results[name] = {
            "frames": runs[name][0]["frames"],
            "frames_per_s": rates,
            "whole_run_frames_per_s": record.spread([run["whole_run_frames_per_s"] for run in runs[name]]),
            "parallel_share_of_frames": runs[name][0]["parallel_share_of_frames"],
            "claim_frames_per_s": CLAIM if name == CLAIMED else None,
        }
        print(f"{name}: {rates['median'] / 1e6:.1f} million frames/s", file=sys.stderr)
    path = record.write("interface_frames", [], results=results)
    missed = "nothing" if results[CLAIMED]["frames_per_s"]["median"] >= CLAIM else CLAIMED
    print(f"{path}; missed: {missed}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        once(sys.argv[2])
    else:
        main()
