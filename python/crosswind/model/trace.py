"""What a run's trace shows of its nodes: compute rates, interference rates and link rates, from the agents' own times.

Each task that a node computed is one observation. While it computed for `d` seconds, the node received `R` MB and sent
`S_i` MB to child i, so by the interference law (interference-aware-scheduling, section 2)

    work = C (d - IR_r R - sum_i IR_s(i) S_i)

which is linear in `C`, `C IR_r` and `C IR_s(i)`: least squares over all tasks, intervals from residuals summed over
blocks of consecutive tasks (cluster-robust covariance, delta method). Not a measurement: the rates were not varied on
purpose, and `fit_trace` says where they varied too little to tell anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosswind.documents import Row
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.tabular import Tabular
from crosswind.platform import Platform, as_html_table
from crosswind.run.trace import Trace
from crosswind.statistics.interval import reach

Floats = NDArray[np.float64]

FEWEST_TASKS = 12
"""With fewer on a node, only its mean rate is estimated."""
BLOCKS = 24
"""Blocks of consecutive tasks, at most."""
LEAST_SPREAD = 0.02
"""Standard deviation of (MB moved / s), as a part of its largest value, below which a rate cannot be estimated."""


@dataclass(frozen=True)
class Rate:
    """An interference rate from a trace, s/MB, with its 95 % interval; NaN if unknown."""

    node: str
    direction: str
    peer: str
    ir_s_per_mb: float
    ir_ci95: tuple[float, float]

    @property
    def known(self) -> bool:
        """Whether the transfer rate varied enough to tell."""
        return bool(np.isfinite(self.ir_s_per_mb))


@dataclass(frozen=True)
class NodeFit:
    """What a trace shows of one node.

    Attributes
    ----------
    name : str
    tasks : int
        Tasks that it computed: the observations.
    compute_per_s : float
        Work units per second while it neither sends nor receives; NaN where it computed nothing.
    receive_mb_per_s : float
        Median rate of the transfers to it, MB/s; NaN without any.
    rates : tuple of Rate
        Of receiving, and of sending to each child.
    """

    name: str
    tasks: int
    compute_per_s: float
    receive_mb_per_s: float
    rates: tuple[Rate, ...]


@dataclass(frozen=True)
class TraceFit(Tabular):
    """What a trace shows of all its nodes, and what stays unknown (`warnings`)."""

    trace: Trace
    nodes: tuple[NodeFit, ...]
    warnings: list[Notice]

    def platform(self) -> Platform:
        """Return the run's platform with the trace's rates in place of the assumed ones."""
        description: Mapping[str, Any] = self.trace.header["platform"]
        found = {node.name: node for node in self.nodes}
        rates = {
            (rate.node, rate.direction, rate.peer): rate for node in self.nodes for rate in node.rates if rate.known
        }
        nodes = []
        for described in description["node"]:
            node, fitted, parent = dict(described), found[described["name"]], described.get("parent")
            if np.isfinite(fitted.compute_per_s):
                node["compute_per_s"] = fitted.compute_per_s
            if parent is not None and np.isfinite(fitted.receive_mb_per_s):
                node["receive_limit_mb_per_s"] = fitted.receive_mb_per_s
                node.pop("one_sender_share", None)  # measured with one sender
            receive = rates.get((node["name"], "receive", parent or ""))
            send = rates.get((parent or "", "send", node["name"]))
            if receive:
                node["ir_receive_s_per_mb"] = max(receive.ir_s_per_mb, 0.0)
            if send:
                node["ir_send_s_per_mb"] = max(send.ir_s_per_mb, 0.0)
            nodes.append(node)
        own = description.get("warning", [])
        return Platform.from_dict({**description, "node": nodes}).with_warnings([*own, *self.warnings])

    def to_dict(self) -> dict[str, object]:
        """Return the JSON document of `crosswind fit trace.parquet --json`."""
        nodes = [
            {
                "name": node.name,
                "tasks": node.tasks,
                "compute_per_s": node.compute_per_s,
                "receive_mb_per_s": node.receive_mb_per_s,
            }
            for node in self.nodes
        ]
        return {
            "experiment": self.trace.header["experiment"],
            "nodes": nodes,
            "rates": self._rows(),
            "warnings": self.warnings,
        }

    def _rows(self) -> list[Row]:
        return [
            {
                "node": rate.node,
                "direction": rate.direction,
                "peer": rate.peer,
                "ir_s_per_mb": rate.ir_s_per_mb,
                "ir_ci95": list(rate.ir_ci95),
            }
            for node in self.nodes
            for rate in node.rates
        ]

    def to_arrow(self) -> pa.Table:
        """Return one row per interference rate."""
        return pa.Table.from_pylist(self._rows())

    def _repr_html_(self) -> str:
        return as_html_table(f"{self.trace.header['experiment']}: what the trace shows", self._rows())


def fit_trace(trace: Trace | str | Path) -> TraceFit:
    """Fit rates to what the nodes of a run noted.

    Parameters
    ----------
    trace : Trace or path
        Of a run on `local`, or on `sim`, where it gives back the platform that was simulated.

    Returns
    -------
    TraceFit

    Raises
    ------
    DescriptionError
        When no node computed a task whose work is known.

    Notes
    -----
    Validity: a transfer's rate is taken as constant from its start to its end, which holds for one send at a time; with
    several ports the rates come out too small. Times within a task cannot be distinguished, so that tasks much longer
    than the time between transfers blur them. What did not vary in the run is unknown, and is left out.
    """
    if not isinstance(trace, Trace):
        trace = Trace.load(trace)
    parents = {node["name"]: node.get("parent") for node in trace.nodes}
    transfers = {name: _transfers(trace, name) for name in parents}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, parent in parents.items():
        if parent is not None:
            children[parent].append(name)
    nodes, untold = [], []
    for name, parent in parents.items():
        moved = [("receive", parent, transfers[name])] if parent is not None else []
        moved += [("send", child, transfers[child]) for child in children[name]]
        nodes.append(_fit_node(trace, name, [m for m in moved if m[2][0].size], transfers[name]))
        untold += [f"{name} {rate.direction} {rate.peer}" for rate in nodes[-1].rates if not rate.known]
    if not any(np.isfinite(node.compute_per_s) for node in nodes):
        hint = "`crosswind measure` measures interference; so does a run with a workload whose work is known"
        raise DescriptionError("no node of the trace computed a task whose work is known", "too-few-points", hint)
    return TraceFit(trace, tuple(nodes), _warnings(trace, untold))


def _warnings(trace: Trace, untold: list[str]) -> list[Notice]:
    told = []
    if trace.run["compute"] in ("simulated", "emulated"):
        message = f"the run was {trace.run['compute']}: its rates are those of the platform that it was given"
        told.append(warning("not-measured-here", message, 'run with execution.compute other than "emulated"'))
    if trace.run["ports"] == "multi":
        message = "several sends at a time: their rates changed on the way, and the fit takes them as constant"
        told.append(warning("blurred-transfers", message, "ports = single, or `crosswind measure`"))
    if untold:
        shown = ", ".join(untold[:5]) + (f" and {len(untold) - 5} more" if len(untold) > 5 else "")
        message = f"the run varied too little to tell the interference of {shown}"
        told.append(warning("too-little-variation", message, "`crosswind measure` varies the rate on purpose"))
    return told


def _transfers(trace: Trace, child: str) -> tuple[Floats, Floats, Floats]:
    """Return start, end and MB of the transfers to a child, in order."""
    sends = trace.of_kind("send")
    own = sends.filter(pc.equal(sends["child"], pa.scalar(child))).sort_by("start_s")
    start, end, mb = (own[name].to_numpy() for name in ("start_s", "end_s", "mb"))
    return start, np.maximum(end, start), mb


def _fit_node(
    trace: Trace, name: str, moved: list[tuple[str, str, tuple[Floats, Floats, Floats]]], own: tuple[Floats, ...]
) -> NodeFit:
    computed = trace.of_kind("compute")
    computed_here = computed.filter(pc.equal(computed["node"], pa.scalar(name))).sort_by("start_s")
    start, end, work = (computed_here[column].to_numpy() for column in ("start_s", "end_s", "work"))
    seconds = end - start
    usable = (seconds > 0) & (work > 0)
    start, end, work, seconds = start[usable], end[usable], work[usable], seconds[usable]
    amounts = [_within(transfer, start, end) for _, _, transfer in moved]
    told = [_varies(amount / seconds) if seconds.size >= FEWEST_TASKS else False for amount in amounts]
    design = np.column_stack([seconds, *(amount for amount, tells in zip(amounts, told, strict=True) if tells)])
    compute, irs, intervals = _solve(design, work) if work.size > 1 else (float("nan"), [], [])
    found = iter(zip(irs, intervals, strict=True))
    rates = []
    for (direction, peer, _), tells in zip(moved, told, strict=True):
        ir, interval = next(found) if tells else (float("nan"), (float("nan"), float("nan")))
        rates.append(Rate(name, direction, peer, ir, interval))
    lasted = own[1] - own[0]
    receive = float(np.median(own[2][lasted > 0] / lasted[lasted > 0])) if (lasted > 0).any() else float("nan")
    return NodeFit(name, int(work.size), compute, receive, tuple(rates))


def _within(transfer: tuple[Floats, Floats, Floats], start: Floats, end: Floats) -> Floats:
    """Return the MB of a link that moved between each start and end."""
    begun, over, mb = transfer
    over = np.minimum(over, np.append(begun[1:], np.inf))  # chunks of one link do not overlap, but for rounding
    at = np.column_stack([begun, over]).ravel()
    moved = np.column_stack([np.cumsum(mb) - mb, np.cumsum(mb)]).ravel()
    amount: Floats = np.interp(end, at, moved) - np.interp(start, at, moved)
    return amount


def _varies(rate: Floats) -> bool:
    return bool(rate.max() > 0 and rate.std() > LEAST_SPREAD * rate.max())


def _solve(design: Floats, work: Floats) -> tuple[float, list[float], list[tuple[float, float]]]:
    """Return the compute rate, and each interference rate with its interval."""
    coefficients = np.linalg.lstsq(design, work, rcond=None)[0].astype(np.float64)
    compute, irs = float(coefficients[0]), -coefficients[1:] / coefficients[0]
    left = work - design @ coefficients
    blocks = np.array_split(np.arange(work.size), min(BLOCKS, work.size))
    # Neighbouring tasks share what disturbed them, so that residuals are summed over blocks before they are squared.
    scores = np.array([design[rows].T @ left[rows] for rows in blocks])
    bread = np.linalg.pinv(design.T @ design)
    covariance = bread @ scores.T @ scores @ bread * len(blocks) / (len(blocks) - 1)
    wide = reach(len(blocks) - 1)
    intervals = []
    for k, ir in enumerate(irs, 1):
        gradient = np.zeros(coefficients.size)
        gradient[0], gradient[k] = -ir / compute, -1.0 / compute
        half = wide * float(np.sqrt(max(gradient @ covariance @ gradient, 0.0)))
        intervals.append((float(ir) - half, float(ir) + half))
    return compute, [float(ir) for ir in irs], intervals
