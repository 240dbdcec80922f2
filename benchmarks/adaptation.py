"""Claim: a farm that adapts is back at 90 % of the new bound within 20 tasks of the slowest node.

In mid-run a link's rate falls to a third, or a node's compute rate to half. The bound is the exact one of the changed
platform; throughput is that of a window of 20 tasks of the slowest node, from the first such window on that reaches
90 % and is followed by one that does. Simulated, and with emulated agents on this machine, each with and without
adapting: without, the record shows what the change costs. Three platforms: a fork and a tree of three levels whose
preferred child it is that changes, and table 4 of the paper.

And: 1,000 nodes leave or join in an hour of a simulated farm of 40, and every task is computed.

    python benchmarks/adaptation.py
"""

from __future__ import annotations

import copy
import itertools
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal

import record

import crosswind

TABLE_4 = Path(__file__).parents[1] / "examples" / "fork_of_table_4_corrected.toml"
SLOWEST_TASKS = 20
REACHES = 0.9
AT_S = 60.0
TIME_SCALE = 10.0
SIZE_MB = 2.0

Node = dict[str, Any]


def node(name: str, compute: float, parent: str | None = None, limit: float = 0.0, send: float | None = None) -> Node:
    """Return a node with a little interference."""
    described: Node = {"name": name, "compute_per_s": compute}
    if parent is not None:
        described |= {"parent": parent, "receive_limit_mb_per_s": limit}
        described |= {"ir_receive_s_per_mb": 0.004, "ir_send_s_per_mb": 0.008}
    return described | ({"send_limit_mb_per_s": send} if send is not None else {})


FORK = [node("root", 1.0, send=14.0), node("a", 4.0, "root", 10.0), node("b", 4.0, "root", 9.0)]
TREE = [
    node("root", 1.0, send=30.0),
    node("inner", 1.0, "root", 20.0, send=20.0),
    node("leaf", 6.0, "root", 16.0),
    node("below", 4.0, "inner", 14.0),
    node("beside", 4.0, "inner", 10.0),
]
TABLE_4_NODES: list[Node] = tomllib.loads(TABLE_4.read_text())["node"]
# Platform, work of a task, node, field, factor.
CASES: dict[str, tuple[list[Node], float, str, str, float]] = {
    "fork, link to a third": (FORK, 1.0, "a", "receive_limit_mb_per_s", 1 / 3),
    "fork, processor to half": (FORK, 1.0, "a", "compute_per_s", 1 / 2),
    "tree, inner link to a third": (TREE, 1.0, "inner", "receive_limit_mb_per_s", 1 / 3),
    "tree, leaf's link to a third": (TREE, 1.0, "below", "receive_limit_mb_per_s", 1 / 3),
    "table 4, link to a third": (TABLE_4_NODES, 9.0, "Lab3", "receive_limit_mb_per_s", 1 / 3),
}
LIVE = ("fork, link to a third", "table 4, link to a third")


def platform(nodes: list[Node]) -> dict[str, Any]:
    return {"schema_version": 1, "name": "changing", "node": nodes}


def bound_of(nodes: list[Node], work: float, ports: Literal["single", "multi"]) -> float:
    """Return the exact bound, tasks/s."""
    tree = crosswind.Platform.from_dict(platform(nodes))
    return crosswind.plan(tree, task_size_mb=SIZE_MB, task_work=work, ports=ports).bound_tasks_per_s


def back_after(
    case: str, ports: Literal["single", "multi"], adapt: bool, on: Literal["sim", "local"]
) -> dict[str, Any]:
    """Find the tasks of the slowest node after which the throughput is back (None: never), and what it then is."""
    nodes, work, name, field, factor = CASES[case]
    changed = copy.deepcopy(nodes)
    [one] = [node for node in changed if node["name"] == name]
    one[field] *= factor
    bound, before = bound_of(changed, work, ports), bound_of(nodes, work, ports)
    slowest = min(node["compute_per_s"] for node in changed if node["compute_per_s"] > 0) / work
    window = SLOWEST_TASKS / slowest
    experiment = crosswind.Experiment.from_dict(
        {
            "schema_version": 1,
            "name": case,
            "platform": platform(nodes),
            "workload": {
                "kind": "farm",
                "tasks": round(before * AT_S + bound * 4 * window),
                "task_size_mb": SIZE_MB,
                "task_work": work,
            },
            "policy": {"ports": ports, "adapt": adapt},
            "execution": {"time_scale": TIME_SCALE},
            "change": [{"at_s": AT_S, "node": name, field: one[field]}],
        }
    )
    [run] = crosswind.run(experiment, on=on, trace=True)
    assert run.trace is not None
    ends = sorted(run.trace.of_kind("compute")["end_s"].to_pylist())

    def throughput(tasks_later: int) -> float:
        begin = AT_S + tasks_later / slowest
        return sum(begin <= end < begin + window for end in ends) / window / bound

    waits = range(SLOWEST_TASKS + 1)
    back = next((k for k in waits if min(throughput(k), throughput(k + SLOWEST_TASKS)) >= REACHES), None)
    found = {"case": case, "ports": ports, "adapt": adapt, "on": on, "bound_tasks_per_s": bound}
    return found | {"back_after_tasks": back, "of_bound_then": throughput(SLOWEST_TASKS), "reached": back is not None}


def elastic() -> dict[str, Any]:
    """Simulate an hour in which every 3.6 s a node leaves or joins."""
    nodes = [node("n0", 1.0, send=60.0)]
    nodes += [node(f"n{k}", 0.5 + k % 5 * 0.2, "n0" if k <= 6 else f"n{1 + (k - 7) % 6}", 12.0) for k in range(1, 40)]
    changes: list[dict[str, Any]] = []
    gone: list[str] = []
    for k in range(1_000):
        name = f"n{7 + k * 17 % 33}"
        if len(gone) == 4 or name in gone:
            name = gone.pop(gone.index(name) if name in gone else 0)
            changes.append({"at_s": k * 3.6, "node": name, "joins": True})
        else:
            gone.append(name)
            changes.append({"at_s": k * 3.6, "node": name, "leaves": True})
    workload = {"kind": "farm", "tasks": 150_000, "task_size_mb": 1.0, "task_work": 1.0}
    described = {"schema_version": 1, "name": "elastic", "platform": platform(nodes), "workload": workload}
    experiment = crosswind.Experiment.from_dict({**described, "policy": {"adapt": True}, "change": changes})
    [run] = crosswind.run(experiment, trace=True)
    assert run.trace is not None
    computed = run.trace.of_kind("compute")["task"].to_pylist()
    lost = workload["tasks"] - len(set(computed))
    again = len(computed) - len(set(computed))
    found = {"changes": len(run.events), "tasks": workload["tasks"], "lost": lost, "computed_twice": again}
    return found | {"makespan_s": run.makespan_s, "reached": lost == 0}


def main(which: str = "all") -> None:
    cases = []
    for case in CASES:
        for on, ports, adapt in itertools.product(("sim", "local"), ("single", "multi"), (False, True)):
            # Live runs take 10 to 20 s each: those that show most.
            live = case in LIVE and (adapt or ports == "single")
            if which in ("all", on) and (on == "sim" or live):
                cases.append(back_after(case, ports, adapt, on))
                print(cases[-1], flush=True)
    found = elastic()
    print(found, flush=True)
    if which == "all":
        record.write("adaptation", ["numpy"], time_scale=TIME_SCALE, cases=cases, elastic=found)


if __name__ == "__main__":
    main(*sys.argv[1:2])
