"""Claim: a farm is simulated with its trace, and that is written, in at most twice the time of the run without.

The fork graph of table 4, one port, 5.5 million tasks: a trace of 10 million activities. Each way in a fresh process on
one CPU, in turns; ratios are of processor time, which is nearly the same on a busy host. The parts are the simulation
without a trace, with it, the columns as a table, and the file.

    python benchmarks/trace_writing.py [repetitions [tasks]]

With a number of tasks no record is written: a trial of the script.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import record

PLATFORM = Path(__file__).parents[1] / "examples" / "fork_of_table_4_corrected.toml"
TASKS = 5_500_000
MOST = 2.0
"""Times the run without a trace."""


def once(tasks: int, traced: bool) -> dict[str, float]:
    """Simulate once, and write the trace; processor seconds of each part."""
    from crosswind import _core
    from crosswind.experiment import Experiment
    from crosswind.run.columns import traced as as_trace

    record.pin_to_one_core()
    workload = {"kind": "farm", "tasks": tasks, "task_size_mb": 2.0, "task_work": 5.0}
    described = {"schema_version": 1, "name": "trace", "platform": str(PLATFORM), "workload": workload}
    (point,) = Experiment.from_dict(described | {"policy": {"ports": "single"}}).points()
    times = [time.process_time()]
    summary, columns = _core.simulate(point.platform._checked, point.json, trace=traced)
    times.append(time.process_time())
    if not traced:
        return {"simulated_s": times[1] - times[0]}
    trace = as_trace(columns, {**json.loads(summary), "params": {}}, point, "sim")
    times.append(time.process_time())
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "trace.parquet"
        trace.save(file)
        times.append(time.process_time())
        size = file.stat().st_size / 1e6
    parts = dict(
        zip(
            ("simulated_s", "table_s", "written_s"),
            (b - a for a, b in pairwise(times)),
            strict=True,
        )
    )
    return {**parts, "activities": len(trace.activities), "file_mb": size}


def measured(tasks: int, traced: bool) -> dict[str, float]:
    command = [sys.executable, __file__, "once", str(tasks), str(int(traced))]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    """Run both ways in turns, write the record."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    tasks = int(sys.argv[2]) if len(sys.argv) > 2 else TASKS
    rounds = [(measured(tasks, False), measured(tasks, True)) for _ in range(repetitions)]
    parts = {
        name: record.spread([with_it[name] for _, with_it in rounds])
        for name in ("simulated_s", "table_s", "written_s")
    }
    without = record.spread([plain["simulated_s"] for plain, _ in rounds])
    wholes = [sum(with_it[name] for name in parts) / plain["simulated_s"] for plain, with_it in rounds]
    ratio = record.spread(wholes)
    activities, size = rounds[0][1]["activities"], rounds[0][1]["file_mb"]
    run = f"{ratio['median']:.2f} times the run without a trace ({without['median']:.2f} s)"
    print(f"{activities:,} activities, {size:.0f} MB: {run}")
    print(", ".join(f"{name} {values['median']:.2f}" for name, values in parts.items()))
    if len(sys.argv) <= 2:
        holds = ratio["median"] <= MOST
        content = {"without_s": without, "with_trace": parts, "ratio": ratio, "activities": activities, "file_mb": size}
        print(record.write("trace_writing", ["pyarrow"], claim=MOST, holds=holds, tasks=tasks, **content))


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        print(json.dumps(once(int(sys.argv[2]), sys.argv[3] == "1")))
    else:
        main()
