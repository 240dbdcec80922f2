"""Where a host that joins a farm belongs: a leaf below the parent with which the tree's exact bound is highest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from crosswind.documents import Row
from crosswind.links import Links
from crosswind.plan import plan
from crosswind.platform import Platform
from crosswind.run.deployment import MeanTask
from crosswind.run.this_machine import LINK_MB_PER_S

_LEAST = 1e-6  # a task of which nothing is known has size or work 0, which no plan takes
_GAIN = 1.0 + 1e-9  # below, bounds differ by rounding: then the one asked first stays

Node = Mapping[str, Any]


class Leaf(NamedTuple):
    """A host's place in the tree."""

    row: Row
    """As in a platform's file."""
    is_measured: bool
    """Whether its rates stand in the links; otherwise it was taken for the mean of the leaves."""


def leaf_below(
    names: Sequence[str],
    nodes: Sequence[Node],
    parents: Mapping[str, Collection[str]],
    task: MeanTask,
    links: Links | None = None,
) -> Leaf:
    """Return the node that a host becomes.

    Parameters
    ----------
    names : sequence of str
        What the node is to be called, and whatever else the links may call the host.
    nodes : sequence of mapping
        The tree as it is now, root first, as in a platform's file.
    parents : mapping
        Nodes that can take a child, and what the links may call the host of each; among equals the first is taken.
    task : Task
        What the bound is for.
    links : Links, optional
        What was measured between hosts. A parent without a measured link to this host is only taken if none has one.
        Without it, the host is taken for the mean of the leaves, wherever it hangs.

    Examples
    --------
    A host behind a slow link of the root's is fed by a neighbour with a fast one:

    >>> nodes = [{"name": "root", "compute_per_s": 0.0}]
    >>> nodes += [{"name": "near", "parent": "root", "compute_per_s": 1.0, "receive_limit_mb_per_s": 50.0}]
    >>> hosts = [{"name": name, "compute_per_s": 10.0} for name in ("root", "10.0.0.2", "far")]
    >>> link = [{"from": a, "to": "far", "receive_limit_mb_per_s": r} for a, r in [("root", 2.0), ("10.0.0.2", 30.0)]]
    >>> links = Links.from_dict({"schema_version": 1, "name": "three", "host": hosts, "link": link})
    >>> parents = {"root": ["root"], "near": ["near", "10.0.0.2"]}
    >>> leaf = leaf_below(["far"], nodes, parents, MeanTask(1.0, 1.0, "single"), links)
    >>> leaf.row["parent"], leaf.is_measured
    ('near', True)
    """
    measured = [
        {**rates, "name": names[0], "parent": parent}
        for parent, called in parents.items()
        if (rates := _measured(names, called, links)) is not None
    ]
    offered = measured or [{"name": names[0], "parent": parent, **_mean_leaf(nodes)} for parent in parents]
    best, highest = offered[0], 0.0
    for row in offered:
        bound = _bound([*nodes, row], task)
        if bound > highest * _GAIN:
            best, highest = row, bound
    return Leaf(best, bool(measured))


def _bound(nodes: Sequence[Node], task: MeanTask) -> float:
    tree = Platform.from_dict({"schema_version": 1, "name": "joining", "node": [dict(node) for node in nodes]})
    size_mb, work = max(task.size_mb, _LEAST), max(task.work, _LEAST)
    planned = plan(tree, task_size_mb=size_mb, task_work=work, result_size_mb=task.result_mb, ports=task.ports)
    return planned.bound_tasks_per_s


def _measured(names: Collection[str], parent: Collection[str], links: Links | None) -> Row | None:
    """Return what the links have about a host as a child of another; each may have several names."""
    if links is None:
        return None
    host = next((host for host in links.hosts if host["name"] in names), None)
    if host is None:
        return None
    for link in links.links:
        if link["from"] in parent and link["to"] == host["name"]:
            return {**host, **{field: value for field, value in link.items() if field not in ("from", "to")}}
    return None


def _mean_leaf(nodes: Sequence[Node]) -> dict[str, float]:
    """Return what is supposed of a host of which nothing is known."""
    inner = {node.get("parent") for node in nodes}
    leaves = [node for node in nodes if node["name"] not in inner and node.get("parent") is not None]
    if not leaves:
        return {"compute_per_s": 1.0, "receive_limit_mb_per_s": LINK_MB_PER_S}
    return {
        field: sum(float(node[field]) for node in leaves) / len(leaves)
        for field in ("compute_per_s", "receive_limit_mb_per_s")
    }
