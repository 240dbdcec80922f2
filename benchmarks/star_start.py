"""How long a star of emulated nodes takes to start, and what its root sends until then.

From the start of the root until all agents are there, and until the first result of a task that is handed over then:
seconds, processor time of the root and of the agents, bytes that the root has sent (counted by the kernel, `ss`), and
memory of the agents. Beside it, computed: the bytes if each child got the whole platform. Also a tree of ten nodes with
an equal part of the others below each. Leaves share processes, as in `crosswind run --on local`.

Writes records/star_start.json. Run on a quiet host, with a release build:
    python benchmarks/star_start.py [turns [NODES...]]
with numbers of nodes: only those, and nothing is written. 10,000 nodes take 2 GB of memory and 11,000 descriptors.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import record

from crosswind.platform import Platform
from crosswind.run.agents import Launch, Limits, LiveFarm, Task, Work, settings
from crosswind.run.this_machine import point_of

NODES = (1000, 10_000)
INNER = 10
PATIENCE_S = 300.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def leaf(name: str, parent: str) -> dict[str, Any]:
    return {"name": name, "parent": parent, "compute_per_s": 1.0, "receive_limit_mb_per_s": 1000.0}


def star(nodes: int) -> list[dict[str, Any]]:
    return [leaf(f"leaf{number}", "root") for number in range(nodes)]


def tree(nodes: int) -> list[dict[str, Any]]:
    inner = [leaf(f"inner{number}", "root") for number in range(INNER)]
    return inner + [leaf(f"leaf{number}", f"inner{number % INNER}") for number in range(nodes - INNER)]


def sent_from(port: str) -> int:
    """Return the bytes that the open connections of a port have sent."""
    said = subprocess.run(["ss", "-tinH", "sport", "=", f":{port}"], capture_output=True, text=True, check=True).stdout
    return sum(int(word.partition(":")[2]) for word in said.split() if word.startswith("bytes_sent:"))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3


def start(below: list[dict[str, Any]]) -> dict[str, float]:
    """Start a farm, have one task done, and end it."""
    root = {"name": "root", "compute_per_s": 0.0}
    platform = Platform.from_dict({"schema_version": 1, "name": "star", "node": [root, *below]})
    point = point_of("star", len(below), 0.001, "bandwidth", 1)
    point["execution"] = {"compute": "emulated", "time_scale": 1.0}
    limits, work = Limits(start_s=PATIENCE_S), Work("emulated")
    whole = len(json.dumps(settings(platform, point, work, limits, trace=False)))
    used, begun = time.process_time(), time.perf_counter()
    with LiveFarm(platform, point, work, launch=Launch(shares=True), limits=limits) as farm:
        if not farm.wait_for_agents(PATIENCE_S):
            raise SystemExit("error: the agents did not start in time")
        ready = time.perf_counter() - begun
        root_cpu = time.process_time() - used
        sent = sent_from(farm.address.rpartition(":")[2])
        pids = {farm.processes.pid(node["name"]) for node in below}
        agents_cpu, memory = sum(map(cpu_s, pids)), sum(map(memory_mb, pids))
        submitted = time.perf_counter()
        farm.submit(Task(bytes(100), 1e-3))
        farm.end_of_tasks()
        results = farm.results(PATIENCE_S)
        first = ready + time.perf_counter() - submitted
        found = {
            "ready_s": ready,
            "first_result_s": first,
            "root_cpu_s": root_cpu,
            "agents_cpu_s": agents_cpu,
            "agents_memory_mb": memory,
            "processes": len(pids),
            "sent_mb": sent / 1e6,
            "sent_bytes_per_node": sent / len(below),
            "whole_to_each_child_mb": whole * len([node for node in below if node["parent"] == "root"]) / 1e6,
        }
        assert [result.ok for result in results] == [True]
        summary, _ = farm.close()
        assert not summary["events"], summary["events"][:3]
    return found


def main(turns: int, only: list[int]) -> None:
    cases = {f"{shape.__name__}_{nodes}": shape(nodes) for nodes in only or NODES for shape in (star, tree)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    for _ in range(turns):
        for name, below in cases.items():
            found[name].append(start(below))
            print(name, {what: round(value, 3) for what, value in found[name][-1].items()}, flush=True)
    if not only:
        content = {
            name: {what: record.spread([one[what] for one in all_]) for what in all_[0]} for name, all_ in found.items()
        }
        print(record.write("star_start", [], turns=turns, **content))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, [int(word) for word in sys.argv[2:]])
