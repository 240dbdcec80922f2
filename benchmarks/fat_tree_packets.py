"""Claim: a network that can fill is simulated at 1 million packets/s, one core, 64 ranks.

SAMPLE, as in scheduling-and-communication, bound by communication, each key a packet and each packet acknowledged, on
a fat tree with buffers of two packets. Packets are data, answers and acknowledgements, each over up to six links. A
call is timed as a whole, checking every rank's result against a plain computation included. Each call in a fresh
process, in shuffled order.

    python benchmarks/fat_tree_packets.py [repetitions]
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import record

CLAIM_PER_S = 1e6
KEYS = 16_384
WINDOWS = (1, 8, 512)
NETWORK = {
    "latency_s": 6e-6,
    "overhead_s": 2.2e-6,
    "gap_s": 4e-6,
    "packet_bytes": 16,
    "control_s": 5e-6,
    "fat_tree": {},
}


def point(window: int) -> str:
    """Build the point of an experiment."""
    parameters = {"keys_per_rank": KEYS, "operation_s": 3e-7}
    workload = {"kind": "program", "program": "sample", "ranks": 64, "parameters": parameters}
    policy = {"window_packets": window}
    described = {"schema_version": 1, "name": "fat tree", "network": NETWORK, "workload": workload, "policy": policy}
    return json.dumps(described)


def once(window: int) -> None:
    """Simulate once; print what it took as JSON."""
    from crosswind import _core

    record.pin_to_one_core()
    described = point(window)
    start = time.perf_counter()
    run = json.loads(_core.simulate_program(described, None))
    seconds = time.perf_counter() - start
    # A window limits: every data packet is acknowledged; none of SAMPLE's messages is answered.
    packets = 2 * run["packets"]
    print(json.dumps({"packets": packets, "packets_per_s": packets / seconds, "makespan_s": run["makespan_s"]}))


def in_a_process(window: int) -> dict[str, float]:
    """Simulate once in a fresh process."""
    command = [sys.executable, __file__, "once", str(window)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    """Run all cases, write the record, say what is missed."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    order = [window for window in WINDOWS for _ in range(repetitions)]
    random.Random(1).shuffle(order)
    runs: dict[int, list[dict[str, float]]] = {window: [] for window in WINDOWS}
    for window in order:
        runs[window].append(in_a_process(window))
    results = {}
    for window, own in runs.items():
        if len({run["makespan_s"] for run in own}) != 1:
            sys.exit(f"window {window}: the same seed gave different runs")
        rates = record.spread([run["packets_per_s"] for run in own])
        packets = own[0]["packets"]
        results[str(window)] = {"packets": packets, "packets_per_s": rates, "claim_packets_per_s": CLAIM_PER_S}
        print(f"window {window:>3}: {rates['median'] / 1e6:.2f} million packets/s", file=sys.stderr)
    path = record.write("fat_tree_packets", [], network=NETWORK, keys_per_rank=KEYS, results=results)
    missed = [window for window, own in results.items() if own["packets_per_s"]["median"] < CLAIM_PER_S]
    print(f"{path}; missed: {', '.join(missed) or 'nothing'}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        once(int(sys.argv[2]))
    else:
        main()
