"""Links -> Platform: the overlay tree whose exact plan is fastest, and what no tree could beat."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from crosswind import _core
from crosswind.errors import DescriptionError, Notice
from crosswind.files.tabular import Tabular
from crosswind.links import Links
from crosswind.plan import Ports
from crosswind.platform import Platform, as_html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.platform import PlatformDocument


class Compared(TypedDict):
    """What another tree reaches."""

    tree: str
    throughput_tasks_per_s: float


class BuiltTreeDocument(TypedDict):
    """What `crosswind plan tree --json` prints."""

    root: str
    method: Literal["exact", "search"]
    ports: Ports
    task_size_mb: float
    task_work: float
    throughput_tasks_per_s: float
    bound_tasks_per_s: float
    network_bound_tasks_per_s: float
    gap_to_bound: float
    compared: list[Compared]
    left_out: list[str]
    platform: PlatformDocument
    warnings: list[Notice]


@dataclass(frozen=True)
class BuiltTree(Tabular):
    """A tree over the links of a cluster, and why it is good.

    Attributes
    ----------
    data : dict
        root, method (`exact`: no tree is better; `search`: the best that was found), ports, task_size_mb, task_work,
        throughput_tasks_per_s, bound_tasks_per_s, network_bound_tasks_per_s, gap_to_bound, compared (what other trees
        reach), left_out (hosts that no known link leads to), platform, warnings.
    """

    data: BuiltTreeDocument

    @cached_property
    def platform(self) -> Platform:
        """The tree."""
        return Platform.from_dict(self.data["platform"])

    @property
    def throughput_tasks_per_s(self) -> float:
        """What the tree's exact plan computes, tasks per second."""
        return float(self.data["throughput_tasks_per_s"])

    @property
    def bound_tasks_per_s(self) -> float:
        """What no tree over these links beats, tasks per second."""
        return float(self.data["bound_tasks_per_s"])

    @property
    def network_bound_tasks_per_s(self) -> float:
        """What no schedule over these links beats, also one that sends past the tree, tasks per second."""
        return float(self.data["network_bound_tasks_per_s"])

    @property
    def gap_to_bound(self) -> float:
        """(bound - throughput) / bound, in 0..1; 0 is a proof that no tree is better."""
        return float(self.data["gap_to_bound"])

    @property
    def compared(self) -> list[Compared]:
        """What other trees reach: `tree`, `throughput_tasks_per_s`."""
        return list(self.data["compared"])

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this tree."""
        return list(self.data["warnings"])

    def to_dict(self) -> BuiltTreeDocument:
        """Return the JSON document of `crosswind plan tree --json`."""
        return {**self.data}

    def to_arrow(self) -> pa.Table:
        """Return one row per node of the tree."""
        return self.platform.to_arrow()

    def __repr__(self) -> str:
        d = self.data
        rate = f"{self.throughput_tasks_per_s:.6g} tasks/s"
        return f"BuiltTree({d['platform']['name']!r}, {d['method']}, {rate}, {len(self.platform)} nodes)"

    def _repr_html_(self) -> str:
        best: Compared = {"tree": "this one", "throughput_tasks_per_s": self.throughput_tasks_per_s}
        bound: Compared = {"tree": "upper bound, all trees", "throughput_tasks_per_s": self.bound_tasks_per_s}
        network: Compared = {"tree": "no schedule beats", "throughput_tasks_per_s": self.network_bound_tasks_per_s}
        return as_html_table(self.data["platform"]["name"], [best, bound, network, *self.compared])


def plan_tree(
    links: Links | str | Path,
    *,
    task_size_mb: float,
    task_work: float,
    ports: Ports = "multi",
    root: str | None = None,
    seed: int = 1,
    steps: int | None = None,
) -> BuiltTree:
    """Find the tree over measured links whose exact plan computes most tasks per second.

    Up to 10 hosts the best tree there is; for more, the best that a search found, with a rate that no tree can beat.

    Parameters
    ----------
    links : Links or path
        What the hosts compute, and what the pairs of them can exchange. Pairs that are missing are not used.
    task_size_mb : float
        Input of a task, MB, greater than 0.
    task_work : float
        Work of a task, work units, greater than 0.
    ports : {"multi", "single"}
        Sends that a node may have under way.
    root : str, optional
        Name of the host that holds the input; default: whichever makes the best tree.
    seed : int
        Of the search and of the random trees beside it, 0 to 2^64 - 1: the same seed builds the same tree.
    steps : int, optional
        Changes that the search tries; default 3,000,000, a few seconds for 100 hosts.

    Returns
    -------
    BuiltTree
        All hosts that the root reaches are in it: one that gets no tasks costs nothing.

    Raises
    ------
    DescriptionError
        When an argument is out of range, or the links are wrong.

    Notes
    -----
    The value of a tree is its plan's by `crosswind.plan`; docs/concepts/overlay.md explains how the trees are found.

    Examples
    --------
    A fast host behind a slow link of the root's is fed through a neighbour with fast ones:

    >>> rates = {"root": 1.0, "near": 1.0, "far": 100.0}
    >>> hosts = [{"name": name, "compute_per_s": rate} for name, rate in rates.items()]
    >>> pairs = [("root", "near", 50.0), ("root", "far", 2.0), ("near", "far", 30.0)]
    >>> link = [{"from": a, "to": b, "receive_limit_mb_per_s": rate} for a, b, rate in pairs]
    >>> links = Links.from_dict({"schema_version": 1, "name": "three", "host": hosts, "link": link})
    >>> built = plan_tree(links, task_size_mb=1.0, task_work=1.0, ports="single", root="root")
    >>> built.platform.nodes[2]["parent"], built.throughput_tasks_per_s, built.gap_to_bound
    ('near', 32.0, 0.0)
    """
    if not isinstance(links, Links):
        links = Links.load(links)
    for name, value in (("seed", seed), ("steps", 0 if steps is None else steps)):
        if not 0 <= value < 2**64:
            raise DescriptionError(f"{name} is {value}; it must be 0 to {2**64 - 1}", "argument")
    found = _core.build_tree(links._checked, task_size_mb, task_work, ports, root, seed, steps)
    return BuiltTree(json.loads(found))
