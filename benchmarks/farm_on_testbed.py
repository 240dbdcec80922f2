"""Claim: on heterogeneous trees a farm of real tasks is no slower than Dask's and Ray's, and near the exact bound.

Nodes are network namespaces with links and shares of a core, as `testbed_farms/TREE.json` says (the testbed needs
root): `fork7`, the fork graph of table 4; `tree13`, three levels of 1, 3 and 9 nodes; `tree8`, three levels whose
root's card is full only with several sends at a time; `star6`, whose links are alike and carry more than its nodes
compute; `apart6`, two of whose nodes need longer for one task than the others for a hundred. A task is some MB of input
and 50 ms of a core. The same function computes everywhere, under the node's CPU share; whatever else a system runs on
the node is outside of it. Time runs from handing over the first task to the last
result, with all processes up and imports done. The bound is that of the exact plan, several ports, no interference.
`most_of_bound` in the record is what whole tasks can reach of it (`testbed_farms/whole_tasks.py`).
Dask and Ray know of no tree: they may send straight to any node, within the cards. Inputs of 1000 tasks of 10 MB
stand once in the client's memory and once in the system's own, and with scattered data such a run takes up to 90
minutes on the fork: 200 tasks are on record, too.

Each run is added to the record, so that a quiet minute at a time will do; again with the same words goes on where it
ended, until each combination has been run so often:
    python benchmarks/farm_on_testbed.py [--tree fork7,tree13] [--task-mb 2,5,10] [--tasks 200] [--runs 5]
      [--minutes 9] [--in-a-row 1] [--bed 0] [--fresh] [ENVIRONMENT...]
with crosswind (its defaults), crosswind-one-port (`ports = "single"`), dask (data as arguments),
dask-scattered, ray (its defaults), ray-patient (no node asks again after ten seconds for an input that is on its way:
Ray would send it anew); none: all. `--minutes`: begins nothing that would not be over by then, as far as is known.
`--in-a-row`: so many runs on nodes that are started once (a cluster of Ray takes 90 s; Crosswind's agents start anew
with each run). `--bed`: a number that keeps the namespaces of one call apart from another's: what waits for links more
than for processors (the fork) can be timed beside others of its kind. The record says `beside`, and for how much of
the time the machine's processors were idle; a run beside others is forgotten where that was less than 25 %, and always
on the tree of 13, whose nodes compute more.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import record

from crosswind import Platform, __version__, plan

FARMS = Path(__file__).parent / "testbed_farms"
sys.path.insert(0, str(FARMS))
from kernel import CORE_S  # noqa: E402
from nodes import Testbed, missing  # noqa: E402
from whole_tasks import shortest_s  # noqa: E402

NAME = "farm_on_testbed"
PORT = 7317
PATIENCE_S = 3 * 3600
ALONE = {"tree13", "tree8", "star6", "apart6"}
"""Trees whose nodes take more than half of the machine: beside others, scattered data took 7 and 8 % longer at 26 and
32 % idle (187 and 359 s; seen, no longer in the record)."""
LEAST_IDLE = 0.25
"""Below this part of the time a run beside others says more of them: Crosswind took up to 17 % longer at 20 %
(seen, in no record)."""
START_S = {"ray": 90.0, "ray-patient": 90.0}
"""About what it takes to start and to end, where that is more than the others' 20 s."""


class Combination(NamedTuple):
    """What is run: a key of the record."""

    tree: str
    task_mb: float
    tasks: int
    environment: str

    @property
    def task_bytes(self) -> int:
        """Bytes of a task's input."""
        return round(self.task_mb * 1e6)


def platform(tree: str) -> dict[str, Any]:
    """Describe a tree of the testbed as a platform; a work unit is a task's."""
    spec = json.loads((FARMS / f"{tree}.json").read_text())

    def node(name: str) -> dict[str, Any]:
        one = spec["nodes"][name]
        card = {"send_limit_mb_per_s": one["egress"]} if "egress" in one else {}
        return {"name": name, "compute_per_s": one["cpu"] / CORE_S, **card}

    below = [
        {**node(link["to"]), "parent": link["from"], "receive_limit_mb_per_s": link["MBps"]} for link in spec["links"]
    ]
    return {"schema_version": 1, "name": tree, "node": [node(spec["links"][0]["from"]), *below]}


FORGETFUL = {"MALLOC_MMAP_THRESHOLD_": "1048576"}
"""For clients that begin with all inputs: what they let go of goes back to the system (mallopt(3))."""


