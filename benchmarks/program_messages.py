"""Claim: halo exchange and allreduce under noise: 10 million messages/s at 1,024 ranks, 6 million at 16,384.

One core, from Python, no schedule file: neighbours on a torus of three dimensions exchange 1 KiB, a word is summed up
by recursive doubling, 100 us of computation, 2.5 % noise per rank. A call is timed as a whole: drawing the noise,
simulating, checking every rank's result against a plain computation, adding up the time away. Each call in a fresh
process, in shuffled order. Then 100,000 ranks and 100 million operations, once, with the memory that it takes.

The same by two threads, on all CPUs: 20 million messages/s at 1,024 ranks, and the same makespan to the nanosecond.
Threads wait for each other every few microseconds, so this needs a host that does nothing else.

    python benchmarks/program_messages.py [repetitions]

LogGOPSim, SimGrid and SimPy are not run here. Seen on a machine like this one: LogGOPSim 1.1 million messages/s at 64
and 1,024 ranks, 0.54 at 16,384; SimGrid SMPI below 0.09; SimPy 0.11.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time

import record

# Ranks -> iterations, so that a run takes about a second.
CASES = {64: 8_000, 1_024: 500, 16_384: 40}
CLAIMS = {1_024: 10e6, 16_384: 6e6}
BY_TWO = {1_024: 20e6, 16_384: None}
"""By two threads: ranks -> messages/s asked."""
LARGE = (100_000, 34)
MEMORY_GIB = 4.0
NOISE = {
    "schema_version": 1,
    "name": "2.5 % noise",
    "source": [
        {
            "kind": "daemon",
            "cause": "noise",
            "interval_s": {"distribution": "exponential", "mean": 1e-3},
            "duration_s": 25e-6,
        }
    ],
}


def point(ranks: int, iterations: int) -> str:
    """Build the point of an experiment."""
    parameters = {"iterations": iterations, "work_s": 100e-6, "dimensions": 3, "halo_bytes": 1024, "allreduce_bytes": 8}
    workload = {"kind": "program", "program": "bsp", "ranks": ranks, "parameters": parameters}
    return json.dumps({"schema_version": 1, "name": "messages", "network": "cluster", "workload": workload})


def once(ranks: int, iterations: int, threads: int) -> None:
    """Simulate once; print what it took as JSON."""
    from crosswind import _core

    if threads == 1:
        record.pin_to_one_core()
    operations = 0

    def progress(done: int) -> None:
        nonlocal operations
        operations = done

    described, noise = point(ranks, iterations), json.dumps(NOISE)
    start = time.perf_counter()
    # Undisturbed it need not run: one run is timed, not two.
    run = json.loads(_core.simulate_program(described, noise, dedicated_s=1.0, threads=threads, progress=progress))
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        json.dumps(
            {
                "seconds": seconds,
                "messages": run["messages"],
                "messages_per_s": run["messages"] / seconds,
                "operations_at_least": operations,
                "makespan_s": run["makespan_s"],
                "memory_gib": memory,
            }
        )
    )


def in_a_process(ranks: int, iterations: int, threads: int = 1) -> dict[str, float]:
    """Simulate once in a fresh process."""
    command = [sys.executable, __file__, "once", str(ranks), str(iterations), str(threads)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    """Run all cases, write the record, say what is missed."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    order = [(ranks, threads) for ranks in CASES for threads in (1, 2) if threads == 1 or ranks in BY_TWO]
    order = [case for case in order for _ in range(repetitions)]
    random.Random(1).shuffle(order)
    runs: dict[int, list[dict[str, float]]] = {ranks: [] for ranks in CASES}
    by_two: dict[int, list[dict[str, float]]] = {ranks: [] for ranks in BY_TWO}
    for ranks, threads in order:
        (runs if threads == 1 else by_two)[ranks].append(in_a_process(ranks, CASES[ranks], threads))
    results = {}
    for ranks, iterations in CASES.items():
        if len({run["makespan_s"] for run in runs[ranks] + by_two.get(ranks, [])}) != 1:
            sys.exit(f"{ranks} ranks: the same seed gave different runs")
        rates = record.spread([run["messages_per_s"] for run in runs[ranks]])
        memory = max(run["memory_gib"] for run in runs[ranks])
        results[str(ranks)] = {
            "iterations": iterations,
            "messages": runs[ranks][0]["messages"],
            "messages_per_s": rates,
            "claim_messages_per_s": CLAIMS.get(ranks),
            "memory_gib": memory,
        }
        print(f"{ranks:>7} ranks: {rates['median'] / 1e6:.2f} million messages/s, {memory:.2f} GiB", file=sys.stderr)
        if ranks in BY_TWO:
            two = record.spread([run["messages_per_s"] for run in by_two[ranks]])
            gain = two["median"] / rates["median"]
            results[str(ranks)]["by_two_threads"] = {"messages_per_s": two, "claim": BY_TWO[ranks], "gain": gain}
            print(f"        by two threads: {two['median'] / 1e6:.2f} million, {gain:.2f} times", file=sys.stderr)
    large = in_a_process(*LARGE)
    print(
        f"{LARGE[0]:>7} ranks: {large['operations_at_least'] / 1e6:.0f} million operations "
        f"in {large['seconds']:.1f} s, {large['memory_gib']:.2f} GiB",
        file=sys.stderr,
    )
    claims = {"memory_gib": MEMORY_GIB}
    path = record.write("program_messages", [], noise=NOISE, results=results, large=large, large_claims=claims)
    missed = [str(ranks) for ranks in CLAIMS if results[str(ranks)]["messages_per_s"]["median"] < CLAIMS[ranks]]
    two = {ranks: results[str(ranks)]["by_two_threads"]["messages_per_s"]["median"] for ranks in BY_TWO}
    missed += [f"{ranks} by two threads" for ranks, asked in BY_TWO.items() if asked and two[ranks] < asked]
    if large["memory_gib"] > MEMORY_GIB or large["operations_at_least"] < 100e6:
        missed.append("large")
    print(f"{path}; missed: {', '.join(missed) or 'nothing'}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        once(*map(int, sys.argv[2:5]))
    else:
        main()
