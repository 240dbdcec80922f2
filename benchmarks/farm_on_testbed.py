"""Claim: on a heterogeneous fork graph a farm of real tasks is no slower than Dask's and Ray's, and near the bound.

Nodes are network namespaces with the links of table 4 and shares of a core (`fork7-light-nic.json` of the testbed,
which needs root); a task is 5 MB of input and 50 ms of a core. The same function computes everywhere, under the node's
CPU share; whatever else a system runs on the node is outside of it. Time runs from handing over the first task to the
last result, with all processes up and imports done. The bound is that of the exact plan, single port, no interference.

Each run is added to the record, so that a quiet minute at a time will do:
    python benchmarks/farm_on_testbed.py [--tasks 200] [--fresh] ENVIRONMENT...
with crosswind, crosswind-2-ahead (`buffer_tasks = 2` instead of the chosen number), dask (data as arguments),
dask-scattered, ray; none: all, in shuffled order.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import record

from crosswind import Platform, __version__, plan

FARMS = Path(__file__).parent / "testbed_farms"
sys.path.insert(0, str(FARMS))
from kernel import CORE_S  # noqa: E402
from nodes import TESTBED, Testbed, missing  # noqa: E402

NAME = "farm_on_testbed"
TASK_MB = 5.0
PORT = 7317
PATIENCE_S = 600


def platform(spec: dict[str, Any], root: str) -> dict[str, Any]:
    """Describe the testbed as a platform; a work unit is a task's."""
    rate = {name: node["cpu"] / CORE_S for name, node in spec["nodes"].items()}
    nodes: list[dict[str, Any]] = [
        {"name": root, "compute_per_s": rate[root], "send_limit_mb_per_s": spec["nodes"][root]["egress"]}
    ]
    for link in spec["links"]:
        one = {"name": link["to"], "parent": link["from"], "compute_per_s": rate[link["to"]]}
        nodes.append({**one, "receive_limit_mb_per_s": link["MBps"]})
    return {"schema_version": 1, "name": "fork7", "node": nodes}


def client(bed: Testbed, script: str, *arguments: str) -> dict[str, Any]:
    """Run a script on the root and return what it prints."""
    command = [*bed.on(bed.root), sys.executable, str(FARMS / script), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FARMS), *filter(None, sys.path)])}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, cwd=FARMS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script}: {done.stderr[-3000:]}\nlogs of its nodes: {bed.logs}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def dask(bed: Testbed, tasks: int, how: str = "arguments") -> dict[str, Any]:
    root = bed.addresses[bed.root]
    scheduler = f"tcp://{root}:{PORT}"
    python_path = {"PYTHONPATH": str(FARMS)}
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", root, "--port", str(PORT)]
    bed.start(bed.root, [*module, "--no-dashboard"], python_path)
    for node, address in bed.addresses.items():
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--name", node, "--host", address]
        bed.start(node, [*worker, "--nthreads", "1", "--no-nanny", "--no-dashboard"], python_path)
    return client(bed, "on_dask.py", scheduler, str(len(bed.addresses)), str(tasks), str(round(TASK_MB * 1e6)), how)


def ray(bed: Testbed, tasks: int) -> dict[str, Any]:
    head = f"{bed.addresses[bed.root]}:{PORT}"
    start = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--num-cpus", "1", "--disable-usage-stats"]
    start += ["--object-store-memory", str(1_500_000_000)]
    environment = {"PYTHONPATH": str(FARMS), "RAY_DEDUP_LOGS": "0"}
    for node, address in bed.addresses.items():
        if node == bed.root:
            which = ["--head", "--port", str(PORT), "--include-dashboard", "false"]
        else:
            which = ["--address", head]
        # One after the other: raylets that start all at once on two cores give up waiting for each other.
        bed.start(node, [*start, *which, "--node-ip-address", address], environment, until=b"Ray runtime started")
    return client(bed, "on_ray.py", head, str(len(bed.addresses)), str(tasks), str(round(TASK_MB * 1e6)))


def crosswind(bed: Testbed, tasks: int, buffer_tasks: int | None = None) -> dict[str, Any]:
    workload = {"kind": "farm", "tasks": tasks, "task_size_mb": TASK_MB, "task_work": 1.0}
    policy = {"order": "interference", "ports": "single"} | ({"buffer_tasks": buffer_tasks} if buffer_tasks else {})
    point = {"schema_version": 1, "name": NAME, "platform": "", "workload": workload, "policy": policy}
    setup = {
        "platform": platform(bed.spec, bed.root),
        "point": point,
        "addresses": bed.addresses,
        "prefixes": {node: bed.on(node) for node in bed.addresses},
        "bytes": round(TASK_MB * 1e6),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(setup, file)
        file.flush()
        return client(bed, "on_crosswind.py", file.name)


ENVIRONMENTS: dict[str, tuple[str | None, Callable[[Testbed, int], dict[str, Any]]]] = {
    "crosswind": (None, crosswind),
    "crosswind-2-ahead": (None, lambda bed, tasks: crosswind(bed, tasks, buffer_tasks=2)),
    "dask": ("distributed", dask),
    "dask-scattered": ("distributed", lambda bed, tasks: dask(bed, tasks, "scattered")),
    "ray": ("ray", ray),
}


def one(environment: str, tasks: int, spec: Path) -> dict[str, Any]:
    """One run, as it stands in the record."""
    package, run = ENVIRONMENTS[environment]
    with Testbed(spec) as bed:
        bound = plan(
            Platform.from_dict(platform(bed.spec, bed.root)), task_size_mb=TASK_MB, task_work=1.0, ports="single"
        ).bound_tasks_per_s
        found = run(bed, tasks)
    computed = Counter(node for node, _, _ in found["results"])
    assert sum(computed.values()) == tasks
    assert all(size == round(TASK_MB * 1e6) for _, size, _ in found["results"])
    return {
        "environment": environment,
        "version": importlib.metadata.version(package) if package else __version__,
        **record.state_of_the_code(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tasks": tasks,
        "makespan_s": found["makespan_s"],
        "ideal_s": tasks / bound,
        "of_bound": tasks / found["makespan_s"] / bound,
        "core_s_per_task": statistics.mean(seconds for _, _, seconds in found["results"]),
        "computed": dict(sorted(computed.items())),
    }


def told(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians of each environment and number of tasks."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["tasks"], run["environment"]), []).append(run)
    return [
        {
            "environment": environment,
            "tasks": tasks,
            "makespan_s": record.spread([run["makespan_s"] for run in group]),
            "of_bound": record.spread([run["of_bound"] for run in group]),
        }
        for (tasks, environment), group in sorted(groups.items())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", choices=[*ENVIRONMENTS, []], metavar="ENVIRONMENT")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--fresh", action="store_true", help="forget the runs recorded before")
    options = parser.parse_args()
    if why := missing():
        print(f"skipped: {why}")
        return
    path = record.RECORDS / f"{NAME}.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() and not options.fresh else []
    for environment in options.environments or random.sample(list(ENVIRONMENTS), len(ENVIRONMENTS)):
        runs.append(one(environment, options.tasks, TESTBED.parent / "fork7-light-nic.json"))
        last = runs[-1]
        share = f"{100 * last['of_bound']:.1f} % of the exact bound"
        print(f"{environment}: {last['makespan_s']:.1f} s ({share}) {last['computed']}", flush=True)
        record.write(NAME, ["numpy"], environments=told(runs), runs=runs)
    print(path)


if __name__ == "__main__":
    main()