def client(bed: Testbed, script: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run a script on the root, with more variables of the environment, and return what it prints."""
    command = [*bed.on(bed.root), sys.executable, str(FARMS / script), *arguments]
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join([str(FARMS), *filter(None, sys.path)])}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, cwd=FARMS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{script}: {done.stderr[-3000:]}\nlogs of its nodes: {bed.logs}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


Again = Callable[[], dict[str, Any]]
"""One run on nodes that are up."""


def dask(bed: Testbed, run: Combination, how: str = "arguments") -> Again:
    root = bed.addresses[bed.root]
    scheduler = f"tcp://{root}:{PORT}"
    python_path = {"PYTHONPATH": str(FARMS)}
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", root, "--port", str(PORT)]
    bed.start(bed.root, [*module, "--no-dashboard"], python_path)
    for node, address in bed.addresses.items():
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--name", node, "--host", address]
        bed.start(node, [*worker, "--nthreads", "1", "--no-nanny", "--no-dashboard"], python_path)
    words = [scheduler, str(len(bed.addresses)), str(run.tasks), str(run.task_bytes), how]
    return partial(client, bed, "on_dask.py", *words, **FORGETFUL)


PATIENT = {"RAY_object_manager_pull_timeout_ms": "600000"}
"""Ray asks for an object again after 10, 20, 40 s, and the sender sends all that it is asked for: a storm where an
input takes longer (ray-project/ray issue 56523). An input of 5 MB takes 17 s to the fork's slowest node."""


def ray(bed: Testbed, run: Combination, **variables: str) -> Again:
    head = f"{bed.addresses[bed.root]}:{PORT}"
    start = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--num-cpus", "1", "--disable-usage-stats"]
    store = max(1_500_000_000, round(1.5 * run.tasks * run.task_bytes))  # the driver's inputs, all at once
    # What fills the machine's memory beside it is no reason to refuse or to kill: the tasks ask Ray for none.
    start += ["--memory", "1000000000"]
    environment = {"PYTHONPATH": str(FARMS), "RAY_DEDUP_LOGS": "0", "RAY_memory_monitor_refresh_ms": "0"} | variables
    for node, address in bed.addresses.items():
        if node == bed.root:
            which = ["--head", "--port", str(PORT), "--include-dashboard", "false", "--object-store-memory", str(store)]
        else:
            which = ["--address", head, "--object-store-memory", str(1_500_000_000)]
        # One after the other: raylets that start all at once on two cores give up waiting for each other.
        bed.start(node, [*start, *which, "--node-ip-address", address], environment, until=b"Ray runtime started")
    words = [head, str(len(bed.addresses)), str(run.tasks), str(run.task_bytes)]
    return partial(client, bed, "on_ray.py", *words, **FORGETFUL)


def crosswind(bed: Testbed, run: Combination, **policy: str) -> Again:
    workload = {"kind": "farm", "tasks": run.tasks, "task_size_mb": run.task_mb, "task_work": 1.0}
    point = {"schema_version": 1, "name": NAME, "platform": "", "workload": workload, "policy": policy}
    setup = {
        "platform": platform(run.tree),
        "point": point,
        "addresses": bed.addresses,
        "prefixes": {node: bed.on(node) for node in bed.addresses},
        "bytes": run.task_bytes,
    }
    file = bed.logs / "setup.json"
    file.write_text(json.dumps(setup))
    return partial(client, bed, "on_crosswind.py", str(file))


ENVIRONMENTS: dict[str, tuple[str | None, Callable[[Testbed, Combination], Again]]] = {
    "crosswind": (None, crosswind),
    "crosswind-one-port": (None, lambda bed, run: crosswind(bed, run, ports="single")),
    "dask": ("distributed", dask),
    "dask-scattered": ("distributed", lambda bed, run: dask(bed, run, "scattered")),
    "ray": ("ray", ray),
    "ray-patient": ("ray", lambda bed, run: ray(bed, run, **PATIENT)),
}


def bound_of(run: Combination) -> float:
    """Tasks per second of the exact plan."""
    farm = Platform.from_dict(platform(run.tree))
    return plan(farm, task_size_mb=run.task_mb, task_work=1.0, ports="multi").bound_tasks_per_s


def most_of_bound(run: Combination) -> float:
    """Return the part of the exact bound that no schedule of so many whole tasks exceeds."""
    return run.tasks / shortest_s(platform(run.tree), run.task_mb, run.tasks) / bound_of(run)


def beside(bed: Testbed) -> set[str]:
    """Other beds that are up."""
    return {path.stem for path in Path("/run/testbed").glob("*.json")} - {bed.prefix}


def idle_and_all() -> np.ndarray:
    """Processors' ticks since the machine started: idle ones, and all (proc(5), /proc/stat)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return np.array([ticks[3] + ticks[4], sum(ticks)])


def in_a_row(run: Combination, count: int, bed_number: int) -> Iterator[dict[str, Any]]:
    """Run on nodes that are started once; yield each run as it stands in the record."""
    package, start = ENVIRONMENTS[run.environment]
    spec = json.loads((FARMS / f"{run.tree}.json").read_text())
    if bed_number:
        spec |= {"prefix": f"tb{bed_number}", "subnet": f"10.{77 + bed_number}.0.0/24"}
    with Testbed(spec) as bed:
        bound = bound_of(run)
        again = start(bed, run)
        for number in range(count):
            others, before = beside(bed), idle_and_all()
            found = again()
            others |= beside(bed)
            idle, ticks = idle_and_all() - before
            computed = Counter(node for node, _, _ in found["results"])
            assert sum(computed.values()) == run.tasks
            assert all(size == run.task_bytes for _, size, _ in found["results"])
            yield {
                **run._asdict(),
                "version": importlib.metadata.version(package) if package else __version__,
                **record.state_of_the_code(),
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "in_a_row": number,
                "beside": sorted(others),
                "processors_idle": float(idle / ticks),
                "makespan_s": found["makespan_s"],
                "ideal_s": run.tasks / bound,
                "of_bound": run.tasks / found["makespan_s"] / bound,
                "core_s_per_task": statistics.mean(seconds for _, _, seconds in found["results"]),
                "computed": dict(sorted(computed.items())),
            }


def of(run: dict[str, Any]) -> Combination:
    """Return the key of a recorded run; the first ones were of the fork and 5 MB, and did not say so."""
    return Combination(run.get("tree", "fork7"), run.get("task_mb", 5.0), run["tasks"], run["environment"])


def told(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians of each combination, and its makespan as a multiple of Crosswind's."""
    groups: dict[Combination, list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault(of(run), []).append(run)
    medians = {key: statistics.median(run["makespan_s"] for run in group) for key, group in groups.items()}
    return [
        {
            **key._asdict(),
            "runs": len(group),
            "makespan_s": record.spread([run["makespan_s"] for run in group]),
            "of_bound": record.spread([run["of_bound"] for run in group]),
            "most_of_bound": most_of_bound(key),
            "of_crosswind": medians[key] / crosswind
            if (crosswind := medians.get(key._replace(environment="crosswind")))
            else None,
        }
        for key, group in sorted(groups.items())
    ]


def next_of(
    wanted: list[Combination], runs: list[dict[str, Any]], most: int, left_s: float, row: int
) -> tuple[Combination, int] | None:
    """Draw from those that were run least, and how often in a row; none when all is done, or none is over in time."""
    done = Counter(map(of, runs))

    def fits(run: Combination) -> int:
        known = [float(found["makespan_s"]) for found in runs if of(found) == run]
        if not known:
            known = [1.3 * run.tasks / bound_of(run)]
        in_time = (left_s - START_S.get(run.environment, 20.0)) // max(known)
        return int(min(row, most - done[run], in_time))

    open_ = [run for run in wanted if fits(run) > 0]
    least = min((done[run] for run in open_), default=0)
    drawn = random.choice([run for run in open_ if done[run] == least]) if open_ else None
    return (drawn, fits(drawn)) if drawn else None


def main() -> None:
    def listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
        return lambda text: [kind(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", choices=[*ENVIRONMENTS, []], metavar="ENVIRONMENT")
    parser.add_argument("--tree", type=listed(str), default=["fork7", "tree13", "tree8", "star6", "apart6"])
    parser.add_argument("--task-mb", type=listed(float), default=[1.0, 2.0, 5.0, 10.0])
    parser.add_argument("--tasks", type=listed(int), default=[200])
    parser.add_argument("--runs", type=int, default=5, help="of each combination, those in the record counted")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--in-a-row", type=int, default=1, help="runs on nodes that are started once")
    parser.add_argument("--bed", type=int, default=0, help="keeps the namespaces of two calls at a time apart")
    parser.add_argument("--fresh", action="store_true", help="forget the recorded runs of these combinations")
    options = parser.parse_args()
    if unknown := [tree for tree in options.tree if not (FARMS / f"{tree}.json").exists()]:
        parser.error(f"--tree is {unknown[0]!r}; it must be one of {', '.join(p.stem for p in FARMS.glob('*.json'))}")
    if why := missing():
        print(f"skipped: {why}")
        return
    wanted = [
        Combination(*words)
        for words in itertools.product(
            options.tree, options.task_mb, options.tasks, options.environments or list(ENVIRONMENTS)
        )
    ]
    path = record.RECORDS / f"{NAME}.json"

    def recorded() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
        return found

    if options.fresh and recorded():
        runs = [run for run in recorded() if of(run) not in wanted]
        record.write(NAME, ["numpy"], environments=told(runs), runs=runs)

    over = time.monotonic() + 60 * options.minutes
    while (next_ := next_of(wanted, recorded(), options.runs, over - time.monotonic(), options.in_a_row)) is not None:
        run, count = next_
        for last in in_a_row(run, count, options.bed):
            share = f"{100 * last['of_bound']:.1f} % of the exact bound; processors idle {last['processors_idle']:.0%}"
            print(f"{' '.join(map(str, run))}: {last['makespan_s']:.1f} s ({share}) {last['computed']}", flush=True)
            if last["beside"] and (run.tree in ALONE or last["processors_idle"] < LEAST_IDLE):
                print(f"forgotten: beside {', '.join(last['beside'])}", flush=True)
                continue
            runs = [*recorded(), last]  # another call may have added some meanwhile
            record.write(NAME, ["numpy"], environments=told(runs), runs=runs)
    runs = recorded()
    left = sum(max(options.runs - Counter(map(of, runs))[run], 0) for run in wanted)
    print(f"{path}; {left} runs are left")


if __name__ == "__main__":
    main()
