"""Claim: of real training jobs on gloo the slow rank is named from the traces of PyTorch's profiler, with its cost.

Three ranks train with DistributedDataParallel or fully_shard (FSDP2); one is late in each step, in its input or in its
backward pass, by at least 5 % of the run. `none`: no rank is late, and none may be named. The truth is of the ranks'
own stamps (`recorded_jobs/torch_jobs.py`). Of the jobs with a late rank, the right one must be named in 29 of 30, and
its seconds must lie within the interval in 27.

PyTorch may be in another environment: its wheels for Linux bring gigabytes of CUDA.
    python benchmarks/court_torch.py [--python /path/to/python] [--runs 30] [--minutes 5] [--fresh]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

from crosswind.blame.recorded import blame_recorded

sys.path.insert(0, str(Path(__file__).parent / "recorded_jobs"))
from torch_jobs import cost_s, has_torch, trained

NAME = "court_torch"
RANKS, STEPS = 3, 20
KINDS, PLACES = ("ddp", "fsdp"), ("backward", "input", "none")


def one(python: str, directory: Path, kind: str, place: str, number: int) -> dict[str, Any]:
    """Train with a late rank, or none, and judge the traces."""
    draw = random.Random(f"{kind} {place} {number}")
    late, seconds = draw.randrange(RANKS), round(draw.uniform(0.025, 0.060), 4)
    out = directory / f"{kind}-{place}-{number}"
    traces = trained(python, out, kind, RANKS, STEPS, "-" if place == "none" else f"{late}:{place}:{seconds}")
    found = blame_recorded(traces).data
    culprits = found["culprits"]
    return {
        "kind": kind,
        "place": place,
        "number": number,
        "late": None if place == "none" else late,
        "true_s": 0.0 if place == "none" else cost_s(out, RANKS, late),
        "verdict": found["verdict"],
        "reason": found["reason"],
        "recorded_s": found["recorded_s"],
        "replayed_s": found["replayed_s"],
        "named": sorted(rank for culprit in culprits for rank in culprit["ranks"]),
        "seconds": [culprit["seconds"] for culprit in culprits],
        "ci95": [culprit["ci95"] for culprit in culprits],
        "load_1_min": os.getloadavg()[0],
    }


def counted(runs: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many runs of each kind are right."""
    table: dict[str, dict[str, int]] = {}
    for run in runs:
        row = table.setdefault(f"{run['kind']} {run['place']}", {"runs": 0, "rank": 0, "seconds": 0})
        row["runs"] += 1
        row["rank"] += run["named"] == ([] if run["late"] is None else [run["late"]])
        row["seconds"] += len(run["ci95"]) == 1 and run["ci95"][0][0] <= run["true_s"] <= run["ci95"][0][1]
    return table


def passes(table: dict[str, dict[str, int]], runs: int) -> bool | None:
    """Whether the claim holds; None while runs are missing."""
    late = [row for name, row in table.items() if not name.endswith("none")]
    healthy = [row for name, row in table.items() if name.endswith("none")]
    count = sum(row["runs"] for row in late)
    if count < runs or not healthy:
        return None
    right, within = (sum(row[name] for row in late) for name in ("rank", "seconds"))
    return (
        30 * (count - right) <= count
        and 10 * (count - within) <= count
        and all(row["rank"] == row["runs"] for row in healthy)
    )


def main() -> None:
    """Run what is missing, as far as the time goes; print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=30, help="with a late rank")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--fresh", action="store_true", help="forget the runs recorded before")
    options = parser.parse_args()
    if not has_torch(options.python):
        raise SystemExit(f"error: {options.python} has no PyTorch: --python names one that has")
    version = "import torch; print(torch.__version__)"
    torch = subprocess.run([options.python, "-c", version], capture_output=True, text=True, check=True).stdout.strip()
    path = record.RECORDS / f"{NAME}.json"
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() and not options.fresh else []
    over = time.monotonic() + 60 * options.minutes
    wanted = [
        (kind, place, number)
        for number in range(-(-options.runs // 4))
        for kind in KINDS
        for place in PLACES
        if (kind, place, number) not in {(run["kind"], run["place"], run["number"]) for run in runs}
    ]
    with tempfile.TemporaryDirectory() as temporary:
        for kind, place, number in wanted:
            if time.monotonic() > over:
                break
            last = one(options.python, Path(temporary), kind, place, number)
            runs.append(last)
            table = counted(runs)
            print(
                f"{kind:4} {place:8} {number:2}: late {last['late']} named {last['named']}, true {last['true_s']:.3f}, "
                f"found {[[round(end, 3) for end in ends] for ends in last['ci95']]} {last['reason'] or ''}",
                flush=True,
            )
            record.write(NAME, [], torch=torch, table=table, passed=passes(table, options.runs), runs=runs)
    for name, row in counted(runs).items():
        print(name, row)


if __name__ == "__main__":
    main()
