"""Claim: where sending costs the root more than a child gains, the default order sends nothing; else it loses nothing.

A root of half a core and two children of 0.3 cores in network namespaces, links of 100 MB/s, tasks of 10 ms of a core
and 1 to 32 MB (the testbed needs root). All of the root's process is under its share, so that what sending takes is not
computed. What sending costs is measured first: the root alone, and a root that sends all that the links carry
(`bandwidth` knows of no interference); `ir_send` is the part of its rate that the root loses, per MB/s sent. Then in
turns: the root alone, `bandwidth`, the default order with the measured `ir_send`, and the default order that is told of
no interference and learns it in the run (`adapt`).

    python benchmarks/interference_live.py [rounds]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import record

FARMS = Path(__file__).parent / "testbed_farms"
sys.path.insert(0, str(FARMS))
from nodes import Testbed, missing  # noqa: E402

CORE_S = 0.01
ROOT, CHILD, LINK = 0.5, 0.3, 100.0
SIZES_MB = (1, 8, 32)
SPEC = {
    "prefix": "tbi",
    "subnet": "10.88.0.0/24",
    "cpu_weight": 16384,
    "nodes": {"root": {"cpu": ROOT}, "left": {"cpu": CHILD}, "right": {"cpu": CHILD}},
    "links": [{"from": "root", "to": child, "MBps": LINK} for child in ("left", "right")],
}


def platform(ir_send: float, root_per_s: float) -> dict[str, Any]:
    below = {"compute_per_s": CHILD / CORE_S, "parent": "root", "receive_limit_mb_per_s": LINK}
    below |= {"ir_send_s_per_mb": ir_send}
    children = [{"name": name, **below} for name in ("left", "right")]
    return {
        "schema_version": 1,
        "name": "costly sends",
        "node": [{"name": "root", "compute_per_s": root_per_s}, *children],
    }


def run(bed: Testbed, size_mb: int, tasks: int, described: dict[str, Any], policy: dict[str, Any]) -> dict[str, Any]:
    """One farm; its rate, and what the root computed and sent."""
    workload = {"kind": "farm", "tasks": tasks, "task_size_mb": size_mb, "task_work": 1.0}
    setup = {
        "platform": described,
        "point": {"schema_version": 1, "name": "", "platform": "", "workload": workload, "policy": policy},
        "addresses": bed.addresses,
        "prefixes": {node: bed.on(node) for node in bed.addresses},
        "bytes": size_mb * 10**6,
    }
    file = bed.logs / "setup.json"
    file.write_text(json.dumps(setup))
    command = [*bed.on("root", shared=True), sys.executable, str(FARMS / "on_crosswind.py"), str(file)]
    environment = {
        **os.environ,
        "TESTBED_CORE_S": str(CORE_S),
        "PYTHONPATH": os.pathsep.join([str(FARMS), *filter(None, sys.path)]),
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=FARMS, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found = json.loads(done.stdout.strip().splitlines()[-1])
    computed = Counter(node for node, _, _ in found["results"])
    makespan_s = found["makespan_s"]
    return {
        "tasks_per_s": tasks / makespan_s,
        "root_tasks_per_s": computed["root"] / makespan_s,
        "sent_mb_per_s": (tasks - computed["root"]) * size_mb / makespan_s,
    }


WAYS: dict[str, tuple[bool, dict[str, Any]]] = {
    "root-only": (False, {"order": "root-only"}),
    "bandwidth": (False, {"order": "bandwidth"}),
    "default, measured": (True, {}),
    "default, learnt": (False, {"adapt": True}),
}
"""Whether the platform tells `ir_send`, and the policy."""


def case(bed: Testbed, size_mb: int, rounds: int) -> dict[str, Any]:
    tasks = 150 if size_mb > 20 else 300
    free = platform(0.0, ROOT / CORE_S)
    alone = run(bed, size_mb, tasks, free, {"order": "root-only"})
    full = run(bed, size_mb, tasks, free, {"order": "bandwidth"})
    ir = (1.0 - full["root_tasks_per_s"] / alone["tasks_per_s"]) / full["sent_mb_per_s"]
    told = platform(max(ir, 0.0), alone["tasks_per_s"])
    rates: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, (is_told, policy) in WAYS.items():
            found = run(bed, size_mb, tasks, told if is_told else free, policy)
            rates[way].append(found)
            print(f"{size_mb} MB, {way}: {found}", flush=True)
    return {
        "task_mb": size_mb,
        "tasks": tasks,
        "ir_send_s_per_mb": ir,
        "lost_per_task_sent": ir * size_mb * alone["tasks_per_s"],
        "calibration": [alone, full],
        "median_tasks_per_s": {way: statistics.median(one["tasks_per_s"] for one in of) for way, of in rates.items()},
        "runs": rates,
    }


def main(rounds: int = 5) -> None:
    if why := missing():
        print(f"skipped: {why}")
        return
    with Testbed(SPEC) as bed:
        cases = [case(bed, size, rounds) for size in SIZES_MB]
    for one in cases:
        told = {way: round(rate, 2) for way, rate in one["median_tasks_per_s"].items()}
        print(
            f"{one['task_mb']} MB: a task sent costs {one['lost_per_task_sent']:.2f} of the root's own; tasks/s {told}"
        )
    record.write("interference_live", [], rounds=rounds, cases=cases)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
