"""`crosswind plan --build-tree`: Links -> Platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosswind.cli.console import print_json, print_table, tell, tell_warnings
from crosswind.cli.outputs import writable
from crosswind.errors import DescriptionError
from crosswind.plan import Ports

NAMES = {
    "star": "star",
    "chain": "chain, fastest links",
    "widest": "fastest links first",
    "random-median": "at random, median",
    "random-best": "at random, best",
}


def plan_tree(
    links: Path,
    task_size_mb: float | None,
    task_work: float | None,
    ports: Ports,
    root: str | None,
    seed: int,
    out: Path | None,
    force: bool,
    json: bool,
) -> None:
    """Print the tree over measured links whose plan is fastest, and write it as a platform.

    Raises
    ------
    DescriptionError
        When the links or an argument are wrong, or the task is not given.
    """
    from crosswind.overlay import build_tree

    if task_size_mb is None or task_work is None:
        missing = "--task-size-mb" if task_size_mb is None else "--task-work"
        raise DescriptionError(f"a tree needs {missing}", "usage", "larger tasks may want another tree")
    writable(out, "platform", inputs=[links], force=force)
    built = build_tree(links, task_size_mb=task_size_mb, task_work=task_work, ports=ports, root=root, seed=seed)
    tell_warnings(built.warnings)
    if out:
        built.platform.save(out, _comment(built, links))
        tell(f"wrote {out}")
    if json:
        print_json(built.to_dict())
    else:
        _print(built)


def _task(built: Any) -> str:
    d = built.data
    return f"{d['task_size_mb']:g} MB and {d['task_work']:g} work units a task, {d['ports']} port"


def _comment(built: Any, links: Path) -> str:
    reached = f"{built.throughput_tasks_per_s:.6g} tasks/s, {100 * built.gap_to_bound:.3g} % below what no tree beats"
    return f"built by `crosswind plan --build-tree {links}` for {_task(built)}: {reached}"


def _print(built: Any) -> None:
    d, best = built.data, built.throughput_tasks_per_s
    found = "the best tree" if d["method"] == "exact" else "the best tree found"
    gap = f"gap {100 * built.gap_to_bound:.3g} %"
    rows = [[found, f"{best:.4f}", ""], ["no tree beats", f"{built.bound_tasks_per_s:.4f}", gap]]
    rows.append(["no schedule beats, past the tree too", f"{built.network_bound_tasks_per_s:.4f}", ""])
    for other in built.compared:
        rate = other["throughput_tasks_per_s"]
        rows.append([NAMES[other["tree"]], f"{rate:.4f}", f"{100 * rate / best:.1f} %" if best else ""])
    columns = [("tree", "left"), ("tasks/s", "right"), ("", "right")]
    print_table(columns, rows, title=f"{d['platform']['name']}: {_task(built)}, from {d['root']}")
    depth: dict[str, int] = {}
    rows = []
    for node in _depth_first(built.platform.nodes):
        parent = node.get("parent")
        depth[node["name"]] = depth[parent] + 1 if parent else 0
        limit = node.get("receive_limit_mb_per_s")
        rate = "" if limit is None else f"{limit:.6g}"
        rows.append(["  " * depth[node["name"]] + node["name"], f"{node['compute_per_s']:.6g}", rate])
    print_table([("node", "left"), ("work/s", "right"), ("MB/s from its parent", "right")], rows)


def _depth_first(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    children: dict[str | None, list[dict[str, Any]]] = {}
    for node in nodes:
        children.setdefault(node.get("parent"), []).append(node)
    ordered: list[dict[str, Any]] = []
    waiting = list(children[None])
    while waiting:
        node = waiting.pop()
        ordered.append(node)
        waiting += reversed(children.get(node["name"], []))
    return ordered
