"""Plan a farm: the rate of every link and processor at which a tree completes most tasks per second.

`plan` solves a platform exactly, or greedily. A `Plan` (`plan.json`) holds the rates of all nodes, their throughput,
and an upper bound that no schedule along the tree can exceed. Where the two are equal, the plan is optimal. How the
tree itself is chosen is in `tree`, rates of two queues in `queues`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crosswind import _core
from crosswind.files.atomic import write_text
from crosswind.files.tabular import Tabular
from crosswind.files.wrong_kind import read_result
from crosswind.platform import Platform, as_html_table
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.plan import PlanDocument, PlannedNode
    from crosswind.errors import Notice

Ports = Literal["single", "multi"]
Method = Literal["exact", "greedy"]

BOUND: Mapping[str, str] = {"single": "upper bound (single port)", "multi": "upper bound (several ports)"}
"""What a bound is called, after the model in which it holds.

It is that of every schedule that sends along the links of the tree, with as many sends at a time as `ports` permits. A
schedule that sends several at once may exceed the bound of a single port; one that sends past the tree may exceed both.
"""


LIMITED_BY: Mapping[str, str] = {
    "compute": "own compute rate",
    "receive-limit": "receive limit",
    "send-limit": "send limit",
    "port": "single port",
    "local-compute": "no computation left to give",
    "parent": "what the parent gives",
    "never-send": "never sent to",
    "return-link": "what its link returns",
}
"""What limits a node, in words."""
MOST_NODES = 50


def ports_of(policy: Mapping[str, Any]) -> Ports:
    """Return the ports that a run under a policy has: one only where it says so."""
    return "single" if policy.get("ports") == "single" else "multi"


def result_mb_of(settings: Mapping[str, Any]) -> float:
    """Return the size of a result in the settings of a live run, MB: 0 where it is not known before results come."""
    return float(settings.get("work", {}).get("result_bytes", 0)) / 1e6


@dataclass(frozen=True)
class Plan(Tabular):
    """The steady state of a platform for one kind of task.

    Attributes
    ----------
    data : dict
        The content of `plan.json` (docs/reference/files.md).
    """

    data: PlanDocument

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a `plan.json`.

        Raises
        ------
        DescriptionError
            When it is no plan, or one of another schema version.
        """
        return cls(read_result(path, "plan", "crosswind plan PLATFORM.toml ... -o plan.json"))

    @property
    def throughput_tasks_per_s(self) -> float:
        """Tasks per second that the whole tree computes."""
        return float(self.data["throughput_tasks_per_s"])

    @property
    def bound_tasks_per_s(self) -> float:
        """Upper bound on the throughput of any schedule that sends along the tree, tasks per second."""
        return float(self.data["bound_tasks_per_s"])

    @property
    def constant_rates_bound_tasks_per_s(self) -> float | None:
        """Upper bound for constant rates, tasks per second; None where no loss is a curve, and with one port."""
        bound = self.data.get("constant_rates_bound_tasks_per_s")
        return None if bound is None else float(bound)

    @property
    def gap_to_exact(self) -> float:
        """(bound - throughput) / bound, in 0..1."""
        return float(self.data["gap_to_exact"])

    @property
    def supposes_linear_losses(self) -> bool:
        """Whether full links could stop a processor: losses are then not linear, as the bound supposes."""
        return any(warning["code"] == "bound-of-linear-losses" for warning in self.warnings)

    @property
    def nodes(self) -> list[PlannedNode]:
        """One entry per node, in the platform's order."""
        return list(self.data["nodes"])

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this plan."""
        return list(self.data["warnings"])

    def to_dict(self) -> PlanDocument:
        """Return the content of `plan.json`."""
        return {**self.data}

    def save(self, path: str | Path) -> None:
        """Write a `plan.json`; an existing file is replaced only once the new one is complete."""
        write_text(json.dumps(self.to_dict(), indent=2) + "\n", path)

    def tables(self, most: int = MOST_NODES) -> list[Table]:
        """Return the rates of each node; of more than `most`, those that receive most."""
        columns = [
            Column("node", numeric=False),
            Column("parent", numeric=False),
            Column("receives", "/s"),
            Column("computes", "/s"),
            Column("rank", term="rank"),
            Column("limited by", term="limited-by", numeric=False),
            *(Column(f"gain per {unit}", term="gain") for unit in ("MB/s in", "MB/s out", "work/s")),
        ]
        left = len(self.nodes) - most
        shown = sorted(self.nodes, key=lambda one: -one["received_tasks_per_s"])[:most] if left > 0 else self.nodes
        rows = [
            [
                one["name"],
                one["parent"] or "",
                f"{one['received_tasks_per_s']:.4f}",
                f"{one['computed_tasks_per_s']:.4f}",
                "never" if one["never_send"] else str(one["rank"] or ""),
                LIMITED_BY[one["limited_by"]],
                f"{one['gain_per_receive_mb_per_s']:+.4f}",
                f"{one['gain_per_send_mb_per_s']:+.4f}",
                "a loss" if (gain := one["gain_per_work_per_s"]) is None else f"{gain:+.4f}",
            ]
            for one in shown
        ]
        note = "Gains are derivatives of the throughput: use them for small changes."
        if left > 0:
            note += f" {most:,} of {len(self.nodes):,} nodes are shown, those that receive most; --json has all."
        return [Table("What the plan asks of each node", columns, rows, note)]

    def to_arrow(self) -> pa.Table:
        """Return one row per node."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.nodes)

    def __repr__(self) -> str:
        d = self.data
        rate = f"{self.throughput_tasks_per_s:.6g} tasks/s"
        return f"Plan({d['platform']!r}, {d['ports']}-port, {rate}, {len(self.nodes)} nodes)"

    def _repr_html_(self) -> str:
        d = self.data
        caption = f"{d['platform']}: {self.throughput_tasks_per_s:.4g} tasks/s ({d['ports']} port, {d['method']})"
        return as_html_table(caption, self.nodes)


def plan(
    platform: Platform | str | Path,
    *,
    task_size_mb: float,
    task_work: float,
    result_size_mb: float = 0.0,
    ports: Ports = "multi",
    method: Method = "exact",
) -> Plan:
    """Find the rates at which the tree computes most tasks per second.

    Parameters
    ----------
    platform : Platform or path
        The tree of nodes.
    task_size_mb : float
        Input of a task, MB, greater than 0 (Z of the paper).
    task_work : float
        Work of a task, work units, greater than 0.
    result_size_mb : float
        Result of a task, MB, at least 0. It travels back to the root over the same links, beside inputs, and disturbs
        both ends of each link as much as an input of its size.
    ports : {"multi", "single"}
        Sends that a node may have under way.
    method : {"exact", "greedy"}
        The best rates, or those of the paper's greedy rule with the gap to the best.

    Returns
    -------
    Plan
        With the upper bound of all schedules that send along the tree.

    Raises
    ------
    DescriptionError
        When an argument is out of range, or the platform is wrong.

    Notes
    -----
    interference-aware-scheduling, section 3, with the corrections of docs/papers/, and results added.

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> pair = Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]})
    >>> plan(pair, task_size_mb=1.0, task_work=1.0).throughput_tasks_per_s
    6.0

    Results of 5 MB: the link returns 2 a second.

    >>> plan(pair, task_size_mb=1.0, task_work=1.0, result_size_mb=5.0).throughput_tasks_per_s
    4.0
    """
    if not isinstance(platform, Platform):
        platform = Platform.load(platform)
    return Plan(json.loads(_core.plan(platform._checked, task_size_mb, task_work, ports, method, result_size_mb)))
