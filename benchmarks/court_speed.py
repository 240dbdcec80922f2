"""Claim: recorded programs are judged within seconds, in bounded memory.

Three programs, each read and judged in a process of its own; the median of five times counts. `profiles`: 8 ranks with
100 MB of PyTorch's profiler each, files and all. `replays`: 64 ranks, 100 steps of 8 collectives, four slow ranks, so
that their shares take 500 replays or more. `large`: 1,024 ranks and a million events, two ranks slow; reading the lines
is timed apart.

    python benchmarks/court_speed.py [runs]
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

LIMITS = {"profiles": 20.0, "replays": 10.0, "large": 5.0}
LIMIT_KB = 1_000_000
FEWEST_REPLAYS = 500
PROFILE_BYTES = 100_000_000
WORK_S, TRANSFER_S, LATE_S = 0.02, 0.001, 0.006


def arrivals(ranks: int, steps: int, places: int, slow: list[int], seed: int) -> list[list[tuple[float, float]]]:
    """Return for each rank when it arrives at each collective, and when that is over, s."""
    draw = random.Random(seed)
    found: list[list[tuple[float, float]]] = [[] for _ in range(ranks)]
    over = 0.0
    for _step in range(steps):
        for place in range(places):
            came = [over + WORK_S * draw.uniform(0.98, 1.02) for _ in range(ranks)]
            for number, rank in enumerate(slow):
                if place % len(slow) == number:
                    came[rank] += LATE_S
            over = max(came) + TRANSFER_S
            for rank, at in enumerate(came):
                found[rank].append((at, over))
    return found


def write_lines(directory: Path, ranks: int, steps: int, places: int, slow: list[int]) -> None:
    """Write a program as lines of JSON, one file a rank."""
    for rank, times in enumerate(arrivals(ranks, steps, places, slow, 7)):
        lines = [json.dumps({"rank": rank, "world": ranks, "t0": 0.0})]
        for number, (came, over) in enumerate(times):
            lines.append(f'{{"op": "allreduce", "t0": {came:.9f}, "t1": {over:.9f}, "bytes": 8}}')
            if number % places == places - 1:
                lines.append(f'{{"op": "step", "t0": {over:.9f}, "t1": {over:.9f}}}')
        (directory / f"rank-{rank:04}.jsonl").write_text("\n".join(lines))


def write_profiles(directory: Path, ranks: int, size: int) -> None:
    """Write traces of PyTorch's profiler, most of whose bytes are operators, as in real ones."""
    steps, places = 30, 4
    shortest = len(event("cpu_op", "aten::addmm", 1, 0.0, 0.0, 0))
    each = -(-size // (steps * places * shortest))
    for rank, times in enumerate(arrivals(ranks, steps, places, [3], 5)):
        about = {"rank": rank, "world_size": ranks, "backend": "gloo"}
        head = f'{{"distributedInfo": {json.dumps(about)}, "baseTimeNanoseconds": {10**18}, "traceEvents": [\n'
        with (directory / f"rank-{rank}.json").open("w") as file:
            file.write(head)
            begun = before = 0.0
            for number, (came, over) in enumerate(times):
                gap = (came - before) / each
                for at in range(each):
                    file.write(event("cpu_op", "aten::addmm", 1, before + at * gap, 0.9 * gap, at))
                file.write(event("user_annotation", "gloo:all_reduce", 2, came, over - came, number))
                before = over
                if number % places == places - 1:
                    step = f"ProfilerStep#{number // places}"
                    file.write(event("user_annotation", step, 1, begun, over - begun, number))
                    begun = over
            file.write('{"ph": "M", "name": "process_name", "pid": 1}]}')


def event(category: str, name: str, thread: int, begin_s: float, seconds: float, number: int) -> str:
    """Return an event of PyTorch's profiler, with arguments that make it as long as real ones."""
    arguments = f'{{"External id": {number}, "Record function id": 0, "Sequence number": {number}, "Fwd thread id": 0}}'
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": {thread}, '
        f'"ts": {begin_s * 1e6:.3f}, "dur": {seconds * 1e6:.3f}, "args": {arguments}}},\n'
    )


def child(directory: str) -> None:
    """Read and judge the files of a directory, and print how long that took."""
    from crosswind import _core

    begun = time.perf_counter()
    if Path(directory, "rank-0.json").exists():
        from crosswind.blame.recorded import blame_recorded

        found = blame_recorded([directory]).data
        read, whole = 0.0, time.perf_counter() - begun
    else:
        files = []
        for path in sorted(Path(directory).iterdir()):
            file = _core.RecordedFile(str(path))
            file.feed(path.read_bytes())
            file.finish()
            files.append(file)
        read = time.perf_counter() - begun
        found = json.loads(_core.judge_recorded(files))
        whole = time.perf_counter() - begun - read
    named = sorted(rank for culprit in found["culprits"] for rank in culprit["ranks"])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"s": whole, "read_s": read, "kb": most, "replays": found["replays"], "named": named}))


def timed(directory: Path, runs: int) -> list[dict[str, Any]]:
    """Judge the files of a directory, each time in a new process."""
    command = [sys.executable, __file__, "--child", str(directory)]
    return [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)]


def main() -> None:
    """Write the programs, judge them, print the times and write the record."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    writers = {
        "profiles": lambda at: write_profiles(at, 8, PROFILE_BYTES),
        "replays": lambda at: write_lines(at, 64, 100, 8, [3, 17, 40, 63]),
        "large": lambda at: write_lines(at, 1024, 122, 8, [5, 700]),
    }
    found: dict[str, dict[str, Any]] = {}
    passed = True
    for name, write in writers.items():
        with tempfile.TemporaryDirectory() as temporary:
            write(Path(temporary))
            size = sum(path.stat().st_size for path in Path(temporary).iterdir())
            rows = timed(Path(temporary), runs)
        seconds = record.spread([row["s"] for row in rows])
        first = rows[0]
        found[name] = {
            "bytes": size,
            "seconds": seconds,
            "reading_s": record.spread([row["read_s"] for row in rows]),
            "memory_kb": max(row["kb"] for row in rows),
            "replays": first["replays"],
            "named": first["named"],
        }
        passed &= seconds["median"] < LIMITS[name]
        reading = statistics.median(row["read_s"] for row in rows)
        beside = f", reading {reading:.2f} s beside it" if reading else ""
        print(
            f"{name:9} {seconds['median']:6.2f} s of {LIMITS[name]:.0f} s{beside}; {first['replays']} replays, "
            f"{found[name]['memory_kb'] / 1e6:.2f} GB, named {first['named']}"
        )
    passed &= found["profiles"]["memory_kb"] < LIMIT_KB and found["replays"]["replays"] >= FEWEST_REPLAYS
    claim = {"seconds": LIMITS, "profiles_kb": LIMIT_KB, "replays": FEWEST_REPLAYS}
    path = record.write("court_speed", [], claim=claim, **found, passed=passed)
    print(f"{'passed' if passed else 'FAILED'}; wrote {path}")


if __name__ == "__main__":
    child(sys.argv[2]) if sys.argv[1:2] == ["--child"] else main()
